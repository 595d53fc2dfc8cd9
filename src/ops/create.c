/*
 * create.c: tensors of one number, and of numbers at equal distances.
 *
 * On the CPU they are written at once, by several threads. Other devices make them of operations that they have.
 */
#include "base/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/loops.h"
#include "ops/op.h"
#include "tensor/tensor.h"

#include <string.h>

enum {
    PART = 1 << 15, /* elements that a thread takes at a time */
    TILE = 1024,    /* elements that are converted at a time */
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

gn_status gn_full(gn_scalar value, gn_dtype dtype, int ndim, const int64_t *sizes,
                  gn_device *device, gn_tensor **result)
{
    gn_tensor *made;
    GN_CHECK_ARGUMENT(result != NULL, "result must not be NULL");
    GN_TRY(gn_tensor_create(dtype, ndim, sizes, device, &made));
    if (gni_device_is_host(made->device)) {
        struct fill fill = {.data = gni_tensor_data(made), .size = gni_dtype_size(dtype)};
        gni_scalar_store(value, dtype, &fill.element);
        gni_parallel_for((size_t)made->count, PART, part_fill, &fill);
    } else {
        gn_status status = gn_assign(made, (gn_operand){.scalar = value});
        if (status != GN_OK) {
            gn_tensor_release(made);
            return status;
        }
    }
    *result = made;
    return GN_OK;
}

/* ---- numbers at equal distances --------------------------------------------------------------- */

struct range {
    char *data;
    size_t size; /* of an element */
    gn_scalar start, step;
    bool is_floating; /* both are, and so is what is computed: else int64 */
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

/* Releases the operand, and puts the result in its place. */
static gn_status range_step(gn_status status, gn_op op, gn_scalar number, gn_tensor **tensor)
{
    gn_tensor *before = *tensor;
    if (status != GN_OK)
        return status;
    status = gn_elementwise(op, (gn_operand[]){{.tensor = before}, {.scalar = number}}, tensor);
    if (status == GN_OK)
        gn_tensor_release(before);
    return status;
}

static gn_status range_cast(gn_status status, gn_dtype dtype, gn_tensor **tensor)
{
    gn_tensor *before = *tensor;
    if (status != GN_OK)
        return status;
    status = gn_cast(before, dtype, tensor);
    if (status == GN_OK)
        gn_tensor_release(before);
    return status;
}

/* By operations: ones are added up. */
static gn_status range_compose(const struct range *range, int64_t count, gn_dtype dtype,
                               gn_device *device, gn_tensor **result)
{
    gn_scalar one = {.kind = GN_INT64, .integer = 1};
    gn_tensor *ones, *made = NULL;
    GN_TRY(gn_full(one, GN_INT64, 1, &count, device, &ones));
    gn_status status = gn_cumulate(ones, 0, false, &made);
    gn_tensor_release(ones);
    status = range_step(status, GN_OP_SUBTRACT, one, &made);
    status = range_cast(status, range->is_floating ? GN_FLOAT64 : GN_INT64, &made);
    status = range_step(status, GN_OP_MULTIPLY, range->step, &made);
    status = range_step(status, GN_OP_ADD, range->start, &made);
    status = range_cast(status, dtype, &made);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

gn_status gn_range(gn_scalar start, gn_scalar step, int64_t count, gn_dtype dtype,
                   gn_device *device, gn_tensor **result)
{
    gn_tensor *made;
    GN_CHECK_ARGUMENT(result != NULL && count >= 0 && device != NULL,
                      "result and device must not be NULL, count not negative");
    struct range range = {.start = start,
                          .step = step,
                          .is_floating = start.kind == GN_FLOAT64 && step.kind == GN_FLOAT64};
    if ((start.kind == GN_FLOAT64) != (step.kind == GN_FLOAT64))
        return gni_error(GN_ERROR_INVALID_VALUE, "start and step must be of one kind");
    if (!gni_device_is_host(device))
        return range_compose(&range, count, dtype, device, result);
    GN_TRY(gn_tensor_create(dtype, 1, &count, device, &made));
    gn_dtype computed = range.is_floating ? GN_FLOAT64 : GN_INT64;
    range.data = gni_tensor_data(made);
    range.size = gni_dtype_size(dtype);
    range.convert = dtype == computed ? NULL : gni_loop_convert(computed, dtype);
    gni_parallel_for((size_t)count, PART, part_range, &range);
    *result = made;
    return GN_OK;
}
