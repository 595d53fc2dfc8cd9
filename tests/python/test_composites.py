"""Functions that are made of others, over every pair and triple of types and their extreme values.

composites.py has what each of them gives. COMPOSITE_VALUES=all takes every extreme value of every
operand, also in tensors without dimensions; otherwise a part of them.
"""

from __future__ import annotations

import itertools
import os
import types

import composites
import numpy
import pytest
from composites import LONG, ONE, ROWS, THREE, TWO
from conftest import simulate_script
from tensor_strategies import DTYPES, FLOATS, INTEGERS, compute_type, floating_of, kind_of, promoted

import genesis

IS_LARGE = os.environ.get("COMPOSITE_VALUES") == "all"
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about NaN

# Bits of the fraction, with the leading one; the least exponent of a normal number.
LAYOUTS = {"float16": (11, -14), "bfloat16": (8, -126), "float32": (24, -126),
           "float64": (53, -1022)}  # fmt: skip


# ---- exact numbers, rounded once ----


def last_place(values, dtype: str):
    """The distance of numbers of a type at these magnitudes."""
    digits, least = LAYOUTS[dtype]
    exponents = numpy.frexp(numpy.where(numpy.isfinite(values), values, 1))[1] - 1
    return numpy.ldexp(LONG(1), numpy.maximum(exponents, least) - digits + 1)


def largest(dtype: str):
    digits, least = LAYOUTS[dtype]
    return (LONG(2) - numpy.ldexp(LONG(1), 1 - digits)) * numpy.ldexp(LONG(1), 1 - least)


def nearest(values, dtype: str):
    """Exact numbers as a floating type has them: the nearest, of two the even one."""
    values = numpy.asarray(values, LONG)
    place = last_place(values, dtype)
    made = numpy.rint(values / place) * place
    made = numpy.where(numpy.isfinite(values), made, values)
    made = numpy.where(abs(made) > largest(dtype), numpy.copysign(LONG(numpy.inf), made), made)
    return numpy.copysign(made, values)


def wrapped(value: int, dtype: str) -> int:
    if dtype == "bool":
        return int(value != 0)
    bits = numpy.iinfo(dtype).bits
    value %= 1 << bits
    return value - (1 << bits) if value > numpy.iinfo(dtype).max else value


def extremes(dtype: str) -> list:
    """The least and largest numbers of a type, and others at which something changes."""
    if dtype == "bool":
        return [0, 1]
    if dtype in INTEGERS:
        info = numpy.iinfo(dtype)
        some = [0, 1, 2, 7, 25, info.max, info.max - 1, info.min, info.min + 1, -1, -15, -25, 100,
                2**24 + 1, 2**24 + 2**16 + 1, 2**53 + 1, -(2**60) - 2**52 - 1]  # fmt: skip
        return [one for one in some if info.min <= one <= info.max]
    digits, least = LAYOUTS[dtype]
    some = [0.0, -0.0, 1, -1, 0.5, 2.5, -1.25, 3, 100, -7.75, largest(dtype), -largest(dtype),
            numpy.ldexp(LONG(1), least), -numpy.ldexp(LONG(1), least - digits + 1),
            1 + numpy.ldexp(LONG(1), 1 - digits), numpy.ldexp(LONG(1), digits) - 1, 1e8, -3e4, 1e30,
            numpy.inf, -numpy.inf, numpy.nan]  # fmt: skip
    if dtype == "float64":  # halfway between two halves, and a little more
        some += [1 + 2.0**-11 + 2.0**-40, -1 - 2.0**-8 - 2.0**-40, 2.0**-25 + 2.0**-60]
    return list(nearest(some, dtype))


def some_of(dtype: str, count: int) -> list:
    """All of them, or a part that has the first and the extreme ones."""
    every = extremes(dtype)
    if IS_LARGE or len(every) <= count:
        return every
    step = len(every) / count
    return [every[int(i * step)] for i in range(count)]


def exact(values: list, dtype: str):
    if kind_of(dtype) == 2:
        return numpy.array(values, LONG)
    made = numpy.empty(len(values), object)
    made[:] = [int(one) for one in values]
    return made


