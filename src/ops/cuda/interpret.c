/*
 * interpret.c: instructions for interpret.cu: its text, and those of a program.
 *
 * There are three kernels: for halves in memory alone, for values of 32 bits (bool, int32, float32; halves in memory), and for
 * all types, in 64 bits. An operation with a type has a number in each, which its text and the writer below share.
 */
#include "ops/cuda/interpret.h"

#include "base/log.h"
#include "base/thread.h"
#include "jit/archive.h"
#include "jit/kernel.h"
#include "jit/trim.h"
#include "memory/manager.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"
#include "ops/cuda/weight.h"
#include "ops/recorder.h"

#include <stdio.h>
#include <string.h>

enum {
    THREADS = 128,
    SLOTS_MOST = 56, /* fewer where a block cannot have so much shared memory */
    WORDS = 504,     /* of interpret.cu, and the following */
    ACCUMULATED = -1,
    NOTHING = -2,
    NUMBERS = -3,
    OP_EXP_HALF = GNI_OP_COUNT, /* behind the operations: exp where a half is made of it */
    OPS,
    SIZES = 4, /* of elements: 1, 2, 4 and 8 bytes */
    BOOLS = SIZES,
    NONE = 0,       /* no number */
    USUAL_MOST = 4, /* operations of a type that are found quickly */
};

enum access {
    ACCESS_ONE,
    ACCESS_PACKED,
    ACCESS_DENSE,
    ACCESS_ROW_ONE,
    ACCESS_ROW_PACKED,
    ACCESS_ROW,
    ACCESS_ANY,
};

/* Of interpret.cu: for float16; for bfloat16 it is one more. */
enum half {
    HALF_NONE,
    HALF_WIDEN,
    HALF_ROUND = 3,
    HALF_NARROW = 5,
};

/* By the values that a kernel has. */
enum kind {
    KIND_HALVES, /* halves in memory, computed as float32, and bool */
    KIND_NARROW, /* float32, int32 and bool, and halves in memory */
    KIND_WIDE,   /* all types */
    INTERPRETERS,
};

/* A kernel: the numbers of its operations. */
struct interpreter {
    const char *name;
    enum kind kind;
    int word;        /* bytes of a value */
    int pack;        /* elements of a thread */
    int blocks;      /* that a multiprocessor should hold */
    int usual_count; /* numbers of operations that are found quickly: the first ones */
    uint16_t op[OPS][GN_DTYPE_COUNT]; /* by the type of the operands */
    uint16_t convert[GN_DTYPE_COUNT][GN_DTYPE_COUNT];
    uint16_t round[GN_DTYPE_COUNT]; /* to a half */
    uint16_t choose;                /* where() */
    uint16_t load[SIZES + 1], store[SIZES];
};

static struct interpreter interpreters[INTERPRETERS] = {
    {.name = "interpret_halves", .kind = KIND_HALVES, .word = 4, .pack = 16, .blocks = 4},
    {.name = "interpret_narrow", .kind = KIND_NARROW, .word = 4, .pack = 8, .blocks = 6},
    {.name = "interpret_wide", .kind = KIND_WIDE, .word = 8, .pack = 4, .blocks = 6},
};

/* The usual operations of a chain. */
static const enum gni_op usual_ops[USUAL_MOST] = {GNI_OP_ADD, GNI_OP_SUBTRACT, GNI_OP_MULTIPLY,
                                                  GNI_OP_MAXIMUM};

/* ---- numbers ------------------------------------------------------------------------------------------ */

static bool has_type(const struct interpreter *interpreter, gn_dtype dtype)
{
    return interpreter->kind == KIND_WIDE || dtype == GN_BOOL || dtype == GN_FLOAT32 ||
           (dtype == GN_INT32 && interpreter->kind == KIND_NARROW);
}

/* Of values of a type that have not been computed. */
static bool has_memory_type(const struct interpreter *interpreter, gn_dtype dtype)
{
    return has_type(interpreter, dtype) || gni_dtype_is_half(dtype);
}

/* The largest elements in memory; more would be too many for packs of halves. */
static size_t memory_size_most(const struct interpreter *interpreter)
{
    return interpreter->kind == KIND_HALVES ? 2 : (size_t)interpreter->word;
}

