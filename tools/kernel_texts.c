/*
 * kernel_texts.c: writes the texts of all kernels that do not depend on a program, for tools/kernel_archive.py.
 *
 *     kernel_texts DIRECTORY
 *
 * The directory exists. It needs no GPU and no compiler.
 */
#include "jit/source.h"
#include "ops/cuda/kernel_list.h"

#include <stdio.h>

struct target {
    const char *directory;
    bool has_failed;
};

static void text_write(void *context, const char *name, const char *text)
{
    struct target *target = context;
    const struct gni_kernel_source source = {.name = name, .text = text};
    target->has_failed |= !gni_kernel_source_write(&source, target->directory);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: kernel_texts DIRECTORY\n");
        return 2;
    }
    struct target target = {.directory = arguments[1]};
    struct gni_kernel_list list = {.take = text_write, .context = &target};
    gni_kernel_list_fill(&list);
    return list.has_failed || target.has_failed;
}
