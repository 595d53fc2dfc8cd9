/*
 * losses.c: losses with a rule of their own for the gradient, and how a loss is reduced: losses.h
 *
 * The cross entropy with a class is one row program and one kernel that takes an element of each row. Its gradient is one
 * elementwise kernel over x: the logarithm of the sum is saved, one number for each row, and no tensor of zeros and ones is
 * made.
 */
#include "ops/losses.h"

#include "base/log.h"
#include "tensor/tape.h"

#include <string.h>

/* ---- reductions -------------------------------------------------------------------------------- */

static bool is_false(const gn_argument *argument)
{
    return argument->is_given && !gni_is_set(argument);
}

enum gni_loss_reduction gni_loss_reduction(struct gni_scope *scope, const gn_argument *reduction,
                                           const gn_argument *average, const gn_argument *reduce)
{
    static const char *const words[] = {"none", "mean", "sum"};
    if (average != NULL && (average->is_given || reduce->is_given)) {
        enum gni_loss_reduction found = is_false(reduce)    ? GNI_LOSS_NONE
                                        : is_false(average) ? GNI_LOSS_SUM
                                                            : GNI_LOSS_MEAN;
        gni_log(GNI_LOG_WARNING, "size_average and reduce are deprecated: use reduction='%s'",
                words[found]);
        return found;
    }
    const char *word = reduction->is_given ? reduction->text : "None";
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
        if (strcmp(word, words[i]) == 0)
            return (enum gni_loss_reduction)i;
    gni_scope_fail(scope, GN_ERROR_INVALID_VALUE, "reduction is 'none', 'mean' or 'sum', not '%s'",
                   word);
    return GNI_LOSS_NONE;
}

gn_tensor *gni_loss_reduce(struct gni_scope *scope, gn_tensor *x, enum gni_loss_reduction reduction,
                           gn_dtype dtype)
{
    if (reduction == GNI_LOSS_MEAN)
        x = gni_reduce(scope, GN_REDUCE_MEAN, x, 0, false);
    if (reduction == GNI_LOSS_SUM)
        x = gni_reduce(scope, GN_REDUCE_SUM, x, 0, false);
    return gni_cast(scope, x, dtype);
}

gn_tensor *gni_loss_reduce_by(struct gni_scope *scope, gn_tensor *x, gn_tensor *weights,
                              enum gni_loss_reduction reduction, gn_dtype dtype)
{
    if (reduction != GNI_LOSS_MEAN)
        return gni_loss_reduce(scope, x, reduction, dtype);
    gn_tensor *sum = gni_reduce(scope, GN_REDUCE_SUM, x, 0, false);
    gn_tensor *count = gni_reduce(scope, GN_REDUCE_SUM, weights, 0, false);
    return gni_cast(scope, gni_binary(scope, GN_OP_DIVIDE, gni_of(sum), gni_of(count)), dtype);
}

/* ---- classes ----------------------------------------------------------------------------------- */

static uint32_t last_of(const gn_tensor *x)
{
    return UINT32_C(1) << (x->ndim - 1);
}

/* log(sum(exp(x))) of each row, whose largest element may be infinite. */
static gn_tensor *log_sum_of(struct gni_scope *s, gn_tensor *x)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *top = gni_reduce(s, GN_REDUCE_MAXIMUM, x, last_of(x), true);
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(x), gni_of(top));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *sum = gni_reduce(s, GN_REDUCE_SUM, gni_unary(s, GN_OP_EXP, apart), last_of(x), true);
    return gni_binary(s, GN_OP_ADD, gni_of(gni_unary(s, GN_OP_LOG, sum)), gni_of(top));
}

static gn_tensor *picked_of(struct gni_scope *s, gn_tensor *x, gn_tensor *places)
{
    gn_tensor *made = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_gather(x, -1, places, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

/* The part of all classes: smoothing / C * (sum(w) lse - sum(w x)). */
static gn_tensor *smooth_part(struct gni_scope *s, gn_tensor *x, gn_tensor *log_sum,
                              gn_tensor *weight, double smoothing)
{
    int64_t classes = gni_scope_is_ok(s) ? x->sizes[x->ndim - 1] : 1;
    gn_operand total = gni_floating((double)classes);
    if (weight != NULL) {
        x = gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_of(weight));
        total = gni_of(gni_reduce(s, GN_REDUCE_SUM, weight, 0, false));
    }
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *sum = gni_reduce(s, GN_REDUCE_SUM, x, last_of(x), true);
    gn_tensor *made = gni_binary(s, GN_OP_MULTIPLY, gni_of(log_sum), total);
    made = gni_binary(s, GN_OP_SUBTRACT, gni_of(made), gni_of(sum));
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(made), gni_floating(smoothing / (double)classes));
}

