/*
 * expression.c: scopes, and operations that keep their results in one.
 */
#include "ops/expression.h"

#include "base/host.h"
#include "base/text.h"
#include "ops/recorder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scopes ---------------------------------------------------------------------------------- */

static gn_status scope_grow(struct gni_scope *scope)
{
    int room = scope->room == 0 ? GNI_SCOPE_FEW : 2 * scope->room;
    gn_tensor **held = scope->few;
    if (scope->room != 0) {
        held = gni_host_alloc((size_t)room * sizeof *held);
        if (held == NULL)
            return gni_error_host_memory((size_t)room * sizeof *held);
        memcpy(held, scope->held, (size_t)scope->count * sizeof *held);
        if (scope->held != scope->few)
            gni_host_free(scope->held);
    }
    scope->held = held;
    scope->room = room;
    return GN_OK;
}

gn_tensor *gni_scope_keep(struct gni_scope *scope, gn_status status, gn_tensor *tensor)
{
    if (status == GN_OK && scope->count == scope->room) {
        status = scope_grow(scope);
        if (status != GN_OK)
            gn_tensor_release(tensor);
    }
    if (status != GN_OK) {
        scope->status = scope->status == GN_OK ? status : scope->status;
        return NULL;
    }
    scope->held[scope->count++] = tensor;
    return tensor;
}

gn_status gni_scope_close(struct gni_scope *scope)
{
    for (int i = scope->count - 1; i >= 0; i--)
        gn_tensor_release(scope->held[i]);
    if (scope->held != scope->few)
        gni_host_free(scope->held);
    gni_host_free(scope->memory);
    scope->memory = NULL;
    scope->count = scope->room = 0;
    return scope->status;
}

gn_status gni_scope_end(struct gni_scope *scope, gn_tensor *result, gn_tensor **out)
{
    if (scope->status == GN_OK) {
        gn_tensor_retain(result);
        *out = result;
    }
    return gni_scope_close(scope);
}

gn_status gni_scope_give(struct gni_scope *scope, gn_tensor *result, gn_results *results)
{
    return gni_scope_give_list(scope, 1, &result, results);
}

gn_status gni_scope_give_pair(struct gni_scope *scope, gn_tensor *first, gn_tensor *second,
                              gn_results *results)
{
    return gni_scope_give_list(scope, 2, (gn_tensor *[]){first, second}, results);
}

gn_status gni_scope_give_list(struct gni_scope *scope, int count, gn_tensor *const *tensors,
                              gn_results *results)
{
    size_t most = sizeof results->few / sizeof *results->few;
    gn_tensor **list = results->few;
    if (scope->status == GN_OK && (size_t)count > most) {
        list = gni_host_alloc((size_t)count * sizeof *list);
        if (list == NULL)
            scope->status = gni_error_host_memory((size_t)count * sizeof *list);
    }
    if (scope->status == GN_OK) {
        for (int i = 0; i < count; i++) {
            gn_tensor_retain(tensors[i]);
            list[i] = tensors[i];
        }
        results->tensors = list;
        results->count = count;
    }
    return gni_scope_close(scope);
}

gn_tensor **gni_scope_list(struct gni_scope *scope, int64_t count)
{
    size_t nbytes = (size_t)(count > 0 ? count : 1) * sizeof(gn_tensor *);
    if (scope->status == GN_OK) {
        scope->memory = gni_host_alloc(nbytes);
        if (scope->memory == NULL)
            scope->status = gni_error_host_memory(nbytes);
    }
    return scope->memory;
}

gn_status gni_scope_give_number(struct gni_scope *scope, gn_scalar number, gn_results *results)
{
    results->number = number;
    return gni_scope_close(scope);
}

void gn_results_clear(gn_results *results)
{
    for (int i = 0; results->tensors != NULL && i < results->count; i++)
        gn_tensor_release(results->tensors[i]);
    if (results->tensors != results->few)
        gni_host_free(results->tensors);
    results->tensors = NULL;
    results->count = 0;
}

