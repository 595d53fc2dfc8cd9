/*
 * matmul.cu: matrix products, c = a b for each index of a batch, of any type and strides.
 *
 * Goes behind elements.cu and a generated text (cuda_product.c), which has defined
 *
 *   element             the type of the elements
 *   accumulator         in which products are summed
 *   ADD(s, x)           s + x, of accumulators
 *   SUM(s, x, y)        s + x y
 *   RESULT(s)           an accumulator as it goes to memory
 *   EDGE                of tiles: 64 or 128; 0 for a kernel without
 *   DIMENSIONS          of a batch, at the most
 *
 * With tiles, a block of 256 threads computes EDGE x EDGE elements of c at a time. Of a and b it brings 16 columns and
 * rows at a time into shared memory, already as accumulators, while it multiplies those before. A thread has 4 x 4
 * elements of each quarter of 64 x 64. Tiles are taken in groups of 8 rows of them, so that blocks that run together
 * share what they read. Bounds are looked at where memory is read and written; what lies outside is 0.
 *
 * Without, a block computes one element at a time, each thread every 256th product of it: for vectors, and for results
 * of few elements, where tiles would leave most of a GPU idle.
 *
 * For integers, and where there is no cuBLASLt.
 */
typedef memory<element>::type memory_type;

struct arguments {
    const memory_type *a, *b;
    memory_type *c;
    int64 rows, columns, inner;
    int64 a_row, a_column, b_row, b_column, c_row, c_column; /* strides */
    int64 batch_count, batch_ndim;
    int64 sizes[DIMENSIONS], a_steps[DIMENSIONS], b_steps[DIMENSIONS], c_steps[DIMENSIONS];
};

/* Where the matrices of one index of the batch begin. */
ELEMENT void batch_seek(const arguments &g, int64 batch, const memory_type *&a, const memory_type *&b, memory_type *&c)
{
    a = g.a;
    b = g.b;
    c = g.c;
    for (int d = (int)g.batch_ndim - 1; d >= 0; d--) {
        const int64 step = batch % g.sizes[d];
        batch /= g.sizes[d];
        a += step * g.a_steps[d];
        b += step * g.b_steps[d];
        c += step * g.c_steps[d];
    }
}

#if EDGE == 0

extern "C" __global__ void __launch_bounds__(256) matmul_kernel(const __grid_constant__ arguments g)
{
    kernel_begin();
    __shared__ accumulator warps[8];
    const int64 size = g.rows * g.columns;
    for (int64 at = blockIdx.x; at < g.batch_count * size; at += gridDim.x) {
        const int64 row = at % size / g.columns, column = at % g.columns;
        const memory_type *a, *b;
        memory_type *c;
        batch_seek(g, at / size, a, b, c);
        a += row * g.a_row;
        b += column * g.b_column;
        accumulator sum = 0;
#pragma unroll 4
        for (int64 k = threadIdx.x; k < g.inner; k += 256)
            sum = SUM(sum, convert<accumulator>(loaded<element>(a[k * g.a_column])),
                      convert<accumulator>(loaded<element>(b[k * g.b_row])));
#pragma unroll
        for (int width = 16; width > 0; width /= 2)
            sum = ADD(sum, __shfl_down_sync(0xffffffffu, sum, width));
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < 8; i++)
                sum = ADD(sum, warps[i]);
            c[row * g.c_row + column * g.c_column] = RESULT(sum);
        }
        __syncthreads();
    }
}

#else

enum {
    DEEP = 16,
    PER = EDGE / 16,           /* rows, and columns, of a thread */
    LOADS = EDGE * DEEP / 256, /* elements of a tile that a thread brings */
    GROUP = 8,
};

/* A tile of an operand: `line` is a row of a, or a column of b, and `depth` the index that is summed over. */
typedef accumulator tile[DEEP][EDGE + 4];

/* What a thread brings of an operand's tiles: elements one `spacing` apart. Threads side by side read side by side. */
struct share {
    const memory_type *at;
    int64 spacing, advance; /* from an element to the thread's next, and to the next tile's */
    int line, depth, line_step, depth_step;
};

