"""Functions that are made of others, against NumPy."""

from __future__ import annotations

import math

import numpy
import pytest

import genesis

RNG = numpy.random.default_rng(0)
MATRIX = RNG.standard_normal((5, 7)).astype(numpy.float32)


def close(made: genesis.Tensor, expected, tolerance: float = 1e-5) -> None:
    numpy.testing.assert_allclose(made.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_softmax_and_its_kin():
    x = genesis.tensor(MATRIX)
    for dim in (0, 1, -1):
        powers = numpy.exp(MATRIX.astype(numpy.float64))
        close(x.softmax(dim), powers / powers.sum(dim, keepdims=True))
        close(x.log_softmax(dim), numpy.log(powers / powers.sum(dim, keepdims=True)))
        close(x.logsumexp(dim), numpy.log(powers.sum(dim)))
    assert x.logsumexp(1, keepdim=True).shape == (5, 1)
    close(genesis.softmax(x * 1000, 1).sum(dim=1), numpy.ones(5))  # nothing overflows
    assert genesis.tensor([-math.inf, -math.inf]).logsumexp(0).item() == -math.inf
    assert genesis.tensor([math.inf, 0.0]).logsumexp(0).item() == math.inf


def softmax_expected(array: numpy.ndarray, *, is_log: bool) -> numpy.ndarray:
    shifted = array.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):
        shifted = shifted - shifted.max(-1, keepdims=True)
    powers = numpy.exp(shifted)
    total = powers.sum(-1, keepdims=True)
    return shifted - numpy.log(total) if is_log else powers / total


# Rows that share a tile, that fill one, that need several, and that are made of other operations.
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (7, 1), (1000, 3), (2, 3, 33), (3, 512), (5, 1023), (4, 1024), (3, 1025), (40, 3000),
     (2, 65537), (0, 5), (5, 0)],
)  # fmt: skip
def test_softmax_of_rows(shape, dtype):
    x = genesis.tensor(RNG.standard_normal(shape) * 3).to(getattr(genesis, dtype))
    array = x.double().numpy()
    tolerance = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    views = (x, array), (x * 2 - 1, None), (x.flip(-1), array[..., ::-1]), (x[::2], array[::2])
    for value, wanted in views:
        if wanted is None:
            wanted = (x * 2 - 1).double().numpy()
        if wanted.size == 0:
            assert value.softmax(-1).shape == wanted.shape
            continue
        for is_log in (False, True):
            made = value.log_softmax(-1) if is_log else value.softmax(-1)
            least = tolerance if is_log else tolerance * 1e-4  # half of a float16 is 3e-8
            assert made.dtype == x.dtype
            numpy.testing.assert_allclose(
                made.double().numpy(), softmax_expected(wanted, is_log=is_log),
                rtol=4 * tolerance, atol=least,
            )  # fmt: skip


def test_softmax_of_rows_that_have_no_largest_number():
    rows = [[0.0, math.nan], [math.inf, 1.0], [-math.inf, -math.inf], [-math.inf, 2.0]]
    array = numpy.array(rows, dtype=numpy.float32)
    numpy.testing.assert_array_equal(
        genesis.tensor(array).softmax(1).numpy(), softmax_expected(array, is_log=False)
    )


def test_softmax_is_the_same_on_one_thread():
    x, threads = genesis.randn(300, 777), genesis.cpu.get_num_threads()
    made = []
    for count in (1, 2, 3):
        genesis.cpu.set_num_threads(count)
        made.append((x.softmax(1).numpy().tobytes(), (x * 3).log_softmax(1).numpy().tobytes()))
    genesis.cpu.set_num_threads(threads)
    assert made[0] == made[1] == made[2]


def test_statistics():
    x = genesis.tensor(MATRIX)
    for dim in (None, 0, 1, (0, 1)):
        close(x.var(dim), MATRIX.var(dim, ddof=1))
        close(x.std(dim, correction=0), MATRIX.std(dim))
        close(x.norm(dim=dim), numpy.sqrt((MATRIX**2).sum(dim)))
    assert x.var(1, keepdim=True).shape == (5, 1)
    assert math.isnan(genesis.tensor([1.0]).var().item())


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16])
def test_many_halves(dtype):
    """Their sums have no place in a half."""
    x = genesis.full((200_000,), 2.0, dtype=dtype)
    x[::2] = -2
    assert x.var().dtype == x.softmax(0).dtype == dtype and abs(x.var().item() - 4) < 0.1
    assert x.std(correction=0).item() == 2 and abs(x.norm().item() - 894.4) < 4
    y = genesis.zeros(200_000, dtype=dtype)
    assert abs(y.logsumexp(0).item() - math.log(200_000)) < 0.05
    assert abs(y.log_softmax(0)[7].item() + math.log(200_000)) < 0.05
    assert abs(y.softmax(0)[7].item() - 5e-6) < 1e-7


