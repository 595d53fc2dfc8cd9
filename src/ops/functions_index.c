/*
 * functions_index.c: elements by their places: gathering, searching, counting, and what is there only once.
 */
#include "ops/functions.h"
#include "ops/promote.h"

#include "tensor/shape.h"

#include <math.h>
#include <string.h>

/* ---- along one dimension ----------------------------------------------------------------------- */

static gn_tensor *gather(struct gni_scope *s, gn_tensor *x, int64_t dim, gn_tensor *index)
{
    static const int64_t one = 1;
    gn_tensor *made = NULL;
    if (x->ndim == 0 && index->ndim > 0)
        x = gni_view(s, x, 1, &one);
    if (!gni_scope_is_ok(s))
        return NULL;
    int at = gni_dim(s, x, dim);
    gn_status status = gni_scope_is_ok(s) ? gn_gather(x, at, index, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

static gn_status gather_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made =
        gather(&s, a[0].operand.tensor, a[1].operand.scalar.integer, a[2].operand.tensor);
    return gni_scope_give(&s, made, results);
}

static gn_status index_select_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    int dim = gni_dim(&s, a[0].operand.tensor, a[1].operand.scalar.integer);
    return gni_scope_give(&s, gni_index_select(&s, a[0].operand.tensor, dim, a[2].operand.tensor),
                          results);
}

static gn_tensor *flat_of(struct gni_scope *s, gn_tensor *x)
{
    return gni_scope_is_ok(s) ? gni_reshape(s, x, 1, &x->count) : NULL;
}

static gn_tensor *take(struct gni_scope *s, gn_tensor *x, gn_tensor *index)
{
    gn_tensor *made = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_take(x, index, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

/* The indices in one dimension, and in the others every place: these broadcast. */
static gn_tensor *take_along(struct gni_scope *s, gn_tensor *x, gn_tensor *indices, int dim)
{
    gn_key keys[GN_DIMENSIONS_MAX];
    gn_tensor *made = NULL;
    for (int i = 0; i < x->ndim; i++) {
        int64_t sizes[GN_DIMENSIONS_MAX];
        for (int k = 0; k < x->ndim; k++)
            sizes[k] = k == i ? x->sizes[i] : 1;
        gn_tensor *key =
            i == dim ? indices : gni_view(s, gni_arange(s, x->sizes[i], x->device), x->ndim, sizes);
        keys[i] = (gn_key){.kind = GN_KEY_TENSOR, .tensor = key};
    }
    gn_status status = gni_scope_is_ok(s) ? gn_index_get(x, x->ndim, keys, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

static gn_status take_along_dim_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *indices = a[1].operand.tensor, *made = NULL;
    if (!a[2].is_given)
        return gni_scope_give(&s, take(&s, x, flat_of(&s, indices)), results);
    int dim = gni_dim(&s, x, a[2].operand.scalar.integer);
    if (indices->ndim != x->ndim)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "shapes %s and %s have different numbers of dimensions",
                       gni_shape_text(x->ndim, x->sizes).text,
                       gni_shape_text(indices->ndim, indices->sizes).text);
    if (gni_scope_is_ok(&s))
        made = x->ndim > 0 ? take_along(&s, x, indices, dim) : gni_clone(&s, x);
    return gni_scope_give(&s, made, results);
}

/* ---- of all elements --------------------------------------------------------------------------- */

static gn_status take_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, take(&s, a[0].operand.tensor, a[1].operand.tensor), results);
}

static gn_status masked_select_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = NULL;
    gn_status status = gn_masked_select(a[0].operand.tensor, a[1].operand.tensor, &made);
    return gni_scope_give(&s, gni_scope_keep(&s, status, made), results);
}

