/*
 * generate.h: from specializations to CUDA C.
 *
 * Texts are put together from the .cu files of this folder, a struct of arguments, a function of one element, and a
 * kernel around it.
 */
#ifndef GNI_OPS_CUDA_GENERATE_H
#define GNI_OPS_CUDA_GENERATE_H

#include "base/builder.h"
#include "ops/cuda/specialization.h"

enum {
    GNI_CUDA_ARGUMENTS_MOST =
        16 + (GNI_PROGRAM_INPUTS_MOST + GNI_PROGRAM_NODES_MOST + 1) * (GN_DIMENSIONS_MAX + 1),
};

/* What a reduction's kernel is told beside the program. */
struct gni_reduce_arguments {
    int64_t kept, reduced;
    int64_t chunk; /* elements of a part */
    int64_t parts;
    int64_t slot;   /* of the stream */
    double divisor; /* of a mean */
    void *partial;  /* accumulators, where there are several parts */
    void *result;
};

/* The kernel's name, from what it computes. */
void gni_specialization_name(const struct gni_specialization *specialization, char *name,
                             size_t size);

void gni_specialization_text(const struct gni_specialization *specialization, const char *name,
                             struct gni_builder *text);

/* The kernel's one argument, a struct of 8-byte fields; returns their number. `reduce` is NULL for none. */
int gni_specialization_arguments(const struct gni_specialization *specialization,
                                 const struct gni_reduce_arguments *reduce, uint64_t *arguments);

/* The type in which a reduction of a value accumulates. */
gn_dtype gni_reduce_accumulator(gn_reduction reduction, gn_dtype dtype);

/* The name of a type in the .cu files, and that of the type that it has in memory. */
const char *gni_cuda_type(gn_dtype dtype);
const char *gni_cuda_memory_type(gn_dtype dtype);

/* The name of a reduction: the struct of reductions.cu is reduce_ and this. */
const char *gni_cuda_reduction(gn_reduction reduction);

/* The first operations of a program as a part of a kernel's name, which ends in "_"; returns how long it is. */
size_t gni_program_words(const struct gni_program *program, char *name, size_t size);

/* "T v7 = ..." for a step that is no reduction. In a row program the suffix is added to names of full values: "v7a". */
void gni_step_text(const struct gni_program *program, int step, const char *indent,
                   const char *suffix, struct gni_builder *text);

#endif
