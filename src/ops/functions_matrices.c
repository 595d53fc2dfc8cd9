/*
 * functions_matrices.c: diagonals of matrices, and matrices that are made of others.
 */
#include "ops/functions.h"

static gn_scalar zero(void)
{
    return (gn_scalar){.kind = GN_INT64};
}

/* ---- diagonals --------------------------------------------------------------------------------- */

static int64_t distance(int64_t number)
{
    return number < 0 ? -number : number;
}

/* Zeros, but for a diagonal, of the dimensions `first` and `second`, which has the last dimension of `x`. */
static gn_tensor *embedded(struct gni_scope *s, gn_tensor *x, int64_t offset, int first, int second)
{
    int64_t sizes[GN_DIMENSIONS_MAX + 1], length;
    int taken = 0;
    if (x->ndim == GN_DIMENSIONS_MAX || offset == INT64_MIN ||
        __builtin_add_overflow(x->sizes[x->ndim - 1], distance(offset), &length)) {
        gni_scope_fail(s, GN_ERROR_SHAPE, "a tensor of shape %s cannot be its diagonal",
                       gni_shape_text(x->ndim, x->sizes).text);
        return NULL;
    }
    for (int i = 0; i <= x->ndim; i++)
        sizes[i] = i == first || i == second ? length : x->sizes[taken++];
    gn_tensor *made = gni_full(s, zero(), x->dtype, x->ndim + 1, sizes, x->device);
    if (gni_scope_is_ok(s))
        gni_assign(s, gni_diagonal(s, made, offset, first, second), gni_of(x));
    return made;
}

static gn_status diag_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    int64_t offset = a[1].operand.scalar.integer;
    if (x->ndim == 2)
        made = gni_clone(&s, gni_diagonal(&s, x, offset, 0, 1));
    else if (x->ndim == 1)
        made = embedded(&s, x, offset, 0, 1);
    else
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a vector or a matrix, not shape %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    return gni_scope_give(&s, made, results);
}

static gn_status diag_embed_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    int dims[2];
    for (int i = 0; i < 2; i++) {
        int64_t span = x->ndim + 1, dim = a[2 + i].operand.scalar.integer;
        if (dim < -span || dim >= span)
            gni_scope_fail(&s, GN_ERROR_INDEX, "dimension %lld is out of range: %lld to %lld",
                           (long long)dim, (long long)-span, (long long)span - 1);
        dims[i] = (int)(dim < 0 ? dim + span : dim);
    }
    if (x->ndim == 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "the tensor has no dimensions");
    if (dims[0] == dims[1])
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "dimensions %lld and %lld are the same",
                       (long long)a[2].operand.scalar.integer,
                       (long long)a[3].operand.scalar.integer);
    if (gni_scope_is_ok(&s))
        made = embedded(&s, x, a[1].operand.scalar.integer, dims[0], dims[1]);
    return gni_scope_give(&s, made, results);
}

static gn_status fill_diagonal_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t stride = 0, least = INT64_MAX;
    bool is_possible = x->ndim >= 2;
    for (int i = 0; i < x->ndim; i++) {
        is_possible &= x->ndim == 2 || x->sizes[i] == x->sizes[0];
        least = x->sizes[i] < least ? x->sizes[i] : least;
        stride += x->strides[i];
    }
    if (!is_possible)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a matrix, or more dimensions of one size, not shape %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    gni_assign(&s, gni_strided(&s, x, 1, &least, &stride, x->offset), a[1].operand);
    return gni_scope_give(&s, x, results);
}

static gn_status trace_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    if (x->ndim != 2)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a matrix has 2 dimensions, not shape %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    else
        made = gni_reduce(&s, GN_REDUCE_SUM, gni_diagonal(&s, x, 0, 0, 1), 0, false);
    return gni_scope_give(&s, made, results);
}

/* ---- of several tensors ------------------------------------------------------------------------ */

