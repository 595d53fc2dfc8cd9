/*
 * columns.cu: adds the sums that the parts of a row program have left behind: float [parts][sums][columns].
 *
 * Block x: 32 columns; block y: one of the sums; thread y: every eighth part, as doubles, which are then added in their
 * order. On an H200 the 256 parts of 2 sums of 4096 columns take about 3 us, at 2.8 TB/s out of the second-level cache.
 */
struct arguments {
    const float *partial;
    int64 parts, sums, columns;
    void *result[8];
    int64 kind[8]; /* of the results: 0 float32, 1 float16, 2 bfloat16; 3, 4: the same, by way of float32 */
};

enum { PARTS_TOGETHER = 8 };

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ double groups[8][32];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const int64 column = (int64)blockIdx.x * 32 + x, row = a.sums * a.columns;
    const float *from = a.partial + blockIdx.y * a.columns + column;
    double sum = 0;
    int64 part = y;
    for (; column < a.columns && part + 8 * (PARTS_TOGETHER - 1) < a.parts; part += 8 * PARTS_TOGETHER) {
        float loaded[PARTS_TOGETHER];
#pragma unroll
        for (int u = 0; u < PARTS_TOGETHER; u++)
            loaded[u] = from[(part + 8 * u) * row];
#pragma unroll
        for (int u = 0; u < PARTS_TOGETHER; u++)
            sum += loaded[u];
    }
    for (; column < a.columns && part < a.parts; part += 8)
        sum += from[part * row];
    groups[y][x] = sum;
    __syncthreads();
    if (y != 0 || column >= a.columns)
        return;
    for (int k = 1; k < 8; k++)
        sum += groups[k][x];
    void *result = a.result[blockIdx.y];
    const int64 kind = a.kind[blockIdx.y];
    if (kind > 2)
        sum = (float)sum;
    if (kind == 0)
        ((float *)result)[column] = (float)sum;
    else if (kind % 2 == 1)
        ((float16 *)result)[column] = convert<float16>(sum);
    else
        ((bfloat16 *)result)[column] = convert<bfloat16>(sum);
}
