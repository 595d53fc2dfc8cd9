/*
 * compiler.c: see compiler.h.
 *
 * The first guess of a process holds until NVRTC is loaded. Where it was wrong, the kernels that it does not
 * find are looked for again when NVRTC has been loaded to make them.
 */
#include "jit/compiler.h"

#include "base/host.h"
#include "base/thread.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"

#include <string.h>
#include <sys/stat.h>

/* Changes with what is hashed below, so that no entry is taken for another. */
#define KEY_FORMAT "genesis kernel 1"
#define RECORD_FORMAT "genesis compiler 1"

static struct gni_compiler first_guess;
static bool has_first_guess;
static struct gni_once guess_once = GNI_ONCE_INIT;
static atomic_bool is_loaded;

static bool file_read(const char *path, struct gni_compiler *compiler)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    compiler->file_bytes = (uint64_t)info.st_size;
    compiler->file_time_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return true;
}

static bool compiler_read(const struct gni_nvrtc *nvrtc, struct gni_compiler *compiler)
{
    *compiler = (struct gni_compiler){.version = nvrtc->version};
    return file_read(nvrtc->path, compiler);
}

/* ---- what is remembered --------------------------------------------------------------------- */

static void record_key(struct gni_disk_key *key)
{
    struct gni_sha256 hash;
    gni_sha256_init(&hash);
    gni_sha256_add_text(&hash, RECORD_FORMAT);
    gni_nvrtc_hash_search(&hash);
    gni_sha256_finish(&hash, key->digest);
}

/* An entry's bytes are the compiler, its label is the file. */
static bool record_find(struct gni_compiler *compiler)
{
    struct gni_disk_key key;
    struct gni_kernel_image record;
    struct gni_compiler now = {.version = 0};
    record_key(&key);
    if (!gni_disk_cache_find(&key, &record))
        return false;
    bool is_known = record.nbytes == sizeof *compiler && file_read(record.symbol, &now);
    if (is_known) {
        memcpy(compiler, record.bytes, sizeof *compiler);
        is_known =
            compiler->file_bytes == now.file_bytes && compiler->file_time_ns == now.file_time_ns;
    }
    gni_kernel_image_deinit(&record);
    return is_known;
}

static void record_store(const struct gni_nvrtc *nvrtc, const struct gni_compiler *compiler)
{
    struct gni_disk_key key;
    record_key(&key);
    gni_disk_cache_store(&key, nvrtc->path, compiler, sizeof *compiler);
}

/* ---- the compiler --------------------------------------------------------------------------- */

static void guess_make(void)
{
    const struct gni_nvrtc *nvrtc;
    has_first_guess = gni_nvrtc_find_loaded(&nvrtc) ? compiler_read(nvrtc, &first_guess)
                                                    : record_find(&first_guess);
}

bool gni_compiler_guess(struct gni_compiler *compiler)
{
    const struct gni_nvrtc *nvrtc;
    if (atomic_load(&is_loaded) && gni_nvrtc_open(&nvrtc) == GN_OK)
        return compiler_read(nvrtc, compiler);
    gni_once_run(&guess_once, guess_make);
    if (has_first_guess)
        *compiler = first_guess;
    return has_first_guess;
}

gn_status gni_compiler_load(struct gni_compiler *compiler)
{
    const struct gni_nvrtc *nvrtc;
    struct gni_compiler before = {.version = 0}, now = {.version = 0};
    bool has_before = gni_compiler_guess(&before);
    GN_TRY(gni_nvrtc_open(&nvrtc));
    if (!compiler_read(nvrtc, &now))
        return gni_error(GN_ERROR_UNAVAILABLE, "NVRTC was loaded from %s, which is not there now",
                         nvrtc->path);
    if (!has_before || memcmp(&before, &now, sizeof now) != 0)
        record_store(nvrtc, &now);
    atomic_store(&is_loaded, true);
    *compiler = now;
    return GN_OK;
}

void gni_compiler_key(const struct gni_compiler *compiler, int architecture,
                      const struct gni_kernel_source *source, struct gni_disk_key *key)
{
    const struct gni_cuda_driver *driver;
    struct gni_sha256 hash;
    gni_sha256_init(&hash);
    gni_sha256_add_text(&hash, KEY_FORMAT);
    gni_sha256_add(&hash, compiler, sizeof *compiler);
    gni_sha256_add(&hash, &architecture, sizeof architecture);
    if (gni_cuda_driver_open(&driver) == GN_OK) {
        const char *slash = strrchr(driver->path, '/');
        gni_sha256_add(&hash, &driver->version, sizeof driver->version);
        gni_sha256_add_text(&hash, slash != NULL ? slash + 1 : driver->path);
    }
    const char *piece;
    for (size_t i = 0; (piece = gni_kernel_source_piece(source, i)) != NULL; i++)
        gni_sha256_add_text(&hash, piece);
    gni_sha256_finish(&hash, key->digest);
}
