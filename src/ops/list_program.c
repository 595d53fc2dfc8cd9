/*
 * list_program.c: list programs: checks, the programs of entries, and norms.
 *
 * Where the device has a kernel for lists, entries whose tensors lie element by element in one order are put into groups
 * (list_program.h, LI3), and each group is one launch or few. All others are run one by one, as programs with strides.
 */
#include "ops/list_program.h"

#include "base/host.h"
#include "base/text.h"
#include "ops/backend.h"
#include "ops/expression.h"
#include "ops/recorder.h"
#include "tensor/tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUES_MOST = GN_LIST_PLACES_MOST + GN_LIST_NUMBERS_MOST + GN_LIST_STEPS_MOST,
    PACK_BYTES = 16, /* of a load */
};

/* A call of gn_list_elementwise(), or a norm. */
struct call {
    const gn_list_program *given;
    int count; /* entries */
    gn_tensor *const *tensors;
    const gn_operand *numbers;
    gn_tensor *skip;
    gn_device *device;
    gn_stream *stream;                 /* NULL where work is immediate */
    bool is_scalar[VALUES_MOST];       /* of the values of `given` */
    bool needs[VALUES_MOST];           /* a scalar that the elements read: is_needed() */
    bool is_read[GN_LIST_PLACES_MOST]; /* places */
    short store[GN_LIST_PLACES_MOST];  /* the value that a place gets; -1: none */
};

static gn_tensor *tensor_at(const struct call *call, int place, int entry)
{
    return call->tensors[(size_t)place * (size_t)call->count + (size_t)entry];
}

static bool is_single(const struct call *call, int place)
{
    return (call->given->single_places >> place & 1) != 0;
}

static int first_step(const gn_list_program *given)
{
    return given->place_count + given->number_count;
}

/* ---- checks -------------------------------------------------------------------------------------- */

static gn_status step_check(struct call *call, int step)
{
    const gn_list_program *given = call->given;
    const gn_list_step *one = &given->steps[step];
    int value = first_step(given) + step;
    if ((unsigned)one->op >= GN_OP_COUNT || gni_ops[one->op].domain == GNI_DOMAIN_INTEGER)
        return gni_error(GN_ERROR_INVALID_VALUE, "list program: step %d: no such operation", step);
    call->is_scalar[value] = true;
    for (int i = 0; i < gni_ops[one->op].arity; i++) {
        if (one->in[i] < 0 || one->in[i] >= value)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "list program: step %d (%s): operand %d is value %d, and there are %d "
                             "values before it",
                             step, gni_ops[one->op].name, i, one->in[i], value);
        call->is_scalar[value] &= call->is_scalar[one->in[i]];
        if (one->in[i] < given->place_count)
            call->is_read[one->in[i]] = true;
    }
    return GN_OK;
}

static gn_status store_check(struct call *call, const gn_list_store *store)
{
    const gn_list_program *given = call->given;
    if (store->place < 0 || store->place >= given->place_count || call->store[store->place] >= 0 ||
        is_single(call, store->place))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "list program: place %d cannot be written to, or is written to twice",
                         store->place);
    if (store->value < 0 || store->value >= first_step(given) + given->step_count)
        return gni_error(GN_ERROR_INVALID_VALUE, "list program: there is no value %d to store",
                         store->value);
    call->store[store->place] = (short)store->value;
    if (store->value < given->place_count)
        call->is_read[store->value] = true;
    return GN_OK;
}

/* Whether a value is a scalar that the elements read. There are never as many of them as a program has outputs. */
static bool is_needed(const struct call *call, int value)
{
    const gn_list_program *given = call->given;
    for (int s = 0; s < given->step_count && call->is_scalar[value]; s++)
        for (int i = 0; i < gni_ops[given->steps[s].op].arity; i++)
            if (given->steps[s].in[i] == value && !call->is_scalar[first_step(given) + s])
                return true;
    for (int i = 0; i < given->store_count && call->is_scalar[value]; i++)
        if (given->stores[i].value == value)
            return true;
    return false;
}

static gn_status program_check(struct call *call)
{
    const gn_list_program *given = call->given;
    if (given->place_count < 1 || given->place_count > GN_LIST_PLACES_MOST ||
        given->number_count < 0 || given->number_count > GN_LIST_NUMBERS_MOST ||
        given->step_count < 0 || given->step_count > GN_LIST_STEPS_MOST || given->store_count < 0 ||
        (given->step_count > 0 && given->steps == NULL) ||
        (given->store_count > 0 && given->stores == NULL) ||
        (given->number_count > 0 && call->numbers == NULL))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "list program: it has 1 to %d places, up to %d numbers and up to %d steps",
                         GN_LIST_PLACES_MOST, GN_LIST_NUMBERS_MOST, GN_LIST_STEPS_MOST);
    for (int i = 0; i < first_step(given); i++)
        call->is_scalar[i] = i >= given->place_count || is_single(call, i);
    for (int p = 0; p < given->place_count; p++)
        call->store[p] = -1;
    for (int s = 0; s < given->step_count; s++)
        GN_TRY(step_check(call, s));
    for (int i = 0; i < given->store_count; i++)
        GN_TRY(store_check(call, &given->stores[i]));
    for (int v = 0; v < first_step(given) + given->step_count; v++)
        call->needs[v] = is_needed(call, v);
    return GN_OK;
}

