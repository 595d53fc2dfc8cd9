/*
 * test_system.c: the library on a system that has no files, no memory or no threads left, or lacks what newer ones have.
 *
 * Much of this happens once in a process: such a case is a child, which starts before the parent uses the library.
 */
#include "child.h"
#include "system_faults.h"

#include "base/barrier.h"
#include "base/host.h"
#include "base/thread.h"
#include "control.h"
#include "device/cuda/driver.h"
#include "device/device.h"
#include "genesis/genesis.h"
#include "genesis/history.h"
#include "memory/history.h"
#include "memory/manager.h"
#include "memory/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

static gn_device *device;
static gn_memory_manager *manager;

static void open_all(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &device));
    CHECK_OK(gn_memory_manager_get(device, &manager));
}

/* Runs a case in a process of its own, which must end well; gives what it printed. */
static struct child_result *run_child(void (*body)(void *), void *context)
{
    static struct child_result result;
    child_run(body, context, &result);
    (void)child_is_ok(&result);
    return &result;
}

static void none(void)
{
    system_fail(NULL, 0, 0, false);
}

/* ---- what the machine is ---------------------------------------------------------------------- */

static size_t free_bytes_by(const char *meminfo)
{
    char path[] = "/tmp/genesis-test-XXXXXX";
    int file = mkstemp(path);
    size_t free_bytes = 1, total_bytes = 0;
    CHECK(file >= 0 && write(file, meminfo, strlen(meminfo)) == (ssize_t)strlen(meminfo));
    (void)close(file);
    system_replace("/proc/meminfo", path);
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK(total_bytes > 0 && free_bytes <= total_bytes);
    system_replace(NULL, NULL);
    (void)unlink(path);
    return free_bytes;
}

/* A /proc that is not mounted, or says it in another way: nothing is known to be free. */
static void test_proc(void)
{
    gn_device_properties properties;
    size_t free_bytes = 1, total_bytes = 0;
    CHECK_U64(free_bytes_by("MemTotal: 5 kB\nMemAvailable:   12 kB\n"), 12 * 1024);
    CHECK_U64(free_bytes_by("MemAvailable\t: 12 kB\n"), 12 * 1024);
    CHECK_U64(free_bytes_by("MemTotal: 5 kB\n"), 0);
    CHECK_U64(free_bytes_by("MemAvailable: much\n"), 0);
    CHECK_U64(free_bytes_by("MemAvailable 12 kB\n"), 0);
    CHECK_U64(free_bytes_by("MemAvailableToo: 12 kB\n"), 0);
    CHECK_U64(free_bytes_by(""), 0);
    system_fail("fopen", 1, ENOENT, true);
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK(free_bytes == 0 && total_bytes > 0);
    CHECK_OK(gn_device_get_properties(device, &properties));
    CHECK_TEXT(properties.name, "CPU");
    none();
    for (int nth = 1; nth <= 2; nth++) { /* the pages, and their size */
        system_fail("sysconf", nth, EINVAL, false);
        CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
        CHECK(free_bytes == 0 && total_bytes == 0);
    }
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK(free_bytes > 0 && total_bytes > 0);
    system_fail("sysconf", 1, EINVAL, true);
    CHECK_OK(gn_device_get_properties(device, &properties));
    none();
    CHECK(properties.l2_cache_size == 0 && properties.total_memory == 0);
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* What the system refuses is an error with its reason, and the next call works. */
static void test_pages(void)
{
    const struct gni_device_ops *ops = device->ops;
    static const size_t sizes[] = {4096, 5 * MIB};
    void *pointer = NULL;
    for (int i = 0; i < 2; i++) {
        system_fail("mmap", 1, ENOMEM, false);
        CHECK_STATUS(ops->memory_alloc(device, sizes[i], &pointer), GN_ERROR_OUT_OF_MEMORY);
        CHECK_DETAIL("the system refused");
        CHECK(pointer == NULL && system_fault_count() == 1);
        CHECK_OK(ops->memory_alloc(device, sizes[i], &pointer));
        memset(pointer, 1, sizes[i]);
        system_fail("munmap", 1, EINVAL, false);
        CHECK_STATUS(ops->memory_free(device, pointer, sizes[i]), GN_ERROR_INVALID_POINTER);
        CHECK_DETAIL("refused to free");
        CHECK_OK(ops->memory_free(device, pointer, sizes[i]));
        pointer = NULL;
    }
    CHECK_STATUS(ops->memory_alloc(device, SIZE_MAX, &pointer), GN_ERROR_OVERFLOW);
    CHECK_STATUS(ops->memory_free(device, &pointer, SIZE_MAX), GN_ERROR_OVERFLOW);
    CHECK(pointer == NULL);
}

/* Where no stream has work that could use idle memory, it goes back at once: nobody spins by the clock. */
static void test_recycling_without_a_look(void)
{
    gn_memory_statistics before, after;
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(manager, 100 * MIB, NULL, &pointer));
    CHECK_OK(gn_memory_free(manager, pointer));
    CHECK_OK(gn_memory_get_statistics(manager, &before));
    system_fail("clock_gettime", 1, 0, true); /* counts the calls, which work */
    CHECK_OK(gn_memory_alloc(manager, 130 * MIB, NULL, &pointer));
    int reads = system_fault_count(); /* one for an event; a spin has two at least */
    CHECK(reads <= 1);
    none();
    CHECK_OK(gn_memory_get_statistics(manager, &after));
    CHECK(after.driver_free_count > before.driver_free_count);
    CHECK_OK(gn_memory_free(manager, pointer));
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
}

