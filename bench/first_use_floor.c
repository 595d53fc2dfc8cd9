/*
 * first_use_floor.c: the least that a program on a GPU takes: it starts the driver, makes the context, and sets one word.
 * bench_first_use.py measures the whole process.
 */
#include "device/cuda/driver_api.h"

#include <dlfcn.h>
#include <stdio.h>

typedef CUresult init_function(unsigned);
typedef CUresult device_function(CUdevice *, int);
typedef CUresult context_function(CUcontext *, CUdevice);
typedef CUresult current_function(CUcontext);
typedef CUresult alloc_function(CUdeviceptr *, size_t);
typedef CUresult set_function(CUdeviceptr, unsigned, size_t);
typedef CUresult copy_function(void *, CUdeviceptr, size_t);

int main(int count, char **arguments)
{
    void *library = dlopen(count > 1 ? arguments[1] : "libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        puts(dlerror());
        return 1;
    }
    init_function *init = (init_function *)dlsym(library, "cuInit");
    device_function *device_get = (device_function *)dlsym(library, "cuDeviceGet");
    context_function *retain = (context_function *)dlsym(library, "cuDevicePrimaryCtxRetain");
    current_function *set_current = (current_function *)dlsym(library, "cuCtxSetCurrent");
    alloc_function *alloc = (alloc_function *)dlsym(library, "cuMemAlloc_v2");
    set_function *set = (set_function *)dlsym(library, "cuMemsetD32_v2");
    copy_function *copy = (copy_function *)dlsym(library, "cuMemcpyDtoH_v2");
    CUdevice device;
    CUcontext context;
    CUdeviceptr word;
    unsigned value = 0;
    if (init == NULL || device_get == NULL || retain == NULL || set_current == NULL ||
        alloc == NULL || set == NULL || copy == NULL || init(0) != CUDA_SUCCESS ||
        device_get(&device, 0) != CUDA_SUCCESS || retain(&context, device) != CUDA_SUCCESS ||
        set_current(context) != CUDA_SUCCESS || alloc(&word, 4) != CUDA_SUCCESS ||
        set(word, 42, 1) != CUDA_SUCCESS || copy(&value, word, 4) != CUDA_SUCCESS || value != 42)
        return 1;
    return 0;
}
