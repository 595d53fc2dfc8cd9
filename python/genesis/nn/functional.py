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
    from collections.abc import Callable

    from genesis import Tensor

__all__ = [  # noqa: PLE0604
    *_rows,
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
    """What the negative lacks to be further from the anchor than the positive by the margin.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of one shape.
    distance_function : callable, optional
        Gives the distances of two tensors; None: :func:`pairwise_distance`.
    margin : float
        How far apart is far enough.
    swap : bool
        Whether the positive's distance to the negative counts where it is less.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the losses.

    Examples
    --------
    >>> import genesis
    >>> zero, one = genesis.zeros(1, 2), genesis.ones(1, 2)
    >>> genesis.nn.functional.triplet_margin_with_distance_loss(zero, zero, one, margin=2.0)
    tensor(0.5858)
    """
    if margin <= 0:
        raise ValueError(
            f"triplet_margin_with_distance_loss: margin is greater than 0, not {margin}"
        )
    distance = distance_function or pairwise_distance  # noqa: F405
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = genesis.minimum(far, distance(positive, negative))
    # The loss of three vectors is the same formula of two distances.
    return margin_ranking_loss(  # noqa: F405
        far, near, genesis.ones_like(far), margin=margin, reduction=reduction
    )
