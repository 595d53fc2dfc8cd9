/*
 * test_history.c: events, annotations, stacks and holders.
 *
 *     test_history [cpu | cuda]
 */
#include "pool_suite.h"

#include "genesis/history.h"
#include "memory/history.h"

#include <pthread.h>
#include <stdatomic.h>

struct suite suite;

enum {
    EVENTS = 1 << 16,
};

static gn_history_event events[EVENTS];

static void start(size_t most, unsigned c_frames)
{
    CHECK_OK(gn_history_start(&(gn_history_options){.events_most = most, .c_frames = c_frames}));
}

static size_t read_all(uint64_t *lost)
{
    size_t count = 0;
    CHECK_OK(gn_history_read(events, EVENTS, &count, lost));
    CHECK(count <= EVENTS);
    return count;
}

/* What is live by the events alone, and the reserved and pending bytes. */
struct model {
    uint64_t live, requested, reserved, pending, count;
};

static void model_step(struct model *model, const gn_history_event *event)
{
    switch (event->kind) {
    case GN_HISTORY_ALLOC:
        model->live += event->nbytes;
        model->requested += event->requested;
        model->count++;
        break;
    case GN_HISTORY_FREE_REQUESTED:
        model->pending += event->nbytes; /* fall through */
    case GN_HISTORY_FREE:
        model->live -= event->nbytes;
        model->requested -= event->requested;
        model->count--;
        break;
    case GN_HISTORY_FREE_COMPLETED:
        model->pending -= event->nbytes;
        break;
    case GN_HISTORY_SEGMENT_MAP:
        model->reserved += event->nbytes;
        break;
    case GN_HISTORY_SEGMENT_UNMAP:
        model->reserved -= event->nbytes;
        break;
    default:
        break;
    }
}

/* ---- events --------------------------------------------------------------------------------- */

static void test_off(void)
{
    void *pointer;
    gn_history_stop();
    CHECK(!gn_history_is_on());
    start(16, 0);
    gn_history_stop();
    CHECK_OK(gn_memory_alloc(suite.manager, 1000, NULL, &pointer));
    block_free(pointer);
    CHECK_U64(read_all(NULL), 0);
}

static void test_one_block(void)
{
    static const size_t sizes[] = {0, 1, 5000, 3 * MIB, 20 * MIB};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        void *pointer;
        start(1024, 0);
        CHECK_OK(gn_memory_alloc(suite.manager, sizes[i], NULL, &pointer));
        block_free(pointer);
        uint64_t lost = 1;
        size_t count = read_all(&lost), found = 0;
        CHECK_U64(lost, 0);
        for (size_t k = 0; k < count; k++) {
            if (events[k].kind != GN_HISTORY_ALLOC && events[k].kind != GN_HISTORY_FREE)
                continue;
            CHECK(events[k].kind == (found == 0 ? GN_HISTORY_ALLOC : GN_HISTORY_FREE));
            CHECK(events[k].address == (uintptr_t)pointer);
            CHECK_U64(events[k].requested, sizes[i]);
            CHECK(events[k].nbytes >= sizes[i]);
            CHECK_U64(events[k].site, 0);
            found++;
        }
        CHECK_U64(found, 2);
        gn_history_stop();
    }
}

/* A free that is refused leaves no event. */
static void test_refused(void)
{
    void *pointer;
    start(1024, 0);
    CHECK_OK(gn_memory_alloc(suite.manager, 100, NULL, &pointer));
    block_free(pointer);
    size_t before = read_all(NULL);
    CHECK_STATUS(gn_memory_free(suite.manager, pointer), GN_ERROR_DOUBLE_FREE);
    CHECK_STATUS(gn_memory_free(suite.manager, &before), GN_ERROR_INVALID_POINTER);
    CHECK_U64(read_all(NULL), before);
    gn_history_stop();
}

enum {
    LIVE = 64,
    STEPS = 4000,
};

