"""Reads the pickles that torch.save writes: tensors and plain containers.

A pickle is a program for a machine with a stack, and Python's own reader lets it call anything.
This one knows the opcodes that torch.save writes and the names in _GLOBALS, and calls nothing else:

1. Everything else is refused before it does anything, by its name.
2. What is made is bounded by the bytes that were read: no length is believed that there is not, and
   calls together copy no more than was read.
3. Keys of dicts are numbers of 64 bits, texts, and short tuples of these: their hash is cheap.
4. The result contains nothing that contains itself, and is not nested too deeply.

Tensors are not made here: a TensorPlan stands for each until the whole has turned out to be right.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from typing import Any

from genesis import _C, _structure
from genesis._safetensors import view_check
from genesis._tensor_storage import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Reader", "Storage", "TensorPlan", "check", "children_of", "tree_check"]

_DEPTH_MOST = 1000
_SHOWN = 80  # characters of a name in a message


def _shown(value: Any) -> str:
    return repr(value)[:_SHOWN] if isinstance(value, (str, bytes, int)) else type(value).__name__


def check(is_right: bool, what: str) -> None:
    """Raise ValueError for what is not right."""
    if not is_right:
        raise ValueError(what)


# ---- what a pickle may name ----


class _Name:
    """A global of a file: a text, and what it means to this reader."""

    def __init__(self, text: str, value: Any = None, call: Any = None) -> None:
        self.text, self.value, self.call = text, value, call


class _Elements:
    """The type of a storage's elements; None for bytes."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


class Storage:
    """Memory that tensors of the file are views of, with a type, or None for bytes."""

    def __init__(self, key: str, dtype: Any, nbytes: int, location: str) -> None:
        self.key, self.dtype, self.nbytes, self.location = key, dtype, nbytes, location


class TensorPlan:
    """A tensor that is to be made, when the pickle has turned out to be right."""

    def __init__(self, storage: Storage, dtype: Any, shape: Any, strides: Any, offset: int) -> None:
        self.storage, self.dtype = storage, dtype
        self.shape, self.strides, self.offset = shape, strides, offset
        self.needs_gradient = self.is_parameter = False


