/*
 * cpu_device.c: the CPU's table of operations, its properties and its memory.
 *
 * Memory comes straight from the system by mmap(), whole pages at a time, so that it goes straight
 * back, and fresh memory is zero. From 2 MiB on it begins on a multiple of 2 MiB and may be backed by huge
 * pages: a fault brings 2 MiB instead of 4 KiB. Page-locked memory makes sense only beside a GPU: asked of the
 * CPU, it is ordinary memory.
 */
#include "device/cpu/cpu.h"

#include "base/checked.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static gn_device cpu_device;
static gn_stream cpu_default_stream;
static struct gni_once cpu_once = GNI_ONCE_INIT;
static uint64_t cpu_memory_most; /* bytes of memory and swap, read when the device is opened */

static gn_status cpu_check(gn_device *device)
{
    (void)device;
    return GN_OK;
}

/* ---- what the machine is -------------------------------------------------------------------- */

/* Copies the text after "key<spaces>:" of the first matching line of a /proc file. */
static bool proc_field_read(const char *path, const char *key, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char line[512];
    bool is_found = false;
    size_t key_length = strlen(key);
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, key_length) != 0 || colon == NULL ||
            strspn(line + key_length, " \t") != (size_t)(colon - line) - key_length)
            continue;
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        (void)snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
        is_found = true;
    }
    (void)fclose(file);
    return is_found;
}

static uint64_t proc_meminfo_bytes(const char *key)
{
    char text[64];
    unsigned long long kibibytes;
    if (!proc_field_read("/proc/meminfo", key, text, sizeof text) ||
        sscanf(text, "%llu", &kibibytes) != 1)
        return 0;
    return (uint64_t)kibibytes * 1024;
}

static uint64_t cpu_total_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : 0;
}

static gn_status cpu_properties(gn_device *device, gn_device_properties *properties)
{
    (void)device;
    gn_device_properties made = {.warp_size = 1, .max_threads_per_block = 1, .is_integrated = true};
    if (!proc_field_read("/proc/cpuinfo", "model name", made.name, sizeof made.name))
        (void)snprintf(made.name, sizeof made.name, "CPU");
    made.total_memory = cpu_total_memory();
    made.multi_processor_count = gni_processor_count();
    made.max_threads_per_multi_processor = 1;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    made.l2_cache_size = cache > 0 ? (uint64_t)cache : 0;
    *properties = made;
    return GN_OK;
}

static gn_status cpu_memory_info(gn_device *device, size_t *free_bytes, size_t *total_bytes)
{
    (void)device;
    uint64_t available = proc_meminfo_bytes("MemAvailable");
    uint64_t total = cpu_total_memory();
    *free_bytes = (size_t)(available < total ? available : total);
    *total_bytes = (size_t)total;
    return GN_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

static gn_status cpu_page_round(size_t nbytes, size_t *rounded)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!gni_size_align_up(nbytes, page, rounded))
        return gni_error(GN_ERROR_OVERFLOW, "%zu bytes do not fit the address space", nbytes);
    return GN_OK;
}

enum {
    HUGE_PAGE = 2 << 20,
};

/* Pages whose first one begins on a huge page: asks for more, and gives both ends back. NULL: refused. */
static void *pages_map_aligned(size_t nbytes)
{
    size_t asked;
    if (!gni_size_add(nbytes, HUGE_PAGE, &asked))
        return NULL;
    char *made = mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    size_t head = (size_t)(-(uintptr_t)made % HUGE_PAGE);
    if (head > 0)
        (void)munmap(made, head);
    if (head < HUGE_PAGE)
        (void)munmap(made + head + nbytes, HUGE_PAGE - head);
    (void)madvise(made + head, nbytes, MADV_HUGEPAGE); /* a wish: systems may have none */
    return made + head;
}

static void *pages_map(size_t nbytes)
{
    if (nbytes >= HUGE_PAGE)
        return pages_map_aligned(nbytes);
    void *made = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made != MAP_FAILED ? made : NULL;
}

