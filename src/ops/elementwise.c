/*
 * elementwise.c: elementwise operations as the public interface has them: shapes, types and devices are checked
 * here, the rest is the recorder's.
 */
#include "tensor/tape.h"
#include "ops/recorder.h"

#include "base/host.h"
#include "ops/backend.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/loops.h"
#include "ops/explain.h"
#include "ops/memory_format.h"
#include "ops/move.h"

#include <math.h>
#include <string.h>

enum {
    SMALL_MOST = 256, /* the largest small_most of a backend */
};

/* ---- what goes together ---------------------------------------------------------------------- */

static gn_status shapes_refuse(enum gni_op op, const gn_tensor *a, const gn_tensor *b)
{
    return gni_error(GN_ERROR_SHAPE, "%s: shapes %s and %s cannot be broadcast together",
                     gni_ops[op].name, gni_shape_text(a->ndim, a->sizes).text,
                     gni_shape_text(b->ndim, b->sizes).text);
}

static struct gni_shape shape_of(const gn_tensor *tensor)
{
    struct gni_shape shape = {.ndim = tensor->ndim};
    memcpy(shape.sizes, tensor->sizes, sizeof shape.sizes);
    return shape;
}

/* The shape, number of elements and device of the result. */
static gn_status operands_check(enum gni_op op, int arity, const gn_operand *operands,
                                struct gni_shape *shape, int64_t *count, gn_device **device)
{
    const gn_tensor *first = NULL;
    bool is_broadcast = false;
    for (int i = 0; i < arity; i++) {
        const gn_tensor *tensor = operands[i].tensor;
        if (tensor == NULL)
            continue;
        if (first != NULL && tensor->device != first->device)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "%s: one tensor is on %s and one on %s: move one with to()",
                             gni_ops[op].name, gni_device_label(first->device).text,
                             gni_device_label(tensor->device).text);
        if (first == NULL) {
            shape->ndim = tensor->ndim;
            for (int d = 0; d < tensor->ndim; d++)
                shape->sizes[d] = tensor->sizes[d];
            first = tensor;
        } else if (!gni_shape_is_equal(shape->ndim, shape->sizes, tensor->ndim, tensor->sizes)) {
            struct gni_shape own = shape_of(tensor);
            if (!gni_shape_broadcast(shape, &own, shape))
                return shapes_refuse(op, first, tensor);
            is_broadcast = true;
        }
    }
    if (first == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: there must be a tensor among the operands",
                         gni_ops[op].name);
    *device = first->device;
    *count = first->count;
    return is_broadcast ? gni_shape_check(shape->ndim, shape->sizes, sizeof(int64_t), count)
                        : GN_OK;
}

/* ---- few elements ---------------------------------------------------------------------------- */

/* The first tensor, if all are small, of one shape and device, in memory, and contiguous. */
static const gn_tensor *small_find(int arity, const gn_operand *operands)
{
    const gn_tensor *first = NULL;
    for (int i = 0; i < arity; i++) {
        const gn_tensor *tensor = operands[i].tensor;
        if (tensor == NULL)
            continue;
        if (tensor->count > SMALL_MOST || !tensor->is_contiguous ||
            tensor->count > gni_backend_get(tensor->device)->small_most ||
            gni_tensor_storage(tensor) == NULL ||
            (first != NULL &&
             (tensor->device != first->device ||
              !gni_shape_is_equal(tensor->ndim, tensor->sizes, first->ndim, first->sizes))))
            return NULL;
        first = first == NULL ? tensor : first;
    }
    return first;
}

/* Whether nothing needs to be converted. */
static bool is_plain(const struct gni_typing *typing, int arity, const gn_operand *operands)
{
    if (typing->is_identity || gni_dtype_is_half(typing->dtype))
        return false;
    for (int i = 0; i < arity; i++)
        if (operands[i].tensor != NULL &&
            operands[i].tensor->dtype != gni_typing_operand(typing, i))
            return false;
    return true;
}

