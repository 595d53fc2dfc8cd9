/*
 * blas.c: cuBLASLt: see blas.h.
 *
 * The library's matrices lie by columns. One of ours that lies by rows is its own transposed one there, so what is
 * computed is c' = b' a', with our b as the library's A and our a as its B; a matrix that lies by columns is marked as
 * transposed, and nothing is copied:
 *
 *     ours                     theirs, by columns               marked
 *     b by rows,    k x n      n x k                            N
 *     b by columns, k x n      k x n                            T
 *     a by rows,    m x k      k x m                            N
 *     a by columns, m x k      m x k                            T
 *     c by rows,    m x n      n x m                            (always N: a c by columns is computed transposed)
 *
 * What is added to a product by rows is a matrix by rows, which is the library's C, or one row for all of its rows: a
 * column for all columns there, which it calls a bias. Activations behind it are not the library's: its relu promises
 * nothing for NaN, its gelu is not ours.
 *
 * Invariants:
 *   B1  a plan in the table does not change, but for is_refused, which is set once;
 *   B2  the table and each user have a reference to a plan; the last one to go destroys it;
 *   B3  a device that is READY has a handle, until gn_shutdown(), which the caller keeps apart from all other calls;
 *   B4  blas.mutex is not held while a plan is made or a product submitted.
 */
#include "ops/cuda/blas.h"

#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "device/cuda/cuda.h"
#include "device/cuda/library.h"
#include "genesis/memory.h"
#include "genesis/ops.h"
#include "jit/kernel.h"
#include "jit/profile.h"
#include "jit/tune.h"
#include "memory/manager.h"

#include <string.h>

enum {
    BUCKET_COUNT = 1024,
    PLANS_MOST = 4096,         /* then all are forgotten */
    BATCH_MOST = 65535,        /* products in one call */
    WORKSPACE_MOST = 32 << 20, /* bytes: what Hopper's algorithms are made for */
    ALIGNMENT_MOST = 256,      /* bytes, of an address: more is of no use */
    ALGORITHMS_MOST = 8,       /* that are asked for where they are measured */
    BIAS_ALIGNMENT = 16,       /* bytes: what is read at once */
};

/* Products in a call with which a GPU is busy for long: more of them in one call are not faster. */
static const double CALL_ENOUGH = 4e9;

/* How a matrix lies in memory: by rows or by columns, each so many elements behind the one before. */
struct lie {
    bool is_by_columns;
    int64_t stride;
};

/* What is added to a product. */
enum addition {
    ADDITION_NONE,
    ADDITION_ROW, /* for all rows */
    ADDITION_MATRIX,
};

/* All that a plan depends on, without gaps. */
struct plan_key {
    gn_device *device;
    int64_t rows, columns, inner;
    int64_t a_stride, b_stride, c_stride; /* of struct lie; c lies by rows */
    int64_t batch_count;
    int64_t a_step, b_step, c_step; /* from one index of the batch to the next */
    int64_t addend_stride;          /* of a matrix; else 0 */
    uint8_t dtype, is_tf32;
    uint8_t is_a_by_columns, is_b_by_columns;
    uint8_t a_shift, b_shift, c_shift; /* 1 << shift divides the address; c_shift: of a matrix that
                                          is added, too */
    uint8_t addition;                  /* enum addition */
};
_Static_assert(sizeof(struct plan_key) == sizeof(gn_device *) + 11 * sizeof(int64_t) + 8,
               "a plan's key is hashed and compared as bytes");

/* A way to compute a product, and the memory that it works in. */
struct algorithm {
    cublasLtMatmulAlgo_t handle;
    size_t workspace_bytes;
};

struct plan {
    struct plan *next; /* in its bucket */
    uint64_t hash;
    struct plan_key key;
    _Atomic(int) references;                      /* B2 */
    _Atomic(bool) is_refused;                     /* the library cannot */
    cublasLtMatmulDesc_t descriptor;              /* of a row that is added: only to ask by */
    cublasLtMatrixLayout_t a, b, c;               /* of our matrices */
    cublasLtMatrixLayout_t addend;                /* NULL: no matrix is added */
    struct algorithm algorithms[ALGORITHMS_MOST]; /* what the library recommends first, first */
    int algorithm_count;
};

