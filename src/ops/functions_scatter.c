/*
 * functions_scatter.c: writing elements by their places: into a copy, or in place into the tensor itself, which is
 * results->target then.
 */
#include "ops/backend.h"
#include "ops/functions.h"
#include "ops/recorder.h"
#include "ops/scatter_fold.h"
#include "tensor/tape.h"

#include "tensor/shape.h"

#include <string.h>

/* What is written to: the tensor itself in place, else a copy of it. */
static gn_tensor *target_of(struct gni_scope *s, const gn_argument *a, const gn_results *results)
{
    return results->target != NULL ? results->target : gni_clone(s, a[0].operand.tensor);
}

/* Sets the slices of a dimension that an index names, or adds to them. */
static void slices_put(struct gni_scope *s, gn_tensor *target, int64_t dim, gn_tensor *index,
                       gn_operand value, bool is_added)
{
    int at = gni_scope_is_ok(s) ? gni_dim(s, target, dim) : 0;
    if (gni_scope_is_ok(s))
        s->status = gn_index_put(target, at, index, value, is_added);
}

/* True if an index is one number for each slice, expanded, and values and tensor have no other elements. */
static bool names_slices(const gn_tensor *target, int dim, const gn_tensor *index,
                         const gn_tensor *value)
{
    if (index->ndim != target->ndim || target->ndim < 2 || index->count == 0 || value == NULL ||
        !gni_shape_is_equal(value->ndim, value->sizes, index->ndim, index->sizes) ||
        index->dtype == GN_BOOL)
        return false;
    bool is_expanded = false;
    for (int i = 0; i < target->ndim; i++) {
        bool is_wide = i != dim && index->sizes[i] > 1;
        if (i != dim &&
            (index->sizes[i] != target->sizes[i] || (is_wide && index->strides[i] != 0)))
            return false;
        is_expanded |= is_wide;
    }
    return is_expanded;
}

/* The numbers of an index that names slices, as one dimension. */
static gn_tensor *one_of_slices(struct gni_scope *s, gn_tensor *index, int dim)
{
    int ndim = index->ndim;
    for (int i = 0; i < ndim; i++)
        if (i != dim)
            index = gni_narrow(s, index, i, 0, 1);
    return gni_scope_is_ok(s) ? gni_reshape(s, index, 1, &index->count) : NULL;
}

/* A matrix with a row for each place of the first dimension. */
static gn_tensor *by_rows(struct gni_scope *s, gn_tensor *x)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    const int64_t sizes[] = {x->sizes[0], x->sizes[0] > 0 ? x->count / x->sizes[0] : 0};
    return gni_reshape(s, x, 2, sizes);
}

/* Sets elements along a dimension, or adds to them: by slices, where the index says so, as of nodes of a graph. */
static void scatter(struct gni_scope *s, gn_tensor *target, int64_t dim, gn_tensor *index,
                    gn_operand value, bool is_added)
{
    int at = gni_scope_is_ok(s) ? gni_dim(s, target, dim) : 0;
    if (!gni_scope_is_ok(s))
        return;
    if (!is_added || !names_slices(target, at, index, value.tensor)) {
        s->status = gn_scatter(target, at, index, value, is_added);
        return;
    }
    slices_put(s, target, at, one_of_slices(s, index, at), value, true);
}

/* ---- several elements become one --------------------------------------------------------------- */

/* Where scatter's elements go, counted in row-major order. */
static gn_tensor *flat_places(struct gni_scope *s, gn_tensor *target, int dim, gn_tensor *index)
{
    int64_t stride = 1;
    gn_operand places = gni_integer(0);
    for (int i = target->ndim - 1; i >= 0; i--) {
        int64_t sizes[GN_DIMENSIONS_MAX];
        for (int k = 0; k < target->ndim; k++)
            sizes[k] = k == i ? index->sizes[i] : 1;
        gn_tensor *at = i == dim ? gni_cast(s, index, GN_INT64)
                                 : gni_view(s, gni_arange(s, index->sizes[i], target->device),
                                            target->ndim, sizes);
        gn_tensor *by = gni_binary(s, GN_OP_MULTIPLY, gni_of(at), gni_integer(stride));
        places = gni_of(gni_binary(s, GN_OP_ADD, places, gni_of(by)));
        stride *= target->sizes[i];
    }
    gn_tensor *wide = gni_expand(s, places.tensor, index->ndim, index->sizes);
    return gni_reshape(s, wide, 1, &index->count);
}

