/*
 * mark.c: the tool is loaded at the first segment, and told of everything after that.
 *
 *   off <------ unknown ------> wanted ------> on
 *    ^                            |             in a child after fork(): off
 *    +----------------------------+  the tool cannot be loaded or lacks a function
 *
 * Wanted means that the variable is set. The tool is not started before the first segment: CUDA has to
 * be there first, as it is when the driver has given memory.
 *
 * What compute-sanitizer 2025.3 needs was tried on a GPU: neither a domain nor the rest of NVTX has to
 * exist; nvtxMemHeapRegister wants a current context, the others do not; taking back a region that it
 * does not know is a warning.
 *
 * Threads: mark_mutex guards all but the state, and is held while the tool is called: what is said of an
 * address keeps its order.
 */
#include "memory/mark.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"
#include "base/thread.h"
#include "device/cuda/cuda.h"
#include "memory/nvtx_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum mark_state {
    MARK_UNKNOWN,
    MARK_OFF,
    MARK_WANTED,
    MARK_ON,
};

struct mark_segment {
    uintptr_t base;
    size_t nbytes;
    nvtxMemHeapHandle_t heap;
};

static _Atomic(enum mark_state) mark_state;
static struct gni_once mark_once = GNI_ONCE_INIT;
static struct gni_mutex mark_mutex = GNI_MUTEX_INIT;
static struct gni_nvtx_functions nvtx;
static struct mark_segment *segments; /* sorted by address */
static size_t segment_count;
static size_t segment_capacity;

/* ---- the tool ------------------------------------------------------------------------------- */

/* An absolute path, or a file name that the system's loader finds: nothing is loaded from the current directory. */
static const char *tool_path(void)
{
    const char *path = secure_getenv("NVTX_INJECTION64_PATH");
    if (path == NULL || path[0] == '\0')
        return NULL;
    return path[0] == '/' || strchr(path, '/') == NULL ? path : NULL;
}

