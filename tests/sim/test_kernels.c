/*
 * test_kernels.c: the same CUDA C through NVRTC and the driver, on the simulator and on a GPU, against
 * results that the host computes in the same order: equal to the last bit.
 *
 *     test_kernels          with memory of each policy, fresh and freed memory poisoned or not
 *     test_kernels here     with memory as the environment has it
 *
 * A policy is chosen once in a process: the program is its own child, and the children's results have one
 * hash. Exits with 77 where there is no device or no NVRTC.
 */
#include "child.h"

#include "device/cuda/library.h"
#include "device/device.h"
#include "genesis/genesis.h"

enum {
    BLOCKS_MAX = 16, /* of device memory in one case */
};

static gn_device *device;
static gn_memory_manager *manager;
static gn_stream *stream;
static const struct gni_nvrtc *nvrtc;
static uint64_t seed = 4711;
static uint64_t hash = 0xcbf29ce484222325u; /* of all results */

/* ---- compiling ------------------------------------------------------------------------------ */

static char *file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    (void)fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    char *text = calloc(1, (size_t)length + 1);
    CHECK(fread(text, 1, (size_t)length, file) == (size_t)length);
    (void)fclose(file);
    return text;
}

/* Loads one of the kernel files, with the common words in front. */
static struct gni_module module_load(const char *name)
{
    char path[512], architecture[32];
    snprintf(path, sizeof path, "%s/%s", KERNEL_DIRECTORY, name);
    char *common = file_read(COMMON_FILE), *kernels = file_read(path);
    char *text = calloc(1, strlen(common) + strlen(kernels) + 2);
    strcat(strcat(strcpy(text, common), "\n"), kernels);
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    snprintf(architecture, sizeof architecture, "-arch=sm_%d%d", properties.major,
             properties.minor);
    const char *options[] = {architecture, "--fmad=false"};
    const struct gni_nvrtc_functions *functions = &nvrtc->functions;
    nvrtcProgram program;
    size_t nbytes = 0;
    CHECK(functions->nvrtcCreateProgram(&program, text, name, 0, NULL, NULL) == NVRTC_SUCCESS);
    CHECK(functions->nvrtcCompileProgram(program, 2, options) == NVRTC_SUCCESS);
    CHECK(functions->nvrtcGetCUBINSize(program, &nbytes) == NVRTC_SUCCESS);
    char *image = calloc(1, nbytes + 1);
    CHECK(functions->nvrtcGetCUBIN(program, image) == NVRTC_SUCCESS);
    CHECK(functions->nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
    struct gni_module module = {.device = NULL};
    CHECK_OK(device->ops->module_load(device, image, &module));
    free(image);
    free(text);
    free(kernels);
    free(common);
    return module;
}

/* ---- running -------------------------------------------------------------------------------- */

static void *blocks[BLOCKS_MAX];
static int block_count;

/* A block of device memory with these bytes in it, until case_end(). */
static void *block_of(const void *bytes, size_t nbytes)
{
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(manager, nbytes, stream, &pointer));
    CHECK_OK(gn_copy(pointer, bytes, nbytes, stream));
    blocks[block_count++] = pointer;
    return pointer;
}

static void case_end(void)
{
    while (block_count > 0)
        CHECK_OK(gn_memory_free(manager, blocks[--block_count]));
}

static void launch(const struct gni_module *module, const char *name, struct gni_launch sizes,
                   void **arguments)
{
    struct gni_function function;
    CHECK_OK(device->ops->function_find(module, name, &function));
    sizes.arguments = arguments;
    CHECK_OK(device->ops->function_launch(&function, stream, &sizes));
}

