/*
 * archive_file.c: see archive_file.h.
 */
#include "jit/archive_file.h"

#include "base/error.h"
#include "base/host.h"
#include "base/sha256.h"
#include "jit/zlib.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAGIC "GNARCHIV"
#define KEY_FORMAT "genesis archive 1" /* changes with what is hashed */

enum {
    FILE_FORMAT = 1,
    FILE_BYTES_MOST = 1 << 30,
    BLOCK_BYTES_MOST = 1 << 26,
    EARLY = 90, /* the first architecture that can launch a kernel before the one before it ends */
};

struct header {
    char magic[8];
    uint32_t format;
    uint32_t nvrtc_version;
    uint32_t entry_count;
    uint32_t block_count;
    uint32_t checksum; /* CRC-32 of the header, with 0 here, the entries and the blocks' places */
    uint32_t unused;   /* 0 */
    uint64_t file_bytes;
};

_Static_assert(sizeof(struct header) == 40, "a header has no holes");
_Static_assert(sizeof(struct gni_archive_entry) == 32, "an entry has no holes");
_Static_assert(sizeof(struct gni_archive_block) == 24, "a block has no holes");

struct gni_archive_file {
    const struct gni_zlib *zlib;
    const unsigned char *bytes; /* mapped */
    size_t nbytes;
    const struct header *header;             /* in the bytes, */
    const struct gni_archive_entry *entries; /* and these */
    const struct gni_archive_block *blocks;
    size_t entry_count;
    size_t table_bytes; /* of the header, the entries and the blocks' places */
};

/* ---- keys --------------------------------------------------------------------------------------- */

void gni_archive_key_make(const struct gni_kernel_source *source, struct gni_archive_key *key)
{
    struct gni_sha256 hash;
    uint8_t digest[GNI_SHA256_BYTES];
    const char *piece;
    gni_sha256_init(&hash);
    gni_sha256_add_text(&hash, KEY_FORMAT);
    for (size_t i = 0; (piece = gni_kernel_source_piece(source, i)) != NULL; i++)
        gni_sha256_add_text(&hash, piece);
    gni_sha256_finish(&hash, digest);
    memcpy(key->bytes, digest, sizeof key->bytes);
}

static int entry_compare(const struct gni_archive_entry *a, const struct gni_archive_entry *b)
{
    int order = memcmp(&a->key, &b->key, sizeof a->key);
    return order != 0 ? order : (a->target > b->target) - (a->target < b->target);
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* The bytes of the header and the tables; more than there can be, if the numbers are wrong. */
static uint64_t table_size(const struct header *header)
{
    return sizeof *header + (uint64_t)header->entry_count * sizeof(struct gni_archive_entry) +
           (uint64_t)header->block_count * sizeof(struct gni_archive_block);
}

static bool header_is_right(const struct header *header, size_t nbytes)
{
    return memcmp(header->magic, FILE_MAGIC, sizeof header->magic) == 0 &&
           header->format == FILE_FORMAT && header->nvrtc_version < INT32_MAX &&
           header->file_bytes == nbytes && table_size(header) <= nbytes;
}

static bool checksum_is_right(const struct gni_archive_file *file)
{
    struct header header = *file->header;
    header.checksum = 0;
    unsigned long sum = file->zlib->crc32(0, (const unsigned char *)&header, sizeof header);
    sum = file->zlib->crc32(sum, (const unsigned char *)file->entries,
                            (unsigned)(file->table_bytes - sizeof header));
    return sum == file->header->checksum;
}

static bool block_is_right(const struct gni_archive_file *file,
                           const struct gni_archive_block *block)
{
    return block->offset >= file->table_bytes && block->offset <= file->nbytes &&
           block->packed_bytes <= file->nbytes - block->offset &&
           block->inflated_bytes >= sizeof(uint32_t) && block->inflated_bytes <= BLOCK_BYTES_MOST &&
           block->nbytes <= BLOCK_BYTES_MOST;
}

static bool entry_is_right(const struct gni_archive_file *file,
                           const struct gni_archive_entry *entry)
{
    uint32_t architecture = entry->target & ~(uint32_t)GNI_ARCHIVE_PTX;
    return entry->block < file->header->block_count && entry->nbytes > 0 &&
           entry->start <= file->blocks[entry->block].nbytes &&
           entry->nbytes <= file->blocks[entry->block].nbytes - entry->start && architecture > 0 &&
           architecture < GNI_ARCHIVE_PTX;
}

static bool tables_are_right(const struct gni_archive_file *file)
{
    for (size_t i = 0; i < file->header->block_count; i++)
        if (!block_is_right(file, &file->blocks[i]))
            return false;
    for (size_t i = 0; i < file->entry_count; i++)
        if (!entry_is_right(file, &file->entries[i]) ||
            (i > 0 && entry_compare(&file->entries[i - 1], &file->entries[i]) >= 0))
            return false;
    return true;
}

/* AF1; NULL, or what is wrong. */
static const char *file_check(struct gni_archive_file *file)
{
    file->header = (const struct header *)(const void *)file->bytes;
    if (!header_is_right(file->header, file->nbytes))
        return "its header is not right";
    file->entries = (const struct gni_archive_entry *)(const void *)(file->header + 1);
    file->entry_count = file->header->entry_count;
    file->blocks =
        (const struct gni_archive_block *)(const void *)(file->entries + file->entry_count);
    file->table_bytes = (size_t)table_size(file->header);
    if (!checksum_is_right(file))
        return "its table is damaged";
    return tables_are_right(file) ? NULL : "its table is not right";
}

static gn_status file_map(const char *path, const unsigned char **bytes, size_t *nbytes)
{
    struct stat info;
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    if (handle < 0)
        return gni_error(GN_ERROR_UNAVAILABLE, "%.300s: %s", path, strerror(errno));
    bool is_sized = fstat(handle, &info) == 0 && S_ISREG(info.st_mode) &&
                    info.st_size >= (off_t)sizeof(struct header) && info.st_size <= FILE_BYTES_MOST;
    void *mapped =
        is_sized ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, handle, 0) : MAP_FAILED;
    (void)close(handle);
    if (!is_sized)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "%.300s is no archive of kernels: its length is not right", path);
    if (mapped == MAP_FAILED)
        return gni_error(GN_ERROR_UNAVAILABLE, "%.300s cannot be mapped", path);
    *bytes = mapped;
    *nbytes = (size_t)info.st_size;
    return GN_OK;
}

