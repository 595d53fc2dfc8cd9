"""Names of Tensor that are classes or texts, asarray(), index_plan(), and what types can hold."""

from __future__ import annotations

from genesis import _C
from genesis._tensor import dtype_of
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis._index_plan import IndexPlan

__all__ = [
    "asarray",
    "finfo",
    "iinfo",
    "index_plan",
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


_CLASS = type


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
    if isinstance(dtype, _CLASS) and str(dtype).startswith("genesis."):  # FloatTensor
        dtype = str(dtype)
    if isinstance(dtype, str) and dtype.startswith("genesis.") and dtype.endswith("Tensor"):
        *places, name = dtype.split(".")[1:]
        if name not in _TYPE_NAMES or places not in ([], ["cuda"]):
            raise TypeError(f"type: there is no {dtype!r}")
        place = places[0] if places else "cpu"
        is_there = self.device.type == place  # on whichever GPU
        return self.to(self.device if is_there else place, _TYPE_NAMES[name])
    return self.to(dtype=dtype)


def _layout(self: _C.Tensor) -> str:
    """How its elements are kept: genesis.strided."""
    from genesis._torch_names import strided

    return strided


def _is_complex(self: _C.Tensor) -> bool:
    """Whether the elements are complex numbers: they never are."""
    return False


def _formatted(self: _C.Tensor, spec: str) -> str:
    """The number of a tensor without dimensions, as Python formats it; else the text."""
    return format(self.item(), spec) if not self.ndim else format(str(self), spec)


def _array_namespace(self: _C.Tensor, *, api_version: str | None = None) -> Any:
    """The module of the array API standard: genesis.array_api, or as an older version has it."""
    from genesis import array_api

    return array_api._namespace(api_version)


_C.Tensor.size = property(_size, doc=_size.__doc__)
_C.Tensor.is_cpu = property(lambda x: x.device.type == "cpu", doc="Whether it is on the CPU.")
_C.Tensor.is_sparse = property(lambda x: False, doc="False: all elements are kept.")
_C.Tensor.is_quantized = property(lambda x: False, doc="False: elements are what they are.")
_C.Tensor.is_meta = property(lambda x: False, doc="False: it has memory, or will have.")
_C.Tensor.is_mps = property(lambda x: False, doc="False: Apple's GPUs are not supported.")
_C.Tensor.layout = property(_layout, doc=_layout.__doc__)
_C.Tensor.is_complex = _is_complex
_C.Tensor.__array_namespace__ = _array_namespace
_C.Tensor.__format__ = _formatted


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


# ---- types ----


def holds(dtype: Any, other: Any) -> bool:
    """Whether a dtype is what it and another one are promoted to."""
    try:
        return _C.promote_types(dtype, other) == dtype
    except TypeError:  # uint64 and a signed integer
        return False


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


publish(globals(), __all__, methods=("type",))
