/*
 * test_memory_load.c: the manager under load: every number of its statistics against a model, memory that ends,
 * and threads that hand each other blocks.
 */
#include "memory_suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* ---- statistics ----------------------------------------------------------------------------- */

static void test_peaks(void)
{
    uint64_t a_bytes = policy_live_bytes(3000), b_bytes = policy_live_bytes(5000);
    block_free(block_make(3 * MIB)); /* a peak that must not hide those after the reset */
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    gn_memory_statistics expected = statistics_now();
    CHECK_U64(expected.live_bytes_peak, expected.live_bytes);
    CHECK_U64(expected.requested_bytes_peak, expected.requested_bytes);
    void *a = block_make(3000), *b = block_make(5000);
    block_free(b);
    CHECK_U64(statistics_now().live_bytes, expected.live_bytes + a_bytes);
    CHECK_U64(statistics_now().live_bytes_peak, expected.live_bytes + a_bytes + b_bytes);
    CHECK_U64(statistics_now().live_count_peak, expected.live_count + 2);
    CHECK_U64(statistics_now().requested_bytes, expected.requested_bytes + 3000);
    CHECK_U64(statistics_now().requested_bytes_peak, expected.requested_bytes + 8000);
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    CHECK_U64(statistics_now().live_bytes_peak, expected.live_bytes + a_bytes);
    CHECK_U64(statistics_now().live_count_peak, expected.live_count + 1);
    CHECK_U64(statistics_now().requested_bytes_peak, expected.requested_bytes + 3000);
    CHECK_U64(statistics_now().reserved_bytes_peak, statistics_now().reserved_bytes);
    block_free(a);
    CHECK_U64(statistics_now().live_bytes_peak, expected.live_bytes + a_bytes);
    CHECK_U64(statistics_now().alloc_count, expected.alloc_count + 2);
}

static uint64_t u64_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void expected_alloc(gn_memory_statistics *expected, size_t nbytes, size_t live)
{
    expected->live_bytes += live;
    expected->live_count++;
    expected->requested_bytes += nbytes;
    expected->alloc_count++;
    expected->alloc_bytes_total += nbytes;
    expected->live_bytes_peak = u64_max(expected->live_bytes_peak, expected->live_bytes);
    expected->live_count_peak = u64_max(expected->live_count_peak, expected->live_count);
    expected->requested_bytes_peak =
        u64_max(expected->requested_bytes_peak, expected->requested_bytes);
    if (suite.policy->is_pooled)
        return;
    expected->miss_count++;
    expected->driver_alloc_count++;
    expected->reserved_bytes = expected->live_bytes;
    expected->driver_bytes_total += nbytes;
    expected->reserved_bytes_peak =
        u64_max(expected->reserved_bytes_peak, expected->reserved_bytes);
}

static void expected_free(gn_memory_statistics *expected, size_t nbytes, size_t live)
{
    expected->live_bytes -= live;
    expected->live_count--;
    expected->requested_bytes -= nbytes;
    expected->free_count++;
    expected->free_bytes_total += nbytes;
    if (suite.policy->is_pooled)
        return;
    expected->driver_free_count++;
    expected->reserved_bytes = expected->live_bytes;
}

/* A random program, against a model that knows all blocks and every number. */

enum {
    MODEL_BLOCKS = 200,
    MODEL_FREED = 64, /* frees that the model remembers; far fewer than the manager does */
};

static struct model {
    struct {
        void *pointer;
        size_t nbytes;
        size_t live; /* that it counts as */
        uint64_t cookie;
    } blocks[MODEL_BLOCKS];
    size_t count;
    void *freed[MODEL_FREED]; /* the last addresses that were freed */
    uint64_t freed_count;
    gn_memory_statistics expected;
    uint64_t seed;
} model;

static uint64_t model_random(uint64_t below)
{
    return check_random(&model.seed) % below;
}

static void model_alloc(void)
{
    if (model.count == MODEL_BLOCKS)
        return;
    size_t limit = model_random(50) == 0 ? 4 * MIB : (size_t)16 << model_random(13);
    size_t nbytes = (size_t)model_random(limit);
    void *pointer = block_make(nbytes);
    for (size_t i = 0; i < model.count; i++)
        CHECK(model.blocks[i].pointer != pointer);
    uint64_t cookie = check_random(&model.seed);
    cookie_write(pointer, nbytes, cookie);
    model.blocks[model.count].pointer = pointer;
    model.blocks[model.count].nbytes = nbytes;
    model.blocks[model.count].live = block_live_bytes(pointer, nbytes);
    expected_alloc(&model.expected, nbytes, model.blocks[model.count].live);
    model.blocks[model.count++].cookie = cookie;
}

