/*
 * compile_kernels.c: compiles kernels with NVRTC, for a GPU that need not be there.
 *
 *     compile_kernels [-p PREFIX] ARCHITECTURE FILE...
 *
 * Each file is CUDA C, compiled as the kernels that we generate are (gni_kernel_options); the text of the
 * prefix, if there is one, stands before each. Prints what does not compile, and exits with 1 then; with 77
 * where there is no NVRTC. GENESIS_CUDA_DRIVER must not name the simulator, which brings a compiler of its own.
 */
#include "base/parallel.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"
#include "jit/nvrtc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int architecture;
static const char *prefix = "";
static char **paths;
static atomic_int failure_count;

/* What a file holds, for free(). */
static char *file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t length = 0, capacity = 0;
    while (file != NULL && !feof(file) && !ferror(file)) {
        capacity = 2 * capacity + 65536;
        text = realloc(text, capacity);
        if (text == NULL)
            break;
        length += fread(text + length, 1, capacity - length - 1, file);
        text[length] = '\0';
    }
    if (file == NULL || text == NULL || ferror(file)) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    (void)fclose(file);
    return text;
}

static void compile(void *context, size_t begin, size_t end)
{
    (void)context;
    for (size_t i = begin; i < end; i++) {
        char *own = file_read(paths[i]);
        size_t nbytes = strlen(prefix) + strlen(own) + 1;
        char *text = malloc(nbytes);
        struct gni_kernel_image image;
        if (text == NULL)
            exit(2);
        (void)snprintf(text, nbytes, "%s%s", prefix, own);
        struct gni_kernel_source source = {.name = paths[i], .text = text};
        if (gni_nvrtc_compile(&source, architecture, &image) == GN_OK) {
            gni_kernel_image_deinit(&image);
        } else {
            atomic_fetch_add(&failure_count, 1);
            fprintf(stderr, "%s\n", gn_error_detail());
        }
        free(text);
        free(own);
    }
}

int main(int count, char **arguments)
{
    const struct gni_nvrtc *nvrtc;
    int at = 1;
    char *own_prefix = NULL;
    if (at + 1 < count && strcmp(arguments[at], "-p") == 0) {
        prefix = own_prefix = file_read(arguments[at + 1]); /* ends in a newline, as texts do */
        at += 2;
    }
    if (at < count)
        architecture = atoi(arguments[at++]);
    if (architecture < 50 || at >= count) {
        fprintf(stderr, "compile_kernels [-p PREFIX] ARCHITECTURE FILE...\n");
        return 2;
    }
    if (gni_nvrtc_open(&nvrtc) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return 77;
    }
    paths = arguments + at;
    gni_parallel_for((size_t)(count - at), 1, compile, NULL);
    printf("%d kernels compiled for sm_%d with NVRTC %d.%d, %d failed\n", count - at, architecture,
           nvrtc->version / 1000, nvrtc->version % 1000 / 10, atomic_load(&failure_count));
    free(own_prefix);
    return atomic_load(&failure_count) > 0;
}
