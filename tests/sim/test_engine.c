/*
 * test_engine.c: the kernel engine and the compiler of the simulated GPU.
 *
 * SIM_GPU_CHECK says whether kernels are instrumented; ctest runs it both ways.
 */
#include "test_engine.h"
#include "cache.h"
#include "compile.h"
#include "image.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Kernels ---- */

static struct {
    char file[64];
    struct sim_module *module;
} modules[16];
static int module_count;

bool has_checks(void)
{
    return sim_compile_instrument() == SIM_INSTRUMENT_HOOKS;
}

static char *file_read(const char *path)
{
    struct sim_text text = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || !sim_file_read(file, &text)) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    close(file);
    return sim_text_take(&text);
}

char *kernel_source(const char *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", KERNEL_DIRECTORY, file);
    char *common = file_read(COMMON_FILE), *kernels = file_read(path);
    struct sim_text text = {0};
    sim_text_print(&text, "%s\n#line 1 \"%s\"\n%s", common, file, kernels);
    free(common);
    free(kernels);
    return sim_text_take(&text);
}

nvrtcResult text_compile(const char *text, const char *name, int option_count,
                         const char *const *options, char **image, char **log)
{
    nvrtcProgram program;
    size_t nbytes = 0;
    nvrtcResult result = nvrtcCreateProgram(&program, text, name, 0, NULL, NULL);
    CHECK(result == NVRTC_SUCCESS);
    result = nvrtcCompileProgram(program, option_count, options);
    CHECK(nvrtcGetProgramLogSize(program, &nbytes) == NVRTC_SUCCESS);
    char *printed = malloc(nbytes);
    CHECK(nvrtcGetProgramLog(program, printed) == NVRTC_SUCCESS);
    if (result == NVRTC_SUCCESS) {
        CHECK(nvrtcGetCUBINSize(program, &nbytes) == NVRTC_SUCCESS);
        *image = malloc(nbytes);
        CHECK(nvrtcGetCUBIN(program, *image) == NVRTC_SUCCESS);
    }
    if (log != NULL)
        *log = printed;
    else
        free(printed);
    CHECK(nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
    return result;
}

struct sim_module *module_of(const char *file)
{
    static const char *const options[] = {"--gpu-architecture=sm_90", "--fmad=false"};
    for (int i = 0; i < module_count; i++)
        if (strcmp(modules[i].file, file) == 0)
            return modules[i].module;
    char *source = kernel_source(file), *image = NULL, *log = NULL;
    nvrtcResult result = text_compile(source, file, 2, options, &image, &log);
    if (result != NVRTC_SUCCESS ||
        sim_module_load(image, &modules[module_count].module) != CUDA_SUCCESS) {
        fprintf(stderr, "%s: %s\n%s", file, nvrtcGetErrorString(result), log);
        exit(1);
    }
    free(source);
    free(image);
    free(log);
    snprintf(modules[module_count].file, sizeof modules->file, "%s", file);
    return modules[module_count++].module;
}

void modules_unload(void)
{
    while (module_count > 0)
        sim_module_unload(modules[--module_count].module);
}

/* ---- Buffers ---- */

static struct {
    char *begin;
    size_t nbytes;
} buffers[BUFFERS_MAX];
static int buffer_count;
size_t trace_calls, trace_read_nbytes, trace_write_nbytes;

void *buffer_make(size_t nbytes)
{
    char *memory = malloc(nbytes);
    if (memory == NULL || buffer_count == BUFFERS_MAX)
        exit(1);
    memset(memory, 0xd0, nbytes);
    buffers[buffer_count].begin = memory;
    buffers[buffer_count++].nbytes = nbytes;
    return memory;
}

void buffers_free(void)
{
    while (buffer_count > 0)
        free(buffers[--buffer_count].begin);
}

static bool range_find(void *context, uintptr_t address, uintptr_t *begin, uintptr_t *end)
{
    (void)context;
    for (int i = 0; i < buffer_count; i++) {
        *begin = (uintptr_t)buffers[i].begin;
        *end = *begin + buffers[i].nbytes;
        if (address >= *begin && address < *end)
            return true;
    }
    return false;
}

static bool access_count(void *context, uintptr_t address, size_t nbytes, bool is_write,
                         bool is_atomic, const void *site)
{
    (void)context;
    (void)is_atomic;
    uintptr_t begin, end;
    CHECK(site != NULL);
    trace_calls++;
    *(is_write ? &trace_write_nbytes : &trace_read_nbytes) += nbytes;
    return range_find(NULL, address, &begin, &end) && nbytes <= end - address;
}

/* ---- Launches ---- */

CUresult kernel_run(struct sim_module *module, const char *name, const struct run_options *options,
                    void *const *arguments, struct sim_report *report)
{
    const struct sim_kernel *kernel = sim_module_find(module, name);
    CHECK(kernel != NULL);
    if (kernel == NULL)
        exit(1);
    _Alignas(16) char packed[SIM_PARAMETERS_MAX_BYTES];
    CHECK(sim_kernel_parameters_bytes(kernel) <= sizeof packed);
    sim_kernel_parameters_copy(kernel, arguments, packed);
    struct sim_launch launch = {
        .kernel = kernel,
        .dynamic_shared_bytes = options->shared_nbytes,
        .parameters = packed,
        .lane_order = options->order < 2 ? (enum sim_order)options->order : SIM_ORDER_RANDOM,
        .block_order = options->order < 2 ? (enum sim_order)options->order : SIM_ORDER_RANDOM,
        .seed = (uint64_t)options->order,
        .accesses_max = options->accesses_max,
        .is_early = options->is_early,
        .find_range = options->is_every_access ? NULL : range_find,
        .access = access_count,
    };
    memcpy(launch.grid, options->grid, sizeof launch.grid);
    memcpy(launch.block, options->block, sizeof launch.block);
    trace_calls = trace_read_nbytes = trace_write_nbytes = 0;
    CUresult result = sim_launch_run(&launch, report);
    CHECK(result == report->result);
    return result;
}

void kernel_run_well(struct sim_module *module, const char *name, const struct run_options *options,
                     void *const *arguments)
{
    struct sim_report report;
    CHECK_U64(kernel_run(module, name, options, arguments, &report), CUDA_SUCCESS);
    CHECK_TEXT(report.text, "");
    CHECK_U64(report.fault, SIM_FAULT_NONE);
}

/* ---- Compiling ---- */

static const char small_kernel[] = "extern \"C\" __global__ void small(int *to)\n"
                                   "{\n"
                                   "    to[threadIdx.x] = 1;\n"
                                   "}\n";

static void errors_name_the_line(void)
{
    char *image = NULL, *log = NULL;
    CHECK(text_compile("// first\nextern \"C\" __global__ void bad(int *to)\n{\n"
                       "    to[0] = undeclared;\n}\n",
                       "bad_program.cu", 0, NULL, &image, &log) == NVRTC_ERROR_COMPILATION);
    CHECK(image == NULL && strstr(log, "bad_program.cu:4") != NULL);
    CHECK(strstr(log, "undeclared") != NULL);
    free(log);
    /* The preprocessor runs first here, and the line is still right. */
    CHECK(text_compile("#if 1\nextern \"C\" __global__ void bad(int *to)\n{\n"
                       "    to[0] = undeclared;\n}\n#endif\n",
                       "bad_program.cu", 0, NULL, &image, &log) == NVRTC_ERROR_COMPILATION);
    CHECK(strstr(log, "bad_program.cu:4") != NULL);
    free(log);
    /* No host header is there, as under NVRTC. */
    CHECK(text_compile("#include <stdio.h>\n", "include.cu", 0, NULL, &image, &log) ==
          NVRTC_ERROR_COMPILATION);
    CHECK(strstr(log, "include.cu:1") != NULL);
    free(log);
}

static void options_are_read(void)
{
    static const char *const good[] = {"-arch=compute_80",
                                       "--std=c++14",
                                       "-DWIDTH=4",
                                       "-D",
                                       "NAME=small",
                                       "--fmad=false",
                                       "-default-device",
                                       "--use_fast_math",
                                       "--gpu-architecture",
                                       "sm_90a",
                                       "--define-macro=OTHER",
                                       "-lineinfo"};
    char *image = NULL, *log = NULL;
    CHECK(text_compile("static_assert(WIDTH == 4 && __CUDA_ARCH__ == 900, \"\");\n"
                       "#ifndef OTHER\n#error\n#endif\n"
                       "extern \"C\" __global__ void NAME(int *to) { *to = WIDTH; }\n",
                       "options.cu", 12, good, &image, &log) == NVRTC_SUCCESS);
    CHECK_TEXT(log, "");
    struct sim_module *module = NULL;
    CHECK(sim_module_load(image, &module) == CUDA_SUCCESS);
    free(image);
    free(log);
    if (module != NULL)
        sim_module_unload(module);
    static const char *const bad[] = {"--no-such-option", "-arch=sm_1", "--fmad=maybe", "-arch",
                                      "--std=c99"};
    for (int i = 0; i < 5; i++) {
        CHECK(text_compile(small_kernel, "small.cu", 1, &bad[i], &image, &log) ==
              NVRTC_ERROR_INVALID_OPTION);
        CHECK(strstr(log, bad[i]) != NULL);
        free(log);
    }
}

static void headers_are_found(void)
{
    static const char *const headers[] = {"#pragma once\n#define VALUE 7\n",
                                          "#include \"value.h\"\n"
                                          "#define KERNEL(name) extern \"C\" __global__ void name"};
    static const char *const names[] = {"value.h", "inside/macro.h"};
    nvrtcProgram program;
    CHECK(nvrtcCreateProgram(&program,
                             "#include <inside/macro.h>\n"
                             "KERNEL(made)(int *to) { to[threadIdx.x] = VALUE; }\n",
                             NULL, 2, headers, names) == NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(program, 0, NULL) == NVRTC_SUCCESS);
    size_t nbytes = 0;
    CHECK(nvrtcGetPTXSize(program, &nbytes) == NVRTC_SUCCESS);
    char *ptx = malloc(nbytes);
    CHECK(nvrtcGetPTX(program, ptx) == NVRTC_SUCCESS);
    CHECK(strstr(ptx, "Genesis simulated GPU") != NULL);
    struct sim_module *module = NULL;
    CHECK(sim_module_load(ptx, &module) == CUDA_SUCCESS);
    free(ptx);
    int *to = buffer_make(8);
    struct run_options options = {.grid = {1, 1, 1}, .block = {2, 1, 1}};
    kernel_run_well(module, "made", &options, ARGUMENTS(&to));
    CHECK(to[0] == 7 && to[1] == 7);
    buffers_free();
    sim_module_unload(module);
    CHECK(nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
}

static void odd_sources(void)
{
    /* Words in comments, strings and other scopes; declarations; two kernels of one shape. */
    static const char source[] =
        "// __global__ void not_here(int)\n"
        "/* extern __shared__ */ static const char *words = \"__global__ void nor_here(int) {\";\n"
        "extern \"C\" __global__ void declared(int *to);\n"
        "#define LIMIT \\\n    64\n"
        "namespace { __device__ int hidden = 5; }\n"
        "extern __shared__ int at_file_scope[];\n"
        "extern \"C\" {\n"
        "__global__ void __launch_bounds__(LIMIT * 2, 1) declared(int *to)\n"
        "{ const int big = 1'000;\n"
        "  at_file_scope[threadIdx.x] = hidden + big; __syncthreads();\n"
        "  to[threadIdx.x] = at_file_scope[threadIdx.x ^ 1]; }\n"
        "static __global__ void own(int *to) { *to = '{' + (words[0] == '_'); }\n"
        "}\n"
        "template <class T> struct box { T value; };\n"
        "__global__ void takes(box<int> b, char c, double d, box<float *> p)\n"
        "{ *p.value = (float)b.value + c + (float)d; }\n";
    char *image = NULL, *log = NULL;
    nvrtcResult compiled = text_compile(source, "odd \"name\".cu", 0, NULL, &image, &log);
    CHECK(compiled == NVRTC_SUCCESS);
    if (compiled != NVRTC_SUCCESS) {
        fprintf(stderr, "%s", log);
        exit(1);
    }
    struct sim_module *module = NULL;
    CHECK(sim_module_load(image, &module) == CUDA_SUCCESS);
    CHECK(sim_module_find(module, "not_here") == NULL);
    CHECK_U64(sim_module_find(module, "declared")->max_threads_per_block, 128);
    int *to = buffer_make(8);
    struct run_options options = {.grid = {1, 1, 1}, .block = {2, 1, 1}, .shared_nbytes = 8};
    kernel_run_well(module, "declared", &options, ARGUMENTS(&to));
    CHECK(to[0] == 1005 && to[1] == 1005);
    options.block[0] = 1;
    kernel_run_well(module, "own", &options, ARGUMENTS(&to));
    CHECK(to[0] == '{' + 1);
    int b = 1;
    char c = 2;
    double d = 4.0;
    float *f = buffer_make(4);
    const struct sim_kernel *takes = sim_module_find_expression(module, "takes");
    CHECK_U64(sim_kernel_parameters_bytes(takes), 24);
    kernel_run_well(module, takes->name, &options, ARGUMENTS(&b, &c, &d, &f));
    CHECK(*f == 7.0f);
    sim_module_unload(module);
    buffers_free();
    free(image);
    free(log);
}

/* ---- The cache ---- */

static void directory_clear(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    char name[1024];
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        unlink(name);
    }
    if (directory != NULL)
        closedir(directory);
    rmdir(path);
}

/* Cuts or changes every file of the directory; gives how many there are. */
static int directory_damage(const char *path, bool cuts)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    char name[1024];
    int count = 0;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        int file = open(name, O_RDWR | O_CLOEXEC);
        CHECK(file >= 0 && (cuts ? ftruncate(file, 1000) == 0 : pwrite(file, "x", 1, 5000) == 1));
        close(file);
        count++;
    }
    if (directory != NULL)
        closedir(directory);
    return count;
}

