/*
 * functions_nn_attention.c: genesis.nn.functional: attention, written out: a product, a softmax, and another product.
 *
 * Mask, softmax and rounding are one row program between the products. Which keys are not to be seen follows from comparing
 * places where the attention is causal: there is no mask in memory. The query is scaled, so that products of halves do not
 * overflow.
 *
 * Halves are rounded as seldom as possible. Where products of halves are no faster, all of it is computed in float32, and
 * only the result is rounded. Elsewhere scores and weights are rounded once each, by the products.
 */
#include "ops/backend.h"
#include "ops/functions_nn.h"

#include <math.h>
#include <string.h>

struct attention {
    gn_tensor *query, *key, *value, *mask; /* the mask may be NULL */
    int64_t rows, columns, groups; /* queries, keys; heads of the query for each of the key */
    int64_t first;                 /* the place of the first query, where it is causal */
    double scale, dropout;
    bool is_causal;
};

enum {
    BLOCKS_MOST = 8, /* of queries, where the attention is causal */
};

/* The size of a dimension, counted from the end. */
static int64_t size_back(const gn_tensor *x, int place)
{
    return x->sizes[x->ndim - place];
}

/* ---- arguments --------------------------------------------------------------------------------- */

static void shapes_check(struct gni_scope *s, const struct attention *a)
{
    const gn_tensor *query = a->query, *key = a->key, *value = a->value;
    if (query->ndim < 2 || key->ndim < 2 || value->ndim < 2)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "query, key and value have shapes %s, %s and %s: at least two dimensions",
                       gni_shape_text(query->ndim, query->sizes).text,
                       gni_shape_text(key->ndim, key->sizes).text,
                       gni_shape_text(value->ndim, value->sizes).text);
    else if (size_back(query, 1) != size_back(key, 1) || size_back(key, 2) != size_back(value, 2))
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "query, key and value have shapes %s, %s and %s, not (*, L, E), (*, S, E) "
                       "and (*, S, V)",
                       gni_shape_text(query->ndim, query->sizes).text,
                       gni_shape_text(key->ndim, key->sizes).text,
                       gni_shape_text(value->ndim, value->sizes).text);
}

static void types_check(struct gni_scope *s, const struct attention *a)
{
    gn_dtype dtype = a->query->dtype;
    gni_floating_require(s, "query", a->query);
    if (a->key->dtype != dtype || a->value->dtype != dtype)
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "query, key and value are genesis.%s, genesis.%s and genesis.%s: all are "
                       "one type",
                       gni_dtypes[dtype].name, gni_dtypes[a->key->dtype].name,
                       gni_dtypes[a->value->dtype].name);
    if (a->mask != NULL && a->mask->dtype != GN_BOOL && a->mask->dtype != dtype &&
        a->mask->dtype != GN_FLOAT32)
        gni_scope_fail(s, GN_ERROR_TYPE, "attn_mask is bool or genesis.%s, not genesis.%s",
                       gni_dtypes[dtype].name, gni_dtypes[a->mask->dtype].name);
    if (a->mask != NULL && a->is_causal)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "attn_mask is None where is_causal=True");
    if (!(a->dropout >= 0 && a->dropout <= 1))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "dropout probability has to be between 0 and 1, but got %g", a->dropout);
}

/* Heads of the query for each head of the key. */
static int64_t groups_take(struct gni_scope *s, const struct attention *a)
{
    const gn_tensor *all[] = {a->query, a->key, a->value};
    bool has_heads = true;
    for (int i = 0; i < 3; i++)
        has_heads &= all[i]->ndim >= 3;
    int64_t heads = has_heads ? size_back(a->query, 3) : 0;
    int64_t own = has_heads ? size_back(a->key, 3) : 0;
    if (!has_heads || own < 1 || own != size_back(a->value, 3) || heads % own != 0)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "query, key and value have shapes %s, %s and %s: with enable_gqa the heads "
                       "(dimension -3) of the query are a multiple of those of key and value",
                       gni_shape_text(a->query->ndim, a->query->sizes).text,
                       gni_shape_text(a->key->ndim, a->key->sizes).text,
                       gni_shape_text(a->value->ndim, a->value->sizes).text);
    return gni_scope_is_ok(s) ? heads / own : 1;
}

