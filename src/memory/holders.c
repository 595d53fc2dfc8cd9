/*
 * holders.c: who holds memory: living blocks by the site that allocated them.
 */
#include "memory/history.h"

#include "base/host.h"
#include "base/log.h"
#include "base/text.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    HOLDERS_SHOWN = 5,
    HOLDERS_NAMED = 64, /* stacks that are looked at for these */
    LEAKS_SHOWN = 20,
    FRAMES_SHOWN = 8, /* each asks another program */
    LINE_BYTES = 512,
};

struct holder {
    uint32_t site;
    uint64_t nbytes, count;
};

struct holders {
    struct holder *items; /* owned */
    size_t count, capacity;
};

static bool info_add(const gn_memory_info *info, void *context)
{
    struct holders *holders = context;
    if (info->state != GN_MEMORY_LIVE)
        return true;
    if (holders->count == holders->capacity) {
        size_t capacity = 2 * holders->capacity + 256;
        struct holder *items = gni_host_realloc(holders->items, capacity * sizeof *items);
        if (items == NULL)
            return false;
        holders->items = items;
        holders->capacity = capacity;
    }
    holders->items[holders->count++] = (struct holder){info->site, info->requested, 1};
    return true;
}

static int compare_sites(const void *one, const void *two)
{
    uint32_t a = ((const struct holder *)one)->site, b = ((const struct holder *)two)->site;
    return (a > b) - (a < b);
}

static int compare_bytes(const void *one, const void *two)
{
    uint64_t a = ((const struct holder *)one)->nbytes, b = ((const struct holder *)two)->nbytes;
    return (a < b) - (a > b);
}

/* Those of one site become one; the largest come first. */
static void holders_gather(struct holders *holders)
{
    if (holders->count == 0)
        return;
    size_t kept = 0;
    qsort(holders->items, holders->count, sizeof *holders->items, compare_sites);
    for (size_t i = 1; i < holders->count; i++) {
        struct holder *last = &holders->items[kept];
        if (holders->items[i].site == last->site) {
            last->nbytes += holders->items[i].nbytes;
            last->count += holders->items[i].count;
        } else {
            holders->items[++kept] = holders->items[i];
        }
    }
    holders->count = kept + 1;
    qsort(holders->items, holders->count, sizeof *holders->items, compare_bytes);
}

static struct holders holders_find(gn_memory_manager *manager)
{
    struct holders holders = {0};
    if (gn_memory_visit(manager, info_add, &holders) != GN_OK)
        holders.count = 0;
    holders_gather(&holders);
    return holders;
}

/* A place that holds memory, in words. */
struct named {
    struct holder holder;
    char place[LINE_BYTES];
};

/* Whether the words for a site say who allocates: a library that is a part of the program cannot tell its
 * own frames of C, and all places would be the same. */
static bool site_is_telling(uint32_t site)
{
    gn_history_frame first = {NULL, -1};
    size_t count = 0;
    if (gn_history_get_stack(site, &first, 1, &count) != GN_OK || count == 0)
        return false;
    return first.offset >= 0 || gni_history_is_own((const void *)(uintptr_t)site_is_telling);
}

/* The first of the holders by place: stacks that differ further out become one. Returns how many. */
static size_t holders_name(const struct holders *holders, struct named *named, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < holders->count && i < most; i++) {
        struct named *next = &named[count];
        next->holder = holders->items[i];
        (void)gn_history_describe(next->holder.site, next->place, sizeof next->place);
        size_t same = site_is_telling(next->holder.site) ? 0 : count;
        while (same < count && strcmp(named[same].place, next->place) != 0)
            same++;
        if (same == count) {
            count++;
        } else {
            named[same].holder.nbytes += next->holder.nbytes;
            named[same].holder.count += next->holder.count;
        }
    }
    return count;
}

static int compare_named(const void *one, const void *two)
{
    return compare_bytes(&((const struct named *)one)->holder,
                         &((const struct named *)two)->holder);
}

