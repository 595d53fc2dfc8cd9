/*
 * nvrtc.c: NVRTC's interface over the host compiler. The exported functions are those of
 * device/cuda/nvrtc_api.h.
 *
 *   program   a source with its headers and name expressions; after a compilation also an image, a
 *             log, and the symbols of the expressions
 *
 * What comes out is an image (image.h) in the place of a cubin, found in the cache if the same text
 * was compiled with the same options by the same compiler before. The text that stands for PTX
 * names the image in the cache.
 *
 * Threads: a program belongs to one thread at a time; programs are independent, and compile at the
 * same time.
 */
#include "device/cuda/nvrtc_api.h"

#include "cache.h"
#include "compile.h"
#include "engine.h"
#include "image.h"
#include "source.h"
#include "vocabulary_text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    VERSION_MAJOR = 13,
    VERSION_MINOR = 0,
    DEFAULT_ARCHITECTURE = 75,
};

static const int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

/* A list of texts that it owns. */
struct list {
    char **items;
    size_t count;
};

struct _nvrtcProgram {
    char *source, *name;
    struct list header_names, headers, expressions;
    struct list lowered; /* a symbol for each expression */
    bool is_compiled;
    struct sim_cached image; /* nbytes 0: none */
    char key[GNI_SHA256_TEXT_BYTES];
    char ptx[256];
    struct sim_text log;
};

/* ---- Lists and programs ---- */

static bool list_add(struct list *list, const char *text)
{
    char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items == NULL)
        return false;
    list->items = items;
    items[list->count] = strdup(text);
    return items[list->count] != NULL && ++list->count > 0;
}

static void list_deinit(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    memset(list, 0, sizeof *list);
}

static void program_free(struct _nvrtcProgram *program)
{
    free(program->source);
    free(program->name);
    list_deinit(&program->header_names);
    list_deinit(&program->headers);
    list_deinit(&program->expressions);
    list_deinit(&program->lowered);
    sim_text_deinit(&program->log);
    free(program);
}

static bool program_fill(struct _nvrtcProgram *program, const char *source, const char *name,
                         int header_count, const char *const *headers,
                         const char *const *header_names)
{
    program->source = strdup(source);
    program->name = strdup(name != NULL && *name != '\0' ? name : "default_program");
    bool is_ok = program->source != NULL && program->name != NULL;
    for (int i = 0; i < header_count && is_ok; i++)
        is_ok = list_add(&program->headers, headers[i]) &&
                list_add(&program->header_names, header_names[i]);
    return is_ok;
}

/* ---- Options ---- */

/* What NVRTC's options mean to the host compiler. */
struct options {
    struct list flags;
    bool has_files; /* files of the disk can be included, whose text is not known beforehand */
    bool is_fused;  /* multiply-add may be contracted, as NVRTC does by default */
    int architecture;
    const char *standard;
};

/* Options that change nothing here, with "=..." or not. */
static const char *const ignored[] = {
    "-default-device",
    "--device-as-default-execution-space",
    "-G",
    "--device-debug",
    "-lineinfo",
    "--generate-line-info",
    "-use_fast_math",
    "--use_fast_math",
    "-ftz",
    "--ftz",
    "-prec-sqrt",
    "--prec-sqrt",
    "-prec-div",
    "--prec-div",
    "-extra-device-vectorization",
    "--extra-device-vectorization",
    "-maxrregcount",
    "--maxrregcount",
    "-rdc",
    "--relocatable-device-code",
    "-dc",
    "--device-c",
    "-dw",
    "--device-w",
    "-ewp",
    "--extensible-whole-program",
    "-w",
    "--disable-warnings",
    "-restrict",
    "--restrict",
    "-modify-stack-limit",
    "--modify-stack-limit",
    "-builtin-move-forward",
    "--builtin-move-forward",
    "-builtin-initializer-list",
    "--builtin-initializer-list",
    "-no-source-include",
    "--no-source-include",
    "-no-cache",
    "--no-cache",
    "-minimal",
    "--minimal",
    "-split-compile",
    "--split-compile",
    "-opt-info",
    "--optimization-info",
    "-Xptxas",
    "--ptxas-options",
    "-jump-table-density",
    "--jump-table-density",
    "-device-float128",
    "--device-float128",
};

