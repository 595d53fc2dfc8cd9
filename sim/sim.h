/*
 * sim.h: the simulated GPU: its types, and the frame of every driver call.
 *
 *   context   the primary context of one device; there is no other
 *   range     a piece of address space that the driver knows: device memory, a mapping of physical
 *             memory, page-locked host memory
 *   physical  physical memory of a device that can be mapped at several addresses
 *   op        one piece of work in a stream: a kernel, a copy, a fill, a record, a wait, an allocation,
 *             a free, a graph
 *   stream    a queue of ops, oldest first
 *   record    what one cuEventRecord() made: the op that completes it, and its clock
 *   graph     ops that were captured instead of being queued, and how they depend on each other
 *   clock     who has seen how much of whom (clock.h); the host is one actor, each stream another
 *
 * Invariants, all under sim.mutex, which every driver call holds from its first line to its last:
 *   S1  every op has a number from one sequence, in the order of submission; queues are sorted by it;
 *   S2  an op leaves its queue when it has run: nothing of it is seen before, and all of it after;
 *   S3  an op runs when it is the first of its queue, its wait is over, and the streams that are
 *       joined with its own have nothing older (the legacy default stream and blocking streams);
 *   S4  what an op needs from the caller is copied when it is submitted (kernel parameters, pageable
 *       sources); what it needs from the device is looked at when it runs;
 *   S5  the order in which ready ops run is the schedule's, and is a function of the seed and of the
 *       calls alone. Nothing runs on a thread of its own.
 *
 * Device memory cannot be touched by the host: its pages are opened only while ops run.
 */
#ifndef GNI_SIM_SIM_H
#define GNI_SIM_SIM_H

#include "base/checked.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/list.h"
#include "device/cuda/driver_api.h"

#include "clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define SIM_EXPORT __attribute__((visibility("default")))

enum {
    SIM_DEVICES_MAX = 8,
    SIM_STREAMS_MAX = (1 << 13) - 1, /* a stream has 8 bytes for each that came before it */
    SIM_STACK_MAX = 16,              /* contexts on a thread's stack */
    SIM_GRANULARITY = 2 << 20,       /* of virtual memory */
    SIM_ALIGNMENT = 512,             /* of cuMemAlloc */
    SIM_POISON_ALLOC = 0xD0,         /* what fresh memory holds */
    SIM_POISON_FREE = 0xDF,          /* what freed memory holds */
    SIM_EXIT_FORKED = 98,            /* how a process ends whose forked child calls the driver */
    SIM_EXIT_LATE = 99,              /* ... or that calls it after its exit handler */
};

struct CUctx_st {
    CUdevice device;
    int retain_count;
    CUresult lost; /* sticky: what every call in this context gives; 0 while it is well */
    struct CUstream_st *legacy;
    struct sim_clock ended;          /* what streams had done that were destroyed ... */
    struct sim_clock ended_blocking; /* ... and those of them that the legacy stream waits for */
};

enum sim_range_kind {
    SIM_RANGE_PLAIN,      /* of cuMemAlloc and cuMemAllocAsync */
    SIM_RANGE_MAPPED,     /* of cuMemMap */
    SIM_RANGE_HOST,       /* of cuMemHostAlloc */
    SIM_RANGE_REGISTERED, /* of cuMemHostRegister */
};

struct sim_range {
    uintptr_t address;
    size_t nbytes;
    enum sim_range_kind kind;
    CUdevice device;
    unsigned access;               /* MAPPED: a bit for each device that may use it */
    bool is_dying;                 /* freed in stream order, and the free has not run */
    struct sim_physical *physical; /* MAPPED */
    bool was_ordered;              /* of cuMemAllocAsync */
};

struct sim_physical {
    struct gni_list link;
    CUmemGenericAllocationHandle handle;
    size_t nbytes;
    CUdevice device;
    int file;            /* of memfd_create() */
    int reference_count; /* the handle itself and its mappings */
    bool is_released;
};

