/*
 * test_pending.c: what waits: which pending values a flush or a write computes, in which works, and how much may wait.
 */
#include "check.h"

#include "genesis/genesis.h"

#include "ops/node.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static gn_device *cpu;

static gn_tensor *filled(int64_t count, double value)
{
    gn_tensor *tensor = NULL;
    gn_scalar number = {.kind = GN_FLOAT64, .floating = value};
    CHECK_OK(gn_full(number, GN_FLOAT32, 1, &count, cpu, &tensor));
    CHECK_OK(gn_flush());
    return tensor;
}

/* An operation with a number, which waits. */
static gn_tensor *made(gn_op op, gn_tensor *tensor, double value)
{
    gn_operand operands[] = {{.tensor = tensor},
                             {.scalar = {.kind = GN_FLOAT64, .floating = value}}};
    gn_tensor *result = NULL;
    CHECK_OK(gn_elementwise(op, operands, &result));
    return result;
}

static void add_in_place(gn_tensor *tensor, double value)
{
    gn_operand operands[] = {{.tensor = tensor},
                             {.scalar = {.kind = GN_FLOAT64, .floating = value}}};
    CHECK_OK(gn_elementwise_into(GN_OP_ADD, operands, tensor));
}

static bool is_waiting(const gn_tensor *tensor)
{
    return tensor->node != NULL;
}

static double first_of(gn_tensor *tensor)
{
    gn_scalar item = {0};
    CHECK_OK(gn_tensor_get_item(tensor, (const int64_t[]){0}, &item));
    return item.floating;
}

static void release_all(gn_tensor **tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gn_tensor_release(tensors[i]);
}

/* A write computes what reads the old values, and nothing else. */
static void test_a_write_computes_its_readers_only(void)
{
    gn_tensor *x = filled(5000, 1), *y = filled(5000, 2);
    gn_tensor *of_x = made(GN_OP_ADD, x, 10), *of_y = made(GN_OP_ADD, y, 10);
    gn_tensor *of_both = made(GN_OP_MULTIPLY, of_x, 2);
    CHECK(is_waiting(of_x) && is_waiting(of_y) && is_waiting(of_both));
    add_in_place(x, 100);
    CHECK(!is_waiting(of_x) && is_waiting(of_y));
    CHECK(gni_list_is_empty(&gni_tensor_storage(x)->pending));
    CHECK(first_of(of_x) == 11 && first_of(of_both) == 22 && first_of(x) == 101);
    CHECK(is_waiting(of_y) && first_of(of_y) == 12);
    release_all((gn_tensor *[]){x, y, of_x, of_y, of_both}, 5);
    CHECK(!gn_is_pending());
}

/* What needs a reader is computed with it, so that intermediate results stay in registers. */
static void test_the_newest_takes_along_what_it_needs(void)
{
    gn_tensor *x = filled(5000, 1);
    gn_tensor *step = made(GN_OP_ADD, x, 1), *last = made(GN_OP_MULTIPLY, step, 3);
    const struct gni_node *inner = step->node;
    gn_tensor_release(step);
    CHECK(last->node->operands[0].node == inner);
    add_in_place(x, 5);
    CHECK(!is_waiting(last) && !gn_is_pending()); /* nothing is left of the step */
    CHECK(first_of(last) == 6);
    gn_tensor_release(last);

    gn_tensor *kept = made(GN_OP_ADD, x, 1); /* 7 */
    gn_tensor *older = made(GN_OP_MULTIPLY, kept, 2), *newer = made(GN_OP_MULTIPLY, kept, 3);
    add_in_place(x, 1);
    CHECK(!is_waiting(kept) && !is_waiting(newer) && is_waiting(older));
    CHECK(!gni_list_is_empty(&gni_tensor_storage(kept)->pending)); /* it reads that now */
    add_in_place(kept, 100);
    CHECK(!is_waiting(older));
    CHECK(first_of(older) == 14 && first_of(newer) == 21 && first_of(kept) == 107);
    release_all((gn_tensor *[]){x, kept, older, newer}, 4);
}

