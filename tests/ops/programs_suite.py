"""What programs do around a model, in PyTorch and in Genesis: data, mixed precision, files.

    python tests/ops/programs_suite.py [--verbose] [PATTERN ...]

Each scenario below is a function of a package, PyTorch or Genesis. What it sees (values, types,
texts, warnings, errors) is compared, line by line. PATTERN is a glob of scenarios' names. PyTorch
(tested with 2.15) and NumPy must be installed, the former of which the test environment has not.
The exit status says whether all differences are KNOWN.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import io
import os
import pathlib
import pickle
import re
import sys
import tempfile
import typing
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import torch
from optimizers_suite import Seen, World, difference, plain, seen, watched

import genesis

# Differences that are meant: scenario, its line, what is in the text, and why.
KNOWN: list[tuple[str, str, str, str]] = []

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


# ---- data ----

Pair = namedtuple("Pair", ["first", "second"])


class Typed(typing.NamedTuple):
    x: object
    y: int


@dataclasses.dataclass
class Record:
    x: object


class OwnDict(dict):
    pass


class OwnList(list):
    pass


def batches_of_everything(w):
    """Lines: a name and a batch."""
    t = w.package.tensor
    return {
        "tensors": [t([1.0, 2.0]), t([3.0, 4.0])],
        "scalars": [t(1), t(2)],
        "empty tensors": [t([]), t([])],
        "bool tensors": [t(True), t(False)],
        "shapes that differ": [t([1.0, 2.0]), t([3.0])],
        "types that differ": [t([1.0]), t([2])],
        "integers": [1, 2, 3],
        "large integers": [2**40, 1],
        "too large integers": [2**70, 1],
        "booleans": [True, False],
        "floats": [0.5, 1.5],
        "an integer and a float": [1, 2.5],
        "a float and an integer": [1.5, 2],
        "a boolean and a float": [True, 2.5],
        "texts": ["a", "b"],
        "bytes": [b"a", b"b"],
        "None": [None, None],
        "complex numbers": [1j, 2j],
        "tuples": [(1, "a", 0.5), (2, "b", 1.5)],
        "lists": [[1, 2], [3, 4]],
        "lists of lengths that differ": [[1, 2], [3]],
        "empty tuples": [(), ()],
        "nested": [{"a": [1, (2, t([1.0]))]}, {"a": [3, (4, t([2.0]))]}],
        "dicts": [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}],
        "dicts with other keys": [{"x": 1}, {"y": 2}],
        "dicts with more keys": [{"x": 1}, {"x": 2, "y": 2}],
        "ordered dicts": [OrderedDict(x=1), OrderedDict(x=2)],
        "default dicts": [defaultdict(int, x=1), defaultdict(int, x=2)],
        "counters": [Counter("ab"), Counter("ab")],
        "own dicts": [OwnDict(x=1), OwnDict(x=2)],
        "own lists": [OwnList([1, 2]), OwnList([3, 4])],
        "deques": [deque([1, 2]), deque([3, 4])],
        "ranges": [range(2), range(2, 4)],
        "named tuples": [Pair(1, [2.0]), Pair(3, [4.0])],
        "typed tuples": [Typed(t([1.0]), 1), Typed(t([2.0]), 2)],
        "records": [Record(1), Record(2)],
        "sets": [{1}, {2}],
        "objects": [object(), object()],
        "dtypes": [w.package.float32, w.package.float32],
        "arrays": [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        "arrays of float32": [np.ones(2, "f4"), np.zeros(2, "f4")],
        "arrays of int8": [np.ones((2, 1), "i1"), np.zeros((2, 1), "i1")],
        "arrays of bool": [np.ones(2, "?"), np.zeros(2, "?")],
        "arrays of uint16": [np.ones(2, "u2"), np.zeros(2, "u2")],
        "arrays without dimensions": [np.array(1.5), np.array(2.5)],
        "arrays of texts": [np.array(["a"]), np.array(["b"])],
        "arrays of objects": [np.array([None]), np.array([None])],
        "arrays backwards": [np.arange(3)[::-1], np.arange(3)],
        "numbers of NumPy": [np.float32(1), np.float32(2)],
        "doubles of NumPy": [np.float64(1), np.float64(2)],
        "integers of NumPy": [np.int64(1), np.int32(2)],
        "bytes of NumPy": [np.uint8(1), np.uint8(2)],
        "booleans of NumPy": [np.bool_(True), np.bool_(False)],
        "texts of NumPy": [np.str_("a"), np.str_("b")],
        "nothing": [],
        "a tuple of samples": (1, 2),
        "a text and a number": ["a", 1],
        "a number and a text": [1, "a"],
        "a tensor and a number": [t(1), 2],
        "parameters": [w.package.nn.Parameter(t([1.0])), w.package.nn.Parameter(t([2.0]))],
    }


@scenario
def collating(w):
    data = w.package.utils.data
    made = {}
    for name, batch in batches_of_everything(w).items():
        made[name] = watched(lambda batch=batch: shown(data.default_collate(batch)))
        made[f"convert {name}"] = watched(lambda batch=batch: shown(data.default_convert(batch)))
    return made


def shown(value):
    """The value, with the names of containers' classes."""
    if isinstance(value, dict):
        made = {key: shown(one) for key, one in value.items()}
        return {"class": type(value).__name__, "items": made}
    if isinstance(value, (list, tuple, deque)):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.tolist()}"
    if isinstance(value, (Record, object)) and type(value) in (object, Record):
        return type(value).__name__
    return value


@scenario
def collating_by_hand(w):
    from importlib import import_module

    collate = (
        import_module(f"{w.package.__name__}.utils.data._utils.collate") if not w.is_ours else None
    )
    made = {}
    if collate is None:
        collate = import_module("genesis.utils.data._collate")
    table = dict(collate.default_collate_fn_map)
    table[Record] = lambda batch, *, collate_fn_map=None: ["records", len(batch)]
    made["own class"] = watched(
        lambda: shown(collate.collate([{"a": Record(1)}, {"a": Record(2)}], collate_fn_map=table))
    )
    made["no table"] = watched(lambda: shown(collate.collate([1, 2], collate_fn_map={})))
    names = ["default_collate", "default_convert", "default_collate_err_msg_format"]
    made["names"] = [hasattr(w.package.utils.data, name) for name in names[:2]]
    return made


