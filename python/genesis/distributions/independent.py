"""Distributions of several dimensions."""

from __future__ import annotations

from math import log, pi

import genesis
from genesis.distributions.distribution import Distribution, checked, sum_of_last

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.distributions.distribution import Shape

__all__ = ["Independent", "MultivariateNormal"]


class Independent(Distribution):
    """Take the last dimensions of a batch as parts of one sample.

    Parameters
    ----------
    base_distribution : Distribution
        Whose densities are multiplied.
    reinterpreted_batch_ndims : int
        Over how many last dimensions of its batch.

    Examples
    --------
    >>> import genesis
    >>> from genesis.distributions import Independent, Normal
    >>> one = Independent(Normal(genesis.zeros(4, 3), genesis.ones(4, 3)), 1)
    >>> one.batch_shape, one.event_shape, one.log_prob(genesis.zeros(4, 3)).shape
    ((4,), (3,), (4,))
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        shape, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if count > len(shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {count} vs {len(shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        self.has_rsample = base_distribution.has_rsample
        place = len(shape) - count
        event = (*shape[place:], *base_distribution.event_shape)
        super().__init__(shape[:place], event, validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.base_dist.variance

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Independent:
        """The same distributions with parameters of a larger shape."""
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        made = self.base_dist.expand((*batch_shape, *inner))
        return Independent(made, self.reinterpreted_batch_ndims, validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, without gradients."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random numbers, with gradients for the parameters."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        return sum_of_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The entropy."""
        return sum_of_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MultivariateNormal(Distribution):
    """The normal distribution of vectors.

    Parameters
    ----------
    loc : Tensor
        The means, along the last dimension.
    covariance_matrix, precision_matrix, scale_tril : Tensor, optional
        Just one: the covariance, its inverse, or its lower Cholesky factor.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.distributions.MultivariateNormal(genesis.zeros(2), 4 * genesis.eye(2))
    >>> one.log_prob(genesis.ones(2)), one.sample((3,)).shape
    (tensor(-3.4742), (3, 2))
    """

    has_rsample = True
    arg_names = ("loc", "scale_tril")

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [covariance_matrix, precision_matrix, scale_tril]
        if sum(one is not None for one in given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        matrix: Any = next(one for one in given if one is not None)
        if loc.ndim < 1 or matrix.ndim < 2:
            raise ValueError("MultivariateNormal: a vector and a matrix are expected")
        size = loc.shape[-1]
        batch = genesis.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        super().__init__(batch, (size,), validate_args)
        if self._validate_args and scale_tril is None:
            is_good = ((matrix - matrix.mT).abs() <= 1e-6).all()
            checked("MultivariateNormal", "a symmetric matrix is expected", matrix, is_good)
        if covariance_matrix is not None:
            matrix = genesis.linalg.cholesky(covariance_matrix)
        elif precision_matrix is not None:
            matrix = genesis.linalg.cholesky(genesis.linalg.inv(precision_matrix))
        self.loc = loc.expand((*batch, size))
        self.scale_tril = matrix.expand((*batch, size, size))

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return genesis.linalg.inv(self.covariance_matrix)

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
        """The variance of each element."""
        return self.scale_tril.pow(2).sum(-1)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> MultivariateNormal:
        """The same distributions with parameters of a larger shape."""
        size = self._event_shape[0]
        return MultivariateNormal(
            self.loc.expand((*batch_shape, size)),
            scale_tril=self.scale_tril.expand((*batch_shape, size, size)),
            validate_args=False,
        )

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random vectors, with gradients for the parameters."""
        shape = self._extended_shape(sample_shape)
        drawn = genesis.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def _log_determinant(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of a value."""
        if self._validate_args:
            self._check_shape(value)
            self._check_value(value, "numbers are expected", value == value)
        far = (value - self.loc).unsqueeze(-1)
        factor = self.scale_tril.expand((*far.shape[:-2], *self.scale_tril.shape[-2:]))
        far = genesis.linalg.solve_triangular(factor, far, upper=False)
        square = far.squeeze(-1).pow(2).sum(-1)
        return -0.5 * (self._event_shape[0] * log(2 * pi) + square) - self._log_determinant()

    def entropy(self) -> Tensor:
        """The entropy."""
        made = 0.5 * self._event_shape[0] * (1.0 + log(2 * pi)) + self._log_determinant()
        return made.expand(self._batch_shape)
