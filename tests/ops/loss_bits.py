"""Trains a small network, and prints the bits of its losses: the same, whatever the memory does.

    python tests/ops/loss_bits.py DEVICE STEPS ROWS [fused | unfused] [THREADS]

Two layers with dropout from a generator, softmax and cross entropy written out, momentum. A test
compares what it prints under policies of memory, schedules of the simulator, and with fusion off.
With many rows the CPU's threads share the work.
"""

from __future__ import annotations

import struct
import sys

import genesis


def bits(number: float) -> str:
    """A float32 as eight digits."""
    return struct.pack(">f", number).hex()


def train(device: str, steps: int, rows: int) -> list[str]:
    """The bits of each step's loss."""
    source = genesis.Generator(device=device).manual_seed(7)
    points = genesis.randn(rows, 10, generator=source, device=device)
    classes = (points[:, :4] * 2 + points[:, 4:8]).argmax(1)
    chosen = (genesis.arange(4, device=device) == classes.unsqueeze(1)).float()
    weights = [
        genesis.randn(10, 24, generator=source, device=device) * 0.3,
        genesis.zeros(24, device=device),
        genesis.randn(24, 4, generator=source, device=device) * 0.3,
        genesis.zeros(4, device=device),
    ]
    for weight in weights:
        weight.requires_grad_()
    speeds = [genesis.zeros_like(weight) for weight in weights]
    losses = []
    for _ in range(steps):
        hidden = genesis.gelu(points @ weights[0] + weights[1])
        is_kept = genesis.rand(rows, 24, generator=source, device=device) >= 0.1
        hidden = hidden * is_kept.float() / 0.9
        logits = hidden @ weights[2] + weights[3]
        moved = logits - logits.amax(1, keepdim=True).detach()
        chances = moved - moved.exp().sum(1, keepdim=True).log()
        loss = -(chances * chosen).sum(1).mean()
        loss.backward()
        with genesis.no_grad():
            for weight, speed in zip(weights, speeds, strict=True):
                speed.mul_(0.9).add_(weight.grad)
                weight -= 0.05 * speed
                weight.grad = None
        losses.append(loss.detach())
    return [bits(one.item()) for one in losses]


if __name__ == "__main__":
    place, count, rows, *options = sys.argv[1:]
    if "unfused" in options:
        genesis.set_fusion(False)
    for option in options:
        if option.isdigit():
            genesis.cpu.set_num_threads(int(option))
    print("\n".join(train(place, int(count), int(rows))))
