/*
 * scenarios.c: the definitions of the scenarios; see scenarios.h.
 *
 * The ring scenarios and the transformer's sizes are those of the measurements that set the targets;
 * the random ones follow RMM's random_allocations benchmark: sizes uniform up to a maximum, 73 of 100
 * operations allocate, 16000 MiB at most are live.
 */
#include "scenarios.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

enum {
    PAIRS = 20000, /* of the scenarios without a length of their own */
};

/* ---- random numbers: splitmix64, the same everywhere ---- */

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 <= x < 1 */
static double random_unit(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    return (uint64_t)(random_unit(state) * (double)bound);
}

/* ---- building ---- */

struct builder {
    struct bench_scenario *scenario;
    size_t step_capacity;
    uint64_t *slot_bytes; /* what each slot holds now */
    size_t slot_capacity;
    uint64_t *free_slots; /* a stack of slots below slot_count that hold nothing */
    size_t free_count;
    uint64_t live_bytes;
};

static void *grown(void *memory, size_t *capacity, size_t wanted, size_t item_bytes)
{
    if (wanted <= *capacity)
        return memory;
    size_t more = *capacity ? *capacity * 2 : 1024;
    if (more < wanted)
        more = wanted;
    memory = realloc(memory, more * item_bytes);
    if (!memory) {
        fprintf(stderr, "scenarios: out of memory\n");
        abort();
    }
    *capacity = more;
    return memory;
}

static void step(struct builder *builder, uint64_t slot, uint64_t nbytes)
{
    struct bench_scenario *scenario = builder->scenario;
    size_t old_capacity = builder->slot_capacity;
    builder->slot_bytes = grown(builder->slot_bytes, &builder->slot_capacity, (size_t)slot + 1,
                                sizeof *builder->slot_bytes);
    for (size_t i = old_capacity; i < builder->slot_capacity; i++)
        builder->slot_bytes[i] = 0;
    scenario->steps = grown(scenario->steps, &builder->step_capacity, scenario->step_count + 1,
                            sizeof *scenario->steps);
    scenario->steps[scenario->step_count++] = (struct bench_step){slot, nbytes};
    if (slot >= scenario->slot_count)
        scenario->slot_count = (size_t)slot + 1;
    scenario->alloc_count += nbytes != 0;
    builder->live_bytes += nbytes - builder->slot_bytes[slot];
    builder->slot_bytes[slot] = nbytes;
    if (builder->live_bytes > scenario->peak_bytes)
        scenario->peak_bytes = builder->live_bytes;
}

/* Allocates into a slot of the builder's choice, and returns it; for programs rather than rings. */
static uint64_t take(struct builder *builder, uint64_t nbytes)
{
    uint64_t slot = builder->scenario->slot_count;
    if (builder->free_count)
        slot = builder->free_slots[--builder->free_count];
    step(builder, slot, nbytes);
    return slot;
}

static void give(struct builder *builder, uint64_t slot)
{
    static const size_t most = 1 << 16; /* more than any scenario has live blocks */
    if (!builder->free_slots) {
        size_t none = 0;
        builder->free_slots = grown(NULL, &none, most, sizeof *builder->free_slots);
    }
    step(builder, slot, 0);
    builder->free_slots[builder->free_count++] = slot;
}

/* ---- rings ---- */

static void build_ring(struct builder *builder, uint64_t nbytes, size_t count, size_t hold)
{
    for (size_t i = 0; i < count; i++)
        step(builder, i % hold, nbytes);
}

static void build_same_4k(struct builder *builder)
{
    build_ring(builder, 4 * KIB, PAIRS, 1);
}

static void build_same_1m(struct builder *builder)
{
    build_ring(builder, MIB, PAIRS, 1);
}

static void build_same_64m(struct builder *builder)
{
    build_ring(builder, 64 * MIB, PAIRS, 1);
}

/* Sizes from 1 KiB to 8 MiB, each doubling as likely as the others. */
static void build_variable(struct builder *builder, size_t hold)
{
    uint64_t state = 1;
    for (size_t i = 0; i < PAIRS; i++)
        step(builder, i % hold, (uint64_t)exp2(10 + 13 * random_unit(&state)));
}

static void build_variable_32(struct builder *builder)
{
    build_variable(builder, 32);
}

static void build_variable_512(struct builder *builder)
{
    build_variable(builder, 512);
}

