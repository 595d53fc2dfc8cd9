/*
 * copy.c: elements copied on the CPU, from and to memory with any strides.
 */
#include "ops/cpu/cpu_ops.h"

#include "ops/cpu/loops.h"

#include <string.h>

enum {
    SHORT_ROW = 16, /* elements that take longer to get to than to copy */
};

/* Dimensions of 1 are left out, and those that go on as if they were one are joined. The last one is not short where the
 * one before it is longer: the two are exchanged. */
struct copy {
    int ndim;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t to[GN_DIMENSIONS_MAX], from[GN_DIMENSIONS_MAX]; /* strides, in elements */
    size_t size;                                            /* of an element */
};

static void copy_join(struct copy *copy, const int64_t *to_strides, const int64_t *from_strides,
                      int ndim, const int64_t *sizes)
{
    copy->ndim = 0;
    for (int d = 0; d < ndim; d++) {
        int last = copy->ndim - 1;
        if (sizes[d] == 1)
            continue;
        if (last >= 0 && copy->to[last] == to_strides[d] * sizes[d] &&
            copy->from[last] == from_strides[d] * sizes[d]) {
            copy->sizes[last] *= sizes[d];
        } else {
            last = copy->ndim++;
            copy->sizes[last] = sizes[d];
        }
        copy->to[last] = to_strides[d];
        copy->from[last] = from_strides[d];
    }
    int last = copy->ndim - 1;
    if (last < 1 || copy->sizes[last] >= SHORT_ROW || copy->sizes[last - 1] <= copy->sizes[last])
        return;
    int64_t *numbers[] = {copy->sizes, copy->to, copy->from};
    for (int i = 0; i < 3; i++) {
        int64_t number = numbers[i][last];
        numbers[i][last] = numbers[i][last - 1];
        numbers[i][last - 1] = number;
    }
}

#define COPY_ROW(type)                                         \
    do {                                                       \
        const type *source = (const type *)(const void *)from; \
        type *target = (type *)(void *)to;                     \
        for (int64_t i = 0; i < count; i++)                    \
            target[i * to_stride] = source[i * from_stride];   \
    } while (0)

static void row_copy(char *restrict to, int64_t to_stride, const char *restrict from,
                     int64_t from_stride, int64_t count, size_t size)
{
    if (to_stride == 1) {
        if (from_stride == 1)
            memcpy(to, from, (size_t)count * size);
        else
            gni_gather_find(size)(to, from, from_stride, (size_t)count);
        return;
    }
    switch (size) {
    case 1:
        COPY_ROW(uint8_t);
        break;
    case 2:
        COPY_ROW(uint16_t);
        break;
    case 4:
        COPY_ROW(uint32_t);
        break;
    default:
        COPY_ROW(uint64_t);
        break;
    }
}

/* The dimensions from `d` on. */
static void dimensions_copy(const struct copy *copy, int d, char *to, const char *from)
{
    int64_t to_step = copy->to[d] * (int64_t)copy->size;
    int64_t from_step = copy->from[d] * (int64_t)copy->size;
    if (d == copy->ndim - 1) {
        row_copy(to, copy->to[d], from, copy->from[d], copy->sizes[d], copy->size);
        return;
    }
    for (int64_t i = 0; i < copy->sizes[d]; i++)
        dimensions_copy(copy, d + 1, to + i * to_step, from + i * from_step);
}

void gni_copy_strided(char *to, const int64_t *to_strides, const char *from,
                      const int64_t *from_strides, int ndim, const int64_t *sizes, size_t size)
{
    struct copy copy = {.size = size};
    copy_join(&copy, to_strides, from_strides, ndim, sizes);
    if (copy.ndim > 0)
        dimensions_copy(&copy, 0, to, from);
    else
        memcpy(to, from, size);
}
