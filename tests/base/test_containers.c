/*
 * test_containers.c: the map, the list and the bitmap, each against a plain model of it.
 */
#include "check.h"

#include "base/bitmap.h"
#include "base/builder.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/list.h"

#define MIB ((uint64_t)1 << 20)

#define KEYS_MAX 3000

/* Keys as they occur: small ids, 512-byte blocks, 2 MiB pages, high bits only, both extremes. */
struct key_pattern {
    uint64_t base;
    uint64_t stride;
};

static const struct key_pattern key_patterns[] = {
    {0, 1},
    {UINT64_C(0x7f0000000000), 512},
    {UINT64_C(0x302000000), 2 * MIB},
    {0, UINT64_C(1) << 52},
    {UINT64_MAX, 1}, /* UINT64_MAX, 0, 1, 2, ... */
};

#define KEY_PATTERN_COUNT (sizeof key_patterns / sizeof key_patterns[0])

static uint64_t pattern_key(const struct key_pattern *pattern, size_t index)
{
    return pattern->base + index * pattern->stride;
}

/* A value that no two keys and no two inserts share. */
static void *value_make(uint64_t number)
{
    return (void *)(uintptr_t)(number + 1);
}

static bool map_is_model(const struct gni_map *map, const struct key_pattern *pattern,
                         void *const *model, size_t nkeys)
{
    size_t count = 0, visited = 0;
    for (size_t i = 0; i < nkeys; i++) {
        count += model[i] != NULL;
        if (gni_map_find(map, pattern_key(pattern, i)) != model[i])
            return false;
    }
    gni_map_each (entry, map) {
        size_t index = (size_t)((entry->key - pattern->base) / pattern->stride);
        if (index >= nkeys || model[index] != entry->value)
            return false;
        visited++;
    }
    return count == gni_map_count(map) && visited == count && gni_map_is_valid(map);
}

/* One random operation on the map and on the model, which must agree. */
static void map_step(struct gni_map *map, uint64_t key, void **model, uint64_t random)
{
    void *taken = &taken;
    switch (random % 8) {
    case 0:
    case 1:
    case 2:
        CHECK(gni_map_insert(map, key, value_make(random >> 8)) ==
              (*model == NULL ? GN_OK : GN_ERROR_INVALID_VALUE));
        *model = *model == NULL ? value_make(random >> 8) : *model;
        break;
    case 3:
    case 4:
    case 5:
        CHECK(gni_map_take(map, key, &taken) == (*model != NULL));
        CHECK(taken == (*model == NULL ? (void *)&taken : *model));
        *model = NULL;
        break;
    default:
        CHECK(gni_map_find(map, key) == *model);
    }
}

static void map_property(const struct key_pattern *pattern, size_t nkeys, uint64_t seed)
{
    static void *model[KEYS_MAX];
    memset(model, 0, sizeof model);
    struct gni_map map;
    gni_map_init(&map);
    for (int step = 0; step < 200000; step++) {
        size_t index = (size_t)(check_random(&seed) % nkeys);
        map_step(&map, pattern_key(pattern, index), &model[index], check_random(&seed));
        if (step % 10000 == 0)
            CHECK(map_is_model(&map, pattern, model, nkeys));
    }
    CHECK(map_is_model(&map, pattern, model, nkeys));
    CHECK(map.capacity < 3 * nkeys + 16); /* taking leaves nothing behind that makes it grow */
    for (size_t i = 0; i < nkeys; i++)
        CHECK(gni_map_take(&map, pattern_key(pattern, i), NULL) == (model[i] != NULL));
    CHECK_U64(gni_map_count(&map), 0);
    gni_map_deinit(&map);
}

static void test_map_property(void)
{
    size_t live = gni_host_live_count();
    const size_t nkeys[] = {7, 40, KEYS_MAX};
    for (size_t p = 0; p < KEY_PATTERN_COUNT; p++) {
        for (size_t seed = 0; seed < 3; seed++)
            map_property(&key_patterns[p], nkeys[seed], 1000 * p + seed);
    }
    CHECK_U64(gni_host_live_count(), live);
}

