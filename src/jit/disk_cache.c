/*
 * disk_cache.c: see disk_cache.h.
 *
 * The directory is opened anew for each access: it may be removed, replaced or unmounted at any time, and
 * an access is rare beside what it saves.
 */
#include "jit/disk_cache.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ENTRY_MAGIC "GNKERNEL"
#define ENTRY_ENDING ".gk"
#define UNFINISHED_ENDING ".new"

enum {
    ENTRY_FORMAT = 1,
    ENTRY_BYTES_MAX = 1 << 26,
    ENTRY_NAME_BYTES = GNI_SHA256_TEXT_BYTES + 3, /* the key in hexadecimal and the ending */
    UNFINISHED_SECONDS = 3600, /* then the process that wrote it is taken for dead */
    TOUCH_SECONDS = 3600,      /* an entry's time of use is not kept more exactly */
    STORES_BETWEEN_LOOKS = 64, /* at what is in the directory */
};

/* How a file begins, in the byte order of the machine. The label, with its NUL, and the bytes follow. */
struct entry_header {
    char magic[8];
    uint32_t format;
    uint32_t label_bytes;
    uint64_t image_bytes;
    uint8_t key[GNI_SHA256_BYTES];
    uint8_t checksum[GNI_SHA256_BYTES]; /* of the fields above, the label and the bytes */
};

static _Atomic(uint64_t) limit_bytes = GNI_DISK_CACHE_BYTES;
static atomic_uint store_count;

/* ---- the directory -------------------------------------------------------------------------- */

/* Its name; false: there is to be no cache. */
static bool directory_name(char *path, size_t size)
{
    const char *given = gni_option_text(GNI_OPTION_KERNEL_CACHE_DIR);
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    int count = -1;
    if (given[0] != '\0')
        count = snprintf(path, size, "%s", given);
    else if (cache != NULL && cache[0] == '/')
        count = snprintf(path, size, "%s/genesis/kernels", cache);
    else if (home != NULL && home[0] == '/')
        count = snprintf(path, size, "%s/.cache/genesis/kernels", home);
    return count > 0 && (size_t)count < size;
}

/* Makes the directory and those above it, as far as they are missing. */
static void directory_make(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
}

/* DC1, of a directory or a file. */
static bool is_private(const struct stat *info)
{
    return info->st_uid == geteuid() && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static void refusal_print(const char *path, const char *reason)
{
    static atomic_bool is_printed;
    if (!atomic_exchange(&is_printed, true))
        gni_log(GNI_LOG_WARNING,
                "compiled kernels are not kept on disk: %.300s %s; make it a directory of yours "
                "that nobody "
                "else can write to, or name another in GENESIS_KERNEL_CACHE_DIR",
                path, reason);
}

/* A descriptor of the directory, or -1. */
static int directory_open(bool can_make)
{
    char path[4096];
    struct stat info;
    if (!directory_name(path, sizeof path))
        return -1;
    if (can_make)
        directory_make(path);
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) {
        if (errno == ELOOP || errno == ENOTDIR)
            refusal_print(path, "is a link or no directory");
        else if (can_make)
            gni_log(GNI_LOG_INFO, "compiled kernels are not kept on disk: %.300s: %s", path,
                    strerror(errno));
        return -1;
    }
    if (fstat(directory, &info) != 0 || !is_private(&info)) {
        refusal_print(path, "belongs to somebody else, or others can write to it");
        (void)close(directory);
        return -1;
    }
    return directory;
}

static void entry_name(const struct gni_disk_key *key, char name[ENTRY_NAME_BYTES])
{
    gni_sha256_text(key->digest, name);
    memcpy(name + GNI_SHA256_TEXT_BYTES - 1, ENTRY_ENDING, sizeof ENTRY_ENDING);
}

