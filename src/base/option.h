/*
 * option.h: the GENESIS_* environment variables.
 *
 * One table lists every variable with its kind, range, default and meaning. Rules:
 *   1. A variable is read once, when it is first asked for; later changes of the environment have
 *      no effect. Nothing is read at load time, so CUDA variables are read at the first CUDA use.
 *   2. A bad value is one warning and the default, never a failure.
 *   3. A GENESIS_ name that is not in the table is one warning.
 *   4. An empty value is none. In a setuid or setgid program the environment is ignored.
 */
#ifndef GNI_BASE_OPTION_H
#define GNI_BASE_OPTION_H

#include "genesis/base.h"

/*
 * X(id, variable, kind, default, minimum, maximum, choices, meaning)
 *
 * kinds    flag      0 1 true false on off yes no
 *          size      bytes, or a number with a unit; minimum and maximum in bytes
 *          amount    like size, but a bare number counts blocks (gni_option_is_count)
 *          fraction  a decimal number from minimum to maximum, in thousandths in this table
 *          number    a whole number from minimum to maximum; no default: 0
 *          choice    one of the choices
 *          set       any of the choices, separated by commas
 *          path      an absolute path
 *          library   an absolute path, a file name ending in .so or .so.N, or a plain word
 */
#define GNI_OPTION_TABLE(X)                                                                      \
    X(LOG, "GENESIS_LOG", choice, "warning", 0, 0, "off,error,warning,info,debug",               \
      "the lowest level of messages that is printed to standard error")                          \
    X(DEBUG, "GENESIS_DEBUG", set, "", 0, 0, "poison,guard,trace,sync",                          \
      "checks: poison fills fresh memory, guard fences blocks, trace marks where blocks were "   \
      "allocated, sync waits after each operation")                                              \
    X(BLAS, "GENESIS_BLAS", library, "auto", 0, 0, "",                                           \
      "the OpenBLAS for large matrix products; auto: the one that somebody has loaded, or one "  \
      "of our own; own: always that; off: neither it nor cuBLASLt")                              \
    X(CUDA_DRIVER, "GENESIS_CUDA_DRIVER", library, "libcuda.so.1", 0, 0, "",                     \
      "the driver library; a plain word W means libgenesis_W.so beside this library")            \
    X(CUDA_ALLOCATOR, "GENESIS_CUDA_ALLOCATOR", choice, "virtual", 0, 0, "direct,pool,virtual",  \
      "the memory manager's policy")                                                             \
    X(CUDA_MEMORY_FRACTION, "GENESIS_CUDA_MEMORY_FRACTION", fraction, "1", 1, 1000, "",          \
      "the part of a device's memory that this process may take")                                \
    X(CUDA_ZERO, "GENESIS_CUDA_ZERO", flag, "off", 0, 1, "",                                     \
      "memory that comes from the driver is filled with zeros")                                  \
    X(CUDA_SEGMENT_SIZE, "GENESIS_CUDA_SEGMENT_SIZE", size, "32MiB", 2097152, 68719476736, "",   \
      "how much memory a pool takes from the driver at a time")                                  \
    X(CUDA_CACHE_SIZE, "GENESIS_CUDA_CACHE_SIZE", amount, "1TiB", 0, 1099511627776, "",          \
      "how much free memory a device's caches may keep")                                         \
    X(CUDA_WARMUP_ENABLED, "GENESIS_CUDA_WARMUP_ENABLED", flag, "off", 0, 1, "",                 \
      "caches are filled when the memory manager starts")                                        \
    X(CUDA_STATS_ENABLED, "GENESIS_CUDA_STATS_ENABLED", flag, "off", 0, 1, "",                   \
      "detailed statistics: the time of driver calls")                                           \
    X(AUTOTUNE, "GENESIS_AUTOTUNE", choice, "on", 0, 0, "off,on,max",                            \
      "which ways to launch a kernel are compared by measuring: none, same bits, or all")        \
    X(LAUNCH_THREAD, "GENESIS_LAUNCH_THREAD", choice, "auto", 0, 0, "auto,on,off",               \
      "whether a thread of its own submits kernels; auto: with 4 processors or more")            \
    X(LAUNCH_EARLY, "GENESIS_LAUNCH_EARLY", flag, "on", 0, 1, "",                                \
      "kernels are launched while the one before them ends, where the GPU can do that")          \
    X(LAUNCH_TOGETHER, "GENESIS_LAUNCH_TOGETHER", flag, "on", 0, 1, "",                          \
      "the thread that submits kernels submits those that wait for it as one graph")             \
    X(TIERS, "GENESIS_TIERS", choice, "auto", 0, 0, "auto,on,compiled,interpreted",              \
      "what runs a program on a GPU: the interpreter until its own kernel is compiled, always "  \
      "its own kernel, or always the interpreter; auto: on where the archive has the "           \
      "interpreter, else compiled")                                                              \
    X(COMPILE_THREADS, "GENESIS_COMPILE_THREADS", number, "", 1, 64, "",                         \
      "threads that compile kernels in the background; without it half of the processors, 4 at " \
      "the most")                                                                                \
    X(RECOMPUTE_LEAST, "GENESIS_RECOMPUTE_LEAST", size, "1MiB", 1, 1125899906842624, "",         \
      "values of at least so many bytes that only gradients need may be computed again")         \
    X(KERNEL_ARCHIVE, "GENESIS_KERNEL_ARCHIVE", library, "auto", 0, 0, "",                       \
      "the archive of kernels that were compiled before; auto: the one beside this library; "    \
      "off: none")                                                                               \
    X(KERNEL_CACHE_DIR, "GENESIS_KERNEL_CACHE_DIR", path, "", 0, 0, "",                          \
      "where compiled kernels are kept; without it the user's cache directory")                  \
    X(KERNEL_SOURCE_DIR, "GENESIS_KERNEL_SOURCE_DIR", path, "", 0, 0, "",                        \
      "where the sources of kernels are written when they are compiled")

enum gni_option {
#define GNI_OPTION_ENUM(id, variable, kind, standard, minimum, maximum, choices, meaning) \
    GNI_OPTION_##id,
    GNI_OPTION_TABLE(GNI_OPTION_ENUM)
#undef GNI_OPTION_ENUM
    GNI_OPTION_COUNT
};

/* The bits of GENESIS_DEBUG, in the order of its choices. */
enum gni_debug_flag {
    GNI_DEBUG_POISON = 1u << 0,
    GNI_DEBUG_GUARD = 1u << 1,
    GNI_DEBUG_TRACE = 1u << 2,
    GNI_DEBUG_SYNC = 1u << 3,
};

/* Whether the environment has a value for it that is a good one. */
bool gni_option_is_given(enum gni_option option);

/* Each getter is for options of its kind (asserted); all are cheap after the first call. */
bool gni_option_flag(enum gni_option option);
uint64_t gni_option_size(enum gni_option option); /* size and amount */
bool gni_option_is_count(enum gni_option option); /* amount: was it a bare number? */
uint64_t gni_option_number(enum gni_option option);
double gni_option_fraction(enum gni_option option);
unsigned gni_option_choice(enum gni_option option);  /* the place in the list of choices */
unsigned gni_option_set(enum gni_option option);     /* a bit for each choice */
const char *gni_option_text(enum gni_option option); /* path and library; lives for ever */

#endif
