/*
 * list.cu: one program over many tensors. Goes behind the generated text (cuda_list.c), which has defined
 *
 *   NAME         the kernel's
 *   PACK         elements that are loaded at once
 *   TOGETHER     packs whose loads are in flight before the first is computed with
 *   arguments    with `skip`, `entries`, and for each entry `first`, its first block, and `count`, its elements
 *   skip_type    as it lies in memory
 *   scalars, scalars_find(a, entry)      the values that are one for all elements of an entry
 *   places, places_find(a, entry)        where its tensors are
 *   packs, packs_load(places, i)         PACK elements of each tensor that is read, from i on
 *   packs_load_some(places, i, n)        the first n of them
 *   packs_store(places, i, results), packs_store_some(places, i, results, n)
 *   pack_compute(scalars, packs, k, results)   element k
 *
 * or, where a value is reduced (REDUCTION and accumulator are defined), instead of the last three
 *
 *   pack_value(scalars, packs, k)        the value of element k, an accumulator
 *
 * A block has BLOCK_PACKS packs for each of its threads, of one entry. A reduction leaves an accumulator for each block behind;
 * LIST_JOIN is the kernel that joins those of an entry, in their order; LIST_BLOCKS one that leaves the same behind, of values of
 * an entry that lie in memory (interpret_list.c).
 *
 * Bound by memory. On an H200 a step of AdamW on 124 million float32 elements in 150 tensors is measured by
 * bench/bench_lists.py beside a copy.
 */
#define STRETCH (256 * PACK)

#ifdef REDUCTION
/* The threads of a block join; the first has the result. */
ELEMENT accumulator block_reduce(accumulator x)
{
    __shared__ accumulator warps[8];
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x = REDUCTION::join(x, (accumulator)__shfl_down_sync(0xffffffffu, x, width));
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    for (int k = 1; k < 8 && threadIdx.x == 0; k++)
        x = REDUCTION::join(x, warps[k]);
    return x;
}
#endif

#ifdef LIST_JOIN
struct arguments {
    const accumulator *partial;
    accumulator *result;
    int64 entries, last; /* blocks in all */
    int64 first[ENTRIES], index[ENTRIES];
};

/* A block for each entry. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int entry = blockIdx.x;
    const int64 end = entry + 1 < a.entries ? a.first[entry + 1] : a.last;
    accumulator x = REDUCTION::start<accumulator>();
    for (int64 k = a.first[entry] + threadIdx.x; k < end; k += 256)
        x = REDUCTION::join(x, a.partial[k]);
    x = block_reduce(x);
    if (threadIdx.x == 0)
        a.result[a.index[entry]] = x;
}
#elif defined(LIST_BLOCKS)
struct arguments {
    const accumulator *values;
    int64 count, pack;
    int64 stretch; /* elements of a block */
    accumulator *partial;
};

/* The blocks of one entry. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 begin = (int64)blockIdx.x * a.stretch;
    const int64 end = begin + a.stretch < a.count ? begin + a.stretch : a.count;
    accumulator x = REDUCTION::start<accumulator>();
    for (int64 i = begin + threadIdx.x * a.pack; i < end; i += 256 * a.pack)
        for (int64 k = i; k < i + a.pack && k < end; k++)
            x = REDUCTION::join(x, a.values[k]);
    x = block_reduce(x);
    if (threadIdx.x == 0)
        a.partial[blockIdx.x] = x;
}
#else
/* The entry that has a block: the last one whose first block is not behind it. */
ELEMENT int entry_find(const arguments &a, int64 block)
{
    int entry = 0, behind = (int)a.entries;
    while (behind - entry > 1) {
        const int middle = (entry + behind) / 2;
        if (a.first[middle] <= block)
            entry = middle;
        else
            behind = middle;
    }
    return entry;
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    if (a.skip != 0 && number(*a.skip) != 0)
        return;
    const int entry = entry_find(a, blockIdx.x);
    const scalars s = scalars_find(a, entry);
    const places at = places_find(a, entry);
    const int64 count = a.count[entry], begin = ((int64)blockIdx.x - a.first[entry]) * (STRETCH * BLOCK_PACKS);
    const int64 end = begin + STRETCH * BLOCK_PACKS < count ? begin + STRETCH * BLOCK_PACKS : count;
    int64 i = begin + threadIdx.x * PACK;
#ifdef REDUCTION
    accumulator x = REDUCTION::start<accumulator>();
#endif
    for (; i + (TOGETHER - 1) * STRETCH + PACK <= end; i += TOGETHER * STRETCH) {
        packs p[TOGETHER];
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
            p[u] = packs_load(at, i + u * STRETCH);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
#ifdef REDUCTION
#pragma unroll
            for (int k = 0; k < PACK; k++)
                x = REDUCTION::join(x, pack_value(s, p[u], k));
#else
            results q;
#pragma unroll
            for (int k = 0; k < PACK; k++)
                pack_compute(s, p[u], k, q);
            packs_store(at, i + u * STRETCH, q);
#endif
        }
    }
    for (; i < end; i += STRETCH) {
        const int there = end - i < PACK ? (int)(end - i) : PACK;
        const packs p = there == PACK ? packs_load(at, i) : packs_load_some(at, i, there);
#ifdef REDUCTION
#pragma unroll
        for (int k = 0; k < PACK; k++)
            if (k < there)
                x = REDUCTION::join(x, pack_value(s, p, k));
#else
        results q;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            pack_compute(s, p, k, q);
        if (there == PACK)
            packs_store(at, i, q);
        else
            packs_store_some(at, i, q, there);
#endif
    }
#ifdef REDUCTION
    x = block_reduce(x);
    if (threadIdx.x == 0)
        ((accumulator *)a.partial)[blockIdx.x] = x;
#endif
}
#endif
