"""The exponential distribution, and Laplace's: exponential on both sides."""

from __future__ import annotations

import genesis
from genesis._grad_mode import no_grad
from genesis.distributions.distribution import Distribution, broadcast_all, checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["Exponential", "Laplace"]


def _times(shape: tuple[int, ...], like: Tensor) -> Tensor:
    with no_grad():
        return genesis.empty(shape, dtype=like.dtype, device=like.device).exponential_()


class Exponential(Distribution):
    """Times to the next of events that happen at a rate.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Exponential(2.0)
    >>> one.mean, one.log_prob(genesis.tensor(1.0))
    (tensor(0.5000), tensor(-1.3069))
    """

    has_rsample = True
    arg_names = ("rate",)

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)
        if self._validate_args:
            checked("Exponential: rate", "numbers above 0 are expected", self.rate, self.rate > 0)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.rate.pow(-2)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Exponential:
        """The same distributions with parameters of a larger shape."""
        return Exponential(self.rate.expand(tuple(batch_shape)), validate_args=False)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, with gradients for the rate."""
        return _times(self._extended_shape(sample_shape), self.rate) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            self._check_value(value, "numbers that are not negative are expected", value >= 0)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of less than a value."""
        return 1 - genesis.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        """The value with this cdf()."""
        return -genesis.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1.0 - self.rate.log()


class Laplace(Distribution):
    """Laplace's distribution: both sides of a place, exponentially.

    Examples
    --------
    >>> import genesis
    >>> genesis.distributions.Laplace(0.0, 1.0).log_prob(genesis.tensor([-1.0, 2.0]))
    tensor([-1.6931, -2.6931])
    """

    has_rsample = True
    arg_names = ("loc", "scale")

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)
        if self._validate_args:
            checked("Laplace: loc", "numbers are expected", self.loc, self.loc == self.loc)
            checked("Laplace: scale", "numbers above 0 are expected", self.scale, self.scale > 0)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 2 * self.scale.pow(2)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Laplace:
        """The same distributions with parameters of a larger shape."""
        shape = tuple(batch_shape)
        return Laplace(self.loc.expand(shape), self.scale.expand(shape), validate_args=False)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, with gradients for the parameters."""
        shape = self._extended_shape(sample_shape)
        drawn = _times(shape, self.loc)
        is_left = genesis.rand(shape, device=self.loc.device) < 0.5
        return self.loc + self.scale * genesis.where(is_left, -drawn, drawn)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            self._check_value(value, "numbers are expected", value == value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 + (2 * self.scale).log()
