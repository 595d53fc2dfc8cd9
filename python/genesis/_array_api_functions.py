"""The functions of the array API standard that differ from those of genesis: see genesis.array_api.

They are functions of tensors; those that make them, and what is about dtypes, are beside them.
"""

from __future__ import annotations

import builtins
from typing import NamedTuple

import genesis
from genesis import _C
from genesis._array_api_elements import promoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from genesis import Tensor

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "broadcast_to",
    "concat",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "expand_dims",
    "flip",
    "isin",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "nonzero",
    "permute_dims",
    "prod",
    "repeat",
    "reshape",
    "roll",
    "searchsorted",
    "sort",
    "squeeze",
    "stack",
    "std",
    "sum",
    "take",
    "take_along_axis",
    "tensordot",
    "tile",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
]


# ---- shapes ----


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """A view of another shape, along whose new dimensions the elements are repeated.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return genesis.broadcast_to(x, _C._dimensions(shape))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after the other; flattened where `axis` is None.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.concat([xp.asarray([1]), xp.asarray([2, 3])])
    tensor([1, 2, 3])
    """
    if axis is None:
        return genesis.cat([one.reshape(-1) for one in _C._items(arrays)])
    return genesis.cat(arrays, axis)


def _places(axes: Any, ndim: int, name: str) -> list[int]:
    """Axes counted from the front, each once."""
    axes = _C._dimensions(axes)
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"{name}: axis {axis} is out of range for {ndim} dimensions")
    places = [axis % ndim for axis in axes]
    if len(set(places)) < len(places):
        raise ValueError(f"{name}: an axis is named twice: {tuple(axes)}")
    return places


def expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    """A view with a dimension of 1 more, or with several.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.expand_dims(xp.asarray([1, 2]), axis=1).shape
    (2, 1)
    """
    if isinstance(axis, int):
        return x.unsqueeze(axis)
    for one in sorted(_places(axis, x.ndim + len(axis), "expand_dims")):
        x = x.unsqueeze(one)
    return x


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """The elements the other way round along dimensions; None: all.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.flip(xp.asarray([1, 2, 3]))
    tensor([3, 2, 1])
    """
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return x.flip(_C._dimensions(axes))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the dimensions in another order.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.permute_dims(xp.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return x.permute(_C._dimensions(axes))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element as often as it says.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    return genesis.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: Any, *, copy: builtins.bool | None = None) -> Tensor:
    """The elements in another shape: a view where that can be, unless `copy` says otherwise.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.reshape(xp.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    shape = _C._dimensions(shape) if not isinstance(shape, int) else (shape,)
    if copy is False:
        return x.view(shape)
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """The elements moved along dimensions; those that leave come in at the other end.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.roll(xp.asarray([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return genesis.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """A view without dimensions of size 1.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.squeeze(xp.zeros((1, 2)), 0).shape
    (2,)
    """
    for one in _places((axis,) if isinstance(axis, int) else axis, x.ndim, "squeeze"):
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: dimension {one} of shape {x.shape} is not of size 1")
    return x.squeeze(axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors side by side along a new dimension.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    return genesis.stack(arrays, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The tensor several times along each dimension.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    return genesis.tile(x, _C._dimensions(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of a dimension.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    return x.unbind(axis)


# ---- matrices ----


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether each element is among others.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2, 9]))
    tensor([False,  True, False])
    """
    return genesis.isin(x1, x2, invert=invert)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of matrices.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2]]), xp.asarray([[3.0], [4.0]]))
    tensor([[11.]])
    """
    return genesis.matmul(*promoted(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two dimensions exchanged.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.matrix_transpose(xp.zeros((4, 2, 3))).shape
    (4, 3, 2)
    """
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over dimensions of both.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 2)), axes=1)
    tensor([[3., 3.],
            [3., 3.]])
    """
    return genesis.tensordot(*promoted(x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of products along a dimension of both.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    tensor([3, 7])
    """
    if not -builtins.min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(
            f"vecdot: axis {axis} is not among the last {builtins.min(x1.ndim, x2.ndim)} of both"
        )
    x1, x2 = (one.movedim(axis, -1) for one in promoted(x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: vectors of {x1.shape[-1]} and of {x2.shape[-1]} elements")
    is_half = x1.dtype in (genesis.float16, genesis.bfloat16)  # rounded once, at the end
    made = (x1.float() * x2.float() if is_half else x1 * x2).sum(-1)
    return made.to(x1.dtype)


# ---- reductions ----


def _reduced(
    function: Any, x: Tensor, axis: Any, keepdims: builtins.bool, **options: Any
) -> Tensor:
    """A reduction; over no dimension for (), which means all of them to PyTorch's functions."""
    if axis == ():
        x, axis, keepdims = x.unsqueeze(0), 0, False
    return function(x, axis, keepdims, **options)


def _sum_dtype(x: Tensor, dtype: Any) -> Any:
    """The dtype of sums and products: unsigned integers stay unsigned, as the standard has it."""
    is_unsigned = not (x.dtype.is_signed or x.dtype == genesis.bool)
    return genesis.uint64 if dtype is None and is_unsigned else dtype


def sum(
    x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False
) -> Tensor:
    """The sum of the elements.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0)
    tensor([4, 6])
    """
    return _reduced(genesis.sum, x, axis, keepdims, dtype=_sum_dtype(x, dtype))


def prod(
    x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False
) -> Tensor:
    """The product of the elements.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=0)
    tensor([3, 8])
    """
    return _reduced(genesis.prod, x, axis, keepdims, dtype=_sum_dtype(x, dtype))


def mean(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean of the elements.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.mean(xp.asarray([1.0, 2.0]))
    tensor(1.5000)
    """
    return _reduced(genesis.mean, x, axis, keepdims)


def max(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest element; NaN wins.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.max(xp.asarray([[1, 2], [3, 4]]), axis=1)
    tensor([2, 4])
    """
    return _reduced(genesis.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest element; NaN wins.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.min(xp.asarray([[1, 2], [3, 4]]), axis=1)
    tensor([1, 3])
    """
    return _reduced(genesis.amin, x, axis, keepdims)


def all(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements are not 0.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.all(xp.asarray([True, False]))
    tensor(False)
    """
    return _reduced(genesis.all, x, axis, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether an element is not 0.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.any(xp.asarray([True, False]))
    tensor(True)
    """
    return _reduced(genesis.any, x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """How many elements are not 0.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.count_nonzero(xp.asarray([0, 3, 4]))
    tensor(2)
    """
    return sum(x != 0, axis=axis, keepdims=keepdims)


def var(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The variance; the divisor is the number of elements less `correction`.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.var(xp.asarray([1.0, 3.0]))
    tensor(1.)
    """
    return _reduced(
        lambda x, axis, keepdims: genesis.var(x, axis, correction, keepdims), x, axis, keepdims
    )


def std(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The square root of the variance.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0]))
    tensor(1.)
    """
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def _cumulated(
    function: Any, first: int, x: Tensor, axis: Any, dtype: Any, has_first: Any
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"cumulating needs an axis for shape {x.shape}")
        axis = 0
    made = function(x, axis, _sum_dtype(x, dtype))
    if not has_first:
        return made
    shape = list(made.shape)
    shape[axis] = 1
    return genesis.cat((genesis.full(shape, first, made.dtype, made.device), made), axis)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The sum of the elements up to each; with `include_initial` 0 comes first.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return _cumulated(genesis.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The product of the elements up to each; with `include_initial` 1 comes first.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
    tensor([1, 2, 6])
    """
    return _cumulated(genesis.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor:
    """What each element is more than the one before it, `n` times.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9]), prepend=xp.asarray([0]))
    tensor([1, 3, 5])
    """
    parts = [one for one in (prepend, x, append) if one is not None]
    return genesis.diff(x if len(parts) == 1 else genesis.cat(parts, axis), n, axis)


# ---- searching and sorting ----


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the first of the largest elements is.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.argmax(xp.asarray([1, 3, 2]))
    tensor(1)
    """
    return genesis.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the first of the smallest elements is.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.argmin(xp.asarray([4, 3, 5]))
    tensor(1)
    """
    return genesis.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of elements that are not 0, a tensor for each dimension.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.nonzero(xp.asarray([0, 5, 6]))
    (tensor([1, 2]),)
    """
    if not x.ndim:
        raise ValueError("nonzero: a tensor without dimensions has no places")
    return genesis.nonzero(x, as_tuple=True)


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where elements belong in a sorted row.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 6]))
    tensor([1, 3])
    """
    return genesis.searchsorted(x1, x2, side=side, sorter=sorter)


def sort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The elements in order; NaN is the largest.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return genesis.sort(x, axis, descending, stable)[0]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """Where the elements in order are; NaN is the largest.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return genesis.argsort(x, axis, descending, stable)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of a dimension that an index names.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0]))
    tensor([7, 5])
    """
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: needs an axis for shape {x.shape}")
    at = 0 if axis is None else _places((axis,), x.ndim, "take")[0]
    return x[(slice(None),) * at + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of a dimension that an index names for each of the others.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]))
    tensor([[2],
            [3]])
    """
    return genesis.take_along_axis(x, indices, axis)


# ---- different elements ----


class _All(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _Counts(NamedTuple):
    values: Any
    counts: Any


class _Inverse(NamedTuple):
    values: Any
    inverse_indices: Any


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements, ascending.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3]))
    tensor([1, 3])
    """
    return genesis.unique(x)


def unique_counts(x: Tensor, /) -> _Counts:
    """The different elements, and how often each is there.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.unique_counts(xp.asarray([3, 1, 3])).counts
    tensor([1, 2])
    """
    return _Counts(*genesis.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> _Inverse:
    """The different elements, and where each element is among them.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    return _Inverse(*genesis.unique(x, return_inverse=True))


def unique_all(x: Tensor, /) -> _All:
    """The different elements, where the first of each is, where each element is, and how often.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.unique_all(xp.asarray([3, 1, 3])).indices
    tensor([1, 0])
    """
    values, inverse, counts = genesis.unique(x, return_inverse=True, return_counts=True)
    order = inverse.reshape(-1).argsort()  # stable: the first of each group is the first of all
    return _All(values, order[counts.cumsum(0) - counts], inverse, counts)
