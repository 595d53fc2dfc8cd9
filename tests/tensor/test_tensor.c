/*
 * test_tensor.c: tensors and operations through the public interface: views, expressions, failures of host memory
 * at every point, an interpreter's lock, and threads. The values of operations are tested from Python, against NumPy.
 */
#include "check.h"

#include "genesis/genesis.h"

#include "base/host.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static gn_device *cpu;

static gn_operand tensor_operand(gn_tensor *tensor)
{
    return (gn_operand){.tensor = tensor};
}

static gn_operand number(double value)
{
    return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = value}};
}

static gn_tensor *filled(int64_t rows, int64_t columns, double value)
{
    gn_tensor *tensor = NULL;
    CHECK_OK(gn_tensor_create(GN_FLOAT32, 2, (const int64_t[]){rows, columns}, cpu, &tensor));
    CHECK_OK(gn_assign(tensor, number(value)));
    return tensor;
}

static double item_at(gn_tensor *tensor, int64_t row, int64_t column)
{
    gn_scalar item = {0};
    CHECK_OK(gn_tensor_get_item(tensor, (const int64_t[]){row, column}, &item));
    return item.floating;
}

/* ---- what is there --------------------------------------------------------------------------- */

static void test_views(void)
{
    gn_tensor *x = filled(300, 40, 1), *transposed, *slice, *row, *flat, *wide;
    CHECK_OK(gn_tensor_permute(x, (const int[]){1, 0}, &transposed));
    CHECK(gn_tensor_get_shape(transposed)[0] == 40 && !gn_tensor_is_contiguous(transposed));
    CHECK_OK(gn_tensor_slice(x, 0, 299, -2, 150, &slice));
    CHECK(gn_tensor_get_strides(slice)[0] == -80 && gn_tensor_get_offset(slice) == 299 * 40);
    CHECK_OK(gn_tensor_select(x, 0, -1, &row));
    CHECK_OK(gn_assign(row, number(5)));
    CHECK(item_at(x, 299, 3) == 5 && item_at(slice, 0, 3) == 5 && item_at(transposed, 3, 299) == 5);
    CHECK(gn_tensor_get_version(x) == 2 && gn_tensor_shares_storage(x, row));
    CHECK_STATUS(gn_tensor_view(transposed, 1, (const int64_t[]){-1}, &flat), GN_ERROR_SHAPE);
    CHECK_OK(gn_tensor_reshape(transposed, 1, (const int64_t[]){-1}, &flat));
    CHECK(gn_tensor_get_count(flat) == 12000 && !gn_tensor_shares_storage(flat, x));
    CHECK_OK(gn_tensor_expand(row, 2, (const int64_t[]){7, -1}, &wide));
    CHECK_STATUS(gn_assign(wide, number(1)), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_tensor_slice(x, 0, 0, 1, 301, &flat), GN_ERROR_INDEX);
    CHECK_STATUS(gn_tensor_select(x, 2, 0, &flat), GN_ERROR_INDEX);
    gn_tensor *all[] = {x, transposed, slice, row, flat, wide};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
}

/* For whoever asks first; it is nobody else's memory, and goes with the tensor. */
static void test_room(void)
{
    gn_tensor *x = filled(3, 4, 1), *view;
    CHECK_OK(gn_tensor_permute(x, (const int[]){1, 0}, &view));
    char *rooms[] = {gn_tensor_take_room(x), gn_tensor_take_room(view)};
    for (int i = 0; i < 2; i++) {
        CHECK(rooms[i] != NULL && (uintptr_t)rooms[i] % 16 == 0);
        memset(rooms[i], -1, GN_TENSOR_ROOM);
    }
    CHECK(gn_tensor_take_room(x) == NULL && gn_tensor_take_room(view) == NULL);
    CHECK(item_at(view, 3, 2) == 1 && gn_tensor_get_count(view) == 12);
    CHECK(gn_tensor_get_strides(view)[0] == 1 && !gn_tensor_is_contiguous(view));
    gn_tensor_release(x);
    CHECK(item_at(view, 0, 0) == 1);
    gn_tensor_release(view);
}

