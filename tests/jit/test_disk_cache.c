/*
 * test_disk_cache.c: compiled kernels on disk: what is damaged, foreign, linked, full, or fought over.
 *
 * The directory is read from the environment once in a process, so each case is a child with one of its own.
 */
#include "child.h"
#include "system_faults.h"

#include "base/host.h"
#include "device/cuda/library.h"
#include "jit/compiler.h"
#include "jit/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    HEADER_BYTES = 88,
    PAYLOAD_BYTES = 40,
};

static char root[] = "/tmp/genesis-test-XXXXXX";
static char directory[128]; /* of the case that runs */
static bool is_root;

/* ---- helpers -------------------------------------------------------------------------------- */

static struct gni_disk_key key_of(unsigned number)
{
    struct gni_disk_key key;
    struct gni_sha256 hash;
    gni_sha256_init(&hash);
    gni_sha256_add(&hash, &number, sizeof number);
    gni_sha256_finish(&hash, key.digest);
    return key;
}

static void path_of(unsigned number, char path[256])
{
    char name[GNI_SHA256_TEXT_BYTES];
    gni_sha256_text(key_of(number).digest, name);
    (void)snprintf(path, 256, "%s/%s.gk", directory, name);
}

/* The bytes and the label of an entry follow from its number. */
static void entry_store(unsigned number, size_t nbytes)
{
    struct gni_disk_key key = key_of(number);
    char label[32];
    unsigned char *bytes = malloc(nbytes);
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] = (unsigned char)(number * 7 + i);
    (void)snprintf(label, sizeof label, "kernel_%u", number);
    gni_disk_cache_store(&key, label, bytes, nbytes);
    free(bytes);
}

/* Whether the entry is there; if it is, it must be right. */
static bool entry_find(unsigned number)
{
    struct gni_disk_key key = key_of(number);
    struct gni_kernel_image image = {.nbytes = 4711};
    if (!gni_disk_cache_find(&key, &image)) {
        CHECK(image.bytes == NULL && image.nbytes == 4711);
        return false;
    }
    char label[32];
    (void)snprintf(label, sizeof label, "kernel_%u", number);
    CHECK_TEXT(image.symbol, label);
    size_t wrong = 0;
    for (size_t i = 0; i < image.nbytes; i++)
        wrong += ((unsigned char *)image.bytes)[i] != (unsigned char)(number * 7 + i);
    CHECK_U64(wrong, 0);
    gni_kernel_image_deinit(&image);
    return true;
}

static size_t file_read(const char *path, char *bytes, size_t capacity)
{
    int file = open(path, O_RDONLY);
    ssize_t count = file >= 0 ? read(file, bytes, capacity) : -1;
    if (file >= 0)
        (void)close(file);
    return count > 0 ? (size_t)count : 0;
}

static void file_write(const char *path, const char *bytes, size_t nbytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, bytes, nbytes) == (ssize_t)nbytes);
    (void)close(file);
}

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    CHECK(lstat(path, &info) == 0);
    return info.st_mode & 07777;
}

static void age(const char *path, long seconds)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= seconds;
    struct timespec times[2] = {now, now};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static int file_count(void)
{
    DIR *stream = opendir(directory);
    int count = 0;
    for (struct dirent *item; stream != NULL && (item = readdir(stream)) != NULL;)
        count += item->d_name[0] != '.';
    if (stream != NULL)
        (void)closedir(stream);
    return count;
}

/* Runs a case in a child, and gives what it printed. */
static struct child_result *run(void (*body)(void *), const char *name)
{
    static struct child_result result;
    (void)snprintf(directory, sizeof directory, "%s/%s", root, name);
    (void)setenv("GENESIS_KERNEL_CACHE_DIR", directory, 1);
    child_run(body, NULL, &result);
    child_is_ok(&result);
    return &result;
}

/* ---- entries -------------------------------------------------------------------------------- */

