/*
 * test_gradients.c: the graph, its walk, and the rules of operations that are not elementwise, on the CPU in float64.
 *
 * Rules are compared with central differences. Gradients of gradients are: the gradient is the function then.
 */
#include "check.h"

#include "base/host.h"
#include "genesis/genesis.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum {
    INPUTS_MOST = 4,
    ELEMENTS_MOST = 512,
};

static gn_device *device;

static void ok(gn_status status)
{
    CHECK_U64(status, GN_OK);
    if (status != GN_OK)
        fprintf(stderr, "    %s\n", gn_error_detail());
}

static bool says(const char *words)
{
    bool found = strstr(gn_error_detail(), words) != NULL;
    if (!found)
        fprintf(stderr, "    \"%s\"\n", gn_error_detail());
    return found;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static double *data_of(gn_tensor *tensor)
{
    void *data = NULL;
    ok(gn_tensor_get_data(tensor, &data));
    return data;
}

/* Numbers between 0.3 and 1.7 in an order that does not repeat. */
static gn_tensor *numbers(int ndim, const int64_t *sizes, unsigned seed)
{
    gn_tensor *made = NULL;
    ok(gn_tensor_create(GN_FLOAT64, ndim, sizes, device, &made));
    double *data = data_of(made);
    for (int64_t i = 0; i < gn_tensor_get_count(made); i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = 0.3 + 1.4 * (seed >> 8) / (double)(1 << 24);
    }
    return made;
}

static gn_tensor *leaf(int ndim, const int64_t *sizes, unsigned seed)
{
    gn_tensor *made = numbers(ndim, sizes, seed);
    ok(gn_tensor_set_requires_gradient(made, true));
    return made;
}

static gn_tensor *binary(gn_op op, gn_tensor *a, gn_tensor *b)
{
    gn_tensor *made = NULL;
    const gn_operand both[] = {{.tensor = a}, {.tensor = b}};
    ok(gn_elementwise(op, both, &made));
    return made;
}

static gn_tensor *unary(gn_op op, gn_tensor *x)
{
    gn_tensor *made = NULL;
    ok(gn_elementwise(op, &(gn_operand){.tensor = x}, &made));
    return made;
}

static gn_tensor *sum(gn_tensor *x)
{
    gn_tensor *made = NULL;
    ok(gn_reduce(GN_REDUCE_SUM, x, 0, false, &made));
    return made;
}

/* The element of a tensor that has one; takes over the reference. */
static double item(gn_tensor *x)
{
    const int64_t none = 0;
    gn_scalar number = {0};
    ok(gn_tensor_get_item(x, &none, &number));
    gn_tensor_release(x);
    return number.floating;
}

/* The elements of a tensor, contiguous. */
static void elements(gn_tensor *x, double *to)
{
    gn_tensor *copy = NULL;
    bool was_on = gn_set_gradients(false);
    ok(gn_cast(x, GN_FLOAT64, &copy));
    memcpy(to, data_of(copy), sizeof *to * (size_t)gn_tensor_get_count(x));
    (void)gn_set_gradients(was_on);
    gn_tensor_release(copy);
}

/* ---- central differences --------------------------------------------------------------------- */

typedef gn_tensor *(*function)(gn_tensor *const *inputs);

/* sum(f(inputs) * weights), which makes every element of the result count. */
static gn_tensor *weighted(function f, gn_tensor *const *inputs)
{
    gn_tensor *y = f(inputs), *weights, *product, *made;
    weights = numbers(gn_tensor_get_dimensions(y), gn_tensor_get_shape(y), 77);
    product = binary(GN_OP_MULTIPLY, y, weights);
    made = sum(product);
    gn_tensor_release(y);
    gn_tensor_release(weights);
    gn_tensor_release(product);
    return made;
}

/* The number of elements whose gradient is not what differences give. */
static int mistakes(function f, int count, gn_tensor *const *inputs)
{
    int wrong = 0;
    gn_tensor *root = weighted(f, inputs), *gradients[INPUTS_MOST] = {NULL};
    ok(gn_grad(1, &root, NULL, count, inputs, 0, gradients));
    gn_tensor_release(root);
    for (int i = 0; i < count; i++) {
        double own[ELEMENTS_MOST], *data = data_of(inputs[i]);
        if (gradients[i] == NULL)
            return 1;
        elements(gradients[i], own);
        gn_tensor_release(gradients[i]);
        for (int64_t k = 0; k < gn_tensor_get_count(inputs[i]); k++) {
            const double step = 1e-5, before = data[k];
            bool was_on = gn_set_gradients(false);
            data[k] = before + step;
            double above = item(weighted(f, inputs));
            data[k] = before - step;
            double below = item(weighted(f, inputs));
            data[k] = before;
            (void)gn_set_gradients(was_on);
            double expected = (above - below) / (2 * step);
            wrong += !(fabs(own[k] - expected) <= 1e-7 * (1 + fabs(expected)));
        }
    }
    return wrong;
}

static void release_all(int count, gn_tensor **tensors)
{
    for (int i = 0; i < count; i++)
        gn_tensor_release(tensors[i]);
}

/* The function whose gradient is differentiated: of one input, and the gradient with respect to it. */
static function once;

static gn_tensor *gradient_of_once(gn_tensor *const *inputs)
{
    gn_tensor *root = weighted(once, inputs), *made = NULL;
    bool is_on = gn_gradients_are_on();
    (void)gn_set_gradients(true);
    if (!is_on) { /* differences: the graph of the function is needed all the same */
        gn_tensor_release(root);
        root = weighted(once, inputs);
    }
    ok(gn_grad(1, &root, NULL, 1, inputs, is_on ? GN_CREATE_GRAPH : 0, &made));
    (void)gn_set_gradients(is_on);
    gn_tensor_release(root);
    return made;
}

static void check_rule(function f, int count, gn_tensor **inputs)
{
    CHECK_U64(mistakes(f, count, inputs), 0);
    release_all(count, inputs);
}

static void check_twice(function f, gn_tensor *x)
{
    once = f;
    CHECK_U64(mistakes(f, 1, &x), 0);
    CHECK_U64(mistakes(gradient_of_once, 1, &x), 0);
    gn_tensor_release(x);
}

/* ---- rules ----------------------------------------------------------------------------------- */

#define SIZES(...)                                                        \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]) \
    {                                                                     \
        __VA_ARGS__                                                       \
    }

/* A function of x that is not linear, so that the second gradient is not 0; takes the reference. */
static gn_tensor *squared(gn_tensor *x)
{
    gn_tensor *made = unary(GN_OP_SQUARE, x);
    gn_tensor_release(x);
    return made;
}

#define SHAPE_FUNCTION(name, call)                   \
    static gn_tensor *name(gn_tensor *const *inputs) \
    {                                                \
        gn_tensor *x = inputs[0], *made = NULL;      \
        ok(call);                                    \
        return squared(made);                        \
    }

SHAPE_FUNCTION(viewed, gn_tensor_view(x, 2, (int64_t[]){4, 3}, &made))
SHAPE_FUNCTION(reshaped, gn_tensor_reshape(x, 1, (int64_t[]){-1}, &made))
SHAPE_FUNCTION(permuted, gn_tensor_permute(x, (int[]){-1, 0}, &made))
SHAPE_FUNCTION(expanded, gn_tensor_expand(x, 3, (int64_t[]){2, 3, 4}, &made))
SHAPE_FUNCTION(sliced, gn_tensor_slice(x, -1, 3, -2, 2, &made))
SHAPE_FUNCTION(selected, gn_tensor_select(x, 0, -1, &made))
SHAPE_FUNCTION(unsqueezed, gn_tensor_unsqueeze(x, 1, &made))
SHAPE_FUNCTION(squeezed, gn_tensor_squeeze(x, 1, &made))
SHAPE_FUNCTION(flipped, gn_flip(x, 2, &made))
SHAPE_FUNCTION(moved, gn_tensor_to(x, device, &made))
SHAPE_FUNCTION(copied, gn_cast(x, GN_FLOAT64, &made))
SHAPE_FUNCTION(summed, gn_reduce(GN_REDUCE_SUM, x, 1, false, &made))
SHAPE_FUNCTION(summed_kept, gn_reduce(GN_REDUCE_SUM, x, 2, true, &made))
SHAPE_FUNCTION(summed_all, gn_reduce(GN_REDUCE_SUM, x, 0, false, &made))
SHAPE_FUNCTION(averaged, gn_reduce(GN_REDUCE_MEAN, x, 2, false, &made))
SHAPE_FUNCTION(multiplied, gn_reduce(GN_REDUCE_PRODUCT, x, 2, false, &made))
SHAPE_FUNCTION(largest, gn_reduce(GN_REDUCE_MAXIMUM, x, 1, false, &made))
SHAPE_FUNCTION(smallest, gn_reduce(GN_REDUCE_MINIMUM, x, 0, false, &made))
SHAPE_FUNCTION(softmax, gn_softmax(x, -1, false, &made))
SHAPE_FUNCTION(log_softmax, gn_softmax(x, 0, true, &made))

SHAPE_FUNCTION(strided, gn_tensor_as_strided(x, 2, (int64_t[]){3, 2}, (int64_t[]){4, 1}, 1, &made))
SHAPE_FUNCTION(windows, gn_tensor_as_strided(x, 2, (int64_t[]){4, 3}, (int64_t[]){2, 1}, 0, &made))
SHAPE_FUNCTION(repeated, gn_tensor_as_strided(x, 2, (int64_t[]){3, 4}, (int64_t[]){0, 1}, 2, &made))
SHAPE_FUNCTION(interleaved, gn_repeat_interleave(x, -2, 3, &made))
SHAPE_FUNCTION(cumulated, gn_cumulate(x, 1, false, &made))
SHAPE_FUNCTION(products_so_far, gn_cumulate(x, 1, true, &made))
SHAPE_FUNCTION(keyed,
               gn_index_get(x, 2,
                            (gn_key[]){{.kind = GN_KEY_NEW_AXIS},
                                       {.kind = GN_KEY_SLICE, .start = 0, .stop = 3, .step = 2}},
                            &made))

/* A view of a view that is not contiguous. */
static gn_tensor *turned_and_sliced(gn_tensor *const *inputs)
{
    gn_tensor *turned = NULL, *made = NULL;
    ok(gn_tensor_permute(inputs[0], (int[]){1, 0}, &turned));
    ok(gn_tensor_slice(turned, 0, 1, 2, 2, &made));
    gn_tensor_release(turned);
    return squared(made);
}

static void test_shapes(void)
{
    check_twice(viewed, leaf(SIZES(3, 4), 1));
    check_twice(reshaped, leaf(SIZES(3, 4), 2));
    check_twice(permuted, leaf(SIZES(3, 4), 3));
    check_twice(expanded, leaf(SIZES(3, 1), 4));
    check_twice(sliced, leaf(SIZES(3, 4), 5));
    check_twice(selected, leaf(SIZES(3, 4), 6));
    check_twice(unsqueezed, leaf(SIZES(3, 4), 7));
    check_twice(squeezed, leaf(SIZES(3, 1), 8));
    check_twice(flipped, leaf(SIZES(3, 4), 9));
    check_twice(moved, leaf(SIZES(3, 4), 10));
    check_twice(copied, leaf(SIZES(3, 4), 11));
    check_twice(strided, leaf(SIZES(3, 4), 12));
    check_twice(windows, leaf(SIZES(3, 4), 13));
    check_twice(repeated, leaf(SIZES(3, 4), 14));
    check_twice(interleaved, leaf(SIZES(3, 4), 15));
    check_twice(keyed, leaf(SIZES(3, 4), 16));
    check_twice(turned_and_sliced, leaf(SIZES(3, 4), 17));
    check_twice(sliced, leaf(SIZES(0, 4), 18));
}

/* ---- elements by index tensors ------------------------------------------------------------------- */

static gn_tensor *integers(int ndim, const int64_t *sizes, const int64_t *values)
{
    gn_tensor *made = NULL;
    void *data = NULL;
    ok(gn_tensor_create(GN_INT64, ndim, sizes, device, &made));
    ok(gn_tensor_get_data(made, &data));
    memcpy(data, values, sizeof *values * (size_t)gn_tensor_get_count(made));
    return made;
}

static gn_tensor *index_tensor; /* of the functions below */

SHAPE_FUNCTION(gathered, gn_gather(x, 1, index_tensor, &made))
SHAPE_FUNCTION(rows_selected, gn_index_select(x, 0, index_tensor, &made))
SHAPE_FUNCTION(taken, gn_take(x, index_tensor, &made))
SHAPE_FUNCTION(masked, gn_masked_select(x, index_tensor, &made))
SHAPE_FUNCTION(keys_taken,
               gn_index_get(x, 2,
                            (gn_key[]){{.kind = GN_KEY_SLICE, .start = 1, .stop = 3, .step = 1},
                                       {.kind = GN_KEY_TENSOR, .tensor = index_tensor}},
                            &made))
SHAPE_FUNCTION(sorted, gn_sort(x, 1, true, &made, NULL))
SHAPE_FUNCTION(top, gn_topk(x, 2, -1, true, &made, NULL))
SHAPE_FUNCTION(extreme, gn_extreme(x, 0, false, &made, NULL))

static void test_places(void)
{
    index_tensor = integers(SIZES(2, 5), (int64_t[]){0, 3, 3, 1, 0, 2, 2, 1, 0, 3});
    check_twice(gathered, leaf(SIZES(3, 4), 1));
    gn_tensor_release(index_tensor);
    index_tensor = integers(SIZES(4), (int64_t[]){2, 0, 2, 1});
    check_twice(rows_selected, leaf(SIZES(3, 4), 2));
    check_twice(keys_taken, leaf(SIZES(3, 4), 3));
    gn_tensor_release(index_tensor);
    index_tensor = integers(SIZES(2, 2), (int64_t[]){-1, 5, 5, 0});
    check_twice(taken, leaf(SIZES(3, 4), 4));
    gn_tensor_release(index_tensor);
    gn_tensor *x = numbers(SIZES(3, 4), 5);
    const gn_operand half[] = {{.tensor = x}, {.scalar = {.kind = GN_FLOAT64, .floating = 1}}};
    ok(gn_elementwise(GN_OP_LESS, half, &index_tensor));
    check_twice(masked, leaf(SIZES(3, 4), 6));
    gn_tensor_release(x);
    gn_tensor_release(index_tensor);
    check_twice(sorted, leaf(SIZES(3, 4), 7));
    check_twice(top, leaf(SIZES(3, 4), 8));
    check_twice(extreme, leaf(SIZES(3, 4), 9));
}

static void test_extreme_so_far(void)
{
    gn_tensor *x = leaf(SIZES(2, 5), 3), *values = NULL, *indices = NULL, *root, *gradient = NULL;
    double found[10], expected[10] = {0};
    ok(gn_cumulate_extreme(x, 1, true, &values, &indices));
    root = sum(values);
    ok(gn_grad(1, &root, NULL, 1, &x, 0, &gradient));
    elements(gradient, found);
    void *data = NULL;
    ok(gn_tensor_get_data(indices, &data));
    for (int i = 0; i < 10; i++)
        expected[i / 5 * 5 + ((int64_t *)data)[i]] += 1;
    CHECK(memcmp(found, expected, sizeof found) == 0);
    release_all(5, (gn_tensor *[]){x, values, indices, root, gradient});
}

/* ---- einsum -------------------------------------------------------------------------------------- */

static const char *equation;

static gn_tensor *einsum(gn_tensor *const *inputs)
{
    gn_tensor *made = NULL;
    ok(gn_einsum(equation, 2, inputs, &made));
    return squared(made);
}

static void test_einsum(void)
{
    equation = "ij,jk->ik";
    check_rule(einsum, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(4, 2), 2)});
    equation = "ij,ij->j";
    check_rule(einsum, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(3, 4), 2)});
    equation = "bij,bkj->bik";
    check_rule(einsum, 2, (gn_tensor *[]){leaf(SIZES(2, 3, 4), 1), leaf(SIZES(2, 2, 4), 2)});
    equation = "ii,i->i";
    check_rule(einsum, 2, (gn_tensor *[]){leaf(SIZES(3, 3), 1), leaf(SIZES(3), 2)});
    equation = "i,j->ij";
    check_rule(einsum, 2, (gn_tensor *[]){leaf(SIZES(3), 1), leaf(SIZES(4), 2)});
    equation = "ij,k->ki";
    check_rule(einsum, 2, (gn_tensor *[]){leaf(SIZES(3, 2), 1), leaf(SIZES(4), 2)});
}

