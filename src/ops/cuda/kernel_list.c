/*
 * kernel_list.c: see kernel_list.h.
 */
#include "ops/cuda/kernel_list.h"

#include "jit/trim.h"

void gni_kernel_list_fill(struct gni_kernel_list *list)
{
#define LIST_FILL(function) function(list);
    GNI_KERNEL_LISTS(LIST_FILL)
#undef LIST_FILL
}

void gni_kernel_list_add(struct gni_kernel_list *list, const char *name, struct gni_builder *text)
{
    struct gni_builder trimmed = {.text = NULL};
    if (!text->has_failed)
        gni_text_trim(text->text, &trimmed);
    if (text->has_failed || trimmed.has_failed)
        list->has_failed = true;
    else
        list->take(list->context, name, trimmed.text);
    gni_builder_deinit(&trimmed);
    gni_builder_deinit(text);
}

void gni_kernel_list_add_fixed(struct gni_kernel_list *list, const struct gni_fixed *fixed,
                               unsigned types)
{
    for (unsigned dtype = 0; dtype < GN_DTYPE_COUNT; dtype++) {
        char name[GNI_FIXED_NAME_MOST];
        struct gni_builder text = {.text = NULL};
        if ((types & GNI_TYPE(dtype)) == 0)
            continue;
        gni_fixed_text(fixed, (gn_dtype)dtype, name, &text);
        gni_kernel_list_add(list, name, &text);
    }
}
