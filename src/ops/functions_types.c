/*
 * functions_types.c: types of elements: questions about them, conversions by name, and new tensors like another.
 */
#include "ops/functions.h"
#include "ops/memory_format.h"
#include "ops/promote.h"

#include <string.h>

/* ---- questions --------------------------------------------------------------------------------- */

static gn_status bool_give(bool is_true, gn_results *results)
{
    results->number = (gn_scalar){.kind = GN_BOOL, .integer = is_true};
    return GN_OK;
}

static gn_status int_give(int64_t number, gn_results *results)
{
    results->number = (gn_scalar){.kind = GN_INT64, .integer = number};
    return GN_OK;
}

static gn_status numel_call(const gn_argument *a, gn_results *results)
{
    return int_give(a[0].operand.tensor->count, results);
}

static gn_status get_device_call(const gn_argument *a, gn_results *results)
{
    gn_device *device = a[0].operand.tensor->device;
    bool is_host = device->ops->is_host_memory;
    return int_give(is_host ? -1 : gn_device_get_index(device), results);
}

static gn_status is_floating_point_call(const gn_argument *a, gn_results *results)
{
    return bool_give(gni_dtype_is_floating(a[0].operand.tensor->dtype), results);
}

static gn_status is_signed_call(const gn_argument *a, gn_results *results)
{
    return bool_give(gni_dtypes[a[0].operand.tensor->dtype].is_signed, results);
}

/* Kinds do not go down: floating numbers become no integers, and these no bool. */
static bool can_cast(gn_dtype from, gn_dtype to)
{
    return gni_dtype_kind(from) <= gni_dtype_kind(to);
}

static gn_status can_cast_call(const gn_argument *a, gn_results *results)
{
    return bool_give(can_cast(a[0].dtype, a[1].dtype), results);
}

static gn_status promote_types_call(const gn_argument *a, gn_results *results)
{
    return gni_promote_types(a[0].dtype, a[1].dtype, &results->dtype);
}

static gn_status result_type_call(const gn_argument *a, gn_results *results)
{
    return gn_result_type(2, (const gn_operand[]){a[0].operand, a[1].operand}, &results->dtype);
}

/* ---- conversions ------------------------------------------------------------------------------- */

static gn_status clone_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    return gni_scope_give(&s, gni_to_format(&s, x, &a[1], GN_FORMAT_PRESERVE, true), results);
}

static gn_status copy_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, gni_clone(&s, a[0].operand.tensor), results);
}

static gn_status astype_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *self = a[0].operand.tensor;
    gn_dtype from = self->dtype, to = a[1].dtype;
    const char *casting = a[3].text;
    const struct {
        const char *name;
        bool is_allowed;
    } rules[] = {
        {"unsafe", true},      {"same_kind", can_cast(from, to)},
        {"equiv", from == to}, {"safe", gni_dtype_promote(from, to) == to},
        {"no", from == to},
    };
    size_t count = sizeof rules / sizeof *rules, i = 0;
    while (i < count && strcmp(casting, rules[i].name) != 0)
        i++;
    if (i == count)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "casting is one of unsafe, same_kind, safe, equiv, no, not '%s'", casting);
    else if (!rules[i].is_allowed)
        gni_scope_fail(&s, GN_ERROR_TYPE, "genesis.%s does not become genesis.%s with casting='%s'",
                       gni_dtypes[from].name, gni_dtypes[to].name, casting);
    bool is_copied = a[5].operand.scalar.integer != 0;
    gn_tensor *made = is_copied && from == to ? gni_clone(&s, self) : gni_cast(&s, self, to);
    return gni_scope_give(&s, made, results);
}

static gn_status type_as_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = gni_cast(&s, a[0].operand.tensor, a[1].operand.tensor->dtype);
    return gni_scope_give(&s, made, results);
}

/* ---- new tensors like another ------------------------------------------------------------------ */

/* The shape of a new tensor, which is one of two arguments. */
static const gn_argument *shape_of(struct gni_scope *s, const gn_argument *shape,
                                   const gn_argument *size)
{
    if (shape->is_given && size->is_given)
        gni_scope_fail(s, GN_ERROR_TYPE, "a shape is given once: size is there, too");
    return size->is_given ? size : shape;
}

static gn_dtype dtype_or(const gn_argument *given, const gn_tensor *like)
{
    return given->is_given ? given->dtype : like->dtype;
}

static gn_status new_empty_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_argument *shape = shape_of(&s, &a[1], &a[2]);
    return gni_scope_give(&s,
                          gni_empty(&s, dtype_or(&a[3], a[0].operand.tensor), shape->count,
                                    shape->integers, a[4].device),
                          results);
}

