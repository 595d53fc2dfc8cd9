/*
 * test_optimizers.c: steps of optimizers (genesis/optim.h): values beside formulas in float64, counts of steps, what is skipped,
 * what is refused, and memory that runs out. On the CPU; with an argument "cuda" on a GPU or the simulated one.
 * tests/python/test_optim.py compares more with PyTorch.
 */
#include "check.h"

#include "base/host.h"
#include "genesis/genesis.h"

#include <math.h>
#include <string.h>

enum {
    COUNT = 3,
    STEPS = 3,
    FAILURES_MOST = 400,
};

static gn_device *device, *cpu;

static gn_operand number(double value)
{
    return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = value}};
}

static gn_tensor *filled(double value, int ndim, const int64_t *sizes, gn_device *where)
{
    gn_tensor *made = NULL;
    const gn_scalar scalar = {.kind = GN_FLOAT64, .floating = value};
    CHECK_OK(gn_full(scalar, GN_FLOAT32, ndim, sizes, where, &made));
    CHECK_OK(gn_flush());
    return made;
}

/* The last element. */
static double item(gn_tensor *tensor)
{
    gn_tensor *near = NULL;
    void *data = NULL;
    float found = NAN;
    CHECK_OK(gn_tensor_to(tensor, cpu, &near));
    CHECK_OK(gn_tensor_get_data(near, &data));
    CHECK_OK(gn_device_synchronize(device));
    if (data != NULL)
        memcpy(&found, (float *)data + gn_tensor_get_count(tensor) - 1, sizeof found);
    gn_tensor_release(near);
    return (double)found;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 2e-6 * fmax(1, fabs(b));
}

/* Parameters 1, 2 and 3 with gradients 0.5, 1 and 1.5, and states and scalars for any optimizer. */
struct lists {
    gn_tensor *parameters[COUNT], *gradients[COUNT], *states[GN_OPTIM_STATES_MOST][COUNT];
    gn_tensor *scalars[GN_OPTIM_SCALARS_MOST][COUNT];
    gn_optim_lists given;
};

static void lists_init(struct lists *lists, bool are_near)
{
    static const int64_t sizes[COUNT][2] = {{1, 5}, {3, 30}, {17, 301}};
    for (int i = 0; i < COUNT; i++) {
        lists->parameters[i] = filled(1 + i, 2, sizes[i], device);
        lists->gradients[i] = filled(0.5 * (1 + i), 2, sizes[i], device);
        for (int s = 0; s < GN_OPTIM_STATES_MOST; s++)
            lists->states[s][i] = filled(0, 2, sizes[i], device);
        for (int s = 0; s < GN_OPTIM_SCALARS_MOST; s++)
            lists->scalars[s][i] = filled(s, 0, NULL, are_near ? device : cpu);
    }
    lists->given = (gn_optim_lists){
        .count = COUNT,
        .parameters = lists->parameters,
        .gradients = lists->gradients,
        .states = {lists->states[0], lists->states[1], lists->states[2]},
        .scalars = {lists->scalars[0], lists->scalars[1], lists->scalars[2]},
    };
}

static void lists_deinit(struct lists *lists)
{
    for (int i = 0; i < COUNT; i++) {
        gn_tensor_release(lists->parameters[i]);
        gn_tensor_release(lists->gradients[i]);
        for (int s = 0; s < GN_OPTIM_STATES_MOST; s++)
            gn_tensor_release(lists->states[s][i]);
        for (int s = 0; s < GN_OPTIM_SCALARS_MOST; s++)
            gn_tensor_release(lists->scalars[s][i]);
    }
}

static bool is_untouched(struct lists *lists)
{
    bool is = true;
    for (int i = 0; i < COUNT; i++)
        is &= item(lists->parameters[i]) == 1 + i && item(lists->states[0][i]) == 0 &&
              item(lists->states[1][i]) == 0 && item(lists->scalars[0][i]) == 0;
    return is;
}

/* ---- the optimizers, and what they should give --------------------------------------------------- */

#define RATE 0.1
#define DECAY 0.05

static gn_status sgd(const gn_optim_lists *lists)
{
    const gn_optim_sgd options = {.rate = number(RATE),
                                  .momentum = number(0.9),
                                  .dampening = number(0),
                                  .decay = number(DECAY),
                                  .has_momentum = true,
                                  .is_nesterov = true};
    return gn_optim_sgd_step(lists, &options);
}

