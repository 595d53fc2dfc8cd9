/*
 * functions_create.c: tensors made of numbers, or like another one; triangles; comparisons of whole tensors.
 */
#include "ops/functions.h"
#include "ops/memory_format.h"

#include <math.h>

/* ---- numbers at equal distances ---------------------------------------------------------------- */

/* The ends of linspace() and logspace(). For integers both are cut off, and not only what lies between. */
static void ends_take(const gn_argument *a, const gn_argument *dtype, double ends[2])
{
    for (int i = 0; i < 2; i++) {
        ends[i] = gni_scalar_double(a[i].operand.scalar);
        if (dtype->is_given && !gni_dtype_is_floating(dtype->dtype))
            ends[i] = trunc(ends[i]);
    }
}

/* Numbers between two ends, in float64. Each half is counted from its own end, which is met exactly. */
gn_tensor *gni_spaced(struct gni_scope *s, const double ends[2], int64_t steps, gn_device *device)
{
    if (steps < 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "the number of steps must not be negative");
    double step = steps > 1 ? (ends[1] - ends[0]) / (double)(steps - 1) : 0;
    gn_tensor *at = gni_cast(s, gni_arange(s, steps, device), GN_FLOAT64);
    gn_tensor *up = gni_binary(s, GN_OP_MULTIPLY, gni_of(at), gni_floating(step));
    gn_tensor *left = gni_binary(s, GN_OP_SUBTRACT, gni_floating((double)(steps - 1)), gni_of(at));
    gn_tensor *down = gni_binary(s, GN_OP_MULTIPLY, gni_of(left), gni_floating(step));
    up = gni_binary(s, GN_OP_ADD, gni_of(up), gni_floating(ends[0]));
    down = gni_binary(s, GN_OP_SUBTRACT, gni_floating(ends[1]), gni_of(down));
    gn_tensor *is_early = gni_binary(s, GN_OP_LESS, gni_of(at), gni_floating((double)steps / 2));
    return gni_where(s, is_early, gni_of(up), gni_of(down));
}

static gn_status linspace_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    double ends[2];
    ends_take(a, &a[3], ends);
    gn_tensor *made = gni_spaced(&s, ends, a[2].operand.scalar.integer, a[4].device);
    return gni_scope_give(&s, gni_cast(&s, made, gni_dtype_of_new(&a[3])), results);
}

static gn_status logspace_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    double ends[2];
    ends_take(a, &a[4], ends);
    gn_tensor *exponents = gni_spaced(&s, ends, a[2].operand.scalar.integer, a[5].device);
    gn_operand base = gni_floating(gni_scalar_double(a[3].operand.scalar));
    gn_tensor *made = gni_binary(&s, GN_OP_POWER, base, gni_of(exponents));
    return gni_scope_give(&s, gni_cast(&s, made, gni_dtype_of_new(&a[4])), results);
}

/* ---- matrices ---------------------------------------------------------------------------------- */

static gn_status eye_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    int64_t n = a[0].operand.scalar.integer, m = a[1].is_given ? a[1].operand.scalar.integer : n;
    gn_scalar zero = {.kind = GN_INT64};
    if (n < 0 || m < 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "%lld rows and %lld columns: neither is negative", (long long)n,
                       (long long)m);
    gn_tensor *made =
        gni_full(&s, zero, gni_dtype_of_new(&a[2]), 2, (const int64_t[]){n, m}, a[3].device);
    int64_t count = n < m ? n : m;
    gn_tensor *diagonal = gni_strided(&s, made, 1, &count, &(const int64_t){m + 1}, 0);
    if (gni_scope_is_ok(&s))
        gni_assign(&s, diagonal, gni_integer(1));
    return gni_scope_give(&s, made, results);
}