/* A tensor of one element that the program reads as a number. */
static gn_status number_check(const struct call *call, const char *what, gn_tensor *tensor)
{
    if (tensor == NULL)
        return GN_OK;
    if (tensor->count != 1 || tensor->device != call->device)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "list program: %s is a tensor of one element on %s, not one of shape %s "
                         "on %s",
                         what, gni_device_label(call->device).text,
                         gni_shape_text(tensor->ndim, tensor->sizes).text,
                         gni_device_label(tensor->device).text);
    GN_TRY(gni_tape_refuse("a list program", tensor));
    return gni_tensor_flush(tensor);
}

static gn_status tensor_check(const struct call *call, int place, int entry)
{
    const gn_tensor *first = NULL;
    gn_tensor *tensor = tensor_at(call, place, entry);
    for (int p = 0; p < call->given->place_count && first == NULL; p++)
        first = is_single(call, p) ? NULL : tensor_at(call, p, entry);
    if (tensor == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "list: entry %d has no tensor at place %d", entry,
                         place);
    if (gni_dtype_kind(tensor->dtype) != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_TYPE, "list: entry %d, place %d: %s is no floating type", entry,
                         place, gni_dtypes[tensor->dtype].name);
    if (tensor->device != call->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "list: entry %d, place %d is on %s, others on %s",
                         entry, place, gni_device_label(tensor->device).text,
                         gni_device_label(call->device).text);
    bool fits = is_single(call, place)
                    ? tensor->count == 1
                    : first == NULL || gni_shape_is_equal(tensor->ndim, tensor->sizes, first->ndim,
                                                          first->sizes);
    if (!fits)
        return gni_error(GN_ERROR_SHAPE, "list: entry %d: shape %s at place %d does not fit %s",
                         entry, gni_shape_text(tensor->ndim, tensor->sizes).text, place,
                         first != NULL ? gni_shape_text(first->ndim, first->sizes).text
                                       : "one element");
    GN_TRY(gni_tape_refuse("a list program", tensor));
    if (call->store[place] >= 0) {
        struct gni_shape shape;
        shape.ndim = tensor->ndim;
        memcpy(shape.sizes, tensor->sizes, (size_t)tensor->ndim * sizeof *shape.sizes);
        GN_TRY(gni_out_check("list program", tensor, &shape, tensor->dtype));
    }
    return gni_tensor_flush(tensor);
}

/* ---- memory that is written to: LI4 ---------------------------------------------------------------- */

struct stretch {
    uintptr_t begin, end;
    int entry, place; /* -1: a number, or `skip` */
    bool is_written;
};

static int stretch_compare(const void *a, const void *b)
{
    const struct stretch *one = a, *other = b;
    return (one->begin > other->begin) - (one->begin < other->begin);
}

/* The same elements in the same order. */
static bool is_same(const gn_tensor *a, const gn_tensor *b)
{
    return a == b || (gni_tensor_data(a) == gni_tensor_data(b) && a->dtype == b->dtype &&
                      gni_shape_is_equal(a->ndim, a->sizes, b->ndim, b->sizes) &&
                      gni_shape_is_equal(a->ndim, a->strides, b->ndim, b->strides));
}

/* Whether the tensor is that of an earlier place of its entry, not both of which are written to. */
static bool is_repeated(const struct call *call, int place, int entry, bool *is_written)
{
    for (int p = 0; p < call->given->place_count; p++)
        if (p != place && !is_single(call, p) && !is_single(call, place) &&
            is_same(tensor_at(call, p, entry), tensor_at(call, place, entry))) {
            if (call->store[p] >= 0 && call->store[place] >= 0)
                return false;
            *is_written |= call->store[p] >= 0;
            if (p < place)
                return true;
        }
    return false;
}

static struct stretch stretch_of(const gn_tensor *tensor, int entry, int place, bool is_written)
{
    int64_t low, high, size = (int64_t)gni_dtype_size(tensor->dtype);
    uintptr_t first = (uintptr_t)gni_tensor_data(tensor);
    gni_strides_extent(tensor->ndim, tensor->sizes, tensor->strides, &low, &high);
    return (struct stretch){.begin = first + (uintptr_t)(low * size),
                            .end = first + (uintptr_t)((high + 1) * size),
                            .entry = entry,
                            .place = place,
                            .is_written = is_written};
}

