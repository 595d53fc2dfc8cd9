"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterable

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.linear import new_parameter
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_MODES = ("zeros", "reflect", "replicate", "circular")


def repeated(value: Any, count: int) -> tuple[Any, ...]:
    """A number for each dimension, from one for all or from several."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


class _Conv(Module):
    """What convolutions have in common."""

    _dims: int  # of the window
    _is_transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _MODES:
            raise ValueError(
                f"padding_mode must be one of {', '.join(_MODES)}, but got "
                f"padding_mode='{padding_mode}'"
            )
        count = self._dims
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = repeated(kernel_size, count)
        self.stride = repeated(stride, count)
        self.padding = padding if isinstance(padding, str) else repeated(padding, count)
        self.dilation = repeated(dilation, count)
        self.transposed = self._is_transposed
        self.output_padding = repeated(output_padding, count)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._sides()
        channels = (out_channels, in_channels // groups)
        if self._is_transposed:
            channels = (in_channels, out_channels // groups)
        self.weight = new_parameter(*channels, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter(
            "bias", new_parameter(out_channels, device=device, dtype=dtype) if bias else None
        )
        self.reset_parameters()

    def _sides(self) -> list[int]:
        """The padding before and behind each dimension, the last dimension first."""
        if not isinstance(self.padding, str):
            return [one for size in reversed(self.padding) for one in (size, size)]
        if self.padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {self.padding!r}, should be one of 'same', 'valid'"
            )
        if self.padding == "valid":
            return [0, 0] * self._dims
        if any(one != 1 for one in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        totals = [
            dilation * (size - 1)
            for dilation, size in zip(self.dilation, self.kernel_size, strict=True)
        ]
        return [one for total in reversed(totals) for one in (total // 2, total - total // 2)]

    def reset_parameters(self) -> None:
        """Set the parameters to first values: uniform between ``+-1/sqrt(fan_in)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def _padded(self, input: _C.Tensor) -> tuple[_C.Tensor, Any]:
        """The input, and the padding that is left to do."""
        if self.padding_mode == "zeros":
            return input, self.padding
        sides = self._reversed_padding_repeated_twice
        return F.pad(input, sides, mode=self.padding_mode), 0

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(
        self, input: _C.Tensor, weight: _C.Tensor, bias: _C.Tensor | None
    ) -> _C.Tensor:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """The arguments."""
        zeros, ones = (0,) * self._dims, (1,) * self._dims
        others = {
            "padding": (self.padding, zeros),
            "dilation": (self.dilation, ones),
            "output_padding": (self.output_padding, zeros),
            "groups": (self.groups, 1),
            "bias": (self.bias is not None, True),
            "padding_mode": (self.padding_mode, "zeros"),
        }
        parts = [f"{name}={one}" for name, (one, usual) in others.items() if one != usual]
        first = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        return ", ".join([first, f"stride={self.stride}", *parts])


