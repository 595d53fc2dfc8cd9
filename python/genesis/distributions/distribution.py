"""What all probability distributions have."""

from __future__ import annotations

import genesis
from genesis._grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from genesis import Tensor

    Shape = Sequence[int]

__all__ = ["Distribution"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape, of tensors and numbers."""
    tensors = [one for one in values if isinstance(one, genesis.Tensor)]
    if not tensors:
        made = [genesis.tensor(float(one)) for one in values]
    else:
        like = tensors[0]
        made = [
            one
            if isinstance(one, genesis.Tensor)
            else genesis.tensor(float(one), dtype=like.dtype, device=like.device)
            for one in values
        ]
    return tuple(genesis.broadcast_tensors(*made))


def checked(name: str, what: str, tensor: Tensor, is_good: Tensor) -> None:
    """Raise an error if a parameter or value is not what it must be."""
    if not is_good.all().item():
        raise ValueError(f"{name}: {what}, but found {tensor}")


def probabilities_clamped(probs: Tensor) -> Tensor:
    """Probabilities whose logarithms are finite."""
    eps = genesis.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def sum_of_last(x: Tensor, count: int) -> Tensor:
    """The sums over so many last dimensions."""
    return x.flatten(x.ndim - count).sum(-1) if count else x


class Distribution:
    """The base of all distributions.

    `batch_shape` is the shape of the parameters, one distribution for each element, and
    `event_shape` the shape of one sample of one distribution.
    """

    has_rsample = False
    _validate_default = __debug__

    def __init__(
        self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether parameters and values are checked where it is not said."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: True or False, not {value!r}")
        Distribution._validate_default = bool(value)

    @property
    def _validate_args(self) -> bool:
        return self.__dict__.get("_is_validated", Distribution._validate_default)

    @_validate_args.setter
    def _validate_args(self, value: bool) -> None:
        self.__dict__["_is_validated"] = bool(value)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, with gradients for the parameters."""
        raise NotImplementedError(
            f"{type(self).__name__} has no rsample(): its samples have no gradients"
        )

    def sample_n(self, n: int) -> Tensor:
        """So many samples."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, of a value."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob()")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of less than a value, or of the value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """The value with this cdf()."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf()")

    def entropy(self) -> Tensor:
        """The entropy."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy()")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """The same distributions with parameters of a larger shape."""
        raise NotImplementedError(f"{type(self).__name__} has no expand()")

    def _extended_shape(self, sample_shape: Shape = ()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _check_value(self, value: Tensor, what: str, is_good: Tensor) -> None:
        checked(f"{type(self).__name__}: the value", what, value, is_good)

    def _check_shape(self, value: Any) -> None:
        if not isinstance(value, genesis.Tensor):
            raise ValueError(f"{type(self).__name__}: the value is a Tensor, not {value!r}")
        count = len(self._event_shape)
        if count and tuple(value.shape[-count:]) != self._event_shape:
            raise ValueError(
                f"{type(self).__name__}: the last sizes of a value are {self._event_shape}, "
                f"but it has the shape {tuple(value.shape)}"
            )
        pairs = zip(reversed(value.shape), reversed(self._extended_shape()), strict=False)
        if any(1 not in pair and pair[0] != pair[1] for pair in pairs):
            raise ValueError(
                f"{type(self).__name__}: a value of the shape {tuple(value.shape)} is not "
                f"broadcastable with the shape {self._extended_shape()}"
            )

    def __repr__(self) -> str:
        shown = []
        for name in getattr(self, "arg_names", ()):
            value = self.__dict__.get(name)
            if value is not None:
                shown.append(f"{name}: {value if value.numel() == 1 else tuple(value.shape)}")
        return f"{type(self).__name__}({', '.join(shown)})"
