/*
 * functions_views.c: views of a tensor: no element is copied, but where a function says so.
 */
#include "base/text.h"
#include "ops/functions.h"
#include "tensor/tape.h"

#include <string.h>

/* A dimension, counted from the beginning. */
static int dim_of(struct gni_scope *s, const gn_tensor *x, int64_t dim)
{
    int64_t span = x->ndim > 0 ? x->ndim : 1;
    if (dim >= -span && dim < span)
        return (int)(dim < 0 ? dim + span : dim);
    gni_scope_fail(s, GN_ERROR_INDEX, "dimension %lld is out of range for shape %s", (long long)dim,
                   gni_shape_text(x->ndim, x->sizes).text);
    return 0;
}

/* The same of a tensor that must have one. */
static int own_dim_of(struct gni_scope *s, const gn_tensor *x, int64_t dim)
{
    if (x->ndim == 0)
        gni_scope_fail(s, GN_ERROR_INDEX, "dimension %lld is out of range for shape ()",
                       (long long)dim);
    return dim_of(s, x, dim);
}

/* ---- by sizes ---------------------------------------------------------------------------------- */

static gn_status reshape_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = gni_reshape(&s, a[0].operand.tensor, a[1].count, a[1].integers);
    return gni_scope_give(&s, made, results);
}

static gn_status view_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    if (!a[2].is_given)
        return gni_scope_give(&s, gni_view(&s, x, a[1].count, a[1].integers), results);
    gn_status status = gn_tensor_view_as_dtype(x, a[2].dtype, &made);
    return gni_scope_give(&s, gni_scope_keep(&s, status, made), results);
}

static gn_status expand_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = gni_expand(&s, a[0].operand.tensor, a[1].count, a[1].integers);
    return gni_scope_give(&s, made, results);
}

static gn_status view_as_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_tensor *other = a[1].operand.tensor;
    return gni_scope_give(&s, gni_view(&s, a[0].operand.tensor, other->ndim, other->sizes),
                          results);
}

static gn_status reshape_as_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_tensor *other = a[1].operand.tensor;
    return gni_scope_give(&s, gni_reshape(&s, a[0].operand.tensor, other->ndim, other->sizes),
                          results);
}

static gn_status expand_as_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_tensor *other = a[1].operand.tensor;
    return gni_scope_give(&s, gni_expand(&s, a[0].operand.tensor, other->ndim, other->sizes),
                          results);
}

static gn_status ravel_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, gni_reshape(&s, a[0].operand.tensor, 1, (const int64_t[]){-1}),
                          results);
}

static gn_status as_strided_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    if (a[1].count != a[2].count)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "size has %d number%s and stride has %d: they must be as many", a[1].count,
                       gni_plural((uint64_t)a[1].count), a[2].count);
    int64_t offset = a[3].is_given ? a[3].operand.scalar.integer : x->offset;
    gn_tensor *made = gni_strided(&s, x, a[1].count, a[1].integers, a[2].integers, offset);
    return gni_scope_give(&s, made, results);
}

static gn_status flatten_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int first = gni_dim(&s, x, a[1].is_given ? a[1].operand.scalar.integer : 0);
    int last = gni_dim(&s, x, a[2].is_given ? a[2].operand.scalar.integer : -1);
    int64_t sizes[GN_DIMENSIONS_MAX] = {1};
    int ndim = 0;
    if (first > last)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "dimension %d does not come before %d", first, last);
    for (int i = 0; i < x->ndim; i++) {
        if (i > first && i <= last)
            sizes[ndim - 1] *= x->sizes[i];
        else
            sizes[ndim++] = x->sizes[i];
    }
    return gni_scope_give(&s, gni_reshape(&s, x, ndim > 0 ? ndim : 1, sizes), results);
}

