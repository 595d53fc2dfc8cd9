/*
 * cpu_sort.c: rows become items of keys, are sorted by radix.h, and become elements and positions again.
 *
 *   wanted           keys up to 32 bits                        keys of 64 bits
 *   values           GNI_ITEM_32: the key                      GNI_ITEM_64: the key
 *   positions, too   GNI_ITEM_64: key << 32 | position         GNI_ITEM_PAIR
 *
 * Integers of 64 bits that lie close together have keys up to 32 bits, too: from the smallest of them on.
 *
 * A row is sorted between two arrays of items. One of them is the row's own result where that has the size of
 * items; the other, and the counters, are in a slot: temporary memory, one for each row that is sorted at once.
 *
 * Many rows are divided among the threads. Of few long rows, each is divided.
 */
#include "ops/cpu/cpu_sort.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/keys.h"
#include "ops/cpu/loops.h"
#include "ops/cpu/radix.h"

#include <string.h>

enum {
    SORT_GRAIN = 1 << 12, /* elements that are worth waking a thread for */
};

/* How the rows of one call are sorted. */
struct row_sort {
    gn_dtype dtype;
    size_t size; /* of an element */
    size_t columns;
    size_t kept; /* of each row's sorted elements, how many are results; the first ones */
    uint64_t flip;
    uint64_t base;     /* the smallest key, where items hold what is beyond it; else 0 */
    unsigned key_bits; /* that differ in items */
    enum gni_item item;
    bool has_positions;
    unsigned first_bit;
    size_t parts;        /* into which a row is cut for threads */
    size_t grain;        /* elements of such a part */
    size_t item_bytes;   /* of one array of items */
    size_t counts_bytes; /* of the counters */
    size_t slot_bytes;
};

/* One row on its way. */
struct row {
    const struct row_sort *sort;
    const unsigned char *in;
    unsigned char *values;
    int64_t *indices;
    void *items;
};

static gn_status error_size(size_t rows, size_t columns)
{
    return gni_error(GN_ERROR_OVERFLOW, "%zu rows of %zu elements do not fit the address space",
                     rows, columns);
}

static bool dtype_is_floating(gn_dtype dtype)
{
    return gni_dtype_kind(dtype) == GNI_KIND_FLOATING;
}

/* Not of zeros: every byte will be written, and zeros would cost as much as a pass. */
static void *temporary_alloc(size_t nbytes)
{
    return gni_host_realloc(NULL, nbytes);
}

/* ---- one row --------------------------------------------------------------------------------- */

/* Of how many bits the distances of integers from the smallest key are, which comes back, too. */
static unsigned distance_bits(const int64_t *in, size_t count, uint64_t flip, uint64_t *base)
{
    int64_t least = in[0], most = in[0];
    gni_reducers_find(GNI_REDUCTION_MINIMUM, GN_INT64).one(&least, in, count);
    gni_reducers_find(GNI_REDUCTION_MAXIMUM, GN_INT64).one(&most, in, count);
    gni_keys_load64(GN_INT64, flip == 0 ? &least : &most, 1, flip, base);
    return 64 - (unsigned)__builtin_clzll(((uint64_t)most - (uint64_t)least) | 1);
}