class _Plain(_Conv):
    """A convolution that is not transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv1d(_Plain):
    """A convolution of sequences, (N, C, L) or (C, L).

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and of the output.
    kernel_size : int or sequence of int
        The window.
    stride : int or sequence of int
        From one window to the next.
    padding : int, sequence of int, or str
        What is added on both sides; ``"valid"``: nothing, ``"same"``: so that the size stays.
    dilation : int or sequence of int
        From one element of the window to the next.
    groups : int
        Groups of channels that have nothing to do with each other.
    bias : bool
        Whether there is one.
    padding_mode : str
        ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Conv1d(16, 33, 3, stride=2)(genesis.ones(20, 16, 50)).shape
    (20, 33, 24)
    """

    _dims = 1

    def _conv_forward(
        self, input: _C.Tensor, weight: _C.Tensor, bias: _C.Tensor | None
    ) -> _C.Tensor:
        input, padding = self._padded(input)
        return F.conv1d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Plain):
    """A convolution of images, (N, C, H, W) or (C, H, W).

    The arguments are those of :class:`Conv1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Conv2d(3, 8, (3, 5), padding=(1, 2))(genesis.ones(2, 3, 10, 12)).shape
    (2, 8, 10, 12)
    """

    _dims = 2

    def _conv_forward(
        self, input: _C.Tensor, weight: _C.Tensor, bias: _C.Tensor | None
    ) -> _C.Tensor:
        input, padding = self._padded(input)
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_Plain):
    """A convolution of volumes, (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of :class:`Conv1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Conv3d(2, 3, 3)(genesis.ones(1, 2, 5, 5, 5)).shape
    (1, 3, 3, 3, 3)
    """

    _dims = 3

    def _conv_forward(
        self, input: _C.Tensor, weight: _C.Tensor, bias: _C.Tensor | None
    ) -> _C.Tensor:
        input, padding = self._padded(input)
        return F.conv3d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _Transposed(_Conv):
    """A transposed convolution: the gradient of a convolution with respect to its input."""

    _is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self, input: _C.Tensor, output_size: Sequence[int] | None
    ) -> tuple[int, ...]:
        """What is added on one side of the output, so that it has a size."""
        if output_size is None:
            return self.output_padding
        count = self._dims
        start = 2 if input.ndim == count + 2 else 1
        sizes = list(output_size)
        sizes = sizes[start:] if len(sizes) == start + count else sizes
        if len(sizes) != count:
            raise ValueError(
                f"ConvTranspose{count}D: for {input.ndim}D input, output_size must have {count} "
                f"or {start + count} elements (got {len(output_size)})"
            )
        least = [
            (input.shape[start + d] - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(count)
        ]
        most = [size + stride - 1 for size, stride in zip(least, self.stride, strict=True)]
        if any(not low <= one <= high for low, one, high in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {least} to "
                f"{most} (for an input of {tuple(input.shape[start:])})"
            )
        return tuple(one - low for one, low in zip(sizes, least, strict=True))


class ConvTranspose1d(_Transposed):
    """The transpose of a convolution of sequences, (N, C, L) or (C, L).

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and of the output.
    kernel_size : int or sequence of int
        The window.
    stride : int or sequence of int
        From one window to the next, in the output.
    padding : int or sequence of int
        What is left away on both sides of the output.
    output_padding : int or sequence of int
        What is added on one side of the output.
    groups : int
        Groups of channels that have nothing to do with each other.
    bias : bool
        Whether there is one.
    dilation : int or sequence of int
        From one element of the window to the next.
    padding_mode : str
        ``"zeros"``.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ConvTranspose1d(4, 2, 3, stride=2)(genesis.ones(1, 4, 5)).shape
    (1, 2, 11)
    """

    _dims = 1

    def forward(self, input: _C.Tensor, output_size: Sequence[int] | None = None) -> _C.Tensor:
        """Compute the output, of a size among those that are possible."""
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_Transposed):
    """The transpose of a convolution of images, (N, C, H, W) or (C, H, W).

    The arguments are those of :class:`ConvTranspose1d`.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)
    >>> layer(genesis.ones(1, 4, 5, 5)).shape, layer(genesis.ones(1, 4, 5, 5), (10, 10)).shape
    ((1, 2, 9, 9), (1, 2, 10, 10))
    """

    _dims = 2

    def forward(self, input: _C.Tensor, output_size: Sequence[int] | None = None) -> _C.Tensor:
        """Compute the output, of a size among those that are possible."""
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose3d(_Transposed):
    """The transpose of a convolution of volumes, (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of :class:`ConvTranspose1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ConvTranspose3d(4, 2, 3)(genesis.ones(1, 4, 2, 2, 2)).shape
    (1, 2, 4, 4, 4)
    """

    _dims = 3

    def forward(self, input: _C.Tensor, output_size: Sequence[int] | None = None) -> _C.Tensor:
        """Compute the output, of a size among those that are possible."""
        return F.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )
