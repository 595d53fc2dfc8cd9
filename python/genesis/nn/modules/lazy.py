"""Modules that find out their number of features or channels at the first call."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn.modules import batchnorm, conv
from genesis.nn.modules.linear import Linear
from genesis.nn.modules.module import Module
from genesis.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LazyModuleMixin",
]


class LazyModuleMixin(Module):
    """What lazy modules have in common; a class of your own has it before its other bases.

    ``initialize_parameters()`` gets the arguments of the first call. After it the module is one of
    the class `cls_to_become`, unless that is None.
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(
            type(self)._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes, by the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or a buffer has no shape yet."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _infer_parameters(self, args: Any, kwargs: Any) -> None:
        with no_grad():
            self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._initialize_hook.remove()
        del self._initialize_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, one in self._persistent_tensors().items():
            if is_lazy(one):
                destination[prefix + name] = one

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name, one in self._persistent_tensors().items():
            given = state_dict.get(prefix + name)
            if is_lazy(one) and given is not None and not is_lazy(given):
                one.materialize(given.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` whose `in_features` is the last size of the first input.

    Parameters
    ----------
    out_features : int
        Size of the last dimension of the output.
    bias : bool
        Whether there is one.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.LazyLinear(3)
    >>> layer(genesis.ones(2, 5)).shape
    (2, 3)
    >>> layer
    Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """As in Linear, where the parameters have their shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: _C.Tensor) -> None:
        """Give the parameters their shapes."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        self.in_features = self.weight.shape[1]


# ---- convolutions ----


class _LazyConv(LazyModuleMixin):
    """What lazy convolutions have in common."""

    _dims: int
    groups: int
    transposed: bool
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias: Any = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """As in the convolution, where the parameters have their shapes."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: _C.Tensor) -> None:
        """Give the parameters their shapes."""
        if self.has_uninitialized_params():
            if input.dim() not in (self._dims + 1, self._dims + 2):
                raise RuntimeError(
                    f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input "
                    f"to {type(self).__name__}, but got input of size: {input.shape}"
                )
            channels = input.shape[-self._dims - 1]
            if channels % self.groups != 0:
                raise ValueError("in_channels must be divisible by groups")
            self.in_channels = channels
            parts = (self.out_channels, channels // self.groups)
            if self.transposed:
                parts = (channels, self.out_channels // self.groups)
            self.weight.materialize((*parts, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        shape = self.weight.shape
        self.in_channels = shape[0] if self.transposed else shape[1] * self.groups


class LazyConv1d(_LazyConv, conv.Conv1d):
    """A :class:`Conv1d` whose `in_channels` are those of the first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        As of :class:`Conv1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LazyConv1d(4, 2)(genesis.ones(1, 3, 5)).shape
    (1, 4, 4)
    """

    cls_to_become = conv.Conv1d

    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv2d(_LazyConv, conv.Conv2d):
    """A :class:`Conv2d` whose `in_channels` are those of the first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        As of :class:`Conv2d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LazyConv2d(4, 2)(genesis.ones(1, 3, 5, 5)).shape
    (1, 4, 4, 4)
    """

    cls_to_become = conv.Conv2d

    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv3d(_LazyConv, conv.Conv3d):
    """A :class:`Conv3d` whose `in_channels` are those of the first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        As of :class:`Conv3d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LazyConv3d(4, 2)(genesis.ones(1, 3, 5, 5, 5)).shape
    (1, 4, 4, 4, 4)
    """

    cls_to_become = conv.Conv3d

    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConv, conv.ConvTranspose1d):
    """A :class:`ConvTranspose1d` whose `in_channels` are those of the first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode
        As of :class:`ConvTranspose1d`.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LazyConvTranspose1d(4, 2)(genesis.ones(1, 3, 5)).shape
    (1, 4, 6)
    """

    cls_to_become = conv.ConvTranspose1d

    def __init__(
        self,
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
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
        )  # fmt: skip
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConvTranspose2d(_LazyConv, conv.ConvTranspose2d):
    """A :class:`ConvTranspose2d` whose `in_channels` are those of the first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode
        As of :class:`ConvTranspose2d`.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LazyConvTranspose2d(4, 2)(genesis.ones(1, 3, 5, 5)).shape
    (1, 4, 6, 6)
    """

    cls_to_become = conv.ConvTranspose2d

    def __init__(
        self,
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
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
        )  # fmt: skip
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConvTranspose3d(_LazyConv, conv.ConvTranspose3d):
    """A :class:`ConvTranspose3d` whose `in_channels` are those of the first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode
        As of :class:`ConvTranspose3d`.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LazyConvTranspose3d(4, 2)(genesis.ones(1, 3, 5, 5, 5)).shape
    (1, 4, 6, 6, 6)
    """

    cls_to_become = conv.ConvTranspose3d

    def __init__(
        self,
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
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
        )  # fmt: skip
        self._make_lazy(out_channels, bias, device, dtype)


# ---- norms ----


class _LazyNorm(LazyModuleMixin):
    """What lazy norms have in common."""

    num_features: int
    affine: bool
    track_running_stats: bool

    def _make_lazy(
        self, affine: bool, track_running_stats: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        if affine and bias:
            self.bias: Any = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = _C.zeros((), device=device, dtype=_C.int64)

    def reset_parameters(self) -> None:
        """As in the norm, where the parameters have their shapes."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: _C.Tensor) -> None:
        """Give the parameters their shapes."""
        tensors = (*self._parameters.values(), *self._buffers.values())
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for one in tensors:
                if is_lazy(one):
                    one.materialize((self.num_features,))
            self.reset_parameters()
        self.num_features = next(
            (one.shape[0] for one in tensors if one is not None and one.dim() == 1), input.shape[1]
        )


class LazyBatchNorm1d(_LazyNorm, batchnorm.BatchNorm1d):
    """A :class:`BatchNorm1d` whose `num_features` are the channels of the first input.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias
        As of :class:`BatchNorm1d`.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.LazyBatchNorm1d()
    >>> layer(genesis.ones(2, 3, 2)).shape
    (2, 3, 2)
    >>> layer.num_features
    3
    """

    cls_to_become = batchnorm.BatchNorm1d

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self._make_lazy(affine, track_running_stats, bias, device, dtype)


class LazyBatchNorm2d(_LazyNorm, batchnorm.BatchNorm2d):
    """A :class:`BatchNorm2d` whose `num_features` are the channels of the first input.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias
        As of :class:`BatchNorm2d`.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.LazyBatchNorm2d()
    >>> layer(genesis.ones(2, 3, 2, 2)).shape
    (2, 3, 2, 2)
    >>> layer.num_features
    3
    """

    cls_to_become = batchnorm.BatchNorm2d

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self._make_lazy(affine, track_running_stats, bias, device, dtype)


class LazyBatchNorm3d(_LazyNorm, batchnorm.BatchNorm3d):
    """A :class:`BatchNorm3d` whose `num_features` are the channels of the first input.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias
        As of :class:`BatchNorm3d`.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.LazyBatchNorm3d()
    >>> layer(genesis.ones(2, 3, 2, 2, 2)).shape
    (2, 3, 2, 2, 2)
    >>> layer.num_features
    3
    """

    cls_to_become = batchnorm.BatchNorm3d

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self._make_lazy(affine, track_running_stats, bias, device, dtype)


class LazyInstanceNorm1d(_LazyNorm, batchnorm.InstanceNorm1d):
    """A :class:`InstanceNorm1d` whose `num_features` are the channels of the first input.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias
        As of :class:`InstanceNorm1d`.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.LazyInstanceNorm1d()
    >>> layer(genesis.ones(2, 3, 2)).shape
    (2, 3, 2)
    >>> layer.num_features
    3
    """

    cls_to_become = batchnorm.InstanceNorm1d

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self._make_lazy(affine, track_running_stats, bias, device, dtype)


class LazyInstanceNorm2d(_LazyNorm, batchnorm.InstanceNorm2d):
    """A :class:`InstanceNorm2d` whose `num_features` are the channels of the first input.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias
        As of :class:`InstanceNorm2d`.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.LazyInstanceNorm2d()
    >>> layer(genesis.ones(2, 3, 2, 2)).shape
    (2, 3, 2, 2)
    >>> layer.num_features
    3
    """

    cls_to_become = batchnorm.InstanceNorm2d

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self._make_lazy(affine, track_running_stats, bias, device, dtype)


class LazyInstanceNorm3d(_LazyNorm, batchnorm.InstanceNorm3d):
    """A :class:`InstanceNorm3d` whose `num_features` are the channels of the first input.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias
        As of :class:`InstanceNorm3d`.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.LazyInstanceNorm3d()
    >>> layer(genesis.ones(2, 3, 2, 2, 2)).shape
    (2, 3, 2, 2, 2)
    >>> layer.num_features
    3
    """

    cls_to_become = batchnorm.InstanceNorm3d

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self._make_lazy(affine, track_running_stats, bias, device, dtype)