static void test_reductions(void)
{
    check_twice(summed, leaf(SIZES(3, 4), 1));
    check_twice(summed_kept, leaf(SIZES(3, 4), 2));
    check_twice(summed_all, leaf(SIZES(3, 4), 3));
    check_twice(averaged, leaf(SIZES(3, 4), 4));
    check_twice(multiplied, leaf(SIZES(3, 4), 5));
    check_twice(largest, leaf(SIZES(3, 4), 6));
    check_twice(smallest, leaf(SIZES(3, 4), 7));
    check_twice(softmax, leaf(SIZES(3, 4), 8));
    check_twice(log_softmax, leaf(SIZES(3, 4), 9));
    check_twice(cumulated, leaf(SIZES(3, 4), 10));
    check_twice(products_so_far, leaf(SIZES(3, 4), 11));
}

/* Products of rows that have one 0, two of them, and none. */
static void test_product_of_zeros(void)
{
    gn_tensor *x = leaf(SIZES(3, 3), 1);
    double *data = data_of(x);
    data[1] = data[3] = data[5] = 0;
    CHECK_U64(mistakes(products_so_far, 1, &x), 0);
    check_rule(multiplied, 1, &x);
}

static gn_tensor *product(gn_tensor *const *inputs)
{
    gn_tensor *made = NULL;
    ok(gn_matmul(inputs[0], inputs[1], &made));
    return squared(made);
}

