"""Bags of embeddings beside sums that are written out: sizes, types, padding, gradients."""

import numpy
import pytest

import genesis
from genesis.autograd import gradcheck, gradgradcheck
from genesis.nn.functional import embedding_bag

MODES = ("sum", "mean", "max")


def reference(weight, indices, bags, mode, shares=None, padding=None):
    """`bags` are pairs: where each begins and ends. Values, and the row of each largest element."""
    made = numpy.zeros((len(bags), weight.shape[1]))
    chosen = numpy.full(made.shape, -1)
    for bag, (begin, end) in enumerate(bags):
        places = [i for i in range(begin, end) if indices[i] != padding]
        rows = weight[indices[places]].astype("float64")
        if mode == "max" and places:
            which = numpy.argmax(rows, 0)
            chosen[bag] = indices[numpy.array(places)[which]]
            made[bag] = rows.max(0)
        elif mode != "max":
            factors = 1 if shares is None else shares[places][:, None].astype("float64")
            made[bag] = (rows * factors).sum(0)
            made[bag] /= max(len(places), 1) if mode == "mean" else 1
    return made, chosen


def draw(seed, rows, count, bags):
    rng = numpy.random.default_rng(seed)
    indices = rng.integers(0, rows, count)
    offsets = numpy.sort(rng.integers(0, count + 1, bags))
    offsets[0] = 0
    ends = [*offsets[1:], count]
    return rng, indices, offsets, list(zip(offsets, ends, strict=True))


@pytest.mark.parametrize("width", [1, 3, 63, 64, 65, 200])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_values(width, mode, dtype):
    rng, indices, offsets, bags = draw(width, 50, 300, 23)
    weight = genesis.from_numpy(rng.integers(-8, 8, (50, width)) / 4).to(getattr(genesis, dtype))
    exact = weight.double().numpy()
    for padding in (None, 7):
        right, _ = reference(exact, indices, bags, mode, padding=padding)
        for whole in (indices, indices.astype("int32")):
            made = embedding_bag(
                genesis.from_numpy(whole),
                weight,
                genesis.from_numpy(offsets),
                mode=mode,
                padding_idx=padding,
            )
            assert made.dtype == weight.dtype and made.shape == right.shape
            near = {"float32": 1e-6, "float64": 1e-12, "float16": 6e-4, "bfloat16": 5e-3}[dtype]
            assert numpy.allclose(made.double().numpy(), right, rtol=near, atol=near / 100)
        square = indices.reshape(15, 20)
        by_rows = [(20 * i, 20 * i + 20) for i in range(15)]
        right, _ = reference(exact, indices, by_rows, mode, padding=padding)
        made = embedding_bag(genesis.from_numpy(square), weight, mode=mode, padding_idx=padding)
        assert numpy.allclose(made.double().numpy(), right, rtol=near, atol=near / 100)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_shares(dtype):
    rng, indices, offsets, bags = draw(5, 20, 64, 9)
    weight = genesis.from_numpy(rng.standard_normal((20, 5))).to(getattr(genesis, dtype))
    shares = genesis.from_numpy(rng.standard_normal(64)).to(weight.dtype)
    right, _ = reference(
        weight.double().numpy(), indices, bags, "sum", shares.double().numpy(), padding=3
    )
    made = embedding_bag(
        genesis.from_numpy(indices),
        weight,
        genesis.from_numpy(offsets),
        mode="sum",
        per_sample_weights=shares,
        padding_idx=3,
    )
    near = 1e-2 if dtype == "bfloat16" else 1e-5
    assert numpy.allclose(made.double().numpy(), right, rtol=near, atol=near)


@pytest.mark.parametrize("mode", [*MODES, "shares"])
@pytest.mark.parametrize("padding", [None, 2])
def test_gradients(mode, padding):
    rng, indices, offsets, _ = draw(8, 6, 14, 5)
    weight = genesis.from_numpy(rng.standard_normal((6, 3))).requires_grad_()
    shares = genesis.from_numpy(rng.standard_normal(14)).requires_grad_()

    def call(weight, *shares):
        return embedding_bag(
            genesis.from_numpy(indices),
            weight,
            genesis.from_numpy(offsets),
            mode="sum" if mode == "shares" else mode,
            padding_idx=padding,
            per_sample_weights=shares[0] if shares else None,
        )

    leaves = (weight, shares) if mode == "shares" else (weight,)
    assert gradcheck(call, leaves) and gradgradcheck(call, leaves)