static double sgd_expected(double x, double gradient)
{
    for (double step = 1, m = 0; step <= STEPS; step++) {
        double g = gradient + DECAY * x;
        m = 0.9 * m + g;
        x -= RATE * (g + 0.9 * m);
    }
    return x;
}

static gn_status adamw(const gn_optim_lists *lists)
{
    const gn_optim_adam options = {.rate = number(RATE),
                                   .beta1 = number(0.9),
                                   .beta2 = number(0.99),
                                   .epsilon = number(1e-3),
                                   .decay = number(DECAY),
                                   .is_decoupled = true};
    return gn_optim_adam_step(lists, &options);
}

static double adamw_expected(double x, double g)
{
    for (double step = 1, m = 0, v = 0; step <= STEPS; step++) {
        m = 0.9 * m + 0.1 * g;
        v = 0.99 * v + 0.01 * g * g;
        double mean = m / (1 - pow(0.9, step)), squares = v / (1 - pow(0.99, step));
        x = x * (1 - RATE * DECAY) - RATE * mean / (sqrt(squares) + 1e-3);
    }
    return x;
}

static gn_status nadam(const gn_optim_lists *lists)
{
    const gn_optim_nadam options = {.rate = number(RATE),
                                    .beta1 = number(0.9),
                                    .beta2 = number(0.99),
                                    .epsilon = number(1e-3),
                                    .decay = number(0),
                                    .momentum_decay = number(0.1)};
    return gn_optim_nadam_step(lists, &options);
}

static double nadam_expected(double x, double g)
{
    double product = 1;
    for (double step = 1, m = 0, v = 0; step <= STEPS; step++) {
        double now = 0.9 * (1 - 0.5 * pow(0.96, step * 0.1));
        double next = 0.9 * (1 - 0.5 * pow(0.96, (step + 1) * 0.1));
        product *= now;
        m = 0.9 * m + 0.1 * g;
        v = 0.99 * v + 0.01 * g * g;
        double below = sqrt(v / (1 - pow(0.99, step))) + 1e-3;
        x -= RATE * (1 - now) / (1 - product) * g / below;
        x -= RATE * next / (1 - product * next) * m / below;
    }
    return x;
}

static gn_status radam(const gn_optim_lists *lists)
{
    const gn_optim_radam options = {.rate = number(RATE),
                                    .beta1 = number(0.9),
                                    .beta2 = number(0.99),
                                    .epsilon = number(1e-3),
                                    .decay = number(DECAY)};
    return gn_optim_radam_step(lists, &options);
}

/* In the first steps it does not adapt. */
static double radam_expected(double x, double gradient)
{
    for (double step = 1, m = 0; step <= STEPS; step++) {
        double g = gradient + DECAY * x;
        m = 0.9 * m + 0.1 * g;
        x -= RATE * m / (1 - pow(0.9, step));
    }
    return x;
}

static gn_status adamax(const gn_optim_lists *lists)
{
    const gn_optim_adamax options = {.rate = number(RATE),
                                     .beta1 = number(0.9),
                                     .beta2 = number(0.99),
                                     .epsilon = number(1e-3),
                                     .decay = number(0)};
    return gn_optim_adamax_step(lists, &options);
}

static double adamax_expected(double x, double g)
{
    for (double step = 1, m = 0, u = 0; step <= STEPS; step++) {
        m = 0.9 * m + 0.1 * g;
        u = fmax(0.99 * u, fabs(g) + 1e-3);
        x -= RATE / (1 - pow(0.9, step)) * m / u;
    }
    return x;
}

static gn_status rmsprop(const gn_optim_lists *lists)
{
    const gn_optim_rmsprop options = {.rate = number(RATE),
                                      .alpha = number(0.9),
                                      .epsilon = number(1e-3),
                                      .decay = number(0),
                                      .momentum = number(0.5),
                                      .has_momentum = true,
                                      .is_centered = true};
    return gn_optim_rmsprop_step(lists, &options);
}

static double rmsprop_expected(double x, double g)
{
    for (double step = 1, v = 0, m = 0, mean = 0; step <= STEPS; step++) {
        v = 0.9 * v + 0.1 * g * g;
        mean = 0.9 * mean + 0.1 * g;
        m = 0.5 * m + g / (sqrt(v - mean * mean) + 1e-3);
        x -= RATE * m;
    }
    return x;
}

