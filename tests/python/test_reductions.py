"""Reductions on the CPU beside NumPy, for every way in which elements are cut into parts."""

from __future__ import annotations

import itertools

import numpy
import pytest

import genesis

# Short and long rows, few and many of them, rows and columns that are cut into parts.
SHAPES = [
    (1, 1),
    (3, 2),
    (2000, 1),
    (2000, 3),
    (700, 32),
    (700, 33),
    (30, 1024),
    (30, 1025),
    (3, 70_000),
    (2, 5000),
    (9, 4097),
    (17, 16),
    (40_000, 17),
    (300, 2049),
    (1, 200_000),
    (200_000, 1),
]
DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64",
]  # fmt: skip


def numbers(shape, dtype, seed=0):
    """Small whole numbers, so that every order of adding gives the same."""
    rng = numpy.random.default_rng(seed)
    return rng.integers(0 if dtype[0] in "bu" else -4, 5, shape).astype(dtype)


def expected(name, array, axis):
    """NumPy's result, with sums in a type that holds them."""
    kept = {"float16": "float64", "float32": "float64", "float64": "float64", "uint64": "uint64"}
    wide = kept.get(array.dtype.name, "int64")
    if name in ("sum", "mean"):
        made = getattr(array.astype(wide), name)(axis)
        return made.astype(array.dtype) if array.dtype.kind == "f" else made
    return getattr(array, name)(axis)


def check(x, array, axis):
    """All reductions of a tensor, along an axis or axes."""
    floats = array.dtype.kind == "f"
    for name in ["sum", "any", "all", "max", "min"] + ["mean"] * floats:
        method = {"max": "amax", "min": "amin"}.get(name, name)
        made = getattr(x, method)(axis).numpy()
        wanted = expected(name, array, axis)
        assert made.shape == wanted.shape and (made == wanted).all(), (name, array.shape, axis)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_and_columns(dtype, shape):
    array = numbers(shape, dtype)
    if dtype == "float16" and array.size > 20_000:
        array[:] = array[:] * (numpy.arange(array.size) % 997 == 0).reshape(shape)
    x = genesis.tensor(array)
    for axis in (0, 1, (0, 1)):
        check(x, array, axis)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_dimensions_that_go_lie_anywhere(dtype):
    for shape in [(6, 3, 100), (5, 40, 7), (3, 5, 2100), (1, 4, 64), (20, 2, 2, 90)]:
        array = numbers(shape, dtype, seed=1)
        x = genesis.tensor(array)
        for count in range(1, len(shape)):
            for axis in itertools.combinations(range(len(shape)), count):
                check(x, array, axis)
                check(x.transpose(0, -1), array.swapaxes(0, -1), axis)
                check(x[..., ::2], array[..., ::2], axis)
                check(x[:, 1:], array[:, 1:], axis)


def test_pending_operations_go_into_the_pass():
    for shape in SHAPES:
        array = numbers(shape, "float32", seed=2)
        x = genesis.tensor(array)
        for axis in (0, 1):
            assert ((x * 2 + 1).sum(axis).numpy() == (array * 2 + 1).sum(axis, dtype="f8")).all()
            assert (
                x.double().square().sum(axis).numpy() == (array * array).sum(axis, dtype="f8")
            ).all()
            assert ((x > 1).sum(axis).numpy() == (array > 1).sum(axis)).all()
            both = x + x
            kept = both.amax(axis)  # and what is pending is kept, too
            assert (kept.numpy() == (2 * array).max(axis)).all()
            assert (both.numpy() == 2 * array).all()


def test_columns_of_float64_are_added_from_the_first_row_on():
    rows = numpy.random.default_rng(3).standard_normal((50, 3000))
    wanted = numpy.zeros(3000)
    for row in rows:
        wanted += row
    assert (genesis.tensor(rows).sum(0).numpy() == wanted).all()


def test_values_that_end_or_win():
    for shape in [(300, 5), (5, 300), (3, 4000), (4000, 20)]:
        array = numpy.zeros(shape, "f4")
        array[1, 2] = numpy.nan
        array[2, 3] = -0.0
        x = genesis.tensor(array)
        for axis in (0, 1):
            for name in ("amax", "amin", "sum", "mean"):
                made = getattr(x, name)(axis).numpy()
                assert numpy.isnan(made).sum() == 1 and made[numpy.isnan(made) == 0].sum() == 0
            assert x.any(axis).sum().item() == 1
        zeros = genesis.full(shape, -0.0)
        assert not zeros.sum(0).signbit().any().item()  # 0 + -0, as from the first
        assert zeros.amax(0).signbit().all().item()


def test_no_elements():
    for shape, axis, kept in [
        ((0, 3), 0, 3),
        ((3, 0), 1, 3),
        ((700, 0), 1, 700),
        ((0, 700), 0, 700),
    ]:
        x = genesis.zeros(shape)
        assert x.sum(axis).tolist() == [0.0] * kept
        assert x.prod(axis).tolist() == [1.0] * kept
        assert x.mean(axis).isnan().all().item()
        assert x.all(axis).all().item() and not x.any(axis).any().item()
        assert x.to(genesis.int32).sum(axis).dtype == genesis.int64


@pytest.mark.parametrize("shape", [(2, 300_000), (300_000, 2), (1, 900_000), (4000, 300)])
def test_the_number_of_threads_changes_no_bit(shape):
    x = genesis.tensor(numpy.random.default_rng(0).standard_normal(shape))
    threads = genesis.cpu.get_num_threads()
    made = []
    try:
        for count in (1, 2, 3):
            genesis.cpu.set_num_threads(count)
            made.append([x.sum(axis).numpy().tobytes() for axis in (0, 1, (0, 1))])
    finally:
        genesis.cpu.set_num_threads(threads)
    assert made[0] == made[1] == made[2]


def test_bools_end_early_and_are_right():
    for count in (3, 1024, 1025, 70_000, 300_000):
        for place in (0, count // 2, count - 1):
            array = numpy.zeros((2, count), bool)
            array[1, place] = True
            x = genesis.tensor(array)
            assert x.amax(1).tolist() == x.any(1).tolist() == [False, True]
            assert (~x).amin(1).tolist() == (~x).all(1).tolist() == [True, False]
            assert x[1].amax().item() and x[1].any().item() and not (~x[1]).amin().item()
            assert x.sum(1).tolist() == [0, 1] and not x.prod(1).any().item()
