/*
 * test_gradient_faults.c: each request for host memory fails in turn, in the forward and in the backward pass of every
 * operation, of every function of the table, and of networks.
 *
 * After a failure the gradients of leaves are as they were and nothing is left. With GN_RETAIN_GRAPH the backward pass can
 * be repeated, and gives the bits of one that did not fail; without it a second one says that the first one failed.
 */
#include "check.h"
#include "function_arguments.h"

#include "base/host.h"
#include "genesis/genesis.h"
#include "ops/expression.h"

#include <string.h>

enum {
    LEAVES = 3,
    ROWS = 4, /* of each leaf, and columns */
    ELEMENTS = ROWS * ROWS,
    NTH_MOST = 20000,
};

static gn_device *cpu;
static gn_tensor *leaves[LEAVES];

/* What is tried: a loss of the leaves. */
typedef gn_tensor *(*network_call)(struct gni_scope *s);

struct gradients {
    double elements[LEAVES][ELEMENTS];
};

/* ---- leaves ------------------------------------------------------------------------------------ */

static double *data_of(gn_tensor *tensor)
{
    void *data = NULL;
    CHECK_OK(gn_tensor_get_data(tensor, &data));
    return data;
}

/* Numbers between 0.3 and 1.7 that do not repeat. */
static gn_tensor *leaf_make(unsigned seed)
{
    gn_tensor *made = NULL;
    CHECK_OK(gn_tensor_create(GN_FLOAT64, 2, (const int64_t[]){ROWS, ROWS}, cpu, &made));
    for (int i = 0; i < ELEMENTS; i++) {
        seed = seed * 1664525u + 1013904223u;
        data_of(made)[i] = 0.3 + 1.4 * (seed >> 8) / (double)(1 << 24);
    }
    CHECK_OK(gn_tensor_set_requires_gradient(made, true));
    return made;
}

/* Every leaf has a gradient of ones. */
static void gradients_begin(void)
{
    for (int i = 0; i < LEAVES; i++) {
        gn_tensor *ones = NULL;
        CHECK_OK(gn_tensor_create(GN_FLOAT64, 2, (const int64_t[]){ROWS, ROWS}, cpu, &ones));
        for (int k = 0; k < ELEMENTS; k++)
            data_of(ones)[k] = 1;
        CHECK_OK(gn_tensor_set_gradient(leaves[i], ones));
        gn_tensor_release(ones);
    }
}

static void gradients_end(struct gradients *found)
{
    for (int i = 0; i < LEAVES; i++) {
        gn_tensor *gradient = NULL;
        CHECK_OK(gn_tensor_get_gradient(leaves[i], &gradient));
        CHECK(gradient != NULL);
        if (gradient != NULL)
            memcpy(found->elements[i], data_of(gradient), sizeof found->elements[i]);
        gn_tensor_release(gradient);
        CHECK_OK(gn_tensor_set_gradient(leaves[i], NULL));
    }
}

static bool is_as_before(const struct gradients *found)
{
    for (int i = 0; i < LEAVES; i++)
        for (int k = 0; k < ELEMENTS; k++)
            if (found->elements[i][k] != 1)
                return false;
    return true;
}

/* ---- one task ------------------------------------------------------------------------------------ */

static gn_status forward(network_call network, gn_tensor **loss)
{
    struct gni_scope s = {0};
    gn_tensor *made = network(&s);
    return gni_scope_end(&s, made, loss);
}

/* A backward pass onto ones. */
static gn_status backward(gn_tensor *loss, unsigned flags, struct gradients *found)
{
    gradients_begin();
    gn_status status = gn_backward(1, &loss, NULL, flags);
    gradients_end(found);
    return status;
}