/*
 * Each place once, ascending, and all its values as one: numbers, or rows of them.
 *
 * Equal places lie side by side when they are sorted. Each value then takes over what the one 1, 2, 4 and so on before
 * it has gathered, if that has the same place: the last has them all.
 */
static void values_fold(struct gni_scope *s, gn_op op, gn_tensor **places, gn_tensor **values)
{
    gn_tensor *sorted = NULL, *order = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_sort(*places, 0, false, &sorted, &order) : s->status;
    sorted = gni_scope_keep(s, status, sorted);
    order = gni_scope_keep(s, status, order);
    gn_tensor *folded = gni_index_at(s, *values, order);
    int64_t count = gni_scope_is_ok(s) ? sorted->count : 0;
    for (int64_t step = 1; step < count && gni_scope_is_ok(s); step *= 2) {
        gn_tensor *later = gni_narrow(s, sorted, 0, step, count - step);
        gn_tensor *is_same = gni_binary(s, GN_OP_EQUAL, gni_of(later),
                                        gni_of(gni_narrow(s, sorted, 0, 0, count - step)));
        if (gni_item(s, gni_reduce(s, GN_REDUCE_ANY, is_same, 0, false)).integer == 0)
            break;
        gn_tensor *own = gni_narrow(s, folded, 0, step, count - step);
        gn_tensor *both =
            gni_binary(s, op, gni_of(own), gni_of(gni_narrow(s, folded, 0, 0, count - step)));
        if (gni_scope_is_ok(s) && own->ndim > 1)
            is_same = gni_unsqueeze(s, is_same, 1);
        gn_tensor *joined = gni_where(s, is_same, gni_of(both), gni_of(own));
        folded = gni_cat(s, 2, (gn_tensor *[]){gni_narrow(s, folded, 0, 0, step), joined}, 0);
    }
    if (!gni_scope_is_ok(s))
        return;
    const int64_t one = 1;
    gn_scalar yes = {.kind = GN_BOOL, .integer = 1};
    gn_tensor *last = gni_full(s, yes, GN_BOOL, 1, &one, sorted->device);
    gn_tensor *is_other =
        gni_binary(s, GN_OP_NOT_EQUAL, gni_of(gni_narrow(s, sorted, 0, 1, count - 1)),
                   gni_of(gni_narrow(s, sorted, 0, 0, count - 1)));
    gn_tensor *is_last = gni_cat(s, 2, (gn_tensor *[]){is_other, last}, 0);
    *places = gni_index_at(s, sorted, is_last);
    *values = gni_index_at(s, folded, is_last);
}

/* Products, largest and smallest ones. `src` is cut to the index already. */
static void fold_into(struct gni_scope *s, gn_tensor *target, int dim, gn_tensor *index,
                      gn_tensor *src, gn_op op, bool has_self)
{
    bool is_by_slices = names_slices(target, dim, index, src);
    gn_tensor *values, *row, *places, *whole = target;
    if (is_by_slices) { /* rows of a matrix, the places of which are those of the slices */
        whole = gni_transpose(s, target, 0, dim);
        places = gni_cast(s, one_of_slices(s, index, dim), GN_INT64);
        values = by_rows(s, gni_transpose(s, src, 0, dim));
        row = by_rows(s, whole);
    } else {
        values = gni_reshape(s, src, 1, &index->count);
        row = gni_reshape(s, target, 1, &target->count);
        places = flat_places(s, target, dim, index);
    }
    if (gni_scope_is_ok(s) && gni_can_scatter_fold(op, target, src)) {
        gn_tensor *made = NULL;
        if (gni_is_taped(row) || gni_is_taped(values)) /* its gradient needs what is written to */
            row = gni_clone(s, row);
        if (!gni_scope_is_ok(s))
            return;
        s->status = gni_scatter_fold(op, row, values, places, has_self, &made);
        made = gni_scope_keep(s, s->status, made);
        if (gni_scope_is_ok(s))
            gni_assign(s, whole, gni_of(gni_view(s, made, whole->ndim, whole->sizes)));
        return;
    }
    if (op == GN_OP_MULTIPLY)
        values = gni_wide(s, values);
    values_fold(s, op, &places, &values);
    if (has_self && gni_scope_is_ok(s)) {
        gn_tensor *own = gni_cast(s, gni_index_at(s, row, places), values->dtype);
        values = gni_binary(s, op, gni_of(own), gni_of(values));
    }
    row = gni_clone(s, row);
    gni_index_put_at(s, row, places, gni_of(gni_cast(s, values, target->dtype)), false);
    if (gni_scope_is_ok(s))
        gni_assign(s, whole, gni_of(gni_view(s, row, whole->ndim, whole->sizes)));
}

