"""Every elementwise operation and reduction, for every dtype, against NumPy."""

from __future__ import annotations

import itertools
import math
import operator

import numpy
import pytest

import genesis

DTYPES = {
    name: getattr(numpy, name if name != "bool" else "bool_")
    for name in (
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
    )
}
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
SHAPES = [
    ((), ()),
    ((1,), (1,)),
    ((7,), (7,)),
    ((33, 5), (5,)),
    ((2, 1, 3), (4, 1)),
    ((0, 3), (3,)),
]


def values(rng, dtype: str, shape) -> numpy.ndarray:
    """Numbers of all sizes, with the special ones among them."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = numpy.iinfo(dtype)
        array = rng.integers(-9 if info.min < 0 else 0, 9, shape).astype(dtype)
        special = numpy.array([info.min, info.max, 0, 1], dtype)
    else:
        array = (rng.standard_normal(shape) * 4).astype(dtype)
        special = numpy.array([0.0, -0.0, math.nan, math.inf, -math.inf, 1, -1], dtype)
    flat = array.reshape(-1)
    if flat.size > 3:
        flat[rng.integers(0, flat.size, 2)] = rng.choice(special, 2)
    return array


def layouts(array: numpy.ndarray):
    """The same elements in memory in different ways."""
    yield array
    if array.ndim:
        yield numpy.ascontiguousarray(array[::-1])[::-1]
        yield numpy.repeat(array, 2, axis=-1)[..., ::2]
        yield numpy.asfortranarray(array)


def check(made: genesis.Tensor, expected, ulps: float = 0, absolute: float = 0) -> None:
    expected = numpy.asarray(expected)
    got = made.numpy()
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape
    if not ulps and not absolute:
        numpy.testing.assert_array_equal(got, expected)
        return
    wide, got = expected.astype(numpy.float64), got.astype(numpy.float64)
    both = numpy.isfinite(wide) & numpy.isfinite(got)
    numpy.testing.assert_array_equal(numpy.where(both, 0, got), numpy.where(both, 0, wide))
    allowed = ulps * numpy.spacing(numpy.abs(expected[both])).astype(numpy.float64) + absolute
    assert (numpy.abs(got[both] - wide[both]) <= allowed).all()


ARITHMETIC = {
    "add": numpy.add,
    "sub": numpy.subtract,
    "mul": numpy.multiply,
    "maximum": numpy.maximum,
    "minimum": numpy.minimum,
}
COMPARISONS = {
    "eq": numpy.equal,
    "ne": numpy.not_equal,
    "lt": numpy.less,
    "le": numpy.less_equal,
    "gt": numpy.greater,
    "ge": numpy.greater_equal,
    "logical_and": numpy.logical_and,
    "logical_or": numpy.logical_or,
    "logical_xor": numpy.logical_xor,
}
BITS = {
    "bitwise_and": numpy.bitwise_and,
    "bitwise_or": numpy.bitwise_or,
    "bitwise_xor": numpy.bitwise_xor,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS, *BITS])
def test_binary(name, dtype):
    rng = numpy.random.default_rng(hash((name, dtype)) % 1000)
    function = (ARITHMETIC | COMPARISONS | BITS)[name]
    if name == "sub" and dtype == "bool":
        with pytest.raises(TypeError, match="logical_xor"):
            genesis.tensor([True]) - genesis.tensor([True])
        return
    if name in BITS and dtype in FLOATS:
        with pytest.raises(TypeError, match=name):
            getattr(genesis, name)(genesis.zeros(1), genesis.zeros(1))
        return
    with numpy.errstate(all="ignore"):
        for first, second in SHAPES:
            a, b = values(rng, dtype, first), values(rng, dtype, second)
            expected = function(a, b)
            for one in layouts(a):
                check(getattr(genesis, name)(genesis.tensor(one), genesis.from_numpy(b)), expected)
                check(getattr(genesis.from_numpy(one), name)(genesis.tensor(b)), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_division(dtype):
    rng = numpy.random.default_rng(3)
    a, b = values(rng, dtype, (40, 3)), values(rng, dtype, (3,))
    with numpy.errstate(all="ignore"):
        check(genesis.tensor(a) / genesis.tensor(b), a / b)
        check(genesis.tensor(a) / 3, a / numpy.array(3, dtype))
        finite = numpy.isfinite(a) & (b != 0) & numpy.isfinite(b)
        quotient = (genesis.tensor(a) // genesis.tensor(b)).numpy()
        numpy.testing.assert_array_equal(quotient[finite], (a // b)[finite])
        left = (genesis.tensor(a) % genesis.tensor(b)).numpy()
        numpy.testing.assert_allclose(left[finite], (a % b)[finite], rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(dtype):
    rng = numpy.random.default_rng(4)
    a, b = values(rng, dtype, (50,)), values(rng, dtype, (50,))
    b[b == 0] = 3
    with numpy.errstate(all="ignore"):
        check(genesis.tensor(a) // genesis.tensor(b), a // b)
        check(genesis.tensor(a) % genesis.tensor(b), a % b)
    zeros = genesis.zeros(50, dtype=dtype)
    assert (genesis.tensor(a) // zeros).tolist() == (genesis.tensor(a) % zeros).tolist() == [0] * 50
    assert (genesis.tensor(a) / genesis.tensor(b)).dtype == genesis.float32


EXACT = {
    "neg": numpy.negative,
    "abs": numpy.abs,
    "sign": numpy.sign,
    "square": numpy.square,
}
ROUNDING = {"floor": numpy.floor, "ceil": numpy.ceil, "round": numpy.rint, "trunc": numpy.trunc}
TESTS = {"isnan": numpy.isnan, "isinf": numpy.isinf, "isfinite": numpy.isfinite}
FUNCTIONS = {
    "sqrt": numpy.sqrt,
    "exp": numpy.exp,
    "expm1": numpy.expm1,
    "log": numpy.log,
    "log1p": numpy.log1p,
    "log2": numpy.log2,
    "log10": numpy.log10,
    "sin": numpy.sin,
    "cos": numpy.cos,
    "tan": numpy.tan,
    "sinh": numpy.sinh,
    "cosh": numpy.cosh,
    "tanh": numpy.tanh,
    "asin": numpy.arcsin,
    "acos": numpy.arccos,
    "atan": numpy.arctan,
    "asinh": numpy.arcsinh,
    "acosh": numpy.arccosh,
    "atanh": numpy.arctanh,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / numpy.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + numpy.exp(-x)),
    "silu": lambda x: x / (1 + numpy.exp(-x)),
    "erf": numpy.vectorize(math.erf, otypes=[float]),
    "gelu": lambda x: x * 0.5 * (1 + numpy.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*EXACT, *ROUNDING, *TESTS, "logical_not"])
def test_exact_unary(name, dtype):
    function = (EXACT | ROUNDING | TESTS | {"logical_not": numpy.logical_not})[name]
    rng = numpy.random.default_rng(5)
    if dtype == "bool" and name == "neg":
        with pytest.raises(TypeError, match="logical_not"):
            -genesis.tensor([True])
        return
    with numpy.errstate(all="ignore"):
        for shape, _ in SHAPES:
            a = values(rng, dtype, shape)
            same = dtype == "bool" and name in EXACT or dtype not in FLOATS and name in ROUNDING
            expected = a if same else function(a)
            for one in layouts(a):
                check(getattr(genesis.tensor(one), name)(), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    """Within 4 units in the last place, and special values as NumPy has them."""
    rng = numpy.random.default_rng(6)
    a = values(rng, dtype, (2000,))
    if name == "gelu":
        a = a[numpy.isfinite(a)]
    with numpy.errstate(all="ignore"):
        expected = FUNCTIONS[name](a.astype(numpy.float64)).astype(dtype)
        bound = 1e-15 if dtype == "float64" else 1e-6  # of the larger term
        absolute = bound if name in ("gelu", "silu") else 0
        check(getattr(genesis.tensor(a), name)(), expected, ulps=4, absolute=absolute)
        if name == "silu":
            return
        in_place = genesis.tensor(a)
        assert getattr(in_place, name + "_")() is in_place
        check(in_place, expected, ulps=4, absolute=absolute)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quarter_turns(dtype):
    """The angles of the axes and diagonals are those next to the multiples of pi / 4."""
    small = numpy.finfo(dtype).tiny
    axis = numpy.array([0.0, -0.0, 1, -1, small, -small, 1e30, -1e30, math.inf, -math.inf], dtype)
    y, x = (part.ravel() for part in numpy.meshgrid(axis, axis))
    turns = numpy.arctan2(y.astype("f8"), x.astype("f8")) / (math.pi / 4)
    is_exact = turns == numpy.round(turns)
    expected = numpy.round(turns) * (math.pi / 4)
    made = genesis.arctan2(genesis.tensor(y), genesis.tensor(x)).numpy()
    assert is_exact.sum() > 70
    assert numpy.array_equal(made[is_exact], expected[is_exact].astype(dtype))
    assert numpy.array_equal(numpy.signbit(made), numpy.signbit(y))


def test_functions_of_integers_are_floating():
    x = genesis.tensor([1, 4, 9])
    assert x.sqrt().dtype == genesis.float32 and x.sqrt().tolist() == [1, 2, 3]
    assert x.double().sqrt().dtype == genesis.float64
    assert x.relu().dtype == genesis.int64


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype):
    rng = numpy.random.default_rng(7)
    for shape in [(), (1,), (1000,), (3, 5), (4, 1, 33), (2, 3, 4, 5), (0,), (3, 0), (0, 3)]:
        a = values(rng, dtype, shape)
        if dtype in FLOATS:
            a = rng.integers(-8, 8, shape).astype(dtype)  # sums are exact
        for one in layouts(a):
            tensor = genesis.tensor(one)
            axes = [None, *range(a.ndim)] + ([(0, a.ndim - 1)] if a.ndim > 1 else [])
            for axis in axes:
                for keep in (False, True):
                    options = {"dim": axis, "keepdim": keep}
                    wide = dtype if dtype in FLOATS or dtype == "uint64" else numpy.int64
                    with numpy.errstate(all="ignore"):
                        sums = a.astype(wide).sum(axis, keepdims=keep)
                    check(tensor.sum(**options), sums.astype(wide))
                    check(tensor.any(**options), a.any(axis, keepdims=keep))
                    check(tensor.all(**options), a.all(axis, keepdims=keep))
                    if numpy.prod(
                        [a.shape[i] for i in numpy.atleast_1d(axis)]
                        if axis is not None
                        else a.shape
                    ):
                        check(tensor.amax(**options), a.max(axis, keepdims=keep))
                        check(tensor.amin(**options), a.min(axis, keepdims=keep))
                        if dtype in ("float32", "float64"):
                            check(tensor.mean(**options), a.mean(axis, keepdims=keep), ulps=2)


def test_a_long_sum_is_accurate():
    rng = numpy.random.default_rng(8)
    a = rng.standard_normal(10_000_000).astype(numpy.float32)
    exact = a.sum(dtype=numpy.float64)
    x = genesis.from_numpy(a)
    assert abs(x.sum().item() - exact) <= 1e-6 * numpy.abs(a).sum(dtype=numpy.float64)
    for count in (1, 2, 3):
        genesis.cpu.set_num_threads(count)
        assert x.sum().item() == x.sum().item()
        assert (x * 2).sum().item() == 2 * x.sum().item()
    genesis.cpu.set_num_threads(2)


@pytest.mark.parametrize("columns", [64, 1025, 4096, 4097])
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 300])
def test_sums_of_columns(rows, columns):
    """The same whether what is summed lies in memory or is computed, on any number of threads."""
    a = numpy.random.default_rng(rows).standard_normal((rows, columns)).astype(numpy.float32)
    x, made = genesis.tensor(a), []
    for count in (1, 2, 3):
        genesis.cpu.set_num_threads(count)
        made += [x.sum(dim=0).numpy().tobytes(), (x * 1).sum(dim=0).numpy().tobytes()]
    genesis.cpu.set_num_threads(2)
    assert len(set(made)) == 1
    bound = 3e-7 * numpy.abs(a).sum(0, dtype=numpy.float64)
    assert (abs(x.sum(dim=0).numpy() - a.sum(0, dtype=numpy.float64)) <= bound).all()
    assert (genesis.full((rows, columns), -0.0).sum(dim=0).numpy() == 0).all()


@pytest.mark.parametrize("shape", [(5, 300), (3, 4, 70), (2, 1, 65), (2, 3, 4, 5)])
@pytest.mark.parametrize("is_fused", [True, False])
def test_results_lie_as_their_operands(shape, is_fused):
    """Operands that are transposed in the same way give a result that is, too, as in NumPy."""
    rng = numpy.random.default_rng(3)
    genesis.set_fusion(is_fused)
    try:
        for order in itertools.permutations(range(len(shape))):
            arrays = [rng.uniform(0.5, 2, shape).astype("f4").transpose(order) for _ in range(2)]
            a, b = arrays
            x, y = (genesis.tensor(one.transpose(numpy.argsort(order))) for one in arrays)
            x, y = x.permute(order), y.permute(order)
            row, plain = a[..., :1, :].copy(), numpy.ascontiguousarray(b)
            v, w = genesis.tensor(row), genesis.tensor(plain)
            t, u = x * 2, y + v  # pending, and transposed
            for ours, theirs in (
                (x + 1, a + 1),
                (1 / y, 1 / b),
                (x + y, a + b),
                (t * u - y, a * 2 * (b + row) - b),
                (genesis.where(t > u, t, u), numpy.maximum(a * 2, b + row)),
                (x < v, a < row),
                (genesis.square(x).double() + 1, numpy.square(a).astype("f8") + 1),
            ):
                assert numpy.allclose(ours.numpy(), theirs, rtol=1e-6)
                if 1 not in shape:
                    assert ours.stride() == x.stride(), (order, ours.stride())
            if 1 not in shape:
                assert [4 * stride for stride in (x + y).stride()] == list((a + b).strides)
            for ours, theirs in ((x + w, a + plain), (w * t, plain * (a * 2)), (t - w, a * 2 - b)):
                assert numpy.allclose(ours.numpy(), theirs, rtol=1e-6)
            z = (x + 1).clone()
            assert (1 in shape or z.stride() == x.stride()) and numpy.array_equal(z.numpy(), a + 1)
            z = x + 1
            z.add_(t)
            z[0] = 0
            theirs = a + 1 + a * 2
            theirs[0] = 0
            assert numpy.allclose(z.numpy(), theirs, rtol=1e-6)
    finally:
        genesis.set_fusion(True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "float16"])
def test_reductions_of_transposed(dtype):
    """Every dimension of every order of dimensions, of memory and of what is pending."""
    rng = numpy.random.default_rng(5)
    whole = rng.integers(0, 2 if dtype == "bool" else 9, (3, 70, 20)).astype(dtype)
    tensor = genesis.tensor(whole)
    for order in itertools.permutations(range(3)):
        a, x = whole.transpose(order), tensor.permute(order)
        views = [(a, x), (a[:, ::-1], x.flip(1)), (a[..., ::2], x[..., ::2])]
        if dtype != "bool":
            views.append((a + a, x + x))
        for a_view, x_view in views:
            wide = a_view.astype("f8" if dtype.startswith("float") else "i8")
            for dims in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
                total = wide.sum(dims).astype(dtype if dtype == "float16" else wide.dtype)
                assert numpy.array_equal(x_view.sum(dims).numpy(), total), (order, dims)
                assert numpy.array_equal(x_view.amax(dims).numpy(), a_view.max(dims)), (order, dims)


def test_nan_wins():
    x = genesis.tensor([1.0, math.nan, 3.0])
    assert (
        math.isnan(x.amax().item()) and math.isnan(x.amin().item()) and math.isnan(x.sum().item())
    )
    assert math.isnan(genesis.maximum(x, 2.0).tolist()[1]) and math.isnan(x.relu().tolist()[1])


def test_casts():
    rng = numpy.random.default_rng(9)
    for dtype in DTYPES:
        a = rng.integers(0, 100, (7, 3)).astype(dtype)
        for other in DTYPES:
            check(genesis.tensor(a).to(getattr(genesis, other)), a.astype(other))
            check(genesis.tensor(a, dtype=other), a.astype(other))
    x = genesis.tensor([1.0, 2.5, -3.0]).bfloat16()
    assert x.dtype == genesis.bfloat16 and x.float().tolist() == [1, 2.5, -3]
    assert (x + 1).dtype == genesis.bfloat16 and (x + 0.5).tolist() == [1.5, 3, -2.5]


def test_promotion():
    """PyTorch's rules, written out."""
    f16, f32, f64 = genesis.float16, genesis.float32, genesis.float64
    i8, i32, i64, u8, b = genesis.int8, genesis.int32, genesis.int64, genesis.uint8, genesis.bool
    for left, right, expected in [
        (f16, f32, f32), (f32, f64, f64), (f16, genesis.bfloat16, f32), (i8, u8, genesis.int16),
        (i32, f16, f16), (i64, f32, f32), (b, i8, i8), (b, f16, f16), (i32, i64, i64), (b, b, b),
    ]:  # fmt: skip
        for one, two in ((left, right), (right, left)):
            assert (genesis.ones(2, dtype=one) + genesis.ones(2, dtype=two)).dtype == expected
    for left, right in itertools.product(INTEGERS, INTEGERS):
        expected = numpy.promote_types(left, right).name
        one, two = genesis.ones(2, dtype=left), genesis.ones(2, dtype=right)
        if expected in INTEGERS:
            assert (one + two).dtype == expected == genesis.promote_types(left, right)
            continue
        for call in (operator.add, operator.lt, lambda *both: genesis.cat(both)):
            with pytest.raises(TypeError, match="uint64 and int.* have no common type"):
                call(one, two)
        assert (one + two[0]).dtype == left and (one[0] + two).dtype == right
        parts = [one, two, genesis.ones(2)]
        for three in itertools.permutations(parts):  # a floating type has them all
            assert genesis.cat(three).dtype == f32
    x = genesis.ones(2, dtype=i8)
    assert (x + 1).dtype == i8 and (x + 1.5).dtype == f32 and (x + True).dtype == i8
    assert (genesis.ones(2, dtype=b) + 1).dtype == i64 and (
        genesis.ones(2, dtype=f16) + 2.5
    ).dtype == f16
    zero = genesis.tensor(1.0, dtype=f64)  # without dimensions
    assert (genesis.ones(2) + zero).dtype == f32 and (x + zero).dtype == f64
    assert (genesis.ones((), dtype=i8) + zero).dtype == f64


