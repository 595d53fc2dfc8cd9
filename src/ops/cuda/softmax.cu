/*
 * softmax.cu: softmax and its logarithm along rows, in one kernel. Goes behind the generated text, which has defined
 *
 *   NAME                    the kernel's
 *   SOFTMAX_ROWS            a block for each row; or SOFTMAX_SHORT: a warp for each
 *   IS_LOG                  1: the logarithm
 *   THREADS                 of a block
 *   BLOCKS                  that a multiprocessor should hold
 *   AT_ONCE                 rows that a block, or a warp, has in registers at the same time
 *   IS_STREAMING            1: a block goes from row to row, and loads one ahead
 *   PACK                    elements that are loaded and stored at once; it divides the length of a row
 *   STEPS                   packs of a row that a thread keeps in registers; 0: the row is read twice
 *   element_type, result_type
 *   compute                 float or double
 *   values_at(a, i, e)      PACK values, from element i on, which is a multiple of PACK
 *
 * A row in registers is read once and written once: the floor is that of a copy. What keeps a block from it are the
 * two waits for all of its threads, in which its loads have come and its stores have not begun, so others must have
 * theirs in flight then: several blocks on a multiprocessor, or the next row of the same block.
 *
 * Sums are those of the threads' partial sums, joined in a tree, in double. Their order follows from PACK and the
 * threads that share a row, and from nothing else. NaN in a row makes all of it NaN by itself: the largest element
 * need not know of it. Nor need what is -infinity: it is 0, but where all are, and that is NaN.
 */
#ifdef SOFTMAX_ROWS
#define LANES THREADS
#else
#define LANES 32
#endif
#define WARPS (LANES / 32)

ELEMENT compute exponential(compute x) { return op_exp<compute>(x); }
ELEMENT float larger(float x, float y) { return fmaxf(x, y); }
ELEMENT double larger(double x, double y) { return fmax(x, y); }

/* All threads of a row get the result. What is in shared memory is read before the next wait of the other function, so
 * it may be written again after that. */
ELEMENT compute row_maximum(compute x)
{
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, width));
#ifdef SOFTMAX_ROWS
    __shared__ __align__(16) compute warps[WARPS];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    compute y[4];
#pragma unroll
    for (int k = 0; k < WARPS; k++)
        y[k % 4] = k < 4 ? warps[k] : larger(y[k % 4], warps[k]);
    x = larger(larger(y[0], y[1]), larger(y[2], y[3]));
#endif
    return x;
}

ELEMENT double row_sum(double x)
{
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, width);
#ifdef SOFTMAX_ROWS
    __shared__ __align__(16) double warps[WARPS];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    double y[4];
#pragma unroll
    for (int k = 0; k < WARPS; k++)
        y[k % 4] = k < 4 ? warps[k] : y[k % 4] + warps[k];
    x = (y[0] + y[1]) + (y[2] + y[3]);
#endif
    return x;
}

ELEMENT compute lowest() { return -(compute)1 / (compute)0; }

#if STEPS > 0
/* The part of a row that a thread has: packs, LANES apart. Only the last of them can be behind the row's end. */
struct part {
    element_type item[STEPS][PACK];
};

ELEMENT void part_load(const arguments &a, index row, index lane, part &part)
{
    const index folded = (index)a.folded, base = row * folded;
#pragma unroll
    for (int j = 0; j < STEPS; j++) {
        const index i = (j * LANES + lane) * PACK;
        if (j < STEPS - 1 || i < folded)
            values_at(a, base + i, part.item[j]);
    }
}

ELEMENT void part_finish(const arguments &a, index row, index lane, const part &part)
{
    const bool has_last = ((STEPS - 1) * LANES + lane) * PACK < (index)a.folded;
    compute x[STEPS][PACK], largest = lowest(), sum = 0;
#pragma unroll
    for (int j = 0; j < STEPS; j++)
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            x[j][k] = j < STEPS - 1 || has_last ? convert<compute>(part.item[j][k]) : lowest();
            largest = larger(largest, x[j][k]);
        }
    largest = row_maximum(largest);
