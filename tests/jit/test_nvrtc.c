/*
 * test_nvrtc.c: what is asked of NVRTC, and what becomes of its answers: a stand-in for it gives each of them. Its
 * functions are put in the place of those that were found, on the simulator.
 */
#include "child.h"

#include "base/host.h"
#include "device/cuda/library.h"
#include "jit/nvrtc.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>

static struct gni_nvrtc *nvrtc; /* the library's own */

/* ---- the stand-in --------------------------------------------------------------------------- */

static struct {
    int known[80], known_count; /* architectures */
    nvrtcResult results[16];    /* of each function, by its place in GNI_NVRTC_FUNCTIONS */
    const char *log;
    char architecture[64]; /* the first option of the last compilation */
    int option_count, program_count;
} fake;

enum function {
#define FUNCTION(result, name, need, arguments) FUNCTION_##name,
    GNI_NVRTC_FUNCTIONS(FUNCTION)
};

#define ANSWER(name) (fake.results[FUNCTION_##name])

static nvrtcResult fake_count(int *count)
{
    *count = fake.known_count;
    return ANSWER(nvrtcGetNumSupportedArchs);
}

static nvrtcResult fake_list(int *architectures)
{
    memcpy(architectures, fake.known, (size_t)fake.known_count * sizeof *architectures);
    return ANSWER(nvrtcGetSupportedArchs);
}

static nvrtcResult fake_create(nvrtcProgram *program, const char *source, const char *name,
                               int header_count, const char *const *headers,
                               const char *const *header_names)
{
    (void)source, (void)name, (void)header_count, (void)headers, (void)header_names;
    if (ANSWER(nvrtcCreateProgram) == NVRTC_SUCCESS) {
        *program = (nvrtcProgram)&fake;
        fake.program_count++;
    }
    return ANSWER(nvrtcCreateProgram);
}