static void test_views_of_the_storage(void)
{
    const int64_t windows[] = {38, 3}, steps[] = {1, 1}, far[] = {INT64_MAX, 1}, none[] = {0, 3};
    gn_tensor *x = filled(1, 40, 1.5), *view, *bytes, *back;
    CHECK_OK(gn_tensor_as_strided(x, 2, windows, steps, 0, &view));
    CHECK(gn_tensor_shares_storage(view, x) && item_at(view, 37, 2) == 1.5);
    CHECK_STATUS(gn_assign(view, number(1)), GN_ERROR_INVALID_VALUE); /* windows overlap */
    gn_tensor_release(view);
    CHECK_STATUS(gn_tensor_as_strided(x, 2, windows, steps, 1, &view), GN_ERROR_SHAPE);
    CHECK_STATUS(gn_tensor_as_strided(x, 2, windows, steps, -1, &view), GN_ERROR_SHAPE);
    CHECK_STATUS(gn_tensor_as_strided(x, 2, windows, far, 0, &view), GN_ERROR_SHAPE);
    CHECK_STATUS(gn_tensor_as_strided(x, 1, (const int64_t[]){1}, far, 0, &view), GN_ERROR_SHAPE);
    CHECK_OK(gn_tensor_as_strided(x, 2, none, far, 99, &view));
    CHECK(gn_tensor_get_count(view) == 0 && gn_tensor_get_strides(view)[0] == 3);
    CHECK_OK(gn_tensor_view_as_dtype(x, GN_UINT8, &bytes));
    CHECK(gn_tensor_get_shape(bytes)[1] == 160);
    CHECK_OK(gn_tensor_view_as_dtype(bytes, GN_FLOAT32, &back));
    CHECK(gn_tensor_get_shape(back)[1] == 40 && item_at(back, 0, 39) == 1.5);
    CHECK_STATUS(gn_tensor_view_as_dtype(x, GN_DTYPE_COUNT, &view), GN_ERROR_INVALID_VALUE);
    gn_tensor *all[] = {x, view, bytes, back};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
}

/* Sizes beside a 0 are no data, but strides are made of them. */
static void test_sizes_beside_none(void)
{
    const int64_t huge = INT64_C(1) << 62;
    const int64_t shapes[][3] = {
        {huge, 0, huge}, {0, huge, huge}, {huge, huge, 0}, {1, 0, huge}, {-1, huge, huge}};
    gn_tensor *x, *y;
    CHECK_OK(gn_tensor_create(GN_FLOAT32, 1, (const int64_t[]){0}, cpu, &x));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        CHECK_STATUS(gn_tensor_view(x, 3, shapes[i], &y), GN_ERROR_SHAPE);
        CHECK_STATUS(gn_tensor_reshape(x, 3, shapes[i], &y), GN_ERROR_SHAPE);
        CHECK_STATUS(gn_tensor_create(GN_FLOAT32, 3, shapes[i], cpu, &y), GN_ERROR_SHAPE);
        CHECK_STATUS(gn_tensor_as_strided(x, 3, shapes[i], shapes[3], 0, &y), GN_ERROR_SHAPE);
    }
    CHECK_STATUS(gn_tensor_expand(x, 3, shapes[2], &y), GN_ERROR_SHAPE);
    const int64_t large[] = {INT64_C(1) << 30, 0, INT64_C(1) << 30};
    CHECK_OK(gn_tensor_view(x, 3, large, &y));
    CHECK(gn_tensor_get_count(y) == 0 && gn_tensor_get_strides(y)[0] == large[2]);
    gn_tensor_release(y);
    gn_tensor_release(x);
}

static int deleted;

static void deleter(void *context)
{
    CHECK(context == &deleted);
    deleted++;
}

static void test_memory_of_others(void)
{
    float memory[6] = {0, 1, 2, 3, 4, 5};
    gn_tensor *x, *y, *view;
    CHECK_OK(gn_tensor_from_memory(memory, GN_FLOAT32, 2, (const int64_t[]){2, 3}, NULL, cpu, false,
                                   deleter, &deleted, &x));
    gn_operand operands[] = {tensor_operand(x), number(1)};
    CHECK_OK(gn_elementwise(GN_OP_ADD, operands, &y));
    memory[0] = 100; /* too late to be seen */
    CHECK(item_at(y, 0, 0) == 1 && item_at(x, 0, 0) == 100);
    CHECK_OK(gn_tensor_select(x, 0, 1, &view));
    gn_tensor_release(x);
    CHECK(deleted == 0);
    gn_tensor_release(view);
    CHECK(deleted == 1);
    gn_tensor_release(y);
    CHECK_STATUS(gn_tensor_from_memory(NULL, GN_FLOAT32, 1, (const int64_t[]){2}, NULL, cpu, false,
                                       deleter, &deleted, &x),
                 GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_tensor_from_memory(memory, GN_FLOAT32, 2, (const int64_t[]){2, 3},
                                       (const int64_t[]){INT64_MAX, 1}, cpu, false, deleter,
                                       &deleted, &x),
                 GN_ERROR_SHAPE);
    CHECK_STATUS(gn_tensor_create((gn_dtype)77, 0, NULL, cpu, &x), GN_ERROR_TYPE);
    CHECK_STATUS(gn_tensor_create(GN_INT8, 17, NULL, cpu, &x), GN_ERROR_SHAPE);
    CHECK(deleted == 1);
}

