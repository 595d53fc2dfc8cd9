"""Functions about shapes: views by name, and elements moved or repeated.

Each is a method of Tensor, too: the views are methods first, and the functions call them.
"""

from __future__ import annotations

from genesis import _C
from genesis._tensor import shape_of
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "broadcast_to",
    "contiguous",
    "expand",
    "flatten",
    "permute",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "tile",
    "transpose",
    "unsqueeze",
    "view",
]


def reshape(input: _C.Tensor, *sizes: Any, shape: Any = None) -> _C.Tensor:
    """Another shape, with a copy only where there must be one; one -1 is worked out.

    Examples
    --------
    >>> import genesis
    >>> genesis.reshape(genesis.arange(6), (2, -1)).shape
    (2, 3)
    """
    return input.reshape(shape_of(sizes, shape))


def view(input: _C.Tensor, *shape: Any) -> _C.Tensor:
    """The same elements with another shape, without a copy; one -1 is worked out.

    Examples
    --------
    >>> import genesis
    >>> genesis.view(genesis.arange(6), 3, 2).shape
    (3, 2)
    """
    return input.view(*shape)


def flatten(input: _C.Tensor, start_dim: int = 0, end_dim: int = -1) -> _C.Tensor:
    """Several dimensions, or all, as one, with a copy only where there must be one.

    Examples
    --------
    >>> import genesis
    >>> genesis.flatten(genesis.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    return input.flatten(start_dim, end_dim)


def transpose(input: _C.Tensor, dim0: int, dim1: int) -> _C.Tensor:
    """A view with two dimensions exchanged.

    Examples
    --------
    >>> import genesis
    >>> genesis.transpose(genesis.zeros(2, 3), 0, 1).shape
    (3, 2)
    """
    return input.transpose(dim0, dim1)


def permute(input: _C.Tensor, *places: Any, dims: Any = None) -> _C.Tensor:
    """A view with the dimensions in another order.

    Examples
    --------
    >>> import genesis
    >>> genesis.permute(genesis.zeros(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return input.permute(shape_of(places, dims))


def squeeze(input: _C.Tensor, dim: Any = None) -> _C.Tensor:
    """A view without dimensions of 1: all of them, or those that are named.

    Examples
    --------
    >>> import genesis
    >>> genesis.squeeze(genesis.zeros(1, 3, 1)).shape
    (3,)
    """
    return input.squeeze(dim)


def unsqueeze(input: _C.Tensor, dim: int) -> _C.Tensor:
    """A view with a new dimension of 1.

    Examples
    --------
    >>> import genesis
    >>> genesis.unsqueeze(genesis.zeros(3), 0).shape
    (1, 3)
    """
    return input.unsqueeze(dim)


def expand(input: _C.Tensor, *shape: Any, size: Any = None) -> _C.Tensor:
    """A view in which dimensions of 1 are repeated; -1 keeps a size.

    Examples
    --------
    >>> import genesis
    >>> genesis.expand(genesis.zeros(3, 1), -1, 4).shape
    (3, 4)
    """
    return input.expand(shape_of(shape, size))


def broadcast_to(input: _C.Tensor, *shape: Any, size: Any = None) -> _C.Tensor:
    """A view in which dimensions of 1 are repeated.

    Examples
    --------
    >>> import genesis
    >>> genesis.broadcast_to(genesis.zeros(3), (2, 3)).shape
    (2, 3)
    """
    return input.broadcast_to(shape_of(shape, size))


def contiguous(input: _C.Tensor) -> _C.Tensor:
    """The tensor itself if it is contiguous, else a copy that is.

    Examples
    --------
    >>> import genesis
    >>> genesis.contiguous(genesis.zeros(2, 3).T).is_contiguous()
    True
    """
    return input.contiguous()


def roll(input: _C.Tensor, shifts: Any, dims: Any = None) -> _C.Tensor:
    """A copy whose elements are moved on, those at the end to the beginning.

    Without dimensions it is as if there were one.

    Examples
    --------
    >>> import genesis
    >>> genesis.roll(genesis.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    from itertools import product

    shifts = (shifts,) if hasattr(shifts, "__index__") else _C._dimensions(shifts)
    if dims is None:
        if len(shifts) != 1:
            raise ValueError(f"roll: {len(shifts)} shifts need as many dimensions")
        return roll(input.flatten(), shifts, 0).view(input.shape)
    dims = (dims,) if hasattr(dims, "__index__") else _C._dimensions(dims)
    if len(dims) != len(shifts):
        raise ValueError(
            f"roll: shifts and dims must have as many numbers, not {len(shifts)} and {len(dims)}"
        )
    moved = [0] * input.ndim
    for shift, dim in zip(shifts, dims, strict=True):
        if not -input.ndim <= dim < input.ndim:
            raise IndexError(f"roll: dimension {dim} is out of range for shape {input.shape}")
        moved[dim] += shift
    # Each dimension is cut in two, which change places: (to, from) of each part.
    parts = []
    for size, shift in zip(input.shape, moved, strict=True):
        cut = shift % size if size else 0
        whole = [(slice(None), slice(None))]
        halves = [(slice(cut, None), slice(size - cut)), (slice(cut), slice(size - cut, None))]
        parts.append(halves if cut else whole)
    made = _C._empty(input.shape, input.dtype, input.device)
    for places in product(*parts):
        made[tuple(to for to, _ in places)] = input[tuple(source for _, source in places)]
    return made


def repeat(input: _C.Tensor, *sizes: Any, repeats: Any = None) -> _C.Tensor:
    """A copy with the whole repeated so many times along each dimension; new ones come in front.

    Examples
    --------
    >>> import genesis
    >>> genesis.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = shape_of(sizes, repeats)
    if len(counts) < input.ndim:
        raise _C.ShapeError(
            f"repeat: {tuple(counts)} needs a count for each dimension of shape {input.shape}"
        )
    if any(count < 0 for count in counts):
        raise ValueError(f"repeat: counts are not negative: {tuple(counts)}")
    shape = (1,) * (len(counts) - input.ndim) + input.shape
    # A dimension that is repeated becomes two: the repetitions, and what is repeated.
    narrow: list[int] = []
    wide: list[int] = []
    for count, size in zip(counts, shape, strict=True):
        narrow += [size] if count == 1 else [1, size]
        wide += [size] if count == 1 else [count, size]
    made = input.view(narrow).expand(wide).clone()
    return made.view([count * size for count, size in zip(counts, shape, strict=True)])


def tile(input: _C.Tensor, *counts: Any, dims: Any = None) -> _C.Tensor:
    """As repeat(), with counts that are missing taken as 1 in front.

    Examples
    --------
    >>> import genesis
    >>> genesis.tile(genesis.tensor([[1, 2]]), (2,))
    tensor([[1, 2, 1, 2]])
    """
    asked = tuple(shape_of(counts, dims))
    return repeat(input, (1,) * (input.ndim - len(asked)) + asked)


publish(
    globals(),
    __all__,
    methods=("repeat", "roll", "tile"),
)
