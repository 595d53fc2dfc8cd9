"""Forward and backward passes beside eager PyTorch, on a GPU or on the CPU.

    python bench/bench_train.py [cuda | cpu]

Both sides take turns. A step of the MLP is forward, backward and a step of gradient descent; the
chain is forward and backward. Before they are measured, the losses and weights of both sides are
compared. A ratio above 1 says that Genesis is faster.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy
import torch

import genesis

SIZES = (784, 256, 256, 10)
BATCH = 64
CHAIN_ELEMENTS = 16 << 20
ROUNDS = 7


def tensors(library: ModuleType, arrays: list[Any], device: str) -> list[Any]:
    """Leaves with the content of arrays."""
    made = [library.tensor(array).to(device) for array in arrays]
    return [one.requires_grad_() for one in made]


def mlp_step(library: ModuleType, x: Any, target: Any, weights: list[Any]) -> Any:
    """One step of gradient descent with a batch; its loss."""
    hidden = x
    for weight in weights[:-1]:
        hidden = (hidden @ weight).relu()
    loss = -(hidden @ weights[-1]).log_softmax(1).gather(1, target).mean()
    loss.backward()
    with library.no_grad():
        for weight in weights:
            weight -= 0.1 * weight.grad
            weight.grad = None
    return loss


def chain_step(x: Any) -> None:
    """Ten elementwise operations, and back."""
    y = x
    for _ in range(2):
        y = ((y * 1.5 + 0.5).sin().exp() - 1.0).tanh()
    y.sum().backward()
    x.grad = None


def wait(device: str) -> None:
    """Until both sides have done their work."""
    genesis.flush()
    if device == "cuda":
        genesis.cuda.synchronize()
        torch.cuda.synchronize()


def microseconds(call: Callable[[], Any], repeats: int, device: str) -> float:
    """The time of a call, of several in a row."""
    wait(device)
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    wait(device)
    return (time.perf_counter() - start) / repeats * 1e6


def row(name: str, theirs: Callable[[], Any], ours: Callable[[], Any], repeats: int, device: str):
    """Prints a row of the table: medians of rounds in turns."""
    for call in (theirs, ours):
        microseconds(call, 3, device)
    rounds = [
        (microseconds(theirs, repeats, device), microseconds(ours, repeats, device))
        for _ in range(ROUNDS)
    ]
    peer, own = (statistics.median(side) for side in zip(*rounds, strict=True))
    ratio = statistics.median(a / b for a, b in rounds)
    print(f"| {name} | {peer:.1f} | {own:.1f} | {ratio:.2f} |")


def main() -> None:
    """Compares results, then times."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    numbers = numpy.random.default_rng(0)
    shapes = zip(SIZES[:-1], SIZES[1:], strict=True)
    arrays = [numbers.normal(0, 0.05, shape).astype(numpy.float32) for shape in shapes]
    batch = numbers.normal(size=(BATCH, SIZES[0])).astype(numpy.float32)
    target = numbers.integers(0, SIZES[-1], (BATCH, 1))
    sides = []
    for library in (torch, genesis):
        x, wanted = (library.tensor(one).to(device) for one in (batch, target))
        sides.append((library, x, wanted, tensors(library, arrays, device)))
    for _ in range(20):
        losses = [mlp_step(*side).item() for side in sides]
    apart = max(
        float(abs(a.detach().cpu().numpy() - b.detach().cpu().numpy()).max())
        for a, b in zip(sides[0][3], sides[1][3], strict=True)
    )
    assert abs(losses[0] - losses[1]) < 1e-5 and apart < 1e-5, (losses, apart)
    print(
        f"{device}, medians of {ROUNDS} rounds in turns. After 20 steps of the MLP the losses are"
    )
    print(f"{losses[0]:.6f} and {losses[1]:.6f}, and the weights differ by at most {apart:.1e}.\n")
    print("| float32 | PyTorch, us | Genesis, us | PyTorch / Genesis |\n|---|---|---|---|")
    repeats = 50 if device == "cuda" else 10
    row(
        f"MLP {'-'.join(map(str, SIZES))}, batch {BATCH}: a step",
        lambda: mlp_step(*sides[0]),
        lambda: mlp_step(*sides[1]),
        repeats,
        device,
    )
    start = numbers.normal(size=CHAIN_ELEMENTS).astype(numpy.float32)
    theirs, ours = (tensors(library, [start], device)[0] for library in (torch, genesis))
    row(
        "a chain of 10 operations on 16M, forward and backward",
        lambda: chain_step(theirs),
        lambda: chain_step(ours),
        repeats // 10,
        device,
    )


if __name__ == "__main__":
    main()
