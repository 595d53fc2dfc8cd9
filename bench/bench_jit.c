/*
 * bench_jit.c: what kernels from source cost: compiling one, finding it again, launching it.
 *
 *     bench_jit           the table
 *     bench_jit first     one process's first launch, in its own words; the table starts it
 *
 * A launch is measured beside the driver's own, in turns, `ROUNDS` times; the table has medians, since the
 * host's clock is not to be trusted from one second to the next. Starting is measured in processes of their
 * own, from the context on: with an empty cache, and with what that one left.
 */
#include "alloc/timing.h"

#include "device/cuda/cuda.h"
#include "genesis/genesis.h"
#include "jit/kernel.h"
#include "jit/nvrtc.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS = 15,
    LAUNCHES = 500,
    FINDS = 200000,
    STARTS = 5,
    ELEMENTS = 1 << 16,
};

static gn_device *device;
static gn_stream *stream;
static void *memory;

static void check(gn_status status)
{
    if (status != GN_OK) {
        fprintf(stderr, "%s: %s\n", gn_status_name(status), gn_error_detail());
        exit(1);
    }
}

/* Such as an expression becomes: y = exp((x + a) * b), four elements a thread. */
static void text_make(char *text, size_t size, int number)
{
    (void)snprintf(text, size,
                   "struct alignas(16) four { float v[4]; };\n"
                   "extern \"C\" __global__ void fused(const float *x, float *y, float a, float b, "
                   "unsigned n)\n"
                   "{\n"
                   "    unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 4; // %d\n"
                   "    if (i + 4 <= n) {\n"
                   "        four in = *(const four *)(x + i), out;\n"
                   "        for (int k = 0; k < 4; k++)\n"
                   "            out.v[k] = expf((in.v[k] + a) * b);\n"
                   "        *(four *)(y + i) = out;\n"
                   "    } else {\n"
                   "        for (; i < n; i++)\n"
                   "            y[i] = expf((x[i] + a) * b);\n"
                   "    }\n"
                   "}\n",
                   number);
}

static void device_open(void)
{
    gn_memory_manager *manager;
    check(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    check(gn_stream_get_default(device, &stream));
    check(gn_memory_manager_get(device, &manager));
    check(gn_memory_alloc(manager, ELEMENTS * sizeof(float), stream, &memory));
    check(gn_stream_synchronize(stream));
}

/* Launches the kernel over so many elements. */
static void fused_launch(struct gni_kernel *kernel, unsigned n)
{
    float a = 1, b = 2;
    void *arguments[] = {&memory, &memory, &a, &b, &n};
    struct gni_launch launch = {
        .grid = {(n + 511) / 512, 1, 1}, .block = {128, 1, 1}, .arguments = arguments};
    check(gni_kernel_launch(kernel, stream, &launch));
}

/* ---- starting ------------------------------------------------------------------------------- */

static int first_main(void)
{
    char text[1024];
    struct gni_kernel *kernel;
    text_make(text, sizeof text, 0);
    struct gni_kernel_source source = {.name = "fused", .text = text};
    device_open();
    double start = now_ns();
    check(gni_kernel_get(device, &source, &kernel));
    double got = now_ns();
    fused_launch(kernel, ELEMENTS);
    check(gn_stream_synchronize(stream));
    printf("%.0f %.0f\n", got - start, now_ns() - start);
    return 0;
}

/* Runs `bench_jit first`; nanoseconds until the kernel is there, and until it has run. */
static void first_run(const char *program, double *got, double *done)
{
    int ends[2], status = 0;
    char line[128] = "";
    if (pipe(ends) != 0)
        exit(1);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(program, program, "first", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    ssize_t length = read(ends[0], line, sizeof line - 1);
    (void)close(ends[0]);
    if (waitpid(child, &status, 0) != child || status != 0 || length <= 0 ||
        sscanf(line, "%lf %lf", got, done) != 2)
        exit(1);
}

static void starts_measure(const char *program)
{
    double cold_got, cold_done, got[STARTS], done[STARTS];
    first_run(program, &cold_got, &cold_done);
    for (int i = 0; i < STARTS; i++)
        first_run(program, &got[i], &done[i]);
    printf("from the context to the first kernel, empty cache      %10.2f ms, run %10.2f ms\n",
           cold_got / 1e6, cold_done / 1e6);
    printf("the same, warm cache on disk                           %10.2f ms, run %10.2f ms\n",
           quantile(got, STARTS, 0.5) / 1e6, quantile(done, STARTS, 0.5) / 1e6);
}

/* ---- compiling ------------------------------------------------------------------------------ */

static void compile_measure(void)
{
    gn_device_properties properties;
    double times[ROUNDS];
    check(gn_device_get_properties(device, &properties));
    for (int i = 0; i < ROUNDS; i++) {
        char text[1024];
        struct gni_kernel_image image;
        text_make(text, sizeof text, 100 + i);
        struct gni_kernel_source source = {.name = "fused", .text = text};
        double start = now_ns();
        check(gni_nvrtc_compile(&source, properties.major * 10 + properties.minor, &image));
        times[i] = now_ns() - start;
        gni_kernel_image_deinit(&image);
    }
    printf("compiling an elementwise kernel, the first             %10.2f ms\n", times[0] / 1e6);
    printf("the next ones                                          %10.2f ms\n",
           quantile(times + 1, ROUNDS - 1, 0.5) / 1e6);
}

/* ---- finding and launching ------------------------------------------------------------------ */

static void find_measure(void)
{
    char text[1024], signature[64] = "y = exp((x + a) * b), float32, contiguous, 4 a thread";
    struct gni_kernel *kernel;
    double by_signature[ROUNDS], by_source[ROUNDS];
    text_make(text, sizeof text, 1);
    struct gni_kernel_source source = {.name = "fused", .text = text}, known = source;
    known.signature = signature;
    known.signature_size = sizeof signature;
    check(gni_kernel_get(device, &known, &kernel));
    check(gni_kernel_get(device, &source, &kernel));
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < FINDS; i++)
            if (gni_kernel_find(device, signature, sizeof signature) == NULL)
                exit(1);
        by_signature[round] = (now_ns() - start) / FINDS;
        start = now_ns();
        for (int i = 0; i < FINDS; i++)
            check(gni_kernel_get(device, &source, &kernel));
        by_source[round] = (now_ns() - start) / FINDS;
    }
    printf("finding a kernel by a signature of 64 bytes            %10.0f ns\n",
           quantile(by_signature, ROUNDS, 0.5));
    printf("by its source, %4zu bytes                              %10.0f ns\n", strlen(text),
           quantile(by_source, ROUNDS, 0.5));
}

