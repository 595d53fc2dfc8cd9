/*
 * test_dlpack.c: tensors to and from DLPack's structures: what goes out and comes back, structures that cannot be,
 * random ones, failures of host memory, threads, and the order of streams. With an argument "cuda" the last alone,
 * on a GPU or the simulated one.
 *
 * A random structure is judged twice: by the library, and by the rules of dlpack.h in 128-bit arithmetic here.
 * Where they accept it and it stays in its memory, its elements are read.
 */
#include "check.h"

#include "genesis/genesis.h"

#include "base/host.h"
#include "tensor/dlpack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static gn_device *cpu;

static gn_tensor *numbered(gn_dtype dtype, int64_t rows, int64_t columns)
{
    gn_tensor *tensor = NULL;
    CHECK_OK(gn_tensor_create(dtype, 2, (const int64_t[]){rows, columns}, cpu, &tensor));
    CHECK_OK(gn_assign(tensor, (gn_operand){.scalar = {.kind = GN_INT64, .integer = 1}}));
    return tensor;
}

static void *data_of(gn_tensor *tensor)
{
    void *data = NULL;
    CHECK_OK(gn_tensor_get_data(tensor, &data));
    return data;
}

/* ---- both ways ------------------------------------------------------------------------------- */

static void test_every_type(void)
{
    const DLDataType expected[] = {{kDLBool, 8, 1},   {kDLUInt, 8, 1},    {kDLInt, 8, 1},
                                   {kDLInt, 16, 1},   {kDLInt, 32, 1},    {kDLInt, 64, 1},
                                   {kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1},
                                   {kDLFloat, 64, 1}, {kDLUInt, 16, 1},   {kDLUInt, 32, 1},
                                   {kDLUInt, 64, 1}};
    for (int i = 0; i < GN_DTYPE_COUNT; i++) {
        gn_tensor *x = numbered((gn_dtype)i, 3, 5), *view, *back;
        DLManagedTensorVersioned *managed;
        CHECK_OK(gn_tensor_permute(x, (const int[]){1, 0}, &view));
        CHECK_OK(gn_tensor_to_dlpack(view, false, &managed));
        const DLTensor *seen = &managed->dl_tensor;
        CHECK(memcmp(&seen->dtype, &expected[i], sizeof *expected) == 0);
        CHECK(seen->data == data_of(x) && seen->byte_offset == 0 && seen->ndim == 2);
        CHECK(seen->shape[0] == 5 && seen->shape[1] == 3);
        CHECK(seen->strides[0] == 1 && seen->strides[1] == 5);
        CHECK(seen->device.device_type == kDLCPU && seen->device.device_id == 0);
        CHECK(managed->version.major == 1 && managed->version.minor == 3 && managed->flags == 0);
        gn_tensor_release(x);
        gn_tensor_release(view);
        CHECK_OK(gn_tensor_from_dlpack(managed, &back));
        CHECK(gn_tensor_get_dtype(back) == (gn_dtype)i && gn_tensor_get_strides(back)[1] == 5);
        gn_scalar item;
        CHECK_OK(gn_tensor_get_item(back, (const int64_t[]){4, 2}, &item));
        CHECK(item.kind == GN_FLOAT64 ? item.floating == 1 : item.integer == 1);
        gn_tensor_release(back);
    }
}

static void test_before_version_1(void)
{
    gn_tensor *x = numbered(GN_FLOAT32, 2, 2), *back;
    DLManagedTensor *managed;
    CHECK_OK(gn_tensor_to_dlpack_unversioned(x, &managed));
    CHECK(managed->dl_tensor.data == data_of(x) && managed->dl_tensor.strides[0] == 2);
    CHECK_OK(gn_tensor_from_dlpack_unversioned(managed, &back));
    CHECK(data_of(back) == data_of(x) && !gn_tensor_is_read_only(back));
    gn_tensor_release(back);
    CHECK_OK(gn_tensor_to_dlpack_unversioned(x, &managed));
    gn_dlpack_delete_unversioned(managed);
    gn_tensor_release(x);
}

static void test_flags(void)
{
    float memory[2] = {1, 2};
    gn_tensor *x, *back;
    DLManagedTensorVersioned *managed;
    DLManagedTensor *old;
    size_t live = gni_host_live_count();
    CHECK_OK(gn_tensor_from_memory(memory, GN_FLOAT32, 1, (const int64_t[]){2}, NULL, cpu, true,
                                   NULL, NULL, &x));
    CHECK_STATUS(gn_tensor_to_dlpack_unversioned(x, &old), GN_ERROR_UNSUPPORTED);
    CHECK_OK(gn_tensor_to_dlpack(x, true, &managed));
    CHECK(managed->flags == (DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED));
    CHECK_OK(gn_tensor_from_dlpack(managed, &back));
    CHECK(gn_tensor_is_read_only(back));
    CHECK_STATUS(gn_assign(back, (gn_operand){.scalar = {.kind = GN_INT64}}),
                 GN_ERROR_INVALID_VALUE);
    gn_tensor_release(x);
    gn_tensor_release(back);
    CHECK(gni_host_live_count() == live);
}

/* What is pending is computed at the export; what comes later is seen. */
static void test_exporting_computes(void)
{
    gn_tensor *x = numbered(GN_FLOAT32, 300, 300), *y;
    DLManagedTensorVersioned *managed;
    gn_operand operands[] = {{.tensor = x}, {.tensor = x}};
    CHECK_OK(gn_elementwise(GN_OP_ADD, operands, &y));
    CHECK_OK(gn_tensor_to_dlpack(y, false, &managed));
    const float *bytes = managed->dl_tensor.data;
    CHECK(bytes[0] == 2 && bytes[89999] == 2);
    operands[0] = (gn_operand){.tensor = y};
    CHECK_OK(gn_elementwise_into(GN_OP_ADD, operands, y));
    CHECK(bytes[0] == 3 && bytes[89999] == 3);
    gn_tensor_release(x);
    gn_tensor_release(y);
    CHECK(bytes[5] == 3); /* the consumer's as long as it wants */
    gn_dlpack_delete(managed);
}

static void test_without_elements_and_dimensions(void)
{
    gn_tensor *x = numbered(GN_FLOAT64, 0, 5), *back;
    DLManagedTensorVersioned *managed;
    CHECK_OK(gn_tensor_to_dlpack(x, false, &managed));
    CHECK(managed->dl_tensor.data == NULL && managed->dl_tensor.shape[1] == 5);
    CHECK_OK(gn_tensor_from_dlpack(managed, &back));
    CHECK(gn_tensor_get_count(back) == 0);
    gn_tensor_release(back);
    gn_tensor_release(x);
    double number = 7;
    DLManagedTensorVersioned one = {
        .version = {1, 0},
        .dl_tensor = {.data = &number, .device = {kDLCPU, 3}, .dtype = {kDLFloat, 64, 1}}};
    CHECK_OK(gn_tensor_from_dlpack(&one, &back)); /* neither shape nor strides nor deleter */
    gn_scalar item;
    CHECK_OK(gn_tensor_get_item(back, NULL, &item));
    CHECK(item.floating == 7 && data_of(back) == (void *)&number);
    gn_tensor_release(back);
}

static void test_prototypes(void)
{
    int64_t shape[] = {4, 3};
    DLTensor prototype = {
        .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 32, 1}, .shape = shape};
    DLManagedTensorVersioned *managed;
    CHECK_OK(gn_dlpack_create(&prototype, &managed));
    CHECK(managed->dl_tensor.shape[0] == 4 && managed->dl_tensor.strides[0] == 3);
    memset(managed->dl_tensor.data, 1, 48);
    gn_dlpack_delete(managed);
    shape[1] = INT64_MAX;
    CHECK_STATUS(gn_dlpack_create(&prototype, &managed), GN_ERROR_SHAPE);
    prototype.dtype.code = 99;
    CHECK_STATUS(gn_dlpack_create(&prototype, &managed), GN_ERROR_TYPE);
}

