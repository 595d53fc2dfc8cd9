/*
 * interpret_reduce.c: reductions without compiling: tier 0. The value is interpreted into memory, unless it lies there, and
 * reduce.cu reduces it in the order of the compiled kernel.
 *
 * Sums and products of floating numbers depend on that order, and so have a kernel for each size of packs; all others have
 * the same bits in any order.
 */
#include "ops/cuda/interpret.h"

#include "base/log.h"
#include "jit/kernel.h"
#include "ops/cuda/block_join.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

#include <stdio.h>
#include <string.h>

static bool has_compiler(void)
{
    gn_library_description nvrtc;
    return gn_library_describe(1, &nvrtc) && nvrtc.is_found;
}

struct gni_storage *gni_interpret_memory(int64_t count, gn_dtype dtype, gn_stream *stream)
{
    enum {
        SHARE = 64, /* of the device's memory */
        MEMORY_MOST = 256 << 20,
    };
    struct gni_storage *storage;
    gn_device_properties properties;
    uint64_t nbytes = (uint64_t)count * gni_dtype_size(dtype);
    if (stream->device->ops->properties(stream->device, &properties) != GN_OK)
        return NULL;
    bool is_large = nbytes > MEMORY_MOST || nbytes > properties.total_memory / SHARE;
    if (is_large && has_compiler()) {
        gni_log(GNI_LOG_DEBUG,
                "a program waits for its kernel: the interpreter would need %llu bytes beside",
                (unsigned long long)nbytes);
        return NULL;
    }
    if (gni_storage_create(stream->device, nbytes, stream, &storage) != GN_OK) {
        gni_log(GNI_LOG_DEBUG, "a program waits for its kernel: %s", gn_error_detail());
        return NULL;
    }
    return storage;
}

/* ---- kernels ------------------------------------------------------------------------------------------ */

static const struct {
    const char *macro, *word;
} kinds[] = {[GNI_REDUCE_ROWS] = {"ROWS", "long"},
             [GNI_REDUCE_SHORT] = {"SHORT", "short"},
             [GNI_REDUCE_COLUMNS] = {"COLUMNS", "columns"}};

enum {
    NAME_MOST = 64,
};

/* The kernel for accumulators of a type, and its name. */
static void kernel_text(enum gni_reduce_kind kind, gn_reduction reduction, gn_dtype accumulator,
                        int pack, char name[NAME_MOST], struct gni_builder *text)
{
    const char *type = gni_cuda_type(accumulator);
    snprintf(name, NAME_MOST, "interpret_%s_%s_%s_%d", kinds[kind].word,
             gni_cuda_reduction(reduction), type, pack);
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text,
                      "\n#define NAME %s\n#define REDUCE_%s\n#define REDUCTION reduce_%s\n"
                      "#define PACK %d\n#define TOGETHER %d\n" GNI_BLOCK_JOIN_DEFINITIONS
                      "typedef %s accumulator;\ntypedef %s element_type;\n",
                      name, kinds[kind].macro, gni_cuda_reduction(reduction), pack,
                      pack >= 8 ? 1 : 8 / (2 * pack), type, type);
    gni_builder_add(text, gni_text_interpret_result, strlen(gni_text_interpret_result));
    gni_builder_add(text, gni_text_interpret_reduce, strlen(gni_text_interpret_reduce));
    gni_builder_add(text, gni_text_reductions, strlen(gni_text_reductions));
    gni_builder_add(text, gni_text_block_join, strlen(gni_text_block_join));
    gni_builder_add(text, gni_text_reduce, strlen(gni_text_reduce));
}

static gn_status kernel_get(gn_device *device, enum gni_reduce_kind kind, gn_reduction reduction,
                            gn_dtype accumulator, int pack, struct gni_kernel **kernel)
{
    if (reduction == GN_REDUCE_MEAN)
        reduction = GN_REDUCE_SUM; /* which finish() divides */
    const uint64_t signature[] = {'i', kind, reduction, accumulator, (uint64_t)pack};
    *kernel = gni_kernel_find(device, signature, sizeof signature);
    if (*kernel != NULL)
        return GN_OK;
    char name[NAME_MOST];
    struct gni_builder text = {.text = NULL};
    kernel_text(kind, reduction, accumulator, pack, name, &text);
    return gni_kernel_build_general(device, name, &text, signature, sizeof signature, kernel);
}

/* Whether a reduction has accumulators of a type. */
static bool has_kernel(gn_reduction reduction, gn_dtype accumulator)
{
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        if (reduction != GN_REDUCE_MEAN && !gni_dtype_is_half((gn_dtype)dtype) &&
            gni_reduce_accumulator(reduction, (gn_dtype)dtype) == accumulator)
            return true;
    return false;
}

