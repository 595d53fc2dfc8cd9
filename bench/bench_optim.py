"""Steps of optimizers beside PyTorch's: many large parameters, and few small ones.

    python bench/bench_optim.py [cuda | cpu] [ROUNDS] [--layers N]

The large ones are those of GPT-2 (12 layers: 124 million float32 in about 150 tensors; --layers
makes it smaller), the small ones six tensors of a perceptron. PyTorch takes foreach=True, and
fused=True where it has that. Both sides take turns; with a GPU a row of steps is timed by events.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import genesis

WIDTH, WORDS, LENGTH = 768, 50304, 1024
SMALL: list[tuple[int, ...]] = [(32, 16), (32,), (32, 32), (32,), (4, 32), (4,)]
KINDS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.01, "momentum": 0.9},
    "AdamW": {"lr": 1e-3},
    "RMSprop": {"lr": 1e-3},
    "Adagrad": {"lr": 1e-3},
}


def large(layers: int) -> list[tuple[int, ...]]:
    """Shapes of the parameters of GPT-2."""
    made: list[tuple[int, ...]] = [(WORDS, WIDTH), (LENGTH, WIDTH)]
    for _ in range(layers):
        made += [(WIDTH,), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,)]
        made += [(WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH), (WIDTH,)]
    return [*made, (WIDTH,), (WIDTH,)]


def prepare(
    package: Any, kind: str, sizes: list[tuple[int, ...]], device: str, more: dict[str, Any]
) -> Any:
    """An optimizer whose parameters have gradients."""
    package.manual_seed(0)
    params = [package.randn(*size, device=device).requires_grad_() for size in sizes]
    for param in params:
        param.grad = package.randn(*param.shape, device=device) * 1e-3
    return getattr(package.optim, kind)(params, **KINDS[kind], **more)


def gpu_seconds(call: Callable[[], Any], count: int) -> float:
    """Of one call on the GPU, in a row."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def cpu_seconds(call: Callable[[], Any], count: int) -> float:
    """Of one call, in a row."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def row(kind: str, sizes: list[tuple[int, ...]], device: str, rounds: int) -> str:
    """A line of the table."""
    is_small = sizes is SMALL
    seconds = gpu_seconds if device == "cuda" else cpu_seconds
    count = 200 if is_small else 10 if device == "cuda" else 1
    sides = {
        "ours": prepare(genesis, kind, sizes, device, {}),
        "foreach": prepare(torch, kind, sizes, device, {"foreach": True}),
    }
    if kind != "RMSprop":
        sides["fused"] = prepare(torch, kind, sizes, device, {"fused": True})
    times: dict[str, list[float]] = {name: [] for name in sides}
    for optimizer in sides.values():
        for _ in range(2):
            optimizer.step()
    for _ in range(rounds):
        for name, optimizer in sides.items():
            times[name].append(seconds(optimizer.step, count))
    middle = {name: statistics.median(values) for name, values in times.items()}
    best = min(value for name, value in middle.items() if name != "ours")
    cells = [f"{middle[name] * 1e6:.1f}" if name in middle else "" for name in ("foreach", "fused")]
    return (
        f"| {kind}, {len(sizes)} tensors | {cells[0]} | {cells[1]} | {middle['ours'] * 1e6:.1f} "
        f"| {best / middle['ours']:.2f} |"
    )


def main() -> None:
    """The table."""
    device = "cpu" if "cpu" in sys.argv else "cuda"
    layers = 12
    if "--layers" in sys.argv:
        layers = int(sys.argv[sys.argv.index("--layers") + 1])
    given = [one for i, one in enumerate(sys.argv) if sys.argv[i - 1] != "--layers"]
    rounds = next((int(one) for one in given if one.isdigit()), 7)
    sizes = large(layers)
    count = sum(torch.Size(size).numel() for size in sizes)
    print(
        f"{count / 1e6:.1f} million float32 in {len(sizes)} tensors, and 6 small ones; {device}\n"
    )
    print("| | foreach, us | fused, us | Genesis, us | best of PyTorch / Genesis |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        for shapes in (SMALL, sizes):
            print(row(kind, shapes, device, rounds), flush=True)


if __name__ == "__main__":
    main()
