/*
 * driver.h: the CUDA driver, loaded by name at its first use and never linked.
 *
 *   gni_cuda_driver   what was loaded: the function table, versions, where from
 *
 * The library's name comes from GENESIS_CUDA_DRIVER. Each function of the table in driver_api.h is
 * asked of cuGetProcAddress() where the driver has it, and of dlsym() otherwise. A driver without a
 * required function is refused; without an optional one it lacks what the table says.
 *
 * The driver has one state for the process, which only moves forward:
 *
 *     not opened ---> opened ---> gone (the process exits, or this is a forked child)
 *         '---------> refused, with a reason
 *
 * When it is gone no function of it is called again: a driver that is shutting down may crash, and
 * in a child of fork() it does not work at all.
 */
#ifndef GNI_DEVICE_CUDA_DRIVER_H
#define GNI_DEVICE_CUDA_DRIVER_H

#include "base/error.h"
#include "device/cuda/driver_api.h"

/* The words of the tables of functions. */
enum gni_cuda_need {
    REQUIRED,
    OPTIONAL,
};

struct gni_cuda_driver {
    struct gni_cuda_functions functions; /* optional ones may be NULL */
    int version;                         /* of cuDriverGetVersion(): 13000 is 13.0 */
    void *library;                       /* of dlopen(); other symbols are looked up in it */
    char path[512];                      /* the file that was loaded */
};

/*
 * Borrows the driver, opening it if this is the first use. GN_ERROR_UNAVAILABLE with the reason,
 * the same at every call, when it was refused; GN_ERROR_FORKED or GN_ERROR_SHUTDOWN when it is
 * gone.
 */
gn_status gni_cuda_driver_open(const struct gni_cuda_driver **driver);

/* Is the driver out of reach? Then what was taken from it is freed by doing nothing. */
bool gni_cuda_driver_is_gone(void);

/* GN_OK, or the reason why an opened driver cannot be called any more. */
gn_status gni_cuda_driver_check(void);

/* The name and the text of a driver's result, for messages. Never fails. */
struct gni_cuda_error_text {
    char text[256];
};
struct gni_cuda_error_text gni_cuda_error_text(const struct gni_cuda_driver *driver,
                                               CUresult result);

/* What users lose without an optional function; "" if there is no such function. */
const char *gni_cuda_function_lost(const char *name);

#endif
