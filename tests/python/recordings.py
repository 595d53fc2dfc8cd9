"""Recordings made without the C library: programs on a model of an allocator, and what is true.

``Machine`` is the model: it hands out addresses from segments, keeps what is live, pending and
reserved after every event, and gives the recording at the end. ``random_recording`` drives it at
random, ``training_recording`` like a training loop, ``large_recording`` as fast as it goes.
"""

from __future__ import annotations

import bisect
import random
from collections import defaultdict
from typing import NamedTuple

from genesis import _recording as r
from genesis._recording import EVENT, Frame, Recording

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SEGMENT_BYTES = 32 * MIB


class Truth(NamedTuple):
    """Bytes of one device after an event."""

    live: int = 0
    requested: int = 0
    pending: int = 0
    reserved: int = 0


class Block(NamedTuple):
    """A block that was handed out."""

    device: int
    address: int
    size: int
    requested: int
    stream: int
    site: int
    segment: tuple[int, int]  # address and bytes


class Machine:
    """A model of the allocators of some devices, which records what it does.

    ``truth[i]`` holds a Truth for each device after event ``i``. ``counts`` is set to False for
    recordings that are too large to keep them; free memory is then only reused for the same size.
    """

    def __init__(self, devices=("cuda:0",), counts=True, segment_bytes=SEGMENT_BYTES) -> None:
        self.devices = list(devices)
        self.segment_bytes = segment_bytes
        self.sites: list[tuple[Frame, ...]] = [()]
        self.site_numbers = {(): 0}
        self.annotations = [""]
        self.annotation_numbers = {"": 0}
        self.time_ns = 1_000_000_000_000
        self.records: list[bytes] = []
        self.counts = counts
        self.truth: list[tuple[Truth, ...]] = []
        self.now = [[0, 0, 0, 0] for _ in self.devices]
        self.live: dict[tuple[int, int], Block] = {}
        self.pending: dict[tuple[int, int], Block] = {}
        self.free: dict[tuple[int, int], list] = defaultdict(list)  # (device, size): free blocks
        self.gaps: list[list] = [[] for _ in self.devices]  # (address, size, segment), by address
        self.segments: list[dict[int, int]] = [{} for _ in self.devices]  # address: bytes
        self.next_segment = [0x7F0000000000 + (i << 40) for i in range(len(self.devices))]
        self.numbers: dict[int, int] = defaultdict(int)
        self.thread = 1
        self.nesting: dict[int, list[int]] = defaultdict(lambda: [0])

    # ---- names ----

    def site(self, *stack: tuple[str, str, int]) -> int:
        """The number of a stack, given innermost frame first."""
        frames = tuple(Frame(*frame) for frame in stack)
        if frames not in self.site_numbers:
            self.site_numbers[frames] = len(self.sites)
            self.sites.append(frames)
        return self.site_numbers[frames]

    def annotation(self, path: str) -> int:
        """The number of an annotation."""
        if path not in self.annotation_numbers:
            self.annotation_numbers[path] = len(self.annotations)
            self.annotations.append(path)
        return self.annotation_numbers[path]

    # ---- events ----

    def wait(self, nanoseconds: int) -> None:
        """Let time pass."""
        self.time_ns += nanoseconds

    def emit(self, kind, device=0, address=0, size=0, requested=0, stream=0, site=0, annotation=-1):
        """Record an event; its annotation is the thread's innermost one unless given."""
        if annotation < 0:
            annotation = self.nesting[self.thread][-1]
        number = self.numbers[self.thread] = self.numbers[self.thread] + 1
        record = (self.time_ns, address, size, requested, stream, site, annotation)
        self.records.append(EVENT.pack(*record, self.thread, kind, device, number))
        if self.counts:
            self.truth.append(tuple(Truth(*now) for now in self.now))

    def map(self, device: int, size: int) -> None:
        """Obtain a segment."""
        address = self.next_segment[device]
        self.next_segment[device] += size + 2 * MIB
        self.segments[device][address] = size
        self.gaps[device].append((address, size, (address, size)))
        self.now[device][3] += size
        self.emit(r.SEGMENT_MAP, device, address, size)

    def place(self, device: int, size: int) -> tuple[int, tuple[int, int]]:
        """An address for a block of this size, and its segment."""
        if self.free[device, size]:
            return self.free[device, size].pop()
        gaps = self.gaps[device]
        if not self.counts and gaps and gaps[-1][1] >= size:
            place = len(gaps) - 1
        else:
            fitting = [(gap[1], i) for i, gap in enumerate(gaps) if gap[1] >= size]
            place = min(fitting, default=(0, -1))[1]
        if place < 0:
            self.map(device, max(self.segment_bytes, -(-size // (2 * MIB)) * 2 * MIB))
            place = len(gaps) - 1
        address, left, segment = gaps.pop(place)
        if left > size:
            gaps.insert(place, (address + size, left - size, segment))
        return address, segment

    def give(self, block: Block) -> None:
        """Take a block back, and join it with the free memory beside it."""
        if not self.counts:
            self.free[block.device, block.size].append((block.address, block.segment))
            return
        gaps = self.gaps[block.device]
        place = bisect.bisect(gaps, (block.address,))
        gap = (block.address, block.size, block.segment)
        if place < len(gaps) and gaps[place][0] == gap[0] + gap[1] and gaps[place][2] == gap[2]:
            gap = (gap[0], gap[1] + gaps.pop(place)[1], gap[2])
        if place and sum(gaps[place - 1][:2]) == gap[0] and gaps[place - 1][2] == gap[2]:
            place -= 1
            low = gaps.pop(place)
            gap = (low[0], low[1] + gap[1], gap[2])
        gaps.insert(place, gap)

    def alloc(self, requested: int, device=0, stream=0, site=0) -> Block:
        """Hand out a block."""
        size = max(512, -(-requested // 512) * 512)
        address, segment = self.place(device, size)
        block = Block(device, address, size, requested, stream, site, segment)
        self.live[device, address] = block
        self.now[device][0] += size
        self.now[device][1] += requested
        self.emit(r.ALLOC, device, address, size, requested, stream, site)
        return block

    def release(self, block: Block, kind: int, site=0) -> None:
        """FREE, FREE_REQUESTED or FREE_COMPLETED of a block."""
        key = (block.device, block.address)
        now = self.now[block.device]
        if kind == r.FREE_COMPLETED:
            del self.pending[key]
            now[2] -= block.size
        else:
            del self.live[key]
            now[0] -= block.size
            now[1] -= block.requested
        if kind == r.FREE_REQUESTED:
            self.pending[key] = block
            now[2] += block.size
        else:
            self.give(block)
        self.emit(kind, *block[:5], site)

    def unmap_idle(self, device: int) -> None:
        """Give the segments back that hold nothing."""
        for gap in [gap for gap in self.gaps[device] if gap[1] == gap[2][1]]:
            self.gaps[device].remove(gap)
            address, size, _ = gap
            del self.segments[device][address]
            self.now[device][3] -= size
            self.emit(r.SEGMENT_UNMAP, device, address, size)

    def out_of_memory(self, requested: int, free: int, device=0, site=0) -> None:
        """A request that could not be met."""
        self.emit(r.OUT_OF_MEMORY, device, 0, free, requested, 0, site)

    def mark(self, name: str) -> None:
        """A user's mark."""
        self.emit(r.MARK, annotation=self.annotation(name))

    def begin(self, name: str) -> None:
        """Enter an annotation."""
        outer = self.annotations[self.nesting[self.thread][-1]]
        number = self.annotation(f"{outer}/{name}" if outer else name)
        self.nesting[self.thread].append(number)
        self.emit(r.ANNOTATION_BEGIN)

    def end(self) -> None:
        """Leave it."""
        self.emit(r.ANNOTATION_END)
        self.nesting[self.thread].pop()

    # ---- the end ----

    def entries(self) -> list[dict]:
        """The blocks as MemoryManager.blocks() gives them."""
        numbers = {}
        entries = []
        groups = {"live": self.live.values(), "pending": self.pending.values()}
        groups["global_cached"] = [
            Block(device, address, size, 0, 0, 0, segment)
            for (device, size), blocks in self.free.items()
            for address, segment in blocks
        ]
        groups["global_cached"] += [
            Block(device, address, size, 0, 0, 0, segment)
            for device, gaps in enumerate(self.gaps)
            for address, size, segment in gaps
        ]
        for state, blocks in groups.items():
            for b in blocks:
                entries.append(
                    {
                        "address": b.address,
                        "nbytes": b.size,
                        "requested": b.requested,
                        "state": state,
                        "stream_id": b.stream,
                        "segment_id": numbers.setdefault((b.device, b.segment), len(numbers)),
                        "segment_address": b.segment[0],
                        "segment_bytes": b.segment[1],
                        "device": b.device,
                        "site": b.site,
                    }
                )
        return sorted(entries, key=lambda entry: (entry["device"], entry["address"]))

    def recording(self, lost: int = 0) -> Recording:
        """What a reader of this machine's rings would get now."""
        names = ("live_bytes", "requested_bytes", "pending_bytes", "reserved_bytes")
        return Recording(
            data=b"".join(self.records),
            sites=list(self.sites),
            annotations=list(self.annotations),
            devices=list(self.devices),
            blocks=self.entries(),
            lost=lost,
            unix_ns=1_800_000_000_000_000_000 - self.time_ns,
            statistics={
                name: dict(zip(names, now, strict=True))
                for name, now in zip(self.devices, self.now, strict=True)
            },
        )


# ---- programs -----------------------------------------------------------------------------------


def random_step(machine: Machine, dice: random.Random, sites: list[int]) -> None:
    """One event of a random program, or a few."""
    machine.wait(dice.randrange(0, 5000))
    machine.thread = dice.choice((1, 1, 2, 3))
    choice = dice.random()
    if choice < 0.48 or not machine.live:
        requested = int(2 ** dice.uniform(4, 23))
        device = dice.randrange(len(machine.devices))
        machine.alloc(requested, device, dice.choice((0, 0, 7)), dice.choice(sites))
    elif choice < 0.88:
        block = dice.choice(list(machine.live.values()))
        kind = r.FREE_REQUESTED if dice.random() < 0.2 else r.FREE
        machine.release(block, kind, dice.choice(sites))
    elif choice < 0.94 and machine.pending:
        machine.release(dice.choice(list(machine.pending.values())), r.FREE_COMPLETED)
    elif choice < 0.95:
        machine.unmap_idle(dice.randrange(len(machine.devices)))
    elif choice < 0.97:
        deep = len(machine.nesting[machine.thread]) > 3
        if deep or (dice.random() < 0.5 and len(machine.nesting[machine.thread]) > 1):
            machine.end()
        else:
            machine.begin(dice.choice(("forward", "backward", "load")))
    elif choice < 0.98:
        machine.mark(f"mark {dice.randrange(4)}")
    elif choice < 0.985:
        machine.out_of_memory(dice.randrange(GIB), dice.randrange(MIB))


def random_sites(machine: Machine, dice: random.Random, count: int) -> list[int]:
    """Stacks of one to five frames, and the unknown one."""
    names = ["linear", "attention", "embed", "loss", "step", "load_batch"]
    return [0] + [
        machine.site(
            *(
                (dice.choice(names), f"model/{dice.choice(names)}.py", dice.randrange(300))
                for _ in range(dice.randrange(1, 6))
            )
        )
        for _ in range(count)
    ]


def random_recording(seed=0, steps=2000, devices=("cuda:0", "cpu")) -> tuple[Recording, list]:
    """A random program: its recording, and the Truth of each device after every event."""
    dice = random.Random(seed)
    machine = Machine(devices)
    sites = random_sites(machine, dice, 20)
    for _ in range(steps):
        random_step(machine, dice, sites)
    return machine.recording(), machine.truth


def with_data(recording: Recording, data: bytes, lost: int) -> Recording:
    """The same recording with other events."""
    names = ("sites", "annotations", "devices", "blocks", "unix_ns", "statistics")
    return Recording(data=data, lost=lost, **{name: getattr(recording, name) for name in names})


def without_first(recording: Recording, events: int, lost: int = 0) -> Recording:
    """The same recording as if it had begun some events later, or had lost them."""
    return with_data(recording, recording.data[events * EVENT.size :], lost)


def losing(recording: Recording, thread: int, events: int) -> tuple[Recording, list[int]]:
    """The same recording after a thread's ring overwrote its first events; and which are left."""
    left, seen = [], 0
    for place, event in enumerate(EVENT.iter_unpack(recording.data)):
        seen += event[7] == thread
        if event[7] != thread or seen > events:
            left.append(place)
    data = b"".join(recording.data[i * EVENT.size : (i + 1) * EVENT.size] for i in left)
    return with_data(recording, data, events), left


def live_after(recording: Recording, moment: int, device: int = 0) -> dict[int, tuple]:
    """The live blocks of a complete recording after an event: address to the ALLOC event."""
    live: dict[int, tuple] = {}
    for event in list(EVENT.iter_unpack(recording.data))[: moment + 1]:
        if event[9] == device and event[8] == r.ALLOC:
            live[event[1]] = event
        elif event[9] == device and event[8] in (r.FREE, r.FREE_REQUESTED):
            del live[event[1]]
    return live


def large_recording(events=1_000_000, seed=1) -> Recording:
    """Many events: blocks of many sizes, sites and life times, most of them short."""
    dice = random.Random(seed)
    machine = Machine(("cuda:0",), counts=False)
    sites = random_sites(machine, dice, 2000)
    sizes = [int(2 ** dice.uniform(9, 24)) for _ in range(400)]
    alive: list[Block] = []
    uniform, record = dice.random, machine.records
    while len(record) < events:
        machine.time_ns += int(uniform() * 4000)
        if uniform() < 0.5 + 0.1 * (len(alive) < 3000) - 0.1 * (len(alive) > 6000):
            size = sizes[int(uniform() * 400)]
            alive.append(machine.alloc(size, 0, 0, sites[int(uniform() * 2001)]))
        elif alive:
            # The newest are freed most often.
            place = len(alive) - 1 - int(uniform() ** 3 * len(alive))
            alive[place], alive[-1] = alive[-1], alive[place]
            machine.release(alive.pop(), r.FREE)
    return machine.recording()


def growing_recording(events=1_000_000) -> Recording:
    """Many events, of which half are blocks that are never freed and half marks and annotations."""
    machine = Machine(("cuda:0",), counts=False)
    sites = [machine.site((f"f{i}", "grow.py", i)) for i in range(50)]
    while len(machine.records) < events:
        machine.begin("step")
        machine.wait(500)
        for _ in range(3):
            machine.alloc(len(machine.records) % 9000, site=sites[len(machine.records) % 50])
        machine.mark("tick")
        machine.wait(500)
        machine.end()
    return machine.recording()


class Training:
    """A training loop of a small transformer: parameters, activations, gradients, state."""

    def __init__(self, layers=4, width=2048, tokens=8192) -> None:
        self.machine = Machine(("cuda:0",), segment_bytes=512 * MIB)
        self.layers, self.width, self.tokens = layers, width, tokens
        self.main = ("main", "train.py", 88)
        self.parameters: list[Block] = []
        self.state: list[Block] = []
        self.gradients: list[Block] = []

    def site(self, *stack):
        """A stack below main()."""
        return self.machine.site(("empty", "genesis/ndarray/ndarray.py", 212), *stack, self.main)

    def take(self, nbytes: int, microseconds: int, *stack) -> Block:
        """An allocation after some work."""
        self.machine.wait(microseconds * 1000)
        return self.machine.alloc(nbytes, site=self.machine.site(*stack, self.main))

    def build(self) -> None:
        """The parameters."""
        self.machine.begin("build")
        for layer in range(self.layers):
            for name, factor, line in (("attention", 4, 31), ("mlp", 8, 47)):
                frames = ("Linear.__init__", "nn/linear.py", 22), (name, "model.py", line)
                self.parameters.append(
                    self.take(factor * self.width**2 * 2, 150, *frames, ("GPT", "model.py", layer))
                )
        self.machine.end()

    def forward(self, scale: float) -> list[Block]:
        """Activations, kept for backward, and work space that is not."""
        machine, kept = self.machine, []
        unit = int(self.tokens * self.width * 2 * scale)
        machine.begin("forward")
        for _ in range(self.layers):
            block = ("Block.forward", "model.py", 83)
            attention = ("attention", "model.py", 58)
            kept.append(
                self.take(3 * unit, 120, ("matmul", "nn/functional.py", 40), attention, block)
            )
            scores = self.take(4 * unit, 60, ("softmax", "nn/functional.py", 77), attention, block)
            kept.append(self.take(unit, 200, ("matmul", "nn/functional.py", 40), attention, block))
            machine.wait(60_000)
            machine.release(scores, r.FREE)
            mlp = ("mlp", "model.py", 66)
            kept.append(self.take(4 * unit, 160, ("gelu", "nn/functional.py", 95), mlp, block))
            kept.append(self.take(unit, 160, ("dropout", "nn/functional.py", 121), mlp, block))
        kept.append(self.take(3 * unit, 100, ("cross_entropy", "nn/functional.py", 140)))
        machine.end()
        return kept

    def backward(self, kept: list[Block], scale: float) -> None:
        """Gradients grow while activations go."""
        machine = self.machine
        unit = int(self.tokens * self.width * 2 * scale)
        machine.begin("backward")
        parameters = iter(reversed(self.parameters))
        for index, block in enumerate(reversed(kept)):
            flow = self.take(2 * unit, 90, ("backward", "autograd.py", 188))
            if index % 2 == 1 and len(self.gradients) < len(self.parameters):
                size = next(parameters).requested
                stack = ("accumulate", "autograd.py", 231), ("backward", "autograd.py", 188)
                self.gradients.append(self.take(size, 60, *stack))
            machine.wait(110_000)
            machine.release(block, r.FREE)
            machine.wait(20_000)
            machine.release(flow, r.FREE)
        machine.end()

    def update(self) -> None:
        """The optimizer, whose state is made in the first step."""
        machine = self.machine
        machine.begin("optimizer")
        for parameter in self.parameters:
            if len(self.state) < 2 * len(self.parameters):
                for line in (54, 55):
                    stack = (
                        ("AdamW.init_state", "optim/adamw.py", line),
                        ("step", "optim/adamw.py", 71),
                    )
                    self.state.append(self.take(2 * parameter.requested, 40, *stack))
            scratch = self.take(parameter.requested, 30, ("step", "optim/adamw.py", 83))
            machine.wait(50_000)
            machine.release(scratch, r.FREE)
        for gradient in self.gradients:
            machine.release(gradient, r.FREE)
        self.gradients.clear()
        machine.end()

    def step(self, number: int, scale: float = 1.0) -> None:
        """One step; the batch is loaded on another stream and freed when that one is done."""
        machine = self.machine
        machine.begin(f"step {number}")
        batch = machine.alloc(
            64 * MIB, stream=3, site=machine.site(("load", "data.py", 17), self.main)
        )
        kept = self.forward(scale)
        machine.release(batch, r.FREE_REQUESTED)
        self.backward(kept, scale)
        machine.release(batch, r.FREE_COMPLETED)
        self.update()
        machine.end()
        machine.wait(300_000)


def training_recording(steps=3, fails=True) -> tuple[Recording, list]:
    """A training loop; its last step has a longer batch and runs out of memory."""
    training = Training()
    machine = training.machine
    training.build()
    for number in range(steps):
        training.step(number)
        if number == 1:
            machine.mark("checkpoint")
    if fails:
        machine.begin(f"step {steps}")
        training.forward(1.7)
        machine.out_of_memory(
            96 * MIB,
            31 * MIB,
            site=machine.site(("matmul", "nn/functional.py", 40), training.main),
        )
        machine.wait(200_000)
        machine.end()
    return machine.recording(), machine.truth