/* A failed pass is repeated: it gives what it would have given, or says that it cannot. */
static void repeat(gn_tensor *loss, unsigned flags, const struct gradients *expected)
{
    struct gradients again;
    gn_status status = backward(loss, GN_RETAIN_GRAPH, &again);
    if (status == GN_OK) { /* without GN_RETAIN_GRAPH: the pass has failed before it began */
        CHECK(memcmp(&again, expected, sizeof again) == 0);
        return;
    }
    CHECK((flags & GN_RETAIN_GRAPH) == 0);
    CHECK_U64(status, GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("failed");
    CHECK(is_as_before(&again));
}

/* The forward and the backward pass with the nth request failing; whether none did. */
static bool attempt(network_call network, long nth, unsigned flags,
                    const struct gradients *expected)
{
    struct gradients found;
    gn_tensor *loss = NULL;
    gradients_begin();
    gni_host_fail_after(nth);
    gn_status status = forward(network, &loss);
    bool is_made = status == GN_OK;
    if (is_made)
        status = gn_backward(1, &loss, NULL, flags);
    gni_host_fail_after(-1);
    gradients_end(&found);
    if (status == GN_OK)
        CHECK(memcmp(&found, expected, sizeof found) == 0);
    else
        CHECK(is_as_before(&found));
    if (is_made && status != GN_OK)
        repeat(loss, flags, expected);
    gn_tensor_release(loss);
    return status == GN_OK;
}

/* Whether a task has a gradient: else there is nothing to try. Its gradients, twice, which must be the same. */
static bool task_begin(network_call network, struct gradients *expected)
{
    struct gradients again;
    gn_tensor *loss = NULL;
    if (forward(network, &loss) != GN_OK)
        return false;
    bool is_one =
        gn_tensor_requires_gradient(loss) && backward(loss, GN_RETAIN_GRAPH, expected) == GN_OK;
    gn_tensor_release(loss);
    loss = NULL;
    if (!is_one || forward(network, &loss) != GN_OK)
        return false;
    CHECK_OK(backward(loss, 0, &again));
    gn_tensor_release(loss);
    return memcmp(expected, &again, sizeof again) == 0; /* else it has random numbers inside */
}

static bool task_try(const char *name, network_call network)
{
    struct gradients expected;
    if (!task_begin(network, &expected))
        return false;
    for (unsigned flags = 0; flags <= GN_RETAIN_GRAPH; flags += GN_RETAIN_GRAPH) {
        int failures = check_failures;
        bool is_done = false;
        long nth = 1;
        for (; !is_done && nth < NTH_MOST && check_failures == failures; nth++) {
            size_t live = gni_host_live_count();
            is_done = attempt(network, nth, flags, &expected);
            CHECK_U64(gni_host_live_count(), live);
        }
        if (!is_done)
            fprintf(stderr, "    %s: request %ld, flags %u\n", name, nth - 1, flags);
    }
    return true;
}

/* ---- operations ------------------------------------------------------------------------------------ */

static gn_op op; /* of the next ones */
static gn_reduction reduction;
static const gn_function *row;

static const int arities[GN_OP_COUNT] = {
#define ARITY(NAME, c_name, arity, ...) arity,
    GN_OP_LIST(ARITY)
#undef ARITY
};

static const char *const op_names[GN_OP_COUNT] = {
#define NAME_OF(NAME, c_name, ...) #c_name,
    GN_OP_LIST(NAME_OF)
#undef NAME_OF
};

static gn_tensor *sum_of(struct gni_scope *s, gn_tensor *x)
{
    return gni_reduce(s, GN_REDUCE_SUM, x, 0, false);
}

static gn_tensor *an_operation(struct gni_scope *s)
{
    gn_operand operands[LEAVES];
    for (int i = 0; i < LEAVES; i++)
        operands[i] = gni_of(leaves[i]);
    gn_tensor *condition = gni_binary(s, GN_OP_GREATER, gni_of(leaves[1]), gni_of(leaves[2]));
    if (op == GN_OP_WHERE)
        operands[0] = gni_of(condition);
    return sum_of(s, gni_elementwise(s, op, arities[op], operands));
}

/* In place, which keeps a copy of what is overwritten. */
static gn_tensor *an_operation_in_place(struct gni_scope *s)
{
    gn_operand operands[LEAVES] = {{0}, gni_of(leaves[1]), gni_of(leaves[2])};
    gn_tensor *target = gni_binary(s, GN_OP_MULTIPLY, gni_of(leaves[0]), gni_of(leaves[2]));
    operands[0] = gni_of(target);
    if (gni_scope_is_ok(s))
        s->status = gn_elementwise_into(op, operands, target);
    return sum_of(s, target);
}

static gn_tensor *a_reduction(struct gni_scope *s)
{
    gn_tensor *rows = gni_reduce(s, reduction, leaves[0], 2, false);
    return sum_of(s, gni_binary(s, GN_OP_MULTIPLY, gni_of(rows), gni_of(leaves[1])));
}

/* A row of the table of functions, given what is no leaf, so that it may be changed in place. */
static gn_tensor *a_function(struct gni_scope *s)
{
    gn_argument arguments[PARAMETERS_MOST];
    gn_results results = {.count = 0};
    gn_tensor *x = gni_binary(s, GN_OP_MULTIPLY, gni_of(leaves[0]), gni_of(leaves[1])),
              *total = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    arguments_make(row->signature, x, cpu, arguments);
    s->status = row->call(arguments, &results);
    for (int i = 0; i < results.count && results.tensors != NULL && gni_scope_is_ok(s); i++) {
        if (!gn_tensor_requires_gradient(results.tensors[i]))
            continue;
        gn_tensor *one = sum_of(s, results.tensors[i]);
        total = total == NULL ? one : gni_binary(s, GN_OP_ADD, gni_of(total), gni_of(one));
    }
    gn_results_clear(&results);
    if (total == NULL && gni_scope_is_ok(s))
        gni_scope_fail(s, GN_ERROR_UNSUPPORTED, "%s has no gradient", row->name);
    return total;
}

/* ---- networks ------------------------------------------------------------------------------------ */

static gn_tensor *softmax_of(struct gni_scope *s, gn_tensor *x, int dim, bool is_log)
{
    gn_tensor *made = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_softmax(x, dim, is_log, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

/* Two layers and the cross entropy of them. */
static gn_tensor *perceptron(struct gni_scope *s)
{
    gn_tensor *hidden = gni_unary(s, GN_OP_GELU, gni_matmul(s, leaves[0], leaves[1]));
    gn_tensor *logits = gni_matmul(s, hidden, leaves[2]);
    gn_tensor *places = gni_scope_is_ok(s) ? gni_arange(s, ROWS, cpu) : NULL, *chosen = NULL;
    gn_tensor *chances = softmax_of(s, logits, 1, true);
    places = gni_scope_is_ok(s) ? gni_unsqueeze(s, places, 1) : NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_gather(chances, 1, places, &chosen) : s->status;
    chosen = gni_scope_keep(s, status, chosen);
    return gni_unary(s, GN_OP_NEGATIVE, sum_of(s, chosen));
}

/* Attention with a mask: softmax(q k^T + mask) v, of views with heads. */
static gn_tensor *attention(struct gni_scope *s)
{
    const int64_t heads[] = {ROWS, 2, ROWS / 2};
    gn_tensor *parts[LEAVES];
    for (int i = 0; i < LEAVES; i++) {
        gn_tensor *view = gni_scope_is_ok(s) ? gni_view(s, leaves[i], 3, heads) : NULL;
        parts[i] = gni_scope_is_ok(s) ? gni_transpose(s, view, 0, 1) : NULL;
    }
    gn_tensor *turned = gni_scope_is_ok(s) ? gni_transpose(s, parts[1], 1, 2) : NULL;
    gn_tensor *scores = gni_scope_is_ok(s) ? gni_matmul(s, parts[0], turned) : NULL;
    gn_tensor *k = gni_scope_is_ok(s) ? gni_arange(s, ROWS, cpu) : NULL;
    gn_tensor *q = gni_scope_is_ok(s) ? gni_unsqueeze(s, k, 1) : NULL;
    gn_tensor *is_later = gni_binary(s, GN_OP_GREATER, gni_of(k), gni_of(q));
    scores = gni_where(s, is_later, gni_floating(-1e9), gni_of(scores));
    gn_tensor *shares = softmax_of(s, scores, 2, false);
    gn_tensor *made = gni_scope_is_ok(s) ? gni_matmul(s, shares, parts[2]) : NULL;
    return sum_of(s, gni_unary(s, GN_OP_SQUARE, made));
}

/* Writes to views of what was made, and to places by an index. */
static gn_tensor *writes(struct gni_scope *s)
{
    gn_tensor *x = gni_unary(s, GN_OP_EXP, leaves[0]);
    gn_tensor *row_of_x = gni_scope_is_ok(s) ? gni_select(s, x, 0, 1) : NULL;
    gn_tensor *column = gni_scope_is_ok(s) ? gni_select(s, x, 1, 2) : NULL;
    gn_tensor *other = gni_scope_is_ok(s) ? gni_select(s, leaves[1], 0, 0) : NULL;
    const gn_operand both[] = {gni_of(row_of_x), gni_of(other)};
    if (gni_scope_is_ok(s))
        s->status = gn_elementwise_into(GN_OP_MULTIPLY, both, row_of_x);
    gn_tensor *index = gni_scope_is_ok(s) ? gni_arange(s, 2, cpu) : NULL;
    gn_tensor *some = gni_scope_is_ok(s) ? gni_narrow(s, leaves[2], 0, 0, 2) : NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_index_put(x, 0, index, gni_of(some), true);
    gn_tensor *made = gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_of(x));
    return sum_of(s, gni_binary(s, GN_OP_MULTIPLY, gni_of(made), gni_of(column)));
}

/* A loss with a gradient in it, which was made with a graph. */
static gn_tensor *penalty(struct gni_scope *s)
{
    gn_tensor *loss = sum_of(s, gni_unary(s, GN_OP_TANH, gni_matmul(s, leaves[0], leaves[1])));
    gn_tensor *found[2] = {NULL};
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gn_grad(1, &loss, NULL, 2, leaves, GN_CREATE_GRAPH, found);
    for (int i = 0; i < 2; i++)
        found[i] = gni_scope_keep(s, status, found[i]);
    gn_tensor *squares = gni_binary(s, GN_OP_MULTIPLY, gni_of(found[0]), gni_of(found[1]));
    return gni_binary(s, GN_OP_ADD, gni_of(sum_of(s, squares)), gni_of(loss));
}

/* Sums along rows, parts that are joined, and the largest ones. */
static gn_tensor *rows_and_parts(struct gni_scope *s)
{
    gn_tensor *sums = gni_scope_is_ok(s) ? gni_cumsum(s, leaves[0], 1) : NULL;
    gn_tensor *both[] = {sums, leaves[1]};
    gn_tensor *joined = gni_scope_is_ok(s) ? gni_cat(s, 2, both, 1) : NULL, *sorted = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_topk(joined, 3, 1, true, &sorted, NULL) : s->status;
    sorted = gni_scope_keep(s, status, sorted);
    gn_tensor *most =
        gni_scope_is_ok(s) ? gni_reduce(s, GN_REDUCE_MAXIMUM, leaves[2], 1, true) : NULL;
    gn_tensor *part = gni_scope_is_ok(s) ? gni_narrow(s, most, 1, 0, 3) : NULL;
    return sum_of(s, gni_binary(s, GN_OP_DIVIDE, gni_of(sorted), gni_of(part)));
}

/* ---- tests ------------------------------------------------------------------------------------------ */

static void test_operations(void)
{
    int tried = 0;
    for (int i = 0; i < GN_OP_COUNT; i++) {
        op = (gn_op)i;
        tried += task_try(op_names[i], an_operation);
        if (arities[i] > 1 && op != GN_OP_WHERE)
            (void)task_try(op_names[i], an_operation_in_place);
    }
    printf("%d operations\n", tried);
    CHECK(tried > 60);
}

static void test_reductions(void)
{
    for (int i = 0; i < GN_REDUCTION_COUNT; i++) {
        reduction = (gn_reduction)i;
        (void)task_try("a reduction", a_reduction);
    }
}

static void test_functions(void)
{
    int tried = 0, rows = 0;
    for (int i = 0; (row = gn_function_table(i)) != NULL; i++)
        for (; row->name != NULL; row++, rows++)
            if (strstr(row->signature, "generator") == NULL) /* gives the same each time */
                tried += task_try(row->name, a_function);
    printf("%d of %d functions\n", tried, rows);
    CHECK(tried > rows / 3);
}

static void test_networks(void)
{
    CHECK(task_try("perceptron", perceptron));
    CHECK(task_try("attention", attention));
    CHECK(task_try("penalty", penalty));
    CHECK(task_try("rows_and_parts", rows_and_parts));
    CHECK(task_try("writes", writes));
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    for (int i = 0; i < LEAVES; i++)
        leaves[i] = leaf_make((unsigned)i + 1);
    RUN(test_networks);
    RUN(test_reductions);
    RUN(test_operations);
    RUN(test_functions);
    for (int i = 0; i < LEAVES; i++)
        gn_tensor_release(leaves[i]);
    return check_result();
}
