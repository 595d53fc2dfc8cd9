"""Reads files of torch.save: tensors and plain containers, in PyTorch's zip layout.

    NAME/data.pkl       a pickle of what was saved; a storage is a reference to ...
    NAME/data/KEY       ... its bytes
    NAME/byteorder      "little"

A pickle is a program for a machine with a stack, and Python's own reader lets it call anything.
This one knows the opcodes that torch.save writes and the names in _GLOBALS, and calls nothing else:

1. Everything else is refused before it does anything, by its name.
2. What is made is bounded by the bytes that were read: no length is believed that the file does
   not have, and entries of the zip that are compressed or overlap are refused.
3. Keys of dicts are numbers of 64 bits, texts, and short tuples of these: their hash is cheap.
4. The result contains nothing that contains itself, and is not nested too deeply.
"""

from __future__ import annotations

import errno
import os
import struct
import zipfile
from collections import Counter, OrderedDict
from typing import Any

from genesis import _C, _structure
from genesis._safetensors import read_elements, view_check, view_make
from genesis._tensor_storage import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    Move = Callable[[_C.Tensor, str], _C.Tensor]

__all__ = ["read"]

_DEPTH_MOST = 1000
_SHOWN = 80  # characters of a name in a message


def _shown(value: Any) -> str:
    return repr(value)[:_SHOWN] if isinstance(value, (str, bytes, int)) else type(value).__name__


# ---- what a pickle may name ----


class _Name:
    """A global of a file: a text, and what it means to this reader."""

    def __init__(self, text: str, value: Any = None, call: Any = None) -> None:
        self.text, self.value, self.call = text, value, call


