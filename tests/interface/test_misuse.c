/*
 * test_misuse.c: every function of the C interface with each of its pointers NULL in turn: an error, and nothing is
 * written. Texts about shapes stay within their memory.
 */
#include "check.h"

#include "genesis/genesis.h"
#include "tensor/shape.h"

static gn_device *cpu;
static gn_tensor *x, *places, *mask; /* four numbers, two indices, a mask */

/* `result` must stay as it is. */
#define REFUSED(call)                               \
    do {                                            \
        gn_tensor *result = x, *second = x;         \
        CHECK_STATUS(call, GN_ERROR_INVALID_VALUE); \
        CHECK(result == x && second == x);          \
        (void)result, (void)second;                 \
    } while (0)

static gn_tensor *tensor_make(gn_dtype dtype, int64_t count, double value)
{
    gn_tensor *tensor = NULL;
    CHECK_OK(gn_tensor_create(dtype, 1, &count, cpu, &tensor));
    CHECK_OK(gn_assign(tensor, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = value}}));
    return tensor;
}

static void test_elements(void)
{
    const gn_operand both[] = {{.tensor = x}, {.tensor = x}},
                     neither[] = {{.tensor = NULL}, {.tensor = NULL}};
    gn_scalar item;
    gn_dtype dtype;
    REFUSED(gn_elementwise(GN_OP_ADD, NULL, &result));
    REFUSED(gn_elementwise(GN_OP_ADD, both, NULL));
    REFUSED(gn_elementwise((gn_op)GN_OP_COUNT, both, &result));
    REFUSED(gn_elementwise(GN_OP_ADD, neither, &result));
    REFUSED(gn_elementwise_into(GN_OP_ADD, NULL, x));
    REFUSED(gn_elementwise_into(GN_OP_ADD, both, NULL));
    REFUSED(gn_elementwise_into((gn_op)GN_OP_COUNT, both, x));
    REFUSED(gn_cast(NULL, GN_INT64, &result));
    REFUSED(gn_cast(x, GN_INT64, NULL));
    REFUSED(gn_assign(NULL, both[0]));
    REFUSED(gn_flip(NULL, 1, &result));
    REFUSED(gn_flip(x, 1, NULL));
    REFUSED(gn_repeat_interleave(NULL, 0, 1, &result));
    REFUSED(gn_repeat_interleave(x, 0, 1, NULL));
    REFUSED(gn_result_type(2, NULL, &dtype));
    REFUSED(gn_result_type(2, both, NULL));
    REFUSED(gn_result_type(0, both, &dtype));
    REFUSED(gn_tensor_get_item(NULL, NULL, &item));
    REFUSED(gn_tensor_get_item(x, NULL, NULL));
    REFUSED(gn_warm_up(NULL));
}

static void test_rows(void)
{
    REFUSED(gn_reduce(GN_REDUCE_SUM, NULL, 0, false, &result));
    REFUSED(gn_reduce(GN_REDUCE_SUM, x, 0, false, NULL));
    REFUSED(gn_reduce((gn_reduction)GN_REDUCTION_COUNT, x, 0, false, &result));
    REFUSED(gn_softmax(NULL, 0, false, &result));
    REFUSED(gn_softmax(x, 0, false, NULL));
    REFUSED(gn_sort(NULL, 0, false, &result, &second));
    REFUSED(gn_topk(NULL, 1, 0, true, &result, &second));
    REFUSED(gn_extreme(NULL, 0, true, &result, &second));
    REFUSED(gn_cumulate(NULL, 0, false, &result));
    REFUSED(gn_cumulate(x, 0, false, NULL));
    REFUSED(gn_cumulate_extreme(NULL, 0, true, &result, &second));
    REFUSED(gn_cumulate_extreme(x, 0, true, NULL, &second));
    REFUSED(gn_cumulate_extreme(x, 0, true, &result, NULL));
    REFUSED(gn_unique(NULL, &result, NULL, NULL));
    REFUSED(gn_unique(x, NULL, NULL, NULL));
    REFUSED(gn_einsum(NULL, 1, &x, &result));
    REFUSED(gn_einsum("i", 1, NULL, &result));
    REFUSED(gn_einsum("i", 1, &x, NULL));
    REFUSED(gn_einsum("i", 0, &x, &result));
    REFUSED(gn_matmul(NULL, x, &result));
    REFUSED(gn_matmul(x, NULL, &result));
    REFUSED(gn_matmul(x, x, NULL));
    REFUSED(gn_matmul_into(NULL, x, x));
    REFUSED(gn_matmul_into(x, NULL, x));
    REFUSED(gn_matmul_into(x, x, NULL));
    REFUSED(gn_matmul_add(NULL, x, x, &result));
    REFUSED(gn_matmul_add(x, NULL, x, &result));
    REFUSED(gn_matmul_add(x, x, NULL, &result));
    REFUSED(gn_matmul_add(x, x, x, NULL));
}

