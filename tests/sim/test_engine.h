/*
 * test_engine.h: kernels from files, buffers with known bounds, and launches in every order.
 */
#ifndef GNI_TESTS_SIM_TEST_ENGINE_H
#define GNI_TESTS_SIM_TEST_ENGINE_H

#include "check.h"
#include "engine.h"
#include "device/cuda/nvrtc_api.h"

#define NVRTC_DECLARE(result, name, need, arguments) result name arguments;
GNI_NVRTC_FUNCTIONS(NVRTC_DECLARE)
#undef NVRTC_DECLARE

enum {
    ORDER_COUNT = 6, /* lanes up, down, and by four seeds */
    BUFFERS_MAX = 32,
};

/* Whether kernels are instrumented in this run. */
bool has_checks(void);

/* A kernel file with the common text in front of it; ends the program if there is none. */
char *kernel_source(const char *file);

/* Compiles a text; the image is for free(), the log too unless `log` is NULL. */
nvrtcResult text_compile(const char *text, const char *name, int option_count,
                         const char *const *options, char **image, char **log);

/* Borrows the module of a file, loaded once. */
struct sim_module *module_of(const char *file);
void modules_unload(void);

/* Buffers that kernels may use; all are freed together. The end is followed by a gap. */
void *buffer_make(size_t nbytes);
void buffers_free(void);

/* What the last launch used, in callbacks and bytes. */
extern size_t trace_calls, trace_read_nbytes, trace_write_nbytes;

/* Without instrumentation a kernel that runs wild is not stopped. */
struct run_options {
    unsigned grid[3], block[3];
    size_t shared_nbytes;
    int order;            /* 0 to ORDER_COUNT - 1 */
    bool is_every_access; /* no find_range */
    bool is_early;
    uint64_t accesses_max; /* of one thread */
};

/* Runs a kernel of a module by its name, with an array of pointers to its arguments. */
CUresult kernel_run(struct sim_module *module, const char *name, const struct run_options *options,
                    void *const *arguments, struct sim_report *report);

/* The same, and it must succeed. */
void kernel_run_well(struct sim_module *module, const char *name, const struct run_options *options,
                     void *const *arguments);

#define ARGUMENTS(...) ((void *const[]){__VA_ARGS__})

void test_engine_kernels(void);
void test_engine_bugs(void);

#endif
