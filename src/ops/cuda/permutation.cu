/*
 * permutation.cu: the keys of a random permutation, and what is left to do once it is sorted by their highest bits.
 * Behind the functions of src/ops/philox.h, which are the CPU's, and one of
 *
 *   PERMUTATION_KEYS    keys[i] = the highest bits of the random key of index i
 *   PERMUTATION_STORE   the indices in the order of whole keys
 *
 * and typedef word, that the highest bits fit into. Those are so many that few keys have the same ones: such a run is
 * put in order by one thread, which computes whole keys anew.
 */
#undef inline

struct arguments {
    uint64 seed, offset;
    int64 count, shift;   /* of a key, down to its highest bits */
    word *keys;           /* sorted for STORE, with */
    const word *indices;  /* whose they are */
    int64 *out;
};

ELEMENT void keys_make(const arguments &a, int64 block, uint64 *keys)
{
    unsigned words[4];
    gni_philox philox;
    philox.seed = a.seed;
    philox.offset = a.offset;
    gni_philox_block(philox, (uint64)block, words);
    keys[0] = gni_philox_join(words[0], words[1]);
    keys[1] = gni_philox_join(words[2], words[3]);
}

#ifdef PERMUTATION_KEYS
/* A thread for each block of Philox. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 first = ((int64)blockIdx.x * 256 + threadIdx.x) * 2;
    if (first >= a.count)
        return;
    uint64 keys[2];
    keys_make(a, first / 2, keys);
    a.keys[first] = (word)(keys[0] >> a.shift);
    if (first + 1 < a.count)
        a.keys[first + 1] = (word)(keys[1] >> a.shift);
}
#endif

#ifdef PERMUTATION_STORE
/* The key of an index; equal ones keep the order of their indices. */
ELEMENT bool is_before(const arguments &a, int64 i, int64 j)
{
    uint64 first[2], second[2];
    keys_make(a, i / 2, first);
    keys_make(a, j / 2, second);
    const uint64 x = first[i % 2], y = second[j % 2];
    return x < y || (x == y && i < j);
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
    if (i >= a.count || (i > 0 && a.keys[i - 1] == a.keys[i]))
        return;
    a.out[i] = (int64)a.indices[i];
    for (int64 end = i + 1; end < a.count && a.keys[end] == a.keys[i]; end++) {
        const int64 one = (int64)a.indices[end];
        int64 at = end;
        for (; at > i && is_before(a, one, a.out[at - 1]); at--)
            a.out[at] = a.out[at - 1];
        a.out[at] = one;
    }
}
#endif
