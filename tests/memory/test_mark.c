/*
 * test_mark.c: the marks for compute-sanitizer, told to a stand-in for it.
 *
 * A process decides once whether it has a tool, so each case has a process of its own; the last one runs
 * in the program itself, where threads are allowed.
 */
#include "check.h"
#include "child.h"

#include "base/host.h"
#include "fake/fake_nvtx.h"
#include "genesis/device.h"
#include "genesis/memory.h"
#include "memory/mark.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#define FAKE_DRIVER GENESIS_FAKE_DIRECTORY "/libgenesis_fake.so"
#define FAKE_TOOL GENESIS_FAKE_DIRECTORY "/libgenesis_fake_nvtx.so"

enum {
    SEGMENT = 1 << 21,
    THREADS = 8,
    STEPS = 500,
};

struct tool {
#define TOOL_FIELD(result, name, arguments) result(*name) arguments;
    FAKE_NVTX_CONTROLS(TOOL_FIELD)
};

static gn_device *device;
static char *const base = (char *)(uintptr_t)0x7f0000000000; /* the tool does not look there */

static void tool_set(const char *path, const char *knob)
{
    CHECK(setenv("GENESIS_CUDA_DRIVER", FAKE_DRIVER, 1) == 0);
    CHECK((path != NULL ? setenv("NVTX_INJECTION64_PATH", path, 1)
                        : unsetenv("NVTX_INJECTION64_PATH")) == 0);
    CHECK(setenv("FAKE_NVTX", knob, 1) == 0);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
}

