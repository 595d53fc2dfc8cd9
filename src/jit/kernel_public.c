/*
 * kernel_public.c: the public functions about kernels, which check their arguments.
 *
 * A gn_kernel is a handle on one of the process's kernels, which ends with gn_shutdown(): the handle knows
 * when that has happened.
 */
#include "genesis/kernel.h"

#include "base/host.h"
#include "jit/background.h"
#include "jit/archive.h"
#include "jit/disk_cache.h"
#include "jit/kernel.h"
#include "jit/tune.h"
#include "memory/manager.h"

#include <string.h>

enum {
    PARAMETERS_MAX = 1 << 15, /* there are fewer bytes of them */
};

struct gn_kernel {
    struct gni_kernel *kernel;
    gn_device *device;
    uint64_t shutdown_count; /* when it was made; another one now: the kernel is gone */
    int parameter_count;     /* -1: not known */
    uint32_t parameter_sizes[];
};

/* What the kernel takes, where the driver says it; -1 where it does not. */
static gn_status parameters_count(const struct gni_kernel *kernel, int *count)
{
    size_t nbytes;
    gn_status status = GN_OK;
    int found = 0;
    while (found < PARAMETERS_MAX && (status = kernel->device->ops->function_parameter(
                                          &kernel->function, (size_t)found, &nbytes)) == GN_OK)
        found++;
    if (status != GN_ERROR_INVALID_VALUE && status != GN_ERROR_UNSUPPORTED)
        return status;
    *count = status == GN_ERROR_UNSUPPORTED ? -1 : found;
    return GN_OK;
}

static gn_status parameters_read(gn_kernel *kernel)
{
    const struct gni_device_ops *ops = kernel->device->ops;
    for (int i = 0; i < kernel->parameter_count; i++) {
        size_t nbytes;
        GN_TRY(ops->function_parameter(&kernel->kernel->function, (size_t)i, &nbytes));
        kernel->parameter_sizes[i] = (uint32_t)nbytes;
    }
    return GN_OK;
}

static gn_status kernel_wrap(struct gni_kernel *kernel, gn_kernel **out)
{
    int count = -1;
    GN_TRY(parameters_count(kernel, &count));
    size_t nbytes =
        sizeof **out + (count > 0 ? (size_t)count * sizeof *(*out)->parameter_sizes : 0);
    gn_kernel *made = gni_host_alloc(nbytes);
    if (made == NULL)
        return gni_error_host_memory(nbytes);
    made->kernel = kernel;
    made->device = kernel->device;
    made->shutdown_count = gni_shutdown_count();
    made->parameter_count = count;
    gn_status status = parameters_read(made);
    if (status != GN_OK) {
        gni_host_free(made);
        return status;
    }
    *out = made;
    return GN_OK;
}

/* Of a user's kernel. */
static gn_status source_fill(struct gni_kernel_source *source, const char *text, const char *name,
                             const char *const *options)
{
    static const char *const none[] = {NULL};
    GN_CHECK_ARGUMENT(name[0] != '\0', "the name is empty");
    *source = (struct gni_kernel_source){.name = name,
                                         .text = text,
                                         .options = options != NULL ? options : none,
                                         .is_expression = true};
    return GN_OK;
}

gn_status gn_kernel_create(gn_device *device, const char *text, const char *name,
                           const char *const *options, gn_kernel **kernel)
{
    GN_CHECK_ARGUMENT(device != NULL && text != NULL && name != NULL && kernel != NULL,
                      "device, text, name and kernel must not be NULL");
    struct gni_kernel_source source;
    GN_TRY(source_fill(&source, text, name, options));
    struct gni_kernel *made;
    GN_TRY(gni_kernel_get(device, &source, &made));
    return kernel_wrap(made, kernel);
}

gn_status gn_kernel_request(gn_device *device, const char *text, const char *name,
                            const char *const *options)
{
    GN_CHECK_ARGUMENT(device != NULL && text != NULL && name != NULL,
                      "device, text and name must not be NULL");
    struct gni_kernel_source source;
    GN_TRY(source_fill(&source, text, name, options));
    if (device->ops->module_load == NULL)
        return gni_error(GN_ERROR_UNSUPPORTED, "kernel %s is for a GPU, and cannot run on %s", name,
                         gni_device_label(device).text);
    gni_kernel_request_source(device, &source);
    return GN_OK;
}

gn_status gn_kernel_wait(uint64_t timeout_ms)
{
    return gni_background_wait(timeout_ms) ? GN_OK : GN_ERROR_NOT_READY;
}

void gn_kernel_stop(void)
{
    gni_background_stop();
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
    *properties = (gn_kernel_properties){.parameter_count = kernel->parameter_count,
                                         .max_threads_per_block = from->max_threads_per_block,
                                         .register_count = from->register_count,
                                         .static_shared_bytes = from->static_shared_bytes,
                                         .local_bytes = from->local_bytes};
    return GN_OK;
}

size_t gn_kernel_get_parameter_size(const gn_kernel *kernel, int index)
{
    return index >= 0 && index < kernel->parameter_count ? kernel->parameter_sizes[index] : 0;
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

void gn_kernel_archive_describe(gn_kernel_archive_description *description)
{
    if (description != NULL)
        gni_archive_describe(description);
}

gn_status gn_kernel_cache_clear(size_t *removed)
{
    gni_kernel_clear();
    gni_tune_clear();
    size_t count = gni_disk_cache_clear();
    if (removed != NULL)
        *removed = count;
    return GN_OK;
}

struct kernel_listing {
    gn_kernel_description *kernels;
    size_t capacity;
};

static void listing_add(void *context, const struct gni_kernel *kernel, size_t index)
{
    struct kernel_listing *listing = context;
    if (index >= listing->capacity)
        return;
    gn_kernel_description *to = &listing->kernels[index];
    const struct gni_profile_total *total = &kernel->total;
    *to = (gn_kernel_description){
        .device = kernel->device->index,
        .tier = kernel->is_general || kernel->origin == GN_KERNEL_FROM_ARCHIVE ? 0 : 1,
        .origin = kernel->origin,
        .compile_ms = kernel->compile_ms,
        .launch_count = atomic_load_explicit(&kernel->launch_count, memory_order_relaxed),
        .measured_count = atomic_load_explicit(&total->count, memory_order_relaxed),
        .gpu_ms = (double)atomic_load_explicit(&total->ns, memory_order_relaxed) / 1e6,
    };
    memcpy(to->name, kernel->name, sizeof to->name);
}

gn_status gn_kernel_list(gn_kernel_description *kernels, size_t capacity, size_t *count)
{
    GN_CHECK_ARGUMENT(count != NULL && (kernels != NULL || capacity == 0),
                      "count must not be NULL, nor kernels if there is room for some");
    struct kernel_listing listing = {.kernels = kernels, .capacity = capacity};
    *count = gni_kernel_visit(listing_add, &listing);
    return GN_OK;
}
