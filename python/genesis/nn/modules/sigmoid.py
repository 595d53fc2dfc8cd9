"""Sigmoid, tanh, softmax, and activations that are made of them."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.module import Module

__all__ = [
    "GLU",
    "LogSigmoid",
    "LogSoftmax",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
]


class Tanhshrink(Module):
    """``x - tanh(x)``.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Tanhshrink()(genesis.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.tanhshrink(input)


class Softsign(Module):
    """``x / (1 + abs(x))``.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Softsign()(genesis.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5000])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.softsign(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, and x where ``beta * x`` is above `threshold`.

    Parameters
    ----------
    beta : float
        How steep it is at 0.
    threshold : float
        Where it becomes linear.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Softplus()(genesis.tensor([50.0, 60.0]))
    tensor([50., 60.])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Sigmoid()(genesis.tensor([0.0, 100.0]))
    tensor([0.5000, 1.0000])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return input.sigmoid()


class LogSigmoid(Module):
    """``log(sigmoid(x))``.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LogSigmoid()(genesis.tensor([0.0, 200.0]))
    tensor([-0.6931,  0.0000])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Tanh()(genesis.tensor([0.0, 100.0]))
    tensor([0., 1.])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return input.tanh()


class GLU(Module):
    """The first half of a dimension, times sigmoid of the second.

    Parameters
    ----------
    dim : int
        The dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.GLU()(genesis.tensor([4.0, 0.0]))
    tensor([2.])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}"


class Softmax(Module):
    """``exp(x)`` over the sum of it along a dimension.

    Parameters
    ----------
    dim : int, optional
        The dimension; None: as PyTorch chooses it, by the number of dimensions.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Softmax(dim=0)(genesis.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}"


class Softmin(Module):
    """Softmax of ``-x``.

    Parameters
    ----------
    dim : int, optional
        The dimension; None: as PyTorch chooses it, by the number of dimensions.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Softmin(dim=0)(genesis.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax.

    Parameters
    ----------
    dim : int, optional
        The dimension; None: as PyTorch chooses it, by the number of dimensions.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LogSoftmax(dim=0)(genesis.tensor([1.0, 1.0]))
    tensor([-0.6931, -0.6931])
    """

    def __init__(self, dim: int | None = None) -> None:
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}"


class Softmax2d(Module):
    """Softmax over the channels of images, (N, C, H, W) or (C, H, W).

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Softmax2d()(genesis.zeros(1, 4, 1, 1)).flatten()
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
