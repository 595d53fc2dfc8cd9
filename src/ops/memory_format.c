/*
 * memory_format.c: the order of elements in memory: rows of pictures one behind the other, or the channels of each pixel.
 *
 *     sizes             N C H W
 *     contiguous        N C H W    the order of dimensions in memory, the last one next to each other
 *     channels last     N H W C
 *
 * preserve_format is the order of another tensor. Where its elements fill its memory without gaps, the strides are the same.
 * Otherwise its dimensions are sorted by their strides, as PyTorch sorts them, and the gaps are left out.
 */
#include "ops/memory_format.h"

#include "base/text.h"
#include "ops/expression.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[] = {"contiguous_format", "preserve_format", "channels_last",
                                    "channels_last_3d"};

gn_status gn_memory_format_find(const char *name, gn_memory_format *format)
{
    GN_CHECK_ARGUMENT(name != NULL && format != NULL, "name and format must not be NULL");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *format = (gn_memory_format)i;
            return GN_OK;
        }
    return gni_error(GN_ERROR_INVALID_VALUE,
                     "memory_format is contiguous_format, preserve_format, channels_last or "
                     "channels_last_3d, not '%s'",
                     name);
}

static bool is_format(gn_memory_format format)
{
    return (unsigned)format < sizeof names / sizeof *names;
}

/* How many dimensions a format is for; 0: any number. */
static int dimensions_of(gn_memory_format format)
{
    return format == GN_FORMAT_CHANNELS_LAST ? 4 : format == GN_FORMAT_CHANNELS_LAST_3D ? 5 : 0;
}

/* The dimension that comes at a place of memory, the outermost first: N, then the picture's, then C. */
static int dimension_at(int ndim, int place)
{
    return place == 0 ? 0 : place == ndim - 1 ? 1 : place + 1;
}

bool gn_tensor_has_format(const gn_tensor *tensor, gn_memory_format format)
{
    int64_t step = 1;
    if (tensor == NULL || format == GN_FORMAT_PRESERVE)
        return tensor != NULL;
    if (dimensions_of(format) == 0)
        return gn_tensor_is_contiguous(tensor);
    if (tensor->ndim != dimensions_of(format) || tensor->count == 0)
        return tensor->ndim == dimensions_of(format);
    for (int place = tensor->ndim - 1; place >= 0; place--) {
        int dim = dimension_at(tensor->ndim, place);
        if (tensor->sizes[dim] != 1 && tensor->strides[dim] != step)
            return false;
        step *= tensor->sizes[dim];
    }
    return true;
}

/* ---- the order of another tensor ------------------------------------------------------------- */

/* Whether a dimension belongs further out in memory than another one: 1, further in: -1, neither: 0. A dimension that was
 * broadcast has no place of its own. A reversed one has that of its elements, as in NumPy. */
static int dimension_compare(const gn_tensor *like, int dim, int other)
{
    int64_t stride = imaxabs(like->strides[dim]), other_stride = imaxabs(like->strides[other]);
    if (stride == 0 || other_stride == 0)
        return 0;
    if (stride != other_stride)
        return stride > other_stride ? 1 : -1;
    return like->sizes[dim] > like->sizes[other] ? 1 : 0;
}

/* The dimensions of a tensor by their place in memory, the innermost first. The exchanges are PyTorch's, so that dimensions
 * without a place go where they go there. */
static void dimensions_sort(const gn_tensor *like, int *order)
{
    for (int i = 0; i < like->ndim; i++)
        order[i] = like->ndim - 1 - i;
    for (int i = 1; i < like->ndim; i++) {
        int at = i, comparison = 0;
        for (int k = i - 1; k >= 0 && comparison >= 0; k--) {
            comparison = dimension_compare(like, order[k], order[at]);
            if (comparison <= 0)
                continue;
            int dim = order[k];
            order[k] = order[at];
            order[at] = dim;
            at = k;
        }
    }
}

bool gni_is_dense(const gn_tensor *tensor)
{
    int64_t step = 1;
    uint32_t left = 0;
    for (int i = 0; i < tensor->ndim; i++)
        left |= tensor->sizes[i] > 1 ? 1U << i : 0;
    while (left != 0) {
        int dim = 0;
        while (dim < tensor->ndim && ((left >> dim & 1) == 0 || tensor->strides[dim] != step))
            dim++;
        if (dim == tensor->ndim)
            return false;
        step *= tensor->sizes[dim];
        left &= ~(1U << dim);
    }
    return true;
}

void gni_order_preserve(const gn_tensor *like, int *order, int64_t *strides)
{
    int inner[GN_DIMENSIONS_MAX], ndim = like->ndim;
    int64_t step = 1;
    dimensions_sort(like, inner);
    for (int i = 0; i < ndim; i++) {
        order[ndim - 1 - i] = inner[i];
        strides[inner[i]] = step;
        step *= like->sizes[inner[i]] > 1 ? like->sizes[inner[i]] : 1;
    }
    if (gni_is_dense(like))
        memcpy(strides, like->strides, sizeof *strides * (size_t)ndim);
}

static gn_status create_like(gn_dtype dtype, const gn_tensor *like, gn_device *device,
                             gn_tensor **result)
{
    int order[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX];
    gn_tensor *made;
    GN_TRY(gn_tensor_create(dtype, like->ndim, like->sizes, device, &made));
    gni_order_preserve(like, order, strides);
    gni_tensor_set_layout(made, like->ndim, like->sizes, strides);
    *result = made;
    return GN_OK;
}

