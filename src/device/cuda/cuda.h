/*
 * cuda.h: one GPU as a device, and how its files call the driver.
 *
 * A slot of the table calls the driver like this:
 *
 *     GNI_CUDA_TRY(device, cuMemAlloc, &pointer, nbytes);
 *
 * which makes the device's primary context current, calls, puts the caller's context back and
 * returns to the caller with a status and the driver's own text if the call failed. Several calls
 * in one context use gni_cuda_enter() and gni_cuda_leave() themselves.
 *
 * Invariants:
 *   CD1  a driver call is made between enter and leave, and never once the driver is gone or the
 *       device is lost;
 *   CD2  after leave the thread's stack of contexts is what it was before enter;
 *   CD3  `lost` is set once, by the first result that says that the context is destroyed, and every
 *       later enter reports it;
 *   CD4  `context` is not NULL while the device is open: set last when it is opened, and changed only
 *       under cuda_mutex;
 *   CD5  everything else is written before the device is first handed out (`is_known`), and never again:
 *       who holds a gn_device may read it at any time.
 */
#ifndef GNI_DEVICE_CUDA_CUDA_H
#define GNI_DEVICE_CUDA_CUDA_H

#include "device/cuda/cuda_gate.h"
#include "device/cuda/driver.h"
#include "device/device.h"

struct gni_cuda_device {
    gn_device base; /* first: a gn_device pointer is a pointer to this */
    const struct gni_cuda_driver *driver;
    CUdevice handle;
    _Atomic(CUcontext) context; /* CD4 */
    bool is_known;              /* CD5; under cuda_mutex */
    atomic_int lost;            /* CD3: the CUresult, or 0 */
    gn_stream default_stream;
    gn_device_properties properties;
    int priority_least, priority_greatest; /* the greatest is the smaller number */
    bool launches_early;                   /* kernels that wait by themselves (gni_launch.waits) */
    bool launches_together;                /* by the queue: cuda_bundle.h */
    atomic_int capture_count;              /* captures of ours that are under way */
    struct gni_cuda_queue *_Atomic queue;  /* of launches; NULL: there is none (yet) */
    struct gni_cuda_gate gate;
    atomic_int launch_run; /* launches since the driver was called for anything else */
};

static inline struct gni_cuda_device *gni_cuda_device_of(gn_device *device)
{
    gni_assert(device->type == GN_DEVICE_CUDA);
    return (struct gni_cuda_device *)(void *)device;
}

static inline struct gni_cuda_device *gni_cuda_device_of_stream(const gn_stream *stream)
{
    return gni_cuda_device_of(stream->device);
}

/* What a driver call minds, and what minds it. */
enum gni_cuda_way {
    GNI_CUDA_PLAIN,
    /* Captures that are under way do not mind the call, nor it them. For calls that the driver forbids during a capture
     * because they might wait for it (and that then spoil it, be it another thread's), but which here have nothing to
     * do with what is captured. */
    GNI_CUDA_RELAXED,
    /* The call gives the GPU work: it first reports a queued launch that failed (cuda_queue.h), and passes the gate
     * (cuda_gate.h). */
    GNI_CUDA_SUBMITTING,
};

/* One visit to a device's context. */
struct gni_cuda_scope {
    struct gni_cuda_device *device;
    bool is_pushed;           /* the context was not current before */
    bool is_relaxed;          /* the thread's capture mode was another before */
    bool is_inside;           /* the gate */
    CUstreamCaptureMode mode; /* it was this one */
};

/* Makes the context current. On failure nothing changed and leave must not be called. */
gn_status gni_cuda_enter(struct gni_cuda_device *device, enum gni_cuda_way way,
                         struct gni_cuda_scope *scope);

/* The same for a call of one function, which an older driver may not have: GN_ERROR_UNSUPPORTED says what is lost
 * without it. */
gn_status gni_cuda_enter_for(struct gni_cuda_device *device, enum gni_cuda_way way,
                             const char *function, bool is_there, struct gni_cuda_scope *scope);

/* GNI_CUDA_RELAXED, for a visit that was not begun by gni_cuda_enter(). */
void gni_cuda_relax(struct gni_cuda_scope *scope);

/* Restores the caller's context and turns the result of a driver function into a status. */
gn_status gni_cuda_leave(struct gni_cuda_scope *scope, const char *function, CUresult result);

