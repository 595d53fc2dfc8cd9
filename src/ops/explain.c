/*
 * explain.c: notes what work is submitted, as a JSON text (genesis/explain.h).
 *
 * Invariants:
 *   EX1 gni_backends refers to the tables here while a thread explains, and to the backends' own ones otherwise. A thread that
 *       does not explain may meet the tables here, which then call the real functions and note nothing;
 *   EX2 a work that is submitted by another one, which is being noted, is a part of that: `depth`.
 *
 * Threads: what is noted belongs to the thread.
 */
#include "ops/explain.h"

#include "base/json.h"
#include "base/host.h"
#include "base/thread.h"
#include "jit/profile.h"
#include "ops/backend.h"
#include "ops/list_program.h"
#include "ops/node.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    LAUNCHES_MOST = 16, /* of one work that are named */
    MEMORY_MOST = 4,    /* tensors of a work that is no program */
};

struct launch {
    char name[GN_KERNEL_NAME_CAPACITY];
};

/* What a thread has noted. */
struct notes {
    struct gni_json json;
    int depth; /* EX2 */
    const char *why;
    int resting_count;
    size_t resting_nbytes;
    int launch_count;
    struct launch launches[LAUNCHES_MOST];
};

/* A thread's notes are under this key: room for thread-local variables is scarce (src/device/device.h). */
static pthread_key_t notes_key;
static atomic_bool has_key;

/* NULL: the thread does not explain. */
static struct notes *notes_get(void)
{
    return atomic_load_explicit(&has_key, memory_order_acquire) ? pthread_getspecific(notes_key)
                                                                : NULL;
}

atomic_uint gni_explain_count;

/* A type of device has its table at its own number: the only place that names the types. */
#define TABLES                                                                   \
    {                                                                            \
        [GN_DEVICE_CPU] = &gni_cpu_backend, [GN_DEVICE_CUDA] = &gni_cuda_backend \
    }

static const struct gni_backend *const real_backends[GNI_DEVICE_TYPES] = TABLES;

_Atomic(const struct gni_backend *) gni_backends[GNI_DEVICE_TYPES] = TABLES;

static const struct gni_backend *real_of(const gn_device *device)
{
    return real_backends[device->type];
}

/* The same for a work on a stream: NULL on the CPU. */
static const struct gni_backend *real_of_stream(const gn_stream *stream)
{
    return stream != NULL ? real_of(stream->device) : &gni_cpu_backend;
}

/* ---- what is written ------------------------------------------------------------------------- */

static void shape_write(struct gni_json *json, int ndim, const int64_t *sizes)
{
    gni_json_key(json, "shape");
    gni_json_begin_array(json);
    for (int i = 0; i < ndim; i++)
        gni_json_int64(json, sizes[i]);
    gni_json_end_array(json);
}

/* Memory that is read or written: elements that a stride of 0 repeats count once. */
static void memory_write(struct gni_json *json, const void *data, gn_dtype dtype, int ndim,
                         const int64_t *sizes, const int64_t *strides, bool is_written)
{
    uint64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= strides != NULL && strides[i] == 0 ? 1 : (uint64_t)sizes[i];
    gni_json_begin_object(json);
    gni_json_key(json, "address");
    gni_json_uint64(json, (uintptr_t)data);
    gni_json_key(json, "bytes");
    gni_json_uint64(json, count * gni_dtype_size(dtype));
    gni_json_key(json, "dtype");
    gni_json_string(json, gn_dtype_name(dtype));
    shape_write(json, ndim, sizes);
    gni_json_key(json, "is_written");
    gni_json_bool(json, is_written);
    gni_json_end_object(json);
}

static void tensor_write(struct gni_json *json, const gn_tensor *tensor, bool is_written)
{
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    const char *data = storage != NULL ? gni_tensor_data(tensor) : NULL;
    memory_write(json, data, tensor->dtype, tensor->ndim, tensor->sizes, tensor->strides,
                 is_written);
}

static const char *device_text(const gn_device *device, struct gni_device_label *label)
{
    *label = gni_device_label(device);
    return label->text;
}

