/*
 * functions_shapes.c: copies of elements that are moved, repeated, put together or written beside others.
 */
#include "base/text.h"
#include "ops/functions.h"
#include "ops/memory_format.h"

#include <string.h>

/* ---- turned ------------------------------------------------------------------------------------ */

static gn_tensor *flip(struct gni_scope *s, gn_tensor *x, uint32_t dims)
{
    gn_tensor *made = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_flip(x, dims, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

static gn_status flip_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    uint32_t dims = gni_dims(&s, a[0].operand.tensor, &a[1]);
    return gni_scope_give(&s, flip(&s, a[0].operand.tensor, dims), results);
}

static gn_status fliplr_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    int dim = gni_dim(&s, a[0].operand.tensor, 1);
    return gni_scope_give(&s, flip(&s, a[0].operand.tensor, UINT32_C(1) << dim), results);
}

static gn_status flipud_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    if (a[0].operand.tensor->ndim == 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "the tensor has no first dimension");
    return gni_scope_give(&s, flip(&s, a[0].operand.tensor, 1), results);
}

static gn_status rot90_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made;
    int turns = (int)(a[1].operand.scalar.integer & 3);
    if (a[2].count != 2)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "dims has 2 dimensions, not %d", a[2].count);
    int first = gni_scope_is_ok(&s) ? gni_dim(&s, x, a[2].integers[0]) : 0;
    int second = gni_scope_is_ok(&s) ? gni_dim(&s, x, a[2].integers[1]) : 0;
    if (first == second)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "dimensions %lld and %lld of %s are the same",
                       (long long)a[2].integers[0], (long long)a[2].integers[1],
                       gni_shape_text(x->ndim, x->sizes).text);
    uint32_t bits[] = {0, UINT32_C(1) << second, UINT32_C(1) << first | UINT32_C(1) << second,
                       UINT32_C(1) << first};
    made = flip(&s, x, bits[turns]);
    if (turns % 2 == 1)
        made = gni_transpose(&s, made, first, second);
    return gni_scope_give(&s, made, results);
}

/* ---- moved and repeated ------------------------------------------------------------------------ */

/* Copies with each dimension moved on by so many elements, fewer than it has: a dimension that moves is cut in two,
 * which change places. */
static gn_tensor *rolled(struct gni_scope *s, gn_tensor *x, const int64_t *moved)
{
    int cut[GN_DIMENSIONS_MAX], cuts = 0;
    gn_tensor *made = gni_empty(s, x->dtype, x->ndim, x->sizes, x->device);
    for (int i = 0; i < x->ndim; i++)
        if (moved[i] != 0)
            cut[cuts++] = i;
    for (int part = 0; part < 1 << cuts && gni_scope_is_ok(s); part++) {
        gn_tensor *from = x, *to = made;
        for (int i = 0; i < cuts; i++) {
            int64_t size = x->sizes[cut[i]], far = moved[cut[i]];
            bool is_first = (part >> i & 1) == 0;
            from =
                gni_narrow(s, from, cut[i], is_first ? 0 : size - far, is_first ? size - far : far);
            to = gni_narrow(s, to, cut[i], is_first ? far : 0, is_first ? size - far : far);
        }
        gni_assign(s, to, gni_of(from));
    }
    return made;
}

static gn_status roll_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *from = x;
    int64_t moved[GN_DIMENSIONS_MAX] = {0}, whole = 0;
    bool is_flat = !a[2].is_given;
    int count = is_flat ? 1 : a[2].count;
    if (is_flat && a[1].count != 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "%d shifts need as many dimensions", a[1].count);
    else if (a[1].count != count)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "shifts and dims must have as many numbers, not %d and %d", a[1].count,
                       a[2].count);
    if (is_flat)
        from = gni_reshape(&s, x, 1, (const int64_t[]){-1});
    for (int i = 0; i < count && gni_scope_is_ok(&s); i++) {
        int64_t dim = is_flat ? whole : a[2].integers[i];
        if (dim < -from->ndim || dim >= from->ndim) {
            gni_scope_fail(&s, GN_ERROR_INDEX, "dimension %lld is out of range for shape %s",
                           (long long)dim, gni_shape_text(x->ndim, x->sizes).text);
            break;
        }
        int at = (int)(dim < 0 ? dim + from->ndim : dim);
        int64_t size = from->sizes[at];
        if (size > 0)
            moved[at] = ((moved[at] + a[1].integers[i] % size) % size + size) % size;
    }
    gn_tensor *made = gni_scope_is_ok(&s) ? rolled(&s, from, moved) : NULL;
    if (is_flat)
        made = gni_view(&s, made, x->ndim, x->sizes);
    return gni_scope_give(&s, made, results);
}