class Numbers:
    """Samples without a base class."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return index


def iterable_of(w, count, has_length=True):
    class Stream(w.package.utils.data.IterableDataset):
        def __iter__(self):
            info = w.package.utils.data.get_worker_info()
            if info is None:
                return iter(range(count))
            return iter(range(info.id, count, info.num_workers))

    if has_length:
        Stream.__len__ = lambda self: count
    return Stream()


def batches(loader):
    return [shown(one) for one in loader]


@scenario
def loading(w):
    loader_of = w.package.utils.data.DataLoader
    made = {}
    for workers in (0, 2):
        for count in (0, 1, 5, 6):
            for options in (
                {},
                {"batch_size": 2},
                {"batch_size": 2, "drop_last": True},
                {"batch_size": None},
                {"batch_size": 10},
                {"batch_size": 10, "drop_last": True},
                {"sampler": [0] * min(count, 3)},
                {"batch_sampler": [[0, 0], [0]] if count else []},
                {"batch_size": None, "sampler": [[0], [0]] if count == 99 else []},
            ):
                name = f"{workers} workers, {count} samples, {options}"
                made[name] = watched(
                    lambda: looked_at(loader_of(Numbers(count), num_workers=workers, **options))
                )
                if "sampler" not in str(options):
                    made[f"iterable, {name}"] = watched(
                        lambda: looked_at(
                            loader_of(iterable_of(w, count), num_workers=workers, **options)
                        )
                    )
                    made[f"iterable without length, {name}"] = watched(
                        lambda: looked_at(
                            loader_of(iterable_of(w, count, False), num_workers=workers, **options),
                            False,
                        )
                    )
    return made


def looked_at(loader, has_length=True):
    made = {"batches": batches(loader), "again": batches(loader)}
    if has_length:
        made["length"] = len(loader)
        made["of the iterator"] = len(iter(loader))
    else:
        made["length"] = watched(lambda: len(loader))
    options = ("batch_size", "drop_last", "num_workers", "prefetch_factor", "timeout")
    options += ("pin_memory", "persistent_workers", "pin_memory_device", "in_order", "generator")
    made["options"] = {name: seen(getattr(loader, name)) for name in options}
    made["kinds"] = [type(loader.batch_sampler).__name__, loader.collate_fn.__name__]
    return made


@scenario
def arguments_of_loaders(w):
    data = w.package.utils.data
    loader_of = data.DataLoader
    wrong = [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"prefetch_factor": -1, "num_workers": 1},
        {"prefetch_factor": 0, "num_workers": 1},
        {"persistent_workers": True},
        {"sampler": [0], "shuffle": True},
        {"batch_sampler": [[0]], "shuffle": True},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_sampler": [[0]], "batch_size": 1},
        {"batch_sampler": [[0]], "batch_size": None},
        {"batch_sampler": [[0]], "drop_last": True},
        {"batch_sampler": [[0]], "sampler": [0]},
        {"batch_size": None, "drop_last": True},
        {"batch_size": None, "shuffle": True},
        {"batch_size": 0},
        {"batch_size": -1},
        {"batch_size": 1.5},
        {"batch_size": True},
        {"batch_size": "2"},
        {"drop_last": 1},
        {"multiprocessing_context": "fork"},
        {"multiprocessing_context": "no such", "num_workers": 1},
        {"multiprocessing_context": 1, "num_workers": 1},
        {"timeout": 1},
        {"unknown": 1},
        {"num_workers": 1.5},
        {"shuffle": 2},
        {"shuffle": "yes"},
        {"in_order": False},
        {"collate_fn": list},
        {"generator": 5, "shuffle": True},
    ]
    made = {}
    for options in wrong:
        made[f"{options}"] = watched(
            lambda o=options: sorted(map(str, batches(loader_of(Numbers(3), **o))))
        )
        made[f"iterable {options}"] = watched(
            lambda o=options: sorted(map(str, batches(loader_of(iterable_of(w, 3), **o))))
        )
    loader = loader_of(Numbers(3))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "num_workers"):
        made[f"set {name}"] = watched(lambda n=name: setattr(loader, n, 1))
    made["set persistent_workers"] = watched(lambda: setattr(loader, "persistent_workers", True))
    made["set worker_init_fn"] = watched(lambda: setattr(loader, "worker_init_fn", print))
    made["set multiprocessing_context"] = watched(
        lambda: setattr(loader_of(Numbers(3)), "multiprocessing_context", "fork")
    )
    made["empty and shuffled"] = watched(lambda: batches(loader_of(Numbers(0), shuffle=True)))
    made["a list"] = watched(lambda: batches(loader_of([3, 4, 5], batch_size=2)))
    made["a dict"] = watched(lambda: batches(loader_of({0: "a", 1: "b"}, batch_size=2)))
    made["a tensor"] = watched(lambda: batches(loader_of(w.package.arange(4), batch_size=2)))
    made["an array"] = watched(lambda: batches(loader_of(np.arange(4), batch_size=2)))
    made["no length"] = watched(lambda: batches(loader_of(iter([1, 2]))))
    made["subscripted"] = watched(lambda: str(loader_of[int]))
    made["text"] = watched(lambda: type(repr(loader)).__name__)
    made["pickled loader"] = watched(lambda: batches(pickle.loads(pickle.dumps(loader))))
    made["pinned"] = watched(lambda: batches(loader_of(Numbers(2), pin_memory=True)))
    made["pinned by workers"] = watched(
        lambda: batches(loader_of(Numbers(2), pin_memory=True, num_workers=1))
    )
    return made


class Failing:
    def __init__(self, error, at=2):
        self.error, self.at = error, at

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == self.at:
            raise self.error
        return index


class OwnError(Exception):
    pass


class PairError(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


@scenario
def errors_of_workers(w):
    loader_of = w.package.utils.data.DataLoader
    made = {}
    errors = [
        ValueError("no"),
        KeyError("key"),
        IndexError("index"),
        OwnError("own"),
        RuntimeError(),
    ]
    errors += [PairError(1, 2), StopIteration("stop"), AssertionError("a"), NotImplementedError()]
    errors += [
        OSError(2, "no file"),
        UnicodeDecodeError("utf8", b"a", 0, 1, "bad"),
        MemoryError("m"),
    ]
    for error in errors:
        for workers in (0, 1):

            def run(error=error, workers=workers):
                got = []
                try:
                    for one in loader_of(Failing(error), num_workers=workers):
                        got.append(one)
                except Exception as raised:
                    first = str(raised).splitlines()
                    first = first[0] if first else ""
                    return [got, type(raised).__name__, re.sub(r"\(pid.*?\)", "", first)]
                return got

            made[f"{error!r}, {workers} workers"] = watched(run)
    made["going on"] = watched(lambda: go_on(loader_of(Failing(ValueError("no")), num_workers=1)))
    made["going on here"] = watched(lambda: go_on(loader_of(Failing(ValueError("no")))))
    made["time"] = watched(lambda: slowly(loader_of))
    made["init"] = watched(lambda: init_fails(loader_of))
    made["collate"] = watched(
        lambda: first_line(lambda: batches(loader_of([None, None], num_workers=1)))
    )
    return made


def first_line(call):
    try:
        return call()
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0]]


def go_on(loader):
    made, numbers = [], iter(loader)
    for _ in range(6):
        try:
            made.append(seen(next(numbers)))
        except Exception as error:
            made.append(type(error).__name__)
    return made


class Slow(Numbers):
    def __getitem__(self, index):
        import time

        time.sleep(30 if index == 1 else 0)
        return index


def slowly(loader_of):
    return first_line(lambda: batches(loader_of(Slow(3), num_workers=1, timeout=1)))


def init_fails(loader_of):
    def fail(number):
        raise ValueError("in init")

    return first_line(lambda: batches(loader_of(Numbers(3), num_workers=1, worker_init_fn=fail)))


class Informed(Numbers):
    def __init__(self, w):
        super().__init__(4)
        self.w = w

    def __getitem__(self, index):
        info = self.w.package.utils.data.get_worker_info()
        if info is None:
            return "here"
        other = getattr(info, "dataset", None)
        words = [info.id, info.num_workers, type(info.seed).__name__, other is self, len(other)]
        words.append(self.w.package.initial_seed() == info.seed)
        words.append(self.w.package.get_num_threads())
        return str(words)


@scenario
def workers(w):
    data = w.package.utils.data
    loader_of = data.DataLoader
    made = {"info here": data.get_worker_info()}
    made["info"] = batches(loader_of(Informed(w), num_workers=2))
    made["no workers"] = batches(loader_of(Informed(w)))
    said = tempfile.mkdtemp()

    def begin(number):
        pathlib.Path(said, f"worker {number}").touch()
        info = data.get_worker_info()
        info.dataset.count = 4
        setattr_again(info)

    def setattr_again(info):
        try:
            info.id = 5
        except Exception as error:
            pathlib.Path(said, f"{type(error).__name__}").touch()

    batches(loader_of(Numbers(4), num_workers=3, worker_init_fn=begin))
    made["init"] = sorted(os.listdir(said))
    loader = loader_of(Process(w), num_workers=2, persistent_workers=True)
    first, second = [sorted(str(x) for x in loader) for _ in range(2)]
    made["persistent"] = [first == second, len(set(first))]
    loader = loader_of(Process(w), num_workers=2)
    first, second = [{str(x) for x in loader} for _ in range(2)]
    made["others"] = len(first | second)
    loader = loader_of(Numbers(6), num_workers=2)
    one, two = iter(loader), iter(loader)
    made["two at once"] = [seen(next(one)), seen(next(two)), seen(next(one)), len(list(two))]
    made["ended"] = watched(lambda: [list(two), list(two)])
    del one, two
    loader = loader_of(Numbers(6), num_workers=2, persistent_workers=True)
    one = iter(loader)
    made["persistent began again"] = [seen(next(one)), seen(next(iter(loader)))]
    made["same iterator"] = iter(loader) is iter(loader)
    generator = w.package.Generator().manual_seed(5)
    made["out of order"] = sorted(
        str(seen(x)) for x in loader_of(Numbers(6), num_workers=2, in_order=False)
    )
    made["seeded"] = seeds(w, generator) == seeds(w, w.package.Generator().manual_seed(5))
    made["seeded otherwise"] = seeds(w, generator) == seeds(w, generator)
    return made


def seeds(w, generator):
    loader = w.package.utils.data.DataLoader(
        Numbers(20), shuffle=True, num_workers=1, generator=generator
    )
    return [int(x) for x in loader]


class Process(Numbers):
    def __init__(self, w):
        super().__init__(8)

    def __getitem__(self, index):
        return str(os.getpid())


@scenario
def samplers(w):
    data = w.package.utils.data
    seeded = lambda: w.package.Generator().manual_seed(3)  # noqa: E731
    made = {
        "sequential": lambda: list(data.SequentialSampler(Numbers(3))),
        "sequential length": lambda: len(data.SequentialSampler(Numbers(3))),
        "random": lambda: sorted(data.RandomSampler(Numbers(5))),
        "random more": lambda: sorted(
            Counter(data.RandomSampler(Numbers(5), num_samples=12)).values()
        ),
        "random length": lambda: len(data.RandomSampler(Numbers(5), num_samples=3)),
        "random of none": lambda: data.RandomSampler(Numbers(0)),
        "random 0": lambda: data.RandomSampler(Numbers(5), num_samples=0),
        "random -1": lambda: data.RandomSampler(Numbers(5), num_samples=-1),
        "random 1.5": lambda: data.RandomSampler(Numbers(5), num_samples=1.5),
        "random True": lambda: len(data.RandomSampler(Numbers(5), num_samples=True)),
        "random replacement 1": lambda: data.RandomSampler(Numbers(5), replacement=1),
        "replacement": lambda: len(list(data.RandomSampler(Numbers(5), True, 70))),
        "same": lambda: (
            list(data.RandomSampler(Numbers(50), generator=seeded()))
            == list(data.RandomSampler(Numbers(50), generator=seeded()))
        ),
        "subset": lambda: sorted(data.SubsetRandomSampler([5, 1, 9])),
        "subset of a tensor": lambda: sorted(
            map(int, data.SubsetRandomSampler(w.package.tensor([5, 1])))
        ),
        "subset length": lambda: len(data.SubsetRandomSampler([5, 1, 9])),
        "weights": lambda: sorted(set(data.WeightedRandomSampler([0.1, 0, 0.9], 200))),
        "weights without": lambda: sorted(data.WeightedRandomSampler([0.1, 1, 0.9], 3, False)),
        "weights too many": lambda: list(data.WeightedRandomSampler([0.1, 1], 3, False)),
        "weights 0": lambda: data.WeightedRandomSampler([0.1], 0),
        "weights True": lambda: data.WeightedRandomSampler([0.1], True),
        "weights 1.0": lambda: data.WeightedRandomSampler([0.1], 1.0),
        "weights matrix": lambda: data.WeightedRandomSampler([[0.1, 0.2]], 1),
        "weights replacement": lambda: data.WeightedRandomSampler([0.1], 1, "no"),
        "weights tensor": lambda: list(data.WeightedRandomSampler(w.package.tensor([0.0, 1.0]), 2)),
        "weights array": lambda: list(data.WeightedRandomSampler(np.array([0.0, 1.0]), 2)),
        "weights attribute": lambda: data.WeightedRandomSampler([0.25, 0.5], 2).weights,
        "weights length": lambda: len(data.WeightedRandomSampler([0.1], 7)),
        "weights negative": lambda: list(data.WeightedRandomSampler([-0.1, 1], 2)),
        "batches": lambda: list(data.BatchSampler(data.SequentialSampler(Numbers(5)), 2, False)),
        "batches dropped": lambda: list(data.BatchSampler(range(5), 2, True)),
        "batches of an iterator": lambda: list(data.BatchSampler(iter(range(5)), 2, False)),
        "batches length": lambda: len(data.BatchSampler(range(5), 2, False)),
        "batches length dropped": lambda: len(data.BatchSampler(range(5), 2, True)),
        "batches 0": lambda: data.BatchSampler(range(5), 0, True),
        "batches True": lambda: data.BatchSampler(range(5), True, True),
        "batches drop 1": lambda: data.BatchSampler(range(5), 2, 1),
        "base": lambda: list(data.Sampler()),
        "base with source": lambda: data.Sampler([1]),
        "base length": lambda: len(data.Sampler()),
        "distributed": lambda: [
            list(data.DistributedSampler(Numbers(7), 3, rank, shuffle=False)) for rank in range(3)
        ],
        "distributed dropped": lambda: [
            list(data.DistributedSampler(Numbers(7), 3, rank, shuffle=False, drop_last=True))
            for rank in range(3)
        ],
        "distributed few": lambda: [
            list(data.DistributedSampler(Numbers(2), 5, rank, shuffle=False)) for rank in range(5)
        ],
        "distributed all": lambda: sorted(
            one for rank in range(3) for one in data.DistributedSampler(Numbers(9), 3, rank, seed=2)
        ),
        "distributed rank": lambda: data.DistributedSampler(Numbers(9), 3, 3),
        "distributed -1": lambda: data.DistributedSampler(Numbers(9), 3, -1),
        "distributed length": lambda: len(data.DistributedSampler(Numbers(10), 3, 0)),
        "distributed none": lambda: list(data.DistributedSampler(Numbers(0), 2, 0, shuffle=False)),
        "distributed epochs": lambda: epochs(data),
    }
    return {name: watched(call) for name, call in made.items()}


def epochs(data):
    sampler = data.DistributedSampler(Numbers(40), 2, 0)
    first, again = list(sampler), list(sampler)
    sampler.set_epoch(1)
    return [first == again, first == list(sampler), sampler.epoch, sampler.num_samples]


@scenario
def datasets(w):
    data, t = w.package.utils.data, w.package.tensor
    tensors = t([1.0, 2.0, 3.0]), t([[1], [2], [3]])

    class Whole(Numbers):
        def __getitems__(self, indices):
            return [index * 10 for index in indices]

    class Bad(Numbers):
        def __getitems__(self, indices):
            return [1]

    class Plain(data.Dataset):
        def __init__(self, count=3):
            self.count = count

        def __getitem__(self, index):
            return index

        def __len__(self):
            return self.count

    made = {
        "tensors": lambda: shown(data.TensorDataset(*tensors)[1]),
        "tensors slice": lambda: shown(data.TensorDataset(*tensors)[1:]),
        "tensors list": lambda: shown(data.TensorDataset(*tensors)[[0, 2]]),
        "tensors beyond": lambda: data.TensorDataset(*tensors)[3],
        "tensors negative": lambda: shown(data.TensorDataset(*tensors)[-1]),
        "tensors length": lambda: len(data.TensorDataset(*tensors)),
        "tensors mismatch": lambda: data.TensorDataset(tensors[0], t([1])),
        "tensors attribute": lambda: shown(data.TensorDataset(*tensors).tensors),
        "no tensors": lambda: len(data.TensorDataset()),
        "concat": lambda: [data.ConcatDataset([Numbers(2), Numbers(3)])[i] for i in range(-5, 5)],
        "concat beyond": lambda: data.ConcatDataset([Numbers(2)])[2],
        "concat below": lambda: data.ConcatDataset([Numbers(2)])[-3],
        "concat sizes": lambda: (
            data.ConcatDataset([Numbers(2), Numbers(0), Numbers(3)]).cumulative_sizes
        ),
        "concat none": lambda: data.ConcatDataset([]),
        "concat iterable": lambda: data.ConcatDataset([iterable_of(w, 2)]),
        "concat of concat": lambda: list(
            data.DataLoader(Plain() + Plain() + Plain(2), batch_size=None)
        ),
        "concat loaded": lambda: batches(data.DataLoader(Plain() + Plain(), batch_size=4)),
        "chain": lambda: list(iterable_of(w, 2) + iterable_of(w, 3)),
        "chain length": lambda: len(iterable_of(w, 2) + iterable_of(w, 3)),
        "chain of lists": lambda: list(data.ChainDataset([[1], [2]])),
        "chain kind": lambda: type(iterable_of(w, 2) + iterable_of(w, 3)).__name__,
        "chain length unknown": lambda: len(iterable_of(w, 2, False) + iterable_of(w, 3)),
        "subset": lambda: [data.Subset(Numbers(9), [5, 2])[i] for i in range(2)],
        "subset length": lambda: len(data.Subset(Numbers(9), [5, 2])),
        "subset list": lambda: shown(data.Subset(tensors[0], [2, 1])[[0, 1]]),
        "subset items": lambda: data.Subset(Whole(9), [5, 2]).__getitems__([1, 0]),
        "subset of tensors": lambda: shown(data.Subset(data.TensorDataset(*tensors), [2])[0]),
        "subset indices": lambda: shown(data.Subset(Numbers(9), w.package.tensor([5, 2]))[0]),
        "stack": lambda: shown(data.StackDataset(Numbers(3), tensors[0])[1]),
        "stack dict": lambda: shown(data.StackDataset(a=Numbers(3), b=tensors[0])[1]),
        "stack items": lambda: shown(data.StackDataset(Numbers(3), Whole(3)).__getitems__([0, 2])),
        "stack bad items": lambda: data.StackDataset(Numbers(3), Bad(3)).__getitems__([0, 2]),
        "stack both": lambda: data.StackDataset(Numbers(3), b=Numbers(3)),
        "stack none": lambda: data.StackDataset(),
        "stack mismatch": lambda: data.StackDataset(Numbers(3), Numbers(2)),
        "whole batches": lambda: batches(data.DataLoader(Whole(5), batch_size=2)),
        "split": lambda: [len(one) for one in data.random_split(Numbers(10), [3, 7])],
        "split all": lambda: sorted(
            one for part in data.random_split(Numbers(10), [3, 7]) for one in part.indices
        ),
        "split fractions": lambda: [
            len(one) for one in data.random_split(Numbers(11), [0.3, 0.3, 0.4])
        ],
        "split thirds": lambda: [len(one) for one in data.random_split(Numbers(3), [1 / 3] * 3)],
        "split 0": lambda: [len(one) for one in data.random_split(Numbers(3), [0.05, 0.95])],
        "split wrong": lambda: data.random_split(Numbers(10), [3, 6]),
        "split wrong fractions": lambda: data.random_split(Numbers(10), [0.5, 0.4]),
        "split negative": lambda: data.random_split(Numbers(10), [1.5, -0.5]),
        "split one": lambda: [len(one) for one in data.random_split(Numbers(1), [1])],
        "split kind": lambda: type(data.random_split(Numbers(2), [1, 1])[0]).__name__,
        "split indices": lambda: type(data.random_split(Numbers(2), [1, 1])[0].indices).__name__,
        "split same": lambda: (
            data.random_split(Numbers(20), [10, 10], w.package.Generator().manual_seed(1))[
                0
            ].indices
            == data.random_split(Numbers(20), [10, 10], w.package.Generator().manual_seed(1))[
                0
            ].indices
        ),
        "base item": lambda: data.Dataset()[0],
        "base length": lambda: len(data.Dataset()),
        "base iterable": lambda: list(data.IterableDataset()),
        "base iterable item": lambda: data.IterableDataset()[0],
        "subclass": lambda: issubclass(data.IterableDataset, data.Dataset),
        "typed": lambda: str(data.Dataset[int]).split(".")[-1],
    }
    return {name: watched(call) for name, call in made.items()}


# ---- mixed precision ----


@scenario
def autocast_modes(w):
    package = w.package
    made = []

    def state():
        made.append(
            [
                package.is_autocast_enabled("cpu"),
                str(package.get_autocast_dtype("cpu")).split(".")[-1],
                package.is_autocast_cache_enabled(),
            ]
        )

    state()
    with package.autocast("cpu"):
        state()
        with package.autocast("cpu", enabled=False):
            state()
            with package.autocast(device_type="cpu", dtype=package.float16, cache_enabled=False):
                state()
            state()
        state()
    state()
    try:
        with package.autocast("cpu"):
            raise KeyError
    except KeyError:
        state()
    mode = package.amp.autocast("cpu", dtype=package.float16)
    with mode, mode:
        state()
    state()

    @package.autocast("cpu")
    def function(x, *, y=1):
        """Text."""
        state()
        return x @ x

    product = function(package.ones(2, 2))
    made.append([str(product.dtype).split(".")[-1], function.__name__, function.__doc__])
    calls = {
        "float32": lambda: attributes(package.autocast("cpu", dtype=package.float32)),
        "int": lambda: attributes(package.autocast("cpu", dtype=package.int32)),
        "device": lambda: package.autocast("tpu9"),
        "device 5": lambda: package.autocast(5),
        "attributes": lambda: attributes(package.autocast("cpu")),
        "repr": lambda: type(repr(package.autocast("cpu"))).__name__,
        "available": lambda: [package.amp.is_autocast_available(x) for x in ("cpu", "cuda")],
        "any": lambda: package.is_autocast_enabled(),
        "cuda names": lambda: [hasattr(package.cuda.amp, x) for x in ("autocast", "GradScaler")],
        "cpu names": lambda: [hasattr(package.cpu.amp, x) for x in ("autocast", "GradScaler")],
        "nesting": lambda: nesting(package),
        "class method": lambda: decorated(package),
        "generator": lambda: generated(package),
        "gpu": lambda: str(package.get_autocast_gpu_dtype()).split(".")[-1],
        "cpu": lambda: str(package.get_autocast_cpu_dtype()).split(".")[-1],
        "cpu enabled": lambda: package.is_autocast_cpu_enabled(),
        "set": lambda: set_by_hand(package),
        "wrong device": lambda: package.is_autocast_enabled("nothing"),
        "dtype of nothing": lambda: package.get_autocast_dtype("nothing"),
        "ipu": lambda: hasattr(package, "is_autocast_ipu_enabled"),
        "clear": lambda: package.clear_autocast_cache(),
    }
    return {"states": made, **{name: watched(call) for name, call in calls.items()}}


def attributes(mode):
    return [mode.device, str(mode.fast_dtype).split(".")[-1]]


def nesting(package):
    made = [package.autocast_increment_nesting(), package.autocast_increment_nesting()]
    return made + [package.autocast_decrement_nesting(), package.autocast_decrement_nesting()]


def decorated(package):
    class Model(package.nn.Module):
        @package.autocast("cpu")
        def forward(self, x):
            return x @ x

    return str(Model()(package.ones(2, 2)).dtype).split(".")[-1]


def generated(package):
    @package.no_grad()
    @package.autocast("cpu")
    def numbers():
        return package.is_autocast_enabled("cpu")

    return [numbers(), package.is_autocast_enabled("cpu")]


def set_by_hand(package):
    package.set_autocast_enabled("cpu", True)
    made = [package.is_autocast_enabled("cpu")]
    package.set_autocast_dtype("cpu", package.float16)
    made.append(str(package.get_autocast_dtype("cpu")).split(".")[-1])
    package.set_autocast_dtype("cpu", package.bfloat16)
    package.set_autocast_enabled("cpu", False)
    package.set_autocast_cache_enabled(True)
    return made


@scenario
def autocast_types(w):
    """Types of results under autocast, of calls that scripts have."""
    package = w.package
    functional = package.nn.functional
    x, h = package.ones(2, 4), package.ones(2, 4).to(package.bfloat16)
    layer, norm = package.nn.Linear(4, 4), package.nn.LayerNorm(4)
    image, conv = package.ones(1, 2, 5, 5), package.nn.Conv2d(2, 3, 3)
    index = package.tensor([0, 1])
    calls = {
        "linear": lambda: layer(x),
        "linear half": lambda: layer(h),
        "linear double": lambda: layer(x.double()),
        "matmul": lambda: x @ x.T,
        "matmul mixed": lambda: x @ h.T,
        "mm": lambda: package.mm(x, x.T),
        "addmm": lambda: package.addmm(package.ones(2, 2), x, x.T),
        "bmm": lambda: package.bmm(x[None], x.T[None]),
        "baddbmm": lambda: package.baddbmm(package.ones(1, 2, 2), x[None], x.T[None]),
        "einsum": lambda: package.einsum("ij,kj->ik", x, x),
        "conv": lambda: conv(image),
        "norm": lambda: norm(x),
        "norm half": lambda: norm(h),
        "softmax": lambda: h.softmax(-1),
        "log_softmax": lambda: functional.log_softmax(h, -1),
        "gelu": lambda: functional.gelu(h),
        "relu": lambda: functional.relu(h),
        "cross_entropy": lambda: functional.cross_entropy(h, index),
        "mse": lambda: functional.mse_loss(h, h),
        "mse mixed": lambda: functional.mse_loss(h, x),
        "bce": lambda: functional.binary_cross_entropy_with_logits(h, h),
        "bce plain": lambda: functional.binary_cross_entropy(x.sigmoid(), x.sigmoid()),
        "bce half": lambda: functional.binary_cross_entropy(h.sigmoid(), h.sigmoid()),
        "sum": lambda: h.sum(),
        "mean": lambda: h.mean(),
        "prod": lambda: h.prod(),
        "cumsum": lambda: h.cumsum(0),
        "exp": lambda: h.exp(),
        "pow": lambda: h**2,
        "norm2": lambda: h.norm(),
        "add": lambda: h + x,
        "cat": lambda: package.cat([h, x]),
        "stack": lambda: package.stack([h, x]),
        "where": lambda: package.where(h > 0, h, h),
        "attention": lambda: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
        "embedding": lambda: functional.embedding(index, x),
        "dropout": lambda: functional.dropout(h, 0.5),
        "pool": lambda: functional.avg_pool2d(image, 2),
        "max pool": lambda: functional.max_pool2d(image.bfloat16(), 2),
        "interpolate": lambda: functional.interpolate(image, scale_factor=2),
        "gru": lambda: package.nn.GRU(4, 3)(x[None])[0],
        "lstm": lambda: package.nn.LSTM(4, 3)(x[None])[0],
        "multihead": lambda: package.nn.MultiheadAttention(4, 2)(x[None], x[None], x[None])[0],
        "batch norm": lambda: package.nn.BatchNorm1d(4)(h),
        "group norm": lambda: functional.group_norm(image.bfloat16(), 1),
        "layer norm function": lambda: functional.layer_norm(h, (4,)),
        "rms norm": lambda: package.nn.RMSNorm(4)(h),
        "cdist": lambda: package.cdist(x, x),
        "outer": lambda: package.outer(x[0], x[0]),
        "dot": lambda: package.dot(x[0], x[0]),
        "mv": lambda: package.mv(x, x[0]),
        "in place": lambda: package.ones(2, 2).addmm_(x, x.T),
        "inverse": lambda: package.linalg.inv(package.eye(3)),
        "det": lambda: package.linalg.det(package.eye(3).bfloat16()),
        "std": lambda: h.std(),
        "smooth": lambda: functional.smooth_l1_loss(h, h),
        "l1": lambda: functional.l1_loss(h, h),
        "kl": lambda: functional.kl_div(h, h),
        "nll": lambda: functional.nll_loss(h, index),
        "cosine": lambda: functional.cosine_similarity(h, h),
        "triplet": lambda: functional.triplet_margin_loss(h, h, h),
        "tanh": lambda: h.tanh(),
        "prelu": lambda: functional.prelu(h, package.ones(1)),
        "silu": lambda: functional.silu(h),
        "bilinear": lambda: functional.bilinear(x, x, package.ones(3, 4, 4)),
        "chain": lambda: (
            package.chain_matmul(x, x.T, x) if hasattr(package, "chain_matmul") else x.bfloat16()
        ),
        "multi_dot": lambda: package.linalg.multi_dot([x, x.T, x]),
        "tensordot": lambda: package.tensordot(x, x, dims=([1], [1])),
        "unfold": lambda: functional.unfold(image, 2),
        "pad": lambda: functional.pad(h, (1, 1), mode="constant"),
        "pad reflect": lambda: functional.pad(image.bfloat16(), (1, 1), mode="reflect"),
    }
    made = {}
    for name, call in calls.items():
        for dtype in ("bfloat16", "float16"):

            def run(call=call, dtype=dtype):
                with package.autocast("cpu", dtype=getattr(package, dtype)):
                    return str(call().dtype).split(".")[-1]

            made[f"{name} {dtype}"] = watched(run)
    return made


@scenario
def custom_functions(w):
    package = w.package
    made = []

    class Product(package.autograd.Function):
        @staticmethod
        @package.amp.custom_fwd(device_type="cpu", cast_inputs=package.float32)
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            made.append([str(x.dtype).split(".")[-1], package.is_autocast_enabled("cpu")])
            return x @ y

        @staticmethod
        @package.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            made.append([str(grad.dtype).split(".")[-1], package.is_autocast_enabled("cpu")])
            return grad @ y.T, x.T @ grad

    class Plain(Product):
        @staticmethod
        @package.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, y):
            return Product.forward.__wrapped__(ctx, x, y)

    for kind in (Product, Plain):
        for is_on in (True, False):
            x = package.ones(2, 2, requires_grad=True)
            with package.autocast("cpu", enabled=is_on):
                result = kind.apply(x, x.bfloat16() if kind is Product else x)
            result.sum().backward()
            made.append([str(result.dtype).split(".")[-1], seen(x.grad)])
    calls = {
        "device": lambda: package.amp.custom_fwd(device_type=5),
        "no device": lambda: package.amp.custom_fwd(lambda: 1),
        "old": lambda: package.cuda.amp.custom_fwd(lambda: 1).__name__,
    }
    return {"seen": made, **{name: watched(call) for name, call in calls.items()}}


@scenario
def scaling(w):
    package = w.package

    def fresh(**options):
        x = package.ones(3, requires_grad=True)
        sgd = package.optim.SGD([x], lr=0.5, **options)
        return x, sgd, package.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    def plain_steps(fused=None):
        x, sgd, scaler = fresh(fused=fused)
        made = []
        for factor in (1.0, 2.0, float("inf"), 1.0, float("nan"), 1.0, 1.0, 1.0):
            sgd.zero_grad()
            scaler.scale((x * factor).sum()).backward()
            given = scaler.step(sgd)
            scaler.update()
            made.append([seen(x), scaler.get_scale(), given, seen(scaler.state_dict())])
        return made

    def clipped():
        x, sgd, scaler = fresh()
        scaler.scale((x * 10).sum()).backward()
        scaler.unscale_(sgd)
        norm = package.nn.utils.clip_grad_norm_([x], 1.0)
        scaler.step(sgd)
        scaler.update()
        return [seen(norm), seen(x)]

    def several():
        x, sgd, scaler = fresh()
        y, other, _ = fresh()
        scaler.scale((x * float("inf")).sum() + y.sum()).backward()
        scaler.step(sgd)
        scaler.step(other)
        scaler.update()
        return [seen(x), seen(y), scaler.get_scale()]

    def with_closure():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum()).backward()
        return scaler.step(sgd, closure=lambda: 1)

    def positional():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum()).backward()
        return scaler.step(sgd, lambda: 5)

    def twice(first, second):
        def call():
            x, sgd, scaler = fresh()
            scaler.scale(x.sum()).backward()
            getattr(scaler, first)(sgd)
            getattr(scaler, second)(sgd)

        return call

    def before(name):
        def call():
            _, sgd, scaler = fresh()
            return getattr(scaler, name)(sgd) if name != "update" else scaler.update()

        return call

    def nothing():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum())
        return scaler.step(sgd)

    def update_only():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum()).backward()
        return scaler.update()

    def new_scales():
        made = []
        for value in (4.0, package.tensor(2.0), package.tensor([3.0]), 5):

            def one(value=value):
                x, _, scaler = fresh()
                scaler.scale(x.sum())
                scaler.update(value)
                return scaler.get_scale()

            made.append(watched(one))
        return made

    def off():
        x, sgd, _ = fresh()
        scaler = package.amp.GradScaler("cpu", enabled=False)
        x.sum().backward()
        made = [seen(scaler.scale(x)), scaler.step(sgd), scaler.update(), scaler.get_scale()]
        made += [scaler.is_enabled(), scaler.state_dict(), scaler.unscale_(sgd)]
        made += [scaler.load_state_dict({"a": 1})]
        return [*made, seen(x)]

    def loads(state):
        def call():
            scaler = package.amp.GradScaler("cpu")
            scaler.load_state_dict(state)
            return [scaler.get_scale(), seen(scaler.state_dict())]

        return call

    def half():
        x = package.ones(2, dtype=package.float16, requires_grad=True)
        sgd = package.optim.SGD([x], lr=0.5)
        scaler = package.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(x.sum()).backward()
        return scaler.step(sgd)

    state = {"scale": 4.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 9}
    state["_growth_tracker"] = 2

    def lists():
        x, _, scaler = fresh()
        made = scaler.scale([x, (x, [x])])
        return [shown(made), type(scaler.scale(iter([x]))).__name__]

    calls = {
        "steps": plain_steps,
        "fused steps": lambda: plain_steps(True),
        "clipped": clipped,
        "several": several,
        "closure": with_closure,
        "positional": positional,
        "unscale twice": twice("unscale_", "unscale_"),
        "step twice": twice("step", "step"),
        "unscale after step": twice("step", "unscale_"),
        "unscale before scale": before("unscale_"),
        "step before scale": before("step"),
        "update before scale": before("update"),
        "no gradients": nothing,
        "update only": update_only,
        "new scales": new_scales,
        "off": off,
        "load": loads(state),
        "load nothing": loads({}),
        "load less": loads({"scale": 1.0}),
        "half": half,
        "lists": lists,
        "number": lambda: fresh()[2].scale(5),
        "growth": lambda: package.amp.GradScaler("cpu", growth_factor=1.0),
        "backoff": lambda: package.amp.GradScaler("cpu", backoff_factor=1.0),
        "device": lambda: package.amp.GradScaler("cuda").is_enabled(),
        "default": lambda: package.amp.GradScaler().is_enabled(),
        "old": lambda: package.cuda.amp.GradScaler().is_enabled(),
        "pickle": lambda: seen(pickle.loads(pickle.dumps(fresh()[2])).state_dict()),
        "settings": lambda: settings(fresh()[2]),
    }
    return {name: watched(call) for name, call in calls.items()}


def settings(scaler):
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    made = [scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()]
    return [*made, scaler.get_scale(), scaler._get_growth_tracker()]


# ---- files ----


def values_of_files(w):
    """What scripts save."""
    package, t = w.package, w.package.tensor
    base = package.arange(12.0)
    torch.manual_seed(0)
    model = package.nn.Sequential(package.nn.Linear(3, 2), package.nn.BatchNorm1d(2))
    for parameter in model.parameters():
        parameter.data.fill_(0.5)
    optimizers = {}
    for name, options in (("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True})):
        optimizer = getattr(package.optim, name)(model.parameters(), lr=0.1, **options)
        for parameter in model.parameters():
            parameter.grad = package.ones_like(parameter)
        optimizer.step()
        optimizers[name] = optimizer.state_dict()
    schedule = package.optim.lr_scheduler.MultiStepLR(
        package.optim.SGD(model.parameters(), lr=0.1), [3, 5]
    )
    return {
        "number": 5,
        "float": 0.1,
        "infinity": [float("inf"), -float("inf"), -0.0],
        "text": "a\n\u00e9\U0001f600",
        "bytes": b"\x00\xff",
        "none": None,
        "booleans": [True, False],
        "large": [2**63, -(2**70), 10**100],
        "tensor": t([1.0, 2.0]),
        "scalar": t(3),
        "empty": package.zeros(0, 3),
        "strided": base.view(3, 4).T,
        "view": base[3:7],
        "expanded": package.ones(1).expand(4),
        "parameter": package.nn.Parameter(t([1.0])),
        "frozen": package.nn.Parameter(t([1.0]), requires_grad=False),
        "leaf": t([1.0], requires_grad=True),
        "result": t([1.0], requires_grad=True) * 2,
        "buffer": package.nn.Buffer(t([1.0])),
        "parameter list": [package.nn.Parameter(t([1.0]))],
        "dtypes": {
            name: package.ones(3).to(getattr(package, name))
            for name in (
                *("float16", "bfloat16", "float32", "float64", "uint8", "int8"),
                *("int16", "int32", "int64", "bool"),
            )
        },
        "nested": {"a": [1, (2, {"b": t([1.0])})], 3: "x", None: 1, 1.5: 2, True: 3},
        "tuple keys": {(1, "a"): 2},
        "tuple": (1, (2,), ()),
        "ordered": OrderedDict([("b", 1), ("a", t([1.0]))]),
        "counter": Counter("aab"),
        "set": {1, 2},
        "frozen set": frozenset({1}),
        "default dict": defaultdict(list, a=[1]),
        "dtype": package.float16,
        "device": package.device("cpu"),
        "size": package.ones(2, 3).shape,
        "range": range(3),
        "slice": slice(1, 2),
        "complex": 1 + 2j,
        "bytearray": bytearray(b"abc"),
        "array": np.arange(3),
        "array number": np.float64(1.5),
        "array integer": np.int64(2),
        "path": pathlib.PurePosixPath("/a"),
        "function": print,
        "object": Pair(1, 2),
        "record": Record(1),
        "model state": model.state_dict(),
        "optimizers": optimizers,
        "schedule": schedule.state_dict(),
        "all": {
            "model": model.state_dict(),
            "epoch": 3,
            "best": 0.5,
            "optimizer": optimizers["Adam"],
        },
        "model": model,
        "generator": package.Generator().manual_seed(1).get_state(),
        "shared": [base, base[2:5], base.view(3, 4)],
        "twice": (lambda x: [x, x])(t([1.0])),
        "same list": (lambda x: [x, x])([1]),
    }


def loaded(value):
    """What came back, with classes."""
    made = shown(value)
    return simplified(made)


def simplified(value):
    if isinstance(value, dict):
        return {key: simplified(one) for key, one in value.items()}
    if isinstance(value, list):
        return [simplified(one) for one in value]
    if isinstance(value, (torch.Tensor, genesis.Tensor)):
        is_parameter = type(value).__name__ == "Parameter"
        return {"tensor": Seen(value), "strides": value.stride(), "parameter": is_parameter}
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, *sorted(value)]
    if isinstance(value, (int, float, str, bytes, type(None), bool)):
        return value
    return f"{type(value).__name__}: {plain(str(value))}"


@scenario
def files(w):
    """Saved and loaded by the same package."""
    package = w.package
    made = {}
    for name, value in values_of_files(w).items():

        def run(value=value):
            file = io.BytesIO()
            package.save(value, file)
            file.seek(0)
            return loaded(package.load(file))

        made[name] = watched(run)

    def shares():
        file = io.BytesIO()
        base = package.arange(12.0)
        package.save({"a": base, "b": base[2:5], "c": base.view(3, 4)}, file)
        file.seek(0)
        back = package.load(file)
        back["a"][3] = 100
        return [seen(back["b"]), seen(back["c"]), back["a"].data_ptr() == back["c"].data_ptr()]

    def places(**options):
        def call():
            path = pathlib.Path(tempfile.mkdtemp(), "file")
            package.save({"a": package.ones(2), "n": 1}, path)
            return loaded(package.load(path, **options))

        return call

    def missing():
        return package.load("/no/such/file")

    def missing_folder():
        return package.save({"a": 1}, "/no/such/folder/file")

    def text_file():
        return package.load(io.StringIO("abc"))

    def truncated(count):
        def call():
            file = io.BytesIO()
            package.save({"a": package.ones(200)}, file)
            return package.load(io.BytesIO(file.getvalue()[:count]))

        return call

    def one_after_the_other():
        file = io.BytesIO()
        package.save(package.ones(2), file)
        package.save({"b": 1}, file)
        file.seek(0)
        return [loaded(package.load(file)), loaded(package.load(file))]

    def closed():
        file = io.BytesIO()
        file.close()
        package.save({}, file)

    calls = {
        "shares": shares,
        "place none": places(),
        "place text": places(map_location="cpu"),
        "place device": places(map_location=package.device("cpu")),
        "place dict": places(map_location={"cuda:0": "cpu"}),
        "place function": places(map_location=lambda storage, where: storage),
        "place function none": places(map_location=lambda storage, where: None),
        "place words": places(map_location="no such"),
        "place number": places(map_location=1.5),
        "cuda": places(map_location="cuda"),
        "mapped": places(mmap=True),
        "weights": places(weights_only=True),
        "no weights": places(weights_only=False),
        "missing": missing,
        "missing folder": missing_folder,
        "text": text_file,
        "directory": lambda: package.load("/tmp"),
        "nothing": truncated(0),
        "five bytes": truncated(5),
        "half": truncated(500),
        "one after the other": one_after_the_other,
        "closed": closed,
        "no argument": lambda: package.save({}),
        "none": lambda: package.save({}, None),
        "path": lambda: package.save({}, 5),
    }
    return {**made, **{f"{name}!": watched(call) for name, call in calls.items()}}


@scenario
def files_of_torch(w):
    """Written by PyTorch, in both layouts, and read by each."""
    made = {}
    for is_zip in (True, False):
        for name, value in values_of_files(World(torch)).items():

            def run(value=value, is_zip=is_zip):
                file = io.BytesIO()
                torch.save(value, file, _use_new_zipfile_serialization=is_zip)
                file.seek(0)
                return loaded(w.package.load(file))

            made[f"{name}, {'zip' if is_zip else 'legacy'}"] = watched(run)
    return made


@scenario
def states_across(w):
    """A state dict of PyTorch's optimizers and models from a file, used here."""
    made = {}
    for name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "LBFGS"):

        def run(name=name):
            source = World(torch)
            x = torch.ones(3, requires_grad=True)
            options = {"momentum": 0.9} if name == "SGD" else {}
            theirs = getattr(torch.optim, name)([x], lr=0.1, **options)

            def closure():
                theirs.zero_grad()
                loss = (x * x * x).sum()
                loss.backward()
                return loss

            theirs.step(closure)
            file = io.BytesIO()
            torch.save({"optimizer": theirs.state_dict(), "x": x.detach()}, file)
            file.seek(0)
            state = w.package.load(file)
            y = state["x"].requires_grad_()
            ours = getattr(w.package.optim, name)([y], lr=0.5, **options)
            ours.load_state_dict(state["optimizer"])

            def again():
                ours.zero_grad()
                loss = (y * y * y).sum()
                loss.backward()
                return loss

            ours.step(again)
            del source
            return [seen(y), seen(ours.state_dict())]

        made[name] = watched(run)
    return made


