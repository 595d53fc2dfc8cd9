/*
 * test_chains.c: random chains (chains.h) have the bits of the loops of their operations, one after the other: of both types, in
 * every instruction set that the processor has, for rows of all lengths, with stores over what the chain reads.
 */
#include "check.h"

#include "ops/cpu/chains.h"
#include "ops/cpu/loops.h"

#include <math.h>

enum {
    COLUMNS_MOST = 261,
    ROWS_MOST = 5,
    ELEMENTS = COLUMNS_MOST * ROWS_MOST,
    GUARD = 64,   /* elements behind a buffer that must stay */
    BUFFERS = 4,  /* that a chain reads and writes */
    STEPS = 12,   /* operations of a chain, at most */
    CHAINS = 400, /* of a type and a set */
};

static const char *const sets[] = {"basic", "avx2", "avx512"};
static uint64_t seed = 1;

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

static double number(void)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, 1e-42, 3e38, -3e38, (double)INFINITY};
    if (draw(40) == 0)
        return special[draw(sizeof special / sizeof *special)];
    return ((double)draw(2000001) - 1000000) * 1e-5;
}

static void number_store(gn_dtype dtype, void *to, size_t i, double value)
{
    if (dtype == GN_FLOAT32)
        ((float *)to)[i] = (float)value;
    else
        ((double *)to)[i] = value;
}

/* A chain, and the same as loops. */
struct sample {
    gn_dtype dtype;
    size_t rows, columns;
    int count;
    struct {
        enum gni_op op;
        int place;
        bool is_row;
        int buffer;    /* of the other operand */
        int stored_to; /* a buffer; -1: the value is not stored */
    } steps[STEPS];
    int first; /* the buffer that is loaded */
};

/* Buffers of elements, and numbers for each row. */
struct room {
    _Alignas(64) char full[BUFFERS][(ELEMENTS + GUARD) * sizeof(double)];
    _Alignas(64) char row[BUFFERS][ROWS_MOST * sizeof(double)];
};

static void sample_make(struct sample *sample, gn_dtype dtype)
{
    static const enum gni_op ops[] = {GNI_OP_ADD,    GNI_OP_SUBTRACT, GNI_OP_MULTIPLY,
                                      GNI_OP_DIVIDE, GNI_OP_NEGATIVE, GNI_OP_SQUARE};
    sample->dtype = dtype;
    sample->rows = draw(ROWS_MOST + 1);
    sample->columns = draw(4) == 0 ? 64 * draw(5) : draw(COLUMNS_MOST + 1);
    sample->first = (int)draw(BUFFERS);
    sample->count = 1 + (int)draw(STEPS);
    for (int i = 0; i < sample->count; i++) {
        enum gni_op op = ops[draw(6)];
        bool is_single = op == GNI_OP_NEGATIVE || op == GNI_OP_SQUARE;
        int place = is_single ? 0 : (int)draw(3);
        if (place == GNI_CHAIN_BOTH && op != GNI_OP_ADD && op != GNI_OP_MULTIPLY)
            place = 1;
        sample->steps[i].op = op;
        sample->steps[i].place = place;
        sample->steps[i].is_row = !is_single && place != GNI_CHAIN_BOTH && draw(2) == 0;
        sample->steps[i].buffer = (int)draw(BUFFERS);
        bool is_stored = i + 1 == sample->count || draw(4) == 0;
        sample->steps[i].stored_to = is_stored ? (int)draw(BUFFERS) : -1;
    }
}

static void room_fill(struct room *room, gn_dtype dtype)
{
    for (int b = 0; b < BUFFERS; b++) {
        for (size_t i = 0; i < ELEMENTS + GUARD; i++)
            number_store(dtype, room->full[b], i, number());
        for (size_t i = 0; i < ROWS_MOST; i++)
            number_store(dtype, room->row[b], i, number());
    }
}

/* `offset`: bytes, so that elements are not always at the beginning of a vector. */
static void chain_run(const struct sample *sample, struct room *room, size_t offset)
{
    struct gni_chain_step steps[2 * STEPS + 2];
    int count = 0;
    steps[count++] = (struct gni_chain_step){GNI_CHAIN_LOAD, room->full[sample->first] + offset};
    for (int i = 0; i < sample->count; i++) {
        int b = sample->steps[i].buffer;
        struct gni_chain_step *one = &steps[count++];
        CHECK(gni_chain_code_find(sample->steps[i].op, sample->steps[i].place,
                                  sample->steps[i].is_row, &one->code));
        one->data = sample->steps[i].is_row ? room->row[b] : room->full[b] + offset;
        if (sample->steps[i].stored_to >= 0)
            steps[count++] = (struct gni_chain_step){
                GNI_CHAIN_STORE, room->full[sample->steps[i].stored_to] + offset};
    }
    steps[count] = (struct gni_chain_step){GNI_CHAIN_END, NULL};
    gni_chain_find(sample->dtype)(steps, sample->rows, sample->columns);
}

