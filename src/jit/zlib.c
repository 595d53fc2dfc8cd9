/*
 * zlib.c: see zlib.h.
 */
#include "jit/zlib.h"

#include "base/error.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <string.h>

#define ZLIB_NAME "libz.so.1"

static struct gni_zlib functions;
static bool is_found;
static struct gni_once zlib_once = GNI_ONCE_INIT;

/* ISO C has no cast from an address of data to one of a function. */
static bool symbol_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void zlib_load(void)
{
    void *library = dlopen(ZLIB_NAME, RTLD_NOW | RTLD_LOCAL);
    is_found = library != NULL && symbol_find(library, "crc32", &functions.crc32) &&
               symbol_find(library, "uncompress", &functions.uncompress);
}

gn_status gni_zlib_open(const struct gni_zlib **zlib)
{
    gni_once_run(&zlib_once, zlib_load);
    if (!is_found)
        return gni_error(GN_ERROR_UNAVAILABLE, "%s is not there: install zlib", ZLIB_NAME);
    *zlib = &functions;
    return GN_OK;
}
