/*
 * nvrtc.c: see nvrtc.h.
 */
#include "jit/nvrtc.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/text.h"
#include "base/thread.h"
#include "device/cuda/library.h"
#include "jit/background.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    ARCHITECTURES_MAX = 64,
    EARLY = 90,
    OPTIONS_MAX = 64,
    OPTIONS_OURS = 3,      /* beside those of the source */
    MINIMAL_SINCE = 12040, /* the version that has --minimal */
    LOG_SHOWN_LINES = 12,  /* of a compiler's log, in an error's text */
    LOG_SHOWN_BYTES = 2000,
};

/* What is asked of NVRTC. */
struct target {
    int architecture;
    bool is_ptx; /* an architecture that NVRTC does not know yet: the driver does the rest */
};

/* One compilation. */
struct compilation {
    const struct gni_nvrtc *nvrtc;
    const struct gni_kernel_source *source;
    struct target target;
    nvrtcProgram program;
};

/* ---- the architecture ----------------------------------------------------------------------- */

static gn_status target_find(const struct gni_nvrtc *nvrtc, int architecture, struct target *target)
{
    const struct gni_nvrtc_functions *functions = &nvrtc->functions;
    int count = 0, known[ARCHITECTURES_MAX];
    *target = (struct target){.architecture = architecture};
    if (functions->nvrtcGetNumSupportedArchs == NULL || functions->nvrtcGetSupportedArchs == NULL ||
        functions->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0 ||
        count > ARCHITECTURES_MAX || functions->nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS)
        return GN_OK; /* it does not say: then it will say when it compiles */
    int newest = 0;   /* of those that the device can run */
    for (int i = 0; i < count; i++)
        if (known[i] <= architecture && known[i] > newest)
            newest = known[i];
    if (newest == 0)
        return gni_error(
            GN_ERROR_UNSUPPORTED,
            "NVRTC %d.%d does not compile for sm_%d any more: its oldest architecture is "
            "sm_%d; install an older one",
            nvrtc->version / 1000, nvrtc->version % 1000 / 10, architecture, known[0]);
    target->architecture = newest;
    target->is_ptx = newest != architecture;
    /* Code for less than EARLY cannot wait for what is before it, which early launches need (gni_launch.waits). */
    if (target->is_ptx && ((newest < EARLY && architecture >= EARLY) ||
                           functions->nvrtcGetPTX == NULL || functions->nvrtcGetPTXSize == NULL))
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "NVRTC %d.%d does not know sm_%d; install a newer one",
                         nvrtc->version / 1000, nvrtc->version % 1000 / 10, architecture);
    return GN_OK;
}

/* ---- words ---------------------------------------------------------------------------------- */

/* The text with numbered lines, as a compiler's messages count them. */
static void source_print(const struct gni_kernel_source *source)
{
    gni_log(GNI_LOG_DEBUG, "the text of kernel %s:", source->name);
    int number = 1;
    for (const char *line = source->text; *line != '\0'; number++) {
        size_t length = strcspn(line, "\n");
        gni_log(GNI_LOG_DEBUG, "%4d  %.*s", number, (int)(length < 1000 ? length : 1000), line);
        line += length + (line[length] == '\n');
    }
}

/* The compiler's log, of gni_host_alloc(); NULL where there is none or no memory for it. */
static char *log_read(const struct compilation *compilation)
{
    const struct gni_nvrtc_functions *functions = &compilation->nvrtc->functions;
    size_t nbytes = 0, room;
    if (functions->nvrtcGetProgramLogSize(compilation->program, &nbytes) != NVRTC_SUCCESS ||
        nbytes <= 1 || !gni_size_add(nbytes, 1, &room))
        return NULL;
    char *log = gni_host_alloc(room); /* zeros: it ends whatever NVRTC writes */
    if (log != NULL && functions->nvrtcGetProgramLog(compilation->program, log) != NVRTC_SUCCESS) {
        gni_host_free(log);
        return NULL;
    }
    return log;
}

