/*
 * genesis/adapter.h: the memory managers behind other libraries' hooks for allocators.
 *
 * The functions have the plain C types that such hooks pass: sizes, addresses, the index of a CUDA device,
 * and the handle of a CUDA stream (NULL: the default stream). They are what genesis.adapters gives to PyTorch,
 * CuPy and Numba, and may be given to others.
 *
 * A failed allocation is told to the function of gn_adapter_set_failure(), which need not return, and is NULL
 * if it does. Other failures are logged: a hook has no way to say more.
 *
 * Threads: every function may be called from any thread.
 */
#ifndef GENESIS_ADAPTER_H
#define GENESIS_ADAPTER_H

#include "genesis/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the devices, so that the first allocation need not. */
GN_API void gn_adapter_init(int device_count);

/*
 * Starts a device for a library that has other processes open its memory by the driver's handles
 * (cuIpcGetMemHandle), which there are only for memory that the driver allocated: the manager gets the policy
 * `pool`. One that was started before keeps its policy, and GENESIS_CUDA_ALLOCATOR goes first.
 */
GN_API void gn_adapter_init_shareable(int device);

/* Memory of a device for a stream. 0 bytes have an address, too. */
GN_API void *gn_adapter_alloc(size_t nbytes, int device, void *stream);

/* Gives it back in the order of the stream that it was allocated for; the rest is for checking: a size
 * other than the one that was asked for is logged, and the block is freed all the same. NULL is allowed. */
GN_API void gn_adapter_free(void *pointer, size_t nbytes, int device, void *stream);

/* The block is used on another stream, too: its free waits for what is there at that moment. */
GN_API void gn_adapter_record_stream(void *pointer, void *stream);

/* Page-locked memory for a device, and back. */
GN_API void *gn_adapter_alloc_pinned(size_t nbytes, int device);
GN_API void gn_adapter_free_pinned(void *pointer, int device);

/* Gives idle memory of all devices back to the driver. */
GN_API void gn_adapter_reset(void);

/* What this process may take of a device, 0 to 1. */
GN_API void gn_adapter_set_fraction(double fraction, int device);

/* Where the block begins that an address lies in, and (`nbytes` may be NULL) how long it is; NULL if none
 * does. */
GN_API void *gn_adapter_base(void *pointer, size_t *nbytes);

/* Called in the thread whose allocation failed, with why. It may leave by an exception. NULL: nobody. */
typedef void (*gn_adapter_failure)(bool is_out_of_memory, const char *message);
GN_API void gn_adapter_set_failure(gn_adapter_failure failure);

/*
 * A failure function for PyTorch: throws c10::OutOfMemoryError, which Python sees as torch.OutOfMemoryError,
 * or c10::Error (RuntimeError) for the rest. `path` is that of the libc10_cuda.so which is loaded. Returns
 * NULL where it does not have what this needs.
 */
GN_API gn_adapter_failure gn_adapter_torch_failure(const char *path);

#ifdef __cplusplus
}
#endif

#endif
