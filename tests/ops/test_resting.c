/*
 * test_resting.c: values that are computed again in the backward pass: the same bits, and less memory, whatever happens
 * between. On the CPU; with an argument "cuda" on a GPU or the simulated one.
 *
 * Every case runs twice, with all values stored and with all resting that can, and must give the same statuses and bits.
 */
#include "check.h"

#include "base/host.h"
#include "genesis/genesis.h"
#include "ops/node.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIDE = 64,
    ELEMENTS = SIDE * SIDE,
    NBYTES = ELEMENTS * (int)sizeof(float),
    LEAVES = 3,
};

static gn_device *device, *cpu;
static gn_memory_manager *manager;
static bool is_gpu;

/* ---- tensors --------------------------------------------------------------------------------- */

static gn_tensor *numbers(unsigned seed)
{
    gn_tensor *made = NULL, *moved = NULL;
    void *data = NULL;
    CHECK_OK(gn_tensor_create(GN_FLOAT32, 2, (const int64_t[]){SIDE, SIDE}, cpu, &made));
    CHECK_OK(gn_tensor_get_data(made, &data));
    for (int i = 0; i < ELEMENTS; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)data)[i] = 0.1f + 0.8f * (float)(seed >> 8) / (float)(1 << 24);
    }
    if (is_gpu) {
        CHECK_OK(gn_tensor_to(made, device, &moved));
    } else { /* memory whose address nobody has */
        CHECK_OK(gn_cast(made, GN_FLOAT32, &moved));
        CHECK_OK(gn_flush());
    }
    gn_tensor_release(made);
    return moved;
}

static gn_tensor *leaf(unsigned seed)
{
    gn_tensor *made = numbers(seed);
    CHECK_OK(gn_tensor_set_requires_gradient(made, true));
    return made;
}

static void bits_of(gn_tensor *tensor, float *to)
{
    gn_tensor *copy = NULL;
    void *data = NULL;
    bool was_on = gn_set_gradients(false);
    CHECK_OK(gn_cast(tensor, GN_FLOAT32, &copy));
    if (is_gpu) {
        gn_tensor *moved = NULL;
        CHECK_OK(gn_tensor_to(copy, cpu, &moved));
        gn_tensor_release(copy);
        copy = moved;
    }
    CHECK_OK(gn_tensor_get_data(copy, &data));
    memcpy(to, data, (size_t)gn_tensor_get_count(tensor) * sizeof *to);
    gn_tensor_release(copy);
    (void)gn_set_gradients(was_on);
}

static gn_operand number(double value)
{
    return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = value}};
}

static gn_operand of(gn_tensor *tensor)
{
    return (gn_operand){.tensor = tensor};
}

/* Results of operations; NULL once one has failed. */
static _Thread_local gn_status failed;

static gn_tensor *result_of(gn_status status, gn_tensor *made)
{
    failed = failed == GN_OK ? status : failed;
    return status == GN_OK ? made : NULL; /* NULL as well where an operand is */
}

static gn_tensor *binary(gn_op op, gn_tensor *a, gn_operand b)
{
    gn_tensor *made = NULL;
    if (a == NULL)
        return NULL;
    gn_status status = gn_elementwise(op, (const gn_operand[]){of(a), b}, &made);
    return result_of(status, made);
}

static gn_tensor *unary(gn_op op, gn_tensor *a)
{
    return binary(op, a, number(0)); /* which reads the first operand alone */
}

static gn_tensor *product(gn_tensor *a, gn_tensor *b)
{
    gn_tensor *made = NULL;
    gn_status status = a != NULL && b != NULL ? gn_matmul(a, b, &made) : failed;
    return result_of(status, made);
}

static gn_tensor *sum(gn_tensor *a)
{
    gn_tensor *made = NULL;
    gn_status status = a != NULL ? gn_reduce(GN_REDUCE_SUM, a, 0, false, &made) : failed;
    return result_of(status, made);
}

/* The same, and the operand goes. */
static gn_tensor *then(gn_tensor *made, gn_tensor *operand)
{
    gn_tensor_release(operand);
    return made;
}

static uint64_t live_bytes(void)
{
    gn_memory_statistics statistics;
    CHECK_OK(gn_flush());
    CHECK_OK(gn_memory_get_statistics(manager, &statistics));
    return statistics.live_bytes;
}

/* ---- a network, and what disturbs it ------------------------------------------------------------ */