def test_clamp_and_closeness():
    x = genesis.tensor(MATRIX)
    close(x.clamp(-0.5, 0.5), MATRIX.clip(-0.5, 0.5))
    close(x.clamp(min=0), MATRIX.clip(0))
    close(x.clamp(max=0), MATRIX.clip(None, 0))
    with pytest.raises(ValueError, match="min or max"):
        x.clamp()
    for a, b in [([1.0, math.nan], [1.0, math.nan]), ([math.inf], [math.inf]), ([1.0], [1.1])]:
        for equal_nan in (False, True):
            expected = numpy.allclose(a, b, equal_nan=equal_nan)
            assert genesis.tensor(a).allclose(genesis.tensor(b), equal_nan=equal_nan) == expected
    assert genesis.equal(x, x.clone()) and not x.equal(x + 1) and not x.equal(x.T)
    assert x.isclose(x + 1e-9).all().item()


def test_putting_together_and_taking_apart():
    x, y = genesis.tensor(MATRIX), genesis.tensor(MATRIX + 1)
    for dim in (0, 1, -1):
        both = numpy.concatenate([MATRIX, MATRIX + 1], dim)
        close(genesis.cat([x, y], dim), both)
        for count in (1, 2, 3, 20):
            parts = [part.tolist() for part in genesis.cat([x, y], dim).chunk(count, dim)]
            assert (
                sum((len(part) if dim == 0 else len(part[0])) for part in parts) == both.shape[dim]
            )
        for part, expected in zip(
            x.split(3, dim), numpy.split(MATRIX, [3, 6] if dim else [3], dim), strict=True
        ):
            close(part, expected)
    for dim in (0, 1, 2, -1):
        close(genesis.stack([x, y], dim), numpy.stack([MATRIX, MATRIX + 1], dim))
    assert genesis.cat([x, y.double()]).dtype == genesis.float64
    first, second = x.split([2, 3])
    assert first.data_ptr() == x.data_ptr() and second.shape == (3, 7)
    close(x.flip(0, 1), MATRIX[::-1, ::-1])
    close(x.flip((1,)), MATRIX[:, ::-1])
    for wrong, error in [
        (lambda: genesis.cat([x, y.T]), genesis.ShapeError),
        (lambda: genesis.cat([]), ValueError),
        (lambda: genesis.cat([genesis.tensor(1)]), genesis.ShapeError),
        (lambda: genesis.cat([x], 2), IndexError),
        (lambda: genesis.stack([x, y.T]), genesis.ShapeError),
        (lambda: x.split([1, 1]), genesis.ShapeError),
        (lambda: x.split(0), ValueError),
        (lambda: x.chunk(0), ValueError),
    ]:
        with pytest.raises(error):
            wrong()


def test_matrices_to_begin_with():
    for n, m in [(3, None), (2, 4), (4, 2), (0, 3)]:
        close(genesis.eye(n, m), numpy.eye(n, m))
    x = genesis.tensor(MATRIX)
    for diagonal in (-2, 0, 3):
        close(x.tril(diagonal), numpy.tril(MATRIX, diagonal))
        close(x.triu(diagonal), numpy.triu(MATRIX, diagonal))
    for steps in (0, 1, 2, 7):
        close(genesis.linspace(-1, 3, steps), numpy.linspace(-1, 3, steps))
    assert genesis.linspace(0, 0.1, 11).tolist()[-1] == numpy.float32(0.1)
    assert genesis.one_hot(genesis.tensor([2, 0]), 4).tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]
    for wrong, error in [
        (lambda: genesis.one_hot(genesis.tensor([3]), 2), IndexError),
        (lambda: genesis.one_hot(genesis.tensor([1.0])), TypeError),
        (lambda: genesis.tril(genesis.zeros(3)), genesis.ShapeError),
        (lambda: genesis.linspace(0, 1, -1), ValueError),
    ]:
        with pytest.raises(error):
            wrong()


def test_what_has_no_answer_is_refused():
    """Nothing to choose from, a range without bounds, a result that overlaps itself."""
    with pytest.raises(ValueError, match="quantile: there are no elements"):
        genesis.zeros(0).quantile(0.5)
    with pytest.raises(ValueError, match="histc: the range from nan to nan is not finite"):
        genesis.histc(genesis.tensor([1.0, math.nan]), bins=3)
    with pytest.raises(ValueError, match="cat: several elements"):
        genesis.cat([genesis.ones(1, 3)] * 2, out=genesis.zeros(1, 3).expand(2, 3))
    with pytest.raises(IndexError, match=r"median: dimension 0 of shape \(0, 3\) has no elements"):
        genesis.zeros(0, 3).median(0)
    with pytest.raises(IndexError, match="median: dimension 0"):
        genesis.zeros(0, dtype=genesis.int64).median()
    assert math.isnan(genesis.zeros(0).median().item())
    with pytest.raises(genesis.ShapeError, match="diff: the tensor has no dimension"):
        genesis.tensor(3.0).diff()


