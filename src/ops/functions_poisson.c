/*
 * functions_poisson.c: random numbers of the Poisson and gamma distributions, made of uniform and normal ones.
 */
#include "ops/functions.h"

#include <math.h>

enum {
    FEW = 10,        /* rates below are drawn by adding up chances, others by rejection */
    CHANCES = 60,    /* more events than a rate below FEW ever gives: the chance is below 2^-53 */
    ROUNDS_MOST = 99 /* of rejection: one in eight numbers or fewer needs another one */
};

/* A generator of its own for one call, which draws several times. It stands for the offset that is taken. */
static gn_generator generator_split(gn_generator *generator)
{
    uint64_t mixed = generator->seed + generator->offset++ * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (gn_generator){.seed = mixed ^ mixed >> 31};
}

typedef gn_status (*fill_call)(gn_tensor *out, gn_generator *generator);

static gn_tensor *filled_like(struct gni_scope *s, const gn_tensor *x, fill_call fill,
                              gn_generator *generator)
{
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_tensor_create(GN_FLOAT64, x->ndim, x->sizes, x->device, &made);
    made = gni_scope_keep(s, s->status, made);
    if (gni_scope_is_ok(s))
        s->status = fill(made, generator);
    return made;
}

static gn_tensor *uniform_like(struct gni_scope *s, const gn_tensor *x, gn_generator *generator)
{
    return filled_like(s, x, gn_random_uniform, generator);
}

static gn_operand scaled(struct gni_scope *s, gn_operand x, double factor, double addend)
{
    gn_operand product = gni_of(gni_binary(s, GN_OP_MULTIPLY, x, gni_floating(factor)));
    return gni_of(gni_binary(s, GN_OP_ADD, product, gni_floating(addend)));
}

static gn_operand quotient(struct gni_scope *s, gn_operand a, gn_operand b)
{
    return gni_of(gni_binary(s, GN_OP_DIVIDE, a, b));
}

static gn_operand sum(struct gni_scope *s, gn_operand a, gn_operand b)
{
    return gni_of(gni_binary(s, GN_OP_ADD, a, b));
}

static gn_operand product(struct gni_scope *s, gn_operand a, gn_operand b)
{
    return gni_of(gni_binary(s, GN_OP_MULTIPLY, a, b));
}

static gn_operand logarithm(struct gni_scope *s, gn_operand x)
{
    return gni_of(gni_unary(s, GN_OP_LOG, x.tensor));
}

static gn_operand both(struct gni_scope *s, gn_operand a, gn_operand b)
{
    return gni_of(gni_binary(s, GN_OP_LOGICAL_AND, a, b));
}

/* Small rates: how many of the sums of chances, of 0 events, of up to 1, of up to 2 ..., are below a uniform number. */
static gn_tensor *poisson_by_sums(struct gni_scope *s, gn_operand rate, gn_generator *generator)
{
    gn_operand uniform = gni_of(uniform_like(s, rate.tensor, generator));
    gn_operand chance = gni_of(gni_unary(s, GN_OP_EXP, gni_unary(s, GN_OP_NEGATIVE, rate.tensor)));
    gn_operand total = chance, count = gni_floating(0);
    for (int i = 1; i <= CHANCES; i++) {
        gn_tensor *is_below = gni_binary(s, GN_OP_GREATER, uniform, total);
        count = sum(s, gni_of(gni_cast(s, is_below, GN_FLOAT64)), count);
        chance = product(s, chance, scaled(s, rate, 1.0 / i, 0));
        total = sum(s, total, chance);
    }
    return count.tensor;
}

/* The logarithm of k!, k not negative: Stirling's series, 7 further on, where its error is below 1e-9. */
static gn_operand log_factorial(struct gni_scope *s, gn_operand k)
{
    gn_operand w = scaled(s, k, 1, 8), before = scaled(s, k, 1, 1);
    for (int i = 2; i <= 7; i++)
        before = product(s, before, scaled(s, k, 1, i));
    gn_operand inverse = quotient(s, gni_floating(1), w), square = product(s, inverse, inverse);
    gn_operand series = scaled(s, square, 1.0 / 1260, -1.0 / 360);
    series = product(s, inverse, sum(s, product(s, series, square), gni_floating(1.0 / 12)));
    gn_operand made = product(s, scaled(s, w, 1, -0.5), logarithm(s, w));
    made = sum(s, made, scaled(s, w, -1, 0.5 * log(2 * M_PI)));
    return sum(s, sum(s, made, series), scaled(s, logarithm(s, before), -1, 0));
}

/*
 * One round of W. Hoermann's transformed rejection with squeeze (PTRS, 1993), for rates of at least 10: candidates, and
 * which of them are accepted.
 */
