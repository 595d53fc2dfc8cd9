/*
 * trim.h: takes out of a kernel's text what the kernel does not use.
 *
 * Texts are put together from whole .cu files, and a kernel uses little of them. A compiler reads all that it is given: half
 * of the time of a small kernel goes there. So comments go, and so does what no kernel of the text leads to:
 *
 *     #ifdef REDUCE_ROWS ... #endif      a condition on macros that the text defines is decided here. A condition on others
 *                                        (__CUDA_ARCH__, GN_NO_PTX) is left to the compiler
 *     typedef, struct, enum, variable,   a part: kept if a kernel is in it (__global__), or if a part that is kept
 *     function, #define                  names what it defines
 *
 * A name may have several parts. Of overloads (number(float16), number(bfloat16)) and specializations (make<float16>) only
 * those are kept whose types, of parameters and arguments of templates, are named too.
 *
 * The texts are ours, and this reads what they have of C++, not all of it: nothing at the top level may be a call of a macro,
 * an operator, or in a namespace.
 */
#ifndef GNI_JIT_TRIM_H
#define GNI_JIT_TRIM_H

#include "base/builder.h"

/* Adds to `out` what a text needs of itself. Fails for want of memory: then `out` has_failed. */
void gni_text_trim(const char *text, struct gni_builder *out);

#endif
