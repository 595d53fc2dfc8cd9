/*
 * functions_nn_ctc.c: genesis.nn.functional: the CTC loss of sequences whose alignment is not known.
 *
 * The elements that the targets name are taken on the device, (steps, sequences, states); the sums over all alignments and
 * their gradients, which are computed together, come from the CPU: cpu/cpu_ctc.h.
 */
#include "ops/linalg.h"
#include "ops/losses.h"

#include "ops/cpu/cpu_ctc.h"
#include "tensor/tape.h"

#include <math.h>

/* What the arguments say, on the host. */
struct alignment {
    gn_tensor *log_probs; /* (steps, sequences, classes) */
    int64_t steps, sequences, classes, longest;
    gn_tensor *inputs, *targets; /* how long the sequences are */
    gn_tensor *states; /* (sequences, 2 longest + 1): the classes, with blanks around each */
};

/* Integers on the host: one for each sequence. */
static gn_tensor *lengths_take(struct gni_scope *s, const struct alignment *made, const char *name,
                               const gn_argument *given, int64_t most)
{
    gn_tensor *x = given->operand.tensor;
    if (!gni_scope_is_ok(s))
        return NULL;
    if (x == NULL) {
        gn_device *host;
        s->status = gni_device_get_host(&host);
        x = gni_scope_is_ok(s) ? gni_full(s, given->operand.scalar, GN_INT64, 0, NULL, host) : NULL;
    } else if (gni_dtype_kind(x->dtype) != GNI_KIND_INTEGER) {
        gni_scope_fail(s, GN_ERROR_TYPE, "ctc_loss: %s must be integral, not %s", name,
                       gni_dtypes[x->dtype].name);
    }
    if (!gni_scope_is_ok(s))
        return NULL;
    if (x->ndim > 1 || x->count != made->sequences) {
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "ctc_loss: %s must be of size %lld, one for each sequence, not of shape %s",
                       name, (long long)made->sequences, gni_shape_text(x->ndim, x->sizes).text);
        return NULL;
    }
    gn_tensor *host = gni_host_take(s, gni_cast(s, x, GN_INT64), false);
    const int64_t *numbers = (const void *)gni_host_data(s, host);
    for (int64_t i = 0; i < made->sequences && gni_scope_is_ok(s); i++)
        if (numbers[i] < 0 || numbers[i] > most)
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "ctc_loss: Expected %s to have value at most %lld and not below 0, but "
                           "got value %lld",
                           name, (long long)most, (long long)numbers[i]);
    return host;
}

/* The classes of all sequences, one behind the other or as rows: how many there are, and from where one's begin. */
static void states_make(struct gni_scope *s, struct alignment *made, gn_tensor *given,
                        int64_t blank)
{
    if (gni_dtype_kind(given->dtype) != GNI_KIND_INTEGER || given->ndim > 2)
        gni_scope_fail(s, GN_ERROR_TYPE, "ctc_loss: targets are integers of 1 or 2 dimensions");
    gn_tensor *host =
        gni_scope_is_ok(s) ? gni_host_take(s, gni_cast(s, given, GN_INT64), false) : NULL;
    const int64_t *classes = (const void *)gni_host_data(s, host);
    const int64_t *lengths = (const void *)gni_host_data(s, made->targets);
    int64_t sum = 0, room = 2 * made->longest + 1, sizes[] = {made->sequences, room};
    bool is_rows = given->ndim == 2;
    for (int64_t i = 0; i < made->sequences && gni_scope_is_ok(s); i++)
        sum += lengths[i];
    bool fits = is_rows ? given->sizes[0] == made->sequences && given->sizes[1] >= made->longest
                        : given->count == sum;
    if (!fits)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "ctc_loss: targets have shape %s: they are (N, S) with S at least %lld, or "
                       "all %lld classes one behind the other",
                       gni_shape_text(given->ndim, given->sizes).text, (long long)made->longest,
                       (long long)sum);
    made->states = gni_scope_is_ok(s) ? gni_full(s, (gn_scalar){.kind = GN_INT64, .integer = blank},
                                                 GN_INT64, 2, sizes, made->inputs->device)
                                      : NULL;
    if (gni_scope_is_ok(s))
        s->status = gni_tensor_flush(made->states);
    int64_t *states = (void *)gni_host_data(s, made->states), from = 0;
    for (int64_t i = 0; i < made->sequences && gni_scope_is_ok(s); i++) {
        for (int64_t k = 0; k < lengths[i]; k++) {
            int64_t class = classes[is_rows ? i * given->sizes[1] + k : from + k];
            if (class < 0 || class >= made->classes)
                gni_scope_fail(s, GN_ERROR_INDEX, "ctc_loss: target %lld is out of %lld classes",
                               (long long)class, (long long)made->classes);
            states[i * room + 2 * k + 1] = class;
        }
        from += lengths[i];
    }
}

