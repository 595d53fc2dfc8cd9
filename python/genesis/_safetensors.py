"""Tensors in files, in the layout of safetensors.

    8 bytes     the length of the header, little-endian
    header      JSON: name -> {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
                padded with spaces so that what follows is aligned
    the rest    the elements, row-major, without holes; offsets count from here

What stands in a file is believed only after it was checked: nothing is allocated for a tensor
before its bytes are known to be there.
"""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

    Entry = tuple[str, _C.dtype, tuple[int, ...], int, int]  # name, dtype, shape, begin, end

__all__: list[str] = []

_HEADER_MOST = 100_000_000  # bytes: the layout's own limit
_ALIGNMENT = 8
_CHUNK = 1 << 24  # bytes that are read or written at once
_DIMENSIONS_MOST = 16
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


# ---- writing ----


def header_make(tensors: dict[str, _C.Tensor], order: list[str], metadata: dict[str, str]) -> bytes:
    """Make the header of a file, with its length before it; elements lie in this order."""
    import json

    codes = {dtype: code for code, dtype in _CODES.items()}
    begins, end = {}, 0
    for name in order:
        begins[name], end = end, end + tensors[name].nbytes
    entries: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    for name, tensor in tensors.items():
        entries[name] = {
            "dtype": codes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begins[name], begins[name] + tensor.nbytes],
        }
    try:
        text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"save: a name is no Unicode text: {error}") from None
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > _HEADER_MOST:
        raise ValueError(f"save: names and shapes take {len(text)} bytes, more than a file holds")
    return len(text).to_bytes(8, "little") + text


def _chunks(tensor: _C.Tensor) -> Iterator[tuple[int, int]]:
    """The elements in parts: where each begins, and how many it has."""
    total, most = tensor.numel(), _CHUNK // tensor.element_size()
    return ((first, min(most, total - first)) for first in range(0, total, most))


def write_all(file: BinaryIO, header: bytes, tensors: Iterable[_C.Tensor]) -> None:
    """Write a header, and the elements of tensors."""
    _write(file, header)
    for tensor in tensors:
        near = tensor.cpu().contiguous()
        for first, count in _chunks(near):
            _write(file, _C._bytes_of(near, first, count))


def _write(file: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


# ---- reading: the header ----


def read_into(file: BinaryIO, view: memoryview, what: str) -> None:
    """Fill a buffer from a file."""
    while view:
        count = file.readinto(view)
        if not count:
            raise ValueError(f"the file ends within {what}")
        view = view[count:]


def read_header(file: BinaryIO, size: int) -> tuple[list[Entry], dict[str, str], int]:
    """Read what stands before the elements: entries, metadata, and its length."""
    if size < 8:
        raise ValueError(f"{size} bytes are no safetensors file: it begins with 8 for a length")
    prefix = bytearray(8)
    read_into(file, memoryview(prefix), "its first 8 bytes")
    length = int.from_bytes(prefix, "little")
    if length > _HEADER_MOST or length > size - 8:
        raise ValueError(
            f"the header is said to take {length} bytes, of {size - 8} that there are and "
            f"{_HEADER_MOST} that there may be: this is no safetensors file, or a part of one"
        )
    text = bytearray(length)
    read_into(file, memoryview(text), "its header")
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


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict for the reader of JSON, which would pass over keys that stand twice."""
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
        header = json.loads(text.decode(), object_pairs_hook=without_duplicates)
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


# ---- reading: the elements ----


def read_tensors(
    file: BinaryIO, start: int, entries: list[Entry], is_mapped: bool
) -> dict[str, _C.Tensor]:
    """All tensors of a file whose elements begin at a byte."""
    if is_mapped and entries:
        return _mapped(file, start, entries)
    made = {}
    for name, dtype, shape, offset, _ in entries:
        tensor = _C._empty(shape, dtype, "cpu")
        file.seek(start + offset)
        read_elements(file, tensor, f"tensor {name!r}")
        made[name] = tensor
    return made


def read_elements(file: Any, tensor: _C.Tensor, what: str) -> None:
    """Fill a contiguous tensor of the CPU from a file."""
    for first, count in _chunks(tensor):
        data = bytearray(count * tensor.element_size())
        read_into(file, memoryview(data), what)
        _C._set_bytes(tensor, first, data)


def _mapped(file: BinaryIO, start: int, entries: list[Entry]) -> dict[str, _C.Tensor]:
    """Tensors over the file itself; those that do not lie aligned, and truths, are copies."""
    mapped: list[Entry] = []
    copied: list[Entry] = []
    for entry in entries:
        _, dtype, _, offset, end = entry
        is_aligned = (start + offset) % dtype.itemsize == 0 and end > offset
        (mapped if is_aligned and dtype != _C.bool else copied).append(entry)
    made = read_tensors(file, start, copied, False)
    if mapped:
        parts = tuple([(dtype, shape, start + offset) for _, dtype, shape, offset, _ in mapped])
        views = _C._shared_tensors(file.fileno(), parts, True)
        made |= {entry[0]: one for entry, one in zip(mapped, views, strict=True)}
    return {name: made[name] for name, *_ in entries}


# ---- views of what was read ----


def view_check(what: str, shape: Any, strides: Any, offset: Any, count: int) -> None:
    """Raise for a view that is not within a number of elements."""
    if len(shape) > _DIMENSIONS_MOST or not all(map(_is_size, shape)):
        raise ValueError(f"{what} has no shape: at most {_DIMENSIONS_MOST} sizes, none negative")
    if not _is_size(offset):
        raise ValueError(f"{what} has no offset: {type(offset).__name__}")
    if len(strides) != len(shape) or not all(
        type(one) is int and abs(one) < 1 << 62 for one in strides
    ):
        raise ValueError(f"{what} has no strides: an integer for each dimension")
    low = high = offset
    total = 1
    for size, stride in zip(shape, strides, strict=True):
        total *= size
        low += min((size - 1) * stride, 0)
        high += max((size - 1) * stride, 0)
    if total >= 1 << 62:
        raise ValueError(f"{what} has too many elements: {tuple(shape)}")
    if total and not (0 <= low <= high < count):
        raise ValueError(
            f"{what} of shape {tuple(shape)} and strides {tuple(strides)} from element {offset} on "
            f"is not within the {count} elements that there are"
        )


def view_make(base: _C.Tensor, dtype: _C.dtype, shape: Any, strides: Any, offset: int) -> _C.Tensor:
    """A checked view of memory that was read."""
    if 0 in shape:
        return _C._empty(tuple(shape), dtype, base.device)
    flat = base.reshape(-1)
    flat = flat if flat.dtype == dtype else flat.view(dtype)
    return _C.as_strided(flat, tuple(shape), tuple(strides), offset)
