"""Convolutions and pooling on the CPU beside PyTorch, interleaved: the best of several rounds.

    bench_conv.py [rounds]

It needs both libraries in one interpreter. Both use two threads. A row is a layer: the time of the
forward pass, of the gradient by the input, and of the gradient by the weights, in milliseconds.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import torch

import genesis

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 2

# name, images, channels, size, results, kernel, and the keywords of conv2d
LAYERS: list[tuple[str, int, int, int, int, int, dict[str, int]]] = [
    ("ResNet 7x7/2", 8, 3, 224, 64, 7, {"stride": 2, "padding": 3}),
    ("ResNet 3x3 64", 8, 64, 56, 64, 3, {"padding": 1}),
    ("ResNet 3x3/2 128", 8, 128, 56, 128, 3, {"stride": 2, "padding": 1}),
    ("ResNet 3x3 128", 8, 128, 28, 128, 3, {"padding": 1}),
    ("ResNet 3x3 256", 8, 256, 14, 256, 3, {"padding": 1}),
    ("ResNet 3x3 512", 8, 512, 7, 512, 3, {"padding": 1}),
    ("ResNet 1x1 64-256", 8, 64, 56, 256, 1, {}),
    ("ResNet 1x1 512-128", 8, 512, 28, 128, 1, {}),
    ("ResNet 1x1/2", 8, 256, 56, 512, 1, {"stride": 2}),
    ("MNIST 5x5 1-32", 64, 1, 28, 32, 5, {"padding": 2}),
    ("MNIST 5x5 32-64", 64, 32, 14, 64, 5, {"padding": 2}),
    ("LeNet 5x5 6-16", 64, 6, 14, 16, 5, {}),
    ("CIFAR 3x3 3-32", 64, 3, 32, 32, 3, {"padding": 1}),
    ("depthwise 3x3 96", 8, 96, 56, 96, 3, {"padding": 1, "groups": 96}),
    ("depthwise 3x3/2", 8, 144, 56, 144, 3, {"stride": 2, "padding": 1, "groups": 144}),
    ("groups 32 3x3", 8, 128, 28, 128, 3, {"padding": 1, "groups": 32}),
]

# name, function, shape, arguments
POOLS: list[tuple[str, str, tuple[int, ...], tuple[Any, ...]]] = [
    ("max 2x2", "max_pool2d", (64, 32, 28, 28), (2,)),
    ("max 3x3/2", "max_pool2d", (8, 64, 112, 112), (3, 2, 1)),
    ("avg 2x2", "avg_pool2d", (8, 64, 56, 56), (2,)),
    ("avg 3x3/1", "avg_pool2d", (8, 64, 56, 56), (3, 1, 1)),
    ("adaptive avg 1", "adaptive_avg_pool2d", (8, 512, 7, 7), (1,)),
    ("adaptive avg 7", "adaptive_avg_pool2d", (8, 256, 28, 28), (7,)),
    ("adaptive max 7", "adaptive_max_pool2d", (8, 64, 28, 28), (7,)),
    ("max1d 3", "max_pool1d", (16, 64, 1024), (3,)),
]


def seconds(call: Callable[[], object]) -> float:
    """The time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def best(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> str:
    """The best of both, by turns: "ours theirs ratio"."""
    for call in (ours, theirs):
        call()
        call()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    a, b = (min(side) * 1e3 for side in zip(*pairs, strict=True))
    return f"{a:9.2f} {b:9.2f} {a / b:6.2f}"


def gradient(
    result: torch.Tensor | genesis.Tensor, given: Any, inputs: list[Any], library: Any
) -> object:
    """The gradients of one result, by some inputs."""
    made = library.autograd.grad(result, inputs, given, retain_graph=True)
    if library is genesis:
        genesis.flush()
    return made


def layer_print(layer: tuple[Any, ...], rounds: int) -> None:
    """One row of the table of layers."""
    name, images, channels, size, results, kernel, words = layer
    x = torch.randn(images, channels, size, size)
    w = torch.randn(results, channels // words.get("groups", 1), kernel, kernel)
    b = torch.randn(results)
    theirs = [one.requires_grad_() for one in (x, w, b)]
    ours = [genesis.tensor(one.detach().numpy()).requires_grad_() for one in (x, w, b)]
    they = torch.nn.functional.conv2d(*theirs, **words)
    we = genesis.nn.functional.conv2d(*ours, **words)
    g = torch.randn(they.shape)
    h = genesis.tensor(g.numpy())

    def run(library: Any, operands: list[Any]) -> None:
        with library.no_grad():
            library.nn.functional.conv2d(*operands, **words)
        if library is genesis:
            genesis.flush()

    columns = [best(lambda: run(genesis, ours), lambda: run(torch, theirs), rounds)]
    columns.extend(
        best(
            lambda i=i: gradient(we, h, [ours[i]], genesis),
            lambda i=i: gradient(they, g, [theirs[i]], torch),
            rounds,
        )
        for i in range(2)
    )
    print(f"{name:20}", " |".join(columns), flush=True)


def pool_print(pool: tuple[str, str, tuple[int, ...], tuple[Any, ...]], rounds: int) -> None:
    """One row of the table of pooling."""
    name, function, shape, arguments = pool
    x = torch.randn(shape).requires_grad_()
    y = genesis.tensor(x.detach().numpy()).requires_grad_()
    they = getattr(torch.nn.functional, function)(x, *arguments)
    we = getattr(genesis.nn.functional, function)(y, *arguments)
    g = torch.randn(they.shape)
    h = genesis.tensor(g.numpy())

    def run(library: Any, operand: Any) -> None:
        with library.no_grad():
            getattr(library.nn.functional, function)(operand, *arguments)
        if library is genesis:
            genesis.flush()

    forward = best(lambda: run(genesis, y), lambda: run(torch, x), rounds)
    back = best(
        lambda: gradient(we, h, [y], genesis), lambda: gradient(they, g, [x], torch), rounds
    )
    print(f"{name:20}", forward, "|", back, flush=True)


def main() -> None:
    """Prints both tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    torch.set_num_threads(THREADS)
    print(f"{'':20} {'forward':>26} | {'by input':>25} | {'by weights':>25}")
    print(f"{'ms':20}", " |".join([f"{'ours':>9} {'PyTorch':>9} {'ratio':>6}"] * 3))
    for layer in LAYERS if "pool" not in sys.argv else []:
        layer_print(layer, rounds)
    print(f"{'ms':20}", " |".join([f"{'ours':>9} {'PyTorch':>9} {'ratio':>6}"] * 2))
    for pool in POOLS:
        if hasattr(genesis.nn.functional, pool[1]):
            pool_print(pool, rounds)


if __name__ == "__main__":
    main()