/* The elements whose column less their row fulfils `op` with the diagonal, zeros elsewhere. */
static gn_status triangle_call(const gn_argument *a, gn_op op, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t diagonal = a[1].operand.scalar.integer;
    const int64_t far = INT64_C(1) << 62; /* beyond every matrix, and no difference wraps */
    diagonal = diagonal > far ? far : diagonal < -far ? -far : diagonal;
    if (x->ndim < 2) {
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a matrix has at least 2 dimensions, not %d", x->ndim);
        return gni_scope_give(&s, NULL, results);
    }
    gn_tensor *rows = gni_arange(&s, x->sizes[x->ndim - 2], x->device);
    gn_tensor *columns = gni_arange(&s, x->sizes[x->ndim - 1], x->device);
    gn_tensor *apart =
        gni_binary(&s, GN_OP_SUBTRACT, gni_of(columns), gni_of(gni_unsqueeze(&s, rows, 1)));
    gn_tensor *is_kept = gni_binary(&s, op, gni_of(apart), gni_integer(diagonal));
    gn_operand zero = {.scalar = {.kind = x->dtype == GN_BOOL ? GN_BOOL : GN_INT64}};
    return gni_scope_give(&s, gni_where(&s, is_kept, a[0].operand, zero), results);
}

static gn_status tril_call(const gn_argument *a, gn_results *results)
{
    return triangle_call(a, GN_OP_LESS_EQUAL, results);
}

static gn_status triu_call(const gn_argument *a, gn_results *results)
{
    return triangle_call(a, GN_OP_GREATER_EQUAL, results);
}

static gn_status one_hot_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t classes = a[1].operand.scalar.integer;
    if (gni_dtype_is_floating(x->dtype))
        gni_scope_fail(&s, GN_ERROR_TYPE, "classes are integers, not %s",
                       gni_dtypes[x->dtype].name);
    if (classes < -1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "num_classes is positive, or -1 for the largest + 1: %lld",
                       (long long)classes);
    if (x->count > 0) {
        int64_t least = gni_item(&s, gni_reduce(&s, GN_REDUCE_MINIMUM, x, 0, false)).integer;
        int64_t most = gni_item(&s, gni_reduce(&s, GN_REDUCE_MAXIMUM, x, 0, false)).integer;
        if (gni_scope_is_ok(&s) && least < 0)
            gni_scope_fail(&s, GN_ERROR_INDEX,
                           "a class is not negative, and %lld is one of the elements",
                           (long long)least);
        if (gni_scope_is_ok(&s) && classes >= 0 && most >= classes)
            gni_scope_fail(&s, GN_ERROR_INDEX,
                           "%lld is one of the elements, and num_classes is %lld", (long long)most,
                           (long long)classes);
        classes = classes < 0 ? most + 1 : classes;
    } else if (classes < 0) {
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "without elements the number of classes must be given");
    }
    gn_tensor *wide = gni_unsqueeze(&s, gni_cast(&s, x, GN_INT64), x->ndim);
    gn_tensor *is_there =
        gni_binary(&s, GN_OP_EQUAL, gni_of(wide), gni_of(gni_arange(&s, classes, x->device)));
    return gni_scope_give(&s, gni_cast(&s, is_there, GN_INT64), results);
}

/* ---- like another tensor ----------------------------------------------------------------------- */

/* A tensor of the shape of `x`, whose elements are not set. Behind the device stands the format. */
static gn_tensor *made_like(struct gni_scope *s, const gn_tensor *x, const gn_argument *dtype,
                            const gn_argument *device)
{
    return gni_empty_format(s, dtype->is_given ? dtype->dtype : x->dtype, x,
                            device->is_given ? device->device : x->device, device + 1);
}

static gn_status empty_like_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, made_like(&s, a[0].operand.tensor, &a[1], &a[2]), results);
}

static gn_status filled_like(const gn_argument *a, gn_operand value, const gn_argument *dtype,
                             gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = made_like(&s, a[0].operand.tensor, dtype, dtype + 1);
    gni_assign(&s, made, value);
    return gni_scope_give(&s, made, results);
}

static gn_status zeros_like_call(const gn_argument *a, gn_results *results)
{
    return filled_like(a, gni_integer(0), &a[1], results);
}

static gn_status ones_like_call(const gn_argument *a, gn_results *results)
{
    return filled_like(a, gni_integer(1), &a[1], results);
}

static gn_status full_like_call(const gn_argument *a, gn_results *results)
{
    return filled_like(a, a[1].operand, &a[2], results);
}

/* ---- comparisons ------------------------------------------------------------------------------- */

