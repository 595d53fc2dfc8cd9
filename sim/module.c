/*
 * module.c: loads images, finds kernels, and finds the source lines of places in their code.
 *
 * An image's object is written to memory that has a file descriptor, and loaded from there by the
 * name that /proc gives it. The descriptor stays open until the object is unloaded, because the
 * loader knows objects by name: a number used again too early would give the old object.
 */
#include "module.h"
#include "cache.h"
#include "compile.h"
#include "image.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct sim_module *modules;

/* ---- Loading ---- */

static int object_write(const void *bytes, size_t nbytes)
{
    int file = memfd_create("genesis-sim-kernel", MFD_CLOEXEC);
    if (file >= 0 && !sim_file_write(file, bytes, nbytes)) {
        close(file);
        file = -1;
    }
    return file;
}

static int segments_find(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct sim_module *module = context;
    uintptr_t table = (uintptr_t)module->table, begin = UINTPTR_MAX, end = 0;
    size_t thread_nbytes = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t first = info->dlpi_addr + header->p_vaddr, last = first + header->p_memsz;
        if (header->p_type == PT_TLS)
            thread_nbytes = header->p_memsz;
        if (header->p_type != PT_LOAD)
            continue;
        begin = first < begin ? first : begin;
        end = last > end ? last : end;
    }
    if (table < begin || table >= end)
        return 0;
    module->load_address = info->dlpi_addr;
    module->begin = begin;
    module->end = end;
    module->thread_nbytes = thread_nbytes;
    module->thread_module = info->dlpi_tls_modid;
    return 1;
}

/* What the loader finds by a name and a module's number and an offset. */
extern void *__tls_get_addr(size_t *place);

char *sim_module_shared(const struct sim_module *module)
{
    size_t place[2] = {module->thread_module, 0};
    return module->thread_nbytes > 0 ? __tls_get_addr(place) : NULL;
}

/* The symbol of a kernel; one without a symbol of its own (static) is found as in the source. */
static const char *entry_name(const struct gn_sim_entry *entry)
{
    Dl_info info;
    bool is_known = dladdr((void *)(uintptr_t)entry->function, &info) != 0 &&
                    info.dli_sname != NULL && info.dli_saddr == (void *)(uintptr_t)entry->function;
    return is_known ? info.dli_sname : entry->expression;
}

static bool kernels_make(struct sim_module *module)
{
    const struct gn_sim_module *table = module->table;
    module->kernels = calloc(table->entry_count + 1, sizeof *module->kernels);
    if (module->kernels == NULL)
        return false;
    for (unsigned i = 0; i < table->entry_count; i++) {
        const struct gn_sim_entry *entry = &table->entries[i];
        unsigned max = entry->max_threads;
        module->kernels[i] = (struct sim_kernel){
            .module = module,
            .name = entry_name(entry),
            .expression = entry->expression,
            .parameter_count = entry->parameter_count,
            .parameter_sizes = entry->sizes,
            .parameter_alignments = entry->alignments,
            .static_shared_bytes = module->thread_nbytes,
            .max_threads_per_block =
                max > 0 && max < SIM_BLOCK_MAX_THREADS ? max : SIM_BLOCK_MAX_THREADS,
            .entry = entry,
        };
    }
    module->kernel_count = table->entry_count;
    return true;
}