def test_parts_of_the_result_are_put_together():
    x = genesis.arange(6)
    genesis.cat([x[3:], x[:3]], out=x)
    assert x.tolist() == [3, 4, 5, 0, 1, 2]


def test_integers_to_negative_powers():
    """One number as the exponent is refused, and a tensor of them is not looked at."""
    for x in (genesis.tensor([1, 2]), genesis.tensor([True]), genesis.tensor(3).byte()):
        for power in (lambda x=x: x**-1, lambda x=x: genesis.pow(x, -2), lambda x=x: x.pow_(-1)):
            with pytest.raises(ValueError, match="integers to negative integer powers"):
                power()
    x = genesis.tensor([1, -1, 2])
    assert (x ** genesis.tensor(-1)).tolist() == [1, -1, 0]
    assert (x**-1.0).tolist() == [1, -1, 0.5] and (x.float() ** -1).tolist() == [1, -1, 0.5]


def test_parts_follow_the_data():
    """A number alone makes no more than 2**20 empty views."""
    x = genesis.arange(5)
    assert [len(part) for part in x.tensor_split(7)] == [1] * 5 + [0] * 2
    assert len(genesis.zeros(0).chunk(4)) == 4 and len(genesis.zeros(9, 0).unbind()) == 9
    nothing, same = genesis.zeros(2**50, 0), genesis.ones(1).expand(2**50)
    for call, name in (
        (lambda: x.tensor_split(2**62), "tensor_split"),
        (lambda: genesis.tensor_split(x, 2**20 + 1), "tensor_split"),
        (lambda: genesis.zeros(0).chunk(2**62), "chunk"),
        (lambda: nothing.split(1), "split"),
        (lambda: nothing.unbind(), "unbind"),
        (lambda: same.split(4), "split"),
        (lambda: same.unbind(), "unbind"),
        (lambda: same.tensor_split(2**62), "tensor_split"),
    ):
        with pytest.raises(ValueError, match=rf"^{name}: \d+ parts of \d+ elements"):
            call()
    with pytest.raises(MemoryError):
        nothing.tolist()
    assert genesis.arange(4).diff(n=2**62).shape == (0,)
    assert genesis.arange(4).diff(n=3).tolist() == [0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float64"])
def test_isin_of_few_and_of_many(dtype):
    """Few numbers are compared, more are searched for: both find the same."""
    rng = numpy.random.default_rng(1)
    x = rng.integers(0, 2 if dtype == "bool" else 60, (7, 50)).astype(dtype)
    if dtype.startswith("float"):
        x[0, :5] = numpy.nan, -0.0, numpy.inf, -numpy.inf, numpy.nan
    for count in (0, 1, 2, 12, 13, 40):
        among = x.reshape(-1)[:count].copy()
        for is_inverted in (False, True):
            made = genesis.isin(genesis.tensor(x), genesis.tensor(among), invert=is_inverted)
            assert numpy.array_equal(made.numpy(), numpy.isin(x, among, invert=is_inverted))


def test_norms_of_transposed_and_of_strided():
    """Squares are summed as they are read, wherever they lie; large ones do not overflow."""
    rng = numpy.random.default_rng(2)
    for dtype, scale in (("float32", 1e30), ("float64", 1e100), ("float16", 1.0)):
        x = (rng.standard_normal((70, 90)) * scale).astype(dtype)
        tensor = genesis.tensor(x)
        wide = x.astype("f8")
        for ours, theirs in ((tensor, wide), (tensor.T, wide.T), (tensor[:, ::3], wide[:, ::3])):
            for dim in (None, 0, 1):
                expected = numpy.sqrt((theirs**2).sum(dim))
                tolerance = 1e-3 if dtype == "float16" else 1e-6
                assert numpy.allclose(ours.norm(dim=dim).numpy(), expected, rtol=tolerance)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
def test_median_of_everything(dtype):
    """The lower one of two in the middle; NaN if there is one; of any shape and strides."""
    rng = numpy.random.default_rng(4)
    for count in (1, 2, 7, 1000, 70000):
        x = rng.integers(0, 2 if dtype == "bool" else 200, count).astype(dtype)
        for ours, theirs in ((genesis.tensor(x), x), (genesis.tensor(x)[::2], x[::2])):
            expected = numpy.sort(theirs)[(theirs.size - 1) // 2]
            assert ours.median().item() == expected, count
    if dtype.startswith("float"):
        x[5] = numpy.nan
        assert math.isnan(genesis.tensor(x).median().item())
        assert math.isnan(genesis.tensor([], dtype=getattr(genesis, dtype)).median().item())
    else:
        with pytest.raises(IndexError):
            genesis.tensor([], dtype=getattr(genesis, dtype)).median()