static void round_trip_body(void *context)
{
    (void)context;
    char path[256];
    CHECK(!entry_find(1));
    CHECK(!exists(directory)); /* looking makes nothing */
    entry_store(1, 1);
    entry_store(2, 100000);
    CHECK(entry_find(1) && entry_find(2) && !entry_find(3));
    entry_store(2, 50); /* over what is there */
    CHECK(entry_find(2));
    CHECK_U64(file_count(), 2);
    path_of(1, path);
    CHECK_U64(mode_of(path), 0600);
    CHECK_U64(mode_of(directory), 0700);
    struct gni_disk_key key = key_of(1);
    gni_disk_cache_remove(&key);
    CHECK(!entry_find(1));
    gni_disk_cache_remove(&key);
    entry_store(3, 0); /* nothing to keep */
    CHECK(!entry_find(3));
    CHECK_U64(gni_disk_cache_clear(), 1);
    CHECK(!entry_find(2));
    CHECK_U64(gni_disk_cache_clear(), 0);
}

static void test_round_trip(void)
{
    CHECK_U64(run(round_trip_body, "a/b/c")->write_count, 0);
}

/* What is larger than any kernel is not kept. */
static void too_large_body(void *context)
{
    (void)context;
    size_t nbytes = ((size_t)64 << 20) + 1;
    struct gni_disk_key key = key_of(1);
    void *bytes = calloc(nbytes, 1);
    CHECK(bytes != NULL);
    gni_disk_cache_store(&key, "kernel", bytes, nbytes);
    CHECK(!exists(directory));
    gni_disk_cache_store(&key, "kernel", bytes, 1);
    CHECK_U64(file_count(), 1);
    free(bytes);
}

static void test_too_large(void)
{
    CHECK_U64(run(too_large_body, "large")->write_count, 0);
}

/* Descriptor 0 is one like any other: a process may have closed its standard input. */
static void descriptor_0_body(void *context)
{
    (void)context;
    system_open_as_0(true);
    entry_store(1, PAYLOAD_BYTES);
    CHECK(fcntl(0, F_GETFD) < 0);            /* it was closed */
    CHECK(open("/dev/null", O_RDONLY) == 0); /* or the directory would have it */
    CHECK(entry_find(1));
    CHECK(fcntl(0, F_GETFD) < 0);
    CHECK_U64(file_count(), 1); /* nothing unfinished */
}

static void test_descriptor_0(void)
{
    CHECK_U64(run(descriptor_0_body, "zero")->write_count, 0);
}

/* Every length and every changed byte is a miss, and the file goes. */
static void damage_body(void *context)
{
    (void)context;
    char path[256], whole[512];
    entry_store(1, PAYLOAD_BYTES);
    path_of(1, path);
    size_t nbytes = file_read(path, whole, sizeof whole);
    CHECK_U64(nbytes, HEADER_BYTES + sizeof "kernel_1" + PAYLOAD_BYTES);
    for (size_t length = 0; length < nbytes; length++) {
        file_write(path, whole, length);
        CHECK(!entry_find(1) && !exists(path));
    }
    for (size_t i = 0; i < nbytes; i++) {
        char damaged[512];
        memcpy(damaged, whole, nbytes);
        damaged[i] ^= (char)(1 << i % 8);
        file_write(path, damaged, nbytes);
        CHECK(!entry_find(1) && !exists(path));
    }
    file_write(path, whole, nbytes + 1); /* and one byte too many */
    CHECK(!entry_find(1) && !exists(path));
    char other[256];
    path_of(2, other);
    file_write(other, whole, nbytes); /* right, but for another key */
    CHECK(!entry_find(2) && !exists(other));
    file_write(path, whole, nbytes);
    CHECK(entry_find(1));
}

static void test_damage(void)
{
    CHECK_U64(run(damage_body, "damage")->write_count, 0);
}

/* ---- whose it is ---------------------------------------------------------------------------- */

static void attack_body(void *context)
{
    (void)context;
    char path[256], elsewhere[256], whole[512];
    entry_store(1, PAYLOAD_BYTES);
    path_of(1, path);
    size_t nbytes = file_read(path, whole, sizeof whole);
    CHECK(chmod(path, 0620) == 0);
    CHECK(!entry_find(1));
    CHECK(chmod(path, 0602) == 0);
    CHECK(!entry_find(1));
    CHECK(chmod(path, 0644) == 0); /* others may look */
    CHECK(entry_find(1));
    if (is_root) {
        CHECK(chown(path, 12345, 12345) == 0);
        CHECK(!entry_find(1));
    }
    /* A right entry behind a link. */
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", root);
    file_write(elsewhere, whole, nbytes);
    CHECK(unlink(path) == 0 && symlink(elsewhere, path) == 0);
    CHECK(!entry_find(1));
    entry_store(1, PAYLOAD_BYTES); /* replaces the link, not what it points to */
    CHECK(entry_find(1));
    CHECK_U64(file_read(elsewhere, whole, sizeof whole), nbytes);
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(!entry_find(1)); /* and does not wait for a writer */
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    CHECK(!entry_find(1));
    entry_store(1, PAYLOAD_BYTES);
    CHECK(!entry_find(1));
    CHECK_U64(file_count(), 1); /* nothing unfinished is left */
}

