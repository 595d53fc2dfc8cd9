/*
 * test_checked.c: size arithmetic at the edges of size_t, and the host allocation funnel.
 */
#include "check.h"

#include "base/checked.h"
#include "base/host.h"

#include <pthread.h>

#define UNTOUCHED ((size_t)12345)

/* Each checks the answer, and that the result is stored on success and left alone on failure. */
static void add_check(size_t a, size_t b, bool fits)
{
    size_t result = UNTOUCHED;
    CHECK(gni_size_add(a, b, &result) == fits);
    CHECK_U64(result, fits ? a + b : UNTOUCHED);
}

static void multiply_check(size_t a, size_t b, bool fits)
{
    size_t result = UNTOUCHED;
    CHECK(gni_size_multiply(a, b, &result) == fits);
    CHECK_U64(result, fits ? a * b : UNTOUCHED);
}

static void align_check(size_t size, size_t alignment, bool fits, size_t expected)
{
    size_t result = UNTOUCHED;
    CHECK(gni_size_align_up(size, alignment, &result) == fits);
    CHECK_U64(result, fits ? expected : UNTOUCHED);
}

static void test_add(void)
{
    add_check(0, 0, true);
    add_check(SIZE_MAX, 0, true);
    add_check(0, SIZE_MAX, true);
    add_check(SIZE_MAX - 1, 1, true);
    add_check(SIZE_MAX, 1, false);
    add_check(1, SIZE_MAX, false);
    add_check(SIZE_MAX, SIZE_MAX, false);
    add_check(PTRDIFF_MAX, PTRDIFF_MAX, true);
    add_check((size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX, true);
    add_check((size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX + 1, false);
}

static void test_multiply(void)
{
    multiply_check(0, 0, true);
    multiply_check(0, SIZE_MAX, true);
    multiply_check(SIZE_MAX, 0, true);
    multiply_check(SIZE_MAX, 1, true);
    multiply_check(SIZE_MAX, 2, false);
    multiply_check(SIZE_MAX, SIZE_MAX, false);
    multiply_check(SIZE_MAX / 3, 3, true);
    multiply_check(SIZE_MAX / 3 + 1, 3, false);
    multiply_check(PTRDIFF_MAX, 2, true);
    multiply_check((size_t)PTRDIFF_MAX + 1, 2, false);
    multiply_check((size_t)1 << 32, (size_t)1 << 31, true);
    multiply_check((size_t)1 << 32, (size_t)1 << 32, false); /* wraps to exactly 0 */
}

static void test_align_up(void)
{
    const size_t top = (size_t)1 << 63;
    align_check(0, 1, true, 0);
    align_check(0, 512, true, 0);
    align_check(1, 512, true, 512);
    align_check(512, 512, true, 512);
    align_check(513, 512, true, 1024);
    align_check(SIZE_MAX, 1, true, SIZE_MAX);
    align_check(SIZE_MAX, 2, false, 0);
    align_check(SIZE_MAX - 1, 2, true, SIZE_MAX - 1);
    align_check(SIZE_MAX - 511, 512, true, SIZE_MAX - 511);
    align_check(SIZE_MAX - 510, 512, false, 0);
    align_check(PTRDIFF_MAX, 512, true, top);
    align_check(1, top, true, top);
    align_check(top, top, true, top);
    align_check(top + 1, top, false, 0);
}

/* Against the definition, for sizes near 0, near PTRDIFF_MAX and near SIZE_MAX. */
static void test_align_up_definition(void)
{
    const size_t bases[] = {0, (size_t)PTRDIFF_MAX - 600, SIZE_MAX - 1200};
    for (size_t base = 0; base < 3; base++) {
        for (size_t alignment = 1; alignment <= 1024; alignment *= 2) {
            for (size_t size = bases[base]; size < bases[base] + 1200; size++) {
                size_t missing = (alignment - size % alignment) % alignment;
                align_check(size, alignment, missing <= SIZE_MAX - size, size + missing);
            }
        }
    }
}

static void test_result_may_be_operand(void)
{
    size_t size = 100;
    CHECK(gni_size_add(size, 1, &size) && size == 101);
    CHECK(gni_size_multiply(size, 2, &size) && size == 202);
    CHECK(gni_size_align_up(size, 256, &size) && size == 256);
    CHECK(!gni_size_multiply(size, SIZE_MAX, &size) && size == 256);
}

static void test_is_possible(void)
{
    CHECK(gni_size_is_possible(0));
    CHECK(gni_size_is_possible((size_t)PTRDIFF_MAX - 1));
    CHECK(gni_size_is_possible(PTRDIFF_MAX));
    CHECK(!gni_size_is_possible((size_t)PTRDIFF_MAX + 1));
    CHECK(!gni_size_is_possible(SIZE_MAX));
    CHECK_U64(GNI_SIZE_MAX_BYTES, PTRDIFF_MAX);
}

static void test_host_blocks(void)
{
    size_t live = gni_host_live_count();
    unsigned char *block = gni_host_alloc(100);
    void *empty = gni_host_alloc(0);
    CHECK(block != NULL && empty != NULL && empty != (void *)block);
    CHECK_U64(gni_host_live_count(), live + 2);
    size_t sum = 0;
    for (size_t i = 0; i < 100; i++)
        sum += block[i];
    CHECK_U64(sum, 0);
    memset(block, 7, 100);
    block = gni_host_realloc(block, 10000);
    CHECK(block != NULL && block[0] == 7 && block[99] == 7);
    block = gni_host_realloc(block, 0);
    CHECK(block != NULL);
    CHECK_U64(gni_host_live_count(), live + 2);
    void *fresh = gni_host_realloc(NULL, 8);
    CHECK(fresh != NULL);
    CHECK_U64(gni_host_live_count(), live + 3);
    unsigned char *lines = gni_host_alloc_lines(1);
    CHECK(lines != NULL && (uintptr_t)lines % GNI_HOST_LINE == 0);
    for (size_t i = 0; i < GNI_HOST_LINE; i++)
        sum += lines[i];
    CHECK_U64(sum, 0);
    CHECK_U64(gni_host_live_count(), live + 4);
    gni_host_free(lines);
    gni_host_free(fresh);
    gni_host_free(block);
    gni_host_free(empty);
    gni_host_free(NULL);
    CHECK_U64(gni_host_live_count(), live);
}

static void test_host_refuses_impossible_sizes(void)
{
    size_t live = gni_host_live_count();
    CHECK(gni_host_alloc(SIZE_MAX) == NULL);
    CHECK(gni_host_alloc((size_t)PTRDIFF_MAX + 1) == NULL);
    CHECK(gni_host_alloc_lines(PTRDIFF_MAX) == NULL);
    CHECK(gni_host_realloc(NULL, SIZE_MAX) == NULL);
    unsigned char *block = gni_host_alloc(1);
    block[0] = 9;
    CHECK(gni_host_realloc(block, (size_t)PTRDIFF_MAX + 1) == NULL);
    CHECK(block[0] == 9);
    CHECK_U64(gni_host_live_count(), live + 1);
    gni_host_free(block);
    CHECK_U64(gni_host_live_count(), live);
}

/* The third call fails, alloc and realloc alike, and only that one. */
static void test_host_fail_after(void)
{
    size_t live = gni_host_live_count();
    gni_host_fail_after(3);
    char *first = gni_host_alloc(1);
    char *second = gni_host_realloc(NULL, 1);
    CHECK(first != NULL && second != NULL);
    second[0] = 5;
    CHECK(gni_host_realloc(second, 64) == NULL);
    CHECK(second[0] == 5);
    char *third = gni_host_alloc(1);
    CHECK(third != NULL);
    gni_host_fail_after(1);
    CHECK(gni_host_alloc(1) == NULL);
    gni_host_fail_after(1);
    gni_host_fail_after(-1);
    char *fourth = gni_host_alloc(0);
    CHECK(fourth != NULL);
    CHECK_U64(gni_host_live_count(), live + 4);
    gni_host_free(first);
    gni_host_free(second);
    gni_host_free(third);
    gni_host_free(fourth);
    CHECK_U64(gni_host_live_count(), live);
}

/* A thread gets back the block that it freed last; the counter and failures are as for other blocks. */
static void *kept_check(void *unused)
{
    size_t live = gni_host_live_count();
    char *first = gni_host_alloc_kept(), *second = gni_host_alloc_kept();
    CHECK(first != NULL && second != NULL && first != second);
    memset(first, 1, GNI_HOST_KEPT);
    memset(second, 2, GNI_HOST_KEPT);
    CHECK_U64(gni_host_live_count(), live + 2);
    gni_host_free_kept(first);
    gni_host_free_kept(second); /* one is enough */
    CHECK_U64(gni_host_live_count(), live);
    gni_host_fail_after(1);
    CHECK(gni_host_alloc_kept() == NULL);
    char *again = gni_host_alloc_kept();
#ifndef GNI_DEBUG
    CHECK(again == first);
#endif
    CHECK_U64(gni_host_live_count(), live + 1);
    gni_host_free_kept(again);
    CHECK_U64(gni_host_live_count(), live);
    return unused;
}

/* Each thread has its own. */
static void test_host_kept(void)
{
    pthread_t thread;
    (void)kept_check(NULL);
    CHECK(pthread_create(&thread, NULL, kept_check, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    RUN(test_add);
    RUN(test_multiply);
    RUN(test_align_up);
    RUN(test_align_up_definition);
    RUN(test_result_may_be_operand);
    RUN(test_is_possible);
    RUN(test_host_blocks);
    RUN(test_host_refuses_impossible_sizes);
    RUN(test_host_fail_after);
    RUN(test_host_kept);
    return check_result();
}
