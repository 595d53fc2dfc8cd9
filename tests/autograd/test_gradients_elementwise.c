/*
 * test_gradients_elementwise.c: gradients of elementwise operations, by central differences.
 *
 * For each operation of GN_OP_LIST there is either a row with the numbers that its operands may
 * have, or the operation must refuse. A row is checked with every mixture of operands: matrices,
 * rows, columns, numbers and integers; and with shapes without elements. What a rule gives at
 * kinks, where differences say nothing, are cases of their own.
 */
#include "check.h"

#include "genesis/genesis.h"

#include <math.h>

enum {
    ROWS = 3,
    COLUMNS = 4,
    ELEMENTS = ROWS * COLUMNS,
    OPERANDS = 3,
    DRAWS_MOST = 1000000,
};

static const double step = 1e-5, tolerance = 1e-6, margin = 0.01;

static gn_device *cpu;
static uint64_t random_state = 1;

/* ---- operations ------------------------------------------------------------------------------ */

struct range {
    double low, high;
};

/* Where the operands lie; without any there must be no rule. */
struct domain {
    struct range operands[OPERANDS];
};

static const char *const names[] = {
#define NAME(NAME_, name, ...) #name,
    GN_OP_LIST(NAME)
#undef NAME
};

static const int arities[] = {
#define ARITY(NAME_, name, arity, ...) arity,
    GN_OP_LIST(ARITY)
#undef ARITY
};

static const char *const kinds[] = {
#define KIND(NAME_, name, arity, kind, ...) #kind,
    GN_OP_LIST(KIND)
#undef KIND
};

static const struct domain domains[GN_OP_COUNT] = {
    [GN_OP_ADD] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_SUBTRACT] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_MULTIPLY] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_DIVIDE] = {{{-2, 2}, {0.5, 2}}},
    [GN_OP_REMAINDER] = {{{-5, 5}, {0.6, 2.5}}},
    [GN_OP_FMOD] = {{{-5, 5}, {0.6, 2.5}}},
    [GN_OP_FLOOR_DIVIDE] = {{{-5, 5}, {0.6, 2.5}}},
    [GN_OP_POWER] = {{{0.5, 2.5}, {-2, 2}}},
    [GN_OP_MAXIMUM] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_MINIMUM] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_NEGATIVE] = {{{-2, 2}}},
    [GN_OP_ABSOLUTE] = {{{-2, 2}}},
    [GN_OP_SIGN] = {{{-2, 2}}},
    [GN_OP_SQUARE] = {{{-2, 2}}},
    [GN_OP_RECIPROCAL] = {{{0.5, 2}}},
    [GN_OP_FLOOR] = {{{-2, 2}}},
    [GN_OP_CEIL] = {{{-2, 2}}},
    [GN_OP_ROUND] = {{{-2, 2}}},
    [GN_OP_TRUNC] = {{{-2, 2}}},
    [GN_OP_SQRT] = {{{0.5, 2}}},
    [GN_OP_RSQRT] = {{{0.5, 2}}},
    [GN_OP_EXP] = {{{-2, 2}}},
    [GN_OP_EXP2] = {{{-2, 2}}},
    [GN_OP_EXPM1] = {{{-2, 2}}},
    [GN_OP_LDEXP] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_NEXTAFTER] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_LOG] = {{{0.3, 3}}},
    [GN_OP_LOG1P] = {{{-0.5, 2}}},
    [GN_OP_LOG2] = {{{0.3, 3}}},
    [GN_OP_LOG10] = {{{0.3, 3}}},
    [GN_OP_LOGADDEXP] = {{{-3, 3}, {-3, 3}}},
    [GN_OP_LOGADDEXP2] = {{{-3, 3}, {-3, 3}}},
    [GN_OP_XLOGY] = {{{-2, 2}, {0.3, 3}}},
    [GN_OP_LOGIT] = {{{0.05, 0.95}, {0.1, 0.3}}},
    [GN_OP_SIN] = {{{-3, 3}}},
    [GN_OP_COS] = {{{-3, 3}}},
    [GN_OP_TAN] = {{{-1.2, 1.2}}},
    [GN_OP_ASIN] = {{{-0.8, 0.8}}},
    [GN_OP_ACOS] = {{{-0.8, 0.8}}},
    [GN_OP_ATAN] = {{{-2, 2}}},
    [GN_OP_ATAN2] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_HYPOT] = {{{-2, 2}, {-2, 2}}},
    [GN_OP_SINH] = {{{-2, 2}}},
    [GN_OP_COSH] = {{{-2, 2}}},
    [GN_OP_TANH] = {{{-2, 2}}},
    [GN_OP_ASINH] = {{{-2, 2}}},
    [GN_OP_ACOSH] = {{{1.2, 3}}},
    [GN_OP_ATANH] = {{{-0.8, 0.8}}},
    [GN_OP_ERF] = {{{-2, 2}}},
    [GN_OP_ERFC] = {{{-2, 2}}},
    [GN_OP_ERFINV] = {{{-0.8, 0.8}}},
    [GN_OP_LGAMMA] = {{{0.5, 4}}},
    [GN_OP_DIGAMMA] = {{{-1.8, -1.2}}},
    [GN_OP_POLYGAMMA] = {{{1.1, 1.9}, {0.5, 4}}},
    [GN_OP_SINC] = {{{0.3, 2.5}}},
    [GN_OP_SIGMOID] = {{{-3, 3}}},
    [GN_OP_RELU] = {{{-2, 2}}},
    [GN_OP_RELU6] = {{{-2, 8}}},
    [GN_OP_LEAKY_RELU] = {{{-2, 2}, {-0.5, 0.5}}},
    [GN_OP_ELU] = {{{-2, 2}, {0.5, 2}}},
    [GN_OP_CELU] = {{{-2, 2}, {0.5, 2}}},
    [GN_OP_SELU] = {{{-2, 2}}},
    [GN_OP_GELU] = {{{-3, 3}}},
    [GN_OP_GELU_TANH] = {{{-3, 3}}},
    [GN_OP_SILU] = {{{-3, 3}}},
    [GN_OP_HARDSWISH] = {{{-5, 5}}},
    [GN_OP_MISH] = {{{-3, 3}}},
    [GN_OP_SOFTPLUS] = {{{-2, 2}, {0.5, 2}, {0.6, 3}}},
    [GN_OP_LOG_SIGMOID] = {{{-3, 3}}},
    [GN_OP_CLAMP] = {{{-2, 2}, {-1.5, 1.5}, {-1.5, 1.5}}},
    [GN_OP_LERP] = {{{-2, 2}, {-2, 2}, {-0.5, 2.5}}},
    [GN_OP_WHERE] = {{{0, 1}, {-2, 2}, {-2, 2}}},
};

