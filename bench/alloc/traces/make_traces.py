"""Write the two sample traces beside this file, and print the counts that a replay must find.

They look like recordings of two training steps with an optimizer's temporaries and a second stream,
and hold what real recordings hold: frees of blocks from before the recording, frees whose
completion comes later, failures, and entries that neither allocate nor free.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Recorder:
    """Invents addresses, and keeps the account."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, int, int]] = []  # action, address, size, stream
        self.sizes: dict[int, int] = {}
        self.free_addresses: dict[int, list[int]] = {}
        self.next_address = 0x7F0000000000
        self.allocs = self.frees = self.live = self.peak = 0

    def alloc(self, size: int, stream: int) -> int:
        """Allocate, at the address of a freed block of that size if there is one."""
        if self.free_addresses.get(size):
            address = self.free_addresses[size].pop()
        else:
            address = self.next_address
            self.next_address += -(-size // 512) * 512
        self.sizes[address] = size
        self.events.append(("alloc", address, size, stream))
        self.allocs += 1
        self.live += size
        self.peak = max(self.peak, self.live)
        return address

    def free(self, address: int, stream: int) -> None:
        """Free; the address is used again from then on."""
        size = self.sizes.pop(address)
        self.events.append(("free", address, size, stream))
        self.free_addresses.setdefault(size, []).append(address)
        self.frees += 1
        self.live -= size


def train(recorder: Recorder) -> None:
    """Two steps of a small network; the data of the next step comes on a stream of its own."""
    source = random.Random(11)
    weights = [int(2 ** source.uniform(10, 22)) for _ in range(12)]
    for size in weights:
        recorder.alloc(size, 0)
    for _ in range(2):
        batch = source.randint(16, 64)
        data = recorder.alloc(batch * 3 * 64 * 64 * 4, 7)
        kept = [recorder.alloc(batch * 1024 * source.randint(1, 64), 0) for _ in range(24)]
        for address in reversed(kept):
            inner = recorder.alloc(source.randint(1, 1 << 20), 0)
            recorder.free(address, 0)
            recorder.free(inner, 0)
        for size in weights:
            recorder.free(recorder.alloc(size, 0), 0)
        recorder.free(data, 7)


def write_torch(recorder: Recorder, path: Path) -> None:
    """The layout of PyTorch's snapshot, as JSON."""
    trace: list[dict[str, object]] = []

    def add(action: str, address: int, size: int, stream: int) -> None:
        entry = {"action": action, "addr": address, "size": size, "stream": stream}
        trace.append(entry | {"time_us": 1000 + len(trace)})

    add("segment_alloc", 0x7F0000000000, 20 << 20, 0)
    add("free_requested", 0x7E0000000000, 4096, 0)  # allocated before the recording
    add("free_completed", 0x7E0000000000, 4096, 0)
    late: list[tuple[int, int, int]] = []
    for action, *rest in recorder.events:
        if action == "alloc":
            while late:  # an address is not used again before its free is complete
                add("free_completed", *late.pop(0))
            add("alloc", *rest)
        else:
            add("free_requested", *rest)
            late.append(tuple(rest))
    while late:
        add("free_completed", *late.pop(0))
    trace.append({"action": "oom", "device_free": 1 << 20, "size": 1 << 40, "stream": 0})
    add("snapshot", 0, 0, 0)
    trace[5]["frames"] = [{"name": 'a "quoted" name\n', "filename": "train.py", "line": 7}]
    snapshot = {
        "segments": [],
        "device_traces": [trace, []],
        "allocator_settings": {"expandable_segments": False},
        "external_annotations": [],
    }
    path.write_text(json.dumps(snapshot, separators=(",", ":")) + "\n")


def write_rmm(recorder: Recorder, path: Path) -> None:
    """The layout of RMM's logging_resource_adaptor."""
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]
    words = {"alloc": "allocate", "free": "free"}
    for number, (action, address, size, stream) in enumerate(recorder.events):
        clock = f"12:00:{number // 1000:02d}.{number % 1000 * 1000:06d}"
        lines.append(f"4242,{clock},{words[action]},{address:#x},{size},{stream:#x}")
    lines.append(f"4242,12:00:59.000000,allocate failure,(nil),{1 << 40},0x0")
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Write both."""
    recorder = Recorder()
    train(recorder)
    write_torch(recorder, HERE / "sample_torch.json")
    write_rmm(recorder, HERE / "sample_rmm.csv")
    print(f"--expect {recorder.allocs},{recorder.frees},{recorder.peak}")


if __name__ == "__main__":
    main()
