/*
 * functions_statistics.c: means, variances, medians, quantiles, histograms and distances.
 */
#include "ops/functions.h"
#include "tensor/tape.h"

#include <math.h>
#include <string.h>

static bool is_floating(const gn_tensor *x)
{
    return gni_dtype_is_floating(x->dtype);
}

static void floating_require(struct gni_scope *s, const gn_tensor *x)
{
    if (!is_floating(x))
        gni_scope_fail(s, GN_ERROR_TYPE, "elements are floating numbers, not genesis.%s",
                       gni_dtypes[x->dtype].name);
}

static gn_tensor *sum_of(struct gni_scope *s, gn_tensor *x, uint32_t dims, bool is_kept)
{
    return gni_reduce(s, GN_REDUCE_SUM, x, dims, is_kept);
}

/* Elements that are no NaN are kept, others become 0. */
static gn_tensor *without_nan(struct gni_scope *s, gn_tensor *x)
{
    if (!gni_scope_is_ok(s) || !is_floating(x))
        return x;
    return gni_where(s, gni_unary(s, GN_OP_ISNAN, x), gni_integer(0), gni_of(x));
}

/* How many elements are no NaN. */
static gn_tensor *numbers_count(struct gni_scope *s, gn_tensor *x, uint32_t dims, bool is_kept)
{
    gn_tensor *is_nan = gni_unary(s, GN_OP_ISNAN, x);
    return sum_of(s, gni_unary(s, GN_OP_LOGICAL_NOT, is_nan), dims, is_kept);
}

/* A reduction of the elements as a type, which the result has, too. */
static gn_tensor *sum_as(struct gni_scope *s, gn_tensor *x, uint32_t dims, bool is_kept,
                         gn_dtype dtype)
{
    return gni_cast(s, sum_of(s, gni_cast(s, x, dtype), dims, is_kept), dtype);
}

/* ---- sums and means ---------------------------------------------------------------------------- */

static gn_status nansum_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    uint32_t dims = gni_dims(&s, x, &a[1]);
    gn_tensor *kept = without_nan(&s, x);
    gn_tensor *made = a[3].is_given ? sum_as(&s, kept, dims, gni_is_set(&a[2]), a[3].dtype)
                                    : sum_of(&s, kept, dims, gni_is_set(&a[2]));
    return gni_scope_give(&s, made, results);
}

static gn_status nanmean_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    bool is_kept = gni_is_set(&a[2]);
    uint32_t dims = gni_dims(&s, x, &a[1]);
    /* In float64: a sum may be more than its type has, where the mean is not. */
    gn_tensor *sum = sum_as(&s, without_nan(&s, x), dims, is_kept, GN_FLOAT64);
    gn_tensor *count = numbers_count(&s, x, dims, is_kept);
    gn_tensor *made = gni_binary(&s, GN_OP_DIVIDE, gni_of(sum), gni_of(count));
    return gni_scope_give(&s, gni_cast(&s, made, a[3].is_given ? a[3].dtype : x->dtype), results);
}

/* ---- variances --------------------------------------------------------------------------------- */

/* The arguments of var() and its kin: input, dim, correction, keepdim, unbiased. */
struct spread {
    gn_tensor *x;
    uint32_t dims;
    double correction;
    bool is_kept;
};

static struct spread spread_take(struct gni_scope *s, const gn_argument *a)
{
    struct spread spread = {.x = a[0].operand.tensor, .is_kept = gni_is_set(&a[3])};
    const gn_argument *unbiased = a[4].is_given ? &a[4] : NULL;
    if (a[1].is_given && a[1].operand.scalar.kind == GN_BOOL)
        unbiased = &a[1]; /* PyTorch's x.var(unbiased) */
    else
        spread.dims = gni_dims(s, spread.x, &a[1]);
    spread.correction = unbiased != NULL ? gni_is_set(unbiased)
                        : a[2].is_given  ? gni_scalar_double(a[2].operand.scalar)
                                         : 1;
    floating_require(s, spread.x);
    return spread;
}

/*
 * The variance in float64, whatever the elements are: a mean in float32 may be as far from the elements as they are
 * from each other, and their squares may be infinite where the root of their sum is not.
 */