/* A power of a number by other operations, as a program has it (program.c); false: by POWER. */
static bool small_power(const struct gni_typing *typing, const gn_operand *operands, const void *in,
                        void *out, size_t count)
{
    enum gni_op ops[GNI_POWER_OPS_MOST];
    if (typing->op != GNI_OP_POWER || operands[1].tensor != NULL || operands[0].tensor == NULL)
        return false;
    int op_count = gni_power_ops(typing->computing, operands[1].scalar, ops);
    if (op_count == 0)
        memcpy(out, in, count * gni_dtype_size(typing->computing));
    for (int i = 0; i < op_count; i++)
        gni_loop_find(ops[i], typing->computing)(out, (const void *[]){i == 0 ? in : out, in},
                                                 count);
    return op_count >= 0;
}

/* Computes at once, without the recorder. */
static gn_status small_run(const struct gni_typing *typing, int arity, const gn_operand *operands,
                           const gn_tensor *first, gn_tensor **result)
{
    uint64_t numbers[3][SMALL_MOST];
    const void *in[3] = {NULL};
    size_t count = (size_t)first->count;
    GN_TRY(gn_tensor_create(typing->dtype, first->ndim, first->sizes, first->device, result));
    for (int i = 0; i < arity; i++) {
        if (operands[i].tensor != NULL) {
            in[i] = gni_tensor_data(operands[i].tensor);
            continue;
        }
        gn_dtype dtype = gni_typing_operand(typing, i);
        size_t size = gni_dtype_size(dtype);
        char *at = (char *)numbers[i];
        gni_scalar_store(operands[i].scalar, dtype, at);
        for (size_t k = 1; k < count; k++)
            memcpy(at + k * size, at, size);
        in[i] = at;
    }
    char *out = gni_tensor_data(*result);
    if (!small_power(typing, operands, in[0], out, count))
        gni_loop_find(typing->op, typing->computing)(out, in, count);
    if (gni_explain_is_on())
        gni_explain_small(typing->op, arity, operands, *result);
    return GN_OK;
}

/* ---- two devices ------------------------------------------------------------------------------ */

static bool is_host_number(const gn_tensor *tensor)
{
    return tensor != NULL && tensor->ndim == 0 && tensor->device->ops->is_host_memory;
}

/* A single number on the host goes with tensors of a GPU: it is moved there. */
static gn_status numbers_move(int arity, gn_operand *operands, gn_tensor **moved)
{
    gn_device *device = NULL;
    for (int i = 0; i < arity && device == NULL; i++)
        if (operands[i].tensor != NULL && !operands[i].tensor->device->ops->is_host_memory)
            device = operands[i].tensor->device;
    for (int i = 0; i < arity && device != NULL; i++) {
        gn_tensor *tensor = operands[i].tensor;
        if (!is_host_number(tensor))
            continue;
        GN_TRY(gn_tensor_to(tensor, device, &moved[i]));
        operands[i].tensor = moved[i];
    }
    return GN_OK;
}

static void moved_release(int arity, gn_tensor **moved)
{
    for (int i = 0; i < arity; i++)
        gn_tensor_release(moved[i]);
}

static bool is_comparison(enum gni_op op)
{
    return op >= GNI_OP_EQUAL && op <= GNI_OP_GREATER_EQUAL;
}

static bool is_extreme(enum gni_op op)
{
    return op == GNI_OP_MAXIMUM || op == GNI_OP_MINIMUM || op == GNI_OP_CLAMP;
}

/*
 * A number that an integer type has not becomes one that computes the same; other numbers stay as they are. Compared, it
 * is infinite, on its side of all elements; else it is the type's largest or least number, whichever is next to it. So no
 * uint8 is below -1, and the larger one of uint8 and -1 is the former, whatever 255 is.
 */
static gn_scalar number_bound(enum gni_op op, gn_scalar number, gn_dtype dtype)
{
    if (gni_number_fits(number, dtype))
        return number;
    bool is_negative = number.kind == GN_INT64 && number.integer < 0;
    bool is_signed = gni_dtypes[dtype].is_signed;
    if (is_comparison(op))
        return (gn_scalar){.kind = GN_FLOAT64, .floating = is_negative ? -INFINITY : INFINITY};
    uint64_t most = UINT64_MAX >> (64 - 8 * gni_dtype_size(dtype) + is_signed);
    return is_negative
               ? (gn_scalar){.kind = GN_INT64, .integer = is_signed ? -(int64_t)most - 1 : 0}
               : gni_scalar_of_unsigned(most);
}

/* Whether a number is compared, or may be the result as it is. */
static bool is_about_values(enum gni_op op)
{
    return is_comparison(op) || is_extreme(op) || op == GNI_OP_WHERE;
}

