/*
 * test_functions.c: the table of functions, walked row by row: what each row says of itself, and that each call gives
 * back what it took when host memory runs out in the middle of it.
 */
#include "check.h"
#include "function_arguments.h"

#include "base/host.h"
#include "genesis/genesis.h"
#include "ops/expression.h"

#include <string.h>

enum {
    NAMES_MOST = 1024,
};

/* ---- what a row says ------------------------------------------------------------------------- */

static char names[NAMES_MOST][2 * WORD];
static int name_count;

/* A name may have a namespace in front of it. */
static void name_check(const char *name)
{
    const char *dot = strchr(name, '.');
    CHECK(is_identifier(dot != NULL ? dot + 1 : name));
    for (int i = 0; i < name_count; i++)
        CHECK(strcmp(names[i], name) != 0);
    CHECK(name_count < NAMES_MOST);
    (void)snprintf(names[name_count++], 2 * WORD, "%s", name);
}

static void parameter_ignore(int place, const char *kind, const char *standard)
{
    (void)kind, (void)standard;
    CHECK(place < PARAMETERS_MOST);
}

static void row_check(const gn_function *row)
{
    char alias[2 * WORD], word[WORD];
    const char *dot = strchr(row->name, '.');
    int prefix = dot != NULL ? (int)(dot + 1 - row->name) : 0;
    bool is_own =
        (row->forms & GN_FORM_OPTIONS) == 0; /* else its names are those of an operation */
    bool is_method = (row->forms & GN_FORM_NO_FUNCTION) != 0;
    (void)snprintf(alias, sizeof alias, "%s%s", is_method ? "method_of_" : "", row->name);
    if (is_own)
        name_check(alias);
    for (const char *at = is_own && row->aliases != NULL ? row->aliases : ""; *at != '\0';
         at += strspn(at, " ")) {
        at = word_take(at, " ", word);
        (void)snprintf(alias, sizeof alias, "%.*s%s", prefix, row->name, word);
        name_check(alias);
    }
    CHECK(row->call != NULL);
    CHECK(row->text[0] != '\0' && strchr(row->text, '.') != NULL);
    CHECK(row->example == NULL || strncmp(row->example, ">>> ", 4) == 0);
    CHECK((row->forms & GN_FORM_NO_FUNCTION) == 0 || (row->forms & GN_FORM_METHOD) != 0 ||
          (row->forms & GN_FORM_IN_PLACE) != 0);
    (void)signature_walk(row->signature, parameter_ignore);
}

static void test_rows(void)
{
    const gn_function *row;
    int rows = 0;
#define NAME(NAME_, c_name, arity, domain, name, ...) \
    if (name[0] != '\0')                              \
        name_check(name);
    GN_OP_LIST(NAME)
    CHECK(gn_function_table(-1) == NULL);
    for (int i = 0; (row = gn_function_table(i)) != NULL; i++)
        for (; row->name != NULL; row++, rows++)
            row_check(row);
    CHECK(rows >= 18);
    printf("%d rows, %d names\n", rows, name_count);
}

/* ---- calls that run out of host memory --------------------------------------------------------- */

static gn_device *cpu;
static gn_tensor *matrix; /* 4 x 4, float32: symmetric and positive-definite, from 0 to 1 */
static gn_argument arguments[PARAMETERS_MOST];

/* One call, and everything computed that it left pending. */
static gn_status row_run(const gn_function *row)
{
    gn_results results = {.count = 0}; /* no out= */
    gn_status status = row->call(arguments, &results);
    if (status == GN_OK)
        status = gn_flush();
    gn_results_clear(&results);
    return status;
}

/* Each request for host memory fails in turn, until the call ends. Whether it is one that takes these arguments. */
static bool row_fail(const gn_function *row)
{
    bool is_taken = row_run(row) == GN_OK; /* what is made once, and kept, is made here */
    size_t live = gni_host_live_count();
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status == GN_ERROR_OUT_OF_HOST_MEMORY; nth++) {
        gni_host_fail_after(nth);
        status = row_run(row);
        gni_host_fail_after(-1);
        if (gni_host_live_count() != live)
            printf("%s: %zu blocks of host memory, and then %zu\n", row->name, live,
                   gni_host_live_count());
        CHECK(gni_host_live_count() == live);
        CHECK(nth < 1000);
    }
    CHECK((status == GN_OK) == is_taken);
    return is_taken;
}

static void test_failures(void)
{
    const gn_function *row;
    int rows = 0, taken = 0;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    struct gni_scope scope = {0};
    CHECK_OK(gn_full((gn_scalar){.kind = GN_FLOAT64, .floating = 0.5}, GN_FLOAT32, 2,
                     (const int64_t[]){4, 4}, cpu, &matrix));
    gni_assign(&scope, gni_diagonal(&scope, matrix, 0, 0, 1), gni_floating(1));
    CHECK_OK(gni_scope_close(&scope));
    CHECK_OK(gn_flush());
    for (int i = 0; (row = gn_function_table(i)) != NULL; i++)
        for (; row->name != NULL; row++, rows++) {
            arguments_make(row->signature, matrix, cpu, arguments);
            taken += row_fail(row);
        }
    gn_tensor_release(matrix);
    printf("%d of %d rows took the arguments\n", taken, rows);
    CHECK(taken >= rows / 2);
}

int main(void)
{
    RUN(test_rows);
    RUN(test_failures);
    return check_result();
}
