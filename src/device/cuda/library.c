/*
 * library.c: looking for NVRTC and cuBLASLt. The order of places stands in library.h.
 *
 * Threads: library_mutex guards everything here. A library that was found stays; one that was not
 * is looked for again at the next call, since a directory may have been added.
 */
#include "device/cuda/library.h"

#include "base/fork.h"
#include "base/sha256.h"
#include "base/thread.h"
#include "device/cuda/driver.h"
#include "genesis/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIRECTORY_MAX = 32,
    NEWEST_MAJOR = 13, /* of CUDA, that we know of; newer drivers load these as well */
    OLDEST_MAJOR = 11,
    REASON_SIZE = 512,
};

struct library_symbol {
    const char *name;
    enum gni_cuda_need need;
    size_t offset; /* of its slot in the library's struct of functions */
};

struct library {
    const char *title;                    /* for people */
    const char *file;                     /* without the number after .so */
    const struct library_symbol *symbols; /* the first one tells whether a file is the library */
    size_t symbol_count;
    void *functions; /* where the symbols go */
    int (*version_read)(void);
    int *version; /* where the version goes */
    char path[512];
    bool is_open;
};

static struct library nvrtc_library;
static struct gni_nvrtc nvrtc = {.path = nvrtc_library.path};
static struct gni_cublaslt cublaslt;

#define LIBRARY_SYMBOL_NVRTC(result, name, need, arguments) \
    {#name, need, offsetof(struct gni_nvrtc_functions, name)},
#define LIBRARY_SYMBOL_CUBLASLT(result, name, need, arguments) \
    {#name, need, offsetof(struct gni_cublaslt_functions, name)},

static const struct library_symbol nvrtc_symbols[] = {GNI_NVRTC_FUNCTIONS(LIBRARY_SYMBOL_NVRTC)};
static const struct library_symbol cublaslt_symbols[] = {
    GNI_CUBLASLT_FUNCTIONS(LIBRARY_SYMBOL_CUBLASLT)};

static int nvrtc_version_read(void)
{
    int major = 0, minor = 0;
    if (nvrtc.functions.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS)
        return 0;
    return major * 1000 + minor * 10;
}

static int cublaslt_version_read(void)
{
    return (int)cublaslt.functions.cublasLtGetVersion();
}

static struct library nvrtc_library = {
    .title = "NVRTC",
    .file = "libnvrtc.so",
    .symbols = nvrtc_symbols,
    .symbol_count = sizeof nvrtc_symbols / sizeof *nvrtc_symbols,
    .functions = &nvrtc.functions,
    .version_read = nvrtc_version_read,
    .version = &nvrtc.version,
};

static struct library cublaslt_library = {
    .title = "cuBLASLt",
    .file = "libcublasLt.so",
    .symbols = cublaslt_symbols,
    .symbol_count = sizeof cublaslt_symbols / sizeof *cublaslt_symbols,
    .functions = &cublaslt.functions,
    .version_read = cublaslt_version_read,
    .version = &cublaslt.version,
};

static char directories[DIRECTORY_MAX][512];
static int directory_count;
static struct gni_mutex library_mutex = GNI_MUTEX_INIT;
static struct gni_once library_once = GNI_ONCE_INIT;

/* Takes all functions out of a loaded file; `reason` says which one is missing. */
static bool library_bind(struct library *library, void *handle, char *reason)
{
    for (size_t i = 0; i < library->symbol_count; i++) {
        const struct library_symbol *symbol = &library->symbols[i];
        void *address = dlsym(handle, symbol->name);
        if (address == NULL && symbol->need == REQUIRED) {
            (void)snprintf(reason, REASON_SIZE, "%s has no %s", library->title, symbol->name);
            return false;
        }
        memcpy((char *)library->functions + symbol->offset, &address, sizeof address);
    }
    Dl_info info;
    if (dladdr(dlsym(handle, library->symbols[0].name), &info) != 0 && info.dli_fname != NULL)
        (void)snprintf(library->path, sizeof library->path, "%s", info.dli_fname);
    *library->version = library->version_read();
    library->is_open = true;
    return true;
}

/* Tries one file; `mode` may say that it must be loaded already. */
static bool library_try(struct library *library, const char *path, int mode, char *reason)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | mode);
    return handle != NULL && library_bind(library, handle, reason);
}

