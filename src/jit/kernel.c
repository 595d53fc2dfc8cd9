/*
 * kernel.c: the kernels of the process, and their launches. The invariants stand in kernel.h.
 *
 *     buckets      kernels by hash, each in a chain that only grows at its head, or is dropped whole
 *     all_kernels  all that were made, dropped ones too, until gn_shutdown()
 *     jobs         kernels that are being made
 *     refusals     kernels that do not compile, with the reason
 *
 * Threads: kernel_mutex guards writing to the first two, and all of the others. A job lies on the stack of
 * the thread that makes the kernel, which leaves only when nobody looks at it any more.
 */
#include "jit/kernel.h"

#include "base/checked.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/list.h"
#include "base/log.h"
#include "base/option.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "genesis/memory.h"
#include "jit/archive.h"
#include "jit/background.h"
#include "jit/compiler.h"
#include "jit/nvrtc.h"
#include "jit/trim.h"

#include <stdio.h>
#include <string.h>

enum {
    BUCKET_COUNT = 4096,
    SHARED_BYTES_FREE = 48 * 1024, /* static and dynamic, that need no asking on any device */
    REFUSALS_MOST = 256,           /* then all are forgotten */
};

/* What a kernel is looked for by. */
struct key {
    uint64_t hash;
    gn_device *device;
    const void *signature; /* NULL: by the source */
    size_t signature_size;
    const struct gni_kernel_source *source;
};

struct job {
    struct gni_list link;
    struct gni_kernel *kernel; /* that becomes one: what it is known by is there */
    bool is_done;
    bool
        is_known_only; /* nothing is compiled: who needs the kernel tries again after this failed */
    int waiter_count;
    gn_status status;
    const char *detail; /* of a failure: the maker's, who waits until all have read it */
};

struct refusal {
    struct gni_list link;
    struct gni_kernel *kernel; /* that did not become one: what it is known by is there */
    char detail[];
};

static _Atomic(struct gni_kernel *) buckets[BUCKET_COUNT];
static struct gni_kernel *all_kernels;
static size_t kernel_count; /* in the buckets */
static struct gni_list jobs = {&jobs, &jobs};
static struct gni_list refusals = {&refusals, &refusals};
static size_t refusal_count;
static struct gni_mutex kernel_mutex = GNI_MUTEX_INIT;
static pthread_cond_t job_changed = PTHREAD_COND_INITIALIZER;
static struct gni_once kernel_once = GNI_ONCE_INIT;

/* ---- keys ----------------------------------------------------------------------------------- */

static struct key key_of_signature(gn_device *device, const void *signature, size_t size)
{
    return (struct key){.hash = gni_hash_bytes(signature, size, (uint64_t)(uintptr_t)device),
                        .device = device,
                        .signature = signature,
                        .signature_size = size};
}

static struct key key_of_source(gn_device *device, const struct gni_kernel_source *source)
{
    if (source->signature != NULL) {
        struct key key = key_of_signature(device, source->signature, source->signature_size);
        key.source = source;
        return key;
    }
    uint64_t hash = (uint64_t)(uintptr_t)device;
    const char *piece;
    for (size_t i = 0; (piece = gni_kernel_source_piece(source, i)) != NULL; i++)
        hash = gni_hash_bytes(piece, strlen(piece), hash);
    return (struct key){.hash = hash, .device = device, .source = source};
}

/* How many bytes a kernel keeps to be known by; false: more than there can be. */
static bool key_size(const struct key *key, size_t *size)
{
    size_t sum = key->signature != NULL ? key->signature_size : 0;
    const char *piece;
    for (size_t i = 0;
         key->signature == NULL && (piece = gni_kernel_source_piece(key->source, i)) != NULL; i++)
        if (!gni_size_add(sum, strlen(piece) + 1, &sum))
            return false;
    *size = sum;
    return true;
}

static void key_write(const struct key *key, char *to)
{
    if (key->signature != NULL) {
        memcpy(to, key->signature, key->signature_size);
        return;
    }
    const char *piece;
    for (size_t i = 0; (piece = gni_kernel_source_piece(key->source, i)) != NULL; i++) {
        size_t size = strlen(piece) + 1;
        memcpy(to, piece, size);
        to += size;
    }
}

