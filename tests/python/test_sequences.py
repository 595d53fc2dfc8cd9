"""Sequences that are nested, lie about their length, change while they are read, or do not end.

Random ones by seed: SEQUENCE_PROGRAMS of them, more under `make soak`. Whatever they are, a call
gives a tensor or an ordinary exception; what is honest is compared with NumPy. The address
sanitizer sees what is read or written beyond.
"""

from __future__ import annotations

import array
import collections
import os
import random
from typing import Any

import numpy as np
import pytest

import genesis

PROGRAMS = int(os.environ.get("SEQUENCE_PROGRAMS", "1500"))
ALLOWED = (ValueError, TypeError, OverflowError, IndexError, MemoryError, ZeroDivisionError)


class Endless:
    """Items without an end, and no length."""

    def __getitem__(self, index: int) -> int:
        return index


class Said(Endless):
    """The same, with a length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


class Short(Said):
    """Fewer items than it says."""

    def __getitem__(self, index: int) -> int:
        if index >= self.length // 2:
            raise IndexError
        return index


class LyingList(list):
    """A list that gives another length each time."""

    def __len__(self) -> int:
        self.asked = getattr(self, "asked", 0) + 1
        return (0, 1, 3, 2**40, 2**62)[self.asked % 5]


class LyingTuple(tuple):
    """A tuple that is longer than it is."""

    def __len__(self) -> int:
        return 2**62


class Changing:
    """A number that changes lists when somebody wants to know it."""

    def __init__(self, change: Any, value: Any) -> None:
        self.change, self.value = change, value

    def __float__(self) -> float:
        self.change()
        return float(self.value)


class ChangingIndex(Changing):
    """The same for integers."""

    def __index__(self) -> int:
        self.change()
        return int(self.value)


class ChangingItem(Changing):
    """The same for those that ask for item(), as NumPy's numbers have it."""

    def item(self) -> Any:
        self.change()
        return self.value


class Listed(Changing):
    """Something with tolist(), which need not give a list."""

    def tolist(self) -> Any:
        self.change()
        return self.value


# ---- what was wrong ----


def test_a_product_of_sizes_that_wraps() -> None:
    """16 lists in lists of 16 are 2**64 numbers: no tensor, and no write beyond one."""
    nested: Any = 1
    for _ in range(16):
        nested = [nested] * 16
    with pytest.raises(genesis.ShapeError, match=r"\(16, 16, .* do not fit the address space"):
        genesis.tensor(nested)
    for _ in range(3):  # 2**52 numbers: possible, but nobody has the memory
        nested = nested[0]
    with pytest.raises(MemoryError):
        genesis.tensor(nested)


def test_the_length_of_a_list_is_not_what_it_says() -> None:
    """A list and a tuple have the items that they have."""
    assert genesis.tensor(LyingList([1, 2])).tolist() == [1, 2]
    assert genesis.tensor(LyingTuple([1, 2])).tolist() == [1, 2]
    assert genesis.tensor([LyingList([1]), LyingTuple([2])]).tolist() == [[1], [2]]
    assert genesis.arange(5)[LyingList([3, 1])].tolist() == [3, 1]
    assert genesis.zeros(LyingTuple([2, 3])).shape == (2, 3)


