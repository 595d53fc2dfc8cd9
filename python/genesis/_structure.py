"""What stands around the tensors of a checkpoint, as JSON, and back.

    plain             None, True, numbers, texts and lists, as JSON has them
    {"kind": ...}     everything else, by one word: "tuple", "dict" (its keys are texts), "items" (a
                      dict with other keys), "ordered", "set", "size", "dtype", "tensor", ...

Tensors are numbers of a table, so that one that stands in two places is one again. Only the classes
that are named here are written and read: nothing is pickled, and reading runs no code of a file.
"""

from __future__ import annotations

import base64
import math
from collections import Counter, OrderedDict, defaultdict
from typing import Any

from genesis import _C
from genesis._tensor_storage import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEPTH_MOST", "DTYPES", "KEYS", "decode", "encode", "is_key", "parameter_class"]

DEPTH_MOST = 100  # containers in containers
_DIGITS_MOST = 4000  # of a number: Python reads no more than 4300
KEYS = "numbers of 64 bits, texts, None, dtypes, and tuples of up to 16 of these"
DTYPES = {dtype.name: dtype for dtype in vars(_C).values() if isinstance(dtype, _C.dtype)}


def parameter_class() -> Any:
    """Give the class of parameters, if anybody may have made one."""
    from importlib import import_module

    return getattr(import_module("genesis.nn"), "Parameter", None)


# ---- writing ----


def _path(parts: tuple[Any, ...]) -> str:
    return "".join(f"[{part!r:.60}]" for part in parts) or "the object itself"


def _number_of_numpy(value: Any) -> Any:
    """A number of NumPy as one of Python; None for what is none. NumPy is not imported."""
    kind = type(value)
    if kind.__module__ != "numpy" or kind.__name__ == "ndarray" or not hasattr(value, "item"):
        return None
    found = value.item()
    return found if type(found) in (bool, int, float) else None


class _Encoder:
    def __init__(self, tensor_number: Callable[[Any, tuple[Any, ...]], int]) -> None:
        self._tensor_number = tensor_number
        self._open: set[int] = set()  # containers that are being written, by identity

    def encode(self, value: Any, path: tuple[Any, ...]) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return value
        if kind is int:
            return self._integer(value, path)
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, _C.Tensor):
            return {"tensor": self._tensor_number(value, path)}
        if kind in _SIMPLE_OUT:
            return _SIMPLE_OUT[kind](value)
        if kind in _CONTAINERS:
            return self._container(value, kind, path)
        number = _number_of_numpy(value)
        if number is not None:
            return self.encode(number, path)
        raise TypeError(f"save: {_path(path)} is {self._refused(value)}")

    def _refused(self, value: Any) -> str:
        kind = type(value)
        words = f"of class {kind.__module__}.{kind.__qualname__}, which is not saved"
        if callable(getattr(value, "state_dict", None)):
            return f"{words}: save its state_dict()"
        if isinstance(value, (int, float)) or hasattr(value, "item"):
            return f"{words}: make it a number of Python, with int() or float(), or a tensor"
        if isinstance(value, (dict, list, tuple)):
            plain = next(one for one in (dict, list, tuple) if isinstance(value, one))
            return f"{words}: make it a {plain.__name__}"
        return f"{words}: dicts, lists, tuples, sets, numbers, texts and tensors are"

    def _integer(self, value: int, path: tuple[Any, ...]) -> int:
        if value.bit_length() > 3 * _DIGITS_MOST:
            raise ValueError(f"save: {_path(path)} is a number of {value.bit_length()} bits")
        return value

    def _container(self, value: Any, kind: type, path: tuple[Any, ...]) -> Any:
        if id(value) in self._open:
            raise ValueError(f"save: {_path(path)} contains itself")
        if len(path) >= DEPTH_MOST:
            raise ValueError(f"save: {_path(path[:3])}... is nested more than {DEPTH_MOST} deep")
        self._open.add(id(value))
        try:
            if issubclass(kind, dict):
                return self._dict(value, kind, path)
            items = value
            if kind in (set, frozenset):
                for one in value:
                    self._key(one, path)
                items = sorted(value, key=lambda one: (type(one).__name__, repr(one)))
            made = [self.encode(one, (*path, place)) for place, one in enumerate(items)]
            return made if kind is list else {_CONTAINERS[kind]: made}
        finally:
            self._open.discard(id(value))

    def _dict(self, value: Any, kind: type, path: tuple[Any, ...]) -> Any:
        for key in value:
            self._key(key, path)
        if kind is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.encode(one, (*path, key)) for key, one in value.items()}}
        made: dict[str, Any] = {
            _CONTAINERS[kind]: [
                [self.encode(key, path), self.encode(one, (*path, key))]
                for key, one in value.items()
            ]
        }
        metadata = getattr(value, "_metadata", None)
        if kind is OrderedDict and metadata is not None:  # of a module's state_dict()
            made["metadata"] = self.encode(metadata, (*path, "_metadata"))
        if kind is defaultdict and value.default_factory not in (None, *_FACTORIES.values()):
            raise TypeError(
                f"save: {_path(path)} is a defaultdict of {value.default_factory!r:.60}, which is "
                "not saved: make it a dict"
            )
        if kind is defaultdict:
            factory = value.default_factory
            made["factory"] = None if factory is None else factory.__name__
        return made

    def _key(self, key: Any, path: tuple[Any, ...]) -> None:
        if not is_key(key):
            raise TypeError(
                f"save: {_path(path)} has the key {key!r:.60} of class {type(key).__name__}: keys, "
                f"and what is in sets, are {KEYS}"
            )