/* Streams that use a tensor; the CPU's page-locked memory is its own memory. */
static void test_places(void)
{
    gn_tensor *x = filled(300, 40, 1), *pending, *pinned;
    gn_stream *stream;
    bool is_pinned = true;
    CHECK_OK(gn_stream_create(cpu, 0, 0, &stream));
    CHECK_OK(gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(x), number(1)}, &pending));
    CHECK_OK(gn_tensor_record_stream(pending, stream));
    CHECK(item_at(pending, 7, 7) == 2);
    CHECK_STATUS(gn_tensor_record_stream(x, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_tensor_create_pinned(GN_FLOAT32, 1, (const int64_t[]){10}, cpu, &pinned));
    CHECK_OK(gn_tensor_is_pinned(pinned, &is_pinned));
    CHECK(!is_pinned && gn_tensor_get_device(pinned) == cpu);
    CHECK_STATUS(gn_tensor_is_pinned(NULL, &is_pinned), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_tensor_set_pinned(cpu));
    gn_tensor *own = filled(1, 1, 4);
    CHECK(item_at(own, 0, 0) == 4);
    CHECK_OK(gn_tensor_set_pinned(NULL));
    gn_tensor *all[] = {x, pending, pinned, own};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
    gn_stream_release(stream);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Views, chains, several results that live, reductions, writes in place: everything that records and runs. */
static gn_status mixed_program(double *sum)
{
    gn_tensor *x = NULL, *a = NULL, *b = NULL, *c = NULL, *view = NULL, *total = NULL, *half = NULL;
    gn_tensor *flat = NULL, *bits = NULL;
    gn_status status = gn_tensor_create(GN_FLOAT32, 2, (const int64_t[]){40, 30}, cpu, &x);
    if (status == GN_OK)
        status = gn_assign(x, number(2));
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(x), number(1)}, &a);
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_MULTIPLY,
                                (gn_operand[]){tensor_operand(a), tensor_operand(x)}, &b);
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_SUBTRACT,
                                (gn_operand[]){tensor_operand(b), tensor_operand(a)}, &c);
    if (status == GN_OK)
        status =
            gn_elementwise_into(GN_OP_ADD, (gn_operand[]){tensor_operand(x), tensor_operand(c)}, x);
    if (status == GN_OK)
        status = gn_tensor_permute(b, (const int[]){1, 0}, &view);
    if (status == GN_OK)
        status =
            gn_tensor_as_strided(b, 1, (const int64_t[]){1200}, (const int64_t[]){1}, 0, &flat);
    if (status == GN_OK)
        status = gn_tensor_view_as_dtype(flat, GN_INT32, &bits);
    if (status == GN_OK)
        status = gn_cast(view, GN_FLOAT16, &half);
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_SUM, half, 0, false, &total);
    if (status == GN_OK) {
        gn_scalar item;
        status = gn_tensor_get_item(total, NULL, &item);
        *sum = status == GN_OK ? item.floating : 0;
    }
    gn_tensor *all[] = {x, a, b, c, view, total, half, flat, bits};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
    return status;
}

/* What waits though it is no elementwise operation: where sorted elements were. It is read by an expression, and after
 * what was sorted is overwritten. */
static gn_status sorted_program(double *sum)
{
    gn_tensor *x = NULL, *values = NULL, *indices = NULL, *next = NULL, *total = NULL;
    gn_status status = gn_tensor_create(GN_FLOAT32, 2, (const int64_t[]){50, 100}, cpu, &x);
    if (status == GN_OK)
        status = gn_assign(x, number(2));
    if (status == GN_OK)
        status = gn_sort(x, 1, true, &values, &indices);
    if (status == GN_OK)
        status = gn_assign(x, number(3));
    if (status == GN_OK)
        status =
            gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(indices), number(1)}, &next);
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_SUM, next, 0, false, &total);
    if (status == GN_OK) {
        gn_scalar item;
        status = gn_tensor_get_item(total, NULL, &item);
        *sum = status == GN_OK ? item.floating : 0;
    }
    gn_tensor *all[] = {x, values, indices, next, total};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
    return status;
}

