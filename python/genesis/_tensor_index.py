"""Elements of tensors by their places: gathering, scattering, searching.

Functions that begin with a tensor are its methods, too; those that end in an underscore are methods
only, and change the tensor.
"""

from __future__ import annotations

from genesis import _C
from genesis._C import arange
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis._index_plan import IndexPlan

__all__ = [
    "bincount",
    "gather",
    "index_plan",
    "index_select",
    "masked_fill",
    "masked_select",
    "nonzero",
    "scatter",
    "scatter_add",
    "searchsorted",
    "take",
    "take_along_axis",
    "take_along_dim",
]


def index_plan(x: _C.Tensor, key: Any, value: Any = None, for_set: bool = False) -> IndexPlan:
    """What ``x[key]`` does, or ``x[key] = value``, without doing it.

    Parameters
    ----------
    x : Tensor
        What is indexed.
    key : object
        Whatever can stand in the brackets.
    value : object, optional
        What would be written: a number, or something that has elements.
    for_set : bool
        Whether the key would be written to; so it is if there is a value.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.zeros(4, 6)
    >>> plan = genesis.index_plan(x, (slice(1, 3), slice(None, None, 2)))
    >>> plan.kind.value, plan.result_shape, plan.result_strides, plan.ptr_offset_bytes
    ('view', (2, 3), (6, 2), 24)
    >>> genesis.index_plan(x, ([0, 2], [5, 1])).index_tensor
    tensor([ 5, 13])
    """
    from genesis._index_plan import IndexPlan  # few ask, and enumerations take time to import

    return IndexPlan(x, key, value, for_set or value is not None)


# ---- along one dimension ----


def _index(index: Any, like: _C.Tensor) -> _C.Tensor:
    """A tensor as it is; anything else becomes one, where another one is."""
    return index if isinstance(index, _C.Tensor) else _C.as_tensor(index, device=like.device)


