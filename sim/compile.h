/*
 * compile.h: runs the host's C++ compiler on one text.
 *
 * The compiler is SIM_GPU_CXX, else the one that the build found, else c++, g++ or clang++ of
 * PATH. It is started without a shell, with our environment less LD_PRELOAD (a sanitizer that is
 * loaded into us is none of its business), and works in a directory of its own that is removed
 * afterwards.
 *
 * Threads: any number of jobs at a time.
 */
#ifndef GNI_SIM_COMPILE_H
#define GNI_SIM_COMPILE_H

#include "text.h"

/* How memory accesses of a kernel are watched. */
enum sim_instrument {
    SIM_INSTRUMENT_NONE,
    SIM_INSTRUMENT_HOOKS,   /* each access calls the engine */
    SIM_INSTRUMENT_ADDRESS, /* AddressSanitizer's own checks; only where we are built with it */
};

struct sim_compile_file {
    const char *name, *text;
};

struct sim_compile_job {
    const char *text; /* the whole C++ unit */
    bool only_preprocess;
    enum sim_instrument instrument;
    const char *const *flags; /* in the compiler's own words */
    size_t flag_count;
    const struct sim_compile_file *headers; /* that it can include */
    size_t header_count;
};

enum sim_compile_result {
    SIM_COMPILED,
    SIM_COMPILE_REFUSED,     /* the log says what is wrong with the text */
    SIM_COMPILE_NO_COMPILER, /* the log says what was looked for */
    SIM_COMPILE_FAILED,      /* of memory, disk or processes; the log says which */
};

/* SIM_GPU_CHECK=on (the default) or off, and how this library was built. */
enum sim_instrument sim_compile_instrument(void);

/* Names the compiler and its file's size and time, for cache keys. False: there is none. */
bool sim_compile_identity(struct sim_text *identity);

/* `output` gets the shared object, or the preprocessed text; `log` what the compiler printed. */
enum sim_compile_result sim_compile(const struct sim_compile_job *job, struct sim_text *output,
                                    struct sim_text *log);

/* How often a compiler was started by this process. */
unsigned long sim_compile_starts(void);

/*
 * Runs a program that `path` names, or that PATH has, with NULL-terminated arguments; its output
 * goes to the two descriptors, or nowhere if they are -1. Gives its exit status, or -1 if it did
 * not run or did not end by itself.
 */
int sim_process_run(const char *path, const char *const *arguments, int output, int errors);

/* Appends what a descriptor's file holds, from its beginning. False: it cannot be read. */
bool sim_file_read(int file, struct sim_text *text);

/* Writes all of it. False: errno says why. */
bool sim_file_write(int file, const void *bytes, size_t nbytes);

#endif
