/*
 * functions_random.c: tensors of random numbers. Each call takes the numbers of one offset of its generator.
 */
#include "ops/functions.h"
#include "ops/memory_format.h"

#include "tensor/shape.h"

#include <math.h>

typedef gn_status (*fill_call)(gn_tensor *out, gn_generator *generator);

/* Fills a tensor, which need not belong to the scope. */
static gn_tensor *filled(struct gni_scope *s, gn_tensor *x, fill_call fill, gn_generator *generator)
{
    if (gni_scope_is_ok(s))
        s->status = fill(x, generator);
    return gni_scope_is_ok(s) ? x : NULL;
}

/* Numbers from 0 to before 1. */
static gn_tensor *uniform(struct gni_scope *s, gn_dtype dtype, const gn_tensor *like,
                          gn_generator *generator)
{
    gn_tensor *made = gni_empty(s, dtype, like->ndim, like->sizes, like->device);
    return filled(s, made, gn_random_uniform, generator);
}

/* An end of a range, as elements of a type hold it: those of uint64 may be above what int64 has. */
static int64_t end_of(struct gni_scope *s, gn_scalar number, gn_dtype dtype)
{
    if (number.kind == GN_FLOAT64)
        gni_scope_fail(s, GN_ERROR_TYPE, "low and high are integers, not %s",
                       gni_number_text(number).text);
    else if (number.kind == GN_UINT64 ? dtype != GN_UINT64
                                      : dtype == GN_UINT64 && number.integer < 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "%s does not have the number %s",
                       gni_dtypes[dtype].name, gni_number_text(number).text);
    return number.integer;
}

static gn_tensor *integers(struct gni_scope *s, gn_tensor *x, gn_scalar first, gn_scalar end,
                           gn_generator *generator)
{
    int64_t low = gni_scope_is_ok(s) ? end_of(s, first, x->dtype) : 0;
    int64_t high = gni_scope_is_ok(s) ? end_of(s, end, x->dtype) : 0;
    if (gni_scope_is_ok(s))
        s->status = gn_random_integers(x, low, high, generator);
    return x;
}

static gn_dtype dtype_or(const gn_argument *given, gn_dtype dtype)
{
    return given->is_given ? given->dtype : dtype;
}

/* ---- of a shape -------------------------------------------------------------------------------- */

/* (*shape, size, generator, dtype, device) */
static gn_status of_shape(const gn_argument *a, fill_call fill, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_argument *shape = a[1].is_given ? &a[1] : &a[0];
    if (a[0].is_given && a[1].is_given)
        gni_scope_fail(&s, GN_ERROR_TYPE, "a shape is given once: size is there, too");
    gn_tensor *made = gni_empty(&s, dtype_or(&a[3], gn_get_default_dtype()), shape->count,
                                shape->integers, a[4].device);
    return gni_scope_give(&s, filled(&s, made, fill, a[2].generator), results);
}

static gn_status rand_call(const gn_argument *a, gn_results *results)
{
    return of_shape(a, gn_random_uniform, results);
}

static gn_status randn_call(const gn_argument *a, gn_results *results)
{
    return of_shape(a, gn_random_normal, results);
}

/* (input, dtype, device, generator) */
static gn_status like_another(const gn_argument *a, fill_call fill, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *like = a[0].operand.tensor;
    gn_tensor *made = gni_empty_format(&s, dtype_or(&a[1], like->dtype), like, a[2].device, &a[4]);
    return gni_scope_give(&s, filled(&s, made, fill, a[3].generator), results);
}

static gn_status rand_like_call(const gn_argument *a, gn_results *results)
{
    return like_another(a, gn_random_uniform, results);
}

static gn_status randn_like_call(const gn_argument *a, gn_results *results)
{
    return like_another(a, gn_random_normal, results);
}

/* randint(high, size) or randint(low, high, size): the second argument is one integer, or the size. */
static gn_status randint_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_scalar low = a[0].operand.scalar, high = low;
    const gn_argument *size = a[2].is_given ? &a[2] : &a[1];
    int count = size->count;
    const int64_t *sizes = size->integers;
    if (!size->is_given)
        gni_scope_fail(&s, GN_ERROR_TYPE, "the size must be given");
    if (a[2].is_given && a[1].is_given && a[1].integers != NULL && a[1].count != 1)
        gni_scope_fail(&s, GN_ERROR_TYPE, "high is one integer, not %d", a[1].count);
    else if (a[2].is_given && a[1].is_given)
        high = a[1].integers != NULL ? gni_integer(a[1].integers[0]).scalar : a[1].operand.scalar;
    else
        low = gni_integer(0).scalar;
    if (size == &a[1] && size->integers == NULL) { /* one integer */
        count = 1;
        sizes = &size->operand.scalar.integer;
    }
    gn_tensor *made = gni_empty(&s, dtype_or(&a[4], GN_INT64), count, sizes, a[5].device);
    return gni_scope_give(&s, integers(&s, made, low, high, a[3].generator), results);
}

