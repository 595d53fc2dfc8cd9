/*
 * test_movable.c: the memory of tensors moves when memory runs out, as long as nobody outside knows its address.
 *
 *     test_movable cuda     needs the policy `virtual`
 *
 * Tensors of 1 MiB lie two on a page. Of some pages the first half is kept, of others the second half: two such pages
 * can be folded into one. A request that needs the difference succeeds only if they are.
 */
#include "pool_suite.h"

#include <pthread.h>

struct suite suite;

enum {
    PAGES = 16,
    TENSORS = 2 * PAGES,
    ELEMENTS = 1 << 18, /* of float32: 1 MiB */
    LARGE = 6 << 20,    /* 24 MiB */
    PART = 1000,        /* elements that kernels work on, at both ends */
    THREADS = 4,
    ROUNDS = 6,
};

static const uint64_t limit = 40 * MIB;

/* ---- tensors --------------------------------------------------------------------------------- */

static gn_operand number_of(double value)
{
    return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = value}};
}

static gn_status tensor_try(int64_t count, gn_tensor **tensor)
{
    return gn_tensor_create(GN_FLOAT32, 1, &count, suite.device, tensor);
}

/* The first or the last elements. */
static gn_tensor *part_of(gn_tensor *tensor, bool is_last)
{
    gn_tensor *part = NULL;
    int64_t start = is_last ? gn_tensor_get_count(tensor) - PART : 0;
    CHECK_OK(gn_tensor_slice(tensor, 0, start, 1, PART, &part));
    return part;
}

static void part_set(gn_tensor *tensor, bool is_last, double value)
{
    gn_tensor *part = part_of(tensor, is_last);
    CHECK_OK(gn_assign(part, number_of(value)));
    gn_tensor_release(part);
}

static bool part_is(gn_tensor *tensor, bool is_last, float value)
{
    gn_tensor *part = part_of(tensor, is_last), *host = NULL;
    gn_device *cpu = NULL;
    void *data = NULL;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_OK(gn_tensor_to(part, cpu, &host));
    CHECK_OK(gn_tensor_get_data(host, &data));
    int wrong = 0;
    for (int i = 0; i < PART; i++)
        wrong += ((const float *)data)[i] != value;
    gn_tensor_release(host);
    gn_tensor_release(part);
    return wrong == 0;
}

static gn_tensor *tensor_make(double value)
{
    gn_tensor *tensor = NULL;
    CHECK_OK(tensor_try(ELEMENTS, &tensor));
    part_set(tensor, false, value);
    part_set(tensor, true, -value);
    return tensor;
}

static bool tensor_is(gn_tensor *tensor, float value)
{
    return part_is(tensor, false, value) && part_is(tensor, true, -value);
}

/* ---- half-empty pages ------------------------------------------------------------------------ */

struct halves {
    gn_tensor *kept[PAGES];
    const void *addresses[PAGES];
};

/* One of two tensors on each page, in turn the first and the second. */
static void halves_make(struct halves *halves)
{
    gn_tensor *made[TENSORS];
    for (int i = 0; i < TENSORS; i++)
        made[i] = tensor_make(i + 1);
    for (int i = 0; i < PAGES; i++) {
        int kept = 2 * i + i % 2;
        halves->kept[i] = made[kept];
        halves->addresses[i] = gn_tensor_peek_storage(made[kept]);
        gn_tensor_release(made[2 * i + !(i % 2)]);
    }
}

static void halves_check(struct halves *halves)
{
    for (int i = 0; i < PAGES; i++) {
        CHECK(gn_tensor_peek_storage(halves->kept[i]) == halves->addresses[i]);
        CHECK(tensor_is(halves->kept[i], (float)(2 * i + i % 2 + 1)));
    }
}

static void halves_free(struct halves *halves)
{
    for (int i = 0; i < PAGES; i++)
        gn_tensor_release(halves->kept[i]);
}

/* A tensor that there is room for only if pages are folded. */
static void large_make(void)
{
    gn_tensor *large = NULL;
    gn_status status = tensor_try(LARGE, &large);
    CHECK_OK(status);
    if (status != GN_OK)
        return;
    part_set(large, false, 7);
    part_set(large, true, -7);
    CHECK(tensor_is(large, 7));
    gn_tensor_release(large);
}

