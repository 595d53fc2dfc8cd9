"""Functions of tensors that are made of others: what waits in them runs together.

Those that begin with a tensor are its methods, too.
"""

from __future__ import annotations

from genesis import _C
from genesis._C import arange, cat
from genesis._tensor import dtype_of, joined, wide
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "allclose",
    "cat",
    "equal",
    "eye",
    "isclose",
    "linspace",
    "log_softmax",
    "logspace",
    "logsumexp",
    "norm",
    "one_hot",
    "softmax",
    "std",
    "tril",
    "triu",
    "var",
]


def _count(input: _C.Tensor, dim: Any) -> int:
    dims = () if dim is None else _several(dim)
    if not input.ndim or not dims:
        return input.numel()
    count = 1
    for one in dims:
        count *= input.shape[one]
    return count


def variance(
    input: _C.Tensor, dim: Any, correction: Any, keepdim: bool, unbiased: bool | None
) -> _C.Tensor:
    """The variance in float64, whatever the elements are."""
    if dim is True or dim is False:  # PyTorch's x.var(unbiased)
        dim, unbiased = None, dim
    if unbiased is not None or correction is None:
        correction = int(unbiased is not False)
    if not input.dtype.is_floating_point:
        raise TypeError(f"elements are floating numbers, not {input.dtype}")
    # A mean in float32 may be as far from the elements as they are from each other, and their
    # squares may be infinite where the root of their sum is not.
    mean: Any = input.mean(dim, True, dtype=_C.float64)
    if mean.numel() == 1 and mean.device.type == "cpu":
        mean = mean.item()  # a number is subtracted several times faster
    squares = (input.double() - mean).square().sum(dim, keepdim)
    left = _count(input, dim) - correction
    return squares / (left if left > 0 else 0.0)