/* randint_like() and random_(): one number is the end. */
static void range_of(const gn_argument *low, const gn_argument *high, gn_scalar *begin,
                     gn_scalar *end)
{
    *begin = high->is_given ? low->operand.scalar : gni_integer(0).scalar;
    *end = high->is_given ? high->operand.scalar : low->operand.scalar;
}

static gn_status randint_like_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *like = a[0].operand.tensor;
    gn_scalar low, high;
    range_of(&a[1], &a[2], &low, &high);
    gn_tensor *made = gni_empty_format(&s, dtype_or(&a[4], like->dtype), like, a[5].device, &a[6]);
    return gni_scope_give(&s, integers(&s, made, low, high, a[3].generator), results);
}

static gn_status randperm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = NULL;
    int64_t count = a[0].operand.scalar.integer;
    if (count < 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "n is not negative: %lld", (long long)count);
    if (gni_scope_is_ok(&s)) {
        gn_status status = gn_random_permutation(count, a[3].device, a[1].generator, &made);
        made = gni_scope_keep(&s, status, made);
    }
    return gni_scope_give(&s, a[2].is_given ? gni_cast(&s, made, a[2].dtype) : made, results);
}

/* ---- distributions ----------------------------------------------------------------------------- */

static bool is_true(struct gni_scope *s, gn_tensor *x)
{
    return gni_item(s, gni_reduce(s, GN_REDUCE_ALL, x, 0, false)).integer != 0;
}

static gn_status normal_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand mean = a[0].operand, std = a[1].operand;
    gn_tensor *like = NULL, *made;
    bool is_right = std.tensor != NULL
                        ? is_true(&s, gni_binary(&s, GN_OP_GREATER_EQUAL, std, gni_integer(0)))
                        : gni_scalar_double(std.scalar) >= 0;
    if (!is_right)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "a standard deviation is not negative");
    if (!a[2].is_given && mean.tensor == NULL && std.tensor == NULL)
        gni_scope_fail(&s, GN_ERROR_TYPE, "where mean and std are numbers there must be a size");
    if (!a[2].is_given) {
        like = gni_binary(&s, GN_OP_ADD, mean, std); /* broadcast */
        made = gni_scope_is_ok(&s)
                   ? gni_empty(&s, like->dtype, like->ndim, like->sizes, like->device)
                   : NULL;
    } else {
        made = gni_empty(&s, dtype_or(&a[4], gn_get_default_dtype()), a[2].count, a[2].integers,
                         a[5].device);
    }
    made = filled(&s, made, gn_random_normal, a[3].generator);
    made = gni_binary(&s, GN_OP_MULTIPLY, gni_of(made), std);
    return gni_scope_give(&s, gni_binary(&s, GN_OP_ADD, gni_of(made), mean), results);
}

/* Whether work for a device is being captured into a graph: elements cannot be read then. */
static bool is_captured(struct gni_scope *s, gn_device *device)
{
    gn_stream *stream = NULL;
    bool is_capturing = false;
    s->status = gni_stream_of(device, &stream);
    if (gni_scope_is_ok(s) && stream != NULL)
        s->status = gn_stream_is_capturing(stream, &is_capturing);
    return is_capturing;
}

/* Chances are from 0 to 1. */
static void chances_check(struct gni_scope *s, gn_operand p)
{
    if (p.tensor == NULL) {
        double chance = gni_scalar_double(p.scalar);
        if (!(chance >= 0 && chance <= 1))
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "a chance is from 0 to 1, not %s",
                           gni_number_text(p.scalar).text);
        return;
    }
    if (is_captured(s, p.tensor->device))
        return;
    gn_tensor *is_low = gni_binary(s, GN_OP_GREATER_EQUAL, p, gni_integer(0));
    gn_tensor *is_high = gni_binary(s, GN_OP_LESS_EQUAL, p, gni_integer(1));
    if (!is_true(s, gni_binary(s, GN_OP_LOGICAL_AND, gni_of(is_low), gni_of(is_high))))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "a chance is from 0 to 1, not below or above");
}