def is_key(key: Any, depth: int = 0) -> bool:
    """Whether it is hashed in a short time, and no two numbers collide by intention."""
    kind = type(key)
    if kind is int:
        return -(1 << 63) <= key < 1 << 64
    if kind is tuple and depth < 2:
        return len(key) <= 16 and all(is_key(one, depth + 1) for one in key)
    return kind in (str, float, bool, type(None), _C.dtype)


_CONTAINERS: dict[type, str] = {
    list: "list",
    tuple: "tuple",
    dict: "items",
    OrderedDict: "ordered",
    Counter: "counter",
    defaultdict: "default",
    set: "set",
    frozenset: "frozenset",
}
_FACTORIES: dict[str, Any] = {one.__name__: one for one in (dict, list, set, int, float)}
_SIMPLE_OUT: dict[type, Callable[[Any], Any]] = {
    bytes: lambda value: {"bytes": base64.b64encode(value).decode()},
    bytearray: lambda value: {"bytearray": base64.b64encode(value).decode()},
    complex: lambda value: {"complex": [repr(value.real), repr(value.imag)]},
    _C.dtype: lambda value: {"dtype": value.name},
    _C.device: lambda value: {"device": str(value)},
    Size: lambda value: {"size": list(value)},
}


def encode(value: Any, tensor_number: Callable[[Any, tuple[Any, ...]], int]) -> Any:
    """Make JSON's objects of a value; tensors are asked for their numbers in the table."""
    return _Encoder(tensor_number).encode(value, ())


# ---- reading ----


def _wrong(what: str, value: Any) -> ValueError:
    is_short = isinstance(value, (str, float)) or type(value) is int and abs(value) < 1 << 64
    shown = f"{value!r:.60}" if is_short else type(value).__name__
    return ValueError(f"its structure is damaged: {what}, not {shown}")


def _list_of(value: Any, kinds: tuple[type, ...], what: str) -> list[Any]:
    if type(value) is not list or not all(type(one) in kinds for one in value):
        raise _wrong(f"{what} is a list", value)
    return value


def _text(value: Any, what: str) -> str:
    if type(value) is not str:
        raise _wrong(f"{what} is a text", value)
    return value


def _read_bytes(value: Any) -> bytes:
    return base64.b64decode(_text(value, "bytes").encode("ascii"), validate=True)


def _read_float(value: Any) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise _wrong("a number is nan, inf or -inf", value)
    return float(value)


