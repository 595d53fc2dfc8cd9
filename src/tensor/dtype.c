/*
 * dtype.c: the table of element types, promotion, conversions of halves, scalars.
 */
#include "tensor/dtype.h"

#include "base/error.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic(gn_dtype) default_dtype = GN_FLOAT32;

gn_dtype gn_get_default_dtype(void)
{
    return atomic_load_explicit(&default_dtype, memory_order_relaxed);
}

gn_status gn_set_default_dtype(gn_dtype dtype)
{
    if (!gni_dtype_is_valid(dtype) || !gni_dtype_is_floating(dtype))
        return gni_error(GN_ERROR_TYPE, "the default is a floating type, not %s",
                         gni_dtype_is_valid(dtype) ? gni_dtypes[dtype].name : "none");
    atomic_store_explicit(&default_dtype, dtype, memory_order_relaxed);
    return GN_OK;
}

const struct gni_dtype_info gni_dtypes[GN_DTYPE_COUNT] = {
    [GN_BOOL] = {"bool", 1, GNI_KIND_BOOL, false, GN_BOOL},
    [GN_UINT8] = {"uint8", 1, GNI_KIND_INTEGER, false, GN_UINT8},
    [GN_INT8] = {"int8", 1, GNI_KIND_INTEGER, true, GN_INT8},
    [GN_INT16] = {"int16", 2, GNI_KIND_INTEGER, true, GN_INT16},
    [GN_INT32] = {"int32", 4, GNI_KIND_INTEGER, true, GN_INT32},
    [GN_INT64] = {"int64", 8, GNI_KIND_INTEGER, true, GN_INT64},
    [GN_FLOAT16] = {"float16", 2, GNI_KIND_FLOATING, true, GN_FLOAT32},
    [GN_BFLOAT16] = {"bfloat16", 2, GNI_KIND_FLOATING, true, GN_FLOAT32},
    [GN_FLOAT32] = {"float32", 4, GNI_KIND_FLOATING, true, GN_FLOAT32},
    [GN_FLOAT64] = {"float64", 8, GNI_KIND_FLOATING, true, GN_FLOAT64},
};

const char *gn_dtype_name(gn_dtype dtype)
{
    return gni_dtype_is_valid(dtype) ? gni_dtypes[dtype].name : NULL;
}

const char *gn_dtype_advice(const char *name)
{
#define THERE \
    "there are bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32 and float64"
    static const struct {
        const char *name, *advice;
    } others[] = {
        {"uint16", THERE "; convert to int32, which has all of its numbers"},
        {"uint32", THERE "; convert to int64, which has all of its numbers"},
        {"uint64", THERE "; convert to int64, which has those below 2^63"},
        {"complex64", THERE "; take its real and imaginary parts, which are float32"},
        {"complex128", THERE "; take its real and imaginary parts, which are float64"},
        {"longdouble", THERE "; convert to float64, the widest"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i].name) == 0)
            return others[i].advice;
    return THERE;
#undef THERE
}

size_t gn_dtype_size(gn_dtype dtype)
{
    return gni_dtype_is_valid(dtype) ? gni_dtypes[dtype].size : 0;
}

gn_dtype gn_dtype_promote(gn_dtype a, gn_dtype b)
{
    return gni_dtype_promote(a, b);
}

gn_dtype gni_dtype_promote(gn_dtype a, gn_dtype b)
{
    const struct gni_dtype_info *first = &gni_dtypes[a], *second = &gni_dtypes[b];
    if (a == b)
        return a;
    if (first->kind != second->kind)
        return first->kind > second->kind ? a : b;
    if (first->size != second->size) /* uint8 fits every wider integer */
        return first->size > second->size ? a : b;
    /* Different types of one kind and size: the two halves, or uint8 and int8. */
    return first->kind == GNI_KIND_FLOATING ? GN_FLOAT32 : GN_INT16;
}

/* ---- halves ---------------------------------------------------------------------------------- */

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t gni_float16_from(float value)
{
    uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) /* NaN: quiet, with the upper bits of its payload */
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520: what rounds beyond the largest, 65504 */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude >=
        0x38800000) { /* 2^-14: normal; a carry of the rounding moves into the exponent */
        uint32_t odd = magnitude >> 13 & 1;
        return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + odd) >> 13);
    }
    /* Subnormal: 0.5 has its last bit where a half has 2^-24, so that this addition rounds right. */
    return (uint16_t)(sign | (float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000));
}

