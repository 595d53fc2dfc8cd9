/*
 * fake_nvtx.c: a stand-in for a tool that takes marks of memory, as compute-sanitizer does: it writes
 * down what it is told, and counts what the real one would complain about.
 *
 * Threads: none of its own. The caller says one thing at a time, which is checked.
 */
#include "fake/fake_nvtx.h"

#include "memory/nvtx_api.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    RANGES_MAX = 4096,
};

struct range {
    uintptr_t base;
    size_t nbytes;
};

static struct range heaps[RANGES_MAX], regions[RANGES_MAX];
static int heap_count, region_count, mistake_count;
static char calls[1 << 16];
static size_t calls_length;
static atomic_bool is_busy;

static void require(bool condition)
{
    mistake_count += !condition;
}

static void call_begin(const char *name, uintptr_t base, size_t nbytes)
{
    require(!atomic_exchange(&is_busy, true));
    char line[128];
    int length = nbytes == 0
                     ? snprintf(line, sizeof line, "%s %p\n", name, (void *)base)
                     : snprintf(line, sizeof line, "%s %p %zu\n", name, (void *)base, nbytes);
    if (calls_length + (size_t)length < sizeof calls) {
        memcpy(calls + calls_length, line, (size_t)length + 1);
        calls_length += (size_t)length;
    }
}

static void call_end(void)
{
    atomic_store(&is_busy, false);
}

/* ---- ranges --------------------------------------------------------------------------------- */

static void range_add(struct range *ranges, int *count, uintptr_t base, size_t nbytes)
{
    require(*count < RANGES_MAX && nbytes > 0);
    for (int i = 0; i < *count; i++)
        require(base + nbytes <= ranges[i].base || ranges[i].base + ranges[i].nbytes <= base);
    if (*count < RANGES_MAX)
        ranges[(*count)++] = (struct range){base, nbytes};
}

static const struct range *range_find(const struct range *ranges, int count, uintptr_t base)
{
    for (int i = 0; i < count; i++)
        if (ranges[i].base == base)
            return &ranges[i];
    return NULL;
}

static void range_remove(struct range *ranges, int *count, uintptr_t base)
{
    const struct range *range = range_find(ranges, *count, base);
    require(range != NULL);
    if (range != NULL)
        ranges[range - ranges] = ranges[--*count];
}

/* The real tool wants one; the driver is the one that the test has named. */
static bool context_is_current(void)
{
    const char *path = getenv("GENESIS_CUDA_DRIVER");
    void *driver = path == NULL ? NULL : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = driver == NULL ? NULL : dlsym(driver, "cuCtxGetCurrent");
    int (*get_current)(void **context);
    void *context = NULL;
    memcpy(&get_current, &symbol, sizeof get_current);
    return get_current != NULL && get_current(&context) == 0 && context != NULL;
}

/* ---- the functions -------------------------------------------------------------------------- */

static nvtxMemHeapHandle_t heap_register(nvtxDomainHandle_t domain, const nvtxMemHeapDesc_t *heap)
{
    const nvtxMemVirtualRangeDesc_t *range = heap->typeSpecificDesc;
    uintptr_t base = (uintptr_t)range->ptr;
    call_begin("heap", base, range->size);
    require(domain == NULL && heap->extCompatID == NVTX_EXT_COMPATID_MEM);
    require(heap->structSize == sizeof *heap && heap->typeSpecificDescSize == sizeof *range);
    require(heap->usage == NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR);
    require(heap->type == NVTX_MEM_TYPE_VIRTUAL_ADDRESS && heap->reserved0 == 0);
    require(heap->category == 0 && heap->messageType == 0 && heap->message.ascii == NULL);
    require(context_is_current());
    const char *knob = getenv("FAKE_NVTX");
    bool is_refused = knob != NULL && strcmp(knob, "heapless") == 0;
    if (!is_refused)
        range_add(heaps, &heap_count, base, range->size);
    call_end();
    return is_refused ? NULL : (nvtxMemHeapHandle_t)base;
}

static void heap_unregister(nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap)
{
    uintptr_t base = (uintptr_t)heap;
    call_begin("heap_end", base, 0);
    require(domain == NULL);
    const struct range *range = range_find(heaps, heap_count, base);
    for (int i = region_count; range != NULL && i-- > 0;)
        if (regions[i].base >= base && regions[i].base < base + range->nbytes)
            regions[i] = regions[--region_count];
    range_remove(heaps, &heap_count, base);
    call_end();
}

static void regions_register(nvtxDomainHandle_t domain, const nvtxMemRegionsRegisterBatch_t *batch)
{
    const nvtxMemVirtualRangeDesc_t *range = batch->regionDescElements;
    uintptr_t base = (uintptr_t)range->ptr;
    call_begin("region", base, range->size);
    require(domain == NULL && batch->extCompatID == NVTX_EXT_COMPATID_MEM);
    require(batch->structSize == sizeof *batch && batch->regionDescElementSize == sizeof *range);
    require(batch->regionType == NVTX_MEM_TYPE_VIRTUAL_ADDRESS && batch->regionCount == 1);
    const struct range *heap = range_find(heaps, heap_count, (uintptr_t)batch->heap);
    require(heap != NULL && base >= heap->base && base - heap->base + range->size <= heap->nbytes);
    range_add(regions, &region_count, base, range->size);
    call_end();
}

static void regions_unregister(nvtxDomainHandle_t domain,
                               const nvtxMemRegionsUnregisterBatch_t *batch)
{
    uintptr_t base = (uintptr_t)batch->refElements->pointer;
    call_begin("region_end", base, 0);
    require(domain == NULL && batch->extCompatID == NVTX_EXT_COMPATID_MEM);
    require(batch->structSize == sizeof *batch && batch->refCount == 1);
    require(batch->refType == NVTX_MEM_REGION_REF_TYPE_POINTER &&
            batch->refElementSize == sizeof *batch->refElements);
    range_remove(regions, &region_count, base);
    call_end();
}

/* ---- what is exported ----------------------------------------------------------------------- */

EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
#define FAKE_NVTX_DECLARE(result, name, arguments) EXPORT result fake_nvtx_##name arguments;
FAKE_NVTX_CONTROLS(FAKE_NVTX_DECLARE)

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    const char *knob = getenv("FAKE_NVTX");
    if (knob != NULL && strcmp(knob, "refuse") == 0)
        return 0;
    require(module->nvtxVer == NVTX_VERSION && module->structSize == sizeof *module);
    require(module->moduleId == NVTX_EXT_MODULEID_MEM);
    require(module->compatId == NVTX_EXT_COMPATID_MEM && module->segmentsCount == 1);
    require(module->segments->segmentId == 1);
    require(module->segments->slotCount == NVTX_EXT_MEM_SLOT_COUNT);
    intptr_t *slots = module->segments->functionSlots;
    slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = (intptr_t)heap_register;
    slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = (intptr_t)heap_unregister;
    slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = (intptr_t)regions_register;
    if (knob == NULL || strcmp(knob, "partial") != 0)
        slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = (intptr_t)regions_unregister;
    return 1;
}

const char *fake_nvtx_calls(void)
{
    return calls;
}

int fake_nvtx_mistakes(void)
{
    return mistake_count;
}

int fake_nvtx_live(void)
{
    return region_count;
}