struct gni_number_text gni_number_text(gn_scalar number)
{
    struct gni_number_text made;
    int digits = 1;
    if (number.kind == GN_BOOL)
        (void)snprintf(made.text, sizeof made.text, "%s", number.integer != 0 ? "True" : "False");
    if (number.kind == GN_INT64)
        (void)snprintf(made.text, sizeof made.text, "%lld", (long long)number.integer);
    if (number.kind == GN_UINT64)
        (void)snprintf(made.text, sizeof made.text, "%llu", (unsigned long long)number.integer);
    if (number.kind != GN_FLOAT64)
        return made;
    do /* the fewest digits that say which number it is */
        (void)snprintf(made.text, sizeof made.text, "%.*g", digits, number.floating);
    while (++digits <= 17 && strtod(made.text, NULL) != number.floating && !isnan(number.floating));
    if (isfinite(number.floating) && strpbrk(made.text, ".e") == NULL)
        (void)strcat(made.text, ".0");
    return made;
}

/* ---- elements ---------------------------------------------------------------------------------- */

/* Runs a call that makes a tensor, unless the scope has failed. */
#define SCOPE_MAKE(scope, call)                     \
    do {                                            \
        gn_tensor *made = NULL;                     \
        gn_status status = (scope)->status;         \
        if (status == GN_OK)                        \
            status = (call);                        \
        return gni_scope_keep(scope, status, made); \
    } while (0)

gn_tensor *gni_elementwise(struct gni_scope *scope, gn_op op, int arity, const gn_operand *operands)
{
    (void)arity;
    SCOPE_MAKE(scope, gn_elementwise(op, operands, &made));
}

gn_tensor *gni_cast(struct gni_scope *scope, gn_tensor *x, gn_dtype dtype)
{
    if (scope->status == GN_OK && x->dtype == dtype)
        return x;
    SCOPE_MAKE(scope, gn_cast(x, dtype, &made));
}

gn_tensor *gni_wide(struct gni_scope *scope, gn_tensor *x)
{
    if (scope->status != GN_OK)
        return NULL;
    return gni_dtype_is_half(x->dtype) ? gni_cast(scope, x, GN_FLOAT32) : x;
}

gn_tensor *gni_clone(struct gni_scope *scope, gn_tensor *x)
{
    SCOPE_MAKE(scope, gn_cast(x, x->dtype, &made));
}

gn_dtype gni_join(struct gni_scope *scope, int count, gn_operand *operands, bool is_floating)
{
    gn_dtype dtype = GN_FLOAT32;
    if (scope->status == GN_OK)
        scope->status = gn_result_type(count, operands, &dtype);
    if (is_floating && !gni_dtype_is_floating(dtype))
        dtype = gn_get_default_dtype();
    gn_dtype held = gni_dtype_is_half(dtype) ? GN_FLOAT32 : dtype;
    for (int i = 0; i < count; i++)
        if (operands[i].tensor != NULL)
            operands[i].tensor = gni_cast(scope, operands[i].tensor, held);
    return dtype;
}

/* ---- reductions -------------------------------------------------------------------------------- */

gn_tensor *gni_reduce(struct gni_scope *scope, gn_reduction reduction, gn_tensor *x, uint32_t dims,
                      bool is_kept)
{
    SCOPE_MAKE(scope, gn_reduce(reduction, x, dims, is_kept, &made));
}

gn_tensor *gni_sum(struct gni_scope *scope, gn_tensor *x, uint32_t dims, bool is_kept,
                   gn_dtype dtype)
{
    SCOPE_MAKE(scope, gni_sum_as(x, dims, is_kept, dtype, &made));
}

gn_scalar gni_item(struct gni_scope *scope, gn_tensor *x)
{
    static const int64_t first[GN_DIMENSIONS_MAX];
    gn_scalar item = {.kind = GN_INT64};
    if (scope->status == GN_OK)
        scope->status = gn_tensor_get_item(x, first, &item);
    return item;
}