static int stretches_list(const struct call *call, struct stretch *stretches)
{
    int used = 0;
    for (int i = 0; i < call->given->number_count; i++)
        if (call->numbers[i].tensor != NULL)
            stretches[used++] = stretch_of(call->numbers[i].tensor, -1, -1, false);
    if (call->skip != NULL)
        stretches[used++] = stretch_of(call->skip, -1, -1, false);
    for (int p = 0; p < call->given->place_count; p++)
        for (int e = 0; e < call->count; e++) {
            const gn_tensor *tensor = tensor_at(call, p, e);
            bool is_written = call->store[p] >= 0;
            if (tensor->count > 0 && !is_repeated(call, p, e, &is_written))
                stretches[used++] = stretch_of(tensor, e, p, is_written);
        }
    return used;
}

static gn_status overlaps_check(const struct call *call)
{
    size_t most = (size_t)call->given->place_count * (size_t)call->count + GN_LIST_NUMBERS_MOST + 1;
    struct stretch *stretches;
    const struct stretch *last = NULL, *last_written = NULL; /* those that reach furthest */
    if (call->given->store_count == 0)
        return GN_OK;
    stretches = gni_host_alloc(most * sizeof *stretches);
    if (stretches == NULL)
        return gni_error_host_memory(most * sizeof *stretches);
    int count = stretches_list(call, stretches);
    gn_status status = GN_OK;
    qsort(stretches, (size_t)count, sizeof *stretches, stretch_compare);
    for (int i = 0; i < count && status == GN_OK; i++) {
        const struct stretch *one = &stretches[i], *met = one->is_written ? last : last_written;
        if (met != NULL && met->end > one->begin)
            status = gni_error(GN_ERROR_INVALID_VALUE,
                               "list: entry %d, place %d and entry %d, place %d (-1: a number) "
                               "share memory, and one is written to",
                               met->entry, met->place, one->entry, one->place);
        last = last == NULL || one->end > last->end ? one : last;
        if (one->is_written)
            last_written =
                last_written == NULL || one->end > last_written->end ? one : last_written;
    }
    gni_host_free(stretches);
    return status;
}

/* ---- programs ---------------------------------------------------------------------------------------- */

/* What is made of a call for an entry, or for a group of entries. */
struct build {
    struct gni_program program;
    bool is_scalar[GNI_PROGRAM_VALUES_MOST];
    short input_places[GNI_PROGRAM_INPUTS_MOST];
    short output_places[GN_LIST_PLACES_MOST];
    gn_dtype computing;
    short at[VALUES_MOST]; /* values of the program; -1: not there */
};

/* The type in which the elements of an entry are computed. */
static gn_dtype computing_of(const struct call *call, int entry)
{
    for (int p = 0; p < call->given->place_count; p++)
        if (!is_single(call, p) && tensor_at(call, p, entry)->dtype == GN_FLOAT64)
            return GN_FLOAT64;
    return GN_FLOAT32;
}

/* Every input is there once for itself: what is the same memory in one entry need not be in another. */
static short input_add(struct build *build, gn_tensor *tensor, const int64_t *strides, short place)
{
    struct gni_program *program = &build->program;
    struct gni_input *input = &program->inputs[program->input_count];
    input->storage = gni_tensor_storage(tensor);
    input->data = gni_tensor_data(tensor);
    input->held = tensor->dtype;
    for (int d = 0; d < program->ndim; d++)
        input->strides[d] = strides != NULL ? strides[d] : 0;
    build->input_places[program->input_count] = place;
    build->is_scalar[program->input_count] = strides == NULL;
    return (short)program->input_count++;
}

static short number_add(struct build *build, double number, gn_dtype dtype)
{
    const gn_scalar scalar = {.kind = GN_FLOAT64, .floating = number};
    short value = gni_program_add_number(&build->program, scalar, dtype);
    build->input_places[value] = -1;
    build->is_scalar[value] = true;
    return value;
}

/* A value in a type. What is scalar is computed in float64, all else in the type of the entry. */
static short converted(struct build *build, short value, bool is_scalar, bool is_bool)
{
    gn_dtype wanted = is_bool ? GN_BOOL : is_scalar ? GN_FLOAT64 : build->computing;
    short made = gni_program_convert(&build->program, value, wanted);
    if (made != value)
        build->is_scalar[made] = build->is_scalar[value];
    return made;
}

