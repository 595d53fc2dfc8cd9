"""Every function of tensors beside NumPy, over random shapes, layouts, types and values.

A property has the name of its function or method, and stands in one of the files properties_*.py; a
public name without one fails. The errors that are allowed stand in one table, in
tensor_properties.py. HYPOTHESIS_PROFILE=soak draws many more examples.
"""

from __future__ import annotations

import math
import operator
import os
import zlib
from importlib import import_module
from pathlib import Path

import numpy
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from tensor_properties import BOUNDS, ELSEWHERE, OTHERS, PROPERTIES, check
from tensor_strategies import (
    FLOATS,
    compute_type,
    floating_of,
    kind_of,
    pairs,
    promoted,
    rounded,
)

import genesis

for module in ("elementwise", "rows", "shapes", "methods", "names"):
    import_module(f"properties_{module}")

settings.register_profile("quick", max_examples=10, deadline=None, database=None)
settings.register_profile("soak", max_examples=300, deadline=None, database=None)
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about NaN


def functions_and_methods() -> set[str]:
    """The public functions, and the methods that are neither one of them nor its form in place."""
    names = set(genesis.__all__) - OTHERS
    own = {name for name in dir(genesis.Tensor) if not name.startswith("_")}
    methods = {name for name in own - names if name.removesuffix("_") not in names}
    return names | {f"Tensor.{name}" for name in {*methods, "__getitem__", "__setitem__"}}


@pytest.mark.parametrize("name", sorted(functions_and_methods()))
def test_property(name):
    """A function without one fails here."""
    if name in ELSEWHERE:
        text = (Path(__file__).parent / ELSEWHERE[name]).read_text()
        assert name.removeprefix("Tensor.") in text
        return
    assert name in PROPERTIES, f"{name} has no property"

    @settings(PROFILE)
    @given(data=st.data())
    def holds(data):
        with numpy.errstate(all="ignore"):
            PROPERTIES[name](name, data.draw)

    # The same examples on every run, others for each name; soaking finds new ones.
    if PROFILE is settings.get_profile("quick"):
        holds = seed(zlib.crc32(name.encode()))(holds)
    holds()


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
    if (symbol in "&|^" and dtype in FLOATS) or (symbol in ("-", "//", "%") and dtype == "bool"):
        with pytest.raises(TypeError, match="float|bool"):
            function(*both)
        return
    wide = compute_type(floating_of(dtype) if symbol == "/" else dtype)
    with numpy.errstate(all="ignore"):
        is_test = symbol in ("<", ">=", "==", "!=")
        if is_test and dtype in FLOATS:  # a number beside halves is compared as one
            number = rounded(number, dtype)
        number = numpy.asarray(number).astype(wide)
        array = pair.array.astype(wide)
        expected = function(number, array) if is_first else function(array, number)
        result = floating_of(dtype) if symbol == "/" else dtype
        made = function(*both)
        check("floor_divide", made, expected, "bool" if is_test else result)


@seed(2)
@settings(PROFILE, max_examples=6 * PROFILE.max_examples)
@given(data=st.data())
def test_writes_that_overlap_what_is_read(data):
    """As if everything were read before anything is written."""
    count = data.draw(st.sampled_from([1, 5, 33, 300]))
    rows = data.draw(st.sampled_from([1, 3]))
    array = numpy.random.default_rng(count).integers(-99, 99, (rows, 3 * count)).astype("int32")
    base = genesis.tensor(array)
    if data.draw(st.booleans()):
        base = genesis.from_numpy(array.copy())
    keys = []
    for _ in range(3):
        step = data.draw(st.sampled_from([1, 2, -1, -2]))
        first = data.draw(st.integers(0, 3 * count - 1 - (count - 1) * abs(step)))
        part = list(range(first, first + count * abs(step), abs(step)))[:: 1 if step > 0 else -1]
        end = part[-1] + step
        keys.append((slice(None, None, data.draw(st.sampled_from([1, -1]))),
                     slice(part[0], end if end >= 0 else None, step)))  # fmt: skip
    one, two, out = keys
    expected = array.copy()
    expected[out] = array[one] * 3 - array[two]
    kind = data.draw(st.integers(0, 2))
    if kind == 0:
        genesis.sub(base[one] * 3, base[two], out=base[out])
    elif kind == 1:
        base[out] = base[one] * 3 - base[two]
    else:
        expected[out] = array[out] + array[one]
        base[out].add_(base[one])
    numpy.testing.assert_array_equal(base.numpy(), expected)


def test_a_sum_of_ten_million():
    rng = numpy.random.default_rng(0)
    array = rng.standard_normal(10_000_000).astype(numpy.float32)
    array[::3] *= 1e6
    exact, scale = array.sum(dtype=numpy.float64), numpy.abs(array).sum(dtype=numpy.float64)
    for tensor in (genesis.from_numpy(array), genesis.from_numpy(array[::-1].copy())):
        assert abs(tensor.sum().item() - exact) <= 1e-6 * scale
        assert abs(tensor.cumsum(0)[-1].item() - exact) <= 1e-6 * scale
        assert abs((tensor.mean() * len(array)).item() - exact) <= 1e-6 * scale


def test_every_property_is_of_a_public_name():
    assert set(PROPERTIES) | set(ELSEWHERE) == functions_and_methods()
    assert set(BOUNDS) <= set(PROPERTIES) and set(genesis.__all__) > OTHERS
