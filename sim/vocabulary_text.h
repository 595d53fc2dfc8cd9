/*
 * vocabulary_text.h: bridge.h and vocabulary.h as text, packed into the library by the assembler.
 */
#ifndef GNI_SIM_VOCABULARY_TEXT_H
#define GNI_SIM_VOCABULARY_TEXT_H

#include <stddef.h>

extern const char sim_vocabulary_begin[], sim_vocabulary_end[];

static inline size_t sim_vocabulary_nbytes(void)
{
    return (size_t)(sim_vocabulary_end - sim_vocabulary_begin);
}

#endif
