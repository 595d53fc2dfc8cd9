"""The properties of functions that are made of others: second names, views, statistics, places."""

from __future__ import annotations

import numpy
from hypothesis import strategies as st
from tensor_properties import both_ways, check, prop, same
from tensor_strategies import (
    DTYPES,
    FLOATS,
    INTEGERS,
    broadcast_pairs,
    broadcast_shapes,
    compute_type,
    elements,
    pairs,
    result_type,
    rounded,
    shapes,
    sum_of,
)

import genesis

SECOND = {
    "absolute": "abs", "divide": "div", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne",
    "subtract": "sub", "true_divide": "div", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
}  # fmt: skip
OF_ONE = {"abs", "neg", "acos", "acosh", "asin", "asinh", "atan", "atanh"}


@prop(*SECOND)
def second_names(name, draw):
    both = draw(broadcast_pairs(dtypes=INTEGERS + FLOATS))
    result_type(*both)  # they have one
    operands = [one.tensor for one in both[: 1 if SECOND[name] in OF_ONE else 2]]
    expected = getattr(genesis, SECOND[name])(*operands)
    made = getattr(genesis if draw(st.booleans()) else genesis.Tensor, name)(*operands)
    check(name, made, elements(expected), expected.dtype.name)


# ---- of elements ----

ONE = {
    "clamp_min": lambda x: numpy.maximum(x, 2), "clamp_max": lambda x: numpy.minimum(x, 2),
    "isposinf": lambda x: x == numpy.inf, "isneginf": lambda x: x == -numpy.inf,
    "frac": lambda x: x - numpy.trunc(x), "nan_to_num": None,
}  # fmt: skip


@prop(*ONE)
def of_one(name, draw):
    pair = draw(pairs(dtype=draw(st.sampled_from(FLOATS if name == "frac" else INTEGERS + FLOATS))))
    array = pair.array
    if name == "nan_to_num":
        largest = genesis.finfo(getattr(genesis, pair.dtype)).max if pair.dtype in FLOATS else 0
        is_odd = pair.dtype in FLOATS
        expected = numpy.nan_to_num(array, posinf=largest, neginf=-largest) if is_odd else array
        return same(name, both_ways(name, draw, pair), expected, pair)
    arguments = (2,) if name.startswith("clamp") else ()
    expected = ONE[name](array)
    dtype = "bool" if name.startswith("is") else pair.dtype
    return check(name, both_ways(name, draw, pair, *arguments), expected, dtype)


@prop("fmod", "fmax", "fmin")
def of_two(name, draw):
    dtypes = INTEGERS[1:] + FLOATS if name == "fmod" else FLOATS
    both = draw(broadcast_pairs(dtypes=dtypes, is_tame=name == "fmod"))
    dtype = result_type(*both)
    x, y = (one.array.astype(compute_type(dtype)) for one in both)
    if name == "fmod":
        both[1] = both[1]._replace(tensor=genesis.where(both[1].tensor == 0, 3, both[1].tensor))
        y = numpy.where(y == 0, 3, y).astype(y.dtype)
        if dtype in FLOATS:  # what is left is not exact where the quotient is large
            made = genesis.fmod(both[0].tensor, both[1].tensor)
            assert made.dtype.name == dtype and bool((made.abs() <= abs(both[1].tensor)).all())
            return
    made = getattr(genesis, name)(both[0].tensor, both[1].tensor)
    check(name, made, getattr(numpy, name)(x, y), dtype)


# ---- views ----


@prop("ravel", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "select", "narrow", "unbind",
      "tensor_split", "diagonal", "Tensor.unfold", "unflatten", "fliplr", "flipud", "rot90",
      "diff", "diag", "trace")  # fmt: skip
