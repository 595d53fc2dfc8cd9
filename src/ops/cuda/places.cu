/*
 * places.cu: where a mask is true, in row-major order.
 *
 * Behind elements.cu. Defined before: NAME, and STEP:
 *
 *     0   each block counts the true bytes of its part
 *     1   one block turns the counts into how many there are before each part; behind the last: all
 *     2   each block writes the places of its part, at an offset that it knows by now
 *
 * So the order does not depend on which block comes first. A place is the sum of coordinates times strides, or a row
 * of coordinates.
 */
struct arguments {
    const uint8 *bytes;
    int64 length, parts;
    int64 *counts; /* parts + 1 */
    int64 *out;
    int dimensions, is_coordinates;
    int64 sizes[16], strides[16];
};

enum { EACH = 16, PART = 256 * EACH };

/* Which of the bytes of a thread are true; none behind the end. */
ELEMENT unsigned truth(const arguments &a, int64 begin)
{
    unsigned found = 0;
    if (begin + EACH <= a.length && ((uint64)(a.bytes + begin) & 7) == 0) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint64 word = ((const uint64 *)(a.bytes + begin))[half];
#pragma unroll
            for (int i = 0; i < 8; i++)
                found |= (word >> 8 * i & 0xff) != 0 ? 1u << (8 * half + i) : 0;
        }
        return found;
    }
    for (int i = 0; i < EACH && begin + i < a.length; i++)
        found |= a.bytes[begin + i] != 0 ? 1u << i : 0;
    return found;
}

/* The sum over the threads of a block before this one, and over all. */
ELEMENT int64 block_before(int64 own, int64 &all)
{
    __shared__ int64 warps[32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int64 sum = own;
#pragma unroll
    for (int width = 1; width < 32; width *= 2) {
        const int64 left = __shfl_up_sync(0xffffffffu, sum, width);
        sum += lane >= width ? left : 0;
    }
    __syncthreads(); /* of a call before, everybody has read */
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    int64 before = 0;
    all = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++) {
        before += i < warp ? warps[i] : 0;
        all += warps[i];
    }
    return before + sum - own;
}

#if STEP == 0
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    int64 all;
    const int64 begin = (int64)blockIdx.x * PART + threadIdx.x * EACH;
    block_before(__popc(truth(a, begin)), all);
    if (threadIdx.x == 0)
        a.counts[blockIdx.x] = all;
}
#elif STEP == 1
extern "C" __global__ void __launch_bounds__(1024) NAME(const __grid_constant__ arguments a)
{
    int64 carried = 0;
    for (int64 from = 0; from < a.parts; from += blockDim.x) {
        const int64 i = from + threadIdx.x;
        const int64 own = i < a.parts ? a.counts[i] : 0;
        int64 all;
        const int64 before = block_before(own, all);
        if (i < a.parts)
            a.counts[i] = carried + before;
        carried += all;
    }
    if (threadIdx.x == 0)
        a.counts[a.parts] = carried;
}
#else
ELEMENT void place_write(const arguments &a, int64 number, int64 at)
{
    int64 place = 0;
    for (int d = a.dimensions - 1; d >= 0; d--) {
        const int64 above = d > 0 ? number / a.sizes[d] : 0;
        const int64 own = number - above * a.sizes[d];
        if (a.is_coordinates)
            a.out[at * a.dimensions + d] = own;
        place += own * a.strides[d];
        number = above;
    }
    if (!a.is_coordinates)
        a.out[at] = place;
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    int64 all;
    const int64 begin = (int64)blockIdx.x * PART + threadIdx.x * EACH;
    const unsigned found = truth(a, begin);
    int64 at = a.counts[blockIdx.x] + block_before(__popc(found), all);
    for (unsigned left = found; left != 0; left &= left - 1)
        if (at < a.counts[a.parts]) /* whatever others write meanwhile */
            place_write(a, begin + __ffs((int)left) - 1, at++);
}
#endif