/* Whether these bytes are the pieces of a source. */
static bool source_is(const struct gni_kernel_source *source, const char *bytes, size_t left)
{
    const char *piece;
    for (size_t i = 0; (piece = gni_kernel_source_piece(source, i)) != NULL; i++) {
        size_t size = strlen(piece) + 1;
        if (size > left || memcmp(bytes, piece, size) != 0)
            return false;
        bytes += size;
        left -= size;
    }
    return left == 0;
}

static bool key_fits(const struct key *key, const struct gni_kernel *kernel)
{
    if (kernel->hash != key->hash || kernel->device != key->device ||
        kernel->has_signature != (key->signature != NULL))
        return false;
    if (key->signature != NULL)
        return kernel->identity_size == key->signature_size &&
               memcmp(kernel->identity, key->signature, key->signature_size) == 0;
    return source_is(key->source, kernel->identity, kernel->identity_size);
}

/* ---- the table ------------------------------------------------------------------------------ */

static _Atomic(struct gni_kernel *) *bucket_of(uint64_t hash)
{
    return &buckets[hash % BUCKET_COUNT];
}

static struct gni_kernel *table_find(const struct key *key)
{
    struct gni_kernel *kernel = atomic_load_explicit(bucket_of(key->hash), memory_order_acquire);
    while (kernel != NULL && !key_fits(key, kernel))
        kernel = kernel->next;
    return kernel;
}

/* Under the mutex: unloaded at the end, and not before (J1). A kernel is not unloaded while a stream is captured. */
static void kernel_keep(struct gni_kernel *kernel)
{
    kernel->made_before = all_kernels;
    all_kernels = kernel;
}

/* Under the mutex. */
static void table_add(struct gni_kernel *kernel)
{
    _Atomic(struct gni_kernel *) *bucket = bucket_of(kernel->hash);
    kernel->is_in_table = true;
    kernel->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, kernel, memory_order_release);
    kernel_keep(kernel);
    kernel_count++;
}

/* Under the mutex. */
static void refusals_forget(void)
{
    while (!gni_list_is_empty(&refusals)) {
        struct refusal *refusal = gni_container_of(refusals.next, struct refusal, link);
        gni_list_remove(&refusal->link);
        gni_host_free(refusal->kernel);
        gni_host_free(refusal);
    }
    refusal_count = 0;
}

/* Under the mutex. */
static void table_drop(void)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        atomic_store_explicit(&buckets[i], NULL, memory_order_relaxed);
    for (struct gni_kernel *kernel = all_kernels; kernel != NULL; kernel = kernel->made_before)
        kernel->is_in_table = false;
    kernel_count = 0;
    refusals_forget();
}

void gni_kernel_clear(void)
{
    gni_background_clear();
    gni_mutex_lock(&kernel_mutex);
    table_drop();
    gni_mutex_unlock(&kernel_mutex);
}

size_t gni_kernel_count(void)
{
    gni_mutex_lock(&kernel_mutex);
    size_t count = kernel_count;
    gni_mutex_unlock(&kernel_mutex);
    return count;
}

size_t gni_kernel_visit(gni_kernel_visitor *visit, void *context)
{
    gni_mutex_lock(&kernel_mutex);
    size_t index = kernel_count;
    for (struct gni_kernel *kernel = all_kernels; kernel != NULL; kernel = kernel->made_before)
        if (kernel->is_in_table)
            visit(context, kernel, --index);
    size_t count = kernel_count;
    gni_mutex_unlock(&kernel_mutex);
    return count;
}

/* The devices are about to be closed, and nobody else is here but threads of background.h. */
static void kernels_unload(void)
{
    gni_background_stop();
    gni_background_clear();
    gni_mutex_lock(&kernel_mutex);
    table_drop();
    struct gni_kernel *kernel = all_kernels;
    all_kernels = NULL;
    gni_mutex_unlock(&kernel_mutex);
    while (kernel != NULL) {
        struct gni_kernel *before = kernel->made_before;
        (void)kernel->device->ops->module_unload(&kernel->module);
        gni_host_free(kernel);
        kernel = before;
    }
}

static const struct gni_fork_handlers kernel_fork = {.mutex = &kernel_mutex};

static struct gni_close_hook close_hook = {.run = kernels_unload};

static void kernel_register(void)
{
    gni_fork_register(GNI_FORK_KERNEL, &kernel_fork);
    gni_devices_add_close_hook(&close_hook);
}

void gni_kernel_start(void)
{
    gni_once_run(&kernel_once, kernel_register);
}

