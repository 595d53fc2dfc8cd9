/*
 * extreme.cu: where the largest or smallest element of each row is.
 *
 * An array is [outer][length][inner], and a row goes along the middle; rows are counted over outer and inner. A block
 * has `width` rows side by side, and 256 / width threads for each; the y of a block is a part of its rows. Elements
 * become scores, of which the largest wins, and then the lowest place: joining is exact in whatever order. With
 * several parts, the last block to finish (block_join.cu) joins what those have found.
 */

/* ---- keys: unsigned integers in the order of the elements, -0 as 0, NaN the largest: src/ops/cpu/keys.h ---- */

ELEMENT unsigned key_of(uint8 x) { return x; }
ELEMENT unsigned key_of(uint16 x) { return x; }
ELEMENT unsigned key_of(uint32 x) { return x; }
ELEMENT uint64 key_of(uint64 x) { return x; }
ELEMENT unsigned key_of(int8 x) { return (uint8)x ^ 0x80u; }
ELEMENT unsigned key_of(short x) { return (unsigned short)x ^ 0x8000u; }
ELEMENT unsigned key_of(int x) { return (unsigned)x ^ 0x80000000u; }
ELEMENT uint64 key_of(int64 x) { return (uint64)x ^ (uint64)1 << 63; }

/* `infinite`: the bits of infinity. */
template <class T> ELEMENT T floating_key(T bits, T infinite)
{
    const T sign = (T)((T)1 << (8 * sizeof(T) - 1)), magnitude = (T)(bits & (T)~sign);
    if (magnitude == 0)
        return sign;
    if (magnitude > infinite)
        return (T)~(T)0;
    return (T)(bits & sign ? ~bits : bits | sign);
}
ELEMENT unsigned key_of(float16 x) { return floating_key<unsigned short>(x.bits, 0x7c00); }
ELEMENT unsigned key_of(bfloat16 x) { return floating_key<unsigned short>(x.bits, 0x7f80); }
ELEMENT unsigned key_of(float x) { return floating_key<unsigned>(__float_as_uint(x), 0x7f800000u); }
ELEMENT uint64 key_of(double x)
{
    return floating_key<uint64>((uint64)__double_as_longlong(x), (uint64)0x7ff << 52);
}

template <class T> struct is_real {
    static const bool value = is_floating<T>::value;
};
template <> struct is_real<float16> {
    static const bool value = true;
};
template <> struct is_real<bfloat16> {
    static const bool value = true;
};

/* ---- the search ---- */

struct arguments {
    const element *in;
    int64 rows, length, inner;
    int64 parts, chunk; /* of a row, and elements of each */
    int64 width;        /* a power of two; 1 or 8 where inner is 1 */
    int64 is_packed;    /* rows and parts begin at multiples of 16 bytes, and inner is 1 */
    int64 is_maximum;
    int64 slot;  /* of block_join.cu */
    key *scores; /* [rows][parts], and where: what parts find */
    int64 *places;
    int64 *indices;  /* results */
    element *values; /* may be NULL */
};

enum { PACK = 16 / sizeof(element) };
typedef pack<element, PACK> elements;

struct best {
    key score;
    int64 place;
};

ELEMENT void best_join(best &x, key score, int64 place)
{
    if (score > x.score || (score == x.score && place < x.place)) {
        x.score = score;
        x.place = place;
    }
}

/* NaN wins either way. */
ELEMENT key score_of(element x, bool is_maximum)
{
    const key found = key_of(x);
    if (is_maximum)
        return found;
    if (is_real<element>::value && found == (key)~(uint64)0 >> 8 * (sizeof(key) - sizeof(element)))
        return (key)~(uint64)0;
    return ~found;
}

/* Of equal ones the first stays: `place` is behind all that came before. */
ELEMENT void elements_join(best &x, const elements &e, int64 place, bool is_maximum)
{
    key scores[PACK], most;
#pragma unroll
    for (int k = 0; k < PACK; k++) {
        scores[k] = score_of(e.item[k], is_maximum);
        most = k == 0 || scores[k] > most ? scores[k] : most;
    }
    if (most <= x.score)
        return;
    x.score = most;
#pragma unroll
    for (int k = PACK - 1; k >= 0; k--)
        if (scores[k] == most)
            x.place = place + k;
}

