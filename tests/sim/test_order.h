/*
 * test_order.h: what a random program over the memory manager is made of: streams, blocks and threads, all
 * drawn from a seed (test_order.c), and the steps that threads take (test_order_steps.c).
 */
#ifndef GNI_TESTS_SIM_TEST_ORDER_H
#define GNI_TESTS_SIM_TEST_ORDER_H

#include "check.h"

#include "control.h"
#include "device/cuda/cuda.h"
#include "genesis/genesis.h"

#include <pthread.h>

#define MIB ((size_t)1 << 20)

enum {
    THREADS_MAX = 4,
    SLOTS = 8,          /* blocks of one thread */
    SHARED_STREAMS = 5, /* of all threads; 0 is the default stream */
    STREAMS_MAX = 48,
    MAILBOX = 4,
    SIZES = 5,     /* that come often in a program */
    WINDOW = 8192, /* bytes that are worked on at the start, middle and end of a large block */
    TEXTS = 3,
};

/* What a child tells its parent, in shared memory. */
struct report {
    int finding_count;
    int wrong_count;
    uint64_t order_hash;
    uint64_t handover_count, event_count, out_of_memory_count, retry_count, folded_pages;
    uint64_t stream_hit_count, pending_count, restart_count, destroyed_count;
    char texts[TEXTS][512]; /* of findings */
};

enum kind {
    KIND_DEFAULT,
    KIND_BLOCKING,
    KIND_NON_BLOCKING,
    KIND_FOREIGN, /* made and destroyed by the driver, behind the library's back */
    KIND_PER_THREAD,
};

struct stream {
    enum kind kind;
    gn_stream *stream;
    gn_stream *wrapper; /* the same stream by its handle, or NULL */
    CUstream raw;       /* FOREIGN */
    int thread;         /* whose; -1: everyone's */
    bool is_alive;      /* work may be submitted */
};

struct block {
    gn_memory_manager *manager;
    char *pointer;           /* NULL: the slot is empty */
    gn_memory_block *handle; /* or by its address only */
    size_t nbytes;
    int home;           /* the stream it was allocated for */
    int at;             /* where its last work is; work elsewhere must wait for it */
    bool is_stuck;      /* no more work can be ordered after the last */
    bool is_homeless;   /* its home may be gone */
    uint64_t announced; /* streams, as bits */
    unsigned char value;
};

struct program {
    uint64_t seed, state;
    gn_device *device;
    gn_memory_manager *manager, *pinned;
    const struct gni_cuda_functions *cuda;
    struct sim_control control;
    bool is_simulated, is_free; /* free: threads run as they like */
    int thread_count, step_count;
    size_t sizes[SIZES];
    struct stream streams[STREAMS_MAX];
    int stream_count; /* places that are taken; only grows */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct block mailbox[MAILBOX];
    struct worker {
        struct program *program;
        int index;
        uint64_t state; /* of its generator */
        pthread_t thread;
        gn_event *event;
        int own;          /* its per-thread stream; -1: none yet */
        int favourite;    /* the stream it uses most */
        bool has_current; /* it has set a current stream; until then that is the default stream */
        bool is_held;     /* a block was found that names a stream */
        struct block slots[SLOTS];
        enum order {
            ORDER_NONE,
            ORDER_STEP,
            ORDER_END,
        } order;
    } workers[THREADS_MAX];
    struct report *report;
};

static inline void wrong(struct program *program, const char *file, int line, const char *what,
                         gn_status status)
{
    __atomic_fetch_add(&program->report->wrong_count, 1, __ATOMIC_RELAXED);
#ifndef EXPECT_FINDINGS
    fprintf(stderr, "    seed %llu, %s:%d: %s: %s: %s\n", (unsigned long long)program->seed, file,
            line, what, gn_status_name(status), gn_error_detail());
#else
    (void)file, (void)line, (void)what, (void)status;
#endif
}

/* For calls that must succeed. */
#define OK(call)                                                  \
    do {                                                          \
        gn_status ok_status = (call);                             \
        if (ok_status != GN_OK)                                   \
            wrong(program, __FILE__, __LINE__, #call, ok_status); \
    } while (0)

#define EXPECT(condition)                                          \
    do {                                                           \
        if (!(condition))                                          \
            wrong(program, __FILE__, __LINE__, #condition, GN_OK); \
    } while (0)

static inline uint64_t draw(struct worker *worker, uint64_t count)
{
    return check_random(&worker->state) % count;
}

static inline void count_up(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- the steps ------------------------------------------------------------------------------ */

/* Makes a stream at a place, with a second name where `has_wrapper`. */
void stream_open(struct program *program, int place, enum kind kind, int thread, bool has_wrapper);

/* Nothing is submitted to it any more; what was submitted still runs. */
void stream_close(struct program *program, struct stream *stream);

/* A stream that the thread may use. The default stream always is. */
int stream_draw(struct worker *worker);

size_t size_draw_fresh(struct worker *worker);

/* Reads a block by a stream that is ordered after its work: it must hold what was written last. */
void block_check(struct program *program, const struct block *block, gn_stream *stream);

/* Calls `visit` for every block that the calling thread may touch. */
void handle_free(struct program *program, struct block *block);
void blocks_each(struct worker *worker, void (*visit)(struct worker *, struct block *, int),
                 int place);

/* The stream of a block ends: its work moves elsewhere, or nothing comes after it. */
void block_leave(struct worker *worker, struct block *block, int place);

/* A step of a thread, drawn from its generator. */
void step(struct worker *worker);

#endif