/* Whether no number has to become another one (number_bound()) beside integers of a type. */
static bool numbers_are_plain(enum gni_op op, int arity, const gn_operand *operands, gn_dtype dtype)
{
    if (!is_about_values(op))
        return true;
    for (int i = 0; i < arity; i++)
        if (operands[i].tensor == NULL && !gni_number_fits(operands[i].scalar, dtype))
            return false;
    return true;
}

/* A number beside halves is taken as one: 0.1 is equal to the half that is next to it, and rounded once. */
static gn_scalar number_fit(enum gni_op op, gn_scalar number, gn_dtype dtype)
{
    uint64_t half = 0;
    if (op != GNI_OP_WHERE)
        number = number_bound(op, number, dtype);
    if (!gni_dtype_is_half(dtype))
        return number;
    gni_scalar_store(number, dtype, &half);
    return gni_scalar_load(dtype, &half);
}

/* A number goes with tensors as their type has it, where the operation is about values. */
static gn_status numbers_fit(enum gni_op op, int arity, gn_operand *operands)
{
    if (!is_about_values(op))
        return GN_OK;
    int first = op == GNI_OP_WHERE ? 1 : 0; /* behind the condition */
    gn_dtype dtype;
    GN_TRY(gni_promote(arity - first, operands + first, &dtype));
    for (int i = first; i < arity; i++)
        if (operands[i].tensor == NULL)
            operands[i].scalar = number_fit(op, operands[i].scalar, dtype);
    return GN_OK;
}

static gn_status elementwise(enum gni_op op, int arity, const gn_operand *operands,
                             gn_tensor **result)
{
    struct gni_shape shape;
    struct gni_typing typing;
    gn_device *device;
    int64_t count;
    GN_TRY(operands_check(op, arity, operands, &shape, &count, &device));
    GN_TRY(gni_typing_find(op, operands, &typing));
    return gni_record(&typing, arity, operands, &shape, count, device, result);
}

static gn_status elementwise_run(gn_op op, const gn_operand *operands, gn_tensor **result)
{
    enum gni_op own = (enum gni_op)op;
    int arity = gni_ops[own].arity;
    struct gni_typing typing;
    const gn_tensor *small = small_find(arity, operands);
    if (small != NULL && numbers_are_plain(own, arity, operands, small->dtype)) {
        GN_TRY(gni_typing_find(own, operands, &typing));
        if (is_plain(&typing, arity, operands))
            return small_run(&typing, arity, operands, small, result);
    }
    bool is_changed = false; /* by what is below */
    for (int i = 0; i < arity; i++)
        is_changed |=
            operands[i].tensor != NULL ? is_host_number(operands[i].tensor) : is_about_values(own);
    if (!is_changed)
        return elementwise(own, arity, operands, result);
    gn_tensor *moved[3] = {NULL};
    gn_operand own_operands[3];
    memcpy(own_operands, operands, sizeof *operands * (size_t)arity);
    GN_TRY(numbers_fit(own, arity, own_operands));
    gn_status status = numbers_move(arity, own_operands, moved);
    if (status == GN_OK)
        status = elementwise(own, arity, own_operands, result);
    moved_release(arity, moved);
    return status;
}

gn_status gn_elementwise(gn_op op, const gn_operand *operands, gn_tensor **result)
{
    GN_CHECK_ARGUMENT((unsigned)op < GN_OP_COUNT && operands != NULL && result != NULL,
                      "op must be one, operands and result not NULL");
    int arity = gni_ops[op].arity;
    bool is_taped = gni_tape_enter_any(arity, operands);
    gn_status status = elementwise_run(op, operands, result);
    if (!is_taped)
        return status;
    struct gni_elementwise_details details = {.op = op};
    for (int i = 0; i < arity; i++)
        details.numbers[i] = operands[i].scalar;
    return gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_ELEMENTWISE,
                                                          .name = gni_ops[op].name,
                                                          .input_count = arity,
                                                          .inputs = operands,
                                                          .result_count = 1,
                                                          .results = result,
                                                          .details = &details,
                                                          .detail_bytes = sizeof details});
}

/* ---- writing into a tensor ------------------------------------------------------------------- */