static void step_build(struct build *build, const struct call *call, int step)
{
    const gn_list_step *one = &call->given->steps[step];
    const struct gni_op_info *info = &gni_ops[one->op];
    int value = first_step(call->given) + step;
    bool is_test = info->domain == GNI_DOMAIN_TEST || info->domain == GNI_DOMAIN_LOGIC;
    gn_dtype computing = call->is_scalar[value] ? GN_FLOAT64 : build->computing;
    gn_dtype held = is_test ? GN_BOOL : computing;
    short in[3] = {-1, -1, -1};
    for (int i = 0; i < info->arity; i++)
        in[i] = converted(build, build->at[one->in[i]], call->is_scalar[value],
                          info->domain == GNI_DOMAIN_SELECT && i == 0);
    short made = gni_program_add_op(&build->program, (enum gni_op)one->op, computing, held, held,
                                    info->arity, in);
    build->at[value] = made;
    build->is_scalar[made] = call->is_scalar[value];
}

/* Steps and their operands, but for places: all, or scalar ones alone. */
static void steps_build(struct build *build, const struct call *call, bool is_scalar)
{
    const gn_list_program *given = call->given;
    for (int s = 0; s < given->step_count; s++)
        if (!is_scalar || call->is_scalar[first_step(given) + s])
            step_build(build, call, s);
}

static void numbers_build(struct build *build, const struct call *call)
{
    const gn_list_program *given = call->given;
    for (int i = 0; i < given->number_count; i++)
        build->at[given->place_count + i] =
            call->numbers[i].tensor != NULL
                ? input_add(build, call->numbers[i].tensor, NULL, -1)
                : number_add(build, gni_scalar_double(call->numbers[i].scalar), GN_FLOAT64);
}

/* The inputs of an entry's places: those with an element for each, by their own strides or (NULL) one behind the other. */
static void places_build(struct build *build, const struct call *call, int entry, bool is_flat,
                         bool has_singles)
{
    static const int64_t one = 1;
    for (short p = 0; p < call->given->place_count; p++) {
        gn_tensor *tensor = tensor_at(call, p, entry);
        build->at[p] = -1;
        if (is_single(call, p) && has_singles && call->is_read[p])
            build->at[p] = input_add(build, tensor, NULL, p);
        else if (!is_single(call, p) && call->is_read[p])
            build->at[p] = input_add(build, tensor, is_flat ? &one : tensor->strides, p);
    }
}

/* The value that goes into a place. */
static short stored_value(struct build *build, const struct call *call, int place)
{
    short value = build->at[call->store[place]];
    bool is_bool = gni_program_held(&build->program, value) == GN_BOOL;
    return is_bool ? converted(build, value, false, false) : value;
}

static void outputs_build(struct build *build, const struct call *call, int entry, bool is_flat)
{
    struct gni_program *program = &build->program;
    for (short p = 0; p < call->given->place_count; p++) {
        if (call->store[p] < 0)
            continue;
        const gn_tensor *tensor = tensor_at(call, p, entry);
        short value = stored_value(build, call, p);
        struct gni_output *output = &program->outputs[program->output_count];
        build->output_places[program->output_count++] = p;
        *output = (struct gni_output){.value = value,
                                      .dtype = tensor->dtype,
                                      .data = gni_tensor_data(tensor),
                                      .is_strided = !is_flat && !tensor->is_contiguous};
        if (output->is_strided)
            memcpy(output->strides, tensor->strides, sizeof output->strides);
    }
}

/* ---- entries one by one ---------------------------------------------------------------------------------- */

/* Whether a value is a number that the call was given, and no tensor. */
static bool is_plain(const struct call *call, int value)
{
    int number = value - call->given->place_count;
    return number >= 0 && number < call->given->number_count &&
           call->numbers[number].tensor == NULL;
}

/* What the program makes of an entry's numbers and single places, where the host can compute them, and elements read: each as
 * a number. Else every element would compute it again. */
static gn_status scalars_compute(const struct call *call, int entry, struct build *build,
                                 double *numbers)
{
    const gn_list_program *given = call->given;
    int first = first_step(given);
    bool has_none = true; /* but plain ones */
    for (int i = 0; i < given->number_count; i++)
        numbers[given->place_count + i] = gni_scalar_double(call->numbers[i].scalar);
    for (int v = 0; v < first + given->step_count && has_none; v++)
        has_none = !call->needs[v] || is_plain(call, v);
    if (has_none)
        return GN_OK;
    gni_program_init(&build->program, 0, NULL, NULL);
    for (short p = 0; p < given->place_count; p++)
        if (is_single(call, p) && call->is_read[p])
            build->at[p] = input_add(build, tensor_at(call, p, entry), NULL, p);
    numbers_build(build, call);
    steps_build(build, call, true);
    struct gni_program *program = &build->program;
    for (int v = 0; v < first + given->step_count; v++) {
        if (!call->needs[v] || is_plain(call, v))
            continue;
        gni_assert(program->output_count < GNI_PROGRAM_NODES_MOST);
        short value = converted(build, build->at[v], true, false);
        program->outputs[program->output_count++] =
            (struct gni_output){.value = value, .dtype = GN_FLOAT64, .data = (char *)&numbers[v]};
    }
    return gni_backend_get(call->device)->run(program, call->stream);
}

