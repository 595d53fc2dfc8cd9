/*
 * test_engine_kernels.c: right kernels give right results, the same ones in every order of lanes
 * and blocks.
 */
#include "test_engine.h"

#include <math.h>

static const int sizes[] = {1, 31, 32, 33, 127, 257, 1009};
enum {
    SIZE_COUNT = sizeof sizes / sizeof *sizes,
};

static unsigned blocks_for(int n, int threads)
{
    return (unsigned)((n + threads - 1) / threads);
}

static float *floats_make(int n, uint64_t seed)
{
    float *values = buffer_make((size_t)n * sizeof *values);
    for (int i = 0; i < n; i++)
        values[i] = (float)(int)(check_random(&seed) % 2001) / 16.0f - 60.0f;
    return values;
}

static int *ints_make(int n, uint64_t seed, unsigned limit)
{
    int *values = buffer_make((size_t)n * sizeof *values);
    for (int i = 0; i < n; i++)
        values[i] = (int)(check_random(&seed) % limit);
    return values;
}

static void vector_add_in_all_sizes(void)
{
    struct sim_module *module = module_of("elementwise.cu");
    for (int s = 0; s < SIZE_COUNT; s++) {
        int n = sizes[s];
        float *a = floats_make(n, 1), *b = floats_make(n, 2);
        float *c = buffer_make((size_t)n * sizeof *c);
        for (int order = 0; order < ORDER_COUNT; order++) {
            memset(c, 0xff, (size_t)n * sizeof *c);
            struct run_options options = {
                .grid = {blocks_for(n, 128), 1, 1}, .block = {128, 1, 1}, .order = order};
            kernel_run_well(module, "vector_add", &options, ARGUMENTS(&a, &b, &c, &n));
            int wrong = 0;
            for (int i = 0; i < n; i++)
                wrong += c[i] != a[i] + b[i];
            CHECK_U64(wrong, 0);
            if (has_checks()) {
                CHECK_U64(trace_write_nbytes, (size_t)n * sizeof *c);
                CHECK_U64(trace_read_nbytes, 2 * (size_t)n * sizeof *c);
                if (order < 2)
                    CHECK_U64(trace_calls, 3); /* one run for each array */
            }
        }
        buffers_free();
    }
}

static void vector_loads(void)
{
    int n4 = 1000;
    float by = 0.1f;
    float *from = floats_make(4 * n4, 3), *to = buffer_make((size_t)n4 * 16);
    struct run_options options = {.grid = {3, 1, 1}, .block = {96, 1, 1}};
    kernel_run_well(module_of("elementwise.cu"), "scale4", &options,
                    ARGUMENTS(&from, &to, &by, &n4));
    int wrong = 0;
    for (int i = 0; i < 4 * n4; i++)
        wrong += to[i] != from[i] * by;
    CHECK_U64(wrong, 0);
    buffers_free();
}

struct layout {
    int ndim;
    long long shape[4], stride[4];
};

static void strided_copy(void)
{
    struct sim_module *module = module_of("elementwise.cu");
    /* A transposed 3 x 5 x 7 array, one dimension backwards, one repeated. */
    struct layout view = {4, {7, 2, 5, 3}, {1, 0, -7, 35}};
    long long n = 7LL * 2 * 5 * 3;
    float *data = floats_make(105, 4), *from = data + 28;
    float *to = buffer_make((size_t)n * sizeof *to);
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct run_options options = {.grid = {7, 1, 1}, .block = {31, 1, 1}, .order = order};
        kernel_run_well(module, "strided_copy", &options, ARGUMENTS(&from, &to, &view, &n));
        int wrong = 0, i = 0;
        for (int a = 0; a < 7; a++)
            for (int b = 0; b < 2; b++)
                for (int c = 0; c < 5; c++)
                    for (int d = 0; d < 3; d++)
                        wrong += to[i++] != from[a - 7 * c + 35 * d];
        CHECK_U64(wrong, 0);
    }
    buffers_free();
}

