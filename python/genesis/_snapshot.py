"""PyTorch's snapshot layout: recordings as files that its memory_viz page opens, and back.

    {"segments": [{address, total_size, blocks: [{address, size, requested_size, state, frames}]}],
     "device_traces": [[{action, addr, size, stream, time_us, frames}]],     one list a device
     "external_annotations": [{name, stage, device, time_us}],
     "allocator_settings": {...},
     "genesis": {...}}                                 ours; other readers pass over it

What its readers demand, and what is done for it:

1. The blocks of a segment tile it: holes are filled with inactive ones.
2. A free is a pair, free_requested and free_completed; one right after the other is "at once".
3. The size of an entry is what was requested. What the block takes is in our own ``block_size``,
   only where it differs.
4. Browsers refuse texts of more than 512 MB: JSON has stacks for allocations and not for frees, and
   in a long recording only their innermost frames. A pickle, which has each stack once, keeps all.
5. Segments that grow in place are joined and cut by a viewer that walks back in time, but only
   those of one stream: theirs is 0.
6. Integers are exact up to 2**53 in browsers: addresses, sizes and microseconds are below that.
7. device_traces[n] belongs to CUDA device n; the CPU's come after the last of them.

A file is text of one entry a line, or a pickle of plain types. Pickles come from others: ours are
read by a reader that knows plain types only, and takes no more memory than the file's bytes make.
"""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from collections.abc import Iterator
from itertools import compress, islice
from typing import IO, Any

from genesis import _C
from genesis._recording import (
    ALLOC,
    ANNOTATION_BEGIN,
    ANNOTATION_END,
    FREE,
    FREE_COMPLETED,
    FREE_REQUESTED,
    MARK,
    OUT_OF_MEMORY,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    SNAPSHOT,
    Recording,
    no_collection,
)

STATES = {"live": "active_allocated", "pending": "active_pending_free"}
FREES = (FREE, FREE_REQUESTED, FREE_COMPLETED)
STAGES = {ANNOTATION_BEGIN: "START", ANNOTATION_END: "END", MARK: "MARK"}
SMALL_SEGMENT_BYTES = 2 << 20  # PyTorch's: a segment of more is "large"
CHUNK_ENTRIES = 1000  # that are put together before they are written: they fit into a cache
JSON_STACK_BYTES = 200 << 20  # that the stacks of a JSON file may take


class SnapshotError(ValueError):
    """A file or dict is not a snapshot; the message says why in one line."""


# ---- devices ------------------------------------------------------------------------------------


def device_slots(devices: list[str]) -> list[int | None]:
    """For each list of device_traces, the index of its device, or None where there is none.

    Examples
    --------
    >>> from genesis._snapshot import device_slots
    >>> device_slots(["cpu", "cuda:1"])
    [None, 1, 0]
    """
    slots: list[int | None] = []
    others = []
    for index, name in enumerate(devices):
        number = name.removeprefix("cuda:")
        is_cuda = name.startswith("cuda:") and number.isdecimal() and len(number) <= 3
        place = int(number) if is_cuda else 0
        slots += [None] * (place + 1 - len(slots)) if is_cuda else []
        if is_cuda and slots[place] is None:
            slots[place] = index
        else:
            others.append(index)
    return slots + others


# ---- writing ------------------------------------------------------------------------------------


def _is_expandable(recording: Recording, device: int) -> bool:
    """Whether segments grow and shrink in place, which PyTorch's reader must be told."""
    segments = dict(recording.segments(device).values())
    mapped: dict[int, int] = {}
    for row in map(recording.row, recording.find(SEGMENT_MAP, SEGMENT_UNMAP)):
        address, size = row[1], row[2]
        if row[9] != device:
            continue
        if row[8] == SEGMENT_MAP:
            mapped[address] = size
        elif mapped.get(address) == size:
            del mapped[address]
        elif _is_inside(address, mapped):  # a part of what came as a whole
            return True
    return any(
        segments.get(address, size) != size
        or (address not in segments and _is_inside(address, segments))
        for address, size in mapped.items()
    )


def _is_inside(address: int, segments: dict[int, int]) -> bool:
    return any(start <= address < start + size for start, size in segments.items())