/* `skip` is read by the program itself: where it is not 0, a place gets what it has. */
static void stores_guard(struct build *build)
{
    struct gni_program *program = &build->program;
    for (int i = 0; i < program->output_count; i++) {
        short p = build->output_places[i];
        short in[3] = {converted(build, build->at[VALUES_MOST - 1], true, true),
                       converted(build, build->at[p], false, false),
                       converted(build, program->outputs[i].value, false, false)};
        program->outputs[i].value = gni_program_add_op(program, GNI_OP_WHERE, build->computing,
                                                       build->computing, build->computing, 3, in);
    }
}

static gn_status entry_run(const struct call *asked, int entry, struct build *build)
{
    struct call own = *asked;
    const struct call *call = &own;
    const gn_list_program *given = call->given;
    double numbers[VALUES_MOST];
    const gn_tensor *shaped = NULL;
    bool is_host = call->stream == NULL;
    for (int p = 0; p < given->place_count && shaped == NULL; p++)
        shaped = is_single(call, p) ? NULL : tensor_at(call, p, entry);
    if (shaped == NULL || shaped->count == 0)
        return GN_OK;
    for (int p = 0; p < given->place_count; p++)
        own.is_read[p] |= own.store[p] >= 0 && own.skip != NULL && !is_host;
    if (is_host)
        GN_TRY(scalars_compute(call, entry, build, numbers));
    build->computing = computing_of(call, entry);
    gni_program_init(&build->program, shaped->ndim, shaped->sizes, NULL);
    places_build(build, call, entry, false, !is_host);
    for (int v = 0; v < first_step(given) + given->step_count && is_host; v++)
        if (call->needs[v])
            build->at[v] = number_add(build, numbers[v], build->computing);
    if (!is_host)
        numbers_build(build, call);
    if (call->skip != NULL && !is_host)
        build->at[VALUES_MOST - 1] = input_add(build, call->skip, NULL, -1);
    for (int s = 0; s < given->step_count; s++)
        if (!is_host || !call->is_scalar[first_step(given) + s])
            step_build(build, call, s);
    outputs_build(build, call, entry, false);
    if (call->skip != NULL && !is_host)
        stores_guard(build);
    return gni_backend_get(call->device)->run(&build->program, call->stream);
}

/* ---- groups of entries ------------------------------------------------------------------------------------ */

/* Whether a tensor's elements fill the memory from the first to the last of them. */
static bool has_no_gaps(const gn_tensor *tensor)
{
    int64_t low, high;
    gni_strides_extent(tensor->ndim, tensor->sizes, tensor->strides, &low, &high);
    return low == 0 && high + 1 == tensor->count &&
           !gni_strides_overlap(tensor->ndim, tensor->sizes, tensor->strides);
}

/* Elements that lie at a multiple of their size at all places, up to 16 bytes of the largest type; 0: there are none, or the
 * entry's tensors do not lie in one order without gaps. */
static int pack_of(const struct call *call, int entry)
{
    const gn_tensor *model = NULL;
    size_t largest = 1;
    uintptr_t places = 0;
    for (int p = 0; p < call->given->place_count; p++) {
        const gn_tensor *tensor = tensor_at(call, p, entry);
        if (is_single(call, p))
            continue;
        if (model == NULL)
            model = tensor;
        if (tensor->count == 0)
            return 0;
        if (!tensor->is_contiguous &&
            (!gni_shape_is_equal(tensor->ndim, tensor->strides, model->ndim, model->strides) ||
             !has_no_gaps(tensor)))
            return 0;
        if (tensor->is_contiguous != model->is_contiguous)
            return 0;
        size_t size = gni_dtype_size(tensor->dtype);
        largest = size > largest ? size : largest;
        places |= (uintptr_t)gni_tensor_data(tensor) / size;
    }
    int pack = (int)(PACK_BYTES / largest);
    while (pack > 1 && (places & (uintptr_t)(pack - 1)) != 0)
        pack /= 2;
    return pack;
}

static bool has_types_of(const struct call *call, int entry, int other)
{
    for (int p = 0; p < call->given->place_count; p++)
        if (tensor_at(call, p, entry)->dtype != tensor_at(call, p, other)->dtype)
            return false;
    return true;
}

