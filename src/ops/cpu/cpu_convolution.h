/*
 * cpu_convolution.h: convolutions on the CPU, without products of gathered columns: conv_layout.h says how.
 *
 * Work is cut into boxes by shape alone, so that results do not depend on the number of threads. What threads work in is
 * asked for before the work begins.
 */
#ifndef GNI_OPS_CPU_CONVOLUTION_H
#define GNI_OPS_CPU_CONVOLUTION_H

#include "ops/cpu/conv_layout.h"
#include "tensor/tensor.h"

/* struct gni_backend: convolve. */
gn_status gni_cpu_convolve(const struct gni_convolution *convolution, gn_tensor *first,
                           gn_tensor *second, gn_tensor *bias, gn_tensor *result) GN_NODISCARD;

/* Of kind GNI_CONV_WEIGHT. */
gn_status gni_cpu_convolve_weight(const struct gni_convolution *convolution, gn_tensor *image,
                                  gn_tensor *given, gn_tensor *weight) GN_NODISCARD;

/* Memory for each thread that is at work. */
struct gni_conv_slots {
    struct gni_storage *storage;
    size_t nbytes;
    int count;
    atomic_bool is_taken[256];
};

gn_status gni_conv_slots_init(struct gni_conv_slots *slots, gn_device *device, size_t nbytes,
                              size_t items) GN_NODISCARD;
void gni_conv_slots_deinit(struct gni_conv_slots *slots);

/* The number of a slot that nobody has. */
int gni_conv_slot_take(struct gni_conv_slots *slots);
void gni_conv_slot_give(struct gni_conv_slots *slots, int number);

static inline char *gni_conv_slot_data(const struct gni_conv_slots *slots, int number)
{
    return slots->storage->data + (size_t)number * slots->nbytes;
}

#endif
