/*
 * test_memory.c: one suite over a device and its memory manager, whatever the policy.
 *
 *     test_memory [cpu | cuda [direct | pool | virtual]]
 *
 * skipped (77) where there is no such device. Without a policy, the device's own is tested. The manager
 * is the process's: on a GPU GENESIS_CUDA_ALLOCATOR chooses the policy, on the CPU gn_memory_configure().
 *
 * What is the same for all policies is checked for all; what differs is asked of `suite.policy`, see
 * "what the policies differ in" in memory_suite.h. The suite is three files, and one program.
 *
 * The same program serves as its own child: what happens once in a process, and what is printed at
 * its end, is tried with other arguments in a fresh one (see child_modes), since a process that has
 * started CUDA cannot be forked.
 */
#include "memory_suite.h"

static const struct policy policies[] = {
    {"direct", 256, false},
    {"pool", 512, true},
    {"virtual", 512, true},
};

struct suite suite;

/* ---- the manager ---------------------------------------------------------------------------- */

static void test_manager(void)
{
    gn_memory_manager *again = NULL;
    CHECK_OK(gn_memory_manager_get(suite.device, &again));
    CHECK(again == suite.manager);
    CHECK(gn_memory_manager_get_device(suite.manager) == suite.device);
    CHECK_TEXT(gn_memory_manager_get_policy(suite.manager), suite.policy->name);
    if (suite.is_cpu)
        CHECK_STATUS(gni_manager_create(suite.device, false, "virtual", &again),
                     GN_ERROR_UNSUPPORTED);
    CHECK(again == suite.manager);
}

static void policy_check(void *block, size_t nbytes, const char *policy)
{
    size_t found = 0;
    CHECK_TEXT(gn_memory_manager_get_policy(suite.manager), policy);
    CHECK_OK(gn_memory_get_size(suite.manager, block, &found));
    CHECK_U64(found, nbytes);
}

/* The policy is changed under living blocks: each goes back to where it came from. */
static void test_policy_changes(void)
{
    gn_memory_config before, other;
    CHECK_OK(gn_memory_get_config(suite.manager, &before));
    other = before;
    other.strategy = suite.policy->is_pooled ? GN_MEMORY_DIRECT : GN_MEMORY_BEST_FIT;
    void *ours = block_make(1000);
    CHECK_OK(gn_memory_configure(suite.manager, &other));
    const char *name = gn_memory_manager_get_policy(suite.manager);
    CHECK((strcmp(name, "direct") == 0) == suite.policy->is_pooled);
    void *theirs = block_make(2000), *both[] = {ours, theirs};
    policy_check(ours, 1000, name);
    policy_check(theirs, 2000, name);
    CHECK_U64(statistics_now().live_count, 2);
    CHECK_U64(statistics_now().requested_bytes, 3000);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(gn_memory_free_sized(suite.manager, both[i], 999), GN_ERROR_WRONG_SIZE);
        CHECK_STATUS(gn_memory_free(suite.manager, (char *)both[i] + 1), GN_ERROR_INVALID_POINTER);
        CHECK_DETAIL("1 bytes into the block");
    }
    CHECK_OK(gn_memory_free(suite.manager, ours));
    CHECK_STATUS(gn_memory_free(suite.manager, ours), GN_ERROR_DOUBLE_FREE);
    CHECK_OK(gn_memory_configure(suite.manager, &before));
    policy_check(theirs, 2000, suite.policy->name);
    CHECK_OK(gn_memory_free_sized(suite.manager, theirs, 2000));
    CHECK_STATUS(gn_memory_free(suite.manager, theirs), GN_ERROR_DOUBLE_FREE);
    CHECK_STATUS(gn_memory_free(suite.manager, NULL), GN_ERROR_INVALID_POINTER);
    memory_give_back();
}

