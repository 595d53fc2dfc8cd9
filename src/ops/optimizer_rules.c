/*
 * optimizer_rules.c: what the step of each optimizer computes for an element (genesis/optim.h), as a list program.
 *
 * Formulas are PyTorch's. Factors that are the same for all elements are put together, so that few steps are left for each
 * element: m / (sqrt(v) / c + e) is m c / (sqrt(v) + e c).
 */
#include "ops/optimizer.h"

typedef struct gni_optim_writing writing;

static int add(writing *w, int a, int b)
{
    return gni_list_op(&w->list, GN_OP_ADD, a, b);
}

static int subtract(writing *w, int a, int b)
{
    return gni_list_op(&w->list, GN_OP_SUBTRACT, a, b);
}

static int multiply(writing *w, int a, int b)
{
    return gni_list_op(&w->list, GN_OP_MULTIPLY, a, b);
}

static int divide(writing *w, int a, int b)
{
    return gni_list_op(&w->list, GN_OP_DIVIDE, a, b);
}

static int power(writing *w, int a, int b)
{
    return gni_list_op(&w->list, GN_OP_POWER, a, b);
}

static int square(writing *w, int a)
{
    return gni_list_unary(&w->list, GN_OP_SQUARE, a);
}

static int root(writing *w, int a)
{
    return gni_list_unary(&w->list, GN_OP_SQRT, a);
}

static int number(writing *w, double value)
{
    return gni_list_number(&w->list, value);
}

static int from_one(writing *w, int a)
{
    return subtract(w, number(w, 1), a);
}

static bool is_zero(const writing *w, int a)
{
    return gni_list_is_known(&w->list, a) && gni_list_known(&w->list, a) == 0;
}

/* ---- parts --------------------------------------------------------------------------------------- */

/* Weight decay: of the parameter itself, by the rate, or as a part of the gradient. */
static void decay(writing *w, int amount, int rate, bool is_decoupled)
{
    if (is_zero(w, amount))
        return;
    if (is_decoupled)
        w->parameter = multiply(w, w->parameter, from_one(w, multiply(w, rate, amount)));
    else
        w->gradient = add(w, w->gradient, multiply(w, w->parameter, amount));
}

/* average + (value - average) (1 - beta) */
static int average(writing *w, int state, int value, int beta)
{
    int before = w->states[state];
    int after = add(w, before, multiply(w, subtract(w, value, before), from_one(w, beta)));
    gni_optim_state(w, state, after);
    return after;
}

/* average beta + value^2 (1 - beta) */
static int square_average(writing *w, int state, int value, int beta)
{
    int after = add(w, multiply(w, w->states[state], beta),
                    multiply(w, square(w, value), from_one(w, beta)));
    gni_optim_state(w, state, after);
    return after;
}

static void change(writing *w, int difference)
{
    gni_optim_parameter(w, subtract(w, w->parameter, difference));
}

/* ---- SGD ------------------------------------------------------------------------------------------- */

static void sgd_write(writing *w)
{
    const gn_optim_sgd *o = w->options;
    int rate = gni_optim_number(w, o->rate), momentum = gni_optim_number(w, o->momentum);
    decay(w, gni_optim_number(w, o->decay), rate, false);
    if (o->has_momentum) {
        int kept = w->gradient;
        if (!o->is_first)
            kept = add(w, multiply(w, w->states[0], momentum),
                       multiply(w, w->gradient, from_one(w, gni_optim_number(w, o->dampening))));
        gni_optim_state(w, 0, kept);
        w->gradient = o->is_nesterov ? add(w, w->gradient, multiply(w, kept, momentum)) : kept;
    }
    change(w, multiply(w, w->gradient, rate));
}

gn_status gn_optim_sgd_step(const gn_optim_lists *lists, const gn_optim_sgd *options)
{
    struct gni_optimizer sgd = {.name = "SGD", .write = sgd_write};
    sgd.state_count = options != NULL && options->has_momentum;
    return gni_optim_run(&sgd, lists, options);
}

/* ---- Adam and its kin -------------------------------------------------------------------------------- */

static void adam_write(writing *w)
{
    const gn_optim_adam *o = w->options;
    int rate = gni_optim_number(w, o->rate), step = w->scalars[0];
    int beta1 = gni_optim_number(w, o->beta1), beta2 = gni_optim_number(w, o->beta2);
    decay(w, gni_optim_number(w, o->decay), rate, o->is_decoupled);
    int mean = average(w, 0, w->gradient, beta1);
    int squares = square_average(w, 1, w->gradient, beta2);
    if (o->is_amsgrad) {
        squares = gni_list_op(&w->list, GN_OP_MAXIMUM, w->states[2], squares);
        gni_optim_state(w, 2, squares);
    }
    int correction = root(w, from_one(w, power(w, beta2, step)));
    int factor = divide(w, multiply(w, rate, correction), from_one(w, power(w, beta1, step)));
    int below = add(w, root(w, squares), multiply(w, gni_optim_number(w, o->epsilon), correction));
    change(w, divide(w, multiply(w, mean, factor), below));
}