/* What is on the device must equal what the host made, byte for byte. */
static void result_check(const char *what, const void *pointer, const void *expected, size_t nbytes)
{
    unsigned char *got = malloc(nbytes);
    CHECK_OK(gn_copy(got, pointer, nbytes, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    size_t wrong = 0;
    for (size_t i = 0; i < nbytes; i++) {
        wrong += got[i] != ((const unsigned char *)expected)[i];
        hash = (hash ^ got[i]) * 0x100000001b3u;
    }
    if (wrong > 0)
        fprintf(stderr, "    %s: %zu of %zu bytes differ\n", what, wrong, nbytes);
    CHECK_U64(wrong, 0);
    free(got);
}

static float *floats_make(size_t count)
{
    float *values = calloc(count + 1, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = ((float)(int64_t)(check_random(&seed) % 20001) - 10000.0f) / 997.0f;
    return values;
}

static const int sizes[] = {1, 31, 33, 127, 257, 1009, 5003};

#define SIZE_COUNT (sizeof sizes / sizeof *sizes)
#define ARGUMENTS(...) ((void *[]){__VA_ARGS__})

static unsigned blocks_for(int n, int block)
{
    return (unsigned)((n + block - 1) / block);
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void test_vector_add(void)
{
    struct gni_module module = module_load("elementwise.cu");
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        int n = sizes[s];
        size_t nbytes = (size_t)n * sizeof(float);
        float *a = floats_make((size_t)n), *b = floats_make((size_t)n), *c = floats_make((size_t)n);
        void *da = block_of(a, nbytes), *db = block_of(b, nbytes), *dc = block_of(c, nbytes);
        launch(&module, "vector_add",
               (struct gni_launch){.grid = {blocks_for(n, 128), 1, 1}, .block = {128, 1, 1}},
               ARGUMENTS(&da, &db, &dc, &n));
        for (int i = 0; i < n; i++)
            c[i] = a[i] + b[i];
        result_check("vector_add", dc, c, nbytes);
        case_end();
        free(a), free(b), free(c);
    }
    CHECK_OK(device->ops->module_unload(&module));
}

/* As elementwise.cu has it. */
struct layout {
    int ndim;
    long long shape[4], stride[4];
};

static void strided_copy(const struct gni_module *module, struct layout view, int first, int source)
{
    int n = 1;
    for (int d = 0; d < view.ndim; d++)
        n *= (int)view.shape[d];
    float *from = floats_make((size_t)source), *to = floats_make((size_t)n);
    float *base = block_of(from, (size_t)source * sizeof *from);
    void *start = base + first, *target = block_of(to, (size_t)n * sizeof *to);
    long long count = n;
    launch(module, "strided_copy",
           (struct gni_launch){.grid = {blocks_for(n, 64), 1, 1}, .block = {64, 1, 1}},
           ARGUMENTS(&start, &target, &view, &count));
    for (int i = 0; i < n; i++) {
        long long rest = i, offset = first;
        for (int d = view.ndim - 1; d >= 0; d--) {
            offset += rest % view.shape[d] * view.stride[d];
            rest /= view.shape[d];
        }
        to[i] = from[offset];
    }
    result_check("strided_copy", target, to, (size_t)n * sizeof *to);
    case_end();
    free(from), free(to);
}

static void test_strided_copy(void)
{
    struct gni_module module = module_load("elementwise.cu");
    /* A transposed, reversed and broadcast view at once. */
    strided_copy(&module, (struct layout){4, {3, 7, 5, 11}, {0, 1, -7, 35}}, 28, 7 * 5 * 11);
    strided_copy(&module, (struct layout){1, {1}, {1}}, 0, 1);
    strided_copy(&module, (struct layout){2, {31, 33}, {1, 31}}, 0, 31 * 33);
    strided_copy(&module, (struct layout){2, {127, 17}, {-1, 127}}, 126, 127 * 17);
    strided_copy(&module, (struct layout){3, {257, 2, 3}, {3, 0, 1}}, 0, 257 * 3);
    CHECK_OK(device->ops->module_unload(&module));
}

/* The sum of 32 values in the order of five exchanges by xor. */
static float warp_sum(const float *values)
{
    float now[32], next[32];
    memcpy(now, values, sizeof now);
    for (int step = 16; step > 0; step /= 2) {
        for (int lane = 0; lane < 32; lane++)
            next[lane] = now[lane] + now[lane ^ step];
        memcpy(now, next, sizeof now);
    }
    return now[0];
}

static void test_block_sum(void)
{
    struct gni_module module = module_load("reduce.cu");
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        int n = sizes[s];
        unsigned count = blocks_for(n, 256);
        float *from = floats_make(count * 256), *sums = floats_make(count);
        for (int i = n; i < (int)count * 256; i++)
            from[i] = 0;
        void *dfrom = block_of(from, (size_t)n * sizeof *from);
        void *dsums = block_of(sums, count * sizeof *sums);
        launch(&module, "block_sum",
               (struct gni_launch){.grid = {count, 1, 1}, .block = {256, 1, 1}},
               ARGUMENTS(&dfrom, &dsums, &n));
        for (unsigned block = 0; block < count; block++) {
            float partial[32] = {0};
            for (int warp = 0; warp < 8; warp++)
                partial[warp] = warp_sum(from + block * 256 + warp * 32);
            sums[block] = warp_sum(partial);
        }
        result_check("block_sum", dsums, sums, count * sizeof *sums);
        case_end();
        free(from), free(sums);
    }
    CHECK_OK(device->ops->module_unload(&module));
}

/* Blocks that wait for earlier blocks. */
static void test_look_back_scan(void)
{
    struct gni_module module = module_load("reduce.cu");
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        int n = sizes[s];
        unsigned count = blocks_for(n, 128), zero = 0;
        int *from = calloc((size_t)n, sizeof *from), *to = calloc((size_t)n, sizeof *to);
        int *empty = calloc(count, sizeof *empty);
        for (int i = 0; i < n; i++)
            from[i] = (int)(check_random(&seed) % 1000) - 500;
        void *dfrom = block_of(from, (size_t)n * sizeof *from);
        void *dto = block_of(to, (size_t)n * sizeof *to), *ticket = block_of(&zero, sizeof zero);
        void *states = block_of(empty, count * sizeof *empty);
        void *own = block_of(empty, count * sizeof *empty);
        void *upto = block_of(empty, count * sizeof *empty);
        launch(&module, "look_back_scan",
               (struct gni_launch){.grid = {count, 1, 1}, .block = {128, 1, 1}},
               ARGUMENTS(&dfrom, &dto, &n, &ticket, &states, &own, &upto));
        for (int i = 0; i < n; i++)
            to[i] = from[i] + (i > 0 ? to[i - 1] : 0);
        result_check("look_back_scan", dto, to, (size_t)n * sizeof *to);
        case_end();
        free(from), free(to), free(empty);
    }
    CHECK_OK(device->ops->module_unload(&module));
}

static void histogram(const struct gni_module *module, int n)
{
    unsigned char *from = calloc((size_t)n, 1);
    unsigned counts[256] = {0};
    void *dcounts = block_of(counts, sizeof counts);
    for (int i = 0; i < n; i++)
        counts[from[i] = (unsigned char)(check_random(&seed) % 200)]++;
    void *dfrom = block_of(from, (size_t)n);
    launch(module, "histogram", (struct gni_launch){.grid = {7, 1, 1}, .block = {192, 1, 1}},
           ARGUMENTS(&dfrom, &dcounts, &n));
    result_check("histogram", dcounts, counts, sizeof counts);
    case_end();
    free(from);
}

static void test_histogram(void)
{
    struct gni_module module = module_load("memory.cu");
    for (size_t s = 0; s < SIZE_COUNT; s++)
        histogram(&module, sizes[s]);
    histogram(&module, 20011);
    CHECK_OK(device->ops->module_unload(&module));
}

static void test_matrix_product(void)
{
    static const int shapes[][3] = {{1, 1, 1},    {16, 16, 16},  {31, 33, 127}, {33, 127, 31},
                                    {127, 31, 1}, {257, 33, 31}, {1, 257, 33},  {40, 5, 67}};
    struct gni_module module = module_load("memory.cu");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        float *a = floats_make((size_t)(m * k)), *b = floats_make((size_t)(k * n));
        float *c = floats_make((size_t)(m * n));
        void *da = block_of(a, (size_t)(m * k) * sizeof *a);
        void *db = block_of(b, (size_t)(k * n) * sizeof *b);
        void *dc = block_of(c, (size_t)(m * n) * sizeof *c);
        launch(&module, "matrix_product",
               (struct gni_launch){.grid = {blocks_for(n, 16), blocks_for(m, 16), 1},
                                   .block = {16, 16, 1}},
               ARGUMENTS(&da, &db, &dc, &m, &n, &k));
        int steps = (int)blocks_for(k, 16) * 16; /* the last tile is filled up with zeros */
        for (int row = 0; row < m; row++) {
            for (int column = 0; column < n; column++) {
                float sum = 0;
                for (int i = 0; i < steps; i++)
                    sum += (i < k ? a[row * k + i] : 0.0f) * (i < k ? b[i * n + column] : 0.0f);
                c[row * n + column] = sum;
            }
        }
        result_check("matrix_product", dc, c, (size_t)(m * n) * sizeof *c);
        case_end();
        free(a), free(b), free(c);
    }
    CHECK_OK(device->ops->module_unload(&module));
}