static gn_status new_filled(const gn_argument *a, int64_t number, gn_results *results)
{
    struct gni_scope s = {0};
    const gn_argument *shape = shape_of(&s, &a[1], &a[2]);
    return gni_scope_give(&s,
                          gni_full(&s, gni_integer(number).scalar,
                                   dtype_or(&a[3], a[0].operand.tensor), shape->count,
                                   shape->integers, a[4].device),
                          results);
}

static gn_status new_zeros_call(const gn_argument *a, gn_results *results)
{
    return new_filled(a, 0, results);
}

static gn_status new_ones_call(const gn_argument *a, gn_results *results)
{
    return new_filled(a, 1, results);
}

static gn_status new_full_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made =
        gni_empty(&s, dtype_or(&a[3], a[0].operand.tensor), a[1].count, a[1].integers, a[4].device);
    gni_assign(&s, made, a[2].operand);
    return gni_scope_give(&s, made, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    METHOD_ONLY = GN_FORM_METHOD | GN_FORM_NO_FUNCTION,
};

#define NEW_SHAPE \
    "self: Tensor, *shape: sizes, size: sizes = None, dtype: dtype = None, device: device = None"

const gn_function gni_functions_types[] = {
    {"numel", NULL, "input: Tensor -> int", 0, numel_call, "How many elements there are.",
     ">>> genesis.numel(genesis.zeros(2, 3))\n6"},
    {"is_floating_point", NULL, "input: Tensor -> bool", GN_FORM_METHOD, is_floating_point_call,
     "Whether the elements are floating numbers.",
     ">>> genesis.is_floating_point(genesis.zeros(2))\nTrue"},
    {"is_signed", NULL, "self: Tensor -> bool", METHOD_ONLY, is_signed_call,
     "Whether the elements can be negative.", NULL},
    {"get_device", NULL, "self: Tensor -> int", METHOD_ONLY, get_device_call,
     "The index of its GPU; -1 on the CPU.", NULL},
    {"can_cast", NULL, "from_: dtype, to: dtype -> bool", 0, can_cast_call,
     "Whether an operation in place may store one dtype as another: kinds do not go down.",
     ">>> genesis.can_cast(genesis.float64, genesis.float32)\nTrue"},
    {"promote_types", NULL, "type1: dtype, type2: dtype -> dtype", 0, promote_types_call,
     "The dtype that has the numbers of both.",
     ">>> genesis.promote_types(genesis.uint8, genesis.int8)\ngenesis.int16"},
    {"result_type", NULL, "tensor1: values, tensor2: values -> dtype", 0, result_type_call,
     "The dtype that an operation on two tensors or numbers has.",
     ">>> genesis.result_type(genesis.tensor([1]), 1.5)\ngenesis.float32"},
    {"clone", NULL, "input: Tensor, *, memory_format: text = None", 0, clone_call,
     "A copy, in the order that the elements have in memory.",
     ">>> genesis.clone(genesis.tensor([1, 2]))\ntensor([1, 2])"},
    {"copy", NULL, "self: Tensor, order: text = 'C'", METHOD_ONLY, copy_call,
     "A contiguous copy, as NumPy names it.", ">>> genesis.ones(2).copy()\ntensor([1., 1.])"},
    {"astype", NULL,
     "self: Tensor, dtype: dtype, order: text = 'K', casting: text = 'unsafe', subok: bool = True, "
     "copy: bool = True",
     METHOD_ONLY, astype_call,
     "The elements as another dtype, as NumPy names it: a copy, unless that is not wanted.\n\n"
     "`casting` says what is allowed: ``\"unsafe\"`` all, ``\"same_kind\"`` what can_cast() "
     "allows,\n"
     "``\"safe\"`` what keeps every number, ``\"no\"`` nothing.",
     ">>> genesis.tensor([1.5, 2.5]).astype(\"int64\")\ntensor([1, 2])"},
    {"type_as", NULL, "self: Tensor, other: Tensor", METHOD_ONLY, type_as_call,
     "The elements with the dtype of another tensor.", NULL},
    {"new_empty", NULL, NEW_SHAPE, METHOD_ONLY, new_empty_call,
     "A tensor of the same dtype on the same device, whose elements are not set.", NULL},
    {"new_zeros", NULL, NEW_SHAPE, METHOD_ONLY, new_zeros_call,
     "A tensor of zeros of the same dtype on the same device.", NULL},
    {"new_ones", NULL, NEW_SHAPE, METHOD_ONLY, new_ones_call,
     "A tensor of ones of the same dtype on the same device.", NULL},
    {"new_full", NULL,
     "self: Tensor, size: sizes, fill_value: operand, dtype: dtype = None, device: device = None",
     METHOD_ONLY, new_full_call, "A tensor of one number of the same dtype on the same device.",
     NULL},
    {0},
};
