"""Reductions of many shapes on the CPU beside NumPy: few long rows, many short ones, and others.

    python bench/bench_reductions.py [--rounds 5] [--worst 20]

Both sides compute the same in turns. A ratio is the median of the rounds' ratios, the time of
Genesis over NumPy's: below 1 Genesis is faster. The slowest lines come first.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import TYPE_CHECKING

import numpy

import genesis

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES: list[tuple[tuple[int, ...], int | tuple[int, ...]]] = [
    ((2, 2_000_000), 0),
    ((2, 2_000_000), 1),
    ((2_000_000, 2), 0),
    ((2_000_000, 2), 1),
    ((5, 200_000), 0),
    ((200_000, 5), 1),
    ((3, 1000, 1000), 0),
    ((1000, 3, 1000), 1),
    ((100, 100, 400), (0, 2)),
    ((1000, 16), 0),
    ((16, 1000), 0),
    ((1000, 16), 1),
    ((16, 1000), 1),
]
DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool"]
CALLS = {"sum": "sum", "max": "amax", "mean": "mean", "prod": "prod", "any": "any"}
ROUND_SECONDS = 0.003  # a round repeats a short call for about that long


def seconds(call: Callable[[], object], repeats: int) -> float:
    """The time of one call."""
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def line(dtype: str, shape: tuple[int, ...], axis, name: str, rounds: int) -> tuple[float, str]:
    """One comparison: the ratio, and a row of the table."""
    array = (numpy.random.default_rng(0).integers(0, 4, shape)).astype(dtype)
    x = genesis.tensor(array)
    method = getattr(x, CALLS[name])
    ours, theirs = (lambda: method(axis)), (lambda: getattr(array, name)(axis))
    assert numpy.allclose(ours().numpy(), theirs())
    repeats = max(1, int(ROUND_SECONDS / max(1e-7, seconds(theirs, 1))))
    pairs = [(seconds(ours, repeats), seconds(theirs, repeats)) for _ in range(rounds)]
    ratio = statistics.median(own / other for own, other in pairs)
    own, other = (statistics.median(one) * 1e6 for one in zip(*pairs, strict=True))
    text = f"| {dtype} | {shape} | {name}({axis}) | {other:.1f} | {own:.1f} | {ratio:.2f} |"
    return ratio, text


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worst", type=int, default=20, help="how many lines are printed")
    options = parser.parse_args()
    lines = []
    for dtype in DTYPES:
        for shape, axis in SHAPES:
            for name in CALLS:
                is_left_out = (name == "mean" and not dtype.startswith("float")) or (
                    name == "prod" and isinstance(axis, tuple)
                )
                if not is_left_out:
                    lines.append(line(dtype, shape, axis, name, options.rounds))
    print("| dtype | shape | call | NumPy, us | Genesis, us | Genesis / NumPy |")
    print("|---|---|---|---|---|---|")
    for _, text in sorted(lines, reverse=True)[: options.worst]:
        print(text)
    mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in lines))
    above = sum(ratio > 2 for ratio, _ in lines)
    print(f"\n{len(lines)} lines, {above} above 2x NumPy's time; geometric mean {mean:.3f}.")


if __name__ == "__main__":
    main()
