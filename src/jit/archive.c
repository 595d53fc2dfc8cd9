/*
 * archive.c: see archive.h.
 *
 * The file is opened once in a process, and stays open. Whether the driver can use it is asked each time: that is cheap, and
 * there may be no driver when the archive is described.
 */
#include "jit/archive.h"

#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/text.h"
#include "base/thread.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"
#include "jit/archive_file.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "libgenesis.kernels" /* src/CMakeLists.txt has it, too */

enum {
    TARGETS_MOST = 16, /* that are listed for people */
};

/* What was found, constant after archive_once. */
static struct {
    struct gni_archive_file *file; /* NULL: none, for this reason */
    char path[512];
    char reason[512];
} archive;
static struct gni_once archive_once = GNI_ONCE_INIT;
static _Atomic(const struct gni_archive_file *) given; /* by gni_archive_use() */

/* ---- the file ----------------------------------------------------------------------------------- */

/* The file beside the library; false: nobody knows where that is. */
static bool path_find_own(char *path, size_t size)
{
    Dl_info info;
    const char *slash;
    if (dladdr(&archive, &info) == 0 || info.dli_fname == NULL || info.dli_fname[0] != '/' ||
        (slash = strrchr(info.dli_fname, '/')) == NULL)
        return false;
    int length =
        snprintf(path, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, FILE_NAME);
    return length > 0 && (size_t)length < size;
}

static bool path_find(char *path, size_t size)
{
    const char *wish = gni_option_text(GNI_OPTION_KERNEL_ARCHIVE);
    if (wish[0] == '/')
        return (size_t)snprintf(path, size, "%s", wish) < size;
    if (strcmp(wish, "off") == 0) {
        snprintf(archive.reason, sizeof archive.reason, "GENESIS_KERNEL_ARCHIVE=off");
        return false;
    }
    if (strcmp(wish, "auto") != 0)
        gni_log(GNI_LOG_WARNING,
                "GENESIS_KERNEL_ARCHIVE=%s is no absolute path, \"auto\" or \"off\": "
                "taking the archive beside the library",
                wish);
    return path_find_own(path, size);
}

static void archive_start(void)
{
    (void)snprintf(archive.reason, sizeof archive.reason, "the library's folder is not known");
    if (!path_find(archive.path, sizeof archive.path)) {
        archive.path[0] = '\0';
        return;
    }
    gn_status status = gni_archive_file_open(archive.path, &archive.file);
    if (status == GN_OK)
        return;
    (void)snprintf(archive.reason, sizeof archive.reason, "%.500s", gn_error_detail());
    /* That there is none beside the library is usual where no compiler was there to build it. */
    bool is_usual =
        status == GN_ERROR_UNAVAILABLE && !gni_option_is_given(GNI_OPTION_KERNEL_ARCHIVE);
    gni_log(is_usual ? GNI_LOG_INFO : GNI_LOG_WARNING,
            "there is no archive of kernels: %s; kernels are compiled when they are needed",
            archive.reason);
}

/* Can the driver load what the file has? The reason is given where it cannot. */
static bool driver_suits(const struct gni_archive_file *file, char *reason, size_t size)
{
    const struct gni_cuda_driver *driver;
    int version = gni_archive_file_nvrtc_version(file);
    if (gni_cuda_driver_open(&driver) != GN_OK)
        (void)snprintf(reason, size, "there is no driver that could load it");
    else if (gni_nvrtc_is_the_drivers())
        (void)snprintf(reason, size, "the driver %.300s has a compiler of its own", driver->path);
    else if (driver->version / 1000 < version / 1000)
        (void)snprintf(reason, size,
                       "NVRTC %d.%d compiled it, and the driver is for CUDA %d.%d: install a newer "
                       "driver, or NVRTC of CUDA %d",
                       version / 1000, version % 1000 / 10, driver->version / 1000,
                       driver->version % 1000 / 10, driver->version / 1000);
    else
        return true;
    return false;
}

/* The file whose code can be used, or NULL. */
static const struct gni_archive_file *archive_get(void)
{
    static atomic_bool is_told;
    char reason[512];
    const struct gni_archive_file *file = atomic_load(&given);
    if (file != NULL)
        return file;
    gni_once_run(&archive_once, archive_start);
    if (archive.file == NULL || driver_suits(archive.file, reason, sizeof reason))
        return archive.file;
    if (!atomic_exchange(&is_told, true))
        gni_log(GNI_LOG_INFO, "the archive of kernels is not used: %s", reason);
    return NULL;
}