/* The whole `counts` times along each dimension, of which there are at least as many as the tensor has. */
static gn_tensor *repeated(struct gni_scope *s, gn_tensor *x, int ndim, const int64_t *counts)
{
    /* A dimension that is repeated becomes two: the repetitions, and what is repeated. */
    int64_t narrow[2 * GN_DIMENSIONS_MAX], wide[2 * GN_DIMENSIONS_MAX], sizes[GN_DIMENSIONS_MAX];
    int split = 0;
    if (ndim > GN_DIMENSIONS_MAX)
        gni_scope_fail(s, GN_ERROR_SHAPE, "a tensor has at most %d dimensions", GN_DIMENSIONS_MAX);
    for (int i = 0; i < ndim && gni_scope_is_ok(s); i++) {
        int64_t size = i < ndim - x->ndim ? 1 : x->sizes[i - (ndim - x->ndim)];
        if (counts[i] < 0)
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "counts are not negative: %s",
                           gni_shape_text(ndim, counts).text);
        if (counts[i] != 1) {
            narrow[split] = 1;
            wide[split++] = counts[i];
        }
        narrow[split] = wide[split] = size;
        split++;
        if (__builtin_mul_overflow(counts[i], size, &sizes[i]))
            gni_scope_fail(s, GN_ERROR_SHAPE, "%lld times %lld elements are too many",
                           (long long)counts[i], (long long)size);
    }
    gn_tensor *made = gni_expand(s, gni_view(s, x, split, narrow), split, wide);
    return gni_view(s, gni_clone(s, made), ndim, sizes);
}

static gn_status repeat_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_tensor *x = a[0].operand.tensor;
    if (a[1].count < x->ndim)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "%s needs a count for each dimension of shape %s",
                       gni_shape_text(a[1].count, a[1].integers).text,
                       gni_shape_text(x->ndim, x->sizes).text);
    gn_tensor *made = repeated(&s, a[0].operand.tensor, a[1].count, a[1].integers);
    return gni_scope_give(&s, made, results);
}

static gn_status tile_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t counts[GN_DIMENSIONS_MAX];
    if (a[1].count >= x->ndim)
        return gni_scope_give(&s, repeated(&s, x, a[1].count, a[1].integers), results);
    int shift = x->ndim - a[1].count;
    for (int i = 0; i < x->ndim; i++)
        counts[i] = i < shift ? 1 : a[1].integers[i - shift];
    return gni_scope_give(&s, repeated(&s, x, x->ndim, counts), results);
}

static gn_status contiguous_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    return gni_scope_give(&s, gni_to_format(&s, x, &a[1], GN_FORMAT_CONTIGUOUS, false), results);
}

/* ---- put together ------------------------------------------------------------------------------ */

static gn_status stack_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_tensor *first = a[0].tensors[0];
    int64_t span = first->ndim + 1, dim = a[1].operand.scalar.integer;
    gn_tensor **parts = gni_scope_list(&s, a[0].count);
    if (dim < -span || dim >= span)
        gni_scope_fail(&s, GN_ERROR_INDEX,
                       "dimension %lld is out of range for a tensor of %d dimension%s: %lld to "
                       "%lld",
                       (long long)dim, first->ndim, gni_plural((uint64_t)first->ndim),
                       (long long)-span, (long long)span - 1);
    for (int i = 0; i < a[0].count && gni_scope_is_ok(&s); i++) {
        gn_tensor *one = a[0].tensors[i];
        if (!gni_shape_is_equal(first->ndim, first->sizes, one->ndim, one->sizes))
            gni_scope_fail(&s, GN_ERROR_SHAPE, "shapes %s and %s differ",
                           gni_shape_text(first->ndim, first->sizes).text,
                           gni_shape_text(one->ndim, one->sizes).text);
        parts[i] = gni_unsqueeze(&s, one, (int)dim);
    }
    return gni_scope_give(&s, gni_cat(&s, a[0].count, parts, (int)dim), results);
}