/* Whether it can be written to at all. */
static gn_status target_check(const char *what, const gn_tensor *out)
{
    if (gn_tensor_is_read_only(out))
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: the tensor is read-only", what);
    if (gni_strides_overlap(out->ndim, out->sizes, out->strides))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "%s: several elements of the tensor (shape %s, strides %s) lie at one "
                         "address, as in an expanded view: write into a clone()",
                         what, gni_shape_text(out->ndim, out->sizes).text,
                         gni_shape_text(out->ndim, out->strides).text);
    return GN_OK;
}

/* Whether a shape broadcasts to that of a tensor. */
static bool shape_fits(const struct gni_shape *shape, const gn_tensor *out)
{
    struct gni_shape joined, own = shape_of(out);
    return gni_shape_broadcast(&own, shape, &joined) && joined.ndim == own.ndim &&
           memcmp(joined.sizes, own.sizes, sizeof *own.sizes * (size_t)own.ndim) == 0;
}

gn_status gni_out_check(const char *what, const gn_tensor *out, const struct gni_shape *shape,
                        gn_dtype dtype)
{
    GN_TRY(target_check(what, out));
    if (!shape_fits(shape, out))
        return gni_error(GN_ERROR_SHAPE, "%s: a result of shape %s does not fit a tensor of %s",
                         what, gni_shape_text(shape->ndim, shape->sizes).text,
                         gni_shape_text(out->ndim, out->sizes).text);
    if (gni_dtype_kind(dtype) > gni_dtype_kind(out->dtype))
        return gni_error(GN_ERROR_TYPE, "%s: a result of %s cannot be stored as %s: cast it first",
                         what, gni_dtypes[dtype].name, gni_dtypes[out->dtype].name);
    return GN_OK;
}

/* The first byte that a tensor reaches, and the first one behind those. */
static void bytes_reached(const gn_tensor *tensor, uintptr_t *begin, uintptr_t *end)
{
    int64_t low, high, size = (int64_t)gni_dtype_size(tensor->dtype);
    gni_strides_extent(tensor->ndim, tensor->sizes, tensor->strides, &low, &high);
    uintptr_t first = (uintptr_t)gni_tensor_data(tensor);
    *begin = first + (uintptr_t)(low * size);
    *end = first + (uintptr_t)((high + 1) * size);
}

/*
 * Whether writing one element may change another one that is still to be read. By addresses: memory of others may
 * be here as several storages. What is pending shares with nobody.
 */
static bool is_in_the_way(const gn_tensor *operand, const gn_tensor *out)
{
    if (operand == NULL || operand->count == 0 || gni_tensor_storage(operand) == NULL)
        return false;
    bool is_same = gni_tensor_data(operand) == gni_tensor_data(out) &&
                   operand->dtype == out->dtype && operand->ndim == out->ndim;
    for (int i = 0; is_same && i < out->ndim; i++)
        is_same = operand->sizes[i] == out->sizes[i] &&
                  (operand->sizes[i] == 1 || operand->strides[i] == out->strides[i]);
    if (is_same)
        return false;
    uintptr_t begin, end, out_begin, out_end;
    bytes_reached(operand, &begin, &end);
    bytes_reached(out, &out_begin, &out_end);
    return begin < out_end && out_begin < end;
}

/* Operands that overlap the output in another way than element by element are copied. A copy that waits is computed
 * before the output is written to: gni_record_into(). */
static gn_status operands_part(int arity, gn_operand *operands, gn_tensor **copies,
                               const gn_tensor *out)
{
    for (int i = 0; i < arity; i++) {
        if (!is_in_the_way(operands[i].tensor, out))
            continue;
        GN_TRY(gn_cast(operands[i].tensor, operands[i].tensor->dtype, &copies[i]));
        operands[i].tensor = copies[i];
    }
    return GN_OK;
}

static gn_status write_into(const struct gni_typing *typing, int arity, const gn_operand *given,
                            gn_tensor *out)
{
    gn_operand operands[3];
    gn_tensor *copies[3] = {NULL};
    memcpy(operands, given, sizeof *operands * (size_t)arity);
    gn_status status = gni_tensor_flush(out);
    if (status == GN_OK)
        status = operands_part(arity, operands, copies, out);
    if (status == GN_OK)
        status = gni_record_into(typing, arity, operands, out);
    for (int i = 0; i < arity; i++)
        gn_tensor_release(copies[i]);
    return status;
}

