"""Every function of tensors beside NumPy, over random shapes, layouts, types and values.

A property has the name of its function; a public function without one fails the last test. The
errors that are allowed stand in one table. HYPOTHESIS_PROFILE=soak draws many more examples.
"""

from __future__ import annotations

import math
import operator
import os
import zlib
from typing import NamedTuple

import numpy
import pytest
from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st
from tensor_strategies import (
    DTYPES,
    FLOATS,
    INTEGERS,
    Pair,
    broadcast_pairs,
    compute_type,
    elements,
    floating_of,
    kind_of,
    pairs,
    promoted,
    result_type,
    rounded,
    shapes,
    values,
)

import genesis

settings.register_profile("quick", max_examples=10, deadline=None, database=None)
settings.register_profile("soak", max_examples=1000, deadline=None, database=None)
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about NaN


class Bound(NamedTuple):
    """How far a result may be from the real one: in units of its last place, and of a scale."""

    ulps: float = 0  # of the result
    relative: float = 0  # of the scale that a property gives: terms that were summed, mostly


# The allowed errors. Everything that is not here is exact, bit for bit but for NaN's.
# ulps are those of the result's type; relative ones are (float32 and the halves, float64).
BOUNDS: dict[str, tuple[Bound, Bound]] = {
    **{name: (Bound(4), Bound(4)) for name in
       ("exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh", "erf",
        "rsqrt", "sigmoid", "pow")},
    **{name: (Bound(4, 1e-6), Bound(4, 1e-15)) for name in ("gelu", "silu")},  # of x
    **{name: (Bound(1, 1e-12), Bound(1, 1e-13)) for name in ("sum", "mean", "cumsum")},  # of |x|
    **{name: (Bound(1, 1e-6), Bound(1, 1e-13)) for name in ("prod", "cumprod")},  # of |result|
    **{name: (Bound(2, 2e-6), Bound(2, 1e-13)) for name in ("var", "std", "norm")},
    **{name: (Bound(8, 1e-6), Bound(8, 1e-14)) for name in
       ("softmax", "log_softmax", "logsumexp")},  # of the largest |x|
    "linspace": (Bound(2, 1e-7), Bound(2, 1e-15)),
    "arange": (Bound(1), Bound(2)),
}  # fmt: skip

PROPERTIES: dict[str, object] = {}


def prop(*names: str):
    """Register a property: drawn once for each name, which is its first argument."""

    def register(function):
        for name in names:
            PROPERTIES[name] = function
        return function

    return register


@pytest.mark.parametrize("name", sorted(genesis.__all__))
def test_property(name):
    """One for each function; most names that are no functions of tensors have none."""
    if name not in PROPERTIES:
        assert name in OTHERS, f"genesis.{name} has no property"
        return

    @settings(PROFILE)
    @given(data=st.data())
    def holds(data):
        with numpy.errstate(all="ignore"):
            PROPERTIES[name](name, data.draw)

    # The same examples on every run, others for each name; soaking finds new ones.
    if PROFILE is settings.get_profile("quick"):
        holds = seed(zlib.crc32(name.encode()))(holds)
    holds()


# Public names that are no functions of tensors.
OTHERS = {
    "DeviceLostError", "Generator", "InvalidDeviceError", "OutOfMemoryError", "ShapeError",
    "Tensor", "__version__", "bfloat16", "bool", "check_memory_leaks", "cpu", "cuda",
    "default_generator", "detailed_memory_stats", "device", "dtype", "empty_cache",
    "enable_memory_debugging", "enable_memory_profiling", "float16", "float32", "float64",
    "flush", "get_default_device", "get_fusion", "get_rng_state", "initial_seed", "int16",
    "int32", "int64", "int8", "memory_pressure", "memory_stats", "seed", "set_default_device",
    "set_fusion", "set_rng_state", "uint8",
}  # fmt: skip


# ---- comparing ----


