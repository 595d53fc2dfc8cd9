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

/* Of a leaf, which keeps the gradient that it has. GN_ERROR_TYPE for integers, GN_ERROR_INVALID_VALUE for a tensor that
 * operations have made. */
GN_API gn_status gn_tensor_set_requires_gradient(gn_tensor *tensor, bool is_required) GN_NODISCARD;

/* What gn_backward() has summed up for a leaf: a new reference, or NULL where there is none yet. */
GN_API gn_status gn_tensor_get_gradient(gn_tensor *tensor, gn_tensor **gradient) GN_NODISCARD;

/* Replaces it; NULL: there is none. It has the leaf's type, shape and device. A leaf that requires no gradient can be
 * given one, too. */
GN_API gn_status gn_tensor_set_gradient(gn_tensor *tensor, gn_tensor *gradient) GN_NODISCARD;

/* A tensor of the same memory that needs no gradient. */
GN_API gn_status gn_tensor_detach(gn_tensor *tensor, gn_tensor **detached) GN_NODISCARD;

/* The tensor itself needs no gradient any more, forgets how it was made, and keeps the gradient that it has.
 * GN_ERROR_UNSUPPORTED for a view. */
GN_API gn_status gn_tensor_forget_gradient(gn_tensor *tensor) GN_NODISCARD;

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

/* The same for some tensors alone; others keep their gradients. An input that is no leaf gets one as with
 * gn_tensor_retain_gradient(). */
GN_API gn_status gn_backward_to(int count, gn_tensor *const *roots, gn_tensor *const *gradients,
                                int input_count, gn_tensor *const *inputs,
                                unsigned flags) GN_NODISCARD;

/* The gradients with respect to some tensors, as new references; no leaf's gradient changes. */
GN_API gn_status gn_grad(int count, gn_tensor *const *roots, gn_tensor *const *gradients,
                         int input_count, gn_tensor *const *inputs, unsigned flags,
                         gn_tensor **results) GN_NODISCARD;

/* ---- gradients that are kept ---------------------------------------------------------------- */

/* A tensor that is no leaf keeps its gradient as a leaf does. Nothing happens for a leaf. */
GN_API gn_status gn_tensor_retain_gradient(gn_tensor *tensor) GN_NODISCARD;
GN_API bool gn_tensor_retains_gradient(const gn_tensor *tensor);

/*
 * A leaf's gradient has a place: a view of a larger buffer, for example, with the leaf's type, shape and device. Backward
 * passes write the gradient there, and add to it there. Setting the gradient to NULL keeps the place. NULL: no place.
 */
GN_API gn_status gn_tensor_set_gradient_place(gn_tensor *tensor, gn_tensor *place) GN_NODISCARD;

/* ---- hooks ---------------------------------------------------------------------------------- */

/*
 * A function of the program's that backward passes call. `tensor` is the gradient, or for GN_HOOK_ACCUMULATED the leaf. A
 * gradient in `*replacement`, a new reference of the same type, shape and device, takes its place. A failure ends the pass.
 * Hooks run in the thread that walks the graph.
 */
typedef gn_status (*gn_hook_call)(void *context, gn_tensor *tensor, gn_tensor **replacement);

typedef enum gn_hook_kind {
    GN_HOOK_GRADIENT,    /* when the tensor's gradient is complete, before it is used */
    GN_HOOK_ACCUMULATED, /* after a leaf has got its gradient: no replacement */
} gn_hook_kind;

typedef struct gn_hook gn_hook;

/* Adds one, behind those that the tensor has. The hook lives as long as the graph behind the tensor does, and holds the
 * context until then; `deleter` may be NULL. `*hook` is a reference of the caller's. */
GN_API gn_status gn_tensor_add_hook(gn_tensor *tensor, gn_hook_kind kind, gn_hook_call call,
                                    void *context, void (*deleter)(void *context),
                                    gn_hook **hook) GN_NODISCARD;

/* It is not called any more, and lets its context go. */
GN_API void gn_hook_remove(gn_hook *hook);
GN_API void gn_hook_release(gn_hook *hook); /* NULL is allowed */

/* ---- operations with gradients of one's own --------------------------------------------------- */

/*
 * The gradient of an operation that the program itself has carried out.
 *
 * `call` is given the saved tensors and the gradients of the results (NULL: 0), and sets `gradients[i]`, a new reference, for
 * inputs with `needed[i]`; NULL is 0. It makes them of operations with gradients if they are to be differentiated again.
 */
