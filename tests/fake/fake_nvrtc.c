/*
 * fake_nvrtc.c: a stand-in for the file of NVRTC, to be found or passed by: it says its version and does nothing. With
 * FAKE_NVRTC_PART a function is missing, with FAKE_NVRTC_BROKEN it does not say its version.
 */
#include "device/cuda/nvrtc_api.h"

#include <stddef.h>

const char *nvrtcGetErrorString(nvrtcResult result)
{
    (void)result;
    return "a stand-in";
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
#ifdef FAKE_NVRTC_BROKEN
    (void)major, (void)minor;
    return NVRTC_ERROR_INTERNAL_ERROR;
#else
    *major = 12;
    *minor = 3;
    return NVRTC_SUCCESS;
#endif
}

#define DOES_NOTHING(name, ...)           \
    nvrtcResult name(__VA_ARGS__)         \
    {                                     \
        return NVRTC_ERROR_INVALID_INPUT; \
    }

DOES_NOTHING(nvrtcCreateProgram, void)
DOES_NOTHING(nvrtcDestroyProgram, void)
DOES_NOTHING(nvrtcCompileProgram, void)
DOES_NOTHING(nvrtcGetCUBINSize, void)
#ifndef FAKE_NVRTC_PART
DOES_NOTHING(nvrtcGetCUBIN, void)
#endif
DOES_NOTHING(nvrtcGetProgramLogSize, void)
DOES_NOTHING(nvrtcGetProgramLog, void)
