/*
 * interpret_columns.cu: the sums of columns of each part of the rows, of values that lie in memory: tier 0. columns.cu adds the
 * parts. A group of rows is added in its order, then the groups, as in part_store() of rows.cu.
 */
struct arguments {
    const float *values; /* dense rows */
    int64 kept, columns;
    int64 part;   /* rows of a part */
    int64 groups; /* rows that a block has at a time: each adds every `groups`-th row */
    int64 sums;   /* of the program */
    float *partial; /* of this sum */
};

/* Block x: THREADS columns; block y: a part. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 column = (int64)blockIdx.x * 256 + threadIdx.x;
    if (column >= a.columns)
        return;
    for (int64 part = blockIdx.y; part * a.part < a.kept; part += gridDim.y) {
        const int64 begin = part * a.part, end = begin + a.part < a.kept ? begin + a.part : a.kept;
        float sum = 0;
        for (int64 g = 0; g < a.groups; g++) {
            float group = 0;
            for (int64 row = begin + g; row < end; row += a.groups)
                group += a.values[row * a.columns + column];
            sum = g == 0 ? group : sum + group;
        }
        a.partial[part * a.sums * a.columns + column] = sum;
    }
}