static gn_status group_run(const struct call *call, int first, struct build *build,
                           struct gni_list_program *list)
{
    build->computing = list->is_reduced ? GN_FLOAT64 : computing_of(call, first);
    int64_t size = 2; /* of no matter how many elements: LI1 */
    gni_program_init(&build->program, 1, &size, NULL);
    places_build(build, call, first, true, true);
    numbers_build(build, call);
    steps_build(build, call, false);
    if (list->is_reduced) {
        short value = converted(
            build, build->at[first_step(call->given) + call->given->step_count - 1], false, false);
        build->program.outputs[0] = (struct gni_output){.value = value, .dtype = GN_FLOAT64};
        build->output_places[0] = -1;
        build->program.output_count = 1;
    } else {
        outputs_build(build, call, first, true);
    }
    list->program = &build->program;
    list->is_scalar = build->is_scalar;
    list->input_places = build->input_places;
    list->output_places = build->output_places;
    return gni_backend_get(call->device)->run_list(list, call->stream);
}

/* The entries of a first one's kind, from that on; those that are taken get pack 0. */
static int group_take(const struct call *call, int first, signed char *packs,
                      struct gni_list_entry *entries)
{
    int used = 0, pack = packs[first];
    for (int e = first; e < call->count; e++) {
        if (packs[e] != pack || !has_types_of(call, e, first))
            continue;
        for (int p = 0; p < call->given->place_count; p++) {
            entries[used].data[p] = gni_tensor_data(tensor_at(call, p, e));
            if (!is_single(call, p))
                entries[used].count = tensor_at(call, p, e)->count;
        }
        entries[used].index = e;
        packs[e] = 0;
        used++;
    }
    return used;
}

/* Memory for the work of a call: too much for a thread's stack, or of any size. */
struct room {
    struct build build;
    signed char *packs; /* of each entry: pack_of(); 0: done, -1: to be run by itself */
    struct gni_list_entry *entries;
};

static struct room *room_create(int count)
{
    size_t nbytes =
        sizeof(struct room) + (size_t)count * (sizeof(struct gni_list_entry) + sizeof(signed char));
    struct room *room = gni_host_realloc(NULL, nbytes);
    if (room == NULL) {
        (void)gni_error_host_memory(nbytes);
        return NULL;
    }
    room->entries = (struct gni_list_entry *)(void *)(room + 1);
    room->packs = (signed char *)(room->entries + count);
    return room;
}

static gn_status call_run(const struct call *call)
{
    bool has_lists = gni_backend_get(call->device)->run_list != NULL;
    struct room *room = room_create(call->count);
    gn_status status = GN_OK;
    if (room == NULL)
        return GN_ERROR_OUT_OF_HOST_MEMORY;
    for (int e = 0; e < call->count; e++)
        room->packs[e] = (signed char)(has_lists ? pack_of(call, e) : 0);
    for (int e = 0; e < call->count && status == GN_OK; e++)
        if (room->packs[e] == 0)
            status = entry_run(call, e, &room->build);
    for (int e = 0; e < call->count && status == GN_OK; e++) {
        if (room->packs[e] == 0)
            continue;
        struct gni_list_program list = {.place_count = call->given->place_count,
                                        .entries = room->entries,
                                        .pack = room->packs[e],
                                        .skip = call->skip};
        list.entry_count = group_take(call, e, room->packs, room->entries);
        status = group_run(call, e, &room->build, &list);
    }
    gni_host_free(room);
    return status;
}

/* ---- elementwise -------------------------------------------------------------------------------------------- */

/* Whether the host finds that there is nothing to do. */
static gn_status skip_read(const struct call *call, bool *is_skipped)
{
    *is_skipped = false;
    if (call->skip == NULL || call->stream != NULL)
        return GN_OK;
    gn_scalar number = gni_scalar_load(call->skip->dtype, gni_tensor_data(call->skip));
    *is_skipped = gni_scalar_double(number) != 0;
    return GN_OK;
}

/* What the work needs before it is submitted: readers of what changes are computed, and the stream waits for others. */
static gn_status memory_prepare(const struct call *call)
{
    for (int p = 0; p < call->given->place_count; p++)
        for (int e = 0; e < call->count; e++) {
            struct gni_storage *storage = gni_tensor_storage(tensor_at(call, p, e));
            bool is_written = call->store[p] >= 0;
            if (is_written)
                GN_TRY(gni_recorder_flush_readers(storage));
            if (call->stream != NULL && (is_written || call->is_read[p]))
                GN_TRY(gni_storage_order(storage, call->stream, is_written));
        }
    for (int i = 0; i < call->given->number_count && call->stream != NULL; i++)
        if (call->numbers[i].tensor != NULL)
            GN_TRY(gni_storage_order(gni_tensor_storage(call->numbers[i].tensor), call->stream,
                                     false));
    return call->skip != NULL && call->stream != NULL
               ? gni_storage_order(gni_tensor_storage(call->skip), call->stream, false)
               : GN_OK;
}