/* Takes our functions out of the slots; false when one is missing. */
static bool tool_bind(const intptr_t *slots)
{
    bool is_complete = true;
#define MARK_BIND(result, name, need, arguments)                        \
    memcpy(&nvtx.name, &slots[NVTX3EXT_CBID_##name], sizeof nvtx.name); \
    is_complete = is_complete && nvtx.name != NULL;
    GNI_NVTX_FUNCTIONS(MARK_BIND)
#undef MARK_BIND
    return is_complete;
}

/* NULL, or why there is no tool. Its library stays loaded: it has threads and handlers of its own. */
static const char *tool_open(void)
{
    static intptr_t slots[NVTX_EXT_MEM_SLOT_COUNT]; /* the tool may keep their address */
    static nvtxExtModuleSegment_t segment = {
        .segmentId = 1,
        .slotCount = NVTX_EXT_MEM_SLOT_COUNT,
        .functionSlots = slots,
    };
    static nvtxExtModuleInfo_t module = {
        .nvtxVer = NVTX_VERSION,
        .structSize = sizeof module,
        .moduleId = NVTX_EXT_MODULEID_MEM,
        .compatId = NVTX_EXT_COMPATID_MEM,
        .segmentsCount = 1,
        .segments = &segment,
    };
    const char *path = tool_path();
    void *library = path == NULL ? NULL : dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return "it cannot be loaded";
    void *symbol = dlsym(library, "InitializeInjectionNvtxExtension");
    if (symbol == NULL)
        return "it does not know NVTX extensions";
    NvtxExtInitializeInjectionFunc_t initialize;
    memcpy(&initialize, &symbol, sizeof initialize);
    if (initialize(&module) == 0)
        return "it refused the memory extension";
    return tool_bind(slots) ? NULL : "it takes no marks of memory";
}

/* ---- the state ------------------------------------------------------------------------------ */

/* Nothing is said to the tool in a child: CUDA does not work there. */
static void mark_fork_done(bool is_child)
{
    if (is_child)
        atomic_store(&mark_state, MARK_OFF);
}

static const struct gni_fork_handlers mark_fork = {.mutex = &mark_mutex, .done = mark_fork_done};

static void mark_start(void)
{
    bool is_wanted = tool_path() != NULL;
    const char *given = secure_getenv("NVTX_INJECTION64_PATH");
    if (!is_wanted && given != NULL && given[0] != '\0')
        gni_log(
            GNI_LOG_WARNING,
            "NVTX_INJECTION64_PATH=%.200s is ignored: it must be an absolute path or a file name",
            given);
    if (is_wanted)
        gni_fork_register(GNI_FORK_MARK, &mark_fork);
    atomic_store(&mark_state, is_wanted ? MARK_WANTED : MARK_OFF);
}

bool gni_mark_is_on(void)
{
    enum mark_state state = atomic_load_explicit(&mark_state, memory_order_acquire);
    if (state == MARK_UNKNOWN) {
        gni_once_run(&mark_once, mark_start);
        state = atomic_load(&mark_state);
    }
    return state != MARK_OFF;
}

/*
 * Takes the lock if the tool is there. `is_first` starts it if need be. A profiler may be named by the
 * variable as well, which has no use for marks: that is no reason for a warning.
 */
static bool mark_enter(bool is_first)
{
    if (!gni_mark_is_on())
        return false;
    gni_mutex_lock(&mark_mutex);
    if (is_first && atomic_load(&mark_state) == MARK_WANTED) {
        const char *reason = tool_open();
        if (reason != NULL)
            gni_log(GNI_LOG_INFO, "no marks for the tool of NVTX_INJECTION64_PATH: %s", reason);
        atomic_store(&mark_state, reason == NULL ? MARK_ON : MARK_OFF);
    }
    if (atomic_load(&mark_state) == MARK_ON)
        return true;
    gni_mutex_unlock(&mark_mutex);
    return false;
}

static void mark_leave(void)
{
    gni_mutex_unlock(&mark_mutex);
}

/* ---- segments ------------------------------------------------------------------------------- */

/* How many segments begin at or before an address. */
static size_t segment_rank(uintptr_t address)
{
    size_t low = 0, high = segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (segments[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The marked segment around an address, or NULL. */
static struct mark_segment *segment_find(uintptr_t address)
{
    size_t rank = segment_rank(address);
    if (rank == 0 || address - segments[rank - 1].base >= segments[rank - 1].nbytes)
        return NULL;
    return &segments[rank - 1];
}

static bool segments_reserve(size_t count)
{
    if (count <= segment_capacity)
        return true;
    size_t capacity = segment_capacity == 0 ? 16 : 2 * segment_capacity;
    void *moved = gni_host_realloc(segments, capacity * sizeof *segments);
    if (moved == NULL)
        return false;
    segments = moved;
    segment_capacity = capacity;
    return true;
}

/* The heap of a segment, or NULL when the tool refuses it. The context is current. */
static nvtxMemHeapHandle_t heap_register(void *base, size_t nbytes)
{
    nvtxMemVirtualRangeDesc_t range = {.size = nbytes, .ptr = base};
    nvtxMemHeapDesc_t description = {
        .extCompatID = NVTX_EXT_COMPATID_MEM,
        .structSize = sizeof description,
        .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
        .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
        .typeSpecificDescSize = sizeof range,
        .typeSpecificDesc = &range,
    };
    return nvtx.nvtxMemHeapRegister(NULL, &description);
}

static void segment_insert(void *base, size_t nbytes, nvtxMemHeapHandle_t heap)
{
    size_t rank = segment_rank((uintptr_t)base);
    memmove(&segments[rank + 1], &segments[rank], (segment_count - rank) * sizeof *segments);
    segments[rank] = (struct mark_segment){(uintptr_t)base, nbytes, heap};
    segment_count++;
}

void gni_mark_segment_add(gn_device *device, void *base, size_t nbytes)
{
    if (device->type != GN_DEVICE_CUDA || !mark_enter(true)) /* CUDA's sanitizer knows no other */
        return;
    struct gni_cuda_scope scope;
    if (segments_reserve(segment_count + 1) &&
        gni_cuda_enter(gni_cuda_device_of(device), GNI_CUDA_PLAIN, &scope) == GN_OK) {
        nvtxMemHeapHandle_t heap = heap_register(base, nbytes);
        gn_status status = gni_cuda_leave(&scope, "nvtxMemHeapRegister", CUDA_SUCCESS);
        gni_assert(status == GN_OK);
        (void)status;
        if (heap != NULL)
            segment_insert(base, nbytes, heap);
    }
    mark_leave();
}

void gni_mark_segment_remove(void *base)
{
    if (!mark_enter(false))
        return;
    struct mark_segment *segment = segment_find((uintptr_t)base);
    if (segment != NULL && segment->base == (uintptr_t)base) {
        nvtx.nvtxMemHeapUnregister(NULL, segment->heap);
        size_t after = (size_t)(segments + segment_count - segment) - 1;
        memmove(segment, segment + 1, after * sizeof *segment);
        segment_count--;
    }
    mark_leave();
}

/* ---- blocks --------------------------------------------------------------------------------- */

void gni_mark_block_add(void *address, size_t nbytes)
{
    if (!mark_enter(false))
        return;
    const struct mark_segment *segment = segment_find((uintptr_t)address);
    if (segment != NULL) {
        nvtxMemVirtualRangeDesc_t range = {.size = nbytes > 0 ? nbytes : 1, .ptr = address};
        nvtxMemRegionsRegisterBatch_t batch = {
            .extCompatID = NVTX_EXT_COMPATID_MEM,
            .structSize = sizeof batch,
            .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
            .heap = segment->heap,
            .regionCount = 1,
            .regionDescElementSize = sizeof range,
            .regionDescElements = &range,
        };
        nvtx.nvtxMemRegionsRegister(NULL, &batch);
    }
    mark_leave();
}

void gni_mark_block_remove(void *address)
{
    if (!mark_enter(false))
        return;
    if (segment_find((uintptr_t)address) != NULL) {
        nvtxMemRegionRef_t reference = {.pointer = address};
        nvtxMemRegionsUnregisterBatch_t batch = {
            .extCompatID = NVTX_EXT_COMPATID_MEM,
            .structSize = sizeof batch,
            .refType = NVTX_MEM_REGION_REF_TYPE_POINTER,
            .refCount = 1,
            .refElementSize = sizeof reference,
            .refElements = &reference,
        };
        nvtx.nvtxMemRegionsUnregister(NULL, &batch);
    }
    mark_leave();
}
