#include "tensor/shape.h"

#include "base/checked.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

struct gni_shape_text gni_shape_text(int ndim, const int64_t *sizes)
{
    struct gni_shape_text result;
    size_t used = 1;
    result.text[0] = '(';
    for (int i = 0; i < ndim && used < sizeof result.text - 24; i++) {
        int wrote = snprintf(result.text + used, sizeof result.text - used, "%s%lld",
                             i > 0 ? ", " : "", (long long)sizes[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    (void)snprintf(result.text + used, sizeof result.text - used, ndim == 1 ? ",)" : ")");
    return result;
}

gn_status gni_shape_check(int ndim, const int64_t *sizes, size_t element_bytes, int64_t *count)
{
    if (ndim < 0 || ndim > GN_DIMENSIONS_MAX)
        return gni_error(GN_ERROR_SHAPE, "a tensor has 0 to %d dimensions, not %d",
                         GN_DIMENSIONS_MAX, ndim);
    size_t nbytes = element_bytes, elements = 1;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] < 0)
            return gni_error(GN_ERROR_SHAPE, "the shape %s has a negative size",
                             gni_shape_text(ndim, sizes).text);
        if (sizes[i] != 0 && !gni_size_multiply(nbytes, (size_t)sizes[i], &nbytes))
            nbytes = SIZE_MAX;
        elements *= (size_t)sizes[i];
        if (!gni_size_is_possible(nbytes))
            return gni_error(GN_ERROR_SHAPE, "a tensor of shape %s does not fit the address space",
                             gni_shape_text(ndim, sizes).text);
    }
    *count = (int64_t)elements;
    return GN_OK;
}

void gni_strides_contiguous(int ndim, const int64_t *sizes, int64_t *strides)
{
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
}

bool gni_shape_broadcast(const struct gni_shape *a, const struct gni_shape *b,
                         struct gni_shape *result)
{
    const struct gni_shape *longer = a->ndim >= b->ndim ? a : b, *other = longer == a ? b : a;
    int shift = longer->ndim - other->ndim;
    struct gni_shape made = *longer;
    for (int i = 0; i < other->ndim; i++) {
        int64_t *size = &made.sizes[i + shift];
        if (*size == other->sizes[i] || other->sizes[i] == 1)
            continue;
        if (*size != 1)
            return false;
        *size = other->sizes[i];
    }
    *result = made;
    return true;
}

gn_status gni_dimension_wrap(int64_t dimension, int ndim, int *result)
{
    int span = ndim > 0 ? ndim : 1;
    if (dimension < -span || dimension >= span)
        return gni_error(GN_ERROR_INDEX,
                         "dimension %lld is out of range for a tensor of %d dimension%s: %d to %d",
                         (long long)dimension, ndim, gni_plural((uint64_t)ndim), -span, span - 1);
    *result = (int)(dimension < 0 ? dimension + span : dimension);
    return GN_OK;
}

gn_status gni_shape_infer(int ndim, const int64_t *asked, int64_t count, size_t element_bytes,
                          int64_t *sizes)
{
    int unknown = -1;
    int64_t known = 1;
    if (ndim < 0 || ndim > GN_DIMENSIONS_MAX)
        return gni_error(GN_ERROR_SHAPE, "a tensor has 0 to %d dimensions, not %d",
                         GN_DIMENSIONS_MAX, ndim);
    for (int i = 0; i < ndim; i++) {
        sizes[i] = asked[i];
        if (asked[i] == -1 && unknown < 0)
            unknown = i;
        else if (asked[i] < 0)
            return gni_error(GN_ERROR_SHAPE, "the shape %s has %s",
                             gni_shape_text(ndim, asked).text,
                             asked[i] == -1 ? "more than one -1" : "a negative size");
        else if (__builtin_mul_overflow(known, asked[i], &known))
            known = INT64_MAX;
    }
    if (unknown >= 0 && known > 0 && count % known == 0)
        sizes[unknown] = count / known;
    else if (unknown >= 0 || known != count)
        return gni_error(GN_ERROR_SHAPE, "%lld element%s cannot have the shape %s",
                         (long long)count, gni_plural((uint64_t)count),
                         gni_shape_text(ndim, asked).text);
    /* As many elements as there are fit; beside a 0 sizes can be anything. */
    return count == 0 ? gni_shape_check(ndim, sizes, element_bytes, &count) : GN_OK;
}

