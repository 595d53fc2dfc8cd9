"""Data in PyTorch and in Genesis: batches, samplers, datasets, loaders and their workers.

The scenarios of programs_suite.py.
"""

from __future__ import annotations

import os
import pathlib
import pickle
import re
import tempfile
import typing
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np
from optimizers_suite import seen, watched
from programs_parts import Pair, Record, scenario, shown

# ---- data ----


class Typed(typing.NamedTuple):
    x: object
    y: int


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


OPTIONS = [
    {},
    {"batch_size": 2},
    {"batch_size": 2, "drop_last": True},
    {"batch_size": None},
    {"batch_size": 10},
    {"batch_size": 10, "drop_last": True},
]


@scenario
def loading(w):
    made = {}
    for workers in (0, 2):
        for count in (0, 1, 5, 6):
            samplers = [
                {"sampler": [0] * min(count, 3)},
                {"batch_sampler": [[0, 0], [0]] if count else []},
            ]
            for options in [*OPTIONS, *samplers]:
                given = {"num_workers": workers, **options}
                name = f"{count} samples, {given}"
                made[name] = loaded(w, Numbers(count), given, True)
                if options in OPTIONS:
                    stream = iterable_of(w, count)
                    made[f"iterable, {name}"] = loaded(w, stream, given, True)
                    stream = iterable_of(w, count, False)
                    made[f"iterable without length, {name}"] = loaded(w, stream, given, False)
    return made


def loaded(w, data, options, has_length):
    loader_of = w.package.utils.data.DataLoader
    return watched(lambda: looked_at(loader_of(data, **options), has_length))


def looked_at(loader, has_length=True):
    made = {"batches": batches(loader), "again": batches(loader)}
    if has_length:
        made["length"] = len(loader)
        if loader.collate_fn is not None and not hasattr(loader.dataset, "__iter__"):
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
    made["init"] = sorted(one.name for one in pathlib.Path(said).iterdir())
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