/* Begins the object of a work; its memory comes next. */
static void work_begin(const char *kind, const gn_device *device, int ndim, const int64_t *sizes)
{
    struct gni_json *json = &notes_get()->json;
    struct gni_device_label label;
    gni_json_begin_object(json);
    gni_json_key(json, "kind");
    gni_json_string(json, kind);
    gni_json_key(json, "why");
    gni_json_string(json, notes_get()->why);
    gni_json_key(json, "device");
    gni_json_string(json, device_text(device, &label));
    shape_write(json, ndim, sizes);
    gni_json_key(json, "memory");
    gni_json_begin_array(json);
}

static void work_end(void)
{
    struct gni_json *json = &notes_get()->json;
    gni_json_key(json, "resting");
    gni_json_int64(json, notes_get()->resting_count);
    gni_json_key(json, "resting_bytes");
    gni_json_uint64(json, notes_get()->resting_nbytes);
    gni_json_key(json, "launches");
    gni_json_begin_array(json);
    for (int i = 0; i < notes_get()->launch_count; i++)
        gni_json_string(json, notes_get()->launches[i].name);
    gni_json_end_array(json);
    gni_json_end_object(json);
    notes_get()->why = NULL;
    notes_get()->resting_count = 0;
    notes_get()->resting_nbytes = 0;
    notes_get()->launch_count = 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

static const char *step_name(const struct gni_step *step)
{
    switch (step->kind) {
    case GNI_STEP_OP:
        return gni_ops[step->op].name;
    case GNI_STEP_CONVERT:
        return "convert";
    case GNI_STEP_ROUND:
        return "round";
    case GNI_STEP_REDUCE:
        return gni_reduction_name(step->reduction);
    }
    return "";
}

static void step_write(struct gni_json *json, const struct gni_program *program, int s)
{
    const struct gni_step *step = &program->steps[s];
    gni_json_begin_object(json);
    gni_json_key(json, "op");
    gni_json_string(json, step_name(step));
    gni_json_key(json, "in");
    gni_json_begin_array(json);
    for (int i = 0; i < 3 && step->in[i] >= 0; i++)
        gni_json_int64(json, step->in[i]);
    gni_json_end_array(json);
    gni_json_key(json, "dtype");
    gni_json_string(json, gn_dtype_name(step->half));
    gni_json_key(json, "is_row");
    gni_json_bool(json, program->row_ndim > 0 && program->is_row[program->input_count + s]);
    gni_json_end_object(json);
}

/* A number as an input holds it. */
static void number_write(struct gni_json *json, const struct gni_input *input)
{
    double floating;
    float single;
    switch (input->held) {
    case GN_FLOAT64:
        memcpy(&floating, &input->number, sizeof floating);
        gni_json_double(json, floating);
        break;
    case GN_FLOAT32:
        memcpy(&single, &input->number, sizeof single);
        gni_json_double(json, (double)single);
        break;
    case GN_UINT64:
        gni_json_uint64(json, input->number);
        break;
    case GN_BOOL:
        gni_json_bool(json, (input->number & 1) != 0);
        break;
    default: {
        /* The low bytes, with their sign. */
        int spare = 64 - 8 * (int)gni_dtype_size(input->held);
        bool is_signed =
            input->held != GN_UINT8 && input->held != GN_UINT16 && input->held != GN_UINT32;
        uint64_t high = input->number << spare;
        gni_json_int64(json, is_signed ? (int64_t)high >> spare : (int64_t)(high >> spare));
    }
    }
}

static void inputs_write(struct gni_json *json, const struct gni_program *program)
{
    int memory = 0;
    gni_json_key(json, "inputs");
    gni_json_begin_array(json);
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        gni_json_begin_object(json);
        gni_json_key(json, input->data != NULL ? "memory" : "number");
        if (input->data != NULL)
            gni_json_int64(json, memory++);
        else
            number_write(json, input);
        gni_json_end_object(json);
    }
    gni_json_end_array(json);
}

static void steps_write(struct gni_json *json, const struct gni_program *program)
{
    gni_json_key(json, "steps");
    gni_json_begin_array(json);
    for (int s = 0; s < program->step_count; s++)
        step_write(json, program, s);
    gni_json_end_array(json);
}