static gn_tensor *product_and_sum(gn_tensor *const *inputs)
{
    gn_tensor *made = NULL;
    ok(gn_matmul_add(inputs[0], inputs[1], inputs[2], &made));
    return squared(made);
}

static void test_products(void)
{
    check_rule(product, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(4, 2), 2)});
    check_rule(product, 2, (gn_tensor *[]){leaf(SIZES(4), 1), leaf(SIZES(4, 2), 2)});
    check_rule(product, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(4), 2)});
    check_rule(product, 2, (gn_tensor *[]){leaf(SIZES(4), 1), leaf(SIZES(4), 2)});
    check_rule(product, 2, (gn_tensor *[]){leaf(SIZES(2, 3, 4), 1), leaf(SIZES(4, 2), 2)});
    check_rule(product, 2, (gn_tensor *[]){leaf(SIZES(2, 1, 3, 4), 1), leaf(SIZES(3, 4, 2), 2)});
    check_rule(product, 2, (gn_tensor *[]){leaf(SIZES(0, 4), 1), leaf(SIZES(4, 2), 2)});
    check_rule(product_and_sum, 3,
               (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(4, 2), 2), leaf(SIZES(2), 3)});
}

static gn_tensor *joined(gn_tensor *const *inputs)
{
    gn_tensor *made = NULL;
    ok(gn_cat(3, inputs, -1, &made));
    return squared(made);
}