class _Elements:
    """The type of a storage's elements; None for bytes."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


class _Storage:
    """Memory that tensors of the file are views of, with a type, or None for bytes."""

    def __init__(self, key: str, dtype: Any, nbytes: int, location: str) -> None:
        self.key, self.dtype, self.nbytes, self.location = key, dtype, nbytes, location


class _Tensor:
    """A tensor that is to be made, when the pickle has turned out to be right."""

    def __init__(
        self, storage: _Storage, dtype: Any, shape: Any, strides: Any, offset: int
    ) -> None:
        self.storage, self.dtype = storage, dtype
        self.shape, self.strides, self.offset = shape, strides, offset
        self.needs_gradient = self.is_parameter = False


def _check(is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(what)


def _tensor_make(arguments: tuple[Any, ...], dtype: Any = None) -> _Tensor:
    _check(4 <= len(arguments) <= 7, "a tensor has the wrong number of parts")
    storage, offset, shape, strides = arguments[:4]
    _check(isinstance(storage, _Storage), "a tensor has no storage")
    _check(type(shape) in (tuple, Size) and type(strides) is tuple, "a tensor has no shape")
    dtype = dtype or storage.dtype
    _check(isinstance(dtype, _C.dtype), "a tensor's storage has no type")
    what = f"a tensor of storage {storage.key!r:.40}"
    view_check(what, tuple(shape), strides, offset, storage.nbytes // dtype.itemsize)
    _check(
        (dtype == _C.bool) == (storage.dtype == _C.bool),
        f"{what} is of {dtype}, but its storage is of {storage.dtype or 'bytes'}",
    )
    made = _Tensor(storage, dtype, tuple(shape), strides, offset)
    return _gradient_set(made, len(arguments) > 4 and arguments[4])


def _gradient_set(made: _Tensor, needs_gradient: Any) -> _Tensor:
    _check(type(needs_gradient) is bool, "whether a tensor needs gradients is no truth")
    _check(
        not needs_gradient or made.dtype.is_floating_point,
        f"a tensor of {made.dtype} cannot need gradients",
    )
    made.needs_gradient = needs_gradient
    return made


def _tensor_v3(arguments: tuple[Any, ...]) -> _Tensor:
    _check(len(arguments) in (7, 8), "a tensor has the wrong number of parts")
    dtype = arguments[6]
    _check(isinstance(dtype, _C.dtype), "a tensor's type is no dtype")
    return _tensor_make(arguments[:6], dtype)


def _parameter_make(arguments: tuple[Any, ...]) -> _Tensor:
    _check(
        len(arguments) in (3, 4) and isinstance(arguments[0], _Tensor), "a parameter is no tensor"
    )
    given = arguments[0]
    made = _Tensor(given.storage, given.dtype, given.shape, given.strides, given.offset)
    made.is_parameter = True
    return _gradient_set(made, arguments[1])


def _typed_tensor_make(arguments: tuple[Any, ...]) -> _Tensor:
    """A tensor with attributes, which are dropped."""
    _check(
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
    _check(
        not arguments or (len(arguments) == 1 and type(arguments[0]) is dict),
        "a Counter is no dict",
    )
    made: Any = Counter()
    for key, count in (arguments[0] if arguments else {}).items():
        made[key] = count
    return made


def _pairs_checked(arguments: tuple[Any, ...]) -> list[Any]:
    _check(len(arguments) <= 1, "an OrderedDict has the wrong number of parts")
    pairs = list(arguments[0]) if arguments and type(arguments[0]) is list else []
    _check(not arguments or type(arguments[0]) is list, "an OrderedDict is no list of pairs")
    for pair in pairs:
        _check(type(pair) in (list, tuple) and len(pair) == 2, "an OrderedDict is of pairs")
        _key_check(pair[0])
    return pairs


def _set_make(kind: Any) -> Any:
    def make(arguments: tuple[Any, ...]) -> Any:
        _check(len(arguments) == 1 and type(arguments[0]) in (list, tuple), "a set is no list")
        return kind(map(_key_check, arguments[0]))

    return make


def _size_make(arguments: tuple[Any, ...]) -> Any:
    _check(len(arguments) == 1 and type(arguments[0]) in (list, tuple), "a size is no tuple")
    _check(all(type(one) is int for one in arguments[0]), "a size is not of integers")
    return Size(arguments[0])


def _device_make(arguments: tuple[Any, ...]) -> Any:
    _check(
        len(arguments) in (1, 2) and type(arguments[0]) is str and len(arguments[0]) < 40,
        "a device has no name",
    )
    _check(
        all(type(one) is int and 0 <= one < 1 << 16 for one in arguments[1:]), "a device's index"
    )
    name = ":".join(map(str, arguments))
    try:
        return _C.device(name)
    except RuntimeError:
        raise ValueError(f"it has the device {name!r:.60}, which is not known here") from None


def _complex_make(arguments: tuple[Any, ...]) -> complex:
    _check(
        len(arguments) == 2 and all(type(one) is float for one in arguments),
        "a complex number has two parts",
    )
    return complex(*arguments)


def _encode_make(arguments: tuple[Any, ...]) -> bytes:
    _check(
        len(arguments) == 2 and type(arguments[0]) is str and arguments[1] == "latin1",
        "bytes are not written as latin1",
    )
    return arguments[0].encode("latin1")


def _bytearray_make(arguments: tuple[Any, ...]) -> bytearray:
    _check(
        not arguments or (len(arguments) == 1 and type(arguments[0]) is bytes),
        "a bytearray is none",
    )
    return bytearray(*arguments)


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
    **{f"torch.{name}": dtype for name, dtype in _structure._DTYPES.items()},
    **{name: _Name(name) for name in ("torch.Tensor", "torch.nn.parameter.Parameter")},
}


def _key_check(key: Any) -> Any:
    if not _structure._is_key(key):
        raise ValueError(f"a key is {_shown(key)}: they are {_structure._KEYS}")
    return key


# ---- the pickle ----


class _Reader:
    """Runs one pickle. The stack holds values; a mark is a height of it."""

    def __init__(self, data: bytes, sizes: dict[str, int]) -> None:
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
        _check(end >= 0, "its pickle ends too early")
        line = self.take(end - self.at + 1)[:-1]
        return line.decode("utf-8", "replace")

    # ---- the stack ----

    def pop(self) -> Any:
        """Take the value on top, which is above the last mark."""
        floor = self.marks[-1] if self.marks else 0
        _check(len(self.stack) > floor, "its pickle takes more values than it has")
        return self.stack.pop()

    def pop_marked(self) -> list[Any]:
        _check(bool(self.marks), "its pickle has no mark where one is needed")
        height = self.marks.pop()
        values = self.stack[height:]
        del self.stack[height:]
        return values

    def top(self, kind: Any) -> Any:
        floor = self.marks[-1] if self.marks else 0
        _check(
            len(self.stack) > floor and isinstance(self.stack[-1], kind),
            "its pickle adds something to what is no container",
        )
        return self.stack[-1]

    def set_items(self, values: list[Any]) -> None:
        target = self.top(dict)
        _check(len(values) % 2 == 0, "its pickle has a key without a value")
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
        _check(type(arguments) is tuple, "its pickle calls something without arguments")
        if not isinstance(function, _Name) or function.call is None:
            raise ValueError(f"its pickle calls {_shown(function)}, which cannot be called")
        # One list can be given to many calls: together they copy no more than was read.
        self.copied += sum(len(one) for one in arguments if hasattr(one, "__len__"))
        _check(self.copied <= 2 * len(self.data), "its pickle copies the same values many times")
        return function.call(arguments)

    def build(self) -> None:
        state = self.pop()
        target = self.top(OrderedDict)
        _check(type(state) is dict, "the attributes of an OrderedDict are no dict")
        if "_metadata" in state:
            target._metadata = state["_metadata"]

    def persistent(self) -> _Storage:
        found = self.pop()
        _check(
            type(found) is tuple and len(found) == 5 and found[0] == "storage",
            "it refers to something that is no storage",
        )
        _, kind, key, location, count = found
        _check(isinstance(kind, _Elements), f"a storage is of type {_shown(kind)}")
        _check(type(key) is str and type(location) is str, "a storage has no name")
        _check(type(count) is int and 0 <= count < 1 << 60, "a storage has no size")
        size = count * (1 if kind.dtype is None else kind.dtype.itemsize)
        if key not in self.sizes:
            raise ValueError(f"storage {key!r:.40} is not in the file")
        if self.sizes[key] != size:
            raise ValueError(
                f"storage {key!r:.40} should have {size} bytes, but there are {self.sizes[key]}"
            )
        return _Storage(key, kind.dtype, size, location)

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
        _check(self.number(1) <= 5, "its pickle has a protocol that is not known")

    def frame(self) -> None:
        _check(self.number(8) <= len(self.data) - self.at, "its pickle ends too early")

    def put(self, index: int) -> None:
        floor = self.marks[-1] if self.marks else 0
        _check(len(self.stack) > floor, "its pickle remembers a value that it has not made")
        self.memo[index] = self.stack[-1]

    def get(self, index: int) -> None:
        _check(index in self.memo, "its pickle asks for a value that it has not made")
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
        _check(type(name) is str and type(module) is str, "its pickle has a name that is no text")
        self.stack.append(self.find(module, name))


def _push(make: Callable[[_Reader], Any]) -> Callable[[_Reader], None]:
    return lambda reader: reader.stack.append(make(reader))


_OPCODES: dict[bytes, Callable[[_Reader], Any]] = {
    b"\x80": _Reader.protocol,
    b"\x95": _Reader.frame,
    b"(": lambda r: r.marks.append(len(r.stack)),
    b"0": _Reader.pop_any,
    b"1": _Reader.pop_marked,
    b"N": _push(lambda r: None),
    b"\x88": _push(lambda r: True),
    b"\x89": _push(lambda r: False),
    b"K": _push(lambda r: r.number(1)),
    b"M": _push(lambda r: r.number(2)),
    b"J": _push(lambda r: r.number(4, True)),
    b"\x8a": _push(lambda r: r.number(r.number(1), True)),
    b"G": _push(lambda r: struct.unpack(">d", r.take(8))[0]),
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
    b"a": _Reader.append,
    b"e": lambda r: (lambda values: r.top(list).extend(values))(r.pop_marked()),
    b"s": _Reader.set_item,
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
    b"\x93": _Reader.stack_global,
    b"R": _push(_Reader.reduce),
    b"b": _Reader.build,
    b"Q": _push(_Reader.persistent),
}


# ---- what was read ----


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        found = [*value.values()]
        metadata = getattr(value, "_metadata", None)
        return found if metadata is None else [*found, metadata]
    return list(value) if type(value) in (list, tuple) else []


def _tree_check(value: Any) -> None:
    """Raise for what contains itself, is nested too deeply, or is no value."""
    done: set[int] = set()
    open_now: set[int] = {id(value)}
    path = [(value, iter(_children(value)))]
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
        _check(id(child) not in open_now, "something in it contains itself")
        _check(len(path) < _DEPTH_MOST, f"it is nested more than {_DEPTH_MOST} deep")
        open_now.add(id(child))
        path.append((child, iter(_children(child))))


def _value_check(value: Any) -> None:
    if isinstance(value, (_Name, _Elements, _Storage)):
        raise ValueError("it has a storage or a function where a value should be")


class _Maker:
    """Makes the tensors of a tree, and puts them where they stand."""

    def __init__(self, memory: Callable[[_Storage], _C.Tensor]) -> None:
        self._memory = memory
        self._made: dict[int, Any] = {}  # by the identity of what stands for it
        self._kept: list[Any] = []  # so that identities stay
        self._parameter = _structure.parameter_class()

    def tensor(self, given: _Tensor) -> _C.Tensor:
        base = self._memory(given.storage)
        made = view_make(base, given.dtype, given.shape, given.strides, given.offset)
        if given.is_parameter and self._parameter is not None:
            return self._parameter(made, given.needs_gradient)
        return made.requires_grad_() if given.needs_gradient else made

    def fill(self, root: Any) -> Any:
        """The tree with tensors: lists and dicts are changed in place, tuples made again."""
        path: list[tuple[Any, bool]] = [(root, False)]
        while path:
            value, is_ready = path.pop()
            if id(value) in self._made or isinstance(value, (str, bytes, int, float, type(None))):
                continue
            if isinstance(value, _Tensor):
                self._keep(value, self.tensor(value))
            elif is_ready:
                self._keep(value, self._filled(value))
            elif children := _children(value):
                path.append((value, True))
                path.extend((child, False) for child in children)
        return self._of(root)

    def _keep(self, value: Any, made: Any) -> None:
        self._kept.append(value)
        self._made[id(value)] = made

    def _of(self, value: Any) -> Any:
        return self._made.get(id(value), value)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            for key, one in value.items():
                value[key] = self._of(one)
            if getattr(value, "_metadata", None) is not None:
                value._metadata = self._of(value._metadata)
            return value
        if type(value) is list:
            value[:] = map(self._of, value)
            return value
        made = tuple(map(self._of, value))
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value


# ---- the file ----


_ZIP_ERRORS = (
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, struct.error, OverflowError),
    UnicodeDecodeError,
)


def _of_offset(error: OSError) -> Exception:
    """What a file says to an offset that no file has is no error of the file's device."""
    return ValueError("an offset in the zip is wrong") if error.errno == errno.EINVAL else error


