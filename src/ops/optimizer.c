/*
 * optimizer.c: runs a step of an optimizer: parameters are put into groups, and each group is one list program.
 *
 * A group has one device, and scalars of the same values. These are mostly all: the counts of steps differ where a parameter
 * had no gradient before. Scalars on the CPU are known to the host, which computes with them, and writes them when the group
 * is done. Scalars on a GPU are places of one element, and a second program changes them.
 *
 * Invariants:
 *   OP1  nothing is written before all tensors are checked, and all scalars on the CPU are read;
 *   OP2  scalars are written when the program of their group was submitted. On the CPU that cannot fail;
 *   OP3  what the host's scalars become is known to the host: hyperparameters that it depends on are read.
 */
#include "ops/optimizer.h"

#include "base/host.h"
#include "ops/expression.h"
#include "ops/recorder.h"
#include "tensor/tape.h"

#include <string.h>

enum {
    FIRST_STATE = 2, /* places: the parameter, the gradient, and then the states */
    PLACES_MOST = FIRST_STATE + GN_OPTIM_STATES_MOST + GN_OPTIM_SCALARS_MOST,
};

struct entry {
    double scalars[GN_OPTIM_SCALARS_MOST]; /* where `is_known` */
    bool is_known, is_done;
};

struct run {
    const struct gni_optimizer *optimizer;
    const gn_optim_lists *lists;
    const void *options;
    struct entry *entries;
    int *group; /* the entries of a group */
    gn_tensor **tensors;
};

/* The number in a tensor of one element; a GPU is waited for. */
static gn_status number_read(const char *name, gn_tensor *tensor, double *number)
{
    struct gni_scope s = {0};
    if (tensor->count != 1)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: a number is a tensor of one element, not %s",
                         name, gni_shape_text(tensor->ndim, tensor->sizes).text);
    *number = gni_scalar_double(gni_item(&s, tensor));
    return gni_scope_close(&s);
}

/* ---- what functions that write programs call ------------------------------------------------------ */

int gni_optim_number(struct gni_optim_writing *w, gn_operand operand)
{
    bool is_near = operand.tensor != NULL && operand.tensor->device == w->device &&
                   !w->device->ops->is_host_memory;
    if (operand.tensor == NULL || (!w->must_know && (is_near || w->is_recorded)))
        return gni_list_operand(&w->list, operand);
    double number = 0;
    gn_status status = number_read("a hyperparameter", operand.tensor, &number);
    w->status = w->status == GN_OK ? status : w->status;
    return gni_list_number(&w->list, number);
}

void gni_optim_parameter(struct gni_optim_writing *w, int value)
{
    gni_list_store(&w->list, 0, value);
}

void gni_optim_state(struct gni_optim_writing *w, int state, int value)
{
    gni_list_store(&w->list, FIRST_STATE + state, value);
}

/* ---- scalars ---------------------------------------------------------------------------------------- */