enum state {
    UNKNOWN,
    MISSING,
    READY,
};

static struct {
    struct gni_mutex mutex; /* guards all but the states of devices */
    const struct gni_cublaslt_functions *library;
    _Atomic(int) states[GNI_DEVICE_MAX]; /* enum state; written under the mutex */
    cublasLtHandle_t handles[GNI_DEVICE_MAX];
    gn_device *devices[GNI_DEVICE_MAX]; /* of the handles */
    struct plan *buckets[BUCKET_COUNT];
    size_t plan_count;
} blas = {.mutex = GNI_MUTEX_INIT};

static _Atomic(bool) is_tf32_allowed;

void gn_set_allow_tf32(bool is_allowed)
{
    atomic_store_explicit(&is_tf32_allowed, is_allowed, memory_order_relaxed);
}

bool gn_get_allow_tf32(void)
{
    return atomic_load_explicit(&is_tf32_allowed, memory_order_relaxed);
}

/* ---- errors ----------------------------------------------------------------------------------- */

static gn_status error_of(const char *function, cublasStatus_t status)
{
    gn_status kind = status == CUBLAS_STATUS_SUCCESS         ? GN_OK
                     : status == CUBLAS_STATUS_ALLOC_FAILED  ? GN_ERROR_OUT_OF_MEMORY
                     : status == CUBLAS_STATUS_NOT_SUPPORTED ? GN_ERROR_UNSUPPORTED
                                                             : GN_ERROR_DRIVER;
    if (kind == GN_OK)
        return GN_OK;
    const char *name = blas.library->cublasLtGetStatusName != NULL
                           ? blas.library->cublasLtGetStatusName(status)
                           : NULL;
    if (name != NULL)
        return gni_error(kind, "%s failed: %s", function, name);
    return gni_error(kind, "%s failed: status %d", function, (int)status);
}

#define BLAS_TRY(function, ...) GN_TRY(error_of(#function, blas.library->function(__VA_ARGS__)))

/* ---- devices ---------------------------------------------------------------------------------- */

static void plans_forget(void);

/* The devices are about to be closed, and nobody else is here. */
static void blas_close(void)
{
    gni_mutex_lock(&blas.mutex);
    plans_forget();
    for (int i = 0; i < GNI_DEVICE_MAX; i++) {
        struct gni_cuda_scope scope;
        if (blas.handles[i] != NULL && !gni_cuda_driver_is_gone() &&
            gni_cuda_enter(gni_cuda_device_of(blas.devices[i]), &scope) == GN_OK) {
            (void)blas.library->cublasLtDestroy(blas.handles[i]);
            (void)gni_cuda_leave(&scope, "cublasLtDestroy", CUDA_SUCCESS);
        }
        blas.handles[i] = NULL;
        atomic_store(&blas.states[i], UNKNOWN);
    }
    gni_mutex_unlock(&blas.mutex);
}

static const struct gni_fork_handlers blas_fork = {.mutex = &blas.mutex};
static struct gni_once blas_once = GNI_ONCE_INIT;

static void blas_start(void)
{
    gni_fork_register(GNI_FORK_CUBLAS, &blas_fork);
    gni_devices_add_close_hook(blas_close);
}

static gn_status handle_create(gn_device *device, cublasLtHandle_t *handle)
{
    struct gni_cuda_scope scope;
    GN_TRY(gni_cuda_enter(gni_cuda_device_of(device), &scope));
    gni_cuda_relax(&scope); /* it takes memory of its own, be a stream captured or not */
    gn_status status = error_of("cublasLtCreate", blas.library->cublasLtCreate(handle));
    (void)gni_cuda_leave(&scope, "cublasLtCreate", CUDA_SUCCESS);
    return status;
}