/* Sums and means. `counts`: how many values each place has. */
static void sum_into(struct gni_scope *s, gn_tensor *target, int dim, gn_tensor *index,
                     gn_tensor *src, gn_tensor *counts, bool is_mean, bool has_self)
{
    gn_tensor *base = target;
    gn_dtype dtype = target->dtype;
    bool is_floating = gni_dtype_is_floating(dtype);
    if (!has_self) {
        gn_tensor *is_hit = gni_binary(s, GN_OP_GREATER, gni_of(counts), gni_integer(0));
        base = gni_where(s, is_hit, gni_integer(0), gni_of(target));
    }
    /* A sum may be more than its type has, where the mean is not; halves are rounded once. */
    gn_dtype wide = is_mean && is_floating     ? GN_FLOAT64
                    : gni_dtype_is_half(dtype) ? GN_FLOAT32
                                               : dtype;
    gn_tensor *total = gni_scope_is_ok(s) ? gni_cast(s, base, wide) : NULL;
    if (total == target)
        total = gni_clone(s, total);
    scatter(s, total, dim, index, gni_of(gni_cast(s, src, wide)), true);
    if (is_mean) {
        gn_tensor *shared = gni_binary(s, GN_OP_MAXIMUM, gni_of(counts), gni_integer(1));
        if (dtype == GN_UINT64)
            shared = gni_cast(s, shared, GN_UINT64);
        gn_op op = is_floating ? GN_OP_DIVIDE : GN_OP_FLOOR_DIVIDE;
        total = gni_binary(s, op, gni_of(total), gni_of(shared));
    }
    gni_assign(s, target, gni_of(total));
}

/* The part of values that an index of this shape uses. */
static gn_tensor *values_cut(struct gni_scope *s, gn_tensor *values, const gn_tensor *index)
{
    for (int i = 0; i < index->ndim && gni_scope_is_ok(s); i++)
        if (i < values->ndim && index->sizes[i] < values->sizes[i])
            values = gni_narrow(s, values, i, 0, index->sizes[i]);
    return values;
}

/* Whether shapes fit, and no number of the index is out of range: what is wrong, others find out. */
static bool is_inside(struct gni_scope *s, const gn_tensor *target, int dim, gn_tensor *index,
                      const gn_tensor *src)
{
    int64_t least = 0, most = 0;
    bool is_fit = index->dtype == GN_INT64 && index->device == target->device &&
                  index->ndim == target->ndim && src->ndim == target->ndim;
    for (int i = 0; i < index->ndim && is_fit; i++)
        is_fit =
            index->sizes[i] <= src->sizes[i] && (i == dim || index->sizes[i] <= target->sizes[i]);
    if (!is_fit)
        return false;
    gn_tensor *whole = NULL;
    gn_status status = gni_tensor_compact(index, &whole);
    whole = gni_scope_keep(s, status, whole);
    if (gni_scope_is_ok(s))
        s->status = gni_tensor_flush(whole);
    if (gni_scope_is_ok(s))
        s->status = gni_backend_get(index->device)->range(whole, &least, &most, NULL);
    return gni_scope_is_ok(s) && least >= 0 && most < target->sizes[dim];
}