/* In a fresh process: the nth time that the system is asked for memory, it has none. */
static void maps_body(void *context)
{
    int nth = *(const int *)context;
    static const size_t sizes[] = {100, 3000, 600 << 10, 3 * MIB, 20 * MIB};
    void *pointers[5] = {NULL};
    open_all();
    CHECK_STATUS(gn_memory_free(manager, &nth), GN_ERROR_INVALID_POINTER); /* a text is kept */
    system_fail("mmap", nth, ENOMEM, false);
    for (int i = 0; i < 5; i++) {
        gn_status status = gn_memory_alloc(manager, sizes[i], NULL, &pointers[i]);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_MEMORY ||
              status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK((status == GN_OK) == (pointers[i] != NULL));
        if (status != GN_OK) {
            CHECK_U64(system_fault_count(), 1);
            CHECK_OK(gn_memory_alloc(manager, sizes[i], NULL, &pointers[i]));
        }
        memset(pointers[i], i, sizes[i]);
    }
    bool was_struck = system_fault_count() == 1;
    none();
    CHECK(gni_pool_is_valid(manager->pool));
    for (int i = 0; i < 5; i++)
        CHECK_OK(gn_memory_free(manager, pointers[i]));
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
    gn_memory_statistics now;
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK(now.live_count == 0 && now.reserved_bytes == 0);
    if (!was_struck)
        fprintf(stderr, "done\n");
}

static void test_maps(void)
{
    int nth = 1;
    while (nth < 30 && child_count(run_child(maps_body, &nth), "done") == 0)
        nth++;
    CHECK(nth > 5 && nth < 30);
}

#ifndef CHILD_IS_ALONE /* sanitizers take more addresses than that */
/* Refused for a limit of the process, the message names it. */
static void limit_body(void *context)
{
    int resource = *(const int *)context;
    struct rlimit limit = {.rlim_cur = 1000 * MIB, .rlim_max = RLIM_INFINITY};
    void *pointer = NULL;
    open_all();
    CHECK_OK(gn_memory_alloc(manager, 1000, NULL, &pointer));
    CHECK(setrlimit((__rlimit_resource_t)resource, &limit) == 0);
    void *large = NULL;
    CHECK_STATUS(gn_memory_alloc(manager, 1200 * MIB, NULL, &large), GN_ERROR_OUT_OF_MEMORY);
    if (strstr(gn_error_detail(), "may not take it") == NULL) /* the system itself has less */
        fprintf(stderr, "small\n");
    else
        CHECK_DETAIL(resource == (int)RLIMIT_AS ? "ulimit -v" : "ulimit -d");
    system_fail("getrlimit", 1, EINVAL, true);
    CHECK_STATUS(gn_memory_alloc(manager, 1200 * MIB, NULL, &large), GN_ERROR_OUT_OF_MEMORY);
    CHECK(strstr(gn_error_detail(), "ulimit") == NULL);
    CHECK_OK(gn_memory_free(manager, pointer));
}

static void test_limits(void)
{
    int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 2; i++)
        (void)run_child(limit_body, &resources[i]);
}
#endif

/* ---- texts of errors -------------------------------------------------------------------------- */

static void *error_thread(void *function)
{
    gn_device *found = NULL;
    system_fail(function, 1, ENOMEM, true);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, 77, &found), GN_ERROR_INVALID_DEVICE);
    CHECK(gn_error_detail() != NULL && found == NULL);
    CHECK(strstr(gn_error_detail(), "77") == NULL); /* there is no room for it */
    CHECK(system_fault_count() > 0);
    none();
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, 77, &found), GN_ERROR_INVALID_DEVICE);
    CHECK_DETAIL("77");
    return NULL;
}