/* Under the mutex. What may be otherwise the next time leaves it unknown. */
static enum state device_find(gn_device *device)
{
    const struct gni_cublaslt *found;
    cublasLtHandle_t handle = NULL;
    if (strcmp(gni_option_text(GNI_OPTION_BLAS), "off") == 0)
        return MISSING;
    gn_status status = gni_cublaslt_open(&found);
    if (status == GN_OK) {
        if (blas.library == NULL) /* others read it without the mutex once a device is ready */
            blas.library = &found->functions;
        status = handle_create(device, &handle);
    }
    if (status == GN_OK) {
        blas.handles[device->index] = handle;
        blas.devices[device->index] = device;
        gni_log(GNI_LOG_INFO, "matrix products on %s: cuBLASLt %d", gni_device_label(device).text,
                found->version);
        return READY;
    }
    gni_log(GNI_LOG_INFO, "matrix products on %s: without cuBLASLt: %s",
            gni_device_label(device).text, gn_error_detail());
    return status == GN_ERROR_UNAVAILABLE || status == GN_ERROR_DRIVER ||
                   status == GN_ERROR_UNSUPPORTED
               ? MISSING
               : UNKNOWN;
}

static bool device_is_ready(gn_device *device)
{
    _Atomic(int) *state = &blas.states[device->index];
    int known = atomic_load_explicit(state, memory_order_acquire);
    if (known != UNKNOWN)
        return known == READY;
    gni_once_run(&blas_once, blas_start);
    gni_mutex_lock(&blas.mutex);
    known = atomic_load(state);
    if (known == UNKNOWN) {
        known = (int)device_find(device);
        atomic_store_explicit(state, known, memory_order_release);
    }
    gni_mutex_unlock(&blas.mutex);
    return known == READY;
}

bool gni_cublas_suits(const struct gni_product *product, gn_device *device)
{
    gn_dtype dtype = product->dtype;
    return (dtype == GN_FLOAT32 || dtype == GN_FLOAT16 || dtype == GN_BFLOAT16 ||
            dtype == GN_FLOAT64) &&
           product->inner > 0 && device_is_ready(device);
}

/* ---- layouts ---------------------------------------------------------------------------------- */

/* False if neither stride is 1. Where rows and columns are both possible, the longer ones. */
static bool matrix_lies(const struct gni_matrix *matrix, int64_t rows, int64_t columns,
                        struct lie *lie)
{
    int64_t down = matrix->row_stride, right = matrix->column_stride;
    bool is_by_rows = (columns == 1 || right == 1) && (rows == 1 || down >= columns);
    bool is_by_columns = (rows == 1 || down == 1) && (columns == 1 || right >= rows);
    lie->is_by_columns = is_by_columns && (!is_by_rows || rows > columns);
    lie->stride = lie->is_by_columns ? (columns == 1 ? rows : right) : (rows == 1 ? columns : down);
    return is_by_rows || is_by_columns;
}

/* The dimension of the batch that is one call: the largest of those that the library can step through. -1: none. */
static int batch_choose(const struct gni_product *product)
{
    int best = -1;
    for (int d = 0; d < product->batch_ndim; d++)
        if (product->a_steps[d] >= 0 && product->b_steps[d] >= 0 && product->c_steps[d] > 0 &&
            (best < 0 || product->batch_sizes[d] > product->batch_sizes[best]))
            best = d;
    return best;
}

enum batch_kind {
    BATCH_EVEN,   /* one step goes through it, if only this matrix is asked */
    BATCH_UNEVEN, /* it would, of a copy */
    BATCH_SHARED, /* some of it is the same matrix again */
};

static enum batch_kind batch_of(const struct gni_product *product, const int64_t *steps)
{
    bool is_even = true, has_zero = false, has_other = false;
    int64_t expected = -1;
    for (int d = product->batch_ndim - 1; d >= 0; d--) {
        if (product->batch_sizes[d] == 1)
            continue;
        is_even &= expected < 0 || steps[d] == expected;
        expected = steps[d] * product->batch_sizes[d];
        has_zero |= steps[d] == 0;
        has_other |= steps[d] != 0;
    }
    return has_zero && has_other ? BATCH_SHARED : is_even ? BATCH_EVEN : BATCH_UNEVEN;
}

/* A batch that takes several calls, each of which is too small to fill a GPU well, takes one if matrices are copied. */
static unsigned batch_copies(const struct gni_product *product)
{
    struct gni_product joined = *product;
    gni_product_join(&joined);
    int along = batch_choose(&joined);
    if (along < 0 || joined.batch_count == joined.batch_sizes[along])
        return 0;
    double work = (double)joined.rows * (double)joined.columns * (double)joined.inner *
                  (double)joined.batch_sizes[along];
    enum batch_kind a = batch_of(&joined, joined.a_steps), b = batch_of(&joined, joined.b_steps);
    if (work > CALL_ENOUGH || a == BATCH_SHARED || b == BATCH_SHARED ||
        batch_of(&joined, joined.c_steps) != BATCH_EVEN)
        return 0;
    return (a == BATCH_UNEVEN ? GNI_COPY_A : 0) | (b == BATCH_UNEVEN ? GNI_COPY_B : 0);
}

