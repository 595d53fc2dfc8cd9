/*
 * memory.c: memory, streams and events of a device, in one small program.
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

int main(void)
{
    enum {
        COUNT = 1 << 20
    };
    gn_device *device = device_choose();
    gn_memory_manager *manager;
    gn_stream *stream;
    gn_event *event;
    check(gn_memory_manager_get(device, &manager));
    check(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    check(gn_event_create(device, 0, &event));

    /* Page-locked memory on the host, and two blocks on the device. */
    void *host_memory, *first, *second;
    check(gn_host_alloc(device, COUNT * sizeof(uint32_t), &host_memory));
    uint32_t *host = host_memory;
    check(gn_memory_alloc(manager, COUNT * sizeof(uint32_t), stream, &first));
    check(gn_memory_alloc(manager, COUNT * sizeof(uint32_t), stream, &second));

    /* Work runs in the order of the stream: fill one block, copy it to the other, bring it back. */
    check(gn_fill(first, 0x01020304, sizeof(uint32_t), COUNT, stream));
    check(gn_copy(second, first, COUNT * sizeof(uint32_t), stream));
    check(gn_copy(host, second, COUNT * sizeof(uint32_t), stream));
    check(gn_event_record(event, stream));
    check(gn_event_synchronize(event));
    printf("last element after a round trip: 0x%08x\n", host[COUNT - 1]);

    gn_memory_statistics statistics;
    check(gn_memory_get_statistics(manager, &statistics));
    printf("live: %llu bytes in %llu blocks\n", (unsigned long long)statistics.live_bytes,
           (unsigned long long)statistics.live_count);

    /* A mistake is an answer, not a crash. */
    check(gn_memory_free(manager, first));
    if (gn_memory_free(manager, first) != GN_OK)
        printf("freeing twice is refused: %s\n", gn_error_detail());

    check(gn_memory_free(manager, second));
    check(gn_host_free(device, host));
    gn_event_destroy(event);
    gn_stream_release(stream);
    size_t leaked;
    check(gn_shutdown(&leaked));
    printf("leaked: %zu\n", leaked);
    return leaked == 0 ? 0 : 1;
}
