/*
 * test_lists.c: list programs (genesis/list.h): what is refused, what waits for them, and what they leave behind. On the CPU;
 * with an argument "cuda" on a GPU or the simulated one. tests/ops/list_programs.py compares results with NumPy's.
 */
#include "check.h"

#include "base/host.h"
#include "genesis/genesis.h"

#include <math.h>
#include <string.h>

enum {
    ENTRIES = 3,
};

static gn_device *device, *cpu;
static bool is_gpu;

static const gn_list_step descent_steps[] = {{GN_OP_MULTIPLY, {1, 2}}, {GN_OP_SUBTRACT, {0, 3}}};
static const gn_list_store descent_stores[] = {{.value = 4, .place = 0}};
static const gn_list_program descent = {.place_count = 2,
                                        .number_count = 1,
                                        .steps = descent_steps,
                                        .step_count = 2,
                                        .stores = descent_stores,
                                        .store_count = 1};

static gn_operand number(double value)
{
    return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = value}};
}

static gn_tensor *filled(double value, gn_dtype dtype, int ndim, const int64_t *sizes)
{
    gn_tensor *made = NULL;
    CHECK_OK(gn_full((gn_scalar){.kind = GN_FLOAT64, .floating = value}, dtype, ndim, sizes, device,
                     &made));
    CHECK_OK(gn_flush());
    return made;
}

static gn_tensor *row(double value, int64_t count)
{
    return filled(value, GN_FLOAT32, 1, &count);
}

/* An element, as a number. */
static double item(gn_tensor *tensor, int64_t at)
{
    gn_tensor *near = NULL, *wide = NULL;
    void *data = NULL;
    double found = NAN;
    CHECK_OK(gn_cast(tensor, GN_FLOAT64, &wide));
    CHECK_OK(gn_tensor_to(wide, cpu, &near));
    CHECK_OK(gn_tensor_get_data(near, &data));
    CHECK_OK(gn_device_synchronize(device));
    if (data != NULL)
        memcpy(&found, (char *)data + at * (int64_t)sizeof found, sizeof found);
    gn_tensor_release(near);
    gn_tensor_release(wide);
    return found;
}

/* Weights 1 and gradients 2, of different lengths. */
struct list {
    gn_tensor *tensors[2 * ENTRIES];
};

static void list_init(struct list *list)
{
    static const int64_t counts[ENTRIES] = {5, 1000, 70001};
    for (int i = 0; i < 2 * ENTRIES; i++)
        list->tensors[i] = row(i < ENTRIES ? 1 : 2, counts[i % ENTRIES]);
}

static void list_deinit(struct list *list)
{
    for (int i = 0; i < 2 * ENTRIES; i++)
        gn_tensor_release(list->tensors[i]);
}

static bool all_are(struct list *list, double value)
{
    bool are = true;
    for (int i = 0; i < ENTRIES; i++)
        are &= item(list->tensors[i], 0) == value &&
               item(list->tensors[i], gn_tensor_get_count(list->tensors[i]) - 1) == value;
    return are;
}

/* ---- what it computes ------------------------------------------------------------------------ */

static void test_a_step(void)
{
    struct list list;
    list_init(&list);
    uint64_t version = gn_tensor_get_version(list.tensors[0]);
    const gn_operand rate = number(0.25);
    CHECK_OK(gn_list_elementwise(&descent, ENTRIES, list.tensors, &rate, NULL));
    CHECK(all_are(&list, 0.5));
    CHECK(gn_tensor_get_version(list.tensors[0]) > version);
    CHECK_OK(gn_list_elementwise(&descent, 0, NULL, &rate, NULL));
    list_deinit(&list);
}

/* What waits and reads a weight gets the value of before. */
static void test_what_waits_is_computed_before(void)
{
    struct list list;
    gn_tensor *twice = NULL;
    list_init(&list);
    const gn_operand operands[] = {{.tensor = list.tensors[2]}, number(2)}, rate = number(0.5);
    CHECK_OK(gn_elementwise(GN_OP_MULTIPLY, operands, &twice));
    CHECK_OK(gn_list_elementwise(&descent, ENTRIES, list.tensors, &rate, NULL));
    CHECK(item(twice, 70000) == 2);
    CHECK(all_are(&list, 0));
    gn_tensor_release(twice);
    list_deinit(&list);
}

