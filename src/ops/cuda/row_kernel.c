/*
 * row_kernel.c: what the text of a row program's kernel depends on: how rows lie and are spread over threads, and what is
 * computed in which phase. row_text.c makes the text.
 */
#include "ops/cuda/row_kernel.h"

#include "ops/cuda/fixed.h"
#include "ops/cuda/specialization.h"
#include "ops/cuda/weight.h"

#include <string.h>

enum {
    WARP = 32,
    WARP_COLUMNS = 1024,   /* of a row that a warp has */
    BLOCK_COLUMNS = 4096,  /* of one that 256 threads have */
    LARGE_COLUMNS = 16384, /* of one that 512 threads have; beyond there are 1024 */
    VECTOR_BYTES = 16,     /* of a load */
    LOADED_TOGETHER = 4,   /* chunks in flight where rows are not held */
    CODE_MOST = 1600,      /* instructions for the chunks in flight, about */
    REGISTERS = 65536,     /* of a multiprocessor */
    REGISTERS_MOST =
        168, /* of a thread that holds rows, by estimate; above, rows are loaded again */
    REGISTERS_BESIDE = 40, /* that a thread needs beside what it holds */
    THREADS_MOST = 2048,   /* of a multiprocessor */
    BLOCKS_AHEAD = 2,      /* of a multiprocessor, at least, where rows are loaded ahead */
    PARTS_ENOUGH = 264,    /* that fill a GPU: 2 for each of 132 multiprocessors */
    PART_ROWS_MOST = 128,  /* which are added as floats */
};

/* ---- where rows lie ------------------------------------------------------------------------------ */

static enum gni_row_access access_of(const struct gni_row_kernel *kernel, const int64_t *strides)
{
    const struct gni_layout *layout = &kernel->layout;
    bool is_one = true, is_dense = true;
    int64_t expected = 1;
    for (int d = layout->ndim - 1; d >= kernel->kept_ndim; d--) {
        is_one &= strides[d] == 0;
        is_dense &= strides[d] == expected;
        expected *= layout->sizes[d];
    }
    return is_one ? GNI_ROW_ONE : is_dense ? GNI_ROW_DENSE : GNI_ROW_STRIDED;
}

/* Elements that lie at a multiple of their size in each row, up to a chunk and 16 bytes. */
static unsigned char vector_of(const struct gni_row_kernel *kernel, const void *data, size_t size,
                               const int64_t *strides)
{
    size_t vec = VECTOR_BYTES / size < GNI_ROW_CHUNK ? VECTOR_BYTES / size : GNI_ROW_CHUNK;
    uint64_t places = (uintptr_t)data | (uint64_t)kernel->program->columns * size;
    for (int d = 0; d < kernel->kept_ndim; d++)
        places |= (uint64_t)strides[d] * size;
    while (vec > 1 && (places & (vec * size - 1)) != 0)
        vec /= 2;
    return (unsigned char)vec;
}

static void accesses_find(struct gni_row_kernel *kernel)
{
    const struct gni_program *program = kernel->program;
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        const int64_t *strides = kernel->layout.strides[i];
        kernel->inputs[i] = input->storage == NULL ? GNI_ROW_NUMBER : access_of(kernel, strides);
        kernel->input_vec[i] =
            kernel->inputs[i] == GNI_ROW_DENSE
                ? vector_of(kernel, input->data, gni_dtype_size(input->held), strides)
                : 1;
    }
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        kernel->output_vec[i] = vector_of(kernel, output->data, gni_dtype_size(output->dtype),
                                          kernel->layout.output_strides[i]);
    }
}

/* ---- pairs of halves --------------------------------------------------------------------------- */

/* Whether rows.cu has the operation for pairs. */
static bool has_pair_form(enum gni_op op)
{
    return op == GNI_OP_ADD || op == GNI_OP_SUBTRACT || op == GNI_OP_MULTIPLY ||
           op == GNI_OP_MAXIMUM || op == GNI_OP_MINIMUM || op == GNI_OP_SQUARE ||
           op == GNI_OP_NEGATIVE || op == GNI_OP_ABSOLUTE;
}

