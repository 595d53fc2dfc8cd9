"""Every way that auto-tuning has to choose from, on a GPU, beside eager PyTorch.

    python bench/bench_tune_gpu.py [ROUNDS [WORD ...]]

Each operation is tuned with GENESIS_AUTOTUNE=max and an empty cache, which times all candidates by
events; then it runs in turns with PyTorch, and the GPU's time of a loop is taken by events on both
sides. Only scenarios that have all the words in their names are run.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable

os.environ["GENESIS_AUTOTUNE"] = "max"
os.environ["GENESIS_KERNEL_CACHE_DIR"] = tempfile.mkdtemp()

import torch

import genesis

Scenario = tuple[str, Callable[[], tuple[Callable[[], object], Callable[[], object]]]]


def ours_of(tensor: torch.Tensor) -> genesis.Tensor:
    """Give the same tensor to Genesis."""
    return genesis.from_dlpack(tensor).clone()


def scenarios() -> list[Scenario]:
    """Name, and what makes PyTorch's way and ours."""
    found: list[Scenario] = []

    def add(name: str, make: Callable, *tensors: Callable[[], torch.Tensor]) -> None:
        def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
            theirs = [tensor() for tensor in tensors]
            ours = [ours_of(tensor) for tensor in theirs]

            def run() -> object:
                made = make(*ours)
                genesis.flush()
                return made

            return lambda: make(*theirs), run

        found.append((name, prepare))

    def new(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], torch.Tensor]:
        return lambda: torch.rand(*shape, device="cuda").to(dtype)

    for dtype in (torch.float32, torch.bfloat16):
        word = str(dtype).removeprefix("torch.")
        for shape in (
            (1, 10000),
            (128, 10000),
            (4096, 10000),
            (4096, 1000),
            (65536, 128),
            (65536, 64),
            (16384, 512),
            (32768, 2048),
            (16384, 4096),
            (4096, 20000),
            (128, 100000),
            (4096, 50257),
        ):
            add(
                f"softmax {word} {shape[0]} x {shape[1]}",
                lambda x: x.softmax(dim=-1),
                new(*shape, dtype=dtype),
            )
        for shift in (20, 24, 28):
            add(f"sum {word} {1 << shift}", lambda x: x.sum(), new(1 << shift, dtype=dtype))
        for shape in ((4096, 10000), (1000000, 64), (128, 1 << 20), (4096, 65536)):
            for dim in (1, 0):
                add(
                    f"sum(dim={dim}) {word} {shape[0]} x {shape[1]}",
                    lambda x, dim=dim: x.sum(dim=dim),
                    new(*shape, dtype=dtype),
                )
        add(f"amax {word} {1 << 26}", lambda x: x.max(), new(1 << 26, dtype=dtype))
    for shape in ((1 << 20,), (1 << 26,), (4096, 10000), (100000, 256)):
        add(
            f"argmax(dim=-1) {' x '.join(map(str, shape))}",
            lambda x: x.argmax(dim=-1),
            new(*shape),
        )
    add("argmax(dim=0) 4096 x 10000", lambda x: x.argmax(dim=0), new(4096, 10000))

    def places(count: int, most: int) -> Callable[[], torch.Tensor]:
        return lambda: torch.randint(0, most, (count,), device="cuda")

    for rows, columns, count in (
        (100000, 256, 100000),
        (1 << 20, 64, 1 << 20),
        (30000, 4096, 8192),
    ):
        for word, make in (
            ("index_select", lambda x, i: x.index_select(0, i)),
            ("x[i]", lambda x, i: x[i]),
        ):
            add(
                f"{word} {count} rows of {rows} x {columns}",
                make,
                new(rows, columns),
                places(count, rows),
            )
    add("x[i] 16M elements of 16M", lambda x, i: x[i], new(1 << 24), places(1 << 24, 1 << 24))
    for size in (1024, 4096, 8192):
        add(
            f"matmul bfloat16 {size}",
            lambda x, y: x @ y,
            new(size, size, dtype=torch.bfloat16),
            new(size, size, dtype=torch.bfloat16),
        )
    add("matmul float32 2048", lambda x, y: x @ y, new(2048, 2048), new(2048, 2048))
    return found


def time_of(run: Callable[[], object], count: int, event: Callable, synchronize: Callable) -> float:
    """Microseconds of one run on the GPU, of `count` in a loop."""
    start, end = event(), event()
    synchronize()
    start.record()
    for _ in range(count):
        run()
    end.record()
    synchronize()
    return start.elapsed_time(end) * 1000 / count


def measure(prepare: Callable, rounds: int) -> tuple[float, float]:
    """Median microseconds of PyTorch and of ours."""
    theirs, ours = prepare()
    sides = (
        (theirs, lambda: torch.cuda.Event(enable_timing=True), torch.cuda.synchronize),
        (ours, lambda: genesis.cuda.Event(enable_timing=True), genesis.cuda.synchronize),
    )
    times: tuple[list[float], list[float]] = ([], [])
    counts = []
    for side in sides:
        time_of(side[0], 3, *side[1:])
        counts.append(max(3, min(200, int(20000 / time_of(side[0], 3, *side[1:])))))
    for _ in range(rounds):
        for side, found, count in zip(sides, times, counts, strict=True):
            found.append(time_of(side[0], count, *side[1:]))
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    """Print a line for each scenario, and below it what its candidates took."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    words = sys.argv[2:]
    print(f"{genesis.cuda.get_device_name()}, medians of {rounds} rounds in turns; microseconds.\n")
    print(f"{'':44} {'PyTorch':>9} {'Genesis':>9} {'ratio':>6}")
    known: set[tuple[str, str]] = set()
    for name, prepare in scenarios():
        if not all(word in name for word in words):
            continue
        try:
            theirs, ours = measure(prepare, rounds)
        except Exception as error:  # noqa: BLE001 - the others are still of interest
            print(f"{name:44} {type(error).__name__}: {error}")
            continue
        print(f"{name:44} {theirs:9.2f} {ours:9.2f} {theirs / ours:6.2f}", flush=True)
        for choice in genesis.cuda.tuning_choices():
            if (choice.kernel, choice.problem) in known:
                continue
            known.add((choice.kernel, choice.problem))
            print(f"    {choice.kernel}: {choice.problem}")
            for one in choice.candidates:
                mark = "*" if one is choice.chosen else " "
                time = "-" if one.milliseconds is None else f"{one.milliseconds * 1000:.2f}"
                values = " ".join(f"{key}={value}" for key, value in one.values.items())
                print(f"      {mark} {time:>9}  {values}")
        torch.cuda.empty_cache()
        genesis.cuda.empty_cache()


if __name__ == "__main__":
    main()
