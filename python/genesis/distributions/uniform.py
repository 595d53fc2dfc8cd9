"""The uniform distribution."""

from __future__ import annotations

import genesis
from genesis.distributions.distribution import Distribution, broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers from `low` to before `high`.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Uniform(1.0, 3.0)
    >>> one.mean, one.log_prob(genesis.tensor([1.5, 2.0]))
    (tensor(2.), tensor([-0.6931, -0.6931]))
    """

    has_rsample = True
    arg_names = ("low", "high")

    def __init__(
        self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validate_args and not (self.low < self.high).all().item():
            raise ValueError("Uniform is not defined when low >= high")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (self.high - self.low) ** 2 / 12

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Uniform:
        """The same distributions with parameters of a larger shape."""
        shape = tuple(batch_shape)
        return Uniform(self.low.expand(shape), self.high.expand(shape), validate_args=False)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, with gradients for the parameters."""
        shape = self._extended_shape(sample_shape)
        drawn = genesis.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            what = f"numbers from {self.low} to {self.high} are expected"
            self._check_value(value, what, (value >= self.low) & (value <= self.high))
        is_inside = (self.low <= value) & (self.high > value)
        return is_inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of less than a value."""
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """The value with this cdf()."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """The entropy."""
        return (self.high - self.low).log()
