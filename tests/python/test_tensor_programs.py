"""Random programs on tensors and on NumPy's arrays, which must agree at every moment.

A program makes views, writes in place, keeps and drops results, reads some and not others, and
writes into memory that tensors share: through NumPy, through addresses that it kept, and through
other views, also between an operation and the use of its result. What waits must never show.

TENSOR_PROGRAMS says how many programs there are: many of them when something changes here.
"""

from __future__ import annotations

import ctypes
import os
import random

import numpy
import pytest

import genesis

SEEDS = int(os.environ.get("TENSOR_PROGRAMS", "600"))
STEPS = 40
# Few elements are computed at once, more than 256 wait; the longest are more than one tile.
SHAPES = [(), (1,), (5,), (3, 4), (1, 4), (3, 1), (2, 3, 4), (0, 3), (257,), (31, 11), (3, 127, 1)]
SHAPES += [(11,), (1, 127, 5), (2, 1031)]
# Exact in float32 and float64 alike, fused or not: no function that rounds in its own way.
BINARY = ["add", "sub", "mul", "maximum", "minimum"]
NUMPY_NAMES = {"sub": "subtract", "mul": "multiply", "add": "add"}


class Program:
    """A list of pairs: a tensor, and the array that it must equal."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.numbers = numpy.random.default_rng(seed)
        self.pairs: list[tuple[genesis.Tensor, numpy.ndarray]] = []
        self.kept: list[tuple[genesis.Tensor, numpy.ndarray, object]] = []  # and ways to its bytes
        for _ in range(3):
            self.make()

    def pair(self) -> tuple[genesis.Tensor, numpy.ndarray]:
        return self.choose.choice(self.pairs)

    def make(self) -> None:
        shape = self.choose.choice(SHAPES)
        array = self.numbers.integers(-9, 9, shape).astype(numpy.float32)
        if self.choose.random() < 0.3:  # memory that both see
            self.pairs.append((genesis.from_numpy(array), array))
        else:
            self.pairs.append((genesis.tensor(array), array.copy()))

    def partner(self, array: numpy.ndarray) -> tuple[genesis.Tensor, numpy.ndarray] | None:
        fitting = []
        for pair in self.pairs:
            try:
                numpy.broadcast_shapes(array.shape, pair[1].shape)
            except ValueError:
                continue
            fitting.append(pair)
        return self.choose.choice(fitting) if fitting else None

    def operate(self) -> None:
        tensor, array = self.pair()
        name = self.choose.choice(BINARY)
        if self.choose.random() < 0.3:
            number = self.choose.randrange(-3, 4)
            made = getattr(genesis, name)(tensor, number)
            expected = getattr(numpy, NUMPY_NAMES.get(name, name))(array, numpy.float32(number))
        else:
            other, other_array = self.partner(array) or (tensor, array)
            made = getattr(tensor, name)(other)
            expected = getattr(numpy, NUMPY_NAMES.get(name, name))(array, other_array)
        # Values stay small, so that everything is exact.
        made, expected = made.remainder(64), numpy.remainder(expected, numpy.float32(64))
        self.pairs.append((made, numpy.asarray(expected)))

    def view(self) -> None:
        tensor, array = self.pair()
        if array.ndim == 0:
            return
        kind = self.choose.randrange(5)
        if kind == 0:
            self.pairs.append((tensor.T, array.T))
        elif kind == 1:
            step = self.choose.choice([1, 2, -1, -2])
            key = (Ellipsis, slice(None, None, step))
            self.pairs.append((tensor[key], array[key]))
        elif kind == 2 and array.shape[0] > 0:
            at = self.choose.randrange(-array.shape[0], array.shape[0])
            self.pairs.append((tensor[at], array[at, ...]))
        elif kind == 3:
            self.pairs.append((tensor[None], array[None]))
        elif array.flags.c_contiguous and array.size:
            self.pairs.append((tensor.reshape(-1), array.reshape(-1)))

    def write(self) -> None:
        tensor, array = self.pair()
        other, other_array = self.partner(array) or (tensor, array)
        if numpy.broadcast_shapes(array.shape, other_array.shape) != array.shape:
            other, other_array = tensor, array
        kind = self.choose.randrange(5)
        if kind == 0:
            tensor += other
            array += other_array
        elif kind == 1:
            tensor.copy_(other)
            array[...] = other_array.copy()
        elif kind == 2:
            tensor.fill_(3)
            array[...] = 3
        elif kind == 3:
            genesis.sub(other, 1, out=tensor) if other.shape == tensor.shape else tensor.sub_(1)
            array[...] = (other_array if other.shape == tensor.shape else array) - 1
        else:
            tensor.mul_(2)
            array *= 2
        tensor.remainder_(64)
        array[...] = numpy.remainder(array, numpy.float32(64))

    def write_through_numpy(self) -> None:
        tensor, array = self.pair()
        seen = tensor.numpy()
        seen += 1
        if not numpy.shares_memory(seen, array):
            array += 1

    def keep(self) -> None:
        """Ask for the way to the bytes now, and go it at any later time."""
        tensor, array = self.pair()
        if not array.size or not tensor.is_contiguous():
            return
        if self.choose.random() < 0.5:
            way = tensor.numpy().reshape(-1)
        else:
            way = (ctypes.c_float * array.size).from_address(tensor.data_ptr())
        self.kept.append((tensor, array, way))
        del self.kept[:-4]

    def write_through_kept(self) -> None:
        if not self.kept:
            return
        _, array, way = self.choose.choice(self.kept)
        at, value = self.choose.randrange(array.size), self.choose.randrange(64)
        way[at] = value
        array[numpy.unravel_index(at, array.shape)] = value

    def disturb(self) -> None:
        """An operation, then a change of what it reads by one of all ways, then its use."""
        if self.kept and self.choose.random() < 0.5:
            tensor, array, _ = self.choose.choice(self.kept)
        else:
            tensor, array = self.pair()
        made, expected = (tensor * 2 + 1).remainder(64), numpy.remainder(array * 2 + 1, 64)
        kind = self.choose.randrange(4)
        if kind == 0:
            self.write_through_kept()
        elif kind == 1:
            self.write_through_numpy()
        elif kind == 2 and array.ndim:
            key = (Ellipsis, slice(None, None, self.choose.choice([-1, -2, 2])))
            tensor[key].fill_(5)
            array[key] = 5
        else:
            self.write()
        self.pairs.append((made, numpy.asarray(expected, numpy.float32)))

    def drop(self) -> None:
        if len(self.pairs) > 3:
            self.pairs.pop(self.choose.randrange(len(self.pairs)))

    def look(self) -> None:
        tensor, array = self.pair()
        kind = self.choose.randrange(4)
        if kind == 0:
            numpy.testing.assert_array_equal(tensor.numpy(), array)
        elif kind == 1:
            assert tensor.sum().item() == numpy.float32(array.sum(dtype=numpy.float64))
        elif kind == 2 and array.ndim:
            axis = self.choose.randrange(array.ndim)
            numpy.testing.assert_array_equal(tensor.sum(dim=axis).numpy(), array.sum(axis))
        elif kind == 3 and array.size:
            assert (tensor + 1).amax().item() == array.max() + 1

    def run(self) -> None:
        steps = [self.make, self.operate, self.operate, self.operate, self.operate, self.view]
        steps += [self.write, self.write_through_numpy, self.keep, self.write_through_kept]
        steps += [self.disturb, self.disturb, self.drop, self.drop, self.look]
        for _ in range(STEPS):
            self.choose.choice(steps)()
        for tensor, array in self.pairs:
            numpy.testing.assert_array_equal(tensor.numpy(), array)
            assert tensor.shape == array.shape


@pytest.mark.parametrize("is_fused", [True, False])
def test_random_programs(is_fused):
    genesis.set_fusion(is_fused)
    try:
        for seed in range(SEEDS if is_fused else SEEDS // 5):
            try:
                Program(seed).run()
            except BaseException as error:
                raise AssertionError(f"seed {seed}") from error
    finally:
        genesis.set_fusion(True)


def test_nothing_is_left():
    genesis.flush()
    before = genesis.cpu.memory_stats()["allocated"]
    Program(1).run()
    genesis.flush()
    assert genesis.cpu.memory_stats()["allocated"] == before
