/*
 * chains.c: see chains.h
 */
#include "ops/cpu/chains.h"

#include "ops/op.h"

/* Where the chain's value is the only operand, or both. */
static bool single_find(enum gni_op op, int place, enum gni_chain_code *code)
{
    bool is_both = place == GNI_CHAIN_BOTH;
    if (op == (is_both ? GNI_OP_MULTIPLY : GNI_OP_SQUARE))
        *code = GNI_CHAIN_SQUARE;
    else if (is_both && op == GNI_OP_ADD)
        *code = GNI_CHAIN_DOUBLE;
    else if (!is_both && op == GNI_OP_NEGATIVE)
        *code = GNI_CHAIN_NEGATIVE;
    else
        return false;
    return true;
}

bool gni_chain_code_find(enum gni_op op, int place, bool is_row, enum gni_chain_code *code)
{
    static const struct {
        enum gni_op op;
        int place;
        enum gni_chain_code full, row;
    } codes[] = {
#define CODE(CODE, expression, op, place) \
    {GNI_OP_##op, place, GNI_CHAIN_##CODE, GNI_CHAIN_##CODE##_ROW},
        GNI_CHAIN_LIST(CODE)
#undef CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].op == op && codes[i].place == place) {
            *code = is_row ? codes[i].row : codes[i].full;
            return true;
        }
    return single_find(op, place, code);
}
