/*
 * test_stress_pool.c: threads that allocate, hand blocks to each other, free them, die and are replaced.
 *
 *     test_stress_pool [cpu | cuda [seconds [seed]]]     3 seconds by default
 *
 * After the stress test of mimalloc. What a block holds is known to whoever has it. Blocks change hands
 * through one array, by atomic exchange, so that most are freed by another thread than the one that made
 * them, for streams that it does not know. Meanwhile the main thread gives memory back, folds pages,
 * changes the configuration, looks at everything and walks the pool. At the end nothing is left over.
 */
#include "pool_suite.h"

#include <pthread.h>
#include <stdatomic.h>

struct suite suite;

enum {
    THREADS = 8,
    HELD = 64,      /* items of a thread */
    TRANSFER = 256, /* places of the array */
    STREAMS = 4,    /* that all threads know */
    SAMPLE = 256,   /* bytes at both ends that are compared */
};

struct item {
    void *pointer;           /* NULL: a handle whose address nobody has */
    gn_memory_block *handle; /* NULL: by address */
    size_t nbytes;
    unsigned char value;
};

static _Atomic(struct item *) transfer[TRANSFER];
static gn_stream *streams[STREAMS];
static atomic_bool is_over;
static atomic_ullong step_count, alloc_count, failed_count, death_count;
static bool has_events; /* record_stream is used */

/* Work on blocks is submitted under it; compact() demands that there is none. */
static pthread_rwlock_t work_lock = PTHREAD_RWLOCK_INITIALIZER;

struct worker {
    uint64_t seed;
    unsigned long long steps; /* then it dies */
    gn_stream *own;
    struct item *held[HELD];
};

static size_t pick(struct worker *worker, size_t below)
{
    return (size_t)(check_random(&worker->seed) % below);
}

/* ---- items ---------------------------------------------------------------------------------- */

static gn_stream *worker_stream(struct worker *worker)
{
    size_t choice = pick(worker, STREAMS + 2);
    return choice < STREAMS ? streams[choice] : choice == STREAMS ? worker->own : NULL;
}

static void item_fill(struct item *item, gn_stream *stream)
{
    (void)pthread_rwlock_rdlock(&work_lock);
    if (suite.is_cpu)
        memset(item->pointer, item->value, item->nbytes);
    else
        CHECK_OK(gn_fill(item->pointer, item->value, 1, item->nbytes, stream));
    if (!suite.is_cpu) /* others may read it at once */
        CHECK_OK(gn_stream_synchronize(stream));
    (void)pthread_rwlock_unlock(&work_lock);
}

static bool part_is_right(struct worker *worker, const struct item *item, size_t from,
                          size_t nbytes)
{
    unsigned char bytes[SAMPLE];
    const char *start = (const char *)item->pointer + from;
    if (suite.is_cpu)
        memcpy(bytes, start, nbytes);
    else
        bytes_move(bytes, start, nbytes, worker->own);
    size_t wrong = 0;
    for (size_t i = 0; i < nbytes; i++)
        wrong += bytes[i] != item->value;
    return wrong == 0;
}

static void item_check(struct worker *worker, const struct item *item)
{
    if (item->pointer == NULL || item->nbytes == 0)
        return;
    size_t part = item->nbytes < SAMPLE ? item->nbytes : SAMPLE;
    (void)pthread_rwlock_rdlock(&work_lock);
    CHECK(part_is_right(worker, item, 0, part));
    CHECK(part_is_right(worker, item, item->nbytes - part, part));
    (void)pthread_rwlock_unlock(&work_lock);
}

static size_t item_size(struct worker *worker)
{
    size_t choice = pick(worker, 1000);
    if (choice < 3)
        return pick(worker, 12 * MIB);
    if (choice < 30)
        return pick(worker, 2 * MIB);
    return pick(worker, 64 * KIB) >> pick(worker, 10);
}