static void test_random(void)
{
    gn_generator state = {0}, *generator = &state;
    REFUSED(gn_random_uniform(NULL, generator));
    REFUSED(gn_random_uniform(x, NULL));
    REFUSED(gn_random_normal(NULL, generator));
    REFUSED(gn_random_normal(x, NULL));
    REFUSED(gn_random_integers(NULL, 0, 5, generator));
    REFUSED(gn_random_integers(x, 0, 5, NULL));
    REFUSED(gn_random_permutation(5, NULL, generator, &result));
    REFUSED(gn_random_permutation(5, cpu, NULL, &result));
    REFUSED(gn_random_permutation(5, cpu, generator, NULL));
}

static void test_keys(void)
{
    const gn_key key = {.kind = GN_KEY_TENSOR, .tensor = places};
    const gn_operand number = {.scalar = {.kind = GN_INT64, .integer = 1}};
    gn_index_info info;
    REFUSED(gn_index_get(NULL, 1, &key, &result));
    REFUSED(gn_index_get(x, 1, NULL, &result));
    REFUSED(gn_index_get(x, 1, &key, NULL));
    REFUSED(gn_index_view(NULL, 0, NULL, &result));
    REFUSED(gn_index_view(x, 1, NULL, &result));
    REFUSED(gn_index_view(x, 0, NULL, NULL));
    REFUSED(gn_index_set(NULL, 1, &key, number, false));
    REFUSED(gn_index_set(x, 1, NULL, number, false));
    REFUSED(gn_index_describe(NULL, 1, &key, NULL, &info));
    REFUSED(gn_index_describe(x, 1, NULL, NULL, &info));
    REFUSED(gn_index_describe(x, 1, &key, NULL, NULL));
    REFUSED(gn_index_positions(NULL, 1, &key, &result));
    REFUSED(gn_index_positions(x, 1, NULL, &result));
    REFUSED(gn_index_positions(x, 1, &key, NULL));
    REFUSED(gn_index_check(NULL));
    REFUSED(gn_gather(NULL, 0, places, &result));
    REFUSED(gn_gather(x, 0, NULL, &result));
    REFUSED(gn_gather(x, 0, places, NULL));
    REFUSED(gn_scatter(NULL, 0, places, number, false));
    REFUSED(gn_scatter(x, 0, NULL, number, false));
    REFUSED(gn_index_select(NULL, 0, places, &result));
    REFUSED(gn_index_select(x, 0, NULL, &result));
    REFUSED(gn_index_select(x, 0, places, NULL));
    REFUSED(gn_index_put(NULL, 0, places, number, false));
    REFUSED(gn_index_put(x, 0, NULL, number, false));
    REFUSED(gn_take(NULL, places, &result));
    REFUSED(gn_take(x, NULL, &result));
    REFUSED(gn_take(x, places, NULL));
    REFUSED(gn_masked_select(NULL, mask, &result));
    REFUSED(gn_masked_select(x, NULL, &result));
    REFUSED(gn_masked_select(x, mask, NULL));
    REFUSED(gn_nonzero(NULL, &result));
    REFUSED(gn_nonzero(x, NULL));
    REFUSED(gn_searchsorted(NULL, x, false, &result));
    REFUSED(gn_searchsorted(x, NULL, false, &result));
    REFUSED(gn_searchsorted(x, x, false, NULL));
    REFUSED(gn_bincount(NULL, NULL, 0, &result));
    REFUSED(gn_bincount(places, NULL, 0, NULL));
}

