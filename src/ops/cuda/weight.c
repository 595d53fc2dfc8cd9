#include "ops/cuda/weight.h"

enum {
    ELEMENT_MOST =
        96, /* instructions for an element, up to which all elements of a pack stand side by side */
    BODY_MOST = 192, /* otherwise: of those that do */
    LIGHT = 2,
    MEDIUM = 16,
    USUAL = 36,
    LARGE = 80,
    LARGEST = 280,
    DOUBLE_FACTOR = 3, /* a function of float64 takes so many times what one of float32 does */
};

/* Of an operation on float32, read from the machine code for sm_90; what is called counts as its call. */
int gni_op_weight(enum gni_op op)
{
    switch (op) {
    case GNI_OP_EXP:
    case GNI_OP_EXP2:
    case GNI_OP_DIVIDE:
    case GNI_OP_RECIPROCAL:
    case GNI_OP_SQRT:
    case GNI_OP_TANH:
    case GNI_OP_ATAN:
    case GNI_OP_COSH:
    case GNI_OP_LERP:
    case GNI_OP_FMOD:
    case GNI_OP_REMAINDER:
    case GNI_OP_FLOOR_DIVIDE:
    case GNI_OP_LDEXP:
    case GNI_OP_LGAMMA:
    case GNI_OP_DIGAMMA:
    case GNI_OP_POLYGAMMA:
    case GNI_OP_CELU:
        return MEDIUM;
    case GNI_OP_ACOS:
    case GNI_OP_ASIN:
    case GNI_OP_ACOSH:
    case GNI_OP_ASINH:
    case GNI_OP_ATANH:
    case GNI_OP_SINH:
    case GNI_OP_SIN:
    case GNI_OP_COS:
    case GNI_OP_TAN:
    case GNI_OP_SINC:
    case GNI_OP_ERF:
    case GNI_OP_ERFC:
    case GNI_OP_ERFINV:
    case GNI_OP_EXPM1:
    case GNI_OP_LOG:
    case GNI_OP_LOG1P:
    case GNI_OP_LOG2:
    case GNI_OP_LOG10:
    case GNI_OP_RSQRT:
    case GNI_OP_SIGMOID:
    case GNI_OP_SILU:
    case GNI_OP_GELU:
    case GNI_OP_GELU_TANH:
    case GNI_OP_MISH:
    case GNI_OP_ELU:
    case GNI_OP_SELU:
    case GNI_OP_LOG_SIGMOID:
    case GNI_OP_HARDSWISH:
    case GNI_OP_NEXTAFTER:
    case GNI_OP_HYPOT:
        return USUAL;
    case GNI_OP_ATAN2:
    case GNI_OP_POWER:
    case GNI_OP_SOFTPLUS:
    case GNI_OP_XLOGY:
    case GNI_OP_LOGADDEXP:
    case GNI_OP_LOGADDEXP2:
    case GNI_OP_GCD:
        return LARGE;
    case GNI_OP_LCM:
    case GNI_OP_LOGIT:
        return LARGEST;
    default:
        return LIGHT;
    }
}

bool gni_op_is_exact(enum gni_op op)
{
    switch (op) {
    case GNI_OP_DIVIDE:
    case GNI_OP_RECIPROCAL:
    case GNI_OP_SQRT:
    case GNI_OP_GCD:
    case GNI_OP_LCM:
        return true;
    default:
        return gni_op_weight(op) == LIGHT; /* an instruction or two */
    }
}

int gni_program_weight(const struct gni_program *program)
{
    int weight = 0;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        int one = step->kind == GNI_STEP_OP ? gni_op_weight(step->op) : LIGHT;
        weight += one > LIGHT && step->from == GN_FLOAT64 ? one * DOUBLE_FACTOR : one;
    }
    return weight;
}

bool gni_weight_is_light(int weight)
{
    return weight <= LIGHT;
}

bool gni_weight_is_usual(int weight)
{
    return weight >= USUAL;
}

bool gni_weight_is_large(int weight)
{
    return weight > ELEMENT_MOST;
}

int gni_weight_together(int weight, int count)
{
    while (count > 1 && gni_weight_is_large(weight) && weight * count > BODY_MOST)
        count /= 2;
    return count;
}

int gni_weight_packs(int weight, int pack, int count, int most)
{
    while (count > 1 && weight * pack * count > most)
        count /= 2;
    return count;
}