unsigned gni_cublas_copies(const struct gni_product *product)
{
    struct lie lie;
    return (matrix_lies(&product->a, product->rows, product->inner, &lie) ? 0 : GNI_COPY_A) |
           (matrix_lies(&product->b, product->inner, product->columns, &lie) ? 0 : GNI_COPY_B) |
           (matrix_lies(&product->c, product->rows, product->columns, &lie) ? 0 : GNI_COPY_C) |
           batch_copies(product);
}

static uint8_t shift_of(const char *address)
{
    return (uint8_t)__builtin_ctzll((uint64_t)(uintptr_t)address | ALIGNMENT_MOST);
}

/* ---- plans ------------------------------------------------------------------------------------ */

static void plan_destroy(struct plan *plan)
{
    const struct gni_cublaslt_functions *library = blas.library;
    if (!gni_cuda_driver_is_gone()) {
        if (plan->descriptor != NULL)
            (void)library->cublasLtMatmulDescDestroy(plan->descriptor);
        cublasLtMatrixLayout_t layouts[] = {plan->a, plan->b, plan->c, plan->addend};
        for (int i = 0; i < 4; i++)
            if (layouts[i] != NULL)
                (void)library->cublasLtMatrixLayoutDestroy(layouts[i]);
    }
    gni_host_free(plan);
}

static void plan_release(struct plan *plan)
{
    if (atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) == 1)
        plan_destroy(plan);
}

/* Under the mutex. */
static void plans_forget(void)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        while (blas.buckets[i] != NULL) {
            struct plan *plan = blas.buckets[i];
            blas.buckets[i] = plan->next;
            plan_release(plan);
        }
    blas.plan_count = 0;
}

/* Under the mutex: a reference, or NULL. */
static struct plan *plan_find(const struct plan_key *key, uint64_t hash)
{
    struct plan *plan = blas.buckets[hash % BUCKET_COUNT];
    while (plan != NULL && (plan->hash != hash || memcmp(&plan->key, key, sizeof *key) != 0))
        plan = plan->next;
    if (plan != NULL)
        atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
    return plan;
}

static const cudaDataType data_types[GN_DTYPE_COUNT] = {[GN_FLOAT16] = CUDA_R_16F,
                                                        [GN_BFLOAT16] = CUDA_R_16BF,
                                                        [GN_FLOAT32] = CUDA_R_32F,
                                                        [GN_FLOAT64] = CUDA_R_64F};

/* `lines` of `length` elements side by side. */
static gn_status layout_create(const struct plan_key *key, int64_t length, int64_t lines,
                               int64_t stride, int64_t step, cublasLtMatrixLayout_t *layout)
{
    BLAS_TRY(cublasLtMatrixLayoutCreate, layout, data_types[key->dtype], (uint64_t)length,
             (uint64_t)lines, stride);
    if (key->batch_count == 1)
        return GN_OK;
    int32_t count = (int32_t)key->batch_count;
    BLAS_TRY(cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
             sizeof count);
    BLAS_TRY(cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
             &step, sizeof step);
    return GN_OK;
}

static gn_status layouts_create(struct plan *plan)
{
    const struct plan_key *key = &plan->key;
    bool is_a_turned = key->is_a_by_columns, is_b_turned = key->is_b_by_columns;
    GN_TRY(layout_create(key, is_a_turned ? key->rows : key->inner,
                         is_a_turned ? key->inner : key->rows, key->a_stride, key->a_step,
                         &plan->a));
    GN_TRY(layout_create(key, is_b_turned ? key->inner : key->columns,
                         is_b_turned ? key->columns : key->inner, key->b_stride, key->b_step,
                         &plan->b));
    GN_TRY(layout_create(key, key->columns, key->rows, key->c_stride, key->c_step, &plan->c));
    return key->addition == ADDITION_MATRIX
               ? layout_create(key, key->columns, key->rows, key->addend_stride, 0, &plan->addend)
               : GN_OK;
}

