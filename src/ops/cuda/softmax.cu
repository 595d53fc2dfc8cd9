/*
 * softmax.cu: softmax and its logarithm along rows, in one kernel. Goes behind the generated text, which has defined
 *
 *   NAME                    the kernel's
 *   THREADS                 of a block
 *   BLOCKS                  that a multiprocessor should hold: one loads while another waits for its threads
 *   LANES                   threads that share a row: all of a block, or some of a warp
 *   PACK                    elements that are loaded and stored at once
 *   IS_RAGGED               1: PACK does not divide the length of a row
 *   STEPS                   packs of a row that a thread keeps in registers; 0: the row is read twice
 *   IS_LOG                  1: the logarithm
 *   element_type, result_type
 *   compute                 float or double
 *   value_at(a, i)          the value of element i
 *   values_at(a, i, e)      PACK of them, from i on, which is a multiple of PACK
 *
 * A row in registers is read once and written once. On an H200, 4096 rows of 10,000 take 82 us in float32 and 44 us in
 * bfloat16: what a copy of them takes. 256 or 512 threads with some five loads each do best, and the compiler must know
 * BLOCKS, or it takes registers for fewer.
 *
 * A row that is ragged is seen with what lies before it up to a multiple of PACK, and behind it: those elements are not
 * read, and count as -infinity.
 *
 * Sums are those of the threads' partial sums, joined in a tree, in double. NaN in a row makes all of it NaN by itself:
 * the largest element need not know of it. -infinity is 0, but where a row has nothing else, and that is NaN.
 */
#define WARPS (LANES / 32)

ELEMENT compute exponential(compute x) { return op_exp<compute>(x); }
ELEMENT float larger(float x, float y) { return fmaxf(x, y); }
ELEMENT double larger(double x, double y) { return fmax(x, y); }
ELEMENT compute lowest() { return -(compute)1 / (compute)0; }

/* All threads of a row get the result. */
ELEMENT compute row_maximum(compute x)
{
#pragma unroll
    for (int width = LANES < 32 ? LANES / 2 : 16; width > 0; width /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, width));
#if LANES > 32
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
    for (int width = LANES < 32 ? LANES / 2 : 16; width > 0; width /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, width);
#if LANES > 32
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

/* ---- packs of a row from `base` to before `end`; is_sure: this one is known to be all in it ---- */

ELEMENT bool is_inside(index i, index base, index end)
{
    return i < end && (!IS_RAGGED || i >= base);
}

ELEMENT bool is_whole(index i, index base, index end)
{
    return IS_RAGGED ? i >= base && i + PACK <= end : i < end;
}

ELEMENT void pack_load(const arguments &a, index i, index base, index end, bool is_sure, element_type (&e)[PACK])
{
    if (is_sure || is_whole(i, base, end))
        values_at(a, i, e);
    else if (IS_RAGGED)
#pragma unroll
        for (int k = 0; k < PACK; k++)
            if (is_inside(i + k, base, end))
                e[k] = value_at(a, i + k);
}

ELEMENT compute value_of(element_type e, index i, index base, index end, bool is_sure)
{
    return is_sure || is_inside(i, base, end) ? convert<compute>(e) : lowest();
}

ELEMENT void pack_store(const arguments &a, index i, index base, index end, bool is_sure,
                        const pack<result_type, PACK> &y)
{
    result_type *out = (result_type *)a.result + i;
    if (is_sure || is_whole(i, base, end))
        *(pack<result_type, PACK> *)out = y;
    else if (IS_RAGGED)
#pragma unroll
        for (int k = 0; k < PACK; k++)
            if (is_inside(i + k, base, end))
                out[k] = y.item[k];
}

#if STEPS > 0
/* The first pack of a thread, and the last two, may be outside of a ragged row; of others only the last. Where a warp
 * has several rows, one may be empty. */
#define IS_SURE(j) (LANES >= 32 && (j) < STEPS - (IS_RAGGED ? 2 : 1) && ((j) > 0 || !IS_RAGGED))

/* A thread has packs that are LANES apart. */
ELEMENT void row_softmax(const arguments &a, index base, index end, index lane)
{
    const index first = (IS_RAGGED ? base - base % PACK : base) + lane * PACK, step = LANES * PACK;
    element_type e[STEPS][PACK];
    compute x[STEPS][PACK], largest = lowest(), sum = 0;
#pragma unroll
    for (int j = 0; j < STEPS; j++)
        pack_load(a, first + j * step, base, end, IS_SURE(j), e[j]);
#pragma unroll
    for (int j = 0; j < STEPS; j++)
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            x[j][k] = value_of(e[j][k], first + j * step + k, base, end, IS_SURE(j));
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
#pragma unroll
    for (int j = 0; j < STEPS; j++) {
        pack<result_type, PACK> y;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            y.item[k] = convert<result_type>(IS_LOG ? x[j][k] - factor : x[j][k] * factor);
        pack_store(a, first + j * step, base, end, IS_SURE(j), y);
    }
}
#else
#define TOGETHER (PACK >= 8 ? 2 : PACK >= 2 ? 4 : 8) /* packs whose loads are in flight */

ELEMENT void row_softmax(const arguments &a, index base, index end, index lane)
{
    const index first = (IS_RAGGED ? base - base % PACK : base) + lane * PACK, step = LANES * PACK;
    element_type e[TOGETHER][PACK];
    compute largest = lowest();
    double sum = 0;
    for (index i = first; i < end; i += step * TOGETHER) {
        compute x[TOGETHER][PACK], top = largest, part = 0;
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
            pack_load(a, i + u * step, base, end, false, e[u]);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                x[u][k] = value_of(e[u][k], i + u * step + k, base, end, false);
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
    for (index i = first; i < end; i += step * TOGETHER) {
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
            pack_load(a, i + u * step, base, end, false, e[u]);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            pack<result_type, PACK> y;
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                const compute shifted = convert<compute>(e[u][k]) - top;
                y.item[k] = convert<result_type>(IS_LOG ? shifted - factor : exponential(shifted) * factor);
            }
            pack_store(a, i + u * step, base, end, false, y);
        }
    }
}
#endif

/* All threads of a warp take part in its shuffles: those that have no row have an empty one. */
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const index row = (index)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, reduced = (index)a.reduced;
    const bool is_there = row < (index)a.kept;
    if (LANES >= 32 && !is_there)
        return;
    const index base = is_there ? row * reduced : 0;
    row_softmax(a, base, is_there ? base + reduced : 0, threadIdx.x % LANES);
}
