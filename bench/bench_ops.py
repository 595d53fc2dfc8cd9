"""Operations on the CPU beside NumPy: the same work in turns, every result computed.

    python bench/bench_ops.py [ROUNDS]

A ratio is the median of the rounds' ratios, NumPy's time over that of Genesis: above 1 Genesis is
faster.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy

import genesis

MILLION = 1_000_000


Scenario = tuple[str, int, Callable[[], object], Callable[[], object]]


def scenarios() -> list[Scenario]:
    """Name, how often a round repeats it, NumPy's way, ours."""
    rng = numpy.random.default_rng(0)
    a10, a1 = (rng.random(n * MILLION, dtype=numpy.float32) for n in (10, 1))
    x10, x1, y1 = (genesis.tensor(array) for array in (a10, a1, a1))
    b1, small = a1.copy(), a1[:16].copy()
    s, t = genesis.tensor(small), genesis.tensor(small)
    square = rng.random((3000, 3000), dtype=numpy.float32)
    m = genesis.tensor(square)
    big, few = square[:1024, :1024].copy(), square[:16, :16].copy()
    whole = rng.integers(-9, 9, (256, 256), dtype=numpy.int32)
    batch = rng.random((100, 32, 32), dtype=numpy.float32)
    g, f, i, p = (genesis.tensor(array) for array in (big, few, whole, batch))

    def flushed(make: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            made = make()
            genesis.flush()
            return made

        return run

    flush = genesis.flush

    def small_add() -> object:
        made = s + t
        flush()
        return made

    def softmax(array: numpy.ndarray) -> numpy.ndarray:
        powers = numpy.exp(array - array.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    return [
        ("exp((x + 1) * 2), 10 million", 1, lambda: numpy.exp((a10 + 1) * 2),
         flushed(lambda: ((x10 + 1) * 2).exp())),
        ("x + y, 1 million", 20, lambda: a1 + b1, flushed(lambda: x1 + y1)),
        ("x + y, 16 elements", 20000, lambda: small + small, small_add),  # a call each
        ("sum, 10 million", 3, lambda: a10.sum(), lambda: x10.sum()),
        ("relu, then mean, 10 million", 1, lambda: numpy.maximum(a10, 0).mean(),
         lambda: x10.relu().mean()),
        ("relu, sum of rows, mean, 3000 x 3000", 1,
         lambda: numpy.maximum(square, 0).sum(1).mean(), lambda: m.relu().sum(dim=1).mean()),
        ("softmax of rows, 3000 x 3000", 1, lambda: softmax(square), flushed(lambda: m.softmax(1))),
        ("sum, 1 million", 20, lambda: a1.sum(), lambda: x1.sum()),
        ("sum of columns, 3000 x 3000", 3, lambda: square.sum(0), lambda: m.sum(dim=0)),
        ("sum of rows, 3000 x 3000", 3, lambda: square.sum(1), lambda: m.sum(dim=1)),
        ("a transposed copy, 3000 x 3000", 1, lambda: square.T.copy(),
         flushed(lambda: m.T.clone())),
        ("sort, 1 million", 3, lambda: numpy.sort(a1), lambda: x1.sort().values),
        ("argsort, stable, 1 million", 1, lambda: numpy.argsort(a1, kind="stable"),
         lambda: x1.argsort()),
        ("cumsum, 1 million", 10, lambda: a1.cumsum(), lambda: x1.cumsum(0)),
        ("matrix product, 1024 x 1024", 1, lambda: big @ big, lambda: g @ g),
        ("matrix product, 16 x 16", 20000, lambda: few @ few, lambda: f @ f),
        ("matrix product, 100 of 32 x 32", 100, lambda: batch @ batch, lambda: p @ p),
        ("matrix product, int32, 256 x 256", 1, lambda: whole @ whole, lambda: i @ i),
        ("matrix times vector, 3000 x 3000", 10, lambda: square @ square[0], lambda: m @ m[0]),
        ("normal random numbers, 1 million", 3,
         lambda: rng.standard_normal(MILLION, dtype=numpy.float32), lambda: genesis.randn(MILLION)),
    ]  # fmt: skip


def seconds(call: Callable[[], object], count: int) -> float:
    """Of one call."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def main(cases: Callable[[], list[Scenario]] = scenarios) -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"{genesis.cpu.get_num_threads()} threads, medians of {rounds} interleaved rounds.\n")
    print("| float32 | NumPy, us | Genesis, us | NumPy / Genesis |\n|---|---|---|---|")
    for name, count, theirs, ours in cases():
        times = [(seconds(theirs, count), seconds(ours, count)) for _ in range(rounds)]
        first, second = (statistics.median(column) * 1e6 for column in zip(*times, strict=True))
        ratio = statistics.median(one / other for one, other in times)
        print(f"| {name} | {first:.2f} | {second:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
