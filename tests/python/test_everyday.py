"""What has a fast way of its own, beside NumPy or a plain loop: odd sizes, strides, extremes."""

from __future__ import annotations

import math

import numpy
import pytest

import genesis

SIZES = (1, 7, 63, 64, 65, 255, 256, 257, 1023, 1025, 5000)
FLOATS = (genesis.float16, genesis.bfloat16, genesis.float32, genesis.float64)
INTEGERS = (genesis.uint8, genesis.int8, genesis.int16, genesis.int32, genesis.int64)
SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, -3.5, 7.25, 60000.0)


def bits(tensor: genesis.Tensor) -> numpy.ndarray:
    """The bytes of each element, with every NaN the same."""
    array = (tensor.float() if tensor.dtype == genesis.bfloat16 else tensor).numpy().copy()
    if array.dtype.kind == "f":
        array[numpy.isnan(array)] = numpy.nan
    return array.view(f"u{array.dtype.itemsize}")


def special(dtype: genesis.dtype, count: int) -> genesis.Tensor:
    """Elements that go round through what is special."""
    return genesis.tensor([SPECIAL[i % len(SPECIAL)] for i in range(count)], dtype=dtype)


# ---- powers of numbers ----


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_are_their_operations(dtype, count):
    x = special(dtype, count)
    wide = x.float() if dtype in (genesis.float16, genesis.bfloat16) else x
    expected = {
        1: wide * 1,
        2: wide * wide,
        3: wide * wide * wide,
        0.5: wide.sqrt(),
        -0.5: 1 / wide.sqrt(),
        -1: 1 / wide,
        -2: 1 / (wide * wide),
    }
    for exponent, made in expected.items():
        wanted = bits(made.to(dtype))
        assert (bits(x**exponent) == wanted).all(), exponent
        assert (bits(genesis.pow(x, float(exponent))) == wanted).all(), exponent
        assert (bits((x * 1) ** exponent * 1) == wanted).all(), exponent
        assert (bits(x.clone().pow_(exponent)) == wanted).all(), exponent
        strided = genesis.stack([x, x], 1)[:, 0]
        assert (bits(strided**exponent) == wanted).all(), exponent


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_wrap(dtype, count):
    array = numpy.arange(count, dtype=numpy.int64).astype(dtype.name) * 37
    x = genesis.tensor(array)
    for exponent in (1, 2, 3):
        made = x**exponent
        assert made.dtype == dtype
        with numpy.errstate(over="ignore"):
            assert (made.numpy() == array ** numpy.array(exponent, dtype.name)).all()
    with pytest.raises(ValueError, match="negative"):
        x**-1


def test_other_powers_are_those_of_c():
    x = special(genesis.float64, 11)
    for exponent in (0, 0.25, 4, -3, math.inf, math.nan):
        with numpy.errstate(all="ignore"):
            expected = numpy.power(x.numpy(), exponent)
        numpy.testing.assert_array_equal((x**exponent).numpy(), expected)
    exponents = genesis.full((11,), 0.5, dtype=genesis.float64)  # tensors are not looked at
    roots = [math.pow(one, 0.5) if one >= 0 or one == -math.inf else math.nan for one in x.tolist()]
    numpy.testing.assert_array_equal((x**exponents).numpy(), roots)


# ---- where the largest element is ----


def plain_extreme(values, is_maximum):
    best = 0
    for i, value in enumerate(values):
        if value != value:
            return i
        if value > values[best] if is_maximum else value < values[best]:
            best = i
    return best