class _Archive:
    """The zip: its entries, each of which is a part of the file of its own."""

    def __init__(self, file: Any, size: int) -> None:
        try:
            self.zip = zipfile.ZipFile(file)
        except _ZIP_ERRORS as error:
            raise ValueError(f"it is no whole zip file, as torch.save writes: {error}") from None
        except OSError as error:
            raise _of_offset(error) from None
        infos = self.zip.infolist()
        self.infos = {info.filename: info for info in infos}
        _check(len(self.infos) == len(infos), "an entry of the zip stands twice")
        total = 0
        for info in infos:
            total += max(info.file_size, info.compress_size)
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
                raise ValueError(
                    f"its entry {info.filename!r:.60} is compressed or encrypted, which torch.save "
                    "does not do"
                )
            _check(info.file_size == info.compress_size, "an entry of the zip has two sizes")
        _check(total <= size, "the entries of the zip have more bytes than the file")
        found = [name for name in self.infos if name.endswith("/data.pkl")]
        if len(found) != 1 or found[0].count("/") != 1:
            raise ValueError("this zip file is not one of torch.save: it has no data.pkl")
        self.root = found[0][: -len("data.pkl")]

    def open(self, name: str) -> Any:
        """Open an entry for reading."""
        try:
            return self.zip.open(self.infos[self.root + name])
        except _ZIP_ERRORS as error:
            raise ValueError(f"its entry {name!r:.60} cannot be read: {error}") from None
        except OSError as error:
            raise _of_offset(error) from None

    def content(self, name: str) -> bytes:
        with self.open(name) as entry:
            try:
                data = entry.read()
            except (zipfile.BadZipFile, EOFError, OverflowError) as error:
                raise ValueError(f"its entry {name!r:.60} is damaged: {error}") from None
        _check(len(data) == self.infos[self.root + name].file_size, "the file ends too early")
        return data

    def offset(self, name: str, file: Any, begin: int) -> int:
        """Where the bytes of an entry begin in the file, for who maps it."""
        at = begin + self.infos[self.root + name].header_offset
        _check(0 <= at < file.seek(0, os.SEEK_END), f"its entry {name!r:.60} is damaged")
        file.seek(at)
        head = file.read(30)
        _check(len(head) == 30 and head[:4] == b"PK\x03\x04", f"its entry {name!r:.60} is damaged")
        return at + 30 + sum(struct.unpack_from("<HH", head, 26))