/* Each `step`-th pack from `lane` on, and the elements behind the last one. */
ELEMENT void packs_search(best &x, const element *in, int64 first, int64 last, int64 lane, int64 step, bool is_maximum)
{
    const elements *packs = (const elements *)(in + first);
    const int64 count = (last - first) / PACK;
    int64 i = lane;
    if (i < count)
        best_join(x, score_of(packs[i].item[0], is_maximum), first + i * PACK);
    for (; i + 3 * step < count; i += 4 * step) {
        elements e[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            e[k] = packs[i + k * step];
#pragma unroll
        for (int k = 0; k < 4; k++)
            elements_join(x, e[k], first + (i + k * step) * PACK, is_maximum);
    }
    for (; i < count; i += step)
        elements_join(x, packs[i], first + i * PACK, is_maximum);
    for (i = first + count * PACK + lane; i < last; i += step)
        best_join(x, score_of(in[i], is_maximum), i);
}

/* Elements as they are compared: of which the largest wins. */
template <bool IS_MAXIMUM, class T> ELEMENT T turned(T x)
{
    if constexpr (IS_MAXIMUM)
        return x;
    else if constexpr (is_floating<T>::value)
        return -x;
    else
        return (T)~x;
}

/* Whether an element is to be found in the place of one before it: NaN is, but for another. */
template <class T> ELEMENT bool is_better(T x, T before)
{
    if constexpr (is_floating<T>::value)
        return !(x <= before) && before == before;
    else
        return x > before;
}

/* Each `step`-th element from `lane` on: of equal ones the first stays. Numbers are compared as they are, and only what
 * is found becomes a score. */
template <bool IS_MAXIMUM> ELEMENT best elements_search(const arguments &a, int64 row, int64 lane, int64 step)
{
    const int TOGETHER = 8; /* loads in flight */
    const int64 first = (int64)blockIdx.y * a.chunk + lane;
    const int64 end = (int64)(blockIdx.y + 1) * a.chunk, last = end < a.length ? end : a.length;
    if (first >= last)
        return best{0, (int64)(~(uint64)0 >> 1)};
    const element *in = a.in + (row / a.inner * a.length + first) * a.inner + row % a.inner;
    const int64 stride = step * a.inner;
    const unsigned count = (unsigned)((last - first + step - 1) / step);
    auto top = turned<IS_MAXIMUM>(number(*in));
    unsigned at = 0, n = 0;
    const element *from = in;
    for (; n + TOGETHER <= count; n += TOGETHER, from += TOGETHER * stride) {
        element e[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++)
            e[k] = from[k * stride];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            const auto x = turned<IS_MAXIMUM>(number(e[k]));
            if (is_better(x, top)) {
                top = x;
                at = n + k;
            }
        }
    }
    element e[TOGETHER - 1];
#pragma unroll
    for (int k = 0; k < TOGETHER - 1; k++)
        if (n + k < count)
            e[k] = from[k * stride];
#pragma unroll
    for (int k = 0; k < TOGETHER - 1; k++) {
        if (n + k >= count)
            break;
        const auto x = turned<IS_MAXIMUM>(number(e[k]));
        if (is_better(x, top)) {
            top = x;
            at = n + k;
        }
    }
    return best{score_of(in[at * stride], IS_MAXIMUM), first + at * step};
}

/* Joins the threads of each row, which are neighbours; the first of them has the result. Between two calls is a barrier,
 * that of is_last(). */
ELEMENT void neighbours_join(best &x, int height)
{
    __shared__ key scores[8];
    __shared__ int64 places[8];
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
        const key score = __shfl_down_sync(0xffffffffu, x.score, half);
        const int64 place = __shfl_down_sync(0xffffffffu, x.place, half);
        best_join(x, score, place);
    }
    if (height == 32)
        return;
    if (threadIdx.x % 32 == 0) {
        scores[threadIdx.x / 32] = x.score;
        places[threadIdx.x / 32] = x.place;
    }
    __syncthreads();
    for (int k = 1; k < 8 && threadIdx.x == 0; k++)
        best_join(x, scores[k], places[k]);
}

/* Joins the threads of each row, which are `width` threads apart; the first of them has the result. Between two calls is
 * a barrier, as above. */
ELEMENT void columns_join(best &x, int lane, int width, int height)
{
    __shared__ key scores[256];
    __shared__ int64 places[256];
    scores[threadIdx.x] = x.score;
    places[threadIdx.x] = x.place;
    for (int half = height / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) {
            best_join(x, scores[threadIdx.x + half * width], places[threadIdx.x + half * width]);
            scores[threadIdx.x] = x.score;
            places[threadIdx.x] = x.place;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const bool is_strided = a.inner > 1;
    const int width = (int)a.width, height = 256 / width;
    const int slot = is_strided ? threadIdx.x % width : threadIdx.x / height;
    const int lane = is_strided ? threadIdx.x / width : threadIdx.x % height;
    const int64 row = (int64)blockIdx.x * width + slot;
    const element *in = a.in + row / a.inner * a.length * a.inner + row % a.inner;
    const best none = {0, (int64)(~(uint64)0 >> 1)};
    best x = none;
    if (row < a.rows) {
        const int64 first = (int64)blockIdx.y * a.chunk;
        const int64 last = first + a.chunk < a.length ? first + a.chunk : a.length;
        if (a.is_packed)
            packs_search(x, in, first, last, lane, height, a.is_maximum != 0);
        else
            x = a.is_maximum ? elements_search<true>(a, row, lane, height)
                             : elements_search<false>(a, row, lane, height);
    }
    if (is_strided)
        columns_join(x, lane, width, height);
    else
        neighbours_join(x, height);
    if (a.parts > 1) {
        key *scores = a.scores + row * a.parts;
        int64 *places = a.places + row * a.parts;
        if (lane == 0 && row < a.rows) {
            scores[blockIdx.y] = x.score;
            places[blockIdx.y] = x.place;
        }
        if (!is_last((int)a.slot))
            return;
        x = none;
        for (int64 i = lane; i < a.parts && row < a.rows; i += height)
            best_join(x, *(const volatile key *)(scores + i), *(const volatile int64 *)(places + i));
        if (is_strided)
            columns_join(x, lane, width, height);
        else
            neighbours_join(x, height);
    }
    if (lane > 0 || row >= a.rows)
        return;
    a.indices[row] = x.place;
    if (a.values != 0)
        a.values[row] = in[x.place * a.inner];
}
