/*
 * softmax.cu: softmax and its logarithm along rows, in one kernel. Goes behind the generated text, which has defined
 *
 *   NAME                    the kernel's
 *   SOFTMAX_ROWS            a block for each row; or SOFTMAX_SHORT: a warp for each
 *   IS_LOG                  1: the logarithm
 *   THREADS                 of a block
 *   PACK                    elements that are loaded and stored at once
 *   element_type, result_type
 *   compute                 float or double
 *   value_at(a, i)          the value of element i
 *   values_at(a, i, e)      PACK of them, from i on, which is a multiple of PACK
 *   STEPS                   packs of a row that a thread keeps in registers; 0: the row is read twice
 *
 * Sums are those of the threads' partial sums, joined in a tree, in double. NaN in a row makes all of it NaN by
 * itself: the largest element need not know of it.
 *
 * Tuned for rows of some thousand elements on an H200.
 */
#ifdef SOFTMAX_ROWS
#define LANES THREADS
#else
#define LANES 32
#endif

ELEMENT compute exponential(compute x) { return op_exp<compute>(x); }
ELEMENT float larger(float x, float y) { return fmaxf(x, y); }
ELEMENT double larger(double x, double y) { return fmax(x, y); }

/* All threads of a row get the result. */
ELEMENT compute row_maximum(compute x)
{
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, width));
#ifdef SOFTMAX_ROWS
    __shared__ compute warps[LANES / 32];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = warps[0];
    for (int k = 1; k < LANES / 32; k++)
        x = larger(x, warps[k]);
#endif
    return x;
}

ELEMENT double row_sum(double x)
{
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, width);
#ifdef SOFTMAX_ROWS
    __shared__ double warps[LANES / 32];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = warps[0];
    for (int k = 1; k < LANES / 32; k++)
        x += warps[k];
#endif
    return x;
}

#if STEPS > 0
/* The part of a row that a thread has: packs, LANES apart. */
ELEMENT void row_softmax(const arguments &a, index row, index lane)
{
    const index folded = (index)a.folded, base = row * folded;
    result_type *out = (result_type *)a.result + base;
    const compute lowest = -(compute)1 / (compute)0;
    compute x[STEPS][PACK], largest = lowest;
#pragma unroll
    for (int j = 0; j < STEPS; j++) {
        const index i = (j * LANES + lane) * PACK;
        element_type e[PACK];
        if (i + PACK <= folded)
            values_at(a, base + i, e);
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            x[j][k] = lowest;
            if (i + PACK <= folded)
                x[j][k] = convert<compute>(e[k]);
            else if (i + k < folded)
                x[j][k] = convert<compute>(value_at(a, base + i + k));
            largest = larger(largest, x[j][k]);
        }
    }
    largest = row_maximum(largest);
    compute sum = 0;
#pragma unroll
    for (int j = 0; j < STEPS; j++)
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            x[j][k] -= largest;
            const compute power = exponential(x[j][k]);
            if ((j * LANES + lane) * PACK + k < folded)
                sum += power;
            if (!IS_LOG)
                x[j][k] = power;
        }
    const double total = row_sum((double)sum);
    const compute factor = IS_LOG ? (compute)log(total) : (compute)(1 / total);
#pragma unroll
    for (int j = 0; j < STEPS; j++) {
        const index i = (j * LANES + lane) * PACK;
        pack<result_type, PACK> y;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            y.item[k] = convert<result_type>(IS_LOG ? x[j][k] - factor : x[j][k] * factor);
        if (i + PACK <= folded)
            *(pack<result_type, PACK> *)(out + i) = y;
        else
            for (int k = 0; k < PACK && i + k < folded; k++)
                out[i + k] = y.item[k];
    }
}
#else
ELEMENT void row_softmax(const arguments &a, index row, index lane)
{
    const index folded = (index)a.folded, base = row * folded;
    result_type *out = (result_type *)a.result + base;
    const compute lowest = -(compute)1 / (compute)0;
    compute largest = lowest;
    double sum = 0;
    for (index i = lane; i < folded; i += LANES) {
        const compute x = convert<compute>(value_at(a, base + i)), before = largest;
        largest = larger(largest, x);
        if (largest != before && before != lowest)
            sum *= (double)exponential(before - largest);
        sum += x == lowest ? 0 : (double)exponential(x - largest); /* -inf is nothing, also before all others */
    }
    const compute top = row_maximum(largest);
    const double total = row_sum(largest == lowest ? sum : sum * (double)exponential(largest - top));
    const compute factor = IS_LOG ? (compute)log(total) : (compute)(1 / total);
    for (index i = lane; i < folded; i += LANES) {
        const compute shifted = convert<compute>(value_at(a, base + i)) - top;
        out[i] = convert<result_type>(IS_LOG ? shifted - factor : exponential(shifted) * factor);
    }
}
#endif

#ifdef SOFTMAX_ROWS
extern "C" __global__ void __launch_bounds__(THREADS) NAME(const __grid_constant__ arguments a)
{
    row_softmax(a, blockIdx.x, threadIdx.x);
}
#else
extern "C" __global__ void __launch_bounds__(THREADS) NAME(const __grid_constant__ arguments a)
{
    const index row = (index)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (row < (index)a.kept)
        row_softmax(a, row, threadIdx.x % 32);
}
#endif
