"""NumPy's functions on tensors: ours where there are such, else NumPy's own on the same memory.

Loaded when NumPy first asks. The rules:

1. A function that Genesis has, called with no more than it knows, is computed by Genesis, with
   its types: ``np.sqrt`` of int64 is float32.
2. Any other is computed by NumPy on arrays that share the tensors' memory. Arrays that come out
   become tensors, without a copy, as long as there is a dtype for them.
3. ``out=`` comes back as it was given, a tensor or an array.
4. Where another library's array is among the arguments, its turn comes first.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from numbers import Number
from operator import lshift, rshift

import numpy

import genesis
from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Tensor = _C.Tensor

# Functions of elements that we have: those with another name here, and those with the same.
_RENAMED = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "divide": "div",
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "power": "pow",
    "rint": "round",
    "subtract": "sub",
}
_SAME = {
    *("add", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "cos", "exp", "expm1", "floor"),
    *("cosh", "floor_divide", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2"),
    *("logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "maximum", "minimum"),
    *("reciprocal", "remainder", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"),
}
_PLAIN = {Tensor, bool, int, float}  # operands as ours take them
_SHIFTS = {"left_shift": lshift, "right_shift": rshift}  # operators only: they know no out=


class _Sharing:
    """Arrays in place of tensors for one call, and tensors in place of what comes back."""

    def __init__(self) -> None:
        self.shared: dict[int, tuple[Any, Tensor]] = {}  # by the array's identity, which it keeps
        self.own: set[int] = set()  # arrays of the caller's: they go back as they are

    def array(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            array = value.numpy()
            self.shared[id(array)] = array, value
            return array
        if type(value) in (list, tuple):
            return type(value)(self.array(one) for one in value)
        if type(value) is dict:
            return {name: self.array(one) for name, one in value.items()}
        if isinstance(value, numpy.ndarray):
            self.own.add(id(value))
        return value

    def tensor(self, value: Any) -> Any:
        if id(value) in self.own:
            return value
        if id(value) in self.shared:
            return self.shared[id(value)][1]
        if type(value) is numpy.ndarray or isinstance(value, numpy.generic):
            return _tensor_or(value)
        if type(value) in (list, tuple):
            return type(value)(self.tensor(one) for one in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.tensor(one) for one in value))
        return value


def _tensor_or(value: Any) -> Any:
    """The same memory as a tensor; itself where there is no such dtype, or it is not aligned."""
    try:
        return _C.as_tensor(value)
    except (TypeError, ValueError):
        return value


# ---- functions of elements ----


@lru_cache(maxsize=256)
def _ufunc_of(ufunc: Any) -> Callable[..., Any] | None:
    """Our function for one of NumPy's own."""
    name = ufunc.__name__
    if getattr(numpy, name, None) is not ufunc:
        return None
    ours = _RENAMED.get(name, name if name in _SAME else "")
    return _SHIFTS.get(name) or getattr(genesis, ours, None)


def _has_own_ufunc(value: Any) -> bool:
    own = getattr(type(value), "__array_ufunc__", None)
    return own not in (None, numpy.ndarray.__array_ufunc__, Tensor.__array_ufunc__)


def _operand(value: Any) -> Any:
    """A tensor or number of the same value; None if it is neither."""
    if isinstance(value, Tensor) or type(value) in (bool, int, float):
        return value
    if isinstance(value, Number) and not isinstance(value, numpy.generic):
        return None
    if isinstance(value, numpy.ndarray) and type(value) is not numpy.ndarray:
        return None  # a masked array, say: what it means NumPy knows
    made = _tensor_or(value if isinstance(value, numpy.generic) else numpy.asarray(value))
    return made if isinstance(made, Tensor) else None


def _ufunc_ours(ufunc: Any, inputs: tuple[Any, ...], out: Any) -> Any:
    """The result of our function; NotImplemented where it cannot be asked."""
    function = _ufunc_of(ufunc)
    operands = [_operand(one) for one in inputs]
    if function is None or any(one is None for one in operands):
        return NotImplemented
    if ufunc is numpy.matmul and len({getattr(one, "dtype", None) for one in operands}) > 1:
        return NotImplemented  # ours are of one type
    tensors = [one for one in inputs if isinstance(one, Tensor)]
    if tensors:  # arrays go where the tensors are
        place = tensors[0].device
        operands = [
            one if one is given or not isinstance(one, Tensor) else one.to(place)
            for one, given in zip(operands, inputs, strict=True)
        ]
    if not any(isinstance(one, Tensor) for one in operands):
        operands[0] = _C.as_tensor(operands[0])
    if out is None:
        return function(*operands)
    into = _operand(out)
    if into is None or function in _SHIFTS.values():
        return NotImplemented
    function(*operands, out=into)
    return out


