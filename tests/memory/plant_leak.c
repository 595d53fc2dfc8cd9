/*
 * plant_leak.c: forgets a block, so that GENESIS_DEBUG=trace has something to report at exit.
 */
#include "genesis/genesis.h"

static gn_status forget(gn_memory_manager *manager)
{
    void *pointer;
    return gn_memory_alloc(manager, 12345, NULL, &pointer); /* the line that is reported */
}

int main(void)
{
    gn_device *device;
    gn_memory_manager *manager;
    void *pointer;
    if (gn_device_get(GN_DEVICE_CPU, 0, &device) != GN_OK ||
        gn_memory_manager_get(device, &manager) != GN_OK)
        return 1;
    if (gn_memory_alloc(manager, 777, NULL, &pointer) != GN_OK ||
        gn_memory_free(manager, pointer) != GN_OK)
        return 1;
    return forget(manager) == GN_OK ? 0 : 1;
}
