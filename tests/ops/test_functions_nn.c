/*
 * test_functions_nn.c: layers of neural networks when host memory runs out in the middle of a call: everything is given
 * back, and the next call works. test_functions.c does that for all rows with the same arguments; these need others.
 */
#include "check.h"
#include "function_arguments.h"

#include "base/host.h"
#include "genesis/genesis.h"

#include <string.h>

static gn_device *cpu;
static gn_tensor *matrix, *image, *cube, *row; /* 4 x 4, 2 x 4 x 3, 3 x 4 x 4, and 4 */
static gn_tensor *indices, *classes, *labels;  /* 2 x 3, 2 and 4 x 4, of int64 */
static gn_argument arguments[PARAMETERS_MOST];

static void tensors_make(void)
{
    const gn_scalar half = {.kind = GN_FLOAT64, .floating = 0.5};
    const gn_scalar one = {.kind = GN_INT64, .integer = 1};
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_OK(gn_full(half, GN_FLOAT32, 2, (const int64_t[]){4, 4}, cpu, &matrix));
    CHECK_OK(gn_full(half, GN_FLOAT32, 3, (const int64_t[]){2, 4, 3}, cpu, &image));
    CHECK_OK(gn_full(one, GN_INT64, 2, (const int64_t[]){2, 3}, cpu, &indices));
    CHECK_OK(gn_full(one, GN_INT64, 1, (const int64_t[]){2}, cpu, &classes));
    CHECK_OK(gn_full(one, GN_INT64, 2, (const int64_t[]){4, 4}, cpu, &labels));
    CHECK_OK(gn_full(half, GN_FLOAT32, 3, (const int64_t[]){3, 4, 4}, cpu, &cube));
    CHECK_OK(gn_full(half, GN_FLOAT32, 1, (const int64_t[]){4}, cpu, &row));
    CHECK_OK(gn_flush());
}

static void tensors_release(void)
{
    gn_tensor *all[] = {matrix, image, cube, row, indices, classes, labels};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
}

static const gn_function *row_find(const char *name)
{
    const gn_function *found;
    for (int i = 0; (found = gn_function_table(i)) != NULL; i++)
        for (; found->name != NULL; found++)
            if (strcmp(found->name, name) == 0)
                return found;
    return NULL;
}

/* ---- arguments --------------------------------------------------------------------------------- */

static void give_tensor(int place, gn_tensor *tensor)
{
    arguments[place] = (gn_argument){.is_given = true, .operand.tensor = tensor};
}

static void give_number(int place, double number)
{
    arguments[place] =
        (gn_argument){.is_given = true, .operand.scalar = {.kind = GN_FLOAT64, .floating = number}};
}

static void give_true(int place)
{
    arguments[place] =
        (gn_argument){.is_given = true, .operand.scalar = {.kind = GN_BOOL, .integer = 1}};
}

static void give_integer(int place, int64_t number)
{
    arguments[place] =
        (gn_argument){.is_given = true, .operand.scalar = {.kind = GN_INT64, .integer = number}};
}

static void rms_norm_give(void)
{
    static const int64_t shape[] = {4};
    arguments[1] = (gn_argument){.is_given = true, .integers = shape, .count = 1};
    give_tensor(2, row);
}

static void layer_norm_give(void)
{
    rms_norm_give();
    give_tensor(3, row);
}

/* Of images, with their own statistics and running ones. */
static void batch_norm_give(void)
{
    give_tensor(0, image);
    for (int i = 1; i < 5; i++)
        give_tensor(i, row);
    give_true(5);
    give_number(6, 0.1);
}

static void group_norm_give(void)
{
    give_tensor(0, image);
    give_integer(1, 2);
    give_tensor(2, row);
    give_tensor(3, row);
}

static void response_give(void)
{
    give_tensor(0, image);
    give_integer(1, 3);
}

static void dropout_give(void)
{
    give_tensor(0, image);
    give_number(1, 0.5);
    give_true(2);
}

