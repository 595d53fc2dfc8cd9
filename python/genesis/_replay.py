"""Recorded allocations once more, through this allocator, to see what would have happened.

A trace is PyTorch's snapshot or ours, or RMM's log (Thread,Time,Action,Pointer,Size,Stream). One
device's allocations and frees are sent, in their order, to a process of its own that has the
allocator under the wanted settings, on the simulated GPU unless told otherwise. The memory itself
is never touched, so a trace of a large GPU replays on a small machine.

A step is three numbers: slot, what to allocate plus 1 (0: free), stream (0: the default one). A
slot has one block at a time.
"""

from __future__ import annotations

import csv
import json
import os
import struct
import subprocess
import sys
from array import array
from typing import Any, NamedTuple

from genesis._recording import (
    ALLOC,
    EVENT,
    FREE,
    FREE_REQUESTED,
    OUT_OF_MEMORY,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    Recording,
    blocks_from_events,
)
from genesis._snapshot import SnapshotError, load

CSV_HEAD = ["Thread", "Time", "Action", "Pointer", "Size", "Stream"]
CSV_ACTIONS = {"allocate": ALLOC, "free": FREE, "allocate failure": OUT_OF_MEMORY}
STEP_ITEMS = 3
STEPS_AT_ONCE = 1 << 16
GIB = 1 << 30


class Outcome(NamedTuple):
    """What an allocator did with a trace."""

    peak_live: int
    peak_requested: int
    peak_reserved: int | None  # None: the trace does not tell
    driver_calls: int | None
    out_of_memory: int

    @property
    def fragmentation(self) -> float | None:
        """The part of the reserved memory at its peak that nobody had asked for at theirs."""
        if not self.peak_reserved:
            return None
        return max(0.0, 1 - self.peak_requested / self.peak_reserved)


class Trace(NamedTuple):
    """The allocations and frees of one device."""

    device: str
    steps: array[int]
    slots: int
    streams: int  # besides the default one
    allocations: int
    frees: int
    older: int  # frees of blocks whose allocation was not seen, which are left out
    ignored: int  # entries that mean nothing here
    recorded: Outcome

    @classmethod
    def of(cls, recording: Recording, device: int | None = None, with_older: bool = False) -> Trace:
        """The trace of a device, by default of the one with the most events.

        With ``with_older`` it begins by allocating what was live before the recording.

        Examples
        --------
        >>> from genesis._recording import ALLOC, EVENT, Recording
        >>> from genesis._replay import Trace
        >>> data = EVENT.pack(10, 4096, 512, 500, 0, 0, 0, 0, ALLOC, 0, 0)
        >>> Trace.of(Recording(data, devices=["cuda:0"])).steps
        array('Q', [0, 501, 0])
        """
        if device is None:
            owners = bytes(recording.column("device"))
            device = max(set(owners), key=owners.count, default=0)
        builder = _Builder()
        if with_older:
            for one in sorted(recording.live_at(-1, device), key=lambda one: one.address):
                builder.alloc(one.address, one.requested, one.stream)
        for row in recording.rows():
            if row[9] == device:
                builder.add(row)
        return cls(
            recording.device_name(device),
            builder.steps,
            builder.slot_count,
            len(builder.streams),
            builder.allocations,
            builder.frees,
            builder.older,
            recording.ignored,
            recorded_outcome(recording, device),
        )