/* Random work; after each step what the events say is what the statistics say. */
static void test_random(void)
{
    void *blocks[LIVE] = {0};
    uint64_t state = 12345;
    gn_stream *other;
    CHECK_OK(gn_stream_create(suite.device, 0, 0, &other));
    size_t released;
    CHECK_OK(gn_memory_trim(suite.manager, 0, &released));
    start(EVENTS, 0);
    struct model model = {0};
    size_t seen = 0;
    gn_memory_statistics base = statistics_now();
    model.reserved = base.reserved_bytes;
    model.live = base.live_bytes;
    model.requested = base.requested_bytes;
    for (int step = 0; step < STEPS; step++) {
        uint64_t number = check_random(&state);
        void **block = &blocks[number % LIVE];
        if (*block != NULL) {
            if (number >> 32 & 1)
                CHECK_OK(gn_memory_record_stream(suite.manager, *block, other));
            block_free(*block);
            *block = NULL;
        } else {
            size_t nbytes = (size_t)(number >> 40) % (size_t)(number % 7 == 0 ? 9 * MIB : 70000);
            CHECK_OK(
                gn_memory_alloc(suite.manager, nbytes, number >> 33 & 1 ? NULL : other, block));
        }
        if (number % 512 == 0)
            CHECK_OK(gn_memory_trim(suite.manager, 0, &released));
        if (step % 64 != 0 && step + 1 < STEPS)
            continue;
        gn_memory_statistics now = statistics_now();
        size_t count = read_all(NULL);
        for (; seen < count; seen++)
            model_step(&model, &events[seen]);
        CHECK_U64(model.live, now.live_bytes);
        CHECK_U64(model.requested, now.requested_bytes);
        CHECK_U64(model.count + base.live_count, now.live_count);
        CHECK_U64(model.reserved, now.reserved_bytes);
        CHECK_U64(model.pending, now.pending_bytes);
    }
    for (int i = 0; i < LIVE; i++)
        if (blocks[i] != NULL)
            block_free(blocks[i]);
    CHECK_OK(gn_device_synchronize(suite.device));
    gn_stream_release(other);
    gn_history_stop();
}

static void test_batch_and_request(void)
{
    static const size_t sizes[] = {100, 3 * MIB, 0, 7};
    void *pointers[COUNT_OF(sizes)], *asked;
    gn_memory_request *request;
    start(1024, 4);
    CHECK_OK(gn_memory_alloc_batch(suite.manager, COUNT_OF(sizes), sizes, NULL, pointers));
    CHECK_OK(gn_memory_request_start(suite.manager, 5000, NULL, &request));
    CHECK_OK(gn_memory_request_wait(request, &asked));
    gn_memory_request_release(request);
    size_t count = read_all(NULL), found = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind != GN_HISTORY_ALLOC)
            continue;
        bool is_batch = found < COUNT_OF(sizes);
        CHECK(events[i].address == (uintptr_t)(is_batch ? pointers[found] : asked));
        CHECK_U64(events[i].requested, is_batch ? sizes[found] : 5000);
        CHECK(events[i].site != 0); /* of the caller, also for the worker's */
        found++;
    }
    CHECK_U64(found, COUNT_OF(sizes) + 1);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        block_free(pointers[i]);
    block_free(asked);
    gn_history_stop();
}

/* A full ring forgets the oldest, and says how many. */
static void test_lost(void)
{
    void *pointer;
    start(16, 0);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(gn_memory_alloc(suite.manager, 64, NULL, &pointer));
        block_free(pointer);
    }
    uint64_t lost = 0;
    size_t count = read_all(&lost);
    CHECK_U64(count, 16);
    CHECK(lost >= 200 - 16); /* and memory that was obtained */
    for (size_t i = 1; i < count; i++) {
        CHECK(events[i].time_ns >= events[i - 1].time_ns);
        CHECK_U64(events[i].number, events[i - 1].number + 1);
    }
    gn_history_stop();
}

