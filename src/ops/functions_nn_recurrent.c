/*
 * functions_nn_recurrent.c: one direction of one layer of a recurrent network: what genesis.nn.RNN, LSTM and GRU compute.
 *
 * The product of all inputs is computed first. A step is then one product, of the state before it, and elementwise
 * operations that run as one kernel.
 *
 * Sequences of several lengths lie step by step: the first batch_sizes[0] rows are the first elements of all sequences, and
 * so on. The longest sequence is the first one, so that sizes only get smaller.
 */
#include "ops/functions.h"

#include "base/host.h"
#include "tensor/tape.h"

#include <string.h>

enum mode {
    MODE_TANH,
    MODE_RELU,
    MODE_LSTM,
    MODE_GRU,
};

static const char *const mode_words[] = {"RNN_TANH", "RNN_RELU", "LSTM", "GRU"};
static const int mode_gates[] = {1, 1, 4, 3};

enum {
    GATES_MOST = 4,
    STATES_MOST = 2,
    TURNED_STEPS_LEAST = 16, /* weight_turn() */
    TURNED_ROWS_MOST = 64,
};

struct layer {
    enum mode mode;
    int states; /* h, and c of an LSTM */
    int64_t steps, rows, hidden;
    gn_dtype dtype;
    const int64_t *batch_sizes; /* NULL: all are `rows` */
    gn_tensor *input_weight, *state_weight;
    gn_tensor
        *turned_weight;   /* the state's, transposed and contiguous: weight_turn(); NULL: none */
    gn_tensor *bias;      /* that the product of inputs gets; NULL: none */
    gn_tensor *last_bias; /* of a GRU's last gate, for the state's part alone; NULL: none */
    gn_tensor *projection;
};

/* What goes from step to step. */
struct state {
    gn_tensor *of[STATES_MOST];
};

static int64_t batch_of(const struct layer *layer, int64_t step)
{
    return layer->batch_sizes != NULL ? layer->batch_sizes[step] : layer->rows;
}

/* ---- parts -------------------------------------------------------------------------------------- */

static void parts_record(struct gni_scope *s, int input_count, const gn_operand *inputs, int dim,
                         int count, gn_tensor **parts)
{
    const struct gni_parts_details details = {.dimension = dim};
    if (gni_scope_is_ok(s))
        s->status = gni_tape.record(&(struct gni_tape_step){.rule = GNI_RULE_PARTS,
                                                            .name = "split",
                                                            .input_count = input_count,
                                                            .inputs = inputs,
                                                            .result_count = count,
                                                            .results = parts,
                                                            .details = &details,
                                                            .detail_bytes = sizeof details});
}

/* Views one behind the other along a dimension; `sizes` NULL: all have `size`. */
static void parts_make(struct gni_scope *s, gn_tensor *x, int dim, int count, const int64_t *sizes,
                       int64_t size, gn_tensor **parts)
{
    if (!gni_scope_is_ok(s))
        return;
    bool is_taped = gni_tape_enter(x);
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        int64_t own = sizes != NULL ? sizes[i] : size;
        parts[i] = gni_narrow(s, x, dim, at, own);
        at += own;
    }
    gni_tape_is_paused &= !is_taped;
    if (is_taped)
        parts_record(s, 1, &(const gn_operand){.tensor = x}, dim, count, parts);
}

/* The parts of a sum along dimension 1, in float32 if they are halves. Both addends have the same gradient: that of all parts,
 * put together once. */
static void sum_parts_make(struct gni_scope *s, gn_tensor *a, gn_tensor *b, int count, int64_t size,
                           gn_tensor **parts)
{
    if (!gni_scope_is_ok(s))
        return;
    const gn_operand inputs[] = {{.tensor = a}, {.tensor = b}};
    bool is_taped = gni_tape_enter_any(2, inputs);
    for (int i = 0; i < count; i++) {
        gn_tensor *first = gni_wide(s, gni_narrow(s, a, 1, i * size, size));
        gn_tensor *second = gni_wide(s, gni_narrow(s, b, 1, i * size, size));
        parts[i] = gni_binary(s, GN_OP_ADD, gni_of(first), gni_of(second));
    }
    gni_tape_is_paused &= !is_taped;
    if (is_taped)
        parts_record(s, 2, inputs, 1, count, parts);
}

