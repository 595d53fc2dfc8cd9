/*
 * max_pool.c: the largest elements of windows as an operation: see max_pool.h.
 *
 * On the tape the values are elements that were taken by their indices. The CPU has a loop of its own for floating numbers.
 * Otherwise all windows are taken by a table of their elements, and reduced: an element that a window does not have is its
 * first one instead, which changes neither the largest nor the first of equal ones.
 */
#include "ops/max_pool.h"

#include "ops/backend.h"
#include "ops/recorder.h"

enum {
    DIMENSIONS = GNI_CONV_DIMENSIONS,
};

static gn_tensor *of_integer(struct gni_scope *s, gn_op op, gn_tensor *x, int64_t by)
{
    return gni_binary(s, op, gni_of(x), gni_integer(by));
}

/* The longest window of a dimension. */
static int64_t window_size(const struct gni_pool *pool, int d)
{
    int64_t most = 0;
    if (!pool->is_adaptive)
        return pool->kernel[d];
    for (int64_t i = 0; i < pool->result[d]; i++) {
        struct gni_pool_window window = gni_pool_window(pool, d, i);
        most = window.end - window.start > most ? window.end - window.start : most;
    }
    return most;
}

/* The elements of each window along one dimension: places x elements. */
static gn_tensor *axis_table(struct gni_scope *s, const struct gni_pool *pool, int d,
                             gn_device *device)
{
    int64_t size = pool->image[d], step = pool->dilation[d];
    gn_tensor *places = gni_arange(s, pool->result[d], device), *first, *start, *end;
    gn_tensor *taps = gni_arange(s, window_size(pool, d), device);
    places = gni_scope_is_ok(s) ? gni_unsqueeze(s, places, 1) : NULL;
    if (pool->is_adaptive) {
        gn_tensor *scaled = of_integer(s, GN_OP_MULTIPLY, places, size);
        start = first = of_integer(s, GN_OP_FLOOR_DIVIDE, scaled, pool->result[d]);
        scaled = of_integer(s, GN_OP_ADD, scaled, size + pool->result[d] - 1);
        end = of_integer(s, GN_OP_FLOOR_DIVIDE, scaled, pool->result[d]);
    } else {
        start = of_integer(s, GN_OP_MULTIPLY, places, pool->stride[d]);
        start = of_integer(s, GN_OP_SUBTRACT, start, pool->padding[d]);
        gn_tensor *missing = of_integer(s, GN_OP_MINIMUM, start, 0);
        missing = of_integer(s, GN_OP_FLOOR_DIVIDE, missing, step);
        missing = of_integer(s, GN_OP_MULTIPLY, missing, step);
        first = gni_binary(s, GN_OP_SUBTRACT, gni_of(start), gni_of(missing));
        end = of_integer(s, GN_OP_ADD, of_integer(s, GN_OP_MULTIPLY, start, 0), size);
        taps = of_integer(s, GN_OP_MULTIPLY, taps, step);
    }
    gn_tensor *all = gni_binary(s, GN_OP_ADD, gni_of(start), gni_of(taps));
    gn_tensor *is_in = gni_binary(s, GN_OP_LOGICAL_AND,
                                  gni_of(gni_binary(s, GN_OP_LESS, gni_of(all), gni_of(end))),
                                  gni_of(of_integer(s, GN_OP_GREATER_EQUAL, all, 0)));
    return gni_scope_is_ok(s) ? gni_where(s, is_in, gni_of(all), gni_of(first)) : NULL;
}

/* All elements of all windows as places of a row: places x elements. */
static gn_tensor *table_make(struct gni_scope *s, const struct gni_pool *pool, gn_device *device)
{
    int64_t stride = 1, places = 1, elements = 1;
    gn_tensor *sum = NULL;
    for (int d = DIMENSIONS - 1; d >= 0 && gni_scope_is_ok(s); d--) {
        int64_t sizes[2 * DIMENSIONS] = {1, 1, 1, 1, 1, 1};
        gn_tensor *table = of_integer(s, GN_OP_MULTIPLY, axis_table(s, pool, d, device), stride);
        if (!gni_scope_is_ok(s))
            return NULL;
        sizes[d] = table->sizes[0];
        sizes[DIMENSIONS + d] = table->sizes[1];
        places *= table->sizes[0];
        elements *= table->sizes[1];
        stride *= pool->image[d];
        table = gni_reshape_values(s, table, 2 * DIMENSIONS, sizes);
        sum = sum == NULL ? table : gni_binary(s, GN_OP_ADD, gni_of(sum), gni_of(table));
    }
    return gni_scope_is_ok(s) ? gni_reshape(s, sum, 2, (int64_t[]){places, elements}) : NULL;
}

