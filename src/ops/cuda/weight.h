/*
 * weight.h: about how many instructions operations take, and from that how much code a kernel has.
 *
 * A thread computes several elements. Where an element takes few instructions, the code of all of them stands side by side:
 * that is fastest. Where it takes many, that would be machine code of 60 to 180 KB, which takes NVRTC up to a second: then
 * some elements stand side by side, and a loop goes through the others. Arrays stay in registers: the loop rotates them
 * (rotate() of elements.cu), so that what it computes with is always in front.
 */
#ifndef GNI_OPS_CUDA_WEIGHT_H
#define GNI_OPS_CUDA_WEIGHT_H

#include "ops/program.h"

/* Of an operation on float32. Light ones are an instruction or two, usual ones a function. */
int gni_op_weight(enum gni_op op);
bool gni_weight_is_light(int weight);
bool gni_weight_is_usual(int weight);

/* Whether the result is the exact one, rounded: every compiler's code gives the same bits. */
bool gni_op_is_exact(enum gni_op op);

/* Of the steps of a program, for one element. */
int gni_program_weight(const struct gni_program *program);

/* Whether an element takes so many that the elements of a pack do not all stand side by side. */
bool gni_weight_is_large(int weight);

/* How many of `count` elements of a pack stand side by side: a power of two, as `count` is. */
int gni_weight_together(int weight, int count);

/* How many of `count` packs do, for which a kernel has code of at most `most` instructions. */
int gni_weight_packs(int weight, int pack, int count, int most);

#endif