/* ---- steps -------------------------------------------------------------------------------------- */

static gn_operand product(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_of(gni_binary(s, GN_OP_MULTIPLY, gni_of(a), gni_of(b)));
}

/* x @ weight.T */
static gn_tensor *linear(struct gni_scope *s, gn_tensor *x, gn_tensor *weight)
{
    return gni_scope_is_ok(s) ? gni_matmul(s, x, gni_transpose(s, weight, 0, 1)) : NULL;
}

/* c' = f c + i g, h' = o tanh(c'); the gates are i, f, g, o. */
static void lstm_step(struct gni_scope *s, const struct layer *layer, gn_tensor *x, gn_tensor *own,
                      struct state *state)
{
    gn_tensor *gates[GATES_MOST];
    sum_parts_make(s, x, own, 4, layer->hidden, gates);
    if (!gni_scope_is_ok(s))
        return;
    gn_operand kept = product(s, gni_unary(s, GN_OP_SIGMOID, gates[1]), gni_wide(s, state->of[1]));
    gn_operand added =
        product(s, gni_unary(s, GN_OP_SIGMOID, gates[0]), gni_unary(s, GN_OP_TANH, gates[2]));
    gn_tensor *cell = gni_binary(s, GN_OP_ADD, kept, added);
    gn_operand shown =
        product(s, gni_unary(s, GN_OP_SIGMOID, gates[3]), gni_unary(s, GN_OP_TANH, cell));
    if (!gni_scope_is_ok(s))
        return;
    state->of[0] = gni_cast(s, shown.tensor, layer->dtype);
    state->of[1] = gni_cast(s, cell, layer->dtype);
}

/* h' = n + z (h - n), n = tanh(x_n + r (h_n + b_n)); the gates are r, z, n. */
static void gru_step(struct gni_scope *s, const struct layer *layer, gn_tensor *x, gn_tensor *own,
                     struct state *state)
{
    gn_tensor *of_x[GATES_MOST], *of_h[GATES_MOST], *both[2];
    parts_make(s, x, 1, 3, NULL, layer->hidden, of_x);
    parts_make(s, own, 1, 3, NULL, layer->hidden, of_h);
    if (!gni_scope_is_ok(s))
        return;
    for (int i = 0; i < 2; i++) {
        gn_tensor *sum =
            gni_binary(s, GN_OP_ADD, gni_of(gni_wide(s, of_x[i])), gni_of(gni_wide(s, of_h[i])));
        both[i] = gni_unary(s, GN_OP_SIGMOID, sum);
    }
    gn_tensor *last = gni_wide(s, of_h[2]), *h = gni_wide(s, state->of[0]);
    if (layer->last_bias != NULL)
        last = gni_binary(s, GN_OP_ADD, gni_of(last), gni_of(layer->last_bias));
    last = gni_binary(s, GN_OP_ADD, gni_of(gni_wide(s, of_x[2])), product(s, both[0], last));
    last = gni_unary(s, GN_OP_TANH, last);
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(h), gni_of(last));
    h = gni_binary(s, GN_OP_ADD, gni_of(last), product(s, both[1], apart));
    state->of[0] = gni_scope_is_ok(s) ? gni_cast(s, h, layer->dtype) : NULL;
}

/*
 * One step: `state` becomes new references. What is between is let go at once, so that it need not be stored.
 */
static gn_status step_run(const struct layer *layer, gn_tensor *x, struct state *state)
{
    struct gni_scope s = {0};
    gn_results results = {0};
    gn_tensor *own = layer->turned_weight != NULL
                         ? gni_matmul(&s, state->of[0], layer->turned_weight)
                         : linear(&s, state->of[0], layer->state_weight);
    if (layer->mode == MODE_LSTM) {
        lstm_step(&s, layer, x, own, state);
    } else if (layer->mode == MODE_GRU) {
        gru_step(&s, layer, x, own, state);
    } else {
        gn_tensor *sum = gni_scope_is_ok(&s) ? gni_binary(&s, GN_OP_ADD, gni_of(gni_wide(&s, x)),
                                                          gni_of(gni_wide(&s, own)))
                                             : NULL;
        sum = gni_unary(&s, layer->mode == MODE_RELU ? GN_OP_RELU : GN_OP_TANH, sum);
        state->of[0] = gni_scope_is_ok(&s) ? gni_cast(&s, sum, layer->dtype) : NULL;
    }
    return gni_scope_give_list(&s, layer->states, state->of, &results);
}

