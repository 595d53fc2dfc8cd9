/*
 * storage.c: bytes that tensors share.
 *
 * Memory of a GPU is kept by handle, so that the manager may move its pages until somebody asks for the
 * address; on the CPU the address is asked for at once.
 */
#include "tensor/tensor.h"

#include "base/host.h"
#include "base/log.h"
#include "memory/manager.h"

gn_status gni_storage_create(gn_device *device, size_t nbytes, struct gni_storage **out)
{
    gn_memory_manager *manager;
    GN_TRY(gn_memory_manager_get(device, &manager));
    struct gni_storage *storage = gni_host_alloc(sizeof *storage);
    if (storage == NULL)
        return gni_error_host_memory(sizeof *storage);
    gn_status status = gn_memory_block_alloc(manager, nbytes, NULL, &storage->block);
    if (status != GN_OK) {
        gni_host_free(storage);
        return status;
    }
    atomic_init(&storage->references, 1);
    storage->device = device;
    storage->data = gn_memory_block_peek_address(storage->block);
    storage->nbytes = nbytes;
    *out = storage;
    return GN_OK;
}

gn_status gni_storage_wrap(gn_device *device, void *data, bool is_read_only,
                           void (*deleter)(void *context), void *context, struct gni_storage **out)
{
    struct gni_storage *storage = gni_host_alloc(sizeof *storage);
    if (storage == NULL)
        return gni_error_host_memory(sizeof *storage);
    atomic_init(&storage->references, 1);
    storage->device = device;
    storage->data = data;
    storage->deleter = deleter;
    storage->context = context;
    storage->is_read_only = is_read_only;
    atomic_init(&storage->is_escaped, true);
    *out = storage;
    return GN_OK;
}

void gni_storage_release(struct gni_storage *storage)
{
    if (storage != NULL && gni_storage_unreference(storage))
        gni_storage_destroy(storage);
}

void gni_storage_destroy(struct gni_storage *storage)
{
    if (storage->block != NULL && gn_memory_block_free(storage->block) != GN_OK)
        gni_log(GNI_LOG_ERROR, "a tensor's memory was not freed: %s", gn_error_detail());
    else if (storage->block == NULL && storage->deleter != NULL)
        storage->deleter(storage->context);
    gni_host_free(storage);
}
