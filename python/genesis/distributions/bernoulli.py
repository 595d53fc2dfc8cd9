"""The Bernoulli distribution."""

from __future__ import annotations

import genesis
from genesis._grad_mode import no_grad
from genesis.distributions.distribution import (
    Distribution,
    broadcast_all,
    checked,
    probabilities_clamped,
)
from genesis.nn import functional as F  # noqa: N812

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["Bernoulli"]


class Bernoulli(Distribution):
    """1 with a probability, and else 0.

    Parameters
    ----------
    probs : Tensor or float, optional
        The probabilities of 1.
    logits : Tensor or float, optional
        The logarithms of the odds; one of both is given.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Bernoulli(logits=genesis.tensor([0.0, 2.0]))
    >>> one.log_prob(genesis.tensor([1.0, 0.0]))
    tensor([-0.6931, -2.1269])
    """

    arg_names = ("probs", "logits")

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (given,) = broadcast_all(probs if logits is None else logits)
        super().__init__(given.shape, (), validate_args)
        if logits is None:
            self.probs = given
            if self._validate_args:
                is_good = (given >= 0) & (given <= 1)
                checked("Bernoulli: probs", "numbers from 0 to 1 are expected", given, is_good)
        else:
            self.logits = given
            if self._validate_args:
                checked("Bernoulli: logits", "numbers are expected", given, given == given)

    def __getattr__(self, name: str) -> Any:
        if name == "logits" and "probs" in self.__dict__:
            self.logits = genesis.logit(probabilities_clamped(self.probs))
            return self.logits
        if name == "probs" and "logits" in self.__dict__:
            self.probs = genesis.sigmoid(self.logits)
            return self.probs
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        """The more likely value; nan where both are."""
        made = (self.probs >= 0.5).to(self.probs.dtype)
        return made.masked_fill(self.probs == 0.5, float("nan"))

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Bernoulli:
        """The same distributions with parameters of a larger shape."""
        shape = tuple(batch_shape)
        if "probs" in self.__dict__:
            return Bernoulli(probs=self.probs.expand(shape), validate_args=False)
        return Bernoulli(logits=self.logits.expand(shape), validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random zeros and ones."""
        with no_grad():
            return genesis.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a value."""
        if self._validate_args:
            self._check_shape(value)
            self._check_value(value, "zeros and ones are expected", (value == 0) | (value == 1))
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """The entropy."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