static bool has_rule(gn_op op)
{
    const struct range *first = domains[op].operands;
    return first->high > first->low;
}

static double to_whole(double x)
{
    return fabs(x - round(x));
}

/* How far an element is from a point without a derivative. */
static double kink_distance(gn_op op, const double *in)
{
    double x = in[0], y = in[1], z = in[2];
    switch (op) {
    case GN_OP_MAXIMUM:
    case GN_OP_MINIMUM:
        return fabs(x - y);
    case GN_OP_REMAINDER:
    case GN_OP_FMOD:
    case GN_OP_FLOOR_DIVIDE:
        return to_whole(x / y);
    case GN_OP_POWER: /* the gradient of the base is 0 there, which has no slope */
        return fabs(y);
    case GN_OP_FLOOR:
    case GN_OP_CEIL:
    case GN_OP_ROUND:
    case GN_OP_TRUNC:
        return to_whole(2 * x);
    case GN_OP_ABSOLUTE:
    case GN_OP_SIGN:
    case GN_OP_RELU:
    case GN_OP_LEAKY_RELU:
    case GN_OP_ELU:
    case GN_OP_CELU:
    case GN_OP_SELU:
    case GN_OP_ATAN2: /* the angle jumps */
        return fabs(x);
    case GN_OP_HYPOT:
        return hypot(x, y) / 10;
    case GN_OP_RELU6:
        return fmin(fabs(x), fabs(x - 6));
    case GN_OP_HARDSWISH:
        return fmin(fabs(x + 3), fabs(x - 3));
    case GN_OP_LOGIT:
        return fmin(fabs(x - y), fabs(x - (1 - y)));
    case GN_OP_SOFTPLUS:
        return fabs(x * y - z);
    case GN_OP_CLAMP:
        return fmin(fmin(fabs(x - y), fabs(x - z)), fabs(y - z));
    default:
        return 1;
    }
}

/* ---- operands -------------------------------------------------------------------------------- */

enum form {
    MATRIX,
    ROW,
    COLUMN,
    NUMBER,
    WHOLE, /* a matrix of uint8 */
    FORM_COUNT,
};

static bool is_floating_tensor(enum form form)
{
    return form != NUMBER && form != WHOLE;
}

struct trial {
    gn_op op;
    enum form forms[OPERANDS];
    int64_t rows;                      /* ROWS, or 0 for shapes without elements */
    gn_dtype dtype;                    /* of floating operands */
    double values[OPERANDS][ELEMENTS]; /* a matrix uses all, a number the first */
    double weights[ELEMENTS];
};

static int64_t form_rows(const struct trial *trial, enum form form)
{
    return form == ROW || form == NUMBER ? 1 : trial->rows;
}

static int64_t form_columns(enum form form)
{
    return form == COLUMN || form == NUMBER ? 1 : COLUMNS;
}

static int64_t form_count(const struct trial *trial, enum form form)
{
    return form_rows(trial, form) * form_columns(form);
}

/* Which value of an operand belongs to an element of the result. */
static int64_t value_place(const struct trial *trial, int operand, int64_t row, int64_t column)
{
    enum form form = trial->forms[operand];
    int64_t columns = form_columns(form);
    return (form_rows(trial, form) == 1 ? 0 : row) * columns + (columns == 1 ? 0 : column);
}

static double random_between(double low, double high)
{
    return low + (high - low) * ((double)(check_random(&random_state) >> 11) * 0x1p-53);
}

