/*
 * storage.c: bytes that tensors share.
 *
 * Our own memory is kept by handle: its free needs no look-up, and until somebody outside learns its address
 * (gn_tensor_get_data) the manager may exchange what lies behind it. Work that we submit is kept away meanwhile.
 */
#include "tensor/tape.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/log.h"
#include "genesis/history.h"
#include "memory/manager.h"

enum {
    GPU_WORD = 4, /* bytes that a GPU exchanges at once: storage ends with a whole one (index.cu) */
};

_Atomic(size_t) gni_counted_least;

/* Where new storage on the CPU comes from; NULL: its own manager. Managers live for ever. */
static gn_memory_manager *_Atomic pinned_manager;

gn_status gn_tensor_set_pinned(gn_device *device)
{
    gn_memory_manager *manager = NULL;
    if (device != NULL)
        GN_TRY(gn_memory_manager_get_pinned(device, &manager));
    atomic_store(&pinned_manager, manager);
    return GN_OK;
}

struct gni_evaluator gni_evaluator;

/* Which manager the memory of new storage comes from. */
static gn_status manager_choose(gn_device *device, gn_memory_manager **manager)
{
    *manager = atomic_load_explicit(&pinned_manager, memory_order_relaxed);
    if (*manager != NULL && device->ops->is_host_memory)
        return GN_OK;
    return gn_memory_manager_get(device, manager);
}

bool gni_storage_can_be_taken(const struct gni_storage *storage, size_t holders)
{
    gn_memory_manager *manager;
    return atomic_load_explicit(&storage->references, memory_order_acquire) ==
               holders * GNI_STORAGE_HOLDER &&
           storage->block != NULL && !storage->is_read_only &&
           !atomic_load_explicit(&storage->is_escaped, memory_order_relaxed) &&
           !atomic_load_explicit(&storage->is_lasting, memory_order_relaxed) &&
           atomic_load_explicit(&storage->saved_tensors, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&storage->aliases, memory_order_relaxed) == NULL &&
           atomic_load_explicit(&storage->capture, memory_order_relaxed) == NULL &&
           !atomic_load_explicit(&storage->is_capturing, memory_order_relaxed) &&
           manager_choose(storage->device, &manager) == GN_OK && manager == storage->manager;
}

gn_status gni_storage_create(gn_device *device, size_t nbytes, gn_stream *stream,
                             struct gni_storage **out)
{
    gn_memory_manager *manager;
    GN_TRY(manager_choose(device, &manager));
    gn_status status = gni_storage_create_from(manager, device, nbytes, stream, out);
    if (status == GN_OK || manager != atomic_load(&pinned_manager))
        return status;
    GN_TRY(gn_memory_manager_get(device, &manager)); /* in a forked child, say */
    return gni_storage_create_from(manager, device, nbytes, stream, out);
}

gn_status gni_storage_create_from(gn_memory_manager *manager, gn_device *device, size_t nbytes,
                                  gn_stream *stream, struct gni_storage **out)
{
    struct gni_storage *storage = gni_host_alloc(sizeof *storage);
    if (storage == NULL)
        return gni_error_host_memory(sizeof *storage);
    size_t whole = nbytes;
    if (stream != NULL && !gni_size_align_up(nbytes, GPU_WORD, &whole))
        whole = nbytes; /* which is too much, too */
    gn_status status = gni_memory_alloc_tensor(manager, whole, stream, &storage->block);
    if (status != GN_OK) {
        gni_host_free(storage);
        return status;
    }
    atomic_init(&storage->references, 1);
    gni_list_init(&storage->pending);
    storage->device = device;
    storage->manager = manager;
    storage->data = gn_memory_block_peek_address(storage->block);
    storage->nbytes = nbytes;
    if (stream != NULL && (status = gni_storage_order_init(storage, stream)) != GN_OK) {
        gni_storage_destroy(storage);
        return status;
    }
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
    gni_list_init(&storage->pending);
    storage->device = device;
    storage->data = data;
    storage->deleter = deleter;
    storage->context = context;
    storage->is_read_only = is_read_only;
    atomic_init(&storage->is_escaped, true);
    gni_device_direct_begin(device);
    gn_stream *stream;
    gn_status status = gni_stream_of(device, &stream);
    if (status == GN_OK)
        status = gni_storage_order_init(storage, stream);
    if (status != GN_OK) {
        gni_device_direct_end(device);
        gni_host_free(storage);
        return status;
    }
    *out = storage;
    return GN_OK;
}

void gni_storage_note_site(struct gni_storage *storage)
{
    uint32_t site = gn_history_capture();
    if (site != 0)
        atomic_store_explicit(&storage->write_site, site, memory_order_relaxed);
}

void gni_storage_note_write(struct gni_storage *storage)
{
    atomic_fetch_add(&storage->version, 1);
    gni_storage_note_site(storage);
}

void gni_storage_release(struct gni_storage *storage)
{
    if (storage != NULL && gni_storage_unreference(storage))
        gni_storage_destroy(storage);
}

bool gni_storage_unreference_aliases(struct gni_storage *storage)
{
    gni_storage_hold(storage); /* others may release it while we look */
    size_t before = atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel);
    if ((uint32_t)before == 1)
        gni_tape.aliases_release(atomic_exchange(&storage->aliases, NULL));
    return gni_storage_unhold(storage);
}

void gni_storage_destroy(struct gni_storage *storage)
{
    struct gni_alias_set *aliases = atomic_load_explicit(&storage->aliases, memory_order_relaxed);
    if (aliases != NULL)
        gni_tape.aliases_release(aliases);
    if (storage->block == NULL && gni_storage_order_return(storage) != GN_OK)
        gni_log(GNI_LOG_ERROR, "memory of others goes back out of order: %s", gn_error_detail());
    if (storage->first.stream != NULL)
        gni_storage_order_deinit(storage);
    if (storage->block != NULL && gn_memory_block_free(storage->block) != GN_OK)
        gni_log(GNI_LOG_ERROR, "a tensor's memory was not freed: %s", gn_error_detail());
    else if (storage->block == NULL && storage->deleter != NULL)
        storage->deleter(storage->context);
    if (atomic_load_explicit(&storage->is_escaped, memory_order_relaxed))
        gni_device_direct_end(storage->device);
    gni_host_free(storage);
}
