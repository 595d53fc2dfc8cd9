"""Tensors side by side, in parts, and the other way round.

Those that begin with a tensor are its methods, too.
"""

from __future__ import annotations

from genesis import _C
from genesis._C import cat
from genesis._tensor import shape_of
from genesis._tensor_calls import check_parts, publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["cat", "chunk", "flip", "split", "stack"]


def several(name: str, tensors: Any, dim: Any = 0) -> list[_C.Tensor]:
    """Tensors that are put together: those of a list or a tuple, not one by one."""
    if isinstance(tensors, _C.Tensor) or isinstance(dim, _C.Tensor):
        raise TypeError(f"{name}: pass a list: {name}([x, y]), not the tensors one by one")
    found = [*_C._items(tensors)]
    if not found:
        raise ValueError(f"{name}: there must be a tensor")
    for place, one in enumerate(found):
        if not isinstance(one, _C.Tensor):
            raise TypeError(
                f"{name}: a list of tensors, and number {place} of it is of type "
                f"{type(one).__name__}"
            )
    return found


def stack(tensors: Sequence[_C.Tensor], dim: int = 0, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Tensors of one shape side by side, along a new dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.stack([genesis.zeros(2), genesis.ones(2)]).shape
    (2, 2)
    """
    tensors = several("stack", tensors, dim)
    for one in tensors[1:]:
        if one.shape != tensors[0].shape:
            raise _C.ShapeError(f"stack: shapes {tensors[0].shape} and {one.shape} differ")
    return cat([one.unsqueeze(dim) for one in tensors], dim)


def split(input: _C.Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[_C.Tensor, ...]:
    """Views of parts along a dimension: of so many elements each, or of these sizes.

    Examples
    --------
    >>> import genesis
    >>> [part.tolist() for part in genesis.split(genesis.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    sizes = split_size_or_sections
    if not input.ndim:
        raise _C.ShapeError("split: a tensor without dimensions has no parts")
    length = input.shape[dim]
    if hasattr(sizes, "__index__"):
        if sizes < 1:
            raise ValueError("split: a part has at least 1 element")
        count = max(1, -(-length // sizes))
        check_parts("split", input, count)
        sizes = [min(sizes, length - i * sizes) for i in range(count)]
    else:
        sizes = _C._items(sizes)
    if any(size < 0 for size in sizes):
        raise _C.ShapeError(f"split: a size is not negative: {list(sizes)}")
    if sum(sizes) != length:
        raise _C.ShapeError(
            f"split: the sizes {list(sizes)} are {sum(sizes)} elements in all, and dimension {dim} "
            f"has {length}"
        )
    parts, begin, at = [], 0, dim % input.ndim
    for size in sizes:
        parts.append(input[(slice(None),) * at + (slice(begin, begin + size),)])
        begin += size
    return tuple(parts)


def chunk(input: _C.Tensor, chunks: int, dim: int = 0) -> tuple[_C.Tensor, ...]:
    """Views of at most so many parts of one size; the last may be smaller.

    Examples
    --------
    >>> import genesis
    >>> [part.tolist() for part in genesis.chunk(genesis.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    if chunks < 1:
        raise ValueError("chunk: there is at least 1 part")
    if not input.ndim:
        raise _C.ShapeError("chunk: a tensor without dimensions has no parts")
    if not input.shape[dim]:
        check_parts("chunk", input, chunks)
        return split(input, [0] * chunks, dim)
    return split(input, -(-input.shape[dim] // chunks), dim)


def flip(input: _C.Tensor, *places: Any, dims: Any = None) -> _C.Tensor:
    """A copy with dimensions the other way round.

    Examples
    --------
    >>> import genesis
    >>> genesis.flip(genesis.arange(3), 0)
    tensor([2, 1, 0])
    """
    return input.flip(shape_of(places, dims))


publish(globals(), __all__, methods=("chunk", "split"))
