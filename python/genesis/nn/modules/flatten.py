"""Modules that change shapes, or nothing."""

from __future__ import annotations

from genesis import _C
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Flatten", "Identity", "Unflatten"]


class Identity(Module):
    """Its input, as it is; any arguments are accepted.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Identity(54, unused=0.1)(genesis.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Its input."""
        return input


class Flatten(Module):
    """Dimensions from `start_dim` to `end_dim` as one.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Flatten()(genesis.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """The input with fewer dimensions."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """A dimension as several ones.

    Parameters
    ----------
    dim : int
        The dimension.
    unflattened_size : sequence of int
        Sizes of the dimensions that take its place.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Unflatten(1, (2, 3))(genesis.ones(4, 6)).shape
    (4, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for place, one in enumerate(unflattened_size):
            if not isinstance(one, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(one).__name__} at pos {place}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """The input with more dimensions."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
