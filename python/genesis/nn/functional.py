"""Functions of neural networks. Most are rows of the table of operations, computed in C."""

from __future__ import annotations

import genesis
from genesis import (
    cdist,
    celu,
    cosine_similarity,
    elu,
    gelu,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    one_hot,
    pad,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from genesis._nn import *  # noqa: F403
from genesis._nn import __all__ as _rows
from genesis.nn._attention import multi_head_attention_forward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from genesis import Tensor

__all__ = [  # noqa: PLE0604
    *_rows,
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "cdist",
    "celu",
    "cosine_similarity",
    "elu",
    "gelu",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "mish",
    "multi_head_attention_forward",
    "one_hot",
    "pad",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "tanh",
    "triplet_margin_with_distance_loss",
    "upsample_bilinear",
    "upsample_nearest",
]


def _implicit_dim(name: str, x: Tensor, stacklevel: int) -> int:
    """The dimension of softmax() and its like that is not given: PyTorch's old choice."""
    import warnings

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if x.dim() in (0, 1, 3) else 1


def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: genesis.dtype | None = None,
) -> Tensor:
    """``exp(input)`` over the sum of it along a dimension.

    Parameters
    ----------
    input : Tensor
        The elements.
    dim : int, optional
        The dimension; without one there is a warning.
    dtype : dtype, optional
        What elements are converted to first.

    Returns
    -------
    Tensor
        Elements from 0 to 1, which sum up to 1.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.functional.softmax(genesis.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input, _stacklevel)
    return genesis.softmax(input, dim, dtype)


def softmin(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: genesis.dtype | None = None,
) -> Tensor:
    """``softmax(-input)``: see :func:`softmax`.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.functional.softmin(genesis.tensor([0.0, 1000.0]), dim=0)
    tensor([1., 0.])
    """
    if dim is None:
        dim = _implicit_dim("softmin", input, _stacklevel)
    return genesis.softmax(-input, dim, dtype)


def log_softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: genesis.dtype | None = None,
) -> Tensor:
    """The logarithm of :func:`softmax`, computed so that nothing underflows.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.functional.log_softmax(genesis.tensor([0.0, 100.0]), dim=0)
    tensor([-100.,    0.])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input, _stacklevel)
    return genesis.log_softmax(input, dim, dtype)


# ---- maxima with the places of the elements ----


def _with_indices(name: str) -> Callable[..., tuple[Tensor, Tensor]]:
    """The function `name`, which gives the places of the elements as well."""
    function = globals()[name]

    def call(*args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        options["return_indices"] = True
        return function(*args, **options)

    call.__name__ = call.__qualname__ = f"{name}_with_indices"
    call.__doc__ = f":func:`{name}` with ``return_indices=True``."
    return call


adaptive_max_pool1d_with_indices = _with_indices("adaptive_max_pool1d")
adaptive_max_pool2d_with_indices = _with_indices("adaptive_max_pool2d")
adaptive_max_pool3d_with_indices = _with_indices("adaptive_max_pool3d")
max_pool1d_with_indices = _with_indices("max_pool1d")
max_pool2d_with_indices = _with_indices("max_pool2d")
max_pool3d_with_indices = _with_indices("max_pool3d")


# ---- interpolate() by its old names ----


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """``interpolate(mode="nearest")``.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([[[0.0, 1.0]]])
    >>> genesis.nn.functional.upsample_nearest(x, scale_factor=2).tolist()
    [[[0.0, 0.0, 1.0, 1.0]]]
    """
    return genesis.nn.functional.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """``interpolate(mode="bilinear", align_corners=True)``.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([[[[0.0, 1.0]]]])
    >>> genesis.nn.functional.upsample_bilinear(x, (1, 3)).tolist()
    [[[[0.0, 0.5, 1.0]]]]
    """
    return genesis.nn.functional.interpolate(
        input, size, scale_factor, mode="bilinear", align_corners=True
    )


# ---- losses ----


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin + distance(anchor, positive) - distance(anchor, negative))``.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        The three, with as many dimensions.
    distance_function : callable, optional
        The distances of two tensors; None: ``pairwise_distance()``.
    margin : float
        How far apart is far enough.
    swap : bool
        Whether the positive's distance to the negative counts where it is less.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"``.

    Examples
    --------
    >>> import genesis
    >>> zero, one = genesis.zeros(1, 2), genesis.ones(1, 2)
    >>> genesis.nn.functional.triplet_margin_with_distance_loss(
    ...     zero, zero, one, distance_function=lambda a, b: (a - b).abs().sum(1), margin=3.0
    ... )
    tensor(1.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    distance = distance_function or genesis.nn.functional.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = genesis.minimum(far, distance(positive, negative))
    loss = (margin + near - far).clamp(min=0)
    return loss.sum() if reduction == "sum" else loss.mean() if reduction == "mean" else loss
