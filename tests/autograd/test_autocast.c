/*
 * test_autocast.c: autocast and the steps of gradient scaling as a C program uses them, and what fails for host memory.
 */
#include "check.h"

#include "base/host.h"
#include "genesis/genesis.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static gn_device *device;

static void ok(gn_status status)
{
    CHECK_U64(status, GN_OK);
    if (status != GN_OK)
        fprintf(stderr, "    %s\n", gn_error_detail());
}

static gn_tensor *filled(int ndim, const int64_t *sizes, double number, gn_dtype dtype)
{
    gn_tensor *made = NULL;
    ok(gn_full((gn_scalar){.kind = GN_FLOAT64, .floating = number}, dtype, ndim, sizes, device,
               &made));
    return made;
}

static gn_tensor *square(double number)
{
    return filled(2, (const int64_t[]){2, 2}, number, GN_FLOAT32);
}

static double first_of(gn_tensor *tensor)
{
    static const int64_t first[GN_DIMENSIONS_MAX];
    gn_scalar number = {0};
    ok(gn_tensor_get_item(tensor, first, &number));
    return number.kind == GN_FLOAT64 ? number.floating : (double)number.integer;
}

static const gn_function *find(const char *name)
{
    const gn_function *row;
    for (int i = 0; (row = gn_function_table(i)) != NULL; i++)
        for (; row->name != NULL; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    CHECK(false);
    return NULL;
}

/* mm(a, b), by gn_function_call(): its type; the result goes to *made where that is wanted. */
static gn_dtype product(gn_tensor *a, gn_tensor *b, gn_tensor **made)
{
    const gn_argument arguments[] = {{.is_given = true, .operand.tensor = a},
                                     {.is_given = true, .operand.tensor = b}};
    gn_results results = {0};
    ok(gn_function_call(find("mm"), arguments, &results));
    gn_dtype dtype = gn_tensor_get_dtype(results.tensors[0]);
    if (made != NULL) {
        *made = results.tensors[0];
        gn_tensor_retain(*made);
    }
    gn_results_clear(&results);
    return dtype;
}

static void begin(void)
{
    gn_autocast_set_enabled(GN_DEVICE_CPU, true);
    CHECK(gn_autocast_enter() == 1);
}

static void end(void)
{
    CHECK(gn_autocast_leave() == 0);
    gn_autocast_set_enabled(GN_DEVICE_CPU, false);
}

static void test_settings(void)
{
    CHECK(!gn_autocast_is_on() && !gn_autocast_is_enabled(GN_DEVICE_CPU));
    CHECK(gn_autocast_get_dtype(GN_DEVICE_CPU) == GN_BFLOAT16);
    CHECK(gn_autocast_get_dtype(GN_DEVICE_CUDA) == GN_FLOAT16);
    CHECK_U64(gn_autocast_set_dtype(GN_DEVICE_CPU, GN_FLOAT32), GN_ERROR_TYPE);
    CHECK_U64(gn_autocast_set_dtype((gn_device_type)7, GN_FLOAT16), GN_ERROR_INVALID_VALUE);
    CHECK(!gn_autocast_is_enabled((gn_device_type)7));
    gn_autocast_set_enabled((gn_device_type)7, true);
    CHECK(!gn_autocast_is_on());
    CHECK(gn_autocast_leave() == 0); /* nothing was entered */
    gn_autocast_set_enabled(GN_DEVICE_CUDA, true);
    CHECK(gn_autocast_is_on() && !gn_autocast_is_enabled(GN_DEVICE_CPU));
    gn_autocast_set_enabled(GN_DEVICE_CUDA, false);
    CHECK(!gn_autocast_is_on());
}

static void test_a_function_of_the_table(void)
{
    gn_tensor *a = square(1), *b = square(2), *made;
    CHECK(product(a, b, NULL) == GN_FLOAT32);
    begin();
    CHECK(product(a, b, &made) == GN_BFLOAT16);
    CHECK(first_of(made) == 4);
    gn_tensor *wide = filled(2, (const int64_t[]){2, 2}, 1, GN_FLOAT64);
    CHECK(product(wide, wide, NULL) == GN_FLOAT64);
    ok(gn_autocast_set_dtype(GN_DEVICE_CPU, GN_FLOAT16));
    CHECK(product(a, b, NULL) == GN_FLOAT16);
    ok(gn_autocast_set_dtype(GN_DEVICE_CPU, GN_BFLOAT16));
    end();
    gn_tensor_release(made);
    gn_tensor_release(wide);
    gn_tensor_release(a);
    gn_tensor_release(b);
}

static void test_lists_of_tensors(void)
{
    gn_tensor *a = square(3), *tensors[] = {a, a};
    const gn_argument arguments[] = {{.is_given = true, .text = "ij,jk->ik"},
                                     {.is_given = true, .count = 2, .tensors = tensors}};
    gn_results results = {0};
    begin();
    ok(gn_function_call(find("einsum"), arguments, &results));
    end();
    CHECK(gn_tensor_get_dtype(results.tensors[0]) == GN_BFLOAT16);
    CHECK(first_of(results.tensors[0]) == 18);
    CHECK(tensors[0] == a);
    gn_results_clear(&results);
    gn_tensor_release(a);
}

static void test_operands(void)
{
    gn_tensor *a = square(1), *made[2];
    gn_operand operands[] = {{.tensor = a}, {.scalar = {.kind = GN_INT64, .integer = 2}}};
    ok(gn_autocast_operands(gn_autocast_find("matmul"), 2, operands, made));
    CHECK(made[0] == NULL && operands[0].tensor == a);
    begin();
    ok(gn_autocast_operands(gn_autocast_find("matmul"), 2, operands, made));
    CHECK(made[0] != NULL && made[1] == NULL && operands[0].tensor == made[0]);
    CHECK(gn_tensor_get_dtype(made[0]) == GN_BFLOAT16);
    gn_tensor_release(made[0]);
    end();
    gn_autocast_rule rule = gn_autocast_find_operation(GN_OP_EXP);
    CHECK(rule.policy[GN_DEVICE_CPU] == GN_AUTOCAST_NONE);
    CHECK(rule.policy[GN_DEVICE_CUDA] == GN_AUTOCAST_FLOAT32);
    rule = gn_autocast_find_operation(GN_OP_EXP); /* what was found before */
    CHECK(rule.policy[GN_DEVICE_CUDA] == GN_AUTOCAST_FLOAT32);
    CHECK(gn_autocast_find("nn.linear").policy[GN_DEVICE_CPU] == GN_AUTOCAST_LOWER);
    CHECK(gn_autocast_find("nothing").policy[GN_DEVICE_CUDA] == GN_AUTOCAST_NONE);
    gn_tensor_release(a);
}

/* A leaf is converted once, and again when it was written to. */
static void test_leaves_are_kept(void)
{
    gn_tensor *leaf = square(1), *other = square(1), *first, *second, *third;
    ok(gn_tensor_set_requires_gradient(leaf, true));
    gn_operand operand = {.tensor = leaf};
    begin();
    ok(gn_autocast_operands(gn_autocast_find("matmul"), 1, &operand, &first));
    operand.tensor = leaf;
    ok(gn_autocast_operands(gn_autocast_find("matmul"), 1, &operand, &second));
    CHECK(first == second);
    bool was_on = gn_set_gradients(false);
    ok(gn_assign(leaf, (gn_operand){.scalar = {.kind = GN_INT64, .integer = 5}}));
    (void)gn_set_gradients(was_on);
    operand.tensor = leaf;
    ok(gn_autocast_operands(gn_autocast_find("matmul"), 1, &operand, &third));
    CHECK(third != first && first_of(third) == 5);
    gn_tensor *made;
    CHECK(product(other, leaf, &made) == GN_BFLOAT16);
    end();
    gn_tensor *gradient, *total;
    ok(gn_reduce(GN_REDUCE_SUM, made, 0, false, &total));
    ok(gn_backward(1, &total, NULL, 0));
    ok(gn_tensor_get_gradient(leaf, &gradient));
    CHECK(gn_tensor_get_dtype(gradient) == GN_FLOAT32 && first_of(gradient) == 2);
    gn_tensor *all[] = {leaf, other, first, second, third, made, gradient, total};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
}

static void *other_thread(void *context)
{
    *(bool *)context = gn_autocast_is_on();
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread;
    bool is_on = true;
    begin();
    CHECK(pthread_create(&thread, NULL, other_thread, &is_on) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(!is_on && gn_autocast_is_on());
    end();
}

/* ---- scaling -------------------------------------------------------------------------------------- */

static void test_unscale(void)
{
    gn_tensor *one = square(8), *found = filled(0, NULL, 0, GN_FLOAT32);
    gn_tensor *two = filled(1, (const int64_t[]){3}, 4, GN_FLOAT64);
    gn_tensor *factor = filled(0, NULL, 0.5, GN_FLOAT32), *list[] = {one, two};
    ok(gn_list_unscale(2, list, factor, found));
    CHECK(first_of(one) == 4 && first_of(two) == 2 && first_of(found) == 0);
    ok(gn_assign(two, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = (double)NAN}}));
    ok(gn_list_unscale(2, list, NULL, found));
    CHECK(first_of(one) == 4 && first_of(found) == 1);
    ok(gn_assign(two, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 1}}));
    ok(gn_list_unscale(2, list, NULL, found));
    CHECK(first_of(found) == 1); /* it stays */
    ok(gn_list_unscale(0, NULL, factor, found));
    gn_tensor *all[] = {one, two, found, factor};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
}

