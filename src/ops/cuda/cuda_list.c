/*
 * cuda_list.c: list programs (ops/list_program.h) on a GPU: the text of a group's kernel, around list.cu, and its launches.
 *
 * Addresses and numbers of elements are arguments of the kernel, so that there is no table to be kept, copied or freed, also
 * where the launch is captured. A launch has as many entries as its arguments have room for: 4 KiB everywhere, 32 KiB with
 * CUDA 12.1.
 */
#include "ops/list_program.h"

#include "base/host.h"
#include "base/text.h"
#include "jit/kernel.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/interpret.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"
#include "ops/cuda/program_kernel.h"

#include <stdio.h>
#include <string.h>

enum {
    ARGUMENT_BYTES = 4096,
    ARGUMENT_BYTES_LARGE = 32764,
    LARGE_VERSION = 12010,
    BLOCK_PACKS = 16, /* of each thread of a block */
    TOGETHER = 2,     /* packs in flight */
    TOGETHER_REDUCED = 4,
    JOIN_ENTRIES = 248, /* that fit into 4 KiB of arguments */
    GRID_MOST = 1 << 30,
    SIGNATURE_MOST = 64 + 4 * GNI_PROGRAM_INPUTS_MOST + 12 * GNI_PROGRAM_STEPS_MOST,
    WORDS_MOST = ARGUMENT_BYTES_LARGE / 8,
};

/* A group's kernel: what its text depends on. */
struct list_kernel {
    const struct gni_list_program *list;
    int capacity; /* entries of a launch */
    int together;
};

static bool is_number(const struct list_kernel *kernel, int input)
{
    return kernel->list->program->inputs[input].storage == NULL;
}

static bool is_scalar(const struct list_kernel *kernel, int value)
{
    return kernel->list->is_scalar[value];
}

/* Whether an input is an element for each element of an entry. */
static bool is_packed(const struct list_kernel *kernel, int input)
{
    return !is_scalar(kernel, input);
}

/* ---- the text ---------------------------------------------------------------------------------------- */

static void arguments_text(const struct list_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->list->program;
    gni_builder_print(text, "\nstruct arguments {\n    const skip_type *skip;\n"
                            "    int64 entries;\n    void *partial;\n");
    for (int i = 0; i < program->input_count; i++) {
        if (is_number(kernel, i))
            gni_builder_print(text, "    __align__(8) %s number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i);
        else if (kernel->list->input_places[i] < 0)
            gni_builder_print(text, "    const %s *in%d;\n",
                              gni_cuda_memory_type(program->inputs[i].held), i);
    }
    gni_builder_print(text, "    int64 first[%d], count[%d];\n    char *place[%d][%d];\n};\n\n",
                      kernel->capacity, kernel->capacity, kernel->list->place_count,
                      kernel->capacity);
}

/* Whether a step that is for each element, or an output, reads a scalar value. */
static bool is_read_scalar(const struct list_kernel *kernel, int value)
{
    const struct gni_program *program = kernel->list->program;
    for (int s = 0; s < program->step_count; s++)
        for (int i = 0; i < 3; i++)
            if (program->steps[s].in[i] == value && !is_scalar(kernel, program->input_count + s))
                return true;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value)
            return true;
    return false;
}

static void scalars_text(const struct list_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->list->program;
    int count = program->input_count + program->step_count;
    gni_builder_print(text, "struct scalars {\n    int none;\n");
    for (int v = 0; v < count; v++)
        if (is_scalar(kernel, v) && is_read_scalar(kernel, v))
            gni_builder_print(text, "    %s v%d;\n",
                              gni_cuda_type(gni_program_held(program, (short)v)), v);
    gni_builder_print(text, "};\n\nELEMENT scalars scalars_find(const arguments &a, int entry)\n{\n"
                            "    scalars found;\n    found.none = 0;\n");
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        const char *memory = gni_cuda_memory_type(program->inputs[i].held);
        if (is_number(kernel, i))
            gni_builder_print(text, "    const %s v%d = a.number%d;\n", type, i, i);
        else if (kernel->list->input_places[i] < 0)
            gni_builder_print(text, "    const %s v%d = loaded<%s>(*a.in%d);\n", type, i, type, i);
        else if (is_scalar(kernel, i))
            gni_builder_print(text,
                              "    const %s v%d = loaded<%s>(*(const %s *)a.place[%d][entry]);\n",
                              type, i, type, memory, kernel->list->input_places[i]);
    }
    for (int s = 0; s < program->step_count; s++)
        if (is_scalar(kernel, program->input_count + s))
            gni_step_text(program, s, "    ", "", text);
    for (int v = 0; v < count; v++)
        if (is_scalar(kernel, v) && is_read_scalar(kernel, v))
            gni_builder_print(text, "    found.v%d = v%d;\n", v, v);
    gni_builder_print(text, "    return found;\n}\n\n");
}