/* Compiles the small kernel from an empty memory cache; gives how often the compiler started. */
static unsigned long starts_needed(void)
{
    char *image = NULL;
    unsigned long before = sim_compile_starts();
    sim_cache_forget();
    CHECK(text_compile(small_kernel, "small.cu", 0, NULL, &image, NULL) == NVRTC_SUCCESS);
    free(image);
    return sim_compile_starts() - before;
}

static void results_are_cached(void)
{
    char path[] = "/tmp/genesis-test-XXXXXX", *before = getenv("SIM_GPU_CACHE_DIR");
    CHECK(mkdtemp(path) != NULL);
    before = before != NULL ? strdup(before) : NULL;
    setenv("SIM_GPU_CACHE_DIR", path, 1);
    CHECK_U64(starts_needed(), 1);
    CHECK_U64(starts_needed(), 0);
    CHECK_U64(directory_damage(path, true), 1);
    CHECK_U64(starts_needed(), 1);
    CHECK_U64(starts_needed(), 0);
    CHECK_U64(directory_damage(path, false), 1);
    CHECK_U64(starts_needed(), 1);
    /* In memory, another name, other options, a directory that others may write. */
    char *image = NULL;
    unsigned long starts = sim_compile_starts();
    static const char *const option[] = {"--fmad=false"};
    CHECK(text_compile(small_kernel, "small.cu", 0, NULL, &image, NULL) == NVRTC_SUCCESS);
    free(image);
    CHECK_U64(sim_compile_starts() - starts, 0);
    CHECK(text_compile(small_kernel, "small.cu", 1, option, &image, NULL) == NVRTC_SUCCESS);
    free(image);
    CHECK_U64(sim_compile_starts() - starts, 1);
    CHECK(chmod(path, 0777) == 0);
    CHECK_U64(starts_needed(), 1);
    CHECK(chmod(path, 0700) == 0);
    CHECK_U64(starts_needed(), 0);
    setenv("SIM_GPU_CACHE_DIR", "", 1);
    CHECK_U64(starts_needed(), 1);
    if (before != NULL)
        setenv("SIM_GPU_CACHE_DIR", before, 1);
    else
        unsetenv("SIM_GPU_CACHE_DIR");
    free(before);
    directory_clear(path);
}