/* A thread without room for a text still gets the status. */
static void test_texts(void)
{
    static char *const functions[] = {"mmap", "pthread_setspecific"};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, error_thread, functions[i]) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* A stream that gets no thread says so and does nothing; it works once there is one. */
static void test_no_thread_for_a_stream(void)
{
    gn_stream *stream = NULL;
    gn_event *event = NULL;
    unsigned char bytes[64] = {0};
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    CHECK_OK(gn_event_create(device, 0, &event));
    size_t live = gni_host_live_count();
    system_fail("pthread_create", 1, EAGAIN, true);
    CHECK_STATUS(gn_fill(bytes, 7, 1, sizeof bytes, stream), GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_DETAIL("no thread for a stream");
    CHECK_U64(gni_host_live_count(), live);
    CHECK_OK(gn_event_record(event, stream)); /* an idle stream needs none for that */
    CHECK_OK(gn_event_query(event));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_U64(bytes[0], 0);
    none();
    CHECK_OK(gn_fill(bytes, 7, 1, sizeof bytes, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(bytes[0] == 7 && bytes[63] == 7);
    gn_event_destroy(event);
    gn_stream_release(stream);
}

/* In a fresh process: the worker that prepares allocations cannot start. Nothing is kept of the request. */
static void worker_body(void *context)
{
    (void)context;
    gn_memory_request *request = NULL;
    gn_stream *stream = NULL;
    void *pointer = NULL;
    open_all();
    CHECK_OK(gn_stream_create(device, 0, 0, &stream));
    CHECK_OK(gn_memory_alloc(manager, 1000, stream, &pointer));
    CHECK_OK(gn_memory_free(manager, pointer));
    size_t live = gni_host_live_count();
    int references = atomic_load(&stream->references);
    system_fail("pthread_create", 1, EAGAIN, false);
    CHECK_STATUS(gn_memory_request_start(manager, 1000, stream, &request),
                 GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_DETAIL("no more threads");
    CHECK(request == NULL && gni_host_live_count() == live);
    CHECK_U64(atomic_load(&stream->references), references);
    CHECK_OK(gn_memory_request_start(manager, 1000, stream, &request));
    CHECK_OK(gn_memory_request_wait(request, &pointer));
    gn_memory_request_release(request);
    CHECK_OK(gn_memory_free(manager, pointer));
    gn_stream_release(stream);
}

static void test_no_worker(void)
{
    (void)run_child(worker_body, NULL);
}

/* A thread that cannot keep a note of itself has no cache of its own, and allocates all the same. */
static void *bare_thread(void *unused)
{
    (void)unused;
    void *pointers[8] = {NULL};
    CHECK_STATUS(gn_memory_free(manager, &pointers), GN_ERROR_INVALID_POINTER); /* it has a text */
    system_fail("pthread_setspecific", 1, ENOMEM, true);
    for (int i = 0; i < 8; i++) {
        CHECK_OK(gn_memory_alloc(manager, 1000, NULL, &pointers[i]));
        memset(pointers[i], i, 1000);
    }
    for (int i = 0; i < 8; i++)
        CHECK_OK(gn_memory_free(manager, pointers[i]));
    none();
    return NULL;
}

static void test_no_note_of_a_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, bare_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(gni_pool_is_valid(manager->pool));
    gn_memory_statistics now;
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK_U64(now.live_count, 0);
}

/* ---- a kernel without membarrier(2) ----------------------------------------------------------- */

static void *peer_run(void *blocks)
{
    void **pointers = blocks;
    for (int i = 0; i < 64; i++) {
        CHECK(*(unsigned char *)pointers[i] == i);
        CHECK_OK(gn_memory_free(manager, pointers[i]));
        CHECK_OK(gn_memory_alloc(manager, 1000, NULL, &pointers[i]));
        memset(pointers[i], i + 1, 1000);
    }
    return NULL;
}

static void barrier_body(void *context)
{
    (void)context;
    void *pointers[64] = {NULL};
    pthread_t thread;
    system_fail("membarrier", 1, ENOSYS, true);
    open_all();
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 64; i++) {
            CHECK_OK(gn_memory_alloc(manager, 1000, NULL, &pointers[i]));
            memset(pointers[i], i, 1000);
        }
        CHECK(pthread_create(&thread, NULL, peer_run, pointers) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_OK(gn_memory_trim(manager, 0, NULL)); /* takes what the caches hold */
        for (int i = 0; i < 64; i++) {
            CHECK(*(unsigned char *)pointers[i] == i + 1);
            CHECK_OK(gn_memory_free(manager, pointers[i]));
        }
    }
    CHECK(system_fault_count() > 0);
    CHECK(gni_pool_is_valid(manager->pool));
    gn_memory_statistics now;
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK(now.live_count == 0);
}

/* Without it threads use their caches by exchanges. */
static void test_no_barrier(void)
{
    (void)run_child(barrier_body, NULL);
}

/* A process that has not registered does so when it first needs the barrier. */
static void test_barrier_again(void)
{
    CHECK(gni_barrier_register());
    system_fail("membarrier", 1, EPERM, false);
    gni_barrier_all();
    CHECK_U64(system_fault_count(), 1);
    none();
}

/* ---- the driver ------------------------------------------------------------------------------- */

/* An exit handler that cannot be had: the driver is not used, as it would be called after its end. */
static void driver_body(void *context)
{
    const struct gni_cuda_driver *driver = NULL;
    int is_exit = *(const int *)context;
    system_fail(is_exit ? "atexit" : "dladdr", 1, ENOMEM, true);
    gn_status status = gni_cuda_driver_open(&driver);
    CHECK(system_fault_count() > 0);
    none();
    if (is_exit) {
        CHECK(status == GN_ERROR_UNAVAILABLE && driver == NULL);
        CHECK_DETAIL("exit handler");
    } else { /* its file is known by the name that it was asked for */
        CHECK_OK(status);
        CHECK(driver != NULL && strstr(driver->path, "genesis") != NULL);
    }
}

static void test_driver(void)
{
    for (int is_exit = 0; is_exit < 2; is_exit++)
        (void)run_child(driver_body, &is_exit);
}

/* Page-locked memory is the system's, and the driver's to lock: each may refuse, and then neither keeps anything. */
static void pinned_body(void *unused)
{
    (void)unused;
    gn_device *gpu = NULL;
    gn_memory_manager *pinned = NULL;
    const struct gni_cuda_driver *driver;
    static struct sim_control control;
    gn_memory_statistics now;
    void *pointer = NULL;
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &gpu));
    CHECK_OK(gni_cuda_driver_open(&driver));
    if (!sim_control_load(driver->path, &control))
        return; /* a real one does not fail on order */
    CHECK_OK(gn_memory_manager_get_pinned(gpu, &pinned));
    CHECK_STATUS(gn_memory_free(pinned, &pointer), GN_ERROR_INVALID_POINTER); /* a text is kept */
    int locked = control.live_allocations();
    system_fail("mmap", 1, ENOMEM, true);
    CHECK_STATUS(gn_memory_alloc(pinned, 5 * MIB, NULL, &pointer), GN_ERROR_OUT_OF_MEMORY);
    none();
    control.fail("cuMemHostRegister", 1, CUDA_ERROR_UNKNOWN, 1);
    CHECK_STATUS(gn_memory_alloc(pinned, 5 * MIB, NULL, &pointer), GN_ERROR_DRIVER);
    CHECK_DETAIL("cuMemHostRegister");
    control.fail(NULL, 0, 0, 0);
    CHECK_OK(gn_memory_get_statistics(pinned, &now));
    CHECK(pointer == NULL && now.reserved_bytes == 0 && control.live_allocations() == locked);
    CHECK_OK(gn_memory_alloc(pinned, 5 * MIB, NULL, &pointer));
    memset(pointer, 1, 5 * MIB);
    CHECK_OK(gn_memory_free(pinned, pointer));
    control.fail("cuMemHostUnregister", 1, CUDA_ERROR_UNKNOWN, 1);
    CHECK_OK(gn_memory_trim(pinned, 0, NULL)); /* it stays, and serves again */
    control.fail(NULL, 0, 0, 0);
    CHECK_OK(gn_memory_get_statistics(pinned, &now));
    CHECK(now.reserved_bytes >= 5 * MIB);
    CHECK(gni_pool_is_valid(pinned->pool));
    CHECK_OK(gn_memory_trim(pinned, 0, NULL));
    CHECK_OK(gn_memory_get_statistics(pinned, &now));
    CHECK(now.reserved_bytes == 0 && control.live_allocations() == locked);
}

