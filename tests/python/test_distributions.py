"""genesis.distributions: numbers are PyTorch's (distributions.json, by record_distributions.py)."""

from __future__ import annotations

import importlib
import json
from math import isinf
from pathlib import Path

import pytest
from distribution_cases import CASES, MOMENTS, results

import genesis
from genesis import distributions as d

RECORDED = json.loads(Path(__file__).with_name("distributions.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_pytorch(name):
    made, recorded = results(genesis, name), RECORDED[name]
    assert made.keys() == recorded.keys()
    for what, numbers in recorded.items():
        assert made[what] == pytest.approx(numbers, rel=2e-5, abs=2e-5), what


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0] != "Categorical"])
def test_samples_have_the_moments(name):
    kind, given, _, _ = CASES[name]
    genesis.manual_seed(3)
    given = {
        key: genesis.tensor(one) if isinstance(one, list) else one for key, one in given.items()
    }
    p = getattr(d, kind)(**given)
    x = p.sample((4000,))
    assert x.shape == (4000, *p.batch_shape, *p.event_shape) and not x.requires_grad
    mean, variance = (getattr(p, moment).detach().expand(x.shape[1:]) for moment in MOMENTS[:2])
    assert ((x.mean(0) - mean).abs() <= 0.09 * variance.sqrt() + 1e-6).all()
    assert ((x.var(0) - variance).abs() <= 0.4 * variance + 1e-6).all()
    assert p.sample().shape == (*p.batch_shape, *p.event_shape)


def test_samples_of_categories():
    p = d.Categorical(genesis.tensor([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]))
    x = p.sample((2000, 2))
    assert x.shape == (2000, 2, 2) and x.dtype == genesis.int64
    assert (x[..., 1] == 1).all() and set(x[..., 0].flatten().tolist()) == {0, 2}
    assert abs((x[..., 0] == 2).float().mean().item() - 0.75) < 0.05
    assert p.mode.tolist() == [2, 1] and p.param_shape == (2, 3)
    one = d.Categorical(logits=genesis.zeros(4)).sample()
    assert one.shape == () and p.log_prob(genesis.tensor([[0, 1], [2, 1]])).shape == (2, 2)


@pytest.mark.parametrize("concentration", [0.05, 0.7, 1.0, 30.0])
def test_gamma_numbers(concentration):
    genesis.manual_seed(1)
    x = d.Gamma(genesis.full((20000,), concentration, dtype=genesis.float64), 1.0).sample()
    expected = genesis.digamma(genesis.tensor(concentration, dtype=genesis.float64)).item()
    spread = x.log().std().item() / 20000**0.5
    assert (x > 0).all() and abs(x.log().mean().item() - expected) < 5 * spread
    assert abs(x.mean().item() - concentration) < 5 * (concentration / 20000) ** 0.5


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16, genesis.float32])
def test_gamma_numbers_are_above_zero(dtype):
    x = genesis._C._standard_gamma(genesis.full((500,), 0.01, dtype=dtype))
    assert x.dtype == dtype and (x > 0).all()
    again = [genesis._C._standard_gamma(x, genesis.Generator().manual_seed(5)) for _ in range(2)]
    assert again[0].tolist() == again[1].tolist()


@pytest.mark.parametrize("number", [0.0, -1.0, float("inf"), float("nan")])
def test_refused_concentrations(number):
    with pytest.raises(ValueError, match="finite and above 0"):
        genesis._C._standard_gamma(genesis.tensor([1.0, number]))
    with pytest.raises(TypeError, match="floating numbers"):
        genesis._C._standard_gamma(genesis.tensor([1]))


def test_gradients_through_samples():
    loc, scale = genesis.zeros(3, requires_grad=True), genesis.ones(3, requires_grad=True)
    for p in (d.Normal(loc, scale), d.Laplace(loc, scale), d.Uniform(loc, scale)):
        x = p.rsample((5,))
        assert p.has_rsample and x.shape == (5, 3)
        loc.grad = scale.grad = None
        x.sum().backward()
        parts = loc.grad + scale.grad if isinstance(p, d.Uniform) else loc.grad
        assert parts.tolist() == pytest.approx([5, 5, 5])
    assert d.Exponential(scale).rsample().requires_grad
    for p in (d.Gamma(scale, 1.0), d.Categorical(logits=loc), d.Beta(scale, scale)):
        assert not p.has_rsample
        with pytest.raises(NotImplementedError, match="has no rsample"):
            p.rsample()


def test_independent_and_expanded():
    base = d.Normal(genesis.zeros(4, 3), genesis.ones(4, 3))
    p = d.Independent(base, 1)
    assert (p.batch_shape, p.event_shape) == ((4,), (3,))
    assert p.log_prob(genesis.zeros(4, 3)).tolist() == pytest.approx([-2.756816] * 4)
    assert p.entropy().tolist() == pytest.approx([4.256816] * 4) and p.rsample((2,)).shape == (
        2,
        4,
        3,
    )
    assert p.expand((5, 4)).sample().shape == (5, 4, 3)
    other = d.Independent(d.Normal(genesis.ones(4, 3), 1.0), 1)
    assert d.kl_divergence(p, other).tolist() == pytest.approx([1.5] * 4)
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        d.Independent(base, 3)
    assert d.Normal(0.0, 1.0).expand((2, 3)).log_prob(genesis.zeros(3)).shape == (2, 3)
    for p in (d.Bernoulli(0.5), d.Gamma(1.0, 2.0), d.Beta(1.0, 2.0), d.Uniform(0.0, 1.0)):
        assert p.expand((2, 3)).sample((4,)).shape == (4, 2, 3)
    assert d.Categorical(genesis.ones(3)).expand((2,)).sample((4,)).shape == (4, 2)


