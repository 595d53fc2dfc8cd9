/*
 * cpu_solvers.c: who computes which matrix of a task: see cpu_solvers.h.
 *
 * Each thread that is at work has a slot of memory. All slots are one piece, asked for before the work begins, so that nothing
 * can fail after that. A very large matrix is computed by OpenBLAS with as many threads as ours are.
 */
#include "ops/cpu/cpu_solvers.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "ops/cpu/cpu_blas.h"
#include "tensor/tensor.h"

#include <string.h>

enum {
    PART_WORK = 1 << 15,  /* multiplications that are worth a thread */
    MATRIX_WORK = 1 << 9, /* for which there is time while a matrix begins and ends */
    SLOTS_MOST = 256,
    SLOT_ALIGNMENT = 64,
};

/* Multiplications of one matrix that are worth OpenBLAS's threads. These wait for each other many times, in QR and in iterations
 * after each column: where other programs have work, too, a matrix of 1500 took them 18 times as long as one thread. */
static const int64_t shared_work = INT64_C(1) << 33;        /* 2000 x 2000 */
static const int64_t shared_column_work = INT64_C(1) << 36; /* 4000 x 4000 */

struct run {
    const struct gni_solver_task *task;
    const struct gni_lapack_plan *plan; /* NULL: our own routines */
    char *slots;
    size_t slot_bytes;
    int slot_count;
    atomic_bool is_taken[SLOTS_MOST];
};

/* How many elements one matrix of an operand has; 0: the operand is not there. */
static int64_t elements_of(const struct gni_solver_task *task, int operand)
{
    int64_t m = task->rows, n = task->columns, k = m < n ? m : n;
    if (operand == 0)
        return m * n;
    switch (task->solver) {
    case GNI_SOLVER_SOLVE:
    case GNI_SOLVER_TRIANGULAR:
        return operand == 1 ? m * task->right : 0;
    case GNI_SOLVER_DETERMINANT:
        return 1;
    case GNI_SOLVER_QR:
        return operand == 1 ? m * task->inner : operand == 2 ? task->inner * n : 0;
    case GNI_SOLVER_SVD:
        return operand == 1   ? k
               : operand == 2 ? m * (task->is_full ? m : k)
                              : n * (task->is_full ? n : k);
    case GNI_SOLVER_EIGH:
        return operand == 1 ? n : 0;
    default:
        return 0;
    }
}

/* ---- one matrix ------------------------------------------------------------------------------------------ */

static struct gni_solver_matrix matrix_at(const struct gni_solver_task *task, int64_t index)
{
    struct gni_solver_matrix matrix = {.info = 0};
    size_t size = gni_dtype_size(task->dtype);
    int64_t k = task->rows < task->columns ? task->rows : task->columns;
    for (int i = 0; i < GNI_SOLVER_OPERANDS; i++)
        if (task->operands[i] != NULL)
            matrix.operands[i] = task->operands[i] + (size_t)(index * elements_of(task, i)) * size;
    if (task->pivots != NULL)
        matrix.pivots = task->pivots + index * k;
    return matrix;
}

/* Doubles of a copy of all operands, for our own routines. */
static int64_t copy_elements(const struct gni_solver_task *task)
{
    int64_t count = 0;
    for (int i = 0; i < GNI_SOLVER_OPERANDS && task->dtype == GN_FLOAT32; i++)
        if (task->operands[i] != NULL)
            count += elements_of(task, i);
    return count;
}

