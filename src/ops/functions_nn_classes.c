/*
 * functions_nn_classes.c: genesis.nn.functional: losses of classes, which are integers or probabilities.
 *
 * Input has the classes in dimension 1, or in the only one; they are moved to the end here.
 */
#include "ops/losses.h"

#include "tensor/tape.h"

/* ---- shapes ------------------------------------------------------------------------------------ */

static void shapes_refuse(struct gni_scope *s, const gn_tensor *x, const gn_tensor *target)
{
    gni_scope_fail(
        s, GN_ERROR_SHAPE,
        "input has shape %s, and target %s: input is (C), (N, C) or (N, C, d1, ...), and "
        "target the same without C",
        gni_shape_text(x->ndim, x->sizes).text, gni_shape_text(target->ndim, target->sizes).text);
}

static int class_dim(const gn_tensor *x)
{
    return x->ndim > 1 ? 1 : 0;
}

/* An input with its classes in the last dimension. */
static gn_tensor *classes_last(struct gni_scope *s, gn_tensor *x)
{
    if (gni_scope_is_ok(s) && x->ndim == 0)
        gni_scope_fail(s, GN_ERROR_SHAPE, "input has a dimension of classes, not the shape ()");
    return gni_scope_is_ok(s) ? gni_move_dim(s, x, class_dim(x), x->ndim - 1) : NULL;
}

/* `x` has its classes last. */
static void target_check(struct gni_scope *s, const gn_tensor *input, const gn_tensor *x,
                         const gn_tensor *target)
{
    if (!gni_scope_is_ok(s))
        return;
    bool fits = target->ndim == x->ndim - 1;
    for (int i = 0; fits && i < target->ndim; i++)
        fits = target->sizes[i] == x->sizes[i];
    if (!fits)
        shapes_refuse(s, input, target);
    else if (gni_dtype_kind(target->dtype) != GNI_KIND_INTEGER)
        gni_scope_fail(s, GN_ERROR_TYPE, "target has the numbers of classes, integers, not %s",
                       gni_dtypes[target->dtype].name);
}

/* The weight of each class as a type, without a gradient; NULL: none is given. */
static gn_tensor *weight_take(struct gni_scope *s, const gn_argument *weight, const gn_tensor *x,
                              gn_dtype dtype)
{
    if (!weight->is_given || !gni_scope_is_ok(s))
        return NULL;
    gn_tensor *given = weight->operand.tensor;
    int64_t classes = x->sizes[x->ndim - 1];
    if (given->ndim != 1 || given->sizes[0] != classes)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "weight has shape %s: it has one number for each of %lld "
                       "classes",
                       gni_shape_text(given->ndim, given->sizes).text, (long long)classes);
    if (!gni_scope_is_ok(s) || !gni_is_taped(given))
        return gni_cast(s, given, dtype);
    bool is_taped = gni_tape_enter(given);
    gn_tensor *made = gni_cast(s, gni_clone(s, given), dtype);
    gni_tape_is_paused &= !is_taped;
    return made;
}

static gn_dtype wide_of(gn_dtype dtype)
{
    return gni_dtype_is_half(dtype) ? GN_FLOAT32 : dtype;
}

static void floating_check(struct gni_scope *s, const gn_tensor *x)
{
    if (gni_scope_is_ok(s) && !gni_dtype_is_floating(x->dtype))
        gni_scope_fail(s, GN_ERROR_TYPE, "input is of floating numbers, not genesis.%s",
                       gni_dtypes[x->dtype].name);
}

/* ---- rows that count --------------------------------------------------------------------------- */

/* Which targets count, and numbers of classes in the place of all: 0 where none counts. */
struct counted {
    gn_tensor *is_counted, *classes;
};

static struct counted counted_make(struct gni_scope *s, gn_tensor *target, int64_t ignored)
{
    struct counted made = {NULL, NULL};
    made.is_counted = gni_binary(s, GN_OP_NOT_EQUAL, gni_of(target), gni_integer(ignored));
    made.classes = gni_where(s, made.is_counted, gni_of(target), gni_integer(0));
    return made;
}

/* The loss of each row, reduced: a mean is one by the weights of the rows. `weight` may be NULL. */
static gn_tensor *rows_reduce(struct gni_scope *s, gn_tensor *rows, const struct counted *counted,
                              gn_tensor *weight, enum gni_loss_reduction reduction, gn_dtype dtype)
{
    rows = gni_where(s, counted->is_counted, gni_of(rows), gni_integer(0));
    if (reduction != GNI_LOSS_MEAN)
        return gni_loss_reduce(s, rows, reduction, dtype);
    gn_tensor *weights = counted->is_counted;
    if (weight != NULL)
        weights = gni_where(s, weights, gni_of(gni_index_at(s, weight, counted->classes)),
                            gni_integer(0));
    return gni_loss_reduce_by(s, rows, weights, reduction, dtype);
}