/* The same with references that belong to a scope. */
static void step_keep(struct gni_scope *s, const struct layer *layer, gn_tensor *x,
                      struct state *state)
{
    if (!gni_scope_is_ok(s))
        return;
    gn_status status = step_run(layer, x, state);
    for (int i = 0; i < layer->states; i++)
        state->of[i] = gni_scope_keep(s, status, state->of[i]);
    if (layer->projection != NULL)
        state->of[0] = linear(s, state->of[0], layer->projection);
}

/* ---- a layer ------------------------------------------------------------------------------------ */

/* Forward: sequences that have ended keep their state, which goes to `ended`, the longest ones last. */
static void rows_drop(struct gni_scope *s, const struct layer *layer, int64_t rows,
                      struct state *state, struct state *ended, int64_t *count)
{
    int64_t before = gni_scope_is_ok(s) ? state->of[0]->sizes[0] : rows;
    if (before == rows)
        return;
    for (int i = 0; i < layer->states; i++) {
        gn_tensor *parts[2];
        parts_make(s, state->of[i], 0, 2, (const int64_t[]){rows, before - rows}, 0, parts);
        state->of[i] = gni_scope_is_ok(s) ? parts[0] : NULL;
        ended[*count].of[i] = gni_scope_is_ok(s) ? parts[1] : NULL;
    }
    (*count)++;
}

/* Backward: sequences begin later, with the state that they were given. */
static void rows_add(struct gni_scope *s, const struct layer *layer, int64_t rows,
                     const struct state *first, struct state *state)
{
    int64_t before = gni_scope_is_ok(s) ? state->of[0]->sizes[0] : rows;
    for (int i = 0; i < layer->states && before < rows && gni_scope_is_ok(s); i++) {
        gn_tensor *more = gni_narrow(s, first->of[i], 0, before, rows - before);
        state->of[i] =
            gni_scope_is_ok(s) ? gni_cat(s, 2, (gn_tensor *[]){state->of[i], more}, 0) : NULL;
    }
}

/* The state of all sequences behind the last step. */
static void ended_join(struct gni_scope *s, const struct layer *layer, struct state *state,
                       const struct state *ended, int64_t count, gn_tensor **room)
{
    for (int i = 0; i < layer->states && count > 0 && gni_scope_is_ok(s); i++) {
        room[0] = state->of[i];
        for (int64_t k = 0; k < count; k++)
            room[1 + k] = ended[count - 1 - k].of[i];
        state->of[i] = gni_cat(s, (int)count + 1, room, 0);
    }
}

/* On the host a product of few rows takes longer with a transposed matrix, which all steps read. The gradients of such a
 * product do so with one that is not: nothing is turned where there are some. */
static void weight_turn(struct gni_scope *s, struct layer *layer, const gn_tensor *input)
{
    bool is_taped = gni_is_taped(layer->state_weight) || gni_is_taped(input);
    if (is_taped || !input->device->ops->is_immediate || layer->steps < TURNED_STEPS_LEAST ||
        layer->rows > TURNED_ROWS_MOST)
        return;
    layer->turned_weight = gni_clone(s, gni_transpose(s, layer->state_weight, 0, 1));
}

