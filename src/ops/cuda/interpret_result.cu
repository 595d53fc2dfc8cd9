/*
 * interpret_result.cu: the results of tier 0's reductions, whose type is an argument. Goes behind elements.cu.
 */

/* Numbers of types, as in genesis/tensor.h. */
enum { BOOL, UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, UINT16, UINT32, UINT64 };

template <class T, class X> ELEMENT void store_result(void *result, int64 at, X x)
{
    ((T *)result)[at] = convert<T>(x);
}

/* Stores a number as an element of a type. */
template <class X> ELEMENT void store_as(int type, void *result, int64 at, X x)
{
    switch (type) {
    case BOOL: ((uint8 *)result)[at] = convert<bool>(x); break;
    case UINT8: store_result<uint8>(result, at, x); break;
    case INT8: store_result<int8>(result, at, x); break;
    case INT16: store_result<int16>(result, at, x); break;
    case INT32: store_result<int32>(result, at, x); break;
    case INT64: store_result<int64>(result, at, x); break;
    case FLOAT16: store_result<float16>(result, at, x); break;
    case BFLOAT16: store_result<bfloat16>(result, at, x); break;
    case FLOAT32: store_result<float32>(result, at, x); break;
    case FLOAT64: store_result<float64>(result, at, x); break;
    case UINT16: store_result<uint16>(result, at, x); break;
    case UINT32: store_result<uint32>(result, at, x); break;
    case UINT64: store_result<uint64>(result, at, x); break;
    }
}