def other_views(name, draw):
    least = 2 if name in ("diagonal", "fliplr", "rot90", "diag", "trace") else 1
    most = 2 if name in ("t", "diag", "trace") else 4
    tame = name in ("diff", "trace")
    pair = draw(pairs(draw(shapes(least, most)), is_tame=tame))
    x, array, ndim = pair.tensor, pair.array, pair.array.ndim
    axis, other = (draw(st.integers(-ndim, ndim - 1)) for _ in range(2))
    size = array.shape[axis]
    if name == "ravel":
        return same(name, both_ways(name, draw, pair), array.ravel(), pair)
    if name == "t":
        return same(name, both_ways(name, draw, pair), array.T, pair)
    if name in ("swapaxes", "swapdims"):
        made = both_ways(name, draw, pair, axis, other)
        return same(name, made, array.swapaxes(axis, other), pair)
    if name in ("movedim", "moveaxis"):
        made = both_ways(name, draw, pair, axis, other)
        return same(name, made, numpy.moveaxis(array, axis, other), pair)
    if name == "select" and size:
        at = draw(st.integers(-size, size - 1))
        return same(name, both_ways(name, draw, pair, axis, at), array.take(at, axis), pair)
    if name == "narrow":
        start = draw(st.integers(0, size))
        count = draw(st.integers(0, size - start))
        expected = array.take(range(start, start + count), axis)
        return same(name, both_ways(name, draw, pair, axis, start, count), expected, pair)
    if name in ("unbind", "tensor_split"):
        count = draw(st.integers(1, 5))
        parts = both_ways(name, draw, pair, *([count] if name == "tensor_split" else []), axis)
        expected = numpy.array_split(array, count, axis)
        if name == "unbind":
            expected = list(numpy.moveaxis(array, axis, 0))
        assert len(parts) == len(expected)
        for part, one in zip(parts, expected, strict=True):
            same(name, part, one, pair)
    if name == "diagonal" and axis % ndim != other % ndim:
        offset = draw(st.integers(-9, 9))
        made = both_ways(name, draw, pair, offset, axis, other)
        return same(name, made, array.diagonal(offset, axis, other), pair)
    if name == "Tensor.unfold" and size:
        window, step = draw(st.integers(1, size)), draw(st.integers(1, 4))
        expected = numpy.lib.stride_tricks.sliding_window_view(array, window, axis)
        key = (slice(None),) * (axis % ndim) + (slice(None, None, step),)
        return same(name, x.unfold(axis, window, step), expected[key], pair)
    if name == "unflatten":
        at = axis % ndim
        wide = array.reshape([*array.shape[:at], 1, size, *array.shape[at + 1 :]])
        return same(name, both_ways(name, draw, pair, axis, (1, size)), wide, pair)
    if name in ("fliplr", "flipud"):
        return same(name, both_ways(name, draw, pair), getattr(numpy, name)(array), pair)
    if name == "rot90":
        turns = draw(st.integers(-5, 5))
        return same(name, both_ways(name, draw, pair, turns), numpy.rot90(array, turns), pair)
    if name == "diff" and pair.dtype not in ("float16", "bfloat16"):
        count = draw(st.integers(0, 2))
        return same(
            name, both_ways(name, draw, pair, count, axis), numpy.diff(array, count, axis), pair
        )
    if name == "diag":
        offset = draw(st.integers(-9, 9))
        row = array[0] if array.shape[0] and draw(st.booleans()) else array
        made = genesis.diag(x[0] if row is not array else x, offset)
        return same(name, made, numpy.diag(row, offset), pair)
    if name == "trace" and pair.dtype in ("bool", *INTEGERS):
        wide = sum_of(pair.dtype)
        return check(name, both_ways(name, draw, pair), numpy.trace(array.astype(wide)), wide)
    return None


@prop("hstack", "vstack", "dstack", "column_stack", "concat", "concatenate", "meshgrid",
      "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors",
      "broadcast_shapes")  # fmt: skip
def several(name, draw):
    dtype = draw(st.sampled_from(DTYPES))
    if name.startswith("broadcast"):
        asked = draw(broadcast_shapes(3))
        made = genesis.broadcast_shapes(*asked)
        assert made == numpy.broadcast_shapes(*asked)
        for shape in asked if name == "broadcast_tensors" else []:
            pair = draw(pairs(shape, dtype))
            wide, _ = genesis.broadcast_tensors(pair.tensor, genesis.zeros(made))
            same(name, wide, numpy.broadcast_to(pair.array, made), pair)
        return
    if name.startswith("atleast"):
        pair = draw(pairs())
        same(name, getattr(genesis, name)(pair.tensor), getattr(numpy, name)(pair.array), pair)
        return
    shape = draw(shapes(1, 1 if name == "meshgrid" else 2, is_filled=True))
    many = [draw(pairs(shape, dtype)) for _ in range(draw(st.integers(1, 3)))]
    tensors, arrays = [one.tensor for one in many], [one.array for one in many]
    if name == "meshgrid":
        indexing = draw(st.sampled_from(["ij", "xy"]))
        expected = numpy.meshgrid(*arrays, indexing=indexing)
        made = genesis.meshgrid(*tensors, indexing=indexing)
        for one, array in zip(made, expected, strict=True):
            same(name, one, array, many[0])
        return
    function = numpy.concatenate if name.startswith("concat") else getattr(numpy, name)
    same(name, getattr(genesis, name)(tensors), function(arrays), many[0])


