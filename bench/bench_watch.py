"""What recording costs a Python program: events, and the 10 innermost frames of each allocation.

    python bench/bench_watch.py [DEVICE]

The same loop runs with recording off, with events, and with events and stacks, in turns. Figures
are medians over the rounds; differences are medians of the rounds' differences.
"""

from __future__ import annotations

import statistics
import sys
import time

from genesis import _C, memory_profiler

ROUNDS = 15
PAIRS = 20_000
DEPTH = 12  # frames below the allocation


def pair_ns(manager: _C.MemoryManager, depth: int) -> float:
    """Nanoseconds for an allocation and its free, from a function that is nested so deep."""
    if depth:
        return pair_ns(manager, depth - 1)
    allocate, free = manager.allocate_memory, manager.free_memory
    begin = time.perf_counter_ns()
    for _ in range(PAIRS):
        free(allocate(4096))
    return (time.perf_counter_ns() - begin) / PAIRS


def main() -> None:
    """Print the table."""
    manager = _C.MemoryManager(sys.argv[1] if len(sys.argv) > 1 else "cpu")
    modes = {"off": None, "events": "none", "events and 10 Python frames": "python"}
    times: dict[str, list[float]] = {name: [] for name in modes}
    for _ in range(ROUNDS):
        for name, stacks in modes.items():
            if stacks is not None:
                memory_profiler.start(max_events=1 << 16, stacks=stacks)
            times[name].append(pair_ns(manager, DEPTH))
            memory_profiler.stop()
    print(f"An allocation and its free of 4 KiB on {manager.device}, medians of {ROUNDS} rounds.\n")
    print("| recording | ns a pair | more, ns an event |\n|---|---|---|")
    for name, values in times.items():
        more = statistics.median(a - b for a, b in zip(values, times["off"], strict=True)) / 2
        print(f"| {name} | {statistics.median(values):.0f} | {f'{more:.0f}' if more else ''} |")


if __name__ == "__main__":
    main()