def _tensor_make(arguments: tuple[Any, ...], dtype: Any = None) -> TensorPlan:
    check(4 <= len(arguments) <= 7, "a tensor has the wrong number of parts")
    storage, offset, shape, strides = arguments[:4]
    check(isinstance(storage, Storage), "a tensor has no storage")
    check(type(shape) in (tuple, Size) and type(strides) is tuple, "a tensor has no shape")
    check(len(shape) <= 64, "a tensor has no shape that can be")
    dtype = dtype or storage.dtype
    check(isinstance(dtype, _C.dtype), "a tensor's storage has no type")
    what = f"a tensor of storage {storage.key!r:.40}"
    view_check(what, tuple(shape), strides, offset, storage.nbytes // dtype.itemsize)
    check(
        (dtype == _C.bool) == (storage.dtype == _C.bool),
        f"{what} is of {dtype}, but its storage is of {storage.dtype or 'bytes'}",
    )
    made = TensorPlan(storage, dtype, tuple(shape), strides, offset)
    return _gradient_set(made, len(arguments) > 4 and arguments[4])


def _gradient_set(made: TensorPlan, needs_gradient: Any) -> TensorPlan:
    check(type(needs_gradient) is bool, "whether a tensor needs gradients is no truth")
    check(
        not needs_gradient or made.dtype.is_floating_point,
        f"a tensor of {made.dtype} cannot need gradients",
    )
    made.needs_gradient = needs_gradient
    return made


def _tensor_v3(arguments: tuple[Any, ...]) -> TensorPlan:
    check(len(arguments) in (7, 8), "a tensor has the wrong number of parts")
    dtype = arguments[6]
    check(isinstance(dtype, _C.dtype), "a tensor's type is no dtype")
    return _tensor_make(arguments[:6], dtype)


def _parameter_make(arguments: tuple[Any, ...]) -> TensorPlan:
    check(
        len(arguments) in (3, 4) and isinstance(arguments[0], TensorPlan),
        "a parameter is no tensor",
    )
    given = arguments[0]
    made = TensorPlan(given.storage, given.dtype, given.shape, given.strides, given.offset)
    made.is_parameter = True
    return _gradient_set(made, arguments[1])


def _typed_tensor_make(arguments: tuple[Any, ...]) -> TensorPlan:
    """A tensor with attributes, which are dropped."""
    check(
        len(arguments) == 4
        and isinstance(arguments[0], _Name)
        and arguments[0].call in (_tensor_make, _tensor_v3)
        and isinstance(arguments[1], _Name)
        and arguments[1].text in ("torch.Tensor", "torch.nn.parameter.Parameter")
        and type(arguments[2]) is tuple,
        "a tensor is of a class that is not known",
    )
    made = arguments[0].call(arguments[2])
    made.is_parameter = arguments[1].text.endswith("Parameter")
    return made


def _ordered_make(arguments: tuple[Any, ...]) -> Any:
    return OrderedDict(_pairs_checked(arguments))


def _counter_make(arguments: tuple[Any, ...]) -> Any:
    check(
        not arguments or (len(arguments) == 1 and type(arguments[0]) is dict),
        "a Counter is no dict",
    )
    made: Any = Counter()
    for key, count in (arguments[0] if arguments else {}).items():
        made[key] = count
    return made


def _pairs_checked(arguments: tuple[Any, ...]) -> list[Any]:
    check(len(arguments) <= 1, "an OrderedDict has the wrong number of parts")
    pairs = list(arguments[0]) if arguments and type(arguments[0]) is list else []
    check(not arguments or type(arguments[0]) is list, "an OrderedDict is no list of pairs")
    for pair in pairs:
        check(type(pair) in (list, tuple) and len(pair) == 2, "an OrderedDict is of pairs")
        _key_check(pair[0])
    return pairs


def _set_make(kind: Any) -> Any:
    def make(arguments: tuple[Any, ...]) -> Any:
        check(len(arguments) == 1 and type(arguments[0]) in (list, tuple), "a set is no list")
        return kind(map(_key_check, arguments[0]))

    return make


def _size_make(arguments: tuple[Any, ...]) -> Any:
    check(len(arguments) == 1 and type(arguments[0]) in (list, tuple), "a size is no tuple")
    check(all(type(one) is int for one in arguments[0]), "a size is not of integers")
    return Size(arguments[0])


def _device_make(arguments: tuple[Any, ...]) -> Any:
    check(
        len(arguments) in (1, 2) and type(arguments[0]) is str and len(arguments[0]) < 40,
        "a device has no name",
    )
    check(all(type(one) is int and 0 <= one < 1 << 16 for one in arguments[1:]), "a device's index")
    name = ":".join(map(str, arguments))
    try:
        return _C.device(name)
    except RuntimeError:
        raise ValueError(f"it has the device {name!r:.60}, which is not known here") from None


def _complex_make(arguments: tuple[Any, ...]) -> complex:
    check(
        len(arguments) == 2 and all(type(one) is float for one in arguments),
        "a complex number has two parts",
    )
    return complex(*arguments)


def _encode_make(arguments: tuple[Any, ...]) -> bytes:
    check(
        len(arguments) == 2 and type(arguments[0]) is str and arguments[1] == "latin1",
        "bytes are not written as latin1",
    )
    return arguments[0].encode("latin1")


def _bytearray_make(arguments: tuple[Any, ...]) -> bytearray:
    check(
        not arguments or (len(arguments) == 1 and type(arguments[0]) is bytes),
        "a bytearray is none",
    )
    return bytearray(*arguments)


class _NumpyType:
    """NumPy's type of a number: the letter of module struct."""

    def __init__(self, letter: str) -> None:
        self.letter = letter


_NUMPY_LETTERS = {"b1": "?", "f2": "e", "f4": "f", "f8": "d"}
for _size, _letter in ((1, "b"), (2, "h"), (4, "i"), (8, "q")):
    _NUMPY_LETTERS |= {f"i{_size}": _letter, f"u{_size}": _letter.upper()}


def _numpy_type_make(arguments: tuple[Any, ...]) -> _NumpyType:
    name = arguments[0] if arguments else None
    check(type(name) is str and name in _NUMPY_LETTERS, f"a type of NumPy is {_shown(name)}")
    return _NumpyType(_NUMPY_LETTERS[name])


def _numpy_number_make(arguments: tuple[Any, ...]) -> Any:
    """A number of NumPy, as one of Python."""
    check(
        len(arguments) == 2
        and isinstance(arguments[0], _NumpyType)
        and type(arguments[1]) is bytes
        and len(arguments[1]) == struct.calcsize(arguments[0].letter),
        "a number of NumPy has not the parts that it should",
    )
    return struct.unpack("<" + arguments[0].letter, arguments[1])[0]


_STORAGES = {
    "BoolStorage": _C.bool,
    "ByteStorage": _C.uint8,
    "CharStorage": _C.int8,
    "ShortStorage": _C.int16,
    "IntStorage": _C.int32,
    "LongStorage": _C.int64,
    "HalfStorage": _C.float16,
    "BFloat16Storage": _C.bfloat16,
    "FloatStorage": _C.float32,
    "DoubleStorage": _C.float64,
}
_CALLS = {
    "torch._utils._rebuild_tensor": _tensor_make,
    "torch._utils._rebuild_tensor_v2": _tensor_make,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter_make,
    "torch._utils._rebuild_parameter_with_state": _parameter_make,
    "torch._tensor._rebuild_from_type_v2": _typed_tensor_make,
    "torch.Size": _size_make,
    "torch.device": _device_make,
    "collections.OrderedDict": _ordered_make,
    "collections.Counter": _counter_make,
    "_codecs.encode": _encode_make,
    "numpy.dtype": _numpy_type_make,
    "numpy.core.multiarray.scalar": _numpy_number_make,
    "numpy._core.multiarray.scalar": _numpy_number_make,
}
for _module in ("builtins", "__builtin__"):
    _CALLS |= {
        f"{_module}.set": _set_make(set),
        f"{_module}.frozenset": _set_make(frozenset),
        f"{_module}.complex": _complex_make,
        f"{_module}.bytearray": _bytearray_make,
        f"{_module}.bytes": lambda arguments: bytes(_bytearray_make(arguments)),
    }
_GLOBALS: dict[str, Any] = {
    **{name: _Name(name, call=call) for name, call in _CALLS.items()},
    **{f"torch.{name}": _Elements(dtype) for name, dtype in _STORAGES.items()},
    "torch.storage.UntypedStorage": _Elements(None),
    **{f"torch.{name}": dtype for name, dtype in _structure.DTYPES.items()},
    **{name: _Name(name) for name in ("torch.Tensor", "torch.nn.parameter.Parameter")},
}


def _key_check(key: Any) -> Any:
    if not _structure.is_key(key):
        raise ValueError(f"a key is {_shown(key)}: they are {_structure.KEYS}")
    return key


# ---- the pickle ----


class Reader:
    """Runs one pickle. The stack holds values; a mark is a height of it."""

    def __init__(self, data: Any, sizes: dict[str, int]) -> None:
        self.data, self.at = data, 0
        self.sizes = sizes  # bytes of each storage
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.copied = 0  # items that calls have copied, see reduce()

    # ---- bytes ----

    def take(self, count: int) -> bytes:
        """Take the next bytes."""
        if count > len(self.data) - self.at:
            raise ValueError("its pickle ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size: int, is_signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=is_signed)

    def text(self, size: int) -> str:
        return self.take(self.number(size)).decode("utf-8", "surrogatepass")

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        check(end >= 0, "its pickle ends too early")
        line = self.take(end - self.at + 1)[:-1]
        return line.decode("utf-8", "replace")

    # ---- the stack ----

    def pop(self) -> Any:
        """Take the value on top, which is above the last mark."""
        floor = self.marks[-1] if self.marks else 0
        check(len(self.stack) > floor, "its pickle takes more values than it has")
        return self.stack.pop()

    def pop_marked(self) -> list[Any]:
        check(bool(self.marks), "its pickle has no mark where one is needed")
        height = self.marks.pop()
        values = self.stack[height:]
        del self.stack[height:]
        return values

    def top(self, kind: Any) -> Any:
        floor = self.marks[-1] if self.marks else 0
        check(
            len(self.stack) > floor and isinstance(self.stack[-1], kind),
            "its pickle adds something to what is no container",
        )
        return self.stack[-1]

    def set_items(self, values: list[Any]) -> None:
        target = self.top(dict)
        check(len(values) % 2 == 0, "its pickle has a key without a value")
        for place in range(0, len(values), 2):
            target[_key_check(values[place])] = values[place + 1]

    # ---- names ----

    def find(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        found = _GLOBALS.get(full)
        if found is None:
            raise ValueError(
                f"it has {full!r:.{_SHOWN}}, which is not read: a file may have tensors, "
                "parameters, dicts, lists, tuples, sets, numbers and texts. Save a state_dict(), "
                "not the object"
            )
        return found

    def reduce(self) -> Any:
        arguments, function = self.pop(), self.pop()
        check(type(arguments) is tuple, "its pickle calls something without arguments")
        if not isinstance(function, _Name) or function.call is None:
            raise ValueError(f"its pickle calls {_shown(function)}, which cannot be called")
        # One list can be given to many calls: together they copy no more than was read.
        self.copied += sum(len(one) for one in arguments if hasattr(one, "__len__"))
        check(self.copied <= 2 * self.at, "its pickle copies the same values many times")
        return function.call(arguments)

    def build(self) -> None:
        state = self.pop()
        target = self.top((OrderedDict, _NumpyType))
        if isinstance(target, _NumpyType):
            is_right = type(state) is tuple and len(state) > 1 and state[1] in ("<", "|")
            check(is_right, "a number of NumPy is of a machine whose byte order is not little")
            return
        check(type(state) is dict, "the attributes of an OrderedDict are no dict")
        if "_metadata" in state:
            target._metadata = state["_metadata"]

    def persistent(self) -> Storage:
        found = self.pop()
        check(
            type(found) is tuple and len(found) == 5 and found[0] == "storage",
            "it refers to something that is no storage",
        )
        made = self.storage(found[1:])
        key, size = made.key, made.nbytes
        if key not in self.sizes:
            raise ValueError(f"storage {key!r:.40} is not in the file")
        if self.sizes[key] != size:
            raise ValueError(
                f"storage {key!r:.40} should have {size} bytes, but there are {self.sizes[key]}"
            )
        return made

    def storage(self, parts: tuple[Any, ...]) -> Storage:
        """Make a storage of its type, its key, its place, and how many elements it has."""
        kind, key, location, count = parts
        check(isinstance(kind, _Elements), f"a storage is of type {_shown(kind)}")
        check(type(key) is str and type(location) is str, "a storage has no name")
        check(type(count) is int and 0 <= count < 1 << 60, "a storage has no size")
        size = count * (1 if kind.dtype is None else kind.dtype.itemsize)
        return Storage(key, kind.dtype, size, location)

    # ---- running ----

    def run(self) -> Any:
        """Read up to the end; the value on top."""
        while True:
            opcode = self.take(1)
            if opcode == b".":
                return self.pop()
            action = _OPCODES.get(opcode)
            if action is None:
                raise ValueError(
                    f"its pickle has the opcode {opcode!r}, which torch.save does not write"
                )
            action(self)

    def protocol(self) -> None:
        check(self.number(1) <= 5, "its pickle has a protocol that is not known")

    def frame(self) -> None:
        check(self.number(8) <= len(self.data) - self.at, "its pickle ends too early")

    def put(self, index: int) -> None:
        floor = self.marks[-1] if self.marks else 0
        check(len(self.stack) > floor, "its pickle remembers a value that it has not made")
        self.memo[index] = self.stack[-1]

    def get(self, index: int) -> None:
        check(index in self.memo, "its pickle asks for a value that it has not made")
        self.stack.append(self.memo[index])

    def tuple_of(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.stack.append(tuple(reversed(values)))

    def pop_any(self) -> None:
        """Take the value on top away, or the mark if there is nothing above it."""
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.pop()

    def append(self) -> None:
        value = self.pop()
        self.top(list).append(value)

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        check(type(name) is str and type(module) is str, "its pickle has a name that is no text")
        self.stack.append(self.find(module, name))


def _push(make: Callable[[Reader], Any]) -> Callable[[Reader], None]:
    return lambda reader: reader.stack.append(make(reader))


_OPCODES: dict[bytes, Callable[[Reader], Any]] = {
    b"\x80": Reader.protocol,
    b"\x95": Reader.frame,
    b"(": lambda r: r.marks.append(len(r.stack)),
    b"0": Reader.pop_any,
    b"1": Reader.pop_marked,
    b"N": _push(lambda r: None),
    b"\x88": _push(lambda r: True),
    b"\x89": _push(lambda r: False),
    b"K": _push(lambda r: r.number(1)),
    b"M": _push(lambda r: r.number(2)),
    b"J": _push(lambda r: r.number(4, True)),
    b"\x8a": _push(lambda r: r.number(r.number(1), True)),
    b"G": _push(lambda r: struct.unpack(">d", r.take(8))[0]),
    b"U": _push(lambda r: r.text(1)),  # as Python 2 wrote texts
    b"T": _push(lambda r: r.text(4)),
    b"X": _push(lambda r: r.text(4)),
    b"\x8c": _push(lambda r: r.text(1)),
    b"C": _push(lambda r: r.take(r.number(1))),
    b"B": _push(lambda r: r.take(r.number(4))),
    b"]": _push(lambda r: []),
    b"}": _push(lambda r: {}),
    b")": _push(lambda r: ()),
    b"t": _push(lambda r: tuple(r.pop_marked())),
    b"\x85": lambda r: r.tuple_of(1),
    b"\x86": lambda r: r.tuple_of(2),
    b"\x87": lambda r: r.tuple_of(3),
    b"a": Reader.append,
    b"e": lambda r: (lambda values: r.top(list).extend(values))(r.pop_marked()),
    b"s": Reader.set_item,
    b"u": lambda r: r.set_items(r.pop_marked()),
    b"\x8f": _push(lambda r: set()),
    b"\x90": lambda r: (lambda values: r.top(set).update(map(_key_check, values)))(r.pop_marked()),
    b"\x91": _push(lambda r: frozenset(map(_key_check, r.pop_marked()))),
    b"q": lambda r: r.put(r.number(1)),
    b"r": lambda r: r.put(r.number(4)),
    b"\x94": lambda r: r.put(len(r.memo)),
    b"h": lambda r: r.get(r.number(1)),
    b"j": lambda r: r.get(r.number(4)),
    b"c": _push(lambda r: r.find(r.line(), r.line())),
    b"\x93": Reader.stack_global,
    b"R": _push(Reader.reduce),
    b"b": Reader.build,
    b"Q": _push(lambda r: r.persistent()),
}


# ---- what was read ----


def children_of(value: Any) -> list[Any]:
    """List what is in a container; nothing of other values."""
    if isinstance(value, dict):
        found = [*value.values()]
        metadata = getattr(value, "_metadata", None)
        return found if metadata is None else [*found, metadata]
    return list(value) if type(value) in (list, tuple) else []


def tree_check(value: Any) -> None:
    """Raise for what contains itself, is nested too deeply, or is no value."""
    done: set[int] = set()
    open_now: set[int] = {id(value)}
    path = [(value, iter(children_of(value)))]
    _value_check(value)
    while path:
        parent, left = path[-1]
        child = next(left, path)
        if child is path:
            path.pop()
            open_now.discard(id(parent))
            done.add(id(parent))
            continue
        _value_check(child)
        if not isinstance(child, (dict, list, tuple)) or id(child) in done:
            continue
        check(id(child) not in open_now, "something in it contains itself")
        check(len(path) < _DEPTH_MOST, f"it is nested more than {_DEPTH_MOST} deep")
        open_now.add(id(child))
        path.append((child, iter(children_of(child))))


def _value_check(value: Any) -> None:
    if isinstance(value, (_Name, _Elements, Storage, _NumpyType)):
        raise ValueError("it has a storage, a type or a function where a value should be")