static unsigned bits_of(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void half_round_trip(void)
{
    unsigned short *half = buffer_make(131072), *bfloat16 = buffer_make(131072);
    float *half_values = buffer_make(262144), *bfloat16_values = buffer_make(262144);
    struct run_options options = {.grid = {256, 1, 1}, .block = {256, 1, 1}};
    kernel_run_well(module_of("elementwise.cu"), "half_round_trip", &options,
                    ARGUMENTS(&half, &bfloat16, &half_values, &bfloat16_values));
    int wrong = 0;
    for (unsigned i = 0; i < 65536; i++) {
        unsigned exponent = i >> 10 & 31, mantissa = i & 1023;
        if (exponent == 31 && mantissa != 0) {
            wrong += half[i] != 0x7fff || half_values[i] == half_values[i];
        } else {
            double value = exponent == 31  ? INFINITY
                           : exponent == 0 ? ldexp(mantissa, -24)
                                           : ldexp(1024 + mantissa, (int)exponent - 25);
            wrong += half[i] != i || half_values[i] != (float)(i & 0x8000 ? -value : value);
        }
        bool is_nan = (i & 0x7fff) > 0x7f80;
        wrong += bfloat16[i] != (is_nan ? 0x7fff : i) || bits_of(bfloat16_values[i]) != i << 16;
    }
    CHECK_U64(wrong, 0);
    buffers_free();
}

/* The nearest 16-bit number by search: the reference for rounding. */
static unsigned nearest(const float *table, unsigned count, float magnitude)
{
    unsigned low = 0, high = count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (table[middle] <= magnitude)
            low = middle;
        else
            high = middle;
    }
    if (high == count)
        return low;
    double below = (double)magnitude - (double)table[low];
    double above = (double)table[high] - (double)magnitude;
    return below < above ? low : above < below ? high : (low & 1) == 0 ? low : high;
}

static void half_rounding(void)
{
    enum {
        N = 20000,
    };
    static float halves[0x7c01], bfloats[0x7f81];
    for (unsigned i = 0; i < 0x7c00; i++)
        halves[i] =
            (float)(i >> 10 == 0 ? ldexp(i, -24) : ldexp(1024 + (i & 1023), (int)(i >> 10) - 25));
    halves[0x7c00] = 65536.0f; /* where infinity would be if it were a number */
    for (unsigned i = 0; i < 0x7f80; i++) {
        unsigned bits = i << 16;
        memcpy(&bfloats[i], &bits, sizeof bits);
    }
    float *from = buffer_make(N * sizeof *from);
    unsigned short *half = buffer_make(N * 2), *bfloat16 = buffer_make(N * 2);
    uint64_t seed = 5;
    for (int i = 0; i < N; i++) {
        unsigned bits = (unsigned)check_random(&seed);
        /* Half of them in half precision's range, many exactly between two numbers. */
        if (i % 2 == 0)
            bits = (bits & 0x800fffffu) | (95u + bits % 50u) << 23;
        if (i % 3 == 0)
            bits = (bits & ~0x1fffu) | 0x1000u;
        memcpy(&from[i], &bits, sizeof bits);
    }
    int n = N;
    struct run_options options = {.grid = {blocks_for(N, 256), 1, 1}, .block = {256, 1, 1}};
    kernel_run_well(module_of("elementwise.cu"), "to_half", &options,
                    ARGUMENTS(&from, &half, &bfloat16, &n));
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        unsigned sign = bits_of(from[i]) >> 16 & 0x8000;
        float magnitude = fabsf(from[i]);
        if (isnan(from[i])) {
            wrong += half[i] != 0x7fff || bfloat16[i] != 0x7fff;
            continue;
        }
        wrong += half[i] != (sign | nearest(halves, 0x7c01, magnitude));
        if (magnitude < bfloats[0x7f7f])
            wrong += bfloat16[i] != (sign | nearest(bfloats, 0x7f80, magnitude));
    }
    CHECK_U64(wrong, 0);
    buffers_free();
}

