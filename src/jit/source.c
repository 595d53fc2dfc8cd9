/*
 * source.c: see source.h.
 */
#include "jit/source.h"

#include "base/host.h"

#include <string.h>

const char *const gni_kernel_options[] = {"--std=c++17", "--fmad=false", NULL};

const char *gni_kernel_source_piece(const struct gni_kernel_source *source, size_t index)
{
    const char *const *options = source->options != NULL ? source->options : gni_kernel_options;
    switch (index) {
    case 0:
        return source->name;
    case 1:
        return source->text;
    case 2:
        return source->is_expression ? "expression" : "symbol";
    default:
        return options[index - 3];
    }
}

/* Too strict rather than too lax: a word in a comment costs a compilation, a stale header a day. */
bool gni_kernel_source_is_whole(const struct gni_kernel_source *source)
{
    const char *option;
    if (strstr(source->text, "include") != NULL)
        return false;
    for (size_t i = 3; (option = gni_kernel_source_piece(source, i)) != NULL; i++)
        if (strstr(option, "include") != NULL || strncmp(option, "-I", 2) == 0)
            return false;
    return true;
}

void gni_kernel_image_deinit(struct gni_kernel_image *image)
{
    gni_host_free(image->bytes);
    gni_host_free(image->symbol);
    *image = (struct gni_kernel_image){.bytes = NULL};
}
