#include "ops/cpu/index_kernels.h"

#include <string.h>

enum {
    AHEAD = 32, /* places whose lines are asked for before they are written */
    ROWS_AHEAD = 8,
};

/* Who writes waits for one line after the other, unless they are on their way. The offset may be any number. */
#define PREFETCH(source, offset) \
    __builtin_prefetch((const void *)((uintptr_t)(source) + (uintptr_t)(offset)), 1)
#define AHEAD_OF(i) ((i) + AHEAD < count ? (i) + AHEAD : count - 1)

/*
 * A kernel: `work` does something with the addresses `sparse` and `dense`; `is_store` if it writes at `sparse`. What a
 * kernel reads of its tile it reads once: what it writes may be anywhere, for all the compiler knows.
 */
#define DEFINE_KERNEL(name, is_store, work) DEFINE_KERNEL_ROWS(name, is_store, work, )

/* `rows` returns from the kernel where it works on whole rows of inner elements. */
#define DEFINE_KERNEL_ROWS(name, is_store, work, rows)                                     \
    static bool name(const struct gni_index_tile *tile)                                    \
    {                                                                                      \
        char *const source = tile->source, *const other = tile->other;                     \
        const size_t count = tile->count, inner = tile->inner;                             \
        const int64_t step = tile->step, *const offsets = tile->offsets;                   \
        if (offsets == NULL) {                                                             \
            const int64_t *const numbers = tile->numbers;                                  \
            const int64_t wrap = tile->wrap, stride = tile->stride;                        \
            const uint64_t size = (uint64_t)tile->size;                                    \
            bool is_outside = false;                                                       \
            for (size_t i = 0; i < count; i++) {                                           \
                if (is_store)                                                              \
                    PREFETCH(source, (uintptr_t)numbers[AHEAD_OF(i)] * (uintptr_t)stride); \
                int64_t at = numbers[i];                                                   \
                at += at < 0 ? wrap : 0;                                                   \
                if ((uint64_t)at >= size) {                                                \
                    is_outside = true;                                                     \
                    continue;                                                              \
                }                                                                          \
                char *sparse = source + at * stride;                                       \
                char *dense = other + (int64_t)i * step;                                   \
                work;                                                                      \
            }                                                                              \
            return !is_outside;                                                            \
        }                                                                                  \
        if (inner == 1) {                                                                  \
            for (size_t i = 0; i < count; i++) {                                           \
                if (is_store)                                                              \
                    PREFETCH(source, offsets[AHEAD_OF(i)]);                                \
                char *sparse = source + offsets[i];                                        \
                char *dense = other + (int64_t)i * step;                                   \
                work;                                                                      \
            }                                                                              \
            return true;                                                                   \
        }                                                                                  \
        const int64_t inner_stride = tile->inner_stride, inner_step = tile->inner_step;    \
        rows;                                                                              \
        for (size_t i = 0; i < count; i++)                                                 \
            for (size_t j = 0; j < inner; j++) {                                           \
                char *sparse = source + offsets[i] + (int64_t)j * inner_stride;            \
                char *dense = other + (int64_t)i * step + (int64_t)j * inner_step;         \
                work;                                                                      \
            }                                                                              \
        return true;                                                                       \
    }