/* scatter_reduce() into a tensor. */
static void reduce_into(struct gni_scope *s, gn_tensor *target, int64_t dim, gn_tensor *index,
                        gn_tensor *src, const char *reduce, bool has_self)
{
    bool is_mean = strcmp(reduce, "mean") == 0, is_sum = is_mean || strcmp(reduce, "sum") == 0;
    gn_op op = strcmp(reduce, "prod") == 0   ? GN_OP_MULTIPLY
               : strcmp(reduce, "amax") == 0 ? GN_OP_MAXIMUM
               : strcmp(reduce, "amin") == 0 ? GN_OP_MINIMUM
                                             : GN_OP_COUNT;
    if (!is_sum && op == GN_OP_COUNT)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "reduce is 'sum', 'prod', 'mean', 'amax' or 'amin', not '%s'", reduce);
    if (gni_scope_is_ok(s) && src->dtype != target->dtype)
        gni_scope_fail(s, GN_ERROR_TYPE, "src is genesis.%s, and the tensor genesis.%s",
                       gni_dtypes[src->dtype].name, gni_dtypes[target->dtype].name);
    if (gni_scope_is_ok(s) && target->ndim == 0) { /* counts as one of one element */
        const int64_t one = 1;
        target = gni_view(s, target, 1, &one);
        index = gni_reshape(s, index, 1, &index->count);
        src = gni_reshape(s, src, 1, &src->count);
    }
    int at = gni_scope_is_ok(s) ? gni_dim(s, target, dim) : 0;
    if (!gni_scope_is_ok(s))
        return;
    if (!is_sum && index->count > 0 && gni_can_scatter_fold(op, target, src) &&
        is_inside(s, target, at, index, src)) {
        fold_into(s, target, at, index, values_cut(s, src, index), op, has_self);
        return;
    }
    gn_scalar start = {.kind = GN_INT64, .integer = has_self && is_mean};
    int64_t sizes[GN_DIMENSIONS_MAX]; /* of counts, which are the same along slices */
    bool is_by_slices = names_slices(target, at, index, src);
    for (int i = 0; i < target->ndim; i++)
        sizes[i] = is_by_slices && i != at ? 1 : target->sizes[i];
    gn_tensor *counts = gni_full(s, start, GN_INT64, target->ndim, sizes, target->device), *places;
    places = index;
    for (int i = 0; is_by_slices && i < target->ndim; i++)
        if (i != at)
            places = gni_narrow(s, places, i, 0, 1);
    scatter(s, counts, at, places, gni_integer(1), true); /* checks the index, too */
    if (!gni_scope_is_ok(s) || index->count == 0)
        return;
    if (is_sum)
        sum_into(s, target, at, index, src, counts, is_mean, has_self);
    else
        fold_into(s, target, at, index, values_cut(s, src, index), op, has_self);
}

static gn_status scatter_reduce_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *target = target_of(&s, a, results);
    reduce_into(&s, target, a[1].operand.scalar.integer, a[2].operand.tensor, a[3].operand.tensor,
                a[4].text, a[5].operand.scalar.integer != 0);
    return gni_scope_give(&s, target, results);
}

/* ---- along one dimension ----------------------------------------------------------------------- */

/* A number, or a tensor without dimensions, for each element of an index, in the target's type. */
static gn_tensor *value_spread(struct gni_scope *s, gn_operand value, const gn_tensor *target,
                               const gn_tensor *index)
{
    if (value.tensor == NULL)
        return gni_full(s, value.scalar, target->dtype, index->ndim, index->sizes, target->device);
    if (value.tensor->ndim > 0)
        return value.tensor;
    return gni_cast(s, gni_expand(s, value.tensor, index->ndim, index->sizes), target->dtype);
}

