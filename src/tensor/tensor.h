/*
 * tensor.h: the struct behind gn_tensor, and the storage behind that.
 *
 *     gn_tensor (handle)  ->  gni_storage (bytes)     when the bytes are there
 *                         ->  gni_node (expression)   while they are pending
 *
 * Invariants:
 *   T1  exactly one of `storage` and `node` is set, but for a tensor under construction;
 *   T2  a pending tensor is contiguous, has offset 0, and shares its bytes with nobody: a view of it is made
 *       after its bytes are there;
 *   T3  every element that shape, strides and offset reach lies in the storage;
 *   T4  `version` of a storage grows with each write through a tensor after its first content;
 *   T5  storage that is_escaped has bytes that others can reach. Once set it stays;
 *   T6  the room is given once: whoever took it may have an object there until the tensor goes;
 *   T7  the references of a storage count twice: tensors that are aliases of one another in units of 1, and other holders
 *       (pending nodes, tensors that are_apart) in units of GNI_STORAGE_HOLDER. The storage goes when both are 0, its
 *       alias set when the first is;
 *   T8  `saves` counts the references that saved values of gradients have, and in units of GNI_TENSOR_READER those of walks
 *       that read them now. A tensor without other references is *spare*: its value may be computed again instead of
 *       being stored (src/ops/resting.c);
 *   T9  a tensor with a recipe has a storage of its own. The recipe is a node that computes the same value, as long as
 *       the storage was not written to since;
 *   T10 `saved_tensors` of a storage counts its tensors with is_counted. A tensor with saves is_counted if it has a
 *       storage of gni_counted_least bytes. Nobody asks about smaller ones.
 *
 * `node`, `storage` and what hangs on them change under the recorder's lock only (src/ops/recorder.h); the rest
 * of a tensor never changes after its creation. gn_tensor_become() and gn_tensor_set_data() are the exceptions to both, for
 * a tensor that is not pending: nodes that read it have its storage, offset and strides themselves.
 */
#ifndef GNI_TENSOR_TENSOR_H
#define GNI_TENSOR_TENSOR_H

#include "base/list.h"
#include "device/device.h"
#include "genesis/memory.h"
#include "tensor/shape.h"

struct gni_node;
struct gni_alias_set;

enum {
    GNI_STORAGE_READERS_MOST = 4,
};

#define GNI_STORAGE_HOLDER ((size_t)1 << 32)  /* T7 */
#define GNI_TENSOR_READER ((uint64_t)1 << 32) /* T8 */

/* A stream that has used a storage. */
struct gni_user {
    gn_stream *stream; /* retained */
    uint64_t id;
};

struct gni_storage {
    _Atomic(size_t) references; /* T7 */
    gn_device *device;
    gn_memory_block *block;     /* our own memory; NULL: somebody else's */
    gn_memory_manager *manager; /* of our own memory: the device's, or one of page-locked memory */
    char *data;
    size_t nbytes;                  /* of our own memory */
    void (*deleter)(void *context); /* of somebody else's; may be NULL */
    void *context;
    _Atomic(uint64_t) version;    /* how often it was written to since it was made or taken over */
    _Atomic(uint32_t) write_site; /* where it was written to last, if stacks are recorded; else 0 */
    struct gni_alias_set *_Atomic aliases; /* of tensors that are not apart: tape.h; NULL: none */
    struct gni_list pending; /* operands of pending nodes that read it; under the recorder's lock */
    struct gni_storage
        *next_dead; /* without references: to be destroyed when the recorder's lock is let go */
    _Atomic(bool) is_escaped;
    _Atomic(bool) is_lasting;        /* a leaf's: it stays for a while anyway */
    _Atomic(unsigned) saved_tensors; /* T10 */
    bool is_read_only;
    /* On a GPU, in the order of streams: stream_order.c. On the CPU the writer is no stream. */
    struct gni_user first; /* whose it was at the start */
    struct gni_user writer, readers[GNI_STORAGE_READERS_MOST];
    _Atomic(int) stream_reader_count;
    /* Made while a graph was captured: graph_capture.c. */
    struct gni_capture *_Atomic capture; /* NULL: not, or the graph is gone */
    struct gni_list capture_link;
    _Atomic(bool) is_capturing; /* and that has not ended */
};