static void test_cat(void)
{
    check_rule(joined, 3,
               (gn_tensor *[]){leaf(SIZES(2, 3), 1), leaf(SIZES(2, 1), 2), leaf(SIZES(2, 2), 3)});
}

/* A checker that finds nothing would find nothing here. */
static gn_tensor *halved(gn_tensor *const *inputs)
{
    gn_tensor *part = NULL, *made;
    ok(gn_tensor_detach(inputs[0], &part));
    made = binary(GN_OP_MULTIPLY, inputs[0], part); /* x * x, of which the tape knows a half */
    gn_tensor_release(part);
    return made;
}

static void test_the_checker(void)
{
    gn_tensor *x = leaf(SIZES(2, 2), 1);
    CHECK_U64(mistakes(halved, 1, &x), 4);
    gn_tensor_release(x);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static double first_gradient(gn_tensor *x)
{
    gn_tensor *gradient = NULL;
    double values[ELEMENTS_MOST];
    ok(gn_tensor_get_gradient(x, &gradient));
    CHECK(gradient != NULL);
    if (gradient == NULL)
        return NAN;
    elements(gradient, values);
    gn_tensor_release(gradient);
    return values[0];
}

static void test_leaves(void)
{
    gn_tensor *x = leaf(SIZES(2), 1), *y = unary(GN_OP_EXP, x), *whole = NULL, *gradient = NULL;
    CHECK(gn_tensor_is_leaf(x) && gn_tensor_requires_gradient(x));
    CHECK(!gn_tensor_is_leaf(y) && gn_tensor_requires_gradient(y));
    CHECK_TEXT(gn_tensor_get_operation(y), "exp");
    CHECK(gn_tensor_get_operation(x) == NULL);
    CHECK_U64(gn_tensor_set_requires_gradient(y, false), GN_ERROR_INVALID_VALUE);
    ok(gn_cast(x, GN_INT64, &whole));
    CHECK(!gn_tensor_requires_gradient(whole));
    CHECK_U64(gn_tensor_set_requires_gradient(whole, true), GN_ERROR_TYPE);
    ok(gn_tensor_get_gradient(x, &gradient));
    CHECK(gradient == NULL);
    ok(gn_tensor_set_requires_gradient(x, false));
    CHECK(!gn_tensor_requires_gradient(x));
    gn_tensor_release(whole);
    gn_tensor_release(y);
    gn_tensor_release(x);
}

/* Gradients add up, and what is shared by two paths counts twice. */
static void test_accumulation(void)
{
    gn_tensor *x = leaf(SIZES(1), 1), *y = unary(GN_OP_EXP, x), *z = binary(GN_OP_ADD, y, y);
    double value = exp(data_of(x)[0]);
    ok(gn_backward(1, &z, NULL, GN_RETAIN_GRAPH));
    CHECK(fabs(first_gradient(x) - 2 * value) < 1e-14 * value);
    ok(gn_backward(1, &z, NULL, 0));
    CHECK(fabs(first_gradient(x) - 4 * value) < 1e-14 * value);
    CHECK_U64(gn_backward(1, &z, NULL, 0), GN_ERROR_INVALID_VALUE);
    CHECK(says("walked before"));
    CHECK(fabs(first_gradient(x) - 4 * value) < 1e-14 * value);
    ok(gn_tensor_set_gradient(x, NULL));
    release_all(3, (gn_tensor *[]){x, y, z});
}

/* The gradient of a leaf is its own: not the one that was given, nor one that is repeated by a stride of 0. */
static void test_own_gradients(void)
{
    gn_tensor *x = leaf(SIZES(2, 3), 1), *given = numbers(SIZES(2, 3), 2), *gradient = NULL;
    ok(gn_backward(1, &x, &given, 0));
    ok(gn_tensor_get_gradient(x, &gradient));
    CHECK(gradient != given && data_of(gradient) != data_of(given));
    CHECK(memcmp(data_of(gradient), data_of(given), 6 * sizeof(double)) == 0);
    gn_tensor_release(gradient);
    ok(gn_tensor_set_gradient(x, NULL));
    gn_tensor *root = sum(x);
    ok(gn_backward(1, &root, NULL, 0));
    ok(gn_tensor_get_gradient(x, &gradient));
    CHECK(gn_tensor_get_strides(gradient)[0] == 3 && gn_tensor_get_strides(gradient)[1] == 1);
    release_all(4, (gn_tensor *[]){x, given, gradient, root});
}

enum {
    THREADS = 4,
    TURNS = 50,
};

static void *walk_often(void *root)
{
    gn_tensor *shared = root;
    for (int i = 0; i < TURNS; i++)
        ok(gn_backward(1, &shared, NULL, GN_RETAIN_GRAPH));
    return NULL;
}

/* Several threads walk one graph: no gradient is lost. */
static void test_threads(void)
{
    gn_tensor *x = leaf(SIZES(3, 4), 1), *y = unary(GN_OP_TANH, x), *z, *root;
    ok(gn_softmax(y, 1, false, &z));
    root = weighted(softmax, &z);
    ok(gn_backward(1, &root, NULL, GN_RETAIN_GRAPH));
    double once_only = first_gradient(x);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, walk_often, root) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    double expected = once_only * (THREADS * TURNS + 1);
    CHECK(fabs(first_gradient(x) - expected) < 1e-12 * fabs(expected));
    release_all(4, (gn_tensor *[]){x, y, z, root});
}