static void test_a_flush_computes_all(void)
{
    enum {
        COUNT = 500
    };
    gn_tensor *x = filled(3000, 1), *all[COUNT];
    for (int i = 0; i < COUNT; i++)
        all[i] = made(GN_OP_ADD, i % 3 == 1 ? all[i - 1] : x, i);
    for (int i = 0; i < COUNT; i += 7) {
        gn_tensor_release(all[i]);
        all[i] = NULL;
    }
    CHECK(gn_is_pending());
    CHECK_OK(gn_flush());
    CHECK(!gn_is_pending() && gni_list_is_empty(&gni_nodes));
    CHECK(gni_list_is_empty(&gni_tensor_storage(x)->pending) && gni_node_bytes[cpu->type] == 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(all[i] == NULL || first_of(all[i]) == (i % 3 == 1 ? 2 * i : 1 + i));
    release_all(all, COUNT);
    gn_tensor_release(x);
}

/* The oldest are computed when many wait. */
static void test_few_wait(void)
{
    enum {
        COUNT = 10000,
        MOST = 4096,
    };
    static gn_tensor *all[COUNT];
    gn_tensor *x = filled(1000, 1); /* fewer elements would not wait */
    for (int i = 0; i < COUNT; i++) {
        all[i] = made(GN_OP_ADD, x, i);
        CHECK(atomic_load(&gni_node_count) <= MOST);
    }
    CHECK(!is_waiting(all[0]));
    CHECK(is_waiting(all[COUNT - 1]));
    CHECK(is_waiting(all[COUNT - MOST]));
    CHECK_OK(gn_flush());
    for (int i = 0; i < COUNT; i++)
        CHECK(first_of(all[i]) == i + 1);
    release_all(all, COUNT);
    gn_tensor_release(x);
}

/* So they are when much memory is kept for what waits; an expression that is just being built is not torn apart. */
static void test_little_memory_is_kept(void)
{
    enum {
        ELEMENTS = 64 << 20, /* of 4 bytes: memory that was never written takes none */
        BYTES = 4 * ELEMENTS,
        COUNT_MOST = 256,
    };
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(cpu, &properties));
    uint64_t most = properties.total_memory / 8;
    most = most < (UINT64_C(1) << 30) ? UINT64_C(1) << 30 : most;
    int64_t count = (int64_t)(most / BYTES) + 3;
    if (count > COUNT_MOST)
        return;
    gn_tensor *all[COUNT_MOST];
    for (int64_t i = 0; i < count; i++) {
        gn_tensor *large = NULL;
        CHECK_OK(gn_tensor_create(GN_FLOAT32, 1, (const int64_t[]){ELEMENTS}, cpu, &large));
        all[i] = made(GN_OP_LESS, large, -1);
        CHECK(gni_node_bytes[cpu->type] < most + BYTES);
        gn_tensor_release(large); /* which lives on while it is needed */
    }
    CHECK(!is_waiting(all[0]) && !is_waiting(all[1]) && is_waiting(all[3]));
    release_all(all, (size_t)count);
    CHECK(!gn_is_pending() && gni_node_bytes[cpu->type] == 0);

    gn_tensor *x = NULL;
    CHECK_OK(gn_tensor_create(GN_FLOAT32, 2, (const int64_t[]){count, ELEMENTS}, cpu, &x));
    gn_tensor *first = made(GN_OP_LESS, x, -1), *second = made(GN_OP_LOGICAL_OR, first, 0);
    CHECK(gni_node_bytes[cpu->type] > most && is_waiting(first) && is_waiting(second));
    release_all((gn_tensor *[]){x, first, second}, 3);
    CHECK(!gn_is_pending());
}

/* A chain whose steps nobody holds is computed piece by piece. */
static void test_a_long_chain(void)
{
    gn_tensor *x = filled(1000, 0);
    for (int i = 0; i < 20000; i++) {
        gn_tensor *next = made(GN_OP_ADD, x, 1);
        gn_tensor_release(x);
        x = next;
        CHECK(atomic_load(&gni_node_count) <= GNI_PROGRAM_NODES_MOST + 2);
    }
    CHECK(first_of(x) == 20000);
    gn_tensor_release(x);
    CHECK(!gn_is_pending());
}