static struct attention attention_take(struct gni_scope *s, const gn_argument *a)
{
    struct attention made = {.query = a[0].operand.tensor,
                             .key = a[1].operand.tensor,
                             .value = a[2].operand.tensor,
                             .mask = a[3].operand.tensor,
                             .groups = 1,
                             .dropout = gni_scalar_double(a[4].operand.scalar),
                             .is_causal = gni_is_set(&a[5])};
    types_check(s, &made);
    shapes_check(s, &made);
    if (!gni_scope_is_ok(s))
        return made;
    made.rows = size_back(made.query, 2);
    made.columns = size_back(made.key, 2);
    int64_t width = size_back(made.query, 1);
    made.scale = a[6].is_given ? gni_scalar_double(a[6].operand.scalar)
                 : width > 0   ? 1 / sqrt((double)width)
                               : 1;
    if (gni_is_set(&a[7]))
        made.groups = groups_take(s, &made);
    return made;
}

/* ---- scores ------------------------------------------------------------------------------------ */

/* So many heads of so many rows each, where heads are grouped: (*, heads, L, X) and (*, heads / groups, groups L, X) are
 * the same memory. */
static gn_tensor *heads_regroup(struct gni_scope *s, const struct attention *a, gn_tensor *x,
                                bool is_folded)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    if (!gni_scope_is_ok(s) || a->groups == 1)
        return x;
    memcpy(sizes, x->sizes, sizeof sizes);
    sizes[x->ndim - 3] = size_back(a->query, 3) / (is_folded ? a->groups : 1);
    sizes[x->ndim - 2] = a->rows * (is_folded ? a->groups : 1);
    return gni_reshape_values(s, x, x->ndim, sizes);
}

/* Which keys a query sees: those up to its own place. Both places are expanded to the shape of the scores, so that comparing
 * them is a step of the same program. */
static gn_tensor *causal_mask(struct gni_scope *s, const struct attention *a,
                              const gn_tensor *scores)
{
    int64_t end = a->first + a->rows, most = end > a->columns ? end : a->columns;
    gn_tensor *places = gni_cast(s, gni_arange(s, most, scores->device), GN_INT32);
    gn_tensor *rows = gni_unsqueeze(s, gni_narrow(s, places, 0, a->first, a->rows), 1);
    gn_tensor *columns = gni_narrow(s, places, 0, 0, a->columns);
    rows = gni_expand(s, rows, scores->ndim, scores->sizes);
    columns = gni_expand(s, columns, scores->ndim, scores->sizes);
    return gni_binary(s, GN_OP_GREATER_EQUAL, gni_of(rows), gni_of(columns));
}

/* Scores with what is not to be seen as -inf, in float32 for halves. */
static gn_tensor *scores_mask(struct gni_scope *s, const struct attention *a, gn_tensor *scores)
{
    gn_tensor *wide = gni_wide(s, scores), *mask = a->mask;
    if (!gni_scope_is_ok(s))
        return NULL;
    if (mask != NULL && mask->dtype != GN_BOOL)
        return gni_binary(s, GN_OP_ADD, gni_of(wide), gni_of(mask));
    if (a->is_causal)
        mask = causal_mask(s, a, wide);
    return mask != NULL ? gni_where(s, mask, gni_of(wide), gni_floating(-INFINITY)) : wide;
}

/* The softmax of rows. A row of -inf alone is 0. Whatever is subtracted, the result is the same: the largest element
 * needs no gradient. */
static gn_tensor *scores_softmax(struct gni_scope *s, gn_tensor *x)
{
    if (!gni_scope_is_ok(s) || x->count == 0)
        return x;
    uint32_t last = UINT32_C(1) << (x->ndim - 1);
    bool is_taped = gni_tape_enter(x);
    gn_tensor *largest = gni_reduce(s, GN_REDUCE_MAXIMUM, x, last, true);
    gn_tensor *is_hidden = gni_binary(s, GN_OP_EQUAL, gni_of(largest), gni_floating(-INFINITY));
    largest = gni_where(s, is_hidden, gni_integer(0), gni_of(largest));
    gni_tape_is_paused &= !is_taped;
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(x), gni_of(largest));
    gn_tensor *powers = gni_unary(s, GN_OP_EXP, apart);
    gn_tensor *sum = gni_reduce(s, GN_REDUCE_SUM, powers, last, true);
    sum = gni_where(s, is_hidden, gni_integer(1), gni_of(sum));
    return gni_binary(s, GN_OP_DIVIDE, gni_of(powers), gni_of(sum));
}

/* The weights of values, of scores. What they are made of is released before the product: what somebody holds would be
 * stored. */
static gn_tensor *weights_make(struct gni_scope *outer, const struct attention *a,
                               gn_tensor *scores, gn_generator *generator)
{
    struct gni_scope s = {.status = outer->status};
    gn_tensor *made = NULL;
    gn_tensor *weights = scores_softmax(&s, scores_mask(&s, a, scores));
    weights = gni_scope_is_ok(&s) ? gni_cast(&s, weights, a->query->dtype) : NULL;
    if (a->dropout > 0)
        weights = gni_dropout(&s, weights, a->dropout, generator);
    gn_status status = gni_scope_end(&s, weights, &made);
    return gni_scope_keep(outer, status, made);
}

