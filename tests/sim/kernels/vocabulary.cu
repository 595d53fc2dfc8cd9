/*
 * vocabulary.cu: the words of the simulator's vocabulary, so that a compiler of either kind says
 * which it does not know. What can be said exactly is also compared by the test.
 */
extern "C" __global__ void bits(const unsigned *from, unsigned long long *to)
{
    unsigned a = from[0], b = from[1], c = from[2];
    long long wide = ((long long)a << 32) | b;
    int i = 0;
    to[i++] = __popc(a);
    to[i++] = __popcll(wide);
    to[i++] = __clz((int)c) + __clz(0);
    to[i++] = __clzll(wide) + __clzll(0);
    to[i++] = __ffs((int)c) + __ffs(0);
    to[i++] = __ffsll(wide);
    to[i++] = __brev(a);
    to[i++] = __brevll(wide);
    to[i++] = __byte_perm(a, b, 0x7140);
    to[i++] = __funnelshift_l(a, b, 37);
    to[i++] = __funnelshift_r(a, b, 37);
    to[i++] = __funnelshift_lc(a, b, 37);
    to[i++] = __funnelshift_rc(a, b, 37);
    to[i++] = __umulhi(a, b);
    to[i++] = (unsigned)__mulhi((int)a, (int)b);
    to[i++] = __umul64hi(wide, wide);
    to[i++] = (unsigned long long)__mul64hi(wide, -wide);
    to[i++] = (unsigned)__mul24((int)a, (int)b);
    to[i++] = __umul24(a, b);
    to[i++] = __sad((int)a, (int)b, c);
    to[i++] = (unsigned)__hadd((int)a, (int)b);
    to[i++] = (unsigned)__dp4a((int)a, (int)b, (int)c);
    to[i++] = __dp4a(a, b, c);
    to[i++] = (unsigned)min((int)a, (int)b) + max(a, b) + (unsigned)abs((int)a);
}

extern "C" __global__ void conversions(const float *from, long long *to)
{
    float f = from[0], nan = from[1], huge = from[2];
    double d = (double)f;
    int i = 0;
    to[i++] = __float2int_rn(f);
    to[i++] = __float2int_rz(f);
    to[i++] = __float2int_rd(f);
    to[i++] = __float2int_ru(f);
    to[i++] = __float2int_rn(nan);
    to[i++] = __float2int_rn(huge);
    to[i++] = __float2uint_rn(f);
    to[i++] = __float2ll_rn(huge);
    to[i++] = __double2int_rn(d);
    to[i++] = __double2ll_rz(d);
    to[i++] = __float_as_int(f);
    to[i++] = __float_as_uint(__int_as_float(__float_as_int(f)));
    to[i++] = __double_as_longlong(d);
    to[i++] = (long long)__longlong_as_double(__double_as_longlong(d));
    to[i++] = __double2hiint(d) ^ __double2loint(d);
    to[i++] = (long long)__hiloint2double(__double2hiint(d), __double2loint(d));
    to[i++] = (long long)(__int2float_rn(7) + __uint2float_rn(8u) + __ll2float_rn(9));
    to[i++] = (long long)(__int2double_rn(7) + __uint2double_rn(8u));
    to[i++] = isnan(nan) + 2 * isinf(f) + 4 * isfinite(f) + 8 * signbit(f);
}

/* Exact in any IEEE arithmetic. */
extern "C" __global__ void arithmetic(const float *from, float *to)
{
    float a = from[0], b = from[1], c = from[2];
    double d = (double)a;
    int i = 0;
    to[i++] = __fadd_rn(a, b);
    to[i++] = __fsub_rn(a, b);
    to[i++] = __fmul_rn(a, b);
    to[i++] = __fdiv_rn(a, b);
    to[i++] = __fmaf_rn(a, b, c);
    to[i++] = fmaf(a, b, c);
    to[i++] = __fsqrt_rn(b);
    to[i++] = __frcp_rn(b);
    to[i++] = (float)(__dadd_rn(d, d) + __dmul_rn(d, d) + __dsub_rn(d, 1.0) + __ddiv_rn(d, 3.0));
    to[i++] = (float)__fma_rn(d, d, d) + (float)__dsqrt_rn(4.0);
    to[i++] = fminf(a, b) + fmaxf(a, b) + fabsf(a);
    to[i++] = floorf(a) + ceilf(a) + truncf(a) + roundf(a) + rintf(a) + nearbyintf(a);
    to[i++] = fmodf(b, 2.5f) + remainderf(b, 2.5f) + copysignf(b, a) + fdimf(b, a);
    to[i++] = ldexpf(a, 3) + scalbnf(a, -2) + __saturatef(b) + __saturatef(a);
    to[i++] = (float)(fmin(d, 1.0) + fmax(d, 1.0) + fabs(d) + floor(d) + ceil(d) + trunc(d));
    to[i++] = floor(a) + ceil(a) + fabs(a) + sqrt(b); /* the float ones */
    int exponent;
    float fraction = frexpf(b, &exponent), whole;
    to[i++] = fraction + (float)exponent + modff(b, &whole) + whole;
    to[i++] = (float)(lrintf(a) + llrintf(b) + lroundf(a) + llroundf(b) + ilogbf(b));
    to[i++] = min(a, b) + max(a, b) + (float)min(1ll, 2ll) + (float)max(3ull, 2ull);
}