ELEMENT share share_make(const memory_type *from, int64 line_stride, int64 depth_stride)
{
    const int t = threadIdx.x;
    const bool is_deep = depth_stride == 1 && line_stride != 1;
    share s;
    s.line = is_deep ? t / DEEP : t % EDGE;
    s.depth = is_deep ? t % DEEP : t / EDGE;
    s.line_step = is_deep ? 256 / DEEP : 0;
    s.depth_step = is_deep ? 0 : 256 / EDGE;
    s.at = from + s.line * line_stride + s.depth * depth_stride;
    s.spacing = s.line_step * line_stride + s.depth_step * depth_stride;
    s.advance = DEEP * depth_stride;
    return s;
}

/* Reads the share of the next tile, which has so many lines and is so deep. */
ELEMENT void share_bring(share &s, int lines, int deep, accumulator *brought)
{
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const bool is_inside = s.line + i * s.line_step < lines && s.depth + i * s.depth_step < deep;
        brought[i] = is_inside ? convert<accumulator>(loaded<element>(s.at[i * s.spacing])) : (accumulator)0;
    }
    s.at += s.advance;
}

ELEMENT void share_put(const share &s, const accumulator *brought, tile &to)
{
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        to[s.depth + i * s.depth_step][s.line + i * s.line_step] = brought[i];
}

/* Which line of a tile is the thread's i-th. */
ELEMENT int line_of(int place, int i)
{
    return i / 4 * 64 + place * 4 + i % 4;
}

ELEMENT int least(int64 x, int most)
{
    return x < most ? (int)x : most;
}

ELEMENT void tile_multiply(const arguments &g, const memory_type *a, const memory_type *b, memory_type *c, int rows,
                           int columns, tile &a_tile, tile &b_tile)
{
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    share a_share = share_make(a, g.a_row, g.a_column), b_share = share_make(b, g.b_column, g.b_row);
    accumulator sums[PER][PER], a_brought[LOADS], b_brought[LOADS];
#pragma unroll
    for (int i = 0; i < PER; i++)
#pragma unroll
        for (int j = 0; j < PER; j++)
            sums[i][j] = 0;
    share_bring(a_share, rows, least(g.inner, DEEP), a_brought);
    share_bring(b_share, columns, least(g.inner, DEEP), b_brought);
    for (int64 done = 0; done < g.inner; done += DEEP) {
        share_put(a_share, a_brought, a_tile);
        share_put(b_share, b_brought, b_tile);
        __syncthreads();
        if (done + DEEP < g.inner) {
            share_bring(a_share, rows, least(g.inner - done - DEEP, DEEP), a_brought);
            share_bring(b_share, columns, least(g.inner - done - DEEP, DEEP), b_brought);
        }
#pragma unroll 8
        for (int k = 0; k < DEEP; k++) {
            accumulator left[PER], right[PER];
#pragma unroll
            for (int i = 0; i < PER; i++) {
                left[i] = a_tile[k][line_of(y, i)];
                right[i] = b_tile[k][line_of(x, i)];
            }
#pragma unroll
            for (int i = 0; i < PER; i++)
#pragma unroll
                for (int j = 0; j < PER; j++)
                    sums[i][j] = SUM(sums[i][j], left[i], right[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < PER; i++)
#pragma unroll
        for (int j = 0; j < PER; j++)
            if (line_of(y, i) < rows && line_of(x, j) < columns)
                c[line_of(y, i) * g.c_row + line_of(x, j) * g.c_column] = RESULT(sums[i][j]);
}

extern "C" __global__ void __launch_bounds__(256, 2) matmul_kernel(const __grid_constant__ arguments g)
{
    kernel_begin();
    __shared__ __align__(16) tile a_tile;
    __shared__ __align__(16) tile b_tile;
    const int64 down = (g.rows + EDGE - 1) / EDGE, along = (g.columns + EDGE - 1) / EDGE;
    for (int64 at = blockIdx.x; at < g.batch_count * down * along; at += gridDim.x) {
        const int64 index = at % (down * along), first = index / (GROUP * along) * GROUP;
        const int64 high = least(down - first, GROUP), inside = index % (GROUP * along);
        const int64 row = (first + inside % high) * EDGE, column = inside / high * EDGE;
        const memory_type *a, *b;
        memory_type *c;
        batch_seek(g, at / (down * along), a, b, c);
        tile_multiply(g, a + row * g.a_row, b + column * g.b_column, c + row * g.c_row + column * g.c_column,
                      least(g.rows - row, EDGE), least(g.columns - column, EDGE), a_tile, b_tile);
    }
}

#endif
