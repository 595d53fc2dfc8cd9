#include "ops/promote.h"

const struct gni_op_info gni_ops[GNI_OP_COUNT] = {
#define OP(NAME, name, arity, domain, ...) {#name, arity, GNI_DOMAIN_##domain},
    GNI_OP_LIST(OP)
#undef OP
};

enum {
    NOTHING = -1,
};

/* GN_DTYPE_COUNT stands for integers without a common type: whichever floating type joins them has them all. */
static enum gni_kind kind_of(int dtype)
{
    return dtype == GN_DTYPE_COUNT ? GNI_KIND_INTEGER : gni_dtype_kind((gn_dtype)dtype);
}

static int promote_known(int a, int b)
{
    if (a == NOTHING || b == NOTHING)
        return a == NOTHING ? b : a;
    if (a == GN_DTYPE_COUNT || b == GN_DTYPE_COUNT)
        return kind_of(a) == GNI_KIND_FLOATING   ? a
               : kind_of(b) == GNI_KIND_FLOATING ? b
                                                 : GN_DTYPE_COUNT;
    return (int)gni_dtype_promote((gn_dtype)a, (gn_dtype)b);
}

/* A lower group joins a higher one. */
static int groups_join(int higher, int lower)
{
    if (higher == NOTHING || lower == NOTHING)
        return promote_known(higher, lower);
    if (kind_of(higher) == GNI_KIND_FLOATING)
        return higher;
    if (higher == GN_BOOL || kind_of(lower) == GNI_KIND_FLOATING)
        return promote_known(higher, lower);
    return higher;
}

#define NO_COMMON_TYPE                                                        \
    "uint64 and %s have no common type: no integer has the numbers of both. " \
    "Convert one of them with to()"

/* Names the two types of which there is no common one: the last that is signed, and uint64. */
static gn_status promotion_refuse(int count, const gn_operand *operands)
{
    const char *other = "int64";
    for (int i = 0; i < count; i++)
        if (operands[i].tensor != NULL && gni_dtypes[operands[i].tensor->dtype].is_signed)
            other = gni_dtypes[operands[i].tensor->dtype].name;
    return gni_error(GN_ERROR_TYPE, NO_COMMON_TYPE, other);
}

gn_status gni_promote_types(gn_dtype a, gn_dtype b, gn_dtype *dtype)
{
    *dtype = gni_dtype_promote(a, b);
    return *dtype != GN_DTYPE_COUNT ? GN_OK
                                    : gni_error(GN_ERROR_TYPE, NO_COMMON_TYPE,
                                                gni_dtypes[gni_dtypes[a].is_signed ? a : b].name);
}

gn_status gni_promote(int count, const gn_operand *operands, gn_dtype *dtype)
{
    int with_dimensions = NOTHING, without = NOTHING, numbers = NOTHING;
    const gn_tensor *a = operands[0].tensor, *b = count == 2 ? operands[1].tensor : a;
    if (count <= 2 && a != NULL &&
        (b == NULL ? gni_dtypes[a->dtype].kind == GNI_KIND_FLOATING : a->dtype == b->dtype)) {
        *dtype = a->dtype; /* what comes below, for what comes nearly always */
        return GN_OK;
    }
    for (int i = 0; i < count; i++) {
        const gn_tensor *tensor = operands[i].tensor;
        if (tensor == NULL) {
            gn_dtype kind = operands[i].scalar.kind;
            numbers =
                promote_known(numbers, (int)(kind == GN_FLOAT64 ? gn_get_default_dtype() : kind));
        } else if (tensor->ndim > 0) {
            with_dimensions = promote_known(with_dimensions, (int)tensor->dtype);
        } else {
            without = promote_known(without, (int)tensor->dtype);
        }
    }
    int joined = groups_join(with_dimensions, groups_join(without, numbers));
    if (joined == GN_DTYPE_COUNT)
        return promotion_refuse(count, operands);
    *dtype = (gn_dtype)joined;
    return GN_OK;
}

static gn_status type_refuse(enum gni_op op, gn_dtype dtype, const char *instead)
{
    return gni_error(GN_ERROR_TYPE, "%s is not defined for %s%s", gni_ops[op].name,
                     gni_dtypes[dtype].name, instead);
}

/* Operations on numbers, with bool: those that make sense have a name of their own. */
static gn_status typing_of_bool(enum gni_op op, struct gni_typing *typing)
{
    switch (op) {
    case GNI_OP_ADD:
        typing->op = GNI_OP_MAXIMUM;
        return GN_OK;
    case GNI_OP_MULTIPLY:
        typing->op = GNI_OP_MINIMUM;
        return GN_OK;
    case GNI_OP_ABSOLUTE:
    case GNI_OP_SIGN:
    case GNI_OP_RELU:
    case GNI_OP_SQUARE:
        typing->is_identity = true;
        return GN_OK;
    case GNI_OP_SUBTRACT:
        return type_refuse(op, GN_BOOL, ": use logical_xor");
    case GNI_OP_NEGATIVE:
        return type_refuse(op, GN_BOOL, ": use logical_not");
    default:
        return type_refuse(op, GN_BOOL, "");
    }
}

static bool is_rounding(enum gni_op op)
{
    return op == GNI_OP_FLOOR || op == GNI_OP_CEIL || op == GNI_OP_ROUND || op == GNI_OP_TRUNC;
}

