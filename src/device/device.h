/*
 * device.h: what a device offers to the layers above it.
 *
 *   gn_device   one CPU or GPU; starts with a pointer to its table of operations
 *   gn_stream   a reference-counted queue of one device
 *   gn_event    a mark in a stream of one device
 *
 * A kind of device is one table, struct gni_device_ops. Everything above this layer goes through
 * the table (mostly by the gn_ functions of genesis/device.h, which check arguments first) and
 * asks for properties in the table, not for the kind: what a third kind could answer either way.
 *
 * Ownership: 1. devices live for ever. 2. A stream lives while it has an owner; the default streams
 * are owned by their devices. 3. An event has one owner. 4. A device counts what lives on it in
 * `object_count` (streams, events, modules, blocks of memory); gn_shutdown() gives a device back only
 * when there is nothing.
 *
 * Threads: every slot may be called from any thread at any time.
 */
#ifndef GNI_DEVICE_DEVICE_H
#define GNI_DEVICE_DEVICE_H

#include "genesis/device.h"

#include "base/error.h"

#include <stdatomic.h>

enum {
    GNI_DEVICE_MAX = 64,  /* of one type */
    GNI_DEVICE_TYPES = 2, /* values of gn_device_type */
};

enum gni_stream_kind {
    GNI_STREAM_DEFAULT,    /* the device's default stream */
    GNI_STREAM_OWNED,      /* created and destroyed by us */
    GNI_STREAM_FOREIGN,    /* another library's */
    GNI_STREAM_PER_THREAD, /* CUDA's per-thread default stream: another one in each thread */
};

/*
 * What layers above keep with a device and with a stream. This layer zeroes the fields, and does with them only what their
 * comments say.
 */
struct gni_device_upper {
    /* src/ops/cuda: a word of page-locked memory in which kernels report numbers that are out of range; NULL until a
     * kernel may. It is freed when the device is closed. */
    _Atomic(uint64_t) *_Atomic fault;
};

struct gni_stream_upper {
    /* src/memory: what the fast path of the memory manager knows the stream by: its id, or 0 where that path must not be
     * taken (not known yet, foreign, shared, or allocating from a private pool). Cleared when the stream is shared. */
    _Atomic(uint64_t) memory_key;
    /* src/tensor: what a graph of ours is captured with. Waiting for a stream that has one is an error. */
    struct gni_capture *_Atomic capture;
};

struct gn_device {
    const struct gni_device_ops *ops;
    gn_device_type type;
    int index;
    atomic_int object_count;   /* what lives on it; see Ownership 4 */
    gn_stream *default_stream; /* set when the device is opened, then constant */
    /* Reasons why launches must be submitted before the call returns: others know addresses of the device's memory. */
    atomic_int direct_count;
    struct gni_device_upper upper;
};

struct gn_stream {
    gn_device *device;
    enum gni_stream_kind kind;
    unsigned flags;        /* GN_STREAM_* */
    int priority;          /* as the device took it */
    _Atomic(uint64_t) id;  /* 0: not read yet. Not for PER_THREAD, where it depends on the caller */
    void *handle;          /* CUDA: the CUstream. CPU: the queue */
    atomic_int references; /* >= 1 while alive */
    atomic_int watchers;   /* of these: who lets go when nobody else is left */
    atomic_bool is_shared; /* others know its handle: they may submit work, or capture it */
    struct gni_stream_upper upper;
};

/* What a thread keeps for the fast path of the memory manager, in one place. Finding it is nearly free while all
 * thread-local variables of the library together have at most 512 bytes, which glibc has at hand for a library that is
 * loaded late; it costs a call of some nanoseconds otherwise. tests/python/test_layers.py looks at the size. */
struct gni_thread {
    uint64_t stream_epoch;   /* how often the thread has changed its current streams */
    struct gni_cache *cache; /* src/memory: the cache that it used last; NULL: none yet */
};

extern _Thread_local struct gni_thread gni_thread;

/* What a layer above wants to be told about streams that we own. Set once. */
struct gni_stream_hooks {
    void (*on_unused)(gn_stream *stream); /* only watchers are left: they release it */
    void (*on_end)(gn_stream *stream);    /* the stream is about to be destroyed */
    void (*on_share)(gn_stream *stream);  /* before its handle is handed out for the first time */
};

void gni_stream_set_hooks(const struct gni_stream_hooks *hooks);

/* One more owner, a watcher, who does not keep a stream of ours alive alone: gni_stream_hooks.on_unused. */
void gni_stream_watch(gn_stream *stream);
void gni_stream_unwatch(gn_stream *stream);

struct gn_event {
    gn_device *device;
    unsigned flags; /* GN_EVENT_* */
    void *handle;   /* CUDA: the CUevent. CPU: struct cpu_event */
};

/* Code loaded on a device, and a kernel in it. Opaque above this layer. */
struct gni_module {
    gn_device *device;
    void *handle;
};