static void test_pinned(void)
{
    (void)run_child(pinned_body, NULL);
}

/* ---- who holds memory ------------------------------------------------------------------------- */

/* The lowest descriptor that is not in use. */
static int descriptor_next(void)
{
    int file = fcntl(STDERR_FILENO, F_DUPFD, 0);
    (void)close(file);
    return file;
}

/* The lines of a leak come from a program that is started: where that cannot be, addresses stand there. */
static void leaks_body(void *context)
{
    const char *function = context;
    void *pointer = NULL;
    open_all();
    int next = descriptor_next();
    CHECK_OK(gn_history_start(&(gn_history_options){.events_most = 64, .c_frames = 8}));
    CHECK_OK(gn_memory_alloc(manager, 12345, NULL, &pointer));
    system_fail(function, 1, EMFILE, true);
    CHECK_U64(gni_manager_report_leaks(manager), 1);
    none();
    CHECK_U64(gni_manager_report_leaks(manager), 1);
    CHECK_U64(descriptor_next(), next); /* all are closed */
    CHECK_OK(gn_memory_free(manager, pointer));
    CHECK_U64(gni_manager_report_leaks(manager), 0);
}

/* A stack of its own for each depth. */
static __attribute__((noinline)) void *alloc_at(int depth, size_t nbytes)
{
    void *pointer = NULL;
    if (depth == 0)
        CHECK_OK(gn_memory_alloc(manager, nbytes, NULL, &pointer));
    else
        pointer = alloc_at(depth - 1, nbytes);
    __asm__ volatile("" ::: "memory"); /* no jump instead of the call */
    return pointer;
}