static gn_tensor *variance(struct gni_scope *s, const struct spread *spread)
{
    gn_tensor *wide = gni_cast(s, spread->x, GN_FLOAT64);
    gn_operand mean = gni_of(gni_reduce(s, GN_REDUCE_MEAN, wide, spread->dims, true));
    if (gni_scope_is_ok(s) && mean.tensor->count == 1 && mean.tensor->gradient == NULL &&
        gn_tensor_peek_item(mean.tensor, &mean.scalar))
        mean.tensor = NULL; /* a number is subtracted several times faster */
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(wide), mean);
    gn_tensor *squares =
        sum_of(s, gni_unary(s, GN_OP_SQUARE, apart), spread->dims, spread->is_kept);
    double left = (double)gni_dims_count(spread->x, spread->dims) - spread->correction;
    return gni_binary(s, GN_OP_DIVIDE, gni_of(squares), gni_floating(left > 0 ? left : 0));
}

/*
 * The p-th root of what is not negative. That of 0 gets the gradient 0, as in PyTorch, though its slope is infinite: on the
 * tape it is not computed.
 */
static gn_tensor *root_of(struct gni_scope *s, gn_tensor *x, double p)
{
    gn_tensor *is_zero = NULL, *root;
    if (gni_scope_is_ok(s) && gni_is_taped(x)) {
        is_zero = gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_integer(0));
        x = gni_where(s, is_zero, gni_integer(1), gni_of(x));
    }
    if (p == 2)
        root = gni_unary(s, GN_OP_SQRT, x);
    else
        root = gni_binary(s, GN_OP_POWER, gni_of(x), gni_floating(1 / p));
    return is_zero != NULL ? gni_where(s, is_zero, gni_integer(0), gni_of(root)) : root;
}

static gn_status spread_call(const gn_argument *a, bool is_root, bool has_mean, gn_results *results)
{
    struct gni_scope s = {0};
    struct spread spread = spread_take(&s, a);
    gn_tensor *made = variance(&s, &spread);
    if (is_root)
        made = root_of(&s, made, 2);
    made = gni_cast(&s, made, spread.x->dtype);
    if (!has_mean)
        return gni_scope_give(&s, made, results);
    gn_tensor *mean = gni_reduce(&s, GN_REDUCE_MEAN, spread.x, spread.dims, spread.is_kept);
    return gni_scope_give_pair(&s, made, mean, results);
}

static gn_status var_call(const gn_argument *a, gn_results *results)
{
    return spread_call(a, false, false, results);
}

static gn_status std_call(const gn_argument *a, gn_results *results)
{
    return spread_call(a, true, false, results);
}

static gn_status var_mean_call(const gn_argument *a, gn_results *results)
{
    return spread_call(a, false, true, results);
}

static gn_status std_mean_call(const gn_argument *a, gn_results *results)
{
    return spread_call(a, true, true, results);
}

/* ---- norms and distances ----------------------------------------------------------------------- */

/* Powers of absolute values. With p below 1 that of 0 has the gradient 0, though its slope is infinite. */
static gn_tensor *powers_of(struct gni_scope *s, gn_tensor *sizes, double p)
{
    if (!gni_scope_is_ok(s) || p >= 1 || !gni_is_taped(sizes))
        return gni_binary(s, GN_OP_POWER, gni_of(sizes), gni_floating(p));
    gn_tensor *is_zero = gni_binary(s, GN_OP_EQUAL, gni_of(sizes), gni_integer(0));
    sizes = gni_where(s, is_zero, gni_integer(1), gni_of(sizes));
    gn_tensor *powers = gni_binary(s, GN_OP_POWER, gni_of(sizes), gni_floating(p));
    return gni_where(s, is_zero, gni_floating(p < 0 ? INFINITY : 0), gni_of(powers));
}

gn_tensor *gni_vector_norm(struct gni_scope *s, gn_tensor *x, double p, uint32_t dims, bool is_kept)
{
    if (p == 2) { /* in float64, where squares do not overflow */
        gn_tensor *squares = gni_unary(s, GN_OP_SQUARE, gni_cast(s, x, GN_FLOAT64));
        return root_of(s, sum_of(s, squares, dims, is_kept), p);
    }
    if (p == 0) {
        gn_tensor *is_counted = gni_binary(s, GN_OP_NOT_EQUAL, gni_of(x), gni_integer(0));
        if (gni_is_taped(x))
            is_counted = gni_where(s, is_counted, gni_of(gni_one_of(s, x)), gni_integer(0));
        return sum_of(s, is_counted, dims, is_kept);
    }
    gn_tensor *sizes = gni_unary(s, GN_OP_ABSOLUTE, x);
    if (isinf(p))
        return gni_reduce(s, p > 0 ? GN_REDUCE_MAXIMUM : GN_REDUCE_MINIMUM, sizes, dims, is_kept);
    return root_of(s, sum_of(s, powers_of(s, sizes, p), dims, is_kept), p);
}

