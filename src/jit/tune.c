/*
 * tune.c: see tune.h.
 *
 *     buckets   choices of the process, by the hash of their class
 *     on disk   a gn_tuning, with the class, the device, the versions and all candidates in its key
 *
 * tune_mutex guards the buckets, and nothing is called with it. Measuring is guarded by is_measuring alone.
 */
#include "jit/tune.h"

#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "device/cuda/driver.h"
#include "jit/disk_cache.h"
#include "jit/profile.h"

#include <stdio.h>
#include <string.h>

/* Changes with what is hashed and with gn_tuning. */
#define RECORD_FORMAT "genesis tuning 1"
#define RECORD_LABEL "tuning"

enum mode {
    MODE_OFF,
    MODE_ON,
    MODE_MAX,
};

enum {
    BUCKET_COUNT = 256,
    CANDIDATES_ON = 5, /* the first ones: each may have to be compiled */
    ROUNDS_ON = 5,
    ROUNDS_MAX = 20,
    REPEATS_MOST = 16,      /* launches between two events */
    GAIN_LEAST_PERCENT = 2, /* TU4 */
    HOPELESS_PERCENT = 150, /* of the best: not measured again */
};

/* TU4, TU5; by the mode. */
static const uint64_t class_ns_most[] = {0, 50000000, 1000000000};
static const uint64_t process_ns_most[] = {0, 2000000000, 60000000000};
static const uint64_t bytes_least[] = {UINT64_MAX, 4 << 20, 64 << 10};

/* What is sampled at once lasts about this long: events are exact to half a microsecond. */
static const double sample_ms = 0.1;

/* What a class is known by in the process; compared as bytes. */
struct class_key {
    const struct gni_tune_family *family;
    gn_device *device;
    const char *type;
    int extents[GNI_TUNE_EXTENTS];
};
_Static_assert(sizeof(struct class_key) == 3 * sizeof(void *) + GNI_TUNE_EXTENTS * sizeof(int),
               "a key has no holes");

struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash;
    struct class_key key;
    struct gni_choice choice;
    bool is_open;    /* the default, until it can be measured */
    bool has_record; /* measured, now or by the process that stored it */
    struct gni_disk_key disk_key;
    gn_tuning record;
};

static struct gni_mutex tune_mutex = GNI_MUTEX_INIT;
static struct gni_once tune_once = GNI_ONCE_INIT;
static struct entry *buckets[BUCKET_COUNT];
static atomic_bool is_measuring;
static _Atomic(uint64_t) spent_ns, measure_count;
static _Atomic(gni_tune_clock *) test_clock;
static atomic_int test_mode = -1, test_candidate = -1, test_count;

/* ---- classes -------------------------------------------------------------------------------- */

int gni_tune_log(int64_t size)
{
    if (size <= 1)
        return 0;
    int whole = 63 - __builtin_clzll((uint64_t)size);
    return 2 * whole + (int)((uint64_t)size >> (whole - 1) & 1);
}

/* The least size of a class; 0 and 1 are one. */
static long long log_least(int log)
{
    return log < 2 ? 0 : (2ll | (log & 1)) << (log / 2) >> 1;
}

static long long log_most(int log)
{
    return log_least(log < 2 ? 2 : log + 1) - 1;
}

static const struct gni_fork_handlers tune_fork = {.mutex = &tune_mutex};

static struct gni_close_hook close_hook = {.run = gni_tune_clear};

static void tune_start(void)
{
    gni_fork_register(GNI_FORK_TUNE, &tune_fork);
    gni_devices_add_close_hook(&close_hook);
}

static void buckets_lock(void)
{
    gni_once_run(&tune_once, tune_start);
    gni_mutex_lock(&tune_mutex);
}

/* Under the mutex. */
static struct entry *entry_find(const struct class_key *key, uint64_t hash)
{
    struct entry *entry = buckets[hash % BUCKET_COUNT];
    while (entry != NULL && (entry->hash != hash || memcmp(&entry->key, key, sizeof *key) != 0))
        entry = entry->next;
    return entry;
}

/* The choice of a class, and whether that is decided; false: nobody has met it. */
static bool choice_find(const struct class_key *key, uint64_t hash, struct gni_choice *choice,
                        bool *is_open)
{
    buckets_lock();
    const struct entry *entry = entry_find(key, hash);
    if (entry != NULL) {
        *choice = entry->choice;
        *is_open = entry->is_open;
    }
    gni_mutex_unlock(&tune_mutex);
    return entry != NULL;
}