static void no_compiler(void)
{
    char *image = NULL, *log = NULL;
    char *before = getenv("SIM_GPU_CXX");
    before = before != NULL ? strdup(before) : NULL;
    setenv("SIM_GPU_CXX", "/no/such/compiler", 1);
    CHECK(text_compile(small_kernel, "small.cu", 0, NULL, &image, &log) ==
          NVRTC_ERROR_BUILTIN_OPERATION_FAILURE);
    CHECK(strstr(log, "/no/such/compiler") != NULL);
    free(log);
    if (before != NULL)
        setenv("SIM_GPU_CXX", before, 1);
    else
        unsetenv("SIM_GPU_CXX");
    free(before);
}

static void bad_images(void)
{
    char *image = NULL;
    struct sim_module *module = NULL;
    CHECK(text_compile(small_kernel, "small.cu", 0, NULL, &image, NULL) == NVRTC_SUCCESS);
    struct sim_image *header = (struct sim_image *)(void *)image;
    header->version++;
    CHECK(sim_module_load(image, &module) == CUDA_ERROR_INVALID_IMAGE);
    header->version--;
    header->instrument ^= 1; /* watched otherwise than this process does */
    CHECK(sim_module_load(image, &module) == CUDA_ERROR_INVALID_IMAGE);
    header->instrument ^= 1;
    header->nbytes--;
    CHECK(sim_module_load(image, &module) == CUDA_ERROR_INVALID_IMAGE);
    header->nbytes++;
    image[sizeof *header + 100] ^= 1;
    CHECK(sim_module_load(image, &module) == CUDA_ERROR_INVALID_IMAGE);
    image[sizeof *header + 100] ^= 1;
    CHECK(sim_module_load("not an image", &module) == CUDA_ERROR_INVALID_IMAGE);
    CHECK(sim_module_load("", &module) == CUDA_ERROR_INVALID_IMAGE);
    CHECK(sim_module_load(SIM_PTX_HEAD "0123", &module) == CUDA_ERROR_INVALID_IMAGE);
    CHECK(module == NULL);
    CHECK(sim_module_load(image, &module) == CUDA_SUCCESS);
    sim_module_unload(module);
    free(image);
}