/* ---- dimensions and views ------------------------------------------------------------------------ */

int gni_dim(struct gni_scope *scope, const gn_tensor *x, int64_t dim)
{
    if (scope->status != GN_OK)
        return 0;
    int64_t span = x->ndim > 0 ? x->ndim : 1;
    if (dim >= -span && dim < span)
        return (int)(dim < 0 ? dim + span : dim);
    gni_scope_fail(scope, GN_ERROR_INDEX,
                   "dimension %lld is out of range for a tensor of %d dimension%s: %lld to %lld",
                   (long long)dim, x->ndim, gni_plural((uint64_t)x->ndim), (long long)-span,
                   (long long)span - 1);
    return 0;
}

uint32_t gni_dims(struct gni_scope *scope, const gn_tensor *x, const gn_argument *dims)
{
    uint32_t bits = 0;
    for (int i = 0; i < dims->count && scope->status == GN_OK; i++) {
        int dim = gni_dim(scope, x, dims->integers[i]);
        if (scope->status == GN_OK && (bits >> dim & 1) != 0)
            gni_scope_fail(scope, GN_ERROR_INVALID_VALUE, "dimension %d is there twice", dim);
        bits |= UINT32_C(1) << dim;
    }
    return scope->status == GN_OK && x->ndim > 0 ? bits : 0;
}

int64_t gni_dims_count(const gn_tensor *x, uint32_t dims)
{
    int64_t count = 1;
    for (int i = 0; i < x->ndim; i++)
        if (dims == 0 || (dims >> i & 1) != 0)
            count *= x->sizes[i];
    return count;
}

gn_tensor *gni_view(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes)
{
    SCOPE_MAKE(scope, gn_tensor_view(x, ndim, sizes, &made));
}

gn_tensor *gni_reshape(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes)
{
    SCOPE_MAKE(scope, gn_tensor_reshape(x, ndim, sizes, &made));
}

gn_tensor *gni_expand(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes)
{
    SCOPE_MAKE(scope, gn_tensor_expand(x, ndim, sizes, &made));
}

gn_tensor *gni_reshape_values(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes)
{
    if (!gni_scope_is_ok(scope) || gni_shape_is_equal(x->ndim, x->sizes, ndim, sizes))
        return x;
    return gni_reshape(scope, x, ndim, sizes);
}

gn_tensor *gni_broadcast_values(struct gni_scope *scope, gn_tensor *x, int ndim,
                                const int64_t *sizes)
{
    if (!gni_scope_is_ok(scope) || gni_shape_is_equal(x->ndim, x->sizes, ndim, sizes))
        return x;
    SCOPE_MAKE(scope, gni_tensor_broadcast(x, ndim, sizes, &made));
}

gn_tensor *gni_permute(struct gni_scope *scope, gn_tensor *x, const int *order)
{
    SCOPE_MAKE(scope, gn_tensor_permute(x, order, &made));
}

gn_tensor *gni_transpose(struct gni_scope *scope, gn_tensor *x, int first, int second)
{
    int order[GN_DIMENSIONS_MAX];
    for (int i = 0; i < GN_DIMENSIONS_MAX; i++)
        order[i] = i == first ? second : i == second ? first : i;
    return gni_permute(scope, x, order);
}

gn_tensor *gni_strided(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes,
                       const int64_t *strides, int64_t offset)
{
    SCOPE_MAKE(scope, gn_tensor_as_strided(x, ndim, sizes, strides, offset, &made));
}

gn_tensor *gni_narrow(struct gni_scope *scope, gn_tensor *x, int dim, int64_t start, int64_t count)
{
    SCOPE_MAKE(scope, gn_tensor_slice(x, dim, start, 1, count, &made));
}

gn_tensor *gni_select(struct gni_scope *scope, gn_tensor *x, int dim, int64_t index)
{
    SCOPE_MAKE(scope, gn_tensor_select(x, dim, index, &made));
}

