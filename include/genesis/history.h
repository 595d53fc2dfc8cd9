/*
 * genesis/history.h: what happened to the memory of all managers, and where blocks were allocated.
 *
 *   event       an allocation, a free, memory obtained or given back, a request that failed, or a word of
 *               the user's, with its time
 *   ring        each thread keeps its last events; a full ring forgets the oldest
 *   stack       where a block was allocated: the innermost frames of Python, of C, or both. Equal stacks
 *               are kept once, under a number, the site
 *   annotation  a name for what a thread does at the moment; annotations nest: "train/forward"
 *
 * Off, this costs one branch in each allocation and free. Recording may start and stop at any time: blocks
 * that live longer than the recording show up in gn_memory_visit().
 *
 * Threads: every function may be called from any thread. Nothing here touches a device.
 */
#ifndef GENESIS_HISTORY_H
#define GENESIS_HISTORY_H

#include "genesis/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gn_history_kind {
    GN_HISTORY_ALLOC = 1,
    GN_HISTORY_FREE,           /* and at once ready for reuse on its stream */
    GN_HISTORY_FREE_REQUESTED, /* other streams still use it: it is pending */
    GN_HISTORY_FREE_COMPLETED, /* such a one is ready for reuse */
    GN_HISTORY_SEGMENT_MAP,    /* memory was obtained from the driver or system */
    GN_HISTORY_SEGMENT_UNMAP,  /* and given back */
    GN_HISTORY_OUT_OF_MEMORY,  /* a request failed */
    GN_HISTORY_SNAPSHOT,       /* gn_history_snapshot() */
    GN_HISTORY_MARK,           /* gn_history_mark() */
    GN_HISTORY_BEGIN,          /* of an annotation */
    GN_HISTORY_END,
} gn_history_kind;

typedef struct gn_history_event {
    uint64_t time_ns; /* of CLOCK_MONOTONIC */
    uint64_t address; /* of the block or segment, or 0 */
    uint64_t nbytes;  /* that a block takes, or of the segment; of a failed request: what is free */
    uint64_t requested; /* as asked for */
    uint64_t
        stream_id; /* of the stream that the block belongs to; 0: the default stream, or none */
    uint32_t site; /* of an allocation and of a failed request; 0: not known */
    uint32_t annotation; /* of the thread at the moment, or the one that begins or ends; 0: none */
    uint16_t thread;     /* a number of the thread; after 65535 threads they come again */
    uint8_t kind;        /* gn_history_kind */
    uint8_t manager;     /* gn_memory_manager_get_number() */
    uint32_t number;     /* of the event in its thread, from 1 */
} gn_history_event;

enum {
    GN_HISTORY_FRAMES_MOST = 64, /* of a stack, all kinds together */
};

typedef struct gn_history_options {
    size_t events_most; /* that each thread keeps, rounded up to a power of two; 0: only sites */
    unsigned python_frames; /* innermost frames of each stack; 0: none */
    unsigned c_frames;
} gn_history_options;

/* Forgets the events so far, and records from now on. GN_ERROR_INVALID_VALUE: too many frames. */
GN_API gn_status gn_history_start(const gn_history_options *options) GN_NODISCARD;

/* Stops recording. The events can still be read; the sites of living blocks stay known. */
GN_API void gn_history_stop(void);

/* Whether it records now. */
GN_API bool gn_history_is_on(void);

/*
 * Copies the events of all threads, oldest first, up to `capacity`; `count` gets how many there are, which
 * may be more. While other threads work, a free that is under way may be missing that an allocation of the
 * same address follows. `lost` (may be NULL) gets how many were forgotten, because a ring was full or the host had
 * no memory.
 */
GN_API gn_status gn_history_read(gn_history_event *events, size_t capacity, size_t *count,
                                 uint64_t *lost) GN_NODISCARD;

/* ---- words of the user's -------------------------------------------------------------------- */

/* A moment with a name. */
GN_API gn_status gn_history_mark(const char *name) GN_NODISCARD;

/* The moment at which somebody looks at everything. */
GN_API void gn_history_snapshot(void);

/* What the thread does from now on; each begin has its end in the same thread. Annotations are kept even
 * while nothing is recorded. GN_ERROR_OVERFLOW: nested deeper than 64. */
GN_API gn_status gn_history_begin(const char *name) GN_NODISCARD;
GN_API gn_status gn_history_end(void) GN_NODISCARD;

/* The name of an annotation or mark: "" for 0, NULL for a number that nobody has. It stays for ever. */
GN_API const char *gn_history_get_name(uint32_t annotation);

/* ---- stacks --------------------------------------------------------------------------------- */

typedef struct gn_history_frame {
    const void *code; /* Python: the code object, which is kept; C: the return address */
    int32_t offset;   /* Python: of the instruction, in bytes; C: -1 */
} gn_history_frame;

/* The frames of a site, innermost first, up to `capacity`; `count` gets how many there are. */
GN_API gn_status gn_history_get_stack(uint32_t site, gn_history_frame *frames, size_t capacity,
                                      size_t *count) GN_NODISCARD;

/* The calling thread's stack as a site, or the one that was set; 0 while no stacks are recorded. */
GN_API uint32_t gn_history_capture(void);

/* What the calling thread allocates has this site from now on, for those who ask on behalf of somebody else;
 * 0: each allocation its own. Returns the one before, to be set again afterwards. */
GN_API uint32_t gn_history_set_site(uint32_t site);

/* The innermost frame of a site that is not the library's own, as text: "function (file:line)" as far as it
 * is known. Returns `buffer`; empty for site 0. */
GN_API char *gn_history_describe(uint32_t site, char *buffer, size_t size);

/* The function and the file that a return address belongs to, and the address in that file; false if that is
 * not known. The texts stay as long as the file is loaded; `function` may be NULL. */
GN_API bool gn_history_find_code(const void *code, const char **file, const char **function,
                                 uint64_t *address);

/*
 * An interpreter whose frames stacks have: Python's is set by the package. An allocating thread calls capture,
 * perhaps keep, and release, under no lock of the library but, for keep, that of the stacks: it must not
 * allocate from a manager, nor wait.
 */
typedef struct gn_history_interpreter {
    /* The innermost frames of the calling thread, borrowed until the release; 0 where it does not run the
     * interpreter. */
    size_t (*capture)(gn_history_frame *frames, size_t most, int *token);
    void (*release)(int token);
    /* These frames are known for ever from now on. */
    void (*keep)(const gn_history_frame *frames, size_t count);
    /* A frame as text; false where the interpreter cannot be asked, or others are better to name: then the text is
     * what is left if there are none. */
    bool (*describe)(const gn_history_frame *frame, char *buffer, size_t size);
} gn_history_interpreter;

/* `interpreter` lives for ever. NULL: it is gone. */
GN_API void gn_history_set_interpreter(const gn_history_interpreter *interpreter);

/* Whether there was one: it reports leaks at exit itself. */
GN_API bool gn_history_has_interpreter(void);

#ifdef __cplusplus
}
#endif

#endif