/* The activations of one transformer layer, again and again. */
static void build_transformer(struct builder *builder)
{
    const uint64_t b = 8, s = 1024, h = 1024, heads = 16;
    const uint64_t sizes[10] = {b * s * h * 4, b * s * h * 4, b * s * h * 4,  b * heads * s * s * 4,
                                b * s * h * 4, b * s * h * 4, b * s * h * 16, b * s * h * 16,
                                b * s * h * 4, 4 * KIB};
    for (size_t i = 0; i < PAIRS; i++)
        step(builder, i % 10, sizes[i % 10]);
}

/* 16 GiB that live are 90 % of the limit. */
static void build_pressure(struct builder *builder)
{
    build_ring(builder, 256 * MIB, 4096, 64);
    builder->scenario->budget_bytes = 16 * GIB / 9 * 10 / (2 * MIB) * (2 * MIB);
}

/* ---- training ---- */

enum {
    LAYERS = 12,
    WEIGHTS = 6, /* of a layer */
    ACTIVATIONS = 8,
};

static const uint64_t weight_bytes[WEIGHTS] = {
    12 * MIB, 4 * MIB, 16 * MIB, 16 * MIB, 4 * KIB, 4 * KIB,
};

/* What the forward pass of a layer keeps for the backward pass. */
static void activation_sizes(uint64_t batch, uint64_t length, uint64_t sizes[ACTIVATIONS])
{
    const uint64_t hidden = 1024, heads = 16;
    uint64_t row = batch * length * hidden * 4;
    sizes[0] = row;                                 /* norm */
    sizes[1] = 3 * row;                             /* queries, keys, values */
    sizes[2] = batch * heads * length * length * 4; /* attention */
    sizes[3] = row;                                 /* heads together */
    sizes[4] = row;                                 /* norm */
    sizes[5] = 4 * row;                             /* wide */
    sizes[6] = 4 * row;                             /* activated */
    sizes[7] = batch * length * 4;                  /* row statistics */
}

/* Forward through all layers, then back, each layer with the temporaries of its gradients. */
static void train_micro_batch(struct builder *builder, size_t layers, uint64_t batch,
                              uint64_t length, uint64_t (*gradients)[WEIGHTS], bool is_first)
{
    uint64_t kept[LAYERS][ACTIVATIONS], sizes[ACTIVATIONS];
    activation_sizes(batch, length, sizes);
    for (size_t layer = 0; layer < layers; layer++) {
        for (size_t i = 0; i < ACTIVATIONS; i++) {
            uint64_t workspace = take(builder, 2 * MIB);
            kept[layer][i] = take(builder, sizes[i]);
            give(builder, workspace);
        }
    }
    uint64_t flowing = take(builder, sizes[0]);
    for (size_t layer = layers; layer-- > 0;) {
        for (size_t i = ACTIVATIONS; i-- > 0;) {
            uint64_t inner = take(builder, sizes[i]);
            give(builder, kept[layer][i]);
            give(builder, inner);
        }
        for (size_t i = 0; gradients && i < WEIGHTS; i++) {
            uint64_t fresh = take(builder, weight_bytes[i]);
            if (is_first)
                gradients[layer][i] = fresh;
            else
                give(builder, fresh); /* added to the one that stays */
        }
        uint64_t next = take(builder, sizes[0]);
        give(builder, flowing);
        flowing = next;
    }
    give(builder, flowing);
}

/* Weights and optimizer state stay; gradients stay for 4 micro-batches; then the optimizer steps. */
static void build_accumulation(struct builder *builder)
{
    uint64_t gradients[LAYERS][WEIGHTS];
    for (size_t i = 0; i < 3 * LAYERS * WEIGHTS; i++)
        (void)take(builder, weight_bytes[i % WEIGHTS]);
    for (int turn = 0; turn < 8; turn++) {
        for (int batch = 0; batch < 4; batch++)
            train_micro_batch(builder, LAYERS, 4, 1024, gradients, batch == 0);
        for (size_t i = 0; i < LAYERS * WEIGHTS; i++) {
            uint64_t root = take(builder, weight_bytes[i % WEIGHTS]);
            uint64_t update = take(builder, weight_bytes[i % WEIGHTS]);
            give(builder, root);
            give(builder, update);
        }
        for (size_t i = 0; i < LAYERS * WEIGHTS; i++)
            give(builder, gradients[i / WEIGHTS][i % WEIGHTS]);
        if (turn == 0)
            builder->scenario->first_step_count = builder->scenario->step_count;
    }
}