def test_gradients_of_many_rows_and_of_halves():
    """Rows that occur often, in any order: the gradient is a sum for each row of the table."""
    rng, indices, offsets, bags = draw(9, 40, 20_000, 700)
    given = rng.standard_normal((700, 70)).astype("float32")
    right = numpy.zeros((40, 70))
    for bag, (begin, end) in enumerate(bags):
        numpy.add.at(right, indices[begin:end], given[bag].astype("float64"))
    for dtype, near in ((genesis.float32, 1e-3), (genesis.bfloat16, 0.2)):
        weight = genesis.zeros(40, 70, dtype=dtype, requires_grad=True)
        made = embedding_bag(
            genesis.from_numpy(indices), weight, genesis.from_numpy(offsets), mode="sum"
        )
        made.backward(genesis.from_numpy(given).to(dtype))
        assert weight.grad.dtype == dtype
        assert abs(weight.grad.double().numpy() - right).max() < near * abs(right).max()


def test_the_first_of_equal_ones_and_nan():
    weight = genesis.tensor([[1.0, 5.0], [2.0, float("nan")], [2.0, 7.0]], requires_grad=True)
    made = embedding_bag(genesis.tensor([[0, 1, 2], [0, 2, 2]]), weight, mode="max")
    assert made.isnan().tolist() == [[False, True], [False, False]]
    assert made[:, 0].tolist() == [2, 2] and made[1, 1].item() == 7
    made.nan_to_num().sum().backward()
    assert weight.grad.tolist() == [[0, 0], [1, 0], [1, 1]]
    low = genesis.full((2, 2), -numpy.inf)
    assert embedding_bag(genesis.tensor([[0, 1]]), low, mode="max").tolist() == [[-numpy.inf] * 2]


def test_empty_bags_and_the_last_offset():
    weight = genesis.arange(8.0).reshape(4, 2)
    index, offsets = genesis.tensor([3, 1]), genesis.tensor([0, 0, 1, 2, 2])
    for mode in MODES:
        made = embedding_bag(index, weight, offsets, mode=mode)
        assert made.tolist() == [[0, 0], [6, 7], [2, 3], [0, 0], [0, 0]]
        made = embedding_bag(index, weight, offsets, mode=mode, include_last_offset=True)
        assert made.tolist() == [[0, 0], [6, 7], [2, 3], [0, 0]]
        none = embedding_bag(index[:0], weight, genesis.tensor([0, 0]), mode=mode)
        assert none.tolist() == [[0, 0], [0, 0]]
        assert embedding_bag(index[:0], weight, genesis.tensor([0])[:0], mode=mode).shape == (
            0,
            2,
        )
        assert embedding_bag(index.view(1, 2), weight[:, :0], mode=mode).shape == (1, 0)
        all_padding = embedding_bag(index.view(2, 1), weight, mode=mode, padding_idx=3)
        assert all_padding.tolist() == [[0, 0], [2, 3]]


def test_bits_do_not_depend_on_threads():
    rng, indices, offsets, _ = draw(3, 300, 50_000, 900)
    weight = genesis.from_numpy(rng.standard_normal((300, 65)).astype("float32")).requires_grad_()
    threads, found = genesis.cpu.get_num_threads(), set()
    try:
        for count in (1, 2, 5):
            genesis.cpu.set_num_threads(count)
            made = embedding_bag(
                genesis.from_numpy(indices), weight, genesis.from_numpy(offsets), mode="mean"
            )
            weight.grad = None
            (made * made).sum().backward()
            found.add((made.detach().numpy().tobytes(), weight.grad.numpy().tobytes()))
    finally:
        genesis.cpu.set_num_threads(threads)
    assert len(found) == 1


def test_wrong_indices_and_offsets():
    weight = genesis.ones(4, 2)
    for mode in MODES:
        for wrong in (4, -5):
            with pytest.raises(IndexError):
                embedding_bag(genesis.tensor([[0, wrong]]), weight, mode=mode)
    with pytest.raises(ValueError, match="the first offset is 0"):
        embedding_bag(genesis.tensor([0, 1]), weight, genesis.tensor([1]))
    for wrong in ([0, -1], [0, 9], [0, 2, 1]):
        with pytest.raises(ValueError, match="offsets"):
            embedding_bag(genesis.tensor([0, 1, 2]), weight, genesis.tensor(wrong))
