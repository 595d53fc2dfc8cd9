"""Second names of functions, questions about tensors and types, and tensors like another.

PyTorch and NumPy call several things by two names; programs use both.
"""

from __future__ import annotations

from genesis import _C
from genesis._C import full
from genesis._tensor import dtype_of, shape_of
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "asarray",
    "can_cast",
    "clone",
    "finfo",
    "iinfo",
    "is_floating_point",
    "is_tensor",
    "numel",
    "promote_types",
    "result_type",
]

# ---- tensors ----


def asarray(
    data: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> _C.Tensor:
    """A tensor of anything that has elements, which share memory with it where that can be.

    With ``copy=True`` they never do, and with ``copy=False`` always, or there is a ValueError.

    Examples
    --------
    >>> import genesis
    >>> genesis.asarray([1, 2])
    tensor([1, 2])
    """
    if copy is None or copy:
        return (_C.tensor if copy else _C.as_tensor)(data, dtype=dtype, device=device)
    shared = _memory_of(data)
    if (dtype or shared.dtype) != shared.dtype or (device or shared.device) != shared.device:
        raise ValueError(
            f"asarray: {shared.dtype} on {shared.device} cannot be shared as "
            f"{dtype or shared.dtype} on {device or shared.device}"
        )
    return shared


def _memory_of(data: Any) -> _C.Tensor:
    """The memory of an object as a tensor, for asarray()."""
    if isinstance(data, _C.Tensor):
        return data
    if hasattr(data, "__dlpack__"):
        return _C.from_dlpack(data, copy=False)
    if hasattr(data, "__cuda_array_interface__"):
        return _C.as_tensor(data)
    problem = None
    # NumPy's single numbers, which have no length, and bytes have memory, but it never changes.
    if hasattr(data, "__len__") and not isinstance(data, bytes):
        try:
            return _C.from_numpy(data)
        except TypeError as error:
            problem = error
    raise ValueError(
        f"asarray: {data.__class__.__name__} cannot be shared, as copy=False asks"
    ) from problem


def clone(input: _C.Tensor) -> _C.Tensor:
    """A contiguous copy.

    Examples
    --------
    >>> import genesis
    >>> genesis.clone(genesis.tensor([1, 2]))
    tensor([1, 2])
    """
    return input.clone()


def numel(input: _C.Tensor) -> int:
    """How many elements there are.

    Examples
    --------
    >>> import genesis
    >>> genesis.numel(genesis.zeros(2, 3))
    6
    """
    return input.numel()


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor of Genesis.

    Examples
    --------
    >>> import genesis
    >>> genesis.is_tensor(genesis.zeros(2)), genesis.is_tensor([1, 2])
    (True, False)
    """
    return isinstance(obj, _C.Tensor)


def is_floating_point(input: _C.Tensor) -> bool:
    """Whether the elements are floating numbers.

    Examples
    --------
    >>> import genesis
    >>> genesis.is_floating_point(genesis.zeros(2))
    True
    """
    return input.dtype.is_floating_point


def is_signed(self: _C.Tensor) -> bool:
    """Whether the elements can be negative."""
    return self.dtype.is_signed


def get_device(self: _C.Tensor) -> int:
    """The index of its GPU; -1 on the CPU."""
    return self.device.index if self.device.type == "cuda" else -1


class ElementCount(int):
    """How many elements a tensor has, as NumPy's ``x.size``; called, its sizes, as PyTorch's.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.zeros(2, 3)
    >>> x.size, x.size(), x.size(1)
    (6, (2, 3), 3)
    """

    def __call__(self, dim: int | None = None) -> Any:
        """The sizes of all dimensions, or of one."""
        if dim is None:
            return self._shape
        ndim = len(self._shape)
        if not hasattr(dim, "__index__"):
            raise TypeError(f"size: a dimension is an integer, not {dim!r}")
        if not -ndim <= dim < ndim:
            plural = "" if ndim == 1 else "s"
            raise IndexError(
                f"dimension {dim} is out of range for a tensor of {ndim} dimension{plural}"
            )
        return self._shape[dim]

    def __reduce__(self) -> Any:
        """Pickled and copied it is a number."""
        return int, (int(self),)


def _size(self: _C.Tensor) -> ElementCount:
    """How many elements there are; called, the sizes of all dimensions, or of one."""
    count = ElementCount(self.numel())
    count._shape = self.shape
    return count


def astype(
    self: _C.Tensor,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> _C.Tensor:
    """The elements as another dtype, as NumPy names it: a copy, unless that is not wanted.

    `casting` says what is allowed: ``"unsafe"`` all, ``"same_kind"`` what :func:`can_cast` allows,
    ``"safe"`` what keeps every number, ``"no"`` nothing.

    Examples
    --------
    >>> import genesis
    >>> genesis.tensor([1.5, 2.5]).astype("int64")
    tensor([1, 2])
    """
    to = dtype_of(dtype)
    allowed = {
        "unsafe": True,
        "same_kind": can_cast(self.dtype, to),
        "safe": holds(to, self.dtype),
        "equiv": self.dtype == to,
        "no": self.dtype == to,
    }
    if casting not in allowed:
        raise ValueError(f"astype: casting is one of {', '.join(allowed)}, not {casting!r}")
    if not allowed[casting]:
        raise TypeError(f"astype: {self.dtype} does not become {to} with casting={casting!r}")
    return self.to(to, copy=copy)


def copy(self: _C.Tensor, order: str = "C") -> _C.Tensor:
    """A contiguous copy, as NumPy names it.

    Examples
    --------
    >>> import genesis
    >>> genesis.ones(2).copy()
    tensor([1., 1.])
    """
    return self.clone()


def type_as(self: _C.Tensor, other: _C.Tensor) -> _C.Tensor:
    """The elements with the dtype of another tensor."""
    return self.to(other.dtype)


_TYPE_NAMES = {
    "ByteTensor": _C.uint8,
    "UInt16Tensor": _C.uint16,
    "UInt32Tensor": _C.uint32,
    "UInt64Tensor": _C.uint64,
    "CharTensor": _C.int8,
    "ShortTensor": _C.int16,
    "IntTensor": _C.int32,
    "LongTensor": _C.int64,
    "BoolTensor": _C.bool,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
}


def type(self: _C.Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of its dtype and place; or its elements as another dtype, or as such a name says.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.5])
    >>> x.type(), x.type(genesis.int64), x.type("genesis.HalfTensor").dtype
    ('genesis.FloatTensor', tensor([1]), genesis.float16)
    """
    if dtype is None:
        name = next(name for name, one in _TYPE_NAMES.items() if one == self.dtype)
        return f"genesis.cuda.{name}" if self.device.type == "cuda" else f"genesis.{name}"
    if isinstance(dtype, str) and dtype.startswith("genesis.") and dtype.endswith("Tensor"):
        *places, name = dtype.split(".")[1:]
        if name not in _TYPE_NAMES or places not in ([], ["cuda"]):
            raise TypeError(f"type: there is no {dtype!r}")
        place = places[0] if places else "cpu"
        is_there = self.device.type == place  # on whichever GPU
        return self.to(self.device if is_there else place, _TYPE_NAMES[name])
    return self.to(dtype=dtype)


def _new_shape(self: _C.Tensor, sizes: Any, size: Any, dtype: Any, device: Any) -> _C.Tensor:
    return _C._empty(shape_of(sizes, size), dtype or self.dtype, device or self.device)


def new_empty(
    self: _C.Tensor, *shape: Any, size: Any = None, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """A tensor of the same dtype on the same device, whose elements are not set."""
    return _new_shape(self, shape, size, dtype, device)


def new_zeros(
    self: _C.Tensor, *shape: Any, size: Any = None, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """A tensor of zeros of the same dtype on the same device."""
    return _new_shape(self, shape, size, dtype, device).fill_(0)


def new_ones(
    self: _C.Tensor, *shape: Any, size: Any = None, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """A tensor of ones of the same dtype on the same device."""
    return _new_shape(self, shape, size, dtype, device).fill_(1)


def new_full(
    self: _C.Tensor, size: Any, fill_value: Any, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """A tensor of one number of the same dtype on the same device."""
    return full(size, fill_value, dtype or self.dtype, device or self.device)


def new_tensor(self: _C.Tensor, data: Any, dtype: Any = None, device: Any = None) -> _C.Tensor:
    """A copy of numbers with the same dtype on the same device."""
    return _C.tensor(data, dtype=dtype or self.dtype, device=device or self.device)


def _contains(self: _C.Tensor, value: Any) -> bool:
    """Whether an element is equal to it."""
    return bool((self == value).any())


def _reversed(self: _C.Tensor) -> _C.Tensor:
    """A copy with all dimensions the other way round, as PyTorch has it."""
    return self.flip(tuple(range(self.ndim)))


def _formatted(self: _C.Tensor, spec: str) -> str:
    """The number of a tensor without dimensions, as Python formats it; else the text."""
    return format(self.item(), spec) if not self.ndim else format(str(self), spec)


def _complex(self: _C.Tensor) -> complex:
    """The number of a tensor of one element."""
    return complex(self.item())


def _array_namespace(self: _C.Tensor, *, api_version: str | None = None) -> Any:
    """The module of the array API standard: genesis.array_api, or as an older version has it."""
    from genesis import array_api

    return array_api._namespace(api_version)


def to_device(self: _C.Tensor, device: Any, /, *, stream: Any = None) -> _C.Tensor:
    """The tensor on a device, as the array API standard names it."""
    if stream is not None:
        raise ValueError("to_device: the current stream is used: see genesis.cuda.stream()")
    return self.to(device=device)


_C.Tensor.size = property(_size, doc=_size.__doc__)
_C.Tensor.__array_namespace__ = _array_namespace
_C.Tensor.__complex__ = _complex
_C.Tensor.__contains__ = _contains
_C.Tensor.__reversed__ = _reversed
_C.Tensor.__format__ = _formatted
_C.Tensor.is_cuda = property(lambda self: self.device.type == "cuda", doc="Whether it is on a GPU.")
_C.Tensor.itemsize = property(lambda self: self.element_size(), doc="Bytes of an element.")
_C.Tensor.nelement = numel
_C.Tensor.ndimension = _C.Tensor.dim
_C.Tensor.is_floating_point = is_floating_point


# ---- types ----


def result_type(tensor1: Any, tensor2: Any) -> _C.dtype:
    """The dtype that an operation on two tensors or numbers has.

    Examples
    --------
    >>> import genesis
    >>> genesis.result_type(genesis.tensor([1]), 1.5)
    genesis.float32
    """
    both = [one for one in (tensor1, tensor2) if isinstance(one, _C.Tensor)]
    if not both:
        return _C._result_type(_C.as_tensor(tensor1), _C.as_tensor(tensor2))
    if len(both) == 2:
        return _C._result_type(*both)
    empty = [
        one[:0] if isinstance(one, _C.Tensor) and one.ndim else one for one in (tensor1, tensor2)
    ]
    return _C.where(_C._empty((), _C.bool, both[0].device), *empty).dtype


def promote_types(type1: Any, type2: Any) -> _C.dtype:
    """The dtype that has the numbers of both.

    Examples
    --------
    >>> import genesis
    >>> genesis.promote_types(genesis.uint8, genesis.int8)
    genesis.int16
    """
    return _C._result_type(*(_C._empty((0,), one, "cpu") for one in (type1, type2)))


def holds(dtype: Any, other: Any) -> bool:
    """Whether a dtype is what it and another one are promoted to."""
    try:
        return promote_types(dtype, other) == dtype
    except TypeError:  # uint64 and a signed integer
        return False


def can_cast(from_: Any, to: Any) -> bool:
    """Whether an operation in place may store one dtype as another: kinds do not go down.

    Examples
    --------
    >>> import genesis
    >>> genesis.can_cast(genesis.float64, genesis.float32)
    True
    """
    kinds = [(one.is_floating_point, one != _C.bool) for one in map(dtype_of, (from_, to))]
    return kinds[0] <= kinds[1]


class finfo:  # noqa: N801 - as in PyTorch and NumPy
    """What a floating dtype can hold.

    Examples
    --------
    >>> import genesis
    >>> genesis.finfo(genesis.float32).bits, genesis.finfo(genesis.float16).max
    (32, 65504.0)
    """

    # bits of the exponent, and behind the point
    _LAYOUTS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}

    def __init__(self, type: Any = _C.float32) -> None:
        dtype = dtype_of(type)
        if not dtype.is_floating_point:
            raise TypeError(f"finfo: {dtype} has no fractions: use iinfo()")
        exponent, fraction = self._LAYOUTS[dtype.name]
        bias = 2 ** (exponent - 1) - 1
        self.dtype = dtype.name
        self.bits = 8 * dtype.itemsize
        self.eps = 2.0**-fraction
        self.max = (2 - self.eps) * 2.0**bias
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - bias)

    def __repr__(self) -> str:
        return f"finfo(dtype={self.dtype}, eps={self.eps:g}, max={self.max:g}, tiny={self.tiny:g})"


class iinfo:  # noqa: N801 - as in PyTorch and NumPy
    """What an integer dtype can hold.

    Examples
    --------
    >>> import genesis
    >>> genesis.iinfo(genesis.int8).min, genesis.iinfo(genesis.uint8).max
    (-128, 255)
    """

    def __init__(self, type: Any) -> None:
        dtype = dtype_of(type)
        if dtype.is_floating_point or dtype == _C.bool:
            raise TypeError(f"iinfo: {dtype} is no type of integers")
        self.dtype = dtype.name
        self.bits = 8 * dtype.itemsize
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
        self.max = self.min + 2**self.bits - 1

    def __repr__(self) -> str:
        return f"iinfo(dtype={self.dtype}, min={self.min}, max={self.max})"


publish(
    globals(),
    __all__,
    methods=(
        *(
            "astype",
            "copy",
            "get_device",
            "is_signed",
            "new_empty",
            "new_full",
            "new_ones",
            "new_tensor",
        ),
        *("new_zeros", "to_device", "type", "type_as"),
    ),
)