/* False for sizes that cannot exist. `in` is all of the rows. */
static bool row_sort_init(struct row_sort *sort, const void *in, gn_dtype dtype, size_t rows,
                          size_t columns, size_t kept, bool is_descending, bool has_positions,
                          size_t parts)
{
    uint64_t flip = is_descending ? gni_key_mask(dtype) : 0, base = 0;
    bool is_narrow = gni_dtype_size(dtype) <= sizeof(uint32_t);
    unsigned key_bits = gni_key_bits(dtype);
    if (has_positions && dtype == GN_INT64 && columns > 0 && columns <= UINT32_MAX) {
        unsigned bits = distance_bits(in, rows * columns, flip, &base);
        is_narrow = bits <= 32;
        key_bits = is_narrow ? bits : key_bits;
        base = is_narrow ? base : 0;
    }
    *sort = (struct row_sort){
        .dtype = dtype,
        .size = gni_dtype_size(dtype),
        .columns = columns,
        .kept = kept,
        .flip = flip,
        .base = base,
        .key_bits = key_bits,
        .has_positions = has_positions,
        .parts = parts,
        .grain = columns == 0 ? 1 : (columns - 1) / parts + 1,
    };
    if (!has_positions) {
        sort->item = is_narrow ? GNI_ITEM_32 : GNI_ITEM_64;
    } else if (is_narrow && columns <= UINT32_MAX) {
        sort->item = GNI_ITEM_64;
        sort->first_bit = 32;
    } else {
        sort->item = GNI_ITEM_PAIR;
    }
    size_t counts = gni_radix_counts(parts, key_bits), total;
    if (!gni_size_multiply(columns, gni_item_size(sort->item), &sort->item_bytes) ||
        !gni_size_multiply(counts, sizeof(size_t), &sort->counts_bytes) ||
        !gni_size_multiply(sort->item_bytes, 2, &total) ||
        !gni_size_add(total, sort->counts_bytes, &total) ||
        !gni_size_align_up(total, 64, &sort->slot_bytes))
        return false;
    return true;
}

static void row_load_part(void *context, size_t begin, size_t end)
{
    const struct row *row = context;
    const struct row_sort *sort = row->sort;
    if (sort->item == GNI_ITEM_32) {
        gni_keys_load32(sort->dtype, row->in + begin * sort->size, end - begin, sort->flip,
                        (uint32_t *)row->items + begin);
        return;
    }
    if (!sort->has_positions) {
        gni_keys_load64(sort->dtype, row->in + begin * sort->size, end - begin, sort->flip,
                        (uint64_t *)row->items + begin);
        return;
    }
    uint64_t keys[GNI_KEYS_BLOCK];
    for (size_t at = begin; at < end; at += GNI_KEYS_BLOCK) {
        size_t n = end - at < GNI_KEYS_BLOCK ? end - at : GNI_KEYS_BLOCK;
        gni_keys_load64(sort->dtype, row->in + at * sort->size, n, sort->flip, keys);
        if (sort->item == GNI_ITEM_64) {
            uint64_t *items = (uint64_t *)row->items + at;
            for (size_t i = 0; i < n; i++)
                items[i] = (keys[i] - sort->base) << 32 | (at + i);
        } else {
            struct gni_pair *items = (struct gni_pair *)row->items + at;
            for (size_t i = 0; i < n; i++)
                items[i] = (struct gni_pair){keys[i], at + i};
        }
    }
}

/* Where the element of an item was. */
static uint64_t item_position(const struct row *row, size_t i)
{
    return row->sort->item == GNI_ITEM_64 ? ((const uint64_t *)row->items)[i] & UINT32_MAX
                                          : ((const struct gni_pair *)row->items)[i].position;
}

/* Elements of which several have one key keep their bits: they are copied from where they were. `keys` are n sorted
 * ones, of the items from `at` on. */
static void row_restore(const struct row *row, const uint64_t *keys, size_t at, size_t n,
                        unsigned char *values)
{
    const struct row_sort *sort = row->sort;
    uint64_t same[] = {gni_key_zero(sort->dtype) ^ sort->flip,
                       gni_key_nan(sort->dtype) ^ sort->flip};
    for (int k = 0; k < 2; k++) {
        if (same[k] < keys[0] || same[k] > keys[n - 1])
            continue;
        for (size_t i = 0; i < n; i++)
            if (keys[i] == same[k])
                memcpy(values + i * sort->size, row->in + item_position(row, at + i) * sort->size,
                       sort->size);
    }
}