static void test_views(void)
{
    const int64_t four = 4, one = 1;
    const int order = 0;
    void *data = NULL;
    bool is_pinned = false;
    REFUSED(gn_tensor_create(GN_INT8, 1, &four, NULL, &result));
    REFUSED(gn_tensor_create(GN_INT8, 1, &four, cpu, NULL));
    REFUSED(gn_tensor_create_pinned(GN_INT8, 1, &four, NULL, &result));
    REFUSED(gn_tensor_create_pinned(GN_INT8, 1, &four, cpu, NULL));
    REFUSED(gn_tensor_get_data(NULL, &data));
    REFUSED(gn_tensor_get_data(x, NULL));
    REFUSED(gn_tensor_is_pinned(NULL, &is_pinned));
    REFUSED(gn_tensor_is_pinned(x, NULL));
    REFUSED(gn_tensor_record_stream(NULL, NULL));
    REFUSED(gn_tensor_to(NULL, cpu, &result));
    REFUSED(gn_tensor_to(x, NULL, &result));
    REFUSED(gn_tensor_to(x, cpu, NULL));
    REFUSED(gn_tensor_view(NULL, 1, &four, &result));
    REFUSED(gn_tensor_view(x, 1, &four, NULL));
    REFUSED(gn_tensor_reshape(NULL, 1, &four, &result));
    REFUSED(gn_tensor_reshape(x, 1, &four, NULL));
    REFUSED(gn_tensor_as_strided(NULL, 1, &four, &one, 0, &result));
    REFUSED(gn_tensor_as_strided(x, 1, &four, &one, 0, NULL));
    REFUSED(gn_tensor_view_as_dtype(NULL, GN_INT32, &result));
    REFUSED(gn_tensor_view_as_dtype(x, GN_INT32, NULL));
    REFUSED(gn_tensor_view_as_dtype(x, (gn_dtype)GN_DTYPE_COUNT, &result));
    REFUSED(gn_tensor_view_storage(NULL, GN_INT32, &result));
    REFUSED(gn_tensor_view_storage(x, GN_INT32, NULL));
    REFUSED(gn_tensor_view_storage(x, (gn_dtype)GN_DTYPE_COUNT, &result));
    REFUSED(gn_tensor_become(NULL, x));
    REFUSED(gn_tensor_become(x, NULL));
    REFUSED(gn_tensor_set_data(NULL, x));
    REFUSED(gn_tensor_set_data(x, NULL));
    REFUSED(gn_tensor_permute(NULL, &order, &result));
    REFUSED(gn_tensor_permute(x, &order, NULL));
    REFUSED(gn_tensor_expand(NULL, 1, &four, &result));
    REFUSED(gn_tensor_expand(x, 1, &four, NULL));
    REFUSED(gn_tensor_slice(NULL, 0, 0, 1, 2, &result));
    REFUSED(gn_tensor_slice(x, 0, 0, 1, 2, NULL));
    REFUSED(gn_tensor_select(NULL, 0, 0, &result));
    REFUSED(gn_tensor_select(x, 0, 0, NULL));
    REFUSED(gn_tensor_unsqueeze(NULL, 0, &result));
    REFUSED(gn_tensor_unsqueeze(x, 0, NULL));
    REFUSED(gn_tensor_squeeze(NULL, 0, &result));
    REFUSED(gn_tensor_squeeze(x, 0, NULL));
}

static void test_graphs(void)
{
    gn_graph *graph = NULL;
    gn_graph_pool *pool = NULL;
    gn_stream *stream = NULL;
    CHECK_OK(gn_stream_get_default(cpu, &stream));
    REFUSED(gn_graph_create(NULL, &graph));
    REFUSED(gn_graph_create(cpu, NULL));
    REFUSED(gn_graph_pool_create(NULL, &pool));
    REFUSED(gn_graph_pool_create(cpu, NULL));
    REFUSED(gn_graph_begin(NULL, stream, NULL));
    REFUSED(gn_graph_end(NULL));
    REFUSED(gn_graph_replay(NULL, stream));
    REFUSED(gn_graph_reset(NULL));
    CHECK(graph == NULL && pool == NULL);
}

