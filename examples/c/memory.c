/*
 * memory.c: the memory manager in one small program: warm-up, a batch, a handle, stream order, statistics,
 * mistakes, giving back.
 *
 *     cc memory.c $(pkg-config --cflags --libs genesis) -o memory && ./memory
 *
 * It runs on the first GPU, or on the CPU where there is none: the same calls do.
 */
#include <genesis/genesis.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with the library's own sentence about what went wrong. */
static void check(gn_status status)
{
    if (status == GN_OK)
        return;
    fprintf(stderr, "%s: %s\n", gn_status_name(status), gn_error_detail());
    exit(1);
}

static gn_device *device_choose(void)
{
    gn_device *device;
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK) {
        printf("no GPU: %s\n", gn_error_detail());
        check(gn_device_get(GN_DEVICE_CPU, 0, &device));
    }
    gn_device_properties properties;
    check(gn_device_get_properties(device, &properties));
    printf("device: %s, %.1f GiB\n", properties.name, (double)properties.total_memory / (1 << 30));
    return device;
}

static void statistics_print(gn_memory_manager *manager, const char *when)
{
    gn_memory_statistics now;
    check(gn_memory_get_statistics(manager, &now));
    printf("%-14s %5.1f MiB live in %llu blocks, %5.1f MiB reserved, %5.1f MiB cached\n", when,
           (double)now.live_bytes / (1 << 20), (unsigned long long)now.live_count,
           (double)now.reserved_bytes / (1 << 20), (double)now.cached_bytes / (1 << 20));
}

int main(void)
{
    enum {
        COUNT = 1 << 20
    };
    const size_t nbytes = COUNT * sizeof(uint32_t);
    gn_device *device = device_choose();
    gn_memory_manager *manager, *pinned;
    gn_stream *stream;
    check(gn_memory_manager_get(device, &manager));
    check(gn_memory_manager_get_pinned(device, &pinned));
    check(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    printf("policy: %s\n", gn_memory_manager_get_policy(manager));

    /* Ahead of time: three blocks of this size are ready for every thread and stream. */
    check(gn_memory_warm_up(manager, 1, &nbytes, &(size_t){3}));
    statistics_print(manager, "warmed up:");

    /* Two blocks in one step, one by handle, and page-locked memory on the host. */
    void *batch[2], *host;
    gn_memory_block *block;
    check(gn_memory_alloc_batch(manager, 2, (size_t[]){nbytes, nbytes}, stream, batch));
    check(gn_memory_block_alloc(manager, nbytes, stream, &block));
    check(gn_memory_alloc(pinned, nbytes, stream, &host));
    statistics_print(manager, "allocated:");

    /* Work runs in the order of the stream, and blocks may be freed before it has run. */
    check(gn_fill(batch[0], 0x01020304, sizeof(uint32_t), COUNT, stream));
    check(gn_copy(gn_memory_block_get_address(block), batch[0], nbytes, stream));
    check(gn_copy(host, gn_memory_block_get_address(block), nbytes, stream));
    check(gn_memory_free(manager, batch[0]));
    check(gn_memory_free_sized(manager, batch[1], nbytes)); /* the size is checked */
    check(gn_memory_block_free(block));
    statistics_print(manager, "freed:");
    check(gn_stream_synchronize(stream));
    printf("last element after a round trip: 0x%08x\n", ((uint32_t *)host)[COUNT - 1]);

    check(gn_memory_free(pinned, host));

    /* A mistake is an answer, not a crash. */
    if (gn_memory_free(manager, batch[0]) != GN_OK)
        printf("freeing twice is refused: %s\n", gn_error_detail());

    /* Idle memory goes back to the driver, all but 4 MiB; then everything that is not needed. */
    size_t released, leaked;
    gn_memory_compaction report;
    check(gn_memory_trim(manager, (size_t)4 << 20, &released));
    statistics_print(manager, "trimmed:");
    check(gn_memory_compact(manager, &report));
    statistics_print(manager, "compacted:");

    if (gn_memory_alloc(manager, (size_t)1 << 46, stream, &batch[0]) != GN_OK)
        printf("too much is refused: %s\n", gn_error_detail());
    gn_stream_release(stream);
    check(gn_shutdown(&leaked));
    printf("leaked: %zu\n", leaked);
    return leaked != 0;
}