/* Whether an operation is defined for operands of a type. */
static bool has_operation(enum gni_op op, gn_dtype from)
{
    enum gni_kind kind = gni_dtype_kind(from);
    switch (gni_ops[op].domain) {
    case GNI_DOMAIN_NUMBER:
        return kind != GNI_KIND_BOOL;
    case GNI_DOMAIN_FLOAT:
        return kind == GNI_KIND_FLOATING;
    case GNI_DOMAIN_INTEGER:
        return kind != GNI_KIND_FLOATING;
    case GNI_DOMAIN_ANY:
    case GNI_DOMAIN_TEST:
    case GNI_DOMAIN_LOGIC:
        return true;
    case GNI_DOMAIN_SELECT: /* `choose` */
        break;
    }
    return false;
}

static gn_dtype result_type(enum gni_op op, gn_dtype from)
{
    bool is_test = gni_ops[op].domain == GNI_DOMAIN_TEST || gni_ops[op].domain == GNI_DOMAIN_LOGIC;
    return is_test ? GN_BOOL : from;
}

static void usual_number(struct interpreter *interpreter, gn_dtype type, uint16_t *number)
{
    for (int i = 0; i < USUAL_MOST; i++)
        interpreter->op[usual_ops[i]][type] = ++*number;
}

static void interpreter_number(struct interpreter *interpreter)
{
    uint16_t number = NONE;
    for (int size = 0; (size_t)1 << size <= memory_size_most(interpreter); size++)
        if (size > 0) {
            interpreter->load[size] = ++number;
            interpreter->store[size] = ++number;
        }
    usual_number(interpreter, GN_FLOAT32, &number);
    if (interpreter->kind == KIND_NARROW)
        usual_number(interpreter, GN_INT32, &number);
    if (interpreter->kind == KIND_WIDE)
        usual_number(interpreter, GN_INT64, &number);
    interpreter->usual_count = number;
    interpreter->load[0] = ++number;
    interpreter->store[0] = ++number;
    interpreter->load[BOOLS] = ++number;
    interpreter->choose = ++number;
    for (int from = 0; from < GN_DTYPE_COUNT; from++) {
        bool is_computed =
            has_type(interpreter, (gn_dtype)from) && !gni_dtype_is_half((gn_dtype)from);
        for (int op = 0; op < GNI_OP_COUNT && is_computed; op++)
            if (has_operation((enum gni_op)op, (gn_dtype)from) && interpreter->op[op][from] == NONE)
                interpreter->op[op][from] = ++number;
        for (int to = 0; to < GN_DTYPE_COUNT; to++)
            if (has_memory_type(interpreter, (gn_dtype)from) &&
                has_memory_type(interpreter, (gn_dtype)to))
                interpreter->convert[from][to] = ++number;
    }
    interpreter->op[OP_EXP_HALF][GN_FLOAT32] = ++number;
    interpreter->round[GN_FLOAT16] = ++number;
    interpreter->round[GN_BFLOAT16] = ++number;
}

static void interpreters_number(void)
{
    for (int i = 0; i < INTERPRETERS; i++)
        interpreter_number(&interpreters[i]);
}

static struct interpreter *interpreter_get(int kind)
{
    static struct gni_once once = GNI_ONCE_INIT;
    gni_once_run(&once, interpreters_number);
    return &interpreters[kind];
}

/* ---- the text ----------------------------------------------------------------------------------------- */

static const char *const size_types[SIZES] = {"uint8", "uint16", "uint32", "uint64"};

static const char *op_name(int op)
{
    return op == OP_EXP_HALF ? "exp_half" : gni_ops[op].name;
}

static int op_arity(int op)
{
    return op == OP_EXP_HALF ? 1 : gni_ops[op].arity;
}

/* An operation that takes much code is called, not put into the kernel once for each element of a pack. */
static bool is_called(const struct interpreter *interpreter, int op, gn_dtype from)
{
    int weight = op == OP_EXP_HALF ? 1 : gni_op_weight((enum gni_op)op);
    if (interpreter->kind != KIND_NARROW || from != GN_FLOAT32)
        return !gni_weight_is_light(weight);
    return gni_weight_is_usual(weight);
}