static int kernels_run(void)
{
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK || gni_nvrtc_open(&nvrtc) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    RUN(test_vector_add);
    RUN(test_strided_copy);
    RUN(test_block_sum);
    RUN(test_look_back_scan);
    RUN(test_histogram);
    RUN(test_matrix_product);
    gn_stream_release(stream);
    fprintf(stderr, "policy %s, results %016llx\n", gn_memory_manager_get_policy(manager),
            (unsigned long long)hash);
    CHECK_OK(gn_shutdown(NULL));
    return check_result();
}

/* ---- policies ------------------------------------------------------------------------------- */

static const struct mode {
    const char *policy, *debug;
} all_modes[] = {
    {"direct", ""},     {"pool", ""},          {"virtual", ""},        {"direct", "poison"},
    {"pool", "poison"}, {"virtual", "poison"}, {"pool", "guard,sync"}, {"virtual", "guard,sync"},
};

static void mode_start(void *context)
{
    const struct mode *mode = context;
    (void)setenv("GENESIS_CUDA_ALLOCATOR", mode->policy, 1);
    (void)setenv("GENESIS_DEBUG", mode->debug, 1);
    (void)execl("/proc/self/exe", "test_kernels", "here", (char *)NULL);
    check_fail(__FILE__, __LINE__, "the program can start itself");
}

int main(int argc, char **argv)
{
    static struct child_result result;
    char first[64] = "";
    if (argc > 1 && strcmp(argv[1], "here") == 0)
        return kernels_run();
    for (size_t i = 0; i < sizeof all_modes / sizeof *all_modes; i++) {
        child_run(mode_start, (void *)(uintptr_t)&all_modes[i], &result);
        if (result.exit_code == CHECK_SKIPPED)
            return CHECK_SKIPPED;
        CHECK(child_is_ok(&result));
        char policy[32] = "", results[64] = "";
        const char *line = strstr(result.text, "policy ");
        CHECK(line != NULL && sscanf(line, "policy %31[a-z], results %63s", policy, results) == 2);
        CHECK_TEXT(policy, all_modes[i].policy);
        if (i == 0)
            (void)snprintf(first, sizeof first, "%s", results);
        CHECK_TEXT(results, first);
    }
    return check_result();
}
