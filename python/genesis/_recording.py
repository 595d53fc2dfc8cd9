"""A recording of memory events, and what follows from it.

A recording is one bytes object of packed events, oldest first, with tables beside it:

    data         | event | event | ... |      EVENT.size bytes each, see EVENT
    sites        event.site -> the stack, innermost frame first; 0 is "not known"
    annotations  event.annotation -> its path, "train/forward"; 0 is "none"
    devices      event.device -> "cuda:0", "cpu", ...
    blocks       every block of every device at the end

Invariants:

1. A block is live from ALLOC to FREE or FREE_REQUESTED, and pending from FREE_REQUESTED to
   FREE_COMPLETED. Its size and what was requested are the same in all of them.
2. What is live at the end is in ``blocks``, so the past follows backwards from there: a value
   before an event is the value after it, less what the event changed. No start is needed, and
   events that were lost from the beginning do no harm to what comes after them.

A column is a strided view of the data, not a copy; whole columns go through functions that loop in
C. That is what keeps a million events in the range of a second, without NumPy.
"""

from __future__ import annotations

import gc
import struct
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, compress
from operator import mul
from os.path import dirname, join
from typing import Any, NamedTuple

from genesis._memory import counted

_PACKAGE = join(dirname(__file__), "")  # what the files of this package begin with

EVENT = struct.Struct("<QQQQQIIHBBI")

ALLOC = 1
FREE = 2  # free for reuse at once
FREE_REQUESTED = 3  # other streams still use it
FREE_COMPLETED = 4  # of such a one
SEGMENT_MAP = 5  # memory obtained from the driver or the system
SEGMENT_UNMAP = 6
OUT_OF_MEMORY = 7  # size: what is free on the device
SNAPSHOT = 8
MARK = 9
ANNOTATION_BEGIN = 10
ANNOTATION_END = 11

KIND_NAMES = (
    "unknown",
    "alloc",
    "free",
    "free_requested",
    "free_completed",
    "segment_map",
    "segment_unmap",
    "out_of_memory",
    "snapshot",
    "mark",
    "annotation_begin",
    "annotation_end",
)

# Where each column lies: the format of an item, its place in the event, items in an event.
_COLUMNS = {
    "time_ns": ("Q", 0, 7),
    "address": ("Q", 1, 7),
    "size": ("Q", 2, 7),
    "requested": ("Q", 3, 7),
    "stream": ("Q", 4, 7),
    "site": ("I", 10, 14),
    "annotation": ("I", 11, 14),
    "thread": ("H", 24, 28),
    "kind": ("B", 50, 56),
    "device": ("B", 51, 56),
    "number": ("I", 13, 14),
}


def _signs(*, plus: tuple[int, ...], minus: tuple[int, ...]) -> bytes:
    """A table for bytes.translate: a kind becomes 1, 0 or (as a signed byte) -1."""
    return bytes(1 if kind in plus else 255 if kind in minus else 0 for kind in range(256))


_LIVE = _signs(plus=(ALLOC,), minus=(FREE, FREE_REQUESTED))
_PENDING = _signs(plus=(FREE_REQUESTED,), minus=(FREE_COMPLETED,))
_RESERVED = _signs(plus=(SEGMENT_MAP,), minus=(SEGMENT_UNMAP,))


class Frame(NamedTuple):
    """One line of a stack; line 0 is not known.

    Examples
    --------
    >>> from genesis._recording import Frame
    >>> str(Frame("forward", "model.py", 12))
    'model.py:12 (forward)'
    """

    name: str
    filename: str
    line: int

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}" if self.line else self.filename
        return f"{place} ({self.name})" if self.name else place


def place_of(frames: tuple[Frame, ...]) -> Frame | None:
    """The line that a stack is about: the innermost of Python that is not this package's own.

    Where there is none it is the innermost of Python, or else the innermost; None of no frames.
    """
    python = [one for one in frames if one.filename.endswith(".py") or one.filename[:1] == "<"]
    others = (one for one in python if not _is_own(one.filename))
    return next(others, (python or frames or (None,))[0])


def _is_own(filename: str) -> bool:
    """Whether a file is this package's: here, or where the recording was made."""
    return filename.startswith(_PACKAGE) or "-packages/genesis/" in filename


class Event(NamedTuple):
    """One event, with names for its numbers."""

    time_ns: int
    kind: str  # one of KIND_NAMES
    device: str
    address: int
    size: int
    requested: int
    stream: int
    frames: tuple[Frame, ...]  # innermost first
    annotation: str
    thread: int
    number: int


class Lifetime(NamedTuple):
    """A block from its allocation to its free."""

    address: int
    size: int
    requested: int
    stream: int
    site: int
    annotation: int
    thread: int
    begin: int | None  # time_ns; None: before the recording
    end: int | None  # time_ns; None: live at the end of the recording
    device: int
    first: int | None  # the index of the event that allocated it
    last: int | None  # the index of the event that freed it


