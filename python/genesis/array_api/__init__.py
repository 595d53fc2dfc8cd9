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
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any, NamedTuple

import genesis
from genesis import _C, Tensor
from genesis._tensor_names import holds

__array_api_version__ = "2025.12"

newaxis = None

# ---- dtypes ----

_KINDS: dict[str, dict[str, Any]] = {
    "bool": {"bool": genesis.bool},
    "signed integer": {
        name: getattr(genesis, name) for name in ("int8", "int16", "int32", "int64")
    },
    "unsigned integer": {
        name: getattr(genesis, name) for name in ("uint8", "uint16", "uint32", "uint64")
    },
    "real floating": {"float32": genesis.float32, "float64": genesis.float64},
    "complex floating": {},
}
_KINDS["integral"] = _KINDS["signed integer"] | _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] | _KINDS["real floating"]


def isdtype(dtype: Any, kind: Any) -> bool:
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
    halves = (genesis.float16, genesis.bfloat16) if kind in ("real floating", "numeric") else ()
    return dtype in _KINDS[kind].values() or dtype in halves


def _dtype_of(one: Any) -> Any:
    return one.dtype if isinstance(one, Tensor) else one


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
    types = [_dtype_of(one) for one in arrays_and_dtypes if not isinstance(one, (int, float))]
    numbers = [one for one in arrays_and_dtypes if isinstance(one, (int, float))]
    if not types:
        raise ValueError("result_type: needs a tensor or a dtype")
    made = functools.reduce(genesis.promote_types, types)
    for number in numbers:
        made = genesis.result_type(genesis.empty(1, dtype=made, device="cpu"), number)
    return made


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

    def devices(self) -> Any:
        """The CPU, and the GPUs that there are."""
        names = ("cpu", *(f"cuda:{i}" for i in range(genesis.cuda.device_count())))
        return self._sequence(genesis.device(name) for name in names)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of numbers for which none is named."""
        return {
            "real floating": genesis.float32,
            "integral": genesis.int64,
            "indexing": genesis.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by their names, all or those of a kind or several."""
        if kind is None:
            return _KINDS["bool"] | _KINDS["numeric"]
        made: dict[str, Any] = {}
        for one in kind if isinstance(kind, tuple) else (kind,):
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


# ---- what the rows below are made of ----


def _promoted(*operands: Any) -> tuple[Any, ...]:
    """Operands of which a tensor without dimensions counts as any other, not as in PyTorch."""
    types = {one.dtype: one for one in operands if isinstance(one, Tensor)}
    if len(types) < 2:
        return operands
    dtype = functools.reduce(genesis.promote_types, types)
    return tuple(one.to(dtype) if isinstance(one, Tensor) else one for one in operands)