struct world {
    gn_tensor *leaves[LEAVES];
    gn_tensor *shift, *factor; /* an operand that no rule saves, and one that is saved */
    gn_tensor *loss;
};

static void world_init(struct world *world)
{
    memset(world, 0, sizeof *world);
    for (unsigned i = 0; i < LEAVES; i++)
        world->leaves[i] = leaf(i + 1);
    world->shift = numbers(11);
    world->factor = numbers(12);
}

static void world_deinit(struct world *world)
{
    for (int i = 0; i < LEAVES; i++)
        gn_tensor_release(world->leaves[i]);
    gn_tensor_release(world->shift);
    gn_tensor_release(world->factor);
    gn_tensor_release(world->loss);
}

/* Values that are saved and those that are not, some read by a product. Nothing but the loss is held at the end. */
static gn_status forward(struct world *world)
{
    failed = GN_OK;
    gn_tensor *x = binary(GN_OP_ADD, world->leaves[0], of(world->shift));
    x = then(unary(GN_OP_SIN, x), x);
    x = then(binary(GN_OP_MULTIPLY, x, of(world->leaves[1])), x);
    x = then(unary(GN_OP_EXP, x), x);
    x = then(product(x, world->leaves[2]), x);
    x = then(binary(GN_OP_MULTIPLY, x, number(0.01)), x);
    x = then(unary(GN_OP_TANH, x), x);
    x = then(binary(GN_OP_MULTIPLY, x, of(world->factor)), x);
    gn_tensor *square = x != NULL ? binary(GN_OP_MULTIPLY, x, of(x)) : NULL;
    gn_tensor_release(x);
    world->loss = then(sum(square), square);
    return failed;
}

/* What a case gives: statuses, and the gradients of the leaves. */
struct outcome {
    gn_status statuses[4];
    int count;
    float gradients[LEAVES][ELEMENTS];
    uint64_t kept; /* bytes that the graph holds */
};

static void note(struct outcome *outcome, gn_status status)
{
    outcome->statuses[outcome->count++] = status;
}

typedef void (*disturbance)(struct world *world, struct outcome *outcome);

static void outcome_make(disturbance disturb, struct outcome *outcome)
{
    struct world world;
    memset(outcome, 0, sizeof *outcome);
    world_init(&world);
    uint64_t before = live_bytes();
    note(outcome, forward(&world));
    outcome->kept = live_bytes() - before;
    disturb(&world, outcome);
    for (int i = 0; i < LEAVES; i++) {
        gn_tensor *gradient = NULL;
        CHECK_OK(gn_tensor_get_gradient(world.leaves[i], &gradient));
        if (gradient != NULL)
            bits_of(gradient, outcome->gradients[i]);
        gn_tensor_release(gradient);
    }
    world_deinit(&world);
}

/* Compares a case with all values stored and with all resting that can. Nothing rests afterwards. */
static void both_ways(disturbance disturb, const char *name)
{
    static struct outcome stored, resting;
    uint64_t before = live_bytes();
    (void)gni_resting_set_least(SIZE_MAX);
    outcome_make(disturb, &stored);
    (void)gni_resting_set_least(1);
    outcome_make(disturb, &resting);
    bool is_same = stored.count == resting.count &&
                   memcmp(stored.statuses, resting.statuses, sizeof stored.statuses) == 0 &&
                   memcmp(stored.gradients, resting.gradients, sizeof stored.gradients) == 0;
    if (!is_same)
        printf("    %s: statuses %d %d and %d %d\n", name, (int)stored.statuses[1],
               (int)stored.statuses[2], (int)resting.statuses[1], (int)resting.statuses[2]);
    CHECK(is_same);
    CHECK(resting.kept + NBYTES <= stored.kept);
    CHECK(gni_list_is_empty(&gni_resting) && !gn_is_pending());
    CHECK_U64(live_bytes(), before);
    CHECK_U64(gni_node_bytes[device->type], 0);
}

static void backward(struct world *world, struct outcome *outcome)
{
    note(outcome, gn_backward(1, &world->loss, NULL, 0));
}

/* ---- cases --------------------------------------------------------------------------------------- */

static void twice(struct world *world, struct outcome *outcome)
{
    note(outcome, gn_backward(1, &world->loss, NULL, GN_RETAIN_GRAPH));
    note(outcome, gn_backward(1, &world->loss, NULL, 0));
    note(outcome, gn_backward(1, &world->loss, NULL, 0)); /* an error */
    CHECK(outcome->statuses[3] == GN_ERROR_INVALID_VALUE);
}

