"""What a program waits for when it runs for the first time, beside eager PyTorch.

    python bench/bench_first_use.py [--rounds 5] [--tiers auto] [--floor PROGRAM]

Every measurement is a process of its own, with an empty kernel cache; both sides take turns, and
the median of the rounds is printed. PyTorch is left out where it is not installed or has no GPU.

    expressions   60 new expressions of 6 random operations, on 100,000 elements: all, and the worst
                  beside the time that it takes when it runs again
    sums          the same, each ending in a sum
    shapes        200 new shapes of one chain that ends in a sum
    start         a whole process: import, one operation, the result on the host; beside a C program
                  that starts the driver, makes the context and sets one word (--floor)
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

ELEMENTS = 100_000


def expression_make(choice: random.Random, x: Any, y: Any) -> Any:
    """Six random operations."""
    operations = [
        lambda v: v + y,
        lambda v: v * y,
        lambda v: v - y,
        lambda v: v / (y * y + 1),
        lambda v: v.sin(),
        lambda v: v.cos(),
        lambda v: v.tanh(),
        lambda v: v.exp(),
        lambda v: v.sigmoid(),
        lambda v: v.abs().sqrt(),
        lambda v: v.relu(),
    ]
    for _ in range(6):
        x = choice.choice(operations)(x)
    return x


def expressions(library: ModuleType, is_summed: bool) -> dict[str, float]:
    """Times in milliseconds: of all new expressions, of the worst one, and of that one again."""
    x = library.ones(ELEMENTS, device="cuda")
    y = x * 0.5
    library.cuda.synchronize()
    times = []
    for again in range(2):
        if again:
            library.cuda.synchronize()
        for number in range(60):
            begin = time.perf_counter()
            made = expression_make(random.Random(number), x, y)
            made = made.sum() if is_summed else made
            if hasattr(library, "flush"):
                library.flush()
            library.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e3)
    worst = max(range(60), key=lambda number: times[number])
    return {"all": sum(times[:60]), "worst": times[worst], "again": times[60 + worst]}


def shapes(library: ModuleType) -> dict[str, float]:
    """Milliseconds for 200 new shapes of one chain."""
    inputs = [library.ones(64 + number, 257, device="cuda") for number in range(200)]
    library.cuda.synchronize()
    begin = time.perf_counter()
    for x in inputs:
        y = ((x + 1) * 2).exp().sum(1)
    if hasattr(library, "flush"):
        library.flush()
    library.cuda.synchronize()
    del y
    return {"all": (time.perf_counter() - begin) * 1e3}


def start(library: ModuleType) -> dict[str, float]:
    """The parent measures it."""
    return {"result": (library.ones(1000, device="cuda") + 1).sum().item()}


MEASURES = {
    "expressions": lambda library: expressions(library, False),
    "sums": lambda library: expressions(library, True),
    "shapes": shapes,
    "start": start,
}


def child_run(library: str, measure: str, tiers: str) -> dict[str, float]:
    """A measurement in a process with an empty cache, and how long the process took."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {
            "GENESIS_KERNEL_CACHE_DIR": cache,
            "GENESIS_TIERS": tiers,
            "CUDA_CACHE_PATH": cache + "/driver",
        }
        begin = time.perf_counter()
        finished = subprocess.run(
            [sys.executable, __file__, "--child", library, measure],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return json.loads(finished.stdout) | {"process": (time.perf_counter() - begin) * 1e3}


def floor_run(program: str) -> float:
    """Milliseconds of the C program."""
    driver = os.environ.get("GENESIS_CUDA_DRIVER", "libcuda.so.1")
    begin = time.perf_counter()
    subprocess.run([program, driver], check=True)  # it ends with 1 where the driver is no real one
    return (time.perf_counter() - begin) * 1e3


def has_torch() -> bool:
    """Whether PyTorch is installed, and has a GPU."""
    if importlib.util.find_spec("torch") is None:
        return False
    return bool(importlib.import_module("torch").cuda.is_available())


def measure_print(measure: str, rounds: int, tiers: str, peers: list[str]) -> None:
    """A row for each figure."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name in peers:
            found[name].append(child_run(name, measure, tiers))
    for key in found["genesis"][0]:
        if key == "result" or (key == "process") != (measure == "start"):
            continue
        figures = [median(one[key] for one in found[name]) for name in peers]
        ratio = f"{figures[0] / figures[1]:10.2f}" if len(peers) > 1 else ""
        print(f"{measure:12} {key:8}", *(f"{figure:10.1f}" for figure in figures), ratio)


def main() -> None:
    """Measure, or be one of the measured processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tiers", default="auto")
    parser.add_argument("--floor", default="build/bench/first_use_floor")
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child is not None:
        library = importlib.import_module(given.child[0])
        print(json.dumps(MEASURES[given.child[1]](library)))
        return
    peers = ["genesis", "torch"] if has_torch() else ["genesis"]
    heads = [*peers, "ratio"] if len(peers) > 1 else peers
    print(f"{'milliseconds':21}", *(f"{name:>10}" for name in heads))
    for measure in MEASURES:
        measure_print(measure, given.rounds, given.tiers, peers)
    if Path(given.floor).exists():
        times = [floor_run(given.floor) for _ in range(given.rounds)]
        print(f"{'start':12} {'floor':8} {median(times):10.1f}")


if __name__ == "__main__":
    main()