static void test_attacks_on_entries(void)
{
    CHECK_U64(run(attack_body, "attack")->write_count, 0);
}

/* A directory that is not only ours: nothing is read or written, and one warning. */
static void refused_body(void *context)
{
    (void)context;
    int before = file_count();
    for (unsigned i = 0; i < 3; i++) {
        entry_store(1 + i, PAYLOAD_BYTES);
        CHECK(!entry_find(1 + i));
    }
    CHECK_U64(gni_disk_cache_clear(), 0);
    CHECK_U64(file_count(), before);
}

static void refused_check(const char *name)
{
    const struct child_result *result = run(refused_body, name);
    CHECK_U64(result->write_count, 1);
    CHECK(strstr(result->text, "warning") != NULL && strstr(result->text, name) != NULL &&
          strstr(result->text, "GENESIS_KERNEL_CACHE_DIR") != NULL);
}

static void test_attacks_on_the_directory(void)
{
    char path[256], target[256];
    (void)snprintf(path, sizeof path, "%s/open", root);
    CHECK(mkdir(path, 0700) == 0 && chmod(path, 0777) == 0);
    refused_check("open");
    (void)snprintf(path, sizeof path, "%s/link", root);
    (void)snprintf(target, sizeof target, "%s/target", root);
    CHECK(mkdir(target, 0700) == 0 && symlink(target, path) == 0);
    refused_check("link");
    (void)snprintf(path, sizeof path, "%s/file", root);
    file_write(path, "", 0);
    refused_check("file");
    if (!is_root)
        return;
    (void)snprintf(path, sizeof path, "%s/foreign", root);
    CHECK(mkdir(path, 0700) == 0 && chown(path, 12345, 12345) == 0);
    refused_check("foreign");
}

/* ---- disks that do not want ----------------------------------------------------------------- */

static void unwritable_body(void *context)
{
    (void)context;
    for (unsigned i = 0; i < 3; i++) {
        entry_store(i, PAYLOAD_BYTES);
        CHECK(!entry_find(i));
    }
}

static void test_a_directory_that_cannot_be_made(void)
{
    struct child_result result;
    (void)setenv("GENESIS_KERNEL_CACHE_DIR", "/proc/genesis/kernels", 1);
    child_run(unwritable_body, NULL, &result);
    child_is_ok(&result);
    CHECK_U64(result.write_count, 0);
    if (is_root) /* to whom no directory is closed */
        return;
    (void)snprintf(directory, sizeof directory, "%s/closed", root);
    CHECK(mkdir(directory, 0500) == 0);
    CHECK_U64(run(unwritable_body, "closed")->write_count, 0);
}

static void full_body(void *context)
{
    (void)context;
    entry_store(1, PAYLOAD_BYTES);
    (void)signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 600; limit += 50) { /* after this many bytes the disk is full */
        struct rlimit size = {.rlim_cur = limit, .rlim_max = RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0);
        entry_store(2, 600);
        CHECK(!entry_find(2));
        CHECK_U64(file_count(), 1);
    }
    CHECK(entry_find(1));
    struct rlimit size = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0);
    entry_store(2, 600);
    CHECK(entry_find(2));
}

static void test_a_full_disk(void)
{
    CHECK_U64(run(full_body, "full")->write_count, 0);
}

static void homes_body(void *context)
{
    (void)context;
    char path[256];
    (void)unsetenv("GENESIS_KERNEL_CACHE_DIR");
    (void)unsetenv("XDG_CACHE_HOME");
    (void)unsetenv("HOME");
    entry_store(1, 10);
    CHECK(!entry_find(1));
    (void)setenv("XDG_CACHE_HOME", "relative", 1); /* not allowed, and so not there */
    (void)setenv("HOME", "relative", 1);
    entry_store(1, 10);
    CHECK(!entry_find(1));
    (void)setenv("HOME", root, 1);
    (void)snprintf(directory, sizeof directory, "%s/.cache/genesis/kernels", root);
    path_of(1, path);
    entry_store(1, 10);
    CHECK(entry_find(1) && exists(path));
    (void)snprintf(directory, sizeof directory, "%s/xdg", root);
    (void)setenv("XDG_CACHE_HOME", directory, 1);
    CHECK(!entry_find(1));
    strcat(directory, "/genesis/kernels");
    path_of(1, path);
    entry_store(1, 10);
    CHECK(entry_find(1) && exists(path));
}

