/*
 * backend.h: how a kind of device computes: one table, as src/device/device.h is for what a device is.
 *
 * Everything in src/ops goes through the table, and asks for no kind of device; src/ops/cpu and src/ops/cuda fill
 * it in. Work on a GPU is submitted to the stream, in whose order the memory of inputs and outputs is valid; the
 * CPU's stream is NULL, and its work is done when the call returns.
 */
#ifndef GNI_OPS_BACKEND_H
#define GNI_OPS_BACKEND_H

#include "ops/product.h"
#include "ops/program.h"

/* How a value is folded. Where is_by_columns, the program's first dimensions go, and `kept` results lie side by
 * side; else the last ones go, and there are `kept` rows. */
struct gni_folding {
    gn_reduction reduction;
    bool is_by_columns;
    int64_t kept;   /* results */
    int64_t folded; /* elements for each; may be 0 */
};

struct gni_backend {
    /* Computes all outputs of a program; its count may be 0. */
    gn_status (*run)(struct gni_program *program, gn_stream *stream);

    /* Folds a value of a program into `result`, contiguous, of folding->kept elements. Deterministic. */
    gn_status (*fold)(struct gni_program *program, short value, const struct gni_folding *folding,
                      gn_tensor *result, gn_stream *stream);

    /* Computes a product, which has elements: their memory is in the order of the stream. */
    gn_status (*product)(const struct gni_product *product, gn_device *device, gn_stream *stream);

    /* Which matrices of a product it pays to copy first, so that each is contiguous: GNI_COPY_*. */
    unsigned (*product_copies)(const struct gni_product *product, gn_device *device);
};

extern const struct gni_backend gni_cpu_backend, gni_cuda_backend;

/* The table of a device. */
static inline const struct gni_backend *gni_backend_get(const gn_device *device)
{
    return device->type == GN_DEVICE_CPU ? &gni_cpu_backend : &gni_cuda_backend;
}

/* Whether a device's memory is the host's, and its work is done at once. */
static inline bool gni_device_is_host(const gn_device *device)
{
    return device->type == GN_DEVICE_CPU;
}

#endif
