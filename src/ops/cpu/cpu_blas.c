/*
 * cpu_blas.c: finding and calling OpenBLAS: see cpu_blas.h.
 *
 * Threads: blas.mutex guards what is looked for, and how many are between begin and end. The functions never change
 * once `state` is FOUND.
 */
#include "ops/cpu/cpu_blas.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "genesis/ops.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum {
    ROW_MAJOR = 101,
    NOT_TRANSPOSED = 111,
    TRANSPOSED = 112,
    PTHREADS = 1, /* of openblas_get_parallel() */
    FILES_MOST = 8,
    PATH_SIZE = 1024,
};

enum state {
    UNKNOWN, /* nobody has looked */
    MISSING,
    FOUND,
};

/* A product by an interface whose integers are int, or 64 bits wide. */
typedef void gemm_float(int, int, int, int, int, int, float, const float *, int, const float *, int,
                        float, float *, int);
typedef void gemm_double(int, int, int, int, int, int, double, const double *, int, const double *,
                         int, double, double *, int);
typedef void gemm_float_wide(int, int, int, int64_t, int64_t, int64_t, float, const float *,
                             int64_t, const float *, int64_t, float, float *, int64_t);
typedef void gemm_double_wide(int, int, int, int64_t, int64_t, int64_t, double, const double *,
                              int64_t, const double *, int64_t, double, double *, int64_t);

/* How the builds that we know name their functions. The width of their integers does not follow from it. */
static const struct convention {
    const char *prefix, *suffix;
} conventions[] = {
    {"", ""},          /* the system's */
    {"", "64_"},       /* the system's with wide integers, for some systems */
    {"scipy_", ""},    /* scipy-openblas32 */
    {"scipy_", "64_"}, /* scipy-openblas64, which NumPy brings along */
};

static struct {
    struct gni_mutex mutex;
    _Atomic(bool) is_off; /* gni_blas_enable() */
    _Atomic(int) state;
    bool is_wide;   /* its integers have 64 bits */
    bool is_shared; /* somebody else had loaded it */
    union {
        void *symbol;
        gemm_float *narrow;
        gemm_float_wide *wide;
    } sgemm;
    union {
        void *symbol;
        gemm_double *narrow;
        gemm_double_wide *wide;
    } dgemm;
    union {
        void *symbol;
        int (*call)(void);
    } get_threads;
    union {
        void *symbol;
        void (*call)(int count);
    } set_threads;
    int users;          /* between begin and end */
    int threads_before; /* what others had set; 0: it is that */
    char files[FILES_MOST][PATH_SIZE];
    int file_count;
    char path[PATH_SIZE]; /* where it was found */
    void *library;        /* its handle, and how it names its functions */
    const struct convention *convention;
} blas = {.mutex = GNI_MUTEX_INIT};

/* ---- finding --------------------------------------------------------------------------------- */

static void *symbol_find(void *library, const struct convention *convention, const char *name)
{
    char full[64];
    (void)snprintf(full, sizeof full, "%s%s%s", convention->prefix, name, convention->suffix);
    return dlsym(library, full);
}

static bool symbols_take(void *library, const struct convention *convention)
{
    union {
        void *symbol;
        int (*call)(void);
    } parallel = {symbol_find(library, convention, "openblas_get_parallel")};
    union {
        void *symbol;
        const char *(*call)(void);
    } config = {symbol_find(library, convention, "openblas_get_config")};
    blas.sgemm.symbol = symbol_find(library, convention, "cblas_sgemm");
    blas.dgemm.symbol = symbol_find(library, convention, "cblas_dgemm");
    blas.get_threads.symbol = symbol_find(library, convention, "openblas_get_num_threads");
    blas.set_threads.symbol = symbol_find(library, convention, "openblas_set_num_threads");
    if (blas.sgemm.symbol == NULL || blas.dgemm.symbol == NULL || blas.get_threads.symbol == NULL ||
        blas.set_threads.symbol == NULL || config.symbol == NULL || parallel.symbol == NULL)
        return false;
    blas.is_wide = strstr(config.call(), "USE64BITINT") != NULL;
    return parallel.call() == PTHREADS;
}

