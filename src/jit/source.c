/*
 * source.c: see source.h.
 */
#include "jit/source.h"

#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
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

bool gni_kernel_source_write(const struct gni_kernel_source *source, const char *directory)
{
    char path[1024], name[128];
    uint64_t hash = gni_hash_bytes(source->text, strlen(source->text), 0);
    snprintf(name, sizeof name, "%s", source->name);
    for (char *at = name; *at != '\0'; at++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *at) == NULL)
            *at = '_';
    snprintf(path, sizeof path, "%s/%s_%016llx.cu", directory, name, (unsigned long long)hash);
    FILE *file = fopen(path, "w");
    bool is_written = file != NULL && fputs(source->text, file) >= 0;
    if (file != NULL)
        is_written &= fclose(file) == 0;
    if (!is_written)
        gni_log(GNI_LOG_WARNING, "the source of kernel %s cannot be written to %s: %s",
                source->name, path, strerror(errno));
    return is_written;
}

void gni_kernel_image_deinit(struct gni_kernel_image *image)
{
    gni_host_free(image->bytes);
    gni_host_free(image->symbol);
    *image = (struct gni_kernel_image){.bytes = NULL};
}