/* A function of words for an operation that is called. */
static void function_text(int number, const char *function, int arity, gn_dtype from, gn_dtype to,
                          struct gni_builder *text)
{
    static const char names[] = "xyz";
    gni_builder_print(text, "CALLED word call%d(word x%s%s)\n{\n    return put<%s>(%s<%s>(", number,
                      arity > 1 ? ", word y" : "", arity > 2 ? ", word z" : "", gni_cuda_type(to),
                      function, gni_cuda_type(from));
    for (int i = 0; i < arity; i++)
        gni_builder_print(text, "%sget<%s>(%c)", i > 0 ? ", " : "", gni_cuda_type(from), names[i]);
    gni_builder_print(text, "));\n}\n");
}

static void functions_text(const struct interpreter *interpreter, struct gni_builder *text)
{
    char name[64];
    for (int op = 0; op < OPS; op++)
        for (int from = 0; from < GN_DTYPE_COUNT; from++) {
            if (interpreter->op[op][from] == NONE || !is_called(interpreter, op, (gn_dtype)from))
                continue;
            snprintf(name, sizeof name, "op_%s", op_name(op));
            function_text(interpreter->op[op][from], name, op_arity(op), (gn_dtype)from,
                          op == OP_EXP_HALF ? GN_FLOAT32
                                            : result_type((enum gni_op)op, (gn_dtype)from),
                          text);
        }
}

static void op_text(const struct interpreter *interpreter, int op, gn_dtype from,
                    struct gni_builder *text)
{
    static const char *const macros[] = {"", "UNARY", "BINARY", "TERNARY"};
    static const char *const arguments[] = {"", "x[k]", "x[k], y[k]", "x[k], y[k], z[k]"};
    const int number = interpreter->op[op][from], arity = op_arity(op);
    if (is_called(interpreter, op, from))
        gni_builder_print(text, "    case %d: EACH(call%d(%s))\n", number, number,
                          arguments[arity]);
    else
        gni_builder_print(
            text, "    case %d: %s(op_%s, %s, %s)\n", number, macros[arity], op_name(op),
            gni_cuda_type(from),
            gni_cuda_type(op == OP_EXP_HALF ? from : result_type((enum gni_op)op, from)));
}

/* The cases of the operations whose numbers are usual ones, or of the others. */
static void cases_text(const struct interpreter *interpreter, bool are_usual,
                       struct gni_builder *text)
{
#define IS_WANTED(number) ((number) != NONE && ((number) <= interpreter->usual_count) == are_usual)
    for (int size = 0; size < SIZES; size++)
        if (IS_WANTED(interpreter->load[size]))
            gni_builder_print(text, "    case %d: LOAD(%s)\n    case %d: STORE(%s)\n",
                              interpreter->load[size], size_types[size], interpreter->store[size],
                              size_types[size]);
    if (!are_usual)
        gni_builder_print(
            text,
            "    case %d: { load<uint8>(a, i, first, here, x); TRUE_OF }\n    case %d: CHOOSE\n",
            interpreter->load[BOOLS], interpreter->choose);
    for (int from = 0; from < GN_DTYPE_COUNT; from++) {
        for (int op = 0; op < OPS; op++)
            if (IS_WANTED(interpreter->op[op][from]))
                op_text(interpreter, op, (gn_dtype)from, text);
        for (int to = 0; to < GN_DTYPE_COUNT; to++)
            if (IS_WANTED(interpreter->convert[from][to]))
                gni_builder_print(text, "    case %d: CONVERT(%s, %s)\n",
                                  interpreter->convert[from][to], gni_cuda_type((gn_dtype)from),
                                  gni_cuda_type((gn_dtype)to));
        if (IS_WANTED(interpreter->round[from]))
            gni_builder_print(text, "    case %d: ROUNDED(round_%s)\n", interpreter->round[from],
                              gni_cuda_type((gn_dtype)from));
    }
#undef IS_WANTED
}

static void execute_text(const struct interpreter *interpreter, struct gni_builder *text)
{
    gni_builder_print(text,
                      "\nELEMENT void execute(const arguments &a, const instruction &i, "
                      "uint64 first, int here, word (&x)[PACK], const word (&y)[PACK], const "
                      "word (&z)[PACK])\n{\n    if (i.operation <= %d) {\n"
                      "    switch (i.operation) {\n",
                      interpreter->usual_count);
    cases_text(interpreter, true, text);
    gni_builder_print(text, "    }\n    return;\n    }\n    switch (i.operation) {\n");
    cases_text(interpreter, false, text);
    gni_builder_print(text, "    }\n}\n");
}