/* The value of an option that is called `name`, "" if it has none; NULL: it is another option. */
static const char *option_value(const char *option, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(option, name, length) != 0)
        return NULL;
    if (option[length] == '=')
        return option + length + 1;
    return option[length] == '\0' ? "" : NULL;
}

static const char *option_value_of(const char *option, const char *first, const char *second)
{
    const char *value = option_value(option, first);
    return value != NULL ? value : option_value(option, second);
}

static bool option_is_ignored(const char *option)
{
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (option_value(option, ignored[i]) != NULL)
            return true;
    return false;
}

/* "compute_90", "sm_90a"; 0: no such thing. */
static int architecture_parse(const char *value)
{
    int number = 0;
    if (sscanf(value, "sm_%d", &number) != 1 && sscanf(value, "compute_%d", &number) != 1)
        return 0;
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (architectures[i] == number)
            return number;
    return 0;
}

static bool standard_is_known(const char *value)
{
    static const char *const known[] = {"c++11", "c++14", "c++17", "c++20"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(value, known[i]) == 0)
            return true;
    return false;
}

/* -DNAME, -D NAME, --define-macro=NAME and the like become one flag. */
static bool flag_add(struct options *options, const char *flag, const char *value)
{
    struct sim_text text = {0};
    sim_text_print(&text, "%s%s", flag, value);
    char *whole = sim_text_take(&text);
    bool is_ok = whole != NULL && list_add(&options->flags, whole);
    free(whole);
    return is_ok;
}

/* One option, and the next if it is its value. Gives how many were used; 0: not understood. */
static int option_parse(struct options *options, const char *option, const char *next)
{
    static const struct {
        const char *short_name, *long_name, *flag;
        bool reads_files;
    } passed[] = {
        {"-D", "--define-macro", "-D", false},
        {"-U", "--undefine-macro", "-U", false},
        {"-I", "--include-path", "-I", true},
        {"-include", "--pre-include", "--include=", true},
    };
    const char *value;
    if ((value = option_value_of(option, "-arch", "--gpu-architecture")) != NULL) {
        int used = *value != '\0' ? 1 : 2;
        options->architecture = architecture_parse(used == 1 ? value : next);
        return options->architecture != 0 ? used : 0;
    }
    if ((value = option_value_of(option, "-fmad", "--fmad")) != NULL) {
        options->is_fused = strcmp(value, "true") == 0;
        return options->is_fused || strcmp(value, "false") == 0;
    }
    if ((value = option_value_of(option, "-std", "--std")) != NULL) {
        options->standard = value;
        return standard_is_known(value);
    }
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        size_t length = strlen(passed[i].short_name);
        value = option_value(option, passed[i].long_name);
        if (value == NULL && strncmp(option, passed[i].short_name, length) == 0)
            value = option + length;
        if (value == NULL)
            continue;
        int used = *value != '\0' ? 1 : 2;
        options->has_files |= passed[i].reads_files;
        return flag_add(options, passed[i].flag, used == 1 ? value : next) ? used : 0;
    }
    return option_is_ignored(option);
}

