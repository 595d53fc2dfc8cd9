/*
 * keys.cu: elements as unsigned integers in the same order, and back: src/ops/cpu/keys.h says which.
 *
 * -0 and 0 have one key, and all NaNs have the largest: who needs the very bits takes them from the elements.
 */
ELEMENT unsigned key_of(uint8 x) { return x; }
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