def _elements(archive: _Archive, storage: _Storage, dtype: Any) -> _C.Tensor:
    """The content of a storage, as its own memory."""
    name = f"data/{storage.key}"
    tensor = _C._empty((storage.nbytes // dtype.itemsize,), dtype, "cpu")
    with archive.open(name) as entry:
        try:
            read_elements(entry, tensor, f"storage {storage.key!r:.40}")
            if entry.read(1):
                raise ValueError(f"storage {storage.key!r:.40} is longer than it should be")
        except (zipfile.BadZipFile, EOFError, OverflowError) as error:
            raise ValueError(f"storage {storage.key!r:.40} is damaged: {error}") from None
    return tensor


def _mapped(archive: _Archive, storage: _Storage, dtype: Any, file: Any, begin: int) -> Any:
    """The same over the file; None where it does not lie aligned, or is to be changed."""
    offset = archive.offset(f"data/{storage.key}", file, begin)
    if not storage.nbytes or dtype == _C.bool or offset % dtype.itemsize:
        return None
    end = file.seek(0, os.SEEK_END)
    _check(offset + storage.nbytes <= end, f"storage {storage.key!r:.40} is not within the file")
    part = (dtype, (storage.nbytes // dtype.itemsize,), offset)
    return _C._shared_tensors(file.fileno(), (part,), True)[0]


def read(file: BinaryIO, begin: int, size: int, move: Move, is_mapped: bool) -> Any:
    """Read a file of torch.save that begins at a byte, and has so many.

    Parameters
    ----------
    file : file
        Open for bytes.
    begin, size : int
        Its first byte, and how many there are.
    move : callable
        Says where a storage goes, by the place that it was saved from.
    is_mapped : bool
        Whether storages are views of the file.
    """
    source: Any = file
    if begin:
        import io

        file.seek(begin)
        source = io.BytesIO(file.read(size))
        _check(len(source.getvalue()) == size, "the file ends too early")
    archive = _Archive(source, size)
    if f"{archive.root}byteorder" in archive.infos:
        order = archive.content("byteorder")
        if order != b"little":
            raise ValueError(f"it is from a machine whose byte order is {order!r:.40}, not little")
    prefix = f"{archive.root}data/"
    sizes = {
        name[len(prefix) :]: info.file_size
        for name, info in archive.infos.items()
        if name.startswith(prefix)
    }
    tree = _Reader(archive.content("data.pkl"), sizes).run()
    _tree_check(tree)
    memory: dict[str, _C.Tensor] = {}

    def storage_memory(storage: _Storage) -> _C.Tensor:
        if storage.key not in memory:
            dtype = storage.dtype or _C.uint8
            found = _mapped(archive, storage, dtype, file, begin) if is_mapped else None
            found = _elements(archive, storage, dtype) if found is None else found
            memory[storage.key] = move(found, storage.location)
        return memory[storage.key]

    made = _Maker(storage_memory).fill(tree)
    file.seek(begin + size)
    return made
