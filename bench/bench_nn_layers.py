"""Layers of genesis.nn.functional beside PyTorch's, on the CPU: forward, and forward and backward.

    python bench/bench_nn_layers.py [NAME ...]

Both sides take turns, and what is compared is the time of the processor: other programs count less
then. A ratio above 1 says that Genesis is faster. Names choose cases.
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

ROUNDS = 7
SECONDS = 0.05  # of a round


class Case(NamedTuple):
    """A call of both packages, given a package, its nn.functional, and tensors of these shapes."""

    name: str
    shapes: list[tuple[int, ...]]
    call: Callable[..., Any]
    kind: str = "float32"


def cases() -> list[Case]:
    """All."""
    rows, row = (4096, 768), (768,)
    image, channel = (16, 64, 32, 32), (64,)
    heads = (8, 8, 128, 64)
    long = (4, 8, 512, 64)

    def batch(m: Any, f: Any, x: Any, w: Any, b: Any) -> Any:
        return f.batch_norm(x, None, None, w, b, True)

    def attend(m: Any, f: Any, *x: Any) -> Any:
        return f.scaled_dot_product_attention(*x)

    def causal(m: Any, f: Any, *x: Any) -> Any:
        return f.scaled_dot_product_attention(*x, is_causal=True)

    made = []
    for kind in ("float32", "bfloat16"):
        made += [
            Case(
                "layer_norm", [rows, row, row], lambda m, f, x, *r: f.layer_norm(x, row, *r), kind
            ),
            Case("rms_norm", [rows, row], lambda m, f, x, w: f.rms_norm(x, row, w), kind),
            Case("dropout", [(4096, 1024)], lambda m, f, x: f.dropout(x, 0.1), kind),
            Case("attention", [heads] * 3, attend, kind),
            Case("causal attention", [long] * 3, causal, kind),
        ]
    return [
        *made,
        Case("group_norm", [image, channel, channel], lambda m, f, x, *r: f.group_norm(x, 8, *r)),
        Case("batch_norm", [image, channel, channel], batch),
        Case("batch_norm", [(1024, 512), (512,), (512,)], batch),
        Case("linear", [(2048, 768), (768, 768), row], lambda m, f, *x: f.linear(*x)),
        Case("linear", [(64, 128), (128, 128), (128,)], lambda m, f, *x: f.linear(*x)),
        Case("glu", [(4096, 1024)], lambda m, f, x: f.glu(x)),
        Case("prelu", [image, channel], lambda m, f, x, w: f.prelu(x, w)),
        Case("local_response_norm", [image], lambda m, f, x: f.local_response_norm(x, 5)),
        Case("normalize", [rows], lambda m, f, x: f.normalize(x, dim=-1)),
    ]


def calls_of(m: Any, case: Case, arrays: list[Any]) -> list[Callable[[], Any]]:
    """The forward pass, and both passes."""
    flush = genesis.flush if m is genesis else lambda: None
    dtype = getattr(m, case.kind)
    leaves = [m.tensor(one).to(dtype).detach().requires_grad_() for one in arrays]

    def forward() -> Any:
        with m.no_grad():
            made = case.call(m, m.nn.functional, *leaves)
        flush()
        return made

    given = m.ones_like(forward())

    def both() -> Any:
        made = case.call(m, m.nn.functional, *leaves)
        flush()
        found = m.autograd.grad([made], leaves, [given])
        flush()
        return found

    return [forward, both]


def seconds(call: Callable[[], Any], count: int) -> float:
    """Of one call."""
    begin = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - begin) / count


def measure(case: Case) -> None:
    """Print a line."""
    draw = numpy.random.default_rng(0)
    arrays = [draw.standard_normal(one, dtype=numpy.float32) for one in case.shapes]
    words = []
    for pair in zip(calls_of(torch, case, arrays), calls_of(genesis, case, arrays), strict=True):
        slowest = max(seconds(one, 2) for one in pair)
        count = max(1, int(SECONDS / max(slowest, 1e-6)))
        times = [[seconds(one, count) for one in pair] for _ in range(ROUNDS)]
        words += [f"{statistics.median(one) * 1e6:.0f}" for one in zip(*times, strict=True)]
        words.append(f"{statistics.median(theirs / ours for theirs, ours in times):.2f}")
    shape = " x ".join(map(str, case.shapes[0]))
    print(f"| {case.name}, {shape}, {case.kind} | " + " | ".join(words) + " |", flush=True)


def main() -> None:
    """The table."""
    torch.set_num_threads(1)
    head = "PyTorch, us | Genesis, us | ratio"
    print(f"| | {head} | both passes: {head} |")
    print("|---" * 7 + "|")
    for case in cases():
        if not sys.argv[1:] or case.name in sys.argv[1:]:
            measure(case)


if __name__ == "__main__":
    main()