static bool visit(const gn_memory_info *info, void *context)
{
    (void)info, (void)context;
    return true;
}

static void test_memory(void)
{
    gn_memory_manager *manager = NULL, *none = NULL;
    gn_memory_block *block = NULL;
    gn_memory_request *request = NULL;
    gn_memory_config config;
    gn_memory_compaction report;
    gn_memory_statistics statistics;
    gn_memory_class class;
    gn_memory_pool *pool = NULL;
    const size_t one = 1, much = SIZE_MAX / 2;
    size_t count = 0;
    void *pointer = NULL;
    gn_stream *stream = NULL;
    CHECK_OK(gn_stream_get_default(cpu, &stream));
    CHECK_OK(gn_memory_manager_get(cpu, &manager));
    REFUSED(gn_memory_manager_get(NULL, &none));
    REFUSED(gn_memory_manager_get(cpu, NULL));
    REFUSED(gn_memory_manager_get_pinned(NULL, &none));
    REFUSED(gn_memory_manager_get_pinned(cpu, NULL));
    REFUSED(gn_memory_alloc(NULL, 1, NULL, &pointer));
    REFUSED(gn_memory_alloc(manager, 1, NULL, NULL));
    REFUSED(gn_memory_free(NULL, &pointer));
    REFUSED(gn_memory_free_sized(NULL, &pointer, 1));
    REFUSED(gn_memory_get_size(NULL, &pointer, &count));
    REFUSED(gn_memory_get_size(manager, &pointer, NULL));
    REFUSED(gn_memory_record_stream(NULL, &pointer, stream));
    REFUSED(gn_memory_record_stream(manager, &pointer, NULL));
    REFUSED(gn_memory_block_alloc(NULL, 1, NULL, &block));
    REFUSED(gn_memory_block_alloc(manager, 1, NULL, NULL));
    REFUSED(gn_memory_alloc_batch(NULL, 1, &one, NULL, &pointer));
    REFUSED(gn_memory_alloc_batch(manager, 1, NULL, NULL, &pointer));
    REFUSED(gn_memory_alloc_batch(manager, 1, &one, NULL, NULL));
    REFUSED(gn_memory_alloc_batch(manager, SIZE_MAX / 4, &one, NULL, &pointer));
    CHECK_OK(gn_memory_alloc_batch(manager, 0, NULL, NULL, NULL));
    REFUSED(gn_memory_warm_up(NULL, 1, &one, &one));
    REFUSED(gn_memory_warm_up(manager, 1, NULL, &one));
    REFUSED(gn_memory_warm_up(manager, 1, &one, NULL));
    CHECK(gn_memory_warm_up(manager, 1, &much, &one) != GN_OK);
    CHECK(gn_memory_warm_up(manager, 1, &one, &much) != GN_OK);
    CHECK_OK(gn_memory_warm_up(manager, 0, NULL, NULL));
    REFUSED(gn_memory_request_start(NULL, 1, NULL, &request));
    REFUSED(gn_memory_request_start(manager, 1, NULL, NULL));
    REFUSED(gn_memory_request_query(NULL));
    REFUSED(gn_memory_request_wait(NULL, &pointer));
    REFUSED(gn_memory_set_callback(NULL, 0.5, NULL, NULL));
    REFUSED(gn_memory_get_config(NULL, &config));
    REFUSED(gn_memory_get_config(manager, NULL));
    REFUSED(gn_memory_configure(NULL, &config));
    REFUSED(gn_memory_configure(manager, NULL));
    REFUSED(gn_memory_collect(NULL));
    REFUSED(gn_memory_coalesce(NULL, &count));
    CHECK_OK(gn_memory_coalesce(manager, NULL));
    REFUSED(gn_memory_trim(NULL, 0, &count));
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
    REFUSED(gn_memory_compact(NULL, &report));
    REFUSED(gn_memory_compact(manager, NULL));
    REFUSED(gn_memory_set_out_of_memory_handler(NULL, NULL, NULL));
    REFUSED(gn_memory_pool_create(NULL, &pool));
    REFUSED(gn_memory_pool_create(manager, NULL));
    REFUSED(gn_memory_pool_begin(NULL, stream));
    REFUSED(gn_memory_pool_end(NULL, stream));
    REFUSED(gn_memory_get_statistics(NULL, &statistics));
    REFUSED(gn_memory_get_statistics(manager, NULL));
    REFUSED(gn_memory_reset_peaks(NULL));
    REFUSED(gn_memory_get_classes(NULL, &class, 1, &count));
    REFUSED(gn_memory_get_classes(manager, NULL, 1, &count));
    REFUSED(gn_memory_get_classes(manager, &class, 1, NULL));
    REFUSED(gn_memory_visit(NULL, visit, NULL));
    REFUSED(gn_memory_visit(manager, NULL, NULL));
    CHECK(none == NULL && block == NULL && request == NULL && pool == NULL && pointer == NULL);
    CHECK_STATUS(gn_memory_free(manager, NULL), GN_ERROR_INVALID_POINTER);
    REFUSED(gn_memory_block_free(NULL));
}