/* The tool that the library has loaded; zeros where it has loaded none. */
static struct tool tool_find(void)
{
    struct tool tool = {.calls = NULL};
    void *library = dlopen(FAKE_TOOL, RTLD_LAZY | RTLD_NOLOAD), *symbol;
    if (library == NULL)
        return tool;
#define TOOL_FIND(result, name, arguments)       \
    symbol = dlsym(library, "fake_nvtx_" #name); \
    memcpy(&tool.name, &symbol, sizeof symbol);
    FAKE_NVTX_CONTROLS(TOOL_FIND)
    return tool;
}

static void everything_call(void)
{
    gni_mark_block_add(base, 1000);
    gni_mark_segment_add(device, base, SEGMENT);
    gni_mark_block_add(base, 1000);
    gni_mark_block_remove(base);
    gni_mark_segment_remove(base);
}

/* ---- no tool -------------------------------------------------------------------------------- */

static void body_no_variable(void *context)
{
    tool_set(context, "");
    CHECK(!gni_mark_is_on());
    everything_call();
    CHECK(tool_find().calls == NULL); /* not even loaded */
}

/* A relative path, which would be taken from the current directory: one warning. */
static void body_relative(void *context)
{
    CHECK(chdir(GENESIS_FAKE_DIRECTORY) == 0);
    tool_set(context, "");
    CHECK(!gni_mark_is_on());
    everything_call();
    CHECK(tool_find().calls == NULL);
}

/* The variable names something, which turns out to be of no use at the first segment. */
static void body_useless(void *context)
{
    const char **pair = context;
    tool_set(pair[0], pair[1]);
    CHECK(gni_mark_is_on());
    gni_mark_block_add(base, 1000);
    CHECK(gni_mark_is_on()); /* a block starts nothing */
    everything_call();
    CHECK(!gni_mark_is_on());
    everything_call();
    struct tool tool = tool_find();
    CHECK(tool.calls == NULL || (tool.calls()[0] == '\0' && tool.mistakes() == 0));
}

static void test_no_tool(void)
{
    static struct child_result result;
    static char empty[] = "";
    child_run(body_no_variable, NULL, &result);
    CHECK(child_is_ok(&result) && result.length == 0);
    child_run(body_no_variable, empty, &result);
    CHECK(child_is_ok(&result) && result.length == 0);
    static char here[] = "./libgenesis_fake_nvtx.so", up[] = "fake/../libgenesis_fake_nvtx.so";
    char *relative[] = {here, up};
    for (size_t i = 0; i < 2; i++) {
        child_run(body_relative, relative[i], &result);
        CHECK(child_is_ok(&result) && strstr(result.text, "must be an absolute path") != NULL &&
              strstr(result.text, relative[i]) != NULL);
    }
    const char *cases[][2] = {
        {"/nonexistent.so", ""}, {FAKE_DRIVER, ""}, {FAKE_TOOL, "refuse"}, {FAKE_TOOL, "partial"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        child_run(body_useless, cases[i], &result);
        CHECK(child_is_ok(&result) && result.length == 0);
    }
}

/* ---- a tool --------------------------------------------------------------------------------- */

static void calls_expect(const struct tool *tool, const char *expected)
{
    CHECK_TEXT(tool->calls(), expected);
    CHECK_U64(tool->mistakes(), 0);
}

static void body_order(void *context)
{
    (void)context;
    tool_set(FAKE_TOOL, "");
    CHECK(gni_mark_is_on());
    CHECK(tool_find().calls == NULL); /* not before there is memory */
    char *other = base + 10 * (size_t)SEGMENT, *between = base + 5 * (size_t)SEGMENT;
    gni_mark_segment_add(device, other, SEGMENT);
    gni_mark_segment_add(device, base, SEGMENT);
    gni_mark_block_add(base, 1000);
    gni_mark_block_add(base + 1024, 1000);
    gni_mark_block_add(other + SEGMENT - 512, 0);
    gni_mark_block_add(between, 1000); /* in no segment: the next four say nothing */
    gni_mark_block_remove(between);
    gni_mark_block_remove(base + SEGMENT);
    gni_mark_segment_remove(base + 512);
    gni_mark_block_remove(base);
    gni_mark_block_add(base, 24);
    gni_mark_segment_remove(base);
    gni_mark_block_remove(base); /* went with its segment */
    gni_mark_segment_add(device, base, 2 * (size_t)SEGMENT);
    gni_mark_segment_remove(other);
    gni_mark_segment_remove(base);
    gn_device *cpu;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    gni_mark_segment_add(cpu, base, SEGMENT);

    char expected[1024];
    snprintf(
        expected, sizeof expected,
        "heap %p 2097152\nheap %p 2097152\nregion %p 1000\nregion %p 1000\nregion %p 1\n"
        "region_end %p\nregion %p 24\nheap_end %p\nheap %p 4194304\nheap_end %p\nheap_end %p\n",
        (void *)other, (void *)base, (void *)base, (void *)(base + 1024),
        (void *)(other + SEGMENT - 512), (void *)base, (void *)base, (void *)base, (void *)base,
        (void *)other, (void *)base);
    struct tool tool = tool_find();
    calls_expect(&tool, expected);
    CHECK_U64(tool.live(), 0);
}

static void body_heap_refused(void *context)
{
    (void)context;
    tool_set(FAKE_TOOL, "heapless");
    everything_call();
    CHECK(gni_mark_is_on()); /* another segment may be taken */
    char expected[64];
    snprintf(expected, sizeof expected, "heap %p 2097152\n", (void *)base);
    struct tool tool = tool_find();
    calls_expect(&tool, expected);
}

/* Without host memory a segment is not marked, and neither are its blocks; the next one is. */
static void body_host_memory(void *context)
{
    (void)context;
    tool_set(FAKE_TOOL, "");
    gni_host_fail_after(1);
    gni_mark_segment_add(device, base, SEGMENT);
    gni_host_fail_after(-1);
    gni_mark_block_add(base, 1000);
    gni_mark_block_remove(base);
    gni_mark_segment_remove(base);
    for (size_t i = 0; i < 100; i++) /* more than there is room for at first, downwards */
        gni_mark_segment_add(device, base + (100 - i) * SEGMENT, SEGMENT);
    for (size_t i = 1; i <= 100; i++)
        gni_mark_block_add(base + i * SEGMENT, i);
    struct tool tool = tool_find();
    CHECK_U64(tool.live(), 100);
    CHECK_U64(tool.mistakes(), 0);
    for (size_t i = 1; i <= 100; i++)
        gni_mark_segment_remove(base + (i * 37 % 101) * SEGMENT);
    CHECK_U64(tool.live(), 0);
    CHECK_U64(tool.mistakes(), 0);
}

/* What a manager hands out is marked while it lives, whatever its size and the way it goes back. */
static void body_manager(void *context)
{
    static const size_t sizes[] = {1, 512, 4096, 100000, 1 << 20, 3 << 20};
    enum {
        COUNT = sizeof sizes / sizeof *sizes
    };
    CHECK(setenv("GENESIS_CUDA_ALLOCATOR", context, 1) == 0);
    tool_set(FAKE_TOOL, "");
    gn_memory_manager *manager;
    void *blocks[COUNT];
    gn_memory_block *handles[COUNT];
    CHECK_OK(gn_memory_manager_get(device, &manager));
    struct tool tool = {.calls = NULL};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            CHECK_OK(gn_memory_alloc(manager, sizes[i], NULL, &blocks[i]));
            CHECK_OK(gn_memory_block_alloc(manager, sizes[i], NULL, &handles[i]));
            tool = tool_find();
            CHECK_U64(tool.live(), 2 * i + 2);
        }
        for (int i = 0; i < COUNT; i++) {
            CHECK_OK(i % 2 == 0 ? gn_memory_free(manager, blocks[i])
                                : gn_memory_free_sized(manager, blocks[i], sizes[i]));
            CHECK_OK(gn_memory_block_free(handles[i]));
            CHECK_U64(tool.live(), 2 * (COUNT - 1 - i));
        }
    }
    CHECK_U64(tool.mistakes(), 0);
}