/* Every turn has a sequence length of its own, from 64 to 2048: no two turns have the same sizes. */
static void build_variable_length(struct builder *builder)
{
    uint64_t state = 3;
    for (int turn = 0; turn < 64; turn++) {
        train_micro_batch(builder, 6, 4, 64 + random_below(&state, 1985), NULL, false);
        if (turn == 0)
            builder->scenario->first_step_count = builder->scenario->step_count;
    }
}

/* ---- RMM's random allocations ---- */

static void build_random(struct builder *builder, uint64_t bytes_most, size_t count)
{
    const uint64_t live_most = 16000 * MIB;
    uint64_t *live = calloc(count, sizeof *live), state = 5;
    size_t live_count = 0;
    if (!live)
        abort();
    while (builder->scenario->alloc_count < count) {
        uint64_t nbytes = 1 + random_below(&state, bytes_most);
        bool is_alloc = random_unit(&state) < 0.73 && builder->live_bytes + nbytes <= live_most;
        if (is_alloc) {
            live[live_count++] = take(builder, nbytes);
        } else if (live_count) {
            size_t which = (size_t)random_below(&state, live_count);
            give(builder, live[which]);
            live[which] = live[--live_count];
        }
    }
    free(live);
}

static void build_random_4m(struct builder *builder)
{
    build_random(builder, 4 * MIB, 10000);
}

static void build_random_64m(struct builder *builder)
{
    build_random(builder, 64 * MIB, 10000);
}

static void build_random_1g(struct builder *builder)
{
    build_random(builder, GIB, 10000);
}

/* ---- the list ---- */

static const struct definition {
    const char *name, *title;
    enum bench_group group;
    void (*build)(struct builder *builder);
} definitions[] = {
    {"same_4k", "one size, 4 KiB", BENCH_GROUP_ONE_SIZE, build_same_4k},
    {"same_1m", "one size, 1 MiB", BENCH_GROUP_ONE_SIZE, build_same_1m},
    {"same_64m", "one size, 64 MiB", BENCH_GROUP_ONE_SIZE, build_same_64m},
    {"variable_32", "1 KiB..8 MiB, 32 live", BENCH_GROUP_VARIABLE, build_variable_32},
    {"variable_512", "1 KiB..8 MiB, 512 live", BENCH_GROUP_VARIABLE, build_variable_512},
    {"transformer", "transformer step, 10 live", BENCH_GROUP_TRANSFORMER, build_transformer},
    {"pressure", "256 MiB x 64 live, 90 % of the limit", BENCH_GROUP_PRESSURE, build_pressure},
    {"accumulation", "gradient accumulation", BENCH_GROUP_OTHER, build_accumulation},
    {"variable_length", "variable-length training", BENCH_GROUP_OTHER, build_variable_length},
    {"random_4m", "random up to 4 MiB", BENCH_GROUP_OTHER, build_random_4m},
    {"random_64m", "random up to 64 MiB", BENCH_GROUP_OTHER, build_random_64m},
    {"random_1g", "random up to 1 GiB", BENCH_GROUP_OTHER, build_random_1g},
};

enum {
    SCENARIOS = sizeof definitions / sizeof *definitions,
};

static struct bench_scenario scenarios[SCENARIOS];
static pthread_mutex_t scenarios_lock = PTHREAD_MUTEX_INITIALIZER;

const struct bench_scenario *bench_scenario_get(size_t index)
{
    if (index >= SCENARIOS)
        return NULL;
    struct bench_scenario *scenario = &scenarios[index];
    pthread_mutex_lock(&scenarios_lock);
    if (!scenario->steps) {
        struct builder builder = {.scenario = scenario};
        scenario->name = definitions[index].name;
        scenario->title = definitions[index].title;
        scenario->group = (int)definitions[index].group;
        definitions[index].build(&builder);
        free(builder.slot_bytes);
        free(builder.free_slots);
    }
    pthread_mutex_unlock(&scenarios_lock);
    return scenario;
}

const struct bench_scenario *bench_scenario_find(const char *name)
{
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (strcmp(definitions[i].name, name) == 0)
            return bench_scenario_get(i);
    }
    return NULL;
}
