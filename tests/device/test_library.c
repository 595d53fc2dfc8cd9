/*
 * test_library.c: where NVRTC and cuBLASLt are looked for, in which order, and what is passed by. What was found stays
 * for the process, so each case is a child.
 */
#include "child.h"

#include "base/sha256.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"
#include "genesis/device.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#define DRIVER(word) GENESIS_FAKE_DIRECTORY "/libgenesis_" word ".so"

static char root[] = "/tmp/genesis-test-XXXXXX";

/* ---- helpers -------------------------------------------------------------------------------- */

/* A copy of one of the stand-ins as root/place/libnvrtc.so.MAJOR. */
static void library_put(const char *word, const char *place, int major)
{
    char from[512], to[512], bytes[1 << 14];
    (void)snprintf(from, sizeof from, "%s/libgenesis_%s.so", GENESIS_FAKE_DIRECTORY, word);
    (void)snprintf(to, sizeof to, "%s/%s/libnvrtc.so.%d", root, place, major);
    int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    CHECK(source >= 0 && target >= 0);
    ssize_t count;
    while ((count = read(source, bytes, sizeof bytes)) > 0)
        CHECK(write(target, bytes, (size_t)count) == count);
    CHECK(close(source) == 0 && close(target) == 0);
}

static void folder_make(const char *place)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", root, place);
    CHECK(mkdir(path, 0700) == 0);
}

static void variable_set(const char *name, const char *place)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", root, place);
    CHECK(setenv(name, path, 1) == 0);
}

/* NVRTC is found as this file. */
static void found_as(const char *place, int major)
{
    const struct gni_nvrtc *nvrtc = NULL;
    char expected[512];
    (void)snprintf(expected, sizeof expected, "%s/%s/libnvrtc.so.%d", root, place, major);
    CHECK_OK(gni_nvrtc_open(&nvrtc));
    if (nvrtc == NULL)
        return;
    CHECK_TEXT(nvrtc->path, expected);
    const struct gni_nvrtc *again = NULL;
    CHECK(gni_nvrtc_find_loaded(&again) && again == nvrtc);
    gn_library_description description;
    CHECK(gn_library_describe(1, &description) && description.is_found);
    CHECK_TEXT(description.path, expected);
    CHECK_U64(description.version, nvrtc->version);
}

static void directory_add(const char *place)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", root, place);
    CHECK_OK(gn_library_add_directory(path));
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void body_home(void *context)
{
    (void)context;
    const struct gni_nvrtc *nvrtc = NULL;
    variable_set("CUDA_HOME", "home");
    variable_set("CUDA_PATH", "path");
    directory_add("wheel");
    CHECK(!gni_nvrtc_find_loaded(&nvrtc) && nvrtc == NULL); /* nothing is loaded for that */
    found_as("home/lib64", 13);
    CHECK_OK(gni_nvrtc_open(&nvrtc));
    CHECK_U64(nvrtc->version, 12030);
}

static void body_path(void *context)
{
    (void)context;
    CHECK(setenv("CUDA_HOME", "home", 1) == 0); /* a relative one is none */
    variable_set("CUDA_PATH", "path");
    directory_add("wheel");
    found_as("path/lib64", 12);
}

static void body_directories(void *context)
{
    (void)context;
    directory_add("empty");
    directory_add("wheel");
    directory_add("wheel");
    found_as("wheel", 12);
}

/* A file without a function that is needed is passed by, for an older one in the same place. */
static void body_part(void *context)
{
    (void)context;
    variable_set("CUDA_HOME", "part");
    found_as("part/lib64", 12);
}

/* It does not say which version it is: none is known. */
static void body_broken(void *context)
{
    (void)context;
    const struct gni_nvrtc *nvrtc = NULL;
    variable_set("CUDA_HOME", "broken");
    found_as("broken/lib64", 13);
    CHECK_OK(gni_nvrtc_open(&nvrtc));
    CHECK_U64(nvrtc->version, 0);
}

/* A driver does not take what a newer compiler makes. */
static void body_old_driver(void *context)
{
    (void)context;
    CHECK(setenv("GENESIS_CUDA_DRIVER", DRIVER("fake_middle"), 1) == 0);
    variable_set("CUDA_HOME", "many");
    found_as("many/lib64", 11);
}

/* What the process has loaded already comes before all files. */
static void body_loaded(void *context)
{
    (void)context;
    char path[512];
    const struct gni_nvrtc *nvrtc = NULL;
    (void)snprintf(path, sizeof path, "%s/wheel/libnvrtc.so.12", root);
    CHECK(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL);
    variable_set("CUDA_HOME", "home");
    CHECK(gni_nvrtc_find_loaded(&nvrtc));
    found_as("wheel", 12);
}

/* A driver that brings NVRTC along, but not all of it. */
static void body_driver_part(void *context)
{
    (void)context;
    const struct gni_nvrtc *nvrtc = NULL;
    CHECK(setenv("GENESIS_CUDA_DRIVER", DRIVER("fake_with_part"), 1) == 0);
    variable_set("CUDA_HOME", "home");
    CHECK_STATUS(gni_nvrtc_open(&nvrtc), GN_ERROR_UNAVAILABLE);
    CHECK(strstr(gn_error_detail(), "NVRTC has no ") != NULL);
    gn_library_description description;
    CHECK(gn_library_describe(1, &description) && !description.is_found);
    CHECK(strstr(description.reason, "NVRTC has no ") != NULL);
}