static gn_status block_diag_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    int count = a[0].count;
    gn_tensor **parts = gni_scope_list(&s, count);
    int64_t sizes[2] = {0}, begin[2] = {0};
    gn_dtype dtype = GN_FLOAT32;
    if (count == 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "there must be a tensor");
    for (int i = 0; i < count && gni_scope_is_ok(&s); i++) {
        gn_tensor *one = a[0].tensors[i];
        if (one->ndim > 2)
            gni_scope_fail(&s, GN_ERROR_SHAPE, "tensors have at most 2 dimensions, not shape %s",
                           gni_shape_text(one->ndim, one->sizes).text);
        dtype = i == 0 ? one->dtype : gn_dtype_promote(dtype, one->dtype);
        parts[i] = gni_at_least(&s, one, 2);
        for (int k = 0; k < 2 && gni_scope_is_ok(&s); k++)
            sizes[k] += parts[i]->sizes[k];
    }
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(&s))
        made = gni_full(&s, zero(), dtype, 2, sizes, parts[0]->device);
    for (int i = 0; i < count && gni_scope_is_ok(&s); i++) {
        gn_tensor *rows = gni_narrow(&s, made, 0, begin[0], parts[i]->sizes[0]);
        gni_assign(&s, gni_narrow(&s, rows, 1, begin[1], parts[i]->sizes[1]), gni_of(parts[i]));
        begin[0] += parts[i]->sizes[0];
        begin[1] += parts[i]->sizes[1];
    }
    return gni_scope_give(&s, made, results);
}

static gn_status kron_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *in[] = {a[0].operand.tensor, a[1].operand.tensor}, *wide[2];
    int ndim = in[0]->ndim > in[1]->ndim ? in[0]->ndim : in[1]->ndim;
    int64_t whole[GN_DIMENSIONS_MAX];
    if (2 * ndim > GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "tensors have at most %d dimensions, not %d",
                       GN_DIMENSIONS_MAX / 2, ndim);
    for (int i = 0; i < ndim; i++)
        whole[i] = 1;
    for (int k = 0; k < 2 && gni_scope_is_ok(&s); k++) { /* each has every second dimension */
        int64_t sizes[GN_DIMENSIONS_MAX];
        int shift = ndim - in[k]->ndim;
        for (int i = 0; i < ndim; i++) {
            int64_t size = i < shift ? 1 : in[k]->sizes[i - shift];
            sizes[2 * i + k] = size;
            sizes[2 * i + 1 - k] = 1;
            if (__builtin_mul_overflow(whole[i], size, &whole[i]))
                gni_scope_fail(&s, GN_ERROR_SHAPE, "the product has more than a tensor can have");
        }
        wide[k] = gni_view(&s, in[k], 2 * ndim, sizes);
    }
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(&s))
        made = gni_binary(&s, GN_OP_MULTIPLY, gni_of(wide[0]), gni_of(wide[1]));
    return gni_scope_give(&s, gni_reshape(&s, made, ndim, whole), results);
}

/* The dimension of 3 that cross() is about: the first one where none is named. */
static int cross_dim(struct gni_scope *s, const struct gni_shape *shape, const gn_argument *dim)
{
    int64_t at = dim->operand.scalar.integer;
    if (!dim->is_given)
        for (at = 0; at < shape->ndim && shape->sizes[at] != 3;)
            at++;
    else if (at < 0)
        at += shape->ndim;
    if (at >= 0 && at < shape->ndim && shape->sizes[at] == 3)
        return (int)at;
    gni_scope_fail(s,
                   dim->is_given && (at < 0 || at >= shape->ndim) ? GN_ERROR_INDEX : GN_ERROR_SHAPE,
                   dim->is_given ? "dimension %lld of shape %s does not have 3 elements"
                                 : "no dimension has 3 elements: %lld of them, shape %s",
                   (long long)(dim->is_given ? dim->operand.scalar.integer : shape->ndim),
                   gni_shape_text(shape->ndim, shape->sizes).text);
    return 0;
}

