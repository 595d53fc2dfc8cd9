/*
 * nvrtc_api.h: the part of NVRTC's binary interface that we call, in our own words.
 *
 * NVRTC compiles CUDA C at run time and is loaded only when a kernel is first needed. The rules of
 * driver_api.h hold here too; tests/interface compares this file with the real nvrtc.h.
 */
#ifndef GNI_DEVICE_CUDA_NVRTC_API_H
#define GNI_DEVICE_CUDA_NVRTC_API_H

#include <stddef.h>

typedef struct _nvrtcProgram *nvrtcProgram;

typedef enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
    NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4,
    NVRTC_ERROR_INVALID_OPTION = 5,
    NVRTC_ERROR_COMPILATION = 6, /* the program's log says what is wrong */
    NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
    NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
    NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
    NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
    NVRTC_ERROR_INTERNAL_ERROR = 11,
} nvrtcResult;

/*
 * Every function that we call: X(result, name, need, arguments). The exported symbol is the name.
 * A REQUIRED function is one without which nothing can be compiled; an OPTIONAL pointer may be
 * NULL. Without the list of architectures we try the device's own; without lowered names only
 * extern "C" kernels can be found; without PTX there is no way to run on a device that is newer
 * than NVRTC.
 */
// clang-format off
#define GNI_NVRTC_FUNCTIONS(X)                                                                     \
    X(const char *, nvrtcGetErrorString, REQUIRED, (nvrtcResult result))                           \
    X(nvrtcResult, nvrtcVersion, REQUIRED, (int *major, int *minor))                               \
    X(nvrtcResult, nvrtcGetNumSupportedArchs, OPTIONAL, (int *count))                              \
    X(nvrtcResult, nvrtcGetSupportedArchs, OPTIONAL, (int *architectures))                         \
    X(nvrtcResult, nvrtcCreateProgram, REQUIRED,                                                   \
      (nvrtcProgram *program, const char *source, const char *name, int header_count,              \
       const char *const *headers, const char *const *header_names))                               \
    X(nvrtcResult, nvrtcDestroyProgram, REQUIRED, (nvrtcProgram *program))                         \
    X(nvrtcResult, nvrtcCompileProgram, REQUIRED,                                                  \
      (nvrtcProgram program, int option_count, const char *const *options))                        \
    X(nvrtcResult, nvrtcGetCUBINSize, REQUIRED, (nvrtcProgram program, size_t *nbytes))            \
    X(nvrtcResult, nvrtcGetCUBIN, REQUIRED, (nvrtcProgram program, char *cubin))                   \
    X(nvrtcResult, nvrtcGetPTXSize, OPTIONAL, (nvrtcProgram program, size_t *nbytes))              \
    X(nvrtcResult, nvrtcGetPTX, OPTIONAL, (nvrtcProgram program, char *ptx))                       \
    X(nvrtcResult, nvrtcGetProgramLogSize, REQUIRED, (nvrtcProgram program, size_t *nbytes))       \
    X(nvrtcResult, nvrtcGetProgramLog, REQUIRED, (nvrtcProgram program, char *log))                \
    X(nvrtcResult, nvrtcAddNameExpression, OPTIONAL,                                               \
      (nvrtcProgram program, const char *expression))                                              \
    X(nvrtcResult, nvrtcGetLoweredName, OPTIONAL,                                                  \
      (nvrtcProgram program, const char *expression, const char **lowered))
// clang-format on

/* One pointer for each function of the table. */
struct gni_nvrtc_functions {
#define GNI_NVRTC_FIELD(result, name, need, arguments) result(*name) arguments;
    GNI_NVRTC_FUNCTIONS(GNI_NVRTC_FIELD)
#undef GNI_NVRTC_FIELD
};

#endif