static nvrtcResult fake_destroy(nvrtcProgram *program)
{
    CHECK(*program == (nvrtcProgram)&fake);
    fake.program_count--;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_compile(nvrtcProgram program, int option_count, const char *const *options)
{
    (void)program;
    fake.option_count = option_count;
    (void)snprintf(fake.architecture, sizeof fake.architecture, "%s", options[0]);
    return ANSWER(nvrtcCompileProgram);
}

#define FAKE_SIZE(fake_name, name, text)                               \
    static nvrtcResult fake_name(nvrtcProgram program, size_t *nbytes) \
    {                                                                  \
        (void)program;                                                 \
        *nbytes = strlen(text) + 1;                                    \
        return ANSWER(name);                                           \
    }
#define FAKE_BYTES(fake_name, name, text)                           \
    static nvrtcResult fake_name(nvrtcProgram program, char *bytes) \
    {                                                               \
        (void)program;                                              \
        memcpy(bytes, text, strlen(text) + 1);                      \
        return ANSWER(name);                                        \
    }
FAKE_SIZE(fake_cubin_size, nvrtcGetCUBINSize, "cubin")
FAKE_BYTES(fake_cubin, nvrtcGetCUBIN, "cubin")
FAKE_SIZE(fake_ptx_size, nvrtcGetPTXSize, "longer ptx")
FAKE_BYTES(fake_ptx, nvrtcGetPTX, "longer ptx")
FAKE_SIZE(fake_log_size, nvrtcGetProgramLogSize, fake.log)
FAKE_BYTES(fake_log, nvrtcGetProgramLog, fake.log)

static nvrtcResult fake_expression(nvrtcProgram program, const char *expression)
{
    (void)program, (void)expression;
    return ANSWER(nvrtcAddNameExpression);
}

static nvrtcResult fake_lowered(nvrtcProgram program, const char *expression, const char **lowered)
{
    (void)program, (void)expression;
    *lowered = "_Z5scalePf";
    return ANSWER(nvrtcGetLoweredName);
}

static bool nvrtc_find(void)
{
    const struct gni_nvrtc *found = NULL;
    bool is_found = gni_nvrtc_open(&found) == GN_OK;
    nvrtc = (struct gni_nvrtc *)(uintptr_t)found;
    return is_found;
}

/* Everything works, and 75 to 100 are known. */
static void fake_reset(void)
{
    static const int known[] = {90, 75, 100, 80};
    struct gni_nvrtc_functions *functions = &nvrtc->functions;
    memset(&fake, 0, sizeof fake);
    memcpy(fake.known, known, sizeof known);
    fake.known_count = 4;
    fake.log = "";
    functions->nvrtcGetNumSupportedArchs = fake_count;
    functions->nvrtcGetSupportedArchs = fake_list;
    functions->nvrtcCreateProgram = fake_create;
    functions->nvrtcDestroyProgram = fake_destroy;
    functions->nvrtcCompileProgram = fake_compile;
    functions->nvrtcGetCUBINSize = fake_cubin_size;
    functions->nvrtcGetCUBIN = fake_cubin;
    functions->nvrtcGetPTXSize = fake_ptx_size;
    functions->nvrtcGetPTX = fake_ptx;
    functions->nvrtcGetProgramLogSize = fake_log_size;
    functions->nvrtcGetProgramLog = fake_log;
    functions->nvrtcAddNameExpression = fake_expression;
    functions->nvrtcGetLoweredName = fake_lowered;
}

/* ---- helpers -------------------------------------------------------------------------------- */

static struct gni_kernel_source source = {.name = "scale", .text = "one\ntwo"};

static gn_status compile(int architecture, struct gni_kernel_image *image)
{
    *image = (struct gni_kernel_image){.bytes = NULL};
    size_t live = gni_host_live_count();
    gn_status status = gni_nvrtc_compile(&source, architecture, image);
    CHECK(fake.program_count == 0);
    if (status != GN_OK)
        CHECK(image->bytes == NULL && gni_host_live_count() == live);
    return status;
}

static void compile_well(int architecture, const char *option, const char *bytes)
{
    struct gni_kernel_image image;
    CHECK_OK(compile(architecture, &image));
    CHECK_TEXT(fake.architecture, option);
    CHECK(image.bytes != NULL && image.nbytes == strlen(bytes) + 1 &&
          strcmp(image.bytes, bytes) == 0);
    CHECK_TEXT(image.symbol, source.is_expression ? "_Z5scalePf" : "scale");
    gni_kernel_image_deinit(&image);
}

static void compile_badly(int architecture, gn_status status, const char *words)
{
    struct gni_kernel_image image;
    CHECK_STATUS(compile(architecture, &image), status);
    CHECK(strstr(gn_error_detail(), words) != NULL);
    if (strstr(gn_error_detail(), words) == NULL)
        fprintf(stderr, "    \"%s\" lacks \"%s\"\n", gn_error_detail(), words);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Machine code for what is known, PTX of the newest before it for what is newer. */
static void test_architectures(void)
{
    fake_reset();
    compile_well(90, "--gpu-architecture=sm_90", "cubin");
    compile_well(75, "--gpu-architecture=sm_75", "cubin");
    compile_well(120, "--gpu-architecture=compute_100", "longer ptx");
    compile_well(89, "--gpu-architecture=compute_80", "longer ptx");
    compile_badly(70, GN_ERROR_UNSUPPORTED, "does not compile for sm_70 any more");
    fake.known_count = 2;
    fake.known[0] = 80; /* 80 and 75: code for a GPU of today needs more */
    compile_well(89, "--gpu-architecture=compute_80", "longer ptx");
    compile_badly(90, GN_ERROR_UNSUPPORTED, "does not know sm_90");
    fake_reset();
    nvrtc->functions.nvrtcGetPTX = NULL;
    compile_badly(120, GN_ERROR_UNSUPPORTED, "does not know sm_120");
    fake_reset();
    nvrtc->functions.nvrtcGetPTXSize = NULL;
    compile_badly(120, GN_ERROR_UNSUPPORTED, "does not know sm_120");
}

/* An NVRTC that does not say what it knows is asked for exactly what the device is. */
static void test_unknown_architectures(void)
{
    for (int i = 0; i < 6; i++) {
        fake_reset();
        if (i == 0)
            nvrtc->functions.nvrtcGetNumSupportedArchs = NULL;
        if (i == 1)
            nvrtc->functions.nvrtcGetSupportedArchs = NULL;
        if (i == 2)
            ANSWER(nvrtcGetNumSupportedArchs) = NVRTC_ERROR_INTERNAL_ERROR;
        if (i == 3)
            ANSWER(nvrtcGetSupportedArchs) = NVRTC_ERROR_INTERNAL_ERROR;
        if (i == 4)
            fake.known_count = 0;
        if (i == 5)
            fake.known_count = 65; /* more than there is room for */
        compile_well(123, "--gpu-architecture=sm_123", "cubin");
    }
    fake_reset();
    fake.known_count = 64; /* the most; the rest are zeros */
    compile_well(90, "--gpu-architecture=sm_90", "cubin");
}

static void test_options(void)
{
    enum {
        MOST = 64
    };
    const char *options[MOST + 2];
    fake_reset();
    for (int count = MOST - 1; count <= MOST + 1; count++) {
        for (int i = 0; i < count; i++)
            options[i] = "--std=c++17";
        options[count] = NULL;
        source.options = options;
        if (count <= MOST) {
            compile_well(90, "--gpu-architecture=sm_90", "cubin");
            CHECK_U64(fake.option_count, count + 1);
        } else {
            compile_badly(90, GN_ERROR_INVALID_VALUE, "more than 64 options");
        }
    }
    source.options = NULL;
}

static void test_expressions(void)
{
    fake_reset();
    source.is_expression = true;
    compile_well(90, "--gpu-architecture=sm_90", "cubin");
    ANSWER(nvrtcAddNameExpression) = NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    compile_badly(90, GN_ERROR_COMPILATION, "nvrtcAddNameExpression failed");
    fake_reset();
    ANSWER(nvrtcGetLoweredName) = NVRTC_ERROR_INTERNAL_ERROR;
    compile_badly(90, GN_ERROR_DRIVER, "nvrtcGetLoweredName failed");
    fake_reset();
    nvrtc->functions.nvrtcAddNameExpression = NULL;
    compile_badly(90, GN_ERROR_UNSUPPORTED, "only kernels that are extern \"C\"");
    fake_reset();
    nvrtc->functions.nvrtcGetLoweredName = NULL;
    compile_badly(90, GN_ERROR_UNSUPPORTED, "only kernels that are extern \"C\"");
    source.is_expression = false;
}

/* Each function fails, in each way. */
static void test_results(void)
{
    static const enum function functions[] = {
        FUNCTION_nvrtcCreateProgram, FUNCTION_nvrtcCompileProgram, FUNCTION_nvrtcGetCUBINSize,
        FUNCTION_nvrtcGetCUBIN,      FUNCTION_nvrtcGetPTXSize,     FUNCTION_nvrtcGetPTX};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int result = 1; result <= NVRTC_ERROR_INTERNAL_ERROR; result++) {
            fake_reset();
            fake.results[functions[i]] = (nvrtcResult)result;
            gn_status status = result == NVRTC_ERROR_OUT_OF_MEMORY    ? GN_ERROR_OUT_OF_HOST_MEMORY
                               : result == NVRTC_ERROR_INVALID_OPTION ? GN_ERROR_INVALID_VALUE
                               : result == NVRTC_ERROR_COMPILATION ||
                                       result == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID
                                   ? GN_ERROR_COMPILATION
                                   : GN_ERROR_DRIVER;
            compile_badly(i < 4 ? 90 : 120, status, "kernel scale does not compile for sm_");
        }
}

static void log_try(const char *log, const char *shown)
{
    fake.log = log;
    compile_badly(90, GN_ERROR_COMPILATION, shown);
    const char *begin = strstr(gn_error_detail(), "):\n");
    CHECK(begin != NULL);
    if (begin != NULL)
        CHECK_TEXT(begin + 3, shown);
}

/* Of a log the first lines are shown, whole, or the beginning of one that is too long. */
static void test_logs(void)
{
    enum {
        SHOWN = 2000
    };
    char log[2 * SHOWN + 3], shown[2 * SHOWN + 3];
    fake_reset();
    ANSWER(nvrtcCompileProgram) = NVRTC_ERROR_COMPILATION;
    log_try("x.cu(1): error\n", "x.cu(1): error");
    log_try("first\nsecond\n\n", "first\nsecond");
    log_try("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n",
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12");
    for (size_t length = SHOWN - 1; length <= SHOWN + 1; length++) {
        memset(log, 'x', length);
        strcpy(log + length, "\ny");
        memset(shown, 'x', length < SHOWN ? length : SHOWN);
        shown[length < SHOWN ? length : SHOWN] = '\0';
        log_try(log, shown);
    }
    memset(log, 'x', SHOWN); /* the second line does not fit any more */
    log[0] = 'a';
    log[10] = '\n';
    strcpy(log + SHOWN, "x\n");
    memcpy(shown, log, 10);
    shown[10] = '\0';
    log_try(log, shown);
    fake.log = ""; /* none: the function is named */
    compile_badly(90, GN_ERROR_COMPILATION, "nvrtcCompileProgram failed");
    fake.log = "something";
    ANSWER(nvrtcGetProgramLog) = NVRTC_ERROR_INTERNAL_ERROR;
    compile_badly(90, GN_ERROR_COMPILATION, "nvrtcCompileProgram failed");
    ANSWER(nvrtcGetProgramLog) = NVRTC_SUCCESS;
    ANSWER(nvrtcGetProgramLogSize) = NVRTC_ERROR_INTERNAL_ERROR;
    compile_badly(90, GN_ERROR_COMPILATION, "nvrtcCompileProgram failed");
    ANSWER(nvrtcGetProgramLogSize) = NVRTC_SUCCESS;
    gni_host_fail_after(1); /* no memory for the log */
    compile_badly(90, GN_ERROR_COMPILATION, "nvrtcCompileProgram failed");
    gni_host_fail_after(-1);
}

static void test_host_memory(void)
{
    long nth = 1;
    struct gni_kernel_image image;
    fake_reset();
    for (;; nth++) {
        gni_host_fail_after(nth);
        gn_status status = compile(90, &image);
        gni_host_fail_after(-1);
        if (status == GN_OK)
            break;
        CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(nth < 20);
    }
    CHECK_U64(nth, 3); /* the bytes and the symbol */
    gni_kernel_image_deinit(&image);
}

/* ---- what a person reads: options are read once in a process -------------------------------- */

static void debug_body(void *context)
{
    (void)context;
    CHECK(nvrtc_find());
    char text[1200 + 8] = "short\n";
    memset(text + 6, 'y', 1200);
    struct gni_kernel_source wrong = {.name = "wrong", .text = text};
    struct gni_kernel_image image;
    fake_reset();
    ANSWER(nvrtcCompileProgram) = NVRTC_ERROR_COMPILATION;
    CHECK_STATUS(gni_nvrtc_compile(&wrong, 90, &image), GN_ERROR_COMPILATION);
    fake_reset();
    CHECK_OK(gni_nvrtc_compile(&wrong, 120, &image));
    gni_kernel_image_deinit(&image);
}

static char folder[64];

static void folder_body(void *context)
{
    struct gni_kernel_image image;
    CHECK(setenv("GENESIS_KERNEL_SOURCE_DIR", context, 1) == 0);
    CHECK(nvrtc_find());
    fake_reset();
    source.name = "many::scale<float>";
    CHECK_OK(compile(90, &image));
    gni_kernel_image_deinit(&image);
}

static int file_remove(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static void test_texts_for_people(void)
{
    static struct child_result result;
    CHECK(setenv("GENESIS_LOG", "debug", 1) == 0);
    child_run(debug_body, NULL, &result);
    CHECK(child_is_ok(&result) && strstr(result.text, "the text of kernel wrong:") != NULL &&
          strstr(result.text, "   1  short\n") != NULL && strstr(result.text, "   2  yyy") != NULL);
    CHECK(strstr(result.text, "kernel wrong was compiled for sm_100 as PTX") != NULL);
    size_t most = 0, run = 0; /* a line that is too long is cut */
    for (const char *at = result.text; *at != '\0'; at++) {
        run = *at == 'y' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    CHECK_U64(most, 1000);
    CHECK(unsetenv("GENESIS_LOG") == 0);

    /* The symbol's name has no sign that a file's name must not have. */
    char sub[80];
    strcpy(folder, "/tmp/genesis-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(sub, sizeof sub, "%s/sub", folder);
    static char empty[] = "", missing[] = "/no/such/folder/at/all";
    child_run(folder_body, sub, &result);
    CHECK(child_is_ok(&result) && result.length == 0);
    DIR *stream = opendir(sub);
    int found = 0;
    for (struct dirent *item; stream != NULL && (item = readdir(stream)) != NULL;)
        found += strncmp(item->d_name, "many__scale_float__", 19) == 0;
    if (stream != NULL)
        (void)closedir(stream);
    CHECK_U64(found, 1);
    child_run(folder_body, missing, &result);
    CHECK(strstr(result.text, "the source of kernel many::scale<float> cannot be written") != NULL);
    child_run(folder_body, empty, &result);
    CHECK(strstr(result.text, "cannot be written") == NULL);
    CHECK(nftw(folder, file_remove, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

int main(void)
{
    const char *driver = getenv("GENESIS_CUDA_DRIVER");
    if (driver == NULL) {
        printf("skipped: GENESIS_CUDA_DRIVER does not name the simulator\n");
        return CHECK_SKIPPED;
    }
    RUN(test_texts_for_people); /* before this process has read its options */
    CHECK(nvrtc_find());
    RUN(test_architectures);
    RUN(test_unknown_architectures);
    RUN(test_options);
    RUN(test_expressions);
    RUN(test_results);
    RUN(test_logs);
    RUN(test_host_memory);
    return check_result();
}
