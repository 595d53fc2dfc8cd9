/*
 * test_archive.c: the archive of compiled kernels: files with made-up images, damaged and hostile ones, which entry a
 * device gets, where the file is looked for, and, on the simulator, kernels that come from it.
 *
 * The options are read once in a process, so that cases about them are children.
 */
#include "child.h"

#include "base/host.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"
#include "jit/archive.h"
#include "jit/archive_file.h"
#include "jit/kernel.h"
#include "jit/nvrtc.h"
#include "jit/zlib.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    HEADER_BYTES = 40, /* of the format: archive_file.c */
    HEADER_FORMAT_AT = 8,
    HEADER_COUNT_AT = 16,
    HEADER_CHECKSUM_AT = 24,
    HEADER_LENGTH_AT = 32,
    BLOCK_BEGIN = 10, /* of its literals: block_make() */
    FILE_MOST = 1 << 20,
    USUAL_COUNT = 10, /* images of usual_make() */
    USUAL_TABLE = HEADER_BYTES + USUAL_COUNT * (int)(sizeof(struct gni_archive_entry) +
                                                     sizeof(struct gni_archive_block)),
    NVRTC_VERSION = 13000,
};

/* What a file is made of; in the order of the file. */
struct image {
    const char *name; /* of the kernel, whose text is the word "text" */
    uint32_t target;
    const void *bytes;
    size_t nbytes;
    struct gni_archive_key key;
};

static char root[] = "/tmp/genesis-archive-XXXXXX";
static char path[64];
static unsigned char file_bytes[FILE_MOST];
static size_t file_length;
static const struct gni_zlib *zlib;

/* zlib's, which is loaded as the library does it. */
static int (*compress2)(unsigned char *to, unsigned long *to_bytes, const unsigned char *from,
                        unsigned long from_bytes, int level);

/* ---- writing ---------------------------------------------------------------------------------- */

static struct gni_kernel_source source_of(const char *name)
{
    return (struct gni_kernel_source){.name = name, .text = "text"};
}

static int image_compare(const void *a, const void *b)
{
    const struct image *first = a, *second = b;
    int order = memcmp(&first->key, &second->key, sizeof first->key);
    return order != 0 ? order : (first->target > second->target) - (first->target < second->target);
}

static void checksum_write(void)
{
    uint32_t counts[2], zero = 0, sum;
    memcpy(counts, file_bytes + HEADER_COUNT_AT, sizeof counts);
    memcpy(file_bytes + HEADER_CHECKSUM_AT, &zero, sizeof zero);
    size_t nbytes = HEADER_BYTES + (size_t)counts[0] * sizeof(struct gni_archive_entry) +
                    (size_t)counts[1] * sizeof(struct gni_archive_block);
    sum = (uint32_t)zlib->crc32(0, file_bytes,
                                (unsigned)(nbytes < file_length ? nbytes : file_length));
    memcpy(file_bytes + HEADER_CHECKSUM_AT, &sum, sizeof sum);
}

static void file_write(size_t nbytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, file_bytes, nbytes) == (ssize_t)nbytes);
    (void)close(file);
}

static void header_write(uint32_t entries, uint32_t blocks, uint32_t version)
{
    uint32_t words[6] = {1, version, entries, blocks};
    uint64_t length = file_length;
    memcpy(file_bytes, "GNARCHIV", 8);
    memcpy(file_bytes + HEADER_FORMAT_AT, words, sizeof words);
    memcpy(file_bytes + HEADER_LENGTH_AT, &length, sizeof length);
    checksum_write();
    file_write(file_length);
}