/* Where outputs are is told by the number of the first one's memory. */
static void outputs_write(struct gni_json *json, const struct gni_program *program, int memory)
{
    gni_json_key(json, "outputs");
    gni_json_begin_array(json);
    for (int i = 0; i < program->output_count; i++) {
        gni_json_begin_object(json);
        gni_json_key(json, "value");
        gni_json_int64(json, program->outputs[i].value);
        gni_json_key(json, "memory");
        gni_json_int64(json, memory + i);
        gni_json_end_object(json);
    }
    gni_json_end_array(json);
}

/* The memory of a program's inputs; how many there are. */
static int inputs_memory_write(struct gni_json *json, const struct gni_program *program)
{
    int count = 0;
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        if (input->data == NULL)
            continue;
        memory_write(json, input->data, input->held, program->ndim, program->sizes, input->strides,
                     false);
        count++;
    }
    return count;
}

static void output_memory_write(struct gni_json *json, const struct gni_program *program,
                                const struct gni_output *output)
{
    int rest = program->ndim - program->row_ndim;
    const int64_t *columns = program->sizes + rest;
    if (output->is_row)
        memory_write(json, output->data, output->dtype, rest, program->sizes, NULL, true);
    else if (output->is_column)
        memory_write(json, output->data, output->dtype, program->row_ndim, columns, NULL, true);
    else
        memory_write(json, output->data, output->dtype, program->ndim, program->sizes, NULL, true);
}

/* A work that runs a program. `result` takes `value`, which is no output; NULL: there are outputs. */
static void program_write(const char *kind, const struct gni_program *program,
                          const gn_device *device, short value, const gn_tensor *result)
{
    struct gni_json *json = &notes_get()->json;
    work_begin(kind, device, program->ndim, program->sizes);
    int inputs = inputs_memory_write(json, program);
    for (int i = 0; i < program->output_count; i++)
        output_memory_write(json, program, &program->outputs[i]);
    if (result != NULL)
        tensor_write(json, result, true);
    gni_json_end_array(json);
    inputs_write(json, program);
    steps_write(json, program);
    if (result == NULL) {
        outputs_write(json, program, inputs);
    } else {
        gni_json_key(json, "outputs");
        gni_json_begin_array(json);
        gni_json_begin_object(json);
        gni_json_key(json, "value");
        gni_json_int64(json, value);
        gni_json_key(json, "memory");
        gni_json_int64(json, inputs);
        gni_json_end_object(json);
        gni_json_end_array(json);
    }
    work_end();
}

/* ---- the tables ------------------------------------------------------------------------------ */

/* Whether the work that begins is noted. */
static bool note_begin(void)
{
    if (notes_get() == NULL)
        return false;
    return notes_get()->depth++ == 0;
}

static void note_end(void)
{
    if (notes_get() != NULL)
        notes_get()->depth--;
}

static void launch_note(const char *name)
{
    if (notes_get() == NULL || notes_get()->launch_count == LAUNCHES_MOST)
        return;
    struct launch *launch = &notes_get()->launches[notes_get()->launch_count++];
    (void)snprintf(launch->name, sizeof launch->name, "%s", name);
}

/* A work on tensors that is no program. Those that are NULL count for nothing. */
static void tensors_note(const char *kind, const gn_device *device, int read_count,
                         gn_tensor *const *read, int written_count, gn_tensor *const *written)
{
    const gn_tensor *shown = NULL;
    for (int i = 0; i < written_count && shown == NULL; i++)
        shown = written[i];
    for (int i = 0; i < read_count && shown == NULL; i++)
        shown = read[i];
    work_begin(kind, device, shown != NULL ? shown->ndim : 0, shown != NULL ? shown->sizes : NULL);
    for (int i = 0; i < read_count; i++)
        if (read[i] != NULL)
            tensor_write(&notes_get()->json, read[i], false);
    for (int i = 0; i < written_count; i++)
        if (written[i] != NULL)
            tensor_write(&notes_get()->json, written[i], true);
    gni_json_end_array(&notes_get()->json);
    work_end();
}

