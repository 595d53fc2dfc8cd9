"""Padding."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.conv import repeated
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """What they have in common: before and behind each dimension, the last dimension first."""

    _dims: int
    _mode: str

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self._dims)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """The same with one value."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """The same with 0."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    """With the elements at each side, in reverse order, without the outermost."""

    _mode = "reflect"


class _ReplicationPad(_Pad):
    """With the outermost elements."""

    _mode = "replicate"


class _CircularPad(_Pad):
    """With the elements of the other side."""

    _mode = "circular"

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        dims = (self._dims + 1, self._dims + 2)
        if input.ndim not in dims:
            raise ValueError(f"expected {dims[0]}D or {dims[1]}D input (got {input.ndim}D input)")
        return super().forward(input)


class ConstantPad1d(_ConstantPad):
    """More elements at the sides of a sequence: one value.

    Parameters
    ----------
    padding : int or sequence of int
        How many, on all sides, or before and behind each dimension, the last one first.
    value : float
        The value.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ConstantPad1d((1, 0), 7.0)(genesis.tensor([[1.0, 2.0, 3.0]]))
    tensor([[7., 1., 2., 3.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """More elements at the sides of an image: one value.

    The arguments are those of :class:`ConstantPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ConstantPad2d(1, 7.0)(genesis.ones(2, 3, 4)).shape
    (2, 5, 6)
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """More elements at the sides of a volume: one value.

    The arguments are those of :class:`ConstantPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ConstantPad3d(1, 7.0)(genesis.ones(2, 3, 4, 5)).shape
    (2, 5, 6, 7)
    """

    _dims = 3


class ZeroPad1d(_ZeroPad):
    """More elements at the sides of a sequence: 0.

    Parameters
    ----------
    padding : int or sequence of int
        How many, on all sides, or before and behind each dimension, the last one first.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ZeroPad1d((1, 0))(genesis.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 1., 2., 3.]])
    """

    _dims = 1


class ZeroPad2d(_ZeroPad):
    """More elements at the sides of an image: 0.

    The arguments are those of :class:`ZeroPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ZeroPad2d(1)(genesis.ones(2, 3, 4)).shape
    (2, 5, 6)
    """

    _dims = 2


class ZeroPad3d(_ZeroPad):
    """More elements at the sides of a volume: 0.

    The arguments are those of :class:`ZeroPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ZeroPad3d(1)(genesis.ones(2, 3, 4, 5)).shape
    (2, 5, 6, 7)
    """

    _dims = 3


class ReflectionPad1d(_ReflectionPad):
    """More elements at the sides of a sequence: what is near each side, reflected.

    Parameters
    ----------
    padding : int or sequence of int
        How many, on all sides, or before and behind each dimension, the last one first.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReflectionPad1d((1, 0))(genesis.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3.]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPad):
    """More elements at the sides of an image: what is near each side, reflected.

    The arguments are those of :class:`ReflectionPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReflectionPad2d(1)(genesis.ones(2, 3, 4)).shape
    (2, 5, 6)
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPad):
    """More elements at the sides of a volume: what is near each side, reflected.

    The arguments are those of :class:`ReflectionPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReflectionPad3d(1)(genesis.ones(2, 3, 4, 5)).shape
    (2, 5, 6, 7)
    """

    _dims = 3


class ReplicationPad1d(_ReplicationPad):
    """More elements at the sides of a sequence: the outermost elements.

    Parameters
    ----------
    padding : int or sequence of int
        How many, on all sides, or before and behind each dimension, the last one first.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReplicationPad1d((1, 0))(genesis.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3.]])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPad):
    """More elements at the sides of an image: the outermost elements.

    The arguments are those of :class:`ReplicationPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReplicationPad2d(1)(genesis.ones(2, 3, 4)).shape
    (2, 5, 6)
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPad):
    """More elements at the sides of a volume: the outermost elements.

    The arguments are those of :class:`ReplicationPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReplicationPad3d(1)(genesis.ones(2, 3, 4, 5)).shape
    (2, 5, 6, 7)
    """

    _dims = 3


class CircularPad1d(_CircularPad):
    """More elements at the sides of a sequence: the elements of the other side.

    Parameters
    ----------
    padding : int or sequence of int
        How many, on all sides, or before and behind each dimension, the last one first.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.CircularPad1d((1, 0))(genesis.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3.]])
    """

    _dims = 1


class CircularPad2d(_CircularPad):
    """More elements at the sides of an image: the elements of the other side.

    The arguments are those of :class:`CircularPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.CircularPad2d(1)(genesis.ones(2, 3, 4)).shape
    (2, 5, 6)
    """

    _dims = 2


class CircularPad3d(_CircularPad):
    """More elements at the sides of a volume: the elements of the other side.

    The arguments are those of :class:`CircularPad1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.CircularPad3d(1)(genesis.ones(2, 3, 4, 5)).shape
    (2, 5, 6, 7)
    """

    _dims = 3
