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
 *   AG3 a node does not hold the tensors that keep its gradients: a record leaves the node's list when its tensor goes;
 *   AG4 nothing here calls itself along the graph: releasing and walking use lists;
 *   AG5 the records whose tensors keep a gradient are in the list `kept` of their node. A leaf's record always is.
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
    GNI_SAVED_RESULT = 1 << 16, /* added to the number of a result */
    GNI_SAVED_OTHER = 1 << 17,  /* neither an input nor a result: of gn_record_custom() */
};

/* A value that hooks have packed: saved.c. */
struct gni_packed;

/* A value that a rule needs. It has a tensor or was packed; neither once it was released. */
struct gni_saved {
    gn_tensor *tensor;
    struct gni_packed *packed;
    uint64_t version; /* of its storage when it was saved */
    uint16_t life;    /* gn_tensor.life, then */
    int place; /* the number of an input, GNI_SAVED_RESULT + that of a result, or GNI_SAVED_OTHER */
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
    gn_stream *stream;      /* a reference: where it ran, and its rule will; NULL: on the CPU */
    uint32_t site;          /* where it was called, if stacks are recorded; else 0 */
    struct gni_list listed; /* among the nodes with a site: graph_nodes.c */
    atomic_bool is_watched; /* it has, or had, hooks or records that keep gradients */
    struct gni_lock lock;   /* of the rest */
    bool is_released, is_failed; /* saved values are gone; because a backward pass failed */
    bool is_spoilt;              /* a saved value was changed, and is gone */
    bool is_recorded;            /* its results have records */
    struct gn_hook *hooks;       /* in the order in which they were added */
    struct gni_record *kept;     /* AG5 */
    struct gni_graph_node *next; /* in a list of nodes that go */
};

