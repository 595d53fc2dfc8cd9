/*
 * image.c: see image.h.
 */
#include "image.h"
#include "bridge.h"
#include "compile.h"

#include <string.h>

static void digest_make(const void *object, size_t nbytes, uint8_t digest[GNI_SHA256_BYTES])
{
    struct gni_sha256 hash;
    gni_sha256_init(&hash);
    gni_sha256_add(&hash, object, nbytes);
    gni_sha256_finish(&hash, digest);
}

void sim_image_seal(struct sim_image *image, const void *object, size_t nbytes)
{
    memset(image, 0, sizeof *image);
    memcpy(image->magic, SIM_IMAGE_MAGIC, sizeof image->magic);
    image->version = SIM_IMAGE_VERSION;
    image->bridge_version = GN_SIM_BRIDGE_VERSION;
    image->instrument = (uint32_t)sim_compile_instrument();
    image->nbytes = nbytes;
    digest_make(object, nbytes, image->digest);
}

static bool header_is_valid(const struct sim_image *header)
{
    return header->version == SIM_IMAGE_VERSION &&
           header->bridge_version == GN_SIM_BRIDGE_VERSION &&
           header->instrument == (uint32_t)sim_compile_instrument() && header->nbytes > 0 &&
           header->nbytes <= SIM_IMAGE_MAX_BYTES;
}

bool sim_image_is_valid(const void *image)
{
    struct sim_image header;
    uint8_t digest[GNI_SHA256_BYTES];
    /* A foreign image may be shorter than our header, but not if it begins like one of ours. */
    for (size_t i = 0; i < sizeof header.magic; i++)
        if (((const char *)image)[i] != SIM_IMAGE_MAGIC[i])
            return false;
    memcpy(&header, image, sizeof header);
    if (!header_is_valid(&header))
        return false;
    digest_make((const char *)image + sizeof header, (size_t)header.nbytes, digest);
    return memcmp(digest, header.digest, sizeof digest) == 0;
}

bool sim_image_fills(const void *bytes, size_t nbytes)
{
    struct sim_image header;
    if (nbytes < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    return header.nbytes == nbytes - sizeof header && sim_image_is_valid(bytes);
}
