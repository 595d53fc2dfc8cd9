"""Indexing on a GPU beside eager PyTorch: bench_ops_gpu.py says how it is measured.

python bench/bench_index_gpu.py [ROUNDS [SIZE...]]

Genesis adds up in a fixed order. PyTorch's scatter_add and weighted bincount do not, its index_put_
does: the table has each beside ours, and scatter_add once more with PyTorch's deterministic
algorithms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import torch
from bench_ops_gpu import Scenario, flushed, table

import genesis

SIZES = {"1K": 1 << 10, "1M": 1 << 20, "64M": 64 << 20}
COLUMNS = 256  # of rows that are selected
BINS = 1000  # that are counted, and that are searched


def deterministic(call: Callable[[], object]) -> Callable[[], object]:
    """Run PyTorch's call with algorithms that give the same bits twice."""

    def run() -> object:
        torch.use_deterministic_algorithms(True)
        made = call()
        torch.use_deterministic_algorithms(False)
        return made

    return run


def scenarios(label: str, size: int) -> list[Scenario]:
    """Name, how often a round repeats it, PyTorch's way, ours."""
    found: list[Scenario] = []
    count = 1000 if size <= 1 << 12 else 200 if size <= 1 << 22 else 5
    draw = torch.Generator("cuda").manual_seed(0)

    def integers(most: int, length: int) -> torch.Tensor:
        return torch.randint(0, most, (length,), device="cuda", generator=draw)

    x = torch.rand(size, device="cuda", generator=draw)
    mask = torch.rand(size, device="cuda", generator=draw) < 0.5
    theirs = {
        "x": x,
        "target": x.clone(),
        "rows": x.view(-1, COLUMNS),
        "idx": integers(size, size),
        "row": integers(size // COLUMNS, size // COLUMNS),
        "few": integers(BINS, size),
        "mask": mask,
        "rare": torch.rand(size, device="cuda", generator=draw) < 0.01,
        "picked": x[: int(mask.sum())].clone(),
        "edges": torch.rand(BINS, device="cuda", generator=draw).sort().values,
    }
    ours = {name: genesis.tensor(one.cpu().numpy()).cuda() for name, one in theirs.items()}

    def add(name: str, make: Callable[[ModuleType, dict], object]) -> None:
        found.append(
            (
                f"{name}, {label}",
                count,
                lambda: make(torch, theirs),
                flushed(lambda: make(genesis, ours)),
            )
        )

    def put(key: str, value: object) -> Callable[[ModuleType, dict], object]:
        return lambda _, t: t["target"].__setitem__(
            t[key], t[value] if isinstance(value, str) else value
        )

    add("x[idx]", lambda _, t: t["x"][t["idx"]])
    add(f"x[idx] of rows of {COLUMNS}", lambda _, t: t["rows"][t["row"]])
    add(f"index_select of rows of {COLUMNS}", lambda _, t: t["rows"].index_select(0, t["row"]))
    add("x[mask], half true", lambda _, t: t["x"][t["mask"]])
    add("x[mask], 1% true", lambda _, t: t["x"][t["rare"]])
    add("x[mask] = number", put("mask", 2.0))
    add("x[mask] = y", put("mask", "picked"))
    add("x[idx] = y", put("idx", "x"))
    add("nonzero, half true", lambda _, t: t["mask"].nonzero())
    add("scatter_add_", lambda _, t: t["target"].scatter_add_(0, t["idx"], t["x"]))
    name, times, slow, own = found[-1]
    found.append((f"{name}, deterministic", times, deterministic(slow), own))
    add(f"scatter_add_ to {BINS}", lambda _, t: t["target"].scatter_add_(0, t["few"], t["x"]))
    add(
        "index_put_(accumulate)",
        lambda _, t: t["target"].index_put_((t["idx"],), t["x"], accumulate=True),
    )
    add(
        f"index_add_ of rows of {COLUMNS}",
        lambda _, t: t["rows"].index_add_(0, t["row"], t["target"].view(-1, COLUMNS)),
    )
    add(f"searchsorted in {BINS}", lambda of, t: of.searchsorted(t["edges"], t["x"]))
    add(f"bincount of {BINS}", lambda _, t: t["few"].bincount())
    add(f"weighted bincount of {BINS}", lambda _, t: t["few"].bincount(t["x"]))
    found.append(
        (
            f"randperm, {label}",
            count,
            lambda: torch.randperm(size, device="cuda"),
            flushed(lambda: genesis.randperm(size, device="cuda")),
        )
    )
    return found


def main() -> None:
    """Print the tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{genesis.cuda.get_device_name()}, medians of {rounds} interleaved rounds.\n")
    for label in sys.argv[2:] or SIZES:
        table(scenarios(label, SIZES[label]), rounds)
        print()


if __name__ == "__main__":
    main()
