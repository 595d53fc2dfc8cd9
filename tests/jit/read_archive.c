/*
 * read_archive.c: looks for kernels in an archive, as the library does.
 *
 *     read_archive ARCHIVE ARCHITECTURE FILE...
 *
 * Each file is a text, NAME_HASH.cu. Prints how long the parts take, and exits with 1 if one is not found and unpacked.
 */
#include "base/host.h"
#include "base/thread.h"
#include "jit/archive_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[1 << 20], name[256];

/* Reads a text, and the kernel's name from that of its file. */
static bool text_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    const char *slash = strrchr(path, '/'), *end = strrchr(path, '_');
    if (file != NULL)
        (void)fclose(file);
    text[length] = '\0';
    slash = slash != NULL ? slash + 1 : path;
    if (length == 0 || end == NULL || end < slash)
        return false;
    (void)snprintf(name, sizeof name, "%.*s", (int)(end - slash), slash);
    return true;
}

int main(int count, char **arguments)
{
    struct gni_archive_file *file;
    struct gni_archive_key key;
    uint64_t nanoseconds = 0, longest = 0, nbytes = 0;
    int missing = 0;
    if (count < 4)
        return 2;
    uint64_t start = gni_time_ns();
    if (gni_archive_file_open(arguments[1], &file) != GN_OK) {
        fprintf(stderr, "%s\n", gn_error_detail());
        return 1;
    }
    uint64_t opened = gni_time_ns() - start;
    for (int i = 3; i < count; i++) {
        void *bytes = NULL;
        if (!text_read(arguments[i]))
            return 2;
        struct gni_kernel_source source = {.name = name, .text = text};
        start = gni_time_ns();
        gni_archive_key_make(&source, &key);
        const struct gni_archive_entry *entry =
            gni_archive_file_find(file, &key, atoi(arguments[2]));
        if (entry == NULL || gni_archive_file_unpack(file, entry, &bytes) != GN_OK) {
            fprintf(stderr, "%s is not there\n", arguments[i]);
            missing++;
            continue;
        }
        uint64_t time = gni_time_ns() - start;
        nanoseconds += time;
        longest = time > longest ? time : longest;
        nbytes += entry->nbytes;
        gni_host_free(bytes);
    }
    int found = count - 3 - missing;
    printf("%d of %d kernels, %.0f bytes each; opened in %.3f ms, one found in %.3f ms, at most "
           "%.3f ms\n",
           found, count - 3, found > 0 ? (double)nbytes / found : 0, (double)opened / 1e6,
           found > 0 ? (double)nanoseconds / found / 1e6 : 0, (double)longest / 1e6);
    gni_archive_file_close(file);
    return missing > 0;
}
