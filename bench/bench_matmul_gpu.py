"""Matrix products on a GPU beside PyTorch: the same work in turns.

    python bench/bench_matmul_gpu.py [ROUNDS]

A round is a loop of calls with one synchronize at its end, on each side in turn. A ratio is the
median of the rounds' ratios, PyTorch's time over that of Genesis: above 1 Genesis is faster. Tera
operations in a second count two for each product. Of integers, which PyTorch does not multiply on a
GPU, the times are those of Genesis alone.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

import genesis

Call = Callable[[], object]
SIZES = (512, 1024, 2048, 4096, 8192)
# Title, PyTorch's type, ours, whether TF32 is allowed.
KINDS = [
    ("float32", torch.float32, genesis.float32, False),
    ("TF32", torch.float32, genesis.float32, True),
    ("float16", torch.float16, genesis.float16, False),
    ("bfloat16", torch.bfloat16, genesis.bfloat16, False),
    ("float64", torch.float64, genesis.float64, False),
]


def allow_tf32(is_allowed: bool) -> None:
    """On both sides."""
    precision = "high" if is_allowed else "highest"
    torch.set_float32_matmul_precision(precision)
    genesis.set_float32_matmul_precision(precision)


def seconds(call: Call, count: int, synchronize: Callable[[], None]) -> float:
    """Of one call."""
    synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return (time.perf_counter() - begin) / count


def compare(name: str, operations: float, theirs: Call, ours: Call, rounds: int) -> None:
    """Print a line."""
    seconds(theirs, 3, torch.cuda.synchronize)
    seconds(ours, 3, genesis.cuda.synchronize)
    one = seconds(theirs, 3, torch.cuda.synchronize)
    count = max(3, min(1000, int(0.02 / one)))
    times = [
        (
            seconds(theirs, count, torch.cuda.synchronize),
            seconds(ours, count, genesis.cuda.synchronize),
        )
        for _ in range(rounds)
    ]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(one / other for one, other in times)
    speed = operations / second / 1e12
    print(
        f"| {name} | {first * 1e6:.2f} | {second * 1e6:.2f} | {speed:.1f} | {ratio:.2f} |",
        flush=True,
    )


def pair(shape: tuple[int, ...], kind: torch.dtype, ours: genesis.dtype) -> tuple:
    """A tensor of each side, with the same numbers."""
    made = torch.rand(*shape, device="cuda") - 0.5
    return made.to(kind), genesis.tensor(made.cpu().numpy()).cuda().to(ours)


def head(title: str) -> None:
    """Begin a table."""
    print(f"\n| {title} | PyTorch, us | Genesis, us | Genesis, TFLOP/s | PyTorch / Genesis |")
    print("|---|---|---|---|---|")


def squares(rounds: int) -> None:
    """Square matrices, and their agreement."""
    for title, kind, our_kind, is_rounded in KINDS:
        allow_tf32(is_rounded)
        head(title)
        for n in SIZES:
            a, ours_a = pair((n, n), kind, our_kind)
            b, ours_b = pair((n, n), kind, our_kind)
            made = torch.tensor((ours_a @ ours_b).float().cpu().numpy(), device="cuda")
            difference = ((a @ b).float() - made).abs().max().item()
            assert difference < 0.5, (title, n, difference)
            compare(
                f"{n} x {n}", 2.0 * n**3, lambda a=a, b=b: a @ b,
                lambda a=ours_a, b=ours_b: a @ b, rounds,
            )  # fmt: skip
    allow_tf32(False)


def others(rounds: int) -> None:
    """Call to call, and what programs do beside squares."""
    shapes = [
        ("16 x 16", (16, 16), (16, 16), lambda a, b: a @ b),
        ("128 x 128", (128, 128), (128, 128), lambda a, b: a @ b),
        ("1024 x 1024, b transposed", (1024, 1024), (1024, 1024), lambda a, b: a @ b.T),
        ("1024 x 1024, a transposed", (1024, 1024), (1024, 1024), lambda a, b: a.T @ b),
        ("4096 x 4096 by a vector", (4096, 4096), (4096,), lambda a, b: a @ b),
        ("dot, 1M", (1 << 20,), (1 << 20,), lambda a, b: a @ b),
        ("384 x 128 x 64 by 64 x 128", (32, 12, 128, 64), (32, 12, 128, 64), lambda a, b: a @ b.mT),
        ("256 x 64 x 64", (256, 64, 64), (256, 64, 64), lambda a, b: a @ b),
        ("8 x 1024 x 768 by 768 x 3072", (8, 1024, 768), (768, 3072), lambda a, b: a @ b),
    ]  # fmt: skip
    for title, kind, our_kind, _ in (KINDS[0], KINDS[3]):
        head(title)
        for name, one, other, multiply in shapes:
            a, ours_a = pair(one, kind, our_kind)
            b, ours_b = pair(other, kind, our_kind)
            operations = 2.0 * multiply(a, b).numel() * a.shape[-1]
            compare(
                name, operations, lambda a=a, b=b, m=multiply: m(a, b),
                lambda a=ours_a, b=ours_b, m=multiply: m(a, b), rounds,
            )  # fmt: skip


def sums(rounds: int) -> None:
    """Products with a sum, as one call, and as two operations of ours."""
    rows, inner, columns = 8192, 1024, 4096
    for title, kind, our_kind, is_rounded in KINDS[:4]:
        allow_tf32(is_rounded)
        head(f"{title}, {rows} x {inner} by {inner} x {columns}")
        a, ours_a = pair((rows, inner), kind, our_kind)
        b, ours_b = pair((inner, columns), kind, our_kind)
        for name, shape in (("a row", (columns,)), ("a matrix", (rows, columns))):
            c, ours_c = pair(shape, kind, our_kind)
            made = torch.tensor(
                genesis.addmm(ours_c, ours_a, ours_b).float().cpu().numpy(), device="cuda"
            )
            difference = (torch.addmm(c, a, b).float() - made).abs().max().item()
            assert difference < 0.5, (title, name, difference)
            theirs = lambda a=a, b=b, c=c: torch.addmm(c, a, b)  # noqa: E731

            def apart(a=ours_a, b=ours_b, c=ours_c):
                made = a @ b + c
                genesis.flush()
                return made

            work = 2.0 * rows * inner * columns
            compare(
                f"addmm, {name}", work, theirs,
                lambda a=ours_a, b=ours_b, c=ours_c: genesis.addmm(c, a, b), rounds,
            )  # fmt: skip
            compare(f"addmm, {name}; ours as @ and +", work, theirs, apart, rounds)
    allow_tf32(False)


def integers(rounds: int) -> None:
    """By our own kernel."""
    print("\n| integers | Genesis, us | tera operations in a second |\n|---|---|---|")
    for kind in (genesis.int8, genesis.int32, genesis.int64):
        for n in (1024, 4096):
            a = genesis.randint(-100, 100, (n, n)).to(kind).cuda()
            call = lambda a=a: a @ a  # noqa: E731
            seconds(call, 2, genesis.cuda.synchronize)
            time_of = statistics.median(
                seconds(call, 5, genesis.cuda.synchronize) for _ in range(rounds)
            )
            print(
                f"| {kind.name}, {n} x {n} | {time_of * 1e6:.0f} | {2e-12 * n**3 / time_of:.1f} |",
                flush=True,
            )


def main() -> None:
    """Print the tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{genesis.cuda.get_device_name()}, medians of {rounds} interleaved rounds.")
    squares(rounds)
    others(rounds)
    sums(rounds)
    integers(rounds)


if __name__ == "__main__":
    main()
