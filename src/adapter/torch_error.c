/*
 * torch_error.c: PyTorch's own exceptions, thrown from C.
 *
 * A pluggable allocator that returns NULL leaves PyTorch with a tensor at address 0. It takes an exception
 * instead, but only one of its C++ types. This file makes one without a line of C++ and without building against
 * PyTorch: it finds the constructor and the types' tables in the libraries that are loaded, and calls the C++
 * runtime. What it relies on, all of it fixed by the platform's C++ ABI:
 *
 *   c10::Error::Error(SourceLocation, std::string)   `this` first; the location by value, in memory; the string
 *                                                    by reference to a temporary of the caller's
 *   std::string                                      { char *start; size_t length; char local[16] }
 *   a table of virtual functions                     { offset, type, destructor, ... }; an object begins with
 *                                                    the address of the destructor's place in it
 *   __cxa_allocate_exception, __cxa_throw            of libstdc++
 *
 * Where a name is missing nothing is thrown, and the caller is told so in advance.
 */
#include "genesis/adapter.h"

#include "base/error.h"

#include <dlfcn.h>
#include <string.h>

enum {
    ERROR_BYTES = 1024, /* more than a c10::Error has */
    MESSAGE_MOST = 4096,
};

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

static struct {
    void (*construct)(void *error, struct location where, struct text *message);
    void *(*exception_alloc)(size_t nbytes);
    void (*exception_throw)(void *error, void *type, void (*destruct)(void *));
    void *(*new)(size_t nbytes);
    void (*delete)(void *block);
    void **error_table, **memory_table;
} torch;

enum { /* places of a table */
    TYPE = 1,
    DESTRUCTOR = 2,
};

#define CONSTRUCTOR \
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

/* PyTorch's wording: programs look for it. */
static const char out_of_memory[] = "CUDA out of memory. ";

static void torch_throw(bool is_out_of_memory, const char *message)
{
    size_t prefix = is_out_of_memory ? sizeof out_of_memory - 1 : 0;
    size_t length = strlen(message);
    if (length > MESSAGE_MOST)
        length = MESSAGE_MOST;
    struct text text = {.length = prefix + length, .capacity = prefix + length};
    text.start = torch.new(text.capacity + 1 > 32 ? text.capacity + 1 : 32);
    memcpy(text.start, out_of_memory, prefix);
    memcpy(text.start + prefix, message, length);
    text.start[text.length] = '\0';
    void *error = torch.exception_alloc(ERROR_BYTES);
    torch.construct(error, (struct location){"gn_adapter_alloc", "genesis", 0}, &text);
    if (text.start != text.local) /* it was copied, not taken over */
        torch.delete(text.start);
    void **table = is_out_of_memory ? torch.memory_table : torch.error_table;
    *(void ***)error = &table[DESTRUCTOR];
    void (*destruct)(void *);
    memcpy(&destruct, &table[DESTRUCTOR], sizeof destruct);
    torch.exception_throw(error, table[TYPE], destruct);
}

#define FIND(field, name) (*(void **)&torch.field = dlsym(library, name)) != NULL

gn_adapter_failure gn_adapter_torch_failure(const char *path)
{
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (library == NULL)
        return NULL;
    bool is_complete =
        FIND(construct, CONSTRUCTOR) && FIND(exception_alloc, "__cxa_allocate_exception") &&
        FIND(exception_throw, "__cxa_throw") && FIND(new, "_Znwm") && FIND(delete, "_ZdlPv") &&
        FIND(error_table, "_ZTVN3c105ErrorE") && FIND(memory_table, "_ZTVN3c1016OutOfMemoryErrorE");
    return is_complete ? torch_throw : NULL;
}