/* Beside a stand-in for the driver cuBLASLt would work on another GPU. */
static void body_cublaslt(void *context)
{
    (void)context;
    const struct gni_cublaslt *cublaslt = NULL;
    gn_library_description description;
    CHECK_STATUS(gni_cublaslt_open(&cublaslt), GN_ERROR_UNAVAILABLE);
    CHECK(cublaslt == NULL);
    CHECK(!gn_library_describe(3, &description) && !gn_library_describe(-1, &description) &&
          !gn_library_describe(0, NULL));
    CHECK(gn_library_describe(0, &description) && description.is_found);
}

static void body_no_driver(void *context)
{
    (void)context;
    const struct gni_cublaslt *cublaslt = NULL;
    gn_library_description description;
    CHECK(setenv("GENESIS_CUDA_DRIVER", "/no/such/driver.so", 1) == 0);
    CHECK(gn_library_describe(0, &description) && !description.is_found);
    CHECK(strstr(description.reason, "/no/such/driver.so") != NULL);
    CHECK(gni_cublaslt_open(&cublaslt) != GN_OK);
    variable_set("CUDA_HOME", "home"); /* NVRTC needs no driver */
    found_as("home/lib64", 13);
}

static void hash_now(uint8_t digest[GNI_SHA256_BYTES])
{
    struct gni_sha256 hash;
    gni_sha256_init(&hash);
    gni_nvrtc_hash_search(&hash);
    gni_sha256_finish(&hash, digest);
}

/* The hash of the search changes with all that decides what is found; directories are bounded. */
static void body_hash(void *context)
{
    (void)context;
    enum {
        MOST = 32,
        VARIABLES = 3
    };
    static const char *const names[VARIABLES] = {"CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"};
    uint8_t digests[VARIABLES + 3][GNI_SHA256_BYTES];
    for (int i = 0; i < VARIABLES; i++)
        CHECK(unsetenv(names[i]) == 0);
    hash_now(digests[0]);
    for (int i = 0; i < VARIABLES; i++) {
        variable_set(names[i], "home");
        hash_now(digests[1 + i]);
        CHECK(unsetenv(names[i]) == 0);
    }
    char path[600];
    for (int i = 0; i < MOST; i++) {
        (void)snprintf(path, sizeof path, "/no/such/place/%d", i);
        CHECK_OK(gn_library_add_directory(path));
        if (i < 2)
            hash_now(digests[1 + VARIABLES + i]);
    }
    for (int i = 0; i < VARIABLES + 3; i++)
        for (int j = 0; j < i; j++)
            CHECK(memcmp(digests[i], digests[j], GNI_SHA256_BYTES) != 0);
    CHECK_OK(gn_library_add_directory("/no/such/place/31")); /* known */
    CHECK_STATUS(gn_library_add_directory("/no/such/place/32"), GN_ERROR_INVALID_VALUE);
    CHECK(strstr(gn_error_detail(), "32 library directories already") != NULL);
    CHECK_STATUS(gn_library_add_directory("relative"), GN_ERROR_INVALID_VALUE);
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[512] = '\0';
    CHECK_STATUS(gn_library_add_directory(path), GN_ERROR_INVALID_VALUE);
}

static int file_remove(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static void test_search(void)
{
    static struct child_result result;
    static const char *const folders[] = {"home",   "home/lib64",   "path", "path/lib64",
                                          "wheel",  "empty",        "part", "part/lib64",
                                          "broken", "broken/lib64", "many", "many/lib64"};
    void (*const bodies[])(void *) = {body_home,       body_path,        body_directories,
                                      body_part,       body_broken,      body_loaded,
                                      body_old_driver, body_driver_part, body_cublaslt,
                                      body_no_driver,  body_hash};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        folder_make(folders[i]);
    library_put("fake_nvrtc", "home/lib64", 13);
    library_put("fake_nvrtc", "path/lib64", 12);
    library_put("fake_nvrtc", "wheel", 12);
    library_put("fake_nvrtc_part", "part/lib64", 13);
    library_put("fake_nvrtc", "part/lib64", 12);
    library_put("fake_nvrtc_broken", "broken/lib64", 13);
    for (int major = 11; major <= 13; major++)
        library_put("fake_nvrtc", "many/lib64", major);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        child_run(bodies[i], NULL, &result);
        if (!child_is_ok(&result))
            fprintf(stderr, "    in case %zu\n", i);
    }
}

int main(void)
{
    if (mkdtemp(root) == NULL)
        return 1;
    CHECK(setenv("GENESIS_CUDA_DRIVER", DRIVER("fake"), 1) == 0);
    CHECK(unsetenv("CUDA_HOME") == 0 && unsetenv("CUDA_PATH") == 0);
    RUN(test_search);
    CHECK(nftw(root, file_remove, 16, FTW_DEPTH | FTW_PHYS) == 0);
    return check_result();
}