static void test_bad_arguments(void)
{
    gn_memory_manager *manager = NULL;
    gn_memory_statistics statistics;
    void *pointer = NULL;
    size_t nbytes = 0;
    CHECK_STATUS(gn_memory_manager_get(NULL, &manager), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_manager_get(suite.device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_alloc(NULL, 1, NULL, &pointer), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_alloc(suite.manager, 1, NULL, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_free(NULL, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_free_sized(NULL, &nbytes, 1), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_size(NULL, &nbytes, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_size(suite.manager, &nbytes, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_statistics(NULL, &statistics), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_statistics(suite.manager, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_reset_peaks(NULL), GN_ERROR_INVALID_VALUE);
    CHECK(manager == NULL && pointer == NULL);
}

/* ---- shutdown and leaks --------------------------------------------------------------------- */

static void test_shutdown(void)
{
    size_t leaked = 4711;
    void *blocks[3];
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0); /* every test before this one has cleaned up */
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3; i++)
            blocks[i] = block_make(1000 * i);
        CHECK_OK(gn_shutdown(&leaked));
        CHECK_U64(leaked, 3);
        gn_memory_statistics now = statistics_now();
        CHECK(now.live_count == 0 && now.live_bytes == 0 && now.reserved_bytes == 0);
        for (size_t i = 0; i < 3; i++)
            second_free_check(blocks[i]);
        CHECK(books_settle(suite.manager, suite.books + books_cache_count(suite.other)));
    }
    gn_stream *stream = NULL;
    gn_event *event = NULL;
    CHECK_OK(gn_stream_create(suite.device, 0, 0, &stream));
    CHECK_OK(gn_event_create(suite.device, 0, &event));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 2);
    gn_event_destroy(event); /* they are still whole */
    gn_stream_release(stream);
    CHECK_OK(gn_shutdown(NULL));
    void *block = block_make(10000); /* and the library starts again */
    cookie_write(block, 10000, 5);
    CHECK(cookie_is(block, 10000, 5));
    block_free(block);
    books_check();
}

/* What a fresh process does, by its third argument. Kept in static memory: lost on purpose. */
static gn_stream *lost_stream;
static void *lost_block;

static void child_leak(void)
{
    for (size_t i = 0; i < 25; i++)
        lost_block = block_make(1000 + i);
    block_free(block_make(77));
}

static void child_shutdown(void)
{
    size_t leaked = 0;
    child_leak();
    CHECK_OK(gn_stream_create(suite.device, 0, 0, &lost_stream));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 26);
}

static void child_clean(void)
{
    block_free(block_make(1000));
}

static void child_poison(void)
{
    unsigned char bytes[5000];
    void *block = block_make(sizeof bytes);
    bytes_move(bytes, block, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK(bytes[i] == 0xD0);
    block_free(block);
    block_free(block_make(0));
}

static const struct child_mode {
    const char *name;
    void (*body)(void);
    const char *debug; /* its GENESIS_DEBUG */
} child_modes[] = {
    {"leak", child_leak, ""},
    {"shutdown", child_shutdown, ""},
    {"clean", child_clean, ""},
    {"poison", child_poison, "poison"},
};

static void child_start(void *context)
{
    const struct child_mode *mode = context;
    (void)setenv("GENESIS_LOG", "warning", 1);
    (void)setenv("GENESIS_DEBUG", mode->debug, 1);
    (void)execl("/proc/self/exe", "test_memory", suite.type_name, suite.policy->name, mode->name,
                (char *)NULL);
    check_fail(__FILE__, __LINE__, "the program can start itself");
}

static void child_mode_run(const char *name, struct child_result *result)
{
    for (size_t i = 0; i < sizeof child_modes / sizeof *child_modes; i++) {
        if (strcmp(child_modes[i].name, name) == 0)
            child_run(child_start, (void *)(uintptr_t)&child_modes[i], result);
    }
    CHECK(child_is_ok(result));
}

/* Twenty blocks by name and the others as a number, in debug builds; nothing in others. */
static void leaks_check(const struct child_result *result, int objects)
{
#ifdef GNI_DEBUG
    const int lines = 21 + objects;
    CHECK(child_count(result, "and 5 more blocks") == 1);
    CHECK(child_count(result, "(allocation ") == 20);
    CHECK(child_count(result, "modules that were not destroyed: 1") == objects);
#else
    const int lines = 0;
    (void)objects;
#endif
    CHECK(child_count(result, "genesis: warning: leak: ") == lines);
    CHECK(child_count(result, "genesis: ") == lines);
}

static void test_leak_reports(void)
{
    static struct child_result result;
    child_mode_run("leak", &result);
    leaks_check(&result, 0);
    child_mode_run("shutdown", &result);
    leaks_check(&result, 1); /* said once, and not again at the end */
    child_mode_run("clean", &result);
    CHECK_TEXT(result.text, "");
}

static void test_poison(void)
{
    static struct child_result result;
    child_mode_run("poison", &result);
    CHECK_TEXT(result.text, "");
}

/* ---- the programs --------------------------------------------------------------------------- */

/* Another manager of the same device, made by hand; making it survives failing host memory. */
static void other_manager_make(void)
{
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK && nth < 10; nth++) {
        size_t live = gni_host_live_count();
        gni_host_fail_after(nth);
        status = gni_manager_create(suite.device, false, suite.policy->name, &suite.other);
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(status == GN_OK || (suite.other == NULL && gni_host_live_count() == live));
        CHECK(status != GN_OK || nth > 1);
    }
}

static void other_blocks_make(void)
{
    for (int i = 0; i < THEIRS; i++)
        CHECK_OK(gn_memory_alloc(suite.other, 100, NULL, &suite.theirs[i]));
}

/* What lives for ever once it was used is made, and counted after a shutdown. */
static void books_open(void)
{
    gn_memory_manager *const both[] = {suite.manager, suite.other};
    for (int i = 0; i < 2; i++) {
        void *block = NULL;
        CHECK_OK(gn_memory_alloc(both[i], 1, NULL, &block));
        CHECK_OK(gn_memory_free(both[i], block));
        CHECK_OK(gni_manager_clear(both[i]));
    }
    CHECK_OK(gn_shutdown(NULL));
    suite.books = books_count(suite.manager) - books_cache_count(suite.other);
}

static void test_second_frees_were_known(void)
{
    CHECK(suite.second_frees > 100);
    CHECK(suite.second_frees_known > suite.second_frees / 10 * 9);
}

static void suite_run(void)
{
    other_manager_make();
    RUN(test_manager);
    RUN(test_policy_changes); /* which makes the other engine, for ever */
    books_open();
    other_blocks_make();
    RUN(test_bad_arguments);
    test_memory_blocks();
    test_memory_load();
    RUN(test_shutdown);
    RUN(test_leak_reports);
    RUN(test_poison);
    RUN(test_second_frees_were_known);
}

static const struct policy *policy_find(const char *name)
{
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    }
    return NULL;
}

