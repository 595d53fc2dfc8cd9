/*
 * dtype.c: the table of element types, promotion, conversions of halves, scalars.
 */
#include "tensor/dtype.h"

#include "base/error.h"

#include <stdatomic.h>
#include <string.h>

/* By the kinds of GN_DTYPE_LIST. */
enum {
    KIND_BOOL = GNI_KIND_BOOL,
    KIND_UINT = GNI_KIND_INTEGER,
    KIND_INT = GNI_KIND_INTEGER,
    KIND_FLOAT = GNI_KIND_FLOATING,
    KIND_BFLOAT = GNI_KIND_FLOATING,
    IS_SIGNED_BOOL = false,
    IS_SIGNED_UINT = false,
    IS_SIGNED_INT = true,
    IS_SIGNED_FLOAT = true,
    IS_SIGNED_BFLOAT = true,
};

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
#define ROW(NAME, number, name, kind, bits)                                     \
    [number] = {name, (bits) / 8, (enum gni_kind)KIND_##kind, IS_SIGNED_##kind, \
                (int)KIND_##kind == GNI_KIND_FLOATING && (bits) == 16 ? GN_FLOAT32 : GN_##NAME},
    GN_DTYPE_LIST(ROW)
#undef ROW
};

const char *gn_dtype_name(gn_dtype dtype)
{
    return gni_dtype_is_valid(dtype) ? gni_dtypes[dtype].name : NULL;
}

const char *gn_dtype_advice(const char *name)
{
#define ROW(NAME, number, name, kind, bits) " " name ","
#define THERE "there are" GN_DTYPE_LIST(ROW) " and no others"
    static const struct {
        const char *name, *advice;
    } others[] = {
        {"complex64", THERE "; take its real and imaginary parts, which are float32"},
        {"complex128", THERE "; take its real and imaginary parts, which are float64"},
        {"longdouble", THERE "; convert to float64, the widest"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i].name) == 0)
            return others[i].advice;
    return THERE;
#undef THERE
#undef ROW
}

size_t gn_dtype_size(gn_dtype dtype)
{
    return gni_dtype_is_valid(dtype) ? gni_dtypes[dtype].size : 0;
}

gn_dtype gn_dtype_promote(gn_dtype a, gn_dtype b)
{
    return gni_dtype_promote(a, b);
}

bool gn_dtype_is_floating(gn_dtype dtype)
{
    return gni_dtype_is_valid(dtype) && gni_dtype_kind(dtype) == GNI_KIND_FLOATING;
}

bool gn_dtype_is_unsigned(gn_dtype dtype)
{
    return gni_dtype_is_valid(dtype) && gni_dtype_is_unsigned(dtype);
}