def tensor_of(values: list, dtype: str) -> genesis.Tensor:
    numbers = [float(one) if kind_of(dtype) == 2 else int(one) for one in values]
    wide = "float64" if kind_of(dtype) == 2 else "uint64" if dtype == "uint64" else "int64"
    return genesis.tensor(numbers, dtype=wide).to(getattr(genesis, dtype))


def tensors_of(dtypes, values, is_number) -> list[genesis.Tensor]:
    """Operands along one dimension each, or without any."""
    made = []
    for i, (one, own) in enumerate(zip(dtypes, values, strict=True)):
        shape = [-1 if k == i else 1 for k in range(len(dtypes))]
        made.append(tensor_of(own, one).reshape(() if i in is_number else shape))
    return made


def is_refused(case, dtypes, values, is_number) -> bool:
    """uint64 and signed integers have no common type."""
    with pytest.raises(TypeError, match="uint64 and int"):
        case.call(*tensors_of(dtypes, values, is_number))
    return True


def converted(values, to: str):
    """Exact elements of any type as those of another."""
    if kind_of(to) == 2:
        return nearest(values.astype(LONG), to)
    return numpy.frompyfunc(lambda one: wrapped(int(one), to), 1, 1)(values)


def elements(made: genesis.Tensor):
    if made.dtype.is_floating_point:
        return made.double().numpy().astype(LONG)
    return made.numpy().astype(object)


# ---- comparison ----


def check_floats(label, actual, expected, dtype, computed, ulps, terms=()):
    """At most half a last place off, and what the computing type may lose of the terms before."""
    bound, top = nearest(expected, dtype), abs(numpy.where(numpy.isfinite(expected), expected, 0))
    is_over = numpy.zeros(expected.shape, bool)  # a term has no number in the computing type
    for term in terms:
        term = numpy.broadcast_to(abs(term), expected.shape)
        is_over |= numpy.isfinite(term) & (term > largest(computed))
        top = numpy.where(numpy.isfinite(term), numpy.maximum(top, term), top)
    slack = ulps * last_place(top, computed) + last_place(expected, dtype) / 2
    near = abs(actual - expected) <= slack * LONG(1.0001)
    near_top = (abs(expected) + slack >= largest(dtype)) & (numpy.sign(actual) == numpy.sign(bound))
    is_beyond = numpy.isinf(bound) | numpy.isinf(actual)
    good = numpy.where(is_beyond, (actual == bound) | near_top, near)
    good |= is_over | (numpy.isnan(actual) & numpy.isnan(expected))
    if ulps == 0:
        is_zero = (expected == 0) & (actual == 0)
        good &= ~is_zero | (numpy.signbit(actual) == numpy.signbit(expected))
    refuse(label, ~good, actual, expected)


def refuse(label, wrong, actual, expected):
    places = [tuple(map(int, at)) for at in numpy.argwhere(wrong)]
    assert not places, (label, [(at, actual[at], expected[at]) for at in places[:3]], len(places))


def check(name, case, dtypes, values, is_number=()):
    """One call with operands of these types, each along a dimension of its own."""
    wide = [dtype for i, dtype in enumerate(dtypes) if i not in is_number]
    dtype = wide[0]
    for one in wide[1:]:
        dtype = promoted(dtype, one)
    for i in is_number:  # without dimensions: only a higher kind counts
        dtype = promoted(dtype, dtypes[i]) if kind_of(dtypes[i]) > kind_of(dtype) else dtype
    if dtype is None and case.result not in ("same", "float", "bool"):
        return False  # each operand becomes that type
    if dtype is None:
        return is_refused(case, dtypes, values, is_number)
    if "bif"[kind_of(dtype)] not in case.kinds:
        return False
    result = {"same": dtype, "float": floating_of(dtype), "bool": "bool"}.get(
        case.result, case.result
    )
    computed = compute_type(dtype if case.result in ("same", "bool") else result)
    tensors, arrays = tensors_of(dtypes, values, is_number), []
    for i, (one, own) in enumerate(zip(dtypes, values, strict=True)):
        shape = [-1 if k == i else 1 for k in range(len(dtypes))]
        arrays.append(converted(exact(own, one).reshape(shape), computed))
    made = case.call(*tensors)
    label = f"{name} of {', '.join(dtypes)}"
    assert made.dtype.name == result, (label, made.dtype, result)
    reference = case.floats if kind_of(computed) == 2 else case.integers
    expected = reference(*arrays)
    actual = elements(made)
    expected, actual = numpy.broadcast_arrays(expected, actual.reshape(numpy.shape(expected)))
    if kind_of(result) == 2:
        terms = () if case.terms is None else case.terms(*arrays)
        computed = computed if kind_of(computed) == 2 else result
        ulps = case.ulps + (0.5 if computed != result else 0)
        check_floats(label, actual, expected.astype(LONG), result, computed, ulps, terms)
        return True
    expected = numpy.frompyfunc(lambda one: wrapped(int(one), result), 1, 1)(expected)
    refuse(label, actual.astype(object) != expected, actual, expected)
    return True


