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