/* Few bits, so that halves have the number, too. */
static double random_value(const struct range *range, bool is_whole)
{
    if (!is_whole)
        return round(random_between(range->low, range->high) * 32) / 32;
    double low = fmax(ceil(range->low), 0), count = floor(range->high) - low + 1;
    return low + floor(random_between(0, count));
}

static bool trial_is_smooth(const struct trial *trial)
{
    int64_t rows = trial->rows > 0 ? trial->rows : 1; /* a row by itself has elements */
    for (int64_t i = 0; i < rows * COLUMNS; i++) {
        double in[OPERANDS];
        for (int k = 0; k < OPERANDS; k++)
            in[k] = trial->values[k][value_place(trial, k, i / COLUMNS, i % COLUMNS)];
        if (kink_distance(trial->op, in) < margin)
            return false;
    }
    return true;
}

/* Draws numbers until no element is near a kink. */
static void trial_draw(struct trial *trial)
{
    int draws = 0;
    do {
        for (int k = 0; k < arities[trial->op]; k++) {
            bool is_whole = trial->forms[k] == WHOLE || (trial->op == GN_OP_WHERE && k == 0);
            for (int i = 0; i < ELEMENTS; i++)
                trial->values[k][i] = random_value(&domains[trial->op].operands[k], is_whole);
        }
    } while (!trial_is_smooth(trial) && ++draws < DRAWS_MOST);
    CHECK(draws < DRAWS_MOST);
    for (int i = 0; i < ELEMENTS; i++)
        trial->weights[i] = round(random_between(0.5, 1.5) * 64) / (i % 2 == 0 ? 64 : -64);
}

/* Whether the operands can have these forms. */
static bool trial_is_possible(const struct trial *trial)
{
    bool has_floating = false;
    for (int k = 0; k < arities[trial->op]; k++) {
        const struct range *range = &domains[trial->op].operands[k];
        bool is_condition = trial->op == GN_OP_WHERE && k == 0;
        if (trial->forms[k] == WHOLE && floor(range->high) < fmax(ceil(range->low), 0))
            return false;
        if (is_condition && trial->forms[k] == NUMBER)
            return false;
        has_floating |= is_floating_tensor(trial->forms[k]) && !is_condition;
    }
    return has_floating;
}

static gn_tensor *tensor_make(gn_dtype dtype, int ndim, const int64_t *sizes, const double *values)
{
    gn_tensor *doubles = NULL, *tensor = NULL;
    void *data = NULL;
    CHECK_OK(gn_tensor_create(GN_FLOAT64, ndim, sizes, cpu, &doubles));
    CHECK_OK(gn_tensor_get_data(doubles, &data));
    if (gn_tensor_get_count(doubles) > 0)
        memcpy(data, values, (size_t)gn_tensor_get_count(doubles) * sizeof *values);
    CHECK_OK(gn_cast(doubles, dtype, &tensor));
    gn_tensor_release(doubles);
    return tensor;
}

static void tensor_read(gn_tensor *tensor, double *values)
{
    gn_tensor *doubles = NULL;
    void *data = NULL;
    CHECK_OK(gn_cast(tensor, GN_FLOAT64, &doubles));
    CHECK(gn_tensor_is_contiguous(doubles));
    CHECK_OK(gn_tensor_get_data(doubles, &data));
    if (gn_tensor_get_count(doubles) > 0)
        memcpy(values, data, (size_t)gn_tensor_get_count(doubles) * sizeof *values);
    gn_tensor_release(doubles);
}

static gn_operand operand_make(const struct trial *trial, int k)
{
    enum form form = trial->forms[k];
    bool is_condition = trial->op == GN_OP_WHERE && k == 0;
    gn_dtype dtype = is_condition ? GN_BOOL : form == WHOLE ? GN_UINT8 : trial->dtype;
    int64_t sizes[] = {form_rows(trial, form), form_columns(form)};
    if (form == NUMBER)
        return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = trial->values[k][0]}};
    if (form == ROW)
        return (gn_operand){.tensor = tensor_make(dtype, 1, &sizes[1], trial->values[k])};
    return (gn_operand){.tensor = tensor_make(dtype, 2, sizes, trial->values[k])};
}

