/*
 * hash.c: linear probing with backward-shift deletion. The invariants are numbered in hash.h.
 *
 * Linear probing, since a search then reads neighbouring entries: with four entries to a cache line
 * and at most three quarters in use, most searches touch one line. It needs a hash that spreads
 * strided keys well, which gni_hash_u64 does.
 */
#include "base/hash.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/host.h"

#include <inttypes.h>
#include <string.h>

#define MAP_CAPACITY_MIN 8

/* Debug builds walk maps up to this capacity at every change; larger ones only when they grow. */
#define MAP_WALK_CAPACITY_MAX 64

/* Odd numbers with no pattern in their bits: fractions of the golden ratio and of pi. */
#define HASH_GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define HASH_PI UINT64_C(0x243f6a8885a308d3)

uint64_t gni_hash_u64(uint64_t value)
{
    /* A product carries low bits upwards only, so the shifts bring the high half down again. */
    value ^= value >> 32;
    value *= HASH_GOLDEN;
    value ^= value >> 29;
    value *= HASH_PI;
    value ^= value >> 32;
    return value;
}

/* Both halves of a product, in which every bit of both numbers takes part. The hash so far goes in a second
 * time: a factor of 0 must not make it forget what came before. */
static uint64_t hash_add(uint64_t hash, uint64_t first, uint64_t second)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(first ^ HASH_PI) * (second ^ hash);
    return (uint64_t)product ^ (uint64_t)(product >> 64) ^ hash * HASH_GOLDEN;
}

uint64_t gni_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
    /* The size goes in first: the last words are filled up with bytes that were there before, or with zeros. */
    uint64_t hash = (seed + HASH_GOLDEN) * HASH_PI ^ size;
    const unsigned char *next = bytes;
    uint64_t words[2] = {0, 0};
    size_t left = size;
    for (; left >= sizeof words; left -= sizeof words, next += sizeof words) {
        memcpy(words, next, sizeof words);
        hash = hash_add(hash, words[0], words[1]);
    }
    if (left > 0 && size >= sizeof words)
        memcpy(words, next + left - sizeof words, sizeof words);
    else if (left > 0)
        memcpy(words, next, left);
    if (left > 0)
        hash = hash_add(hash, words[0], words[1]);
    return gni_hash_u64(hash + HASH_GOLDEN);
}

/* The most entries of a capacity (invariant 2). */
static size_t map_count_max(size_t capacity)
{
    return capacity - capacity / 4;
}

static size_t map_home(const struct gni_map *map, uint64_t key)
{
    return (size_t)gni_hash_u64(key) & (map->capacity - 1);
}

/* How far a place lies behind another one, going round the end. */
static size_t map_distance(const struct gni_map *map, size_t from, size_t to)
{
    return (to - from) & (map->capacity - 1);
}

/* The place of a key, or the empty place where it would go. The capacity must not be 0. */
static size_t map_place_find(const struct gni_map *map, uint64_t key)
{
    size_t place = map_home(map, key);
    while (map->entries[place].value != NULL && map->entries[place].key != key)
        place = (place + 1) & (map->capacity - 1);
    return place;
}

