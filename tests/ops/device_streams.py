"""Random programs on several streams of a GPU, real or simulated, beside the same on the CPU.

    python tests/ops/device_streams.py [PROGRAMS [FIRST_SEED]]

Every step runs on a stream that is drawn: operations, reductions in parts, products, sorting and
indexing, with `out=`, in place and on views. So a storage is written on one stream, read on others
and freed while they use it, and scratch memory goes from stream to stream. Memory of others is used
on all streams, and its owner goes on with it on the stream that it came with. On the simulator the
race checker sees every access: it must find nothing.
"""

from __future__ import annotations

import random
import sys

import genesis
from genesis import cuda

PROGRAMS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
FIRST = int(sys.argv[2]) if len(sys.argv) > 2 else 0
STEPS = 60
KEPT = 12  # pairs; more are dropped
# A row and columns that are folded in parts, and a matrix. Few shapes make few kernels.
SHAPES = [(9001,), (300, 72), (48, 48)]


def mixed(x):
    """Small integers again, so that every order of additions is exact."""
    return x.remainder(64)


def places(x, count, seed):
    """Different rows of a tensor, as an index tensor where it is."""
    return genesis.tensor(random.Random(seed).sample(range(len(x)), count), device=x.device)


def even_rows(x):
    """Every second row of a tensor, as a mask where it is."""
    return genesis.arange(len(x), device=x.device) % 2 == 0


def scatter_into(x, y):
    """Rows of one tensor to different rows of the other, by places of elements."""
    rows = places(x, len(x), 5).reshape(-1, *[1] * (x.ndim - 1))
    return x.scatter_(0, rows.expand_as(x), y)


# ---- what gives a new tensor ----

