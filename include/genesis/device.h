/*
 * genesis/device.h: devices, streams, events and copies.
 *
 * device   a place with memory: the CPU, or one CUDA GPU. Devices live for ever and are borrowed.
 * stream   an ordered queue of work on a device. Work of one stream runs in the order in which it
 *          was submitted; work of two streams is ordered only by events, or by the default stream.
 *          Operations on tensors may wait (genesis/ops.h): gn_flush() submits them before a stream or an event is
 *          used to order or measure them.
 * event    a mark in a stream. Recording takes a snapshot: the event is complete when everything
 *          submitted to the stream before the record is complete. Recording again moves the mark;
 *          an event that was never recorded counts as complete.
 *
 * The default stream of a device is ordered with every stream that was created without
 * GN_STREAM_NON_BLOCKING: its work waits for theirs, and theirs for its. On CUDA it is the driver's
 * legacy default stream, which other libraries use as well. The CPU's streams have the same rules.
 *
 * CUDA starts at the first call that needs it, and uses the device's primary context, so that it
 * shares memory and streams with other libraries in the process. Each call leaves the calling
 * thread's current CUDA context as it was. Failures common to all calls here:
 *   GN_ERROR_UNAVAILABLE   no driver, a driver that is too old, or no GPU; the detail says which
 *   GN_ERROR_DEVICE_LOST   a kernel or the hardware failed; the device is lost to this process
 *   GN_ERROR_FORKED        the process was forked after CUDA was started
 *   GN_ERROR_SHUTDOWN      the process is in exit()
 *   GN_ERROR_DRIVER        any other refusal by the driver; the detail has its name and text
 */
#ifndef GENESIS_DEVICE_H
#define GENESIS_DEVICE_H

#include "genesis/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gn_device_type {
    GN_DEVICE_CPU = 0,
    GN_DEVICE_CUDA = 1,
} gn_device_type;

typedef struct gn_device gn_device;
typedef struct gn_stream gn_stream;
typedef struct gn_event gn_event;

/* ---- devices -------------------------------------------------------------------------------- */

/*
 * How many devices of a type there are. Starts the CUDA driver, but no device. Where CUDA cannot be
 * used the call fails, and the detail says why.
 */
GN_API gn_status gn_device_count(gn_device_type type, int *count) GN_NODISCARD;

/* Borrows a device, starting it if this is its first use. GN_ERROR_INVALID_DEVICE if none has
 * this index. */
GN_API gn_status gn_device_get(gn_device_type type, int index, gn_device **device) GN_NODISCARD;

GN_API gn_device_type gn_device_get_type(const gn_device *device);
GN_API int gn_device_get_index(const gn_device *device);

/* Whether a device of a type has been started; false in a child of fork(), which cannot use its parent's. */
GN_API bool gn_device_is_started(gn_device_type type);

/* Whether a device can read and write the memory of another one directly; false for the CPU, and for itself. */
GN_API gn_status gn_device_can_access(gn_device *device, gn_device *peer,
                                      bool *can_access) GN_NODISCARD;

/* The index of the device that the calling thread uses for this type; 0 until it sets another. */
GN_API int gn_device_get_current(gn_device_type type);

/* Sets it. Starts the CUDA driver to check the index, but no device. */
GN_API gn_status gn_device_set_current(gn_device_type type, int index) GN_NODISCARD;