/* `row` is what is added to all rows, if that is so. On failure, too, there may be a descriptor. */
static gn_status descriptor_create(const struct plan_key *key, const void *row,
                                   cublasLtMatmulDesc_t *descriptor)
{
    bool is_double = key->dtype == GN_FLOAT64;
    BLAS_TRY(cublasLtMatmulDescCreate, descriptor,
             is_double      ? CUBLAS_COMPUTE_64F
             : key->is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                            : CUBLAS_COMPUTE_32F,
             is_double ? CUDA_R_64F : CUDA_R_32F);
    int32_t left = key->is_b_by_columns ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t right = key->is_a_by_columns ? CUBLAS_OP_T : CUBLAS_OP_N;
    BLAS_TRY(cublasLtMatmulDescSetAttribute, *descriptor, CUBLASLT_MATMUL_DESC_TRANSA, &left,
             sizeof left);
    BLAS_TRY(cublasLtMatmulDescSetAttribute, *descriptor, CUBLASLT_MATMUL_DESC_TRANSB, &right,
             sizeof right);
    if (key->addition != ADDITION_ROW)
        return GN_OK;
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    BLAS_TRY(cublasLtMatmulDescSetAttribute, *descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
             sizeof epilogue);
    BLAS_TRY(cublasLtMatmulDescSetAttribute, *descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &row,
             sizeof row);
    return GN_OK;
}

static gn_status preference_fill(const struct plan_key *key, cublasLtMatmulPreference_t preference)
{
    const uint64_t workspace = WORKSPACE_MOST;
    /* Parts of a sum are not added as halves: there is one rounding, at the end. */
    const uint32_t schemes = gni_dtype_size((gn_dtype)key->dtype) == 2
                                 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                 : CUBLASLT_REDUCTION_SCHEME_INPLACE |
                                       CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                       CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t value;
    } numbers[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 1u << key->b_shift},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 1u << key->a_shift},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 1u << key->c_shift},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 1u << key->c_shift},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes},
    };
    BLAS_TRY(cublasLtMatmulPreferenceSetAttribute, preference,
             CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        BLAS_TRY(cublasLtMatmulPreferenceSetAttribute, preference, numbers[i].attribute,
                 &numbers[i].value, sizeof numbers[i].value);
    return GN_OK;
}

/* What the library recommends. That it has nothing to recommend is no failure: the plan says so. */
static gn_status algorithm_choose(struct plan *plan, cublasLtMatmulPreference_t preference)
{
    cublasLtMatmulHeuristicResult_t results[ALGORITHMS_MOST] = {{.workspaceSize = 0}};
    int count = 0;
    GN_TRY(preference_fill(&plan->key, preference));
    cublasStatus_t status = blas.library->cublasLtMatmulAlgoGetHeuristic(
        blas.handles[plan->key.device->index], plan->descriptor, plan->b, plan->a,
        plan->addend != NULL ? plan->addend : plan->c, plan->c, preference,
        gni_tune_is_max() ? ALGORITHMS_MOST : 1, results, &count);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; i++)
        if (results[i].state == CUBLAS_STATUS_SUCCESS)
            plan->algorithms[plan->algorithm_count++] = (struct algorithm){
                .handle = results[i].algo, .workspace_bytes = results[i].workspaceSize};
    if (plan->algorithm_count > 0)
        return GN_OK;
    const struct plan_key *key = &plan->key;
    bool is_sum = key->addition != ADDITION_NONE;
    atomic_store(&plan->is_refused, true);
    gni_log(status == CUBLAS_STATUS_INVALID_VALUE ? GNI_LOG_WARNING : GNI_LOG_INFO,
            "cuBLASLt does not multiply %lld x %lld by %lld x %lld of %s%s (status %d): %s",
            (long long)key->rows, (long long)key->inner, (long long)key->inner,
            (long long)key->columns, gni_dtypes[key->dtype].name, is_sum ? " with a sum" : "",
            (int)status, is_sum ? "in two steps" : "by our kernel");
    return status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED ||
                   status == CUBLAS_STATUS_INVALID_VALUE
               ? GN_OK
               : error_of("cublasLtMatmulAlgoGetHeuristic", status);
}