static gn_status unflatten_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int at = own_dim_of(&s, x, a[1].operand.scalar.integer), count = a[2].count, missing = 0;
    int64_t sizes[GN_DIMENSIONS_MAX], known = 1;
    if (!gni_scope_is_ok(&s) || x->ndim - 1 + count > GN_DIMENSIONS_MAX) {
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a tensor has at most %d dimensions", GN_DIMENSIONS_MAX);
        return gni_scope_give(&s, NULL, results);
    }
    for (int i = 0; i < x->ndim - 1 + count; i++)
        sizes[i] = i < at           ? x->sizes[i]
                   : i < at + count ? a[2].integers[i - at]
                                    : x->sizes[i + 1 - count];
    for (int i = at; i < at + count; i++) {
        missing += sizes[i] == -1;
        if (sizes[i] != -1 && __builtin_mul_overflow(known, sizes[i], &known))
            known = 0;
    }
    for (int i = at; i < at + count; i++)
        if (sizes[i] == -1 && missing == 1 && known > 0 && x->sizes[at] % known == 0)
            sizes[i] = x->sizes[at] / known;
    return gni_scope_give(&s, gni_view(&s, x, x->ndim - 1 + count, sizes), results);
}

/* ---- by dimensions ----------------------------------------------------------------------------- */

static gn_status transpose_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int first = gni_dim(&s, x, a[1].operand.scalar.integer);
    int second = gni_dim(&s, x, a[2].operand.scalar.integer);
    return gni_scope_give(&s, gni_transpose(&s, x, first, second), results);
}

static gn_status t_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    if (x->ndim > 2)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a matrix has at most 2 dimensions, not those of %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    return gni_scope_give(&s, gni_transpose(&s, x, 0, x->ndim - 1), results);
}

static gn_status permute_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int order[GN_DIMENSIONS_MAX] = {0};
    if (a[1].count != x->ndim)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "%d dimension%s given for a tensor of %d: each is named once", a[1].count,
                       gni_plural((uint64_t)a[1].count), x->ndim);
    for (int i = 0; i < x->ndim && gni_scope_is_ok(&s); i++)
        order[i] = gni_dim(&s, x, a[1].integers[i]);
    return gni_scope_give(&s, gni_permute(&s, x, order), results);
}

static gn_status squeeze_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    uint32_t named = 0;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int left = 0;
    for (int i = 0; i < a[1].count; i++)
        named |= UINT32_C(1) << gni_dim(&s, x, a[1].integers[i]);
    for (int i = 0; i < x->ndim; i++)
        if (x->sizes[i] != 1 || (a[1].is_given && (named >> i & 1) == 0))
            sizes[left++] = x->sizes[i];
    return gni_scope_give(&s, gni_view(&s, x, left, sizes), results);
}

static gn_status unsqueeze_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t dim = a[1].operand.scalar.integer, span = x->ndim + 1;
    if (dim < -span || dim >= span)
        gni_scope_fail(&s, GN_ERROR_INDEX,
                       "dimension %lld is out of range for a tensor of %d dimension%s: %lld to "
                       "%lld",
                       (long long)dim, x->ndim, gni_plural((uint64_t)x->ndim), (long long)-span,
                       (long long)span - 1);
    return gni_scope_give(&s, gni_unsqueeze(&s, x, (int)dim), results);
}

static gn_status movedim_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int order[GN_DIMENSIONS_MAX], count = a[1].count, next = 0;
    uint32_t moved = 0, places = 0;
    bool is_possible = count == a[2].count;
    for (int i = 0; i < GN_DIMENSIONS_MAX; i++)
        order[i] = -1;
    for (int i = 0; i < a[1].count; i++)
        moved |= UINT32_C(1) << dim_of(&s, x, a[1].integers[i]);
    for (int i = 0; i < a[2].count; i++)
        places |= UINT32_C(1) << dim_of(&s, x, a[2].integers[i]);
    is_possible &= __builtin_popcount(moved) == count && __builtin_popcount(places) == a[2].count;
    if (!is_possible)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "dimensions %s cannot go to %s",
                       gni_shape_text(a[1].count, a[1].integers).text,
                       gni_shape_text(a[2].count, a[2].integers).text);
    for (int i = 0; i < count && gni_scope_is_ok(&s); i++)
        order[dim_of(&s, x, a[2].integers[i])] = dim_of(&s, x, a[1].integers[i]);
    for (int i = 0; i < x->ndim; i++) {
        while ((moved >> next & 1) != 0)
            next++;
        if (order[i] < 0)
            order[i] = next++;
    }
    return gni_scope_give(&s, gni_permute(&s, x, order), results);
}

/* ---- parts ------------------------------------------------------------------------------------- */