static gn_tensor *nonzero(struct gni_scope *s, gn_tensor *x)
{
    gn_tensor *made = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_nonzero(x, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

static gn_status nonzero_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *columns[GN_DIMENSIONS_MAX] = {NULL};
    if (a[1].operand.scalar.integer == 0)
        return gni_scope_give(&s, nonzero(&s, x), results);
    if (x->ndim == 0) /* counts as one of one element */
        x = gni_unsqueeze(&s, x, 0);
    gn_tensor *places = nonzero(&s, x);
    int count = gni_scope_is_ok(&s) ? (int)places->sizes[1] : 0;
    for (int i = 0; i < count; i++)
        columns[i] = gni_select(&s, places, 1, i);
    results->is_tuple = true;
    return gni_scope_give_list(&s, count, columns, results);
}

static gn_status argwhere_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, nonzero(&s, a[0].operand.tensor), results);
}

/* ---- sorted sequences -------------------------------------------------------------------------- */

static gn_tensor *search(struct gni_scope *s, gn_tensor *sequence, gn_tensor *values, bool is_right,
                         bool is_int32)
{
    gn_tensor *made = gni_searchsorted(s, sequence, values, is_right);
    return is_int32 ? gni_cast(s, made, GN_INT32) : made;
}

static gn_status searchsorted_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *sequence = a[0].operand.tensor;
    bool is_right = a[2].operand.scalar.integer != 0;
    const char *side = a[3].text;
    bool is_word =
        side == NULL || strcmp(side, "right") == 0 || (strcmp(side, "left") == 0 && !is_right);
    if (!is_word)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "side='%s', right=%s: it is 'left' or 'right'",
                       side, is_right ? "True" : "False");
    if (gni_scope_is_ok(&s) && a[5].is_given)
        sequence = gather(&s, sequence, -1, a[5].operand.tensor);
    is_right |= side != NULL && strcmp(side, "right") == 0;
    return gni_scope_give(
        &s, search(&s, sequence, a[1].operand.tensor, is_right, a[4].operand.scalar.integer != 0),
        results);
}

static gn_status bucketize_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s,
                          search(&s, a[1].operand.tensor, a[0].operand.tensor,
                                 a[3].operand.scalar.integer != 0,
                                 a[2].operand.scalar.integer != 0),
                          results);
}

/* Whether elements are among others, of the same type: by comparing with each, or by searching. */
static gn_tensor *find_among(struct gni_scope *s, gn_tensor *x, gn_tensor *among)
{
    enum {
        FEW = 12 /* numbers that are compared one by one faster than they are searched for */
    };
    gn_tensor *found = NULL, *sorted = NULL;
    if (among->count <= FEW) {
        for (int64_t i = 0; i < among->count; i++) {
            gn_tensor *one = gni_select(s, among, 0, i);
            gn_tensor *is_one = gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_of(one));
            found =
                i == 0 ? is_one : gni_binary(s, GN_OP_LOGICAL_OR, gni_of(found), gni_of(is_one));
        }
        return found;
    }
    gn_status status = gni_scope_is_ok(s) ? gn_sort(among, 0, false, &sorted, NULL) : s->status;
    sorted = gni_scope_keep(s, status, sorted);
    gn_tensor *place = gni_searchsorted(s, sorted, x, false);
    place = gni_binary(s, GN_OP_MINIMUM, gni_of(place), gni_integer(among->count - 1));
    return gni_binary(s, GN_OP_EQUAL, gni_of(take(s, sorted, place)), gni_of(x));
}

static gn_status isin_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *among = flat_of(&s, a[1].operand.tensor), *found = NULL;
    bool is_inverted = a[3].operand.scalar.integer != 0;
    if (gni_scope_is_ok(&s) && among->count == 0) {
        gn_scalar none = {.kind = GN_BOOL};
        found = gni_full(&s, none, GN_BOOL, x->ndim, x->sizes, x->device);
    } else if (gni_scope_is_ok(&s)) {
        /* A tensor of one element counts as any other: 300 is not among numbers of int8. */
        gn_dtype dtype = GN_BOOL;
        s.status = gni_promote_types(x->dtype, among->dtype, &dtype);
        x = gni_cast(&s, x, dtype);
        among = gni_cast(&s, among, dtype);
        found = gni_scope_is_ok(&s) ? find_among(&s, x, among) : NULL;
    }
    if (is_inverted)
        found = gni_unary(&s, GN_OP_LOGICAL_NOT, found);
    return gni_scope_give(&s, found, results);
}

