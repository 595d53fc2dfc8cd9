/*
 * functions_nn_dropout.c: genesis.nn.functional: dropout.
 *
 * What is dropped is a tensor of bool, drawn from the numbers of one offset of the generator: the same ones on every
 * device. That tensor is all that a graph keeps.
 */
#include "ops/functions_nn.h"

#include <math.h>

/* Elements that are kept with a probability of 1 - p, as bool, in a shape on the device of a tensor. */
static gn_tensor *mask_draw(struct gni_scope *s, const gn_tensor *like, const int64_t *sizes,
                            double p, gn_generator *generator)
{
    gn_tensor *drawn = gni_empty(s, GN_FLOAT32, like->ndim, sizes, like->device);
    if (gni_scope_is_ok(s))
        s->status = gn_random_uniform(drawn, generator);
    return gni_binary(s, GN_OP_GREATER_EQUAL, gni_of(drawn), gni_floating(p));
}

/* With a mask that broadcasts. */
static gn_tensor *dropped(struct gni_scope *s, gn_tensor *x, const int64_t *sizes, double p,
                          gn_generator *generator)
{
    if (p == 0)
        return x;
    if (p == 1)
        return gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_integer(0));
    gn_tensor *mask = mask_draw(s, x, sizes, p, generator);
    gn_tensor *kept = gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_of(mask));
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(kept), gni_floating(1 / (1 - p)));
}

gn_tensor *gni_dropout(struct gni_scope *s, gn_tensor *x, double p, gn_generator *generator)
{
    return gni_scope_is_ok(s) ? dropped(s, x, x->sizes, p, generator) : NULL;
}

/* ---- calls ------------------------------------------------------------------------------------- */

/* The probability. */
static double chance_take(struct gni_scope *s, const gn_argument *p)
{
    double chance = gni_scalar_double(p->operand.scalar);
    if (!(chance >= 0 && chance <= 1))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "dropout probability has to be between 0 and 1, but got %s",
                       gni_number_text(p->operand.scalar).text);
    return chance;
}

/* (input, p, training, inplace, generator): whether there is something to do. */
static bool is_active(struct gni_scope *s, const gn_argument *a, double *p)
{
    gn_tensor *x = a[0].operand.tensor;
    *p = chance_take(s, &a[1]);
    if (!gni_dtype_is_floating(x->dtype) && gni_is_set(&a[2]))
        gni_scope_fail(s, GN_ERROR_TYPE, "input has floating numbers, not genesis.%s",
                       gni_dtypes[x->dtype].name);
    return gni_scope_is_ok(s) && gni_is_set(&a[2]) && *p > 0;
}

static gn_status dropout_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = x;
    double p;
    if (is_active(&s, a, &p))
        made = gni_dropout(&s, x, p, a[4].generator);
    return gni_give_in_place(&s, made, x, gni_is_set(&a[3]), results);
}

/* The shape of a mask that has one element for each channel. The batch and the channels are the first dimensions; without
 * a batch it is the channels alone. */
static void channels_of(const gn_tensor *x, bool has_batch, int64_t *sizes)
{
    for (int i = 0; i < x->ndim; i++)
        sizes[i] = i < 1 + has_batch ? x->sizes[i] : 1;
}

/* Whole channels of an input that has `batched` dimensions with a batch, or one less without; 0: always a batch. */
static gn_status channels_drop(const gn_argument *a, const char *name, int least, int most,
                               int batched, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = x;
    int64_t sizes[GN_DIMENSIONS_MAX];
    double p;
    bool is_needed = is_active(&s, a, &p);
    if (x->ndim < least || x->ndim > most)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input has shape %s: %s is for %d or %d dimensions",
                       gni_shape_text(x->ndim, x->sizes).text, name, least, most);
    if (is_needed && gni_scope_is_ok(&s)) {
        channels_of(x, batched == 0 || x->ndim == batched, sizes);
        made = dropped(&s, x, sizes, p, a[4].generator);
    }
    return gni_give_in_place(&s, made, x, gni_is_set(&a[3]), results);
}

static gn_status dropout1d_call(const gn_argument *a, gn_results *results)
{
    return channels_drop(a, "dropout1d", 2, 3, 3, results);
}

static gn_status dropout2d_call(const gn_argument *a, gn_results *results)
{
    return channels_drop(a, "dropout2d", 3, 4, 0, results);
}