/* Blocks of one place are one line, wherever they stand among the others. */
static void shared_leaks_body(void *unused)
{
    (void)unused;
    void *pointers[6];
    volatile int turns = 6; /* three stacks, each of them twice */
    open_all();
    for (int is_kept = 0; is_kept < 2; is_kept++) { /* the second time all come from the cache */
        if (is_kept)
            CHECK_OK(gn_history_start(&(gn_history_options){.events_most = 64, .c_frames = 60}));
        for (int i = 0; i < turns; i++)
            pointers[i] = alloc_at(i % 3, 1000 * (size_t)(i % 3 + 1));
        for (int i = 0; i < turns && !is_kept; i++)
            CHECK_OK(gn_memory_free(manager, pointers[i]));
    }
    gn_history_stop();
    system_fail("pipe2", 1, EMFILE, true); /* addresses will do */
    CHECK_U64(gni_manager_report_leaks(manager), 6);
    none();
}

static void test_leaks_of_one_place(void)
{
    const struct child_result *result = run_child(shared_leaks_body, NULL);
    CHECK_U64(child_count(result, " in 2 blocks"), 3);
    CHECK_U64(child_count(result, " in 1 block,"), 0);
}

/* Of many places the largest are printed, and all are counted; what was there before is of a place not known. */
static void many_leaks_body(void *unused)
{
    (void)unused;
    open_all();
    (void)alloc_at(0, 777777);
    CHECK_OK(gn_history_start(&(gn_history_options){.events_most = 64, .c_frames = 60}));
    for (int i = 0; i < 24; i++)
        (void)alloc_at(i, 1000 * (size_t)(i + 1));
    gn_history_stop();
    system_fail("pipe2", 1, EMFILE, true); /* addresses will do */
    CHECK_U64(gni_manager_report_leaks(manager), 25);
    gni_host_fail_after(1); /* no list: nothing is known */
    CHECK_U64(gni_manager_report_leaks(manager), 0);
    gni_host_fail_after(-1);
}

static void test_many_leaks(void)
{
    const struct child_result *result = run_child(many_leaks_body, NULL);
    CHECK_U64(child_count(result, " in 1 block, allocated at"), 20);
    CHECK_U64(child_count(result, "allocated at a place not known"), 1);
}

static void test_leaks(void)
{
    static char *const functions[] = {"pipe2", "fdopen", "posix_spawn_file_actions_init"};
    for (int i = 0; i < 3; i++) {
        const struct child_result *result = run_child(leaks_body, functions[i]);
        CHECK_U64(child_count(result, "12.06 KiB in 1 block"), 2);
        CHECK(child_count(result, "+0x") > 0); /* of the first report, whatever the second knows */
    }
}

int main(void)
{
    RUN(test_maps);
#ifndef CHILD_IS_ALONE
    RUN(test_limits);
#endif
    RUN(test_no_worker);
    RUN(test_no_barrier);
    if (getenv("GENESIS_CUDA_DRIVER") != NULL) { /* the simulated GPU's */
        RUN(test_driver);
        RUN(test_pinned);
    }
    RUN(test_leaks);
    RUN(test_leaks_of_one_place);
    RUN(test_many_leaks);
    open_all();
    RUN(test_proc);
    RUN(test_pages);
    RUN(test_recycling_without_a_look);
    RUN(test_texts);
    RUN(test_no_thread_for_a_stream);
    RUN(test_no_note_of_a_thread);
    RUN(test_barrier_again);
    return check_result();
}