/* Tensors of at least `ndim` dimensions, along one; vectors along the first. */
static gn_status cat_at_least(const gn_argument *a, int ndim, int dim, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor **parts = gni_scope_list(&s, a[0].count);
    for (int i = 0; i < a[0].count && gni_scope_is_ok(&s); i++)
        parts[i] = gni_at_least(&s, a[0].tensors[i], ndim);
    if (gni_scope_is_ok(&s) && parts[0]->ndim == 1)
        dim = 0;
    return gni_scope_give(&s, gni_cat(&s, a[0].count, parts, dim), results);
}

static gn_status hstack_call(const gn_argument *a, gn_results *results)
{
    return cat_at_least(a, 1, 1, results);
}

static gn_status vstack_call(const gn_argument *a, gn_results *results)
{
    return cat_at_least(a, 2, 0, results);
}

static gn_status dstack_call(const gn_argument *a, gn_results *results)
{
    return cat_at_least(a, 3, 2, results);
}

static gn_status column_stack_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor **parts = gni_scope_list(&s, a[0].count);
    for (int i = 0; i < a[0].count && gni_scope_is_ok(&s); i++) {
        parts[i] = a[0].tensors[i];
        if (parts[i]->ndim < 2)
            parts[i] = gni_reshape(&s, parts[i], 2, (const int64_t[]){-1, 1});
    }
    return gni_scope_give(&s, gni_cat(&s, a[0].count, parts, 1), results);
}

/* ---- padded ------------------------------------------------------------------------------------ */

static void pad_refuse(struct gni_scope *s, const gn_tensor *x, int dim, int64_t before,
                       int64_t after, const char *why)
{
    gni_scope_fail(s, GN_ERROR_SHAPE, "%lld before and %lld after dimension %d of shape %s: %s",
                   (long long)before, (long long)after, dim, gni_shape_text(x->ndim, x->sizes).text,
                   why);
}

static int64_t at_least_0(int64_t number)
{
    return number > 0 ? number : 0;
}

/* A dimension without what negative pads crop. */
static gn_tensor *cropped(struct gni_scope *s, gn_tensor *x, int dim, int64_t before, int64_t after)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t size = x->sizes[dim];
    if (before < -size || after < -size ||
        size + at_least_0(-before) * -1 - at_least_0(-after) < 0) {
        pad_refuse(s, x, dim, before, after, "there are not so many elements to crop");
        return NULL;
    }
    int64_t start = at_least_0(-before), count = size - start - at_least_0(-after);
    return count == size ? x : gni_narrow(s, x, dim, start, count);
}

/* A number around the elements. `pads`: of each dimension, before and after. */
static gn_tensor *padded_constant(struct gni_scope *s, gn_tensor *x, int64_t (*pads)[2],
                                  gn_scalar value)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    gn_tensor *from = x, *to;
    for (int i = 0; i < x->ndim; i++) {
        from = cropped(s, from, i, pads[i][0], pads[i][1]);
        if (__builtin_add_overflow(x->sizes[i], pads[i][0], &sizes[i]) ||
            __builtin_add_overflow(sizes[i], pads[i][1], &sizes[i]))
            pad_refuse(s, x, i, pads[i][0], pads[i][1], "that is more than a tensor can have");
    }
    gn_tensor *made = to = gni_full(s, value, x->dtype, x->ndim, sizes, x->device);
    for (int i = 0; i < x->ndim && gni_scope_is_ok(s); i++)
        to = gni_narrow(s, to, i, at_least_0(pads[i][0]), from->sizes[i]);
    gni_assign(s, to, gni_of(from));
    return made;
}