/* Takes an entry, unless its class has been decided meanwhile; gives what it is decided for. */
static void choice_add(struct entry *made, struct gni_choice *choice)
{
    buckets_lock();
    struct entry *before = entry_find(&made->key, made->hash), *left = NULL;
    if (before == NULL) {
        made->next = buckets[made->hash % BUCKET_COUNT];
        buckets[made->hash % BUCKET_COUNT] = made;
        before = made;
    } else {
        left = made;
        if (before->is_open) {
            made->next = before->next;
            *before = *made;
        }
    }
    *choice = before->choice;
    gni_mutex_unlock(&tune_mutex);
    gni_host_free(left);
}

void gni_tune_clear(void)
{
    struct entry *all = NULL;
    buckets_lock();
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        while (buckets[i] != NULL) {
            struct entry *entry = buckets[i];
            buckets[i] = entry->next;
            entry->next = all;
            all = entry;
        }
    gni_mutex_unlock(&tune_mutex);
    while (all != NULL) {
        struct entry *next = all->next;
        gni_host_free(all);
        all = next;
    }
    atomic_store(&spent_ns, 0);
}

/* ---- records -------------------------------------------------------------------------------- */

static void problem_print(const struct gni_tune *tune, gn_tuning *record)
{
    const struct gni_tune_family *family = tune->family;
    size_t size = sizeof record->problem;
    size_t used = (size_t)snprintf(record->problem, size, "%s", tune->type);
    for (int i = 0; i < GNI_TUNE_EXTENTS && family->extents[i] != NULL && used < size; i++) {
        int extent = tune->extents[i];
        char *at = record->problem + used;
        if ((family->plain >> i & 1) != 0)
            used += (size_t)snprintf(at, size - used, " %s=%d", family->extents[i], extent);
        else
            used += (size_t)snprintf(at, size - used, " %s=%lld..%lld", family->extents[i],
                                     log_least(extent), log_most(extent));
    }
}

static void values_print(const struct gni_tune_family *family, const struct gni_choice *choice,
                         char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < GNI_TUNE_VALUES && family->values[i] != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s=%d", i > 0 ? " " : "",
                                 family->values[i], choice->values[i]);
}

static void record_make(const struct gni_tune *tune, const struct gni_choice *choices, int count,
                        const gn_device_properties *properties, gn_tuning *record)
{
    const struct gni_cuda_driver *driver;
    int version = gni_cuda_driver_open(&driver) == GN_OK ? driver->version : 0;
    *record = (gn_tuning){.count = count};
    (void)snprintf(record->kernel, sizeof record->kernel, "%s", tune->family->name);
    problem_print(tune, record);
    (void)snprintf(record->device, sizeof record->device,
                   "%.100s, sm_%d%d, driver %d.%d, genesis %s", properties->name, properties->major,
                   properties->minor, version / 1000, version % 1000 / 10, gn_version());
    for (int i = 0; i < count; i++) {
        values_print(tune->family, &choices[i], record->candidates[i].values,
                     sizeof record->candidates[i].values);
        record->candidates[i].milliseconds = -1;
    }
}

/* The texts say all that a choice depends on. */
static void record_key(const gn_tuning *record, struct gni_disk_key *key)
{
    struct gni_sha256 hash;
    gni_sha256_init(&hash);
    gni_sha256_add_text(&hash, RECORD_FORMAT);
    gni_sha256_add_text(&hash, record->kernel);
    gni_sha256_add_text(&hash, record->problem);
    gni_sha256_add_text(&hash, record->device);
    for (int i = 0; i < record->count; i++)
        gni_sha256_add_text(&hash, record->candidates[i].values);
    gni_sha256_finish(&hash, key->digest);
}

static bool text_ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* The checksum is right, so this is for entries that somebody made by hand. */
static bool record_is_right(const gn_tuning *record)
{
    bool is_right = record->count > 0 && record->count <= GN_TUNING_CANDIDATES_MOST &&
                    record->chosen >= 0 && record->chosen < record->count &&
                    text_ends(record->kernel, sizeof record->kernel) &&
                    text_ends(record->problem, sizeof record->problem) &&
                    text_ends(record->device, sizeof record->device);
    for (int i = 0; is_right && i < record->count; i++)
        is_right = text_ends(record->candidates[i].values, sizeof record->candidates[i].values);
    return is_right;
}

static bool record_read(const struct gni_kernel_image *image, gn_tuning *record)
{
    if (image->nbytes != sizeof *record || strcmp(image->symbol, RECORD_LABEL) != 0)
        return false;
    memcpy(record, image->bytes, sizeof *record);
    return record_is_right(record);
}

