/*
 * row_sums.c: sums of rows that are named, and their largest elements: what the backend's slots are given.
 */
#include "ops/row_sums.h"

#include "ops/backend.h"
#include "ops/recorder.h"

/* The tensor, contiguous and computed. */
static gn_tensor *computed(struct gni_scope *s, gn_tensor *x)
{
    gn_tensor *whole = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gni_tensor_compact(x, &whole);
    whole = gni_scope_keep(s, status, whole);
    if (gni_scope_is_ok(s))
        s->status = gni_tensor_flush(whole);
    return whole;
}

static gn_status row_sums(gn_tensor *source, gn_tensor *factors, gn_tensor *from, gn_tensor *to,
                          int64_t rows, gn_tensor **result)
{
    struct gni_scope s = {0};
    gn_dtype dtype = gni_dtypes[source->dtype].compute;
    source = computed(&s, source);
    from = computed(&s, from);
    to = computed(&s, to);
    if (factors != NULL)
        factors = computed(&s, gni_cast(&s, factors, dtype));
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    const int64_t sizes[] = {rows, source->sizes[1]};
    gn_tensor *made = gni_empty(&s, dtype, 2, sizes, source->device);
    if (gni_scope_is_ok(&s) && made->count > 0)
        gni_backend_get(source->device)->row_sums(source, factors, from, to, made);
    return gni_scope_end(&s, made, result);
}

gn_status gni_row_sums(gn_tensor *source, gn_tensor *factors, gn_tensor *from, gn_tensor *to,
                       int64_t rows, gn_tensor **result)
{
    const gn_operand inputs[] = {
        {.tensor = source}, {.tensor = factors}, {.tensor = from}, {.tensor = to}};
    bool is_taped = gni_tape_enter_any(2, inputs);
    gn_status status = row_sums(source, factors, from, to, rows, result);
    if (!is_taped)
        return status;
    return gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_ROW_SUMS,
                                                          .name = "row_sums",
                                                          .input_count = 4,
                                                          .inputs = inputs,
                                                          .result_count = 1,
                                                          .results = result});
}

gn_status gni_row_maxima(gn_tensor *source, gn_tensor *from, gn_tensor *to, int64_t rows,
                         gn_tensor **chosen)
{
    struct gni_scope s = {0};
    bool is_taped = gni_tape_enter(source);
    source = computed(&s, source);
    from = computed(&s, from);
    to = computed(&s, to);
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(&s)) {
        const int64_t sizes[] = {rows, source->sizes[1]};
        made = gni_empty(&s, GN_INT64, 2, sizes, source->device);
    }
    if (gni_scope_is_ok(&s) && made->count > 0)
        gni_backend_get(source->device)->row_maxima(source, from, to, made);
    gni_tape_is_paused &= !is_taped;
    return gni_scope_end(&s, made, chosen);
}
