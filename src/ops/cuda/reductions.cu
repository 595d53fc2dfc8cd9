/*
 * reductions.cu: the reductions of rows and columns: what each begins with, and how two accumulators are joined. Goes behind
 * elements.cu, and before reduce.cu or rows.cu.
 */

/* The smallest and the largest number of a type. */
template <class T> struct limits {
    static const bool is_signed = (T)-1 < (T)0;
    ELEMENT T low()
    {
        if constexpr (is_floating<T>::value)
            return sizeof(T) == 4 ? (T)__uint_as_float(0xff800000u) : (T)__longlong_as_double((int64)0xfff0000000000000ull);
        else
            return is_signed ? (T)((uint64)1 << (8 * sizeof(T) - 1)) : (T)0;
    }
    ELEMENT T high()
    {
        if constexpr (is_floating<T>::value)
            return -low();
        else
            return (T)~low();
    }
};
template <> struct limits<bool> {
    ELEMENT bool low() { return false; }
    ELEMENT bool high() { return true; }
};

struct reduce_sum {
    template <class T> ELEMENT T start() { return (T)0; }
    template <class T> ELEMENT T join(T x, T y) { return op_add<T>(x, y); }
};
typedef reduce_sum reduce_mean;
struct reduce_prod {
    template <class T> ELEMENT T start() { return (T)1; }
    template <class T> ELEMENT T join(T x, T y) { return op_multiply<T>(x, y); }
};
struct reduce_any {
    template <class T> ELEMENT T start() { return (T)0; }
    template <class T> ELEMENT T join(T x, T y) { return (T)(x || y); }
};
struct reduce_all {
    template <class T> ELEMENT T start() { return (T)1; }
    template <class T> ELEMENT T join(T x, T y) { return (T)(x && y); }
};
struct reduce_amax {
    static const bool is_largest = true;
    template <class T> ELEMENT T start() { return limits<T>::low(); }
    template <class T> ELEMENT T join(T x, T y) { return op_maximum<T>(x, y); }
};
struct reduce_amin {
    static const bool is_largest = false;
    template <class T> ELEMENT T start() { return limits<T>::high(); }
    template <class T> ELEMENT T join(T x, T y) { return op_minimum<T>(x, y); }
};
