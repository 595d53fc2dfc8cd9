/*
 * fake_inside.h: what the files of the stand-in share: its objects, its state, and the frame of
 * every call. The rules stand in fake_cuda.c.
 */
#ifndef GNI_TESTS_FAKE_INSIDE_H
#define GNI_TESTS_FAKE_INSIDE_H

#include "fake_cuda.h"

#include "device/cuda/driver_api.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))
#define MIB ((size_t)1 << 20)
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum {
    DEVICES_MAX = 128,
    GARBAGE = 0xA5, /* what fresh memory holds */
    THREADS_PER_BLOCK_MAX = 1024,
    SHARED_BYTES = 48 * 1024,
    SHARED_BYTES_OPTIN = 227 * 1024,
};

/* Exported under the symbol that the table gives, which is not always the name. */
#define DECLARE(name, symbol, version, need, arguments, lost) \
    EXPORT CUresult name arguments __asm__(symbol);
GNI_CUDA_FUNCTIONS(DECLARE)
#undef DECLARE

#ifdef FAKE_CUDA_OLD
/* What a driver of CUDA 11.4 lacks, and virtual memory, so that its absence is tested as well. */
__asm__(".hidden cuStreamGetId\n"
        ".hidden cuMemGetAllocationGranularity\n"
        ".hidden cuMemAddressReserve\n"
        ".hidden cuMemAddressFree\n"
        ".hidden cuMemCreate\n"
        ".hidden cuMemRelease\n"
        ".hidden cuMemMap\n"
        ".hidden cuMemUnmap\n"
        ".hidden cuMemSetAccess\n");
#endif

struct CUctx_st {
    CUdevice device;
    int retain_count;
    CUresult lost; /* what every call in this context gives; 0 while it is well */
    unsigned long long default_stream_id;
};

enum object_kind {
    OBJECT_STREAM,
    OBJECT_EVENT,
    OBJECT_MODULE,
    OBJECT_RANGE, /* sorted by address */
    OBJECT_PHYSICAL,
    OBJECT_MAPPING,
    OBJECT_HOST,
    OBJECT_KIND_COUNT,
};

/* Everything that a handle or an address can name. A handle is the object's address. */
struct object {
    struct object *next;
    CUdevice device;
    uint64_t address;        /* RANGE, MAPPING, HOST */
    size_t nbytes;           /* RANGE, PHYSICAL, MAPPING, HOST */
    unsigned char *bytes;    /* what is behind it; NULL: a reservation, or host memory of others */
    struct object *physical; /* MAPPING */
    int mapping_count;       /* PHYSICAL */
    bool is_released;        /* PHYSICAL: lives only while it is mapped */
    bool has_access;         /* MAPPING */
    bool is_recorded;        /* EVENT */
    double time_ms;          /* EVENT: of the last record */
    unsigned flags;          /* STREAM, EVENT */
    int priority;            /* STREAM */
    unsigned long long id;   /* STREAM */
    CUstreamCaptureStatus capture;
    int shared_bytes_max; /* MODULE: of its one kernel */
    char kernel[32];      /* MODULE */
};

/* The environment's knobs; see fake_cuda.h. */
struct fake_knobs {
    int devices;
    size_t memory;
    int version;
    int init_result;
    unsigned delay_us;
    const char *missing;
    bool is_forking;
};

extern struct fake_knobs knobs;
extern struct object *objects[OBJECT_KIND_COUNT];
extern struct CUctx_st contexts[DEVICES_MAX];
extern unsigned long long last_id; /* of a stream */

enum call_need {
    NEED_NOTHING,
    NEED_INIT,
    NEED_CONTEXT, /* a current one that is well */
};

struct call {
    CUresult result;
};

/* `place` is the function's place in the table, -1 until it was looked up. */
/* What FAKE_CUDA_FORKS orders. */
void driver_fork(void);

struct call call_begin(const char *function, int *place, enum call_need need);
void call_end(struct call *call);

#define DRIVER_CALL(need)                                        \
    static int driver_place = -1;                                \
    __attribute__((cleanup(call_end))) struct call driver_call = \
        call_begin(__func__, &driver_place, need);               \
    if (driver_call.result != CUDA_SUCCESS)                      \
    return driver_call.result

#define REQUIRE(condition, error) \
    do {                          \
        if (!(condition))         \
            return error;         \
    } while (0)

#define REQUIRE_DEVICE(device) \
    REQUIRE((device) >= 0 && (device) < knobs.devices, CUDA_ERROR_INVALID_DEVICE)
#define REQUIRE_STREAM(stream) REQUIRE(stream_device(stream) >= 0, CUDA_ERROR_INVALID_HANDLE)
#define REQUIRE_OBJECT(kind, handle) \
    REQUIRE(object_find(kind, handle) != NULL, CUDA_ERROR_INVALID_HANDLE)

/* ---- fake_cuda.c ---- */

/* The calling thread's current context; there is one in a call that needs it. */
CUcontext context_current(void);

struct object *object_make(CUdevice device);                           /* in no list yet */
struct object *object_add(enum object_kind kind, CUdevice device);     /* made, and in its list */
struct object *object_find(enum object_kind kind, const void *handle); /* NULL: no such handle */
struct object *object_at(enum object_kind kind, uint64_t address); /* that it lies in, or NULL */
void object_remove(enum object_kind kind, struct object *object);

/* ---- fake_memory.c ---- */

void arena_open(void);
bool is_in_arena(uint64_t address);

/* Whether a copy may touch all of it; host addresses are taken as they are. */
bool span_is_valid(uint64_t address, size_t nbytes);

/* The bytes at an address and, in `run`, how many follow each other there; NULL: none may be
 * touched. */
unsigned char *bytes_at(uint64_t address, size_t nbytes, size_t *run);

void memory_drop(struct object *range);

/* ---- fake_stream.c ---- */

/* The device of a stream; -1 for an unknown handle. The implicit streams are the context's. */
CUdevice stream_device(CUstream stream);

#endif