/* Memory of others that is here twice: what is written does not change what is still to be read. */
static void test_overlap_of_two_imports(void)
{
    float memory[6] = {0, 1, 2, 3, 4, 5};
    int64_t shape[] = {5};
    DLManagedTensorVersioned one = {
        .version = {1, 3},
        .dl_tensor = {memory, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}};
    DLManagedTensorVersioned two = one;
    two.dl_tensor.byte_offset = sizeof *memory;
    gn_tensor *from, *to;
    CHECK_OK(gn_tensor_from_dlpack(&one, &from));
    CHECK_OK(gn_tensor_from_dlpack(&two, &to));
    CHECK_OK(gn_assign(to, (gn_operand){.tensor = from}));
    const float expected[] = {0, 0, 1, 2, 3, 4};
    CHECK(memcmp(memory, expected, sizeof memory) == 0);
    gn_tensor_release(from);
    gn_tensor_release(to);
}

/* ---- structures that cannot be --------------------------------------------------------------- */

static int deleted;

static void count_deleted(DLManagedTensorVersioned *self)
{
    CHECK(self->manager_ctx == &deleted);
    deleted++;
}

static void test_hostile_structures(void)
{
    float memory[8] = {0};
    int64_t shape[] = {2, 2}, negative[] = {2, -2}, huge[] = {INT64_MAX, INT64_MAX},
            wide[] = {2, INT64_MAX / 2}, edge[] = {INT64_MIN, 1}, strides[] = {2, 1};
    const DLManagedTensorVersioned good = {
        .version = {1, 0},
        .manager_ctx = &deleted,
        .deleter = count_deleted,
        .dl_tensor = {memory, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0}};
    struct {
        DLManagedTensorVersioned made;
        gn_status status;
    } cases[32];
    int count = 0;
#define HOSTILE(result, change)         \
    do {                                \
        cases[count].made = good;       \
        cases[count].made.change;       \
        cases[count++].status = result; \
    } while (0)
    HOSTILE(GN_ERROR_UNSUPPORTED, version.major = 2);
    HOSTILE(GN_ERROR_UNSUPPORTED, version.major = 0);
    HOSTILE(GN_ERROR_TYPE, dl_tensor.dtype.lanes = 4);
    HOSTILE(GN_ERROR_TYPE, dl_tensor.dtype.lanes = 0);
    HOSTILE(GN_ERROR_TYPE, dl_tensor.dtype.bits = 24);
    HOSTILE(GN_ERROR_TYPE, dl_tensor.dtype.code = 5);
    HOSTILE(GN_ERROR_UNSUPPORTED, dl_tensor.device.device_type = 99);
    HOSTILE(GN_ERROR_UNSUPPORTED, dl_tensor.device.device_type = 0);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.ndim = -1);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.ndim = 17);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.ndim = INT32_MAX);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.shape = NULL);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.shape = negative);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.shape = huge);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.strides = wide);
    HOSTILE(GN_ERROR_SHAPE, dl_tensor.strides = edge);
    HOSTILE(GN_ERROR_INVALID_VALUE, dl_tensor.data = NULL);
    HOSTILE(GN_ERROR_INVALID_VALUE, dl_tensor.byte_offset = 2);
    HOSTILE(GN_ERROR_OVERFLOW, dl_tensor.byte_offset = UINT64_MAX);
    deleted = 0;
    size_t live = gni_host_live_count();
    for (int i = 0; i < count; i++) {
        gn_tensor *tensor = (gn_tensor *)memory;
        CHECK_STATUS(gn_tensor_from_dlpack(&cases[i].made, &tensor), cases[i].status);
        CHECK(tensor == (gn_tensor *)memory && deleted == 0);
    }
    CHECK(gni_host_live_count() == live);
    DLManagedTensorVersioned fine = good;
    gn_tensor *tensor;
    fine.dl_tensor.byte_offset = 16;
    fine.dl_tensor.strides = NULL;
    CHECK_OK(gn_tensor_from_dlpack(&fine, &tensor));
    CHECK(data_of(tensor) == (void *)(memory + 4) && deleted == 0);
    gn_tensor_release(tensor);
    CHECK(deleted == 1);
}

