/*
 * driver_api.h: the part of the CUDA driver's binary interface that we call, in our own words.
 *
 * The library is built without CUDA's headers and is not linked with CUDA, so that one binary runs
 * on machines with and without a driver. Names, values and layouts are NVIDIA's; each of them is
 * compared with the real headers by tests/interface, wherever a toolkit is installed. That test
 * reads this file with a strict grammar and refuses what it does not understand, so:
 *
 *   1. Only typedefs, constants and the one table of functions live here; no inline code.
 *   2. A constant has its number written out. Enums hold the constants we use, not all there are.
 *   3. The driver may return values that are not named here; a switch needs a default.
 *   4. The ABI of each function is fixed by `version`. Never raise one because a newer toolkit
 *      calls a newer ABI by the same name: old drivers do not have it.
 */
#ifndef GNI_DEVICE_CUDA_DRIVER_API_H
#define GNI_DEVICE_CUDA_DRIVER_API_H

#include <stddef.h>
#include <stdint.h>

/*
 * The oldest driver that we support, as cuDriverGetVersion() gives it: 470, which came with CUDA
 * 11.4. A REQUIRED function below may not be newer than this.
 */
#define GNI_CUDA_OLDEST_VERSION 11040

/* ---- Handles and numbers ---- */

typedef uint64_t cuuint64_t;

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUkern_st *CUkernel;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

/*
 * The two implicit streams; a null handle means the first. Neither may be destroyed, and work on
 * the legacy stream waits for every stream made without CU_STREAM_NON_BLOCKING.
 */
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

/* ---- Results ---- */

/*
 * "sticky": NVIDIA says that the context, and in most cases the process, cannot use CUDA after
 * this; every later call gives the same result.
 */
typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4, /* the process is exiting and the driver is gone */
    CUDA_ERROR_STUB_LIBRARY = 34, /* the toolkit's stub was loaded in place of the driver */
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214, /* the hardware failed: treat as sticky */
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220, /* the hardware failed: treat as sticky */
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_CONTAINED = 226, /* sticky */
    CUDA_ERROR_INVALID_SOURCE = 300,
    CUDA_ERROR_FILE_NOT_FOUND = 301,
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,       /* not a failure: the work is still going on */
    CUDA_ERROR_ILLEGAL_ADDRESS = 700, /* sticky */
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702, /* sticky */
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710, /* sticky */
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,  /* sticky */
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,   /* sticky */
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,    /* sticky */
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717, /* sticky */
    CUDA_ERROR_INVALID_PC = 718,            /* sticky */
    CUDA_ERROR_LAUNCH_FAILED = 719,         /* sticky */
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,    /* sticky */
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
    CUDA_ERROR_MPS_RPC_FAILURE = 806,
    CUDA_ERROR_MPS_CLIENT_TERMINATED = 810, /* sticky */
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    CUDA_ERROR_EXTERNAL_DEVICE = 911, /* sticky */
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

/* ---- Devices ---- */

typedef enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20, /* a CUcomputemode */
    CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
    CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,       /* kHz */
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37, /* bits */
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,           /* bytes */
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
} CUdevice_attribute;

typedef enum CUcomputemode_enum {
    CU_COMPUTEMODE_DEFAULT = 0,
    CU_COMPUTEMODE_PROHIBITED = 2,
    CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
} CUcomputemode;

/* ---- Streams and events ---- */

typedef enum CUstream_flags_enum {
    CU_STREAM_DEFAULT = 0,
    CU_STREAM_NON_BLOCKING = 1, /* does not wait for the legacy stream, nor it for this one */
} CUstream_flags;

typedef enum CUevent_flags_enum {
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_EVENT_INTERPROCESS = 4,
} CUevent_flags;

typedef enum CUevent_wait_flags_enum {
    CU_EVENT_WAIT_DEFAULT = 0,
    CU_EVENT_WAIT_EXTERNAL = 1,
} CUevent_wait_flags;

typedef enum CUstreamCaptureStatus_enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
} CUstreamCaptureStatus;