void gni_interpret_reduce_kernels(struct gni_kernel_list *list)
{
    enum {
        PACK_MOST = 16, /* bytes */
    };
    for (int reduction = 0; reduction < GN_REDUCTION_COUNT; reduction++)
        for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
            for (int kind = GNI_REDUCE_ROWS; kind <= GNI_REDUCE_COLUMNS; kind++)
                for (int pack = 1; pack <= PACK_MOST; pack *= 2) {
                    char name[NAME_MOST];
                    struct gni_builder text = {.text = NULL};
                    bool is_ordered = dtype == GN_FLOAT64 && (reduction == GN_REDUCE_SUM ||
                                                              reduction == GN_REDUCE_PRODUCT);
                    if (!has_kernel((gn_reduction)reduction, (gn_dtype)dtype) ||
                        (pack > 1 && !is_ordered))
                        continue;
                    kernel_text((enum gni_reduce_kind)kind, (gn_reduction)reduction,
                                (gn_dtype)dtype, pack, name, &text);
                    gni_kernel_list_add(list, name, &text);
                }
}

/* ---- a reduction --------------------------------------------------------------------------------------- */

/* The arguments of interpret_reduce.cu. */
struct arguments {
    const void *values;
    int64_t kept, reduced, chunk, parts, slot;
    double divisor;
    void *partial, *result;
    int64_t result_type, is_mean, is_single;
};

static gn_status values_reduce(const struct gni_specialization *specialization,
                               const struct gni_reduce_arguments *reduce, int64_t blocks,
                               gn_dtype accumulator, gn_dtype type, const void *values,
                               gn_stream *stream)
{
    struct gni_kernel *kernel;
    struct gni_storage *partial = NULL;
    struct arguments arguments = {.values = values,
                                  .kept = reduce->kept,
                                  .reduced = reduce->reduced,
                                  .chunk = reduce->chunk,
                                  .parts = reduce->parts,
                                  .slot = reduce->slot,
                                  .divisor = reduce->divisor,
                                  .result = reduce->result,
                                  .result_type = specialization->result,
                                  .is_mean = specialization->reduction == GN_REDUCE_MEAN,
                                  .is_single = accumulator == GN_FLOAT64 && type == GN_FLOAT32};
    GN_TRY(kernel_get(stream->device, specialization->kind, specialization->reduction, accumulator,
                      specialization->pack, &kernel));
    if (reduce->parts > 1) {
        size_t nbytes = (size_t)(reduce->parts * reduce->kept) * gni_dtype_size(accumulator);
        GN_TRY(gni_storage_create(stream->device, nbytes, stream, &partial));
        arguments.partial = partial->data;
    }
    void *addresses[] = {&arguments};
    const struct gni_launch launch = {.grid = {(unsigned)blocks, (unsigned)reduce->parts, 1},
                                      .block = {GNI_CUDA_BLOCK, 1, 1},
                                      .arguments = addresses,
                                      .argument_bytes = sizeof arguments,
                                      .waits = true};
    gn_status status = gni_kernel_launch(kernel, stream, &launch);
    gni_storage_release(partial);
    return status;
}

gn_status gni_interpret_value(const struct gni_program *program, short value, gn_dtype dtype,
                              gn_stream *stream, struct gni_storage **values)
{
    struct gni_program copy = *program;
    bool is_done = false;
    *values = NULL;
    if (copy.count == 0 || copy.step_count == GNI_PROGRAM_STEPS_MOST)
        return GN_OK;
    struct gni_storage *storage = gni_interpret_memory(copy.count, dtype, stream);
    if (storage == NULL)
        return GN_OK;
    copy.outputs[0] = (struct gni_output){
        .value = gni_program_convert(&copy, value, dtype), .dtype = dtype, .data = storage->data};
    copy.output_count = 1;
    gn_status status = gni_interpret(&copy, stream, &is_done);
    if (is_done && status == GN_OK)
        *values = storage;
    else
        gni_storage_release(storage);
    return status;
}

gn_status gni_interpret_values(const struct gni_specialization *specialization, gn_dtype dtype,
                               gn_stream *stream, struct gni_storage **storage, const void **values)
{
    short value = specialization->value;
    const struct gni_program *program = specialization->program;
    bool is_there = value < program->input_count && !specialization->is_strided &&
                    specialization->inputs[value] == GNI_ACCESS_CONTIGUOUS &&
                    program->inputs[value].held == dtype;
    *storage = NULL;
    *values = is_there ? program->inputs[value].data : NULL;
    if (is_there)
        return GN_OK;
    GN_TRY(gni_interpret_value(program, value, dtype, stream, storage));
    *values = *storage != NULL ? (*storage)->data : NULL;
    return GN_OK;
}

gn_status gni_interpret_reduce(const struct gni_specialization *specialization,
                               const struct gni_reduce_arguments *reduce, int64_t blocks,
                               gn_stream *stream, bool *is_done)
{
    gn_dtype held = gni_program_held(specialization->program, specialization->value);
    gn_dtype accumulator = gni_reduce_accumulator(specialization->reduction, held);
    gn_dtype type = accumulator == GN_FLOAT64 && held == GN_FLOAT32 ? held : accumulator;
    struct gni_storage *storage;
    const void *values;
    *is_done = false;
    GN_TRY(gni_interpret_values(specialization, type, stream, &storage, &values));
    if (values == NULL)
        return GN_OK;
    *is_done = true;
    gn_status status =
        values_reduce(specialization, reduce, blocks, accumulator, type, values, stream);
    gni_storage_release(storage);
    return status;
}
