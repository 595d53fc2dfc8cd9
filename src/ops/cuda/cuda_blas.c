/*
 * cuda_blas.c: products by cuBLASLt: how they lie, what is one call, and its submission: see cuda_blas.h.
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
 */
#include "ops/cuda/cuda_blas.h"

#include "device/cuda/cuda.h"
#include "genesis/memory.h"
#include "genesis/ops.h"
#include "jit/kernel.h"
#include "jit/profile.h"
#include "jit/tune.h"
#include "memory/manager.h"
#include "ops/cuda/blas_plan.h"

enum {
    BATCH_MOST = 65535,   /* products in one call */
    ALIGNMENT_MOST = 256, /* bytes, of an address: more is of no use */
    BIAS_ALIGNMENT = 16,  /* bytes: what is read at once */
};

/* Products in a call with which a GPU is busy for long: more of them in one call are not faster. */
static const double CALL_ENOUGH = 4e9;

/* How a matrix lies in memory: by rows or by columns, each so many elements behind the one before. */
struct lie {
    bool is_by_columns;
    int64_t stride;
};

static _Atomic(bool) is_tf32_allowed;

void gn_set_allow_tf32(bool is_allowed)
{
    atomic_store_explicit(&is_tf32_allowed, is_allowed, memory_order_relaxed);
}

bool gn_get_allow_tf32(void)
{
    return atomic_load_explicit(&is_tf32_allowed, memory_order_relaxed);
}

bool gni_cublas_suits(const struct gni_product *product, gn_device *device)
{
    gn_dtype dtype = product->dtype;
    return (dtype == GN_FLOAT32 || dtype == GN_FLOAT16 || dtype == GN_BFLOAT16 ||
            dtype == GN_FLOAT64) &&
           product->inner > 0 && gni_cublas_is_ready(device);
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

/* ---- products --------------------------------------------------------------------------------- */

/* A plan, where its matrices lie, and how it is tuned. Algorithms may add in different orders: jit/tune.h, TU1. */
struct product_work {
    struct gni_blas_plan *plan;
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
                                   const struct gni_blas_algorithm *algorithm, void *workspace)
{
    struct gni_blas_plan *plan = work->plan;
    gn_stream *stream = work->stream;
    bool is_added = plan->addend != NULL;
    static const float one = 1, zero = 0;
    static const double double_one = 1, double_zero = 0;
    bool is_double = plan->key.dtype == GN_FLOAT64;
    const void *alpha = is_double ? (const void *)&double_one : &one;
    const void *none = is_double ? (const void *)&double_zero : &zero;
    struct gni_cuda_scope scope;
    GN_TRY(gni_cuda_enter(gni_cuda_device_of(stream->device), GNI_CUDA_PLAIN, &scope));
    struct gni_cuda_gate *gate = &gni_cuda_device_of(stream->device)->gate;
    struct gni_profile_run *run = gni_profile_begin("cublaslt_matmul_kernel", stream, NULL, NULL);
    gni_cuda_gate_enter(gate);
    cublasStatus_t status = gni_cublas_library()->cublasLtMatmul(
        gni_cublas_handle(stream->device), descriptor, alpha, work->b, plan->b, work->a, plan->a,
        is_added ? alpha : none, is_added ? work->addend : work->c,
        is_added ? plan->addend : plan->c, work->c, plan->c, &algorithm->handle, workspace,
        algorithm->workspace_bytes, stream->handle);
    gni_cuda_gate_leave(gate);
    gni_profile_end(run, stream, status == CUBLAS_STATUS_SUCCESS);
    (void)gni_cuda_leave(&scope, "cublasLtMatmul", CUDA_SUCCESS);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && algorithm == plan->algorithms) {
        atomic_store(&plan->is_refused, true);
        return GN_OK;
    }
    GN_TRY(gni_cublas_error("cublasLtMatmul", status));
    return gni_launch_check(stream);
}