gn_status gn_optim_adam_step(const gn_optim_lists *lists, const gn_optim_adam *options)
{
    struct gni_optimizer adam = {.name = "Adam", .scalar_count = 1, .write = adam_write};
    adam.state_count = options != NULL && options->is_amsgrad ? 3 : 2;
    return gni_optim_run(&adam, lists, options);
}

/* beta1 (1 - power / 2) */
static int nadam_momentum(writing *w, int powered)
{
    const gn_optim_nadam *o = w->options;
    int beta1 = gni_optim_number(w, o->beta1);
    return subtract(w, beta1, multiply(w, multiply(w, beta1, number(w, 0.5)), powered));
}

/* 0.96^(step decay) */
static int nadam_power(writing *w, int step)
{
    const gn_optim_nadam *o = w->options;
    return power(w, number(w, 0.96), multiply(w, step, gni_optim_number(w, o->momentum_decay)));
}

static void nadam_advance(writing *w)
{
    w->scalars[1] = multiply(w, w->scalars[1], nadam_momentum(w, nadam_power(w, w->scalars[0])));
}

static void nadam_write(writing *w)
{
    const gn_optim_nadam *o = w->options;
    int rate = gni_optim_number(w, o->rate), step = w->scalars[0], product = w->scalars[1];
    int beta2 = gni_optim_number(w, o->beta2);
    decay(w, gni_optim_number(w, o->decay), rate, o->is_decoupled);
    int mean = average(w, 0, w->gradient, gni_optim_number(w, o->beta1));
    int squares = square_average(w, 1, w->gradient, beta2);
    int correction = root(w, from_one(w, power(w, beta2, step)));
    int powered = nadam_power(w, step), momentum = nadam_momentum(w, powered);
    int next = nadam_momentum(w, multiply(w, powered, nadam_power(w, number(w, 1))));
    int scaled = multiply(w, rate, correction);
    int of_gradient = divide(w, multiply(w, scaled, from_one(w, momentum)), from_one(w, product));
    int of_mean = divide(w, multiply(w, scaled, next), from_one(w, multiply(w, product, next)));
    int above = add(w, multiply(w, w->gradient, of_gradient), multiply(w, mean, of_mean));
    int below = add(w, root(w, squares), multiply(w, gni_optim_number(w, o->epsilon), correction));
    change(w, divide(w, above, below));
}

gn_status gn_optim_nadam_step(const gn_optim_lists *lists, const gn_optim_nadam *options)
{
    static const struct gni_optimizer nadam = {.name = "NAdam",
                                               .state_count = 2,
                                               .scalar_count = 2,
                                               .advance = nadam_advance,
                                               .write = nadam_write};
    return gni_optim_run(&nadam, lists, options);
}

static void radam_write(writing *w)
{
    const gn_optim_radam *o = w->options;
    int rate = gni_optim_number(w, o->rate), step = w->scalars[0], two = number(w, 2);
    int beta2 = gni_optim_number(w, o->beta2), four = number(w, 4);
    decay(w, gni_optim_number(w, o->decay), rate, o->is_decoupled);
    int mean = average(w, 0, w->gradient, gni_optim_number(w, o->beta1));
    int squares = square_average(w, 1, w->gradient, beta2);
    int decayed = power(w, beta2, step), correction = from_one(w, decayed);
    int first = from_one(w, power(w, gni_optim_number(w, o->beta1), step));
    int limit = subtract(w, divide(w, two, from_one(w, beta2)), number(w, 1));
    int length =
        subtract(w, limit, divide(w, multiply(w, multiply(w, two, step), decayed), correction));
    int above =
        multiply(w, multiply(w, subtract(w, length, four), subtract(w, length, two)), limit);
    int below = multiply(w, multiply(w, subtract(w, limit, four), subtract(w, limit, two)), length);
    int factor = divide(w, rate, first);
    bool is_known = gni_list_is_known(&w->list, length);
    if (is_known && gni_list_known(&w->list, length) <= 5) {
        change(w, multiply(w, mean, factor));
        return;
    }
    int rectified = root(w, multiply(w, divide(w, above, below), correction));
    int spread = add(w, root(w, squares), gni_optim_number(w, o->epsilon));
    if (is_known) {
        change(w, divide(w, multiply(w, mean, multiply(w, factor, rectified)), spread));
        return;
    }
    int is_long = gni_list_op(&w->list, GN_OP_GREATER, length, number(w, 5));
    int adapted = gni_list_where(&w->list, is_long, divide(w, rectified, spread), number(w, 1));
    change(w, multiply(w, multiply(w, mean, factor), adapted));
}