void gni_manager_holders(gn_memory_manager *manager, char *buffer, size_t size)
{
    buffer[0] = '\0';
    if (!gni_history_is_on()) {
        (void)snprintf(
            buffer, size,
            " GENESIS_DEBUG=trace, or enable_memory_debugging() in Python, tells who holds "
            "the rest.");
        return;
    }
    struct holders holders = holders_find(manager);
    struct named *named = gni_host_alloc(HOLDERS_NAMED * sizeof *named);
    size_t count = named != NULL ? holders_name(&holders, named, HOLDERS_NAMED) : 0, used = 0;
    if (count > 0)
        qsort(named, count, sizeof *named, compare_named);
    for (size_t i = 0; i < count && i < HOLDERS_SHOWN && used + 1 < size; i++) {
        const struct holder *holder = &named[i].holder;
        int length =
            snprintf(buffer + used, size - used, "%s%s in %llu block%s: %s",
                     i == 0 ? " Largest holders: " : "; ", gni_size_text(holder->nbytes).text,
                     (unsigned long long)holder->count, holder->count == 1 ? "" : "s",
                     named[i].place[0] != '\0' ? named[i].place : "not traced");
        used += length > 0 ? (size_t)length : 0;
    }
    gni_host_free(named);
    gni_host_free(holders.items);
}

/* ---- at exit -------------------------------------------------------------------------------- */

/* Where an address of code is, in a debugger's words. */
struct code_place {
    char function[LINE_BYTES], line[LINE_BYTES]; /* "file:line" */
};

/* Reads a line without its end; false for one that says "not known". */
static bool word_read(FILE *file, char *word)
{
    if (fgets(word, LINE_BYTES, file) == NULL)
        return false;
    word[strcspn(word, " \n")] = '\0';
    return word[0] != '?' && word[0] != '\0';
}

/* Starts a program, by its name and arguments and without a shell; what it prints can be read. -1: it cannot run. */
static int program_start(const char *const *arguments, pid_t *process)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    bool has_actions = posix_spawn_file_actions_init(&actions) == 0;
    bool is_started =
        has_actions && posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawnp(process, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments,
                     environ) == 0;
    if (has_actions)
        (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (!is_started)
        (void)close(ends[0]);
    return is_started ? ends[0] : -1;
}

/* Asks the system's addr2line; false where there is none or it does not know. */
static bool place_find(const char *file, uint64_t address, struct code_place *place)
{
    char own[64], number[32];
    pid_t process;
    (void)snprintf(own, sizeof own, "/proc/%ld/exe", (long)getpid());
    (void)snprintf(number, sizeof number, "0x%llx", (unsigned long long)address);
    if (strcmp(file, "/proc/self/exe") == 0) /* which would be addr2line itself */
        file = own;
    const char *arguments[] = {"addr2line", "-s", "-f", "-e", file, number, NULL};
    int from = program_start(arguments, &process);
    FILE *output = from >= 0 ? fdopen(from, "r") : NULL;
    bool has_function = output != NULL && word_read(output, place->function);
    bool has_line = output != NULL && word_read(output, place->line);
    if (output != NULL)
        (void)fclose(output);
    else if (from >= 0)
        (void)close(from);
    if (from >= 0)
        (void)waitpid(process, NULL, 0);
    return has_function && has_line;
}

static void stack_print(uint32_t site)
{
    gn_history_frame frames[GN_HISTORY_FRAMES_MOST];
    size_t count = 0;
    if (gn_history_get_stack(site, frames, GN_HISTORY_FRAMES_MOST, &count) != GN_OK)
        return;
    for (size_t i = 0; i < count && i < FRAMES_SHOWN; i++) {
        const char *file, *function;
        struct code_place place;
        uint64_t address;
        if (frames[i].offset >= 0 || gni_history_is_own(frames[i].code) ||
            !gn_history_find_code(frames[i].code, &file, &function, &address))
            continue;
        if (place_find(file, address, &place))
            gni_log(GNI_LOG_WARNING, "leak:     %s (%s)", place.function, place.line);
        else
            gni_log(GNI_LOG_WARNING, "leak:     %s (%s+0x%llx)", function != NULL ? function : "?",
                    file, (unsigned long long)address);
    }
}

size_t gni_manager_report_leaks(gn_memory_manager *manager)
{
    struct holders holders = holders_find(manager);
    size_t count = 0;
    for (size_t i = 0; i < holders.count; i++) {
        const struct holder *holder = &holders.items[i];
        count += holder->count;
        if (i >= LEAKS_SHOWN)
            continue;
        gni_log(GNI_LOG_WARNING, "leak: %s: %s in %llu block%s, allocated at%s",
                gni_device_label(manager->device).text, gni_size_text(holder->nbytes).text,
                (unsigned long long)holder->count, gni_plural(holder->count),
                holder->site == 0 ? " a place not known" : "");
        stack_print(holder->site);
    }
    gni_host_free(holders.items);
    return count;
}
