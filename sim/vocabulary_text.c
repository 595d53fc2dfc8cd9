/*
 * vocabulary_text.c: see vocabulary_text.h. The build names the directory of the two files.
 */
#include "vocabulary_text.h"

#define LABEL(name) ".globl " #name "\n.hidden " #name "\n" #name ":\n"

// clang-format off
__asm__(".section .rodata\n"
        LABEL(sim_vocabulary_begin)
        ".incbin \"" GENESIS_SIM_DIRECTORY "/bridge.h\"\n"
        ".incbin \"" GENESIS_SIM_DIRECTORY "/vocabulary.h\"\n"
        LABEL(sim_vocabulary_end)
        ".byte 0\n"
        ".previous\n");
// clang-format on