static CUresult module_open(struct sim_module *module, const struct sim_image *image)
{
    module->file = object_write(image + 1, (size_t)image->nbytes);
    if (module->file < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", module->file);
    module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module->handle == NULL) {
        fprintf(stderr, "genesis simulator: a kernel cannot be loaded: %s\n", dlerror());
        return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    }
    module->table = dlsym(module->handle, "gn_sim_module");
    if (module->table == NULL || module->table->version != GN_SIM_BRIDGE_VERSION)
        return CUDA_ERROR_INVALID_IMAGE;
    if (dl_iterate_phdr(segments_find, module) != 1)
        return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    return kernels_make(module) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void module_close(struct sim_module *module)
{
    free(module->kernels);
    if (module->handle != NULL)
        dlclose(module->handle);
    if (module->file >= 0)
        close(module->file);
    free(module);
}

/* The image that a text of nvrtcGetPTX() stands for; NULL: it is no such text. */
static const void *ptx_image(const char *text)
{
    char key[GNI_SHA256_TEXT_BYTES];
    struct sim_cached cached;
    if (strncmp(text, SIM_PTX_HEAD, strlen(SIM_PTX_HEAD)) != 0 ||
        sscanf(text + strlen(SIM_PTX_HEAD), "%64[0-9a-f]", key) != 1 ||
        strlen(key) != GNI_SHA256_TEXT_BYTES - 1 || !sim_cache_find(key, &cached))
        return NULL;
    return cached.image;
}

CUresult sim_module_load(const void *image, struct sim_module **module)
{
    if (!sim_image_is_valid(image))
        image = ptx_image(image);
    if (image == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    struct sim_image header;
    memcpy(&header, image, sizeof header);
    struct sim_module *loaded = calloc(1, sizeof *loaded);
    if (loaded == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    loaded->file = -1;
    CUresult result = module_open(loaded, image);
    if (result != CUDA_SUCCESS) {
        module_close(loaded);
        return result;
    }
    pthread_mutex_lock(&mutex);
    *loaded->table->bridge = &sim_bridge;
    loaded->next = modules;
    modules = loaded;
    pthread_mutex_unlock(&mutex);
    *module = loaded;
    return CUDA_SUCCESS;
}

void sim_module_unload(struct sim_module *module)
{
    pthread_mutex_lock(&mutex);
    struct sim_module **link = &modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    pthread_mutex_unlock(&mutex);
    module_close(module);
}

/* ---- Kernels ---- */

const struct sim_kernel *sim_module_find(const struct sim_module *module, const char *name)
{
    for (unsigned i = 0; i < module->kernel_count; i++)
        if (strcmp(module->kernels[i].name, name) == 0)
            return &module->kernels[i];
    return NULL;
}

const struct sim_kernel *sim_module_find_expression(const struct sim_module *module,
                                                    const char *expression)
{
    for (unsigned i = 0; i < module->kernel_count; i++)
        if (strcmp(module->kernels[i].expression, expression) == 0)
            return &module->kernels[i];
    return NULL;
}

/* The offset of the next parameter, behind those that end at `offset`. */
static size_t parameter_align(const struct sim_kernel *kernel, unsigned number, size_t offset)
{
    size_t alignment = kernel->parameter_alignments[number];
    return (offset + alignment - 1) & ~(alignment - 1);
}

size_t sim_kernel_parameters_bytes(const struct sim_kernel *kernel)
{
    size_t offset = 0;
    for (unsigned i = 0; i < kernel->parameter_count; i++)
        offset = parameter_align(kernel, i, offset) + kernel->parameter_sizes[i];
    return offset;
}

void sim_kernel_parameters_copy(const struct sim_kernel *kernel, void *const *arguments,
                                void *packed)
{
    size_t offset = 0;
    for (unsigned i = 0; i < kernel->parameter_count; i++) {
        offset = parameter_align(kernel, i, offset);
        memcpy((char *)packed + offset, arguments[i], kernel->parameter_sizes[i]);
        offset += kernel->parameter_sizes[i];
    }
}

void sim_kernel_parameters_locate(const struct sim_kernel *kernel, const void *packed,
                                  void **arguments)
{
    size_t offset = 0;
    for (unsigned i = 0; i < kernel->parameter_count; i++) {
        offset = parameter_align(kernel, i, offset);
        arguments[i] = (char *)packed + offset;
        offset += kernel->parameter_sizes[i];
    }
}

/* ---- Sites ---- */

/* Asks addr2line for the innermost line; false: it is not there or does not know. */
static bool line_find(const struct sim_module *module, uintptr_t address, char *file,
                      size_t capacity, int *line)
{
    int output = memfd_create("genesis-sim-line", MFD_CLOEXEC);
    if (output < 0)
        return false;
    char object[64], number[32];
    snprintf(object, sizeof object, "/proc/%ld/fd/%d", (long)getpid(), module->file);
    snprintf(number, sizeof number, "0x%lx", (unsigned long)(address - module->load_address));
    const char *const arguments[] = {"addr2line", "-e", object, number, NULL};
    struct sim_text text = {0};
    bool is_found = sim_process_run("addr2line", arguments, output, -1) == 0 &&
                    sim_file_read(output, &text) && text.length > 0;
    close(output);
    if (is_found) {
        text.data[strcspn(text.data, "\n")] = '\0';
        char *colon = strrchr(text.data, ':');
        *line = colon != NULL ? atoi(colon + 1) : 0;
        is_found = *line > 0;
        if (is_found) {
            *colon = '\0';
            const char *slash = strrchr(text.data, '/');
            snprintf(file, capacity, "%s", slash != NULL ? slash + 1 : text.data);
        }
    }
    sim_text_deinit(&text);
    return is_found;
}

void sim_site_describe(const void *site, char *file, size_t capacity, int *line)
{
    uintptr_t address = (uintptr_t)site - 1; /* of the call, not of what comes after it */
    *line = 0;
    snprintf(file, capacity, "?");
    pthread_mutex_lock(&mutex);
    struct sim_module *module = modules;
    while (module != NULL && (address < module->begin || address >= module->end))
        module = module->next;
    Dl_info info;
    if (module != NULL && !line_find(module, address, file, capacity, line) &&
        dladdr((void *)address, &info) != 0 && info.dli_sname != NULL)
        snprintf(file, capacity, "%s", info.dli_sname);
    pthread_mutex_unlock(&mutex);
}