# ---- helpers of models ----


@scenario
def helpers(w):
    package = w.package
    utils, t = package.nn.utils, package.tensor

    def with_gradients(*values):
        params = [package.zeros(len(one)).requires_grad_() for one in values]
        for param, one in zip(params, values, strict=True):
            param.grad = t(one)
        return params

    def clip(function, *given, **options):
        def call():
            params = with_gradients([3.0, 4.0], [12.0])
            params.append(package.zeros(2).requires_grad_())
            norm = getattr(utils, function)(params, *given, **options)
            return [seen(norm), seen([one.grad for one in params])]

        return call

    def clip_odd(*given, **options):
        def call():
            params = with_gradients([float("nan"), 1.0], [float("inf")])
            norm = utils.clip_grad_norm_(params, *given, **options)
            return [seen(norm), seen([one.grad for one in params])]

        return call

    def checkpointed(**options):
        def call():
            x = t([2.0, 3.0], requires_grad=True)
            y = package.utils.checkpoint.checkpoint(lambda x, k=1: (x * x * k).sin(), x, **options)
            y.sum().backward()
            return [seen(y), seen(x.grad)]

        return call

    def sequential(count, segments):
        def call():
            x = t([2.0, 3.0], requires_grad=True)
            steps = [package.sin for _ in range(count)]
            y = package.utils.checkpoint.checkpoint_sequential(
                steps, segments, x, use_reentrant=False
            )
            y.sum().backward()
            return [seen(y), seen(x.grad)]

        return call

    def normed(make, **options):
        def call():
            layer = package.nn.Linear(3, 2)
            layer.weight.data.copy_(package.arange(6.0).view(2, 3))
            layer.bias.data.zero_()
            layer = make(layer, **options)
            made = layer(package.ones(1, 3))
            made.sum().backward()
            state = {
                key: seen(one)
                for key, one in layer.state_dict().items()
                if key[-2:] not in ("_u", "_v")
            }
            return [state, seen(made), repr(layer)]

        return call

    def fused():
        conv, norm = package.nn.Conv2d(1, 2, 1), package.nn.BatchNorm2d(2)
        conv.weight.data.fill_(0.5)
        conv.bias.data.fill_(0.25)
        norm.running_mean.fill_(0.5)
        made = utils.fusion.fuse_conv_bn_eval(conv.eval(), norm.eval())
        return seen(made(package.ones(1, 1, 2, 2)))

    calls = {
        "clip": clip("clip_grad_norm_", 1.0),
        "clip inf": clip("clip_grad_norm_", 1.0, "inf"),
        "clip infinity": clip("clip_grad_norm_", 1.0, float("inf")),
        "clip 1": clip("clip_grad_norm_", 2, 1),
        "clip 0": clip("clip_grad_norm_", 2, 0),
        "clip large": clip("clip_grad_norm_", 100.0),
        "clip 0.0": clip("clip_grad_norm_", 0.0),
        "clip foreach": clip("clip_grad_norm_", 1.0, foreach=True),
        "clip value": clip("clip_grad_value_", 3.5),
        "clip value 0": clip("clip_grad_value_", 0),
        "clip odd": clip_odd(1.0),
        "clip odd error": clip_odd(1.0, error_if_nonfinite=True),
        "clip old": clip("clip_grad_norm", 1.0),
        "clip one": lambda: seen(utils.clip_grad_norm_(with_gradients([3.0])[0], 1.0)),
        "clip none": lambda: seen(utils.clip_grad_norm_([], 1.0)),
        "clip generator": lambda: seen(utils.clip_grad_norm_((x for x in []), 1.0)),
        "clip without": lambda: seen(utils.clip_grad_norm_([package.ones(2)], 1.0)),
        "clip text": lambda: utils.clip_grad_norm_(with_gradients([3.0]), "a"),
        "norm": lambda: seen(utils.get_total_norm([t([3.0]), t([4.0])])),
        "vector": lambda: seen(utils.parameters_to_vector([package.ones(2, 2), t([3.0])])),
        "vector of none": lambda: utils.parameters_to_vector([]),
        "checkpoint": checkpointed(use_reentrant=False),
        "checkpoint reentrant": checkpointed(use_reentrant=True),
        "checkpoint unsaid": checkpointed(),
        "checkpoint keyword": checkpointed(use_reentrant=False, k=2),
        "checkpoint keyword reentrant": checkpointed(use_reentrant=True, k=2),
        "checkpoint state": checkpointed(use_reentrant=False, preserve_rng_state=False),
        "checkpoint check": checkpointed(use_reentrant=False, determinism_check="none"),
        "checkpoint wrong": checkpointed(use_reentrant=False, determinism_check="x"),
        "sequential 4 2": sequential(4, 2),
        "sequential 3 2": sequential(3, 2),
        "sequential 2 3": sequential(2, 3),
        "sequential 1 1": sequential(1, 1),
        "weight norm": normed(utils.weight_norm),
        "weight norm none": normed(utils.weight_norm, dim=None),
        "weight norm new": normed(utils.parametrizations.weight_norm),
        "spectral norm new": normed(utils.parametrizations.spectral_norm),
        "spectral norm": lambda: normed(utils.spectral_norm)(),
        "orthogonal": lambda: orthogonal(package),
        "fused": fused,
        "skip init": lambda: type(utils.skip_init(package.nn.Linear, 2, 2)).__name__,
        "stateless": lambda: seen(
            utils.stateless.functional_call(
                package.nn.Linear(1, 1), {"weight": t([[2.0]]), "bias": t([1.0])}, t([[3.0]])
            )
        ),
        "pruned": lambda: pruned(package),
    }
    return {name: watched(call) for name, call in calls.items()}


