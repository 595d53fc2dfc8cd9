/*
 * genesis/interop.h: tensors of other libraries, by DLPack: no element is copied.
 *
 * The structures are DLPack's own (dlpack.h, which a program that looks into them includes); a DLTensor, which has
 * no tag in C, is a void * here.
 *
 * Ownership: exporting gives a structure whose deleter must be called once, from any thread; until then the
 * tensor's memory lives. Importing takes a structure over: its deleter is called, from any thread, when the last
 * view of its memory has gone. An import that fails has taken nothing.
 *
 * What others say is not believed: a structure with a version, device, type, shape or strides that cannot be is
 * refused. Its addresses must be good.
 *
 * Threads: any thread may call every function.
 */
#ifndef GENESIS_INTEROP_H
#define GENESIS_INTEROP_H

#include "genesis/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* ---- export ---------------------------------------------------------------------------------- */

/*
 * The tensor as others take it, with everything computed that was pending there; from then on its storage counts
 * as known to others. `is_copied` tells the consumer that nobody else has the tensor.
 */
GN_API gn_status gn_tensor_to_dlpack(gn_tensor *tensor, bool is_copied,
                                     struct DLManagedTensorVersioned **managed) GN_NODISCARD;

/* The same as before DLPack 1.0, which cannot say that a tensor is read-only: GN_ERROR_UNSUPPORTED for one. */
GN_API gn_status gn_tensor_to_dlpack_unversioned(gn_tensor *tensor,
                                                 struct DLManagedTensor **managed) GN_NODISCARD;

/* Fills in a DLTensor that is good as long as the tensor. Shape and strides are the tensor's: not to be written. */
GN_API gn_status gn_tensor_describe_dlpack(gn_tensor *tensor, void *description) GN_NODISCARD;

/* A new tensor without content; of the DLTensor `prototype` only type, shape and device count. */
GN_API gn_status gn_dlpack_create(const void *prototype,
                                  struct DLManagedTensorVersioned **managed) GN_NODISCARD;

/* ---- import ---------------------------------------------------------------------------------- */

GN_API gn_status gn_tensor_from_dlpack(struct DLManagedTensorVersioned *managed,
                                       gn_tensor **tensor) GN_NODISCARD;
GN_API gn_status gn_tensor_from_dlpack_unversioned(struct DLManagedTensor *managed,
                                                   gn_tensor **tensor) GN_NODISCARD;

/* gn_tensor_from_memory() for a layout that others give: what cannot be is refused, as in a structure. */
GN_API gn_status gn_tensor_from_others(void *data, gn_dtype dtype, int dimensions,
                                       const int64_t *shape, const int64_t *strides,
                                       gn_device *device, bool is_read_only,
                                       void (*deleter)(void *context), void *context,
                                       gn_tensor **tensor) GN_NODISCARD;

/* Calls the deleter, if there is one: for who will not import it after all. */
GN_API void gn_dlpack_delete(struct DLManagedTensorVersioned *managed);
GN_API void gn_dlpack_delete_unversioned(struct DLManagedTensor *managed);

/* ---- devices and streams --------------------------------------------------------------------- */

/* What DLPack calls a device, and back: 1 the CPU, 2 CUDA, 3 page-locked memory, which is the CPU here. */
GN_API void gn_device_to_dlpack(const gn_device *device, int *type, int *index);
GN_API gn_status gn_device_from_dlpack(int type, int index, gn_device **device) GN_NODISCARD;

/*
 * Makes the consumer's stream wait, on the device, for all work on the tensor's memory and for all that the calling
 * thread's current stream was given; the memory goes to nobody else before that stream is done. NULL and 1 are the
 * default stream, 2 is the thread's own default stream, -1 none that must wait; others are handles, whose streams
 * must live as long as the memory. On the CPU, where results are complete when a call returns, only NULL and -1 are
 * allowed.
 */
GN_API gn_status gn_dlpack_order(gn_tensor *tensor, const int64_t *stream) GN_NODISCARD;

/*
 * The other side: an import belongs to the calling thread's current stream, on which its content must be in order;
 * or, after this call, which nothing may come before, to a producer's stream. Other streams that use it wait for that
 * one, which waits for them, all on the device, before the deleter is called. Handles 0 and 1 are the default
 * stream, 2 is the thread's own; others' streams must live as long as the import. Nothing to do on the CPU.
 */
GN_API gn_status gn_dlpack_follow(gn_tensor *tensor, void *handle) GN_NODISCARD;

/* The handle of the calling thread's current stream on a device; NULL on the CPU. */
GN_API gn_status gn_dlpack_current_stream(int type, int index, void **handle) GN_NODISCARD;

/* ---- the table of functions ------------------------------------------------------------------ */

/*
 * DLPackExchangeAPI: what an extension of Python offers in the attribute __dlpack_c_exchange_api__ of its class,
 * so that others convert its tensors without a call of Python. The functions return 0, or -1 with an exception,
 * but for `allocate`, which calls `fail` with the kind of an exception and its text.
 */
typedef struct gn_exchange_api {
    uint32_t major, minor;            /* the version of DLPack */
    struct gn_exchange_api *previous; /* a table of an older version, or NULL */
    int (*allocate)(void *prototype, struct DLManagedTensorVersioned **managed, void *context,
                    void (*fail)(void *context, const char *kind, const char *message));
    int (*from_python)(void *object, struct DLManagedTensorVersioned **managed);
    int (*to_python)(struct DLManagedTensorVersioned *managed, void **object);
    int (*describe)(void *object, void *description); /* a DLTensor */
    int (*current_stream)(int32_t type, int32_t index, void **handle);
} gn_exchange_api;

#ifdef __cplusplus
}
#endif

#endif
