/*
 * node.h: pending operations. recorder.h says what they are for.
 *
 *     node      an operation whose result nobody has needed yet. Its operands are other nodes of the same shape, memory
 *               with strides for that shape, and numbers
 *     owner     the tensor whose value a node is. It may be released before the node is: the value may still be an operand
 *     work      the nodes that one thread is computing, and their program, on that thread's stack
 *
 * Invariants, under the recorder's lock:
 *   N1  all nodes but those that are done or inherited are in one list, oldest first: a node's operands come before it;
 *   N2  the references of a node: its owner, each operand that is the node, and each work or waiting thread;
 *   N3  a computed node is_done and has no operands. It has a storage if it was an operand of other nodes then, or had no
 *       owner to give it to. It is freed with its last reference. Only threads that waited for it refer to a computed
 *       node without a storage;
 *   N4  a storage lists its pending readers: the operands that are its memory, or a computed node with that storage. A
 *       node without a storage lists the operands that are the node. Both lists are in the order of recording. When a node
 *       is computed, its readers move to its new storage;
 *   N5  when a call that records returns, no operand's storage is escaped;
 *   N6  a node has at most GNI_PROGRAM_NODES_MOST nodes below it, itself counted. `weight` is at least that: a shared node
 *       may count each time;
 *   N7  a node that is_running belongs to one work. Until that work has ended nobody takes the node as an operand or into
 *       another work. Its owner may be released;
 *   N8  a node and the nodes below it that are not computed have one device and one stream;
 *   N9  a deferred node has one operand, which is memory. It is nobody's operand, and alone in its work;
 *   N10 the dimensions of a node are those of its tensor by decreasing stride, so that its value is contiguous. For a
 *       contiguous tensor they are in the tensor's own order;
 *   N11 a node with a place for its value (`into`) has no owner and no reader. Whoever computes it writes there;
 *   N12 a *resting* node was passed by a program that did not store it, and will be computed again: its owner is spare
 *       (tensor.h, T8), or a node reads it. It is in the list of resting nodes and not in that of N1. The nodes below it
 *       are resting, or computed;
 *   N13 a *recipe* is a resting node whose owner has a storage: tensor.h, T9. Nothing reads it;
 *   N14 a node whose value has been made of a pending reduction of rows has `rows`, which all such nodes of a work have in
 *       common. One that is_row has an element for each row; its `count` is that. The others have the elements of all rows.
 *       A reduction's `sizes` are those of what it reduces. A node that is_row never rests;
 *   N15 a node that is_column is a sum over all rows: its `count` is that of the columns. Nothing reads it, it never rests,
 *       and it is among the few that columns.c knows.
 *
 * Threads: all functions here but gni_recorder_lock() are called with the recorder's lock.
 */
#ifndef GNI_OPS_NODE_H
#define GNI_OPS_NODE_H

#include "base/list.h"
#include "ops/recorder.h"

enum gni_operand_kind {
    GNI_OPERAND_NUMBER,
    GNI_OPERAND_NODE,
    GNI_OPERAND_MEMORY,
};

struct gni_node_operand {
    enum gni_operand_kind kind;
    gn_dtype dtype;          /* of memory, as the rest of its struct */
    struct gni_node *reader; /* the node whose operand it is */
    struct gni_list link;    /* in the readers of its storage or node: N4 */
    union {
        gn_scalar number;
        struct gni_node *node;
        struct {
            struct gni_storage *storage;
            int64_t offset;
            int64_t *strides; /* for the node's shape; behind the node */
        };
    };
};

/* The rows that a node's value has, or had before they were reduced: the last dimensions of a shape. */
struct gni_rows {
    uint64_t key; /* equal for equal sizes of the dimensions; 0: there are no rows */
    int ndim;
    int64_t columns; /* elements of a row */
};