@pytest.mark.parametrize("kind", [Changing, ChangingIndex, ChangingItem])
def test_a_list_that_is_cleared_while_it_is_read(kind: Any) -> None:
    """The numbers that were there when the list was met are taken."""
    data: list[Any] = []
    data += [kind(data.clear, 4), *(float(i) for i in range(100, 150))]
    made = genesis.tensor(data)
    assert made.tolist() == [4, *range(100, 150)] and data == []
    rows: list[Any] = [[kind(lambda: rows[1].clear(), 1), 2.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match="different lengths: 2 and 0"):
        genesis.tensor(rows)


def test_a_list_that_is_cleared_where_integers_are_taken() -> None:
    """The same for shapes, dimensions, keys and batches."""
    for use in (
        lambda data: genesis.zeros(data).shape,
        lambda data: genesis.zeros(3, 4, 5).permute(data).shape,
        lambda data: genesis.arange(5)[data].tolist(),
        lambda data: genesis.memory_manager.allocate_batch(data),
    ):
        data: list[Any] = []
        data += [ChangingIndex(data.clear, 1), 2, 0]
        found = use(data)
        assert data == [] and len(found) == 3
    for address in found:
        genesis.memory_manager.free_memory(address)


def test_an_interface_that_is_cleared_while_it_is_read() -> None:
    """The items of __cuda_array_interface__ are ours while they are read."""

    class Address:
        def __index__(self) -> int:
            given.clear()
            return 4096

    given = {"typestr": "<f4", "shape": (2**40,), "data": (Address(), Address()), "strides": None}
    given["stream"] = int("12345678901234567890")  # nobody else has this number

    class Array:
        __cuda_array_interface__ = given

    with pytest.raises((RuntimeError, ValueError, TypeError)):
        genesis.tensor(Array())


def test_items_without_an_end() -> None:
    """A length is needed, and is how many are read; where few are allowed, no more are read."""
    with pytest.raises(TypeError, match="no len"):
        genesis.tensor(Endless())
    with pytest.raises(TypeError, match="no len"):
        genesis.tensor([Endless()])
    assert genesis.tensor(Said(4)).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="has 2 items, and its length is 4"):
        genesis.tensor(Short(4))
    with pytest.raises(MemoryError):
        genesis.tensor(Said(2**62))
    with pytest.raises(MemoryError):
        genesis.tensor(range(2**62))
    x = genesis.zeros(3, 4)
    for call in (
        lambda: x[Endless()],
        lambda: x.__setitem__(0, Endless()),
        lambda: genesis.zeros(Endless()),
        lambda: genesis.empty(size=Endless()),
        lambda: x.permute(Endless()),
        lambda: x.reshape(Endless()),
        lambda: x.sum(Endless()),
        lambda: x.flip(Endless()),
        lambda: x.repeat(Endless()),
        lambda: x.tile(Endless()),
        lambda: x.expand(Endless()),
        lambda: x.roll(Endless(), Endless()),
        lambda: x.split(Endless()),
        lambda: x.tensor_split(Endless()),
        lambda: x.unflatten(0, Endless()),
        lambda: genesis.cat(Endless()),
        lambda: genesis.stack(Endless()),
        lambda: genesis.memory_manager.allocate_batch(Endless()),
    ):
        with pytest.raises((TypeError, ValueError, IndexError)):
            call()


def test_an_empty_buffer_is_anywhere() -> None:
    """Nothing is at the address that an empty array shows."""
    for kind in "bhilqfd":
        assert genesis.tensor(array.array(kind)).shape == (0,)


# ---- random ones ----


