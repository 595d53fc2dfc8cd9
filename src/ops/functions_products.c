/*
 * functions_products.c: products of vectors and matrices, made of views and gn_matmul().
 *
 * All but outer() take operands of one type, as gn_matmul() does.
 */
#include "base/text.h"
#include "ops/backend.h"
#include "ops/functions.h"
#include "tensor/tape.h"

#include <stdio.h>
#include <string.h>

/* Tensors of so many dimensions, whose sizes go together; batches have the same length. */
static void need(struct gni_scope *s, const gn_tensor *a, const gn_tensor *b, int a_ndim,
                 int b_ndim, bool has_inner)
{
#define FIRST gni_shape_text(a->ndim, a->sizes).text
#define SECOND gni_shape_text(b->ndim, b->sizes).text
    if (a->ndim != a_ndim || b->ndim != b_ndim) {
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "the operands must have %d and %d dimensions, not shapes %s and %s", a_ndim,
                       b_ndim, FIRST, SECOND);
        return;
    }
    int64_t last = a->sizes[a->ndim - 1], inner = b->sizes[b->ndim > 2 ? b->ndim - 2 : 0];
    if (has_inner && last != inner)
        gni_scope_fail(s, GN_ERROR_SHAPE, "shapes %s and %s: the sizes %lld and %lld must be equal",
                       FIRST, SECOND, (long long)last, (long long)inner);
    if (a->ndim == 3 && a->sizes[0] != b->sizes[0])
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "there are %lld matrices and %lld others (shapes %s and %s)",
                       (long long)a->sizes[0], (long long)b->sizes[0], FIRST, SECOND);
#undef FIRST
#undef SECOND
}

/* ---- of two tensors ---------------------------------------------------------------------------- */

/* The product, written to out= where that is given: no copy is made. */
static gn_status give_product(const gn_argument *a, int a_ndim, int b_ndim, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *y = a[1].operand.tensor, *made = results->out;
    need(&s, x, y, a_ndim, b_ndim, true);
    if (made == NULL)
        made = gni_matmul(&s, x, y);
    else if (gni_scope_is_ok(&s))
        s.status = gn_matmul_into(x, y, made);
    return gni_scope_give(&s, made, results);
}

static gn_status dot_call(const gn_argument *a, gn_results *results)
{
    return give_product(a, 1, 1, results);
}

static gn_status mv_call(const gn_argument *a, gn_results *results)
{
    return give_product(a, 2, 1, results);
}

static gn_status mm_call(const gn_argument *a, gn_results *results)
{
    return give_product(a, 2, 2, results);
}

static gn_status bmm_call(const gn_argument *a, gn_results *results)
{
    return give_product(a, 3, 3, results);
}

static gn_status outer_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = results->out;
    need(&s, a[0].operand.tensor, a[1].operand.tensor, 1, 1, false);
    gn_operand in[] = {gni_of(gni_unsqueeze(&s, a[0].operand.tensor, 1)), a[1].operand};
    if (made == NULL)
        made = gni_elementwise(&s, GN_OP_MULTIPLY, 2, in);
    else if (gni_scope_is_ok(&s))
        s.status = gn_elementwise_into(GN_OP_MULTIPLY, in, made);
    return gni_scope_give(&s, made, results);
}

/* ---- over several dimensions ------------------------------------------------------------------- */

/* Dimensions of one operand that are summed over, and those that are left. */
struct inner_dims {
    gn_tensor *tensor;
    const char *name; /* of the operand */
    int count, left_count;
    int dims[GN_DIMENSIONS_MAX];
    int left[GN_DIMENSIONS_MAX];
};

/* Takes dimensions that were named; each at most once. */
static void inner_take(struct gni_scope *s, struct inner_dims *one, int count,
                       const int64_t *integers)
{
    uint32_t seen = 0;
    int ndim = one->tensor->ndim;
    for (int i = 0; i < count && gni_scope_is_ok(s); i++) {
        int64_t dim = integers[i] < 0 ? integers[i] + ndim : integers[i];
        if (dim < 0 || dim >= ndim) {
            gni_scope_fail(s, GN_ERROR_INDEX, "dimension %lld is out of range for %s of %d",
                           (long long)integers[i], one->name, ndim);
        } else if ((seen >> dim & 1) != 0) {
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "a dimension of %s is there twice: %s",
                           one->name, gni_shape_text(count, integers).text);
        } else {
            seen |= UINT32_C(1) << dim;
            one->dims[one->count++] = (int)dim;
        }
    }
}

