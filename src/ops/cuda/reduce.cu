/*
 * reduce.cu: reductions. Goes behind the generated text and reductions.cu. The text has defined
 *
 *   NAME                    the kernel's
 *   REDUCE_ROWS, REDUCE_SHORT or REDUCE_COLUMNS
 *   PACK                    elements that are loaded at once
 *   TOGETHER                packs whose loads are in flight before the first is reduced
 *   accumulator, element_type
 *   REDUCTION               one of the structs of reductions.cu
 *   FINISH(at, x)           stores an accumulator as result number `at`
 *   value_at(a, i)          the value of element i, in the order of the program's dimensions
 *   values_at(a, i, e)      PACK of them, from i on, which is a multiple of PACK
 *
 * Every result is reduced in an order that follows from its shape and the number of its parts alone: packs are joined in
 * their order, however many of them are in flight. Where several blocks reduce one result, each leaves an accumulator
 * behind, and the last one to finish (block_join.cu) joins those, in their order.
 */
/* The first of so many threads gets the result. */
ELEMENT accumulator warp_reduce(accumulator x, int lanes)
{
#pragma unroll
    for (int width = lanes / 2; width > 0; width /= 2)
        x = REDUCTION::join(x, (accumulator)__shfl_down_sync(0xffffffffu, x, width));
    return x;
}