static gn_status elementwise_into(enum gni_op op, int arity, const gn_operand *operands,
                                  gn_tensor *out)
{
    struct gni_shape shape;
    struct gni_typing typing;
    gn_device *device;
    int64_t count;
    GN_TRY(operands_check(op, arity, operands, &shape, &count, &device));
    if (device != out->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: the output is on another device",
                         gni_ops[op].name);
    GN_TRY(gni_typing_find(op, operands, &typing));
    GN_TRY(gni_out_check(gni_ops[op].name, out, &shape, typing.dtype));
    return write_into(&typing, arity, operands, out);
}

static gn_status elementwise_into_run(gn_op op, const gn_operand *operands, gn_tensor *out)
{
    enum gni_op own = (enum gni_op)op;
    int arity = gni_ops[own].arity;
    gn_tensor *moved[3] = {NULL};
    gn_operand own_operands[3];
    memcpy(own_operands, operands, sizeof *operands * (size_t)arity);
    GN_TRY(numbers_fit(own, arity, own_operands));
    gn_status status = numbers_move(arity, own_operands, moved);
    if (status == GN_OK)
        status = elementwise_into(own, arity, own_operands, out);
    moved_release(arity, moved);
    return status;
}

/* ---- conversion and copies ------------------------------------------------------------------- */

static struct gni_typing typing_of_cast(gn_dtype dtype)
{
    return (struct gni_typing){.is_identity = true,
                               .is_copy = true,
                               .computing = gni_dtypes[dtype].compute,
                               .dtype = dtype};
}

/* Whether a tensor has few elements, on the host, in memory. */
static bool is_few(const gn_tensor *tensor)
{
    return tensor->count > 0 && tensor->count <= gni_backend_get(tensor->device)->copy_most &&
           gni_tensor_storage(tensor) != NULL;
}

/* A copy of few elements, at once. */
static gn_status small_copy(const gn_tensor *tensor, bool is_in_order, gn_tensor **result)
{
    int order[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX];
    GN_TRY(gn_tensor_create(tensor->dtype, tensor->ndim, tensor->sizes, tensor->device, result));
    if (is_in_order) {
        gni_order_preserve(tensor, order, strides);
        gni_tensor_set_layout(*result, tensor->ndim, tensor->sizes, strides);
    }
    gni_copy_strided(gni_tensor_data(*result), (*result)->strides, gni_tensor_data(tensor),
                     tensor->strides, tensor->ndim, tensor->sizes, gni_dtype_size(tensor->dtype));
    return GN_OK;
}

/* Whether few elements take over a number, or elements of their type from other memory: at once. */
static bool is_small_assignment(const gn_tensor *out, const gn_operand *value)
{
    const gn_tensor *from = value->tensor;
    if (!is_few(out))
        return false;
    return from == NULL ||
           (from->dtype == out->dtype && is_few(from) &&
            gni_tensor_data(from) != gni_tensor_data(out) && !is_in_the_way(from, out));
}

static gn_status small_assign(gn_tensor *out, const gn_operand *value)
{
    int64_t strides[GN_DIMENSIONS_MAX] = {0};
    const gn_tensor *from = value->tensor;
    struct gni_storage *storage = gni_tensor_storage(out);
    uint64_t number = 0;
    GN_TRY(gni_recorder_flush_readers(storage));
    if (from != NULL)
        for (int i = out->ndim - from->ndim, k = 0; k < from->ndim; i++, k++)
            strides[i] = from->sizes[k] == 1 ? 0 : from->strides[k];
    else
        gni_scalar_store(value->scalar, out->dtype, &number);
    gni_copy_strided(gni_tensor_data(out), out->strides,
                     from != NULL ? gni_tensor_data(from) : (const char *)&number, strides,
                     out->ndim, out->sizes, gni_dtype_size(out->dtype));
    gni_storage_note_write(storage);
    return GN_OK;
}

static gn_status cast(gn_tensor *tensor, gn_dtype dtype, bool is_in_order, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    if (!gni_dtype_is_valid(dtype))
        return gni_error(GN_ERROR_TYPE, "%d is no dtype", (int)dtype);
    if (tensor->dtype == dtype && is_few(tensor))
        return small_copy(tensor, is_in_order, result);
    struct gni_typing typing = typing_of_cast(dtype);
    typing.is_copy = !is_in_order;
    struct gni_shape shape = shape_of(tensor);
    return gni_record(&typing, 1, &(gn_operand){.tensor = tensor}, &shape, tensor->count,
                      tensor->device, result);
}