def check(name: str, made: genesis.Tensor, expected, dtype: str, scale=0.0) -> None:
    """The elements are those expected, as far as the table says; the type and shape are."""
    expected = numpy.asarray(expected)
    assert made.dtype.name == dtype, f"{name}: {made.dtype} and not {dtype}"
    assert made.shape == expected.shape, f"{name}: {made.shape} and not {expected.shape}"
    got = elements(made)
    bound = BOUNDS[name][dtype == "float64"] if name in BOUNDS else Bound()
    if bound == Bound() or dtype not in FLOATS:
        expected = rounded(expected, dtype)
        numpy.testing.assert_array_equal(got, expected, err_msg=name)
        zeros = (expected == 0) & (dtype in FLOATS)
        signs = numpy.signbit(got[zeros]) == numpy.signbit(expected[zeros])
        assert signs.all() or name in SIGN_OF_ZERO_IS_OPEN, f"{name}: the sign of a zero"
        return
    near = rounded(expected, dtype)
    exact = expected.astype(numpy.longdouble)
    ulp = numpy.spacing(numpy.abs(near)).astype(numpy.longdouble)
    if dtype == "bfloat16":
        ulp = ulp * 65536
    allowed = bound.ulps * ulp + bound.relative * numpy.asarray(scale, numpy.longdouble)
    wide = got.astype(numpy.longdouble)
    fits = numpy.abs(wide - exact) <= allowed
    same = (got == near) | (numpy.isnan(got) & numpy.isnan(near))
    # Around the largest number one side may round to infinity.
    largest = float(numpy.finfo(got.dtype).max)
    edge = numpy.isinf(got) & (numpy.abs(exact) > 0.98 * largest)
    wrong = ~(fits | same | edge)
    assert not wrong.any(), f"{name}: {got[wrong][:3]} and not {exact[wrong][:3]} ({dtype})"


# maximum(0.0, -0.0) and its kin may give either; a sum that begins with 0.0 has lost the sign.
SIGN_OF_ZERO_IS_OPEN = {"maximum", "minimum", "max", "min", "amax", "amin", "clamp", "clip", "relu",
                        "sort", "topk", "unique", "remainder", "floor_divide"}  # fmt: skip


def both_ways(name: str, draw, pair: Pair, *arguments):
    """The function, or the method of its name."""
    if draw(st.booleans()) and hasattr(genesis.Tensor, name):
        return getattr(pair.tensor, name)(*arguments)
    return getattr(genesis, name)(pair.tensor, *arguments)


# ---- elementwise ----

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
        if DTYPES.index(dtype) > 5 >= DTYPES.index(one.dtype) or one.dtype == "bool":
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
        expected = numpy.where(b < 0, inverse, power_of)
    check(name, both_ways(name, draw, one, two.tensor), expected, dtype)


# Operators with a number on either side: of a higher kind it changes the type.
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "<": operator.lt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
NUMBERS = [0, 1, -1, 3, 100, True, False, 0.5, -2.0, 1e30, math.inf, math.nan]


@seed(1)
@settings(PROFILE, max_examples=10 * PROFILE.max_examples)
@given(data=st.data())
def test_operators_with_numbers(data):
    pair, symbol = data.draw(pairs()), data.draw(st.sampled_from(sorted(OPERATORS)))
    number, is_first = data.draw(st.sampled_from(NUMBERS)), data.draw(st.booleans())
    kind = "bool" if isinstance(number, bool) else "int64" if isinstance(number, int) else "float32"
    dtype = promoted(pair.dtype, kind) if kind_of(kind) > kind_of(pair.dtype) else pair.dtype
    function = OPERATORS[symbol]
    both = (number, pair.tensor) if is_first else (pair.tensor, number)
    if (symbol in "&|^" and dtype in FLOATS) or (symbol in "-//%" and dtype == "bool"):
        with pytest.raises(TypeError, match="float|bool"):
            function(*both)
        return
    wide = compute_type(floating_of(dtype) if symbol == "/" else dtype)
    with numpy.errstate(all="ignore"):
        number = numpy.asarray(number).astype(wide)
        array = pair.array.astype(wide)
        expected = function(number, array) if is_first else function(array, number)
        result = floating_of(dtype) if symbol == "/" else dtype
        is_test = symbol in ("<", ">=", "==", "!=")
        made = function(*both)
        check("floor_divide", made, expected, "bool" if is_test else result)


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


