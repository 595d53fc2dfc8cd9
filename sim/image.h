/*
 * image.h: what the simulated NVRTC gives and the simulated driver loads, as bytes.
 *
 *   header | the kernel's shared object
 *
 * The header says how many bytes follow and has their hash, so that something else, or a part, is
 * told from a whole image before any of it is run. An image depends on nothing outside it but the C
 * library.
 */
#ifndef GNI_SIM_IMAGE_H
#define GNI_SIM_IMAGE_H

#include "base/sha256.h"

#include <stdbool.h>

#define SIM_IMAGE_MAGIC "GNSIMIMG"

/* How the text begins that stands for PTX; the image's key in the cache follows. */
#define SIM_PTX_HEAD "// Genesis simulated GPU: no PTX, but the cached kernel "

enum {
    SIM_IMAGE_VERSION = 2,
    SIM_IMAGE_MAX_BYTES = 1 << 28,
};

struct sim_image {
    char magic[8];
    uint32_t version;
    uint32_t bridge_version;
    uint32_t instrument; /* enum sim_instrument: code that is watched otherwise is not taken */
    uint32_t unused;     /* 0 */
    uint64_t nbytes;     /* of the object that follows */
    uint8_t digest[GNI_SHA256_BYTES];
};

/* Fills the header for an object. */
void sim_image_seal(struct sim_image *image, const void *object, size_t nbytes);

/* Whether a whole image stands there. The object's bytes are read only if the header is right. */
bool sim_image_is_valid(const void *image);

/* The same for a buffer of known size, which must be exactly one image. */
bool sim_image_fills(const void *bytes, size_t nbytes);

#endif