struct gni_node {
    struct gni_list link;    /* N1 */
    struct gni_list readers; /* N4 */
    unsigned references;     /* N2 */
    unsigned reader_count;   /* operands that are this node */
    gn_tensor *owner;
    gn_tensor *into; /* N11; borrowed from the call that waits for it; NULL: new memory */
    struct gni_storage *storage; /* N3; retained */
    gn_device *device;
    gn_stream *stream; /* current when it was recorded; NULL where work is immediate */
    struct gni_typing typing;
    struct gni_deferred *deferred; /* N9; its own; NULL: an elementwise operation */
    uint64_t number;               /* in the order of recording */
    uint32_t site;   /* where the program asked for it, if that is recorded: genesis/history.h */
    unsigned weight; /* N6 */
    bool
        is_reduced; /* a reduction has computed it without storing it: the next one stores it first */
    bool is_exposed;   /* others can reach an operand's memory: N5 */
    bool is_done;      /* N3 */
    bool is_running;   /* N7 */
    bool is_unfit;     /* gni_waiting_bound() has tried to compute it, and failed */
    bool is_resting;   /* N12 */
    bool is_row;       /* N14 */
    bool is_reduction; /* of rows, or of columns */
    bool is_column;    /* N15 */
    gn_reduction reduction;
    struct gni_rows rows; /* N14 */
    bool
        is_inherited; /* recorded before a fork, on a device that this process has lost: no value */
    const void *runner; /* the thread that computes it */
    int arity;
    struct gni_node_operand operands[3];
    /* while a program is made of it */
    uint64_t round; /* the number of the program */
    unsigned inner; /* readers that are nodes of the program */
    short value;    /* of the program */
    short place;    /* in the work */
    int ndim;
    int64_t count;
    int64_t sizes[]; /* ndim of them, and then the strides of each operand */
};

enum {
    GNI_WAITING_MOST = 4096,           /* nodes that wait, before the oldest is computed */
    GNI_WAITING_BYTES_LEAST = 1 << 30, /* bytes that they may keep alive on any device */
};

/* ---- recorder.c ------------------------------------------------------------------------------ */

/* The recorder's lock. When it is let go, storages that nobody refers to any more are destroyed. */
void gni_recorder_lock(void);
void gni_recorder_unlock(void);

extern struct gni_list gni_resting; /* N12 */

/* The nodes that wait (N1), and how many there are, which may be read without the lock. */
extern struct gni_list gni_nodes;
extern _Atomic(unsigned) gni_node_count;

/* Bytes of memory that is an operand of a node that waits, counted for each operand, by type of device. */
extern uint64_t gni_node_bytes[GNI_DEVICE_TYPES];

void gni_node_release(struct gni_node *node);

/* A node is computed: its readers read the storage from now on. The caller has a reference to the node, and gives away its
 * reference to the storage. */
void gni_node_finish(struct gni_node *node, struct gni_storage *storage);

/* The number of the node that was recorded last. */
uint64_t gni_node_last_number(void);

/* A node is computed: it releases its operands. */
void gni_node_forget(struct gni_node *node);

/* A node that waits rests from now on. */
void gni_node_rest(struct gni_node *node);

/* A new node that rests, with the operands of another one, which has been computed; NULL: no memory. */
struct gni_node *gni_node_copy(const struct gni_node *node);

/* Releases a reference to a storage. The last one has it destroyed when the lock is let go. */
void gni_storage_bury(struct gni_storage *storage);

/* In a forked child: the node's device is lost, and with it the value. */
void gni_node_disown(struct gni_node *node);

/* ---- flush.c --------------------------------------------------------------------------------- */

/* Computes a node and what it needs. Its value goes into new memory, or where the node says (N11). The lock is free
 * meanwhile. `why` is for the log. */
gn_status gni_node_flush(struct gni_node *node, const char *why) GN_NODISCARD;

/* Computes everything that was recorded until now; or what of it reads a storage. */
gn_status gni_nodes_flush(const char *why) GN_NODISCARD;
gn_status gni_readers_flush(const struct gni_storage *storage, const char *why) GN_NODISCARD;

