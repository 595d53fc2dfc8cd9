/*
 * interpret.cu: a kernel that runs any elementwise program, which it reads as instructions: tier 0. interpret.c writes them.
 * Goes behind elements.cu. Before it are defined
 *
 *   NAME       the kernel's
 *   word       an unsigned integer that holds a value of any type of the program
 *   PACK       neighbouring elements that a thread computes
 *   THREADS    of a block
 *   BLOCKS     that a multiprocessor should hold
 *
 * and behind it, generated: execute(), a switch over all operations and types that the kernel has.
 *
 * A thread holds three values of a pack, x, y and z, in registers, and others in slots of shared memory. An instruction
 * fetches its operands into them, computes x, and may keep it in a slot:
 *
 *     in[0] -> x, in[1] -> y, in[2] -> z      each: what x holds (ACCUMULATED), a slot (0 ..), a number, or nothing
 *     x = operation(x, y, z)                  or: load an input, store an output
 *     slots[slot] = x                         if slot >= 0
 *
 * All threads of a grid read the same instructions, so that no branch diverges. The functions are those of the compiled kernels
 * (elements.cu): the bits are the same.
 *
 * execute() has two switches, since a compiler makes comparisons of them: a few operations are found by four, all others by nine.
 * Not measured on a GPU yet.
 */
struct __align__(16) instruction {
    unsigned short operation;
    short in[3];
    short slot;
    unsigned short place; /* of what an instruction of memory needs: words[place] is the address, strides follow */
    unsigned short how;   /* enum access */
    unsigned short half;  /* enum half: what is done beside */
};

enum {
    ACCUMULATED = -1, /* operands: x as it is */
    NOTHING = -2,
    NUMBERS = -3, /* words[-3 - operand] */
};

enum access {
    ACCESS_ONE,        /* one element for all */
    ACCESS_PACKED,     /* contiguous, and packs are aligned */
    ACCESS_DENSE,      /* contiguous */
    ACCESS_ROW_ONE,    /* at strides, from here on; a pack does not go across rows, the last dimension: one element for a row */
    ACCESS_ROW_PACKED, /* rows are contiguous, and packs aligned */
    ACCESS_ROW,        /* rows have a stride */
    ACCESS_ANY,        /* packs go across rows */
};

/* Halves lie in memory, and are computed as floats: conversions and rounding are a part of other instructions. */
enum half {
    HALF_NONE,
    HALF_WIDEN_FLOAT16, /* x becomes a float: behind a load */
    HALF_WIDEN_BFLOAT16,
    HALF_ROUND_FLOAT16, /* x, a float, is rounded: behind an operation */
    HALF_ROUND_BFLOAT16,
    HALF_NARROW_FLOAT16, /* x becomes a half: before a store */
    HALF_NARROW_BFLOAT16,
};

enum {
    WORDS = 504, /* the arguments are 4 KiB */
};

struct arguments {
    uint64 count;  /* elements */
    int64 length;  /* instructions: two words each, the first ones */
    int64 ndim;    /* of what is at strides */
    int64 sizes;   /* their place in words */
    int64 is_wide; /* indices need 64 bits */
    const void *skip; /* a number: nothing is done where it is not 0; NULL: none */
    int64 skip_bytes; /* of the number */
    uint64 skip_mask; /* its bits that count */
    uint64 words[WORDS];
};

/* ---- values as words ---- */

template <class T> ELEMENT T get(word x) { return (T)x; }
template <> INSIDE bool get<bool>(word x) { return x != 0; }
template <> INSIDE float get<float>(word x) { return __uint_as_float((unsigned)x); }
template <> INSIDE float16 get<float16>(word x) { return float16{(unsigned short)x}; }
template <> INSIDE bfloat16 get<bfloat16>(word x) { return bfloat16{(unsigned short)x}; }
#if IS_WIDE
template <> INSIDE double get<double>(word x) { return __longlong_as_double((int64)x); }
#endif

template <class T> ELEMENT word put(T x) { return (word)x; }
template <> INSIDE word put<float>(float x) { return __float_as_uint(x); }
template <> INSIDE word put<float16>(float16 x) { return x.bits; }
template <> INSIDE word put<bfloat16>(bfloat16 x) { return x.bits; }
#if IS_WIDE
template <> INSIDE word put<double>(double x) { return (word)__double_as_longlong(x); }
#endif

/* ---- slots: parts of 16 bytes, of which neighbouring threads have neighbours ---- */

enum {
    IN_PART = 16 / sizeof(word),
    PARTS = PACK / IN_PART,
};

typedef pack<word, IN_PART> part;

/* A thread's part of the slots, as an address of shared memory: 32 bits. */
#ifdef GN_NO_PTX
typedef part *slots_type;
ELEMENT slots_type slots_of(part *slots) { return slots + threadIdx.x; }
ELEMENT part part_read(slots_type slots, int number) { return slots[number * THREADS]; }
ELEMENT void part_write(slots_type slots, int number, part x) { slots[number * THREADS] = x; }
#else
typedef unsigned slots_type;
ELEMENT slots_type slots_of(part *slots)
{
    unsigned address;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(address) : "l"(slots));
    return address + threadIdx.x * 16;
}
ELEMENT part part_read(slots_type slots, int number)
{
    part x;
    const unsigned address = slots + number * (THREADS * 16);
#if IS_WIDE
    asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(x.item[0]), "=l"(x.item[1]) : "r"(address));