static void interpreter_text(const struct interpreter *interpreter, struct gni_builder *text)
{
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text,
                      "\n#define NAME %s\n#define IS_WIDE %d\ntypedef %s word;\n"
                      "enum { PACK = %d, THREADS = %d, BLOCKS = %d };\n",
                      interpreter->name, interpreter->kind == KIND_WIDE,
                      interpreter->kind == KIND_WIDE ? "uint64" : "unsigned", interpreter->pack,
                      THREADS, interpreter->blocks);
    gni_builder_add(text, gni_text_interpret, strlen(gni_text_interpret));
    functions_text(interpreter, text);
    execute_text(interpreter, text);
}

static gn_status kernel_get(const struct interpreter *interpreter, gn_device *device,
                            struct gni_kernel **kernel)
{
    const uint64_t signature[] = {'I', interpreter->kind};
    *kernel = gni_kernel_find(device, signature, sizeof signature);
    if (*kernel != NULL)
        return GN_OK;
    struct gni_builder text = {.text = NULL};
    interpreter_text(interpreter, &text);
    void *state = gni_wait_begin();
    gn_status status = gni_kernel_build_general(device, interpreter->name, &text, signature,
                                                sizeof signature, kernel);
    gni_wait_end(state);
    return status;
}

void gni_interpret_kernels(struct gni_kernel_list *list)
{
    for (int i = 0; i < INTERPRETERS; i++) {
        const struct interpreter *interpreter = interpreter_get(i);
        struct gni_builder text = {.text = NULL};
        interpreter_text(interpreter, &text);
        gni_kernel_list_add(list, interpreter->name, &text);
    }
}

static bool archive_has(const struct interpreter *interpreter, gn_device *device)
{
    struct gni_builder text = {.text = NULL}, trimmed = {.text = NULL};
    interpreter_text(interpreter, &text);
    if (!text.has_failed)
        gni_text_trim(text.text, &trimmed);
    const struct gni_kernel_source source = {.name = interpreter->name, .text = trimmed.text};
    bool has_all = !text.has_failed && !trimmed.has_failed && gni_archive_has(device, &source);
    gni_builder_deinit(&trimmed);
    gni_builder_deinit(&text);
    return has_all;
}

bool gni_interpret_is_ready(gn_device *device)
{
    static _Atomic(uint64_t) known[GNI_DEVICE_MAX]; /* 1: no, 2: yes; and of which shutdown */
    const uint64_t turn = (uint64_t)gni_shutdown_count() << 2;
    uint64_t answer = atomic_load_explicit(&known[device->index], memory_order_relaxed);
    if (answer == (turn | 1) || answer == (turn | 2))
        return answer == (turn | 2);
    bool is_ready = gni_archive_nvrtc_version() != 0;
    for (int i = 0; i < INTERPRETERS; i++)
        is_ready = is_ready && archive_has(interpreter_get(i), device);
    atomic_store_explicit(&known[device->index], turn | (is_ready ? 2 : 1), memory_order_relaxed);
    return is_ready;
}

/* ---- instructions --------------------------------------------------------------------------------------- */

struct instruction {
    uint16_t operation;
    int16_t in[3];
    int16_t slot;
    uint16_t place, how, half;
};

struct arguments {
    uint64_t count;
    int64_t length, ndim, sizes, is_wide;
    const void *skip;
    int64_t skip_bytes;
    uint64_t skip_mask;
    uint64_t words[WORDS];
};

_Static_assert(sizeof(struct instruction) == 16, "two words");
_Static_assert(sizeof(struct arguments) == sizeof((struct gni_interpretation *)0)->arguments,
               "what all kernels may have");

/* What writes a program's instructions. */
struct writer {
    const struct interpreter *interpreter;
    const struct gni_program *program;
    const struct gni_specialization *specialization;
    struct arguments arguments;
    int word;   /* the next free one from behind: what instructions refer to */
    short held; /* the value that x has; -1: none */
    int slots;  /* that were used at a time, at most */
    int slots_most;
    uint64_t taken; /* slots, as bits */
    bool has_failed;
    short slot[GNI_PROGRAM_VALUES_MOST];       /* of a value; -1: none */
    uint16_t place[GNI_PROGRAM_VALUES_MOST];   /* of a number in words; 0: not there yet */
    uint16_t readers[GNI_PROGRAM_VALUES_MOST]; /* that are still to come */
};

