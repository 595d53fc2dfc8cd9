"""Long runs of small kernels on a GPU, real or simulated, beside the same on the CPU.

The thread that submits kernels submits those that wait for it together. What comes out depends on
every one of them, and on their order.

python tests/ops/device_launches.py [LENGTH]
"""

from __future__ import annotations

import os
import random
import sys
import threading

os.environ["GENESIS_LAUNCH_THREAD"] = "on"  # wherever this runs

import genesis
from genesis import cuda

LENGTH = int(sys.argv[1]) if len(sys.argv) > 1 else 300
FLUSH = 0.8  # of the steps end a kernel

# Different kernels, of one launch each or of several, whose order matters.
STEPS = [
    lambda x: x * 3 + 1,
    lambda x: (x - 7) * x,
    lambda x: x.flip(0) ^ 5,
    lambda x: x + x.sum(dtype=genesis.int32),
    lambda x: x.cumsum(0, dtype=genesis.int32) - x,
    lambda x: genesis.where(x > 0, x >> 1, -x),
    lambda x: x[::2].repeat(2)[: len(x)] + x,
    lambda x: x.reshape(-1, 7).max(dim=1).values.repeat(7) - x,
]


def run(device: str, seed: int) -> list[int]:
    """A chain that is drawn by its number."""
    draw = random.Random(seed)
    x = genesis.arange(7 * draw.choice([1, 31, 33, 1009]), dtype=genesis.int32, device=device)
    for _ in range(LENGTH):
        x = draw.choice(STEPS)(x)
        if draw.random() < FLUSH:
            genesis.flush()
    return x.tolist()


def one_stream() -> None:
    """The default one."""
    for seed in range(6):
        assert run("cuda", seed) == run("cpu", seed), seed


def many_streams() -> None:
    """By turns, and more of them than have what is needed to submit launches together."""
    for count in (2, 3, 20):
        streams = [cuda.Stream() for _ in range(count)]
        made = [genesis.arange(1000, dtype=genesis.int32, device="cuda") for _ in streams]
        expected = [genesis.arange(1000, dtype=genesis.int32) for _ in streams]
        draw = random.Random(count)
        for _ in range(LENGTH):
            place = draw.randrange(count)
            for _ in range(draw.randrange(5)):
                number = draw.randrange(100)
                with cuda.stream(streams[place]):
                    made[place] = made[place] * 3 + number
                    genesis.flush()
                expected[place] = expected[place] * 3 + number
        assert [one.tolist() for one in made] == [one.tolist() for one in expected], count


def streams_that_go() -> None:
    """One after the other, each with work that is left to it."""
    for _ in range(30):
        with cuda.stream(cuda.Stream()):
            x = genesis.zeros(100, dtype=genesis.int32, device="cuda")
            for _ in range(30):
                x = x + 1
                genesis.flush()
        assert x[0].item() == 30


def threads() -> None:
    """On streams of their own."""
    found = {}

    def work(seed: int) -> None:
        with cuda.stream(cuda.Stream()):
            found[seed] = run("cuda", seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(10, 14)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == {seed: run("cpu", seed) for seed in found}
    assert len(found) == len(workers)


if __name__ == "__main__":
    for section in (one_stream, many_streams, streams_that_go, threads):
        section()
