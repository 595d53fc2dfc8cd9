/*
 * test_debug_modes.c: GENESIS_DEBUG: poison, guard and sync, each in a child.
 *
 *     test_debug_modes [cpu | cuda]
 */
#include "pool_suite.h"

struct suite suite;

static const size_t sizes[] = {1, 511, 512, 5000, 70000, MIB, 3 * MIB, 8 * MIB, 9 * MIB};

static void byte_write(void *address, unsigned char value)
{
    bytes_move(address, &value, 1, suite.stream);
}

static unsigned char byte_read(const void *address)
{
    unsigned char value;
    bytes_move(&value, address, 1, suite.stream);
    return value;
}

/* ---- poison --------------------------------------------------------------------------------- */

/* Fresh and freed memory is never what it was before. */
static void child_poison(void)
{
    for (int round = 0; round < 2; round++) {
        void *kept = block_make(100); /* its pages stay */
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            void *pointer = block_make(sizes[i]);
            CHECK(block_holds(pointer, 0xD0, sizes[i]));
            block_fill(pointer, 0x11, sizes[i], suite.stream);
            block_free(pointer);
            CHECK(block_holds(pointer, 0xDD, sizes[i])); /* a mistake, which is harmless here */
        }
        block_free(block_make(0));
        block_free(kept);
    }
    void *pointers[3];
    const size_t batch[] = {100, 3 * MIB, 5000};
    gn_memory_block *handle = NULL;
    CHECK_OK(gn_memory_alloc_batch(suite.manager, 3, batch, NULL, pointers));
    for (size_t i = 0; i < 3; i++) {
        CHECK(block_holds(pointers[i], 0xD0, batch[i]));
        block_free(pointers[i]);
    }
    CHECK_OK(gn_memory_block_alloc(suite.manager, 3000, NULL, &handle));
    CHECK(block_holds(gn_memory_block_get_address(handle), 0xD0, 3000));
    CHECK_OK(gn_memory_block_free(handle));
    POOL_CHECK();
    pool_empty();
}

/* In the order of the stream: work that was submitted before the free is not disturbed. */
static void child_poison_order(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    unsigned char *copy = malloc(3 * MIB);
    for (int round = 0; round < 3; round++) {
        void *pointer = block_make_on(3 * MIB, stream);
        block_fill(pointer, 0x22, 3 * MIB, stream);
        CHECK_OK(gn_copy(copy, pointer, 3 * MIB, stream));
        block_free(pointer);
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(copy[0] == 0x22 && copy[3 * MIB - 1] == 0x22);
    }
    free(copy);
    gn_stream_release(stream);
    findings_check();
    pool_empty();
}

/* Host memory is written without a stream, too: no fill that is held up by other work comes late, over what the
 * owner of a block has written. */
static void child_poison_late(void)
{
    gn_memory_manager *manager = suite.manager;
    gn_stream *stream = stream_make(0); /* the default stream waits for it */
    void *busy = block_make_on(64 * MIB, stream), *pointers[2];
    if (!suite.is_cpu)
        CHECK_OK(gn_memory_manager_get_pinned(suite.device, &manager));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 2; i++) { /* fresh memory, and what was freed */
            block_fill(busy, (unsigned char)round, 64 * MIB, stream);
            CHECK_OK(gn_memory_alloc(manager, 4096, NULL, &pointers[i]));
            memset(pointers[i], 0x33, 4096);
            if (i == 0)
                CHECK_OK(gn_memory_free(manager, pointers[i]));
        }
        CHECK_OK(gn_device_synchronize(suite.device));
        for (size_t i = 0; i < 4096; i += 511)
            CHECK_U64(((unsigned char *)pointers[1])[i], 0x33);
        CHECK_OK(gn_memory_free(manager, pointers[1]));
    }
    block_free(busy);
    gn_stream_release(stream);
    findings_check();
    pool_empty();
}

/* Nobody waits for the fills of a GPU's memory: that would be `sync`. */
static void child_poison_unawaited(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    block_free(block_make_on(MIB, stream)); /* from now on the memory is there */
    CHECK_OK(gn_stream_synchronize(stream));
    if (suite.is_sim)
        suite.control.schedule(1, 0); /* nothing runs before somebody waits for it */
    void *pointer = block_make_on(MIB, stream);
    if (suite.is_sim)
        CHECK_STATUS(gn_stream_query(stream), GN_ERROR_NOT_READY);
    CHECK_OK(gn_stream_synchronize(stream));
    block_free(pointer);
    if (suite.is_sim)
        CHECK_STATUS(gn_stream_query(stream), GN_ERROR_NOT_READY);
    gn_stream_release(stream);
    pool_empty();
}

/* ---- guard ---------------------------------------------------------------------------------- */

