/*
 * cuda_random.c: memory of a GPU filled with random numbers: one kernel for each kind of number and type.
 */
#include "ops/cuda/fixed.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

static const struct gni_fixed uniform = {"random_uniform",
                                         {gni_text_philox, gni_text_random},
                                         GNI_PHILOX_TYPES "#define RANDOM_UNIFORM\n"};
static const struct gni_fixed normal = {"random_normal",
                                        {gni_text_philox, gni_text_random},
                                        GNI_PHILOX_TYPES "#define RANDOM_NORMAL\n"};
static const struct gni_fixed narrow = {"random_integers",
                                        {gni_text_philox, gni_text_random},
                                        GNI_PHILOX_TYPES "#define RANDOM_NARROW\n"};
static const struct gni_fixed wide = {"random_integers_wide",
                                      {gni_text_philox, gni_text_random},
                                      GNI_PHILOX_TYPES "#define RANDOM_WIDE\n"};

gn_status gni_cuda_random(const struct gni_random *random, gn_tensor *out, gn_stream *stream)
{
    struct {
        uint64_t seed, offset, count, low, range;
        void *out;
    } arguments = {
        .seed = random->philox.seed,
        .offset = random->philox.offset,
        .count = (uint64_t)out->count,
        .low = (uint64_t)random->low,
        .range = (uint64_t)random->high - (uint64_t)random->low,
        .out = gni_tensor_data(out),
    };
    bool is_integer = random->kind == GNI_RANDOM_INTEGERS;
    bool is_wide = is_integer && arguments.range > (uint64_t)1 << 32;
    bool is_large = gni_dtype_size(out->dtype) == 8;
    int per_thread = is_wide ? 1 : is_large ? 2 : 4; /* BLOCKS * PER_BLOCK in random.cu */
    const struct gni_fixed *kernel = is_wide                              ? &wide
                                     : is_integer                         ? &narrow
                                     : random->kind == GNI_RANDOM_UNIFORM ? &uniform
                                                                          : &normal;
    if (out->count == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(gni_tensor_storage(out), stream, true));
    /* Signed numbers are stored as their bits: one kernel for both types of a byte. */
    return gni_fixed_launch(kernel, out->dtype == GN_INT8 ? GN_UINT8 : out->dtype,
                            gni_divided_up(out->count, (int64_t)per_thread * GNI_FIXED_THREADS), 1,
                            &arguments, stream);
}

void gni_cuda_random_list(struct gni_kernel_list *list)
{
    gni_kernel_list_add_fixed(list, &uniform, GNI_TYPES_REAL);
    gni_kernel_list_add_fixed(list, &normal, GNI_TYPES_REAL);
    gni_kernel_list_add_fixed(list, &narrow, GNI_TYPES_INTEGER & ~GNI_TYPE(GN_INT8));
    gni_kernel_list_add_fixed(list, &wide, GNI_TYPE(GN_INT64) | GNI_TYPE(GN_UINT64));
}