static gn_tensor *poisson_round(struct gni_scope *s, gn_operand rate, gn_generator *generator,
                                gn_tensor **is_accepted)
{
    gn_operand u = scaled(s, gni_of(uniform_like(s, rate.tensor, generator)), 1, -0.5);
    gn_operand v = gni_of(uniform_like(s, rate.tensor, generator));
    gn_operand b = scaled(s, gni_of(gni_unary(s, GN_OP_SQRT, rate.tensor)), 2.53, 0.931);
    gn_operand a = scaled(s, b, 0.02483, -0.059);
    gn_operand scale =
        scaled(s, quotient(s, gni_floating(1.1328), scaled(s, b, 1, -3.4)), 1, 1.1239);
    gn_operand squeeze =
        scaled(s, quotient(s, gni_floating(3.6224), scaled(s, b, 1, -2)), -1, 0.9277);
    gn_operand edge = scaled(s, gni_of(gni_unary(s, GN_OP_ABSOLUTE, u.tensor)), -1, 0.5);
    gn_operand wide = sum(s, scaled(s, quotient(s, a, edge), 2, 0), b);
    gn_operand k = sum(s, product(s, wide, u), scaled(s, rate, 1, 0.43));
    k = gni_of(gni_unary(s, GN_OP_FLOOR, k.tensor));
    gn_operand is_quick =
        both(s, gni_of(gni_binary(s, GN_OP_GREATER_EQUAL, edge, gni_floating(0.07))),
             gni_of(gni_binary(s, GN_OP_LESS_EQUAL, v, squeeze)));
    gn_operand is_valid = gni_of(gni_binary(s, GN_OP_GREATER_EQUAL, k, gni_integer(0)));
    gn_operand least = gni_of(gni_binary(s, GN_OP_MAXIMUM, k, gni_integer(0)));
    gn_operand hat = sum(s, quotient(s, a, product(s, edge, edge)), b);
    gn_operand left = logarithm(s, quotient(s, product(s, v, scale), hat));
    gn_operand right = sum(s, product(s, least, logarithm(s, rate)), scaled(s, rate, -1, 0));
    right = sum(s, right, scaled(s, log_factorial(s, least), -1, 0));
    gn_operand is_fitting = both(s, is_valid, gni_of(gni_binary(s, GN_OP_LESS_EQUAL, left, right)));
    *is_accepted = gni_binary(s, GN_OP_LOGICAL_OR, is_quick, is_fitting);
    return k.tensor;
}

static bool has_any(struct gni_scope *s, gn_tensor *x)
{
    return gni_item(s, gni_reduce(s, GN_REDUCE_ANY, x, 0, false)).integer != 0;
}

typedef gn_tensor *(*round_call)(struct gni_scope *s, gn_operand parameter, gn_generator *generator,
                                 gn_tensor **is_accepted);

/* Rounds until every parameter has its number, in `made`. */
static void by_rejection(struct gni_scope *s, round_call call, gn_operand parameter,
                         gn_tensor *is_open, gn_generator *generator, gn_tensor *made)
{
    for (int i = 0; i < ROUNDS_MOST && gni_scope_is_ok(s) && has_any(s, is_open); i++) {
        struct gni_scope round = {0};
        gn_tensor *is_accepted = NULL;
        gn_tensor *k = call(&round, parameter, generator, &is_accepted);
        gn_operand is_new = both(&round, gni_of(is_open), gni_of(is_accepted));
        gni_assign(&round, made, gni_of(gni_where(&round, is_new.tensor, gni_of(k), gni_of(made))));
        gn_tensor *is_left = gni_unary(&round, GN_OP_LOGICAL_NOT, is_accepted);
        gni_assign(&round, is_open, both(&round, gni_of(is_open), gni_of(is_left)));
        gn_tensor *kept = NULL;
        s->status = gni_scope_end(&round, is_open, &kept);
        gn_tensor_release(kept);
    }
}

static gn_status poisson_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    gn_generator generator = generator_split(a[1].generator);
    if (!gni_dtype_is_floating(x->dtype))
        gni_scope_fail(&s, GN_ERROR_TYPE, "rates are floating numbers, not %s",
                       gni_dtypes[x->dtype].name);
    gn_operand rate = gni_of(gni_cast(&s, x, GN_FLOAT64));
    gn_tensor *is_rate = gni_binary(&s, GN_OP_GREATER_EQUAL, rate, gni_integer(0));
    gn_tensor *is_finite = gni_unary(&s, GN_OP_ISFINITE, rate.tensor);
    gn_operand is_good = both(&s, gni_of(is_rate), gni_of(is_finite));
    if (has_any(&s, gni_unary(&s, GN_OP_LOGICAL_NOT, is_good.tensor)))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "rates are finite and not negative");
    gn_operand few = gni_of(gni_binary(&s, GN_OP_MINIMUM, rate, gni_integer(FEW)));
    gn_operand many = gni_of(gni_binary(&s, GN_OP_MAXIMUM, rate, gni_integer(FEW)));
    gn_tensor *made = gni_clone(&s, poisson_by_sums(&s, few, &generator));
    gn_tensor *is_open = gni_clone(&s, gni_binary(&s, GN_OP_GREATER_EQUAL, rate, gni_integer(FEW)));
    by_rejection(&s, poisson_round, many, is_open, &generator, made);
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