/* A view; `apart` is the same by the strides of gni_tape_strides(). */
static gn_tensor *view_make(struct gni_scope *s, gn_tensor *x,
                            const struct gni_strided_details *view,
                            const struct gni_strided_details *apart)
{
    gn_tensor *made = NULL;
    gn_status status = gni_tensor_alias_planned(x, view->offset, view->ndim, view->sizes,
                                                view->strides, apart, &made);
    return gni_scope_keep(s, status, made);
}

/* By the strides `view->own`. */
static void windows_lay(const gn_tensor *x, int at, int64_t size, int64_t step,
                        struct gni_strided_details *view)
{
    memcpy(view->sizes, x->sizes, sizeof view->sizes);
    memcpy(view->strides, view->own, sizeof view->strides);
    view->offset = 0;
    view->ndim = x->ndim + 1;
    if (x->ndim > 0) {
        view->sizes[at] = (x->sizes[at] - size) / step + 1;
        if (view->sizes[at] > 1)
            view->strides[at] *= step;
    }
    view->sizes[x->ndim] = size;
    view->strides[x->ndim] = x->ndim > 0 ? view->own[at] : 1;
}

static gn_status unfold_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int at = dim_of(&s, x, a[1].operand.scalar.integer);
    int64_t size = a[2].operand.scalar.integer, step = a[3].operand.scalar.integer;
    int64_t length = x->ndim > 0 ? x->sizes[at] : 1;
    struct gni_strided_details view, apart;
    if (step < 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "the step is at least 1, not %lld",
                       (long long)step);
    if (size < 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "the size of a window is not negative: %lld",
                       (long long)size);
    if (size > length)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "size %lld is larger than dimension %d, which has %lld element%s",
                       (long long)size, at, (long long)length, gni_plural((uint64_t)length));
    if (x->ndim == GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a tensor has at most %d dimensions", GN_DIMENSIONS_MAX);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    memcpy(view.own, x->strides, sizeof view.own);
    gni_tape_strides(x, apart.own);
    windows_lay(x, at, size, step, &view);
    windows_lay(x, at, size, step, &apart);
    return gni_scope_give(&s, view_make(&s, x, &view, &apart), results);
}

/* By the strides `view->own`. */
static void diagonal_lay(const gn_tensor *x, int first, int second, int64_t offset,
                         struct gni_strided_details *view)
{
    int64_t right = offset > 0 ? offset : 0, down = offset < 0 ? offset : 0;
    int64_t rows = x->sizes[first] + down, columns = x->sizes[second] - right;
    int64_t count = rows < columns ? rows : columns;
    int ndim = 0;
    view->offset = count > 0 ? right * view->own[second] - down * view->own[first] : 0;
    for (int i = 0; i < x->ndim; i++)
        if (i != first && i != second) {
            view->sizes[ndim] = x->sizes[i];
            view->strides[ndim++] = view->own[i];
        }
    view->sizes[ndim] = count > 0 ? count : 0;
    view->strides[ndim++] = view->own[first] + view->own[second];
    view->ndim = ndim;
}

gn_tensor *gni_diagonal(struct gni_scope *s, gn_tensor *x, int64_t offset, int64_t dim1,
                        int64_t dim2)
{
    int first = dim_of(s, x, dim1), second = dim_of(s, x, dim2);
    struct gni_strided_details view, apart;
    if (first == second)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "dimensions %lld and %lld of %s are the same",
                       (long long)dim1, (long long)dim2, gni_shape_text(x->ndim, x->sizes).text);
    if (!gni_scope_is_ok(s))
        return NULL;
    memcpy(view.own, x->strides, sizeof view.own);
    gni_tape_strides(x, apart.own);
    diagonal_lay(x, first, second, offset, &view);
    diagonal_lay(x, first, second, offset, &apart);
    return view_make(s, x, &view, &apart);
}

static gn_status diagonal_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = gni_diagonal(&s, a[0].operand.tensor, a[1].operand.scalar.integer,
                                   a[2].operand.scalar.integer, a[3].operand.scalar.integer);
    return gni_scope_give(&s, made, results);
}

static gn_status select_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int at = own_dim_of(&s, x, a[1].operand.scalar.integer);
    return gni_scope_give(&s, gni_select(&s, x, at, a[2].operand.scalar.integer), results);
}

