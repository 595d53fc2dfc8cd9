/*
 * test_memory_blocks.c: single blocks: their sizes, frees that are refused, and what is remembered of frees.
 */
#include "memory_suite.h"

/* ---- sizes ---------------------------------------------------------------------------------- */

static void test_sizes(void)
{
    const size_t sizes[] = {0,       1,           2,       511,         512,      513,
                            4095,    4096,        4097,    9217,        MIB - 1,  MIB,
                            MIB + 1, 3 * MIB + 1, 8 * MIB, 8 * MIB + 1, 100 * MIB};
    enum {
        COUNT = sizeof sizes / sizeof *sizes
    };
    void *pointers[COUNT];
    gn_memory_statistics before = statistics_now();
    uint64_t live = before.live_bytes;
    for (size_t i = 0; i < COUNT; i++) {
        pointers[i] = block_make(sizes[i]);
        CHECK((uintptr_t)pointers[i] % suite.policy->alignment == 0);
        cookie_write(pointers[i], sizes[i], i);
        gn_memory_statistics now = statistics_now();
        CHECK_U64(now.live_bytes - live, block_live_bytes(pointers[i], sizes[i]));
        live = now.live_bytes;
    }
    for (size_t i = 0; i < COUNT; i++) {
        size_t nbytes = SIZE_MAX;
        CHECK_OK(gn_memory_get_size(suite.manager, pointers[i], &nbytes));
        CHECK_U64(nbytes, sizes[i]);
        CHECK(cookie_is(pointers[i], sizes[i], i));
        CHECK_OK(gn_memory_free_sized(suite.manager, pointers[i], sizes[i]));
        CHECK_STATUS(gn_memory_get_size(suite.manager, pointers[i], &nbytes), GN_ERROR_DOUBLE_FREE);
        CHECK_U64(nbytes, sizes[i]);
    }
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.live_bytes, before.live_bytes);
    CHECK_U64(after.requested_bytes, before.requested_bytes);
    CHECK_U64(after.alloc_count - before.alloc_count, COUNT);
}

static void test_no_bytes_have_an_address(void)
{
    enum {
        COUNT = 100
    };
    void *pointers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pointers[i] = block_make(0);
        for (int j = 0; j < i; j++)
            CHECK(pointers[i] != pointers[j]);
    }
    CHECK_U64(statistics_now().live_count, COUNT);
    CHECK_U64(statistics_now().requested_bytes, 0);
    CHECK_U64(statistics_now().live_bytes, COUNT * policy_live_bytes(0));
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(gn_memory_free_sized(suite.manager, pointers[i], 0));
    CHECK_U64(statistics_now().live_count, 0);
}

static void test_absurd_sizes(void)
{
    static const struct {
        size_t nbytes;
        gn_status status;
    } cases[] = {
        {SIZE_MAX, GN_ERROR_OVERFLOW},
        {SIZE_MAX - 4095, GN_ERROR_OVERFLOW},
        {(size_t)PTRDIFF_MAX + 1, GN_ERROR_OVERFLOW},
        {PTRDIFF_MAX, GN_ERROR_OUT_OF_MEMORY},
        {(size_t)1 << 62, GN_ERROR_OUT_OF_MEMORY},
        {(size_t)1 << 47, GN_ERROR_OUT_OF_MEMORY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gn_memory_statistics expected = statistics_now();
        void *pointer = &expected;
        size_t live = gni_host_live_count();
        CHECK_STATUS(gn_memory_alloc(suite.manager, cases[i].nbytes, NULL, &pointer),
                     cases[i].status);
        CHECK(pointer == &expected && gni_host_live_count() <= live);
        expected.out_of_memory_count += cases[i].status == GN_ERROR_OUT_OF_MEMORY;
        CHECK(statistics_fit(&expected));
        block_free(block_make(1000)); /* everything goes on */
    }
}

/* ---- frees that are refused ----------------------------------------------------------------- */

static bool statistics_are(const gn_memory_statistics *expected)
{
    gn_memory_statistics now = statistics_now();
    return statistics_same(&now, expected);
}

/* The free fails with this status, and only the count of refusals moves. */
static void refused_check(void *pointer, gn_status status, const char *word)
{
    gn_memory_statistics expected = statistics_now();
    CHECK_STATUS(gn_memory_free(suite.manager, pointer), status);
    CHECK_DETAIL(word);
    CHECK_STATUS(gn_memory_free_sized(suite.manager, pointer, 1), status);
    expected.refused_count += 2;
    CHECK(statistics_are(&expected));
    size_t nbytes = 4711;
    CHECK_STATUS(gn_memory_get_size(suite.manager, pointer, &nbytes), status);
    CHECK(nbytes == 4711 && statistics_are(&expected)); /* asking is no refused free */
}

static void test_foreign_pointers(void)
{
    int on_stack;
    static int in_data;
    void *in_heap = malloc(100);
    void *block = block_make(100); /* so that there is something to mistake them for */
    void *foreign[] = {NULL, &on_stack, &in_data, in_heap, (void *)1, (void *)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        refused_check(foreign[i], GN_ERROR_INVALID_POINTER, "not allocated by this memory manager");
    block_free(block);
    free(in_heap);
}

static void test_double_free(void)
{
    void *first = block_make(5000), *second = block_make(5000);
    block_free(first);
    refused_check(first, GN_ERROR_DOUBLE_FREE, "freed already");
    block_free(second);
    refused_check(second, GN_ERROR_DOUBLE_FREE, "freed already");
    refused_check(first, GN_ERROR_DOUBLE_FREE, "freed already");
}

static void test_interior_pointers(void)
{
    const size_t nbytes = 10000, offsets[] = {1, 8, 4096, 9999};
    block_free(block_make(3 * nbytes)); /* of which some addresses may come again */
    char *block = block_make(nbytes);
    cookie_write(block, nbytes, 1);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        char word[64];
        (void)snprintf(word, sizeof word, "%zu bytes into the block of %zu bytes", offsets[i],
                       nbytes);
        refused_check(block + offsets[i], GN_ERROR_INVALID_POINTER, word);
    }
    refused_check(block - 1, GN_ERROR_INVALID_POINTER, "not allocated");
    CHECK(cookie_is(block, nbytes, 1));
    block_free(block);
}

static void test_wrong_size(void)
{
    const size_t wrong[] = {0, 99, 101, SIZE_MAX};
    void *block = block_make(100);
    cookie_write(block, 100, 2);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gn_memory_statistics expected = statistics_now();
        CHECK_STATUS(gn_memory_free_sized(suite.manager, block, wrong[i]), GN_ERROR_WRONG_SIZE);
        CHECK_DETAIL("100 bytes");
        expected.refused_count++;
        CHECK(statistics_are(&expected));
        CHECK(cookie_is(block, 100, 2));
    }
    CHECK_OK(gn_memory_free_sized(suite.manager, block, 100));
    refused_check(block, GN_ERROR_DOUBLE_FREE, "freed already");
}