static void test_map_edges(void)
{
    struct gni_map map;
    int value = 0, other = 0;
    void *taken = NULL;
    gni_map_init(&map);
    CHECK(gni_map_find(&map, 0) == NULL && !gni_map_take(&map, 0, &taken));
    CHECK(gni_map_is_valid(&map));
    gni_map_each (entry, &map)
        CHECK(entry == NULL);
    CHECK_STATUS(gni_map_insert(&map, 16, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("0x10");
    CHECK_OK(gni_map_insert(&map, 0, &value));
    CHECK_OK(gni_map_insert(&map, UINT64_MAX, &other));
    CHECK_STATUS(gni_map_insert(&map, UINT64_MAX, &value), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("already");
    CHECK(gni_map_find(&map, UINT64_MAX) == &other);
    CHECK(gni_map_take(&map, 0, &taken) && taken == &value);
    CHECK(gni_map_find(&map, 0) == NULL && gni_map_find(&map, UINT64_MAX) == &other);
    CHECK_STATUS(gni_map_reserve(&map, SIZE_MAX), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gni_map_reserve(&map, (size_t)1 << 59), GN_ERROR_OVERFLOW);
    CHECK(gni_map_count(&map) == 1 && gni_map_find(&map, UINT64_MAX) == &other);
    gni_map_deinit(&map);
    CHECK(gni_map_count(&map) == 0 && gni_map_find(&map, UINT64_MAX) == NULL);
}

/* The walker must see what the invariants forbid, or its asserts are worth nothing. */
static void test_map_walker_sees_damage(void)
{
    struct gni_map map;
    gni_map_init(&map);
    for (uint64_t key = 0; key < 6; key++)
        CHECK_OK(gni_map_insert(&map, key, value_make(key)));
    CHECK(gni_map_is_valid(&map));
    struct gni_map_entry *entry = gni_map_next(&map, NULL);
    struct gni_map_entry saved = *entry;
    entry->value = NULL; /* the count is wrong now */
    CHECK(!gni_map_is_valid(&map));
    *entry = saved;
    entry->key = gni_map_next(&map, entry)->key; /* the same key twice */
    CHECK(!gni_map_is_valid(&map));
    *entry = saved;
    map.capacity--;
    CHECK(!gni_map_is_valid(&map));
    map.capacity++;
    CHECK(gni_map_is_valid(&map));
    gni_map_deinit(&map);
}

/* Linear probing at three quarters needs 2.5 looks on average with an ideal hash. */
static void test_map_spreads_keys(void)
{
    for (size_t p = 0; p < KEY_PATTERN_COUNT; p++) {
        struct gni_map map;
        size_t looks = 0;
        gni_map_init(&map);
        for (size_t i = 0; i < 3072; i++) /* exactly full at capacity 4096 */
            CHECK_OK(gni_map_insert(&map, pattern_key(&key_patterns[p], i), &map));
        CHECK_U64(map.capacity, 4096);
        gni_map_each (entry, &map) {
            size_t place = (size_t)(entry - map.entries);
            looks += 1 + ((place - (size_t)gni_hash_u64(entry->key)) & (map.capacity - 1));
        }
        CHECK(looks < 4 * gni_map_count(&map));
        gni_map_deinit(&map);
    }
}

/* Once reserved, inserts work without an allocator; taking in between changes nothing about it. */
static void test_map_reserve(void)
{
    for (size_t count = 0; count < 200; count++) {
        struct gni_map map;
        gni_map_init(&map);
        CHECK_OK(gni_map_reserve(&map, count));
        gni_host_fail_after(1);
        for (uint64_t key = 0; key < count; key++)
            CHECK_OK(gni_map_insert(&map, key, &map));
        for (uint64_t key = 0; key < count; key += 2)
            CHECK(gni_map_take(&map, key, NULL));
        for (uint64_t key = 0; key < count; key += 2)
            CHECK_OK(gni_map_insert(&map, key + 1000, &map));
        gni_host_fail_after(-1);
        CHECK_U64(gni_map_count(&map), count);
        gni_map_deinit(&map);
    }
}

/* Inserts 500 keys; a failed insert must leave the map as it was. */
static gn_status map_fill(struct gni_map *map)
{
    for (uint64_t i = 0; i < 500; i++) {
        gn_status status = gni_map_insert(map, i * 512, value_make(i));
        if (status == GN_OK)
            continue;
        CHECK_U64(gni_map_count(map), i);
        CHECK(gni_map_is_valid(map) && gni_map_find(map, i * 512) == NULL);
        for (uint64_t before = 0; before < i; before++)
            CHECK(gni_map_find(map, before * 512) == value_make(before));
        return status;
    }
    return GN_OK;
}

static void test_map_allocation_failures(void)
{
    size_t live = gni_host_live_count();
    gn_status status;
    long nth = 0;
    do {
        struct gni_map map;
        gni_map_init(&map);
        gni_host_fail_after(++nth);
        status = map_fill(&map);
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        gni_map_deinit(&map);
        CHECK_U64(gni_host_live_count(), live);
    } while (status != GN_OK && nth < 100);
    CHECK_U64(nth, 9); /* capacities 8 to 1024 are 8 allocations, each of which failed once */
}

static void test_hash_bytes(void)
{
    unsigned char bytes[100] = {0}, copy[101];
    uint64_t hashes[400];
    size_t count = 0;
    for (size_t size = 0; size <= 100; size++) /* zeros differ by their number alone */
        hashes[count++] = gni_hash_bytes(bytes, size, 0);
    for (size_t i = 0; i < 100; i++) {
        bytes[i] = 1;
        hashes[count++] = gni_hash_bytes(bytes, 100, 0);
        bytes[i] = 0;
    }
    for (uint64_t seed = 1; seed < 100; seed++)
        hashes[count++] = gni_hash_bytes("name", 4, seed);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            CHECK((uint32_t)hashes[i] != (uint32_t)hashes[j]);
    }
    memcpy(copy + 1, bytes, 100); /* the place of the bytes does not matter */
    CHECK_U64(gni_hash_bytes(copy + 1, 100, 3), gni_hash_bytes(bytes, 100, 3));
    CHECK_U64(gni_hash_bytes(NULL, 0, 3), gni_hash_bytes("", 0, 3));
}

/* Flipping one bit of the input flips each bit of the result about half of the time. */
static void test_hash_avalanche(void)
{
    uint64_t seed = 5;
    for (unsigned in = 0; in < 64; in++) {
        unsigned flips[64] = {0};
        for (int trial = 0; trial < 1000; trial++) {
            uint64_t value = check_random(&seed);
            uint64_t change = gni_hash_u64(value) ^ gni_hash_u64(value ^ UINT64_C(1) << in);
            for (unsigned out = 0; out < 64; out++)
                flips[out] += (unsigned)(change >> out & 1);
        }
        for (unsigned out = 0; out < 64; out++)
            CHECK(flips[out] > 300 && flips[out] < 700);
    }
}

#define ITEM_COUNT 20

struct item {
    int number;
    struct gni_list node;
};

static struct item *item_of(struct gni_list *node)
{
    return gni_container_of(node, struct item, node);
}

static bool list_is_model(struct gni_list *list, const int *model, size_t count)
{
    size_t at = 0;
    gni_list_each (node, list) {
        if (at == count || item_of(node)->number != model[at++] || node->next->prev != node)
            return false;
    }
    return at == count && gni_list_is_empty(list) == (count == 0);
}

static size_t model_remove(int *model, size_t count, int number)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (model[i] != number)
            model[kept++] = model[i];
    }
    return kept;
}