/* ---- counting ---------------------------------------------------------------------------------- */

static gn_status bincount_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(
        &s, gni_bincount(&s, a[0].operand.tensor, a[1].operand.tensor, a[2].operand.scalar.integer),
        results);
}

/* The range of a histogram: that which is given, or that of the elements where both ends are 0. */
static void histc_range(struct gni_scope *s, gn_tensor *x, double *low, double *high)
{
    if (*low == 0 && *high == 0 && gni_scope_is_ok(s) && x->count > 0) {
        *low = gni_scalar_double(gni_item(s, gni_reduce(s, GN_REDUCE_MINIMUM, x, 0, false)));
        *high = gni_scalar_double(gni_item(s, gni_reduce(s, GN_REDUCE_MAXIMUM, x, 0, false)));
    }
    if (!isfinite(*low) || !isfinite(*high))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "the range from %s to %s is not finite",
                       gni_number_text(gni_floating(*low).scalar).text,
                       gni_number_text(gni_floating(*high).scalar).text);
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
}

static gn_status histc_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor;
    int64_t bins = a[1].operand.scalar.integer;
    double low = gni_scalar_double(a[2].operand.scalar);
    double high = gni_scalar_double(a[3].operand.scalar);
    if (bins < 1 || high < low)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "bins is at least 1 and max not below min, not %lld, %s and %s",
                       (long long)bins, gni_number_text(a[2].operand.scalar).text,
                       gni_number_text(a[3].operand.scalar).text);
    gn_tensor *x = gni_cast(&s, flat_of(&s, input), GN_FLOAT64);
    histc_range(&s, x, &low, &high);
    gn_tensor *is_in =
        gni_binary(&s, GN_OP_LOGICAL_AND,
                   gni_of(gni_binary(&s, GN_OP_GREATER_EQUAL, gni_of(x), gni_floating(low))),
                   gni_of(gni_binary(&s, GN_OP_LESS_EQUAL, gni_of(x), gni_floating(high))));
    x = gni_index_at(&s, x, is_in);
    x = gni_binary(&s, GN_OP_SUBTRACT, gni_of(x), gni_floating(low));
    x = gni_binary(&s, GN_OP_MULTIPLY, gni_of(x), gni_floating((double)bins / (high - low)));
    gn_operand bounds[] = {gni_of(gni_cast(&s, x, GN_INT64)), gni_integer(0),
                           gni_integer(bins - 1)};
    gn_tensor *place = gni_elementwise(&s, GN_OP_CLAMP, 3, bounds);
    gn_tensor *counts = gni_bincount(&s, place, NULL, bins);
    return gni_scope_give(&s, gni_cast(&s, counts, input->dtype), results);
}

/* ---- repetitions ------------------------------------------------------------------------------- */

/* Each slice of a dimension so often as the counts say, which broadcast. */
static gn_tensor *repeat_by_counts(struct gni_scope *s, gn_tensor *x, gn_tensor *counts, int dim)
{
    int64_t length = x->ndim > 0 ? x->sizes[dim] : 1, total = 0;
    counts = flat_of(s, counts);
    if (gni_scope_is_ok(s) && counts->count > 0 &&
        gni_scalar_double(gni_item(s, gni_reduce(s, GN_REDUCE_MINIMUM, counts, 0, false))) < 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "counts are not negative");
    gn_tensor *ends = gni_cast(s, gni_cumsum(s, gni_expand(s, counts, 1, &length), 0), GN_INT64);
    if (length > 0) {
        gn_tensor *wide = gni_cast(s, gni_expand(s, counts, 1, &length), GN_FLOAT64);
        gn_scalar sum = gni_item(s, gni_reduce(s, GN_REDUCE_SUM, wide, 0, false));
        if (gni_scope_is_ok(s) && sum.floating >= 0x1p63)
            gni_scope_fail(s, GN_ERROR_SHAPE, "there are more elements than a tensor can have");
        total = (int64_t)gni_scalar_double(gni_item(s, gni_select(s, ends, 0, length - 1)));
    }
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *places = gni_searchsorted(s, ends, gni_arange(s, total, x->device), true);
    return gni_index_select(s, x, dim, places);
}