/* Without the last dimension, which is 1. */
static gn_tensor *last_drop(struct gni_scope *s, gn_tensor *x)
{
    return gni_scope_is_ok(s) ? gni_reshape_values(s, x, x->ndim - 1, x->sizes) : NULL;
}

/* ---- cross_entropy ----------------------------------------------------------------------------- */

/* The target is probabilities: the sum over classes of -p w log_softmax(x). */
static gn_tensor *probabilities_loss(struct gni_scope *s, gn_tensor *x, gn_tensor *target,
                                     gn_tensor *weight, double smoothing)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t classes = x->sizes[x->ndim - 1];
    gn_tensor *top = NULL, *wide = gni_wide(s, x);
    uint32_t last = UINT32_C(1) << (x->ndim - 1);
    bool is_taped = gni_tape_enter(wide); /* whatever is taken off, the result is the same */
    top = gni_reduce(s, GN_REDUCE_MAXIMUM, wide, last, true);
    gni_tape_is_paused &= !is_taped;
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(wide), gni_of(top));
    gn_tensor *sum = gni_reduce(s, GN_REDUCE_SUM, gni_unary(s, GN_OP_EXP, apart), last, true);
    gn_tensor *logs =
        gni_binary(s, GN_OP_SUBTRACT, gni_of(gni_unary(s, GN_OP_LOG, sum)), gni_of(apart));
    target = gni_scope_is_ok(s) ? gni_cast(s, target, wide->dtype) : NULL;
    if (smoothing != 0) {
        target = gni_binary(s, GN_OP_MULTIPLY, gni_of(target), gni_floating(1 - smoothing));
        target =
            gni_binary(s, GN_OP_ADD, gni_of(target), gni_floating(smoothing / (double)classes));
    }
    if (weight != NULL)
        logs = gni_binary(s, GN_OP_MULTIPLY, gni_of(logs), gni_of(weight));
    gn_tensor *parts = gni_binary(s, GN_OP_MULTIPLY, gni_of(logs), gni_of(target));
    return gni_reduce(s, GN_REDUCE_SUM, parts, last, false);
}

/* With probabilities a mean is one over rows, whatever the weights are. */
static gn_status probabilities_give(struct gni_scope *s, const gn_argument *a, gn_tensor *x,
                                    gn_tensor *weight, double smoothing,
                                    enum gni_loss_reduction reduction, gn_results *results)
{
    gn_tensor *target = a[1].operand.tensor;
    int64_t ignored = a[4].operand.scalar.integer;
    if (!gni_dtype_is_floating(target->dtype))
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "target has the shape of input: it has probabilities, floating numbers, not "
                       "genesis.%s",
                       gni_dtypes[target->dtype].name);
    if (ignored >= 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "ignore_index is %lld: it is for targets that are classes, and these are "
                       "probabilities",
                       (long long)ignored);
    gn_tensor *rows = probabilities_loss(s, x, classes_last(s, target), weight, smoothing);
    return gni_scope_give(s, gni_loss_reduce(s, rows, reduction, a[0].operand.tensor->dtype),
                          results);
}

static gn_status cross_entropy_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *target = a[1].operand.tensor;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[6], &a[3], &a[5]);
    double smoothing = gni_scalar_double(a[7].operand.scalar);
    floating_check(&s, input);
    if (!(smoothing >= 0 && smoothing <= 1))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "label_smoothing is between 0 and 1, not %g",
                       smoothing);
    gn_tensor *x = classes_last(&s, input);
    gn_tensor *weight = weight_take(&s, &a[2], x, wide_of(input->dtype));
    if (gni_shape_is_equal(input->ndim, input->sizes, target->ndim, target->sizes))
        return probabilities_give(&s, a, x, weight, smoothing, reduction, results);
    target_check(&s, input, x, target);
    struct counted counted = counted_make(&s, target, a[4].operand.scalar.integer);
    gn_tensor *rows = gni_class_loss(&s, x, counted.classes, weight, smoothing);
    return gni_scope_give(
        &s, rows_reduce(&s, last_drop(&s, rows), &counted, weight, reduction, input->dtype),
        results);
}