static nvrtcResult options_parse(struct options *options, struct sim_text *log, int count,
                                 const char *const *texts)
{
    for (int i = 0; i < count;) {
        const char *next = i + 1 < count ? texts[i + 1] : "";
        int used = option_parse(options, texts[i], next);
        if (used == 0) {
            sim_text_print(log, "nvrtc: error: invalid value or unknown option: %s\n", texts[i]);
            return NVRTC_ERROR_INVALID_OPTION;
        }
        i += used;
    }
    char text[64];
    snprintf(text, sizeof text, "-D__CUDA_ARCH__=%d", options->architecture * 10);
    bool is_ok = list_add(&options->flags, text);
    snprintf(text, sizeof text, "-std=gnu%s", options->standard + 1);
    is_ok =
        is_ok && list_add(&options->flags, text) &&
        list_add(&options->flags, "-D__CUDACC_VER_MAJOR__=13") &&
        list_add(&options->flags, "-D__CUDACC_VER_MINOR__=0") &&
        list_add(&options->flags, "-D__GENESIS_SIM__=1") &&
        list_add(&options->flags, "-DGN_NO_PTX=1") && list_add(&options->flags, "-D__CUDACC__=1") &&
        list_add(&options->flags, "-D__CUDACC_RTC__=1") &&
        list_add(&options->flags, options->is_fused ? "-ffp-contract=fast" : "-ffp-contract=off");
    return is_ok ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

/* ---- Compiling ---- */

static void list_hash(struct gni_sha256 *hash, const struct list *list)
{
    uint64_t count = list->count;
    gni_sha256_add(hash, &count, sizeof count);
    for (size_t i = 0; i < list->count; i++)
        gni_sha256_add_text(hash, list->items[i]);
}

/*
 * Everything that an image depends on. `text` is the source, or what the preprocessor made of it
 * where files of the disk take part.
 */
static bool key_make(struct _nvrtcProgram *program, const char *text, const struct options *options,
                     enum sim_instrument instrument)
{
    struct sim_text identity = {0};
    if (!sim_compile_identity(&identity) || identity.has_failed) {
        sim_text_deinit(&identity);
        return false;
    }
    struct gni_sha256 hash;
    uint8_t digest[GNI_SHA256_BYTES];
    uint32_t kind = (uint32_t)instrument;
    gni_sha256_init(&hash);
    gni_sha256_add_text(&hash, identity.data);
    gni_sha256_add(&hash, &kind, sizeof kind);
    gni_sha256_add(&hash, sim_vocabulary_begin, sim_vocabulary_nbytes());
    gni_sha256_add_text(&hash, text);
    gni_sha256_add_text(&hash, program->name);
    list_hash(&hash, &program->headers);
    list_hash(&hash, &program->header_names);
    list_hash(&hash, &program->expressions);
    list_hash(&hash, &options->flags);
    gni_sha256_finish(&hash, digest);
    gni_sha256_text(digest, program->key);
    sim_text_deinit(&identity);
    return true;
}

static nvrtcResult result_of(enum sim_compile_result result)
{
    switch (result) {
    case SIM_COMPILED:
        return NVRTC_SUCCESS;
    case SIM_COMPILE_REFUSED:
        return NVRTC_ERROR_COMPILATION;
    case SIM_COMPILE_NO_COMPILER:
    case SIM_COMPILE_FAILED:
        break;
    }
    return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
}

/* Seals the object and gives it to the cache. */
static nvrtcResult image_store(struct _nvrtcProgram *program, const struct sim_text *object)
{
    size_t nbytes = sizeof(struct sim_image) + object->length;
    struct sim_image *image = malloc(nbytes);
    if (image == NULL)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    sim_image_seal(image, object->data, object->length);
    memcpy(image + 1, object->data, object->length);
    if (sim_cache_store(program->key, image, nbytes, &program->image))
        return NVRTC_SUCCESS;
    free(image);
    return NVRTC_ERROR_OUT_OF_MEMORY;
}

/* Puts what the preprocessor makes of the source into `expanded`. */
static nvrtcResult source_expand(struct _nvrtcProgram *program, struct sim_compile_job *job,
                                 struct sim_text *expanded)
{
    struct sim_text text = {0};
    sim_source_write_alone(&(struct sim_source){.text = program->source, .name = program->name},
                           &text);
    job->text = text.data;
    job->only_preprocess = true;
    nvrtcResult result = NVRTC_ERROR_OUT_OF_MEMORY;
    if (!text.has_failed)
        result = result_of(sim_compile(job, expanded, &program->log));
    sim_text_deinit(&text);
    return result;
}

static nvrtcResult source_compile(struct _nvrtcProgram *program, struct sim_compile_job *job,
                                  const char *text)
{
    struct sim_text unit = {0}, object = {0};
    struct sim_source source = {
        .text = text,
        .name = program->name,
        .expressions = (const char *const *)program->expressions.items,
        .expression_count = program->expressions.count,
    };
    sim_source_write(&source, &unit);
    job->text = unit.data;
    job->only_preprocess = false;
    nvrtcResult result = NVRTC_ERROR_OUT_OF_MEMORY;
    if (!unit.has_failed)
        result = result_of(sim_compile(job, &object, &program->log));
    if (result == NVRTC_SUCCESS)
        result = image_store(program, &object);
    sim_text_deinit(&unit);
    sim_text_deinit(&object);
    return result;
}

/*
 * From the cache, or by the compiler. The preprocessor runs before the cache is asked if files of
 * the disk take part, and before the compiler if kernels could not be found otherwise.
 */
static nvrtcResult job_run(struct _nvrtcProgram *program, const struct options *options,
                           struct sim_compile_job *job)
{
    struct sim_text expanded = {0};
    const char *text = program->source;
    nvrtcResult result = NVRTC_SUCCESS;
    bool needs_preprocessor = sim_source_needs_preprocessor(text);
    if (options->has_files && needs_preprocessor) {
        result = source_expand(program, job, &expanded);
        text = expanded.data;
    }
    if (result == NVRTC_SUCCESS && key_make(program, text, options, job->instrument) &&
        sim_cache_find(program->key, &program->image)) {
        sim_text_deinit(&expanded);
        return NVRTC_SUCCESS;
    }
    if (result == NVRTC_SUCCESS && needs_preprocessor && expanded.data == NULL) {
        result = source_expand(program, job, &expanded);
        text = expanded.data;
    }
    if (result == NVRTC_SUCCESS)
        result = source_compile(program, job, text);
    sim_text_deinit(&expanded);
    return result;
}

static nvrtcResult program_compile(struct _nvrtcProgram *program, const struct options *options)
{
    struct sim_compile_file *headers = calloc(program->headers.count + 1, sizeof *headers);
    if (headers == NULL)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < program->headers.count; i++)
        headers[i] = (struct sim_compile_file){.name = program->header_names.items[i],
                                               .text = program->headers.items[i]};
    struct sim_compile_job job = {
        .instrument = sim_compile_instrument(),
        .flags = (const char *const *)options->flags.items,
        .flag_count = options->flags.count,
        .headers = headers,
        .header_count = program->headers.count,
    };
    nvrtcResult result = job_run(program, options, &job);
    free(headers);
    return result;
}