# ---- the tests ----


def test_the_reference_rounds_once():
    for dtype in ("float16", "float32", "float64"):
        own = numpy.random.default_rng(1).standard_normal(1000) * 1e3
        assert (nearest(own, dtype) == own.astype(dtype)).all()
    assert nearest(LONG(65520), "float16") == numpy.inf
    assert nearest(LONG(65519), "float16") == 65504


def test_no_function_is_forgotten():
    names = {
        name
        for name in genesis.__all__
        if callable(getattr(genesis, name)) and not isinstance(getattr(genesis, name), type)
    }
    told = {name.split()[0] for table in (ONE, TWO, THREE) for name in table} | {*ROWS}
    told |= composites.OWN
    listed = {name for words in composites.ELSEWHERE.values() for name in words.split()}
    assert not told & listed, sorted(told & listed)
    missing = names - told - listed
    assert not missing, f"not in composites.py: {sorted(missing)}"
    text = " ".join(
        one.__doc__ or "" for one in globals().values() if isinstance(one, types.FunctionType)
    )
    assert all(name in text for name in composites.OWN)


@pytest.mark.parametrize("name", ONE)
def test_one_operand(name):
    done = [check(name, ONE[name], (one,), (extremes(one),)) for one in DTYPES]
    assert any(done)


@pytest.mark.parametrize("name", TWO)
def test_two_operands(name):
    pairs = itertools.product(DTYPES, DTYPES)
    done = [check(name, TWO[name], pair, [some_of(one, 12) for one in pair]) for pair in pairs]
    assert any(done)


@pytest.mark.parametrize("name", THREE)
def test_three_operands(name):
    every = [*itertools.product(DTYPES, repeat=3)]
    some = every if IS_LARGE else every[::3]
    done = [check(name, THREE[name], one, [some_of(dtype, 5) for dtype in one]) for one in some]
    assert any(done)


@pytest.mark.parametrize("name", TWO)
def test_an_operand_without_dimensions(name):
    if name == "outer":
        pytest.skip("it takes vectors")
    for one, two in itertools.product(DTYPES, DTYPES):
        for value in some_of(two, 3):
            check(name, TWO[name], (one, two), (some_of(one, 12), [value]), is_number=(1,))


@pytest.mark.parametrize("name", THREE)
def test_one_of_three_without_dimensions(name):
    every = [*itertools.product(DTYPES, repeat=3)]
    for i, one in enumerate(every if IS_LARGE else every[1::4]):
        at = i % 3
        own = [some_of(dtype, 3) for dtype in one]
        own[at] = own[at][-1:]
        check(name, THREE[name], one, own, is_number=(at,))