/* Our own routines compute in double precision, in a copy where elements are floats. */
static void own_run(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                    double *workspace)
{
    struct gni_solver_matrix wide = *matrix;
    double *at = workspace;
    for (int i = 0; i < GNI_SOLVER_OPERANDS && task->dtype == GN_FLOAT32; i++) {
        const float *from = (const float *)(const void *)matrix->operands[i];
        if (from == NULL)
            continue;
        int64_t count = elements_of(task, i);
        wide.operands[i] = (char *)at;
        for (int64_t k = 0; k < count; k++)
            *at++ = from[k];
    }
    gni_own_run(task, &wide, at);
    matrix->info = wide.info;
    for (int i = 0; i < GNI_SOLVER_OPERANDS && task->dtype == GN_FLOAT32; i++) {
        float *to = (float *)(void *)matrix->operands[i];
        const double *from = (const double *)(const void *)wide.operands[i];
        for (int64_t k = 0; to != NULL && k < elements_of(task, i); k++)
            to[k] = (float)from[k];
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------ */

/* There are as many slots as threads; if somebody has raised their number meanwhile, the last ones wait. */
static int slot_take(struct run *run)
{
    for (int i = 0;; i = (i + 1) % run->slot_count) {
        if (!atomic_load_explicit(&run->is_taken[i], memory_order_relaxed) &&
            !atomic_exchange_explicit(&run->is_taken[i], true, memory_order_acquire))
            return i;
        gni_thread_pause();
    }
}

static void part_run(void *context, size_t begin, size_t end)
{
    struct run *run = context;
    int slot = slot_take(run);
    char *workspace = run->slots + (size_t)slot * run->slot_bytes;
    for (size_t i = begin; i < end; i++) {
        struct gni_solver_matrix matrix = matrix_at(run->task, (int64_t)i);
        if (run->plan != NULL)
            gni_lapack_run(run->task, run->plan, &matrix, workspace);
        else
            own_run(run->task, &matrix, (double *)(void *)workspace);
        run->task->info[i] = matrix.info;
    }
    atomic_store_explicit(&run->is_taken[slot], false, memory_order_release);
}

/* Multiplications of one matrix, about; those of an iteration are done several times. */
static int64_t work_of(const struct gni_solver_task *task)
{
    int64_t m = task->rows, n = task->columns, k = m < n ? m : n, work;
    int64_t last = task->solver == GNI_SOLVER_TRIANGULAR ? task->right : n + task->right;
    if (__builtin_mul_overflow(m, k, &work) || __builtin_mul_overflow(work, last, &work))
        return INT64_MAX;
    return work;
}

static void matrices_run(struct run *run, int threads)
{
    int64_t work = work_of(run->task);
    size_t batch = (size_t)run->task->batch;
    bool is_by_columns = run->task->solver >= GNI_SOLVER_QR;
    bool is_large = run->plan != NULL && work >= (is_by_columns ? shared_column_work : shared_work);
    if (run->plan != NULL)
        gni_blas_begin(is_large ? threads : 1);
    if (is_large)
        part_run(run, 0, batch);
    else
        gni_parallel_for(batch,
                         work >= PART_WORK ? 1 : (size_t)(PART_WORK / (work + MATRIX_WORK)) + 1,
                         part_run, run);
    if (run->plan != NULL)
        gni_blas_end();
}

gn_status gni_cpu_solver_run(const struct gni_solver_task *task, gn_device *device)
{
    struct gni_lapack_plan plan;
    struct run run = {.task = task};
    size_t nbytes, all;
    int threads = gni_parallel_get_threads();
    if (gni_lapack_is_there()) {
        GN_TRY(gni_lapack_prepare(task, &plan));
        run.plan = &plan;
        nbytes = plan.nbytes;
    } else if (!gni_size_multiply((size_t)(gni_own_workspace(task) + copy_elements(task)),
                                  sizeof(double), &nbytes)) {
        return gni_error_host_memory(SIZE_MAX);
    }
    run.slot_count = task->batch < threads ? (int)task->batch : threads;
    if (!gni_size_align_up(nbytes > 0 ? nbytes : 1, SLOT_ALIGNMENT, &run.slot_bytes) ||
        !gni_size_multiply(run.slot_bytes, (size_t)run.slot_count, &all))
        return gni_error_host_memory(nbytes);
    struct gni_storage *storage;
    GN_TRY(gni_storage_create(device, all, NULL, &storage));
    run.slots = storage->data;
    matrices_run(&run, threads);
    gni_storage_release(storage);
    return GN_OK;
}