/* A scalar on the CPU: checked, and its value. */
static gn_status scalar_read(const struct run *run, gn_tensor *tensor, double *number)
{
    if (tensor->count != 1 || gni_dtype_kind(tensor->dtype) != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "%s: what counts steps is a floating tensor of one element, not %s of "
                         "shape %s",
                         run->optimizer->name, gni_dtypes[tensor->dtype].name,
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    struct gni_shape shape;
    shape.ndim = tensor->ndim;
    memcpy(shape.sizes, tensor->sizes, (size_t)tensor->ndim * sizeof *shape.sizes);
    GN_TRY(gni_out_check(run->optimizer->name, tensor, &shape, tensor->dtype));
    GN_TRY(gni_tape_refuse(run->optimizer->name, tensor));
    GN_TRY(gni_tensor_flush(tensor));
    GN_TRY(gni_recorder_flush_readers(gni_tensor_storage(tensor)));
    *number = gni_scalar_double(gni_scalar_load(tensor->dtype, gni_tensor_data(tensor)));
    return GN_OK;
}

/* What a list program would refuse, too late: a group before may have been written. */
static gn_status tensor_check(const struct run *run, int e, const char *what, gn_tensor *tensor)
{
    const gn_tensor *parameter = run->lists->parameters[e];
    const char *name = run->optimizer->name;
    if (gni_dtype_kind(tensor->dtype) != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_TYPE, "%s: %s of parameter %d is %s, which is no floating type",
                         name, what, e, gni_dtypes[tensor->dtype].name);
    if (!gni_shape_is_equal(tensor->ndim, tensor->sizes, parameter->ndim, parameter->sizes))
        return gni_error(GN_ERROR_SHAPE, "%s: %s of parameter %d has shape %s, and that has %s",
                         name, what, e, gni_shape_text(tensor->ndim, tensor->sizes).text,
                         gni_shape_text(parameter->ndim, parameter->sizes).text);
    if (tensor->device != parameter->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: %s of parameter %d is on %s, and that on %s",
                         name, what, e, gni_device_label(tensor->device).text,
                         gni_device_label(parameter->device).text);
    return run->lists->is_recorded ? GN_OK : gni_tape_refuse(name, tensor);
}

static gn_status tensors_check(const struct run *run, int e)
{
    const gn_optim_lists *lists = run->lists;
    if (lists->parameters[e] == NULL || lists->gradients[e] == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: parameter %d, or its gradient, is NULL",
                         run->optimizer->name, e);
    GN_TRY(tensor_check(run, e, "the value", lists->parameters[e]));
    GN_TRY(tensor_check(run, e, "the gradient", lists->gradients[e]));
    for (int s = 0; s < run->optimizer->state_count; s++) {
        if (lists->states[s] == NULL || lists->states[s][e] == NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "%s: parameter %d has no state %d",
                             run->optimizer->name, e, s);
        GN_TRY(tensor_check(run, e, "a state", lists->states[s][e]));
    }
    return GN_OK;
}

static gn_status entry_prepare(const struct run *run, int e)
{
    const gn_optim_lists *lists = run->lists;
    struct entry *entry = &run->entries[e];
    int on_cpu = 0;
    entry->is_done = false;
    GN_TRY(tensors_check(run, e));
    for (int s = 0; s < run->optimizer->scalar_count; s++) {
        gn_tensor *scalar = lists->scalars[s] != NULL ? lists->scalars[s][e] : NULL;
        if (scalar == NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "%s: parameter %d has no scalar %d",
                             run->optimizer->name, e, s);
        if (!scalar->device->ops->is_host_memory)
            continue;
        GN_TRY(scalar_read(run, scalar, &entry->scalars[s]));
        on_cpu++;
    }
    entry->is_known = on_cpu == run->optimizer->scalar_count;
    if (on_cpu != 0 && !entry->is_known)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: parameter %d has scalars on two devices",
                         run->optimizer->name, e);
    return GN_OK;
}

static bool is_together(const struct run *run, int a, int b)
{
    const struct entry *one = &run->entries[a], *other = &run->entries[b];
    bool is_same = run->lists->parameters[a]->device == run->lists->parameters[b]->device &&
                   one->is_known == other->is_known;
    for (int s = 0; s < run->optimizer->scalar_count && one->is_known; s++)
        is_same = is_same && one->scalars[s] == other->scalars[s];
    return is_same;
}

/* The scalars of a group that the host knows get their new values. */
static void scalars_write(const struct run *run, const struct gni_optim_writing *w, int count)
{
    for (int s = 0; s < run->optimizer->scalar_count; s++) {
        const gn_scalar number = {.kind = GN_FLOAT64,
                                  .floating = gni_list_known(&w->list, w->scalars[s])};
        for (int i = 0; i < count; i++) {
            gn_tensor *scalar = run->lists->scalars[s][run->group[i]];
            gni_scalar_store(number, scalar->dtype, gni_tensor_data(scalar));
            gni_storage_note_write(gni_tensor_storage(scalar));
        }
    }
}

/* ---- groups ------------------------------------------------------------------------------------------ */

