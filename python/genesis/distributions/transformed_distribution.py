"""Distributions of functions of random numbers."""

from __future__ import annotations

from genesis._grad_mode import no_grad
from genesis.distributions.distribution import Distribution, sum_of_last
from genesis.distributions.independent import Independent
from genesis.distributions.normal import Normal
from genesis.distributions.transforms import ExpTransform, Transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["LogNormal", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """A function, or several one after the other, of random numbers.

    Parameters
    ----------
    base_distribution : Distribution
        Where the random numbers come from.
    transforms : Transform or list of Transform
        What is done to them.

    Examples
    --------
    >>> import genesis
    >>> from genesis.distributions import Normal, TanhTransform, TransformedDistribution
    >>> one = TransformedDistribution(Normal(0.0, 1.0), TanhTransform())
    >>> one.log_prob(genesis.tensor(0.5))
    tensor(-0.7821)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for one in self.transforms:
            if not isinstance(one, Transform):
                raise ValueError(f"transforms must be a Transform or a list of them, not {one!r}")
        event = len(base_distribution.event_shape)
        extra = max([0, *(one.event_dim - event for one in self.transforms)])
        if extra:
            base_distribution = Independent(base_distribution, extra)
        self.base_dist: Any = base_distribution
        self.has_rsample = base_distribution.has_rsample
        shape, shape_of_event = base_distribution.batch_shape, base_distribution.event_shape
        super().__init__(shape, shape_of_event, validate_args)

    def _transformed(self, x: Tensor) -> Tensor:
        for one in self.transforms:
            x = one(x)
        return x

    def expand(self, batch_shape: Shape, _instance: Any = None) -> TransformedDistribution:
        """The same distributions with parameters of a larger shape."""
        made = self.base_dist.expand(batch_shape)
        return TransformedDistribution(made, self.transforms, validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, without gradients."""
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, with gradients for the parameters."""
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        total: Any = 0
        event = len(self._event_shape)
        for one in reversed(self.transforms):
            x = one.inv(value)
            total = total - sum_of_last(one.log_abs_det_jacobian(x, value), event - one.event_dim)
            value = x
        return total + self.base_dist.log_prob(value)


class LogNormal(TransformedDistribution):
    """Numbers whose logarithms are normally distributed.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.LogNormal(0.0, 1.0)
    >>> one.mean, one.log_prob(genesis.tensor(2.0))
    (tensor(1.6487), tensor(-1.8523))
    """

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.base_dist.entropy() + self.loc