OF_ONE = [
    lambda x: mixed(x * 3 + 1),
    lambda x: mixed(x.sum(dim=0) - x),
    lambda x: mixed(x.sum() + x),
    lambda x: mixed(x - x.amax(dim=-1, keepdim=True)),
    lambda x: mixed(x.argmax(dim=0).to(genesis.float32) + x),
    lambda x: mixed(x.argmin(dim=-1, keepdim=True).to(genesis.float32) + x),
    lambda x: mixed(x.cumsum(0)),
    lambda x: x.sort(dim=0).values,
    lambda x: (x * 999).softmax(-1).ceil(),  # 1 where a row is largest
    lambda x: x[places(x, len(x) // 3, 1)],
    lambda x: genesis.cat([x[x > 20], x[x <= 20]]).reshape(x.shape),
    lambda x: x.flip(0),
    lambda x: genesis.cat([x[1:], x[:1]]),
    lambda x: x.clone(),
    lambda x: mixed(x.cpu().to(x.device) + 1),
    lambda x: mixed(
        genesis.zeros(len(x), device=x.device).index_add(
            0, places(x, len(x), 2) // 2, x.reshape(len(x), -1)[:, 0]
        )
    ),
]
OF_TWO = [
    lambda x, y: mixed(x + y),
    lambda x, y: genesis.where(x > y, x, y - 1),
    lambda x, y: mixed(x.reshape(len(x), -1).T @ y.reshape(len(y), -1)),
    lambda x, y: genesis.maximum(x, y).flip(0),
]

# ---- what writes into the first ----

INTO_ONE = [
    lambda x: x.add_(1).remainder_(64),
    lambda x: x.fill_(7),
    lambda x: x.__setitem__(slice(None, None, 2), 3),
    lambda x: x.__setitem__(x > 40, 5),
    lambda x: x.__setitem__(places(x, len(x) // 2, 3), 9),
    lambda x: x.__setitem__(slice(None, -1), x[1:].clone()),
    lambda x: x.copy_(x.cpu()),
]
INTO_TWO = [
    lambda x, y: x.add_(y).remainder_(64),
    lambda x, y: x.copy_(y),
    lambda x, y: genesis.sub(y, 1, out=x),
    lambda x, y: genesis.maximum(x.flip(0), y, out=x),
    lambda x, y: x.__setitem__(slice(None, None, 3), y[::3]),
    lambda x, y: x.__setitem__(places(x, len(x) // 2, 4), y[: len(x) // 2 * 2 : 2]),
    lambda x, y: x.__setitem__(x > 30, y[x > 30]),
    lambda x, y: genesis.cumsum(y, 0, out=x).remainder_(64),
    scatter_into,
]
INTO_SQUARE = [
    lambda x, y, z: genesis.matmul(y, z, out=x).remainder_(64),
    lambda x, y, z: genesis.matmul(y.T, z, out=x).remainder_(64),
    lambda x, y, z: genesis.addmm(y, y, z, out=x).remainder_(64),
    # Values by index that are strided: a column into rows, and for each row one element, every
    # second element, or elements that are not aligned; rows by a mask take a way of their own.
    lambda x, y, z: x.__setitem__(places(x, 48, 6), y[:, 0]),
    lambda x, y, z: x.__setitem__(places(x, 48, 7), y[:, :1]),
    lambda x, y, z: x[:, :24].__setitem__(places(x, 48, 8), y[:, ::2]),
    lambda x, y, z: x.__setitem__((slice(None), places(x, 24, 9)), y.T[:, ::2]),
    lambda x, y, z: x.__setitem__(even_rows(x), y[:24, :1]),
    lambda x, y, z: x.__setitem__(even_rows(x), y.reshape(-1).unfold(0, 48, 45)[:24]),
    lambda x, y, z: genesis.sum(y, 1, out=z[0]).remainder_(64),
]

VIEWS = [
    lambda x: x[::2],
    lambda x: x[1:],
    lambda x: x.reshape(-1),
    lambda x: x.T if x.ndim == 2 else x.flip(0),
    lambda x: x[:, 3:] if x.ndim == 2 else x[3:],
]


class Lent:
    """A tensor's memory as another library would show it."""

    def __init__(self, owner):
        self.__cuda_array_interface__ = owner.__cuda_array_interface__


class Program:
    """Pairs of a tensor on the GPU and one on the CPU, which must be equal."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.streams = [cuda.default_stream(), *(cuda.Stream() for _ in range(3))]
        self.pairs: list[tuple[genesis.Tensor, genesis.Tensor]] = []
        for shape in SHAPES * 2:
            self.make(shape)

    def on_some(self):
        """Make a stream that is drawn the current one."""
        return cuda.stream(self.draw.choice(self.streams))

    def both(self, function, *pairs):
        """A function of tensors on both devices: on the GPU on some stream."""
        with self.on_some():
            far = function(*(pair[0] for pair in pairs))
            if self.draw.random() < 0.7:
                genesis.flush()
        return far, function(*(pair[1] for pair in pairs))

    def make(self, shape) -> None:
        seed = self.draw.randrange(1 << 30)

        def make(x):
            genesis.manual_seed(seed)
            return genesis.randint(0, 64, shape, device=x.device).to(genesis.float32)

        sides = genesis.empty(0, device="cuda"), genesis.empty(0)
        self.pairs.append(self.both(make, sides))

    def some(self, count, shape=None):
        """So many pairs of one shape: drawn, or that of one that is drawn."""
        shape = shape or self.draw.choice(self.pairs)[1].shape
        fitting = [pair for pair in self.pairs if pair[1].shape == shape]
        return [self.draw.choice(fitting) for _ in range(count)] if fitting else None

    def operate(self) -> None:
        count = self.draw.randrange(1, 3)
        function = self.draw.choice([OF_ONE, OF_TWO][count - 1])
        pairs = self.some(count)
        if len(pairs[0][1]) > 3:
            self.pairs.append(self.both(function, *pairs))

    def write(self) -> None:
        count = self.draw.randrange(1, 4)
        function = self.draw.choice([INTO_ONE, INTO_TWO, INTO_SQUARE][count - 1])
        pairs = self.some(count, (48, 48) if count == 3 else None)
        if pairs is None or len(pairs[0][1]) <= 3:
            return
        # What is written by index in any order, or while it is read, is read by nothing else.
        if any(one[1].data_ptr() == pairs[0][1].data_ptr() for one in pairs[1:]):
            pairs[1:] = [self.both(lambda x: x.clone(), one) for one in pairs[1:]]
        self.both(function, *pairs)

    def view(self) -> None:
        self.pairs.append(self.both(self.draw.choice(VIEWS), self.draw.choice(self.pairs)))

    def drop(self) -> None:
        self.pairs.pop(self.draw.randrange(len(self.pairs)))
        if len(self.pairs) < 4:
            self.make(self.draw.choice(SHAPES))

    def free_early(self) -> None:
        """Memory that a stream still uses is free for the next."""
        for _ in range(3):
            shape = self.draw.choice(SHAPES)
            self.both(lambda x, y: mixed(x + y).sum(dim=0), *(self.some(2, shape) or self.some(2)))

    def lend(self) -> None:
        """Memory of others: its owner knows only the stream that it was lent on."""
        home = self.draw.choice(self.streams)
        with cuda.stream(home):
            owner, near = genesis.zeros(9001, device="cuda"), genesis.zeros(9001)
            owner.add_(2)
            near.add_(2)
            taken = genesis.as_tensor(Lent(owner))
        for _ in range(self.draw.randrange(1, 4)):
            if self.draw.random() < 0.6:
                self.pairs.append(self.both(lambda x: x * 2 + 1, (taken, near)))
            else:
                self.both(lambda x: x.mul_(3).remainder_(64), (taken, near))
        genesis.flush()
        del taken
        with cuda.stream(home):
            owner.add_(5)
            near.add_(5)
        self.pairs.append((owner, near))

    def equal(self, pair) -> None:
        with self.on_some():
            far = pair[0].cpu()
        assert far.shape == pair[1].shape and (far == pair[1]).all().item()

    def run(self) -> None:
        steps = [self.operate, self.operate, self.write, self.write, self.write, self.view]
        steps += [self.drop, self.free_early, self.lend, lambda: self.equal(self.some(1)[0])]
        for number in range(STEPS):
            step = self.draw.choice(steps)
            try:
                step()
            except Exception as error:
                error.add_note(f"step {number}: {step}")
                raise
            while len(self.pairs) > KEPT:
                self.drop()
        for pair in self.pairs:
            self.equal(pair)


if __name__ == "__main__":
    for seed in range(FIRST, FIRST + PROGRAMS):
        try:
            Program(seed).run()
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error