static void launch_measure(void)
{
    static const char text[] = "extern \"C\" __global__ void nothing(float *x, int n) {}";
    struct gni_kernel_source source = {.name = "nothing", .text = text};
    struct gni_kernel *kernel;
    struct gni_cuda_device *cuda = gni_cuda_device_of(device);
    const struct gni_cuda_functions *raw = &cuda->driver->functions;
    struct gni_cuda_scope scope;
    double bare[ROUNDS], ours[ROUNDS], away[ROUNDS];
    int n = 0;
    void *arguments[] = {&memory, &n};
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .arguments = arguments};
    check(gni_kernel_get(device, &source, &kernel));
    for (int round = 0; round < ROUNDS; round++) {
        check(gni_cuda_enter(cuda, GNI_CUDA_PLAIN, &scope));
        double start = now_ns();
        for (int i = 0; i < LAUNCHES; i++)
            if (raw->cuLaunchKernel(kernel->function.handle, 1, 1, 1, 32, 1, 1, 0, stream->handle,
                                    arguments, NULL) != CUDA_SUCCESS)
                exit(1);
        bare[round] = (now_ns() - start) / LAUNCHES;
        check(gn_stream_synchronize(stream));
        start = now_ns();
        for (int i = 0; i < LAUNCHES; i++)
            check(gni_kernel_launch(kernel, stream, &launch));
        ours[round] = (now_ns() - start) / LAUNCHES;
        check(gn_stream_synchronize(stream));
        check(gni_cuda_leave(&scope, "", CUDA_SUCCESS));
        start = now_ns();
        for (int i = 0; i < LAUNCHES; i++)
            check(gni_kernel_launch(kernel, stream, &launch));
        away[round] = (now_ns() - start) / LAUNCHES;
        check(gn_stream_synchronize(stream));
    }
    printf("cuLaunchKernel itself                                  %10.0f ns\n",
           quantile(bare, ROUNDS, 0.5));
    printf("gni_kernel_launch, in the context                      %10.0f ns\n",
           quantile(ours, ROUNDS, 0.5));
    printf("gni_kernel_launch, from another context or none        %10.0f ns\n",
           quantile(away, ROUNDS, 0.5));
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "first") == 0)
        return first_main();
    char directory[] = "/tmp/genesis-bench-XXXXXX";
    if (mkdtemp(directory) == NULL || setenv("GENESIS_KERNEL_CACHE_DIR", directory, 1) != 0)
        return 1;
    int devices;
    if (gn_device_count(GN_DEVICE_CUDA, &devices) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return 77;
    }
    starts_measure("/proc/self/exe");
    device_open();
    compile_measure();
    find_measure();
    launch_measure();
    check(gn_kernel_cache_clear(NULL));
    (void)rmdir(directory);
    return 0;
}
