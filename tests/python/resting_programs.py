"""Random programs with gradients: what they compute, as a digest for each.

    python resting_programs.py DEVICE FIRST COUNT [unfused]

A program makes leaves and constants, and then does something at random again and again: an
operation of one of many kinds, a write in place, an export, a deletion, a flush, a backward pass.
The digests must not depend on what is stored and what is computed again, so they are compared
between processes with different GENESIS_RECOMPUTE_LEAST.
"""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any

import numpy

import genesis

ROWS, COLUMNS = 24, 32  # more elements than are computed at once
STEPS = 40
UNARY = ["relu", "sigmoid", "tanh", "sin", "abs", "exp", "square", "gelu", "silu", "softplus"]
BINARY = ["add", "sub", "mul", "maximum", "where", "div", "lerp"]


class Program:
    """One program; `random` decides everything."""

    def __init__(self, seed: int, device: str) -> None:
        self.random = random.Random(seed)
        self.numbers = numpy.random.default_rng(seed)
        self.device = device
        self.leaves = [self.fresh(ROWS, COLUMNS), self.fresh(COLUMNS), self.fresh(ROWS, 1)]
        for leaf in self.leaves:
            leaf.requires_grad_()
        self.weight = self.fresh(COLUMNS, COLUMNS).requires_grad_()
        self.plain = [self.fresh(ROWS, COLUMNS) for _ in range(2)]
        self.live = [self.leaves[0] * 1.0]
        self.roots: list[Any] = []
        self.exports: list[Any] = []
        self.seen: list[str] = []

    def fresh(self, *sizes: int) -> Any:
        values = self.numbers.uniform(0.1, 0.9, sizes).astype(numpy.float32)
        return genesis.tensor(values).to(self.device)

    def one(self) -> Any:
        return self.random.choice(self.live)

    def keep(self, made: Any) -> None:
        """A result joins those that live, at the place of another as often as not."""
        if len(self.live) > 3 and self.random.random() < 0.7:
            self.live[self.random.randrange(len(self.live))] = made
        else:
            self.live.append(made)

    # ---- what a step does ----

    def unary(self) -> None:
        self.keep(getattr(self.one() * 0.5, self.random.choice(UNARY))())

    def chain(self) -> None:
        made = self.one()
        for _ in range(self.random.randrange(2, 24)):
            made = self.random.choice(
                [lambda x: x * 0.9, lambda x: x + 0.1, lambda x: x.sin(), lambda x: x.tanh() + x]
            )(made)
        self.keep(made)

    def binary(self) -> None:
        other = self.random.choice(self.live + self.leaves + self.plain)
        name, one = self.random.choice(BINARY), self.one()
        if name == "where":
            self.keep(genesis.where(other > one, one, other * 2.0))
        elif name == "lerp":
            self.keep(genesis.lerp(one, other, 0.3))
        elif name == "div":
            self.keep(one / (other.abs() + 0.5))
        else:
            self.keep(getattr(genesis, name)(one, other))

    def dropout(self) -> None:
        mask = self.fresh(ROWS, COLUMNS) > 0.3
        self.keep(self.one() * mask * 1.5)

    def norm(self) -> None:
        x = self.one()
        apart = x - x.mean(-1, keepdim=True)
        self.keep(apart * ((apart * apart).mean(-1, keepdim=True) + 0.1).rsqrt())

    def softmax(self) -> None:
        self.keep(self.one().softmax(-1))

    def product(self) -> None:
        self.keep(self.one() @ self.weight * 0.2)

    def view(self) -> None:
        x = self.one()
        self.keep(x.reshape(COLUMNS, ROWS).transpose(0, 1).reshape(ROWS, COLUMNS) + 0.0)

    def half(self) -> None:
        self.keep(self.one().to(genesis.float16).tanh().to(genesis.float32))

    def parts(self) -> None:
        x = self.one()
        self.keep(genesis.cat([x[: ROWS // 2].sin(), x[ROWS // 2 :]], 0))

    def highest(self) -> None:
        x = self.one()
        self.keep(x - x.amax(-1, keepdim=True))

    def in_place(self) -> None:
        x = self.one()
        self.random.choice([lambda: x.mul_(1.1), lambda: x.add_(self.plain[0]), lambda: x.sin_()])()

    def write_plain(self) -> None:
        x = self.random.choice(self.plain)
        self.random.choice([lambda: x.mul_(0.9), lambda: x.fill_(0.3), lambda: x[1:3].add_(0.1)])()

    def write_detached(self) -> None:
        self.one().detach().mul_(1.01)

    def write_leaf(self) -> None:
        with genesis.no_grad():
            leaf = self.random.choice([*self.leaves, self.weight])
            leaf -= 0.01 * (leaf.grad if leaf.grad is not None else leaf)

    def export(self) -> None:
        if self.device == "cpu":
            array = self.random.choice(self.plain).numpy()
            array += 0.01
            self.exports.append(array)

    def write_export(self) -> None:
        if self.exports:
            self.random.choice(self.exports)[...] *= 0.99

    def delete(self) -> None:
        if len(self.live) > 1:
            del self.live[self.random.randrange(len(self.live))]

    def flush(self) -> None:
        self.random.choice([genesis.flush, genesis.memory_stats])()

    def read(self) -> None:
        self.seen.append(float(self.one().detach().sum().item()).hex())

    def root(self) -> None:
        self.roots.append((self.one() * self.plain[1]).sum())

    def backward(self) -> None:
        root = self.roots.pop() if self.roots else self.one().mean()
        for _ in range(self.random.choice([1, 1, 2])):
            root.backward(retain_graph=True)
        if self.random.random() < 0.15:
            root.backward()

    def twice(self) -> None:
        root = self.one().sin().sum()
        (first,) = genesis.autograd.grad(root, self.leaves[1], create_graph=True, allow_unused=True)
        if first is not None and first.requires_grad:
            (first * first).sum().backward()

    # ---- all of it ----

    def step(self) -> None:
        chosen = self.random.choices(
            [self.unary, self.chain, self.binary, self.dropout, self.norm, self.softmax,
             self.product, self.view, self.half, self.parts, self.highest, self.in_place,
             self.write_plain, self.write_detached, self.write_leaf, self.export,
             self.write_export, self.delete, self.flush, self.read, self.root, self.backward,
             self.twice],
            [6, 3, 6, 3, 3, 2, 4, 1, 1, 1, 1, 1, 2, 0.5, 0.5, 0.3, 1, 4, 2, 1, 4, 3, 1],
        )[0]  # fmt: skip
        try:
            chosen()
        except RuntimeError as error:
            self.seen.append(f"{chosen.__name__}: {error}")

    def run(self) -> str:
        for _ in range(STEPS):
            self.step()
        for root in self.roots:
            try:
                root.backward()
            except RuntimeError as error:
                self.seen.append(str(error))
        digest = hashlib.sha256("\n".join(self.seen).encode())
        for tensor in [*self.live, *self.plain]:
            digest.update(tensor.detach().cpu().numpy().tobytes())
        for leaf in [*self.leaves, self.weight]:
            digest.update(b"" if leaf.grad is None else leaf.grad.cpu().numpy().tobytes())
        return digest.hexdigest()


def main() -> None:
    device, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if "unfused" in sys.argv:
        genesis.set_fusion(False)
    for seed in range(first, first + count):
        print(seed, Program(seed, device).run())


if __name__ == "__main__":
    main()
