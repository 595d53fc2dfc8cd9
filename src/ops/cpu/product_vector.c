/*
 * product_vector.c: a matrix times a vector. Every element of the matrix is read once, in the order in which it lies.
 *
 * A task is a stretch of rows and a stretch of inner indices. Where the inner indices are several stretches, their
 * sums are kept side by side and added at the end. Both lengths are fixed, so that results do not depend on the
 * number of threads.
 */
#include "ops/cpu/cpu_product.h"

#include "base/checked.h"
#include "base/parallel.h"
#include "ops/cpu/tiles.h"
#include "tensor/tensor.h"

#include <string.h>

enum {
    TASK_ROWS = 256,
    TASK_INNER = 1 << 15,
    VECTOR_COST = 4, /* of a product here, in those of a product of matrices */
    STEP = 4096,     /* inner indices at a time, of which the vector's part is in cache */
};

struct vector_product {
    const struct gni_product *product;
    const struct gni_tile *tile;
    gn_dtype computing;
    int64_t down, along; /* tasks in each product */
    char *partial;       /* [batch][stretch of inner indices][row]; NULL: there is one stretch */
};

/* Rows whose elements lie side by side, or too far apart either way: one row after the other. */
static void rows_multiply(const struct vector_product *job, const struct gni_matrix *a,
                          const char *x, size_t rows, size_t inner, char *sums)
{
    uint64_t room[STEP];
    gn_dtype dtype = job->product->dtype;
    int64_t size = (int64_t)gni_dtype_size(dtype);
    size_t wide = gni_dtype_size(job->computing);
    for (size_t i = 0; i < rows; i++) {
        const void *run = gni_run_load(a->data + (int64_t)i * a->row_stride * size,
                                       a->column_stride, inner, dtype, job->computing, room);
        job->tile->dot(run, x, inner, sums + i * wide);
    }
}

/* Columns whose elements lie side by side: one column after the other. */
static void columns_multiply(const struct vector_product *job, const struct gni_matrix *a,
                             const char *x, size_t rows, size_t inner, char *sums)
{
    uint64_t room[TASK_ROWS];
    gn_dtype dtype = job->product->dtype;
    int64_t size = (int64_t)gni_dtype_size(dtype);
    size_t wide = gni_dtype_size(job->computing);
    for (size_t k = 0; k < inner; k++) {
        const void *run = gni_run_load(a->data + (int64_t)k * a->column_stride * size, 1, rows,
                                       dtype, job->computing, room);
        job->tile->accumulate(run, x + k * wide, rows, sums);
    }
}

static void task_run(const struct vector_product *job, int64_t index)
{
    const struct gni_product *product = job->product;
    int64_t size = (int64_t)gni_dtype_size(product->dtype);
    int64_t stretch = index % job->along, batch = index / job->along / job->down;
    int64_t row = index / job->along % job->down * TASK_ROWS, from = stretch * TASK_INNER;
    int64_t rows = product->rows - row < TASK_ROWS ? product->rows - row : TASK_ROWS;
    int64_t rest = product->inner - from < TASK_INNER ? product->inner - from : TASK_INNER;
    uint64_t sums[TASK_ROWS], room[STEP];
    struct gni_matrix a, x, c;
    gni_product_seek(product, batch, &a, &x, &c);
    a.data += (row * a.row_stride + from * a.column_stride) * size;
    x.data += from * x.row_stride * size;
    bool is_by_columns = a.row_stride == 1 && a.column_stride != 1;
    memset(sums, 0, (size_t)rows * sizeof *sums);
    for (int64_t k = 0; k < rest; k += STEP) {
        size_t some = (size_t)(rest - k < STEP ? rest - k : STEP);
        const void *run = gni_run_load(x.data + k * x.row_stride * size, x.row_stride, some,
                                       product->dtype, job->computing, room);
        struct gni_matrix part = a;
        part.data += k * a.column_stride * size;
        (is_by_columns ? columns_multiply : rows_multiply)(job, &part, run, (size_t)rows, some,
                                                           (char *)sums);
    }
    size_t wide = gni_dtype_size(job->computing);
    if (job->partial == NULL)
        gni_run_store(sums, (size_t)rows, job->computing, product->dtype,
                      c.data + row * c.row_stride * size, c.row_stride);
    else
        memcpy(job->partial + (size_t)((batch * job->along + stretch) * product->rows + row) * wide,
               sums, (size_t)rows * wide);
}

static void part_run(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        task_run(context, (int64_t)i);
}

/* The sums of all stretches become one, and are stored. */
static void partial_join(const struct vector_product *job)
{
    const struct gni_product *product = job->product;
    size_t rows = (size_t)product->rows, bytes = rows * gni_dtype_size(job->computing);
    uint64_t one = 0;
    gni_scalar_store((gn_scalar){.kind = GN_INT64, .integer = 1}, job->computing, &one);
    for (int64_t batch = 0; batch < product->batch_count; batch++) {
        struct gni_matrix a, x, c;
        char *sums = job->partial + (size_t)(batch * job->along) * bytes;
        gni_product_seek(product, batch, &a, &x, &c);
        for (int64_t i = 1; i < job->along; i++)
            job->tile->accumulate(sums + (size_t)i * bytes, &one, rows, sums);
        gni_run_store(sums, rows, job->computing, product->dtype, c.data, c.row_stride);
    }
}

gn_status gni_product_vector(const struct gni_product *product, gn_device *device)
{
    struct vector_product job = {.product = product};
    job.tile = gni_tile_find(product->dtype, &job.computing);
    job.down = (product->rows - 1) / TASK_ROWS + 1;
    job.along = product->inner > 0 ? (product->inner - 1) / TASK_INNER + 1 : 1;
    struct gni_storage *storage = NULL;
    size_t nbytes, stretches;
    if (!gni_size_multiply((size_t)product->batch_count, (size_t)job.along, &stretches) ||
        !gni_size_multiply(stretches, (size_t)product->rows, &nbytes) ||
        !gni_size_multiply(nbytes, gni_dtype_size(job.computing), &nbytes))
        return gni_error_host_memory(SIZE_MAX);
    if (job.along > 1) {
        GN_TRY(gni_storage_create(device, nbytes, NULL, &storage));
        job.partial = storage->data;
    }
    int64_t rows = product->rows < TASK_ROWS ? product->rows : TASK_ROWS;
    int64_t inner = product->inner < TASK_INNER ? product->inner : TASK_INNER;
    gni_parallel_for(stretches * (size_t)job.down, gni_product_grain(rows * inner * VECTOR_COST),
                     part_run, &job);
    if (storage != NULL) {
        partial_join(&job);
        gni_storage_release(storage);
    }
    return GN_OK;
}