/* Waits for a node that is running; an error if this thread runs it. */
gn_status gni_running_wait(const struct gni_node *node) GN_NODISCARD;

/* Before an operation on a device is recorded: if too many nodes wait, or they keep alive more than the device may spare,
 * computes the oldest expression that can be. */
void gni_waiting_bound(int arity, const gn_operand *operands, gn_device *device, uint64_t bytes);

/* For the recorder's handlers of fork(), with the lock. */
void gni_works_fork_prepare(void);
void gni_works_fork_done(bool is_child);

/* ---- resting.c ------------------------------------------------------------------------------- */

/* True if a node's value is needed outside of the collected nodes: by its tensor, or by another node. */
bool gni_node_is_needed(const struct gni_node *node);

/* What becomes of a node of a work. */
enum gni_fate {
    GNI_FATE_GONE,   /* its value is not stored */
    GNI_FATE_STORED, /* in new memory */
    GNI_FATE_RECIPE, /* the same, and its tensor keeps a recipe */
};

/* Decides that for each node that was collected. `into`: the place for the value of the last one; NULL: new memory.
 * `is_asked`: somebody wants that value. */
void gni_work_decide(const struct gni_work *work, const gn_tensor *into, bool is_asked,
                     enum gni_fate *fates);

/* After the work: nodes are computed, or go, or rest. */
void gni_work_settle(const struct gni_work *work, const enum gni_fate *fates,
                     struct gni_storage **storages);

/* A node reads what is about to change. If a recipe needs it, or it is one, the recipe goes: true. */
bool gni_recipe_forget(struct gni_node *node);

/* Values with fewer bytes are stored. Returns what that was. For tests; 0: what the option says. */
size_t gni_resting_set_least(size_t nbytes);

/* Stores the values of resting nodes that are chosen; recipes among them go. */
gn_status gni_resting_flush(bool (*is_chosen)(const struct gni_node *node, const void *context),
                            const void *context, const char *why) GN_NODISCARD;

/* What the tensor layer asks for: tensor/tensor.h, struct gni_evaluator. */
void gni_recorder_rest(gn_tensor *tensor);
void gni_recorder_forget_recipe(gn_tensor *tensor);
void gni_recorder_unsaved(gn_tensor *tensor);
void gni_recorder_unlast(void);
void gni_recorder_meet(void);

/* ---- reuse.c --------------------------------------------------------------------------------- */

/* For each node whose value can be computed into the memory of an input that goes: that memory, with a reference of its
 * own; for all others NULL. The program has its outputs. */
void gni_work_reuse(const struct gni_work *work, const enum gni_fate *fates,
                    struct gni_storage **storages);

/* ---- columns.c ------------------------------------------------------------------------------- */

/* Before a sum of the columns of a tensor is recorded: those that wait and read other memory are computed. */
gn_status gni_columns_prepare(const gn_tensor *operand) GN_NODISCARD;

/* A new node that is_column waits; one waits no more. */
void gni_columns_add(struct gni_node *node);
void gni_columns_remove(const struct gni_node *node);

/* Adds the sums of columns that wait, and read what a work reads or computes, to the work. */
void gni_columns_join(struct gni_work *work);

/* ---- program.c ------------------------------------------------------------------------------- */

/* The nodes that a node needs, operands first, itself last, that are not computed; false if one is running. */
bool gni_work_collect(struct gni_work *work, struct gni_node *root);

/* Adds another node to a collected work, with what it needs. The caller knows that there is room, and that none is running. */
void gni_work_collect_more(struct gni_work *work, struct gni_node *node);

/* The nodes below operands that are not computed, each once; more than GNI_PROGRAM_NODES_MOST: too many. */
int gni_operands_weigh(int arity, const gn_operand *operands);

/* Whether the program of the collected nodes is a row program. */
bool gni_work_has_rows(const struct gni_work *work);

/* The program of the collected nodes, without outputs, its dimensions in `order` (NULL: as they are). */
void gni_work_build_program(struct gni_work *work, const int *order);

#endif