def var(
    input: _C.Tensor,
    dim: Any = None,
    correction: Any = 1,
    keepdim: bool = False,
    *,
    unbiased: bool | None = None,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """The mean square distance from the mean, of one element less than there are.

    `correction` says how many less; ``unbiased=False`` is a correction of 0.

    Examples
    --------
    >>> import genesis
    >>> genesis.var(genesis.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return variance(input, dim, correction, keepdim, unbiased).to(input.dtype)


def std(
    input: _C.Tensor,
    dim: Any = None,
    correction: Any = 1,
    keepdim: bool = False,
    *,
    unbiased: bool | None = None,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """The square root of the variance.

    Examples
    --------
    >>> import genesis
    >>> genesis.std(genesis.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return variance(input, dim, correction, keepdim, unbiased).sqrt().to(input.dtype)


def norm(
    input: _C.Tensor,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """The p-th root of the sum of the p-th powers of the absolute values.

    `p` is a number, infinity (the largest), minus infinity (the smallest), 0 (how many are not 0)
    or ``"fro"``, which is 2.

    Examples
    --------
    >>> import genesis
    >>> genesis.norm(genesis.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if not input.dtype.is_floating_point:
        raise TypeError(f"norm: elements are floating numbers, not {input.dtype}")
    if dtype is not None:
        input = input.to(dtype)
    x = wide(input)
    if p in ("fro", 2, None):
        made = x.double().square().sum(dim, keepdim).sqrt()  # where squares do not overflow
    elif p == float("inf"):
        made = x.abs().amax(dim, keepdim)
    elif p == float("-inf"):
        made = x.abs().amin(dim, keepdim)
    elif p == 0:
        made = (x != 0).sum(dim, keepdim)
    elif isinstance(p, str):
        raise ValueError(f"norm: p is a number or 'fro', not {p!r}")
    else:
        made = x.abs().pow(p).sum(dim, keepdim).pow(1 / p)
    return made.to(input.dtype)


def _shifted(input: _C.Tensor, dim: Any) -> tuple[_C.Tensor, _C.Tensor]:
    """The elements less the largest, and that; an infinite one is left alone."""
    largest = input.amax(dim, True)
    largest = _C.where(largest.isfinite(), largest, 0)
    return input - largest, largest


def softmax(
    input: _C.Tensor, dim: int, dtype: Any = None, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """exp(x) over the sum of it along a dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.softmax(genesis.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return input.softmax(dim, dtype)


def log_softmax(
    input: _C.Tensor, dim: int, dtype: Any = None, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """The logarithm of softmax, without going there.

    Examples
    --------
    >>> import genesis
    >>> genesis.log_softmax(genesis.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    return input.log_softmax(dim, dtype)


def logsumexp(
    input: _C.Tensor, dim: Any, keepdim: bool = False, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """The logarithm of the sum of exp(x).

    Examples
    --------
    >>> import genesis
    >>> genesis.logsumexp(genesis.tensor([0.0, 0.0]), 0)
    tensor(0.6931)
    """
    floating = input if input.dtype.is_floating_point else input.float()
    if not _count(input, dim):
        return floating.sum(dim, keepdim).log()  # of nothing: -inf
    shifted, largest = _shifted(wide(floating), dim)
    made = (shifted.exp().sum(dim, True).log() + largest).to(floating.dtype)
    return made if keepdim else made.sum(dim)


def isclose(
    input: _C.Tensor,
    other: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """Whether elements differ by no more than `atol` and `rtol` of the second.

    Examples
    --------
    >>> import genesis
    >>> genesis.isclose(genesis.tensor([1.0, 2.0]), genesis.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    if not (rtol >= 0 and atol >= 0):
        raise ValueError(f"isclose: tolerances are not negative: rtol={rtol}, atol={atol}")
    other = _C.as_tensor(other, device=input.device)
    made = input == other
    if rtol == atol == 0 and not equal_nan:
        return made
    (x, y), _ = joined(input, other)
    if not x.dtype.is_floating_point:
        x, y = x.double(), y.double()
    made = made | (((x - y).abs() <= atol + rtol * y.abs()) & y.isfinite())
    return made | (input.isnan() & other.isnan()) if equal_nan else made


def allclose(
    input: _C.Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close.

    Examples
    --------
    >>> import genesis
    >>> genesis.allclose(genesis.tensor([1.0]), genesis.tensor([1.0 + 1e-7]))
    True
    """
    return isclose(input, other, rtol, atol, equal_nan).all().item()


def equal(input: _C.Tensor, other: _C.Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements.

    Examples
    --------
    >>> import genesis
    >>> genesis.equal(genesis.ones(2), genesis.ones(2))
    True
    """
    if not isinstance(other, _C.Tensor):
        raise TypeError(f"equal: both are tensors, not {other!r}")
    return input.shape == other.shape and (input == other).all().item()


def _several(dims: Any) -> Any:
    return (dims,) if hasattr(dims, "__index__") else _C._dimensions(dims)


# ---- creation ----


def _ends(start: Any, end: Any, dtype: Any) -> tuple[Any, Any]:
    """Numbers, of a type: for integers both are cut off, and not only what lies between."""
    ends = [one.item() if isinstance(one, _C.Tensor) else one for one in (start, end)]
    if dtype is None or dtype_of(dtype).is_floating_point:
        return ends[0], ends[1]
    return int(ends[0]), int(ends[1])


def linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """Numbers from `start` to `end`, both among them, at equal distances.

    Examples
    --------
    >>> import genesis
    >>> genesis.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if steps < 0:
        raise ValueError("linspace: the number of steps must not be negative")
    start, end = _ends(start, end, dtype)
    at = arange(steps, dtype=_C.float64, device=device)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    made = _C.where(at < steps / 2, start + at * step, end - (steps - 1 - at) * step)
    return made.to(dtype=dtype or _C.float32)


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
) -> _C.Tensor:
    """Powers of `base` whose exponents go from `start` to `end` at equal distances.

    Examples
    --------
    >>> import genesis
    >>> genesis.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end = _ends(start, end, dtype)
    places = linspace(start, end, steps, dtype=_C.float64, device=device)
    return _C.pow(float(base), places).to(dtype=dtype or _C.float32)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None) -> _C.Tensor:
    """Ones where row and column are equal, zeros elsewhere.

    Examples
    --------
    >>> import genesis
    >>> genesis.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if n < 0 or (m is not None and m < 0):
        raise ValueError(f"eye: {n} rows and {n if m is None else m} columns: neither is negative")
    columns = n if m is None else m
    made = _C.zeros((n, columns), dtype=dtype, device=device)
    made.as_strided((min(n, columns),), (columns + 1,)).fill_(1)
    return made


def _distance(input: _C.Tensor) -> _C.Tensor:
    if input.ndim < 2:
        raise _C.ShapeError(f"a matrix has at least 2 dimensions, not {input.ndim}")
    rows = arange(input.shape[-2], device=input.device)
    return arange(input.shape[-1], device=input.device) - rows.unsqueeze(1)


def _bounded(diagonal: int) -> int:
    """Beyond every matrix is beyond every matrix, also where int64 ends."""
    return max(-(2**62), min(2**62, diagonal))


def _nothing(input: _C.Tensor) -> int:
    return False if input.dtype == _C.bool else 0  # the number of that kind: bool stays bool


def tril(input: _C.Tensor, diagonal: int = 0, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The elements on and below a diagonal, zeros elsewhere.

    Examples
    --------
    >>> import genesis
    >>> genesis.tril(genesis.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _C.where(_distance(input) <= _bounded(diagonal), input, _nothing(input))


def triu(input: _C.Tensor, diagonal: int = 0, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The elements on and above a diagonal, zeros elsewhere.

    Examples
    --------
    >>> import genesis
    >>> genesis.triu(genesis.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _C.where(_distance(input) >= _bounded(diagonal), input, _nothing(input))


def cumsum_(self: _C.Tensor, dim: int, dtype: Any = None) -> _C.Tensor:
    """In place: the sum of the elements up to each, along a dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.tensor([1, 2, 3]).cumsum_(0)
    tensor([1, 3, 6])
    """
    return self.copy_(self.cumsum(dim, dtype))


def cumprod_(self: _C.Tensor, dim: int, dtype: Any = None) -> _C.Tensor:
    """In place: the product of the elements up to each, along a dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.tensor([1, 2, 3]).cumprod_(0)
    tensor([1, 2, 6])
    """
    return self.copy_(self.cumprod(dim, dtype))


def tril_(self: _C.Tensor, diagonal: int = 0) -> _C.Tensor:
    """In place: zeros above a diagonal.

    Examples
    --------
    >>> import genesis
    >>> genesis.ones(2, 2).tril_()
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _C.where(_distance(self) <= _bounded(diagonal), self, _nothing(self), out=self)


def triu_(self: _C.Tensor, diagonal: int = 0) -> _C.Tensor:
    """In place: zeros below a diagonal.

    Examples
    --------
    >>> import genesis
    >>> genesis.ones(2, 2).triu_()
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _C.where(_distance(self) >= _bounded(diagonal), self, _nothing(self), out=self)


def where(self: _C.Tensor, condition: _C.Tensor, other: Any) -> _C.Tensor:
    """Its elements where a condition is true, those of the other elsewhere.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([-1, 2])
    >>> x.where(x > 0, 0)
    tensor([0, 2])
    """
    return _C.where(condition, self, other)


def one_hot(input: _C.Tensor, num_classes: int = -1) -> _C.Tensor:
    """A 1 at the place that each element names, zeros elsewhere, along a new last dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.one_hot(genesis.tensor([1, 0]))
    tensor([[0, 1],
            [1, 0]])
    """
    if input.dtype.is_floating_point:
        raise TypeError(f"one_hot: classes are integers, not {input.dtype.name}")
    if num_classes < -1:
        raise ValueError(
            f"one_hot: num_classes is positive, or -1 for the largest + 1: {num_classes}"
        )
    if input.numel():
        least, most = input.amin().item(), input.amax().item()
        if least < 0:
            raise IndexError(
                f"one_hot: a class is not negative, and {least} is one of the elements"
            )
        if num_classes >= 0 and most >= num_classes:
            raise IndexError(
                f"one_hot: {most} is one of the elements, and num_classes is {num_classes}"
            )
        num_classes = most + 1 if num_classes < 0 else num_classes
    elif num_classes < 0:
        raise ValueError("one_hot: without elements the number of classes must be given")
    return (input.unsqueeze(-1) == arange(num_classes, device=input.device)).to(_C.int64)


publish(
    globals(),
    __all__,
    methods=(
        *("allclose", "cumprod_", "cumsum_", "equal"),
        *("isclose", "logsumexp", "norm", "std", "tril", "tril_", "triu", "triu_"),
        *("var", "where"),
    ),
)
