/*
 * random.cu: memory filled with random numbers. Behind the functions of src/ops/philox.h, which are the CPU's, and
 *
 *   RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_NARROW or RANDOM_WIDE
 *
 * A thread computes one block of Philox, or two of small integers, and stores all the elements that this gives at once.
 * Bound by arithmetic for normal numbers and integers, by memory for the others.
 */
#undef inline

struct arguments {
    uint64 seed, offset, count;
    uint64 low, range; /* of integers */
    element *out;
};

/* A number of float32 as one of a half: the CPU cuts digits that a half does not have, since rounding could make 1. */
template <class T> struct uniform {
    ELEMENT T from(float x) { return x; }
};
template <> struct uniform<float16> {
    ELEMENT float16 from(float x) { return half_of(floorf(x * 2048.0f) * (1.0f / 2048.0f)); }
};
template <> struct uniform<bfloat16> {
    ELEMENT bfloat16 from(float x) { return bfloat_of(floorf(x * 256.0f) * (1.0f / 256.0f)); }
};

#define BLOCKS 1 /* of a thread */
#if defined(RANDOM_WIDE)
#define PER_BLOCK 1
#elif defined(RANDOM_NARROW)
#define PER_BLOCK 2
#undef BLOCKS
#define BLOCKS (sizeof(element) <= 4 ? 2 : 1)
#else
#define PER_BLOCK (sizeof(element) == 8 ? 2 : 4)
#endif

/* gni_philox_narrow() with factors of 32 bits: a range of 2^32 is 0 there. */
ELEMENT unsigned narrow_of(unsigned low, unsigned high, unsigned range)
{
    return range == 0 ? high : (unsigned)((GNI_PHILOX_PRODUCT(high, range) + __umulhi(low, range)) >> 32);
}

/* A template, so that what is not of the type need not compile. */
template <class T> ELEMENT void numbers_make(const arguments &a, const unsigned *words, T *made)
{
#if defined(RANDOM_WIDE)
    made[0] = (T)(a.low + gni_philox_wide(gni_philox_join(words[0], words[1]),
                                                gni_philox_join(words[2], words[3]), a.range));
#elif defined(RANDOM_NARROW)
    for (int i = 0; i < 2; i++)
        made[i] = (T)(a.low + narrow_of(words[2 * i], words[2 * i + 1], (unsigned)a.range));
#elif defined(RANDOM_UNIFORM)
    if constexpr (sizeof(T) == 8) {
        for (int i = 0; i < 2; i++)
            made[i] = gni_philox_uniform64(gni_philox_join(words[2 * i], words[2 * i + 1]));
    } else {
        for (int i = 0; i < 4; i++)
            made[i] = uniform<T>::from(gni_philox_uniform32(words[i]));
    }
#else
    if constexpr (sizeof(T) == 8) {
        gni_philox_normal64(gni_philox_join(words[0], words[1]), gni_philox_join(words[2], words[3]), &made[0],
                            &made[1]);
    } else {
        float x[4];
        gni_philox_normal32(words[0], words[1], &x[0], &x[1]);
        gni_philox_normal32(words[2], words[3], &x[2], &x[3]);
        for (int i = 0; i < 4; i++)
            made[i] = convert<T>(x[i]);
    }
#endif
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    constexpr int items = BLOCKS * PER_BLOCK;
    const uint64 thread = (uint64)blockIdx.x * 256 + threadIdx.x, first = thread * items;
    if (first >= a.count)
        return;
    pack<element, items> made;
    gni_philox philox;
    philox.seed = a.seed;
    philox.offset = a.offset;
#pragma unroll
    for (int k = 0; k < BLOCKS; k++) {
        unsigned words[4];
        gni_philox_block(philox, thread * BLOCKS + k, words);
        numbers_make(a, words, made.item + k * PER_BLOCK);
    }
    if (first + items <= a.count && (uint64)a.out % sizeof made == 0)
        *(pack<element, items> *)(a.out + first) = made;
    else
        for (uint64 i = 0; i < items && first + i < a.count; i++)
            a.out[first + i] = made.item[i];
}
