/*
 * interpret_softmax.cu: softmax and its logarithm along rows of values that lie in memory: tier 0. Goes behind interpret_result.cu.
 * Before it NAME and `compute` (float or double) are defined. It adds in the order of softmax.cu, whose constants are arguments
 * here: pack, lanes, and whether a thread keeps its part of a row (is_held).
 */
struct arguments {
    const compute *values;
    int64 kept, reduced;
    int64 lanes;    /* threads that share a row: a power of two */
    int64 pack;     /* elements side by side that a thread takes */
    int64 together; /* packs that are taken at once, where a row is not held */
    int64 is_held, is_log;
    void *result;
    int64 result_type; /* enumerator of interpret_result.cu */
};

ELEMENT float larger(float x, float y) { return fmaxf(x, y); }
ELEMENT double larger(double x, double y) { return fmax(x, y); }
ELEMENT compute lowest() { return -(compute)1 / (compute)0; }

CALLED compute exponential(compute x) { return op_exp<compute>(x); }
CALLED double logarithm(double x) { return log(x); }

/* Four groups of every fourth warp, then those. */
template <class T> ELEMENT T warps_maximum(const T *warps, int count)
{
    T y[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        y[k] = warps[k];
        for (int w = k + 4; w < count; w += 4)
            y[k] = larger(y[k], warps[w]);
    }
    return larger(larger(y[0], y[1]), larger(y[2], y[3]));
}

ELEMENT double warps_sum(const double *warps, int count)
{
    double y[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        y[k] = warps[k];
        for (int w = k + 4; w < count; w += 4)
            y[k] = y[k] + warps[w];
    }
    return (y[0] + y[1]) + (y[2] + y[3]);
}

ELEMENT compute row_maximum(compute x, int lanes)
{
    __shared__ compute warps[32];
    for (int width = lanes < 32 ? lanes / 2 : 16; width > 0; width /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, width));
    if (lanes <= 32)
        return x;
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    return warps_maximum(warps, lanes / 32);
}

ELEMENT double row_sum(double x, int lanes)
{
    __shared__ double warps[32];
    for (int width = lanes < 32 ? lanes / 2 : 16; width > 0; width /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, width);
    if (lanes <= 32)
        return x;
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    return warps_sum(warps, lanes / 32);
}

/* A place of a row: packs may begin before it and end behind it. */
ELEMENT compute value_at(const arguments &a, int64 i, int64 base, int64 end)
{
    return i >= base && i < end ? a.values[i] : lowest();
}

/* The row's largest number, and the sum of powers, of a thread that keeps its part. */
ELEMENT compute held_sum(const arguments &a, int64 first, int64 step, int64 base, int64 end, int lanes, double *total)
{
    compute largest = lowest(), sum = 0;
    for (int64 i = first; i < end; i += step)
        for (int k = 0; k < (int)a.pack; k++)
            largest = larger(largest, value_at(a, i + k, base, end));
    largest = row_maximum(largest, lanes);
    for (int64 i = first; i < end; i += step)
        for (int k = 0; k < (int)a.pack; k++)
            if (i + k >= base && i + k < end)
                sum += exponential(a.values[i + k] - largest);
    *total = row_sum((double)sum, lanes);
    return largest;
}

/* The same of one that reads it again: powers are of what was the largest until then. */
ELEMENT compute streamed_sum(const arguments &a, int64 first, int64 step, int64 base, int64 end, int lanes, double *total)
{
    compute largest = lowest();
    double sum = 0;
    const int together = (int)a.together, pack = (int)a.pack;
    for (int64 i = first; i < end; i += step * together) {
        compute top = largest, part = 0;
        for (int u = 0; u < together; u++)
            for (int k = 0; k < pack; k++)
                top = larger(top, value_at(a, i + u * step + k, base, end));
        const compute shift = top == lowest() ? (compute)0 : top;
        for (int u = 0; u < together; u++)
            for (int k = 0; k < pack; k++)
                part += exponential(value_at(a, i + u * step + k, base, end) - shift);
        if (top != largest)
            sum *= (double)exponential(largest - top);
        sum += (double)part;
        largest = top;
    }
    const compute top = row_maximum(largest, lanes);
    *total = row_sum(largest == lowest() ? sum : sum * (double)exponential(largest - top), lanes);
    return top;
}

/* All threads of a warp take part in its shuffles: those that have no row have an empty one. */
extern "C" __global__ void __launch_bounds__(1024) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int lanes = (int)a.lanes, lane = threadIdx.x & (lanes - 1);
    const int64 row = (int64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    const bool is_there = row < a.kept;
    if (lanes >= 32 && !is_there)
        return;
    const int64 base = is_there ? row * a.reduced : 0, end = is_there ? base + a.reduced : 0;
    const int64 first = base - base % a.pack + lane * a.pack, step = lanes * a.pack;
    double total;
    const compute largest = a.is_held ? held_sum(a, first, step, base, end, lanes, &total)
                                      : streamed_sum(a, first, step, base, end, lanes, &total);
    const compute factor = a.is_log ? (compute)logarithm(total) : (compute)(1 / total);
    for (int64 i = first; i < end; i += step)
        for (int64 k = i; k < i + a.pack; k++)
            if (k >= base && k < end) {
                const compute shifted = a.values[k] - largest;
                store_as((int)a.result_type, a.result, k, a.is_log ? shifted - factor : exponential(shifted) * factor);
            }
}
