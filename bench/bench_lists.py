"""One program over many tensors beside PyTorch: a step of AdamW, and clipping.

    python bench/bench_lists.py [cuda | cpu] [ROUNDS]

The parameters are those of GPT-2 124M: 124 million float32 in about 150 tensors. PyTorch takes
torch.optim.AdamW(fused=True) and clip_grad_norm_(foreach=True); Genesis the list programs below,
with the step count and the learning rate as numbers on the device. Both sides take turns. AdamW
moves 28 bytes a parameter; a norm reads 4, and scaling reads and writes 4 each.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import genesis
from genesis import _C

LAYERS, WIDTH, WORDS, LENGTH = 12, 768, 50304, 1024
BETAS, EPSILON, DECAY, RATE = (0.9, 0.95), 1e-8, 0.1, 6e-4


def shapes(layers: int) -> list[tuple[int, ...]]:
    """Of the parameters of GPT-2."""
    made: list[tuple[int, ...]] = [(WORDS, WIDTH), (LENGTH, WIDTH)]
    for _ in range(layers):
        made += [(WIDTH,), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,)]
        made += [(WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH), (WIDTH,)]
    return [*made, (WIDTH,), (WIDTH,)]


# Values: places weight 0, gradient 1, first moment 2, second 3; numbers rate 4, step 5, beta1 6,
# beta2 7, epsilon 8, decay 9, one 10, 1 - beta1 11, 1 - beta2 12; then the steps.
ADAMW = (
    ("multiply", 4, 9),  # 13
    ("subtract", 10, 13),  # 14: what stays of a weight
    ("power", 6, 5),  # 15
    ("subtract", 10, 15),  # 16
    ("divide", 4, 16),  # 17: the rate of this step
    ("power", 7, 5),  # 18
    ("subtract", 10, 18),  # 19
    ("rsqrt", 19),  # 20
    ("subtract", 1, 2),  # 21
    ("multiply", 21, 11),  # 22
    ("add", 2, 22),  # 23: the first moment
    ("multiply", 3, 7),  # 24
    ("square", 1),  # 25
    ("multiply", 25, 12),  # 26
    ("add", 24, 26),  # 27: the second moment
    ("sqrt", 27),  # 28
    ("multiply", 28, 20),  # 29
    ("add", 29, 8),  # 30
    ("divide", 23, 30),  # 31
    ("multiply", 31, 17),  # 32
    ("multiply", 0, 14),  # 33
    ("subtract", 33, 32),  # 34: the weight
)
ADAMW_STORES = ((34, 0), (23, 2), (27, 3))


class Ours:
    """Genesis' parameters and what is done with them."""

    def __init__(self, sizes: list[tuple[int, ...]], device: str) -> None:
        genesis.manual_seed(0)
        self.weights = tuple(genesis.randn(*s, device=device) for s in sizes)
        self.gradients = tuple(genesis.randn(*s, device=device) * 1e-3 for s in sizes)
        self.firsts = tuple(genesis.zeros(*s, device=device) for s in sizes)
        self.seconds = tuple(genesis.zeros(*s, device=device) for s in sizes)
        self.rate = genesis.tensor(RATE, device=device)
        self.step_count = genesis.tensor(0.0, device=device)
        self.one = genesis.tensor(1.0, device=device)
        genesis.flush()

    def step(self) -> None:
        """One of AdamW."""
        self.step_count.add_(1)
        places = (self.weights, self.gradients, self.firsts, self.seconds)
        numbers = (self.rate, self.step_count, *BETAS, EPSILON, DECAY, 1.0)
        numbers += (1 - BETAS[0], 1 - BETAS[1])
        _C._list_elementwise(places, ADAMW, ADAMW_STORES, numbers, None, 0)

    def clip(self, most: float) -> None:
        """All gradients, so that their norm is at most a number; the host does not wait."""
        norm = _C._list_norm(self.gradients, 2.0, True)
        factor = most / (norm + 1e-6)
        _C._list_elementwise(
            (self.gradients,), (("multiply", 0, 1),), ((2, 0),), (factor,), factor >= 1, 0
        )


