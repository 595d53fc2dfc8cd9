/*
 * chains_body.h: the chains (chains.h) of one instruction set; loops_body.h includes it.
 *
 * Steps are interpreted: each is a branch, and then one operation on several vectors, which do not wait for each other. What is
 * left at the end of a row is one more such block, whose loads and stores are masked; where the instruction set has no masks, it
 * is taken vector by vector, then element by element.
 */
#include "ops/cpu/chains.h"

#define CHAIN_EACH_1(X, ...) X(0, __VA_ARGS__)
#define CHAIN_EACH_4(X, ...) \
    X(0, __VA_ARGS__)        \
    X(1, __VA_ARGS__)        \
    X(2, __VA_ARGS__)        \
    X(3, __VA_ARGS__)
#define CHAIN_EACH_8(X, ...)     \
    CHAIN_EACH_4(X, __VA_ARGS__) \
    X(4, __VA_ARGS__)            \
    X(5, __VA_ARGS__)            \
    X(6, __VA_ARGS__)            \
    X(7, __VA_ARGS__)

#if defined(__AVX512F__)
#define CHAIN_BYTES 64 /* of a vector */
#define CHAIN_VECTORS 4
#define CHAIN_EACH CHAIN_EACH_4
#elif defined(__AVX__)
#define CHAIN_BYTES 32
#define CHAIN_VECTORS 8
#define CHAIN_EACH CHAIN_EACH_8
#else
#define CHAIN_BYTES 16
#define CHAIN_VECTORS 8
#define CHAIN_EACH CHAIN_EACH_8
#endif

#ifdef __AVX__
#define CHAIN_HAS_PARTS
#endif

/* What is done with vector number k of the chain's value. `data`: where the step reads or writes. Of PART the first `left`
 * elements of the block are there. */
#define CHAIN_LOAD(k, FROM) vector x##k = (FROM)[k];
#define CHAIN_LOAD_PART(k, FROM) vector x##k = CHAIN_PART(get)((FROM) + k, CHAIN_LEFT(k));
#define CHAIN_STORE(k, TO) (TO)[k] = x##k;
#define CHAIN_STORE_PART(k, TO) CHAIN_PART(put)((TO) + k, CHAIN_LEFT(k), x##k);
#define CHAIN_ONE(k, EXPRESSION) \
    {                            \
        const vector x = x##k;   \
        x##k = EXPRESSION;       \
    }
#define CHAIN_TWO(k, EXPRESSION)            \
    {                                       \
        const vector x = x##k, y = data[k]; \
        x##k = EXPRESSION;                  \
    }
#define CHAIN_TWO_PART(k, EXPRESSION)                                        \
    {                                                                        \
        const vector x = x##k, y = CHAIN_PART(get)(data + k, CHAIN_LEFT(k)); \
        x##k = EXPRESSION;                                                   \
    }
#define CHAIN_LEFT(k) (left - k * (int)(sizeof(vector) / sizeof(element)))
#define CHAIN_PART(name) \
    _Generic((element)0, float : chain_##name##_float32, double : chain_##name##_float64)

#define CHAIN_CASES(EACH, TWO, CODE, EXPRESSION)        \
    case GNI_CHAIN_##CODE:                              \
        EACH(TWO, EXPRESSION)                           \
        break;                                          \
    case GNI_CHAIN_##CODE##_ROW: {                      \
        const element y = ((element *)step->data)[row]; \
        EACH(CHAIN_ONE, EXPRESSION)                     \
        break;                                          \
    }
#define CHAIN_CASES_BLOCK(CODE, expression, op, place) \
    CHAIN_CASES(CHAIN_EACH, CHAIN_TWO, CODE, expression)
#define CHAIN_CASES_PART(CODE, expression, op, place) \
    CHAIN_CASES(CHAIN_EACH, CHAIN_TWO_PART, CODE, expression)
#define CHAIN_CASES_SINGLE(CODE, expression, op, place) \
    CHAIN_CASES(CHAIN_EACH_1, CHAIN_TWO, CODE, expression)

/* The steps for the elements from number `at` on: those of EACH vectors. */
#define CHAIN_RUN(NAME, T, VECTOR, EACH, CASES, LOAD, STORE)                                    \
    static inline void NAME(const struct gni_chain_step *step, size_t row, size_t at, int left) \
    {                                                                                           \
        typedef T element;                                                                      \
        typedef VECTOR vector;                                                                  \
        (void)left;                                                                             \
        EACH(LOAD, (const vector *)(const void *)((const element *)step->data + at))            \
        for (;;) {                                                                              \
            step++;                                                                             \
            vector *data = (vector *)((uintptr_t)step->data + at * sizeof(element));            \
            switch (step->code) {                                                               \
                GNI_CHAIN_LIST(CASES)                                                           \
            case GNI_CHAIN_NEGATIVE:                                                            \
                EACH(CHAIN_ONE, -x)                                                             \
                break;                                                                          \
            case GNI_CHAIN_SQUARE:                                                              \
                EACH(CHAIN_ONE, x *x)                                                           \
                break;                                                                          \
            case GNI_CHAIN_DOUBLE:                                                              \
                EACH(CHAIN_ONE, x + x)                                                          \
                break;                                                                          \
            case GNI_CHAIN_STORE:                                                               \
                EACH(STORE, data)                                                               \
                break;                                                                          \
            case GNI_CHAIN_LOAD:                                                                \
            case GNI_CHAIN_END:                                                                 \
                return;                                                                         \
            }                                                                                   \
        }                                                                                       \
    }