/* The type of halves in which a step's value is exact; -1: none. */
static signed char pair_of_step(const struct gni_step *step)
{
    bool is_half =
        step->kind == GNI_STEP_CONVERT && step->held == GN_FLOAT32 && gni_dtype_is_half(step->from);
    if (step->kind == GNI_STEP_ROUND ||
        (step->kind == GNI_STEP_REDUCE && gni_dtype_is_half(step->half)))
        return (signed char)step->half;
    return is_half ? (signed char)step->from : -1;
}

/* Whether a step is one instruction with the rounding that reads it: all operands are pairs of that type. */
static bool is_absorbed(const struct gni_row_kernel *kernel, int value)
{
    const struct gni_program *program = kernel->program;
    const struct gni_step *step = &program->steps[value - program->input_count];
    if (step->kind != GNI_STEP_OP || !has_pair_form(step->op) || step->from != GN_FLOAT32 ||
        program->is_row[value])
        return false;
    const struct gni_step *rounding = gni_program_rounding(program, value);
    for (int i = 0; i < 3 && step->in[i] >= 0; i++)
        if (rounding != NULL && kernel->pair[step->in[i]] != (signed char)rounding->half)
            return false;
    return rounding != NULL;
}

/* Pairs save loads and instructions where an element takes few of them; elsewhere they are only more text. */
static void pairs_find(struct gni_row_kernel *kernel, int weight)
{
    const struct gni_program *program = kernel->program;
    kernel->is_paired = false;
    memset(&kernel->absorbed, 0, sizeof kernel->absorbed);
    if (gni_weight_is_large(weight)) {
        memset(kernel->pair, -1, sizeof kernel->pair);
        return;
    }
    for (int i = 0; i < program->input_count; i++)
        kernel->pair[i] =
            gni_dtype_is_half(program->inputs[i].held) ? (signed char)program->inputs[i].held : -1;
    for (int s = 0; s < program->step_count; s++) {
        int value = program->input_count + s;
        kernel->pair[value] = pair_of_step(&program->steps[s]);
        kernel->is_paired |= kernel->pair[value] >= 0 && !program->is_row[value];
        if (is_absorbed(kernel, value))
            gni_row_add(&kernel->absorbed, value);
    }
}

/* ---- threads --------------------------------------------------------------------------------------- */

/* The threads that share a row: RK1. */
static int lanes_choose(int64_t columns)
{
    int lanes = columns <= WARP_COLUMNS    ? WARP
                : columns <= BLOCK_COLUMNS ? 256
                : columns <= LARGE_COLUMNS ? 512
                                           : 1024;
    while (lanes > 1 && lanes <= WARP && columns <= (int64_t)lanes / 2 * GNI_ROW_CHUNK)
        lanes /= 2; /* the others would have nothing */
    return lanes;
}

/* Bytes of an element that is kept. */
static size_t held_bytes(const struct gni_row_kernel *kernel, int value)
{
    gn_dtype held = gni_program_held(kernel->program, (short)value);
    return kernel->pair[value] >= 0 ? 2 : gni_dtype_size(held) > 4 ? 8 : 4;
}

/* Registers for the rows that are loaded ahead. */
static int64_t registers_ahead(const struct gni_row_kernel *kernel)
{
    const struct gni_program *program = kernel->program;
    size_t bytes = 0;
    for (int i = 0; i < program->input_count; i++)
        if (kernel->inputs[i] >= GNI_ROW_DENSE && !gni_row_kernel_is_same(kernel, i))
            bytes += GNI_ROW_CHUNK * gni_dtype_size(program->inputs[i].held);
    return kernel->steps * (int64_t)bytes / 4;
}

