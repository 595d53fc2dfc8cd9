/*
 * backend.h: how a kind of device computes: one table, as src/device/device.h is for what a device is.
 *
 * Everything in src/ops goes through the table, and asks for no kind of device; src/ops/cpu and src/ops/cuda fill
 * it in. Work on a GPU is submitted to the stream, in whose order the memory of inputs and outputs is valid; the
 * CPU's stream is NULL, and its work is done when the call returns.
 */
#ifndef GNI_OPS_BACKEND_H
#define GNI_OPS_BACKEND_H

#include "ops/program.h"
#include "tensor/index_plan.h"

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

    /* (optional) Softmax, or its logarithm, of a floating value along the last dimensions of a program: `rows` of
     * them. `result` is contiguous, in the program's order. NULL: it is made of other operations. */
    gn_status (*softmax)(struct gni_program *program, short value, int64_t rows, bool is_log,
                         gn_tensor *result, gn_stream *stream);

    /* ---- keys, where memory is not the host's; work is submitted to the current stream. All NULL: src/ops/index.c
     * does it by itself ---- */

    /* A plan without masks, whose index tensors are computed, read from a tensor into a new one: contiguous, in the
     * plan's shape. */
    gn_status (*index_get)(const struct gni_index_plan *plan, gn_tensor *source, gn_tensor *result);

    /* The same, written, or added: elements of `value`, of the target's type, with `strides` for the plan's
     * dimensions; NULL: the bytes of `number`. Where a place is written twice any one value stays. */
    gn_status (*index_set)(const struct gni_index_plan *plan, gn_tensor *target,
                           const gn_tensor *value, const int64_t *strides, uint64_t number,
                           bool is_accumulated);

    /* Where a contiguous mask, which is computed, is true, in row-major order, as int64: offsets by `strides`, or,
     * if that is NULL, rows of coordinates. Waits for the device: the number of them is the result's shape. */
    gn_status (*mask_places)(gn_tensor *mask, const int64_t *strides, gn_tensor **places);

    /* Fails with GN_ERROR_INDEX, once, if a number of an index tensor was out of range in work that is done. */
    gn_status (*index_check)(gn_device *device);
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