/* A block of an image by itself: one command, and literals. Gives what it has before zlib. */
static size_t block_make(const struct image *image, unsigned char *inflated)
{
    uint32_t bytes = (uint32_t)image->nbytes;
    const unsigned char commands[] = {(unsigned char)(bytes | 0x80),
                                      (unsigned char)(bytes >> 7 | 0x80),
                                      (unsigned char)(bytes >> 14 | 0x80),
                                      (unsigned char)(bytes >> 21),
                                      0,
                                      0};
    const uint32_t command_bytes = sizeof commands;
    memcpy(inflated, &command_bytes, sizeof command_bytes);
    memcpy(inflated + sizeof command_bytes, commands, sizeof commands);
    memcpy(inflated + BLOCK_BEGIN, image->bytes, image->nbytes);
    return BLOCK_BEGIN + image->nbytes;
}

/* Makes a file with a block for each image. */
static void archive_make(struct image *images, uint32_t count, uint32_t version)
{
    static unsigned char inflated[FILE_MOST];
    size_t blocks = HEADER_BYTES + count * sizeof(struct gni_archive_entry);
    size_t at = blocks + count * sizeof(struct gni_archive_block);
    if (count > 0)
        qsort(images, count, sizeof *images, image_compare);
    for (uint32_t i = 0; i < count; i++) {
        unsigned long packed = (unsigned long)(sizeof file_bytes - at);
        size_t nbytes = block_make(&images[i], inflated);
        CHECK(compress2(file_bytes + at, &packed, inflated, (unsigned long)nbytes, 9) == 0);
        struct gni_archive_entry entry = {.key = images[i].key,
                                          .target = images[i].target,
                                          .block = i,
                                          .nbytes = (uint32_t)images[i].nbytes};
        struct gni_archive_block block = {.offset = at,
                                          .packed_bytes = (uint32_t)packed,
                                          .inflated_bytes = (uint32_t)nbytes,
                                          .nbytes = (uint32_t)(nbytes - BLOCK_BEGIN)};
        memcpy(file_bytes + HEADER_BYTES + i * sizeof entry, &entry, sizeof entry);
        memcpy(file_bytes + blocks + i * sizeof block, &block, sizeof block);
        at += packed;
    }
    file_length = at;
    header_write(count, count, version);
}

static struct image image_of(const char *name, uint32_t target, const char *text)
{
    struct image image = {
        .name = name, .target = target, .bytes = text, .nbytes = strlen(text) + 1};
    struct gni_kernel_source source = source_of(name);
    gni_archive_key_make(&source, &image.key);
    return image;
}

/* Some kernels for several targets. */
static void usual_make(void)
{
    struct image images[] = {
        image_of("one", 75, "one for sm_75"),
        image_of("one", 80, "one for sm_80"),
        image_of("one", 86, "one for sm_86"),
        image_of("one", 90, "one for sm_90"),
        image_of("one", 100, "one for sm_100"),
        image_of("one", 75 | GNI_ARCHIVE_PTX, "one for compute_75"),
        image_of("one", 90 | GNI_ARCHIVE_PTX, "one for compute_90"),
        image_of("two", 90, "two for sm_90"),
        image_of("three", 80 | GNI_ARCHIVE_PTX, "three for compute_80"),
        image_of("four", 90, "four for sm_90"),
    };
    archive_make(images, sizeof images / sizeof *images, NVRTC_VERSION);
}

/* ---- finding ---------------------------------------------------------------------------------- */

static const struct gni_archive_entry *entry_of(const struct gni_archive_file *file,
                                                const char *name, int architecture)
{
    struct gni_archive_key key;
    struct gni_kernel_source source = source_of(name);
    gni_archive_key_make(&source, &key);
    return gni_archive_file_find(file, &key, architecture);
}

/* A device of the architecture gets the image with this text; NULL: none. */
static void check_found(const struct gni_archive_file *file, const char *name, int architecture,
                        const char *text)
{
    void *bytes = NULL;
    const struct gni_archive_entry *entry = entry_of(file, name, architecture);
    CHECK((entry != NULL) == (text != NULL));
    if (entry == NULL || text == NULL)
        return;
    CHECK_OK(gni_archive_file_unpack(file, entry, &bytes));
    CHECK_U64(entry->nbytes, strlen(text) + 1);
    CHECK_TEXT(bytes, text);
    gni_host_free(bytes);
}