static bool record_find(const struct gni_disk_key *key, gn_tuning *record)
{
    struct gni_kernel_image image;
    gn_tuning found;
    if (!gni_disk_cache_find(key, &image))
        return false;
    bool is_found = record_read(&image, &found) && found.count == record->count;
    gni_kernel_image_deinit(&image);
    if (is_found)
        *record = found;
    else
        gni_disk_cache_remove(key);
    return is_found;
}

/* ---- measuring ------------------------------------------------------------------------------ */

struct stopwatch {
    gn_event *start, *end;
};

/* What has been found out of each candidate. */
struct trial {
    bool is_out;    /* failed, or hopeless */
    int repeats;    /* 0: it has not been run */
    double best_ms; /* below 0: none yet */
};

static gn_status stopwatch_open(gn_device *device, struct stopwatch *stopwatch)
{
    *stopwatch = (struct stopwatch){.start = NULL};
    GN_TRY(gn_event_create(device, GN_EVENT_TIMING, &stopwatch->start));
    return gn_event_create(device, GN_EVENT_TIMING, &stopwatch->end);
}

static void stopwatch_close(struct stopwatch *stopwatch)
{
    gn_event_destroy(stopwatch->start);
    gn_event_destroy(stopwatch->end);
}

/* Milliseconds of one run among several. */
static gn_status sample(const struct gni_tune *tune, const struct gni_choice *choice, int repeats,
                        const struct stopwatch *stopwatch, double *ms)
{
    const struct gni_device_ops *ops = tune->stream->device->ops;
    gni_tune_clock *clock = atomic_load(&test_clock);
    float elapsed;
    GN_TRY(ops->event_record(stopwatch->start, tune->stream));
    for (int i = 0; i < repeats; i++)
        GN_TRY(tune->run(tune->context, choice));
    GN_TRY(ops->event_record(stopwatch->end, tune->stream));
    GN_TRY(ops->event_synchronize(stopwatch->end));
    GN_TRY(ops->event_elapsed(stopwatch->start, stopwatch->end, &elapsed));
    *ms = clock != NULL ? clock(tune, choice) : (double)elapsed / repeats;
    return GN_OK;
}

/* The first runs: the kernel is made, and how long it takes roughly. */
static void trial_begin(const struct gni_tune *tune, const struct gni_choice *choice,
                        const struct stopwatch *stopwatch, struct trial *trial)
{
    double ms;
    trial->is_out = sample(tune, choice, 1, stopwatch, &ms) != GN_OK ||
                    sample(tune, choice, 1, stopwatch, &ms) != GN_OK;
    if (trial->is_out)
        return;
    double repeats = ms > 0 ? sample_ms / ms : REPEATS_MOST;
    trial->repeats = repeats < 1 ? 1 : repeats > REPEATS_MOST ? REPEATS_MOST : (int)repeats;
    trial->best_ms = ms;
}

static double best_of(const struct trial *trials, int count)
{
    double best = -1;
    for (int i = 0; i < count; i++)
        if (!trials[i].is_out && trials[i].best_ms >= 0 && (best < 0 || trials[i].best_ms < best))
            best = trials[i].best_ms;
    return best;
}

/* In turns, so that what disturbs the GPU meanwhile disturbs all. The first round forgets what trial_begin() saw: two
 * single runs, of which the first one warmed up. */
static void trials_run(const struct gni_tune *tune, const struct gni_choice *choices,
                       struct trial *trials, int count, const struct stopwatch *stopwatch,
                       enum mode mode)
{
    uint64_t end_ns = gni_time_ns() + class_ns_most[mode];
    int rounds = mode == MODE_MAX ? ROUNDS_MAX : ROUNDS_ON;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            double ms, best = best_of(trials, count);
            struct trial *trial = &trials[i];
            if (trial->is_out || trial->repeats == 0 ||
                (round > 0 && trial->best_ms > best * HOPELESS_PERCENT / 100))
                continue;
            if (gni_time_ns() > end_ns)
                return;
            if (sample(tune, &choices[i], trial->repeats, stopwatch, &ms) != GN_OK)
                trial->is_out = true;
            else if (round == 0 || ms < trial->best_ms)
                trial->best_ms = ms;
        }
}

/* TU4: the default needs a reason to be left. */
static int trials_choose(const struct trial *trials, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++) {
        if (trials[i].is_out || trials[i].best_ms < 0)
            continue;
        double least = trials[best].best_ms;
        if (best == 0 && !trials[0].is_out)
            least = least * (100 - GAIN_LEAST_PERCENT) / 100;
        if (trials[best].is_out || trials[i].best_ms < least)
            best = i;
    }
    return best;
}