static void places_text(const struct list_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->list->program;
    gni_builder_print(text, "struct places {\n    int none;\n");
    for (int i = 0; i < program->input_count; i++)
        if (is_packed(kernel, i))
            gni_builder_print(text, "    const %s *in%d;\n",
                              gni_cuda_memory_type(program->inputs[i].held), i);
    for (int i = 0; i < program->output_count; i++)
        if (kernel->list->output_places[i] >= 0)
            gni_builder_print(text, "    %s *out%d;\n",
                              gni_cuda_memory_type(program->outputs[i].dtype), i);
    gni_builder_print(text, "};\n\nELEMENT places places_find(const arguments &a, int entry)\n{\n"
                            "    places found;\n    found.none = 0;\n");
    for (int i = 0; i < program->input_count; i++)
        if (is_packed(kernel, i))
            gni_builder_print(text, "    found.in%d = (const %s *)a.place[%d][entry];\n", i,
                              gni_cuda_memory_type(program->inputs[i].held),
                              kernel->list->input_places[i]);
    for (int i = 0; i < program->output_count; i++)
        if (kernel->list->output_places[i] >= 0)
            gni_builder_print(text, "    found.out%d = (%s *)a.place[%d][entry];\n", i,
                              gni_cuda_memory_type(program->outputs[i].dtype),
                              kernel->list->output_places[i]);
    gni_builder_print(text, "    return found;\n}\n\n");
}

static void load_text(const struct list_kernel *kernel, bool is_partial, struct gni_builder *text)
{
    const struct gni_program *program = kernel->list->program;
    int pack = kernel->list->pack;
    gni_builder_print(text,
                      "ELEMENT packs packs_load%s(const places &at, int64 i%s)\n{\n"
                      "    packs p%s;\n    p.none = 0;\n",
                      is_partial ? "_some" : "", is_partial ? ", int n" : "",
                      is_partial ? " = {}" : "");
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_memory_type(program->inputs[i].held);
        if (is_packed(kernel, i) && is_partial)
            gni_builder_print(text,
                              "    for (int k = 0; k < %d; k++)\n        if (k < n)\n"
                              "            p.p%d.item[k] = at.in%d[i + k];\n",
                              pack, i, i);
        else if (is_packed(kernel, i))
            gni_builder_print(text, "    p.p%d = *(const pack<%s, %d> *)(at.in%d + i);\n", i, type,
                              pack, i);
    }
    gni_builder_print(text, "    return p;\n}\n\n");
}

static void store_text(const struct list_kernel *kernel, bool is_partial, struct gni_builder *text)
{
    const struct gni_program *program = kernel->list->program;
    int pack = kernel->list->pack;
    gni_builder_print(text,
                      "ELEMENT void packs_store%s(const places &at, int64 i, const results &q%s)\n"
                      "{\n",
                      is_partial ? "_some" : "", is_partial ? ", int n" : "");
    for (int i = 0; i < program->output_count; i++) {
        if (is_partial)
            gni_builder_print(text,
                              "    for (int k = 0; k < %d; k++)\n        if (k < n)\n"
                              "            at.out%d[i + k] = q.q%d.item[k];\n",
                              pack, i, i);
        else
            gni_builder_print(text, "    *(pack<%s, %d> *)(at.out%d + i) = q.q%d;\n",
                              gni_cuda_memory_type(program->outputs[i].dtype), pack, i, i);
    }
    gni_builder_print(text, "}\n\n");
}

static void packs_text(const struct list_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->list->program;
    gni_builder_print(text, "struct packs {\n    int none;\n");
    for (int i = 0; i < program->input_count; i++)
        if (is_packed(kernel, i))
            gni_builder_print(text, "    pack<%s, %d> p%d;\n",
                              gni_cuda_memory_type(program->inputs[i].held), kernel->list->pack, i);
    gni_builder_print(text, "};\n\n");
    load_text(kernel, false, text);
    load_text(kernel, true, text);
    if (kernel->list->is_reduced)
        return;
    gni_builder_print(text, "struct results {\n");
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    pack<%s, %d> q%d;\n",
                          gni_cuda_memory_type(program->outputs[i].dtype), kernel->list->pack, i);
    gni_builder_print(text, "};\n\n");
    store_text(kernel, false, text);
    store_text(kernel, true, text);
}