static void test_limits(void)
{
    size_t count;
    CHECK_STATUS(gn_history_start(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_history_start(&(gn_history_options){.c_frames = 65}), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(
        gn_history_start(&(gn_history_options){.c_frames = 33, .python_frames = UINT32_MAX - 1}),
        GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_history_start(&(gn_history_options){.events_most = SIZE_MAX}),
                 GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_history_read(NULL, 0, NULL, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_history_get_stack(1u << 31, NULL, 0, &count), GN_ERROR_INVALID_VALUE);
    CHECK(gn_history_get_name(1u << 31) == NULL);
    CHECK_TEXT(gn_history_get_name(0), "");
}

/* Without memory for a ring events are lost, and nothing else happens. */
static void test_host_memory_fails(void)
{
    for (long nth = 1; nth < 8; nth++) {
        void *pointer;
        start(1u << 15, 8); /* another capacity than before: the ring is made anew */
        gni_host_fail_after(nth);
        gn_status status = gn_memory_alloc(suite.manager, 300, NULL, &pointer);
        gni_host_fail_after(-1);
        if (status == GN_OK)
            block_free(pointer);
        uint64_t lost = 0;
        (void)read_all(&lost);
        gn_history_stop();
        start(1u << 14, 8);
    }
    gn_history_stop();
    POOL_CHECK();
}

/* ---- annotations ---------------------------------------------------------------------------- */

static void test_annotations(void)
{
    void *pointer;
    CHECK_STATUS(gn_history_end(), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_history_begin(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_history_mark(NULL), GN_ERROR_INVALID_VALUE);
    start(1024, 0);
    CHECK_OK(gn_history_begin("train"));
    CHECK_OK(gn_history_begin("forward"));
    CHECK_OK(gn_memory_alloc(suite.manager, 64, NULL, &pointer));
    CHECK_OK(gn_history_end());
    CHECK_OK(gn_history_mark("here"));
    block_free(pointer);
    CHECK_OK(gn_history_end());
    size_t count = read_all(NULL), place = 0;
    static const struct {
        gn_history_kind kind;
        const char *name;
    } expected[] = {{GN_HISTORY_BEGIN, "train"},
                    {GN_HISTORY_BEGIN, "train/forward"},
                    {GN_HISTORY_ALLOC, "train/forward"},
                    {GN_HISTORY_END, "train/forward"},
                    {GN_HISTORY_MARK, "here"},
                    {GN_HISTORY_FREE, "train"},
                    {GN_HISTORY_END, "train"}};
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind == GN_HISTORY_SEGMENT_MAP)
            continue;
        CHECK(place < COUNT_OF(expected) && events[i].kind == expected[place].kind);
        CHECK_TEXT(gn_history_get_name(events[i].annotation), expected[place].name);
        place++;
    }
    CHECK_U64(place, COUNT_OF(expected));
    gn_history_stop();
    for (int i = 0; i < 64; i++)
        CHECK_OK(gn_history_begin("x"));
    CHECK_STATUS(gn_history_begin("x"), GN_ERROR_OVERFLOW);
    for (int i = 0; i < 64; i++)
        CHECK_OK(gn_history_end());
    char name[2000];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_STATUS(gn_history_begin(name), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_history_mark(name), GN_ERROR_INVALID_VALUE);
}

/* ---- stacks --------------------------------------------------------------------------------- */

/* Two places, so that there are two sites. */
static __attribute__((noinline)) void *allocate_here(size_t nbytes)
{
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(suite.manager, nbytes, NULL, &pointer));
    return pointer;
}

static __attribute__((noinline)) void *allocate_there(size_t nbytes)
{
    void *pointer = allocate_here(nbytes);
    CHECK(pointer != NULL);
    return pointer;
}

struct sought {
    const void *address;
    gn_memory_info info;
};

static bool block_seek(const gn_memory_info *info, void *context)
{
    struct sought *sought = context;
    if (info->address == sought->address)
        sought->info = *info;
    return true;
}

static gn_memory_info info_of(const void *pointer)
{
    struct sought sought = {.address = pointer};
    CHECK_OK(gn_memory_visit(suite.manager, block_seek, &sought));
    CHECK(sought.info.address == pointer);
    return sought.info;
}

static void test_sites(void)
{
    void *before = allocate_here(64);
    void *same[3], *others[2];
    for (int i = 0; i < 3; i++)
        same[i] = allocate_here(64);
    for (int i = 0; i < 3; i++)
        block_free(same[i]); /* from now on they come from the cache, all in the same way */
    start(0, 12);            /* no events */
    uint32_t sites[3];
    volatile int turns = 3; /* one call, three times */
    for (int i = 0; i < turns; i++) {
        same[i] = allocate_here(64);
        sites[i] = info_of(same[i]).site;
    }
    block_free(same[2]);
    block_free(same[1]);
    for (int i = 0; i < 2; i++)
        others[i] = allocate_there(64);
    CHECK_U64(read_all(NULL), 0);
    gn_history_stop();
    CHECK_U64(info_of(before).site, 0);
    CHECK(info_of(before).age_ns == UINT64_MAX);
    uint32_t site = info_of(same[0]).site;
    CHECK(site != 0 && site == sites[1] && site == sites[2]);
    CHECK(info_of(others[0]).site != site && info_of(others[1]).site != site);
    CHECK(info_of(same[0]).age_ns < UINT64_C(60000000000));
    gn_history_frame frames[64];
    size_t count = 0;
    CHECK_OK(gn_history_get_stack(site, frames, COUNT_OF(frames), &count));
    CHECK(count >= 2 && count <= 12);
    char text[256];
    CHECK(strlen(gn_history_describe(site, text, sizeof text)) > 0);
    CHECK_TEXT(gn_history_describe(0, text, sizeof text), "");
    /* Handed out again while nothing is recorded: it does not belong to that site any more. */
    block_free(same[0]);
    void *again = allocate_here(64);
    CHECK(again == same[0]);
    CHECK_U64(info_of(again).site, 0);
    block_free(again);
    block_free(before);
    block_free(others[0]);
    block_free(others[1]);
}

static void test_holders(void)
{
    start(0, 12);
    void *small = allocate_here(1000), *large[3];
    for (int i = 0; i < 3; i++)
        large[i] = allocate_there(10 * MIB);
    void *none;
    CHECK_STATUS(gn_memory_alloc(suite.manager, (size_t)1 << 46, NULL, &none),
                 GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("Largest holders: ");
    CHECK_DETAIL("1000 bytes in 1 block: ");
    gn_history_stop();
    block_free(small);
    for (int i = 0; i < 3; i++)
        block_free(large[i]);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum {
    THREADS = 4,
    TURNS = 500,
};

static void *thread_run(void *unused)
{
    (void)unused;
    CHECK_OK(gn_history_begin("worker"));
    for (int i = 0; i < TURNS; i++)
        block_free(allocate_here(256));
    CHECK_OK(gn_history_end());
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    start(EVENTS, 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_run, NULL) == 0);
    for (int i = 0; i < 20; i++) { /* read while they write */
        size_t count = read_all(NULL);
        for (size_t k = 1; k < count; k++)
            CHECK(events[k].time_ns >= events[k - 1].time_ns);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    uint64_t lost = 1;
    size_t count = read_all(&lost), allocs = 0, frees = 0;
    for (size_t i = 0; i < count; i++) {
        allocs += events[i].kind == GN_HISTORY_ALLOC;
        frees += events[i].kind == GN_HISTORY_FREE;
    }
    CHECK_U64(lost, 0);
    CHECK_U64(allocs, THREADS * TURNS);
    CHECK_U64(frees, THREADS * TURNS);
    gn_history_stop();
    start(16, 0); /* their rings go */
    CHECK_U64(read_all(NULL), 0);
    gn_history_stop();
}

/* A child has a history of its own, whatever other threads were at. */
static void forked(void *unused)
{
    (void)unused;
    CHECK(!gn_history_is_on());
    CHECK_U64(read_all(NULL), 0);
    start(1024, 8);
    CHECK_OK(gn_history_mark("child"));
    CHECK_U64(read_all(NULL), 1);
}

static void test_fork(void)
{
    start(1024, 0);
    CHECK_OK(gn_history_mark("parent"));
    struct child_result result;
    child_run(forked, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK_U64(read_all(NULL), 1);
    gn_history_stop();
}

/* Depths that change while another thread captures stay within the stack's room. */
static void *thread_capture(void *is_over)
{
    while (!atomic_load((atomic_bool *)is_over))
        block_free(allocate_here(64));
    return NULL;
}

static void test_depths_change(void)
{
    atomic_bool is_over = false;
    pthread_t capturing;
    start(64, 64);
    CHECK(pthread_create(&capturing, NULL, thread_capture, &is_over) == 0);
    for (int i = 0; i < 2000; i++) {
        unsigned c_frames = i % 2 ? 64 : 0;
        CHECK_OK(gn_history_start(&(gn_history_options){
            .events_most = 64, .c_frames = c_frames, .python_frames = 64 - c_frames}));
    }
    atomic_store(&is_over, true);
    CHECK(pthread_join(capturing, NULL) == 0);
    gn_history_stop();
}

/* The site that a thread has set counts only while stacks are recorded. */
static void test_a_site_that_is_set(void)
{
    start(0, 8);
    uint32_t site = gn_history_capture(), before = gn_history_set_site(site);
    CHECK(site != 0);
    CHECK_U64(before, 0);
    CHECK_U64(gn_history_capture(), site);
    start(16, 0); /* events alone */
    CHECK_U64(gn_history_capture(), 0);
    start(16, 8);
    CHECK_U64(gn_history_capture(), site);
    gn_history_stop();
    CHECK_U64(gn_history_capture(), 0);
    CHECK_U64(gn_history_set_site(before), site);
}

/* The site goes with the block: who gets its descriptor next, on another stream, has none. */
static void test_site_is_forgotten(void)
{
    gn_stream *other = stream_make(0);
    pool_empty();
    start(0, 8);
    void *first = allocate_here(3 * MIB);
    CHECK(info_of(first).site != 0);
    block_free(first);
    gn_history_stop();
    pool_empty();
    void *second = block_make_on(3 * MIB, other);
    CHECK_U64(info_of(second).site, 0);
    CHECK(info_of(second).age_ns == UINT64_MAX);
    block_free(second);
    gn_stream_release(other);
    pool_empty();
}

/* A free that gives memory back comes before that by the events, too. */
static void test_order_of_a_free(void)
{
    gn_memory_config config = config_now(), tight = config;
    tight.cache_bytes = 0;
    CHECK_OK(gn_memory_configure(suite.manager, &tight));
    start(1024, 0);
    block_free(allocate_here(30 * MIB));
    size_t count = read_all(NULL), freed = 0;
    bool is_back = false;
    for (size_t i = 0; i < count; i++) {
        CHECK(i == 0 || events[i].time_ns >= events[i - 1].time_ns);
        freed = events[i].kind == GN_HISTORY_FREE ? i : freed;
        is_back |= events[i].kind == GN_HISTORY_SEGMENT_UNMAP;
        CHECK(events[i].kind != GN_HISTORY_SEGMENT_UNMAP || freed > 0);
    }
    CHECK(freed > 0 && (is_back || !suite.is_cpu)); /* a GPU may be at it still */
    gn_history_stop();
    CHECK_OK(gn_memory_configure(suite.manager, &config));
}

/* ---- stacks of an interpreter, and hosts without memory -------------------------------------- */

enum {
    SITES = 150000, /* so many that some of them have the same hash */
    FRAMES = 2,
};

static uintptr_t frame_number; /* of the stack that the thread is said to be in; 0: none */
static int kept_count, held_count;

static size_t stand_in_capture(gn_history_frame *frames, size_t most, int *token)
{
    size_t count = frame_number == 0 ? 0 : most < FRAMES ? most : FRAMES;
    for (size_t i = 0; i < count; i++)
        frames[i] = (gn_history_frame){(const void *)(frame_number << 4), (int32_t)(3 * i)};
    *token = 7;
    held_count++;
    return count;
}

static void stand_in_release(int token)
{
    CHECK_U64(token, 7);
    held_count--;
}

static void stand_in_keep(const gn_history_frame *frames, size_t count)
{
    CHECK(count == FRAMES && frames[1].offset == 3);
    kept_count++;
}

/* Of every second number only the outer frame can be named, of every third none. */
static bool stand_in_describe(const gn_history_frame *frame, char *buffer, size_t size)
{
    uintptr_t number = (uintptr_t)frame->code >> 4;
    if (number % 3 == 0 || (number % 2 == 0 && frame->offset == 0))
        return false;
    (void)snprintf(buffer, size, "frame %d of %zu", (int)frame->offset, (size_t)number);
    return true;
}

static const gn_history_interpreter stand_in = {stand_in_capture, stand_in_release, stand_in_keep,
                                                stand_in_describe};

static uint32_t sites[SITES];

/* Each stack has one site, which gives it back; where the host has no memory for a new one, the site is not known, and
 * the next time it is. */
static void test_many_sites(void)
{
    gn_history_frame frames[4];
    size_t count = 0;
    int failures = 0;
    char text[64];
    gn_history_set_interpreter(&stand_in);
    CHECK_OK(gn_history_start(&(gn_history_options){.python_frames = 3}));
    CHECK_U64(gn_history_capture(), 0); /* the thread is in none */
    for (uint32_t i = 0; i < SITES; i++) {
        frame_number = i + 1;
        gni_host_fail_after(1);
        sites[i] = gn_history_capture();
        gni_host_fail_after(-1);
        failures += sites[i] == 0;
        if (sites[i] == 0)
            sites[i] = gn_history_capture();
        CHECK(sites[i] != 0 && (i == 0 || sites[i] > sites[i - 1]));
    }
    CHECK(failures > 20); /* the table, the sites and the frames have grown each time */
    CHECK_U64(kept_count, SITES);
    CHECK_U64(held_count, 0);
    size_t wrong = 0;
    for (uint32_t i = 0; i < SITES; i++) {
        frame_number = i + 1;
        wrong += gn_history_capture() != sites[i];
        wrong += gn_history_get_stack(sites[i], frames, 4, &count) != GN_OK || count != FRAMES ||
                 frames[0].code != (const void *)(frame_number << 4) || frames[1].offset != 3;
    }
    CHECK_U64(wrong, 0);
    CHECK_U64(kept_count, SITES);
    CHECK_TEXT(gn_history_describe(sites[0], text, sizeof text), "frame 0 of 1");
    CHECK_TEXT(gn_history_describe(sites[1], text, sizeof text), "frame 3 of 2");
    CHECK_TEXT(gn_history_describe(sites[2], text, sizeof text), "");
    CHECK_OK(gn_history_get_stack(sites[0], NULL, 0, &count));
    CHECK_U64(count, FRAMES);
    CHECK_OK(gn_history_get_stack(sites[0], frames, 1, &count));
    CHECK_U64(count, FRAMES);
    CHECK_STATUS(gn_history_get_stack(UINT32_MAX, frames, 4, &count), GN_ERROR_INVALID_VALUE);
    CHECK_TEXT(gn_history_describe(UINT32_MAX, text, sizeof text), "");
    gn_history_set_interpreter(NULL); /* gone: nothing of it can be named */
    CHECK_TEXT(gn_history_describe(sites[0], text, sizeof text), "");
    gn_history_stop();
    frame_number = 0;
}

/* Holders by such sites: those of one place become one, the largest first, and as many as there is room for. */
static void test_holders_of_sites(void)
{
    char text[2048];
    void *blocks[12];
    gn_history_set_interpreter(&stand_in);
    CHECK_OK(gn_history_start(&(gn_history_options){.python_frames = 3}));
    for (uint32_t i = 0; i < 12; i++) {
        frame_number = i + 1;
        blocks[i] = block_make((i + 1) * 1000);
    }
    gni_manager_holders(suite.manager, text, sizeof text);
    CHECK(strstr(text, "Largest holders: ") != NULL && strstr(text, "frame 0 of 11") != NULL);
    CHECK(strstr(text, "not traced") != NULL);     /* of every third number nothing is known */
    for (size_t size = 1; size < 200; size += 7) { /* cut, and nothing behind it is touched */
        memset(text, 'x', sizeof text);
        gni_manager_holders(suite.manager, text, size);
        CHECK(strlen(text) < size && text[size] == 'x');
    }
    for (long nth = 1; nth < 3; nth++) { /* no list, or no names: then there is nothing to say */
        gni_host_fail_after(nth);
        gni_manager_holders(suite.manager, text, sizeof text);
        gni_host_fail_after(-1);
        CHECK_TEXT(text, "");
    }
    for (uint32_t i = 0; i < 12; i++)
        block_free(blocks[i]);
    gn_history_set_interpreter(NULL);
    gn_history_stop();
    frame_number = 0;
    pool_empty();
}

/* The nth allocation fails: a name is not known then, an annotation not begun; the second time it is. */
static void test_names_without_memory(void)
{
    char name[32];
    int failures = 0;
    start(1024, 0);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "name %d", i);
        gni_host_fail_after(1 + i % 3);
        gn_status marked = gn_history_mark(name), begun = gn_history_begin(name);
        gni_host_fail_after(-1);
        CHECK(marked == GN_OK || marked == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(begun == GN_OK || begun == GN_ERROR_OUT_OF_HOST_MEMORY);
        failures += (marked != GN_OK) + (begun != GN_OK);
        if (begun == GN_OK)
            CHECK_OK(gn_history_end());
        CHECK_STATUS(gn_history_end(), GN_ERROR_INVALID_VALUE);
        CHECK_OK(gn_history_mark(name));
    }
    CHECK(failures >= 100);
    gni_host_fail_after(1);
    CHECK_STATUS(gn_history_mark("a new name"), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    CHECK_DETAIL("for 11 bytes");
    size_t count = read_all(NULL);
    CHECK(count > 300);
    CHECK_TEXT(gn_history_get_name(events[count - 1].annotation), "name 299");
    gn_history_stop();
}

static void *ring_thread(void *context)
{
    int kind = *(const int *)context, marks = kind == 3 ? 64 : 3;
    if (kind < 2)
        gni_host_fail_after(kind + 1); /* no ring, or no room for its events */
    for (int i = 0; i < marks; i++)
        CHECK_OK(gn_history_mark("known"));
    gni_host_fail_after(kind == 2 ? 1 : -1); /* when the ring is cut at the end */
    return NULL;
}

/* A thread without memory for its events loses them, and they are counted; what it has written stays readable. */
static void test_rings_without_memory(void)
{
    CHECK_OK(gn_history_mark("known"));
    for (int kind = 0; kind < 4; kind++) {
        pthread_t thread;
        uint64_t lost = 0;
        start(64, 0);
        CHECK(pthread_create(&thread, NULL, ring_thread, &kind) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        gni_host_fail_after(-1);
        size_t count = read_all(&lost);
        CHECK_U64(count + lost, kind == 3 ? 64 : 3);
        CHECK((lost > 0) == (kind < 2));
        for (size_t i = 0; i < count; i++)
            CHECK_TEXT(gn_history_get_name(events[i].annotation), "known");
        CHECK_OK(gn_history_mark("known")); /* in this thread: two rings are put together */
        for (long nth = 1; nth < (count > 0 ? 4 : 3); nth++) {
            size_t untouched = 4711;
            gni_host_fail_after(nth);
            CHECK_STATUS(gn_history_read(events, EVENTS, &untouched, NULL),
                         GN_ERROR_OUT_OF_HOST_MEMORY);
            gni_host_fail_after(-1);
            CHECK_U64(untouched, 4711);
        }
        CHECK_U64(read_all(NULL), count + 1);
        gn_history_stop();
    }
}

/* Only sites: pending blocks that become free, and requests that fail, leave no event. */
static void test_no_events(void)
{
    gn_stream *side = stream_make(GN_STREAM_NON_BLOCKING);
    void *pointer = NULL;
    size_t count = 99;
    start(0, 4);
    void *block = block_make(5 * MIB);
    CHECK_OK(gn_memory_record_stream(suite.manager, block, side));
    block_fill(block, 1, MIB, side);
    block_free(block);
    CHECK_OK(gn_stream_synchronize(side));
    CHECK_OK(gn_memory_collect(suite.manager));
    CHECK_U64(statistics_now().pending_bytes, 0);
    CHECK_STATUS(gn_memory_alloc(suite.manager, (size_t)1 << 45, NULL, &pointer),
                 GN_ERROR_OUT_OF_MEMORY);
    CHECK_OK(gn_history_mark("nobody listens"));
    CHECK_OK(gn_history_read(NULL, 0, &count, NULL));
    CHECK_U64(count, 0);
    gn_history_stop();
    gn_history_options many = {.python_frames = 40, .c_frames = 40};
    CHECK_STATUS(gn_history_start(&many), GN_ERROR_INVALID_VALUE);
    CHECK(!gn_history_is_on());
    gn_stream_release(side);
    pool_empty();
}

/* A request that fails is an event, with what was asked for, what was free, and who asked. */
static void test_an_event_of_no_memory(void)
{
    void *pointer = NULL;
    start(64, 4);
    CHECK_STATUS(gn_memory_alloc(suite.manager, (size_t)1 << 45, NULL, &pointer),
                 GN_ERROR_OUT_OF_MEMORY);
    size_t count = read_all(NULL), found = 0;
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == GN_HISTORY_OUT_OF_MEMORY) {
            found++;
            CHECK_U64(events[i].requested, (size_t)1 << 45);
            CHECK(events[i].nbytes > 0 && events[i].nbytes < (size_t)1 << 45);
            CHECK(events[i].site != 0 && events[i].address == 0);
            CHECK_U64(events[i].manager, gn_memory_manager_get_number(suite.manager));
        }
    CHECK_U64(found, 1);
    gn_history_stop();
}

/* With the policy direct: a batch whose sizes have no sum, and hosts without memory. */
static void test_direct_batches(void)
{
    static const size_t huge[] = {SIZE_MAX / 2, SIZE_MAX / 2, 9}, small[] = {100, 200, 300};
    static const size_t many[] = {SIZE_MAX, SIZE_MAX, 1}, once[] = {1, 1, 1};
    gn_memory_config config = config_now(), before = config;
    void *pointers[3] = {NULL};
    gni_host_fail_after(1); /* the first time there is an engine to be made */
    config.strategy = GN_MEMORY_DIRECT;
    gn_status status = gn_memory_configure(suite.manager, &config);
    gni_host_fail_after(-1);
    if (suite.manager->direct == NULL)
        CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_OK(gn_memory_configure(suite.manager, &config));
    start(64, 4);
    status = gn_memory_alloc_batch(suite.manager, 3, huge, NULL, pointers);
    CHECK(status != GN_OK && pointers[0] == NULL);
    gni_host_fail_after(1);
    CHECK_STATUS(gn_memory_alloc_batch(suite.manager, 3, small, NULL, pointers),
                 GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    CHECK(pointers[0] == NULL && statistics_now().live_count == 0);
    CHECK_OK(gn_memory_alloc_batch(suite.manager, 3, small, NULL, pointers));
    CHECK_U64(statistics_now().live_count, 3);
    for (int i = 0; i < 3; i++)
        block_free(pointers[i]);
    CHECK_OK(gn_memory_warm_up(suite.manager, 3, small, once)); /* there is nothing to fill */
    CHECK_U64(statistics_now().reserved_bytes, 0);
    CHECK_STATUS(gn_memory_warm_up(suite.manager, 3, huge, once), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_memory_warm_up(suite.manager, 3, many, once), GN_ERROR_OVERFLOW);
    gn_history_stop();
    CHECK_OK(gn_memory_configure(suite.manager, &before));
    pool_empty();
}

static void run(void)
{
    RUN(test_direct_batches);
    RUN(test_an_event_of_no_memory);
    RUN(test_many_sites);
    RUN(test_holders_of_sites);
    RUN(test_names_without_memory);
    RUN(test_rings_without_memory);
    RUN(test_no_events);
    RUN(test_off);
    RUN(test_one_block);
    RUN(test_refused);
    RUN(test_random);
    RUN(test_batch_and_request);
    RUN(test_lost);
    RUN(test_limits);
    RUN(test_host_memory_fails);
    RUN(test_annotations);
    RUN(test_sites);
    RUN(test_holders);
    RUN(test_depths_change);
    RUN(test_a_site_that_is_set);
    RUN(test_site_is_forgotten);
    RUN(test_order_of_a_free);
    RUN(test_threads);
    RUN(test_fork);
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, run, NULL, 0);
}