/*
 * One round of Marsaglia's and Tsang's rejection ("A simple method for generating gamma variables", 2000), for shapes of
 * at least 1: fewer than one in twenty numbers need another one.
 */
static gn_tensor *gamma_round(struct gni_scope *s, gn_operand shape, gn_generator *generator,
                              gn_tensor **is_accepted)
{
    gn_operand d = scaled(s, shape, 1, -1.0 / 3);
    gn_operand c = gni_of(gni_unary(s, GN_OP_RSQRT, scaled(s, d, 9, 0).tensor));
    gn_operand x = gni_of(filled_like(s, shape.tensor, gn_random_normal, generator));
    gn_operand u = scaled(s, gni_of(uniform_like(s, shape.tensor, generator)), -1, 1); /* above 0 */
    gn_operand root = scaled(s, product(s, c, x), 1, 1);
    gn_operand v = product(s, product(s, root, root), root);
    gn_operand is_valid = gni_of(gni_binary(s, GN_OP_GREATER, root, gni_integer(0)));
    v = gni_of(gni_where(s, is_valid.tensor, v, gni_floating(1)));
    gn_operand most = sum(s, scaled(s, logarithm(s, v), 1, 1), scaled(s, v, -1, 0));
    most = sum(s, product(s, d, most), scaled(s, product(s, x, x), 0.5, 0));
    gn_operand is_below = gni_of(gni_binary(s, GN_OP_LESS, logarithm(s, u), most));
    *is_accepted = both(s, is_valid, is_below).tensor;
    return product(s, d, v).tensor;
}

static gn_status gamma_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    gn_generator generator = generator_split(a[1].generator);
    if (!gni_dtype_is_floating(x->dtype))
        gni_scope_fail(&s, GN_ERROR_TYPE, "concentrations are floating numbers, not %s",
                       gni_dtypes[x->dtype].name);
    gn_operand shape = gni_of(gni_cast(&s, x, GN_FLOAT64));
    gn_tensor *is_above = gni_binary(&s, GN_OP_GREATER, shape, gni_integer(0));
    gn_tensor *is_finite = gni_unary(&s, GN_OP_ISFINITE, shape.tensor);
    gn_operand is_good = both(&s, gni_of(is_above), gni_of(is_finite));
    if (has_any(&s, gni_unary(&s, GN_OP_LOGICAL_NOT, is_good.tensor)))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "concentrations are finite and above 0");
    /* A number of a shape below 1 is one of the next shape, times a power of a uniform one. */
    gn_tensor *is_small = gni_binary(&s, GN_OP_LESS, shape, gni_integer(1));
    gn_operand raised =
        gni_of(gni_where(&s, is_small, scaled(&s, shape, 1, 1), shape)); /* at least 1 */
    gn_tensor *made = gni_clone(&s, raised.tensor);
    gn_tensor *is_open = gni_clone(&s, is_above);
    by_rejection(&s, gamma_round, raised, is_open, &generator, made);
    gn_operand u = scaled(&s, gni_of(uniform_like(&s, made, &generator)), -1, 1);
    gn_operand power = quotient(&s, logarithm(&s, u), shape);
    power = gni_of(gni_unary(&s, GN_OP_EXP, power.tensor));
    power = gni_of(gni_where(&s, is_small, power, gni_floating(1)));
    gn_operand least = gni_floating(x->dtype == GN_FLOAT64   ? 0x1p-1022
                                    : x->dtype == GN_FLOAT16 ? 0x1p-14
                                                             : 0x1p-126);
    made = gni_binary(&s, GN_OP_MAXIMUM, product(&s, gni_of(made), power), least);
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

const gn_function gni_functions_poisson[] = {
    {"poisson", NULL, "input: Tensor, generator: generator = None", 0, poisson_call,
     "Random counts of events, of which as many are expected as each element says.",
     ">>> genesis.poisson(genesis.tensor([0.0, 0.0]))\ntensor([0., 0.])"},
    {"_standard_gamma", NULL, "input: Tensor, generator: generator = None", 0, gamma_call,
     "Random numbers of gamma distributions with these concentrations, and rates of 1.",
     ">>> (genesis._C._standard_gamma(genesis.ones(9)) > 0).all().item()\nTrue"},
    {0},
};