/* The gradient as the step takes it. */
static void gradient_write(const struct run *run, struct gni_optim_writing *w)
{
    const gn_optim_lists *lists = run->lists;
    if (lists->scale != NULL) {
        int scale = gni_optim_number(w, (gn_operand){.tensor = lists->scale});
        w->gradient = gni_list_op(&w->list, GN_OP_DIVIDE, w->gradient, scale);
        if (!run->optimizer->is_preparing)
            gni_list_store(&w->list, 1, w->gradient);
    }
    if (lists->is_maximized)
        w->gradient = gni_list_unary(&w->list, GN_OP_NEGATIVE, w->gradient);
}

/* One step more; and what else the optimizer has. */
static void scalars_advance(const struct gni_optimizer *optimizer, struct gni_optim_writing *w)
{
    if (optimizer->scalar_count > 0)
        w->scalars[0] =
            gni_list_op(&w->list, GN_OP_ADD, w->scalars[0], gni_list_number(&w->list, 1));
    if (optimizer->advance != NULL)
        optimizer->advance(w);
}

static void writing_init(const struct run *run, gn_device *device, struct gni_optim_writing *w)
{
    w->options = run->options;
    w->device = device;
    w->is_recorded = run->lists->is_recorded;
    w->must_know = false;
    w->status = GN_OK;
}

/* What the host computes becomes what its scalars can hold. */
static void scalars_round(const struct run *run, int entry, struct gni_optim_writing *w)
{
    for (int s = 0; s < run->optimizer->scalar_count; s++) {
        double number = gni_list_known(&w->list, w->scalars[s]);
        if (run->lists->scalars[s][entry]->dtype != GN_FLOAT64)
            w->scalars[s] = gni_list_number(&w->list, (double)(float)number);
    }
}

static void program_write(const struct run *run, int first, struct gni_optim_writing *w)
{
    const struct gni_optimizer *optimizer = run->optimizer;
    const struct entry *entry = &run->entries[first];
    int places = FIRST_STATE + optimizer->state_count;
    int singles = entry->is_known ? 0 : optimizer->scalar_count;
    gni_list_writer_init(&w->list, places + singles, ((1U << singles) - 1U) << places);
    w->parameter = 0;
    w->gradient = 1;
    for (int s = 0; s < optimizer->state_count; s++)
        w->states[s] = FIRST_STATE + s;
    memset(w->scalars, 0, sizeof w->scalars);
    for (int s = 0; s < optimizer->scalar_count; s++)
        w->scalars[s] = entry->is_known ? gni_list_number(&w->list, entry->scalars[s]) : places + s;
    gradient_write(run, w);
    memcpy(w->before, w->scalars, sizeof w->before);
    w->must_know = entry->is_known; /* OP3 */
    scalars_advance(optimizer, w);
    w->must_know = false;
    if (entry->is_known && w->status == GN_OK)
        scalars_round(run, first, w);
    optimizer->write(w);
}

/* The tensors of a group, one place after the other. */
static void tensors_take(const struct run *run, int count, bool has_singles)
{
    const gn_optim_lists *lists = run->lists;
    gn_tensor *const *places[PLACES_MOST] = {lists->parameters, lists->gradients};
    gn_tensor **at = run->tensors;
    int used = FIRST_STATE;
    for (int s = 0; s < run->optimizer->state_count; s++)
        places[used++] = lists->states[s];
    for (int s = 0; s < run->optimizer->scalar_count && has_singles; s++)
        places[used++] = lists->scalars[s];
    for (int p = 0; p < used; p++)
        for (int i = 0; i < count; i++)
            *at++ = places[p][run->group[i]];
}