/* Moves all entries into an array of another capacity, which must have room for them. */
static gn_status map_resize(struct gni_map *map, size_t capacity)
{
    size_t nbytes;
    if (!gni_size_multiply(capacity, sizeof *map->entries, &nbytes) ||
        !gni_size_is_possible(nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "a map of %zu entries does not fit the address space",
                         capacity);
    struct gni_map larger = {.capacity = capacity, .count = map->count};
    larger.entries = gni_host_alloc(nbytes); /* zeros: all values NULL */
    if (larger.entries == NULL)
        return gni_error_host_memory(nbytes);
    gni_map_each (entry, map)
        larger.entries[map_place_find(&larger, entry->key)] = *entry;
    gni_host_free(map->entries);
    *map = larger;
    gni_assert(gni_map_is_valid(map));
    return GN_OK;
}

void gni_map_init(struct gni_map *map)
{
    *map = (struct gni_map){0};
}

void gni_map_deinit(struct gni_map *map)
{
    gni_assert(gni_map_is_valid(map));
    gni_host_free(map->entries);
    gni_map_init(map);
}

void *gni_map_find(const struct gni_map *map, uint64_t key)
{
    if (map->capacity == 0)
        return NULL;
    return map->entries[map_place_find(map, key)].value;
}

gn_status gni_map_insert(struct gni_map *map, uint64_t key, void *value)
{
    if (value == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "the value of key 0x%" PRIx64 " is NULL", key);
    if (gni_map_find(map, key) != NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "key 0x%" PRIx64 " is in the map already", key);
    GN_TRY(gni_map_reserve(map, map->count + 1)); /* no overflow: entries are larger than 1 byte */
    map->entries[map_place_find(map, key)] = (struct gni_map_entry){.key = key, .value = value};
    map->count++;
    gni_assert(map->capacity > MAP_WALK_CAPACITY_MAX || gni_map_is_valid(map));
    return GN_OK;
}

/*
 * Fills the hole at a place with the next entry that may lie there, whose own place is the new
 * hole, until the run of entries ends. An entry may move back no further than its home.
 */
static void map_hole_close(struct gni_map *map, size_t hole)
{
    size_t place = hole;
    for (;;) {
        place = (place + 1) & (map->capacity - 1);
        if (map->entries[place].value == NULL)
            break;
        size_t home = map_home(map, map->entries[place].key);
        if (map_distance(map, home, place) >= map_distance(map, hole, place)) {
            map->entries[hole] = map->entries[place];
            hole = place;
        }
    }
    map->entries[hole].value = NULL;
}

bool gni_map_take(struct gni_map *map, uint64_t key, void **value)
{
    if (map->capacity == 0)
        return false;
    size_t place = map_place_find(map, key);
    if (map->entries[place].value == NULL)
        return false;
    if (value != NULL)
        *value = map->entries[place].value;
    map_hole_close(map, place);
    map->count--;
    gni_assert(map->capacity > MAP_WALK_CAPACITY_MAX || gni_map_is_valid(map));
    return true;
}

gn_status gni_map_reserve(struct gni_map *map, size_t count)
{
    if (count <= map_count_max(map->capacity))
        return GN_OK;
    size_t capacity = map->capacity == 0 ? MAP_CAPACITY_MIN : map->capacity;
    while (map_count_max(capacity) < count) {
        if (!gni_size_multiply(capacity, 2, &capacity))
            return gni_error(GN_ERROR_OVERFLOW, "%zu entries do not fit the address space", count);
    }
    return map_resize(map, capacity);
}

struct gni_map_entry *gni_map_next(const struct gni_map *map, const struct gni_map_entry *entry)
{
    size_t place = entry == NULL ? 0 : (size_t)(entry - map->entries) + 1;
    for (; place < map->capacity; place++) {
        if (map->entries[place].value != NULL)
            return &map->entries[place];
    }
    return NULL;
}

bool gni_map_is_valid(const struct gni_map *map)
{
    if (map->capacity == 0)
        return map->entries == NULL && map->count == 0;
    bool is_power_of_two = (map->capacity & (map->capacity - 1)) == 0;
    if (!is_power_of_two || map->entries == NULL || map->count > map_count_max(map->capacity))
        return false;
    size_t count = 0;
    for (size_t place = 0; place < map->capacity; place++)
        count += map->entries[place].value != NULL;
    if (count != map->count) /* before searching, which ends only if there is an empty entry */
        return false;
    /* A search that ends elsewhere met a gap (invariant 3) or the same key a second time. */
    gni_map_each (entry, map) {
        if (map_place_find(map, entry->key) != (size_t)(entry - map->entries))
            return false;
    }
    return true;
}
