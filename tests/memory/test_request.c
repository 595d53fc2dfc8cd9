/*
 * test_request.c: allocations that another thread prepares, and what a fork leaves of the pool.
 *
 *     test_request [cpu | cuda]
 */
#include "pool_suite.h"

#include <pthread.h>
#include <stdatomic.h>

struct suite suite;

static gn_memory_request *request_start(size_t nbytes, gn_stream *stream)
{
    gn_memory_request *request = NULL;
    CHECK_OK(gn_memory_request_start(suite.manager, nbytes, stream, &request));
    CHECK(request != NULL);
    return request;
}

/* Requests that were released before they were done free their blocks later; the oldest come first. */
static void live_wait(uint64_t count)
{
    void *pointer = NULL;
    gn_memory_request *last = request_start(0, NULL);
    CHECK_OK(gn_memory_request_wait(last, &pointer));
    gn_memory_request_release(last);
    block_free(pointer);
    CHECK_U64(statistics_now().live_count, count);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void test_result(void)
{
    static const size_t sizes[] = {0, 1, 5000, 3 * MIB, 20 * MIB};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        gn_memory_request *request = request_start(sizes[i], NULL);
        void *pointer = NULL, *again = NULL;
        size_t nbytes = 1;
        CHECK_OK(gn_memory_request_wait(request, &pointer));
        CHECK_OK(gn_memory_request_query(request));
        CHECK_OK(gn_memory_request_wait(request, &again));
        CHECK(pointer != NULL && again == pointer);
        gn_memory_request_release(request);
        CHECK_OK(
            gn_memory_get_size(suite.manager, pointer, &nbytes)); /* it belongs to the caller */
        CHECK_U64(nbytes, sizes[i]);
        if (nbytes > 0)
            block_fill(pointer, 1, nbytes, suite.stream);
        block_free(pointer);
    }
    gn_memory_request_release(NULL);
    POOL_CHECK();
}

static void test_query(void)
{
    gn_memory_request *request = request_start(1000, suite.stream);
    gn_status status;
    while ((status = gn_memory_request_query(request)) == GN_ERROR_NOT_READY)
        (void)usleep(100);
    CHECK_STATUS(status, GN_OK);
    gn_memory_request_release(request); /* nobody took the block */
    live_wait(0);
}

/* Whoever has the answer may end the stream, and the library: the worker holds it no longer. */
static void test_stream_let_go(void)
{
    for (int i = 0; i < 200; i++) {
        gn_stream *stream;
        void *pointer = NULL;
        CHECK_OK(gn_stream_create(suite.device, 0, 0, &stream));
        gn_memory_request *request = request_start(1000, stream);
        CHECK_OK(gn_memory_request_wait(request, &pointer));
        CHECK_U64((uint64_t)atomic_load(&stream->references), 1);
        gn_memory_request_release(request);
        block_free(pointer);
        gn_stream_release(stream);
    }
}

static void test_failure(void)
{
    void *pointer = &suite;
    gn_memory_request *request = NULL;
    uint64_t before = statistics_now().out_of_memory_count;
    CHECK_STATUS(gn_memory_request_start(NULL, 1, NULL, &request), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_request_start(suite.manager, 1, NULL, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_request_query(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_request_wait(NULL, &pointer), GN_ERROR_INVALID_VALUE);
    request = request_start((size_t)1 << 46, NULL);
    CHECK_STATUS(gn_memory_request_wait(request, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("out of memory");              /* this thread's, though another one failed */
    CHECK_OK(gn_memory_request_query(request)); /* wait would not wait */
    gn_memory_request_release(request);
    CHECK_U64(statistics_now().out_of_memory_count, before + 1);
    request = request_start(SIZE_MAX, NULL);
    CHECK_STATUS(gn_memory_request_wait(request, &pointer), GN_ERROR_OVERFLOW);
    gn_memory_request_release(request);
    gn_memory_request_release(request_start((size_t)1 << 46, NULL));
    CHECK(pointer == &suite);
    live_wait(0);
}

/* The stream and the request may be let go before the worker has come to it. */
static void test_release_before_done(void)
{
    for (int round = 0; round < 200; round++) {
        gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
        gn_memory_request *request = request_start(4096 + (size_t)round, stream);
        gn_stream_release(stream);
        if (round % 3 == 0)
            (void)usleep(50);
        gn_memory_request_release(request);
    }
    live_wait(0);
    POOL_CHECK();
    pool_empty();
}

enum {
    MANY = 1000,
};

static void *many_body(void *argument)
{
    uint64_t seed = *(const uint64_t *)argument;
    static _Thread_local gn_memory_request *requests[MANY];
    for (size_t i = 0; i < MANY; i++)
        requests[i] = request_start(check_random(&seed) % 10000, NULL);
    for (size_t i = 0; i < MANY; i++) { /* in any order */
        size_t j = i * 617 % MANY;
        void *pointer = NULL;
        if (check_random(&seed) % 4 != 0) {
            CHECK_OK(gn_memory_request_wait(requests[j], &pointer));
            block_free(pointer);
        }
        gn_memory_request_release(requests[j]);
    }
    return NULL;
}

static void test_many(void)
{
    uint64_t seeds[4] = {1, 2, 3, 4};
    pthread_t threads[4];
    uint64_t before = statistics_now().alloc_count;
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, many_body, &seeds[i]) == 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    live_wait(0);
    CHECK_U64(statistics_now().alloc_count, before + (uint64_t)4 * MANY + 1);
    POOL_CHECK();
    pool_empty();
}

static void test_host_memory_fails(void)
{
    gn_memory_request *request = NULL;
    size_t live = gni_host_live_count();
    gni_host_fail_after(1);
    CHECK_STATUS(gn_memory_request_start(suite.manager, 1, NULL, &request),
                 GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    CHECK(request == NULL && gni_host_live_count() == live);
}

/* ---- handlers ------------------------------------------------------------------------------- */

static _Atomic(gn_memory_request *) served, behind; /* by the worker; and the one after it */

static gn_memory_request *request_get(_Atomic(gn_memory_request *) *from)
{
    gn_memory_request *request;
    while ((request = atomic_load(from)) == NULL) /* it was started just now */
        (void)usleep(100);
    return request;
}

/* In the worker: it serves another request itself, and cannot wait for its own. */
static bool handler_wait(gn_memory_manager *manager, size_t nbytes, void *context)
{
    void *pointer = NULL;
    CHECK(manager == suite.manager && nbytes == 30 * MIB);
    CHECK_STATUS(gn_memory_request_wait(request_get(&served), &pointer), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_request_query(served), GN_ERROR_NOT_READY);
    CHECK_OK(gn_memory_request_query(request_get(&behind))); /* who asks on and on gets it, too */
    CHECK_OK(gn_memory_request_wait(behind, &pointer));
    block_free(pointer);
    ++*(int *)context;
    return false;
}

static void test_handler_waits(void)
{
    int calls = 0;
    void *pointer = NULL;
    limit_set(8 * MIB);
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, handler_wait, &calls));
    atomic_store(&served, request_start(30 * MIB, NULL));
    atomic_store(&behind, request_start(1000, NULL));
    CHECK_STATUS(gn_memory_request_wait(served, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_U64(calls, 1);
    gn_memory_request_release(served);
    gn_memory_request_release(behind);
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, NULL, NULL));
    limit_set(UINT64_MAX);
    live_wait(0);
}

/* ---- fork ----------------------------------------------------------------------------------- */

#ifndef CHILD_IS_ALONE

static void *inherited[10];
static atomic_int
    handler_state; /* 1: the handler runs; 2: its own request failed; 3: it may go on */

/* What the parent allocated can be freed; the CPU goes on, a GPU says why it cannot. */
static void fork_body(void *unused)
{
    (void)unused;
    gn_device *cpu = NULL;
    gn_memory_manager *manager = NULL;
    void *pointer = NULL;
    for (size_t i = 0; i < 10; i++)
        block_free(inherited[i]);
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_OK(gn_memory_manager_get(cpu, &manager));
    for (int i = 0; i < 100; i++) {
        CHECK_OK(gn_memory_alloc(manager, 5000, NULL, &pointer));
        memset(pointer, 1, 5000);
        CHECK_OK(gn_memory_free(manager, pointer));
    }
    CHECK_OK(gn_memory_alloc(manager, 20 * MIB, NULL, &pointer));
    CHECK_OK(gn_memory_free(manager, pointer));
    for (int i = 0; i < 5; i++) { /* by a worker of its own */
        gn_memory_request *request = NULL;
        CHECK_OK(gn_memory_request_start(manager, 1000, NULL, &request));
        CHECK_OK(gn_memory_request_wait(request, &pointer));
        CHECK_OK(gn_memory_free(manager, pointer));
        gn_memory_request_release(request);
    }
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
    CHECK(gni_pool_is_valid(manager->pool));
    if (!suite.is_cpu)
        CHECK_STATUS(gn_memory_alloc(suite.manager, 30 * MIB, NULL, &pointer), GN_ERROR_FORKED);
    POOL_CHECK();
}

static void test_fork_frees(void)
{
    static struct child_result result;
    for (size_t i = 0; i < 10; i++)
        inherited[i] = block_make(i < 8 ? 1000 * i : 3 * MIB * i);
    child_run(fork_body, NULL, &result);
    CHECK(child_is_ok(&result));
    for (size_t i = 0; i < 10; i++)
        block_free(inherited[i]); /* the parent's are its own */
    pool_empty();
}

/* In the worker, which serves another request for it. */
static bool handler_stop(gn_memory_manager *manager, size_t nbytes, void *context)
{
    (void)manager;
    (void)nbytes;
    (void)context;
    void *pointer = NULL;
    int state = 0;
    if (atomic_compare_exchange_strong(&handler_state, &state, 1))
        CHECK_STATUS(gn_memory_request_wait(request_get(&served), &pointer),
                     GN_ERROR_OUT_OF_MEMORY);
    return false;
}

/* When that request fails, in the worker still: there the parent forks. */
static void callback_stop(gn_memory_manager *manager, bool is_out_of_memory, void *context)
{
    (void)manager;
    (void)context;
    int state = 1;
    if (is_out_of_memory)
        (void)atomic_compare_exchange_strong(&handler_state, &state, 2);
    while (atomic_load(&handler_state) == 2)
        (void)usleep(100);
}

/* The worker was busy with one request for another's sake, and a third one waited: the child's own worker serves all,
 * also if nobody does more than ask. */
static void fork_request_body(void *context)
{
    void *pointer = NULL;
    atomic_store(&handler_state, 3);
    for (int i = 0; i < 5000 && gn_memory_request_query(behind) != GN_OK; i++)
        (void)usleep(1000);
    CHECK_OK(gn_memory_request_query(behind));
    CHECK_STATUS(gn_memory_request_query(served), GN_OK);
    CHECK_STATUS(gn_memory_request_wait(context, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_OK(gn_memory_request_wait(behind, &pointer));
    block_free(pointer);
}

static void test_fork_with_requests(void)
{
    static struct child_result result;
    void *pointer = NULL;
    limit_set(8 * MIB);
    atomic_store(&handler_state, 0);
    atomic_store(&served, NULL);
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, handler_stop, NULL));
    CHECK_OK(gn_memory_set_callback(suite.manager, 1, callback_stop, NULL));
    gn_memory_request *first = request_start(30 * MIB, NULL);
    atomic_store(&served, request_start(20 * MIB, NULL));
    atomic_store(&behind, request_start(1000, NULL));
    while (atomic_load(&handler_state) != 2)
        (void)usleep(100);
    child_run(fork_request_body, first, &result);
    CHECK(child_is_ok(&result));
    atomic_store(&handler_state, 3);
    CHECK_STATUS(gn_memory_request_wait(first, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_memory_request_wait(served, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_OK(gn_memory_request_wait(behind, &pointer));
    block_free(pointer);
    gn_memory_request_release(first);
    gn_memory_request_release(served);
    gn_memory_request_release(behind);
    CHECK_OK(gn_memory_set_callback(suite.manager, 1, NULL, NULL));
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, NULL, NULL));
    limit_set(UINT64_MAX);
    pool_empty();
}

/* Other threads use their caches while the process forks. */
static atomic_bool is_over;

static void *busy_body(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over))
        block_free(block_make(3000));
    return NULL;
}

static void test_fork_with_threads(void)
{
    static struct child_result result;
    pthread_t threads[3];
    for (size_t i = 0; i < 10; i++)
        inherited[i] = block_make(2000);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, busy_body, NULL) == 0);
    for (int round = 0; round < 20; round++) {
        child_run(fork_body, NULL, &result);
        CHECK(child_is_ok(&result));
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < 10; i++)
        block_free(inherited[i]);
    pool_empty();
}

