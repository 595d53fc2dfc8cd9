"""The Python array API standard, version 2025.12, over the tensors of Genesis.

``import genesis.array_api as xp`` gives libraries that are written against the standard the names,
arguments and results that it asks for, where those of :mod:`genesis`, which are PyTorch's, differ.
What is the same is the same function. ``x.__array_namespace__()`` is this module.

Without complex numbers, which tensors do not have, there are no ``complex64`` and ``complex128``.
The default floating dtype is float32. Operators are those of tensors, with PyTorch's rules: see
``docs/interop.md``.

Examples
--------
>>> import genesis.array_api as xp
>>> x = xp.reshape(xp.arange(6), (2, 3))
>>> xp.max(x, axis=1), xp.sort(x, axis=1, descending=True)[0, :]
(tensor([2, 5]), tensor([2, 1, 0]))
"""

from __future__ import annotations

import builtins
import functools
import sys
import types
from math import e, inf, nan, pi

import genesis
from genesis import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bfloat16,
    bool,
    broadcast_shapes,
    ceil,
    cos,
    cosh,
    exp,
    expm1,
    float16,
    float32,
    float64,
    floor,
    from_dlpack,
    int8,
    int16,
    int32,
    int64,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    moveaxis,
    negative,
    reciprocal,
    round,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
    uint8,
    uint16,
    uint32,
    uint64,
)
from genesis import bitwise_not as bitwise_invert
from genesis._array_api_elements import (
    add,
    atan2,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    clip,
    conj,
    copysign,
    divide,
    equal,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    less,
    less_equal,
    logaddexp,
    maximum,
    minimum,
    multiply,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    remainder,
    signbit,
    subtract,
    where,
)
from genesis._array_api_functions import (
    all,
    any,
    argmax,
    argmin,
    argsort,
    broadcast_to,
    concat,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    expand_dims,
    flip,
    isin,
    matmul,
    matrix_transpose,
    max,
    mean,
    min,
    nonzero,
    permute_dims,
    prod,
    repeat,
    reshape,
    roll,
    searchsorted,
    sort,
    squeeze,
    stack,
    std,
    sum,
    take,
    take_along_axis,
    tensordot,
    tile,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    unstack,
    var,
    vecdot,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from genesis import Tensor

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]

__array_api_version__ = "2025.12"

newaxis = None

# ---- constants and dtypes ----

_KINDS = {
    "bool": {"bool": bool},
    "signed integer": {"int8": int8, "int16": int16, "int32": int32, "int64": int64},
    "unsigned integer": {"uint8": uint8, "uint16": uint16, "uint32": uint32, "uint64": uint64},
    "real floating": {"float32": float32, "float64": float64},
    "complex floating": {},
}
_KINDS["integral"] = _KINDS["signed integer"] | _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] | _KINDS["real floating"]


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind, such as "integral", another dtype, or one of several of them.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, ("bool", xp.float32))
    (True, False)
    """
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    if not isinstance(kind, str):
        return dtype == kind
    if kind not in _KINDS:
        raise ValueError(f"isdtype: {kind!r} is none of {', '.join(map(repr, _KINDS))}")
    halves = (float16, bfloat16) if kind in ("real floating", "numeric") else ()
    return dtype in _KINDS[kind].values() or dtype in halves


def _dtype_of(one: Any) -> Any:
    return one.dtype if isinstance(one, genesis.Tensor) else one


class finfo(genesis.finfo):  # noqa: N801 - as in the standard
    """What a floating dtype, or that of a tensor, can hold.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.finfo(xp.float32).bits, xp.finfo(xp.float64).dtype
    (32, genesis.float64)
    """

    def __init__(self, type: Any, /) -> None:
        super().__init__(_dtype_of(type))
        self.dtype = _dtype_of(type)


class iinfo(genesis.iinfo):  # noqa: N801 - as in the standard
    """What an integer dtype, or that of a tensor, can hold.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.iinfo(xp.int8).max
    127
    """

    def __init__(self, type: Any, /) -> None:
        super().__init__(_dtype_of(type))
        self.dtype = _dtype_of(type)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that an operation on tensors, dtypes and numbers of Python has.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.result_type(xp.int8, xp.asarray([1]), 2)
    genesis.int64
    """
    is_number = [isinstance(one, (builtins.bool, int, float)) for one in arrays_and_dtypes]
    numbers = [one for one, is_one in zip(arrays_and_dtypes, is_number, strict=True) if is_one]
    types = [_dtype_of(one) for one, is_one in zip(arrays_and_dtypes, is_number, strict=True)
             if not is_one]  # fmt: skip
    if not types:
        raise ValueError("result_type: needs a tensor or a dtype")
    made = types[0]
    for one in types[1:]:
        made = genesis.promote_types(made, one)
    for number in numbers:
        made = genesis.result_type(genesis.empty(1, dtype=made, device="cpu"), number)
    return made


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether a dtype, or that of a tensor, becomes another one by promotion.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    from genesis._tensor_names import holds

    return holds(to, _dtype_of(from_))


