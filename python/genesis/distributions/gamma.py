"""The gamma distribution, and those that are made of it: beta and Dirichlet.

Samples have no gradients: these three have no rsample().
"""

from __future__ import annotations

import genesis
from genesis import _C
from genesis._grad_mode import no_grad
from genesis.distributions.distribution import Distribution, broadcast_all, checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["Beta", "Dirichlet", "Gamma"]

_ABOVE = "numbers above 0 are expected"


class Gamma(Distribution):
    """The gamma distribution.

    Parameters
    ----------
    concentration : Tensor or float
        Its shape, often called alpha.
    rate : Tensor or float
        The inverse of its scale, often called beta.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Gamma(2.0, 1.0)
    >>> one.mean, one.log_prob(genesis.tensor(1.5))
    (tensor(2.), tensor(-1.0945))
    """

    arg_names = ("concentration", "rate")

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)
        if self._validate_args:
            alpha = self.concentration
            checked("Gamma: concentration", _ABOVE, alpha, alpha > 0)
            checked("Gamma: rate", _ABOVE, self.rate, self.rate > 0)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.concentration / self.rate.pow(2)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Gamma:
        """The same distributions with parameters of a larger shape."""
        shape = tuple(batch_shape)
        return Gamma(self.concentration.expand(shape), self.rate.expand(shape), validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, without gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _C._standard_gamma(self.concentration.expand(shape)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            self._check_value(value, "numbers that are not negative are expected", value >= 0)
        alpha, beta = self.concentration, self.rate
        powers = genesis.xlogy(alpha, beta) + genesis.xlogy(alpha - 1, value)
        return powers - beta * value - genesis.lgamma(alpha)

    def entropy(self) -> Tensor:
        """The entropy."""
        alpha = self.concentration
        extra = (1 - alpha) * genesis.digamma(alpha)
        return alpha - self.rate.log() + genesis.lgamma(alpha) + extra


class Dirichlet(Distribution):
    """Probabilities of categories, which sum up to 1 along the last dimension.

    Parameters
    ----------
    concentration : Tensor
        The weights of the categories.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Dirichlet(genesis.tensor([1.0, 2.0]))
    >>> one.mean, one.log_prob(genesis.tensor([0.4, 0.6]))
    (tensor([0.3333, 0.6667]), tensor(0.1823))
    """

    arg_names = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("Dirichlet: concentration must have a dimension of categories")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)
        if self._validate_args:
            checked("Dirichlet: concentration", _ABOVE, concentration, concentration > 0)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total, mean = self.concentration.sum(-1, keepdim=True), self.mean
        return mean * (1 - mean) / (total + 1)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Dirichlet:
        """The same distributions with parameters of a larger shape."""
        shape = (*batch_shape, *self._event_shape)
        return Dirichlet(self.concentration.expand(shape), validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random probabilities, without gradients."""
        with no_grad():
            alpha = self.concentration.expand(self._extended_shape(sample_shape))
            made = _C._standard_gamma(alpha)
            return made / made.sum(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            is_good = (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)
            self._check_value(value, "probabilities that sum up to 1 are expected", is_good)
        alpha = self.concentration
        whole = genesis.lgamma(alpha.sum(-1)) - genesis.lgamma(alpha).sum(-1)
        return genesis.xlogy(alpha - 1, value).sum(-1) + whole

    def entropy(self) -> Tensor:
        """The entropy."""
        alpha, count = self.concentration, self.concentration.shape[-1]
        total = alpha.sum(-1)
        whole = genesis.lgamma(alpha).sum(-1) - genesis.lgamma(total)
        parts = ((alpha - 1) * genesis.digamma(alpha)).sum(-1)
        return whole - (count - total) * genesis.digamma(total) - parts


class Beta(Distribution):
    """Numbers from 0 to 1.

    Parameters
    ----------
    concentration1 : Tensor or float
        The weight of 1, often called alpha.
    concentration0 : Tensor or float
        The weight of 0, often called beta.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Beta(2.0, 3.0)
    >>> one.mean, one.log_prob(genesis.tensor(0.5))
    (tensor(0.4000), tensor(0.4055))
    """

    arg_names = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)
        if self._validate_args:
            for name in self.arg_names:
                one = getattr(self, name)
                checked(f"Beta: {name}", _ABOVE, one, one > 0)

    @property
    def _both(self) -> Dirichlet:
        both = genesis.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Beta:
        """The same distributions with parameters of a larger shape."""
        shape = tuple(batch_shape)
        return Beta(
            self.concentration1.expand(shape),
            self.concentration0.expand(shape),
            validate_args=False,
        )

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, without gradients."""
        return self._both.sample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            is_good = (value >= 0) & (value <= 1)
            self._check_value(value, "numbers from 0 to 1 are expected", is_good)
        return self._both.log_prob(genesis.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._both.entropy()