static gn_status tensors_check(struct call *call)
{
    for (int i = 0; i < call->given->number_count; i++)
        GN_TRY(number_check(call, "a number", call->numbers[i].tensor));
    GN_TRY(number_check(call, "skip", call->skip));
    for (int p = 0; p < call->given->place_count; p++)
        for (int e = 0; e < call->count; e++)
            GN_TRY(tensor_check(call, p, e));
    return gni_stream_of(call->device, &call->stream);
}

static void writes_note(const struct call *call)
{
    for (int p = 0; p < call->given->place_count; p++)
        for (int e = 0; e < call->count && call->store[p] >= 0; e++)
            gni_storage_note_write(gni_tensor_storage(tensor_at(call, p, e)));
}

gn_status gn_list_elementwise(const gn_list_program *program, int count, gn_tensor *const *tensors,
                              const gn_operand *numbers, gn_tensor *skip)
{
    GN_CHECK_ARGUMENT(program != NULL && count >= 0 && (tensors != NULL || count == 0),
                      "program and tensors must not be NULL, count not negative");
    struct call call = {
        .given = program, .count = count, .tensors = tensors, .numbers = numbers, .skip = skip};
    bool is_skipped;
    GN_TRY(program_check(&call));
    if (count == 0 || program->store_count == 0)
        return GN_OK;
    GN_CHECK_ARGUMENT(tensors[0] != NULL, "a tensor is NULL");
    call.device = tensors[0]->device;
    GN_TRY(tensors_check(&call));
    GN_TRY(overlaps_check(&call));
    GN_TRY(skip_read(&call, &is_skipped));
    if (is_skipped)
        return GN_OK;
    GN_TRY(memory_prepare(&call));
    gn_status status = call_run(&call);
    writes_note(&call); /* of a call that fails, too: some entries may have been written */
    return status;
}

/* ---- norms ---------------------------------------------------------------------------------------------------- */

/* What is reduced of each element, and how; the root of that is the norm. */
struct norm {
    gn_list_step steps[2];
    int step_count, number_count;
    gn_reduction reduction;
    double root; /* the exponent; 1: nothing is done */
};

static struct norm norm_of(double order)
{
    struct norm norm = {.steps = {{GN_OP_ABSOLUTE, {0}}}, .step_count = 1, .root = 1};
    norm.reduction =
        isinf(order) ? (order > 0 ? GN_REDUCE_MAXIMUM : GN_REDUCE_MINIMUM) : GN_REDUCE_SUM;
    if (isinf(order) || order == 1)
        return norm;
    if (order == 2) {
        norm.steps[0] = (gn_list_step){GN_OP_SQUARE, {0}};
        norm.root = 0.5;
        return norm;
    }
    norm.number_count = 1; /* the order, or 0 */
    norm.step_count = order == 0 ? 1 : 2;
    norm.root = order == 0 ? 1 : 1 / order;
    if (order == 0)
        norm.steps[0] = (gn_list_step){GN_OP_NOT_EQUAL, {0, 1}};
    else
        norm.steps[0] = (gn_list_step){GN_OP_ABSOLUTE, {0}};
    norm.steps[1] = (gn_list_step){GN_OP_POWER, {2, 1}};
    return norm;
}

/* The same of one tensor by operations, in float64. */
static gn_tensor *tensor_reduce(struct gni_scope *s, const struct norm *norm, gn_tensor *tensor,
                                double order)
{
    const int64_t one = 1;
    if (tensor->count == 0)
        return gni_full(s, (gn_scalar){.kind = GN_FLOAT64}, GN_FLOAT64, 1, &one, tensor->device);
    gn_tensor *made = gni_cast(s, tensor, GN_FLOAT64);
    for (int i = 0; i < norm->step_count; i++)
        made =
            norm->steps[i].op == GN_OP_POWER || norm->steps[i].op == GN_OP_NOT_EQUAL
                ? gni_cast(s, gni_binary(s, norm->steps[i].op, gni_of(made), gni_floating(order)),
                           GN_FLOAT64)
                : gni_unary(s, norm->steps[i].op, made);
    return gni_view(s, gni_reduce(s, norm->reduction, made, 0, false), 1, &one);
}

/* What each tensor's elements are reduced to, in float64. */
static gn_tensor *each_reduce(struct gni_scope *s, const struct norm *norm, const struct call *call,
                              double order)
{
    int64_t count = call->count;
    gn_tensor **made = gni_scope_list(s, count);
    for (int e = 0; e < call->count && gni_scope_is_ok(s); e++)
        made[e] = tensor_reduce(s, norm, call->tensors[e], order);
    return gni_scope_is_ok(s) ? gni_cat(s, call->count, made, 0) : NULL;
}