static struct instruction *instruction_at(struct writer *writer, int64_t at)
{
    return (struct instruction *)(void *)&writer->arguments.words[2 * at];
}

/* Room for so many words behind the others; their place. */
static int words_take(struct writer *writer, int count)
{
    if (writer->word - count < 2 * (int)writer->arguments.length) {
        writer->has_failed = true;
        return 0;
    }
    return writer->word -= count;
}

static struct instruction *instruction_add(struct writer *writer, uint16_t operation)
{
    if (2 * ((int)writer->arguments.length + 1) > writer->word || operation == NONE)
        writer->has_failed = true;
    if (writer->has_failed)
        return instruction_at(writer, 0);
    struct instruction *instruction = instruction_at(writer, writer->arguments.length++);
    *instruction = (struct instruction){
        .operation = operation, .in = {ACCUMULATED, NOTHING, NOTHING}, .slot = -1};
    return instruction;
}

/* What x holds gets a slot if it will be read again: the instruction that made it keeps it. */
static void held_keep(struct writer *writer)
{
    short value = writer->held;
    if (value < 0 || writer->readers[value] == 0 || writer->slot[value] >= 0 || writer->has_failed)
        return;
    int slot = __builtin_ctzll(~writer->taken);
    if (slot >= writer->slots_most) {
        writer->has_failed = true;
        return;
    }
    writer->taken |= UINT64_C(1) << slot;
    writer->slots = slot >= writer->slots ? slot + 1 : writer->slots;
    writer->slot[value] = (short)slot;
    instruction_at(writer, writer->arguments.length - 1)->slot = (int16_t)slot;
}

static bool is_number(const struct writer *writer, short value)
{
    return value < writer->program->input_count && writer->program->inputs[value].storage == NULL;
}

/* Where an operand is. */
static int16_t operand_find(struct writer *writer, short value)
{
    if (is_number(writer, value)) {
        if (writer->place[value] == 0) {
            int place = words_take(writer, 1);
            writer->arguments.words[place] = writer->program->inputs[value].number;
            writer->place[value] = (uint16_t)place;
        }
        return (int16_t)(NUMBERS - writer->place[value]);
    }
    gni_assert(writer->has_failed || value == writer->held || writer->slot[value] >= 0);
    return value == writer->held ? ACCUMULATED : writer->slot[value];
}

/* The next instruction reads values for the last time, perhaps: then their slots are free behind it. Until then what x holds
 * must not be put there. */
static void operands_release(struct writer *writer, const short *values, int count)
{
    for (int i = 0; i < count && values[i] >= 0; i++)
        writer->readers[values[i]]--;
    held_keep(writer);
    for (int i = 0; i < count && values[i] >= 0; i++)
        if (writer->readers[values[i]] == 0 && writer->slot[values[i]] >= 0)
            writer->taken &= ~(UINT64_C(1) << writer->slot[values[i]]);
}

/* ---- memory --------------------------------------------------------------------------------------------- */

/* How what is at strides is read or written. */
static enum access row_access(const struct gni_layout *layout, const int64_t *strides, int pack,
                              bool is_aligned)
{
    const int last = layout->ndim - 1;
    if (layout->sizes[last] % pack != 0)
        return ACCESS_ANY;
    if (strides[last] == 0)
        return ACCESS_ROW_ONE;
    for (int d = 0; d < last; d++)
        is_aligned &= strides[d] % pack == 0;
    return strides[last] == 1 && is_aligned ? ACCESS_ROW_PACKED : ACCESS_ROW;
}