class Theirs:
    """PyTorch's."""

    def __init__(self, sizes: list[tuple[int, ...]], device: str) -> None:
        torch.manual_seed(0)
        self.weights = [torch.randn(*s, device=device, requires_grad=True) for s in sizes]
        for weight in self.weights:
            weight.grad = torch.randn_like(weight) * 1e-3
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY, fused=True
        )

    def step(self) -> None:
        """One of AdamW."""
        self.optimizer.step()

    def clip(self, most: float) -> None:
        """All gradients."""
        torch.nn.utils.clip_grad_norm_(self.weights, most, foreach=True)


def check(device: str) -> None:
    """Both sides compute the same."""
    sizes = [(3,), (257, 5), (70, 64), (1,)]
    ours, theirs = Ours(sizes, device), Theirs(sizes, device)
    for mine, weight in zip(ours.weights, theirs.weights, strict=True):
        mine.copy_(genesis.tensor(weight.detach().cpu().numpy()).to(device))
    for mine, weight in zip(ours.gradients, theirs.weights, strict=True):
        mine.copy_(genesis.tensor(weight.grad.cpu().numpy()).to(device))
    for most in (1e9, 1e-3):
        ours.clip(most)
        theirs.clip(most)
        ours.step()
        theirs.step()
        for mine, weight in zip(ours.weights, theirs.weights, strict=True):
            near = torch.tensor(mine.cpu().numpy())
            apart = (near - weight.detach().cpu()).abs().max().item()
            assert apart < 2e-6, apart


def gpu_seconds(call: Callable[[], Any]) -> float:
    """Of one call on the GPU, in a row of ten."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(10):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e4


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main() -> None:
    """The table."""
    is_cpu = "cpu" in sys.argv
    device, seconds = ("cpu", cpu_seconds) if is_cpu else ("cuda", gpu_seconds)
    rounds = next((int(one) for one in sys.argv[1:] if one.isdigit()), 7)
    check(device)
    sizes = shapes(2 if is_cpu else LAYERS)
    count = sum(torch.Size(s).numel() for s in sizes)
    ours, theirs = Ours(sizes, device), Theirs(sizes, device)
    a = torch.empty(count, device=device)
    b = torch.empty(count, device=device)
    work = {
        "copy": (8, lambda: b.copy_(a), None),
        "AdamW": (28, ours.step, theirs.step),
        "clipping, nothing to clip": (4, lambda: ours.clip(1e9), lambda: theirs.clip(1e9)),
        "clipping": (12, lambda: ours.clip(1e-9), lambda: theirs.clip(1e-9)),
    }
    for _, mine, peer in work.values():
        for call in (mine, peer) if peer else (mine,):
            call()
            call()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, (_, mine, peer) in work.items():
            times[name].append((seconds(mine), seconds(peer) if peer else 0.0))
    copy = statistics.median(one[0] for one in times["copy"])
    print(f"{count / 1e6:.1f} million float32 in {len(sizes)} tensors on {device}, medians of")
    print(f"{rounds} interleaved rounds; a copy moves {8 * count / copy / 1e12:.3f} TB/s.\n")
    print(
        "| | PyTorch, us | Genesis, us | ratio | times a copy of its bytes |\n|---|---|---|---|---|"
    )
    for name, (nbytes, _, peer) in work.items():
        mine, other = (statistics.median(one[i] for one in times[name]) for i in (0, 1))
        ratio = statistics.median(one[1] / one[0] for one in times[name])
        if peer:
            print(
                f"| {name} | {other * 1e6:.0f} | {mine * 1e6:.0f} | {ratio:.2f} "
                f"| {mine / (copy * nbytes / 8):.2f} |"
            )


if __name__ == "__main__":
    main()