struct sim_record {
    int references;
    bool is_complete;
    uint64_t number; /* of the op that completes it */
    struct CUstream_st *stream;
    struct sim_clock clock; /* what the stream had seen when it was made */
    double time_ms;         /* when it completed, in simulated time */
};

/* Nodes of a graph, by their places in it. */
struct sim_nodes {
    size_t *places; /* owned */
    size_t count;
};

struct CUevent_st {
    struct gni_list link;
    CUdevice device;
    unsigned flags;
    struct sim_record *record;  /* NULL: never recorded */
    struct CUgraph_st *capture; /* recorded in a capture: its graph ... */
    struct sim_nodes nodes;     /* ... and the nodes it marks */
    bool was_captured;          /* and the capture is over: it marks nothing */
};

enum sim_op_kind {
    SIM_OP_KERNEL,
    SIM_OP_COPY,
    SIM_OP_FILL,
    SIM_OP_RECORD,
    SIM_OP_WAIT,
    SIM_OP_ALLOC, /* of cuMemAllocAsync */
    SIM_OP_FREE,
    SIM_OP_GRAPH,
};

struct sim_op {
    struct gni_list link;
    enum sim_op_kind kind;
    uint64_t number; /* S1 */
    struct CUstream_st *stream;
    struct sim_clock clock; /* what happened before it, its own tick included */
    /* KERNEL */
    struct CUfunc_st *function;
    unsigned grid[3], block[3];
    size_t shared_bytes;
    bool is_early;
    void *parameters; /* packed; owned */
    /* COPY, FILL, ALLOC, FREE */
    uintptr_t destination, source;
    size_t nbytes;
    void *staged; /* COPY: the bytes of a pageable source; owned */
    unsigned value;
    unsigned element; /* FILL: its size */
    /* RECORD, WAIT */
    struct sim_record *record;
    /* GRAPH */
    struct CUgraph_st *graph; /* as it was when it was launched; a reference */
    struct sim_nodes after;   /* inside a graph: the nodes this one waits for */
};

struct CUstream_st {
    struct gni_list link; /* in its context's streams; not the legacy and per-thread ones */
    CUdevice device;
    unsigned flags;
    int priority;
    uint64_t id;
    bool is_legacy;
    bool is_blocking; /* joined with the legacy stream, but not that stream */
    bool is_implicit; /* the legacy stream, or a thread's own: nobody made it, nobody destroys it */
    bool is_destroyed;
    struct gni_list ops;
    unsigned actor;         /* its place in clocks */
    struct sim_clock clock; /* what its next op will have seen */
    /* while it is captured */
    struct CUgraph_st *capture;
    bool is_origin;
    bool is_invalidated;
    CUstreamCaptureMode capture_mode;
    pthread_t capture_thread;
    struct sim_nodes nodes; /* that its next node waits for */
};

struct CUgraph_st {
    struct gni_list link;
    struct sim_op **nodes; /* a CUgraphNode is one of them */
    size_t count, capacity;
    int references;   /* of an executable graph's: it, and its launches that have not run */
    bool is_captured; /* the capture is still going on */
};

struct CUgraphExec_st {
    struct gni_list link;
    struct CUgraph_st *graph;  /* a copy of its own; another one once nodes of it were changed */
    struct CUgraph_st *origin; /* whose nodes name those of the copy; may be destroyed */
};

struct CUmod_st {
    struct gni_list link;
    CUdevice device;
    struct sim_module *module; /* engine.h */
    struct gni_list functions;
};

struct CUfunc_st {
    struct gni_list link;
    struct CUmod_st *module;
    const struct sim_kernel *kernel; /* engine.h */
    int shared_bytes_max;
};

enum sim_schedule {
    SIM_EAGER,  /* everything that can run, at once */
    SIM_LAZY,   /* nothing before something waits for it, and then only what it needs */
    SIM_RANDOM, /* some of what can run, at each call, by the seed */
};