static void released(struct world *world, struct outcome *outcome)
{
    (void)outcome;
    gn_tensor_release(world->loss);
    world->loss = NULL;
}

static void second_order(struct world *world, struct outcome *outcome)
{
    gn_tensor *first = NULL;
    note(outcome, gn_grad(1, &world->loss, NULL, 1, world->leaves, GN_CREATE_GRAPH, &first));
    gn_tensor *total = sum(first);
    note(outcome, gn_backward(1, &total, NULL, 0));
    gn_tensor_release(first);
    gn_tensor_release(total);
}

static void add_to(gn_tensor *tensor, struct outcome *outcome)
{
    bool was_on = gn_set_gradients(false);
    note(outcome,
         gn_elementwise_into(GN_OP_ADD, (const gn_operand[]){of(tensor), number(0.5)}, tensor));
    (void)gn_set_gradients(was_on);
}

static void shift_is_added_to(struct world *world, struct outcome *outcome)
{
    add_to(world->shift, outcome);
    backward(world, outcome);
    CHECK(outcome->statuses[2] == GN_OK);
}

/* What waits is older than what rests. */
static void shift_is_added_to_late(struct world *world, struct outcome *outcome)
{
    gn_tensor *other = binary(GN_OP_ADD, world->factor, number(1));
    shift_is_added_to(world, outcome);
    gn_tensor_release(other);
}

static void leaf_is_stepped(struct world *world, struct outcome *outcome)
{
    add_to(world->leaves[0], outcome); /* no rule saves it */
    backward(world, outcome);
    CHECK(outcome->statuses[2] == GN_OK);
}