/* ---- random structures ----------------------------------------------------------------------- */

enum {
    MEMORY = 4096,
    ROUNDS = 200000,
};

struct chance {
    uint64_t state;
};

static int64_t below(struct chance *chance, int64_t limit)
{
    return (int64_t)(check_random(&chance->state) % (uint64_t)limit);
}

static int64_t odd_number(struct chance *chance)
{
    static const int64_t odd[] = {0,         -1,        INT64_MAX, INT64_MIN,    INT64_MIN + 1,
                                  1LL << 32, 1LL << 62, 1LL << 61, -(1LL << 61), 1LL << 40};
    return odd[below(chance, sizeof odd / sizeof *odd)];
}

/* Mostly small and good, now and then anything. */
static int64_t number(struct chance *chance, int64_t low, int64_t high)
{
    int64_t kind = below(chance, 40);
    if (kind == 0)
        return odd_number(chance);
    if (kind == 1)
        return (int64_t)check_random(&chance->state);
    return low + below(chance, high - low);
}

static gn_dtype type_of(DLDataType type)
{
    static const DLDataType known[] = {{kDLBool, 8, 1},   {kDLUInt, 8, 1},    {kDLInt, 8, 1},
                                       {kDLInt, 16, 1},   {kDLInt, 32, 1},    {kDLInt, 64, 1},
                                       {kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1},
                                       {kDLFloat, 64, 1}, {kDLUInt, 16, 1},   {kDLUInt, 32, 1},
                                       {kDLUInt, 64, 1}};
    for (int i = 0; i < GN_DTYPE_COUNT; i++)
        if (memcmp(&known[i], &type, sizeof type) == 0)
            return (gn_dtype)i;
    return GN_DTYPE_COUNT;
}

typedef __int128 wide_int;

/* The lowest and the first byte after the highest that is reached, from the first element. */
static void reach_of(const DLTensor *tensor, int64_t size, wide_int *low, wide_int *high)
{
    *low = 0, *high = size;
    wide_int step = size;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        wide_int span = (wide_int)(tensor->shape[i] - 1) *
                        (tensor->strides != NULL ? (wide_int)tensor->strides[i] * size : step);
        *(span < 0 ? low : high) += span;
        step *= tensor->shape[i];
    }
}

/* Whether the rules allow a structure; and how many elements it has. */
static bool is_allowed(const DLManagedTensorVersioned *managed, int64_t *count)
{
    const DLTensor *tensor = &managed->dl_tensor;
    gn_dtype dtype = type_of(tensor->dtype);
    if (managed->version.major != 1 || dtype == GN_DTYPE_COUNT || tensor->ndim < 0 ||
        tensor->ndim > GN_DIMENSIONS_MAX || (tensor->ndim > 0 && tensor->shape == NULL) ||
        (tensor->device.device_type != kDLCPU && tensor->device.device_type != kDLCUDAHost))
        return false;
    int64_t size = (int64_t)gn_dtype_size(dtype);
    wide_int bytes = size, low, high;
    bool is_empty = false;
    for (int i = 0; i < tensor->ndim; i++) {
        is_empty |= tensor->shape[i] == 0;
        if (tensor->shape[i] < 0)
            return false;
        bytes *= tensor->shape[i] > 0 ? tensor->shape[i] : 1;
        if (bytes > PTRDIFF_MAX)
            return false;
    }
    *count = is_empty ? 0 : (int64_t)(bytes / size);
    if (is_empty)
        return true;
    wide_int first = (wide_int)(uintptr_t)tensor->data + tensor->byte_offset;
    if (tensor->data == NULL || first > (wide_int)UINTPTR_MAX || first % size != 0)
        return false;
    reach_of(tensor, size, &low, &high);
    for (int i = 0; i < tensor->ndim && tensor->strides != NULL; i++) {
        wide_int whole = (wide_int)tensor->shape[i] * tensor->strides[i] * size;
        if (tensor->shape[i] > 1 && (whole > INT64_MAX || whole < INT64_MIN))
            return false; /* a step over the whole dimension must be a number, too */
    }
    return first + low >= 0 && first + high <= (wide_int)UINTPTR_MAX && low >= INT64_MIN &&
           high - size <= INT64_MAX;
}