/* A library that is not what we need is closed again. `loaded`: 0, or RTLD_NOLOAD if it must be in the process. */
static bool library_try(const char *file, int loaded)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | loaded);
    if (library == NULL)
        return false;
    for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++) {
        if (!symbols_take(library, &conventions[i]))
            continue;
        Dl_info info;
        bool has_path = dladdr(blas.sgemm.symbol, &info) != 0 && info.dli_fname != NULL;
        (void)snprintf(blas.path, sizeof blas.path, "%s", has_path ? info.dli_fname : file);
        blas.library = library;
        blas.convention = &conventions[i];
        return true;
    }
    (void)dlclose(library);
    return false;
}

/* The libraries of the process whose names say that they are OpenBLAS. */
struct loaded {
    char files[FILES_MOST][PATH_SIZE];
    int count;
};

static int loaded_note(struct dl_phdr_info *info, size_t size, void *context)
{
    struct loaded *loaded = context;
    (void)size;
    const char *slash = info->dlpi_name == NULL ? NULL : strrchr(info->dlpi_name, '/');
    if (slash != NULL && strstr(slash, "openblas") != NULL && loaded->count < FILES_MOST &&
        strlen(info->dlpi_name) < PATH_SIZE)
        (void)snprintf(loaded->files[loaded->count++], PATH_SIZE, "%s", info->dlpi_name);
    return 0;
}

/* What was loaded first comes first: NumPy's, where there is one. */
static bool library_share(void)
{
    struct loaded loaded = {.count = 0};
    (void)dl_iterate_phdr(loaded_note, &loaded);
    for (int i = 0; i < loaded.count && !blas.is_shared; i++)
        blas.is_shared = library_try(loaded.files[i], RTLD_NOLOAD);
    return blas.is_shared;
}

static bool library_search(void)
{
    const char *wish = gni_option_text(GNI_OPTION_BLAS);
    if (strcmp(wish, "off") == 0)
        return false;
    if (strcmp(wish, "auto") == 0) {
        if (library_share())
            return true;
    } else if (strcmp(wish, "own") != 0) {
        if (library_try(wish, 0))
            return true;
        gni_log(GNI_LOG_WARNING, "GENESIS_BLAS=%s is no OpenBLAS with threads: looking for another",
                wish);
    }
    for (int i = 0; i < blas.file_count; i++)
        if (library_try(blas.files[i], 0))
            return true;
    return library_try("libopenblas.so.0", 0) || library_try("libopenblas.so", 0);
}

static void library_find(void)
{
    bool is_found = library_search();
    atomic_store(&blas.state, is_found ? FOUND : MISSING);
    gni_log(GNI_LOG_INFO, "matrix products: %s%s", is_found ? blas.path : "without OpenBLAS",
            blas.is_shared ? ", the largest by its own threads" : "");
}

/* ---- one thread at a time ------------------------------------------------------------------- */

/* A child has none of the threads that were inside; the next one to come in sets the number of threads right. */
static void blas_fork_done(bool is_child)
{
    if (is_child)
        blas.users = 0;
}

static const struct gni_fork_handlers blas_fork = {.mutex = &blas.mutex, .done = blas_fork_done};
static struct gni_once blas_once = GNI_ONCE_INIT;

static void blas_register(void)
{
    gni_fork_register(GNI_FORK_BLAS, &blas_fork);
}

static void lock_take(void)
{
    gni_once_run(&blas_once, blas_register);
    gni_mutex_lock(&blas.mutex);
}

bool gni_blas_is_there(void)
{
    if (atomic_load_explicit(&blas.is_off, memory_order_relaxed))
        return false;
    if (atomic_load(&blas.state) == UNKNOWN) {
        lock_take();
        if (atomic_load(&blas.state) == UNKNOWN)
            library_find();
        gni_mutex_unlock(&blas.mutex);
    }
    return atomic_load(&blas.state) == FOUND;
}