/* ---- making --------------------------------------------------------------------------------- */

static gn_status kernel_alloc(const struct key *key, struct gni_kernel **out)
{
    size_t size, nbytes;
    if (!key_size(key, &size) || !gni_size_add(sizeof(struct gni_kernel), size, &nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "the text of kernel %s is too long", key->source->name);
    struct gni_kernel *kernel = gni_host_alloc(nbytes);
    if (kernel == NULL)
        return gni_error_host_memory(nbytes);
    (void)snprintf(kernel->name, sizeof kernel->name, "%s", key->source->name);
    kernel->hash = key->hash;
    kernel->device = key->device;
    kernel->is_general = key->source->is_general;
    kernel->has_signature = key->signature != NULL;
    kernel->identity_size = size;
    key_write(key, kernel->identity);
    *out = kernel;
    return GN_OK;
}

/* Puts the kernel's name before the reason. */
static gn_status kernel_error(const struct gni_kernel_source *source, gn_status status)
{
    char reason[512];
    (void)snprintf(reason, sizeof reason, "%s", gn_error_detail());
    return gni_error(status, "kernel %s cannot be loaded: %s", source->name, reason);
}

/* Finds the kernel in its module, and what it needs. */
static gn_status kernel_find_function(struct gni_kernel *kernel, const char *symbol)
{
    const struct gni_device_ops *ops = kernel->device->ops;
    GN_TRY(ops->function_find(&kernel->module, symbol, &kernel->function));
    GN_TRY(ops->function_properties(&kernel->function, &kernel->properties));
    size_t used = kernel->properties.static_shared_bytes;
    atomic_init(&kernel->shared_bytes_max, used < SHARED_BYTES_FREE ? SHARED_BYTES_FREE - used : 0);
    return GN_OK;
}

/* Code takes memory of the device, of which the memory manager may hold some that is idle. */
static gn_status module_load(gn_device *device, const void *image, struct gni_module *module)
{
    gn_memory_manager *manager;
    gn_status status = device->ops->module_load(device, image, module);
    if (status != GN_ERROR_OUT_OF_MEMORY)
        return status;
    if (gn_memory_manager_get(device, &manager) == GN_OK)
        status = gn_memory_trim(manager, 0, NULL); /* if it fails, the driver says so again */
    return device->ops->module_load(device, image, module);
}

/* On failure there is no module. */
static gn_status kernel_load(struct gni_kernel *kernel, const struct gni_kernel_source *source,
                             const struct gni_kernel_image *image)
{
    gn_device *device = kernel->device;
    gn_status status = module_load(device, image->bytes, &kernel->module);
    if (status != GN_OK)
        return kernel_error(source, status);
    status = kernel_find_function(kernel, image->symbol);
    if (status == GN_OK)
        return GN_OK;
    status = kernel_error(source, status);
    (void)device->ops->module_unload(&kernel->module);
    return status;
}

/* Loads what the disk has. What the driver does not take is of no use to anybody. */
static bool kernel_load_cached(struct gni_kernel *kernel, const struct gni_kernel_source *source,
                               const struct gni_disk_key *key)
{
    struct gni_kernel_image image;
    if (!gni_disk_cache_find(key, &image))
        return false;
    gn_status status = kernel_load(kernel, source, &image);
    gni_kernel_image_deinit(&image);
    if (status == GN_OK) {
        kernel->origin = GN_KERNEL_FROM_DISK;
        gni_log(GNI_LOG_DEBUG, "kernel %s was found on disk", source->name);
        return true;
    }
    gni_log(GNI_LOG_INFO, "a kernel on disk is of no use: %s", gn_error_detail());
    if (status == GN_ERROR_DRIVER)
        gni_disk_cache_remove(key);
    return false;
}

/* Loads what the archive has. */
static bool kernel_load_archived(struct gni_kernel *kernel, const struct gni_kernel_source *source,
                                 int architecture)
{
    struct gni_kernel_image image;
    if (!gni_archive_find(source, architecture, &image))
        return false;
    gn_status status = kernel_load(kernel, source, &image);
    gni_kernel_image_deinit(&image);
    if (status == GN_OK)
        gni_log(GNI_LOG_DEBUG, "kernel %s was found in the archive", source->name);
    else
        gni_log(GNI_LOG_INFO, "a kernel of the archive is of no use: %s", gn_error_detail());
    return status == GN_OK;
}

/* `key` is NULL for what is not kept on disk. */
static gn_status kernel_compile(struct gni_kernel *kernel, const struct gni_kernel_source *source,
                                int architecture, const struct gni_disk_key *key)
{
    struct gni_kernel_image image;
    uint64_t start = gni_time_ns();
    GN_TRY(gni_nvrtc_compile(source, architecture, &image));
    kernel->origin = GN_KERNEL_FROM_COMPILER;
    kernel->compile_ms = (double)(gni_time_ns() - start) / 1e6;
    gn_status status = kernel_load(kernel, source, &image);
    if (status == GN_OK && key != NULL)
        gni_disk_cache_store(key, image.symbol, image.bytes, image.nbytes);
    gni_kernel_image_deinit(&image);
    return status;
}

static gn_status kernel_make(struct gni_kernel *kernel, const struct gni_kernel_source *source)
{
    gn_device_properties properties;
    GN_TRY(kernel->device->ops->properties(kernel->device, &properties));
    int architecture = properties.major * 10 + properties.minor;
    if (!gni_kernel_source_is_whole(source))
        return kernel_compile(kernel, source, architecture, NULL);
    if (kernel_load_archived(kernel, source, architecture))
        return GN_OK;
    struct gni_compiler compiler;
    struct gni_disk_key guessed, key;
    bool is_guessed = gni_compiler_guess(&compiler);
    if (is_guessed) {
        gni_compiler_key(&compiler, architecture, source, &guessed);
        if (kernel_load_cached(kernel, source, &guessed))
            return GN_OK;
    }
    if (source->is_known_only)
        return gni_error(GN_ERROR_UNAVAILABLE, "kernel %s has not been compiled", source->name);
    GN_TRY(gni_compiler_load(&compiler));
    gni_compiler_key(&compiler, architecture, source, &key);
    if ((!is_guessed || memcmp(&guessed, &key, sizeof key) != 0) &&
        kernel_load_cached(kernel, source, &key))
        return GN_OK;
    return kernel_compile(kernel, source, architecture, &key);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* Under the mutex. */
static const struct refusal *refusal_find(const struct key *key)
{
    gni_list_each (link, &refusals) {
        const struct refusal *refusal = gni_container_of(link, struct refusal, link);
        if (key_fits(key, refusal->kernel))
            return refusal;
    }
    return NULL;
}

/* Under the mutex: remembers why a kernel is none, which it takes, unless there is no memory for that; headers of a
 * source may be others the next time (J3). */
static bool refusal_add(const struct key *key, struct gni_kernel *kernel, const char *detail)
{
    size_t size = strlen(detail) + 1;
    struct refusal *refusal =
        gni_kernel_source_is_whole(key->source) ? gni_host_alloc(sizeof *refusal + size) : NULL;
    if (refusal == NULL)
        return false;
    if (refusal_count == REFUSALS_MOST)
        refusals_forget();
    refusal->kernel = kernel;
    memcpy(refusal->detail, detail, size);
    gni_list_push_back(&refusals, &refusal->link);
    refusal_count++;
    return true;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* Under the mutex. */
static struct job *job_find(const struct key *key)
{
    gni_list_each (link, &jobs) {
        struct job *job = gni_container_of(link, struct job, link);
        if (key_fits(key, job->kernel))
            return job;
    }
    return NULL;
}

/* Under the mutex, which is given up meanwhile. `is_void`: the job did not do what the caller needs. */
static gn_status job_wait(struct job *job, const struct gni_kernel_source *source, bool *is_void,
                          struct gni_kernel **kernel)
{
    job->waiter_count++;
    while (!job->is_done)
        (void)pthread_cond_wait(&job_changed, &kernel_mutex.native);
    gn_status status = job->status;
    *is_void = status != GN_OK && job->is_known_only && !source->is_known_only;
    if (status == GN_OK)
        *kernel = job->kernel;
    else if (!*is_void)
        gni_error_keep("%s", job->detail);
    if (--job->waiter_count == 0)
        (void)pthread_cond_broadcast(&job_changed);
    return status;
}

/* Under the mutex, which is given up meanwhile. */
static gn_status job_run(const struct key *key, struct gni_kernel **out)
{
    struct job job = {.is_known_only = key->source->is_known_only};
    GN_TRY(kernel_alloc(key, &job.kernel));
    gni_list_push_back(&jobs, &job.link);
    gni_mutex_unlock(&kernel_mutex);

    job.status = kernel_make(job.kernel, key->source);
    job.detail = gn_error_detail();

    gni_mutex_lock(&kernel_mutex);
    job.is_done = true;
    gni_list_remove(&job.link);
    if (job.status == GN_OK)
        table_add(job.kernel);
    (void)pthread_cond_broadcast(&job_changed);
    while (job.waiter_count > 0)
        (void)pthread_cond_wait(&job_changed, &kernel_mutex.native);
    if (job.status == GN_OK)
        *out = job.kernel;
    else if (job.status != GN_ERROR_COMPILATION || !refusal_add(key, job.kernel, job.detail))
        gni_host_free(job.kernel);
    return job.status;
}

/* Under the mutex, which is given up meanwhile. */
static gn_status kernel_get_locked(const struct key *key, struct gni_kernel **out)
{
    for (;;) {
        bool is_void;
        struct gni_kernel *kernel = table_find(key);
        if (kernel != NULL) {
            *out = kernel;
            return GN_OK;
        }
        const struct refusal *refusal = refusal_find(key);
        if (refusal != NULL)
            return gni_error(GN_ERROR_COMPILATION, "%s", refusal->detail);
        struct job *job = job_find(key);
        if (job == NULL)
            return job_run(key, out);
        gn_status status = job_wait(job, key->source, &is_void, out);
        if (!is_void)
            return status;
    }
}

gn_status gni_kernel_get(gn_device *device, const struct gni_kernel_source *source,
                         struct gni_kernel **out)
{
    struct key key = key_of_source(device, source);
    struct gni_kernel *kernel = table_find(&key);
    if (kernel != NULL) {
        *out = kernel;
        return GN_OK;
    }
    GN_TRY(device->ops->check(device));
    if (device->ops->module_load == NULL)
        return gni_error(GN_ERROR_UNSUPPORTED, "kernel %s is for a GPU, and cannot run on %s",
                         source->name, gni_device_label(device).text);
    gni_kernel_start();
    if (key.signature != NULL)
        gni_background_leave(device, key.signature, key.signature_size); /* J6 */
    gni_mutex_lock(&kernel_mutex);
    gn_status status = kernel_get_locked(&key, out);
    gni_mutex_unlock(&kernel_mutex);
    return status;
}

/* What a text needs of itself; the text ends. */
static gn_status text_take(struct gni_builder *text, struct gni_builder *trimmed)
{
    size_t length = text->length;
    bool has_failed = text->has_failed;
    if (!has_failed)
        gni_text_trim(text->text, trimmed);
    gni_builder_deinit(text);
    if (!has_failed && !trimmed->has_failed)
        return GN_OK;
    gni_builder_deinit(trimmed);
    return gni_error_host_memory(length);
}

/* Makes the kernel of a text, which ends; `source` has what is known of it beside. */
static gn_status text_build(gn_device *device, struct gni_kernel_source *source,
                            struct gni_builder *text, struct gni_kernel **kernel)
{
    struct gni_builder trimmed = {.text = NULL};
    GN_TRY(text_take(text, &trimmed));
    source->text = trimmed.text;
    gn_status status = gni_kernel_get(device, source, kernel);
    gni_builder_deinit(&trimmed);
    return status;
}

gn_status gni_kernel_build(gn_device *device, const char *name, struct gni_builder *text,
                           const void *signature, size_t signature_size, struct gni_kernel **kernel)
{
    struct gni_kernel_source source = {
        .name = name, .signature = signature, .signature_size = signature_size};
    return text_build(device, &source, text, kernel);
}

gn_status gni_kernel_build_general(gn_device *device, const char *name, struct gni_builder *text,
                                   const void *signature, size_t signature_size,
                                   struct gni_kernel **kernel)
{
    struct gni_kernel_source source = {
        .name = name, .is_general = true, .signature = signature, .signature_size = signature_size};
    return text_build(device, &source, text, kernel);
}

gn_status gni_kernel_build_known(gn_device *device, const char *name, struct gni_builder *text,
                                 const void *signature, size_t signature_size,
                                 struct gni_kernel **kernel)
{
    struct gni_kernel_source source = {.name = name,
                                       .is_known_only = true,
                                       .signature = signature,
                                       .signature_size = signature_size};
    return text_build(device, &source, text, kernel);
}

/* Loads it, too: J5. */
static gn_status kernel_store(gn_device *device, const struct gni_kernel_source *source)
{
    struct key key = key_of_source(device, source);
    struct gni_kernel *kernel = NULL;
    GN_TRY(device->ops->check(device));
    GN_TRY(kernel_alloc(&key, &kernel));
    gn_status status = kernel_make(kernel, source);
    if (status != GN_OK) {
        gni_host_free(kernel);
        return status;
    }
    gni_mutex_lock(&kernel_mutex);
    kernel_keep(kernel);
    gni_mutex_unlock(&kernel_mutex);
    return GN_OK;
}

gn_status gni_kernel_build_stored(gn_device *device, const char *name, struct gni_builder *text,
                                  const void *signature, size_t signature_size)
{
    struct gni_builder trimmed = {.text = NULL};
    GN_TRY(text_take(text, &trimmed));
    struct gni_kernel_source source = {.name = name,
                                       .text = trimmed.text,
                                       .signature = signature,
                                       .signature_size = signature_size};
    gn_status status = kernel_store(device, &source);
    gni_builder_deinit(&trimmed);
    return status;
}

struct gni_kernel *gni_kernel_find(gn_device *device, const void *signature, size_t size)
{
    struct key key = key_of_signature(device, signature, size);
    return table_find(&key);
}

/* Kernels that are made at the same time. */
struct batch {
    gn_device *device;
    const struct gni_kernel_source *sources;
    gn_status status; /* of the first failure; under the mutex */
    char detail[1024];
};

static void batch_make(void *context, size_t begin, size_t end)
{
    struct batch *batch = context;
    for (size_t i = begin; i < end; i++) {
        struct gni_kernel *kernel;
        gn_status status = gni_kernel_get(batch->device, &batch->sources[i], &kernel);
        gni_mutex_lock(&kernel_mutex);
        if (status != GN_OK && batch->status == GN_OK) {
            batch->status = status;
            (void)snprintf(batch->detail, sizeof batch->detail, "%s", gn_error_detail());
        }
        gni_mutex_unlock(&kernel_mutex);
    }
}

gn_status gni_kernel_prepare(gn_device *device, const struct gni_kernel_source *sources,
                             size_t count)
{
    struct batch batch = {.device = device, .sources = sources};
    gni_parallel_for(count, 1, batch_make, &batch);
    return batch.status == GN_OK ? GN_OK : gni_error(batch.status, "%s", batch.detail);
}

/* ---- launching ------------------------------------------------------------------------------ */

/* Lets the kernel use this much dynamic shared memory, and never less than others asked for. */
static gn_status shared_allow(struct gni_kernel *kernel, size_t nbytes)
{
    gn_status status = GN_OK;
    gni_mutex_lock(&kernel_mutex);
    if (nbytes > atomic_load_explicit(&kernel->shared_bytes_max, memory_order_relaxed)) {
        status = kernel->device->ops->function_allow_shared(&kernel->function, nbytes);
        if (status == GN_OK)
            atomic_store_explicit(&kernel->shared_bytes_max, nbytes, memory_order_relaxed);
    }
    gni_mutex_unlock(&kernel_mutex);
    return status;
}

/* A captured launch does not run now. */
gn_status gni_launch_check(gn_stream *stream)
{
    bool is_capturing;
    if ((gni_option_set(GNI_OPTION_DEBUG) & GNI_DEBUG_SYNC) == 0)
        return GN_OK;
    GN_TRY(stream->device->ops->stream_is_capturing(stream, &is_capturing));
    return is_capturing ? GN_OK : stream->device->ops->stream_synchronize(stream);
}

gn_status gni_kernel_launch(struct gni_kernel *kernel, gn_stream *stream,
                            const struct gni_launch *launch)
{
    if (launch->shared_bytes >
        atomic_load_explicit(&kernel->shared_bytes_max, memory_order_relaxed))
        GN_TRY(shared_allow(kernel, launch->shared_bytes));
    atomic_fetch_add_explicit(&kernel->launch_count, 1, memory_order_relaxed);
    struct gni_profile_run *run = gni_profile_begin(kernel->name, stream, launch, &kernel->total);
    gn_status status = kernel->device->ops->function_launch(&kernel->function, stream, launch);
    gni_profile_end(run, stream, status == GN_OK);
    GN_TRY(status);
    return gni_launch_check(stream);
}
