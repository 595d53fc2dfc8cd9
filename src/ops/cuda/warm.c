/*
 * warm.c: the kernels of common operations, made before they are needed, several at the same time.
 *
 * They are those of one operation on contiguous float32 tensors: with a tensor, with a number, alone, and reduced along
 * rows and columns. Chains have kernels of their own, which are made when a chain is first met. Specializations are made as
 * cuda_run.c makes them: a test holds the two together.
 */
#include "ops/cuda/cuda_ops.h"

#include "base/host.h"
#include "jit/background.h"
#include "jit/kernel.h"
#include "jit/trim.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/row_kernel.h"

#include <string.h>

/* What is made of one operation. */
enum {
    WITH_TENSOR = 1,
    WITH_NUMBER = 2,
    ALONE = 4,
};

static const struct {
    enum gni_op op;
    unsigned ways;
} operations[] = {
    {GNI_OP_ADD, WITH_TENSOR | WITH_NUMBER},
    {GNI_OP_SUBTRACT, WITH_TENSOR | WITH_NUMBER},
    {GNI_OP_MULTIPLY, WITH_TENSOR | WITH_NUMBER},
    {GNI_OP_DIVIDE, WITH_TENSOR | WITH_NUMBER},
    {GNI_OP_EXP, ALONE},
    {GNI_OP_SQRT, ALONE},
    {GNI_OP_RELU, ALONE},
    {GNI_OP_TANH, ALONE},
    {GNI_OP_SIGMOID, ALONE},
};

static const gn_reduction reductions[] = {GN_REDUCE_SUM, GN_REDUCE_MEAN, GN_REDUCE_MAXIMUM};
static const enum gni_reduce_kind kinds[] = {GNI_REDUCE_ROWS, GNI_REDUCE_COLUMNS};

/* Rows whose reduction is a row program (row_kernel.h): one that 256 threads have, and several, of such and of short rows. */
static const int64_t shapes[][2] = {{1, 4096}, {2, 4096}, {2, 32}};

enum {
    ELEMENTS = 1 << 10, /* of the programs; no text depends on them */
    PACK = 4,           /* 16 bytes of float32 */
    OPERATION_COUNT = sizeof operations / sizeof *operations,
    REDUCTION_COUNT = sizeof reductions / sizeof *reductions,
    KIND_COUNT = sizeof kinds / sizeof *kinds,
    SHAPE_COUNT = sizeof shapes / sizeof *shapes,
    KERNELS_MOST = 1 + 3 * OPERATION_COUNT + REDUCTION_COUNT * (KIND_COUNT + SHAPE_COUNT),
};

struct kernel {
    unsigned char signature[GNI_CUDA_SIGNATURE_MOST];
    char name[GN_KERNEL_NAME_CAPACITY];
    struct gni_builder text;
};

/* The kernels that are to be made, and what their programs pretend to read. */
struct list {
    size_t count;
    struct kernel kernels[KERNELS_MOST];
    struct gni_kernel_source sources[KERNELS_MOST];
    struct gni_storage storages[2];
    struct gni_program program;
    struct gni_specialization specialization;
    struct gni_row_kernel row_kernel;
};

static struct kernel *list_next(struct list *list)
{
    gni_assert(list->count < KERNELS_MOST);
    return &list->kernels[list->count];
}

/* The next kernel has its name, its text, and a signature of so many bytes. */
static void list_add(struct list *list, size_t signature_size)
{
    struct kernel *kernel = list_next(list);
    list->sources[list->count++] = (struct gni_kernel_source){.name = kernel->name,
                                                              .text = kernel->text.text,
                                                              .signature = kernel->signature,
                                                              .signature_size = signature_size};
}

static void list_add_specialization(struct list *list)
{
    struct kernel *kernel = list_next(list);
    list->specialization.pack = PACK;
    gni_specialization_name(&list->specialization, kernel->name, sizeof kernel->name);
    gni_specialization_text(&list->specialization, kernel->name, &kernel->text);
    list_add(list, gni_specialization_sign(&list->specialization, kernel->signature));
}

static short list_add_input(struct list *list, int index)
{
    static const int64_t stride = 1;
    return gni_program_add_memory(&list->program, &list->storages[index], 0, GN_FLOAT32, &stride);
}

static short list_add_number(struct list *list)
{
    return gni_program_add_number(&list->program, (gn_scalar){.kind = GN_FLOAT64, .floating = 2},
                                  GN_FLOAT32);
}

static void list_begin(struct list *list)
{
    static const int64_t size = ELEMENTS;
    gni_program_init(&list->program, 1, &size, NULL);
}

/* A value of the program is what the kernel stores. */
static void list_end(struct list *list, short value)
{
    list->program.outputs[list->program.output_count++] =
        (struct gni_output){.value = value, .dtype = GN_FLOAT32};
    gni_specialization_make(&list->specialization, &list->program);
    list_add_specialization(list);
}

