/*
 * library.h: NVRTC and cuBLASLt, found and loaded at their first use.
 *
 * Each is looked for in this order: in the driver's own library (a stand-in for the driver may
 * bring it along), among the libraries that the process has loaded already, in the toolkit that
 * CUDA_HOME or CUDA_PATH names, in the directories that gn_library_add_directory() was told (the
 * nvidia wheels of a Python environment), and where the system's loader looks, with /usr/local/cuda
 * last.
 */
#ifndef GNI_DEVICE_CUDA_LIBRARY_H
#define GNI_DEVICE_CUDA_LIBRARY_H

#include "base/error.h"
#include "device/cuda/cublaslt_api.h"
#include "device/cuda/nvrtc_api.h"

struct gni_nvrtc {
    struct gni_nvrtc_functions functions;
    int version;      /* 13000 is 13.0 */
    const char *path; /* the file that it is in */
};

struct gni_cublaslt {
    struct gni_cublaslt_functions functions;
    int version; /* of cublasLtGetVersion() */
};

/* Borrow the library. GN_ERROR_UNAVAILABLE with where it was looked for; for cuBLASLt, also where the driver is a
 * stand-in that does not bring it along. */
gn_status gni_nvrtc_open(const struct gni_nvrtc **nvrtc);
gn_status gni_cublaslt_open(const struct gni_cublaslt **cublaslt);

/* Borrows NVRTC if no file must be loaded for it: it is open already, or in the first two places. */
bool gni_nvrtc_find_loaded(const struct gni_nvrtc **nvrtc);

/* Does the driver bring NVRTC along, as the simulator does? Then code for other GPUs is none for it. */
bool gni_nvrtc_is_the_drivers(void);

/* Adds to a hash all that decides which file is found as NVRTC, but for what is installed. */
struct gni_sha256;
void gni_nvrtc_hash_search(struct gni_sha256 *hash);

#endif
