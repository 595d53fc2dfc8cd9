/*
 * sha256.h: SHA-256, the hash that names compiled kernels.
 *
 * A cache entry is code, and is found by the hash of everything that went into it, so two inputs
 * must never share a name. The digest of an image's bytes also tells a damaged file from a whole
 * one.
 *
 *     struct gni_sha256 hash;
 *     gni_sha256_init(&hash);
 *     gni_sha256_add(&hash, bytes, nbytes);
 *     gni_sha256_finish(&hash, digest);
 *
 * Threads: a struct belongs to one thread.
 */
#ifndef GNI_BASE_SHA256_H
#define GNI_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
    GNI_SHA256_BYTES = 32,
    GNI_SHA256_TEXT_BYTES = 2 * GNI_SHA256_BYTES + 1, /* in hexadecimal, with the final NUL */
};

struct gni_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    uint8_t block[64];
};

void gni_sha256_init(struct gni_sha256 *hash);
void gni_sha256_add(struct gni_sha256 *hash, const void *bytes, size_t nbytes);
void gni_sha256_finish(struct gni_sha256 *hash, uint8_t digest[GNI_SHA256_BYTES]);

/* Adds a text with its length first, so that "ab","c" and "a","bc" differ. */
void gni_sha256_add_text(struct gni_sha256 *hash, const char *text);

void gni_sha256_text(const uint8_t digest[GNI_SHA256_BYTES], char text[GNI_SHA256_TEXT_BYTES]);

#endif