static gn_status plan_fill(struct plan *plan, const void *addend)
{
    cublasLtMatmulPreference_t preference;
    GN_TRY(descriptor_create(&plan->key, addend, &plan->descriptor));
    GN_TRY(layouts_create(plan));
    BLAS_TRY(cublasLtMatmulPreferenceCreate, &preference);
    gn_status status = algorithm_choose(plan, preference);
    (void)blas.library->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

static gn_status plan_make(const struct plan_key *key, uint64_t hash, const void *addend,
                           struct plan **out)
{
    struct gni_cuda_scope scope;
    struct plan *plan = gni_host_alloc(sizeof *plan);
    if (plan == NULL)
        return gni_error_host_memory(sizeof *plan);
    plan->hash = hash;
    plan->key = *key;
    atomic_init(&plan->references, 1);
    gn_status status = gni_cuda_enter(gni_cuda_device_of(key->device), &scope);
    if (status == GN_OK) {
        gni_cuda_relax(&scope);
        status = plan_fill(plan, addend);
        (void)gni_cuda_leave(&scope, "cublasLtMatmulAlgoGetHeuristic", CUDA_SUCCESS);
    }
    if (status != GN_OK) {
        plan_destroy(plan);
        return status;
    }
    *out = plan;
    return GN_OK;
}

/* Under the mutex: puts a plan into the table, unless another thread was faster. A reference to what is there. */
static struct plan *plan_add(struct plan *plan)
{
    struct plan *other = plan_find(&plan->key, plan->hash);
    if (other != NULL) {
        plan_release(plan);
        return other;
    }
    if (blas.plan_count == PLANS_MOST)
        plans_forget();
    atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
    plan->next = blas.buckets[plan->hash % BUCKET_COUNT];
    blas.buckets[plan->hash % BUCKET_COUNT] = plan;
    blas.plan_count++;
    return plan;
}

/* A reference to the plan of a key, made for what is added if there is none. */
static gn_status plan_get(const struct plan_key *key, const void *addend, struct plan **out)
{
    uint64_t hash = gni_hash_bytes(key, sizeof *key, 0);
    gni_mutex_lock(&blas.mutex);
    struct plan *plan = plan_find(key, hash);
    gni_mutex_unlock(&blas.mutex);
    if (plan == NULL) {
        GN_TRY(plan_make(key, hash, addend, &plan));
        gni_mutex_lock(&blas.mutex);
        plan = plan_add(plan);
        gni_mutex_unlock(&blas.mutex);
    }
    *out = plan;
    return GN_OK;
}

size_t gni_cublas_plan_count(void)
{
    gni_mutex_lock(&blas.mutex);
    size_t count = blas.plan_count;
    gni_mutex_unlock(&blas.mutex);
    return count;
}

/* ---- products --------------------------------------------------------------------------------- */

/* A plan, where its matrices lie, and how it is tuned. Algorithms may add in different orders: jit/tune.h, T1. */
struct product_work {
    struct plan *plan;
    const char *a, *b;
    const char *addend; /* NULL: none */
    char *c;
    gn_stream *stream;
};

static const struct gni_tune_family product_family = {
    .name = "matmul",
    .extents = {"rows", "columns", "inner", "batch", "layout", "cublaslt"},
    .plain = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5,
    .values = {"algorithm", "workspace"},
};

static gn_status descriptor_submit(const struct product_work *work, cublasLtMatmulDesc_t descriptor,
                                   const struct algorithm *algorithm, void *workspace)
{
    struct plan *plan = work->plan;
    gn_stream *stream = work->stream;
    bool is_added = plan->addend != NULL;
    static const float one = 1, zero = 0;
    static const double double_one = 1, double_zero = 0;
    bool is_double = plan->key.dtype == GN_FLOAT64;
    const void *alpha = is_double ? (const void *)&double_one : &one;
    const void *none = is_double ? (const void *)&double_zero : &zero;
    struct gni_cuda_scope scope;
    GN_TRY(gni_cuda_enter(gni_cuda_device_of(stream->device), &scope));
    struct gni_profile_run *run = gni_profile_begin("cublaslt_matmul_kernel", stream, NULL);
    cublasStatus_t status = blas.library->cublasLtMatmul(
        blas.handles[stream->device->index], descriptor, alpha, work->b, plan->b, work->a, plan->a,
        is_added ? alpha : none, is_added ? work->addend : work->c,
        is_added ? plan->addend : plan->c, work->c, plan->c, &algorithm->handle, workspace,
        algorithm->workspace_bytes, stream->handle);
    gni_profile_end(run, stream, status == CUBLAS_STATUS_SUCCESS);
    (void)gni_cuda_leave(&scope, "cublasLtMatmul", CUDA_SUCCESS);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && algorithm == plan->algorithms) {
        atomic_store(&plan->is_refused, true);
        return GN_OK;
    }
    GN_TRY(error_of("cublasLtMatmul", status));
    return gni_launch_check(stream);
}

