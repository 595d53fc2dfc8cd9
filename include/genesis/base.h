/*
 * genesis/base.h: what every other header needs: status codes, error detail, version.
 *
 * Everything that can fail returns a gn_status. Results come back through the last arguments and
 * are left untouched on failure. A sentence about the last failure of the calling thread is kept
 * until that thread's next failure: gn_error_detail(). GN_ERROR_NOT_READY is an answer rather than a
 * failure, and leaves it alone.
 *
 * Threads: every function of this library may be called from any thread unless it says otherwise.
 */
#ifndef GENESIS_BASE_H
#define GENESIS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GN_VERSION_MAJOR 0
#define GN_VERSION_MINOR 1
#define GN_VERSION_PATCH 0

#if defined(__GNUC__)
#ifndef GN_API
#define GN_API __attribute__((visibility("default")))
#endif
#define GN_NODISCARD __attribute__((warn_unused_result))
#else
#define GN_API
#define GN_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Every status: X(name, number, message). Numbers are part of the ABI: append, never renumber. */
#define GN_STATUS_LIST(X)                                                                   \
    X(OK, 0, "no error")                                                                    \
    X(ERROR_INVALID_VALUE, 1, "an argument has a value that is not allowed")                \
    X(ERROR_OVERFLOW, 2, "a size does not fit the address space")                           \
    X(ERROR_OUT_OF_MEMORY, 3, "the device has no memory left for the request")              \
    X(ERROR_OUT_OF_HOST_MEMORY, 4, "the host has no memory left for bookkeeping")           \
    X(ERROR_INVALID_DEVICE, 5, "there is no such device")                                   \
    X(ERROR_UNAVAILABLE, 6, "the driver or library is not available on this machine")       \
    X(ERROR_UNSUPPORTED, 7, "this device or driver does not offer the operation")           \
    X(ERROR_INVALID_POINTER, 8, "the address does not belong to this memory manager")       \
    X(ERROR_DOUBLE_FREE, 9, "the block was freed before")                                   \
    X(ERROR_WRONG_SIZE, 10, "the size is not the size the block was allocated with")        \
    X(ERROR_NOT_READY, 11, "the work is not complete yet")                                  \
    X(ERROR_DRIVER, 12, "the driver reported an error")                                     \
    X(ERROR_DEVICE_LOST, 13, "the device failed and can no longer be used by this process") \
    X(ERROR_FORKED, 14, "CUDA was started before fork() and cannot be used in the child")   \
    X(ERROR_SHUTDOWN, 15, "the process is exiting and the driver is shutting down")         \
    X(ERROR_CAPTURE, 16, "the call is not allowed while a stream is being captured")        \
    X(ERROR_CORRUPTED, 17, "memory was written out of bounds")                              \
    X(ERROR_SHAPE, 18, "shapes do not go together, or a shape is not possible")             \
    X(ERROR_INDEX, 19, "an index is out of range")                                          \
    X(ERROR_TYPE, 20, "the operation is not defined for these types")                       \
    X(ERROR_COMPILATION, 21, "the text of a kernel does not compile")                       \
    X(ERROR_NUMBER, 22, "a number does not fit the type that it is wanted in")              \
    X(ERROR_LINALG, 23, "a matrix is singular, or an iteration did not converge")

typedef enum gn_status {
#define GN_STATUS_ENUM(name, number, message) GN_##name = number,
    GN_STATUS_LIST(GN_STATUS_ENUM)
#undef GN_STATUS_ENUM
} gn_status;

/* The name of a status, such as "GN_ERROR_OUT_OF_MEMORY"; never NULL. Static memory. */
GN_API const char *gn_status_name(gn_status status);

/* One sentence that explains a status in general; never NULL. Static memory. */
GN_API const char *gn_status_message(gn_status status);

/*
 * What went wrong in the calling thread's last failed call, with names and numbers in it; "" if
 * nothing failed yet. Borrowed: valid until the calling thread's next failing call.
 */
GN_API const char *gn_error_detail(void);

/* "0.1.0". Static memory. */
GN_API const char *gn_version(void);

/*
 * Parses a size: a whole number of bytes with an optional unit. KB, MB, GB, TB are powers of 1000;
 * KiB, MiB, GiB, TiB (or K, M, G, T) powers of 1024; letters in either case, "B" may be written
 * out, spaces may stand around the unit. Fails with GN_ERROR_INVALID_VALUE or GN_ERROR_OVERFLOW.
 */
GN_API gn_status gn_size_parse(const char *text, size_t *bytes) GN_NODISCARD;

/* One of the GENESIS_* environment variables. The texts are static or live for ever. */
typedef struct gn_option_description {
    const char *name;     /* the variable's name */
    const char *kind;     /* flag, size, amount, fraction, choice, set, path or library */
    const char *standard; /* the default */
    const char *value;    /* what is in force in this process */
    const char *meaning;  /* one line */
    char range[128];      /* what is allowed, in words */
} gn_option_description;

/*
 * Describes the variable with this index; false past the last one, so that a loop from 0 lists
 * them all. Reads the variable if it was not read before: after this call its value is fixed.
 */
GN_API bool gn_option_describe(int index, gn_option_description *out);

#ifdef __cplusplus
}
#endif

#endif