static void test_devices_get_the_best_image(void)
{
    struct gni_archive_file *file = NULL;
    const struct gni_archive_entry *entries;
    usual_make();
    CHECK_OK(gni_archive_file_open(path, &file));
    CHECK_U64(gni_archive_file_entries(file, &entries), USUAL_COUNT);
    CHECK_U64(gni_archive_file_nvrtc_version(file), NVRTC_VERSION);
    CHECK_U64(gni_archive_file_bytes(file), file_length);
    check_found(file, "one", 75, "one for sm_75");
    check_found(file, "one", 70, NULL);
    check_found(file, "one", 80, "one for sm_80");
    check_found(file, "one", 85, "one for sm_80");
    check_found(file, "one", 86, "one for sm_86");
    check_found(file, "one", 89, "one for sm_86");
    check_found(file, "one", 90, "one for sm_90");
    check_found(file, "one", 103, "one for sm_100");
    check_found(file, "one", 120, "one for compute_90"); /* another major version */
    check_found(file, "two", 90, "two for sm_90");
    check_found(file, "two", 89, NULL);
    check_found(file, "two", 120, NULL);
    check_found(file, "three", 75, NULL);
    check_found(file, "three", 89, "three for compute_80");
    check_found(file, "three", 90, NULL); /* it would not wait where it is launched early */
    check_found(file, "four", 90, "four for sm_90");
    check_found(file, "five", 90, NULL);
    gni_archive_file_close(file);
    gni_archive_file_close(NULL);
}

static void test_keys_are_of_all_that_matters(void)
{
    static const char *const options[] = {"--std=c++17", "--fmad=false", "-DN=1", NULL};
    struct gni_kernel_source source = source_of("one");
    struct gni_archive_key key, other;
    gni_archive_key_make(&source, &key);
    gni_archive_key_make(&source, &other);
    CHECK(memcmp(&key, &other, sizeof key) == 0);
    source.name = "two";
    gni_archive_key_make(&source, &other);
    CHECK(memcmp(&key, &other, sizeof key) != 0);
    source = source_of("one");
    source.text = "text ";
    gni_archive_key_make(&source, &other);
    CHECK(memcmp(&key, &other, sizeof key) != 0);
    source = source_of("one");
    source.options = options;
    gni_archive_key_make(&source, &other);
    CHECK(memcmp(&key, &other, sizeof key) != 0);
}

static void test_an_archive_without_kernels(void)
{
    struct gni_archive_file *file = NULL;
    archive_make(NULL, 0, NVRTC_VERSION);
    CHECK_OK(gni_archive_file_open(path, &file));
    check_found(file, "one", 90, NULL);
    gni_archive_file_close(file);
}

/* ---- files that are not right ------------------------------------------------------------------- */

static void test_no_file(void)
{
    struct gni_archive_file *file = NULL;
    CHECK_STATUS(gni_archive_file_open("/nowhere/at.all", &file), GN_ERROR_UNAVAILABLE);
    CHECK_DETAIL("No such file");
    CHECK_STATUS(gni_archive_file_open(root, &file), GN_ERROR_INVALID_VALUE);
    file_write(0);
    CHECK_STATUS(gni_archive_file_open(path, &file), GN_ERROR_INVALID_VALUE);
    CHECK(file == NULL);
}

static void test_truncated_files(void)
{
    struct gni_archive_file *file = NULL;
    usual_make();
    for (size_t length = 0; length < file_length; length++) {
        file_write(length);
        CHECK_STATUS(gni_archive_file_open(path, &file), GN_ERROR_INVALID_VALUE);
    }
    file_bytes[file_length] = 0;
    file_write(file_length + 1);
    CHECK_STATUS(gni_archive_file_open(path, &file), GN_ERROR_INVALID_VALUE);
    CHECK(file == NULL);
}