#endif

/* ---- the program ---------------------------------------------------------------------------- */

/* For the worker a thread's own default stream would be another one: the caller's thread serves the request at once. */
static void test_stream_of_a_thread(void)
{
    gn_memory_request *request = NULL;
    gn_stream *own = NULL;
    void *pointer = NULL;
    if (suite.device->type != GN_DEVICE_CUDA)
        return;
    CHECK_OK(gn_stream_from_handle(suite.device, (void *)2, &own));
    CHECK_OK(gn_memory_request_start(suite.manager, 5000, own, &request));
    CHECK_OK(gn_memory_request_query(request));
    CHECK_OK(gn_memory_request_wait(request, &pointer));
    CHECK(pointer != NULL);
    CHECK_OK(gn_memory_free(suite.manager, pointer));
    gn_memory_request_release(request);
    gn_stream_release(own);
    pool_empty();
}

static void run(void)
{
    RUN(test_stream_of_a_thread);
    RUN(test_result);
    RUN(test_query);
    RUN(test_stream_let_go);
    RUN(test_failure);
    RUN(test_release_before_done);
    RUN(test_many);
    RUN(test_host_memory_fails);
    RUN(test_handler_waits);
#ifndef CHILD_IS_ALONE
    RUN(test_fork_frees);
    RUN(test_fork_with_threads);
    if (suite.is_cpu)
        RUN(test_fork_with_requests);
#endif
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, run, NULL, 0);
}
