/*
 * pool_suite.h: what the tests of the memory pool share: a device and its manager, bytes to and from
 * blocks, the walker, and children with other options.
 *
 *     test_NAME [cpu | cuda [MODE]]     skipped (77) where there is no such device
 *
 * On a simulated GPU `control` orders faults and counts calls. A MODE is the program's own child: options
 * are read once in a process, and one that has started CUDA cannot be forked.
 */
#ifndef GNI_TESTS_POOL_SUITE_H
#define GNI_TESTS_POOL_SUITE_H

#include "child.h"

#include "base/host.h"
#include "control.h"
#include "device/cuda/driver.h"
#include "device/device.h"
#include "genesis/genesis.h"
#include "memory/cache.h"
#include "memory/manager.h"
#include "memory/pool.h"

#include <time.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

struct suite {
    gn_device *device;
    gn_memory_manager *manager;
    struct gni_pool *pool;
    gn_stream *stream; /* the default one */
    const char *type_name;
    bool is_cpu;
    bool is_sim;
    bool is_virtual;
    struct sim_control control; /* where is_sim */
};

extern struct suite suite; /* each program defines it */

/* What runs as a child: its name, its options ("NAME=value", NULL ends them), and its body. */
struct child_mode {
    const char *name;
    void (*body)(void);
    const char *options[4];
};

/* ---- blocks --------------------------------------------------------------------------------- */

static inline void *block_make_on(size_t nbytes, gn_stream *stream)
{
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(suite.manager, nbytes, stream, &pointer));
    CHECK(pointer != NULL);
    return pointer;
}

static inline void *block_make(size_t nbytes)
{
    return block_make_on(nbytes, NULL);
}

static inline void block_free(void *pointer)
{
    CHECK_OK(gn_memory_free(suite.manager, pointer));
}

static inline gn_stream *stream_make(unsigned flags)
{
    gn_stream *stream = NULL;
    CHECK_OK(gn_stream_create(suite.device, flags, 0, &stream));
    return stream;
}

/* Bytes to and from a block, wherever it is, in the order of a stream; it is idle afterwards. */
static inline void bytes_move(void *to, const void *from, size_t nbytes, gn_stream *stream)
{
    CHECK_OK(gn_copy(to, from, nbytes, stream));
    CHECK_OK(gn_stream_synchronize(stream));
}

static inline void block_fill(void *pointer, unsigned char value, size_t nbytes, gn_stream *stream)
{
    CHECK_OK(gn_fill(pointer, value, 1, nbytes, stream));
}

/* Is every byte of a block this value? */
static inline bool block_holds(const void *pointer, unsigned char value, size_t nbytes)
{
    static _Thread_local unsigned char bytes[64 << 10];
    for (size_t at = 0; at < nbytes;) {
        size_t part = nbytes - at < sizeof bytes ? nbytes - at : sizeof bytes;
        bytes_move(bytes, (const char *)pointer + at, part, suite.stream);
        if (bytes[0] != value || memcmp(bytes, bytes + 1, part - 1) != 0) /* each is the next */
            return false;
        at += part;
    }
    return true;
}

/* ---- the pool ------------------------------------------------------------------------------- */

static inline gn_memory_statistics statistics_now(void)
{
    gn_memory_statistics now = {0};
    CHECK_OK(gn_memory_get_statistics(suite.manager, &now));
    return now;
}

static inline gn_memory_config config_now(void)
{
    gn_memory_config config = {0};
    CHECK_OK(gn_memory_get_config(suite.manager, &config));
    return config;
}

/* Sets what the manager may take, in bytes; UINT64_MAX: all. */
static inline void limit_set(uint64_t nbytes)
{
    gn_memory_config config = config_now();
    double total = (double)suite.pool->total_bytes;
    config.memory_fraction = nbytes == UINT64_MAX ? 1 : ((double)nbytes + 4096) / total;
    CHECK_OK(gn_memory_configure(suite.manager, &config));
}