/* Everything there is. */
extern struct sim {
    pthread_mutex_t mutex;
    bool is_initialized;
    pid_t process; /* that called cuInit() */
    bool is_exited;

    int device_count;
    size_t memory_bytes; /* of each device */
    int version;
    enum sim_schedule schedule;
    uint64_t seed;
    bool is_blocking_launch; /* CUDA_LAUNCH_BLOCKING=1 */
    bool is_strict;          /* H5 is reported */

    struct CUctx_st contexts[SIM_DEVICES_MAX];
    size_t used_bytes[SIM_DEVICES_MAX];
    uint64_t last_number; /* S1 */
    uint64_t last_id;     /* of streams */
    uint64_t random;      /* the schedule's state */
    uint64_t order_hash;  /* of the ops that ran, in their order, with numbers from order_base */
    uint64_t order_base;
    double time_ms; /* simulated: each op takes a microsecond */

    bool has_destroyed; /* a stream waits to be swept */
    struct gni_list streams, events, modules, graphs, execs, physicals;
    struct sim_clock host; /* what the host has seen */
} sim;

/* ---- the frame of a call: driver.c ---- */

enum sim_need {
    SIM_NEED_NOTHING,
    SIM_NEED_INIT,
    SIM_NEED_CONTEXT, /* a current one that is not lost */
};

struct sim_call {
    CUresult result; /* why the call may not go on */
    struct CUctx_st *context;
};

struct sim_call sim_call_begin(const char *function, enum sim_need need);
void sim_call_end(struct sim_call *call);

#define SIM_CALL(need)                                                                            \
    __attribute__((cleanup(sim_call_end))) struct sim_call call = sim_call_begin(__func__, need); \
    if (call.result != CUDA_SUCCESS)                                                              \
    return call.result

#define SIM_REQUIRE(condition, error) \
    do {                              \
        if (!(condition))             \
            return (error);           \
    } while (0)

/* The context is lost: every later call gives this result. */
void sim_context_lose(struct CUctx_st *context, CUresult result);

/* ---- memory: memory.c, virtual.c ---- */

struct sim_range *sim_range_find(uintptr_t address); /* that contains the address; or NULL */
bool sim_range_add(const struct sim_range *range);
void sim_range_remove(uintptr_t address);
size_t sim_range_count(enum sim_range_kind first, enum sim_range_kind last);

/* Is it wholly inside living device memory that can be accessed? */
bool sim_device_contains(uintptr_t address, size_t nbytes);

/* Is the address in space that only the driver hands out, living or not? */
bool sim_is_device_space(uintptr_t address);   /* memory.c */
bool sim_is_reserved_space(uintptr_t address); /* virtual.c */

/* Opens device memory while an op runs: the op's own, or all of it for a kernel. Not nested. */
void sim_memory_open(uintptr_t address, size_t nbytes);
void sim_memory_close(uintptr_t address, size_t nbytes);
void sim_memory_open_all(void);
void sim_memory_close_all(void);

/*
 * Where a byte is: its address, or for a mapping the place in physical memory, which is the same for all
 * addresses at which that is mapped. `left`: how far places go on with addresses.
 */
uintptr_t sim_memory_place(uintptr_t address, size_t *left);

/* How much memory a device can be given: its arena's size once it is made. */
size_t sim_memory_limit(CUdevice device);

/* The context's end: its memory goes. Physical memory is the process's and stays. */
void sim_memory_end(CUdevice device);

/* The free of a stream-ordered block, when its op runs. */
void sim_memory_release(uintptr_t address);

/* ---- streams: stream.c ---- */

/* The stream that a handle means in this thread and context; NULL: no such stream. */
struct CUstream_st *sim_stream_get(struct CUctx_st *context, CUstream handle);
struct CUstream_st *sim_stream_make(CUdevice device, unsigned flags, int priority);

/* Frees destroyed streams whose work has all run; between calls, when nobody walks the list. */
void sim_streams_sweep(void);

/* The context's end: its streams and events go. */
void sim_streams_end(CUdevice device);

struct sim_record *sim_record_retain(struct sim_record *record);
void sim_record_release(struct sim_record *record);

