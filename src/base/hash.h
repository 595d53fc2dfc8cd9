/*
 * hash.h: a hash map from 64-bit keys (addresses, ids) to pointers, and the hashes it rests on.
 *
 *     struct gni_map map;        one array of entries; a key's home is hash(key) % capacity, and it
 *                                lies there or in the first free place after it:
 *
 *     | a |   | b | c |   |      c has b's home and was moved on by one
 *
 * Invariants:
 *   1. A value is never NULL: NULL marks an empty entry. So every key is legal, 0 and UINT64_MAX
 *      too, and there are no marks for deleted entries that would pile up.
 *   2. capacity is 0 or a power of two, and count <= capacity - capacity / 4: a search always meets
 *      an empty entry.
 *   3. Between a key's home and its entry there is no empty entry; taking a key moves later
 *      entries back to keep this.
 *   4. A function that fails leaves the map as it was.
 *   5. The capacity never shrinks: once gni_map_reserve(map, count) succeeded, an insert that makes
 *      no more than `count` entries cannot fail for want of memory, whatever was taken meanwhile.
 *
 * Threads: no locks here; the owner of the map guards it. The map does not own what values point
 * to.
 */
#ifndef GNI_BASE_HASH_H
#define GNI_BASE_HASH_H

#include "genesis/base.h"

struct gni_map_entry {
    uint64_t key;
    void *value; /* NULL: this entry is empty */
};

struct gni_map {
    struct gni_map_entry *entries; /* `capacity` of them, owned; NULL while capacity is 0 */
    size_t capacity;               /* 0 or a power of two */
    size_t count;                  /* entries whose value is not NULL */
};

/* An empty map; allocates nothing and cannot fail. */
void gni_map_init(struct gni_map *map);

/* Frees the map's own memory and leaves an empty map, as after gni_map_init. */
void gni_map_deinit(struct gni_map *map);

/* The value of a key, or NULL when the map does not have it. */
void *gni_map_find(const struct gni_map *map, uint64_t key);

/*
 * Adds a key. A key that is there already and a value of NULL are GN_ERROR_INVALID_VALUE: a second
 * block at an address, or a second object with an id, is a mistake that must not be papered over
 * (to replace, take first). Otherwise fails only if it must grow: see gni_map_reserve.
 */
gn_status gni_map_insert(struct gni_map *map, uint64_t key, void *value) GN_NODISCARD;

/*
 * Removes a key and hands its value over; false when the map does not have it, and *value is left
 * as it was. `value` may be NULL. Never allocates.
 */
bool gni_map_take(struct gni_map *map, uint64_t key, void **value);

/*
 * Makes room for `count` entries in all, those that are there included (invariant 5). For callers
 * that do something irreversible before they insert:
 *     GN_TRY(gni_map_reserve(&map, gni_map_count(&map) + 1));
 * Fails with GN_ERROR_OVERFLOW or GN_ERROR_OUT_OF_HOST_MEMORY.
 */
gn_status gni_map_reserve(struct gni_map *map, size_t count) GN_NODISCARD;

static inline size_t gni_map_count(const struct gni_map *map)
{
    return map->count;
}

/* The entry after `entry` in memory, the first one for NULL; NULL at the end. */
struct gni_map_entry *gni_map_next(const struct gni_map *map, const struct gni_map_entry *entry);

/*
 * Visits each entry, in no useful order: gni_map_each (entry, &map) { use(entry->key); }
 * The loop declares `entry`. The body may change entry->value to another pointer, not NULL; it must
 * not insert, take or reserve, all of which move entries.
 */
#define gni_map_each(entry, map)                                                 \
    for (struct gni_map_entry *entry = gni_map_next((map), NULL); entry != NULL; \
         entry = gni_map_next((map), entry))

/* Whether invariants 1 to 3 hold. Looks at every entry: for asserts and tests. */
bool gni_map_is_valid(const struct gni_map *map);

/*
 * Mixes the bits of a number so that each bit of the result depends on all of them: addresses share
 * their low bits (alignment) and their high bits (one address space). One-to-one; 0 gives 0.
 */
uint64_t gni_hash_u64(uint64_t value);

/* A number of so many bits, 1 to 64, for a table of that size: quicker, and good enough for sizes and the like. */
static inline uint64_t gni_hash_bits(uint64_t value, unsigned bits)
{
    return value * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits);
}

/*
 * A hash of bytes for tables in this process, which may be NULL when size is 0. Different seeds
 * give unrelated hashes. Not for files (it depends on the byte order) nor against an opponent.
 */
uint64_t gni_hash_bytes(const void *bytes, size_t size, uint64_t seed);

#endif
