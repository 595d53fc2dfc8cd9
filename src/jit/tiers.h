/*
 * tiers.h: what runs a program on a GPU.
 *
 *   tier 0   kernels that are there before the program: fixed ones, and an interpreter of programs
 *   tier 1   the program's own kernel, which NVRTC compiles (kernel.h, background.h)
 *
 * Threads: any.
 */
#ifndef GNI_JIT_TIERS_H
#define GNI_JIT_TIERS_H

/* In the order of the choices of GENESIS_TIERS. */
enum gni_tiers {
    GNI_TIERS_AUTO,        /* on where the archive has the interpreter, else compiled */
    GNI_TIERS_ON,          /* tier 0 until tier 1 is compiled; a real GPU needs an archive */
    GNI_TIERS_COMPILED,    /* tier 1 alone: the program waits for the compiler */
    GNI_TIERS_INTERPRETED, /* tier 0 alone, where it can */
};

enum gni_tiers gni_tiers_mode(void);

/* For tests: another mode in the place of the option's; -1 puts that back. */
void gni_tiers_set_mode(int mode);

#endif