static bool name_ends_in(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

/* ---- entries -------------------------------------------------------------------------------- */

static void checksum_make(const struct entry_header *header, const char *label, const void *bytes,
                          uint8_t checksum[GNI_SHA256_BYTES])
{
    struct gni_sha256 hash;
    gni_sha256_init(&hash);
    gni_sha256_add(&hash, header, offsetof(struct entry_header, checksum));
    gni_sha256_add(&hash, label, header->label_bytes);
    gni_sha256_add(&hash, bytes, (size_t)header->image_bytes);
    gni_sha256_finish(&hash, checksum);
}

static bool bytes_read(int file, void *bytes, size_t nbytes)
{
    char *to = bytes;
    while (nbytes > 0) {
        ssize_t count = read(file, to, nbytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        to += count;
        nbytes -= (size_t)count;
    }
    return true;
}

static bool bytes_write(int file, const void *bytes, size_t nbytes)
{
    const char *from = bytes;
    while (nbytes > 0) {
        ssize_t count = write(file, from, nbytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        from += count;
        nbytes -= (size_t)count;
    }
    return true;
}

/* Does the file's beginning fit the key and the file's length? */
static bool header_is_right(const struct entry_header *header, const struct gni_disk_key *key,
                            uint64_t file_bytes)
{
    return memcmp(header->magic, ENTRY_MAGIC, sizeof header->magic) == 0 &&
           header->format == ENTRY_FORMAT && header->label_bytes > 0 && header->image_bytes > 0 &&
           header->image_bytes <= ENTRY_BYTES_MAX &&
           sizeof *header + header->label_bytes + header->image_bytes == file_bytes &&
           memcmp(header->key, key->digest, sizeof header->key) == 0;
}

/* Reads what follows a header, and checks it. */
static bool image_read(int file, const struct entry_header *header, struct gni_kernel_image *image)
{
    uint8_t checksum[GNI_SHA256_BYTES];
    image->nbytes = (size_t)header->image_bytes;
    image->symbol = gni_host_alloc(header->label_bytes);
    image->bytes = gni_host_alloc(image->nbytes);
    if (image->symbol == NULL || image->bytes == NULL ||
        !bytes_read(file, image->symbol, header->label_bytes) ||
        !bytes_read(file, image->bytes, image->nbytes))
        return false;
    checksum_make(header, image->symbol, image->bytes, checksum);
    return memcmp(checksum, header->checksum, sizeof checksum) == 0 &&
           image->symbol[header->label_bytes - 1] == '\0';
}

static bool entry_read(int file, uint64_t file_bytes, const struct gni_disk_key *key,
                       struct gni_kernel_image *image)
{
    struct entry_header header;
    struct gni_kernel_image made = {.bytes = NULL};
    if (file_bytes < sizeof header || !bytes_read(file, &header, sizeof header) ||
        !header_is_right(&header, key, file_bytes) || !image_read(file, &header, &made)) {
        gni_kernel_image_deinit(&made);
        return false;
    }
    *image = made;
    return true;
}

/* DC5: what was used now goes last. */
static void entry_touch(int file, const struct stat *info)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 &&
        now.tv_sec - info->st_mtim.tv_sec > TOUCH_SECONDS)
        (void)futimens(file, NULL);
}

bool gni_disk_cache_find(const struct gni_disk_key *key, struct gni_kernel_image *image)
{
    char name[ENTRY_NAME_BYTES];
    struct stat info;
    int directory = directory_open(false);
    if (directory < 0)
        return false;
    entry_name(key, name);
    /* Not blocking: somebody may have put a pipe there. */
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_found = false;
    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) && is_private(&info)) {
        is_found = entry_read(file, (uint64_t)info.st_size, key, image);
        if (is_found)
            entry_touch(file, &info);
        else
            (void)unlinkat(directory, name, 0); /* DC2 */
    }
    if (file >= 0)
        (void)close(file);
    (void)close(directory);
    return is_found;
}