/* A byte out of bounds is written, found by the free, told with its place, and put right. */
static void guard_try(char *pointer, size_t nbytes, ptrdiff_t place)
{
    char words[64];
    (void)snprintf(words, sizeof words, "at byte %td;", place);
    gn_memory_statistics before = statistics_now();
    unsigned char old = byte_read(pointer + place);
    byte_write(pointer + place, (unsigned char)~old);
    CHECK_STATUS(gn_memory_free(suite.manager, pointer), GN_ERROR_CORRUPTED);
    CHECK_DETAIL(words);
    CHECK_DETAIL("out of bounds");
    CHECK_STATUS(gn_memory_free_sized(suite.manager, pointer, nbytes), GN_ERROR_CORRUPTED);
    CHECK_U64(statistics_now().live_count, before.live_count); /* it is not freed */
    byte_write(pointer + place, old);
}

static void child_guard(void)
{
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t nbytes = sizes[i];
        char *pointer = block_make(nbytes);
        CHECK((uintptr_t)pointer % 512 == 0);
        guard_try(pointer, nbytes, (ptrdiff_t)nbytes);
        guard_try(pointer, nbytes, (ptrdiff_t)nbytes + 100);
        guard_try(pointer, nbytes, (ptrdiff_t)nbytes + 511);
        guard_try(pointer, nbytes, -1);
        guard_try(pointer, nbytes, -512);
        byte_write(pointer, 1); /* the bytes within are the caller's */
        byte_write(pointer + nbytes - 1, 1);
        CHECK_OK(gn_memory_free_sized(suite.manager, pointer, nbytes));
        CHECK_STATUS(gn_memory_free(suite.manager, pointer), GN_ERROR_DOUBLE_FREE);
    }
    char *empty = block_make(0);
    guard_try(empty, 0, 0);
    block_free(empty);
    POOL_CHECK();
    pool_empty();
}

/* Guards of neighbours, of batches, of handles, and of blocks that other streams use. */
static void child_guard_many(void)
{
    enum {
        COUNT = 64
    };
    char *pointers[COUNT];
    size_t lengths[COUNT];
    gn_stream *stream = stream_make(0);
    for (size_t i = 0; i < COUNT; i++)
        lengths[i] = i * 777;
    CHECK_OK(gn_memory_alloc_batch(suite.manager, COUNT, lengths, NULL, (void **)pointers));
    for (size_t i = 0; i < COUNT; i++)
        block_fill(pointers[i], (unsigned char)i, lengths[i], suite.stream);
    guard_try(pointers[10], lengths[10], (ptrdiff_t)lengths[10]);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(block_holds(pointers[i], (unsigned char)i, lengths[i]));
        if (i % 3 == 0)
            CHECK_OK(gn_memory_record_stream(suite.manager, pointers[i], stream));
        block_free(pointers[i]);
    }
    gn_memory_block *handle = NULL;
    CHECK_OK(gn_memory_block_alloc(suite.manager, 1000, stream, &handle));
    char *address = gn_memory_block_get_address(handle);
    CHECK_OK(gn_stream_synchronize(stream)); /* the guards are there */
    byte_write(address + 1000, 0);
    CHECK_STATUS(gn_memory_block_free(handle), GN_ERROR_CORRUPTED);
    byte_write(address + 1000, 0xFD);
    CHECK_OK(gn_memory_block_free(handle));
    gn_stream_release(stream);
    CHECK_OK(gn_device_synchronize(suite.device));
    CHECK_OK(gn_memory_collect(suite.manager));
    POOL_CHECK();
    pool_empty();
}

/* Folding keeps the guards, and finds no block damaged that is not. */
static void child_guard_compact(void)
{
    enum {
        COUNT = 256
    };
    char *pointers[COUNT];
    gn_memory_compaction report;
    for (size_t i = 0; i < COUNT; i++) {
        pointers[i] = block_make(200000);
        block_fill(pointers[i], (unsigned char)i, 200000, suite.stream);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 4 != i / 16 % 4) {
            block_free(pointers[i]);
            pointers[i] = NULL;
        }
    }
    CHECK_OK(gn_memory_compact(suite.manager, &report));
    CHECK(!suite.is_virtual || report.folded_pages > 3);
    POOL_CHECK();
    for (size_t i = 0; i < COUNT; i++) {
        if (pointers[i] == NULL)
            continue;
        CHECK(block_holds(pointers[i], (unsigned char)i, 200000));
        if (i < 20)
            guard_try(pointers[i], 200000, 200000);
        block_free(pointers[i]);
    }
    pool_empty();
}

/* ---- sync ----------------------------------------------------------------------------------- */