static gn_status cast_taped(gn_tensor *tensor, gn_dtype dtype, bool is_in_order, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = cast(tensor, dtype, is_in_order, result);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_CAST, "cast", tensor, result, NULL, 0);
}

gn_status gn_cast(gn_tensor *tensor, gn_dtype dtype, gn_tensor **result)
{
    return cast_taped(tensor, dtype, false, result);
}

gn_status gn_cast_in_order(gn_tensor *tensor, gn_dtype dtype, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    return cast_taped(tensor, dtype, !tensor->is_contiguous, result);
}

/* A value that is one for each row, and waits, is given to all columns by an operation, which will be in its program. A view
 * would compute it. */
gn_status gni_tensor_broadcast(gn_tensor *tensor, int ndim, const int64_t *sizes,
                               gn_tensor **result)
{
    if (!gni_is_pending_row(tensor))
        return gn_tensor_expand(tensor, ndim, sizes, result);
    struct gni_typing typing = typing_of_cast(tensor->dtype);
    struct gni_shape shape = {.ndim = ndim};
    memcpy(shape.sizes, sizes, (size_t)ndim * sizeof *sizes);
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = gni_record(&typing, 1, &(gn_operand){.tensor = tensor}, &shape,
                                  gni_shape_count(ndim, sizes), tensor->device, result);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_EXPAND, "expand", tensor, result, NULL, 0);
}

static gn_status assign(gn_tensor *out, gn_operand value)
{
    GN_CHECK_ARGUMENT(out != NULL, "out must not be NULL");
    struct gni_typing typing = typing_of_cast(out->dtype);
    struct gni_shape shape = {0};
    if (value.tensor != NULL)
        shape = shape_of(value.tensor);
    else
        GN_TRY(gni_number_check(value.scalar, out->dtype));
    GN_TRY(target_check("copy", out));
    if (!shape_fits(&shape, out))
        return gni_error(GN_ERROR_SHAPE, "copy: a value of shape %s cannot be broadcast to %s",
                         gni_shape_text(shape.ndim, shape.sizes).text,
                         gni_shape_text(out->ndim, out->sizes).text);
    if (is_small_assignment(out, &value))
        return small_assign(out, &value);
    if (value.tensor == NULL || value.tensor->device == out->device)
        return write_into(&typing, 1, &value, out);
    gn_tensor *moved;
    GN_TRY(gn_tensor_to(value.tensor, out->device, &moved));
    gn_status status = write_into(&typing, 1, &(gn_operand){.tensor = moved}, out);
    gn_tensor_release(moved);
    return status;
}

/* ---- in place, on the tape ----------------------------------------------------------------------- */

/* A result takes the place of what a tensor was; takes over the reference. One that is new and of the tensor's own kind
 * gives its record; any other gives that of a copy. */
static gn_status result_place(gn_status status, gn_tensor *made, gn_tensor *out, bool is_new)
{
    gn_tensor *moved = NULL, *fitting = NULL, *cast_made = NULL, *written = made;
    GN_TRY(status);
    if (!is_new || made->device != out->device || made->dtype != out->dtype ||
        !gni_shape_is_equal(made->ndim, made->sizes, out->ndim, out->sizes)) {
        status = gn_tensor_to(made, out->device, &moved);
        if (status == GN_OK)
            status = gn_tensor_expand(moved, out->ndim, out->sizes, &fitting);
        if (status == GN_OK)
            status = gn_cast(fitting, out->dtype, &cast_made);
        written = cast_made;
    }
    if (status == GN_OK) {
        gni_tape_is_paused = true;
        status = assign(out, (gn_operand){.tensor = written});
        gni_tape_is_paused = false;
    }
    if (status == GN_OK)
        status = gni_tape.rewrite(out, written);
    gn_tensor_release(cast_made);
    gn_tensor_release(fitting);
    gn_tensor_release(moved);
    gn_tensor_release(made);
    return status;
}