/* The symbols of the name expressions are read off the loaded object. */
static nvrtcResult names_lower(struct _nvrtcProgram *program)
{
    struct sim_module *module;
    if (program->expressions.count == 0)
        return NVRTC_SUCCESS;
    if (sim_module_load(program->image.image, &module) != CUDA_SUCCESS)
        return NVRTC_ERROR_INTERNAL_ERROR;
    nvrtcResult result = NVRTC_SUCCESS;
    for (size_t i = 0; i < program->expressions.count && result == NVRTC_SUCCESS; i++) {
        const struct sim_kernel *kernel =
            sim_module_find_expression(module, program->expressions.items[i]);
        if (kernel == NULL)
            result = NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
        else if (!list_add(&program->lowered, kernel->name))
            result = NVRTC_ERROR_OUT_OF_MEMORY;
    }
    sim_module_unload(module);
    return result;
}

/* ---- The interface ---- */

EXPORT const char *nvrtcGetErrorString(nvrtcResult result);
EXPORT nvrtcResult nvrtcVersion(int *major, int *minor);
EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count);
EXPORT nvrtcResult nvrtcGetSupportedArchs(int *list);
EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                                      int header_count, const char *const *headers,
                                      const char *const *header_names);
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program);
EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count,
                                       const char *const *options);
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *nbytes);
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin);
EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *nbytes);
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx);
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *nbytes);
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log);
EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *expression);
EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *expression,
                                       const char **lowered);