/* The same for elements of one tensor that another one, of `ndim` and `sizes`, takes or gives. */
static void places_note(const char *kind, const gn_tensor *whole, int ndim, const int64_t *sizes,
                        bool is_written, const gn_tensor *other)
{
    work_begin(kind, whole->device, ndim, sizes);
    if (other != NULL && is_written)
        tensor_write(&notes_get()->json, other, false);
    memory_write(&notes_get()->json, gni_tensor_data(whole), whole->dtype, ndim, sizes, NULL,
                 is_written);
    if (other != NULL && !is_written)
        tensor_write(&notes_get()->json, other, true);
    gni_json_end_array(&notes_get()->json);
    work_end();
}

/* Calls the real function; if it succeeds, `note` is done. */
#define EXPLAINED(call, note)            \
    do {                                 \
        bool is_noted = note_begin();    \
        gn_status status = call;         \
        if (is_noted && status == GN_OK) \
            note;                        \
        note_end();                      \
        return status;                   \
    } while (0)

#define READ(...)                                                                      \
    (int)(sizeof((gn_tensor *[]){__VA_ARGS__}) / sizeof(gn_tensor *)), (gn_tensor *[]) \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define WRITTEN READ
#define NOTHING 0, NULL

/* A backend may add steps to a program that it runs: what is shown is a copy from before. */
static gn_status explained_run(struct gni_program *program, gn_stream *stream)
{
    const struct gni_backend *real = real_of_stream(stream);
    if (notes_get() == NULL || notes_get()->depth > 0)
        return real->run(program, stream);
    const struct gni_program shown = *program;
    gn_device *device = stream != NULL ? stream->device : NULL;
    if (device == NULL)
        GN_TRY(gni_device_get_host(&device));
    EXPLAINED(real->run(program, stream),
              program_write(shown.row_ndim > 0 ? "rows" : "elementwise", &shown, device, 0, NULL));
}

static gn_status explained_reduce(struct gni_program *program, short value,
                                  const struct gni_reduction_task *task, gn_tensor *result,
                                  gn_stream *stream)
{
    const struct gni_backend *real = real_of(result->device);
    if (notes_get() == NULL || notes_get()->depth > 0)
        return real->reduce(program, value, task, result, stream);
    const struct gni_program shown = *program;
    EXPLAINED(
        real->reduce(program, value, task, result, stream),
        program_write(gni_reduction_name(task->reduction), &shown, result->device, value, result));
}

static gn_status explained_softmax(struct gni_program *program, short value, int64_t rows,
                                   bool is_log, gn_tensor *result, gn_stream *stream)
{
    const struct gni_backend *real = real_of(result->device);
    if (notes_get() == NULL || notes_get()->depth > 0)
        return real->softmax(program, value, rows, is_log, result, stream);
    const struct gni_program shown = *program;
    EXPLAINED(
        real->softmax(program, value, rows, is_log, result, stream),
        program_write(is_log ? "log_softmax" : "softmax", &shown, result->device, value, result));
}

/* Each place of each entry is memory. */
static void list_write(const struct gni_list_program *list, const gn_device *device)
{
    struct gni_json *json = &notes_get()->json;
    const struct gni_program *program = list->program;
    int64_t count = list->entry_count;
    work_begin("list", device, 1, &count);
    for (int e = 0; e < list->entry_count; e++) {
        const struct gni_list_entry *entry = &list->entries[e];
        for (int i = 0; i < program->input_count; i++)
            if (list->input_places[i] >= 0)
                memory_write(json, entry->data[list->input_places[i]], program->inputs[i].held, 1,
                             &entry->count, NULL, false);
        for (int i = 0; i < program->output_count; i++)
            if (list->output_places[i] >= 0)
                memory_write(json, entry->data[list->output_places[i]], program->outputs[i].dtype,
                             1, &entry->count, NULL, true);
    }
    gni_json_end_array(json);
    steps_write(json, program);
    work_end();
}

static gn_status explained_run_list(const struct gni_list_program *list, gn_stream *stream)
{
    const struct gni_backend *real = real_of_stream(stream);
    EXPLAINED(real->run_list(list, stream), list_write(list, stream->device));
}

static gn_status explained_random(const struct gni_random *random, gn_tensor *out,
                                  gn_stream *stream)
{
    EXPLAINED(real_of(out->device)->random(random, out, stream),
              tensors_note("random", out->device, NOTHING, WRITTEN(out)));
}