@pytest.mark.parametrize("dtype", INTEGERS)
def test_order_beside_numbers_that_a_type_has_not(dtype):
    info = numpy.iinfo(dtype)
    for count in (1, 100):  # at once, and recorded
        array = numpy.array([info.min, 0, 5, info.max] * count, dtype=dtype)
        x = genesis.tensor(array)
        numbers = (-1, info.min - 1, info.max + 1, 1 << 40, -(1 << 63), 1 << 63, (1 << 64) - 1)
        for number in (one for one in numbers if -(1 << 63) <= one < 1 << 64):
            for name in ("eq", "ne", "lt", "le", "gt", "ge"):
                compare = getattr(operator, name)
                expected = compare(array.astype(object), number).tolist()
                assert compare(x, number).tolist() == expected, (name, number)
            for name in ("minimum", "maximum"):
                nearest = getattr(numpy, name)(array.astype(object), number)
                expected = nearest.clip(info.min, info.max).tolist()
                assert getattr(genesis, name)(x, number).tolist() == expected, (name, number)
        low, high = max(info.min - 9, -(1 << 63)), min(info.max + 9, (1 << 64) - 1)
        assert x.clamp(low, high).tolist() == array.tolist()


@pytest.mark.parametrize("count", (3, 1000))
def test_numbers_that_int64_has_not(count):
    """They go with uint64 and floating types; as elements of others they are refused."""
    large = 2**64 - 3
    x = genesis.arange(count, dtype="uint64")
    assert (x + large).tolist() == [(i + large) % 2**64 for i in range(count)]
    assert (x - 1)[0].item() == 2**64 - 1 and (large - x)[2].item() == large - 2
    assert genesis.where(x > 1, x, large).tolist()[:3] == [large, large, 2]
    assert x.fill_(large).tolist() == [large] * count == genesis.full((count,), large).tolist()
    assert x.sum().item() == large * count % 2**64 and x.sum().dtype == genesis.uint64
    assert x.clone().masked_fill(x > 5, 2**63)[1].item() == 2**63
    assert (genesis.ones(count) + large)[1].item() == 2.0**64
    assert (genesis.ones(count, dtype="bool") | large)[0].item() == large
    x[1:] = 2**63
    assert x.tolist() == [large] + [2**63] * (count - 1)
    assert genesis.tensor([2**63, 0.5]).tolist() == [2.0**63, 0.5]
    assert genesis.tensor([2.0**63, 7], dtype="uint64").tolist() == [2**63, 7]
    steps = genesis.arange(2**63, 2**64 - 1, 2**62)
    assert steps.tolist() == [2**63, 3 << 62] and steps.dtype == genesis.uint64
    with pytest.raises(OverflowError, match="no type has all of the numbers"):
        genesis.arange(-1, 2**63, 2**62)
    places = genesis.tensor([2, 0, 1], dtype="uint64")
    assert genesis.one_hot(places).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert places.repeat_interleave(places).tolist() == [2, 2, 1]
    assert genesis.round(genesis.tensor([2**63, 2**64 - 3, 25]), decimals=-1).tolist() == [
        *(2**63 + 2, 2**64 - 6, 20)
    ]
    for dtype in ("int64", "uint8", "uint32"):
        y = genesis.ones(count, dtype=dtype)
        for wrong in (
            lambda y=y: y + large,
            lambda y=y: y.fill_(large),
            lambda y=y: y.masked_fill(y > 0, large),
            lambda y=y: y.__setitem__(genesis.tensor([0]), large),
            lambda y=y: genesis.where(y > 0, y, large),
            lambda dtype=dtype: genesis.full((2,), large, dtype=dtype),
        ):
            with pytest.raises(OverflowError, match=f"does not fit {dtype}"):
                wrong()
        assert y.tolist() == [1] * count


