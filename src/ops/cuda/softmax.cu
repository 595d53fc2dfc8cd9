/*
 * softmax.cu: softmax and its logarithm along rows, in one kernel. Goes behind the generated text, which has defined
 *
 *   NAME                    the kernel's
 *   SOFTMAX_ROWS            a block for each row; or SOFTMAX_SHORT: a warp for each
 *   IS_LOG                  1: the logarithm
 *   PACK                    elements that are loaded and stored at once
 *   element_type, result_type
 *   compute                 float or double
 *   value_at(a, i)          the value of element i
 *   values_at(a, i, e)      PACK of them, from i on, which is a multiple of PACK
 *
 * A row is read once, and kept in registers, as long as it has no more than CAPACITY elements; longer ones are read
 * twice. Sums are those of 512 threads' (or 32 lanes') partial sums, joined in a tree, in double.
 *
 * Tuned for rows of some thousand elements on an H200.
 */
#ifdef SOFTMAX_ROWS
#define THREADS 512
#else
#define THREADS 32
#endif
#define ITEMS 32
#define CAPACITY (THREADS * ITEMS)

ELEMENT compute exponential(compute x) { return op_exp<compute>(x); }

/* All threads of a row get the result. */
ELEMENT compute row_maximum(compute x)
{
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x = op_maximum<compute>(x, __shfl_xor_sync(0xffffffffu, x, width));
#ifdef SOFTMAX_ROWS
    __shared__ compute warps[THREADS / 32];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = warps[0];
    for (int k = 1; k < THREADS / 32; k++)
        x = op_maximum<compute>(x, warps[k]);
#endif
    return x;
}

ELEMENT double row_sum(double x)
{
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, width);
#ifdef SOFTMAX_ROWS
    __shared__ double warps[THREADS / 32];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = warps[0];
    for (int k = 1; k < THREADS / 32; k++)
        x += warps[k];
#endif
    return x;
}

ELEMENT result_type finish(compute shifted, compute power, double sum, compute logarithm)
{
    return convert<result_type>(IS_LOG ? shifted - logarithm : power / (compute)sum);
}

/* The part of a row that a thread has: packs, THREADS apart. */
ELEMENT void row_softmax(const arguments &a, index row, index lane)
{
    const index folded = (index)a.folded, base = row * folded;
    result_type *out = (result_type *)a.result + base;
    const compute lowest = -(compute)1 / (compute)0;
    if (folded <= CAPACITY) {
        compute x[ITEMS / PACK][PACK];
        compute largest = lowest;
#pragma unroll
        for (int j = 0; j < ITEMS / PACK; j++) {
            const index i = (j * THREADS + lane) * PACK;
            element_type e[PACK];
            if (i + PACK <= folded)
                values_at(a, base + i, e);
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                x[j][k] = i + k < folded
                              ? convert<compute>(i + PACK <= folded ? e[k] : value_at(a, base + i + k))
                              : lowest;
                largest = op_maximum<compute>(largest, x[j][k]);
            }
        }
        largest = row_maximum(largest);
        compute sum = 0;
#pragma unroll
        for (int j = 0; j < ITEMS / PACK; j++)
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                const index i = (j * THREADS + lane) * PACK + k;
                x[j][k] -= largest;
                const compute power = exponential(x[j][k]);
                if (i < folded)
                    sum += power;
                if (!IS_LOG)
                    x[j][k] = power;
            }
        const double total = row_sum((double)sum);
        const compute logarithm = IS_LOG ? (compute)log(total) : 0;
#pragma unroll
        for (int j = 0; j < ITEMS / PACK; j++) {
            const index i = (j * THREADS + lane) * PACK;
            pack<result_type, PACK> y;
#pragma unroll
            for (int k = 0; k < PACK; k++)
                y.item[k] = finish(x[j][k], x[j][k], total, logarithm);
            if (i + PACK <= folded)
                *(pack<result_type, PACK> *)(out + i) = y;
            else
                for (int k = 0; k < PACK && i + k < folded; k++)
                    out[i + k] = y.item[k];
        }
        return;
    }
    compute largest = lowest;
    double sum = 0;
    for (index i = lane; i < folded; i += THREADS) {
        const compute x = convert<compute>(value_at(a, base + i));
        const compute before = largest;
        largest = op_maximum<compute>(largest, x);
        if (largest != before && before != lowest)
            sum *= (double)exponential(before - largest);
        sum += (double)exponential(x - largest);
    }
    const compute top = row_maximum(largest);
    const double total = row_sum(largest == lowest && top != lowest ? 0 : sum * (double)exponential(largest - top));
    const compute logarithm = IS_LOG ? (compute)log(total) : 0;
    for (index i = lane; i < folded; i += THREADS) {
        const compute shifted = convert<compute>(value_at(a, base + i)) - top;
        out[i] = finish(shifted, IS_LOG ? 0 : exponential(shifted), total, logarithm);
    }
}

#ifdef SOFTMAX_ROWS
extern "C" __global__ void __launch_bounds__(THREADS) NAME(const __grid_constant__ arguments a)
{
    row_softmax(a, blockIdx.x, threadIdx.x);
}
#else
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    const index row = (index)blockIdx.x * 8 + threadIdx.x / 32;
    if (row < (index)a.kept)
        row_softmax(a, row, threadIdx.x % 32);
}
#endif