static void test_room_is_made(void)
{
    struct halves halves;
    limit_set(limit);
    halves_make(&halves);
    CHECK(statistics_now().reserved_bytes >= PAGES * 2 * MIB);
    large_make();
    halves_check(&halves);
    for (int i = 0; i < PAGES; i++) /* they go on on their new memory */
        part_set(halves.kept[i], false, 2 * i + i % 2 + 1);
    halves_check(&halves);
    large_make();
    halves_free(&halves);
    limit_set(UINT64_MAX);
    pool_empty();
    findings_check();
}

/* What others know stays where it is, but for an explicit compact(). */
static void test_known_addresses_stay(void)
{
    struct halves halves;
    gn_tensor *large = NULL;
    gn_memory_compaction report = {0};
    limit_set(limit);
    halves_make(&halves);
    for (int i = 0; i < PAGES; i++) {
        void *address = NULL;
        CHECK_OK(gn_tensor_get_data(halves.kept[i], &address));
        CHECK(address == halves.addresses[i]);
    }
    CHECK(tensor_try(LARGE, &large) == GN_ERROR_OUT_OF_MEMORY);
    halves_check(&halves);
    CHECK_OK(gn_memory_compact(suite.manager, &report));
    CHECK(report.folded_pages > 0);
    large_make();
    halves_check(&halves);
    halves_free(&halves);
    limit_set(UINT64_MAX);
    pool_empty();
    findings_check();
}