#else
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.item[0]), "=r"(x.item[1]), "=r"(x.item[2]), "=r"(x.item[3])
                 : "r"(address));
#endif
    return x;
}
ELEMENT void part_write(slots_type slots, int number, part x)
{
    const unsigned address = slots + number * (THREADS * 16);
#if IS_WIDE
    asm volatile("st.shared.v2.u64 [%0], {%1, %2};" ::"r"(address), "l"(x.item[0]), "l"(x.item[1]) : "memory");
#else
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.item[0]), "r"(x.item[1]), "r"(x.item[2]), "r"(x.item[3])
                 : "memory");
#endif
}
#endif

ELEMENT void slot_read(slots_type slots, int slot, word (&x)[PACK])
{
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        const part from = part_read(slots, slot * PARTS + p);
#pragma unroll
        for (int k = 0; k < IN_PART; k++)
            x[p * IN_PART + k] = from.item[k];
    }
}

ELEMENT void slot_write(slots_type slots, int slot, const word (&x)[PACK])
{
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        part to;
#pragma unroll
        for (int k = 0; k < IN_PART; k++)
            to.item[k] = x[p * IN_PART + k];
        part_write(slots, slot * PARTS + p, to);
    }
}

/* y, an operand, where x is the accumulated value. */
ELEMENT void fetch(const arguments &a, slots_type slots, int operand, const word (&x)[PACK], word (&y)[PACK])
{
    if (operand >= 0) {
        slot_read(slots, operand, y);
    } else if (operand <= NUMBERS) {
        const word number = (word)a.words[NUMBERS - operand];
#pragma unroll
        for (int k = 0; k < PACK; k++)
            y[k] = number;
    } else if (operand == ACCUMULATED) {
#pragma unroll
        for (int k = 0; k < PACK; k++)
            y[k] = x[k];
    }
}

/* ---- memory ---- */

/* The offset of element i, from sizes and strides. */
template <class I> ELEMENT int64 offset_of(const arguments &a, const uint64 *strides, I i)
{
    int64 offset = 0;
    for (int d = (int)a.ndim - 1; d > 0; d--) {
        const I size = (I)a.words[a.sizes + d], rest = i / size;
        offset += (int64)(i - rest * size) * (int64)strides[d];
        i = rest;
    }
    return offset + (int64)i * (int64)strides[0];
}

/* Called: it divides. */
CALLED int64 offset_at(const arguments &a, int place, uint64 i)
{
    const uint64 *strides = a.words + place + 1;
    return a.is_wide ? offset_of<uint64>(a, strides, i) : offset_of<unsigned>(a, strides, (unsigned)i);
}

/* Where the pack, or its row, begins. */
ELEMENT int64 begin_of(const arguments &a, const instruction &i, uint64 first)
{
    return i.how == ACCESS_ONE ? 0 : i.how <= ACCESS_DENSE ? (int64)first : offset_at(a, i.place, first);
}

ELEMENT int64 stride_of(const arguments &a, const instruction &i)
{
    return i.how == ACCESS_ROW ? (int64)a.words[i.place + a.ndim] : 1;
}

/* Loads a pack; where there is no element, 0. */
template <class M> ELEMENT void load(const arguments &a, const instruction &i, uint64 first, int here, word (&x)[PACK])
{
    const M *from = (const M *)a.words[i.place];
    if (i.how == ACCESS_ANY) {
#pragma unroll 1
        for (int k = 0; k < PACK; k++) {
            x[0] = k < here ? (word)from[offset_at(a, i.place, first + k)] : 0;
            rotate<1>(x);
        }
        return;
    }
    from += begin_of(a, i, first);
    if ((i.how == ACCESS_PACKED || i.how == ACCESS_ROW_PACKED) && here == PACK) {
        const pack<M, PACK> p = *(const pack<M, PACK> *)from;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            x[k] = p.item[k];
    } else if (i.how == ACCESS_ONE || i.how == ACCESS_ROW_ONE) {
        const word one = *from;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            x[k] = one;
    } else {
        const int64 stride = stride_of(a, i);
#pragma unroll
        for (int k = 0; k < PACK; k++)
            x[k] = k < here ? (word)from[k * stride] : 0;
    }
}

/* x is as before, at the end. */
template <class M> ELEMENT void store(const arguments &a, const instruction &i, uint64 first, int here, word (&x)[PACK])
{
    M *to = (M *)a.words[i.place];
    if (i.how == ACCESS_ANY) {
#pragma unroll 1
        for (int k = 0; k < PACK; k++) {
            if (k < here)
                to[offset_at(a, i.place, first + k)] = (M)x[0];
            rotate<1>(x);
        }
        return;
    }
    to += begin_of(a, i, first);
    if ((i.how == ACCESS_PACKED || i.how == ACCESS_ROW_PACKED) && here == PACK) {
        pack<M, PACK> p;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            p.item[k] = (M)x[k];
        *(pack<M, PACK> *)to = p;
    } else {
        const int64 stride = stride_of(a, i);
#pragma unroll
        for (int k = 0; k < PACK; k++)
            if (k < here)
                to[k * stride] = (M)x[k];
    }
}