/* What thread number `lane` of `lanes` makes of the elements from `begin` to before `end`. */
ELEMENT accumulator row_reduce(const arguments &a, index begin, index end, index lane, index lanes)
{
    accumulator x[PACK > 4 ? PACK : 4];
    const int width = PACK > 4 ? PACK : 4;
#pragma unroll
    for (int k = 0; k < width; k++)
        x[k] = REDUCTION::start<accumulator>();
    index i = begin + lane * PACK;
    const index step = lanes * PACK;
#if PACK > 1
    element_type e[TOGETHER][PACK];
    for (; i + (TOGETHER - 1) * step + PACK <= end; i += TOGETHER * step) {
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
            values_at(a, i + u * step, e[u]);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
#pragma unroll
            for (int k = 0; k < PACK; k++)
                x[k] = REDUCTION::join(x[k], convert<accumulator>(e[u][k]));
    }
#pragma unroll
    for (int u = 0; u < TOGETHER - 1; u++)
        if (i + u * step + PACK <= end)
            values_at(a, i + u * step, e[u]);
#pragma unroll
    for (int u = 0; u < TOGETHER - 1; u++)
        if (i + PACK <= end) {
#pragma unroll
            for (int k = 0; k < PACK; k++)
                x[k] = REDUCTION::join(x[k], convert<accumulator>(e[u][k]));
            i += step;
        }
#pragma unroll 1
    for (int k = 0; k < PACK && i + k < end; k++) /* one thread meets the rest of the row */
        x[0] = REDUCTION::join(x[0], convert<accumulator>(value_at(a, i + k)));
#else
    for (; i + 3 * step < end; i += 4 * step) {
        element_type e[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            e[k] = value_at(a, i + k * step);
#pragma unroll
        for (int k = 0; k < 4; k++)
            x[k] = REDUCTION::join(x[k], convert<accumulator>(e[k]));
    }
    for (; i < end; i += step)
        x[0] = REDUCTION::join(x[0], convert<accumulator>(value_at(a, i)));
#endif
#pragma unroll
    for (int half = width / 2; half > 0; half /= 2)
#pragma unroll
        for (int k = 0; k < half; k++)
            x[k] = REDUCTION::join(x[k], x[k + half]);
    return x[0];
}

#ifdef REDUCE_ROWS
/* The threads of a block join; the first has the result. Between two calls is a barrier, that of is_last(). */
ELEMENT accumulator block_reduce(accumulator x)
{
    __shared__ accumulator warps[8];
    x = warp_reduce(x, 32);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    for (int k = 1; k < 8 && threadIdx.x == 0; k++)
        x = REDUCTION::join(x, warps[k]);
    return x;
}

/* Block x: a row; block y: a part of it. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const index first = (index)blockIdx.y * (index)a.chunk, reduced = (index)a.reduced;
    const index last = first + (index)a.chunk < reduced ? first + (index)a.chunk : reduced;
    const index row = blockIdx.x;
    accumulator x = block_reduce(row_reduce(a, row * reduced + first, row * reduced + last, threadIdx.x, 256));
    if (a.parts == 1) {
        if (threadIdx.x == 0)
            FINISH(row, x);
        return;
    }
    accumulator *left = (accumulator *)a.partial + (int64)row * a.parts;
    if (threadIdx.x == 0)
        left[blockIdx.y] = x;
    if (!is_last((int)a.slot))
        return;
    x = REDUCTION::start<accumulator>();
    for (int64 k = threadIdx.x; k < a.parts; k += 256)
        x = REDUCTION::join(x, *(const volatile accumulator *)(left + k));
    x = block_reduce(x);
    if (threadIdx.x == 0)
        FINISH(row, x);
}
#endif

#ifdef REDUCE_SHORT
/* A warp for each row, or for several: a row has as many threads as it has packs, since joining with what an accumulator
 * starts as changes nothing. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const index reduced = (index)a.reduced;
    int shift = 5;
    while (shift > 0 && reduced <= (index)PACK << (shift - 1))
        shift--;
    const int lanes = 1 << shift;
    const index row = (index)blockIdx.x * (256 >> shift) + (threadIdx.x >> shift);
    const bool is_there = row < (index)a.kept;
    const index begin = is_there ? row * reduced : 0, end = is_there ? begin + reduced : 0;
    const accumulator x = warp_reduce(row_reduce(a, begin, end, threadIdx.x & (lanes - 1), lanes), lanes);
    if ((threadIdx.x & (lanes - 1)) == 0 && is_there)
        FINISH(row, x);
}
#endif

#ifdef REDUCE_COLUMNS
enum { PARTS_TOGETHER = 16 };

/* Block x: 32 packs of columns; block y: a part of the rows; thread y: every eighth of those. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ accumulator rows[8][32 * PACK];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const index kept = (index)a.kept, column = ((index)blockIdx.x * 32 + x) * PACK;
    const index first = (index)blockIdx.y * (index)a.chunk;
    const index last = first + (index)a.chunk < (index)a.reduced ? first + (index)a.chunk : (index)a.reduced;
    accumulator sums[PACK];
#pragma unroll
    for (int k = 0; k < PACK; k++)
        sums[k] = REDUCTION::start<accumulator>();
    if (column < kept) {
        index row = first + y;
        element_type e[TOGETHER][PACK];
        for (; row + 8 * (TOGETHER - 1) < last; row += 8 * TOGETHER) {
#pragma unroll
            for (int u = 0; u < TOGETHER; u++)
                values_at(a, (row + 8 * u) * kept + column, e[u]);
#pragma unroll
            for (int u = 0; u < TOGETHER; u++)
#pragma unroll
                for (int k = 0; k < PACK; k++)
                    sums[k] = REDUCTION::join(sums[k], convert<accumulator>(e[u][k]));
        }
#pragma unroll
        for (int u = 0; u < TOGETHER - 1; u++)
            if (row + 8 * u < last)
                values_at(a, (row + 8 * u) * kept + column, e[u]);
#pragma unroll
        for (int u = 0; u < TOGETHER - 1; u++)
#pragma unroll
            for (int k = 0; k < PACK; k++)
                if (row + 8 * u < last)
                    sums[k] = REDUCTION::join(sums[k], convert<accumulator>(e[u][k]));
    }
#pragma unroll
    for (int k = 0; k < PACK; k++)
        rows[y][x * PACK + k] = sums[k];
    __syncthreads();
    /* From here on a thread stands for one column, as far as there are threads for all. */
    accumulator *left = (accumulator *)a.partial;
    for (int c = threadIdx.x; c < 32 * PACK; c += 256) {
        const index at = (index)blockIdx.x * 32 * PACK + c;
        accumulator sum = rows[0][c];
        for (int k = 1; k < 8; k++)
            sum = REDUCTION::join(sum, rows[k][c]);
        if (at < kept && a.parts == 1)
            FINISH(at, sum);
        else if (at < kept)
            left[(int64)blockIdx.y * a.kept + at] = sum;
    }
    if (a.parts == 1 || !is_last((int)a.slot))
        return;
    for (int c = threadIdx.x; c < 32 * PACK; c += 256) {
        const index at = (index)blockIdx.x * 32 * PACK + c;
        if (at >= kept)
            continue;
        /* In the order of the parts, with many loads in flight: one by one they would take as long as all the rest. */
        const volatile accumulator *part = left + at;
        accumulator sum = REDUCTION::start<accumulator>();
        int64 k = 0;
        for (; k + PARTS_TOGETHER <= a.parts; k += PARTS_TOGETHER) {
            accumulator parts[PARTS_TOGETHER];
#pragma unroll
            for (int u = 0; u < PARTS_TOGETHER; u++)
                parts[u] = part[(k + u) * a.kept];
#pragma unroll
            for (int u = 0; u < PARTS_TOGETHER; u++)
                sum = REDUCTION::join(sum, parts[u]);
        }
        for (; k < a.parts; k++)
            sum = REDUCTION::join(sum, part[k * a.kept]);
        FINISH(at, sum);
    }
}
#endif