/* Changes the scalars of a group on a GPU. */
static gn_status scalars_run(const struct run *run, struct gni_optim_writing *w, int count,
                             gn_tensor *skip)
{
    const struct gni_optimizer *optimizer = run->optimizer;
    gn_tensor **at = run->tensors;
    gni_list_writer_init(&w->list, optimizer->scalar_count, 0);
    for (int s = 0; s < optimizer->scalar_count; s++)
        w->scalars[s] = s;
    scalars_advance(optimizer, w);
    for (int s = 0; s < optimizer->scalar_count; s++) {
        gni_list_store(&w->list, s, w->scalars[s]);
        for (int i = 0; i < count; i++)
            *at++ = run->lists->scalars[s][run->group[i]];
    }
    GN_TRY(w->status);
    return gni_list_writer_run(&w->list, count, run->tensors, skip);
}

/* The group of an entry, and all later ones that go with it. */
static gn_status group_run(const struct run *run, int first, gn_tensor *skip)
{
    const gn_optim_lists *lists = run->lists;
    const struct entry *entry = &run->entries[first];
    struct gni_optim_writing w;
    int count = 0;
    for (int e = first; e < lists->count; e++)
        if (!run->entries[e].is_done && is_together(run, first, e)) {
            run->entries[e].is_done = true;
            run->group[count++] = e;
        }
    writing_init(run, lists->parameters[first]->device, &w);
    program_write(run, first, &w);
    GN_TRY(w.status);
    tensors_take(run, count, !entry->is_known);
    if (lists->is_recorded)
        GN_TRY(gni_list_writer_record(&w.list, count, run->tensors));
    else
        GN_TRY(gni_list_writer_run(&w.list, count, run->tensors, skip));
    if (!entry->is_known)
        return scalars_run(run, &w, count, skip);
    scalars_write(run, &w, count);
    return GN_OK;
}

/* ---- the call ---------------------------------------------------------------------------------------- */

/* Whether the host must know if there is something to do: it counts the steps itself, or another device would have to know. */
static bool skip_is_read(const struct run *run)
{
    const gn_optim_lists *lists = run->lists;
    bool is_read = lists->skip->device->ops->is_host_memory;
    for (int e = 0; e < lists->count && !is_read; e++)
        is_read = (run->optimizer->scalar_count > 0 && run->entries[e].is_known) ||
                  lists->parameters[e]->device != lists->skip->device;
    return is_read;
}

static gn_status run_all(const struct run *run)
{
    const gn_optim_lists *lists = run->lists;
    gn_tensor *skip = lists->skip;
    for (int e = 0; e < lists->count; e++)
        GN_TRY(entry_prepare(run, e));
    if (skip != NULL && skip_is_read(run)) {
        double number = 0;
        GN_TRY(number_read("skip", skip, &number));
        if (number != 0)
            return GN_OK;
        skip = NULL;
    }
    for (int e = 0; e < lists->count; e++)
        if (!run->entries[e].is_done)
            GN_TRY(group_run(run, e, skip));
    return GN_OK;
}

gn_status gni_optim_run(const struct gni_optimizer *optimizer, const gn_optim_lists *lists,
                        const void *options)
{
    GN_CHECK_ARGUMENT(lists != NULL && options != NULL && lists->count >= 0,
                      "lists and options must not be NULL, count not negative");
    GN_CHECK_ARGUMENT(lists->count == 0 || (lists->parameters != NULL && lists->gradients != NULL),
                      "there are no parameters, or no gradients");
    GN_CHECK_ARGUMENT(!lists->is_recorded || lists->skip == NULL,
                      "a step that is recorded cannot be skipped");
    struct run run = {.optimizer = optimizer, .lists = lists, .options = options};
    size_t count = (size_t)lists->count, nbytes;
    if (count == 0)
        return GN_OK;
    nbytes = count * (sizeof *run.entries + PLACES_MOST * sizeof *run.tensors + sizeof *run.group);
    run.entries = gni_host_alloc(nbytes);
    if (run.entries == NULL)
        return gni_error_host_memory(nbytes);
    run.tensors = (gn_tensor **)(void *)(run.entries + count);
    run.group = (int *)(void *)(run.tensors + PLACES_MOST * count);
    gn_status status = run_all(&run);
    gni_host_free(run.entries);
    return status;
}
