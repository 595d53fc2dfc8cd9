/*
 * interpret_reduce.cu: what reduce.cu needs to reduce values that lie in memory, as accumulators: tier 0. Goes behind
 * interpret_result.cu, and before reductions.cu and reduce.cu. Before it `accumulator` is defined.
 */
typedef uint64 index;

struct arguments {
    const void *values;
    int64 kept, reduced, chunk, parts, slot;
    double divisor;
    void *partial, *result;
    int64 result_type; /* enumerator of interpret_result.cu */
    int64 is_mean;
};

ELEMENT accumulator value_at(const arguments &a, index i)
{
    return loaded<accumulator>(((const memory<accumulator>::type *)a.values)[i]);
}

ELEMENT void values_at(const arguments &a, index i, accumulator (&e)[PACK])
{
#pragma unroll
    for (int k = 0; k < PACK; k++)
        e[k] = value_at(a, i + k);
}

CALLED void finish(const arguments &a, int64 at, accumulator x)
{
    if (a.is_mean)
        store_as((int)a.result_type, a.result, at, x / a.divisor);
    else
        store_as((int)a.result_type, a.result, at, x);
}
#define FINISH(at, x) finish(a, (int64)(at), x)
