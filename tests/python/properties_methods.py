"""The properties of what only tensors have: keys, copies, conversions, facts about themselves."""

from __future__ import annotations

import numpy
from hypothesis import strategies as st
from tensor_properties import check, prop, same
from tensor_strategies import DTYPES, FLOATS, broadcast_shapes, pairs, rounded, shapes

import genesis

CASTS = {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "half": "float16", "bfloat16": "bfloat16", "float": "float32",
    "double": "float64",
}  # fmt: skip


@prop(*(f"Tensor.{name}" for name in (*CASTS, "to")))
def casts(name, draw):
    """Floating numbers that an integer type does not have are open."""
    method = name.removeprefix("Tensor.")
    dtype = CASTS.get(method) or draw(st.sampled_from(DTYPES))
    pair = draw(pairs())
    if pair.dtype in FLOATS and dtype not in (*FLOATS, "bool"):
        pair = draw(pairs(pair.array.shape, pair.dtype, is_tame=True))
        if dtype[0] == "u":
            pair = pair._replace(tensor=pair.tensor.abs(), array=numpy.abs(pair.array))
    arguments = (getattr(genesis, dtype),) if method == "to" else ()
    made = getattr(pair.tensor, method)(*arguments)
    check(name, made, rounded(pair.array, dtype), dtype)
    assert (made is pair.tensor) == (dtype == pair.dtype)


@prop("Tensor.T", "Tensor.mT", "clone", "Tensor.detach")
def whole(name, draw):
    pair = draw(pairs(draw(shapes(2 if name == "Tensor.mT" else 0))))
    if name in ("Tensor.T", "Tensor.mT"):
        expected = pair.array.T if name == "Tensor.T" else pair.array.swapaxes(-1, -2)
        return same(name, getattr(pair.tensor, name.removeprefix("Tensor.")), expected, pair)
    made = getattr(pair.tensor, name.removeprefix("Tensor."))()
    same(name, made, pair.array, pair)
    if name == "Tensor.detach":
        assert made.strides == pair.tensor.strides and made.data_ptr() == pair.tensor.data_ptr()
    else:
        assert made.data_ptr() != pair.tensor.data_ptr()
        assert made.is_contiguous() or not pair.tensor.is_contiguous()
    return None


@prop("Tensor.item", "Tensor.tolist", "Tensor.numpy")
def read(name, draw):
    is_one = name == "Tensor.item"
    dtype = draw(st.sampled_from([one for one in DTYPES if one != "bfloat16"]))
    pair = draw(pairs((1,) * draw(st.integers(0, 3)) if is_one else None, dtype))
    made = getattr(pair.tensor, name[7:])()
    if name == "Tensor.numpy":
        assert made.dtype == pair.array.dtype and made.shape == pair.array.shape
        assert made.ctypes.data == pair.tensor.data_ptr() or not made.size
        numpy.testing.assert_array_equal(made, pair.array)
    else:
        expected = pair.array.item() if is_one else pair.array.tolist()
        assert repr(made) == repr(expected)  # types and NaN as well


@prop("Tensor.copy_", "Tensor.fill_", "Tensor.zero_")
def written(name, draw):
    """Into a view with any strides of a tensor, whose other elements stay."""
    target, source = draw(broadcast_shapes())
    target = numpy.broadcast_shapes(target, source)
    base = draw(pairs(tuple(2 * size + 1 for size in target), is_tame=True))
    own, array = genesis.tensor(base.tensor), base.array.copy()
    key = tuple(slice(1, 2 * size, 2) for size in target) or ...
    key = key[:-1] + (slice(2 * target[-1] - 1, 0, -2),) if target and target[-1] else key
    if name == "Tensor.copy_":
        value = draw(pairs(source, base.dtype, is_tame=True))
        assert own[key].copy_(value.tensor).shape == target
        array[key] = value.array
    else:
        (own[key].fill_(1) if name == "Tensor.fill_" else own[key].zero_())
        array[key] = 1 if name == "Tensor.fill_" else 0
    same(name, own, array, base)


@st.composite
def keys(draw, shape) -> tuple:
    """Integers, slices with any step, None and an Ellipsis."""
    key = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if size and draw(st.booleans()):
            key.append(draw(st.integers(-size, size - 1)))
        else:
            ends = st.none() | st.integers(-size - 2, size + 2)
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
            key.append(slice(draw(ends), draw(ends), step))
        key += [None] * draw(st.sampled_from([0, 0, 0, 1]))
    if draw(st.booleans()):
        key.append(...)
    return tuple(key)


@prop("Tensor.__getitem__", "Tensor.__setitem__")
def indexed(name, draw):
    pair = draw(pairs())
    key = draw(keys(pair.array.shape))
    if name == "Tensor.__getitem__":
        return same(name, pair.tensor[key], pair.array[key], pair)
    own, array = genesis.tensor(pair.tensor), pair.array.copy()
    value = draw(pairs(numpy.shape(array[key]), pair.dtype))
    own[key] = value.tensor
    array[key] = value.array
    return same(name, own, array, pair)


@prop(*(f"Tensor.{name}" for name in (
    "dim", "element_size", "is_contiguous", "nbytes", "ndim", "shape", "size", "stride",
    "storage_offset", "strides", "data_ptr", "dtype", "device",
)), "numel")  # fmt: skip
def described(name, draw):
    pair = draw(pairs())
    x, array = pair.tensor, pair.array
    size = genesis.zeros(1, dtype=pair.dtype).element_size()
    assert x.dim() == x.ndim == array.ndim and x.shape == x.size() == array.shape
    assert x.numel() == array.size and x.nbytes == array.size * x.element_size()
    assert x.element_size() == size == x.dtype.itemsize and x.dtype.name == pair.dtype
    assert x.strides == x.stride() and x.device == "cpu"
    assert [x.stride(i) for i in range(-x.ndim, 0)] == list(x.strides)
    assert [x.size(i) for i in range(x.ndim)] == list(x.shape)
    if pair.dtype != "bfloat16":
        assert x.is_contiguous() == x.numpy().flags.c_contiguous
    for axis in range(x.ndim):
        if array.size and array.shape[axis] > 1:
            second = x.transpose(0, axis)[1]
            assert second.data_ptr() - x.data_ptr() == x.stride(axis) * size
            assert second.storage_offset() - x.storage_offset() == x.stride(axis)
