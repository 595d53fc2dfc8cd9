/*
 * test_index.c: indexing through the public interface: plans, versions, failures of host memory at every point, and
 * what an error leaves behind; masks inside, and several threads. The values of keys are tested from Python, against
 * NumPy.
 */
#include "check.h"

#include "genesis/genesis.h"

#include "base/host.h"
#include "base/parallel.h"
#include "ops/backend.h"
#include "tensor/mask.h"

#include <string.h>

static gn_device *cpu;

static const gn_key all_of_it = {.kind = GN_KEY_SLICE, .stop = INT64_MAX, .step = 1};

static gn_key key_of(gn_tensor *tensor)
{
    return (gn_key){.kind = GN_KEY_TENSOR, .tensor = tensor};
}

static gn_operand number(int64_t value)
{
    return (gn_operand){.scalar = {.kind = GN_INT64, .integer = value}};
}

/* Numbers as a tensor of a type, of one dimension or of two. */
static gn_status made_of(gn_dtype dtype, int64_t rows, int64_t columns, const int64_t *numbers,
                         gn_tensor **result)
{
    int64_t shape[] = {rows, columns};
    gn_tensor *wide = NULL;
    void *data;
    gn_status status = gn_tensor_create(GN_INT64, columns > 0 ? 2 : 1, shape, cpu, &wide);
    if (status == GN_OK)
        status = gn_tensor_get_data(wide, &data);
    if (status == GN_OK) {
        memcpy(data, numbers, (size_t)gn_tensor_get_count(wide) * sizeof *numbers);
        status = gn_cast(wide, dtype, result);
    }
    gn_tensor_release(wide);
    return status;
}

static gn_tensor *tensor_of(gn_dtype dtype, int64_t rows, int64_t columns, const int64_t *numbers)
{
    gn_tensor *tensor = NULL;
    CHECK_OK(made_of(dtype, rows, columns, numbers, &tensor));
    return tensor;
}

static int64_t item_of(gn_tensor *tensor, int64_t row, int64_t column)
{
    gn_scalar item = {0};
    CHECK_OK(gn_tensor_get_item(tensor, (const int64_t[]){row, column}, &item));
    return item.kind == GN_FLOAT64 ? (int64_t)item.floating : item.integer;
}

