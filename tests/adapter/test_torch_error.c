/*
 * test_torch_error.c: PyTorch's exceptions, thrown at a stand-in for its library.
 */
#include "check.h"

#include "fake/fake_c10.h"
#include "genesis/adapter.h"

#include <dlfcn.h>

#define WHOLE GENESIS_FAKE_DIRECTORY "/libgenesis_fake_c10.so"
#define PART GENESIS_FAKE_DIRECTORY "/libgenesis_fake_c10_part.so"

static struct fake_c10 *fake;
static gn_adapter_failure failure;

static void library_load(void)
{
    CHECK(gn_adapter_torch_failure(WHOLE) == NULL); /* not loaded: PyTorch is not here */
    void *library = dlopen(WHOLE, RTLD_NOW), *symbol = NULL;
    CHECK(library != NULL && dlopen(PART, RTLD_NOW) != NULL);
    CHECK(gn_adapter_torch_failure(PART) == NULL); /* a name is missing */
    failure = gn_adapter_torch_failure(WHOLE);
    CHECK(failure != NULL);
    struct fake_c10 *(*get)(void) = NULL;
    if (library != NULL)
        symbol = dlsym(library, "fake_c10_get");
    memcpy(&get, &symbol, sizeof symbol);
    CHECK(get != NULL);
    fake = get != NULL ? get() : NULL;
}

/* One error, of one of the two types, with a string that the constructor copies or takes over. */
static void throw_try(bool is_out_of_memory, bool is_taking, const char *message,
                      const char *expected)
{
    fake->is_taking = is_taking;
    fake->thrown = fake->taken = NULL;
    memset(fake->message, 0, sizeof fake->message);
    volatile bool is_thrown = false;
    if (setjmp(fake->catch) == 0)
        failure(is_out_of_memory, message);
    else
        is_thrown = true;
    CHECK(is_thrown && fake->is_right && fake->is_named);
    CHECK(fake->thrown == (is_out_of_memory ? &fake->memory_type : &fake->error_type));
    CHECK(fake->table != NULL && ((void **)fake->table)[-1] == fake->thrown);
    CHECK_TEXT(fake->message, expected);
    CHECK_U64(fake->length, strlen(expected));
    CHECK(fake->has_room);
    CHECK_U64(fake->block_count, is_taking ? 1 : 0);
    free(fake->taken);
    fake->block_count = 0;
    free(fake->error);
}

static void test_types_and_texts(void)
{
    for (int is_taking = 0; is_taking < 2; is_taking++) {
        throw_try(true, is_taking, "cuda:0: 3 GiB are not there",
                  "CUDA out of memory. cuda:0: 3 GiB are not there");
        throw_try(false, is_taking, "cuda:0 is lost", "cuda:0 is lost");
        throw_try(false, is_taking, "", "");
    }
}

/* A text is cut, and the words that programs look for stay. */
static void test_long_texts(void)
{
    enum {
        MOST = 4096
    };
    static const char prefix[] = "CUDA out of memory. ";
    for (size_t length = MOST - 1; length <= MOST + 1; length++) {
        char text[MOST + 2] = {0}, expected[sizeof prefix + MOST] = {0};
        memset(text, 'x', length);
        (void)snprintf(expected, sizeof expected, "%s%.*s", prefix, MOST, text);
        throw_try(true, false, text, expected);
        throw_try(false, false, text, expected + sizeof prefix - 1);
    }
}

int main(void)
{
    RUN(library_load);
    if (fake != NULL && failure != NULL) {
        RUN(test_types_and_texts);
        RUN(test_long_texts);
    }
    return check_result();
}