gn_dtype gni_dtype_promote(gn_dtype a, gn_dtype b)
{
    if (gni_dtypes[a].kind < gni_dtypes[b].kind ||
        (gni_dtypes[a].kind == gni_dtypes[b].kind && gni_dtypes[a].size < gni_dtypes[b].size))
        return gni_dtype_promote(b, a);
    const struct gni_dtype_info *larger = &gni_dtypes[a], *other = &gni_dtypes[b];
    if (a == b || larger->kind != other->kind)
        return a;
    if (larger->kind == GNI_KIND_FLOATING)
        return larger->size > other->size ? a : GN_FLOAT32; /* or the two halves */
    if (larger->is_signed == other->is_signed || (larger->is_signed && larger->size > other->size))
        return a;
    /* A signed type and an unsigned one that is as large or larger. */
    return larger->size == 1   ? GN_INT16
           : larger->size == 2 ? GN_INT32
           : larger->size == 4 ? GN_INT64
                               : GN_DTYPE_COUNT;
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

/* The bits of the value as an integer; what does not fit gives the least int64, as the processor's instruction does. */
static uint64_t scalar_integer(gn_scalar value, bool is_unsigned)
{
    if (value.kind != GN_FLOAT64)
        return value.kind == GN_BOOL ? value.integer != 0 : (uint64_t)value.integer;
    if (is_unsigned && value.floating >= 0x1p63 && value.floating < 0x1p64)
        return (uint64_t)value.floating;
    bool fits = value.floating >= -0x1p63 && value.floating < 0x1p63;
    return (uint64_t)(fits ? (int64_t)value.floating : INT64_MIN);
}

double gni_scalar_floating(gn_scalar value)
{
    uint64_t integer = scalar_integer(value, true);
    return value.kind == GN_FLOAT64  ? value.floating
           : value.kind == GN_UINT64 ? (double)integer
                                     : (double)(int64_t)integer;
}

/* Not through double, which would round twice. */
static float scalar_float(gn_scalar value)
{
    uint64_t integer = scalar_integer(value, true);
    return value.kind == GN_FLOAT64  ? (float)value.floating
           : value.kind == GN_UINT64 ? (float)integer
                                     : (float)(int64_t)integer;
}

/* For halves, which round it. */
static float scalar_float_to_odd(gn_scalar value)
{
    uint64_t integer = scalar_integer(value, true);
    return value.kind == GN_FLOAT64  ? gni_float_to_odd(value.floating)
           : value.kind == GN_UINT64 ? gni_float_of_unsigned_to_odd(integer)
                                     : gni_float_of_integer_to_odd((int64_t)integer);
}

static bool scalar_is_true(gn_scalar value)
{
    return value.kind == GN_FLOAT64 ? value.floating != 0 : value.integer != 0;
}

void gni_scalar_store(gn_scalar value, gn_dtype dtype, void *element)
{
    union {
#define ROW(NAME, name, type, same) type name;
        GNI_INTEGER_LIST(ROW)
#undef ROW
        float floating;
        double wide;
    } out;
    gni_assert(gni_dtype_is_valid(dtype));
    switch (dtype) {
#define ROW(NAME, name, type, same)                                 \
    case GN_##NAME:                                                 \
        out.name = (type)scalar_integer(value, dtype == GN_UINT64); \
        break;
        GNI_INTEGER_LIST(ROW)
#undef ROW
    case GN_BOOL:
        out.uint8 = scalar_is_true(value);
        break;
    case GN_FLOAT16:
        out.uint16 = gni_float16_from(scalar_float_to_odd(value));
        break;
    case GN_BFLOAT16:
        out.uint16 = gni_bfloat16_from(scalar_float_to_odd(value));
        break;
    case GN_FLOAT32:
        out.floating = scalar_float(value);
        break;
    case GN_FLOAT64:
    case GN_DTYPE_COUNT:
        out.wide = gni_scalar_floating(value);
        break;
    }
    memcpy(element, &out, gni_dtypes[dtype].size);
}

static gn_scalar scalar_of_floating(double value)
{
    return (gn_scalar){.kind = GN_FLOAT64, .floating = value};
}

gn_scalar gni_scalar_load(gn_dtype dtype, const void *element)
{
    union {
#define ROW(NAME, name, type, same) type name;
        GNI_INTEGER_LIST(ROW)
#undef ROW
        float floating;
        double wide;
    } in;
    gni_assert(gni_dtype_is_valid(dtype));
    memcpy(&in, element, gni_dtypes[dtype].size);
    switch (dtype) {
#define ROW(NAME, name, type, same)                                           \
    case GN_##NAME:                                                           \
        return dtype == GN_UINT64 ? gni_scalar_of_unsigned((uint64_t)in.name) \
                                  : (gn_scalar){.kind = GN_INT64, .integer = (int64_t)in.name};
        GNI_INTEGER_LIST(ROW)
#undef ROW
    case GN_BOOL:
        return (gn_scalar){.kind = GN_BOOL, .integer = in.uint8 != 0};
    case GN_FLOAT16:
        return scalar_of_floating(gni_float16_to(in.uint16));
    case GN_BFLOAT16:
        return scalar_of_floating(gni_bfloat16_to(in.uint16));
    case GN_FLOAT32:
        return scalar_of_floating(in.floating);
    case GN_FLOAT64:
    case GN_DTYPE_COUNT:
        break;
    }
    return scalar_of_floating(in.wide);
}