static gn_status scatter_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const char *reduce = a[5].text;
    bool is_added = reduce != NULL && strcmp(reduce, "add") == 0;
    bool is_multiplied = reduce != NULL && strcmp(reduce, "multiply") == 0;
    gn_operand value = a[3].is_given ? a[3].operand : a[4].operand;
    int64_t dim = a[1].operand.scalar.integer;
    gn_tensor *index = a[2].operand.tensor;
    if (a[3].is_given == a[4].is_given)
        gni_scope_fail(&s, GN_ERROR_TYPE, "either src or value must be given");
    if (reduce != NULL && !is_added && !is_multiplied)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "reduce is None, 'add' or 'multiply', not '%s'",
                       reduce);
    gn_tensor *target = target_of(&s, a, results);
    if (gni_scope_is_ok(&s) && is_multiplied) {
        gn_tensor *factors = value_spread(&s, value, target, index);
        reduce_into(&s, target, dim, index, factors, "prod", true);
    } else {
        scatter(&s, target, dim, index, value, is_added);
    }
    return gni_scope_give(&s, target, results);
}

static gn_status scatter_add_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *target = target_of(&s, a, results);
    scatter(&s, target, a[1].operand.scalar.integer, a[2].operand.tensor, a[3].operand, true);
    return gni_scope_give(&s, target, results);
}

static gn_status index_add_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand source = a[3].operand;
    if (gni_scalar_double(a[4].operand.scalar) != 1)
        source = gni_of(gni_binary(&s, GN_OP_MULTIPLY, source, a[4].operand));
    gn_tensor *target = target_of(&s, a, results);
    slices_put(&s, target, a[1].operand.scalar.integer, a[2].operand.tensor, source, true);
    return gni_scope_give(&s, target, results);
}

/* Each place once, so that the value gets its gradient once. */
static gn_status index_fill_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *target = target_of(&s, a, results), *index = a[2].operand.tensor, *places = NULL;
    if (gni_is_taped(a[3].operand.tensor) && gni_scope_is_ok(&s)) {
        int dim = gni_dim(&s, target, a[1].operand.scalar.integer);
        int64_t size = target->ndim > 0 ? target->sizes[dim] : 1;
        gn_operand wrapped = gni_of(gni_binary(&s, GN_OP_ADD, gni_of(index), gni_integer(size)));
        gn_tensor *is_negative = gni_binary(&s, GN_OP_LESS, gni_of(index), gni_integer(0));
        index = gni_where(&s, is_negative, wrapped, gni_of(index));
        if (gni_scope_is_ok(&s))
            s.status = gn_unique(index, &places, NULL, NULL);
        index = gni_scope_keep(&s, s.status, places);
    }
    slices_put(&s, target, a[1].operand.scalar.integer, index, a[3].operand, false);
    return gni_scope_give(&s, target, results);
}

static gn_status index_copy_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *target = target_of(&s, a, results);
    slices_put(&s, target, a[1].operand.scalar.integer, a[2].operand.tensor, a[3].operand, false);
    return gni_scope_give(&s, target, results);
}

/* ---- of all elements --------------------------------------------------------------------------- */

static gn_status index_put_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *target = target_of(&s, a, results);
    if (gni_scope_is_ok(&s))
        s.status = gn_index_set(target, a[1].count, a[1].keys, a[2].operand,
                                a[3].operand.scalar.integer != 0);
    return gni_scope_give(&s, target, results);
}

static gn_status put_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *self = a[0].operand.tensor, *index = a[1].operand.tensor;
    gn_operand source = a[2].operand;
    if (source.tensor != NULL)
        source = gni_of(gni_reshape(&s, source.tensor, index->ndim, index->sizes));
    gn_tensor *flat = gni_reshape(&s, self, 1, &self->count);
    gni_index_put_at(&s, flat, index, source, a[3].operand.scalar.integer != 0);
    if (!gn_tensor_is_contiguous(self)) /* `flat` is a copy */
        gni_assign(&s, self, gni_of(gni_view(&s, flat, self->ndim, self->sizes)));
    return gni_scope_give(&s, self, results);
}