static struct item *item_make(struct worker *worker)
{
    gn_stream *stream = worker_stream(worker);
    struct item *item = calloc(1, sizeof *item);
    item->nbytes = item_size(worker);
    item->value = (unsigned char)pick(worker, 256);
    gn_status status =
        pick(worker, 3) == 0
            ? gn_memory_block_alloc(suite.manager, item->nbytes, stream, &item->handle)
            : gn_memory_alloc(suite.manager, item->nbytes, stream, &item->pointer);
    if (status != GN_OK) {
        CHECK(status == GN_ERROR_OUT_OF_MEMORY);
        atomic_fetch_add(&failed_count, 1);
        free(item);
        return NULL;
    }
    atomic_fetch_add(&alloc_count, 1);
    if (item->handle != NULL && pick(worker, 2) == 0)
        item->pointer = gn_memory_block_get_address(item->handle);
    if (item->pointer != NULL)
        item_fill(item, stream != NULL ? stream : suite.stream);
    return item;
}

static void item_free(struct worker *worker, struct item *item)
{
    item_check(worker, item);
    if (has_events && item->pointer != NULL && pick(worker, 16) == 0)
        CHECK_OK(gn_memory_record_stream(suite.manager, item->pointer, worker->own));
    if (item->handle != NULL)
        CHECK_OK(gn_memory_block_free(item->handle));
    else if (pick(worker, 2) == 0)
        CHECK_OK(gn_memory_free_sized(suite.manager, item->pointer, item->nbytes));
    else
        CHECK_OK(gn_memory_free(suite.manager, item->pointer));
    free(item);
}

/* ---- workers -------------------------------------------------------------------------------- */

/* A batch of blocks that live shortly. */
static void worker_batch(struct worker *worker)
{
    void *pointers[16];
    size_t sizes[16], count = 1 + pick(worker, 16);
    for (size_t i = 0; i < count; i++)
        sizes[i] = pick(worker, 8 * KIB);
    gn_status status =
        gn_memory_alloc_batch(suite.manager, count, sizes, worker_stream(worker), pointers);
    CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_MEMORY);
    for (size_t i = 0; status == GN_OK && i < count; i++)
        CHECK_OK(gn_memory_free_sized(suite.manager, pointers[i], sizes[i]));
}

static void worker_request(struct worker *worker)
{
    gn_memory_request *request = NULL;
    void *pointer = NULL;
    CHECK_OK(gn_memory_request_start(suite.manager, pick(worker, MIB), worker->own, &request));
    if (pick(worker, 2) == 0) {
        gn_status status = gn_memory_request_wait(request, &pointer);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_MEMORY);
        if (status == GN_OK)
            CHECK_OK(gn_memory_free(suite.manager, pointer));
    }
    gn_memory_request_release(request);
}

static void worker_step(struct worker *worker)
{
    struct item **place = &worker->held[pick(worker, HELD)];
    size_t choice = pick(worker, 100);
    if (choice < 35) { /* what lies in the array is mine now, and mine is there */
        *place = atomic_exchange(&transfer[pick(worker, TRANSFER)], *place);
    } else if (choice < 36) {
        worker_batch(worker);
    } else if (choice < 37 && pick(worker, 8) == 0) {
        worker_request(worker);
    } else if (choice < 38 && pick(worker, 16) == 0) {
        gn_stream_release(worker->own); /* its blocks live on */
        worker->own = stream_make(GN_STREAM_NON_BLOCKING);
    } else if (*place == NULL) {
        *place = item_make(worker);
    } else if (choice < 45) {
        item_check(worker, *place);
    } else {
        item_free(worker, *place);
        *place = NULL;
    }
}

static void *worker_body(void *argument)
{
    struct worker *worker = argument;
    worker->own = stream_make(GN_STREAM_NON_BLOCKING);
    for (; worker->steps > 0 && !atomic_load(&is_over); worker->steps--) {
        worker_step(worker);
        atomic_fetch_add_explicit(&step_count, 1, memory_order_relaxed);
    }
    for (int i = 0; i < HELD; i++) { /* some are left to the others */
        struct item *item = worker->held[i];
        if (item != NULL && pick(worker, 2) == 0)
            item = atomic_exchange(&transfer[pick(worker, TRANSFER)], item);
        if (item != NULL)
            item_free(worker, item);
        worker->held[i] = NULL;
    }
    gn_stream_release(worker->own);
    atomic_fetch_add(&death_count, 1);
    return NULL;
}

