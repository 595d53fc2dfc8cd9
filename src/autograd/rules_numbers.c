/*
 * rules_numbers.c: the table of rules, and the gradients of reductions, softmax and matrix products.
 */
#include "autograd/autograd.h"

#include "base/error.h"

/* ---- reductions ------------------------------------------------------------------------------ */

/* A result with the reduced dimensions back, as 1: it broadcasts against the input. */
static gn_tensor *with_dims(const struct gni_rule_frame *frame, gn_tensor *reduced)
{
    const struct gni_reduce_details *details = frame->node->details;
    const struct gni_like *like = frame->likes[0];
    int64_t sizes[GN_DIMENSIONS_MAX];
    for (int i = 0; i < like->ndim; i++)
        sizes[i] =
            details->dimensions == 0 || (details->dimensions >> i & 1) != 0 ? 1 : like->sizes[i];
    return gni_reshape_values(frame->scope, reduced, like->ndim, sizes);
}

static int64_t reduced_count(const struct gni_rule_frame *frame)
{
    const struct gni_reduce_details *details = frame->node->details;
    int64_t count = 1;
    for (int i = 0; i < frame->likes[0]->ndim; i++)
        if (details->dimensions == 0 || (details->dimensions >> i & 1) != 0)
            count *= frame->likes[0]->sizes[i];
    return count;
}

/* The elements of x that are a value, which may be NaN, share its gradient. */
static gn_tensor *shared_gradient(struct gni_scope *s, gn_tensor *x, gn_tensor *value,
                                  uint32_t dims, gn_tensor *given)
{
    gn_tensor *is_equal = gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_of(value));
    gn_tensor *are_nan = gni_binary(s, GN_OP_LOGICAL_AND, gni_of(gni_unary(s, GN_OP_ISNAN, x)),
                                    gni_of(gni_unary(s, GN_OP_ISNAN, value)));
    gn_tensor *is_it = gni_binary(s, GN_OP_LOGICAL_OR, gni_of(is_equal), gni_of(are_nan));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *count = gni_reduce(s, GN_REDUCE_SUM, is_it, dims, true);
    gn_tensor *share = gni_binary(s, GN_OP_DIVIDE, gni_of(given), gni_of(count));
    return gni_where(s, is_it, gni_of(share), gni_integer(0));
}

static gn_tensor *extreme_gradient(const struct gni_rule_frame *frame, gn_tensor *given)
{
    const struct gni_reduce_details *details = frame->node->details;
    gn_tensor *x = frame->inputs[0].tensor;
    gn_tensor *extreme = gni_reduce(frame->scope, details->reduction, x, details->dimensions, true);
    return shared_gradient(frame->scope, x, extreme, details->dimensions, given);
}

static void kth_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gradients[0] = shared_gradient(frame->scope, frame->inputs[0].tensor, frame->results[0], 0,
                                   frame->given[0]);
}

/* Whether a gradient by division could not be differentiated: the graph of gradients is kept, and an element is 0. */
static bool needs_others(struct gni_scope *s, gn_tensor *x)
{
    if (!gni_is_taped(x) || x->count == 0)
        return false;
    gn_tensor *is_zero = gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_integer(0));
    if (!gni_scope_is_ok(s))
        return false;
    return gni_item(s, gni_reduce(s, GN_REDUCE_ANY, is_zero, 0, false)).integer != 0;
}

/* A matrix of each row in the last dimension: the row again and again, with 1 on the diagonal. */
static gn_tensor *others_of(struct gni_scope *s, gn_tensor *rows)
{
    int last = rows->ndim - 1;
    gn_tensor *numbers = gni_arange(s, rows->sizes[last], rows->device);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *is_own =
        gni_binary(s, GN_OP_EQUAL, gni_of(numbers), gni_of(gni_unsqueeze(s, numbers, 1)));
    return gni_where(s, is_own, gni_integer(1), gni_of(gni_unsqueeze(s, rows, last)));
}

static gn_tensor *cumulated(struct gni_scope *s, gn_tensor *x, int dim, bool is_product)
{
    gn_tensor *made = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gn_cumulate(x, dim, is_product, &made);
    return gni_scope_keep(s, status, made);
}