/* All elements, converted by the library and one by one. */
static void elements_check(gn_tensor *tensor, const DLTensor *from)
{
    gn_tensor *copy;
    int64_t index[GN_DIMENSIONS_MAX] = {0}, size = (int64_t)gn_dtype_size(type_of(from->dtype));
    CHECK_OK(gn_cast(tensor, gn_tensor_get_dtype(tensor), &copy));
    const char *packed = data_of(copy), *first = (const char *)from->data + from->byte_offset;
    for (int64_t i = 0; i < gn_tensor_get_count(tensor); i++) {
        int64_t at = 0, step = 1;
        for (int j = from->ndim - 1; j >= 0; j--) {
            at += index[j] * (from->strides != NULL ? from->strides[j] : step);
            step *= from->shape[j];
        }
        if (from->dtype.code != kDLBool) /* whose other values than 0 become 1 */
            CHECK(memcmp(packed + i * size, first + at * size, (size_t)size) == 0);
        for (int j = from->ndim - 1; j >= 0 && ++index[j] == from->shape[j]; j--)
            index[j] = 0;
    }
    gn_tensor_release(copy);
}

static void test_random_structures(void)
{
    static const DLDataType usual[] = {
        {kDLBool, 8, 1}, {kDLInt, 16, 1}, {kDLInt, 64, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1}};
    struct chance chance = {20260101};
    char *memory = aligned_alloc(64, MEMORY); /* the address sanitizer guards its ends */
    int accepted = 0, walked = 0;
    for (int i = 0; i < MEMORY; i++)
        memory[i] = (char)(i % 63); /* halves and floats of such bytes are numbers */
    size_t live = gni_host_live_count();
    deleted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t shape[20], strides[20], count = 0, rare = below(&chance, 30);
        DLManagedTensorVersioned managed = {
            .version = {rare == 0 ? (uint32_t)number(&chance, 0, 3) : 1, 3},
            .manager_ctx = &deleted,
            .deleter = below(&chance, 8) > 0 ? count_deleted : NULL,
            .flags = (uint64_t)number(&chance, 0, 8),
            .dl_tensor = {
                .data = rare == 1 ? NULL : memory,
                .device = {rare == 2 ? (int32_t)number(&chance, 3, 20) : kDLCPU, (int32_t)rare},
                .ndim = rare == 3 ? (int32_t)number(&chance, -2, 20) : (int32_t)below(&chance, 5),
                .dtype = usual[below(&chance, sizeof usual / sizeof *usual)],
                .shape = rare == 4 ? NULL : shape,
                .strides = below(&chance, 5) > 0 ? strides : NULL,
                .byte_offset = (uint64_t)number(&chance, 0, 40) * 8}};
        if (rare == 5)
            managed.dl_tensor.dtype =
                (DLDataType){(uint8_t)below(&chance, 20), (uint8_t)below(&chance, 70),
                             (uint16_t)below(&chance, 3)};
        for (int i = 0; i < 20; i++) {
            shape[i] = number(&chance, 0, 6);
            strides[i] = number(&chance, -20, 21);
        }
        bool is_fine = is_allowed(&managed, &count);
        int before = deleted;
        gn_tensor *tensor = NULL;
        gn_status status = gn_tensor_from_dlpack(&managed, &tensor);
        CHECK((status == GN_OK) == is_fine && deleted == before);
        if (status != GN_OK)
            continue;
        accepted++;
        CHECK(gn_tensor_get_count(tensor) == count);
        CHECK(gn_tensor_is_read_only(tensor) == (managed.flags % 2 == 1));
        wide_int low = 0, high = 0, offset = managed.dl_tensor.byte_offset;
        if (count > 0)
            reach_of(&managed.dl_tensor, (int64_t)gn_dtype_size(gn_tensor_get_dtype(tensor)), &low,
                     &high);
        if (count > 0 && count <= MEMORY && offset + low >= 0 && offset + high <= MEMORY &&
            below(&chance, 8) == 0) {
            elements_check(tensor, &managed.dl_tensor);
            walked++;
        }
        gn_tensor_release(tensor);
        CHECK(deleted == before + (managed.deleter != NULL));
    }
    free(memory);
    CHECK(gni_host_live_count() == live);
    printf("     %d structures, %d accepted, %d read\n", ROUNDS, accepted, walked);
    CHECK(accepted > ROUNDS / 10 && accepted < ROUNDS - ROUNDS / 10 && walked > 1000);
}