/* Looks for everything in a file that may be anything: what is found must be right, unless the table lies. */
static void file_try(bool is_honest)
{
    static const char *const names[] = {"one", "two", "three", "four"};
    static const int architectures[] = {75, 80, 86, 90, 100, 120};
    struct gni_archive_file *file;
    if (gni_archive_file_open(path, &file) != GN_OK)
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof architectures / sizeof *architectures; k++) {
            void *bytes;
            const struct gni_archive_entry *entry = entry_of(file, names[i], architectures[k]);
            if (entry == NULL || gni_archive_file_unpack(file, entry, &bytes) != GN_OK)
                continue;
            if (is_honest)
                CHECK(strncmp(bytes, names[i], strlen(names[i])) == 0);
            gni_host_free(bytes);
        }
    gni_archive_file_close(file);
}

static void test_damaged_files(void)
{
    struct gni_archive_file *file = NULL;
    usual_make();
    for (size_t at = 0; at < file_length; at++)
        for (size_t bit = at % 4; bit < 8; bit += 4) {
            file_bytes[at] ^= (unsigned char)(1 << bit);
            file_write(file_length);
            if (at < USUAL_TABLE)
                CHECK_STATUS(gni_archive_file_open(path, &file), GN_ERROR_INVALID_VALUE);
            else
                file_try(true);
            file_bytes[at] ^= (unsigned char)(1 << bit);
        }
}

/* A table that lies, with a checksum that is right. */
static void test_hostile_files(void)
{
    static unsigned char whole[FILE_MOST];
    uint64_t random = 4711;
    usual_make();
    memcpy(whole, file_bytes, file_length);
    for (int i = 0; i < 1000; i++) {
        memcpy(file_bytes, whole, file_length);
        for (int k = 0; k < 1 + i % 3; k++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t at = HEADER_COUNT_AT + (size_t)(random >> 33) % (USUAL_TABLE - HEADER_COUNT_AT);
            file_bytes[at] = (unsigned char)(random >> 56);
        }
        checksum_write();
        file_write(file_length);
        file_try(false);
    }
}

#define REFUSED(type, at, field, value)                                           \
    do {                                                                          \
        struct gni_archive_file *file = NULL;                                     \
        type whole, changed;                                                      \
        memcpy(&whole, file_bytes + (at), sizeof whole);                          \
        changed = whole;                                                          \
        changed.field = (value);                                                  \
        memcpy(file_bytes + (at), &changed, sizeof changed);                      \
        checksum_write();                                                         \
        file_write(file_length);                                                  \
        CHECK_STATUS(gni_archive_file_open(path, &file), GN_ERROR_INVALID_VALUE); \
        CHECK_DETAIL("its table is not right");                                   \
        memcpy(file_bytes + (at), &whole, sizeof whole);                          \
    } while (0)

#define ENTRY_REFUSED(field, value) REFUSED(struct gni_archive_entry, HEADER_BYTES, field, value)

static void test_entries_that_lie(void)
{
    usual_make();
    ENTRY_REFUSED(block, USUAL_COUNT);
    ENTRY_REFUSED(start, 4096);
    ENTRY_REFUSED(start, UINT32_MAX);
    ENTRY_REFUSED(nbytes, 0);
    ENTRY_REFUSED(nbytes, UINT32_MAX);
    ENTRY_REFUSED(target, 0);
    ENTRY_REFUSED(target, UINT32_MAX);
    ENTRY_REFUSED(key.bytes[0], 0xff); /* the order */
}

#define BLOCK_REFUSED(field, value)   \
    REFUSED(struct gni_archive_block, \
            HEADER_BYTES + USUAL_COUNT * sizeof(struct gni_archive_entry), field, value)

static void test_blocks_that_lie(void)
{
    usual_make();
    BLOCK_REFUSED(offset, 0);
    BLOCK_REFUSED(offset, file_length);
    BLOCK_REFUSED(offset, UINT64_MAX);
    BLOCK_REFUSED(packed_bytes, UINT32_MAX);
    BLOCK_REFUSED(inflated_bytes, 0);
    BLOCK_REFUSED(inflated_bytes, UINT32_MAX);
    BLOCK_REFUSED(nbytes, 1);
    BLOCK_REFUSED(nbytes, UINT32_MAX - 15);
}