/* Where a row lies is said by a descriptor, which others may be using: each call has its own. */
static gn_status plan_submit(const struct product_work *work,
                             const struct gni_blas_algorithm *algorithm, void *workspace)
{
    if (work->plan->key.addition != GNI_ADDITION_ROW)
        return descriptor_submit(work, work->plan->descriptor, algorithm, workspace);
    cublasLtMatmulDesc_t descriptor = NULL;
    gn_status status = gni_blas_describe(&work->plan->key, work->addend, &descriptor);
    if (status == GN_OK)
        status = descriptor_submit(work, descriptor, algorithm, workspace);
    if (descriptor != NULL)
        (void)gni_cublas_library()->cublasLtMatmulDescDestroy(descriptor);
    return status;
}

/* With the memory that an algorithm works in: it is free again in the order of the stream. */
static gn_status product_run(void *context, const struct gni_choice *choice)
{
    const struct product_work *work = context;
    int at = choice->values[0] < work->plan->algorithm_count ? choice->values[0] : 0;
    const struct gni_blas_algorithm *algorithm = &work->plan->algorithms[at];
    gn_memory_manager *manager;
    gn_memory_block *block;
    if (algorithm->workspace_bytes == 0)
        return plan_submit(work, algorithm, NULL);
    GN_TRY(gn_memory_manager_get(work->stream->device, &manager));
    GN_TRY(gn_memory_block_alloc(manager, algorithm->workspace_bytes, work->stream, &block));
    gn_status status = plan_submit(work, algorithm, gn_memory_block_peek_address(block));
    gn_status freed = gn_memory_block_free(block);
    return status != GN_OK ? status : freed;
}

static struct gni_choice product_choice(const struct gni_blas_plan *plan, int algorithm)
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
    const struct gni_blas_key *key = &work->plan->key;
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
                    (int)gni_cublas_library()->cublasLtGetVersion()},
        .standard = standard,
        .context = work,
        .run = product_run,
        .list = product_list};
    return gni_tune_run(&tune);
}

/* One call, for what lies at these addresses. */
static gn_status key_run(struct gni_blas_key *key, const char *a, const char *b, const char *addend,
                         char *c, gn_stream *stream, bool *is_done)
{
    struct gni_blas_plan *plan;
    key->a_shift = shift_of(a);
    key->b_shift = shift_of(b);
    key->c_shift = shift_of(c);
    if (key->addition == GNI_ADDITION_MATRIX && shift_of(addend) < key->c_shift)
        key->c_shift = shift_of(addend);
    GN_TRY(gni_blas_plan_get(key, addend, &plan));
    gn_status status = GN_OK;
    if (!atomic_load_explicit(&plan->is_refused, memory_order_relaxed))
        status = product_tune(&(struct product_work){plan, a, b, addend, c, stream});
    *is_done = !atomic_load_explicit(&plan->is_refused, memory_order_relaxed);
    gni_blas_plan_release(plan);
    return status;
}

/* All calls of a product: one dimension of the batch, in parts, for each index of the others. */
static gn_status batch_run(const struct gni_product *product, struct gni_blas_key *key,
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
static bool addition_find(const struct gni_matrix *addend, struct gni_blas_key *key)
{
    bool is_dense = key->columns == 1 || addend->column_stride == 1;
    if (is_dense && (key->rows == 1 || addend->row_stride == 0) &&
        (uintptr_t)addend->data % BIAS_ALIGNMENT == 0) {
        key->addition = GNI_ADDITION_ROW;
        return true;
    }
    key->addition = GNI_ADDITION_MATRIX;
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
    struct gni_blas_key key = {
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
    gni_assert(addend == NULL || product->batch_count == 1);
    if (product->batch_count > 1)
        return batch_run(product, &key, stream, is_done);
    key.batch_count = 1;
    return key_run(&key, product->a.data, product->b.data, addend != NULL ? addend->data : NULL,
                   product->c.data, stream, is_done);
}