/* Sums over a dimension of `one` where that of the other is 1: a dimension of 1 goes with any. */
static void inner_match(struct gni_scope *s, struct inner_dims *one, int place, int64_t other_size)
{
    gn_tensor *x = one->tensor;
    int dim = one->dims[place];
    if (other_size == 1 && x->sizes[dim] != 1)
        one->tensor =
            gni_cast(s, gni_reduce(s, GN_REDUCE_SUM, x, UINT32_C(1) << dim, true), x->dtype);
}

/* The operand as a matrix: with the dimensions that are left, then those that are summed over, or the other way round. */
static gn_tensor *inner_matrix(struct gni_scope *s, struct inner_dims *one, bool is_left_first)
{
    const gn_tensor *x = one->tensor;
    int order[GN_DIMENSIONS_MAX], left = one->left_count, inner = one->count;
    int64_t sizes[2] = {1, 1};
    for (int i = 0; i < left; i++) {
        order[is_left_first ? i : inner + i] = one->left[i];
        sizes[!is_left_first] *= x->sizes[one->left[i]];
    }
    for (int i = 0; i < inner; i++) {
        order[is_left_first ? left + i : i] = one->dims[i];
        sizes[is_left_first] *= x->sizes[one->dims[i]];
    }
    return gni_reshape(s, gni_permute(s, one->tensor, order), 2, sizes);
}

static bool inner_has(const struct inner_dims *one, int dim)
{
    bool has = false;
    for (int i = 0; i < one->count; i++)
        has |= one->dims[i] == dim;
    return has;
}

/* Dimensions as text: "[0, 1]". */
static void dims_text(const struct inner_dims *one, char *text, size_t room)
{
    size_t used = 0;
    for (int i = 0; i < one->count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, i > 0 ? ", %d" : "%d", one->dims[i]);
    text[one->count > 0 ? used : 0] = '\0';
}

/* The sum of products over the dimensions that both name. */
static gn_tensor *contracted(struct gni_scope *s, struct inner_dims *a, struct inner_dims *b)
{
    int64_t sizes[2 * GN_DIMENSIONS_MAX];
    int ndim = 0;
    bool is_possible = a->count == b->count;
    for (int i = 0; i < a->count && i < b->count && gni_scope_is_ok(s); i++) {
        int64_t ours = a->tensor->sizes[a->dims[i]], theirs = b->tensor->sizes[b->dims[i]];
        inner_match(s, a, i, theirs);
        inner_match(s, b, i, ours);
        is_possible &= ours == theirs || ours == 1 || theirs == 1;
    }
    if (!gni_scope_is_ok(s))
        return NULL;
    if (!is_possible) {
        char ours[100] = "", theirs[100] = "";
        dims_text(a, ours, sizeof ours);
        dims_text(b, theirs, sizeof theirs);
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "dimensions [%s] of shape %s and [%s] of %s do not have the same sizes",
                       ours, gni_shape_text(a->tensor->ndim, a->tensor->sizes).text, theirs,
                       gni_shape_text(b->tensor->ndim, b->tensor->sizes).text);
        return NULL;
    }
    struct inner_dims *both[] = {a, b};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->tensor->ndim; i++)
            if (!inner_has(both[k], i)) {
                both[k]->left[both[k]->left_count++] = i;
                sizes[ndim++] = both[k]->tensor->sizes[i];
            }
    gn_tensor *made = gni_matmul(s, inner_matrix(s, a, true), inner_matrix(s, b, false));
    return gni_reshape(s, made, ndim, sizes);
}

