/*
 * tiers.c: see tiers.h.
 */
#include "jit/tiers.h"

#include "base/option.h"

#include <stdatomic.h>

static atomic_int test_mode = -1;

enum gni_tiers gni_tiers_mode(void)
{
    int mode = atomic_load_explicit(&test_mode, memory_order_relaxed);
    return mode >= 0 ? (enum gni_tiers)mode : (enum gni_tiers)gni_option_choice(GNI_OPTION_TIERS);
}

void gni_tiers_set_mode(int mode)
{
    atomic_store(&test_mode, mode);
}