struct gn_tensor {
    _Atomic(size_t) references;
    struct gni_storage *_Atomic storage;
    struct gni_node *node;           /* its value, while that is pending */
    struct gni_node *_Atomic recipe; /* T9; NULL: none */
    _Atomic(uint64_t) saves;         /* T8 */
    gn_device *device;
    void *gradient;           /* the place of automatic differentiation: NULL until there is one */
    gn_tensor *idle_gradient; /* the gradient of a tensor that requires none: tape.h, TA4 */
    struct gni_alias_set *aliases; /* of a tensor that is apart; NULL: the storage's, or none */
    int64_t offset;                /* of the first element, in elements */
    int64_t count;                 /* elements */
    gn_dtype dtype;
    int ndim;
    bool is_contiguous;
    bool is_apart;                          /* detached: no alias of others for gradients; T7 */
    bool is_untaped;                        /* a view of what has a record, made off the tape */
    _Atomic(bool) is_counted;               /* T10 */
    bool is_room_taken;                     /* T6 */
    uint16_t life;                          /* how often it became another: gn_tensor_become() */
    _Alignas(16) char room[GN_TENSOR_ROOM]; /* of gn_tensor_take_room() */
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX];
};

/* ---- storage.c ------------------------------------------------------------------------------- */

/* `stream` is the one that uses it first: NULL on the CPU. */
gn_status gni_storage_create(gn_device *device, size_t nbytes, gn_stream *stream,
                             struct gni_storage **storage) GN_NODISCARD;
gn_status gni_storage_create_from(gn_memory_manager *manager, gn_device *device, size_t nbytes,
                                  gn_stream *stream, struct gni_storage **storage) GN_NODISCARD;
gn_status gni_storage_wrap(gn_device *device, void *data, bool is_read_only,
                           void (*deleter)(void *context), void *context,
                           struct gni_storage **storage) GN_NODISCARD;
/* An operation has written to the memory: a new version, and where that was. The second one does the second half; callers
 * have no lock, since an interpreter may be waited for. */
void gni_storage_note_write(struct gni_storage *storage);
void gni_storage_note_site(struct gni_storage *storage);

void gni_storage_release(struct gni_storage *storage);
void gni_storage_destroy(struct gni_storage *storage);

/* ---- stream_order.c ------------------------------------------------------------------------------ */

/* The stream that work on a device is submitted to: the calling thread's current one, borrowed; NULL for the CPU,
 * which computes in place. */
gn_status gni_stream_of(gn_device *device, gn_stream **stream) GN_NODISCARD;

/* Starts the order of a GPU's storage, whose content belongs to a stream; NULL on the CPU. */
gn_status gni_storage_order_init(struct gni_storage *storage, gn_stream *stream) GN_NODISCARD;
void gni_storage_order_deinit(struct gni_storage *storage);

/* Another stream than that of its start: for a GPU's storage that nobody has used yet. */
gn_status gni_storage_order_begin(struct gni_storage *storage, gn_stream *stream) GN_NODISCARD;

/*
 * What is submitted to the stream from now on may read the storage, or write to it: the stream waits on the device
 * for what others have submitted, and a free waits for this stream. Nothing to do on the CPU.
 */
gn_status gni_storage_order(struct gni_storage *storage, gn_stream *stream,
                            bool is_write) GN_NODISCARD;

/* The stream that the storage started with waits, on the device, for all that was submitted there: nobody uses it
 * any more. */
gn_status gni_storage_order_return(struct gni_storage *storage) GN_NODISCARD;

/* A stream waits, on the device, for what was submitted to another. */
gn_status gni_stream_join(gn_stream *stream, const struct gni_user *other) GN_NODISCARD;

/* Waits on the host until the storage can be read there: for what was written to it. */
gn_status gni_storage_synchronize(struct gni_storage *storage) GN_NODISCARD;
static inline void gni_storage_retain(struct gni_storage *storage)
{
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
}

/* A reference that is no alias: T7. */
static inline void gni_storage_hold(struct gni_storage *storage)
{
    atomic_fetch_add_explicit(&storage->references, GNI_STORAGE_HOLDER, memory_order_relaxed);
}

/* Turns a reference of an alias into one of a holder. */
static inline void gni_storage_part(struct gni_storage *storage)
{
    atomic_fetch_add_explicit(&storage->references, GNI_STORAGE_HOLDER - 1, memory_order_relaxed);
}

/* Whether a storage's memory can become that of another tensor, because its holders, whose number is given, let go of it: it
 * is memory as gni_storage_create() gives, and nobody knows its address. */
bool gni_storage_can_be_taken(const struct gni_storage *storage, size_t holders);