/* False: nothing is known about any candidate. */
static bool problem_measure(const struct gni_tune *tune, const struct gni_choice *choices,
                            enum mode mode, gn_tuning *record)
{
    struct trial trials[GN_TUNING_CANDIDATES_MOST] = {{.repeats = 0}};
    struct stopwatch stopwatch;
    int count = record->count;
    uint64_t begin_ns = gni_time_ns(), left_ns = process_ns_most[mode] - atomic_load(&spent_ns);
    for (int i = 0; i < count; i++)
        trials[i].best_ms = -1;
    gn_status status = stopwatch_open(tune->stream->device, &stopwatch);
    for (int i = 0; status == GN_OK && i < count; i++)
        if (i == 0 || gni_time_ns() - begin_ns < left_ns)
            trial_begin(tune, &choices[i], &stopwatch, &trials[i]);
    if (status == GN_OK)
        trials_run(tune, choices, trials, count, &stopwatch, mode);
    stopwatch_close(&stopwatch);
    atomic_fetch_add(&spent_ns, gni_time_ns() - begin_ns);
    atomic_fetch_add(&measure_count, 1);
    record->chosen = trials_choose(trials, count);
    for (int i = 0; i < count; i++)
        record->candidates[i].milliseconds = trials[i].is_out ? -1 : trials[i].best_ms;
    return best_of(trials, count) >= 0;
}

/* ---- deciding ------------------------------------------------------------------------------- */

static enum mode mode_get(void)
{
    int given = atomic_load_explicit(&test_mode, memory_order_relaxed);
    return given >= 0 ? (enum mode)given : (enum mode)gni_option_choice(GNI_OPTION_AUTOTUNE);
}

bool gni_tune_is_max(void)
{
    return mode_get() == MODE_MAX;
}

/* TU1. */
static int candidates_list(const struct gni_tune *tune, enum mode mode, struct gni_choice *choices)
{
    int count = 1 + tune->list(tune->context, choices + 1), kept = 1;
    gni_assert(count <= GN_TUNING_CANDIDATES_MOST);
    choices[0] = tune->standard;
    for (int i = 1; i < count; i++)
        if (mode == MODE_MAX || !choices[i].is_reordering)
            choices[kept++] = choices[i];
    return kept;
}

/* TU2. A device that has no clock is of no use for it: with `max` it may show what would be done. */
static bool can_measure(const struct gni_tune *tune, enum mode mode)
{
    gn_device *device = tune->stream->device;
    gn_device_properties properties;
    bool is_capturing = true;
    return atomic_load(&spent_ns) < process_ns_most[mode] && !atomic_load(&is_measuring) &&
           !atomic_load_explicit(&gni_profile_is_wanted, memory_order_relaxed) &&
           (gni_option_set(GNI_OPTION_DEBUG) & GNI_DEBUG_SYNC) == 0 &&
           device->ops->stream_is_capturing(tune->stream, &is_capturing) == GN_OK &&
           !is_capturing && device->ops->properties(device, &properties) == GN_OK &&
           (properties.clock_rate_khz > 0 || mode == MODE_MAX || atomic_load(&test_clock) != NULL);
}

/* Measures a class and stores what is found; another process may have been faster: then its choice holds. */
static bool class_measure(const struct gni_tune *tune, const struct gni_choice *choices,
                          enum mode mode, struct entry *made)
{
    gn_tuning other = made->record;
    if (atomic_exchange(&is_measuring, true))
        return false;
    bool is_measured = problem_measure(tune, choices, mode, &made->record);
    atomic_store(&is_measuring, false);
    if (!is_measured)
        return false;
    if (record_find(&made->disk_key, &other))
        made->record = other;
    else
        gni_disk_cache_store(&made->disk_key, RECORD_LABEL, &made->record, sizeof made->record);
    gni_log(GNI_LOG_INFO, "tuned: %s, %s: %s", made->record.kernel, made->record.problem,
            made->record.candidates[made->record.chosen].values);
    return true;
}

static bool is_ready(const struct gni_tune *tune, enum mode mode, const struct gni_choice *choice)
{
    return mode != MODE_ON || tune->is_ready == NULL || tune->is_ready(tune->context, choice);
}

/* Asks all, so that those that are not ready will be. */
static bool are_ready(const struct gni_tune *tune, enum mode mode, const struct gni_choice *choices,
                      int count)
{
    bool are_all = true;
    for (int i = 0; i < count; i++)
        are_all &= is_ready(tune, mode, &choices[i]);
    return are_all;
}