static void list_add_operation(struct list *list, enum gni_op op, unsigned way)
{
    short in[3] = {0};
    list_begin(list);
    in[0] = list_add_input(list, 0);
    if (way == WITH_TENSOR)
        in[1] = list_add_input(list, 1);
    if (way == WITH_NUMBER)
        in[1] = list_add_number(list);
    list_end(list, gni_program_add_op(&list->program, op, GN_FLOAT32, GN_FLOAT32, GN_FLOAT32,
                                      way == ALONE ? 1 : 2, in));
}

static void list_add_reduction(struct list *list, gn_reduction reduction, enum gni_reduce_kind kind)
{
    list_begin(list);
    short value = list_add_input(list, 0);
    gni_specialization_make(&list->specialization, &list->program);
    list->specialization.reduction = reduction;
    list->specialization.value = value;
    list->specialization.result = GN_FLOAT32;
    list->specialization.kind = kind;
    list->specialization.steps = GNI_REDUCE_TOGETHER;
    list_add_specialization(list);
}

static void list_add_rows(struct list *list, gn_reduction reduction, const int64_t *shape)
{
    struct gni_program *program = &list->program;
    struct kernel *kernel = list_next(list);
    const int64_t strides[] = {shape[1], 1};
    gni_program_init(program, 2, shape, NULL);
    program->row_ndim = 1;
    program->columns = shape[1];
    short value = gni_program_add_memory(program, &list->storages[0], 0, GN_FLOAT32, strides);
    value = gni_program_reduce(program, reduction, value, GN_FLOAT32);
    program->outputs[program->output_count++] =
        (struct gni_output){.value = value, .dtype = GN_FLOAT32, .is_row = true};
    gni_row_kernel_make(&list->row_kernel, program);
    gni_row_kernel_name(&list->row_kernel, kernel->name, sizeof kernel->name);
    gni_row_kernel_text(&list->row_kernel, kernel->name, &kernel->text);
    list_add(list, gni_row_kernel_sign(&list->row_kernel, kernel->signature));
}

static void list_fill(struct list *list)
{
    list_begin(list); /* zeros(), ones() and full() */
    list_end(list, list_add_number(list));
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        for (unsigned way = WITH_TENSOR; way <= ALONE; way *= 2)
            if ((operations[i].ways & way) != 0)
                list_add_operation(list, operations[i].op, way);
    for (size_t i = 0; i < REDUCTION_COUNT; i++)
        for (size_t k = 0; k < KIND_COUNT; k++)
            list_add_reduction(list, reductions[i], kinds[k]);
    for (size_t i = 0; i < REDUCTION_COUNT; i++)
        for (size_t k = 0; k < SHAPE_COUNT; k++)
            list_add_rows(list, reductions[i], shapes[k]);
}

void gni_cuda_warm_list(struct gni_kernel_list *to)
{
    struct list *list = gni_host_alloc(sizeof *list);
    if (list == NULL) {
        to->has_failed = true;
        return;
    }
    list_fill(list);
    for (size_t i = 0; i < list->count; i++)
        gni_kernel_list_add(to, list->kernels[i].name, &list->kernels[i].text);
    gni_host_free(list);
}

/* The texts as gni_kernel_build() compiles them, so that a later process finds them on disk, whoever made them. */
static gn_status list_trim(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct gni_builder *text = &list->kernels[i].text, trimmed = {.text = NULL};
        if (!text->has_failed)
            gni_text_trim(text->text, &trimmed);
        if (text->has_failed || trimmed.has_failed) {
            gni_builder_deinit(&trimmed);
            return gni_error_host_memory(text->length);
        }
        gni_builder_deinit(text);
        *text = trimmed;
        list->sources[i].text = text->text;
    }
    return GN_OK;
}

static gn_status list_make(struct list *list, gn_device *device)
{
    GN_TRY(list_trim(list));
    return gni_kernel_prepare(device, list->sources, list->count);
}

static void list_request(struct list *list, gn_device *device)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct gni_kernel_source *source = &list->sources[i];
        gni_kernel_request(device, source->name, &list->kernels[i].text, source->signature,
                           source->signature_size, 0, 0);
    }
}

gn_status gni_cuda_warm_up(gn_device *device, bool is_waiting)
{
    gn_status status = GN_OK;
    struct list *list = gni_host_alloc(sizeof *list);
    if (list == NULL)
        return gni_error_host_memory(sizeof *list);
    list_fill(list);
    if (is_waiting)
        status = list_make(list, device);
    else
        list_request(list, device);
    for (size_t i = 0; i < list->count; i++)
        gni_builder_deinit(&list->kernels[i].text);
    gni_host_free(list);
    return status;
}