static gn_status norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    uint32_t dims = gni_dims(&s, x, &a[2]);
    double p = a[1].is_given && a[1].text == NULL ? gni_scalar_double(a[1].operand.scalar) : 2;
    floating_require(&s, x);
    if (a[1].text != NULL && strcmp(a[1].text, "fro") != 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "p is a number or 'fro', not '%s'", a[1].text);
    gn_dtype dtype = a[4].is_given ? a[4].dtype : x->dtype;
    gn_tensor *wide = gni_wide(&s, gni_cast(&s, x, dtype));
    gn_tensor *made = gni_vector_norm(&s, wide, p, dims, gni_is_set(&a[3]));
    return gni_scope_give(&s, gni_cast(&s, made, dtype), results);
}

enum {
    DISTANCES_FEW = 25, /* rows up to which distances are computed one by one, as PyTorch does */
};

/* True if distances are worth a matrix product, which computes in float64: what is lost where rows are near each other is
 * less than float32 has. */
static bool is_by_product(const gn_argument *mode, double p, const gn_tensor *x, const gn_tensor *y)
{
    bool is_asked = mode->is_given && strcmp(mode->text, "use_mm_for_euclid_dist") == 0;
    bool is_refused = mode->is_given && strcmp(mode->text, "donot_use_mm_for_euclid_dist") == 0;
    return p == 2 && x->dtype != GN_FLOAT64 && y->dtype != GN_FLOAT64 && !is_refused &&
           (is_asked || x->sizes[x->ndim - 2] > DISTANCES_FEW ||
            y->sizes[y->ndim - 2] > DISTANCES_FEW);
}

static gn_tensor *row_squares(struct gni_scope *s, gn_tensor *x)
{
    return sum_of(s, gni_unary(s, GN_OP_SQUARE, x), UINT32_C(1) << (x->ndim - 1), true);
}

/* The roots of |x|^2 + |y|^2 - 2 x y. */
static gn_tensor *distances_by_product(struct gni_scope *s, gn_tensor *x, gn_tensor *y)
{
    x = gni_cast(s, x, GN_FLOAT64);
    y = gni_cast(s, y, GN_FLOAT64);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *turned = gni_transpose(s, y, y->ndim - 2, y->ndim - 1);
    gn_tensor *product = gni_scope_is_ok(s) ? gni_matmul(s, x, turned) : NULL;
    gn_tensor *columns = row_squares(s, y);
    columns = gni_scope_is_ok(s) ? gni_transpose(s, columns, y->ndim - 2, y->ndim - 1) : NULL;
    gn_tensor *both = gni_binary(s, GN_OP_ADD, gni_of(row_squares(s, x)), gni_of(columns));
    product = gni_binary(s, GN_OP_MULTIPLY, gni_of(product), gni_integer(2));
    gn_tensor *squares = gni_binary(s, GN_OP_SUBTRACT, gni_of(both), gni_of(product));
    return root_of(s, gni_binary(s, GN_OP_MAXIMUM, gni_of(squares), gni_integer(0)), 2);
}

static gn_status cdist_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    const gn_tensor *x = in[0].tensor, *y = in[1].tensor;
    double p = gni_scalar_double(a[2].operand.scalar);
    gn_dtype dtype = gni_join(&s, 2, in, true);
    if (x->ndim < 2 || y->ndim < 2 || x->sizes[x->ndim - 1] != y->sizes[y->ndim - 1])
        gni_scope_fail(&s, GN_ERROR_SHAPE, "shapes %s and %s: the rows of both must be as long",
                       gni_shape_text(x->ndim, x->sizes).text,
                       gni_shape_text(y->ndim, y->sizes).text);
    if (!(p >= 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "p is not negative: %g", p);
    if (a[3].is_given && strcmp(a[3].text, "use_mm_for_euclid_dist") != 0 &&
        strcmp(a[3].text, "donot_use_mm_for_euclid_dist") != 0 &&
        strcmp(a[3].text, "use_mm_for_euclid_dist_if_necessary") != 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "there is no compute_mode '%s'", a[3].text);
    if (gni_scope_is_ok(&s) && x->sizes[x->ndim - 1] > 0 && is_by_product(&a[3], p, x, y))
        return gni_scope_give(
            &s, gni_cast(&s, distances_by_product(&s, in[0].tensor, in[1].tensor), dtype), results);
    gn_tensor *first = gni_unsqueeze(&s, in[0].tensor, x->ndim - 1);
    gn_tensor *second = gni_unsqueeze(&s, in[1].tensor, y->ndim - 2);
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(first), gni_of(second));
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    uint32_t last = UINT32_C(1) << (apart->ndim - 1);
    gn_tensor *made = x->sizes[x->ndim - 1] == 0 ? sum_of(&s, apart, last, false)
                                                 : gni_vector_norm(&s, apart, p, last, false);
    return gni_scope_give(&s, gni_cast(&s, made, dtype), results);
}

