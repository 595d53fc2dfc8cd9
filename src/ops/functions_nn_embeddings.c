/*
 * functions_nn_embeddings.c: genesis.nn.functional: rows of a table that indices name, alone or in bags.
 */
#include "ops/backend.h"
#include "ops/functions_nn.h"
#include "ops/recorder.h"
#include "ops/row_sums.h"

#include <math.h>
#include <string.h>

/* ---- the table --------------------------------------------------------------------------------- */

static void table_check(struct gni_scope *s, const gn_tensor *input, const gn_tensor *weight)
{
    if (input->dtype != GN_INT64 && input->dtype != GN_INT32)
        gni_scope_fail(s, GN_ERROR_TYPE, "input has indices of int64 or int32, not of genesis.%s",
                       gni_dtypes[input->dtype].name);
    if (weight->ndim != 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "weight has shape %s: it has two dimensions",
                       gni_shape_text(weight->ndim, weight->sizes).text);
}

static void sparse_refuse(struct gni_scope *s, const gn_argument *is_sparse)
{
    if (gni_is_set(is_sparse))
        gni_scope_fail(s, GN_ERROR_UNSUPPORTED, "there are no sparse gradients: sparse is False");
}

/* The row that is padding; -1: none. */
static int64_t padding_take(struct gni_scope *s, const gn_argument *padding,
                            const gn_tensor *weight)
{
    int64_t row = padding->operand.scalar.integer, rows = gni_scope_is_ok(s) ? weight->sizes[0] : 0;
    if (!padding->is_given)
        return -1;
    if (row < -rows || row >= rows)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "padding_idx is %lld, and there are %lld rows",
                       (long long)row, (long long)rows);
    return row < 0 ? row + rows : row;
}

/* Rows that are named and have a larger norm get that norm, in place. A row that is named twice gets the same values
 * twice. */
static void renormalize(struct gni_scope *s, gn_tensor *weight, gn_tensor *flat,
                        const gn_argument *max_norm, const gn_argument *norm_type)
{
    if (!max_norm->is_given || !gni_scope_is_ok(s))
        return;
    bool was_paused = gni_tape_is_paused;
    gni_tape_is_paused = true;
    gn_operand most = gni_floating(gni_scalar_double(max_norm->operand.scalar));
    gn_tensor *rows = gni_wide(s, gni_index_select(s, weight, 0, flat));
    double p = gni_scalar_double(norm_type->operand.scalar);
    gn_tensor *length = gni_vector_norm(s, rows, p, 2, true);
    length = gni_scope_is_ok(s) ? gni_cast(s, length, rows->dtype) : NULL;
    gn_tensor *is_long = gni_binary(s, GN_OP_GREATER, gni_of(length), most);
    gn_tensor *above = gni_binary(s, GN_OP_ADD, gni_of(length), gni_floating(1e-7));
    gn_tensor *factor = gni_binary(s, GN_OP_DIVIDE, most, gni_of(above));
    gn_tensor *shorter = gni_binary(s, GN_OP_MULTIPLY, gni_of(rows), gni_of(factor));
    gn_tensor *made = gni_where(s, is_long, gni_of(shorter), gni_of(rows));
    made = gni_scope_is_ok(s) ? gni_cast(s, made, weight->dtype) : NULL;
    gni_index_put_at(s, weight, flat, gni_of(made), false);
    gni_tape_is_paused = was_paused;
}

