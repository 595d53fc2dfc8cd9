"""Functions that are neither elementwise in float32 nor products, beside PyTorch's, on the CPU.

    python bench/bench_functions.py [NAME ...]

Both sides take turns, and what is compared is the time of the processor: other programs count less
then. A ratio above 1 says that Genesis is faster. Names choose cases: those that begin so.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy
import torch

import genesis

ROUNDS = 5
SECONDS = 0.05  # of a round


class Case(NamedTuple):
    """A call of both packages: `make` gives the arguments as arrays, `call` has the package first.

    With `leaves` so many of the arguments, from the first on, have gradients, which are measured.
    """

    name: str
    make: Callable[[numpy.random.Generator], list[Any]]
    call: Callable[..., Any]
    leaves: int = 0


def bags(count: int, each: int, width: int, mode: str) -> Case:
    """embedding_bag() with offsets: bags of about as many indices."""

    def make(draw: Any) -> list[Any]:
        sizes = draw.integers(each // 2, each + each // 2 + 1, count)
        offsets = numpy.concatenate([[0], numpy.cumsum(sizes)[:-1]])
        weight = draw.standard_normal((10_000, width), dtype=numpy.float32)
        return [weight, draw.integers(0, 10_000, sizes.sum()), offsets]

    def call(m: Any, weight: Any, indices: Any, offsets: Any) -> Any:
        return m.nn.functional.embedding_bag(indices, weight, offsets, mode=mode)

    return Case(f"embedding_bag {mode} {count} x {each} x {width}", make, call, 1)


def rows_of_bags(count: int, each: int, width: int, mode: str) -> Case:
    """embedding_bag() of a matrix of indices."""

    def make(draw: Any) -> list[Any]:
        weight = draw.standard_normal((10_000, width), dtype=numpy.float32)
        return [weight, draw.integers(0, 10_000, (count, each))]

    def call(m: Any, weight: Any, indices: Any) -> Any:
        return m.nn.functional.embedding_bag(indices, weight, mode=mode)

    return Case(f"embedding_bag {mode} {count} x {each} x {width}, rows", make, call, 1)


def elementwise(name: str, count: int, call: Callable[..., Any], arrays: int = 1) -> Case:
    """Of float64."""
    return Case(
        f"{name} float64 {count}",
        lambda draw: [draw.standard_normal(count) * 3 for _ in range(arrays)],
        call,
    )


def scattered(mode: str, rows: int, columns: int) -> Case:
    """scatter_reduce() along the first dimension."""

    def make(draw: Any) -> list[Any]:
        x = draw.standard_normal((rows, columns), dtype=numpy.float32)
        return [
            numpy.zeros((rows // 4, columns), "float32"),
            x,
            draw.integers(0, rows // 4, x.shape),
        ]

    def call(m: Any, to: Any, x: Any, index: Any) -> Any:
        return to.scatter_reduce(0, index, x, mode)

    return Case(f"scatter_reduce {mode} {rows} x {columns}", make, call, 2)


def sampled(mode: str, side: int) -> Case:
    """grid_sample() of pictures of 16 channels."""

    def make(draw: Any) -> list[Any]:
        x = draw.standard_normal((4, 16, side, side), dtype=numpy.float32)
        return [x, draw.uniform(-1.1, 1.1, (4, side, side, 2)).astype("float32")]

    def call(m: Any, x: Any, grid: Any) -> Any:
        return m.nn.functional.grid_sample(x, grid, mode, align_corners=False)

    return Case(f"grid_sample {mode} {side}", make, call, 2)


def recurrent(name: str, steps: int, batch: int, hidden: int) -> Case:
    """A layer with as many inputs as hidden units, in one call."""
    modules: dict[Any, Any] = {}

    def call(m: Any, x: Any) -> Any:
        if m not in modules:
            modules[m] = getattr(m.nn, name)(hidden, hidden)
        return modules[m](x)[0]

    return Case(
        f"{name} {steps} x {batch} x {hidden}",
        lambda draw: [draw.standard_normal((steps, batch, hidden), dtype=numpy.float32)],
        call,
        1,
    )


def cases() -> list[Case]:
    """All."""
    million = 1_000_000
    return [
        *[bags(1000, 20, 64, mode) for mode in ("sum", "mean", "max")],
        *[bags(256, 1024, 64, mode) for mode in ("sum", "mean", "max")],
        *[rows_of_bags(1000, 20, 64, mode) for mode in ("sum", "mean", "max")],
        *[rows_of_bags(256, 1024, 64, mode) for mode in ("sum", "mean", "max")],
        *[scattered(mode, 4096, 256) for mode in ("sum", "amax", "amin", "prod", "mean")],
        sampled("bilinear", 64),
        sampled("nearest", 64),
        elementwise("remainder", million, lambda m, x, y: m.remainder(x, y), 2),
        elementwise("fmod", million, lambda m, x, y: m.fmod(x, y), 2),
        elementwise("erf", million, lambda m, x: m.erf(x)),
        elementwise("gelu", million, lambda m, x: m.nn.functional.gelu(x)),
        recurrent("LSTM", 64, 16, 256),
        recurrent("GRU", 64, 16, 256),
    ]


def calls_of(m: Any, case: Case, arrays: list[Any]) -> list[Callable[[], Any]]:
    """The forward pass, and both passes."""
    flush = genesis.flush if m is genesis else lambda: None
    given = [m.from_numpy(one.copy()) for one in arrays]
    for one in given[: case.leaves]:
        one.requires_grad_()

    def forward() -> Any:
        with m.no_grad():
            made = case.call(m, *given)
        flush()
        return made

    def both() -> Any:
        made = case.call(m, *given)
        flush()
        found = m.autograd.grad([made], given[: case.leaves], [m.ones_like(made)])
        flush()
        return found

    return [forward, both] if case.leaves else [forward]


def seconds(call: Callable[[], Any], count: int) -> float:
    """Of one call."""
    begin = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - begin) / count


def measure(case: Case) -> None:
    """Print a line."""
    arrays = case.make(numpy.random.default_rng(0))
    words = []
    for pair in zip(calls_of(torch, case, arrays), calls_of(genesis, case, arrays), strict=True):
        slowest = max(seconds(one, 1) for one in pair)
        count = max(1, int(SECONDS / max(slowest, 1e-6)))
        times = [[seconds(one, count) for one in pair] for _ in range(ROUNDS)]
        words += [f"{statistics.median(one) * 1e6:.0f}" for one in zip(*times, strict=True)]
        words.append(f"{statistics.median(theirs / ours for theirs, ours in times):.2f}")
    print(f"| {case.name} | " + " | ".join(words) + " |", flush=True)


def main() -> None:
    """The table."""
    torch.set_num_threads(1)
    genesis.cpu.set_num_threads(1)
    head = "PyTorch, us | Genesis, us | ratio"
    print(f"| | {head} | both passes: {head} |")
    print("|---" * 7 + "|")
    for case in cases():
        if not sys.argv[1:] or any(case.name.startswith(one) for one in sys.argv[1:]):
            measure(case)


if __name__ == "__main__":
    main()