static gn_status repeat_interleave_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *counts = a[1].operand.tensor, *made = NULL;
    int dim = 0;
    if (!a[1].is_given) { /* of counts alone: each place that often */
        if (x->ndim == 0)
            gni_scope_fail(&s, GN_ERROR_SHAPE, "counts have one dimension");
        counts = x;
        x = gni_scope_is_ok(&s) ? gni_arange(&s, x->sizes[0], x->device) : NULL;
    } else if (a[2].is_given) {
        dim = gni_dim(&s, x, a[2].operand.scalar.integer);
    } else if (x->ndim != 1) {
        x = flat_of(&s, x);
    }
    if (gni_scope_is_ok(&s) && counts != NULL)
        made = repeat_by_counts(&s, x, counts, dim);
    else if (gni_scope_is_ok(&s)) {
        gn_status status = gn_repeat_interleave(x, dim, a[1].operand.scalar.integer, &made);
        made = gni_scope_keep(&s, status, made);
    }
    return gni_scope_give(&s, made, results);
}

/* ---- what is there only once ------------------------------------------------------------------- */

/* Where each element is among the different ones. */
static gn_tensor *inverse_of(struct gni_scope *s, gn_tensor *x)
{
    gn_tensor *values = NULL, *inverse = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_unique(x, &values, &inverse, NULL) : s->status;
    (void)gni_scope_keep(s, status, values);
    return gni_scope_keep(s, status, inverse);
}

/* A number for each row of a matrix, the same for equal ones, and ascending with them. */
static gn_status rows_number(gn_tensor *rows, gn_tensor **numbers)
{
    gn_scalar zero = {.kind = GN_INT64};
    GN_TRY(gn_full(zero, GN_INT64, 1, rows->sizes, rows->device, numbers));
    for (int64_t i = 0; i < rows->sizes[1]; i++) {
        struct gni_scope s = {0}; /* one for each column: of many, not all are kept */
        gn_tensor *next = NULL, *column = inverse_of(&s, gni_select(&s, rows, 1, i));
        gn_tensor *both =
            gni_binary(&s, GN_OP_MULTIPLY, gni_of(*numbers), gni_integer(rows->sizes[0]));
        both = gni_binary(&s, GN_OP_ADD, gni_of(both), gni_of(column));
        gn_status status = gni_scope_end(&s, inverse_of(&s, both), &next);
        gn_tensor_release(*numbers);
        *numbers = next;
        if (status != GN_OK)
            return status;
    }
    return GN_OK;
}

/* The first of equal slices of a dimension, where each slice is among them, and how often they occur. */
static void unique_slices(struct gni_scope *s, gn_tensor *x, int dim, gn_tensor *made[3])
{
    gn_tensor *rows = gni_move_dim(s, x->ndim > 0 ? x : gni_unsqueeze(s, x, 0), dim, 0);
    if (!gni_scope_is_ok(s))
        return;
    int64_t length = rows->sizes[0], sizes[] = {length, rows->count / (length > 0 ? length : 1)};
    gn_tensor *numbers = NULL, *order = NULL;
    rows = gni_reshape(s, rows, 2, sizes);
    gn_status status = gni_scope_is_ok(s) ? rows_number(rows, &numbers) : s->status;
    numbers = gni_scope_keep(s, status, numbers);
    made[1] = numbers;
    made[2] = gni_bincount(s, numbers, NULL, 0);
    status = gni_scope_is_ok(s) ? gn_sort(numbers, 0, false, NULL, &order) : s->status;
    order = gni_scope_keep(s, status, order);
    gn_tensor *begin =
        gni_binary(s, GN_OP_SUBTRACT, gni_of(gni_cumsum(s, made[2], 0)), gni_of(made[2]));
    made[0] = gni_index_select(s, x, dim, gni_index_select(s, order, 0, begin));
}