/* A number and `skip` are read when the work runs. */
static void test_numbers_of_the_device(void)
{
    struct list list;
    gn_tensor *rate = row(0.25, 1), *skip = row(1, 1);
    list_init(&list);
    const gn_operand given = {.tensor = rate};
    CHECK_OK(gn_list_elementwise(&descent, ENTRIES, list.tensors, &given, skip));
    CHECK(all_are(&list, 1));
    CHECK_OK(gn_elementwise_into(GN_OP_SUBTRACT,
                                 (const gn_operand[]){{.tensor = skip}, {.tensor = skip}}, skip));
    CHECK_OK(gn_list_elementwise(&descent, ENTRIES, list.tensors, &given, skip));
    CHECK(all_are(&list, 0.5));
    list_deinit(&list);
    gn_tensor_release(rate);
    gn_tensor_release(skip);
}

/* A graph that is replayed reads the number of then. */
static void test_graph(void)
{
    struct list list;
    gn_graph *graph = NULL;
    gn_stream *stream = NULL, *before;
    gn_tensor *rate = row(0.25, 1), *norm = NULL;
    list_init(&list);
    const gn_operand given = {.tensor = rate};
    CHECK_OK(gn_list_elementwise(&descent, ENTRIES, list.tensors, &given, NULL));
    CHECK_OK(gn_list_norm(ENTRIES, list.tensors, 2, true, &norm));
    gn_tensor_release(norm);
    CHECK_OK(gn_stream_get_current(device, &before));
    (void)gn_stream_retain(before);
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    CHECK_OK(gn_stream_set_current(stream));
    CHECK_OK(gn_graph_create(device, &graph));
    CHECK_OK(gn_graph_begin(graph, stream, NULL));
    CHECK_OK(gn_list_elementwise(&descent, ENTRIES, list.tensors, &given, NULL));
    CHECK_OK(gn_list_norm(ENTRIES, list.tensors, 1, true, &norm));
    CHECK_OK(gn_graph_end(graph));
    CHECK_OK(gn_graph_replay(graph, stream));
    CHECK(all_are(&list, 0));
    CHECK_OK(gn_assign(rate, number(-0.5)));
    CHECK_OK(gn_graph_replay(graph, stream));
    CHECK(all_are(&list, 1));
    CHECK(item(norm, 0) == 5 + 1000 + 70001);
    gn_graph_destroy(graph);
    gn_tensor_release(norm);
    CHECK_OK(gn_stream_set_current(before));
    gn_stream_release(before);
    gn_stream_release(stream);
    list_deinit(&list);
    gn_tensor_release(rate);
}

static void test_norms(void)
{
    struct list list;
    gn_tensor *norm = NULL;
    list_init(&list);
    CHECK_OK(gn_list_norm(2 * ENTRIES, list.tensors, 1, false, &norm));
    CHECK(item(norm, 0) == 5 && item(norm, 5) == 140002);
    gn_tensor_release(norm);
    CHECK_OK(gn_list_norm(2 * ENTRIES, list.tensors, 2, true, &norm));
    CHECK(fabs(item(norm, 0) - sqrt(5.0 * 71006)) < 1e-3);
    gn_tensor_release(norm);
    CHECK_OK(gn_list_norm(2 * ENTRIES, list.tensors, INFINITY, true, &norm));
    CHECK(item(norm, 0) == 2);
    gn_tensor_release(norm);
    CHECK_OK(gn_list_norm(0, NULL, 2, true, &norm));
    CHECK(item(norm, 0) == 0);
    gn_tensor_release(norm);
    list_deinit(&list);
}

/* ---- what is refused ------------------------------------------------------------------------- */

/* The call fails with a status and these words, and nothing is written. */
static void refuse(const gn_list_program *program, struct list *list, gn_tensor *skip,
                   gn_status status, const char *words)
{
    const gn_operand rate = number(0.25);
    CHECK_STATUS(gn_list_elementwise(program, ENTRIES, list->tensors, &rate, skip), status);
    CHECK_DETAIL(words);
    CHECK(item(list->tensors[0], 0) == 1);
}

static void test_programs_that_are_none(void)
{
    static const gn_list_step later[] = {{GN_OP_MULTIPLY, {1, 3}}, {GN_OP_SUBTRACT, {0, 3}}};
    static const gn_list_step integers[] = {{GN_OP_BITWISE_AND, {0, 1}}};
    static const gn_list_store twice[] = {{4, 0}, {3, 0}}, nowhere[] = {{4, 2}},
                               nothing[] = {{5, 0}};
    struct list list;
    gn_list_program program = descent;
    list_init(&list);
    program.steps = later;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "there are 3 values before it");
    program.steps = integers;
    program.step_count = 1;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "no such operation");
    program = descent;
    program.stores = twice;
    program.store_count = 2;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "written to twice");
    program.stores = nowhere;
    program.store_count = 1;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "place 2 cannot be written to");
    program.stores = nothing;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "no value 5");
    program = descent;
    program.single_places = 1;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "place 0 cannot be written to");
    program = descent;
    program.place_count = GN_LIST_PLACES_MOST + 1;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "1 to 8 places");
    program = descent;
    program.step_count = -1;
    refuse(&program, &list, NULL, GN_ERROR_INVALID_VALUE, "up to 48 steps");
    list_deinit(&list);
}

