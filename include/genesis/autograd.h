/*
 * genesis/autograd.h: gradients of tensors.
 *
 * A tensor can be asked to need a gradient; it is then a leaf. Operations with such tensors are kept as a graph, and
 * gn_backward() walks it from a result back to the leaves. Rules for gradients are made of the same operations as
 * everything else: they run on every device, are fused, and can be differentiated again.
 *
 *     gn_tensor_set_requires_gradient(w, true);
 *     gn_matmul(x, w, &y);
 *     gn_reduce(GN_REDUCE_SUM, y, 0, false, &loss);
 *     gn_backward(1, &loss, NULL, 0);
 *     gn_tensor_get_gradient(w, &gradient);
 *
 * Ownership and threads: as in genesis/tensor.h. Whether operations are kept is each thread's own setting.
 */
#ifndef GENESIS_AUTOGRAD_H
#define GENESIS_AUTOGRAD_H

#include "genesis/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the tensor is a leaf that was asked for a gradient, or the result of operations with one. */
GN_API bool gn_tensor_requires_gradient(const gn_tensor *tensor);

/* Whether no operation that is kept has made it. */
GN_API bool gn_tensor_is_leaf(const gn_tensor *tensor);

/* Of a leaf. GN_ERROR_TYPE for integers, GN_ERROR_INVALID_ARGUMENT for a tensor that operations have made. */
GN_API gn_status gn_tensor_set_requires_gradient(gn_tensor *tensor, bool is_required) GN_NODISCARD;

/* What gn_backward() has summed up for a leaf: a new reference, or NULL where there is none yet. */
GN_API gn_status gn_tensor_get_gradient(gn_tensor *tensor, gn_tensor **gradient) GN_NODISCARD;

/* Replaces it; NULL: there is none. It has the leaf's type, shape and device. */
GN_API gn_status gn_tensor_set_gradient(gn_tensor *tensor, gn_tensor *gradient) GN_NODISCARD;

/* A tensor of the same memory that needs no gradient. */
GN_API gn_status gn_tensor_detach(gn_tensor *tensor, gn_tensor **detached) GN_NODISCARD;

/* The name of the operation that made a tensor, such as "exp"; NULL for a leaf. Static memory. */
GN_API const char *gn_tensor_get_operation(const gn_tensor *tensor);

/* Whether operations of the calling thread are kept. At first they are. gn_set_gradients() gives what it was. */
GN_API bool gn_gradients_are_on(void);
GN_API bool gn_set_gradients(bool is_on);

enum {
    GN_RETAIN_GRAPH = 1, /* saved values stay: the graph can be walked again */
    GN_CREATE_GRAPH = 2, /* gradients can be differentiated themselves; the graph is retained */
    GN_ALLOW_UNUSED = 4, /* an input that the roots do not depend on gets NULL */
};

/*
 * Adds the gradients of the roots to those of all leaves that they depend on. `gradients` are those of the roots
 * themselves; NULL, or NULL for one of them, is 1 for a root of one element. If it fails, every leaf's gradient is as it
 * was; without GN_RETAIN_GRAPH the graph is gone then as well.
 */
GN_API gn_status gn_backward(int count, gn_tensor *const *roots, gn_tensor *const *gradients,
                             unsigned flags) GN_NODISCARD;

/* The gradients with respect to some tensors, as new references; no leaf's gradient changes. */
GN_API gn_status gn_grad(int count, gn_tensor *const *roots, gn_tensor *const *gradients,
                         int input_count, gn_tensor *const *inputs, unsigned flags,
                         gn_tensor **results) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