/* The rows with another gradient: none of padding, and each a share of what it would be by its frequency. Values stay. */
static gn_tensor *gradient_adjust(struct gni_scope *s, gn_tensor *rows, gn_tensor *flat,
                                  gn_tensor *weight, int64_t padding, bool is_by_frequency)
{
    if (!gni_scope_is_ok(s) || !gni_is_taped(rows) || (padding < 0 && !is_by_frequency))
        return rows;
    gn_tensor *fixed = gni_detached(s, rows), *made = rows;
    if (is_by_frequency) {
        gn_tensor *counts = gni_bincount(s, flat, NULL, weight->sizes[0]);
        counts = gni_unsqueeze(s, gni_index_select(s, counts, 0, flat), 1);
        gn_tensor *none = gni_binary(s, GN_OP_SUBTRACT, gni_of(rows), gni_of(fixed));
        counts = gni_cast(s, counts, gni_dtypes[rows->dtype].compute);
        gn_tensor *share = gni_binary(s, GN_OP_DIVIDE, gni_of(none), gni_of(counts));
        made = gni_binary(s, GN_OP_ADD, gni_of(share), gni_of(fixed));
        made = gni_scope_is_ok(s) ? gni_cast(s, made, rows->dtype) : NULL;
    }
    if (padding >= 0) {
        gn_tensor *is_padding =
            gni_binary(s, GN_OP_EQUAL, gni_of(gni_unsqueeze(s, flat, 1)), gni_integer(padding));
        made = gni_where(s, is_padding, gni_of(fixed), gni_of(made));
    }
    return made;
}

/* Indices in one dimension, as int64. */
static gn_tensor *flattened(struct gni_scope *s, gn_tensor *input)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    return gni_cast(s, gni_reshape_values(s, input, 1, &input->count), GN_INT64);
}

static gn_status embedding_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *weight = a[1].operand.tensor;
    int64_t sizes[GN_DIMENSIONS_MAX + 1];
    table_check(&s, input, weight);
    sparse_refuse(&s, &a[6]);
    int64_t padding = padding_take(&s, &a[2], weight);
    if (input->ndim == GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input has at most %d dimensions",
                       GN_DIMENSIONS_MAX - 1);
    gn_tensor *flat = flattened(&s, input);
    renormalize(&s, weight, flat, &a[3], &a[4]);
    gn_tensor *rows = gni_index_select(&s, weight, 0, flat);
    rows = gradient_adjust(&s, rows, flat, weight, padding, gni_is_set(&a[5]));
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    memcpy(sizes, input->sizes, (size_t)input->ndim * sizeof *sizes);
    sizes[input->ndim] = weight->sizes[1];
    return gni_scope_give(&s, gni_reshape_values(&s, rows, input->ndim + 1, sizes), results);
}

/* ---- bags -------------------------------------------------------------------------------------- */

enum mode {
    SUM,
    MEAN,
    LARGEST,
};

/* What a bag is made of: rows, and the number of the bag of each. */
struct bags {
    gn_tensor *flat, *bag, *rows;
    int64_t count, each; /* bags; and rows in each, where all have as many, else 0 */
    enum mode mode;
    int64_t padding; /* rows that are not counted; -1: none */
};

static enum mode mode_take(struct gni_scope *s, const char *mode)
{
    if (strcmp(mode, "sum") == 0)
        return SUM;
    if (strcmp(mode, "max") == 0)
        return LARGEST;
    if (strcmp(mode, "mean") != 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "mode is 'sum', 'mean' or 'max', not '%s'", mode);
    return MEAN;
}

/* The first one is 0, and each is at most the next one; `count` indices end the last bag. */
static void starts_check(struct gni_scope *s, gn_tensor *starts, int64_t count)
{
    const int64_t one = 1;
    if (!gni_scope_is_ok(s) || starts->count == 0)
        return;
    gn_scalar numbers[] = {{.kind = GN_INT64}, {.kind = GN_INT64, .integer = count}};
    gn_tensor *first = gni_full(s, numbers[0], GN_INT64, 1, &one, starts->device);
    gn_tensor *last = gni_full(s, numbers[1], GN_INT64, 1, &one, starts->device);
    gn_tensor *lows = gni_cat(s, 2, (gn_tensor *[]){first, starts}, 0);
    gn_tensor *highs = gni_cat(s, 2, (gn_tensor *[]){starts, last}, 0);
    gn_tensor *is_less = gni_binary(s, GN_OP_LESS, gni_of(highs), gni_of(lows));
    gn_tensor *is_wrong = gni_reduce(s, GN_REDUCE_ANY, is_less, 1, false);
    gn_tensor *begin = gni_select(s, starts, 0, 0);
    is_wrong = gni_binary(s, GN_OP_BITWISE_OR, gni_of(is_wrong),
                          gni_of(gni_binary(s, GN_OP_NOT_EQUAL, gni_of(begin), gni_integer(0))));
    if (gni_item(s, is_wrong).integer != 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "the first offset is 0, offsets ascend, and none is above the number of "
                       "indices, %lld",
                       (long long)count);
}