/* The items may be in the row of `indices`: a block is written there last. */
static void row_store_pairs(const struct row *row, size_t begin, size_t end)
{
    const struct row_sort *sort = row->sort;
    uint64_t keys[GNI_KEYS_BLOCK];
    for (size_t at = begin; at < end; at += GNI_KEYS_BLOCK) {
        size_t n = end - at < GNI_KEYS_BLOCK ? end - at : GNI_KEYS_BLOCK;
        if (row->values != NULL) {
            unsigned char *values = row->values + at * sort->size;
            if (sort->item == GNI_ITEM_64)
                for (size_t i = 0; i < n; i++)
                    keys[i] = (((const uint64_t *)row->items)[at + i] >> 32) + sort->base;
            else
                for (size_t i = 0; i < n; i++)
                    keys[i] = ((const struct gni_pair *)row->items)[at + i].key;
            gni_keys_store64(sort->dtype, keys, n, sort->flip, values);
            if (dtype_is_floating(sort->dtype))
                row_restore(row, keys, at, n, values);
        }
        if (row->indices == NULL)
            continue;
        if (sort->item == GNI_ITEM_64)
            for (size_t i = 0; i < n; i++)
                row->indices[at + i] =
                    (int64_t)(((const uint64_t *)row->items)[at + i] & UINT32_MAX);
        else
            for (size_t i = 0; i < n; i++)
                row->indices[at + i] =
                    (int64_t)((const struct gni_pair *)row->items)[at + i].position;
    }
}

static void row_store_part(void *context, size_t begin, size_t end)
{
    const struct row *row = context;
    const struct row_sort *sort = row->sort;
    if (sort->has_positions)
        row_store_pairs(row, begin, end);
    else if (sort->item == GNI_ITEM_32)
        gni_keys_store32(sort->dtype, (const uint32_t *)row->items + begin, end - begin, sort->flip,
                         row->values + begin * sort->size);
    else
        gni_keys_store64(sort->dtype, (const uint64_t *)row->items + begin, end - begin, sort->flip,
                         row->values + begin * sort->size);
}