class _Layout:
    """What the entries of all devices share: frames, names, times."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.slots = device_slots(recording.devices)
        # One list for each site, so that a pickle has each stack once.
        self.frames = [[frame._asdict() for frame in site] for site in recording.sites]
        self.expandable = [
            device is not None and _is_expandable(recording, device) for device in self.slots
        ]

    def frames_of(self, site: int) -> list[dict[str, Any]]:
        return self.frames[site] if site < len(self.frames) else []

    def time_us(self, time_ns: int) -> int:
        return (self.recording.unix_ns + time_ns) // 1000

    def segment_actions(self, slot: int) -> tuple[str, str]:
        if self.expandable[slot]:
            return "segment_map", "segment_unmap"
        return "segment_alloc", "segment_free"

    # ---- the parts ----

    def segments(self) -> list[dict[str, Any]]:
        found = []
        slot_of = {device: slot for slot, device in enumerate(self.slots)}
        groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for block in self.recording.blocks:
            slot = slot_of.get(block["device"])
            if slot is not None:
                groups.setdefault((slot, block["segment_id"]), []).append(block)
        for (slot, _), blocks in groups.items():
            blocks.sort(key=lambda block: block["address"])
            found.append(self._segment(slot, blocks))
        return found

    def _segment(self, slot: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        address = blocks[0]["segment_address"]
        tiles = self._tiles(blocks)
        used = [block for block in blocks if block["state"] in STATES]
        live = [block for block in used if block["state"] == "live"]
        return {
            "device": slot,
            "address": address,
            "total_size": sum(tile["size"] for tile in tiles),
            "allocated_size": sum(block["nbytes"] for block in live),
            "active_size": sum(block["nbytes"] for block in used),
            "requested_size": sum(block["requested"] for block in used),
            "stream": 0 if self.expandable[slot] else (used or blocks)[0]["stream_id"],
            "segment_type": "small"
            if blocks[0]["segment_bytes"] <= SMALL_SEGMENT_BYTES
            else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": self.expandable[slot],
            "frames": [],
            "blocks": tiles,
        }

    def _tiles(self, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        tiles = []
        at = blocks[0]["segment_address"]
        for block in blocks:
            if block["address"] > at:
                tiles.append(_hole(at, block["address"]))
            is_used = block["state"] in STATES
            tiles.append(
                {
                    "address": block["address"],
                    "size": block["nbytes"],
                    "requested_size": block["requested"] if is_used else 0,
                    "state": STATES.get(block["state"], "inactive"),
                    "frames": self.frames_of(block.get("site", 0)) if is_used else [],
                }
            )
            at = block["address"] + block["nbytes"]
        end = blocks[0]["segment_address"] + blocks[0]["segment_bytes"]
        return [*tiles, _hole(at, end)] if at < end else tiles

    def annotations(self) -> list[dict[str, Any]]:
        slot_of = {device: slot for slot, device in enumerate(self.slots)}
        return [
            {
                "name": self.recording.annotation_name(row[6]),
                "stage": STAGES[row[8]],
                "device": slot_of.get(row[9], 0),
                "time_us": self.time_us(row[0]),
                "thread": row[7],
            }
            for row in map(self.recording.row, self.recording.find(*STAGES))
        ]

    def settings(self) -> dict[str, Any]:
        return {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": any(self.expandable),
            "roundup_power2_divisions": {},
        }

    def own(self) -> dict[str, Any]:
        recording = self.recording
        return {
            "version": 1,
            "devices": [None if d is None else recording.devices[d] for d in self.slots],
            "lost": recording.lost,
            "unix_ns": recording.unix_ns,
            "statistics": recording.statistics,
        }

    def rest(self) -> dict[str, Any]:
        """Everything but the traces."""
        return {
            "segments": self.segments(),
            "allocator_settings": self.settings(),
            "external_annotations": self.annotations(),
            "genesis": self.own(),
        }


def _hole(start: int, end: int) -> dict[str, Any]:
    """What lies between two blocks."""
    return {
        "address": start,
        "size": end - start,
        "requested_size": 0,
        "state": "inactive",
        "frames": [],
    }


def _actions(layout: _Layout, slot: int) -> dict[int, str]:
    """The action of each kind of event; annotations and marks have a place of their own."""
    mapped, unmapped = layout.segment_actions(slot)
    return {
        ALLOC: "alloc",
        FREE: "free_requested",
        FREE_REQUESTED: "free_requested",
        FREE_COMPLETED: "free_completed",
        SEGMENT_MAP: mapped,
        SEGMENT_UNMAP: unmapped,
        OUT_OF_MEMORY: "oom",
        SNAPSHOT: "snapshot",
    }


def _dict_entries(layout: _Layout, slot: int) -> Iterator[dict[str, Any]]:
    """The trace of a device as dicts. _text_entries() writes the same as text."""
    recording, device, actions = layout.recording, layout.slots[slot], _actions(layout, slot)
    is_expandable = layout.expandable[slot]
    unix_us, rest_ns = divmod(recording.unix_ns, 1000)  # smaller numbers are faster
    tails: dict[tuple[int, int, int], dict[str, Any]] = {}
    for row in recording.rows():
        time_ns, address, size, requested, stream, site, annotation, thread, kind, own, _ = row
        if own != device or kind not in actions:
            continue
        tail = tails.get((site, annotation, thread))
        if tail is None:
            tail = tails[site, annotation, thread] = _dict_tail(layout, site, annotation, thread)
        entry = {
            "action": actions[kind],
            "addr": address,
            "size": requested,
            "stream": stream,
            "time_us": unix_us + (rest_ns + time_ns) // 1000,
            **tail,
        }
        if kind == OUT_OF_MEMORY:
            entry["device_free"] = size
        elif kind in (SEGMENT_MAP, SEGMENT_UNMAP):
            entry["size"] = size
            if is_expandable:
                entry["stream"] = 0
        elif size != requested:
            entry["block_size"] = size
        yield entry
        if kind == FREE:
            yield {
                "action": "free_completed",
                "addr": address,
                "size": requested,
                "stream": stream,
                "time_us": entry["time_us"],
            }


def _dict_tail(layout: _Layout, site: int, annotation: int, thread: int) -> dict[str, Any]:
    """What many entries have in common."""
    tail: dict[str, Any] = {}
    if annotation:
        tail["user_metadata"] = layout.recording.annotation_name(annotation)
    if thread:
        tail["thread"] = thread
    if site:
        tail["frames"] = layout.frames_of(site)
    return tail


def _text_entries(layout: _Layout, slot: int) -> Iterator[str]:
    """The trace of a device as JSON, an entry at a time; this is where the time goes."""
    recording, device = layout.recording, layout.slots[slot]
    heads = {
        kind: f'{{"action":"{action}","addr":' for kind, action in _actions(layout, slot).items()
    }
    completed = heads[FREE_COMPLETED]
    is_expandable = layout.expandable[slot]
    unix_us, rest_ns = divmod(recording.unix_ns, 1000)  # smaller numbers are faster
    frames = _json_frames(layout)
    tails: dict[tuple[int, int, int], str] = {}
    for row in recording.rows():
        time_ns, address, size, requested, stream, site, annotation, thread, kind, own, _ = row
        if own != device or kind not in heads:
            continue
        if kind in FREES:
            site = 0
        tail = tails.get((site, annotation, thread))
        if tail is None:
            name = recording.annotation_name(annotation)
            tail = tails[site, annotation, thread] = _tail(name, thread, frames[site])
        if kind in (SEGMENT_MAP, SEGMENT_UNMAP):
            requested, stream = size, 0 if is_expandable else stream
        elif kind == OUT_OF_MEMORY:
            tail = f',"device_free":{size}{tail}'
        elif size != requested:
            tail = f',"block_size":{size}{tail}'
        middle = (
            f'{address},"size":{requested},"stream":{stream}'
            f',"time_us":{unix_us + (rest_ns + time_ns) // 1000}'
        )
        if kind == FREE:
            yield f"{heads[kind]}{middle}{tail},\n{completed}{middle}}}"
        else:
            yield f"{heads[kind]}{middle}{tail}"


def _tail(name: str, thread: int, frames: str) -> str:
    """The end of an entry: what many entries have in common."""
    text = f',"user_metadata":{json.dumps(name)}' if name else ""
    if thread:
        text += f',"thread":{thread}'
    return text + (f',"frames":[{frames}]}}' if frames else "}")


def _json_frames(layout: _Layout) -> list[str]:
    """The stack of each site as text, with as many frames as there is room for."""
    recording = layout.recording
    counts = Counter(compress(recording.column("site").tolist(), _has_stack(recording)))
    texts = [[json.dumps(f, separators=(",", ":")) for f in site] for site in layout.frames]
    depth = max(map(len, texts), default=0)
    while depth > 1 and _stack_bytes(texts, counts, depth) > JSON_STACK_BYTES:
        depth -= 1
    return [",".join(site[:depth]) for site in texts]


def _has_stack(recording: Recording) -> bytes:
    """For each event, whether JSON has its stack."""
    return bytes(recording.column("kind")).translate(
        bytes(kind not in FREES for kind in range(256))
    )


def _stack_bytes(texts: list[list[str]], counts: Counter[int], depth: int) -> int:
    return sum(
        count * sum(len(text) + 1 for text in texts[site][:depth])
        for site, count in counts.items()
        if site < len(texts)
    )


def to_torch(recording: Recording) -> dict[str, Any]:
    """A recording in PyTorch's snapshot layout.

    Examples
    --------
    >>> from genesis._recording import Recording
    >>> from genesis._snapshot import to_torch
    >>> to_torch(Recording(devices=["cuda:0"]))["device_traces"]
    [[]]
    """
    layout = _Layout(recording)
    with no_collection():
        traces = [list(_dict_entries(layout, slot)) for slot in range(len(layout.slots))]
        return {"device_traces": traces, **layout.rest()}


def dump(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording in PyTorch's layout: JSON, or a pickle for a name in .pickle or .pkl.

    The file appears when it is complete.
    """
    path = os.fspath(path)
    part = f"{path}.part"
    write = _write_pickle if path.endswith((".pickle", ".pkl")) else _write_json
    try:
        with open(part, "wb") as file:  # noqa: PTH123 - a plain path is all there is
            write(recording, file)
        os.replace(part, path)  # noqa: PTH105
    except BaseException:
        if os.path.exists(part):  # noqa: PTH110
            os.remove(part)  # noqa: PTH107
        raise