/* The bag of each index, from where bags begin. With `has_last` the last offset is the end of the last bag. */
static void bags_by_offsets(struct gni_scope *s, struct bags *bags, gn_tensor *offsets,
                            bool has_last)
{
    if (offsets->ndim != 1 || (offsets->dtype != GN_INT64 && offsets->dtype != GN_INT32))
        gni_scope_fail(
            s, GN_ERROR_SHAPE, "offsets are integers in one dimension, not genesis.%s of shape %s",
            gni_dtypes[offsets->dtype].name, gni_shape_text(offsets->ndim, offsets->sizes).text);
    if (gni_scope_is_ok(s) && has_last && offsets->sizes[0] < 1)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "with include_last_offset there is at least one offset");
    if (!gni_scope_is_ok(s))
        return;
    bags->count = offsets->sizes[0] - has_last;
    gn_tensor *starts = gni_cast(s, gni_narrow(s, offsets, 0, 0, bags->count), GN_INT64);
    int64_t count = bags->flat->count;
    starts_check(s, starts, count);
    gn_tensor *begun = gni_narrow(s, gni_bincount(s, starts, NULL, count), 0, 0, count);
    bags->bag = gni_binary(s, GN_OP_SUBTRACT, gni_of(gni_cumsum(s, begun, 0)), gni_integer(1));
}

/* The bag of each index of rows of equal length. */
static void bags_by_rows(struct gni_scope *s, struct bags *bags, const gn_tensor *input)
{
    bags->count = input->sizes[0];
    bags->each = input->sizes[1];
    gn_tensor *numbers = gni_unsqueeze(s, gni_arange(s, bags->count, input->device), 1);
    numbers = gni_expand(s, numbers, 2, input->sizes);
    bags->bag = gni_reshape_values(s, numbers, 1, &input->count);
}

/* 1 for each index that counts, 0 for padding, as (indices, 1). */
static gn_tensor *counted(struct gni_scope *s, const struct bags *bags, gn_dtype dtype)
{
    gn_tensor *is_counted =
        gni_binary(s, GN_OP_NOT_EQUAL, gni_of(bags->flat), gni_integer(bags->padding));
    return gni_unsqueeze(s, gni_scope_is_ok(s) ? gni_cast(s, is_counted, dtype) : NULL, 1);
}

/* Rows are added to those of their bags: bags of one length are reduced. */
static gn_tensor *bags_add(struct gni_scope *s, const struct bags *bags, gn_tensor *rows)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    const int64_t sizes[] = {bags->count, rows->sizes[1]};
    const int64_t parts[] = {bags->count, bags->each, rows->sizes[1]};
    if (bags->each > 0)
        return gni_reduce(s, GN_REDUCE_SUM, gni_reshape_values(s, rows, 3, parts), 2, false);
    gn_tensor *made =
        gni_full(s, (gn_scalar){.kind = GN_INT64}, rows->dtype, 2, sizes, rows->device);
    gni_index_put_at(s, made, bags->bag, gni_of(rows), true);
    return made;
}

