"""Rows and random numbers on a GPU beside eager PyTorch: bench_ops_gpu.py says how it is measured.

python bench/bench_rows_gpu.py [ROUNDS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from bench_ops_gpu import Scenario, table

import genesis


def scenarios() -> list[Scenario]:
    """Name, how often a round repeats it, PyTorch's way, ours."""
    found: list[Scenario] = []

    def add(name: str, count: int, make: Callable, tensor: torch.Tensor) -> None:
        ours = genesis.tensor(tensor.cpu().numpy()).cuda()
        found.append((name, count, lambda: make(tensor), lambda: make(ours)))

    one, wide = torch.rand(1 << 20, device="cuda"), torch.rand(4096, 10000, device="cuda")
    rows, short = torch.rand(4096, 1000, device="cuda"), torch.rand(100000, 33, device="cuda")
    whole = torch.randint(0, 1000, (1 << 20,), device="cuda")
    add("sort, 1M", 100, lambda x: x.sort(), one)
    add("sort, 1M of int64", 100, lambda x: x.sort(), whole)
    add("sort, 4096 x 1000", 50, lambda x: x.sort(), rows)
    add("sort, 4096 x 10K", 5, lambda x: x.sort(), wide)
    add("sort, 100K x 33", 50, lambda x: x.sort(), short)
    add("topk(10), 1M", 100, lambda x: x.topk(10), one)
    add("topk(10), 4096 x 10K", 10, lambda x: x.topk(10), wide)
    add("unique, 1M of int64", 20, lambda x: x.unique(), whole)
    add("argmax, 1M", 500, lambda x: x.argmax(), one)
    add("argmax(dim=1), 4096 x 10K", 100, lambda x: x.argmax(dim=1), wide)
    add("argmax(dim=0), 4096 x 10K", 100, lambda x: x.argmax(dim=0), wide)
    add("cumsum, 1M", 500, lambda x: x.cumsum(dim=0), one)
    add("cumsum(dim=1), 4096 x 10K", 100, lambda x: x.cumsum(dim=1), wide)
    add("cumsum(dim=0), 4096 x 10K", 100, lambda x: x.cumsum(dim=0), wide)
    add("cumprod, 1M", 500, lambda x: x.cumprod(dim=0), one)
    for name, theirs, ours in (
        ("rand, 16M", torch.rand, genesis.rand),
        ("randn, 16M", torch.randn, genesis.randn),
    ):
        found.append(
            (
                name,
                100,
                lambda make=theirs: make(1 << 24, device="cuda"),
                lambda make=ours: make(1 << 24, device="cuda"),
            )
        )
    found.append(
        (
            "randint, 16M of int32",
            100,
            lambda: torch.randint(0, 1000, (1 << 24,), dtype=torch.int32, device="cuda"),
            lambda: genesis.randint(0, 1000, (1 << 24,), dtype=genesis.int32, device="cuda"),
        )
    )
    return found


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{genesis.cuda.get_device_name()}, medians of {rounds} interleaved rounds.\n")
    table(scenarios(), rounds)
