"""Norms, softmax and cross entropy, written out, beside PyTorch's own functions: forward and back.

    python bench/bench_row_programs.py [cuda | cpu] [ROUNDS]

Genesis computes the formulas below, made of elementary operations and reductions; PyTorch calls
layer_norm, rms_norm, softmax, log_softmax and cross_entropy. On a GPU each side's work on several
sets of buffers, larger than the cache together, is captured in a graph, and replays of both sides
take turns. The forward pass is one without gradients: what a graph of operations keeps would be
stored at the end of a capture. The backward pass is the difference between both passes and the
forward pass. Bytes are those of each input and each output, once; `copy` is the share of a copy's
bandwidth in the same run. Names with brackets, such as softmax(), are functions of both. On the CPU
both sides, and NumPy with the same formulas, take turns.
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
from torch.nn import functional

import genesis

EPSILON = 1e-5
CACHE_BYTES = 256 << 20  # more than the second-level cache has


def layer_norm(x, scale, shift):
    """The formula."""
    apart = x - x.mean(-1, keepdim=True)
    return apart * ((apart * apart).mean(-1, keepdim=True) + EPSILON).rsqrt() * scale + shift


def rms_norm(x, scale):
    """The formula."""
    return x * ((x * x).mean(-1, keepdim=True) + EPSILON).rsqrt() * scale


def largest(x):
    """Of each row. Whatever is subtracted, a softmax is the same: it needs no gradient."""
    with genesis.no_grad():
        return x.amax(-1, keepdim=True)


def softmax(x):
    """The formula."""
    powers = (x - largest(x)).exp()
    return powers / powers.sum(-1, keepdim=True)


def log_softmax(x):
    """The formula."""
    apart = x - largest(x)
    return apart - apart.exp().sum(-1, keepdim=True).log()


def cross_entropy(x, target):
    """The formula."""
    top = largest(x)
    total = (x - top).exp().sum(-1, keepdim=True).log() + top
    return (total - x.gather(1, target.unsqueeze(1))).mean()


class Case:
    """A function by both sides: what it needs, and the bytes of a pass."""

    def __init__(self, name: str, ours: Callable, theirs: Callable, shape: tuple, kind: str):
        self.name, self.ours, self.theirs = name, ours, theirs
        self.shape, self.kind = shape, kind
        size = {"bfloat16": 2, "float16": 2, "float32": 4}[kind]
        count = shape[0] * shape[1]
        self.is_loss = name in ("cross entropy", "cross_entropy()")
        self.weights = {"layer norm": 2, "RMS norm": 1}.get(name, 0)
        self.forward_bytes = count * size * (1 if self.is_loss else 2)
        self.backward_bytes = count * size * (2 if self.is_loss else 3)
        self.set_bytes = count * size * (2 if self.is_loss else 4)

    def sets(self, module: ModuleType, device: str, number: int) -> list[list[Any]]:
        """Inputs, with the gradient of the result last."""
        found = []
        for n in range(number):
            draw = numpy.random.default_rng(n)

            def new(*shape: int, draw=draw) -> Any:
                values = draw.standard_normal(shape, dtype=numpy.float32)
                made = module.tensor(values).to(device).to(getattr(module, self.kind))
                if module is genesis:
                    genesis.flush()
                return made.detach().requires_grad_()

            inputs = [new(*self.shape)] + [new(self.shape[1]) for _ in range(self.weights)]
            if self.is_loss:
                target = draw.integers(0, self.shape[1], self.shape[0])
                inputs.append(module.tensor(target).to(device))
                inputs.append(None)
            else:
                inputs.append(new(*self.shape).detach())
            found.append(inputs)
        return found


def cases(rows: int, widths: tuple[int, ...], losses: tuple[tuple[int, int], ...], kind: str):
    """All of a device."""
    made = []
    for width in widths:
        for name, ours, theirs in (
            (
                "layer norm",
                layer_norm,
                lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, EPSILON),
            ),
            (
                "RMS norm",
                rms_norm,
                lambda x, w: functional.rms_norm(x, x.shape[-1:], w, EPSILON),
            ),
            ("softmax", softmax, lambda x: x.softmax(-1)),
            ("log_softmax", log_softmax, lambda x: x.log_softmax(-1)),
        ):
            made.append(Case(name, ours, theirs, (rows, width), kind))
    for shape in losses:
        for name, ours in (
            ("cross entropy", cross_entropy),
            ("cross_entropy()", genesis.nn.functional.cross_entropy),
        ):
            made.append(Case(name, ours, functional.cross_entropy, shape, kind))
    return made


def forward(module: ModuleType, way: Callable, inputs: list[Any]) -> Any:
    """One pass."""
    with module.no_grad():
        made = way(*inputs[:-1])
    if module is genesis:
        genesis.flush()
    return made


def both(module: ModuleType, way: Callable, inputs: list[Any]) -> list[Any]:
    """Forward and backward; the result and the gradients."""
    made = way(*inputs[:-1])
    leaves = [one for one in inputs[:-1] if one.requires_grad]
    if module is genesis:
        genesis.flush()
    found = module.autograd.grad([made], leaves, [inputs[-1]])
    if module is genesis:
        genesis.flush()
    return [made, *found]


def check(case: Case, device: str) -> None:
    """The results of both sides, beside PyTorch in float64."""
    theirs, ours = (case.sets(module, device, 1)[0] for module in (torch, genesis))
    exact = [
        one.detach().double().requires_grad_(one.requires_grad)
        if one is not None and one.is_floating_point()
        else one
        for one in theirs
    ]
    right = both(torch, case.theirs, exact)
    for a, b, c in zip(
        right, both(torch, case.theirs, theirs), both(genesis, case.ours, ours), strict=True
    ):
        peer = (b.detach().double() - a).norm() / a.norm()
        own = torch.tensor(c.detach().float().cpu().numpy()).double().to(device)
        apart = (own - a).norm() / a.norm()
        # Each operation of a formula rounds to a half; the peer's kernel rounds once.
        assert apart < 3 * peer + 3e-2 * (case.kind != "float32") + 1e-5, (case.name, apart, peer)


# ---- on a GPU ----


def captured(module: ModuleType, call: Callable, way: Callable, sets: list[list[Any]]) -> Any:
    """A graph of the work on all sets."""
    for inputs in sets[:2]:
        for _ in range(2):
            call(module, way, inputs)
    module.cuda.synchronize()
    graph = module.cuda.CUDAGraph()
    with module.cuda.graph(graph):
        kept = [call(module, way, inputs) for inputs in sets]
    return graph, kept


def graph_seconds(graph: Any, module: ModuleType, count: int) -> float:
    """Of the work on one set."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    del module
    return start.elapsed_time(end) / 1e3 / count