static void three_dimensions(void)
{
    for (int order = 0; order < ORDER_COUNT; order++) {
        unsigned total = 2 * 3 * 4, threads = 5 * 3 * 2;
        unsigned *counts = buffer_make(total * threads * sizeof *counts);
        memset(counts, 0, total * threads * sizeof *counts);
        struct run_options options = {.grid = {2, 3, 4}, .block = {5, 3, 2}, .order = order};
        kernel_run_well(module_of("elementwise.cu"), "count_threads", &options, ARGUMENTS(&counts));
        int wrong = 0;
        for (unsigned i = 0; i < total * threads; i++)
            wrong += counts[i] != 1 + i / threads;
        CHECK_U64(wrong, 0);
        buffers_free();
    }
}

static void names_in_namespaces(void)
{
    int n = 10;
    float *to = buffer_make(40);
    struct run_options options = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    struct sim_module *module = module_of("elementwise.cu");
    CHECK(sim_module_find(module, "named") == NULL); /* as the driver has it: mangled */
    CHECK(sim_module_find_expression(module, "outer::inner::named") != NULL);
    kernel_run_well(module, "_ZN5outer5inner5namedEPfi", &options, ARGUMENTS(&to, &n));
    CHECK(to[0] == 4.0f && to[3] == 11.0f && to[9] == 5.0f);
    buffers_free();
}

static void block_sums(void)
{
    for (int s = 0; s < SIZE_COUNT; s++) {
        int n = sizes[s];
        unsigned blocks = blocks_for(n, 256);
        float *from = floats_make(n, 6), *sums = buffer_make(blocks * sizeof *sums);
        for (int order = 0; order < ORDER_COUNT; order++) {
            struct run_options options = {
                .grid = {blocks, 1, 1}, .block = {256, 1, 1}, .order = order};
            kernel_run_well(module_of("reduce.cu"), "block_sum", &options,
                            ARGUMENTS(&from, &sums, &n));
            for (unsigned b = 0; b < blocks; b++) {
                float sum = 0.0f; /* exact: multiples of 1/16 of a small size */
                for (int i = (int)b * 256; i < n && i < ((int)b + 1) * 256; i++)
                    sum += from[i];
                CHECK(sums[b] == sum);
            }
        }
        buffers_free();
    }
}

static void block_scans(void)
{
    for (int s = 0; s < SIZE_COUNT; s++) {
        int n = sizes[s];
        int *from = ints_make(n, 7, 1000), *to = buffer_make((size_t)n * sizeof *to);
        for (int order = 0; order < ORDER_COUNT; order++) {
            struct run_options options = {
                .grid = {1, 1, 1}, .block = {(unsigned)n, 1, 1}, .order = order};
            kernel_run_well(module_of("reduce.cu"), "block_scan", &options,
                            ARGUMENTS(&from, &to, &n));
            int wrong = 0, sum = 0;
            for (int i = 0; i < n; i++)
                wrong += to[i] != (sum += from[i]);
            CHECK_U64(wrong, 0);
        }
        buffers_free();
    }
}

static void look_back_scans(void)
{
    for (int s = 0; s < SIZE_COUNT; s++) {
        int n = 3 * sizes[s];
        unsigned blocks = blocks_for(n, 128);
        int *from = ints_make(n, 8, 1000), *to = buffer_make((size_t)n * sizeof *to);
        unsigned *ticket = buffer_make(sizeof *ticket);
        int *states = buffer_make(blocks * sizeof *states);
        int *own = buffer_make(blocks * sizeof *own), *upto = buffer_make(blocks * sizeof *upto);
        for (int order = 0; order < ORDER_COUNT; order++) {
            *ticket = 0;
            memset(states, 0, blocks * sizeof *states);
            struct run_options options = {
                .grid = {blocks, 1, 1}, .block = {128, 1, 1}, .order = order};
            kernel_run_well(module_of("reduce.cu"), "look_back_scan", &options,
                            ARGUMENTS(&from, &to, &n, &ticket, &states, &own, &upto));
            int wrong = 0, sum = 0;
            for (int i = 0; i < n; i++)
                wrong += to[i] != (sum += from[i]);
            CHECK_U64(wrong, 0);
        }
        buffers_free();
    }
}