static gn_status explained_extreme(gn_tensor *tensor, const struct gni_along *along,
                                   bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                   gn_stream *stream)
{
    EXPLAINED(real_of(tensor->device)->extreme(tensor, along, is_maximum, values, indices, stream),
              tensors_note("extreme", tensor->device, READ(tensor), WRITTEN(values, indices)));
}

static gn_status explained_cumulate(gn_tensor *tensor, const struct gni_along *along,
                                    bool is_product, gn_tensor *result, gn_stream *stream)
{
    EXPLAINED(real_of(tensor->device)->cumulate(tensor, along, is_product, result, stream),
              tensors_note("scan", tensor->device, READ(tensor), WRITTEN(result)));
}

static gn_status explained_cumulate_extreme(gn_tensor *tensor, const struct gni_along *along,
                                            bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                            gn_stream *stream)
{
    EXPLAINED(real_of(tensor->device)
                  ->cumulate_extreme(tensor, along, is_maximum, values, indices, stream),
              tensors_note("scan", tensor->device, READ(tensor), WRITTEN(values, indices)));
}

static gn_status explained_select(gn_tensor *rows, const struct gni_selection *selection,
                                  gn_tensor *values, gn_tensor *indices, gn_stream *stream)
{
    EXPLAINED(real_of(rows->device)->select(rows, selection, values, indices, stream),
              tensors_note("sort", rows->device, READ(rows), WRITTEN(values, indices)));
}

static gn_status explained_unique(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse,
                                  gn_tensor *counts, int64_t *found, gn_stream *stream)
{
    EXPLAINED(
        real_of(tensor->device)->unique(tensor, values, inverse, counts, found, stream),
        tensors_note("unique", tensor->device, READ(tensor), WRITTEN(values, inverse, counts)));
}

/* A matrix of a product, with its batch. */
static void matrix_write(const struct gni_product *product, const struct gni_matrix *matrix,
                         int64_t rows, int64_t columns, const int64_t *steps, bool is_written)
{
    int64_t sizes[GN_DIMENSIONS_MAX + 2], strides[GN_DIMENSIONS_MAX + 2];
    int ndim = product->batch_ndim;
    for (int i = 0; i < ndim; i++) {
        sizes[i] = product->batch_sizes[i];
        strides[i] = steps[i];
    }
    sizes[ndim] = rows;
    strides[ndim] = 1; /* each element counts */
    sizes[ndim + 1] = columns;
    strides[ndim + 1] = 1;
    memory_write(&notes_get()->json, matrix->data, product->dtype, ndim + 2, sizes, strides,
                 is_written);
}

static void product_write(const struct gni_product *product, const struct gni_matrix *addend,
                          const gn_device *device)
{
    const int64_t sizes[] = {product->rows, product->columns, product->inner};
    work_begin("product", device, 3, sizes);
    matrix_write(product, &product->a, product->rows, product->inner, product->a_steps, false);
    matrix_write(product, &product->b, product->inner, product->columns, product->b_steps, false);
    if (addend != NULL)
        matrix_write(product, addend, product->rows, product->columns, product->c_steps, false);
    matrix_write(product, &product->c, product->rows, product->columns, product->c_steps, true);
    gni_json_end_array(&notes_get()->json);
    work_end();
}

static gn_status explained_product(const struct gni_product *product, gn_device *device,
                                   gn_stream *stream)
{
    EXPLAINED(real_of(device)->product(product, device, stream),
              product_write(product, NULL, device));
}

static gn_status explained_product_add(const struct gni_product *product,
                                       const struct gni_matrix *addend, gn_device *device,
                                       gn_stream *stream, bool *is_done)
{
    EXPLAINED(real_of(device)->product_add(product, addend, device, stream, is_done),
              if (*is_done) product_write(product, addend, device));
}

static gn_status explained_index_get(const struct gni_index_plan *plan, gn_tensor *source,
                                     gn_tensor *result)
{
    EXPLAINED(real_of(source->device)->index_get(plan, source, result),
              places_note("gather", source, result->ndim, result->sizes, false, result));
}