static void bad_calls(void)
{
    size_t nbytes;
    int number;
    nvrtcProgram program = NULL;
    CHECK(nvrtcCreateProgram(NULL, "", "", 0, NULL, NULL) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcCreateProgram(&program, NULL, "", 0, NULL, NULL) == NVRTC_ERROR_INVALID_INPUT);
    CHECK(nvrtcCompileProgram(NULL, 0, NULL) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcDestroyProgram(&program) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcGetCUBINSize(NULL, &nbytes) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcCreateProgram(&program, "", "", 0, NULL, NULL) == NVRTC_SUCCESS);
    CHECK(nvrtcGetCUBINSize(program, &nbytes) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcGetCUBINSize(program, NULL) == NVRTC_ERROR_INVALID_INPUT);
    CHECK(nvrtcGetNumSupportedArchs(&number) == NVRTC_SUCCESS && number > 0);
    CHECK(nvrtcDestroyProgram(&program) == NVRTC_SUCCESS && program == NULL);
    CHECK_TEXT(nvrtcGetErrorString(NVRTC_ERROR_COMPILATION), "NVRTC_ERROR_COMPILATION");
    CHECK_TEXT(nvrtcGetErrorString((nvrtcResult)99), "NVRTC_ERROR unknown");
}

static void *thread_compile(void *context)
{
    char source[256], name[32], *image = NULL;
    snprintf(name, sizeof name, "parallel_%d", *(int *)context);
    snprintf(source, sizeof source, "extern \"C\" __global__ void %s(int *to) { *to = %d; }", name,
             *(int *)context);
    CHECK(text_compile(source, name, 0, NULL, &image, NULL) == NVRTC_SUCCESS);
    struct sim_module *module = NULL;
    CHECK(sim_module_load(image, &module) == CUDA_SUCCESS);
    CHECK(sim_module_find(module, name) != NULL);
    sim_module_unload(module);
    free(image);
    return NULL;
}

