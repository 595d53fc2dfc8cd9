"""Norms of layers and groups."""

from __future__ import annotations

from collections.abc import Iterable

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.linear import new_parameter
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape_of(shape: int | Iterable[int]) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, Iterable) else (shape,)


class LayerNorm(Module):
    """The last dimensions with mean 0 and variance 1, times a weight, plus a bias.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of the last dimensions.
    eps : float
        What is added to the variance.
    elementwise_affine : bool
        Whether there is a weight.
    bias : bool
        Whether there is a bias beside the weight.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LayerNorm(2, eps=0.0)(genesis.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, is_there in (("weight", True), ("bias", bias)):
            made = None
            if elementwise_affine and is_there:
                made = new_parameter(*self.normalized_shape, device=device, dtype=dtype)
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The last dimensions divided by the root of their mean square, times a weight.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of the last dimensions.
    eps : float, optional
        What is added to the mean square; None: the machine epsilon of the input's type.
    elementwise_affine : bool
        Whether there is a weight.
    device, dtype : optional
        Of the weight.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.RMSNorm(2, eps=0.0)(genesis.tensor([[4.0, 4.0]])).detach()
    tensor([[1., 1.]])
    """

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = None
        if elementwise_affine:
            made = new_parameter(*self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Groups of channels with mean 0 and variance 1, times a weight, plus a bias, by channel.

    Parameters
    ----------
    num_groups, num_channels : int
        The channels, dimension 1, are divided into so many groups.
    eps : float
        What is added to the variance.
    affine : bool
        Whether there is a weight.
    bias : bool
        Whether there is a bias beside the weight.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.GroupNorm(1, 2, eps=0.0)(genesis.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.,  1.]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, is_there in (("weight", True), ("bias", bias)):
            made = None
            if affine and is_there:
                made = new_parameter(num_channels, device=device, dtype=dtype)
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Channels divided by a power of the mean square of those near them.

    Parameters
    ----------
    size : int
        How many channels are near.
    alpha, beta, k : float
        The divisor is ``(k + alpha * mean) ** beta``.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LocalResponseNorm(2)(genesis.ones(1, 3, 4)).shape
    (1, 3, 4)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
