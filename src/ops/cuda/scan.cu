/*
 * scan.cu: cumulative sums, products, maxima and minima. In front:
 *
 *   SCAN_SUM, SCAN_PRODUCT, SCAN_MAXIMUM or SCAN_MINIMUM
 *   SCAN_REAL     of floating elements; SCAN_DOUBLE: of double
 *   result        the type of the results, as it lies in memory: int64, or that of the floating elements
 *
 * An array is [outer][length][inner], and is scanned along the middle; rows are counted over outer and inner. Rows of
 * neighbouring elements are scanned by a warp or a block each, 4 elements a thread at a time; others, and very short
 * ones, by a thread each. Where rows are few, they are cut into parts: a first launch makes the totals of parts, and
 * in the second each part begins with those before it.
 *
 * Sums are accumulated in int64 or double. A floating product has an exponent of its own: a part's product may be too
 * large for double where the row's is not, and 0 times infinity would be NaN. What one has of its number is moved there
 * (running_settle) no more often than it must be:
 *
 *   the neighbours of a thread, unless they are double      2^-596 to 2^512: as they are
 *   settled numbers                                         1 to 2
 *   those of a block joined                                 1 to 2^256
 *   with what is carried to it, and neighbours              2^-596 to 2^769
 *
 * The result of an extreme is its place, the last of equal ones; the element there is stored as it is.
 */
#define ITEMS 4 /* neighbours that a thread has */
#define BATCH 8 /* elements of its own row that a thread loads before it uses them */

#if defined(SCAN_MAXIMUM) || defined(SCAN_MINIMUM)
#define SCAN_EXTREME
#ifdef SCAN_REAL
typedef double compared;
#else
template <class T> struct wide_of {
    typedef int64 type;
};
template <> struct wide_of<uint64> {
    typedef uint64 type;
};
typedef wide_of<element>::type compared;
#endif
struct running {
    compared x;
    int64 at; /* -1: none yet */
};
ELEMENT running running_start() { return running{0, -1}; }
/* NaN wins, and the later one of two that are equal, in whichever order they come. */
ELEMENT running running_join(running a, running b)
{
    const bool is_later = b.at > a.at;
    if (a.at < 0 || b.at < 0)
        return is_later ? b : a;
#ifdef SCAN_MAXIMUM
    const bool is_beyond = b.x > a.x;
#else
    const bool is_beyond = b.x < a.x;
#endif
    if (a.x != a.x || b.x != b.x)
        return b.x != b.x && (a.x == a.x || is_later) ? b : a;
    return is_beyond || (a.x == b.x && is_later) ? b : a;
}
ELEMENT running running_settle(running a) { return a; }
ELEMENT running running_of(element e, int64 at)
{
    return running{(compared)number(e), at};
}
ELEMENT result result_of(running a) { return a.at; }
ELEMENT running running_up(running a, int lanes)
{
    return running{__shfl_up_sync(0xffffffffu, a.x, lanes), __shfl_up_sync(0xffffffffu, a.at, lanes)};
}
ELEMENT running running_from(running a, int lane)
{
    return running{__shfl_sync(0xffffffffu, a.x, lane), __shfl_sync(0xffffffffu, a.at, lane)};
}
#elif defined(SCAN_SUM) || !defined(SCAN_REAL)
struct running {
#ifdef SCAN_REAL
    double x;
#else
    uint64 x;
#endif
};
ELEMENT running running_start()
{
#ifdef SCAN_SUM
    return running{0};
#else
    return running{1};
#endif
}
ELEMENT running running_join(running a, running b)
{
#ifdef SCAN_SUM
    return running{a.x + b.x};
#else
    return running{a.x * b.x};
#endif
}
ELEMENT running running_of(element e, int64)
{
#ifdef SCAN_REAL
    return running{(double)number(e)};
#else
    return running{(uint64)(int64)e};
#endif
}
ELEMENT result result_of(running a)
{
#ifdef SCAN_REAL
    return convert<result>(a.x);
#else
    return (result)a.x;
#endif
}
ELEMENT running running_settle(running a) { return a; }
ELEMENT running running_up(running a, int lanes) { return running{__shfl_up_sync(0xffffffffu, a.x, lanes)}; }
ELEMENT running running_from(running a, int lane) { return running{__shfl_sync(0xffffffffu, a.x, lane)}; }
#else
/* x * 2^e; settled, x is from 1 to before 2, or 0, infinity or NaN. */
struct running {
    double x;
    int64 e;
};
ELEMENT running running_start() { return running{1, 0}; }
ELEMENT running running_join(running a, running b) { return running{a.x * b.x, a.e + b.e}; }
ELEMENT running running_settle(running a)
{
    const int high = __double2hiint(a.x), own = high >> 20 & 0x7ff;
    if (own == 0 || own == 0x7ff)
        return a;
    return running{__hiloint2double((high & ~(0x7ff << 20)) | 0x3ff << 20, __double2loint(a.x)), a.e + own - 0x3ff};
}
ELEMENT running running_of(element e, int64)
{
    const double x = (double)number(e);
    return running_settle(absolute(x) < 0x1p-1022 ? running{x * 0x1p54, -54} : running{x, 0});
}
ELEMENT double power_of_two(int e) { return __hiloint2double((e + 0x3ff) << 20, 0); }
ELEMENT result result_of(running a)
{
    /* In two steps, each of which double has: from the largest number to the smallest. */
    const int e = a.e > 2000 ? 2000 : a.e < -2000 ? -2000 : (int)a.e;
    return convert<result>(a.x * power_of_two(e / 2) * power_of_two(e - e / 2));
}
ELEMENT running running_up(running a, int lanes)
{
    return running{__shfl_up_sync(0xffffffffu, a.x, lanes), __shfl_up_sync(0xffffffffu, a.e, lanes)};
}
ELEMENT running running_from(running a, int lane)
{
    return running{__shfl_sync(0xffffffffu, a.x, lane), __shfl_sync(0xffffffffu, a.e, lane)};
}
#endif