static gn_status adagrad(const gn_optim_lists *lists)
{
    const gn_optim_adagrad options = {.rate = number(RATE),
                                      .rate_decay = number(0.5),
                                      .epsilon = number(1e-3),
                                      .decay = number(0)};
    return gn_optim_adagrad_step(lists, &options);
}

static double adagrad_expected(double x, double g)
{
    for (double step = 1, sum = 0; step <= STEPS; step++) {
        sum += g * g;
        x -= RATE / (1 + (step - 1) * 0.5) * g / (sqrt(sum) + 1e-3);
    }
    return x;
}

static gn_status adadelta(const gn_optim_lists *lists)
{
    const gn_optim_adadelta options = {
        .rate = number(RATE), .rho = number(0.9), .epsilon = number(1e-3), .decay = number(0)};
    return gn_optim_adadelta_step(lists, &options);
}

static double adadelta_expected(double x, double g)
{
    for (double step = 1, v = 0, changes = 0; step <= STEPS; step++) {
        v = 0.9 * v + 0.1 * g * g;
        double change = sqrt(changes + 1e-3) / sqrt(v + 1e-3) * g;
        changes = 0.9 * changes + 0.1 * change * change;
        x -= RATE * change;
    }
    return x;
}

static gn_status asgd(const gn_optim_lists *lists)
{
    const gn_optim_asgd options = {.rate = number(RATE),
                                   .lambda = number(0.5),
                                   .alpha = number(0.75),
                                   .start = number(1),
                                   .decay = number(DECAY)};
    return gn_optim_asgd_step(lists, &options);
}

/* The first rate is what the scalar begins with. */
static double asgd_expected(double x, double gradient)
{
    for (double step = 1, rate = 2; step <= STEPS; step++) {
        x = x * (1 - 0.5 * rate) - rate * (gradient + DECAY * x);
        rate = RATE / pow(1 + 0.5 * RATE * step, 0.75);
    }
    return x;
}

static gn_status rprop(const gn_optim_lists *lists)
{
    const gn_optim_rprop options = {.shrinkage = number(0.5),
                                    .growth = number(1.5),
                                    .least = number(0.25),
                                    .most = number(0.3)};
    return gn_optim_rprop_step(lists, &options);
}

/* The size of a step begins with 0 here, and grows from the least to the largest. */
static double rprop_expected(double x, double g)
{
    (void)g; /* it is positive */
    return x - 0.25 - 0.3 * (STEPS - 1);
}

static gn_status lion(const gn_optim_lists *lists)
{
    const gn_optim_lion options = {
        .rate = number(RATE), .beta1 = number(0.9), .beta2 = number(0.99), .decay = number(DECAY)};
    return gn_optim_lion_step(lists, &options);
}

static double lion_expected(double x, double g)
{
    (void)g; /* it is positive */
    for (double step = 1; step <= STEPS; step++)
        x = x * (1 - RATE * DECAY) - RATE;
    return x;
}

static gn_status muon(const gn_optim_lists *lists)
{
    const gn_optim_muon options = {.rate = number(RATE),
                                   .momentum = number(0.95),
                                   .decay = number(DECAY),
                                   .coefficients = {3.4445, -4.7750, 2.0315},
                                   .epsilon = 1e-7,
                                   .iterations = 2,
                                   .is_nesterov = true};
    return gn_optim_muon_step(lists, &options);
}

static const struct {
    const char *name;
    gn_status (*step)(const gn_optim_lists *lists);
    double (*expected)(double x, double gradient);
    bool counts;
} optimizers[] = {
    {"SGD", sgd, sgd_expected, false},
    {"AdamW", adamw, adamw_expected, true},
    {"NAdam", nadam, nadam_expected, true},
    {"RAdam", radam, radam_expected, true},
    {"Adamax", adamax, adamax_expected, true},
    {"RMSprop", rmsprop, rmsprop_expected, true},
    {"Adagrad", adagrad, adagrad_expected, true},
    {"Adadelta", adadelta, adadelta_expected, true},
    {"ASGD", asgd, asgd_expected, true},
    {"Rprop", rprop, rprop_expected, true},
    {"Lion", lion, lion_expected, false},
    {"Muon", muon, NULL, false},
};

enum {
    OPTIMIZERS = sizeof optimizers / sizeof *optimizers,
};