/* ---- nll_loss ---------------------------------------------------------------------------------- */

static gn_tensor *gathered(struct gni_scope *s, gn_tensor *x, gn_tensor *classes)
{
    gn_tensor *places = gni_scope_is_ok(s) ? gni_unsqueeze(s, classes, classes->ndim) : NULL;
    gn_tensor *made = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_gather(x, -1, places, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

static gn_status nll_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *target = a[1].operand.tensor;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[6], &a[3], &a[5]);
    floating_check(&s, input);
    gn_tensor *x = classes_last(&s, input);
    gn_tensor *weight = weight_take(&s, &a[2], x, wide_of(input->dtype));
    target_check(&s, input, x, target);
    struct counted counted = counted_make(&s, target, a[4].operand.scalar.integer);
    gn_tensor *picked = gathered(&s, x, counted.classes);
    gn_tensor *rows = gni_unary(&s, GN_OP_NEGATIVE, last_drop(&s, gni_wide(&s, picked)));
    if (weight != NULL)
        rows = gni_binary(&s, GN_OP_MULTIPLY, gni_of(rows),
                          gni_of(gni_index_at(&s, weight, counted.classes)));
    return gni_scope_give(&s, rows_reduce(&s, rows, &counted, weight, reduction, input->dtype),
                          results);
}

/* ---- margins between classes ------------------------------------------------------------------- */

/* (C) for one class as (1, C), where the target has a dimension; () as (1). */
static gn_tensor *examples_of(struct gni_scope *s, gn_tensor *x, const gn_tensor *target)
{
    if (gni_scope_is_ok(s) && x->ndim == 0)
        x = gni_unsqueeze(s, x, 0);
    bool is_one = gni_scope_is_ok(s) && x->ndim == 1 && target->ndim == 1 && target->sizes[0] == 1;
    return is_one ? gni_unsqueeze(s, x, 0) : x;
}

static gn_status multi_margin_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *target = a[1].operand.tensor;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[7], &a[5], &a[6]);
    int64_t power = a[2].operand.scalar.integer;
    floating_check(&s, x);
    x = examples_of(&s, x, target);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    if (power != 1 && power != 2)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "p is 1 or 2, not %lld", (long long)power);
    if (x->ndim != 1 && x->ndim != 2)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input is (C) or (N, C), not %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    target_check(&s, x, x, target);
    gn_tensor *weight = weight_take(&s, &a[4], x, wide_of(x->dtype));
    gn_tensor *own = gni_wide(&s, gathered(&s, x, target));
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(gni_wide(&s, x)), gni_of(own));
    apart = gni_binary(&s, GN_OP_ADD, gni_of(apart), a[3].operand);
    apart = gni_at_least_number(&s, apart, 0);
    if (power == 2)
        apart = gni_unary(&s, GN_OP_SQUARE, apart);
    if (weight != NULL) {
        gn_tensor *places = gni_unsqueeze(&s, target, target->ndim);
        apart =
            gni_binary(&s, GN_OP_MULTIPLY, gni_of(apart), gni_of(gni_index_at(&s, weight, places)));
    }
    gn_tensor *classes = gni_arange(&s, x->sizes[x->ndim - 1], x->device);
    gn_tensor *is_other = gni_binary(&s, GN_OP_NOT_EQUAL, gni_of(classes),
                                     gni_of(gni_unsqueeze(&s, target, target->ndim)));
    gn_tensor *kept = gni_where(&s, is_other, gni_of(apart), gni_integer(0));
    gn_tensor *rows = gni_reduce(&s, GN_REDUCE_MEAN, kept, UINT32_C(1) << (x->ndim - 1), false);
    return gni_scope_give(&s, gni_loss_reduce(&s, rows, reduction, x->dtype), results);
}

/* Whether a row of targets names a class before its first number below 0: (..., K) and (..., C). */
static gn_tensor *named_of(struct gni_scope *s, gn_tensor *is_named, gn_tensor *classes,
                           int64_t count)
{
    gn_tensor *numbers = gni_scope_is_ok(s) ? gni_arange(s, count, classes->device) : NULL;
    gn_tensor *rows = gni_scope_is_ok(s) ? gni_unsqueeze(s, classes, classes->ndim) : NULL;
    gn_tensor *is_it = gni_binary(s, GN_OP_EQUAL, gni_of(rows), gni_of(numbers));
    gn_tensor *is_valid = gni_scope_is_ok(s) ? gni_unsqueeze(s, is_named, classes->ndim) : NULL;
    is_it = gni_binary(s, GN_OP_LOGICAL_AND, gni_of(is_it), gni_of(is_valid));
    return gni_scope_is_ok(s)
               ? gni_reduce(s, GN_REDUCE_ANY, is_it, UINT32_C(1) << (is_it->ndim - 2), false)
               : NULL;
}