static gn_status cosine_similarity_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    gn_dtype dtype = gni_join(&s, 2, in, true);
    gn_tensor *product = gni_binary(&s, GN_OP_MULTIPLY, in[0], in[1]);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    int dim = gni_dim(&s, product, a[2].operand.scalar.integer);
    uint32_t dims = product->ndim > 0 ? UINT32_C(1) << dim : 0;
    gn_tensor *made = sum_of(&s, product, dims, false);
    for (int i = 0; i < 2; i++) { /* both are broadcast, and have the dimension */
        gn_tensor *whole = gni_expand(&s, in[i].tensor, product->ndim, product->sizes);
        gn_tensor *length =
            gni_cast(&s, gni_vector_norm(&s, whole, 2, dims, false), product->dtype);
        length = gni_binary(&s, GN_OP_MAXIMUM, gni_of(length), a[3].operand);
        made = gni_binary(&s, GN_OP_DIVIDE, gni_of(made), gni_of(length));
    }
    return gni_scope_give(&s, gni_cast(&s, made, dtype), results);
}

/* ---- elements by their rank -------------------------------------------------------------------- */

static gn_tensor *gather(struct gni_scope *s, gn_tensor *x, int dim, gn_tensor *index)
{
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_gather(x, dim, index, &made);
    return gni_scope_keep(s, s->status, made);
}

/* All elements in one dimension. */
static gn_tensor *flattened(struct gni_scope *s, gn_tensor *x)
{
    return gni_reshape(s, x, 1, &(const int64_t){-1});
}

/* Sorted elements and where they were. */
struct ordered {
    gn_tensor *values, *indices;
};

static struct ordered sorted(struct gni_scope *s, gn_tensor *x, int dim)
{
    struct ordered made = {NULL, NULL};
    if (gni_scope_is_ok(s))
        s->status = gn_sort(x, dim, false, &made.values, &made.indices);
    made.values = gni_scope_keep(s, s->status, made.values);
    made.indices = gni_scope_keep(s, s->status, made.indices);
    return made;
}

/* The elements of one rank in each row, and where they were; the dimension goes unless it is kept. */
static gn_status ranked_give(struct gni_scope *s, const struct ordered *ordered, int dim,
                             gn_tensor *rank, bool is_kept, gn_results *results)
{
    gn_tensor *both[] = {gather(s, ordered->values, dim, rank),
                         gather(s, ordered->indices, dim, rank)};
    for (int i = 0; i < 2 && !is_kept; i++)
        both[i] = gni_squeeze(s, both[i], dim);
    return gni_scope_give_pair(s, both[0], both[1], results);
}

/*
 * The rank of the median in sorted rows, the lower one of two. NaN comes last. One NaN is the median of its row: the
 * first one; or (`is_nan_skipped`) it does not count.
 */
static gn_tensor *median_rank(struct gni_scope *s, gn_tensor *values, int dim, bool is_nan_skipped)
{
    int64_t size = gni_scope_is_ok(s) ? values->sizes[dim] : 0, middle = (size - 1) / 2;
    gn_tensor *count = numbers_count(s, values, UINT32_C(1) << dim, true);
    if (!is_nan_skipped) {
        gn_tensor *has_nan = gni_binary(s, GN_OP_LESS, gni_of(count), gni_integer(size));
        return gni_where(s, has_nan, gni_of(count), gni_integer(middle));
    }
    gn_tensor *last = gni_binary(s, GN_OP_SUBTRACT, gni_of(count), gni_integer(1));
    last = gni_binary(s, GN_OP_MAXIMUM, gni_of(last), gni_integer(0));
    return gni_binary(s, GN_OP_FLOOR_DIVIDE, gni_of(last), gni_integer(2));
}