/* ---- values --------------------------------------------------------------------------------------- */

static void values_check(bool are_near)
{
    for (int o = 0; o < OPTIMIZERS; o++) {
        struct lists lists;
        if (optimizers[o].expected == NULL)
            continue;
        lists_init(&lists, are_near);
        for (int step = 0; step < STEPS; step++)
            CHECK_OK(optimizers[o].step(&lists.given));
        for (int i = 0; i < COUNT; i++) {
            double got = item(lists.parameters[i]);
            double right = optimizers[o].expected(1 + i, 0.5 * (1 + i));
            if (!is_near(got, right))
                printf("%s: parameter %d is %.9g, not %.9g\n", optimizers[o].name, i, got, right);
            CHECK(is_near(got, right));
            CHECK(item(lists.scalars[0][i]) == (optimizers[o].counts ? STEPS : 0));
        }
        lists_deinit(&lists);
    }
}

static void test_values(void)
{
    values_check(false);
}

/* Steps are counted on the device. */
static void test_values_with_scalars_of_the_device(void)
{
    values_check(true);
}

/* Entries whose counts of steps differ are computed in groups. */
static void test_different_counts(void)
{
    struct lists lists;
    lists_init(&lists, false);
    gn_optim_lists some = lists.given;
    some.count = 1;
    CHECK_OK(adamw(&some));
    CHECK_OK(adamw(&lists.given));
    CHECK_OK(adamw(&lists.given));
    CHECK(is_near(item(lists.parameters[0]), adamw_expected(1, 0.5)));
    CHECK(item(lists.scalars[0][0]) == 3 && item(lists.scalars[0][1]) == 2);
    CHECK_OK(adamw(&lists.given));
    CHECK(is_near(item(lists.parameters[1]), adamw_expected(2, 1)));
    lists_deinit(&lists);
}

static void test_the_sign_and_the_scale(void)
{
    struct lists lists;
    gn_tensor *scale = filled(4, 0, NULL, device);
    lists_init(&lists, false);
    lists.given.is_maximized = true;
    lists.given.scale = scale;
    const gn_optim_sgd options = {.rate = number(1), .decay = number(0)};
    CHECK_OK(gn_optim_sgd_step(&lists.given, &options));
    for (int i = 0; i < COUNT; i++) {
        CHECK(item(lists.parameters[i]) == 1 + i + 0.125 * (1 + i));
        CHECK(item(lists.gradients[i]) == 0.125 * (1 + i));
    }
    lists_deinit(&lists);
    gn_tensor_release(scale);
}

static void test_skip(void)
{
    for (int o = 0; o < OPTIMIZERS; o++)
        for (int near = 0; near < 2; near++) {
            struct lists lists;
            gn_tensor *skip = filled(1, 0, NULL, device);
            lists_init(&lists, near == 1);
            lists.given.skip = skip;
            CHECK_OK(optimizers[o].step(&lists.given));
            CHECK(is_untouched(&lists));
            lists_deinit(&lists);
            gn_tensor_release(skip);
        }
}

/* A recorded step lets gradients through: d(x - rate g) / d(rate) = -g. */
static void test_a_recorded_step(void)
{
    struct lists lists;
    gn_tensor *rate = filled(0.5, 0, NULL, device), *sum = NULL, *gradient = NULL;
    lists_init(&lists, false);
    CHECK_OK(gn_tensor_set_requires_gradient(rate, true));
    lists.given.is_recorded = true;
    lists.given.count = 1;
    const gn_optim_sgd options = {.rate = {.tensor = rate}, .decay = number(0)};
    CHECK_OK(gn_optim_sgd_step(&lists.given, &options));
    CHECK(item(lists.parameters[0]) == 0.75);
    CHECK_OK(gn_reduce(GN_REDUCE_SUM, lists.parameters[0], 0, false, &sum));
    CHECK_OK(gn_backward(1, &sum, NULL, 0));
    CHECK_OK(gn_tensor_get_gradient(rate, &gradient));
    CHECK(gradient != NULL && item(gradient) == -2.5);
    gn_tensor_release(gradient);
    gn_tensor_release(sum);
    gn_tensor_release(rate);
    lists_deinit(&lists);
}

/* ---- what is refused ------------------------------------------------------------------------------- */

