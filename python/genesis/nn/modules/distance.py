"""Distances and similarities of vectors."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The norms of the differences of vectors, along the last dimension.

    Parameters
    ----------
    p : float
        Which norm that is.
    eps : float
        What is added to the differences.
    keepdim : bool
        Whether the last dimension stays, with size 1.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.PairwiseDistance(eps=0.0)(genesis.tensor([[3.0, 4.0]]), genesis.zeros(1, 2))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: _C.Tensor, x2: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosines of the angles between vectors.

    Parameters
    ----------
    dim : int
        The dimension of the vectors.
    eps : float
        The least product of norms that is divided by.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.CosineSimilarity()(genesis.ones(1, 2), genesis.tensor([[2.0, 2.0]]))
    tensor([1.0000])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: _C.Tensor, x2: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