static void test_refusals(void)
{
    gn_tensor *x = leaf(SIZES(2), 1), *plain = numbers(SIZES(2), 2), *y = unary(GN_OP_EXP, x);
    gn_tensor *made = NULL, *place = NULL;
    CHECK_U64(gn_backward(1, &y, NULL, 0), GN_ERROR_INVALID_VALUE);
    CHECK(says("must be given"));
    CHECK_U64(gn_backward(1, &plain, NULL, 0), GN_ERROR_INVALID_VALUE);
    CHECK(says("needs no gradient"));
    CHECK_U64(gn_backward(1, &y, (gn_tensor *[]){x}, GN_RETAIN_GRAPH), GN_OK);
    ok(gn_tensor_create(GN_FLOAT64, 1, (int64_t[]){3}, device, &place));
    CHECK_U64(gn_backward(1, &y, &place, 0), GN_ERROR_INVALID_VALUE);
    CHECK(says("shape"));
    CHECK_U64(gn_grad(1, &y, (gn_tensor *[]){plain}, 1, &plain, 0, &made), GN_ERROR_INVALID_VALUE);
    gn_tensor *other = leaf(SIZES(2), 3);
    CHECK_U64(gn_grad(1, &y, (gn_tensor *[]){plain}, 1, &other, GN_RETAIN_GRAPH, &made),
              GN_ERROR_INVALID_VALUE);
    CHECK(says("do not depend"));
    ok(gn_grad(1, &y, (gn_tensor *[]){plain}, 1, &other, GN_RETAIN_GRAPH | GN_ALLOW_UNUSED, &made));
    CHECK(made == NULL);
    CHECK_U64(gn_assign(x, (gn_operand){.tensor = plain}), GN_ERROR_UNSUPPORTED);
    CHECK(says("leaf"));
    CHECK_U64(gn_unique(x, &made, NULL, NULL), GN_ERROR_UNSUPPORTED);
    release_all(5, (gn_tensor *[]){x, plain, y, place, other});
}

