/*
 * dlpack.h: our declaration of DLPack 1.3, the layout in which array libraries hand each other tensors.
 *
 *     DLManagedTensorVersioned          DLManagedTensor (before 1.0)
 *       version      what follows         dl_tensor
 *       manager_ctx  the producer's       manager_ctx
 *       deleter      when we are done     deleter
 *       flags
 *       dl_tensor
 *
 * Names and layout are the standard's, so that a program that has the real dlpack.h can pass its structures to the
 * functions of genesis/interop.h. tests/interface/test_dlpack.py compares every item with the real header, where
 * one is installed. Only what we use is here; enums stand as numbers of the width that they have in a structure.
 *
 * What must hold of a structure that others made, and is checked in dlpack.c:
 *   DL1  of another major version only `version`, `manager_ctx` and `deleter` may be touched;
 *   DL2  `strides` are in elements, may be negative, and NULL (before 1.2) for a contiguous tensor;
 *   DL3  `shape` may be NULL without dimensions, `data` without elements, `deleter` always;
 *   DL4  the first element lies at data + byte_offset.
 */
#ifndef GNI_TENSOR_DLPACK_H
#define GNI_TENSOR_DLPACK_H

#include <stdint.h>

enum {
    DLPACK_MAJOR_VERSION = 1,
    DLPACK_MINOR_VERSION = 3,
};

/* DLDeviceType */
enum {
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3, /* page-locked host memory */
};

/* DLDataTypeCode */
enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6,
};

enum {
    DLPACK_FLAG_BITMASK_READ_ONLY = 1,
    DLPACK_FLAG_BITMASK_IS_COPIED = 2, /* nobody but the consumer has it */
};

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef struct {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif
