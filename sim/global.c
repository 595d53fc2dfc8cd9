/*
 * global.c: see global.h.
 */
#include "global.h"
#include "bridge.h"
#include "engine.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORD = 4,
    PLACE_COUNT = 1 << 16, /* words that are remembered; a power of two */
};

/* What a strong write of a block releases: an access of thread t before `all`, or before own[t]. */
struct release {
    uintptr_t address;
    uint32_t serial;
    uint16_t thread;
    uint32_t all;
    uint32_t own[SIM_BLOCK_MAX_THREADS]; /* of which only thread_count are there */
};

struct acquire {
    uintptr_t address;
    uint16_t thread;
    bool is_fenced;
    uint32_t moment; /* of the first fence after it */
};

static struct sim_global_access writes[PLACE_COUNT], reads[2][PLACE_COUNT];
static unsigned thread_count;
static uint32_t serial, first_serial; /* of the block at hand, and of the first one of the launch */

/* The block at hand. */
static uint32_t moment, interval; /* and the moment of the last barrier */
static bool has_fence;            /* since that */
static uint32_t fenced_all;       /* by the fences before that: accesses before this moment */
static uint32_t fences[SIM_BLOCK_MAX_THREADS]; /* the moment of each thread's last fence, */
static uint32_t fence_intervals[SIM_BLOCK_MAX_THREADS]; /* and of the barrier before it */
static uint32_t fences_before[SIM_BLOCK_MAX_THREADS];   /* the same, before the last barrier */
static struct acquire *acquires;
static size_t acquire_count, acquire_capacity;

/* Of all blocks of the launch so far, in their order. */
static char *releases;
static size_t release_count, release_capacity;

static size_t release_nbytes(void)
{
    size_t nbytes = offsetof(struct release, own) + thread_count * sizeof(uint32_t);
    return (nbytes + _Alignof(struct release) - 1) & ~(_Alignof(struct release) - 1);
}

static struct release *release_at(size_t place)
{
    return (struct release *)(void *)(releases + place * release_nbytes());
}

/* The array with room for one more. */
static void *array_grow(void *array, size_t count, size_t *capacity, size_t nbytes)
{
    if (count < *capacity)
        return array;
    size_t more = *capacity == 0 ? 16 : *capacity * 2;
    void *grown = realloc(array, more * nbytes);
    if (grown == NULL)
        abort(); /* a test tool without memory has nothing to say */
    *capacity = more;
    return grown;
}

void sim_global_begin(unsigned count)
{
    if (count != thread_count) {
        free(releases);
        releases = NULL;
        release_capacity = 0;
    }
    thread_count = count;
    release_count = 0;
    first_serial = serial + 1;
}

void sim_global_block(void)
{
    if (++serial == 0) { /* after 2^32 blocks: what is remembered of others would look new */
        memset(writes, 0, sizeof writes);
        memset(reads, 0, sizeof reads);
        release_count = 0;
        first_serial = serial = 1;
    }
    moment = interval = 1;
    has_fence = false;
    fenced_all = 0;
    acquire_count = 0;
    memset(fences, 0, sizeof fences);
    memset(fences_before, 0, sizeof fences_before);
    memset(fence_intervals, 0, sizeof fence_intervals);
}

void sim_global_barrier(void)
{
    if (has_fence) {
        fenced_all = interval;
        memcpy(fences_before, fences, sizeof fences_before);
        has_fence = false;
    }
    interval = ++moment;
}

void sim_global_fence(unsigned thread)
{
    fences[thread] = ++moment;
    fence_intervals[thread] = interval;
    has_fence = true;
    for (size_t i = 0; i < acquire_count; i++)
        if (acquires[i].thread == thread && !acquires[i].is_fenced) {
            acquires[i].is_fenced = true;
            acquires[i].moment = moment;
        }
}

/* A strong write: all that fences before it cover can be seen by who comes to its address later. */
static void release_make(uintptr_t address, unsigned thread)
{
    uint32_t all = fence_intervals[thread] > fenced_all ? fence_intervals[thread] : fenced_all;
    if (all == 0)
        return; /* there was no fence */
    struct release *last = release_count > 0 ? release_at(release_count - 1) : NULL;
    if (last == NULL || last->serial != serial || last->address != address ||
        last->thread != thread) {
        releases = array_grow(releases, release_count, &release_capacity, release_nbytes());
        last = release_at(release_count++);
    }
    last->address = address;
    last->serial = serial;
    last->thread = (uint16_t)thread;
    last->all = all;
    memcpy(last->own, fences_before, thread_count * sizeof *last->own);
    last->own[thread] = fences[thread];
}