static bool entry_write(int file, const struct gni_disk_key *key, const char *label,
                        const void *bytes, size_t nbytes)
{
    struct entry_header header = {
        .format = ENTRY_FORMAT, .label_bytes = (uint32_t)strlen(label) + 1, .image_bytes = nbytes};
    memcpy(header.magic, ENTRY_MAGIC, sizeof header.magic);
    memcpy(header.key, key->digest, sizeof header.key);
    checksum_make(&header, label, bytes, header.checksum);
    return bytes_write(file, &header, sizeof header) &&
           bytes_write(file, label, header.label_bytes) && bytes_write(file, bytes, nbytes);
}

/* DC3. */
static void entry_put(int directory, const struct gni_disk_key *key, const char *label,
                      const void *bytes, size_t nbytes)
{
    static atomic_uint number;
    char name[ENTRY_NAME_BYTES], unfinished[ENTRY_NAME_BYTES + 48];
    entry_name(key, name);
    (void)snprintf(unfinished, sizeof unfinished, "%.16s-%ld-%u" UNFINISHED_ENDING, name,
                   (long)getpid(), atomic_fetch_add(&number, 1));
    int file =
        openat(directory, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool is_written = file >= 0 && entry_write(file, key, label, bytes, nbytes);
    int error = errno;
    if (file >= 0) {
        is_written = close(file) == 0 && is_written;
        if (is_written && renameat(directory, unfinished, directory, name) == 0)
            return;
        error = is_written ? errno : error;
        (void)unlinkat(directory, unfinished, 0);
    }
    gni_log(GNI_LOG_INFO, "a compiled kernel was not kept on disk: %s", strerror(error));
}

/* ---- the limit ------------------------------------------------------------------------------ */

struct found_entry {
    char name[ENTRY_NAME_BYTES];
    struct timespec used;
    uint64_t nbytes;
};

struct listing {
    struct found_entry *entries; /* of gni_host_realloc() */
    size_t count, capacity;
    uint64_t nbytes; /* in all */
};

static bool listing_add(struct listing *listing, const char *name, const struct stat *info)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity * 2 + 64, nbytes;
        if (!gni_size_multiply(capacity, sizeof *listing->entries, &nbytes))
            return false;
        struct found_entry *entries = gni_host_realloc(listing->entries, nbytes);
        if (entries == NULL)
            return false;
        listing->entries = entries;
        listing->capacity = capacity;
    }
    struct found_entry *entry = &listing->entries[listing->count++];
    *entry = (struct found_entry){.used = info->st_mtim, .nbytes = (uint64_t)info->st_size};
    (void)snprintf(entry->name, sizeof entry->name, "%s", name);
    listing->nbytes += entry->nbytes;
    return true;
}

static int found_entry_compare(const void *a, const void *b)
{
    const struct timespec *one = &((const struct found_entry *)a)->used;
    const struct timespec *two = &((const struct found_entry *)b)->used;
    if (one->tv_sec != two->tv_sec)
        return one->tv_sec < two->tv_sec ? -1 : 1;
    return (one->tv_nsec > two->tv_nsec) - (one->tv_nsec < two->tv_nsec);
}

/*
 * Lists the entries, as far as there is memory for the list, and removes what a process that died has left
 * unfinished. Files of other names are nobody's business.
 */