/* How many of a row's sorted items, which are keys, are below this one, or at most this one. */
static size_t row_find(const struct row *row, uint64_t key, bool is_right)
{
    size_t begin = 0, end = row->sort->columns;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        uint64_t found = row->sort->item == GNI_ITEM_32 ? ((const uint32_t *)row->items)[middle]
                                                        : ((const uint64_t *)row->items)[middle];
        if (found < key || (is_right && found == key))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Without positions: the elements of a key, which lie from `at` to before `end`, in the order in which they came. */
static void row_restore_key(const struct row *row, uint64_t key, size_t at, size_t end)
{
    const struct row_sort *sort = row->sort;
    uint64_t keys[GNI_KEYS_BLOCK];
    for (size_t begin = 0; at < end; begin += GNI_KEYS_BLOCK) {
        size_t n = sort->columns - begin;
        n = n < GNI_KEYS_BLOCK ? n : GNI_KEYS_BLOCK;
        gni_keys_load64(sort->dtype, row->in + begin * sort->size, n, sort->flip, keys);
        for (size_t i = 0; i < n; i++)
            if (keys[i] == key)
                memcpy(row->values + at++ * sort->size, row->in + (begin + i) * sort->size,
                       sort->size);
    }
}

static void row_run(struct row *row, gni_part part, size_t columns)
{
    if (row->sort->parts == 1)
        part(row, 0, columns);
    else
        gni_parallel_for(columns, row->sort->grain, part, row);
}

/* Sorts one row; `values` and `indices` have `kept` elements. */
static void row_sort_run(const struct row_sort *sort, const unsigned char *in,
                         unsigned char *values, int64_t *indices, unsigned char *slot)
{
    struct row row = {sort, in, values, indices, NULL};
    size_t *counts = (size_t *)(void *)slot;
    unsigned char *items = slot + sort->counts_bytes;
    unsigned char *spare = items + sort->item_bytes;
    bool is_whole = sort->kept == sort->columns;
    if (is_whole && !sort->has_positions && sort->size == gni_item_size(sort->item))
        spare = values;
    if (is_whole && indices != NULL && sort->item == GNI_ITEM_64)
        spare = (unsigned char *)indices;
    row.items = items;
    row_run(&row, row_load_part, sort->columns);
    struct gni_radix radix = {sort->item,      sort->columns,  items,       spare,
                              sort->first_bit, sort->key_bits, sort->parts, counts};
    row.items = gni_radix_sort(&radix);
    const uint64_t same[] = {gni_key_zero(sort->dtype) ^ sort->flip,
                             gni_key_nan(sort->dtype) ^ sort->flip};
    size_t begin[2] = {0}, end[2] = {0};
    for (int i = 0; i < 2 && !sort->has_positions && dtype_is_floating(sort->dtype); i++) {
        begin[i] = row_find(&row, same[i], false); /* the values may take the place of the keys */
        end[i] = row_find(&row, same[i], true);
    }
    row_run(&row, row_store_part, sort->kept);
    for (int i = 0; i < 2; i++)
        row_restore_key(&row, same[i], begin[i], end[i]);
}

/* ---- many rows ------------------------------------------------------------------------------- */

/* A call's rows, divided among threads, each with a slot. */
struct rows {
    const struct row_sort *sort;
    const unsigned char *in;
    unsigned char *values;
    int64_t *indices;
    size_t grain; /* rows of a slot */
    size_t slot_bytes;
    unsigned char *slots;
};

/* How many rows a thread takes, so that there are about as many shares as threads, none of them tiny. */
static size_t rows_grain(size_t rows, size_t columns)
{
    size_t threads = (size_t)gni_parallel_get_threads();
    size_t even = (rows - 1) / threads + 1;
    size_t least = columns >= SORT_GRAIN ? 1 : SORT_GRAIN / (columns + 1) + 1;
    return even > least ? even : least;
}

/* Allocates the slots and runs all rows. */
static gn_status rows_run(struct rows *share, size_t rows, size_t columns, gni_part part)
{
    size_t slots = (rows - 1) / share->grain + 1, nbytes;
    if (!gni_size_multiply(slots, share->slot_bytes, &nbytes))
        return error_size(rows, columns);
    share->slots = temporary_alloc(nbytes);
    if (share->slots == NULL)
        return gni_error_host_memory(nbytes);
    if (slots == 1)
        part(share, 0, rows);
    else
        gni_parallel_for(rows, share->grain, part, share);
    gni_host_free(share->slots);
    return GN_OK;
}

static void rows_sort_part(void *context, size_t begin, size_t end)
{
    const struct rows *rows = context;
    const struct row_sort *sort = rows->sort;
    unsigned char *slot = rows->slots + begin / rows->grain * rows->slot_bytes;
    for (size_t i = begin; i < end; i++)
        row_sort_run(sort, rows->in + i * sort->columns * sort->size,
                     rows->values == NULL ? NULL : rows->values + i * sort->kept * sort->size,
                     rows->indices == NULL ? NULL : rows->indices + i * sort->kept, slot);
}

gn_status gni_sort_first(const void *in, gn_dtype dtype, size_t rows, size_t columns, size_t kept,
                         bool is_descending, void *values, int64_t *indices)
{
    if (rows == 0 || kept == 0 || (values == NULL && indices == NULL))
        return GN_OK;
    size_t threads = (size_t)gni_parallel_get_threads();
    size_t parts = rows < threads ? gni_radix_parts(columns, threads) : 1;
    bool has_positions = indices != NULL || kept < columns;
    struct row_sort sort;
    if (!row_sort_init(&sort, in, dtype, rows, columns, kept, is_descending, has_positions, parts))
        return error_size(rows, columns);
    struct rows share = {.sort = &sort,
                         .in = in,
                         .values = values,
                         .indices = indices,
                         .grain = parts > 1 ? rows : rows_grain(rows, columns),
                         .slot_bytes = sort.slot_bytes};
    return rows_run(&share, rows, columns, rows_sort_part);
}

gn_status gni_sort(const void *in, gn_dtype dtype, size_t rows, size_t columns, bool is_descending,
                   void *values, int64_t *indices)
{
    return gni_sort_first(in, dtype, rows, columns, columns, is_descending, values, indices);
}