/* ---- blocks ------------------------------------------------------------------------------------- */

/* Makes a file of one image, whose block has these commands and literals. */
static void single_make(const char *commands, size_t command_bytes, const char *literals,
                        size_t nbytes)
{
    unsigned char inflated[256];
    struct image image = image_of("one", 90, "");
    uint32_t length = (uint32_t)command_bytes;
    size_t blocks = HEADER_BYTES + sizeof(struct gni_archive_entry);
    size_t at = blocks + sizeof(struct gni_archive_block);
    size_t total = sizeof length + command_bytes + strlen(literals);
    memcpy(inflated, &length, sizeof length);
    memcpy(inflated + sizeof length, commands, command_bytes);
    memcpy(inflated + sizeof length + command_bytes, literals, strlen(literals));
    unsigned long packed = (unsigned long)(sizeof file_bytes - at);
    CHECK(compress2(file_bytes + at, &packed, inflated, (unsigned long)total, 9) == 0);
    struct gni_archive_entry entry = {
        .key = image.key, .target = image.target, .nbytes = (uint32_t)nbytes};
    struct gni_archive_block block = {.offset = at,
                                      .packed_bytes = (uint32_t)packed,
                                      .inflated_bytes = (uint32_t)total,
                                      .nbytes = (uint32_t)nbytes};
    memcpy(file_bytes + HEADER_BYTES, &entry, sizeof entry);
    memcpy(file_bytes + blocks, &block, sizeof block);
    file_length = at + packed;
    header_write(1, 1, NVRTC_VERSION);
}

/* The file's image unpacks to `expected`, or not at all if that is NULL. */
static void check_single(const char *expected)
{
    struct gni_archive_file *file = NULL;
    void *bytes = NULL;
    CHECK_OK(gni_archive_file_open(path, &file));
    const struct gni_archive_entry *entry = entry_of(file, "one", 90);
    CHECK_STATUS(gni_archive_file_unpack(file, entry, &bytes),
                 expected != NULL ? GN_OK : GN_ERROR_INVALID_VALUE);
    CHECK((bytes != NULL) == (expected != NULL));
    if (bytes != NULL && expected != NULL)
        CHECK(memcmp(bytes, expected, entry->nbytes) == 0);
    gni_host_free(bytes);
    gni_archive_file_close(file);
}

#define BLOCK(commands, literals, nbytes, expected)                \
    single_make(commands, sizeof(commands) - 1, literals, nbytes); \
    check_single(expected)

static void test_blocks(void)
{
    BLOCK("\2\0\0", "ab", 2, "ab");
    BLOCK("\2\2\2", "ab", 4, "abab");
    BLOCK("\2\3\1", "ab", 5, "abbbb"); /* a copy that overlaps */
    BLOCK("\3\4\2", "abc", 7, "abcbcbc");
    BLOCK("\1\1\1\1\2\3", "ab", 5, "aabaa");
    BLOCK("\x81\0\x81\0\1", "a", 2, "aa");               /* longer numbers than need be */
    BLOCK("\1\0\0", "ab", 2, NULL);                      /* commands end before the images do */
    BLOCK("", "a", 1, NULL);                             /* no command */
    BLOCK("\0\0\0", "a", 1, NULL);                       /* one that does nothing */
    BLOCK("\3\0\0", "ab", 2, NULL);                      /* more literals than there are */
    BLOCK("\1\2\1", "a", 2, NULL);                       /* a copy beyond the end */
    BLOCK("\1\1\2", "a", 2, NULL);                       /* from before the beginning */
    BLOCK("\1\1\0", "a", 2, NULL);                       /* of itself */
    BLOCK("\xff\xff\xff\xff\xff\xff\xff", "a", 1, NULL); /* a number without an end */
}

static void test_ptx_ends(void)
{
    struct gni_archive_file *file = NULL;
    void *bytes = NULL;
    struct image image = image_of("one", 90 | GNI_ARCHIVE_PTX, "text");
    image.nbytes--; /* the final NUL */
    archive_make(&image, 1, NVRTC_VERSION);
    CHECK_OK(gni_archive_file_open(path, &file));
    CHECK_STATUS(gni_archive_file_unpack(file, entry_of(file, "one", 90), &bytes),
                 GN_ERROR_INVALID_VALUE);
    CHECK(bytes == NULL);
    gni_archive_file_close(file);
}

static void test_host_memory_faults(void)
{
    struct gni_archive_file *file = NULL;
    struct gni_kernel_image image = {.bytes = NULL};
    struct gni_kernel_source source = source_of("one");
    usual_make();
    gni_host_fail_after(1);
    CHECK_STATUS(gni_archive_file_open(path, &file), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    CHECK_OK(gni_archive_file_open(path, &file));
    gni_archive_use(file);
    size_t live = gni_host_live_count();
    for (int nth = 1; nth <= 3; nth++) {
        gni_host_fail_after(nth);
        CHECK(!gni_archive_find(&source, 90, &image));
        gni_host_fail_after(-1);
        CHECK_U64(gni_host_live_count(), live);
    }
    CHECK(gni_archive_find(&source, 90, &image));
    CHECK_TEXT(image.symbol, "one");
    CHECK_TEXT(image.bytes, "one for sm_90");
    gni_kernel_image_deinit(&image);
    source.is_expression = true;
    CHECK(!gni_archive_find(&source, 90, &image));
    gni_archive_use(NULL);
    gni_archive_file_close(file);
}

/* ---- where it is looked for -------------------------------------------------------------------- */

/* What a child finds out: the words of the reason, and whether the file was found and is used. */
struct expectation {
    const char *archive, *driver, *version; /* variables */
    bool is_found, is_used;
    const char *reason;
};

static void description_body(void *context)
{
    const struct expectation *expected = context;
    gn_kernel_archive_description found = {.is_used = !expected->is_used};
    gn_kernel_archive_describe(NULL);
    gn_kernel_archive_describe(&found);
    CHECK(found.is_found == expected->is_found);
    CHECK(found.is_used == expected->is_used);
    CHECK(strstr(found.reason, expected->reason) != NULL);
    if (strstr(found.reason, expected->reason) == NULL)
        fprintf(stderr, "the reason: %s\n", found.reason);
    CHECK_U64(gni_archive_nvrtc_version(), expected->is_used ? NVRTC_VERSION : 0);
    if (found.is_found) {
        CHECK_TEXT(found.path, path);
        CHECK_TEXT(found.architectures,
                   "sm_75 sm_80 sm_86 sm_90 sm_100 compute_75 compute_80 compute_90");
        CHECK_U64(found.nvrtc_version, NVRTC_VERSION);
        CHECK_U64(found.kernel_count, 4);
        CHECK_U64(found.nbytes, file_length);
    }
}

static void check_description(struct expectation expected, int warnings)
{
    static struct child_result result;
    (void)setenv("GENESIS_KERNEL_ARCHIVE", expected.archive, 1);
    (void)setenv("GENESIS_CUDA_DRIVER", expected.driver, 1);
    (void)setenv("FAKE_CUDA_VERSION", expected.version, 1);
    child_run(description_body, &expected, &result);
    (void)child_is_ok(&result);
    CHECK_U64(child_count(&result, "warning"), warnings);
}

static void test_where_it_is_looked_for(void)
{
    const char *fake = GENESIS_FAKE_DIRECTORY "/libgenesis_fake.so";
    const char *own = GENESIS_FAKE_DIRECTORY "/libgenesis_fake_with_part.so";
    usual_make();
    check_description((struct expectation){path, fake, "13000", true, true, ""}, 0);
    check_description((struct expectation){path, fake, "13020", true, true, ""}, 0);
    check_description((struct expectation){path, fake, "12080", true, false, "newer driver"}, 0);
    check_description(
        (struct expectation){path, own, "13000", true, false, "has a compiler of its own"}, 0);
    check_description(
        (struct expectation){path, "/nowhere/libcuda.so", "13000", true, false, "no driver"}, 0);
    check_description(
        (struct expectation){"off", fake, "13000", false, false, "GENESIS_KERNEL_ARCHIVE=off"}, 0);
    check_description(
        (struct expectation){"/nowhere/at.all", fake, "13000", false, false, "No such file"}, 1);
    check_description(
        (struct expectation){"auto", fake, "13000", false, false, "libgenesis.kernels"}, 1);
    check_description(
        (struct expectation){"elsewhere", fake, "13000", false, false, "libgenesis.kernels"}, 2);
    file_bytes[0] ^= 1;
    file_write(file_length);
    check_description(
        (struct expectation){path, fake, "13000", false, false, "header is not right"}, 1);
    (void)unsetenv("GENESIS_KERNEL_ARCHIVE");
    check_description((struct expectation){"", fake, "13000", false, false, "libgenesis.kernels"},
                      0);
}

/* With the archive, kernels need nothing but the driver. */
static void compiler_body(void *context)
{
    struct gni_kernel_source source = source_of("one");
    struct gni_kernel *kernel = NULL;
    const struct gni_nvrtc *nvrtc = NULL;
    gn_device *fake;
    (void)context;
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &fake));
    CHECK(gni_archive_has(fake, &source));
    CHECK_OK(gni_kernel_get(fake, &source, &kernel));
    CHECK(kernel != NULL && strcmp(kernel->name, "one") == 0);
    CHECK(!gni_nvrtc_find_loaded(&nvrtc));
    source = source_of("two"); /* the driver does not take its image, and nothing can compile it */
    CHECK(gni_kernel_get(fake, &source, &kernel) != GN_OK);
}

