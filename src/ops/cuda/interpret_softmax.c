/*
 * interpret_softmax.c: softmax without compiling: tier 0. The value is interpreted into memory, as it is computed, and
 * interpret_softmax.cu goes on from there.
 */
#include "ops/cuda/interpret.h"

#include "ops/cuda/fixed.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

/* The arguments of interpret_softmax.cu. */
struct arguments {
    const void *values;
    int64_t kept, reduced, lanes, pack, together, is_held, is_log;
    void *result;
    int64_t result_type;
};

static const struct gni_fixed kernels[] = {
    {"interpret_softmax_float",
     {gni_text_interpret_result, gni_text_interpret_softmax},
     "typedef float compute;\n"},
    {"interpret_softmax_double",
     {gni_text_interpret_result, gni_text_interpret_softmax},
     "typedef double compute;\n"},
};

void gni_interpret_softmax_kernels(struct gni_kernel_list *list)
{
    gni_kernel_list_add_fixed(list, &kernels[0], GNI_TYPE(GN_FLOAT32));
    gni_kernel_list_add_fixed(list, &kernels[1], GNI_TYPE(GN_FLOAT64));
}

static gn_status values_softmax(const struct gni_specialization *specialization,
                                const struct gni_reduce_arguments *reduce, unsigned blocks,
                                bool is_double, const void *values, gn_stream *stream)
{
    struct arguments arguments = {.values = values,
                                  .kept = reduce->kept,
                                  .reduced = reduce->reduced,
                                  .lanes = specialization->lanes,
                                  .pack = specialization->pack,
                                  .together = specialization->pack >= 8   ? 2
                                              : specialization->pack >= 2 ? 4
                                                                          : 8,
                                  .is_held = specialization->steps > 0,
                                  .is_log = specialization->is_log,
                                  .result = reduce->result,
                                  .result_type = specialization->result};
    struct gni_kernel *kernel;
    GN_TRY(gni_fixed_get(&kernels[is_double], is_double ? GN_FLOAT64 : GN_FLOAT32, stream->device,
                         &kernel));
    void *addresses[] = {&arguments};
    const struct gni_launch launch = {.grid = {blocks, 1, 1},
                                      .block = {(unsigned)specialization->threads, 1, 1},
                                      .arguments = addresses,
                                      .argument_bytes = sizeof arguments,
                                      .waits = true};
    return gni_kernel_launch(kernel, stream, &launch);
}

gn_status gni_interpret_softmax(const struct gni_specialization *specialization,
                                const struct gni_reduce_arguments *reduce, unsigned blocks,
                                gn_stream *stream, bool *is_done)
{
    gn_dtype compute = gni_dtypes[specialization->result].compute;
    struct gni_storage *storage;
    const void *values;
    *is_done = false;
    GN_TRY(gni_interpret_values(specialization, compute, stream, &storage, &values));
    if (values == NULL)
        return GN_OK;
    *is_done = true;
    gn_status status =
        values_softmax(specialization, reduce, blocks, compute == GN_FLOAT64, values, stream);
    gni_storage_release(storage);
    return status;
}
