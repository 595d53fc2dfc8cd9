/*
 * compile.c: see compile.h.
 */
#include "compile.h"
#include "setting.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef GENESIS_SIM_CXX_DEFAULT
#define GENESIS_SIM_CXX_DEFAULT ""
#endif
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define HAS_ASAN 1
#else
#define HAS_ASAN 0
#endif

enum {
    PATH_BYTES = 4096,
    ARGUMENTS_MAX = 256,
};

extern char **environ;

static atomic_ulong starts;

unsigned long sim_compile_starts(void)
{
    return starts;
}

enum sim_instrument sim_compile_instrument(void)
{
    if (sim_setting_choice("SIM_GPU_CHECK") != 1)
        return SIM_INSTRUMENT_HOOKS;
    return HAS_ASAN ? SIM_INSTRUMENT_ADDRESS : SIM_INSTRUMENT_NONE;
}

/* ---- Files and processes ---- */

bool sim_file_read(int file, struct sim_text *text)
{
    char buffer[16384];
    off_t offset = 0;
    for (;;) {
        ssize_t count = pread(file, buffer, sizeof buffer, offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count == 0;
        sim_text_add(text, buffer, (size_t)count);
        offset += count;
    }
}

bool sim_file_write(int file, const void *bytes, size_t nbytes)
{
    const char *from = bytes;
    while (nbytes > 0) {
        ssize_t count = write(file, from, nbytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        from += count;
        nbytes -= (size_t)count;
    }
    return true;
}

/* Our environment with plain messages and without what was loaded into us; for free(). */
static char **environment_make(void)
{
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **copy = calloc(count + 2, sizeof *copy);
    if (copy == NULL)
        return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && strncmp(environ[i], "LC_ALL=", 7) != 0)
            copy[kept++] = environ[i];
    copy[kept] = (char *)"LC_ALL=C";
    return copy;
}

static int process_wait(pid_t process)
{
    int status;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return errno == ECHILD ? 0 : -1; /* the program ignores its children: no status */
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int sim_process_run(const char *path, const char *const *arguments, int output, int errors)
{
    posix_spawn_file_actions_t actions;
    char **environment = environment_make();
    if (environment == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(environment);
        return -1;
    }
    const int files[] = {output, errors};
    int error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    for (int i = 0; i < 2 && error == 0; i++)
        error = files[i] >= 0
                    ? posix_spawn_file_actions_adddup2(&actions, files[i], i + 1)
                    : posix_spawn_file_actions_addopen(&actions, i + 1, "/dev/null", O_WRONLY, 0);
    pid_t process;
    if (error == 0)
        error = posix_spawnp(&process, path, &actions, NULL, (char *const *)arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return error == 0 ? process_wait(process) : -1;
}

/* ---- Which compiler ---- */

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static bool path_search(const char *name, char found[PATH_BYTES])
{
    if (strchr(name, '/') != NULL) {
        snprintf(found, PATH_BYTES, "%s", name);
        return is_program(found);
    }
    const char *at = getenv("PATH");
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        /* An empty or relative entry means the working directory, from which nothing is started. */
        if (*at == '/' &&
            snprintf(found, PATH_BYTES, "%.*s/%s", (int)length, at, name) < PATH_BYTES &&
            is_program(found))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

static bool compiler_find(char found[PATH_BYTES])
{
    const char *wanted = sim_setting_text("SIM_GPU_CXX");
    if (wanted != NULL && *wanted != '\0')
        return path_search(wanted, found);
    static const char *const names[] = {GENESIS_SIM_CXX_DEFAULT, "c++", "g++", "clang++"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (*names[i] != '\0' && path_search(names[i], found))
            return true;
    return false;
}

bool sim_compile_identity(struct sim_text *identity)
{
    char path[PATH_BYTES];
    struct stat info;
    if (!compiler_find(path) || stat(path, &info) != 0)
        return false;
    sim_text_print(identity, "%s %lld %lld.%09ld", path, (long long)info.st_size,
                   (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return true;
}

/* ---- One job ---- */

struct directory {
    char path[PATH_BYTES - 64];
};

static bool directory_make(struct directory *directory)
{
    const char *base = secure_getenv("TMPDIR");
    if (base == NULL || *base != '/')
        base = "/tmp";
    int count = snprintf(directory->path, sizeof directory->path, "%s/genesis-sim-XXXXXX", base);
    return count < (int)sizeof directory->path && mkdtemp(directory->path) != NULL;
}

/* A file of the directory, new; -1 with errno. */
static int directory_create(const struct directory *directory, const char *name)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", directory->path, name) >= (int)sizeof path)
        return -1;
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static bool directory_write(const struct directory *directory, const char *name, const char *text)
{
    int file = directory_create(directory, name);
    bool is_ok = file >= 0 && sim_file_write(file, text, strlen(text));
    if (file >= 0)
        close(file);
    return is_ok;
}

/* A header's name must stay inside the directory, and may have one level of directories of its own
 * for each slash. */
static bool header_write(const struct directory *directory, const struct sim_compile_file *header)
{
    if (header->name[0] == '/' || strstr(header->name, "..") != NULL || *header->name == '\0')
        return false;
    for (const char *at = strchr(header->name, '/'); at != NULL; at = strchr(at + 1, '/')) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%.*s", directory->path, (int)(at - header->name),
                 header->name);
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return false;
    }
    return directory_write(directory, header->name, header->text);
}

static void directory_remove_file(const struct directory *directory, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", directory->path, name);
    unlink(path);
    for (char *slash = strrchr(path, '/'); slash > path + strlen(directory->path);
         slash = strrchr(path, '/')) {
        *slash = '\0';
        rmdir(path); /* fails while it is not empty */
    }
}

static const char *const file_names[] = {"unit.cpp", "output", "log"};

static void directory_remove(const struct directory *directory, const struct sim_compile_job *job)
{
    for (size_t i = 0; i < sizeof file_names / sizeof *file_names; i++)
        directory_remove_file(directory, file_names[i]);
    for (size_t i = 0; i < job->header_count; i++)
        directory_remove_file(directory, job->headers[i].name);
    rmdir(directory->path);
}

/*
 * What every kernel is compiled with. Values are as on a GPU (no contraction unless asked for, no
 * assumption about aliasing or overflow), headers are as under NVRTC (none), and symbols stay
 * inside: two kernels of one name in two modules must not meet. Loops are not turned into calls of
 * memset or into vectors, so that each access stays what the source says.
 */
static const char *const common_flags[] = {
    "-x",
    "c++",
    "-O2",
    "-g1",
    "-w",
    "-fPIC",
    "-nostdinc",
    "-nostdinc++",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
};
static const char *const gcc_flags[] = {
    "-fno-gnu-unique",
    "-fno-tree-loop-distribute-patterns",
    "-fno-diagnostics-show-caret",
};
static const char *const link_flags[] = {
    "-shared", "-nostdlib", "-Wl,-Bsymbolic", "-Wl,-z,now", "-Wl,--build-id=none",
};
static const char *const hook_flags[] = {"-fsanitize=thread", "-DGN_SIM_CHECKS=1"};
static const char *const gcc_hook_flags[] = {"--param", "tsan-instrument-func-entry-exit=0",
                                             "--param", "tsan-distinguish-volatile=1"};
static const char *const clang_hook_flags[] = {"-mllvm", "-tsan-instrument-func-entry-exit=0",
                                               "-mllvm", "-tsan-distinguish-volatile=1"};
static const char *const address_flags[] = {"-fsanitize=address", "-fno-omit-frame-pointer",
                                            "-DGN_SIM_CHECKS=0"};
static const char *const plain_flags[] = {"-DGN_SIM_CHECKS=0"};
static const char *const library_flags[] = {"-lm", "-lc", "-lgcc"};

struct arguments {
    const char *list[ARGUMENTS_MAX + 1];
    size_t count;
    bool has_overflowed;
};

static void argument_add(struct arguments *arguments, const char *argument)
{
    if (arguments->count < ARGUMENTS_MAX)
        arguments->list[arguments->count++] = argument;
    else
        arguments->has_overflowed = true;
}

static void arguments_add(struct arguments *arguments, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        argument_add(arguments, list[i]);
}

#define ADD(arguments, list) arguments_add(arguments, list, sizeof(list) / sizeof *(list))

static void instrument_add(struct arguments *arguments, enum sim_instrument instrument,
                           bool is_clang)
{
    switch (instrument) {
    case SIM_INSTRUMENT_HOOKS:
        ADD(arguments, hook_flags);
        if (is_clang)
            ADD(arguments, clang_hook_flags);
        else
            ADD(arguments, gcc_hook_flags);
        break;
    case SIM_INSTRUMENT_ADDRESS:
        ADD(arguments, address_flags);
        break;
    case SIM_INSTRUMENT_NONE:
        ADD(arguments, plain_flags);
        break;
    }
}

/* The paths live in `paths`, as long as the list. */
struct paths {
    char compiler[PATH_BYTES], include[PATH_BYTES], unit[PATH_BYTES], output[PATH_BYTES];
};

static void arguments_fill(struct arguments *arguments, const struct sim_compile_job *job,
                           const struct paths *paths)
{
    bool is_clang = strstr(paths->compiler, "clang") != NULL;
    argument_add(arguments, paths->compiler);
    ADD(arguments, common_flags);
    if (!is_clang)
        ADD(arguments, gcc_flags);
    arguments_add(arguments, job->flags, job->flag_count);
    argument_add(arguments, paths->include);
    if (job->only_preprocess) {
        argument_add(arguments, "-E");
    } else {
        instrument_add(arguments, job->instrument, is_clang);
        ADD(arguments, link_flags);
    }
    argument_add(arguments, paths->unit);
    argument_add(arguments, "-o");
    argument_add(arguments, paths->output);
    if (!job->only_preprocess) {
        argument_add(arguments, "-x");
        argument_add(arguments, "none");
        ADD(arguments, library_flags);
    }
    arguments->list[arguments->count] = NULL;
}

static bool output_read(const struct paths *paths, struct sim_text *output)
{
    int file = open(paths->output, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_ok = file >= 0 && sim_file_read(file, output) && !output->has_failed;
    if (file >= 0)
        close(file);
    return is_ok;
}

static enum sim_compile_result directory_compile(const struct directory *directory,
                                                 const struct sim_compile_job *job,
                                                 struct paths *paths, struct sim_text *output,
                                                 struct sim_text *log)
{
    snprintf(paths->include, PATH_BYTES, "-I%s", directory->path);
    snprintf(paths->unit, PATH_BYTES, "%s/unit.cpp", directory->path);
    snprintf(paths->output, PATH_BYTES, "%s/output", directory->path);
    struct arguments arguments = {0};
    arguments_fill(&arguments, job, paths);
    int errors = directory_create(directory, "log");
    if (errors < 0 || arguments.has_overflowed) {
        sim_text_print(log, arguments.has_overflowed ? "too many options\n" : "no log file\n");
        if (errors >= 0)
            close(errors);
        return SIM_COMPILE_FAILED;
    }
    starts++;
    int status = sim_process_run(paths->compiler, arguments.list, -1, errors);
    sim_file_read(errors, log);
    close(errors);
    if (status == 0 && output_read(paths, output))
        return SIM_COMPILED;
    if (status > 0)
        return SIM_COMPILE_REFUSED;
    sim_text_print(log, "%s did not run to its end\n", paths->compiler);
    return SIM_COMPILE_FAILED;
}

enum sim_compile_result sim_compile(const struct sim_compile_job *job, struct sim_text *output,
                                    struct sim_text *log)
{
    struct paths paths;
    if (!compiler_find(paths.compiler)) {
        const char *wanted = sim_setting_text("SIM_GPU_CXX");
        sim_text_print(log,
                       "the simulated GPU needs a C++ compiler, and %s%s; SIM_GPU_CXX can name "
                       "one\n",
                       wanted != NULL ? wanted : "neither c++ nor g++ nor clang++",
                       wanted != NULL ? " cannot be run" : " was found");
        return SIM_COMPILE_NO_COMPILER;
    }
    struct directory directory;
    if (!directory_make(&directory)) {
        sim_text_print(log, "no directory for temporary files: %s\n", strerror(errno));
        return SIM_COMPILE_FAILED;
    }
    bool is_written = directory_write(&directory, "unit.cpp", job->text);
    for (size_t i = 0; i < job->header_count && is_written; i++)
        is_written = header_write(&directory, &job->headers[i]);
    enum sim_compile_result result = SIM_COMPILE_FAILED;
    if (is_written)
        result = directory_compile(&directory, job, &paths, output, log);
    else
        sim_text_print(log, "temporary files cannot be written\n");
    directory_remove(&directory, job);
    return result;
}