static gn_status tensordot_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct inner_dims x = {.tensor = a[0].operand.tensor, .name = "input"};
    struct inner_dims y = {.tensor = a[1].operand.tensor, .name = "other"};
    int64_t count = a[2].operand.scalar.integer;
    int least = x.tensor->ndim < y.tensor->ndim ? x.tensor->ndim : y.tensor->ndim;
    bool is_count = a[2].lengths == NULL;
    if (is_count && (count < 0 || count > least))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "%lld dimensions of shapes %s and %s",
                       (long long)count, gni_shape_text(x.tensor->ndim, x.tensor->sizes).text,
                       gni_shape_text(y.tensor->ndim, y.tensor->sizes).text);
    else if (is_count) {
        for (int i = 0; i < count; i++) {
            x.dims[x.count++] = x.tensor->ndim - (int)count + i;
            y.dims[y.count++] = i;
        }
    } else if (a[2].count < 2) {
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "dims are those of both operands: a pair of lists");
    } else {
        inner_take(&s, &x, a[2].lengths[0], a[2].integers);
        inner_take(&s, &y, a[2].lengths[1], a[2].integers + a[2].lengths[0]);
    }
    gn_tensor *made = contracted(&s, &x, &y), *out = results->out;
    if (gni_scope_is_ok(&s) && out != NULL &&
        (out->dtype != made->dtype ||
         !gni_shape_is_equal(out->ndim, out->sizes, made->ndim, made->sizes)))
        gni_scope_fail(&s, GN_ERROR_SHAPE, "the result has shape %s and %s, the output %s and %s",
                       gni_shape_text(made->ndim, made->sizes).text, gn_dtype_name(made->dtype),
                       gni_shape_text(out->ndim, out->sizes).text, gn_dtype_name(out->dtype));
    return gni_scope_give(&s, made, results);
}

static gn_status inner_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct inner_dims x = {.tensor = a[0].operand.tensor, .count = 1};
    struct inner_dims y = {.tensor = a[1].operand.tensor, .count = 1};
    if (x.tensor->ndim == 0 || y.tensor->ndim == 0)
        return gni_scope_give(&s, gni_binary(&s, GN_OP_MULTIPLY, a[0].operand, a[1].operand),
                              results);
    x.dims[0] = x.tensor->ndim - 1;
    y.dims[0] = y.tensor->ndim - 1;
    return gni_scope_give(&s, contracted(&s, &x, &y), results);
}

static gn_status einsum_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = NULL;
    gn_status status = gn_einsum(a[0].text, a[1].count, a[1].tensors, &made);
    return gni_scope_give(&s, gni_scope_keep(&s, status, made), results);
}

/* ---- with a sum -------------------------------------------------------------------------------- */

/* What is added broadcasts to the product, never the other way round. */
static void check_addend(struct gni_scope *s, const gn_tensor *addend, const gn_tensor *a,
                         const gn_tensor *b)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim = a->ndim - 1;
    if (!gni_scope_is_ok(s))
        return;
    for (int i = 0; i < ndim; i++)
        sizes[i] = a->sizes[i];
    if (b->ndim > 1)
        sizes[ndim++] = b->sizes[b->ndim - 1];
    bool is_possible = addend->ndim <= ndim;
    for (int i = 0; is_possible && i < addend->ndim; i++) {
        int64_t size = addend->sizes[i];
        is_possible = size == 1 || size == sizes[ndim - addend->ndim + i];
    }
    if (!is_possible)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "a tensor of shape %s cannot be broadcast to %s, the shape of the product "
                       "of %s and %s",
                       gni_shape_text(addend->ndim, addend->sizes).text,
                       gni_shape_text(ndim, sizes).text, gni_shape_text(a->ndim, a->sizes).text,
                       gni_shape_text(b->ndim, b->sizes).text);
}

static gn_tensor *scaled(struct gni_scope *s, gn_tensor *x, gn_operand factor)
{
    return gni_scalar_double(factor.scalar) == 1 ? x
                                                 : gni_binary(s, GN_OP_MULTIPLY, gni_of(x), factor);
}

/*
 * beta * input + alpha * (a @ b). On the CPU halves are rounded once, at the end. A GPU multiplies halves several times
 * faster than float32, and rounds their product, too: hence the question for the device.
 */