/* Tries directory/file.so.N; a directory of NULL leaves the search to the system's loader. */
static bool library_try_majors(struct library *library, const char *directory, int mode,
                               int newest_major, char *reason)
{
    for (int major = newest_major; major >= OLDEST_MAJOR; major--) {
        char path[600];
        (void)snprintf(path, sizeof path, "%s%s%s.%d", directory != NULL ? directory : "",
                       directory != NULL ? "/" : "", library->file, major);
        if (library_try(library, path, mode, reason))
            return true;
    }
    return false;
}

static bool library_try_toolkit(struct library *library, const char *root, int newest_major,
                                char *reason)
{
    if (root == NULL || root[0] != '/')
        return false;
    char directory[512];
    (void)snprintf(directory, sizeof directory, "%.500s/lib64", root);
    return library_try_majors(library, directory, 0, newest_major, reason);
}

/* An older driver does not take newer code. `driver` is NULL where there is none. */
static int major_newest(const struct gni_cuda_driver *driver)
{
    return driver != NULL && driver->version / 1000 < NEWEST_MAJOR ? driver->version / 1000
                                                                   : NEWEST_MAJOR;
}

static bool driver_has(const struct gni_cuda_driver *driver, const struct library *library)
{
    return driver != NULL && dlsym(driver->library, library->symbols[0].name) != NULL;
}

/* The places where nothing must be loaded. */
static bool library_search_loaded(struct library *library, const struct gni_cuda_driver *driver,
                                  char *reason)
{
    if (driver_has(driver, library))
        return library_bind(library, driver->library, reason);
    return library_try_majors(library, NULL, RTLD_NOLOAD, major_newest(driver), reason);
}

static bool library_search(struct library *library, const struct gni_cuda_driver *driver,
                           char *reason)
{
    int newest = major_newest(driver);
    if (library_search_loaded(library, driver, reason))
        return true;
    if (driver_has(driver, library)) /* in a way that cannot be used */
        return false;
    if (library_try_toolkit(library, secure_getenv("CUDA_HOME"), newest, reason) ||
        library_try_toolkit(library, secure_getenv("CUDA_PATH"), newest, reason))
        return true;
    for (int i = 0; i < directory_count; i++)
        if (library_try_majors(library, directories[i], 0, newest, reason))
            return true;
    return library_try_majors(library, NULL, 0, newest, reason) ||
           library_try_toolkit(library, "/usr/local/cuda", newest, reason);
}

static const struct gni_fork_handlers library_fork = {.mutex = &library_mutex};

static void library_start(void)
{
    gni_fork_register(GNI_FORK_CUDA_LIBRARY, &library_fork);
}

/* The driver, or NULL. Opens it, and so is called before any lock is held. */
static const struct gni_cuda_driver *driver_find(void)
{
    const struct gni_cuda_driver *driver;
    return gni_cuda_driver_open(&driver) == GN_OK ? driver : NULL;
}

static gn_status library_open(struct library *library)
{
    gni_once_run(&library_once, library_start);
    const struct gni_cuda_driver *driver = driver_find();
    char reason[REASON_SIZE];
    (void)snprintf(reason, sizeof reason,
                   "%s was not found: neither %s.%d nor an older one is in CUDA_HOME, among the "
                   "nvidia wheels, where the system looks, or in /usr/local/cuda",
                   library->title, library->file, NEWEST_MAJOR);
    gni_mutex_lock(&library_mutex);
    bool is_open = library->is_open || library_search(library, driver, reason);
    gni_mutex_unlock(&library_mutex);
    return is_open ? GN_OK : gni_error(GN_ERROR_UNAVAILABLE, "%s", reason);
}

gn_status gni_nvrtc_open(const struct gni_nvrtc **out)
{
    GN_TRY(library_open(&nvrtc_library));
    *out = &nvrtc;
    return GN_OK;
}