static void test_homes(void)
{
    CHECK_U64(run(homes_body, "unused")->write_count, 0);
}

/* A path that is one byte too long is none: cut off, it would be another directory's. */
static void long_path_body(void *context)
{
    (void)context;
    enum {
        HOME_BYTES = 4096 - sizeof "/genesis/kernels" + 1,
    };
    char home[HOME_BYTES + 1];
    (void)unsetenv("GENESIS_KERNEL_CACHE_DIR");
    memset(home, '/', HOME_BYTES); /* any number of them is one */
    home[HOME_BYTES] = '\0';
    memcpy(home, root, sizeof root - 1);
    (void)setenv("XDG_CACHE_HOME", home, 1);
    entry_store(1, 10);
    (void)snprintf(directory, sizeof directory, "%s/genesis", root);
    CHECK(!exists(directory));
    home[HOME_BYTES - 1] = '\0';
    (void)setenv("XDG_CACHE_HOME", home, 1);
    entry_store(1, 10);
    CHECK(entry_find(1));
    (void)snprintf(directory, sizeof directory, "%s/genesis/kernels", root);
    CHECK_U64(file_count(), 1);
}

static void test_a_long_path(void)
{
    CHECK_U64(run(long_path_body, "unused")->write_count, 0);
}

/* ---- the limit ------------------------------------------------------------------------------ */

static void limit_body(void *context)
{
    (void)context;
    char path[256];
    for (unsigned i = 0; i < 40; i++) {
        entry_store(i, 1000);
        path_of(i, path);
        age(path, 100000 - 100 * (long)i);
    }
    CHECK(entry_find(0)); /* was the oldest, and is the newest now */
    (void)snprintf(path, sizeof path, "%s/dead.new", directory);
    file_write(path, "", 0);
    age(path, 100000);
    (void)snprintf(path, sizeof path, "%s/alive.new", directory);
    file_write(path, "", 0);
    (void)snprintf(path, sizeof path, "%s/notes.txt", directory);
    file_write(path, "mine", 4);
    age(path, 1000000);
    gni_disk_cache_set_limit(20000);
    entry_store(40, 1000);
    int left = 0;
    for (unsigned i = 0; i <= 40; i++) {
        bool is_there = entry_find(i);
        left += is_there;
        if (i == 0 || i >= 30)
            CHECK(is_there);
        if (i >= 1 && i < 25)
            CHECK(!is_there);
    }
    CHECK(left <= 14 && left >= 12); /* three quarters of 20000, each a little over 1000 */
    CHECK_U64(file_count(), left + 2);
    gni_disk_cache_set_limit(0);
    for (unsigned i = 0; i < 40; i++)
        entry_store(i, 1000);
    CHECK_U64(gni_disk_cache_clear(), 41);
    CHECK_U64(file_count(), 2);
}

static void test_the_limit(void)
{
    CHECK_U64(run(limit_body, "limit")->write_count, 0);
}

/* ---- many at once --------------------------------------------------------------------------- */

enum {
    PROCESSES = 4,
    ROUNDS = 150,
};

static void race_one(uint64_t seed)
{
    for (int i = 0; i < ROUNDS; i++) {
        unsigned number = (unsigned)(check_random(&seed) % 8);
        switch (check_random(&seed) % 8) {
        case 0:
            (void)gni_disk_cache_clear();
            break;
        case 1:
        case 2:
        case 3:
            entry_store(number, 3000);
            break;
        default:
            (void)entry_find(number);
        }
    }
}

static void *race_thread(void *context)
{
    race_one((uint64_t)(uintptr_t)context);
    return NULL;
}