static void loops_run(const struct sample *sample, struct room *room, size_t offset)
{
    static char value[ELEMENTS * sizeof(double)], spread[ELEMENTS * sizeof(double)];
    size_t size = gni_dtype_size(sample->dtype), count = sample->rows * sample->columns;
    memcpy(value, room->full[sample->first] + offset, count * size);
    for (int i = 0; i < sample->count; i++) {
        int b = sample->steps[i].buffer, place = sample->steps[i].place;
        for (size_t k = 0; k < count && sample->steps[i].is_row; k++)
            memcpy(spread + k * size, room->row[b] + k / sample->columns * size, size);
        const void *other = sample->steps[i].is_row ? spread : room->full[b] + offset;
        const void *in[] = {place == 1 ? other : value, place == 0 ? other : (const void *)value};
        gni_loop_find(sample->steps[i].op, sample->dtype)(value, in, count);
        if (sample->steps[i].stored_to >= 0)
            memcpy(room->full[sample->steps[i].stored_to] + offset, value, count * size);
    }
}

/* The same bits; NaN is NaN whatever its payload. */
static bool is_same(gn_dtype dtype, const void *a, const void *b, size_t i)
{
    if (dtype == GN_FLOAT32) {
        const float *x = a, *y = b;
        return memcmp(x + i, y + i, sizeof *x) == 0 || (isnan(x[i]) && isnan(y[i]));
    }
    const double *x = a, *y = b;
    return memcmp(x + i, y + i, sizeof *x) == 0 || (isnan(x[i]) && isnan(y[i]));
}

static void check_sample(const struct sample *sample)
{
    static struct room chained, looped;
    size_t offset = draw(9) * gni_dtype_size(sample->dtype);
    room_fill(&chained, sample->dtype);
    looped = chained;
    chain_run(sample, &chained, offset);
    loops_run(sample, &looped, offset);
    int wrong = 0;
    for (int b = 0; b < BUFFERS; b++)
        for (size_t i = 0; i < ELEMENTS + GUARD; i++)
            wrong += !is_same(sample->dtype, chained.full[b], looped.full[b], i);
    CHECK(wrong == 0);
    if (wrong != 0)
        fprintf(stderr, "    %s, %s, %zu x %zu, %d steps: %d elements\n", gni_loops_name(),
                gni_dtypes[sample->dtype].name, sample->rows, sample->columns, sample->count,
                wrong);
}

static void test_random_chains(void)
{
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        for (int i = 0; i < 2 * CHAINS; i++) {
            struct sample sample;
            sample_make(&sample, i % 2 ? GN_FLOAT32 : GN_FLOAT64);
            check_sample(&sample);
        }
    }
    gni_loops_use(NULL);
}

/* No step of a chain is contracted with the next: a product is rounded before the sum. */
static void test_nothing_is_contracted(void)
{
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        float x[100], out[100], y = 1 + 0x1p-12f, z = -1 - 0x1p-11f;
        for (size_t i = 0; i < 100; i++)
            x[i] = 1 + 0x1p-12f;
        const struct gni_chain_step steps[] = {{GNI_CHAIN_LOAD, x},
                                               {GNI_CHAIN_MULTIPLY_ROW, &y},
                                               {GNI_CHAIN_ADD_ROW, &z},
                                               {GNI_CHAIN_STORE, out},
                                               {GNI_CHAIN_END, NULL}};
        gni_chain_find(GN_FLOAT32)(steps, 1, 100);
        for (size_t i = 0; i < 100; i++)
            CHECK(out[i] == 0); /* 2^-24 if it were */
    }
    gni_loops_use(NULL);
}

static void test_what_has_no_chain(void)
{
    enum gni_chain_code code;
    CHECK(!gni_chain_code_find(GNI_OP_SUBTRACT, GNI_CHAIN_BOTH, false, &code));
    CHECK(!gni_chain_code_find(GNI_OP_DIVIDE, GNI_CHAIN_BOTH, false, &code));
    CHECK(!gni_chain_code_find(GNI_OP_EXP, 0, false, &code));
    CHECK(!gni_chain_code_find(GNI_OP_MAXIMUM, 0, true, &code));
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        CHECK((gni_chain_find((gn_dtype)dtype) != NULL) ==
              (dtype == GN_FLOAT32 || dtype == GN_FLOAT64));
}

int main(void)
{
    RUN(test_random_chains);
    RUN(test_nothing_is_contracted);
    RUN(test_what_has_no_chain);
    return check_result();
}
