"""Counts, means, medians and the like, made of the other functions.

Those that begin with a tensor are its methods, too.
"""

from __future__ import annotations

from genesis import _C
from genesis._C import arange, count_nonzero
from genesis._tensor_calls import publish
from genesis._tensor_functions import cat, variance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "aminmax",
    "count_nonzero",
    "diff",
    "kthvalue",
    "median",
    "mode",
    "nanmean",
    "nansum",
    "quantile",
    "std_mean",
    "var_mean",
]


def nansum(
    input: _C.Tensor,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """The sum of the elements that are no NaN.

    Examples
    --------
    >>> import genesis
    >>> genesis.nansum(genesis.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    kept = _C.where(input.isnan(), 0, input) if input.dtype.is_floating_point else input
    return kept.sum(dim, keepdim, dtype=dtype)


def nanmean(
    input: _C.Tensor,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """The mean of the elements that are no NaN.

    Examples
    --------
    >>> import genesis
    >>> genesis.nanmean(genesis.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    # A sum may be more than its type has, where the mean is not.
    total = nansum(input, dim, keepdim, _C.float64)
    return (total / (~input.isnan()).sum(dim, keepdim)).to(dtype=dtype or input.dtype)


class MinMax(tuple):
    """A pair (min, max), by these names, too."""

    __slots__ = ()
    min = property(lambda self: self[0], doc="The smallest element.")
    max = property(lambda self: self[1], doc="The largest element.")


def aminmax(input: _C.Tensor, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest element, as a pair (min, max).

    Examples
    --------
    >>> import genesis
    >>> genesis.aminmax(genesis.tensor([3, 1, 2]))
    (tensor(1), tensor(3))
    """
    return MinMax((input.amin(dim, keepdim), input.amax(dim, keepdim)))


def var_mean(
    input: _C.Tensor,
    dim: Any = None,
    correction: Any = 1,
    keepdim: bool = False,
    *,
    unbiased: bool | None = None,
) -> tuple[_C.Tensor, _C.Tensor]:
    """The variance and the mean.

    Examples
    --------
    >>> import genesis
    >>> genesis.var_mean(genesis.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    made = variance(input, dim, correction, keepdim, unbiased).to(input.dtype)
    return made, input.mean(None if isinstance(dim, bool) else dim, keepdim)


def std_mean(
    input: _C.Tensor,
    dim: Any = None,
    correction: Any = 1,
    keepdim: bool = False,
    *,
    unbiased: bool | None = None,
) -> tuple[_C.Tensor, _C.Tensor]:
    """The standard deviation and the mean.

    Examples
    --------
    >>> import genesis
    >>> genesis.std_mean(genesis.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    made = variance(input, dim, correction, keepdim, unbiased).sqrt().to(input.dtype)
    return made, input.mean(None if isinstance(dim, bool) else dim, keepdim)


def _squeezed(pair: Any, dim: int, keepdim: bool) -> Any:
    """Values and indices of one element of a dimension, which goes."""
    return pair if keepdim else type(pair)(tuple(one.squeeze(dim) for one in pair))


def median(
    input: _C.Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None
) -> Any:
    """The element in the middle, the lower one of two; along a dimension a pair with its index.

    Examples
    --------
    >>> import genesis
    >>> genesis.median(genesis.tensor([5, 1, 3, 2]))
    tensor(2)
    """
    flat = input.reshape(-1) if dim is None or not input.ndim else input
    at = 0 if flat is not input else dim
    if not flat.shape[at]:
        if dim is None and flat.dtype.is_floating_point:
            return _C.as_tensor(float("nan"), dtype=flat.dtype, device=flat.device)
        raise IndexError(f"median: dimension {at} of shape {input.shape} has no elements")
    middle = (flat.shape[at] - 1) // 2
    if dim is None and flat.device.type == "cpu":
        found = flat._kth(middle)
        largest = flat.amax() if flat.dtype.is_floating_point else found
        return _C.where(largest.isnan(), largest, found) if largest is not found else found
    ordered = flat.sort(at)  # NaN comes last
    place = ordered.values.narrow(at, middle, 1).long() * 0 + middle
    if flat.dtype.is_floating_point:  # one NaN makes it NaN: the first of them
        is_nan = ordered.values.isnan()
        place = _C.where(is_nan.any(at, True), is_nan.byte().argmax(at, True), middle)
    found = type(ordered)(tuple(one.gather(at, place) for one in ordered))
    if dim is None:
        return found.values.reshape(())
    return _squeezed(found, at, keepdim and input.ndim > 0)


def kthvalue(
    input: _C.Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None
) -> Any:
    """The k-th smallest element of a dimension, from 1 on, and where it is; NaN is the largest.

    Examples
    --------
    >>> import genesis
    >>> genesis.kthvalue(genesis.tensor([5, 1, 3]), 2).values
    tensor(3)
    """
    row = input if input.ndim else input.reshape(1)
    size = row.shape[dim]
    if not 1 <= k <= size:
        raise ValueError(f"kthvalue: k is from 1 to {size}, not {k}, for shape {input.shape}")
    smallest = row.topk(k, dim, largest=False)
    found = type(smallest)(tuple(one.narrow(dim, k - 1, 1) for one in smallest))
    return _squeezed(found, dim, keepdim and input.ndim > 0)


def mode(input: _C.Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The element that occurs most often, the smallest of several, and where the last of it is.

    Examples
    --------
    >>> import genesis
    >>> values, indices = genesis.mode(genesis.tensor([2, 7, 7, 2, 9]))
    >>> values, indices
    (tensor(2), tensor(3))
    """
    row = input if input.ndim else input.reshape(1)
    size = row.shape[dim]
    if size == 0:
        raise IndexError(f"mode: dimension {dim} of shape {input.shape} has no elements")
    ordered = row.sort(dim)
    values = ordered.values.movedim(dim, -1)
    # How many equal ones there are up to each: it is largest where the longest run ends.
    places = arange(size, device=input.device)
    is_new = values.narrow(-1, 1, size - 1) != values.narrow(-1, 0, size - 1)
    starts = cat((values.narrow(-1, 0, 1).long() * 0, places[1:] * is_new), -1).cummax(-1).values
    end = (places - starts).argmax(-1, keepdim=True).movedim(-1, dim)
    found = type(ordered)(tuple(one.gather(dim, end) for one in ordered))
    return _squeezed(found, dim, keepdim and input.ndim > 0)


def quantile(
    input: _C.Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """The element that a fraction `q` of all is below, with what lies between two.

    `interpolation` says what is taken of two: "linear", "lower", "higher", "midpoint", "nearest".

    Examples
    --------
    >>> import genesis
    >>> genesis.quantile(genesis.tensor([1.0, 2.0, 4.0]), 0.75)
    tensor(3.)
    """
    if not input.dtype.is_floating_point:
        raise TypeError(f"quantile: elements are floating numbers, not {input.dtype}")
    flat = input.reshape(-1) if dim is None or not input.ndim else input.movedim(dim, -1)
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ValueError(f"quantile: there is no interpolation {interpolation!r}")
    if not flat.shape[-1]:
        raise ValueError("quantile: there are no elements")
    fractions = _C.as_tensor(q, dtype=_C.float64, device=input.device)  # places are not rounded
    if not (fractions.amin().item() >= 0 and fractions.amax().item() <= 1):
        raise ValueError(f"quantile: fractions are from 0 to 1, not {q!r}")
    values = flat.sort(-1).values
    places = fractions.reshape(-1) * (flat.shape[-1] - 1)
    if interpolation == "nearest":
        places = places.round()
    below, above = places.floor(), places.ceil()
    low, high = (values.index_select(-1, one.long()) for one in (below, above))
    share = {"lower": 0.0, "higher": 1.0, "midpoint": (above - below) / 2}
    made = _C.lerp(low, high, share.get(interpolation, places - below)).to(input.dtype)
    made = _C.where(values.isnan().any(-1, True), float("nan"), made)  # (..., fractions)
    if keepdim:
        made = made.unsqueeze(-2)
        has_dim = dim is not None and input.ndim > 0
        made = made.movedim(-2, dim) if has_dim else made.view([1] * input.ndim + [-1])
    return made.movedim(-1, 0) if fractions.ndim else made.squeeze(-1)


def diff(
    input: _C.Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: _C.Tensor | None = None,
    append: _C.Tensor | None = None,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """How much each element is more than the one before, `n` times.

    `prepend` and `append` are put before and behind the elements first.

    Examples
    --------
    >>> import genesis
    >>> genesis.diff(genesis.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if not input.ndim:
        raise _C.ShapeError("diff: the tensor has no dimension along which elements differ")
    if n < 0:
        raise ValueError(f"diff: it is done 0 times or more, not {n} times")
    if n > 0 and (prepend is not None or append is not None):
        input = cat([one for one in (prepend, input, append) if one is not None], dim)
    if not input.numel():  # as many steps as the caller says, at once
        return input.narrow(dim, 0, max(input.shape[dim] - n, 0)).clone()
    for _ in range(min(n, input.shape[dim])):  # then nothing is left
        length = max(input.shape[dim] - 1, 0)
        later, earlier = (
            input.narrow(dim, input.shape[dim] - length, length),
            input.narrow(dim, 0, length),
        )
        input = later ^ earlier if input.dtype == _C.bool else later - earlier
    return input


publish(
    globals(),
    __all__,
    methods=(
        *("aminmax", "diff", "kthvalue", "median", "mode", "nanmean", "nansum"),
        *("quantile",),
    ),
)
