/*
 * elementwise.cu: kernels without barriers.
 */
extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

/* Four elements a thread; n is a multiple of 4. */
extern "C" __global__ void __launch_bounds__(256) scale4(const float4 *from, float4 *to, float by,
                                                         int n4)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        float4 v = from[i];
        to[i] = make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
    }
}

struct layout {
    int ndim;
    long long shape[4], stride[4];
};

/* Any view of up to 4 dimensions, element by element, into a dense array. */
extern "C" __global__ void strided_copy(const float *from, float *to, layout view, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long rest = i, offset = 0;
    for (int d = view.ndim - 1; d >= 0; d--) {
        offset += rest % view.shape[d] * view.stride[d];
        rest /= view.shape[d];
    }
    to[i] = from[offset];
}

/* Float to 16 bits and back, for every pattern. */
extern "C" __global__ void half_round_trip(unsigned short *half, unsigned short *bfloat16,
                                           float *half_values, float *bfloat16_values)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 65536)
        return;
    half_values[i] = gn_half_to_float((unsigned short)i);
    bfloat16_values[i] = gn_bfloat16_to_float((unsigned short)i);
    half[i] = gn_float_to_half(half_values[i]);
    bfloat16[i] = gn_float_to_bfloat16(bfloat16_values[i]);
}

extern "C" __global__ void to_half(const float *from, unsigned short *half,
                                   unsigned short *bfloat16, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        half[i] = gn_float_to_half(from[i]);
        bfloat16[i] = gn_float_to_bfloat16(from[i]);
    }
}

/* The three dimensions of grid and block: each thread counts itself at its place. */
extern "C" __global__ void count_threads(unsigned *counts)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    atomicAdd(&counts[block * (blockDim.x * blockDim.y * blockDim.z) + thread], 1u + block);
}

/* A namespace, a C++ name, a device function, a constant table and a device variable. */
namespace outer {
__constant__ float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};
__device__ int offset = 3;
__device__ float look_up(int i)
{
    return table[i & 3];
}
namespace inner {
__global__ void named(float *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = look_up(i) + (float)offset;
}
} // namespace inner
} // namespace outer
