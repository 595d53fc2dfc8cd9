/*
 * archive.h: kernels that were compiled when the package was built.
 *
 * With them a GPU works with nothing installed but its driver. They lie in a file beside the library (archive_file.h), or
 * where GENESIS_KERNEL_ARCHIVE says; the file is mapped when the first kernel is looked for. It is done without where
 * it is missing or damaged, where the driver is older than the NVRTC that compiled it, and on the simulator, whose
 * compiler is a part of the driver and makes other code.
 *
 * Threads: any.
 */
#ifndef GNI_JIT_ARCHIVE_H
#define GNI_JIT_ARCHIVE_H

#include "device/device.h"
#include "genesis/kernel.h"
#include "jit/source.h"

struct gni_archive_file;

/* Unpacks the code of a source for an architecture, which the caller owns then; false: the archive does not have it. */
bool gni_archive_find(const struct gni_kernel_source *source, int architecture,
                      struct gni_kernel_image *image);

/* Does the archive have code of a source for a device? */
bool gni_archive_has(gn_device *device, const struct gni_kernel_source *source);

/* The NVRTC that compiled the archive, 13000 for 13.0; 0: there is no archive that can be used. */
int gni_archive_nvrtc_version(void);

/* For people. */
void gni_archive_describe(gn_kernel_archive_description *description);

/* For tests: a file in the place of the process's own, with any driver; NULL puts that back. */
void gni_archive_use(const struct gni_archive_file *file);

#endif
