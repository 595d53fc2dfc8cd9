"""From PyTorch's snapshot layout to a recording; see _snapshot.py for the layout.

Snapshots come from others: every number is checked before it is packed, and whatever has the wrong
type is one SnapshotError that says where. A pickle can share and nest objects without a bound: what
is not of the type that is expected is not hashed, compared or turned into text.
"""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import Any

from genesis._recording import (
    ALLOC,
    ANNOTATION_BEGIN,
    ANNOTATION_END,
    EVENT,
    FREE,
    FREE_COMPLETED,
    FREE_REQUESTED,
    MARK,
    OUT_OF_MEMORY,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    SNAPSHOT,
    Frame,
    Recording,
    blocks_from_events,
)
from genesis._snapshot import SnapshotError

ACTIONS = {
    "alloc": ALLOC,
    "free": FREE,
    "free_requested": FREE_REQUESTED,
    "free_completed": FREE_COMPLETED,
    "segment_alloc": SEGMENT_MAP,
    "segment_map": SEGMENT_MAP,
    "segment_free": SEGMENT_UNMAP,
    "segment_unmap": SEGMENT_UNMAP,
    "oom": OUT_OF_MEMORY,
    "snapshot": SNAPSHOT,
}
STAGES = {"START": ANNOTATION_BEGIN, "END": ANNOTATION_END}
STATES = {
    "active_allocated": "live",
    "active_pending_free": "pending",
    "active_awaiting_free": "pending",
}
PYTORCH_UNIT = 512
DEVICES_MOST = 256  # an event has one byte for it
WORD_MOST = 1 << 64


def _shown(value: Any) -> str:
    """A value for a message; of what may be long or deep, its type."""
    if isinstance(value, int) and abs(value) >= 1 << 80:
        return "a number of more than 80 bits"
    if isinstance(value, str):
        return repr(value[:60])
    return repr(value) if isinstance(value, int | float | None) else type(value).__name__


