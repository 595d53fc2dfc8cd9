"""Dropout."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _Dropout(Module):
    """What they have in common."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The arguments."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, elements become 0 with a probability; the others are scaled by ``1/(1-p)``.

    Parameters
    ----------
    p : float
        The probability.
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Dropout(0.2).eval()(genesis.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Dropout of whole channels, (N, C, L) or (C, L).

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Dropout1d(0.2)(genesis.ones(2, 3, 4)).shape
    (2, 3, 4)
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Dropout of whole channels of images, (N, C, H, W) or (N, C, L).

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Dropout2d(0.2)(genesis.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Dropout of whole channels of volumes, (N, C, D, H, W) or (C, D, H, W).

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Dropout3d(0.2)(genesis.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for networks with SELU.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AlphaDropout(0.2).eval()(genesis.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """The same of whole channels.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.FeatureAlphaDropout(0.2).eval()(genesis.ones(1, 3))
    tensor([[1., 1., 1.]])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.feature_alpha_dropout(input, self.p, self.training)