/* The choice of a class that is not decided. */
static void class_decide(const struct gni_tune *tune, enum mode mode, const struct class_key *key,
                         uint64_t hash, struct gni_choice *choice)
{
    struct gni_choice choices[GN_TUNING_CANDIDATES_MOST];
    gn_device_properties properties;
    gn_device *device = tune->stream->device;
    struct entry *made = gni_host_alloc(sizeof *made);
    int count = candidates_list(tune, mode, choices);
    if (mode == MODE_ON && count > CANDIDATES_ON)
        count = CANDIDATES_ON;
    *choice = choices[0];
    if (made == NULL || device->ops->properties(device, &properties) != GN_OK) {
        gni_host_free(made);
        return;
    }
    *made = (struct entry){.hash = hash, .key = *key};
    record_make(tune, choices, count, &properties, &made->record);
    record_key(&made->record, &made->disk_key);
    if (count > 1)
        made->has_record = record_find(&made->disk_key, &made->record) ||
                           (can_measure(tune, mode) && are_ready(tune, mode, choices, count) &&
                            class_measure(tune, choices, mode, made));
    made->choice = choices[made->has_record ? made->record.chosen : 0];
    made->is_open = !made->has_record && count > 1 && mode == MODE_ON;
    choice_add(made, choice);
}

static gn_status forced_run(const struct gni_tune *tune, int candidate)
{
    struct gni_choice choices[GN_TUNING_CANDIDATES_MOST];
    int count = candidates_list(tune, mode_get(), choices);
    atomic_store(&test_count, count);
    return tune->run(tune->context, &choices[candidate < count ? candidate : count - 1]);
}

gn_status gni_tune_run(const struct gni_tune *tune)
{
    enum mode mode = mode_get();
    struct gni_choice choice;
    int forced = atomic_load_explicit(&test_candidate, memory_order_relaxed);
    if (forced >= 0)
        return forced_run(tune, forced);
    if (tune->nbytes < bytes_least[mode])
        return tune->run(tune->context, &tune->standard);
    struct class_key key = {
        .family = tune->family, .device = tune->stream->device, .type = tune->type};
    memcpy(key.extents, tune->extents, sizeof key.extents);
    uint64_t hash = gni_hash_bytes(&key, sizeof key, 0);
    bool is_open;
    if (!choice_find(&key, hash, &choice, &is_open) || (is_open && can_measure(tune, mode)))
        class_decide(tune, mode, &key, hash, &choice);
    return tune->run(tune->context, is_ready(tune, mode, &choice) ? &choice : &tune->standard);
}

/* ---- looking at it -------------------------------------------------------------------------- */

struct listing {
    gn_tuning *entries;
    size_t capacity, count;
};

static void listing_add(struct listing *listing, const gn_tuning *record)
{
    if (listing->count < listing->capacity)
        listing->entries[listing->count] = *record;
    listing->count++;
}

static bool is_known(const struct gni_disk_key *key)
{
    bool is_found = false;
    buckets_lock();
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        for (const struct entry *entry = buckets[i]; entry != NULL; entry = entry->next)
            is_found |= entry->has_record && memcmp(&entry->disk_key, key, sizeof *key) == 0;
    gni_mutex_unlock(&tune_mutex);
    return is_found;
}

/* What the disk has, but for what the process has itself. */
static void stored_add(void *context, const struct gni_disk_key *key,
                       const struct gni_kernel_image *image)
{
    gn_tuning record;
    if (record_read(image, &record) && !is_known(key))
        listing_add(context, &record);
}

gn_status gn_tuning_list(gn_tuning *entries, size_t capacity, size_t *count)
{
    GN_CHECK_ARGUMENT(count != NULL && (entries != NULL || capacity == 0),
                      "count must not be NULL, nor entries if there is room for some");
    struct listing listing = {.entries = entries, .capacity = capacity};
    buckets_lock();
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        for (const struct entry *entry = buckets[i]; entry != NULL; entry = entry->next)
            if (entry->has_record)
                listing_add(&listing, &entry->record);
    gni_mutex_unlock(&tune_mutex);
    gni_disk_cache_visit(RECORD_LABEL, stored_add, &listing);
    *count = listing.count;
    return GN_OK;
}

void gni_tune_set_clock(gni_tune_clock *clock)
{
    atomic_store(&test_clock, clock);
}

void gni_tune_set_mode(int mode)
{
    atomic_store(&test_mode, mode);
}

void gni_tune_force(int candidate)
{
    atomic_store(&test_candidate, candidate);
}

int gni_tune_forced_count(void)
{
    return atomic_load(&test_count);
}

uint64_t gni_tune_measure_count(void)
{
    return atomic_load(&measure_count);
}
