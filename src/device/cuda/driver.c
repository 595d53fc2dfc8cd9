/*
 * driver.c: opening the CUDA driver. The states stand in driver.h.
 *
 * Threads: driver_mutex guards opening; driver_state is published with release after everything it
 * speaks of is written.
 */
#include "device/cuda/driver.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum driver_state {
    DRIVER_UNOPENED,
    DRIVER_OPENED,
    DRIVER_REFUSED,
    DRIVER_FORKED,
    DRIVER_EXITING,
};

struct function_rule {
    const char *name;
    const char *symbol;
    int version;
    enum gni_cuda_need need;
    const char *lost;
    size_t offset; /* of its slot in struct gni_cuda_functions */
};

static const struct function_rule function_rules[] = {
#define FUNCTION_RULE(name, symbol, version, need, arguments, lost) \
    {#name, symbol, version, need, lost, offsetof(struct gni_cuda_functions, name)},
    GNI_CUDA_FUNCTIONS(FUNCTION_RULE)
#undef FUNCTION_RULE
};

static struct gni_cuda_driver driver;
static _Atomic(enum driver_state) driver_state = DRIVER_UNOPENED;
static char driver_refusal[768]; /* why, when refused */
static struct gni_mutex driver_mutex = GNI_MUTEX_INIT;
static struct gni_once driver_once = GNI_ONCE_INIT;

/* ---- symbols -------------------------------------------------------------------------------- */

/* How this driver gives its functions out. */
struct symbol_source {
    void *library;
    int driver_version;
    PFN_cuGetProcAddress_v12000 get_v2; /* NULL before CUDA 12.0 */
    PFN_cuGetProcAddress_v11030 get_v1; /* NULL before CUDA 11.3 */
};

/* dlsym() returns an object pointer; this is POSIX's way to a function pointer. */
static void symbol_store(void *slot, void *address)
{
    memcpy(slot, &address, sizeof address);
}

static void *symbol_find(const struct symbol_source *source, const struct function_rule *rule)
{
    void *address = NULL;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    /* A driver that is older than the ABI we want would give us another ABI of the same name. */
    if (rule->version > source->driver_version)
        return NULL;
    if (source->get_v2 != NULL) {
        CUdriverProcAddressQueryResult query;
        result = source->get_v2(rule->name, &address, rule->version,
                                CU_GET_PROC_ADDRESS_LEGACY_STREAM, &query);
    } else if (source->get_v1 != NULL) {
        result =
            source->get_v1(rule->name, &address, rule->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    } else {
        return dlsym(source->library, rule->symbol);
    }
    return result == CUDA_SUCCESS ? address : NULL;
}

/* Fills the table; the names of missing required functions are gathered in `missing`. */
static void functions_resolve(const struct symbol_source *source, struct gni_cuda_functions *table,
                              char *missing, size_t missing_size)
{
    missing[0] = '\0';
    for (size_t i = 0; i < sizeof function_rules / sizeof *function_rules; i++) {
        const struct function_rule *rule = &function_rules[i];
        void *address = symbol_find(source, rule);
        symbol_store((char *)table + rule->offset, address);
        if (address != NULL)
            continue;
        if (rule->need == OPTIONAL) {
            gni_log(GNI_LOG_INFO, "the CUDA driver has no %s; lost without it: %s", rule->name,
                    rule->lost);
            continue;
        }
        size_t used = strlen(missing);
        (void)snprintf(missing + used, missing_size - used, "%s%s", used > 0 ? ", " : "",
                       rule->name);
    }
}

const char *gni_cuda_function_lost(const char *name)
{
    for (size_t i = 0; i < sizeof function_rules / sizeof *function_rules; i++)
        if (strcmp(function_rules[i].name, name) == 0)
            return function_rules[i].lost;
    return "";
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool is_file_name(const char *text)
{
    return text[0] == '/' || strstr(text, ".so") != NULL;
}

/* Where this library itself was loaded from, up to and including the last slash; "" if unknown, or if it was loaded by a
 * relative path: the current directory may be another one by now. The system's loader then finds what it found before. */
static void own_directory_find(char *directory, size_t size)
{
    Dl_info info;
    directory[0] = '\0';
    if (dladdr(&driver, &info) == 0 || info.dli_fname == NULL)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash != NULL && info.dli_fname[0] == '/')
        (void)snprintf(directory, size, "%.*s", (int)(slash + 1 - info.dli_fname), info.dli_fname);
}

/* The file that GENESIS_CUDA_DRIVER means: itself, or libgenesis_WORD.so beside this library. */
static void driver_path_find(char *path, size_t size)
{
    const char *text = gni_option_text(GNI_OPTION_CUDA_DRIVER);
    if (is_file_name(text)) {
        (void)snprintf(path, size, "%s", text);
        return;
    }
    char directory[4096];
    own_directory_find(directory, sizeof directory);
    (void)snprintf(path, size, "%slibgenesis_%s.so", directory, text);
}

#define REFUSE(...)                                                         \
    do {                                                                    \
        (void)snprintf(driver_refusal, sizeof driver_refusal, __VA_ARGS__); \
        return false;                                                       \
    } while (0)

static bool driver_load(struct symbol_source *source)
{
    char path[4608];
    driver_path_find(path, sizeof path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror();
        REFUSE("the CUDA driver could not be loaded: %s%s", reason != NULL ? reason : path,
               strcmp(path, "libcuda.so.1") == 0
                   ? ". Without a GPU there are the device \"cpu\", and a simulated GPU: "
                     "GENESIS_CUDA_DRIVER=sim"
                   : "");
    }
    driver.library = library;
    (void)snprintf(driver.path, sizeof driver.path, "%s", path);

    void *get_version = dlsym(library, "cuDriverGetVersion");
    CUresult (*cuDriverGetVersion)(int *);
    symbol_store(&cuDriverGetVersion, get_version);
    if (get_version == NULL)
        REFUSE("%s is not a CUDA driver: it has no cuDriverGetVersion", path);
    Dl_info info;
    if (dladdr(get_version, &info) != 0 && info.dli_fname != NULL)
        (void)snprintf(driver.path, sizeof driver.path, "%s", info.dli_fname);
    CUresult result = cuDriverGetVersion(&driver.version);
    if (result != CUDA_SUCCESS)
        REFUSE("the CUDA driver %s does not tell its version (error %d)", path, (int)result);
    if (driver.version < GNI_CUDA_OLDEST_VERSION)
        REFUSE("the CUDA driver %s is too old: it is for CUDA %d.%d, and %d.%d is the oldest that "
               "Genesis supports; install a newer driver",
               path, driver.version / 1000, driver.version % 1000 / 10,
               GNI_CUDA_OLDEST_VERSION / 1000, GNI_CUDA_OLDEST_VERSION % 1000 / 10);

    *source = (struct symbol_source){.library = library, .driver_version = driver.version};
    symbol_store(&source->get_v2, dlsym(library, "cuGetProcAddress_v2"));
    symbol_store(&source->get_v1, dlsym(library, "cuGetProcAddress"));
    return true;
}

/* Runs before the driver's own exit handlers, which were registered earlier, in cuInit(). */
static void driver_at_exit(void)
{
    atomic_store(&driver_state, DRIVER_EXITING);
}

static bool driver_start(void)
{
    struct symbol_source source;
    if (!driver_load(&source))
        return false;
    char missing[256];
    functions_resolve(&source, &driver.functions, missing, sizeof missing);
    if (missing[0] != '\0')
        REFUSE("the CUDA driver %s, for CUDA %d.%d, lacks functions that Genesis needs: %s",
               driver.path, driver.version / 1000, driver.version % 1000 / 10, missing);
    CUresult result = driver.functions.cuInit(0);
    if (result != CUDA_SUCCESS)
        REFUSE("the CUDA driver %s does not start: %s", driver.path,
               gni_cuda_error_text(&driver, result).text);
    if (atexit(driver_at_exit) != 0)
        REFUSE("no room for an exit handler");
    return true;
}

/* ---- fork ----------------------------------------------------------------------------------- */

static void driver_fork_done(bool is_child)
{
    /* A driver that was never started can still be started by the child. */
    if (is_child && atomic_load(&driver_state) == DRIVER_OPENED)
        atomic_store(&driver_state, DRIVER_FORKED);
}

static const struct gni_fork_handlers driver_fork = {.mutex = &driver_mutex,
                                                     .done = driver_fork_done};

static void driver_register_fork(void)
{
    gni_fork_register(GNI_FORK_CUDA_DRIVER, &driver_fork);
}

/* ---- the state ------------------------------------------------------------------------------ */

gn_status gni_cuda_driver_check(void)
{
    switch (atomic_load_explicit(&driver_state, memory_order_acquire)) {
    case DRIVER_OPENED:
        return GN_OK;
    case DRIVER_FORKED:
        return gni_error(
            GN_ERROR_FORKED,
            "CUDA was started before this process was forked and cannot be used in the "
            "child; start the child with the spawn method, or use CUDA only after "
            "forking");
    case DRIVER_EXITING:
        return gni_error(GN_ERROR_SHUTDOWN, "the process is exiting; CUDA cannot be used any more");
    case DRIVER_UNOPENED:
        return gni_error(GN_ERROR_UNAVAILABLE, "the CUDA driver was not opened");
    case DRIVER_REFUSED:
        break;
    }
    return gni_error(GN_ERROR_UNAVAILABLE, "%s", driver_refusal);
}

gn_status gni_cuda_driver_open(const struct gni_cuda_driver **out)
{
    if (atomic_load_explicit(&driver_state, memory_order_acquire) == DRIVER_UNOPENED) {
        gni_once_run(&driver_once, driver_register_fork);
        gni_mutex_lock(&driver_mutex);
        if (atomic_load(&driver_state) == DRIVER_UNOPENED)
            atomic_store_explicit(&driver_state, driver_start() ? DRIVER_OPENED : DRIVER_REFUSED,
                                  memory_order_release);
        gni_mutex_unlock(&driver_mutex);
    }
    GN_TRY(gni_cuda_driver_check());
    *out = &driver;
    return GN_OK;
}

bool gni_cuda_driver_is_gone(void)
{
    enum driver_state state = atomic_load_explicit(&driver_state, memory_order_acquire);
    return state == DRIVER_FORKED || state == DRIVER_EXITING;
}

struct gni_cuda_error_text gni_cuda_error_text(const struct gni_cuda_driver *source,
                                               CUresult result)
{
    struct gni_cuda_error_text error;
    const char *name = NULL, *text = NULL;
    (void)source->functions.cuGetErrorName(result, &name);
    (void)source->functions.cuGetErrorString(result, &text);
    if (name == NULL)
        (void)snprintf(error.text, sizeof error.text, "CUDA error %d", (int)result);
    else
        (void)snprintf(error.text, sizeof error.text, "%s (%s)", name, text != NULL ? text : "");
    return error;
}