/* The largest up to each, of a transposed view, and an element of it. */
static gn_status cumulated_program(double *sum)
{
    gn_tensor *x = NULL, *view = NULL, *values = NULL, *places = NULL, *one = NULL, *total = NULL;
    const gn_key keys[] = {{.kind = GN_KEY_INTEGER, .start = 1},
                           {.kind = GN_KEY_INTEGER, .start = -1}};
    gn_scalar last = {0}, item = {0};
    gn_status status = gn_tensor_create(GN_FLOAT32, 2, (const int64_t[]){50, 100}, cpu, &x);
    if (status == GN_OK)
        status = gn_assign(x, number(2));
    if (status == GN_OK)
        status = gn_tensor_permute(x, (const int[]){1, 0}, &view);
    if (status == GN_OK)
        status = gn_cumulate_extreme(view, -1, true, &values, &places);
    if (status == GN_OK)
        status = gn_index_get(places, 2, keys, &one);
    if (status == GN_OK)
        status = gn_tensor_get_item(one, NULL, &last);
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_SUM, values, 0, false, &total);
    if (status == GN_OK)
        status = gn_tensor_get_item(total, NULL, &item);
    *sum = item.floating + (double)last.integer;
    gn_tensor *all[] = {x, view, values, places, one, total};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
    return status;
}

static void faults_check(gn_status (*program)(double *sum), double expected)
{
    double sum = 0;
    CHECK_OK(program(&sum));
    CHECK(sum == expected);
    size_t live = gni_host_live_count();
    long faults = 0;
    for (long nth = 1;; nth++) {
        gni_host_fail_after(nth);
        gn_status status = program(&sum);
        gni_host_fail_after(-1);
        CHECK(gni_host_live_count() == live);
        if (status == GN_OK)
            break;
        CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
        faults++;
    }
    CHECK_OK(program(&sum));
    CHECK(sum == expected && faults > 10);
    printf("     %ld faults\n", faults);
}

static void test_host_memory_fails(void)
{
    faults_check(mixed_program, 7200);
    faults_check(sorted_program, 50 * 100 * 101 / 2);
    faults_check(cumulated_program, 50 * 100 * 2 + 49);
}

static void test_out_of_memory(void)
{
    gn_memory_manager *manager;
    CHECK_OK(gn_memory_manager_get(cpu, &manager));
    gn_tensor *x = filled(1000, 1, 3), *wide, *huge, *sum;
    CHECK_OK(gn_tensor_expand(x, 2, (const int64_t[]){1000, INT64_C(1) << 36}, &wide));
    CHECK_OK(gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(wide), number(1)}, &huge));
    void *data;
    CHECK_STATUS(gn_tensor_get_data(huge, &data), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_flush(), GN_ERROR_OUT_OF_MEMORY); /* it still waits */
    gn_tensor_release(huge);
    CHECK_OK(gn_flush());
    CHECK_OK(gn_reduce(GN_REDUCE_SUM, x, 0, false, &sum));
    gn_scalar item;
    CHECK_OK(gn_tensor_get_item(sum, NULL, &item));
    CHECK(item.floating == 3000);
    gn_tensor_release(sum);
    gn_tensor_release(wide);
    gn_tensor_release(x);
}

/* ---- an interpreter's lock ------------------------------------------------------------------- */

static int let_go_count;
static bool is_let_go;

static void *wait_begin(void)
{
    CHECK(!is_let_go);
    is_let_go = true;
    let_go_count++;
    return &is_let_go;
}

static void wait_end(void *state)
{
    CHECK(state == &is_let_go && is_let_go);
    is_let_go = false;
}

/* It is let go once for what takes long, and not at all for what does not. */
static void test_wait_hooks(void)
{
    gn_tensor *few = filled(3, 100, 1), *many = filled(300, 100, 1), *a, *b;
    gn_set_wait_hooks(wait_begin, wait_end);
    CHECK_OK(gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(few), number(1)}, &a));
    CHECK_OK(gn_flush());
    CHECK(let_go_count == 0 && item_at(a, 2, 99) == 2);
    gn_tensor_release(a);
    CHECK_OK(gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(many), number(1)}, &a));
    CHECK_OK(gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(a), number(1)}, &b));
    CHECK(let_go_count == 0);
    CHECK_OK(gn_flush());
    CHECK(let_go_count == 1 && !is_let_go && item_at(b, 299, 99) == 3);
    CHECK_OK(gn_elementwise_into(GN_OP_ADD, (gn_operand[]){tensor_operand(b), number(1)}, many));
    CHECK(let_go_count == 2 && !is_let_go && item_at(many, 299, 99) == 4);
    gn_set_wait_hooks(NULL, NULL);
    gn_tensor_release(a);
    gn_tensor_release(b);
    gn_tensor_release(few);
    gn_tensor_release(many);
}

