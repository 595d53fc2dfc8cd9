/*
 * cuda_row_program.c: row programs on a GPU: a kernel for each (row_kernel.h), and one launch.
 *
 * Few long rows are reduced in parts by several blocks each (cuda_run.c): whether rows are few and long follows from the shape
 * alone.
 */
#include "jit/kernel.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/interpret.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"
#include "ops/cuda/program_kernel.h"
#include "ops/cuda/row_kernel.h"
#include "ops/recorder.h"

enum {
    GRID_MOST = 1 << 30,
    SHORT_COLUMNS = 8192,     /* of rows that blocks have whole, however few they are */
    ROWS_ENOUGH = 512,        /* rows that fill a GPU with a block each */
    SUMMED_ROWS_LEAST = 1024, /* whose columns are summed in parts of rows */
    SUMS_MOST = 8,            /* columns.cu */
};

bool gni_cuda_rows_fit(int64_t rows, int64_t columns)
{
    return columns <= SHORT_COLUMNS || (rows > ROWS_ENOUGH && columns <= GNI_ROW_COLUMNS_MOST);
}

bool gni_cuda_columns_fit(int64_t rows, int64_t columns)
{
    return rows >= SUMMED_ROWS_LEAST && columns >= 64 && columns <= SHORT_COLUMNS;
}

static void kernel_write(const void *context, char name[GNI_PROGRAM_KERNEL_NAME],
                         struct gni_builder *text)
{
    gni_row_kernel_name(context, name, GNI_PROGRAM_KERNEL_NAME);
    gni_row_kernel_text(context, name, text);
}

/* What columns.cu is told. */
struct columns_arguments {
    const void *partial;
    int64_t parts, sums, columns;
    void *result[SUMS_MOST];
    int64_t kind[SUMS_MOST];
};

static int64_t sum_kind(const struct gni_output *output)
{
    if (output->dtype == GN_FLOAT32)
        return 0;
    return (output->dtype == GN_FLOAT16 ? 1 : 2) + (output->is_narrowed ? 2 : 0);
}

static const struct gni_fixed columns = {"columns", {gni_text_columns, NULL}, NULL};

void gni_cuda_row_program_list(struct gni_kernel_list *list)
{
    gni_kernel_list_add_fixed(list, &columns, GNI_TYPE(GN_FLOAT32));
}

/* Adds the sums of the parts. */
static gn_status sums_join(const struct gni_row_kernel *kernel, const void *partial,
                           gn_stream *stream)
{
    const struct gni_program *program = kernel->program;
    struct columns_arguments arguments = {
        .partial = partial, .parts = gni_row_kernel_blocks(kernel), .columns = program->columns};
    gni_assert(kernel->sum_count <= SUMS_MOST);
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        if (!output->is_column)
            continue;
        arguments.result[arguments.sums] = output->data;
        arguments.kind[arguments.sums++] = sum_kind(output);
    }
    return gni_fixed_launch(&columns, GN_FLOAT32, gni_divided_up(program->columns, 32),
                            arguments.sums, &arguments, stream);
}

static gn_status kernel_launch(const struct gni_row_kernel *kernel, void *partial,
                               gn_stream *stream)
{
    uint64_t arguments[GNI_ROW_ARGUMENTS_MOST];
    struct gni_kernel *compiled;
    int64_t blocks = gni_row_kernel_blocks(kernel);
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld rows are more than a kernel can have",
                         (long long)(kernel->program->count / kernel->program->columns));
    unsigned char signature[GNI_CUDA_SIGNATURE_MOST];
    const struct gni_program_kernel wanted = {.program = kernel->program,
                                              .signature = signature,
                                              .signature_size =
                                                  gni_row_kernel_sign(kernel, signature),
                                              .write = kernel_write,
                                              .context = kernel};
    GN_TRY(gni_program_kernel_find(stream, &wanted, &compiled));
    if (compiled == NULL) {
        bool is_done;
        GN_TRY(gni_interpret_rows(kernel, partial, stream, &is_done));
        if (is_done)
            return GN_OK;
        GN_TRY(gni_program_kernel_build(stream->device, &wanted, &compiled));
    }
    int words = gni_row_kernel_arguments(kernel, partial, arguments);
    void *addresses[] = {arguments};
    struct gni_launch launch = {.grid = {(unsigned)blocks, 1, 1},
                                .block = {(unsigned)kernel->threads, 1, 1},
                                .arguments = addresses,
                                .argument_bytes = (size_t)words * sizeof *arguments,
                                .waits = true};
    return gni_kernel_launch(compiled, stream, &launch);
}

gn_status gni_cuda_run_rows(struct gni_program *program, gn_stream *stream)
{
    struct gni_row_kernel kernel; /* large, and all that is read of it is set below */
    struct gni_storage *partial = NULL;
    gni_row_kernel_make(&kernel, program);
    if (kernel.sum_count == 0)
        return kernel_launch(&kernel, NULL, stream);
    size_t nbytes = (size_t)(gni_row_kernel_blocks(&kernel) * kernel.sum_count * program->columns) *
                    sizeof(float);
    GN_TRY(gni_storage_create(stream->device, nbytes, stream, &partial));
    gn_status status = kernel_launch(&kernel, partial->data, stream);
    if (status == GN_OK)
        status = sums_join(&kernel, partial->data, stream);
    gni_storage_release(partial);
    return status;
}
