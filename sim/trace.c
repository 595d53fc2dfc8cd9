/*
 * trace.c: see trace.h.
 */
#include "trace.h"
#include "bridge.h"

#include <string.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
/* Memory that the host's own checks have closed (a freed block, say) is closed to kernels. */
static bool is_closed(uintptr_t address, size_t nbytes)
{
    return __asan_region_is_poisoned((void *)address, nbytes) != NULL;
}
#else
static bool is_closed(uintptr_t address, size_t nbytes)
{
    (void)address;
    (void)nbytes;
    return false;
}
#endif

enum {
    SLOT_COUNT = 64, /* a power of two */
    RANGE_COUNT = 8,
};

struct slot {
    uintptr_t begin, end; /* begin == end: empty */
    const void *site;
    unsigned flags;
};

struct range {
    uintptr_t begin, end;
};

static const struct sim_launch *launch;
static struct slot slots[SLOT_COUNT];
static struct range ranges[RANGE_COUNT]; /* the last ones that were found */
static unsigned range_next;

void sim_trace_begin(const struct sim_launch *begun)
{
    launch = begun;
    memset(slots, 0, sizeof slots);
    memset(ranges, 0, sizeof ranges);
    range_next = 0;
}

static bool range_has(const struct range *range, uintptr_t address, size_t nbytes)
{
    return address >= range->begin && address < range->end && nbytes <= range->end - address;
}

static bool is_inside(uintptr_t address, size_t nbytes)
{
    for (unsigned i = 0; i < RANGE_COUNT; i++)
        if (range_has(&ranges[i], address, nbytes))
            return true;
    struct range found;
    if (!launch->find_range(launch->context, address, &found.begin, &found.end) ||
        !range_has(&found, address, nbytes))
        return false;
    ranges[range_next++ % RANGE_COUNT] = found;
    return true;
}

static bool send(const struct slot *slot)
{
    return slot->begin == slot->end || launch->access == NULL ||
           launch->access(launch->context, slot->begin, slot->end - slot->begin,
                          (slot->flags & GN_SIM_WRITE) != 0, (slot->flags & GN_SIM_ATOMIC) != 0,
                          slot->site);
}

bool sim_trace_access(uintptr_t address, size_t nbytes, unsigned flags, const void *site)
{
    if (is_closed(address, nbytes))
        return false;
    struct slot now = {.begin = address, .end = address + nbytes, .site = site, .flags = flags};
    if (launch->find_range == NULL)
        return send(&now);
    if (!is_inside(address, nbytes))
        return false;
    uintptr_t key = (uintptr_t)site;
    struct slot *slot = &slots[(key ^ key >> 6) % SLOT_COUNT];
    if (slot->site == site && slot->flags == flags && now.begin <= slot->end &&
        now.end >= slot->begin) {
        slot->begin = now.begin < slot->begin ? now.begin : slot->begin;
        slot->end = now.end > slot->end ? now.end : slot->end;
        return true;
    }
    struct slot old = *slot;
    *slot = now;
    return send(&old);
}

bool sim_trace_end(const void **site)
{
    bool is_ok = true;
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        struct slot slot = slots[i];
        slots[i].begin = slots[i].end = 0;
        if (!send(&slot)) {
            is_ok = false;
            *site = slot.site;
        }
    }
    return is_ok;
}