/* Elements of a dimension around it: its mirror image, its ends, or those of the other end. */
static gn_tensor *padded_by_elements(struct gni_scope *s, gn_tensor *x, int dim, int64_t before,
                                     int64_t after, char mode)
{
    gn_tensor *parts[3], *middle = cropped(s, x, dim, before, after);
    int64_t pads[] = {at_least_0(before), at_least_0(after)};
    if (!gni_scope_is_ok(s) || pads[0] + pads[1] == 0)
        return middle;
    gn_tensor *from = mode == 'c' ? middle : x; /* what is cropped is gone for "circular" alone */
    int64_t size = from->sizes[dim], most = pads[0] > pads[1] ? pads[0] : pads[1];
    if (mode == 'r' ? most >= size : mode == 'c' ? most > size : size == 0) {
        pad_refuse(s, x, dim, before, after, "it has not enough elements for that");
        return NULL;
    }
    for (int end = 0; end < 2; end++) {
        int64_t sizes[GN_DIMENSIONS_MAX], count = pads[end];
        memcpy(sizes, from->sizes, sizeof sizes);
        sizes[dim] = count;
        if (mode == 'r')
            parts[2 * end] =
                flip(s, gni_narrow(s, from, dim, end == 0 ? 1 : size - 1 - count, count),
                     UINT32_C(1) << dim);
        else if (mode == 'c')
            parts[2 * end] = gni_narrow(s, from, dim, end == 0 ? size - count : 0, count);
        else
            parts[2 * end] =
                gni_expand(s, gni_narrow(s, from, dim, end == 0 ? 0 : size - 1, 1), x->ndim, sizes);
    }
    parts[1] = middle;
    return gni_cat(s, 3, parts, dim);
}

static gn_status pad_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = x;
    static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
    int64_t pads[GN_DIMENSIONS_MAX][2] = {{0}};
    int mode = 0, count = a[1].count / 2;
    gn_scalar value = a[3].is_given ? a[3].operand.scalar : (gn_scalar){.kind = GN_INT64};
    while (mode < 4 && strcmp(a[2].text, modes[mode]) != 0)
        mode++;
    if (mode == 4)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "mode is 'constant', 'reflect', 'replicate' or 'circular', not '%s'",
                       a[2].text);
    if (a[1].count % 2 != 0 || count > x->ndim)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "there are 2 numbers for each of the last dimensions, not %d for shape %s",
                       a[1].count, gni_shape_text(x->ndim, x->sizes).text);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    for (int i = 0; i < count; i++)
        for (int end = 0; end < 2; end++)
            pads[x->ndim - 1 - i][end] = a[1].integers[2 * i + end];
    if (mode == 0)
        return gni_scope_give(&s, padded_constant(&s, x, pads, value), results);
    for (int i = x->ndim - 1; i >= x->ndim - count; i--)
        made = padded_by_elements(&s, made, i, pads[i][0], pads[i][1],
                                  mode == 1   ? 'r'
                                  : mode == 3 ? 'c'
                                              : 'e');
    if (made == x || (gni_scope_is_ok(&s) && gn_tensor_shares_storage(made, x)))
        made = gni_clone(&s, made);
    return gni_scope_give(&s, made, results);
}

/* ---- written into a copy ----------------------------------------------------------------------- */

/* Writes `src` to a view of a copy, which it must have the shape of; gives the copy. */
static gn_status give_scattered(struct gni_scope *s, gn_tensor *copy, gn_tensor *view,
                                gn_tensor *src, gn_results *results)
{
    if (gni_scope_is_ok(s) && !gni_shape_is_equal(view->ndim, view->sizes, src->ndim, src->sizes))
        gni_scope_fail(s, GN_ERROR_SHAPE, "src has the shape %s of what it is written to, not %s",
                       gni_shape_text(view->ndim, view->sizes).text,
                       gni_shape_text(src->ndim, src->sizes).text);
    gni_assign(s, view, gni_of(src));
    return gni_scope_give(s, copy, results);
}