/* Integers to the power of one negative number: nearly all would be 0. A tensor of exponents is not looked at. */
static bool is_fraction(enum gni_op op, enum gni_kind kind, const gn_operand *operands)
{
    return op == GNI_OP_POWER && kind != GNI_KIND_FLOATING && operands[1].tensor == NULL &&
           operands[1].scalar.kind == GN_INT64 && operands[1].scalar.integer < 0;
}

int gni_power_ops(gn_dtype computing, gn_scalar exponent, enum gni_op *own)
{
    static const struct {
        double exponent;
        int count;
        enum gni_op ops[GNI_POWER_OPS_MOST];
        bool is_of_integers; /* too */
    } known[] = {
        {1, 0, {0}, true},
        {2, 1, {GNI_OP_SQUARE}, true},
        {3, 2, {GNI_OP_SQUARE, GNI_OP_MULTIPLY}, true},
        {0.5, 1, {GNI_OP_SQRT}, false},
        {-0.5, 1, {GNI_OP_RSQRT}, false},
        {-1, 1, {GNI_OP_RECIPROCAL}, false},
        {-2, 2, {GNI_OP_SQUARE, GNI_OP_RECIPROCAL}, false},
    };
    double number = gni_scalar_floating(exponent);
    bool is_floating = gni_dtype_kind(computing) == GNI_KIND_FLOATING;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].exponent != number || !(is_floating || known[i].is_of_integers))
            continue;
        for (int k = 0; k < known[i].count; k++)
            own[k] = known[i].ops[k];
        return known[i].count;
    }
    return -1;
}

bool gni_number_fits(gn_scalar number, gn_dtype dtype)
{
    if ((number.kind != GN_INT64 && number.kind != GN_UINT64) ||
        (uint64_t)number.integer <= INT8_MAX || gni_dtype_kind(dtype) != GNI_KIND_INTEGER)
        return true;
    uint64_t element = 0;
    gni_scalar_store(number, dtype, &element);
    gn_scalar held = gni_scalar_load(dtype, &element);
    return held.integer == number.integer && held.kind == number.kind;
}

gn_status gni_number_check(gn_scalar number, gn_dtype dtype)
{
    if (number.kind != GN_UINT64 || gni_dtype_kind(dtype) != GNI_KIND_INTEGER || dtype == GN_UINT64)
        return GN_OK;
    return gni_error(GN_ERROR_NUMBER, "%llu does not fit %s", (unsigned long long)number.integer,
                     gni_dtypes[dtype].name);
}

static gn_status numbers_check(enum gni_op op, const gn_operand *operands, gn_dtype dtype)
{
    for (int i = 0; i < gni_ops[op].arity; i++)
        if (operands[i].tensor == NULL)
            GN_TRY(gni_number_check(operands[i].scalar, dtype));
    return GN_OK;
}

gn_status gni_typing_find(enum gni_op op, const gn_operand *operands, struct gni_typing *typing)
{
    enum gni_domain domain = gni_ops[op].domain;
    int first = domain == GNI_DOMAIN_SELECT ? 1 : 0;
    gn_dtype dtype;
    GN_TRY(gni_promote(gni_ops[op].arity - first, operands + first, &dtype));
    enum gni_kind kind = gni_dtypes[dtype].kind;
    GN_TRY(numbers_check(op, operands, dtype));
    *typing = (struct gni_typing){.op = op, .computing = gni_dtypes[dtype].compute, .dtype = dtype};
    switch (domain) {
    case GNI_DOMAIN_NUMBER:
        if (is_fraction(op, kind, operands))
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "pow: integers to negative integer powers are not allowed: make one "
                             "of the two floating");
        return kind == GNI_KIND_BOOL ? typing_of_bool(op, typing) : GN_OK;
    case GNI_DOMAIN_ANY:
    case GNI_DOMAIN_TEST:
        typing->dtype = domain == GNI_DOMAIN_TEST ? GN_BOOL : dtype;
        return GN_OK;
    case GNI_DOMAIN_SELECT:
        return GN_OK;
    case GNI_DOMAIN_FLOAT:
        if (op == GNI_OP_NEXTAFTER && gni_dtype_is_half(dtype))
            return type_refuse(op, dtype, ": its neighbours are those of float32");
        if (kind == GNI_KIND_FLOATING)
            return GN_OK;
        typing->is_identity = is_rounding(op);
        if (!typing->is_identity) {
            typing->dtype = gn_get_default_dtype();
            typing->computing = gni_dtypes[typing->dtype].compute;
        }
        return GN_OK;
    case GNI_DOMAIN_LOGIC:
        typing->dtype = GN_BOOL;
        return GN_OK;
    case GNI_DOMAIN_INTEGER:
        return kind == GNI_KIND_FLOATING ? type_refuse(op, dtype, ": it takes integers or bool")
                                         : GN_OK;
    }
    return GN_OK;
}

gn_status gn_result_type(int count, const gn_operand *operands, gn_dtype *dtype)
{
    GN_CHECK_ARGUMENT(count > 0 && operands != NULL && dtype != NULL,
                      "there must be operands, and a place for the type");
    return gni_promote(count, operands, dtype);
}
