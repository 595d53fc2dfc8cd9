/*
 * test_jit.c: kernels from source, on the simulator or a real GPU: made once, found again, launched, and
 * what goes wrong. Exits with 77 where there is no device or no NVRTC.
 */
#include "child.h"

#include "base/host.h"
#include "control.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"
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
    RUN(test_signatures);
    RUN(test_expressions);
    RUN(test_wrong_texts);
    RUN(test_clearing);
    RUN(test_the_cpu_has_no_kernels);
    RUN(test_shared_memory);
    RUN(test_many_threads_one_kernel);
    RUN(test_shutdown);
    RUN(test_fork);
    return check_result();
}
