/*
 * text.c: see text.h.
 */
#include "base/text.h"

#include <stdio.h>

struct gni_size_text gni_size_text(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct gni_size_text size;
    if (bytes < 1024) {
        (void)snprintf(size.text, sizeof size.text, "%u byte%s", (unsigned)bytes,
                       gni_plural(bytes));
        return size;
    }
    double number = (double)bytes / 1024; /* 1023.995 would be printed as 1024.00 */
    size_t unit = 0;
    while (number >= 1023.995 && unit + 1 < sizeof units / sizeof *units) {
        number /= 1024;
        unit++;
    }
    (void)snprintf(size.text, sizeof size.text, "%.2f %s", number, units[unit]);
    return size;
}
