"""Views that are made of others: no element is copied, but where a function says so.

Each is a method of Tensor, too, but for those of several tensors.
"""

from __future__ import annotations

from _operator import index  # what operator has, without importing that

from genesis import _C
from genesis._memory import counted
from genesis._tensor_calls import check_parts, publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "as_strided",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "diagonal",
    "meshgrid",
    "moveaxis",
    "movedim",
    "narrow",
    "ravel",
    "select",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "unbind",
    "unflatten",
]


def _dimension(name: str, input: _C.Tensor, dim: int) -> int:
    """A dimension, counted from the beginning; IndexError where there is none."""
    span, dim = input.ndim or 1, index(dim)
    if not -span <= dim < span:
        raise IndexError(f"{name}: dimension {dim} is out of range for shape {input.shape}")
    return dim % span


def as_strided(
    input: _C.Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> _C.Tensor:
    """A view with any sizes and strides, in elements, as long as it stays in the storage.

    Examples
    --------
    >>> import genesis
    >>> genesis.as_strided(genesis.arange(4), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    return input.as_strided(size, stride, storage_offset)


def unfold(input: _C.Tensor, dimension: int, size: int, step: int) -> _C.Tensor:
    """A view of all windows of a size, `step` apart, in a dimension; the last one is the window.

    Examples
    --------
    >>> import genesis
    >>> genesis.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    at = _dimension("unfold", input, dimension)
    length = input.shape[at] if input.ndim else 1
    if step < 1:
        raise ValueError(f"unfold: the step is at least 1, not {step}")
    if size < 0:
        raise ValueError(f"unfold: the size of a window is not negative: {size}")
    if size > length:
        raise ValueError(
            f"unfold: size {size} is larger than dimension {at}, which has "
            f"{counted(length, 'element')}"
        )
    if not input.ndim:
        return input.as_strided((size,), (1,))
    sizes, strides = list(input.shape), list(input.strides)
    sizes[at], strides[at] = (length - size) // step + 1, strides[at] * step
    return input.as_strided([*sizes, size], [*strides, input.strides[at]])


def diagonal(input: _C.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> _C.Tensor:
    """A view of the elements whose index in `dim2` is `offset` more than in `dim1`; comes last.

    Examples
    --------
    >>> import genesis
    >>> genesis.diagonal(genesis.arange(6).view(2, 3), 1)
    tensor([1, 5])
    """
    first, second = _dimension("diagonal", input, dim1), _dimension("diagonal", input, dim2)
    if first == second:
        raise ValueError(f"diagonal: dimensions {dim1} and {dim2} of {input.shape} are the same")
    rows, columns = input.shape[first], input.shape[second]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = input.storage_offset()
    if count:
        start += max(offset, 0) * input.strides[second] - min(offset, 0) * input.strides[first]
    rest = [i for i in range(input.ndim) if i not in (first, second)]
    return input.as_strided(
        [*(input.shape[i] for i in rest), count],
        [*(input.strides[i] for i in rest), input.strides[first] + input.strides[second]],
        start,
    )


def t(input: _C.Tensor) -> _C.Tensor:
    """A view of a matrix with rows and columns exchanged; a vector or number as it is.

    Examples
    --------
    >>> import genesis
    >>> genesis.t(genesis.zeros(2, 3)).shape
    (3, 2)
    """
    if input.ndim > 2:
        raise _C.ShapeError(f"t: a matrix has at most 2 dimensions, not those of {input.shape}")
    return input.T


def ravel(input: _C.Tensor) -> _C.Tensor:
    """All elements as one dimension, with a copy only where there must be one.

    Examples
    --------
    >>> import genesis
    >>> genesis.ravel(genesis.zeros(2, 3)).shape
    (6,)
    """
    return input.reshape(-1)


def unflatten(input: _C.Tensor, dim: int, sizes: Any) -> _C.Tensor:
    """A dimension as several; one -1 is worked out.

    Examples
    --------
    >>> import genesis
    >>> genesis.unflatten(genesis.zeros(2, 6), 1, (3, -1)).shape
    (2, 3, 2)
    """
    at = _dimension("unflatten", input, dim)
    sizes, known = [*_C._dimensions(sizes)], 1
    for size in sizes:
        known *= size if size != -1 else 1
    if sizes.count(-1) == 1 and known > 0 and input.shape[at] % known == 0:
        sizes[sizes.index(-1)] = input.shape[at] // known
    return input.view([*input.shape[:at], *sizes, *input.shape[at + 1 :]])


def swapaxes(input: _C.Tensor, axis0: int, axis1: int) -> _C.Tensor:
    """A view with two dimensions exchanged: transpose() by another name.

    Examples
    --------
    >>> import genesis
    >>> genesis.swapaxes(genesis.zeros(2, 3), 0, 1).shape
    (3, 2)
    """
    return input.transpose(axis0, axis1)


def swapdims(input: _C.Tensor, dim0: int, dim1: int) -> _C.Tensor:
    """A view with two dimensions exchanged: transpose() by another name.

    Examples
    --------
    >>> import genesis
    >>> genesis.swapdims(genesis.zeros(2, 3), 0, 1).shape
    (3, 2)
    """
    return input.transpose(dim0, dim1)


def movedim(input: _C.Tensor, source: Any, destination: Any) -> _C.Tensor:
    """A view with dimensions moved to other places; the others keep their order.

    Examples
    --------
    >>> import genesis
    >>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    sources = (source,) if hasattr(source, "__index__") else _C._dimensions(source)
    places = (destination,) if hasattr(destination, "__index__") else _C._dimensions(destination)
    sources = tuple(_dimension("movedim", input, one) for one in sources)
    places = tuple(_dimension("movedim", input, one) for one in places)
    if len(sources) != len(places) or len({*sources}) + len({*places}) != 2 * len(sources):
        raise ValueError(f"movedim: dimensions {source} cannot go to {destination}")
    rest = iter(i for i in range(input.ndim) if i not in sources)
    moved = dict(zip(places, sources, strict=True))
    return input.permute([moved[i] if i in moved else next(rest) for i in range(input.ndim)])


moveaxis = movedim


def select(input: _C.Tensor, dim: int, index: int) -> _C.Tensor:
    """A view of one index of a dimension, which goes.

    Examples
    --------
    >>> import genesis
    >>> genesis.select(genesis.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    return input[(slice(None),) * _dimension("select", input, dim) + (index,)]


def narrow(input: _C.Tensor, dim: int, start: int, length: int) -> _C.Tensor:
    """A view of some elements of a dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.narrow(genesis.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    at = _dimension("narrow", input, dim)
    begin = start + input.shape[at] if start < 0 else start
    if length < 0 or not 0 <= begin <= input.shape[at] - length:
        raise IndexError(
            f"narrow: {length} from {start} on are not in dimension {dim} of {input.shape}"
        )
    return input[(slice(None),) * at + (slice(begin, begin + length),)]


def unbind(input: _C.Tensor, dim: int = 0) -> tuple[_C.Tensor, ...]:
    """Views of each index of a dimension.

    Examples
    --------
    >>> import genesis
    >>> [row.tolist() for row in genesis.unbind(genesis.tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    if not input.ndim:
        raise _C.ShapeError("unbind: a tensor without dimensions has no parts")
    at = _dimension("unbind", input, dim)
    check_parts("unbind", input, input.shape[at])
    return tuple(select(input, at, i) for i in range(input.shape[at]))


def tensor_split(input: _C.Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[_C.Tensor, ...]:
    """Views of so many parts of about one size, or of those that indices cut.

    Examples
    --------
    >>> import genesis
    >>> [part.tolist() for part in genesis.tensor_split(genesis.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    at = _dimension("tensor_split", input, dim)
    length = input.shape[at]
    if isinstance(indices_or_sections, _C.Tensor):
        indices_or_sections = indices_or_sections.tolist()  # a number, or several
    if hasattr(indices_or_sections, "__index__"):
        count = int(indices_or_sections)
        if count < 1:
            raise ValueError(f"tensor_split: there is at least 1 part, not {count}")
        check_parts("tensor_split", input, count)
        small, larger = divmod(length, count)
        cuts = [i * small + min(i, larger) for i in range(1, count)]
    else:
        cuts = [int(cut) for cut in _C._items(indices_or_sections)]
    before = (slice(None),) * at
    ends = zip([0, *cuts], [*cuts, length], strict=True)
    return tuple(input[(*before, slice(begin, end))] for begin, end in ends)


def view_as(self: _C.Tensor, other: _C.Tensor) -> _C.Tensor:
    """A view with the shape of another tensor.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(6).view_as(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    return self.view(other.shape)


def reshape_as(self: _C.Tensor, other: _C.Tensor) -> _C.Tensor:
    """The elements with the shape of another tensor, with a copy only where there must be one.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(6).reshape_as(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    return self.reshape(other.shape)


def expand_as(self: _C.Tensor, other: _C.Tensor) -> _C.Tensor:
    """A view in which dimensions of 1 are repeated, with the shape of another tensor.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(3).expand_as(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    return self.expand(other.shape)


# ---- of several tensors ----


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that tensors of these shapes have together.

    Examples
    --------
    >>> import genesis
    >>> genesis.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    sizes: list[int] = []
    for given in shapes:
        shape = (given,) if hasattr(given, "__index__") else _C._dimensions(given)
        sizes = [1] * (len(shape) - len(sizes)) + sizes
        for i, size in enumerate(reversed(shape), 1):
            if 1 not in (size, sizes[-i]) and size != sizes[-i]:
                raise _C.ShapeError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
            sizes[-i] = size if sizes[-i] == 1 else sizes[-i]
    return tuple(sizes)


def broadcast_tensors(*tensors: _C.Tensor) -> tuple[_C.Tensor, ...]:
    """Views of all of them with the shape that they have together.

    Examples
    --------
    >>> import genesis
    >>> [x.shape for x in genesis.broadcast_tensors(genesis.zeros(3, 1), genesis.zeros(4))]
    [(3, 4), (3, 4)]
    """
    shape = broadcast_shapes(*(one.shape for one in tensors))
    return tuple(one.expand(shape) for one in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[_C.Tensor, ...]:
    """Views of vectors, each along a dimension of its own; with ``"xy"`` the first two exchanged.

    Examples
    --------
    >>> import genesis
    >>> rows, columns = genesis.meshgrid(genesis.arange(2), genesis.arange(3))
    >>> columns
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing is 'ij' or 'xy', not {indexing!r}")
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    order = list(range(len(tensors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    made = []
    for i, one in enumerate(tensors):
        shape = [1] * len(tensors)
        shape[order[i]] = one.numel()
        made.append(one.reshape(shape))
    return broadcast_tensors(*made)


def _at_least(ndim: int, tensors: Any) -> Any:
    if len(tensors) != 1 or isinstance(tensors[0], (list, tuple)):
        several = tensors[0] if len(tensors) == 1 else tensors
        return tuple(_at_least(ndim, (one,)) for one in several)
    (made,) = tensors
    if made.ndim == 0:
        made = made.reshape(1)
    if made.ndim == 1 and ndim > 1:
        made = made.unsqueeze(0)
    return made.unsqueeze(-1) if made.ndim == 2 and ndim > 2 else made


def atleast_1d(*tensors: Any) -> Any:
    """A view with at least one dimension; of several tensors a tuple of them.

    Examples
    --------
    >>> import genesis
    >>> genesis.atleast_1d(genesis.tensor(3))
    tensor([3])
    """
    return _at_least(1, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """A view with at least two dimensions; of several tensors a tuple of them.

    Examples
    --------
    >>> import genesis
    >>> genesis.atleast_2d(genesis.tensor([3]))
    tensor([[3]])
    """
    return _at_least(2, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """A view with at least three dimensions; of several tensors a tuple of them.

    Examples
    --------
    >>> import genesis
    >>> genesis.atleast_3d(genesis.tensor([3, 4])).shape
    (1, 2, 1)
    """
    return _at_least(3, tensors)


publish(
    globals(),
    __all__,
    methods=(
        *("diagonal", "expand_as", "moveaxis", "movedim", "narrow", "ravel", "reshape_as"),
        *("select", "swapaxes", "swapdims", "t", "tensor_split", "unbind", "unflatten", "unfold"),
        *("view_as",),
    ),
)