static void operands_release(gn_operand *operands)
{
    for (int k = 0; k < OPERANDS; k++)
        gn_tensor_release(operands[k].tensor);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The sum of the results times their weights, as doubles, without a graph. */
static double trial_sum(const struct trial *trial)
{
    gn_operand operands[OPERANDS] = {{0}};
    gn_tensor *result = NULL;
    double values[ELEMENTS], sum = 0;
    for (int k = 0; k < arities[trial->op]; k++)
        operands[k] = operand_make(trial, k);
    CHECK_OK(gn_elementwise(trial->op, operands, &result));
    CHECK(!gn_tensor_requires_gradient(result));
    /* fewer elements where the operands are rows and numbers only */
    int64_t count = gn_tensor_get_count(result);
    tensor_read(result, values);
    for (int64_t i = 0; i < count; i++)
        sum += values[i] * trial->weights[i];
    gn_tensor_release(result);
    operands_release(operands);
    return sum;
}

static void differences_find(const struct trial *trial, int k, double *expected)
{
    struct trial moved = *trial;
    for (int64_t i = 0; i < form_count(trial, trial->forms[k]); i++) {
        double value = trial->values[k][i], above = value + step, below = value - step;
        moved.values[k][i] = above;
        double larger = trial_sum(&moved);
        moved.values[k][i] = below;
        expected[i] = (larger - trial_sum(&moved)) / (above - below);
        moved.values[k][i] = value;
    }
}

/* sum(result * weights) as a tensor with a graph. */
static gn_tensor *root_make(const struct trial *trial, gn_tensor *result)
{
    gn_tensor *weighted = NULL, *root = NULL;
    gn_tensor *weights = tensor_make(trial->dtype, gn_tensor_get_dimensions(result),
                                     gn_tensor_get_shape(result), trial->weights);
    gn_operand operands[] = {{.tensor = result}, {.tensor = weights}};
    CHECK_OK(gn_elementwise(GN_OP_MULTIPLY, operands, &weighted));
    CHECK_OK(gn_reduce(GN_REDUCE_SUM, weighted, 0, false, &root));
    gn_tensor_release(weighted);
    gn_tensor_release(weights);
    return root;
}

/* The gradient of a leaf; none counts as 0. */
static void gradient_read(gn_tensor *leaf, double *values)
{
    gn_tensor *gradient = NULL;
    CHECK_OK(gn_tensor_get_gradient(leaf, &gradient));
    memset(values, 0, ELEMENTS * sizeof *values);
    if (gradient == NULL)
        return;
    int ndim = gn_tensor_get_dimensions(leaf);
    CHECK(gn_tensor_get_dtype(gradient) == gn_tensor_get_dtype(leaf));
    CHECK(gn_tensor_get_dimensions(gradient) == ndim);
    CHECK(memcmp(gn_tensor_get_shape(gradient), gn_tensor_get_shape(leaf),
                 (size_t)ndim * sizeof(int64_t)) == 0);
    tensor_read(gradient, values);
    gn_tensor_release(gradient);
}

/* The gradients of the operands whose bits are set. */
static void gradients_find(const struct trial *trial, unsigned needed,
                           double gradients[OPERANDS][ELEMENTS])
{
    gn_operand operands[OPERANDS] = {{0}};
    gn_tensor *result = NULL;
    for (int k = 0; k < arities[trial->op]; k++) {
        operands[k] = operand_make(trial, k);
        if ((needed >> k & 1) != 0)
            CHECK_OK(gn_tensor_set_requires_gradient(operands[k].tensor, true));
    }
    CHECK_OK(gn_elementwise(trial->op, operands, &result));
    CHECK(gn_tensor_requires_gradient(result));
    CHECK_TEXT(gn_tensor_get_operation(result), names[trial->op]);
    gn_tensor *root = root_make(trial, result);
    CHECK_OK(gn_backward(1, &root, NULL, 0));
    for (int k = 0; k < OPERANDS; k++)
        if ((needed >> k & 1) != 0)
            gradient_read(operands[k].tensor, gradients[k]);
    gn_tensor_release(root);
    gn_tensor_release(result);
    operands_release(operands);
}

static int64_t wrong_count(int64_t count, const double *actual, const double *expected,
                           double relative, double absolute)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++)
        wrong += !(fabs(actual[i] - expected[i]) <= relative * fabs(expected[i]) + absolute);
    return wrong;
}

static void mistake_print(const struct trial *trial, int k, const double *actual,
                          const double *expected)
{
    static const char *const words[] = {"matrix", "row", "column", "number", "whole"};
    fprintf(stderr, "    %s, operand %d of", names[trial->op], k);
    for (int i = 0; i < arities[trial->op]; i++)
        fprintf(stderr, " %s", words[trial->forms[i]]);
    fprintf(stderr, ", %d rows\n", (int)trial->rows);
    for (int64_t i = 0; i < form_count(trial, trial->forms[k]); i++)
        fprintf(stderr, "    %.17g: %.17g is not %.17g\n", trial->values[k][i], actual[i],
                expected[i]);
}

static unsigned floating_operands(const struct trial *trial)
{
    unsigned bits = 0;
    for (int k = trial->op == GN_OP_WHERE ? 1 : 0; k < arities[trial->op]; k++)
        bits |= is_floating_tensor(trial->forms[k]) ? 1u << k : 0;
    return bits;
}