static void attention_give(void)
{
    give_number(4, 0.5);
    give_true(5);
}

static void masked_give(void)
{
    give_number(4, 0);
    give_tensor(3, matrix);
}

static void grouped_give(void)
{
    for (int i = 0; i < 3; i++)
        give_tensor(i, image);
    give_number(4, 0);
    give_true(7);
}

static void embedding_give(void)
{
    give_tensor(0, indices);
    give_integer(2, 0);
    give_number(3, 0.25);
}

static void bags_give(void)
{
    give_tensor(0, indices);
    give_integer(10, 0);
}

static void largest_give(void)
{
    bags_give();
    arguments[6].text = "max";
}

static void bilinear_give(void)
{
    give_tensor(2, cube);
}

static void random_slope_give(void)
{
    give_number(1, 0.25);
    give_number(2, 0.5);
    give_true(3);
}

static void sample_give(void)
{
    give_true(2);
}

/* One sequence of 4 steps, and a target of 2 classes. */
static void sequence_give(void)
{
    give_tensor(1, classes);
    give_integer(2, 4);
    give_integer(3, 2);
    give_integer(4, 0);
    arguments[5].text = "mean";
}

static void labels_give(void)
{
    give_tensor(1, labels);
}

/* ---- calls ------------------------------------------------------------------------------------- */

static gn_status call_run(const gn_function *function)
{
    gn_results results = {.count = 0};
    gn_status status = function->call(arguments, &results);
    if (status == GN_OK)
        status = gn_flush();
    gn_results_clear(&results);
    return status;
}

/* Each request for host memory fails in turn, until the call ends. */
static void call_fail(const char *name, void (*give)(void))
{
    const gn_function *function = row_find(name);
    CHECK(function != NULL);
    if (function == NULL)
        return;
    arguments_make(function->signature, matrix, cpu, arguments);
    give();
    CHECK_OK(call_run(function)); /* what is made once, and kept, is made here */
    size_t live = gni_host_live_count();
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status == GN_ERROR_OUT_OF_HOST_MEMORY; nth++) {
        gni_host_fail_after(nth);
        status = call_run(function);
        gni_host_fail_after(-1);
        if (gni_host_live_count() != live)
            printf("%s, request %ld: %zu blocks of host memory, and then %zu\n", name, nth, live,
                   gni_host_live_count());
        CHECK(gni_host_live_count() == live);
        CHECK(nth < 1000);
    }
    CHECK_OK(status);
}

static void test_norms(void)
{
    call_fail("nn.layer_norm", layer_norm_give);
    call_fail("nn.rms_norm", rms_norm_give);
    call_fail("nn.batch_norm", batch_norm_give);
    call_fail("nn.instance_norm", batch_norm_give);
    call_fail("nn.group_norm", group_norm_give);
    call_fail("nn.local_response_norm", response_give);
}

static void test_random(void)
{
    call_fail("nn.dropout", dropout_give);
    call_fail("nn.dropout1d", dropout_give);
    call_fail("nn.feature_alpha_dropout", dropout_give);
    call_fail("nn.rrelu", random_slope_give);
    call_fail("nn.gumbel_softmax", sample_give);
}

static void test_attention(void)
{
    call_fail("nn.scaled_dot_product_attention", attention_give);
    call_fail("nn.scaled_dot_product_attention", masked_give);
    call_fail("nn.scaled_dot_product_attention", grouped_give);
}

static void test_tables(void)
{
    call_fail("nn.embedding", embedding_give);
    call_fail("nn.embedding_bag", bags_give);
    call_fail("nn.embedding_bag", largest_give);
    call_fail("nn.bilinear", bilinear_give);
}

static void test_losses(void)
{
    call_fail("nn.ctc_loss", sequence_give);
    call_fail("nn.multilabel_margin_loss", labels_give);
}

int main(void)
{
    tensors_make();
    RUN(test_norms);
    RUN(test_random);
    RUN(test_attention);
    RUN(test_tables);
    RUN(test_losses);
    tensors_release();
    return check_result();
}
