"""What of tensors is written in Python: creation like another tensor, text, and pickling."""

from __future__ import annotations

from genesis import _C
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "empty_like",
    "full",
    "full_like",
    "max",
    "min",
    "ones_like",
    "sort",
    "topk",
    "zeros_like",
]

_EDGE = 3  # items at each end of a long dimension in the text
_WHOLE = 1000  # elements up to which everything is shown
_SHOWN = 100_000  # elements beyond which fewer are shown at each end: of many dimensions


def _is_integer(one: Any) -> bool:
    """Whether it is one integer; an array of several has ``__index__``, too."""
    return isinstance(one, int) or (hasattr(one, "__index__") and not getattr(one, "ndim", 0))


def _plain(number: Any) -> Any:
    """NumPy's numbers, and tensors of one element, as the numbers of Python that they are."""
    return number.item() if hasattr(number, "item") else number


def shape_of(sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """A shape from arguments: integers, one sequence of them, or one that has a name."""
    if size is not None:
        if sizes:
            raise TypeError(f"a shape is given once: {sizes} and size={size}")
        return (size,) if _is_integer(size) else _C._dimensions(size)
    if len(sizes) == 1 and not _is_integer(sizes[0]):
        if not hasattr(sizes[0], "__iter__") and not hasattr(sizes[0], "__getitem__"):
            raise TypeError(f"a shape is of integers, not {sizes[0]!r}")
        return _C._dimensions(sizes[0])
    return sizes


def dtype_of(named: Any) -> _C.dtype:
    """A dtype, or the one that a name is for."""
    return named if isinstance(named, _C.dtype) else _C._empty((0,), named, "cpu").dtype


def wide(input: _C.Tensor) -> _C.Tensor:
    """Halves as float32: each step rounds them, and sums of many have no place in one."""
    return input.float() if input.dtype in (_C.float16, _C.bfloat16) else input


def joined(*operands: Any, is_floating: bool = False) -> tuple[list[Any], _C.dtype]:
    """Operands of one operation that is made of several, and the dtype of what comes out.

    Their dtype is found once, from all of them, as if it were one operation: by steps, a pair of
    them could have one that does not hold what the third one has. Tensors are converted to it,
    halves to float32 (they are rounded at the end, once). `is_floating`: integers become float32.
    """
    if not all(isinstance(one, (_C.Tensor, int, float)) for one in operands):  # arrays among them
        place = next((one.device for one in operands if isinstance(one, _C.Tensor)), None)
        operands = tuple(_C.as_tensor(one, device=place) for one in operands)
    dtype = _C._result_type(*operands)
    if is_floating and not dtype.is_floating_point:
        dtype = _C.float32
    held = _C.float32 if dtype in (_C.float16, _C.bfloat16) else dtype
    made = [one.to(held) if isinstance(one, _C.Tensor) else one for one in operands]
    return made, dtype


def full(
    size: Any, fill_value: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False
) -> _C.Tensor:
    """A tensor of one number; without a dtype that of the number.

    Examples
    --------
    >>> import genesis
    >>> genesis.full((2,), 7)
    tensor([7, 7])
    """
    if dtype is None and isinstance(fill_value, _C.Tensor):
        dtype = fill_value.dtype
    elif dtype is None:
        kinds = ((bool, _C.bool), (int, _C.int64))
        number = _plain(fill_value)
        dtype = next((kind for type_, kind in kinds if isinstance(number, type_)), None)
    made = (_C._empty_pinned if pin_memory else _C._empty)(shape_of((), size), dtype, device)
    return made.fill_(fill_value)


def empty_like(input: _C.Tensor, dtype: Any = None, device: Any = None) -> _C.Tensor:
    """A tensor of the same shape, whose elements are not set.

    Examples
    --------
    >>> import genesis
    >>> genesis.empty_like(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    return _C._empty(input.shape, dtype or input.dtype, device or input.device)


def zeros_like(input: _C.Tensor, dtype: Any = None, device: Any = None) -> _C.Tensor:
    """A tensor of the same shape, of zeros.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros_like(genesis.tensor([1, 2]))
    tensor([0, 0])
    """
    return empty_like(input, dtype, device).fill_(0)


def ones_like(input: _C.Tensor, dtype: Any = None, device: Any = None) -> _C.Tensor:
    """A tensor of the same shape, of ones.

    Examples
    --------
    >>> import genesis
    >>> genesis.ones_like(genesis.tensor([3.0]))
    tensor([1.])
    """
    return empty_like(input, dtype, device).fill_(1)


def full_like(
    input: _C.Tensor, fill_value: Any, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """A tensor of the same shape, of one number.

    Examples
    --------
    >>> import genesis
    >>> genesis.full_like(genesis.tensor([1, 2]), 5)
    tensor([5, 5])
    """
    return empty_like(input, dtype, device).fill_(fill_value)


def sort(
    input: _C.Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    out: Any = None,
) -> Any:
    """The sorted elements and where they were, as a pair (values, indices); always stable.

    Examples
    --------
    >>> import genesis
    >>> genesis.sort(genesis.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    return input.sort(dim, descending, stable)


def argsort(
    input: _C.Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """Where the sorted elements are.

    Examples
    --------
    >>> import genesis
    >>> genesis.argsort(genesis.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return input.argsort(dim, descending, stable)


def topk(
    input: _C.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
) -> Any:
    """The k largest or smallest elements, in order, as a pair (values, indices).

    Examples
    --------
    >>> import genesis
    >>> genesis.topk(genesis.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    return input.topk(k, dim, largest, sorted)


def argmax(
    input: _C.Tensor, dim: int | None = None, keepdim: bool = False, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """Where the first of the largest elements is.

    Examples
    --------
    >>> import genesis
    >>> genesis.argmax(genesis.tensor([3, 9, 2]))
    tensor(1)
    """
    return input.argmax(dim, keepdim)


def argmin(
    input: _C.Tensor, dim: int | None = None, keepdim: bool = False, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """Where the first of the smallest elements is.

    Examples
    --------
    >>> import genesis
    >>> genesis.argmin(genesis.tensor([3, 9, 2]))
    tensor(2)
    """
    return input.argmin(dim, keepdim)


def max(input: _C.Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The largest element; along a dimension a pair (values, indices); of two tensors the larger.

    Examples
    --------
    >>> import genesis
    >>> genesis.max(genesis.tensor([[1, 5], [7, 2]]), 1).indices
    tensor([1, 0])
    """
    return input.max(dim, keepdim)


def min(input: _C.Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The smallest element; along a dimension a pair (values, indices); of two tensors the smaller.

    Examples
    --------
    >>> import genesis
    >>> genesis.min(genesis.tensor([[1, 5], [7, 2]]), 1).values
    tensor([1, 2])
    """
    return input.min(dim, keepdim)


def cumsum(
    input: _C.Tensor, dim: int, dtype: Any = None, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """The sum of the elements up to each, along a dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.cumsum(genesis.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    return input.cumsum(dim, dtype)


def cumprod(
    input: _C.Tensor, dim: int, dtype: Any = None, *, out: _C.Tensor | None = None
) -> _C.Tensor:
    """The product of the elements up to each, along a dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.cumprod(genesis.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """
    return input.cumprod(dim, dtype)


def cummax(input: _C.Tensor, dim: int, *, out: Any = None) -> Any:
    """The largest of the elements up to each, and where the last of them is; NaN wins.

    Examples
    --------
    >>> import genesis
    >>> values, indices = genesis.cummax(genesis.tensor([1, 3, 2, 3]), 0)
    >>> values, indices
    (tensor([1, 3, 3, 3]), tensor([0, 1, 1, 3]))
    """
    return input.cummax(dim)


def cummin(input: _C.Tensor, dim: int, *, out: Any = None) -> Any:
    """The smallest of the elements up to each, and where the last of them is; NaN wins.

    Examples
    --------
    >>> import genesis
    >>> genesis.cummin(genesis.tensor([3, 1, 2]), 0).values
    tensor([3, 1, 1])
    """
    return input.cummin(dim)


# ---- text ----


def _largest(numbers: Any, default: Any) -> Any:
    import builtins

    return builtins.max(numbers, default=default)


def _number_texts(values: list[Any]) -> list[str]:
    """Numbers of one tensor, as wide as each other."""
    from math import isfinite

    if not any(isinstance(value, float) for value in values):
        texts = [str(value) for value in values]
    else:
        finite = [value for value in values if isfinite(value)]
        largest = _largest((abs(value) for value in finite), 0.0)
        smallest = -_largest((-abs(value) for value in finite if value), -1.0)
        if largest >= 1e8 or smallest < 1e-4 or largest / smallest > 1e3 and largest >= 1e5:
            texts = [f"{value:.4e}" for value in values]
        elif all(value == int(value) for value in finite):
            texts = [f"{value:.0f}." if isfinite(value) else str(value) for value in values]
        else:
            texts = [f"{value:.4f}" if isfinite(value) else str(value) for value in values]
    width = _largest((len(text) for text in texts), 0)
    return [text.rjust(width) for text in texts]


def _flat(part: Any) -> list[Any]:
    return [one for item in part for one in _flat(item)] if isinstance(part, list) else [part]


def _edge_of(shape: tuple[int, ...]) -> int:
    """How many items to show at each end of a long dimension."""
    edge, shown = _EDGE, _SHOWN + 1
    while shown > _SHOWN and edge > 0:
        shown = 1
        for size in shape:
            shown *= size if size <= 2 * edge else 2 * edge
        edge -= 1
    return edge + 1


def _edges(tensor: _C.Tensor, edge: int) -> Any:
    """The elements as lists, without the inner ones of long dimensions; with 0 all."""
    if tensor.ndim == 0:
        return tensor.item()
    length = tensor.shape[0]
    if not edge or length <= 2 * edge:
        return [_edges(tensor[i], edge) for i in range(length)]
    first = [_edges(tensor[i], edge) for i in range(edge)]
    last = [_edges(tensor[i], edge) for i in range(length - edge, length)]
    return [*first, None, *last]


def _lines(part: Any, texts: Any, indent: int) -> str:
    if part is None:
        return "..."
    if not isinstance(part, list):
        return next(texts)
    items = [_lines(item, texts, indent + 1) for item in part]
    if any(isinstance(item, list) for item in part):
        depth = _depth(part)
        return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(items) + "]"
    return "[" + ", ".join(items) + "]"


def _depth(part: Any) -> int:
    return (
        1 + _largest((_depth(item) for item in part if item is not None), 0)
        if isinstance(part, list)
        else 0
    )


def text_of(tensor: _C.Tensor) -> str:
    """The text of a tensor, as repr() gives it."""
    place, dtype = tensor.device, tensor.dtype
    if place.type != "cpu" and tensor.numel() <= _WHOLE:
        tensor = tensor.cpu()
    words = ["[]"]
    if tensor.numel():
        part = _edges(tensor, 0 if tensor.numel() <= _WHOLE else _edge_of(tensor.shape))
        texts = _number_texts([value for value in _flat(part) if value is not None])
        words = [_lines(part, iter(texts), len("tensor("))]
    if tensor.numel() == 0 and tensor.ndim != 1:
        words.append(f"size={tensor.shape}")
    usual = (_C.float32, _C.int64, _C.bool)
    if place.type != "cpu":
        words.append(f"device='{place}'")
    if dtype not in usual or tensor.numel() == 0:
        words.append(f"dtype={dtype}")
    return f"tensor({', '.join(words)})"


# ---- pickling ----


def restore(data: bytes, shape: tuple[int, ...], name: str, device: str = "cpu") -> _C.Tensor:
    """Make a pickled tensor again, where it was."""
    dtype = dtype_of(name)
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= size
    if len(data) != nbytes:
        raise ValueError(
            f"a pickled tensor of shape {shape} and {dtype} has {nbytes} bytes, not {len(data)}"
        )
    made = _C._empty(shape, dtype, "cpu")
    _C._set_bytes(made, 0, data)
    return made.to(device=device)


def reduced(tensor: _C.Tensor) -> tuple[Any, ...]:
    """What pickle writes of a tensor."""
    near = tensor.cpu().contiguous()
    data = _C._bytes_of(near, 0, near.numel())
    return restore, (data, near.shape, near.dtype.name, str(tensor.device))


publish(globals(), __all__)