typedef struct gn_custom_gradient {
    const char *name; /* of the operation; it is copied */
    gn_status (*call)(void *context, gn_tensor *const *saved, gn_tensor *const *given,
                      const bool *needed, gn_tensor **gradients);
    void (*forget)(void *context);  /* saved values were released; NULL: nothing to do */
    void (*deleter)(void *context); /* NULL: nothing to do */
    void *context;
} gn_custom_gradient;

/*
 * Records an operation: its results need gradients from now on, if an input does and gradients are on. They were made with
 * gradients off. A result that is an input was changed in place; one that shares an input's memory in another way is
 * replaced by a tensor of its own. Saved tensors may be inputs, results, or others. The context becomes the graph's if
 * `*is_recorded` is set, also on failure; else it stays the caller's.
 */
GN_API gn_status gn_record_custom(const gn_custom_gradient *gradient, int input_count,
                                  gn_tensor *const *inputs, int result_count, gn_tensor **results,
                                  int saved_count, gn_tensor *const *saved,
                                  bool *is_recorded) GN_NODISCARD;

/* ---- what a graph saves ------------------------------------------------------------------------ */

/*
 * What stands for saved values of the calling thread from now on: `pack` is given the value and gives anything; `unpack`
 * makes the value of that again, as a new reference; `deleter` ends it. Hooks nest: the last ones are used. `hooks` is
 * borrowed until it is popped; what was packed goes on using its functions and its context.
 */
typedef struct gn_saved_hooks {
    gn_status (*pack)(void *context, gn_tensor *tensor, void **packed);
    gn_status (*unpack)(void *context, void *packed, gn_tensor **tensor);
    void (*deleter)(void *context, void *packed);
    void *context;
} gn_saved_hooks;

GN_API gn_status gn_saved_hooks_push(const gn_saved_hooks *hooks) GN_NODISCARD;
GN_API void gn_saved_hooks_pop(void);

/* ---- looking at a graph ------------------------------------------------------------------------ */

/* An operation in a graph, or a leaf. */
typedef struct gni_graph_node gn_gradient_node;

/* What made a tensor: a new reference; NULL: it needs no gradient. Of a leaf it is the node that keeps its gradient. */
GN_API gn_status gn_tensor_get_node(gn_tensor *tensor, gn_gradient_node **node) GN_NODISCARD;
GN_API void gn_gradient_node_retain(gn_gradient_node *node);
GN_API void gn_gradient_node_release(gn_gradient_node *node);

/* "exp"; "leaf" for a leaf. It lives as long as the node. */
GN_API const char *gn_gradient_node_get_name(const gn_gradient_node *node);

/* Larger for operations that were recorded later. */
GN_API uint64_t gn_gradient_node_get_sequence(const gn_gradient_node *node);

/* Where the operation was called, if stacks were recorded then: genesis/history.h; else 0. */
GN_API uint32_t gn_gradient_node_get_site(const gn_gradient_node *node);

/* The inputs. `*next` is borrowed; NULL: that input needs no gradient. `*number`: which of its results it is. */
GN_API int gn_gradient_node_get_count(const gn_gradient_node *node);
GN_API void gn_gradient_node_get_next(const gn_gradient_node *node, int input,
                                      gn_gradient_node **next, int *number);

/* The leaf that a node keeps the gradient of: a new reference; NULL: none, or it is gone. */
GN_API gn_tensor *gn_gradient_node_get_leaf(gn_gradient_node *node);

/* A value that is saved in a graph. */
typedef struct gn_saved_value {
    gn_tensor *tensor; /* borrowed; NULL: hooks have packed it */
    uint64_t nbytes;   /* of its memory; 0: it has none, and will be computed again, or packed */
    uint64_t address;  /* of that memory, or 0 */
    bool is_leaf;      /* a leaf's own memory */
} gn_saved_value;

/* Calls a function for each value that a node has saved. */
GN_API void gn_gradient_node_visit_saved(gn_gradient_node *node,
                                         void (*visit)(void *context, const gn_saved_value *value),
                                         void *context);

/* Calls a function for the nodes that are alive and were recorded while stacks were. The node is borrowed. */
GN_API void gn_gradient_nodes_visit(void (*visit)(void *context, gn_gradient_node *node),
                                    void *context);

/* ---- finding mistakes ---------------------------------------------------------------------------- */

/* Backward passes fail at the first gradient with a NaN, and name the operation. Off at first; for all threads. */
GN_API bool gn_set_gradient_checks(bool is_on);
GN_API bool gn_get_gradient_checks(void);

#ifdef __cplusplus
}
#endif

#endif
