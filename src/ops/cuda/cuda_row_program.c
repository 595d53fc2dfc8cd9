/*
 * cuda_row_program.c: row programs on a GPU: a kernel for each (row_kernel.h), and one launch.
 *
 * Few long rows are reduced in parts by several blocks each (cuda_run.c): whether rows are few and long follows from the shape
 * alone.
 */
#include "jit/kernel.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/row_kernel.h"
#include "ops/recorder.h"

enum {
    GRID_MOST = 1 << 30,
    SHORT_COLUMNS = 8192, /* of rows that blocks have whole, however few they are */
    ROWS_ENOUGH = 512,    /* rows that fill a GPU with a block each */
};

bool gni_cuda_rows_fit(int64_t rows, int64_t columns)
{
    return columns <= SHORT_COLUMNS || (rows > ROWS_ENOUGH && columns <= GNI_ROW_COLUMNS_MOST);
}

static gn_status kernel_get(gn_device *device, const struct gni_row_kernel *kernel,
                            struct gni_kernel **found)
{
    unsigned char signature[GNI_CUDA_SIGNATURE_MOST];
    char name[160];
    size_t size = gni_row_kernel_sign(kernel, signature);
    *found = gni_kernel_find(device, signature, size);
    if (*found != NULL)
        return GN_OK;
    struct gni_builder text = {.text = NULL};
    gni_row_kernel_name(kernel, name, sizeof name);
    gni_row_kernel_text(kernel, name, &text);
    void *state = gni_wait_begin();
    gn_status status = gni_kernel_build(device, name, &text, signature, size, found);
    gni_wait_end(state);
    return status;
}

gn_status gni_cuda_run_rows(struct gni_program *program, gn_stream *stream)
{
    struct gni_row_kernel kernel; /* large, and all that is read of it is set below */
    uint64_t arguments[GNI_ROW_ARGUMENTS_MOST];
    struct gni_kernel *compiled;
    gni_row_kernel_make(&kernel, program);
    int64_t rows = program->count / program->columns;
    int64_t blocks = gni_divided_up(rows, gni_row_kernel_rows(&kernel));
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld rows are more than a kernel can have",
                         (long long)rows);
    GN_TRY(kernel_get(stream->device, &kernel, &compiled));
    int words = gni_row_kernel_arguments(&kernel, arguments);
    void *addresses[] = {arguments};
    struct gni_launch launch = {.grid = {(unsigned)blocks, 1, 1},
                                .block = {(unsigned)kernel.threads, 1, 1},
                                .arguments = addresses,
                                .argument_bytes = (size_t)words * sizeof *arguments,
                                .waits = true};
    return gni_kernel_launch(compiled, stream, &launch);
}