/* Registers for what a thread holds of its rows. */
static int64_t registers_held(const struct gni_row_kernel *kernel)
{
    const struct gni_program *program = kernel->program;
    size_t bytes = 0; /* of a chunk of each */
    for (int i = 0; i < program->input_count; i++)
        if (kernel->inputs[i] >= GNI_ROW_DENSE)
            bytes += GNI_ROW_CHUNK * gni_dtype_size(program->inputs[i].held);
    for (int s = 0; s < program->step_count; s++)
        if (gni_row_has(&kernel->phases.kept, program->input_count + s))
            bytes += GNI_ROW_CHUNK * held_bytes(kernel, program->input_count + s);
    bytes += (size_t)kernel->sum_count * GNI_ROW_CHUNK * sizeof(float);
    return kernel->steps * (int64_t)bytes / 4;
}

/* Whether several phases read something for each column. */
static bool is_read_again(const struct gni_row_kernel *kernel)
{
    const struct gni_program *program = kernel->program;
    for (int v = 0; v < program->input_count + program->step_count; v++) {
        int count = 0;
        bool is_loaded = v < program->input_count ? kernel->inputs[v] >= GNI_ROW_DENSE
                                                  : gni_row_has(&kernel->phases.kept, v);
        for (int p = 0; p < kernel->phases.count && is_loaded; p++)
            count += gni_row_is_needed(&kernel->phases, p, v);
        if (count > 1)
            return true;
    }
    return false;
}

/* The rows of a part: a multiple of those that a block has at a time. RK3. */
static void parts_choose(struct gni_row_kernel *kernel)
{
    const struct gni_program *program = kernel->program;
    kernel->sum_count = 0;
    kernel->part_rows = 0;
    for (int i = 0; i < program->output_count; i++)
        kernel->sum_count += program->outputs[i].is_column;
    if (kernel->sum_count == 0)
        return;
    int64_t rows = program->count / program->columns, unit = gni_row_kernel_rows(kernel);
    int64_t part = gni_divided_up(rows, PARTS_ENOUGH);
    part = part < PART_ROWS_MOST ? part : PART_ROWS_MOST;
    kernel->part_rows = gni_divided_up(part, unit) * unit;
}

/* Elements in front are whole words of everything that rotates. */
static void turns_choose(struct gni_row_kernel *kernel, int weight)
{
    const struct gni_program *program = kernel->program;
    int together = gni_weight_together(weight, GNI_ROW_CHUNK);
    int least = kernel->is_paired ? 2 : 1;
    for (int i = 0; i < program->input_count; i++)
        if (kernel->inputs[i] >= GNI_ROW_DENSE && gni_row_in_word(program->inputs[i].held) > least)
            least = gni_row_in_word(program->inputs[i].held);
    for (int i = 0; i < program->output_count; i++)
        if (gni_row_in_word(program->outputs[i].dtype) > least)
            least = gni_row_in_word(program->outputs[i].dtype);
    kernel->turns = GNI_ROW_CHUNK / (together < least ? least : together);
    kernel->step_turns = kernel->turns > 1 ? kernel->steps : 1;
}