class _Builder:
    """Gives blocks their slots."""

    def __init__(self) -> None:
        self.steps = array("Q")
        self.slot_of: dict[int, int] = {}  # by address
        self.free_slots: list[int] = []
        self.streams: dict[int, int] = {}
        self.slot_count = self.allocations = self.frees = self.older = 0

    def add(self, row: tuple[int, ...]) -> None:
        address, kind = row[1], row[8]
        if kind == ALLOC:
            self.alloc(address, row[3], row[4])
        elif kind in (FREE, FREE_REQUESTED):
            if address in self.slot_of:
                self._free(address)
            else:
                self.older += 1

    def alloc(self, address: int, requested: int, stream: int) -> None:
        if address in self.slot_of:  # its free was not recorded
            self._free(address)
        self.allocations += 1
        slot = self.free_slots.pop() if self.free_slots else self.slot_count
        self.slot_count = max(self.slot_count, slot + 1)
        self.slot_of[address] = slot
        number = self.streams.setdefault(stream, len(self.streams) + 1) if stream else 0
        self.steps.extend((slot, requested + 1, number))

    def _free(self, address: int) -> None:
        slot = self.slot_of.pop(address)
        self.free_slots.append(slot)
        self.frees += 1
        self.steps.extend((slot, 0, 0))


def recorded_outcome(recording: Recording, device: int) -> Outcome:
    """What the allocator did that the recording is of."""
    usage = recording.usage(device)
    others = recording.find(SEGMENT_MAP, SEGMENT_UNMAP, OUT_OF_MEMORY)
    kinds = [row[8] for row in map(recording.row, others) if row[9] == device]
    calls = kinds.count(SEGMENT_MAP) + kinds.count(SEGMENT_UNMAP)
    peaks = [
        max([start, *column])
        for start, column in zip(
            usage.start, (usage.live, usage.requested, usage.pending, usage.reserved), strict=True
        )
    ]
    knows_segments = peaks[3] > 0
    return Outcome(
        peaks[0],
        peaks[1],
        peaks[3] if knows_segments else None,
        calls if knows_segments else None,
        kinds.count(OUT_OF_MEMORY),
    )


# ---- files --------------------------------------------------------------------------------------


def read_recording(path: str) -> Recording:
    """The recording in a file: a snapshot in PyTorch's layout, or RMM's log."""
    with open(path, "rb") as file:  # noqa: PTH123
        head = file.read(len(",".join(CSV_HEAD)))
    if head == ",".join(CSV_HEAD).encode():
        return _read_csv(path)
    return Recording.from_torch(load(path))