static void warp_operations(void)
{
    static const int counts[] = {1, 5, 31, 32};
    for (int c = 0; c < 4; c++) {
        int n = counts[c];
        int *from = ints_make(n, 9, 8), *to = buffer_make((size_t)n * 64);
        for (int order = 0; order < ORDER_COUNT; order++) {
            struct run_options options = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .order = order};
            memset(to, 0xff, (size_t)n * 64);
            kernel_run_well(module_of("reduce.cu"), "warp_operations", &options,
                            ARGUMENTS(&from, &to, &n));
            int odd = 0, threes = 0, sum = 0, low = 99, high = -99, bits = 0, is_same = 1;
            for (int i = 0; i < n; i++) {
                odd |= (int)((unsigned)(from[i] & 1) << i);
                threes |= from[i] == 3;
                sum += from[i];
                low = from[i] - 5 < low ? from[i] - 5 : low;
                high = from[i] - 5 > high ? from[i] - 5 : high;
                bits |= from[i];
                is_same &= from[i] == from[0];
            }
            int wrong = 0, mask = (int)(0xffffffffu >> (32 - n));
            for (int i = 0; i < n; i++) {
                int same = 0;
                for (int j = 0; j < n; j++)
                    same |= (int)((unsigned)(from[j] % 4 == from[i] % 4) << j);
                int expected[16] = {from[0],
                                    from[i > 0 ? i - 1 : 0],
                                    i + 1 < n ? from[i] : 0,
                                    from[i & ~3],
                                    odd,
                                    threes,
                                    1,
                                    same,
                                    is_same ? mask | 1 : 0,
                                    sum,
                                    low,
                                    high,
                                    bits,
                                    from[0],
                                    from[0],
                                    from[i & ~7]};
                wrong += memcmp(expected, to + 16 * i, sizeof expected) != 0;
            }
            CHECK_U64(wrong, 0);
        }
        buffers_free();
    }
}

static void barriers_that_vote(void)
{
    int *to = buffer_make(12);
    struct run_options options = {.grid = {1, 1, 1}, .block = {100, 1, 1}};
    kernel_run_well(module_of("reduce.cu"), "barrier_votes", &options, ARGUMENTS(&to));
    CHECK(to[0] == 34 && to[1] == 1 && to[2] == 1);
    options.block[0] = 1001;
    kernel_run_well(module_of("reduce.cu"), "barrier_votes", &options, ARGUMENTS(&to));
    CHECK(to[0] == 334 && to[1] == 0 && to[2] == 1);
    buffers_free();
}

static void groups_within_a_warp(void)
{
    int *to = buffer_make(128);
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct run_options options = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .order = order};
        kernel_run_well(module_of("reduce.cu"), "divergent_groups", &options, ARGUMENTS(&to));
        int wrong = 0;
        for (int i = 0; i < 32; i++)
            wrong += to[i] != (i % 2 == 0 ? 240 : 31);
        CHECK_U64(wrong, 0);
    }
    buffers_free();
}