/* Ones, each with a probability, and zeros. */
static void chances_draw(struct gni_scope *s, gn_tensor *out, gn_operand p, gn_generator *generator)
{
    chances_check(s, p);
    gn_tensor *drawn = uniform(s, GN_FLOAT32, out, generator);
    gni_assign(s, out, gni_of(gni_binary(s, GN_OP_LESS, gni_of(drawn), p)));
}

static gn_status bernoulli_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor;
    gn_tensor *made = gni_empty(&s, input->dtype, input->ndim, input->sizes, input->device);
    if (gni_scope_is_ok(&s))
        chances_draw(&s, made, a[0].operand, a[1].generator);
    return gni_scope_give(&s, made, results);
}

/* Times to the next of events that happen at a rate of 1. */
static gn_tensor *exponential(struct gni_scope *s, const gn_tensor *like, gn_generator *generator)
{
    gn_tensor *chance = uniform(s, GN_FLOAT64, like, generator);
    return gni_unary(s, GN_OP_LOG1P, gni_unary(s, GN_OP_NEGATIVE, chance));
}

/* Places by chances that add up: where random numbers lie among the sums up to each. */
static gn_tensor *draw_again(struct gni_scope *s, gn_tensor *weights, int64_t count,
                             gn_generator *generator)
{
    int last = weights->ndim - 1;
    int64_t sizes[] = {weights->sizes[0], count};
    gn_tensor *ends = gni_cumsum(s, weights, last);
    gn_tensor *total = gni_narrow(s, ends, last, weights->sizes[last] - 1, 1);
    gn_tensor *chance =
        gni_empty(s, GN_FLOAT64, weights->ndim, last > 0 ? sizes : &count, weights->device);
    chance = filled(s, chance, gn_random_uniform, generator);
    return gni_searchsorted(s, gni_binary(s, GN_OP_DIVIDE, gni_of(ends), gni_of(total)), chance,
                            true);
}

/* The smallest of times that are exponentially distributed, at these rates. */
static gn_tensor *draw_once(struct gni_scope *s, gn_tensor *weights, int64_t count,
                            gn_generator *generator)
{
    gn_tensor *values = NULL, *indices = NULL;
    gn_tensor *times = gni_unary(s, GN_OP_NEGATIVE, exponential(s, weights, generator));
    times = gni_binary(s, GN_OP_DIVIDE, gni_of(times), gni_of(weights));
    gn_status status = gni_scope_is_ok(s)
                           ? gn_topk(times, count, times->ndim - 1, false, &values, &indices)
                           : s->status;
    (void)gni_scope_keep(s, status, values);
    return gni_scope_keep(s, status, indices);
}

/* How many elements are above 0, in the row that has fewest; 0 where elements are no weights. */
static int64_t weights_count(struct gni_scope *s, gn_tensor *weights)
{
    gn_tensor *is_above = gni_binary(s, GN_OP_GREATER, gni_of(weights), gni_integer(0));
    gn_tensor *counts =
        gni_reduce(s, GN_REDUCE_SUM, is_above, UINT32_C(1) << (weights->ndim - 1), false);
    int64_t least = gni_item(s, gni_reduce(s, GN_REDUCE_MINIMUM, counts, 0, false)).integer;
    gn_tensor *is_right = gni_binary(s, GN_OP_GREATER_EQUAL, gni_of(weights), gni_integer(0));
    gn_tensor *is_finite = gni_unary(s, GN_OP_ISFINITE, weights);
    is_right = gni_binary(s, GN_OP_LOGICAL_AND, gni_of(is_right), gni_of(is_finite));
    return is_true(s, is_right) ? least : 0;
}

static gn_status multinomial_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *made = NULL;
    int64_t count = a[1].operand.scalar.integer;
    bool is_repeated = a[2].operand.scalar.integer != 0;
    if ((input->ndim != 1 && input->ndim != 2) || !gni_dtype_is_floating(input->dtype) || count < 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "%lld places of floating numbers with 1 or 2 dimensions, not of "
                       "genesis.%s and shape %s",
                       (long long)count, gni_dtypes[input->dtype].name,
                       gni_shape_text(input->ndim, input->sizes).text);
    gn_tensor *weights = gni_cast(&s, input, GN_FLOAT64);
    int64_t possible = gni_scope_is_ok(&s) ? weights_count(&s, weights) : 0;
    if (possible < 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "elements are finite and not negative, and one is above 0");
    if (!is_repeated && count > possible)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "%lld samples without replacement need as many elements above 0, not %lld",
                       (long long)count, (long long)possible);
    if (gni_scope_is_ok(&s))
        made = (is_repeated ? draw_again : draw_once)(&s, weights, count, a[3].generator);
    return gni_scope_give(&s, made, results);
}