static void threads_choose(struct gni_row_kernel *kernel, int weight)
{
    const struct gni_program *program = kernel->program;
    int64_t stretch = (int64_t)kernel->lanes * GNI_ROW_CHUNK;
    kernel->threads = kernel->lanes <= WARP ? GNI_CUDA_BLOCK : kernel->lanes;
    kernel->is_short = program->columns <= stretch * GNI_ROW_SEGMENT;
    parts_choose(kernel);
    int64_t steps = gni_divided_up(program->columns, stretch);
    kernel->steps = steps < GNI_ROW_SEGMENT ? (int)steps : GNI_ROW_SEGMENT;
    int64_t registers = REGISTERS_BESIDE + registers_held(kernel);
    int64_t most = REGISTERS / kernel->threads;
    kernel->is_held =
        kernel->sum_count > 0 || (is_read_again(kernel) && kernel->steps * GNI_ROW_CHUNK <= 64 &&
                                  registers <= (most < REGISTERS_MOST ? most : REGISTERS_MOST));
    if (!kernel->is_held) {
        gni_row_phases_make(&kernel->phases, program, GNI_ROW_KEEP_NONE);
        kernel->steps = gni_weight_packs(weight, GNI_ROW_CHUNK, LOADED_TOGETHER, CODE_MOST);
        registers = REGISTERS_BESIDE + registers_held(kernel);
    }
    turns_choose(kernel, weight);
    int64_t ahead = registers + registers_ahead(kernel);
    kernel->is_ahead = kernel->sum_count > 0 && ahead * kernel->threads * BLOCKS_AHEAD <= REGISTERS;
    if (kernel->is_ahead)
        registers = ahead;
    int64_t blocks = REGISTERS / (kernel->threads * registers);
    int64_t full = THREADS_MOST / kernel->threads;
    kernel->blocks = blocks < 1 ? 1 : blocks > full ? (int)full : (int)blocks;
    kernel->is_complete =
        kernel->is_held && program->columns % stretch == 0 &&
        program->count / program->columns % (kernel->threads / kernel->lanes) == 0;
}

void gni_row_kernel_make(struct gni_row_kernel *kernel, const struct gni_program *program)
{
    kernel->program = program;
    kernel->kept_ndim = gni_program_join_rows(program, &kernel->layout);
    kernel->kept_ndim = kernel->layout.ndim - kernel->kept_ndim;
    kernel->is_wide = program->count / program->columns > INT32_MAX / 2;
    kernel->is_exact = program->columns % GNI_ROW_CHUNK == 0;
    kernel->lanes = lanes_choose(program->columns);
    accesses_find(kernel);
    gni_row_phases_make(&kernel->phases, program, GNI_ROW_KEEP_HEAVY);
    const int weight = gni_program_weight(program);
    pairs_find(kernel, weight);
    threads_choose(kernel, weight);
}

int64_t gni_row_kernel_blocks(const struct gni_row_kernel *kernel)
{
    int64_t rows = kernel->program->count / kernel->program->columns;
    return gni_divided_up(rows,
                          kernel->sum_count > 0 ? kernel->part_rows : gni_row_kernel_rows(kernel));
}

/* ---- the signature ---------------------------------------------------------------------------------- */

size_t gni_row_kernel_sign(const struct gni_row_kernel *kernel, unsigned char *signature)
{
    const struct gni_program *program = kernel->program;
    unsigned char *at = signature;
    const int numbers[] = {kernel->layout.ndim,  kernel->kept_ndim,   kernel->is_wide,
                           kernel->is_exact,     kernel->is_complete, kernel->is_held,
                           kernel->is_short,     kernel->is_ahead,    kernel->threads / WARP,
                           kernel->blocks,       kernel->steps,       program->input_count,
                           program->output_count};
    *at++ = 'R';
    *at++ = (unsigned char)(gni_row_kernel_has_any_lanes(kernel)
                                ? 0
                                : 1 + __builtin_ctz((unsigned)kernel->lanes));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *at++ = (unsigned char)numbers[i];
    for (int i = 0; i < program->input_count; i++) {
        bool is_same = kernel->inputs[i] != GNI_ROW_NUMBER && gni_row_kernel_is_same(kernel, i);
        *at++ = (unsigned char)(is_same << 7 | (int)kernel->inputs[i] << 4 | kernel->input_vec[i]);
        *at++ = (unsigned char)program->inputs[i].held;
    }
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        *at++ =
            (unsigned char)(output->is_column << 5 | output->is_row << 4 | kernel->output_vec[i]);
        *at++ = (unsigned char)output->dtype;
        memcpy(at, &output->value, sizeof output->value);
        at += sizeof output->value;
    }
    at += gni_steps_sign(program, at);
    return (size_t)(at - signature);
}
