/*
 * cpu_create.c: memory filled with one number, or with numbers at equal distances, by several threads.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"
#include "ops/cpu/loops.h"

#include <string.h>

enum {
    PART = 1 << 15, /* elements that a thread takes at a time */
    TILE = 1024,    /* elements that are converted at a time */
    /* Bytes that a thread fills at a time. Fewer take less time than waking a second thread does. */
    FILL_BYTES = 1 << 20,
};

/* ---- one number ------------------------------------------------------------------------------- */

struct fill {
    char *data;
    size_t size;      /* of an element */
    uint64_t element; /* in the first bytes */
};

#define FILL(type)                                        \
    do {                                                  \
        type *to = (type *)(void *)fill->data, element;   \
        memcpy(&element, &fill->element, sizeof element); \
        for (size_t i = begin; i < end; i++)              \
            to[i] = element;                              \
    } while (0)

static void part_fill(void *context, size_t begin, size_t end)
{
    const struct fill *fill = context;
    switch (fill->element == 0 ? 1 : fill->size) {
    case 1:
        memset(fill->data + begin * fill->size, (int)(fill->element & 0xff),
               (end - begin) * fill->size);
        break;
    case 2:
        FILL(uint16_t);
        break;
    case 4:
        FILL(uint32_t);
        break;
    default:
        FILL(uint64_t);
        break;
    }
}

gn_status gni_cpu_fill_number(gn_scalar number, gn_tensor *out)
{
    struct fill fill = {.data = gni_tensor_data(out), .size = gni_dtype_size(out->dtype)};
    gni_scalar_store(number, out->dtype, &fill.element);
    gni_parallel_for((size_t)out->count, FILL_BYTES / fill.size, part_fill, &fill);
    return GN_OK;
}

/* ---- numbers at equal distances --------------------------------------------------------------- */

struct range {
    char *data;
    size_t size; /* of an element */
    gn_scalar start, step;
    bool is_floating; /* both are, and so is what is computed: gni_range_computing() */
    gni_loop convert; /* to the element's type; NULL: it is the one that is computed in */
};

static void numbers_write(const struct range *range, size_t first, size_t count, void *out)
{
    if (range->is_floating) {
        double *to = out, start = range->start.floating, step = range->step.floating;
        for (size_t i = 0; i < count; i++)
            to[i] = (double)(int64_t)(first + i) * step + start;
    } else {
        uint64_t *to = out, step = (uint64_t)range->step.integer; /* which wrap */
        uint64_t start = (uint64_t)range->start.integer + first * step;
        for (size_t i = 0; i < count; i++)
            to[i] = start + i * step;
    }
}

static void part_range(void *context, size_t begin, size_t end)
{
    const struct range *range = context;
    uint64_t tile[TILE];
    if (range->convert == NULL) {
        numbers_write(range, begin, end - begin, range->data + begin * range->size);
        return;
    }
    for (size_t at = begin; at < end; at += TILE) {
        size_t count = end - at < TILE ? end - at : TILE;
        const void *in = tile;
        numbers_write(range, at, count, tile);
        range->convert(range->data + at * range->size, &in, count);
    }
}

gn_status gni_cpu_sequence(gn_scalar start, gn_scalar step, gn_tensor *out)
{
    struct range range = {.start = start,
                          .step = step,
                          .is_floating = start.kind == GN_FLOAT64,
                          .data = gni_tensor_data(out),
                          .size = gni_dtype_size(out->dtype)};
    gn_dtype computed = gni_range_computing(start, out->dtype);
    range.convert = out->dtype == computed ? NULL : gni_loop_convert(computed, out->dtype);
    gni_parallel_for((size_t)out->count, PART, part_range, &range);
    return GN_OK;
}