/* Its address does not free what somebody else owns, and the owner still can. */
static void owned_check(void *address, size_t nbytes, const char *owner)
{
    char word[64];
    (void)snprintf(word, sizeof word, "%zu bytes at %p belongs to %s", nbytes, address, owner);
    gn_memory_statistics expected = statistics_now();
    CHECK_STATUS(gn_memory_free(suite.manager, address), GN_ERROR_INVALID_POINTER);
    CHECK_DETAIL(word);
    CHECK_STATUS(gn_memory_free_sized(suite.manager, address, nbytes), GN_ERROR_INVALID_POINTER);
    CHECK_DETAIL(word);
    CHECK_STATUS(gn_memory_free(suite.manager, (char *)address + 8), GN_ERROR_INVALID_POINTER);
    CHECK_DETAIL(word);
    expected.refused_count += 3;
    CHECK(statistics_are(&expected));
    size_t known = 0;
    CHECK_OK(gn_memory_get_size(suite.manager, address, &known));
    CHECK_U64(known, nbytes);
}

/* Small ones are freed into a bin, medium ones into a slot or a claim, large ones under the lock. */
static const size_t owned_sizes[] = {64, 100 * KIB, 2 * MIB, 40 * MIB};

static void test_block_that_a_handle_owns(void)
{
    for (size_t i = 0; i < sizeof owned_sizes / sizeof *owned_sizes; i++)
        for (int round = 0; round < 4; round++) { /* then from the cache, with flags of before */
            size_t nbytes = owned_sizes[i];
            gn_memory_block *block;
            CHECK_OK(gn_memory_block_alloc(suite.manager, nbytes, NULL, &block));
            char *address = gn_memory_block_get_address(block);
            cookie_write(address, nbytes, 3);
            owned_check(address, nbytes, "a block handle");
            CHECK(cookie_is(address, nbytes, 3));
            CHECK_OK(gn_memory_block_free(block));
            CHECK_STATUS(gn_memory_free(suite.manager, address), GN_ERROR_DOUBLE_FREE);
            block_free(block_make(nbytes)); /* by address again */
        }
}

static void test_block_that_a_tensor_owns(void)
{
    for (size_t i = 0; i < sizeof owned_sizes / sizeof *owned_sizes; i++) {
        int64_t count = (int64_t)owned_sizes[i];
        gn_tensor *tensor;
        void *address;
        CHECK_OK(gn_tensor_create(GN_UINT8, 1, &count, suite.device, &tensor));
        CHECK_OK(gn_tensor_get_data(tensor, &address));
        owned_check(address, owned_sizes[i], "a tensor");
        gn_tensor_release(tensor);
    }
}

static void test_other_managers_pointer(void)
{
    void *ours = block_make(100);
    /* The last: the first ones may be where we had a block before that was given back. */
    refused_check(suite.theirs[THEIRS - 1], GN_ERROR_INVALID_POINTER,
                  "not allocated by this memory manager");
    CHECK_STATUS(gn_memory_free(suite.other, ours), GN_ERROR_INVALID_POINTER);
    for (int i = 0; i < THEIRS; i++)
        CHECK_OK(gn_memory_free(suite.other, suite.theirs[i]));
    CHECK_OK(gni_manager_clear(suite.other));
    block_free(ours);
}