/* The stream has done all its work when an allocation or a free returns. */
static void child_sync(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    for (int round = 0; round < 5; round++) {
        void *first = block_make_on(MIB, stream);
        CHECK_OK(gn_stream_query(stream));
        for (int i = 0; i < 10; i++)
            block_fill(first, 1, MIB, stream);
        void *second = block_make_on(1000, stream);
        CHECK_OK(gn_stream_query(stream));
        for (int i = 0; i < 10; i++)
            block_fill(first, 1, MIB, stream);
        block_free(first);
        CHECK_OK(gn_stream_query(stream));
        block_free(second);
    }
    gn_stream_release(stream);
    POOL_CHECK();
    pool_empty();
}

/* All of them at once, with a random program. */
static void child_all(void)
{
    enum {
        COUNT = 60
    };
    struct {
        char *pointer;
        size_t nbytes;
        unsigned char value;
    } held[COUNT] = {{NULL, 0, 0}};
    uint64_t seed = 3;
    for (int step = 0; step < 600; step++) {
        size_t i = check_random(&seed) % COUNT;
        if (held[i].pointer != NULL) {
            CHECK(block_holds(held[i].pointer, held[i].value, held[i].nbytes));
            block_free(held[i].pointer);
            held[i].pointer = NULL;
            continue;
        }
        held[i].nbytes = (check_random(&seed) % (9 * MIB)) >> (check_random(&seed) % 14);
        held[i].value = (unsigned char)step;
        held[i].pointer = block_make(held[i].nbytes);
        block_fill(held[i].pointer, held[i].value, held[i].nbytes, suite.stream);
        if (step % 50 == 0)
            POOL_CHECK();
    }
    for (size_t i = 0; i < COUNT; i++)
        if (held[i].pointer != NULL)
            block_free(held[i].pointer);
    findings_check();
    pool_empty();
}

/* ---- the program ---------------------------------------------------------------------------- */

/* Each call for the patterns fails in turn: then there is no block, or it is still one, and all is as before. */
static void child_faults(void)
{
    static const char *const functions[] = {"cuMemsetD8Async", "cuMemcpyAsync",
                                            "cuStreamSynchronize", "cuStreamIsCapturing"};
    int struck = 0, undone = 0;
    CHECK(true);
    if (!suite.is_sim)
        return;
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        for (int nth = 1;; nth++) {
            void *pointer = NULL;
            suite.control.fail(functions[i], nth, CUDA_ERROR_UNKNOWN, 0);
            gn_status made = gn_memory_alloc(suite.manager, 5000, suite.stream, &pointer);
            CHECK((made == GN_OK) == (pointer != NULL));
            CHECK_U64(statistics_now().live_count, made == GN_OK);
            gn_status freed = made == GN_OK ? gn_memory_free(suite.manager, pointer) : GN_OK;
            int faults = suite.control.fault_count();
            suite.control.fail(NULL, 0, 0, 0);
            struck += made != GN_OK;
            undone += freed != GN_OK;
            CHECK_U64(statistics_now().live_count, freed != GN_OK);
            if (freed != GN_OK)
                block_free(pointer);
            void *batch[3] = {NULL};
            suite.control.fail(functions[i], nth, CUDA_ERROR_UNKNOWN, 0);
            made = gn_memory_alloc_batch(suite.manager, 3, sizes, suite.stream, batch);
            faults += suite.control.fault_count();
            suite.control.fail(NULL, 0, 0, 0);
            CHECK_U64(statistics_now().live_count, made == GN_OK ? 3 : 0);
            for (int k = 0; k < 3 && made == GN_OK; k++)
                block_free(batch[k]);
            if (faults == 0)
                break;
            CHECK(nth < 100);
        }
    CHECK(struck >= 4 && undone >= 6);
    pool_empty();
}

static const struct child_mode modes[] = {
    {"faults", child_faults, {"GENESIS_DEBUG=poison,guard,sync"}},
    {"poison", child_poison, {"GENESIS_DEBUG=poison"}},
    {"poison_order", child_poison_order, {"GENESIS_DEBUG=poison"}},
    {"poison_late", child_poison_late, {"GENESIS_DEBUG=poison"}},
    {"poison_unawaited", child_poison_unawaited, {"GENESIS_DEBUG=poison"}},
    {"guard", child_guard, {"GENESIS_DEBUG=guard"}},
    {"guard_many", child_guard_many, {"GENESIS_DEBUG=guard"}},
    {"guard_compact", child_guard_compact, {"GENESIS_DEBUG=guard"}},
    {"sync", child_sync, {"GENESIS_DEBUG=sync"}},
    {"all", child_all, {"GENESIS_DEBUG=poison,guard,sync"}},
};

static void test_modes(void)
{
    children_run(modes, COUNT_OF(modes));
}

static void run(void)
{
    RUN(test_modes);
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, run, modes, COUNT_OF(modes));
}
