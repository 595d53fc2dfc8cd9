/*
 * train.c: a network with one hidden layer learns sin(3 x), from C.
 *
 * Every call gives a status. Tensors that a call makes are released by who asked for them.
 */
#include <genesis/genesis.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SAMPLES = 256,
    HIDDEN = 32,
    STEPS = 1000,
    WEIGHTS = 4,
};

static void check(gn_status status)
{
    if (status == GN_OK)
        return;
    fprintf(stderr, "%s: %s\n", gn_status_name(status), gn_error_detail());
    exit(1);
}

static gn_operand number(double value)
{
    return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = value}};
}

static gn_tensor *binary(gn_op op, gn_operand a, gn_operand b)
{
    gn_tensor *made;
    check(gn_elementwise(op, (gn_operand[]){a, b}, &made));
    return made;
}

/* Random numbers of a normal distribution, times a scale; a leaf that needs a gradient. */
static gn_tensor *weight_make(gn_device *device, gn_generator *generator, int rows, int columns,
                              double scale)
{
    gn_tensor *drawn, *made;
    check(gn_tensor_create(GN_FLOAT32, 2, (int64_t[]){rows, columns}, device, &drawn));
    check(gn_random_normal(drawn, generator));
    made = binary(GN_OP_MULTIPLY, (gn_operand){.tensor = drawn}, number(scale));
    check(gn_tensor_set_requires_gradient(made, true));
    gn_tensor_release(drawn);
    return made;
}

/* mean((tanh(x w0 + w1) w2 + w3 - target)^2) */
static gn_tensor *loss_of(gn_tensor *x, gn_tensor *target, gn_tensor *const *w)
{
    gn_tensor *inner, *bent, *guess, *error, *square, *loss;
    check(gn_matmul_add(x, w[0], w[1], &inner));
    check(gn_elementwise(GN_OP_TANH, &(gn_operand){.tensor = inner}, &bent));
    check(gn_matmul_add(bent, w[2], w[3], &guess));
    error = binary(GN_OP_SUBTRACT, (gn_operand){.tensor = guess}, (gn_operand){.tensor = target});
    check(gn_elementwise(GN_OP_SQUARE, &(gn_operand){.tensor = error}, &square));
    check(gn_reduce(GN_REDUCE_MEAN, square, 0, false, &loss));
    gn_tensor *used[] = {inner, bent, guess, error, square};
    for (int i = 0; i < 5; i++)
        gn_tensor_release(used[i]);
    return loss;
}

/* w -= rate * gradient, with gradients switched off: this is no part of the function. */
static void weight_step(gn_tensor *weight, double rate)
{
    gn_tensor *gradient, *step;
    bool was_on = gn_set_gradients(false);
    check(gn_tensor_get_gradient(weight, &gradient));
    step = binary(GN_OP_MULTIPLY, (gn_operand){.tensor = gradient}, number(rate));
    check(gn_elementwise_into(GN_OP_SUBTRACT, (gn_operand[]){{.tensor = weight}, {.tensor = step}},
                              weight));
    check(gn_tensor_set_gradient(weight, NULL));
    gn_tensor_release(step);
    gn_tensor_release(gradient);
    (void)gn_set_gradients(was_on);
}

static double value_of(gn_tensor *tensor)
{
    const int64_t none = 0;
    gn_scalar value;
    check(gn_tensor_get_item(tensor, &none, &value));
    return value.floating;
}

int main(void)
{
    gn_device *device;
    gn_generator generator = {.seed = 1};
    gn_tensor *x, *target;
    void *data, *wanted;
    double loss = 0;
    check(gn_device_get(GN_DEVICE_CPU, 0, &device));
    check(gn_tensor_create(GN_FLOAT32, 2, (int64_t[]){SAMPLES, 1}, device, &x));
    check(gn_tensor_create(GN_FLOAT32, 2, (int64_t[]){SAMPLES, 1}, device, &target));
    check(gn_tensor_get_data(x, &data));
    check(gn_tensor_get_data(target, &wanted));
    for (int i = 0; i < SAMPLES; i++) {
        ((float *)data)[i] = 2.0f * (float)i / (SAMPLES - 1) - 1.0f;
        ((float *)wanted)[i] = sinf(3.0f * ((float *)data)[i]);
    }
    gn_tensor *weights[WEIGHTS] = {weight_make(device, &generator, 1, HIDDEN, 2),
                                   weight_make(device, &generator, 1, HIDDEN, 1),
                                   weight_make(device, &generator, HIDDEN, 1, 0.1),
                                   weight_make(device, &generator, 1, 1, 0.1)};
    for (int step = 0; step < STEPS; step++) {
        gn_tensor *root = loss_of(x, target, weights);
        check(gn_backward(1, &root, NULL, 0));
        for (int i = 0; i < WEIGHTS; i++)
            weight_step(weights[i], 0.1);
        loss = value_of(root);
        gn_tensor_release(root);
    }
    printf("after %d steps the loss is %.5f\n", STEPS, loss);
    for (int i = 0; i < WEIGHTS; i++)
        gn_tensor_release(weights[i]);
    gn_tensor_release(target);
    gn_tensor_release(x);
    return loss < 0.01 ? 0 : 1;
}