static void histograms(void)
{
    int n = 5003;
    unsigned char *from = buffer_make((size_t)n);
    unsigned *counts = buffer_make(1024), expected[256] = {0};
    uint64_t seed = 10;
    for (int i = 0; i < n; i++)
        expected[from[i] = (unsigned char)check_random(&seed)]++;
    for (int order = 0; order < ORDER_COUNT; order++) {
        memset(counts, 0, 1024);
        struct run_options options = {.grid = {5, 1, 1}, .block = {96, 1, 1}, .order = order};
        kernel_run_well(module_of("memory.cu"), "histogram", &options,
                        ARGUMENTS(&from, &counts, &n));
        CHECK(memcmp(counts, expected, sizeof expected) == 0);
    }
    buffers_free();
}

static void matrix_products(void)
{
    static const int shapes[][3] = {{1, 1, 1}, {16, 16, 16}, {17, 33, 31}, {40, 5, 47}};
    for (int s = 0; s < 4; s++) {
        int m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        float *a = floats_make(m * k, 11), *b = floats_make(k * n, 12);
        float *c = buffer_make((size_t)(m * n) * sizeof *c);
        for (int order = 0; order < ORDER_COUNT; order++) {
            struct run_options options = {.grid = {blocks_for(n, 16), blocks_for(m, 16), 1},
                                          .block = {16, 16, 1},
                                          .order = order};
            kernel_run_well(module_of("memory.cu"), "matrix_product", &options,
                            ARGUMENTS(&a, &b, &c, &m, &n, &k));
            int wrong = 0;
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) {
                    volatile float sum = 0.0f; /* rounded after each step, as the kernel does */
                    for (int x = 0; x < k; x++) {
                        volatile float product = a[i * k + x] * b[x * n + j];
                        sum = sum + product;
                    }
                    wrong += c[i * n + j] != sum;
                }
            CHECK_U64(wrong, 0);
        }
        buffers_free();
    }
}

static void dynamic_shared_memory(void)
{
    static const unsigned widths[] = {1, 31, 64, 1009};
    for (int w = 0; w < 4; w++) {
        unsigned width = widths[w];
        float *from = floats_make(3 * (int)width, 13), *to = buffer_make(3 * width * sizeof *to);
        for (int order = 0; order < ORDER_COUNT; order++) {
            struct run_options options = {.grid = {3, 1, 1},
                                          .block = {width, 1, 1},
                                          .shared_nbytes = width * sizeof(float),
                                          .order = order};
            kernel_run_well(module_of("memory.cu"), "reverse_blocks", &options,
                            ARGUMENTS(&from, &to));
            int wrong = 0;
            for (unsigned i = 0; i < 3 * width; i++)
                wrong += to[i] != from[i / width * width + width - 1 - i % width];
            CHECK_U64(wrong, 0);
        }
        buffers_free();
    }
    int *from = ints_make(200, 14, 1000), *to = buffer_make(800);
    struct run_options options = {.grid = {1, 1, 1}, .block = {200, 1, 1}, .shared_nbytes = 1000};
    kernel_run_well(module_of("memory.cu"), "shared_two_types", &options, ARGUMENTS(&from, &to));
    int wrong = 0;
    for (int i = 0; i < 200; i++)
        wrong += to[i] != from[199 - i];
    CHECK_U64(wrong, 0);
    buffers_free();
}

