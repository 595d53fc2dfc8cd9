"""Distributions of one of several categories."""

from __future__ import annotations

import genesis
from genesis._grad_mode import no_grad
from genesis.distributions.distribution import Distribution, checked, probabilities_clamped
from genesis.nn import functional as F  # noqa: N812

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["Categorical", "OneHotCategorical"]


class Categorical(Distribution):
    """One of several categories, by probabilities or their logarithms along the last dimension.

    Parameters
    ----------
    probs : Tensor, optional
        The probabilities, or any weights that are not negative.
    logits : Tensor, optional
        Their logarithms, up to a constant; one of both is given.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.Categorical(genesis.tensor([0.25, 0.75]))
    >>> one.log_prob(genesis.tensor(1)), one.entropy()
    (tensor(-0.2877), tensor(0.5623))
    """

    arg_names = ("probs", "logits")

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given: Any = probs if logits is None else logits
        if given.ndim < 1:
            raise ValueError("Categorical: the parameter must have a dimension of categories")
        super().__init__(given.shape[:-1], (), validate_args)
        self._num_events = given.shape[-1]
        if logits is None:
            if self._validate_args:
                what = "probabilities that are not negative, with a sum above 0, are expected"
                is_good = (given >= 0).all(-1) & (given.sum(-1) > 0)
                checked("Categorical: probs", what, given, is_good)
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            if self._validate_args:
                checked("Categorical: logits", "numbers are expected", given, given == given)
            self.logits = given - given.logsumexp(-1, keepdim=True)

    def __getattr__(self, name: str) -> Any:
        if name == "logits" and "probs" in self.__dict__:
            self.logits = probabilities_clamped(self.probs).log()
            return self.logits
        if name == "probs" and "logits" in self.__dict__:
            self.probs = F.softmax(self.logits, dim=-1)
            return self.probs
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _param(self) -> Tensor:
        return self.__dict__.get("probs", self.__dict__.get("logits"))

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple(self._param.shape)

    @property
    def mean(self) -> Tensor:
        """There is none: elements are nan."""
        return genesis.full(self._batch_shape, float("nan"), dtype=self.probs.dtype)

    variance = mean

    @property
    def mode(self) -> Tensor:
        """The most likely category."""
        return self.probs.argmax(-1)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Categorical:
        """The same distributions with parameters of a larger shape."""
        shape = (*batch_shape, self._num_events)
        if "probs" in self.__dict__:
            return type(self)(probs=self.probs.expand(shape), validate_args=False)
        return type(self)(logits=self.logits.expand(shape), validate_args=False)

    def _drawn(self, sample_shape: Shape) -> Tensor:
        count = 1
        for size in sample_shape:
            count *= size
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            made = genesis.multinomial(rows, count, True).T
            return made.reshape((*sample_shape, *self._batch_shape))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random categories."""
        return self._drawn(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a category."""
        if self._validate_args:
            self._check_shape(value)
            is_good = (value >= 0) & (value < self._num_events) & (value % 1 == 0)
            self._check_value(value, f"integers below {self._num_events} are expected", is_good)
        index = value.long().unsqueeze(-1)
        index, logits = genesis.broadcast_tensors(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """The entropy."""
        least = genesis.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)


class OneHotCategorical(Categorical):
    """The same as vectors with a one at the category, and zeros elsewhere.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.OneHotCategorical(genesis.tensor([0.0, 1.0]))
    >>> one.sample((2,))
    tensor([[0., 1.],
            [0., 1.]])
    """

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self._event_shape = (self._num_events,)

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
        """The most likely vector."""
        return F.one_hot(self.probs.argmax(-1), self._num_events).to(self.probs.dtype)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random vectors."""
        return F.one_hot(self._drawn(sample_shape), self._num_events).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a vector."""
        if self._validate_args:
            self._check_shape(value)
            is_good = ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)
            self._check_value(value, "vectors with a single one are expected", is_good)
        return (self.logits * value).sum(-1) if value.ndim else self.logits
