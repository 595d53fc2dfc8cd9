"""Tensors put together or turned."""

from __future__ import annotations

from genesis import _C
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "column_stack",
    "dstack",
    "fliplr",
    "flipud",
    "hstack",
    "rot90",
    "vstack",
]

# ---- put together, turned ----


def hstack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Tensors side by side: along the second dimension, vectors along the first.

    Examples
    --------
    >>> import genesis
    >>> genesis.hstack([genesis.tensor([1]), genesis.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    from genesis import atleast_1d, cat
    from genesis._tensor_functions import several

    parts = [atleast_1d(one) for one in several("hstack", tensors)]
    return cat(parts, 0 if parts and parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Tensors below each other: along the first dimension, vectors as rows.

    Examples
    --------
    >>> import genesis
    >>> genesis.vstack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    from genesis import atleast_2d, cat
    from genesis._tensor_functions import several

    return cat([atleast_2d(one) for one in several("vstack", tensors)])


def dstack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Tensors behind each other: along the third dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.dstack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    from genesis import atleast_3d, cat
    from genesis._tensor_functions import several

    return cat([atleast_3d(one) for one in several("dstack", tensors)], 2)


def column_stack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Vectors as the columns of a matrix; matrices side by side.

    Examples
    --------
    >>> import genesis
    >>> genesis.column_stack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    from genesis import cat
    from genesis._tensor_functions import several

    return cat(
        [one.reshape(-1, 1) if one.ndim < 2 else one for one in several("column_stack", tensors)], 1
    )


def fliplr(input: _C.Tensor) -> _C.Tensor:
    """A copy with the second dimension the other way round.

    Examples
    --------
    >>> import genesis
    >>> genesis.fliplr(genesis.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    return input.flip(1)


def flipud(input: _C.Tensor) -> _C.Tensor:
    """A copy with the first dimension the other way round.

    Examples
    --------
    >>> import genesis
    >>> genesis.flipud(genesis.tensor([1, 2]))
    tensor([2, 1])
    """
    if not input.ndim:
        raise _C.ShapeError("flipud: the tensor has no first dimension")
    return input.flip(0)


def rot90(input: _C.Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> _C.Tensor:
    """A copy turned by right angles, from the first of two dimensions towards the second.

    Examples
    --------
    >>> import genesis
    >>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    first, second = dims
    if input.ndim and first % input.ndim == second % input.ndim:
        raise ValueError(f"rot90: dimensions {first} and {second} of {input.shape} are the same")
    if k % 4 == 0:
        return input.clone()
    if k % 4 == 2:
        return input.flip(first, second)
    return input.flip(second if k % 4 == 1 else first).transpose(first, second)


publish(globals(), __all__, methods=("fliplr", "flipud", "rot90"))