static void test_tensors_that_do_not_fit(void)
{
    struct list list;
    gn_tensor *kept, *other, *skip = row(0, 2);
    list_init(&list);
    refuse(&descent, &list, skip, GN_ERROR_INVALID_VALUE, "skip is a tensor of one element");
    gn_tensor_release(skip);
    kept = list.tensors[4];
    list.tensors[4] = other = row(2, 999);
    refuse(&descent, &list, NULL, GN_ERROR_SHAPE, "entry 1: shape (999,)");
    list.tensors[4] = NULL;
    refuse(&descent, &list, NULL, GN_ERROR_INVALID_VALUE, "entry 1 has no tensor at place 1");
    gn_tensor_release(other);
    list.tensors[4] = other = filled(1, GN_INT32, 1, (const int64_t[]){1000});
    refuse(&descent, &list, NULL, GN_ERROR_TYPE, "int32 is no floating type");
    gn_tensor_release(other);
    list.tensors[4] = kept;
    kept = list.tensors[1]; /* an entry's weight is another one's, too */
    other = list.tensors[4];
    list.tensors[1] = list.tensors[0];
    list.tensors[4] = list.tensors[3];
    refuse(&descent, &list, NULL, GN_ERROR_INVALID_VALUE, "share memory");
    list.tensors[4] = other;
    list.tensors[1] = kept;
    CHECK_OK(gn_tensor_set_requires_gradient(list.tensors[0], true));
    refuse(&descent, &list, NULL, GN_ERROR_UNSUPPORTED, "gradient");
    const gn_operand rate = number(0.5);
    bool before = gn_set_gradients(false); /* as optimizers do it */
    CHECK_OK(gn_list_elementwise(&descent, ENTRIES, list.tensors, &rate, NULL));
    (void)gn_set_gradients(before);
    CHECK(item(list.tensors[0], 0) == 0);
    list_deinit(&list);
}

static void test_norms_that_are_none(void)
{
    struct list list;
    gn_tensor *norm = NULL, *none = row(1, 0), *integer = filled(1, GN_INT64, 0, NULL);
    list_init(&list);
    CHECK_STATUS(gn_list_norm(ENTRIES, list.tensors, NAN, true, &norm), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_list_norm(1, &none, -INFINITY, true, &norm), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("entry 0 has no elements");
    CHECK_STATUS(gn_list_norm(1, &integer, 2, true, &norm), GN_ERROR_TYPE);
    CHECK(norm == NULL);
    CHECK_OK(gn_list_norm(1, &none, INFINITY, false, &norm));
    CHECK(item(norm, 0) == 0);
    gn_tensor_release(norm);
    gn_tensor_release(none);
    gn_tensor_release(integer);
    list_deinit(&list);
}

/* ---- memory that runs out -------------------------------------------------------------------- */

static gn_status both_run(struct list *list)
{
    const gn_operand rate = number(0.25);
    gn_tensor *norm = NULL;
    gn_status status = gn_list_elementwise(&descent, ENTRIES, list->tensors, &rate, NULL);
    if (status == GN_OK)
        status = gn_list_norm(ENTRIES, list->tensors, 3, true, &norm);
    if (status == GN_OK)
        status = gn_flush();
    gn_tensor_release(norm);
    return status;
}

static void test_failing_host_memory(void)
{
    struct list list;
    list_init(&list);
    CHECK_OK(both_run(&list)); /* what is made once, and kept, is made here */
    CHECK_OK(both_run(&list));
    size_t live = gni_host_live_count();
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK; nth++) {
        gni_host_fail_after(nth);
        status = both_run(&list);
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_U64(gni_host_live_count(), live);
        if (nth == 200)
            break;
    }
    CHECK_OK(status);
    list_deinit(&list);
}

int main(int argc, char **argv)
{
    is_gpu = argc > 1 && strcmp(argv[1], "cuda") == 0;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    if (gn_device_get(is_gpu ? GN_DEVICE_CUDA : GN_DEVICE_CPU, 0, &device) != GN_OK)
        return CHECK_SKIPPED;
    RUN(test_a_step);
    RUN(test_what_waits_is_computed_before);
    RUN(test_numbers_of_the_device);
    RUN(test_norms);
    RUN(test_programs_that_are_none);
    RUN(test_tensors_that_do_not_fit);
    RUN(test_norms_that_are_none);
    RUN(test_failing_host_memory);
    if (is_gpu)
        RUN(test_graph);
    return check_result();
}