/* exp(x) * x in place, then half of it added, then what is there replaced by a part of it. */
static gn_tensor *changed(gn_tensor *const *inputs)
{
    gn_tensor *x = inputs[0], *y = unary(GN_OP_EXP, x), *part, *fresh = numbers(SIZES(3, 4), 5);
    const gn_operand product[] = {{.tensor = y}, {.tensor = x}};
    ok(gn_elementwise_into(GN_OP_MULTIPLY, product, y));
    const gn_operand more[] = {{.tensor = y}, {.scalar = {.kind = GN_FLOAT64, .floating = 0.5}}};
    ok(gn_elementwise_into(GN_OP_ADD, more, y));
    part = unary(GN_OP_SQUARE, y);
    ok(gn_assign(fresh, (gn_operand){.tensor = part}));
    ok(gn_assign(part, (gn_operand){.scalar = {.kind = GN_INT64, .integer = 3}}));
    gn_tensor *made = binary(GN_OP_MULTIPLY, fresh, part);
    release_all(3, (gn_tensor *[]){y, part, fresh});
    return made;
}

/* Values of the second input go into a copy of the first one. */
static bool is_added;

static gn_tensor *copied_for(gn_tensor *x)
{
    gn_tensor *copy = NULL;
    ok(gn_cast(x, GN_FLOAT64, &copy));
    return copy;
}

static gn_tensor *keys_put(gn_tensor *const *inputs)
{
    gn_tensor *x = copied_for(inputs[0]);
    const gn_key keys[] = {{.kind = GN_KEY_SLICE, .start = 0, .stop = 2, .step = 1},
                           {.kind = GN_KEY_TENSOR, .tensor = index_tensor}};
    ok(gn_index_set(x, 2, keys, (gn_operand){.tensor = inputs[1]}, is_added));
    return squared(x);
}

static gn_tensor *slice_put(gn_tensor *const *inputs)
{
    gn_tensor *x = copied_for(inputs[0]);
    const gn_key keys[] = {{.kind = GN_KEY_SLICE, .start = 0, .stop = 3, .step = 2}};
    ok(gn_index_set(x, 1, keys, (gn_operand){.tensor = inputs[1]}, is_added));
    return squared(x);
}

static gn_tensor *scattered(gn_tensor *const *inputs)
{
    gn_tensor *x = copied_for(inputs[0]);
    ok(gn_scatter(x, 1, index_tensor, (gn_operand){.tensor = inputs[1]}, is_added));
    return squared(x);
}