/* gn_tensor.gradient. Owned by the tensor. */
struct gni_record {
    struct gni_graph_node *node; /* a reference */
    int number;
    uint64_t generation; /* of the tensor's alias set when it was made: AL1 */
    gn_tensor *tensor;   /* whose record it is; borrowed */
    gn_tensor *gradient; /* that is kept; NULL: none yet */
    gn_tensor *place;    /* where a leaf's gradient is written to; NULL: new memory */
    bool is_kept;        /* AG5 */
    struct gni_record *next_kept;
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* What a rule is given. */
struct gni_rule_frame {
    struct gni_scope *scope; /* where gradients are made: ops/expression.h */
    const struct gni_graph_node *node;
    gn_operand *inputs;  /* as far as they are saved; the numbers of an elementwise operation */
    gn_tensor **results; /* as far as they are saved */
    gn_tensor **saved;   /* all saved values, in the order in which they were saved */
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
void gni_parts_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_cat_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* rules_places.c */
void gni_places_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_put_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_places_back_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_fold_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_row_sums_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* rules_windows.c */
void gni_convolution_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* rules_linalg.c: its rows, of the rules from GNI_RULE_CHOLESKY to GNI_RULE_LEAST_SQUARES. */
struct gni_rule_row gni_linalg_rule_row(enum gni_rule rule);

/* Adds x to the places of a tensor: what is left of the gradient of taking elements. */
gn_status gni_places_add(gn_tensor *to, gn_tensor *x, const struct gni_places_details *places,
                         int count, gn_tensor *const *tensors) GN_NODISCARD;

/* rules_losses.c */
void gni_class_loss_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_binary_loss_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);
void gni_alignments_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* ---- the graph: graph_nodes.c ------------------------------------------------------------------------- */

static inline struct gni_record *gni_record_of(const gn_tensor *tensor)
{
    return tensor->gradient;
}

/* Lets go of what a node has saved. */
void gni_graph_node_forget_saved(struct gni_graph_node *node);

/* The same after a walk that failed, which later ones say. `is_run`: that walk itself has released what was saved. */
void gni_graph_node_fail(struct gni_graph_node *node, bool is_run);

/* Puts a step on the tape, with values of the caller's that are saved. */
gn_status gni_step_record(const struct gni_tape_step *step, int saved_count,
                          gn_tensor *const *saved) GN_NODISCARD;

/* A tensor with the same elements and no record. */
gn_status gni_detach(gn_tensor *tensor, gn_tensor **detached) GN_NODISCARD;

/* Gives a tensor without a record the record of a node's result. */
gn_status gni_attach(gn_tensor *tensor, struct gni_graph_node *node, int number) GN_NODISCARD;

/* Two tensors exchange their records. If the second one retains its gradient it goes on to. */
void gni_records_exchange(gn_tensor *from, gn_tensor *to);

static inline void gni_graph_node_retain(struct gni_graph_node *node)
{
    atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
}

void gni_graph_node_release(struct gni_graph_node *node);

/* A new reference to the tensor of a record whose node's lock is held; NULL: it is about to go. */
gn_tensor *gni_record_tensor(const struct gni_record *record);

/* A tensor was written to, and a node will be what made it: up to `count` values that nodes behind have saved of the tensor
 * are released. They are of no use any more, and would keep the tensor that holds them. engine.c */
gn_status gni_graph_spoil(struct gni_graph_node *node, const gn_tensor *tensor,
                          int64_t count) GN_NODISCARD;

/* ---- saved values: saved.c --------------------------------------------------------------------- */

/* What a rule needs of a tensor that is an input or a result of the node. */
gn_status gni_value_save(struct gni_graph_node *node, gn_tensor *tensor, int place) GN_NODISCARD;

/* A saved value goes. */
void gni_saved_release(const struct gni_saved *saved);

/* A walk needs what a node has saved. `held` has room for saved_count; on GN_OK gni_values_let_go() ends it. */
gn_status gni_values_hold(struct gni_graph_node *node, struct gni_saved *held) GN_NODISCARD;
void gni_values_let_go(const struct gni_graph_node *node, const struct gni_saved *held);

/* Values that are held, for a rule. Where gradients are to be differentiated they have the records that they had. */
gn_status gni_values_take(struct gni_graph_node *node, bool is_graph, const struct gni_saved *held,
                          struct gni_rule_frame *frame) GN_NODISCARD;

/* " (called at ...)" for a node with a site; else "". */
struct gni_site_text {
    char text[160];
};
struct gni_site_text gni_site_text(const char *words, uint32_t site);

/* ---- hooks.c ------------------------------------------------------------------------------------- */

/* Calls the hooks of one kind for a result of a node, with `*tensor`, which they may replace: a reference. */
gn_status gni_hooks_run(struct gni_graph_node *node, gn_hook_kind kind, int number,
                        gn_tensor **tensor) GN_NODISCARD;
bool gni_has_hooks(struct gni_graph_node *node, gn_hook_kind kind);

/* The node goes, and its hooks with it. */
void gni_hooks_release(struct gni_graph_node *node);

/* ---- custom.c ------------------------------------------------------------------------------------ */

void gni_custom_gradients(const struct gni_rule_frame *frame, gn_tensor **gradients);

/* The saved values of a node are released; the node goes. */
void gni_custom_forget(const struct gni_graph_node *node);
void gni_custom_deinit(const struct gni_graph_node *node);

/* ---- gradients that tensors keep: accumulate.c --------------------------------------------------- */

/* A gradient that a walk has computed for a tensor that keeps it. */
struct gni_kept {
    struct gni_graph_node *node;
    int number;
    gn_tensor *sum;    /* a reference, as the others */
    gn_tensor *before; /* what the tensor had */
    gn_tensor *given;  /* what it has now; NULL: that was added to, or nothing was given yet */
    bool is_given;     /* a hook of the tensor was called, or the walk has ended */
};

/* Whether a tensor keeps the gradient of a result. */
bool gni_is_kept(struct gni_graph_node *node, int number);

struct gni_kept_list {
    struct gni_kept *items;
    size_t count, room;
};

/* Adds one, and gives it to its tensor at once if that has hooks for it. Takes the reference, also on failure. */
gn_status gni_kept_add(struct gni_kept_list *list, struct gni_graph_node *node, int number,
                       gn_tensor *sum, bool is_graph) GN_NODISCARD;

/* Gives all gradients to their tensors. */
gn_status gni_kept_give(struct gni_kept_list *list, bool is_graph) GN_NODISCARD;

/* After a failure: tensors have what they had before, but for gradients that were added to already. */
void gni_kept_undo(struct gni_kept_list *list);
void gni_kept_deinit(struct gni_kept_list *list);

/* In a forked child: other threads, which may have been giving gradients, are gone. */
void gni_kept_forget_threads(void);

/* Memory for twice as many items; the old ones stay valid on failure. */
gn_status gni_array_grow(void **items, size_t *room, size_t size) GN_NODISCARD;

/* Adds a gradient to a sum, which may be NULL. */
gn_status gni_gradient_add(gn_tensor **sum, gn_tensor *gradient) GN_NODISCARD;

/* Makes a gradient one that nobody else has, so that it can be written to: itself, or a copy. */
gn_status gni_gradient_own(gn_tensor **gradient) GN_NODISCARD;

/* ---- views that are written to: alias_sets.c ------------------------------------------------------ */

void gni_aliases_release(struct gni_alias_set *aliases);

/* Before a view of a tensor goes on the tape, and before a leaf needs a gradient whose memory others have. */
gn_status gni_aliases_begin(gn_tensor *tensor) GN_NODISCARD;

/* A leaf needs no gradient any more: its views are views of nothing on the tape. */
void gni_aliases_forget(gn_tensor *tensor);

/* Whether a tensor has no aliases; then its record is all that there is, and its set can end. */
bool gni_is_alone(const gn_tensor *tensor);
void gni_aliases_end(gn_tensor *tensor);

/* Gives a new tensor that is apart a set of its own: its views will be aliases of it. */
gn_status gni_aliases_own(gn_tensor *tensor) GN_NODISCARD;

/* The record of a tensor is current afterwards: AL1. */
gn_status gni_aliases_renew(gn_tensor *tensor) GN_NODISCARD;

GN_NODISCARD static inline gn_status gni_aliases_refresh(gn_tensor *tensor)
{
    return gni_tensor_was_rewritten(tensor) ? gni_aliases_renew(tensor) : GN_OK;
}

/* For the handlers of fork(). */
void gni_aliases_fork_take(void);
void gni_aliases_fork_give(void);

/* struct gni_tape: write_check and rewrite. */
gn_status gni_aliases_write_begin(const char *name, gn_tensor *out) GN_NODISCARD;
gn_status gni_aliases_write_end(gn_tensor *out, gn_tensor *result) GN_NODISCARD;

#endif
