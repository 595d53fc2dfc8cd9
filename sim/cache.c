/*
 * cache.c: see cache.h.
 */
#include "cache.h"
#include "compile.h"
#include "image.h"
#include "setting.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    char key[GNI_SHA256_TEXT_BYTES];
    struct sim_cached cached;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries; /* few: the kernels of one process */

/* ---- Disk ---- */

/* The directory's name; false: there is to be no disk cache. */
static bool directory_name(char *path, size_t capacity)
{
    const char *own = sim_setting_text("SIM_GPU_CACHE_DIR");
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    int count = -1;
    if (own != NULL)
        count = snprintf(path, capacity, "%s", own);
    else if (cache != NULL && *cache == '/')
        count = snprintf(path, capacity, "%s/genesis-sim", cache);
    else if (home != NULL && *home == '/')
        count = snprintf(path, capacity, "%s/.cache/genesis-sim", home);
    return count > 0 && count < (int)capacity;
}

static bool is_private(const struct stat *info)
{
    return info->st_uid == geteuid() && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Opens the directory, made if need be together with the one above it; -1: none that is ours. */
static int directory_open(void)
{
    char path[4096];
    struct stat info;
    if (!directory_name(path, sizeof path))
        return -1;
    if (mkdir(path, 0700) != 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (slash != NULL && slash != path) {
            *slash = '\0';
            mkdir(path, 0700);
            *slash = '/';
            mkdir(path, 0700);
        }
    }
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0 && (fstat(directory, &info) != 0 || !is_private(&info))) {
        close(directory);
        directory = -1;
    }
    return directory;
}

/* An image for free(), or NULL. */
static void *disk_read(const char *key, size_t *nbytes)
{
    int directory = directory_open();
    if (directory < 0)
        return NULL;
    int file = openat(directory, key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    close(directory);
    if (file < 0)
        return NULL;
    struct stat info;
    struct sim_text text = {0};
    bool is_ours = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && is_private(&info) &&
                   info.st_size <= (off_t)SIM_IMAGE_MAX_BYTES;
    bool is_read = is_ours && sim_file_read(file, &text) && !text.has_failed;
    close(file);
    if (!is_read || !sim_image_fills(text.data, text.length)) {
        sim_text_deinit(&text);
        return NULL;
    }
    *nbytes = text.length;
    return sim_text_take(&text);
}

/* A disk that is full or closed is no error: the image stays in memory. */
static void disk_write(const char *key, const void *image, size_t nbytes)
{
    int directory = directory_open();
    if (directory < 0)
        return;
    static unsigned long counter;
    char name[96];
    unsigned long number = __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
    snprintf(name, sizeof name, "%.16s-%ld-%lu.new", key, (long)getpid(), number);
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
        bool is_written = sim_file_write(file, image, nbytes);
        is_written &= close(file) == 0;
        if (!is_written || renameat(directory, name, directory, key) != 0)
            unlinkat(directory, name, 0);
    }
    close(directory);
}

/* ---- Memory ---- */

static const struct entry *entry_find(const char *key)
{
    for (const struct entry *entry = entries; entry != NULL; entry = entry->next)
        if (strcmp(entry->key, key) == 0)
            return entry;
    return NULL;
}

/* Under the mutex. */
static bool entry_add(const char *key, void *image, size_t nbytes, struct sim_cached *cached)
{
    const struct entry *known = entry_find(key);
    if (known != NULL) {
        free(image);
        *cached = known->cached;
        return true;
    }
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return false;
    memcpy(entry->key, key, sizeof entry->key);
    entry->cached = (struct sim_cached){.image = image, .nbytes = nbytes};
    entry->next = entries;
    entries = entry;
    *cached = entry->cached;
    return true;
}

bool sim_cache_find(const char key[GNI_SHA256_TEXT_BYTES], struct sim_cached *cached)
{
    pthread_mutex_lock(&mutex);
    const struct entry *entry = entry_find(key);
    if (entry != NULL)
        *cached = entry->cached;
    pthread_mutex_unlock(&mutex);
    if (entry != NULL)
        return true;
    size_t nbytes;
    void *image = disk_read(key, &nbytes);
    if (image == NULL)
        return false;
    pthread_mutex_lock(&mutex);
    bool is_kept = entry_add(key, image, nbytes, cached);
    pthread_mutex_unlock(&mutex);
    if (!is_kept)
        free(image);
    return is_kept;
}

bool sim_cache_store(const char key[GNI_SHA256_TEXT_BYTES], void *image, size_t nbytes,
                     struct sim_cached *cached)
{
    disk_write(key, image, nbytes);
    pthread_mutex_lock(&mutex);
    bool is_kept = entry_add(key, image, nbytes, cached);
    pthread_mutex_unlock(&mutex);
    return is_kept;
}

void sim_cache_forget(void)
{
    pthread_mutex_lock(&mutex);
    while (entries != NULL) {
        struct entry *entry = entries;
        entries = entry->next;
        free((void *)entry->cached.image);
        free(entry);
    }
    pthread_mutex_unlock(&mutex);
}