#define CHAIN_VECTOR(S, T)     \
    typedef T chain_vector_##S \
        __attribute__((vector_size(CHAIN_BYTES), aligned(sizeof(T)), may_alias));
CHAIN_VECTOR(float32, float)
CHAIN_VECTOR(float64, double)

/* The first `left` elements of a vector, which may be none, or more than it has. */
#if defined(__AVX512F__)
#define CHAIN_MASKS(S, SUFFIX, MASK)                                                      \
    static inline MASK chain_mask_##S(int left)                                           \
    {                                                                                     \
        int width = CHAIN_BYTES / (int)sizeof((chain_vector_##S){0}[0]);                  \
        return (MASK)(left >= width ? ~0U : left > 0 ? (1U << left) - 1 : 0);             \
    }                                                                                     \
    static inline chain_vector_##S chain_get_##S(const void *from, int left)              \
    {                                                                                     \
        return (chain_vector_##S)_mm512_maskz_loadu_##SUFFIX(chain_mask_##S(left), from); \
    }                                                                                     \
    static inline void chain_put_##S(void *to, int left, chain_vector_##S x)              \
    {                                                                                     \
        _mm512_mask_storeu_##SUFFIX(to, chain_mask_##S(left), x);                         \
    }
CHAIN_MASKS(float32, ps, __mmask16)
CHAIN_MASKS(float64, pd, __mmask8)
#elif defined(__AVX__)
#define CHAIN_MASKS(S, T, SUFFIX, MASK)                                             \
    static inline chain_vector_##S chain_get_##S(const void *from, int left)        \
    {                                                                               \
        return (chain_vector_##S)_mm256_maskload_##SUFFIX((const T *)from, (MASK)); \
    }                                                                               \
    static inline void chain_put_##S(void *to, int left, chain_vector_##S x)        \
    {                                                                               \
        _mm256_maskstore_##SUFFIX((T *)to, (MASK), x);                              \
    }
CHAIN_MASKS(float32, float, ps,
            _mm256_cmpgt_epi32(_mm256_set1_epi32(left), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)))
CHAIN_MASKS(float64, double, pd,
            _mm256_cmpgt_epi64(_mm256_set1_epi64x(left), _mm256_setr_epi64x(0, 1, 2, 3)))
#endif

#ifdef CHAIN_HAS_PARTS
#define CHAIN_RUN_REST(S, T)                                                              \
    CHAIN_RUN(chain_run_part_##S, T, chain_vector_##S, CHAIN_EACH, CHAIN_CASES_PART,      \
              CHAIN_LOAD_PART, CHAIN_STORE_PART)                                          \
    static void chain_rest_##S(const struct gni_chain_step *steps, size_t row, size_t at, \
                               size_t left)                                               \
    {                                                                                     \
        if (left > 0)                                                                     \
            chain_run_part_##S(steps, row, at, (int)left);                                \
    }
#else
#define CHAIN_RUN_REST(S, T)                                                                     \
    typedef T chain_one_##S __attribute__((may_alias));                                          \
    CHAIN_RUN(chain_run_vector_##S, T, chain_vector_##S, CHAIN_EACH_1, CHAIN_CASES_SINGLE,       \
              CHAIN_LOAD, CHAIN_STORE)                                                           \
    CHAIN_RUN(chain_run_one_##S, T, chain_one_##S, CHAIN_EACH_1, CHAIN_CASES_SINGLE, CHAIN_LOAD, \
              CHAIN_STORE)                                                                       \
    static void chain_rest_##S(const struct gni_chain_step *steps, size_t row, size_t at,        \
                               size_t left)                                                      \
    {                                                                                            \
        const size_t width = CHAIN_BYTES / sizeof(T), end = at + left;                           \
        for (; end - at >= width; at += width)                                                   \
            chain_run_vector_##S(steps, row, at, 0);                                             \
        for (; at < end; at++)                                                                   \
            chain_run_one_##S(steps, row, at, 0);                                                \
    }
#endif

#define CHAINS(S, T)                                                                               \
    CHAIN_RUN(chain_run_block_##S, T, chain_vector_##S, CHAIN_EACH, CHAIN_CASES_BLOCK, CHAIN_LOAD, \
              CHAIN_STORE)                                                                         \
    CHAIN_RUN_REST(S, T)                                                                           \
    static void chain_##S(const struct gni_chain_step *steps, size_t rows, size_t columns)         \
    {                                                                                              \
        const size_t block = CHAIN_VECTORS * CHAIN_BYTES / sizeof(T);                              \
        size_t at = 0;                                                                             \
        for (size_t row = 0; row < rows; row++) {                                                  \
            const size_t end = at + columns;                                                       \
            for (; end - at >= block; at += block)                                                 \
                chain_run_block_##S(steps, row, at, 0);                                            \
            chain_rest_##S(steps, row, at, end - at);                                              \
            at = end;                                                                              \
        }                                                                                          \
    }

CHAINS(float32, float)
CHAINS(float64, double)
