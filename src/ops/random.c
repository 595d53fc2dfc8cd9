/*
 * random.c: tensors filled with random numbers: src/ops/philox.h says what each element is.
 *
 * Memory that is not contiguous, the halves, and memory of a GPU are filled by way of a tensor that can be.
 */
#include "ops/backend.h"
#include "ops/move.h"
#include "ops/recorder.h"

#include "ops/cpu/random.h"

static struct gni_philox philox_next(gn_generator *generator)
{
    return (struct gni_philox){.seed = generator->seed, .offset = generator->offset++};
}

/* Numbers are made on the host, which gives a GPU the same ones as the CPU. */
static gn_status host_create(gn_dtype dtype, int ndim, const int64_t *sizes, gn_tensor **tensor)
{
    gn_device *host;
    GN_TRY(gn_device_get(GN_DEVICE_CPU, 0, &host));
    return gn_tensor_create(dtype, ndim, sizes, host, tensor);
}

/* What is filled: `out` itself where that can be, else another tensor of its shape. */
static gn_status target_make(gn_tensor *out, gn_tensor **target)
{
    gn_dtype dtype = gni_dtypes[out->dtype].compute;
    if (gn_tensor_is_read_only(out))
        return gni_error(GN_ERROR_INVALID_VALUE, "the tensor is read-only");
    GN_TRY(gni_tensor_flush(out));
    GN_TRY(gni_storage_flush_readers(gni_tensor_storage(out)));
    if (out->is_contiguous && dtype == out->dtype && gni_device_is_host(out->device)) {
        gn_tensor_retain(out);
        *target = out;
        atomic_fetch_add(&gni_tensor_storage(out)->version, 1);
        return GN_OK;
    }
    return host_create(dtype, out->ndim, out->sizes, target);
}

static gn_status target_done(gn_tensor *out, gn_tensor *target)
{
    gn_status status = GN_OK;
    if (target != out)
        status = gn_assign(out, (gn_operand){.tensor = target});
    gn_tensor_release(target);
    return status;
}

/*
 * The halves have fewer digits than the numbers they come from, and rounding could make a number before 1 to 1:
 * digits that a half does not have are cut off.
 */
static gn_status digits_cut(gn_tensor *target, gn_dtype dtype)
{
    const double steps = dtype == GN_FLOAT16 ? 2048 : 256;
    const gn_scalar up = {.kind = GN_FLOAT64, .floating = steps};
    const gn_scalar down = {.kind = GN_FLOAT64, .floating = 1 / steps};
    const gn_operand all[2] = {{.tensor = target}, {.scalar = up}};
    const gn_operand back[2] = {{.tensor = target}, {.scalar = down}};
    GN_TRY(gn_elementwise_into(GN_OP_MULTIPLY, all, target));
    GN_TRY(gn_elementwise_into(GN_OP_FLOOR, all, target));
    return gn_elementwise_into(GN_OP_MULTIPLY, back, target);
}

static gn_status floating_fill(gn_tensor *out, gn_generator *generator, bool is_uniform,
                               void (*fill)(struct gni_philox, gn_dtype, void *, size_t))
{
    GN_CHECK_ARGUMENT(out != NULL && generator != NULL, "out and generator must not be NULL");
    gn_tensor *target;
    if (gni_dtype_kind(out->dtype) != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_TYPE, "%s numbers are floating, not %s",
                         is_uniform ? "uniform" : "normal", gni_dtypes[out->dtype].name);
    GN_TRY(target_make(out, &target));
    fill(philox_next(generator), target->dtype, gni_tensor_data(target), (size_t)target->count);
    if (is_uniform && gni_dtype_size(out->dtype) == 2) {
        gn_status status = digits_cut(target, out->dtype);
        if (status != GN_OK) {
            gn_tensor_release(target);
            return status;
        }
    }
    return target_done(out, target);
}

gn_status gn_random_uniform(gn_tensor *out, gn_generator *generator)
{
    return floating_fill(out, generator, true, gni_random_uniform);
}

gn_status gn_random_normal(gn_tensor *out, gn_generator *generator)
{
    return floating_fill(out, generator, false, gni_random_normal);
}

/* Whether an integer type has a number. */
static bool has_number(gn_dtype dtype, int64_t number)
{
    uint64_t element = 0;
    gni_scalar_store((gn_scalar){.kind = GN_INT64, .integer = number}, dtype, &element);
    return gni_scalar_load(dtype, &element).integer == number;
}

gn_status gn_random_integers(gn_tensor *out, int64_t low, int64_t high, gn_generator *generator)
{
    GN_CHECK_ARGUMENT(out != NULL && generator != NULL, "out and generator must not be NULL");
    gn_tensor *target;
    bool is_floating = gni_dtype_kind(out->dtype) == GNI_KIND_FLOATING;
    if (low >= high)
        return gni_error(GN_ERROR_INVALID_VALUE, "there is no integer from %lld to before %lld",
                         (long long)low, (long long)high);
    if (!is_floating && (!has_number(out->dtype, low) || !has_number(out->dtype, high - 1)))
        return gni_error(GN_ERROR_INVALID_VALUE, "%s does not have all integers from %lld to %lld",
                         gni_dtypes[out->dtype].name, (long long)low, (long long)(high - 1));
    if (!is_floating) {
        GN_TRY(target_make(out, &target));
    } else {
        GN_TRY(host_create(GN_INT64, out->ndim, out->sizes, &target));
    }
    gni_random_integers(philox_next(generator), target->dtype, low, high, gni_tensor_data(target),
                        (size_t)target->count);
    return target_done(out, target);
}

gn_status gn_random_permutation(int64_t count, gn_device *device, gn_generator *generator,
                                gn_tensor **result)
{
    GN_CHECK_ARGUMENT(device != NULL && generator != NULL && result != NULL,
                      "device, generator and result must not be NULL");
    gn_tensor *made, **const results[] = {result};
    GN_TRY(host_create(GN_INT64, 1, &count, &made));
    gn_status status = gni_random_permutation(
        philox_next(generator), (int64_t *)(void *)gni_tensor_data(made), (size_t)count);
    return gni_results_move(status, device, 1, &made, results);
}