#define POOL_CHECK() CHECK(gni_pool_is_valid(suite.pool))

/* Everything idle goes back, so that a test begins as the first one does. */
static inline void pool_empty(void)
{
    CHECK_OK(gn_device_synchronize(suite.device));
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    POOL_CHECK();
    gn_memory_statistics now = statistics_now();
    CHECK_U64(now.live_count, 0);
    CHECK_U64(now.pending_bytes, 0);
    CHECK_U64(now.reserved_bytes, 0);
}

/* Calls of the simulated driver that get or map memory. */
static inline long driver_calls(void)
{
    static const char *const names[] = {"cuMemCreate",    "cuMemMap",         "cuMemAlloc",
                                        "cuMemSetAccess", "cuMemAllocAsync",  "cuMemAddressReserve",
                                        "cuMemHostAlloc", "cuMemHostRegister"};
    long count = 0;
    for (size_t i = 0; suite.is_sim && i < COUNT_OF(names); i++)
        count += suite.control.call_count(names[i]);
    return count;
}

static inline double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* No finding of the simulator's race checker since the last time. */
static inline void findings_check(void)
{
    if (!suite.is_sim)
        return;
    CHECK_U64(suite.control.finding_count(), 0);
    if (suite.control.finding_count() > 0)
        fprintf(stderr, "    %s\n", suite.control.finding_text(0));
    suite.control.reset_findings();
}

/* ---- beginning ------------------------------------------------------------------------------ */

static inline bool suite_open(const char *type_name)
{
    int count = 0;
    suite.type_name = type_name;
    suite.is_cpu = strcmp(type_name, "cuda") != 0;
    gn_device_type type = suite.is_cpu ? GN_DEVICE_CPU : GN_DEVICE_CUDA;
    if (gn_device_count(type, &count) != GN_OK || count == 0)
        return false;
    CHECK_OK(gn_device_get(type, 0, &suite.device));
    CHECK_OK(gn_memory_manager_get(suite.device, &suite.manager));
    CHECK_OK(gn_stream_get_default(suite.device, &suite.stream));
    if (suite.manager == NULL)
        return false;
    suite.pool = suite.manager->pool;
    suite.is_virtual = strcmp(gn_memory_manager_get_policy(suite.manager), "virtual") == 0;
    const struct gni_cuda_driver *driver;
    if (!suite.is_cpu && gni_cuda_driver_open(&driver) == GN_OK)
        suite.is_sim = sim_control_load(driver->path, &suite.control);
    return true;
}

static inline void child_exec(void *context)
{
    const struct child_mode *mode = context;
    for (size_t i = 0; i < COUNT_OF(mode->options) && mode->options[i] != NULL; i++)
        (void)putenv((char *)(uintptr_t)mode->options[i]);
    (void)execl("/proc/self/exe", "test", suite.type_name, mode->name, (char *)NULL);
    check_fail(__FILE__, __LINE__, "the program can start itself");
}

/* Runs each mode in a process of its own; all must end well and say nothing. */
static inline void children_run(const struct child_mode *modes, size_t count)
{
    static struct child_result result;
    for (size_t i = 0; i < count; i++) {
        child_run(child_exec, (void *)(uintptr_t)&modes[i], &result);
        if (!child_is_ok(&result))
            fprintf(stderr, "    mode %s\n", modes[i].name);
    }
}

static inline int child_main(const char *name, const struct child_mode *modes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(modes[i].name, name) == 0)
            modes[i].body();
    return check_count > 0 && check_failures == 0 ? 0 : 1;
}

/* The main() of a program with its suite and its modes. */
static inline int suite_main(int argc, char **argv, void (*run)(void),
                             const struct child_mode *modes, size_t count)
{
    (void)setenv("GENESIS_LOG", "error", 0); /* debug builds would report planned leaks */
    if (!suite_open(argc > 1 ? argv[1] : "cpu")) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    if (argc > 2)
        return child_main(argv[2], modes, count);
    run();
    return check_result();
}

#endif