#define GNI_CUDA_CALL(way, cuda_device, function, ...)                                           \
    do {                                                                                         \
        struct gni_cuda_device *call_device = (cuda_device);                                     \
        const struct gni_cuda_functions *call_functions = &call_device->driver->functions;       \
        struct gni_cuda_scope call_scope;                                                        \
        GN_TRY(gni_cuda_enter_for(call_device, way, #function, call_functions->function != NULL, \
                                  &call_scope));                                                 \
        GN_TRY(gni_cuda_leave(&call_scope, #function, call_functions->function(__VA_ARGS__)));   \
    } while (0)

#define GNI_CUDA_TRY(cuda_device, ...) GNI_CUDA_CALL(GNI_CUDA_PLAIN, cuda_device, __VA_ARGS__)
#define GNI_CUDA_TRY_RELAXED(cuda_device, ...) \
    GNI_CUDA_CALL(GNI_CUDA_RELAXED, cuda_device, __VA_ARGS__)
#define GNI_CUDA_SUBMIT(cuda_device, ...) \
    GNI_CUDA_CALL(GNI_CUDA_SUBMITTING, cuda_device, __VA_ARGS__)

/* ---- devices: cuda_device.c ----------------------------------------------------------------- */

gn_status gni_cuda_device_count(int *count);

/* Borrows a device, retaining its primary context at the first use. The index was checked. */
gn_status gni_cuda_device_open(int index, gn_device **device);

/* Whether a device has been started, and the driver is there. */
bool gni_cuda_is_started(void);

/* Releases the contexts of devices without living objects; returns how many objects are left. */
int gni_cuda_devices_close(void);

/* ---- memory, copies: cuda_memory.c ---------------------------------------------------------- */

gn_status gni_cuda_memory_alloc(gn_device *device, size_t nbytes, void **pointer);
gn_status gni_cuda_memory_free(gn_device *device, void *pointer, size_t nbytes);
gn_status gni_cuda_memory_alloc_async(gn_stream *stream, size_t nbytes, void **pointer);
gn_status gni_cuda_memory_free_async(gn_stream *stream, void *pointer);
gn_status gni_cuda_virtual_granularity(gn_device *device, size_t *bytes);
gn_status gni_cuda_virtual_reserve(gn_device *device, size_t nbytes, void **address);
gn_status gni_cuda_virtual_release(gn_device *device, void *address, size_t nbytes);
gn_status gni_cuda_physical_create(gn_device *device, size_t nbytes, uint64_t *handle);
gn_status gni_cuda_physical_release(gn_device *device, uint64_t handle);
gn_status gni_cuda_virtual_map(gn_device *device, void *address, size_t nbytes, uint64_t handle);
gn_status gni_cuda_virtual_unmap(gn_device *device, void *address, size_t nbytes);
gn_status gni_cuda_virtual_grant(gn_device *device, void *address, size_t nbytes);
gn_status gni_cuda_host_alloc(gn_device *device, size_t nbytes, void **pointer);
gn_status gni_cuda_host_free(gn_device *device, void *pointer, size_t nbytes);
gn_status gni_cuda_host_register(gn_device *device, void *pointer, size_t nbytes);
gn_status gni_cuda_host_unregister(gn_device *device, void *pointer);
gn_status gni_cuda_copy(gn_stream *stream, void *destination, const void *source, size_t nbytes);
gn_status gni_cuda_fill(gn_stream *stream, void *destination, uint32_t value, size_t element_size,
                        size_t count);

/* ---- streams and events: cuda_stream.c ------------------------------------------------------ */

gn_status gni_cuda_stream_open(gn_stream *stream);
void gni_cuda_stream_close(gn_stream *stream);
gn_status gni_cuda_stream_id(gn_stream *stream, uint64_t *id);
gn_status gni_cuda_stream_query(gn_stream *stream);
gn_status gni_cuda_stream_synchronize(gn_stream *stream);
gn_status gni_cuda_stream_wait_event(gn_stream *stream, gn_event *event);
gn_status gni_cuda_stream_is_capturing(gn_stream *stream, bool *is_capturing);
gn_status gni_cuda_event_open(gn_event *event);
void gni_cuda_event_close(gn_event *event);
gn_status gni_cuda_event_record(gn_event *event, gn_stream *stream);
gn_status gni_cuda_event_query(gn_event *event);
gn_status gni_cuda_event_synchronize(gn_event *event);
gn_status gni_cuda_event_elapsed(gn_event *start, gn_event *end, float *milliseconds);

/* ---- kernels: cuda_module.c ----------------------------------------------------------------- */

gn_status gni_cuda_module_load(gn_device *device, const void *image, struct gni_module *module);
gn_status gni_cuda_module_unload(struct gni_module *module);
gn_status gni_cuda_function_find(const struct gni_module *module, const char *name,
                                 struct gni_function *function);
gn_status gni_cuda_function_properties(const struct gni_function *function,
                                       struct gni_function_properties *properties);
gn_status gni_cuda_function_allow_shared(const struct gni_function *function, size_t nbytes);
gn_status gni_cuda_function_parameter(const struct gni_function *function, size_t index,
                                      size_t *nbytes);
/* A launch as the driver is asked for it: by cuLaunchKernelEx if it is early. */
struct gni_cuda_launch {
    CUfunction function;
    CUstream stream;
    unsigned grid[3], block[3], shared_bytes;
    bool is_early;
};

struct gni_cuda_launch gni_cuda_launch_of(const struct gni_function *function,
                                          const gn_stream *stream, const struct gni_launch *launch);

/* With the context current. Gives the name of the driver's function, too. */
CUresult gni_cuda_launch_submit(const struct gni_cuda_driver *driver,
                                const struct gni_cuda_launch *launch, void **arguments,
                                const char **name);

gn_status gni_cuda_function_launch(const struct gni_function *function, gn_stream *stream,
                                   const struct gni_launch *launch);

/* ---- graphs: cuda_graph.c ------------------------------------------------------------------- */

gn_status gni_cuda_graph_begin(gn_stream *stream);
gn_status gni_cuda_graph_end(gn_stream *stream, struct gni_graph *graph);
gn_status gni_cuda_graph_launch(const struct gni_graph *graph, gn_stream *stream);
void gni_cuda_graph_close(struct gni_graph *graph);

#endif
