"""The normal distribution."""

from __future__ import annotations

from math import log, pi, sqrt

import genesis
from genesis._grad_mode import no_grad
from genesis.distributions.distribution import Distribution, broadcast_all, checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["Normal"]


class Normal(Distribution):
    """The normal distribution.

    Parameters
    ----------
    loc : Tensor or float
        The means.
    scale : Tensor or float
        The standard deviations.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Normal(0.0, 2.0)
    >>> one.log_prob(genesis.tensor(1.0)), one.sample((3,)).shape
    (tensor(-1.7371), (3,))
    """

    has_rsample = True
    arg_names = ("loc", "scale")

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)
        if self._validate_args:
            checked("Normal: loc", "numbers are expected", self.loc, self.loc == self.loc)
            checked("Normal: scale", "numbers above 0 are expected", self.scale, self.scale > 0)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale.pow(2)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Normal:
        """The same distributions with parameters of a larger shape."""
        shape = tuple(batch_shape)
        return Normal(self.loc.expand(shape), self.scale.expand(shape), validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, without gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return genesis.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, with gradients for the parameters."""
        shape = self._extended_shape(sample_shape)
        drawn = genesis.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            self._check_value(value, "numbers are expected", value == value)
        far = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -far - self.scale.log() - 0.5 * log(2 * pi)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of less than a value."""
        return 0.5 * (1 + genesis.erf((value - self.loc) / (self.scale * sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        """The value with this cdf()."""
        return self.loc + self.scale * genesis.erfinv(2 * value - 1) * sqrt(2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return 0.5 + 0.5 * log(2 * pi) + self.scale.log()