bool gni_blas_is_shared(void)
{
    return gni_blas_is_there() && blas.is_shared;
}

void *gni_blas_routine(const char *name)
{
    char fortran[32];
    (void)snprintf(fortran, sizeof fortran, "%s_", name);
    return symbol_find(blas.library, blas.convention, fortran);
}

bool gni_blas_is_wide(void)
{
    return blas.is_wide;
}

void gni_blas_begin(int threads)
{
    lock_take();
    if (blas.users++ == 0) {
        int before = blas.get_threads.call();
        if (before != threads) {
            if (blas.threads_before == 0) /* else a fork has cut somebody short */
                blas.threads_before = before;
            blas.set_threads.call(threads);
        }
    }
    gni_mutex_unlock(&blas.mutex);
}

void gni_blas_end(void)
{
    lock_take();
    if (--blas.users == 0 && blas.threads_before != 0) {
        blas.set_threads.call(blas.threads_before);
        blas.threads_before = 0;
    }
    gni_mutex_unlock(&blas.mutex);
}

void gni_blas_enable(bool is_enabled)
{
    atomic_store_explicit(&blas.is_off, !is_enabled, memory_order_relaxed);
}

/* ---- products -------------------------------------------------------------------------------- */

/* How a matrix lies: by rows or by columns, and how far apart these are. */
struct form {
    int transposed;
    int64_t step;
};

static struct form form_of(const struct gni_matrix *matrix, size_t rows, size_t columns)
{
    bool is_by_rows = columns == 1 || matrix->column_stride == 1;
    int64_t length = (int64_t)(is_by_rows ? columns : rows);
    int64_t stride = is_by_rows ? matrix->row_stride : matrix->column_stride;
    bool has_one = (is_by_rows ? rows : columns) == 1; /* whose stride may be anything */
    return (struct form){is_by_rows ? NOT_TRANSPOSED : TRANSPOSED, has_one ? length : stride};
}

#define MULTIPLY(call, integer, real)                                                            \
    (call)(ROW_MAJOR, a.transposed, b.transposed, (integer)block->rows, (integer)block->columns, \
           (integer)block->inner, 1, (const real *)(const void *)block->a.data, (integer)a.step, \
           (const real *)(const void *)block->b.data, (integer)b.step, 0,                        \
           (real *)(void *)block->c.data, (integer)c.step)

void gni_blas_multiply(const struct gni_block *block, gn_dtype dtype)
{
    struct form a = form_of(&block->a, block->rows, block->inner);
    struct form b = form_of(&block->b, block->inner, block->columns);
    struct form c = form_of(&block->c, block->rows, block->columns);
    if (dtype == GN_FLOAT32 && !blas.is_wide)
        MULTIPLY(blas.sgemm.narrow, int, float);
    else if (dtype == GN_FLOAT32)
        MULTIPLY(blas.sgemm.wide, int64_t, float);
    else if (!blas.is_wide)
        MULTIPLY(blas.dgemm.narrow, int, double);
    else
        MULTIPLY(blas.dgemm.wide, int64_t, double);
}

/* ---- for programs ---------------------------------------------------------------------------- */

gn_status gn_blas_add_file(const char *path)
{
    GN_CHECK_ARGUMENT(path != NULL && path[0] == '/' && strlen(path) < PATH_SIZE,
                      "path must be absolute, and of less than 1024 characters");
    gn_status status = GN_OK;
    bool is_known = false;
    lock_take();
    for (int i = 0; i < blas.file_count; i++)
        is_known |= strcmp(blas.files[i], path) == 0;
    if (!is_known && blas.file_count == FILES_MOST) {
        status = gni_error(GN_ERROR_INVALID_VALUE, "there are %d files for OpenBLAS already",
                           FILES_MOST);
    } else if (!is_known) {
        (void)snprintf(blas.files[blas.file_count++], PATH_SIZE, "%s", path);
        if (atomic_load(&blas.state) == MISSING)
            atomic_store(&blas.state, UNKNOWN);
    }
    gni_mutex_unlock(&blas.mutex);
    return status;
}
