"""Reads files of torch.save, in PyTorch's zip layout.

    NAME/data.pkl       a pickle of what was saved (_torch_pickle.py), which refers to storages:
    NAME/data/KEY       the bytes of one
    NAME/byteorder      "little"

The zip is not believed either: entries that are compressed or overlap are refused, and no more
memory is taken than the file has bytes.
"""

from __future__ import annotations

import errno
import os
import struct
import zipfile
from typing import Any

from genesis import _C, _structure
from genesis._safetensors import read_elements, view_make
from genesis._torch_pickle import Reader, Storage, TensorPlan, check, children_of, tree_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    Move = Callable[[_C.Tensor, str], _C.Tensor]

__all__ = ["Maker", "read"]


class Maker:
    """Makes the tensors of a tree, and puts them where they stand."""

    def __init__(self, memory: Callable[[Storage], _C.Tensor]) -> None:
        self._memory = memory
        self._made: dict[int, Any] = {}  # by the identity of what stands for it
        self._kept: list[Any] = []  # so that identities stay
        self._parameter = _structure.parameter_class()

    def tensor(self, given: TensorPlan) -> _C.Tensor:
        """Make one tensor."""
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
            if isinstance(value, TensorPlan):
                self._keep(value, self.tensor(value))
            elif is_ready:
                self._keep(value, self._filled(value))
            elif children := children_of(value):
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
        check(len(self.infos) == len(infos), "an entry of the zip stands twice")
        total = 0
        for info in infos:
            total += max(info.file_size, info.compress_size)
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
                raise ValueError(
                    f"its entry {info.filename!r:.60} is compressed or encrypted, which torch.save "
                    "does not do"
                )
            check(info.file_size == info.compress_size, "an entry of the zip has two sizes")
        check(total <= size, "the entries of the zip have more bytes than the file")
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
        check(len(data) == self.infos[self.root + name].file_size, "the file ends too early")
        return data

    def offset(self, name: str, file: Any, begin: int) -> int:
        """Where the bytes of an entry begin in the file, for who maps it."""
        at = begin + self.infos[self.root + name].header_offset
        check(0 <= at < file.seek(0, os.SEEK_END), f"its entry {name!r:.60} is damaged")
        file.seek(at)
        head = file.read(30)
        check(len(head) == 30 and head[:4] == b"PK\x03\x04", f"its entry {name!r:.60} is damaged")
        return at + 30 + sum(struct.unpack_from("<HH", head, 26))


def _elements(archive: _Archive, storage: Storage, dtype: Any) -> _C.Tensor:
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


def _mapped(archive: _Archive, storage: Storage, dtype: Any, file: Any, begin: int) -> Any:
    """The same over the file; None where it does not lie aligned, or is to be changed."""
    offset = archive.offset(f"data/{storage.key}", file, begin)
    if not storage.nbytes or dtype == _C.bool or offset % dtype.itemsize:
        return None
    end = file.seek(0, os.SEEK_END)
    check(offset + storage.nbytes <= end, f"storage {storage.key!r:.40} is not within the file")
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
        check(len(source.getvalue()) == size, "the file ends too early")
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
    tree = Reader(archive.content("data.pkl"), sizes).run()
    tree_check(tree)
    memory: dict[str, _C.Tensor] = {}

    def storage_memory(storage: Storage) -> _C.Tensor:
        if storage.key not in memory:
            dtype = storage.dtype or _C.uint8
            found = _mapped(archive, storage, dtype, file, begin) if is_mapped else None
            found = _elements(archive, storage, dtype) if found is None else found
            memory[storage.key] = move(found, storage.location)
        return memory[storage.key]

    made = Maker(storage_memory).fill(tree)
    file.seek(begin + size)
    return made