static void model_free(size_t index, bool is_sized)
{
    void *pointer = model.blocks[index].pointer;
    size_t nbytes = model.blocks[index].nbytes, live = model.blocks[index].live;
    CHECK(cookie_is(pointer, nbytes, model.blocks[index].cookie));
    if (is_sized)
        CHECK_OK(gn_memory_free_sized(suite.manager, pointer, nbytes));
    else
        CHECK_OK(gn_memory_free(suite.manager, pointer));
    model.blocks[index] = model.blocks[--model.count];
    model.freed[model.freed_count++ % MODEL_FREED] = pointer;
    expected_free(&model.expected, nbytes, live);
}

static void model_refuse(size_t index, uint64_t how)
{
    char *pointer = model.blocks[index].pointer;
    size_t nbytes = model.blocks[index].nbytes, asked = 0;
    if (how == 0) {
        CHECK_STATUS(gn_memory_free_sized(suite.manager, pointer, nbytes + 1), GN_ERROR_WRONG_SIZE);
    } else { /* no address inside the first 256 bytes was ever a block's own */
        CHECK_STATUS(gn_memory_free(suite.manager, pointer + 1 + model_random(255)),
                     GN_ERROR_INVALID_POINTER);
    }
    model.expected.refused_count++;
    CHECK_OK(gn_memory_get_size(suite.manager, pointer, &asked));
    CHECK(asked == nbytes);
}

static void model_free_again(void)
{
    if (model.freed_count < MODEL_FREED)
        return;
    void *pointer = model.freed[model_random(MODEL_FREED)];
    for (size_t i = 0; i < model.count; i++) {
        uintptr_t start = (uintptr_t)model.blocks[i].pointer;
        if ((uintptr_t)pointer - start <= model.blocks[i].live)
            return; /* it was handed out again, and lives */
    }
    second_free_check(pointer);
    model.expected.refused_count++;
}

static void model_alloc_too_much(void)
{
    void *pointer = NULL;
    CHECK_STATUS(gn_memory_alloc(suite.manager, (size_t)1 << 50, NULL, &pointer),
                 GN_ERROR_OUT_OF_MEMORY);
    model.expected.out_of_memory_count++;
}

static void model_reset_peaks(void)
{
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    model.expected.live_bytes_peak = model.expected.live_bytes;
    model.expected.live_count_peak = model.expected.live_count;
    model.expected.requested_bytes_peak = model.expected.requested_bytes;
    model.expected.reserved_bytes_peak = model.expected.reserved_bytes;
}

static void model_step(void)
{
    uint64_t choice = model_random(100);
    size_t index = model.count > 0 ? (size_t)model_random(model.count) : 0;
    if (choice < 48 || model.count == 0)
        model_alloc();
    else if (choice < 92)
        model_free(index, choice % 2 == 0);
    else if (choice < 95)
        model_refuse(index, choice % 2);
    else if (choice < 98)
        model_free_again();
    else if (choice < 99)
        model_alloc_too_much();
    else
        model_reset_peaks();
}

static void model_run(uint64_t seed)
{
    memset(&model, 0, sizeof model);
    model.seed = seed;
    model.expected = statistics_now();
    for (int step = 0; step < 20000; step++) {
        model_step();
        bool is_right = statistics_fit(&model.expected);
        CHECK(is_right);
        if (!is_right) {
            fprintf(stderr, "    seed %" PRIu64 ", step %d\n", seed, step);
            break;
        }
    }
    while (model.count > 0)
        model_free(model.count - 1, false);
    CHECK(statistics_fit(&model.expected));
    memory_give_back();
}

static void test_random_programs(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        model_run(seed);
}

/* ---- out of memory -------------------------------------------------------------------------- */

/* Takes blocks until there are no more, gives them back, and finds everything as before. */
static void memory_fill_up(size_t block_size)
{
    enum {
        BLOCKS_MAX = 4096
    };
    static void *blocks[BLOCKS_MAX];
    gn_memory_statistics before = statistics_now();
    size_t count = 0;
    gn_status status = GN_OK;
    while (count < BLOCKS_MAX && status == GN_OK) {
        status = gn_memory_alloc(suite.manager, block_size, NULL, &blocks[count]);
        count += status == GN_OK;
    }
    CHECK(status == GN_ERROR_OUT_OF_MEMORY && count > 0);
    CHECK_DETAIL("out of memory");
    CHECK_U64(statistics_now().live_bytes,
              before.live_bytes + count * policy_live_bytes(block_size));
    CHECK_U64(statistics_now().requested_bytes, before.requested_bytes + count * block_size);
    CHECK_U64(statistics_now().out_of_memory_count, before.out_of_memory_count + 1);
    for (size_t i = 0; i < count; i++)
        block_free(blocks[i]);
    CHECK_U64(statistics_now().live_count, before.live_count);
    block_free(block_make(block_size));
    memory_give_back();
}