/* Such a storage gets a reference of the tensor that will have it, which knows nothing of earlier writes. */
static inline void gni_storage_take(struct gni_storage *storage)
{
    atomic_store_explicit(&storage->version, 0, memory_order_relaxed);
    atomic_store_explicit(&storage->write_site, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
}

/* The first half of a release: whether that was the last reference; then gni_storage_destroy() is the other one. Where
 * the only reference is ours, nobody can take another one meanwhile. */
static inline bool gni_storage_unhold(struct gni_storage *storage)
{
    return atomic_load_explicit(&storage->references, memory_order_acquire) == GNI_STORAGE_HOLDER ||
           atomic_fetch_sub_explicit(&storage->references, GNI_STORAGE_HOLDER,
                                     memory_order_acq_rel) == GNI_STORAGE_HOLDER;
}

/* The same where the storage has an alias set, which goes with the last alias. */
bool gni_storage_unreference_aliases(struct gni_storage *storage);

static inline bool gni_storage_unreference(struct gni_storage *storage)
{
    if (atomic_load_explicit(&storage->references, memory_order_acquire) == 1)
        return true;
    if (atomic_load_explicit(&storage->aliases, memory_order_relaxed) != NULL)
        return gni_storage_unreference_aliases(storage);
    return atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) == 1;
}

/* ---- tensor.c -------------------------------------------------------------------------------- */

/* A tensor of a contiguous shape with neither storage nor node. */
gn_status gni_tensor_prepare(gn_dtype dtype, int ndim, const int64_t *sizes, gn_device *device,
                             gn_tensor **tensor) GN_NODISCARD;

/* The same for a type and shape that are checked, with so many elements. */
gn_status gni_tensor_prepare_checked(gn_dtype dtype, int ndim, const int64_t *sizes, int64_t count,
                                     gn_device *device, gn_tensor **tensor) GN_NODISCARD;

/* Another view of a tensor's storage; the view's layout is the caller's to fill in. Computes what is pending. */
gn_status gni_tensor_alias(gn_tensor *tensor, gn_tensor **view) GN_NODISCARD;

/* The same with its layout; the offset, in elements, is from the tensor's own first element. */
gn_status gni_tensor_alias_as(gn_tensor *tensor, int64_t offset, int ndim, const int64_t *sizes,
                              const int64_t *strides, gn_tensor **view) GN_NODISCARD;

/* A view that nobody knows yet is no alias of others for gradients from now on. */
static inline void gni_tensor_part(gn_tensor *view)
{
    gni_storage_part(atomic_load_explicit(&view->storage, memory_order_relaxed));
    view->is_apart = true;
}

/* Sets shape and strides, and what follows from them. */
void gni_tensor_set_layout(gn_tensor *tensor, int ndim, const int64_t *sizes,
                           const int64_t *strides);

static inline struct gni_storage *gni_tensor_storage(const gn_tensor *tensor)
{
    return atomic_load_explicit(&tensor->storage, memory_order_acquire);
}

/* The part of gni_tensor_share() for a tensor that is apart: the view holds the storage and the alias set. tape.c */
void gni_tensor_share_apart(const gn_tensor *tensor, gn_tensor *view);

/* Makes a view, but for its layout, of memory that is not set yet. The tensor has a storage. */
static inline void gni_tensor_share(const gn_tensor *tensor, int64_t offset, gn_tensor *view)
{
    struct gni_storage *storage = gni_tensor_storage(tensor);
    if (tensor->is_apart)
        gni_tensor_share_apart(tensor, view);
    else
        gni_storage_retain(storage);
    view->is_apart = tensor->is_apart;
    view->is_untaped = tensor->is_untaped || tensor->gradient != NULL; /* until it has a record */
    view->life = 0;
    view->aliases = tensor->aliases;
    atomic_init(&view->references, 1);
    atomic_init(&view->storage, storage);
    atomic_init(&view->recipe, NULL);
    atomic_init(&view->saves, 0);
    atomic_init(&view->is_counted, false);
    view->node = NULL;
    view->device = tensor->device;
    view->gradient = NULL;
    view->idle_gradient = NULL;
    view->offset = tensor->offset + offset;
    view->dtype = tensor->dtype;
    view->is_room_taken = false;
}

/* What follows from shape and strides: how many elements there are, and whether they lie one after the other. */
static inline void gni_tensor_measure(gn_tensor *tensor)
{
    int64_t count = 1;
    bool is_contiguous = true;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        int64_t size = tensor->sizes[i];
        is_contiguous &= size == 1 || tensor->strides[i] == count;
        count *= size;
    }
    tensor->count = count;
    tensor->is_contiguous = is_contiguous || count == 0;
}