def astype(x: Tensor, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """The elements as another dtype.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.astype(xp.asarray([1.5, 2.0]), xp.int64)
    tensor([1, 2])
    """
    made = x.to(dtype) if device is None else x.to(device=device).to(dtype)
    return made.clone() if copy and made is x else made


class _Info:
    """What this namespace can do: what ``__array_namespace_info__()`` returns."""

    def __init__(self, sequence: type = tuple) -> None:
        self._sequence = sequence

    def capabilities(self) -> dict[str, Any]:
        """Whether results may have shapes that depend on data, and the most dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self) -> Any:
        """Where tensors are made."""
        return genesis.get_default_device()

    def devices(self) -> Sequence[Any]:
        """The CPU, and the GPUs that there are."""
        names = ("cpu", *(f"cuda:{i}" for i in range(genesis.cuda.device_count())))
        return self._sequence(genesis.device(name) for name in names)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of numbers for which none is named."""
        return {"real floating": float32, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by their names, all or those of a kind or several."""
        if kind is None:
            return _KINDS["bool"] | _KINDS["numeric"]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        made: dict[str, Any] = {}
        for one in kinds:
            if one not in _KINDS:
                raise ValueError(f"dtypes: {one!r} is none of {', '.join(map(repr, _KINDS))}")
            made |= _KINDS[one]
        return made


def __array_namespace_info__() -> _Info:  # noqa: N807 - the standard's name
    """What this namespace can do.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    genesis.int64
    """
    return _Info()


# ---- creation ----


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: builtins.bool | None = None
) -> Tensor:
    """A tensor of numbers, lists of them, or anything that has elements.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.int8)
    tensor([[1, 2],
            [3, 4]], dtype=genesis.int8)
    """
    return genesis.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Numbers from `start` to before `stop`.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.arange(3), xp.arange(5, 1)
    (tensor([0, 1, 2]), tensor([], dtype=genesis.int64))
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = int64 if builtins.all(isinstance(n, int) for n in (start, stop, step)) else float32
    if (stop - start) * step <= 0:
        return genesis.empty(0, dtype=dtype, device=device)
    return genesis.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """`num` numbers at equal distances.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    made = genesis.linspace(start, stop, num + (not endpoint), dtype=dtype, device=device)
    return made if endpoint else made[:num]


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """1 on a diagonal and 0 elsewhere.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.eye(2, 3, k=1, dtype=xp.int64)
    tensor([[0, 1, 0],
            [0, 0, 1]])
    """
    rows = genesis.arange(n_rows, device=device)[:, None]
    columns = genesis.arange(n_rows if n_cols is None else n_cols, device=device)
    k = builtins.max(-(2**62), builtins.min(2**62, k))  # beyond every matrix, where int64 ends, too
    return (columns - rows == k).to(float32 if dtype is None else dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose elements are not set.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.empty((2, 3)).shape
    (2, 3)
    """
    return genesis.empty(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.zeros(2)
    tensor([0., 0.])
    """
    return genesis.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of ones.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.ones(2)
    tensor([1., 1.])
    """
    return genesis.ones(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one number.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.full(2, 7)
    tensor([7, 7])
    """
    return genesis.full(shape, fill_value, dtype, device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the same shape, whose elements are not set.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.empty_like(xp.zeros((2, 3))).shape
    (2, 3)
    """
    return genesis.empty_like(x, dtype, device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape of another tensor.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.zeros_like(xp.asarray([3]))
    tensor([0])
    """
    return genesis.zeros_like(x, dtype, device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in the shape of another tensor.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.ones_like(xp.asarray([3]))
    tensor([1])
    """
    return genesis.ones_like(x, dtype, device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number in the shape of another tensor.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.full_like(xp.asarray([3]), 8)
    tensor([8])
    """
    return genesis.full_like(x, fill_value, dtype, device)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Arrays as views of one shape.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> [one.shape for one in xp.broadcast_arrays(xp.ones(3), xp.ones((2, 1)))]
    [(2, 3), (2, 3)]
    """
    return genesis.broadcast_tensors(*arrays)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.meshgrid(xp.arange(3), xp.arange(2))[1]
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    return genesis.meshgrid(*arrays, indexing=indexing)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """What is on and below a diagonal.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.tril(xp.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return genesis.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """What is on and above a diagonal.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.triu(xp.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return genesis.triu(x, k)


# ---- older versions ----

_OLDER = ("2021.12", "2022.12", "2023.12", "2024.12")


@functools.cache
def _namespace(version: str | None) -> Any:
    """The module as a version of the standard has it: before 2025.12 tuples are lists."""
    module = sys.modules[__name__]
    if version is None or version == __array_api_version__:
        return module
    if version not in _OLDER:
        known = ", ".join((*_OLDER, __array_api_version__))
        raise ValueError(f"the array API is there in {known}, not in {version!r}")
    made = types.ModuleType(__name__, __doc__)
    vars(made).update(vars(module))
    made.__array_api_version__ = version
    made.broadcast_arrays = lambda *arrays: list(broadcast_arrays(*arrays))
    made.meshgrid = lambda *arrays, indexing="xy": list(meshgrid(*arrays, indexing=indexing))
    made.__array_namespace_info__ = lambda: _Info(list)
    return made