static void saved_leaf_is_stepped(struct world *world, struct outcome *outcome)
{
    add_to(world->leaves[1], outcome);
    backward(world, outcome);
    CHECK(outcome->statuses[2] == GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("changed");
}

static void factor_is_added_to(struct world *world, struct outcome *outcome)
{
    add_to(world->factor, outcome);
    backward(world, outcome);
    CHECK(outcome->statuses[2] == GN_ERROR_INVALID_VALUE);
}

static void shift_is_filled(struct world *world, struct outcome *outcome)
{
    note(outcome, gn_assign(world->shift, number(7)));
    backward(world, outcome);
}

static void shift_is_random(struct world *world, struct outcome *outcome)
{
    gn_generator generator = {.seed = 3};
    note(outcome, gn_random_uniform(world->shift, &generator));
    backward(world, outcome);
}

static void shift_is_a_product(struct world *world, struct outcome *outcome)
{
    note(outcome, gn_matmul_into(world->factor, world->factor, world->shift));
    backward(world, outcome);
}

static void shift_is_indexed(struct world *world, struct outcome *outcome)
{
    gn_tensor *row = NULL;
    CHECK_OK(gn_tensor_select(world->shift, 0, 3, &row));
    note(outcome, gn_assign(row, number(-1)));
    gn_tensor_release(row);
    backward(world, outcome);
}

/* Whoever has the address may write at any time. */
static void shift_escapes(struct world *world, struct outcome *outcome)
{
    void *data = NULL;
    note(outcome, gn_tensor_get_data(world->shift, &data));
    if (!is_gpu)
        memset(data, 0, NBYTES);
    backward(world, outcome);
}

static void shift_becomes_another(struct world *world, struct outcome *outcome)
{
    note(outcome, gn_tensor_become(world->shift, world->factor));
    backward(world, outcome);
}

static void shift_goes(struct world *world, struct outcome *outcome)
{
    gn_tensor_release(world->shift);
    world->shift = NULL;
    backward(world, outcome);
}

static void all_is_flushed(struct world *world, struct outcome *outcome)
{
    gn_memory_statistics first, now;
    CHECK_OK(gn_memory_get_statistics(manager, &first));
    note(outcome, gn_flush());
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK_U64(now.live_bytes, first.live_bytes);
    backward(world, outcome);
}

static void fusion_is_off(struct world *world, struct outcome *outcome)
{
    CHECK_OK(gn_set_fusion(false));
    backward(world, outcome);
    CHECK_OK(gn_set_fusion(true));
}

/* Written between two walks: the second one reads what the first one has read. */
static void written_between_walks(struct world *world, struct outcome *outcome)
{
    note(outcome, gn_backward(1, &world->loss, NULL, GN_RETAIN_GRAPH));
    add_to(world->shift, outcome);
    backward(world, outcome);
    CHECK(outcome->statuses[3] == GN_OK);
}

static void test_cases(void)
{
    static const struct {
        const char *name;
        disturbance disturb;
    } all[] = {
        {"backward", backward},
        {"twice", twice},
        {"released", released},
        {"second order", second_order},
        {"shift is added to", shift_is_added_to},
        {"shift is added to late", shift_is_added_to_late},
        {"leaf is stepped", leaf_is_stepped},
        {"saved leaf is stepped", saved_leaf_is_stepped},
        {"factor is added to", factor_is_added_to},
        {"shift is filled", shift_is_filled},
        {"shift is random", shift_is_random},
        {"shift is a product", shift_is_a_product},
        {"shift is indexed", shift_is_indexed},
        {"shift escapes", shift_escapes},
        {"shift becomes another", shift_becomes_another},
        {"shift goes", shift_goes},
        {"all is flushed", all_is_flushed},
        {"fusion is off", fusion_is_off},
        {"written between walks", written_between_walks},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        both_ways(all[i].disturb, all[i].name);
}

/* ---- memory ---------------------------------------------------------------------------------------- */

/* Of x + c -> sin -> * v -> exp only the inputs stay. A product's operand goes with the last who holds it. */
static void test_what_is_kept(void)
{
    (void)gni_resting_set_least(1);
    struct world world;
    world_init(&world);
    uint64_t before = live_bytes();
    failed = GN_OK;
    gn_tensor *x = binary(GN_OP_MULTIPLY, world.leaves[0], of(world.factor));
    gn_tensor *y = unary(GN_OP_EXP, x);
    gn_tensor_release(x);
    gn_tensor *made = product(y, world.leaves[1]);
    CHECK(gni_tensor_has_recipe(y) && gni_tensor_storage(y) != NULL);
    CHECK_U64(live_bytes(), before + 2 * NBYTES);
    gn_tensor_retain(y);
    gn_tensor_release(y); /* somebody holds it still */
    CHECK(gni_tensor_has_recipe(y));
    gn_tensor_release(y);
    CHECK_U64(live_bytes(), before + NBYTES);
    world.loss = then(sum(made), made);
    CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
    for (int i = 0; i < 2; i++)
        CHECK_OK(gn_tensor_set_gradient(world.leaves[i], NULL));
    gn_tensor_release(world.loss);
    world.loss = NULL;
    CHECK_U64(live_bytes(), before);
    world_deinit(&world);
}

/* A value that the user keeps does not keep what it was made of, once the graph is gone. */
static void test_a_recipe_keeps_nothing_alone(void)
{
    (void)gni_resting_set_least(1);
    uint64_t before = live_bytes();
    gn_tensor *w = leaf(1), *factor = numbers(2);
    failed = GN_OK;
    gn_tensor *x = binary(GN_OP_MULTIPLY, w, of(factor));
    gn_tensor *inner = unary(GN_OP_SIN, x), *y = unary(GN_OP_EXP, inner);
    gn_tensor *loss = sum(y);
    CHECK_OK(gni_tensor_flush(y));
    gn_tensor_release(x);
    gn_tensor_release(inner);
    gn_tensor_release(factor);
    CHECK_OK(gn_backward(1, &loss, NULL, 0));
    gn_tensor_release(loss);
    CHECK_OK(gn_tensor_set_gradient(w, NULL));
    CHECK_U64(live_bytes(), before + 2 * NBYTES); /* w and y */
    gn_tensor_release(w);
    CHECK_U64(live_bytes(), before + NBYTES);
    gn_tensor_release(y);

    w = leaf(1);
    bool was_on = gn_set_gradients(false);
    gn_tensor *copy = binary(GN_OP_MULTIPLY, w, number(2));
    CHECK_OK(gni_tensor_flush(copy));
    gn_tensor_release(w);
    CHECK_U64(live_bytes(), before + NBYTES);
    (void)gn_set_gradients(was_on);
    gn_tensor_release(copy);
    CHECK_U64(live_bytes(), before);
}

/* Of a long chain one value in so many is stored, from which the others follow. */
static void test_a_chain_is_stored_here_and_there(void)
{
    enum {
        LENGTH = 28, /* a program */
        STORED_MOST = 2,
    };
    (void)gni_resting_set_least(1);
    gn_tensor *w = leaf(1);
    uint64_t before = live_bytes();
    failed = GN_OK;
    gn_tensor *x = binary(GN_OP_MULTIPLY, w, number(0.5));
    for (int i = 1; i < LENGTH; i++)
        x = then(unary(GN_OP_SIN, x), x);
    gn_tensor *loss = sum(x);
    gn_tensor_release(x);
    uint64_t kept = live_bytes() - before;
    CHECK(kept >= NBYTES && kept < STORED_MOST * NBYTES + NBYTES / 2);
    CHECK_OK(gn_backward(1, &loss, NULL, 0));
    gn_tensor_release(loss);
    gn_tensor_release(w);
    CHECK(gni_list_is_empty(&gni_resting));
}

/* Nor does a gradient, whose sources rest while it is computed, and are gone then. */
static void test_a_gradient_keeps_nothing(void)
{
    (void)gni_resting_set_least(1);
    gn_tensor *w = leaf(1), *factor = numbers(2);
    uint64_t before = live_bytes();
    failed = GN_OK;
    gn_tensor *x = binary(GN_OP_MULTIPLY, w, of(factor));
    gn_tensor *y = unary(GN_OP_EXP, x), *inner = unary(GN_OP_SIN, y);
    gn_tensor *z = binary(GN_OP_MULTIPLY, inner, of(y)), *loss = sum(z);
    gn_tensor *all[] = {x, y, inner, z};
    for (int i = 0; i < 4; i++)
        gn_tensor_release(all[i]);
    (void)live_bytes();
    CHECK_OK(gn_backward(1, &loss, NULL, 0));
    gn_tensor_release(loss);
    CHECK_U64(live_bytes(), before + NBYTES);
    gn_tensor_release(w);
    gn_tensor_release(factor);
}

/* The operand of two products is computed again once, and stays until the graph lets go of it. */
static void test_two_products(void)
{
    (void)gni_resting_set_least(1);
    gn_tensor *w = leaf(1), *v = leaf(2), *factor = numbers(3);
    failed = GN_OK;
    gn_tensor *y = binary(GN_OP_MULTIPLY, w, of(factor));
    gn_tensor *first = product(y, v), *second = product(y, v);
    gn_tensor *both = binary(GN_OP_MULTIPLY, first, of(second)), *loss = sum(both);
    gn_tensor_release(first);
    gn_tensor_release(second);
    gn_tensor_release(both);
    CHECK(gni_tensor_storage(y) != NULL);
    gn_tensor_release(y); /* which the graph keeps alive */
    CHECK(gni_tensor_storage(y) == NULL && y->node != NULL && y->node->is_resting);
    CHECK_OK(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH));
    CHECK(gni_tensor_storage(y) != NULL && !gni_tensor_has_recipe(y));
    gn_tensor *rest[] = {loss, w, v, factor};
    for (int i = 0; i < 4; i++)
        gn_tensor_release(rest[i]);
    CHECK(gni_list_is_empty(&gni_resting));
}

/* A value that was written to itself is not computed again as it was. */
static void test_a_result_is_written_to(void)
{
    (void)gni_resting_set_least(1);
    gn_tensor *w = leaf(1), *v = leaf(2);
    failed = GN_OK;
    gn_tensor *y = binary(GN_OP_MULTIPLY, w, number(2)), *made = product(y, v), *loss = sum(made);
    CHECK(gni_tensor_has_recipe(y));
    bool was_on = gn_set_gradients(false);
    CHECK_OK(gn_elementwise_into(GN_OP_ADD, (const gn_operand[]){of(y), number(1)}, y));
    (void)gn_set_gradients(was_on);
    gn_tensor_release(y);
    CHECK(gni_tensor_storage(y) != NULL && !gni_tensor_has_recipe(y));
    CHECK_STATUS(gn_backward(1, &loss, NULL, 0), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("changed");
    gn_tensor *rest[] = {loss, made, w, v};
    for (int i = 0; i < 4; i++)
        gn_tensor_release(rest[i]);
    CHECK(gni_list_is_empty(&gni_resting));
}

/* A value rests only where what it reads is not larger. */
static void test_small_values_of_large_ones(void)
{
    (void)gni_resting_set_least(1);
    gn_tensor *w = leaf(1), *noise = numbers(2);
    uint64_t before = live_bytes();
    failed = GN_OK;
    gn_tensor *mask = binary(GN_OP_GREATER, noise, number(0.3));
    gn_tensor *y = binary(GN_OP_MULTIPLY, w, of(mask));
    gn_tensor_release(mask);
    gn_tensor_release(noise);
    CHECK_OK(gni_tensor_flush(y));
    CHECK_U64(live_bytes(),
              before + ELEMENTS); /* y is as large as the noise, and the mask a byte each */
    gn_tensor_release(y);
    gn_tensor_release(w);
}

/* ---- failures ---------------------------------------------------------------------------------------- */

static void gradients_take(struct world *world, float (*to)[ELEMENTS])
{
    for (int i = 0; i < LEAVES; i++) {
        gn_tensor *gradient = NULL;
        CHECK_OK(gn_tensor_get_gradient(world->leaves[i], &gradient));
        CHECK(gradient != NULL);
        if (gradient != NULL)
            bits_of(gradient, to[i]);
        gn_tensor_release(gradient);
        CHECK_OK(gn_tensor_set_gradient(world->leaves[i], NULL));
    }
}

static float expected[LEAVES][ELEMENTS], found[LEAVES][ELEMENTS];

static void expected_make(void)
{
    struct world world;
    (void)gni_resting_set_least(SIZE_MAX);
    world_init(&world);
    CHECK_OK(forward(&world));
    CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
    gradients_take(&world, expected);
    world_deinit(&world);
    (void)gni_resting_set_least(1);
}

static bool is_as_expected(struct world *world)
{
    gradients_take(world, found);
    return memcmp(expected, found, sizeof found) == 0;
}

/* Every allocation of host memory fails in turn. With retain_graph the call can be repeated. Without memory for a recipe
 * all goes well: the end is there when several calls in a row do. */
static void test_failing_host_memory(void)
{
    enum {
        IN_A_ROW = 12
    };
    expected_make();
    gn_status status;
    long nth = 1;
    for (int successes = 0; successes < IN_A_ROW && nth < 10000; nth++) {
        struct world world;
        world_init(&world);
        uint64_t before = live_bytes();
        gni_host_fail_after(nth);
        status = forward(&world);
        if (status == GN_OK)
            status = gn_flush();
        if (status == GN_OK)
            status = gn_backward(1, &world.loss, NULL, GN_RETAIN_GRAPH);
        gni_host_fail_after(-1);
        successes = status == GN_OK ? successes + 1 : 0;
        if (status != GN_OK && world.loss != NULL)
            CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
        if (world.loss != NULL)
            CHECK(is_as_expected(&world));
        gn_tensor_release(world.loss);
        world.loss = NULL;
        CHECK_U64(live_bytes(), before);
        world_deinit(&world);
        CHECK(gni_list_is_empty(&gni_resting));
    }
    CHECK(nth > 50 && nth < 10000);
}

/* Device memory is short while values are computed again. */
static void test_failing_device_memory(void)
{
    if (!is_gpu)
        return;
    gn_memory_config config, tight;
    gn_memory_statistics statistics;
    gn_device_properties properties;
    expected_make();
    CHECK_OK(gn_device_get_properties(device, &properties));
    CHECK_OK(gn_memory_get_config(manager, &config));
    struct world world;
    world_init(&world);
    CHECK_OK(forward(&world));
    (void)live_bytes();
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
    CHECK_OK(gn_memory_get_statistics(manager, &statistics));
    void *rest[64];
    int count = 0;
    tight = config;
    tight.memory_fraction =
        ((double)statistics.reserved_bytes + 1) / (double)properties.total_memory;
    CHECK_OK(gn_memory_configure(manager, &tight));
    for (size_t size = 1 << 20; size >= NBYTES && count < 64;)
        if (gn_memory_alloc(manager, size, NULL, &rest[count]) == GN_OK)
            count++;
        else
            size /= 2;
    gn_status status = gn_backward(1, &world.loss, NULL, GN_RETAIN_GRAPH);
    CHECK(status == GN_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < LEAVES; i++) {
        gn_tensor *gradient = NULL;
        CHECK_OK(gn_tensor_get_gradient(world.leaves[i], &gradient));
        CHECK(gradient == NULL);
    }
    for (int i = 0; i < count; i++)
        CHECK_OK(gn_memory_free(manager, rest[i]));
    CHECK_OK(gn_memory_configure(manager, &config));
    CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
    CHECK(is_as_expected(&world));
    world_deinit(&world);
    CHECK(gni_list_is_empty(&gni_resting));
}

/* ---- threads and processes ------------------------------------------------------------------------- */

enum {
    THREADS = 4,
    TURNS = 20,
};

static void *walk(void *context)
{
    struct world *world = context;
    gn_tensor *results[LEAVES] = {NULL};
    CHECK_OK(gn_grad(1, &world->loss, NULL, LEAVES, world->leaves, GN_RETAIN_GRAPH, results));
    for (int i = 0; i < LEAVES; i++) {
        float own[ELEMENTS];
        if (results[i] == NULL)
            continue;
        bits_of(results[i], own);
        CHECK(memcmp(own, expected[i], sizeof own) == 0);
        gn_tensor_release(results[i]);
    }
    return NULL;
}

static void *flush_often(void *unused)
{
    for (int i = 0; i < TURNS; i++)
        CHECK_OK(gn_flush());
    return unused;
}

/* A write that no walk minds, since what reads the memory is computed before. */
static void *write_shift(void *context)
{
    struct world *world = context;
    CHECK_OK(gn_assign(world->shift, number(5)));
    return NULL;
}

/* Several threads walk one graph while others flush and write. */
static void test_threads(void)
{
    expected_make();
    for (int turn = 0; turn < TURNS; turn++) {
        struct world world;
        pthread_t threads[THREADS + 2];
        world_init(&world);
        CHECK_OK(forward(&world));
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, walk, &world) == 0);
        CHECK(pthread_create(&threads[THREADS], NULL, flush_often, NULL) == 0);
        CHECK(pthread_create(&threads[THREADS + 1], NULL, write_shift, &world) == 0);
        for (int i = 0; i < THREADS + 2; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        world_deinit(&world);
    }
    CHECK(gni_list_is_empty(&gni_resting));
}

static void *step(void *unused)
{
    for (int turn = 0; turn < TURNS; turn++) {
        struct world world;
        world_init(&world);
        CHECK_OK(forward(&world));
        CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
        for (int i = 0; i < LEAVES; i++) {
            gn_tensor *gradient = NULL;
            float own[ELEMENTS];
            CHECK_OK(gn_tensor_get_gradient(world.leaves[i], &gradient));
            bits_of(gradient, own);
            CHECK(memcmp(own, expected[i], sizeof own) == 0);
            gn_tensor_release(gradient);
        }
        world_deinit(&world);
    }
    return unused;
}

/* Each thread has a graph of its own. */
static void test_threads_of_their_own(void)
{
    pthread_t threads[THREADS];
    expected_make();
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, step, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(gni_list_is_empty(&gni_resting));
}

/* A child computes on the CPU what rested when it was forked. */
static void test_fork(void)
{
    if (is_gpu)
        return;
    struct world world;
    expected_make();
    world_init(&world);
    CHECK_OK(forward(&world));
    CHECK_OK(gn_flush());
    pid_t child = fork();
    if (child == 0) {
        bool is_right = gn_backward(1, &world.loss, NULL, 0) == GN_OK && is_as_expected(&world);
        check_exit(is_right ? 0 : 1);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
    CHECK(is_as_expected(&world));
    world_deinit(&world);
}

/* ---- long chains ------------------------------------------------------------------------------------- */

/* A chain of values that could all rest: linear in time, and with bounded recursion. */
static void test_a_long_chain(void)
{
    enum {
        LENGTH = 20000
    };
    (void)gni_resting_set_least(1);
    gn_tensor *w = NULL, *gradient = NULL;
    const int64_t count = 300;
    gn_scalar one = {.kind = GN_FLOAT64, .floating = 1};
    CHECK_OK(gn_full(one, GN_FLOAT32, 1, &count, device, &w));
    CHECK_OK(gn_tensor_set_requires_gradient(w, true));
    failed = GN_OK;
    gn_tensor *x = binary(GN_OP_MULTIPLY, w, number(1));
    for (int i = 0; i < LENGTH; i++)
        x = then(unary(i % 2 == 0 ? GN_OP_SIN : GN_OP_RELU, x), x);
    gn_tensor *loss = then(sum(x), x);
    CHECK_OK(failed);
    CHECK_OK(gn_backward(1, &loss, NULL, 0));
    CHECK_OK(gn_tensor_get_gradient(w, &gradient));
    CHECK(gradient != NULL);
    gn_tensor_release(gradient);
    gn_tensor_release(loss);
    gn_tensor_release(w);
    CHECK(gni_list_is_empty(&gni_resting));
}

/* ---- streams and graphs ------------------------------------------------------------------------------- */

/* The graph is walked, and its inputs are written to, on another stream than it was made on. */
static void another_stream(struct world *world, struct outcome *outcome)
{
    gn_stream *other = NULL, *before;
    CHECK_OK(gn_stream_get_current(device, &before));
    (void)gn_stream_retain(before);
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &other));
    CHECK_OK(gn_stream_set_current(other));
    note(outcome, gn_backward(1, &world->loss, NULL, GN_RETAIN_GRAPH));
    add_to(world->shift, outcome);
    backward(world, outcome);
    CHECK_OK(gn_stream_set_current(before));
    gn_stream_release(other);
    gn_stream_release(before);
}