/* `both`: the rows, and their log(sum(exp(x))), new references. */
static gn_status class_loss_make(gn_tensor *x, gn_tensor *places, gn_tensor *weight,
                                 double smoothing, gn_tensor **both)
{
    struct gni_scope s = {0};
    gn_tensor *picked = gni_wide(&s, picked_of(&s, x, places));
    gn_tensor *wide = gni_wide(&s, x);
    gn_tensor *log_sum = log_sum_of(&s, wide);
    gn_tensor *rows = gni_binary(&s, GN_OP_SUBTRACT, gni_of(log_sum), gni_of(picked));
    if (weight != NULL)
        rows =
            gni_binary(&s, GN_OP_MULTIPLY, gni_of(rows), gni_of(gni_index_at(&s, weight, places)));
    if (smoothing != 0) {
        gn_tensor *smooth = smooth_part(&s, wide, log_sum, weight, smoothing);
        rows = gni_binary(&s, GN_OP_MULTIPLY, gni_of(rows), gni_floating(1 - smoothing));
        rows = gni_binary(&s, GN_OP_ADD, gni_of(rows), gni_of(smooth));
    }
    gn_results results = {0};
    gn_status status = gni_scope_give_pair(&s, rows, log_sum, &results);
    both[0] = results.few[0];
    both[1] = results.few[1];
    return status;
}

gn_tensor *gni_class_loss(struct gni_scope *scope, gn_tensor *x, gn_tensor *target,
                          gn_tensor *weight, double smoothing)
{
    gn_tensor *places = gni_scope_is_ok(scope) ? gni_unsqueeze(scope, target, target->ndim) : NULL;
    if (!gni_scope_is_ok(scope))
        return NULL;
    gn_tensor *both[2] = {NULL};
    bool is_taped = gni_tape_enter(x);
    gn_status status = class_loss_make(x, places, weight, smoothing, both);
    if (is_taped) {
        const struct gni_class_loss_details details = {.smoothing = smoothing};
        const gn_operand inputs[] = {{.tensor = x}, {.tensor = places}, {.tensor = weight}};
        status = gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_CLASS_LOSS,
                                                                .name = "cross_entropy",
                                                                .input_count = 3,
                                                                .inputs = inputs,
                                                                .result_count = 2,
                                                                .results = both,
                                                                .details = &details,
                                                                .detail_bytes = sizeof details});
    }
    gn_tensor *rows = gni_scope_keep(scope, status, both[0]);
    gn_tensor *log_sum = gni_scope_keep(scope, status, both[1]);
    if (is_taped && gni_scope_is_ok(scope)) /* stored: it would be computed again from all of x */
        scope->status = gni_tensor_flush(log_sum);
    return rows;
}

/* ---- two classes ------------------------------------------------------------------------------- */

static gn_status binary_loss_make(gn_tensor *x, gn_tensor *target, gn_tensor **made)
{
    struct gni_scope s = {0};
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(target), gni_integer(1));
    gn_tensor *other = gni_unary(&s, GN_OP_LOG1P, gni_unary(&s, GN_OP_NEGATIVE, x));
    gn_tensor *own = gni_at_least_number(&s, gni_unary(&s, GN_OP_LOG, x), -100);
    other =
        gni_binary(&s, GN_OP_MULTIPLY, gni_of(apart), gni_of(gni_at_least_number(&s, other, -100)));
    own = gni_binary(&s, GN_OP_MULTIPLY, gni_of(target), gni_of(own));
    return gni_scope_end(&s, gni_binary(&s, GN_OP_SUBTRACT, gni_of(other), gni_of(own)), made);
}

gn_tensor *gni_binary_loss(struct gni_scope *scope, gn_tensor *x, gn_tensor *target)
{
    if (!gni_scope_is_ok(scope))
        return NULL;
    gn_tensor *made = NULL;
    const gn_operand inputs[] = {{.tensor = x}, {.tensor = target}};
    bool is_taped = gni_tape_enter_any(2, inputs);
    gn_status status = binary_loss_make(x, target, &made);
    if (is_taped)
        status = gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_BINARY_LOSS,
                                                                .name = "binary_cross_entropy",
                                                                .input_count = 2,
                                                                .inputs = inputs,
                                                                .result_count = 1,
                                                                .results = &made});
    return gni_scope_keep(scope, status, made);
}
