"""First values of parameters. Each function writes to a tensor in place, and gives it."""

from __future__ import annotations

import functools
import math
import threading

from genesis import _C
from genesis._grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Writer = TypeVar("_Writer", bound=Callable[..., Any])

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3 / 4,
}


class _Skipping(threading.local):
    """Whether functions leave tensors as they are: in skip_init()."""

    is_on = False


_skipping = _Skipping()


def _writes(function: _Writer) -> _Writer:
    """Make a function that writes to a tensor one that can be told not to."""

    @functools.wraps(function)
    def call(tensor: _C.Tensor, *args: Any, **kwargs: Any) -> Any:
        return tensor if _skipping.is_on else function(tensor, *args, **kwargs)

    return call  # type: ignore[return-value]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor of the standard deviation for a function that follows.

    Parameters
    ----------
    nonlinearity : str
        Its name in nn.functional.
    param : float, optional
        The slope of ``"leaky_relu"``; None: 0.01.

    Examples
    --------
    >>> from genesis import nn
    >>> nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


@_writes
def uniform_(tensor: _C.Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with numbers from `a` to before `b`, all as likely.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.init.uniform_(genesis.empty(2, 3), -1, 1).shape
    (2, 3)
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_writes
def normal_(tensor: _C.Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill with normally distributed numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


@_writes
def trunc_normal_(
    tensor: _C.Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Fill with normally distributed numbers, of those between `a` and `b`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.init.trunc_normal_(genesis.empty(1000), a=-1.0, b=1.0).abs().max().item() <= 1
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        import warnings

        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    # Uniform numbers between the values of erf() at the bounds: erfinv() makes them normal.
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2.0))) for bound in (a, b))
    dtype = _C.float32 if high - low > 0.1 else _C.float64  # a tail needs more digits
    with no_grad():
        made = _C.empty_like(tensor, dtype=dtype).uniform_(low, high, generator=generator)
        made = made.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)
        return tensor.copy_(made)


@_writes
def constant_(tensor: _C.Tensor, val: float) -> Any:
    """Fill with one number."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: _C.Tensor) -> Any:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: _C.Tensor) -> Any:
    """Fill with 0."""
    return constant_(tensor, 0.0)


@_writes
def eye_(tensor: _C.Tensor) -> Any:
    """Fill a matrix with 1 on its diagonal, and 0 elsewhere.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.init.eye_(genesis.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(_C.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@_writes
def dirac_(tensor: _C.Tensor, groups: int = 1) -> Any:
    """Fill the weight of a convolution so that it gives its input, as far as it has channels.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.init.dirac_(genesis.empty(2, 1, 3), groups=2)
    tensor([[[0., 1., 0.]],
    <BLANKLINE>
            [[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    size = tensor.shape[0] // groups
    channels = list(range(min(size, tensor.shape[1])))
    rows = [group * size + channel for group in range(groups) for channel in channels]
    with no_grad():
        tensor.zero_()
        if rows:
            tensor[(rows, channels * groups, *(one // 2 for one in tensor.shape[2:]))] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: _C.Tensor) -> tuple[int, int]:
    """How many inputs an output depends on, and how many outputs on an input."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: _C.Tensor, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill with uniform numbers whose variance is ``2 * gain**2 / (fan_in + fan_out)``.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.init.xavier_uniform_(genesis.empty(3, 3)).abs().max().item() <= 1
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: _C.Tensor, gain: float = 1.0, generator: Any = None) -> Any:
    """The same with normally distributed numbers."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def _deviation(tensor: _C.Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation; None for a tensor without elements."""
    if 0 in tensor.shape:
        import warnings

        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    fan = _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: _C.Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Fill with uniform numbers whose variance is ``gain**2 / fan``.

    Parameters
    ----------
    tensor : Tensor
        What is filled.
    a : float
        The slope of a leaky ReLU that follows.
    mode : str
        ``"fan_in"`` keeps the variance of the forward pass, ``"fan_out"`` of the backward pass.
    nonlinearity : str
        The function that follows, for :func:`calculate_gain`.
    generator : Generator, optional
        Where the numbers come from.
    """
    std = _deviation(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    return uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(
    tensor: _C.Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """The same as :func:`kaiming_uniform_` with normally distributed numbers."""
    std = _deviation(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


@_writes
def orthogonal_(tensor: _C.Tensor, gain: float = 1, generator: Any = None) -> Any:
    """Fill with a matrix whose rows, or columns if these are fewer, are orthogonal.

    Dimensions beyond the second are taken together with it.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    from genesis import linalg

    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    dtype = tensor.dtype if tensor.dtype.itemsize >= 4 else _C.float32
    with no_grad():
        made = _C.empty((max(rows, columns), min(rows, columns)), dtype=dtype, device=tensor.device)
        q, r = linalg.qr(made.normal_(0, 1, generator=generator))
        q = q * r.diagonal().sign()  # so that all orthogonal matrices are as likely
        return tensor.copy_((q if rows >= columns else q.mT).reshape(tensor.shape)).mul_(gain)


@_writes
def sparse_(tensor: _C.Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill a matrix with normally distributed numbers, and a part of each column with 0.

    Examples
    --------
    >>> import genesis
    >>> (genesis.nn.init.sparse_(genesis.empty(10, 3), sparsity=0.3) == 0).sum(dim=0)
    tensor([3, 3, 3])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(sparsity * tensor.shape[0])
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        order = _C.empty_like(tensor, dtype=_C.float32).uniform_(generator=generator)
        places = order.argsort(dim=0).argsort(dim=0)
        return tensor.masked_fill_(places < zeros, 0)


# ---- names without the underscore, as they once were ----


def _old(function: Any) -> Any:
    name = function.__name__

    def call(*args: Any, **kwargs: Any) -> Any:
        import warnings

        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name[:-1]
    call.__doc__ = f"The old name of :func:`{name}`."
    return call


uniform, normal, constant = _old(uniform_), _old(normal_), _old(constant_)
eye, dirac, orthogonal, sparse = _old(eye_), _old(dirac_), _old(orthogonal_), _old(sparse_)
xavier_uniform, xavier_normal = _old(xavier_uniform_), _old(xavier_normal_)
kaiming_uniform, kaiming_normal = _old(kaiming_uniform_), _old(kaiming_normal_)