/* The largest of each bag, and 0 where there is none. Which row that is has no gradient; what it has there does. */
static gn_tensor *bags_largest(struct gni_scope *s, const struct bags *bags, gn_tensor *rows,
                               gn_tensor *counts)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_tape_enter(rows);
    gn_tensor *values = NULL, *order = NULL;
    /* Sorted by value and then, stably, by bag: the last one of each bag is its largest. */
    gn_tensor *masked = rows;
    if (bags->padding >= 0)
        masked = gni_where(s, counted(s, bags, GN_BOOL), gni_of(rows), gni_floating(-INFINITY));
    if (gni_scope_is_ok(s))
        s->status = gn_sort(masked, 0, false, &values, &order);
    (void)gni_scope_keep(s, s->status, values);
    order = gni_scope_keep(s, s->status, order);
    gn_tensor *bag_of = gni_index_at(s, bags->bag, order), *unused = NULL, *by_bag = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_sort(bag_of, 0, false, &unused, &by_bag);
    (void)gni_scope_keep(s, s->status, unused);
    by_bag = gni_scope_keep(s, s->status, by_bag);
    gn_tensor *place = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_gather(order, 0, by_bag, &place);
    place = gni_scope_keep(s, s->status, place);
    gn_tensor *every = gni_bincount(s, bags->bag, NULL, bags->count);
    gn_tensor *end = gni_binary(s, GN_OP_SUBTRACT, gni_of(gni_cumsum(s, every, 0)), gni_integer(1));
    end = gni_binary(s, GN_OP_MAXIMUM, gni_of(end), gni_integer(0));
    gn_tensor *chosen = gni_index_select(s, place, 0, end);
    gni_tape_is_paused &= !is_taped;
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_gather(rows, 0, chosen, &made);
    made = gni_scope_keep(s, s->status, made);
    gn_tensor *is_any = gni_binary(s, GN_OP_GREATER, gni_of(counts), gni_integer(0));
    return gni_where(s, is_any, gni_of(made), gni_integer(0));
}

/* What the bags are, in the type that is computed in. */
static gn_tensor *bags_make(struct gni_scope *s, const struct bags *bags)
{
    gn_tensor *rows = gni_wide(s, bags->rows);
    if (!gni_scope_is_ok(s))
        return NULL;
    if (bags->mode == MEAN && bags->each > 0 && bags->padding < 0) {
        gn_tensor *sums = bags_add(s, bags, rows);
        return gni_binary(s, GN_OP_DIVIDE, gni_of(sums), gni_integer(bags->each));
    }
    gn_tensor *weights = counted(s, bags, rows->dtype);
    gn_tensor *counts = bags->mode == SUM ? NULL : bags_add(s, bags, weights);
    if (bags->mode == LARGEST && rows->sizes[0] > 0)
        return bags_largest(s, bags, rows, counts);
    if (bags->padding >= 0)
        rows = gni_binary(s, GN_OP_MULTIPLY, gni_of(rows), gni_of(weights));
    gn_tensor *made = bags_add(s, bags, rows);
    if (bags->mode != MEAN)
        return made;
    counts = gni_binary(s, GN_OP_MAXIMUM, gni_of(counts), gni_integer(1));
    return gni_binary(s, GN_OP_DIVIDE, gni_of(made), gni_of(counts));
}

/* ---- bags by sums of rows -------------------------------------------------------------------- */

/* Whether the device adds rows, and the indices name some: what else they do, the other way finds out. */
static bool is_by_row_sums(struct gni_scope *s, const struct bags *bags, const gn_tensor *weight)
{
    int64_t least = 0, most = 0;
    const struct gni_backend *backend = gni_backend_get(weight->device);
    if (!gni_scope_is_ok(s) || backend->row_sums == NULL || !gni_dtype_is_floating(weight->dtype) ||
        bags->flat->device != weight->device || bags->flat->count == 0 ||
        bags->flat->count > INT32_MAX)
        return false;
    s->status = gni_tensor_flush(bags->flat);
    if (gni_scope_is_ok(s))
        s->status = backend->range(bags->flat, &least, &most, NULL);
    return gni_scope_is_ok(s) && least >= 0 && most < weight->sizes[0];
}