struct gni_function {
    gn_device *device;
    void *handle;
};

struct gni_launch {
    unsigned grid[3];
    unsigned block[3];
    size_t shared_bytes;   /* dynamic shared memory of each block */
    void **arguments;      /* addresses of the arguments; copied before the call returns */
    size_t argument_bytes; /* of the only argument; 0: not known, or there are several */
    bool waits; /* the kernel begins by waiting for what is before it: it may begin early */
};

/* Work that was captured, ready to run. Opaque above this layer. */
struct gni_graph {
    gn_device *device;
    void *handle; /* NULL: none */
};

/* What can be asked about a kernel. */
struct gni_function_properties {
    int max_threads_per_block;
    int register_count;
    size_t static_shared_bytes;
    size_t local_bytes; /* of each thread: spills and arrays */
};

/*
 * The table. A slot marked (optional) may be NULL: the device does not have it, and the caller says
 * GN_ERROR_UNSUPPORTED or takes another way. A slot may also exist and fail with
 * GN_ERROR_UNSUPPORTED where it depends on the driver. Slots that undo something (free, destroy,
 * unmap, release) succeed without an effect when the driver is out of reach: in a forked child and
 * during exit().
 */
struct gni_device_ops {
    /* ---- properties; each says one thing, whatever the others say ---- */

    const char *name;    /* of the type, in messages: "cuda" */
    bool is_numbered;    /* there may be several: messages give the index, "cuda:1" */
    bool is_host_memory; /* the host can read and write the device's memory by its address */
    bool
        is_immediate; /* operations on tensors are computed when the call returns, by the calling thread: they need no
                          stream */
    bool is_lost_in_fork; /* a forked child can use neither the device nor its memory */
    bool
        is_bounded; /* memory_info's total is all that there can ever be: no swap, no overcommitment */
    bool has_pinned_memory; /* host_alloc gives memory unlike the host's ordinary memory */
    bool has_handles;       /* streams and events have handles that other libraries can use */
    bool has_claims;  /* the pool's threads may have regions to themselves: src/memory/claim.h */
    bool has_options; /* the options GENESIS_CUDA_* say how its memory is managed */
    int dlpack_type;  /* DLPack's number for it */

    /* ---- functions ---- */

    /* Fails when the device is lost, forked away or shutting down; costs nothing. */
    gn_status (*check)(gn_device *device);
    gn_status (*properties)(gn_device *device, gn_device_properties *properties);
    gn_status (*memory_info)(gn_device *device, size_t *free_bytes, size_t *total_bytes);
    gn_status (*synchronize)(gn_device *device);
    gn_status (*can_access)(gn_device *device, gn_device *peer,
                            bool *can_access); /* of one type; NULL: none can */

    /* Memory from the driver or the system, of exactly this size; nbytes > 0. Freeing may wait for
     * the device. `nbytes` of a free is what was allocated. */
    gn_status (*memory_alloc)(gn_device *device, size_t nbytes, void **pointer);
    gn_status (*memory_free)(gn_device *device, void *pointer, size_t nbytes);

    /* (optional) The same, ordered in a stream by the driver's own pool. */
    gn_status (*memory_alloc_async)(gn_stream *stream, size_t nbytes, void **pointer);
    gn_status (*memory_free_async)(gn_stream *stream, void *pointer);

    /* (optional, all or none) Addresses and physical memory apart. Sizes and addresses are
     * multiples of the granularity. A handle is indivisible, and can be mapped at several
     * addresses; it lives until it is released and its last mapping is gone. A fresh mapping cannot
     * be used before access is granted. Unmapping and releasing wait for nothing: the caller does.
     */
    gn_status (*virtual_granularity)(gn_device *device, size_t *bytes);
    gn_status (*virtual_reserve)(gn_device *device, size_t nbytes, void **address);
    gn_status (*virtual_release)(gn_device *device, void *address, size_t nbytes);
    gn_status (*physical_create)(gn_device *device, size_t nbytes, uint64_t *handle);
    gn_status (*physical_release)(gn_device *device, uint64_t handle);
    gn_status (*virtual_map)(gn_device *device, void *address, size_t nbytes, uint64_t handle);
    gn_status (*virtual_unmap)(gn_device *device, void *address, size_t nbytes);
    gn_status (*virtual_grant)(gn_device *device, void *address, size_t nbytes);

    /* Host memory that the device can reach directly; nbytes > 0. */
    gn_status (*host_alloc)(gn_device *device, size_t nbytes, void **pointer);
    gn_status (*host_free)(gn_device *device, void *pointer, size_t nbytes);
    gn_status (*host_register)(gn_device *device, void *pointer, size_t nbytes);
    gn_status (*host_unregister)(gn_device *device, void *pointer);

    /* Copies and fills in stream order; nbytes and count > 0. */
    gn_status (*copy)(gn_stream *stream, void *destination, const void *source, size_t nbytes);
    gn_status (*fill)(gn_stream *stream, void *destination, uint32_t value, size_t element_size,
                      size_t count);

