/*
 * test_kernel_list.c: the list of kernels for the archive: each is there once, is whole, and compiles by its name.
 */
#include "check.h"

#include "base/hash.h"
#include "base/host.h"
#include "jit/source.h"
#include "ops/cuda/kernel_list.h"

enum {
    KERNELS_MOST = 2000,
};

struct found {
    size_t count;
    uint64_t hashes[KERNELS_MOST];
};

static void kernel_take(void *context, const char *name, const char *text)
{
    struct found *found = context;
    const struct gni_kernel_source source = {.name = name, .text = text};
    uint64_t hash = gni_hash_bytes(text, strlen(text), gni_hash_bytes(name, strlen(name), 0));
    CHECK(strstr(text, name) != NULL && strstr(text, "__global__") != NULL);
    CHECK(gni_kernel_source_is_whole(&source));
    for (size_t i = 0; i < found->count; i++)
        CHECK(found->hashes[i] != hash);
    if (found->count < KERNELS_MOST)
        found->hashes[found->count++] = hash;
}

static void test_each_kernel_is_there_once(void)
{
    static struct found found;
    struct gni_kernel_list list = {.take = kernel_take, .context = &found};
    gni_kernel_list_fill(&list);
    CHECK(!list.has_failed);
    CHECK(found.count > 200 && found.count < KERNELS_MOST);
}

static void kernel_pass(void *context, const char *name, const char *text)
{
    (void)context, (void)name, (void)text;
}

static void test_host_memory_faults(void)
{
    size_t live = gni_host_live_count();
    for (long nth = 1; nth <= 1024; nth *= 4) {
        struct gni_kernel_list list = {.take = kernel_pass};
        gni_host_fail_after(nth);
        gni_kernel_list_fill(&list);
        gni_host_fail_after(-1);
        CHECK_U64(gni_host_live_count(), live);
        CHECK(list.has_failed);
    }
}

int main(void)
{
    RUN(test_each_kernel_is_there_once);
    RUN(test_host_memory_faults);
    return check_result();
}
