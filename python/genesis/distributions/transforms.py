"""Invertible functions of random numbers."""

from __future__ import annotations

from math import log

import genesis
from genesis.distributions.distribution import sum_of_last
from genesis.nn import functional as F  # noqa: N812

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor

__all__ = [
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "SigmoidTransform",
    "TanhTransform",
    "Transform",
]


class Transform:
    """The base: a function, its inverse, and the logarithm of its derivative.

    With ``cache_size=1`` the inverse of the last result is the value that it was made of, which
    loses nothing to rounding.
    """

    event_dim = 0

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"Transform: cache_size must be 0 or 1, not {cache_size!r}")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)

    def __call__(self, x: Tensor) -> Tensor:
        """The function of a value."""
        if self._cache_size and self._cached[0] is x:
            return self._cached[1]
        y = self._call(x)
        if self._cache_size:
            self._cached = (x, y)
        return y

    def inv(self, y: Tensor) -> Tensor:
        """The value that a result was made of."""
        if self._cache_size and self._cached[1] is y:
            return self._cached[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no function")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the derivative's size, of a value and its result."""
        raise NotImplementedError(f"{type(self).__name__} has no derivative")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ExpTransform(Transform):
    """The exponential.

    Examples
    --------
    >>> import genesis
    >>> genesis.distributions.ExpTransform().inv(genesis.ones(2))
    tensor([0., 0.])
    """

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the derivative's size."""
        return x


class SigmoidTransform(Transform):
    """The logistic function.

    Examples
    --------
    >>> import genesis
    >>> genesis.distributions.SigmoidTransform()(genesis.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def _call(self, x: Tensor) -> Tensor:
        eps = genesis.finfo(x.dtype)
        return genesis.sigmoid(x).clamp(eps.tiny, 1.0 - eps.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        eps = genesis.finfo(y.dtype)
        y = y.clamp(eps.tiny, 1.0 - eps.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the derivative's size."""
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """The hyperbolic tangent.

    Examples
    --------
    >>> import genesis
    >>> genesis.distributions.TanhTransform().log_abs_det_jacobian(genesis.zeros(2), None)
    tensor([0., 0.])
    """

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Any) -> Tensor:
        """The logarithm of the derivative's size: ``log(1 - tanh(x)**2)``, without cancellation."""
        return 2.0 * (log(2.0) - x - F.softplus(-2.0 * x))


class AffineTransform(Transform):
    """``loc + scale * x``.

    Examples
    --------
    >>> import genesis
    >>> genesis.distributions.AffineTransform(1.0, 2.0)(genesis.tensor([3.0]))
    tensor([7.])
    """

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the derivative's size."""
        made = (genesis.zeros_like(x) + self.scale).abs().log()
        return sum_of_last(made, self.event_dim)


class ComposeTransform(Transform):
    """Transforms one after the other.

    Examples
    --------
    >>> import genesis
    >>> from genesis.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(genesis.zeros(1))
    tensor([1.])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max((part.event_dim for part in parts), default=0)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the derivative's size."""
        total: Any = 0
        for part in self.parts:
            after = part(x)
            made = part.log_abs_det_jacobian(x, after)
            total = total + sum_of_last(made, self.event_dim - part.event_dim)
            x = after
        return total
