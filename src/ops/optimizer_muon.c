/*
 * optimizer_muon.c: Muon (genesis/optim.h): the momentum of a matrix, made orthogonal, is the change.
 *
 * A list program makes what is to be made orthogonal of all matrices; the iteration of Newton-Schulz is products of each
 * matrix in bfloat16; and a last program for all matrices with the same rate writes parameters and momenta, so that nothing
 * has changed where something before it fails.
 */
#include "ops/optimizer.h"

#include "base/host.h"
#include "ops/backend.h"
#include "ops/expression.h"

#include <math.h>
#include <string.h>

enum {
    ITERATIONS_MOST = 99,
};

/* beta x + alpha (a @ b), rounded to bfloat16; once, where products are not made of halves. */
static gn_tensor *add_product(struct gni_scope *s, gn_tensor *x, gn_tensor *a, gn_tensor *b,
                              double beta, double alpha)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    if (!gni_backend_get(x->device)->has_half_products) {
        a = gni_wide(s, a);
        b = gni_wide(s, b);
    }
    gn_tensor *product = gni_matmul(s, a, b);
    gn_tensor *scaled = gni_binary(s, GN_OP_MULTIPLY, gni_of(gni_wide(s, x)), gni_floating(beta));
    gn_tensor *other =
        gni_binary(s, GN_OP_MULTIPLY, gni_of(gni_wide(s, product)), gni_floating(alpha));
    return gni_cast(s, gni_binary(s, GN_OP_ADD, gni_of(scaled), gni_of(other)), GN_BFLOAT16);
}

/* The matrix divided by its norm. */
static gn_tensor *normalized(struct gni_scope *s, gn_tensor *x, double epsilon)
{
    gn_tensor *wide = gni_wide(s, x);
    gn_tensor *sum = gni_reduce(s, GN_REDUCE_SUM, gni_unary(s, GN_OP_SQUARE, wide), 0, false);
    gn_tensor *norm = gni_cast(s, gni_unary(s, GN_OP_SQRT, sum), GN_BFLOAT16);
    gn_tensor *bounded = gni_binary(s, GN_OP_MAXIMUM, gni_of(norm), gni_floating(epsilon));
    return gni_binary(s, GN_OP_DIVIDE, gni_of(x), gni_of(bounded));
}

/* U V^T of a matrix U S V^T, about. */
static gn_status orthogonalize(gn_tensor *given, const gn_optim_muon *o, gn_tensor **made)
{
    struct gni_scope s = {0};
    bool is_tall = given->sizes[0] > given->sizes[1];
    gn_tensor *x = gni_cast(&s, given, GN_BFLOAT16);
    if (is_tall)
        x = gni_transpose(&s, x, 0, 1);
    x = normalized(&s, x, o->epsilon);
    for (int i = 0; i < o->iterations && gni_scope_is_ok(&s); i++) {
        gn_tensor *gram = gni_matmul(&s, x, gni_transpose(&s, x, 0, 1));
        gn_tensor *update =
            add_product(&s, gram, gram, gram, o->coefficients[1], o->coefficients[2]);
        x = add_product(&s, x, update, x, o->coefficients[0], 1);
    }
    if (is_tall)
        x = gni_transpose(&s, x, 0, 1);
    return gni_scope_end(&s, x, made);
}

static double rate_factor(const gn_optim_muon *o, const gn_tensor *parameter)
{
    double rows = (double)parameter->sizes[0], columns = (double)parameter->sizes[1];
    switch (o->adjustment) {
    case GN_MUON_MATCH_RMS_ADAMW:
        return 0.2 * sqrt(fmax(rows, columns));
    case GN_MUON_SPECTRAL_UNCLAMPED:
        return sqrt(rows / columns);
    default:
        return sqrt(fmax(1, rows / columns));
    }
}

/* ---- programs ---------------------------------------------------------------------------------------- */

static int lerp(struct gni_optim_writing *w, int from, int to, int weight)
{
    int apart = gni_list_op(&w->list, GN_OP_SUBTRACT, to, from);
    return gni_list_op(&w->list, GN_OP_ADD, from,
                       gni_list_op(&w->list, GN_OP_MULTIPLY, apart, weight));
}

/* The momentum after the step. */
static int momentum_of(struct gni_optim_writing *w, const gn_optim_muon *o)
{
    int rest = gni_list_op(&w->list, GN_OP_SUBTRACT, gni_list_number(&w->list, 1),
                           gni_optim_number(w, o->momentum));
    return lerp(w, w->states[0], w->gradient, rest);
}

/* States: the momentum, and what is to be made orthogonal, which alone is written. */
static void update_write(struct gni_optim_writing *w)
{
    const gn_optim_muon *o = w->options;
    int kept = momentum_of(w, o);
    if (o->is_nesterov)
        kept = lerp(w, w->gradient, kept, gni_optim_number(w, o->momentum));
    gni_optim_state(w, 1, kept);
}

struct change {
    const gn_optim_muon *options;
    double factor; /* of the rate */
};