def _both_floating(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands as tensors of the dtype that an operation on them has."""
    x1, x2 = _promoted(x1, x2)
    dtype = genesis.result_type(x1, x2)
    near = x1 if isinstance(x1, Tensor) else x2
    return tuple(
        one.to(dtype) if isinstance(one, Tensor) else genesis.full((), one, dtype, near.device)
        for one in (x1, x2)
    )


def _pow(x1: Any, x2: Any, /) -> Tensor:
    if isinstance(x2, float) and x2 in (0.5, -0.5):
        # For the number genesis.pow() takes a square root, which of -0 and -inf is another one.
        x1, x2 = _both_floating(x1, x2)
    return genesis.pow(*_promoted(x1, x2))


def _floor_divide(x1: Any, x2: Any, /) -> Tensor:
    x1, x2 = _promoted(x1, x2)
    made = genesis.floor_divide(x1, x2)
    if not made.dtype.is_floating_point:
        return made
    x1, x2 = _both_floating(x1, x2)  # beside infinities the quotients themselves
    return genesis.where(x1.isinf() | x2.isinf(), x1 / x2, made)


def _clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    if min is None and max is None:
        return x.clone()
    # Bounds without dimensions count, too: as uint8, -1 would be 255.
    made = genesis.clip(*_promoted(x, min, max))
    is_kept = made.dtype.is_floating_point == x.dtype.is_floating_point
    return made.to(x.dtype) if is_kept else made


def _nextafter(x1: Any, x2: Any, /) -> Tensor:
    x1, x2 = genesis.broadcast_tensors(*_both_floating(x1, x2))
    integers = {2: genesis.int16, 4: genesis.int32, 8: genesis.int64}[x1.dtype.itemsize]
    bits = x1.contiguous().view(integers)
    # Magnitudes are in the order of their bits: away from 0 is 1 more, whatever the sign.
    is_away = (x2 > x1) == (x1 > 0)
    beside = (bits + genesis.where(is_away, 1, -1).to(bits.dtype)).view(x1.dtype)
    least = (bits * 0 + 1).view(x1.dtype)
    beside = genesis.where(x1 == 0, genesis.where(x2 > 0, least, -least), beside)
    return genesis.where((x1 != x1) | (x2 != x2), x1 + x2, genesis.where(x1 == x2, x2, beside))


def _astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    made = x.to(dtype) if device is None else x.to(device=device).to(dtype)
    return made.clone() if copy and made is x else made


def _arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        is_integer = builtins.all(isinstance(n, int) for n in (start, stop, step))
        dtype = genesis.int64 if is_integer else genesis.float32
    if (stop - start) * step <= 0:
        return genesis.empty(0, dtype=dtype, device=device)
    return genesis.arange(start, stop, step, dtype=dtype, device=device)


def _linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    made = genesis.linspace(start, stop, num + (not endpoint), dtype=dtype, device=device)
    return made if endpoint else made[:num]


def _eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    rows = genesis.arange(n_rows, device=device)[:, None]
    columns = genesis.arange(n_rows if n_cols is None else n_cols, device=device)
    k = builtins.max(-(2**62), builtins.min(2**62, k))  # beyond every matrix, where int64 ends, too
    return (columns - rows == k).to(genesis.float32 if dtype is None else dtype)


def _places(axes: Any, ndim: int, name: str) -> list[int]:
    """Axes counted from the front, each once."""
    axes = (axes,) if isinstance(axes, int) else _C._dimensions(axes)
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"{name}: axis {axis} is out of range for {ndim} dimensions")
    places = [axis % ndim for axis in axes]
    if len(set(places)) < len(places):
        raise ValueError(f"{name}: an axis is named twice: {tuple(axes)}")
    return places


def _expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    if isinstance(axis, int):
        return x.unsqueeze(axis)
    for one in sorted(_places(axis, x.ndim + len(axis), "expand_dims")):
        x = x.unsqueeze(one)
    return x


def _reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    shape = _C._dimensions(shape) if not isinstance(shape, int) else (shape,)
    if copy is False:
        return x.view(shape)
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def _roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return genesis.roll(x, shift, axis)


def _squeeze(x: Tensor, /, axis: Any) -> Tensor:
    for one in _places(axis, x.ndim, "squeeze"):
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: dimension {one} of shape {x.shape} is not of size 1")
    return x.squeeze(axis)


def _vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    least = builtins.min(x1.ndim, x2.ndim)
    if not -least <= axis < 0:
        raise ValueError(f"vecdot: axis {axis} is not among the last {least} of both")
    x1, x2 = (one.movedim(axis, -1) for one in _promoted(x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: vectors of {x1.shape[-1]} and of {x2.shape[-1]} elements")
    is_half = x1.dtype in (genesis.float16, genesis.bfloat16)  # rounded once, at the end
    made = (x1.float() * x2.float() if is_half else x1 * x2).sum(-1)
    return made.to(x1.dtype)


def _sum_dtype(x: Tensor, dtype: Any) -> Any:
    """The dtype of sums and products: unsigned integers stay unsigned, as the standard has it."""
    is_unsigned = not (x.dtype.is_signed or x.dtype == genesis.bool)
    return genesis.uint64 if dtype is None and is_unsigned else dtype


def _reduced(function: Any, x: Tensor, axis: Any, keepdims: bool, **options: Any) -> Tensor:
    """A reduction; over no dimension for (), which means all of them to PyTorch's functions."""
    if axis == ():
        x, axis, keepdims = x.unsqueeze(0), 0, False
    return function(x, dim=axis, keepdim=keepdims, **options)


def _cumulated(function: Any, first: int) -> Any:
    def call(
        x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Tensor:
        if axis is None:
            if x.ndim != 1:
                raise ValueError(f"cumulating needs an axis for shape {x.shape}")
            axis = 0
        made = function(x, axis, _sum_dtype(x, dtype))
        if not include_initial:
            return made
        shape = list(made.shape)
        shape[axis] = 1
        return genesis.cat((genesis.full(shape, first, made.dtype, made.device), made), axis)

    return call


def _diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor:
    parts = [one for one in (prepend, x, append) if one is not None]
    return genesis.diff(x if len(parts) == 1 else genesis.cat(parts, axis), n, axis)


def _nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    if not x.ndim:
        raise ValueError("nonzero: a tensor without dimensions has no places")
    return genesis.nonzero(x, as_tuple=True)


def _take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: needs an axis for shape {x.shape}")
    at = 0 if axis is None else _places(axis, x.ndim, "take")[0]
    return x[(slice(None),) * at + (indices,)]


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


def _unique_all(x: Tensor, /) -> _All:
    values, inverse, counts = genesis.unique(x, return_inverse=True, return_counts=True)
    order = inverse.reshape(-1).argsort()  # stable: the first of each group is the first of all
    return _All(values, order[counts.cumsum(0) - counts], inverse, counts)


# ---- the rows ----

# The same functions, by the same names.
_SAME = """
    abs acos acosh asin asinh atan atanh bfloat16 bool broadcast_shapes ceil cos cosh exp expm1
    float16 float32 float64 floor from_dlpack int8 int16 int32 int64 isfinite isinf isnan log log1p
    log2 log10 logical_and logical_not logical_or logical_xor moveaxis negative reciprocal round
    sign signbit sin sinh sqrt square tan tanh trunc uint8 uint16 uint32 uint64
"""

# Of two operands: the standard's name, and that of genesis where it is another one.
_OF_TWO = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor divide
    equal:eq greater greater_equal less less_equal matmul maximum minimum multiply not_equal
    remainder subtract
"""
_OF_TWO_FLOATING = "copysign hypot logaddexp"

# Reductions, with what they take beside axis and keepdims.
_REDUCTIONS = "all any max:amax mean min:amin"

# Those that differ in more than that.
_OTHERS: dict[str, Any] = {
    "arange": _arange,
    "argmax": lambda x, /, *, axis=None, keepdims=False: genesis.argmax(x, axis, keepdims),
    "argmin": lambda x, /, *, axis=None, keepdims=False: genesis.argmin(x, axis, keepdims),
    "argsort": lambda x, /, *, axis=-1, descending=False, stable=True: genesis.argsort(
        x, axis, descending, stable
    ),
    "asarray": lambda obj, /, *, dtype=None, device=None, copy=None: genesis.asarray(
        obj, dtype=dtype, device=device, copy=copy
    ),
    "astype": _astype,
    "bitwise_invert": genesis.bitwise_not,
    "broadcast_arrays": lambda *arrays: genesis.broadcast_tensors(*arrays),
    "broadcast_to": lambda x, /, shape: genesis.broadcast_to(x, _C._dimensions(shape)),
    "can_cast": lambda from_, to, /: holds(to, _dtype_of(from_)),
    "clip": _clip,
    "concat": lambda arrays, /, *, axis=0: (
        genesis.cat([one.reshape(-1) for one in _C._items(arrays)])
        if axis is None
        else genesis.cat(arrays, axis)
    ),
    "conj": lambda x, /: x.clone(),
    "count_nonzero": lambda x, /, *, axis=None, keepdims=False: _reduced(
        genesis.sum, x != 0, axis, keepdims
    ),
    "cumulative_prod": _cumulated(genesis.cumprod, 1),
    "cumulative_sum": _cumulated(genesis.cumsum, 0),
    "diff": _diff,
    "empty": lambda shape, *, dtype=None, device=None: genesis.empty(
        shape, dtype=dtype, device=device
    ),
    "empty_like": lambda x, /, *, dtype=None, device=None: genesis.empty_like(x, dtype, device),
    "expand_dims": _expand_dims,
    "eye": _eye,
    "flip": lambda x, /, *, axis=None: x.flip(
        _places(range(x.ndim) if axis is None else axis, x.ndim, "flip")
    ),
    "floor_divide": _floor_divide,
    "full": lambda shape, fill_value, *, dtype=None, device=None: genesis.full(
        shape, fill_value, dtype, device
    ),
    "full_like": lambda x, /, fill_value, *, dtype=None, device=None: genesis.full_like(
        x, fill_value, dtype, device
    ),
    "imag": lambda x, /: genesis.zeros_like(x),
    "isin": lambda x1, x2, /, *, invert=False: genesis.isin(x1, x2, invert=invert),
    "linspace": _linspace,
    "matrix_transpose": lambda x, /: x.mT,
    "meshgrid": lambda *arrays, indexing="xy": genesis.meshgrid(*arrays, indexing=indexing),
    "nextafter": _nextafter,
    "nonzero": _nonzero,
    "ones": lambda shape, *, dtype=None, device=None: genesis.ones(
        shape, dtype=dtype, device=device
    ),
    "ones_like": lambda x, /, *, dtype=None, device=None: genesis.ones_like(x, dtype, device),
    "permute_dims": lambda x, /, axes: x.permute(_C._dimensions(axes)),
    "positive": lambda x, /: x.clone(),
    "pow": _pow,
    "prod": lambda x, /, *, axis=None, dtype=None, keepdims=False: _reduced(
        genesis.prod, x, axis, keepdims, dtype=_sum_dtype(x, dtype)
    ),
    "real": lambda x, /: x.clone(),
    "repeat": lambda x, repeats, /, *, axis=None: genesis.repeat_interleave(x, repeats, axis),
    "reshape": _reshape,
    "roll": _roll,
    "searchsorted": lambda x1, x2, /, *, side="left", sorter=None: genesis.searchsorted(
        x1, x2, side=side, sorter=sorter
    ),
    "sort": lambda x, /, *, axis=-1, descending=False, stable=True: genesis.sort(
        x, axis, descending, stable
    )[0],
    "squeeze": _squeeze,
    "stack": lambda arrays, /, *, axis=0: genesis.stack(arrays, axis),
    "std": lambda x, /, *, axis=None, correction=0.0, keepdims=False: _reduced(
        genesis.std, x, axis, keepdims, correction=correction
    ),
    "sum": lambda x, /, *, axis=None, dtype=None, keepdims=False: _reduced(
        genesis.sum, x, axis, keepdims, dtype=_sum_dtype(x, dtype)
    ),
    "take": _take,
    "take_along_axis": lambda x, indices, /, *, axis=-1: genesis.take_along_axis(x, indices, axis),
    "tensordot": lambda x1, x2, /, *, axes=2: genesis.tensordot(*_promoted(x1, x2), axes),
    "tile": lambda x, repetitions, /: genesis.tile(x, _C._dimensions(repetitions)),
    "tril": lambda x, /, *, k=0: genesis.tril(x, k),
    "triu": lambda x, /, *, k=0: genesis.triu(x, k),
    "unique_all": _unique_all,
    "unique_counts": lambda x, /: _Counts(*genesis.unique(x, return_counts=True)),
    "unique_inverse": lambda x, /: _Inverse(*genesis.unique(x, return_inverse=True)),
    "unique_values": lambda x, /: genesis.unique(x),
    "unstack": lambda x, /, *, axis=0: x.unbind(axis),
    "var": lambda x, /, *, axis=None, correction=0.0, keepdims=False: _reduced(
        genesis.var, x, axis, keepdims, correction=correction
    ),
    "vecdot": _vecdot,
    "where": lambda condition, x1, x2, /: genesis.where(condition, *_promoted(x1, x2)),
    "zeros": lambda shape, *, dtype=None, device=None: genesis.zeros(
        shape, dtype=dtype, device=device
    ),
    "zeros_like": lambda x, /, *, dtype=None, device=None: genesis.zeros_like(x, dtype, device),
}

# What has no function of its name in genesis.
_SENTENCES = {
    "astype": "The elements as another dtype.",
    "bitwise_invert": "The bits that it does not have.",
    "broadcast_arrays": "Arrays as views of one shape.",
    "conj": "The complex conjugates: of real numbers, which are all there are, a copy.",
    "cumulative_prod": "The product of the elements up to each; 1 first, if asked for.",
    "cumulative_sum": "The sum of the elements up to each; 0 first, if asked for.",
    "expand_dims": "A view with a dimension of 1 more, or with several.",
    "imag": "The imaginary parts: zeros, as there are no complex numbers.",
    "matrix_transpose": "A view with the last two dimensions exchanged.",
    "nextafter": "The next number of the dtype on the way from the first to the second.",
    "permute_dims": "A view with the dimensions in another order.",
    "positive": "The elements themselves, as a copy.",
    "real": "The real parts: of real numbers, which are all there are, a copy.",
    "unique_all": "The different elements, where the first of each is, where all are, how often.",
    "unique_counts": "The different elements, and how often each is there.",
    "unique_inverse": "The different elements, and where each element is among them.",
    "unique_values": "The different elements, ascending.",
    "unstack": "The slices of a dimension.",
    "vecdot": "The sum of products along a dimension of both.",
}


def _named(name: str, function: Any, origin: str | None = None) -> Any:
    """A function by the standard's name, with the sentence that genesis has for it."""
    text = _SENTENCES.get(name) or (getattr(genesis, origin or name).__doc__ or "").split("\n\n")[0]
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"{text}\n\nWith the arguments and the types of the array API standard."
    return function


def _of_two(prepare: Any, function: Any) -> Any:
    return lambda x1, x2, /: function(*prepare(x1, x2))


def _reduction(function: Any) -> Any:
    return lambda x, /, *, axis=None, keepdims=False: _reduced(function, x, axis, keepdims)


def _rows() -> dict[str, Any]:
    """All functions by name."""
    rows = {name: getattr(genesis, name) for name in _SAME.split()}
    for words, make in (
        (_OF_TWO, lambda function: _of_two(_promoted, function)),
        (_OF_TWO_FLOATING, lambda function: _of_two(_both_floating, function)),
        (_REDUCTIONS, _reduction),
    ):
        for word in words.split():
            name, _, origin = word.partition(":")
            rows[name] = _named(name, make(getattr(genesis, origin or name)), origin or None)
    for name, function in _OTHERS.items():
        is_own = isinstance(function, types.FunctionType)
        rows[name] = _named(name, function) if is_own else function
    return rows


globals().update(_rows())

__all__ = [
    *_rows(),
    *("__array_api_version__", "__array_namespace_info__", "e", "finfo", "iinfo", "inf"),
    *("isdtype", "nan", "newaxis", "pi", "result_type"),
]


def __getattr__(name: str) -> Any:
    if name == "linalg":  # few need it: not at each import
        from importlib import import_module

        return import_module("genesis.array_api.linalg")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    made.broadcast_arrays = lambda *arrays: list(genesis.broadcast_tensors(*arrays))
    made.meshgrid = lambda *arrays, indexing="xy": list(
        genesis.meshgrid(*arrays, indexing=indexing)
    )
    made.__array_namespace_info__ = lambda: _Info(list)
    return made