/* pack_compute(), or pack_value(). */
static void compute_text(const struct list_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->list->program;
    bool is_reduced = kernel->list->is_reduced;
    int count = program->input_count + program->step_count;
    gni_builder_print(text, "ELEMENT %s(const scalars &s, const packs &p, int k%s)\n{\n",
                      is_reduced ? "accumulator pack_value" : "void pack_compute",
                      is_reduced ? "" : ", results &q");
    for (int v = 0; v < count; v++)
        if (is_scalar(kernel, v) && is_read_scalar(kernel, v))
            gni_builder_print(text, "    const %s v%d = s.v%d;\n",
                              gni_cuda_type(gni_program_held(program, (short)v)), v, v);
    for (int i = 0; i < program->input_count; i++)
        if (is_packed(kernel, i)) {
            const char *type = gni_cuda_type(program->inputs[i].held);
            gni_builder_print(text, "    const %s v%d = loaded<%s>(p.p%d.item[k]);\n", type, i,
                              type, i);
        }
    for (int s = 0; s < program->step_count; s++)
        if (!is_scalar(kernel, program->input_count + s))
            gni_step_text(program, s, "    ", "", text);
    for (int i = 0; i < program->output_count && !is_reduced; i++)
        gni_builder_print(text, "    q.q%d.item[k] = convert<%s>(v%d);\n", i,
                          gni_cuda_type(program->outputs[i].dtype), program->outputs[i].value);
    if (is_reduced)
        gni_builder_print(text, "    return v%d;\n", program->outputs[0].value);
    gni_builder_print(text, "}\n\n");
}

static void reduction_text(gn_reduction reduction, struct gni_builder *text)
{
    gni_builder_add(text, gni_text_reductions, strlen(gni_text_reductions));
    gni_builder_print(text, "\ntypedef float64 accumulator;\n#define REDUCTION reduce_%s\n",
                      gni_cuda_reduction(reduction));
}

static void kernel_text(const struct list_kernel *kernel, const char *name,
                        struct gni_builder *text)
{
    const gn_tensor *skip = kernel->list->skip;
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text,
                      "\n#define NAME %s\n#define PACK %d\n#define TOGETHER %d\n"
                      "#define BLOCK_PACKS %d\ntypedef %s skip_type;\n",
                      name, kernel->list->pack, kernel->together, BLOCK_PACKS,
                      gni_cuda_memory_type(skip != NULL ? skip->dtype : GN_UINT8));
    if (kernel->list->is_reduced)
        reduction_text(kernel->list->reduction, text);
    arguments_text(kernel, text);
    scalars_text(kernel, text);
    places_text(kernel, text);
    packs_text(kernel, text);
    compute_text(kernel, text);
    gni_builder_add(text, gni_text_list, strlen(gni_text_list));
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

static size_t kernel_sign(const struct list_kernel *kernel, unsigned char *signature)
{
    const struct gni_list_program *list = kernel->list;
    const struct gni_program *program = list->program;
    unsigned char *at = signature;
    *at++ = 'L';
    memcpy(at, &kernel->capacity, sizeof kernel->capacity);
    at += sizeof kernel->capacity;
    *at++ = (unsigned char)list->pack;
    *at++ = (unsigned char)list->place_count;
    *at++ = (unsigned char)(list->is_reduced ? 1 + (int)list->reduction : 0);
    *at++ = (unsigned char)(list->skip != NULL ? list->skip->dtype : GN_UINT8);
    *at++ = (unsigned char)program->input_count;
    *at++ = (unsigned char)program->output_count;
    for (int i = 0; i < program->input_count; i++) {
        *at++ = (unsigned char)(is_number(kernel, i) << 1 | is_scalar(kernel, i));
        *at++ = (unsigned char)(list->input_places[i] + 1);
        *at++ = (unsigned char)program->inputs[i].held;
    }
    for (int i = 0; i < program->output_count; i++) {
        *at++ = (unsigned char)(list->output_places[i] + 1);
        *at++ = (unsigned char)program->outputs[i].dtype;
        memcpy(at, &program->outputs[i].value, sizeof program->outputs[i].value);
        at += sizeof program->outputs[i].value;
    }
    at += gni_steps_sign(program, at);
    return (size_t)(at - signature);
}

