"""Tensors in files, in the layout of safetensors.

    8 bytes     the length of the header, little-endian
    header      JSON: name -> {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
                padded with spaces so that what follows is aligned
    the rest    the elements, row-major, without holes; offsets count from here

What stands in a file is believed only after it was checked: nothing is allocated for a tensor
before its bytes are known to be there.
"""

from __future__ import annotations

import errno
import os

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any, BinaryIO

    Entry = tuple[str, _C.dtype, tuple[int, ...], int, int]  # name, dtype, shape, begin, end

__all__ = ["load", "save"]

_HEADER_MOST = 100_000_000  # bytes: the layout's own limit
_ALIGNMENT = 8
_CHUNK = 1 << 24  # bytes that are read or written at once
_DIMENSIONS_MOST = 16
_ALONE = {"genesis": "tensor"}  # the metadata of a file that holds one tensor, without a name
_CODES = {
    "BOOL": _C.bool,
    "U8": _C.uint8,
    "U16": _C.uint16,
    "U32": _C.uint32,
    "U64": _C.uint64,
    "I8": _C.int8,
    "I16": _C.int16,
    "I32": _C.int32,
    "I64": _C.int64,
    "F16": _C.float16,
    "BF16": _C.bfloat16,
    "F32": _C.float32,
    "F64": _C.float64,
}


def save(
    tensors: Mapping[str, _C.Tensor] | _C.Tensor, path: str | os.PathLike[str] | BinaryIO
) -> None:
    """Write tensors to a file in the safetensors layout.

    The file is there as a whole or not at all: what was there before stays until then.

    Parameters
    ----------
    tensors : dict of str to Tensor, or Tensor
        Views are written as contiguous tensors. One tensor alone is one again when it is loaded.
        Tensors of a GPU are written as well; loaded tensors are the CPU's, unless load() is told.
    path : str, path or file
        Where; the directory must be there. To an open file, or an ``io.BytesIO``, the bytes are
        written from where it is on.

    Raises
    ------
    TypeError
        If it is something else than tensors by names.
    OSError
        FileNotFoundError, IsADirectoryError, PermissionError or another, of this path.

    Examples
    --------
    >>> import os, tempfile
    >>> import genesis
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> genesis.save({"bias": genesis.ones(2)}, path)
    >>> genesis.load(path)
    {'bias': tensor([1., 1.])}
    """
    is_alone = isinstance(tensors, _C.Tensor)
    if not is_alone and not hasattr(tensors, "keys"):
        raise TypeError(
            f"save: a Tensor, or a dict of names and tensors, not {type(tensors).__name__}"
        )
    named = {"tensor": tensors} if is_alone else dict(tensors)
    for name, tensor in named.items():
        if not isinstance(name, str):
            raise TypeError(f"save: names of tensors are str, not {name!r}")
        if name == "__metadata__":
            raise ValueError("save: the layout keeps the name '__metadata__' for itself")
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(f"save: {name!r} is {type(tensor).__name__}, not a Tensor")
    # Wide elements first: then each tensor lies aligned without holes between them.
    order = sorted(named, key=lambda name: (-named[name].element_size(), name))
    header = _header(named, order, is_alone)
    if hasattr(path, "write"):
        _write_all(path, header, (named[name] for name in order))
        return

    from pathlib import Path

    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "this is a directory")
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no directory '{target.parent}'")
        _write_file(target, header, (named[name] for name in order))
    except OSError as error:  # of the path that was given: nobody has heard of the draft
        raise OSError(error.errno, f"save: {error.strerror}", os.fspath(path)) from None


def _write_file(target: Path, header: bytes, tensors: Iterable[_C.Tensor]) -> None:
    """Write a draft beside the file, which takes its place when it is on the disk."""
    draft = target.with_name(f"{target.name[:32]}.{os.getpid()}-{os.urandom(4).hex()}")
    with draft.open("xb", buffering=0) as file:
        try:
            _write_all(file, header, tensors)
            os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink()
            raise


def _header(tensors: dict[str, _C.Tensor], order: list[str], is_alone: bool) -> bytes:
    import json

    codes = {dtype: code for code, dtype in _CODES.items()}
    begins, end = {}, 0
    for name in order:
        begins[name], end = end, end + tensors[name].nbytes
    entries: dict[str, Any] = {"__metadata__": _ALONE} if is_alone else {}
    for name, tensor in tensors.items():
        entries[name] = {
            "dtype": codes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begins[name], begins[name] + tensor.nbytes],
        }
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > _HEADER_MOST:
        raise ValueError(f"save: names and shapes take {len(text)} bytes, more than a file holds")
    return len(text).to_bytes(8, "little") + text


def _chunks(tensor: _C.Tensor) -> Iterator[tuple[int, int]]:
    """The elements in parts: where each begins, and how many it has."""
    total, most = tensor.numel(), _CHUNK // tensor.element_size()
    return ((first, min(most, total - first)) for first in range(0, total, most))


def _write_all(file: BinaryIO, header: bytes, tensors: Iterable[_C.Tensor]) -> None:
    _write(file, header)
    for tensor in tensors:
        near = tensor.cpu().contiguous()
        for first, count in _chunks(near):
            _write(file, _C._bytes_of(near, first, count))