/* The same by the device's kernels for lists. */
static gn_status lists_reduce(const struct norm *norm, struct call *call, gn_tensor *results)
{
    struct room *room = room_create(call->count);
    gn_status status = GN_OK;
    if (room == NULL)
        return GN_ERROR_OUT_OF_HOST_MEMORY;
    for (int e = 0; e < call->count && status == GN_OK; e++) {
        struct gni_storage *storage = gni_tensor_storage(call->tensors[e]);
        room->packs[e] = (signed char)pack_of(call, e);
        status = gni_storage_order(storage, call->stream, false);
    }
    if (status == GN_OK)
        status = gni_storage_order(gni_tensor_storage(results), call->stream, true);
    for (int e = 0; e < call->count && status == GN_OK; e++) {
        if (room->packs[e] == 0)
            continue;
        struct gni_list_program list = {.place_count = 1,
                                        .entries = room->entries,
                                        .pack = room->packs[e],
                                        .is_reduced = true,
                                        .reduction = norm->reduction,
                                        .results = (double *)(void *)gni_tensor_data(results)};
        list.entry_count = group_take(call, e, room->packs, room->entries);
        status = group_run(call, e, &room->build, &list);
    }
    gni_host_free(room);
    return status;
}

static gn_status norms_make(struct call *call, const struct norm *norm, double order, bool is_total,
                            gn_tensor **result)
{
    struct gni_scope s = {0};
    int64_t count = call->count;
    gn_tensor *made, *kept = NULL;
    gn_dtype dtype = GN_FLOAT32;
    for (int e = 0; e < call->count; e++)
        dtype = call->tensors[e]->dtype == GN_FLOAT64 ? GN_FLOAT64 : dtype;
    if (gni_backend_get(call->device)->run_list != NULL) {
        gn_tensor **whole = gni_scope_list(&s, count);
        for (int e = 0; e < call->count && gni_scope_is_ok(&s); e++) {
            gn_status status = gni_tensor_compact(call->tensors[e], &whole[e]);
            (void)gni_scope_keep(&s, status, whole[e]);
        }
        call->tensors = whole;
        kept = gni_full(&s, (gn_scalar){.kind = GN_FLOAT64}, GN_FLOAT64, 1, &count, call->device);
        if (gni_scope_is_ok(&s))
            s.status = gni_tensor_flush(kept);
        if (gni_scope_is_ok(&s))
            s.status = lists_reduce(norm, call, kept);
        made = kept;
    } else {
        made = each_reduce(&s, norm, call, order);
    }
    if (is_total)
        made = gni_reduce(&s, norm->reduction, made, 0, false);
    if (norm->root == 0.5)
        made = gni_unary(&s, GN_OP_SQRT, made);
    else if (norm->root != 1)
        made = gni_binary(&s, GN_OP_POWER, gni_of(made), gni_floating(norm->root));
    return gni_scope_end(&s, gni_cast(&s, made, dtype), result);
}

static gn_status norm_of_none(bool is_total, gn_tensor **result)
{
    const int64_t none = 0;
    gn_device *host;
    GN_TRY(gni_device_get_host(&host));
    return gn_full((gn_scalar){.kind = GN_FLOAT64}, GN_FLOAT32, is_total ? 0 : 1, &none, host,
                   result);
}

gn_status gn_list_norm(int count, gn_tensor *const *tensors, double order, bool is_total,
                       gn_tensor **result)
{
    GN_CHECK_ARGUMENT(count >= 0 && (tensors != NULL || count == 0) && result != NULL,
                      "tensors and result must not be NULL, count not negative");
    GN_CHECK_ARGUMENT(!isnan(order), "the order of a norm is a number");
    struct norm norm = norm_of(order);
    const gn_operand number = gni_floating(order);
    const gn_list_program program = {.place_count = 1,
                                     .number_count = norm.number_count,
                                     .steps = norm.steps,
                                     .step_count = norm.step_count};
    struct call call = {.given = &program, .count = count, .tensors = tensors, .numbers = &number};
    if (count == 0)
        return norm_of_none(is_total, result);
    GN_CHECK_ARGUMENT(tensors[0] != NULL, "a tensor is NULL");
    call.device = tensors[0]->device;
    GN_TRY(program_check(&call));
    GN_TRY(tensors_check(&call));
    for (int e = 0; e < count; e++)
        if (tensors[e]->count == 0 && norm.reduction == GN_REDUCE_MINIMUM)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "list: entry %d has no elements, and so no smallest one", e);
    return norms_make(&call, &norm, order, is_total, result);
}