/* What a thread has of its neighbours. */
#if defined(SCAN_PRODUCT) && defined(SCAN_REAL) && !defined(SCAN_DOUBLE)
typedef double few;
ELEMENT few few_of(element e, int64) { return (double)number(e); }
ELEMENT few few_start() { return 1; }
ELEMENT few few_join(few a, few b) { return a * b; }
ELEMENT running few_running(few a) { return running{a, 0}; }
#else
typedef running few;
ELEMENT few few_of(element e, int64 at) { return running_of(e, at); }
ELEMENT few few_start() { return running_start(); }
ELEMENT few few_join(few a, few b) { return running_join(a, b); }
ELEMENT running few_running(few a) { return a; }
#endif

struct arguments {
    const element *in;
    result *out;
    int64 rows, length, inner;
    int64 parts, chunk; /* of a row, and elements of each */
    int64 threads;      /* of a row: 1, 32 or 256 */
    int64 is_packed;    /* every fourth element of a row, and each part, begins where 4 can be read at once */
    int64 is_total;     /* of parts: nothing else is made */
    running *totals;    /* [parts][rows] */
    element *values;    /* of extremes: as `out` */
};

/* What the threads of a row hold, settled, from the first to each: before it, and of all. `shared` is for a whole
 * block. */
ELEMENT void threads_scan(running own, int threads, running *shared, running &before, running &all)
{
    running sum = own;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const running lower = running_up(sum, lanes);
        if (lane >= lanes)
            sum = running_join(lower, sum);
    }
    before = running_up(sum, 1);
    if (lane == 0)
        before = running_start();
    all = running_from(sum, 31);
    if (threads == 32)
        return;
    if (lane == 0)
        shared[warp] = all;
    __syncthreads();
    running lower = running_start();
    for (int k = 0; k < 8; k++) {
        if (k == warp)
            before = running_join(lower, before);
        lower = running_join(lower, shared[k]);
    }
    all = lower;
    __syncthreads();
}

