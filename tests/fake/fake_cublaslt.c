/*
 * fake_cublaslt.c: a stand-in for cuBLASLt beside the simulated GPU.
 *
 * The library that this becomes needs the simulator's: named as the driver (GENESIS_CUDA_DRIVER), it is both. What it
 * is given it checks as the documentation of the real one has it (sizes of attributes, leading dimensions, shapes that
 * go together, alignment, workspace), and refuses with CUBLAS_STATUS_INVALID_VALUE; products it computes on the host,
 * in double, in the order of the stream. It adds no bias to products of double: something that it cannot.
 *
 * FAKE_CUBLASLT_FAIL, read at each call, makes one function fail: "cublasLtMatmul:15". fake_cublaslt_count() tells how
 * often a function succeeded.
 */
#include "device/cuda/cublaslt_api.h"
#include "device/cuda/driver_api.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t nbytes, CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuCtxGetCurrent(CUcontext *context);

enum {
    MAGIC = 0x5eed,
    ALGORITHMS = 3, /* at the most; the last one fails when it is used */
    DEEP = 100,     /* products of more than this need a workspace */
    WORKSPACE_BYTES = 4096,
};

struct cublasLtContext {
    CUcontext context;
};

struct cublasLtMatrixLayoutOpaque_t {
    cudaDataType type;
    int64_t rows, columns, stride;
    int32_t batch_count;
    int64_t batch_step;
};

struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cudaDataType scale;
    int32_t left, right; /* cublasOperation_t */
    uint32_t epilogue;   /* cublasLtEpilogue_t; 0: the default */
    const char *bias;
};

struct cublasLtMatmulPreferenceOpaque_t {
    uint64_t workspace_bytes;
    uint32_t schemes;
    uint32_t alignments[4];
};

/* ---- failing and counting ---------------------------------------------------------------------- */

static const char *const names[] = {
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmul",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
};
static atomic_int counts[sizeof names / sizeof *names];

static atomic_int *count_of(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return &counts[i];
    abort();
}

EXPORT int fake_cublaslt_count(const char *name);
int fake_cublaslt_count(const char *name)
{
    return atomic_load(count_of(name));
}

static cublasStatus_t begin(const char *name)
{
    const char *order = getenv("FAKE_CUBLASLT_FAIL");
    size_t length = strlen(name);
    if (order != NULL && strncmp(order, name, length) == 0 && order[length] == ':')
        return (cublasStatus_t)atoi(order + length + 1);
    atomic_fetch_add(count_of(name), 1);
    return CUBLAS_STATUS_SUCCESS;
}

#define BEGIN()                                   \
    do {                                          \
        cublasStatus_t started = begin(__func__); \
        if (started != CUBLAS_STATUS_SUCCESS)     \
            return started;                       \
    } while (0)

#define NEED(condition)                                              \
    do {                                                             \
        if (!(condition)) {                                          \
            fprintf(stderr, "%s: needs %s\n", __func__, #condition); \
            return CUBLAS_STATUS_INVALID_VALUE;                      \
        }                                                            \
    } while (0)

/* ---- objects ----------------------------------------------------------------------------------- */

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    BEGIN();
    *handle = calloc(1, sizeof **handle);
    if (*handle == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    NEED(cuCtxGetCurrent(&(*handle)->context) == CUDA_SUCCESS && (*handle)->context != NULL);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    BEGIN();
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return 130000;
}

EXPORT const char *cublasLtGetStatusName(cublasStatus_t status);
const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                                    : "CUBLAS_STATUS_OF_THE_FAKE";
}

EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor,
                                               cublasComputeType_t compute, cudaDataType scale);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor,
                                        cublasComputeType_t compute, cudaDataType scale)
{
    BEGIN();
    *descriptor = calloc(1, sizeof **descriptor);
    if (*descriptor == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    (*descriptor)->compute = compute;
    (*descriptor)->scale = scale;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor)
{
    BEGIN();
    free(descriptor);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                                     cublasLtMatmulDescAttributes_t attribute,
                                                     const void *value, size_t nbytes);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t nbytes)
{
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
        NEED(nbytes == sizeof descriptor->bias);
        memcpy(&descriptor->bias, value, nbytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    NEED(nbytes == sizeof(int32_t));
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) {
        memcpy(&descriptor->epilogue, value, nbytes);
        NEED(descriptor->epilogue == CUBLASLT_EPILOGUE_BIAS);
        return CUBLAS_STATUS_SUCCESS;
    }
    NEED(attribute == CUBLASLT_MATMUL_DESC_TRANSA || attribute == CUBLASLT_MATMUL_DESC_TRANSB);
    int32_t *to = attribute == CUBLASLT_MATMUL_DESC_TRANSA ? &descriptor->left : &descriptor->right;
    memcpy(to, value, nbytes);
    NEED(*to == CUBLAS_OP_N || *to == CUBLAS_OP_T);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t stride);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    BEGIN();
    NEED(rows > 0 && columns > 0 && stride >= (int64_t)rows);
    *layout = calloc(1, sizeof **layout);
    if (*layout == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    **layout = (struct cublasLtMatrixLayoutOpaque_t){.type = type,
                                                     .rows = (int64_t)rows,
                                                     .columns = (int64_t)columns,
                                                     .stride = stride,
                                                     .batch_count = 1};
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    BEGIN();
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t attribute,
                                                       const void *value, size_t nbytes);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t nbytes)
{
    bool is_count = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
    NEED(is_count || attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    NEED(nbytes == (is_count ? sizeof(int32_t) : sizeof(int64_t)));
    memcpy(is_count ? (void *)&layout->batch_count : (void *)&layout->batch_step, value, nbytes);
    NEED(layout->batch_count > 0 && layout->batch_step >= 0);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    BEGIN();
    *preference = calloc(1, sizeof **preference);
    if (*preference == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    **preference =
        (struct cublasLtMatmulPreferenceOpaque_t){.schemes = 7, .alignments = {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    BEGIN();
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
    const void *value, size_t nbytes);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t nbytes)
{
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        NEED(nbytes == sizeof preference->workspace_bytes);
        memcpy(&preference->workspace_bytes, value, nbytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    NEED(nbytes == sizeof(uint32_t));
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
        memcpy(&preference->schemes, value, nbytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    NEED(attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
         attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
    memcpy(&preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
           nbytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---------------------------------------------------------------------------------- */

struct sizes {
    int64_t rows, columns, inner;
};

/* What is multiplied, and whether that goes together. */
static cublasStatus_t sizes_check(cublasLtMatmulDesc_t descriptor, cublasLtMatrixLayout_t a,
                                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                  struct sizes *sizes)
{
    bool is_a_turned = descriptor->left == CUBLAS_OP_T;
    bool is_b_turned = descriptor->right == CUBLAS_OP_T;
    *sizes = (struct sizes){is_a_turned ? a->columns : a->rows, is_b_turned ? b->rows : b->columns,
                            is_a_turned ? a->rows : a->columns};
    NEED(sizes->inner == (is_b_turned ? b->columns : b->rows));
    NEED(sizes->rows == c->rows && sizes->columns == c->columns);
    NEED(a->batch_count == c->batch_count && b->batch_count == c->batch_count);
    NEED(a->type == b->type && b->type == c->type);
    NEED(c->batch_count == 1 || c->batch_step > 0);
    bool is_double = a->type == CUDA_R_64F;
    NEED(descriptor->scale == (is_double ? CUDA_R_64F : CUDA_R_32F));
    NEED(is_double
             ? descriptor->compute == CUBLAS_COMPUTE_64F
             : descriptor->compute == CUBLAS_COMPUTE_32F ||
                   (descriptor->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type == CUDA_R_32F));
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int capacity, cublasLtMatmulHeuristicResult_t *results,
    int *count);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int capacity,
                                              cublasLtMatmulHeuristicResult_t *results, int *count)
{
    struct sizes sizes;
    BEGIN();
    NEED(handle != NULL && capacity >= 1);
    NEED(preference->schemes == (a->type == CUDA_R_16F || a->type == CUDA_R_16BF ? 2u : 7u));
    cublasStatus_t status = sizes_check(descriptor, a, b, c, &sizes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = sizes_check(descriptor, a, b, d, &sizes);
    if (status == CUBLAS_STATUS_SUCCESS && descriptor->epilogue != 0 && d->type == CUDA_R_64F)
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    size_t workspace = sizes.inner > DEEP ? WORKSPACE_BYTES : 0;
    NEED(preference->workspace_bytes >= workspace);
    *count = capacity < ALGORITHMS ? capacity : ALGORITHMS;
    for (int k = 0; k < *count; k++) {
        results[k] = (cublasLtMatmulHeuristicResult_t){.workspaceSize = workspace,
                                                       .state = CUBLAS_STATUS_SUCCESS};
        results[k].algo.data[0] = MAGIC;
        results[k].algo.data[1] = workspace;
        for (int i = 0; i < 3; i++)
            results[k].algo.data[2 + i] = preference->alignments[i];
        results[k].algo.data[5] = (uint64_t)k;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static size_t type_size(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static double half_read(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

static uint16_t half_write(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    int exponent;
    if (isnan(value))
        return 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    (void)frexp(size, &exponent);
    int unit = exponent - 11 > -24 ? exponent - 11 : -24;
    return (uint16_t)(sign | (((unit + 24) << 10) + (int)nearbyint(ldexp(size, -unit))));
}

static double element_read(const char *at, cudaDataType type)
{
    double wide;
    float single;
    uint32_t bits;
    uint16_t half;
    switch (type) {
    case CUDA_R_64F:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case CUDA_R_32F:
        memcpy(&single, at, sizeof single);
        return single;
    case CUDA_R_16F:
        memcpy(&half, at, sizeof half);
        return half_read(half);
    default:
        memcpy(&half, at, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    }
}

static void element_write(char *at, cudaDataType type, double value)
{
    float single = (float)value;
    uint32_t bits;
    uint16_t half;
    switch (type) {
    case CUDA_R_64F:
        memcpy(at, &value, sizeof value);
        return;
    case CUDA_R_32F:
        memcpy(at, &single, sizeof single);
        return;
    case CUDA_R_16F:
        half = half_write(value);
        memcpy(at, &half, sizeof half);
        return;
    default:
        memcpy(&bits, &single, sizeof bits);
        half = isnan(value) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        memcpy(at, &half, sizeof half);
    }
}

static double tf32_round(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    bits &= ~0x1fffu;
    memcpy(&single, &bits, sizeof bits);
    return single;
}

/* A matrix's memory on the host, all batches. */
static char *matrix_bring(cublasLtMatrixLayout_t layout, const void *from, CUstream stream)
{
    int64_t elements = (layout->batch_count - 1) * layout->batch_step +
                       (layout->columns - 1) * layout->stride + layout->rows;
    size_t nbytes = (size_t)elements * type_size(layout->type);
    char *bytes = malloc(nbytes);
    if (bytes == NULL ||
        cuMemcpyAsync((CUdeviceptr)(uintptr_t)bytes, (CUdeviceptr)(uintptr_t)from, nbytes,
                      stream) != CUDA_SUCCESS ||
        cuStreamSynchronize(stream) != CUDA_SUCCESS) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Where an element of a batch lies. */
static size_t place(cublasLtMatrixLayout_t layout, int batch, int64_t row, int64_t column)
{
    return (size_t)(batch * layout->batch_step + column * layout->stride + row) *
           type_size(layout->type);
}

static double sum_of(cublasLtMatmulDesc_t descriptor, const char *a,
                     cublasLtMatrixLayout_t a_layout, const char *b,
                     cublasLtMatrixLayout_t b_layout, int batch, int64_t row, int64_t column,
                     int64_t inner)
{
    bool is_a_turned = descriptor->left == CUBLAS_OP_T;
    bool is_b_turned = descriptor->right == CUBLAS_OP_T;
    double sum = 0;
    for (int64_t k = 0; k < inner; k++) {
        size_t left = place(a_layout, batch, is_a_turned ? k : row, is_a_turned ? row : k);
        size_t right = place(b_layout, batch, is_b_turned ? column : k, is_b_turned ? k : column);
        double x = element_read(a + left, a_layout->type);
        double y = element_read(b + right, b_layout->type);
        bool is_rounded = descriptor->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
        sum += is_rounded ? tf32_round(x) * tf32_round(y) : x * y;
    }
    return sum;
}

static cublasStatus_t bytes_write(char *to, const char *from, size_t nbytes, CUstream stream)
{
    bool is_written = cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from,
                                    nbytes, stream) == CUDA_SUCCESS &&
                      cuStreamSynchronize(stream) == CUDA_SUCCESS;
    return is_written ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* `from` has no gaps. What lies between the columns in memory is not touched. */
static cublasStatus_t matrix_write(cublasLtMatrixLayout_t layout, char *to, const char *from,
                                   CUstream stream)
{
    size_t line = (size_t)layout->rows * type_size(layout->type);
    size_t lines = (size_t)layout->columns * (size_t)layout->batch_count;
    if (layout->stride == layout->rows &&
        (layout->batch_count == 1 || layout->batch_step == layout->rows * layout->columns))
        return bytes_write(to, from, line * lines, stream);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < lines && status == CUBLAS_STATUS_SUCCESS; i++) {
        size_t columns = (size_t)layout->columns;
        size_t at = place(layout, (int)(i / columns), 0, (int64_t)(i % columns));
        status = bytes_write(to + at, from + i * line, line, stream);
    }
    return status;
}

/* What is added to a product, on the host. */
struct addend {
    char *bytes;                    /* NULL: nothing */
    cublasLtMatrixLayout_t layout;  /* NULL: one column for all */
    cublasLtMatrixLayout_t product; /* the product's */
};

static double addend_of(const struct addend *addend, int batch, int64_t row, int64_t column)
{
    size_t at = addend->layout != NULL ? place(addend->layout, batch, row, column)
                                       : (size_t)row * type_size(addend->product->type);
    return addend->bytes != NULL ? element_read(addend->bytes + at, addend->product->type) : 0;
}

/* Brings it from the device; `is_added` is beta. */
static cublasStatus_t addend_bring(cublasLtMatmulDesc_t descriptor, bool is_added, const void *c,
                                   cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout,
                                   CUstream stream, struct addend *addend)
{
    struct cublasLtMatrixLayoutOpaque_t column = {.type = d_layout->type,
                                                  .rows = d_layout->rows,
                                                  .columns = 1,
                                                  .stride = d_layout->rows,
                                                  .batch_count = 1};
    bool is_bias = descriptor->epilogue == CUBLASLT_EPILOGUE_BIAS;
    NEED(!is_bias || (descriptor->bias != NULL && (uintptr_t)descriptor->bias % 16 == 0));
    NEED(!is_bias || !is_added);
    *addend =
        (struct addend){.layout = is_added ? c_layout : NULL, .product = d_layout, .bytes = NULL};
    if (!is_bias && !is_added)
        return CUBLAS_STATUS_SUCCESS;
    addend->bytes =
        matrix_bring(is_bias ? &column : c_layout, is_bias ? descriptor->bias : c, stream);
    return addend->bytes != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

static cublasStatus_t product_write(cublasLtMatmulDesc_t descriptor, const char *a,
                                    cublasLtMatrixLayout_t a_layout, const char *b,
                                    cublasLtMatrixLayout_t b_layout, const struct addend *addend,
                                    char *c, cublasLtMatrixLayout_t c_layout, int64_t inner,
                                    CUstream stream)
{
    size_t size = type_size(c_layout->type);
    char *made =
        malloc((size_t)(c_layout->rows * c_layout->columns * c_layout->batch_count) * size);
    char *at = made;
    if (made == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    for (int batch = 0; batch < c_layout->batch_count; batch++)
        for (int64_t column = 0; column < c_layout->columns; column++)
            for (int64_t row = 0; row < c_layout->rows; row++, at += size)
                element_write(
                    at, c_layout->type,
                    sum_of(descriptor, a, a_layout, b, b_layout, batch, row, column, inner) +
                        addend_of(addend, batch, row, column));
    cublasStatus_t status = matrix_write(c_layout, c, made, stream);
    free(made);
    return status;
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor,
                                     const void *alpha, const void *a,
                                     cublasLtMatrixLayout_t a_layout, const void *b,
                                     cublasLtMatrixLayout_t b_layout, const void *beta,
                                     const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                                     cublasLtMatrixLayout_t d_layout,
                                     const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                                     size_t workspace_nbytes, cudaStream_t stream);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_nbytes, cudaStream_t stream)
{
    struct sizes sizes;
    CUcontext context = NULL;
    BEGIN();
    NEED(cuCtxGetCurrent(&context) == CUDA_SUCCESS && context == handle->context);
    cublasStatus_t status = sizes_check(descriptor, a_layout, b_layout, d_layout, &sizes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = sizes_check(descriptor, a_layout, b_layout, c_layout, &sizes);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    cudaDataType scale = descriptor->scale;
    bool is_added = element_read(beta, scale) == 1;
    NEED(element_read(alpha, scale) == 1 && (is_added || element_read(beta, scale) == 0));
    NEED(is_added ? c != d : c == d && c_layout == d_layout);
    NEED((uintptr_t)c % algorithm->data[4] == 0);
    NEED(algorithm->data[0] == MAGIC && workspace_nbytes >= algorithm->data[1]);
    NEED(workspace_nbytes == 0 || (workspace != NULL && (uintptr_t)workspace % 256 == 0));
    NEED((uintptr_t)a % algorithm->data[2] == 0 && (uintptr_t)b % algorithm->data[3] == 0 &&
         (uintptr_t)d % algorithm->data[4] == 0);
    if (algorithm->data[5] == ALGORITHMS - 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    struct addend addend;
    status = addend_bring(descriptor, is_added, c, c_layout, d_layout, stream, &addend);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    char *left = matrix_bring(a_layout, a, stream), *right = matrix_bring(b_layout, b, stream);
    status = left != NULL && right != NULL
                 ? product_write(descriptor, left, a_layout, right, b_layout, &addend, d, d_layout,
                                 sizes.inner, stream)
                 : CUBLAS_STATUS_EXECUTION_FAILED;
    free(left);
    free(right);
    free(addend.bytes);
    return status;
}
