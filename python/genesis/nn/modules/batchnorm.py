"""Norms over a batch, and over each of its items."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.linear import new_parameter
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
]


class _Norm(Module):
    """What norms by channel have in common: parameters, and statistics of what they have seen."""

    _version = 2
    _dims: tuple[int, int]  # the numbers of dimensions that an input may have

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, is_there in (("weight", affine), ("bias", affine and bias)):
            made = new_parameter(num_features, device=device, dtype=dtype) if is_there else None
            self.register_parameter(name, made)
        mean = var = count = None
        if track_running_stats:
            mean = _C.zeros(num_features, device=device, dtype=dtype)
            var = _C.ones(num_features, device=device, dtype=dtype)
            count = _C.zeros((), device=device, dtype=_C.int64)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics: mean 0 and variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0, and forget the statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: _C.Tensor) -> None:
        if input.ndim not in self._dims:
            dims = " or ".join(f"{one}D" for one in dict.fromkeys(self._dims))
            raise ValueError(f"expected {dims} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        *rest: Any,
    ) -> None:
        """As in Module; states of the first version have no count of batches."""
        key = prefix + "num_batches_tracked"
        is_first = local_metadata.get("version") is None or local_metadata["version"] < 2
        if is_first and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_Norm):
    """A norm over a batch.

    Parameters
    ----------
    num_features : int
        The number of channels, dimension 1.
    eps : float
        What is added to the variance.
    momentum : float, optional
        The weight of a batch in the running statistics; None: all batches have the same.
    affine : bool
        Whether there is a weight.
    track_running_stats : bool
        Whether there are running statistics, which are used in evaluation.
    device, dtype : optional
        Of parameters and statistics.
    bias : bool
        Whether there is a bias beside the weight.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output; in training the running statistics change."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        is_training = self.training
        if is_training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        mean, var = self.running_mean, self.running_var
        is_batch = is_training or (mean is None and var is None)
        if is_training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, is_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Channels with mean 0 and variance 1 over a batch, (N, C) or (N, C, L).

    Parameters
    ----------
    num_features : int
        The number of channels, dimension 1.
    eps : float
        What is added to the variance.
    momentum : float, optional
        The weight of a batch in the running statistics; None: all batches have the same.
    affine : bool
        Whether there is a weight.
    track_running_stats : bool
        Whether there are running statistics, which are used in evaluation.
    device, dtype : optional
        Of parameters and statistics.
    bias : bool
        Whether there is a bias beside the weight.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.BatchNorm1d(1, eps=0.0)
    >>> layer(genesis.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.],
            [ 1.]])
    >>> layer.running_mean
    tensor([0.2000])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Channels with mean 0 and variance 1 over a batch of images, (N, C, H, W).

    The arguments are those of :class:`BatchNorm1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.BatchNorm2d(3)(genesis.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _dims = (4, 4)


class BatchNorm3d(_BatchNorm):
    """Channels with mean 0 and variance 1 over a batch of volumes, (N, C, D, H, W).

    The arguments are those of :class:`BatchNorm1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.BatchNorm3d(3)(genesis.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _dims = (5, 5)


class _InstanceNorm(_Norm):
    """A norm over each item of a batch."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        self._check_input_dim(input)
        without_batch = self._dims[0]
        dim = input.ndim - without_batch
        if input.shape[dim] != self.num_features:
            self._refuse(dim, input.shape[dim])
        if input.ndim == without_batch:
            return self._normed(input.unsqueeze(0)).squeeze(0)
        return self._normed(input)

    def _refuse(self, dim: int, size: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), but got: {size}."
            )
        import warnings

        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning "
            "by not passing in num_features, which is not used because affine=False",
            stacklevel=4,
        )

    def _normed(self, input: _C.Tensor) -> _C.Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Channels with mean 0 and variance 1 in each item, (N, C, L) or (C, L).

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float
        What is added to the variance.
    momentum : float
        The weight of a batch in the running statistics.
    affine : bool
        Whether there is a weight.
    track_running_stats : bool
        Whether there are running statistics, which are used in evaluation.
    device, dtype : optional
        Of parameters and statistics.
    bias : bool
        Whether there is a bias beside the weight.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.InstanceNorm1d(1, eps=0.0)(genesis.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Channels with mean 0 and variance 1 in each image, (N, C, H, W) or (C, H, W).

    The arguments are those of :class:`InstanceNorm1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.InstanceNorm2d(3)(genesis.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Channels with mean 0 and variance 1 in each volume, (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of :class:`InstanceNorm1d`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.InstanceNorm3d(3)(genesis.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _dims = (4, 5)