static gn_tensor *rows_put(gn_tensor *const *inputs)
{
    gn_tensor *x = copied_for(inputs[0]);
    ok(gn_index_put(x, 0, index_tensor, (gn_operand){.tensor = inputs[1]}, is_added));
    return squared(x);
}

static gn_tensor *cleared(gn_tensor *const *inputs)
{
    gn_tensor *x = copied_for(inputs[0]);
    const gn_operand half[] = {{.tensor = x}, {.scalar = {.kind = GN_FLOAT64, .floating = 1}}};
    gn_tensor *mask = NULL;
    ok(gn_elementwise(GN_OP_LESS, half, &mask));
    ok(gn_index_set(x, 1, &(gn_key){.kind = GN_KEY_TENSOR, .tensor = mask},
                    (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 2}}, false));
    gn_tensor_release(mask);
    return squared(x);
}

static void test_put(void)
{
    for (int i = 0; i < 2; i++) {
        is_added = i > 0;
        check_rule(slice_put, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(4), 2)});
        index_tensor = integers(SIZES(2), (int64_t[]){3, 1});
        check_rule(keys_put, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(2, 2), 2)});
        gn_tensor_release(index_tensor);
        index_tensor = integers(SIZES(2), (int64_t[]){2, 0});
        check_rule(rows_put, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(2, 4), 2)});
        gn_tensor_release(index_tensor);
        index_tensor = integers(SIZES(3, 2), (int64_t[]){0, 1, 3, 2, 2, 0});
        check_rule(scattered, 2, (gn_tensor *[]){leaf(SIZES(3, 4), 1), leaf(SIZES(3, 2), 2)});
        gn_tensor_release(index_tensor);
    }
    check_twice(cleared, leaf(SIZES(3, 4), 3));
}

/* A row of y is written; y, the row and another view that was made before all go on with what was written. */
static gn_tensor *view_changed(gn_tensor *const *inputs)
{
    gn_tensor *y = unary(GN_OP_EXP, inputs[0]), *row = NULL, *column = NULL;
    ok(gn_tensor_select(y, 0, 1, &row));
    ok(gn_tensor_select(y, 1, 2, &column));
    const gn_operand twice[] = {{.tensor = row}, {.tensor = row}};
    ok(gn_elementwise_into(GN_OP_MULTIPLY, twice, row));
    gn_tensor *parts[] = {binary(GN_OP_MULTIPLY, y, y), binary(GN_OP_MULTIPLY, row, row),
                          binary(GN_OP_MULTIPLY, column, column)};
    gn_tensor *first = binary(GN_OP_ADD, parts[0], parts[1]), *all = sum(first),
              *rest = sum(parts[2]);
    gn_tensor *total = binary(GN_OP_ADD, all, rest);
    release_all(3, (gn_tensor *[]){y, row, column});
    release_all(3, parts);
    release_all(3, (gn_tensor *[]){first, all, rest});
    return total;
}

static void test_in_place(void)
{
    check_twice(changed, leaf(SIZES(3, 4), 1));
    check_twice(view_changed, leaf(SIZES(3, 4), 1));
    gn_tensor *x = leaf(SIZES(3, 4), 1), *row = NULL;
    ok(gn_tensor_select(x, 0, 1, &row));
    const gn_operand twice[] = {{.tensor = row}, {.tensor = row}};
    CHECK_U64(gn_elementwise_into(GN_OP_ADD, twice, row), GN_ERROR_UNSUPPORTED);
    CHECK(says("leaf"));
    release_all(2, (gn_tensor *[]){x, row});
}

static void test_changed_values(void)
{
    gn_tensor *x = leaf(SIZES(1), 1), *w = numbers(SIZES(1), 2), *y = binary(GN_OP_MULTIPLY, x, w);
    ok(gn_assign(w, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 3}}));
    CHECK_U64(gn_backward(1, &y, NULL, 0), GN_ERROR_INVALID_VALUE);
    CHECK(says("changed by an operation in place"));
    CHECK_U64(gn_backward(1, &y, NULL, 0), GN_ERROR_INVALID_VALUE);
    CHECK(says("failed"));
    release_all(3, (gn_tensor *[]){x, w, y});
}

static void test_switched_off(void)
{
    gn_tensor *x = leaf(SIZES(1), 1);
    CHECK(gn_set_gradients(false));
    gn_tensor *y = unary(GN_OP_EXP, x);
    CHECK(!gn_tensor_requires_gradient(y));
    ok(gn_assign(x, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 3}}));
    CHECK(!gn_set_gradients(true));
    release_all(2, (gn_tensor *[]){x, y});
}

