"""The interpreter beside compiled kernels: GPU time of chains of operations.

    python bench/bench_tiers.py [--rounds 5] [--most 67108864]

Chains of 1, 4 and 8 operations on 1M and 64M elements, of five types. Each tier has a process of
its own, and they take turns; the median of the rounds is printed. Inputs rotate, so that they
exceed the second-level cache. A ratio of 2 says that the interpreter takes twice as long.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from statistics import median
from typing import Any

TYPES = ["float32", "float16", "bfloat16", "int32", "int64"]
COUNTS = [1 << 20, 1 << 26]
LENGTHS = [1, 4, 8]
ROTATED_BYTES = 256 << 20
RUNS = 20


def chain(x: Any, length: int) -> Any:
    """Some operations, one after the other."""
    steps = [
        lambda v: v + 3,
        lambda v: v * v,
        lambda v: v - 5,
        lambda v: v.maximum(x),
    ]
    y = x
    for number in range(length):
        y = steps[number % len(steps)](y)
    return y


def times(most: int) -> dict[str, float]:
    """Microseconds of each case, by events on the GPU."""
    import genesis

    found = {}
    for name in TYPES:
        for count in (one for one in COUNTS if one <= most):
            dtype = getattr(genesis, name)
            copies = max(1, ROTATED_BYTES // (count * dtype.itemsize))
            inputs = [genesis.ones(count, dtype=dtype, device="cuda") for _ in range(copies)]
            for length in LENGTHS:
                for x in inputs[:2]:
                    y = chain(x, length)
                    genesis.flush()
                genesis.cuda.synchronize()
                begin, end = (genesis.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for run in range(RUNS):
                    y = chain(inputs[run % copies], length)
                    genesis.flush()
                end.record()
                end.synchronize()
                del y
                found[f"{name:9} {count:9} {length}"] = begin.elapsed_time(end) * 1e3 / RUNS
    return found


def child_run(tiers: str, most: int) -> dict[str, float]:
    """The times of one tier."""
    finished = subprocess.run(
        [sys.executable, __file__, "--child", "--most", str(most)],
        env=os.environ | {"GENESIS_TIERS": tiers},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(finished.stdout)


def main() -> None:
    """Measure, or be one of the measured processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=int, default=COUNTS[-1])
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(times(given.most)))
        return
    found: dict[str, list[dict[str, float]]] = {"interpreted": [], "compiled": []}
    for _ in range(given.rounds):
        for tiers, rounds in found.items():
            rounds.append(child_run(tiers, given.most))
    print(f"{'type':9} {'elements':>9} n  interpreted us  compiled us   ratio")
    for case in found["compiled"][0]:
        one, other = (median(each[case] for each in rounds) for rounds in found.values())
        print(f"{case} {one:15.1f} {other:12.1f} {one / other:7.2f}")


if __name__ == "__main__":
    main()
