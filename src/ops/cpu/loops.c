/*
 * loops.c: which instruction set's loops are used.
 *
 * The choice is one pointer, set at the first call; threads that race there all store the same. Nothing in
 * this file needs the instructions that it looks for.
 */
#include "ops/cpu/loops.h"

#include "base/error.h"
#include "ops/cpu/loops_set.h"

#include <stdatomic.h>
#include <string.h>

#ifdef GNI_LOOPS_X86
#include <cpuid.h>

static bool has_float16(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_float16();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool has_always(void)
{
    return true;
}

/* From the best to the one that every processor has. */
static const struct {
    const struct gni_loops_set *set;
    bool (*is_supported)(void);
} sets[] = {
#ifdef GNI_LOOPS_X86
    {&gni_loops_avx512, has_avx512},
    {&gni_loops_avx2, has_avx2},
#endif
    {&gni_loops_basic, has_always},
};

static _Atomic(const struct gni_loops_set *) current;

bool gni_loops_use(const char *name)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (name && strcmp(name, sets[i].set->name) != 0)
            continue;
        if (!sets[i].is_supported())
            continue;
        atomic_store_explicit(&current, sets[i].set, memory_order_relaxed);
        return true;
    }
    return false;
}

static const struct gni_loops_set *loops_get(void)
{
    const struct gni_loops_set *set = atomic_load_explicit(&current, memory_order_relaxed);
    if (set)
        return set;
    gni_loops_use(NULL);
    return atomic_load_explicit(&current, memory_order_relaxed);
}

const char *gni_loops_name(void)
{
    return loops_get()->name;
}

gni_loop gni_loop_find(enum gni_op op, gn_dtype computing)
{
    gni_assert((unsigned)op < GNI_OP_COUNT && gni_dtype_is_valid(computing));
    return loops_get()->ops[op][computing];
}

/* The signed integer of a width. */
static gn_dtype signed_of(gn_dtype dtype)
{
    static const gn_dtype same[GN_DTYPE_COUNT] = {
#define ROW(NAME, name, type, SIGNED) [GN_##NAME] = GN_##SIGNED,
        GNI_INTEGER_LIST(ROW)
#undef ROW
    };
    return same[dtype];
}

gni_loop gni_loop_convert(gn_dtype from, gn_dtype to)
{
    gni_assert(gni_dtype_is_valid(from) && gni_dtype_is_valid(to));
    bool is_to_float = gni_dtypes[to].kind == GNI_KIND_FLOATING;
    bool is_from_float = gni_dtypes[from].kind == GNI_KIND_FLOATING;
    if (gni_dtype_is_unsigned(to) && !is_from_float)
        to = signed_of(to); /* the same bits */
    if (gni_dtype_is_unsigned(from) && !is_to_float && gni_dtype_size(to) <= gni_dtype_size(from))
        from = signed_of(from); /* nothing is extended */
    return loops_get()->converts[from][to];
}

gni_loop gni_loop_round(gn_dtype half)
{
    gni_assert(gni_dtype_is_half(half));
    return loops_get()->rounds[half];
}

gni_gather gni_gather_find(size_t size)
{
    gni_assert(size == 1 || size == 2 || size == 4 || size == 8);
    return loops_get()->gathers[__builtin_ctzll(size)];
}

struct gni_reducers gni_reducers_find(enum gni_reduction reduction, gn_dtype dtype)
{
    gni_assert((unsigned)reduction < GNI_REDUCTION_COUNT && gni_dtype_is_valid(dtype));
    return loops_get()->reducers[reduction][dtype];
}

struct gni_reducers gni_reducers_find_squares(gn_dtype dtype)
{
    gni_assert(dtype == GN_FLOAT32 || dtype == GN_FLOAT64);
    return loops_get()->squares[dtype];
}

gni_product_reducer gni_product_reducer_find(void)
{
    return loops_get()->product_reducer;
}

gni_row_loop gni_row_loop_find(enum gni_op op, gn_dtype computing, int place)
{
    int number = op == GNI_OP_ADD        ? GNI_ROW_LOOP_ADD
                 : op == GNI_OP_SUBTRACT ? GNI_ROW_LOOP_SUBTRACT
                 : op == GNI_OP_MULTIPLY ? GNI_ROW_LOOP_MULTIPLY
                 : op == GNI_OP_DIVIDE   ? GNI_ROW_LOOP_DIVIDE
                                         : GNI_ROW_LOOP_COUNT;
    if (number == GNI_ROW_LOOP_COUNT || (computing != GN_FLOAT32 && computing != GN_FLOAT64))
        return NULL;
    return loops_get()->row_loops[number][computing == GN_FLOAT64][place];
}

gni_chain gni_chain_find(gn_dtype computing)
{
    gni_assert(gni_dtype_is_valid(computing));
    return loops_get()->chains[computing];
}

gni_row_reducer gni_row_reducer_find(void)
{
    return loops_get()->row_reducer;
}
