/*
 * interpret_list.c: list programs without compiling: tier 0. Each entry is an elementwise program by itself. What is reduced is
 * interpreted into memory first.
 */
#include "ops/cuda/interpret.h"

#include "ops/cuda/fixed.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"
#include "ops/list_program.h"

static const struct gni_fixed reductions[GN_REDUCTION_COUNT] = {
#define REDUCTION_ROW(name)                                                                      \
    {                                                                                            \
        "interpret_list_" #name, {gni_text_reductions, gni_text_list},                           \
            "#define LIST_BLOCKS\ntypedef float64 accumulator;\n#define REDUCTION reduce_" #name \
            "\n"                                                                                 \
    }
    [GN_REDUCE_SUM] = REDUCTION_ROW(sum),
    [GN_REDUCE_MAXIMUM] = REDUCTION_ROW(amax),
    [GN_REDUCE_MINIMUM] = REDUCTION_ROW(amin),
#undef REDUCTION_ROW
};

void gni_interpret_list_kernels(struct gni_kernel_list *list)
{
    for (int reduction = 0; reduction < GN_REDUCTION_COUNT; reduction++)
        if (reductions[reduction].word != NULL)
            gni_kernel_list_add_fixed(list, &reductions[reduction], GNI_TYPE(GN_FLOAT64));
}

/* The program of an entry: its elements, and where they are. */
static void program_place(const struct gni_list_program *list, const struct gni_list_entry *entry,
                          struct gni_program *program)
{
    program->ndim = 1;
    program->sizes[0] = program->count = entry->count;
    for (int i = 0; i < program->input_count; i++) {
        if (list->input_places[i] >= 0)
            program->inputs[i].data = entry->data[list->input_places[i]];
        program->inputs[i].strides[0] = list->is_scalar[i] ? 0 : 1;
    }
    for (int i = 0; i < program->output_count && !list->is_reduced; i++) {
        program->outputs[i].data = entry->data[list->output_places[i]];
        program->outputs[i].is_strided = false;
    }
}

/* The arguments of list.cu, with LIST_BLOCKS. */
struct arguments {
    const void *values;
    int64_t count, pack, stretch;
    double *partial;
};

static gn_status entry_reduce(const struct gni_list_program *list,
                              const struct gni_list_entry *entry, const struct gni_program *program,
                              int64_t stretch, double *partial, gn_stream *stream, bool *is_done)
{
    struct gni_storage *values;
    GN_TRY(
        gni_interpret_value(program, list->program->outputs[0].value, GN_FLOAT64, stream, &values));
    *is_done = values != NULL;
    if (values == NULL)
        return GN_OK;
    struct arguments arguments = {.values = values->data,
                                  .count = entry->count,
                                  .pack = list->pack,
                                  .stretch = stretch,
                                  .partial = partial};
    gn_status status =
        gni_fixed_launch(&reductions[list->reduction], GN_FLOAT64,
                         gni_divided_up(entry->count, stretch), 1, &arguments, stream);
    gni_storage_release(values);
    return status;
}

gn_status gni_interpret_list(const struct gni_list_program *list, int begin, int count,
                             int64_t stretch, double *partial, gn_stream *stream, bool *is_done)
{
    struct gni_program program = *list->program;
    struct gni_interpretation interpretation;
    *is_done = !list->is_reduced || reductions[list->reduction].word != NULL;
    for (int e = begin; e < begin + count && *is_done; e++) {
        const struct gni_list_entry *entry = &list->entries[e];
        program_place(list, entry, &program);
        if (list->is_reduced) {
            GN_TRY(entry_reduce(list, entry, &program, stretch, partial, stream, is_done));
            partial += gni_divided_up(entry->count, stretch);
            continue;
        }
        *is_done = gni_interpret_prepare(&program, list->skip, stream->device, &interpretation);
        if (!*is_done && e > begin) /* others have been changed */
            return gni_error(GN_ERROR_OVERFLOW, "%lld elements are more than a kernel can have",
                             (long long)entry->count);
        if (*is_done)
            GN_TRY(gni_interpret_submit(&interpretation, stream));
    }
    return GN_OK;
}