class Usage(NamedTuple):
    """The bytes of one device over time: row k holds after event ``event[k]`` of the recording."""

    event: list[int]
    time_ns: list[int]
    live: list[int]
    requested: list[int]
    pending: list[int]
    reserved: list[int]
    start: tuple[int, int, int, int]  # live, requested, pending, reserved before the first event


class Recording:
    """Events, and the tables that explain them; see the module.

    Attributes
    ----------
    data : bytes
        Packed events, oldest first.
    sites : list of tuple of Frame
    annotations, devices : list of str
    blocks : list of dict
        Every block at the end, with ``device`` and ``site`` as indices.
    lost : int
        Events that were overwritten.
    unix_ns : int
        The wall-clock time of ``time_ns == 0``.
    statistics : dict
        Device name to the manager's statistics at the end.
    ignored : int
        Entries of a file that this was read from that meant nothing.

    Examples
    --------
    >>> from genesis._recording import ALLOC, EVENT, FREE, Recording
    >>> data = EVENT.pack(10, 4096, 512, 500, 0, 0, 0, 0, ALLOC, 0, 0)
    >>> data += EVENT.pack(20, 4096, 512, 500, 0, 0, 0, 0, FREE, 0, 1)
    >>> recording = Recording(data, devices=["cuda:0"])
    >>> [event.kind for event in recording]
    ['alloc', 'free']
    >>> recording.usage(0).live
    [512, 0]
    >>> recording.lifetimes()[0].end
    20
    """

    def __init__(
        self,
        data: bytes = b"",
        sites: list[tuple[Frame, ...]] | None = None,
        annotations: list[str] | None = None,
        devices: list[str] | None = None,
        blocks: list[dict[str, Any]] | None = None,
        lost: int = 0,
        unix_ns: int = 0,
        statistics: dict[str, dict[str, Any]] | None = None,
        ignored: int = 0,
    ) -> None:
        if len(data) % EVENT.size:
            raise ValueError(f"events are {EVENT.size} bytes each, not {len(data)} in all")
        self.data = data
        self.sites = sites if sites is not None else [()]
        self.annotations = annotations if annotations is not None else [""]
        self.devices = devices if devices is not None else []
        self.blocks = blocks if blocks is not None else []
        self.lost = lost
        self.unix_ns = unix_ns
        self.statistics = statistics if statistics is not None else {}
        self.ignored = ignored
        self._usages: dict[int, Usage] = {}
        self._lifetimes: list[Lifetime] | None = None

    def __len__(self) -> int:
        return len(self.data) // EVENT.size

    def __iter__(self) -> Iterator[Event]:
        return self._events(EVENT.iter_unpack(self.data))

    def __getitem__(self, index: int) -> Event:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there is no event {index}: there are {count}")
        return next(self._events(iter((self.row(index % count),))))

    def __repr__(self) -> str:
        return (
            f"<Recording of {', '.join(self.devices) or 'nothing'}: {counted(len(self), 'event')}>"
        )

    def _events(self, rows: Iterator[tuple[int, ...]]) -> Iterator[Event]:
        # Tables instead of calls: this runs a million times.
        kinds = [*KIND_NAMES, *["unknown"] * (256 - len(KIND_NAMES))]
        devices = [self.device_name(index) for index in range(256)]
        frames, names, make = self.frames, self.annotation_name, Event._make
        for row in rows:
            time_ns, address, size, requested, stream, site, name, thread, kind, device, no = row
            yield make(
                (
                    time_ns,
                    kinds[kind],
                    devices[device],
                    address,
                    size,
                    requested,
                    stream,
                    frames(site) if site else (),
                    names(name) if name else "",
                    thread,
                    no,
                )
            )

    # ---- tables ---------------------------------------------------------------------------------

    def rows(self) -> Iterator[tuple[int, ...]]:
        """The events as plain tuples, in the order of EVENT's fields."""
        return EVENT.iter_unpack(self.data)

    def row(self, index: int) -> tuple[int, ...]:
        """One event as a plain tuple."""
        return EVENT.unpack_from(self.data, index * EVENT.size)

    def find(self, *kinds: int) -> list[int]:
        """The indices of the events of some kinds, in order; fast where they are rare."""
        wanted = bytes(kind in kinds for kind in range(256))
        return list(compress(range(len(self)), bytes(self.column("kind")).translate(wanted)))

    def column(self, name: str) -> memoryview:
        """One field of all events, without a copy."""
        letter, place, step = _COLUMNS[name]
        return memoryview(self.data).cast(letter)[place::step]

    def frames(self, site: int) -> tuple[Frame, ...]:
        """The stack of a site; empty where it is not known."""
        return self.sites[site] if 0 <= site < len(self.sites) else ()

    def annotation_name(self, index: int) -> str:
        """The path of an annotation."""
        return self.annotations[index] if 0 <= index < len(self.annotations) else ""

    def device_name(self, index: int) -> str:
        """The name of a device."""
        return self.devices[index] if 0 <= index < len(self.devices) else f"device {index}"

    def location(self, site: int) -> str:
        """Where a site is, in one line; see :func:`place_of`."""
        place = place_of(self.frames(site))
        return " ".join(str(place).split()) if place is not None else "not known"

    def span_ns(self) -> tuple[int, int]:
        """The times of the first and the last event; zeros where there is none."""
        times = self.column("time_ns")
        return (times[0], times[-1]) if len(times) else (0, 0)

    def device_indices(self) -> list[int]:
        """The devices that have events or blocks, in order."""
        found = set(bytes(self.column("device")))
        return sorted(found | {block["device"] for block in self.blocks})

    def segments(self, device: int) -> dict[int, tuple[int, int]]:
        """The segments of a device at the end: segment id to address and bytes."""
        return {
            block["segment_id"]: (block["segment_address"], block["segment_bytes"])
            for block in self.blocks
            if block["device"] == device
        }

    # ---- bytes over time ------------------------------------------------------------------------

    def end_bytes(self, device: int) -> tuple[int, int, int, int]:
        """Live, requested, pending and reserved bytes of a device at the end."""
        live = requested = pending = 0
        for block in self.blocks:
            if block["device"] != device:
                continue
            if block["state"] == "live":
                live += block["nbytes"]
                requested += block["requested"]
            elif block["state"] == "pending":
                pending += block["nbytes"]
        # Segments of which pages were folded take less than their addresses: statistics know.
        known = self.statistics.get(self.device_name(device), {}).get("reserved_bytes")
        segments = sum(size for _, size in self.segments(device).values())
        return live, requested, pending, segments if known is None else known

    def usage(self, device: int) -> Usage:
        """The bytes of a device after each of its events, exact by invariant 2."""
        cached = self._usages.get(device)
        if cached is not None:
            return cached
        chosen = bytes(self.column("device")).translate(_is_byte(device))
        kinds = bytes(compress(bytes(self.column("kind")), chosen))
        sizes = list(compress(self.column("size").tolist(), chosen))
        asked = list(compress(self.column("requested").tolist(), chosen))
        columns = []
        starts = []
        changes = ((_LIVE, sizes), (_LIVE, asked), (_PENDING, sizes), (_RESERVED, sizes))
        for end, (table, amounts) in zip(self.end_bytes(device), changes, strict=True):
            deltas = list(map(mul, amounts, array("b", kinds.translate(table))))
            starts.append(end - sum(deltas))
            column = list(accumulate(deltas, initial=starts[-1]))
            columns.append(column[1:])
        self._usages[device] = Usage(
            list(compress(range(len(self)), chosen)),
            list(compress(self.column("time_ns").tolist(), chosen)),
            *columns,
            start=tuple(starts),
        )
        return self._usages[device]

    def total_live(self) -> list[int]:
        """Live bytes of all devices together after each event of the recording."""
        signs = array("b", bytes(self.column("kind")).translate(_LIVE))
        deltas = list(map(mul, self.column("size").tolist(), signs))
        end = sum(block["nbytes"] for block in self.blocks if block["state"] == "live")
        return list(accumulate(deltas, initial=end - sum(deltas)))[1:]

    # ---- blocks over time -----------------------------------------------------------------------

    def lifetimes(self) -> list[Lifetime]:
        """Every block that was live at some moment, in the order in which they were freed.

        Those that are live at the end come last. Where a free was lost, the block is taken to have
        lived until its address was handed out again, or to the last event.
        """
        if self._lifetimes is None:
            with no_collection():
                self._lifetimes = self._pair()
        return self._lifetimes

    def _pair(self) -> list[Lifetime]:
        open_blocks: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
        found: list[Lifetime] = []
        for index, row in enumerate(EVENT.iter_unpack(self.data)):
            kind = row[8]
            if kind > FREE_REQUESTED:
                continue
            key = (row[9], row[1])
            born = open_blocks.pop(key, None)
            if born is not None:
                found.append(_lifetime(born, row[0], index))
            elif kind != ALLOC:
                found.append(_older(row, index))
            if kind == ALLOC:
                open_blocks[key] = (index, row)
        last_time = self.span_ns()[1]
        ending: list[Lifetime] = []
        for block in self.blocks:
            if block["state"] == "live":
                born = open_blocks.pop((block["device"], block["address"]), None)
                ending.append(_lifetime(born, None, None) if born else _oldest(block))
        found += [_lifetime(born, last_time, len(self)) for born in open_blocks.values()]
        return found + ending

    def live_at(self, index: int, device: int | None = None) -> list[Lifetime]:
        """The blocks that are live after an event, on one device or on all."""
        return [
            one
            for one in self.lifetimes()
            if (one.first is None or one.first <= index)
            and (one.last is None or one.last > index)
            and (device is None or one.device == device)
        ]

    # ---- PyTorch's layout -----------------------------------------------------------------------

    def to_torch(self) -> dict[str, Any]:
        """The recording in PyTorch's snapshot layout."""
        from genesis import _snapshot

        return _snapshot.to_torch(self)

    @classmethod
    def from_torch(cls, snapshot: dict[str, Any]) -> Recording:
        """A recording from PyTorch's snapshot layout."""
        from genesis import _snapshot

        return _snapshot.from_torch(snapshot)


