/*
 * test_matmul.c: matrix products on every instruction set, with and without OpenBLAS, on several threads, in a forked
 * child, and with failures of host memory. The rules of shapes, and rounding, are tested from Python, against NumPy.
 *
 * The argument is a pattern of files that may be an OpenBLAS. The elements are small integers, so that every sum is
 * exact, and only bfloat16 rounds at the end.
 */
#include "child.h"

#include "genesis/genesis.h"

#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/cpu_blas.h"
#include "ops/cpu/loops.h"

#include <glob.h>
#include <pthread.h>

static gn_device *cpu;

/* Element (i, k) of a, and (k, j) of b: 0, 1 or 2. */
static int64_t element(int64_t row, int64_t column)
{
    return (row * 7 + column * 3) % 5 % 3;
}

static gn_tensor *matrix_make(gn_dtype dtype, int64_t rows, int64_t columns)
{
    int64_t shape[] = {rows, columns};
    int64_t *values = gni_host_alloc((size_t)(rows * columns) * sizeof *values);
    gn_tensor *wide = NULL, *tensor = NULL;
    CHECK(values != NULL);
    for (int64_t i = 0; values != NULL && i < rows * columns; i++)
        values[i] = element(i / columns, i % columns);
    CHECK_OK(gn_tensor_from_memory(values, GN_INT64, 2, shape, NULL, cpu, false, gni_host_free,
                                   values, &wide));
    CHECK_OK(gn_cast(wide, dtype, &tensor));
    gn_tensor_release(wide);
    return tensor;
}

static int64_t expected_at(gn_dtype dtype, int64_t row, int64_t column, int64_t inner)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < inner; k++)
        sum += element(row, k) * element(k, column);
    switch (dtype) {
    case GN_BOOL:
        return sum != 0;
    case GN_UINT8:
        return (uint8_t)sum;
    case GN_UINT16:
        return (uint16_t)sum;
    case GN_UINT32:
        return (uint32_t)sum;
    case GN_INT8:
        return (int8_t)(uint8_t)sum;
    case GN_INT16:
        return (int16_t)(uint16_t)sum;
    case GN_BFLOAT16:
        return (int64_t)gni_bfloat16_to(gni_bfloat16_from((float)sum));
    default:
        return sum;
    }
}

/* How many elements of a product are wrong. */
static int64_t wrong_count(gn_tensor *product, int64_t inner)
{
    const int64_t *shape = gn_tensor_get_shape(product);
    gn_dtype dtype = gn_tensor_get_dtype(product);
    gn_tensor *wide = NULL;
    void *data = NULL;
    int64_t wrong = 0;
    CHECK_OK(gn_cast(product, GN_INT64, &wide));
    CHECK_OK(gn_tensor_get_data(wide, &data));
    for (int64_t i = 0; data != NULL && i < shape[0] * shape[1]; i++) {
        int64_t expected = expected_at(dtype, i / shape[1], i % shape[1], inner);
        wrong += ((const int64_t *)data)[i] != expected;
    }
    gn_tensor_release(wide);
    return data != NULL ? wrong : -1;
}