def _write(file: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def load(path: str | os.PathLike[str] | BinaryIO, *, device: Any = None) -> Any:
    """Read the tensors of a file in the safetensors layout.

    Parameters
    ----------
    path : str, path or file
        The file; or one that is open for bytes and can seek, an ``io.BytesIO`` for example, which
        is read from where it is to its end.
    device : device or str, optional
        Where the tensors go, one after the other; the CPU if not given.

    Returns
    -------
    dict of str to Tensor, or Tensor
        As they were saved, in that order. Each has memory of its own.

    Raises
    ------
    ValueError
        If the file is not what it should be, with what is wrong.

    Examples
    --------
    >>> import os, tempfile
    >>> import genesis
    >>> path = os.path.join(tempfile.mkdtemp(), "one.safetensors")
    >>> genesis.save(genesis.arange(3), path)
    >>> genesis.load(path)
    tensor([0, 1, 2])
    """
    place = _C._empty((0,), _C.uint8, "cpu" if device is None else device).device
    try:
        if hasattr(path, "readinto"):
            return _read_all(path, place)
        if hasattr(path, "read"):
            raise TypeError(f"load: {path!r} is not open for bytes: it has no readinto()")

        from pathlib import Path

        with Path(path).open("rb", buffering=0) as file:
            return _read_all(file, place)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read_all(file: BinaryIO, place: _C.device) -> Any:
    begin = file.tell()
    size = file.seek(0, os.SEEK_END) - begin
    file.seek(begin)
    entries, metadata, start = _read_header(file, size)
    made = {}
    for name, dtype, shape, offset, _ in entries:
        tensor = _C._empty(shape, dtype, "cpu")
        file.seek(begin + start + offset)
        for first, count in _chunks(tensor):
            data = bytearray(count * tensor.element_size())
            _read_into(file, memoryview(data), f"tensor {name!r}")
            _C._set_bytes(tensor, first, data)
        made[name] = tensor.to(place)
    file.seek(begin + size)
    if metadata == _ALONE and list(made) == ["tensor"]:
        return made["tensor"]
    return made


def _read_into(file: BinaryIO, view: memoryview, what: str) -> None:
    while view:
        count = file.readinto(view)
        if not count:
            raise ValueError(f"the file ends within {what}")
        view = view[count:]


def _read_header(file: BinaryIO, size: int) -> tuple[list[Entry], dict[str, str], int]:
    if size < 8:
        raise ValueError(f"{size} bytes are no safetensors file: it begins with 8 for a length")
    prefix = bytearray(8)
    _read_into(file, memoryview(prefix), "its first 8 bytes")
    length = int.from_bytes(prefix, "little")
    if length > _HEADER_MOST or length > size - 8:
        raise ValueError(
            f"the header is said to take {length} bytes, of {size - 8} that there are and "
            f"{_HEADER_MOST} that there may be: this is no safetensors file, or a part of one"
        )
    text = bytearray(length)
    _read_into(file, memoryview(text), "its header")
    entries, metadata = _parse(bytes(text))
    end = 0
    for name, _, _, begin, stop in sorted(entries, key=lambda entry: entry[3:]):
        if begin != end:
            what = "overlaps the one before it" if begin < end else "leaves a hole before it"
            raise ValueError(f"tensor {name!r} at bytes {begin} to {stop} {what}")
        end = stop
    left = size - 8 - length
    if end != left:
        raise ValueError(f"the tensors take {end} bytes, but {left} follow the header")
    return entries, metadata, 8 + length


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"{twice!r} stands twice in the header")
    return made


def _parse(text: bytes) -> tuple[list[Entry], dict[str, str]]:
    import json

    if not text.startswith(b"{"):
        raise ValueError("the header does not begin with '{'")
    try:
        header = json.loads(text.decode(), object_pairs_hook=_without_duplicates)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the header is no JSON: {error}") from None
    except RecursionError:
        raise ValueError("the header is no header: it is nested too deeply") from None
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("'__metadata__' in the header is not a dict of texts")
    return [_entry(name, value) for name, value in header.items()], metadata


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _entry(name: str, value: Any) -> Entry:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"tensor {name!r} needs dtype, shape and data_offsets, and nothing else")
    code, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    dtype = _CODES.get(code) if isinstance(code, str) else None
    if dtype is None:
        raise ValueError(f"tensor {name!r} is of type {code!r}; known are {', '.join(_CODES)}")
    if not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise ValueError(f"tensor {name!r} has no shape: {shape!r:.200}")
    if len(shape) > _DIMENSIONS_MOST:
        raise ValueError(f"tensor {name!r} has {len(shape)} dimensions: {_DIMENSIONS_MOST} at most")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
        raise ValueError(f"tensor {name!r} has no offsets: {offsets!r:.200}")
    nbytes = dtype.itemsize
    for one in shape:
        nbytes *= one
    if offsets[1] - offsets[0] != nbytes:
        raise ValueError(
            f"tensor {name!r} of shape {tuple(shape)} and {dtype} takes {nbytes} bytes, not those "
            f"from {offsets[0]} to {offsets[1]}"
        )
    return name, dtype, tuple(shape), offsets[0], offsets[1]
