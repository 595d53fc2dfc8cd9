"""Random recordings with the account that a recording must give, kept beside it."""

from __future__ import annotations

import random

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
)

UNIT = 512
SEGMENT = 1 << 20
UNIX_NS = 1_750_000_000_000_000_000


class ModelSegment:
    """A segment of units, each free or part of a block."""

    def __init__(self, number: int, address: int, size: int) -> None:
        self.number, self.address, self.size = number, address, size
        self.used: dict[int, int] = {}  # address -> size of live and pending blocks
        self.next = address

    def take(self, size: int) -> int | None:
        if self.next + size > self.address + self.size:
            return None
        address, self.next = self.next, self.next + size
        self.used[address] = size
        return address

    def give(self, address: int) -> None:
        del self.used[address]
        if not self.used:
            self.next = self.address


class RecordingModel:
    """Does random things to the memory of some devices, and keeps events and account.

    ``account[k]`` holds, after event k, for its device: live, requested, pending, reserved bytes.
    """

    def __init__(self, seed: int, devices: tuple[str, ...] = ("cuda:0", "cpu")) -> None:
        self.random = random.Random(seed)
        self.devices = list(devices)
        self.rows: list[tuple[int, ...]] = []
        self.account: list[tuple[int, int, int, int]] = []
        self.now = [[0, 0, 0, 0] for _ in devices]
        self.live: list[dict[int, tuple]] = [{} for _ in devices]
        self.pending: list[dict[int, tuple]] = [{} for _ in devices]
        self.segments: list[list[ModelSegment]] = [[] for _ in devices]
        self.next_address = 0x7F0000000000
        self.segment_count = 0
        self.time_ns = 1000
        self.stack: list[int] = []
        self.annotations = ["", "train", "train/forward", "train/backward", 'odd "name"\n']
        self.sites: list[tuple[Frame, ...]] = [()]
        for index in range(1, 6):
            inner = Frame(f"layer{index}", f"model_{index}.py", 10 * index)
            self.sites.append((inner, Frame("main", "train.py", 3), Frame("run", "/lib/x.so", 0)))

    def event(self, kind, device, address=0, size=0, requested=0, stream=0, site=0, name=None):
        self.time_ns += self.random.choice((0, 1, 700, 5000, 20_000))
        annotation = name if name is not None else self.stack[-1] if self.stack else 0
        row = (self.time_ns, address, size, requested, stream, site, annotation, 1, kind, device)
        self.rows.append((*row, len(self.rows)))
        self.account.append(tuple(self.now[device]))

    # ---- what can happen ----

    def alloc(self, device: int) -> None:
        requested = int(2 ** self.random.uniform(0, 19))
        size = -(-requested // UNIT) * UNIT
        for segment in self.segments[device]:
            address = segment.take(size)
            if address is not None:
                break
        else:
            segment = self.map(device)
            address = segment.take(size)
        stream, site = self.random.choice((0, 0, 7)), self.random.randrange(len(self.sites))
        self.live[device][address] = (size, requested, stream, site, segment)
        self.now[device][0] += size
        self.now[device][1] += requested
        self.event(ALLOC, device, address, size, requested, stream, site)

    def map(self, device: int) -> ModelSegment:
        self.segment_count += 1
        segment = ModelSegment(self.segment_count, self.next_address, SEGMENT)
        self.next_address += 3 * SEGMENT
        self.segments[device].append(segment)
        self.now[device][3] += SEGMENT
        self.event(SEGMENT_MAP, device, segment.address, SEGMENT)
        return segment

    def unmap(self, device: int) -> None:
        for segment in self.segments[device]:
            if not segment.used:
                self.segments[device].remove(segment)
                self.now[device][3] -= SEGMENT
                self.event(SEGMENT_UNMAP, device, segment.address, SEGMENT)
                return

    def free(self, device: int) -> None:
        if not self.live[device]:
            return
        address = self.random.choice(list(self.live[device]))
        size, requested, stream, site, segment = self.live[device].pop(address)
        self.now[device][0] -= size
        self.now[device][1] -= requested
        if self.random.random() < 0.3:
            self.pending[device][address] = (size, requested, stream, site, segment)
            self.now[device][2] += size
            self.event(FREE_REQUESTED, device, address, size, requested, stream)
        else:
            segment.give(address)
            self.event(FREE, device, address, size, requested, stream)

    def complete(self, device: int) -> None:
        if not self.pending[device]:
            return
        address = next(iter(self.pending[device]))
        size, requested, stream, _, segment = self.pending[device].pop(address)
        segment.give(address)
        self.now[device][2] -= size
        self.event(FREE_COMPLETED, device, address, size, requested, stream)

    def annotate(self, device: int) -> None:
        if self.stack and self.random.random() < 0.5:
            self.event(ANNOTATION_END, device, name=self.stack.pop())
        elif len(self.stack) < 2:
            self.stack.append(self.random.choice((2, 3)) if self.stack else 1)
            self.event(ANNOTATION_BEGIN, device, name=self.stack[-1])

    def other(self, device: int) -> None:
        kind = self.random.choice((MARK, OUT_OF_MEMORY, SNAPSHOT))
        if kind == OUT_OF_MEMORY:
            self.event(kind, device, size=12345, requested=1 << 33, site=1)
        else:
            self.event(kind, device, name=4 if kind == MARK else 0)

    def step(self) -> None:
        device = self.random.randrange(len(self.devices))
        what = self.random.choices(
            (self.alloc, self.free, self.complete, self.unmap, self.annotate, self.other),
            (10, 9, 3, 1, 1, 0.3),
        )[0]
        what(device)

    # ---- the recording ----

    def blocks(self) -> list[dict]:
        found = []
        for device, segments in enumerate(self.segments):
            for segment in segments:
                at = segment.address
                for address in sorted(segment.used):
                    if address > at:
                        found.append(self.block(device, segment, at, address - at, None))
                    found.append(self.block(device, segment, address, segment.used[address], 1))
                    at = address + segment.used[address]
                if at < segment.address + SEGMENT:
                    rest = segment.address + SEGMENT - at
                    found.append(self.block(device, segment, at, rest, None))
        return found

    def block(self, device, segment, address, size, used) -> dict:
        state, requested, stream, site = "global_cached", 0, 0, 0
        if used and address in self.live[device]:
            state, (_, requested, stream, site, _) = "live", self.live[device][address]
        elif used:
            state, (_, requested, stream, site, _) = "pending", self.pending[device][address]
        return {
            "address": address,
            "nbytes": size,
            "requested": requested,
            "state": state,
            "stream_id": stream,
            "segment_id": segment.number,
            "segment_address": segment.address,
            "segment_bytes": SEGMENT,
            "number": 0,
            "device": device,
            "site": site,
        }

    def statistics(self) -> dict[str, dict[str, int]]:
        keys = ("live_bytes", "requested_bytes", "pending_bytes", "reserved_bytes")
        return {
            name: dict(zip(keys, now, strict=True))
            for name, now in zip(self.devices, self.now, strict=True)
        }

    def recording(self, lost: int = 0) -> Recording:
        """The recording, without its first events."""
        return Recording(
            b"".join(EVENT.pack(*row) for row in self.rows[lost:]),
            self.sites,
            self.annotations,
            self.devices,
            self.blocks(),
            lost,
            UNIX_NS,
            self.statistics(),
        )


def random_model(seed: int, steps: int, devices=("cuda:0", "cpu")) -> RecordingModel:
    """A model after so many steps."""
    model = RecordingModel(seed, devices)
    for _ in range(steps):
        model.step()
    return model


def training_recording(steps: int = 20, layers: int = 8) -> Recording:
    """Training steps that grow and shrink as such do: activations, gradients, one kept for ever."""
    model = RecordingModel(1, ("cuda:0",))
    for _ in range(steps):
        model.stack = [1]
        model.event(ANNOTATION_BEGIN, 0, name=1)
        for name in (2, 3):
            model.stack.append(name)
            model.event(ANNOTATION_BEGIN, 0, name=name)
            for _ in range(layers):
                model.alloc(0) if name == 2 or len(model.live[0]) < 3 else model.free(0)
                model.complete(0)
            model.stack.pop()
            model.event(ANNOTATION_END, 0, name=name)
        model.stack = []
        model.event(ANNOTATION_END, 0, name=1)
    return model.recording()
