/*
 * list_writer.c: writes a list program one value at a time, and runs it, in one call or by recorded operations.
 *
 * Values of numbers and steps are known by their place in the program only when all numbers are known, so that until then
 * they are numbered from KNOWN, GIVEN and STEPS on.
 */
#include "ops/list_writer.h"

#include "ops/expression.h"

#include <math.h>

enum {
    KNOWN = 1000,
    GIVEN = 2000,
    STEPS = 3000,
};

void gni_list_writer_init(struct gni_list_writer *writer, int place_count, unsigned single_places)
{
    writer->place_count = place_count;
    writer->single_places = single_places;
    writer->step_count = writer->store_count = writer->known_count = writer->given_count = 0;
    writer->is_full = place_count > GN_LIST_PLACES_MOST;
}

int gni_list_number(struct gni_list_writer *writer, double number)
{
    for (int i = 0; i < writer->known_count; i++)
        if (writer->known[i] == number && signbit(writer->known[i]) == signbit(number))
            return KNOWN + i;
    if (writer->known_count == GNI_LIST_KNOWN_MOST) {
        writer->is_full = true;
        return KNOWN;
    }
    writer->known[writer->known_count] = number;
    return KNOWN + writer->known_count++;
}

int gni_list_operand(struct gni_list_writer *writer, gn_operand operand)
{
    if (operand.tensor == NULL)
        return gni_list_number(writer, gni_scalar_double(operand.scalar));
    for (int i = 0; i < writer->given_count; i++)
        if (writer->given[i].tensor == operand.tensor)
            return GIVEN + i;
    if (writer->given_count == GN_LIST_NUMBERS_MOST) {
        writer->is_full = true;
        return GIVEN;
    }
    writer->given[writer->given_count] = operand;
    return GIVEN + writer->given_count++;
}

bool gni_list_is_known(const struct gni_list_writer *writer, int value)
{
    (void)writer;
    return value >= KNOWN && value < GIVEN;
}

double gni_list_known(const struct gni_list_writer *writer, int value)
{
    return writer->known[value - KNOWN];
}

static bool is_same_step(const gn_list_step *a, const gn_list_step *b)
{
    return a->op == b->op && a->in[0] == b->in[0] && a->in[1] == b->in[1] && a->in[2] == b->in[2];
}

/* A step, or the one that computes the same. */
static int step_add(struct gni_list_writer *writer, gn_list_step step)
{
    for (int i = 0; i < writer->step_count; i++)
        if (is_same_step(&writer->steps[i], &step))
            return STEPS + i;
    if (writer->step_count == GN_LIST_STEPS_MOST) {
        writer->is_full = true;
        return 0;
    }
    writer->steps[writer->step_count] = step;
    return STEPS + writer->step_count++;
}

int gni_list_unary(struct gni_list_writer *writer, gn_op op, int a)
{
    if (op == GN_OP_SQRT && gni_list_is_known(writer, a))
        return gni_list_number(writer, sqrt(gni_list_known(writer, a)));
    return step_add(writer, (gn_list_step){op, {a, -1, -1}});
}

/* What the host makes of two numbers; false: nothing. */
static bool known_compute(gn_op op, double a, double b, double *made)
{
    switch (op) {
    case GN_OP_ADD:
        *made = a + b;
        return true;
    case GN_OP_SUBTRACT:
        *made = a - b;
        return true;
    case GN_OP_MULTIPLY:
        *made = a * b;
        return true;
    case GN_OP_DIVIDE:
        *made = a / b;
        return true;
    case GN_OP_POWER:
        *made = pow(a, b);
        return true;
    case GN_OP_MAXIMUM:
        *made = a > b || isnan(a) ? a : b;
        return true;
    default:
        return false;
    }
}

int gni_list_op(struct gni_list_writer *writer, gn_op op, int a, int b)
{
    double made;
    bool is_known = gni_list_is_known(writer, a) && gni_list_is_known(writer, b);
    if (is_known && known_compute(op, gni_list_known(writer, a), gni_list_known(writer, b), &made))
        return gni_list_number(writer, made);
    if (op == GN_OP_MULTIPLY && gni_list_is_known(writer, a) && gni_list_known(writer, a) == 1)
        return b;
    if (op == GN_OP_MULTIPLY && gni_list_is_known(writer, b) && gni_list_known(writer, b) == 1)
        return a;
    return step_add(writer, (gn_list_step){op, {a, b, -1}});
}

int gni_list_where(struct gni_list_writer *writer, int condition, int a, int b)
{
    return step_add(writer, (gn_list_step){GN_OP_WHERE, {condition, a, b}});
}

void gni_list_store(struct gni_list_writer *writer, int place, int value)
{
    if (writer->store_count == GN_LIST_PLACES_MOST)
        writer->is_full = true;
    else
        writer->stores[writer->store_count++] = (gn_list_store){.value = value, .place = place};
}

/* ---- in one call -------------------------------------------------------------------------------- */

/* The program as gn_list_elementwise() takes it. Numbers that no step reads are left out. */
struct finished {
    gn_list_program program;
    gn_operand numbers[GN_LIST_NUMBERS_MOST];
    gn_list_step steps[GN_LIST_STEPS_MOST];
    gn_list_store stores[GN_LIST_PLACES_MOST];
    /* Of what the host knows: its place among the numbers; -1: not yet. */
    short place_of[GNI_LIST_KNOWN_MOST];
    int number_count;
};

static void number_place(struct finished *made, const struct gni_list_writer *writer, int value,
                         bool *is_full)
{
    if (!gni_list_is_known(writer, value) || made->place_of[value - KNOWN] >= 0)
        return;
    if (made->number_count == GN_LIST_NUMBERS_MOST) {
        *is_full = true;
        return;
    }
    made->numbers[made->number_count] = gni_floating(gni_list_known(writer, value));
    made->place_of[value - KNOWN] = (short)made->number_count++;
}

static int value_of(const struct finished *made, const struct gni_list_writer *writer, int value)
{
    if (value < KNOWN)
        return value;
    if (value < GIVEN)
        return writer->place_count + made->place_of[value - KNOWN];
    if (value < STEPS)
        return writer->place_count + value - GIVEN;
    return writer->place_count + made->number_count + value - STEPS;
}

static gn_status finish(const struct gni_list_writer *writer, struct finished *made)
{
    bool is_full = writer->is_full;
    made->number_count = writer->given_count;
    for (int i = 0; i < writer->given_count; i++)
        made->numbers[i] = writer->given[i];
    for (int i = 0; i < writer->known_count; i++)
        made->place_of[i] = -1;
    for (int s = 0; s < writer->step_count; s++)
        for (int i = 0; i < 3; i++)
            number_place(made, writer, writer->steps[s].in[i], &is_full);
    for (int i = 0; i < writer->store_count; i++)
        number_place(made, writer, writer->stores[i].value, &is_full);
    if (is_full)
        return gni_error(GN_ERROR_OVERFLOW, "a list program is too long to be written");
    for (int s = 0; s < writer->step_count; s++) {
        made->steps[s].op = writer->steps[s].op;
        for (int i = 0; i < 3; i++)
            made->steps[s].in[i] = value_of(made, writer, writer->steps[s].in[i]);
    }
    for (int i = 0; i < writer->store_count; i++)
        made->stores[i] = (gn_list_store){.value = value_of(made, writer, writer->stores[i].value),
                                          .place = writer->stores[i].place};
    made->program = (gn_list_program){.place_count = writer->place_count,
                                      .number_count = made->number_count,
                                      .single_places = writer->single_places,
                                      .steps = made->steps,
                                      .step_count = writer->step_count,
                                      .stores = made->stores,
                                      .store_count = writer->store_count};
    return GN_OK;
}

gn_status gni_list_writer_run(const struct gni_list_writer *writer, int count,
                              gn_tensor *const *tensors, gn_tensor *skip)
{
    struct finished made;
    GN_TRY(finish(writer, &made));
    return gn_list_elementwise(&made.program, count, tensors, made.numbers, skip);
}

/* ---- by recorded operations ------------------------------------------------------------------------ */

/* A number as a tensor without dimensions: what it is combined with decides the type. */
static gn_tensor *number_tensor(struct gni_scope *s, gn_operand number, gn_device *device)
{
    if (number.tensor != NULL)
        return number.tensor->ndim == 0 ? number.tensor
                                        : gni_reshape_values(s, number.tensor, 0, NULL);
    return gni_full(s, number.scalar, GN_FLOAT64, 0, NULL, device);
}

/* One entry. Everything is computed before anything is stored. */
static gn_status entry_record(const struct finished *made, int count, gn_tensor *const *tensors,
                              int entry)
{
    struct gni_scope s = {0};
    const gn_list_program *program = &made->program;
    gn_tensor *values[GN_LIST_PLACES_MOST + GN_LIST_NUMBERS_MOST + GN_LIST_STEPS_MOST];
    int used = 0;
    for (int p = 0; p < program->place_count; p++) {
        gn_tensor *tensor = tensors[(size_t)p * (size_t)count + (size_t)entry];
        bool is_stored = false;
        for (int i = 0; i < program->store_count; i++)
            is_stored |= made->stores[i].place == p;
        gn_tensor *value = (program->single_places >> p & 1) != 0
                               ? number_tensor(&s, gni_of(tensor), tensor->device)
                               : gni_wide(&s, tensor);
        /* A gradient may need the value of before. */
        values[used++] = is_stored && value == tensor ? gni_clone(&s, value) : value;
    }
    for (int i = 0; i < program->number_count; i++)
        values[used++] = number_tensor(&s, made->numbers[i], tensors[entry]->device);
    for (int i = 0; i < program->step_count && gni_scope_is_ok(&s); i++) {
        const gn_list_step *step = &made->steps[i];
        gn_operand operands[3] = {{.tensor = NULL}};
        int arity = step->in[1] < 0 ? 1 : step->in[2] < 0 ? 2 : 3;
        for (int k = 0; k < arity; k++)
            operands[k] = gni_of(values[step->in[k]]);
        values[used++] = gni_elementwise(&s, step->op, arity, operands);
    }
    for (int i = 0; i < program->store_count && gni_scope_is_ok(&s); i++) {
        gn_tensor *place = tensors[(size_t)made->stores[i].place * (size_t)count + (size_t)entry];
        gni_assign(&s, place, gni_of(gni_cast(&s, values[made->stores[i].value], place->dtype)));
    }
    return gni_scope_close(&s);
}

gn_status gni_list_writer_record(const struct gni_list_writer *writer, int count,
                                 gn_tensor *const *tensors)
{
    struct finished made;
    GN_TRY(finish(writer, &made));
    for (int e = 0; e < count; e++)
        GN_TRY(entry_record(&made, count, tensors, e));
    return GN_OK;
}
