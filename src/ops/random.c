/*
 * random.c: tensors filled with random numbers: src/ops/philox.h says what each element is.
 *
 * Memory that is not contiguous, and types that a device does not fill, are filled by way of a tensor that can be.
 */
#include "tensor/tape.h"
#include "ops/backend.h"
#include "ops/recorder.h"

#include "ops/cpu/cpu_random.h"

static struct gni_philox philox_next(gn_generator *generator)
{
    return (struct gni_philox){.seed = generator->seed, .offset = generator->offset++};
}

/* What is filled with numbers of a type: `out` itself where that can be, else another tensor of its shape. On the tape the
 * numbers are assigned. */
static gn_status target_make(gn_tensor *out, gn_dtype dtype, gn_tensor **target)
{
    if (gn_tensor_is_read_only(out))
        return gni_error(GN_ERROR_INVALID_VALUE, "the tensor is read-only");
    GN_TRY(gni_tensor_flush(out));
    GN_TRY(gni_recorder_flush_readers(gni_tensor_storage(out)));
    if (!out->is_contiguous || dtype != out->dtype || gni_is_taped(out))
        return gn_tensor_create(dtype, out->ndim, out->sizes, out->device, target);
    gn_tensor_retain(out);
    *target = out;
    gni_storage_note_write(gni_tensor_storage(out));
    return GN_OK;
}

static gn_status target_fill(gn_tensor *target, const struct gni_random *random)
{
    gn_stream *stream;
    GN_TRY(gni_stream_of(target->device, &stream));
    return gni_backend_get(target->device)->random(random, target, stream);
}

/* `status` is that of filling the target, which ends here. */
static gn_status target_done(gn_status status, gn_tensor *out, gn_tensor *target)
{
    if (status == GN_OK && target != out)
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

static gn_status floating_fill(gn_tensor *out, gn_generator *generator, enum gni_random_kind kind)
{
    GN_CHECK_ARGUMENT(out != NULL && generator != NULL, "out and generator must not be NULL");
    gn_tensor *target;
    if (gni_dtype_kind(out->dtype) != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_TYPE, "%s numbers are floating, not %s",
                         kind == GNI_RANDOM_UNIFORM ? "uniform" : "normal",
                         gni_dtypes[out->dtype].name);
    gn_dtype dtype = gni_backend_get(out->device)->has_random_halves
                         ? out->dtype
                         : gni_dtypes[out->dtype].compute;
    GN_TRY(target_make(out, dtype, &target));
    const struct gni_random random = {.kind = kind, .philox = philox_next(generator)};
    gn_status status = target_fill(target, &random);
    if (status == GN_OK && kind == GNI_RANDOM_UNIFORM && dtype != out->dtype)
        status = digits_cut(target, out->dtype);
    return target_done(status, out, target);
}

gn_status gn_random_uniform(gn_tensor *out, gn_generator *generator)
{
    return floating_fill(out, generator, GNI_RANDOM_UNIFORM);
}

gn_status gn_random_normal(gn_tensor *out, gn_generator *generator)
{
    return floating_fill(out, generator, GNI_RANDOM_NORMAL);
}

/* Whether an integer type, or bool, has a number. */
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
    if (out->dtype == GN_UINT64 ? (uint64_t)low >= (uint64_t)high : low >= high)
        return gni_error(GN_ERROR_INVALID_VALUE, "there is no integer from %lld to before %lld",
                         (long long)low, (long long)high);
    if (!is_floating && (!has_number(out->dtype, low) || !has_number(out->dtype, high - 1)))
        return gni_error(GN_ERROR_INVALID_VALUE, "%s does not have all integers from %lld to %lld",
                         gni_dtypes[out->dtype].name, (long long)low, (long long)(high - 1));
    GN_TRY(target_make(out, is_floating ? GN_INT64 : out->dtype, &target));
    const struct gni_random random = {
        .kind = GNI_RANDOM_INTEGERS, .philox = philox_next(generator), .low = low, .high = high};
    return target_done(target_fill(target, &random), out, target);
}

gn_status gn_random_permutation(int64_t count, gn_device *device, gn_generator *generator,
                                gn_tensor **result)
{
    GN_CHECK_ARGUMENT(device != NULL && generator != NULL && result != NULL,
                      "device, generator and result must not be NULL");
    gn_stream *stream;
    gn_tensor *made;
    gn_status status = GN_OK;
    GN_TRY(gni_stream_of(device, &stream));
    GN_TRY(gn_tensor_create(GN_INT64, 1, &count, device, &made));
    struct gni_philox philox = philox_next(generator);
    if (count > 0)
        status = gni_backend_get(device)->permutation(philox, made, stream);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}