def test_distribution_functions():
    for p in (d.Normal(1.0, 2.0), d.Uniform(-1.0, 2.0), d.Exponential(0.5)):
        x = genesis.tensor([0.1, 0.5, 1.5])
        assert p.icdf(p.cdf(x)).tolist() == pytest.approx(x.tolist(), abs=1e-5)
    assert isinf(d.kl_divergence(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)).item())
    assert isinf(d.kl_divergence(d.Bernoulli(0.5), d.Bernoulli(1.0)).item())
    with pytest.raises(NotImplementedError, match="no rule for Normal and Gamma"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Gamma(1.0, 1.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: d.Normal(0.0, -1.0), "Normal: scale: numbers above 0"),
        (lambda: d.Normal(genesis.tensor([genesis.nan]), 1.0), "Normal: loc"),
        (lambda: d.Bernoulli(2.0), "from 0 to 1"),
        (lambda: d.Bernoulli(), "Either `probs` or `logits`"),
        (lambda: d.Categorical(genesis.ones(2), genesis.ones(2)), "Either `probs` or `logits`"),
        (lambda: d.Categorical(genesis.tensor([-1.0, 2.0])), "not negative"),
        (lambda: d.Categorical(genesis.tensor(1.0)), "dimension of categories"),
        (lambda: d.Uniform(1.0, 1.0), "low >= high"),
        (lambda: d.Categorical(genesis.ones(3)).log_prob(genesis.tensor(3)), "integers below 3"),
        (lambda: d.Normal(genesis.zeros(3), 1.0).log_prob(genesis.zeros(2)), "not broadcastable"),
        (lambda: d.Normal(0.0, 1.0).log_prob(1.0), "the value is a Tensor"),
        (lambda: d.Dirichlet(genesis.ones(2)).log_prob(genesis.ones(2)), "sum up to 1"),
        (lambda: d.Gamma(1.0, 1.0).log_prob(genesis.tensor(-1.0)), "not negative"),
        (lambda: d.MultivariateNormal(genesis.zeros(2)), "Exactly one of"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_checks_can_be_switched_off():
    d.Normal(0.0, -1.0, validate_args=False)
    d.Distribution.set_default_validate_args(False)
    assert d.Normal(0.0, -1.0).scale.item() == -1
    d.Distribution.set_default_validate_args(True)


@pytest.mark.parametrize("name", ["normal.Normal", "categorical.Categorical", "beta.Beta",
                                  "multivariate_normal.MultivariateNormal", "dirichlet.Dirichlet",
                                  "kl.kl_divergence", "laplace.Laplace",
                                  "one_hot_categorical.OneHotCategorical"])  # fmt: skip
def test_names_of_modules(name):
    module, _, what = name.rpartition(".")
    found = importlib.import_module(f"genesis.distributions.{module}")
    assert getattr(found, what) is getattr(d, what)


def test_transforms():
    """Densities and gradients, recorded with PyTorch."""
    loc = genesis.tensor([[0.5, -1.0], [0.25, 2.0]], requires_grad=True)
    value = genesis.tensor([[0.3, -0.6], [0.9, 0.1]])
    base = d.Independent(d.Normal(loc, 0.7), 1)
    affine = d.AffineTransform(1.0, genesis.tensor([2.0, -0.5]))
    cases = [
        (d.TanhTransform(), [-0.71703, -4.66043], [-0.38874, 0.62623, 2.49433, -3.87687]),
        ([affine, d.TanhTransform(cache_size=1)], None, None),
        ([d.ComposeTransform([d.AffineTransform(0.1, 3.0), d.ExpTransform()])], None, None),
    ]
    for transforms, densities, gradients in cases:
        p = d.TransformedDistribution(base, transforms)
        assert (p.batch_shape, p.event_shape) == ((2,), (2,)) and p.has_rsample
        x = p.rsample((3,))
        assert x.shape == (3, 2, 2) and genesis.isfinite(p.log_prob(x)).all()
        assert p.expand((5, 2)).sample().shape == (5, 2, 2)
        if densities is not None:
            loc.grad = None
            made = p.log_prob(value)
            made.sum().backward()
            assert made.tolist() == pytest.approx(densities, abs=2e-5)
            assert loc.grad.flatten().tolist() == pytest.approx(gradients, abs=2e-5)
    p = d.TransformedDistribution(d.Normal(loc, 0.7), [d.AffineTransform(1.0, 2.0, event_dim=1)])
    assert (p.batch_shape, p.event_shape) == ((2,), (2,))
    p = d.LogNormal(0.5, 0.25)
    x = genesis.tensor([0.5, 2.0])
    far = (x.log() - 0.5) / 0.25
    expected = -(far**2) / 2 - x.log() - genesis.tensor(0.25).log() - 0.9189385
    assert p.log_prob(x).tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert p.mean.item() == pytest.approx(1.7010573) and p.entropy().item() == pytest.approx(
        0.5326442
    )
    tanh = d.TanhTransform(cache_size=1)
    y = tanh(x * 10)
    assert tanh.inv(y).tolist() == [5, 20] and tanh(x * 10).tolist() == y.tolist()
    with pytest.raises(ValueError, match="transforms must be"):
        d.TransformedDistribution(base, [genesis.tanh])


def test_text():
    assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(d.Categorical(genesis.ones(3))) == "Categorical(probs: (3,))"