static void product_check(gn_dtype dtype, int64_t rows, int64_t inner, int64_t columns)
{
    gn_tensor *a = matrix_make(dtype, rows, inner), *b = matrix_make(dtype, inner, columns);
    gn_tensor *c = NULL;
    CHECK_OK(gn_matmul(a, b, &c));
    if (c != NULL && wrong_count(c, inner) != 0) {
        CHECK(false);
        fprintf(stderr, "    %s, %lld x %lld x %lld\n", gn_dtype_name(dtype), (long long)rows,
                (long long)inner, (long long)columns);
    }
    gn_tensor_release(a);
    gn_tensor_release(b);
    gn_tensor_release(c);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void test_every_type_and_instruction_set(void)
{
    static const char *const sets[] = {"basic", "avx2", "avx512"};
    static const int64_t sizes[][3] = {{1, 1, 1},    {2, 3, 4},    {13, 31, 33},   {12, 300, 32},
                                       {5, 257, 64}, {145, 7, 65}, {33, 260, 193}, {1, 300, 50},
                                       {50, 300, 1}, {7, 0, 3}};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        if (!gni_loops_use(sets[s])) {
            printf("     %s: not on this processor\n", sets[s]);
            continue;
        }
        for (int has_blas = 0; has_blas < 2; has_blas++) {
            gni_blas_enable(has_blas != 0);
            for (gn_dtype dtype = GN_BOOL; dtype < GN_DTYPE_COUNT; dtype++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                    if (!has_blas || dtype >= GN_FLOAT32)
                        product_check(dtype, sizes[i][0], sizes[i][1], sizes[i][2]);
        }
    }
    CHECK(gni_loops_use(NULL));
}

/* What is switched off is not used, and the library stays loaded. */
static void test_openblas_off_and_on(void)
{
    bool is_there = gni_blas_is_there();
    gni_blas_enable(false);
    CHECK(!gni_blas_is_there() && !gni_blas_is_shared());
    gni_blas_enable(true);
    CHECK(gni_blas_is_there() == is_there);
}

/* One task, fewer tasks than threads, and more. */
static void test_numbers_of_threads(void)
{
    int before = gni_parallel_get_threads();
    for (int threads = 1; threads <= 9; threads += 4) {
        CHECK_OK(gni_parallel_set_threads(threads));
        for (int has_blas = 0; has_blas < 2; has_blas++) {
            gni_blas_enable(has_blas != 0);
            product_check(GN_FLOAT32, 150, 90, 200);
            product_check(GN_FLOAT64, 300, 33, 301);
        }
        product_check(GN_INT32, 290, 70, 400);
        product_check(GN_INT16, 3, 100000, 1);
        product_check(GN_FLOAT32, 1, 3000, 700);
    }
    CHECK_OK(gni_parallel_set_threads(before));
}

enum {
    THREADS = 3,
    TURNS = 5,
};

static void *thread_run(void *unused)
{
    (void)unused;
    for (int turn = 0; turn < TURNS; turn++) {
        product_check(GN_FLOAT32, 130, 60, 140);
        product_check(GN_INT8, 150, 30, 200);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_run, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

#ifndef CHILD_IS_ALONE
static void child_check(void *unused)
{
    (void)unused;
    product_check(GN_FLOAT32, 300, 60, 310);
    product_check(GN_INT32, 300, 60, 310);
    CHECK_OK(gn_blas_add_file("/nowhere/libopenblas.so"));
}

static void test_forked_child(void)
{
    static struct child_result result;
    child_run(child_check, NULL, &result);
    CHECK(child_is_ok(&result));
}
#endif

/* ---- failures -------------------------------------------------------------------------------- */

static gn_status turned_matmul(gn_tensor *a, gn_tensor *b, gn_tensor *out)
{
    gn_tensor *steps = NULL;
    GN_TRY(gn_tensor_slice(a, 1, gn_tensor_get_shape(a)[1] - 1, -1, gn_tensor_get_shape(a)[1],
                           &steps));
    gn_status status = gn_matmul_into(steps, b, out);
    gn_tensor_release(steps);
    return status;
}

/* Workspaces, copies for OpenBLAS, sums in stretches, an output that overlaps. */
static gn_status mixed_program(gn_tensor *const *in)
{
    gn_tensor *c = NULL, *v = NULL, *out = NULL, *sum = NULL;
    gn_status status = gn_matmul(in[0], in[1], &c); /* int32, tiles */
    if (status == GN_OK)
        status = gn_matmul(in[2], in[3], &v); /* a long vector */
    if (status == GN_OK)
        status = gn_tensor_create(GN_FLOAT32, 2, (const int64_t[]){60, 60}, cpu, &out);
    if (status == GN_OK)
        status = turned_matmul(in[4], in[4], out); /* copied */
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_ADD, (gn_operand[]){{.tensor = out}, {.tensor = in[4]}},
                                &sum); /* waits */
    if (status == GN_OK)
        status = gn_matmul_into(sum, out, out);
    gn_tensor *all[] = {c, v, out, sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
    return status;
}

static void test_host_memory_fails(void)
{
    gn_tensor *in[] = {matrix_make(GN_INT32, 150, 40), matrix_make(GN_INT32, 40, 200),
                       matrix_make(GN_INT8, 2, 70000), matrix_make(GN_INT8, 70000, 1),
                       matrix_make(GN_FLOAT32, 60, 60)};
    CHECK_OK(gn_flush());
    for (int has_blas = 0; has_blas < 2; has_blas++) {
        gni_blas_enable(has_blas != 0);
        CHECK_OK(mixed_program(in));
        size_t live = gni_host_live_count();
        long faults = 0;
        for (long nth = 1;; nth++) {
            gni_host_fail_after(nth);
            gn_status status = mixed_program(in);
            gni_host_fail_after(-1);
            CHECK(gni_host_live_count() == live);
            if (status == GN_OK)
                break;
            CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
            faults++;
        }
        CHECK(faults > 10);
        printf("     %ld faults\n", faults);
    }
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        gn_tensor_release(in[i]);
}

/* A result for which there is no memory; and one that cannot be written down. */
static void test_too_large(void)
{
    gn_tensor *one = matrix_make(GN_FLOAT32, 1, 1), *tall, *wide, *result = NULL;
    int64_t much = INT64_C(1) << 24, more = INT64_C(1) << 40;
    CHECK_OK(gn_tensor_expand(one, 2, (const int64_t[]){much, 1}, &tall));
    CHECK_OK(gn_tensor_expand(one, 2, (const int64_t[]){1, much}, &wide));
    CHECK_STATUS(gn_matmul(tall, wide, &result), GN_ERROR_OUT_OF_MEMORY);
    gn_tensor_release(tall);
    gn_tensor_release(wide);
    CHECK_OK(gn_tensor_expand(one, 2, (const int64_t[]){more, 1}, &tall));
    CHECK_OK(gn_tensor_expand(one, 2, (const int64_t[]){1, more}, &wide));
    CHECK_STATUS(gn_matmul(tall, wide, &result), GN_ERROR_SHAPE);
    CHECK(result == NULL);
    gn_tensor_release(tall);
    gn_tensor_release(wide);
    gn_tensor_release(one);
}

static void test_arguments(void)
{
    gn_tensor *a = matrix_make(GN_FLOAT32, 2, 3), *b = matrix_make(GN_FLOAT64, 3, 2), *c = NULL;
    static char long_path[2000];
    memset(long_path, '/', sizeof long_path - 1);
    CHECK_STATUS(gn_matmul(a, b, &c), GN_ERROR_TYPE);
    CHECK_DETAIL("float32 of shape (2, 3) and one float64 of (3, 2)");
    CHECK_STATUS(gn_matmul(a, a, &c), GN_ERROR_SHAPE);
    CHECK_STATUS(gn_matmul(NULL, a, &c), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_matmul_into(a, b, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_blas_add_file(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_blas_add_file("libopenblas.so"), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_blas_add_file(long_path), GN_ERROR_INVALID_VALUE);
    int added = 0;
    char path[64] = "/nowhere/0";
    while (added < 100 && gn_blas_add_file(path) == GN_OK)
        (void)snprintf(path, sizeof path, "/nowhere/%d", ++added);
    CHECK(added > 0 && added <= 8);
    CHECK_DETAIL("8 files");
    CHECK_OK(gn_blas_add_file("/nowhere/0")); /* known */
    gn_tensor_release(a);
    gn_tensor_release(b);
}

int main(int count, char **arguments)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    glob_t found = {0};
    if (count > 1 && glob(arguments[1], 0, NULL, &found) == 0)
        CHECK_OK(gn_blas_add_file(found.gl_pathv[0]));
    globfree(&found);
    printf("     OpenBLAS: %s\n", gni_blas_is_there() ? "found" : "none: our own kernel only");
    RUN(test_every_type_and_instruction_set);
    RUN(test_openblas_off_and_on);
    RUN(test_numbers_of_threads);
    RUN(test_threads);
#ifndef CHILD_IS_ALONE
    RUN(test_forked_child);
#endif
    RUN(test_host_memory_fails);
    RUN(test_too_large);
    RUN(test_arguments);
    return check_result();
}
