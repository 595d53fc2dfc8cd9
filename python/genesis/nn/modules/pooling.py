"""Pooling."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.conv import repeated
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPool(Module):
    """What they have in common."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _call(self, function: Any, input: _C.Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of sequences, (N, C, L) or (C, L).

    Parameters
    ----------
    kernel_size : int or sequence of int
        The window.
    stride : int or sequence of int, optional
        From one window to the next; None: the size of the window.
    padding : int or sequence of int
        What is added on both sides, and never the largest.
    dilation : int or sequence of int
        From one element of the window to the next.
    return_indices : bool
        Whether the places of these elements are given, too.
    ceil_mode : bool
        Whether a window may reach beyond the end.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.MaxPool1d(2)(genesis.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[5., 3.]])
    """

    def forward(self, input: _C.Tensor) -> Any:
        """Compute the output."""
        return self._call(F.max_pool1d, input)


class MaxPool2d(_MaxPool):
    """The largest element of each window of images, (N, C, H, W) or (C, H, W).

    The arguments are those of :class:`MaxPool1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.MaxPool2d(2)(genesis.arange(4.0).view(1, 2, 2))
    tensor([[[3.]]])
    """

    def forward(self, input: _C.Tensor) -> Any:
        """Compute the output."""
        return self._call(F.max_pool2d, input)


class MaxPool3d(_MaxPool):
    """The largest element of each window of volumes, (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of :class:`MaxPool1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.MaxPool3d(2)(genesis.ones(1, 4, 4, 4)).shape
    (1, 2, 2, 2)
    """

    def forward(self, input: _C.Tensor) -> Any:
        """Compute the output."""
        return self._call(F.max_pool3d, input)


class AvgPool1d(Module):
    """The mean of each window of sequences, (N, C, L) or (C, L).

    Parameters
    ----------
    kernel_size : int or sequence of int
        The window.
    stride : int or sequence of int, optional
        From one window to the next; None: the size of the window.
    padding : int or sequence of int
        Zeros that are added on both sides.
    ceil_mode : bool
        Whether a window may reach beyond the end.
    count_include_pad : bool
        Whether the mean is over these zeros, too.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AvgPool1d(2)(genesis.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[3.0000, 2.5000]])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, 1)
        self.stride = repeated(kernel_size if stride is None else stride, 1)
        self.padding = repeated(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """What those of images and volumes have in common."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _call(self, function: Any, input: _C.Tensor) -> _C.Tensor:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of images, (N, C, H, W) or (C, H, W).

    The arguments are those of :class:`AvgPool1d`, and `divisor_override`, by which the sums are
    divided instead of their numbers of elements.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AvgPool2d(2)(genesis.arange(4.0).view(1, 2, 2))
    tensor([[[1.5000]]])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return self._call(F.avg_pool2d, input)


class AvgPool3d(_AvgPool):
    """The mean of each window of volumes, (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of :class:`AvgPool2d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AvgPool3d(2)(genesis.ones(1, 4, 4, 4)).shape
    (1, 2, 2, 2)
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return self._call(F.avg_pool3d, input)


class _Adaptive(Module):
    """What means and maxima of as many windows as the output has elements have in common."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The arguments."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of windows that cover a sequence: as many as are asked for.

    Parameters
    ----------
    output_size : int
        The size of the output.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool1d(2)(genesis.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[3.0000, 2.5000]])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """Means of windows that cover an image: as many as are asked for.

    Parameters
    ----------
    output_size : int, or pair of int or None
        The size of the output; None: that of the input.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool2d((1, None))(genesis.ones(2, 3, 5, 7)).shape
    (2, 3, 1, 7)
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_Adaptive):
    """Means of windows that cover a volume: as many as are asked for.

    Parameters
    ----------
    output_size : int, or three of int or None
        The size of the output; None: that of the input.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool3d(2)(genesis.ones(3, 5, 7, 4)).shape
    (3, 2, 2, 2)
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMax(_Adaptive):
    """What the maxima have in common."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest elements of windows that cover a sequence: as many as are asked for.

    Parameters
    ----------
    output_size : int
        The size of the output.
    return_indices : bool
        Whether the places of these elements are given, too.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool1d(2)(genesis.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[5., 3.]])
    """

    def forward(self, input: _C.Tensor) -> Any:
        """Compute the output."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest elements of windows that cover an image: as many as are asked for.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool2d(2)(genesis.ones(2, 3, 5, 7)).shape
    (2, 3, 2, 2)
    """

    def forward(self, input: _C.Tensor) -> Any:
        """Compute the output."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest elements of windows that cover a volume: as many as are asked for.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool3d(2)(genesis.ones(3, 5, 7, 4)).shape
    (3, 2, 2, 2)
    """

    def forward(self, input: _C.Tensor) -> Any:
        """Compute the output."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _MaxUnpool(Module):
    """What the inverses of max pooling have in common."""

    _dims: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self._dims)
        self.stride = repeated(kernel_size if stride is None else stride, self._dims)
        self.padding = repeated(padding, self._dims)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Elements at the places that max pooling of sequences has taken them from, and 0 elsewhere.

    Parameters
    ----------
    kernel_size, stride, padding :
        Those of the pooling.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([[1.0, 5.0, 3.0, 2.0]])
    >>> genesis.nn.MaxUnpool1d(2)(*genesis.nn.MaxPool1d(2, return_indices=True)(x))
    tensor([[0., 5., 3., 0.]])
    """

    _dims = 1

    def forward(
        self, input: _C.Tensor, indices: _C.Tensor, output_size: Sequence[int] | None = None
    ) -> _C.Tensor:
        """Compute the output."""
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpool):
    """Elements at the places that max pooling of images has taken them from, and 0 elsewhere.

    The arguments are those of :class:`MaxUnpool1d`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.arange(4.0).view(1, 2, 2)
    >>> genesis.nn.MaxUnpool2d(2)(*genesis.nn.MaxPool2d(2, return_indices=True)(x))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    _dims = 2

    def forward(
        self, input: _C.Tensor, indices: _C.Tensor, output_size: Sequence[int] | None = None
    ) -> _C.Tensor:
        """Compute the output."""
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpool):
    """Elements at the places that max pooling of volumes has taken them from, and 0 elsewhere.

    The arguments are those of :class:`MaxUnpool1d`.

    Examples
    --------
    >>> import genesis
    >>> pooled = genesis.nn.MaxPool3d(2, return_indices=True)(genesis.ones(1, 4, 4, 4))
    >>> genesis.nn.MaxUnpool3d(2)(*pooled).shape
    (1, 4, 4, 4)
    """

    _dims = 3

    def forward(
        self, input: _C.Tensor, indices: _C.Tensor, output_size: Sequence[int] | None = None
    ) -> _C.Tensor:
        """Compute the output."""
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _LPPool(Module):
    """What pooling by norms has in common."""

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _call(self, function: Any, input: _C.Tensor) -> _C.Tensor:
        norm = float(self.norm_type)
        return function(input, norm, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The norm of each window of sequences, (N, C, L) or (C, L).

    Parameters
    ----------
    norm_type : float
        Which norm.
    kernel_size : int or sequence of int
        The window.
    stride : int or sequence of int, optional
        From one window to the next; None: the size of the window.
    ceil_mode : bool
        Whether a window may reach beyond the end.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LPPool1d(2, 2)(genesis.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return self._call(F.lp_pool1d, input)


class LPPool2d(_LPPool):
    """The norm of each window of images, (N, C, H, W) or (C, H, W).

    The arguments are those of :class:`LPPool1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LPPool2d(2, 2)(genesis.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return self._call(F.lp_pool2d, input)


class LPPool3d(_LPPool):
    """The norm of each window of volumes, (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of :class:`LPPool1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LPPool3d(1, 2)(genesis.ones(1, 1, 2, 2, 2))
    tensor([[[[[8.]]]]])
    """

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return self._call(F.lp_pool3d, input)
