/*
 * blas_plan.h: cuBLASLt itself: the library, its handles, and how products are computed with it.
 *
 *     plan   descriptors and algorithms for products of one key: all that they depend on but addresses
 *
 * Invariants:
 *   BP1  a plan in the table does not change, but for is_refused, which is set once;
 *   BP2  the table and each user have a reference to a plan; the last one to go destroys it;
 *   BP3  a device that is ready has a handle, until gn_shutdown(), which the caller keeps apart from all other calls;
 *   BP4  the mutex is not held while a plan is made or a product submitted.
 *
 * Threads: any, at once.
 */
#ifndef GNI_OPS_CUDA_BLAS_PLAN_H
#define GNI_OPS_CUDA_BLAS_PLAN_H

#include "device/cuda/cublaslt_api.h"
#include "device/device.h"

enum {
    GNI_BLAS_ALGORITHMS_MOST = 8, /* that are asked for where they are measured */
};

/* What is added to a product. */
enum gni_addition {
    GNI_ADDITION_NONE,
    GNI_ADDITION_ROW, /* for all rows */
    GNI_ADDITION_MATRIX,
};

/* All that a plan depends on, without gaps. */
struct gni_blas_key {
    gn_device *device;
    int64_t rows, columns, inner;
    int64_t a_stride, b_stride, c_stride; /* from a row, or column, to the next; c lies by rows */
    int64_t batch_count;
    int64_t a_step, b_step, c_step; /* from one index of the batch to the next */
    int64_t addend_stride;          /* of a matrix; else 0 */
    uint8_t dtype, is_tf32;
    uint8_t is_a_by_columns, is_b_by_columns;
    uint8_t a_shift, b_shift, c_shift; /* 1 << shift divides the address; c_shift: of a matrix that
                                          is added, too */
    uint8_t addition;                  /* enum gni_addition */
};
_Static_assert(sizeof(struct gni_blas_key) == sizeof(gn_device *) + 11 * sizeof(int64_t) + 8,
               "a plan's key is hashed and compared as bytes");

/* A way to compute a product, and the memory that it works in. */
struct gni_blas_algorithm {
    cublasLtMatmulAlgo_t handle;
    size_t workspace_bytes;
};

struct gni_blas_plan {
    struct gni_blas_plan *next; /* in its bucket */
    uint64_t hash;
    struct gni_blas_key key;
    _Atomic(int) references;         /* BP2 */
    _Atomic(bool) is_refused;        /* the library cannot */
    cublasLtMatmulDesc_t descriptor; /* of a row that is added: only to ask by */
    cublasLtMatrixLayout_t a, b, c;  /* of our matrices */
    cublasLtMatrixLayout_t addend;   /* NULL: no matrix is added */
    int algorithm_count;
    struct gni_blas_algorithm
        algorithms[GNI_BLAS_ALGORITHMS_MOST]; /* what is recommended first, first */
};

/* Whether the library is there for a device: it is looked for when this is first asked. */
bool gni_cublas_is_ready(gn_device *device);

/* The library, once a device is ready, and the handle of such a device. */
const struct gni_cublaslt_functions *gni_cublas_library(void);
cublasLtHandle_t gni_cublas_handle(const gn_device *device);

/* What a status of the library means; GN_OK for success. */
gn_status gni_cublas_error(const char *function, cublasStatus_t status);

/* A reference to the plan of a key; if there is none it is made, for what is added to the first product. */
gn_status gni_blas_plan_get(const struct gni_blas_key *key, const void *addend,
                            struct gni_blas_plan **plan) GN_NODISCARD;
void gni_blas_plan_release(struct gni_blas_plan *plan);

/* A descriptor for products of a key, to which `row` is added if that is so. On failure, too, there may be one; it is the
 * caller's to destroy. */
gn_status gni_blas_describe(const struct gni_blas_key *key, const void *row,
                            cublasLtMatmulDesc_t *descriptor) GN_NODISCARD;

#endif