# ---- reductions ----


@st.composite
def dims(draw, ndim: int):
    """None, one dimension or several, some counted from the end."""
    if ndim == 0 or draw(st.booleans()):
        return None
    several = draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=ndim, unique=True))
    several = [axis - ndim if draw(st.booleans()) else axis for axis in several]
    return several[0] if len(several) == 1 and draw(st.booleans()) else tuple(several)


def reduced_count(pair: Pair, dim) -> int:
    """How many elements become one."""
    if dim is None:
        return pair.array.size
    return math.prod(pair.array.shape[axis] for axis in numpy.atleast_1d(dim))


@prop("sum", "mean", "prod", "any", "all", "amax", "amin")
def reductions(name, draw):
    pair = draw(pairs(is_tame=name in ("prod", "sum", "mean") and draw(st.booleans())))
    if name in ("sum", "mean") and pair.dtype in FLOATS:  # sums around the largest number are open
        assume(not (numpy.abs(pair.array[numpy.isfinite(pair.array)]) > 1e30).any())
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
    wide = array.astype(numpy.longdouble if is_floating else numpy.int64)
    function = {
        "sum": wide.sum, "mean": wide.mean, "prod": wide.prod, "any": array.any, "all": array.all,
        "amax": array.max, "amin": array.min,
    }[name]  # fmt: skip
    expected = function(dim, keepdims=keep)
    dtype = {"any": "bool", "all": "bool", "amax": pair.dtype, "amin": pair.dtype}.get(
        name, pair.dtype if is_floating else "int64"
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
    half = 5e-3 if pair.dtype in ("float16", "bfloat16") else 0  # each step is rounded
    scale = 10 + half / 2e-6 * 100 * (1 + numpy.sqrt(pair.array.size))
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
    half = pair.dtype in ("float16", "bfloat16")  # each step is rounded
    scale = numpy.abs(wide).max() * (1 + half * 1e5)
    check(name, both_ways(name, draw, pair, dim), expected, pair.dtype, scale)


@prop("cumsum", "cumprod")
def cumulated(name, draw):
    pair = draw(pairs(draw(shapes(1)), is_tame=True))
    dim = draw(st.integers(-pair.array.ndim, pair.array.ndim - 1))
    is_floating = pair.dtype in FLOATS
    wide = pair.array.astype(numpy.longdouble if is_floating else numpy.int64)
    expected = getattr(numpy, name)(wide, dim)
    scale = getattr(numpy, name)(numpy.abs(wide), dim) if is_floating else 0.0
    scale = numpy.where(numpy.isfinite(scale), scale, 0)
    made = both_ways(name, draw, pair, dim)
    check(name, made, expected, pair.dtype if is_floating else "int64", scale)


def test_a_sum_of_ten_million():
    rng = numpy.random.default_rng(0)
    array = rng.standard_normal(10_000_000).astype(numpy.float32)
    array[::3] *= 1e6
    exact, scale = array.sum(dtype=numpy.float64), numpy.abs(array).sum(dtype=numpy.float64)
    for tensor in (genesis.from_numpy(array), genesis.from_numpy(array[::-1].copy())):
        assert abs(tensor.sum().item() - exact) <= 1e-6 * scale
        assert abs(tensor.cumsum(0)[-1].item() - exact) <= 1e-6 * scale
        assert abs((tensor.mean() * len(array)).item() - exact) <= 1e-6 * scale


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


# ---- shapes ----


def same(name: str, made: genesis.Tensor, expected, pair: Pair) -> None:
    check(name, made, expected, pair.dtype)


@prop("reshape", "view", "flatten")
def reshape(name, draw):
    pair = draw(pairs())
    shape = list(pair.array.shape)
    if name == "flatten":
        if not shape:
            return same(name, genesis.flatten(pair.tensor), pair.array.reshape(1), pair)
        first = draw(st.integers(0, len(shape) - 1))
        last = draw(st.integers(first, len(shape) - 1))
        joined = int(numpy.prod(shape[first : last + 1]))
        expected = pair.array.reshape(shape[:first] + [joined] + shape[last + 1 :])
        return same(name, both_ways(name, draw, pair, first, last - len(shape)), expected, pair)
    sizes = draw(st.permutations([one for size in shape for one in factors(size)]))
    cut = draw(st.integers(0, len(sizes)))
    new = [*sizes[:cut], int(numpy.prod(sizes[cut:]))]
    expected = pair.array.reshape(new)
    asked = [*new[:-1], -1] if pair.array.size and draw(st.booleans()) else new
    tensor = pair.tensor.contiguous() if name == "view" else pair.tensor
    made = getattr(genesis, name)(tensor, asked)
    same(name, made, expected, pair)
    same(name, getattr(tensor, name)(*asked), expected, pair)
    if name == "view":
        assert made.data_ptr() == tensor.data_ptr()
    return None


def factors(size: int) -> list[int]:
    for one in (2, 3, 5, 7, 11, 13):
        if size > one and size % one == 0:
            return [one, *factors(size // one)]
    return [size]


@prop("transpose", "permute", "squeeze", "unsqueeze", "expand", "broadcast_to", "contiguous")
def views(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    array, ndim = pair.array, pair.array.ndim
    axis = draw(st.integers(-ndim, ndim - 1))
    if name == "transpose":
        other = draw(st.integers(-ndim, ndim - 1))
        made, expected = both_ways(name, draw, pair, axis, other), array.swapaxes(axis, other)
    elif name == "permute":
        axes = draw(st.permutations(range(ndim)))
        made, expected = both_ways(name, draw, pair, axes), array.transpose(axes)
    elif name == "squeeze":
        made = both_ways(name, draw, pair, *draw(st.sampled_from([(), (axis,)])))
        ones = tuple(i for i, size in enumerate(array.shape) if size == 1)
        expected = array.squeeze(ones)
        if made.shape != expected.shape:  # that one only
            expected = array.squeeze(axis) if array.shape[axis] == 1 else array
    elif name == "unsqueeze":
        made, expected = both_ways(name, draw, pair, axis), numpy.expand_dims(array, axis)
    elif name == "contiguous":
        made, expected = both_ways(name, draw, pair), array
        assert made.is_contiguous()
    else:
        wide = [draw(st.sampled_from([0, 3])) if size == 1 else size for size in array.shape]
        wide = [*draw(st.sampled_from([[], [2], [0], [1, 2]])), *wide]
        made, expected = both_ways(name, draw, pair, wide), numpy.broadcast_to(array, wide)
    same(name, made, expected, pair)


@prop("roll", "flip")
def moved(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    ndim = pair.array.ndim
    axes = draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=ndim, unique=True))
    axes = tuple(axis - ndim if draw(st.booleans()) else axis for axis in axes)
    if name == "flip":
        return same(name, both_ways(name, draw, pair, axes), numpy.flip(pair.array, axes), pair)
    shifts = tuple(draw(st.integers(-40, 40)) for _ in axes)
    if draw(st.booleans()):
        made, expected = both_ways(name, draw, pair, shifts[0]), numpy.roll(pair.array, shifts[0])
    else:
        made, expected = (
            both_ways(name, draw, pair, shifts, axes),
            numpy.roll(pair.array, shifts, axes),
        )
    return same(name, made, expected, pair)


@prop("repeat", "tile")
def repeated(name, draw):
    pair = draw(pairs(draw(shapes(0, 3))))
    least = pair.array.ndim if name == "repeat" else 0
    counts = draw(st.lists(st.integers(0, 3), min_size=least, max_size=4))
    made = both_ways(name, draw, pair, *(counts if draw(st.booleans()) and counts else [counts]))
    same(name, made, numpy.tile(pair.array, counts), pair)
    if made.numel():
        made.fill_(1)  # memory of its own, not an expanded view
        assert pair.tensor.data_ptr() != made.data_ptr()


@prop("cat", "stack")
def joined(name, draw):
    shape = draw(shapes(1, 3))
    axis = draw(st.integers(0, len(shape) - 1))
    many = []
    for _ in range(draw(st.integers(1, 4))):
        own = list(shape)
        if name == "cat":
            own[axis] = draw(st.sampled_from([0, 1, 5]))
        many.append(draw(pairs(tuple(own), draw(st.sampled_from(DTYPES)))))
    dtype = result_type(*many)
    arrays = [rounded(one.array, dtype) for one in many]
    expected = numpy.concatenate(arrays, axis) if name == "cat" else numpy.stack(arrays, axis)
    made = getattr(genesis, name)([one.tensor for one in many], axis)
    check(name, made, expected, dtype)


@prop("split", "chunk")
def parted(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    axis = draw(st.integers(0, pair.array.ndim - 1))
    length, count = pair.array.shape[axis], draw(st.integers(1, 9))
    size = count if name == "split" else max(1, -(-length // count))
    parts = both_ways(name, draw, pair, count, axis)
    expected = numpy.split(pair.array, range(size, length, size), axis)
    assert len(parts) == len(expected)
    for part, one in zip(parts, expected, strict=True):
        same(name, part, one, pair)


@prop("tril", "triu")
def triangles(name, draw):
    pair = draw(pairs(draw(shapes(2))))
    diagonal = draw(st.integers(-8, 8))
    expected = getattr(numpy, name)(pair.array, diagonal)
    same(name, both_ways(name, draw, pair, diagonal), expected, pair)
    same(name, getattr(genesis.tensor(pair.tensor), name + "_")(diagonal), expected, pair)


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


# ---- creation ----


@prop("tensor", "as_tensor", "from_numpy")
def created_from(name, draw):
    pair = draw(pairs(dtype=draw(st.sampled_from([one for one in DTYPES if one != "bfloat16"]))))
    made = getattr(genesis, name)(pair.array)
    same(name, made, pair.array, pair)
    assert (made.data_ptr() == pair.array.ctypes.data) == (name != "tensor") or not made.numel()
    if name == "tensor":
        listed = genesis.tensor(pair.array.tolist(), dtype=pair.dtype)
        if pair.array.size:
            same(name, listed, pair.array, pair)
        same(name, genesis.tensor(pair.tensor), pair.array, pair)


@prop("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like")
def filled(name, draw):
    shape, dtype = draw(shapes()), draw(st.sampled_from(DTYPES))
    number = {"z": 0, "o": 1, "f": 1}.get(name[0])
    if name.endswith("_like"):
        arguments = (draw(pairs(shape, dtype)).tensor,)
    else:
        arguments = shape if name != "full" and shape and draw(st.booleans()) else (shape,)
    arguments += (number,) if name.startswith("full") else ()
    made = getattr(genesis, name)(*arguments, dtype=dtype)
    if number is None:
        assert made.shape == shape and made.dtype.name == dtype and made.is_contiguous()
    else:
        check(name, made, numpy.full(shape, number), dtype)


@prop("arange", "linspace", "eye", "one_hot")
def sequences(name, draw):
    if name == "one_hot":
        count = draw(st.integers(1, 9))
        rng = numpy.random.default_rng(draw(st.integers(0, 99)))
        array = rng.integers(0, count, draw(shapes()))
        expected = numpy.eye(count, dtype=int)[array]
        return check(name, genesis.one_hot(genesis.tensor(array), count), expected, "int64")
    dtype = draw(st.sampled_from(FLOATS + INTEGERS[2:] if name == "arange" else FLOATS))
    if name == "eye":
        n, m = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        return check(name, genesis.eye(n, m, dtype=dtype), numpy.eye(n, m), dtype)
    start, stop = draw(st.integers(-40, 40)), draw(st.integers(-40, 40))
    if name == "linspace":
        steps = draw(st.integers(0, 40))
        expected = numpy.linspace(start, stop, steps, dtype=numpy.longdouble)
        made = genesis.linspace(start, stop, steps, dtype=dtype)
        return check(name, made, expected, dtype, max(abs(start), abs(stop)))
    step = draw(st.sampled_from([1, 2, -1, -3] + [0.25, -0.5] * (dtype in FLOATS)))
    expected = numpy.arange(start, stop, step)
    return check(name, genesis.arange(start, stop, step, dtype=dtype), expected, dtype)


@prop("rand", "randn", "rand_like", "randn_like", "randint", "randperm", "manual_seed")
def random_numbers(name, draw):
    """The same seed gives the same numbers, in range, whatever the number of threads."""
    shape, seed = draw(shapes()), draw(st.integers(0, (1 << 64) - 1))
    dtype = draw(st.sampled_from(FLOATS))
    low, high = draw(st.integers(-100, 0)), draw(st.integers(1, 100))

    def make():
        genesis.manual_seed(seed)
        if name == "randint":
            return genesis.randint(low, high, shape)
        if name == "randperm":
            return genesis.randperm(high)
        if name.endswith("_like"):
            return getattr(genesis, name)(genesis.zeros(shape, dtype=dtype))
        return getattr(genesis, "rand" if name == "manual_seed" else name)(shape, dtype=dtype)

    made = make()
    array = elements(made)
    threads = genesis.cpu.get_num_threads()
    genesis.cpu.set_num_threads(draw(st.integers(1, 3)))
    numpy.testing.assert_array_equal(elements(make()), array)
    genesis.cpu.set_num_threads(threads)
    if name == "randperm":
        assert sorted(array) == list(range(high))
        return
    assert made.shape == shape
    if name == "randint":
        assert made.dtype == genesis.int64 and ((array >= low) & (array < high)).all()
    elif "randn" in name:
        assert made.dtype.name == dtype and numpy.isfinite(array).all()
    else:
        assert made.dtype.name == dtype and ((array >= 0) & (array < 1)).all()


@prop("save", "load")
def files(name, draw):
    import tempfile

    many = {f"{i}": draw(pairs()) for i in range(draw(st.integers(0, 3)))}
    with tempfile.TemporaryDirectory() as folder:
        genesis.save({key: pair.tensor for key, pair in many.items()}, f"{folder}/f")
        loaded = genesis.load(f"{folder}/f")
    assert list(loaded) == list(many)
    for key, pair in many.items():
        same(name, loaded[key], pair.array, pair)


# ---- conversion, and that nothing is forgotten ----


@seed(0)
@settings(PROFILE)
@given(data=st.data())
def test_conversions(data):
    """To every type; floating numbers that an integer does not have are open."""
    pair = data.draw(pairs())
    dtype = data.draw(st.sampled_from(DTYPES))
    array = pair.array
    if pair.dtype in FLOATS and dtype not in [*FLOATS, "bool"]:
        array = numpy.where(numpy.isfinite(array), array, 0).astype(numpy.float64) % 100
        with numpy.errstate(all="ignore"):
            tensor = genesis.tensor(array).to(getattr(genesis, dtype))
        check("to", tensor, array.astype(numpy.int64), dtype)
        return
    check("to", pair.tensor.to(getattr(genesis, dtype)), rounded(array, dtype), dtype)


def test_every_property_is_of_a_public_name():
    assert set(PROPERTIES) | OTHERS == set(genesis.__all__)
    assert set(BOUNDS) <= set(PROPERTIES)
    assert not set(PROPERTIES) & OTHERS
    assert values(numpy.random.default_rng(0), "int8", (3,)).dtype == numpy.int8