gn_tensor *gni_unsqueeze(struct gni_scope *scope, gn_tensor *x, int dim)
{
    SCOPE_MAKE(scope, gn_tensor_unsqueeze(x, dim, &made));
}

gn_tensor *gni_squeeze(struct gni_scope *scope, gn_tensor *x, int dim)
{
    SCOPE_MAKE(scope, gn_tensor_squeeze(x, dim, &made));
}

gn_tensor *gni_move_dim(struct gni_scope *scope, gn_tensor *x, int from, int to)
{
    int order[GN_DIMENSIONS_MAX], next = 0;
    if (scope->status != GN_OK || from == to)
        return scope->status == GN_OK ? x : NULL;
    for (int i = 0; i < x->ndim; i++) {
        next += next == from;
        order[i] = i == to ? from : next++;
    }
    return gni_permute(scope, x, order);
}

/* ---- new tensors --------------------------------------------------------------------------------- */

gn_tensor *gni_empty(struct gni_scope *scope, gn_dtype dtype, int ndim, const int64_t *sizes,
                     gn_device *device)
{
    SCOPE_MAKE(scope, gn_tensor_create(dtype, ndim, sizes, device, &made));
}

gn_tensor *gni_full(struct gni_scope *scope, gn_scalar value, gn_dtype dtype, int ndim,
                    const int64_t *sizes, gn_device *device)
{
    SCOPE_MAKE(scope, gn_full(value, dtype, ndim, sizes, device, &made));
}

gn_tensor *gni_arange(struct gni_scope *scope, int64_t count, gn_device *device)
{
    gn_scalar zero = {.kind = GN_INT64}, one = {.kind = GN_INT64, .integer = 1};
    SCOPE_MAKE(scope, gn_range(zero, one, count, GN_INT64, device, &made));
}

gn_tensor *gni_cat(struct gni_scope *scope, int count, gn_tensor *const *tensors, int dim)
{
    SCOPE_MAKE(scope, gn_cat(count, tensors, dim, &made));
}

gn_tensor *gni_matmul(struct gni_scope *scope, gn_tensor *a, gn_tensor *b)
{
    SCOPE_MAKE(scope, gn_matmul(a, b, &made));
}

/* ---- places -------------------------------------------------------------------------------------- */

gn_tensor *gni_index_at(struct gni_scope *scope, gn_tensor *x, gn_tensor *key)
{
    gn_key part = {.kind = GN_KEY_TENSOR, .tensor = key};
    SCOPE_MAKE(scope, gn_index_get(x, 1, &part, &made));
}

void gni_index_put_at(struct gni_scope *scope, gn_tensor *target, gn_tensor *key, gn_operand value,
                      bool is_accumulated)
{
    gn_key part = {.kind = GN_KEY_TENSOR, .tensor = key};
    if (scope->status == GN_OK)
        scope->status = gn_index_set(target, 1, &part, value, is_accumulated);
}

gn_tensor *gni_index_select(struct gni_scope *scope, gn_tensor *x, int dim, gn_tensor *index)
{
    SCOPE_MAKE(scope, gn_index_select(x, dim, index, &made));
}

gn_tensor *gni_searchsorted(struct gni_scope *scope, gn_tensor *sequence, gn_tensor *values,
                            bool is_right)
{
    SCOPE_MAKE(scope, gn_searchsorted(sequence, values, is_right, &made));
}

gn_tensor *gni_bincount(struct gni_scope *scope, gn_tensor *x, gn_tensor *weights, int64_t minimum)
{
    SCOPE_MAKE(scope, gn_bincount(x, weights, minimum, &made));
}

gn_tensor *gni_cumsum(struct gni_scope *scope, gn_tensor *x, int dim)
{
    SCOPE_MAKE(scope, gn_cumulate(x, dim, false, &made));
}

void gni_assign(struct gni_scope *scope, gn_tensor *out, gn_operand value)
{
    if (scope->status == GN_OK)
        scope->status = gn_assign(out, value);
}