typedef struct gn_device_properties {
    char name[256];
    char uuid[48];             /* "GPU-xxxxxxxx-xxxx-...", "" if not known */
    char pci_bus_id[16];       /* "0000:3b:00.0", "" on the CPU */
    uint64_t total_memory;     /* bytes */
    int major, minor;          /* compute capability; 0 on the CPU */
    int multi_processor_count; /* on the CPU: processors that this process may use */
    int warp_size;             /* 1 on the CPU */
    int max_threads_per_block;
    int max_threads_per_multi_processor;
    int registers_per_multi_processor;
    uint64_t shared_memory_per_block;           /* bytes, without opting in */
    uint64_t shared_memory_per_block_optin;     /* bytes, the most a kernel can ask for */
    uint64_t shared_memory_per_multi_processor; /* bytes */
    uint64_t l2_cache_size;                     /* bytes; on the CPU the last-level cache */
    int clock_rate_khz;
    int memory_clock_rate_khz;
    int memory_bus_width_bits;
    bool is_integrated;             /* shares its memory with the host */
    bool has_virtual_memory;        /* physical memory can be mapped at chosen addresses */
    bool has_stream_ordered_memory; /* the driver allocates in stream order */
} gn_device_properties;

GN_API gn_status gn_device_get_properties(gn_device *device,
                                          gn_device_properties *properties) GN_NODISCARD;

/* Bytes that are free now, for every process, and in all. */
GN_API gn_status gn_device_get_memory_info(gn_device *device, size_t *free_bytes,
                                           size_t *total_bytes) GN_NODISCARD;

/* Waits until all work of all streams of the device is complete. GN_ERROR_CAPTURE while one is captured by us. */
GN_API gn_status gn_device_synchronize(gn_device *device) GN_NODISCARD;

/*
 * How many threads an operation on the CPU uses at most, the calling one among them: at first as many as there
 * are processors that this process may use. It holds for the whole process, from the next operation on, and
 * changes no result. At least 1; more than 256 count as 256.
 */
GN_API int gn_get_num_threads(void);
GN_API gn_status gn_set_num_threads(int count) GN_NODISCARD;

/* ---- streams -------------------------------------------------------------------------------- */

enum {
    GN_STREAM_NON_BLOCKING = 1, /* not ordered with the default stream */
};

/*
 * Creates a stream, owned by the caller. A lower number is a higher priority; numbers outside of
 * the device's range are moved into it.
 */
GN_API gn_status gn_stream_create(gn_device *device, unsigned flags, int priority,
                                  gn_stream **stream) GN_NODISCARD;

/*
 * Wraps a CUDA stream that another library owns: it must live as long as work is submitted through
 * the wrapper. Handles 0 and 1 mean the default stream, 2 the calling thread's own default stream.
 * The wrapper is owned by the caller, the stream is not.
 */
GN_API gn_status gn_stream_from_handle(gn_device *device, void *handle,
                                       gn_stream **stream) GN_NODISCARD;

/* One more owner; returns its argument. */
GN_API gn_stream *gn_stream_retain(gn_stream *stream);

/*
 * One owner fewer. The last one destroys the stream; submitted work still runs to its end. NULL is
 * allowed.
 */
GN_API void gn_stream_release(gn_stream *stream);

/* Borrows the device's default stream. */
GN_API gn_status gn_stream_get_default(gn_device *device, gn_stream **stream) GN_NODISCARD;

/*
 * Borrows the stream that the calling thread uses on this device, the default stream until it sets
 * another; valid until the thread sets one again. Setting it retains the stream.
 */
GN_API gn_status gn_stream_get_current(gn_device *device, gn_stream **stream) GN_NODISCARD;
GN_API gn_status gn_stream_set_current(gn_stream *stream) GN_NODISCARD;

GN_API gn_device *gn_stream_get_device(const gn_stream *stream);

/* The CUstream; NULL for a default stream and on the CPU. From then on others may capture the stream,
 * and allocating for it costs a little more. */
GN_API void *gn_stream_get_handle(gn_stream *stream);

/* A number that no other stream of this process has or will have, unlike the handle. */
GN_API gn_status gn_stream_get_id(gn_stream *stream, uint64_t *id) GN_NODISCARD;
GN_API int gn_stream_get_priority(const gn_stream *stream);

/* GN_OK when all submitted work is complete, GN_ERROR_NOT_READY when it is not. */
GN_API gn_status gn_stream_query(gn_stream *stream) GN_NODISCARD;
GN_API gn_status gn_stream_synchronize(gn_stream *stream) GN_NODISCARD;