static gn_tensor *kth_of_all(struct gni_scope *s, gn_tensor *flat, int64_t k)
{
    gn_tensor *found = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_kth(flat, k, &found);
    return gni_scope_keep(s, s->status, found);
}

/* The median of all elements, which are in one dimension. */
static gn_tensor *median_of_all(struct gni_scope *s, gn_tensor *flat)
{
    gn_tensor *found = kth_of_all(s, flat, (flat->count - 1) / 2);
    if (!gni_scope_is_ok(s) || !is_floating(flat))
        return found;
    gn_tensor *largest = gni_reduce(s, GN_REDUCE_MAXIMUM, flat, 0, false); /* NaN if one is */
    return gni_where(s, gni_unary(s, GN_OP_ISNAN, largest), gni_of(largest), gni_of(found));
}

static gn_status median_as(const gn_argument *a, bool is_nan_skipped, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    bool is_whole = !a[1].is_given, is_flat = is_whole || x->ndim == 0;
    int dim = is_whole ? 0 : gni_dim(&s, x, a[1].operand.scalar.integer);
    gn_tensor *flat = is_flat ? flattened(&s, x) : x;
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    if (flat->sizes[dim] == 0) {
        if (!is_whole || !is_floating(x))
            gni_scope_fail(&s, GN_ERROR_INDEX, "dimension %d of shape %s has no elements", dim,
                           gni_shape_text(x->ndim, x->sizes).text);
        gn_scalar nan = {.kind = GN_FLOAT64, .floating = NAN};
        return gni_scope_give(&s, gni_full(&s, nan, x->dtype, 0, NULL, x->device), results);
    }
    if (is_whole && !is_nan_skipped)
        return gni_scope_give(&s, median_of_all(&s, flat), results);
    if (is_whole && gni_is_taped(flat)) { /* equal elements share the gradient */
        int64_t count = gni_item(&s, numbers_count(&s, flat, 1, false)).integer;
        return gni_scope_give(&s, kth_of_all(&s, flat, count > 0 ? (count - 1) / 2 : 0), results);
    }
    struct ordered ordered = sorted(&s, flat, dim);
    gn_tensor *rank = median_rank(&s, ordered.values, dim, is_nan_skipped);
    if (is_whole)
        return gni_scope_give(&s, gni_squeeze(&s, gather(&s, ordered.values, dim, rank), dim),
                              results);
    return ranked_give(&s, &ordered, dim, rank, gni_is_set(&a[2]) && x->ndim > 0, results);
}

static gn_status median_call(const gn_argument *a, gn_results *results)
{
    return median_as(a, false, results);
}

static gn_status nanmedian_call(const gn_argument *a, gn_results *results)
{
    return median_as(a, true, results);
}

static gn_status mode_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *starts = NULL, *unused = NULL, *end = NULL;
    int dim = gni_dim(&s, x, a[1].operand.scalar.integer);
    gn_tensor *row = x->ndim > 0 ? x : flattened(&s, x);
    int64_t size = gni_scope_is_ok(&s) ? row->sizes[dim] : 0;
    if (gni_scope_is_ok(&s) && size == 0)
        gni_scope_fail(&s, GN_ERROR_INDEX, "dimension %lld of shape %s has no elements",
                       (long long)a[1].operand.scalar.integer,
                       gni_shape_text(x->ndim, x->sizes).text);
    struct ordered ordered = sorted(&s, row, dim);
    int last = gni_scope_is_ok(&s) ? row->ndim - 1 : 0;
    gn_tensor *values = gni_move_dim(&s, ordered.values, dim, last);
    /* How many equal ones there are up to each: most where the longest run ends. */
    gn_tensor *places = gni_arange(&s, size, x->device);
    gn_tensor *is_new =
        gni_binary(&s, GN_OP_NOT_EQUAL, gni_of(gni_narrow(&s, values, last, 1, size - 1)),
                   gni_of(gni_narrow(&s, values, last, 0, size - 1)));
    gn_tensor *later = gni_binary(&s, GN_OP_MULTIPLY,
                                  gni_of(gni_narrow(&s, places, 0, 1, size - 1)), gni_of(is_new));
    gn_tensor *first = gni_cast(&s, gni_narrow(&s, values, last, 0, 1), GN_INT64);
    first = gni_binary(&s, GN_OP_MULTIPLY, gni_of(first), gni_integer(0));
    gn_tensor *both = gni_cat(&s, 2, (gn_tensor *const[]){first, later}, last);
    if (gni_scope_is_ok(&s))
        s.status = gn_cumulate_extreme(both, last, true, &starts, &unused);
    starts = gni_scope_keep(&s, s.status, starts);
    (void)gni_scope_keep(&s, s.status, unused);
    gn_tensor *run = gni_binary(&s, GN_OP_SUBTRACT, gni_of(places), gni_of(starts));
    if (gni_scope_is_ok(&s))
        s.status = gn_extreme(run, last, true, NULL, &end);
    end = gni_unsqueeze(&s, gni_scope_keep(&s, s.status, end), dim);
    return ranked_give(&s, &ordered, dim, end, gni_is_set(&a[2]) && x->ndim > 0, results);
}