static void test_devices(void)
{
    gn_device *device = NULL;
    gn_device_properties properties;
    gn_stream *stream = NULL, *made = NULL;
    gn_event *event = NULL, *none = NULL;
    size_t free_bytes, total_bytes;
    int count;
    uint64_t id;
    bool is_capturing;
    float milliseconds;
    void *pointer = NULL;
    CHECK_OK(gn_stream_get_default(cpu, &stream));
    CHECK_OK(gn_event_create(cpu, 0, &event));
    REFUSED(gn_device_count(GN_DEVICE_CPU, NULL));
    CHECK(gn_device_count((gn_device_type)77, &count) != GN_OK);
    REFUSED(gn_device_get(GN_DEVICE_CPU, 0, NULL));
    CHECK(gn_device_get((gn_device_type)77, 0, &device) != GN_OK);
    CHECK(gn_device_get(GN_DEVICE_CPU, 1, &device) != GN_OK);
    CHECK(gn_device_get(GN_DEVICE_CPU, -1, &device) != GN_OK);
    REFUSED(gn_device_get_properties(NULL, &properties));
    REFUSED(gn_device_get_properties(cpu, NULL));
    REFUSED(gn_device_get_memory_info(NULL, &free_bytes, &total_bytes));
    REFUSED(gn_device_get_memory_info(cpu, NULL, &total_bytes));
    REFUSED(gn_device_get_memory_info(cpu, &free_bytes, NULL));
    REFUSED(gn_device_synchronize(NULL));
    REFUSED(gn_stream_create(NULL, 0, 0, &made));
    REFUSED(gn_stream_create(cpu, 0, 0, NULL));
    REFUSED(gn_stream_from_handle(NULL, &count, &made));
    REFUSED(gn_stream_get_default(NULL, &made));
    REFUSED(gn_stream_get_default(cpu, NULL));
    REFUSED(gn_stream_get_current(NULL, &made));
    REFUSED(gn_stream_get_current(cpu, NULL));
    REFUSED(gn_stream_set_current(NULL));
    REFUSED(gn_stream_get_id(NULL, &id));
    REFUSED(gn_stream_get_id(stream, NULL));
    REFUSED(gn_stream_query(NULL));
    REFUSED(gn_stream_synchronize(NULL));
    REFUSED(gn_stream_wait_event(NULL, event));
    REFUSED(gn_stream_wait_event(stream, NULL));
    REFUSED(gn_stream_is_capturing(NULL, &is_capturing));
    REFUSED(gn_stream_is_capturing(stream, NULL));
    REFUSED(gn_event_create(NULL, 0, &none));
    REFUSED(gn_event_create(cpu, 0, NULL));
    REFUSED(gn_event_record(NULL, stream));
    REFUSED(gn_event_query(NULL));
    REFUSED(gn_event_synchronize(NULL));
    REFUSED(gn_event_elapsed(NULL, event, &milliseconds));
    REFUSED(gn_event_elapsed(event, NULL, &milliseconds));
    REFUSED(gn_event_elapsed(event, event, NULL));
    REFUSED(gn_copy(NULL, &count, 4, stream));
    REFUSED(gn_copy(&count, NULL, 4, stream));
    REFUSED(gn_fill(NULL, 0, 4, 1, stream));
    REFUSED(gn_fill(&count, 0, 3, 1, stream));
    REFUSED(gn_host_alloc(NULL, 4, &pointer));
    REFUSED(gn_host_alloc(cpu, 4, NULL));
    REFUSED(gn_host_free(NULL, &count));
    REFUSED(gn_host_register(NULL, &count, 4));
    REFUSED(gn_host_register(cpu, NULL, 4));
    REFUSED(gn_host_unregister(NULL, &count));
    REFUSED(gn_library_add_directory(NULL));
    CHECK(device == NULL && made == NULL && none == NULL && pointer == NULL);
    gn_event_destroy(event);
    gn_event_destroy(NULL);
    gn_stream_release(NULL);
}