/* An end of a slice: from the end of the dimension if negative, and within it. */
static int64_t slice_end(const gn_argument *end, int64_t standard, int64_t size)
{
    int64_t at = end->is_given ? end->operand.scalar.integer : standard;
    at = at < 0 ? at + size : at;
    return at < 0 ? 0 : at > size ? size : at;
}

static gn_status slice_scatter_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *copy = gni_clone(&s, a[0].operand.tensor), *view = NULL;
    int dim = gni_dim(&s, a[0].operand.tensor, a[2].operand.scalar.integer);
    int64_t size = a[0].operand.tensor->ndim > 0 ? a[0].operand.tensor->sizes[dim] : 0;
    int64_t start = slice_end(&a[3], 0, size), end = slice_end(&a[4], size, size);
    int64_t step = a[5].operand.scalar.integer;
    if (step < 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "the step is at least 1, not %lld",
                       (long long)step);
    if (gni_scope_is_ok(&s)) {
        int64_t count = end > start ? (end - start - 1) / step + 1 : 0;
        gn_status status = gn_tensor_slice(copy, dim, start, step, count, &view);
        view = gni_scope_keep(&s, status, view);
    }
    return give_scattered(&s, copy, view, a[1].operand.tensor, results);
}

static gn_status select_scatter_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *copy = gni_clone(&s, a[0].operand.tensor);
    int dim = gni_dim(&s, a[0].operand.tensor, a[2].operand.scalar.integer);
    gn_tensor *view = gni_select(&s, copy, dim, a[3].operand.scalar.integer);
    return give_scattered(&s, copy, view, a[1].operand.tensor, results);
}

