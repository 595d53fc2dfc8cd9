/*
 * trace.h: tells a launch's callbacks what memory the kernel uses.
 *
 * With find_range (engine.h), bounds are looked up once for each range, and accesses are collected
 * into runs: there are some slots, chosen by the instruction, and each holds the run that grows. An
 * access that does not touch its slot's run sends the run to access() and begins another.
 *
 * Threads: one launch at a time (engine.h, E1).
 */
#ifndef GNI_SIM_TRACE_H
#define GNI_SIM_TRACE_H

#include "engine.h"

void sim_trace_begin(const struct sim_launch *launch);

/* False: the kernel must not make this access, or an earlier one was refused just now. */
bool sim_trace_access(uintptr_t address, size_t nbytes, unsigned flags, const void *site);

/* Sends the runs that are left. False: one was refused, and `site` made it. */
bool sim_trace_end(const void **site);

#endif
