"""Images of other sizes: upsampling, shuffled pixels and channels, windows as columns."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Upsample(Module):
    """Sequences, images or volumes of another size.

    Parameters
    ----------
    size : int or sequence of int, optional
        The size of the output,
    scale_factor : float or sequence of float, optional
        or by which that of the input is multiplied.
    mode : str
        ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"`` or ``"trilinear"``.
    align_corners : bool, optional
        Whether the outermost elements of input and output are at the same places.
    recompute_scale_factor : bool, optional
        Whether the factor is computed again from the sizes.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Upsample(scale_factor=2)(genesis.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None = None
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor = tuple(float(one) for one in scale_factor)
        elif scale_factor:
            self.scale_factor = float(scale_factor)  # type: ignore[arg-type]
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images of another size, by the nearest pixels.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.UpsamplingNearest2d(scale_factor=2)(genesis.ones(1, 1, 2, 3)).shape
    (1, 1, 4, 6)
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images of another size, by bilinear interpolation between corners that stay.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.UpsamplingBilinear2d(scale_factor=2)(genesis.ones(1, 1, 2, 3)).shape
    (1, 1, 4, 6)
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels become pixels: (C * r**2, H, W) becomes (C, H * r, W * r).

    Parameters
    ----------
    upscale_factor : int
        r.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.PixelShuffle(2)(genesis.arange(4.0).view(4, 1, 1))
    tensor([[[0., 1.],
             [2., 3.]]])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels become channels: (C, H * r, W * r) becomes (C * r**2, H, W).

    Parameters
    ----------
    downscale_factor : int
        r.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.PixelUnshuffle(2)(genesis.arange(4.0).view(1, 2, 2)).flatten()
    tensor([0., 1., 2., 3.])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels in another order: the first of each group, then the second ones, and so on.

    Parameters
    ----------
    groups : int
        The number of groups.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ChannelShuffle(2)(genesis.arange(4.0).view(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"groups={self.groups}"


class Unfold(Module):
    """The windows of images as columns: (N, C, H, W) becomes (N, C * window, windows).

    Parameters
    ----------
    kernel_size : int or pair of int
        The window.
    dilation : int or pair of int
        From one element of the window to the next.
    padding : int or pair of int
        Zeros that are added on both sides.
    stride : int or pair of int
        From one window to the next.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Unfold(2)(genesis.ones(1, 3, 4, 5)).shape
    (1, 12, 12)
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Fold(Module):
    """The transpose of :class:`Unfold`: columns are added up to images.

    Parameters
    ----------
    output_size : int or pair of int
        The size of the images.
    kernel_size, dilation, padding, stride :
        As those of :class:`Unfold`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Fold((4, 5), 2)(genesis.ones(1, 12, 12)).shape
    (1, 3, 4, 5)
    """

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )
