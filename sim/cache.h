/*
 * cache.h: images by the hash of everything they were made from.
 *
 * In memory for the life of the process, and on disk in $SIM_GPU_CACHE_DIR, $XDG_CACHE_HOME/
 * genesis-sim or ~/.cache/genesis-sim, the first that is set. A cached image is code, so the
 * directory must be ours and closed to others, and so must the file; otherwise there is no disk
 * cache. A file that is cut short or changed is a miss. An empty SIM_GPU_CACHE_DIR means memory
 * only.
 *
 * Threads: any. Images are never dropped, so that a borrowed one stays.
 */
#ifndef GNI_SIM_CACHE_H
#define GNI_SIM_CACHE_H

#include "base/sha256.h"

#include <stdbool.h>

struct sim_cached {
    const void *image;
    size_t nbytes;
};

/* Borrows the image with this key. False: nobody has it. */
bool sim_cache_find(const char key[GNI_SHA256_TEXT_BYTES], struct sim_cached *cached);

/*
 * Takes over the image (from malloc()); of two under one key the first one stays. Gives the one
 * that is kept. False: out of memory, and the image is still the caller's.
 */
bool sim_cache_store(const char key[GNI_SHA256_TEXT_BYTES], void *image, size_t nbytes,
                     struct sim_cached *cached);

/* Forgets what is in memory, for tests of the disk; nothing may be borrowed. */
void sim_cache_forget(void);

#endif