static void acquire_make(uintptr_t address, unsigned thread)
{
    if (release_count == 0)
        return;
    for (size_t i = 0; i < acquire_count; i++)
        if (acquires[i].address == address && acquires[i].thread == thread)
            return;
    acquires = array_grow(acquires, acquire_count, &acquire_capacity, sizeof *acquires);
    acquires[acquire_count++] = (struct acquire){.address = address, .thread = (uint16_t)thread};
}

/* Whether what was released on this address comes before what `thread` does now. */
static bool is_acquired(uintptr_t address, unsigned thread)
{
    for (size_t i = 0; i < acquire_count; i++)
        if (acquires[i].address == address && acquires[i].is_fenced &&
            (acquires[i].thread == thread || acquires[i].moment < interval))
            return true;
    return false;
}

/* The first release of a block, or of one after it. */
static size_t release_find(uint32_t block)
{
    size_t low = 0, high = release_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (release_at(middle)->serial < block)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_ordered(const struct sim_global_access *earlier, unsigned thread)
{
    for (size_t i = release_find(earlier->serial); i < release_count; i++) {
        const struct release *release = release_at(i);
        if (release->serial != earlier->serial)
            return false;
        bool is_covered =
            earlier->moment < release->all || earlier->moment < release->own[earlier->thread];
        if (is_covered && is_acquired(release->address, thread))
            return true;
    }
    return false;
}

/* Of two such accesses one comes first, whatever else the blocks do. */
static bool is_strong(unsigned flags)
{
    return (flags & (GN_SIM_ATOMIC | GN_SIM_VOLATILE)) != 0;
}

static bool is_race(const struct sim_global_access *earlier, const struct sim_global_access *now)
{
    return earlier->word == now->word && (earlier->bytes & now->bytes) != 0 &&
           earlier->serial >= first_serial && earlier->serial != serial &&
           !(is_strong(earlier->flags) && is_strong(now->flags)) &&
           !is_ordered(earlier, now->thread);
}

/* Remembers an access; several of one block to a word, of different bytes, are one. */
static void access_keep(struct sim_global_access *place, const struct sim_global_access *now)
{
    bool is_more = place->word == now->word && place->serial == now->serial &&
                   place->thread == now->thread && place->flags == now->flags;
    uint8_t bytes = is_more ? place->bytes : 0;
    *place = *now;
    place->bytes |= bytes;
}

bool sim_global_access(uintptr_t address, size_t nbytes, unsigned thread, unsigned flags,
                       const void *site, struct sim_global_access *other, uint64_t *block)
{
    uintptr_t end = address + nbytes;
    for (uintptr_t word = address / WORD; word * WORD < end; word++) {
        unsigned first = word * WORD < address ? (unsigned)(address - word * WORD) : 0;
        unsigned last = end - word * WORD < WORD ? (unsigned)(end - word * WORD) : WORD;
        struct sim_global_access now = {.word = word,
                                        .serial = serial,
                                        .moment = moment,
                                        .thread = (uint16_t)thread,
                                        .flags = (uint8_t)flags,
                                        .bytes = (uint8_t)((1u << last) - (1u << first)),
                                        .site = site};
        struct sim_global_access *write = &writes[word % PLACE_COUNT];
        struct sim_global_access *read = &reads[0][word % PLACE_COUNT];
        struct sim_global_access *read_before = &reads[1][word % PLACE_COUNT];
        bool is_write = (flags & GN_SIM_WRITE) != 0;
        const struct sim_global_access *earlier = is_race(write, &now)              ? write
                                                  : is_write && is_race(read, &now) ? read
                                                  : is_write && is_race(read_before, &now)
                                                      ? read_before
                                                      : NULL;
        if (earlier != NULL) {
            *other = *earlier;
            *block = earlier->serial - first_serial;
            return true;
        }
        if (!is_write && read->serial != serial)
            *read_before = *read;
        access_keep(is_write ? write : read, &now);
    }
    if ((flags & GN_SIM_ATOMIC) != 0 ||
        (flags & (GN_SIM_VOLATILE | GN_SIM_WRITE)) == GN_SIM_VOLATILE)
        acquire_make(address, thread);
    if (is_strong(flags) && (flags & GN_SIM_WRITE) != 0)
        release_make(address, thread);
    return false;
}