class Maker:
    """Objects of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lists: list[list[Any]] = []
        self.is_honest = True

    def change(self) -> None:
        """Change one of the lists, in one of many ways."""
        draw = self.random
        one = draw.choice(self.lists) if self.lists else []
        kind = draw.randrange(7)
        if kind == 0:
            one.clear()
        elif kind == 1:
            one.extend([1] * draw.randrange(40))
        elif kind == 2 and one:
            one.pop()
        elif kind == 3 and one:
            one[draw.randrange(len(one))] = draw.choice((None, 5, [1, 2], "x"))
        elif kind == 4 and one:
            one[:] = one[: len(one) // 2] * 3
        elif kind == 5:
            genesis.tensor([1.5, [2]] if draw.random() < 0.1 else [1.5, 2])
        else:
            raise ZeroDivisionError

    def number(self) -> Any:
        """Return something in the place of a number."""
        draw = self.random
        if draw.random() < 0.7:
            kinds = (draw.randrange(-9, 9), draw.random(), True, np.float32(1.5), np.int16(3))
            return draw.choice(kinds)
        self.is_honest = False
        return draw.choice(
            (
                Changing(self.change, 2.5),
                ChangingIndex(self.change, 3),
                ChangingItem(self.change, draw.choice((1, 2.5, True, "x", None, [1]))),
                Listed(self.change, draw.choice((1, [1, 2], LyingList([1]), None))),
                None,
                "text",
                1j,
                10**30,
                2**63,
                float("nan"),
            )
        )

    def level(self, shape: list[int]) -> Any:
        """Make one list of a level, or what stands for one."""
        draw = self.random
        if not shape:
            return self.number()
        length = shape[0]
        if draw.random() < 0.06:
            self.is_honest = False
            length = draw.randrange(5)
        if draw.random() < 0.04:
            self.is_honest = False
            kinds = (Endless(), Said(length), Said(2**62), Short(length), LyingTuple([1]), object())
            return draw.choice(kinds)
        items: list[Any] = []
        self.lists.append(items)
        items += [self.level(shape[1:]) for _ in range(length)]
        wrap = draw.random()
        if wrap < 0.6:
            return items
        if wrap < 0.75:
            return tuple(items)
        if wrap < 0.8:
            return collections.deque(items)
        if wrap < 0.85 and len(shape) == 1:
            return draw.choice((range(length), np.arange(length), array.array("d", range(length))))
        if wrap < 0.9 and len(shape) == 1:
            return genesis.arange(length)
        self.is_honest = False
        if wrap < 0.95:
            return LyingList(items)
        if wrap < 0.97:
            items.append(items)
            return items
        return Listed(self.change, items)


CONSUMERS = (
    lambda data: genesis.tensor(data),
    lambda data: genesis.tensor(data),
    lambda data: genesis.as_tensor(data, dtype=genesis.float16),
    lambda data: genesis.tensor(data, dtype=genesis.uint8),
    lambda data: genesis.arange(12).reshape(3, 4)[data],
    lambda data: genesis.zeros(3, 4).__setitem__(0, data),
    lambda data: genesis.zeros(3, 4).__setitem__(data, 1),
    lambda data: genesis.empty(0).expand(data),
    lambda data: genesis.zeros(2, 3, 4).sum(data),
    lambda data: genesis.zeros(2, 3, 4).permute(data),
    lambda data: genesis.ones(4) + genesis.as_tensor(data),
)


def test_random_sequences() -> None:
    """Each gives what NumPy does, or, where it is not honest, anything but a wrong access."""
    compared = 0
    for seed in range(PROGRAMS):
        maker = Maker(seed)
        shape = [maker.random.randrange(5) for _ in range(maker.random.randrange(5))]
        data = maker.level(shape)
        use = maker.random.choice(CONSUMERS)
        if maker.is_honest and use is CONSUMERS[0]:
            compared += 1
            expected = np.array(data)
            found = genesis.tensor(data)
            assert found.shape == expected.shape, f"seed {seed}"
            assert np.allclose(np.asarray(found.tolist()), expected), f"seed {seed}"
            continue
        try:
            made = use(data)
        except ALLOWED:
            continue
        if made is not None:
            assert len(np.asarray(made.tolist()).ravel()) == made.numel(), f"seed {seed}"
    assert compared > PROGRAMS // 50


# ---- every function ----

CALLS = """
import faulthandler, os, resource, warnings
import genesis, genesis.array_api

warnings.simplefilter("ignore")
if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which maps more than there is
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
faulthandler.dump_traceback_later(100, exit=True)


class Endless:
    def __getitem__(self, index):
        return index


def arguments(x):
    yield ()
    for n in (2**62, 2**40):
        yield from ((n,), (n, n), (n, 0), (0, n), (0, 0, n), ([n],), ([n, n],), (x, n), (0, x, n))
    yield from ((Endless(),), (0, Endless()), (Endless(), 0), (x, Endless()))


tensors = [genesis.arange(6).reshape(2, 3).float(), genesis.arange(5)]
empty = genesis.zeros(2**40, 0)
calls = [(one, x) for name, one in vars(genesis.Tensor).items() for x in (*tensors, empty)
         if callable(one) and name not in ("__class__", "__new__", "__iter__")]
manager = genesis.memory_manager
calls += [(one, None) for space in (genesis, genesis.array_api) for one in vars(space).values()
          if callable(one) and not isinstance(one, type)]
calls += [(one, None) for one in (manager.allocate_batch, manager.warmup_cache)]
made = 0
for one, x in calls:
    for given in arguments(tensors[1]):
        try:
            one(*((x, *given) if x is not None else given))
        except SystemError:
            raise
        except Exception:
            pass
        made += 1
print(made)
"""


def test_no_number_or_sequence_stops_a_function(fresh: Any) -> None:
    """Huge numbers, and items without an end, give a result or an error, whatever takes them."""
    assert int(fresh(CALLS).stdout.split()[-1]) > 20_000