static void parallel_compilers(void)
{
    pthread_t threads[4];
    int numbers[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_compile, &numbers[i]) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* Modules come and go; two that are loaded at once do not meet, though their names are the same. */
static void modules_are_apart(void)
{
    char *images[2] = {NULL, NULL};
    CHECK(text_compile("__device__ int state = 1;\n"
                       "extern \"C\" __global__ void same(int *to) { *to = state++; }\n",
                       "a.cu", 0, NULL, &images[0], NULL) == NVRTC_SUCCESS);
    CHECK(text_compile("__device__ int state = 100;\n"
                       "extern \"C\" __global__ void same(int *to) { *to = state++; }\n",
                       "b.cu", 0, NULL, &images[1], NULL) == NVRTC_SUCCESS);
    int *to = buffer_make(4);
    struct run_options options = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    for (int round = 0; round < 3; round++) {
        struct sim_module *loaded[3] = {NULL, NULL, NULL};
        for (int i = 0; i < 3; i++)
            CHECK(sim_module_load(images[i % 2], &loaded[i]) == CUDA_SUCCESS);
        static const int order[] = {0, 1, 2, 0, 2, 1};
        static const int expected[] = {1, 100, 1, 2, 2, 101};
        for (int i = 0; i < 6; i++) {
            kernel_run_well(loaded[order[i]], "same", &options, ARGUMENTS(&to));
            CHECK_U64(*to, expected[i]);
        }
        for (int i = 0; i < 3; i++)
            sim_module_unload(loaded[(i + round) % 3]);
    }
    buffers_free();
    free(images[0]);
    free(images[1]);
}

/* ---- The real NVRTC: the kernels are CUDA C ---- */

static void real_nvrtc_accepts_the_kernels(void)
{
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    static const char *const files[] = {"elementwise.cu", "reduce.cu", "memory.cu", "vocabulary.cu",
                                        "bugs.cu"};
    static const char *const options[] = {"--gpu-architecture=sm_90", "--fmad=false"};
    void *library = NULL;
    for (int i = 0; i < 4 && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("     (no NVRTC here)\n");
        return;
    }
    struct gni_nvrtc_functions real;
#define LOAD(result, name, need, arguments) \
    real.name = (result(*) arguments)(uintptr_t)dlsym(library, #name);
    GNI_NVRTC_FUNCTIONS(LOAD)
#undef LOAD
    for (int i = 0; i < 5; i++) {
        char *source = kernel_source(files[i]);
        nvrtcProgram program;
        CHECK(real.nvrtcCreateProgram(&program, source, files[i], 0, NULL, NULL) == NVRTC_SUCCESS);
        bool is_template = strcmp(files[i], "memory.cu") == 0;
        if (is_template)
            CHECK(real.nvrtcAddNameExpression(program, "add_constant<float, 3>") == NVRTC_SUCCESS);
        nvrtcResult result = real.nvrtcCompileProgram(program, 2, options);
        CHECK(result == NVRTC_SUCCESS);
        char log[8192] = "";
        size_t nbytes = 0;
        real.nvrtcGetProgramLogSize(program, &nbytes);
        if (result != NVRTC_SUCCESS && nbytes < sizeof log &&
            real.nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS)
            fprintf(stderr, "%s", log);
        const char *name = "";
        if (is_template &&
            real.nvrtcGetLoweredName(program, "add_constant<float, 3>", &name) == NVRTC_SUCCESS)
            CHECK_TEXT(name, "_Z12add_constantIfLi3EEvPT_i"); /* as the simulator has it */
        real.nvrtcDestroyProgram(&program);
        free(source);
    }
    /* The library stays: it does not give back all of its memory. */
}

/* ---- What it costs ---- */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void costs(void)
{
    int n = 256 * 200;
    float *from = buffer_make((size_t)n * 4), *to = buffer_make((size_t)n * 4);
    memset(from, 0, (size_t)n * 4);
    struct run_options options = {.grid = {200, 1, 1}, .block = {256, 1, 1}};
    struct sim_module *reduce = module_of("reduce.cu"), *elementwise = module_of("elementwise.cu");
    kernel_run_well(reduce, "block_sum", &options, ARGUMENTS(&from, &to, &n));
    double begin = now_us();
    kernel_run_well(reduce, "block_sum", &options, ARGUMENTS(&from, &to, &n));
    double middle = now_us();
    kernel_run_well(elementwise, "vector_add", &options, ARGUMENTS(&from, &from, &to, &n));
    double end = now_us();
    printf("     256 threads, a barrier and 10 shuffles in part: %.1f us a block\n",
           (middle - begin) / 200);
    printf("     vector add: %.1f ns a thread\n", (end - middle) * 1e3 / n);
    buffers_free();
}

int main(void)
{
    test_engine_kernels();
    test_engine_bugs();
    RUN(errors_name_the_line);
    RUN(options_are_read);
    RUN(headers_are_found);
    RUN(odd_sources);
    RUN(results_are_cached);
    RUN(no_compiler);
    RUN(bad_images);
    RUN(bad_calls);
    RUN(parallel_compilers);
    RUN(modules_are_apart);
    RUN(real_nvrtc_accepts_the_kernels);
    RUN(costs);
    modules_unload();
    sim_cache_forget();
    return check_result();
}
