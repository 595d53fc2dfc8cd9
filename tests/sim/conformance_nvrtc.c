/*
 * conformance_nvrtc.c: programs about compiling.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void nvrtc_version(const struct gni_cuda_functions *cuda)
{
    int major = 0, minor = -1, count = 0, list[64];
    (void)cuda;
    NVRTC(nvrtcVersion, (&major, &minor), NVRTC_SUCCESS);
    EXPECT(major >= 11 && minor >= 0);
    NVRTC(nvrtcVersion, (NULL, NULL), NVRTC_ERROR_INVALID_INPUT);
    NVRTC(nvrtcGetNumSupportedArchs, (&count), NVRTC_SUCCESS);
    EXPECT(count > 0 && count <= 64);
    NVRTC(nvrtcGetNumSupportedArchs, (NULL), NVRTC_ERROR_INVALID_INPUT);
    NVRTC(nvrtcGetSupportedArchs, (list), NVRTC_SUCCESS);
    EXPECT(list[0] >= 30 && list[0] <= list[count - 1]);
    NVRTC(nvrtcGetSupportedArchs, (NULL), NVRTC_ERROR_INVALID_INPUT);
}

static void nvrtc_error_texts(const struct gni_cuda_functions *cuda)
{
    (void)cuda;
    struct conformance_place place = {__FILE__, __LINE__, "nvrtcGetErrorString",
                                      CALL_nvrtcGetErrorString};
    const char *text = conformance.nvrtc->nvrtcGetErrorString(NVRTC_ERROR_COMPILATION);
    conformance_expect(place, text == NULL || strcmp(text, "NVRTC_ERROR_COMPILATION") != 0,
                       (const int[]){0, -1});
    text = conformance.nvrtc->nvrtcGetErrorString((nvrtcResult)12345);
    EXPECT(text != NULL && text[0] != '\0');
}

static const char *const options[] = {"--gpu-architecture=sm_90"};

static void nvrtc_compile(const struct gni_cuda_functions *cuda)
{
    static const char source[] = "template <typename T> __global__ void twice(T *p) { *p *= 2; }";
    nvrtcProgram program = NULL;
    size_t image_bytes = 0, log_bytes = 0, ptx_bytes = 0;
    const char *name = NULL;
    NVRTC(nvrtcCreateProgram, (&program, source, "twice.cu", 0, NULL, NULL), NVRTC_SUCCESS);
    NVRTC(nvrtcAddNameExpression, (program, "twice<int>"), NVRTC_SUCCESS);
    NVRTC(nvrtcGetLoweredName, (program, "twice<int>", &name),
          NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
    if (!NVRTC(nvrtcCompileProgram, (program, 1, options), NVRTC_SUCCESS))
        return;
    NVRTC(nvrtcGetProgramLogSize, (program, &log_bytes), NVRTC_SUCCESS);
    EXPECT(log_bytes >= 1);
    NVRTC(nvrtcGetCUBINSize, (program, &image_bytes), NVRTC_SUCCESS);
    NVRTC(nvrtcGetPTXSize, (program, &ptx_bytes), NVRTC_SUCCESS);
    EXPECT(image_bytes > 0 && ptx_bytes > 1);
    char *image = malloc(image_bytes), *ptx = malloc(ptx_bytes);
    NVRTC(nvrtcGetCUBIN, (program, image), NVRTC_SUCCESS);
    NVRTC(nvrtcGetPTX, (program, ptx), NVRTC_SUCCESS);
    EXPECT(ptx[ptx_bytes - 1] == '\0');
    NVRTC(nvrtcAddNameExpression, (program, "twice<float>"),
          NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
    NVRTC(nvrtcGetLoweredName, (program, "twice<int>", &name), NVRTC_SUCCESS);
    NVRTC(nvrtcGetLoweredName, (program, "twice<char>", &name),
          NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
    NVRTC(nvrtcGetLoweredName, (program, "twice<int>", &name), NVRTC_SUCCESS);
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr block = ints_make(cuda, 1, 21);
    NEED(cuModuleLoadData, (&module, image));
    CU(cuModuleGetFunction, (&function, module, name), CUDA_SUCCESS);
    void *arguments[] = {&block};
    CU(cuLaunchKernel, (function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block, NULL) == 42);
    CU(cuModuleUnload, (module), CUDA_SUCCESS);
    CU(cuModuleLoadData, (&module, ptx), CUDA_SUCCESS);
    CU(cuModuleUnload, (module), CUDA_SUCCESS);
    NVRTC(nvrtcDestroyProgram, (&program), NVRTC_SUCCESS);
    EXPECT(program == NULL);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    free(image);
    free(ptx);
}

static void nvrtc_headers(const struct gni_cuda_functions *cuda)
{
    static const char source[] =
        "#include \"n.h\"\nextern \"C\" __global__ void k(int *p) { *p = N; }";
    const char *headers[] = {"#define N 7\n"}, *names[] = {"n.h"};
    nvrtcProgram program = NULL;
    (void)cuda;
    NVRTC(nvrtcCreateProgram, (&program, source, NULL, 1, headers, names), NVRTC_SUCCESS);
    NVRTC(nvrtcCompileProgram, (program, 1, options), NVRTC_SUCCESS);
    NVRTC(nvrtcDestroyProgram, (&program), NVRTC_SUCCESS);
}

static void nvrtc_compile_error(const struct gni_cuda_functions *cuda)
{
    static const char source[] = "extern \"C\" __global__ void k(int *p)\n{ *p = no_such_name; }";
    const char *bad[] = {"--no-such-option=5"};
    nvrtcProgram program = NULL;
    size_t nbytes = 0;
    (void)cuda;
    NVRTC(nvrtcCreateProgram, (&program, source, "bad.cu", 0, NULL, NULL), NVRTC_SUCCESS);
    NVRTC(nvrtcCompileProgram, (program, 1, bad), NVRTC_ERROR_INVALID_OPTION);
    NVRTC(nvrtcCompileProgram, (program, 1, options), NVRTC_ERROR_COMPILATION);
    NVRTC(nvrtcGetProgramLogSize, (program, &nbytes), NVRTC_SUCCESS);
    char *log = calloc(1, nbytes + 1);
    NVRTC(nvrtcGetProgramLog, (program, log), NVRTC_SUCCESS);
    EXPECT(strstr(log, "no_such_name") != NULL && strstr(log, "bad.cu") != NULL);
    NVRTC(nvrtcDestroyProgram, (&program), NVRTC_SUCCESS);
    free(log);
}

/* Without a program there is nothing to ask. */
static void nvrtc_errors(const struct gni_cuda_functions *cuda)
{
    nvrtcProgram program = NULL;
    size_t nbytes = 0;
    char text[8];
    const char *name;
    (void)cuda;
#define BAD_PROGRAM NVRTC_ERROR_INVALID_PROGRAM, NVRTC_ERROR_INVALID_INPUT
    NVRTC(nvrtcCreateProgram, (NULL, "", NULL, 0, NULL, NULL), NVRTC_ERROR_INVALID_PROGRAM);
    NVRTC(nvrtcCreateProgram, (&program, NULL, NULL, 0, NULL, NULL), NVRTC_ERROR_INVALID_INPUT);
    NVRTC(nvrtcDestroyProgram, (&program), BAD_PROGRAM);
    NVRTC(nvrtcCompileProgram, (NULL, 0, NULL), BAD_PROGRAM);
    NVRTC(nvrtcGetCUBINSize, (NULL, &nbytes), BAD_PROGRAM);
    NVRTC(nvrtcGetCUBIN, (NULL, text), BAD_PROGRAM);
    NVRTC(nvrtcGetPTXSize, (NULL, &nbytes), BAD_PROGRAM);
    NVRTC(nvrtcGetPTX, (NULL, text), BAD_PROGRAM);
    NVRTC(nvrtcGetProgramLogSize, (NULL, &nbytes), BAD_PROGRAM);
    NVRTC(nvrtcGetProgramLog, (NULL, text), BAD_PROGRAM);
    NVRTC(nvrtcAddNameExpression, (NULL, "k"), BAD_PROGRAM);
    NVRTC(nvrtcGetLoweredName, (NULL, "k", &name), BAD_PROGRAM);
}

const struct conformance_program conformance_nvrtc[] = {
    PROGRAM(nvrtc_version, 0), PROGRAM(nvrtc_error_texts, 0),   PROGRAM(nvrtc_compile, 0),
    PROGRAM(nvrtc_headers, 0), PROGRAM(nvrtc_compile_error, 0), PROGRAM(nvrtc_errors, 0),
    {NULL, NULL, 0},
};
