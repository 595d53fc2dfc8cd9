"""The properties of reductions, and of what works along one dimension."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from tensor_properties import (
    both_ways,
    check,
    dims,
    prop,
)
from tensor_strategies import (
    FLOATS,
    Pair,
    elements,
    pairs,
    shapes,
    sum_of,
)

import genesis


def reduced_count(pair: Pair, dim) -> int:
    """How many elements become one."""
    if dim is None:
        return pair.array.size
    return math.prod(pair.array.shape[axis] for axis in numpy.atleast_1d(dim))


@prop("sum", "mean", "prod", "any", "all", "amax", "amin")
def reductions(name, draw):
    pair = draw(pairs(is_tame=name in ("prod", "sum", "mean") and draw(st.booleans())))
    if name in ("sum", "mean", "prod") and pair.dtype in FLOATS:
        # What overflows or vanishes on the way depends on the order, which is open.
        sizes = numpy.abs(pair.array[numpy.isfinite(pair.array) & (pair.array != 0)])
        assume(not (sizes > 1e30).any() and not (sizes < 1e-30).any())
        assume(name != "prod" or pair.array.size <= 300)
    dim, keep = draw(dims(pair.array.ndim)), draw(st.booleans())
    array, is_floating = pair.array, pair.dtype in FLOATS
    if name == "mean" and not is_floating:
        with pytest.raises(TypeError, match=f"mean of {pair.dtype}"):
            pair.tensor.mean()
        return
    if name in ("amax", "amin") and reduced_count(pair, dim) == 0:
        with pytest.raises(genesis.ShapeError, match="no elements"):
            getattr(genesis, name)(pair.tensor, dim)
        return
    wide = array.astype(numpy.longdouble if is_floating else sum_of(pair.dtype))
    function = {
        "sum": wide.sum, "mean": wide.mean, "prod": wide.prod, "any": array.any, "all": array.all,
        "amax": array.max, "amin": array.min,
    }[name]  # fmt: skip
    expected = function(dim, keepdims=keep)
    dtype = {"any": "bool", "all": "bool", "amax": pair.dtype, "amin": pair.dtype}.get(
        name, sum_of(pair.dtype)
    )
    scale = 0.0
    if is_floating and name in ("sum", "mean"):
        finite = numpy.where(numpy.isfinite(wide), numpy.abs(wide), 0)
        scale = getattr(finite, name)(dim, keepdims=keep)
    elif is_floating and name == "prod":
        scale = numpy.where(numpy.isfinite(expected), numpy.abs(expected), 0)
    arguments = (dim, keep) if draw(st.booleans()) else ()
    options = {} if arguments else {"dim": dim, "keepdim": keep}
    owner = draw(st.sampled_from([genesis, None]))
    call = getattr(genesis, name) if owner else getattr(pair.tensor, name)
    made = call(*((pair.tensor,) if owner else ()), *arguments, **options)
    check(name, made, expected, dtype, scale)


@prop("max", "min", "argmax", "argmin")
def extremes(name, draw):
    pair = draw(pairs(is_filled=True))
    dim = draw(st.integers(-pair.array.ndim, pair.array.ndim - 1)) if pair.array.ndim else None
    keep = draw(st.booleans())
    if dim is None or draw(st.booleans()):
        made = both_ways(name, draw, pair)
        is_place = name.startswith("arg")
        expected = getattr(pair.array, name)()
        check(name, made, expected, "int64" if is_place else pair.dtype)
        return
    place = getattr(pair.array, name if name.startswith("arg") else "arg" + name)(dim)
    place = numpy.expand_dims(place, dim) if keep else place
    made = both_ways(name, draw, pair, dim, keep)
    if name.startswith("arg"):
        check(name, made, place, "int64")
        return
    check(name, made.values, getattr(pair.array, name)(dim, keepdims=keep), pair.dtype)
    check(name, made.indices, place, "int64")


@prop("var", "std", "norm")
def statistics(name, draw):
    pair = draw(pairs(dtype=draw(st.sampled_from(FLOATS)), is_tame=True))
    dim, keep = draw(dims(pair.array.ndim)), draw(st.booleans())
    wide = pair.array.astype(numpy.longdouble)
    if name == "norm":
        made = genesis.norm(pair.tensor, dim=dim, keepdim=keep)
        expected = numpy.sqrt((wide**2).sum(dim, keepdims=keep))
    else:
        correction = draw(st.sampled_from([0, 1]))
        made = getattr(genesis, name)(pair.tensor, dim, correction, keep)
        expected = wide.sum(dim, keepdims=keep) * numpy.nan  # of no number there is none
        if reduced_count(pair, dim) > correction:
            expected = getattr(wide, name)(dim, ddof=correction, keepdims=keep)
    largest = numpy.abs(wide).max(initial=0)
    scale = largest**2 if name == "var" else largest
    check(name, made, expected, pair.dtype, scale)


@prop("softmax", "log_softmax", "logsumexp")
def soft(name, draw):
    pair = draw(pairs(draw(shapes(1, is_filled=True)), draw(st.sampled_from(FLOATS)), is_tame=True))
    dim = draw(st.integers(-pair.array.ndim, pair.array.ndim - 1))
    wide = pair.array.astype(numpy.longdouble)
    total = numpy.exp(wide).sum(dim, keepdims=True)
    expected = {
        "softmax": numpy.exp(wide) / total, "log_softmax": wide - numpy.log(total),
        "logsumexp": numpy.log(total).squeeze(dim),
    }[name]  # fmt: skip
    scale = numpy.abs(wide).max()
    check(name, both_ways(name, draw, pair, dim), expected, pair.dtype, scale)


@prop("cumsum", "cumprod")
def cumulated(name, draw):
    pair = draw(pairs(draw(shapes(1)), is_tame=True))
    dim = draw(st.integers(-pair.array.ndim, pair.array.ndim - 1))
    is_floating = pair.dtype in FLOATS
    wide = pair.array.astype(numpy.longdouble if is_floating else sum_of(pair.dtype))
    expected = getattr(numpy, name)(wide, dim)
    scale = getattr(numpy, name)(numpy.abs(wide), dim) if is_floating else 0.0
    scale = numpy.where(numpy.isfinite(scale), scale, 0)
    made = both_ways(name, draw, pair, dim)
    check(name, made, expected, sum_of(pair.dtype), scale)
    own = genesis.tensor(pair.tensor)
    assert getattr(own, name + "_")(dim) is own
    assert own.dtype == pair.tensor.dtype and genesis.equal(own, made.to(own.dtype))


@prop("cummax", "cummin")
def cumulated_extremes(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    dim = draw(st.integers(-pair.array.ndim, pair.array.ndim - 1))
    function = numpy.maximum if name == "cummax" else numpy.minimum
    values, indices = both_ways(name, draw, pair, dim)
    expected = function.accumulate(pair.array, dim)
    numpy.testing.assert_array_equal(elements(values), expected)
    assert values.dtype.name == pair.dtype and values.shape == indices.shape == expected.shape
    if expected.size == 0:
        return
    places = numpy.moveaxis(indices.numpy(), dim, -1).reshape(-1, expected.shape[dim])
    rows = numpy.moveaxis(pair.array, dim, -1).reshape(places.shape)
    for row, found in zip(rows, places, strict=True):  # the last of those that are equal
        for i in range(len(row)):
            best = function.reduce(row[: i + 1])
            is_best = (row != row) if best != best else row == best
            assert found[i] == numpy.flatnonzero(is_best[: i + 1])[-1]


@prop("kthvalue", "mode")
def picked(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    dim = draw(st.integers(-pair.array.ndim, pair.array.ndim - 1))
    array, keepdim = pair.array, draw(st.booleans())
    if array.shape[dim] == 0:
        with pytest.raises((ValueError, IndexError), match=f"{name}: "):
            getattr(genesis, name)(pair.tensor, *([1] if name == "kthvalue" else []), dim)
        return
    k = draw(st.integers(1, array.shape[dim]))
    order = array.argsort(dim, kind="stable")
    places = numpy.take(order, [k - 1], dim)
    if name == "mode":
        for at in numpy.ndindex(places.shape):
            key = tuple(slice(None) if i == dim % array.ndim else n for i, n in enumerate(at))
            row, first = array[key], order[key][0]
            counts = [max(int((row == one).sum()), 1) for one in row]  # NaN is like nothing
            best = min((one for one, n in zip(row, counts, strict=True) if n == max(counts)),
                       key=lambda one: (one != one, one))  # fmt: skip
            places[at] = first if best != best else numpy.flatnonzero(row == best)[-1]
    arguments = ([k] if name == "kthvalue" else []) + [dim, keepdim]
    values, indices = both_ways(name, draw, pair, *arguments)
    expected = numpy.take_along_axis(array, places, dim)
    if not keepdim:
        expected, places = expected.squeeze(dim), places.squeeze(dim)
    numpy.testing.assert_array_equal(elements(values), expected)
    numpy.testing.assert_array_equal(indices.numpy(), places)


# ---- along one dimension ----


def descending_order(array: numpy.ndarray, axis: int) -> numpy.ndarray:
    """Stable, the largest first, NaN before them."""
    turned = numpy.flip(array, axis).argsort(axis, kind="stable")
    return array.shape[axis] - 1 - numpy.flip(turned, axis)


@prop("sort", "argsort", "topk")
def order(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    dim = draw(st.integers(-pair.array.ndim, pair.array.ndim - 1))
    is_descending = draw(st.booleans())
    places = pair.array.argsort(dim, kind="stable")
    if is_descending:
        places = descending_order(pair.array, dim)
    if name == "topk":
        k = draw(st.integers(0, pair.array.shape[dim]))
        places = numpy.take(places, numpy.arange(k), dim)
        made = both_ways(name, draw, pair, k, dim, is_descending)
    else:
        made = both_ways(name, draw, pair, dim, is_descending)
    if name == "argsort":
        check(name, made, places, "int64")
        return
    check(name, made.indices, places, "int64")
    check(name, made.values, numpy.take_along_axis(pair.array, places, dim), pair.dtype)


@prop("unique")
def unique(name, draw):
    pair = draw(pairs())
    array = numpy.where(numpy.isnan(pair.array), 1, pair.array).astype(pair.array.dtype)
    tensor = genesis.where(pair.tensor.isnan(), 1, pair.tensor).to(pair.tensor.dtype)
    found, inverse, counts = numpy.unique(array, return_inverse=True, return_counts=True)
    made = genesis.unique(tensor, return_inverse=True, return_counts=True)
    check(name, made[0], found, pair.dtype)
    check(name, made[1], inverse.reshape(array.shape), "int64")
    check(name, made[2], counts, "int64")
    check(name, tensor.unique(), found, pair.dtype)
