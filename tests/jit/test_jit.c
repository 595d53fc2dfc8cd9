/*
 * test_jit.c: kernels from source, on the simulator or a real GPU: made once, found again, launched, and
 * what goes wrong. Exits with 77 where there is no device or no NVRTC.
 */
#include "child.h"

#include "base/builder.h"
#include "base/hash.h"
#include "base/host.h"
#include "control.h"
#include "device/cuda/cuda.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"
#include "jit/compiler.h"
#include "jit/kernel.h"
#include "jit/nvrtc.h"

#include <pthread.h>

static gn_device *device;
static gn_memory_manager *manager;
static gn_stream *stream;
static struct sim_control control; /* all NULL on a real GPU */
static bool is_simulated;

static const char scale_text[] =
    "extern \"C\" __global__ void scale(float *x, float factor, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        x[i] *= factor;\n"
    "}\n";

static const struct gni_kernel_source scale_source = {.name = "scale", .text = scale_text};

/* Runs scale() over n elements, and checks each. */
static void scale_check(struct gni_kernel *kernel, int n, float factor)
{
    float *host = calloc((size_t)n, sizeof *host);
    size_t nbytes = (size_t)n * sizeof *host;
    void *x;
    for (int i = 0; i < n; i++)
        host[i] = (float)i;
    CHECK_OK(gn_memory_alloc(manager, nbytes, stream, &x));
    CHECK_OK(gn_copy(x, host, nbytes, stream));
    void *arguments[] = {&x, &factor, &n};
    struct gni_launch launch = {
        .grid = {(unsigned)(n + 127) / 128, 1, 1}, .block = {128, 1, 1}, .arguments = arguments};
    CHECK_OK(gni_kernel_launch(kernel, stream, &launch));
    CHECK_OK(gn_copy(host, x, nbytes, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += host[i] != (float)i * factor;
    CHECK_U64(wrong, 0);
    CHECK_OK(gn_memory_free(manager, x));
    free(host);
}

static void test_kernel_runs(void)
{
    struct gni_kernel *kernel = NULL;
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    if (kernel == NULL)
        return;
    for (int n = 1; n < 1000; n += 333)
        scale_check(kernel, n, 2.5f);
    CHECK(kernel->properties.max_threads_per_block > 0);
}

static void test_a_kernel_is_made_once(void)
{
    struct gni_kernel *one = NULL, *two = NULL, *other = NULL;
    CHECK_OK(gni_kernel_get(device, &scale_source, &one));
    size_t count = gni_kernel_count();
    char copy[sizeof scale_text]; /* the bytes count, not where they are */
    memcpy(copy, scale_text, sizeof copy);
    struct gni_kernel_source same = {.name = "scale", .text = copy};
    CHECK_OK(gni_kernel_get(device, &same, &two));
    CHECK(one == two);
    CHECK_U64(gni_kernel_count(), count);
    const char *options[] = {"--std=c++14", NULL};
    same.options = options;
    CHECK_OK(gni_kernel_get(device, &same, &other));
    CHECK(other != one);
    same.options = NULL;
    same.is_expression = true; /* of an extern "C" kernel it is the name itself */
    CHECK_OK(gni_kernel_get(device, &same, &two));
    CHECK(two != one && two != other);
    scale_check(two, 100, 3);
}

/* Two texts with one hash are two kernels. A word of the hash's own constant makes the next one vanish: base/hash.c. */
static void test_one_hash_is_not_one_kernel(void)
{
    enum {
        WORDS = 16, /* where the two words begin: the hash takes 16 bytes at a time */
    };
    char texts[2][WORDS + 16 + 2 + sizeof scale_text];
    struct gni_kernel *kernels[2] = {NULL, NULL};
    if (!is_simulated)
        return; /* the constant is no UTF-8: the real compiler need not take it */
    for (int i = 0; i < 2; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "/*%30s*/%s", i == 0 ? "first" : "other",
                       scale_text);
        memcpy(texts[i] + WORDS, &(uint64_t){UINT64_C(0x243f6a8885a308d3)}, 8);
    }
    size_t size = strlen(texts[0]);
    CHECK(gni_hash_bytes(texts[0], size, 1) == gni_hash_bytes(texts[1], size, 1));
    for (int i = 0; i < 2; i++) {
        struct gni_kernel_source source = {.name = "scale", .text = texts[i]};
        CHECK_OK(gni_kernel_get(device, &source, &kernels[i]));
    }
    CHECK(kernels[0] != kernels[1]);
}

static void test_signatures(void)
{
    static const char signature[] = {1, 0, 2, 0, 3};
    struct gni_kernel *kernel = NULL, *again = NULL;
    CHECK(gni_kernel_find(device, signature, sizeof signature) == NULL);
    struct gni_kernel_source source = scale_source;
    source.signature = signature;
    source.signature_size = sizeof signature;
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    CHECK(gni_kernel_find(device, signature, sizeof signature) == kernel);
    CHECK(gni_kernel_find(device, signature, sizeof signature - 1) == NULL);
    source.text = "not looked at";
    CHECK_OK(gni_kernel_get(device, &source, &again));
    CHECK(kernel == again);
    /* A source is not found by bytes that look like it, nor the other way round. */
    char pieces[4096];
    size_t used = 0;
    const char *piece;
    for (size_t i = 0; (piece = gni_kernel_source_piece(&scale_source, i)) != NULL; i++) {
        memcpy(pieces + used, piece, strlen(piece) + 1);
        used += strlen(piece) + 1;
    }
    CHECK(gni_kernel_find(device, pieces, used) == NULL);
}

static void test_expressions(void)
{
    struct gni_kernel *kernel = NULL;
    struct gni_kernel_source source = {
        .name = "many::scale<float>",
        .text = "namespace many { template <typename T> __global__ void scale(T *x, T f, int n)\n"
                "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; } }",
        .is_expression = true};
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    if (kernel != NULL)
        scale_check(kernel, 300, -1);
    source.name = "many::scale<nothing>";
    CHECK_STATUS(gni_kernel_get(device, &source, &kernel), GN_ERROR_COMPILATION);
    CHECK_DETAIL("many::scale<nothing>");
}

static void test_wrong_texts(void)
{
    struct gni_kernel *kernel = NULL;
    struct gni_kernel_source source = {
        .name = "broken",
        .text = "extern \"C\" __global__ void broken(int *x)\n{\n    *x = undefined_word;\n}\n"};
    size_t count = gni_kernel_count();
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(gni_kernel_get(device, &source, &kernel), GN_ERROR_COMPILATION);
        CHECK_DETAIL("kernel broken");
        CHECK_DETAIL("undefined_word");
        CHECK_DETAIL("3");
    }
    source.text = "extern \"C\" __global__ void other() {}";
    CHECK_STATUS(gni_kernel_get(device, &source, &kernel), GN_ERROR_DRIVER);
    CHECK_DETAIL("kernel broken");
    CHECK_DETAIL("NOT_FOUND");
    const char *options[] = {"--no-such-option", NULL};
    source = scale_source;
    source.options = options;
    CHECK_STATUS(gni_kernel_get(device, &source, &kernel), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("--no-such-option");
    CHECK(kernel == NULL);
    CHECK_U64(gni_kernel_count(), count);
}

static void test_clearing(void)
{
    struct gni_kernel *kernel = NULL, *again = NULL;
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    gni_kernel_clear();
    CHECK_U64(gni_kernel_count(), 0);
    CHECK_OK(gni_kernel_get(device, &scale_source, &again));
    CHECK(again != kernel);
    scale_check(kernel, 10, 2); /* J1: who has it can still use it */
    scale_check(again, 10, 2);
}

static void test_the_cpu_has_no_kernels(void)
{
    gn_device *cpu;
    struct gni_kernel *kernel = NULL;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_STATUS(gni_kernel_get(cpu, &scale_source, &kernel), GN_ERROR_UNSUPPORTED);
    CHECK_DETAIL("cpu");
}

static void test_shared_memory(void)
{
    struct gni_kernel_source source = {
        .name = "reverse",
        .text = "extern \"C\" __global__ void reverse(int *x, int n)\n"
                "{ extern __shared__ int s[]; for (int i = threadIdx.x; i < n; i += blockDim.x) "
                "s[i] = x[i]; __syncthreads();\n"
                "for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = s[n - 1 - i]; }"};
    struct gni_kernel *kernel = NULL;
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    if (kernel == NULL)
        return;
    int n = 20000; /* 80 KB: more than comes without asking */
    size_t nbytes = (size_t)n * sizeof(int);
    int *host = malloc(nbytes);
    for (int i = 0; i < n; i++)
        host[i] = i;
    void *x;
    CHECK_OK(gn_memory_alloc(manager, nbytes, stream, &x));
    CHECK_OK(gn_copy(x, host, nbytes, stream));
    void *arguments[] = {&x, &n};
    struct gni_launch launch = {
        .grid = {1, 1, 1}, .block = {64, 1, 1}, .shared_bytes = nbytes, .arguments = arguments};
    CHECK_OK(gni_kernel_launch(kernel, stream, &launch));
    CHECK_OK(gn_copy(host, x, nbytes, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += host[i] != n - 1 - i;
    CHECK_U64(wrong, 0);
    launch.shared_bytes = 1 << 24;
    CHECK_STATUS(gni_kernel_launch(kernel, stream, &launch), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_memory_free(manager, x));
    free(host);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum {
    THREADS = 8,
};

static pthread_barrier_t barrier;

struct asking {
    const struct gni_kernel_source *source;
    gn_status status;
    struct gni_kernel *kernel;
    bool has_detail;
};

static void *ask(void *context)
{
    struct asking *asking = context;
    (void)pthread_barrier_wait(&barrier);
    asking->status = gni_kernel_get(device, asking->source, &asking->kernel);
    asking->has_detail = strstr(gn_error_detail(), "kernel wrong") != NULL;
    return NULL;
}

static void ask_all(const struct gni_kernel_source *source, struct asking askings[THREADS])
{
    pthread_t threads[THREADS];
    (void)pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        askings[i] = (struct asking){.source = source};
        CHECK(pthread_create(&threads[i], NULL, ask, &askings[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_barrier_destroy(&barrier);
}

static void test_many_threads_one_kernel(void)
{
    struct asking askings[THREADS];
    struct gni_kernel_source source = {.name = "once",
                                       .text = "extern \"C\" __global__ void once() {}"};
    size_t count = gni_kernel_count();
    long before = is_simulated ? control.call_count("cuModuleLoadData") : 0;
    ask_all(&source, askings);
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(askings[i].status);
        CHECK(askings[i].kernel == askings[0].kernel);
    }
    CHECK_U64(gni_kernel_count(), count + 1);
    if (is_simulated)
        CHECK_U64(control.call_count("cuModuleLoadData") - before, 1);
    source.name = "wrong";
    source.text = "extern \"C\" __global__ void wrong() { nothing; }";
    ask_all(&source, askings);
    for (int i = 0; i < THREADS; i++) {
        CHECK_STATUS(askings[i].status, GN_ERROR_COMPILATION);
        CHECK(askings[i].has_detail && askings[i].kernel == NULL);
    }
}

/* What does not compile is compiled once, and again after everything was forgotten; headers may change. */
static void test_failures_are_remembered(void)
{
    struct gni_kernel *kernel = NULL;
    struct gni_kernel_source wrong = {.name = "never",
                                      .text = "extern \"C\" __global__ void never() { nothing; }"};
    struct gni_kernel_source open = wrong;
    open.text = "extern \"C\" __global__ void never() { /* include */ nothing; }";
    if (!is_simulated)
        return;
    gni_kernel_clear();
    size_t live = gni_host_live_count();
    for (int round = 0; round < 2; round++) {
        control.fail("nvrtcCompileProgram", 1, NVRTC_ERROR_COMPILATION, 1);
        for (int i = 0; i < 3; i++) {
            CHECK_STATUS(gni_kernel_get(device, &wrong, &kernel), GN_ERROR_COMPILATION);
            CHECK_DETAIL("kernel never does not compile");
            CHECK_STATUS(gni_kernel_get(device, &open, &kernel), GN_ERROR_COMPILATION);
        }
        CHECK_U64(control.fault_count(), 1 + 3);
        gni_kernel_clear();
        CHECK_U64(gni_host_live_count(), live);
    }
    /* There are never many of them. */
    char text[64];
    wrong.text = text;
    control.fail("nvrtcCompileProgram", 1, NVRTC_ERROR_COMPILATION, 1);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text, "extern \"C\" __global__ void never() { %d; }", i);
        CHECK_STATUS(gni_kernel_get(device, &wrong, &kernel), GN_ERROR_COMPILATION);
        CHECK(gni_host_live_count() <= live + 2 * 256);
    }
    control.fail(NULL, 0, 0, 0);
    CHECK_STATUS(gni_kernel_get(device, &wrong, &kernel), GN_ERROR_COMPILATION);
    gni_kernel_clear();
    CHECK_OK(gni_kernel_get(device, &wrong, &kernel));
}

static const char *const small_texts[] = {
    "extern \"C\" __global__ void s0() {}", "extern \"C\" __global__ void s1() {}",
    "extern \"C\" __global__ void s2() {}", "extern \"C\" __global__ void s3() {}"};
static const char *const small_names[] = {"s0", "s1", "s2", "s3"};

static void *look(void *context)
{
    uint64_t seed = (uint64_t)(uintptr_t)context;
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    (void)pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++) {
        size_t which = check_random(&seed) % 4;
        struct gni_kernel_source source = {.name = small_names[which], .text = small_texts[which]};
        struct gni_kernel *kernel = NULL;
        CHECK_OK(gni_kernel_get(device, &source, &kernel));
        if (i % 10 == 0)
            CHECK_OK(gni_kernel_launch(kernel, stream, &launch));
        if (which == 0 && i % 4 == 0)
            gni_kernel_clear();
    }
    return NULL;
}

static void test_looking_while_others_forget(void)
{
    pthread_t threads[THREADS];
    (void)pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, look, (void *)(uintptr_t)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_barrier_destroy(&barrier);
    CHECK_OK(gn_device_synchronize(device));
    CHECK(gni_kernel_count() <= 4);
}

static void test_preparing(void)
{
    char texts[6][64], names[6][8];
    struct gni_kernel_source sources[6];
    for (int i = 0; i < 6; i++) {
        (void)snprintf(names[i], sizeof names[i], "p%d", i);
        (void)snprintf(texts[i], sizeof texts[i], "extern \"C\" __global__ void p%d() {}", i);
        sources[i] = (struct gni_kernel_source){.name = names[i], .text = texts[i]};
    }
    size_t count = gni_kernel_count();
    CHECK_OK(gni_kernel_prepare(device, sources, 0));
    sources[2].text = "nonsense";
    CHECK_STATUS(gni_kernel_prepare(device, sources, 6), GN_ERROR_COMPILATION);
    CHECK_DETAIL("kernel p2");
    CHECK_U64(gni_kernel_count(), count + 5); /* all others were made */
    sources[4].text = "nonsense, too";
    CHECK_STATUS(gni_kernel_prepare(device, sources, 6), GN_ERROR_COMPILATION);
    CHECK(strstr(gn_error_detail(), "kernel p2") != NULL ||
          strstr(gn_error_detail(), "kernel p4") != NULL); /* the first to fail */
    sources[2].text = texts[2];
    sources[4].text = texts[4];
    CHECK_OK(gni_kernel_prepare(device, sources, 6));
    CHECK_U64(gni_kernel_count(), count + 6);
}

/* ---- the disk ------------------------------------------------------------------------------- */

enum {
    NVRTC_FAILS = 6, /* NVRTC_ERROR_COMPILATION */
};

/* Gets a kernel that must come from the disk, or must not. */
static void get_cached(const struct gni_kernel_source *source, bool is_on_disk)
{
    struct gni_kernel *kernel = NULL;
    gni_kernel_clear();
    control.fail("nvrtcCompileProgram", 1, NVRTC_FAILS, 1);
    CHECK_STATUS(gni_kernel_get(device, source, &kernel),
                 is_on_disk ? GN_OK : GN_ERROR_COMPILATION);
    control.fail(NULL, 0, 0, 0);
    gni_kernel_clear(); /* the failure, too */
    if (!is_on_disk)
        CHECK_OK(gni_kernel_get(device, source, &kernel));
    if (kernel != NULL)
        scale_check(kernel, 33, 2);
}

static void test_the_disk(void)
{
    struct gni_compiler compiler;
    struct gni_disk_key key;
    struct gni_kernel_image image = {.bytes = NULL};
    static const char *const options[] = {"-DDISK", NULL};
    struct gni_kernel_source source = scale_source;
    source.options = options;
    if (!is_simulated)
        return;
    (void)gni_disk_cache_clear();
    get_cached(&source, false);
    get_cached(&source, true);
    CHECK(gni_compiler_guess(&compiler));
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    gni_compiler_key(&compiler, properties.major * 10 + properties.minor, &source, &key);
    CHECK(gni_disk_cache_find(&key, &image));
    CHECK_TEXT(image.symbol, "scale");
    /* Entries that are whole, but that the driver does not take. */
    gni_disk_cache_store(&key, "scale", "rubbish, and long enough for a header of the simulator",
                         54);
    get_cached(&source, false);
    get_cached(&source, true);
    gni_disk_cache_store(&key, "other", image.bytes, image.nbytes);
    get_cached(&source, false);
    get_cached(&source, true);
    gni_kernel_image_deinit(&image);
    /* What includes files is not kept: they may change. */
    source.text = "// include\n"
                  "extern \"C\" __global__ void scale(float *x, float f, int n)\n"
                  "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }";
    get_cached(&source, false);
    get_cached(&source, false);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Nobody has seen any kernel yet. */
static void all_forget(void)
{
    gni_kernel_clear();
    (void)gni_disk_cache_clear();
}

/* Each call of a function fails in turn, while a kernel is made or taken from the disk, and launched. */
static void faults_of(const char *function, int result)
{
    for (int nth = 1; nth < 100; nth++) {
        struct gni_kernel *kernel = NULL;
        all_forget();
        int objects = control.live_objects();
        size_t live = gni_host_live_count();
        control.fail(function, nth, result, 0);
        gn_status status = gni_kernel_get(device, &scale_source, &kernel);
        bool is_struck = control.fault_count() > 0;
        control.fail(NULL, 0, 0, 0);
        CHECK((status == GN_OK) == (kernel != NULL));
        if (status != GN_OK) {
            CHECK(is_struck);
            CHECK_DETAIL("kernel scale");
            gni_kernel_clear(); /* what does not compile is remembered */
            CHECK_U64(control.live_objects(), objects);
            CHECK_U64(gni_host_live_count(), live);
            CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
        }
        scale_check(kernel, 40, 2);
        if (!is_struck)
            return;
    }
    check_fail(__FILE__, __LINE__, "the fault is reached no more");
}

static void test_faults(void)
{
    static const char *const compiling[] = {"nvrtcCreateProgram", "nvrtcCompileProgram",
                                            "nvrtcGetCUBINSize", "nvrtcGetCUBIN"};
    static const char *const loading[] = {"cuModuleLoadData", "cuModuleGetFunction",
                                          "cuFuncGetAttribute"};
    if (!is_simulated)
        return;
    for (size_t i = 0; i < sizeof compiling / sizeof *compiling; i++)
        for (int result = NVRTC_ERROR_OUT_OF_MEMORY; result <= NVRTC_ERROR_INTERNAL_ERROR;
             result += 5)
            faults_of(compiling[i], result);
    for (size_t i = 0; i < sizeof loading / sizeof *loading; i++) {
        faults_of(loading[i], CUDA_ERROR_OUT_OF_MEMORY);
        faults_of(loading[i], CUDA_ERROR_UNKNOWN);
    }
    CHECK_U64(control.finding_count(), 0);
}

static void test_host_memory_faults(void)
{
    for (long nth = 1;; nth++) {
        struct gni_kernel *kernel = NULL;
        all_forget();
        size_t live = gni_host_live_count();
        gni_host_fail_after(nth);
        gn_status status = gni_kernel_get(device, &scale_source, &kernel);
        gni_host_fail_after(-1);
        if (status == GN_OK)
            break;
        CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_U64(gni_host_live_count(), live);
        CHECK(nth < 100);
    }
}

/* A text that had no room is no kernel. */
static void test_building(void)
{
    struct gni_builder text = {.text = NULL};
    struct gni_kernel *kernel = NULL;
    gni_host_fail_after(1);
    gni_builder_add(&text, scale_text, sizeof scale_text - 1);
    gni_host_fail_after(-1);
    CHECK(text.has_failed);
    CHECK_STATUS(gni_kernel_build(device, "scale", &text, "s", 1, &kernel),
                 GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(kernel == NULL && gni_kernel_find(device, "s", 1) == NULL);
    text = (struct gni_builder){.text = NULL};
    gni_builder_add(&text, scale_text, sizeof scale_text - 1);
    CHECK_OK(gni_kernel_build(device, "scale", &text, "s", 1, &kernel));
    CHECK(gni_kernel_find(device, "s", 1) == kernel);
    scale_check(kernel, 9, 3);
}

/* What a full device does not load stays on disk: it is whole. What the driver refuses goes. */
static void test_a_full_device(void)
{
    struct gni_kernel *kernel = NULL;
    if (!is_simulated)
        return;
    all_forget();
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    gni_kernel_clear();
    control.fail("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY, 1);
    CHECK_STATUS(gni_kernel_get(device, &scale_source, &kernel), GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("kernel scale cannot be loaded");
    control.fail("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY, 0); /* and not the second time */
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    CHECK_U64(control.fault_count(), 1);
    control.fail(NULL, 0, 0, 0);
    scale_check(kernel, 9, 3);
    get_cached(&scale_source, true);
}

/* All the shared memory that is there without asking is the kernel's own. */
static void test_a_kernel_that_shares_much(void)
{
    static const struct gni_kernel_source source = {
        .name = "much",
        .text = "extern \"C\" __global__ void much(int *x)\n"
                "{\n"
                "    __shared__ int own[12288];\n"
                "    own[threadIdx.x] = threadIdx.x;\n"
                "    __syncthreads();\n"
                "    x[threadIdx.x] = own[31 - threadIdx.x];\n"
                "}\n"};
    struct gni_kernel *kernel = NULL;
    int host[32] = {0};
    void *x;
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    CHECK_OK(gn_memory_alloc(manager, sizeof host, stream, &x));
    void *arguments[] = {&x};
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .arguments = arguments};
    CHECK_OK(gni_kernel_launch(kernel, stream, &launch));
    CHECK_OK(gn_copy(host, x, sizeof host, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(host[0] == 31 && host[31] == 0);
    CHECK_U64(atomic_load(&kernel->shared_bytes_max), 0);
    CHECK_OK(gn_memory_free(manager, x));
}

/* ---- the public functions ------------------------------------------------------------------- */

static void test_public_kernels(void)
{
    static const char text[] =
        "template <class T> __global__ void scale(T *x, T f, int n)\n"
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= "
        "f; }";
    gn_kernel *kernel = NULL;
    gn_device *cpu;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_STATUS(gn_kernel_create(NULL, text, "scale", NULL, &kernel), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_kernel_create(device, text, "", NULL, &kernel), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_kernel_create(cpu, text, "scale<float>", NULL, &kernel), GN_ERROR_UNSUPPORTED);
    CHECK_STATUS(gn_kernel_create(device, text, "scale<", NULL, &kernel), GN_ERROR_COMPILATION);
    CHECK(kernel == NULL);
    CHECK_OK(gn_kernel_create(device, text, "scale<double>", NULL, &kernel));
    CHECK(gn_kernel_get_device(kernel) == device);
    gn_kernel_properties properties;
    CHECK_OK(gn_kernel_get_properties(kernel, &properties));
    CHECK(properties.max_threads_per_block >= 256);
    CHECK(properties.parameter_count == 3 || properties.parameter_count == -1);
    if (properties.parameter_count == 3)
        CHECK(gn_kernel_get_parameter_size(kernel, 0) == 8 &&
              gn_kernel_get_parameter_size(kernel, 2) == 4);
    CHECK_U64(gn_kernel_get_parameter_size(kernel, 3), 0);
    CHECK_U64(gn_kernel_get_parameter_size(kernel, -1), 0);
    double host[3] = {1, 2, 3}, factor = 0.5;
    void *x;
    int n = 3;
    CHECK_OK(gn_memory_alloc(manager, sizeof host, stream, &x));
    CHECK_OK(gn_copy(x, host, sizeof host, stream));
    gn_kernel_shape shape = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    void *arguments[] = {&x, &factor, &n};
    CHECK_OK(gn_kernel_launch(kernel, &shape, arguments, NULL));
    CHECK_OK(gn_copy(host, x, sizeof host, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(host[0] == 0.5 && host[1] == 1 && host[2] == 1.5);
    gn_stream *other;
    CHECK_OK(gn_stream_get_default(cpu, &other));
    CHECK_STATUS(gn_kernel_launch(kernel, &shape, arguments, other), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cpu");
    shape.block[1] = 1 << 20;
    shape.block[2] = 1 << 20;
    CHECK_STATUS(gn_kernel_launch(kernel, &shape, arguments, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("1048576");
    shape.block[1] = 0;
    CHECK_STATUS(gn_kernel_launch(kernel, &shape, arguments, NULL), GN_ERROR_INVALID_VALUE);
    shape = (gn_kernel_shape){.grid = {1, 0, 1}, .block = {1, 1, 1}};
    CHECK_STATUS(gn_kernel_launch(kernel, &shape, arguments, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("at least 1");
    CHECK_STATUS(gn_kernel_launch(kernel, NULL, arguments, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_memory_free(manager, x));
    CHECK_OK(gn_shutdown(NULL));
    CHECK_STATUS(gn_kernel_get_properties(kernel, &properties), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("gn_shutdown");
    CHECK_STATUS(gn_kernel_get_properties(kernel, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_kernel_launch(kernel, &shape, arguments, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("gn_shutdown");
    gn_kernel_destroy(kernel);
    gn_kernel_destroy(NULL);
    size_t removed = 0;
    CHECK_OK(gn_kernel_create(device, text, "scale<double>", NULL, &kernel));
    CHECK_OK(gn_kernel_cache_clear(&removed));
    CHECK(removed > 0);
    CHECK_OK(gn_kernel_get_properties(kernel, &properties));
    gn_kernel_destroy(kernel);
    CHECK_OK(gn_kernel_cache_clear(NULL));
}

/* Each call that a kernel of a user needs fails in turn, and so does host memory. */
static void test_public_faults(void)
{
    static const char *const functions[] = {"cuFuncGetParamInfo", "cuFuncGetAttribute",
                                            "cuModuleGetFunction", "cuModuleLoadData"};
    gn_kernel *kernel = NULL;
    if (!is_simulated)
        return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        for (int nth = 1;; nth++) {
            kernel = NULL;
            all_forget();
            size_t live = gni_host_live_count();
            control.fail(functions[i], nth, CUDA_ERROR_OUT_OF_MEMORY, 0);
            gn_status status = gn_kernel_create(device, scale_text, "scale", NULL, &kernel);
            bool is_struck = control.fault_count() > 0;
            control.fail(NULL, 0, 0, 0);
            CHECK((status == GN_OK) == (kernel != NULL));
            gn_kernel_destroy(kernel);
            if (!is_struck)
                break;
            gni_kernel_clear();
            if (status != GN_OK &&
                i > 0) /* the first is asked when there is a kernel, which stays */
                CHECK_U64(gni_host_live_count(), live);
            CHECK(nth < 30);
        }
        CHECK(kernel != NULL);
    }
    for (long nth = 1;; nth++) {
        kernel = NULL;
        all_forget();
        gni_host_fail_after(nth);
        gn_status status = gn_kernel_create(device, scale_text, "scale", NULL, &kernel);
        gni_host_fail_after(-1);
        gn_kernel_destroy(kernel);
        if (status == GN_OK)
            break;
        CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(kernel == NULL && nth < 100);
    }
}

/* A kernel may be needed for the first time while a stream is captured. */
static void test_capture(void)
{
    struct gni_kernel *kernel = NULL;
    const struct gni_cuda_driver *driver;
    gn_stream *side;
    void *x;
    float factor = 2;
    int n = 0;
    CHECK_OK(gni_cuda_driver_open(&driver));
    const struct gni_cuda_functions *cuda = &driver->functions;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &side));
    CHECK_OK(gn_memory_alloc(manager, 64, stream, &x));
    CUstream handle = gn_stream_get_handle(side);
    struct gni_cuda_scope scope;
    CHECK_OK(gni_cuda_enter(gni_cuda_device_of(device), GNI_CUDA_PLAIN, &scope));
    CHECK(cuda->cuStreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    all_forget();
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    void *arguments[] = {&x, &factor, &n};
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .arguments = arguments};
    CHECK_OK(gni_kernel_launch(kernel, side, &launch));
    CUgraph graph = NULL;
    CHECK(cuda->cuStreamEndCapture(handle, &graph) == CUDA_SUCCESS && graph != NULL);
    (void)cuda->cuGraphDestroy(graph);
    CHECK_OK(gni_cuda_leave(&scope, "", CUDA_SUCCESS));
    gn_stream_release(side);
    CHECK_OK(gn_memory_free(manager, x));
}

/* With GENESIS_DEBUG=sync a launch has ended when the call returns, but for one that is captured. */
static void sync_body(void *context)
{
    (void)context;
    struct gni_kernel *kernel = NULL;
    gn_library_description driver;
    CHECK(setenv("GENESIS_DEBUG", "sync", 1) == 0 && setenv("SIM_GPU_SCHEDULE", "lazy", 1) == 0);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK(gn_library_describe(0, &driver));
    is_simulated = sim_control_load(driver.path, &control);
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_stream_get_default(device, &stream));
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    void *x;
    float factor = 2;
    int n = 4;
    CHECK_OK(gn_memory_alloc(manager, 64, stream, &x));
    CHECK_OK(gn_fill(x, 0, 4, 16, stream));
    void *arguments[] = {&x, &factor, &n};
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .arguments = arguments};
    CHECK_OK(gni_kernel_launch(kernel, stream, &launch));
    CHECK_OK(gn_stream_query(stream)); /* nothing is left to do */
    if (is_simulated) {
        CHECK_U64(control.pending(), 0);
        control.fail("cuStreamSynchronize", 1, CUDA_ERROR_UNKNOWN, 0);
        CHECK(gni_kernel_launch(kernel, stream, &launch) != GN_OK);
        control.fail("cuStreamIsCapturing", 1, CUDA_ERROR_UNKNOWN, 0);
        CHECK(gni_kernel_launch(kernel, stream, &launch) != GN_OK);
        control.fail(NULL, 0, 0, 0);
    }
    test_capture();
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_OK(gn_memory_free(manager, x));
}

static void test_sync(void)
{
    struct child_result child;
    child_run(sync_body, NULL, &child);
    child_is_ok(&child);
}

/* Two devices, and a driver that does not tell what a kernel takes: each device has its own kernels and stopwatches. */
static void two_devices_body(void *context)
{
    (void)context;
    gn_device *devices[2];
    struct gni_kernel *kernels[2] = {NULL};
    struct gni_kernel_source source = scale_source;
    gn_kernel_run runs[4];
    size_t count = 0;
    source.signature = "one";
    source.signature_size = 3;
    CHECK(setenv("SIM_GPU_DEVICES", "2", 1) == 0);
    CHECK(setenv("SIM_GPU_MISSING", "cuFuncGetParamInfo", 1) == 0);
    CHECK_OK(gn_profile_enable(true));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++) {
            CHECK_OK(gn_device_get(GN_DEVICE_CUDA, i, &devices[i]));
            CHECK_OK(gn_memory_manager_get(devices[i], &manager));
            CHECK_OK(gn_stream_get_default(devices[i], &stream));
            CHECK(gni_kernel_find(devices[i], "one", 3) == kernels[i]);
            CHECK_OK(gni_kernel_get(devices[i], &source, &kernels[i]));
            scale_check(kernels[i], 50, 3);
            CHECK_OK(gn_profile_wait());
            CHECK_OK(gn_profile_take(runs, 4, &count));
            CHECK(count == 1 && runs[0].device == i);
        }
    CHECK(kernels[0] != kernels[1]);
    gn_kernel *kernel = NULL;
    gn_kernel_properties properties;
    CHECK_OK(gn_kernel_create(devices[0], scale_text, "scale", NULL, &kernel));
    CHECK_OK(gn_kernel_get_properties(kernel, &properties));
    CHECK(properties.parameter_count == -1 && gn_kernel_get_parameter_size(kernel, 0) == 0);
    gn_kernel_destroy(kernel);
}

static void test_two_devices(void)
{
    struct child_result child;
    child_run(two_devices_body, NULL, &child);
    child_is_ok(&child);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void test_shutdown(void)
{
    struct gni_kernel *kernel = NULL;
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    size_t leaked = 99;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
    CHECK_U64(gni_kernel_count(), 0);
    if (is_simulated)
        CHECK_U64(control.live_objects(), 0);
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    scale_check(kernel, 77, 4);
}

static void fork_body(void *context)
{
    struct gni_kernel *kernel = context, *found = NULL;
    struct gni_kernel_source source = scale_source;
    source.name = "other";
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    CHECK_OK(gni_kernel_get(device, &scale_source, &found)); /* what is known is known */
    CHECK(found == kernel);
    CHECK_STATUS(gni_kernel_launch(found, stream, &launch), GN_ERROR_FORKED);
    CHECK_STATUS(gni_kernel_get(device, &source, &found), GN_ERROR_FORKED);
    gni_kernel_clear();
}

static void test_fork(void)
{
    struct gni_kernel *kernel = NULL;
    struct child_result child;
    CHECK_OK(gni_kernel_get(device, &scale_source, &kernel));
    child_run(fork_body, kernel, &child);
    child_is_ok(&child);
    scale_check(kernel, 5, 1);
}

int main(void)
{
    const struct gni_nvrtc *nvrtc;
    /* Not the user's own, which is cleared here. */
    (void)setenv("GENESIS_KERNEL_CACHE_DIR", "/tmp/genesis-test-jit", 0);
    if (getenv("GENESIS_CUDA_DRIVER") != NULL) { /* before this process has read its options */
        RUN(test_sync);
        RUN(test_two_devices);
    }
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK || gni_nvrtc_open(&nvrtc) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    gn_library_description driver;
    is_simulated = gn_library_describe(0, &driver) && sim_control_load(driver.path, &control);
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_stream_get_default(device, &stream));
    RUN(test_kernel_runs);
    RUN(test_a_kernel_is_made_once);
    RUN(test_one_hash_is_not_one_kernel);
    RUN(test_signatures);
    RUN(test_expressions);
    RUN(test_wrong_texts);
    RUN(test_clearing);
    RUN(test_the_cpu_has_no_kernels);
    RUN(test_shared_memory);
    RUN(test_many_threads_one_kernel);
    RUN(test_failures_are_remembered);
    RUN(test_looking_while_others_forget);
    RUN(test_preparing);
    RUN(test_the_disk);
    RUN(test_faults);
    RUN(test_host_memory_faults);
    RUN(test_capture);
    RUN(test_building);
    RUN(test_a_full_device);
    RUN(test_a_kernel_that_shares_much);
    RUN(test_public_kernels);
    RUN(test_public_faults);
    RUN(test_shutdown);
    RUN(test_fork);
    return check_result();
}