def gather(input: _C.Tensor, dim: int, index: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Elements along a dimension: ``result[i][j] = input[i][index[i][j]]`` for ``dim=1``.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([[1, 2], [3, 4]])
    >>> genesis.gather(x, 1, genesis.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    index = _index(index, input)
    return _C._gather(input if input.ndim or not index.ndim else input.reshape(1), dim, index)


def scatter_(
    input: _C.Tensor,
    dim: int,
    index: Any,
    src: Any = None,
    value: Any = None,
    *,
    reduce: str | None = None,
) -> _C.Tensor:
    """Set elements along a dimension: ``input[i][index[i][j]] = src[i][j]`` for ``dim=1``.

    Where one place is written twice the last one wins, in row-major order, unless all are added
    (``reduce="add"``) or multiplied (``"multiply"``).

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(3).scatter_(0, genesis.tensor([2, 0]), genesis.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    if (src is None) == (value is None):
        raise TypeError("scatter: either src or value must be given")
    if reduce not in (None, "add", "multiply"):
        raise ValueError(f"scatter: reduce is None, 'add' or 'multiply', not {reduce!r}")
    given = value if src is None else src
    if reduce == "multiply":
        index, given = _index(index, input), _index(given, input)
        given = given if given.ndim else given.expand(index.shape).to(input.dtype)
        return input.scatter_reduce_(dim, index, given, "prod")
    return _C._scatter(input, dim, _index(index, input), given, reduce == "add")


def scatter(
    input: _C.Tensor,
    dim: int,
    index: Any,
    src: Any = None,
    value: Any = None,
    *,
    reduce: str | None = None,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """A copy in which elements along a dimension are set.

    Examples
    --------
    >>> import genesis
    >>> genesis.scatter(genesis.zeros(3), 0, genesis.tensor([1]), value=7)
    tensor([0., 7., 0.])
    """
    return scatter_(input.clone(), dim, index, src, value, reduce=reduce)


def scatter_add_(input: _C.Tensor, dim: int, index: Any, src: Any) -> _C.Tensor:
    """Add to elements along a dimension; every occurrence of a place counts.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(2).scatter_add_(0, genesis.tensor([1, 1]), genesis.tensor([5.0, 6.0]))
    tensor([ 0., 11.])
    """
    return _C._scatter(input, dim, _index(index, input), src, True)


def scatter_add(
    input: _C.Tensor, dim: int, index: Any, src: Any, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """A copy in which something is added to elements along a dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.scatter_add(genesis.ones(2), 0, genesis.tensor([0]), genesis.tensor([2.0]))
    tensor([3., 1.])
    """
    return scatter_add_(input.clone(), dim, index, src)


def index_select(
    input: _C.Tensor, dim: int, index: Any, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """The slices of a dimension that an index names, in its order.

    Examples
    --------
    >>> import genesis
    >>> genesis.index_select(genesis.tensor([[1, 2], [3, 4]]), 1, genesis.tensor([1]))
    tensor([[2],
            [4]])
    """
    return _C._index_select(input, dim, _index(index, input))


def index_add_(input: _C.Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> _C.Tensor:
    """Add slices to those of a dimension that an index names; each occurrence counts.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(2).index_add_(0, genesis.tensor([1, 1]), genesis.tensor([1.0, 2.0]), alpha=3)
    tensor([0., 9.])
    """
    source = _index(source, input)
    return _C._index_put_along(
        input, dim, _index(index, input), source if alpha == 1 else source * alpha, True
    )


def index_copy_(input: _C.Tensor, dim: int, index: Any, source: Any) -> _C.Tensor:
    """Set the slices of a dimension that an index names.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(3).index_copy_(0, genesis.tensor([2, 0]), genesis.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return _C._index_put_along(input, dim, _index(index, input), _index(source, input), False)


def index_fill_(input: _C.Tensor, dim: int, index: Any, value: Any) -> _C.Tensor:
    """Set the slices of a dimension that an index names to one number.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(3).index_fill_(0, genesis.tensor([2, 0]), 7)
    tensor([7., 0., 7.])
    """
    return _C._index_put_along(input, dim, _index(index, input), value, False)


def index_put_(input: _C.Tensor, indices: Any, values: Any, accumulate: bool = False) -> _C.Tensor:
    """Set the elements that index tensors name, or add to them.

    Parameters
    ----------
    input : Tensor
        What is changed.
    indices : tuple of Tensor
        As in ``input[indices]``.
    values : Tensor or number
        Broadcast to the shape of ``input[indices]``.
    accumulate : bool
        Whether the values are added; then each occurrence of a place counts.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(3).index_put_((genesis.tensor([1, 1]),), 2.0, accumulate=True)
    tensor([0., 4., 0.])
    """
    return _C._index_put(input, _C._items(indices), values, accumulate)


def take_along_dim(
    input: _C.Tensor, indices: Any, dim: int | None = None, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """Elements along a dimension by indices such as argsort() gives, the two broadcast together.

    Without a dimension the elements are those of all of the tensor, in row-major order. Negative
    indices count from the end.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([[3, 1, 2], [6, 5, 4]])
    >>> genesis.take_along_dim(x, x.argsort(1), 1)
    tensor([[1, 2, 3],
            [4, 5, 6]])
    """
    indices = _index(indices, input)
    if dim is None:
        return _C._take(input, indices.flatten())
    if indices.ndim != input.ndim:
        raise _C.ShapeError(
            f"take_along_dim: shapes {input.shape} and {indices.shape} have different numbers of "
            "dimensions"
        )
    if not -input.ndim <= dim < max(input.ndim, 1):
        raise IndexError(f"take_along_dim: dimension {dim} of a tensor of {input.ndim} dimensions")
    at = dim % input.ndim if input.ndim else 0
    key: list[Any] = []
    for i, size in enumerate(input.shape):
        shape = [1] * input.ndim
        shape[i] = size
        key.append(indices if i == at else arange(size, device=input.device).view(*shape))
    return input[tuple(key)] if key else input.clone()


take_along_axis = take_along_dim


# ---- of all elements ----


def take(input: _C.Tensor, index: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Elements by their number in row-major order; negative ones count from the end.

    Examples
    --------
    >>> import genesis
    >>> genesis.take(genesis.tensor([[1, 2], [3, 4]]), genesis.tensor([3, 0, -2]))
    tensor([4, 1, 3])
    """
    return _C._take(input, _index(index, input))


def masked_select(input: _C.Tensor, mask: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The elements for which a mask is true, in row-major order, the two broadcast together.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1, 5, 3])
    >>> genesis.masked_select(x, x > 2)
    tensor([5, 3])
    """
    return _C._masked_select(input, _index(mask, input))


def _fill_mask(input: _C.Tensor, mask: Any, value: Any) -> _C.Tensor:
    mask = _index(mask, input)
    if mask.dtype != _C.bool:
        raise TypeError(f"masked_fill: a mask is of bool, not of {mask.dtype}")
    if isinstance(value, _C.Tensor) and value.ndim > 0:
        raise TypeError(f"masked_fill: the value is a number, not a tensor of shape {value.shape}")
    return mask


def masked_fill_(input: _C.Tensor, mask: Any, value: Any) -> _C.Tensor:
    """Set the elements for which a mask is true to one number.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1, 5, 3])
    >>> x.masked_fill_(x > 2, 0)
    tensor([1, 0, 0])
    """
    mask = _fill_mask(input, mask, value)
    if input.dtype == _C.bool:
        value = bool(value)
    return _C.where(mask, value, input, out=input)


def masked_fill(input: _C.Tensor, mask: Any, value: Any) -> _C.Tensor:
    """A copy in which the elements for which a mask is true are one number.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, 5.0, 3.0])
    >>> genesis.masked_fill(x, x > 2, 0)
    tensor([1., 0., 0.])
    """
    made = _C.where(_fill_mask(input, mask, value), value, input)
    if made.dtype.is_floating_point and not input.dtype.is_floating_point:
        raise TypeError(f"masked_fill: {value!r} cannot be stored as {input.dtype}")
    return made.to(input.dtype)


def nonzero(input: _C.Tensor, *, as_tuple: bool = False) -> Any:
    """The places of the elements that are not 0, in row-major order.

    A row of coordinates for each, or a tuple with a tensor for each dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.nonzero(genesis.tensor([[0, 7], [8, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return _C._nonzero(input, as_tuple)


def searchsorted(
    sorted_sequence: _C.Tensor,
    input: Any,
    *,
    right: bool = False,
    side: str | None = None,
    out_int32: bool = False,
    sorter: _C.Tensor | None = None,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """Where values would have to be put into an ascending sequence for it to stay so.

    Parameters
    ----------
    sorted_sequence : Tensor
        Of one dimension, or with the same leading dimensions as the values.
    input : Tensor or number
        The values.
    right : bool
        Behind elements that are equal, not before them.
    side : str, optional
        ``"left"`` or ``"right"``: the same in other words.
    out_int32 : bool
        Places as int32 instead of int64.
    sorter : Tensor, optional
        What sorts the sequence, such as argsort() gives, where it is not ascending itself.
    out : Tensor, optional
        Where the result goes.

    Examples
    --------
    >>> import genesis
    >>> genesis.searchsorted(genesis.tensor([1, 3, 5]), genesis.tensor([3, 6]))
    tensor([1, 3])
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(f"searchsorted: side={side!r}, right={right}: it is 'left' or 'right'")
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    values = _index(input, sorted_sequence)
    made = _C._searchsorted(sorted_sequence, values, right or side == "right")
    return made.to(_C.int32) if out_int32 else made


def bincount(input: _C.Tensor, weights: _C.Tensor | None = None, minlength: int = 0) -> _C.Tensor:
    """How often each number from 0 on occurs; with weights, the sum of these.

    Examples
    --------
    >>> import genesis
    >>> genesis.bincount(genesis.tensor([1, 3, 1]))
    tensor([0, 2, 0, 1])
    """
    return _C._bincount(input, weights, minlength)


publish(
    globals(),
    __all__,
    methods=(
        *("bincount", "gather", "index_add_", "index_copy_", "index_fill_", "index_put_"),
        *("index_select", "masked_fill", "masked_fill_", "masked_select", "nonzero", "scatter"),
        *("scatter_", "scatter_add", "scatter_add_", "take", "take_along_dim"),
    ),
)
