/*
 * gradient_scale.c: the two steps of gradient scaling: gradients are divided by the scale and checked, and the scale follows
 * from what was found. Neither waits for the device.
 */
#include "genesis/list.h"
#include "ops/expression.h"

#include <math.h>

/* found = 1 where the largest absolute value is infinite or NaN. */
static void found_set(struct gni_scope *s, gn_tensor *largest, gn_tensor *found)
{
    gn_tensor *is_fine = gni_unary(s, GN_OP_ISFINITE, largest);
    gni_assign(s, found, gni_of(gni_where(s, is_fine, gni_of(found), gni_floating(1))));
}

gn_status gn_list_unscale(int count, gn_tensor *const *gradients, gn_tensor *factor,
                          gn_tensor *found)
{
    static const gn_list_step steps[] = {{GN_OP_MULTIPLY, {0, 1}}};
    static const gn_list_store stores[] = {{.value = 2, .place = 0}};
    const gn_list_program scaling = {.place_count = 1,
                                     .number_count = 1,
                                     .steps = steps,
                                     .step_count = 1,
                                     .stores = stores,
                                     .store_count = 1};
    struct gni_scope s = {0};
    gn_tensor *largest = NULL;
    GN_CHECK_ARGUMENT(count >= 0 && (gradients != NULL || count == 0) && found != NULL,
                      "there must be a list of gradients, and found");
    if (count == 0)
        return GN_OK;
    gn_status status = gn_list_norm(count, gradients, (double)INFINITY, true, &largest);
    largest = gni_scope_keep(&s, status, largest);
    if (gni_scope_is_ok(&s))
        found_set(&s, largest, found);
    if (gni_scope_is_ok(&s) && factor != NULL)
        s.status =
            gn_list_elementwise(&scaling, count, gradients, &(gn_operand){.tensor = factor}, NULL);
    return gni_scope_close(&s);
}

gn_status gn_scale_update(gn_tensor *scale, gn_tensor *tracker, gn_tensor *found, double growth,
                          double backoff, int64_t interval)
{
    struct gni_scope s = {0};
    gn_operand zero = gni_integer(0);
    GN_CHECK_ARGUMENT(scale != NULL && tracker != NULL && found != NULL,
                      "scale, tracker and found must not be NULL");
    gn_tensor *is_found = gni_binary(&s, GN_OP_GREATER, gni_of(found), zero);
    gn_tensor *next = gni_binary(&s, GN_OP_ADD, gni_of(tracker), gni_integer(1));
    gn_tensor *is_due = gni_binary(&s, GN_OP_EQUAL, gni_of(next), gni_integer(interval));
    gn_tensor *larger = gni_binary(&s, GN_OP_MULTIPLY, gni_of(scale), gni_floating(growth));
    gn_tensor *smaller = gni_binary(&s, GN_OP_MULTIPLY, gni_of(scale), gni_floating(backoff));
    gn_tensor *can_grow = gni_binary(&s, GN_OP_LOGICAL_AND, gni_of(is_due),
                                     gni_of(gni_unary(&s, GN_OP_ISFINITE, larger)));
    gn_tensor *grown = gni_where(&s, can_grow, gni_of(larger), gni_of(scale));
    gn_tensor *begun = gni_where(&s, is_due, zero, gni_of(next));
    gn_tensor *new_scale = gni_where(&s, is_found, gni_of(smaller), gni_of(grown));
    gn_tensor *new_tracker = gni_where(&s, is_found, zero, gni_of(begun));
    gni_assign(&s, scale, gni_of(new_scale));
    gni_assign(&s, tracker, gni_of(new_tracker));
    return gni_scope_close(&s);
}