void gni_archive_use(const struct gni_archive_file *file)
{
    atomic_store(&given, file);
}

/* ---- kernels ------------------------------------------------------------------------------------ */

/* NULL for what an archive does not have: what includes headers, and names that only a compiler can turn into symbols. */
static const struct gni_archive_entry *entry_find(const struct gni_archive_file *file,
                                                  const struct gni_kernel_source *source,
                                                  int architecture)
{
    struct gni_archive_key key;
    if (file == NULL || source->is_expression || !gni_kernel_source_is_whole(source))
        return NULL;
    gni_archive_key_make(source, &key);
    return gni_archive_file_find(file, &key, architecture);
}

bool gni_archive_find(const struct gni_kernel_source *source, int architecture,
                      struct gni_kernel_image *image)
{
    const struct gni_archive_file *file = archive_get();
    const struct gni_archive_entry *entry = entry_find(file, source, architecture);
    if (entry == NULL)
        return false;
    size_t name_bytes = strlen(source->name) + 1;
    struct gni_kernel_image made = {.nbytes = entry->nbytes, .symbol = gni_host_alloc(name_bytes)};
    gn_status status = made.symbol == NULL ? gni_error_host_memory(name_bytes)
                                           : gni_archive_file_unpack(file, entry, &made.bytes);
    if (status != GN_OK) {
        gni_log(GNI_LOG_WARNING, "kernel %s cannot be taken from the archive: %s", source->name,
                gn_error_detail());
        gni_kernel_image_deinit(&made);
        return false;
    }
    memcpy(made.symbol, source->name, name_bytes);
    *image = made;
    return true;
}

bool gni_archive_has(gn_device *device, const struct gni_kernel_source *source)
{
    gn_device_properties properties;
    return device->ops->module_load != NULL &&
           device->ops->properties(device, &properties) == GN_OK &&
           entry_find(archive_get(), source, properties.major * 10 + properties.minor) != NULL;
}

int gni_archive_nvrtc_version(void)
{
    const struct gni_archive_file *file = archive_get();
    return file != NULL ? gni_archive_file_nvrtc_version(file) : 0;
}

/* ---- for people --------------------------------------------------------------------------------- */

/* The targets of the entries, in order; gives how many. */
static int targets_list(const struct gni_archive_entry *entries, size_t count,
                        uint32_t targets[TARGETS_MOST])
{
    int known = 0;
    for (size_t i = 0; i < count; i++) {
        int at = 0;
        while (at < known && targets[at] < entries[i].target)
            at++;
        if ((at < known && targets[at] == entries[i].target) || known == TARGETS_MOST)
            continue;
        memmove(&targets[at + 1], &targets[at], (size_t)(known - at) * sizeof *targets);
        targets[at] = entries[i].target;
        known++;
    }
    return known;
}

static void targets_print(const uint32_t *targets, int count, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s_%u", i > 0 ? " " : "",
                                 (targets[i] & GNI_ARCHIVE_PTX) != 0 ? "compute" : "sm",
                                 targets[i] & ~(unsigned)GNI_ARCHIVE_PTX);
}

void gni_archive_describe(gn_kernel_archive_description *out)
{
    uint32_t targets[TARGETS_MOST];
    const struct gni_archive_entry *entries;
    gni_once_run(&archive_once, archive_start);
    *out = (gn_kernel_archive_description){.is_found = archive.file != NULL};
    (void)snprintf(out->path, sizeof out->path, "%s", archive.path);
    if (archive.file == NULL) {
        (void)snprintf(out->reason, sizeof out->reason, "%s", archive.reason);
        return;
    }
    size_t count = gni_archive_file_entries(archive.file, &entries);
    for (size_t i = 0; i < count; i++)
        out->kernel_count +=
            i == 0 || memcmp(&entries[i].key, &entries[i - 1].key, sizeof entries->key) != 0;
    out->nvrtc_version = gni_archive_file_nvrtc_version(archive.file);
    out->nbytes = gni_archive_file_bytes(archive.file);
    targets_print(targets, targets_list(entries, count, targets), out->architectures,
                  sizeof out->architectures);
    out->is_used = driver_suits(archive.file, out->reason, sizeof out->reason);
}
