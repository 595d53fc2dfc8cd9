"""More functions by places, made of those of genesis._tensor_index: copies, counts, repetitions.

Those that begin with a tensor are its methods, too; those that end in an underscore are methods
only, and change the tensor.
"""

from __future__ import annotations

import functools
import math
import operator

from genesis import _C
from genesis._C import arange, cat, ones_like, zeros_like
from genesis._tensor import wide
from genesis._tensor_calls import _wrapped, publish
from genesis._tensor_index import bincount, nonzero, searchsorted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "argwhere",
    "bucketize",
    "histc",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "isin",
    "masked_scatter",
    "repeat_interleave",
    "scatter_reduce",
    "tril_indices",
    "triu_indices",
    "unique",
    "unique_consecutive",
]

_FEW = 12  # numbers that are compared one by one faster than they are searched for


def index_add(
    input: _C.Tensor,
    dim: int,
    index: Any,
    source: Any,
    *,
    alpha: Any = 1,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """A copy in which slices are added to those of a dimension that an index names.

    Examples
    --------
    >>> import genesis
    >>> genesis.index_add(genesis.ones(2), 0, genesis.tensor([1, 1]), genesis.tensor([1.0, 2.0]))
    tensor([1., 4.])
    """
    return input.clone().index_add_(dim, index, source, alpha=alpha)


def index_copy(
    input: _C.Tensor, dim: int, index: Any, source: Any, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """A copy in which the slices of a dimension that an index names are set.

    Examples
    --------
    >>> import genesis
    >>> genesis.index_copy(genesis.ones(3), 0, genesis.tensor([2]), genesis.tensor([7.0]))
    tensor([1., 1., 7.])
    """
    return input.clone().index_copy_(dim, index, source)


def index_fill(input: _C.Tensor, dim: int, index: Any, value: Any) -> _C.Tensor:
    """A copy in which the slices of a dimension that an index names are one number.

    Examples
    --------
    >>> import genesis
    >>> genesis.index_fill(genesis.ones(3), 0, genesis.tensor([2]), 7)
    tensor([1., 1., 7.])
    """
    return input.clone().index_fill_(dim, index, value)


def index_put(input: _C.Tensor, indices: Any, values: Any, accumulate: bool = False) -> _C.Tensor:
    """A copy in which the elements that index tensors name are set, or added to.

    Examples
    --------
    >>> import genesis
    >>> genesis.index_put(genesis.ones(3), (genesis.tensor([2]),), genesis.tensor(7.0))
    tensor([1., 1., 7.])
    """
    return input.clone().index_put_(indices, values, accumulate)


def put_(self: _C.Tensor, index: _C.Tensor, source: Any, accumulate: bool = False) -> _C.Tensor:
    """Set elements by their number in row-major order, or add to them.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(2, 2).put_(genesis.tensor([3, 0]), genesis.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 1.]])
    """
    if isinstance(source, _C.Tensor):
        source = source.reshape(index.shape)
    if self.is_contiguous():
        self.view(-1).index_put_((index,), source, accumulate)
        return self
    flat = self.reshape(-1).index_put_((index,), source, accumulate)
    return self.copy_(flat.view(self.shape))


def masked_scatter_(self: _C.Tensor, mask: _C.Tensor, source: _C.Tensor) -> _C.Tensor:
    """Set the elements for which a mask is true to those of another tensor, one after the other.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(3).masked_scatter_(genesis.tensor([True, False, True]), genesis.ones(5))
    tensor([1., 0., 1.])
    """
    mask = mask.expand(self.shape)
    count = int(mask.sum())
    if source.numel() < count:
        raise _C.ShapeError(
            f"masked_scatter: {count} elements are to be set, and {source.numel()} are there"
        )
    self[mask] = source.reshape(-1)[:count]
    return self


def masked_scatter(input: _C.Tensor, mask: _C.Tensor, source: _C.Tensor) -> _C.Tensor:
    """A copy whose elements for which a mask is true are those of another tensor.

    Examples
    --------
    >>> import genesis
    >>> mask = genesis.tensor([True, False, True])
    >>> genesis.masked_scatter(genesis.zeros(3), mask, genesis.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    from genesis._C import broadcast_shapes

    spread = input.expand(broadcast_shapes(input.shape, mask.shape))
    return masked_scatter_(spread.clone(), mask, source)


def argwhere(input: _C.Tensor) -> _C.Tensor:
    """The places of the elements that are not 0, a row of coordinates for each.

    Examples
    --------
    >>> import genesis
    >>> genesis.argwhere(genesis.tensor([0, 7, 8]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> _C.Tensor:
    """Whether each element is among others; that those are all different is no help.

    Examples
    --------
    >>> import genesis
    >>> genesis.isin(genesis.tensor([1, 2, 3]), genesis.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    elements = _C.as_tensor(elements)
    among = _C.as_tensor(test_elements, device=elements.device).reshape(-1)
    if not among.numel():
        found = _C._empty(elements.shape, _C.bool, elements.device).fill_(False)
    else:
        # A single element counts as any other: 300 is not among numbers of int8.
        dtype = _C._result_type(elements.reshape(-1), among)
        among, elements = among.to(dtype), elements.to(dtype)
        if among.numel() <= _FEW and among.device.type == "cpu":
            found = functools.reduce(operator.or_, [elements == one for one in among.tolist()])
        else:
            among = among.sort().values
            place = searchsorted(among, elements).clamp(max=among.numel() - 1)
            found = among.take(place) == elements
    return ~found if invert else found


def bucketize(
    input: Any,
    boundaries: _C.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """Between which boundaries values lie: searchsorted() with the arguments exchanged.

    Examples
    --------
    >>> import genesis
    >>> genesis.bucketize(genesis.tensor([1, 4]), genesis.tensor([2, 3]))
    tensor([0, 2])
    """
    return searchsorted(boundaries, input, right=right, out_int32=out_int32)


def histc(
    input: _C.Tensor,
    bins: int = 100,
    min: float = 0,
    max: float = 0,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """How many elements lie in each of `bins` parts from `min` to `max`, which belongs to the last.

    Where both are 0 they are the smallest and the largest element.

    Examples
    --------
    >>> import genesis
    >>> genesis.histc(genesis.tensor([0.0, 1.0, 1.5, 2.0]), 2)
    tensor([1., 3.])
    """
    if bins < 1 or max < min:
        raise ValueError(
            f"histc: bins is at least 1 and max not below min, not {bins}, {min} and {max}"
        )
    x = input.reshape(-1).double()
    if min == max == 0 and x.numel():
        min, max = x.amin().item(), x.amax().item()
    if not (math.isfinite(min) and math.isfinite(max)):
        raise ValueError(f"histc: the range from {min} to {max} is not finite")
    if min == max:
        min, max = min - 1, max + 1
    x = x[(x >= min) & (x <= max)]
    place = ((x - min) * (bins / (max - min))).long().clamp(0, bins - 1)
    return bincount(place, minlength=bins).to(input.dtype)


_FOLDS = {"prod": _C.mul, "amax": _C.maximum, "amin": _C.minimum}


def _flat_places(input: _C.Tensor, dim: int, index: _C.Tensor) -> _C.Tensor:
    """Where scatter's elements go, counted in row-major order."""
    places, stride = 0, 1
    for i in range(input.ndim - 1, -1, -1):
        shape = [-1 if k == i else 1 for k in range(input.ndim)]
        along = arange(index.shape[i], device=input.device).reshape(shape)
        places = places + (index if i == dim else along) * stride
        stride *= input.shape[i]
    return places.expand(index.shape).reshape(-1)


def _folded(values: _C.Tensor, places: _C.Tensor, fold: Any) -> tuple[_C.Tensor, _C.Tensor]:
    """Each place once, ascending, and all its values folded into one.

    Equal places lie side by side when they are sorted. Each value then takes over what the one 1,
    2, 4 and so on before it has gathered, if that has the same place: the last has them all.
    """
    places, order = places.sort()
    values, step = values[order], 1
    while step < places.numel():
        is_same = places[step:] == places[:-step]
        if not is_same.any():
            break
        joined = _C.where(is_same, fold(values[step:], values[:-step]), values[step:])
        values, step = cat((values[:step], joined)), step * 2
    is_last = cat((places[1:] != places[:-1], places[:1] == places[:1]))
    return places[is_last], values[is_last]


def scatter_reduce_(
    self: _C.Tensor, dim: int, index: Any, src: _C.Tensor, reduce: str, *, include_self: bool = True
) -> _C.Tensor:
    """Fold elements into those that an index names along a dimension, in place.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` what was there is
    replaced.

    Examples
    --------
    >>> import genesis
    >>> x, index = genesis.zeros(2), genesis.tensor([0, 1, 0])
    >>> x.scatter_reduce_(0, index, genesis.tensor([3.0, -1.0, 5.0]), "amax")
    tensor([5., 0.])
    """
    if reduce != "sum" and reduce != "mean" and reduce not in _FOLDS:
        raise ValueError(
            f"scatter_reduce: reduce is 'sum', 'prod', 'mean', 'amax' or 'amin', not {reduce!r}"
        )
    if src.dtype != self.dtype:
        raise TypeError(f"scatter_reduce: src is {src.dtype}, and the tensor {self.dtype}")
    index = _C.as_tensor(index, device=self.device)
    if not self.ndim:
        row = self.reshape(1)
        scatter_reduce_(
            row, dim, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self
        )
        return self
    is_counted = include_self and reduce == "mean"
    counts = (ones_like if is_counted else zeros_like)(self, dtype=_C.int64)
    counts.scatter_add_(dim, index, ones_like(index))  # checks dim and the index, too
    if index.numel() == 0:
        return self
    if reduce in _FOLDS:
        given = src[tuple(slice(size) for size in index.shape)].reshape(-1)
        factors = wide(given) if reduce == "prod" else given
        row, places = self.reshape(-1), _flat_places(self, dim % self.ndim, index)
        places, folded = _folded(factors, places, _FOLDS[reduce])
        if include_self:
            folded = _FOLDS[reduce](row[places].to(folded.dtype), folded)
        row = row.index_put((places,), folded.to(self.dtype))
        return self.copy_(row.reshape(self.shape))
    base = self if include_self else _C.where(counts > 0, 0, self)
    if reduce == "mean":
        shared = counts.clamp(min=1)
        if not self.dtype.is_floating_point:
            by = shared.to(_C.uint64) if self.dtype == _C.uint64 else shared
            return self.copy_(base.scatter_add(dim, index, src) // by)
        # A sum may be more than its type has, where the mean is not.
        return self.copy_(base.double().scatter_add(dim, index, src.double()) / shared)
    total = wide(base).scatter_add(dim, index, wide(src))  # halves are rounded once
    return self.copy_(total)


def scatter_reduce(
    input: _C.Tensor,
    dim: int,
    index: Any,
    src: _C.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """A copy in which elements are folded into those that an index names along a dimension.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` what was there is
    replaced.

    Examples
    --------
    >>> import genesis
    >>> x, index = genesis.ones(3), genesis.tensor([2, 2, 0])
    >>> genesis.scatter_reduce(x, 0, index, genesis.tensor([2.0, 3.0, 4.0]), "prod")
    tensor([4., 1., 6.])
    """
    return scatter_reduce_(input.clone(), dim, index, src, reduce, include_self=include_self)


def _repeat_by_several(input: _C.Tensor, repeats: Any, dim: int | None) -> _C.Tensor:
    """repeat_interleave() by a tensor of counts; by none: each place so often as the input says."""
    if repeats is None:
        return _repeat_by_several(arange(input.shape[0], device=input.device), input, 0)
    if dim is None:
        input, dim = input.reshape(-1), 0
    count = input.shape[dim]
    repeats = _C.as_tensor(repeats, device=input.device).reshape(-1)
    if repeats.numel() and repeats.amin().item() < 0:
        raise ValueError("repeat_interleave: counts are not negative")
    repeats = repeats.expand(count)
    ends = repeats.cumsum(0).to(_C.int64)
    total = int(ends[-1]) if count else 0
    if count and repeats.double().sum().item() >= 2.0**63:
        raise _C.ShapeError("repeat_interleave: there are more elements than a tensor can have")
    places = searchsorted(ends, arange(total, device=input.device), right=True)
    return input.index_select(dim, places)


def repeat_interleave(
    input: Any,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> _C.Tensor:
    """Each element of a dimension so many times; of counts alone, each place that often.

    Examples
    --------
    >>> import genesis
    >>> genesis.repeat_interleave(genesis.tensor([7, 8]), genesis.tensor([1, 2]))
    tensor([7, 8, 8])
    """
    return input.repeat_interleave(repeats, dim)


# ---- what is there only once ----


def _unique_rows(rows: _C.Tensor) -> tuple[_C.Tensor, _C.Tensor, _C.Tensor]:
    """The places of the first of equal rows, in order; where each row is among them; how often."""
    number = arange(rows.shape[0], device=rows.device) * 0
    for i in range(rows.shape[1]):  # rows that are equal so far have one number
        column = _unique_of_all(rows[:, i].contiguous(), return_inverse=True)[1]
        number = _unique_of_all(number * rows.shape[0] + column, return_inverse=True)[1]
    counts = bincount(number)
    first = number.argsort().index_select(0, counts.cumsum(0) - counts)
    return first, number, counts


_unique_of_all = _C.Tensor.unique


def unique(
    input: _C.Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements, ascending; where each element is among them; how often each occurs.

    With a dimension, the different slices of it.

    Examples
    --------
    >>> import genesis
    >>> genesis.unique(genesis.tensor([3, 1, 3]))
    tensor([1, 3])
    >>> genesis.unique(genesis.tensor([[2, 1], [0, 5], [2, 1]]), dim=0)
    tensor([[0, 5],
            [2, 1]])
    """
    if dim is None:
        return _unique_of_all(input, sorted, return_inverse, return_counts)
    rows = input.movedim(dim, 0)
    rows = rows.reshape(rows.shape[0], rows.numel() // max(rows.shape[0], 1))
    first, inverse, counts = _unique_rows(rows)
    made = (input.index_select(dim, first), inverse, counts)
    wanted = (True, return_inverse, return_counts)
    kept = tuple(one for one, is_wanted in zip(made, wanted, strict=True) if is_wanted)
    return kept if len(kept) > 1 else kept[0]


def unique_consecutive(
    input: _C.Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements without those that are equal to the one before; which one each is; how many.

    With a dimension, the slices of it.

    Examples
    --------
    >>> import genesis
    >>> genesis.unique_consecutive(genesis.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    rows = input.reshape(-1) if dim is None else input.movedim(dim, 0)
    is_new = _C._empty(rows.shape[:1], _C.bool, rows.device).fill_(True)
    is_other = rows[1:] != rows[:-1]
    is_new[1:] = is_other.any(tuple(range(1, rows.ndim))) if rows.ndim > 1 else is_other
    made = [rows[is_new] if dim is None else rows[is_new].movedim(0, dim)]
    number = is_new.cumsum(0) - 1
    if return_inverse:
        made.append(number.view(input.shape) if dim is None else number)
    if return_counts:
        made.append(bincount(number))
    return tuple(made) if len(made) > 1 else made[0]


# ---- places of a matrix ----


def _triangle(
    row: int, col: int, offset: int, is_lower: bool, dtype: Any, device: Any
) -> _C.Tensor:
    distance = arange(col, device=device) - arange(row, device=device).unsqueeze(1)
    places = nonzero(distance <= offset if is_lower else distance >= offset).T.contiguous()
    return places if dtype is None else places.to(dtype=dtype)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """The places on and below a diagonal: a row of rows, and a row of columns.

    Examples
    --------
    >>> import genesis
    >>> genesis.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle(row, col, offset, True, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """The places on and above a diagonal: a row of rows, and a row of columns.

    Examples
    --------
    >>> import genesis
    >>> genesis.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle(row, col, offset, False, dtype, device)


publish(
    globals(),
    __all__,
    methods=(
        *("argwhere", "histc", "index_add", "index_copy", "index_fill", "index_put"),
        *("masked_scatter", "masked_scatter_", "put_", "scatter_reduce"),
        *("scatter_reduce_", "unique", "unique_consecutive"),
    ),
)
_repeat_by_several = _wrapped(_repeat_by_several, "repeat_interleave", False)  # its errors