static void test_manager(void)
{
    static struct child_result result;
    static char pool[] = "pool", mapped[] = "virtual";
    child_run(body_manager, pool, &result);
    CHECK(child_is_ok(&result));
    child_run(body_manager, mapped, &result);
    CHECK(child_is_ok(&result));
}

/* A child that a process with a tool forks says nothing to the tool. */
static void body_fork(void *context)
{
    (void)context;
    CHECK(!gni_mark_is_on());
    everything_call();
}

static void test_tool(void)
{
    static struct child_result result;
    void (*const bodies[])(void *) = {body_order, body_heap_refused, body_host_memory};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        child_run(bodies[i], NULL, &result);
        CHECK(child_is_ok(&result));
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Each thread has a segment of its own, which it marks, cuts up, and gives back. */
static void *thread_work(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    uint64_t seed = number;
    char *own = base + number * SEGMENT;
    bool is_live[16] = {false};
    gni_mark_segment_add(device, own, SEGMENT);
    for (int step = 0; step < STEPS; step++) {
        size_t at = check_random(&seed) % 16;
        if (is_live[at])
            gni_mark_block_remove(own + at * 4096);
        else
            gni_mark_block_add(own + at * 4096, 1 + check_random(&seed) % 4096);
        is_live[at] = !is_live[at];
        if (step % 100 == 99) {
            gni_mark_segment_remove(own);
            gni_mark_segment_add(device, own, SEGMENT);
            memset(is_live, 0, sizeof is_live);
        }
    }
    return NULL;
}

static void test_threads(void)
{
    tool_set(FAKE_TOOL, "");
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_work, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    struct tool tool = tool_find();
    CHECK(tool.calls != NULL && tool.mistakes() == 0);
    CHECK_U64(tool.live(), 0); /* the last step gave all of them back */
    static struct child_result result;
    child_run(body_fork, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK(gni_mark_is_on());
}

int main(void)
{
    RUN(test_no_tool);
    RUN(test_tool);
    RUN(test_manager);
    RUN(test_threads);
    return check_result();
}