/* The sum over classes k of the target and others c of max(0, 1 - x[k] + x[c]), over the number of classes. */
static gn_status multilabel_margin_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *target = a[1].operand.tensor;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[4], &a[2], &a[3]);
    floating_check(&s, input);
    if (input->ndim > 2 ||
        !gni_shape_is_equal(input->ndim, input->sizes, target->ndim, target->sizes))
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "input has shape %s, and target %s: both are (C), or (N, C)",
                       gni_shape_text(input->ndim, input->sizes).text,
                       gni_shape_text(target->ndim, target->sizes).text);
    if (gni_dtype_kind(target->dtype) != GNI_KIND_INTEGER)
        gni_scope_fail(&s, GN_ERROR_TYPE, "target has the numbers of classes, integers, not %s",
                       gni_dtypes[target->dtype].name);
    gn_tensor *x = gni_scope_is_ok(&s) ? gni_wide(&s, input) : NULL;
    if (gni_scope_is_ok(&s) && x->ndim == 0) {
        x = gni_unsqueeze(&s, x, 0);
        target = gni_unsqueeze(&s, target, 0);
    }
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    int last = x->ndim - 1;
    int64_t count = x->sizes[last];
    gn_tensor *is_end = gni_binary(&s, GN_OP_LESS, gni_of(target), gni_integer(0));
    is_end = gni_scope_is_ok(&s) ? gni_cast(&s, is_end, GN_INT64) : NULL;
    gn_tensor *ends = gni_scope_is_ok(&s) ? gni_cumsum(&s, is_end, last) : NULL;
    gn_tensor *is_named = gni_binary(&s, GN_OP_EQUAL, gni_of(ends), gni_integer(0));
    gn_tensor *classes = gni_where(&s, is_named, gni_of(target), gni_integer(0));
    classes = gni_scope_is_ok(&s) ? gni_cast(&s, classes, GN_INT64) : NULL;
    gn_tensor *is_own = named_of(&s, is_named, classes, count), *picked = NULL;
    if (gni_scope_is_ok(&s))
        s.status = gn_gather(x, last, classes, &picked);
    picked = gni_scope_keep(&s, s.status, picked);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(gni_unsqueeze(&s, x, last)),
                                  gni_of(gni_unsqueeze(&s, picked, last + 1)));
    apart = gni_at_least_number(&s, gni_binary(&s, GN_OP_ADD, gni_of(apart), gni_integer(1)), 0);
    gn_tensor *is_other = gni_unary(&s, GN_OP_LOGICAL_NOT, is_own);
    is_other = gni_scope_is_ok(&s) ? gni_unsqueeze(&s, is_other, last) : NULL;
    is_named = gni_scope_is_ok(&s) ? gni_unsqueeze(&s, is_named, last + 1) : NULL;
    gn_tensor *is_pair = gni_binary(&s, GN_OP_LOGICAL_AND, gni_of(is_other), gni_of(is_named));
    apart = gni_where(&s, is_pair, gni_of(apart), gni_integer(0));
    gn_tensor *rows = gni_scope_is_ok(&s) ? gni_reduce(&s, GN_REDUCE_SUM, apart,
                                                       UINT32_C(3) << last, input->ndim == 0)
                                          : NULL;
    rows = gni_binary(&s, GN_OP_DIVIDE, gni_of(rows), gni_integer(count > 0 ? count : 1));
    if (gni_scope_is_ok(&s) && input->ndim == 0)
        rows = gni_reshape(&s, rows, 0, NULL);
    return gni_scope_give(&s, gni_loss_reduce(&s, rows, reduction, input->dtype), results);
}