static void test_list_property(void)
{
    struct item items[ITEM_COUNT];
    struct gni_list list;
    int model[ITEM_COUNT];
    size_t count = 0;
    uint64_t seed = 11;
    gni_list_init(&list);
    CHECK(gni_list_pop_front(&list) == NULL);
    for (int i = 0; i < ITEM_COUNT; i++) {
        items[i].number = i;
        gni_list_init(&items[i].node);
    }
    for (int step = 0; step < 50000; step++) {
        struct item *item = &items[check_random(&seed) % ITEM_COUNT];
        bool is_listed = !gni_list_is_empty(&item->node);
        if (is_listed && check_random(&seed) % 2 == 0) {
            struct gni_list *front = gni_list_pop_front(&list);
            CHECK(front != NULL && item_of(front)->number == model[0]);
            count = model_remove(model, count, model[0]);
        } else if (is_listed) {
            gni_list_remove(&item->node);
            gni_list_remove(&item->node); /* the second time does nothing */
            count = model_remove(model, count, item->number);
        } else if (check_random(&seed) % 2 == 0) {
            gni_list_push_front(&list, &item->node);
            memmove(model + 1, model, count++ * sizeof *model);
            model[0] = item->number;
        } else {
            gni_list_push_back(&list, &item->node);
            model[count++] = item->number;
        }
        CHECK(list_is_model(&list, model, count));
    }
}