static gn_tensor *flipped(struct gni_scope *s, gn_tensor *x, int dim)
{
    gn_tensor *made = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gn_flip(x, UINT32_C(1) << dim, &made);
    return gni_scope_keep(s, status, made);
}

/* The product of the elements before each along the last dimension, which has some. */
static gn_tensor *products_before(struct gni_scope *s, gn_tensor *x)
{
    const gn_scalar one = {.kind = GN_INT64, .integer = 1};
    int64_t sizes[GN_DIMENSIONS_MAX];
    int last = x->ndim - 1;
    for (int i = 0; i < last; i++)
        sizes[i] = x->sizes[i];
    sizes[last] = 1;
    gn_tensor *both[] = {gni_full(s, one, x->dtype, x->ndim, sizes, x->device),
                         gni_narrow(s, x, last, 0, x->sizes[last] - 1)};
    return cumulated(s, gni_scope_is_ok(s) ? gni_cat(s, 2, both, last) : NULL, last, true);
}

/*
 * The product of the other elements, in a way that can be differentiated where elements are 0: of those before times that
 * of those behind, along one dimension that stands for all that are reduced.
 */
static gn_tensor *others_product(struct gni_scope *s, gn_tensor *x, uint32_t dims)
{
    int order[GN_DIMENSIONS_MAX], back[GN_DIMENSIONS_MAX], kept = 0, place;
    int64_t sizes[GN_DIMENSIONS_MAX + 1], count = 1;
    for (int i = 0; i < x->ndim; i++)
        if (dims != 0 && (dims >> i & 1) == 0) {
            sizes[kept] = x->sizes[i];
            order[kept++] = i;
        }
    place = kept;
    for (int i = 0; i < x->ndim; i++)
        if (dims == 0 || (dims >> i & 1) != 0) {
            count *= x->sizes[i];
            order[place++] = i;
        }
    if (count == 0)
        return x;
    for (int i = 0; i < x->ndim; i++)
        back[order[i]] = i;
    sizes[kept] = count;
    gn_tensor *moved = gni_permute(s, x, order);
    gn_tensor *row = gni_scope_is_ok(s) ? gni_reshape(s, moved, kept + 1, sizes) : NULL;
    gn_tensor *before = row != NULL ? products_before(s, row) : NULL;
    gn_tensor *turned = flipped(s, row, kept);
    gn_tensor *behind = turned != NULL ? flipped(s, products_before(s, turned), kept) : NULL;
    gn_tensor *made = gni_binary(s, GN_OP_MULTIPLY, gni_of(before), gni_of(behind));
    if (!gni_scope_is_ok(s))
        return NULL;
    made = gni_reshape(s, made, moved->ndim, moved->sizes);
    return gni_scope_is_ok(s) ? gni_permute(s, made, back) : NULL;
}

/*
 * The product of the other elements: the product divided by the element where none is 0, and the product of those that
 * are not 0 where the element is the only 0.
 */
static gn_tensor *product_gradient(const struct gni_rule_frame *frame, gn_tensor *given)
{
    struct gni_scope *s = frame->scope;
    const struct gni_reduce_details *details = frame->node->details;
    gn_tensor *x = frame->inputs[0].tensor;
    if (gn_gradients_are_on()) {
        gn_tensor *factors = others_product(s, x, details->dimensions);
        return gni_binary(s, GN_OP_MULTIPLY, gni_of(factors), gni_of(given));
    }
    gn_tensor *is_zero = gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_integer(0));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *zeros = gni_reduce(s, GN_REDUCE_SUM, is_zero, details->dimensions, true);
    gn_tensor *filled = gni_where(s, is_zero, gni_integer(1), gni_of(x));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *product = gni_reduce(s, GN_REDUCE_PRODUCT, filled, details->dimensions, true);
    gn_tensor *others = gni_binary(s, GN_OP_DIVIDE, gni_of(product), gni_of(filled));
    gn_tensor *own = is_zero != NULL && gni_scope_is_ok(s) ? gni_cast(s, is_zero, GN_INT64) : NULL;
    gn_tensor *left = gni_binary(s, GN_OP_SUBTRACT, gni_of(zeros), gni_of(own));
    gn_tensor *has_none = gni_binary(s, GN_OP_EQUAL, gni_of(left), gni_integer(0));
    gn_tensor *chosen = gni_where(s, has_none, gni_of(others), gni_integer(0));
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(chosen), gni_of(given));
}