gn_status gni_archive_file_open(const char *path, struct gni_archive_file **out)
{
    struct gni_archive_file *file = gni_host_alloc(sizeof *file);
    if (file == NULL)
        return gni_error_host_memory(sizeof *file);
    gn_status status = gni_zlib_open(&file->zlib);
    if (status == GN_OK)
        status = file_map(path, &file->bytes, &file->nbytes);
    if (status != GN_OK) {
        gni_host_free(file);
        return status;
    }
    const char *fault = file_check(file);
    if (fault != NULL) {
        gni_archive_file_close(file);
        return gni_error(GN_ERROR_INVALID_VALUE, "%.300s is no archive of kernels: %s", path,
                         fault);
    }
    *out = file;
    return GN_OK;
}

void gni_archive_file_close(struct gni_archive_file *file)
{
    if (file == NULL)
        return;
    (void)munmap((void *)(uintptr_t)file->bytes, file->nbytes);
    gni_host_free(file);
}

int gni_archive_file_nvrtc_version(const struct gni_archive_file *file)
{
    return (int)file->header->nvrtc_version;
}

size_t gni_archive_file_bytes(const struct gni_archive_file *file)
{
    return file->nbytes;
}

size_t gni_archive_file_entries(const struct gni_archive_file *file,
                                const struct gni_archive_entry **entries)
{
    *entries = file->entries;
    return file->entry_count;
}

/* ---- finding ------------------------------------------------------------------------------------ */

/* How good an entry is for a device: 0 is not at all. Any machine code is better than any PTX. Kernels are launched early
 * where the device can do that, and PTX for less than EARLY does not wait then (gni_launch.waits). */
static uint32_t entry_rank(const struct gni_archive_entry *entry, uint32_t architecture)
{
    uint32_t own = entry->target & ~(uint32_t)GNI_ARCHIVE_PTX;
    if (own > architecture)
        return 0;
    if ((entry->target & GNI_ARCHIVE_PTX) == 0)
        return own / 10 == architecture / 10 ? GNI_ARCHIVE_PTX + own : 0;
    return own < EARLY && architecture >= EARLY ? 0 : own;
}