@contextmanager
def no_collection() -> Iterator[None]:
    """Without the garbage collector, which would walk millions of new objects again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_byte(wanted: int) -> bytes:
    """A table for bytes.translate: 1 for one value, 0 for the others."""
    return bytes(value == wanted for value in range(256))


def _lifetime(born: tuple[int, tuple[int, ...]], end: int | None, last: int | None) -> Lifetime:
    first, row = born
    # The fields of an event from address to thread are those of a lifetime, in the same order.
    return Lifetime._make((*row[1:8], row[0], end, row[9], first, last))


def _older(row: tuple[int, ...], last: int) -> Lifetime:
    """A block whose free is all that was seen: who allocated it is not known."""
    return Lifetime(row[1], row[2], row[3], row[4], 0, 0, 0, None, row[0], row[9], None, last)


def _oldest(block: dict[str, Any]) -> Lifetime:
    """A block of which no event was seen."""
    return Lifetime(
        block["address"],
        block["nbytes"],
        block["requested"],
        block["stream_id"],
        block.get("site", 0),
        0,
        0,
        None,
        None,
        block["device"],
        None,
        None,
    )


# ---- the end, where only events are known -------------------------------------------------------


def blocks_from_events(data: bytes, devices: set[int]) -> list[dict[str, Any]]:
    """What ``blocks`` of some devices must be at the end if nothing was there at the beginning.

    A block outside of every segment that was seen has one of its own, of no bytes: how much was
    reserved for it is not known.
    """
    held: dict[tuple[int, int], tuple[str, tuple[int, ...]]] = {}
    segments: dict[tuple[int, int], int] = {}
    for row in EVENT.iter_unpack(data):
        kind, key = row[8], (row[9], row[1])
        if row[9] not in devices or not ALLOC <= kind <= SEGMENT_UNMAP:
            continue
        if kind == ALLOC:
            held[key] = ("live", row)
        elif kind == FREE_REQUESTED and key in held:
            held[key] = ("pending", held[key][1])
        elif kind in (FREE, FREE_COMPLETED):
            held.pop(key, None)
        elif kind == SEGMENT_MAP:
            segments[key] = row[2]
        elif kind == SEGMENT_UNMAP:
            segments.pop(key, None)
    return _tile(held, segments)


def _tile(
    held: dict[tuple[int, int], tuple[str, tuple[int, ...]]], segments: dict[tuple[int, int], int]
) -> list[dict[str, Any]]:
    """Blocks in their segments, and what is idle between them."""
    blocks: list[dict[str, Any]] = []
    waiting = sorted(held)
    place = 0
    for (device, start), size in sorted(segments.items()):
        while place < len(waiting) and waiting[place] < (device, start):
            blocks.append(_held_block(*held[waiting[place]], waiting[place][1], 0))
            place += 1
        at, end = start, start + size
        while place < len(waiting) and waiting[place] < (device, end):
            key = waiting[place]
            if key[1] > at:
                blocks.append(_idle_block(device, at, key[1] - at, start, size))
            blocks.append(_held_block(*held[key], start, size))
            at = key[1] + blocks[-1]["nbytes"]
            place += 1
        if at < end:
            blocks.append(_idle_block(device, at, end - at, start, size))
    return blocks + [_held_block(*held[key], key[1], 0) for key in waiting[place:]]


def _held_block(
    state: str, row: tuple[int, ...], segment_address: int, segment_bytes: int
) -> dict[str, Any]:
    return {
        "address": row[1],
        "nbytes": row[2],
        "requested": row[3],
        "state": state,
        "stream_id": row[4],
        "segment_id": segment_address,
        "segment_address": segment_address,
        "segment_bytes": segment_bytes,
        "number": 0,
        "device": row[9],
        "site": row[5],
    }


def _idle_block(
    device: int, address: int, size: int, segment_address: int, segment_bytes: int
) -> dict[str, Any]:
    row = (0, address, size, 0, 0, 0, 0, 0, 0, device)
    return _held_block("global_cached", row, segment_address, segment_bytes)