def _read_csv(path: str) -> Recording:
    rows: list[bytes] = []
    ignored = 0
    with open(path, newline="", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        lines = csv.reader(file)
        number = 1
        try:
            next(lines)
            for number, line in enumerate(lines, 2):
                kind, row = _csv_row(number, line)
                if kind is None:
                    ignored += 1
                else:
                    rows.append(row)
        except (ValueError, struct.error, csv.Error):
            raise SnapshotError(f"line {number} cannot be read") from None
    data = b"".join(rows)
    blocks = blocks_from_events(data, {0})
    return Recording(data, devices=["cuda:0"], blocks=blocks, ignored=ignored)


def _csv_row(number: int, line: list[str]) -> tuple[int | None, bytes]:
    _, _, action, pointer, size_text, stream_text = line
    address = 0 if pointer == "(nil)" else int(pointer, 16)
    size, stream = int(size_text), int(stream_text, 0)
    kind = CSV_ACTIONS.get(action)
    free_bytes = 0 if kind == OUT_OF_MEMORY else size
    row = (number * 1000, address, free_bytes, size, stream, 0, 0, 0, kind or 0, 0, number)
    return kind, EVENT.pack(*row)


# ---- the other process --------------------------------------------------------------------------


class Settings(NamedTuple):
    """Under which settings a trace is replayed."""

    device: str = "sim"  # or cpu, cuda
    policy: str | None = None  # None: the device's default
    segment_size: int | None = None
    memory: int | None = None


def default_memory(trace: Trace) -> int:
    """What the simulated GPU has if nobody says: as much as can be needed."""
    return max(4 * trace.recorded.peak_live, 4 * (trace.recorded.peak_reserved or 0), 4 * GIB)


def replay(trace: Trace, settings: Settings) -> tuple[Outcome, str]:
    """Replay a trace; gives what happened, and the policy that the allocator had.

    Raises
    ------
    RuntimeError
        If the other process fails, with the reason.
    """
    command = [sys.executable, "-m", "genesis._replay"]
    head = json.dumps({**settings._asdict(), "slots": trace.slots, "streams": trace.streams})
    done = subprocess.run(
        command,
        input=head.encode() + b"\n" + trace.steps.tobytes(),
        env=_environment(trace, settings),
        capture_output=True,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    if done.returncode or not lines:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(reason[-1] if reason else f"the replay ended with {done.returncode}")
    result = json.loads(lines[-1])
    return Outcome(*result["outcome"]), result["policy"]


def _environment(trace: Trace, settings: Settings) -> dict[str, str]:
    """What the other process starts with: nothing of what this one was told about the allocator."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GENESIS_", "SIM_GPU_")) or name == "GENESIS_CUDA_DRIVER"
    }
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    if settings.device == "sim":
        kept["GENESIS_CUDA_DRIVER"] = "sim"
        kept["SIM_GPU_MEMORY"] = str(settings.memory or default_memory(trace))
    if settings.policy:
        kept["GENESIS_CUDA_ALLOCATOR"] = settings.policy
    if settings.segment_size:
        kept["GENESIS_CUDA_SEGMENT_SIZE"] = str(settings.segment_size)
    return kept


def _open_manager(settings: Settings) -> Any:
    from genesis import _C

    place = "cpu" if settings.device == "cpu" else "cuda:0"
    manager = _C.MemoryManager(place)
    if place == "cpu":  # the variables are about GPUs
        if settings.policy == "direct":
            manager.set_config(strategy="direct")
        if settings.segment_size:
            manager.set_config(segment_bytes=settings.segment_size)
    if settings.memory and settings.device != "sim":
        total = _C.memory_info(place)[1]
        if settings.memory > total:
            sys.exit(f"{place} has {total} bytes, not the {settings.memory} that it shall have")
        manager.set_config(memory_fraction=settings.memory / total)
    return manager


def _run_steps(manager: Any, steps: array[int], slots: int, streams: list[Any]) -> tuple[int, int]:
    """Do it all; gives how often memory ran out, and the most that was requested at a time."""
    from genesis._C import OutOfMemoryError

    blocks: list[int | None] = [None] * slots
    sizes = [0] * slots
    failures = requested = peak = 0
    for at in range(0, len(steps), STEP_ITEMS * STEPS_AT_ONCE):
        part = iter(steps[at : at + STEP_ITEMS * STEPS_AT_ONCE].tolist())
        for slot, size, stream in zip(part, part, part, strict=True):
            block = blocks[slot]
            if size == 0:
                if block is not None:
                    manager.free_memory(block)
                    blocks[slot] = None
                    requested -= sizes[slot]
                continue
            try:
                blocks[slot] = manager.allocate_memory(size - 1, streams[stream])
            except OutOfMemoryError:
                failures += 1
                continue
            sizes[slot] = size - 1
            requested += size - 1
            if requested > peak:
                peak = requested
    for block in blocks:
        if block is not None:
            manager.free_memory(block)
    return failures, peak


def main() -> None:
    """The other process: settings and steps come by standard input, the outcome goes out."""
    from genesis import _C

    head = json.loads(sys.stdin.buffer.readline())
    settings = Settings(*(head[name] for name in Settings._fields))
    steps = array("Q", sys.stdin.buffer.read())
    manager = _open_manager(settings)
    before = manager.statistics()
    streams = [None, *(_C.Stream(manager.device) for _ in range(head["streams"]))]
    failures, requested = _run_steps(manager, steps, head["slots"], streams)
    now = manager.statistics()
    calls = sum(now[key] - before[key] for key in ("driver_alloc_count", "driver_free_count"))
    outcome = (now["live_bytes_peak"], requested, now["reserved_bytes_peak"], calls, failures)
    print(json.dumps({"outcome": outcome, "policy": _policy(manager)}))


def _policy(manager: Any) -> str:
    return "direct" if manager.get_config()["strategy"] == "direct" else manager.policy


if __name__ == "__main__":
    main()