static gn_status diagonal_scatter_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *copy = gni_clone(&s, a[0].operand.tensor), *view = NULL;
    if (gni_scope_is_ok(&s))
        view = gni_diagonal(&s, copy, a[2].operand.scalar.integer, a[3].operand.scalar.integer,
                            a[4].operand.scalar.integer);
    return give_scattered(&s, copy, view, a[1].operand.tensor, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

const gn_function gni_functions_shapes[] = {
    {"flip", NULL, "input: Tensor, *dims: dims", GN_FORM_METHOD, flip_call,
     "A copy with dimensions the other way round.",
     ">>> genesis.flip(genesis.arange(3), 0)\ntensor([2, 1, 0])"},
    {"fliplr", NULL, "input: Tensor", GN_FORM_METHOD, fliplr_call,
     "A copy with the second dimension the other way round.",
     ">>> genesis.fliplr(genesis.tensor([[1, 2]]))\ntensor([[2, 1]])"},
    {"flipud", NULL, "input: Tensor", GN_FORM_METHOD, flipud_call,
     "A copy with the first dimension the other way round.",
     ">>> genesis.flipud(genesis.tensor([1, 2]))\ntensor([2, 1])"},
    {"rot90", NULL, "input: Tensor, k: int = 1, dims: sizes = (0, 1)", GN_FORM_METHOD, rot90_call,
     "A copy turned by `k` right angles, from the first of two dimensions towards the second.",
     ">>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))\n"
     "tensor([[2, 4],\n        [1, 3]])"},
    {"roll", NULL, "input: Tensor, shifts: sizes, dims: dims = None", GN_FORM_METHOD, roll_call,
     "A copy whose elements are moved on, those at the end to the beginning.\n\n"
     "Without dimensions it is as if there were one.",
     ">>> genesis.roll(genesis.arange(4), 1)\ntensor([3, 0, 1, 2])"},
    {"repeat", NULL, "input: Tensor, *repeats: sizes", GN_FORM_METHOD, repeat_call,
     "A copy with the whole repeated so many times along each dimension; new ones come in front.",
     ">>> genesis.tensor([1, 2]).repeat(2, 2)\n"
     "tensor([[1, 2, 1, 2],\n        [1, 2, 1, 2]])"},
    {"tile", NULL, "input: Tensor, *dims: sizes", GN_FORM_METHOD, tile_call,
     "As repeat(), with counts that are missing taken as 1 in front.",
     ">>> genesis.tile(genesis.tensor([[1, 2]]), (2,))\ntensor([[1, 2, 1, 2]])"},
    {"contiguous", NULL, "input: Tensor, *, memory_format: text = None", 0, contiguous_call,
     "The tensor itself if it is contiguous, else a copy that is.",
     ">>> genesis.contiguous(genesis.zeros(2, 3).T).is_contiguous()\nTrue"},
    {"stack", NULL, "tensors: tensors, dim: dim = 0", GN_FORM_OUT, stack_call,
     "Tensors of one shape side by side, along a new dimension.",
     ">>> genesis.stack([genesis.zeros(2), genesis.ones(2)]).shape\n(2, 2)"},
    {"hstack", NULL, "tensors: tensors", GN_FORM_OUT, hstack_call,
     "Tensors side by side: along the second dimension, vectors along the first.",
     ">>> genesis.hstack([genesis.tensor([1]), genesis.tensor([2, 3])])\ntensor([1, 2, 3])"},
    {"vstack", NULL, "tensors: tensors", GN_FORM_OUT, vstack_call,
     "Tensors below each other: along the first dimension, vectors as rows.",
     ">>> genesis.vstack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])\n"
     "tensor([[1, 2],\n        [3, 4]])"},
    {"dstack", NULL, "tensors: tensors", GN_FORM_OUT, dstack_call,
     "Tensors behind each other: along the third dimension.",
     ">>> genesis.dstack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])\n"
     "tensor([[[1, 3],\n         [2, 4]]])"},
    {"column_stack", NULL, "tensors: tensors", GN_FORM_OUT, column_stack_call,
     "Vectors as the columns of a matrix; matrices side by side.",
     ">>> genesis.column_stack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])\n"
     "tensor([[1, 3],\n        [2, 4]])"},
    {"pad", NULL, "input: Tensor, pad: sizes, mode: text = 'constant', value: number = None", 0,
     pad_call,
     "A copy with elements added around it; a negative number crops.\n\n"
     "`pad` has two numbers for each of the last dimensions, the last one first: how many elements "
     "come before it and after it. They are `value` (``\"constant\"``), the mirror image without "
     "the end (``\"reflect\"``), the end (``\"replicate\"``), or those of the other end "
     "(``\"circular\"``).",
     ">>> genesis.pad(genesis.tensor([1, 2, 3]), (1, 2))\n"
     "tensor([0, 1, 2, 3, 0, 0])\n"
     ">>> genesis.pad(genesis.tensor([1, 2, 3]), (2, 1), \"reflect\")\n"
     "tensor([3, 2, 1, 2, 3, 2])"},
    {"slice_scatter", NULL,
     "input: Tensor, src: Tensor, dim: dim = 0, start: int = None, end: int = None, step: int = 1",
     GN_FORM_METHOD, slice_scatter_call, "A copy with a slice of a dimension replaced by `src`.",
     ">>> genesis.slice_scatter(genesis.zeros(4), genesis.ones(2), 0, 1, 3)\n"
     "tensor([0., 1., 1., 0.])"},
    {"select_scatter", NULL, "input: Tensor, src: Tensor, dim: dim, index: int", GN_FORM_METHOD,
     select_scatter_call, "A copy with one index of a dimension replaced by `src`.",
     ">>> genesis.select_scatter(genesis.zeros(2, 2), genesis.ones(2), 0, 1)\n"
     "tensor([[0., 0.],\n        [1., 1.]])"},
    {"diagonal_scatter", NULL,
     "input: Tensor, src: Tensor, offset: int = 0, dim1: dim = 0, dim2: dim = 1", GN_FORM_METHOD,
     diagonal_scatter_call, "A copy with a diagonal replaced by `src`.",
     ">>> genesis.diagonal_scatter(genesis.zeros(2, 2), genesis.ones(1), 1)\n"
     "tensor([[0., 1.],\n        [0., 0.]])"},
    {0},
};