#define DEFINE_COPIES(width)                                        \
    DEFINE_KERNEL(get_##width, false, memcpy(dense, sparse, width)) \
    DEFINE_KERNEL(set_##width, true, memcpy(sparse, dense, width))
DEFINE_COPIES(1)
DEFINE_COPIES(2)
DEFINE_COPIES(4)
DEFINE_COPIES(8)
DEFINE_COPIES(16)
DEFINE_KERNEL(get_bytes, false, memcpy(dense, sparse, tile->width))
DEFINE_KERNEL(set_bytes, true, memcpy(sparse, dense, tile->width))

gni_index_kernel gni_index_kernel_get(size_t width)
{
    switch (width) {
    case 1:
        return get_1;
    case 2:
        return get_2;
    case 4:
        return get_4;
    case 8:
        return get_8;
    case 16:
        return get_16;
    default:
        return get_bytes;
    }
}

gni_index_kernel gni_index_kernel_set(size_t width)
{
    switch (width) {
    case 1:
        return set_1;
    case 2:
        return set_2;
    case 4:
        return set_4;
    case 8:
        return set_8;
    case 16:
        return set_16;
    default:
        return set_bytes;
    }
}

/* ---- sums -------------------------------------------------------------------------------------- */

#define TO(type) (*(type *)(void *)sparse)
#define FROM(type) (*(const type *)(const void *)dense)

/* Rows whose elements lie together on both sides, which do not overlap: values are not in the tensor that they are added
 * to. The compiler makes vector instructions of the inner loop. */
#define ADD_ROWS(type, sum)                                                                      \
    if (inner_stride == (int64_t)sizeof(type) && inner_step == (int64_t)sizeof(type)) {          \
        for (size_t i = 0; i < count; i++) {                                                     \
            type *restrict to = (type *)(void *)(source + offsets[i]);                           \
            const type *restrict from = (const type *)(const void *)(other + (int64_t)i * step); \
            PREFETCH(source, offsets[i + ROWS_AHEAD < count ? i + ROWS_AHEAD : count - 1]);      \
            for (size_t j = 0; j < inner; j++) {                                                 \
                char *sparse = (char *)(to + j);                                                 \
                const char *dense = (const char *)(from + j);                                    \
                TO(type) = (type)(sum);                                                          \
            }                                                                                    \
        }                                                                                        \
        return true;                                                                             \
    }
#define DEFINE_ADD(name, type, sum) \
    DEFINE_KERNEL_ROWS(add_##name, true, TO(type) = (type)(sum), ADD_ROWS(type, sum))

DEFINE_ADD(bool, uint8_t, TO(uint8_t) != 0 || FROM(uint8_t) != 0)
DEFINE_ADD(INT8, uint8_t, TO(uint8_t) + FROM(uint8_t))
DEFINE_ADD(INT16, uint16_t, TO(uint16_t) + FROM(uint16_t))
DEFINE_ADD(INT32, uint32_t, TO(uint32_t) + FROM(uint32_t))
DEFINE_ADD(INT64, uint64_t, TO(uint64_t) + FROM(uint64_t))
DEFINE_ADD(float16, uint16_t,
           gni_float16_from(gni_float16_to(TO(uint16_t)) + gni_float16_to(FROM(uint16_t))))
DEFINE_ADD(bfloat16, uint16_t,
           gni_bfloat16_from(gni_bfloat16_to(TO(uint16_t)) + gni_bfloat16_to(FROM(uint16_t))))
DEFINE_ADD(float32, float, TO(float) + FROM(float))
DEFINE_ADD(float64, double, TO(double) + FROM(double))

gni_index_kernel gni_index_kernel_add(gn_dtype dtype)
{
    static const gni_index_kernel adds[GN_DTYPE_COUNT] = {
#define ROW(NAME, name, type, SIGNED) [GN_##NAME] = add_##SIGNED,
        GNI_INTEGER_LIST(ROW)
#undef ROW
            [GN_BOOL] = add_bool,
        [GN_FLOAT16] = add_float16,
        [GN_BFLOAT16] = add_bfloat16,
        [GN_FLOAT32] = add_float32,
        [GN_FLOAT64] = add_float64,
    };
    return adds[dtype];
}

/* ---- offsets ----------------------------------------------------------------------------------- */

static bool offsets_store(const struct gni_index_tile *tile)
{
    for (size_t i = 0; i < tile->count; i++)
        for (size_t j = 0; j < tile->inner; j++) {
            int64_t number = (int64_t)(uintptr_t)tile->source + tile->offsets[i] +
                             (int64_t)j * tile->inner_stride;
            memcpy(tile->other + (int64_t)i * tile->step + (int64_t)j * tile->inner_step, &number,
                   sizeof number);
        }
    return true;
}

gni_index_kernel gni_index_kernel_offsets(void)
{
    return offsets_store;
}