def _number(entry: dict[str, Any], key: str, default: int | None = None) -> int:
    value = entry.get(key, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < WORD_MOST:
        raise SnapshotError(f"{key} is a number of 64 bits, not {_shown(value)}")
    return value


def _text(value: Any, what: str) -> str:
    """A name. Some writers have numbers in its place, or nothing."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not abs(value) < WORD_MOST:
        raise SnapshotError(f"{what} is a text, not {_shown(value)}")
    if not isinstance(value, str | int | float):
        raise SnapshotError(f"{what} is a text, not {_shown(value)}")
    return str(value)


def _list(parent: dict[str, Any], key: str) -> list[Any]:
    value = parent.get(key) or []
    if not isinstance(value, list | tuple):
        raise SnapshotError(f"{key} is a list, not {type(value).__name__}")
    return list(value)


def _dicts(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return _all_dicts(_list(parent, key), key)


def _all_dicts(values: Any, key: str) -> list[dict[str, Any]]:
    if not isinstance(values, list | tuple):
        raise SnapshotError(f"{key} has lists, not {type(values).__name__}")
    for value in values:
        if not isinstance(value, dict):
            raise SnapshotError(f"an entry of {key} is a dict, not {type(value).__name__}")
    return list(values)


def _is_plain(stack: tuple[tuple[Any, ...], ...]) -> bool:
    """Whether all of a stack's names and lines can be hashed without going deep."""
    return {type(part) for frame in stack for part in frame} <= {str, int}


def _frame(frame: dict[str, Any]) -> Frame:
    line = frame.get("line")
    return Frame(
        _text(frame.get("name"), "the name of a frame"),
        _text(frame.get("filename"), "the filename of a frame"),
        line if isinstance(line, int) and 0 < line < 1 << 32 else 0,
    )


class _Tables:
    """Stacks and names, each once."""

    def __init__(self) -> None:
        self.sites: list[tuple[Frame, ...]] = [()]
        self.annotations: list[str] = [""]
        self._site_of: dict[tuple[Frame, ...], int] = {(): 0}
        self._site_of_list: dict[int, int] = {}  # by identity: pickles share lists
        self._annotation_of: dict[str, int] = {"": 0}

    def site(self, entry: dict[str, Any]) -> int:
        frames = entry.get("frames")
        if not frames:
            return 0
        number = self._site_of_list.get(id(frames))
        if number is None:
            number = self._site_of_list[id(frames)] = self._site(entry, frames)
        return number

    def _site(self, entry: dict[str, Any], frames: Any) -> int:
        # JSON has a new list for each entry, most of them seen before: plain tuples compare equal
        # to Frames, and are made much faster. The pickle may hold anything.
        try:
            key = tuple([(frame["name"], frame["filename"], frame["line"]) for frame in frames])
            number = self._site_of.get(key) if _is_plain(key) else None
        except (KeyError, TypeError):
            number = None
        if number is None:
            stack = tuple(map(_frame, _dicts(entry, "frames")))
            number = self._site_of.setdefault(stack, len(self.sites))
            if number == len(self.sites):
                self.sites.append(stack)
        return number

    def annotation(self, name: Any) -> int:
        if not name:
            return 0
        text = _text(name, "a name")
        number = self._annotation_of.setdefault(text, len(self.annotations))
        if number == len(self.annotations):
            self.annotations.append(text)
        return number


class _Reader:
    """One snapshot on its way to a recording."""

    def __init__(self, snapshot: dict[str, Any]) -> None:
        self.tables = _Tables()
        self.lists: set[int] = set()  # by identity, see _own_dicts()
        self.segments = _dicts(snapshot, "segments")
        traces = _list(snapshot, "device_traces")
        if len({id(one) for one in traces if one}) < sum(1 for one in traces if one):
            raise SnapshotError("device_traces: two have the same list")
        self.traces = [_all_dicts(one, "device_traces") for one in traces]
        self.external = _dicts(snapshot, "external_annotations")
        own = snapshot.get("genesis")
        self.own: dict[str, Any] = own if isinstance(own, dict) else {}
        self.is_own = bool(self.own)
        self.ignored = 0
        self.names = self._names()
        self.device_of = self._devices()
        self.unix_us = self._start_us()
        self.unix_ns = _number(self.own, "unix_ns", self.unix_us * 1000)
        self.blocks = self._blocks()
        self.taken = {
            (block["device"], block["address"]): block["nbytes"]
            for block in self.blocks
            if block["state"] in ("live", "pending")
        }

    # ---- devices ----

    def _names(self) -> list[str]:
        """What the lists of device_traces, and beyond them the segments, belong to."""
        count = len(self.traces)
        for part in (*self.segments, *self.external):
            count = max(count, _number(part, "device", 0) + 1)
        if count > DEVICES_MOST:
            raise SnapshotError(f"there are at most {DEVICES_MOST} devices")
        given = self.own.get("devices")
        given = given if isinstance(given, list) else []
        return [
            (slot < len(given) and _text(given[slot], "the name of a device")) or f"cuda:{slot}"
            for slot in range(count)
        ]

    def _devices(self) -> dict[int, int]:
        """Which slots become which devices: those that have something, or the first."""
        used = {slot for slot, trace in enumerate(self.traces) if trace}
        used |= {_number(segment, "device", 0) for segment in self.segments}
        if not used and self.names:
            used = {0}
        return {slot: index for index, slot in enumerate(sorted(used))}

    def _start_us(self) -> int:
        """The time of the first entry. Those of a list are in order, so its first will do."""
        firsts = [entries[0] for entries in (*self.traces, self.external) if entries]
        return min((_number(entry, "time_us", 0) for entry in firsts), default=0)

    def _time_ns(self, entry: dict[str, Any]) -> int:
        return max(0, _number(entry, "time_us", self.unix_us) * 1000 - self.unix_ns)

    # ---- blocks ----

    def _place_check(self, address: int, size: int, what: str) -> None:
        if address + size > WORD_MOST:
            raise SnapshotError(f"{what} ends beyond the last address")

    def _own_dicts(self, parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
        """A list that nobody else has: work is bounded by what is in the file."""
        found = _dicts(parent, key)
        if found and id(parent[key]) in self.lists:
            raise SnapshotError(f"{key}: two have the same list")
        self.lists.add(id(parent[key]) if found else 0)
        return found

    def _blocks(self) -> list[dict[str, Any]]:
        found = []
        for number, segment in enumerate(self.segments):
            device = self.device_of[_number(segment, "device", 0)]
            address = at = _number(segment, "address")
            total, stream = _number(segment, "total_size"), _number(segment, "stream", 0)
            self._place_check(address, total, "a segment")
            for block in self._own_dicts(segment, "blocks"):
                size = _number(block, "size")
                self._place_check(at, size, "a block")
                state = STATES.get(_text(block.get("state"), "state"), "global_cached")
                found.append(
                    {
                        "device": device,
                        "address": at,  # blocks tile their segment; old ones have no address
                        "nbytes": size,
                        "requested": 0
                        if state == "global_cached"
                        else _number(block, "requested_size", size),
                        "state": state,
                        "stream_id": stream,
                        "segment_id": number,
                        "segment_address": address,
                        "segment_bytes": total,
                        "number": 0,
                        "site": self.tables.site(block),
                    }
                )
                at += size
        return found

    # ---- events ----

    def _last_alloc(self, slot: int) -> dict[int, int]:
        """Where each address was allocated for the last time: such a block may be in _blocks()."""
        return {
            entry["addr"]: index
            for index, entry in enumerate(self.traces[slot])
            if entry.get("action") == "alloc" and isinstance(entry.get("addr"), int)
        }

    def _size(self, requested: int, key: tuple[int, int], is_last: bool) -> int:
        """What a block takes that does not say so itself."""
        if self.is_own:
            return requested
        if is_last and key in self.taken:
            return self.taken[key]
        return max(-(-requested // PYTORCH_UNIT), 1) * PYTORCH_UNIT

    def _trace(self, slot: int) -> list[tuple[int, ...]]:
        rows = []
        trace, last_alloc = self.traces[slot], self._last_alloc(slot)
        folded, time_ns = -1, 0
        for index, entry in enumerate(trace):
            action = entry.get("action")
            kind = ACTIONS.get(action) if isinstance(action, str) else None
            if kind is None:
                self.ignored += 1
                continue
            if index == folded:
                continue
            if kind == FREE_REQUESTED and _is_completed_next(trace, index):
                kind, folded = FREE, index + 1
            try:
                row = self._row(entry, kind, self.device_of[slot], last_alloc, index)
            except SnapshotError as error:
                raise SnapshotError(f"entry {index} of device {slot}: {error}") from None
            if row[0] < time_ns:  # the order of the list is what counts
                row = (time_ns, *row[1:])
            time_ns = row[0]
            rows.append(row)
        return rows

    def _row(
        self,
        entry: dict[str, Any],
        kind: int,
        device: int,
        last_alloc: dict[int, int],
        index: int,
    ) -> tuple[int, ...]:
        """An entry as an event without its number; what does not fit is found when it is packed."""
        get = entry.get
        address, requested = get("addr", 0), get("size", 0)
        if type(address) is not int or type(requested) is not int:
            address, requested = _number(entry, "addr", 0), _number(entry, "size", 0)
        if kind == OUT_OF_MEMORY:
            address, size = 0, _number(entry, "device_free", 0)
        elif kind in (SEGMENT_MAP, SEGMENT_UNMAP):
            size, requested = requested, 0
        else:
            size = get("block_size")
            if size is not None:
                size = _number(entry, "block_size")
            else:
                is_last = index >= last_alloc.get(address, 0)
                size = self._size(requested, (device, address), is_last)
        time_us, name, frames = get("time_us"), get("user_metadata"), get("frames")
        if type(time_us) is not int and time_us is not None:
            time_us = _number(entry, "time_us")
        time_ns = 0 if time_us is None else time_us * 1000 - self.unix_ns
        if address + size > WORD_MOST:
            raise SnapshotError(f"a block at {_shown(address)} ends beyond the last address")
        return (
            time_ns if time_ns > 0 else 0,
            address,
            size,
            requested,
            get("stream", 0),
            self.tables.site(entry) if frames else 0,
            self.tables.annotation(name) if name else 0,
            get("thread", 0),
            kind,
            device,
        )

    def _marks(self) -> list[tuple[int, ...]]:
        rows = []
        for entry in self.external:
            rows.append(
                (
                    self._time_ns(entry),
                    0,
                    0,
                    0,
                    0,
                    0,
                    self.tables.annotation(entry.get("name")),
                    _number(entry, "thread", 0) & 0xFFFF,
                    STAGES.get(_text(entry.get("stage"), "stage"), MARK),
                    self.device_of.get(_number(entry, "device", 0), 0),
                )
            )
        return rows

    def data(self) -> bytes:
        """All events, by time; those of one device stay in their order."""
        rows = self._marks()
        for slot in self.device_of:
            if slot < len(self.traces):
                rows += self._trace(slot)
        rows.sort(key=itemgetter(0))
        pack = EVENT.pack
        try:
            return b"".join([pack(*row, index & 0xFFFFFFFF) for index, row in enumerate(rows)])
        except struct.error:
            raise SnapshotError(f"a number does not fit: {_misfit(rows)}") from None


def _misfit(rows: list[tuple[int, ...]]) -> str:
    """The first field that cannot be packed, for the message."""
    names = ("time", "addr", "size", "size", "stream", "frames", "user_metadata", "thread")
    for row in rows:
        for name, value in zip(names, row, strict=False):
            most = 1 << 16 if name == "thread" else WORD_MOST
            if not isinstance(value, int) or not 0 <= value < most:
                return f"{name} is {_shown(value)}"
    return "in an event"


def _is_completed_next(trace: list[dict[str, Any]], index: int) -> bool:
    """Whether a requested free is completed by the next entry: it was free for reuse at once."""
    if index + 1 == len(trace):
        return False
    following = trace[index + 1]
    requested, completed = trace[index].get("addr"), following.get("addr")
    if not isinstance(requested, int) or not isinstance(completed, int):
        return False  # and nothing is compared that a file may have made endless
    return following.get("action") == "free_completed" and completed == requested


def _statistics(given: Any) -> dict[str, dict[str, Any]]:
    """The numbers of each device's manager; what is none is left out."""
    devices = given.items() if isinstance(given, dict) else ()
    return {
        str(name): {key: value for key, value in numbers.items() if isinstance(value, int | float)}
        for name, numbers in devices
        if isinstance(numbers, dict)
    }


def read(snapshot: dict[str, Any]) -> Recording:
    """The recording that a snapshot holds."""
    reader = _Reader(snapshot)
    data = reader.data()
    # A snapshot without segments, or one that was cut out of another, says nothing of its end.
    unknown = set(reader.device_of.values()) - {block["device"] for block in reader.blocks}
    blocks = reader.blocks + (blocks_from_events(data, unknown) if unknown else [])
    return Recording(
        data,
        reader.tables.sites,
        reader.tables.annotations,
        [reader.names[slot] for slot in reader.device_of],
        blocks,
        _number(reader.own, "lost", 0),
        reader.unix_ns,
        _statistics(reader.own.get("statistics")),
        reader.ignored,
    )