static void reduce_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    const struct gni_reduce_details *details = frame->node->details;
    gn_tensor *given = with_dims(frame, frame->given[0]);
    if (given == NULL)
        return;
    switch (details->reduction) {
    case GN_REDUCE_SUM:
        break;
    case GN_REDUCE_MEAN:
        given = gni_binary(s, GN_OP_DIVIDE, gni_of(given), gni_integer(reduced_count(frame)));
        break;
    case GN_REDUCE_MAXIMUM:
    case GN_REDUCE_MINIMUM:
        given = extreme_gradient(frame, given);
        break;
    case GN_REDUCE_PRODUCT:
        given = product_gradient(frame, given);
        break;
    default: /* any and all give no floating numbers */
        given = NULL;
    }
    gradients[0] = given;
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* softmax: y (g - sum(g y)); its logarithm: g - exp(y) sum(g) */
static void softmax_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    const struct gni_softmax_details *details = frame->node->details;
    gn_dtype dtype = frame->given[0]->dtype;
    gn_tensor *g = gni_wide(s, frame->given[0]), *y = gni_wide(s, frame->results[0]);
    if (!gni_scope_is_ok(s))
        return;
    uint32_t dims = UINT32_C(1) << details->dimension;
    gn_tensor *part = g, *made;
    if (!details->is_log)
        part = gni_binary(s, GN_OP_MULTIPLY, gni_of(g), gni_of(y));
    if (!gni_scope_is_ok(s))
        return;
    gn_tensor *sum = y->ndim > 0 ? gni_reduce(s, GN_REDUCE_SUM, part, dims, true) : part;
    if (details->is_log) {
        gn_tensor *softmax = gni_unary(s, GN_OP_EXP, y);
        gn_tensor *taken = gni_binary(s, GN_OP_MULTIPLY, gni_of(softmax), gni_of(sum));
        made = gni_binary(s, GN_OP_SUBTRACT, gni_of(g), gni_of(taken));
    } else {
        gn_tensor *left = gni_binary(s, GN_OP_SUBTRACT, gni_of(g), gni_of(sum));
        made = gni_binary(s, GN_OP_MULTIPLY, gni_of(left), gni_of(y));
    }
    gradients[0] = gni_scope_is_ok(s) ? gni_cast(s, made, dtype) : NULL;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/*
 * y = (x - mean) r, with r = (mean of squares + eps)^-1/2:
 *
 *     r (g - mean(g) - y mean(g y)) - h y r^2 / n
 *
 * with the gradient h of r, where r itself is differentiated, and without mean(g) for what is not centered. Three reductions
 * of the row fewer than by the parts.
 */
static void standardize_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    const struct gni_standardize_details *details = frame->node->details;
    gn_tensor *y = frame->results[0], *scale = frame->results[1];
    gn_tensor *g = frame->given[0], *h = frame->given[1], *made = NULL;
    if (g != NULL) {
        gn_tensor *product = gni_binary(s, GN_OP_MULTIPLY, gni_of(g), gni_of(y));
        gn_tensor *mean = gni_scope_is_ok(s)
                              ? gni_reduce(s, GN_REDUCE_MEAN, product, details->dimensions, true)
                              : NULL;
        made = gni_binary(s, GN_OP_MULTIPLY, gni_of(y), gni_of(mean));
        made = gni_binary(s, GN_OP_SUBTRACT, gni_of(g), gni_of(made));
        if (details->is_centered && gni_scope_is_ok(s)) {
            mean = gni_reduce(s, GN_REDUCE_MEAN, g, details->dimensions, true);
            made = gni_binary(s, GN_OP_SUBTRACT, gni_of(made), gni_of(mean));
        }
        made = gni_binary(s, GN_OP_MULTIPLY, gni_of(made), gni_of(scale));
    }
    if (h != NULL) {
        double count = (double)gni_dims_count(y, details->dimensions);
        gn_tensor *part = gni_binary(s, GN_OP_MULTIPLY, gni_of(h), gni_of(scale));
        part = gni_binary(s, GN_OP_MULTIPLY, gni_of(part), gni_of(scale));
        part = gni_binary(s, GN_OP_MULTIPLY, gni_of(part), gni_floating(-1 / count));
        part = gni_binary(s, GN_OP_MULTIPLY, gni_of(y), gni_of(part));
        made = made != NULL ? gni_binary(s, GN_OP_ADD, gni_of(made), gni_of(part)) : part;
    }
    gradients[0] = made;
}