/* One thread after the other, until the time is over. */
static void *slot_body(void *argument)
{
    struct worker *worker = argument;
    while (!atomic_load(&is_over)) {
        pthread_t thread;
        worker->steps = 200 + pick(worker, 20000);
        CHECK(pthread_create(&thread, NULL, worker_body, worker) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

/* ---- the main thread ------------------------------------------------------------------------ */

static bool visitor(const gn_memory_info *info, void *context)
{
    const char **end = context;
    CHECK((const char *)info->address >= *end);
    *end = (const char *)info->address;
    return true;
}

static void look(void)
{
    const char *end = NULL;
    gn_memory_statistics now = statistics_now();
    gn_memory_class classes[GNI_SIZE_BINS];
    size_t count = 0;
    CHECK(now.alloc_count >= now.free_count && now.live_bytes_peak >= now.live_bytes);
    CHECK_OK(gn_memory_visit(suite.manager, visitor, &end));
    CHECK_OK(gn_memory_get_classes(suite.manager, classes, COUNT_OF(classes), &count));
    CHECK_U64(count, GNI_SIZE_BINS);
}

static void config_change(uint64_t *seed)
{
    gn_memory_config config = config_now();
    config.stream_cache_blocks = check_random(seed) % 3 == 0 ? check_random(seed) % 100 : 4096;
    config.strategy = check_random(seed) % 2 == 0 ? GN_MEMORY_BEST_FIT : GN_MEMORY_FIRST_FIT;
    config.cache_bytes = check_random(seed) % 4 == 0 ? 8 * MIB : SIZE_MAX;
    CHECK_OK(gn_memory_configure(suite.manager, &config));
}

static void disturb(uint64_t *seed)
{
    gn_memory_compaction report;
    switch (check_random(seed) % 8) {
    case 0:
        CHECK_OK(gn_memory_trim(suite.manager, check_random(seed) % (32 * MIB), NULL));
        break;
    case 1:
        CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
        break;
    case 2:
        CHECK_OK(gn_memory_collect(suite.manager));
        break;
    case 3: /* nobody submits work, but everybody allocates and frees */
        (void)pthread_rwlock_wrlock(&work_lock);
        CHECK_OK(gn_memory_compact(suite.manager, &report));
        (void)pthread_rwlock_unlock(&work_lock);
        break;
    case 4:
        config_change(seed);
        break;
    case 5:
        look();
        break;
    default:
        POOL_CHECK();
    }
}

static void transfer_clear(void)
{
    struct worker sweeper = {.seed = 1, .own = suite.stream};
    for (int i = 0; i < TRANSFER; i++) {
        struct item *item = atomic_exchange(&transfer[i], NULL);
        if (item != NULL)
            item_free(&sweeper, item);
    }
}

static void stress(double seconds, uint64_t seed)
{
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i].seed = check_random(&seed);
        CHECK(pthread_create(&threads[i], NULL, slot_body, &workers[i]) == 0);
    }
    double end = seconds_now() + seconds;
    while (seconds_now() < end && __atomic_load_n(&check_failures, __ATOMIC_RELAXED) == 0) {
        (void)usleep(2000);
        disturb(&seed);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    transfer_clear();
}

int main(int argc, char **argv)
{
    (void)setenv("GENESIS_LOG", "error", 0);
    if (!suite_open(argc > 1 ? argv[1] : "cpu")) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
#ifdef __SANITIZE_THREAD__ /* under which it is slow, and tells most */
    double seconds = 3;
#else
    double seconds = 1.5;
#endif
    if (argc > 2)
        seconds = strtod(argv[2], NULL);
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)(seconds_now() * 1e9);
    printf("test_stress_pool: %g seconds, seed %" PRIu64 "\n", seconds, seed);
    fflush(stdout);
    has_events = true;
    for (int i = 0; i < STREAMS; i++)
        streams[i] = stream_make(i % 2 ? GN_STREAM_NON_BLOCKING : 0);
    limit_set(32 * MIB); /* so that it runs out now and then */
    stress(seconds, seed);
    for (int i = 0; i < STREAMS; i++)
        gn_stream_release(streams[i]);
    /* Requests that nobody waited for: one that is still queued allocates, and frees, later. */
    for (int i = 0, idle = 0; i < 2000 && idle < 100; i++) {
        idle = statistics_now().live_count > 0 ? 0 : idle + 1;
        (void)usleep(1000);
    }
    pool_empty();
    findings_check();
    size_t leaked = 1;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
    printf("%llu steps, %llu allocations (%llu refused), %llu threads\n", atomic_load(&step_count),
           atomic_load(&alloc_count), atomic_load(&failed_count), atomic_load(&death_count));
    return check_result();
}
