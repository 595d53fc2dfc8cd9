/*
 * create.c: tensors of one number, of numbers at equal distances, and of others one behind the other.
 *
 * On the CPU they are written at once, by several threads. Other devices make them of operations that they have.
 */
#include "base/checked.h"
#include "base/host.h"
#include "base/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/loops.h"
#include "ops/promote.h"
#include "ops/op.h"
#include "tensor/tensor.h"

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

gn_status gn_full(gn_scalar value, gn_dtype dtype, int ndim, const int64_t *sizes,
                  gn_device *device, gn_tensor **result)
{
    gn_tensor *made;
    GN_CHECK_ARGUMENT(result != NULL, "result must not be NULL");
    GN_TRY(gn_tensor_create(dtype, ndim, sizes, device, &made));
    gn_status checked = gni_number_check(value, dtype);
    if (checked != GN_OK) {
        gn_tensor_release(made);
        return checked;
    }
    if (gni_device_is_host(made->device)) {
        struct fill fill = {.data = gni_tensor_data(made), .size = gni_dtype_size(dtype)};
        gni_scalar_store(value, dtype, &fill.element);
        gni_parallel_for((size_t)made->count, FILL_BYTES / fill.size, part_fill, &fill);
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
    bool is_floating;  /* both are */
    gn_dtype computed; /* float64 if both are floating, else int64 or uint64 */
    gni_loop convert;  /* to the element's type; NULL: it is the one that is computed in */
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
    status = range_cast(status, range->computed, &made);
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
    range.computed = range.is_floating                               ? GN_FLOAT64
                     : start.kind == GN_UINT64 || dtype == GN_UINT64 ? GN_UINT64
                                                                     : GN_INT64;
    if ((start.kind == GN_FLOAT64) != (step.kind == GN_FLOAT64))
        return gni_error(GN_ERROR_INVALID_VALUE, "start and step must be of one kind");
    if (!gni_device_is_host(device))
        return range_compose(&range, count, dtype, device, result);
    GN_TRY(gn_tensor_create(dtype, 1, &count, device, &made));
    range.data = gni_tensor_data(made);
    range.size = gni_dtype_size(dtype);
    range.convert = dtype == range.computed ? NULL : gni_loop_convert(range.computed, dtype);
    gni_parallel_for((size_t)count, PART, part_range, &range);
    *result = made;
    return GN_OK;
}

/* ---- one behind the other --------------------------------------------------------------------- */

/* Tensors of shape (0,) count as nothing. */
static bool is_nothing(const gn_tensor *tensor)
{
    return tensor->ndim == 1 && tensor->sizes[0] == 0;
}

/* The size of the dimension in which they follow each other; the first that counts, and whether all others fit it. */
static gn_status cat_check(int count, gn_tensor *const *tensors, int dimension,
                           const gn_tensor **first, int64_t *total)
{
    *first = NULL;
    *total = 0;
    for (int i = 0; i < count; i++) {
        const gn_tensor *one = tensors[i];
        if (one->ndim == 0)
            return gni_error(GN_ERROR_SHAPE,
                             "cat: tensors without dimensions cannot be put together: use stack()");
        if (is_nothing(one))
            continue;
        if (*first == NULL) {
            *first = one;
            if (dimension < -one->ndim || dimension >= one->ndim)
                return gni_error(GN_ERROR_INDEX, "cat: dimension %d is out of range for shape %s",
                                 dimension, gni_shape_text(one->ndim, one->sizes).text);
        }
        int at = dimension < 0 ? dimension + (*first)->ndim : dimension;
        bool is_fitting = one->ndim == (*first)->ndim;
        for (int d = 0; is_fitting && d < one->ndim; d++)
            is_fitting = d == at || one->sizes[d] == (*first)->sizes[d];
        if (!is_fitting)
            return gni_error(GN_ERROR_SHAPE,
                             "cat: shapes %s and %s differ in more than dimension %d",
                             gni_shape_text((*first)->ndim, (*first)->sizes).text,
                             gni_shape_text(one->ndim, one->sizes).text, dimension);
        if (one->device != (*first)->device)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "cat: one tensor is on %s and one on %s: move one with to()",
                             gni_device_label((*first)->device).text,
                             gni_device_label(one->device).text);
        if (__builtin_add_overflow(*total, one->sizes[at], total))
            return gni_error(GN_ERROR_SHAPE, "cat: the result has too many elements");
    }
    return GN_OK;
}

static gn_status cat_fill(gn_tensor *made, int count, gn_tensor *const *tensors, int at)
{
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        if (is_nothing(tensors[i]) && made->ndim != 1)
            continue;
        gn_tensor *part;
        int64_t size = tensors[i]->sizes[at];
        GN_TRY(gn_tensor_slice(made, at, begin, 1, size, &part));
        gn_status status = gn_assign(part, (gn_operand){.tensor = tensors[i]});
        gn_tensor_release(part);
        GN_TRY(status);
        begin += size;
    }
    return GN_OK;
}

/* The type of all of them. */
static gn_status cat_dtype(int count, gn_tensor *const *tensors, gn_dtype *dtype)
{
    *dtype = tensors[0]->dtype;
    bool is_one = true;
    for (int i = 1; i < count; i++)
        is_one &= tensors[i]->dtype == *dtype;
    if (is_one)
        return GN_OK;
    size_t nbytes = (size_t)count * sizeof(gn_operand);
    gn_operand *operands = gni_host_alloc(nbytes);
    if (operands == NULL)
        return gni_error_host_memory(nbytes);
    for (int i = 0; i < count; i++)
        operands[i] = (gn_operand){.tensor = tensors[i]};
    gn_status status = gn_result_type(count, operands, dtype);
    gni_host_free(operands);
    return status;
}

gn_status gn_cat(int count, gn_tensor *const *tensors, int dimension, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensors != NULL && result != NULL, "tensors and result must not be NULL");
    if (count < 1)
        return gni_error(GN_ERROR_INVALID_VALUE, "cat: there must be a tensor");
    const gn_tensor *first;
    int64_t total, sizes[GN_DIMENSIONS_MAX];
    gn_dtype dtype;
    gn_tensor *made;
    GN_TRY(cat_check(count, tensors, dimension, &first, &total));
    GN_TRY(cat_dtype(count, tensors, &dtype));
    if (first == NULL) { /* nothing counts: they have one dimension */
        first = tensors[0];
        if (dimension < -1 || dimension > 0)
            return gni_error(GN_ERROR_INDEX, "cat: dimension %d is out of range for shape (0,)",
                             dimension);
    }
    int at = dimension < 0 ? dimension + first->ndim : dimension;
    memcpy(sizes, first->sizes, sizeof sizes);
    sizes[at] = total;
    GN_TRY(gn_tensor_create(dtype, first->ndim, sizes, first->device, &made));
    gn_status status = cat_fill(made, count, tensors, at);
    if (status != GN_OK) {
        gn_tensor_release(made);
        return status;
    }
    *result = made;
    return GN_OK;
}