/* How many rows each bag has, as (bags, 1). */
static gn_tensor *bags_count(struct gni_scope *s, const struct bags *bags)
{
    gn_tensor *bag = bags->bag;
    if (bags->padding >= 0) {
        gn_tensor *is_padding =
            gni_binary(s, GN_OP_EQUAL, gni_of(bags->flat), gni_integer(bags->padding));
        bag = gni_where(s, is_padding, gni_integer(bags->count), gni_of(bag));
    }
    gn_tensor *counts = gni_bincount(s, bag, NULL, bags->count);
    return gni_unsqueeze(s, gni_narrow(s, counts, 0, 0, bags->count), 1);
}

/* The row with the largest element of each bag is found off the tape; its element is taken on it. */
static gn_tensor *largest_by_rows(struct gni_scope *s, const struct bags *bags, gn_tensor *weight,
                                  gn_tensor *from)
{
    gn_tensor *chosen = NULL, *made = NULL;
    if (gni_scope_is_ok(s))
        s->status = gni_row_maxima(weight, from, bags->bag, bags->count, &chosen);
    chosen = gni_scope_keep(s, s->status, chosen);
    gn_tensor *is_any = gni_binary(s, GN_OP_GREATER_EQUAL, gni_of(chosen), gni_integer(0));
    gn_tensor *place = gni_binary(s, GN_OP_MAXIMUM, gni_of(chosen), gni_integer(0));
    if (gni_scope_is_ok(s))
        s->status = gn_gather(weight, 0, place, &made);
    made = gni_scope_keep(s, s->status, made);
    return gni_where(s, is_any, gni_of(made), gni_integer(0));
}

static gn_tensor *bags_by_row_sums(struct gni_scope *s, const struct bags *bags, gn_tensor *weight,
                                   gn_tensor *shares)
{
    gn_tensor *from = bags->flat, *made = NULL;
    if (bags->padding >= 0) {
        gn_tensor *is_padding =
            gni_binary(s, GN_OP_EQUAL, gni_of(from), gni_integer(bags->padding));
        from = gni_where(s, is_padding, gni_integer(-1), gni_of(from));
    }
    if (bags->mode == LARGEST)
        return largest_by_rows(s, bags, weight, from);
    if (shares != NULL)
        shares = gni_reshape_values(s, shares, 1, &bags->flat->count);
    if (gni_scope_is_ok(s))
        s->status = gni_row_sums(weight, shares, from, bags->bag, bags->count, &made);
    made = gni_scope_keep(s, s->status, made);
    if (bags->mode == SUM)
        return made;
    gn_operand counts = gni_integer(bags->each);
    if (bags->each == 0 || bags->padding >= 0)
        counts = gni_of(gni_binary(s, GN_OP_MAXIMUM, gni_of(bags_count(s, bags)), gni_integer(1)));
    return gni_binary(s, GN_OP_DIVIDE, gni_of(made), counts);
}

/* ---- the functions --------------------------------------------------------------------------- */

static void bags_check(struct gni_scope *s, const gn_argument *a, const struct bags *bags)
{
    const gn_tensor *input = a[0].operand.tensor, *shares = a[8].operand.tensor;
    table_check(s, input, a[1].operand.tensor);
    sparse_refuse(s, &a[7]);
    if (input->ndim != 1 && input->ndim != 2)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "input has shape %s: it has one or two dimensions",
                       gni_shape_text(input->ndim, input->sizes).text);
    if ((input->ndim == 1) != a[2].is_given)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       input->ndim == 1 ? "input of one dimension needs offsets"
                                        : "input of two dimensions has no offsets: a row is a bag");
    if (shares != NULL && bags->mode != SUM)
        gni_scope_fail(s, GN_ERROR_UNSUPPORTED, "per_sample_weights are for mode='sum' alone");
    if (shares != NULL &&
        !gni_shape_is_equal(shares->ndim, shares->sizes, input->ndim, input->sizes))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "per_sample_weights have shape %s, and input has %s",
                       gni_shape_text(shares->ndim, shares->sizes).text,
                       gni_shape_text(input->ndim, input->sizes).text);
    if (shares != NULL && shares->dtype != a[1].operand.tensor->dtype)
        gni_scope_fail(s, GN_ERROR_TYPE, "per_sample_weights are genesis.%s, and weight genesis.%s",
                       gni_dtypes[shares->dtype].name, gni_dtypes[a[1].operand.tensor->dtype].name);
    if (bags->mode == LARGEST && gni_is_set(&a[5]))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "scale_grad_by_freq is not for mode='max'");
}

