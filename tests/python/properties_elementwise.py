"""The properties of elementwise functions, and of comparing whole tensors."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import strategies as st
from tensor_properties import (
    both_ways,
    check,
    prop,
)
from tensor_strategies import (
    FLOATS,
    INTEGERS,
    Pair,
    broadcast_pairs,
    compute_type,
    floating_of,
    kind_of,
    pairs,
    result_type,
    rounded,
)

import genesis

UNARY_EXACT = {
    "neg": numpy.negative, "abs": numpy.abs, "sign": numpy.sign, "square": numpy.square,
    "floor": numpy.floor, "ceil": numpy.ceil, "round": numpy.rint, "trunc": numpy.trunc,
    "relu": lambda x: numpy.where(numpy.isnan(x), x, numpy.maximum(x, 0)),
}  # fmt: skip
TESTS = {"isnan": numpy.isnan, "isinf": numpy.isinf, "isfinite": numpy.isfinite,
         "logical_not": numpy.logical_not}  # fmt: skip
erf = numpy.vectorize(lambda x: math.erf(x), otypes=[numpy.longdouble])
REAL = {
    "sqrt": numpy.sqrt, "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / numpy.sqrt(x),
    "exp": numpy.exp, "expm1": numpy.expm1, "log": numpy.log, "log1p": numpy.log1p,
    "log2": numpy.log2, "log10": numpy.log10, "sin": numpy.sin, "cos": numpy.cos,
    "tan": numpy.tan, "tanh": numpy.tanh, "erf": erf,
    "asin": numpy.arcsin, "acos": numpy.arccos, "atan": numpy.arctan,
    "asinh": numpy.arcsinh, "acosh": numpy.arccosh, "atanh": numpy.arctanh,
    "sigmoid": lambda x: 1 / (1 + numpy.exp(-x)), "silu": lambda x: x / (1 + numpy.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + erf(x / numpy.sqrt(numpy.longdouble(2)))),
}  # fmt: skip


@prop(*UNARY_EXACT)
def unary_exact(name, draw):
    pair = draw(pairs())
    if pair.dtype == "bool" and name == "neg":
        with pytest.raises(TypeError, match="bool"):
            genesis.neg(pair.tensor)
        return
    is_rounding = name in ("floor", "ceil", "round", "trunc")
    expected = pair.array
    if pair.dtype in FLOATS or (pair.dtype != "bool" and not is_rounding):
        expected = UNARY_EXACT[name](pair.array)
    check(name, both_ways(name, draw, pair), expected, pair.dtype)
    in_place(name, draw, pair, expected, pair.dtype)


def in_place(name, draw, pair: Pair, expected, dtype, *arguments, scale=0.0) -> None:
    """The same with an underscore, and into another tensor."""
    own = genesis.tensor(pair.tensor)
    if dtype == pair.dtype:
        assert getattr(own, name + "_")(*arguments) is own
        check(name, own, expected, dtype, scale)
    out = (
        genesis.empty(2, *expected.shape, dtype=dtype)[1].T.T
        if expected.ndim
        else genesis.empty((), dtype=dtype)
    )
    assert getattr(genesis, name)(pair.tensor, *arguments, out=out) is out
    check(name, out, expected, dtype, scale)


@prop(*TESTS)
def truths(name, draw):
    pair = draw(pairs())
    check(name, both_ways(name, draw, pair), TESTS[name](pair.array), "bool")


@prop(*REAL)
def real(name, draw):
    pair = draw(pairs())
    dtype = floating_of(pair.dtype)
    # A number is rounded to the type it is computed in before anything else.
    wide = compute_type(dtype) if name in ("sqrt", "reciprocal") else numpy.longdouble
    x = pair.array.astype(compute_type(dtype)).astype(wide)
    expected = REAL[name](x)
    scale = numpy.where(numpy.isfinite(x), numpy.abs(x), 0)
    check(name, both_ways(name, draw, pair), expected, dtype, scale)
    in_place(name, draw, pair, expected, dtype, scale=scale)


BINARY = {"add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply,
          "maximum": numpy.maximum, "minimum": numpy.minimum}  # fmt: skip
COMPARISONS = {
    "eq": numpy.equal, "ne": numpy.not_equal, "lt": numpy.less, "le": numpy.less_equal,
    "gt": numpy.greater, "ge": numpy.greater_equal, "logical_and": numpy.logical_and,
    "logical_or": numpy.logical_or, "logical_xor": numpy.logical_xor,
}  # fmt: skip
BITS = {"bitwise_and": numpy.bitwise_and, "bitwise_or": numpy.bitwise_or,
        "bitwise_xor": numpy.bitwise_xor}  # fmt: skip


def converted(one: Pair, dtype: str) -> numpy.ndarray:
    """The elements in the type that an operation of this type is computed in."""
    return one.array.astype(compute_type(dtype))


@prop(*BINARY)
def binary(name, draw):
    one, two = draw(broadcast_pairs())
    dtype = result_type(one, two)
    if dtype == "bool" and name == "sub":
        with pytest.raises(TypeError, match="logical_xor"):
            genesis.sub(one.tensor, two.tensor)
        return
    expected = BINARY[name](converted(one, dtype), converted(two, dtype))
    check(name, both_ways(name, draw, one, two.tensor), expected, dtype)
    in_place_binary(name, one, two, expected, dtype)


def in_place_binary(name, one: Pair, two: Pair, expected, dtype) -> None:
    own = genesis.tensor(one.tensor)
    if expected.shape == one.array.shape and dtype == one.dtype:
        assert getattr(own, name + "_")(two.tensor) is own
        check(name, own, expected, dtype)
    elif expected.shape != one.array.shape:
        with pytest.raises(genesis.ShapeError, match="does not fit"):
            getattr(own, name + "_")(two.tensor)
    else:
        made = getattr(own, name + "_")
        if kind_of(dtype) > kind_of(one.dtype):
            with pytest.raises(TypeError, match="cannot be stored"):
                made(two.tensor)


@prop(*COMPARISONS)
def comparisons(name, draw):
    one, two = draw(broadcast_pairs())
    dtype = result_type(one, two)
    if name.startswith("logical"):
        expected = COMPARISONS[name](one.array, two.array)
    else:
        expected = COMPARISONS[name](converted(one, dtype), converted(two, dtype))
    check(name, both_ways(name, draw, one, two.tensor), expected, "bool")


@prop(*BITS)
def bits(name, draw):
    one, two = draw(broadcast_pairs(dtypes=["bool", *INTEGERS]))
    dtype = result_type(one, two)
    expected = BITS[name](rounded(one.array, dtype), rounded(two.array, dtype))
    check(name, both_ways(name, draw, one, two.tensor), expected, dtype)
    in_place_binary(name, one, two, expected, dtype)


@prop("bitwise_left_shift", "bitwise_right_shift")
def shifts(name, draw):
    """By less than 0 or by the width or more: 0, or -1 by the sign."""
    one, two = draw(broadcast_pairs(dtypes=INTEGERS))
    dtype = result_type(one, two)
    a, b = (numpy.asarray(pair.array.astype(dtype), object) for pair in (one, two))
    width, is_left = 8 * numpy.dtype(dtype).itemsize, "left" in name
    inside = (b >= 0) & (b < width)
    places = numpy.where(inside, b, width)
    wide = a << places if is_left else a >> places
    expected = numpy.asarray(wide & ((1 << width) - 1), object)
    unsigned = expected.astype(numpy.uint64).astype(f"uint{width}")
    check(name, both_ways(name, draw, one, two.tensor), unsigned.astype(dtype), dtype)


@prop("bitwise_not")
def bitwise_not(name, draw):
    pair = draw(pairs(dtype=draw(st.sampled_from(["bool", *INTEGERS]))))
    check(name, both_ways(name, draw, pair), numpy.invert(pair.array), pair.dtype)


@prop("div")
def div(name, draw):
    one, two = draw(broadcast_pairs())
    dtype = floating_of(result_type(one, two))
    expected = numpy.divide(converted(one, dtype), converted(two, dtype))
    check(name, both_ways(name, draw, one, two.tensor), expected, dtype)


@prop("floor_divide", "remainder")
def division(name, draw):
    """Rounded down; of integers 0 where the divisor is."""
    one, two = draw(broadcast_pairs())
    dtype = result_type(one, two)
    if dtype == "bool":
        with pytest.raises(TypeError, match="bool"):
            getattr(genesis, name)(one.tensor, two.tensor)
        return
    a, b = converted(one, dtype), converted(two, dtype)
    function = numpy.floor_divide if name == "floor_divide" else numpy.remainder
    expected = function(a, b)
    made = both_ways(name, draw, one, two.tensor)
    check(name, made, expected, dtype)


@prop("pow")
def power(name, draw):
    one, two = draw(broadcast_pairs(dtypes=INTEGERS + FLOATS))
    dtype = result_type(one, two)
    a, b = converted(one, dtype), converted(two, dtype)
    if dtype in FLOATS:
        expected = numpy.power(a.astype(numpy.longdouble), b.astype(numpy.longdouble))
    else:
        a, b = numpy.broadcast_arrays(a, b)
        power_of = numpy.power(a, numpy.where(b < 0, 0, b))
        inverse = numpy.where(a == 1, 1, numpy.where(a == -1, numpy.where(b % 2, -1, 1), 0))
        expected = numpy.where(b < 0, inverse.astype(power_of.dtype), power_of)
    check(name, both_ways(name, draw, one, two.tensor), expected, dtype)


@prop("atan2")
def angle(name, draw):
    one, two = draw(broadcast_pairs())
    dtype = floating_of(result_type(one, two))
    a, b = (converted(x, dtype).astype(numpy.longdouble) for x in (one, two))
    check(name, both_ways(name, draw, one, two.tensor), numpy.arctan2(a, b), dtype)


@prop("where")
def where(name, draw):
    condition, one, two = draw(broadcast_pairs(3))
    mask = Pair(condition.tensor.bool(), condition.array.astype(bool), "bool")
    dtype = result_type(one, two)
    expected = numpy.where(mask.array, rounded(one.array, dtype), rounded(two.array, dtype))
    made = (
        genesis.where(mask.tensor, one.tensor, two.tensor)
        if draw(st.booleans())
        else one.tensor.where(mask.tensor, two.tensor)
    )
    check(name, made, expected, dtype)


@prop("clamp", "clip")
def clamp(name, draw):
    pair = draw(pairs(dtype=draw(st.sampled_from(INTEGERS + FLOATS))))
    low, high = draw(st.sampled_from([(None, 3), (1, None), (0, 5), (2, 1)]))
    expected = numpy.clip(pair.array, low, high)
    check(name, both_ways(name, draw, pair, low, high), expected, pair.dtype)
    own = genesis.tensor(pair.tensor)
    assert getattr(own, name + "_")(low, high) is own
    check(name, own, expected, pair.dtype)


# ---- comparing whole tensors ----


@prop("isclose", "allclose", "equal")
def closeness(name, draw):
    one, two = draw(broadcast_pairs(dtypes=["float32", "float64"]))
    if draw(st.booleans()):
        two = Pair(one.tensor.clone(), one.array, one.dtype)
    if name == "equal":
        expected = one.array.shape == two.array.shape and bool((one.array == two.array).all())
        assert genesis.equal(one.tensor, two.tensor) is expected
        return
    equal_nan = draw(st.booleans())
    dtype = result_type(one, two)
    a, b = rounded(one.array, dtype), rounded(two.array, dtype)
    expected = numpy.isclose(a, b, equal_nan=equal_nan)
    made = getattr(genesis, name)(one.tensor, two.tensor, equal_nan=equal_nan)
    if name == "isclose":
        check(name, made, expected, "bool")
    else:
        assert made is bool(expected.all())