/* ---- fills ------------------------------------------------------------------------------------- */

static gn_status fill_bernoulli(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    chances_draw(&s, a[0].operand.tensor, a[1].operand, a[2].generator);
    return gni_scope_give(&s, a[0].operand.tensor, results);
}

static gn_status fill_exponential(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *self = a[0].operand.tensor;
    double rate = gni_scalar_double(a[1].operand.scalar);
    if (!(rate > 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "lambd is above 0, not %s",
                       gni_number_text(a[1].operand.scalar).text);
    gn_tensor *times = exponential(&s, self, a[2].generator);
    gni_assign(&s, self, gni_of(gni_binary(&s, GN_OP_DIVIDE, gni_of(times), gni_floating(-rate))));
    return gni_scope_give(&s, self, results);
}

static gn_status fill_uniform(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *self = a[0].operand.tensor;
    double low = gni_scalar_double(a[1].operand.scalar);
    double high = gni_scalar_double(a[2].operand.scalar);
    if (!(low <= high))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "there is no number from %s to before %s",
                       gni_number_text(a[1].operand.scalar).text,
                       gni_number_text(a[2].operand.scalar).text);
    (void)filled(&s, self, gn_random_uniform, a[3].generator);
    if (low == 0 && high == 1)
        return gni_scope_give(&s, self, results);
    /* Their difference may be more than a number can be, and rounding may make a number `high`. */
    gn_operand ends[] = {a[1].operand, a[2].operand, gni_of(self)};
    gn_tensor *made = gni_elementwise(&s, GN_OP_LERP, 3, ends);
    gn_tensor *is_below = gni_binary(&s, GN_OP_LESS, gni_of(made), a[2].operand);
    gni_assign(&s, self, gni_of(gni_where(&s, is_below, gni_of(made), a[1].operand)));
    return gni_scope_give(&s, self, results);
}