ELEMENT bool is_skipped(const arguments &a)
{
    const uint64 bits = a.skip_bytes == 8   ? *(const uint64 *)a.skip
                        : a.skip_bytes == 4 ? *(const unsigned *)a.skip
                        : a.skip_bytes == 2 ? *(const unsigned short *)a.skip
                                            : *(const unsigned char *)a.skip;
    return (bits & a.skip_mask) != 0;
}

/* ---- execute(), which is generated ---- */

#define EACH(expression)           \
    {                              \
        _Pragma("unroll")          \
        for (int k = 0; k < PACK; k++) \
            x[k] = expression;     \
        break;                     \
    }
#define UNARY(function, from, to) EACH(put<to>(function<from>(get<from>(x[k]))))
#define BINARY(function, from, to) EACH(put<to>(function<from>(get<from>(x[k]), get<from>(y[k]))))
#define TERNARY(function, from, to) EACH(put<to>(function<from>(get<from>(x[k]), get<from>(y[k]), get<from>(z[k]))))
#define CHOOSE EACH(x[k] != 0 ? y[k] : z[k])
#define CONVERT(from, to) EACH(put<to>(convert<to>(get<from>(x[k]))))
#define ROUNDED(function) EACH(put<float>(function(get<float>(x[k]))))
#define LOAD(type) { load<type>(a, i, first, here, x); break; }
#define STORE(type) { store<type>(a, i, first, here, x); break; }
#define TRUE_OF EACH(x[k] != 0)

/* Two floats as halves in a word: one instruction. */
#if defined(GN_NO_PTX) || __CUDA_ARCH__ < 800
template <class H> ELEMENT unsigned pair_of(float low, float high)
{
    return make<H>::from(low).bits | (unsigned)make<H>::from(high).bits << 16;
}
#else
template <class H> ELEMENT unsigned pair_of(float low, float high)
{
    unsigned pair;
    if constexpr (H::is_float16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
#endif

/* Floats become halves, or with IS_FLOAT floats that a half can be. */
template <class H, bool IS_FLOAT> ELEMENT void halves_round(word (&x)[PACK])
{
#pragma unroll
    for (int k = 0; k < PACK; k += 2) {
        const unsigned pair = pair_of<H>(get<float>(x[k]), get<float>(x[k + 1]));
        const H low = H{(unsigned short)pair}, high = H{(unsigned short)(pair >> 16)};
        x[k] = IS_FLOAT ? put<float>(number(low)) : put<H>(low);
        x[k + 1] = IS_FLOAT ? put<float>(number(high)) : put<H>(high);
    }
}

ELEMENT void halves_change(int half, word (&x)[PACK])
{
    switch (half) {
    case HALF_WIDEN_FLOAT16: CONVERT(float16, float32)
    case HALF_WIDEN_BFLOAT16: CONVERT(bfloat16, float32)
    case HALF_ROUND_FLOAT16: halves_round<float16, true>(x); break;
    case HALF_ROUND_BFLOAT16: halves_round<bfloat16, true>(x); break;
    case HALF_NARROW_FLOAT16: halves_round<float16, false>(x); break;
    case HALF_NARROW_BFLOAT16: halves_round<bfloat16, false>(x); break;
    }
}

ELEMENT void execute(const arguments &a, const instruction &i, uint64 first, int here, word (&x)[PACK], const word (&y)[PACK], const word (&z)[PACK]);

/* Block x: THREADS packs. */
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    extern __shared__ __align__(16) unsigned char slot_bytes[];
    const slots_type slots = slots_of((part *)slot_bytes);
    const uint64 first = ((uint64)blockIdx.x * THREADS + threadIdx.x) * PACK;
    if (first >= a.count || (a.skip != 0 && is_skipped(a)))
        return;
    const int here = a.count - first < PACK ? (int)(a.count - first) : PACK;
    word x[PACK];
#pragma unroll
    for (int k = 0; k < PACK; k++)
        x[k] = 0;
#pragma unroll 1
    for (int n = 0; n < (int)a.length; n++) {
        const instruction i = ((const instruction *)a.words)[n];
        word y[PACK], z[PACK];
        if (i.in[2] != NOTHING)
            fetch(a, slots, i.in[2], x, z);
        if (i.in[1] != NOTHING)
            fetch(a, slots, i.in[1], x, y);
        if (i.in[0] != ACCUMULATED)
            fetch(a, slots, i.in[0], x, x);
        if (i.half >= HALF_NARROW_FLOAT16)
            halves_change(i.half, x);
        execute(a, i, first, here, x, y, z);
        if (i.half != HALF_NONE && i.half < HALF_NARROW_FLOAT16)
            halves_change(i.half, x);
        if (i.slot >= 0)
            slot_write(slots, i.slot, x);
    }
}