/* How a pack is read or written, and for that strides behind the address, which is at a place of words. */
static void memory_describe(struct writer *writer, struct instruction *instruction,
                            enum gni_access access, const void *data, gn_dtype dtype,
                            const int64_t *strides)
{
    const struct gni_layout *layout = &writer->specialization->layout;
    const int pack = writer->interpreter->pack;
    size_t align = gni_dtype_size(dtype) * (size_t)pack;
    int ndim = access >= GNI_ACCESS_STRIDED ? layout->ndim : 0;
    int place = words_take(writer, 1 + ndim);
    if (writer->has_failed)
        return;
    writer->arguments.words[place] = (uintptr_t)data;
    memcpy(&writer->arguments.words[place + 1], strides, (size_t)ndim * sizeof *strides);
    instruction->place = (uint16_t)place;
    bool is_aligned = ((uintptr_t)data & ((align < 16 ? align : 16) - 1)) == 0;
    if (access == GNI_ACCESS_ONE)
        instruction->how = ACCESS_ONE;
    else if (access == GNI_ACCESS_CONTIGUOUS)
        instruction->how = is_aligned ? ACCESS_PACKED : ACCESS_DENSE;
    else
        instruction->how = (uint16_t)row_access(layout, strides, pack, is_aligned);
}

static int size_index(gn_dtype dtype)
{
    return __builtin_ctzll(gni_dtype_size(dtype));
}

/* Loads an input that is neither held nor in a slot. */
static void input_load(struct writer *writer, short value)
{
    const struct gni_input *input = &writer->program->inputs[value];
    if (value >= writer->program->input_count || input->storage == NULL || value == writer->held ||
        writer->slot[value] >= 0)
        return;
    held_keep(writer);
    struct instruction *instruction = instruction_add(
        writer,
        writer->interpreter->load[input->held == GN_BOOL ? BOOLS : size_index(input->held)]);
    if (!has_memory_type(writer->interpreter, input->held))
        writer->has_failed = true;
    if (writer->has_failed)
        return;
    instruction->in[0] = NOTHING;
    memory_describe(writer, instruction, writer->specialization->inputs[value], input->data,
                    input->held, writer->specialization->layout.strides[value]);
    writer->held = value;
}

static uint16_t half_of(enum half half, gn_dtype dtype)
{
    return (uint16_t)((int)half + (dtype == GN_BFLOAT16));
}

static void output_store(struct writer *writer, int number)
{
    const struct gni_output *output = &writer->program->outputs[number];
    gn_dtype held = gni_program_held(writer->program, output->value);
    int16_t operand = operand_find(writer, output->value);
    operands_release(writer, &output->value, 1);
    writer->held = output->value;
    bool is_narrowed = held == GN_FLOAT32 && gni_dtype_is_half(output->dtype);
    if (!is_narrowed && (held != output->dtype || gni_dtype_is_half(held))) {
        instruction_add(writer, writer->interpreter->convert[held][output->dtype])->in[0] = operand;
        operand = ACCUMULATED;
        writer->held = -1;
    }
    struct instruction *instruction =
        instruction_add(writer, writer->interpreter->store[size_index(output->dtype)]);
    if (writer->has_failed)
        return;
    instruction->in[0] = operand;
    if (is_narrowed) {
        instruction->half = half_of(HALF_NARROW, output->dtype);
        writer->held = -1;
    }
    memory_describe(writer, instruction, writer->specialization->outputs[number], output->data,
                    output->dtype, writer->specialization->layout.output_strides[number]);
}

/* ---- a program -------------------------------------------------------------------------------------------- */

static uint16_t step_operation(const struct writer *writer, const struct gni_step *step)
{
    const struct interpreter *interpreter = writer->interpreter;
    bool is_exp_half =
        step->op == GNI_OP_EXP && step->from == GN_FLOAT32 && gni_dtype_is_half(step->half);
    switch (step->kind) {
    case GNI_STEP_OP:
        if (step->op == GNI_OP_WHERE)
            return interpreter->choose;
        return interpreter->op[is_exp_half ? (int)OP_EXP_HALF : (int)step->op][step->from];
    case GNI_STEP_CONVERT:
        return interpreter->convert[step->from][step->held];
    case GNI_STEP_ROUND:
        return interpreter->round[step->half];
    case GNI_STEP_REDUCE:
        break;
    }
    return NONE;
}