def copy_bandwidth() -> float:
    """Bytes a second, read and written, of a large copy."""
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    found = []
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(4):
            b.copy_(a)
        end.record()
        torch.cuda.synchronize()
        found.append(8 * a.numel() / (start.elapsed_time(end) / 1e3))
    return statistics.median(found)


def measure_gpu(case: Case, rounds: int, bandwidth: float) -> None:
    """Print a line."""
    check(case, "cuda")
    number = max(2, min(12, 2 * CACHE_BYTES // case.set_bytes + 1))
    graphs = []
    for module, way in ((torch, case.theirs), (genesis, case.ours)):
        sets = case.sets(module, "cuda", number)
        graphs.append(
            [(module, *captured(module, call, way, sets), sets) for call in (forward, both)]
        )
    times: list[list[float]] = []
    for turn in range(rounds + 1):
        line = []
        for side in graphs:
            line.extend(graph_seconds(graph, module, number) for module, graph, *_ in side)
        if turn > 0:
            times.append(line)
    theirs, their_both, ours, our_both = (
        statistics.median(one) * 1e6 for one in zip(*times, strict=True)
    )
    backs = [statistics.median((one[i + 1] - one[i]) * 1e6 for one in times) for i in (0, 2)]
    share = [
        case.forward_bytes / (ours * 1e-6) / bandwidth,
        case.backward_bytes / (backs[1] * 1e-6) / bandwidth,
    ]
    print(
        f"| {case.name}, {case.shape[0]} x {case.shape[1]} | {theirs:.0f} | {ours:.0f} "
        f"| {theirs / ours:.2f} | {share[0]:.0%} | {backs[0]:.0f} | {backs[1]:.0f} "
        f"| {backs[0] / backs[1]:.2f} | {share[1]:.0%} | {their_both / our_both:.2f} |",
        flush=True,
    )


def on_gpu(rounds: int) -> None:
    """The table."""
    bandwidth = copy_bandwidth()
    print(f"{genesis.cuda.get_device_name()}, bfloat16, medians of {rounds} interleaved rounds;")
    print(f"a copy reads and writes {bandwidth / 1e12:.2f} TB/s.\n")
    print(
        "| | PyTorch, us | Genesis, us | ratio | copy | backward: PyTorch, us | Genesis, us "
        "| ratio | copy | both passes |"
    )
    print("|---" * 10 + "|")
    own = [
        Case(f"{name}()", getattr(genesis, name), getattr(torch, name), (16384, width), "bfloat16")
        for name in ("softmax", "log_softmax")
        for width in (768, 4096)
    ]
    for case in own:
        case.ours, case.theirs = (
            lambda x, call=call: call(x, -1) for call in (case.ours, case.theirs)
        )
    listed = cases(16384, (768, 4096), ((16384, 4096), (16384, 50304)), "bfloat16")
    for case in listed + own:
        try:
            measure_gpu(case, rounds, bandwidth)
        except Exception as error:  # a line that fails is shown, and the others go on
            print(f"| {case.name}, {case.shape} | {type(error).__name__}: {error} |", flush=True)
        torch.cuda.empty_cache()
        genesis.cuda.empty_cache()


# ---- on the CPU ----


def by_numpy(case: Case, inputs: list[Any]) -> tuple[Callable, Callable]:
    """The formulas, forward, and forward and backward, on arrays."""
    arrays = [one.detach().numpy() if one is not None else None for one in inputs]
    x, g = arrays[0], arrays[-1]
    width = x.shape[1]

    def norm_forward():
        apart = x - x.mean(-1, keepdims=True) if case.name == "layer norm" else x
        scale = 1 / numpy.sqrt((apart * apart).mean(-1, keepdims=True) + EPSILON)
        found = apart * scale
        shift = arrays[2] if case.name == "layer norm" else 0
        return found * arrays[1] + shift, found, scale

    def norm_both():
        made, normal, scale = norm_forward()
        inner = g * arrays[1]
        sums = [(g * normal).sum(0), g.sum(0)][: case.weights]
        back = inner - normal * (inner * normal).mean(-1, keepdims=True)
        if case.name == "layer norm":
            back -= inner.mean(-1, keepdims=True)
        return made, back * scale, sums

    def soft_forward():
        powers = numpy.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def soft_both():
        made = soft_forward()
        return made, made * (g - (made * g).sum(-1, keepdims=True))

    def log_forward():
        apart = x - x.max(-1, keepdims=True)
        return apart - numpy.log(numpy.exp(apart).sum(-1, keepdims=True))

    def log_both():
        made = log_forward()
        return made, g - numpy.exp(made) * g.sum(-1, keepdims=True)

    def loss_forward():
        made = log_forward()
        return -made[numpy.arange(len(x)), arrays[1]].mean(), made

    def loss_both():
        loss, made = loss_forward()
        back = numpy.exp(made)
        back[numpy.arange(len(x)), arrays[1]] -= 1
        return loss, back / len(x)

    del width
    return {
        "layer norm": (norm_forward, norm_both),
        "RMS norm": (norm_forward, norm_both),
        "softmax": (soft_forward, soft_both),
        "log_softmax": (log_forward, log_both),
        "cross entropy": (loss_forward, loss_both),
        "cross_entropy()": (loss_forward, loss_both),
    }[case.name]


def cpu_seconds(call: Callable[[], Any], count: int) -> float:
    """Of one call."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def measure_cpu(case: Case, rounds: int) -> None:
    """Print a line."""
    check(case, "cpu")
    theirs, ours = (case.sets(module, "cpu", 1)[0] for module in (torch, genesis))
    calls = []
    for plain, call in zip(by_numpy(case, theirs), (forward, both), strict=True):
        calls.append(
            (
                plain,
                lambda call=call: call(torch, case.theirs, theirs),
                lambda call=call: call(genesis, case.ours, ours),
            )
        )
    words = []
    for group in calls:
        count = max(1, int(0.1 / cpu_seconds(group[2], 2)))
        times = [[cpu_seconds(one, count) for one in group] for _ in range(rounds)]
        each = [statistics.median(column) * 1e6 for column in zip(*times, strict=True)]
        words += [f"{one:.0f}" for one in each]
        words += [f"{statistics.median(one[i] / one[2] for one in times):.2f}" for i in (0, 1)]
    print(f"| {case.name}, {case.shape[0]} x {case.shape[1]} | " + " | ".join(words) + " |")


def on_cpu(rounds: int) -> None:
    """The table."""
    print(f"float32, {torch.get_num_threads()} threads, medians of {rounds} interleaved rounds.\n")
    head = "NumPy, us | PyTorch, us | Genesis, us | NumPy / Genesis | PyTorch / Genesis"
    print(f"| | {head} | both passes: {head} |")
    print("|---" * 11 + "|")
    made = cases(4096, (768, 4096), ((1024, 50304),), "float32")
    made += cases(16384, (64,), ((16384, 1000),), "float32")
    for case in made:
        measure_cpu(case, rounds)


if __name__ == "__main__":
    counts = [int(one) for one in sys.argv[1:] if one.isdigit()]
    if "cpu" in sys.argv:
        on_cpu(counts[0] if counts else 5)
    else:
        on_gpu(counts[0] if counts else 7)
