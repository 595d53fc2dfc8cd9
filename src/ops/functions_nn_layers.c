/*
 * functions_nn_layers.c: genesis.nn.functional: linear layers, lengths and distances.
 */
#include "ops/functions_nn.h"

/* ---- products ---------------------------------------------------------------------------------- */

/* Fails unless a tensor has the type that the input has. */
static void type_require(struct gni_scope *s, const gn_tensor *input, const char *name,
                         const gn_tensor *x)
{
    if (x->dtype != input->dtype)
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "input is genesis.%s, and %s genesis.%s: both are one type",
                       gni_dtypes[input->dtype].name, name, gni_dtypes[x->dtype].name);
}

static void linear_check(struct gni_scope *s, const gn_tensor *input, const gn_tensor *weight,
                         const gn_tensor *bias)
{
    int columns = weight->ndim - 1;
    type_require(s, input, "weight", weight);
    if (bias != NULL)
        type_require(s, input, "bias", bias);
    if (weight->ndim != 1 && weight->ndim != 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "the weight has shape %s: it has one or two dimensions",
                       gni_shape_text(weight->ndim, weight->sizes).text);
    if (gni_scope_is_ok(s) &&
        (input->ndim == 0 || input->sizes[input->ndim - 1] != weight->sizes[columns]))
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "input has shape %s, and weight %s: their last dimensions are equal",
                       gni_shape_text(input->ndim, input->sizes).text,
                       gni_shape_text(weight->ndim, weight->sizes).text);
    bool is_row =
        bias != NULL && weight->ndim == 2 &&
        (bias->ndim == 0 ||
         (bias->ndim == 1 && (bias->sizes[0] == weight->sizes[0] || bias->sizes[0] == 1)));
    if (gni_scope_is_ok(s) && bias != NULL && weight->ndim == 2 && bias->ndim < 2 && !is_row)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "the bias has shape %s: it has %lld elements, as weight "
                       "has rows",
                       gni_shape_text(bias->ndim, bias->sizes).text, (long long)weight->sizes[0]);
}

static gn_status linear_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *weight = a[1].operand.tensor;
    gn_tensor *bias = a[2].operand.tensor, *made = NULL;
    linear_check(&s, input, weight, bias);
    if (gni_scope_is_ok(&s) && weight->ndim == 2)
        weight = gni_transpose(&s, weight, 0, 1);
    if (bias == NULL || !gni_scope_is_ok(&s))
        return gni_scope_give(&s, gni_matmul(&s, input, weight), results);
    gn_status status = gn_matmul_add(input, weight, bias, &made);
    return gni_scope_give(&s, gni_scope_keep(&s, status, made), results);
}

static void bilinear_check(struct gni_scope *s, const gn_argument *a)
{
    static const char *const names[] = {"input1", "input2", "weight", "bias"};
    const gn_tensor *x = a[0].operand.tensor, *y = a[1].operand.tensor;
    const gn_tensor *weight = a[2].operand.tensor, *bias = a[3].operand.tensor;
    gni_floating_require(s, "input1", x);
    for (int i = 1; i < 4; i++)
        if (a[i].is_given)
            type_require(s, x, names[i], a[i].operand.tensor);
    if (weight->ndim != 3 || x->ndim == 0 || x->ndim != y->ndim ||
        !gni_shape_is_equal(x->ndim - 1, x->sizes, y->ndim - 1, y->sizes) ||
        x->sizes[x->ndim - 1] != weight->sizes[1] || y->sizes[y->ndim - 1] != weight->sizes[2])
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "shapes %s, %s and %s: (*, a), (*, b) and a weight of (results, a, b)",
                       gni_shape_text(x->ndim, x->sizes).text,
                       gni_shape_text(y->ndim, y->sizes).text,
                       gni_shape_text(weight->ndim, weight->sizes).text);
    if (gni_scope_is_ok(s) && bias != NULL &&
        (bias->ndim != 1 || bias->sizes[0] != weight->sizes[0]))
        gni_scope_fail(s, GN_ERROR_SHAPE, "the bias has shape %s, not (%lld,)",
                       gni_shape_text(bias->ndim, bias->sizes).text, (long long)weight->sizes[0]);
}

/* A product with one of the inputs, of (*, a) and (a, results b); the other one is summed over in each row. */
static gn_status bilinear_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *y = a[1].operand.tensor, *weight = a[2].operand.tensor;
    bilinear_check(&s, a);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    const int64_t *sizes = weight->sizes;
    const int64_t flat[] = {sizes[1], sizes[0] * sizes[2]};
    gn_tensor *turned = gni_permute(&s, weight, (const int[]){1, 0, 2});
    gn_tensor *made = gni_matmul(&s, x, gni_reshape(&s, turned, 2, flat));
    int64_t parts[GN_DIMENSIONS_MAX + 1];
    for (int i = 0; i < x->ndim - 1; i++)
        parts[i] = x->sizes[i];
    parts[x->ndim - 1] = sizes[0];
    parts[x->ndim] = sizes[2];
    if (gni_scope_is_ok(&s) && x->ndim == GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input1 has at most %d dimensions",
                       GN_DIMENSIONS_MAX - 1);
    made = gni_wide(&s, gni_view(&s, made, x->ndim + 1, parts));
    gn_tensor *other = gni_wide(&s, gni_unsqueeze(&s, y, y->ndim - 1));
    made = gni_binary(&s, GN_OP_MULTIPLY, gni_of(made), gni_of(other));
    made = gni_reduce(&s, GN_REDUCE_SUM, made, UINT32_C(1) << x->ndim, false);
    if (a[3].is_given)
        made = gni_binary(&s, GN_OP_ADD, gni_of(made), gni_of(gni_wide(&s, a[3].operand.tensor)));
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