static gn_tensor *added(struct gni_scope *s, gn_tensor *input, gn_tensor *a, gn_tensor *b,
                        gn_operand beta, gn_operand alpha)
{
    bool has_input = gni_scalar_double(beta.scalar) != 0;
    bool is_widened = gni_scope_is_ok(s) && a->dtype == b->dtype &&
                      !gni_backend_get(a->device)->has_half_products;
    gn_dtype dtype = has_input ? input->dtype : a->dtype;
    if (is_widened) {
        a = gni_wide(s, a);
        b = gni_wide(s, b);
        input = gni_wide(s, input);
    }
    gn_tensor *made = scaled(s, gni_matmul(s, a, b), alpha);
    if (has_input)
        made = gni_binary(s, GN_OP_ADD, gni_of(scaled(s, input, beta)), gni_of(made));
    else if (gni_is_taped(input)) /* it has a gradient, which is 0 */
        made = gni_binary(s, GN_OP_MULTIPLY, gni_of(made), gni_of(gni_one_of(s, input)));
    return is_widened && gni_dtype_is_half(dtype) ? gni_cast(s, made, dtype) : made;
}

static gn_status give_added(const gn_argument *a, int a_ndim, int b_ndim, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *x = a[1].operand.tensor, *y = a[2].operand.tensor;
    need(&s, x, y, a_ndim, b_ndim, true);
    check_addend(&s, input, x, y);
    bool has_factors =
        gni_scalar_double(a[3].operand.scalar) != 1 || gni_scalar_double(a[4].operand.scalar) != 1;
    bool is_rounded_once =
        gni_dtype_is_half(x->dtype) && !gni_backend_get(x->device)->has_half_products;
    gn_tensor *made = NULL;
    if (a_ndim == 2 && b_ndim == 2 && !has_factors && !is_rounded_once && gni_scope_is_ok(&s)) {
        gn_status status = gn_matmul_add(x, y, input, &made);
        made = gni_scope_keep(&s, status, made);
    } else {
        made = added(&s, input, x, y, a[3].operand, a[4].operand);
    }
    return gni_scope_give(&s, made, results);
}

static gn_status addmm_call(const gn_argument *a, gn_results *results)
{
    return give_added(a, 2, 2, results);
}

static gn_status addmv_call(const gn_argument *a, gn_results *results)
{
    return give_added(a, 2, 1, results);
}

static gn_status baddbmm_call(const gn_argument *a, gn_results *results)
{
    return give_added(a, 3, 3, results);
}

/* ---- how exact they are ------------------------------------------------------------------------ */

static gn_status set_precision_call(const gn_argument *a, gn_results *results)
{
    const char *word = a[0].text;
    (void)results;
    bool is_highest = strcmp(word, "highest") == 0;
    if (!is_highest && strcmp(word, "high") != 0 && strcmp(word, "medium") != 0)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "precision is 'highest', 'high' or 'medium', not '%s'", word);
    gn_set_allow_tf32(!is_highest);
    return GN_OK;
}

static gn_status get_precision_call(const gn_argument *a, gn_results *results)
{
    (void)a;
    results->text = gn_get_allow_tf32() ? "high" : "highest";
    return GN_OK;
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    PRODUCT = GN_FORM_METHOD | GN_FORM_OUT | GN_FORM_BLAS,
    SUM = PRODUCT | GN_FORM_IN_PLACE,
};