gn_status gn_tensor_to_in_order(gn_tensor *tensor, gn_device *device, gn_tensor **result)
{
    struct gni_scope s = {0};
    int order[GN_DIMENSIONS_MAX], back[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX];
    gn_tensor *made = NULL;
    GN_CHECK_ARGUMENT(tensor != NULL && device != NULL && result != NULL,
                      "tensor, device and result must not be NULL");
    if (tensor->is_contiguous || tensor->device == device)
        return gn_tensor_to(tensor, device, result);
    gni_order_preserve(tensor, order, strides);
    for (int i = 0; i < tensor->ndim; i++)
        back[order[i]] = i;
    gn_tensor *sorted = gni_permute(&s, tensor, order);
    if (gni_scope_is_ok(&s))
        s.status = gn_tensor_to(sorted, device, &made);
    made = gni_scope_keep(&s, s.status, made);
    return gni_scope_end(&s, gni_scope_is_ok(&s) ? gni_permute(&s, made, back) : NULL, result);
}

/* ---- named formats --------------------------------------------------------------------------- */

static void dimensions_check(struct gni_scope *s, int ndim, const int64_t *sizes,
                             gn_memory_format format)
{
    if (dimensions_of(format) != 0 && ndim != dimensions_of(format))
        gni_scope_fail(s, GN_ERROR_SHAPE, "%s is for tensors of %d dimensions, not of shape %s",
                       names[format], dimensions_of(format), gni_shape_text(ndim, sizes).text);
}

gn_status gn_tensor_to_format(gn_tensor *tensor, gn_memory_format format, bool is_copied,
                              gn_tensor **result)
{
    struct gni_scope s = {0};
    int to[GN_DIMENSIONS_MAX], from[GN_DIMENSIONS_MAX];
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL && is_format(format),
                      "tensor and result must not be NULL, and format must be one of the formats");
    bool has_it = gn_tensor_has_format(tensor, format);
    dimensions_check(&s, tensor->ndim, tensor->sizes, format);
    if (has_it && !is_copied)
        return gni_scope_end(&s, tensor, result);
    if (format == GN_FORMAT_PRESERVE)
        return gn_cast_in_order(tensor, tensor->dtype, result);
    if (dimensions_of(format) == 0)
        return gni_scope_end(&s, gni_clone(&s, tensor), result);
    for (int place = 0; place < tensor->ndim && gni_scope_is_ok(&s); place++) {
        to[place] = dimension_at(tensor->ndim, place);
        from[to[place]] = place;
    }
    gn_tensor *turned = gni_scope_is_ok(&s) ? gni_permute(&s, tensor, to) : NULL;
    gn_tensor *copy = gni_clone(&s, turned);
    return gni_scope_end(&s, gni_scope_is_ok(&s) ? gni_permute(&s, copy, from) : NULL, result);
}

gn_status gn_tensor_create_format(gn_dtype dtype, int ndim, const int64_t *sizes, gn_device *device,
                                  gn_memory_format format, gn_tensor **result)
{
    struct gni_scope s = {0};
    int from[GN_DIMENSIONS_MAX];
    int64_t turned[GN_DIMENSIONS_MAX];
    GN_CHECK_ARGUMENT((sizes != NULL || ndim == 0) && result != NULL && is_format(format),
                      "sizes and result must not be NULL, and format must be one of the formats");
    dimensions_check(&s, ndim, sizes, format);
    if (!gni_scope_is_ok(&s) || dimensions_of(format) == 0)
        return gni_scope_is_ok(&s) ? gn_tensor_create(dtype, ndim, sizes, device, result)
                                   : gni_scope_close(&s);
    for (int place = 0; place < ndim; place++) {
        int dim = dimension_at(ndim, place);
        from[dim] = place;
        turned[place] = sizes[dim];
    }
    gn_tensor *made = gni_empty(&s, dtype, ndim, turned, device);
    return gni_scope_end(&s, gni_scope_is_ok(&s) ? gni_permute(&s, made, from) : NULL, result);
}

gn_tensor *gni_empty_format(struct gni_scope *scope, gn_dtype dtype, const gn_tensor *like,
                            gn_device *device, const gn_argument *argument)
{
    gn_memory_format format = GN_FORMAT_PRESERVE;
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(scope) && argument->is_given)
        scope->status = gn_memory_format_find(argument->text, &format);
    if (gni_scope_is_ok(scope))
        scope->status =
            format == GN_FORMAT_PRESERVE
                ? create_like(dtype, like, device, &made)
                : gn_tensor_create_format(dtype, like->ndim, like->sizes, device, format, &made);
    return gni_scope_keep(scope, scope->status, made);
}

gn_tensor *gni_to_format(struct gni_scope *scope, gn_tensor *x, const gn_argument *argument,
                         gn_memory_format standard, bool is_copied)
{
    gn_memory_format format = standard;
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(scope) && argument->is_given)
        scope->status = gn_memory_format_find(argument->text, &format);
    if (gni_scope_is_ok(scope))
        scope->status = gn_tensor_to_format(x, format, is_copied, &made);
    return gni_scope_keep(scope, scope->status, made);
}
