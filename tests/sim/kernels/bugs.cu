/*
 * bugs.cu: planted bugs, each found by the simulator by its name and line. The marks are read by
 * the test. All of it compiles, and only what says so is right.
 */
extern "C" __global__ void missing_barrier(float *to)
{
    __shared__ float values[128];
    values[threadIdx.x] = (float)threadIdx.x; // mark: first
    to[threadIdx.x] = values[127 - threadIdx.x]; // mark: missing_barrier
}

extern "C" __global__ void missing_warp_barrier(float *to)
{
    __shared__ float values[32];
    values[threadIdx.x] = (float)threadIdx.x; // mark: first_of_warp
    to[threadIdx.x] = values[31 - threadIdx.x]; // mark: missing_warp_barrier
}

/* Right: the shuffle orders the lanes of a warp. */
extern "C" __global__ void ordered_by_shuffle(float *to)
{
    __shared__ float values[32];
    values[threadIdx.x] = (float)threadIdx.x;
    __syncwarp();
    to[32 * blockIdx.x + threadIdx.x] = values[31 - threadIdx.x];
}

extern "C" __global__ void missing_second_barrier(float *to, int rounds)
{
    __shared__ float value;
    float sum = 0.0f;
    for (int i = 0; i < rounds; i++) {
        if (threadIdx.x == 64)
            value = (float)i; // mark: missing_second_barrier
        __syncthreads();
        sum += value;
    }
    to[threadIdx.x] = sum;
}

extern "C" __global__ void store_out_of_bounds(float *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        to[i] = 1.0f; // mark: store_out_of_bounds
}

extern "C" __global__ void read_null(const float *from, float *to)
{
    to[threadIdx.x] = from[threadIdx.x]; // mark: read_null
}

/* Wrong only if it is launched early. */
extern "C" __global__ void without_wait(float *to)
{
    __shared__ float value;
    value = 1.0f;
    *to = value; // mark: without_wait
}

extern "C" __global__ void misaligned(const float *from, double *to)
{
    to[0] = *(const double *)(from + 1); // mark: misaligned
}

extern "C" __global__ void shared_out_of_bounds(float *to)
{
    extern __shared__ float values[];
    values[threadIdx.x] = 1.0f; // mark: shared_out_of_bounds
    __syncthreads();
    to[threadIdx.x] = values[threadIdx.x];
}

extern "C" __global__ void shuffle_absent(int *to)
{
    int v = threadIdx.x;
    if (threadIdx.x < 16)
        v = __shfl_xor_sync(0xffffffffu, v, 1); // mark: shuffle_absent
    else
        __syncthreads(); // mark: elsewhere
    to[threadIdx.x] = v;
}

extern "C" __global__ void shuffle_ended(int *to)
{
    if (threadIdx.x >= 16)
        return;
    to[threadIdx.x] = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 4); // mark: shuffle_ended
}

extern "C" __global__ void shuffle_outside(int *to)
{
    if (threadIdx.x < 16)
        to[threadIdx.x] = __shfl_sync(0x0000ffffu, (int)threadIdx.x, 20); // mark: shuffle_outside
}

extern "C" __global__ void not_in_mask(int *to)
{
    to[threadIdx.x] = __any_sync(0x0000ffffu, 1); // mark: not_in_mask
}

extern "C" __global__ void divergent_barrier(int *to)
{
    if (threadIdx.x < 48)
        __syncthreads(); // mark: divergent_barrier
    else
        __syncthreads(); // mark: divergent_other
    to[threadIdx.x] = 1;
}

/* Right on the GPU since compute capability 7.0: threads that have ended count as arrived. */
extern "C" __global__ void ended_before_barrier(int *to)
{
    if (threadIdx.x >= 33)
        return;
    __syncthreads();
    to[threadIdx.x] = 1;
}

extern "C" __global__ void fails_assertion(int *to)
{
    assert(threadIdx.x < 5); // mark: fails_assertion
    to[threadIdx.x] = 1;
}

extern "C" __global__ void traps(int *to)
{
    if (threadIdx.x == 3)
        __trap(); // mark: traps
    to[threadIdx.x] = 1;
}

extern "C" __global__ void waits_for_ever(volatile int *flag)
{
    while (*flag == 0) // mark: waits_for_ever
        ;
}

/* Right: one thread of the block waits for another. */
extern "C" __global__ void waits_for_neighbour(volatile int *flag, int *to)
{
    if (threadIdx.x == 0)
        while (*flag == 0)
            ;
    else
        *flag = 1;
    to[threadIdx.x] = *flag;
}

/* Wrong: two blocks use one element. */
extern "C" __global__ void blocks_meet(float *to)
{
    to[blockIdx.x + threadIdx.x] = 1.0f; // mark: blocks_meet
}

/* Wrong: one block changes what another one has read, or will read. */
extern "C" __global__ void blocks_shift(float *to)
{
    const float next = to[threadIdx.x == 31 ? 32 * (blockIdx.x + 1) : 32 * blockIdx.x + threadIdx.x]; // mark: shift_read
    __syncthreads();
    to[32 * blockIdx.x + threadIdx.x] = next; // mark: blocks_shift
}

/*
 * Each block leaves its sum, and the last one adds these. Right with all of `steps`:
 * 1 a barrier, 2 a fence before the count, 4 a fence after it, 8 another barrier.
 */
extern "C" __global__ void last_adds(float *left, unsigned *count, float *to, int steps)
{
    __shared__ bool is_last;
    bool is_own_last = false;
    if (threadIdx.x == 33)
        left[blockIdx.x] = 1.0f; // mark: last_left
    if (steps & 1)
        __syncthreads();
    if (threadIdx.x == 0) {
        if (steps & 2)
            __threadfence();
        is_last = is_own_last = atomicAdd(count, 1u) == gridDim.x - 1;
        if (steps & 4)
            __threadfence();
        if (is_last)
            *count = 0;
    }
    if (steps & 8)
        __syncthreads();
    if (steps & 8 ? threadIdx.x == 34 && is_last : is_own_last) {
        float sum = 0.0f;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += left[i]; // mark: last_adds
        *to = sum;
    }
}
