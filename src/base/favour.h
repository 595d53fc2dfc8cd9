/*
 * favour.h: a lock that costs a thread next to nothing while no other thread comes.
 *
 *     shared --one thread took it often, and no other meanwhile--> that thread is the favourite
 *        ^                                                                  |
 *        +-------------------------- another thread comes ------------------+
 *
 * The favourite goes in and out by plain stores: an exchange would have to wait for everything that the thread has
 * stored before, cache misses included, at both ends of each piece of short work. Everybody else takes the lock of
 * lock.h, and puts an end to the favour:
 *
 *     the favourite, with its seat          another thread, with the lock
 *     seat->busy = 1                        favourite = NULL
 *     (the compiler keeps the order)        barrier on all threads (barrier.h)
 *     favourite is still my seat? else      wait until seat->busy is 0
 *       seat->busy = 0, and take the lock
 *     ... inside = seat ...
 *     inside = NULL, seat->busy = 0 (release)
 *
 * An end costs microseconds, which is why a favour must be earned: two threads that take turns share the lock. Where
 * the system has no such barrier there is no favourite.
 *
 * Invariants:
 *   1. who is in has the lock, or `inside` is its seat, which was `favourite` when it came;
 *   2. `favourite` is set by a thread that has the lock, to its own seat, and ended by one that has the lock;
 *   3. a seat belongs to one thread for ever, and only that one writes `busy`: it may have been on its way in when its
 *      favour ended, and come to see that when another thread is the favourite long since;
 *   4. everything else but `owner` is read and written by who is in.
 *
 * Not recursive, and no condition can be waited for with it: that takes a mutex beside it (ops/recorder.c). A holder
 * may fork (a driver can do that by itself): the fork's handlers pass over it then (fork.h).
 */
#ifndef GNI_BASE_FAVOUR_H
#define GNI_BASE_FAVOUR_H

#include "base/error.h"
#include "base/lock.h"

enum {
    GNI_FAVOUR_STREAK = 1024, /* turns of one thread, which cost as much as the end of a favour */
    GNI_FAVOUR_SEATS = 8,     /* threads that can be favourites; the others share the lock */
    GNI_FAVOUR_APART = 64,    /* bytes: a cache line */
};

struct gni_favour_seat {
    _Atomic(const void *) thread; /* whose it is; NULL: nobody's yet */
    _Atomic(unsigned) busy;       /* it is in, or about to look whether it may be */
};

/* Threads that wait look at the lock all the time, and all threads at the favourite: what is written at each turn lies
 * apart from both. */
struct gni_favour {
    char apart_before[GNI_FAVOUR_APART];
    struct gni_lock lock;
    char apart_behind[GNI_FAVOUR_APART];
    _Atomic(struct gni_favour_seat *) favourite; /* one of the seats, or NULL */
    bool is_plain;                               /* the system has no barrier */
    struct gni_favour_seat seats[GNI_FAVOUR_SEATS];
    char apart_inside[GNI_FAVOUR_APART];
    struct gni_favour_seat *inside; /* of who is in; NULL: it has the lock */
    bool is_passed_over;            /* by the owner's own fork() */
    unsigned streak;                /* turns that `last` took since another thread did */
    const void *last;               /* who took the lock last */
    _Atomic(const void *) owner;    /* who has the lock, or NULL */
};

/* With the lock: the thread becomes the favourite; or another one is it no more, and not in. */
void gni_favour_begin(struct gni_favour *favour);
void gni_favour_end(struct gni_favour *favour);

/* The seat of a thread that is the favourite, or NULL. */
static inline struct gni_favour_seat *gni_favour_seat(struct gni_favour *favour, const void *thread)
{
    struct gni_favour_seat *seat = atomic_load_explicit(&favour->favourite, memory_order_acquire);
    bool is_its =
        seat != NULL && atomic_load_explicit(&seat->thread, memory_order_relaxed) == thread;
    return is_its ? seat : NULL;
}

static inline bool gni_favour_enter(struct gni_favour *favour, const void *self)
{
    struct gni_favour_seat *seat = gni_favour_seat(favour, self);
    if (seat == NULL)
        return false;
    /* Acquired: a thread that has ended may have had this one's name, and its seat. */
    (void)atomic_load_explicit(&seat->busy, memory_order_acquire);
    atomic_store_explicit(&seat->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&favour->favourite, memory_order_acquire) == seat,
                         1)) {
        favour->inside = seat;
        return true;
    }
    atomic_store_explicit(&seat->busy, 0, memory_order_release);
    return false;
}

static inline void gni_favour_take(struct gni_favour *favour)
{
    const void *self = gni_thread_self();
    if (gni_favour_enter(favour, self))
        return;
    gni_lock_take(&favour->lock);
    atomic_store_explicit(&favour->owner, self, memory_order_relaxed);
    if (atomic_load_explicit(&favour->favourite, memory_order_relaxed) != NULL)
        gni_favour_end(favour);
    favour->streak = favour->last == self ? favour->streak + 1 : 0;
    favour->last = self;
    if (favour->streak >= GNI_FAVOUR_STREAK)
        gni_favour_begin(favour);
}

static inline void gni_favour_give(struct gni_favour *favour)
{
    struct gni_favour_seat *seat = favour->inside;
    gni_assert(gni_thread_self() ==
               (seat != NULL ? atomic_load(&seat->thread) : atomic_load(&favour->owner))); /* 1 */
    if (seat != NULL) {
        favour->inside = NULL;
        atomic_store_explicit(&seat->busy, 0, memory_order_release);
    } else {
        atomic_store_explicit(&favour->owner, NULL, memory_order_relaxed);
        gni_lock_give(&favour->lock);
    }
}

/* For fork handlers: passes over a lock that the thread is in already. */
void gni_favour_fork_take(struct gni_favour *favour);
void gni_favour_fork_give(struct gni_favour *favour, bool is_child);

#endif
