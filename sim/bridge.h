/*
 * bridge.h: what a compiled kernel and the engine know of each other.
 *
 * This text is read by two compilers: with the engine, as C, and in front of every kernel, as C++
 * without any header. So it includes nothing and uses only the built-in types.
 *
 *   module   the one symbol that a kernel's shared object exports for the engine, gn_sim_module
 *   bridge   the engine's side: the engine stores its address in the module before the first launch
 *
 * GN_SIM_BRIDGE_VERSION changes with any layout here; it is part of each image and of each cache
 * key.
 */
#ifndef GN_SIM_BRIDGE_H
#define GN_SIM_BRIDGE_H

#define GN_SIM_BRIDGE_VERSION 3

/* The most dynamic shared memory of a block: that of compute capability 9.0. */
#define GN_SIM_DYNAMIC_SHARED_BYTES 232448

struct gn_sim_index {
    unsigned x, y, z;
};

/* What lanes of a warp can do together; how each result is made stands at warp_finish(). */
enum gn_sim_warp_kind {
    GN_SIM_SYNCWARP,
    GN_SIM_SHUFFLE,
    GN_SIM_VOTE, /* the lanes whose value is not zero */
    GN_SIM_MATCH_ANY,
    GN_SIM_MATCH_ALL,
    GN_SIM_REDUCE_ADD,
    GN_SIM_REDUCE_MIN_SIGNED,
    GN_SIM_REDUCE_MAX_SIGNED,
    GN_SIM_REDUCE_MIN,
    GN_SIM_REDUCE_MAX,
    GN_SIM_REDUCE_AND,
    GN_SIM_REDUCE_OR,
    GN_SIM_REDUCE_XOR,
    GN_SIM_WARP_KINDS
};

enum gn_sim_barrier_kind {
    GN_SIM_BARRIER,
    GN_SIM_BARRIER_COUNT, /* of the threads whose predicate is not zero */
    GN_SIM_BARRIER_AND,
    GN_SIM_BARRIER_OR
};

enum gn_sim_access_flags {
    GN_SIM_WRITE = 1,
    GN_SIM_ATOMIC = 2,
    GN_SIM_ALIGNED = 4, /* a GPU needs the address to be a multiple of the size */
    GN_SIM_VOLATILE = 8
};

enum gn_sim_stop_reason {
    GN_SIM_TRAP,
    GN_SIM_ASSERT
};

struct gn_sim_bridge {
    /* Of the thread that runs now. */
    struct gn_sim_index thread_index, block_index, block_size, grid_size;
    unsigned lane;

    int (*barrier)(int kind, int predicate, const char *file, int line);
    unsigned long long (*warp)(int kind, unsigned mask, unsigned long long value, unsigned source,
                               const char *file, int line);
    unsigned (*active_mask)(void);
    void (*access)(const void *address, unsigned long nbytes, unsigned flags, const void *site);
    void (*stop)(int reason, const char *text, const char *file, int line);
    void (*yield)(void);
    unsigned long long (*clock)(void); /* ns */
    void (*wait)(void);                /* for what is before the kernel on its stream */
    void (*fence)(void);               /* of the device or more */
};

struct gn_sim_entry {
    const char *expression; /* the name in the source, or the name expression */
    void (*function)(void);
    void (*call)(void (*function)(void), void **arguments);
    const unsigned *sizes, *alignments; /* of the parameters; parameter_count of each */
    unsigned parameter_count;
    unsigned max_threads; /* of __launch_bounds__; 0: none */
};

struct gn_sim_module {
    unsigned version;    /* GN_SIM_BRIDGE_VERSION */
    unsigned has_checks; /* accesses are reported */
    struct gn_sim_bridge **bridge;
    const struct gn_sim_entry *entries;
    unsigned entry_count;
    char *dynamic_shared;
};

#endif