/* All steps: the outputs, one behind the other, and the last state in `state`. */
static gn_tensor *layer_run(struct gni_scope *s, const struct layer *layer, gn_tensor *input,
                            bool is_reversed, struct state *state)
{
    const struct state first = *state;
    int64_t steps = layer->steps, count = 0;
    /* The parts of the input; outputs; states that have ended, which take two places. */
    gn_tensor **parts = gni_scope_list(s, 4 * steps + 1);
    gn_tensor *all = linear(s, input, layer->input_weight);
    if (layer->bias != NULL)
        all = gni_binary(s, GN_OP_ADD, gni_of(all), gni_of(layer->bias));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor **outputs = parts + steps;
    struct state *ended = (struct state *)(void *)(outputs + steps + 1);
    parts_make(s, all, 0, (int)steps, layer->batch_sizes, layer->rows, parts);
    for (int64_t i = 0; i < steps && gni_scope_is_ok(s); i++) {
        int64_t step = is_reversed ? steps - 1 - i : i, rows = batch_of(layer, step);
        if (is_reversed && i == 0 && rows < first.of[0]->sizes[0])
            for (int k = 0; k < layer->states; k++)
                state->of[k] = gni_narrow(s, first.of[k], 0, 0, rows);
        if (is_reversed)
            rows_add(s, layer, rows, &first, state);
        else
            rows_drop(s, layer, rows, state, ended, &count);
        step_keep(s, layer, parts[step], state);
        outputs[step] = state->of[0];
    }
    gn_tensor *made = gni_scope_is_ok(s) ? gni_cat(s, (int)steps, outputs, 0) : NULL;
    ended_join(s, layer, state, ended, count, outputs);
    return made;
}

/* ---- the call ----------------------------------------------------------------------------------- */

static void mode_take(struct gni_scope *s, const char *word, struct layer *layer)
{
    for (int i = 0; i < (int)(sizeof mode_words / sizeof *mode_words); i++) {
        if (strcmp(word, mode_words[i]) != 0)
            continue;
        layer->mode = (enum mode)i;
        layer->states = layer->mode == MODE_LSTM ? 2 : 1;
        return;
    }
    gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                   "the mode is 'RNN_TANH', 'RNN_RELU', 'LSTM' or 'GRU', not '%s'", word);
}

static void sizes_take(struct gni_scope *s, const gn_argument *sizes, const gn_tensor *input,
                       struct layer *layer)
{
    int64_t sum = 0;
    if (!sizes->is_given) {
        if (input->ndim != 3)
            gni_scope_fail(s, GN_ERROR_SHAPE, "input is (steps, batch, features), not %s",
                           gni_shape_text(input->ndim, input->sizes).text);
        layer->steps = input->ndim == 3 ? input->sizes[0] : 0;
        layer->rows = input->ndim == 3 ? input->sizes[1] : 0;
        return;
    }
    layer->batch_sizes = sizes->integers;
    layer->steps = sizes->count;
    layer->rows = sizes->count > 0 ? sizes->integers[0] : 0;
    for (int i = 0; i < sizes->count; i++) {
        if (sizes->integers[i] <= 0 || (i > 0 && sizes->integers[i] > sizes->integers[i - 1]))
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "batch_sizes are above 0, and none is larger than the one before");
        sum += sizes->integers[i];
    }
    if (input->ndim != 2 || input->sizes[0] != sum)
        gni_scope_fail(s, GN_ERROR_SHAPE, "input has shape %s, and batch_sizes add up to %lld",
                       gni_shape_text(input->ndim, input->sizes).text, (long long)sum);
}

/* The biases that can be added to the product of all inputs; a GRU's last gate multiplies one of them. */
static void biases_take(struct gni_scope *s, gn_tensor *own, gn_tensor *of_state,
                        struct layer *layer)
{
    if (layer->mode != MODE_GRU || !gni_scope_is_ok(s)) {
        layer->bias = gni_binary(s, GN_OP_ADD, gni_of(own), gni_of(of_state));
        return;
    }
    gn_tensor *parts[2];
    int64_t sizes[] = {2 * layer->hidden, layer->hidden};
    parts_make(s, of_state, 0, 2, sizes, 0, parts);
    if (!gni_scope_is_ok(s))
        return;
    gn_tensor *none =
        gni_full(s, (gn_scalar){.kind = GN_INT64}, of_state->dtype, 1, &sizes[1], of_state->device);
    layer->last_bias = gni_wide(s, parts[1]);
    gn_tensor *both = gni_scope_is_ok(s) ? gni_cat(s, 2, (gn_tensor *[]){parts[0], none}, 0) : NULL;
    layer->bias = gni_binary(s, GN_OP_ADD, gni_of(own), gni_of(both));
}