/* A value that is too large to be stored waits as long as nobody asks for it, and disturbs nobody. */
static void test_what_is_too_large_waits(void)
{
    enum {
        SIDE = 1 << 20,
        OTHERS = 5000,
    };
    static gn_tensor *others[OTHERS];
    gn_tensor *x = filled(SIDE, 1), *column, *huge = NULL, *small = filled(1000, 1);
    CHECK_OK(gn_tensor_view(x, 2, (const int64_t[]){SIDE, 1}, &column));
    gn_operand operands[] = {{.tensor = column}, {.tensor = x}};
    CHECK_OK(gn_elementwise(GN_OP_SUBTRACT, operands, &huge)); /* 4 TiB */
    for (int i = 0; i < OTHERS; i++)
        others[i] = made(GN_OP_ADD, small, i);
    CHECK(is_waiting(huge) && !is_waiting(others[0]) && is_waiting(others[OTHERS - 1]));
    gn_tensor_release(huge);
    CHECK_OK(gn_flush());
    for (int i = 0; i < OTHERS; i++)
        CHECK(first_of(others[i]) == i + 1);
    release_all(others, OTHERS);
    release_all((gn_tensor *[]){x, column, small}, 3);
}

/* ---- a write that waits for what another thread computes --------------------------------------- */

static _Thread_local bool is_held; /* this thread computes slowly */
static sem_t is_computing, may_end;

static void *slow_begin(void)
{
    if (is_held) {
        sem_post(&is_computing);
        sem_wait(&may_end);
    }
    return NULL;
}

static void slow_end(void *state)
{
    (void)state;
}

struct write {
    gn_tensor *from, *to;
};

static void *compute_slowly(void *tensor)
{
    is_held = true;
    CHECK(first_of(tensor) == 2);
    return NULL;
}

static void *write_through(void *context)
{
    const struct write *write = context;
    CHECK_OK(gn_assign(write->to, (gn_operand){.tensor = write->from}));
    return NULL;
}

static void *flush_all(void *unused)
{
    CHECK_OK(gn_flush());
    return unused;
}

/* Whoever computes the value of a write writes it: a flush of another thread may come first. */
static void test_a_write_is_not_lost(void)
{
    enum {
        TURNS = 40,
        ELEMENTS = 20000, /* for which hooks are called */
    };
    const struct timespec moment = {.tv_nsec = 300000};
    CHECK(sem_init(&is_computing, 0, 0) == 0 && sem_init(&may_end, 0, 0) == 0);
    gn_set_wait_hooks(slow_begin, slow_end);
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_t threads[4];
        gn_tensor *x = filled(ELEMENTS, 1), *to = filled(ELEMENTS, 0);
        gn_tensor *first = made(GN_OP_ADD, x, 1), *second = made(GN_OP_MULTIPLY, first, 3);
        struct write write = {.from = second, .to = to};
        CHECK(pthread_create(&threads[0], NULL, compute_slowly, first) == 0);
        sem_wait(&is_computing);
        CHECK(pthread_create(&threads[1], NULL, write_through, &write) == 0);
        (void)nanosleep(&moment, NULL);
        CHECK(pthread_create(&threads[2], NULL, flush_all, NULL) == 0);
        CHECK(pthread_create(&threads[3], NULL, flush_all, NULL) == 0);
        (void)nanosleep(&moment, NULL);
        sem_post(&may_end);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(first_of(to) == 6 && first_of(second) == 6);
        release_all((gn_tensor *[]){x, to, first, second}, 4);
    }
    gn_set_wait_hooks(NULL, NULL);
    sem_destroy(&is_computing);
    sem_destroy(&may_end);
    CHECK(!gn_is_pending() && gni_node_bytes[cpu->type] == 0);
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    RUN(test_a_write_computes_its_readers_only);
    RUN(test_the_newest_takes_along_what_it_needs);
    RUN(test_a_flush_computes_all);
    RUN(test_few_wait);
    RUN(test_little_memory_is_kept);
    RUN(test_a_long_chain);
    RUN(test_what_is_too_large_waits);
    RUN(test_a_write_is_not_lost);
    return check_result();
}