/* The loop goes on when its body frees the current item. */
static void test_list_each_may_free(void)
{
    struct gni_list list;
    gni_list_init(&list);
    for (int i = 0; i < 10; i++) {
        struct item *item = malloc(sizeof *item);
        item->number = i;
        gni_list_push_back(&list, &item->node);
    }
    int visited = 0;
    gni_list_each (node, &list) {
        CHECK(item_of(node)->number == visited++);
        gni_list_remove(node);
        free(item_of(node));
    }
    CHECK(visited == 10 && gni_list_is_empty(&list));
}

#define BITS_MAX 1000

/* The words have junk after nbits, which must not matter; the model is one bool for each bit. */
static void bitmap_compare(const uint64_t *words, const bool *model, size_t nbits, size_t from,
                           size_t run)
{
    size_t count = 0, set = nbits, clear = nbits, start = nbits;
    for (size_t i = nbits; i-- > 0;) {
        count += model[i];
        CHECK(gni_bitmap_test(words, i) == model[i]);
        if (i < from)
            continue;
        *(model[i] ? &set : &clear) = i;
        size_t length = 0;
        while (i + length < nbits && length < run && !model[i + length])
            length++;
        start = length == run ? i : start;
    }
    CHECK_U64(gni_bitmap_count(words, nbits), count);
    CHECK_U64(gni_bitmap_find_set(words, nbits, from), set);
    CHECK_U64(gni_bitmap_find_clear(words, nbits, from), clear);
    CHECK_U64(gni_bitmap_find_clear_run(words, nbits, from, run), start);
}

static void bitmap_property(size_t nbits, uint64_t junk)
{
    uint64_t words[BITS_MAX / 64 + 2], seed = nbits + junk;
    bool model[BITS_MAX] = {false};
    size_t nwords = gni_bitmap_words(nbits);
    for (size_t i = 0; i < nwords + 1; i++)
        words[i] = i < nbits / 64 ? 0 : i < nwords ? ~gni_bit_mask(nbits % 64) & junk : junk;
    for (int step = 0; step < 1000; step++) {
        size_t first = nbits == 0 ? 0 : (size_t)(check_random(&seed) % nbits);
        size_t count = (size_t)(check_random(&seed) % (nbits - first + 1));
        bool value = check_random(&seed) % 2 == 0;
        if (nbits != 0 && step % 2 == 0) {
            (value ? gni_bitmap_set : gni_bitmap_clear)(words, first);
            model[first] = value;
        } else {
            count = step % 3 == 0 ? count : count % 5;
            (value ? gni_bitmap_set_range : gni_bitmap_clear_range)(words, first, count);
            memset(model + first, value, count);
        }
        size_t from = (size_t)(check_random(&seed) % (nbits + 3));
        size_t run = 1 + (size_t)(check_random(&seed) % (step % 5 == 0 ? nbits + 2 : 8));
        bitmap_compare(words, model, nbits, step % 2 == 0 ? 0 : from, run);
    }
    CHECK_U64(words[nwords], junk); /* nothing wrote past the end */
}