static void kernel_write(const void *context, char name[GNI_PROGRAM_KERNEL_NAME],
                         struct gni_builder *text)
{
    const struct list_kernel *kernel = context;
    size_t used = gni_program_words(kernel->list->program, name, GNI_PROGRAM_KERNEL_NAME);
    snprintf(name + used, GNI_PROGRAM_KERNEL_NAME - used, "list_kernel");
    kernel_text(kernel, name, text);
}

/* Whether kernels can have 32 KiB of arguments: a driver and an NVRTC of CUDA 12.1 are there. */
static bool has_large_arguments(void)
{
    static _Atomic(int) known; /* 1: no, 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    gn_library_description library;
    if (answer != 0)
        return answer == 2;
    answer = 2;
    for (int i = 0; i < 2; i++) /* the first two */
        if (!gn_library_describe(i, &library) || !library.is_found ||
            library.version < LARGE_VERSION)
            answer = 1;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
    return answer == 2;
}

/* The entries that a launch has room for. */
static int capacity_choose(const struct gni_list_program *list)
{
    int words = 3 + list->program->input_count, each = 2 + list->place_count;
    int few = (ARGUMENT_BYTES / 8 - words) / each;
    return list->entry_count <= few || !has_large_arguments()
               ? few
               : (ARGUMENT_BYTES_LARGE / 8 - words) / each;
}

/* ---- launches -------------------------------------------------------------------------------------------- */

/* Elements of a block. */
static int64_t block_stretch(const struct gni_list_program *list)
{
    return (int64_t)GNI_FIXED_THREADS * list->pack * BLOCK_PACKS;
}

/* Fills in the arguments of some entries; returns how many blocks these have. */
static int64_t arguments_fill(const struct list_kernel *kernel, int begin, int count,
                              double *partial, uint64_t *arguments)
{
    const struct gni_list_program *list = kernel->list;
    const struct gni_program *program = list->program;
    int64_t stretch = block_stretch(list), blocks = 0;
    uint64_t *at = arguments;
    *at++ = list->skip != NULL ? (uintptr_t)gni_tensor_data(list->skip) : 0;
    *at++ = (uint64_t)count;
    *at++ = (uintptr_t)partial;
    for (int i = 0; i < program->input_count; i++) {
        if (is_number(kernel, i))
            *at++ = program->inputs[i].number;
        else if (list->input_places[i] < 0)
            *at++ = (uintptr_t)program->inputs[i].data;
    }
    uint64_t *counts = at + kernel->capacity, *places = counts + kernel->capacity;
    for (int e = 0; e < count; e++) {
        const struct gni_list_entry *entry = &list->entries[begin + e];
        at[e] = (uint64_t)blocks;
        counts[e] = (uint64_t)entry->count;
        for (int p = 0; p < list->place_count; p++)
            places[p * kernel->capacity + e] = (uintptr_t)entry->data[p];
        blocks += gni_divided_up(entry->count, stretch);
    }
    return blocks;
}

static size_t arguments_bytes(const struct list_kernel *kernel)
{
    const struct gni_list_program *list = kernel->list;
    size_t words = 3;
    for (int i = 0; i < list->program->input_count; i++)
        words += is_number(kernel, i) || list->input_places[i] < 0;
    return 8 * (words + (size_t)kernel->capacity * (size_t)(2 + list->place_count));
}

static gn_status launch(struct gni_kernel *compiled, int64_t blocks, uint64_t *arguments,
                        size_t nbytes, gn_stream *stream)
{
    void *addresses[] = {arguments};
    const struct gni_launch launch = {.grid = {(unsigned)blocks, 1, 1},
                                      .block = {GNI_FIXED_THREADS, 1, 1},
                                      .arguments = addresses,
                                      .argument_bytes = nbytes,
                                      .waits = true};
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld blocks are more than a kernel can have",
                         (long long)blocks);
    return gni_kernel_launch(compiled, stream, &launch);
}

/* What list.cu is told where it joins what blocks have left behind. */
struct join_arguments {
    const double *partial;
    double *result;
    int64_t entries, last;
    int64_t first[JOIN_ENTRIES], index[JOIN_ENTRIES];
};

