"""Statistics that PyTorch and NumPy have by these names, beside NumPy."""

import numpy
import pytest

import genesis

NAN = float("nan")
FLOATS = [genesis.float16, genesis.bfloat16, genesis.float32, genesis.float64]


def draw(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(sum(shape)).standard_normal(shape)


def near(made: genesis.Tensor, expected: object, tolerance: float = 1e-12) -> None:
    expected = numpy.asarray(expected)
    assert made.shape == expected.shape
    numpy.testing.assert_allclose(made.double().numpy(), expected, tolerance, tolerance)


def test_cumulative_logarithms_of_sums():
    x = draw(3, 37) * 50
    for dim in (0, 1, -1):
        near(genesis.tensor(x).logcumsumexp(dim), numpy.logaddexp.accumulate(x, dim))
    far = genesis.tensor([-1000.0, 0.0, 1000.0])  # a sum of exp() has none of the first two
    assert genesis.logcumsumexp(far, 0).tolist() == [-1000.0, 0.0, 1000.0]
    assert genesis.logcumsumexp(genesis.tensor([-genesis.inf, 1.0]), 0).tolist()[0] == -genesis.inf
    near(
        genesis.logcumsumexp(genesis.zeros(4, dtype=genesis.int32), 0),
        numpy.log([1, 2, 3, 4]),
        1e-6,
    )
    half = genesis.zeros(2048, dtype=genesis.float16).logcumsumexp(0)
    assert half.dtype == genesis.float16 and half[-1].item() == float(
        numpy.float16(numpy.log(2048))
    )
    assert genesis.zeros(0).logcumsumexp(0).shape == (0,)
    assert genesis.tensor(2.0).logcumsumexp(0).item() == 2.0
    x = genesis.tensor([1.0])
    assert x.logcumsumexp(0).fill_(5).item() == 5.0 and x.item() == 1.0  # a copy
    with pytest.raises(IndexError, match="logcumsumexp: dimension 2 is out of range"):
        x.logcumsumexp(2)


def test_sorted_along_the_first_dimension():
    x = draw(5, 3)
    assert genesis.msort(genesis.tensor(x)).tolist() == numpy.sort(x, 0).tolist()


def test_medians_without_nan():
    x = draw(4, 5)
    x[0, 1] = x[2, :] = x[3, :4] = NAN
    made = genesis.tensor(x).nanmedian(1)
    for row, value, place in zip(x, made.values.tolist(), made.indices.tolist(), strict=True):
        numbers = numpy.sort(row[~numpy.isnan(row)])
        if len(numbers):
            assert value == numbers[(len(numbers) - 1) // 2] == row[place]
        else:
            assert value != value
    whole = numpy.sort(x[~numpy.isnan(x)])
    assert genesis.tensor(x).nanmedian().item() == whole[(len(whole) - 1) // 2]
    assert genesis.tensor(x).nanmedian(0, keepdim=True).values.shape == (1, 5)
    assert genesis.tensor([4, 2, 9]).nanmedian().item() == 4
    assert genesis.tensor(3.0).nanmedian(0).indices.item() == 0
    assert genesis.zeros(0).nanmedian().isnan().item()
    # median() itself: one NaN makes it NaN.
    assert genesis.tensor(x).median(1).indices.tolist()[0] == 1


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_without_nan(how):
    x = draw(6, 11)
    x[1, ::2] = x[2, 3] = NAN
    q = [0.0, 0.3, 0.5, 1.0]
    made = genesis.tensor(x).nanquantile(q, 1, interpolation=how)
    near(made, numpy.nanquantile(x, q, 1, method=how))
    near(
        genesis.tensor(x).nanquantile(0.3, interpolation=how), numpy.nanquantile(x, 0.3, method=how)
    )
    made = genesis.nanquantile(genesis.tensor(x), genesis.tensor(q), 0, True, interpolation=how)
    assert made.shape == (4, 1, 11)
    assert genesis.nanquantile(genesis.full((3,), NAN), 0.5).isnan().item()


@pytest.mark.parametrize("dtype", FLOATS)
def test_histograms(dtype):
    x = genesis.tensor(draw(200), dtype=dtype)
    array = x.double().numpy()
    edges = genesis.tensor([-2.0, -0.5, 0.0, 1.0, 1.5], dtype=dtype)
    made = genesis.histogram(x, edges)
    counts, _ = numpy.histogram(array, edges.double().numpy())
    assert made.hist.tolist() == counts.tolist() and made.hist.dtype == dtype
    assert made.bin_edges.tolist() == edges.tolist()


def test_histograms_of_equal_bins():
    x = draw(300)
    counts, edges = numpy.histogram(x, 7)
    hist, borders = genesis.tensor(x).histogram(7)
    assert hist.tolist() == counts.tolist()
    near(borders, edges)
    counts, edges = numpy.histogram(x, 4, (-1, 2), density=True)
    hist, borders = genesis.histogram(genesis.tensor(x), 4, range=(-1, 2), density=True)
    near(hist, counts)
    near(borders, edges)
    weights = abs(draw(300, 1)).reshape(-1)
    counts, _ = numpy.histogram(x, 5, weights=weights)
    near(genesis.histogram(genesis.tensor(x), 5, weight=genesis.tensor(weights)).hist, counts)
    assert genesis.histogram(genesis.tensor([2.0, 2.0]), 2).bin_edges.tolist() == [1.5, 2.0, 2.5]
    with pytest.raises(ValueError, match="histogram: bins is at least 1, not 0"):
        genesis.histogram(genesis.tensor(x), 0)
    with pytest.raises(TypeError, match="floating numbers, not genesis.int64"):
        genesis.histogram(genesis.arange(3), 2)
    with pytest.raises(ValueError, match="not finite"):
        genesis.histogram(genesis.tensor([NAN]), 2)


def test_integrals():
    y, x = draw(3, 8), numpy.cumsum(abs(draw(8)))
    for dim in (0, 1):
        near(genesis.trapezoid(genesis.tensor(y), dim=dim), numpy.trapezoid(y, axis=dim))
        near(
            genesis.trapz(genesis.tensor(y), dx=0.25, dim=dim),
            numpy.trapezoid(y, dx=0.25, axis=dim),
        )
    near(genesis.trapezoid(genesis.tensor(y), genesis.tensor(x)), numpy.trapezoid(y, x))
    parts = (y[:, 1:] + y[:, :-1]) / 2 * numpy.diff(x)
    made = genesis.cumulative_trapezoid(genesis.tensor(y), genesis.tensor(x))
    near(made, numpy.cumsum(parts, 1))
    assert genesis.trapezoid(genesis.tensor([1, 2, 3])).item() == 4.0
    assert genesis.trapezoid(genesis.tensor([5.0])).item() == 0.0
    with pytest.raises(genesis.ShapeError, match="does not fit y"):
        genesis.trapezoid(genesis.tensor(y), genesis.ones(3))


def test_covariances():
    x = draw(3, 9)
    times, importance = numpy.array([1, 2, 0, 3, 1, 1, 2, 1, 1]), abs(draw(9)) + 0.1
    near(genesis.cov(genesis.tensor(x)), numpy.cov(x))
    near(genesis.tensor(x).cov(correction=0), numpy.cov(x, ddof=0))
    near(genesis.cov(genesis.tensor(x[0])), numpy.cov(x[0]))
    made = genesis.cov(
        genesis.tensor(x), fweights=genesis.tensor(times), aweights=genesis.tensor(importance)
    )
    near(made, numpy.cov(x, fweights=times, aweights=importance))
    near(genesis.corrcoef(genesis.tensor(x)), numpy.corrcoef(x))
    near(genesis.corrcoef(genesis.tensor(x[0])), 1.0)
    assert genesis.cov(genesis.tensor([[1, 2], [3, 5]])).dtype == genesis.float32
    assert genesis.cov(genesis.tensor(x).T).shape == (9, 9)  # not contiguous
    with pytest.raises(genesis.ShapeError, match="at most 2 dimensions, not 3"):
        genesis.cov(genesis.ones(2, 2, 2))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_distances(p):
    x, y = draw(2, 4, 5), draw(6, 5)
    apart = abs(x[:, :, None] - y)
    expected = numpy.linalg.norm(apart, p, -1) if p else (apart != 0).sum(-1)
    near(genesis.cdist(genesis.tensor(x), genesis.tensor(y), p), expected)
    assert genesis.cdist(genesis.ones(2, 0), genesis.ones(3, 0)).tolist() == [[0.0] * 3] * 2
    assert genesis.cdist(genesis.ones(0, 2), genesis.ones(3, 2)).shape == (0, 3)
    with pytest.raises(genesis.ShapeError, match="cdist: shapes"):
        genesis.cdist(genesis.ones(2, 3), genesis.ones(2, 4))


@pytest.mark.parametrize("name", ["float32", "float16", "int64"])
def test_distances_of_many_rows(name):
    """By a product of matrices, far from zero, where what is lost shows; a row is 0 from itself."""
    dtype = getattr(genesis, name)
    x = genesis.tensor(draw(2, 40, 5) + 20).to(dtype)
    y = genesis.cat([genesis.tensor(draw(30, 5) + 20).to(dtype), x[0, :10]])
    exact = numpy.array(x.tolist())[:, :, None] - numpy.array(y.tolist())
    expected = numpy.linalg.norm(exact, axis=-1)
    made = genesis.cdist(x, y)
    assert made.dtype == (dtype if dtype.is_floating_point else genesis.float32)
    assert abs(numpy.array(made.tolist()) - expected).max() < (4e-3 if name == "float16" else 3e-6)
    alone = genesis.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    assert abs(numpy.array(alone.tolist()) - numpy.array(made.tolist())).max() < 4e-3
    few = genesis.cdist(x[:, :3], y[:3], compute_mode="use_mm_for_euclid_dist")
    assert abs(numpy.array(few.tolist()) - expected[:, :3, :3]).max() < 4e-3
    with pytest.raises(ValueError, match="there is no compute_mode 'mm'"):
        genesis.cdist(x, y, compute_mode="mm")
    if name == "float32":
        rows = x[0].clone().requires_grad_()
        weight = genesis.tensor(draw(40, 40)).to(dtype)
        (genesis.cdist(rows, rows) * weight).sum().backward()
        apart = numpy.array(x[0].tolist())[:, None] - numpy.array(x[0].tolist())
        length = numpy.linalg.norm(apart, axis=-1)[..., None] + numpy.eye(40)[..., None]
        both = numpy.array(weight.tolist()) + numpy.array(weight.tolist()).T
        expected = (both[..., None] * apart / length).sum(1)
        assert abs(numpy.array(rows.grad.tolist()) - expected).max() < 1e-4


def test_cosines():
    x, y = draw(4, 6), draw(6)
    expected = (x * y).sum(1) / numpy.linalg.norm(x, axis=1) / numpy.linalg.norm(y)
    near(genesis.cosine_similarity(genesis.tensor(x), genesis.tensor(y)), expected)
    zeros = genesis.zeros(2, 3)
    assert genesis.cosine_similarity(zeros, zeros).tolist() == [0.0, 0.0]
    made = genesis.cosine_similarity(genesis.tensor([[3, 4]]), genesis.tensor([[3, 4]]))
    assert made.dtype == genesis.float32 and made.item() == pytest.approx(1.0)


def test_on_the_simulated_gpu(fresh):
    """The same numbers as on the CPU, where the input is."""
    fresh(
        """
import genesis as g
x = g.tensor([[3.0, 1.0, 4.0, 1.5], [2.0, g.nan, 6.0, 5.0]])
y = g.tensor([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 1.0, 2.0]])
calls = [
    lambda x, y: x.logcumsumexp(1), lambda x, y: g.msort(y), lambda x, y: x.nanmedian(1).values,
    lambda x, y: x.median(), lambda x, y: y.median(0).values, lambda x, y: y.mode().values,
    lambda x, y: x.nanquantile([0.1, 0.5], 1), lambda x, y: y.quantile(0.3, 0),
    lambda x, y: y.histogram(3).hist, lambda x, y: g.trapezoid(y), lambda x, y: y.cov(),
    lambda x, y: y.corrcoef(), lambda x, y: g.cdist(y, y, 1.0), lambda x, y: y.norm(3, 1),
    lambda x, y: g.cosine_similarity(y, y.flip(0)), lambda x, y: y.var(1), lambda x, y: y.tril(),
    lambda x, y: y.diff(), lambda x, y: y.isclose([1.0, 2.0, 3.0, 4.0]),
    lambda x, y: y.kthvalue(2).values,
    lambda x, y: g.add(y, x, alpha=2), lambda x, y: y.div(3, rounding_mode="trunc"),
    lambda x, y: y.round(decimals=-1), lambda x, y: g.poisson(y * 5, g.Generator()),
    lambda x, y: y.cumsum_(1), lambda x, y: y.logsumexp((0, 1)), lambda x, y: g.ones_like(y),
]
for number, call in enumerate(calls):
    near, far = call(x.clone(), y.clone()), call(x.cuda(), y.cuda())
    assert far.device.type == "cuda" and near.dtype == far.dtype, number
    both = near.double(), far.cpu().double()
    assert g.allclose(*both, 1e-6, 1e-6, equal_nan=True), (number, near, far)
assert g.linspace(0, 1, 5, device="cuda").cpu().tolist() == g.linspace(0, 1, 5).tolist()
assert g.eye(3, device="cuda").sum().item() == 3
""",
        GENESIS_CUDA_DRIVER="sim",
    )


def test_what_comes_as_a_pair():
    made = genesis.aminmax(genesis.tensor([3, 1]))
    assert made == (made.min, made.max) and [one.item() for one in made] == [1, 3]
    assert "min=" in repr(made) and "bin_edges=" in repr(genesis.histogram(genesis.ones(1), 1))
    out = (genesis.empty((), dtype=genesis.int64), genesis.empty((), dtype=genesis.int64))
    assert genesis.aminmax(genesis.tensor([3, 1]), out=out) is out and out[1].item() == 3


@pytest.mark.parametrize("rate", [0.3, 3.0, 9.5, 10.5, 40.0, 1e6])
def test_counts_of_events(rate):
    """Of 40,000 counts the mean, the variance and small chances are the distribution's."""
    from math import exp, lgamma, log, sqrt

    generator = genesis.Generator().manual_seed(5)
    rates = genesis.full((40_000,), rate, dtype=genesis.float64)
    made = genesis.poisson(rates, generator)
    count = made.numel()
    assert bool((made == made.floor()).all()) and made.amin().item() >= 0
    assert abs(made.mean().item() - rate) < 5 * sqrt(rate / count)
    assert abs(made.var().item() / rate - 1) < 5 * sqrt((2 + 1 / rate) / count)
    for k in {int(rate), int(rate - sqrt(rate)), int(rate + 2 * sqrt(rate))}:
        chance = exp(k * log(rate) - rate - lgamma(k + 1))
        found = (made == k).sum().item() / count
        assert abs(found - chance) < 5 * sqrt(chance / count) + 1e-9, k
    again = genesis.poisson(rates, generator.manual_seed(5))
    assert genesis.equal(made, again)
    assert not genesis.equal(genesis.poisson(rates, generator), again)


def test_counts_of_no_rate():
    made = genesis.poisson(genesis.tensor([[0.0, 2.5], [50.0, 0.0]], dtype=genesis.float16))
    assert made.dtype == genesis.float16 and made[0, 0].item() == made[1, 1].item() == 0
    assert genesis.poisson(genesis.zeros(0, 3)).shape == (0, 3)
    for wrong in (-1.0, NAN, genesis.inf):
        with pytest.raises(ValueError, match="poisson: rates are finite and not negative"):
            genesis.poisson(genesis.tensor([1.0, wrong]))
    with pytest.raises(TypeError, match="poisson: rates are floating numbers, not int64"):
        genesis.poisson(genesis.tensor([1]))


# ---- the default type ----


@pytest.fixture
def doubles():
    genesis.set_default_dtype(genesis.float64)
    yield
    genesis.set_default_dtype(genesis.float32)


def test_the_default_type(doubles):
    assert genesis.get_default_dtype() == genesis.float64
    whole, numbers = genesis.tensor([1, 2]), (1.5, [1.5, 2], [])
    assert all(genesis.tensor(one).dtype == genesis.float64 for one in numbers)
    made = [genesis.zeros(2), genesis.empty(2), genesis.full((2,), 0.5), genesis.arange(0, 1, 0.5)]
    made += [genesis.rand(2), genesis.randn(2), genesis.linspace(0, 1, 3), genesis.eye(2)]
    made += [whole / 2, whole.sqrt(), whole + 0.5, genesis.logsumexp(whole, 0), whole.cov()]
    made += [genesis.logaddexp(whole, whole), genesis.copysign(whole, -1)]
    assert {one.dtype for one in made} == {genesis.float64}
    assert genesis.tensor([1.5], dtype="float32").dtype == genesis.float32
    assert (genesis.ones(2, dtype="float32") + 0.5).dtype == genesis.float32
    assert (whole + 1).dtype == genesis.int64
    genesis.set_default_dtype(genesis.float16)
    assert whole.sqrt().dtype == genesis.float16 and genesis.ones(1).dtype == genesis.float16


def test_the_default_type_is_floating():
    with pytest.raises(TypeError, match="set_default_dtype: the default is a floating type, not"):
        genesis.set_default_dtype(genesis.int64)
    assert genesis.get_default_dtype() == genesis.float32


# ---- text ----


@pytest.fixture
def printing():
    yield
    genesis.set_printoptions(profile="default")


def test_the_text_can_be_set(printing):
    x = genesis.tensor([1.23456, 20.5])
    genesis.set_printoptions(precision=2)
    assert repr(x) == "tensor([ 1.23, 20.50])"
    genesis.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.23e+00, 2.05e+01])"
    genesis.set_printoptions(sci_mode=False, profile="default")
    assert repr(genesis.tensor([1e9, 0.5])) == "tensor([1000000000.0000,          0.5000])"
    genesis.set_printoptions(threshold=4, edgeitems=1)
    assert repr(genesis.arange(5)) == "tensor([0, ..., 4])"
    assert repr(genesis.arange(4)) == "tensor([0, 1, 2, 3])"
    genesis.set_printoptions(profile="full")
    assert repr(genesis.zeros(2000)).count("0.") == 2000
    genesis.set_printoptions(profile="default", linewidth=20)
    lines = ["tensor([0, 1, 2, 3,", "        4, 5])"]
    assert repr(genesis.arange(6)) == "\n".join(lines)
    with pytest.raises(ValueError, match="set_printoptions: profile is one of default"):
        genesis.set_printoptions(profile="wide")
    with pytest.raises(ValueError, match="precision is not negative: -1"):
        genesis.set_printoptions(precision=-1)
