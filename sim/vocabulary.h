/*
 * vocabulary.h: the words of CUDA C for a host C++ compiler.
 *
 * Goes between bridge.h and a kernel's source, which follows unchanged but for `extern __shared__`
 * (source.c). No header of the host is seen, as none is under NVRTC: what is not here is missing.
 *
 *   GN_SIM_CHECKS   1: the compiler instruments each access to memory as for its thread sanitizer;
 *                   the calls end in the hooks at the end of this file
 *
 * Rules:
 *   V1  What touches the engine's own memory must not be instrumented. Such a function is
 *       GN_SIM_PLAIN: never inlined into a kernel when there are checks, always otherwise.
 *   V2  A function that waits passes the line it was called from, by default arguments.
 *   V3  Memory that a vocabulary function touches for the kernel (atomics) is reported by hand.
 *   V4  All GPU threads run on one OS thread; the atomics are real ones all the same, because the
 *       host may watch pinned memory.
 *
 * Most of it is functions of one line, which are best read as a table: clang-format is off.
 */
// clang-format off

/* ---- Words that only say where things live ---- */

#define __global__ __attribute__((visibility("default"), used))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ static __thread
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __nv_pure__
#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif
#define __assume(condition) ((void)0)

/* clang's no_sanitize still instruments atomics. */
#ifdef __clang__
#define GN_SIM_UNCHECKED __attribute__((disable_sanitizer_instrumentation))
#else
#define GN_SIM_UNCHECKED __attribute__((no_sanitize("thread")))
#endif
#define GN_SIM_INLINE static inline __attribute__((always_inline, unused))
#if GN_SIM_CHECKS
#define GN_SIM_PLAIN static __attribute__((noinline, unused)) GN_SIM_UNCHECKED
#else
#define GN_SIM_PLAIN GN_SIM_INLINE
#endif
#define GN_SIM_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __PTRDIFF_TYPE__ clock_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

/* ---- Vector types ---- */

#define GN_SIM_VECTORS(T, name, a2, a4)                                                            \
    struct name##1 { T x; };                                                                       \
    struct __attribute__((aligned(a2))) name##2 { T x, y; };                                       \
    struct name##3 { T x, y, z; };                                                                 \
    struct __attribute__((aligned(a4))) name##4 { T x, y, z, w; };                                 \
    GN_SIM_INLINE name##1 make_##name##1(T x) { return name##1{x}; }                               \
    GN_SIM_INLINE name##2 make_##name##2(T x, T y) { return name##2{x, y}; }                       \
    GN_SIM_INLINE name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; }               \
    GN_SIM_INLINE name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