/* How many bytes of a log an error's text has. */
static int log_shown_length(const char *log)
{
    size_t length = 0;
    for (int lines = 0; lines < LOG_SHOWN_LINES && log[length] != '\0'; lines++) {
        size_t line = strcspn(log + length, "\n");
        if (length + line > LOG_SHOWN_BYTES)
            break;
        length += line;
        length += log[length] == '\n';
    }
    if (length == 0) /* one line, longer than all that is shown */
        length = strnlen(log, LOG_SHOWN_BYTES);
    while (length > 0 && log[length - 1] == '\n')
        length--;
    return (int)length;
}

static gn_status nvrtc_error(const struct compilation *compilation, const char *function,
                             nvrtcResult result)
{
    const struct gni_nvrtc *nvrtc = compilation->nvrtc;
    bool is_text =
        result == NVRTC_ERROR_COMPILATION ||
        result == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID; /* else another time it may work */
    gn_status status = is_text ? GN_ERROR_COMPILATION : GN_ERROR_DRIVER;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY)
        status = GN_ERROR_OUT_OF_HOST_MEMORY;
    if (result == NVRTC_ERROR_INVALID_OPTION)
        status = GN_ERROR_INVALID_VALUE;
    char *log = compilation->program != NULL ? log_read(compilation) : NULL;
    if (log != NULL)
        gni_error_keep("kernel %s does not compile for sm_%d with NVRTC %d.%d (%s):\n%.*s",
                       compilation->source->name, compilation->target.architecture,
                       nvrtc->version / 1000, nvrtc->version % 1000 / 10,
                       nvrtc->functions.nvrtcGetErrorString(result), log_shown_length(log), log);
    else
        gni_error_keep("kernel %s does not compile for sm_%d with NVRTC %d.%d: %s failed: %s",
                       compilation->source->name, compilation->target.architecture,
                       nvrtc->version / 1000, nvrtc->version % 1000 / 10, function,
                       nvrtc->functions.nvrtcGetErrorString(result));
    gni_host_free(log);
    if (gni_log_is_on(GNI_LOG_DEBUG))
        source_print(compilation->source);
    return status;
}

/* ---- compiling ------------------------------------------------------------------------------ */