/* Whether a step only changes what the last instruction made, which nobody else reads: then it becomes a part of that. */
static bool step_join(struct writer *writer, const struct gni_step *step, short value)
{
    short from = step->in[0];
    bool is_round = step->kind == GNI_STEP_ROUND && from >= writer->program->input_count;
    bool is_widen = step->kind == GNI_STEP_CONVERT && gni_dtype_is_half(step->from) &&
                    step->held == GN_FLOAT32 && from < writer->program->input_count;
    if ((!is_round && !is_widen) || from != writer->held || writer->readers[from] != 1 ||
        writer->slot[from] >= 0 || is_number(writer, from))
        return false;
    struct instruction *last = instruction_at(writer, writer->arguments.length - 1);
    if (last->half != HALF_NONE)
        return false;
    last->half = half_of(is_round ? HALF_ROUND : HALF_WIDEN, is_round ? step->half : step->from);
    writer->readers[from]--;
    writer->held = value;
    return true;
}

static void step_write(struct writer *writer, int s)
{
    const struct gni_step *step = &writer->program->steps[s];
    short value = (short)(writer->program->input_count + s);
    int16_t operands[3] = {NOTHING, NOTHING, NOTHING};
    if (writer->readers[value] == 0)
        return;
    if (step->kind == GNI_STEP_CONVERT)
        input_load(writer, step->in[0]);
    if (!writer->has_failed && step_join(writer, step, value))
        return;
    for (int i = 0; i < 3 && step->in[i] >= 0; i++)
        input_load(writer, step->in[i]);
    for (int i = 0; i < 3 && step->in[i] >= 0; i++)
        operands[i] = operand_find(writer, step->in[i]);
    operands_release(writer, step->in, 3);
    struct instruction *instruction = instruction_add(writer, step_operation(writer, step));
    if (!has_memory_type(writer->interpreter, step->from) ||
        !has_memory_type(writer->interpreter, step->held))
        writer->has_failed = true;
    memcpy(instruction->in, operands, sizeof operands);
    writer->held = value;
}

/* How often values are read by what is computed. */
static void readers_count(struct writer *writer)
{
    const struct gni_program *program = writer->program;
    memset(writer->readers, 0, sizeof writer->readers);
    for (int i = 0; i < program->output_count; i++)
        writer->readers[program->outputs[i].value]++;
    for (int s = program->step_count - 1; s >= 0; s--)
        for (int i = 0; i < 3 && program->steps[s].in[i] >= 0; i++)
            if (writer->readers[program->input_count + s] > 0)
                writer->readers[program->steps[s].in[i]]++;
}

static void program_write(struct writer *writer)
{
    const struct gni_program *program = writer->program;
    readers_count(writer);
    memset(writer->slot, -1, sizeof writer->slot);
    memset(writer->place, 0, sizeof writer->place);
    for (int s = 0; s < program->step_count && !writer->has_failed; s++)
        step_write(writer, s);
    for (int i = 0; i < program->output_count && !writer->has_failed; i++) {
        input_load(writer, program->outputs[i].value); /* before anything is stored: IT2 */
        if (i + 1 < program->output_count)
            held_keep(writer);
    }
    for (int i = 0; i < program->output_count && !writer->has_failed; i++)
        output_store(writer, i);
}

/* Whether a kernel has all types of a program. */
static bool has_program(const struct interpreter *interpreter, const struct gni_program *program)
{
    size_t most = memory_size_most(interpreter);
    bool has_all = true;
    for (int i = 0; i < program->input_count; i++)
        has_all &=
            has_memory_type(interpreter, program->inputs[i].held) &&
            (program->inputs[i].storage == NULL || gni_dtype_size(program->inputs[i].held) <= most);
    for (int s = 0; s < program->step_count; s++)
        has_all &= has_memory_type(interpreter, program->steps[s].held) &&
                   (program->steps[s].kind != GNI_STEP_CONVERT ||
                    has_memory_type(interpreter, program->steps[s].from)) &&
                   (program->steps[s].kind != GNI_STEP_OP ||
                    has_type(interpreter, program->steps[s].from));
    for (int i = 0; i < program->output_count; i++)
        has_all &= has_memory_type(interpreter, program->outputs[i].dtype) &&
                   gni_dtype_size(program->outputs[i].dtype) <= most;
    return has_all;
}

static enum kind kind_choose(const struct gni_program *program)
{
    int kind = 0;
    while (kind < KIND_WIDE && !has_program(interpreter_get(kind), program))
        kind++;
    return (enum kind)kind;
}