def orthogonal(package):
    layer = package.nn.utils.parametrizations.orthogonal(package.nn.Linear(3, 3))
    product = layer.weight @ layer.weight.T
    return bool((product - package.eye(3)).abs().max() < 1e-5)


def pruned(package):
    layer = package.nn.Linear(4, 2)
    package.nn.utils.prune.l1_unstructured(layer, "weight", amount=0.5)
    return [sorted(layer.state_dict()), int((layer.weight == 0).sum())]


@scenario
def first_values(w):
    package = w.package
    init = package.nn.init

    def spread(name, *given, shape=(200, 300), **options):
        def call():
            made = getattr(init, name)(package.empty(*shape), *given, **options)
            mean, std = float(made.mean()), float(made.std())
            most = float(made.abs().max())
            return [f"{mean:.2f}".replace("-0.00", "0.00"), f"{std:.2f}", most < 5 * std + 1e-9]

        return call

    calls = {
        "uniform": spread("uniform_", -1, 3),
        "uniform default": spread("uniform_"),
        "normal": spread("normal_", 2, 3),
        "trunc": spread("trunc_normal_", 0, 1, -1, 1),
        "trunc tail": spread("trunc_normal_", 0, 1, 2, 3),
        "xavier": spread("xavier_uniform_"),
        "xavier gain": spread("xavier_normal_", gain=5),
        "kaiming": spread("kaiming_uniform_"),
        "kaiming relu": spread("kaiming_normal_", mode="fan_out", nonlinearity="relu"),
        "kaiming a": spread("kaiming_uniform_", 5**0.5),
        "kaiming conv": spread("kaiming_normal_", shape=(100, 50, 3, 3)),
        "kaiming mode": spread("kaiming_normal_", mode="no"),
        "kaiming word": spread("kaiming_normal_", nonlinearity="no"),
        "kaiming vector": spread("kaiming_normal_", shape=(3,)),
        "kaiming empty": lambda: tuple(init.kaiming_normal_(package.empty(0, 3)).shape),
        "xavier vector": spread("xavier_normal_", shape=(3,)),
        "constant": lambda: init.constant_(package.empty(2), 0.3),
        "ones": lambda: init.ones_(package.empty(2)),
        "zeros": lambda: init.zeros_(package.empty(2)),
        "eye": lambda: init.eye_(package.empty(2, 3)),
        "eye vector": lambda: init.eye_(package.empty(2)),
        "dirac": lambda: init.dirac_(package.empty(3, 2, 3, 3)),
        "dirac groups": lambda: init.dirac_(package.empty(4, 2, 3), 2),
        "dirac wrong": lambda: init.dirac_(package.empty(3, 2, 3), 2),
        "dirac matrix": lambda: init.dirac_(package.empty(3, 2)),
        "orthogonal": lambda: orthogonal_init(package),
        "orthogonal vector": lambda: init.orthogonal_(package.empty(3)),
        "sparse": lambda: (init.sparse_(package.empty(10, 4), 0.25) == 0).sum(0),
        "sparse cube": lambda: init.sparse_(package.empty(2, 2, 2), 0.5),
        "gains": lambda: [
            init.calculate_gain(name)
            for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")
        ],
        "gain": lambda: init.calculate_gain("leaky_relu", 0.5),
        "gain wrong": lambda: init.calculate_gain("gelu"),
        "gain text": lambda: init.calculate_gain("leaky_relu", "a"),
        "gain true": lambda: init.calculate_gain("leaky_relu", True),
        "old uniform": lambda: init.xavier_uniform(package.empty(2, 2)) is not None,
        "old normal": lambda: init.normal(package.empty(2, 2)) is not None,
        "old kaiming": lambda: init.kaiming_normal(package.empty(2, 2)) is not None,
        "generator": lambda: [
            init.normal_(package.empty(2), generator=package.Generator().manual_seed(1)).tolist()
            == init.normal_(package.empty(2), generator=package.Generator().manual_seed(1)).tolist()
        ],
        "fans": lambda: init._calculate_fan_in_and_fan_out(package.empty(4, 3, 5)),
        "parameter": lambda: init.ones_(package.nn.Parameter(package.empty(2))).requires_grad,
        "integer": lambda: init.constant_(package.empty(2, dtype=package.int64), 3),
        "half": lambda: str(
            init.kaiming_uniform_(package.empty(2, 2, dtype=package.bfloat16)).dtype
        )[-8:],
    }
    return {name: watched(call) for name, call in calls.items()}


