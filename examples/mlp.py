"""Trains a network that tells two spirals apart, and shows what its graph keeps.

    python examples/mlp.py [cpu | cuda]

Runs on the first GPU if none is named, or on the CPU where there is none.
"""

from __future__ import annotations

import math
import sys

import genesis

POINTS, HIDDEN, STEPS, RATE = 512, 64, 1500, 0.05


def spirals() -> tuple[genesis.Tensor, genesis.Tensor]:
    """Points of two spirals, one after the other, and which spiral each is of."""
    turn = genesis.linspace(0.5, 3 * math.pi, POINTS // 2)
    one = genesis.stack([turn * turn.cos(), turn * turn.sin()], 1) / 10
    points = genesis.cat([one, -one])
    labels = genesis.cat([genesis.zeros(POINTS // 2), genesis.ones(POINTS // 2)])
    return points, labels


def leaf(*sizes: int) -> genesis.Tensor:
    """Weights at random."""
    return (genesis.randn(*sizes) * (2 / sizes[0]) ** 0.5).requires_grad_()


def network(x: genesis.Tensor, weights: list[genesis.Tensor]) -> genesis.Tensor:
    """A number for each point: above 0 for the second spiral."""
    for i in range(0, len(weights), 2):
        x = x @ weights[i] + weights[i + 1]
        if i + 2 < len(weights):
            x = genesis.tanh(x)
    return x.squeeze(1)


def loss_of(scores: genesis.Tensor, labels: genesis.Tensor) -> genesis.Tensor:
    """Binary cross entropy."""
    return (genesis.softplus(scores) - labels * scores).mean()


def train(device: str) -> float:
    """Train with momentum; the share of points that are told right."""
    genesis.manual_seed(1)
    genesis.set_default_device(device)
    points, labels = spirals()
    weights = []
    for inner, outer in ((2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1)):
        weights += [leaf(inner, outer), genesis.zeros(outer, requires_grad=True)]
    speeds = [genesis.zeros_like(one) for one in weights]
    for step in range(STEPS):
        loss = loss_of(network(points, weights), labels)
        if step == 0:
            kept = sum(one.nbytes for one in genesis.autograd.saved(loss))
            print(f"the graph of the first step keeps {kept} bytes")
        loss.backward()
        with genesis.no_grad():
            for weight, speed in zip(weights, speeds, strict=True):
                speed.mul_(0.9).add_(weight.grad)
                weight -= RATE * speed
                weight.grad = None
        if step % 300 == 0:
            print(f"step {step:4}: loss {loss.item():.4f}")
    with genesis.no_grad():
        right = (network(points, weights) > 0) == (labels > 0.5)
    return right.float().mean().item()


def main() -> None:
    """Train, and say how well."""
    device = "cuda" if genesis.cuda.is_available() else "cpu"
    share = train(sys.argv[1] if len(sys.argv) > 1 else device)
    print(f"{share:.1%} of the points are told right")


if __name__ == "__main__":
    main()