/* The system would promise more than it has, so the address space is made small. */
static void cpu_fill_up(void *unused)
{
    (void)unused;
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%llu", &pages) == 1);
    if (file != NULL)
        (void)fclose(file);
    rlim_t limit = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + 512 * MIB;
    struct rlimit small = {limit, limit};
    CHECK(setrlimit(RLIMIT_AS, &small) == 0);
    memory_fill_up(64 * MIB);
}

static void test_out_of_memory(void)
{
    static struct child_result result;
    if (!suite.is_cpu) {
        size_t free_bytes = 0, total_bytes = 0;
        CHECK_OK(gn_device_get_memory_info(suite.device, &free_bytes, &total_bytes));
        memory_fill_up(free_bytes / 10);
        return;
    }
    child_run(cpu_fill_up, NULL, &result);
    CHECK(child_is_ok(&result));
}

/* A handler that allocates, and fails as its caller did: it is called three times for a request, never by itself. */
struct greedy {
    int calls, depth, depth_most;
    size_t asked;
};

static bool handler_greedy(gn_memory_manager *manager, size_t nbytes, void *context)
{
    struct greedy *greedy = context;
    void *pointers[2] = {NULL, NULL};
    const size_t sizes[2] = {1000, (size_t)1 << 47};
    greedy->calls++;
    greedy->asked = nbytes;
    if (++greedy->depth > greedy->depth_most)
        greedy->depth_most = greedy->depth;
    if (greedy->depth < 100) {
        CHECK_STATUS(gn_memory_alloc(manager, (size_t)1 << 47, NULL, pointers),
                     GN_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(gn_memory_alloc_batch(manager, 2, sizes, NULL, pointers),
                     GN_ERROR_OUT_OF_MEMORY);
        CHECK_OK(gn_memory_alloc(manager, 1000, NULL, pointers)); /* what can be met, is */
        block_free(pointers[0]);
    }
    greedy->depth--;
    return true;
}

static void test_handler_that_allocates(void)
{
    struct greedy greedy = {.calls = 0};
    void *pointers[2] = {NULL, NULL};
    const size_t sizes[2] = {1000, (size_t)1 << 46};
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, handler_greedy, &greedy));
    CHECK_STATUS(gn_memory_alloc(suite.manager, (size_t)1 << 46, NULL, pointers),
                 GN_ERROR_OUT_OF_MEMORY);
    CHECK_U64(greedy.asked, (size_t)1 << 46);
    CHECK(greedy.calls == 3 && greedy.depth_most == 1);
    CHECK_STATUS(gn_memory_alloc_batch(suite.manager, 2, sizes, NULL, pointers),
                 GN_ERROR_OUT_OF_MEMORY);
    CHECK(greedy.asked >=
          1000 + ((size_t)1 << 46)); /* a batch is told by its sum, rounded in a pool */
    CHECK(greedy.calls == 6 && greedy.depth_most == 1 && greedy.depth == 0);
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, NULL, NULL));
}

/* Sizes that take every way to memory; mostly small ones. */
static size_t failing_size(int i)
{
    return i % 100 == 1 ? 3 * MIB : i % 100 == 2 ? 9 * MIB : 100;
}

/* On failure nothing changed. What a pool has made for itself by then comes back with the shutdown. */
static void test_host_memory_fails(void)
{
    enum {
        COUNT = 1000
    };
    static void *blocks[COUNT];
    int failures = 0;
    CHECK_OK(gni_manager_clear(suite.manager)); /* so that everything has to be made again */
    for (int i = 0; i < COUNT; i++) {
        gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
        for (long nth = 1; status != GN_OK; nth++) {
            gn_memory_statistics before = statistics_now();
            size_t live = gni_host_live_count();
            gni_host_fail_after(nth);
            status = gn_memory_alloc(suite.manager, failing_size(i), NULL, &blocks[i]);
            gni_host_fail_after(-1);
            CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
            CHECK(status == GN_OK || statistics_fit(&before));
            CHECK(status == GN_OK || suite.policy->is_pooled || gni_host_live_count() == live);
            CHECK(nth < 30);
            failures += status != GN_OK;
        }
    }
    CHECK(failures > 5);
    for (int i = 0; i < COUNT; i++) { /* a free needs no memory, whatever it would like */
        gni_host_fail_after(1 + i % 3);
        CHECK_OK(gn_memory_free(suite.manager, blocks[i]));
        gni_host_fail_after(-1);
    }
    memory_give_back();
    books_check();
}