/* What reads what a replay writes is computed before; what rests in a graph is a part of it. */
static void test_graphs(void)
{
    gn_graph *graph = NULL;
    gn_stream *stream = NULL, *before;
    struct world world, outer;
    expected_make();
    CHECK_OK(gn_stream_get_current(device, &before));
    (void)gn_stream_retain(before);
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    CHECK_OK(gn_stream_set_current(stream));
    world_init(&outer);
    CHECK_OK(forward(&outer));

    world_init(
        &world); /* a whole step in a graph, which also writes to what another graph of operations reads */
    CHECK_OK(forward(&world));
    CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
    CHECK(is_as_expected(&world));
    gn_tensor_release(world.loss);
    CHECK_OK(gn_graph_create(device, &graph));
    CHECK_OK(gn_graph_begin(graph, stream, NULL));
    CHECK_OK(forward(&world));
    CHECK_OK(gn_backward(1, &world.loss, NULL, 0));
    CHECK_OK(gn_assign(outer.shift, number(3)));
    CHECK_OK(gn_graph_end(graph));
    CHECK_OK(gn_graph_replay(graph, stream));
    CHECK(is_as_expected(&world));
    CHECK_OK(gn_backward(1, &outer.loss, NULL, 0));
    CHECK(is_as_expected(&outer));
    gn_tensor_release(outer.loss);

    gn_tensor *shift = numbers(11),
              *put = outer.shift; /* rests before a replay writes to what it reads */
    CHECK_OK(gn_assign(outer.shift, of(shift)));
    CHECK_OK(forward(&outer));
    CHECK_OK(gn_flush());
    CHECK(!gni_list_is_empty(&gni_resting));
    CHECK_OK(gn_graph_replay(graph, stream));
    CHECK_OK(gn_backward(1, &outer.loss, NULL, 0));
    CHECK(is_as_expected(&outer));
    float now[ELEMENTS];
    bits_of(put, now);
    CHECK(now[5] == 3);

    CHECK_OK(gn_graph_reset(graph)); /* a graph stores what rests at its end */
    gn_tensor_release(outer.loss);
    CHECK_OK(gn_graph_begin(graph, stream, NULL));
    CHECK_OK(forward(&outer));
    CHECK(!gni_list_is_empty(&gni_resting) || gn_is_pending());
    CHECK_OK(gn_graph_end(graph));
    CHECK(gni_list_is_empty(&gni_resting) && !gn_is_pending());

    gn_tensor_release(shift);
    world_deinit(&world);
    world_deinit(&outer);
    gn_graph_destroy(graph);
    CHECK_OK(gn_stream_set_current(before));
    gn_stream_release(stream);
    gn_stream_release(before);
    CHECK(gni_list_is_empty(&gni_resting));
}

int main(int argc, char **argv)
{
    is_gpu = argc > 1 && strcmp(argv[1], "cuda") == 0;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    if (gn_device_get(is_gpu ? GN_DEVICE_CUDA : GN_DEVICE_CPU, 0, &device) != GN_OK)
        return CHECK_SKIPPED;
    CHECK_OK(gn_memory_manager_get(device, &manager));
    RUN(test_cases);
    RUN(test_what_is_kept);
    RUN(test_a_recipe_keeps_nothing_alone);
    RUN(test_a_chain_is_stored_here_and_there);
    RUN(test_a_gradient_keeps_nothing);
    RUN(test_two_products);
    RUN(test_a_result_is_written_to);
    RUN(test_small_values_of_large_ones);
    RUN(test_failing_host_memory);
    RUN(test_failing_device_memory);
    RUN(test_threads);
    RUN(test_threads_of_their_own);
    RUN(test_fork);
    RUN(test_a_long_chain);
    if (is_gpu) {
        both_ways(another_stream, "another stream");
        RUN(test_graphs);
    }
    (void)gni_resting_set_least(0);
    return check_result();
}
