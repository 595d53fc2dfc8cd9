#include "ops/cuda/fixed.h"

#include "jit/kernel.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/kernel_texts.h"

#include <stdio.h>
#include <string.h>

enum {
    GRID_X_MOST = INT32_MAX,
    GRID_Y_MOST = 65535,
};

void gni_fixed_text(const struct gni_fixed *fixed, gn_dtype dtype, char name[GNI_FIXED_NAME_MOST],
                    struct gni_builder *text)
{
    (void)snprintf(name, GNI_FIXED_NAME_MOST, "%s_%s", fixed->word, gni_dtypes[dtype].name);
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text, "\n#define NAME %s\ntypedef %s element;\ntypedef %s key;\n%s\n", name,
                      gni_cuda_type(dtype), gni_dtype_size(dtype) <= 4 ? "unsigned" : "uint64",
                      fixed->definitions != NULL ? fixed->definitions : "");
    for (int i = 0; i < 2 && fixed->texts[i] != NULL; i++)
        gni_builder_add(text, fixed->texts[i], strlen(fixed->texts[i]));
}

/* A kernel of this process is found by the address of its word. */
gn_status gni_fixed_get(const struct gni_fixed *fixed, gn_dtype dtype, gn_device *device,
                        struct gni_kernel **kernel)
{
    const uint64_t signature[] = {'f', (uintptr_t)fixed->word, (uint64_t)dtype};
    *kernel = gni_kernel_find(device, signature, sizeof signature);
    if (*kernel != NULL)
        return GN_OK;
    char name[GNI_FIXED_NAME_MOST];
    struct gni_builder text = {.text = NULL};
    gni_fixed_text(fixed, dtype, name, &text);
    return gni_kernel_build_general(device, name, &text, signature, sizeof signature, kernel);
}

gn_status gni_fixed_submit(const struct gni_fixed *fixed, gn_dtype dtype, int64_t grid_x,
                           int64_t grid_y, void *arguments, size_t argument_bytes,
                           gn_stream *stream)
{
    struct gni_kernel *kernel;
    if (dtype == GN_BOOL) /* the same in memory */
        dtype = GN_UINT8;
    if (grid_x > GRID_X_MOST || grid_y > GRID_Y_MOST)
        return gni_error(GN_ERROR_OVERFLOW,
                         "%s: %lld x %lld blocks are more than a kernel can have", fixed->word,
                         (long long)grid_x, (long long)grid_y);
    GN_TRY(gni_fixed_get(fixed, dtype, stream->device, &kernel));
    void *addresses[] = {arguments};
    struct gni_launch launch = {.grid = {(unsigned)grid_x, (unsigned)grid_y, 1},
                                .block = {GNI_FIXED_THREADS, 1, 1},
                                .arguments = addresses,
                                .argument_bytes = argument_bytes,
                                .waits = true};
    return gni_kernel_launch(kernel, stream, &launch);
}
