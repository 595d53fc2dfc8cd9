/*
 * launch_floor.c: what a launch costs when nothing but the driver is asked: a library for bench_ops_gpu.py, which is
 * loaded into the same process as those it measures.
 */
#include "device/cuda/driver_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

typedef CUresult load_function(CUmodule *, const void *);
typedef CUresult find_function(CUfunction *, CUmodule, const char *);
typedef CUresult launch_function(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, CUstream, void **, void **);
typedef CUresult wait_function(void);

/* Three addresses and a count, as an addition has. */
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry nothing(.param .u64 x, .param .u64 y, .param .u64 z, "
                           ".param .u64 n)\n{\n    ret;\n}\n";

static void *symbol(void *library, const char *name)
{
    return library != NULL ? dlsym(library, name) : NULL;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double launch_floor(int count);

/* Seconds of one launch, of `count` and a synchronize at their end, in the context that is current; negative: none
 * could be made. */
__attribute__((visibility("default"))) double launch_floor(int count)
{
    static CUfunction function;
    static launch_function *launch;
    static wait_function *wait;
    if (function == NULL) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        load_function *load = (load_function *)symbol(library, "cuModuleLoadData");
        find_function *find = (find_function *)symbol(library, "cuModuleGetFunction");
        launch = (launch_function *)symbol(library, "cuLaunchKernel");
        wait = (wait_function *)symbol(library, "cuCtxSynchronize");
        CUmodule module;
        if (load == NULL || find == NULL || launch == NULL || wait == NULL ||
            load(&module, text) != CUDA_SUCCESS ||
            find(&function, module, "nothing") != CUDA_SUCCESS)
            return -1;
    }
    unsigned long long numbers[4] = {0};
    void *arguments[] = {&numbers[0], &numbers[1], &numbers[2], &numbers[3]};
    (void)wait();
    double begin = seconds();
    for (int i = 0; i < count; i++)
        if (launch(function, 1, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL) != CUDA_SUCCESS)
            return -1;
    (void)wait();
    return (seconds() - begin) / count;
}