/* Where a row lies is said by a descriptor, which others may be using: each call has its own. */
static gn_status plan_submit(const struct product_work *work, const struct algorithm *algorithm,
                             void *workspace)
{
    if (work->plan->key.addition != ADDITION_ROW)
        return descriptor_submit(work, work->plan->descriptor, algorithm, workspace);
    cublasLtMatmulDesc_t descriptor = NULL;
    gn_status status = descriptor_create(&work->plan->key, work->addend, &descriptor);
    if (status == GN_OK)
        status = descriptor_submit(work, descriptor, algorithm, workspace);
    if (descriptor != NULL)
        (void)blas.library->cublasLtMatmulDescDestroy(descriptor);
    return status;
}

/* With the memory that an algorithm works in: it is free again in the order of the stream. */
static gn_status product_run(void *context, const struct gni_choice *choice)
{
    const struct product_work *work = context;
    int at = choice->values[0] < work->plan->algorithm_count ? choice->values[0] : 0;
    const struct algorithm *algorithm = &work->plan->algorithms[at];
    gn_memory_manager *manager;
    gn_memory_block *block;
    if (algorithm->workspace_bytes == 0)
        return plan_submit(work, algorithm, NULL);
    GN_TRY(gn_memory_manager_get(work->stream->device, &manager));
    GN_TRY(gn_memory_block_alloc(manager, algorithm->workspace_bytes, work->stream, &block));
    gn_status status = plan_submit(work, algorithm, gni_block_pin(block));
    gn_status freed = gn_memory_block_free(block);
    return status != GN_OK ? status : freed;
}

static struct gni_choice product_choice(const struct plan *plan, int algorithm)
{
    return (struct gni_choice){
        .values = {algorithm, (int)plan->algorithms[algorithm].workspace_bytes},
        .is_reordering = algorithm > 0};
}

static int product_list(void *context, struct gni_choice *choices)
{
    const struct product_work *work = context;
    for (int i = 1; i < work->plan->algorithm_count; i++)
        choices[i - 1] = product_choice(work->plan, i);
    return work->plan->algorithm_count - 1;
}

/* What the library recommends depends on the sizes themselves: classes are no larger. */
static gn_status product_tune(struct product_work *work)
{
    const struct plan_key *key = &work->plan->key;
    struct gni_choice standard = product_choice(work->plan, 0);
    if (work->plan->algorithm_count == 1)
        return product_run(work, &standard);
    struct gni_tune tune = {
        .family = &product_family,
        .stream = work->stream,
        .nbytes = (uint64_t)(key->rows * key->columns) * (uint64_t)key->inner, /* work, not bytes */
        .type = gni_dtypes[key->dtype].name,
        .extents = {(int)key->rows, (int)key->columns, (int)key->inner, (int)key->batch_count,
                    key->is_tf32 | key->is_a_by_columns << 1 | key->is_b_by_columns << 2 |
                        key->a_shift << 4 | key->b_shift << 8 | key->c_shift << 12 |
                        key->addition << 16,
                    (int)blas.library->cublasLtGetVersion()},
        .standard = standard,
        .context = work,
        .run = product_run,
        .list = product_list};
    return gni_tune_run(&tune);
}