static gn_status narrow_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int at = own_dim_of(&s, x, a[1].operand.scalar.integer);
    int64_t start = a[2].operand.scalar.integer, count = a[3].operand.scalar.integer;
    int64_t length = gni_scope_is_ok(&s) ? x->sizes[at] : 0;
    int64_t begin = start < 0 ? start + length : start;
    if (count < 0 || begin < 0 || begin > length - count)
        gni_scope_fail(&s, GN_ERROR_INDEX, "%lld from %lld on are not in dimension %lld of %s",
                       (long long)count, (long long)start, (long long)a[1].operand.scalar.integer,
                       gni_shape_text(x->ndim, x->sizes).text);
    return gni_scope_give(&s, gni_narrow(&s, x, at, begin, count), results);
}

/* ---- in place: the tensor becomes another view ------------------------------------------------- */

/* With the record of the other, which gets the old one and goes. */
static gn_status become_taped(gn_tensor *x, gn_tensor *other)
{
    struct gni_record *record = x->gradient;
    x->gradient = NULL;
    gn_status status = gn_tensor_become(x, other);
    x->gradient = status == GN_OK ? other->gradient : record;
    if (status == GN_OK)
        other->gradient = record;
    return status;
}

static gn_status become(const gn_argument *a, gn_status (*call)(const gn_argument *, gn_results *),
                        gn_results *results)
{
    struct gni_scope s = {0};
    gn_results made = {.count = 0};
    gn_tensor *x = a[0].operand.tensor;
    bool is_taped = gni_is_taped(x);
    if (is_taped)
        s.status = gni_tape.write_check("a view", x);
    if (gni_scope_is_ok(&s))
        s.status = call(a, &made);
    if (gni_scope_is_ok(&s) && is_taped)
        s.status = become_taped(x, made.tensors[0]);
    else if (gni_scope_is_ok(&s))
        s.status = gn_tensor_become(x, made.tensors[0]);
    gn_results_clear(&made);
    return gni_scope_give(&s, x, results);
}

static gn_status squeeze_in_place(const gn_argument *a, gn_results *results)
{
    return become(a, squeeze_call, results);
}

static gn_status unsqueeze_in_place(const gn_argument *a, gn_results *results)
{
    return become(a, unsqueeze_call, results);
}

static gn_status transpose_in_place(const gn_argument *a, gn_results *results)
{
    return become(a, transpose_call, results);
}

static gn_status t_in_place(const gn_argument *a, gn_results *results)
{
    return become(a, t_call, results);
}

/* Memory with room for `sizes`, from the tensor's first element on: its own, or new memory that begins with a copy. */
static gn_status resize_view(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *whole = NULL, *made;
    int64_t strides[GN_DIMENSIONS_MAX], count = 0;
    s.status = gni_shape_check(a[1].count, a[1].integers, gni_dtype_size(x->dtype), &count);
    if (gni_scope_is_ok(&s))
        gni_strides_contiguous(a[1].count, a[1].integers, strides);
    gn_status status = gn_tensor_view_storage(x, x->dtype, &whole);
    whole = gni_scope_keep(&s, status, whole);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    int64_t start = x->offset - whole->offset, held = whole->count - start;
    if (held >= count) {
        made = gni_strided(&s, x, a[1].count, a[1].integers, strides, x->offset);
    } else {
        made = gni_empty(&s, x->dtype, a[1].count, a[1].integers, x->device);
        gn_tensor *flat = gni_view(&s, made, 1, &count);
        gni_assign(&s, gni_narrow(&s, flat, 0, 0, held),
                   gni_of(gni_narrow(&s, whole, 0, start, held)));
    }
    return gni_scope_give(&s, made, results);
}

static gn_status resize_in_place(const gn_argument *a, gn_results *results)
{
    GN_TRY(gni_tape_refuse_write("resize", a[0].operand.tensor, NULL));
    return become(a, resize_view, results);
}

/* All of the memory of a tensor, of its own type or as bytes. */
static gn_status storage_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    bool is_typed = a[1].operand.scalar.integer != 0;
    gn_status status = gn_tensor_view_storage(x, is_typed ? x->dtype : GN_UINT8, &made);
    return gni_scope_give(&s, gni_scope_keep(&s, status, made), results);
}