/* ---- matrix products --------------------------------------------------------------------------- */

/* The last two dimensions exchanged. */
static gn_tensor *turned(struct gni_scope *s, gn_tensor *x)
{
    return gni_scope_is_ok(s) ? gni_transpose(s, x, x->ndim - 2, x->ndim - 1) : NULL;
}

/* The rows of all matrices, as one matrix. */
static gn_tensor *rows_of(struct gni_scope *s, gn_tensor *x)
{
    int64_t rows = 1;
    if (!gni_scope_is_ok(s))
        return NULL;
    for (int i = 0; i < x->ndim - 1; i++)
        rows *= x->sizes[i];
    return gni_reshape(s, x, 2, (int64_t[]){rows, x->sizes[x->ndim - 1]});
}

/* a @ b: g @ b^T and a^T @ g. A vector is a row on the left and a column on the right. */
static void matmul_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *a = frame->inputs[0].tensor, *b = frame->inputs[1].tensor, *g = frame->given[0];
    bool is_row = (a != NULL ? a->ndim : frame->likes[0]->ndim) == 1;
    bool is_column = (b != NULL ? b->ndim : frame->likes[1]->ndim) == 1;
    if (is_row && a != NULL)
        a = gni_unsqueeze(s, a, 0);
    if (is_column && b != NULL)
        b = gni_scope_is_ok(s) ? gni_unsqueeze(s, b, 1) : NULL;
    if (is_column)
        g = gni_scope_is_ok(s) ? gni_unsqueeze(s, g, g->ndim) : NULL;
    if (is_row)
        g = gni_scope_is_ok(s) ? gni_unsqueeze(s, g, g->ndim - 1) : NULL;
    if (!gni_scope_is_ok(s))
        return;
    if ((frame->needed & 1) != 0) {
        gn_tensor *back = gni_matmul(s, g, turned(s, b));
        gradients[0] = is_row && gni_scope_is_ok(s) ? gni_squeeze(s, back, back->ndim - 2) : back;
    }
    if ((frame->needed & 2) != 0) {
        if (frame->likes[1]->ndim <= 2 && a->ndim > 2) { /* one product, and not a sum of many */
            a = rows_of(s, a);
            g = rows_of(s, g);
        }
        gn_tensor *back = gni_matmul(s, turned(s, a), g);
        gradients[1] =
            is_column && gni_scope_is_ok(s) ? gni_squeeze(s, back, back->ndim - 1) : back;
    }
}

/* ---- sums along a dimension -------------------------------------------------------------------- */

/* The sums of what is behind each element, with it. */
static gn_tensor *sums_behind(struct gni_scope *s, gn_tensor *x, int dim)
{
    uint32_t dims = x->ndim > 0 ? UINT32_C(1) << dim : 0;
    gn_tensor *back = NULL, *summed = NULL, *made = NULL;
    gn_status status = gn_flip(x, dims, &back);
    if (gni_scope_keep(s, status, back) == NULL)
        return NULL;
    status = gn_cumulate(back, dim, false, &summed);
    if (gni_scope_keep(s, status, summed) == NULL)
        return NULL;
    status = gn_flip(summed, dims, &made);
    return gni_scope_keep(s, status, made);
}

