/*
 * bench_direct.c: what the library adds to the driver: the direct memory manager and the device
 * table beside the very driver calls they make.
 *
 * Each pair is measured in turns, `ROUNDS` times, and the table has the medians and the median of
 * the ratios: the host's clock is not to be trusted from one second to the next.
 */
#include "genesis/genesis.h"

#include "device/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    ROUNDS = 15,
};

static gn_device *device;
static struct gni_cuda_device *cuda;
static const struct gni_cuda_functions *raw;
static gn_memory_manager *manager;
static gn_stream *stream;
static gn_event *event;
static size_t block_bytes;
static bool is_current; /* is the context current in the thread when the library is called? */

static void check(gn_status status)
{
    if (status != GN_OK) {
        fprintf(stderr, "%s: %s\n", gn_status_name(status), gn_error_detail());
        exit(1);
    }
}

static void check_raw(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "driver error %d\n", (int)result);
        exit(1);
    }
}

/* ---- what is measured, as pairs: the driver itself, and through the library ---- */

static void memory_raw(void)
{
    CUdeviceptr pointer;
    check_raw(raw->cuMemAlloc(&pointer, block_bytes));
    check_raw(raw->cuMemFree(pointer));
}

static void memory_ours(void)
{
    void *pointer;
    check(gn_memory_alloc(manager, block_bytes, stream, &pointer));
    check(gn_memory_free(manager, pointer));
}

static void record_raw(void)
{
    check_raw(raw->cuEventRecord(event->handle, stream->handle));
}

static void record_ours(void)
{
    check(gn_event_record(event, stream));
}

static void query_raw(void)
{
    CUresult result = raw->cuEventQuery(event->handle);
    if (result != CUDA_ERROR_NOT_READY)
        check_raw(result);
}

static void query_ours(void)
{
    gn_status status = gn_event_query(event);
    if (status != GN_ERROR_NOT_READY)
        check(status);
}

static void wait_raw(void)
{
    check_raw(raw->cuStreamWaitEvent(stream->handle, event->handle, 0));
}

static void wait_ours(void)
{
    check(gn_stream_wait_event(stream, event));
}

/* ---- measuring ---- */

static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_ns(void (*work)(void), int count)
{
    double start = now_ns();
    for (int i = 0; i < count; i++)
        work();
    return (now_ns() - start) / count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

/* The driver needs the context to be current; the library does not, and is measured as told. */
static void context_push(void)
{
    check_raw(raw->cuCtxPushCurrent(atomic_load(&cuda->context)));
}

static void context_pop(bool is_due)
{
    CUcontext popped;
    if (is_due)
        check_raw(raw->cuCtxPopCurrent(&popped));
}

static void row(const char *name, int count, void (*theirs)(void), void (*ours)(void))
{
    double raw_ns[ROUNDS], ours_ns[ROUNDS], ratio[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up */
        int place = round < 0 ? 0 : round;
        context_push();
        raw_ns[place] = time_ns(theirs, count);
        context_pop(!is_current);
        ours_ns[place] = time_ns(ours, count);
        context_pop(is_current);
        ratio[place] = ours_ns[place] / raw_ns[place];
        check(gn_device_synchronize(device));
    }
    printf("| %-34s | %10.0f | %10.0f | %5.2f |\n", name, median(raw_ns), median(ours_ns),
           median(ratio));
}

static void table(const char *title)
{
    printf("\n%s\n\n| pair of calls | driver, ns | Genesis, ns | ratio |\n|---|---|---|---|\n",
           title);
    block_bytes = 4096;
    row("alloc + free, 4 KiB", 2000, memory_raw, memory_ours);
    block_bytes = 2u << 20;
    row("alloc + free, 2 MiB", 300, memory_raw, memory_ours);
    block_bytes = 64u << 20;
    row("alloc + free, 64 MiB", 100, memory_raw, memory_ours);
    row("event record", 20000, record_raw, record_ours);
    row("event query", 20000, query_raw, query_ours);
    row("stream wait for event", 20000, wait_raw, wait_ours);
}

int main(void)
{
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK) {
        fprintf(stderr, "no GPU to measure: %s\n", gn_error_detail());
        return 1;
    }
    gn_device_properties properties;
    check(gn_device_get_properties(device, &properties));
    check(gn_memory_manager_get(device, &manager));
    gn_memory_config config;
    check(gn_memory_get_config(manager, &config));
    config.strategy = GN_MEMORY_DIRECT;
    check(gn_memory_configure(manager, &config));
    check(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    check(gn_event_create(device, 0, &event));
    cuda = gni_cuda_device_of(device);
    raw = &cuda->driver->functions;
    printf("%s, driver for CUDA %d.%d\n", properties.name, cuda->driver->version / 1000,
           cuda->driver->version % 1000 / 10);
    is_current = true;
    table("With the context current, as in a thread that uses PyTorch or the CUDA runtime, too:");
    is_current = false;
    table("With no context current: each call makes it so and undoes it:");
    return 0;
}