/* The first element; its bytes must be there. */
static inline char *gni_tensor_data(const gn_tensor *tensor)
{
    return gni_tensor_storage(tensor)->data +
           tensor->offset * (int64_t)gni_dtypes[tensor->dtype].size;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

/*
 * What this layer needs of the one that computes: src/ops/flush.c fills the table in when the library is loaded.
 * Nothing else here calls upwards.
 */
struct gni_evaluator {
    /* Computes a tensor whose value is pending. */
    gn_status (*flush)(gn_tensor *tensor);
    /* Computes everything pending that reads a storage. */
    gn_status (*flush_readers)(struct gni_storage *storage);
    /* A pending tensor goes: its value may not be needed any more. */
    void (*abandon)(gn_tensor *tensor);
    /* A tensor with a recipe will be spare once the caller has released its reference: its bytes go, if they can. */
    void (*rest)(gn_tensor *tensor);
    /* The recipe of a tensor goes. */
    void (*forget_recipe)(gn_tensor *tensor);
    /* A tensor is no saved value any more. */
    void (*unsaved)(gn_tensor *tensor);
    /* Memory of a leaf may go. */
    void (*unlast)(void);
    /* Waits for what another thread is doing in one of the two. */
    void (*meet)(void);
    /* A contiguous copy, or the tensor itself (with a reference) if it is contiguous. */
    gn_status (*compact)(gn_tensor *tensor, gn_tensor **result);
    /* One element, read on the host. */
    gn_status (*get_item)(gn_tensor *tensor, const int64_t *index, gn_scalar *item);
    /* Where a contiguous mask on a GPU is true, as offsets by strides. Waits for the GPU. */
    gn_status (*mask_places)(gn_tensor *mask, const int64_t *strides, gn_tensor **places);
};

extern struct gni_evaluator gni_evaluator;

/* ---- saved values: T8 ---------------------------------------------------------------------------- */

static inline bool gni_tensor_has_recipe(const gn_tensor *tensor)
{
    return atomic_load(&tensor->recipe) != NULL;
}

/* Without the recorder's lock this is a guess. */
static inline bool gni_tensor_is_spare(const gn_tensor *tensor)
{
    uint64_t saves = atomic_load(&tensor->saves);
    return atomic_load(&tensor->references) == (uint32_t)saves + (saves >> 32);
}

extern _Atomic(size_t) gni_counted_least; /* T10; src/ops/resting.c sets it */

/* T10. The tensor is saved, and its storage cannot go meanwhile. */
static inline void gni_tensor_count(gn_tensor *tensor, struct gni_storage *storage)
{
    if (storage->nbytes < atomic_load_explicit(&gni_counted_least, memory_order_relaxed))
        return;
    if (!atomic_exchange(&tensor->is_counted, true))
        atomic_fetch_add_explicit(&storage->saved_tensors, 1, memory_order_relaxed);
}

/* A reference of the caller's becomes that of a saved value. */
static inline void gni_tensor_save(gn_tensor *tensor)
{
    atomic_fetch_add(&tensor->saves, 1);
    struct gni_storage *storage = gni_tensor_storage(tensor);
    if (storage != NULL)
        gni_tensor_count(tensor, storage);
}

/* Releases that reference; NULL: nothing happens. */
static inline void gni_tensor_unsave(gn_tensor *tensor)
{
    if (tensor == NULL)
        return;
    if ((uint32_t)atomic_fetch_sub(&tensor->saves, 1) == 1 &&
        (atomic_load(&tensor->is_counted) || gni_tensor_has_recipe(tensor)))
        gni_evaluator.unsaved(tensor);
    gn_tensor_release(tensor);
}

/* A new reference to a tensor that somebody has saved. Its bytes stay, if they are there, until the end. The reference
 * comes before its count: with the count alone the tensor would look spare. */
static inline void gni_tensor_read_begin(gn_tensor *tensor)
{
    atomic_fetch_add(&tensor->references, 1);
    atomic_fetch_add(&tensor->saves, GNI_TENSOR_READER);
    if (gni_tensor_has_recipe(tensor))
        gni_evaluator.meet(); /* another thread may not have seen us */
}

static inline void gni_tensor_read_end(gn_tensor *tensor)
{
    atomic_fetch_sub(&tensor->saves, GNI_TENSOR_READER);
    gn_tensor_release(tensor);
}

/* Computes a tensor if its value is pending. */
GN_NODISCARD static inline gn_status gni_tensor_flush(gn_tensor *tensor)
{
    return gni_tensor_storage(tensor) != NULL ? GN_OK : gni_evaluator.flush(tensor);
}

#endif
