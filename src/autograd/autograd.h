/*
 * autograd.h: the graph of operations behind tensors that need gradients.
 *
 * A *node* is an operation that was carried out. It has an edge to the node of each input that needs a gradient, and
 * what its rule needs of inputs and results, the saved values. A *leaf* has a node of its own, which keeps the gradient.
 * A tensor's record (gn_tensor.gradient) names the node that made it and which of the results it is.
 *
 * Invariants:
 *   AG1 an edge goes to a node with a smaller sequence: the graph has no cycles;
 *   AG2 a node holds no tensor whose record holds the node: results are saved as views without a record, and so are
 *       leaves, since a leaf's gradient may itself have a graph;
 *   AG3 the node of a leaf does not hold the leaf: its record is told when the tensor goes;
 *   AG4 nothing here calls itself along the graph: releasing and walking use lists.
 *
 * Threads: a graph may be used by several threads at once; a node's saved values are taken and released under its lock.
 */
#ifndef GNI_AUTOGRAD_AUTOGRAD_H
#define GNI_AUTOGRAD_AUTOGRAD_H

#include "base/lock.h"
#include "ops/expression.h"
#include "tensor/tape.h"

#include "genesis/autograd.h"

/* What a gradient must look like: the type, shape and device of the tensor that it belongs to. */
struct gni_like {
    gn_device *device;
    gn_dtype dtype;
    int ndim;
    const int64_t *sizes;
};

struct gni_edge {
    struct gni_graph_node *node; /* NULL: the input needs no gradient */
    int number;                  /* which of the node's results the input is */
};

enum {
    GNI_SAVED_RESULT = 64, /* added to the number of a result */
};

/* A value that a rule needs. */
struct gni_saved {
    gn_tensor *tensor; /* NULL once it was released */
    uint64_t version;  /* of its storage when it was saved */
    int place;         /* the number of an input, or GNI_SAVED_RESULT + that of a result */
};

struct gni_graph_node {
    _Atomic(size_t) references;
    uint64_t sequence; /* newer nodes have larger ones */
    enum gni_rule rule;
    const char *name;
    int edge_count, result_count, saved_count;
    struct gni_edge *edges;
    struct gni_like *results;
    struct gni_saved *saved;
    const void *details;
    struct gni_lock lock;        /* of the rest */
    bool is_released, is_failed; /* saved values are gone; because a backward pass failed */
    struct gni_record *leaf;     /* of GNI_RULE_ACCUMULATE: whose gradient it keeps; NULL: gone */
    struct gni_graph_node *next; /* in a list of nodes that go */
};

/* gn_tensor.gradient. Owned by the tensor. */
struct gni_record {
    struct gni_graph_node *node; /* a reference */
    int number;
    uint64_t generation; /* of the tensor's alias set when it was made: AL1 */
    gn_tensor *gradient; /* of a leaf; NULL: none yet */
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* What a rule is given. */
struct gni_rule_frame {
    struct gni_scope *scope; /* where gradients are made: ops/expression.h */
    const struct gni_graph_node *node;
    gn_operand *inputs;  /* as far as they are saved; the numbers of an elementwise operation */
    gn_tensor **results; /* as far as they are saved */
    gn_tensor **given;   /* the gradient of each result; NULL: it is 0 */
    const struct gni_like *const *likes; /* of each input; NULL: it needs no gradient */
    unsigned needed;                     /* bits: the inputs whose gradients are asked for */
};

/* Sets gradients[i] for the inputs that are needed; NULL: it is 0. They belong to the scope, or are given ones. What was
 * broadcast is summed, and the type is converted, by who calls. */
typedef void (*gni_rule_call)(const struct gni_rule_frame *frame, gn_tensor **gradients);

struct gni_rule_row {
    gni_rule_call call;    /* NULL: there is none */
    unsigned saves;        /* bits of inputs */
    unsigned saves_result; /* bits of results */
};

/* The row of a rule; for elementwise operations it depends on the operation. */
struct gni_rule_row gni_rule_row(enum gni_rule rule, const void *details);

/* Those of the inputs that a rule saves which it reads for the gradients that are `needed`, as bits. */
unsigned gni_rule_saves(enum gni_rule rule, const void *details, unsigned saves, unsigned needed);

/* rules_elementwise.c: which inputs the rule of an operation reads; NO_RULE where PyTorch has none either. */
enum {
    GNI_NO_RULE = 8,
};
unsigned gni_elementwise_saves(gn_op op);
void gni_elementwise_gradients(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* rules_shapes.c */
void gni_same_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_reshape_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_permute_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_strided_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_spread_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_strided_put_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_flip_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_repeat_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_cat_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* rules_places.c */
void gni_places_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_put_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_places_back_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* ---- the graph: graph_nodes.c ------------------------------------------------------------------------- */

static inline struct gni_record *gni_record_of(const gn_tensor *tensor)
{
    return tensor->gradient;
}

/* Lets go of what a node has saved. */
void gni_graph_node_forget_saved(struct gni_graph_node *node, bool is_failed);

/* A tensor with the same elements and no record. */
gn_status gni_detach(gn_tensor *tensor, gn_tensor **detached) GN_NODISCARD;

/* Gives a tensor without a record the record of a node's result. */
gn_status gni_attach(gn_tensor *tensor, struct gni_graph_node *node, int number) GN_NODISCARD;

/* A tensor takes over the record of another, which has none then; its own one goes. */
void gni_record_move(gn_tensor *from, gn_tensor *to);

void gni_graph_node_retain(struct gni_graph_node *node);
void gni_graph_node_release(struct gni_graph_node *node);

/* ---- views that are written to: alias_sets.c ------------------------------------------------------ */

void gni_aliases_release(struct gni_alias_set *aliases);

/* Before a view of a tensor goes on the tape, and before a leaf needs a gradient whose memory others have. */
gn_status gni_aliases_begin(gn_tensor *tensor) GN_NODISCARD;

/* A leaf needs no gradient any more: its views are views of nothing on the tape. */
void gni_aliases_forget(gn_tensor *tensor);

/* Gives a new tensor that is apart a set of its own: its views will be aliases of it. */
gn_status gni_aliases_own(gn_tensor *tensor) GN_NODISCARD;

/* The record of a tensor is current afterwards: AL1. */
gn_status gni_aliases_renew(gn_tensor *tensor) GN_NODISCARD;

GN_NODISCARD static inline gn_status gni_aliases_refresh(gn_tensor *tensor)
{
    return gni_tensor_was_rewritten(tensor) ? gni_aliases_renew(tensor) : GN_OK;
}

/* struct gni_tape: write_check and rewrite. */
gn_status gni_aliases_write_begin(const char *name, gn_tensor *out) GN_NODISCARD;
gn_status gni_aliases_write_end(gn_tensor *out, gn_tensor *result) GN_NODISCARD;

#endif
