/*
 * places.cu: where a mask is true, in row-major order, and the elements that are there.
 *
 * Behind elements.cu. Defined before: NAME; UNIT, bytes of an element; and STEP:
 *
 *     COUNT         each block counts the true bytes of its part, for itself and for the host
 *     PLACES        out[n] = where the n-th true byte is: the sum of its coordinates times strides
 *     COORDINATES   out[n] = a row of coordinates
 *     GET           other[n] = the element of the source that is there
 *     SET           that element = other[n]
 *
 * All but the first begin with how many there are in the parts before theirs. So the order does not depend on which
 * block comes first. A tile's true bytes are listed in shared memory: neighbouring threads write neighbours.
 */
#define COUNT 0
#define PLACES 1
#define COORDINATES 2
#define GET 3
#define SET 4

#define EACH 16           /* bytes of a thread at a time */
#define TILE (256 * EACH) /* of a block; cuda_mask.c has the same */

struct arguments {
    const uint8 *bytes;
    int64 length;
    int64 tiles;      /* of a part */
    unsigned *counts; /* of parts, */
    unsigned *host;   /* and the same in the host's memory */
    int64 total;
    int64 *out;
    char *source, *other;
    int64 dimensions, sizes[16], strides[16]; /* of the source: in bytes, for GET and SET */
};

template <int BYTES> struct unit_of {
    typedef uint64 type;
};
template <> struct unit_of<1> {
    typedef uint8 type;
};
template <> struct unit_of<2> {
    typedef unsigned short type;
};
template <> struct unit_of<4> {
    typedef unsigned type;
};
typedef unit_of<UNIT>::type unit;

/* Of 8 bytes, a bit for each that is not 0. */
ELEMENT unsigned truth_of(uint64 word)
{
    const uint64 low = 0x7f7f7f7f7f7f7f7full;
    const uint64 high = (((word & low) + low) | word) & ~low;
    return (unsigned)((high >> 7) * 0x0102040810204080ull >> 56);
}

/* Which of the bytes of a thread are true; none behind the end. */
ELEMENT unsigned truth(const arguments &a, int64 begin)
{
    if (begin + EACH <= a.length && ((uint64)(a.bytes + begin) & 15) == 0) {
        const pack<uint64, 2> words = *(const pack<uint64, 2> *)(a.bytes + begin);
        return truth_of(words.item[0]) | truth_of(words.item[1]) << 8;
    }
    unsigned found = 0;
    for (int i = 0; i < EACH && begin + i < a.length; i++)
        found |= a.bytes[begin + i] != 0 ? 1u << i : 0;
    return found;
}

/* The sum over the threads of a block before this one, and over all. Between two calls for one type is a barrier. */
template <class T> ELEMENT T block_before(T own, T &all)
{
    __shared__ T warps[8];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    T sum = own;
#pragma unroll
    for (int width = 1; width < 32; width *= 2) {
        const T left = __shfl_up_sync(0xffffffffu, sum, width);
        sum += lane >= width ? left : 0;
    }
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    T before = 0;
    all = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        before += i < warp ? warps[i] : 0;
        all += warps[i];
    }
    return before + sum - own;
}

#if STEP == COUNT
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 begin = (int64)blockIdx.x * a.tiles * TILE + threadIdx.x * EACH;
    unsigned own = 0, all;
#pragma unroll 4
    for (int64 tile = 0; tile < a.tiles; tile++)
        own += (unsigned)__popc(truth(a, begin + tile * TILE));
    block_before(own, all);
    if (threadIdx.x == 0)
        a.counts[blockIdx.x] = a.host[blockIdx.x] = all;
}
#else

/* The n-th true byte has this number. */
ELEMENT void place_use(const arguments &a, int64 n, int64 number)
{
    int64 place = 0;
    for (int d = (int)a.dimensions - 1; d >= 0; d--) {
        const int64 above = d > 0 ? number / a.sizes[d] : 0;
        const int64 own = number - above * a.sizes[d];
#if STEP == COORDINATES
        a.out[n * a.dimensions + d] = own;
#endif
        place += own * a.strides[d];
        number = above;
    }
#if STEP == PLACES
    a.out[n] = place;
#elif STEP == GET
    ((unit *)a.other)[n] = *(const unit *)(a.source + place);
#elif STEP == SET
    *(unit *)(a.source + place) = ((const unit *)a.other)[n];
#endif
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ unsigned short list[TILE];
    const int64 part = (int64)blockIdx.x * a.tiles * TILE;
    int64 own = 0, n;
    for (int i = (int)threadIdx.x; i < (int)blockIdx.x; i += 256)
        own += a.counts[i];
    block_before(own, n); /* before this part */
    for (int64 tile = 0; tile < a.tiles; tile++) {
        const int64 begin = part + tile * TILE;
        const unsigned found = truth(a, begin + threadIdx.x * EACH);
        unsigned all, at = block_before((unsigned)__popc(found), all);
        for (unsigned left = found; left != 0; left &= left - 1)
            list[at++] = (unsigned short)(threadIdx.x * EACH + __ffs((int)left) - 1);
        __syncthreads();
        for (unsigned i = threadIdx.x; i < all; i += 256)
            if (n + i < a.total) /* whatever others write meanwhile */
                place_use(a, n + i, begin + list[i]);
        n += all;
    }
}
#endif
