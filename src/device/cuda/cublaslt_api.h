/*
 * cublaslt_api.h: the part of cuBLASLt's binary interface that we call, in our own words.
 *
 * cuBLASLt multiplies matrices and is loaded only when a product is first needed. The rules of
 * driver_api.h hold here too; tests/interface compares this file with the real cublasLt.h.
 *
 * Descriptors are made by the library (...Create) and stay opaque here: their size differs from
 * one release to the next, so nothing of ours may hold one by value. Two structures are held by
 * value, cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t.
 */
#ifndef GNI_DEVICE_CUDA_CUBLASLT_API_H
#define GNI_DEVICE_CUDA_CUBLASLT_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t; /* the driver's CUstream */
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef struct cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16,
} cublasStatus_t;

typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2,
} cublasOperation_t;

typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
} cublasComputeType_t;

typedef enum cudaDataType_t {
    CUDA_R_32F = 0,
    CUDA_R_64F = 1,
    CUDA_R_16F = 2,
    CUDA_R_8I = 3,
    CUDA_C_32F = 4,
    CUDA_C_64F = 5,
    CUDA_R_8U = 8,
    CUDA_R_32I = 10,
    CUDA_R_16BF = 14,
    CUDA_R_64I = 24,
    CUDA_R_8F_E4M3 = 28,
    CUDA_R_8F_E5M2 = 29,
} cudaDataType;

typedef enum {
    CUBLASLT_ORDER_COL = 0,
    CUBLASLT_ORDER_ROW = 1,
} cublasLtOrder_t;

/* Where alpha and beta live. */
typedef enum {
    CUBLASLT_POINTER_MODE_HOST = 0,
    CUBLASLT_POINTER_MODE_DEVICE = 1,
} cublasLtPointerMode_t;

typedef enum {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = 36,
} cublasLtEpilogue_t;

/* The type that each attribute is set with stands beside it. */
typedef enum {
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0,                 /* uint32_t, a cudaDataType */
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,                /* int32_t, a cublasLtOrder_t */
    CUBLASLT_MATRIX_LAYOUT_ROWS = 2,                 /* uint64_t */
    CUBLASLT_MATRIX_LAYOUT_COLS = 3,                 /* uint64_t */
    CUBLASLT_MATRIX_LAYOUT_LD = 4,                   /* int64_t, in elements */
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          /* int32_t */
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, /* int64_t, in elements */
} cublasLtMatrixLayoutAttribute_t;

typedef enum {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,    /* int32_t, a cublasComputeType_t */
    CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,      /* int32_t, a cudaDataType */
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,    /* int32_t, a cublasLtPointerMode_t */
    CUBLASLT_MATMUL_DESC_TRANSA = 3,          /* int32_t, a cublasOperation_t */
    CUBLASLT_MATMUL_DESC_TRANSB = 4,          /* int32_t, a cublasOperation_t */
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,        /* uint32_t, a cublasLtEpilogue_t */
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,    /* void *, on the device */
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26, /* int32_t, a cudaDataType */
} cublasLtMatmulDescAttributes_t;

/* How the parts of a sum that several blocks have computed are added up: a set. */
typedef enum {
    CUBLASLT_REDUCTION_SCHEME_NONE = 0,
    CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4,
} cublasLtReductionScheme_t;

typedef enum {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   /* uint64_t */
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, /* uint32_t, a cublasLtReductionScheme_t */
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, /* uint32_t, as the three below */
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
} cublasLtMatmulPreferenceAttributes_t;

typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state; /* the rest means something only if this is CUBLAS_STATUS_SUCCESS */
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

/*
 * Every function that we call: X(result, name, need, arguments). The exported symbol is the name.
 * An OPTIONAL pointer may be NULL: without cublasLtGetStatusName an error is told by its number.
 */
// clang-format off
#define GNI_CUBLASLT_FUNCTIONS(X)                                                                  \
    X(cublasStatus_t, cublasLtCreate, REQUIRED, (cublasLtHandle_t *handle))                        \
    X(cublasStatus_t, cublasLtDestroy, REQUIRED, (cublasLtHandle_t handle))                        \
    X(size_t, cublasLtGetVersion, REQUIRED, (void))                                                \
    X(const char *, cublasLtGetStatusName, OPTIONAL, (cublasStatus_t status))                      \
    X(cublasStatus_t, cublasLtMatmulDescCreate, REQUIRED,                                          \
      (cublasLtMatmulDesc_t *descriptor, cublasComputeType_t compute_type,                         \
       cudaDataType scale_type))                                                                   \
    X(cublasStatus_t, cublasLtMatmulDescDestroy, REQUIRED, (cublasLtMatmulDesc_t descriptor))      \
    X(cublasStatus_t, cublasLtMatmulDescSetAttribute, REQUIRED,                                    \
      (cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,                  \
       const void *value, size_t nbytes))                                                          \
    X(cublasStatus_t, cublasLtMatrixLayoutCreate, REQUIRED,                                        \
      (cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t columns,         \
       int64_t leading_dimension))                                                                 \
    X(cublasStatus_t, cublasLtMatrixLayoutDestroy, REQUIRED, (cublasLtMatrixLayout_t layout))      \
    X(cublasStatus_t, cublasLtMatrixLayoutSetAttribute, REQUIRED,                                  \
      (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,                   \
       const void *value, size_t nbytes))                                                          \
    X(cublasStatus_t, cublasLtMatmulPreferenceCreate, REQUIRED,                                    \
      (cublasLtMatmulPreference_t *preference))                                                    \
    X(cublasStatus_t, cublasLtMatmulPreferenceDestroy, REQUIRED,                                   \
      (cublasLtMatmulPreference_t preference))                                                     \
    X(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute, REQUIRED,                              \
      (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,      \
       const void *value, size_t nbytes))                                                          \
    X(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic, REQUIRED,                                    \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, cublasLtMatrixLayout_t a_layout,  \
       cublasLtMatrixLayout_t b_layout, cublasLtMatrixLayout_t c_layout,                           \
       cublasLtMatrixLayout_t d_layout, cublasLtMatmulPreference_t preference, int capacity,       \
       cublasLtMatmulHeuristicResult_t *results, int *count))                                      \
    X(cublasStatus_t, cublasLtMatmul, REQUIRED,                                                    \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, const void *alpha,                \
       const void *a, cublasLtMatrixLayout_t a_layout, const void *b,                              \
       cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,                           \
       cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,                  \
       const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_nbytes,            \
       cudaStream_t stream))
// clang-format on

/* One pointer for each function of the table. */
struct gni_cublaslt_functions {
#define GNI_CUBLASLT_FIELD(result, name, need, arguments) result(*name) arguments;
    GNI_CUBLASLT_FUNCTIONS(GNI_CUBLASLT_FIELD)
#undef GNI_CUBLASLT_FIELD
};

#endif
