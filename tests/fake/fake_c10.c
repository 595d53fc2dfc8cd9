/*
 * fake_c10.c: a stand-in for PyTorch's library libc10_cuda.so, as far as src/adapter/torch_error.c uses it: the names
 * are those of the C++ ABI, and what is thrown arrives where the test has set a jump. With FAKE_C10_PART a name is
 * missing.
 */
#include "fake_c10.h"

#include <stdlib.h>
#include <string.h>

static struct fake_c10 fake;

struct fake_c10 *fake_c10_get(void)
{
    return &fake;
}

static void destruct(void *error)
{
    (void)error;
}

/* { offset, type, destructor }; the types are told apart by their addresses. */
void *error_table[3] __asm__("_ZTVN3c105ErrorE") = {NULL, &fake.error_type, (void *)destruct};
#ifndef FAKE_C10_PART
void *memory_table[3] __asm__("_ZTVN3c1016OutOfMemoryErrorE") = {NULL, &fake.memory_type,
                                                                 (void *)destruct};
#endif

struct location {
    const char *function, *file;
    uint32_t line;
};

struct text {
    char *start;
    size_t length;
    union {
        char local[16];
        size_t capacity;
    };
};

void construct(void *error, struct location where, struct text *message) __asm__(
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
void construct(void *error, struct location where, struct text *message)
{
    memset(error, 0x5a, 64); /* whatever a constructor writes */
    fake.is_named = where.function[0] != '\0' && where.file[0] != '\0';
    fake.length = message->length;
    fake.has_room = message->capacity >= message->length && fake.block_bytes > message->capacity;
    (void)strncpy(fake.message, message->start, sizeof fake.message - 1);
    if (fake.is_taking) { /* as a constructor that moves the string into the error */
        fake.taken = message->start;
        message->start = message->local;
        message->length = 0;
    }
}

void *exception_alloc(size_t nbytes) __asm__("__cxa_allocate_exception");
void *exception_alloc(size_t nbytes)
{
    return fake.error = calloc(1, nbytes);
}

_Noreturn void exception_throw(void *error, void *type,
                               void (*destructor)(void *)) __asm__("__cxa_throw");
_Noreturn void exception_throw(void *error, void *type, void (*destructor)(void *))
{
    fake.is_right = error == fake.error && destructor == destruct;
    fake.thrown = type;
    fake.table = *(void **)error;
    longjmp(fake.catch, 1);
}

void *string_alloc(size_t nbytes) __asm__("_Znwm");
void *string_alloc(size_t nbytes)
{
    fake.block_count++;
    fake.block_bytes = nbytes;
    return malloc(nbytes);
}

void string_free(void *block) __asm__("_ZdlPv");
void string_free(void *block)
{
    fake.block_count--;
    free(block);
}