/* A kernel that is under way when its tensor's memory moves: nobody has waited for it. */
static void test_work_under_way(void)
{
    struct halves halves;
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    limit_set(limit);
    halves_make(&halves);
    CHECK_OK(gn_stream_set_current(stream));
    for (int i = 0; i < PAGES; i++) {
        part_set(halves.kept[i], false, i);
        part_set(halves.kept[i], true, -i);
    }
    large_make();
    for (int i = 0; i < PAGES; i++)
        CHECK(tensor_is(halves.kept[i], (float)i));
    halves_free(&halves);
    CHECK_OK(gn_stream_set_current(suite.stream));
    gn_stream_release(stream);
    limit_set(UINT64_MAX);
    pool_empty();
    findings_check();
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The ways in which work is submitted; a thread that blocks in one of them may hold up another that takes a second. */
enum way {
    BY_LAUNCH,
    BY_GRAPH,
    BY_COPY,
    WAYS
};

/* A thread that adds 1 to tensors of its own. */
struct adder {
    enum way way;
    gn_tensor *tensors[PAGES / THREADS];
    gn_stream *stream;
    gn_graph *graph; /* BY_GRAPH: of one addition to each */
    int count;
    pthread_t thread;
};

static atomic_bool is_over;

static void part_add(gn_tensor *tensor, bool is_last, double value)
{
    gn_tensor *part = part_of(tensor, is_last);
    gn_operand operands[] = {{.tensor = part}, number_of(value)};
    CHECK_OK(gn_elementwise_into(GN_OP_ADD, operands, part));
    gn_tensor_release(part);
}

static void adder_add(struct adder *adder)
{
    for (int i = 0; i < PAGES / THREADS; i++) {
        part_add(adder->tensors[i], false, 1);
        part_add(adder->tensors[i], true, -1);
    }
    adder->count++;
}

static void adder_check(struct adder *adder)
{
    for (int i = 0; i < PAGES / THREADS; i++)
        CHECK(tensor_is(adder->tensors[i], (float)adder->count));
}

static void adder_replay(struct adder *adder)
{
    CHECK_OK(gn_graph_replay(adder->graph, adder->stream));
    CHECK_OK(gn_stream_synchronize(adder->stream));
    adder->count++;
}

/* The sums come from the host. */
static void adder_copy(struct adder *adder)
{
    float first[PART], last[PART];
    adder->count++;
    for (int i = 0; i < PART; i++) {
        first[i] = (float)adder->count;
        last[i] = -first[i];
    }
    for (int i = 0; i < PAGES / THREADS; i++) {
        char *data = (char *)(uintptr_t)gn_tensor_peek_storage(adder->tensors[i]);
        CHECK_OK(gn_copy(data, first, sizeof first, adder->stream));
        CHECK_OK(gn_copy(data + MIB - sizeof last, last, sizeof last, adder->stream));
    }
    CHECK_OK(gn_stream_synchronize(adder->stream));
}

static void *adder_run(void *context)
{
    static void (*const steps[WAYS])(struct adder *) = {adder_add, adder_replay, adder_copy};
    struct adder *adder = context;
    CHECK_OK(gn_stream_set_current(adder->stream));
    while (!atomic_load(&is_over)) {
        steps[adder->way](adder);
        if (adder->count % 16 == 0)
            adder_check(adder);
    }
    adder_check(adder);
    return NULL;
}

static void adder_begin(struct adder *adder, enum way way)
{
    adder->way = way;
    adder->stream = stream_make(GN_STREAM_NON_BLOCKING);
    for (int i = 0; i < PAGES / THREADS; i++) {
        part_set(adder->tensors[i], false, 0);
        part_set(adder->tensors[i], true, 0);
    }
    if (way == BY_GRAPH) {
        CHECK_OK(gn_graph_create(suite.device, &adder->graph));
        CHECK_OK(gn_stream_set_current(adder->stream));
        adder_add(adder); /* its kernel is made before the capture */
        CHECK_OK(gn_graph_begin(adder->graph, adder->stream, NULL));
        adder_add(adder);
        adder->count--;
        CHECK_OK(gn_graph_end(adder->graph));
        CHECK_OK(gn_stream_set_current(suite.stream));
    }
    CHECK_OK(gn_device_synchronize(suite.device)); /* copies by address know no order */
    CHECK(pthread_create(&adder->thread, NULL, adder_run, adder) == 0);
}

static void adder_end(struct adder *adder)
{
    (void)pthread_join(adder->thread, NULL);
    CHECK(adder->count > 0);
    gn_graph_destroy(adder->graph);
    gn_stream_release(adder->stream);
}

/* The device's own table, with time for the other threads where it matters. */
static const struct gni_device_ops *usual;
static atomic_bool is_slow;

static void others_run(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void slow_pause(gn_device *device)
{
    if (atomic_load(&is_slow))
        others_run();
    usual->pause(device);
}

static gn_status slow_unmap(gn_device *device, void *address, size_t nbytes)
{
    if (atomic_load(&is_slow))
        others_run(); /* the copies are made, and the addresses show the old memory */
    return usual->virtual_unmap(device, address, nbytes);
}

/* Other threads compute on tensors whose memory moves meanwhile. */
static void others_try(enum way way)
{
    struct adder adders[THREADS] = {0};
    struct halves halves;
    gn_memory_compaction report = {0};
    halves_make(&halves);
    for (int i = 0; i < PAGES; i++)
        adders[i % THREADS].tensors[i / THREADS] = halves.kept[i];
    atomic_store(&is_over, false);
    for (int i = 0; i < THREADS; i++)
        adder_begin(&adders[i], way);
    atomic_store(&is_slow, true);
    CHECK_OK(gn_memory_compact(suite.manager, &report));
    atomic_store(&is_slow, false);
    CHECK(report.folded_pages > 0);
    others_run();
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        adder_end(&adders[i]);
    halves_free(&halves);
    pool_empty();
    findings_check();
}

static void test_others_go_on(void)
{
    static struct gni_device_ops slow;
    usual = suite.device->ops;
    slow = *usual;
    slow.pause = slow_pause;
    slow.virtual_unmap = slow_unmap;
    suite.device->ops = &slow;
    for (int round = 0; round < ROUNDS; round++)
        others_try((enum way)(round % WAYS));
    suite.device->ops = usual;
}

static void run(void)
{
    RUN(test_room_is_made);
    RUN(test_known_addresses_stay);
    RUN(test_work_under_way);
    RUN(test_others_go_on);
}

int main(int argc, char **argv)
{
    if (!suite_open(argc > 1 ? argv[1] : "cuda") || !suite.is_virtual) {
        printf("skipped: the policy virtual is needed\n");
        return CHECK_SKIPPED;
    }
    run();
    return check_result();
}
