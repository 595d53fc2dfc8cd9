/*
 * test_convolutions.c: convolutions, pooling and resampling where host memory runs out: each request fails in turn, in the
 * forward and in the backward pass, and nothing is left. And convolutions with every set of loops, against plain sums.
 */
#include "check.h"

#include "base/host.h"
#include "genesis/genesis.h"
#include "ops/convolution.h"
#include "ops/cpu/loops.h"

#include <math.h>
#include <string.h>

static gn_device *cpu;

static gn_tensor *numbers_make(gn_dtype dtype, int ndim, const int64_t *sizes, unsigned seed)
{
    gn_tensor *made = NULL;
    void *data = NULL;
    CHECK_OK(gn_tensor_create(dtype, ndim, sizes, cpu, &made));
    CHECK_OK(gn_tensor_get_data(made, &data));
    for (int64_t i = 0; i < gn_tensor_get_count(made); i++) {
        seed = seed * 1664525u + 1013904223u;
        double number = (seed >> 8) / (double)(1 << 23) - 1;
        if (dtype == GN_FLOAT64)
            ((double *)data)[i] = number;
        else
            ((float *)data)[i] = (float)number;
    }
    return made;
}

/* ---- without memory -------------------------------------------------------------------------- */

static gn_tensor *image, *weight; /* leaves */

static const gn_function *row_find(const char *name)
{
    const gn_function *row;
    for (int i = 0; (row = gn_function_table(i)) != NULL; i++)
        for (; row->name != NULL; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

static gn_argument tensor_of(gn_tensor *tensor)
{
    return (gn_argument){.is_given = true, .operand.tensor = tensor};
}

static gn_argument number_of(int64_t number)
{
    return (gn_argument){.is_given = true, .operand.scalar = {.kind = GN_INT64, .integer = number}};
}

static gn_argument word_of(const char *word)
{
    return (gn_argument){.is_given = true, .count = -1, .text = word};
}

/* The forward and the backward pass of a row. */
static gn_status passes_run(const gn_function *row, const gn_argument *arguments)
{
    gn_results results = {.count = 0};
    gn_tensor *loss = NULL;
    gn_status status = row->call(arguments, &results);
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_SUM, results.tensors[0], 0, false, &loss);
    if (status == GN_OK)
        status = gn_backward(1, &loss, NULL, 0);
    gn_tensor_release(loss);
    gn_results_clear(&results);
    CHECK_OK(gn_tensor_set_gradient(image, NULL));
    CHECK_OK(gn_tensor_set_gradient(weight, NULL));
    return status;
}

static void row_fail(const char *name, const gn_argument *arguments)
{
    const gn_function *row = row_find(name);
    CHECK(row != NULL);
    CHECK_OK(passes_run(row, arguments));
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status == GN_ERROR_OUT_OF_HOST_MEMORY; nth++) {
        size_t live = gni_host_live_count();
        gni_host_fail_after(nth);
        status = passes_run(row, arguments);
        gni_host_fail_after(-1);
        if (gni_host_live_count() != live)
            printf("%s: request %ld\n", name, nth);
        CHECK_U64(gni_host_live_count(), live);
    }
    CHECK_OK(status);
}

static void test_without_memory(void)
{
    image = numbers_make(GN_FLOAT32, 4, (const int64_t[]){2, 4, 5, 4}, 1);
    weight = numbers_make(GN_FLOAT32, 4, (const int64_t[]){4, 4, 3, 2}, 2);
    CHECK_OK(gn_tensor_set_requires_gradient(image, true));
    CHECK_OK(gn_tensor_set_requires_gradient(weight, true));
    const gn_argument none = {0}, x = tensor_of(image), w = tensor_of(weight);
    gn_argument one = number_of(1), two = number_of(2), zero = number_of(0);
    row_fail("nn.conv2d", (const gn_argument[]){x, w, none, two, one, one, one});
    row_fail("nn.conv2d", (const gn_argument[]){x, w, none, one, word_of("same"), two, one});
    row_fail("nn.conv_transpose2d", (const gn_argument[]){x, w, none, two, one, one, one, one});
    row_fail("nn.unfold", (const gn_argument[]){x, two, one, one, one});
    row_fail("nn.max_pool2d", (const gn_argument[]){x, two, none, one, one, one, zero});
    row_fail("nn.avg_pool2d", (const gn_argument[]){x, two, none, one, one, zero, none});
    row_fail("nn.adaptive_avg_pool2d", (const gn_argument[]){x, number_of(3)});
    row_fail("nn.adaptive_max_pool2d", (const gn_argument[]){x, number_of(3), zero});
    row_fail("nn.lp_pool2d", (const gn_argument[]){x, two, two, none, zero});
    row_fail("nn.pixel_shuffle", (const gn_argument[]){x, two});
    row_fail("nn.interpolate",
             (const gn_argument[]){x, number_of(7), none, word_of("bilinear"), none, none, zero});
    row_fail("nn.interpolate",
             (const gn_argument[]){x, none, two, word_of("bicubic"), one, none, zero});
    gn_tensor_release(image);
    gn_tensor_release(weight);
}

/* ---- every set of loops ---------------------------------------------------------------------- */

static double element_of(const gn_tensor *tensor, int64_t place)
{
    const void *data = gni_tensor_data(tensor);
    return tensor->dtype == GN_FLOAT64 ? ((const double *)data)[place]
                                       : (double)((const float *)data)[place];
}

