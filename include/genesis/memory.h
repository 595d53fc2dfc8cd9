/*
 * genesis/memory.h: memory managers: who holds memory on a device, and how much.
 *
 * Each device has one memory manager, which lives for ever and is borrowed. The policy in force is
 * `direct`: each allocation is one allocation of the driver (on the CPU: of the system), of exactly
 * the size that was asked for, and each free gives it back. It is slow and simple, and nothing
 * about memory can surprise you.
 *
 * Every block is tracked. Freeing something twice, something that was never allocated, an address
 * inside a block, or a block with a wrong size is refused with an error that says what the address
 * is, and changes nothing.
 */
#ifndef GENESIS_MEMORY_H
#define GENESIS_MEMORY_H

#include "genesis/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_memory_manager gn_memory_manager;

/* Borrows the manager of a device. */
GN_API gn_status gn_memory_manager_get(gn_device *device, gn_memory_manager **manager) GN_NODISCARD;

GN_API gn_device *gn_memory_manager_get_device(const gn_memory_manager *manager);

/* The policy's name: "direct". Static memory. */
GN_API const char *gn_memory_manager_get_policy(const gn_memory_manager *manager);

/*
 * Allocates `nbytes` for use on a stream (NULL: the calling thread's current one). The block
 * belongs to the caller until it is freed, and may be used on the stream at once. 0 bytes give an
 * address of its own, too, which must be freed. The content is undefined. GN_ERROR_OUT_OF_MEMORY is
 * an ordinary result, after which everything goes on; GN_ERROR_OVERFLOW says that no device can
 * have that much.
 */
GN_API gn_status gn_memory_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                 void **pointer) GN_NODISCARD;

/*
 * Frees a block. Work that was submitted before may still use it. The second form also checks the
 * size. NULL is refused: it is not a block. GN_ERROR_INVALID_POINTER, GN_ERROR_DOUBLE_FREE,
 * GN_ERROR_WRONG_SIZE.
 */
GN_API gn_status gn_memory_free(gn_memory_manager *manager, void *pointer) GN_NODISCARD;
GN_API gn_status gn_memory_free_sized(gn_memory_manager *manager, void *pointer,
                                      size_t nbytes) GN_NODISCARD;

/* The size that a living block was allocated with. */
GN_API gn_status gn_memory_get_size(gn_memory_manager *manager, const void *pointer,
                                    size_t *nbytes) GN_NODISCARD;

typedef struct gn_memory_statistics {
    uint64_t live_bytes;      /* handed out and not freed */
    uint64_t live_bytes_peak; /* the most since the start or the last reset */
    uint64_t live_count;      /* blocks handed out and not freed */
    uint64_t live_count_peak;
    uint64_t reserved_bytes; /* obtained from the driver or system and not given back */
    uint64_t reserved_bytes_peak;
    uint64_t alloc_count;       /* allocations that succeeded, since the start */
    uint64_t free_count;        /* frees that succeeded */
    uint64_t alloc_bytes_total; /* of all allocations that succeeded */
    uint64_t free_bytes_total;
    uint64_t out_of_memory_count; /* allocations that failed for want of memory */
    uint64_t refused_count;       /* frees that were refused: wrong address or size, or twice */
    uint64_t driver_alloc_count;  /* that the driver or system gave */
    uint64_t driver_free_count;
} gn_memory_statistics;

/* One consistent reading. */
GN_API gn_status gn_memory_get_statistics(gn_memory_manager *manager,
                                          gn_memory_statistics *statistics) GN_NODISCARD;

/* Sets the peaks to what is live now. */
GN_API gn_status gn_memory_reset_peaks(gn_memory_manager *manager) GN_NODISCARD;

/*
 * Frees every block of every manager and gives the devices back that have no streams, events or
 * modules left. Every address that a manager handed out is invalid after this; the library can be
 * used again, with the same devices and managers. A stream that is a thread's current one counts as
 * alive. In debug builds blocks and objects that were still alive are reported as leaks on standard
 * error. `leaked` (may be NULL) gets their number. The caller makes sure that no other thread uses the
 * library meanwhile.
 */
GN_API gn_status gn_shutdown(size_t *leaked) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
