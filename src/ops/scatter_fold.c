/*
 * scatter_fold.c: what the backend's slot `fold` is given, and the tape.
 */
#include "ops/scatter_fold.h"

#include "ops/backend.h"
#include "ops/recorder.h"

bool gni_can_scatter_fold(gn_op op, const gn_tensor *rows, const gn_tensor *values)
{
    return gni_backend_get(rows->device)->fold != NULL && values->device == rows->device &&
           (op != GN_OP_MULTIPLY || (!gni_is_taped(rows) && !gni_is_taped(values)));
}

static gn_status fold(gn_op op, gn_tensor *rows, gn_tensor *values, gn_tensor *places,
                      bool has_self, gn_tensor **result)
{
    struct gni_scope s = {0};
    gn_dtype dtype = rows->dtype;
    gn_tensor *made = gni_wide(&s, rows), *all[] = {made, places, gni_wide(&s, values)};
    if (made == rows)
        all[0] = gni_clone(&s, rows);
    for (int i = 0; i < 3 && gni_scope_is_ok(&s); i++) {
        gn_tensor *whole = NULL;
        s.status = gni_tensor_compact(all[i], &whole);
        all[i] = gni_scope_keep(&s, s.status, whole);
        if (gni_scope_is_ok(&s))
            s.status = gni_tensor_flush(all[i]);
    }
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    gni_backend_get(rows->device)->fold(op, all[0], all[1], all[2], has_self);
    return gni_scope_end(&s, gni_cast(&s, all[0], dtype), result);
}

gn_status gni_scatter_fold(gn_op op, gn_tensor *rows, gn_tensor *values, gn_tensor *places,
                           bool has_self, gn_tensor **result)
{
    const gn_operand inputs[] = {{.tensor = rows}, {.tensor = values}, {.tensor = places}};
    const struct gni_fold_details details = {.has_self = has_self};
    bool is_taped = gni_tape_enter_any(2, inputs);
    gn_status status = fold(op, rows, values, places, has_self, result);
    if (!is_taped)
        return status;
    return gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_FOLD,
                                                          .name = "scatter_reduce",
                                                          .input_count = 3,
                                                          .inputs = inputs,
                                                          .result_count = 1,
                                                          .results = result,
                                                          .details = &details,
                                                          .detail_bytes = sizeof details});
}