/* By a table of all windows. */
static gn_tensor *by_table(struct gni_scope *s, const struct gni_pool *pool, gn_tensor *image,
                           gn_tensor **indices)
{
    gn_tensor *table = table_make(s, pool, image->device), *values = NULL, *which = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t places = table->sizes[0], elements = table->sizes[1];
    gn_tensor *flat = gni_reshape(s, table, 1, &table->count);
    gn_tensor *taken = gni_index_select(s, image, 1, flat);
    taken = gni_scope_is_ok(s) ? gni_reshape(s, taken, 3, (int64_t[]){pool->rows, places, elements})
                               : NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gn_extreme(taken, 2, true, &values, &which);
    values = gni_scope_keep(s, status, values);
    which = gni_scope_keep(s, status, which);
    gn_tensor *begin =
        of_integer(s, GN_OP_MULTIPLY, gni_arange(s, places, image->device), elements);
    gn_tensor *at = gni_binary(s, GN_OP_ADD, gni_of(which), gni_of(begin));
    *indices = gni_index_at(s, flat, at);
    return values;
}

static gn_tensor *by_backend(struct gni_scope *s, const struct gni_pool *pool, gn_tensor *image,
                             gn_tensor **indices)
{
    gn_dtype dtype = image->dtype;
    gn_tensor *whole = NULL, *wide = gni_wide(s, image);
    s->status = gni_scope_is_ok(s) ? gni_tensor_compact(wide, &whole) : s->status;
    whole = gni_scope_keep(s, s->status, whole);
    if (gni_scope_is_ok(s))
        s->status = gni_tensor_flush(whole);
    int64_t places = pool->result[0] * pool->result[1] * pool->result[2];
    int64_t sizes[] = {pool->rows, places};
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *values = gni_empty(s, whole->dtype, 2, sizes, image->device);
    if (indices != NULL)
        *indices = gni_empty(s, GN_INT64, 2, sizes, image->device);
    if (gni_scope_is_ok(s) && values->count > 0)
        s->status = gni_backend_get(image->device)
                        ->pool_maximum(pool, whole, values, indices != NULL ? *indices : NULL);
    return gni_scope_is_ok(s) ? gni_cast(s, values, dtype) : NULL;
}

static gn_tensor *maximum(struct gni_scope *s, const struct gni_pool *pool, gn_tensor *image,
                          gn_tensor **indices)
{
    bool is_own = gni_backend_get(image->device)->pool_maximum != NULL;
    gn_tensor *unused;
    int64_t elements = pool->image[0] * pool->image[1] * pool->image[2];
    if (is_own && gni_dtype_is_floating(image->dtype) && elements < INT32_MAX)
        return by_backend(s, pool, image, indices);
    return by_table(s, pool, image, indices != NULL ? indices : &unused);
}

gn_status gni_pool_maximum(const struct gni_pool *pool, gn_tensor *image, gn_tensor **values,
                           gn_tensor **indices)
{
    struct gni_scope s = {0};
    gn_tensor *made = NULL, *places = NULL;
    bool is_taped = gni_tape_enter(image);
    made = maximum(&s, pool, image, is_taped || indices != NULL ? &places : NULL);
    if (places != NULL)
        gn_tensor_retain(places);
    gn_status status = gni_scope_end(&s, made, values);
    if (is_taped)
        status =
            gni_tape_leave_places(status, GNI_PLACES_GATHER, "max_pool", image, 1, places, values);
    if (status == GN_OK && indices != NULL)
        *indices = places;
    else
        gn_tensor_release(places);
    return status;
}