static gn_status multilabel_soft_margin_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    const gn_tensor *x = in[0].tensor, *target = in[1].tensor;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[5], &a[3], &a[4]);
    if (x->ndim == 0 || !gni_shape_is_equal(x->ndim, x->sizes, target->ndim, target->sizes))
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "input has shape %s, and target %s: they are the same, with classes last",
                       gni_shape_text(x->ndim, x->sizes).text,
                       gni_shape_text(target->ndim, target->sizes).text);
    gn_dtype dtype = gni_join(&s, 2, in, true);
    gn_tensor *is_on = gni_unary(&s, GN_OP_LOG_SIGMOID, in[0].tensor);
    gn_tensor *is_off =
        gni_unary(&s, GN_OP_LOG_SIGMOID, gni_unary(&s, GN_OP_NEGATIVE, in[0].tensor));
    gn_tensor *rest = gni_binary(&s, GN_OP_SUBTRACT, in[1], gni_integer(1));
    gn_tensor *off = gni_binary(&s, GN_OP_MULTIPLY, gni_of(rest), gni_of(is_off));
    gn_tensor *on = gni_binary(&s, GN_OP_MULTIPLY, in[1], gni_of(is_on));
    gn_tensor *each = gni_binary(&s, GN_OP_SUBTRACT, gni_of(off), gni_of(on));
    if (a[2].is_given)
        each = gni_binary(&s, GN_OP_MULTIPLY, gni_of(each), a[2].operand);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    gn_tensor *rows = gni_reduce(&s, GN_REDUCE_MEAN, each, UINT32_C(1) << (each->ndim - 1), false);
    return gni_scope_give(&s, gni_loss_reduce(&s, rows, reduction, dtype), results);
}

#define REDUCED "size_average: bool = None, reduce: bool = None, reduction: text = 'mean'"

const gn_function gni_functions_nn_classes[] = {
    {"nn.cross_entropy", NULL,
     "input: Tensor, target: Tensor, weight: Tensor = None, size_average: bool = None, "
     "ignore_index: int = -100, reduce: bool = None, reduction: text = 'mean', "
     "label_smoothing: number = 0.0",
     0, cross_entropy_call,
     "The negative logarithm of softmax(input) at the class of each row.\n\nInput is (C), (N, C) "
     "or "
     "(N, C, d1, ...). Target has the numbers of classes and the shape without C, or the shape of "
     "input and probabilities. Halves are computed in float32. A class out of range is an "
     "IndexError; "
     "on a GPU the next synchronization reports it.",
     ">>> logits = genesis.tensor([[2.0, 0.0], [0.0, 2.0]])\n"
     ">>> genesis.nn.functional.cross_entropy(logits, genesis.tensor([0, 0]))\n"
     "tensor(1.1269)"},
    {"nn.nll_loss", NULL,
     "input: Tensor, target: Tensor, weight: Tensor = None, size_average: bool = None, "
     "ignore_index: int = -100, reduce: bool = None, reduction: text = 'mean'",
     0, nll_loss_call,
     "Minus the input at the class of each row: input has logarithms of probabilities.",
     ">>> logs = genesis.tensor([[-0.5, -1.0], [-2.0, -0.1]])\n"
     ">>> genesis.nn.functional.nll_loss(logs, genesis.tensor([0, 1]))\n"
     "tensor(0.3000)"},
    {"nn.multi_margin_loss", NULL,
     "input: Tensor, target: Tensor, p: int = 1, margin: number = 1.0, weight: Tensor = "
     "None, " REDUCED,
     0, multi_margin_loss_call,
     "The mean of max(0, margin - input[target] + input[c])^p over the other classes c of a row.",
     ">>> x = genesis.tensor([[0.5, 1.0, 0.0]])\n"
     ">>> genesis.nn.functional.multi_margin_loss(x, genesis.tensor([1]))\n"
     "tensor(0.1667)"},
    {"nn.multilabel_margin_loss", NULL, "input: Tensor, target: Tensor, " REDUCED, 0,
     multilabel_margin_loss_call,
     "The sum of max(0, 1 - input[k] + input[c]) over the classes k of the target and all others "
     "c, "
     "over the number of classes.\n\nA row of the target has the numbers of classes, then -1.",
     ">>> x = genesis.tensor([0.1, 0.2, 0.4, 0.8])\n"
     ">>> target = genesis.tensor([3, 0, -1, 1])\n"
     ">>> genesis.nn.functional.multilabel_margin_loss(x, target)\ntensor(0.8500)"},
    {"nn.multilabel_soft_margin_loss", NULL,
     "input: Tensor, target: Tensor, weight: Tensor = None, " REDUCED, 0,
     multilabel_soft_margin_loss_call,
     "Binary cross entropy with logits, the mean over the classes of each row.",
     ">>> x = genesis.tensor([[0.0, 0.0]])\n"
     ">>> genesis.nn.functional.multilabel_soft_margin_loss(x, genesis.tensor([[1.0, 0.0]]))\n"
     "tensor(0.6931)"},
    {0},
};