static void test_bitmap_property(void)
{
    const size_t sizes[] = {0, 1, 63, 64, 65, 127, 128, BITS_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bitmap_property(sizes[i], 0);
        bitmap_property(sizes[i], UINT64_MAX);
    }
    CHECK_U64(gni_bitmap_words(0), 0);
    CHECK_U64(gni_bitmap_words(64), 1);
    CHECK_U64(gni_bitmap_words(65), 2);
    CHECK_U64(gni_bitmap_words(SIZE_MAX), (size_t)1 << 58);
}

static void test_bit_helpers(void)
{
    CHECK_U64(gni_bit_leading_zeros(0), 64);
    CHECK_U64(gni_bit_trailing_zeros(0), 64);
    CHECK_U64(gni_bit_log2_floor(0), 0);
    CHECK_U64(gni_bit_count(0), 0);
    CHECK(!gni_bit_is_power_of_two(0));
    CHECK(gni_bit_mask(0) == 0 && gni_bit_mask(64) == UINT64_MAX);
    for (unsigned i = 0; i < 64; i++) {
        uint64_t bit = UINT64_C(1) << i, below = bit - 1;
        CHECK_U64(gni_bit_leading_zeros(bit | below), 63 - i);
        CHECK_U64(gni_bit_trailing_zeros(~below), i);
        CHECK_U64(gni_bit_log2_floor(bit), i);
        CHECK_U64(gni_bit_log2_floor(bit | below), i);
        CHECK_U64(gni_bit_count(below), i);
        CHECK_U64(gni_bit_mask(i), below);
        CHECK(gni_bit_is_power_of_two(bit));
        CHECK(gni_bit_is_power_of_two(bit | 1) == (i == 0));
    }
}

/* A text grows to any length, and ends where memory does: what was there stays. */
static void test_builder(void)
{
    struct gni_builder builder = {.text = NULL};
    for (int i = 0; i < 1000; i++)
        gni_builder_print(&builder, "%d,", i);
    CHECK_U64(builder.length, 10 * 2 + 90 * 3 + 900 * 4);
    CHECK(!builder.has_failed && strlen(builder.text) == builder.length);
    CHECK(strncmp(builder.text, "0,1,2,", 6) == 0);
    gni_builder_deinit(&builder);
    for (long nth = 1; nth <= 3; nth++) {
        gni_host_fail_after(nth);
        for (int i = 0; i < 100; i++)
            gni_builder_add(&builder, "abcdefgh", 8);
        gni_host_fail_after(-1);
        CHECK(builder.has_failed && builder.length % 8 == 0 && builder.length < 800);
        CHECK((builder.text == NULL) == (nth == 1));
        size_t length = builder.length;
        gni_builder_add(&builder, "x", 1); /* a gap would be worse than an end */
        CHECK_U64(builder.length, length);
        gni_builder_deinit(&builder);
        CHECK(builder.text == NULL && !builder.has_failed);
    }
}

int main(void)
{
    RUN(test_map_property);
    RUN(test_map_edges);
    RUN(test_map_walker_sees_damage);
    RUN(test_map_spreads_keys);
    RUN(test_map_reserve);
    RUN(test_map_allocation_failures);
    RUN(test_hash_bytes);
    RUN(test_hash_avalanche);
    RUN(test_list_property);
    RUN(test_list_each_may_free);
    RUN(test_bitmap_property);
    RUN(test_bit_helpers);
    RUN(test_builder);
    return check_result();
}