@pytest.mark.parametrize("name, bits", [("float16", 10), ("bfloat16", 7)])
def test_numbers_beside_halves_are_rounded_once(name, bits):
    """A number just above the middle of two halves becomes the upper one, not by way of float32."""
    number, upper = 1 + 2.0 ** -(bits + 1) + 2.0**-30, 1 + 2.0**-bits
    x = genesis.zeros(3, dtype=getattr(genesis, name))
    out = genesis.empty(3, dtype=x.dtype)
    for made in (
        genesis.maximum(x, number),
        genesis.minimum(x + 5, number),
        x.clamp(min=number),
        (x + 5).clamp(0, number),
        genesis.where(x == 0, number, x),
        genesis.where(x != 0, x, number),
        x.masked_fill(x == 0, number),
        genesis.maximum(x, number, out=out),
    ):
        assert made.dtype == x.dtype and made.tolist() == [upper] * 3


def test_where():
    rng = numpy.random.default_rng(10)
    condition, a, b = rng.integers(0, 2, (4, 1)).astype(bool), rng.random((3,)), rng.random((4, 3))
    made = genesis.where(genesis.tensor(condition), genesis.tensor(a), genesis.tensor(b))
    check(made, numpy.where(condition, a, b))
    check(genesis.where(genesis.tensor(condition), 1, 0), numpy.where(condition, 1, 0))


