/*
 * test_compile_exit.c: a process ends while NVRTC compiles in the background. NVRTC has exit handlers of its own, behind which
 * it must not run: the process would crash. The real NVRTC needs no GPU: a device that loads nothing stands in for one. Exits
 * with 77 where there is no NVRTC.
 */
#include "child.h"

#include "device/cuda/library.h"
#include "device/device.h"
#include "jit/background.h"
#include "jit/kernel.h"

#include <time.h>

enum {
    KERNELS = 6,
    MOMENTS = 8,
    STEP_MS = 25,
};

static gn_status stand_in_check(gn_device *device)
{
    (void)device;
    return GN_OK;
}

static gn_status stand_in_properties(gn_device *device, gn_device_properties *properties)
{
    (void)device;
    *properties = (gn_device_properties){.major = 9, .minor = 0};
    return GN_OK;
}

static gn_status stand_in_load(gn_device *device, const void *image, struct gni_module *module)
{
    (void)device, (void)image, (void)module;
    return GN_ERROR_SHUTDOWN;
}

static const struct gni_device_ops stand_in_ops = {
    .name = "cuda",
    .is_numbered = true,
    .check = stand_in_check,
    .properties = stand_in_properties,
    .module_load = stand_in_load,
};

static gn_device stand_in = {.ops = &stand_in_ops, .type = GN_DEVICE_CUDA};

static void kernels_request(int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        struct gni_builder text = {.text = NULL};
        (void)snprintf(name, sizeof name, "exit_%d", i);
        gni_builder_print(&text,
                          "extern \"C\" __global__ void %s(float *x)\n"
                          "{\n"
                          "    float a = x[threadIdx.x];\n"
                          "    for (int i = 0; i < 50; i++)\n"
                          "        a = sinf(a) + cosf(a) * tanf(a) + powf(a, %d);\n"
                          "    *x = a;\n"
                          "}\n",
                          name, i + 3);
        gni_kernel_request(&stand_in, name, &text, name, strlen(name), 1, 0);
    }
}

static void moment_wait(const int *moment)
{
    struct timespec time = {.tv_nsec = (long)*moment * STEP_MS * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Once NVRTC is at work, exit() sees to it. */
static void exit_body(void *context)
{
    kernels_request(1);
    CHECK(gni_background_wait(UINT64_MAX));
    kernels_request(KERNELS);
    moment_wait(context);
    exit(check_failures);
}

/* Some moments lie in the loading of NVRTC, some in its first compilation, some later. */
static void stop_body(void *context)
{
    kernels_request(KERNELS);
    moment_wait(context);
    gn_kernel_stop();
    exit(0);
}

static void moments_try(void (*body)(void *moment))
{
    static struct child_result child;
    for (int moment = 0; moment < MOMENTS; moment++) {
        child_run(body, &moment, &child);
        child_is_ok(&child);
    }
}

static void test_exit(void)
{
    moments_try(exit_body);
}

static void test_stop(void)
{
    moments_try(stop_body);
}

static void library_body(void *context)
{
    const struct gni_nvrtc *nvrtc;
    (void)context;
    check_exit(gni_nvrtc_open(&nvrtc) == GN_OK ? 0 : CHECK_SKIPPED);
}

int main(void)
{
    static struct child_result child;
    (void)setenv("GENESIS_CUDA_DRIVER", "/no/such/driver.so", 1);
    (void)setenv("GENESIS_KERNEL_CACHE_DIR", "/dev/null", 1); /* nothing is found there */
    (void)setenv("GENESIS_COMPILE_THREADS", "2", 1);
    child_run(library_body, NULL, &child); /* this process does not load it, since it forks */
    if (child.exit_code == CHECK_SKIPPED) {
        printf("skipped: there is no NVRTC\n");
        return CHECK_SKIPPED;
    }
    RUN(test_exit);
    RUN(test_stop);
    return check_result();
}