gn_status gn_optim_radam_step(const gn_optim_lists *lists, const gn_optim_radam *options)
{
    static const struct gni_optimizer radam = {
        .name = "RAdam", .state_count = 2, .scalar_count = 1, .write = radam_write};
    return gni_optim_run(&radam, lists, options);
}

static void adamax_write(writing *w)
{
    const gn_optim_adamax *o = w->options;
    int rate = gni_optim_number(w, o->rate), beta1 = gni_optim_number(w, o->beta1);
    decay(w, gni_optim_number(w, o->decay), rate, false);
    int mean = average(w, 0, w->gradient, beta1);
    int size = gni_list_unary(&w->list, GN_OP_ABSOLUTE, w->gradient);
    int largest = gni_list_op(&w->list, GN_OP_MAXIMUM,
                              multiply(w, w->states[1], gni_optim_number(w, o->beta2)),
                              add(w, size, gni_optim_number(w, o->epsilon)));
    gni_optim_state(w, 1, largest);
    int factor = divide(w, rate, from_one(w, power(w, beta1, w->scalars[0])));
    change(w, divide(w, multiply(w, mean, factor), largest));
}

gn_status gn_optim_adamax_step(const gn_optim_lists *lists, const gn_optim_adamax *options)
{
    static const struct gni_optimizer adamax = {
        .name = "Adamax", .state_count = 2, .scalar_count = 1, .write = adamax_write};
    return gni_optim_run(&adamax, lists, options);
}

/* ---- by the size of gradients ------------------------------------------------------------------------ */

static void rmsprop_write(writing *w)
{
    const gn_optim_rmsprop *o = w->options;
    int rate = gni_optim_number(w, o->rate), alpha = gni_optim_number(w, o->alpha), state = 1;
    decay(w, gni_optim_number(w, o->decay), rate, false);
    int squares = square_average(w, 0, w->gradient, alpha);
    int momentum = o->has_momentum ? state++ : 0;
    if (o->is_centered)
        squares = subtract(w, squares, square(w, average(w, state, w->gradient, alpha)));
    int below = add(w, root(w, squares), gni_optim_number(w, o->epsilon));
    if (!o->has_momentum) {
        change(w, divide(w, multiply(w, w->gradient, rate), below));
        return;
    }
    int kept = add(w, multiply(w, w->states[momentum], gni_optim_number(w, o->momentum)),
                   divide(w, w->gradient, below));
    gni_optim_state(w, momentum, kept);
    change(w, multiply(w, kept, rate));
}

gn_status gn_optim_rmsprop_step(const gn_optim_lists *lists, const gn_optim_rmsprop *options)
{
    struct gni_optimizer rmsprop = {.name = "RMSprop", .scalar_count = 1, .write = rmsprop_write};
    rmsprop.state_count = options != NULL ? 1 + options->has_momentum + options->is_centered : 1;
    return gni_optim_run(&rmsprop, lists, options);
}

static void adagrad_write(writing *w)
{
    const gn_optim_adagrad *o = w->options;
    int rate = gni_optim_number(w, o->rate);
    decay(w, gni_optim_number(w, o->decay), rate, false);
    int before = subtract(w, w->scalars[0], number(w, 1));
    int slowed = add(w, number(w, 1), multiply(w, before, gni_optim_number(w, o->rate_decay)));
    int sum = add(w, w->states[0], square(w, w->gradient));
    gni_optim_state(w, 0, sum);
    int below = add(w, root(w, sum), gni_optim_number(w, o->epsilon));
    change(w, divide(w, multiply(w, w->gradient, divide(w, rate, slowed)), below));
}

gn_status gn_optim_adagrad_step(const gn_optim_lists *lists, const gn_optim_adagrad *options)
{
    static const struct gni_optimizer adagrad = {
        .name = "Adagrad", .state_count = 1, .scalar_count = 1, .write = adagrad_write};
    return gni_optim_run(&adagrad, lists, options);
}

static void adadelta_write(writing *w)
{
    const gn_optim_adadelta *o = w->options;
    int rate = gni_optim_number(w, o->rate), rho = gni_optim_number(w, o->rho);
    int epsilon = gni_optim_number(w, o->epsilon);
    decay(w, gni_optim_number(w, o->decay), rate, false);
    int squares = square_average(w, 0, w->gradient, rho);
    int ratio =
        divide(w, root(w, add(w, w->states[1], epsilon)), root(w, add(w, squares, epsilon)));
    int difference = multiply(w, ratio, w->gradient);
    (void)square_average(w, 1, difference, rho);
    change(w, multiply(w, difference, rate));
}