@pytest.mark.parametrize("source", DTYPES)
def test_conversions(source):
    """From every type to every type: rounded once, by every way."""
    draw = numpy.random.default_rng(3)
    if kind_of(source) == 2:
        some = [
            *extremes(source),
            *nearest(draw.standard_normal(20000 if IS_LARGE else 4000), source),
        ]
    else:
        some = [
            *extremes(source),
            *(wrapped(int(one), source) for one in draw.integers(-(2**63), 2**63 - 1, 500)),
        ]
    x, array = tensor_of(some, source), exact(some, source)
    for to in DTYPES:
        if kind_of(source) == 2 and kind_of(to) == 1:
            continue  # what does not fit is anything
        expected = (
            converted(array, to)
            if to != "bool"
            else numpy.array([int(one != 0) for one in some], object)
        )
        ways = [x.to(getattr(genesis, to)), genesis.empty(len(some), dtype=to).copy_(x)]
        ways.append((x + 0 if source != "bool" else x).to(getattr(genesis, to)))  # one that waits
        for made in ways:
            same = (elements(made) == expected) | (
                (expected != expected) & (elements(made) != elements(made))
            )
            assert same.all(), (source, to, numpy.array(some, object)[~same][:3])
        if kind_of(to) == 2:
            for value in some[:40]:
                number = float(value) if kind_of(source) == 2 else int(value)
                one = nearest(LONG(value), to)
                filled = [genesis.full((2,), number, dtype=to)[0], genesis.tensor(number, dtype=to)]
                filled.append(genesis.zeros(3, dtype=to))
                filled[-1][1:] = number
                for made in (filled[0].item(), filled[1].item(), filled[2][2].item()):
                    assert made == one or (made != made and one != one), (number, to)


def rows(dtype: str):
    top = float(largest(dtype))
    digits, least = LAYOUTS[dtype]
    step = 2.0 ** (14 - digits + 1)  # the distance of numbers at 2^14
    made = {"top": [top, top, top], "around": [top, -top, top], "half": [top, top / 2],
            "tiny": [2.0**least] * 3, "close": [2.0**14, 2.0**14 + step, 2.0**14 + step],
            "usual": [1, 2, 3, 4.5, 1e3], "equal": [0.1] * 7, "many": [1.0] * 300,
            "large": [30000.0, 30000.0, 30000.0, 29000.0]}  # fmt: skip
    return {kind: nearest(row, dtype) for kind, row in made.items()}