static void weights_take(struct gni_scope *s, const gn_argument *weights, struct layer *layer)
{
    bool is_lstm = layer->mode == MODE_LSTM;
    bool has_bias = weights->count >= 4;
    if (weights->count != 2 && weights->count != 4 && !(is_lstm && weights->count <= 5))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "%d weights: there are 2, with biases 4",
                       weights->count);
    if (weights->count < 2 || !gni_scope_is_ok(s))
        return;
    gn_tensor *const *all = weights->tensors;
    layer->input_weight = all[0];
    layer->state_weight = all[1];
    int gates = mode_gates[layer->mode];
    for (int i = 0; i < 2; i++)
        if (all[i]->ndim != 2 || all[i]->sizes[0] % gates != 0)
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "a weight has shape %s: it has %d rows for each feature",
                           gni_shape_text(all[i]->ndim, all[i]->sizes).text, gates);
    layer->hidden = gni_scope_is_ok(s) ? all[0]->sizes[0] / gates : 0;
    layer->projection = weights->count % 2 == 1 ? all[weights->count - 1] : NULL;
    if (has_bias)
        biases_take(s, all[2], all[3], layer);
}

/* All tensors have the type of the input. */
static void types_check(struct gni_scope *s, const gn_tensor *input, const gn_argument *list,
                        const char *what)
{
    for (int i = 0; i < list->count; i++)
        if (list->tensors[i]->dtype != input->dtype)
            gni_scope_fail(s, GN_ERROR_TYPE, "input is of %s, and the %s are of %s",
                           gni_dtypes[input->dtype].name, what,
                           gni_dtypes[list->tensors[i]->dtype].name);
}

static gn_status recurrent_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct layer layer = {.dtype = a[0].operand.tensor->dtype};
    struct state state = {{NULL}};
    gn_tensor *input = a[0].operand.tensor;
    mode_take(&s, a[3].text, &layer);
    sizes_take(&s, &a[5], input, &layer);
    types_check(&s, input, &a[1], "states");
    types_check(&s, input, &a[2], "parameters");
    weights_take(&s, &a[2], &layer);
    if (layer.steps == 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input has no step");
    if (a[1].count != layer.states)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "%d states: there are %d", a[1].count,
                       layer.states);
    for (int i = 0; i < a[1].count && gni_scope_is_ok(&s); i++) {
        state.of[i] = a[1].tensors[i];
        if (state.of[i]->ndim != 2 || state.of[i]->sizes[0] != layer.rows)
            gni_scope_fail(&s, GN_ERROR_SHAPE, "a state has shape %s, and there are %lld sequences",
                           gni_shape_text(state.of[i]->ndim, state.of[i]->sizes).text,
                           (long long)layer.rows);
    }
    if (gni_scope_is_ok(&s) && layer.batch_sizes == NULL)
        input =
            gni_reshape(&s, input, 2, (const int64_t[]){layer.steps * layer.rows, input->sizes[2]});
    if (gni_scope_is_ok(&s))
        weight_turn(&s, &layer, input);
    gn_tensor *made =
        gni_scope_is_ok(&s) ? layer_run(&s, &layer, input, gni_is_set(&a[4]), &state) : NULL;
    if (gni_scope_is_ok(&s) && layer.batch_sizes == NULL)
        made = gni_reshape(&s, made, 3, (const int64_t[]){layer.steps, layer.rows, made->sizes[1]});
    gn_tensor *all[] = {made, state.of[0], state.of[1]};
    return gni_scope_give_list(&s, 1 + layer.states, all, results);
}

const gn_function gni_functions_nn_recurrent[] = {
    {"nn._recurrent", NULL,
     "input: Tensor, state: tensors, weights: tensors, mode: text, is_reversed: bool = False, "
     "batch_sizes: sizes = None -> tensors",
     GN_FORM_BLAS, recurrent_call,
     "One direction of a recurrent layer: the outputs of all steps, and the last state.\n\nInput "
     "is "
     "(steps, batch, features), or with batch_sizes (rows, features). The state is h, of an LSTM h "
     "and c. Weights are those of input and state, with biases these, and with a projection that.",
     NULL},
    {0},
};
