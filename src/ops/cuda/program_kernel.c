/*
 * program_kernel.c: see program_kernel.h.
 */
#include "ops/cuda/program_kernel.h"

#include "device/cuda/library.h"
#include "jit/archive.h"
#include "jit/background.h"
#include "jit/compiler.h"
#include "jit/tiers.h"
#include "ops/cuda/interpret.h"
#include "ops/cuda/weight.h"
#include "ops/recorder.h"

/* Whether every compiler gives the same bits: arithmetic, comparisons, conversions, roots. */
static bool is_exact(const struct gni_program_kernel *wanted)
{
    const struct gni_program *program = wanted->program;
    if (wanted->has_functions)
        return false;
    for (int s = 0; s < program->step_count; s++)
        if (program->steps[s].kind == GNI_STEP_OP && !gni_op_is_exact(program->steps[s].op))
            return false;
    return true;
}

/* What a program takes without its kernel: its elements, times the steps for each. */
static uint64_t cost_of(const struct gni_program *program)
{
    return (uint64_t)program->count * (uint64_t)(program->step_count + 1);
}

/* Without an archive two tiers are of use on the simulator alone, which compiles the interpreter in seconds and once. */
static bool is_mode(gn_device *device, enum gni_tiers wanted)
{
    enum gni_tiers mode = gni_tiers_mode();
    if (mode == GNI_TIERS_AUTO || (mode == GNI_TIERS_ON && !gni_nvrtc_is_the_drivers()))
        mode = gni_interpret_is_ready(device) ? GNI_TIERS_ON : GNI_TIERS_COMPILED;
    return mode == wanted;
}

bool gni_program_kernel_has_tiers(gn_device *device)
{
    return is_mode(device, GNI_TIERS_ON);
}

gn_status gni_program_kernel_build(gn_device *device, const struct gni_program_kernel *wanted,
                                   struct gni_kernel **kernel)
{
    char name[GNI_PROGRAM_KERNEL_NAME];
    struct gni_builder text = {.text = NULL};
    *kernel = gni_kernel_find(device, wanted->signature, wanted->signature_size);
    if (*kernel != NULL)
        return GN_OK;
    wanted->write(wanted->context, name, &text);
    void *state = gni_wait_begin();
    gn_status status =
        gni_kernel_build(device, name, &text, wanted->signature, wanted->signature_size, kernel);
    gni_wait_end(state);
    return status;
}

/* Whether kernels of this process are made by another compiler than those of the archive; unless it `may_load` the compiler, as
 * far as that is known. */
static bool is_other_version(bool may_load)
{
    struct gni_compiler compiler;
    int version = gni_archive_nvrtc_version();
    return version != 0 &&
           (gni_compiler_guess(&compiler) || (may_load && gni_compiler_load(&compiler) == GN_OK)) &&
           compiler.version != version;
}

/* A kernel that an earlier process has stored, so that the program begins in tier 1. */
static struct gni_kernel *stored_find(gn_device *device, const struct gni_program_kernel *wanted)
{
    char name[GNI_PROGRAM_KERNEL_NAME];
    struct gni_kernel *kernel;
    struct gni_builder text = {.text = NULL};
    wanted->write(wanted->context, name, &text);
    bool is_found = gni_kernel_build_known(device, name, &text, wanted->signature,
                                           wanted->signature_size, &kernel) == GN_OK;
    return is_found ? kernel : NULL;
}

/* The program will be interpreted: asks for its kernel, if that was not done before. */
static struct gni_kernel *kernel_request(gn_device *device, const struct gni_program_kernel *wanted,
                                         bool is_free)
{
    char name[GNI_PROGRAM_KERNEL_NAME];
    struct gni_builder text = {.text = NULL};
    uint64_t cost = cost_of(wanted->program);
    if (gni_kernel_is_requested(device, wanted->signature, wanted->signature_size, cost))
        return NULL;
    struct gni_kernel *kernel =
        is_free || !is_other_version(false) ? NULL : stored_find(device, wanted);
    if (kernel != NULL)
        return kernel;
    wanted->write(wanted->context, name, &text);
    gni_kernel_request(device, name, &text, wanted->signature, wanted->signature_size, cost,
                       is_free ? 0 : GNI_REQUEST_SAME_VERSION);
    return NULL;
}

gn_status gni_program_kernel_find(gn_stream *stream, const struct gni_program_kernel *wanted,
                                  struct gni_kernel **kernel)
{
    gn_device *device = stream->device;
    *kernel = gni_kernel_find(device, wanted->signature, wanted->signature_size);
    if (*kernel != NULL && gni_tiers_mode() != GNI_TIERS_INTERPRETED)
        return GN_OK;
    *kernel = NULL;
    if (is_mode(device, GNI_TIERS_INTERPRETED))
        return GN_OK;
    if (is_mode(device, GNI_TIERS_COMPILED))
        return gni_program_kernel_build(device, wanted, kernel);
    bool is_free = is_exact(wanted);
    if (stream->upper.capture != NULL && (is_free || !is_other_version(true))) {
        gn_status status = gni_program_kernel_build(device, wanted, kernel);
        if (status != GN_ERROR_UNAVAILABLE)
            return status;
        *kernel = NULL; /* there is no compiler */
    }
    *kernel = kernel_request(device, wanted, is_free);
    return GN_OK;
}