/* ---- quantiles --------------------------------------------------------------------------------- */

enum interpolation {
    LINEAR,
    LOWER,
    HIGHER,
    MIDPOINT,
    NEAREST,
    INTERPOLATIONS,
};

static enum interpolation interpolation_take(struct gni_scope *s, const char *name)
{
    static const char *const names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    for (int i = 0; i < INTERPOLATIONS; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum interpolation)i;
    gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "there is no interpolation '%s'", name);
    return LINEAR;
}

/* The fractions as float64 of one dimension: places are not rounded. */
static gn_tensor *fractions_take(struct gni_scope *s, const gn_argument *q, gn_device *device)
{
    double least = 0, most = 0;
    gn_tensor *fractions = q->operand.tensor;
    if (fractions == NULL) {
        static const int64_t one = 1;
        least = most = gni_scalar_double(q->operand.scalar);
        gn_scalar number = {.kind = GN_FLOAT64, .floating = least};
        fractions = gni_full(s, number, GN_FLOAT64, 1, &one, device);
    } else {
        fractions = flattened(s, gni_cast(s, fractions, GN_FLOAT64));
        least =
            gni_scalar_double(gni_item(s, gni_reduce(s, GN_REDUCE_MINIMUM, fractions, 0, false)));
        most =
            gni_scalar_double(gni_item(s, gni_reduce(s, GN_REDUCE_MAXIMUM, fractions, 0, false)));
    }
    if (gni_scope_is_ok(s) && !(least >= 0 && most <= 1))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "fractions are from 0 to 1, not %g",
                       least >= 0 ? most : least);
    return fractions;
}

/* What lies at `places` (the last dimension) of sorted rows. */
static gn_tensor *values_between(struct gni_scope *s, gn_tensor *values, gn_tensor *places,
                                 enum interpolation interpolation)
{
    if (interpolation == NEAREST)
        places = gni_unary(s, GN_OP_ROUND, places);
    gn_tensor *below = gni_unary(s, GN_OP_FLOOR, places);
    gn_tensor *above = gni_unary(s, GN_OP_CEIL, places);
    gn_tensor *ends[] = {below, above};
    gn_operand in[3];
    for (int i = 0; i < 2; i++) {
        int64_t sizes[GN_DIMENSIONS_MAX];
        gn_tensor *index = gni_cast(s, ends[i], GN_INT64);
        if (!gni_scope_is_ok(s))
            return NULL;
        memcpy(sizes, values->sizes, sizeof sizes);
        sizes[values->ndim - 1] = index->sizes[index->ndim - 1];
        index = gni_expand(s, index, values->ndim, sizes);
        in[i] = gni_of(gather(s, values, values->ndim - 1, index));
    }
    gn_tensor *share = gni_binary(s, GN_OP_SUBTRACT, gni_of(places), gni_of(below));
    if (interpolation == MIDPOINT) {
        gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(above), gni_of(below));
        share = gni_binary(s, GN_OP_DIVIDE, gni_of(apart), gni_integer(2));
    }
    in[2] = interpolation == LOWER    ? gni_floating(0)
            : interpolation == HIGHER ? gni_floating(1)
                                      : gni_of(share);
    return gni_elementwise(s, GN_OP_LERP, 3, in);
}