static void race_body(void *context)
{
    (void)context;
    pid_t children[PROCESSES];
    gni_disk_cache_set_limit(12000);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            race_one((uint64_t)i + 1);
            check_exit(check_failures > 0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    pthread_t threads[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        CHECK(pthread_create(&threads[i], NULL, race_thread, (void *)(uintptr_t)(i + 9)) == 0);
    for (int i = 0; i < PROCESSES; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    entry_store(1, 10);
    CHECK(entry_find(1));
    CHECK(file_count() <= 8);
}

static void test_many_at_once(void)
{
    CHECK_U64(run(race_body, "race")->write_count, 0);
}

static void memory_body(void *context)
{
    (void)context;
    entry_store(1, 1000);
    size_t live = gni_host_live_count();
    bool is_found = false;
    for (long nth = 1; !is_found; nth++) {
        gni_host_fail_after(nth);
        is_found = entry_find(1);
        gni_host_fail_after(-1);
        CHECK_U64(gni_host_live_count(), live);
        CHECK(nth < 10);
        entry_store(1, 1000); /* what could not be read was removed */
    }
    gni_disk_cache_set_limit(100);
    gni_host_fail_after(1); /* no list, so nothing is removed */
    entry_store(2, 1000);
    gni_host_fail_after(-1);
    CHECK_U64(gni_host_live_count(), live);
    CHECK(entry_find(2));
}

static void test_no_host_memory(void)
{
    CHECK_U64(run(memory_body, "memory")->write_count, 0);
}

/* ---- a system that fails --------------------------------------------------------------------- */

/* Files that are open. */
static int open_count(void)
{
    DIR *stream = opendir("/proc/self/fd");
    int count = 0;
    while (stream != NULL && readdir(stream) != NULL)
        count++;
    if (stream != NULL)
        (void)closedir(stream);
    return count;
}

/* What interrupts a call, or lets it do a part, changes nothing. */
static void interrupted_body(void *context)
{
    (void)context;
    int files = open_count();
    for (int nth = 1; nth < 6; nth++) {
        system_fail("write", nth, EINTR, false);
        entry_store((unsigned)nth, 5000);
        CHECK_U64(system_fault_count(), nth <= 3); /* header, label, bytes */
        system_fail("read", nth, EINTR, false);
        CHECK(entry_find((unsigned)nth));
        CHECK_U64(system_fault_count(), nth <= 3);
    }
    system_shorten(7);
    entry_store(1, 3000);
    CHECK(entry_find(1) && entry_find(2));
    system_shorten(0);
    CHECK(entry_find(1));
    CHECK_U64(file_count(), 5);
    CHECK_U64(open_count(), files);
}

/* An entry that cannot be written whole is not there; one that cannot be read is a miss. Nothing unfinished stays, no
 * file stays open, and the next time it works. */
static void failing_body(void *context)
{
    (void)context;
    static const struct {
        const char *function;
        int error;
    } stores[] = {{"write", EIO}, {"close", EIO}, {"openat", EMFILE}},
      finds[] = {{"read", EIO}, {"openat", EMFILE}, {"fstat", EIO}};
    int files = open_count();
    entry_store(9, 10); /* the first store looks at the limit, too */
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        system_fail(stores[i].function, 1, stores[i].error, false);
        entry_store(1, 1000);
        CHECK_U64(system_fault_count(), 1);
        system_fail(NULL, 0, 0, false);
        CHECK(!entry_find(1));
        CHECK_U64(file_count(), 1);
    }
    for (size_t i = 0; i < sizeof finds / sizeof *finds; i++)
        for (int nth = 1; nth < 9; nth++) {
            entry_store(1, 1000);
            system_fail(finds[i].function, nth, finds[i].error, false);
            bool is_found = entry_find(1);
            CHECK(is_found == (system_fault_count() == 0));
            system_fail(NULL, 0, 0, false);
            entry_store(1, 1000);
            CHECK(entry_find(1));
        }
    CHECK_U64(open_count(), files);
}

/* Nothing is listed, so nothing is removed or visited; what cannot be removed stays, and the rest goes. */
static void listing_body(void *context)
{
    (void)context;
    int files = open_count();
    for (unsigned i = 0; i < 8; i++)
        entry_store(i, 1000);
    static const char *const functions[] = {"dup", "fdopendir"};
    for (size_t i = 0; i < 2; i++) {
        system_fail(functions[i], 1, EMFILE, false);
        CHECK_U64(gni_disk_cache_clear(), 0);
        CHECK_U64(system_fault_count(), 1);
        CHECK_U64(file_count(), 8);
    }
    system_fail("unlinkat", 3, EACCES, false);
    CHECK_U64(gni_disk_cache_clear(), 7);
    CHECK_U64(file_count(), 1);
    for (unsigned i = 0; i < 8; i++)
        entry_store(i, 1000);
    gni_disk_cache_set_limit(4000);
    system_fail("unlinkat", 1, EACCES, true);
    entry_store(20, 1000); /* over the limit; everything stays */
    CHECK(system_fault_count() >= 8);
    system_fail(NULL, 0, 0, false);
    CHECK_U64(file_count(), 9);
    CHECK_U64(open_count(), files);
    system_fail("clock_gettime", 1, EINVAL, true); /* then it is not touched, but found */
    CHECK(entry_find(20));
    system_fail(NULL, 0, 0, false);
}

static void visit_count(void *context, const struct gni_disk_key *key,
                        const struct gni_kernel_image *image)
{
    (void)key;
    CHECK_TEXT(image->symbol, "kernel_1");
    ++*(int *)context;
}

/* A visit passes over what cannot be opened or read. */
static void visit_body(void *context)
{
    (void)context;
    int files = open_count(), count = 0;
    for (unsigned i = 0; i < 3; i++)
        entry_store(i, 1000);
    gni_disk_cache_visit("kernel_1", visit_count, &count);
    CHECK_U64(count, 1);
    static const char *const functions[] = {"openat", "read"};
    for (size_t i = 0; i < 2; i++) {
        count = 0;
        system_fail(functions[i], 1, EIO, true);
        gni_disk_cache_visit("kernel_1", visit_count, &count);
        CHECK_U64(count, 0);
        for (int nth = 1; nth < 16; nth++) {
            entry_store(1, 1000); /* what could not be read was removed */
            count = 0;
            system_fail(functions[i], nth, EIO, false);
            gni_disk_cache_visit("kernel_1", visit_count, &count);
            CHECK(count == 1 || (count == 0 && system_fault_count() == 1));
        }
        system_fail(NULL, 0, 0, false);
    }
    char label[100];
    memset(label, 'k', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    count = 0;
    gni_disk_cache_visit(label, visit_count, &count); /* longer than any label of ours */
    CHECK_U64(count, 0);
    CHECK_U64(open_count(), files);
}

/* The directory itself cannot be looked at: nothing is kept, and it is said once. */
static void unknown_body(void *context)
{
    (void)context;
    int files = open_count(), count = 0;
    struct gni_disk_key key = key_of(1);
    entry_store(1, 1000);
    system_fail("fstat", 1, EIO, true);
    CHECK(!entry_find(1));
    entry_store(2, 1000);
    gni_disk_cache_remove(&key);
    CHECK_U64(gni_disk_cache_clear(), 0);
    gni_disk_cache_visit("kernel_1", visit_count, &count);
    CHECK_U64(count, 0);
    system_fail(NULL, 0, 0, false);
    CHECK(entry_find(1) && !entry_find(2));
    CHECK_U64(open_count(), files);
}

/* Right by its checksum, and yet of a form that nothing writes: labels and bytes of no length, a label without an end. */
static void odd_body(void *context)
{
    (void)context;
    char path[256], whole[512];
    for (int odd = 0; odd < 4; odd++) {
        entry_store(1, PAYLOAD_BYTES);
        path_of(1, path);
        size_t nbytes = file_read(path, whole, sizeof whole);
        uint32_t label_bytes, none = 0;
        uint64_t image_bytes = PAYLOAD_BYTES;
        memcpy(&label_bytes, whole + 12, sizeof label_bytes);
        CHECK_U64(label_bytes, sizeof "kernel_1");
        if (odd == 0)
            memcpy(whole + 12, &none, sizeof none);
        if (odd == 1)
            image_bytes = 0;
        if (odd == 2)
            image_bytes = UINT64_MAX;
        if (odd == 3)
            whole[HEADER_BYTES + label_bytes - 1] = 'x';
        memcpy(whole + 16, &image_bytes, sizeof image_bytes);
        struct gni_sha256 hash;
        gni_sha256_init(&hash);
        gni_sha256_add(&hash, whole, HEADER_BYTES - GNI_SHA256_BYTES);
        gni_sha256_add(&hash, whole + HEADER_BYTES, nbytes - HEADER_BYTES);
        gni_sha256_finish(&hash, (uint8_t *)whole + HEADER_BYTES - GNI_SHA256_BYTES);
        file_write(path, whole, nbytes);
        CHECK(!entry_find(1) && !exists(path));
    }
}

static void test_a_system_that_fails(void)
{
    CHECK_U64(run(interrupted_body, "interrupted")->write_count, 0);
    CHECK_U64(child_count(run(failing_body, "failing"), "not kept on disk"), 1);
    CHECK_U64(run(listing_body, "listing")->write_count, 0);
    CHECK_U64(run(visit_body, "visit")->write_count, 0);
    CHECK_U64(child_count(run(unknown_body, "unknown"), "not kept on disk"), 1);
    CHECK_U64(run(odd_body, "odd")->write_count, 0);
}

/* ---- the compiler, known without loading it ------------------------------------------------- */

static bool is_mapped(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    bool is_found = false;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        is_found = is_found || strstr(line, name) != NULL;
    if (maps != NULL)
        (void)fclose(maps);
    return is_found;
}

static void compiler_load_body(void *context)
{
    (void)context;
    struct gni_compiler guess = {.version = 1}, loaded, again;
    CHECK(!gni_compiler_guess(&guess));
    CHECK_U64(guess.version, 1);
    CHECK_OK(gni_compiler_load(&loaded));
    CHECK(is_mapped("libnvrtc.so"));
    CHECK(loaded.version >= 11000 && loaded.file_bytes > 0);
    CHECK(gni_compiler_guess(&again) && memcmp(&loaded, &again, sizeof again) == 0);
    CHECK_U64(file_count(), 1);
}

static void compiler_guess_body(void *context)
{
    (void)context;
    struct gni_compiler guess, loaded;
    CHECK(gni_compiler_guess(&guess));
    CHECK(!is_mapped("libnvrtc.so"));
    CHECK_OK(gni_compiler_load(&loaded));
    CHECK(memcmp(&loaded, &guess, sizeof guess) == 0);
}

static void compiler_other_place_body(void *context)
{
    (void)context;
    struct gni_compiler guess;
    (void)setenv("LD_LIBRARY_PATH", "/no/such/place", 1);
    CHECK(!gni_compiler_guess(&guess));
}

/* The record says that the file was changed at another time. */
static void compiler_changed_body(void *context)
{
    (void)context;
    DIR *stream = opendir(directory);
    struct gni_disk_key key = {{0}};
    for (struct dirent *item; stream != NULL && (item = readdir(stream)) != NULL;)
        for (int i = 0; item->d_name[0] != '.' && i < GNI_SHA256_BYTES; i++) {
            unsigned byte = 0;
            CHECK(sscanf(item->d_name + 2 * i, "%2x", &byte) == 1);
            key.digest[i] = (uint8_t)byte;
        }
    (void)closedir(stream);
    struct gni_kernel_image record = {.bytes = NULL};
    struct gni_compiler compiler;
    CHECK(gni_disk_cache_find(&key, &record) && record.nbytes == sizeof compiler);
    memcpy(&compiler, record.bytes, sizeof compiler);
    compiler.file_time_ns++;
    gni_disk_cache_store(&key, record.symbol, &compiler, sizeof compiler);
    CHECK(!gni_compiler_guess(&compiler));
    CHECK_OK(gni_compiler_load(&compiler)); /* and is put right */
    gni_kernel_image_deinit(&record);
}

static void compiler_find_body(void *context)
{
    (void)context;
    const struct gni_nvrtc *nvrtc;
    check_exit(gni_nvrtc_open(&nvrtc) == GN_OK ? 0 : 3);
}

static void compiler_try(const char *name)
{
    (void)run(compiler_load_body, name);
    (void)run(compiler_guess_body, name);
    (void)run(compiler_other_place_body, name);
    (void)run(compiler_changed_body, name);
    (void)run(compiler_guess_body, name);
}

static void test_the_compiler(void)
{
    struct child_result result;
    child_run(compiler_find_body, NULL, &result);
    if (result.exit_code == 0)
        compiler_try("compiler");
    else
        printf("     skipped: no NVRTC\n");
}

/* Copies a file: a link would be loaded under the name of what it leads to. */
static void file_copy(const char *from, const char *to)
{
    char bytes[1 << 16];
    int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
    CHECK(source >= 0 && target >= 0);
    ssize_t count;
    while ((count = read(source, bytes, sizeof bytes)) > 0)
        CHECK(write(target, bytes, (size_t)count) == count);
    CHECK(count == 0 && close(source) == 0 && close(target) == 0);
}

/* The file that was loaded is gone, or is another one, in the next process. */
static void compiler_gone_body(void *context)
{
    (void)context;
    struct gni_compiler guess;
    char path[220];
    (void)snprintf(path, sizeof path, "%s/toolkit/lib64/libnvrtc.so.13", root);
    CHECK(unlink(path) == 0);
    CHECK(!gni_compiler_guess(&guess));
}

/* The simulator has NVRTC's functions: a copy of it stands for the library, where CUDA_HOME leads to. */
static void test_a_stand_in_for_the_compiler(void)
{
#ifdef SIM_FILE
    char home[160], lib[180], path[220];
    (void)snprintf(home, sizeof home, "%s/toolkit", root);
    (void)snprintf(lib, sizeof lib, "%s/lib64", home);
    (void)snprintf(path, sizeof path, "%s/libnvrtc.so.13", lib);
    CHECK(mkdir(home, 0700) == 0 && mkdir(lib, 0700) == 0);
    file_copy(SIM_FILE, path);
    CHECK(setenv("CUDA_HOME", home, 1) == 0);
    compiler_try("stand-in");
    CHECK(setenv("CUDA_HOME", "toolkit", 1) == 0 && setenv("CUDA_PATH", home, 1) == 0);
    compiler_try("stand-in-by-path"); /* a relative CUDA_HOME is none */
    (void)run(compiler_gone_body, "stand-in-by-path");
    CHECK(unsetenv("CUDA_HOME") == 0 && unsetenv("CUDA_PATH") == 0);
#endif
}

static void test_keys(void)
{
    static const char *const options[] = {"--std=c++17", NULL};
    struct gni_compiler compiler = {.version = 13000, .file_bytes = 5}, other = compiler;
    const struct gni_kernel_source source = {.name = "k", .text = "text", .options = options};
    struct gni_kernel_source sources[] = {source, source, source, source};
    sources[0].name = "l";
    sources[1].text = "texts";
    sources[2].options = NULL;
    sources[3].is_expression = true;
    struct gni_disk_key keys[10];
    gni_compiler_key(&compiler, 90, &source, &keys[0]);
    for (int i = 0; i < 4; i++)
        gni_compiler_key(&compiler, 90, &sources[i], &keys[1 + i]);
    gni_compiler_key(&compiler, 80, &source, &keys[5]);
    other.version = 12090;
    gni_compiler_key(&other, 90, &source, &keys[6]);
    other = compiler;
    other.file_bytes++;
    gni_compiler_key(&other, 90, &source, &keys[7]);
    other = compiler;
    other.file_time_ns++;
    gni_compiler_key(&other, 90, &source, &keys[8]);
    gni_compiler_key(&compiler, 90, &source, &keys[9]);
    CHECK(memcmp(&keys[0], &keys[9], sizeof keys[0]) == 0);
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < i; j++)
            CHECK(memcmp(&keys[i], &keys[j], sizeof keys[0]) != 0);
}

static int file_remove(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

int main(void)
{
    is_root = geteuid() == 0;
    if (mkdtemp(root) == NULL)
        return 1;
    (void)setenv("GENESIS_CUDA_DRIVER", "/no/such/driver.so",
                 1); /* the simulator brings its NVRTC */
    RUN(test_round_trip);
    RUN(test_too_large);
    RUN(test_descriptor_0);
    RUN(test_damage);
    RUN(test_attacks_on_entries);
    RUN(test_attacks_on_the_directory);
    RUN(test_a_directory_that_cannot_be_made);
    RUN(test_a_full_disk);
    RUN(test_homes);
    RUN(test_a_long_path);
    RUN(test_the_limit);
    RUN(test_many_at_once);
    RUN(test_no_host_memory);
    RUN(test_a_system_that_fails);
    RUN(test_keys);
    RUN(test_the_compiler);
    RUN(test_a_stand_in_for_the_compiler);
    CHECK(nftw(root, file_remove, 16, FTW_DEPTH | FTW_PHYS) == 0);
    return check_result();
}
