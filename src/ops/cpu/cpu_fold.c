/*
 * cpu_fold.c: rows that take over products, largest or smallest elements of other rows, on the CPU: struct gni_backend, fold.
 *
 *     rows[places[i]] = op(rows[places[i]], values[i])     for all i, in ascending order
 *
 * Each thread has some of the rows, and looks for the values that go there, so that the order does not depend on threads.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"

#include <float.h>
#include <math.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    PART_LEAST = 1 << 15, /* elements that are worth another thread */
};

struct job {
    gn_op op;
    gn_dtype dtype;
    const int64_t *places;
    int64_t count, width;
    void *rows;
    const void *values;
    bool has_self; /* else what the rows have does not count */
};

/* A number that changes nothing, the operation, and a whole thread's part. The operation is known when this is compiled. */
#define FOLD(name, type, START, EXPRESSION)                                                    \
    INLINE void name(const struct job *job, int64_t first, int64_t last)                       \
    {                                                                                          \
        const int64_t *restrict places = job->places;                                          \
        type *rows = job->rows;                                                                \
        const type *values = job->values;                                                      \
        for (int64_t i = 0; i < job->count && !job->has_self; i++)                             \
            for (int64_t j = 0; places[i] >= first && places[i] < last && j < job->width; j++) \
                rows[places[i] * job->width + j] = START;                                      \
        for (int64_t i = 0; i < job->count; i++) {                                             \
            if (places[i] < first || places[i] >= last)                                        \
                continue;                                                                      \
            type *restrict to = rows + places[i] * job->width;                                 \
            const type *restrict from = values + i * job->width;                               \
            for (int64_t j = 0; j < job->width; j++) {                                         \
                type a = to[j], b = from[j];                                                   \
                to[j] = EXPRESSION;                                                            \
            }                                                                                  \
        }                                                                                      \
    }

/* The product of integers wraps around: it is that of numbers without a sign. */
#define DEFINE(name, type, LEAST, MOST, PRODUCT, IS_NAN)                        \
    FOLD(name##_product, type, 1, PRODUCT)                                      \
    FOLD(name##_maximum, type, LEAST, ((b > a) | IS_NAN(b)) ? b : a)            \
    FOLD(name##_minimum, type, MOST, ((b < a) | IS_NAN(b)) ? b : a)             \
    static void name##_fold(const struct job *job, int64_t first, int64_t last) \
    {                                                                           \
        if (job->op == GN_OP_MULTIPLY)                                          \
            name##_product(job, first, last);                                   \
        else if (job->op == GN_OP_MAXIMUM)                                      \
            name##_maximum(job, first, last);                                   \
        else                                                                    \
            name##_minimum(job, first, last);                                   \
    }

#define NEVER(x) 0
#define IS_NAN(x) ((x) != (x))
#define LEAST_OF(type) ((type)-1 < 1 ? (type)(UINT64_C(1) << (8 * sizeof(type) - 1)) : (type)0)
#define MOST_OF(type) ((type)~LEAST_OF(type))
#define ROW(NAME, name, type, SIGNED) \
    DEFINE(name, type, LEAST_OF(type), MOST_OF(type), (type)((uint64_t)a * (uint64_t)b), NEVER)
GNI_INTEGER_LIST(ROW)
#undef ROW
DEFINE(float32, float, -INFINITY, INFINITY, a *b, IS_NAN)
DEFINE(float64, double, -(double)INFINITY, (double)INFINITY, a *b, IS_NAN)

static void part(void *context, size_t begin, size_t end)
{
    static void (*const folds[GN_DTYPE_COUNT])(const struct job *, int64_t, int64_t) = {
#define ROW(NAME, name, type, SIGNED) [GN_##NAME] = name##_fold,
        GNI_INTEGER_LIST(ROW)
#undef ROW
            [GN_BOOL] = uint8_fold,
        [GN_FLOAT32] = float32_fold, [GN_FLOAT64] = float64_fold};
    const struct job *job = context;
    folds[job->dtype](job, (int64_t)begin, (int64_t)end);
}

void gni_cpu_fold(gn_op op, gn_tensor *rows, gn_tensor *places, gn_tensor *values, bool has_self)
{
    struct job job = {.op = op,
                      .dtype = rows->dtype,
                      .places = (const int64_t *)(const void *)gni_tensor_data(places),
                      .count = places->count,
                      .width = rows->count / rows->sizes[0],
                      .rows = gni_tensor_data(rows),
                      .values = gni_tensor_data(values),
                      .has_self = has_self};
    size_t count = (size_t)rows->sizes[0], parts = (size_t)gni_parallel_get_threads();
    size_t most = 1 + (size_t)values->count / PART_LEAST;
    parts = parts < most ? parts : most;
    gni_parallel_for(count, (count + parts - 1) / parts, part, &job);
}
