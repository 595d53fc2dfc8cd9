"""Sorting, selecting, cumulating, the different elements, and random numbers, against NumPy."""

from __future__ import annotations

import os

import numpy
import pytest

import genesis

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64",
]  # fmt: skip
SHAPES = [(), (1,), (7,), (5, 33), (2, 3, 4), (0, 3), (3, 0), (4, 1, 300)]


def values(rng, dtype: str, shape) -> numpy.ndarray:
    return rng.integers(0, 2 if dtype == "bool" else 50, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_topk(dtype):
    rng = numpy.random.default_rng(1)
    for shape in SHAPES:
        array = values(rng, dtype, shape)
        for tensor in (genesis.tensor(array), genesis.from_numpy(array.T.copy()).T):
            for dim in range(-1, array.ndim):
                if not shape:
                    assert tensor.sort().values.tolist() == array.tolist()
                    continue
                order = numpy.argsort(array, axis=dim, kind="stable")
                made = tensor.sort(dim)
                numpy.testing.assert_array_equal(made.indices.numpy(), order)
                numpy.testing.assert_array_equal(made.values.numpy(), numpy.sort(array, axis=dim))
                assert made.values.dtype == tensor.dtype and made[1] is made.indices
                numpy.testing.assert_array_equal(tensor.argsort(dim).numpy(), order)
                falling = tensor.sort(dim, descending=True).values
                numpy.testing.assert_array_equal(
                    falling.numpy(), numpy.flip(numpy.sort(array, axis=dim), dim)
                )
                k = array.shape[dim] // 2
                top = tensor.topk(k, dim)
                kept = falling.numpy().take(range(k), axis=dim)
                numpy.testing.assert_array_equal(top.values.numpy(), kept)
                if array.size:
                    found = numpy.take_along_axis(array, top.indices.numpy(), dim)
                    numpy.testing.assert_array_equal(found, kept)


def test_nan_is_the_largest():
    x = genesis.tensor([float("nan"), 1.0, float("inf"), -2.0])
    assert str(x.sort().values.tolist()) == "[-2.0, 1.0, inf, nan]"
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]
    assert x.topk(2).indices.tolist() == [0, 2] and x.topk(2, largest=False).indices.tolist() == [
        3,
        1,
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_cumulate(dtype):
    rng = numpy.random.default_rng(2)
    for shape in SHAPES:
        array = values(rng, dtype, shape)
        wide = dtype if dtype.startswith("float") or dtype == "uint64" else numpy.int64
        for tensor in (genesis.tensor(array), genesis.from_numpy(array.T.copy()).T):
            for dim in range(-1, array.ndim):
                made = tensor.cumsum(dim)
                if not shape:
                    assert made.item() == array
                    continue
                expected = numpy.cumsum(array.astype(numpy.float64), axis=dim).astype(wide)
                numpy.testing.assert_array_equal(made.numpy(), expected)
                assert made.numpy().dtype == expected.dtype
                small = (array % 3).astype(dtype) if dtype != "bool" else array
                product = genesis.tensor(small).cumprod(dim).numpy()
                if array.ndim and array.shape[dim] < 20:
                    numpy.testing.assert_array_equal(product, numpy.cumprod(small, dim, dtype=wide))


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    rng = numpy.random.default_rng(3)
    for shape in SHAPES:
        array = values(rng, dtype, shape)
        tensor = genesis.tensor(array)
        expected, inverse, counts = numpy.unique(array, return_inverse=True, return_counts=True)
        assert tensor.unique().tolist() == expected.tolist()
        found = tensor.unique(return_inverse=True, return_counts=True)
        assert found[0].tolist() == expected.tolist() and found[2].tolist() == counts.tolist()
        assert found[1].tolist() == inverse.reshape(shape).tolist()
        assert len(tensor.unique(return_counts=True)) == 2


def test_rows_take_what_is_pending():
    x = genesis.tensor([3.0, 1.0, 2.0])
    assert (x * -1).sort().values.tolist() == [-3, -2, -1]
    assert (x + 1).cumsum(0).tolist() == [4, 6, 9]


def test_mistakes():
    x = genesis.zeros(2, 3)
    for wrong, error in [
        (lambda: x.sort(2), IndexError),
        (lambda: x.topk(4), ValueError),
        (lambda: x.topk(-1), ValueError),
        (lambda: x.cumsum(5), IndexError),
        (lambda: genesis.randint(5, 5, (2,)), ValueError),
        (lambda: genesis.randint(0, 300, (2,), dtype=genesis.uint8), ValueError),
        (lambda: genesis.rand(2, dtype=genesis.int32), TypeError),
        (lambda: genesis.randperm(-1), ValueError),
    ]:
        with pytest.raises(error):
            wrong()


def test_random_numbers():
    genesis.manual_seed(7)
    first = [
        genesis.rand(1000),
        genesis.randn(1000),
        genesis.randint(0, 10, (1000,)),
        genesis.randperm(50),
    ]
    genesis.manual_seed(7)
    again = [
        genesis.rand(1000),
        genesis.randn(1000),
        genesis.randint(0, 10, (1000,)),
        genesis.randperm(50),
    ]
    for one, other in zip(first, again, strict=True):
        assert one.tolist() == other.tolist()
    assert genesis.rand(1000).tolist() != first[0].tolist()
    uniform = genesis.rand(100_000).numpy()
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01
    normal = genesis.randn(100_000, dtype=genesis.float64).numpy()
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    assert set(genesis.randint(-2, 3, (1000,)).tolist()) == {-2, -1, 0, 1, 2}
    assert sorted(genesis.randperm(1000).tolist()) == list(range(1000))
    for dtype in (genesis.float16, genesis.bfloat16):
        assert genesis.rand(10, dtype=dtype).dtype == dtype
    assert genesis.rand(0).shape == (0,) and genesis.randint(4, (2, 2)).shape == (2, 2)
    genesis.cpu.set_num_threads(1)
    genesis.manual_seed(7)
    assert genesis.rand(1000).tolist() == first[0].tolist()
    genesis.cpu.set_num_threads(2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes(dtype):
    rng = numpy.random.default_rng(4)
    for shape in [(1,), (7,), (5, 33), (2, 3, 4), (0, 3), (3, 40000)]:
        array = values(rng, dtype, shape)
        for tensor in (genesis.tensor(array), genesis.from_numpy(array.T.copy()).T):
            if array.size:
                assert tensor.argmax().item() == array.argmax()
                assert tensor.argmin().item() == array.argmin()
                assert tensor.max().item() == array.max() and tensor.min().item() == array.min()
            for dim in range(-1, array.ndim):
                if array.shape[dim] == 0:
                    with pytest.raises(genesis.ShapeError, match="no elements"):
                        tensor.max(dim)
                    continue
                for name in ("max", "min"):
                    made = getattr(tensor, name)(dim)
                    place = getattr(array, "arg" + name)(dim)
                    numpy.testing.assert_array_equal(made.indices.numpy(), place)
                    numpy.testing.assert_array_equal(made.values.numpy(), getattr(array, name)(dim))
                    assert made.values.dtype == tensor.dtype
                    kept = getattr(genesis, name)(tensor, dim, keepdim=True)
                    assert kept.values.shape == kept[1].shape == array.max(dim, keepdims=True).shape
                    flat = getattr(genesis, "arg" + name)(tensor, dim)
                    numpy.testing.assert_array_equal(flat.numpy(), place)


def test_extremes_of_nan():
    x = genesis.tensor([[1.0, float("nan"), float("nan")], [3.0, 2.0, 3.0]])
    assert x.max(1).indices.tolist() == [1, 0] and x.min(1).indices.tolist() == [1, 1]
    assert x.argmax().item() == 1 and str(x.max(1).values.tolist()) == "[nan, 3.0]"
    y = genesis.tensor([1.5, 4.0, 4.0]).bfloat16()
    assert y.argmax().item() == 1 and y.half().argmin().item() == 0
    assert genesis.max(genesis.tensor([1, 5]), genesis.tensor([3, 2])).tolist() == [3, 5]
    with pytest.raises(IndexError):
        x.max(5)


LATE = numpy.random.default_rng(5).integers(0, 3000, (3, 4001)).astype(numpy.float32)
LATE_ORDER = numpy.argsort(LATE, axis=1, kind="stable")


def changed_in_place(x, pair):
    x[0] = 7
    x.fill_(1)
    return pair.indices.numpy()


def changed_through_a_view(x, pair):
    x.T[5] += 1
    return pair.indices.numpy()


def changed_by_numpy(x, pair):
    x.numpy()[:] = 0
    return pair.indices.numpy()


def gone(x, pair):
    indices = pair.indices
    del x, pair
    genesis.rand(3, 4001)
    return indices.numpy()


def of_another_shape(x, pair):
    return (pair.indices.reshape(-1, 3) + 0).numpy().reshape(3, 4001)


def in_an_expression(x, pair):
    return (genesis.where(pair.indices > -1, pair.indices, 0) * 2 // 2).numpy()


def in_a_reduction(x, pair):
    total = pair.indices.sum(dim=1)
    assert total.tolist() == [4001 * 2000] * 3 and pair.indices.amax().item() == 4000
    return pair.indices.numpy()


def by_others(x, pair):
    assert (x.gather(1, pair.indices).numpy() == numpy.sort(LATE, 1)).all()
    return numpy.from_dlpack(pair.indices)


def flushed(x, pair):
    genesis.flush()
    x.zero_()
    return pair.indices.numpy()


@pytest.mark.parametrize(
    "read",
    [changed_in_place, changed_through_a_view, changed_by_numpy, gone, of_another_shape,
     in_an_expression, in_a_reduction, by_others, flushed],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["own", "computed", "strided", "from NumPy"])
def test_positions_are_those_of_the_call(read, kind):
    """They are computed when somebody reads them, which nobody can see."""
    if kind == "from NumPy":
        x = genesis.from_numpy(LATE.copy())
    elif kind == "strided":
        x = genesis.tensor(LATE.T.copy()).T
    else:
        x = genesis.tensor(LATE) if kind == "own" else genesis.tensor(LATE) * 1
    pair = x.sort()
    assert pair.indices.shape == (3, 4001) and pair.indices.dtype == genesis.int64
    assert (read(x, pair) == LATE_ORDER).all()
    assert (pair.values.numpy() == numpy.sort(LATE, 1)).all()


def test_positions_after_a_fork():
    x = genesis.tensor(LATE)
    indices = x.sort().indices
    child = os.fork()
    if child == 0:
        os._exit(0 if (indices.numpy() == LATE_ORDER).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (indices.numpy() == LATE_ORDER).all()
