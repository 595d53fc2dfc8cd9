"""Allocation and free called from Python: Genesis beside PyTorch, CuPy and the driver.

The same requests as in bench_alloc_gpu.py, in a loop of Python whose own cost is in every figure
and shown in a column of its own. Peers take turns; what is not installed is left out.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable

from harness import Scenario, driver_path, median, print_head, print_row, ratio, scenarios

Alloc = Callable[[int], object]
Free = Callable[[object], object]
PAIRS = 2000  # of a round, so that one takes milliseconds


def drop(_block: object) -> None:
    """Free by losing the last reference."""


def run(alloc: Alloc, free: Free, steps: list[tuple[int, int]], slot_count: int) -> float:
    """Microseconds per pair."""
    live: list[object] = [None] * slot_count
    start = time.perf_counter()
    for slot, nbytes in steps:
        if live[slot] is not None:
            free(live[slot])
            live[slot] = None
        if nbytes:
            live[slot] = alloc(nbytes)
    for slot in range(slot_count):
        if live[slot] is not None:
            free(live[slot])
            live[slot] = None
    return (time.perf_counter() - start) * 1e6 / sum(nbytes != 0 for _, nbytes in steps)


def genesis_peers(peers: dict[str, tuple[Alloc, Free]]) -> Callable[[], None]:
    """Genesis by its documented functions, and by the manager's methods."""
    from genesis.ndarray.cuda_memory_manager import (
        allocate_memory,
        free_memory,
        get_memory_manager,
    )

    manager = get_memory_manager()
    print(f"Genesis on {manager.device}.", end=" ")
    peers["genesis allocate_memory"] = (allocate_memory, free_memory)
    peers["genesis manager"] = (manager.allocate_memory, manager.free_memory)

    def empty() -> None:
        import genesis

        if hasattr(genesis.cuda, "empty_cache"):
            genesis.cuda.empty_cache()

    return empty


def torch_peers(peers: dict[str, tuple[Alloc, Free]]) -> Callable[[], None]:
    """PyTorch by its allocator's functions, and by tensors."""
    import torch

    torch.zeros(1, device="cuda")

    def empty_tensor(nbytes: int) -> object:
        return torch.empty(nbytes, dtype=torch.uint8, device="cuda")

    peers["torch caching_allocator_alloc"] = (
        torch.cuda.caching_allocator_alloc,
        torch.cuda.caching_allocator_delete,
    )
    peers["torch.empty"] = (empty_tensor, drop)
    return torch.cuda.empty_cache


def cupy_peers(peers: dict[str, tuple[Alloc, Free]]) -> Callable[[], None]:
    """CuPy's default pool."""
    import cupy

    cupy.cuda.alloc(512)
    peers["cupy.cuda.alloc"] = (cupy.cuda.alloc, drop)
    return cupy.get_default_memory_pool().free_all_blocks


def driver_peers(peers: dict[str, tuple[Alloc, Free]]) -> Callable[[], None]:
    """The driver through ctypes; a context is current once another peer made one so."""
    driver = ctypes.CDLL(driver_path())
    context = ctypes.c_void_p()
    for result in (
        driver.cuInit(0),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        driver.cuCtxPushCurrent_v2(context),
    ):
        if result != 0:
            raise OSError(f"driver error {result}")

    def alloc(nbytes: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        result = driver.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(nbytes), None)
        if result != 0:
            raise MemoryError(f"driver error {result}")
        return pointer

    def free(pointer: ctypes.c_uint64) -> None:
        driver.cuMemFreeAsync(pointer, None)

    peers["cuMemAllocAsync (ctypes)"] = (alloc, free)

    def empty() -> None:
        pool = ctypes.c_void_p()
        driver.cuCtxSynchronize()
        if hasattr(driver, "cuDeviceGetDefaultMemPool"):
            driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0)
            driver.cuMemPoolTrimTo(pool, ctypes.c_size_t(0))

    return empty


def measure(scenario: Scenario, peers: dict[str, tuple[Alloc, Free]], rounds: int) -> None:
    """One row of the table."""
    steps = [(step.slot, step.nbytes) for step in scenario.steps]
    if scenario.first_step_count:
        steps = steps[: scenario.first_step_count]
    elif len(steps) > PAIRS:
        steps = steps[: max(PAIRS, 2 * scenario.slot_count)]
    times: dict[str, list[float]] = {name: [] for name in peers}
    failed: set[str] = set()
    for number in range(-1, rounds):
        for name, (alloc, free) in peers.items():
            if name in failed:
                continue
            try:
                figure = run(alloc, free, steps, scenario.slot_count)
            except (MemoryError, RuntimeError) as error:
                print(f"{scenario.name}: {name}: {str(error)[:200]}", file=sys.stderr)
                failed.add(name)
                continue
            if number >= 0:
                times[name].append(figure)
    cells = [f"{median(t):.3f}" if (t := times[name]) else "-" for name in peers]
    first = next(iter(peers))
    others = [name for name in peers if name not in (first, "the loop")]
    ratios = [
        f"{ratio(times[name], times[first]):.2f}"
        if times[name] and len(times[name]) == len(times[first])
        else "-"
        for name in others
    ]
    print_row([scenario.title, *cells, *ratios])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--shrink", type=int, default=1, help="divides all sizes")
    arguments = parser.parse_args()
    peers: dict[str, tuple[Alloc, Free]] = {}
    empties = []
    for add in (genesis_peers, torch_peers, cupy_peers, driver_peers):
        try:
            empties.append(add(peers))
        except (ImportError, OSError, RuntimeError, AssertionError) as error:
            print(f"left out: {add.__name__}: {error}", file=sys.stderr)
    peers["the loop"] = (int, drop)
    print(
        "Microseconds per allocation and free from Python. "
        f"Medians of {arguments.rounds} interleaved rounds.\n"
    )
    first = next(iter(peers))
    others = [name for name in peers if name not in (first, "the loop")]
    print_head(["scenario", *peers, *(f"{name} / {first}" for name in others)])
    for scenario in scenarios(arguments.shrink):
        for empty in empties:
            empty()
        measure(scenario, peers, arguments.rounds)


if __name__ == "__main__":
    main()
