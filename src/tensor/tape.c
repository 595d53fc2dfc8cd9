/*
 * tape.c: the pause of the tape, and the table that src/autograd fills in.
 */
#include "tensor/tape.h"

#include "base/error.h"
#include "base/host.h"

#include <stddef.h>

struct gni_tape gni_tape;
_Thread_local bool gni_tape_is_paused;
atomic_bool gni_aliases_were_written;

/* The set is made with the first view that may be written to on the tape. Without memory there is none: such a write is
 * refused then. */
void gni_tensor_share_apart(const gn_tensor *tensor, gn_tensor *view)
{
    (void)view;
    gni_storage_hold(gni_tensor_storage(tensor));
    if (tensor->aliases != NULL)
        atomic_fetch_add(&tensor->aliases->references, 1);
}

bool gni_tape_enter_any(int count, const gn_operand *operands)
{
    for (int i = 0; i < count; i++)
        if (gni_tape_enter(operands[i].tensor))
            return true;
    return false;
}

static void results_release(const struct gni_tape_step *step)
{
    for (int i = 0; i < step->result_count; i++) {
        gn_tensor_release(step->results[i]);
        step->results[i] = NULL;
    }
}

gn_status gni_tape_leave(gn_status status, const struct gni_tape_step *step)
{
    gni_tape_is_paused = false;
    if (status != GN_OK)
        return status;
    status = gni_tape.record(step);
    if (status != GN_OK)
        results_release(step);
    return status;
}

gn_status gni_tape_refuse(const char *name, const gn_tensor *tensor)
{
    if (!gni_is_taped(tensor))
        return GN_OK;
    return gni_error(GN_ERROR_UNSUPPORTED,
                     "%s has no gradient yet: the tensor needs one; detach() it, or switch "
                     "gradients off",
                     name);
}

gn_status gni_tape_refuse_write(const char *name, const gn_tensor *out, const gn_tensor *value)
{
    if (!gni_is_taped(out) && !gni_is_taped(value))
        return GN_OK;
    return gni_error(GN_ERROR_UNSUPPORTED,
                     "%s in place has no gradient yet: a tensor of it needs one; detach() it, or "
                     "switch gradients off",
                     name);
}

gn_status gni_tape_leave_one(gn_status status, enum gni_rule rule, const char *name,
                             gn_tensor *tensor, gn_tensor **result, const void *details,
                             size_t detail_bytes)
{
    const gn_operand input = {.tensor = tensor};
    return gni_tape_leave(status, &(struct gni_tape_step){.rule = rule,
                                                          .name = name,
                                                          .input_count = 1,
                                                          .inputs = &input,
                                                          .result_count = 1,
                                                          .results = result,
                                                          .details = details,
                                                          .detail_bytes = detail_bytes});
}

size_t gni_places_bytes(const struct gni_places_details *places)
{
    return offsetof(struct gni_places_details, keys) +
           (size_t)places->key_count * sizeof *places->keys;
}

gn_status gni_tape_leave_places(gn_status status, enum gni_places kind, const char *name,
                                gn_tensor *tensor, int dimension, gn_tensor *index,
                                gn_tensor **result)
{
    const gn_operand inputs[] = {{.tensor = tensor}, {.tensor = index}};
    struct gni_places_details details;
    details.kind = kind;
    details.dimension = dimension < 0 ? dimension + tensor->ndim : dimension;
    details.is_accumulated = false;
    details.key_count = 0;
    return gni_tape_leave(status,
                          &(struct gni_tape_step){.rule = GNI_RULE_PLACES,
                                                  .name = name,
                                                  .input_count = 2,
                                                  .inputs = inputs,
                                                  .result_count = 1,
                                                  .results = result,
                                                  .details = &details,
                                                  .detail_bytes = gni_places_bytes(&details)});
}
