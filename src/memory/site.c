/*
 * site.c: stacks, each kept once and known by a number.
 *
 *   sites    growable array: where a site's frames begin, and how many there are
 *   frames   growable array of all frames of all sites
 *   table    open addressing over the sites, by the hash of their frames
 *
 * Invariants, under `lock`:
 *   SI1  site numbers count from 1 and are never given up: living blocks hold them;
 *   SI2  the table has at most 3/4 of its places in use, so that a search meets an empty one;
 *   SI3  the interpreter was told to keep the frames of every site.
 */
#include "memory/history.h"

#include "base/hash.h"
#include "base/host.h"
#include "base/lock.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum {
    FRAMES_MOST = GN_HISTORY_FRAMES_MOST,
    OWN_MOST = 8,       /* frames of the library's own below those of its caller */
    TABLE_LEAST = 1024, /* a power of two */
};

struct site {
    size_t first; /* of its frames */
    unsigned count;
    uint32_t hash;
};

static struct {
    struct gni_lock lock;
    struct site *sites; /* [0] is not used; SI1 */
    size_t count, capacity;
    gn_history_frame *frames;
    size_t frame_count, frame_capacity;
    uint32_t *table; /* site numbers; 0: empty */
    size_t table_capacity;
} stacks;

static _Atomic(uint64_t) depths; /* of Python above that of C, so that they belong together */
static _Atomic(const gn_history_interpreter *) interpreter;

static atomic_bool has_interpreter;

void gn_history_set_interpreter(const gn_history_interpreter *set)
{
    atomic_store(&interpreter, set);
    atomic_store(&has_interpreter, true);
}

bool gn_history_has_interpreter(void)
{
    return atomic_load(&has_interpreter);
}

/* ---- the library's own code ----------------------------------------------------------------- */

/* Where the library lies; nowhere if it is a part of the program itself. Its frames say nothing about who
 * allocates, and differ from one call to the next. */
static _Atomic(uintptr_t) own_start, own_end;

static int object_look(struct dl_phdr_info *info, size_t size, void *is_program)
{
    (void)size;
    uintptr_t here = (uintptr_t)object_look;
    bool is_first = *(bool *)is_program; /* the program itself is told first */
    *(bool *)is_program = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || here < start || here >= end)
            continue;
        atomic_store(&own_start, is_first ? 0 : start);
        atomic_store(&own_end, is_first ? 0 : end);
        return 1;
    }
    return 0;
}

bool gni_history_is_own(const void *code)
{
    uintptr_t number = (uintptr_t)code;
    return number >= atomic_load_explicit(&own_start, memory_order_relaxed) &&
           number < atomic_load_explicit(&own_end, memory_order_relaxed);
}

void gni_site_set_depth(unsigned python_frames, unsigned c_frames)
{
    if (c_frames > 0) { /* the first call loads a library: not in the middle of an allocation */
        void *here[1];
        bool is_program = true;
        (void)backtrace(here, 1);
        (void)dl_iterate_phdr(object_look, &is_program);
    }
    atomic_store(&depths, (uint64_t)python_frames << 32 | c_frames);
}

void gni_site_fork_prepare(void)
{
    gni_lock_take(&stacks.lock);
}

void gni_site_fork_done(void)
{
    gni_lock_give(&stacks.lock);
}

/* ---- interning ------------------------------------------------------------------------------ */

static uint32_t frames_hash(const gn_history_frame *frames, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash ^= (uint64_t)(uintptr_t)frames[i].code + ((uint64_t)(uint32_t)frames[i].offset << 40);
        hash *= UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 16);
}

static bool frames_equal(const gn_history_frame *frames, const gn_history_frame *others,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (frames[i].code != others[i].code || frames[i].offset != others[i].offset)
            return false;
    return true;
}

/* The place of a stack in the table: its own, or the empty one where it would go. */
static size_t place_find(const gn_history_frame *frames, size_t count, uint32_t hash)
{
    size_t place = hash & (stacks.table_capacity - 1);
    for (; stacks.table[place] != 0; place = (place + 1) & (stacks.table_capacity - 1)) {
        const struct site *site = &stacks.sites[stacks.table[place]];
        if (site->hash == hash && site->count == count &&
            frames_equal(&stacks.frames[site->first], frames, count))
            break;
    }
    return place;
}