static void test_what_is_refused(void)
{
    struct lists lists;
    gn_tensor *pair = filled(1, 1, (const int64_t[]){2}, cpu);
    gn_tensor *whole = NULL;
    lists_init(&lists, false);
    gn_optim_lists wrong = lists.given;
    CHECK_STATUS(adamw(NULL), GN_ERROR_INVALID_VALUE);
    wrong.count = -1;
    CHECK_STATUS(adamw(&wrong), GN_ERROR_INVALID_VALUE);
    wrong.count = 0;
    CHECK_OK(adamw(&wrong));
    CHECK_OK(muon(&wrong));
    wrong = lists.given;
    wrong.gradients = NULL;
    CHECK_STATUS(adamw(&wrong), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(muon(&wrong), GN_ERROR_INVALID_VALUE);
    wrong = lists.given;
    wrong.states[1] = NULL;
    CHECK_STATUS(adamw(&wrong), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("parameter 0 has no state 1");
    wrong = lists.given;
    wrong.scalars[0] = NULL;
    CHECK_STATUS(adamw(&wrong), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("parameter 0 has no scalar 0");
    wrong = lists.given;
    wrong.skip = wrong.parameters[2];
    CHECK_STATUS(adamw(&wrong), GN_ERROR_INVALID_VALUE);
    wrong = lists.given;
    wrong.is_recorded = true;
    CHECK_STATUS(muon(&wrong), GN_ERROR_INVALID_VALUE);
    gn_tensor *kept = lists.scalars[0][2];
    lists.scalars[0][2] = pair;
    CHECK_STATUS(adamw(&lists.given), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("what counts steps is a floating tensor of one element");
    lists.scalars[0][2] = kept;
    kept = lists.states[0][2];
    lists.states[0][2] = pair;
    CHECK(adamw(&lists.given) != GN_OK);
    lists.states[0][2] = lists.states[1][2];
    CHECK_STATUS(adamw(&lists.given), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("share memory");
    lists.states[0][2] = kept;
    const gn_optim_lion broken = {.rate = {.tensor = lists.parameters[1]}};
    CHECK(gn_optim_lion_step(&lists.given, &broken) != GN_OK);
    CHECK_OK(gn_tensor_set_requires_gradient(lists.parameters[0], true));
    CHECK_STATUS(adamw(&lists.given), GN_ERROR_UNSUPPORTED);
    CHECK_OK(gn_tensor_set_requires_gradient(lists.parameters[0], false));
    kept = lists.parameters[1];
    lists.parameters[1] = pair;
    CHECK_STATUS(muon(&lists.given), GN_ERROR_SHAPE);
    lists.parameters[1] = kept;
    CHECK(is_untouched(&lists));
    gn_tensor_release(pair);
    gn_tensor_release(whole);
    lists_deinit(&lists);
}

/* ---- memory that runs out ------------------------------------------------------------------------- */

/* Whatever allocation fails, either nothing has changed, or all has. */
static void failures_try(int o, bool are_near)
{
    struct lists lists;
    lists_init(&lists, are_near);
    CHECK_OK(optimizers[o].step(&lists.given)); /* what is made once, and kept, is made here */
    lists_deinit(&lists);
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK && nth < FAILURES_MOST; nth++) {
        lists_init(&lists, are_near);
        size_t live = gni_host_live_count();
        gni_host_fail_after(nth);
        status = optimizers[o].step(&lists.given);
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_U64(gni_host_live_count(), live);
        if (status != GN_OK && device == cpu)
            CHECK(is_untouched(&lists));
        lists_deinit(&lists);
    }
    CHECK_OK(status);
}

static void test_failing_host_memory(void)
{
    for (int o = 0; o < OPTIMIZERS && device == cpu; o++)
        failures_try(o, false);
    failures_try(1, true);
}

int main(int argc, char **argv)
{
    bool is_gpu = argc > 1 && strcmp(argv[1], "cuda") == 0;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    if (gn_device_get(is_gpu ? GN_DEVICE_CUDA : GN_DEVICE_CPU, 0, &device) != GN_OK)
        return CHECK_SKIPPED;
    RUN(test_values);
    RUN(test_values_with_scalars_of_the_device);
    RUN(test_different_counts);
    RUN(test_the_sign_and_the_scale);
    RUN(test_skip);
    RUN(test_a_recorded_step);
    RUN(test_what_is_refused);
    RUN(test_failing_host_memory);
    return check_result();
}