/* The sum of g times each product without the element, of those from the element on. */
static gn_tensor *cumprod_by_others(struct gni_scope *s, gn_tensor *x, gn_tensor *g, int dim)
{
    int last = x->ndim - 1;
    gn_tensor *rows = gni_move_dim(s, x, dim, last), *given = gni_move_dim(s, g, dim, last);
    gn_tensor *others = rows != NULL ? others_of(s, rows) : NULL;
    gn_tensor *products = cumulated(s, others, last + 1, true);
    gn_tensor *numbers = gni_arange(s, x->sizes[dim], x->device);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *is_behind =
        gni_binary(s, GN_OP_GREATER_EQUAL, gni_of(numbers), gni_of(gni_unsqueeze(s, numbers, 1)));
    gn_tensor *parts =
        gni_binary(s, GN_OP_MULTIPLY, gni_of(products), gni_of(gni_unsqueeze(s, given, last)));
    parts = gni_where(s, is_behind, gni_of(parts), gni_integer(0));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *sums = gni_reduce(s, GN_REDUCE_SUM, parts, UINT32_C(1) << (last + 1), false);
    return gni_move_dim(s, sums, last, dim);
}

/*
 * Each element is a factor of the products behind it. Before the first 0 of a row that is the sum of g y behind it,
 * divided by the element. At the first 0 it is the sum of g times the products without it. Behind, all products are 0.
 */
static gn_tensor *cumprod_gradient(const struct gni_rule_frame *frame, int dim)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *x = gni_wide(s, frame->inputs[0].tensor), *g = gni_wide(s, frame->given[0]);
    if (gni_scope_is_ok(s) && x->ndim > 0 && needs_others(s, x))
        return cumprod_by_others(s, x, g, dim);
    gn_tensor *is_zero =
        gni_scope_is_ok(s) ? gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_integer(0)) : NULL;
    gn_tensor *zeros = cumulated(s, is_zero, dim, false);
    gn_tensor *is_one = gni_binary(s, GN_OP_EQUAL, gni_of(zeros), gni_integer(1));
    gn_tensor *is_first = gni_binary(s, GN_OP_LOGICAL_AND, gni_of(is_zero), gni_of(is_one));
    gn_tensor *filled = gni_where(s, is_first, gni_integer(1), gni_of(x));
    gn_tensor *products = cumulated(s, filled, dim, true);
    gn_tensor *parts = gni_binary(s, GN_OP_MULTIPLY, gni_of(g), gni_of(products));
    gn_tensor *is_before = gni_binary(s, GN_OP_EQUAL, gni_of(zeros), gni_integer(0));
    gn_tensor *before = gni_where(s, is_before, gni_of(parts), gni_integer(0));
    gn_tensor *behind = gni_where(s, is_before, gni_integer(0), gni_of(parts));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *sums = sums_behind(s, before, dim), *own = NULL;
    if (sums != NULL)
        own = sums_behind(s, behind, dim);
    if (own == NULL)
        return NULL;
    gn_tensor *share = gni_binary(s, GN_OP_DIVIDE, gni_of(sums), gni_of(filled));
    gn_tensor *at_zero = gni_where(s, is_first, gni_of(own), gni_integer(0));
    return gni_where(s, is_before, gni_of(share), gni_of(at_zero));
}

static void cumulate_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_cumulate_details *details = frame->node->details;
    gradients[0] = details->is_product
                       ? cumprod_gradient(frame, details->dimension)
                       : sums_behind(frame->scope, frame->given[0], details->dimension);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Of a product each operand is read for the gradient of the other. */
static unsigned other_of(unsigned needed)
{
    return (needed >> 1 & 1) | (needed & 1) << 1;
}

unsigned gni_rule_saves(enum gni_rule rule, const void *details, unsigned saves, unsigned needed)
{
    if (rule == GNI_RULE_MATMUL || (rule == GNI_RULE_CONVOLUTION && saves != 0))
        return other_of(needed & 3);
    if (rule == GNI_RULE_ROW_SUMS)
        return 12 | other_of(needed & 3);
    if (rule != GNI_RULE_ELEMENTWISE)
        return saves;
    switch (((const struct gni_elementwise_details *)details)->op) {
    case GN_OP_MULTIPLY:
        return other_of(needed);
    case GN_OP_DIVIDE:
        return needed == 1 ? 2 : saves;
    case GN_OP_REMAINDER:
    case GN_OP_FMOD:
        return needed == 1 ? 0 : saves;
    case GN_OP_LERP:
        return (needed & 4) == 0 ? 4 : saves;
    default:
        return saves;
    }
}