/* ---- failures and threads -------------------------------------------------------------------- */

static gn_device *place; /* of the round trip */

static gn_status round_trip(void)
{
    gn_tensor *x, *back;
    DLManagedTensorVersioned *managed;
    gn_status status = gn_tensor_create(GN_FLOAT32, 1, (const int64_t[]){9}, place, &x);
    if (status != GN_OK)
        return status;
    status = gn_dlpack_order(x, NULL);
    if (status == GN_OK)
        status = gn_tensor_to_dlpack(x, false, &managed);
    gn_tensor_release(x);
    if (status != GN_OK)
        return status;
    status = gn_tensor_from_dlpack(managed, &back);
    if (status != GN_OK) {
        gn_dlpack_delete(managed); /* still ours */
        return status;
    }
    status = gn_dlpack_follow(back, NULL);
    gn_tensor_release(back);
    return status;
}

static void test_host_memory_fails(void)
{
    CHECK_OK(round_trip());
    size_t live = gni_host_live_count();
    int faults = 0;
    for (long nth = 1;; nth++) {
        gni_host_fail_after(nth);
        gn_status status = round_trip();
        gni_host_fail_after(-1);
        CHECK(gni_host_live_count() == live);
        if (status == GN_OK)
            break;
        CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
        faults++;
    }
    CHECK(faults >= 5);
}

enum {
    THREADS = 4,
    TURNS = 2000,
};

static gn_tensor *shared;

