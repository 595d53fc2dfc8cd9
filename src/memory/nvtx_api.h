/*
 * nvtx_api.h: the part of NVTX's memory extension that we call, in our own words.
 *
 * NVTX is how a program tells NVIDIA's tools about itself. There is no library to link: a tool names
 * its own library in the environment (NVTX_INJECTION64_PATH), the program loads it and calls its
 * InitializeInjectionNvtxExtension with an empty table of slots, and the tool puts its functions into
 * the slots that it knows. Each function has one slot, by its NVTX3EXT_CBID number.
 *
 * The rules of driver_api.h hold here too; tests/interface compares this file with the real
 * nvtx3/nvToolsExtMem.h, where a toolkit has it. Two of the structures are unions there, of which we
 * use one member each.
 */
#ifndef GNI_MEMORY_NVTX_API_H
#define GNI_MEMORY_NVTX_API_H

#include <stddef.h>
#include <stdint.h>

/* Who we are; each structure names the second number again, and its own size. */
#define NVTX_VERSION 3
#define NVTX_EXT_COMPATID_MEM 0x0102
#define NVTX_EXT_MODULEID_MEM 1
#define NVTX_EXT_MEM_SLOT_COUNT 63

/* What a heap is: memory of which only the registered regions may be used. */
#define NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR 0x1
#define NVTX_MEM_TYPE_VIRTUAL_ADDRESS 0x1
#define NVTX_MEM_REGION_REF_TYPE_POINTER 0x1

/* The slots. */
#define NVTX3EXT_CBID_nvtxMemHeapRegister 0
#define NVTX3EXT_CBID_nvtxMemHeapUnregister 1
#define NVTX3EXT_CBID_nvtxMemRegionsRegister 3
#define NVTX3EXT_CBID_nvtxMemRegionsUnregister 5

typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t; /* NULL: the default domain */
typedef struct nvtxMemHeap_v1 *nvtxMemHeapHandle_t;
typedef struct nvtxMemRegion_v1 *nvtxMemRegionHandle_t;

/* ---- what the tool's library is called with ------------------------------------------------- */

typedef intptr_t (*NvtxExtGetExportFunction_t)(uint32_t id);

typedef struct nvtxExtModuleSegment_t {
    size_t segmentId; /* 1 */
    size_t slotCount;
    intptr_t *functionSlots; /* 0 where the tool has no function */
} nvtxExtModuleSegment_t;

typedef struct nvtxExtModuleInfo_t {
    uint16_t nvtxVer;
    uint16_t structSize;
    uint16_t moduleId;
    uint16_t compatId;
    size_t segmentsCount;
    nvtxExtModuleSegment_t *segments;
    NvtxExtGetExportFunction_t getExportFunction; /* NULL */
    const void *extInfo;                          /* NULL */
} nvtxExtModuleInfo_t;

/* InitializeInjectionNvtxExtension; 0 is failure. */
typedef int (*NvtxExtInitializeInjectionFunc_t)(nvtxExtModuleInfo_t *module);

/* ---- what its functions take ---------------------------------------------------------------- */

typedef struct nvtxMemVirtualRangeDesc_v1 {
    size_t size;
    const void *ptr;
} nvtxMemVirtualRangeDesc_t;

typedef struct nvtxMessageValue_t {
    const char *ascii;
} nvtxMessageValue_t;

typedef struct nvtxMemHeapDesc_v1 {
    uint16_t extCompatID;
    uint16_t structSize;
    uint32_t reserved0;
    uint32_t usage;
    uint32_t type;
    size_t typeSpecificDescSize;
    const void *typeSpecificDesc; /* a nvtxMemVirtualRangeDesc_t */
    uint32_t category;
    uint32_t messageType;
    nvtxMessageValue_t message;
} nvtxMemHeapDesc_t;

typedef struct nvtxMemRegionsRegisterBatch_v1 {
    uint16_t extCompatID;
    uint16_t structSize;
    uint32_t regionType;
    nvtxMemHeapHandle_t heap;
    size_t regionCount;
    size_t regionDescElementSize;
    const void *regionDescElements;                 /* of nvtxMemVirtualRangeDesc_t */
    nvtxMemRegionHandle_t *regionHandleElementsOut; /* NULL: regions are known by address */
} nvtxMemRegionsRegisterBatch_t;

typedef struct nvtxMemRegionRef_t {
    const void *pointer;
} nvtxMemRegionRef_t;

typedef struct nvtxMemRegionsUnregisterBatch_v1 {
    uint16_t extCompatID;
    uint16_t structSize;
    uint32_t refType;
    size_t refCount;
    size_t refElementSize;
    const nvtxMemRegionRef_t *refElements;
} nvtxMemRegionsUnregisterBatch_t;

/*
 * Every function that we call: X(result, name, need, arguments). Without any of them the tool cannot
 * be told of blocks at all.
 */
// clang-format off
#define GNI_NVTX_FUNCTIONS(X)                                                                      \
    X(nvtxMemHeapHandle_t, nvtxMemHeapRegister, REQUIRED,                                          \
      (nvtxDomainHandle_t domain, const nvtxMemHeapDesc_t *heap))                                  \
    X(void, nvtxMemHeapUnregister, REQUIRED,                                                       \
      (nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap))                                       \
    X(void, nvtxMemRegionsRegister, REQUIRED,                                                      \
      (nvtxDomainHandle_t domain, const nvtxMemRegionsRegisterBatch_t *batch))                     \
    X(void, nvtxMemRegionsUnregister, REQUIRED,                                                    \
      (nvtxDomainHandle_t domain, const nvtxMemRegionsUnregisterBatch_t *batch))
// clang-format on

/* One pointer for each function of the table. */
struct gni_nvtx_functions {
#define GNI_NVTX_FIELD(result, name, need, arguments) result(*name) arguments;
    GNI_NVTX_FUNCTIONS(GNI_NVTX_FIELD)
#undef GNI_NVTX_FIELD
};

#endif