static gn_status cpu_memory_alloc(gn_device *device, size_t nbytes, void **pointer)
{
    (void)device;
    size_t rounded;
    GN_TRY(cpu_page_round(nbytes, &rounded));
    /* A system that overcommits would hand out what it can never back. */
    if (rounded > cpu_memory_most)
        return gni_error(GN_ERROR_OUT_OF_MEMORY,
                         "cpu: %zu bytes were asked for; the machine has %llu", nbytes,
                         (unsigned long long)cpu_memory_most);
    void *made = pages_map(rounded);
    if (made == NULL)
        return gni_error(GN_ERROR_OUT_OF_MEMORY, "cpu: the system refused %zu bytes: %s", nbytes,
                         strerror(errno));
    *pointer = made;
    return GN_OK;
}

/* Waits for all streams, as the GPU's driver does: submitted work may still use the memory. */
static gn_status cpu_memory_free(gn_device *device, void *pointer, size_t nbytes)
{
    size_t rounded;
    GN_TRY(cpu_page_round(nbytes, &rounded));
    GN_TRY(gni_cpu_synchronize(device));
    if (munmap(pointer, rounded) != 0)
        return gni_error(GN_ERROR_INVALID_POINTER, "cpu: the system refused to free %p: %s",
                         pointer, strerror(errno));
    return GN_OK;
}

/* Nothing to do: the CPU reaches all host memory. */
static gn_status cpu_host_register(gn_device *device, void *pointer, size_t nbytes)
{
    (void)device, (void)pointer, (void)nbytes;
    return GN_OK;
}

static gn_status cpu_host_unregister(gn_device *device, void *pointer)
{
    (void)device, (void)pointer;
    return GN_OK;
}

/* ---- the device ----------------------------------------------------------------------------- */

static const struct gni_device_ops cpu_ops = {
    .name = "cpu",
    .is_host_memory = true,
    .is_immediate = true,
    .has_claims = true,
    .dlpack_type = 1, /* kDLCPU */
    .check = cpu_check,
    .properties = cpu_properties,
    .memory_info = cpu_memory_info,
    .synchronize = gni_cpu_synchronize,
    .memory_alloc = cpu_memory_alloc,
    .memory_free = cpu_memory_free,
    .host_alloc = cpu_memory_alloc, /* ordinary memory will do */
    .host_free = cpu_memory_free,
    .host_register = cpu_host_register,
    .host_unregister = cpu_host_unregister,
    .copy = gni_cpu_copy,
    .fill = gni_cpu_fill,
    .stream_open = gni_cpu_stream_open,
    .stream_close = gni_cpu_stream_close,
    .stream_id = gni_cpu_stream_id,
    .stream_query = gni_cpu_stream_query,
    .stream_synchronize = gni_cpu_stream_synchronize,
    .stream_wait_event = gni_cpu_stream_wait_event,
    .stream_is_capturing = gni_cpu_stream_is_capturing,
    .event_open = gni_cpu_event_open,
    .event_close = gni_cpu_event_close,
    .event_record = gni_cpu_event_record,
    .event_query = gni_cpu_event_query,
    .event_synchronize = gni_cpu_event_synchronize,
    .event_elapsed = gni_cpu_event_elapsed,
};

static void cpu_open(void)
{
    cpu_device.ops = &cpu_ops;
    cpu_device.type = GN_DEVICE_CPU;
    gni_stream_init(&cpu_default_stream, &cpu_device, GNI_STREAM_DEFAULT);
    gn_status status = gni_cpu_stream_open(&cpu_default_stream);
    gni_assert(status == GN_OK); /* the default stream's queue is static */
    (void)status;
    cpu_memory_most = cpu_total_memory() + proc_meminfo_bytes("SwapTotal");
    cpu_device.default_stream = &cpu_default_stream;
}

gn_status gni_cpu_device_open(gn_device **device)
{
    gni_once_run(&cpu_once, cpu_open);
    *device = &cpu_device;
    return GN_OK;
}

int gni_cpu_device_close(void)
{
    return atomic_load(&cpu_device.object_count);
}