/* log_probs, targets, input_lengths, target_lengths, blank */
static void alignment_take(struct gni_scope *s, const gn_argument *a, struct alignment *made)
{
    gn_tensor *x = a[0].operand.tensor;
    int64_t blank = a[4].operand.scalar.integer;
    *made = (struct alignment){.log_probs = x};
    if (!gni_dtype_is_floating(x->dtype))
        gni_scope_fail(s, GN_ERROR_TYPE, "ctc_loss: log_probs are floating numbers, not %s",
                       gni_dtypes[x->dtype].name);
    if (x->ndim != 2 && x->ndim != 3)
        gni_scope_fail(s, GN_ERROR_SHAPE, "ctc_loss: log_probs are (T, N, C) or (T, C), not %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    if (gni_scope_is_ok(s) && x->ndim == 2)
        made->log_probs = x = gni_unsqueeze(s, x, 1);
    if (!gni_scope_is_ok(s))
        return;
    made->steps = x->sizes[0];
    made->sequences = x->sizes[1];
    made->classes = x->sizes[2];
    if (blank < 0 || blank >= made->classes)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "ctc_loss: blank must be in label range, not %lld", (long long)blank);
    if (made->sequences == 0)
        gni_scope_fail(s, GN_ERROR_SHAPE, "ctc_loss: log_probs tensor must not be empty");
    made->inputs = lengths_take(s, made, "input_lengths", &a[2], made->steps);
    made->targets = lengths_take(s, made, "target_lengths", &a[3], INT32_MAX);
    const int64_t *lengths = (const void *)gni_host_data(s, made->targets);
    for (int64_t i = 0; i < made->sequences && gni_scope_is_ok(s); i++)
        made->longest = lengths[i] > made->longest ? lengths[i] : made->longest;
    if (gni_scope_is_ok(s) && a[1].operand.tensor->count < made->longest)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "ctc_loss: a target has %lld classes, and targets are of shape %s",
                       (long long)made->longest,
                       gni_shape_text(a[1].operand.tensor->ndim, a[1].operand.tensor->sizes).text);
    if (gni_scope_is_ok(s))
        states_make(s, made, a[1].operand.tensor, blank);
}

/* The loss of each sequence, in the type of `emissions`, and how much each of these takes part. */
static gn_tensor *losses_of(struct gni_scope *s, const struct alignment *given,
                            gn_tensor *emissions, bool is_infinity_zero)
{
    int64_t labels = 2 * given->longest + 1;
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = emissions});
    gn_tensor *host = gni_host_take(s, emissions, false), *results[2] = {NULL};
    gn_tensor *sums = NULL, *rows = NULL;
    if (gni_scope_is_ok(s)) {
        const int64_t sizes[] = {given->steps, given->sequences, labels};
        const int64_t two[] = {given->sequences, 2, labels};
        sums = gni_empty(s, GN_FLOAT64, 3, sizes, given->inputs->device);
        rows = is_taped ? gni_empty(s, GN_FLOAT64, 3, two, given->inputs->device) : NULL;
        results[0] = gni_empty(s, host->dtype, 1, &given->sequences, given->inputs->device);
    }
    if (gni_scope_is_ok(s)) {
        struct gni_ctc task = {
            .steps = given->steps,
            .sequences = given->sequences,
            .labels = labels,
            .input_lengths = (void *)gni_tensor_data(given->inputs),
            .target_lengths = (void *)gni_tensor_data(given->targets),
            .classes = (void *)gni_tensor_data(given->states),
            .sums = (void *)gni_tensor_data(sums),
            .rows = rows != NULL ? (void *)gni_tensor_data(rows) : NULL,
            .emissions = (void *)gni_tensor_data(host),
            .losses = (void *)gni_tensor_data(results[0]),
            .is_double = host->dtype == GN_FLOAT64,
            .has_gradients = is_taped,
            .is_infinity_zero = is_infinity_zero,
        };
        gni_cpu_ctc_run(&task);
    }
    results[0] = gni_scope_is_ok(s) ? gni_host_give(s, results[0], emissions) : NULL;
    results[1] = is_taped && gni_scope_is_ok(s) ? gni_host_give(s, host, emissions) : NULL;
    gni_linalg_leave(s, is_taped,
                     &(struct gni_tape_step){.rule = GNI_RULE_ALIGNMENTS,
                                             .name = "ctc_loss",
                                             .input_count = 1,
                                             .inputs = &(gn_operand){.tensor = emissions},
                                             .result_count = 2,
                                             .results = results});
    return results[0];
}

