/*
 * fuzz_option.c: any bytes as a size: no crash, a result that is possible, nothing set on failure.
 *
 * A libFuzzer entry, built with -DGENESIS_FUZZ=ON and clang:
 *     fuzz_option -max_len=64 -max_total_time=60
 */
#include "genesis/base.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* of exactly this size, so that reading past the end shows */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    const size_t unset = 0x5eed;
    size_t bytes = unset, again = unset;
    gn_status status = gn_size_parse(text, &bytes);
    bool is_error = status == GN_ERROR_INVALID_VALUE || status == GN_ERROR_OVERFLOW;
    if (status == GN_OK ? bytes > PTRDIFF_MAX : !is_error || bytes != unset)
        abort();
    if (gn_size_parse(text, &again) != status || again != bytes)
        abort();
    free(text);
    return 0;
}
