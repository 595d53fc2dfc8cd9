/*
 * zlib.h: the two functions of zlib that unpack the archive of kernels, from the system's libz.so.1, which is loaded when an
 * archive is opened: nothing is linked, and nothing is needed to build.
 *
 * Threads: any.
 */
#ifndef GNI_JIT_ZLIB_H
#define GNI_JIT_ZLIB_H

#include "genesis/base.h"

/* Declared as in zlib 1.2.7 and later: uLong is unsigned long, and uInt unsigned int. */
struct gni_zlib {
    unsigned long (*crc32)(unsigned long sum, const unsigned char *bytes, unsigned count);
    int (*uncompress)(unsigned char *to, unsigned long *to_bytes, const unsigned char *from,
                      unsigned long from_bytes); /* 0: it worked */
};

/* Borrows the functions. GN_ERROR_UNAVAILABLE: there is no zlib. */
gn_status gni_zlib_open(const struct gni_zlib **zlib) GN_NODISCARD;

#endif