def orthogonal_init(package):
    made = package.nn.init.orthogonal_(package.empty(3, 5), gain=2)
    return bool((made @ made.T - 4 * package.eye(3)).abs().max() < 1e-4)


@scenario
def averages(w):
    package = w.package
    swa = package.optim.swa_utils

    def averaged(count=4, **options):
        def call():
            model = package.nn.Sequential(package.nn.Linear(2, 2), package.nn.BatchNorm1d(2))
            for one in model.parameters():
                one.data.fill_(0.0)
            given = {key: one(swa) if callable(one) else one for key, one in options.items()}
            average = swa.AveragedModel(model, **given)
            for number in range(count):
                for one in model.parameters():
                    one.data.fill_(float(number**2))
                model[1].running_mean.fill_(number)
                model[1].num_batches_tracked.fill_(number * 10)
                average.update_parameters(model)
            state = average.state_dict()
            other = swa.AveragedModel(model, **given)
            other.load_state_dict(state)
            return [seen(dict(state)), repr(average), seen(dict(other.state_dict()))]

        return call

    def batch_norms(loader, momentum=0.1):
        def call():
            model = package.nn.Sequential(package.nn.BatchNorm1d(2, momentum=momentum))
            model.eval()
            swa.update_bn(loader(), model)
            return [seen(dict(model.state_dict())), model.training, model[0].momentum]

        return call

    def data():
        return [package.arange(8.0).view(4, 2), package.arange(6.0).view(3, 2) * 2]

    calls = {
        "plain": averaged(),
        "buffers": averaged(use_buffers=True),
        "ema": averaged(multi_avg_fn=lambda s: s.get_ema_multi_avg_fn(0.9)),
        "ema buffers": averaged(
            multi_avg_fn=lambda s: s.get_ema_multi_avg_fn(0.9), use_buffers=True
        ),
        "ema one": averaged(avg_fn=lambda s: s.get_ema_avg_fn(0.9)),
        "swa one": averaged(avg_fn=lambda s: s.get_swa_avg_fn()),
        "swa": averaged(multi_avg_fn=lambda s: s.get_swa_multi_avg_fn(), use_buffers=True),
        "both": averaged(
            avg_fn=lambda s: s.get_swa_avg_fn(), multi_avg_fn=lambda s: s.get_swa_multi_avg_fn()
        ),
        "decay": lambda: swa.get_ema_avg_fn(1.5),
        "decay multi": lambda: swa.get_ema_multi_avg_fn(-0.5),
        "norms": batch_norms(data),
        "norms of pairs": batch_norms(lambda: [(one, 1) for one in data()]),
        "norms without momentum": batch_norms(data, None),
        "norms of dicts": batch_norms(lambda: [{"a": 1}]),
        "no norms": lambda: swa.update_bn([1], package.nn.Linear(1, 1)),
        "swalr": lambda: swa.SWALR(
            package.optim.SGD([package.ones(1)], 0.1), 0.5, anneal_strategy="x"
        ),
        "swalr epochs": lambda: swa.SWALR(
            package.optim.SGD([package.ones(1)], 0.1), 0.5, anneal_epochs=-1
        ),
        "swalr float": lambda: swa.SWALR(
            package.optim.SGD([package.ones(1)], 0.1), 0.5, anneal_epochs=1.5
        ),
    }
    return {name: watched(call) for name, call in calls.items()}