static void test_scale_update(void)
{
    gn_tensor *scale = filled(0, NULL, 4, GN_FLOAT32), *found = filled(0, NULL, 0, GN_FLOAT32);
    gn_tensor *tracker = filled(0, NULL, 0, GN_INT32);
    ok(gn_scale_update(scale, tracker, found, 2, 0.5, 2));
    CHECK(first_of(scale) == 4 && first_of(tracker) == 1);
    ok(gn_scale_update(scale, tracker, found, 2, 0.5, 2));
    CHECK(first_of(scale) == 8 && first_of(tracker) == 0);
    ok(gn_scale_update(scale, tracker, found, (double)INFINITY, 0.5, 1));
    CHECK(first_of(scale) == 8 && first_of(tracker) == 0); /* it would be infinite */
    ok(gn_scale_update(scale, tracker, found, 2, 0.5, 2));
    ok(gn_assign(found, (gn_operand){.scalar = {.kind = GN_INT64, .integer = 1}}));
    ok(gn_scale_update(scale, tracker, found, 2, 0.5, 2));
    CHECK(first_of(scale) == 4 && first_of(tracker) == 0);
    gn_tensor_release(scale);
    gn_tensor_release(found);
    gn_tensor_release(tracker);
}

/* The call fails or succeeds, and nothing of it stays: without memory for the cache the conversion is not kept. */
static void test_host_memory_fails(void)
{
    gn_tensor *leaf = square(1), *made;
    ok(gn_tensor_set_requires_gradient(leaf, true));
    int failed = 0;
    for (int n = 1; n < 60; n++) {
        gn_operand operand = {.tensor = leaf};
        begin();
        gni_host_fail_after(n);
        gn_status status = gn_autocast_operands(gn_autocast_find("matmul"), 1, &operand, &made);
        gni_host_fail_after(0);
        failed += status != GN_OK;
        CHECK(status == GN_OK || (made == NULL && operand.tensor == leaf));
        gn_tensor_release(made);
        end();
    }
    CHECK(failed > 0);
    gn_tensor_release(leaf);
}

int main(void)
{
    ok(gn_device_get(GN_DEVICE_CPU, 0, &device));
    RUN(test_settings);
    RUN(test_a_function_of_the_table);
    RUN(test_lists_of_tensors);
    RUN(test_operands);
    RUN(test_leaves_are_kept);
    RUN(test_threads);
    RUN(test_unscale);
    RUN(test_scale_update);
    RUN(test_host_memory_fails);
    return check_result();
}
