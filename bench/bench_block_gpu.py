"""A transformer block on a GPU beside eager PyTorch, forward and back: the same work in turns.

    python bench/bench_block_gpu.py [ROUNDS] [--kernels] [--backward]

Batch 8, sequence 1024, width 1024, 16 heads, 4096 hidden. Attention and normalization are
written out, in the same operations on both sides. Beside it, PyTorch with what it has ready made:
layer_norm, linear, and scaled_dot_product_attention. A ratio is the median of the rounds' ratios,
PyTorch's time over that of Genesis: above 1 Genesis is faster. Memory is the peak beyond what was
there before. `--kernels` prints which of our kernels took how long; `--backward` leaves the table
of forward passes alone out. The second table has the forward and the backward pass with gradients
of all weights and of the input.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType

import numpy
import torch
from torch.nn import functional

import genesis

BATCH, SEQUENCE, WIDTH, HEADS, HIDDEN = 8, 1024, 1024, 16, 4096
EACH = WIDTH // HEADS
KINDS = ("bfloat16", "float16", "float32", "TF32")


def weights() -> dict[str, numpy.ndarray]:
    """Of one block, by name."""
    random = numpy.random.default_rng(1)

    def new(*shape: int) -> numpy.ndarray:
        return (random.standard_normal(shape) / shape[0] ** 0.5).astype(numpy.float32)

    return {
        "qkv": new(WIDTH, 3 * WIDTH),
        "qkv_bias": new(3 * WIDTH),
        "out": new(WIDTH, WIDTH),
        "out_bias": new(WIDTH),
        "up": new(WIDTH, HIDDEN),
        "up_bias": new(HIDDEN),
        "down": new(HIDDEN, WIDTH),
        "down_bias": new(WIDTH),
        "scale1": 1 + new(WIDTH),
        "shift1": new(WIDTH),
        "scale2": 1 + new(WIDTH),
        "shift2": new(WIDTH),
    }


def normalized(x, scale, shift):
    """What layer_norm computes, written out."""
    mean = x.mean(-1, keepdim=True)
    apart = x - mean
    return apart * ((apart * apart).mean(-1, keepdim=True) + 1e-5).rsqrt() * scale + shift


def attention(qkv):
    """All heads of all sequences, written out."""
    q, k, v = qkv.reshape(BATCH, SEQUENCE, 3, HEADS, EACH).permute(2, 0, 3, 1, 4)
    weight = ((q @ k.transpose(-2, -1)) * EACH**-0.5).softmax(-1)
    return (weight @ v).transpose(1, 2).reshape(BATCH, SEQUENCE, WIDTH)


def gelu(module: ModuleType, x):
    """By either side."""
    return functional.gelu(x) if module is torch else x.gelu()


def block(module: ModuleType, x, w):
    """The same text for both."""
    x = (
        x
        + attention(normalized(x, w["scale1"], w["shift1"]) @ w["qkv"] + w["qkv_bias"]) @ w["out"]
        + w["out_bias"]
    )
    inner = normalized(x, w["scale2"], w["shift2"]) @ w["up"] + w["up_bias"]
    return x + gelu(module, inner) @ w["down"] + w["down_bias"]


def ready_made(x, w):
    """PyTorch with all that it has fused by hand."""
    h = functional.layer_norm(x, (WIDTH,), w["scale1"], w["shift1"])
    qkv = functional.linear(h, w["qkv"].T, w["qkv_bias"]).reshape(BATCH, SEQUENCE, 3, HEADS, EACH)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    h = (
        functional.scaled_dot_product_attention(q, k, v)
        .transpose(1, 2)
        .reshape(BATCH, SEQUENCE, WIDTH)
    )
    x = x + functional.linear(h, w["out"].T, w["out_bias"])
    h = functional.layer_norm(x, (WIDTH,), w["scale2"], w["shift2"])
    return x + functional.linear(
        functional.gelu(functional.linear(h, w["up"].T, w["up_bias"])), w["down"].T, w["down_bias"]
    )


def seconds(call: Callable[[], object], count: int, synchronize: Callable[[], None]) -> float:
    """Of one call."""
    synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return (time.perf_counter() - begin) / count


def peak(module: ModuleType, call: Callable[[], object]) -> float:
    """MiB beyond what is there."""
    module.cuda.synchronize()
    module.cuda.reset_peak_memory_stats()
    before = module.cuda.memory_allocated()
    result = call()
    module.cuda.synchronize()
    del result
    return (module.cuda.max_memory_allocated() - before) / 2**20


def compare(kind: str, rounds: int, with_kernels: bool) -> None:
    """Print a line."""
    name = "float32" if kind == "TF32" else kind
    for module in (torch, genesis):
        module.set_float32_matmul_precision("high" if kind == "TF32" else "highest")
    start = (
        numpy.random.default_rng(2).standard_normal((BATCH, SEQUENCE, WIDTH)).astype(numpy.float32)
    )
    w = weights()
    theirs = {key: torch.tensor(one).cuda().to(getattr(torch, name)) for key, one in w.items()}
    ours = {key: genesis.tensor(one).cuda().to(getattr(genesis, name)) for key, one in w.items()}
    x, y = (
        torch.tensor(start).cuda().to(getattr(torch, name)),
        genesis.tensor(start).cuda().to(getattr(genesis, name)),
    )
    genesis.flush()

    def by_genesis() -> object:
        made = block(genesis, y, ours)
        genesis.flush()
        return made

    ways = [
        (torch, lambda: block(torch, x, theirs)),
        (torch, lambda: ready_made(x, theirs)),
        (genesis, by_genesis),
    ]
    exact = block(
        torch,
        torch.tensor(start).cuda().double(),
        {key: one.double() for key, one in theirs.items()},
    )
    errors = []
    for module, way in (ways[0], ways[2]):
        result = way().float().cpu()
        result = result if module is torch else torch.tensor(result.numpy())
        errors.append(float((result.double() - exact.cpu()).abs().mean()))
    del exact
    with torch.no_grad():
        peaks = [peak(module, way) for module, way in ways]
        for module, way in ways:
            seconds(way, 5, module.cuda.synchronize)
        times = [
            [seconds(way, 20, module.cuda.synchronize) for module, way in ways]
            for _ in range(rounds)
        ]
    same, made, mine = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    ratio = statistics.median(one[0] / one[2] for one in times)
    other = statistics.median(one[1] / one[2] for one in times)
    print(
        f"| {kind} | {same:.3f} | {made:.3f} | {mine:.3f} | {ratio:.2f} | {other:.2f} | "
        f"{peaks[0]:.0f} | {peaks[1]:.0f} | {peaks[2]:.0f} | {errors[0]:.1e} | {errors[1]:.1e} |",
        flush=True,
    )
    if with_kernels:
        with genesis.cuda.profiler() as profile:
            by_genesis()
        print(profile.table(), flush=True)


def tensors_of(module: ModuleType, arrays: dict[str, numpy.ndarray], name: str) -> dict:
    """Leaves on the GPU."""
    dtype = getattr(module, name)
    made = {key: module.tensor(one).cuda().to(dtype) for key, one in arrays.items()}
    return {key: one.detach().requires_grad_() for key, one in made.items()}


def back_and_forth(module: ModuleType, way: Callable, leaves: dict, gradient) -> None:
    """Forward and backward; the gradients are dropped."""
    way(leaves["x"], leaves).backward(gradient)
    if module is genesis:
        genesis.flush()


def compare_backward(kind: str, rounds: int, with_kernels: bool) -> None:
    """Print a line of the second table."""
    name = "float32" if kind == "TF32" else kind
    for module in (torch, genesis):
        module.set_float32_matmul_precision("high" if kind == "TF32" else "highest")
    random = numpy.random.default_rng(2)
    shape = (BATCH, SEQUENCE, WIDTH)
    arrays = weights() | {"x": random.standard_normal(shape).astype(numpy.float32)}
    given = random.standard_normal(shape).astype(numpy.float32)
    ways = [
        (torch, lambda x, w: block(torch, x, w)),
        (torch, ready_made),
        (genesis, lambda x, w: block(genesis, x, w)),
    ]
    sides = []
    for module, way in ways:
        leaves = tensors_of(module, arrays, name)
        gradient = module.tensor(given).cuda().to(getattr(module, name))

        def call(module=module, way=way, leaves=leaves, gradient=gradient) -> None:
            for one in leaves.values():
                one.grad = None
            back_and_forth(module, way, leaves, gradient)

        sides.append((module, call, leaves))
    exact = tensors_of(torch, arrays, "float64")
    back_and_forth(torch, ways[0][1], exact, torch.tensor(given).cuda().double())
    peaks = [peak(module, call) for module, call, _ in sides]
    errors = []
    for module, _, leaves in (sides[0], sides[2]):
        total = 0.0
        for key, one in leaves.items():
            found = one.grad.float().cpu()
            found = found if module is torch else torch.tensor(found.numpy())
            right = exact[key].grad.cpu()
            total += float((found.double() - right).norm() / right.norm())
        errors.append(total / len(leaves))
    del exact
    for module, call, _ in sides:
        seconds(call, 3, module.cuda.synchronize)
    times = [
        [seconds(call, 10, module.cuda.synchronize) for module, call, _ in sides]
        for _ in range(rounds)
    ]
    same, made, mine = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    ratio = statistics.median(one[0] / one[2] for one in times)
    other = statistics.median(one[1] / one[2] for one in times)
    print(
        f"| {kind} | {same:.3f} | {made:.3f} | {mine:.3f} | {ratio:.2f} | {other:.2f} | "
        f"{peaks[0]:.0f} | {peaks[1]:.0f} | {peaks[2]:.0f} | {errors[0]:.1e} | {errors[1]:.1e} |",
        flush=True,
    )
    if with_kernels:
        with genesis.cuda.profiler() as profile:
            sides[2][1]()
        print(profile.table(), flush=True)


def main() -> None:
    """Print the tables."""
    counts = [int(one) for one in sys.argv[1:] if one.isdigit()]
    rounds = counts[0] if counts else 7
    print(f"{genesis.cuda.get_device_name()}, medians of {rounds} interleaved rounds.\n")
    tables = [("forward and backward", compare_backward, "mean relative error")]
    if "--backward" not in sys.argv:
        tables.insert(0, ("forward", compare, "mean error"))
    for title, line, error in tables:
        print(
            f"| {title} | PyTorch, ms | ready made, ms | Genesis, ms | PyTorch / Genesis "
            "| ready made / Genesis | PyTorch, MiB | ready made, MiB | Genesis, MiB "
            f"| PyTorch's {error} | Genesis's |"
        )
        print("|---" * 11 + "|")
        for kind in KINDS:
            line(kind, rounds, "--kernels" in sys.argv)
        print()


if __name__ == "__main__":
    main()