gn_status gn_optim_adadelta_step(const gn_optim_lists *lists, const gn_optim_adadelta *options)
{
    static const struct gni_optimizer adadelta = {
        .name = "Adadelta", .state_count = 2, .scalar_count = 1, .write = adadelta_write};
    return gni_optim_run(&adadelta, lists, options);
}

/* ---- averaged, and by signs ---------------------------------------------------------------------------- */

/* rate / (1 + lambda rate step)^alpha and 1 / max(1, step - t0): what the next step takes. */
static void asgd_advance(writing *w)
{
    const gn_optim_asgd *o = w->options;
    int rate = gni_optim_number(w, o->rate), step = w->scalars[0], one = number(w, 1);
    int grown = multiply(w, multiply(w, gni_optim_number(w, o->lambda), rate), step);
    int slowed = power(w, add(w, one, grown), gni_optim_number(w, o->alpha));
    int averaged = subtract(w, step, gni_optim_number(w, o->start));
    w->scalars[1] = divide(w, one, gni_list_op(&w->list, GN_OP_MAXIMUM, averaged, one));
    w->scalars[2] = divide(w, rate, slowed);
}

static void asgd_write(writing *w)
{
    const gn_optim_asgd *o = w->options;
    int weight = w->before[1], rate = w->before[2], mean = w->states[0];
    decay(w, gni_optim_number(w, o->decay), rate, false);
    int kept = from_one(w, multiply(w, gni_optim_number(w, o->lambda), rate));
    int after = subtract(w, multiply(w, w->parameter, kept), multiply(w, w->gradient, rate));
    bool is_one = gni_list_is_known(&w->list, weight) && gni_list_known(&w->list, weight) == 1;
    gni_optim_parameter(w, after);
    gni_optim_state(w, 0,
                    is_one ? after : add(w, mean, multiply(w, subtract(w, after, mean), weight)));
}

gn_status gn_optim_asgd_step(const gn_optim_lists *lists, const gn_optim_asgd *options)
{
    static const struct gni_optimizer asgd = {.name = "ASGD",
                                              .state_count = 1,
                                              .scalar_count = 3,
                                              .advance = asgd_advance,
                                              .write = asgd_write};
    return gni_optim_run(&asgd, lists, options);
}

static void rprop_write(writing *w)
{
    const gn_optim_rprop *o = w->options;
    int size = w->states[1], zero = number(w, 0);
    int product = multiply(w, w->gradient, w->states[0]);
    int is_alike = gni_list_op(&w->list, GN_OP_GREATER, product, zero);
    int is_against = gni_list_op(&w->list, GN_OP_LESS, product, zero);
    int grown = multiply(w, size, gni_optim_number(w, o->growth));
    int shrunk = multiply(w, size, gni_optim_number(w, o->shrinkage));
    size = gni_list_where(&w->list, is_alike, grown,
                          gni_list_where(&w->list, is_against, shrunk, size));
    size = gni_list_op(&w->list, GN_OP_MAXIMUM, size, gni_optim_number(w, o->least));
    size = gni_list_op(&w->list, GN_OP_MINIMUM, size, gni_optim_number(w, o->most));
    int gradient = gni_list_where(&w->list, is_against, zero, w->gradient);
    gni_optim_state(w, 0, gradient);
    gni_optim_state(w, 1, size);
    change(w, multiply(w, gni_list_unary(&w->list, GN_OP_SIGN, gradient), size));
}

gn_status gn_optim_rprop_step(const gn_optim_lists *lists, const gn_optim_rprop *options)
{
    static const struct gni_optimizer rprop = {
        .name = "Rprop", .state_count = 2, .scalar_count = 1, .write = rprop_write};
    return gni_optim_run(&rprop, lists, options);
}

/* ---- Lion --------------------------------------------------------------------------------------------- */

static void lion_write(writing *w)
{
    const gn_optim_lion *o = w->options;
    int rate = gni_optim_number(w, o->rate), gradient = w->gradient, before = w->states[0];
    decay(w, gni_optim_number(w, o->decay), rate, true);
    int beta1 = gni_optim_number(w, o->beta1);
    int mixed = add(w, multiply(w, before, beta1), multiply(w, gradient, from_one(w, beta1)));
    (void)average(w, 0, gradient, gni_optim_number(w, o->beta2));
    change(w, multiply(w, gni_list_unary(&w->list, GN_OP_SIGN, mixed), rate));
}

gn_status gn_optim_lion_step(const gn_optim_lists *lists, const gn_optim_lion *options)
{
    static const struct gni_optimizer lion = {
        .name = "Lion", .state_count = 1, .write = lion_write};
    return gni_optim_run(&lion, lists, options);
}