def _read_complex(value: Any) -> complex:
    parts = _list_of(value, (str,), "a complex number")
    if len(parts) != 2 or max(map(len, parts)) > 40:
        raise _wrong("a complex number has two parts", value)
    return complex(float(parts[0]), float(parts[1]))


def _read_dtype(value: Any) -> Any:
    if _text(value, "a dtype") not in DTYPES:
        raise _wrong("a dtype has a known name", value)
    return DTYPES[value]


def _read_device(value: Any) -> Any:
    try:
        return _C.device(_text(value, "a device")[:40])
    except RuntimeError as error:  # of a name that no device can have
        raise _wrong("a device has a known name", value) from error


def _read_size(value: Any) -> Size:
    sizes = _list_of(value, (int,), "a size")
    return Size(sizes)


_SIMPLE_IN: dict[str, Callable[[Any], Any]] = {
    "bytes": _read_bytes,
    "bytearray": lambda value: bytearray(_read_bytes(value)),
    "float": _read_float,
    "complex": _read_complex,
    "dtype": _read_dtype,
    "device": _read_device,
    "size": _read_size,
}
_PAIRS: dict[str, Any] = {
    "items": dict,
    "ordered": OrderedDict,
    "counter": Counter,
    "default": defaultdict,
}
_SEQUENCES: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_MORE = {"ordered": "metadata", "default": "factory"}  # a second word that a kind may have


class _Decoder:
    def __init__(self, tensor_of: Callable[[int], Any]) -> None:
        self._tensor_of = tensor_of

    def decode(self, value: Any, depth: int = 0) -> Any:
        if depth > 2 * DEPTH_MOST:  # a key that is a tuple is one deeper
            raise ValueError(f"its structure is nested more than {DEPTH_MOST} deep")
        if type(value) is list:
            return [self.decode(one, depth + 1) for one in value]
        if type(value) is not dict:
            return value  # None, True, a number or a text
        kind = next(iter(value), "")
        if not value or set(value) - {kind, _MORE.get(kind, kind)}:
            raise _wrong("an object has one word", list(value))
        content = value[kind]
        if kind == "tensor":
            if type(content) is not int:
                raise _wrong("a tensor is a number", content)
            return self._tensor_of(content)
        if kind in _SIMPLE_IN:
            return _SIMPLE_IN[kind](content)
        if kind == "dict":
            if type(content) is not dict:
                raise _wrong("a dict is one", content)
            return {key: self.decode(one, depth + 1) for key, one in content.items()}
        if kind in _PAIRS:
            return self._pairs(kind, value, depth)
        if kind not in _SEQUENCES or type(content) is not list:
            raise _wrong("an object is of a known kind", kind)
        items = [self.decode(one, depth + 1) for one in content]
        return _SEQUENCES[kind](items if kind == "tuple" else map(_key_check, items))

    def _pairs(self, kind: str, value: dict[str, Any], depth: int) -> Any:
        made = _PAIRS[kind]()
        pairs = _list_of(value[kind], (list,), "a dict")
        for pair in pairs:
            if len(pair) != 2:
                raise _wrong("an entry of a dict has a key and a value", pair)
            key = _key_check(self.decode(pair[0], depth + 1))
            made[key] = self.decode(pair[1], depth + 1)
        if len(made) != len(pairs):
            raise ValueError("its structure is damaged: a key stands twice in a dict")
        if "metadata" in value:
            made._metadata = self.decode(value["metadata"], depth + 1)
        if kind == "default" and value.get("factory") is not None:
            if _text(value["factory"], "a factory") not in _FACTORIES:
                raise _wrong("a factory has a known name", value["factory"])
            made.default_factory = _FACTORIES[value["factory"]]
        return made


def _key_check(key: Any) -> Any:
    if not is_key(key):
        raise _wrong(f"keys are {KEYS}", type(key).__name__)
    return key


def decode(value: Any, tensor_of: Callable[[int], Any]) -> Any:
    """Make the value again; tensors are asked for by their numbers."""
    return _Decoder(tensor_of).decode(value)