/* A GPU's manager takes its policy from the environment, which is read once; `virtual` is its own. */
static void policy_choose(void)
{
    if (suite.is_cpu)
        return;
    if (strcmp(suite.policy->name, "virtual") == 0)
        (void)unsetenv("GENESIS_CUDA_ALLOCATOR");
    else
        (void)setenv("GENESIS_CUDA_ALLOCATOR", suite.policy->name, 1);
}

static bool suite_init(void)
{
    int count = 0;
    gn_device_type type = suite.is_cpu ? GN_DEVICE_CPU : GN_DEVICE_CUDA;
    gn_memory_config config;
    policy_choose();
    if (gn_device_count(type, &count) != GN_OK || count == 0)
        return false;
    CHECK_OK(gn_device_get(type, 0, &suite.device));
    CHECK_OK(gn_memory_manager_get(suite.device, &suite.manager));
    if (suite.is_cpu && !suite.policy->is_pooled) {
        CHECK_OK(gn_memory_get_config(suite.manager, &config));
        config.strategy = GN_MEMORY_DIRECT;
        CHECK_OK(gn_memory_configure(suite.manager, &config));
    }
    return suite.manager != NULL;
}

static int child_main(const char *name)
{
    for (size_t i = 0; i < sizeof child_modes / sizeof *child_modes; i++) {
        if (strcmp(child_modes[i].name, name) == 0)
            child_modes[i].body();
    }
    return check_count > 0 && check_failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    suite.type_name = argc > 1 ? argv[1] : "cpu";
    suite.is_cpu = strcmp(suite.type_name, "cpu") == 0;
    suite.policy = policy_find(argc > 2 ? argv[2] : suite.is_cpu ? "pool" : "virtual");
    if (suite.policy == NULL) {
        fprintf(stderr, "test_memory [cpu | cuda [direct | pool | virtual]]\n");
        return 2;
    }
    bool is_child = argc > 3;
    if (!is_child)
        (void)setenv("GENESIS_LOG", "error", 1); /* debug builds would report planned leaks */
    if (!suite_init()) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    if (is_child)
        return child_main(argv[3]);
    suite_run();
    return check_result();
}
