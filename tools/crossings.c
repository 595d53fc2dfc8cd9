/*
 * crossings.c: counts the function calls of one expression, and how many of them go from one file to another.
 *
 * The expression is y = ((x + 1) * 2).exp().sum() of 1000 x 1000 float32 on the CPU, with one thread, and the release
 * of all its tensors. It runs some times first, so that nothing is done for the first time when it is counted. A function
 * that calls the same one several times, as a loop over tiles does, is counted with the first of these calls only, so
 * that the count does not depend on the size of the data or of a tile.
 *
 * Build type Crossings (CMakeLists.txt) compiles everything with -finstrument-functions: each function calls the two
 * hooks below, inline ones of headers too. They write down addresses; `tools/crossings.py` turns these into files.
 */
#include "genesis/genesis.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define NOT_COUNTED __attribute__((no_instrument_function))

enum {
    CALLS_MOST = 1 << 16,
    DEPTH_MOST = 64,
    CALLEES_MOST = 64,
    WARM_UPS = 1000, /* of few elements: a lock is then known to have one user */
};

struct call {
    void *caller, *callee; /* functions, by address */
};

static struct call calls[CALLS_MOST];
static int call_count;

/* The functions that run, the outermost first, each with those that it has called. */
static struct {
    void *function;
    void *callees[CALLEES_MOST];
    int callee_count;
} stack[DEPTH_MOST];
static int depth;
static int repeated; /* depth below a call that does not count; 0: not in one */
static bool is_counting;

void __cyg_profile_func_enter(void *function, void *site) NOT_COUNTED;
void __cyg_profile_func_exit(void *function, void *site) NOT_COUNTED;

/* The calls of the program itself all count. */
NOT_COUNTED static bool is_repeated(void *function)
{
    for (int i = 0; depth > 0 && i < stack[depth].callee_count; i++)
        if (stack[depth].callees[i] == function)
            return true;
    return false;
}

/* The library has no other threads here. */
void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    if (!is_counting)
        return;
    if (repeated > 0 || is_repeated(function)) {
        repeated++;
        return;
    }
    if (depth + 1 == DEPTH_MOST || call_count == CALLS_MOST ||
        stack[depth].callee_count == CALLEES_MOST)
        abort();
    calls[call_count++] = (struct call){stack[depth].function, function};
    stack[depth].callees[stack[depth].callee_count++] = function;
    depth++;
    stack[depth].function = function;
    stack[depth].callee_count = 0;
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)site;
    (void)function;
    if (!is_counting)
        return;
    if (repeated > 0)
        repeated--;
    else
        depth--;
}

NOT_COUNTED static void check(gn_status status)
{
    if (status == GN_OK)
        return;
    (void)fprintf(stderr, "%s\n", gn_error_detail());
    exit(1);
}

NOT_COUNTED static void expression(gn_tensor *x)
{
    gn_operand number = {.scalar = {.kind = GN_INT64, .integer = 1}};
    gn_tensor *sum, *product, *power, *y;
    check(gn_elementwise(GN_OP_ADD, (gn_operand[]){{.tensor = x}, number}, &sum));
    number.scalar.integer = 2;
    check(gn_elementwise(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = sum}, number}, &product));
    gn_tensor_release(sum);
    check(gn_elementwise(GN_OP_EXP, (gn_operand[]){{.tensor = product}}, &power));
    gn_tensor_release(product);
    check(gn_reduce(GN_REDUCE_SUM, power, 0, false, &y));
    gn_tensor_release(power);
    gn_tensor_release(y);
}

NOT_COUNTED int main(void)
{
    gn_device *device;
    gn_tensor *x, *few;
    check(gn_set_num_threads(1));
    check(gn_device_get(GN_DEVICE_CPU, 0, &device));
    check(gn_tensor_create(GN_FLOAT32, 2, (int64_t[]){1000, 1000}, device, &x));
    check(gn_assign(x, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 0.5}}));
    check(gn_tensor_create(GN_FLOAT32, 2, (int64_t[]){20, 20}, device, &few));
    check(gn_assign(few, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 0.5}}));
    for (int i = 0; i < WARM_UPS; i++)
        expression(few);
    expression(x);
    expression(x);
    stack[0].function = (void *)main;
    is_counting = true;
    expression(x);
    is_counting = false;
    Dl_info info;
    if (dladdr((void *)main, &info) == 0)
        return 1;
    for (int i = 0; i < call_count; i++)
        (void)printf("%#tx %#tx\n", (char *)calls[i].caller - (char *)info.dli_fbase,
                     (char *)calls[i].callee - (char *)info.dli_fbase);
    gn_tensor_release(x);
    gn_tensor_release(few);
    return 0;
}