/* The first entry of a key, or where it would be. */
static size_t key_place(const struct gni_archive_file *file, const struct gni_archive_key *key)
{
    size_t low = 0, high = file->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(&file->entries[middle].key, key, sizeof *key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct gni_archive_entry *gni_archive_file_find(const struct gni_archive_file *file,
                                                      const struct gni_archive_key *key,
                                                      int architecture)
{
    const struct gni_archive_entry *best = NULL;
    uint32_t best_rank = 0;
    for (size_t i = key_place(file, key); i < file->entry_count; i++) {
        const struct gni_archive_entry *entry = &file->entries[i];
        if (memcmp(&entry->key, key, sizeof *key) != 0)
            break;
        uint32_t rank = entry_rank(entry, (uint32_t)architecture);
        if (rank > best_rank) {
            best = entry;
            best_rank = rank;
        }
    }
    return best;
}

/* ---- unpacking ---------------------------------------------------------------------------------- */

/* What is left of the bytes of a block. */
struct reader {
    const unsigned char *commands, *commands_end;
    const unsigned char *literals, *literals_end;
};

/* A number of a command, as bytes; where there is none, more than any block has. */
static size_t command_read(struct reader *reader)
{
    uint32_t number = 0;
    for (unsigned shift = 0; shift < 28 && reader->commands < reader->commands_end; shift += 7) {
        unsigned char byte = *reader->commands++;
        number |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
    return UINT32_MAX;
}

/* Writes the first `end` bytes of a block, and what the last command makes beyond; never more than `most`. */
static bool block_expand(struct reader *reader, unsigned char *out, size_t end, size_t most)
{
    size_t at = 0;
    while (at < end) {
        size_t literals = command_read(reader);
        if (literals > most - at || literals > (size_t)(reader->literals_end - reader->literals))
            return false;
        memcpy(out + at, reader->literals, literals);
        reader->literals += literals;
        at += literals;
        size_t copied = command_read(reader), back = command_read(reader);
        if (copied > most - at || back > at || (copied > 0 && back == 0) || literals + copied == 0)
            return false;
        for (size_t end_of = at + copied; at < end_of;) { /* it may overlap what it makes */
            size_t part = end_of - at < back ? end_of - at : back;
            memcpy(out + at, out + at - back, part);
            at += part;
        }
    }
    return true;
}

/* Unpacks a block up to the end of an entry; `inflated` and `out` have room for all of it. */
static bool block_unpack(const struct gni_archive_file *file, const struct gni_archive_entry *entry,
                         unsigned char *inflated, unsigned char *out)
{
    const struct gni_archive_block *block = &file->blocks[entry->block];
    uint32_t command_bytes;
    unsigned long made = block->inflated_bytes;
    if (file->zlib->uncompress(inflated, &made, file->bytes + block->offset, block->packed_bytes) !=
            0 ||
        made != block->inflated_bytes)
        return false;
    memcpy(&command_bytes, inflated, sizeof command_bytes);
    if (command_bytes > made - sizeof command_bytes)
        return false;
    struct reader reader = {
        .commands = inflated + sizeof command_bytes,
        .literals_end = inflated + made,
    };
    reader.commands_end = reader.literals = reader.commands + command_bytes;
    return block_expand(&reader, out, (size_t)entry->start + entry->nbytes, block->nbytes);
}

gn_status gni_archive_file_unpack(const struct gni_archive_file *file,
                                  const struct gni_archive_entry *entry, void **out)
{
    const struct gni_archive_block *block = &file->blocks[entry->block];
    size_t nbytes = (size_t)block->inflated_bytes + block->nbytes; /* of memory between */
    unsigned char *inflated = gni_host_alloc(nbytes);
    char *bytes = gni_host_alloc(entry->nbytes);
    gn_status status = GN_OK;
    if (inflated == NULL || bytes == NULL) {
        status = gni_error_host_memory(nbytes);
    } else {
        unsigned char *images = inflated + block->inflated_bytes;
        bool is_right = block_unpack(file, entry, inflated, images);
        if (is_right)
            memcpy(bytes, images + entry->start, entry->nbytes);
        if (!is_right ||
            ((entry->target & GNI_ARCHIVE_PTX) != 0 && bytes[entry->nbytes - 1] != '\0'))
            status = gni_error(GN_ERROR_INVALID_VALUE, "a block of the archive is damaged");
    }
    gni_host_free(inflated);
    if (status != GN_OK) {
        gni_host_free(bytes);
        return status;
    }
    *out = bytes;
    return GN_OK;
}