/* States: the momentum, and what was made orthogonal. */
static void change_write(struct gni_optim_writing *w)
{
    const struct change *change = w->options;
    const gn_optim_muon *o = change->options;
    int rate = gni_optim_number(w, o->rate), decay = gni_optim_number(w, o->decay);
    int lost = gni_list_op(&w->list, GN_OP_MULTIPLY, rate, decay);
    int left = gni_list_op(&w->list, GN_OP_SUBTRACT, gni_list_number(&w->list, 1), lost);
    int adjusted =
        gni_list_op(&w->list, GN_OP_MULTIPLY, rate, gni_list_number(&w->list, change->factor));
    int difference = gni_list_op(&w->list, GN_OP_MULTIPLY, w->states[1], adjusted);
    int stays = gni_list_op(&w->list, GN_OP_MULTIPLY, w->parameter, left);
    gni_optim_state(w, 0, momentum_of(w, o));
    gni_optim_parameter(w, gni_list_op(&w->list, GN_OP_SUBTRACT, stays, difference));
}

/* ---- the call ------------------------------------------------------------------------------------------ */

enum {
    PARAMETER,
    GRADIENT,
    MOMENTUM,
    UPDATE,
    LIST_COUNT,
};

/* What a call holds for each matrix. */
struct work {
    gn_tensor **updates;           /* before and after the iteration */
    gn_tensor **lists[LIST_COUNT]; /* of those that have one factor */
    bool *is_done;
};

static gn_status matrices_check(const gn_optim_lists *lists, const gn_optim_muon *o)
{
    GN_CHECK_ARGUMENT(o->iterations >= 0 && o->iterations <= ITERATIONS_MOST,
                      "Muon: the number of iterations is 0 to 99");
    for (int e = 0; e < lists->count; e++) {
        const gn_tensor *tensor = lists->parameters[e];
        if (tensor == NULL || tensor->ndim != 2)
            return gni_error(GN_ERROR_SHAPE, "Muon: parameter %d is no matrix", e);
        if (lists->gradients[e] == NULL || lists->gradients[e]->ndim != 2)
            return gni_error(GN_ERROR_SHAPE, "Muon: the gradient of parameter %d is no matrix", e);
    }
    return GN_OK;
}

static gn_status updates_make(const gn_optim_lists *lists, const gn_optim_muon *o,
                              struct work *work)
{
    static const struct gni_optimizer first = {
        .name = "Muon", .state_count = 2, .is_preparing = true, .write = update_write};
    gn_optim_lists own = *lists;
    for (int e = 0; e < lists->count; e++) {
        const gn_tensor *like = lists->gradients[e];
        struct gni_scope s = {0};
        gn_tensor *made = gni_empty(&s, like->dtype, like->ndim, like->sizes, like->device);
        GN_TRY(gni_scope_end(&s, made, &work->updates[e]));
    }
    own.states[1] = work->updates;
    GN_TRY(gni_optim_run(&first, &own, o));
    for (int e = 0; e < lists->count; e++) {
        gn_tensor *made = NULL;
        GN_TRY(orthogonalize(work->updates[e], o, &made));
        gn_tensor_release(work->updates[e]);
        work->updates[e] = made;
    }
    return GN_OK;
}

/* One program for all matrices with the same factor. */
static gn_status changes_run(const gn_optim_lists *lists, const gn_optim_muon *o, struct work *work)
{
    static const struct gni_optimizer last = {
        .name = "Muon", .state_count = 2, .write = change_write};
    for (int first = 0; first < lists->count; first++) {
        struct change change = {.options = o, .factor = rate_factor(o, lists->parameters[first])};
        gn_optim_lists own = {.parameters = work->lists[PARAMETER],
                              .gradients = work->lists[GRADIENT],
                              .states = {work->lists[MOMENTUM], work->lists[UPDATE]},
                              .scale = lists->scale,
                              .skip = lists->skip,
                              .is_maximized = lists->is_maximized};
        for (int e = first; e < lists->count; e++)
            if (!work->is_done[e] && rate_factor(o, lists->parameters[e]) == change.factor) {
                work->is_done[e] = true;
                work->lists[PARAMETER][own.count] = lists->parameters[e];
                work->lists[GRADIENT][own.count] = lists->gradients[e];
                work->lists[MOMENTUM][own.count] = lists->states[0][e];
                work->lists[UPDATE][own.count++] = work->updates[e];
            }
        GN_TRY(gni_optim_run(&last, &own, &change));
    }
    return GN_OK;
}

gn_status gn_optim_muon_step(const gn_optim_lists *lists, const gn_optim_muon *options)
{
    GN_CHECK_ARGUMENT(
        lists != NULL && options != NULL && lists->count >= 0 &&
            (lists->count == 0 || (lists->parameters != NULL && lists->gradients != NULL)),
        "lists and options must not be NULL, count not negative");
    GN_CHECK_ARGUMENT(!lists->is_recorded, "a step of Muon has no gradient");
    size_t count = (size_t)lists->count;
    size_t nbytes = count * ((1 + LIST_COUNT) * sizeof(gn_tensor *) + sizeof(bool));
    struct work work = {.updates = NULL};
    if (count == 0)
        return GN_OK;
    GN_TRY(matrices_check(lists, options));
    work.updates = gni_host_alloc(nbytes);
    if (work.updates == NULL)
        return gni_error_host_memory(nbytes);
    memset(work.updates, 0, nbytes);
    for (size_t i = 0; i < LIST_COUNT; i++)
        work.lists[i] = work.updates + (1 + i) * count;
    work.is_done = (bool *)(void *)(work.updates + (1 + LIST_COUNT) * count);
    gn_status status = updates_make(lists, options, &work);
    if (status == GN_OK)
        status = changes_run(lists, options, &work);
    for (size_t e = 0; e < count; e++)
        gn_tensor_release(work.updates[e]);
    gni_host_free(work.updates);
    return status;
}