GN_SIM_VECTORS(signed char, char, 2, 4)
GN_SIM_VECTORS(unsigned char, uchar, 2, 4)
GN_SIM_VECTORS(short, short, 4, 8)
GN_SIM_VECTORS(unsigned short, ushort, 4, 8)
GN_SIM_VECTORS(int, int, 8, 16)
GN_SIM_VECTORS(unsigned, uint, 8, 16)
GN_SIM_VECTORS(long, long, 16, 16)
GN_SIM_VECTORS(unsigned long, ulong, 16, 16)
GN_SIM_VECTORS(long long, longlong, 16, 16)
GN_SIM_VECTORS(unsigned long long, ulonglong, 16, 16)
GN_SIM_VECTORS(float, float, 8, 16)
GN_SIM_VECTORS(double, double, 16, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

/* ---- Where a thread stands ---- */

/* What runs before the engine knows this object, initialization of variables, is not watched. */
GN_SIM_PLAIN void gn_sim_ignore(const void *, unsigned long, unsigned, const void *) {}
static struct gn_sim_bridge gn_sim_bridge_none = {{}, {}, {}, {}, 0, 0, 0, 0,
                                                  gn_sim_ignore, 0, 0, 0};
static struct gn_sim_bridge *gn_sim_bridge_now = &gn_sim_bridge_none;

#define GN_SIM_POSITION(name, type, field)                                                         \
    GN_SIM_PLAIN __attribute__((pure)) const type name()                                           \
    {                                                                                              \
        struct gn_sim_index i = gn_sim_bridge_now->field;                                          \
        return type{i.x, i.y, i.z};                                                                \
    }
GN_SIM_POSITION(gn_sim_thread_index, uint3, thread_index)
GN_SIM_POSITION(gn_sim_block_index, uint3, block_index)
GN_SIM_POSITION(gn_sim_block_size, dim3, block_size)
GN_SIM_POSITION(gn_sim_grid_size, dim3, grid_size)
GN_SIM_PLAIN __attribute__((pure)) unsigned gn_sim_lane() { return gn_sim_bridge_now->lane; }
#define threadIdx (gn_sim_thread_index())
#define blockIdx (gn_sim_block_index())
#define blockDim (gn_sim_block_size())
#define gridDim (gn_sim_grid_size())
#define warpSize 32

/* ---- Reinterpreting ---- */

template <class To, class From> GN_SIM_INLINE To gn_sim_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
GN_SIM_INLINE int __float_as_int(float v) { return gn_sim_bits<int>(v); }
GN_SIM_INLINE unsigned __float_as_uint(float v) { return gn_sim_bits<unsigned>(v); }
GN_SIM_INLINE float __int_as_float(int v) { return gn_sim_bits<float>(v); }
GN_SIM_INLINE float __uint_as_float(unsigned v) { return gn_sim_bits<float>(v); }
GN_SIM_INLINE long long __double_as_longlong(double v) { return gn_sim_bits<long long>(v); }
GN_SIM_INLINE double __longlong_as_double(long long v) { return gn_sim_bits<double>(v); }
GN_SIM_INLINE int __double2hiint(double v) { return (int)(__double_as_longlong(v) >> 32); }
GN_SIM_INLINE int __double2loint(double v) { return (int)__double_as_longlong(v); }
GN_SIM_INLINE double __hiloint2double(int hi, int lo)
{
    return __longlong_as_double((long long)((unsigned long long)(unsigned)hi << 32 | (unsigned)lo));
}

/* Any value of up to 8 bytes as a number, for the exchange between lanes. */
template <class T> GN_SIM_INLINE unsigned long long gn_sim_pack(T value)
{
    static_assert(sizeof(T) <= 8, "lanes exchange at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> GN_SIM_INLINE T gn_sim_unpack(unsigned long long bits)
{
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- Barriers, warps ---- */

GN_SIM_PLAIN int gn_sim_barrier(int kind, int predicate, const char *file, int line)
{
    return gn_sim_bridge_now->barrier(kind, predicate, file, line);
}
GN_SIM_INLINE void __syncthreads(GN_SIM_PLACE) { gn_sim_barrier(GN_SIM_BARRIER, 0, file, line); }
GN_SIM_INLINE int __syncthreads_count(int predicate, GN_SIM_PLACE)
{
    return gn_sim_barrier(GN_SIM_BARRIER_COUNT, predicate, file, line);
}
GN_SIM_INLINE int __syncthreads_and(int predicate, GN_SIM_PLACE)
{
    return gn_sim_barrier(GN_SIM_BARRIER_AND, predicate, file, line);
}
GN_SIM_INLINE int __syncthreads_or(int predicate, GN_SIM_PLACE)
{
    return gn_sim_barrier(GN_SIM_BARRIER_OR, predicate, file, line);
}

GN_SIM_PLAIN unsigned long long gn_sim_warp(int kind, unsigned mask, unsigned long long value,
                                            unsigned source, const char *file, int line)
{
    return gn_sim_bridge_now->warp(kind, mask, value, source, file, line);
}
GN_SIM_PLAIN unsigned __activemask() { return gn_sim_bridge_now->active_mask(); }

GN_SIM_INLINE void __syncwarp(unsigned mask = 0xffffffffu, GN_SIM_PLACE)
{
    gn_sim_warp(GN_SIM_SYNCWARP, mask, 0, 0, file, line);
}

template <class T>
GN_SIM_INLINE T gn_sim_shuffle(unsigned mask, T value, unsigned source, const char *file, int line)
{
    return gn_sim_unpack<T>(
        gn_sim_warp(GN_SIM_SHUFFLE, mask, gn_sim_pack(value), source, file, line));
}
/* A lane reads within its segment of `width` lanes, or keeps its own value. */
template <class T>
GN_SIM_INLINE T __shfl_sync(unsigned mask, T value, int source, int width = 32, GN_SIM_PLACE)
{
    unsigned segment = gn_sim_lane() & ~(unsigned)(width - 1);
    return gn_sim_shuffle(mask, value, segment | (source & (width - 1)), file, line);
}
template <class T>
GN_SIM_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, GN_SIM_PLACE)
{
    unsigned lane = gn_sim_lane(), place = lane & (unsigned)(width - 1);
    return gn_sim_shuffle(mask, value, delta > place ? lane : lane - delta, file, line);
}
template <class T>
GN_SIM_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                                 GN_SIM_PLACE)
{
    unsigned lane = gn_sim_lane(), place = lane & (unsigned)(width - 1);
    bool is_inside = delta < (unsigned)width && place + delta < (unsigned)width;
    return gn_sim_shuffle(mask, value, is_inside ? lane + delta : lane, file, line);
}
template <class T>
GN_SIM_INLINE T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, GN_SIM_PLACE)
{
    unsigned lane = gn_sim_lane(), source = lane ^ (unsigned)bits;
    unsigned last = lane | (unsigned)(width - 1);
    return gn_sim_shuffle(mask, value, source <= last && source < 32 ? source : lane, file, line);
}

GN_SIM_INLINE unsigned __ballot_sync(unsigned mask, int predicate, GN_SIM_PLACE)
{
    return (unsigned)gn_sim_warp(GN_SIM_VOTE, mask, predicate != 0, 0, file, line);
}
GN_SIM_INLINE int __any_sync(unsigned mask, int predicate, GN_SIM_PLACE)
{
    return __ballot_sync(mask, predicate, file, line) != 0;
}
GN_SIM_INLINE int __all_sync(unsigned mask, int predicate, GN_SIM_PLACE)
{
    return __ballot_sync(mask, predicate == 0, file, line) == 0;
}
template <class T> GN_SIM_INLINE unsigned __match_any_sync(unsigned mask, T value, GN_SIM_PLACE)
{
    return (unsigned)gn_sim_warp(GN_SIM_MATCH_ANY, mask, gn_sim_pack(value), 0, file, line);
}
template <class T>
GN_SIM_INLINE unsigned __match_all_sync(unsigned mask, T value, int *predicate, GN_SIM_PLACE)
{
    unsigned long long bits = gn_sim_pack(value);
    unsigned same = (unsigned)gn_sim_warp(GN_SIM_MATCH_ALL, mask, bits, 0, file, line);
    *predicate = same != 0;
    return same;
}

#define GN_SIM_REDUCE(name, type, kind)                                                            \
    GN_SIM_INLINE type __reduce_##name##_sync(unsigned mask, type value, GN_SIM_PLACE)             \
    {                                                                                              \
        return (type)gn_sim_warp(kind, mask, (unsigned long long)(long long)value, 0, file, line); \
    }
GN_SIM_REDUCE(add, int, GN_SIM_REDUCE_ADD)
GN_SIM_REDUCE(add, unsigned, GN_SIM_REDUCE_ADD)
GN_SIM_REDUCE(min, int, GN_SIM_REDUCE_MIN_SIGNED)
GN_SIM_REDUCE(min, unsigned, GN_SIM_REDUCE_MIN)
GN_SIM_REDUCE(max, int, GN_SIM_REDUCE_MAX_SIGNED)
GN_SIM_REDUCE(max, unsigned, GN_SIM_REDUCE_MAX)
GN_SIM_REDUCE(and, unsigned, GN_SIM_REDUCE_AND)
GN_SIM_REDUCE(or, unsigned, GN_SIM_REDUCE_OR)
GN_SIM_REDUCE(xor, unsigned, GN_SIM_REDUCE_XOR)

#define GN_SIM_FENCE __atomic_signal_fence(__ATOMIC_SEQ_CST)
GN_SIM_PLAIN void __threadfence()
{
    GN_SIM_FENCE;
    gn_sim_bridge_now->fence();
}
GN_SIM_INLINE void __threadfence_block() { GN_SIM_FENCE; }
GN_SIM_INLINE void __threadfence_system() { __threadfence(); }

/* A kernel begins when all before it is complete; the engine sees whether it would wait for that. */
GN_SIM_PLAIN void cudaGridDependencySynchronize() { gn_sim_bridge_now->wait(); }

GN_SIM_PLAIN void __nanosleep(unsigned) { gn_sim_bridge_now->yield(); }
GN_SIM_PLAIN long long clock64() { return (long long)gn_sim_bridge_now->clock(); }
GN_SIM_PLAIN clock_t clock() { return (clock_t)gn_sim_bridge_now->clock(); }
GN_SIM_PLAIN unsigned long long __globaltimer() { return gn_sim_bridge_now->clock(); }

/* ---- The end of a kernel before its time ---- */

GN_SIM_PLAIN void gn_sim_stop(int reason, const char *text, const char *file, int line)
{
    gn_sim_bridge_now->stop(reason, text, file, line);
}
GN_SIM_INLINE void __trap(GN_SIM_PLACE) { gn_sim_stop(GN_SIM_TRAP, "__trap()", file, line); }
GN_SIM_INLINE void __brkpt() {}
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                          \
    ((condition) ? (void)0 : gn_sim_stop(GN_SIM_ASSERT, #condition, __FILE__, __LINE__))
#endif
extern "C" int printf(const char *format, ...);

/* ---- Atomics ---- */

/* Reports the access at the place in the kernel that called the atomic function (V3). */
#if GN_SIM_CHECKS
#define GN_SIM_TOUCH(address)                                                                      \
    gn_sim_bridge_now->access((const void *)(address), sizeof *(address),                          \
                              GN_SIM_WRITE | GN_SIM_ATOMIC | GN_SIM_ALIGNED,                       \
                              __builtin_return_address(0))
#else
#define GN_SIM_TOUCH(address) ((void)0)
#endif

/* old = *address; *address = next; where `next` is an expression of `old` and `value`. */
#define GN_SIM_ATOMIC_LOOP(T, name, next)                                                          \
    GN_SIM_PLAIN T name(T *address, T value)                                                       \
    {                                                                                              \
        GN_SIM_TOUCH(address);                                                                     \
        T old, to;                                                                                 \
        __atomic_load(address, &old, __ATOMIC_RELAXED);                                            \
        do                                                                                         \
            to = next;                                                                             \
        while (!__atomic_compare_exchange(address, &old, &to, false, __ATOMIC_RELAXED,             \
                                          __ATOMIC_RELAXED));                                      \
        return old;                                                                                \
    }                                                                                              \
    GN_SIM_INLINE T name##_block(T *address, T value) { return name(address, value); }             \
    GN_SIM_INLINE T name##_system(T *address, T value) { return name(address, value); }
#define GN_SIM_ATOMIC_INTEGER(T)                                                                   \
    GN_SIM_ATOMIC_LOOP(T, atomicAdd, old + value)                                                  \
    GN_SIM_ATOMIC_LOOP(T, atomicMin, old < value ? old : value)                                    \
    GN_SIM_ATOMIC_LOOP(T, atomicMax, old > value ? old : value)                                    \
    GN_SIM_ATOMIC_LOOP(T, atomicAnd, old &value)                                                   \
    GN_SIM_ATOMIC_LOOP(T, atomicOr, old | value)                                                   \
    GN_SIM_ATOMIC_LOOP(T, atomicXor, old ^ value)                                                  \
    GN_SIM_ATOMIC_LOOP(T, atomicExch, value)
GN_SIM_ATOMIC_INTEGER(int)
GN_SIM_ATOMIC_INTEGER(unsigned)
GN_SIM_ATOMIC_INTEGER(unsigned long long)
GN_SIM_ATOMIC_LOOP(long long, atomicMin, old < value ? old : value)
GN_SIM_ATOMIC_LOOP(long long, atomicMax, old > value ? old : value)
GN_SIM_ATOMIC_LOOP(int, atomicSub, old - value)
GN_SIM_ATOMIC_LOOP(unsigned, atomicSub, old - value)
GN_SIM_ATOMIC_LOOP(unsigned, atomicInc, old >= value ? 0 : old + 1)
GN_SIM_ATOMIC_LOOP(unsigned, atomicDec, old == 0 || old > value ? value : old - 1)
GN_SIM_ATOMIC_LOOP(float, atomicAdd, old + value)
GN_SIM_ATOMIC_LOOP(double, atomicAdd, old + value)
GN_SIM_ATOMIC_LOOP(float, atomicExch, value)

#define GN_SIM_ATOMIC_CAS(T)                                                                       \
    GN_SIM_PLAIN T atomicCAS(T *address, T compare, T value)                                       \
    {                                                                                              \
        GN_SIM_TOUCH(address);                                                                     \
        __atomic_compare_exchange(address, &compare, &value, false, __ATOMIC_RELAXED,              \
                                  __ATOMIC_RELAXED);                                               \
        return compare;                                                                            \
    }                                                                                              \
    GN_SIM_INLINE T atomicCAS_block(T *p, T c, T v) { return atomicCAS(p, c, v); }                 \
    GN_SIM_INLINE T atomicCAS_system(T *p, T c, T v) { return atomicCAS(p, c, v); }
GN_SIM_ATOMIC_CAS(int)
GN_SIM_ATOMIC_CAS(unsigned)
GN_SIM_ATOMIC_CAS(unsigned long long)
GN_SIM_ATOMIC_CAS(unsigned short)

/* ---- Loads and stores that name a cache: plain ones here ---- */

#define GN_SIM_LOAD(name)                                                                          \
    template <class T> GN_SIM_INLINE T name(const T *address) { return *address; }
#define GN_SIM_STORE(name)                                                                         \
    template <class T> GN_SIM_INLINE void name(T *address, T value) { *address = value; }
GN_SIM_LOAD(__ldg)
GN_SIM_LOAD(__ldca)
GN_SIM_LOAD(__ldcg)
GN_SIM_LOAD(__ldcs)
GN_SIM_LOAD(__ldcv)
GN_SIM_LOAD(__ldlu)
GN_SIM_STORE(__stcg)
GN_SIM_STORE(__stcs)
GN_SIM_STORE(__stwb)
GN_SIM_STORE(__stwt)

/* ---- Bits ---- */

GN_SIM_INLINE int __popc(unsigned v) { return __builtin_popcount(v); }
GN_SIM_INLINE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
GN_SIM_INLINE int __clz(int v) { return v == 0 ? 32 : __builtin_clz((unsigned)v); }
GN_SIM_INLINE int __clzll(long long v)
{
    return v == 0 ? 64 : __builtin_clzll((unsigned long long)v);
}
GN_SIM_INLINE int __ffs(int v) { return __builtin_ffs(v); }
GN_SIM_INLINE int __ffsll(long long v) { return __builtin_ffsll(v); }
GN_SIM_INLINE unsigned __brev(unsigned v)
{
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}
GN_SIM_INLINE unsigned long long __brevll(unsigned long long v)
{
    return (unsigned long long)__brev((unsigned)v) << 32 | __brev((unsigned)(v >> 32));
}
GN_SIM_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
    unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}
GN_SIM_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) << (shift & 31) >> 32);
}
GN_SIM_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift & 31));
}
GN_SIM_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) << (shift < 32 ? shift : 32) >> 32);
}
GN_SIM_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift < 32 ? shift : 32));
}
GN_SIM_INLINE unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
GN_SIM_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
GN_SIM_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
GN_SIM_INLINE long long __mul64hi(long long a, long long b)
{
    return (long long)((__int128)a * b >> 64);
}
GN_SIM_INLINE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
GN_SIM_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
GN_SIM_INLINE unsigned __sad(int a, int b, unsigned c)
{
    return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c;
}
GN_SIM_INLINE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
GN_SIM_INLINE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
GN_SIM_INLINE int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++)
        c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
    return c;
}
GN_SIM_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 4; i++)
        c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}