/* ---- lengths and distances --------------------------------------------------------------------- */

static gn_status normalize_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    double p = gni_scalar_double(a[1].operand.scalar);
    gn_argument dim = a[2];
    if (dim.integers == NULL) { /* one integer */
        dim.integers = &dim.operand.scalar.integer;
        dim.count = 1;
    }
    gni_floating_require(&s, "input", x);
    uint32_t dims = gni_dims(&s, x, &dim);
    gn_tensor *wide = gni_wide(&s, x);
    gn_tensor *length = gni_vector_norm(&s, wide, p, dims, true);
    length = gni_scope_is_ok(&s) ? gni_cast(&s, length, wide->dtype) : NULL;
    length = gni_binary(&s, GN_OP_MAXIMUM, gni_of(length), a[3].operand);
    gn_tensor *made = gni_binary(&s, GN_OP_DIVIDE, gni_of(wide), gni_of(length));
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

static gn_status pairwise_distance_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    gn_dtype dtype = gni_join(&s, 2, in, true);
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, in[0], in[1]);
    if (gni_scalar_double(a[3].operand.scalar) != 0)
        apart = gni_binary(&s, GN_OP_ADD, gni_of(apart), a[3].operand);
    if (gni_scope_is_ok(&s) && apart->ndim == 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "x1 and x2 have at least one dimension");
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    uint32_t last = UINT32_C(1) << (apart->ndim - 1);
    double p = gni_scalar_double(a[2].operand.scalar);
    gn_tensor *made = gni_vector_norm(&s, apart, p, last, gni_is_set(&a[4]));
    return gni_scope_give(&s, gni_cast(&s, made, dtype), results);
}

/* The indices of a pair of rows, of each pair: first those of row 0 and others. */
static gn_tensor *pairs_take(struct gni_scope *s, gn_tensor *places, bool is_first)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    const int64_t sizes[] = {places->count, places->count};
    gn_tensor *rows = gni_unsqueeze(s, places, 1);
    gn_tensor *is_pair = gni_binary(s, GN_OP_LESS, gni_of(rows), gni_of(places));
    return gni_index_at(s, gni_expand(s, is_first ? rows : places, 2, sizes), is_pair);
}

static gn_status pdist_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    double p = gni_scalar_double(a[1].operand.scalar);
    gni_floating_require(&s, "input", x);
    if (x->ndim != 2)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input has shape %s: it has two dimensions",
                       gni_shape_text(x->ndim, x->sizes).text);
    if (!(p >= 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "p is not negative: %g", p);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    gn_tensor *places = gni_arange(&s, x->sizes[0], x->device), *wide = gni_wide(&s, x);
    gn_tensor *first = gni_index_select(&s, wide, 0, pairs_take(&s, places, true));
    gn_tensor *second = gni_index_select(&s, wide, 0, pairs_take(&s, places, false));
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(first), gni_of(second));
    gn_tensor *made = gni_scope_is_ok(&s) ? gni_vector_norm(&s, apart, p, 2, false) : NULL;
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, x->dtype) : NULL, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

const gn_function gni_functions_nn_layers[] = {
    {"nn.linear", NULL, "input: Tensor, weight: Tensor, bias: Tensor = None", GN_FORM_BLAS,
     linear_call, "input @ weight.T + bias.",
     ">>> genesis.nn.functional.linear(genesis.ones(1, 3), genesis.ones(2, 3)).tolist()\n"
     "[[3.0, 3.0]]"},
    {"nn.bilinear", NULL, "input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor = None",
     GN_FORM_BLAS, bilinear_call,
     "input1 @ weight[k] @ input2, and the bias, for each k.\n\n"
     "The inputs have shapes (*, a) and (*, b), and the weight (results, a, b).",
     ">>> x, y = genesis.ones(4, 2), genesis.ones(4, 3)\n"
     ">>> genesis.nn.functional.bilinear(x, y, genesis.ones(5, 2, 3)).shape\n(4, 5)"},
    {"nn.normalize", NULL,
     "input: Tensor, p: number = 2.0, dim: number|sizes = 1, eps: number = 1e-12", GN_FORM_OUT,
     normalize_call,
     "The elements over the norm of them along dimensions, or over `eps` where that is less.",
     ">>> genesis.nn.functional.normalize(genesis.tensor([[3.0, 4.0]]))\n"
     "tensor([[0.6000, 0.8000]])"},
    {"nn.pairwise_distance", NULL,
     "x1: Tensor, x2: Tensor, p: number = 2.0, eps: number = 1e-6, keepdim: bool = False", 0,
     pairwise_distance_call, "The p-norm of ``x1 - x2 + eps`` along the last dimension.",
     ">>> x, y = genesis.tensor([[0.0, 0.0]]), genesis.tensor([[3.0, 4.0]])\n"
     ">>> genesis.nn.functional.pairwise_distance(x, y)\ntensor([5.0000])"},
    {"nn.pdist", NULL, "input: Tensor, p: number = 2.0", 0, pdist_call,
     "The p-norm of the difference of each pair of rows, in the order of the pairs.",
     ">>> genesis.nn.functional.pdist(genesis.tensor([[0.0, 0.0], [3.0, 4.0]]))\ntensor([5.])"},
    {0},
};