/* An interpreter whose lock another thread has, which waits for the recorder's before it lets go. */
static int stuck_count;

static void *holder_run(void *unused)
{
    (void)gn_get_fusion();
    return unused;
}

static size_t frames_capture(gn_history_frame *frames, size_t most, int *token)
{
    struct timespec end;
    pthread_t holder;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 2;
    *token = 0;
    CHECK_U64(most, 1);
    CHECK(pthread_create(&holder, NULL, holder_run, NULL) == 0);
    if (pthread_timedjoin_np(holder, NULL, &end) != 0)
        stuck_count += pthread_detach(holder) == 0;
    frames[0] = (gn_history_frame){.code = &stuck_count, .offset = 0};
    return 1;
}

static void frames_release(int token)
{
    CHECK_U64(token, 0);
}

static void frames_keep(const gn_history_frame *frames, size_t count)
{
    CHECK(count == 1 && frames[0].code == &stuck_count);
}

static void test_recording_captures_without_the_lock(void)
{
    static const gn_history_interpreter interpreter = {
        .capture = frames_capture, .release = frames_release, .keep = frames_keep};
    gn_tensor *x = filled(20, 500, 1), *results[3];
    gn_history_set_interpreter(&interpreter);
    CHECK_OK(gn_history_start(&(gn_history_options){.python_frames = 1}));
    CHECK_OK(gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(x), number(1)}, &results[0]));
    CHECK_U64(stuck_count, 0);
    CHECK_OK(gn_sort(x, 1, false, &results[1], &results[2]));
    CHECK_U64(stuck_count, 0);
    gn_history_stop();
    gn_history_set_interpreter(NULL);
    for (int i = 0; i < 3; i++)
        gn_tensor_release(results[i]);
    gn_tensor_release(x);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum {
    THREADS = 4,
    TURNS = 30,
};

static gn_tensor *shared;

static void *thread_run(void *argument)
{
    double own = (double)(intptr_t)argument;
    for (int turn = 0; turn < TURNS; turn++) {
        gn_tensor *a = NULL, *b = NULL, *sum = NULL;
        gn_scalar item = {0};
        CHECK_OK(
            gn_elementwise(GN_OP_ADD, (gn_operand[]){tensor_operand(shared), number(own)}, &a));
        CHECK_OK(gn_elementwise(GN_OP_MULTIPLY,
                                (gn_operand[]){tensor_operand(a), tensor_operand(a)}, &b));
        if (turn % 3 == 0)
            gn_tensor_release(a);
        CHECK_OK(gn_reduce(GN_REDUCE_SUM, b, 0, false, &sum));
        CHECK_OK(gn_tensor_get_item(sum, NULL, &item));
        CHECK(item.floating == 30000 * (1 + own) * (1 + own));
        if (turn % 3 != 0)
            gn_tensor_release(a);
        gn_tensor_release(b);
        gn_tensor_release(sum);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    shared = filled(100, 300, 1);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_run, (void *)i) == 0);
    (void)thread_run((void *)THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    gn_tensor_release(shared);
}

/* Several threads read what none has computed yet, while another lets it go or sorts as well. */
static void *late_run(void *argument)
{
    gn_tensor *indices = argument, *values, *own;
    gn_scalar item = {0};
    CHECK_OK(gn_sort(shared, 1, false, &values, &own));
    CHECK_OK(gn_tensor_get_item(indices, (const int64_t[]){7, 41}, &item));
    CHECK(item.integer == 41);
    gn_tensor_release(own);
    gn_tensor_release(values);
    gn_tensor_release(indices);
    return NULL;
}

static void test_threads_of_late_values(void)
{
    shared = filled(20, 500, 1);
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_t threads[THREADS];
        gn_tensor *values, *indices;
        CHECK_OK(gn_sort(shared, 1, false, &values, &indices));
        for (int i = 0; i < THREADS; i++) {
            gn_tensor_retain(indices);
            CHECK(pthread_create(&threads[i], NULL, late_run, indices) == 0);
        }
        gn_tensor_release(indices);
        gn_tensor_release(values);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
    gn_tensor_release(shared);
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    RUN(test_views);
    RUN(test_room);
    RUN(test_views_of_the_storage);
    RUN(test_sizes_beside_none);
    RUN(test_memory_of_others);
    RUN(test_host_memory_fails); /* before there are streams: their threads free when they end */
    RUN(test_out_of_memory);
    RUN(test_places);
    RUN(test_wait_hooks);
    RUN(test_recording_captures_without_the_lock);
    RUN(test_threads);
    RUN(test_threads_of_late_values);
    return check_result();
}