/* Makes an array long enough; false if the host has no memory. */
static bool array_grow(void **array, size_t *capacity, size_t needed, size_t item_bytes)
{
    if (needed <= *capacity)
        return true;
    size_t wanted = *capacity * 2 > needed ? *capacity * 2 : needed + 256;
    void *grown = gni_host_realloc(*array, wanted * item_bytes);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static bool table_grow(void)
{
    if (stacks.count + 1 < stacks.table_capacity / 4 * 3)
        return true;
    size_t capacity = stacks.table_capacity > 0 ? 2 * stacks.table_capacity : TABLE_LEAST;
    uint32_t *table = gni_host_alloc(capacity * sizeof *table);
    if (table == NULL)
        return false;
    for (uint32_t number = 1; number < stacks.count; number++) {
        size_t place = stacks.sites[number].hash & (capacity - 1);
        while (table[place] != 0)
            place = (place + 1) & (capacity - 1);
        table[place] = number;
    }
    gni_host_free(stacks.table);
    stacks.table = table;
    stacks.table_capacity = capacity;
    return true;
}

/* With the lock: room for one more site with so many frames. */
static bool room_make(size_t frame_count)
{
    if (stacks.count == 0)
        stacks.count = 1; /* 0 is no site */
    return table_grow() &&
           array_grow((void **)&stacks.sites, &stacks.capacity, stacks.count + 1,
                      sizeof *stacks.sites) &&
           array_grow((void **)&stacks.frames, &stacks.frame_capacity,
                      stacks.frame_count + frame_count, sizeof *stacks.frames);
}

static uint32_t intern(const gn_history_frame *frames, size_t count, size_t python_count,
                       const gn_history_interpreter *python)
{
    uint32_t hash = frames_hash(frames, count), number = 0;
    gni_lock_take(&stacks.lock);
    if (room_make(count)) {
        size_t place = place_find(frames, count, hash);
        number = stacks.table[place];
        if (number == 0 && stacks.count < UINT32_MAX) {
            number = (uint32_t)stacks.count++;
            stacks.table[place] = number;
            stacks.sites[number] = (struct site){stacks.frame_count, (unsigned)count, hash};
            memcpy(&stacks.frames[stacks.frame_count], frames, count * sizeof *frames);
            stacks.frame_count += count;
            if (python_count > 0)
                python->keep(frames, python_count);
        }
    }
    gni_lock_give(&stacks.lock);
    return number;
}

uint32_t gni_site_capture(void)
{
    gn_history_frame frames[FRAMES_MOST];
    const gn_history_interpreter *python = atomic_load(&interpreter);
    uint64_t most = atomic_load_explicit(&depths, memory_order_relaxed);
    unsigned python_most = (unsigned)(most >> 32), c_most = (unsigned)most;
    bool has_python = python != NULL && python_most > 0;
    int token = 0;
    size_t python_count = has_python ? python->capture(frames, python_most, &token) : 0;
    size_t count = python_count;
    if (c_most > 0) {
        void *addresses[FRAMES_MOST + OWN_MOST];
        int found = backtrace(addresses, (int)c_most + OWN_MOST);
        int first = found > 0 && !gni_history_is_own(addresses[0]); /* a sanitizer's backtrace() */
        while (first < found && gni_history_is_own(addresses[first]))
            first++;
        for (int i = first; i < found && count < python_count + c_most && count < FRAMES_MOST; i++)
            frames[count++] = (gn_history_frame){.code = addresses[i], .offset = -1};
    }
    uint32_t site = count > 0 ? intern(frames, count, python_count, python) : 0;
    if (has_python)
        python->release(token);
    return site;
}

/* ---- looking up ----------------------------------------------------------------------------- */

gn_status gn_history_get_stack(uint32_t site, gn_history_frame *frames, size_t capacity,
                               size_t *count)
{
    GN_CHECK_ARGUMENT(count != NULL && (frames != NULL || capacity == 0), "NULL argument");
    size_t found = 0;
    gni_lock_take(&stacks.lock);
    bool is_known = site < stacks.count || site == 0;
    if (is_known && site != 0) {
        found = stacks.sites[site].count;
        for (size_t i = 0; i < found && i < capacity; i++)
            frames[i] = stacks.frames[stacks.sites[site].first + i];
    }
    gni_lock_give(&stacks.lock);
    if (!is_known)
        return gni_error(GN_ERROR_INVALID_VALUE, "there is no site %u", site);
    *count = found;
    return GN_OK;
}

bool gn_history_find_code(const void *code, const char **file, const char **function,
                          uint64_t *address)
{
    Dl_info info;
    /* A return address is behind the call: the byte before it belongs to it. */
    if (dladdr((const char *)code - 1, &info) == 0 || info.dli_fname == NULL)
        return false;
    /* The program itself is known by the word it was called with, which may be no path; and where it is not
     * position-independent its own addresses are those in memory. */
    const ElfW(Ehdr) *header = info.dli_fbase;
    bool is_program = strchr(info.dli_fname, '/') == NULL || header->e_type == ET_EXEC;
    *file = is_program ? "/proc/self/exe" : info.dli_fname;
    *function = info.dli_sname;
    uintptr_t base = header->e_type == ET_EXEC ? 0 : (uintptr_t)info.dli_fbase;
    *address = (uint64_t)((uintptr_t)code - 1 - base);
    return true;
}

static bool c_describe(const void *code, char *buffer, size_t size)
{
    const char *file, *function;
    uint64_t address;
    if (gni_history_is_own(code) || !gn_history_find_code(code, &file, &function, &address))
        return false;
    const char *name = strrchr(file, '/');
    (void)snprintf(buffer, size, "%s (%s+0x%llx)", function != NULL ? function : "?",
                   name != NULL ? name + 1 : file, (unsigned long long)address);
    return true;
}

char *gn_history_describe(uint32_t site, char *buffer, size_t size)
{
    gn_history_frame frames[FRAMES_MOST];
    size_t count = 0;
    const gn_history_interpreter *python = atomic_load(&interpreter);
    if (size > 0)
        buffer[0] = '\0';
    if (gn_history_get_stack(site, frames, FRAMES_MOST, &count) != GN_OK)
        return buffer;
    for (size_t i = 0; i < count && i < FRAMES_MOST; i++) {
        bool is_known = frames[i].offset < 0
                            ? c_describe(frames[i].code, buffer, size)
                            : python != NULL && python->describe(&frames[i], buffer, size);
        if (is_known)
            break;
    }
    return buffer;
}
