/*
 * source.h: from the text of a CUDA C program to the text that the host compiler gets.
 *
 * The program stays as it is, line for line, but for two words that C++ has no meaning for:
 *
 *     extern __shared__ float s[];   ->   extern            float s[] __asm__("...");
 *     static __shared__ int n;       ->          __shared__ int n;
 *
 * and a table of its kernels is put behind it. The kernels are found by reading: comments, strings
 * and directives are skipped, namespaces followed, templates left to name expressions.
 *
 * A kernel that stands inside #if or is made by a macro cannot be found so; the caller then runs
 * the preprocessor first (sim_source_needs_preprocessor).
 *
 * Threads: pure functions.
 */
#ifndef GNI_SIM_SOURCE_H
#define GNI_SIM_SOURCE_H

#include "text.h"

struct sim_source {
    const char *text;
    const char *name;               /* of the program, for messages */
    const char *const *expressions; /* name expressions, each one entry of the table */
    size_t expression_count;
};

bool sim_source_needs_preprocessor(const char *text);

/* Writes only the program, unchanged, so that the preprocessor's messages name its lines. */
void sim_source_write_alone(const struct sim_source *source, struct sim_text *unit);

/* Writes the vocabulary, the rewritten program and the table. */
void sim_source_write(const struct sim_source *source, struct sim_text *unit);

/* Where the table's lines say they come from. */
#define SIM_SOURCE_TABLE_NAME "genesis_sim_table"

#endif