static gn_status explained_index_set(const struct gni_index_plan *plan, gn_tensor *target,
                                     const gn_tensor *value, const int64_t *strides,
                                     uint64_t number, bool is_accumulated)
{
    EXPLAINED(
        real_of(target->device)->index_set(plan, target, value, strides, number, is_accumulated),
        places_note(is_accumulated ? "scatter_add" : "scatter", target, plan->ndim, plan->sizes,
                    true, value));
}

static gn_status explained_mask_places(gn_tensor *mask, const int64_t *strides, gn_tensor **places)
{
    EXPLAINED(real_of(mask->device)->mask_places(mask, strides, places),
              tensors_note("nonzero", mask->device, READ(mask), WRITTEN(*places)));
}

static gn_status explained_mask_get(gn_tensor *source, gn_tensor *mask, gn_tensor **result)
{
    EXPLAINED(real_of(source->device)->mask_get(source, mask, result),
              places_note("gather", source, (*result)->ndim, (*result)->sizes, false, *result));
}

static gn_status explained_mask_set(gn_tensor *target, gn_tensor *mask, gn_tensor *values)
{
    EXPLAINED(real_of(target->device)->mask_set(target, mask, values),
              places_note("scatter", target, values->ndim, values->sizes, true, values));
}

static gn_status explained_search(gn_tensor *sequence, gn_tensor *values, bool is_right,
                                  gn_tensor *result, gn_stream *stream)
{
    EXPLAINED(real_of(values->device)->search(sequence, values, is_right, result, stream),
              tensors_note("search", values->device, READ(sequence, values), WRITTEN(result)));
}

static gn_status explained_range(gn_tensor *numbers, int64_t *least, int64_t *most,
                                 gn_stream *stream)
{
    EXPLAINED(real_of(numbers->device)->range(numbers, least, most, stream),
              tensors_note("range", numbers->device, READ(numbers), NOTHING));
}

static gn_status explained_count(gn_tensor *numbers, gn_tensor *counts, gn_stream *stream)
{
    EXPLAINED(real_of(numbers->device)->count(numbers, counts, stream),
              tensors_note("count", numbers->device, READ(numbers), WRITTEN(counts)));
}

static gn_status explained_count_small(gn_tensor *numbers, int64_t minimum, gn_tensor **made)
{
    EXPLAINED(real_of(numbers->device)->count_small(numbers, minimum, made),
              if (*made != NULL)
                  tensors_note("count", numbers->device, READ(numbers), WRITTEN(*made)));
}

static gn_status explained_kth(gn_tensor *tensor, int64_t k, gn_tensor *result)
{
    EXPLAINED(real_of(tensor->device)->kth(tensor, k, result),
              tensors_note("kth", tensor->device, READ(tensor), WRITTEN(result)));
}

static gn_status explained_permutation(struct gni_philox philox, gn_tensor *out, gn_stream *stream)
{
    EXPLAINED(real_of(out->device)->permutation(philox, out, stream),
              tensors_note("permutation", out->device, NOTHING, WRITTEN(out)));
}

static gn_status explained_fill(gn_scalar number, gn_tensor *out)
{
    EXPLAINED(real_of(out->device)->fill(number, out),
              tensors_note("fill", out->device, NOTHING, WRITTEN(out)));
}

static gn_status explained_sequence(gn_scalar start, gn_scalar step, gn_tensor *out)
{
    EXPLAINED(real_of(out->device)->sequence(start, step, out),
              tensors_note("sequence", out->device, NOTHING, WRITTEN(out)));
}

static struct gni_backend explained[GNI_DEVICE_TYPES];

static void table_fill(struct gni_backend *table, const struct gni_backend *real)
{
    *table = *real;
#define SLOT(name)          \
    if (real->name != NULL) \
    table->name = explained_##name
    SLOT(run);
    SLOT(reduce);
    SLOT(softmax);
    SLOT(run_list);
    SLOT(random);
    SLOT(extreme);
    SLOT(cumulate);
    SLOT(cumulate_extreme);
    SLOT(select);
    SLOT(unique);
    SLOT(product);
    SLOT(product_add);
    SLOT(index_get);
    SLOT(index_set);
    SLOT(mask_places);
    SLOT(mask_get);
    SLOT(mask_set);
    SLOT(search);
    SLOT(range);
    SLOT(count);
    SLOT(count_small);
    SLOT(kth);
    SLOT(permutation);
    SLOT(fill);
    SLOT(sequence);
#undef SLOT
}