static void template_by_name_expression(void)
{
    static const char *const expressions[] = {"add_constant<float, 3>", "add_constant<int, -2>",
                                              "histogram"};
    char *source = kernel_source("memory.cu");
    nvrtcProgram program;
    CHECK(nvrtcCreateProgram(&program, source, "memory.cu", 0, NULL, NULL) == NVRTC_SUCCESS);
    for (int i = 0; i < 3; i++)
        CHECK(nvrtcAddNameExpression(program, expressions[i]) == NVRTC_SUCCESS);
    const char *name;
    CHECK(nvrtcGetLoweredName(program, expressions[0], &name) ==
          NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
    CHECK(nvrtcCompileProgram(program, 0, NULL) == NVRTC_SUCCESS);
    size_t nbytes = 0;
    CHECK(nvrtcGetCUBINSize(program, &nbytes) == NVRTC_SUCCESS);
    char *image = malloc(nbytes);
    CHECK(nvrtcGetCUBIN(program, image) == NVRTC_SUCCESS);
    struct sim_module *module = NULL;
    CHECK(sim_module_load(image, &module) == CUDA_SUCCESS);
    CHECK(nvrtcGetLoweredName(program, expressions[2], &name) == NVRTC_SUCCESS);
    CHECK_TEXT(name, "histogram");
    CHECK(nvrtcGetLoweredName(program, "absent<int>", &name) ==
          NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
    CHECK(nvrtcAddNameExpression(program, "late") ==
          NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
    CHECK(nvrtcGetLoweredName(program, expressions[0], &name) == NVRTC_SUCCESS);
    CHECK_TEXT(name, "_Z12add_constantIfLi3EEvPT_i"); /* as NVRTC has it */
    int n = 100;
    float *values = buffer_make(400);
    for (int i = 0; i < n; i++)
        values[i] = (float)i;
    struct run_options options = {.grid = {2, 1, 1}, .block = {64, 1, 1}};
    kernel_run_well(module, name, &options, ARGUMENTS(&values, &n));
    CHECK(values[0] == 3.0f && values[99] == 102.0f);
    CHECK(nvrtcGetLoweredName(program, expressions[1], &name) == NVRTC_SUCCESS);
    int *numbers = ints_make(n, 15, 1000), first = numbers[0];
    kernel_run_well(module, name, &options, ARGUMENTS(&numbers, &n));
    CHECK(numbers[0] == first - 2);
    sim_module_unload(module);
    CHECK(nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
    free(image);
    free(source);
    buffers_free();
}

static void atomics(void)
{
    enum {
        N = 96,
    };
    for (int order = 0; order < ORDER_COUNT; order++) {
        int *i = buffer_make(36);
        unsigned *u = buffer_make(8);
        unsigned long long *l = buffer_make(16);
        float *f = buffer_make(4);
        double *d = buffer_make(8);
        memset(i, 0, 36);
        memset(u, 0, 8);
        memset(l, 0, 16);
        *f = 0.0f;
        *d = 0.0;
        i[4] = -1;
        struct run_options options = {.grid = {1, 1, 1}, .block = {N, 1, 1}, .order = order};
        kernel_run_well(module_of("memory.cu"), "atomic_kinds", &options,
                        ARGUMENTS(&i, &u, &l, &f, &d));
        int sum = N * (N - 1) / 2;
        CHECK(i[0] == sum && i[1] == -sum && i[2] == -(N - 1) && i[3] == N - 1);
        CHECK(i[4] == INT32_MIN && i[5] == INT32_MAX && i[6] == 0 && i[8] == 9);
        CHECK(u[0] == N % 5 && u[1] == (5 - N % 5) % 5);
        CHECK(l[0] == (unsigned long long)N << 33 && l[1] == (unsigned long long)(N - 1) << 33);
        CHECK(*f == N / 2 && *d == N / 4);
        buffers_free();
    }
}

static const struct run_options one_thread = {.grid = {1, 1, 1}, .block = {1, 1, 1}};

static void vocabulary_of_bits(void)
{
    static const unsigned long long expected[] = {
        20,
        33,
        47,
        64,
        17,
        4,
        0xf7b3d591,
        0x1e6a2c48f7b3d591,
        0x12cd78ef,
        0x468acf11,
        0xc44d5e6f,
        0x89abcdef,
        0x12345678,
        0x9ca39e0,
        0xf795e368,
        0x4a0955b6a48718e2,
        0xc94e46277fe1940d,
        0x6442d208,
        0xdc42d208,
        0x88898889,
        0xcdf01233,
        0xcd44,
        0x1e144,
        0x89abcdef,
    };
    enum {
        COUNT = sizeof expected / sizeof *expected,
    };
    unsigned *from = buffer_make(12);
    unsigned long long *to = buffer_make(sizeof expected);
    from[0] = 0x89abcdef;
    from[1] = 0x12345678;
    from[2] = 0x00010000;
    kernel_run_well(module_of("vocabulary.cu"), "bits", &one_thread, ARGUMENTS(&from, &to));
    for (int i = 0; i < COUNT; i++)
        CHECK_U64(to[i], expected[i]);
    buffers_free();
}

static void vocabulary_of_conversions(void)
{
    static const long long expected[] = {-2,
                                         -2,
                                         -3,
                                         -2,
                                         0,
                                         INT32_MAX,
                                         0,
                                         INT64_MAX,
                                         -2,
                                         -2,
                                         (int)0xc0200000,
                                         0xc0200000,
                                         -4610560118520545280,
                                         -2,
                                         (int)0xc0040000,
                                         -2,
                                         24,
                                         15,
                                         13};
    enum {
        COUNT = sizeof expected / sizeof *expected,
    };
    float *from = buffer_make(12);
    long long *to = buffer_make(sizeof expected);
    from[0] = -2.5f;
    from[1] = NAN;
    from[2] = 1e30f;
    kernel_run_well(module_of("vocabulary.cu"), "conversions", &one_thread, ARGUMENTS(&from, &to));
    for (int i = 0; i < COUNT; i++)
        CHECK_U64(to[i], expected[i]);
    buffers_free();
}

static void vocabulary_of_arithmetic(void)
{
    volatile float a = -1.7f, b = 3.3f, c = 0.1f; /* volatile: nothing is contracted here */
    double d = (double)a;
    float product = a * b, third = (float)(d + d + d * d + (d - 1.0) + d / 3.0);
    float expected[] = {
        a + b,
        a - b,
        product,
        a / b,
        (float)((double)a * (double)b + (double)c), /* rounded twice, but not here */
        (float)((double)a * (double)b + (double)c),
        sqrtf(b),
        1.0f / b,
        third,
        (float)(d * d + d) + 2.0f,
        a + b - a,
        -10.0f,
        fmodf(b, 2.5f) + fmodf(b, 2.5f) - b + (b - a),
        a * 8.0f + a / 4.0f + 1.0f,
        (float)(d + 1.0 - d - 2.0 - 1.0 - 1.0),
        -2.0f - 1.0f - a + sqrtf(b),
        b / 4.0f + 2.0f + (b - 3.0f) + 3.0f,
        3.0f,
        a + b + 1.0f + 3.0f,
    };
    enum {
        COUNT = sizeof expected / sizeof *expected,
    };
    float *from = buffer_make(12), *to = buffer_make(sizeof expected);
    from[0] = a;
    from[1] = b;
    from[2] = c;
    kernel_run_well(module_of("vocabulary.cu"), "arithmetic", &one_thread, ARGUMENTS(&from, &to));
    for (int i = 0; i < COUNT; i++) {
        bool is_near = fabsf(to[i] - expected[i]) <= 1e-6f * fabsf(expected[i]);
        bool is_exact = i == 8 || i > 9 || to[i] == expected[i];
        CHECK(is_near && is_exact);
        if (!is_near || !is_exact)
            fprintf(stderr, "    %d: %.9g is not %.9g\n", i, (double)to[i], (double)expected[i]);
    }
    buffers_free();
}

static void vocabulary_of_functions(void)
{
    double a = 0.375, pi = 3.14159265358979323846;
    double expected[] = {
        3 * exp(a) + exp2(a) + exp10(a) + expm1(a),
        3 * log(a) + log2(a) + log10(a) + log1p(a),
        2 * sin(a) + cos(a) + tan(a) + sin(pi * a) + cos(pi * a),
        asin(a) + acos(a) + atan(a) + atan2(a, 2.0),
        sinh(a) + cosh(a) + tanh(a) + asinh(a) + acosh(1.0 + a) + atanh(a),
        1.0 + lgamma(a) + tgamma(a) + erfc(-a / sqrt(2.0)) / 2 + j0(a) + y1(a),
        sqrt(a) + 1 / sqrt(a) + cbrt(a) + 1 / cbrt(a) + hypot(a, 3.0),
        pow(a, 1.5) + pow(a, 2.5) + sqrt(a),
        exp(a) + log(a) + log2(a) + log10(a) + sin(a) + cos(a),
        a * a + a / 3 + tan(a) + exp10(a) + a / 2,
        sin(a) + cos(a),
        sin(a) + cos(a) + 2 / sqrt(a),
    };
    enum {
        COUNT = sizeof expected / sizeof *expected,
    };
    float *from = buffer_make(4), *to = buffer_make(COUNT * sizeof *to);
    from[0] = (float)a;
    kernel_run_well(module_of("vocabulary.cu"), "functions", &one_thread, ARGUMENTS(&from, &to));
    for (int i = 0; i < COUNT; i++) {
        bool is_near = fabs((double)to[i] - expected[i]) <= 1e-5;
        CHECK(is_near);
        if (!is_near)
            fprintf(stderr, "    %d: %.9g is not %.9g\n", i, (double)to[i], expected[i]);
    }
    buffers_free();
}

static void vocabulary_of_vectors(void)
{
    float *from = floats_make(12, 16), *to = buffer_make(32);
    int *numbers = buffer_make(20);
    static const int expected[] = {1216, 3216, 484, 64, 9};
    kernel_run_well(module_of("vocabulary.cu"), "vectors", &one_thread,
                    ARGUMENTS(&from, &to, &numbers));
    CHECK(memcmp(numbers, expected, sizeof expected) == 0);
    CHECK(to[0] == from[0] + from[4] && to[1] == from[1] + from[9]);
    CHECK(to[2] == 5.0f && to[3] == 5.0f && memcmp(to + 4, from, 16) == 0);
    buffers_free();
}

static void copies_of_any_size(void)
{
    int *from = ints_make(60, 17, 1000), *to = buffer_make(240), nbytes = 77;
    kernel_run_well(module_of("vocabulary.cu"), "copies", &one_thread,
                    ARGUMENTS(&from, &to, &nbytes));
    CHECK(memcmp(to, from, 157) == 0);
    CHECK(((char *)to)[157] == (char)0xd0 && ((char *)to)[236] == 7 &&
          ((char *)to)[237] == (char)0xd0);
    if (has_checks()) {
        CHECK_U64(trace_read_nbytes, 157);
        CHECK_U64(trace_write_nbytes, 157 + 77);
        struct sim_report report;
        nbytes = 81; /* one byte beyond the end */
        CHECK_U64(kernel_run(module_of("vocabulary.cu"), "copies", &one_thread,
                             ARGUMENTS(&from, &to, &nbytes), &report),
                  CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    buffers_free();
}

void test_engine_kernels(void)
{
    RUN(vector_add_in_all_sizes);
    RUN(vector_loads);
    RUN(strided_copy);
    RUN(half_round_trip);
    RUN(half_rounding);
    RUN(three_dimensions);
    RUN(names_in_namespaces);
    RUN(block_sums);
    RUN(block_scans);
    RUN(look_back_scans);
    RUN(warp_operations);
    RUN(barriers_that_vote);
    RUN(groups_within_a_warp);
    RUN(histograms);
    RUN(matrix_products);
    RUN(dynamic_shared_memory);
    RUN(template_by_name_expression);
    RUN(atomics);
    RUN(vocabulary_of_bits);
    RUN(vocabulary_of_conversions);
    RUN(vocabulary_of_arithmetic);
    RUN(vocabulary_of_functions);
    RUN(vocabulary_of_vectors);
    RUN(copies_of_any_size);
}
