"""How far one distribution is from another: the Kullback-Leibler divergence."""

from __future__ import annotations

import genesis
from genesis.distributions.bernoulli import Bernoulli
from genesis.distributions.categorical import Categorical
from genesis.distributions.distribution import sum_of_last
from genesis.distributions.exponential import Exponential
from genesis.distributions.gamma import Beta, Dirichlet, Gamma
from genesis.distributions.independent import Independent, MultivariateNormal
from genesis.distributions.normal import Normal
from genesis.distributions.uniform import Uniform
from genesis.nn import functional as F  # noqa: N812

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_RULES: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Make a function the divergence of two classes of distributions: a decorator.

    Examples
    --------
    >>> import genesis
    >>> from genesis.distributions import Normal, kl_divergence, register_kl
    >>> class Point(Normal):
    ...     pass
    >>> @register_kl(Point, Point)
    ... def far(p, q):
    ...     return (p.loc != q.loc) * genesis.inf
    >>> kl_divergence(Point(0.0, 1.0), Point(1.0, 1.0))
    tensor(inf)
    """

    def take(function: Any) -> Any:
        _RULES[type_p, type_q] = function
        return function

    return take


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of `p` from `q`.

    Examples
    --------
    >>> from genesis.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    found = [
        (type(p).__mro__.index(one) + type(q).__mro__.index(other), rule)
        for (one, other), rule in _RULES.items()
        if isinstance(p, one) and isinstance(q, other)
    ]
    if not found:
        raise NotImplementedError(
            f"kl_divergence: there is no rule for {type(p).__name__} and {type(q).__name__}: "
            "see register_kl()"
        )
    return min(found, key=lambda pair: pair[0])[1](p, q)


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Categorical, Categorical)
def _categories(p: Categorical, q: Categorical) -> Tensor:
    parts = p.probs * (p.logits - q.logits)
    parts = parts.masked_fill((q.probs == 0).expand(parts.shape), float("inf"))
    return parts.masked_fill((p.probs == 0).expand(parts.shape), 0).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    ones = ones.masked_fill((q.probs == 0).expand(ones.shape), float("inf"))
    ones = ones.masked_fill((p.probs == 0).expand(ones.shape), 0)
    zeros = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    zeros = zeros.masked_fill((q.probs == 1).expand(zeros.shape), float("inf"))
    return ones + zeros.masked_fill((p.probs == 1).expand(zeros.shape), 0)


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    made = ((q.high - q.low) / (p.high - p.low)).log()
    return made.masked_fill((q.low > p.low) | (q.high < p.high), float("inf"))


@register_kl(Exponential, Exponential)
def _exponentials(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gammas(p: Gamma, q: Gamma) -> Tensor:
    rates = q.concentration * (p.rate / q.rate).log()
    factors = genesis.lgamma(q.concentration) - genesis.lgamma(p.concentration)
    shapes = (p.concentration - q.concentration) * genesis.digamma(p.concentration)
    return rates + factors + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    wholes = genesis.lgamma(total) - genesis.lgamma(b.sum(-1))
    factors = (genesis.lgamma(a) - genesis.lgamma(b)).sum(-1)
    parts = (a - b) * (genesis.digamma(a) - genesis.digamma(total).unsqueeze(-1))
    return wholes - factors + parts.sum(-1)


@register_kl(Beta, Beta)
def _betas(p: Beta, q: Beta) -> Tensor:
    return _dirichlets(p._both, q._both)


@register_kl(Independent, Independent)
def _independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: other numbers of dimensions are independent")
    return sum_of_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(MultivariateNormal, MultivariateNormal)
def _vectors(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    size = p.event_shape[0]
    batch = genesis.broadcast_shapes(p.batch_shape, q.batch_shape)
    factor = q.scale_tril.expand((*batch, size, size))
    ratio = genesis.linalg.solve_triangular(
        factor, p.scale_tril.expand((*batch, size, size)), upper=False
    )
    far = (q.loc - p.loc).expand((*batch, size)).unsqueeze(-1)
    far = genesis.linalg.solve_triangular(factor, far, upper=False)
    squares = ratio.pow(2).sum((-2, -1)) + far.pow(2).sum((-2, -1))
    return q._log_determinant() - p._log_determinant() + 0.5 * (squares - size)
