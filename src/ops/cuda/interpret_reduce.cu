/*
 * interpret_reduce.cu: what reduce.cu needs to reduce values that lie in memory, as accumulators, or as floats where those are
 * doubles: tier 0. Goes behind interpret_result.cu, and before reductions.cu and reduce.cu. Before it `accumulator` is defined.
 */
typedef uint64 index;

struct arguments {
    const void *values;
    int64 kept, reduced, chunk, parts, slot;
    double divisor;
    void *partial, *result;
    int64 result_type; /* enumerator of interpret_result.cu */
    int64 is_mean;
    int64 is_single; /* values are floats */
};

template <class T> ELEMENT void pack_load(const arguments &a, index i, accumulator (&e)[PACK])
{
    typedef typename memory<T>::type memory_type;
    const pack<memory_type, PACK> p = *(const pack<memory_type, PACK> *)((const memory_type *)a.values + i);
#pragma unroll
    for (int k = 0; k < PACK; k++)
        e[k] = (accumulator)loaded<T>(p.item[k]);
}

ELEMENT accumulator value_at(const arguments &a, index i)
{
    if (is_floating<accumulator>::value && a.is_single)
        return (accumulator)((const float *)a.values)[i];
    return loaded<accumulator>(((const memory<accumulator>::type *)a.values)[i]);
}

ELEMENT void values_at(const arguments &a, index i, accumulator (&e)[PACK])
{
    if (is_floating<accumulator>::value && a.is_single)
        pack_load<float>(a, i, e);
    else
        pack_load<accumulator>(a, i, e);
}

CALLED void finish(const arguments &a, int64 at, accumulator x)
{
    if (a.is_mean)
        store_as((int)a.result_type, a.result, at, x / a.divisor);
    else
        store_as((int)a.result_type, a.result, at, x);
}
#define FINISH(at, x) finish(a, (int64)(at), x)