static const int64_t twelve[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* ---- what is there ------------------------------------------------------------------------------ */

static void test_descriptions(void)
{
    gn_tensor *x = tensor_of(GN_FLOAT32, 3, 4, twelve), *result;
    gn_tensor *rows = tensor_of(GN_INT32, 2, 0, (const int64_t[]){2, -3});
    gn_tensor *mask = tensor_of(GN_BOOL, 3, 0, (const int64_t[]){1, 0, 1});
    gn_operand one = number(1), other = {.tensor = x};
    gn_index_info info;
    const gn_key basic[] = {
        {.kind = GN_KEY_INTEGER, .start = -1},
        {.kind = GN_KEY_SLICE, .start = INT64_MAX, .stop = INT64_MIN, .step = -2},
        {.kind = GN_KEY_NEW_AXIS}};
    CHECK_OK(gn_index_describe(x, 3, basic, NULL, &info));
    CHECK(info.kind == GN_INDEX_VIEW && info.dimensions == 2 && info.temp_bytes == 0);
    CHECK(info.shape[0] == 2 && info.strides[0] == -2 && info.shape[1] == 1);
    CHECK(info.offset_bytes == 11 * 4 && !info.needs_mask_compaction);
    CHECK_OK(gn_index_describe(x, 3, basic, &one, &info));
    CHECK(info.kind == GN_INDEX_FILL);
    CHECK_OK(gn_index_describe(x, 3, basic, &other, &info));
    CHECK(info.kind == GN_INDEX_COPY);
    const gn_key mixed[] = {key_of(rows), all_of_it};
    CHECK_OK(gn_index_describe(x, 2, mixed, NULL, &info));
    CHECK(info.kind == GN_INDEX_GATHER && info.shape[0] == 2 && info.shape[1] == 4);
    const gn_key masked[] = {key_of(mask)};
    CHECK_OK(gn_index_describe(x, 1, masked, &one, &info));
    CHECK(info.kind == GN_INDEX_SCATTER && info.needs_mask_compaction && info.temp_bytes == 16);
    CHECK_OK(gn_index_positions(x, 1, masked, &result));
    CHECK(gn_tensor_get_count(result) == 8 && item_of(result, 4, 0) == 8);
    gn_tensor_release(result);
    CHECK_OK(gn_index_get(x, 2, mixed, &result));
    CHECK(item_of(result, 0, 1) == 9 && item_of(result, 1, 3) == 3);
    gn_tensor_release(result);
    gn_tensor *all[] = {x, rows, mask};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
}

static void test_writes(void)
{
    gn_tensor *x = tensor_of(GN_INT16, 3, 4, twelve), *later;
    gn_tensor *places = tensor_of(GN_INT64, 3, 0, (const int64_t[]){2, 0, 2});
    gn_operand operands[] = {{.tensor = x}, number(1)};
    CHECK_OK(gn_elementwise(GN_OP_ADD, operands, &later)); /* reads what is overwritten */
    uint64_t version = gn_tensor_get_version(x);
    CHECK_OK(gn_index_set(x, 1, (gn_key[]){key_of(places)}, number(7), false));
    CHECK(gn_tensor_get_version(x) == version + 1);
    CHECK(item_of(x, 0, 0) == 7 && item_of(x, 1, 0) == 4 && item_of(x, 2, 3) == 7);
    CHECK(item_of(later, 2, 3) == 12);
    CHECK_OK(gn_index_put(x, 0, places, number(1), true));
    CHECK(item_of(x, 2, 0) == 9 && item_of(x, 0, 0) == 8 &&
          gn_tensor_get_version(x) == version + 2);
    CHECK_OK(gn_index_set(x, 1, (gn_key[]){{.kind = GN_KEY_INTEGER, .start = 1}}, number(5), true));
    CHECK(item_of(x, 1, 0) == 9);
    CHECK_OK(
        gn_index_set(x, 1, (gn_key[]){{.kind = GN_KEY_INTEGER, .start = 1}}, number(5), false));
    CHECK(item_of(x, 1, 0) == 5 && gn_tensor_get_version(x) == version + 4);
    gn_tensor_release(x);
    gn_tensor_release(later);
    gn_tensor_release(places);
}

/* Whether there is a view at once, and with this layout. */
static bool is_view(gn_tensor *tensor, int count, const gn_key *keys, int ndim,
                    const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    gn_tensor *view = NULL;
    CHECK_OK(gn_index_view(tensor, count, keys, &view));
    size_t bytes = sizeof *sizes * (size_t)ndim;
    bool is_right = view != NULL && gn_tensor_get_dimensions(view) == ndim &&
                    gn_tensor_get_offset(view) == offset &&
                    memcmp(gn_tensor_get_shape(view), sizes, bytes) == 0 &&
                    memcmp(gn_tensor_get_strides(view), strides, bytes) == 0;
    gn_tensor_release(view);
    return is_right;
}

static void test_views_at_once(void)
{
    const gn_key one = {.kind = GN_KEY_INTEGER, .start = 1}, axis = {.kind = GN_KEY_NEW_AXIS};
    const gn_key far = {.kind = GN_KEY_INTEGER, .start = -4}, dots = {.kind = GN_KEY_ELLIPSIS};
    const gn_key back = {.kind = GN_KEY_SLICE, .start = -1, .stop = INT64_MIN, .step = -3};
    const gn_key still = {.kind = GN_KEY_SLICE, .stop = 3};
    const int64_t none = 0;
    gn_tensor *x = tensor_of(GN_FLOAT32, 3, 4, twelve), *later, *view = x;
    CHECK_OK(gn_cast(x, GN_INT32, &later));
    CHECK_OK(gn_index_view(later, 1, &one, &view));
    CHECK(view == NULL && gn_is_pending());
    CHECK(is_view(x, 0, NULL, 2, (int64_t[]){3, 4}, (int64_t[]){4, 1}, 0));
    CHECK(is_view(x, 2, (gn_key[]){one, far}, 0, &none, &none, 4));
    CHECK(is_view(x, 2, (gn_key[]){dots, one}, 1, (int64_t[]){3}, (int64_t[]){4}, 1));
    CHECK(is_view(x, 3, (gn_key[]){one, dots, one}, 0, &none, &none, 5));
    CHECK(is_view(x, 4, (gn_key[]){dots, all_of_it, axis, back}, 3, (int64_t[]){3, 1, 2},
                  (int64_t[]){4, -6, -3}, 3));
    const gn_key wrong[][3] = {{far, one, axis},        {one, dots, dots},
                               {one, one, one},         {dots, still, one},
                               {key_of(x), one, axis},  {one, dots, key_of(x)},
                               {{.kind = GN_KEY_BOOL}}, {dots, {.kind = (gn_key_kind)9}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        view = x;
        CHECK_OK(gn_index_view(x, 3, wrong[i], &view));
        CHECK(view == NULL);
    }
    CHECK_STATUS(gn_index_view(NULL, 0, NULL, &view), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_index_view(x, 1, NULL, &view), GN_ERROR_INVALID_VALUE);
    gn_tensor_release(x);
    gn_tensor_release(later);
}

static void test_mistakes(void)
{
    gn_tensor *x = tensor_of(GN_FLOAT32, 3, 4, twelve), *result = NULL;
    gn_tensor *bad = tensor_of(GN_INT64, 3, 0, (const int64_t[]){2, 0, 3});
    gn_tensor *floating = tensor_of(GN_FLOAT32, 3, 0, twelve);
    gn_key many[GN_KEYS_MAX + 1] = {{.kind = GN_KEY_NEW_AXIS}};
    uint64_t version = gn_tensor_get_version(x);
    CHECK_STATUS(gn_index_get(NULL, 0, NULL, &result), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_index_get(x, 1, NULL, &result), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_index_get(x, GN_KEYS_MAX + 1, many, &result), GN_ERROR_INDEX);
    CHECK_STATUS(gn_index_set(x, GN_KEYS_MAX + 1, many, number(1), false), GN_ERROR_INDEX);
    CHECK_STATUS(gn_index_get(x, 1, (gn_key[]){{.kind = (gn_key_kind)9}}, &result),
                 GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_index_get(x, 1, (gn_key[]){key_of(NULL)}, &result), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_index_set(x, 1, (gn_key[]){key_of(NULL)}, number(1), false),
                 GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_index_get(x, 1, (gn_key[]){{.kind = GN_KEY_SLICE, .stop = 3}}, &result),
                 GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_index_get(x, 1, (gn_key[]){key_of(floating)}, &result), GN_ERROR_INDEX);
    CHECK_STATUS(gn_index_get(x, 1, (gn_key[]){key_of(bad)}, &result), GN_ERROR_INDEX);
    CHECK_DETAIL("index 3 is out of range for dimension 0 of size 3");
    CHECK_STATUS(gn_index_positions(x, 1, (gn_key[]){key_of(bad)}, &result), GN_ERROR_INDEX);
    CHECK_STATUS(gn_index_set(x, 1, (gn_key[]){key_of(bad)}, number(7), false), GN_ERROR_INDEX);
    CHECK_STATUS(gn_index_put(x, 0, bad, number(7), false), GN_ERROR_INDEX);
    CHECK_STATUS(gn_index_put(x, 2, bad, number(7), false), GN_ERROR_INDEX);
    CHECK_STATUS(gn_gather(x, 0, bad, &result), GN_ERROR_SHAPE);
    CHECK_STATUS(gn_scatter(x, 0, floating, number(7), false), GN_ERROR_TYPE);
    CHECK_STATUS(gn_masked_select(x, bad, &result), GN_ERROR_TYPE);
    CHECK_STATUS(gn_searchsorted(x, bad, false, &result), GN_ERROR_SHAPE);
    CHECK_STATUS(gn_bincount(x, NULL, 0, &result), GN_ERROR_SHAPE);
    CHECK(result == NULL && gn_tensor_get_version(x) == version);
    for (int64_t i = 0; i < 12; i++)
        CHECK(item_of(x, i / 4, i % 4) == i);
    gn_tensor_release(x);
    gn_tensor_release(bad);
    gn_tensor_release(floating);
}

/* ---- failures ----------------------------------------------------------------------------------- */

struct inputs {
    gn_tensor *x, *transposed, *rows, *mask, *wide_mask, *values, *index;
};

/* Reading and writing of every kind; `target` is written only if all is well. */
static gn_status everything(const struct inputs *in, gn_tensor *target, int step)
{
    gn_tensor *result = NULL;
    gn_status status = GN_ERROR_UNSUPPORTED;
    const gn_key mixed[] = {key_of(in->rows), key_of(in->mask)};
    switch (step) {
    case 0:
        status = gn_index_get(in->x, 2, mixed, &result);
        break;
    case 1:
        status = gn_index_get(in->transposed, 1, (gn_key[]){key_of(in->wide_mask)}, &result);
        break;
    case 2:
        status = gn_index_set(target, 2, mixed, (gn_operand){.tensor = in->values}, false);
        break;
    case 3: /* the key, and the value, lie in the target */
        status = gn_index_set(target, 2, (gn_key[]){all_of_it, key_of(target)},
                              (gn_operand){.tensor = target}, true);
        break;
    case 4:
        status = gn_gather(in->x, 1, in->index, &result);
        break;
    case 5:
        status = gn_scatter(target, 1, in->index, (gn_operand){.tensor = in->values}, true);
        break;
    case 6:
        status = gn_nonzero(in->transposed, &result);
        break;
    case 7:
        status = gn_searchsorted(in->rows, in->values, true, &result);
        break;
    case 8:
        status = gn_bincount(in->rows, in->rows, 3, &result);
        break;
    case 9:
        status = gn_index_select(in->transposed, 1, in->rows, &result);
        break;
    case 10:
        status = gn_masked_select(in->x, in->mask, &result);
        break;
    case 11:
        status = gn_index_positions(in->x, 2, mixed, &result);
        break;
    case 12:
        status = gn_take(in->transposed, in->index, &result);
        break;
    case 13:
        status = gn_index_view(in->x, 1, &all_of_it, &result);
        break;
    default:
        break;
    }
    gn_tensor_release(result);
    return status;
}

enum {
    STEPS = 14,
};

static void test_out_of_host_memory(void)
{
    struct inputs in = {0};
    in.x = tensor_of(GN_INT32, 3, 4, (const int64_t[]){0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
    CHECK_OK(gn_tensor_permute(in.x, (const int[]){1, 0}, &in.transposed));
    in.rows = tensor_of(GN_INT16, 2, 0, (const int64_t[]){1, 2});
    in.mask = tensor_of(GN_BOOL, 4, 0, (const int64_t[]){1, 0, 1, 0});
    gn_tensor *flat =
        tensor_of(GN_BOOL, 3, 4, (const int64_t[]){1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
    CHECK_OK(gn_tensor_permute(flat, (const int[]){1, 0}, &in.wide_mask));
    in.values = tensor_of(GN_INT8, 1, 2, (const int64_t[]){5, 6});
    in.index = tensor_of(GN_INT64, 1, 2, (const int64_t[]){3, 0});
    for (int step = 0; step < STEPS; step++) {
        for (long nth = 1;; nth++) {
            gn_tensor *target = NULL;
            CHECK_OK(gn_cast(in.x, GN_INT32, &target));
            CHECK_OK(gn_flush());
            size_t live = gni_host_live_count();
            uint64_t version = gn_tensor_get_version(target);
            gni_host_fail_after(nth);
            gn_status status = everything(&in, target, step);
            gni_host_fail_after(-1);
            CHECK(gni_host_live_count() == live);
            if (status != GN_OK) {
                CHECK(status == GN_ERROR_OUT_OF_HOST_MEMORY);
                CHECK(gn_tensor_get_version(target) == version);
                for (int64_t i = 0; i < 12; i++)
                    CHECK(item_of(target, i / 4, i % 4) == i % 3);
            }
            gn_tensor_release(target);
            if (status == GN_OK) {
                CHECK(nth > 1);
                break;
            }
        }
    }
    gn_tensor *all[] = {in.x,         in.transposed, in.rows,  in.mask,
                        in.wide_mask, in.values,     in.index, flat};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
}

/* ---- masks --------------------------------------------------------------------------------------- */

/* Masks of any density, length and alignment: the same places as a plain loop. */
static void test_masks_inside(void)
{
    enum {
        MOST = 3 * GNI_MASK_PART + 13
    };
    static uint8_t bytes[MOST + 8];
    static int64_t offsets[MOST];
    uint64_t state = 1;
    const int64_t lengths[] = {0, 1, 7, 8, 9, 1023, 1024, 1025, GNI_MASK_PART, MOST};
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
        for (unsigned density = 0; density < 5; density++) {
            uint8_t *begin = bytes + density; /* not aligned */
            for (int64_t i = 0; i < lengths[n]; i++) {
                uint64_t bits = check_random(&state);
                bool is_true = density == 4 || bits % 64 < (density * density * density);
                begin[i] = is_true ? (uint8_t)(1 + bits % 255) : 0;
            }
            struct gni_mask mask;
            CHECK_OK(gni_mask_init(&mask, begin, 1, &lengths[n], (const int64_t[]){-3}));
            gni_mask_offsets(&mask, offsets);
            int64_t found = 0;
            bool is_equal = true;
            for (int64_t i = 0; i < lengths[n]; i++)
                if (begin[i] != 0)
                    is_equal &= offsets[found++] == -3 * i;
            CHECK(is_equal && found == mask.count);
            gni_mask_deinit(&mask);
        }
}

/* ---- threads ------------------------------------------------------------------------------------- */

enum {
    MANY = 200000,
    TARGETS = 70001,
};

/* Large reading, writing and adding on four threads, against plain loops. */
static void test_many_threads(void)
{
    static int64_t places[MANY], sums[TARGETS], last[TARGETS], numbers[MANY], flags[MANY];
    uint64_t state = 7;
    int threads = gni_parallel_get_threads();
    CHECK_OK(gni_parallel_set_threads(4));
    for (int64_t i = 0; i < MANY; i++) {
        places[i] = (int64_t)(check_random(&state) % TARGETS);
        numbers[i] = i;
        flags[i] = check_random(&state) % 3 == 0;
        sums[places[i]] += i;
        last[places[i]] = i;
    }
    gn_tensor *index = tensor_of(GN_INT64, MANY, 0, places);
    gn_tensor *values = tensor_of(GN_INT64, MANY, 0, numbers), *result;
    gn_tensor *mask = tensor_of(GN_BOOL, MANY, 0, flags), *target;
    CHECK_OK(gn_tensor_create(GN_INT64, 1, (const int64_t[]){TARGETS}, cpu, &target));
    const int64_t *data;
    for (int is_accumulated = 0; is_accumulated < 2; is_accumulated++) {
        const int64_t *expected = is_accumulated ? sums : last;
        bool is_equal = true;
        CHECK_OK(gn_assign(target, number(0)));
        CHECK_OK(gn_index_set(target, 1, (gn_key[]){key_of(index)}, (gn_operand){.tensor = values},
                              is_accumulated != 0));
        CHECK_OK(gn_tensor_get_data(target, (void **)&data));
        for (int64_t i = 0; i < TARGETS; i++)
            is_equal &= data[i] == expected[i];
        CHECK(is_equal);
    }
    CHECK_OK(gn_index_get(target, 1, (gn_key[]){key_of(index)}, &result));
    CHECK_OK(gn_tensor_get_data(result, (void **)&data));
    bool is_equal = true;
    for (int64_t i = 0; i < MANY; i++)
        is_equal &= data[i] == sums[places[i]];
    CHECK(is_equal);
    gn_tensor_release(result);
    CHECK_OK(gn_index_get(values, 1, (gn_key[]){key_of(mask)}, &result));
    CHECK_OK(gn_tensor_get_data(result, (void **)&data));
    int64_t found = 0;
    for (int64_t i = 0; i < MANY; i++)
        if (flags[i] != 0)
            is_equal &= data[found++] == i;
    CHECK(is_equal && found == gn_tensor_get_count(result));
    CHECK_OK(gn_index_set(values, 1, (gn_key[]){key_of(mask)}, number(-1), false));
    CHECK_OK(gn_tensor_get_data(values, (void **)&data));
    for (int64_t i = 0; i < MANY; i++)
        is_equal &= data[i] == (flags[i] != 0 ? -1 : i);
    CHECK(is_equal);
    gn_tensor *all[] = {index, values, mask, target, result};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gn_tensor_release(all[i]);
    CHECK_OK(gni_parallel_set_threads(threads));
}

/* ---- the tables of operations --------------------------------------------------------------------- */

/* Every kind of device has every slot that is not optional. */
static void test_backends_are_complete(void)
{
    for (int type = 0; type < GNI_DEVICE_TYPES; type++) {
        const struct gni_backend *backend = gni_backends[type];
        CHECK(backend->run != NULL && backend->reduce != NULL && backend->random != NULL);
        CHECK(backend->extreme != NULL && backend->cumulate != NULL);
        CHECK(backend->cumulate_extreme != NULL && backend->select != NULL);
        CHECK(backend->unique != NULL && backend->product != NULL);
        CHECK(backend->product_copies != NULL && backend->permutation != NULL);
        CHECK(backend->index_get != NULL && backend->index_set != NULL);
        CHECK(backend->mask_places != NULL && backend->mask_get != NULL);
        CHECK(backend->mask_set != NULL && backend->index_check != NULL);
        CHECK(backend->search != NULL && backend->range != NULL && backend->count != NULL);
        CHECK(backend->small_most < 0 || backend->copy_most >= backend->small_most);
    }
}

/* The slots of masks do on the CPU what keys do: places by strides and as coordinates, elements, and values. */
static void test_mask_slots(void)
{
    enum {
        ROWS = 3,
        COLUMNS = 4
    };
    const struct gni_backend *backend = gni_backend_get(cpu);
    static const int64_t truth[ROWS * COLUMNS] = {0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0};
    static const int64_t elements[ROWS * COLUMNS] = {0,  10, 20, 30, 40,  50,
                                                     60, 70, 80, 90, 100, 110};
    static const int64_t new_values[] = {7, 8, 9};
    static const int64_t strides[] = {100, 1};
    gn_tensor *mask, *tensor, *values, *places, *coordinates, *found;
    CHECK_OK(made_of(GN_BOOL, ROWS, COLUMNS, truth, &mask));
    CHECK_OK(made_of(GN_INT64, ROWS, COLUMNS, elements, &tensor));
    CHECK_OK(made_of(GN_INT64, 3, 0, new_values, &values));
    CHECK_OK(gni_tensor_flush(mask));
    CHECK_OK(gni_tensor_flush(tensor));
    CHECK_OK(gni_tensor_flush(values));
    CHECK_OK(backend->mask_places(mask, strides, &places));
    CHECK_OK(backend->mask_places(mask, NULL, &coordinates));
    CHECK_OK(backend->mask_get(tensor, mask, &found));
    const int64_t *offset = (const int64_t *)(const void *)gni_tensor_data(places);
    const int64_t *pair = (const int64_t *)(const void *)gni_tensor_data(coordinates);
    const int64_t *element = (const int64_t *)(const void *)gni_tensor_data(found);
    CHECK(places->count == 3 && offset[0] == 1 && offset[1] == 100 && offset[2] == 103);
    CHECK(coordinates->sizes[0] == 3 && coordinates->sizes[1] == 2);
    CHECK(pair[0] == 0 && pair[1] == 1 && pair[2] == 1 && pair[3] == 0 && pair[5] == 3);
    CHECK(found->count == 3 && element[0] == 10 && element[1] == 40 && element[2] == 70);
    CHECK_OK(backend->mask_set(tensor, mask, values));
    const int64_t *written = (const int64_t *)(const void *)gni_tensor_data(tensor);
    CHECK(written[0] == 0 && written[1] == 7 && written[4] == 8 && written[7] == 9);
    CHECK_STATUS(backend->mask_set(tensor, mask, places->count == 3 ? coordinates : places),
                 GN_ERROR_SHAPE);
    CHECK(written[1] == 7 && written[11] == 110);
    gn_tensor_release(found);
    gn_tensor_release(coordinates);
    gn_tensor_release(places);
    gn_tensor_release(values);
    gn_tensor_release(tensor);
    gn_tensor_release(mask);
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    RUN(test_backends_are_complete);
    RUN(test_mask_slots);
    RUN(test_descriptions);
    RUN(test_views_at_once);
    RUN(test_writes);
    RUN(test_mistakes);
    RUN(test_out_of_host_memory);
    RUN(test_masks_inside);
    RUN(test_many_threads);
    return check_result();
}