/* A thread for each row. */
ELEMENT void thread_scan(const arguments &a, int64 row, int64 first, int64 last)
{
    const int64 base = row / a.inner * a.length * a.inner + row % a.inner;
    running sum = running_start();
    if (!a.is_total)
        for (int part = 0; part < (int)blockIdx.y; part++)
            sum = running_settle(running_join(sum, a.totals[part * a.rows + row]));
    for (int64 i = first; i < last; i += BATCH) {
        const int64 at = base + i * a.inner;
        element e[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (i + k < last)
                e[k] = a.in[at + k * a.inner];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            if (i + k >= last)
                break;
            sum = running_settle(running_join(sum, few_running(few_of(e[k], i + k))));
            if (a.is_total)
                continue;
            a.out[at + k * a.inner] = result_of(sum);
#ifdef SCAN_EXTREME
            a.values[at + k * a.inner] = a.in[base + sum.at * a.inner];
#endif
        }
    }
    if (a.is_total)
        a.totals[(int64)blockIdx.y * a.rows + row] = sum;
}

/* The totals before a part: by all threads of its block. */
ELEMENT running totals_join(const arguments &a, int64 row, running *shared)
{
    const int each = ((int)blockIdx.y + 255) / 256;
    running own = running_start(), before, all;
    for (int k = 0; k < each; k++) {
        const int part = (int)threadIdx.x * each + k;
        if (part < (int)blockIdx.y)
            own = running_settle(running_join(own, a.totals[part * a.rows + row]));
    }
    threads_scan(own, 256, shared, before, all);
    return running_settle(all);
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ running shared[8];
    const int threads = (int)a.threads, lane = threadIdx.x % threads;
    const int64 row = (int64)blockIdx.x * (256 / threads) + threadIdx.x / threads;
    const int64 first = (int64)blockIdx.y * a.chunk;
    const int64 last = first + a.chunk < a.length ? first + a.chunk : a.length;
    if (row >= a.rows)
        return;
    if (threads == 1) {
        thread_scan(a, row, first, last);
        return;
    }
    running carry = running_start(), before, all;
    if (blockIdx.y > 0 && !a.is_total)
        carry = totals_join(a, row, shared);
    const element *in = a.in + row * a.length;
    result *out = a.out + row * a.length;
    for (int64 base = first; base < last; base += threads * ITEMS) {
        const int64 mine = base + lane * ITEMS;
        const bool is_whole = a.is_packed && mine + ITEMS <= last;
        few sums[ITEMS];
        pack<element, ITEMS> loaded;
        pack<result, ITEMS> made;
        if (is_whole)
            loaded = *(const pack<element, ITEMS> *)(in + mine);
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            if (!is_whole && mine + k < last)
                loaded.item[k] = in[mine + k];
            sums[k] = mine + k < last ? few_of(loaded.item[k], mine + k) : few_start();
        }
#pragma unroll
        for (int k = 1; k < ITEMS; k++)
            sums[k] = few_join(sums[k - 1], sums[k]);
        if (a.is_total) { /* each thread keeps its own, up to the end */
            carry = running_settle(running_join(carry, few_running(sums[ITEMS - 1])));
            continue;
        }
        threads_scan(running_settle(few_running(sums[ITEMS - 1])), threads, shared, before, all);
        before = running_join(carry, before);
        carry = running_settle(running_join(carry, all));
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            made.item[k] = result_of(running_join(before, few_running(sums[k])));
            if (!is_whole && mine + k < last)
                out[mine + k] = made.item[k];
#ifdef SCAN_EXTREME
            if (mine + k < last)
                a.values[row * a.length + mine + k] = in[made.item[k]];
#endif
        }
        if (is_whole)
            *(pack<result, ITEMS> *)(out + mine) = made;
    }
    if (!a.is_total)
        return;
    threads_scan(carry, threads, shared, before, all);
    if (lane == 0)
        a.totals[(int64)blockIdx.y * a.rows + row] = running_settle(all);
}
