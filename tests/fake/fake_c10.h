/*
 * fake_c10.h: what a test sees of the stand-in for PyTorch's library.
 */
#ifndef GNI_TESTS_FAKE_C10_H
#define GNI_TESTS_FAKE_C10_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_c10 {
    jmp_buf catch;                /* where what is thrown arrives */
    char error_type, memory_type; /* their addresses are the types */
    bool is_taking;               /* the constructor takes the string over */
    char *taken;                  /* then */
    bool is_named;                /* the place of the error has a function and a file */
    bool is_right;                /* thrown was what was allocated, with its destructor */
    void *error, *thrown, *table; /* the object, its type, and the table that it points to */
    size_t length;
    bool has_room; /* the string's memory holds what it says, and the final zero */
    char message[8192];
    int block_count;    /* strings that live */
    size_t block_bytes; /* of the last one */
};

struct fake_c10 *fake_c10_get(void);

#endif