/* Which calls of which threads would spoil a capture: those of all, of its own, or none. */
typedef enum CUstreamCaptureMode_enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;

/* ---- Host memory ---- */

#define CU_MEMHOSTALLOC_PORTABLE 0x01
#define CU_MEMHOSTALLOC_DEVICEMAP 0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED 0x04

#define CU_MEMHOSTREGISTER_PORTABLE 0x01
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x02
#define CU_MEMHOSTREGISTER_IOMEMORY 0x04
#define CU_MEMHOSTREGISTER_READ_ONLY 0x08

/* ---- Virtual memory: addresses and physical memory are reserved apart, then mapped ---- */

typedef enum CUmemAllocationType_enum {
    CU_MEM_ALLOCATION_TYPE_INVALID = 0,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
} CUmemAllocationType;

typedef enum CUmemAllocationHandleType_enum {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
} CUmemAllocationHandleType;

typedef enum CUmemLocationType_enum {
    CU_MEM_LOCATION_TYPE_INVALID = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
} CUmemLocationType;

typedef enum CUmemAccess_flags_enum {
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
} CUmemAccess_flags;

typedef enum CUmemAllocationGranularity_flags_enum {
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
} CUmemAllocationGranularity_flags;

typedef struct CUmemLocation_st {
    CUmemLocationType type;
    int id; /* the device's ordinal */
} CUmemLocation;

/* Begin with zeroes: the pointer, which is for Windows, and `reserved` have to be zero. */
typedef struct CUmemAllocationProp_st {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc_st {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

/* ---- Kernels ---- */

typedef enum CUfunction_attribute_enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
} CUfunction_attribute;

typedef enum CUlaunchAttributeID_enum {
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
} CUlaunchAttributeID;

typedef union CUlaunchAttributeValue_union {
    char pad[64];
    int programmaticStreamSerializationAllowed;
    struct {
        CUevent event;
        int flags;
        int triggerAtBlockStart;
    } programmaticEvent; /* not used: it gives the union its alignment */
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
    CUlaunchAttributeID id;
    char pad[4];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
    CUfunction func;
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern; /* not used: where there is no func */
    CUcontext ctx; /* likewise */
} CUDA_KERNEL_NODE_PARAMS_v2;

/* How a kernel in a graph waits for another: for its end (all zero), or by itself, once the other lets it begin. */
#define CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC 1

typedef enum CUgraphDependencyType_enum {
    CU_GRAPH_DEPENDENCY_TYPE_DEFAULT = 0,
    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1,
} CUgraphDependencyType;

typedef struct CUgraphEdgeData_st {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
} CUgraphEdgeData;

/* ---- How the driver is asked for its functions ---- */

typedef enum CUdriverProcAddress_flags_enum {
    CU_GET_PROC_ADDRESS_DEFAULT = 0,
    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
} CUdriverProcAddress_flags;

typedef enum CUdriverProcAddressQueryResult_enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} CUdriverProcAddressQueryResult;

/*
 * Two ABIs: a driver of CUDA 11.3 or newer exports "cuGetProcAddress", one of 12.0 or newer also
 * "cuGetProcAddress_v2", which says why a function was not found.
 */
// clang-format off
typedef CUresult (*PFN_cuGetProcAddress_v11030)(const char *symbol, void **function,
                                                int cuda_version, cuuint64_t flags);
typedef CUresult (*PFN_cuGetProcAddress_v12000)(const char *symbol, void **function,
                                                int cuda_version, cuuint64_t flags,
                                                CUdriverProcAddressQueryResult *status);
// clang-format on

/*
 * Every function that we call: X(name, symbol, version, need, arguments, lost).
 *
 *   name       the name in the documentation, and the one that cuGetProcAddress is asked for
 *   symbol     what the library exports this ABI as, for dlsym
 *   version    the CUDA version for which cuGetProcAddress gives exactly this ABI
 *   need       REQUIRED: without it there is no device; OPTIONAL: the pointer may be NULL
 *   arguments  all functions return a CUresult
 *   lost       what a user does not have where an OPTIONAL function is missing
 *
 * cuCtxSynchronize, cuEventElapsedTime and cuStreamGetCtx have newer ABIs (13.0, 12.8, 12.5) of
 * which we have no need, so these stay at the version that every supported driver has.
 */