def ufunc_call(ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """What Tensor.__array_ufunc__ does."""
    function = _ufunc_of(ufunc)
    if (
        function
        and method == "__call__"
        and not options
        and ufunc is not numpy.matmul
        and _PLAIN.issuperset(map(type, inputs))
    ):
        return function(*inputs)  # the usual case, without further questions
    outs = options.get("out", ())
    if any(_has_own_ufunc(one) for one in (*inputs, *outs)):
        return NotImplemented
    if method == "__call__" and not set(options) - {"out"} and len(outs) < 2:
        made = _ufunc_ours(ufunc, inputs, outs[0] if outs else None)
        if made is not NotImplemented:
            return made
    sharing = _Sharing()
    arrays = [sharing.array(one) for one in inputs]
    return sharing.tensor(getattr(ufunc, method)(*arrays, **sharing.array(options)))


# ---- other functions ----


class _Stand:
    """A function of ours that stands for one of NumPy's, and which calls it knows."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        positional = [one for one in parameters if one.kind != one.KEYWORD_ONLY]
        self.function = function
        self.most = len(positional)
        self.required = [one.name for one in positional if one.default is one.empty]
        self.names = {one.name for one in parameters if one.kind != one.POSITIONAL_ONLY}

    def knows(self, args: Any, kwargs: Any) -> bool:
        return (
            len(args) <= self.most
            and kwargs.keys() <= self.names
            and all(name in kwargs for name in self.required[len(args) :])
        )


_FUNCTIONS: dict[Any, _Stand] = {}


def _stands_for(*functions: Any) -> Callable[[Any], Any]:
    def add(ours: Any) -> Any:
        _FUNCTIONS.update(dict.fromkeys(functions, _Stand(ours)))
        return ours

    return add


def _reduction(name: str, is_floating: bool) -> Callable[..., Any]:
    def ours(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        if axis == () or (is_floating and not a.dtype.is_floating_point):
            return NotImplemented
        return getattr(a, name)(axis, keepdims)

    return ours


for _function, _name in (
    *((numpy.sum, "sum"), (numpy.prod, "prod"), (numpy.any, "any"), (numpy.all, "all")),
    *((numpy.max, "amax"), (numpy.amax, "amax"), (numpy.min, "amin"), (numpy.amin, "amin")),
    *((numpy.mean, "mean"), (numpy.argmax, "argmax"), (numpy.argmin, "argmin")),
):
    _stands_for(_function)(_reduction(_name, _name == "mean"))


def _spread(name: str) -> Callable[..., Any]:
    def ours(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
        if axis == () or not a.dtype.is_floating_point:
            return NotImplemented
        return getattr(genesis, name)(a, axis, ddof, keepdims)

    return ours


_stands_for(numpy.var)(_spread("var"))
_stands_for(numpy.std)(_spread("std"))


@_stands_for(numpy.cumsum)
def _cumsum(a: Any, axis: Any = None) -> Any:
    return a.flatten().cumsum(0) if axis is None else a.cumsum(axis)


@_stands_for(numpy.cumprod)
def _cumprod(a: Any, axis: Any = None) -> Any:
    return a.flatten().cumprod(0) if axis is None else a.cumprod(axis)


@_stands_for(numpy.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    low, high = (None if one is None else _operand(one) for one in (a_min, a_max))
    if (low is None) != (a_min is None) or (high is None) != (a_max is None):
        return NotImplemented
    return NotImplemented if low is None and high is None else genesis.clamp(a, low, high)


@_stands_for(numpy.where)
def _where(condition: Any, x: Any, y: Any, /) -> Any:
    operands = [_operand(one) for one in (condition, x, y)]
    if any(one is None for one in operands) or getattr(operands[0], "dtype", None) != _C.bool:
        return NotImplemented
    return _C.where(*operands)


def _tensors(arrays: Any) -> list[Any] | None:
    made = [_tensor_or(one) for one in arrays]
    return made if made and all(isinstance(one, Tensor) for one in made) else None


@_stands_for(numpy.concatenate)
def _concatenate(arrays: Any, /, axis: Any = 0) -> Any:
    tensors = _tensors(arrays)
    if tensors is None:
        return NotImplemented
    if axis is None:
        return genesis.cat([one.flatten() for one in tensors])
    return genesis.cat(tensors, axis)


@_stands_for(numpy.stack)
def _stack(arrays: Any, axis: int = 0) -> Any:
    tensors = _tensors(arrays)
    return NotImplemented if tensors is None else genesis.stack(tensors, axis)


@_stands_for(numpy.reshape)
def _reshape(a: Any, /, shape: Any, order: str = "C") -> Any:
    return a.reshape(shape) if order == "C" else NotImplemented


@_stands_for(numpy.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    return a.flatten() if order == "C" else NotImplemented


@_stands_for(numpy.transpose)
def _transpose(a: Any, axes: Any = None) -> Any:
    return a.T if axes is None else a.permute(axes)


@_stands_for(numpy.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Any:
    return a.squeeze() if axis is None else NotImplemented


@_stands_for(numpy.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    return a.unsqueeze(axis) if isinstance(axis, int) else NotImplemented


@_stands_for(numpy.broadcast_to)
def _broadcast_to(array: Any, shape: Any) -> Any:
    sizes = (shape,) if isinstance(shape, int) else shape
    return NotImplemented if any(size < 0 for size in sizes) else array.expand(shape)


@_stands_for(numpy.tril)
def _tril(m: Any, k: int = 0) -> Any:
    return NotImplemented if m.ndim < 2 else genesis.tril(m, k)


@_stands_for(numpy.triu)
def _triu(m: Any, k: int = 0) -> Any:
    return NotImplemented if m.ndim < 2 else genesis.triu(m, k)


@_stands_for(numpy.sort)
def _sort(a: Any, axis: Any = -1) -> Any:
    return a.flatten().sort(0).values if axis is None else a.sort(axis).values


@_stands_for(numpy.argsort)
def _argsort(a: Any, axis: Any = -1) -> Any:
    return a.flatten().argsort(0) if axis is None else a.argsort(axis)


@_stands_for(numpy.round, numpy.around)
def _round(a: Any, decimals: int = 0) -> Any:
    return genesis.round(a) if decimals == 0 else NotImplemented


@_stands_for(numpy.copy)
def _copy(a: Any) -> Any:
    return a.clone()


@_stands_for(numpy.zeros_like)
def _zeros_like(a: Any) -> Any:
    return genesis.zeros_like(a)


@_stands_for(numpy.ones_like)
def _ones_like(a: Any) -> Any:
    return genesis.ones_like(a)


@_stands_for(numpy.empty_like)
def _empty_like(prototype: Any) -> Any:
    return genesis.empty_like(prototype)


@_stands_for(numpy.shape)
def _shape(a: Any) -> Any:
    return a.shape


@_stands_for(numpy.ndim)
def _ndim(a: Any) -> Any:
    return a.ndim


@_stands_for(numpy.size)
def _size(a: Any, axis: int | None = None) -> Any:
    return a.numel() if axis is None else a.shape[axis]


_OF_SEVERAL = (numpy.concatenate, numpy.stack, numpy.where)  # whose first need not be a tensor


def _function_ours(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of our function; NotImplemented where it cannot be asked."""
    stand = _FUNCTIONS.get(func)
    if stand is None or not stand.knows(args, kwargs):
        return NotImplemented
    first = args[0] if args else kwargs[stand.required[0]]
    if func not in _OF_SEVERAL and not isinstance(first, Tensor):
        return NotImplemented
    return stand.function(*args, **kwargs)


def function_call(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """What Tensor.__array_function__ does."""
    if not all(issubclass(one, (Tensor, numpy.ndarray)) for one in types):
        return NotImplemented
    made = _function_ours(func, args, kwargs)
    if made is not NotImplemented:
        return made
    sharing = _Sharing()
    return sharing.tensor(func(*sharing.array(args), **sharing.array(kwargs)))
