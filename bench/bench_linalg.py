"""genesis.linalg beside numpy.linalg: milliseconds a call, the best of several.

    python bench/bench_linalg.py [--quick]

Both use OpenBLAS; GENESIS_BLAS=off shows our own routines. NumPy computes the matrices of a batch
one after the other, Genesis on several threads.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy

import genesis

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = [
    ("10000 x 8", (10_000, 8, 8)),
    ("64", (64, 64)),
    ("500", (500, 500)),
    ("2000", (2000, 2000)),
]
SECONDS = 0.6  # of each measurement


def best(call: Callable[..., Any], *arguments: Any) -> float:
    """Milliseconds of the fastest call."""
    call(*arguments)
    least, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call(*arguments)
        least = min(least, time.perf_counter() - begin)
    return least * 1e3


def main() -> None:
    """A line for each function and size."""
    sizes = SIZES[:-1] if "--quick" in sys.argv else SIZES
    ours, theirs = genesis.linalg, numpy.linalg
    calls: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "cholesky": (lambda x, b: ours.cholesky(x), lambda x, b: theirs.cholesky(x)),
        "inv": (lambda x, b: ours.inv(x), lambda x, b: theirs.inv(x)),
        "solve": (lambda x, b: ours.solve(x, b), lambda x, b: theirs.solve(x, b)),
        "det": (lambda x, b: ours.det(x), lambda x, b: theirs.det(x)),
        "qr": (lambda x, b: ours.qr(x), lambda x, b: theirs.qr(x)),
        "eigh": (lambda x, b: ours.eigh(x), lambda x, b: theirs.eigh(x)),
        "svd": (
            lambda x, b: ours.svd(x, full_matrices=False),
            lambda x, b: theirs.svd(x, full_matrices=False),
        ),
    }
    random = numpy.random.default_rng(0)
    print(f"{'float32':10} {'size':10} {'Genesis':>10} {'NumPy':>10}")
    for size, shape in sizes:
        array = random.normal(size=shape).astype("float32")
        array = array @ numpy.swapaxes(array, -1, -2) + numpy.eye(shape[-1], dtype="float32")
        side = random.normal(size=(*shape[:-1], 4)).astype("float32")
        x, b = genesis.tensor(array), genesis.tensor(side)
        for name, (own, other) in calls.items():
            one, two = best(own, x, b), best(other, array, side)
            print(f"{name:10} {size:10} {one:10.3f} {two:10.3f}", flush=True)


if __name__ == "__main__":
    main()