#pragma unroll
    for (int j = 0; j < STEPS; j++)
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            x[j][k] -= largest;
            const compute power = exponential(x[j][k]);
            sum += power;
            if (!IS_LOG)
                x[j][k] = power;
        }
    const double total = row_sum((double)sum);
    const compute factor = IS_LOG ? (compute)log(total) : (compute)(1 / total);
    result_type *out = (result_type *)a.result + row * (index)a.folded;
#pragma unroll
    for (int j = 0; j < STEPS; j++) {
        pack<result_type, PACK> y;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            y.item[k] = convert<result_type>(IS_LOG ? x[j][k] - factor : x[j][k] * factor);
        if (j < STEPS - 1 || has_last)
            *(pack<result_type, PACK> *)(out + (j * LANES + lane) * PACK) = y;
    }
}

/* The rows of a block, or of a warp: `row` is the first, and the next ones are `stride` apart. */
ELEMENT void rows_softmax(const arguments &a, index row, index stride, index lane)
{
    const index kept = (index)a.kept;
#if IS_STREAMING
    part next;
    if (row < kept)
        part_load(a, row, lane, next);
    while (row < kept) {
        const part now = next;
        if (row + stride < kept)
            part_load(a, row + stride, lane, next);
        part_finish(a, row, lane, now);
        row += stride;
    }
#else
    part parts[AT_ONCE];
#pragma unroll
    for (int r = 0; r < AT_ONCE; r++)
        if (row + r * stride < kept)
            part_load(a, row + r * stride, lane, parts[r]);
#pragma unroll
    for (int r = 0; r < AT_ONCE; r++)
        if (row + r * stride < kept)
            part_finish(a, row + r * stride, lane, parts[r]);
#endif
}
#else
#define TOGETHER (PACK >= 8 ? 2 : PACK >= 2 ? 4 : 8) /* packs whose loads are in flight */

ELEMENT void rows_softmax(const arguments &a, index row, index stride, index lane)
{
    const index folded = (index)a.folded, base = row * folded, step = LANES * PACK;
    result_type *out = (result_type *)a.result + base;
    compute largest = lowest();
    double sum = 0;
    for (index i = lane * PACK; i < folded; i += step * TOGETHER) {
        element_type e[TOGETHER][PACK];
        compute x[TOGETHER][PACK], top = largest, part = 0;
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
            if (i + u * step < folded)
                values_at(a, base + i + u * step, e[u]);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                x[u][k] = i + u * step < folded ? convert<compute>(e[u][k]) : lowest();
                top = larger(top, x[u][k]);
            }
        const compute shift = top == lowest() ? (compute)0 : top;
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
#pragma unroll
            for (int k = 0; k < PACK; k++)
                part += exponential(x[u][k] - shift);
        if (top != largest)
            sum *= (double)exponential(largest - top);
        sum += (double)part;
        largest = top;
    }
    const compute top = row_maximum(largest);
    const double total = row_sum(largest == lowest() ? sum : sum * (double)exponential(largest - top));
    const compute factor = IS_LOG ? (compute)log(total) : (compute)(1 / total);
    for (index i = lane * PACK; i < folded; i += step * TOGETHER) {
        element_type e[TOGETHER][PACK];
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
            if (i + u * step < folded)
                values_at(a, base + i + u * step, e[u]);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            pack<result_type, PACK> y;
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                const compute shifted = convert<compute>(e[u][k]) - top;
                y.item[k] = convert<result_type>(IS_LOG ? shifted - factor : exponential(shifted) * factor);
            }
            if (i + u * step < folded)
                *(pack<result_type, PACK> *)(out + i + u * step) = y;
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAME(const __grid_constant__ arguments a)
{
#ifdef SOFTMAX_ROWS
    rows_softmax(a, (index)blockIdx.x * (IS_STREAMING ? 1 : AT_ONCE), IS_STREAMING ? gridDim.x : 1, threadIdx.x);
#else
    const index warp = (index)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    rows_softmax(a, warp * (IS_STREAMING ? 1 : AT_ONCE), IS_STREAMING ? gridDim.x * (THREADS / 32) : 1,
                 threadIdx.x % 32);
#endif
}
