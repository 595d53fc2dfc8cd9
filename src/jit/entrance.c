/*
 * entrance.c: the public functions about kernels, which check their arguments.
 *
 * A gn_kernel is a handle on one of the process's kernels, which ends with gn_shutdown(): the handle knows
 * when that has happened.
 */
#include "genesis/kernel.h"

#include "base/host.h"
#include "jit/disk_cache.h"
#include "jit/kernel.h"
#include "memory/manager.h"

struct gn_kernel {
    struct gni_kernel *kernel;
    gn_device *device;
    uint64_t shutdown_count; /* when it was made; another one now: the kernel is gone */
};

gn_status gn_kernel_create(gn_device *device, const char *text, const char *name,
                           const char *const *options, gn_kernel **kernel)
{
    static const char *const none[] = {NULL};
    GN_CHECK_ARGUMENT(device != NULL && text != NULL && name != NULL && kernel != NULL,
                      "device, text, name and kernel must not be NULL");
    GN_CHECK_ARGUMENT(name[0] != '\0', "the name is empty");
    gn_kernel *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    struct gni_kernel_source source = {.name = name,
                                       .text = text,
                                       .options = options != NULL ? options : none,
                                       .is_expression = true};
    *made = (gn_kernel){.device = device, .shutdown_count = gni_shutdown_count()};
    gn_status status = gni_kernel_get(device, &source, &made->kernel);
    if (status != GN_OK) {
        gni_host_free(made);
        return status;
    }
    *kernel = made;
    return GN_OK;
}

void gn_kernel_destroy(gn_kernel *kernel)
{
    gni_host_free(kernel);
}

gn_device *gn_kernel_get_device(const gn_kernel *kernel)
{
    return kernel->device;
}

static gn_status kernel_check(const gn_kernel *kernel)
{
    if (kernel->shutdown_count != gni_shutdown_count())
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "the kernel was made before gn_shutdown(); make it again");
    return GN_OK;
}

gn_status gn_kernel_get_properties(const gn_kernel *kernel, gn_kernel_properties *properties)
{
    GN_CHECK_ARGUMENT(kernel != NULL && properties != NULL,
                      "kernel and properties must not be NULL");
    GN_TRY(kernel_check(kernel));
    const struct gni_function_properties *from = &kernel->kernel->properties;
    *properties = (gn_kernel_properties){.max_threads_per_block = from->max_threads_per_block,
                                         .register_count = from->register_count,
                                         .static_shared_bytes = from->static_shared_bytes,
                                         .local_bytes = from->local_bytes};
    return GN_OK;
}

/* The driver's own answer to these is "invalid value". */
static gn_status shape_check(const gn_kernel *kernel, const gn_kernel_shape *shape)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        GN_CHECK_ARGUMENT(shape->grid[i] > 0 && shape->block[i] > 0,
                          "every size of the grid and of a block is at least 1");
        threads = shape->block[i] > UINT32_MAX / threads ? UINT32_MAX : threads * shape->block[i];
    }
    uint64_t most = (uint64_t)kernel->kernel->properties.max_threads_per_block;
    if (threads > most)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a block of %u x %u x %u threads is too large: this kernel can have %u",
                         shape->block[0], shape->block[1], shape->block[2], (unsigned)most);
    return GN_OK;
}

gn_status gn_kernel_launch(gn_kernel *kernel, const gn_kernel_shape *shape, void **arguments,
                           gn_stream *stream)
{
    GN_CHECK_ARGUMENT(kernel != NULL && shape != NULL, "kernel and shape must not be NULL");
    GN_TRY(kernel_check(kernel));
    GN_TRY(shape_check(kernel, shape));
    if (stream == NULL)
        GN_TRY(gn_stream_get_current(kernel->device, &stream));
    if (stream->device != kernel->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "the kernel is on %s, and the stream on %s",
                         gni_device_label(kernel->device).text,
                         gni_device_label(stream->device).text);
    struct gni_launch launch = {.grid = {shape->grid[0], shape->grid[1], shape->grid[2]},
                                .block = {shape->block[0], shape->block[1], shape->block[2]},
                                .shared_bytes = shape->shared_bytes,
                                .arguments = arguments};
    return gni_kernel_launch(kernel->kernel, stream, &launch);
}

gn_status gn_kernel_cache_clear(size_t *removed)
{
    gni_kernel_clear();
    size_t count = gni_disk_cache_clear();
    if (removed != NULL)
        *removed = count;
    return GN_OK;
}