/* log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity */
static gn_status ctc_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct alignment given;
    bool is_infinity_zero = gni_is_set(&a[6]);
    gn_tensor *emissions = NULL, *x = a[0].operand.tensor;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[5], NULL, NULL);
    alignment_take(&s, a, &given);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    const int64_t sizes[] = {given.steps, given.sequences, 2 * given.longest + 1};
    gn_tensor *places = gni_host_give(&s, given.states, x);
    places = gni_scope_is_ok(&s) ? gni_unsqueeze(&s, places, 0) : NULL;
    places = gni_scope_is_ok(&s) ? gni_expand(&s, places, 3, sizes) : NULL;
    if (gni_scope_is_ok(&s))
        s.status = gn_gather(given.log_probs, 2, places, &emissions);
    emissions = gni_scope_keep(&s, s.status, emissions);
    emissions = gni_scope_is_ok(&s) ? gni_wide(&s, emissions) : NULL;
    gn_tensor *losses =
        gni_scope_is_ok(&s) ? losses_of(&s, &given, emissions, is_infinity_zero) : NULL;
    if (is_infinity_zero && gni_scope_is_ok(&s)) {
        gn_tensor *is_infinite =
            gni_binary(&s, GN_OP_EQUAL, gni_of(losses), gni_floating(INFINITY));
        losses = gni_where(&s, is_infinite, gni_integer(0), gni_of(losses));
    }
    if (reduction == GNI_LOSS_MEAN && gni_scope_is_ok(&s)) {
        gn_tensor *counts = gni_host_give(&s, given.targets, x);
        counts = gni_scope_is_ok(&s) ? gni_reshape(&s, counts, 1, &given.sequences) : NULL;
        counts = gni_binary(&s, GN_OP_MAXIMUM, gni_of(counts), gni_integer(1));
        losses = gni_binary(&s, GN_OP_DIVIDE, gni_of(losses), gni_of(counts));
    }
    if (reduction == GNI_LOSS_NONE && x->ndim == 2 && gni_scope_is_ok(&s))
        losses = gni_squeeze(&s, losses, 0);
    return gni_scope_give(&s, gni_loss_reduce(&s, losses, reduction, x->dtype), results);
}

const gn_function gni_functions_nn_ctc[] = {
    {"nn.ctc_loss", NULL,
     "log_probs: Tensor, targets: Tensor, input_lengths: counts, target_lengths: counts, "
     "blank: int = 0, reduction: text = 'mean', zero_infinity: bool = False",
     0, ctc_loss_call,
     "The loss of sequences whose alignment is not known: minus the logarithm of the sum over all "
     "alignments of a target.\n\n`log_probs` are (T, N, C), of log_softmax(), or (T, C). Targets "
     "are (N, S), or one behind the other. 'mean' divides each loss by the length of its target. A "
     "target that is too long has an infinite loss; with `zero_infinity` it is 0. It is computed "
     "on "
     "the CPU, from the elements that the targets name.",
     ">>> log_probs = genesis.tensor([[0.5, 0.5], [0.5, 0.5]]).log()\n"
     ">>> genesis.nn.functional.ctc_loss(log_probs, genesis.tensor([1]), 2, 1)\n"
     "tensor(0.2877)"},
    {0},
};
