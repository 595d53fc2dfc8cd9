/*
 * archive_file.h: a file of compiled kernels, found by what they were made from.
 *
 *     header     magic | format | NVRTC's version | number of entries and blocks | checksum | length of the file
 *     entries    key | target | block | place in it, sorted by key and target
 *     blocks     offset | lengths
 *     bytes      of the blocks, each compressed by itself
 *
 * A block holds the images (machine code or PTX) of several similar kernels, for one target. These have much in common,
 * and most of it is further away than zlib looks: so a block is first a list of commands to copy what came before,
 *
 *     u32 bytes of commands | commands | literals        all of it compressed by zlib
 *     command: three numbers, 7 bits a byte, low ones first: bytes of literals | bytes to copy | how many bytes back
 *
 * tools/kernel_archive.py writes the file when the package is built. Numbers are in the byte order of the machine.
 *
 * Invariants:
 *   AF1  a file that was opened is whole: its length, its checksum, the order of its entries and the bytes of each block
 *        were looked at. zlib keeps a checksum of each block, and unpacking looks at that;
 *   AF2  the file does not change while it is open: an installer replaces files, and does not write into them.
 *
 * Threads: any; an open file is read only.
 */
#ifndef GNI_JIT_ARCHIVE_FILE_H
#define GNI_JIT_ARCHIVE_FILE_H

#include "jit/source.h"

enum {
    GNI_ARCHIVE_KEY_BYTES = 16, /* of a SHA-256 */
    GNI_ARCHIVE_PTX = 1 << 16,  /* in a target, beside the architecture: PTX, else machine code */
};

struct gni_archive_file;

/* What an entry is found by: the kernel's name, its text, and the options. */
struct gni_archive_key {
    uint8_t bytes[GNI_ARCHIVE_KEY_BYTES];
};

struct gni_archive_entry {
    struct gni_archive_key key;
    uint32_t target; /* 90: machine code for sm_90; 90 | GNI_ARCHIVE_PTX: PTX for compute_90 */
    uint32_t block;
    uint32_t start; /* of the image in the block */
    uint32_t nbytes;
};

struct gni_archive_block {
    uint64_t offset;         /* from the beginning of the file */
    uint32_t packed_bytes;   /* in the file, */
    uint32_t inflated_bytes; /* commands and literals, */
    uint32_t nbytes;         /* and the images */
    uint32_t unused;         /* 0 */
};

void gni_archive_key_make(const struct gni_kernel_source *source, struct gni_archive_key *key);

/* GN_ERROR_UNAVAILABLE: there is no such file; GN_ERROR_INVALID_VALUE: it is not whole, or none of ours. */
gn_status gni_archive_file_open(const char *path, struct gni_archive_file **file) GN_NODISCARD;
void gni_archive_file_close(struct gni_archive_file *file);

/* Of the NVRTC that compiled all of it: 13000 is 13.0. */
int gni_archive_file_nvrtc_version(const struct gni_archive_file *file);

size_t gni_archive_file_bytes(const struct gni_archive_file *file);

/* Borrows the entries; gives their number. */
size_t gni_archive_file_entries(const struct gni_archive_file *file,
                                const struct gni_archive_entry **entries);

/*
 * The best entry for a device of an architecture (90: of compute capability 9.0), or NULL: machine code of the same major
 * version and the newest minor one that is not newer; else the newest PTX that is not newer than the device.
 */
const struct gni_archive_entry *gni_archive_file_find(const struct gni_archive_file *file,
                                                      const struct gni_archive_key *key,
                                                      int architecture);

/* Unpacks an entry to memory of gni_host_alloc(), which the caller owns then. */
gn_status gni_archive_file_unpack(const struct gni_archive_file *file,
                                  const struct gni_archive_entry *entry, void **bytes) GN_NODISCARD;

#endif