# ---- names and signatures ----

MODULES = [
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "optim.optimizer",
    "amp",
    "utils.data",
    "utils.checkpoint",
    "nn.utils",
    "nn.utils.rnn",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.utils.clip_grad",
    "nn.init",
    "utils.data.distributed",
    "utils.data.dataloader",
    "utils.data.dataset",
    "utils.data.sampler",
    "cuda.amp",
    "cpu.amp",
    "amp.grad_scaler",
    "amp.autocast_mode",
]


@scenario
def names(w):
    """Public names of modules, and the arguments of what they name."""
    from importlib import import_module
    from inspect import isclass, isfunction, signature

    made = {}
    for path in MODULES:
        theirs = import_module(f"torch.{path}")
        try:
            module = import_module(f"{w.package.__name__}.{path}")
        except ImportError:
            made[path] = "missing"
            continue
        wanted = getattr(theirs, "__all__", None) or [x for x in dir(theirs) if x[0] != "_"]
        for name in wanted:
            if type(getattr(theirs, name, None)).__name__ == "module":
                continue
            value = getattr(module, name, None)
            if value is None:
                made[f"{path}.{name}"] = "missing"
                continue
            if isfunction(value) or isclass(value):
                try:
                    given = signature(value).parameters.values()
                except ValueError:
                    continue
                made[f"{path}.{name}"] = [
                    f"{one.name}={plain(repr(one.default))}"
                    if one.default is not one.empty
                    else one.name
                    for one in given
                ]
            if isclass(value) and isclass(getattr(theirs, name)):
                methods = [x for x in dir(getattr(theirs, name)) if x[0] != "_"]
                for method in methods:
                    found = getattr(value, method, None)
                    try:
                        made[f"{path}.{name}.{method}"] = (
                            list(signature(found).parameters)
                            if callable(found)
                            else "value"
                            if found is not None
                            else "none"
                        )
                    except ValueError:
                        made[f"{path}.{name}.{method}"] = "none"
    return made


# ---- all of it ----


def known(name, line, text):
    for names_of, lines, what, why in KNOWN:
        is_named = fnmatch.fnmatch(name, names_of) and fnmatch.fnmatch(line, lines)
        if is_named and re.search(what, text):
            return why
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--verbose", action="store_true", help="what is known, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    for name, function in SCENARIOS.items():
        if not any(fnmatch.fnmatch(name, one) for one in options.patterns):
            continue
        sides = [watched(lambda w=w: function(w)) for w in (World(torch), World(genesis))]
        theirs, ours = (side.get("gives", side) for side in sides)
        lines = theirs if isinstance(theirs, dict) else {"all": theirs}
        mine = ours if isinstance(ours, dict) else {"all": ours}
        for line, value in lines.items():
            found = difference(value, mine.get(line, "nothing"), None)
            why = known(name, line, found) if found else None
            total["same" if not found else "known" if why else "different"] += 1
            if found and (not why or options.verbose):
                print(f"{name}: {line}\n    {found[:600]}", flush=True)
    print(dict(total))
    return int(total["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