/* ---- the schedule: schedule.c ---- */

/* Takes an op over: queues it, or adds it to the stream's capture. */
CUresult sim_submit(struct CUstream_st *stream, struct sim_op *model);

/* Runs what must run until everything of the stream up to the number has run. */
void sim_complete(struct CUstream_st *stream, uint64_t number);
void sim_complete_joined(struct CUstream_st *stream, uint64_t number);
void sim_complete_context(CUdevice device);
void sim_complete_record(struct sim_record *record);

/* Is it complete without running anything? */
bool sim_is_past(const struct CUstream_st *stream, uint64_t number);
bool sim_is_past_joined(const struct CUstream_st *stream, uint64_t number);

/* Lets the schedule run what it likes; at each call, and on a query. */
void sim_nudge(void);
void sim_query_nudge(void);

void sim_op_deinit(struct sim_op *op);

/* Work that has not run and is known to touch a stretch of memory; NULL: none. */
const struct sim_op *sim_pending_find(uintptr_t address, size_t nbytes);
int sim_pending_count(void);
uint64_t sim_random(void);

/* ---- running: run.c ---- */

/* Does the work of an op. The stream's context may be lost after it. */
void sim_op_run(struct sim_op *op);

/* ---- captures: graph.c ---- */

/* Is a call that is unsafe during captures allowed now? If not, the captures in its way are spoilt. */
bool sim_capture_allows_unsafe(void);

/* A call that a stream may not get while it is captured: spoils the capture and gives its result. */
CUresult sim_capture_refuse(struct CUstream_st *stream);

/* A context may not be waited for while a stream of it is captured, in any mode, by any thread. */
CUresult sim_capture_check_context(CUdevice device);

/* The legacy stream may not be used while a blocking stream of its device is captured. */
CUresult sim_capture_check_legacy(const struct CUstream_st *stream);
struct CUstream_st *sim_capture_find_implicit(const struct CUstream_st *stream); /* or NULL */

CUresult sim_capture_add(struct CUstream_st *stream, const struct sim_op *model);
CUresult sim_capture_record(struct CUstream_st *stream, struct CUevent_st *event);
CUresult sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
void sim_nodes_deinit(struct sim_nodes *nodes);
void sim_capture_abandon(struct CUstream_st *stream); /* that is going to be destroyed */
void sim_graph_run(const struct sim_op *launch);
void sim_graph_release(struct CUgraph_st *graph); /* one reference */

/* ---- kernels: kernel.c ---- */

size_t sim_function_parameters_bytes(const struct CUfunc_st *function);

/* The op of a launch, whose stream is not looked at; on failure there is nothing to deinit. */
CUresult sim_kernel_op_init(struct sim_op *op, CUfunction function, const CUlaunchConfig *config,
                            void **arguments, void **extra);
void sim_kernel_run(const struct sim_op *op);

/* Was the kernel given an address in this stretch as an argument? */
bool sim_kernel_is_given(const struct sim_op *op, uintptr_t address, size_t nbytes);

/* The context's end: its modules go. */
void sim_modules_end(CUdevice device);

/* ---- faults: control.c ---- */

/* The result that a test ordered for this call, or CUDA_SUCCESS. Counts the call. */
CUresult sim_fault_take(const char *function);

/* ---- findings: control.c ---- */

/* A finding: printed, kept for tests, and counted. */
void sim_finding(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* The records of a test tool cannot do without memory: says so, and ends the process. */
__attribute__((noreturn)) void sim_die_without_memory(void);

/* "stream 3 (op 12)" and the like. */
struct sim_label {
    char text[96];
};
struct sim_label sim_op_label(const struct sim_op *op);

/* Exported under the symbol that the table gives, which is not always the name. */
#define SIM_DECLARE(name, symbol, version, need, arguments, lost) \
    SIM_EXPORT CUresult name arguments __asm__(symbol);
GNI_CUDA_FUNCTIONS(SIM_DECLARE)
#undef SIM_DECLARE

#endif