/* What was there has no part in the result, and a gradient of 0. */
static gn_status assign_taped(gn_tensor *out, gn_operand value)
{
    const gn_operand choice[] = {
        {.scalar = {.kind = GN_BOOL, .integer = 0}}, {.tensor = out}, value};
    gn_tensor *made = NULL;
    GN_TRY(gni_tape.write_check("assignment", out));
    if (out->gradient == NULL) {
        gn_tensor_retain(value.tensor);
        return result_place(GN_OK, value.tensor, out, false);
    }
    gn_status status = gn_elementwise(GN_OP_WHERE, choice, &made);
    return result_place(status, made, out, true);
}

gn_status gn_assign(gn_tensor *out, gn_operand value)
{
    return gni_is_taped(out) || gni_is_taped(value.tensor) ? assign_taped(out, value)
                                                           : assign(out, value);
}

static gn_status into_taped(gn_op op, const gn_operand *operands, gn_tensor *out)
{
    gn_operand own[3];
    gn_tensor *kept = NULL, *made = NULL;
    GN_TRY(gni_tape.write_check(gni_ops[op].name, out));
    for (int i = 0; i < gni_ops[op].arity; i++) {
        own[i] = operands[i];
        if (operands[i].tensor == out && kept == NULL)
            GN_TRY(gni_tape.keep(out, &kept)); /* the rule may read what it was */
        if (operands[i].tensor == out)
            own[i].tensor = kept;
    }
    gn_status status = gn_elementwise(op, own, &made);
    gn_tensor_release(kept);
    return result_place(status, made, out, true);
}

gn_status gn_elementwise_into(gn_op op, const gn_operand *operands, gn_tensor *out)
{
    GN_CHECK_ARGUMENT((unsigned)op < GN_OP_COUNT && operands != NULL && out != NULL,
                      "op must be one, operands and out not NULL");
    bool is_taped = gni_is_taped(out);
    for (int i = 0; i < gni_ops[op].arity; i++)
        is_taped |= gni_is_taped(operands[i].tensor);
    return is_taped ? into_taped(op, operands, out) : elementwise_into_run(op, operands, out);
}

gn_status gni_tensor_compact(gn_tensor *tensor, gn_tensor **result)
{
    if (tensor->is_contiguous) {
        gn_tensor_retain(tensor);
        *result = tensor;
        return GN_OK;
    }
    gn_tensor *copy;
    GN_TRY(gn_cast(tensor, tensor->dtype, &copy));
    gn_status status = gni_tensor_flush(copy);
    if (status != GN_OK) {
        gn_tensor_release(copy);
        return status;
    }
    *result = copy;
    return GN_OK;
}

static gn_status warm_up(gn_device *device, bool is_waiting)
{
    GN_CHECK_ARGUMENT(device != NULL, "device is NULL");
    const struct gni_backend *backend = gni_backend_get(device);
    return backend->warm_up != NULL ? backend->warm_up(device, is_waiting) : GN_OK;
}

gn_status gn_warm_up(gn_device *device)
{
    return warm_up(device, true);
}

gn_status gn_warm_up_begin(gn_device *device)
{
    return warm_up(device, false);
}

bool gn_tensor_peek_item(const gn_tensor *tensor, gn_scalar *item)
{
    if (tensor->count != 1 || !gni_device_host_can_access(tensor->device) ||
        gni_tensor_storage(tensor) == NULL)
        return false;
    *item = gni_scalar_load(tensor->dtype, gni_tensor_data(tensor));
    return true;
}

gn_status gn_tensor_get_item(gn_tensor *tensor, const int64_t *index, gn_scalar *item)
{
    GN_CHECK_ARGUMENT(tensor != NULL && item != NULL, "tensor and item must not be NULL");
    int64_t offset = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t at = index[i] < 0 ? index[i] + tensor->sizes[i] : index[i];
        if (at < 0 || at >= tensor->sizes[i])
            return gni_error(GN_ERROR_INDEX, "index %lld is out of range for a dimension of %lld",
                             (long long)index[i], (long long)tensor->sizes[i]);
        offset += at * tensor->strides[i];
    }
    GN_TRY(gni_tensor_flush(tensor));
    uint64_t element;
    GN_TRY(gni_tensor_read(tensor, offset, gni_dtype_size(tensor->dtype), &element));
    *item = gni_scalar_load(tensor->dtype, &element);
    return GN_OK;
}