static void tables_fill(void)
{
    atomic_store(&has_key, pthread_key_create(&notes_key, NULL) == 0);
    for (int i = 0; i < GNI_DEVICE_TYPES; i++)
        table_fill(&explained[i], real_backends[i]);
}

/* EX1. Several threads may be here: the last one leaves what the count asks for. */
static void tables_choose(void)
{
    bool is_on;
    do {
        is_on = gni_explain_is_on();
        gni_profile_set_observer(is_on ? launch_note : NULL);
        for (int i = 0; i < GNI_DEVICE_TYPES; i++)
            atomic_store(&gni_backends[i], is_on ? &explained[i] : real_backends[i]);
    } while (is_on != gni_explain_is_on());
}

/* ---- works that no table has ----------------------------------------------------------------- */

void gni_explain_flush(const char *why, int resting_count, size_t resting_nbytes)
{
    if (notes_get() == NULL || notes_get()->depth > 0)
        return;
    notes_get()->why = why;
    notes_get()->resting_count = resting_count;
    notes_get()->resting_nbytes = resting_nbytes;
}

void gni_explain_work(const char *kind, const struct gni_node *root)
{
    if (notes_get() == NULL || notes_get()->depth > 0)
        return;
    work_begin(kind, root->device, root->ndim, root->sizes);
    gni_json_end_array(&notes_get()->json);
    work_end();
}

void gni_explain_small(enum gni_op op, int arity, const gn_operand *operands, gn_tensor *result)
{
    if (notes_get() == NULL || notes_get()->depth > 0)
        return;
    struct gni_json *json = &notes_get()->json;
    work_begin("at once", result->device, result->ndim, result->sizes);
    for (int i = 0; i < arity; i++)
        if (operands[i].tensor != NULL)
            tensor_write(json, operands[i].tensor, false);
    tensor_write(json, result, true);
    gni_json_end_array(json);
    gni_json_key(json, "steps");
    gni_json_begin_array(json);
    gni_json_begin_object(json);
    gni_json_key(json, "op");
    gni_json_string(json, gni_ops[op].name);
    gni_json_key(json, "dtype");
    gni_json_string(json, gn_dtype_name(result->dtype));
    gni_json_end_object(json);
    gni_json_end_array(json);
    work_end();
}

void gni_explain_copy(gn_tensor *from, gn_tensor *to)
{
    if (notes_get() != NULL && notes_get()->depth == 0)
        tensors_note("copy", from->device->ops->is_host_memory ? to->device : from->device,
                     READ(from), WRITTEN(to));
}

/* ---- the public functions -------------------------------------------------------------------- */

gn_status gn_explain_begin(void)
{
    static struct gni_once once = GNI_ONCE_INIT;
    GN_CHECK_ARGUMENT(notes_get() == NULL, "this thread is explaining already");
    struct notes *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    gni_once_run(&once, tables_fill);
    *made = (struct notes){.depth = 0};
    gni_json_init(&made->json);
    gni_json_begin_array(&made->json);
    if (!atomic_load(&has_key) || pthread_setspecific(notes_key, made) != 0) {
        gni_json_deinit(&made->json);
        gni_host_free(made);
        return gni_error(GN_ERROR_OUT_OF_HOST_MEMORY, "there is no room for what a thread notes");
    }
    atomic_fetch_add(&gni_explain_count, 1);
    tables_choose();
    return GN_OK;
}

gn_status gn_explain_end(void (*take)(void *context, const char *json, size_t length),
                         void *context)
{
    struct notes *made = notes_get();
    char *text = NULL;
    size_t length = 0;
    GN_CHECK_ARGUMENT(made != NULL, "this thread is not explaining");
    (void)pthread_setspecific(notes_key, NULL);
    atomic_fetch_sub(&gni_explain_count, 1);
    tables_choose();
    gni_json_end_array(&made->json);
    gn_status status = gni_json_finish(&made->json, &text, &length);
    if (status == GN_OK && take != NULL)
        take(context, text, length);
    gni_host_free(text);
    gni_host_free(made);
    return status;
}