/* Of rows that are taken one by one. */
static gn_tensor *bags_by_taking(struct gni_scope *s, const gn_argument *a, struct bags *bags)
{
    gn_tensor *weight = a[1].operand.tensor;
    bags->rows = gni_index_select(s, weight, 0, bags->flat);
    bags->rows = gradient_adjust(s, bags->rows, bags->flat, weight, -1, gni_is_set(&a[5]));
    if (a[8].is_given && gni_scope_is_ok(s)) {
        gn_tensor *shares = gni_reshape_values(s, a[8].operand.tensor, 1, &bags->flat->count);
        bags->rows = gni_binary(s, GN_OP_MULTIPLY, gni_of(gni_wide(s, bags->rows)),
                                gni_of(gni_unsqueeze(s, gni_wide(s, shares), 1)));
    }
    return bags_make(s, bags);
}

static gn_status embedding_bag_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *weight = a[1].operand.tensor;
    struct bags bags = {.mode = mode_take(&s, a[6].text)};
    bags_check(&s, a, &bags);
    bags.padding = padding_take(&s, &a[10], weight);
    bags.flat = flattened(&s, input);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    if (a[2].is_given)
        bags_by_offsets(&s, &bags, a[2].operand.tensor, gni_is_set(&a[9]));
    else
        bags_by_rows(&s, &bags, input);
    renormalize(&s, weight, bags.flat, &a[3], &a[4]);
    bool is_by_frequency = gni_is_set(&a[5]) && gni_is_taped(weight);
    gn_tensor *made = !is_by_frequency && is_by_row_sums(&s, &bags, weight)
                          ? bags_by_row_sums(&s, &bags, weight, a[8].operand.tensor)
                          : bags_by_taking(&s, a, &bags);
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, weight->dtype) : NULL,
                          results);
}

/* ---- the rows ---------------------------------------------------------------------------------- */

const gn_function gni_functions_nn_embeddings[] = {
    {"nn.embedding", NULL,
     "input: Tensor, weight: Tensor, padding_idx: int = None, max_norm: number = None, "
     "norm_type: number = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False",
     0, embedding_call,
     "The rows of a table that indices name.\n\n"
     "The row `padding_idx` gets no gradient. With `max_norm` rows that are named and have a\n"
     "larger norm are scaled to it first, in place. Gradients are never sparse.",
     ">>> weight = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
     ">>> genesis.nn.functional.embedding(genesis.tensor([1, 0]), weight)\n"
     "tensor([[3., 4.],\n        [1., 2.]])"},
    {"nn.embedding_bag", NULL,
     "input: Tensor, weight: Tensor, offsets: Tensor = None, max_norm: number = None, "
     "norm_type: number = 2.0, scale_grad_by_freq: bool = False, mode: text = 'mean', "
     "sparse: bool = False, per_sample_weights: Tensor = None, "
     "include_last_offset: bool = False, padding_idx: int = None",
     0, embedding_bag_call,
     "Sums, means or the largest of rows of a table that indices name, for each bag of indices.\n\n"
     "A bag is a row of the input, or goes from an offset to the next one.",
     ">>> weight = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
     ">>> genesis.nn.functional.embedding_bag(genesis.tensor([[1, 0]]), weight)\n"
     "tensor([[2., 3.]])"},
    {0},
};