/* The arguments of isclose(): input, other, rtol, atol, equal_nan. */
static gn_tensor *is_close(struct gni_scope *s, const gn_argument *a)
{
    gn_operand in[] = {a[0].operand, a[1].operand};
    double rtol = gni_scalar_double(a[2].operand.scalar);
    double atol = gni_scalar_double(a[3].operand.scalar);
    bool is_nan_equal = gni_is_set(&a[4]);
    if (!(rtol >= 0 && atol >= 0))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "tolerances are not negative: rtol=%g, atol=%g",
                       rtol, atol);
    gn_tensor *made = gni_binary(s, GN_OP_EQUAL, in[0], in[1]);
    if (rtol == 0 && atol == 0 && !is_nan_equal)
        return made;
    if (in[1].tensor == NULL) { /* as a tensor, so that the steps below have one */
        gn_dtype kind = in[1].scalar.kind == GN_FLOAT64 ? GN_FLOAT64 : GN_INT64;
        in[1] = gni_of(gni_full(s, in[1].scalar, kind, 0, NULL, in[0].tensor->device));
    }
    gn_dtype dtype = gni_join(s, 2, in, false);
    for (int i = 0; i < 2 && !gni_dtype_is_floating(dtype); i++)
        in[i] = gni_of(gni_cast(s, in[i].tensor, GN_FLOAT64));
    gn_tensor *apart = gni_unary(s, GN_OP_ABSOLUTE, gni_binary(s, GN_OP_SUBTRACT, in[0], in[1]));
    gn_tensor *size = gni_unary(s, GN_OP_ABSOLUTE, in[1].tensor);
    gn_tensor *most =
        gni_binary(s, GN_OP_ADD, gni_floating(atol),
                   gni_of(gni_binary(s, GN_OP_MULTIPLY, gni_floating(rtol), gni_of(size))));
    gn_tensor *is_near = gni_binary(s, GN_OP_LESS_EQUAL, gni_of(apart), gni_of(most));
    gn_tensor *is_finite = gni_unary(s, GN_OP_ISFINITE, in[1].tensor);
    is_near = gni_binary(s, GN_OP_BITWISE_AND, gni_of(is_near), gni_of(is_finite));
    made = gni_binary(s, GN_OP_BITWISE_OR, gni_of(made), gni_of(is_near));
    if (!is_nan_equal)
        return made;
    gn_tensor *is_nan =
        gni_binary(s, GN_OP_BITWISE_AND, gni_of(gni_unary(s, GN_OP_ISNAN, in[0].tensor)),
                   gni_of(gni_unary(s, GN_OP_ISNAN, in[1].tensor)));
    return gni_binary(s, GN_OP_BITWISE_OR, gni_of(made), gni_of(is_nan));
}

static gn_status isclose_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, is_close(&s, a), results);
}

static gn_status allclose_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *all = gni_reduce(&s, GN_REDUCE_ALL, is_close(&s, a), 0, false);
    return gni_scope_give_number(&s, gni_item(&s, all), results);
}

static gn_status equal_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_tensor *x = a[0].operand.tensor, *y = a[1].operand.tensor;
    bool is_same = x->ndim == y->ndim;
    for (int i = 0; is_same && i < x->ndim; i++)
        is_same = x->sizes[i] == y->sizes[i];
    if (!is_same)
        return gni_scope_give_number(&s, (gn_scalar){.kind = GN_BOOL}, results);
    gn_tensor *is_equal = gni_binary(&s, GN_OP_EQUAL, a[0].operand, a[1].operand);
    gn_tensor *all = gni_reduce(&s, GN_REDUCE_ALL, is_equal, 0, false);
    return gni_scope_give_number(&s, gni_item(&s, all), results);
}

static gn_status where_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_operand in[] = {a[1].operand, a[0].operand, a[2].operand};
    return gni_scope_give(&s, gni_elementwise(&s, GN_OP_WHERE, 3, in), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    TRIANGLE = GN_FORM_METHOD | GN_FORM_IN_PLACE | GN_FORM_OUT,
};