/* Close to the host's, not the same. */
extern "C" __global__ void functions(const float *from, float *to)
{
    float a = from[0], s, c;
    double d = (double)a;
    int i = 0;
    to[i++] = expf(a) + exp2f(a) + exp10f(a) + expm1f(a) + exp(a) + (float)exp(d);
    to[i++] = logf(a) + log2f(a) + log10f(a) + log1pf(a) + log(a) + (float)log(d);
    to[i++] = sinf(a) + cosf(a) + tanf(a) + (float)sin(d) + sinpif(a) + cospif(a);
    to[i++] = asinf(a) + acosf(a) + atanf(a) + atan2f(a, 2.0f);
    to[i++] = sinhf(a) + coshf(a) + tanhf(a) + asinhf(a) + acoshf(1.0f + a) + atanhf(a);
    to[i++] = erff(a) + erfcf(a) + lgammaf(a) + tgammaf(a) + normcdff(a) + j0f(a) + y1f(a);
    to[i++] = sqrtf(a) + rsqrtf(a) + cbrtf(a) + rcbrtf(a) + hypotf(a, 3.0f);
    to[i++] = powf(a, 1.5f) + pow(a, 2.5f) + (float)pow(d, 0.5);
    to[i++] = __expf(a) + __logf(a) + __log2f(a) + __log10f(a) + __sinf(a) + __cosf(a);
    to[i++] = __powf(a, 2.0f) + __fdividef(a, 3.0f) + __tanf(a) + __exp10f(a) + fdividef(a, 2.0f);
    sincosf(a, &s, &c);
    to[i++] = s + c;
    __sincosf(a, &s, &c);
    to[i++] = s + c + (float)rsqrt(d) + __frsqrt_rn(a);
}

/* The vector types by size and alignment, and loads and stores that name a cache. */
extern "C" __global__ void vectors(const float4 *from, float4 *to, int *sizes)
{
    char4 c = make_char4(1, 2, 3, 4);
    uchar2 uc = make_uchar2(5, 6);
    short4 s = make_short4(1, 2, 3, 4);
    ushort3 us = make_ushort3(7, 8, 9);
    int2 i2 = make_int2(c.x, uc.y);
    int3 i3 = make_int3(s.z, us.z, 3);
    int4 i4 = make_int4(1, 2, 3, 4);
    uint2 u2 = make_uint2(1, 2);
    uint4 u4 = make_uint4(u2.x, 2, 3, 4);
    longlong2 ll = make_longlong2(1, 2);
    ulonglong2 ull = make_ulonglong2(3, 4);
    float2 f2 = make_float2(i2.x, i3.y);
    float3 f3 = make_float3(i4.x, u4.w, f2.x);
    double2 d = make_double2(ll.x, ull.y);
    dim3 size(4, 5);
    float4 v = __ldg(from), w = __ldcs(from + 1), x = __ldcg(from + 2);
    __stcs(to, make_float4(v.x + w.x, v.y + x.y, f3.z + (float)d.y, (float)(size.y * size.z)));
    __stcg(to + 1, v);
    sizes[0] = sizeof(float3) * 100 + alignof(float4);
    sizes[1] = sizeof(double4) * 100 + alignof(double2);
    sizes[2] = sizeof(char4) * 100 + alignof(char4) + (int)(alignof(short4) * 10);
    sizes[3] = sizeof(longlong4) + (int)warpSize + (int)(clock64() * 0);
    size_t n = sizeof(long long);
    sizes[4] = (int)n + (int)(__activemask() >> (threadIdx.x & 31) & 1);
    __threadfence_block();
    __threadfence_system();
    __nanosleep(10);
    if (sizes[4] < 0)
        printf("%d\n", sizes[4]);
}

struct large {
    int values[20];
};

/* Copies of other than one word. */
extern "C" __global__ void copies(const large *from, large *to, int nbytes)
{
    to[0] = from[0];
    memcpy(&to[1], &from[1], nbytes);
    memset(&to[2], 7, nbytes);
}
