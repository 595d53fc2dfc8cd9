/*
 * function_arguments.c: reads signatures, and makes an argument of each kind.
 */
#include "function_arguments.h"

#include "check.h"

#include <ctype.h>
#include <string.h>

static const char *const kinds[] = {
    "Tensor", "operand",   "int",     "number", "bool",   "text",     "dim",
    "dims",   "sizes",     "tensors", "dtype",  "device", "elements", "doubles",
    "shapes", "generator", "data",    "values", "keys",   "counts",
};

/* The word up to one of `ends`; what follows. */
const char *word_take(const char *at, const char *ends, char word[WORD])
{
    size_t length = strcspn(at, ends);
    CHECK(length < WORD);
    memcpy(word, at, length < WORD ? length : WORD - 1);
    word[length < WORD ? length : WORD - 1] = '\0';
    return at + length;
}

bool is_identifier(const char *word)
{
    for (const char *at = word; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return false;
    return word[0] != '\0';
}

static int kind_find(const char *word)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(word, kinds[i]) == 0)
            return (int)i;
    return -1;
}

/* Calls `found` for each parameter; how many there are. */
int signature_walk(const char *signature,
                   void (*found)(int place, const char *kind, const char *standard))
{
    int count = 0;
    const char *at = signature, *end = strstr(signature, "-> ");
    end = end != NULL ? end : signature + strlen(signature);
    while ((at += strspn(at, "), ")) < end) {
        char name[WORD], kind[WORD], standard[WORD] = "";
        if (at[0] == '*' && at[1] == ',') {
            at++;
            continue;
        }
        at = word_take(at + (at[0] == '*'), ":", name);
        CHECK(is_identifier(name));
        CHECK(strncmp(at, ": ", 2) == 0);
        at = word_take(at + 2, "| ,", kind);
        CHECK(kind_find(kind) >= 0);
        if (*at == '|') /* or another kind */
            at += strcspn(at, " ,");
        if (strncmp(at, " = ", 3) == 0)
            at = word_take(at + 3, at[3] == '(' ? ")" : ", ", standard);
        found(count++, kind, standard);
    }
    return count;
}

static gn_tensor *matrix;
static gn_device *device;
static gn_argument *arguments;

/* An argument that many functions take: a matrix, its first dimension, few elements. */
static void argument_make(int place, const char *kind, const char *standard)
{
    static const int64_t sizes[] = {2, 2}, dims[] = {0};
    static const int lengths[] = {2};
    static gn_tensor *tensors[2];
    static gn_generator generator;
    static char words[PARAMETERS_MOST][WORD];
    gn_argument *argument = &arguments[place];
    *argument = (gn_argument){.is_given = true, .operand.scalar = {.kind = GN_INT64}};
    tensors[0] = tensors[1] = matrix;
    if (strcmp(kind, "generator") == 0) {
        argument->generator = &generator;
    } else if (strcmp(standard, "None") == 0) {
        *argument = (gn_argument){0};
        if (strcmp(kind, "device") == 0)
            argument->device = device;
    } else if (strcmp(kind, "Tensor") == 0 || strcmp(kind, "operand") == 0) {
        argument->operand.tensor = matrix;
    } else if (strcmp(kind, "int") == 0 || strcmp(kind, "number") == 0 ||
               strcmp(kind, "counts") == 0) {
        argument->operand.scalar.integer = 1;
    } else if (strcmp(kind, "sizes") == 0) {
        argument->integers = sizes;
        argument->count = 2;
    } else if (strcmp(kind, "dims") == 0) {
        argument->integers = dims;
        argument->count = 1;
    } else if (strcmp(kind, "tensors") == 0) {
        argument->tensors = tensors;
        argument->count = 2;
    } else if (strcmp(kind, "shapes") == 0) {
        argument->integers = sizes;
        argument->lengths = lengths;
        argument->count = 1;
    } else if (strcmp(kind, "elements") == 0 || strcmp(kind, "doubles") == 0 ||
               strcmp(kind, "data") == 0 || strcmp(kind, "values") == 0) {
        argument->operand.tensor = matrix;
    } else if (strcmp(kind, "dtype") == 0) {
        argument->dtype = GN_FLOAT32;
    } else if (strcmp(kind, "device") == 0) {
        argument->device = device;
    } else if (strcmp(kind, "text") == 0) {
        (void)word_take(standard + (standard[0] == '\''), "'", words[place]);
        argument->text = words[place];
    }
}

void arguments_make(const char *signature, gn_tensor *of_matrix, gn_device *on_device,
                    gn_argument made[PARAMETERS_MOST])
{
    matrix = of_matrix;
    device = on_device;
    arguments = made;
    (void)signature_walk(signature, argument_make);
}