/* Of a block. */
static int slot_bytes(const struct interpreter *interpreter)
{
    return THREADS * interpreter->pack * interpreter->word;
}

/* Bytes of shared memory that a block may have. */
static int shared_most(gn_device *device)
{
    static _Atomic(int) known[GNI_DEVICE_MAX];
    int most = atomic_load_explicit(&known[device->index], memory_order_relaxed);
    gn_device_properties properties;
    if (most != 0 || device->ops->properties(device, &properties) != GN_OK)
        return most;
    most = (int)properties.shared_memory_per_block_optin;
    atomic_store_explicit(&known[device->index], most, memory_order_relaxed);
    return most;
}

/* Writes the instructions of a program; `writer` is set up, and has the specialization. */
static void writer_run(struct writer *writer, const gn_tensor *skip)
{
    const struct gni_specialization *specialization = writer->specialization;
    struct arguments *arguments = &writer->arguments;
    memset(arguments, 0, sizeof *arguments);
    arguments->count = (uint64_t)writer->program->count;
    if (skip != NULL) { /* a number is 0 where these bits are, and -0.0 is 0 */
        size_t size = gni_dtype_size(skip->dtype);
        arguments->skip = gni_tensor_data(skip);
        arguments->skip_bytes = (int64_t)size;
        arguments->skip_mask = UINT64_MAX >> (64 - 8 * size + gni_dtype_is_floating(skip->dtype));
    }
    arguments->is_wide = specialization->is_wide;
    if (specialization->is_strided) {
        const struct gni_layout *layout = &specialization->layout;
        arguments->ndim = layout->ndim;
        arguments->sizes = words_take(writer, layout->ndim);
        memcpy(&arguments->words[arguments->sizes], layout->sizes,
               (size_t)layout->ndim * sizeof *layout->sizes);
    }
    program_write(writer);
}

bool gni_interpret_prepare(const struct gni_program *program, const gn_tensor *skip,
                           gn_device *device, struct gni_interpretation *interpretation)
{
    struct gni_specialization specialization;
    struct writer writer; /* large, and what is read of it is set below */
    const struct interpreter *interpreter = interpreter_get((int)kind_choose(program));
    int64_t packs = gni_divided_up(program->count, interpreter->pack);
    gni_specialization_make(&specialization, program);
    writer.interpreter = interpreter;
    writer.program = program;
    writer.specialization = &specialization;
    writer.word = WORDS;
    writer.held = -1;
    writer.slots = 0;
    writer.taken = 0;
    int slots = shared_most(device) / slot_bytes(interpreter);
    writer.slots_most = slots < SLOTS_MOST ? slots : SLOTS_MOST;
    writer.has_failed = gni_divided_up(packs, THREADS) > INT32_MAX;
    writer_run(&writer, skip);
    if (writer.has_failed) {
        gni_log(GNI_LOG_DEBUG,
                "a program of %d steps waits for its kernel: it is too large to be "
                "interpreted",
                program->step_count);
        return false;
    }
    interpretation->kind = (int)interpreter->kind;
    interpretation->blocks = (unsigned)gni_divided_up(packs, THREADS);
    interpretation->shared_bytes = (size_t)(writer.slots * slot_bytes(interpreter));
    memcpy(interpretation->arguments, &writer.arguments, sizeof writer.arguments);
    return true;
}

gn_status gni_interpret_submit(struct gni_interpretation *interpretation, gn_stream *stream)
{
    struct gni_kernel *kernel;
    GN_TRY(kernel_get(interpreter_get(interpretation->kind), stream->device, &kernel));
    void *addresses[] = {interpretation->arguments};
    const struct gni_launch launch = {.grid = {interpretation->blocks, 1, 1},
                                      .block = {THREADS, 1, 1},
                                      .shared_bytes = interpretation->shared_bytes,
                                      .arguments = addresses,
                                      .argument_bytes = sizeof interpretation->arguments,
                                      .waits = true};
    return gni_kernel_launch(kernel, stream, &launch);
}

gn_status gni_interpret(const struct gni_program *program, gn_stream *stream, bool *is_done)
{
    struct gni_interpretation interpretation;
    *is_done = gni_interpret_prepare(program, NULL, stream->device, &interpretation);
    return *is_done ? gni_interpret_submit(&interpretation, stream) : GN_OK;
}