/* The first of three results, and those of the others that are wanted. */
static gn_status unique_give(struct gni_scope *s, gn_tensor *made[3], bool has_inverse,
                             bool has_counts, gn_results *results)
{
    gn_tensor *list[3] = {made[0], has_inverse ? made[1] : made[2], made[2]};
    return gni_scope_give_list(s, 1 + has_inverse + has_counts, list, results);
}

static gn_status unique_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made[3] = {NULL};
    bool has_inverse = a[2].operand.scalar.integer != 0,
         has_counts = a[3].operand.scalar.integer != 0;
    if (a[4].is_given) {
        int dim = gni_dim(&s, x, a[4].operand.scalar.integer);
        if (gni_scope_is_ok(&s))
            unique_slices(&s, x, dim, made);
        return unique_give(&s, made, has_inverse, has_counts, results);
    }
    gn_status status =
        gn_unique(x, &made[0], has_inverse ? &made[1] : NULL, has_counts ? &made[2] : NULL);
    for (int i = 0; i < 3; i++)
        if (status != GN_OK || made[i] != NULL)
            made[i] = gni_scope_keep(&s, status, made[i]);
    return unique_give(&s, made, has_inverse, has_counts, results);
}

/* Whether each row differs from the one before; the first does. */
static gn_tensor *is_new_row(struct gni_scope *s, gn_tensor *rows)
{
    gn_scalar yes = {.kind = GN_BOOL, .integer = 1};
    int64_t length = rows->sizes[0], one = length > 0;
    gn_tensor *first = gni_full(s, yes, GN_BOOL, 1, &one, rows->device);
    if (length < 2)
        return first;
    gn_tensor *is_other =
        gni_binary(s, GN_OP_NOT_EQUAL, gni_of(gni_narrow(s, rows, 0, 1, length - 1)),
                   gni_of(gni_narrow(s, rows, 0, 0, length - 1)));
    if (rows->ndim > 1)
        is_other = gni_reduce(s, GN_REDUCE_ANY, is_other, (UINT32_C(1) << rows->ndim) - 2, false);
    return gni_cat(s, 2, (gn_tensor *[]){first, is_other}, 0);
}

static gn_status unique_consecutive_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made[3] = {NULL};
    bool has_dim = a[3].is_given;
    int dim = has_dim ? gni_dim(&s, x, a[3].operand.scalar.integer) : 0;
    gn_tensor *rows = has_dim && x->ndim > 0 ? gni_move_dim(&s, x, dim, 0) : flat_of(&s, x);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    gn_tensor *is_new = is_new_row(&s, rows);
    gn_tensor *kept = gni_index_at(&s, rows, is_new);
    made[0] = has_dim && x->ndim > 0 ? gni_move_dim(&s, kept, 0, dim) : kept;
    gn_tensor *number =
        gni_binary(&s, GN_OP_SUBTRACT, gni_of(gni_cumsum(&s, is_new, 0)), gni_integer(1));
    made[1] = has_dim ? number : gni_view(&s, number, x->ndim, x->sizes);
    if (a[2].operand.scalar.integer != 0)
        made[2] = gni_bincount(&s, number, NULL, 0);
    return unique_give(&s, made, a[1].operand.scalar.integer != 0, a[2].operand.scalar.integer != 0,
                       results);
}

/* ---- places of a matrix ------------------------------------------------------------------------ */

static gn_status triangle(const gn_argument *a, gn_op op, gn_results *results)
{
    struct gni_scope s = {0};
    int64_t rows = a[0].operand.scalar.integer, columns = a[1].operand.scalar.integer;
    gn_tensor *row = gni_arange(&s, rows > 0 ? rows : 0, a[4].device);
    gn_tensor *column = gni_arange(&s, columns > 0 ? columns : 0, a[4].device);
    gn_tensor *distance =
        gni_binary(&s, GN_OP_SUBTRACT, gni_of(column), gni_of(gni_unsqueeze(&s, row, 1)));
    gn_tensor *places = nonzero(&s, gni_binary(&s, op, gni_of(distance), a[2].operand));
    places = gni_clone(&s, gni_transpose(&s, places, 0, 1));
    return gni_scope_give(&s, a[3].is_given ? gni_cast(&s, places, a[3].dtype) : places, results);
}