@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS, genesis.bool))
def test_argmax_of_ties_and_extremes(dtype):
    rng = numpy.random.default_rng(3)
    for count in (*SIZES, 2 * 32768 + 3):
        numbers = rng.integers(0 if dtype in (genesis.bool, genesis.uint8) else -3, 3, count)
        for place in {0, count // 2, count - 1}:
            for value in (100, -100) if dtype not in (genesis.bool, genesis.uint8) else (1, 0):
                numbers[place] = value
                x = genesis.tensor(numbers.tolist(), dtype=dtype)
                values = x.tolist()
                assert x.argmax().item() == plain_extreme(values, True), (count, place)
                assert x.argmin().item() == plain_extreme(values, False), (count, place)


@pytest.mark.parametrize("dtype", FLOATS)
def test_argmax_of_nan_and_zeros(dtype):
    for count in (*SIZES, 70000):
        x = genesis.zeros(count, dtype=dtype)
        x[::2] = -0.0
        assert x.argmax().item() == 0 and x.argmin().item() == 0
        for place in {0, count // 3, count - 1}:
            for nan in (math.nan, -math.nan):
                y = x.clone()
                y[place] = math.inf
                y[place // 2 + count // 2] = nan
                y[-1] = nan
                first = plain_extreme(y.tolist(), True)
                assert y.argmax().item() == first and y.argmin().item() == first


def test_argmax_of_rows_and_of_one_that_is_very_long():
    rng = numpy.random.default_rng(4)
    for shape in ((5, 3), (3, 5000), (1000, 17), (2, 3, 1025)):
        array = rng.integers(-9, 9, shape).astype(numpy.float32)
        x = genesis.tensor(array)
        for dim in range(len(shape)):
            assert (x.argmax(dim).numpy() == array.argmax(dim)).all()
            assert (x.argmin(dim).numpy() == array.argmin(dim)).all()
    long = numpy.zeros(64 * 32768 + 4097, numpy.int8)
    long[[-1, -5000]] = 1
    assert genesis.tensor(long).argmax().item() == long.size - 5000


# ---- largest, smallest, any, all, counts ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_max_and_min_of_special_values(dtype):
    for count in SIZES:
        x = special(dtype, count)
        values = x.tolist()
        if any(value != value for value in values):
            assert math.isnan(x.max().item()) and math.isnan(x.min().item())
        else:
            assert x.max().item() == max(values) and x.min().item() == min(values)
        negative = genesis.tensor([1.0] * (count - 1) + [-math.nan], dtype=dtype)
        assert math.isnan(negative.max().item()) and math.isnan(negative.min().item())
        zeros = genesis.tensor([-0.0] * (count - 1) + [0.0], dtype=dtype)
        assert math.copysign(1, zeros.max().item()) == 1
        assert math.copysign(1, zeros.min().item()) == (-1 if count > 1 else 1)


@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS, genesis.bool))
def test_any_and_all_see_every_element(dtype):
    for count in (*SIZES, 16384, 65536 + 9, 200000):
        for place in {0, 1 % count, count // 2, count - 1}:
            x = genesis.zeros(count + 3, dtype=dtype)[1 : count + 1]
            assert not x.any().item() and (count == 0 or not x.all().item())
            x[place] = 1
            assert x.any().item()
            y = genesis.ones(count + 3, dtype=dtype)[1 : count + 1]
            assert y.all().item()
            y[place] = 0
            assert not y.all().item() and y.any().item() == (count > 1)


def test_any_and_all_of_rows_columns_and_pending_values():
    rng = numpy.random.default_rng(5)
    for shape in ((3, 5), (1000, 1000), (2, 70000), (70000, 2)):
        for density in (0.0001, 0.5, 0.9999):
            array = rng.random(shape) < density
            x = genesis.tensor(array)
            for dim in (0, 1):
                assert (x.any(dim).numpy() == array.any(dim)).all()
                assert (x.all(dim).numpy() == array.all(dim)).all()
            assert ((~x).any(1).numpy() == (~array).any(1)).all()
            assert (x.float() * 2 == 2).all().item() == array.all()
    assert genesis.tensor([math.nan]).all().item() and not genesis.tensor([-0.0]).any().item()
    assert genesis.zeros(0).all().item() and not genesis.zeros(0).any().item()


def test_counts_of_bool():
    rng = numpy.random.default_rng(6)
    for count in (0, 1, 127, 128, 129, 255 * 128, 255 * 128 + 129, 2 * 255 * 128 + 1, 300000):
        array = rng.random(count) < 0.7
        x = genesis.tensor(array)
        assert x.sum().item() == genesis.count_nonzero(x).item() == array.sum()
        assert genesis.ones(count, dtype=genesis.bool).sum().item() == count
    raw = numpy.array([0, 1, 2, 255, 0, 4], numpy.uint8).view(bool)  # any byte but 0 is true
    assert genesis.tensor(raw).sum().item() == 4 and genesis.from_numpy(raw).sum().item() == 4


# ---- creation ----


@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS, genesis.bool))
def test_zeros_ones_and_eye(dtype):
    for count in (0, 1, 5, 33000, 70001):
        assert genesis.zeros(count, dtype=dtype).tolist() == [0] * count
        assert genesis.ones(count, dtype=dtype).tolist() == [1] * count
    for rows, columns in ((0, 0), (0, 3), (3, 0), (1, 1), (4, 4), (3, 7), (7, 3)):
        made = genesis.eye(rows, columns, dtype=dtype)
        assert made.dtype == dtype and made.shape == (rows, columns)
        assert made.tolist() == numpy.eye(rows, columns).tolist()


