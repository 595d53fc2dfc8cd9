"""save() and load(): tensors and checkpoints in files, in the layout of safetensors.

A file that is more than a dict of tensors has two texts in the header's "__metadata__": "genesis",
which says so, and "structure", JSON: {"tensors": [{"name": ...}, ...], "tree": ...}. The tree is
what _structure.py makes. An entry of "tensors" names the tensor of the file, and says what else is
to be known: "grad", "parameter", "device" (where it was), and for a part of that tensor's memory
"view": [dtype, shape, strides, offset].
"""

from __future__ import annotations

import errno
import os

from genesis import _C
from genesis._safetensors import (
    header_make,
    read_header,
    read_into,
    read_tensors,
    view_check,
    view_make,
    without_duplicates,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any, BinaryIO

    from genesis._safetensors import Entry

__all__ = ["load", "save"]

_ALONE = {"genesis": "tensor"}  # the metadata of a file that holds one tensor, without a name
_CHECKPOINT = "checkpoint 1"  # metadata["genesis"] of a file with a structure: _structure.py


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors, and what stands around them, to a file in the safetensors layout.

    A file is there as a whole or not at all: what was there before stays until then. Tensors that
    share memory are written once, and share it again when they are loaded. Any reader of
    safetensors reads the tensors; the rest stands in the file's metadata. Nothing is pickled.

    Parameters
    ----------
    obj : dict, list, tuple, Tensor ...
        Dicts, lists, tuples, sets, numbers, texts, bytes, None, dtypes, devices, sizes, tensors
        and parameters, in each other: what the ``state_dict()`` of a module, an optimizer or a
        scheduler is made of. Tensors of a GPU are written as well. Numbers of NumPy become those of
        Python.
    f : str, path or file
        Where; the directory must be there. To an open file, or an ``io.BytesIO``, the bytes are
        written from where it is on.
    pickle_module, pickle_protocol, _use_new_zipfile_serialization : optional
        For PyTorch's programs: they change nothing.

    Raises
    ------
    TypeError
        For an object of another class, with the path to it.
    OSError
        FileNotFoundError, IsADirectoryError, PermissionError or another, of this path.

    Examples
    --------
    >>> import os, tempfile
    >>> import genesis
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint")
    >>> genesis.save({"step": 3, "model": {"bias": genesis.ones(2)}}, path)
    >>> genesis.load(path)
    {'step': 3, 'model': {'bias': tensor([1., 1.])}}
    """
    plan = _Plan(obj)
    header = plan.header()
    if hasattr(f, "write"):
        write_all(f, header, plan.tensors())
        return

    from pathlib import Path

    target = Path(f)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "this is a directory")
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no directory '{target.parent}'")
        _write_file(target, header, plan.tensors())
    except OSError as error:  # of the path that was given: nobody has heard of the draft
        raise OSError(error.errno, f"save: {error.strerror}", os.fspath(f)) from None


# ---- writing ----


class _Plan:
    """What a file will have: tensors by names, and the structure around them.

    A dict of plain tensors needs no structure. Of tensors that share memory one is written, or all
    that they reach of it; the others are views of that.
    """

    def __init__(self, obj: Any) -> None:
        self.stored: dict[str, _C.Tensor] = {}
        self._table: list[dict[str, Any]] = []  # of the structure: what each tensor is
        self._found: list[tuple[_C.Tensor, str]] = []  # each tensor once, and its name
        self._numbers: dict[int, int] = {}  # by identity
        self._names: set[str] = {"__metadata__"}
        self.metadata: dict[str, str] = {}
        _C.flush()  # a result that waits has no memory yet that could be shared
        if type(obj) is _C.Tensor and not obj.requires_grad:
            self.stored, self.metadata = {"tensor": obj.detach()}, _ALONE
            return
        self._structure_make(obj)

    def _structure_make(self, obj: Any) -> None:
        from genesis import _structure

        tree = _structure.encode(obj, self._number)
        is_plain = self._is_plain(obj)
        self._parameter = _structure.parameter_class()
        for members in self._groups():
            is_plain &= self._store(members)
        if is_plain:
            return
        import json

        text = json.dumps({"tensors": self._table, "tree": tree}, separators=(",", ":"))
        self.metadata = {"genesis": _CHECKPOINT, "structure": text}

    def _is_plain(self, obj: Any) -> bool:
        """Whether it is a dict of tensors by names, of which there is nothing else to say."""
        if type(obj) is not dict or len(self._found) != len(obj):
            return False
        return all(
            name == found and type(one) is _C.Tensor and not one.requires_grad
            for (name, one), (_, found) in zip(obj.items(), self._found, strict=True)
        )

    def _number(self, tensor: _C.Tensor, path: tuple[Any, ...]) -> int:
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self._found)
            self._found.append((tensor, self._name(".".join(map(str, path)) or "tensor")))
            self._table.append({})
        return self._numbers[id(tensor)]

    def _name(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self._names:
            count += 1
            name = f"{wanted}#{count}"
        self._names.add(name)
        return name

    def _groups(self) -> Iterator[list[int]]:
        """Numbers of tensors, those that share memory together."""
        groups: dict[Any, list[int]] = {}
        for number, (tensor, _) in enumerate(self._found):
            place = tensor._place if tensor.numel() else 0
            key = (str(tensor.device), place) if place else number
            groups.setdefault(key, []).append(number)
        yield from groups.values()

    # ---- memory that is shared ----

    def _store(self, members: list[int]) -> bool:
        """Write the tensors of one group; whether each is there by its own name, as it is."""
        tensors = [self._found[number][0].detach() for number in members]
        shapes = {(one.dtype, one.shape, one.stride(), one.storage_offset()) for one in tensors}
        is_one = len(shapes) == 1
        whole = None if is_one else _reach(tensors)
        if whole is None:
            for number, tensor in zip(members, tensors, strict=True):
                name = self._found[members[0] if is_one else number][1]
                self.stored.setdefault(name, tensor)
                self._describe(number, name)
            return len(members) == 1 or not is_one
        base, first = whole
        found: str | None = None
        for number, tensor in zip(members, tensors, strict=True):
            if tensor.is_contiguous() and tensor.nbytes == base.nbytes:
                found = found or self._found[number][1]
                self.stored.setdefault(found, tensor)
        if found is None:
            found = self._name(f"{self._found[members[0]][1]}#storage")
            self.stored[found] = base
        for number, tensor in zip(members, tensors, strict=True):
            offset = tensor.storage_offset() * tensor.element_size() - first
            self._describe(number, found)
            self._table[number]["view"] = [
                tensor.dtype.name,
                list(tensor.shape),
                list(tensor.stride()),
                offset // tensor.element_size(),
            ]
        return False

    def _describe(self, number: int, name: str) -> None:
        tensor, entry = self._found[number][0], self._table[number]
        entry["name"] = name
        if tensor.requires_grad:
            entry["grad"] = True
        if self._parameter is not None and isinstance(tensor, self._parameter):
            entry["parameter"] = True
        if tensor.device.type != "cpu":
            entry["device"] = str(tensor.device)

    # ---- the file ----

    def _order(self) -> list[str]:
        """Wide elements first: then each tensor lies aligned without holes between them."""
        return sorted(self.stored, key=lambda name: (-self.stored[name].element_size(), name))

    def header(self) -> bytes:
        return header_make(self.stored, self._order(), self.metadata)

    def tensors(self) -> Iterator[_C.Tensor]:
        return (self.stored[name] for name in self._order())


def _reach(tensors: list[_C.Tensor]) -> tuple[_C.Tensor, int] | None:
    """All that some tensors reach of their storage, and its first byte; None if it is not known."""
    spans = []
    for one in tensors:
        low = high = one.storage_offset()
        for size, stride in zip(one.shape, one.stride(), strict=True):
            low += min((size - 1) * stride, 0)
            high += max((size - 1) * stride, 0)
        spans.append((low * one.element_size(), (high + 1) * one.element_size()))
    first, last = min(low for low, _ in spans), max(high for _, high in spans)
    widest = max(one.element_size() for one in tensors)
    if any((low - first) % widest for low, _ in spans) and len({one.dtype for one in tensors}) > 1:
        first -= first % widest
    dtypes = {one.dtype for one in tensors}
    try:
        if len(dtypes) == 1:
            size = tensors[0].element_size()
            count = (last - first) // size
            return _C.as_strided(tensors[0], (count,), (1,), first // size), first
        every = tensors[0]._storage(False)
        if every.storage_offset() != 0:
            return None
        end = min(last + (-(last - first) % widest), every.numel())
        return (every[first:end], first) if (end - first) % widest == 0 else None
    except (ValueError, RuntimeError):  # memory of others, of which no more is known
        return None


def _write_file(target: Path, header: bytes, tensors: Iterable[_C.Tensor]) -> None:
    """Write a draft beside the file, which takes its place when it is on the disk."""
    draft = target.with_name(f"{target.name[:32]}.{os.getpid()}-{os.urandom(4).hex()}")
    with draft.open("xb", buffering=0) as file:
        try:
            write_all(file, header, tensors)
            os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink()
            raise


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    weights_only: bool | None = True,
    mmap: bool | None = False,
    *,
    pickle_module: Any = None,
    device: Any = None,
) -> Any:
    """Read a file of :func:`save`, of safetensors, or of PyTorch's ``torch.save``.

    No file makes it run code: of PyTorch's files tensors, parameters and plain containers are
    read, by a reader that knows nothing else, whatever `weights_only` says. What is wrong with a
    file is one ValueError.

    Parameters
    ----------
    f : str, path or file
        The file; or one that is open for bytes and can seek, an ``io.BytesIO`` for example, which
        is read from where it is to its end.
    map_location : device, str, dict or callable, optional
        Where the tensors go; the CPU if not given. A dict says it for each place that they were
        saved from; so does a function of a storage and that place.
    weights_only, pickle_module : optional
        For PyTorch's programs: they change nothing.
    mmap : bool
        Whether tensors are views of the file in memory, which is read as they are used. Writes to
        them do not change the file. It must not get shorter meanwhile.
    device : device or str, optional
        The same as a device for `map_location`.

    Returns
    -------
    dict, list, Tensor ...
        What was saved, with dicts in their order. Tensors that shared memory share it.

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
    if device is not None and map_location is not None:
        raise TypeError("load: map_location and device are two words for one thing: give one")
    place = _Place(device if map_location is None else map_location)
    try:
        if hasattr(f, "readinto"):
            if mmap:
                raise ValueError("with mmap=True a file is given by its path")
            return _read_all(f, place, False)
        if hasattr(f, "read"):
            raise TypeError(f"load: {f!r} is not open for bytes: it has no readinto()")

        from pathlib import Path

        with Path(f).open("rb", buffering=0) as file:
            return _read_all(file, place, mmap)
    except ValueError as error:
        raise ValueError(f"{f}: {error}") from None


class _Place:
    """Where tensors go: what map_location says."""

    def __init__(self, wanted: Any) -> None:
        self._wanted = wanted
        if callable(wanted) or isinstance(wanted, dict):
            return
        self._device = _C._empty((0,), _C.uint8, "cpu" if wanted is None else wanted).device

    def move(self, tensor: _C.Tensor, location: str) -> _C.Tensor:
        """The memory of tensors, on the device where it should be."""
        if isinstance(self._wanted, dict):
            found = {str(key): value for key, value in self._wanted.items()}.get(location)
            return tensor if found is None else tensor.to(found)
        if callable(self._wanted):
            found = self._wanted(tensor.untyped_storage(), location)
            return tensor if found is None else tensor.to(getattr(found, "device", found))
        return tensor.to(self._device)


def _read_all(file: BinaryIO, place: _Place, is_mapped: bool) -> Any:
    begin = file.tell()
    size = file.seek(0, os.SEEK_END) - begin
    file.seek(begin)
    layout = _layout_of_torch(file, begin, size)
    if layout == "zip":
        from genesis import _torch_file

        return _torch_file.read(file, begin, size, place.move, is_mapped)
    if layout == "legacy":
        from genesis import _torch_legacy

        if is_mapped:
            raise ValueError("PyTorch's layout from before version 1.6 is read without mmap=True")
        return _torch_legacy.read(file, begin, size, place.move)
    entries, metadata, start = read_header(file, size)
    if metadata.get("genesis") == _CHECKPOINT:
        return _read_checkpoint(file, begin + start, entries, metadata, place, is_mapped)
    made = {
        name: place.move(tensor, "cpu")
        for name, tensor in read_tensors(file, begin + start, entries, is_mapped).items()
    }
    file.seek(begin + size)
    if metadata == _ALONE and list(made) == ["tensor"]:
        return made["tensor"]
    return made


def _layout_of_torch(file: BinaryIO, begin: int, size: int) -> str:
    """PyTorch's layout that a file has: "zip", "legacy", or none."""
    head = bytearray(min(size, 265))
    read_into(file, memoryview(head), "its beginning")
    file.seek(begin)
    if head.startswith(b"\x80") and b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." in head[:32]:
        return "legacy"
    if head[257:262] == b"ustar":
        raise ValueError("this is a tar file, as PyTorch wrote before version 0.2: it is not read")
    return "zip" if head.startswith(b"PK") else ""


# ---- checkpoints: tensors with a structure around them ----


def _read_checkpoint(
    file: BinaryIO,
    start: int,
    entries: list[Entry],
    metadata: dict[str, str],
    place: _Place,
    is_mapped: bool,
) -> Any:
    import json

    from genesis import _structure

    try:
        found = json.loads(metadata.get("structure", ""), object_pairs_hook=without_duplicates)
    except RecursionError:
        raise ValueError("its structure is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"its structure is no JSON: {error}") from None
    if type(found) is not dict or set(found) != {"tensors", "tree"}:
        raise ValueError("its structure has not the parts 'tensors' and 'tree'")
    sizes = {entry[0]: entry for entry in entries}
    table = found["tensors"]
    if type(table) is not list:
        raise ValueError("its table of tensors is no list")
    for number, entry in enumerate(table):
        _table_check(number, entry, sizes)
    _structure.decode(found["tree"], lambda number: _numbered(table, number))  # before it is read
    stored = read_tensors(file, start, entries, is_mapped)
    made = _tensors_make(table, stored, place)
    return _structure.decode(found["tree"], made.__getitem__)


def _numbered(table: list[Any], number: int) -> Any:
    if not 0 <= number < len(table):
        raise ValueError(f"its structure names tensor {number} of {len(table)}")
    return table[number]


_WORDS = {"name": str, "grad": bool, "parameter": bool, "device": str, "view": list}


def _table_check(number: int, entry: Any, sizes: dict[str, Entry]) -> None:
    """Raise for an entry that names no tensor, or a view that is not within one."""
    what = f"tensor {number} of its structure"
    if type(entry) is not dict or any(type(entry[key]) is not _WORDS.get(key) for key in entry):
        raise ValueError(f"{what} is not described as it should be")
    if entry.get("name") not in sizes:
        raise ValueError(f"{what} is {entry.get('name')!r:.60}, which is not in the file")
    _, dtype, _, begin, end = sizes[entry["name"]]
    nbytes, view = end - begin, entry.get("view")
    if view is not None:
        from genesis import _structure

        kinds = [type(one) for one in view]
        if kinds != [str, list, list, int] or view[0] not in _structure.DTYPES:
            raise ValueError(f"{what} is not described as it should be")
        dtype = _structure.DTYPES[view[0]]
        if nbytes % dtype.itemsize:
            raise ValueError(f"{what} does not fit the memory that it is a view of")
        view_check(what, view[1], view[2], view[3], nbytes // dtype.itemsize)
    if entry.get("grad") and not dtype.is_floating_point:
        raise ValueError(f"{what} is of {dtype}, which has no gradient")


def _tensors_make(
    table: list[dict[str, Any]], stored: dict[str, _C.Tensor], place: _Place
) -> list[_C.Tensor]:
    from genesis import _structure

    parameter = _structure.parameter_class()
    moved: dict[str, _C.Tensor] = {}
    made = []
    for entry in table:
        name = entry["name"]
        if name not in moved:
            moved[name] = place.move(stored[name], entry.get("device", "cpu"))
        tensor = moved[name]
        if "view" in entry:
            dtype, shape, strides, offset = entry["view"]
            tensor = view_make(tensor, _structure.DTYPES[dtype], shape, strides, offset)
        else:
            tensor = tensor.detach()  # an object of its own, with the same memory
        if entry.get("parameter") and parameter is not None:
            tensor = parameter(tensor, bool(entry.get("grad")))
        elif entry.get("grad"):
            tensor = tensor.requires_grad_()
        made.append(tensor)
    return made