static gn_status fill_normal(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *self = a[0].operand.tensor;
    double mean = gni_scalar_double(a[1].operand.scalar);
    double std = gni_scalar_double(a[2].operand.scalar);
    if (!(std >= 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "a standard deviation is not negative: %s",
                       gni_number_text(a[2].operand.scalar).text);
    (void)filled(&s, self, gn_random_normal, a[3].generator);
    if (mean != 0 || std != 1) {
        gn_tensor *made = gni_binary(&s, GN_OP_MULTIPLY, gni_of(self), a[2].operand);
        gni_assign(&s, self, gni_of(gni_binary(&s, GN_OP_ADD, gni_of(made), a[1].operand)));
    }
    return gni_scope_give(&s, self, results);
}

/* How many integers from 0 on a type has, or counts without a gap. */
static gn_scalar integers_of(gn_dtype dtype)
{
    int bits = dtype == GN_BOOL       ? 1
               : dtype == GN_FLOAT16  ? 11
               : dtype == GN_BFLOAT16 ? 8
               : dtype == GN_FLOAT32  ? 24
               : dtype == GN_FLOAT64  ? 53
                                     : 8 * (int)gni_dtype_size(dtype) - gni_dtypes[dtype].is_signed;
    if (bits == 64)
        return (gn_scalar){.kind = GN_UINT64, .integer = -1}; /* the largest number */
    return gni_integer(bits < 63 ? INT64_C(1) << bits : INT64_MAX).scalar;
}

static gn_status fill_integers(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *self = a[0].operand.tensor;
    gn_scalar low, high;
    range_of(&a[1], &a[2], &low, &high);
    if (!a[2].is_given && high.kind != GN_FLOAT64 && high.integer == 0)
        high = integers_of(self->dtype);
    return gni_scope_give(&s, integers(&s, self, low, high, a[3].generator), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    FILLS = GN_FORM_METHOD | GN_FORM_NO_FUNCTION,
};

#define SHAPE                                                                               \
    "*shape: sizes, size: sizes = None, generator: generator = None, dtype: dtype = None, " \
    "device: device = None"
#define LIKE                                                                    \
    "input: Tensor, dtype: dtype = None, device: device = None, *, generator: " \
    "generator = None, memory_format: text = None"

const gn_function gni_functions_random[] = {
    {"rand", NULL, SHAPE, 0, rand_call, "Random numbers from 0 to before 1, all as likely.",
     ">>> (genesis.rand(1000) < 1).all().item()\nTrue"},
    {"randn", NULL, SHAPE, 0, randn_call,
     "Random numbers with mean 0 and variance 1, normally distributed.",
     ">>> genesis.randn(2, 3).shape\n(2, 3)"},
    {"rand_like", NULL, LIKE, 0, rand_like_call,
     "Random numbers from 0 to before 1 in the same shape.",
     ">>> genesis.rand_like(genesis.zeros(2, 3)).shape\n(2, 3)"},
    {"randn_like", NULL, LIKE, 0, randn_like_call,
     "Normally distributed random numbers in the same shape.",
     ">>> genesis.randn_like(genesis.zeros(2, 3)).shape\n(2, 3)"},
    {"randint", NULL,
     "low: number = 0, high: number|sizes = None, size: sizes = None, *, generator: generator = "
     "None, "
     "dtype: dtype = None, device: device = None",
     0, randint_call, "Random integers from `low` (0 if it is left out) to before `high`.",
     ">>> genesis.randint(3, 4, (2,))\ntensor([3, 3])"},
    {"randint_like", NULL,
     "input: Tensor, low: number = 0, high: number = None, *, generator: generator = None, "
     "dtype: dtype = None, device: device = None, memory_format: text = None",
     0, randint_like_call, "Random integers in the same shape and dtype; one number is the end.",
     ">>> genesis.randint_like(genesis.zeros(2), 3, 4)\ntensor([3., 3.])"},
    {"randperm", NULL,
     "n: int, *, generator: generator = None, dtype: dtype = None, device: device = None", 0,
     randperm_call, "The numbers from 0 to n - 1 in random order.",
     ">>> sorted(genesis.randperm(4).tolist())\n[0, 1, 2, 3]"},
    {"normal", NULL,
     "mean: operand = 0.0, std: operand = 1.0, size: sizes = None, *, generator: generator = None, "
     "dtype: dtype = None, device: device = None",
     0, normal_call,
     "Normally distributed random numbers, each with a mean and a standard deviation.\n\n"
     "Without a size these are tensors, whose shape the result has.",
     ">>> genesis.normal(genesis.tensor([5.0, 7.0]), 0.0)\ntensor([5., 7.])"},
    {"bernoulli", NULL, "input: Tensor, *, generator: generator = None", GN_FORM_METHOD,
     bernoulli_call, "Ones, each with the probability that an element is, and zeros.",
     ">>> genesis.bernoulli(genesis.tensor([0.0, 1.0]))\ntensor([0., 1.])"},
    {"multinomial", NULL,
     "input: Tensor, num_samples: int, replacement: bool = False, *, generator: generator = None",
     GN_FORM_METHOD, multinomial_call,
     "Random places of a vector, or of each row, as likely as the elements there are large.",
     ">>> genesis.multinomial(genesis.tensor([0.0, 1.0]), 3, replacement=True)\n"
     "tensor([1, 1, 1])"},
    {"bernoulli_", NULL, "self: Tensor, p: operand = 0.5, *, generator: generator = None", FILLS,
     fill_bernoulli, "Fill it with ones, each with a probability, and zeros.",
     ">>> genesis.empty(3).bernoulli_(1.0)\ntensor([1., 1., 1.])"},
    {"exponential_", NULL, "self: Tensor, lambd: number = 1.0, *, generator: generator = None",
     FILLS, fill_exponential,
     "Fill it with exponentially distributed random numbers, whose mean is ``1 / lambd``.",
     ">>> (genesis.empty(1000).exponential_() >= 0).all().item()\nTrue"},
    {"uniform_", NULL,
     "self: Tensor, low: number = 0.0, high: number = 1.0, *, generator: generator = None", FILLS,
     fill_uniform, "Fill it with random numbers from `low` to before `high`, all as likely.",
     ">>> (genesis.empty(1000).uniform_(2, 3) >= 2).all().item()\nTrue"},
    {"normal_", NULL,
     "self: Tensor, mean: number = 0.0, std: number = 1.0, *, generator: generator = None", FILLS,
     fill_normal, "Fill it with normally distributed random numbers.",
     ">>> genesis.empty(2, 3).normal_(0, 0.02).shape\n(2, 3)"},
    {"random_", NULL,
     "self: Tensor, low: number = 0, high: number = None, *, generator: generator = None", FILLS,
     fill_integers,
     "Fill it with random integers from `low` to before `high`; one number is the end.\n\n"
     "Without any they are all that the type has from 0 on, or that it counts exactly.",
     ">>> (genesis.empty(1000).random_(10) < 10).all().item()\nTrue"},
    {0},
};
