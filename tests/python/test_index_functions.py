"""Gathering, scattering and searching against NumPy and plain loops."""

from __future__ import annotations

import numpy
import pytest

import genesis
from genesis.autograd import gradcheck, gradgradcheck

DTYPES = [
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
    "float32", "float64",
]  # fmt: skip


def case(rng):
    """A tensor, a dimension, and an index that fits."""
    ndim = int(rng.integers(1, 4))
    shape = [int(rng.integers(1, 6)) for _ in range(ndim)]
    dim = int(rng.integers(-ndim, ndim))
    sizes = [int(rng.integers(0, n + 1)) for n in shape]
    sizes[dim] = int(rng.integers(0, 8))
    array = rng.integers(0, 50, shape).astype(DTYPES[rng.integers(len(DTYPES))])
    if rng.random() < 0.3:
        array = array[tuple(slice(None, None, -1) for _ in shape)]
    return array, dim, rng.integers(0, shape[dim], sizes)


def places(index, dim):
    """The coordinates that an index along a dimension means, in row-major order."""
    for at in numpy.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        yield at, tuple(to)


FOLDS = {"sum": numpy.add, "mean": numpy.add, "prod": numpy.multiply,
         "amax": numpy.maximum, "amin": numpy.minimum}  # fmt: skip


@pytest.mark.parametrize("reduce", FOLDS)
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce, include_self):
    rng = numpy.random.default_rng(5)
    for _ in range(25):
        array, dim, index = case(rng)
        array = (array % 5).astype(array.dtype)
        source = rng.integers(0, 4, [n + 1 for n in index.shape]).astype(array.dtype)
        expected, counts = array.copy(), numpy.full(array.shape, int(include_self))
        for at, to in places(index, dim):
            is_first = counts[to] == 0
            with numpy.errstate(over="ignore"):
                expected[to] = source[at] if is_first else FOLDS[reduce](expected[to], source[at])
            counts[to] += 1
        if reduce == "mean":
            divide = numpy.divide if array.dtype.kind == "f" else numpy.floor_divide
            expected = divide(expected, numpy.maximum(counts, 1)).astype(array.dtype)
        x, i, v = genesis.tensor(array), genesis.tensor(index), genesis.tensor(source)
        made = genesis.scatter_reduce(x, dim, i, v, reduce, include_self=include_self)
        assert made.numpy().dtype == array.dtype
        numpy.testing.assert_allclose(made.numpy(), expected, rtol=2e-3)
        assert x.tolist() == array.tolist()
        assert x.scatter_reduce_(dim, i, v, reduce, include_self=include_self) is x
        assert x.tolist() == made.tolist()


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["b1", "u1", "i1", "i2", "i4", "i8", "u8", "f2", "f4", "f8"])
def test_scatter_reduce_of_many_values(reduce, dtype):
    """On several threads, of the extremes of a type, by elements and by rows: the same bits."""
    rng = numpy.random.default_rng(6)
    is_floating = numpy.dtype(dtype).kind == "f"
    if dtype == "b1":
        pool = numpy.array([False, True])
    elif is_floating:
        pool = numpy.array([1, -1, 2, 0.5, -numpy.inf], dtype)
    else:
        pool = numpy.array([numpy.iinfo(dtype).min, numpy.iinfo(dtype).max, 1, 3], dtype)
    source, start = pool[rng.integers(0, len(pool), (2000, 40))], pool[rng.integers(0, 2, (50, 40))]
    threads = genesis.cpu.get_num_threads()
    for is_by_rows in (False, True):
        index = rng.integers(0, 45, (2000, 1 if is_by_rows else 40))
        for has_self in (True, False):
            expected = start.copy()
            if not has_self:
                named = numpy.zeros((50, 40), bool)
                numpy.put_along_axis(named, numpy.broadcast_to(index, (2000, 40)), True, 0)
                least = pool.min() if dtype == "b1" or is_floating else numpy.iinfo(dtype).min
                most = numpy.inf if is_floating else pool.max()
                expected[named] = {"prod": 1, "amax": least, "amin": most}[reduce]
            at = (numpy.broadcast_to(index, (2000, 40)), numpy.broadcast_to(range(40), (2000, 40)))
            fold = FOLDS[reduce] if dtype != "b1" or reduce != "prod" else numpy.logical_and
            with numpy.errstate(all="ignore"):
                wide = expected.astype("f4") if dtype == "f2" else expected
                fold.at(wide, at, source.astype(wide.dtype))
            where = genesis.tensor(index).expand(2000, 40)
            for count in (1, 3):
                genesis.cpu.set_num_threads(count)
                made = genesis.tensor(start).scatter_reduce(
                    0, where, genesis.tensor(source), reduce, include_self=has_self
                )
                numpy.testing.assert_array_equal(made.numpy(), wide.astype(dtype))
    genesis.cpu.set_num_threads(threads)