bool gni_strides_are_possible(int ndim, const int64_t *sizes, const int64_t *strides,
                              size_t element_bytes)
{
    bool is_possible = true;
    for (int i = 0; is_possible && i < ndim; i++) {
        int64_t span;
        is_possible = !__builtin_mul_overflow(sizes[i] > 0 ? sizes[i] : 1, strides[i], &span) &&
                      !__builtin_mul_overflow(span, (int64_t)element_bytes, &span);
    }
    return is_possible;
}

gn_status gni_strides_adopt(int ndim, const int64_t *sizes, const int64_t *given,
                            size_t element_bytes, const void *data, int64_t *strides)
{
    int64_t size = (int64_t)element_bytes, lowest = 0, highest = 0;
    gni_strides_contiguous(ndim, sizes, strides);
    if (gni_shape_count(ndim, sizes) == 0)
        return GN_OK;
    bool is_possible = true;
    for (int i = 0; is_possible && i < ndim; i++) {
        int64_t span;
        if (sizes[i] == 1)
            continue;
        if (given != NULL)
            strides[i] = given[i];
        int64_t *end = strides[i] < 0 ? &lowest : &highest;
        is_possible = !__builtin_mul_overflow(sizes[i] - 1, strides[i], &span) &&
                      !__builtin_mul_overflow(span, size, &span) &&
                      !__builtin_add_overflow(*end, span, end);
    }
    is_possible = is_possible && gni_strides_are_possible(ndim, sizes, strides, element_bytes);
    uintptr_t first = (uintptr_t)data, after;
    if (!is_possible || first < (uintptr_t)0 - (uintptr_t)lowest ||
        __builtin_add_overflow(first, (uintptr_t)highest + element_bytes, &after))
        return gni_error(GN_ERROR_SHAPE,
                         "a tensor of shape %s and strides %s does not fit the address space",
                         gni_shape_text(ndim, sizes).text, gni_shape_text(ndim, strides).text);
    return GN_OK;
}

bool gni_strides_view(int ndim, const int64_t *sizes, const int64_t *strides, int new_ndim,
                      const int64_t *new_sizes, int64_t *new_strides)
{
    if (gni_shape_count(ndim, sizes) == 0) {
        gni_strides_contiguous(new_ndim, new_sizes, new_strides);
        return true;
    }
    /* From the end: groups of old dimensions that lie one in another, each cut into new ones. */
    int target = new_ndim - 1;
    for (int i = ndim - 1; i >= 0;) {
        int64_t group = sizes[i], step = strides[i];
        while (group == 1 && i > 0) { /* a size of 1 has no stride of its own */
            i--;
            group = sizes[i];
            step = strides[i];
        }
        for (i--; i >= 0; i--) {
            if (sizes[i] != 1 && strides[i] != step * group)
                break;
            group *= sizes[i];
        }
        int64_t covered = 1;
        while (target >= 0 && (covered < group || new_sizes[target] == 1)) {
            new_strides[target] = step * covered;
            covered *= new_sizes[target];
            target--;
        }
        if (covered != group)
            return false;
    }
    for (; target >= 0; target--)
        new_strides[target] = 1; /* of size 1 */
    return true;
}

void gni_strides_extent(int ndim, const int64_t *sizes, const int64_t *strides, int64_t *lowest,
                        int64_t *highest)
{
    *lowest = *highest = 0;
    if (gni_shape_count(ndim, sizes) == 0)
        return;
    for (int i = 0; i < ndim; i++) {
        int64_t span = (sizes[i] - 1) * strides[i];
        if (span < 0)
            *lowest += span;
        else
            *highest += span;
    }
}

bool gni_strides_overlap(int ndim, const int64_t *sizes, const int64_t *strides)
{
    /* By growing stride each dimension must step over all that the smaller ones reach. */
    int64_t steps[GN_DIMENSIONS_MAX], counts[GN_DIMENSIONS_MAX];
    int used = 0;
    if (gni_shape_count(ndim, sizes) == 0)
        return false;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 1)
            continue;
        int64_t step = strides[i] < 0 ? -strides[i] : strides[i];
        int at = used++;
        for (; at > 0 && steps[at - 1] > step; at--) {
            steps[at] = steps[at - 1];
            counts[at] = counts[at - 1];
        }
        steps[at] = step;
        counts[at] = sizes[i];
    }
    int64_t reach = 0;
    for (int i = 0; i < used; i++) {
        if (steps[i] <= reach)
            return true;
        reach += steps[i] * (counts[i] - 1);
    }
    return false;
}
