/*
 * memory.cu: atomics, tiles in shared memory, and shared memory whose size the launch gives.
 */
extern "C" __global__ void histogram(const unsigned char *from, unsigned *counts, int n)
{
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[from[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (local[i] != 0)
            atomicAdd(&counts[i], local[i]);
}

#define TILE 16

/* C = A B, of sizes m x k and k x n, in any size. */
extern "C" __global__ void __launch_bounds__(TILE *TILE)
    matrix_product(const float *a, const float *b, float *c, int m, int n, int k)
{
    static __shared__ float as[TILE][TILE + 1];
    __shared__ float bs[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        int ak = first + (int)threadIdx.x, bk = first + (int)threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[row * k + ak] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = bk < k && column < n ? b[bk * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}

/* Reverses each block's part through dynamic shared memory. */
extern "C" __global__ void reverse_blocks(const float *from, float *to)
{
    GN_DYN_SHARED(float, buffer)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    buffer[threadIdx.x] = from[i];
    __syncthreads();
    to[i] = buffer[blockDim.x - 1 - threadIdx.x];
}

/* The same bytes under two types, as CUDA C has it. */
extern "C" __global__ void shared_two_types(const int *from, int *to)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    int *words = (int *)bytes;
    unsigned char *tail = bytes + sizeof(int) * blockDim.x;
    words[threadIdx.x] = from[threadIdx.x];
    tail[threadIdx.x] = (unsigned char)threadIdx.x;
    __syncthreads();
    int other = tail[blockDim.x - 1 - threadIdx.x];
    to[threadIdx.x] = words[other];
}

template <class T, int N> __global__ void add_constant(T *values, int n)
{
    __shared__ T staged[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    staged[threadIdx.x] = i < n ? values[i] : T(0);
    __syncthreads();
    if (i < n)
        values[i] = staged[threadIdx.x] + T(N);
}

extern "C" __global__ void atomic_kinds(int *i, unsigned *u, unsigned long long *l, float *f,
                                        double *d)
{
    int t = threadIdx.x;
    atomicAdd(&i[0], t);
    atomicSub(&i[1], t);
    atomicMin(&i[2], -t);
    atomicMax(&i[3], t);
    atomicAnd(&i[4], ~(1 << (t % 31)));
    atomicOr(&i[5], 1 << (t % 31));
    atomicXor(&i[6], t);
    atomicCAS(&i[7], t, t + 1);
    atomicExch(&i[8], 9);
    atomicInc(&u[0], 4u);
    atomicDec(&u[1], 4u);
    atomicAdd(&l[0], 1ull << 33);
    atomicMax(&l[1], (unsigned long long)t << 33);
    atomicAdd(&f[0], 0.5f);
    atomicAdd(&d[0], 0.25);
}