static void *thread_run(void *unused)
{
    for (int turn = 0; turn < TURNS; turn++) {
        DLManagedTensorVersioned *managed;
        gn_tensor *back;
        CHECK_OK(gn_tensor_to_dlpack(shared, false, &managed));
        CHECK_OK(gn_tensor_from_dlpack(managed, &back));
        CHECK(data_of(back) == data_of(shared));
        gn_tensor_release(back);
        CHECK_OK(round_trip());
    }
    return unused;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    shared = numbered(GN_FLOAT32, 3, 3);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_run, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    gn_tensor_release(shared);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void test_streams_of_the_cpu(void)
{
    int64_t none = -1, other = 1;
    void *handle = &none;
    gn_tensor *x = numbered(GN_FLOAT32, 2, 2);
    CHECK_OK(gn_dlpack_order(x, NULL));
    CHECK_OK(gn_dlpack_order(x, &none));
    CHECK_STATUS(gn_dlpack_order(x, &other), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("there are none");
    CHECK_OK(gn_dlpack_follow(x, NULL));
    gn_tensor_release(x);
    CHECK_OK(gn_dlpack_current_stream(kDLCPU, 0, &handle));
    CHECK(handle == NULL);
    CHECK_STATUS(gn_dlpack_current_stream(77, 0, &handle), GN_ERROR_UNSUPPORTED);
}

/* ---- on a GPU -------------------------------------------------------------------------------- */

enum {
    COUNT = 1 << 14
};

static gn_device *gpu;
static gn_stream *streams[3];

static int64_t number_of(gn_stream *stream)
{
    return (int64_t)(intptr_t)gn_stream_get_handle(stream);
}

static void assign(gn_tensor *tensor, int64_t value, gn_stream *stream)
{
    CHECK_OK(gn_stream_set_current(stream));
    CHECK_OK(gn_assign(tensor, (gn_operand){.scalar = {.kind = GN_INT64, .integer = value}}));
}

static gn_tensor *numbers_on_gpu(int64_t value, gn_stream *stream)
{
    gn_tensor *tensor = NULL;
    CHECK_OK(gn_stream_set_current(stream));
    CHECK_OK(gn_tensor_create(GN_INT32, 1, (const int64_t[]){COUNT}, gpu, &tensor));
    assign(tensor, value, stream);
    return tensor;
}

/* What a stream reads from memory, as another library would: nobody of ours knows of it. */
static void check_read(gn_stream *stream, const void *data, int32_t expected)
{
    static int32_t host[COUNT];
    CHECK_OK(gn_copy(host, data, sizeof host, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(host[0] == expected && host[COUNT - 1] == expected);
}

static void test_handles_of_streams(void)
{
    gn_tensor *x = numbers_on_gpu(1, streams[0]);
    void *handle;
    CHECK_OK(gn_dlpack_current_stream(kDLCUDA, 0, &handle));
    CHECK(handle == gn_stream_get_handle(streams[0]) && handle != NULL);
    const int64_t allowed[] = {1, 2, -1}, wrong[] = {0, -2, INT64_MIN};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(gn_dlpack_order(x, &allowed[i]));
        CHECK_STATUS(gn_dlpack_order(x, &wrong[i]), GN_ERROR_INVALID_VALUE);
    }
    CHECK_OK(gn_dlpack_order(x, NULL));
    gn_tensor_release(x);
    CHECK_OK(gn_device_synchronize(gpu));
}

/* The consumer's stream waits for the one that wrote, which need not be the current one, and for the current one. */
static void test_consumers_wait(void)
{
    int64_t consumer = number_of(streams[2]);
    gn_tensor *x = numbers_on_gpu(0, streams[0]);
    for (int32_t round = 1; round <= 4; round++) {
        DLManagedTensorVersioned *managed;
        assign(x, round, streams[0]);
        CHECK_OK(gn_stream_set_current(streams[1]));
        CHECK_OK(gn_tensor_to_dlpack(x, false, &managed));
        if (round == 4) /* by somebody who has the address, on the current stream */
            CHECK_OK(gn_fill(managed->dl_tensor.data, 4, 4, COUNT, streams[1]));
        CHECK_OK(gn_dlpack_order(x, &consumer));
        check_read(streams[2], managed->dl_tensor.data, round);
        gn_dlpack_delete(managed);
    }
    gn_tensor_release(x);
}

/* Memory that a consumer works on goes to nobody when we let it go. */
static void test_memory_stays_with_consumers(void)
{
    int64_t consumer = number_of(streams[2]);
    for (int round = 0; round < 4; round++) {
        DLManagedTensorVersioned *managed;
        gn_tensor *x = numbers_on_gpu(round, streams[0]);
        CHECK_OK(gn_tensor_to_dlpack(x, false, &managed));
        CHECK_OK(gn_dlpack_order(x, &consumer));
        CHECK_OK(gn_fill(managed->dl_tensor.data, 7, 4, COUNT, streams[2]));
        gn_tensor_release(x);
        gn_dlpack_delete(managed);
        gn_tensor *y = numbers_on_gpu(9, streams[0]); /* might be at the same place */
        check_read(streams[0], data_of(y), 9);
        gn_tensor_release(y);
    }
    CHECK_OK(gn_device_synchronize(gpu));
}

/* An import belongs to a producer's stream, or to the current one, and goes back in its order whoever used it. */
static void test_imports_return_in_order(void)
{
    for (int round = 0; round < 4; round++) {
        gn_memory_manager *manager;
        void *block;
        CHECK_OK(gn_memory_manager_get(gpu, &manager));
        gn_stream *home = round < 2 ? streams[0] : streams[1];
        CHECK_OK(gn_memory_alloc(manager, COUNT * 4, home, &block));
        CHECK_OK(gn_fill(block, 5, 4, COUNT, home));
        int64_t shape[] = {COUNT}, strides[] = {1};
        int before = deleted;
        DLManagedTensorVersioned managed = {
            .version = {1, 0},
            .manager_ctx = &deleted,
            .deleter = count_deleted,
            .dl_tensor = {.data = block,
                          .device = {kDLCUDA, 0},
                          .ndim = 1,
                          .dtype = {kDLInt, 32, 1},
                          .shape = shape,
                          .strides = strides},
        };
        gn_tensor *x, *sum, *more;
        CHECK_OK(gn_stream_set_current(streams[1]));
        CHECK_OK(gn_tensor_from_dlpack(&managed, &x));
        if (home != streams[1])
            CHECK_OK(gn_dlpack_follow(x, gn_stream_get_handle(home)));
        CHECK_OK(gn_stream_set_current(streams[2]));
        CHECK_OK(
            gn_elementwise(GN_OP_ADD, (const gn_operand[]){{.tensor = x}, {.tensor = x}}, &sum));
        check_read(streams[2], data_of(sum), 10);
        CHECK_OK(
            gn_elementwise(GN_OP_ADD, (const gn_operand[]){{.tensor = x}, {.tensor = sum}}, &more));
        assign(x, 6, round % 2 == 0 ? streams[2] : streams[0]);
        CHECK(deleted == before);
        gn_tensor_release(x);
        CHECK(deleted == before + 1);
        CHECK_OK(gn_fill(block, 8, 4, COUNT, home)); /* the stream that its owner knows of */
        check_read(home, block, 8);
        check_read(streams[2], data_of(more), 15);
        gn_tensor_release(more);
        gn_tensor_release(sum);
        CHECK_OK(gn_device_synchronize(gpu));
        CHECK_OK(gn_memory_free(manager, block));
    }
}

static void gpu_run(void)
{
    (void)setenv("SIM_GPU_FINDINGS", "abort", 0); /* streams that do not wait are found there */
    CHECK_OK(gn_device_from_dlpack(kDLCUDA, 0, &gpu));
    for (int i = 0; i < 3; i++)
        CHECK_OK(gn_stream_create(gpu, GN_STREAM_NON_BLOCKING, 0, &streams[i]));
    RUN(test_handles_of_streams);
    RUN(test_consumers_wait);
    RUN(test_memory_stays_with_consumers);
    RUN(test_imports_return_in_order);
    gn_stream *first;
    CHECK_OK(gn_stream_get_default(gpu, &first));
    CHECK_OK(gn_stream_set_current(first));
    place = gpu; /* on one stream: between two the memory manager keeps marks */
    RUN(test_host_memory_fails);
    for (int i = 0; i < 3; i++)
        gn_stream_release(streams[i]);
}

int main(int argc, char **argv)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    if (argc > 1 && strcmp(argv[1], "cuda") == 0) {
        int count;
        if (gn_device_count(GN_DEVICE_CUDA, &count) != GN_OK) {
            printf("skipped: %s\n", gn_error_detail());
            return CHECK_SKIPPED;
        }
        gpu_run();
        return check_result();
    }
    RUN(test_every_type);
    RUN(test_before_version_1);
    RUN(test_flags);
    RUN(test_exporting_computes);
    RUN(test_without_elements_and_dimensions);
    RUN(test_prototypes);
    RUN(test_overlap_of_two_imports);
    RUN(test_hostile_structures);
    RUN(test_random_structures);
    place = cpu;
    RUN(test_host_memory_fails);
    RUN(test_threads);
    RUN(test_streams_of_the_cpu);
    return check_result();
}