const gn_function gni_functions_products[] = {
    {"dot", NULL, "input: Tensor, tensor: Tensor", PRODUCT, dot_call,
     "The sum of the products of two vectors.",
     ">>> genesis.dot(genesis.tensor([1, 2]), genesis.tensor([3, 4]))\ntensor(11)"},
    {"vdot", NULL, "input: Tensor, other: Tensor", PRODUCT, dot_call,
     "The sum of the products of two vectors: dot(), since there are no complex numbers.",
     ">>> genesis.vdot(genesis.tensor([1, 2]), genesis.tensor([3, 4]))\ntensor(11)"},
    {"mv", NULL, "input: Tensor, vec: Tensor", PRODUCT, mv_call, "A matrix times a vector.",
     ">>> genesis.mv(genesis.tensor([[1, 2], [3, 4]]), genesis.tensor([1, 1]))\ntensor([3, 7])"},
    {"mm", NULL, "input: Tensor, mat2: Tensor", PRODUCT, mm_call, "A matrix times a matrix.",
     ">>> genesis.mm(genesis.eye(2), genesis.ones(2, 2))\n"
     "tensor([[1., 1.],\n        [1., 1.]])"},
    {"bmm", NULL, "input: Tensor, mat2: Tensor", PRODUCT, bmm_call,
     "As many matrices times as many others, without broadcasting.",
     ">>> genesis.bmm(genesis.ones(5, 2, 3), genesis.ones(5, 3, 4)).shape\n(5, 2, 4)"},
    {"outer", NULL, "input: Tensor, vec2: Tensor", GN_FORM_METHOD | GN_FORM_OUT, outer_call,
     "The products of each element of a vector with each of another.",
     ">>> genesis.outer(genesis.tensor([1, 2]), genesis.tensor([3, 4]))\n"
     "tensor([[3, 4],\n        [6, 8]])"},
    {"tensordot", NULL, "input: Tensor, other: Tensor, dims: shapes = 2", PRODUCT, tensordot_call,
     "The sum of products over several dimensions at once.\n\n"
     "`dims` says how many of the last dimensions of `input` go with the first of `other`; or "
     "which "
     "ones of `input`, and which of `other`, in the same order. The result has the dimensions of "
     "`input` that are left, and then those of `other`.",
     ">>> genesis.tensordot(genesis.ones(2, 3, 4), genesis.ones(4, 3), ([1, 2], [1, 0]))\n"
     "tensor([12., 12.])"},
    {"inner", NULL, "input: Tensor, other: Tensor", PRODUCT, inner_call,
     "The sum of products over the last dimensions.",
     ">>> genesis.inner(genesis.tensor([1, 2]), genesis.tensor([3, 4]))\ntensor(11)"},
    {"einsum", NULL, "equation: text, *operands: tensors", GN_FORM_BLAS, einsum_call,
     "Sums of products by the letters of dimensions, as ``\"ij,jk->ik\"`` for a matrix product.\n\n"
     "Letters that the result has not are summed over; without ``->`` it has, in the alphabet's "
     "order, those that occur once. ``...`` stands for dimensions that broadcast.",
     ">>> genesis.einsum(\"ij,j->i\", genesis.eye(2), genesis.tensor([3.0, 4.0]))\n"
     "tensor([3., 4.])"},
    {"addmm", NULL,
     "input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: number = 1, alpha: number = 1", SUM,
     addmm_call,
     "``beta * input + alpha * (mat1 @ mat2)``.\n\n"
     "Without factors, and with a row or a matrix as ``input``, this is one call of cuBLASLt on a "
     "GPU; half precision is rounded once, then.",
     ">>> genesis.addmm(genesis.ones(2), genesis.eye(2), genesis.eye(2), alpha=3)\n"
     "tensor([[4., 1.],\n        [1., 4.]])"},
    {"addmv", NULL,
     "input: Tensor, mat: Tensor, vec: Tensor, *, beta: number = 1, alpha: number = 1", SUM,
     addmv_call, "``beta * input + alpha * (mat @ vec)``.",
     ">>> genesis.addmv(genesis.ones(2), genesis.eye(2), genesis.ones(2))\ntensor([2., 2.])"},
    {"baddbmm", NULL,
     "input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: number = 1, alpha: number = 1", SUM,
     baddbmm_call, "``beta * input + alpha * (batch1 @ batch2)``, of as many matrices.",
     ">>> genesis.baddbmm(genesis.ones(1), genesis.ones(5, 2, 3), genesis.ones(5, 3, 4)).shape\n"
     "(5, 2, 4)"},
    {"set_float32_matmul_precision", NULL, "precision: text -> None", 0, set_precision_call,
     "Choose how exact matrix products of float32 on a GPU are.\n\n"
     "``\"highest\"``, as at first: operands are taken as they are. ``\"high\"`` or "
     "``\"medium\"``: they may be rounded to TF32, of which 10 bits behind the point are kept, and "
     "products are several times faster. Sums are float32 in any case, and so are products on the "
     "CPU.",
     ">>> genesis.set_float32_matmul_precision(\"high\")\n"
     ">>> genesis.get_float32_matmul_precision()\n'high'\n"
     ">>> genesis.set_float32_matmul_precision(\"highest\")"},
    {"get_float32_matmul_precision", NULL, "-> text", 0, get_precision_call,
     "How exact matrix products of float32 on a GPU are: ``\"highest\"`` or ``\"high\"``.",
     ">>> genesis.get_float32_matmul_precision()\n'highest'"},
    {0},
};
