/*
 * disk_cache.h: compiled kernels on disk, for the next process.
 *
 * A directory with one file for each entry, found by the SHA-256 of everything that went into it:
 *
 *     9f86d081...0f00a08.gk    magic | format | sizes | key | checksum | label | bytes
 *
 * The directory is GENESIS_KERNEL_CACHE_DIR, or genesis/kernels in the user's cache directory
 * (XDG_CACHE_HOME, ~/.cache).
 *
 * An entry is code that will run, so:
 *   DC1  the directory and the file belong to this user, nobody else can write to them, and neither is a
 *       symbolic link; otherwise there is no cache, with one warning;
 *   DC2  an entry whose length, format, key or checksum is not right is a miss, and is removed;
 *   DC3  an entry appears under its name whole, or not at all: it is written under another name first. Any
 *       number of processes may read, write and remove at the same time;
 *   DC4  no failure of the disk is a failure of the caller: what cannot be read is a miss, and what cannot
 *       be written stays in memory;
 *   DC5  the directory does not grow beyond GNI_DISK_CACHE_BYTES by much: the entries that were not used
 *       for the longest time go.
 *
 * Threads: any.
 */
#ifndef GNI_JIT_DISK_CACHE_H
#define GNI_JIT_DISK_CACHE_H

#include "base/sha256.h"
#include "jit/source.h"

#define GNI_DISK_CACHE_BYTES (512ull << 20)

struct gni_disk_key {
    uint8_t digest[GNI_SHA256_BYTES];
};

/* Reads an entry, which the caller owns then; false: there is none. The label is image->symbol. */
bool gni_disk_cache_find(const struct gni_disk_key *key, struct gni_kernel_image *image);

/* Writes an entry, if it can. */
void gni_disk_cache_store(const struct gni_disk_key *key, const char *label, const void *bytes,
                          size_t nbytes);

/* Removes an entry that turned out to be of no use. */
void gni_disk_cache_remove(const struct gni_disk_key *key);

/* Calls a function with each entry of a label, which it borrows. The directory may change meanwhile. */
void gni_disk_cache_visit(const char *label,
                          void (*visit)(void *context, const struct gni_disk_key *key,
                                        const struct gni_kernel_image *image),
                          void *context);

/* Removes all entries; gives how many. */
size_t gni_disk_cache_clear(void);

/* For tests: another limit in the place of GNI_DISK_CACHE_BYTES; 0 puts that back. */
void gni_disk_cache_set_limit(uint64_t nbytes);

#endif