static gn_status empty_strided_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_dtype dtype = a[2].is_given ? a[2].dtype : GN_FLOAT32;
    int64_t span = 1, count = 0, reach;
    if (a[0].count != a[1].count)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "size has %d number%s and stride has %d: they must be as many", a[0].count,
                       gni_plural((uint64_t)a[0].count), a[1].count);
    if (gni_scope_is_ok(&s))
        s.status = gni_shape_check(a[0].count, a[0].integers, gni_dtype_size(dtype), &count);
    for (int i = 0; i < a[0].count && gni_scope_is_ok(&s); i++)
        if (a[1].integers[i] < 0)
            gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "strides are not negative: %s",
                           gni_shape_text(a[1].count, a[1].integers).text);
        else if (count > 0 &&
                 (__builtin_mul_overflow(a[0].integers[i] - 1, a[1].integers[i], &reach) ||
                  __builtin_add_overflow(span, reach, &span)))
            gni_scope_fail(&s, GN_ERROR_SHAPE,
                           "shape %s and strides %s do not fit the address space",
                           gni_shape_text(a[0].count, a[0].integers).text,
                           gni_shape_text(a[1].count, a[1].integers).text);
    span = count > 0 ? span : 0;
    gn_tensor *room = gni_empty(&s, dtype, 1, &span, a[3].device);
    gn_tensor *made = gni_strided(&s, room, a[0].count, a[0].integers, a[1].integers, 0);
    return gni_scope_give(&s, made, results);
}

/* ---- of several tensors ------------------------------------------------------------------------ */

/* Joins a shape to one that others have together. */
static void shape_join(struct gni_scope *s, struct gni_shape *joined, int ndim,
                       const int64_t *sizes)
{
    struct gni_shape shape = {.ndim = ndim};
    bool is_possible = ndim <= GN_DIMENSIONS_MAX;
    for (int i = 0; is_possible && i < ndim; i++)
        shape.sizes[i] = sizes[i];
    if (!is_possible || !gni_shape_broadcast(joined, &shape, joined))
        gni_scope_fail(s, GN_ERROR_SHAPE, "shapes %s, %s do not broadcast",
                       gni_shape_text(joined->ndim, joined->sizes).text,
                       gni_shape_text(ndim, sizes).text);
}

static gn_status broadcast_shapes_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_shape joined = {.ndim = 0};
    const int64_t *sizes = a[0].integers;
    for (int i = 0; i < a[0].count && gni_scope_is_ok(&s); i++) {
        shape_join(&s, &joined, a[0].lengths[i], sizes);
        sizes += a[0].lengths[i];
    }
    results->count = joined.ndim;
    for (int i = 0; i < joined.ndim; i++)
        results->sizes[i] = joined.sizes[i];
    return gni_scope_give_number(&s, (gn_scalar){.kind = GN_INT64}, results);
}

/* Gives views of tensors with the shape that they have together. */
static gn_status give_broadcast(struct gni_scope *s, int count, gn_tensor *const *tensors,
                                gn_results *results)
{
    struct gni_shape joined = {.ndim = 0};
    gn_tensor **made = gni_scope_list(s, count);
    for (int i = 0; i < count && gni_scope_is_ok(s); i++)
        shape_join(s, &joined, tensors[i]->ndim, tensors[i]->sizes);
    for (int i = 0; i < count && gni_scope_is_ok(s); i++)
        made[i] = gni_expand(s, tensors[i], joined.ndim, joined.sizes);
    return gni_scope_give_list(s, count, made, results);
}

static gn_status broadcast_tensors_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return give_broadcast(&s, a[0].count, a[0].tensors, results);
}

static gn_status meshgrid_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made[GN_DIMENSIONS_MAX];
    int count = a[0].count;
    bool is_turned = strcmp(a[1].text, "xy") == 0;
    if (!is_turned && strcmp(a[1].text, "ij") != 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "indexing is 'ij' or 'xy', not '%s'", a[1].text);
    if (count > GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a tensor has at most %d dimensions, not %d",
                       GN_DIMENSIONS_MAX, count);
    for (int i = 0; i < count && gni_scope_is_ok(&s); i++) {
        int64_t sizes[GN_DIMENSIONS_MAX];
        int at = is_turned && count > 1 && i < 2 ? 1 - i : i;
        for (int k = 0; k < count; k++)
            sizes[k] = k == at ? a[0].tensors[i]->count : 1;
        made[i] = gni_reshape(&s, a[0].tensors[i], count, sizes);
    }
    return give_broadcast(&s, gni_scope_is_ok(&s) ? count : 0, made, results);
}