static gn_status masked_fill_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *mask = a[1].operand.tensor, *made = NULL;
    gn_operand value = a[2].operand;
    if (mask->dtype != GN_BOOL)
        gni_scope_fail(&s, GN_ERROR_TYPE, "a mask is of bool, not of genesis.%s",
                       gni_dtypes[mask->dtype].name);
    if (value.tensor != NULL && value.tensor->ndim > 0)
        gni_scope_fail(&s, GN_ERROR_TYPE, "the value is a number, not a tensor of shape %s",
                       gni_shape_text(value.tensor->ndim, value.tensor->sizes).text);
    if (results->target != NULL && input->dtype == GN_BOOL && value.tensor != NULL)
        value = gni_of(gni_cast(&s, value.tensor, GN_BOOL));
    else if (results->target != NULL && input->dtype == GN_BOOL)
        value.scalar =
            (gn_scalar){.kind = GN_BOOL, .integer = gni_scalar_double(value.scalar) != 0};
    gn_operand all[] = {gni_of(mask), value, a[0].operand};
    if (results->target != NULL) {
        if (gni_scope_is_ok(&s))
            s.status = gn_elementwise_into(GN_OP_WHERE, all, input);
        return gni_scope_give(&s, input, results);
    }
    made = gni_elementwise(&s, GN_OP_WHERE, 3, all);
    if (gni_scope_is_ok(&s) && gni_dtype_is_floating(made->dtype) &&
        !gni_dtype_is_floating(input->dtype))
        gni_scope_fail(&s, GN_ERROR_TYPE, "%s cannot be stored as genesis.%s",
                       value.tensor != NULL ? "the value" : gni_number_text(value.scalar).text,
                       gni_dtypes[input->dtype].name);
    return gni_scope_give(&s, gni_cast(&s, made, input->dtype), results);
}

/* The input in the shape that it and the mask broadcast to, as a copy. */
static gn_tensor *spread_copy(struct gni_scope *s, gn_tensor *input, const gn_tensor *mask)
{
    struct gni_shape a = {.ndim = input->ndim}, b = {.ndim = mask->ndim}, both;
    memcpy(a.sizes, input->sizes, sizeof a.sizes);
    memcpy(b.sizes, mask->sizes, sizeof b.sizes);
    if (!gni_shape_broadcast(&a, &b, &both)) {
        gni_scope_fail(s, GN_ERROR_SHAPE, "shapes %s and %s cannot be broadcast together",
                       gni_shape_text(a.ndim, a.sizes).text, gni_shape_text(b.ndim, b.sizes).text);
        return NULL;
    }
    return gni_clone(s, gni_expand(s, input, both.ndim, both.sizes));
}

static gn_status masked_scatter_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *mask = a[1].operand.tensor;
    gn_tensor *source = a[2].operand.tensor;
    gn_tensor *target = results->target != NULL ? input : spread_copy(&s, input, mask);
    if (gni_scope_is_ok(&s))
        mask = gni_expand(&s, mask, target->ndim, target->sizes);
    int64_t count = gni_item(&s, gni_reduce(&s, GN_REDUCE_SUM, mask, 0, false)).integer;
    if (gni_scope_is_ok(&s) && source->count < count)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "%lld elements are to be set, and %lld are there",
                       (long long)count, (long long)source->count);
    gn_tensor *first = gni_narrow(&s, gni_reshape(&s, source, 1, &source->count), 0, 0, count);
    gni_index_put_at(&s, target, mask, gni_of(first), false);
    return gni_scope_give(&s, target, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    WRITES = GN_FORM_METHOD | GN_FORM_IN_PLACE | GN_FORM_WRITES,
};