// clang-format off
#define GNI_CUDA_FUNCTIONS(X)                                                                      \
    /* the driver */                                                                               \
    X(cuInit, "cuInit", 2000, REQUIRED, (unsigned int flags), "")                                  \
    X(cuDriverGetVersion, "cuDriverGetVersion", 2020, REQUIRED, (int *version), "")                \
    X(cuGetErrorName, "cuGetErrorName", 6000, REQUIRED, (CUresult error, const char **name), "")   \
    X(cuGetErrorString, "cuGetErrorString", 6000, REQUIRED,                                        \
      (CUresult error, const char **text), "")                                                     \
    /* devices */                                                                                  \
    X(cuDeviceGetCount, "cuDeviceGetCount", 2000, REQUIRED, (int *count), "")                      \
    X(cuDeviceGet, "cuDeviceGet", 2000, REQUIRED, (CUdevice *device, int ordinal), "")             \
    X(cuDeviceGetName, "cuDeviceGetName", 2000, REQUIRED,                                          \
      (char *name, int capacity, CUdevice device), "")                                             \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", 3020, REQUIRED,                                     \
      (size_t *nbytes, CUdevice device), "")                                                       \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, REQUIRED,                                \
      (int *value, CUdevice_attribute attribute, CUdevice device), "")                             \
    X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", 11040, OPTIONAL,                                      \
      (CUuuid *uuid, CUdevice device), "the UUID of a device")                                     \
    X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010, OPTIONAL,                                  \
      (char *bus_id, int capacity, CUdevice device), "the PCI address of a device")                \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000, OPTIONAL,                              \
      (int *can_access, CUdevice device, CUdevice peer), "whether devices reach each other")       \
    /* contexts */                                                                                 \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, REQUIRED,                        \
      (CUcontext *context, CUdevice device), "")                                                   \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", 11000, REQUIRED,                  \
      (CUdevice device), "")                                                                       \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, REQUIRED, (CUcontext *context), "")                \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", 4000, REQUIRED, (CUcontext context), "")            \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", 4000, REQUIRED, (CUcontext *context), "")             \
    X(cuCtxSynchronize, "cuCtxSynchronize", 2000, REQUIRED, (void), "")                            \
    X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050, REQUIRED,                  \
      (int *least, int *greatest), "")                                                             \
    /* memory */                                                                                   \
    X(cuMemGetInfo, "cuMemGetInfo_v2", 3020, REQUIRED, (size_t *free, size_t *total), "")          \
    X(cuMemAlloc, "cuMemAlloc_v2", 3020, REQUIRED, (CUdeviceptr *pointer, size_t nbytes), "")      \
    X(cuMemFree, "cuMemFree_v2", 3020, REQUIRED, (CUdeviceptr pointer), "")                        \
    X(cuMemAllocAsync, "cuMemAllocAsync", 11020, OPTIONAL,                                         \
      (CUdeviceptr *pointer, size_t nbytes, CUstream stream),                                      \
      "the stream-ordered allocation policy")                                                      \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, OPTIONAL,                                           \
      (CUdeviceptr pointer, CUstream stream), "the stream-ordered allocation policy")              \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, REQUIRED,                                            \
      (void **pointer, size_t nbytes, unsigned int flags), "")                                     \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, REQUIRED, (void *pointer), "")                         \
    X(cuMemHostRegister, "cuMemHostRegister_v2", 6050, REQUIRED,                                   \
      (void *pointer, size_t nbytes, unsigned int flags), "")                                      \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000, REQUIRED, (void *pointer), "")             \
    X(cuMemcpyAsync, "cuMemcpyAsync", 4000, REQUIRED,                                              \
      (CUdeviceptr target, CUdeviceptr source, size_t nbytes, CUstream stream), "")                \
    X(cuMemsetD8Async, "cuMemsetD8Async", 3020, REQUIRED,                                          \
      (CUdeviceptr target, unsigned char value, size_t count, CUstream stream), "")                \
    X(cuMemsetD16Async, "cuMemsetD16Async", 3020, REQUIRED,                                        \
      (CUdeviceptr target, unsigned short value, size_t count, CUstream stream), "")               \
    X(cuMemsetD32Async, "cuMemsetD32Async", 3020, REQUIRED,                                        \
      (CUdeviceptr target, unsigned int value, size_t count, CUstream stream), "")                 \
    /* virtual memory */                                                                           \
    X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020, OPTIONAL,             \
      (size_t *granularity, const CUmemAllocationProp *properties,                                 \
       CUmemAllocationGranularity_flags option),                                                   \
      "the virtual allocation policy")                                                             \
    X(cuMemAddressReserve, "cuMemAddressReserve", 10020, OPTIONAL,                                 \
      (CUdeviceptr *pointer, size_t nbytes, size_t alignment, CUdeviceptr wish,                    \
       unsigned long long flags),                                                                  \
      "the virtual allocation policy")                                                             \
    X(cuMemAddressFree, "cuMemAddressFree", 10020, OPTIONAL,                                       \
      (CUdeviceptr pointer, size_t nbytes), "the virtual allocation policy")                       \
    X(cuMemCreate, "cuMemCreate", 10020, OPTIONAL,                                                 \
      (CUmemGenericAllocationHandle *handle, size_t nbytes,                                        \
       const CUmemAllocationProp *properties, unsigned long long flags),                           \
      "the virtual allocation policy")                                                             \
    X(cuMemRelease, "cuMemRelease", 10020, OPTIONAL,                                               \
      (CUmemGenericAllocationHandle handle), "the virtual allocation policy")                      \
    X(cuMemMap, "cuMemMap", 10020, OPTIONAL,                                                       \
      (CUdeviceptr pointer, size_t nbytes, size_t offset, CUmemGenericAllocationHandle handle,     \
       unsigned long long flags),                                                                  \
      "the virtual allocation policy")                                                             \
    X(cuMemUnmap, "cuMemUnmap", 10020, OPTIONAL,                                                   \
      (CUdeviceptr pointer, size_t nbytes), "the virtual allocation policy")                       \
    X(cuMemSetAccess, "cuMemSetAccess", 10020, OPTIONAL,                                           \
      (CUdeviceptr pointer, size_t nbytes, const CUmemAccessDesc *descriptors, size_t count),      \
      "the virtual allocation policy")                                                             \
    /* streams */                                                                                  \
    X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, REQUIRED,                    \
      (CUstream *stream, unsigned int flags, int priority), "")                                    \
    X(cuStreamDestroy, "cuStreamDestroy_v2", 4000, REQUIRED, (CUstream stream), "")                \
    X(cuStreamQuery, "cuStreamQuery", 2000, REQUIRED, (CUstream stream), "")                       \
    X(cuStreamSynchronize, "cuStreamSynchronize", 2000, REQUIRED, (CUstream stream), "")           \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, REQUIRED,                                      \
      (CUstream stream, CUevent event, unsigned int flags), "")                                    \
    X(cuStreamGetId, "cuStreamGetId", 12000, OPTIONAL,                                             \
      (CUstream stream, unsigned long long *id),                                                   \
      "telling a reused stream handle from the stream it belonged to before")                      \
    X(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, REQUIRED,                                 \
      (CUstream stream, CUstreamCaptureStatus *status), "")                                        \
    X(cuStreamGetPriority, "cuStreamGetPriority", 5050, REQUIRED,                                  \
      (CUstream stream, int *priority), "")                                                        \
    X(cuStreamGetCtx, "cuStreamGetCtx", 9020, OPTIONAL,                                            \
      (CUstream stream, CUcontext *context),                                                       \
      "the check that a stream made elsewhere belongs to the device")                              \
    /* graphs */                                                                                   \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", 10010, OPTIONAL,                            \
      (CUstream stream, CUstreamCaptureMode mode), "graphs")                                       \
    X(cuStreamEndCapture, "cuStreamEndCapture", 10000, OPTIONAL,                                   \
      (CUstream stream, CUgraph *graph), "graphs")                                                 \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, OPTIONAL,     \
      (CUstreamCaptureMode *mode), "memory during a capture")                                      \
    X(cuGraphCreate, "cuGraphCreate", 10000, OPTIONAL, (CUgraph *graph, unsigned int flags),       \
      "launches that are submitted together")                                                      \
    X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2", 12000, OPTIONAL,                            \
      (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,            \
       const CUDA_KERNEL_NODE_PARAMS_v2 *parameters),                                              \
      "launches that are submitted together")                                                      \
    X(cuGraphAddDependencies, "cuGraphAddDependencies_v2", 12030, OPTIONAL,                        \
      (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,                              \
       const CUgraphEdgeData *edges, size_t count),                                                \
      "launches that are submitted together")                                                      \
    X(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2", 12000, OPTIONAL,        \
      (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters),          \
      "launches that are submitted together")                                                      \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, OPTIONAL,                 \
      (CUgraphExec *exec, CUgraph graph, unsigned long long flags), "graphs")                      \
    X(cuGraphLaunch, "cuGraphLaunch", 10000, OPTIONAL,                                             \
      (CUgraphExec exec, CUstream stream), "graphs")                                               \
    X(cuGraphDestroy, "cuGraphDestroy", 10000, OPTIONAL, (CUgraph graph), "graphs")                \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, OPTIONAL, (CUgraphExec exec), "graphs")     \
    /* events */                                                                                   \
    X(cuEventCreate, "cuEventCreate", 2000, REQUIRED, (CUevent *event, unsigned int flags), "")    \
    X(cuEventDestroy, "cuEventDestroy_v2", 4000, REQUIRED, (CUevent event), "")                    \
    X(cuEventRecord, "cuEventRecord", 2000, REQUIRED, (CUevent event, CUstream stream), "")        \
    X(cuEventQuery, "cuEventQuery", 2000, REQUIRED, (CUevent event), "")                           \
    X(cuEventSynchronize, "cuEventSynchronize", 2000, REQUIRED, (CUevent event), "")               \
    X(cuEventElapsedTime, "cuEventElapsedTime", 2000, REQUIRED,                                    \
      (float *elapsed_ms, CUevent start, CUevent end), "")                                         \
    /* kernels */                                                                                  \
    X(cuModuleLoadData, "cuModuleLoadData", 2000, REQUIRED,                                        \
      (CUmodule *module, const void *image), "")                                                   \
    X(cuModuleUnload, "cuModuleUnload", 2000, REQUIRED, (CUmodule module), "")                     \
    X(cuModuleGetFunction, "cuModuleGetFunction", 2000, REQUIRED,                                  \
      (CUfunction *function, CUmodule module, const char *name), "")                               \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", 2020, REQUIRED,                                    \
      (int *value, CUfunction_attribute attribute, CUfunction function), "")                       \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, REQUIRED,                                    \
      (CUfunction function, CUfunction_attribute attribute, int value), "")                        \
    X(cuFuncGetParamInfo, "cuFuncGetParamInfo", 12040, OPTIONAL,                                   \
      (CUfunction function, size_t index, size_t *offset, size_t *nbytes),                         \
      "checks of the arguments of users' kernels")                                                 \
    X(cuLaunchKernel, "cuLaunchKernel", 4000, REQUIRED,                                            \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,         \
       unsigned int block_x, unsigned int block_y, unsigned int block_z,                           \
       unsigned int shared_bytes, CUstream stream, void **parameters, void **extra),               \
      "")                                                                                          \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, OPTIONAL,                                       \
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),        \
      "kernels that are launched while the one before them ends")
// clang-format on

/* One pointer for each function of the table. */
struct gni_cuda_functions {
#define GNI_CUDA_FIELD(name, symbol, version, need, arguments, lost) CUresult(*name) arguments;
    GNI_CUDA_FUNCTIONS(GNI_CUDA_FIELD)
#undef GNI_CUDA_FIELD
};

#endif
