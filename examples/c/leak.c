/*
 * leak.c: forgets two blocks of three, for GENESIS_DEBUG=trace to find: docs/observability.md.
 *
 *     cc -g leak.c $(pkg-config --cflags --libs genesis) -o leak && GENESIS_DEBUG=trace ./leak
 */
#include <genesis/genesis.h>

static gn_status buffer_make(gn_memory_manager *manager, void **buffer)
{
    return gn_memory_alloc(manager, 1 << 20, NULL, buffer);
}

int main(void)
{
    gn_device *device;
    gn_memory_manager *manager;
    void *buffer;
    if (gn_device_get(GN_DEVICE_CPU, 0, &device) != GN_OK ||
        gn_memory_manager_get(device, &manager) != GN_OK)
        return 1;
    for (int i = 0; i < 3; i++)
        if (buffer_make(manager, &buffer) != GN_OK)
            return 1;
    return gn_memory_free(manager, buffer) == GN_OK ? 0 : 1;
}
