"""Reads files of torch.save in the layout from before PyTorch 1.6.

three pickles   a number that says what it is, a version, and what machine wrote it
a pickle        of what was saved (_torch_pickle.py), which refers to storages
a pickle        a list of the keys of the storages
storages        in this order, each with its number of elements in 8 bytes before them
"""

from __future__ import annotations

from typing import Any

from genesis import _C
from genesis._safetensors import read_elements, read_into
from genesis._torch_file import Maker
from genesis._torch_pickle import Reader, Storage, check, tree_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from genesis._torch_file import Move

__all__ = ["read"]

_NUMBER = 0x1950A86A20F9469CFC6C  # the first pickle
_VERSION = 1001
_AT_ONCE = 1 << 16  # bytes that are read at least
_LINE_MOST = 1 << 12


class _Window:
    """The bytes of a file, which are read as they are asked for: tensors follow the pickles."""

    def __init__(self, file: BinaryIO, begin: int, size: int) -> None:
        self._file, self._begin, self._size = file, begin, size
        self._at, self._data = 0, b""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop = part.start, min(part.stop, self._size)
        if start < self._at or stop > self._at + len(self._data):
            room = bytearray(max(stop - start, min(_AT_ONCE, self._size - start)))
            self._file.seek(self._begin + start)
            read_into(self._file, memoryview(room), "its pickle")
            self._at, self._data = start, bytes(room)
        return self._data[start - self._at : stop - self._at]

    def find(self, text: bytes, start: int) -> int:
        """Where a text begins, on the same line."""
        place = self[start : start + _LINE_MOST].find(text)
        return place if place < 0 else start + place


class _LegacyReader(Reader):
    """Storages are behind the pickle: it says how long they are."""

    def __init__(self, data: Any, at: int) -> None:
        super().__init__(data, {})
        self.at = at
        self.storages: dict[str, Storage] = {}

    def persistent(self) -> Storage:
        found = self.pop()
        check(
            type(found) is tuple and len(found) == 6 and found[0] == "storage",
            "it refers to something that is no storage",
        )
        check(found[5] is None, "a storage is a part of another, as in files of PyTorch 0.1")
        made = self.storage(found[1:5])
        check(made.nbytes <= len(self.data), f"storage {made.key!r:.40} is longer than the file")
        known = self.storages.setdefault(made.key, made)
        is_same = (known.dtype, known.nbytes) == (made.dtype, made.nbytes)
        check(is_same, f"storage {made.key!r:.40} has two sizes or types")
        return known


def _places(window: _Window, at: int, storages: dict[str, Storage], keys: Any) -> tuple[Any, int]:
    """The first byte of each storage, and that behind the last."""
    check(type(keys) is list and all(type(key) is str for key in keys), "its keys are no texts")
    check(len(keys) == len(set(keys)) and set(keys) == set(storages), "its storages are not listed")
    made = {}
    for key in keys:
        storage = storages[key]
        size = 1 if storage.dtype is None else storage.dtype.itemsize
        count = int.from_bytes(window[at : at + 8], "little")
        check(count * size == storage.nbytes, f"storage {key!r:.40} has not the length it should")
        made[key] = at + 8
        at += 8 + storage.nbytes
        check(at <= len(window), f"the file ends within storage {key!r:.40}")
    return made, at


def read(file: BinaryIO, begin: int, size: int, move: Move) -> Any:
    """Read such a file, which begins at a byte, and has so many with what may follow it.

    Parameters
    ----------
    file : file
        Open for bytes.
    begin, size : int
        Its first byte, and how many there are.
    move : callable
        Says where a storage goes, by the place that it was saved from.
    """
    window = _Window(file, begin, size)
    number = _LegacyReader(window, 0)
    check(number.run() == _NUMBER, "it begins with another number than a file of torch.save")
    version = _LegacyReader(window, number.at)
    check(version.run() == _VERSION, "its version is not known")
    machine = _LegacyReader(window, version.at)
    found = machine.run()
    is_little = isinstance(found, dict) and found.get("little_endian") is True
    check(is_little, "it is from a machine whose byte order is not little")
    reader = _LegacyReader(window, machine.at)
    tree = reader.run()
    tree_check(tree)
    listing = _LegacyReader(window, reader.at)
    keys = listing.run()
    places, end = _places(window, listing.at, reader.storages, keys)
    memory: dict[str, _C.Tensor] = {}

    def storage_memory(storage: Storage) -> _C.Tensor:
        if storage.key not in memory:
            dtype = storage.dtype or _C.uint8
            made = _C._empty((storage.nbytes // dtype.itemsize,), dtype, "cpu")
            file.seek(begin + places[storage.key])
            read_elements(file, made, f"storage {storage.key!r:.40}")
            memory[storage.key] = move(made, storage.location)
        return memory[storage.key]

    made = Maker(storage_memory).fill(tree)
    file.seek(begin + end)
    return made