def test_shapes_are_given_in_several_ways():
    for make in (genesis.zeros, genesis.ones, genesis.empty):
        for shape in ((), (2,), (2, 3), (0, 4)):
            assert make(*shape).shape == shape or not shape
            assert make(shape).shape == make(list(shape)).shape == make(size=shape).shape == shape
        assert make(size=4).shape == (4,) and make(numpy.int64(4), 2).shape == (4, 2)
        assert make(2, dtype=None, device="cpu", pin_memory=False).dtype == genesis.float32
        for wrong in (("a",), (2.5,), (2, "b"), ([1, [2]],)):
            with pytest.raises(TypeError):
                make(*wrong)
        with pytest.raises(TypeError, match="given once"):
            make(2, size=3)
        with pytest.raises(TypeError, match="unexpected keyword argument 'dim'"):
            make(2, dim=3)
        with pytest.raises(ValueError, match="negative"):
            make(-1)


@pytest.mark.parametrize("dtype", (None, *FLOATS, *INTEGERS))
def test_arange_beside_a_plain_loop(dtype):
    cases = [
        (5,),
        (0,),
        (-3,),
        (2, 9),
        (9, 2),
        (9, 2, -3),
        (0, 100, 7),
        (0, 1, 0.3),
        (1, -1, -0.25),
    ]
    for case in (*cases, (0.5, 70000), (-5, 70001, 3)):
        start, end, step = (0, case[0], 1) if len(case) == 1 else (*case, 1)[:3]
        is_whole = all(isinstance(one, int) for one in case)
        is_small = dtype in (genesis.uint8, genesis.int8, genesis.int16)
        if dtype == genesis.bfloat16 or (is_small and (end > 100 or start < 0)):
            continue
        count = max(0, math.ceil((end - start) / step))
        made = genesis.arange(*case, dtype=dtype)
        if dtype is not None and not dtype.is_floating_point:
            start, step = int(start), int(step)
        wanted = genesis.int64 if is_whole else genesis.float32
        assert made.dtype == (dtype or wanted)
        with numpy.errstate(over="ignore"):
            expected = numpy.array([i * step + start for i in range(count)], made.dtype.name)
        assert (made.numpy() == expected).all() and made.shape == (count,)


def test_arange_of_numbers_at_the_ends_of_their_types():
    most = 2**63 - 1
    assert genesis.arange(most - 2, most).tolist() == [most - 2, most - 1]
    assert genesis.arange(-most - 1, -most + 1).tolist() == [-most - 1, -most]
    assert genesis.arange(-most - 1, most, most).tolist() == [-most - 1, -1, most - 1]
    assert genesis.arange(numpy.int32(2), genesis.tensor(8), numpy.float64(2.5)).tolist() == [
        2,
        4.5,
        7,
    ]
    assert genesis.arange(end=3).tolist() == [0, 1, 2] and genesis.arange(True).tolist() == [0]
    with pytest.raises(ValueError, match="step must not be 0"):
        genesis.arange(1, 2, 0)
    with pytest.raises(ValueError, match="NaN"):
        genesis.arange(math.nan)
    for end in (math.inf, 2**64):
        with pytest.raises(OverflowError):
            genesis.arange(end)
    for end in ("a", [1, 2]):
        with pytest.raises(TypeError):
            genesis.arange(end)
    with pytest.raises(TypeError, match="missing"):
        genesis.arange()
    with pytest.raises((genesis.OutOfMemoryError, ValueError, MemoryError)):
        genesis.arange(2**62)


# ---- copies of short rows, lists ----


@pytest.mark.parametrize("name", ("uint8", "float16", "float32", "float64"))
def test_copies_with_short_rows(name):
    rng = numpy.random.default_rng(7)
    for shape in ((700, 3), (40, 5, 31), (33, 2, 32), (9, 70, 33), (3, 1, 2, 600), (2000, 2)):
        array = rng.integers(0, 100, (*shape, 2)).astype(name)
        x = genesis.tensor(array)
        views = [(x[..., 0], array[..., 0]), (x[..., ::2, 1], array[..., ::2, 1])]
        views.append((x.transpose(0, -2)[..., 0], array.swapaxes(0, -2)[..., 0]))
        views.append((x[1:, ..., 0].flip(0), array[1:, ..., 0][::-1]))
        for view, expected in views:
            assert (view.clone().numpy() == expected).all()
            assert ((view + view).numpy() == expected + expected).all()
            target = genesis.zeros(*expected.shape, 3, dtype=x.dtype)
            target[..., 1] = view
            assert (target[..., 1].numpy() == expected).all()
            assert not target[..., 0].any().item() and not target[..., 2].any().item()