# Of float64, which has no wider type: sums and squares that it does not hold, as in NumPy.
TOO_WIDE = {
    *itertools.product(("var", "std", "var_mean", "std_mean"), ("top", "around", "half", "close")),
    *itertools.product(("norm",), ("top", "around", "half", "tiny")),
    *itertools.product(("mean", "nanmean", "scatter_reduce", "sum", "nansum", "trace"),
                       ("top", "around", "half")),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    call, reference, ulps = ROWS[name]
    for dtype in FLOATS:
        for kind, row in rows(dtype).items():
            made = call(tensor_of(list(row), dtype))
            assert made.dtype.name == dtype
            computed = "float32" if dtype != "float64" else dtype
            expected = numpy.array([reference(row)], LONG)
            if dtype == "float64" and (name, kind) in TOO_WIDE:
                continue
            terms = (abs(row).max(),) if name in ("nansum", "sum", "trace") else ()
            label = (name, dtype, kind)
            check_floats(label, elements(made).reshape(1), expected, dtype, computed, ulps, terms)


def test_put_together():
    """cat, stack, hstack, vstack, dstack, column_stack: the type of all, found at once; where."""
    names = ("cat", "stack", "hstack", "vstack", "dstack", "column_stack")
    for three in itertools.product(DTYPES, repeat=3):
        wide = promoted(promoted(three[0], three[1]), three[2])
        parts = [tensor_of(some_of(one, 2)[-1:], one) for one in three]
        if wide is None:
            with pytest.raises(TypeError, match="uint64 and int"):
                genesis.cat(parts)
            continue
        for name in names if three[0] == "bool" or IS_LARGE else names[:1]:
            made = getattr(genesis, name)(parts)
            assert made.dtype.name == wide, (name, three)
            for one, part, dtype in zip(elements(made.reshape(-1)), parts, three, strict=True):
                own = converted(exact(elements(part), dtype), wide)[0]
                assert one == own or (one != one and own != own), (name, three)
        if promoted(three[0], three[1]) is not None:
            made = genesis.where(genesis.tensor([True, False]), parts[0], parts[1])
            assert made.dtype.name == promoted(three[0], three[1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_with_a_sum(dtype):
    """addmm, addmv, baddbmm with factors, inner, tensordot, einsum: halves are rounded once."""
    draw = numpy.random.default_rng(5)
    a, b, c = (
        nearest(draw.standard_normal(shape) * 30, dtype) for shape in ((4, 5), (5, 3), (4, 3))
    )
    ta, tb, tc = (tensor_of(list(one.reshape(-1)), dtype).reshape(one.shape) for one in (a, b, c))
    for alpha, beta in ((0.125, 1), (1, 0.3), (1e-3, 7), (1, 1), (2.5, 0)):
        expected = beta * c + alpha * (a @ b)
        scale = abs(beta * c) + abs(alpha) * (abs(a) @ abs(b))
        made = genesis.addmm(tc, ta, tb, alpha=alpha, beta=beta)
        check_floats("addmm", elements(made), expected, dtype, "float32", 8, [scale])
        made = genesis.addmv(tc[:, 0], ta, tb[:, 0], alpha=alpha, beta=beta)
        check_floats("addmv", elements(made), expected[:, 0], dtype, "float32", 8, [scale[:, 0]])
        made = genesis.baddbmm(tc[None], ta[None], tb[None], alpha=alpha, beta=beta)
        check_floats("baddbmm", elements(made)[0], expected, dtype, "float32", 8, [scale])
    made = [
        genesis.tensordot(ta, tb, 1),
        genesis.einsum("ij,jk->ik", ta, tb),
        genesis.inner(ta, tb.T),
    ]
    for one in made:
        check_floats("product", elements(one), a @ b, dtype, "float32", 8, [abs(a) @ abs(b)])
    huge = genesis.full((2, 2), 300.0, dtype=dtype)
    assert (
        genesis.addmm(huge, huge, huge, alpha=2.0**-8, beta=0).tolist()
        == [[704.0 if dtype == "bfloat16" else 703.0] * 2] * 2
    )


def test_places_among_others():
    """isin, searchsorted, bucketize, histc, diff, index_add: one type for both operands."""
    for one, two in itertools.product(DTYPES, DTYPES):
        first, second = some_of(one, 8), [v for v in some_of(two, 8) if v == v]
        wide = promoted(one, two)
        if wide is None:
            continue
        x, y = (converted(exact(own, dtype), wide) for own, dtype in ((first, one), (second, two)))
        made = genesis.isin(tensor_of(first, one), tensor_of(second, two))
        assert made.tolist() == [any(bool(a == b) for b in y) for a in x], (one, two)
        if "bool" in (one, two):
            continue
        edges = numpy.sort(y)
        numbers = [v for v in x if v == v]
        kept = [v for v, w in zip(first, x, strict=True) if w == w]
        ordered = tensor_of(sorted(second), two)
        places = genesis.searchsorted(ordered, tensor_of(kept, one))
        assert places.tolist() == [int((edges < v).sum()) for v in numbers], (one, two)
        assert genesis.bucketize(tensor_of(kept, one), ordered).tolist() == places.tolist()
    halves = genesis.tensor([0.0, 0.1, 0.3, 0.7, 0.9, 1.0], dtype=genesis.float16)
    counts, _ = numpy.histogram(halves.double().numpy(), 10, (0, 1))
    assert genesis.histc(halves, 10, 0, 1).tolist() == counts.tolist()
    made = genesis.diff(tensor_of([-128, 127], "int8"))
    assert made.tolist() == [-1] and made.dtype == genesis.int8
    made = genesis.zeros(1, dtype=genesis.int32).index_add(
        0, genesis.tensor([0, 0]), genesis.tensor([100, 100], dtype=genesis.int32), alpha=100
    )
    assert made.tolist() == [20000]
    x = genesis.tensor([300, 300, 3], dtype=genesis.int16)
    made = genesis.ones(1, dtype=genesis.int16).scatter_reduce(
        0, genesis.zeros(3, dtype=genesis.int64), x, "prod"
    )
    assert made.tolist() == [wrapped(270000, "int16")]


def test_on_the_simulated_gpu():
    """A few of them; `make soak` takes more."""
    finished = simulate_script("device_composites.py", "12")
    assert not finished.stderr, finished.stderr