uint16_t gni_bfloat16_from(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float gni_float16_to(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fffu;
    if (magnitude > 0x7c00)
        return float_from_bits(sign | 0x7fc00000 | magnitude << 13);
    if (magnitude == 0x7c00)
        return float_from_bits(sign | 0x7f800000);
    if (magnitude >= 0x400)
        return float_from_bits(sign | ((magnitude << 13) + 0x38000000));
    float subnormal = (float)magnitude * 0x1p-24f;
    return float_from_bits(sign | float_bits(subnormal));
}

float gni_bfloat16_to(uint16_t bits)
{
    return float_from_bits((uint32_t)bits << 16);
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* The value as an integer; what does not fit gives the least one, as the processor's instruction does. */
static int64_t scalar_integer(gn_scalar value)
{
    if (value.kind != GN_FLOAT64)
        return value.kind == GN_BOOL ? value.integer != 0 : value.integer;
    bool fits = value.floating >= -0x1p63 && value.floating < 0x1p63;
    return fits ? (int64_t)value.floating : INT64_MIN;
}

static double scalar_floating(gn_scalar value)
{
    return value.kind == GN_FLOAT64 ? value.floating : (double)scalar_integer(value);
}

/* Not through double, which would round twice. */
static float scalar_float(gn_scalar value)
{
    return value.kind == GN_FLOAT64 ? (float)value.floating : (float)scalar_integer(value);
}

/* For halves, which round it. */
static float scalar_float_to_odd(gn_scalar value)
{
    return value.kind == GN_FLOAT64 ? gni_float_to_odd(value.floating)
                                    : gni_float_of_integer_to_odd(scalar_integer(value));
}

static bool scalar_is_true(gn_scalar value)
{
    return value.kind == GN_FLOAT64 ? value.floating != 0 : value.integer != 0;
}

void gni_scalar_store(gn_scalar value, gn_dtype dtype, void *element)
{
    union {
        uint8_t byte;
        uint16_t half;
        uint16_t two;
        uint32_t four;
        uint64_t eight;
        float floating;
        double wide;
    } out;
    gni_assert(gni_dtype_is_valid(dtype));
    switch (dtype) {
    case GN_BOOL:
        out.byte = scalar_is_true(value);
        break;
    case GN_UINT8:
    case GN_INT8:
        out.byte = (uint8_t)scalar_integer(value);
        break;
    case GN_INT16:
        out.two = (uint16_t)scalar_integer(value);
        break;
    case GN_INT32:
        out.four = (uint32_t)scalar_integer(value);
        break;
    case GN_INT64:
        out.eight = (uint64_t)scalar_integer(value);
        break;
    case GN_FLOAT16:
        out.half = gni_float16_from(scalar_float_to_odd(value));
        break;
    case GN_BFLOAT16:
        out.half = gni_bfloat16_from(scalar_float_to_odd(value));
        break;
    case GN_FLOAT32:
        out.floating = scalar_float(value);
        break;
    case GN_FLOAT64:
    case GN_DTYPE_COUNT:
        out.wide = scalar_floating(value);
        break;
    }
    memcpy(element, &out, gni_dtype_size(dtype));
}

static gn_scalar scalar_of_integer(int64_t value)
{
    return (gn_scalar){.kind = GN_INT64, .integer = value};
}

static gn_scalar scalar_of_floating(double value)
{
    return (gn_scalar){.kind = GN_FLOAT64, .floating = value};
}

gn_scalar gni_scalar_load(gn_dtype dtype, const void *element)
{
    union {
        uint8_t byte;
        int8_t one;
        int16_t two;
        int32_t four;
        int64_t eight;
        uint16_t half;
        float floating;
        double wide;
    } in;
    gni_assert(gni_dtype_is_valid(dtype));
    memcpy(&in, element, gni_dtype_size(dtype));
    switch (dtype) {
    case GN_BOOL:
        return (gn_scalar){.kind = GN_BOOL, .integer = in.byte != 0};
    case GN_UINT8:
        return scalar_of_integer(in.byte);
    case GN_INT8:
        return scalar_of_integer(in.one);
    case GN_INT16:
        return scalar_of_integer(in.two);
    case GN_INT32:
        return scalar_of_integer(in.four);
    case GN_INT64:
        return scalar_of_integer(in.eight);
    case GN_FLOAT16:
        return scalar_of_floating(gni_float16_to(in.half));
    case GN_BFLOAT16:
        return scalar_of_floating(gni_bfloat16_to(in.half));
    case GN_FLOAT32:
        return scalar_of_floating(in.floating);
    case GN_FLOAT64:
    case GN_DTYPE_COUNT:
        break;
    }
    return scalar_of_floating(in.wide);
}