gn_tensor *gni_at_least(struct gni_scope *s, gn_tensor *x, int ndim)
{
    if (gni_scope_is_ok(s) && x->ndim == 0)
        x = gni_unsqueeze(s, x, 0);
    if (gni_scope_is_ok(s) && x->ndim == 1 && ndim > 1)
        x = gni_unsqueeze(s, x, 0);
    if (gni_scope_is_ok(s) && x->ndim == 2 && ndim > 2)
        x = gni_unsqueeze(s, x, 2);
    return x;
}

static gn_status give_at_least(const gn_argument *a, int ndim, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor **made = gni_scope_list(&s, a[0].count);
    for (int i = 0; i < a[0].count && gni_scope_is_ok(&s); i++)
        made[i] = gni_at_least(&s, a[0].tensors[i], ndim);
    return gni_scope_give_list(&s, a[0].count, made, results);
}

static gn_status atleast_1d_call(const gn_argument *a, gn_results *results)
{
    return give_at_least(a, 1, results);
}

static gn_status atleast_2d_call(const gn_argument *a, gn_results *results)
{
    return give_at_least(a, 2, results);
}

static gn_status atleast_3d_call(const gn_argument *a, gn_results *results)
{
    return give_at_least(a, 3, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    ONLY_METHOD = GN_FORM_METHOD | GN_FORM_NO_FUNCTION,
};

const gn_function gni_functions_views[] = {
    {"reshape", NULL, "input: Tensor, *shape: sizes", 0, reshape_call,
     "The elements with another shape, with a copy only where there must be one; one -1 is worked "
     "out.",
     ">>> genesis.reshape(genesis.arange(6), (2, -1)).shape\n(2, 3)"},
    {"view", NULL, "input: Tensor, *shape: sizes, dtype: dtype = None", 0, view_call,
     "The same elements with another shape, or the same bytes as another dtype, without a copy; "
     "one -1 is worked out.",
     ">>> genesis.view(genesis.arange(6), 3, 2).shape\n(3, 2)"},
    {"expand", NULL, "input: Tensor, *shape: sizes", 0, expand_call,
     "A view in which dimensions of 1 are repeated; -1 keeps a size.",
     ">>> genesis.expand(genesis.zeros(3, 1), -1, 4).shape\n(3, 4)"},
    {"broadcast_to", NULL, "input: Tensor, *shape: sizes", GN_FORM_METHOD, expand_call,
     "A view in which dimensions of 1 are repeated.",
     ">>> genesis.broadcast_to(genesis.zeros(3), (2, 3)).shape\n(2, 3)"},
    {"view_as", NULL, "input: Tensor, other: Tensor", ONLY_METHOD, view_as_call,
     "A view with the shape of another tensor.",
     ">>> genesis.zeros(6).view_as(genesis.zeros(2, 3)).shape\n(2, 3)"},
    {"reshape_as", NULL, "input: Tensor, other: Tensor", ONLY_METHOD, reshape_as_call,
     "The elements with the shape of another tensor, with a copy only where there must be one.",
     ">>> genesis.zeros(6).reshape_as(genesis.zeros(2, 3)).shape\n(2, 3)"},
    {"expand_as", NULL, "input: Tensor, other: Tensor", ONLY_METHOD, expand_as_call,
     "A view in which dimensions of 1 are repeated, with the shape of another tensor.",
     ">>> genesis.zeros(3).expand_as(genesis.zeros(2, 3)).shape\n(2, 3)"},
    {"ravel", NULL, "input: Tensor", GN_FORM_METHOD, ravel_call,
     "All elements as one dimension, with a copy only where there must be one.",
     ">>> genesis.ravel(genesis.zeros(2, 3)).shape\n(6,)"},
    {"as_strided", NULL, "input: Tensor, size: sizes, stride: sizes, storage_offset: int = None",
     GN_FORM_METHOD, as_strided_call,
     "A view with any sizes and strides, in elements, as long as it stays in the storage.",
     ">>> genesis.as_strided(genesis.arange(4), (3, 2), (1, 1))\n"
     "tensor([[0, 1],\n        [1, 2],\n        [2, 3]])"},
    {"flatten", NULL, "input: Tensor, start_dim: dim = 0, end_dim: dim = -1", 0, flatten_call,
     "Several dimensions, or all, as one, with a copy only where there must be one.",
     ">>> genesis.flatten(genesis.zeros(2, 3, 4), 1).shape\n(2, 12)"},
    {"unflatten", NULL, "input: Tensor, dim: dim, sizes: sizes", GN_FORM_METHOD, unflatten_call,
     "A view of a dimension as several; one -1 is worked out.",
     ">>> genesis.unflatten(genesis.zeros(2, 6), 1, (3, -1)).shape\n(2, 3, 2)"},
    {"transpose", NULL, "input: Tensor, dim0: dim, dim1: dim", 0, transpose_call,
     "A view with two dimensions exchanged.",
     ">>> genesis.transpose(genesis.zeros(2, 3), 0, 1).shape\n(3, 2)"},
    {"swapdims", NULL, "input: Tensor, dim0: dim, dim1: dim", GN_FORM_METHOD, transpose_call,
     "A view with two dimensions exchanged: transpose() by another name.",
     ">>> genesis.swapdims(genesis.zeros(2, 3), 0, 1).shape\n(3, 2)"},
    {"swapaxes", NULL, "input: Tensor, axis0: dim, axis1: dim", GN_FORM_METHOD, transpose_call,
     "A view with two dimensions exchanged: transpose() by another name.",
     ">>> genesis.swapaxes(genesis.zeros(2, 3), 0, 1).shape\n(3, 2)"},
    {"t", NULL, "input: Tensor", GN_FORM_METHOD, t_call,
     "A view of a matrix with rows and columns exchanged; a vector or number as it is.",
     ">>> genesis.t(genesis.zeros(2, 3)).shape\n(3, 2)"},
    {"permute", NULL, "input: Tensor, *dims: dims", 0, permute_call,
     "A view with the dimensions in another order.",
     ">>> genesis.permute(genesis.zeros(2, 3, 4), (2, 0, 1)).shape\n(4, 2, 3)"},
    {"movedim", "moveaxis", "input: Tensor, source: dims, destination: dims", GN_FORM_METHOD,
     movedim_call, "A view with dimensions moved to other places; the others keep their order.",
     ">>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape\n(3, 4, 2)"},
    {"squeeze", NULL, "input: Tensor, dim: dims = None", 0, squeeze_call,
     "A view without dimensions of 1: all of them, or those that are named.",
     ">>> genesis.squeeze(genesis.zeros(1, 3, 1)).shape\n(3,)"},
    {"unsqueeze", NULL, "input: Tensor, dim: dim", 0, unsqueeze_call,
     "A view with a new dimension of 1.",
     ">>> genesis.unsqueeze(genesis.zeros(3), 0).shape\n(1, 3)"},
    {"squeeze_", NULL, "input: Tensor, dim: dims = None", ONLY_METHOD, squeeze_in_place,
     "In place: without dimensions of 1, all of them or those that are named.",
     ">>> genesis.zeros(1, 3, 1).squeeze_().shape\n(3,)"},
    {"unsqueeze_", NULL, "input: Tensor, dim: dim", ONLY_METHOD, unsqueeze_in_place,
     "In place: with a new dimension of 1.", ">>> genesis.zeros(3).unsqueeze_(0).shape\n(1, 3)"},
    {"transpose_", "swapdims_", "input: Tensor, dim0: dim, dim1: dim", ONLY_METHOD,
     transpose_in_place, "In place: with two dimensions exchanged.",
     ">>> genesis.zeros(2, 3).transpose_(0, 1).shape\n(3, 2)"},
    {"swapaxes_", NULL, "input: Tensor, axis0: dim, axis1: dim", ONLY_METHOD, transpose_in_place,
     "In place: with two dimensions exchanged.",
     ">>> genesis.zeros(2, 3).swapaxes_(0, 1).shape\n(3, 2)"},
    {"t_", NULL, "input: Tensor", ONLY_METHOD, t_in_place,
     "In place: with rows and columns of a matrix exchanged.",
     ">>> genesis.zeros(2, 3).t_().shape\n(3, 2)"},
    {"resize_", NULL, "input: Tensor, *shape: sizes", ONLY_METHOD, resize_in_place,
     "In place: another shape of any number of elements, row-major from the first element on.\n\n"
     "Where the memory is too small the tensor gets new memory, whose first elements are those of "
     "the old; views of it keep the old one. New elements are not set.",
     ">>> genesis.arange(6).resize_(2, 2)\ntensor([[0, 1],\n        [2, 3]])"},
    {"_storage", NULL, "input: Tensor, is_typed: bool", ONLY_METHOD, storage_call,
     "A view of all of the tensor's memory, as elements or as bytes.", NULL},
    {"empty_strided", NULL,
     "size: sizes, stride: sizes, *, dtype: dtype = None, device: device = None", 0,
     empty_strided_call,
     "A new tensor with these sizes and strides, in elements. Its elements are not set.",
     ">>> genesis.empty_strided((2, 3), (1, 2)).stride()\n(1, 2)"},
    {"unfold", NULL, "input: Tensor, dimension: dim, size: int, step: int", ONLY_METHOD,
     unfold_call,
     "A view of all windows of a size, `step` apart, in a dimension; the last dimension is the "
     "window.",
     ">>> genesis.arange(5).unfold(0, 3, 2)\ntensor([[0, 1, 2],\n        [2, 3, 4]])"},
    {"diagonal", NULL, "input: Tensor, offset: int = 0, dim1: dim = 0, dim2: dim = 1",
     GN_FORM_METHOD, diagonal_call,
     "A view of the elements whose index in `dim2` is `offset` more than in `dim1`; it becomes the "
     "last dimension.",
     ">>> genesis.diagonal(genesis.arange(6).view(2, 3), 1)\ntensor([1, 5])"},
    {"linalg.diagonal", NULL, "A: Tensor, *, offset: int = 0, dim1: dim = -2, dim2: dim = -1", 0,
     diagonal_call, "The same of matrices, which are the last two dimensions.",
     ">>> genesis.linalg.diagonal(genesis.ones(3, 2, 2)).shape\n(3, 2)"},
    {"select", NULL, "input: Tensor, dim: dim, index: int", GN_FORM_METHOD, select_call,
     "A view of one index of a dimension, without that dimension.",
     ">>> genesis.select(genesis.tensor([[1, 2], [3, 4]]), 1, 0)\ntensor([1, 3])"},
    {"narrow", NULL, "input: Tensor, dim: dim, start: int, length: int", GN_FORM_METHOD,
     narrow_call, "A view of `length` elements of a dimension from `start` on.",
     ">>> genesis.narrow(genesis.arange(5), 0, 1, 3)\ntensor([1, 2, 3])"},
    {"broadcast_shapes", NULL, "*shapes: shapes -> sizes", 0, broadcast_shapes_call,
     "The shape that tensors of these shapes have together.",
     ">>> genesis.broadcast_shapes((3, 1), (4,))\n(3, 4)"},
    {"broadcast_tensors", NULL, "*tensors: tensors -> tensors", 0, broadcast_tensors_call,
     "Views of all of them with the shape that they have together.",
     ">>> [x.shape for x in genesis.broadcast_tensors(genesis.zeros(3, 1), genesis.zeros(4))]\n"
     "[(3, 4), (3, 4)]"},
    {"meshgrid", NULL, "*tensors: tensors, indexing: text = 'ij' -> tensors", 0, meshgrid_call,
     "Views of vectors, each along a dimension of its own; with ``\"xy\"`` the first two "
     "exchanged.",
     ">>> rows, columns = genesis.meshgrid(genesis.arange(2), genesis.arange(3))\n"
     ">>> columns\ntensor([[0, 1, 2],\n        [0, 1, 2]])"},
    {"atleast_1d", NULL, "*tensors: tensors -> each", 0, atleast_1d_call,
     "A view with at least one dimension; of several tensors a tuple of them.",
     ">>> genesis.atleast_1d(genesis.tensor(3))\ntensor([3])"},
    {"atleast_2d", NULL, "*tensors: tensors -> each", 0, atleast_2d_call,
     "A view with at least two dimensions; of several tensors a tuple of them.",
     ">>> genesis.atleast_2d(genesis.tensor([3]))\ntensor([[3]])"},
    {"atleast_3d", NULL, "*tensors: tensors -> each", 0, atleast_3d_call,
     "A view with at least three dimensions; of several tensors a tuple of them.",
     ">>> genesis.atleast_3d(genesis.tensor([3, 4])).shape\n(1, 2, 1)"},
    {0},
};
