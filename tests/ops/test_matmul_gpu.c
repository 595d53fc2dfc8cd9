/*
 * test_matmul_gpu.c: matrix products on the simulated GPU beside a stand-in for cuBLASLt: memory of the host that
 * fails, and the end. tests/ops/device_matmul.py has the numbers.
 */
#include "base/host.h"
#include "check.h"
#include "genesis/genesis.h"
#include "ops/cuda/cuda_blas.h"

#include <dlfcn.h>

static gn_device *device;
static int (*fake_count)(const char *name);

/* A tensor of ones. */
static gn_status ones_make(gn_dtype dtype, int64_t rows, int64_t columns, gn_tensor **out)
{
    gn_tensor *made;
    gn_status status = gn_tensor_create(dtype, 2, (const int64_t[]){rows, columns}, device, &made);
    if (status != GN_OK)
        return status;
    status = gn_assign(made, (gn_operand){.scalar = {.kind = GN_INT64, .integer = 1}});
    if (status == GN_OK)
        *out = made;
    else
        gn_tensor_release(made);
    return status;
}

/* The product of ones, of which each element is `inner`, and a view of the first that is copied before; and of one that
 * is not, to which a row of ones is added. */
static gn_status ones_multiply(gn_dtype dtype, int64_t inner, double *sum)
{
    gn_tensor *a = NULL, *b = NULL, *view = NULL, *c = NULL, *dense = NULL, *row = NULL, *d = NULL;
    gn_scalar first, second;
    gn_status status = ones_make(dtype, 4, 2 * inner, &a);
    if (status == GN_OK)
        status = ones_make(dtype, inner, 3, &b);
    if (status == GN_OK)
        status = gn_tensor_slice(a, 1, 0, 2, inner, &view);
    if (status == GN_OK)
        status = gn_matmul(view, b, &c);
    if (status == GN_OK)
        status = gn_tensor_slice(a, 1, 0, 1, inner, &dense);
    if (status == GN_OK)
        status = gn_tensor_slice(b, 0, 0, 1, 1, &row);
    if (status == GN_OK)
        status = gn_matmul_add(dense, b, row, &d);
    if (status == GN_OK)
        status = gn_tensor_get_item(c, (const int64_t[]){0, 0}, &first);
    if (status == GN_OK)
        status = gn_tensor_get_item(d, (const int64_t[]){3, 2}, &second);
    if (status == GN_OK)
        *sum = dtype == GN_INT32 ? (double)(first.integer + second.integer)
                                 : first.floating + second.floating;
    gn_tensor *all[] = {a, b, view, c, dense, row, d};
    for (int i = 0; i < 7; i++)
        gn_tensor_release(all[i]);
    return status;
}

static void test_host_memory(void)
{
    const gn_dtype dtypes[] = {GN_FLOAT32, GN_FLOAT64, GN_INT32};
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        CHECK_OK(ones_multiply(dtypes[i], 150, &sum)); /* the kernels, and what the manager keeps */
        CHECK(sum == 301);
        size_t live = gni_host_live_count() - gni_cublas_plan_count();
        long faults = 0;
        for (long nth = 1;; nth++) {
            gni_host_fail_after(nth);
            gn_status status = ones_multiply(dtypes[i], 150 + nth, &sum); /* of another plan */
            gni_host_fail_after(-1);
            CHECK_U64(gni_host_live_count() - gni_cublas_plan_count(), live);
            if (status == GN_OK)
                break;
            CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
            faults++;
        }
        CHECK(faults > 5);
        CHECK_OK(ones_multiply(dtypes[i], 7, &sum));
        CHECK(sum == 15);
        printf("     %ld faults\n", faults);
    }
}

static void test_shutdown(void)
{
    static const char *const pairs[][2] = {
        {"cublasLtCreate", "cublasLtDestroy"},
        {"cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy"},
        {"cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy"},
        {"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy"},
    };
    double sum = 0;
    for (int round = 1; round <= 2; round++) {
        size_t leaked = 1;
        CHECK_OK(ones_multiply(GN_FLOAT32, 20, &sum));
        CHECK(sum == 41);
        CHECK(gni_cublas_plan_count() > 0);
        CHECK_U64(fake_count("cublasLtCreate"), round);
        CHECK_OK(gn_shutdown(&leaked));
        CHECK_U64(leaked, 0);
        CHECK_U64(gni_cublas_plan_count(), 0);
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            CHECK_U64(fake_count(pairs[i][0]), fake_count(pairs[i][1]));
    }
}

int main(void)
{
    const char *driver = getenv("GENESIS_CUDA_DRIVER");
    void *library = driver != NULL ? dlopen(driver, RTLD_NOW) : NULL;
    void *symbol = library != NULL ? dlsym(library, "fake_cublaslt_count") : NULL;
    if (symbol == NULL || gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK)
        return CHECK_SKIPPED;
    memcpy(&fake_count, &symbol, sizeof symbol);
    RUN(test_host_memory);
    RUN(test_shutdown);
    return check_result();
}