/* Each operand alone, and all at once. */
static void trial_check(const struct trial *trial)
{
    unsigned all = floating_operands(trial);
    double expected[OPERANDS][ELEMENTS];
    for (int k = 0; k < OPERANDS; k++)
        if ((all >> k & 1) != 0)
            differences_find(trial, k, expected[k]);
    for (unsigned needed = 1; needed <= all; needed++) {
        double actual[OPERANDS][ELEMENTS];
        if ((needed & ~all) != 0 || (needed != all && (needed & (needed - 1)) != 0))
            continue;
        gradients_find(trial, needed, actual);
        for (int k = 0; k < OPERANDS; k++) {
            if ((needed >> k & 1) == 0)
                continue;
            int64_t count = form_count(trial, trial->forms[k]);
            bool is_right = wrong_count(count, actual[k], expected[k], tolerance, tolerance) == 0;
            CHECK(is_right);
            if (!is_right)
                mistake_print(trial, k, actual[k], expected[k]);
        }
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

static struct trial trial_of_matrices(gn_op op, gn_dtype dtype)
{
    struct trial trial = {.op = op, .rows = ROWS, .dtype = dtype};
    trial_draw(&trial);
    return trial;
}

/* Every operation with every mixture of forms. */
static int forms_check(gn_op op, int64_t rows)
{
    int count = 1, done = 0;
    for (int k = 0; k < arities[op]; k++)
        count *= FORM_COUNT;
    for (int mixture = 0; mixture < count; mixture++) {
        struct trial trial = {.op = op, .rows = rows, .dtype = GN_FLOAT64};
        for (int k = 0, rest = mixture; k < arities[op]; k++, rest /= FORM_COUNT)
            trial.forms[k] = (enum form)(rest % FORM_COUNT);
        if (!trial_is_possible(&trial))
            continue;
        trial_draw(&trial);
        trial_check(&trial);
        done++;
    }
    return done;
}

static void test_against_differences(void)
{
    int done = 0, ops = 0;
    for (int op = 0; op < GN_OP_COUNT; op++) {
        done += has_rule((gn_op)op) ? forms_check((gn_op)op, ROWS) : 0;
        ops += has_rule((gn_op)op);
    }
    printf("%d operations, %d mixtures of operands\n", ops, done);
    CHECK(ops == 72);
}

static void test_without_elements(void)
{
    for (int op = 0; op < GN_OP_COUNT; op++)
        if (has_rule((gn_op)op))
            (void)forms_check((gn_op)op, 0);
}

/* What the tests above find: a gradient that is a little wrong, in one element. */
static void test_the_check_itself(void)
{
    for (int op = 0; op < GN_OP_COUNT; op++) {
        double actual[OPERANDS][ELEMENTS], expected[ELEMENTS];
        if (!has_rule((gn_op)op))
            continue;
        struct trial trial = trial_of_matrices((gn_op)op, GN_FLOAT64);
        int k = op == GN_OP_WHERE ? 1 : 0;
        gradients_find(&trial, 1u << k, actual);
        differences_find(&trial, k, expected);
        CHECK_U64(wrong_count(ELEMENTS, actual[k], expected, tolerance, tolerance), 0);
        expected[ELEMENTS - 1] += 1e-4 * (1 + fabs(expected[ELEMENTS - 1]));
        CHECK_U64(wrong_count(ELEMENTS, actual[k], expected, tolerance, tolerance), 1);
        expected[0] = NAN;
        CHECK_U64(wrong_count(ELEMENTS, actual[k], expected, tolerance, tolerance), 2);
        trial.op = op == GN_OP_EXP ? GN_OP_EXP2 : GN_OP_EXP; /* another operation */
        trial.values[0][0] = 0.7;
        differences_find(&trial, 0, expected);
        if (k == 0)
            CHECK(wrong_count(ELEMENTS, actual[0], expected, tolerance, tolerance) > 0);
    }
}

/* Rules of halves compute in float32, and round once. */
static void halves_check(gn_op op, gn_dtype dtype, double epsilon)
{
    struct trial exact = trial_of_matrices(op, GN_FLOAT64), halves = exact;
    double expected[OPERANDS][ELEMENTS], actual[OPERANDS][ELEMENTS];
    unsigned all = floating_operands(&exact);
    halves.dtype = dtype;
    gradients_find(&exact, all, expected);
    gradients_find(&halves, all, actual);
    for (int k = 0; k < arities[op]; k++) {
        if ((all >> k & 1) == 0)
            continue;
        bool is_right = wrong_count(ELEMENTS, actual[k], expected[k], 0.51 * epsilon, 4e-6) == 0;
        CHECK(is_right);
        if (!is_right)
            mistake_print(&halves, k, actual[k], expected[k]);
    }
}

static void test_halves(void)
{
    for (int op = 0; op < GN_OP_COUNT; op++)
        for (int again = 0; again < 5 && has_rule((gn_op)op) && op != GN_OP_NEXTAFTER; again++) {
            halves_check((gn_op)op, GN_FLOAT16, 0x1p-10);
            halves_check((gn_op)op, GN_BFLOAT16, 0x1p-7);
        }
}

/* ---- gradients of gradients ------------------------------------------------------------------ */

/* The sum of all gradients times the weights. */
static double gradients_sum(const struct trial *trial)
{
    double gradients[OPERANDS][ELEMENTS], sum = 0;
    unsigned all = floating_operands(trial);
    gradients_find(trial, all, gradients);
    for (int k = 0; k < OPERANDS; k++)
        for (int i = 0; i < ELEMENTS && (all >> k & 1) != 0; i++)
            sum += gradients[k][i] * trial->weights[i];
    return sum;
}

/* The same by gn_grad(), and its gradients added to those of the leaves. */
static gn_status second_backward(const struct trial *trial, gn_tensor *result, int count,
                                 gn_tensor **leaves)
{
    gn_tensor *root = root_make(trial, result), *gradients[OPERANDS] = {NULL};
    gn_status status =
        gn_grad(1, &root, NULL, count, leaves, GN_CREATE_GRAPH | GN_ALLOW_UNUSED, gradients);
    for (int k = 0; k < count && status == GN_OK; k++) {
        if (!gn_tensor_requires_gradient(gradients[k])) /* it is constant */
            continue;
        gn_tensor *second = root_make(trial, gradients[k]);
        status = gn_backward(1, &second, NULL, GN_RETAIN_GRAPH);
        gn_tensor_release(second);
    }
    for (int k = 0; k < count; k++)
        gn_tensor_release(gradients[k]);
    gn_tensor_release(root);
    return status;
}

static void second_check(gn_op op)
{
    struct trial trial = trial_of_matrices(op, GN_FLOAT64), moved = trial;
    gn_operand operands[OPERANDS] = {{0}};
    gn_tensor *result = NULL, *leaves[OPERANDS] = {NULL};
    int first = op == GN_OP_WHERE ? 1 : 0, count = arities[op] - first;
    for (int k = 0; k < arities[op]; k++) {
        operands[k] = operand_make(&trial, k);
        if (k < first)
            continue;
        leaves[k - first] = operands[k].tensor;
        CHECK_OK(gn_tensor_set_requires_gradient(operands[k].tensor, true));
    }
    CHECK_OK(gn_elementwise(op, operands, &result));
    gn_status status = second_backward(&trial, result, count, leaves);
    CHECK_OK(status);
    for (int k = first; k < arities[op] && status == GN_OK; k++) {
        double actual[ELEMENTS], expected[ELEMENTS];
        gradient_read(operands[k].tensor, actual);
        for (int i = 0; i < ELEMENTS; i++) {
            double value = trial.values[k][i], above = value + step, below = value - step;
            moved.values[k][i] = above;
            double larger = gradients_sum(&moved);
            moved.values[k][i] = below;
            expected[i] = (larger - gradients_sum(&moved)) / (above - below);
            moved.values[k][i] = value;
        }
        bool is_right = wrong_count(ELEMENTS, actual, expected, tolerance, tolerance) == 0;
        CHECK(is_right);
        if (!is_right)
            mistake_print(&trial, k, actual, expected);
    }
    gn_tensor_release(result);
    operands_release(operands);
}

static void test_gradients_of_gradients(void)
{
    for (int op = 0; op < GN_OP_COUNT; op++)
        if (has_rule((gn_op)op))
            second_check((gn_op)op);
}

/* ---- kinks ----------------------------------------------------------------------------------- */

/* The gradients of operands of one element. `numbers`: bits of those that are no tensors. */
struct corner {
    gn_op op;
    double operands[OPERANDS];
    double gradients[OPERANDS];
    unsigned numbers;
};

static const struct corner corners[] = {
    {GN_OP_MAXIMUM, {1, 1}, {0.5, 0.5}, 0},
    {GN_OP_MINIMUM, {1, 1}, {0.5, 0.5}, 0},
    {GN_OP_MAXIMUM, {1, 1}, {0.5}, 2},
    {GN_OP_MAXIMUM, {NAN, 1}, {1, 1}, 0},
    {GN_OP_MINIMUM, {1, NAN}, {1, 1}, 0},
    {GN_OP_ABSOLUTE, {0}, {0}, 0},
    {GN_OP_SQRT, {0}, {INFINITY}, 0},
    {GN_OP_POWER, {0, 0}, {0, 0}, 0},
    {GN_OP_POWER, {0, 2}, {0, 0}, 0},
    {GN_OP_POWER, {0, 1}, {1, 0}, 0},
    {GN_OP_POWER, {-3, 0}, {0, NAN}, 0},
    {GN_OP_POWER, {-3, 2}, {-6}, 2},
    {GN_OP_POWER, {-3, 3}, {27}, 2},
    {GN_OP_POWER, {-2, -1}, {-0.25}, 2},
    {GN_OP_POWER, {0, 0}, {0}, 2},
    {GN_OP_POWER, {0, 1}, {1}, 2},
    {GN_OP_POWER, {4, 0.5}, {0.25}, 2},
    {GN_OP_POWER, {0, 2}, {0, 0}, 1},
    {GN_OP_POWER, {0, 0}, {0, 0}, 1},
    {GN_OP_POWER, {0, -1}, {0, -INFINITY}, 1},
    {GN_OP_POWER, {1, 5}, {0, 0}, 1},
    {GN_OP_HYPOT, {3, 4}, {0.6, 0.8}, 0},
    {GN_OP_ATAN2, {0, 0}, {0, 0}, 0},
    {GN_OP_ATAN2, {0, 2}, {0.5, 0}, 0},
    {GN_OP_SINC, {0}, {0}, 0},
    {GN_OP_XLOGY, {0, 0}, {0, NAN}, 0},
    {GN_OP_XLOGY, {0, -1}, {0, 0}, 0},
    {GN_OP_XLOGY, {0, 1}, {0, 0}, 0},
    {GN_OP_XLOGY, {0, -1}, {0}, 2},
    {GN_OP_XLOGY, {2, 1}, {0}, 2},
    {GN_OP_LOGIT, {0.5, NAN}, {4}, 2},
    {GN_OP_LOGIT, {0.5, -1}, {4}, 2},
    {GN_OP_LOGIT, {1.5, NAN}, {NAN}, 2},
    {GN_OP_LOGIT, {-0.5, -1}, {NAN}, 2},
    {GN_OP_LOGIT, {1.5, 0.25}, {0}, 2},
    {GN_OP_LOGIT, {0.125, 0.25}, {0}, 2},
    {GN_OP_LOGIT, {1.5, -1}, {NAN, 0}, 0},
    {GN_OP_LOGIT, {0, -1}, {INFINITY, 0}, 0},
    {GN_OP_LOGIT, {1, NAN}, {INFINITY}, 2},
    {GN_OP_LOGIT, {0.25, 0.25}, {16.0 / 3, 0}, 0},
    {GN_OP_LOGIT, {0.75, 0.25}, {16.0 / 3, 0}, 0},
    {GN_OP_LOGIT, {0.25, 0.25}, {16.0 / 3}, 2},
    {GN_OP_LOGIT, {0.75, 0.25}, {16.0 / 3}, 2},
    {GN_OP_LOGIT, {-1, 0}, {0, INFINITY}, 0},
    {GN_OP_RELU, {0}, {0}, 0},
    {GN_OP_RELU, {NAN}, {1}, 0},
    {GN_OP_RELU6, {0}, {0}, 0},
    {GN_OP_RELU6, {6}, {0}, 0},
    {GN_OP_LEAKY_RELU, {0, 0.25}, {0.25, 0}, 0},
    {GN_OP_ELU, {0, 0.5}, {0.5, 0}, 0},
    {GN_OP_CELU, {0, 0.5}, {1, 0}, 0},
    {GN_OP_SELU, {0}, {0x1.c212cc640f031p+0}, 0},
    {GN_OP_HARDSWISH, {-3}, {0}, 0},
    {GN_OP_HARDSWISH, {3}, {1}, 0},
    {GN_OP_SOFTPLUS, {30, 1, 20}, {1}, 6},
    {GN_OP_SOFTPLUS, {20, 1, 20}, {0.99999999793884631}, 6},
    {GN_OP_CLAMP, {0, 1, 1}, {0, 1, 0}, 0},
    {GN_OP_CLAMP, {2, 1, 1}, {0, 0, 1}, 0},
    {GN_OP_CLAMP, {1, 1, 1}, {1, 0, 0}, 0},
    {GN_OP_CLAMP, {1, 1, 2}, {0.5, 0.5, 0}, 0},
    {GN_OP_CLAMP, {2, 1, 2}, {0.5, 0, 0.5}, 0},
    {GN_OP_CLAMP, {1, 2, 1}, {0, 0, 1}, 0},
    {GN_OP_CLAMP, {2, 2, 1}, {0, 0, 1}, 0},
    {GN_OP_CLAMP, {1.5, 2, 1}, {0, 0, 1}, 0},
    {GN_OP_CLAMP, {NAN, 1, 2}, {1, 0, 0}, 0},
    {GN_OP_CLAMP, {1, NAN, 2}, {1, 0, 0}, 0},
    {GN_OP_CLAMP, {1, 0, NAN}, {1, 0, 0}, 0},
    {GN_OP_CLAMP, {1, 1, 2}, {0}, 6},
    {GN_OP_CLAMP, {2, 1, 2}, {0}, 6},
    {GN_OP_CLAMP, {1.5, 1, 2}, {1}, 6},
    {GN_OP_CLAMP, {NAN, 1, 2}, {0}, 6},
    {GN_OP_CLAMP, {INFINITY, 1, INFINITY}, {1}, 6},
    {GN_OP_NEXTAFTER, {1, 3}, {1, 0}, 0},
    {GN_OP_NEXTAFTER, {1, 1}, {0, 0}, 0},
    {GN_OP_FLOOR_DIVIDE, {5, 2}, {0, 0}, 0},
    {GN_OP_CLAMP, {3, 1, 2}, {0, 0, 1}, 0},
    {GN_OP_CLAMP, {0, 1, 2}, {0, 1, 0}, 0},
    {GN_OP_CLAMP, {0, 2, 1}, {0, 0, 1}, 0},
    {GN_OP_CLAMP, {5, -INFINITY, INFINITY}, {1}, 6},
    {GN_OP_FLOOR, {2}, {0}, 0},
    {GN_OP_SIGN, {0}, {0}, 0},
    {GN_OP_LERP, {0.1, 0.3, 0.25}, {0, 0, 0.3 - 0.1}, 3},
    {GN_OP_LOGADDEXP, {1000, -1000}, {1, 0}, 0},
    {GN_OP_LOGADDEXP2, {-3000, 3000}, {0, 1}, 0},
    {GN_OP_SIGMOID, {-1000}, {0}, 0},
    {GN_OP_LOG_SIGMOID, {-1000}, {1}, 0},
};

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || (isfinite(b) && fabs(a - b) <= 1e-14 * fabs(b));
}

static void corner_check(const struct corner *corner)
{
    gn_operand operands[OPERANDS] = {{0}};
    gn_tensor *result = NULL;
    const int64_t one = 1;
    for (int k = 0; k < arities[corner->op]; k++) {
        const double *value = &corner->operands[k];
        operands[k].scalar = (gn_scalar){.kind = GN_FLOAT64, .floating = *value};
        if ((corner->numbers >> k & 1) != 0)
            continue;
        operands[k].tensor = tensor_make(GN_FLOAT64, 1, &one, value);
        CHECK_OK(gn_tensor_set_requires_gradient(operands[k].tensor, true));
    }
    CHECK_OK(gn_elementwise(corner->op, operands, &result));
    CHECK_OK(gn_backward(1, &result, NULL, 0));
    for (int k = 0; k < OPERANDS; k++) {
        double gradient[ELEMENTS];
        if (operands[k].tensor == NULL)
            continue;
        gradient_read(operands[k].tensor, gradient);
        bool is_right = is_same(gradient[0], corner->gradients[k]);
        CHECK(is_right);
        if (!is_right)
            fprintf(stderr, "    %s of %g, %g, %g: gradient %d is %.17g, not %.17g\n",
                    names[corner->op], corner->operands[0], corner->operands[1],
                    corner->operands[2], k, gradient[0], corner->gradients[k]);
    }
    gn_tensor_release(result);
    operands_release(operands);
}

static void test_corners(void)
{
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        corner_check(&corners[i]);
    CHECK(is_same(NAN, NAN) && !is_same(NAN, 0) && !is_same(0.5, 1) && !is_same(0, 1e-9));
    CHECK(is_same(INFINITY, INFINITY) && !is_same(INFINITY, -INFINITY));
}

/* Halves are equal to a number that becomes the same half. */
static void test_numbers_beside_halves(void)
{
    const int64_t one = 1;
    const double value = 0.1;
    double gradient[ELEMENTS];
    gn_tensor *x = tensor_make(GN_FLOAT16, 1, &one, &value), *result = NULL;
    gn_operand operands[] = {{.tensor = x}, {.scalar = {.kind = GN_FLOAT64, .floating = value}}};
    CHECK_OK(gn_tensor_set_requires_gradient(x, true));
    CHECK_OK(gn_elementwise(GN_OP_MAXIMUM, operands, &result));
    CHECK_OK(gn_backward(1, &result, NULL, 0));
    gradient_read(x, gradient);
    CHECK(gradient[0] == 0.5);
    gn_tensor_release(result);
    gn_tensor_release(x);
}

/* The logarithm of an integer has the precision of the gradient, not that of the default type. */
static void test_integers_beside_doubles(void)
{
    const int64_t one = 1;
    const double base = 3, exponent = 2;
    double gradient[ELEMENTS];
    gn_tensor *x = tensor_make(GN_INT64, 1, &one, &base), *result = NULL;
    gn_tensor *y = tensor_make(GN_FLOAT64, 1, &one, &exponent);
    CHECK_OK(gn_tensor_set_requires_gradient(y, true));
    CHECK_OK(gn_elementwise(GN_OP_POWER, (gn_operand[]){{.tensor = x}, {.tensor = y}}, &result));
    CHECK_OK(gn_backward(1, &result, NULL, 0));
    gradient_read(y, gradient);
    CHECK(is_same(gradient[0], 9 * log(3)));
    gn_tensor_release(result);
    gn_tensor_release(y);
    gn_tensor_release(x);
}

/* ---- without a rule -------------------------------------------------------------------------- */

/* Comparisons give bool, which needs no gradient; others refuse. */
static void no_rule_check(gn_op op)
{
    const int64_t one = 1;
    const double value = 1.5;
    gn_operand operands[OPERANDS] = {{0}};
    gn_tensor *result = NULL;
    bool is_test = strcmp(kinds[op], "TEST") == 0 || strcmp(kinds[op], "LOGIC") == 0;
    bool is_of_integers = strcmp(kinds[op], "INTEGER") == 0;
    for (int k = 0; k < arities[op]; k++) {
        operands[k].tensor = tensor_make(GN_FLOAT64, 1, &one, &value);
        CHECK_OK(gn_tensor_set_requires_gradient(operands[k].tensor, true));
    }
    gn_status status = gn_elementwise(op, operands, &result);
    CHECK_STATUS(status, is_test ? GN_OK : is_of_integers ? GN_ERROR_TYPE : GN_ERROR_UNSUPPORTED);
    CHECK((result != NULL) == is_test);
    CHECK(!gn_tensor_requires_gradient(result));
    if (!is_test)
        CHECK_DETAIL(names[op]);
    gn_tensor_release(result);
    operands_release(operands);
}

static void test_no_rule(void)
{
    for (int op = 0; op < GN_OP_COUNT; op++)
        if (!has_rule((gn_op)op))
            no_rule_check((gn_op)op);
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    RUN(test_the_check_itself);
    RUN(test_against_differences);
    RUN(test_without_elements);
    RUN(test_halves);
    RUN(test_gradients_of_gradients);
    RUN(test_corners);
    RUN(test_numbers_beside_halves);
    RUN(test_integers_beside_doubles);
    RUN(test_no_rule);
    return check_result();
}