static gn_status tril_indices_call(const gn_argument *a, gn_results *results)
{
    return triangle(a, GN_OP_LESS_EQUAL, results);
}

static gn_status triu_indices_call(const gn_argument *a, gn_results *results)
{
    return triangle(a, GN_OP_GREATER_EQUAL, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    OF_TENSOR = GN_FORM_METHOD | GN_FORM_OUT,
};

const gn_function gni_functions_index[] = {
    {"gather", NULL, "input: Tensor, dim: dim, index: data", OF_TENSOR, gather_call,
     "Elements along a dimension: ``result[i][j] = input[i][index[i][j]]`` for ``dim=1``.",
     ">>> x = genesis.tensor([[1, 2], [3, 4]])\n"
     ">>> genesis.gather(x, 1, genesis.tensor([[0, 0], [1, 0]]))\n"
     "tensor([[1, 1],\n        [4, 3]])"},
    {"index_select", NULL, "input: Tensor, dim: dim, index: data", OF_TENSOR, index_select_call,
     "The slices of a dimension that an index names, in its order.",
     ">>> genesis.index_select(genesis.tensor([[1, 2], [3, 4]]), 1, genesis.tensor([1]))\n"
     "tensor([[2],\n        [4]])"},
    {"take_along_dim", "take_along_axis", "input: Tensor, indices: data, dim: dim = None",
     OF_TENSOR, take_along_dim_call,
     "Elements along a dimension by indices such as argsort() gives, the two broadcast "
     "together.\n\n"
     "Without a dimension the elements are those of all of the tensor, in row-major order. "
     "Negative\n"
     "indices count from the end.",
     ">>> x = genesis.tensor([[3, 1, 2], [6, 5, 4]])\n"
     ">>> genesis.take_along_dim(x, x.argsort(1), 1)\n"
     "tensor([[1, 2, 3],\n        [4, 5, 6]])"},
    {"take", NULL, "input: Tensor, index: data", OF_TENSOR, take_call,
     "Elements by their number in row-major order; negative ones count from the end.",
     ">>> genesis.take(genesis.tensor([[1, 2], [3, 4]]), genesis.tensor([3, 0, -2]))\n"
     "tensor([4, 1, 3])"},
    {"masked_select", NULL, "input: Tensor, mask: data", OF_TENSOR, masked_select_call,
     "The elements for which a mask is true, in row-major order, the two broadcast together.",
     ">>> x = genesis.tensor([1, 5, 3])\n>>> genesis.masked_select(x, x > 2)\ntensor([5, 3])"},
    {"nonzero", NULL, "input: Tensor, *, as_tuple: bool = False -> Tensor or tensors",
     GN_FORM_METHOD, nonzero_call,
     "The places of the elements that are not 0, in row-major order.\n\n"
     "A row of coordinates for each, or a tuple with a tensor for each dimension.",
     ">>> genesis.nonzero(genesis.tensor([[0, 7], [8, 0]]))\n"
     "tensor([[0, 1],\n        [1, 0]])"},
    {"argwhere", NULL, "input: Tensor", GN_FORM_METHOD, argwhere_call,
     "The places of the elements that are not 0, a row of coordinates for each.",
     ">>> genesis.argwhere(genesis.tensor([0, 7, 8]))\ntensor([[1],\n        [2]])"},
    {"searchsorted", NULL,
     "sorted_sequence: Tensor, input: data, *, right: bool = False, side: text = None, "
     "out_int32: bool = False, sorter: Tensor = None",
     GN_FORM_OUT, searchsorted_call,
     "Where values would have to be put into an ascending sequence for it to stay ascending.\n\n"
     "The sequence has one dimension, or the same leading dimensions as the values. A value goes\n"
     "before elements that are equal, or with ``right=True`` (or ``side=\"right\"``) behind them.\n"
     "`sorter` sorts the sequence, such as argsort() gives, where it is not ascending itself.",
     ">>> genesis.searchsorted(genesis.tensor([1, 3, 5]), genesis.tensor([3, 6]))\n"
     "tensor([1, 3])"},
    {"bucketize", NULL,
     "input: data, boundaries: Tensor, *, out_int32: bool = False, right: bool = False",
     GN_FORM_OUT, bucketize_call,
     "Between which boundaries values lie: searchsorted() with the arguments exchanged.",
     ">>> genesis.bucketize(genesis.tensor([1, 4]), genesis.tensor([2, 3]))\ntensor([0, 2])"},
    {"isin", NULL,
     "elements: data, test_elements: data, *, assume_unique: bool = False, "
     "invert: bool = False",
     0, isin_call, "Whether each element is among others; `assume_unique` changes nothing.",
     ">>> genesis.isin(genesis.tensor([1, 2, 3]), genesis.tensor([3, 1]))\n"
     "tensor([ True, False,  True])"},
    {"bincount", NULL, "input: Tensor, weights: Tensor = None, minlength: int = 0", GN_FORM_METHOD,
     bincount_call, "How often each number from 0 on occurs; with weights, the sum of these.",
     ">>> genesis.bincount(genesis.tensor([1, 3, 1]))\ntensor([0, 2, 0, 1])"},
    {"histc", NULL, "input: Tensor, bins: int = 100, min: number = 0, max: number = 0", OF_TENSOR,
     histc_call,
     "How many elements lie in each of `bins` parts from `min` to `max`, which belongs to the "
     "last.\n\n"
     "Where both are 0 they are the smallest and the largest element.",
     ">>> genesis.histc(genesis.tensor([0.0, 1.0, 1.5, 2.0]), 2)\ntensor([1., 3.])"},
    {"repeat_interleave", NULL,
     "input: Tensor, repeats: counts = None, dim: dim = None, *, output_size: int = None",
     GN_FORM_METHOD, repeat_interleave_call,
     "Each element of a dimension so many times; of counts alone, each place that often.",
     ">>> genesis.repeat_interleave(genesis.tensor([7, 8]), genesis.tensor([1, 2]))\n"
     "tensor([7, 8, 8])"},
    {"unique", NULL,
     "input: Tensor, sorted: bool = True, return_inverse: bool = False, "
     "return_counts: bool = False, dim: dim = None -> Tensor or tensors",
     GN_FORM_METHOD, unique_call,
     "The different elements, ascending; where each element is among them; how often each "
     "occurs.\n\n"
     "With a dimension, the different slices of it.",
     ">>> genesis.unique(genesis.tensor([3, 1, 3]))\ntensor([1, 3])\n"
     ">>> genesis.unique(genesis.tensor([[2, 1], [0, 5], [2, 1]]), dim=0)\n"
     "tensor([[0, 5],\n        [2, 1]])"},
    {"unique_consecutive", NULL,
     "input: Tensor, return_inverse: bool = False, return_counts: bool = False, "
     "dim: dim = None -> Tensor or tensors",
     GN_FORM_METHOD, unique_consecutive_call,
     "The elements without those that are equal to the one before; which one each is; how many.\n\n"
     "With a dimension, the slices of it.",
     ">>> genesis.unique_consecutive(genesis.tensor([1, 1, 2, 1]))\ntensor([1, 2, 1])"},
    {"tril_indices", NULL,
     "row: int, col: int, offset: int = 0, *, dtype: dtype = None, device: device = None", 0,
     tril_indices_call, "The places on and below a diagonal: a row of rows, and a row of columns.",
     ">>> genesis.tril_indices(2, 2)\ntensor([[0, 1, 1],\n        [0, 0, 1]])"},
    {"triu_indices", NULL,
     "row: int, col: int, offset: int = 0, *, dtype: dtype = None, device: device = None", 0,
     triu_indices_call, "The places on and above a diagonal: a row of rows, and a row of columns.",
     ">>> genesis.triu_indices(2, 2)\ntensor([[0, 0, 1],\n        [0, 1, 1]])"},
    {0},
};
