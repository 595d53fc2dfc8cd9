/*
 * reduce.cu: sums over a block with shared memory and shuffles, scans, and votes.
 */
__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* One sum for each block of 256 threads. */
extern "C" __global__ void __launch_bounds__(256) block_sum(const float *from, float *sums, int n)
{
    __shared__ float partial[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = warp_sum(i < n ? from[i] : 0.0f);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < 8 ? partial[threadIdx.x] : 0.0f;
        v = warp_sum(v);
        if (threadIdx.x == 0)
            sums[blockIdx.x] = v;
    }
}

/* The inclusive scan of one block of any size up to 1024, by doubling distances. */
extern "C" __global__ void block_scan(const int *from, int *to, int n)
{
    __shared__ int values[2][1024];
    int t = threadIdx.x, now = 0;
    values[0][t] = t < n ? from[t] : 0;
    __syncthreads();
    for (int distance = 1; distance < blockDim.x; distance *= 2) {
        values[1 - now][t] = values[now][t] + (t >= distance ? values[now][t - distance] : 0);
        now = 1 - now;
        __syncthreads();
    }
    if (t < n)
        to[t] = values[now][t];
}

/* The inclusive sum over 128 threads, by warps; every thread takes part in it. */
__device__ int scan128(int v)
{
    __shared__ int totals[4];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int distance = 1; distance < 32; distance *= 2) {
        int other = __shfl_up_sync(0xffffffffu, v, distance);
        if (lane >= distance)
            v += other;
    }
    if (lane == 31)
        totals[warp] = v;
    __syncthreads();
    for (int w = 0; w < warp; w++)
        v += totals[w];
    return v;
}

/*
 * A scan of any length in one pass, 128 elements a block: a block adds what its predecessors give,
 * and looks back until it finds one that knows everything before it. Blocks draw tickets, so that a
 * predecessor has always started. states: 0 nothing, 1 its own sum, 2 all up to its end.
 */
extern "C" __global__ void __launch_bounds__(128)
    look_back_scan(const int *from, int *to, int n, unsigned *ticket, volatile int *states,
                   volatile int *own, volatile int *upto)
{
    __shared__ unsigned block;
    __shared__ int before, total;
    if (threadIdx.x == 0)
        block = atomicAdd(ticket, 1u);
    __syncthreads();
    int i = (int)(block * 128 + threadIdx.x);
    int v = scan128(i < n ? from[i] : 0);
    if (threadIdx.x == 127)
        total = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        own[block] = total;
        __threadfence();
        states[block] = 1;
        int sum = 0;
        for (int b = (int)block - 1; b >= 0; b--) {
            int state;
            while ((state = states[b]) == 0)
                ;
            __threadfence();
            sum += state == 2 ? upto[b] : own[b];
            if (state == 2)
                break;
        }
        upto[block] = sum + total;
        __threadfence();
        states[block] = 2;
        before = sum;
    }
    __syncthreads();
    if (i < n)
        to[i] = v + before;
}

/* What each of the warp operations gives, 16 numbers a thread. */
extern "C" __global__ void warp_operations(const int *from, int *to, int n)
{
    int t = threadIdx.x;
    unsigned mask = __ballot_sync(0xffffffffu, t < n);
    if (t >= n)
        return;
    int v = from[t], *out = to + 16 * t, all;
    out[0] = __shfl_sync(mask, v, 0);
    out[1] = __shfl_up_sync(mask, v, 1);
    out[2] = (t & 31) + 1 < 32 && t + 1 < n ? v : 0;
    out[3] = __shfl_sync(mask, v, (t & 31) & ~3);
    out[4] = (int)__ballot_sync(mask, v & 1);
    out[5] = __any_sync(mask, v == 3);
    out[6] = __all_sync(mask, v >= 0);
    out[7] = (int)__match_any_sync(mask, v & 3);
    out[8] = (int)__match_all_sync(mask, v, &all) | all;
    out[9] = __reduce_add_sync(mask, v);
    out[10] = __reduce_min_sync(mask, v - 5);
    out[11] = __reduce_max_sync(mask, v - 5);
    out[12] = (int)__reduce_or_sync(mask, (unsigned)v);
    __syncwarp(mask);
    out[13] = (int)(__shfl_sync(mask, (long long)v << 33, 0) >> 33);
    out[14] = (int)__shfl_sync(mask, (double)v, 0);
    out[15] = (int)__shfl_sync(mask, (float)v, 0, 8);
}

extern "C" __global__ void barrier_votes(int *to)
{
    int t = threadIdx.x;
    int count = __syncthreads_count(t % 3 == 0);
    int all = __syncthreads_and(t < 1000);
    int any = __syncthreads_or(t == 7);
    if (t == 0) {
        to[0] = count;
        to[1] = all;
        to[2] = any;
    }
}

/* Lanes that go different ways meet their own group only. */
extern "C" __global__ void divergent_groups(int *to)
{
    int t = threadIdx.x, v = t;
    if (t % 2 == 0) {
        for (int step = 2; step < 32; step *= 2)
            v += __shfl_xor_sync(0x55555555u, v, step);
    } else {
        v = __shfl_sync(0xaaaaaaaau, v, 31);
    }
    __syncwarp();
    to[t] = v;
}
