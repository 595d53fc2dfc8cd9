/*
 * sha256.c: SHA-256 as FIPS 180-4 describes it. See sha256.h.
 */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t initial[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t value, int count)
{
    return value >> count | value << (32 - count);
}

static void schedule_fill(const uint8_t *block, uint32_t words[64])
{
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + words[i - 7] +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void block_mix(uint32_t state[8], const uint8_t *block)
{
    uint32_t words[64];
    schedule_fill(block, words);
    /* Eight variables, not an array: the compiler keeps them in registers. */
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        uint32_t first =
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + constants[i] + words[i];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += mixed[i];
}

void gni_sha256_init(struct gni_sha256 *hash)
{
    memset(hash, 0, sizeof *hash);
    memcpy(hash->state, initial, sizeof initial);
}

void gni_sha256_add(struct gni_sha256 *hash, const void *bytes, size_t nbytes)
{
    const uint8_t *from = bytes;
    while (nbytes > 0) {
        size_t filled = hash->length % sizeof hash->block;
        size_t count = sizeof hash->block - filled;
        if (count > nbytes)
            count = nbytes;
        memcpy(hash->block + filled, from, count);
        hash->length += count;
        from += count;
        nbytes -= count;
        if (filled + count == sizeof hash->block)
            block_mix(hash->state, hash->block);
    }
}

void gni_sha256_finish(struct gni_sha256 *hash, uint8_t digest[GNI_SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->length * 8;
    uint8_t tail[8];
    for (int i = 0; i < 8; i++)
        tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    size_t filled = hash->length % 64;
    gni_sha256_add(hash, padding, filled < 56 ? 56 - filled : 120 - filled);
    gni_sha256_add(hash, tail, sizeof tail);
    for (int i = 0; i < GNI_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void gni_sha256_add_text(struct gni_sha256 *hash, const char *text)
{
    uint64_t length = strlen(text);
    gni_sha256_add(hash, &length, sizeof length);
    gni_sha256_add(hash, text, length);
}

void gni_sha256_text(const uint8_t digest[GNI_SHA256_BYTES], char text[GNI_SHA256_TEXT_BYTES])
{
    for (int i = 0; i < GNI_SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}