def test_repeat_interleave_by_a_number():
    rng = numpy.random.default_rng(8)
    for shape in ((0,), (1,), (700,), (5, 3), (2, 3, 4), (3, 0, 2)):
        array = rng.integers(0, 100, shape)
        x = genesis.tensor(array)
        for count in (0, 1, 2, 3, 40):
            assert (x.repeat_interleave(count).numpy() == array.repeat(count)).all()
            assert (
                genesis.repeat_interleave(x, genesis.tensor(count)).numpy() == array.repeat(count)
            ).all()
            for dim in range(-len(shape), len(shape)):
                made = x.repeat_interleave(count, dim)
                assert (made.numpy() == array.repeat(count, dim)).all()
    assert genesis.tensor(5).repeat_interleave(2).tolist() == [5, 5]
    with pytest.raises(ValueError, match="repeat_interleave: counts are not negative"):
        x.repeat_interleave(-1)
    with pytest.raises(IndexError):
        x.repeat_interleave(2, 5)


@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS, genesis.bool))
def test_lists_of_elements(dtype):
    for shape in ((), (1,), (7,), (2, 3), (0,), (2, 0), (0, 2), (2, 1, 3)):
        numbers = numpy.arange(math.prod(shape)).reshape(shape) % (
            2 if dtype == genesis.bool else 99
        )
        x = genesis.tensor(numbers, dtype=dtype)
        wanted = numbers.astype(
            bool if dtype == genesis.bool else float if dtype in FLOATS else int
        )
        assert x.tolist() == wanted.tolist() and repr(x.tolist()) == repr(wanted.tolist())
        if x.ndim > 1:
            assert x.transpose(0, 1).tolist() == wanted.swapaxes(0, 1).tolist()
            assert x[:, ::-1].tolist() == wanted[:, ::-1].tolist() if shape[1] else True
    assert genesis.tensor([2**63 - 1, -(2**63)]).tolist() == [2**63 - 1, -(2**63)]


