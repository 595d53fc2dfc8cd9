#include "tensor/mask.h"

#include "base/error.h"
#include "base/host.h"
#include "base/parallel.h"
#include "base/thread.h"

#include <string.h>

typedef uint16_t places_vector __attribute__((vector_size(16)));

/* ---- bytes to bits to places ------------------------------------------------------------------- */

/* Bytes that are not 0, as 1. */
static uint64_t bytes_normalise(uint64_t bytes)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    return (((bytes & low) + low) | bytes) >> 7 & UINT64_C(0x0101010101010101);
}

static uint64_t bytes_load(const uint8_t *bytes, size_t count)
{
    uint64_t word = 0;
    memcpy(&word, bytes, count);
    return word;
}

/* Bit i is byte i: each byte meets the one bit of the factor that moves it there, and no two meet elsewhere. */
static unsigned bytes_to_bits(uint64_t normal)
{
    return (unsigned)(normal * UINT64_C(0x0102040810204080) >> 56);
}

/* The sum of the bytes, which must fit one. */
static uint64_t bytes_sum(uint64_t bytes)
{
    return bytes * UINT64_C(0x0101010101010101) >> 56;
}

/* For each eight bits the places of those that are set, in order. */
static uint16_t places_of[256][8];

static struct gni_once places_once = GNI_ONCE_INIT;

static void places_fill(void)
{
    for (unsigned bits = 0; bits < 256; bits++)
        for (unsigned i = 0, n = 0; i < 8; i++)
            if ((bits >> i & 1) != 0)
                places_of[bits][n++] = (uint16_t)i;
}

/* The places of the true ones among at most a window of bytes. `places` has room for 8 more than that. */
static size_t window_scan(const uint8_t *bytes, size_t count, uint16_t *places)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word =
            count - i >= 8 ? bytes_load(bytes + i, 8) : bytes_load(bytes + i, count - i);
        if (word == 0)
            continue;
        uint64_t normal = bytes_normalise(word);
        places_vector eight, base = {0};
        memcpy(&eight, places_of[bytes_to_bits(normal)], sizeof eight);
        eight += base + (uint16_t)i;
        memcpy(places + found, &eight, sizeof eight);
        found += (size_t)bytes_sum(normal);
    }
    return found;
}

static int64_t bytes_count(const uint8_t *bytes, size_t count)
{
    int64_t total = 0;
    size_t words = count / 8;
    for (size_t i = 0; i < words;) {
        size_t end = words - i < 31 ? words : i + 31; /* so many ones that their sum fits a byte */
        uint64_t sum = 0;
        for (; i < end; i++)
            sum += bytes_normalise(bytes_load(bytes + i * 8, 8));
        total += (int64_t)bytes_sum(sum);
    }
    return total + (int64_t)bytes_sum(bytes_normalise(bytes_load(bytes + words * 8, count % 8)));
}

/* ---- the mask ---------------------------------------------------------------------------------- */

static void parts_count(void *context, size_t begin, size_t end)
{
    struct gni_mask *mask = context;
    for (size_t part = begin; part < end; part++) {
        size_t from = part * GNI_MASK_PART, left = (size_t)mask->length - from;
        mask->before[part] =
            bytes_count(mask->bytes + from, left < GNI_MASK_PART ? left : GNI_MASK_PART);
    }
}

gn_status gni_mask_init(struct gni_mask *mask, const void *bytes, int ndim, const int64_t *sizes,
                        const int64_t *strides)
{
    gni_once_run(&places_once, places_fill);
    mask->bytes = bytes;
    mask->length = gni_shape_count(ndim, sizes);
    mask->before = NULL;
    mask->ndim = 0;
    for (int i = 0; i < ndim; i++) {
        int last = mask->ndim - 1;
        if (sizes[i] == 1)
            continue;
        if (last >= 0 && mask->strides[last] == strides[i] * sizes[i]) {
            mask->sizes[last] *= sizes[i];
            mask->strides[last] = strides[i];
            continue;
        }
        mask->sizes[mask->ndim] = sizes[i];
        mask->strides[mask->ndim++] = strides[i];
    }
    if (mask->ndim == 0) {
        mask->sizes[0] = mask->length; /* 0 or 1 */
        mask->strides[0] = 0;
        mask->ndim = 1;
    }
    int64_t parts = gni_mask_parts(mask);
    if (parts <= 1) {
        mask->count = mask->length > 0 ? bytes_count(bytes, (size_t)mask->length) : 0; /* of NULL */
        return GN_OK;
    }
    size_t nbytes = (size_t)parts * sizeof *mask->before;
    mask->before = gni_host_alloc(nbytes);
    if (mask->before == NULL)
        return gni_error_host_memory(nbytes);
    gni_parallel_for((size_t)parts, 4, parts_count, mask);
    mask->count = 0;
    for (int64_t part = 0; part < parts; part++) {
        int64_t own = mask->before[part];
        mask->before[part] = mask->count;
        mask->count += own;
    }
    return GN_OK;
}

void gni_mask_deinit(struct gni_mask *mask)
{
    gni_host_free(mask->before);
    mask->before = NULL;
}

size_t gni_mask_next(const struct gni_mask *mask, int64_t *at, int64_t end, int64_t *offsets)
{
    uint16_t places[GNI_MASK_WINDOW + 8];
    int last = mask->ndim - 1;
    int64_t row = *at / mask->sizes[last], column = *at % mask->sizes[last];
    int64_t left = mask->sizes[last] - column, stride = mask->strides[last];
    int64_t base = column * stride;
    for (int i = last - 1; i >= 0; i--) {
        base += row % mask->sizes[i] * mask->strides[i];
        row /= mask->sizes[i];
    }
    left = left < end - *at ? left : end - *at;
    left = left < GNI_MASK_WINDOW ? left : GNI_MASK_WINDOW;
    size_t found = window_scan(mask->bytes + *at, (size_t)left, places);
    for (size_t i = 0; i < found; i++)
        offsets[i] = base + places[i] * stride;
    *at += left;
    return found;
}

struct offsets_task {
    const struct gni_mask *mask;
    int64_t *offsets;
};

static void parts_offsets(void *context, size_t begin, size_t end)
{
    const struct offsets_task *task = context;
    const struct gni_mask *mask = task->mask;
    int64_t window[GNI_MASK_WINDOW], at = (int64_t)begin * GNI_MASK_PART;
    int64_t stop = (int64_t)end * GNI_MASK_PART;
    size_t done = (size_t)gni_mask_before(mask, (int64_t)begin);
    size_t most = (size_t)gni_mask_before(mask, (int64_t)end);
    stop = stop < mask->length ? stop : mask->length;
    /* If others write to the mask meanwhile there may be more than were counted, or fewer: then some are 0, which is
     * an element, too. */
    while (at < stop) {
        size_t found = gni_mask_next(mask, &at, stop, window);
        found = found < most - done ? found : most - done;
        memcpy(task->offsets + done, window, found * sizeof *window);
        done += found;
    }
    memset(task->offsets + done, 0, (most - done) * sizeof *task->offsets);
}

void gni_mask_offsets(const struct gni_mask *mask, int64_t *offsets)
{
    struct offsets_task task = {mask, offsets};
    gni_parallel_for((size_t)gni_mask_parts(mask), 1, parts_offsets, &task);
}