    /* Fills in handle, id and priority of a stream whose other fields are set. */
    gn_status (*stream_open)(gn_stream *stream);
    void (*stream_close)(gn_stream *stream);
    gn_status (*stream_id)(gn_stream *stream, uint64_t *id);
    gn_status (*stream_query)(gn_stream *stream);
    gn_status (*stream_synchronize)(gn_stream *stream);
    gn_status (*stream_wait_event)(gn_stream *stream, gn_event *event);
    gn_status (*stream_is_capturing)(gn_stream *stream, bool *is_capturing);

    /* Fills in the handle of an event whose other fields are set. */
    gn_status (*event_open)(gn_event *event);
    void (*event_close)(gn_event *event);
    gn_status (*event_record)(gn_event *event, gn_stream *stream);
    gn_status (*event_query)(gn_event *event);
    gn_status (*event_synchronize)(gn_event *event);
    gn_status (*event_elapsed)(gn_event *start, gn_event *end, float *milliseconds);

    /* (optional, all or none) Kernels. The image is a cubin, fatbin or PTX text. */
    gn_status (*module_load)(gn_device *device, const void *image, struct gni_module *module);
    gn_status (*module_unload)(struct gni_module *module);
    gn_status (*function_find)(const struct gni_module *module, const char *name,
                               struct gni_function *function);
    gn_status (*function_properties)(const struct gni_function *function,
                                     struct gni_function_properties *properties);
    /* Lets a kernel use this much dynamic shared memory, above the limit that needs no asking. */
    gn_status (*function_allow_shared)(const struct gni_function *function, size_t nbytes);
    /* The size of a kernel's parameter; GN_ERROR_INVALID_VALUE past the last one. */
    gn_status (*function_parameter)(const struct gni_function *function, size_t index,
                                    size_t *nbytes);
    gn_status (*function_launch)(const struct gni_function *function, gn_stream *stream,
                                 const struct gni_launch *launch);

    /* (optional) Returns when all launches that calls have returned for are submitted. */
    void (*submit)(gn_device *device);

    /* (optional, both or none) Between the two no thread submits work to the device but the caller. What was submitted
     * before may still run. Not recursive. */
    void (*pause)(gn_device *device);
    void (*resume)(gn_device *device);

    /* (optional, all or none) Graphs. Work that is submitted to a stream between begin and end does not run, but
     * is kept. After `end` the stream is not captured any more, also if that fails; the graph is none then. */
    gn_status (*graph_begin)(gn_stream *stream);
    gn_status (*graph_end)(gn_stream *stream, struct gni_graph *graph);
    gn_status (*graph_launch)(const struct gni_graph *graph, gn_stream *stream);
    void (*graph_close)(struct gni_graph *graph);
};

/* True if the host may read and write the device's memory without waiting: it reaches the memory, and no work on it is
 * unfinished when a call has returned. */
static inline bool gni_device_host_can_access(const gn_device *device)
{
    return device->ops->is_host_memory && device->ops->is_immediate;
}

/* The device whose memory is the host's ordinary memory. */
gn_status gni_device_get_host(gn_device **host) GN_NODISCARD;

/* All launches that calls have returned for are submitted. */
static inline void gni_device_submit(gn_device *device)
{
    if (device->ops->submit != NULL)
        device->ops->submit(device);
}

/* Others may submit work that uses the device's memory, until gni_device_direct_end(). */
static inline void gni_device_direct_begin(gn_device *device)
{
    atomic_fetch_add(&device->direct_count, 1);
    gni_device_submit(device);
}

static inline void gni_device_direct_end(gn_device *device)
{
    atomic_fetch_sub(&device->direct_count, 1);
}

/* Sets up a stream object in the caller's memory, for the devices' default streams. */
void gni_stream_init(gn_stream *stream, gn_device *device, enum gni_stream_kind kind);

/* A number for a stream on a device whose driver has none; never given out twice. */
uint64_t gni_stream_next_id(void);

/* The first of so many in a row. */
uint64_t gni_stream_next_ids(unsigned count);

/* "cuda:1", for messages. */
struct gni_device_label {
    char text[16];
};
struct gni_device_label gni_device_label(const gn_device *device);

/* A layer above wants to know that a public call has waited for a device, a stream or an event. One at the most; it
 * may be called with the caller's locks held, of GNI_FORK_MARK or above. */
void gni_devices_set_wait_hook(void (*hook)(void));

/* A layer above gives back what it keeps on the devices before they are closed: for ever, and added once. */
struct gni_close_hook {
    void (*run)(void);
    struct gni_close_hook *next; /* the one that was added before */
};

void gni_devices_add_close_hook(struct gni_close_hook *hook);

/*
 * Gives every open device back whose streams, events and modules are all gone, and returns how many
 * such objects are left on the others. Part of gn_shutdown().
 */
int gni_devices_close(void);

#endif