/* ---- Mathematics: the host's library, in both precisions ---- */

#define GN_SIM_MATH1(name)                                                                         \
    extern "C" double name(double);                                                                \
    extern "C" float name##f(float);                                                               \
    GN_SIM_INLINE float name(float v) { return name##f(v); }
#define GN_SIM_MATH2(name)                                                                         \
    extern "C" double name(double, double);                                                        \
    extern "C" float name##f(float, float);                                                        \
    GN_SIM_INLINE float name(float a, float b) { return name##f(a, b); }
GN_SIM_MATH1(sqrt) GN_SIM_MATH1(cbrt) GN_SIM_MATH1(exp) GN_SIM_MATH1(exp2) GN_SIM_MATH1(expm1)
GN_SIM_MATH1(log) GN_SIM_MATH1(log2) GN_SIM_MATH1(log10) GN_SIM_MATH1(log1p) GN_SIM_MATH1(logb)
GN_SIM_MATH1(sin) GN_SIM_MATH1(cos) GN_SIM_MATH1(tan) GN_SIM_MATH1(asin) GN_SIM_MATH1(acos)
GN_SIM_MATH1(atan) GN_SIM_MATH1(sinh) GN_SIM_MATH1(cosh) GN_SIM_MATH1(tanh) GN_SIM_MATH1(asinh)
GN_SIM_MATH1(acosh) GN_SIM_MATH1(atanh) GN_SIM_MATH1(erf) GN_SIM_MATH1(erfc) GN_SIM_MATH1(lgamma)
GN_SIM_MATH1(tgamma) GN_SIM_MATH1(floor) GN_SIM_MATH1(ceil) GN_SIM_MATH1(trunc)
GN_SIM_MATH1(round) GN_SIM_MATH1(rint) GN_SIM_MATH1(nearbyint) GN_SIM_MATH1(fabs)
GN_SIM_MATH1(j0) GN_SIM_MATH1(j1) GN_SIM_MATH1(y0) GN_SIM_MATH1(y1) GN_SIM_MATH1(exp10)
GN_SIM_MATH2(pow) GN_SIM_MATH2(atan2) GN_SIM_MATH2(hypot) GN_SIM_MATH2(fmod)
GN_SIM_MATH2(remainder) GN_SIM_MATH2(fmin) GN_SIM_MATH2(fmax) GN_SIM_MATH2(fdim)
GN_SIM_MATH2(copysign) GN_SIM_MATH2(nextafter)
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
GN_SIM_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
extern "C" double ldexp(double, int);
extern "C" float ldexpf(float, int);
extern "C" double frexp(double, int *);
extern "C" float frexpf(float, int *);
extern "C" double modf(double, double *);
extern "C" float modff(float, float *);
extern "C" double scalbn(double, int);
extern "C" float scalbnf(float, int);
extern "C" int ilogb(double);
extern "C" int ilogbf(float);
extern "C" long lrint(double);
extern "C" long lrintf(float);
extern "C" long long llrint(double);
extern "C" long long llrintf(float);
extern "C" long lround(double);
extern "C" long lroundf(float);
extern "C" long long llround(double);
extern "C" long long llroundf(float);
extern "C" void sincos(double, double *, double *);
extern "C" void sincosf(float, float *, float *);

GN_SIM_INLINE float rsqrtf(float v) { return 1.0f / sqrtf(v); }
GN_SIM_INLINE double rsqrt(double v) { return 1.0 / sqrt(v); }
GN_SIM_INLINE float rsqrt(float v) { return rsqrtf(v); }
GN_SIM_INLINE float rcbrtf(float v) { return 1.0f / cbrtf(v); }
GN_SIM_INLINE double rcbrt(double v) { return 1.0 / cbrt(v); }
GN_SIM_INLINE double sinpi(double v)
{
    double n = rint(v), s = sin(3.14159265358979323846 * (v - n)); /* 0 for integers */
    return rint(n / 2) * 2 != n ? -s : s;
}
GN_SIM_INLINE double cospi(double v) { return cos(3.14159265358979323846 * fmod(v, 2.0)); }
GN_SIM_INLINE float sinpif(float v) { return (float)sinpi((double)v); }
GN_SIM_INLINE float cospif(float v) { return (float)cospi((double)v); }
GN_SIM_INLINE double normcdf(double v) { return 0.5 * erfc(-v * 0.70710678118654752440); }
GN_SIM_INLINE double erfinv(double v) /* Newton's method on its inverse, with both tails exact */
{
    double a = fabs(v), w = -log((1 - a) * (1 + a)), q = w / 2 - 4.33, y = sqrt(sqrt(q * q + w / 0.147) + q);
    for (int i = 0; a < 1 && i < 6; i++) {
        double beyond = a > 0.5 ? (1 - a) - erfc(y) : erf(y) - a;
        double t = beyond * 0.88622692545275801365 * exp(y * y);
        y -= t / (1 + y * t);
    }
    return copysign(a == 1 ? 1 / (1 - a) : y, v);
}
GN_SIM_INLINE float erfinvf(float v) { return (float)erfinv((double)v); }
GN_SIM_INLINE float normcdff(float v) { return (float)normcdf((double)v); }
GN_SIM_INLINE float saturate(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }
GN_SIM_INLINE float __saturatef(float v) { return saturate(v); }

#define GN_SIM_CLASSIFY(name)                                                                      \
    GN_SIM_INLINE bool name(float v) { return __builtin_##name(v); }                               \
    GN_SIM_INLINE bool name(double v) { return __builtin_##name(v); }
GN_SIM_CLASSIFY(isnan)
GN_SIM_CLASSIFY(isinf)
GN_SIM_CLASSIFY(isfinite)
GN_SIM_CLASSIFY(signbit)

GN_SIM_INLINE int abs(int v) { return v < 0 ? -v : v; }
GN_SIM_INLINE long abs(long v) { return v < 0 ? -v : v; }
GN_SIM_INLINE long long abs(long long v) { return v < 0 ? -v : v; }
GN_SIM_INLINE float abs(float v) { return fabsf(v); }
GN_SIM_INLINE double abs(double v) { return fabs(v); }
GN_SIM_INLINE long long llabs(long long v) { return v < 0 ? -v : v; }
#define GN_SIM_MINMAX(T)                                                                           \
    GN_SIM_INLINE T min(T a, T b) { return b < a ? b : a; }                                        \
    GN_SIM_INLINE T max(T a, T b) { return a < b ? b : a; }
GN_SIM_MINMAX(int)
GN_SIM_MINMAX(unsigned)
GN_SIM_MINMAX(long)
GN_SIM_MINMAX(unsigned long)
GN_SIM_MINMAX(long long)
GN_SIM_MINMAX(unsigned long long)
GN_SIM_INLINE unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
GN_SIM_INLINE unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
GN_SIM_INLINE unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
GN_SIM_INLINE unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
GN_SIM_INLINE float min(float a, float b) { return fminf(a, b); }
GN_SIM_INLINE float max(float a, float b) { return fmaxf(a, b); }
GN_SIM_INLINE double min(double a, double b) { return fmin(a, b); }
GN_SIM_INLINE double max(double a, double b) { return fmax(a, b); }

/* Rounding to nearest is the host's only mode, and never contracted (compile.c). */
#define GN_SIM_ARITHMETIC(T, prefix, fused)                                                        \
    GN_SIM_INLINE T __##prefix##add_rn(T a, T b) { return a + b; }                                 \
    GN_SIM_INLINE T __##prefix##sub_rn(T a, T b) { return a - b; }                                 \
    GN_SIM_INLINE T __##prefix##mul_rn(T a, T b) { return a * b; }                                 \
    GN_SIM_INLINE T __##prefix##div_rn(T a, T b) { return a / b; }                                 \
    GN_SIM_INLINE T __##prefix##rcp_rn(T a) { return 1 / a; }
GN_SIM_ARITHMETIC(float, f, fmaf)
GN_SIM_ARITHMETIC(double, d, fma)
GN_SIM_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
GN_SIM_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
GN_SIM_INLINE float __fsqrt_rn(float v) { return sqrtf(v); }
GN_SIM_INLINE double __dsqrt_rn(double v) { return sqrt(v); }
GN_SIM_INLINE float __frsqrt_rn(float v) { return (float)(1.0 / sqrt((double)v)); }
GN_SIM_INLINE float __fdividef(float a, float b) { return a / b; }
GN_SIM_INLINE float fdividef(float a, float b) { return a / b; }
GN_SIM_INLINE float __expf(float v) { return expf(v); }
GN_SIM_INLINE float __exp10f(float v) { return exp10f(v); }
GN_SIM_INLINE float __logf(float v) { return logf(v); }
GN_SIM_INLINE float __log2f(float v) { return log2f(v); }
GN_SIM_INLINE float __log10f(float v) { return log10f(v); }
GN_SIM_INLINE float __sinf(float v) { return sinf(v); }
GN_SIM_INLINE float __cosf(float v) { return cosf(v); }
GN_SIM_INLINE float __tanf(float v) { return tanf(v); }
GN_SIM_INLINE float __powf(float a, float b) { return powf(a, b); }
GN_SIM_INLINE void __sincosf(float v, float *s, float *c) { *s = sinf(v), *c = cosf(v); }

/* ---- Conversions: to integers they saturate, and NaN gives 0, as on the GPU ---- */

template <class T> GN_SIM_INLINE T gn_sim_to_integer(double v)
{
    const T low = (T)-1 < (T)0 ? (T)((T)1 << (8 * sizeof(T) - 1)) : (T)0;
    const T high = (T) ~low;
    if (!(v == v))
        return 0;
    if (v <= (double)low)
        return low;
    return v >= (double)high ? high : (T)v;
}
#define GN_SIM_TO_INTEGER(T, to)                                                                   \
    GN_SIM_INLINE T __float2##to##_rn(float v) { return gn_sim_to_integer<T>(rint((double)v)); }   \
    GN_SIM_INLINE T __float2##to##_rz(float v) { return gn_sim_to_integer<T>((double)v); }         \
    GN_SIM_INLINE T __float2##to##_rd(float v) { return gn_sim_to_integer<T>(floor((double)v)); }  \
    GN_SIM_INLINE T __float2##to##_ru(float v) { return gn_sim_to_integer<T>(ceil((double)v)); }   \
    GN_SIM_INLINE T __double2##to##_rn(double v) { return gn_sim_to_integer<T>(rint(v)); }         \
    GN_SIM_INLINE T __double2##to##_rz(double v) { return gn_sim_to_integer<T>(v); }               \
    GN_SIM_INLINE T __double2##to##_rd(double v) { return gn_sim_to_integer<T>(floor(v)); }        \
    GN_SIM_INLINE T __double2##to##_ru(double v) { return gn_sim_to_integer<T>(ceil(v)); }
GN_SIM_TO_INTEGER(int, int)
GN_SIM_TO_INTEGER(unsigned, uint)
GN_SIM_TO_INTEGER(long long, ll)
GN_SIM_TO_INTEGER(unsigned long long, ull)
GN_SIM_INLINE float __int2float_rn(int v) { return (float)v; }
GN_SIM_INLINE float __uint2float_rn(unsigned v) { return (float)v; }
GN_SIM_INLINE float __ll2float_rn(long long v) { return (float)v; }
GN_SIM_INLINE float __ull2float_rn(unsigned long long v) { return (float)v; }
GN_SIM_INLINE double __int2double_rn(int v) { return (double)v; }
GN_SIM_INLINE double __uint2double_rn(unsigned v) { return (double)v; }
GN_SIM_INLINE double __ll2double_rn(long long v) { return (double)v; }
GN_SIM_INLINE double __ull2double_rn(unsigned long long v) { return (double)v; }
GN_SIM_INLINE float __double2float_rn(double v) { return (float)v; }

/* ---- Blocks of memory ---- */

extern "C" void *memcpy(void *, const void *, size_t);
extern "C" void *memset(void *, int, size_t);
extern "C" void *memmove(void *, const void *, size_t);

/* ---- Hooks: where the compiler's instrumentation ends ---- */

#if GN_SIM_CHECKS

/*
 * The names are the thread sanitizer's, but hidden in this object, so that no sanitizer run time is
 * needed, nor disturbed where there is one. They are written in assembly because a compiler does
 * not let its own functions be defined hidden, and because fifty small functions would take it
 * longer than the kernel. Each adds a size, flags and its caller's place to the address, and goes
 * on to gn_sim_hook.
 */
extern "C" __attribute__((visibility("hidden"), used, noinline)) GN_SIM_UNCHECKED void
gn_sim_hook(const void *address, unsigned long nbytes, unsigned flags, const void *site)
{
    gn_sim_bridge_now->access(address, nbytes, flags, site);
}
static_assert(GN_SIM_WRITE == 1 && GN_SIM_ALIGNED == 4, "as in the numbers below");

#if defined(__x86_64__)
#define GN_SIM_HOOK_SIZE(n) "movl $" #n ", %esi\n"
#define GN_SIM_HOOK_GO(flags) "movl $" #flags ", %edx\nmovq (%rsp), %rcx\njmp gn_sim_hook\n"
#define GN_SIM_HOOK_RETURN "ret\n"
#elif defined(__aarch64__)
#define GN_SIM_HOOK_SIZE(n) "mov x1, #" #n "\n"
#define GN_SIM_HOOK_GO(flags) "mov w2, #" #flags "\nmov x3, x30\nb gn_sim_hook\n"
#define GN_SIM_HOOK_RETURN "ret\n"
#else
#error "SIM_GPU_CHECK=on is not known on this processor: set it to off"
#endif

#define GN_SIM_HOOK(name, code)                                                                    \
    ".globl __tsan_" #name "\n.hidden __tsan_" #name "\n.type __tsan_" #name                       \
    ", %function\n__tsan_" #name ":\n" code
#define GN_SIM_HOOKS(n)                                                                            \
    GN_SIM_HOOK(read##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(4))                                    \
    GN_SIM_HOOK(write##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(5))                                   \
    GN_SIM_HOOK(read_write##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(5))                              \
    GN_SIM_HOOK(volatile_read##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(12))                          \
    GN_SIM_HOOK(volatile_write##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(13))                         \
    GN_SIM_HOOK(unaligned_read##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(0))                          \
    GN_SIM_HOOK(unaligned_write##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(1))                         \
    GN_SIM_HOOK(unaligned_read_write##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(1))                    \
    GN_SIM_HOOK(unaligned_volatile_read##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(8))                 \
    GN_SIM_HOOK(unaligned_volatile_write##n, GN_SIM_HOOK_SIZE(n) GN_SIM_HOOK_GO(9))
__asm__(".text\n" GN_SIM_HOOKS(1) GN_SIM_HOOKS(2) GN_SIM_HOOKS(4) GN_SIM_HOOKS(8) GN_SIM_HOOKS(16)
        GN_SIM_HOOK(read_range, GN_SIM_HOOK_GO(0))
        GN_SIM_HOOK(write_range, GN_SIM_HOOK_GO(1))
        GN_SIM_HOOK(vptr_read, GN_SIM_HOOK_SIZE(8) GN_SIM_HOOK_GO(4))
        GN_SIM_HOOK(vptr_update, GN_SIM_HOOK_SIZE(8) GN_SIM_HOOK_GO(5))
        GN_SIM_HOOK(init, GN_SIM_HOOK_RETURN)
        GN_SIM_HOOK(func_entry, GN_SIM_HOOK_RETURN)
        GN_SIM_HOOK(func_exit, GN_SIM_HOOK_RETURN)
        GN_SIM_HOOK(atomic_thread_fence, GN_SIM_HOOK_RETURN)
        GN_SIM_HOOK(atomic_signal_fence, GN_SIM_HOOK_RETURN));

/*
 * Copies that the compiler leaves as calls end here and are seen like any other access. The bytes
 * are moved by the C library under the names that its checked variants have, as ours are taken;
 * through a volatile pointer, as a compiler that saw the call would turn it back into ours.
 */
extern "C" void *__memcpy_chk(void *, const void *, size_t, size_t);
extern "C" void *__memmove_chk(void *, const void *, size_t, size_t);
extern "C" void *__memset_chk(void *, int, size_t, size_t);
#define GN_SIM_COPY(name, type, is_copy)                                                           \
    extern "C" __attribute__((visibility("hidden"), used, noinline)) GN_SIM_UNCHECKED void *       \
    gn_sim_hook_##name(void *to, type from, size_t nbytes)                                         \
    {                                                                                              \
        const void *site = __builtin_return_address(0);                                            \
        if (nbytes != 0 && is_copy)                                                                \
            gn_sim_bridge_now->access((const void *)(size_t)from, nbytes, 0, site);                \
        if (nbytes != 0)                                                                           \
            gn_sim_bridge_now->access(to, nbytes, GN_SIM_WRITE, site);                             \
        void *(*volatile move)(void *, type, size_t, size_t) = __##name##_chk;                     \
        return move(to, from, nbytes, ~(size_t)0);                                                 \
    }                                                                                              \
    __asm__(".globl " #name "\n.hidden " #name "\n.set " #name ", gn_sim_hook_" #name);
GN_SIM_COPY(memcpy, const void *, true)
GN_SIM_COPY(memmove, const void *, true)
GN_SIM_COPY(memset, int, false)

#endif

/* ---- The table that the engine reads ---- */

/* The block's dynamic shared memory; source.c gives each `extern __shared__` array this address. */
__asm__(".local gn_sim_dynamic_shared\n"
        ".comm gn_sim_dynamic_shared, 232448, 128\n");
static_assert(GN_SIM_DYNAMIC_SHARED_BYTES == 232448, "as in the line above");
extern char gn_sim_dynamic_bytes[] __asm__("gn_sim_dynamic_shared");

template <unsigned... I> struct gn_sim_sequence {};
template <unsigned N, unsigned... I> struct gn_sim_count : gn_sim_count<N - 1, N - 1, I...> {};
template <unsigned... I> struct gn_sim_count<0, I...> { typedef gn_sim_sequence<I...> type; };

/* How a kernel of this type is called with pointers to its arguments, and what they are. */
template <class F> struct gn_sim_signature;
template <class... A> struct gn_sim_signature<void (*)(A...)> {
    static constexpr unsigned count = sizeof...(A);
    static constexpr unsigned sizes[] = {(unsigned)sizeof(A)..., 0};
    static constexpr unsigned alignments[] = {(unsigned)alignof(A)..., 0};
    template <unsigned... I>
    static GN_SIM_UNCHECKED void spread(void (*function)(), void **arguments,
                                                              gn_sim_sequence<I...>)
    {
        (void)arguments;
        ((void (*)(A...))function)(*(A *)arguments[I]...);
    }
    static GN_SIM_UNCHECKED void call(void (*function)(), void **arguments)
    {
        spread(function, arguments, typename gn_sim_count<sizeof...(A)>::type());
    }
};
template <class... A> constexpr unsigned gn_sim_signature<void (*)(A...)>::sizes[];
template <class... A> constexpr unsigned gn_sim_signature<void (*)(A...)>::alignments[];

constexpr unsigned gn_sim_first(unsigned value) { return value; }
template <class... Rest> constexpr unsigned gn_sim_first(unsigned value, Rest...) { return value; }

#define GN_SIM_ENTRY(text, max_threads, ...)                                                       \
    {                                                                                              \
        text, (void (*)()) & __VA_ARGS__, gn_sim_signature<decltype(&__VA_ARGS__)>::call,          \
            gn_sim_signature<decltype(&__VA_ARGS__)>::sizes,                                       \
            gn_sim_signature<decltype(&__VA_ARGS__)>::alignments,                                  \
            gn_sim_signature<decltype(&__VA_ARGS__)>::count, max_threads                           \
    }