# ---- division of integers by a number ----


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_divided_by_a_number(dtype):
    info = genesis.iinfo(dtype)
    rng = numpy.random.default_rng(9)
    far = [2**31, 2**50 - 1, 2**50, 2**53 + 1, -(2**50) - 1, 2**62]
    ends = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, -1, 2, 7, -7, 100, -100]
    numbers = [one for one in ends + far if info.min <= one <= info.max]
    near = rng.integers(max(info.min, -(2**40)), min(info.max, 2**40), 1100).tolist()
    divisors = {2, 3, 7, 10, 100, 127, 255, 1000, 641, 2**15, 2**30 - 1, 2**30, 2**31 - 1, 2**40}
    divisors |= {-one for one in divisors} | {1, -1, 0, info.max, info.min}
    for values in (near + near[:1] * 3, numbers + near[:700], numbers):
        x = genesis.tensor(values, dtype=dtype)
        for divisor in sorted(one for one in divisors if info.min <= one <= info.max):
            quotient, rest = (x // divisor).tolist(), (x % divisor).tolist()
            wanted = [(one // divisor, one % divisor) if divisor else (0, 0) for one in values]
            wrapped = numpy.array([one[0] for one in wanted], object)
            wrapped = [(one - info.min) % 2**info.bits + info.min for one in wrapped]
            assert quotient == wrapped, divisor
            assert rest == [one[1] for one in wanted], divisor
            assert x.clone().floor_divide_(divisor).tolist() == quotient
            other = genesis.full((len(values),), divisor, dtype=dtype)
            other[-1] = divisor - 1 if divisor > info.min else divisor  # not one number
            assert (x // other).tolist()[:-1] == quotient[:-1]
            assert (x % other).tolist()[:-1] == rest[:-1]


@pytest.mark.parametrize("divisor", range(1, 256))
def test_every_byte_divided_by_every_byte(divisor):
    array = numpy.arange(256).astype(numpy.uint8)
    x = genesis.tensor(array)
    assert ((x // divisor).numpy() == array // divisor).all()
    assert ((x % divisor).numpy() == array % divisor).all()
    signed = array.view(numpy.int8)
    if divisor < 128:
        for one in (divisor, -divisor):
            y = genesis.tensor(signed)
            with numpy.errstate(over="ignore"):
                assert ((y // one).numpy() == signed // numpy.int8(one)).all()
                assert ((y % one).numpy() == signed % numpy.int8(one)).all()


# ---- functions at the ends of their types ----


@pytest.mark.parametrize("dtype", (genesis.float32, genesis.float64))
def test_angles_and_powers_at_the_ends(dtype):
    info = genesis.finfo(dtype)
    ends = [0.0, info.tiny, info.tiny / 8, 1e-30, 0.41421356, 0.5, 1.0, 2.4142135, 1e30]
    ends += [info.max, info.max / 2, math.inf, math.nan]
    ends += [-one for one in ends]
    pairs = genesis.tensor([[a, b] for a in ends for b in ends], dtype=dtype)
    y, x = pairs[:, 0].clone(), pairs[:, 1].clone()
    tolerance = 1e-6 if dtype == genesis.float32 else 1e-14
    wide = [(float(a), float(b)) for a, b in pairs.tolist()]
    expected = [math.atan2(a, b) for a, b in wide]
    made = genesis.atan2(y, x).numpy()
    numpy.testing.assert_allclose(made, expected, rtol=tolerance, atol=info.tiny)
    is_number = ~numpy.isnan(expected)
    assert (numpy.signbit(made) == numpy.signbit(expected))[is_number].all()
    numpy.testing.assert_allclose(
        genesis.atan(y).numpy(), [math.atan(a) for a, _ in wide], rtol=tolerance, atol=0
    )
    with numpy.errstate(all="ignore"):
        powers = numpy.power(y.numpy(), x.numpy())
    numpy.testing.assert_allclose((y**x).numpy(), powers, rtol=tolerance, atol=info.tiny)


# ---- one behind the other ----


def test_cat_beside_numpy():
    rng = numpy.random.default_rng(10)
    for dim in (0, 1, 2, -1):
        shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
        shapes[0][dim], shapes[1][dim] = 5, 0
        arrays = [rng.integers(0, 9, shape).astype(numpy.int32) for shape in shapes]
        tensors = [genesis.tensor(one) for one in arrays]
        wanted = numpy.concatenate(arrays, dim)
        assert (genesis.cat(tensors, dim).numpy() == wanted).all()
        assert (genesis.cat([*tensors, genesis.zeros(0)], dim).numpy() == wanted).all()
        turned = [genesis.tensor(one.T.copy()).permute(2, 1, 0) for one in arrays]
        assert (genesis.cat(turned, dim).numpy() == wanted).all()
        mixed = genesis.cat([tensors[0], tensors[2].to(genesis.float16)], dim)
        assert mixed.dtype == genesis.float16 and mixed.shape[dim] == wanted.shape[dim]
    x = genesis.arange(3)
    assert genesis.cat([x + 1, x * 2]).tolist() == [1, 2, 3, 0, 2, 4]  # pending
    assert genesis.cat([genesis.zeros(0), genesis.zeros(0)]).shape == (0,)
    for wrong, error, words in [
        (lambda: genesis.cat([]), ValueError, "cat: there must be a tensor"),
        (lambda: genesis.cat([x, x], 1), IndexError, "cat: dimension 1 is out of range"),
        (lambda: genesis.cat([genesis.zeros(0)], 1), IndexError, "out of range for shape"),
        (
            lambda: genesis.cat([x, genesis.zeros(2, 2)]),
            genesis.ShapeError,
            "cat: shapes .* differ",
        ),
        (lambda: genesis.cat([x, genesis.tensor(1)]), genesis.ShapeError, "use stack"),
        (lambda: genesis.cat([x, 3]), TypeError, "cat: a list of tensors"),
    ]:
        with pytest.raises(error, match=words):
            wrong()


# ---- one element for all ----


def test_a_tensor_of_one_element_goes_with_many():
    rng = numpy.random.default_rng(11)
    for shape in ((1,), (7,), (1025,), (70000,), (3, 5), (40, 1, 50)):
        array = rng.random(shape, dtype=numpy.float32)
        x = genesis.tensor(array)
        for number in (genesis.tensor(2.5), genesis.tensor([2.5]), genesis.tensor([1.0, 2.5])[1]):
            assert ((x * number).numpy() == array * numpy.float32(2.5)).all()
            assert ((number - x).numpy() == numpy.float32(2.5) - array).all()
        spread = genesis.tensor(2.5).expand(shape)
        assert (spread.clone().numpy() == 2.5).all() and (spread.sum().item()) == 2.5 * array.size
        assert (
            (x + spread + spread).numpy() == array + numpy.float32(2.5) + numpy.float32(2.5)
        ).all()
        y = x.clone()
        first = y.reshape(-1)[0]
        y.mul_(first)  # which it changes itself
        assert (y.numpy() == array * array.reshape(-1)[0]).all()