#define NVRTC_TRY(compilation, function, ...)                                           \
    do {                                                                                \
        nvrtcResult try_result = (compilation)->nvrtc->functions.function(__VA_ARGS__); \
        if (try_result != NVRTC_SUCCESS)                                                \
            return nvrtc_error((compilation), #function, try_result);                   \
    } while (0)

static gn_status program_compile(struct compilation *compilation)
{
    const struct gni_kernel_source *source = compilation->source;
    const char *const *given = source->options != NULL ? source->options : gni_kernel_options;
    const char *options[OPTIONS_MAX + OPTIONS_OURS];
    char architecture[48];
    (void)snprintf(architecture, sizeof architecture, "--gpu-architecture=%s_%d",
                   compilation->target.is_ptx ? "compute" : "sm", compilation->target.architecture);
    options[0] = architecture;
    int count = 1;
    for (; *given != NULL; given++) {
        if (count > OPTIONS_MAX)
            return gni_error(GN_ERROR_INVALID_VALUE, "kernel %s has more than %d options",
                             source->name, OPTIONS_MAX);
        options[count++] = *given;
    }
    /* What we generate needs nothing of CUDA's run time, and is a text for no reader: some milliseconds less. */
    if (source->options == NULL && compilation->nvrtc->version >= MINIMAL_SINCE) {
        options[count++] = "--minimal";
        options[count++] = "--disable-warnings";
    }
    if (source->is_expression) {
        if (compilation->nvrtc->functions.nvrtcAddNameExpression == NULL ||
            compilation->nvrtc->functions.nvrtcGetLoweredName == NULL)
            return gni_error(
                GN_ERROR_UNSUPPORTED,
                "this NVRTC finds only kernels that are extern \"C\"; kernel %s is not",
                source->name);
        NVRTC_TRY(compilation, nvrtcAddNameExpression, compilation->program, source->name);
    }
    NVRTC_TRY(compilation, nvrtcCompileProgram, compilation->program, count, options);
    return GN_OK;
}

static gn_status symbol_read(const struct compilation *compilation, char **out)
{
    const char *name = compilation->source->name;
    if (compilation->source->is_expression)
        NVRTC_TRY(compilation, nvrtcGetLoweredName, compilation->program, name, &name);
    size_t nbytes = strlen(name) + 1;
    char *symbol = gni_host_alloc(nbytes);
    if (symbol == NULL)
        return gni_error_host_memory(nbytes);
    memcpy(symbol, name, nbytes);
    *out = symbol;
    return GN_OK;
}

/* Fills in an image of zeros, as far as it gets. */
static gn_status image_read(const struct compilation *compilation, struct gni_kernel_image *image)
{
    if (compilation->target.is_ptx)
        NVRTC_TRY(compilation, nvrtcGetPTXSize, compilation->program, &image->nbytes);
    else
        NVRTC_TRY(compilation, nvrtcGetCUBINSize, compilation->program, &image->nbytes);
    image->bytes = gni_host_alloc(image->nbytes);
    if (image->bytes == NULL)
        return gni_error_host_memory(image->nbytes);
    if (compilation->target.is_ptx)
        NVRTC_TRY(compilation, nvrtcGetPTX, compilation->program, image->bytes);
    else
        NVRTC_TRY(compilation, nvrtcGetCUBIN, compilation->program, image->bytes);
    return symbol_read(compilation, &image->symbol);
}

static gn_status compilation_run(struct compilation *compilation, struct gni_kernel_image *image)
{
    GN_TRY(program_compile(compilation));
    struct gni_kernel_image made = {.bytes = NULL};
    gn_status status = image_read(compilation, &made);
    if (status != GN_OK) {
        gni_kernel_image_deinit(&made);
        return status;
    }
    *image = made;
    return GN_OK;
}

/* For readers: name_hash.cu in the directory of GENESIS_KERNEL_SOURCE_DIR. What goes wrong is said, and no failure. */
static void source_show(const struct gni_kernel_source *source)
{
    const char *directory = gni_option_text(GNI_OPTION_KERNEL_SOURCE_DIR);
    if (*directory == '\0')
        return;
    (void)mkdir(directory, 0700); /* private, as the cache is; it may be there already */
    (void)gni_kernel_source_write(source, directory);
}

/*
 * Before a thread that exit() must stop compiles. NVRTC registers handlers of its own when it is loaded and in its first
 * compilation, and compiling crashes once they have run. Handlers run from the newest to the oldest: so there is a
 * compilation of nothing first, and then our handler is registered.
 */
static void exit_guard(void)
{
    static const char *const options[] = {"--gpu-architecture=compute_90"};
    const struct gni_nvrtc *nvrtc;
    nvrtcProgram program = NULL;
    if (gni_nvrtc_open(&nvrtc) == GN_OK &&
        nvrtc->functions.nvrtcCreateProgram(&program, "extern \"C\" __global__ void none() {}",
                                            "none", 0, NULL, NULL) == NVRTC_SUCCESS) {
        (void)nvrtc->functions.nvrtcCompileProgram(program, 1, options);
        (void)nvrtc->functions.nvrtcDestroyProgram(&program);
    }
    gni_background_guard_exit();
}

gn_status gni_nvrtc_compile(const struct gni_kernel_source *source, int architecture,
                            struct gni_kernel_image *image)
{
    static struct gni_once guard_once = GNI_ONCE_INIT;
    struct compilation compilation = {.source = source};
    GN_TRY(gni_nvrtc_open(&compilation.nvrtc));
    if (gni_background_is_thread())
        gni_once_run(&guard_once, exit_guard);
    GN_TRY(target_find(compilation.nvrtc, architecture, &compilation.target));
    source_show(source);
    uint64_t start = gni_time_ns();
    NVRTC_TRY(&compilation, nvrtcCreateProgram, &compilation.program, source->text, source->name, 0,
              NULL, NULL);
    gn_status status = compilation_run(&compilation, image);
    (void)compilation.nvrtc->functions.nvrtcDestroyProgram(&compilation.program);
    if (status == GN_OK)
        gni_log(GNI_LOG_INFO, "kernel %s was compiled for sm_%d%s in %.0f ms, %s", source->name,
                compilation.target.architecture, compilation.target.is_ptx ? " as PTX" : "",
                (double)(gni_time_ns() - start) / 1e6, gni_size_text(image->nbytes).text);
    return status;
}
