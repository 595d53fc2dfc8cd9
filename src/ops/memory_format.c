/*
 * memory_format.c: the order of elements in memory: rows of pictures one behind the other, or the channels of each pixel.
 *
 *     sizes             N C H W
 *     contiguous        N C H W    the order of dimensions in memory, the last one next to each other
 *     channels last     N H W C
 */
#include "ops/memory_format.h"

#include "base/text.h"
#include "ops/expression.h"

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

/* preserve_format as the format that a tensor has. */
static gn_memory_format format_of(const gn_tensor *tensor, gn_memory_format format)
{
    if (format != GN_FORMAT_PRESERVE)
        return format;
    return tensor->is_contiguous                                      ? GN_FORMAT_CONTIGUOUS
           : gn_tensor_has_format(tensor, GN_FORMAT_CHANNELS_LAST)    ? GN_FORMAT_CHANNELS_LAST
           : gn_tensor_has_format(tensor, GN_FORMAT_CHANNELS_LAST_3D) ? GN_FORMAT_CHANNELS_LAST_3D
                                                                      : GN_FORMAT_CONTIGUOUS;
}

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
    format = format_of(tensor, format);
    dimensions_check(&s, tensor->ndim, tensor->sizes, format);
    if (has_it && !is_copied)
        return gni_scope_end(&s, tensor, result);
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
    gn_memory_format format = GN_FORMAT_CONTIGUOUS;
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(scope) && argument->is_given)
        scope->status = gn_memory_format_find(argument->text, &format);
    if (gni_scope_is_ok(scope))
        scope->status = gn_tensor_create_format(dtype, like->ndim, like->sizes, device,
                                                format_of(like, format), &made);
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
