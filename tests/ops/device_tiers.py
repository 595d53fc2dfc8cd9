"""What a GPU, real or simulated, computes: a line for each result, with a digest of its bits.

    python tests/ops/device_tiers.py DEVICE SECTION [all | FIRST COUNT]

A test runs it under each GENESIS_TIERS, and compares: interpreted and compiled programs must
give the same bits. The sections are `operations` (every row of the table), `layouts`,
`reductions`, `softmax`, `lists`, and `programs`, which are those of row_programs.py. Without
`all` only some types take part.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
from device_tensors import EVERY, FLOATS, INTEGERS, numbers
from row_programs import Program, bits

import genesis

HEADER = Path(__file__).parents[2] / "include" / "genesis" / "ops.h"
TYPES = (
    EVERY
    if "all" in sys.argv
    else [genesis.bool, genesis.int32, genesis.int64, genesis.float16, genesis.float32]
)
NODES = 24  # results that are computed together: a kernel costs the simulator a quarter of a second


def digest(tensor) -> str:
    """Of the bits, every NaN being the same."""
    array = bits(tensor)
    if array.dtype.kind == "f":
        array = numpy.where(numpy.isnan(array), array.dtype.type("nan"), array)
    return hashlib.md5(numpy.ascontiguousarray(array).tobytes(), usedforsecurity=False).hexdigest()


def show(results: list) -> None:
    genesis.flush()
    for name, tensor in results:
        print(name, tuple(tensor.shape), str(tensor.dtype), digest(tensor))
    results.clear()


def table() -> Iterator[tuple[str, int]]:
    """Names of the elementwise operations in Python, and how many operands they have."""
    rows = re.findall(r'X\(\w+, (\w+), (\d), \w+, *"(\w*)"', HEADER.read_text(encoding="utf-8"))
    assert len(rows) > 80
    for name, arity, python in rows:
        found = next((one for one in (python, name) if one and hasattr(genesis, one)), None)
        if found not in (None, "where", "clamp", "lerp"):
            yield found, int(arity)


def operations(device: str) -> None:
    """All operations on all types, many in one program."""
    for dtype in TYPES:
        x, y, z = (numbers(dtype, 203, seed).to(device) for seed in (1, 2, 3))
        results: list = []
        for name, arity in table():
            function = getattr(genesis, name)
            try:
                value = function(*(x, y, z)[:arity])
            except (TypeError, ValueError, RuntimeError):
                continue
            results.append((f"{dtype} {name}", value))
            if len(results) == NODES:
                show(results)
        results.append((f"{dtype} where", genesis.where(x == y, x, z)))
        if dtype is not genesis.bool:
            results.append((f"{dtype} clamp", genesis.clamp(x, y, z)))
        if dtype in FLOATS:
            results.append((f"{dtype} lerp", genesis.lerp(x, y, z)))
            results.append((f"{dtype} exp of sums", (x + y).exp() * z))
        for other in TYPES:
            results.append((f"{dtype} to {other}", x.to(other)))
        show(results)


def layouts(device: str) -> None:
    """Odd sizes, strides, broadcasting, offsets, several outputs, and writes in place."""
    results: list = []
    for dtype in (genesis.float32, genesis.bfloat16, genesis.int64, genesis.uint8):
        for count in (1, 2, 3, 5, 7, 8, 9, 15, 1023, 1025, 4097):
            x = numbers(dtype, count + 1, count).to(device)
            results.append((f"{dtype} {count}", x[:count] + x[1:] * x[1:]))
            show(results)
        x = numbers(dtype, 2 * 3 * 4 * 5 * 6, 5).to(device).reshape(2, 3, 4, 5, 6)
        row, column = x[0, 0, 0, 0], x[:, :1, :1, :1, :1]
        for name, value in (
            ("transposed", x.transpose(0, 4) + x.transpose(0, 4).transpose(1, 3).transpose(1, 3)),
            ("permuted", x.permute(3, 1, 4, 0, 2) * x.permute(3, 1, 4, 0, 2)),
            ("broadcast", x + row * column),
            ("steps", x[:, ::2, 1:, ::3, ::2] - x[:, ::2, 1:, ::3, ::2] * row[::2]),
            ("flipped", x.flip(4) + x),
            ("expanded", row.expand(7, 6) + row),
            ("point", x[1, 2, 3, 4, 5] + x[0, 0, 0, 0, 0]),
        ):
            results.append((f"{dtype} {name}", value))
            show(results)
        y = x.clone()
        y[:, 1:, ::2] += x[:, :2, ::2]
        y.transpose(0, 1)[1] *= 3
        y[0, 0, 0, 0, 0] = 7
        a = y + 1
        b = a * y
        c = b - a
        y += c
        results += [(f"{dtype} in place", y), (f"{dtype} a", a), (f"{dtype} b", b)]
        show(results)
    many = [numbers(genesis.float32, 37, seed).to(device) for seed in range(14)]
    sums = [many[i] * many[i - 1] + many[i - 2] for i in range(14)]
    total = sums[0]
    for one in sums[1:]:
        total = total * 0.5 + one
    results += [("many inputs", total), *((f"sum {i}", one) for i, one in enumerate(sums))]
    show(results)


def reductions(device: str) -> None:
    """Each reduction of rows, columns and everything, of a value that is computed."""
    results: list = []
    names = ("sum", "mean", "prod", "amax", "amin", "any", "all")
    for dtype in (dtype for dtype in TYPES if dtype is not genesis.int32):
        for shape in ((3, 70), (37, 4), (70_001,), (2, 3, 41)):
            x = numbers(dtype, int(numpy.prod(shape)), 3).to(device).reshape(shape)
            value = x * x if dtype is not genesis.bool else x | x
            for name in names:
                if (name == "mean" and dtype not in FLOATS) or (
                    name in ("amax", "amin") and dtype is genesis.bool
                ):
                    continue
                for dim in (None, 0, -1) if len(shape) > 1 else (None,):
                    out = getattr(value, name)() if dim is None else getattr(value, name)(dim)
                    results.append((f"{dtype} {shape} {name} {dim}", out))
            if dtype in FLOATS:
                for to in (genesis.float64, genesis.float32):
                    results.append((f"{dtype} {shape} to {to}", value.sum(-1, dtype=to)))
            show(results)
    for dtype in (dtype for dtype in TYPES if dtype in INTEGERS):
        x = numbers(dtype, 300, 4).to(device).reshape(6, 50)
        for name in ("sum", "amax", "amin", "prod"):
            results.append((f"{dtype} {name}", getattr(x - 1, name)(1)))
        show(results)


def softmax(device: str) -> None:
    results: list = []
    for dtype in (dtype for dtype in TYPES if dtype in FLOATS):
        for columns in (1, 3, 31, 33, 257, 1000, 1025, 4097, 50257):
            x = numbers(dtype, 3 * columns, columns).to(device).reshape(3, columns)
            x[0].clamp_(-50, 50)
            x[1] = float("-inf")
            results.append((f"{dtype} {columns}", x.softmax(-1)))
            results.append((f"{dtype} {columns} log", (x * 2).log_softmax(-1)))
            show(results)


def lists(device: str) -> None:
    """Optimizers, clipping, and a scaler that skips a step."""
    nn, optim = genesis.nn, genesis.optim
    for make in (
        lambda weights: optim.SGD(weights, 0.1, momentum=0.9, nesterov=True),
        lambda weights: optim.AdamW(weights, 0.01, fused=True),
        lambda weights: optim.RMSprop(weights, 0.01),
    ):
        weights = [
            nn.Parameter(
                numbers(genesis.float32, count, count).clamp(-3, 3).nan_to_num().to(device)
            )
            for count in (1, 7, 64, 5000)
        ]
        optimizer = make(weights)
        for step in range(3):
            for weight in weights:
                weight.grad = (weight.detach() * (step + 1)).sin()
            norm = nn.utils.clip_grad_norm_(weights, 0.5)
            optimizer.step()
            show(
                [("norm", norm)]
                + [(f"weight {weight.numel()}", weight.detach()) for weight in weights]
            )
    scaler = genesis.amp.GradScaler(device, init_scale=4.0)
    weight = nn.Parameter(genesis.ones(9, device=device))
    optimizer = optim.AdamW([weight], 0.1, fused=True)
    for scale in (1.0, float("inf"), 2.0):
        optimizer.zero_grad()
        scaler.scale((weight * scale).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        show([("scaled", weight.detach())])


def programs(device: str) -> None:
    first, count = int(sys.argv[3]), int(sys.argv[4])
    for seed in range(first, first + count):
        for i, result in enumerate(Program(seed, True).run(device)):
            array = result[1]
            if array.dtype.kind == "f":
                array = numpy.where(numpy.isnan(array), array.dtype.type("nan"), array)
            data = numpy.ascontiguousarray(array).tobytes()
            print(seed, i, result[0], hashlib.md5(data, usedforsecurity=False).hexdigest())


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
