/*
 * trace.h: recorded allocations and frees, read from files.
 *
 *   PyTorch's snapshot as JSON: an object with "device_traces", a list for each device of entries with
 *       action, addr, size, stream. alloc allocates; free_requested frees (or free_completed, if asked
 *       for or if no request was seen); everything else is counted and skipped.
 *   RMM's log as CSV: Thread,Time,Action,Pointer,Size,Stream with the actions allocate, free and
 *       allocate failure (skipped).
 *
 * Invariants of what trace_read gives:
 *   1. Every free names a slot that holds a block, and no allocation names one that does.
 *   2. A slot is used by one block at a time; slots are below slot_count, streams below stream_count.
 *   3. Frees of blocks that were allocated before the recording began are not in it.
 */
#ifndef BENCH_ALLOC_TRACE_H
#define BENCH_ALLOC_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_entry {
    uint64_t nbytes; /* of an allocation */
    uint32_t slot;
    uint32_t stream : 31; /* counted from 0 in the order of appearance */
    uint32_t is_alloc : 1;
};

struct trace {
    struct trace_entry *entries; /* owned */
    size_t entry_count;
    size_t slot_count;
    size_t stream_count;
    size_t alloc_count;
    size_t free_count;
    size_t unknown_count; /* frees of blocks from before the recording */
    size_t skipped_count; /* entries that neither allocate nor free */
    uint64_t peak_bytes;  /* the most that is live at once */
};

struct trace_options {
    size_t device;          /* whose trace, in PyTorch's snapshot */
    bool is_free_completed; /* blocks live until free_completed */
};

/*
 * Reads a file; whether it is JSON or CSV is decided by its first character. On failure returns false
 * and prints what is wrong and where to standard error.
 */
bool trace_read(const char *path, const struct trace_options *options, struct trace *trace);

void trace_free(struct trace *trace);

#endif
