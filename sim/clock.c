/*
 * clock.c: see clock.h.
 *
 *   owner     one op that touched memory: its actor, tick, clock and name; shared by its accesses
 *   access    a stretch of memory that an owner read or wrote
 *   page      256 KiB of addresses: the accesses in it
 *
 * Invariants:
 *   1  an access lies within one page; longer ones are cut;
 *   2  a page with accesses is in `busy`.
 */
#include "clock.h"

#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PAGE_SHIFT = 18,
    ACTORS_REUSED_FROM = 64, /* until then each stream has a place of its own */
    ACTORS_MOST = SIM_STREAMS_MAX + 1,
};

struct owner {
    int references;
    unsigned actor;
    uint64_t tick;
    struct sim_clock clock;
    struct sim_label label;
};

struct access {
    uintptr_t begin, end; /* places: see sim_memory_place() */
    uintptr_t address;    /* by which `begin` was touched */
    enum sim_access kind;
    struct owner *owner;
};

struct page {
    struct access *accesses;
    size_t count, capacity;
    bool is_busy; /* it is in `busy` */
};

static struct gni_map pages;
static struct page **busy; /* of all pages that ever were, those to look at */
static size_t busy_count, busy_capacity;
static size_t access_count;
static uint64_t last_reported; /* the op of the last report: one op is reported once */

static unsigned actor_count = 1; /* 0 is the host */
static unsigned idle_actors[ACTORS_MOST];
static unsigned idle_count;
static uint64_t actor_ticks[ACTORS_MOST]; /* the last tick of an actor that was given back */

/* ---- clocks --------------------------------------------------------------------------------- */

void sim_clock_deinit(struct sim_clock *clock)
{
    gni_host_free(clock->ticks);
    *clock = (struct sim_clock){.ticks = NULL};
}

static void clock_grow(struct sim_clock *clock, unsigned count)
{
    if (count <= clock->count)
        return;
    uint64_t *grown = gni_host_realloc(clock->ticks, count * sizeof *grown);
    if (grown == NULL)
        sim_die_without_memory();
    memset(grown + clock->count, 0, (count - clock->count) * sizeof *grown);
    clock->ticks = grown;
    clock->count = count;
}

void sim_clock_copy(struct sim_clock *to, const struct sim_clock *from)
{
    clock_grow(to, from->count);
    if (from->count > 0)
        memcpy(to->ticks, from->ticks, from->count * sizeof *to->ticks);
    for (unsigned i = from->count; i < to->count; i++)
        to->ticks[i] = 0;
}

void sim_clock_join(struct sim_clock *to, const struct sim_clock *from)
{
    clock_grow(to, from->count);
    for (unsigned i = 0; i < from->count; i++)
        if (from->ticks[i] > to->ticks[i])
            to->ticks[i] = from->ticks[i];
}

uint64_t sim_clock_get(const struct sim_clock *clock, unsigned actor)
{
    return actor < clock->count ? clock->ticks[actor] : 0;
}

void sim_clock_set(struct sim_clock *clock, unsigned actor, uint64_t tick)
{
    clock_grow(clock, actor + 1);
    clock->ticks[actor] = tick;
}

/* A place is used again only when the host has seen everything its last stream did: whatever the next
 * one does is ordered after that anyway. */
unsigned sim_actor_take(uint64_t *tick)
{
    *tick = 0;
    for (unsigned i = 0; actor_count >= ACTORS_REUSED_FROM && i < idle_count; i++) {
        unsigned actor = idle_actors[i];
        if (sim_clock_get(&sim.host, actor) >= actor_ticks[actor]) {
            idle_actors[i] = idle_actors[--idle_count];
            *tick = actor_ticks[actor];
            return actor;
        }
    }
    return actor_count < ACTORS_MOST ? actor_count++ : 0;
}

void sim_actor_give(unsigned actor, uint64_t tick)
{
    actor_ticks[actor] = tick;
    idle_actors[idle_count++] = actor;
}

/* ---- the history ---------------------------------------------------------------------------- */

static void owner_release(struct owner *owner)
{
    if (--owner->references > 0)
        return;
    sim_clock_deinit(&owner->clock);
    gni_host_free(owner);
}

static struct page *page_get(uintptr_t number, bool is_made)
{
    struct page *page = gni_map_find(&pages, number);
    if (page != NULL || !is_made)
        return page;
    page = gni_host_alloc(sizeof *page);
    if (page == NULL || gni_map_insert(&pages, number, page) != GN_OK)
        sim_die_without_memory();
    return page;
}

static void access_remove(struct page *page, size_t place)
{
    owner_release(page->accesses[place].owner);
    page->accesses[place] = page->accesses[--page->count];
    access_count--;
}

/* The array with room for one more. */
static void *array_grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity == 0 ? 8 : *capacity * 2;
    array = gni_host_realloc(array, *capacity * size);
    if (array == NULL)
        sim_die_without_memory();
    return array;
}

static void access_add(struct page *page, struct access access)
{
    page->accesses =
        array_grow(page->accesses, page->count, &page->capacity, sizeof *page->accesses);
    if (!page->is_busy) {
        busy = array_grow(busy, busy_count, &busy_capacity, sizeof *busy);
        busy[busy_count++] = page;
        page->is_busy = true;
    }
    access.owner->references++;
    page->accesses[page->count++] = access;
    access_count++;
}

static bool is_ordered(const struct owner *owner, const struct owner *other)
{
    return sim_clock_get(&other->clock, owner->actor) >= owner->tick ||
           sim_clock_get(&owner->clock, other->actor) >= other->tick;
}

static const char *const verbs[] = {"reads", "changes atomically", "writes"};

