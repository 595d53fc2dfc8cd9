/*
 * interpret_list.cu: reduces the values of an entry of a list program, which lie in memory, as far as blocks do: tier 0. Goes
 * behind reductions.cu, and adds in the order of list.cu, whose LIST_JOIN joins the blocks. Before it NAME and REDUCTION are
 * defined.
 */
struct arguments {
    const double *values;
    int64 count, pack;
    int64 stretch; /* elements of a block */
    double *partial;
};

/* The threads of a block join; the first has the result. */
ELEMENT double block_reduce(double x)
{
    __shared__ double warps[8];
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x = REDUCTION::join(x, (double)__shfl_down_sync(0xffffffffu, x, width));
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    for (int k = 1; k < 8 && threadIdx.x == 0; k++)
        x = REDUCTION::join(x, warps[k]);
    return x;
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 begin = (int64)blockIdx.x * a.stretch;
    const int64 end = begin + a.stretch < a.count ? begin + a.stretch : a.count;
    double x = REDUCTION::start<double>();
    for (int64 i = begin + threadIdx.x * a.pack; i < end; i += 256 * a.pack)
        for (int64 k = i; k < i + a.pack && k < end; k++)
            x = REDUCTION::join(x, a.values[k]);
    x = block_reduce(x);
    if (threadIdx.x == 0)
        a.partial[blockIdx.x] = x;
}