static void test_kernels_and_records(void)
{
    gn_kernel *kernel = NULL;
    gn_kernel_properties properties;
    gn_kernel_run run;
    gn_tuning tuning;
    gn_history_event event;
    gn_history_frame frame;
    gn_kernel_shape shape = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    uint64_t lost;
    size_t count = 0;
    REFUSED(gn_kernel_create(NULL, "", "k", NULL, &kernel));
    REFUSED(gn_kernel_create(cpu, NULL, "k", NULL, &kernel));
    REFUSED(gn_kernel_create(cpu, "", NULL, NULL, &kernel));
    REFUSED(gn_kernel_create(cpu, "", "k", NULL, NULL));
    REFUSED(gn_kernel_get_properties(NULL, &properties));
    REFUSED(gn_kernel_launch(NULL, &shape, NULL, NULL));
    REFUSED(gn_profile_take(NULL, 1, &count));
    REFUSED(gn_profile_take(&run, 1, NULL));
    REFUSED(gn_tuning_list(NULL, 1, &count));
    REFUSED(gn_tuning_list(&tuning, 1, NULL));
    REFUSED(gn_history_read(NULL, 1, &count, &lost));
    REFUSED(gn_history_read(&event, 1, NULL, &lost));
    REFUSED(gn_history_mark(NULL));
    REFUSED(gn_history_begin(NULL));
    REFUSED(gn_history_get_stack(0, NULL, 1, &count));
    REFUSED(gn_history_get_stack(0, &frame, 1, NULL));
    CHECK(kernel == NULL);
    gn_kernel_destroy(NULL);
}

/* Shapes of the most dimensions, of numbers of every length: the text ends where its memory does, or before. */
static void test_texts_of_shapes(void)
{
    int64_t sizes[GN_DIMENSIONS_MAX], number = INT64_MIN;
    for (int digits = 20; digits > 0; digits--, number /= 10) {
        for (int ndim = 0; ndim <= GN_DIMENSIONS_MAX; ndim++) {
            for (int i = 0; i < ndim; i++)
                sizes[i] = number;
            /* In memory whose neighbours are known: a text that is too long shows there. */
            struct {
                struct gni_shape_text shape;
                char after[512];
            } room;
            memset(&room, 0x5a, sizeof room);
            room.shape = gni_shape_text(ndim, sizes);
            size_t length = strnlen(room.shape.text, sizeof room.shape.text);
            CHECK(length < sizeof room.shape.text && room.shape.text[length - 1] == ')');
            size_t each = (size_t)snprintf(NULL, 0, "%lld", (long long)number);
            size_t whole =
                2 + (size_t)ndim * each + (ndim > 1 ? 2 * ((size_t)ndim - 1) : ndim == 1);
            if (whole + 24 < sizeof room.shape.text) /* there is room for all of it */
                CHECK_U64(length, whole);
            else
                CHECK(length >= sizeof room.shape.text - 24);
        }
    }
}