static void listing_fill(int directory, struct listing *listing)
{
    int own = dup(directory); /* closedir() closes it */
    DIR *stream = own >= 0 ? fdopendir(own) : NULL;
    if (stream == NULL) {
        if (own >= 0)
            (void)close(own);
        return;
    }
    time_t now = time(NULL);
    rewinddir(stream);
    for (struct dirent *item; (item = readdir(stream)) != NULL;) {
        struct stat info;
        bool is_entry = strlen(item->d_name) == ENTRY_NAME_BYTES - 1 &&
                        name_ends_in(item->d_name, ENTRY_ENDING);
        bool is_unfinished = name_ends_in(item->d_name, UNFINISHED_ENDING);
        if ((!is_entry && !is_unfinished) ||
            fstatat(directory, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_unfinished && now - info.st_mtim.tv_sec > UNFINISHED_SECONDS)
            (void)unlinkat(directory, item->d_name, 0);
        if (is_entry && !listing_add(listing, item->d_name, &info))
            break;
    }
    (void)closedir(stream);
}

/* Removes what was not used for the longest time, until a quarter of the limit is free again. */
static void directory_trim(int directory)
{
    uint64_t limit = atomic_load(&limit_bytes);
    struct listing listing = {.entries = NULL};
    listing_fill(directory, &listing);
    if (listing.nbytes > limit) {
        qsort(listing.entries, listing.count, sizeof *listing.entries, found_entry_compare);
        uint64_t left = listing.nbytes;
        for (size_t i = 0; i < listing.count && left > limit - limit / 4; i++)
            if (unlinkat(directory, listing.entries[i].name, 0) == 0)
                left -= listing.entries[i].nbytes;
        gni_log(GNI_LOG_INFO, "the kernel cache was %s and is %s now",
                gni_size_text(listing.nbytes).text, gni_size_text(left).text);
    }
    gni_host_free(listing.entries);
}

void gni_disk_cache_store(const struct gni_disk_key *key, const char *label, const void *bytes,
                          size_t nbytes)
{
    if (nbytes == 0 || nbytes > ENTRY_BYTES_MAX)
        return;
    int directory = directory_open(true);
    if (directory < 0)
        return;
    entry_put(directory, key, label, bytes, nbytes);
    if (atomic_fetch_add(&store_count, 1) % STORES_BETWEEN_LOOKS == 0)
        directory_trim(directory);
    (void)close(directory);
}

/* Whether a file is an entry with this label; no more of it is read. */
static bool entry_has_label(int directory, const char *name, const char *label,
                            struct gni_disk_key *key)
{
    struct entry_header header;
    char found[64];
    size_t size = strlen(label) + 1;
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool has_label = file >= 0 && size <= sizeof found &&
                     bytes_read(file, &header, sizeof header) && header.label_bytes == size &&
                     bytes_read(file, found, size) && memcmp(found, label, size) == 0;
    if (file >= 0)
        (void)close(file);
    if (has_label)
        memcpy(key->digest, header.key, sizeof key->digest);
    return has_label;
}

void gni_disk_cache_visit(const char *label,
                          void (*visit)(void *context, const struct gni_disk_key *key,
                                        const struct gni_kernel_image *image),
                          void *context)
{
    int directory = directory_open(false);
    if (directory < 0)
        return;
    struct listing listing = {.entries = NULL};
    listing_fill(directory, &listing);
    if (listing.count > 0)
        qsort(listing.entries, listing.count, sizeof *listing.entries, found_entry_compare);
    for (size_t i = 0; i < listing.count; i++) {
        struct gni_disk_key key;
        struct gni_kernel_image image;
        if (!entry_has_label(directory, listing.entries[i].name, label, &key) ||
            !gni_disk_cache_find(&key, &image))
            continue;
        visit(context, &key, &image);
        gni_kernel_image_deinit(&image);
    }
    gni_host_free(listing.entries);
    (void)close(directory);
}

void gni_disk_cache_remove(const struct gni_disk_key *key)
{
    char name[ENTRY_NAME_BYTES];
    int directory = directory_open(false);
    if (directory < 0)
        return;
    entry_name(key, name);
    (void)unlinkat(directory, name, 0);
    (void)close(directory);
}

size_t gni_disk_cache_clear(void)
{
    size_t count = 0;
    int directory = directory_open(false);
    if (directory < 0)
        return 0;
    struct listing listing = {.entries = NULL};
    listing_fill(directory, &listing);
    for (size_t i = 0; i < listing.count; i++)
        count += unlinkat(directory, listing.entries[i].name, 0) == 0;
    gni_host_free(listing.entries);
    (void)close(directory);
    return count;
}

void gni_disk_cache_set_limit(uint64_t nbytes)
{
    atomic_store(&limit_bytes, nbytes > 0 ? nbytes : GNI_DISK_CACHE_BYTES);
    atomic_store(&store_count, 0);
}
