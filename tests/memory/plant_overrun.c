/*
 * plant_overrun.c: a mistake that a pool hides from compute-sanitizer unless its blocks are marked.
 *
 * Two blocks of 1000 bytes from one page of the pool; a kernel writes one float behind the first, which
 * is memory of the same segment. By itself the program notices nothing and exits with 0. Under
 *
 *     GENESIS_CUDA_ALLOCATOR=pool compute-sanitizer --tool memcheck --error-exitcode 9 \
 *         --destroy-on-device-error kernel plant_overrun
 *
 * (with --nvtx yes for CUDA 11.3 to 11.8) it must exit with 9, after a report of an "Invalid __global__
 * write of size 4 bytes". Without the last option the tool ends the context as well, and the program's
 * own checks fail. With the argument "clean" the kernel writes the first block's last float, and
 * nothing may be reported. Exits with 77 where there is no GPU or no NVRTC.
 */
#include "check.h"

#include "device/cuda/cuda.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"

enum {
    BLOCK_BYTES = 1000,
};

static gn_device *device;

static const char kernel_text[] =
    "extern \"C\" __global__ void write_one(float *numbers, unsigned index)\n"
    "{\n"
    "    numbers[index] = 1;\n"
    "}\n";

/* The caller frees the image; NULL where there is no NVRTC. */
static char *image_compile(void)
{
    const struct gni_nvrtc *nvrtc;
    if (gni_nvrtc_open(&nvrtc) != GN_OK)
        return NULL;
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    char architecture[32];
    snprintf(architecture, sizeof architecture, "-arch=sm_%d%d", properties.major,
             properties.minor);
    const char *options[] = {architecture};
    const struct gni_nvrtc_functions *functions = &nvrtc->functions;
    nvrtcProgram program;
    size_t nbytes = 0;
    CHECK(functions->nvrtcCreateProgram(&program, kernel_text, "plant_overrun.cu", 0, NULL, NULL) ==
          NVRTC_SUCCESS);
    CHECK(functions->nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS);
    CHECK(functions->nvrtcGetCUBINSize(program, &nbytes) == NVRTC_SUCCESS && nbytes > 0);
    char *image = malloc(nbytes);
    CHECK(functions->nvrtcGetCUBIN(program, image) == NVRTC_SUCCESS);
    CHECK(functions->nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
    return image;
}

static void kernel_run(const char *image, void *block, unsigned index, gn_stream *stream)
{
    const struct gni_device_ops *ops = device->ops;
    struct gni_module module;
    struct gni_function write_one;
    CHECK_OK(ops->module_load(device, image, &module));
    CHECK_OK(ops->function_find(&module, "write_one", &write_one));
    void *arguments[] = {&block, &index};
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = arguments};
    CHECK_OK(ops->function_launch(&write_one, stream, &launch));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_OK(ops->module_unload(&module));
}

int main(int argc, char **argv)
{
    bool is_clean = argc > 1 && strcmp(argv[1], "clean") == 0;
    gn_memory_manager *manager;
    gn_stream *stream;
    void *first, *second;
    char *image = NULL;
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK || (image = image_compile()) == NULL) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_stream_get_default(device, &stream));
    CHECK_OK(gn_memory_alloc(manager, BLOCK_BYTES, stream, &first));
    CHECK_OK(gn_memory_alloc(manager, BLOCK_BYTES, stream, &second));
    printf("policy %s, blocks at %p and %p\n", gn_memory_manager_get_policy(manager), first,
           second);
    unsigned count = BLOCK_BYTES / sizeof(float);
    kernel_run(image, first, is_clean ? count - 1 : count, stream);
    CHECK_OK(gn_memory_free(manager, first));
    CHECK_OK(gn_memory_free(manager, second));
    CHECK_OK(gn_shutdown(NULL));
    free(image);
    return check_result();
}