bool gni_nvrtc_find_loaded(const struct gni_nvrtc **out)
{
    gni_once_run(&library_once, library_start);
    const struct gni_cuda_driver *driver = driver_find();
    char reason[REASON_SIZE];
    gni_mutex_lock(&library_mutex);
    bool is_open = nvrtc_library.is_open || library_search_loaded(&nvrtc_library, driver, reason);
    gni_mutex_unlock(&library_mutex);
    if (is_open)
        *out = &nvrtc;
    return is_open;
}

bool gni_nvrtc_is_the_drivers(void)
{
    return driver_has(driver_find(), &nvrtc_library);
}

void gni_nvrtc_hash_search(struct gni_sha256 *hash)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"};
    gni_once_run(&library_once, library_start);
    int newest = major_newest(driver_find());
    gni_sha256_add(hash, &newest, sizeof newest);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = secure_getenv(variables[i]);
        gni_sha256_add_text(hash, value != NULL ? value : "");
    }
    gni_mutex_lock(&library_mutex);
    for (int i = 0; i < directory_count; i++)
        gni_sha256_add_text(hash, directories[i]);
    gni_mutex_unlock(&library_mutex);
}

/* cuBLASLt calls the system's driver by itself, by its name; beside another one it would work on another GPU. */
static bool driver_is_the_systems(const struct gni_cuda_driver *driver)
{
    void *system = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (system != NULL)
        (void)dlclose(system); /* it stays loaded: only its count goes back */
    return system != NULL && system == driver->library;
}

gn_status gni_cublaslt_open(const struct gni_cublaslt **out)
{
    const struct gni_cuda_driver *driver;
    GN_TRY(gni_cuda_driver_open(&driver));
    if (!driver_has(driver, &cublaslt_library) && !driver_is_the_systems(driver))
        return gni_error(GN_ERROR_UNAVAILABLE, "cuBLASLt cannot use the driver %s", driver->path);
    GN_TRY(library_open(&cublaslt_library));
    *out = &cublaslt;
    return GN_OK;
}

gn_status gn_library_add_directory(const char *directory)
{
    if (directory == NULL || directory[0] != '/' || strlen(directory) >= sizeof directories[0])
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a library directory must be an absolute path of less than %zu characters",
                         sizeof directories[0]);
    gn_status status = GN_OK;
    gni_once_run(&library_once, library_start);
    gni_mutex_lock(&library_mutex);
    bool is_known = false;
    for (int i = 0; i < directory_count; i++)
        is_known = is_known || strcmp(directories[i], directory) == 0;
    if (!is_known && directory_count == DIRECTORY_MAX)
        status = gni_error(GN_ERROR_INVALID_VALUE, "there are %d library directories already",
                           DIRECTORY_MAX);
    else if (!is_known)
        (void)snprintf(directories[directory_count++], sizeof directories[0], "%s", directory);
    gni_mutex_unlock(&library_mutex);
    return status;
}

/* ---- descriptions --------------------------------------------------------------------------- */

static void driver_describe(gn_library_description *out)
{
    out->name = "CUDA driver";
    const struct gni_cuda_driver *driver;
    out->is_found = gni_cuda_driver_open(&driver) == GN_OK;
    if (out->is_found) {
        out->version = driver->version;
        (void)snprintf(out->path, sizeof out->path, "%s", driver->path);
    }
}

static void library_describe(struct library *library, gn_library_description *out)
{
    out->name = library->title;
    out->is_found = library_open(library) == GN_OK;
    if (out->is_found) {
        out->version = *library->version;
        (void)snprintf(out->path, sizeof out->path, "%s", library->path);
    }
}

bool gn_library_describe(int index, gn_library_description *out)
{
    if (out == NULL || index < 0 || index > 2)
        return false;
    *out = (gn_library_description){.name = ""};
    if (index == 0)
        driver_describe(out);
    else
        library_describe(index == 1 ? &nvrtc_library : &cublaslt_library, out);
    if (!out->is_found)
        (void)snprintf(out->reason, sizeof out->reason, "%.500s", gn_error_detail());
    return true;
}