@pytest.mark.parametrize("reduce", ["amax", "amin", "prod"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("is_by_rows", [True, False])
def test_gradients_of_scatter_reduce(reduce, include_self, is_by_rows):
    rng = numpy.random.default_rng(8)
    x = genesis.tensor(rng.permutation(20).reshape(5, 4) / 4.0).requires_grad_()
    v = genesis.tensor(rng.permutation(24).reshape(6, 4) / 4.0 + 0.1).requires_grad_()
    index = genesis.tensor(rng.integers(0, 4, (6, 1 if is_by_rows else 4))).expand(6, 4)

    def call(x, v):
        return (x * 1).scatter_reduce_(0, index, v, reduce, include_self=include_self)

    assert gradcheck(call, (x, v)) and gradgradcheck(call, (x, v))
    if reduce == "prod":
        return
    found = genesis.autograd.grad(call(x, v).sum(), [x, v])
    halves = [one.detach().bfloat16().requires_grad_() for one in (x, v)]
    rough = genesis.autograd.grad(call(*halves).float().sum(), halves)
    assert rough[0].dtype == genesis.bfloat16
    for a, b in zip(found, rough, strict=True):
        assert abs(a.sum() - b.double().sum()) < 0.5


def test_equal_elements_share_the_gradient_of_the_largest():
    x = genesis.tensor([1.0, 5.0, 2.0, float("nan")], requires_grad=True)
    v = genesis.tensor([5.0, 3.0, 5.0, 7.0, 1.0, -numpy.inf], requires_grad=True)
    index = genesis.tensor([1, 0, 1, 0, 3, 2])
    for include_self, own in ((True, 1 / 3), (False, 1 / 2)):
        made = x.scatter_reduce(0, index, v, "amax", include_self=include_self)
        of_x, of_v = genesis.autograd.grad(made[:3].sum(), [x, v])
        self_at_1 = own if include_self else 0
        first = 1 if include_self else 0
        assert of_x.tolist() == pytest.approx([0, self_at_1, first, 0])
        assert of_v.tolist() == pytest.approx([own, 0, own, 1, 0, 1 - first])


def test_scatter_reduce_of_what_it_writes_to():
    x = genesis.tensor([[1.0, 4.0], [3.0, 2.0]])
    x.t().scatter_reduce_(0, genesis.tensor([[1, 1], [1, 0]]), x.t(), "amax")
    assert x.tolist() == [[1, 4], [3, 3]]
    y = genesis.tensor([1.0, float("nan"), 3.0])
    assert y.scatter_reduce_(0, genesis.tensor([1, 0]), y[1:], "amin").isnan().tolist()[:2] == [
        False,
        True,
    ]


def test_scatter_reduce_mistakes():
    x, i, v = genesis.zeros(3), genesis.tensor([0, 3]), genesis.ones(2)
    for wrong, error, words in [
        (lambda: x.scatter_reduce_(0, i, v, "max"), ValueError, "not 'max'"),
        (lambda: x.scatter_reduce_(0, i, v, "amax"), IndexError, "3 is out of range"),
        (lambda: x.scatter_reduce_(1, i, v, "prod"), IndexError, "dimension 1"),
        (lambda: x.scatter_reduce(0, i, v.int(), "prod"), TypeError, "int32.*float32"),
    ]:
        with pytest.raises(error, match=words):
            wrong()
    assert x.tolist() == [0, 0, 0]
    one = genesis.tensor(2.0)
    assert one.scatter_reduce_(0, genesis.tensor(0), genesis.tensor(5.0), "prod").item() == 10
    assert (
        genesis.tensor([1.0])
        .scatter_reduce(0, genesis.tensor([0, 0]), genesis.tensor([float("nan"), 2.0]), "amax")
        .isnan()
    )


def test_gather_and_scatter():
    rng = numpy.random.default_rng(0)
    for _ in range(150):
        array, dim, index = case(rng)
        x, i = genesis.from_numpy(array.copy(order="K")), genesis.tensor(index)
        expected = numpy.zeros(index.shape, array.dtype)
        for at, to in places(index, dim):
            expected[at] = array[to]
        assert x.gather(dim, i).tolist() == expected.tolist()
        wide = [n + int(rng.integers(0, 2)) for n in index.shape]
        values = rng.integers(0, 50, wide).astype(array.dtype)
        put, added, filled = array.copy(), array.copy(), array.copy()
        for at, to in places(index, dim):
            put[to] = values[at]
            with numpy.errstate(over="ignore"):
                added[to] += values[at]
            filled[to] = 3
        v = genesis.tensor(values)
        assert genesis.scatter(x, dim, i, v).tolist() == put.tolist()
        assert genesis.scatter_add(x, dim, i, v).tolist() == added.tolist()
        assert x.scatter(dim, i, value=3).tolist() == filled.tolist()
        assert x.tolist() == array.tolist()
        assert x.scatter_add_(dim, i, v) is x and x.tolist() == added.tolist()


def test_no_dimensions():
    """A single number counts as one element, whatever tensors were there before it."""
    for size in (0, 7):
        before = [genesis.zeros(size) for _ in range(9)]
        del before
        x, first, second = genesis.tensor(2.0), genesis.tensor(0), genesis.tensor(1)
        assert x.gather(0, first).item() == 2
        assert x.scatter(0, first, value=3).item() == 3
        with pytest.raises(IndexError, match="index 1 .* of size 1"):
            x.gather(0, second)


def test_gather_of_many():
    rng = numpy.random.default_rng(1)
    array = rng.random((300, 400)).astype("float32")
    for dim in (0, 1):
        index = rng.integers(0, array.shape[dim], array.shape)
        x, i = genesis.tensor(array), genesis.tensor(index)
        assert numpy.array_equal(x.gather(dim, i).numpy(), numpy.take_along_axis(array, index, dim))
        added = array.copy()
        at = list(numpy.indices(array.shape))
        at[dim] = index
        numpy.add.at(added, tuple(at), array)
        assert numpy.array_equal(x.scatter_add(dim, i, x).numpy(), added)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64"])
def test_sums_by_several_threads(dtype):
    """Each has a share of the target: the sums are NumPy's, bit for bit, whoever adds."""
    rng = numpy.random.default_rng(3)
    before = genesis.cpu.get_num_threads()
    for count, size in ((1 << 16, 4096), (70001, 5003)):
        index, start = rng.integers(-size, size, count), (rng.random(size) * 9).astype(dtype)
        values = (rng.random(2 * count) * 100 - 50).astype(dtype)
        expected = start.copy()
        numpy.add.at(expected, index, values[::-2])
        i, v = genesis.tensor(index), genesis.tensor(values)[::-2]
        for threads in (1, 4, 5):
            genesis.cpu.set_num_threads(threads)
            got = genesis.tensor(start).index_put_((i,), v, accumulate=True)
            assert got.numpy().tobytes() == expected.tobytes(), (count, threads)
            index[-1] = size
            target = genesis.tensor(start)
            with pytest.raises(IndexError):
                target.index_put_((genesis.tensor(index),), v, accumulate=True)
            assert target.numpy().tobytes() == start.tobytes()
            index[-1] = i[-1].item()
    genesis.cpu.set_num_threads(before)


def test_slices_by_index():
    rng = numpy.random.default_rng(2)
    for _ in range(60):
        array, dim, _ = case(rng)
        index = rng.integers(0, array.shape[dim], int(rng.integers(0, 7)))
        x, i = genesis.tensor(array), genesis.tensor(index)
        assert genesis.index_select(x, dim, i).tolist() == array.take(index, dim).tolist()
        source = rng.integers(0, 9, array.take(index, dim).shape).astype(array.dtype)
        key = (slice(None),) * (dim % array.ndim)
        added, copied, filled = array.copy(), array.copy(), array.copy()
        for n, to in enumerate(index):
            added[(*key, to)] += 2 * source[(*key, n)]
            copied[(*key, to)] = source[(*key, n)]
            filled[(*key, to)] = 4
        s = genesis.tensor(source)
        assert x.clone().index_add_(dim, i, s, alpha=2).tolist() == added.tolist()
        assert x.clone().index_copy_(dim, i, s).tolist() == copied.tolist()
        assert x.clone().index_fill_(dim, i, 4).tolist() == filled.tolist()
    one = genesis.tensor(7)
    assert one.index_select(0, genesis.tensor([0])).tolist() == 7
    assert genesis.zeros(2, 3).index_select(1, genesis.tensor(2)).shape == (2, 1)


def test_take():
    array = numpy.arange(24).reshape(4, 6).T
    x = genesis.from_numpy(array)
    index = numpy.array([[0, -1], [7, 23]])
    assert x.take(genesis.tensor(index)).tolist() == array.take(index).tolist()
    assert genesis.take(x, 5).tolist() == array.take(5).tolist()
    order = numpy.argsort(-array, axis=1)
    for dim in (1, -1):
        expected = numpy.take_along_axis(array, order, dim)
        assert genesis.take_along_dim(x, genesis.tensor(order), dim).tolist() == expected.tolist()
    assert genesis.take_along_axis(x, order, 1).tolist() == x.take_along_dim(order, 1).tolist()
    best = x.argmax(0, True)
    assert x.take_along_dim(best, 0).tolist() == array.max(0, keepdims=True).tolist()
    assert x.take_along_dim(genesis.tensor([3, -1])).tolist() == array.ravel()[[3, -1]].tolist()
    with pytest.raises(genesis.ShapeError, match="take_along_dim"):
        x.take_along_dim(genesis.tensor([0]), 0)


def test_masks():
    array = numpy.arange(12.0, dtype="float32").reshape(3, 4)
    x = genesis.tensor(array)
    mask = numpy.array([True, False, True, False])
    assert x.masked_select(genesis.tensor(mask)).tolist() == [0, 2, 4, 6, 8, 10]
    column = genesis.tensor([[1.0], [2.0]])
    assert column.masked_select(genesis.tensor([True, False, True])).tolist() == [1, 1, 2, 2]
    filled = array.copy()
    filled[:, mask] = -1
    assert x.masked_fill(genesis.tensor(mask), -1).tolist() == filled.tolist()
    assert x.tolist() == array.tolist()
    assert x.masked_fill_(mask, genesis.tensor(-1.0)) is x and x.tolist() == filled.tolist()
    wide = genesis.ones(3).masked_fill(genesis.tensor([[True], [False]]), 5)
    assert wide.tolist() == [[5] * 3, [1] * 3]
    whole = genesis.tensor([1, 2])
    assert whole.masked_fill(genesis.tensor([True, False]), True).dtype == genesis.int64
    for call in (
        lambda: whole.masked_fill(whole, 0),
        lambda: whole.masked_fill_(whole > 1, 0.5),
        lambda: whole.masked_fill(whole > 1, 0.5),
        lambda: whole.masked_fill(whole > 1, whole),
        lambda: whole.masked_select(whole),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize(
    "shape", [(), (0,), (7,), (3, 0), (5, 3), (2, 3, 4), (70_000,), (300, 301)]
)
def test_nonzero(shape):
    rng = numpy.random.default_rng(3)
    array = (rng.random(shape) < 0.3) * rng.random(shape)
    for own in (array, array.astype("int8"), array > 0, array.T):
        x = genesis.tensor(own)
        expected = numpy.argwhere(own)
        assert numpy.array_equal(x.nonzero().numpy(), expected)
        columns = numpy.atleast_1d(own).nonzero()
        for made in (x.nonzero(as_tuple=True), genesis.where(x)):
            assert [one.tolist() for one in made] == [one.tolist() for one in columns]
        if own.ndim:
            assert x[genesis.where(x)].tolist() == own[columns].tolist()


def test_searchsorted():
    rng = numpy.random.default_rng(4)
    for dtype in DTYPES:
        sequence = numpy.sort(rng.integers(0, 20, 31).astype(dtype))
        values = rng.integers(0, 22, (3, 5)).astype(dtype)
        s, v = genesis.tensor(sequence), genesis.tensor(values)
        for side in ("left", "right"):
            expected = numpy.searchsorted(sequence, values, side)
            assert genesis.searchsorted(s, v, side=side).tolist() == expected.tolist()
        assert genesis.searchsorted(s, v, right=True).tolist() == expected.tolist()
    rows = numpy.sort(rng.random((4, 9)), axis=1)
    values = rng.random((4, 3))
    got = genesis.searchsorted(genesis.tensor(rows), genesis.tensor(values)).tolist()
    assert got == [numpy.searchsorted(a, b).tolist() for a, b in zip(rows, values, strict=True)]
    infinite = numpy.array([1.0, numpy.inf, numpy.nan, numpy.nan])
    for side in ("left", "right"):
        expected = numpy.searchsorted(infinite, [numpy.nan, 2, numpy.inf], side).tolist()
        values = genesis.tensor([numpy.nan, 2, numpy.inf])
        assert (
            genesis.searchsorted(genesis.tensor(infinite), values, side=side).tolist() == expected
        )
    assert genesis.searchsorted(genesis.zeros(0), genesis.ones(2)).tolist() == [0, 0]
    assert genesis.searchsorted(genesis.tensor([1, 2]), 1.5).tolist() == 1
    with pytest.raises(genesis.ShapeError, match="searchsorted"):
        genesis.searchsorted(genesis.zeros(2, 3), genesis.zeros(3, 3))
    with pytest.raises(ValueError, match="side"):
        genesis.searchsorted(genesis.zeros(2), genesis.zeros(1), side="middle")


@pytest.mark.parametrize("dtype", DTYPES)
def test_searchsorted_of_every_type(dtype):
    rng = numpy.random.default_rng(5)
    for length in (1, 2, 3, 7, 8, 9, 64, 1000):
        sequence = numpy.sort(rng.integers(0, 100, length).astype(dtype))
        values = rng.integers(0, 101, 77).astype(dtype)
        if dtype.startswith("float"):
            sequence[length * 3 // 4 :] = numpy.nan
            sequence[: length // 4] = -numpy.inf
            values[::5], values[1::5], values[2::5] = numpy.nan, numpy.inf, -0.0
        for side in ("left", "right"):
            got = genesis.searchsorted(genesis.tensor(sequence), genesis.tensor(values), side=side)
            assert got.tolist() == numpy.searchsorted(sequence, values, side).tolist()


@pytest.mark.parametrize("most", [1, 4095, 4096, 4097, 100000])
def test_bincount_of_many(most):
    """Numbers below 4096 are counted before it is known that they are."""
    numbers = numpy.random.default_rng(2).integers(0, most, 200001)
    numbers[-1] = most - 1
    x = genesis.tensor(numbers)
    for least in (0, 7, 4096, 5000):
        got, expected = x.bincount(minlength=least), numpy.bincount(numbers, minlength=least)
        assert got.numpy().tobytes() == expected.tobytes(), least
    numbers[1] = -3
    with pytest.raises(ValueError, match="-3"):
        genesis.tensor(numbers).bincount()


def test_bincount():
    numbers = numpy.array([1, 5, 1, 0])
    x = genesis.tensor(numbers)
    assert x.bincount().tolist() == numpy.bincount(numbers).tolist()
    assert (
        genesis.bincount(x, minlength=9).tolist() == numpy.bincount(numbers, minlength=9).tolist()
    )
    weights = numpy.array([0.5, 2, 1, 4])
    for dtype, made in (("float32", "float32"), ("float64", "float64"), ("int64", "float64")):
        got = x.bincount(genesis.tensor(weights.astype(dtype)))
        assert got.dtype.name == made
        assert got.tolist() == numpy.bincount(numbers, weights.astype(dtype)).tolist()
    assert genesis.tensor([], dtype=genesis.int64).bincount().shape == (0,)
    assert genesis.tensor([3], dtype=genesis.uint8).bincount().tolist() == [0, 0, 0, 1]
    for call, error in (
        (lambda: genesis.tensor([-1]).bincount(), ValueError),
        (lambda: genesis.zeros(2).bincount(), TypeError),
        (lambda: genesis.tensor([[1]]).bincount(), ValueError),
        (lambda: x.bincount(genesis.zeros(2)), ValueError),
        (lambda: x.bincount(minlength=-1), ValueError),
        (lambda: genesis.tensor([1 << 62]).bincount(), ValueError),
    ):
        with pytest.raises(error, match="bincount|address space"):
            call()


def test_mistakes():
    x, i = genesis.zeros(3, 4), genesis.tensor([[0, 1]])
    for call, error, words in (
        (lambda: x.gather(0, genesis.tensor([0])), ValueError, r"\(1,\) does not fit"),
        (lambda: x.gather(2, i), IndexError, "dimension 2"),
        (lambda: x.gather(1, i * 1.0), TypeError, "not of float32"),
        (lambda: x.gather(1, genesis.tensor([[4]])), IndexError, "index 4 .* of size 4"),
        (lambda: x.gather(1, genesis.tensor([[-1]])), IndexError, "negative"),
        (lambda: x.scatter(1, genesis.tensor([[-1]]), value=1), IndexError, "negative"),
        (lambda: x.scatter(1, i, genesis.zeros(1, 1)), ValueError, "too few"),
        (lambda: x.scatter(1, i), TypeError, "either"),
        (lambda: x.scatter(1, i, x, 5), TypeError, "either"),
        (lambda: i.clone().scatter_(1, i, value=0.5), TypeError, "float64 .* int64"),
        (lambda: i.clone().index_add_(1, i[0], genesis.ones(1, 2)), TypeError, "float32"),
        (lambda: i.index_put_((i[0],), 0.5, accumulate=True), TypeError, "float64 .* int64"),
        (lambda: x.index_select(0, i), IndexError, "at most one dimension"),
        (lambda: x.index_select(0, genesis.tensor([-1])), IndexError, "negative"),
        (lambda: x.index_copy_(0, i[0], genesis.zeros(3, 4)), ValueError, "broadcast"),
        (lambda: x.take(genesis.tensor([12])), IndexError, "index 12"),
        (lambda: x.take(x), TypeError, "integers"),
    ):
        with pytest.raises(error, match=words):
            call()
    assert not x.any().item()
    assert x.index_put_((genesis.tensor([-1]), genesis.tensor([0])), 5)[2, 0].item() == 5
    assert x.index_put_((0,), 1, accumulate=True)[0].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("width", [1, 3, 16, 33, 100])
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int64", "int8", "bool"])
def test_rows_are_added_to_rows(name, width):
    """Rows in stretches for several threads; whole numbers, so that the order does not matter."""
    generator = numpy.random.default_rng(width)
    start, values = (generator.integers(0, 2, (count, width)) for count in (300, 3000))
    places = generator.integers(-300, 300, 3000)
    expected = start.copy()
    numpy.add.at(expected, places, values)
    dtype = getattr(genesis, name)
    x, rows = (genesis.from_numpy(one).to(dtype) for one in (start, values))
    expected = genesis.from_numpy(expected).to(dtype).tolist()
    index = genesis.from_numpy(places)
    targets = [x.clone(), x.T.clone().T, genesis.zeros(300, 2 * width, dtype=dtype)[:, ::2]]
    targets[2].copy_(x)
    for target in targets:
        assert target.index_put_((index,), rows, accumulate=True).tolist() == expected
    if name.startswith("float"):
        table = x.clone().requires_grad_()
        table[index].backward(rows)
        assert (table.grad + x).tolist() == expected


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize(("shape", "dim"), [((7, 5), 0), ((7, 5), 1), ((3, 6, 4), 1), ((6, 1), 0)])
def test_scatter_by_an_expanded_index(shape, dim, reduce):
    """Such an index names slices; a copy of it, element by element, gives the same."""
    generator = numpy.random.default_rng(len(shape) + dim)
    sizes = [9 if i == dim else size for i, size in enumerate(shape)]
    numbers = genesis.from_numpy(generator.integers(0, shape[dim], 9))
    expanded = numbers.view([9 if i == dim else 1 for i in range(len(shape))]).expand(sizes)
    start, values = (generator.integers(-3, 4, size) for size in (shape, sizes))
    weight = genesis.arange(float(start.size)).view(shape)
    for name in ("float32", "float16", "int64"):
        for has_self in (True, False):
            made = []
            for index in (expanded, expanded.clone()):
                x, y = (genesis.from_numpy(v).to(getattr(genesis, name)) for v in (start, values))
                if name == "float32":
                    x.requires_grad_()
                    y.requires_grad_()
                z = x.scatter_reduce(dim, index, y, reduce, include_self=has_self)
                made.append([z.tolist(), x.detach().scatter_add(dim, index, y.detach()).tolist()])
                x.detach().clone().scatter_reduce_(dim, index, y, reduce, include_self=has_self)
                if name == "float32":
                    (z * weight).sum().backward()
                    made[-1] += [x.grad.tolist(), y.grad.tolist()]
            assert made[0] == made[1]
    wrong = expanded.clone()[:, :1] + shape[dim]
    with pytest.raises(IndexError, match="out of range"):
        genesis.zeros(shape).scatter_add(dim, wrong.expand(wrong.shape), genesis.ones(wrong.shape))
    far = (numbers + shape[dim]).view([9 if i == dim else 1 for i in range(len(shape))])
    with pytest.raises(IndexError, match="out of range"):
        genesis.zeros(shape).scatter_reduce(dim, far.expand(sizes), genesis.ones(sizes), reduce)