static gn_status dropout3d_call(const gn_argument *a, gn_results *results)
{
    return channels_drop(a, "dropout3d", 4, 5, 5, results);
}

/* What is dropped becomes what SELU is far below 0, and all is scaled and shifted, so that mean and variance stay. */
static gn_tensor *alpha_dropped(struct gni_scope *s, gn_tensor *x, const int64_t *sizes, double p,
                                gn_generator *generator)
{
    const double alpha = 1.7580993408473766; /* SELU's scale times its alpha */
    if (p == 1)
        return gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_integer(0));
    double factor = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
    gn_tensor *mask = mask_draw(s, x, sizes, p, generator);
    gn_tensor *wide = gni_wide(s, x);
    gn_tensor *kept = gni_binary(s, GN_OP_MULTIPLY, gni_of(wide), gni_floating(factor));
    kept = gni_binary(s, GN_OP_ADD, gni_of(kept), gni_floating(alpha * factor * p));
    gn_operand low = gni_floating(alpha * factor * p - alpha * factor);
    gn_tensor *made = gni_where(s, mask, gni_of(kept), low);
    return gni_scope_is_ok(s) ? gni_cast(s, made, x->dtype) : NULL;
}

static gn_status alpha_dropout_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = x;
    double p;
    if (is_active(&s, a, &p))
        made = alpha_dropped(&s, x, x->sizes, p, a[4].generator);
    return gni_give_in_place(&s, made, x, gni_is_set(&a[3]), results);
}

static gn_status feature_alpha_dropout_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = x;
    int64_t sizes[GN_DIMENSIONS_MAX];
    double p;
    bool is_needed = is_active(&s, a, &p);
    if (is_needed && x->ndim < 2)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input has shape %s: at least a batch and channels",
                       gni_shape_text(x->ndim, x->sizes).text);
    if (is_needed && gni_scope_is_ok(&s)) {
        channels_of(x, true, sizes);
        made = alpha_dropped(&s, x, sizes, p, a[4].generator);
    }
    return gni_give_in_place(&s, made, x, gni_is_set(&a[3]), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

#define DROPOUT(training)                                             \
    "input: Tensor, p: number = 0.5, training: bool = " training ", " \
    "inplace: bool = False, *, generator: generator = None"

const gn_function gni_functions_nn_dropout[] = {
    {"nn.dropout", NULL, DROPOUT("True"), 0, dropout_call,
     "Elements are 0 with a probability of `p`, and the others divided by ``1 - p``.\n\n"
     "The input itself where `training` is False.",
     ">>> genesis.nn.functional.dropout(genesis.ones(2), training=False)\ntensor([1., 1.])"},
    {"nn.dropout1d", NULL, DROPOUT("True"), 0, dropout1d_call,
     "Whole channels are 0: of shape (batch, channels, length), or without the batch.",
     ">>> genesis.nn.functional.dropout1d(genesis.ones(1, 2, 3), 1.0).sum().item()\n0.0"},
    {"nn.dropout2d", NULL, DROPOUT("True"), 0, dropout2d_call,
     "Whole channels are 0: of shape (batch, channels, height, width), or (batch, channels, "
     "length).",
     ">>> genesis.nn.functional.dropout2d(genesis.ones(1, 2, 3, 3), 1.0).sum().item()\n0.0"},
    {"nn.dropout3d", NULL, DROPOUT("True"), 0, dropout3d_call,
     "Whole channels are 0: of shape (batch, channels, depth, height, width), or without the "
     "batch.",
     ">>> genesis.nn.functional.dropout3d(genesis.ones(1, 2, 1, 3, 3), 1.0).sum().item()\n0.0"},
    {"nn.alpha_dropout", NULL, DROPOUT("False"), 0, alpha_dropout_call,
     "Dropout that keeps mean and variance, for networks with SELU.",
     ">>> genesis.nn.functional.alpha_dropout(genesis.ones(2)).tolist()\n[1.0, 1.0]"},
    {"nn.feature_alpha_dropout", NULL, DROPOUT("False"), 0, feature_alpha_dropout_call,
     "The same of whole channels.",
     ">>> genesis.nn.functional.feature_alpha_dropout(genesis.ones(1, 2)).tolist()\n[[1.0, 1.0]]"},
    {0},
};