/* One element of a convolution of two dimensions, as a plain sum. */
static double result_sum(const struct gni_convolution *c, const gn_tensor *x, const gn_tensor *w,
                         int64_t n, int64_t r, int64_t oh, int64_t ow)
{
    int64_t channels = c->channels / c->groups, group = r / (c->results / c->groups);
    double sum = 0;
    for (int64_t k = 0; k < channels; k++)
        for (int64_t kh = 0; kh < c->kernel[1]; kh++)
            for (int64_t kw = 0; kw < c->kernel[2]; kw++) {
                int64_t h = oh * c->stride[1] + kh * c->dilation[1] - c->padding[1];
                int64_t v = ow * c->stride[2] + kw * c->dilation[2] - c->padding[2];
                if (h < 0 || v < 0 || h >= c->image[1] || v >= c->image[2])
                    continue;
                int64_t channel = n * c->channels + group * channels + k;
                sum += element_of(x, (channel * c->image[1] + h) * c->image[2] + v) *
                       element_of(w, ((r * channels + k) * c->kernel[1] + kh) * c->kernel[2] + kw);
            }
    return sum;
}

/* A convolution against sums; the other two kinds by <conv(x, w), g> = <x, image(g, w)> = <w, weight(x, g)>. */
static void convolution_check(const struct gni_convolution *given, gn_dtype dtype)
{
    struct gni_convolution c = *given;
    const int64_t *i = c.image, *k = c.kernel, *o = c.result;
    gn_tensor *x = numbers_make(dtype, 5, (int64_t[]){c.images, c.channels, i[0], i[1], i[2]}, 3);
    gn_tensor *w =
        numbers_make(dtype, 5, (int64_t[]){c.results, c.channels / c.groups, k[0], k[1], k[2]}, 4);
    gn_tensor *g = numbers_make(dtype, 5, (int64_t[]){c.images, c.results, o[0], o[1], o[2]}, 5);
    struct gni_scope s = {0};
    double tolerance = dtype == GN_FLOAT64 ? 1e-10 : 1e-3, dots[3] = {0};
    gn_tensor *made = gni_scope_convolve(&s, &c, x, w, NULL);
    c.kind = GNI_CONV_IMAGE;
    gn_tensor *back = gni_scope_convolve(&s, &c, g, w, NULL);
    c.kind = GNI_CONV_WEIGHT;
    gn_tensor *by_weight = gni_scope_convolve(&s, &c, x, g, NULL);
    CHECK(gni_scope_is_ok(&s));
    int64_t place = 0;
    double most = 0; /* of the differences */
    for (int64_t n = 0; n < c.images; n++)
        for (int64_t r = 0; r < c.results; r++)
            for (int64_t h = 0; h < o[1]; h++)
                for (int64_t v = 0; v < o[2]; v++, place++)
                    most = fmax(most,
                                fabs(element_of(made, place) - result_sum(&c, x, w, n, r, h, v)));
    CHECK(most < tolerance);
    for (int64_t j = 0; j < g->count; j++)
        dots[0] += element_of(made, j) * element_of(g, j);
    for (int64_t j = 0; j < x->count; j++)
        dots[1] += element_of(back, j) * element_of(x, j);
    for (int64_t j = 0; j < w->count; j++)
        dots[2] += element_of(by_weight, j) * element_of(w, j);
    CHECK(fabs(dots[0] - dots[1]) < tolerance * (1 + fabs(dots[0])));
    CHECK(fabs(dots[0] - dots[2]) < tolerance * (1 + fabs(dots[0])));
    CHECK_OK(gni_scope_close(&s));
    gn_tensor_release(x);
    gn_tensor_release(w);
    gn_tensor_release(g);
}

static void shapes_check(void)
{
    static const struct {
        int64_t images, channels, results, groups, size, kernel, stride, padding, dilation;
    } shapes[] = {
        {2, 3, 5, 1, 9, 3, 1, 1, 1},   {1, 4, 6, 2, 10, 3, 2, 1, 1},
        {3, 8, 8, 8, 7, 3, 1, 1, 1},   {2, 2, 9, 1, 8, 2, 3, 0, 2},
        {2, 70, 3, 1, 5, 1, 1, 0, 1},  {1, 1, 13, 1, 30, 5, 1, 2, 1},
        {2, 6, 12, 6, 9, 3, 2, 2, 2},  {4, 3, 17, 1, 3, 1, 2, 2, 1},
        {1, 2, 2, 1, 80, 3, 1, 0, 1},  {1, 2, 300, 1, 5, 2, 1, 1, 1},
        {1, 300, 2, 1, 5, 2, 2, 1, 1}, {2, 600, 150, 1, 3, 1, 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t size = shapes[i].size, kernel = shapes[i].kernel, stride = shapes[i].stride;
        int64_t padding = shapes[i].padding, dilation = shapes[i].dilation;
        int64_t high = gni_window_count(size, kernel, stride, padding, dilation, false);
        int64_t wide = gni_window_count(size + 1, kernel, stride, padding, dilation, false);
        struct gni_convolution c = {
            .kind = GNI_CONV_RESULT,
            .images = shapes[i].images,
            .channels = shapes[i].channels,
            .results = shapes[i].results,
            .groups = shapes[i].groups,
            .image = {1, size, size + 1},
            .kernel = {1, kernel, kernel},
            .result = {1, high, wide},
            .stride = {1, stride, stride},
            .dilation = {1, dilation, dilation},
            .padding = {0, padding, padding},
        };
        convolution_check(&c, GN_FLOAT32);
        convolution_check(&c, GN_FLOAT64);
    }
}

static void test_loops(void)
{
    static const char *const sets[] = {"basic", "avx2", "avx512"};
    const char *before = gni_loops_name();
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (!gni_loops_use(sets[i]))
            continue;
        printf("%s\n", sets[i]);
        shapes_check();
    }
    CHECK(gni_loops_use(before));
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    RUN(test_without_memory);
    RUN(test_loops);
    return check_result();
}