def _write_pickle(recording: Recording, file: IO[bytes]) -> None:
    with no_collection():
        pickle.dump(to_torch(recording), file, protocol=4)


def _write_json(recording: Recording, file: IO[bytes]) -> None:
    layout = _Layout(recording)
    file.write(b'{"device_traces":[')
    for slot in range(len(layout.slots)):
        file.write(b",[" if slot else b"[")
        separator = b"\n"
        for chunk in _chunks(_text_entries(layout, slot)):
            file.write(separator)
            file.write(",\n".join(chunk).encode("ascii"))
            separator = b",\n"
        file.write(b"]")
    rest = json.dumps(layout.rest(), separators=(",", ":"))
    file.write(b"],\n" + rest[1:].encode("ascii") + b"\n")


def _chunks(entries: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(islice(entries, CHUNK_ENTRIES)):
        yield chunk


# ---- reading ------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a snapshot, JSON or pickle; by what is in the file, not by its name.

    Raises
    ------
    SnapshotError
        If the file is not a snapshot. A pickle that names any class or function is refused.
    OSError
        If the file cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read()
    kind = "pickle" if data[:1] == b"\x80" else "JSON"
    try:
        with no_collection():
            snapshot = _C.read_pickle(data) if kind == "pickle" else json.loads(data)
    except RecursionError:
        raise SnapshotError(f"cannot be read as {kind}: it is nested too deeply") from None
    except (ValueError, MemoryError) as error:
        reason = " ".join(str(error).split()) or "it does not fit into memory"
        raise SnapshotError(f"cannot be read as {kind}: {reason}") from None
    if not isinstance(snapshot, dict):
        raise SnapshotError(f"a snapshot is a dict, not {type(snapshot).__name__}")
    if "device_traces" not in snapshot and "segments" not in snapshot:
        raise SnapshotError("neither device_traces nor segments: not a snapshot")
    return snapshot


def from_torch(snapshot: dict[str, Any]) -> Recording:
    """A recording from PyTorch's snapshot layout, PyTorch's own or ours.

    PyTorch's entries tell what was requested. What a block takes is known for those that are live
    at the end; for the others it is taken to be the next multiple of 512, PyTorch's unit.

    Raises
    ------
    SnapshotError
        If something in it has the wrong type or is out of range.

    Examples
    --------
    >>> from genesis._snapshot import from_torch
    >>> entry = {"action": "alloc", "addr": 4096, "size": 100, "stream": 0, "time_us": 5}
    >>> recording = from_torch({"device_traces": [[entry]], "segments": []})
    >>> recording.devices, recording[0].size
    (['cuda:0'], 512)
    """
    from genesis._snapshot_reader import read

    with no_collection():
        return read(snapshot)