const char *nvrtcGetErrorString(nvrtcResult result)
{
    static const char *const names[] = {
        "NVRTC_SUCCESS",
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "NVRTC_ERROR_INTERNAL_ERROR",
    };
    unsigned number = (unsigned)result;
    return number < sizeof names / sizeof *names ? names[number] : "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    if (major == NULL || minor == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    *major = VERSION_MAJOR;
    *minor = VERSION_MINOR;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    if (count == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    *count = (int)(sizeof architectures / sizeof *architectures);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *list)
{
    if (list == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    memcpy(list, architectures, sizeof architectures);
    return NVRTC_SUCCESS;
}

/* Faults that a test ordered (control.c); the engine's own tests are without them. */
int sim_nvrtc_fault(const char *function) __attribute__((weak));
bool sim_nvrtc_refuses(const char *source) __attribute__((weak));
void sim_nvrtc_wait(const char *source) __attribute__((weak));

#define FAULT_CHECK()                                                          \
    do {                                                                       \
        int ordered = sim_nvrtc_fault != NULL ? sim_nvrtc_fault(__func__) : 0; \
        if (ordered != 0)                                                      \
            return (nvrtcResult)ordered;                                       \
    } while (0)

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                               int header_count, const char *const *headers,
                               const char *const *header_names)
{
    FAULT_CHECK();
    if (program == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (source == NULL || header_count < 0 ||
        (header_count > 0 && (headers == NULL || header_names == NULL)))
        return NVRTC_ERROR_INVALID_INPUT;
    struct _nvrtcProgram *created = calloc(1, sizeof *created);
    if (created == NULL)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    if (!program_fill(created, source, name, header_count, headers, header_names)) {
        program_free(created);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    *program = created;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    if (program == NULL || *program == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    program_free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count, const char *const *options)
{
    FAULT_CHECK();
    if (program == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (option_count < 0 || (option_count > 0 && options == NULL))
        return NVRTC_ERROR_INVALID_INPUT;
    program->is_compiled = false;
    program->image = (struct sim_cached){0};
    list_deinit(&program->lowered);
    sim_text_deinit(&program->log);
    struct options parsed = {
        .is_fused = true, .architecture = DEFAULT_ARCHITECTURE, .standard = "c++17"};
    nvrtcResult result = options_parse(&parsed, &program->log, option_count, options);
    if (sim_nvrtc_wait != NULL)
        sim_nvrtc_wait(program->source);
    if (result == NVRTC_SUCCESS && sim_nvrtc_refuses != NULL &&
        sim_nvrtc_refuses(program->source)) {
        sim_text_print(&program->log, "%s(1): error: a test wants no such text\n", program->name);
        result = NVRTC_ERROR_COMPILATION;
    }
    if (result == NVRTC_SUCCESS)
        result = program_compile(program, &parsed);
    list_deinit(&parsed.flags);
    if (result == NVRTC_SUCCESS)
        result = names_lower(program);
    program->is_compiled = result == NVRTC_SUCCESS;
    if (program->is_compiled)
        snprintf(program->ptx, sizeof program->ptx, SIM_PTX_HEAD "%s\n", program->key);
    return result;
}

/* Sizes and copies of results: a program must have been compiled without an error. */
static nvrtcResult result_size(nvrtcProgram program, size_t size, size_t *nbytes)
{
    if (nbytes == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    if (program == NULL || !program->is_compiled)
        return NVRTC_ERROR_INVALID_PROGRAM;
    *nbytes = size;
    return NVRTC_SUCCESS;
}

static nvrtcResult result_copy(nvrtcProgram program, const void *from, size_t nbytes, char *to)
{
    if (to == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    if (program == NULL || !program->is_compiled)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memcpy(to, from, nbytes);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *nbytes)
{
    FAULT_CHECK();
    return result_size(program, program != NULL ? program->image.nbytes : 0, nbytes);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    FAULT_CHECK();
    return program == NULL
               ? NVRTC_ERROR_INVALID_PROGRAM
               : result_copy(program, program->image.image, program->image.nbytes, cubin);
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *nbytes)
{
    return result_size(program, program != NULL ? strlen(program->ptx) + 1 : 0, nbytes);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx)
{
    return program == NULL ? NVRTC_ERROR_INVALID_PROGRAM
                           : result_copy(program, program->ptx, strlen(program->ptx) + 1, ptx);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *nbytes)
{
    if (program == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (nbytes == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    *nbytes = program->log.length + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    if (program == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (log == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    memcpy(log, program->log.length > 0 ? program->log.data : "", program->log.length + 1);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *expression)
{
    if (program == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (expression == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    if (program->is_compiled)
        return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    return list_add(&program->expressions, expression) ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *expression, const char **lowered)
{
    if (program == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (expression == NULL || lowered == NULL)
        return NVRTC_ERROR_INVALID_INPUT;
    if (!program->is_compiled)
        return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    for (size_t i = 0; i < program->expressions.count; i++) {
        if (strcmp(program->expressions.items[i], expression) != 0)
            continue;
        *lowered = program->lowered.items[i];
        return NVRTC_SUCCESS;
    }
    return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}