/* Both ends of a block hold a byte. */
static bool ends_are(const char *block, size_t nbytes, char value)
{
    char first, last;
    bytes_move(&first, block, 1);
    bytes_move(&last, block + nbytes - 1, 1);
    return first == value && last == value;
}

/* Work that was submitted before a free may still use the block; whoever has the memory next does not see
 * that work. The block is the stream's own, or another's that was told of it. */
static void test_free_with_pending_work(void)
{
    size_t nbytes = 8 * MIB; /* four copies take longer than the calls that follow */
    char *from = calloc(1, nbytes);
    gn_stream *stream = NULL, *current = NULL;
    CHECK_OK(gn_stream_create(suite.device, GN_STREAM_NON_BLOCKING, 0, &stream));
    CHECK_OK(gn_stream_get_current(suite.device, &current));
    for (int round = 0; round < 6; round++) {
        void *block = NULL;
        CHECK_OK(gn_memory_alloc(suite.manager, nbytes, round % 2 == 0 ? stream : NULL, &block));
        if (round % 2 != 0)
            CHECK_OK(gn_memory_record_stream(suite.manager, block, stream));
        for (int i = 0; i < 4; i++)
            CHECK_OK(gn_copy(block, from, nbytes, stream));
        block_free(block);
        CHECK_STATUS(gn_memory_free(suite.manager, block), GN_ERROR_DOUBLE_FREE);
        void *next = block_make(nbytes);
        CHECK_OK(gn_fill(next, 7, 1, nbytes, current));
        CHECK_OK(gn_device_synchronize(suite.device));
        CHECK(ends_are(next, nbytes, 7));
        block_free(next);
        CHECK_OK(gn_memory_collect(suite.manager));
        CHECK_U64(statistics_now().pending_bytes, 0);
    }
    gn_stream_release(stream);
    free(from);
}

/* ---- the history of frees ------------------------------------------------------------------- */

/* An address that the driver hands out again is a block like any other. */
static void test_address_reuse(void)
{
    void *last = NULL;
    int reused = 0;
    for (int round = 0; round < 6000; round++) { /* more than the history holds */
        void *block = block_make(4096);
        reused += block == last;
        size_t nbytes = 0;
        CHECK_OK(gn_memory_get_size(suite.manager, block, &nbytes));
        CHECK_OK(gn_memory_free(suite.manager, block));
        CHECK_STATUS(gn_memory_free(suite.manager, block), GN_ERROR_DOUBLE_FREE);
        last = block;
    }
    CHECK(reused > 0); /* or this test tests nothing */
}

static void test_history_is_bounded(void)
{
    enum {
        COUNT = 6000,
        REMEMBERED = 4096
    };
    static void *pointers[COUNT];
    for (int i = 0; i < COUNT; i++)
        pointers[i] = block_make(1);
    size_t live = gni_host_live_count();
    for (int i = 0; i < COUNT; i++)
        block_free(pointers[i]);
    if (suite.policy->is_pooled) {
        CHECK(gni_host_live_count() < live + COUNT / 4); /* an event for some of them, no more */
        for (int i = 0; i < COUNT; i++) {
            gn_status status = gn_memory_free(suite.manager, pointers[i]);
            CHECK(status == GN_ERROR_DOUBLE_FREE || status == GN_ERROR_INVALID_POINTER);
        }
        CHECK_STATUS(gn_memory_free(suite.manager, pointers[COUNT - 1]), GN_ERROR_DOUBLE_FREE);
        return;
    }
    CHECK(gni_host_live_count() <= live - COUNT + 1); /* no descriptor stays; a map may be new */
    int known = 0;
    for (int i = 0; i < COUNT - REMEMBERED; i++) {
        gn_status status = gn_memory_free(suite.manager, pointers[i]);
        CHECK(status == GN_ERROR_INVALID_POINTER || status == GN_ERROR_DOUBLE_FREE);
        known += status == GN_ERROR_DOUBLE_FREE;
    }
    CHECK(known < 100); /* as blocks of the pool, that test_policy_changes() used */
    for (int i = COUNT - REMEMBERED; i < COUNT; i++)
        CHECK_STATUS(gn_memory_free(suite.manager, pointers[i]), GN_ERROR_DOUBLE_FREE);
}

void test_memory_blocks(void)
{
    RUN(test_sizes);
    RUN(test_no_bytes_have_an_address);
    RUN(test_absurd_sizes);
    RUN(test_foreign_pointers);
    RUN(test_double_free);
    RUN(test_interior_pointers);
    RUN(test_wrong_size);
    RUN(test_block_that_a_handle_owns);
    RUN(test_block_that_a_tensor_owns);
    RUN(test_other_managers_pointer);
    RUN(test_free_with_pending_work);
    RUN(test_address_reuse);
    RUN(test_history_is_bounded);
}