static void test_mixed_precision(void)
{
    const gn_autocast_rule none = {{0}};
    const gn_function *row = gn_function_table(0);
    const gn_argument argument = {.is_given = true, .operand.tensor = x};
    gn_results results = {0};
    gn_operand operand = {.tensor = x};
    gn_tensor *made = NULL;
    REFUSED(gn_function_call(NULL, &argument, &results));
    REFUSED(gn_function_call(row, NULL, &results));
    REFUSED(gn_function_call(row, &argument, NULL));
    REFUSED(gn_autocast_call(none, NULL, &argument, &results));
    REFUSED(gn_autocast_call(none, row, NULL, &results));
    REFUSED(gn_autocast_call(none, row, &argument, NULL));
    REFUSED(gn_autocast_operands(none, 1, NULL, &made));
    REFUSED(gn_autocast_operands(none, 1, &operand, NULL));
    CHECK(gn_autocast_find(NULL).policy[0] == GN_AUTOCAST_NONE);
    CHECK(gn_autocast_find_operation((gn_op)GN_OP_COUNT).policy[1] == GN_AUTOCAST_NONE);
    REFUSED(gn_list_unscale(1, NULL, NULL, x));
    REFUSED(gn_list_unscale(1, (gn_tensor *[]){x}, NULL, NULL));
    REFUSED(gn_scale_update(NULL, x, x, 2, 0.5, 1));
    REFUSED(gn_scale_update(x, NULL, x, 2, 0.5, 1));
    REFUSED(gn_scale_update(x, x, NULL, 2, 0.5, 1));
}

static void test_formats(void)
{
    const int64_t sizes[] = {1, 1, 2, 2};
    gn_memory_format format;
    REFUSED(gn_memory_format_find(NULL, &format));
    REFUSED(gn_memory_format_find("rows", &format));
    REFUSED(gn_memory_format_find("channels_last", NULL));
    REFUSED(gn_tensor_to_format(NULL, GN_FORMAT_CONTIGUOUS, true, &result));
    REFUSED(gn_tensor_to_format(x, GN_FORMAT_CONTIGUOUS, true, NULL));
    REFUSED(gn_tensor_to_format(x, (gn_memory_format)9, true, &result));
    REFUSED(gn_cast_in_order(NULL, GN_INT8, &result));
    REFUSED(gn_cast_in_order(x, GN_INT8, NULL));
    REFUSED(gn_tensor_to_in_order(NULL, cpu, &result));
    REFUSED(gn_tensor_to_in_order(x, NULL, &result));
    REFUSED(gn_tensor_to_in_order(x, cpu, NULL));
    REFUSED(gn_tensor_create_format(GN_INT8, 4, NULL, cpu, GN_FORMAT_CHANNELS_LAST, &result));
    REFUSED(gn_tensor_create_format(GN_INT8, 4, sizes, NULL, GN_FORMAT_CHANNELS_LAST, &result));
    REFUSED(gn_tensor_create_format(GN_INT8, 4, sizes, cpu, (gn_memory_format)9, &result));
    REFUSED(gn_tensor_create_format(GN_INT8, 4, sizes, cpu, GN_FORMAT_CHANNELS_LAST, NULL));
    CHECK(!gn_tensor_has_format(NULL, GN_FORMAT_CONTIGUOUS));
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    x = tensor_make(GN_FLOAT32, 4, 1.5);
    places = tensor_make(GN_INT64, 2, 1);
    mask = tensor_make(GN_BOOL, 4, 1);
    RUN(test_mixed_precision);
    RUN(test_formats);
    RUN(test_elements);
    RUN(test_rows);
    RUN(test_random);
    RUN(test_keys);
    RUN(test_views);
    RUN(test_graphs);
    RUN(test_memory);
    RUN(test_devices);
    RUN(test_kernels_and_records);
    RUN(test_texts_of_shapes);
    gn_tensor_release(x);
    gn_tensor_release(places);
    gn_tensor_release(mask);
    return check_result();
}