/* ---- threads -------------------------------------------------------------------------------- */

enum {
    THREADS = 8,
    THREAD_STEPS = 1500,
    THREAD_BLOCKS = 20,
    EXCHANGE_PLACES = 16,
};

struct owned_block {
    void *pointer; /* NULL: none */
    size_t nbytes;
    uint64_t cookie;
};

/* Where threads leave blocks for one another. */
static struct owned_block exchange[EXCHANGE_PLACES];
static pthread_mutex_t exchange_mutex = PTHREAD_MUTEX_INITIALIZER;

static void owned_replace(struct owned_block *own, uint64_t *seed)
{
    if (own->pointer != NULL) {
        CHECK(cookie_is(own->pointer, own->nbytes, own->cookie));
        CHECK_OK(gn_memory_free_sized(suite.manager, own->pointer, own->nbytes));
        own->pointer = NULL;
        return;
    }
    own->nbytes = (size_t)(check_random(seed) % (32 * KIB));
    own->cookie = check_random(seed);
    own->pointer = block_make(own->nbytes);
    cookie_write(own->pointer, own->nbytes, own->cookie);
}

static void owned_exchange(struct owned_block *own, uint64_t *seed)
{
    struct owned_block *place = &exchange[check_random(seed) % EXCHANGE_PLACES];
    struct owned_block mine = *own;
    (void)pthread_mutex_lock(&exchange_mutex);
    *own = *place;
    *place = mine;
    (void)pthread_mutex_unlock(&exchange_mutex);
}

static void *thread_body(void *argument)
{
    uint64_t seed = *(uint64_t *)argument;
    struct owned_block own[THREAD_BLOCKS] = {{NULL, 0, 0}};
    for (int step = 0; step < THREAD_STEPS; step++) {
        struct owned_block *one = &own[check_random(&seed) % THREAD_BLOCKS];
        uint64_t choice = check_random(&seed) % 8;
        if (choice == 0)
            owned_exchange(one, &seed);
        else if (choice == 1)
            CHECK_STATUS(gn_memory_free(suite.manager, &seed), GN_ERROR_INVALID_POINTER);
        else
            owned_replace(one, &seed);
        gn_memory_statistics now = statistics_now();
        CHECK(now.live_count == now.alloc_count - now.free_count);
        CHECK(now.requested_bytes == now.alloc_bytes_total - now.free_bytes_total);
        CHECK(now.free_count <= now.alloc_count && now.free_bytes_total <= now.alloc_bytes_total);
    }
    for (int i = 0; i < THREAD_BLOCKS; i++) {
        if (own[i].pointer != NULL)
            owned_replace(&own[i], &seed);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    gn_memory_statistics before = statistics_now();
    memset(exchange, 0, sizeof exchange);
    for (uint64_t i = 0; i < THREADS; i++) {
        seeds[i] = 100 + i;
        CHECK(pthread_create(&threads[i], NULL, thread_body, &seeds[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < EXCHANGE_PLACES; i++) {
        if (exchange[i].pointer != NULL)
            owned_replace(&exchange[i], &seeds[0]);
    }
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.live_count, before.live_count);
    CHECK_U64(after.live_bytes, before.live_bytes);
    CHECK(after.alloc_count > before.alloc_count + 1000);
    statistics_check(&after);
    memory_give_back();
    books_check();
}

static atomic_int race_freed;

static void *race_body(void *pointer)
{
    gn_status status = gn_memory_free(suite.manager, pointer);
    CHECK(status == GN_OK || status == GN_ERROR_DOUBLE_FREE);
    atomic_fetch_add(&race_freed, status == GN_OK);
    return NULL;
}

/* Of threads that free one block at once, exactly one succeeds. */
static void test_frees_race(void)
{
    for (int round = 0; round < 100; round++) {
        pthread_t threads[3];
        void *block = block_make(1);
        atomic_store(&race_freed, 0);
        for (int i = 0; i < 3; i++)
            CHECK(pthread_create(&threads[i], NULL, race_body, block) == 0);
        for (int i = 0; i < 3; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(atomic_load(&race_freed) == 1);
    }
}

void test_memory_load(void)
{
    RUN(test_peaks);
    RUN(test_random_programs);
    RUN(test_out_of_memory);
    RUN(test_handler_that_allocates);
    RUN(test_host_memory_fails);
    RUN(test_threads);
    RUN(test_frees_race);
}