const gn_function gni_functions_create[] = {
    {"linspace", NULL,
     "start: number, end: number, steps: int, *, dtype: dtype = None, device: device = None", 0,
     linspace_call, "Numbers from `start` to `end`, both among them, at equal distances.",
     ">>> genesis.linspace(0, 1, 3)\ntensor([0.0000, 0.5000, 1.0000])"},
    {"logspace", NULL,
     "start: number, end: number, steps: int, base: number = 10.0, *, dtype: dtype = None, "
     "device: device = None",
     0, logspace_call,
     "Powers of `base` whose exponents go from `start` to `end` at equal distances.",
     ">>> genesis.logspace(0, 2, 3)\ntensor([  1.,  10., 100.])"},
    {"eye", NULL, "n: int, m: int = None, *, dtype: dtype = None, device: device = None", 0,
     eye_call, "Ones where row and column are equal, zeros elsewhere.",
     ">>> genesis.eye(2)\ntensor([[1., 0.],\n        [0., 1.]])"},
    {"tril", NULL, "input: Tensor, diagonal: int = 0", TRIANGLE, tril_call,
     "The elements on and below a diagonal, zeros elsewhere.",
     ">>> genesis.tril(genesis.ones(2, 2))\ntensor([[1., 0.],\n        [1., 1.]])"},
    {"triu", NULL, "input: Tensor, diagonal: int = 0", TRIANGLE, triu_call,
     "The elements on and above a diagonal, zeros elsewhere.",
     ">>> genesis.triu(genesis.ones(2, 2))\ntensor([[1., 1.],\n        [0., 1.]])"},
    {"one_hot", NULL, "input: Tensor, num_classes: int = -1", 0, one_hot_call,
     "A 1 at the place that each element names, zeros elsewhere, along a new last dimension.",
     ">>> genesis.one_hot(genesis.tensor([1, 0]))\ntensor([[0, 1],\n        [1, 0]])"},
    {"empty_like", NULL,
     "input: Tensor, dtype: dtype = None, device: device = None, *, memory_format: text = None", 0,
     empty_like_call, "A tensor of the same shape, whose elements are not set.",
     ">>> genesis.empty_like(genesis.zeros(2, 3)).shape\n(2, 3)"},
    {"zeros_like", NULL,
     "input: Tensor, dtype: dtype = None, device: device = None, *, memory_format: text = None", 0,
     zeros_like_call, "A tensor of the same shape, of zeros.",
     ">>> genesis.zeros_like(genesis.tensor([1, 2]))\ntensor([0, 0])"},
    {"ones_like", NULL,
     "input: Tensor, dtype: dtype = None, device: device = None, *, memory_format: text = None", 0,
     ones_like_call, "A tensor of the same shape, of ones.",
     ">>> genesis.ones_like(genesis.tensor([3.0]))\ntensor([1.])"},
    {"full_like", NULL,
     "input: Tensor, fill_value: operand, dtype: dtype = None, device: device = None, *, "
     "memory_format: text = None",
     0, full_like_call, "A tensor of the same shape, of one number.",
     ">>> genesis.full_like(genesis.tensor([1, 2]), 5)\ntensor([5, 5])"},
    {"isclose", NULL,
     "input: Tensor, other: elements, rtol: number = 1e-5, atol: number = 1e-8, "
     "equal_nan: bool = False",
     GN_FORM_METHOD | GN_FORM_OUT, isclose_call,
     "Whether elements differ by no more than `atol` and `rtol` of the second.",
     ">>> genesis.isclose(genesis.tensor([1.0, 2.0]), genesis.tensor([1.0, 2.1]))\n"
     "tensor([ True, False])"},
    {"allclose", NULL,
     "input: Tensor, other: elements, rtol: number = 1e-5, atol: number = 1e-8, "
     "equal_nan: bool = False -> bool",
     GN_FORM_METHOD, allclose_call, "Whether all elements are close.",
     ">>> genesis.allclose(genesis.tensor([1.0]), genesis.tensor([1.0 + 1e-7]))\nTrue"},
    {"equal", NULL, "input: Tensor, other: Tensor -> bool", GN_FORM_METHOD, equal_call,
     "Whether two tensors have the same shape and the same elements.",
     ">>> genesis.equal(genesis.ones(2), genesis.ones(2))\nTrue"},
    {"where", NULL, "input: Tensor, condition: operand, other: operand",
     GN_FORM_METHOD | GN_FORM_NO_FUNCTION, where_call,
     "Its elements where a condition is true, those of the other elsewhere.",
     ">>> x = genesis.tensor([-1, 2])\n>>> x.where(x > 0, 0)\ntensor([0, 2])"},
    {0},
};
