"""Operations on a GPU beside eager PyTorch: the same work in turns, every result submitted.

    python bench/bench_ops_gpu.py [ROUNDS]

Call to call: a loop of calls, and one synchronize at its end, on both sides. A ratio is the median
of the rounds' ratios, PyTorch's time over that of Genesis: above 1 Genesis is faster. The floor is
what a bare cuLaunchKernel costs from C, in the same rounds of the same process.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import genesis

Scenario = tuple[str, int, Callable[[], object], Callable[[], object]]


def flushed(make: Callable[[], object]) -> Callable[[], object]:
    """Submit what is made."""
    flush = genesis.flush

    def run() -> object:
        made = make()
        flush()
        return made

    return run


def hundred(x: object) -> object:
    """Small operations whose results are read at the end."""
    for _ in range(25):
        x = ((x + 1) * 0.5 - 0.25).tanh()
    return x


def scenarios() -> list[Scenario]:
    """Name, how often a round repeats it, PyTorch's way, ours."""
    found: list[Scenario] = []

    def add(name: str, count: int, make: Callable, *tensors: torch.Tensor) -> None:
        ours = [genesis.tensor(t.cpu().numpy()).cuda() for t in tensors]
        found.append((name, count, lambda: make(*tensors), flushed(lambda: make(*ours))))

    def new(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, device="cuda")

    small, one, square = new(16), new(1 << 20), new(1000, 1000)
    rows, wide = new(1, 10000), new(4096, 10000)
    add("add, 16", 2000, lambda x: x + x, small)
    add("add, 1M", 2000, lambda x: x + x, one)
    add("exp((x + 1) * 2), 1M", 1000, lambda x: ((x + 1) * 2).exp(), one)
    add("sum, 1M", 1000, lambda x: x.sum(), one)
    add("relu, sum(dim=1), mean, 1000 x 1000", 500, lambda x: x.relu().sum(dim=1).mean(), square)
    add("softmax, 10K", 1000, lambda x: x.softmax(dim=1), rows)
    add("softmax, 4096 x 10K", 50, lambda x: x.softmax(dim=1), wide)
    add("sum of columns, 4096 x 10K", 100, lambda x: x.sum(dim=0), wide)
    add("transposed copy, 4096 x 10K", 50, lambda x: x.T.contiguous(), wide)
    some = torch.randint(0, 1000, (500,), device="cuda")
    add("x[idx], 500 rows of 1000 x 1000", 1000, lambda x, idx: x[idx], square, some)
    add("x[mask], 1000 x 1000", 500, lambda x, mask: x[mask], square, square > 0.5)
    add("matmul, 512 x 512", 500, lambda x: x @ x, new(512, 512))
    add("100 small operations", 20, hundred, new(1024))
    return found


def large() -> list[Scenario]:
    """The same at 256 million elements."""
    found: list[Scenario] = []
    x = torch.rand(256 << 20, device="cuda")
    ours = genesis.rand(1 << 20, device="cuda").repeat(256)
    for name, make in (
        ("add, 256M", lambda t: t + t),
        ("copy, 256M", lambda t: t.clone()),
        ("exp((x + 1) * 2), 256M", lambda t: ((t + 1) * 2).exp()),
        ("sum, 256M", lambda t: t.sum()),
    ):
        found.append((name, 10, lambda make=make: make(x), flushed(lambda make=make: make(ours))))
    half, our_half = x.half(), ours.half()
    found.append(
        ("float16 add, 256M", 10, lambda: half + half, flushed(lambda: our_half + our_half))
    )
    return found


def floor_of() -> Callable[[int], float]:
    """Seconds of a bare launch, from build-gpu/bench."""
    path = Path(__file__).parent.parent / "build-gpu" / "bench" / "liblaunch_floor.so"
    function = ctypes.CDLL(str(path)).launch_floor
    function.restype = ctypes.c_double
    return function


def seconds(call: Callable[[], object], count: int, synchronize: Callable[[], None]) -> float:
    """Of one call."""
    synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return (time.perf_counter() - begin) / count


def table(rows: list[Scenario], rounds: int) -> None:
    """Print one."""
    floor = floor_of()
    print(
        "| float32 | PyTorch, us | Genesis, us | PyTorch / Genesis | floor, us | Genesis / floor |"
    )
    print("|---|---|---|---|---|---|")
    for name, count, theirs, ours in rows:
        seconds(theirs, 3, torch.cuda.synchronize)
        seconds(ours, 3, genesis.cuda.synchronize)
        times = [
            (
                seconds(theirs, count, torch.cuda.synchronize),
                seconds(ours, count, genesis.cuda.synchronize),
                floor(1000),
            )
            for _ in range(rounds)
        ]
        first, second, bare = (statistics.median(one) * 1e6 for one in zip(*times, strict=True))
        ratio = statistics.median(one[0] / one[1] for one in times)
        launches = statistics.median(one[1] / one[2] for one in times)
        print(
            f"| {name} | {first:.2f} | {second:.2f} | {ratio:.2f} | {bare:.2f} | {launches:.2f} |",
            flush=True,
        )


def main() -> None:
    """Print the tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{genesis.cuda.get_device_name()}, medians of {rounds} interleaved rounds.\n")
    table(scenarios(), rounds)
    print()
    table(large(), rounds)


if __name__ == "__main__":
    main()