/* One call, for what lies at these addresses. */
static gn_status key_run(struct plan_key *key, const char *a, const char *b, const char *addend,
                         char *c, gn_stream *stream, bool *is_done)
{
    struct plan *plan;
    key->a_shift = shift_of(a);
    key->b_shift = shift_of(b);
    key->c_shift = shift_of(c);
    if (key->addition == ADDITION_MATRIX && shift_of(addend) < key->c_shift)
        key->c_shift = shift_of(addend);
    GN_TRY(plan_get(key, addend, &plan));
    gn_status status = GN_OK;
    if (!atomic_load_explicit(&plan->is_refused, memory_order_relaxed))
        status = product_tune(&(struct product_work){plan, a, b, addend, c, stream});
    *is_done = !atomic_load_explicit(&plan->is_refused, memory_order_relaxed);
    plan_release(plan);
    return status;
}

/* All calls of a product: one dimension of the batch, in parts, for each index of the others. */
static gn_status batch_run(const struct gni_product *product, struct plan_key *key,
                           gn_stream *stream, bool *is_done)
{
    struct gni_product others = *product;
    int along = batch_choose(product);
    int64_t length = 1, calls = product->batch_count;
    if (along >= 0) {
        length = product->batch_sizes[along];
        calls /= length;
        others.batch_sizes[along] = 1; /* its steps are the call's */
        key->a_step = product->a_steps[along];
        key->b_step = product->b_steps[along];
        key->c_step = product->c_steps[along];
    }
    int64_t size = (int64_t)gni_dtype_size(product->dtype);
    *is_done = true;
    for (int64_t i = 0; i < calls; i++) {
        struct gni_matrix a, b, c;
        gni_product_seek(&others, i, &a, &b, &c);
        for (int64_t begin = 0; begin < length && *is_done; begin += BATCH_MOST) {
            key->batch_count = length - begin < BATCH_MOST ? length - begin : BATCH_MOST;
            GN_TRY(key_run(key, a.data + begin * key->a_step * size,
                           b.data + begin * key->b_step * size, NULL,
                           c.data + begin * key->c_step * size, stream, is_done));
        }
    }
    return GN_OK;
}

/* False for what the library cannot add to a product by rows. */
static bool addition_find(const struct gni_matrix *addend, struct plan_key *key)
{
    bool is_dense = key->columns == 1 || addend->column_stride == 1;
    if (is_dense && (key->rows == 1 || addend->row_stride == 0) &&
        (uintptr_t)addend->data % BIAS_ALIGNMENT == 0) {
        key->addition = ADDITION_ROW;
        return true;
    }
    key->addition = ADDITION_MATRIX;
    key->addend_stride = key->rows == 1 ? key->columns : addend->row_stride;
    return is_dense && key->addend_stride >= key->columns;
}

gn_status gni_cublas_multiply(const struct gni_product *product, const struct gni_matrix *addend,
                              gn_stream *stream, bool *is_done)
{
    struct gni_product turned;
    struct gni_matrix turned_addend;
    struct lie a, b, c;
    *is_done = false;
    if (!matrix_lies(&product->c, product->rows, product->columns, &c))
        return GN_OK;
    if (c.is_by_columns) {
        gni_product_turn(product, &turned);
        product = &turned;
        if (addend != NULL) {
            turned_addend =
                (struct gni_matrix){addend->data, addend->column_stride, addend->row_stride};
            addend = &turned_addend;
        }
    }
    if (!matrix_lies(&product->a, product->rows, product->inner, &a) ||
        !matrix_lies(&product->b, product->inner, product->columns, &b))
        return GN_OK;
    struct plan_key key = {
        .device = stream->device,
        .rows = product->rows,
        .columns = product->columns,
        .inner = product->inner,
        .a_stride = a.stride,
        .b_stride = b.stride,
        .c_stride = c.stride,
        .dtype = (uint8_t)product->dtype,
        .is_tf32 = product->dtype == GN_FLOAT32 && gn_get_allow_tf32(),
        .is_a_by_columns = a.is_by_columns,
        .is_b_by_columns = b.is_by_columns,
    };
    if (addend != NULL && !addition_find(addend, &key))
        return GN_OK;
    if (product->batch_count > 1)
        return batch_run(product, &key, stream, is_done);
    key.batch_count = 1;
    return key_run(&key, product->a.data, product->b.data, addend != NULL ? addend->data : NULL,
                   product->c.data, stream, is_done);
}