static void test_no_compiler_is_needed(void)
{
    static struct child_result result;
    struct image images[] = {image_of("one", 90, "fake:one"), image_of("two", 90, "nothing")};
    archive_make(images, 2, NVRTC_VERSION);
    (void)setenv("GENESIS_KERNEL_ARCHIVE", path, 1);
    (void)setenv("GENESIS_CUDA_DRIVER", GENESIS_FAKE_DIRECTORY "/libgenesis_fake.so", 1);
    (void)setenv("GENESIS_KERNEL_CACHE_DIR", root, 1);
    (void)setenv("FAKE_CUDA_VERSION", "13000", 1);
    child_run(compiler_body, NULL, &result);
    (void)child_is_ok(&result);
}

/* ---- kernels, on the simulator ------------------------------------------------------------------ */

#define KERNEL_TEXT(operator)                                              \
    "extern \"C\" __global__ void change(float *x, float number, int n)\n" \
    "{\n"                                                                  \
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"                 \
    "    if (i < n)\n"                                                     \
    "        x[i] "                                                        \
    operator" number;\n"                                                   \
            "}\n"

static gn_device *device;

/* What change() makes of 5 and 3. */
static float changed(const struct gni_kernel_source *source)
{
    struct gni_kernel *kernel = NULL;
    gn_memory_manager *manager;
    gn_stream *stream;
    float number = 3, x = 5;
    int n = 1;
    void *place;
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_stream_get_default(device, &stream));
    gni_kernel_clear();
    CHECK_OK(gni_kernel_get(device, source, &kernel));
    if (kernel == NULL)
        return 0;
    CHECK_OK(gn_memory_alloc(manager, sizeof x, stream, &place));
    CHECK_OK(gn_copy(place, &x, sizeof x, stream));
    void *arguments[] = {&place, &number, &n};
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .arguments = arguments};
    CHECK_OK(gni_kernel_launch(kernel, stream, &launch));
    CHECK_OK(gn_copy(&x, place, sizeof x, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_OK(gn_memory_free(manager, place));
    return x;
}

/* The archive has the code of += under the text of *=, so that its user can be told from a compiler. */
static void test_kernels_come_from_the_archive(void)
{
    static const struct gni_kernel_source add = {.name = "change", .text = KERNEL_TEXT("+=")};
    static const struct gni_kernel_source multiply = {.name = "change", .text = KERNEL_TEXT("*=")};
    struct gni_archive_file *file = NULL;
    struct gni_kernel_image code = {.bytes = NULL};
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    int architecture = properties.major * 10 + properties.minor;
    CHECK_OK(gni_nvrtc_compile(&add, architecture, &code));
    struct image image = {
        .target = (uint32_t)architecture, .bytes = code.bytes, .nbytes = code.nbytes};
    gni_archive_key_make(&multiply, &image.key);
    archive_make(&image, 1, NVRTC_VERSION);
    CHECK_OK(gni_archive_file_open(path, &file));
    CHECK(!gni_archive_has(device, &multiply)); /* the simulator has a compiler of its own */
    gni_archive_use(file);
    CHECK_U64(gni_archive_nvrtc_version(), NVRTC_VERSION);
    CHECK(gni_archive_has(device, &multiply) && !gni_archive_has(device, &add));
    CHECK(changed(&multiply) == 8);
    gn_device *cpu;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK(!gni_archive_has(cpu, &multiply));
    gni_archive_use(NULL);
    gni_archive_file_close(file);
    CHECK(changed(&multiply) == 15);
    gni_kernel_image_deinit(&code);
}

/* What the driver does not take, and what cannot be unpacked, is compiled. */
static void test_kernels_of_no_use(void)
{
    static const struct gni_kernel_source multiply = {.name = "change", .text = KERNEL_TEXT("*=")};
    struct gni_archive_file *file = NULL;
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    struct image image = {.target = (uint32_t)(properties.major * 10 + properties.minor),
                          .bytes = "no code at all, but long enough to be looked at as some: 0123",
                          .nbytes = 62};
    for (int is_damaged = 0; is_damaged < 2; is_damaged++) {
        gni_archive_key_make(&multiply, &image.key);
        archive_make(&image, 1, NVRTC_VERSION);
        if (is_damaged) {
            memset(file_bytes + file_length - 8, 0xff, 8);
            file_write(file_length);
        }
        CHECK_OK(gni_archive_file_open(path, &file));
        gni_archive_use(file);
        CHECK(gni_archive_has(device, &multiply));
        CHECK(changed(&multiply) == 15);
        gni_archive_use(NULL);
        gni_archive_file_close(file);
    }
}

int main(void)
{
    if (mkdtemp(root) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/kernels", root);
    void *symbol = dlsym(dlopen("libz.so.1", RTLD_NOW), "compress2");
    memcpy(&compress2, &symbol, sizeof symbol);
    CHECK_OK(gni_zlib_open(&zlib));
    CHECK(symbol != NULL);
    if (getenv("GENESIS_CUDA_DRIVER") != NULL) {
        CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
        RUN(test_kernels_come_from_the_archive);
        RUN(test_kernels_of_no_use);
    } else {
        RUN(test_where_it_is_looked_for); /* before this process has read its options */
        RUN(test_no_compiler_is_needed);
        RUN(test_devices_get_the_best_image);
        RUN(test_keys_are_of_all_that_matters);
        RUN(test_an_archive_without_kernels);
        RUN(test_no_file);
        RUN(test_truncated_files);
        RUN(test_damaged_files);
        RUN(test_hostile_files);
        RUN(test_entries_that_lie);
        RUN(test_blocks_that_lie);
        RUN(test_blocks);
        RUN(test_ptx_ends);
        RUN(test_host_memory_faults);
    }
    (void)unlink(path);
    (void)rmdir(root);
    return check_result();
}
