/*
 * blas_plan.c: cuBLASLt's handles, and plans: see blas_plan.h.
 */
#include "ops/cuda/blas_plan.h"

#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "device/cuda/cuda.h"
#include "device/cuda/library.h"
#include "jit/tune.h"
#include "ops/cuda/cuda_blas.h"

#include <string.h>

enum {
    BUCKET_COUNT = 1024,
    PLANS_MOST = 4096,         /* then all are forgotten */
    WORKSPACE_MOST = 32 << 20, /* bytes: what Hopper's algorithms are made for */
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
    struct gni_blas_plan *buckets[BUCKET_COUNT];
    size_t plan_count;
} blas = {.mutex = GNI_MUTEX_INIT};

/* ---- errors ----------------------------------------------------------------------------------- */

gn_status gni_cublas_error(const char *function, cublasStatus_t status)
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

#define BLAS_TRY(function, ...) \
    GN_TRY(gni_cublas_error(#function, blas.library->function(__VA_ARGS__)))

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
            gni_cuda_enter(gni_cuda_device_of(blas.devices[i]), GNI_CUDA_PLAIN, &scope) == GN_OK) {
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

static struct gni_close_hook close_hook = {.run = blas_close};

static void blas_start(void)
{
    gni_fork_register(GNI_FORK_CUBLAS, &blas_fork);
    gni_devices_add_close_hook(&close_hook);
}

static gn_status handle_create(gn_device *device, cublasLtHandle_t *handle)
{
    struct gni_cuda_scope scope;
    /* It takes memory of its own, be a stream captured or not. */
    GN_TRY(gni_cuda_enter(gni_cuda_device_of(device), GNI_CUDA_RELAXED, &scope));
    gn_status status = gni_cublas_error("cublasLtCreate", blas.library->cublasLtCreate(handle));
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

bool gni_cublas_is_ready(gn_device *device)
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

const struct gni_cublaslt_functions *gni_cublas_library(void)
{
    return blas.library;
}

cublasLtHandle_t gni_cublas_handle(const gn_device *device)
{
    return blas.handles[device->index];
}

/* ---- plans ------------------------------------------------------------------------------------ */

static void plan_destroy(struct gni_blas_plan *plan)
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

void gni_blas_plan_release(struct gni_blas_plan *plan)
{
    if (atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) == 1)
        plan_destroy(plan);
}

/* Under the mutex. */
static void plans_forget(void)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        while (blas.buckets[i] != NULL) {
            struct gni_blas_plan *plan = blas.buckets[i];
            blas.buckets[i] = plan->next;
            gni_blas_plan_release(plan);
        }
    blas.plan_count = 0;
}

/* Under the mutex: a reference, or NULL. */
static struct gni_blas_plan *plan_find(const struct gni_blas_key *key, uint64_t hash)
{
    struct gni_blas_plan *plan = blas.buckets[hash % BUCKET_COUNT];
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
static gn_status layout_create(const struct gni_blas_key *key, int64_t length, int64_t lines,
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

static gn_status layouts_create(struct gni_blas_plan *plan)
{
    const struct gni_blas_key *key = &plan->key;
    bool is_a_turned = key->is_a_by_columns, is_b_turned = key->is_b_by_columns;
    GN_TRY(layout_create(key, is_a_turned ? key->rows : key->inner,
                         is_a_turned ? key->inner : key->rows, key->a_stride, key->a_step,
                         &plan->a));
    GN_TRY(layout_create(key, is_b_turned ? key->inner : key->columns,
                         is_b_turned ? key->columns : key->inner, key->b_stride, key->b_step,
                         &plan->b));
    GN_TRY(layout_create(key, key->columns, key->rows, key->c_stride, key->c_step, &plan->c));
    return key->addition == GNI_ADDITION_MATRIX
               ? layout_create(key, key->columns, key->rows, key->addend_stride, 0, &plan->addend)
               : GN_OK;
}

gn_status gni_blas_describe(const struct gni_blas_key *key, const void *row,
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
    if (key->addition != GNI_ADDITION_ROW)
        return GN_OK;
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    BLAS_TRY(cublasLtMatmulDescSetAttribute, *descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
             sizeof epilogue);
    BLAS_TRY(cublasLtMatmulDescSetAttribute, *descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &row,
             sizeof row);
    return GN_OK;
}

static gn_status preference_fill(const struct gni_blas_key *key,
                                 cublasLtMatmulPreference_t preference)
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
static gn_status algorithm_choose(struct gni_blas_plan *plan, cublasLtMatmulPreference_t preference)
{
    cublasLtMatmulHeuristicResult_t results[GNI_BLAS_ALGORITHMS_MOST] = {{.workspaceSize = 0}};
    int count = 0;
    GN_TRY(preference_fill(&plan->key, preference));
    cublasStatus_t status = blas.library->cublasLtMatmulAlgoGetHeuristic(
        blas.handles[plan->key.device->index], plan->descriptor, plan->b, plan->a,
        plan->addend != NULL ? plan->addend : plan->c, plan->c, preference,
        gni_tune_is_max() ? GNI_BLAS_ALGORITHMS_MOST : 1, results, &count);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; i++)
        if (results[i].state == CUBLAS_STATUS_SUCCESS)
            plan->algorithms[plan->algorithm_count++] = (struct gni_blas_algorithm){
                .handle = results[i].algo, .workspace_bytes = results[i].workspaceSize};
    if (plan->algorithm_count > 0)
        return GN_OK;
    const struct gni_blas_key *key = &plan->key;
    bool is_sum = key->addition != GNI_ADDITION_NONE;
    atomic_store(&plan->is_refused, true);
    gni_log(status == CUBLAS_STATUS_INVALID_VALUE ? GNI_LOG_WARNING : GNI_LOG_INFO,
            "cuBLASLt does not multiply %lld x %lld by %lld x %lld of %s%s (status %d): %s",
            (long long)key->rows, (long long)key->inner, (long long)key->inner,
            (long long)key->columns, gni_dtypes[key->dtype].name, is_sum ? " with a sum" : "",
            (int)status, is_sum ? "in two steps" : "by our kernel");
    return status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED ||
                   status == CUBLAS_STATUS_INVALID_VALUE
               ? GN_OK
               : gni_cublas_error("cublasLtMatmulAlgoGetHeuristic", status);
}

static gn_status plan_fill(struct gni_blas_plan *plan, const void *addend)
{
    cublasLtMatmulPreference_t preference;
    GN_TRY(gni_blas_describe(&plan->key, addend, &plan->descriptor));
    GN_TRY(layouts_create(plan));
    BLAS_TRY(cublasLtMatmulPreferenceCreate, &preference);
    gn_status status = algorithm_choose(plan, preference);
    (void)blas.library->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

static gn_status plan_make(const struct gni_blas_key *key, uint64_t hash, const void *addend,
                           struct gni_blas_plan **out)
{
    struct gni_cuda_scope scope;
    struct gni_blas_plan *plan = gni_host_alloc(sizeof *plan);
    if (plan == NULL)
        return gni_error_host_memory(sizeof *plan);
    plan->hash = hash;
    plan->key = *key;
    atomic_init(&plan->references, 1);
    gn_status status = gni_cuda_enter(gni_cuda_device_of(key->device), GNI_CUDA_RELAXED, &scope);
    if (status == GN_OK) {
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
static struct gni_blas_plan *plan_add(struct gni_blas_plan *plan)
{
    struct gni_blas_plan *other = plan_find(&plan->key, plan->hash);
    if (other != NULL) {
        gni_blas_plan_release(plan);
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

gn_status gni_blas_plan_get(const struct gni_blas_key *key, const void *addend,
                            struct gni_blas_plan **out)
{
    uint64_t hash = gni_hash_bytes(key, sizeof *key, 0);
    gni_mutex_lock(&blas.mutex);
    struct gni_blas_plan *plan = plan_find(key, hash);
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