/* By reduction; those without a word are none of lists. */
static const struct gni_fixed joins[GN_REDUCTION_COUNT] = {
#define JOIN(word, name)                                                                     \
    {                                                                                        \
        word, {gni_text_reductions, gni_text_list},                                          \
            "#define LIST_JOIN\n#define ENTRIES 248\ntypedef float64 accumulator;\n#define " \
            "REDUCTION "                                                                     \
            "reduce_" #name "\n"                                                             \
    }
    [GN_REDUCE_SUM] = JOIN("list_sum", sum),
    [GN_REDUCE_MAXIMUM] = JOIN("list_amax", amax),
    [GN_REDUCE_MINIMUM] = JOIN("list_amin", amin),
#undef JOIN
};

void gni_cuda_list_join_list(struct gni_kernel_list *list)
{
    for (int i = 0; i < GN_REDUCTION_COUNT; i++)
        if (joins[i].word != NULL)
            gni_kernel_list_add_fixed(list, &joins[i], GNI_TYPE(GN_FLOAT64));
}

/* Joins what the blocks of a launch have left behind. */
static gn_status join_run(const struct list_kernel *kernel, int begin, int count,
                          const uint64_t *first, int64_t blocks, const double *partial,
                          gn_stream *stream)
{
    const struct gni_fixed *fixed = &joins[kernel->list->reduction];
    struct join_arguments arguments = {.partial = partial, .result = kernel->list->results};
    for (int done = 0; done < count;) {
        int part = count - done < JOIN_ENTRIES ? count - done : JOIN_ENTRIES;
        for (int e = 0; e < part; e++) {
            arguments.first[e] = (int64_t)first[done + e];
            arguments.index[e] = kernel->list->entries[begin + done + e].index;
        }
        arguments.entries = part;
        arguments.last = done + part < count ? (int64_t)first[done + part] : blocks;
        GN_TRY(gni_fixed_launch(fixed, GN_FLOAT64, part, 1, &arguments, stream));
        done += part;
    }
    return GN_OK;
}

/* Some entries: all that one launch has room for. `compiled` is NULL where they are interpreted; `is_done` is false where
 * that cannot be. */
static gn_status part_run(const struct list_kernel *kernel, struct gni_kernel *compiled, int begin,
                          int count, gn_stream *stream, bool *is_done)
{
    const struct gni_list_program *list = kernel->list;
    uint64_t arguments[WORDS_MOST];
    size_t nbytes = arguments_bytes(kernel);
    struct gni_storage *partial = NULL;
    gni_assert(nbytes <= sizeof arguments);
    memset(arguments, 0, nbytes);
    int64_t blocks = arguments_fill(kernel, begin, count, NULL, arguments);
    if (list->is_reduced) {
        GN_TRY(
            gni_storage_create(stream->device, (size_t)blocks * sizeof(double), stream, &partial));
        arguments[2] = (uintptr_t)partial->data;
    }
    double *left = partial != NULL ? (double *)(void *)partial->data : NULL;
    *is_done = true;
    gn_status status =
        compiled != NULL
            ? launch(compiled, blocks, arguments, nbytes, stream)
            : gni_interpret_list(list, begin, count, block_stretch(list), left, stream, is_done);
    if (status == GN_OK && *is_done && list->is_reduced) {
        const uint64_t *first =
            arguments + (nbytes / 8 - (size_t)kernel->capacity * (size_t)(2 + list->place_count));
        status = join_run(kernel, begin, count, first, blocks, left, stream);
    }
    gni_storage_release(partial);
    return status;
}

gn_status gni_cuda_run_list(const struct gni_list_program *list, gn_stream *stream)
{
    struct list_kernel kernel = {.list = list,
                                 .capacity = capacity_choose(list),
                                 .together = list->is_reduced ? TOGETHER_REDUCED : TOGETHER};
    unsigned char signature[SIGNATURE_MOST];
    const struct gni_program_kernel wanted = {.program = list->program,
                                              .signature = signature,
                                              .signature_size = kernel_sign(&kernel, signature),
                                              .write = kernel_write,
                                              .context = &kernel};
    struct gni_kernel *compiled;
    GN_TRY(gni_program_kernel_find(stream, &wanted, &compiled));
    for (int begin = 0; begin < list->entry_count; begin += kernel.capacity) {
        int left = list->entry_count - begin;
        int count = left < kernel.capacity ? left : kernel.capacity;
        bool is_done;
        GN_TRY(part_run(&kernel, compiled, begin, count, stream, &is_done));
        if (is_done)
            continue;
        GN_TRY(gni_program_kernel_build(stream->device, &wanted, &compiled));
        GN_TRY(part_run(&kernel, compiled, begin, count, stream, &is_done));
    }
    return GN_OK;
}
