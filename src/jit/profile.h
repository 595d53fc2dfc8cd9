/*
 * profile.h: what a launch does to be measured (genesis/profile.h).
 *
 *     struct gni_profile_run *run = gni_profile_begin(name, stream, &launch);
 *     gn_status status = launch it;
 *     gni_profile_end(run, stream, status == GN_OK);
 *
 * Measuring never makes a launch fail, and never waits. Both calls are free to be made with locks held that are above
 * GNI_FORK_PROFILE.
 */
#ifndef GNI_JIT_PROFILE_H
#define GNI_JIT_PROFILE_H

#include "device/device.h"
#include "genesis/profile.h"

struct gni_profile_run;

/* What a kernel's launches took, of those that were measured. It lives until gn_shutdown(). */
struct gni_profile_total {
    _Atomic(uint64_t) count, ns;
};

/* Launches are measured, or somebody wants their names. */
extern atomic_bool gni_profile_is_wanted;

/* Is called with the name of each kernel before its launch, in the thread that launches it. NULL: nobody is. */
void gni_profile_set_observer(void (*observer)(const char *name));

struct gni_profile_run *gni_profile_start(const char *name, gn_stream *stream,
                                          const struct gni_launch *launch,
                                          struct gni_profile_total *total);
void gni_profile_stop(struct gni_profile_run *run, gn_stream *stream, bool is_launched);

/* `launch` is NULL where a library chooses it, `total` where nobody adds up. NULL: this launch is not measured. */
static inline struct gni_profile_run *gni_profile_begin(const char *name, gn_stream *stream,
                                                        const struct gni_launch *launch,
                                                        struct gni_profile_total *total)
{
    return atomic_load_explicit(&gni_profile_is_wanted, memory_order_relaxed)
               ? gni_profile_start(name, stream, launch, total)
               : NULL;
}

static inline void gni_profile_end(struct gni_profile_run *run, gn_stream *stream, bool is_launched)
{
    if (run != NULL)
        gni_profile_stop(run, stream, is_launched);
}

#endif