static gn_status cross_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    struct gni_shape shapes[2], joined;
    gn_tensor *made[3] = {NULL};
    for (int k = 0; k < 2; k++) {
        shapes[k].ndim = in[k].tensor->ndim;
        for (int i = 0; i < in[k].tensor->ndim; i++)
            shapes[k].sizes[i] = in[k].tensor->sizes[i];
    }
    if (!gni_shape_broadcast(&shapes[0], &shapes[1], &joined)) {
        gni_scope_fail(&s, GN_ERROR_SHAPE, "shapes %s and %s cannot be broadcast together",
                       gni_shape_text(shapes[0].ndim, shapes[0].sizes).text,
                       gni_shape_text(shapes[1].ndim, shapes[1].sizes).text);
        return gni_scope_give(&s, NULL, results);
    }
    int dim = cross_dim(&s, &joined, &a[2]);
    gn_dtype dtype = gni_join(&s, 2, in, false);
    for (int k = 0; k < 2; k++)
        in[k].tensor = gni_expand(&s, in[k].tensor, joined.ndim, joined.sizes);
    for (int i = 0; i < 3; i++) {
        gn_tensor *parts[2][2]; /* of each operand the next element, and the one behind that */
        for (int k = 0; k < 2; k++)
            for (int n = 0; n < 2; n++)
                parts[k][n] = gni_narrow(&s, in[k].tensor, dim, (i + 1 + n) % 3, 1);
        gn_tensor *plus = gni_binary(&s, GN_OP_MULTIPLY, gni_of(parts[0][0]), gni_of(parts[1][1]));
        gn_tensor *minus = gni_binary(&s, GN_OP_MULTIPLY, gni_of(parts[0][1]), gni_of(parts[1][0]));
        made[i] = gni_binary(&s, GN_OP_SUBTRACT, gni_of(plus), gni_of(minus));
    }
    return gni_scope_give(&s, gni_cast(&s, gni_cat(&s, 3, made, dim), dtype), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

const gn_function gni_functions_matrices[] = {
    {"diag", NULL, "input: Tensor, diagonal: int = 0", GN_FORM_METHOD | GN_FORM_OUT, diag_call,
     "A matrix with a vector on a diagonal, or the diagonal of a matrix; a copy.",
     ">>> genesis.diag(genesis.tensor([1, 2]))\ntensor([[1, 0],\n        [0, 2]])"},
    {"diag_embed", NULL, "input: Tensor, offset: int = 0, dim1: dim = -2, dim2: dim = -1",
     GN_FORM_METHOD, diag_embed_call,
     "Matrices, in the dimensions `dim1` and `dim2`, with the last dimension on a diagonal.",
     ">>> genesis.diag_embed(genesis.tensor([[1, 2], [3, 4]])).tolist()\n"
     "[[[1, 0], [0, 2]], [[3, 0], [0, 4]]]"},
    {"fill_diagonal_", NULL, "input: Tensor, fill_value: number",
     GN_FORM_METHOD | GN_FORM_NO_FUNCTION, fill_diagonal_call,
     "Set the elements whose indices are all equal to one number, in place.",
     ">>> genesis.zeros(2, 3).fill_diagonal_(7)\n"
     "tensor([[7., 0., 0.],\n        [0., 7., 0.]])"},
    {"trace", NULL, "input: Tensor", GN_FORM_METHOD, trace_call,
     "The sum of the diagonal of a matrix.", ">>> genesis.trace(genesis.eye(3))\ntensor(3.)"},
    {"block_diag", NULL, "*tensors: tensors", 0, block_diag_call,
     "A matrix with matrices along its diagonal, and zeros elsewhere; vectors are rows.",
     ">>> genesis.block_diag(genesis.tensor([[1, 2]]), genesis.tensor(3))\n"
     "tensor([[1, 2, 0],\n        [0, 0, 3]])"},
    {"kron", NULL, "input: Tensor, other: Tensor", GN_FORM_METHOD | GN_FORM_OUT, kron_call,
     "The Kronecker product: `other` times each element of `input`.",
     ">>> genesis.kron(genesis.tensor([1, 10]), genesis.tensor([1, 2]))\n"
     "tensor([ 1,  2, 10, 20])"},
    {"cross", NULL, "input: Tensor, other: Tensor, dim: dim = None", GN_FORM_METHOD | GN_FORM_OUT,
     cross_call,
     "The vector product along a dimension of 3 elements: by default the first one that has 3.",
     ">>> genesis.cross(genesis.tensor([1, 0, 0]), genesis.tensor([0, 1, 0]))\n"
     "tensor([0, 0, 1])"},
    {"linalg.cross", NULL, "input: Tensor, other: Tensor, *, dim: dim = -1", GN_FORM_OUT,
     cross_call, "The vector product along a dimension of 3 elements.",
     ">>> genesis.linalg.cross(genesis.tensor([1, 0, 0]), genesis.tensor([0, 1, 0]))\n"
     "tensor([0, 0, 1])"},
    {0},
};