# ---- statistics, places ----


@prop("count_nonzero", "aminmax", "median", "argwhere", "isin", "unique_consecutive",
      "repeat_interleave", "bucketize", "result_type", "promote_types")  # fmt: skip
def of_many(name, draw):
    pair = draw(pairs(draw(shapes(1, 3, is_filled=True))))
    x, array, ndim = pair.tensor, pair.array, pair.array.ndim
    axis = draw(st.integers(-ndim, ndim - 1))
    if name == "count_nonzero":
        made = both_ways(name, draw, pair, axis)
        check(name, made, numpy.count_nonzero(array, axis), "int64")
    elif name == "aminmax":
        least, most = genesis.aminmax(x, dim=axis)
        assert genesis.equal(least, x.amin(axis)) or bool(least.isnan().any())
        assert genesis.equal(most, x.amax(axis)) or bool(most.isnan().any())
    elif name == "median":
        values, indices = both_ways(name, draw, pair, axis)
        middle = (array.shape[axis] - 1) // 2
        expected = numpy.sort(array, axis).take(middle, axis)
        if pair.dtype in FLOATS:
            expected = numpy.where(numpy.isnan(array).any(axis), numpy.nan, expected)
        shown = numpy.take_along_axis(
            array, numpy.expand_dims(indices.numpy(), axis), axis
        ).squeeze(axis)
        numpy.testing.assert_array_equal(elements(values), expected)
        numpy.testing.assert_array_equal(elements(values), shown)
    elif name == "argwhere":
        check(name, both_ways(name, draw, pair), numpy.argwhere(array), "int64")
    elif name == "isin":
        among = draw(pairs(draw(shapes(0, 2)), pair.dtype))
        made = genesis.isin(x, among.tensor)
        check(name, made, numpy.isin(array, among.array), "bool")
    elif name == "unique_consecutive":
        values, inverse, counts = x.unique_consecutive(True, True)
        flat = array.ravel()
        starts = numpy.flatnonzero(numpy.append(True, flat[1:] != flat[:-1]))
        same(name, values, flat[starts], pair)
        check(name, counts, numpy.diff(numpy.append(starts, flat.size)), "int64")
        numpy.testing.assert_array_equal(elements(values)[inverse.numpy()], array)
    elif name == "repeat_interleave":
        counts = numpy.random.default_rng(ndim).integers(0, 3, array.shape[axis])
        made = both_ways(name, draw, pair, genesis.tensor(counts), axis)
        same(name, made, array.repeat(counts, axis), pair)
    elif name == "bucketize":
        edges = draw(pairs((7,), pair.dtype, is_tame=True))
        ordered = numpy.sort(edges.array)
        right = draw(st.booleans())
        made = genesis.bucketize(x, edges.tensor.sort().values, right=right)
        expected = numpy.searchsorted(ordered, array, "right" if right else "left")
        check(name, made, expected, "int64")
    else:
        other = draw(pairs(draw(shapes(1, 1))))
        dtypes = [getattr(genesis, one.dtype) for one in (pair, other)]
        both = (x, other.tensor) if name == "result_type" else dtypes
        assert getattr(genesis, name)(*both).name == result_type(pair, other)


@prop("as_strided", "Tensor.view_as", "Tensor.reshape_as", "Tensor.expand_as", "Tensor.type_as")
def alike(name, draw):
    pair = draw(pairs())
    x, shape = pair.tensor, pair.array.shape
    if name == "as_strided":
        made = both_ways(name, draw, pair, shape, x.strides, x.storage_offset())
        assert made.data_ptr() == x.data_ptr()
        return same(name, made, pair.array, pair)
    if name == "Tensor.type_as":
        dtype = draw(st.sampled_from([one for one in DTYPES if one in FLOATS or one == "bool"]))
        made = x.type_as(genesis.zeros(1, dtype=dtype))
        return check(name, made, rounded(pair.array, dtype), dtype)
    flat = x.contiguous().view(-1)
    if name == "Tensor.expand_as":
        flat = x
    made = getattr(flat, name[7:])(genesis.zeros(shape))
    return same(name, made, pair.array, pair)