/* Do two accesses to one byte need an order? */
static bool is_conflict(enum sim_access one, enum sim_access other)
{
    return one != other || one == SIM_WRITE;
}

static void race_report(const struct access *earlier, const struct access *later)
{
    uintptr_t begin = earlier->begin > later->begin ? earlier->begin : later->begin;
    uintptr_t end = earlier->end < later->end ? earlier->end : later->end;
    sim_finding(
        "H1 race: %s %s and %s %s the same %zu bytes at 0x%zx, and neither is ordered before "
        "the other: no event recorded after the one is waited for before the other, and the "
        "host did not wait in between",
        earlier->owner->label.text, verbs[earlier->kind], later->owner->label.text,
        verbs[later->kind], (size_t)(end - begin), (size_t)(later->address + begin - later->begin));
}

/* Checks an access against its page, forgets what it makes redundant, and adds it. */
static void page_access(struct page *page, struct access access, uint64_t number)
{
    bool is_kept = false;
    for (size_t i = 0; i < page->count;) {
        struct access *other = &page->accesses[i];
        if (other->begin >= access.end || access.begin >= other->end) {
            i++;
            continue;
        }
        bool is_own = other->owner->actor == access.owner->actor;
        if (is_conflict(other->kind, access.kind) && !is_ordered(other->owner, access.owner) &&
            number != last_reported) {
            last_reported = number;
            race_report(other, &access);
        }
        bool covers = access.begin <= other->begin && access.end >= other->end &&
                      access.address - access.begin == other->address - other->begin;
        bool is_seen =
            sim_clock_get(&access.owner->clock, other->owner->actor) >= other->owner->tick;
        if (covers && is_seen &&
            (access.kind == SIM_WRITE || (is_own && other->kind == access.kind))) {
            access_remove(page, i); /* whoever is ordered after this one is ordered after that */
            continue;
        }
        if (other->owner == access.owner && other->begin <= access.begin &&
            other->end >= access.end && other->kind >= access.kind)
            is_kept = true;
        i++;
    }
    if (!is_kept)
        access_add(page, access);
}

void sim_history_access(const struct sim_op *op, uintptr_t address, size_t nbytes,
                        enum sim_access kind)
{
    static struct owner *last; /* of the op that is running: its accesses come in a row */
    static uint64_t last_number;
    if (last == NULL || last_number != op->number) {
        if (last != NULL)
            owner_release(last);
        last = gni_host_alloc(sizeof *last);
        if (last == NULL)
            sim_die_without_memory();
        last->references = 1;
        last->actor = op->stream->actor;
        last->tick = sim_clock_get(&op->clock, last->actor);
        last->label = sim_op_label(op);
        sim_clock_copy(&last->clock, &op->clock);
        last_number = op->number;
    }
    for (size_t done = 0; done < nbytes;) {
        size_t left;
        uintptr_t place = sim_memory_place(address + done, &left);
        uintptr_t number = place >> PAGE_SHIFT, stop = ((number + 1) << PAGE_SHIFT) - place;
        size_t length = nbytes - done < stop ? nbytes - done : stop;
        if (length > left)
            length = left;
        struct access access = {place, place + length, address + done, kind, last};
        page_access(page_get(number, true), access, op->number);
        done += length;
    }
}

void sim_history_forget(uintptr_t address, size_t nbytes)
{
    uintptr_t end = address + nbytes;
    for (uintptr_t number = address >> PAGE_SHIFT; number <= (end - 1) >> PAGE_SHIFT; number++) {
        struct page *page = page_get(number, false);
        for (size_t i = 0; page != NULL && i < page->count;) {
            if (page->accesses[i].begin < end && page->accesses[i].end > address)
                access_remove(page, i);
            else
                i++;
        }
    }
}

void sim_history_retire(uintptr_t address, size_t nbytes, const char *what)
{
    size_t left;
    uintptr_t place = sim_memory_place(address, &left), end = place + nbytes;
    const struct sim_op *pending = sim_pending_find(address, nbytes);
    bool is_reported = pending != NULL;
    if (pending != NULL)
        sim_finding("H3: %s gives memory at 0x%zx back while %s is queued that uses it", what,
                    (size_t)address, sim_op_label(pending).text);
    for (uintptr_t number = place >> PAGE_SHIFT; number <= (end - 1) >> PAGE_SHIFT; number++) {
        struct page *page = page_get(number, false);
        for (size_t i = 0; page != NULL && i < page->count;) {
            const struct access *access = &page->accesses[i];
            const struct owner *owner = access->owner;
            bool is_other_address = access->address - access->begin != address - place;
            if (access->begin >= end || access->end <= place || is_other_address) {
                i++;
                continue;
            }
            if (!is_reported && sim_clock_get(&sim.host, owner->actor) < owner->tick) {
                is_reported = true;
                sim_finding(
                    "H3: %s gives memory at 0x%zx back that %s %s, and the host did not wait "
                    "for it",
                    what, (size_t)address, owner->label.text, verbs[access->kind]);
            }
            access_remove(page, i);
        }
    }
}

void sim_history_settle(void)
{
    for (size_t at = 0; at < busy_count;) {
        struct page *page = busy[at];
        for (size_t i = 0; i < page->count;) {
            const struct owner *owner = page->accesses[i].owner;
            if (sim_clock_get(&sim.host, owner->actor) >= owner->tick)
                access_remove(page, i);
            else
                i++;
        }
        if (page->count > 0) {
            at++;
            continue;
        }
        page->is_busy = false;
        busy[at] = busy[--busy_count];
    }
}

size_t sim_history_count(void)
{
    return access_count;
}
