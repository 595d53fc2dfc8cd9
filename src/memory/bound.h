/*
 * bound.h: how much a pool may reserve before idle memory is recycled. bound.c has the rules.
 *
 * Threads: everything here is called with the pool's lock.
 */
#ifndef GNI_MEMORY_BOUND_H
#define GNI_MEMORY_BOUND_H

#include "memory/pool.h"

/* A large request that no thread's cache has met; called before gni_bound_widen(). */
void gni_bound_note(struct gni_pool *pool, size_t requested);

/* What may be reserved before idle memory is recycled for this need. */
uint64_t gni_bound_reserved(struct gni_pool *pool, const struct gni_need *need);

/* Whether the need may grow without recycling. */
bool gni_bound_allows(struct gni_space *space, const struct gni_need *need);

/* Whether the need may grow if up to twice what was live may be reserved. */
bool gni_bound_allows_double(struct gni_space *space, const struct gni_need *need);

/* So many pieces went back to the driver for the need: a program that recycles again and again gets a wider bound. */
void gni_bound_widen(struct gni_space *space, const struct gni_need *need, size_t pieces);

/* Forgets all widening. */
void gni_bound_reset(struct gni_pool *pool);

#endif