const gn_function gni_functions_scatter[] = {
    {"scatter", NULL,
     "input: Tensor, dim: dim, index: data, src: values = None, value: values = None, *, "
     "reduce: text = None",
     WRITES | GN_FORM_OUT, scatter_call,
     "Elements along a dimension are set: ``input[i][index[i][j]] = src[i][j]`` for ``dim=1``.\n\n"
     "Where one place is written twice the last one wins, in row-major order, unless all are "
     "added\n"
     "(``reduce=\"add\"``) or multiplied (``\"multiply\"``).",
     ">>> genesis.scatter(genesis.zeros(3), 0, genesis.tensor([1]), value=7)\n"
     "tensor([0., 7., 0.])"},
    {"scatter_add", NULL, "input: Tensor, dim: dim, index: data, src: values", WRITES | GN_FORM_OUT,
     scatter_add_call,
     "Something is added to elements along a dimension; every occurrence of a place counts.",
     ">>> genesis.scatter_add(genesis.ones(2), 0, genesis.tensor([0]), genesis.tensor([2.0]))\n"
     "tensor([3., 1.])"},
    {"scatter_reduce", NULL,
     "input: Tensor, dim: dim, index: data, src: Tensor, reduce: text, *, "
     "include_self: bool = True",
     WRITES | GN_FORM_OUT, scatter_reduce_call,
     "Elements are reduced into those that an index names along a dimension.\n\n"
     "`reduce` is \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\"; without `include_self` what "
     "was\n"
     "there is replaced.",
     ">>> x, index = genesis.ones(3), genesis.tensor([2, 2, 0])\n"
     ">>> genesis.scatter_reduce(x, 0, index, genesis.tensor([2.0, 3.0, 4.0]), \"prod\")\n"
     "tensor([4., 1., 6.])"},
    {"index_add", NULL, "input: Tensor, dim: dim, index: data, source: data, *, alpha: number = 1",
     WRITES | GN_FORM_OUT, index_add_call,
     "Slices, times `alpha`, are added to those of a dimension that an index names.\n\n"
     "Each occurrence of a slice counts.",
     ">>> genesis.index_add(genesis.ones(2), 0, genesis.tensor([1, 1]), genesis.tensor([1.0, "
     "2.0]))\n"
     "tensor([1., 4.])"},
    {"index_copy", NULL, "input: Tensor, dim: dim, index: data, source: data", WRITES | GN_FORM_OUT,
     index_copy_call, "The slices of a dimension that an index names are set.",
     ">>> genesis.index_copy(genesis.ones(3), 0, genesis.tensor([2]), genesis.tensor([7.0]))\n"
     "tensor([1., 1., 7.])"},
    {"index_fill", NULL, "input: Tensor, dim: dim, index: data, value: values", WRITES,
     index_fill_call, "The slices of a dimension that an index names are set to one number.",
     ">>> genesis.index_fill(genesis.ones(3), 0, genesis.tensor([2]), 7)\ntensor([1., 1., 7.])"},
    {"index_put", NULL, "input: Tensor, indices: keys, values: values, accumulate: bool = False",
     WRITES, index_put_call,
     "The elements that index tensors name, as in ``input[indices]``, are set, or added to.\n\n"
     "The values broadcast to the shape of ``input[indices]``. With ``accumulate=True`` they are\n"
     "added, and each occurrence of a place counts.",
     ">>> genesis.index_put(genesis.ones(3), (genesis.tensor([2]),), genesis.tensor(7.0))\n"
     "tensor([1., 1., 7.])"},
    {"put_", NULL, "self: Tensor, index: Tensor, source: values, accumulate: bool = False",
     GN_FORM_METHOD | GN_FORM_NO_FUNCTION, put_call,
     "Set elements by their number in row-major order, or add to them.",
     ">>> genesis.zeros(2, 2).put_(genesis.tensor([3, 0]), genesis.tensor([1.0, 2.0]))\n"
     "tensor([[2., 0.],\n        [0., 1.]])"},
    {"masked_fill", NULL, "input: Tensor, mask: data, value: operand", WRITES, masked_fill_call,
     "The elements for which a mask is true are set to one number.",
     ">>> x = genesis.tensor([1.0, 5.0, 3.0])\n>>> genesis.masked_fill(x, x > 2, 0)\n"
     "tensor([1., 0., 0.])"},
    {"masked_scatter", NULL, "input: Tensor, mask: Tensor, source: Tensor", WRITES,
     masked_scatter_call,
     "The elements for which a mask is true are set to those of another tensor, in their order.",
     ">>> mask = genesis.tensor([True, False, True])\n"
     ">>> genesis.masked_scatter(genesis.zeros(3), mask, genesis.tensor([1.0, 2.0]))\n"
     "tensor([1., 0., 2.])"},
    {0},
};