def test_operators():
    x, y = genesis.tensor([6, 7, -8]), genesis.tensor([4, -3, 2])
    for tensor, expected in [
        (x + y, [10, 4, -6]), (1 + x, [7, 8, -7]), (x - 1, [5, 6, -9]), (1 - x, [-5, -6, 9]),
        (x * y, [24, -21, -16]), (2 * x, [12, 14, -16]), (x // y, [1, -3, -4]), (x % y, [2, -2, 0]),
        (x / 2, [3, 3.5, -4]), (2 / genesis.tensor([4.0]), [0.5]), (x**2, [36, 49, 64]),
        (-x, [-6, -7, 8]), (+x, [6, 7, -8]), (abs(x), [6, 7, 8]), (x & 3, [2, 3, 0]),
        (x | 1, [7, 7, -7]),
        (x ^ 1, [7, 6, -7]), (~x, [-7, -8, 7]), (x << 1, [12, 14, -16]), (x >> 1, [3, 3, -4]),
        (x > y, [True, True, False]), (x == 6, [True, False, False]), (x > 6, [False, True, False]),
        (x != y, [True, True, True]), (2 ** genesis.tensor([3]), [8]),
    ]:  # fmt: skip
        assert tensor.tolist() == expected
    z = x
    z += 1
    z *= 2
    assert z is x and x.tolist() == [14, 16, -14]
    assert (x + numpy.array([1, 2, 3])).tolist() == [15, 18, -11]
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        x + None