/* Query times key: (*, L, S). */
static gn_tensor *scores_make(struct gni_scope *outer, const struct attention *a)
{
    struct gni_scope s = {.status = outer->status};
    gn_tensor *made = NULL;
    gn_tensor *query = gni_binary(&s, GN_OP_MULTIPLY, gni_of(a->query), gni_floating(a->scale));
    gn_tensor *key = gni_transpose(&s, a->key, a->key->ndim - 2, a->key->ndim - 1);
    query = heads_regroup(&s, a, query, true);
    gn_tensor *scores = heads_regroup(&s, a, gni_matmul(&s, query, key), false);
    gn_status status = gni_scope_end(&s, scores, &made);
    return gni_scope_keep(outer, status, made);
}

static gn_tensor *attend(struct gni_scope *s, const struct attention *a, gn_generator *generator)
{
    gn_tensor *weights = weights_make(s, a, scores_make(s, a), generator);
    weights = heads_regroup(s, a, weights, true);
    return heads_regroup(s, a, gni_matmul(s, weights, a->value), false);
}

/* Blocks of queries, one after the other, with the keys up to the last of them: the others are hidden from all of the
 * block. */
static gn_tensor *attend_by_blocks(struct gni_scope *s, const struct attention *a, int64_t size)
{
    gn_tensor *parts[BLOCKS_MOST];
    int count = 0;
    for (int64_t first = 0; first < a->rows && gni_scope_is_ok(s); first += size, count++) {
        struct attention part = *a;
        part.first = first;
        part.rows = a->rows - first < size ? a->rows - first : size;
        part.columns = first + part.rows < a->columns ? first + part.rows : a->columns;
        part.query = gni_narrow(s, a->query, a->query->ndim - 2, first, part.rows);
        part.key = gni_narrow(s, a->key, a->key->ndim - 2, 0, part.columns);
        part.value = gni_narrow(s, a->value, a->value->ndim - 2, 0, part.columns);
        parts[count] = gni_scope_is_ok(s) ? attend(s, &part, NULL) : NULL;
    }
    return gni_scope_is_ok(s) ? gni_cat(s, count, parts, parts[0]->ndim - 2) : NULL;
}

/* Halves become float32 where their products are made of float32 anyway. */
static void attention_widen(struct gni_scope *s, struct attention *a)
{
    if (gni_backend_get(a->query->device)->has_half_products)
        return;
    a->query = gni_wide(s, a->query);
    a->key = gni_wide(s, a->key);
    a->value = gni_wide(s, a->value);
}

/* How many queries are a block; 0: all are one. What is dropped is drawn at once. */
static int64_t block_size(const struct attention *a)
{
    int64_t least = gni_backend_get(a->query->device)->attention_rows;
    int64_t each = (a->rows + BLOCKS_MOST - 1) / BLOCKS_MOST;
    bool is_divided = a->is_causal && a->dropout == 0 && least > 0 && a->rows >= 2 * least &&
                      a->columns >= 2 * least;
    return !is_divided ? 0 : each > least ? each : least;
}

static gn_status attention_call(const gn_argument *arguments, gn_results *results)
{
    struct gni_scope s = {0};
    struct attention a = attention_take(&s, arguments);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    gn_dtype dtype = a.query->dtype;
    attention_widen(&s, &a);
    int64_t size = gni_scope_is_ok(&s) ? block_size(&a) : 0;
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(&s))
        made = size > 0 ? attend_by_blocks(&s, &a, size) : attend(&s, &a, arguments[8].generator);
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, dtype) : NULL, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

const gn_function gni_functions_nn_attention[] = {
    {"nn.scaled_dot_product_attention", NULL,
     "query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor = None, "
     "dropout_p: number = 0.0, is_causal: bool = False, *, scale: number = None, "
     "enable_gqa: bool = False, generator: generator = None",
     GN_FORM_BLAS, attention_call,
     "softmax(query @ key.T * scale) @ value.\n\n"
     "A mask of bool says which keys a query sees, and another one is added before the softmax;\n"
     "with ``is_causal=True`` query i sees the keys up to i. A query that sees nothing gives 0.\n"
     "The scale is 1 over the root of the last dimension if it is not given. With\n"
     "``enable_gqa=True`` several heads of the query share one of key and value.",
     ">>> x = genesis.tensor([[1.0, 0.0], [0.0, 1.0]])\n"
     ">>> genesis.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[0]\n"
     "tensor([1., 0.])"},
    {0},
};