/* The result for rows that are the last dimension: (..., fractions). */
static gn_tensor *quantiles_of_rows(struct gni_scope *s, gn_tensor *rows, gn_tensor *fractions,
                                    enum interpolation interpolation, bool is_nan_skipped)
{
    gn_tensor *values = NULL;
    int last = rows->ndim - 1;
    if (gni_scope_is_ok(s))
        s->status = gn_sort(rows, last, false, &values, NULL);
    values = gni_scope_keep(s, s->status, values);
    gn_tensor *count = numbers_count(s, values, UINT32_C(1) << last, true);
    gn_operand end = gni_floating((double)(rows->sizes[last] - 1));
    if (is_nan_skipped) { /* NaN comes last */
        end = gni_of(gni_binary(s, GN_OP_SUBTRACT, gni_of(count), gni_integer(1)));
        end = gni_of(gni_binary(s, GN_OP_MAXIMUM, end, gni_integer(0)));
    }
    gn_tensor *places = gni_binary(s, GN_OP_MULTIPLY, gni_of(fractions), end);
    gn_tensor *made = gni_cast(s, values_between(s, values, places, interpolation), rows->dtype);
    if (is_nan_skipped)
        return made;
    gn_tensor *has_nan = gni_binary(s, GN_OP_LESS, gni_of(count), gni_integer(rows->sizes[last]));
    return gni_where(s, has_nan, gni_floating(NAN), gni_of(made));
}

static gn_status quantile_as(const gn_argument *a, bool is_nan_skipped, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    bool has_dim = a[2].is_given && x->ndim > 0, is_kept = gni_is_set(&a[3]);
    int dim = a[2].is_given ? gni_dim(&s, x, a[2].operand.scalar.integer) : 0;
    int64_t ones[GN_DIMENSIONS_MAX];
    floating_require(&s, x);
    enum interpolation interpolation = interpolation_take(&s, a[4].text);
    gn_tensor *rows = has_dim ? gni_move_dim(&s, x, dim, x->ndim - 1) : flattened(&s, x);
    if (gni_scope_is_ok(&s) && rows->sizes[rows->ndim - 1] == 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "there are no elements");
    gn_tensor *fractions = fractions_take(&s, &a[1], x->device);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    gn_tensor *made = quantiles_of_rows(&s, rows, fractions, interpolation, is_nan_skipped);
    int last = rows->ndim - 1; /* of the result: the fractions */
    if (is_kept && has_dim) {
        made = gni_move_dim(&s, gni_unsqueeze(&s, made, last), last, dim);
        last++;
    } else if (is_kept) {
        for (last = 0; last < x->ndim; last++)
            ones[last] = 1;
        ones[last] = -1;
        made = gni_view(&s, made, last + 1, ones);
    }
    bool is_one = a[1].operand.tensor == NULL || a[1].operand.tensor->ndim == 0;
    made = is_one ? gni_squeeze(&s, made, last) : gni_move_dim(&s, made, last, 0);
    return gni_scope_give(&s, made, results);
}

static gn_status quantile_call(const gn_argument *a, gn_results *results)
{
    return quantile_as(a, false, results);
}