/* With create_graph a leaf's gradient has a graph that leads back to the leaf: nothing holds it in a circle. */
static void test_no_circles(void)
{
    size_t before = gni_host_live_count();
    for (int i = 0; i < 10; i++) {
        gn_tensor *x = leaf(SIZES(4), 1), *y = unary(GN_OP_EXP, x), *z = sum(y);
        ok(gn_backward(1, &z, NULL, GN_CREATE_GRAPH));
        release_all(3, (gn_tensor *[]){x, y, z});
    }
    CHECK_U64(gni_host_live_count(), before);
}

static void test_long_chain(void)
{
    enum {
        LENGTH = 1000000
    };
    gn_tensor *x = leaf(SIZES(1), 1), *y = x;
    gn_tensor_retain(x);
    for (int i = 0; i < LENGTH; i++) {
        gn_tensor *next = unary(GN_OP_NEGATIVE, y);
        gn_tensor_release(y);
        y = next;
    }
    ok(gn_backward(1, &y, NULL, 0));
    CHECK(first_gradient(x) == 1);
    gn_tensor_release(y);
    gn_tensor_release(x);
}

/* A small network: loss = mean(softmax(tanh(x @ w) @ v)^2). */
static gn_status network(gn_tensor *x, gn_tensor *w, gn_tensor *v, gn_tensor **loss)
{
    gn_tensor *made[5] = {NULL};
    gn_status status = gn_matmul(x, w, &made[0]);
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_TANH, &(gn_operand){.tensor = made[0]}, &made[1]);
    if (status == GN_OK)
        status = gn_matmul(made[1], v, &made[2]);
    if (status == GN_OK)
        status = gn_softmax(made[2], 1, false, &made[3]);
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_SQUARE, &(gn_operand){.tensor = made[3]}, &made[4]);
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_MEAN, made[4], 0, false, loss);
    release_all(5, made);
    return status;
}

/* Every host allocation fails in turn, in the forward and in the backward pass. */
static void test_failing_allocations(void)
{
    gn_tensor *x = numbers(SIZES(3, 4), 1), *w = leaf(SIZES(4, 5), 2), *v = leaf(SIZES(5, 2), 3);
    gn_tensor *loss = NULL, *first = NULL, *now = NULL, *copy = NULL;
    ok(network(x, w, v, &loss));
    ok(gn_backward(1, &loss, NULL, 0));
    gn_tensor_release(loss);
    ok(gn_tensor_get_gradient(w, &first));
    double expected[ELEMENTS_MOST], found[ELEMENTS_MOST];
    elements(first, expected);
    ok(gn_cast(first, GN_FLOAT64, &copy));
    ok(gn_tensor_set_gradient(v, NULL));
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK && nth < 10000; nth++) {
        size_t live = gni_host_live_count();
        loss = NULL;
        gni_host_fail_after(nth);
        status = network(x, w, v, &loss);
        if (status == GN_OK)
            status = gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH);
        gni_host_fail_after(-1);
        if (status != GN_OK) {
            ok(gn_tensor_get_gradient(w, &now));
            CHECK(now == first);
            elements(now, found);
            for (int i = 0; i < 20; i++)
                CHECK(found[i] == expected[i]);
            gn_tensor_release(now);
        }
        if (status != GN_OK && loss != NULL) { /* with retain_graph it can be repeated */
            ok(gn_backward(1, &loss, NULL, 0));
            ok(gn_tensor_get_gradient(w, &now));
            elements(now, found);
            gn_tensor_release(now);
            for (int i = 0; i < 20; i++)
                CHECK(found[i] == expected[i] + expected[i]);
        }
        gn_tensor_release(loss);
        ok(gn_assign(first, (gn_operand){.tensor = copy})); /* sums are added in its memory */
        ok(gn_tensor_set_gradient(v, NULL));
        if (status != GN_OK)
            CHECK_U64(gni_host_live_count(), live);
    }
    CHECK_U64(status, GN_OK);
    ok(gn_tensor_set_gradient(w, NULL));
    ok(network(x, w, v, &loss));
    ok(gn_backward(1, &loss, NULL, 0));
    ok(gn_tensor_get_gradient(w, &now));
    elements(now, found);
    CHECK(memcmp(expected, found, sizeof *found * 20) == 0);
    release_all(7, (gn_tensor *[]){x, w, v, loss, first, now, copy});
}

int main(void)
{
    ok(gn_device_get(GN_DEVICE_CPU, 0, &device));
    RUN(test_the_checker);
    RUN(test_shapes);
    RUN(test_places);
    RUN(test_extreme_so_far);
    RUN(test_einsum);
    RUN(test_reductions);
    RUN(test_product_of_zeros);
    RUN(test_products);
    RUN(test_cat);
    RUN(test_leaves);
    RUN(test_accumulation);
    RUN(test_own_gradients);
    RUN(test_threads);
    RUN(test_in_place);
    RUN(test_put);
    RUN(test_refusals);
    RUN(test_changed_values);
    RUN(test_switched_off);
    RUN(test_no_circles);
    RUN(test_long_chain);
    RUN(test_failing_allocations);
    return check_result();
}