struct gni_rule_row gni_rule_row(enum gni_rule rule, const void *details)
{
    static const struct gni_rule_row rows[GNI_RULE_COUNT] = {
        [GNI_RULE_ELEMENTWISE] = {.call = gni_elementwise_gradients},
        [GNI_RULE_CAST] = {.call = gni_same_gradient},
        [GNI_RULE_RESHAPE] = {.call = gni_reshape_gradient},
        [GNI_RULE_PERMUTE] = {.call = gni_permute_gradient},
        [GNI_RULE_EXPAND] = {.call = gni_same_gradient},
        [GNI_RULE_STRIDED] = {.call = gni_strided_gradient},
        [GNI_RULE_SPREAD] = {.call = gni_spread_gradient},
        [GNI_RULE_STRIDED_PUT] = {.call = gni_strided_put_gradient},
        [GNI_RULE_FLIP] = {.call = gni_flip_gradient},
        [GNI_RULE_REDUCE] = {.call = reduce_gradient},
        [GNI_RULE_KTH] = {.call = kth_gradient, .saves = 1, .saves_result = 1},
        [GNI_RULE_SOFTMAX] = {.call = softmax_gradient, .saves_result = 1},
        [GNI_RULE_CAT] = {.call = gni_cat_gradient},
        [GNI_RULE_PARTS] = {.call = gni_parts_gradient},
        [GNI_RULE_REPEAT] = {.call = gni_repeat_gradient},
        [GNI_RULE_CUMULATE] = {.call = cumulate_gradient},
        [GNI_RULE_PLACES] = {.call = gni_places_gradient, .saves = ~1U},
        [GNI_RULE_PLACES_BACK] = {.call = gni_places_back_gradient, .saves = ~1U},
        [GNI_RULE_PUT] = {.call = gni_put_gradient, .saves = ~3U},
        [GNI_RULE_FOLD] = {.call = gni_fold_gradient, .saves = 7, .saves_result = 1},
        [GNI_RULE_ROW_SUMS] = {.call = gni_row_sums_gradient, .saves = 15},
        [GNI_RULE_STANDARDIZE] = {.call = standardize_gradient, .saves_result = 3},
        [GNI_RULE_CLASS_LOSS] = {.call = gni_class_loss_gradient, .saves = 7, .saves_result = 2},
        [GNI_RULE_BINARY_LOSS] = {.call = gni_binary_loss_gradient, .saves = 3},
        [GNI_RULE_ALIGNMENTS] = {.call = gni_alignments_gradient, .saves = 1, .saves_result = 2},
        [GNI_RULE_CUSTOM] = {.call = gni_custom_gradients},
        [GNI_RULE_MATMUL] = {.call = matmul_gradient, .saves = 3},
        [GNI_RULE_CONVOLUTION] = {.call = gni_convolution_gradient, .saves = 3},
    };
    struct gni_rule_row row = rows[rule];
    if (rule >= GNI_RULE_CHOLESKY && rule <= GNI_RULE_LEAST_SQUARES)
        return gni_linalg_rule_row(rule);
    if (rule == GNI_RULE_ELEMENTWISE) {
        row.saves = gni_elementwise_saves(((const struct gni_elementwise_details *)details)->op);
        if (row.saves == GNI_NO_RULE)
            row = (struct gni_rule_row){0};
    }
    if (rule == GNI_RULE_REDUCE) {
        gn_reduction reduction = ((const struct gni_reduce_details *)details)->reduction;
        row.saves = reduction != GN_REDUCE_SUM && reduction != GN_REDUCE_MEAN;
    }
    if (rule == GNI_RULE_CONVOLUTION) {
        enum gni_convolution_kind kind = ((const struct gni_convolution *)details)->kind;
        row.saves = kind == GNI_CONV_UNFOLD || kind == GNI_CONV_FOLD ? 0 : 3;
    }
    if (rule == GNI_RULE_CUMULATE)
        row.saves = ((const struct gni_cumulate_details *)details)->is_product;
    return row;
}