static gn_status nanquantile_call(const gn_argument *a, gn_results *results)
{
    return quantile_as(a, true, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    STATISTICS = GN_FORM_METHOD | GN_FORM_OUT,
};

#define SPREAD                                                                       \
    "input: Tensor, dim: dims|bool = None, correction: number = 1, keepdim: bool = " \
    "False, *, unbiased: bool = None"
#define QUANTILE                                                             \
    "input: Tensor, q: doubles, dim: dim = None, keepdim: bool = False, *, " \
    "interpolation: text = 'linear'"

const gn_function gni_functions_statistics[] = {
    {"nansum", NULL, "input: Tensor, dim: dims = None, keepdim: bool = False, dtype: dtype = None",
     STATISTICS, nansum_call, "The sum of the elements that are no NaN.",
     ">>> genesis.nansum(genesis.tensor([1.0, float(\"nan\"), 2.0]))\ntensor(3.)"},
    {"nanmean", NULL, "input: Tensor, dim: dims = None, keepdim: bool = False, dtype: dtype = None",
     STATISTICS, nanmean_call, "The mean of the elements that are no NaN.",
     ">>> genesis.nanmean(genesis.tensor([1.0, float(\"nan\"), 2.0]))\ntensor(1.5000)"},
    {"var", NULL, SPREAD, STATISTICS, var_call,
     "The variance: the sum of the squared distances from the mean, over one less than the "
     "elements."
     "\n\n`correction` says how many less; ``unbiased=False`` is a correction of 0.",
     ">>> genesis.var(genesis.tensor([1.0, 2.0, 3.0]))\ntensor(1.)"},
    {"std", NULL, SPREAD, STATISTICS, std_call, "The square root of the variance.",
     ">>> genesis.std(genesis.tensor([1.0, 2.0, 3.0]))\ntensor(1.)"},
    {"var_mean", NULL, SPREAD " -> tensors", 0, var_mean_call, "The variance and the mean.",
     ">>> genesis.var_mean(genesis.tensor([1.0, 2.0, 3.0]))\n(tensor(1.), tensor(2.))"},
    {"std_mean", NULL, SPREAD " -> tensors", 0, std_mean_call,
     "The standard deviation and the mean.",
     ">>> genesis.std_mean(genesis.tensor([1.0, 2.0, 3.0]))\n(tensor(1.), tensor(2.))"},
    {"norm", NULL,
     "input: Tensor, p: number|text = 2, dim: dims = None, keepdim: bool = False, "
     "dtype: dtype = None",
     STATISTICS, norm_call,
     "The p-th root of the sum of the p-th powers of the absolute values.\n\n"
     "`p` is a number, infinity (the largest), minus infinity (the smallest), 0 (how many are not "
     "0)\nor ``\"fro\"``, which is 2.",
     ">>> genesis.norm(genesis.tensor([3.0, 4.0]))\ntensor(5.)"},
    {"cdist", NULL, "x1: Tensor, x2: Tensor, p: number = 2.0, compute_mode: text = None", 0,
     cdist_call,
     "The distance of each row of the first from each row of the second.\n\n"
     "`p` says which: 2 is the length of the difference. That of more than 25 rows is computed\n"
     "by a matrix product, in float64. With `compute_mode`\n"
     "``'donot_use_mm_for_euclid_dist'`` it never is, and with\n"
     "``'use_mm_for_euclid_dist'`` for few rows, too.",
     ">>> genesis.cdist(genesis.zeros(1, 2), genesis.tensor([[3.0, 4.0], [0.0, 1.0]]))\n"
     "tensor([[5., 1.]])"},
    {"cosine_similarity", NULL, "x1: Tensor, x2: Tensor, dim: dim = 1, eps: number = 1e-8", 0,
     cosine_similarity_call,
     "The cosine of the angle between two along a dimension.\n\n"
     "A length below `eps` counts as `eps`.",
     ">>> genesis.cosine_similarity(genesis.tensor([1.0, 0.0]), genesis.tensor([3.0, 4.0]), 0)\n"
     "tensor(0.6000)"},
    {"median", NULL, "input: Tensor, dim: dim = None, keepdim: bool = False -> values, indices",
     STATISTICS, median_call,
     "The element in the middle, the lower one of two; along a dimension a pair with its index.",
     ">>> genesis.median(genesis.tensor([5, 1, 3, 2]))\ntensor(2)"},
    {"nanmedian", NULL, "input: Tensor, dim: dim = None, keepdim: bool = False -> values, indices",
     STATISTICS, nanmedian_call,
     "The element in the middle of those that are no NaN; along a dimension a pair with its index.",
     ">>> genesis.nanmedian(genesis.tensor([5.0, float(\"nan\"), 3.0]))\ntensor(3.)"},
    {"mode", NULL, "input: Tensor, dim: dim = -1, keepdim: bool = False -> values, indices",
     STATISTICS, mode_call,
     "The element that occurs most often, the smallest of several, and where the last of it is.",
     ">>> values, indices = genesis.mode(genesis.tensor([2, 7, 7, 2, 9]))\n>>> values, indices\n"
     "(tensor(2), tensor(3))"},
    {"quantile", NULL, QUANTILE, STATISTICS, quantile_call,
     "The element that a fraction `q` of all is below, with what lies between two.\n\n"
     "`interpolation` says what is taken of two: \"linear\", \"lower\", \"higher\", \"midpoint\", "
     "\"nearest\".",
     ">>> genesis.quantile(genesis.tensor([1.0, 2.0, 4.0]), 0.75)\ntensor(3.)"},
    {"nanquantile", NULL, QUANTILE, STATISTICS, nanquantile_call,
     "quantile() of the elements that are no NaN.",
     ">>> genesis.nanquantile(genesis.tensor([1.0, float(\"nan\"), 4.0]), 0.5)\ntensor(2.5000)"},
    {0},
};