/* Work submitted to the stream from now on waits for the event, on the device, not on the host. */
GN_API gn_status gn_stream_wait_event(gn_stream *stream, gn_event *event) GN_NODISCARD;

/* Is the stream being captured into a graph? */
GN_API gn_status gn_stream_is_capturing(gn_stream *stream, bool *is_capturing) GN_NODISCARD;

/* ---- events --------------------------------------------------------------------------------- */

enum {
    GN_EVENT_TIMING = 1,        /* can be used with gn_event_elapsed */
    GN_EVENT_BLOCKING_SYNC = 2, /* gn_event_synchronize sleeps instead of spinning */
};

GN_API gn_status gn_event_create(gn_device *device, unsigned flags, gn_event **event) GN_NODISCARD;

/* Destroys an event; waits that were submitted keep their meaning. NULL is allowed. */
GN_API void gn_event_destroy(gn_event *event);

GN_API gn_device *gn_event_get_device(const gn_event *event);
GN_API void *gn_event_get_handle(const gn_event *event); /* the CUevent; NULL on the CPU */

GN_API gn_status gn_event_record(gn_event *event, gn_stream *stream) GN_NODISCARD;

/* GN_OK when the last record is complete or there is none, else GN_ERROR_NOT_READY. */
GN_API gn_status gn_event_query(gn_event *event) GN_NODISCARD;
GN_API gn_status gn_event_synchronize(gn_event *event) GN_NODISCARD;

/* Milliseconds between two recorded and complete events made with GN_EVENT_TIMING. */
GN_API gn_status gn_event_elapsed(gn_event *start, gn_event *end, float *milliseconds) GN_NODISCARD;

/* ---- bytes ---------------------------------------------------------------------------------- */

/*
 * Submits a copy. On a CUDA stream each address may be on the host or on a device; host memory that
 * is not page-locked is copied as the driver does it: safe to reuse when the call returns. On a CPU
 * stream both must stay valid until the stream has passed the copy.
 */
GN_API gn_status gn_copy(void *destination, const void *source, size_t nbytes,
                         gn_stream *stream) GN_NODISCARD;

/*
 * Submits a fill of `count` elements of 1, 2 or 4 bytes with the low bytes of `value`. The address
 * must be a multiple of the element size.
 */
GN_API gn_status gn_fill(void *destination, uint32_t value, size_t element_size, size_t count,
                         gn_stream *stream) GN_NODISCARD;

/*
 * Page-locked host memory that a CUDA device reads and writes directly and asynchronously. On the
 * CPU device the memory is ordinary. Free it with the same device, after its last use.
 */
GN_API gn_status gn_host_alloc(gn_device *device, size_t nbytes, void **pointer) GN_NODISCARD;
GN_API gn_status gn_host_free(gn_device *device, void *pointer) GN_NODISCARD;

/* Page-locks memory that the caller owns, and undoes it. */
GN_API gn_status gn_host_register(gn_device *device, void *pointer, size_t nbytes) GN_NODISCARD;
GN_API gn_status gn_host_unregister(gn_device *device, void *pointer) GN_NODISCARD;

/* ---- what is installed ---------------------------------------------------------------------- */

/* A library that Genesis uses where it is found. */
typedef struct gn_library_description {
    const char *name; /* "CUDA driver", "NVRTC", "cuBLASLt" */
    bool is_found;
    int version;      /* as the library reports it: 13000 is 13.0 for CUDA and NVRTC */
    char path[512];   /* the file that was loaded, "" if not found */
    char reason[512]; /* why it is not there, "" if found */
} gn_library_description;

/* Describes the library with this index, loading it if need be; false past the last one. */
GN_API bool gn_library_describe(int index, gn_library_description *out);

/* Adds a directory to those in which NVRTC and cuBLASLt are looked for, before their first use. */
GN_API gn_status gn_library_add_directory(const char *directory) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
