"""genesis.utils.data without workers: datasets, samplers, batches, and arguments of DataLoader."""

from __future__ import annotations

import collections
import importlib
import math
import pickle
import types
import warnings

import numpy
import pytest

import genesis
from genesis.utils import data
from genesis.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)

POINT = collections.namedtuple("POINT", "x y")  # noqa: PYI024


class Numbers(IterableDataset):
    def __init__(self, count, length=None):
        self.count = count
        if length is not None:
            self.length = length

    def __iter__(self):
        return iter(range(self.count))


class Sized(Numbers):
    def __len__(self):
        return self.length


def seeded(number=3):
    return genesis.Generator().manual_seed(number)


# ---- datasets ----


def test_tensor_datasets():
    numbers, rows = genesis.arange(5), genesis.rand(5, 2, 3)
    dataset = TensorDataset(numbers, rows)
    assert len(dataset) == 5 and dataset.tensors == (numbers, rows)
    number, row = dataset[3]
    assert number.item() == 3 and row.tolist() == rows[3].tolist()
    assert dataset[-1][0].item() == 4
    with pytest.raises(IndexError):
        dataset[5]
    with pytest.raises(ValueError, match=r"size mismatch between tensors: \[5, 4\]"):
        TensorDataset(numbers, rows[:4])
    with pytest.raises(ValueError, match="there must be a tensor"):
        TensorDataset()


def test_datasets_one_behind_the_other():
    one, other = TensorDataset(genesis.arange(3)), TensorDataset(genesis.arange(10, 14))
    both = one + other
    assert isinstance(both, ConcatDataset) and len(both) == 7 and both.cumulative_sizes == [3, 7]
    assert [both[i][0].item() for i in range(-7, 7)] == [0, 1, 2, 10, 11, 12, 13] * 2
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-8]
    with pytest.raises(IndexError, match="no sample 7 of 7"):
        both[7]
    with pytest.raises(ValueError, match="empty iterable"):
        ConcatDataset([])
    with pytest.raises(ValueError, match="use ChainDataset"):
        ConcatDataset([one, Numbers(2)])
    chain = Numbers(2) + Sized(3, 3)
    assert isinstance(chain, ChainDataset) and list(chain) == [0, 1, 0, 1, 2]
    assert len(ChainDataset([Sized(3, 3), Sized(4, 4)])) == 7
    with pytest.raises(TypeError, match="only supports IterableDataset, not TensorDataset"):
        list(ChainDataset([one]))
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())


def test_stacked_datasets():
    tuples, dicts = StackDataset(range(3), "abc"), StackDataset(n=range(3), s="abc")
    assert len(tuples) == len(dicts) == 3 and tuples[1] == (1, "b")
    assert tuples.__getitems__([2, 0]) == [(2, "c"), (0, "a")]
    assert dicts.__getitems__([1]) == [{"n": 1, "s": "b"}] == [dicts[1]]
    inner = Subset(range(10, 20), [3, 4, 5])
    assert StackDataset(inner, "abc").__getitems__([0, 2]) == [(13, "a"), (15, "c")]
    for arguments, named, words in [
        (("a",), {"b": "c"}, "not both"),
        ((), {}, "at least one dataset"),
        (("ab", "abc"), {}, r"size mismatch between datasets: \[2, 3\]"),
    ]:
        with pytest.raises(ValueError, match=words):
            StackDataset(*arguments, **named)

    class Short(Dataset):
        def __len__(self):
            return 3

        def __getitems__(self, indices):
            return indices[:1]

    with pytest.raises(ValueError, match="output size mismatch"):
        StackDataset(Short()).__getitems__([0, 1])


def test_subsets():
    part = Subset(TensorDataset(genesis.arange(10)), [7, 2, 5])
    assert len(part) == 3 and part[1][0].item() == 2
    assert part[[0, 2]][0].tolist() == [7, 5]  # a list is handed on
    assert [one[0].item() for one in part.__getitems__([2, 0])] == [5, 7]
    assert Subset(part, [2])[0][0].item() == 5

    class Own(Subset):
        def __getitem__(self, index):
            return -super().__getitem__(index)

    with pytest.raises(NotImplementedError, match="Own overrides __getitem__ but not __getitems__"):
        Own(range(3), [0])


def test_random_splits():
    parts = random_split(range(10), [3, 7], seeded())
    assert [len(part) for part in parts] == [3, 7]
    assert sorted(i for part in parts for i in part) == list(range(10))
    again = random_split(range(10), [3, 7], generator=seeded())
    assert [part.indices for part in again] == [part.indices for part in parts]
    assert [len(part) for part in random_split(range(11), [0.5, 0.25, 0.25])] == [6, 3, 2]
    for lengths, words in [([3, 3], "6 and 10"), ([1.5, -0.5], "is not in 0 to 1")]:
        with pytest.raises(ValueError, match=words):
            random_split(range(10), lengths)
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(1), [0.5, 0.5])


# ---- samplers ----


def test_random_samplers():
    data_source = range(100)
    order = list(RandomSampler(data_source, generator=seeded()))
    assert order != list(data_source) and sorted(order) == list(data_source)
    assert order == list(RandomSampler(data_source, generator=seeded()))
    genesis.manual_seed(5)
    sampler = RandomSampler(data_source)
    first, second = list(sampler), list(sampler)
    assert first != second and len(sampler) == 100
    genesis.manual_seed(5)
    assert list(RandomSampler(data_source)) == first
    more = list(RandomSampler(range(3), num_samples=8))
    assert len(more) == 8 and sorted(more[:3]) == sorted(more[3:6]) == [0, 1, 2]
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=3000, generator=seeded()))
    counts = collections.Counter(drawn)
    assert set(counts) == {0, 1, 2} and max(abs(one - 1000) for one in counts.values()) < 150
    with pytest.raises(TypeError, match="replacement should be a boolean"):
        RandomSampler(data_source, replacement=1)
    for wrong in (0, -1, 2.5):
        with pytest.raises(ValueError, match="num_samples should be a positive integer"):
            RandomSampler(data_source, num_samples=wrong)
    with pytest.raises(ValueError, match="num_samples=0"):
        RandomSampler([])


def test_other_samplers():
    assert list(SequentialSampler("abc")) == [0, 1, 2] and len(SequentialSampler("abc")) == 3
    subset = SubsetRandomSampler([3, 5, 9], seeded())
    assert sorted(subset) == [3, 5, 9] and len(subset) == 3
    drawn = collections.Counter(WeightedRandomSampler([1, 0, 3], 4000, generator=seeded()))
    assert set(drawn) == {0, 2} and 0.2 < drawn[0] / 4000 < 0.3
    assert sorted(WeightedRandomSampler([0.1, 0.2, 0.3], 3, replacement=False)) == [0, 1, 2]
    for arguments, words in [
        (([1.0], 0), "num_samples"),
        (([1.0], True), "num_samples"),
        (([1.0], 1, 2), "replacement should be a boolean"),
        (([[1.0]], 1), r"weights have shape \(1, 1\)"),
    ]:
        with pytest.raises(ValueError, match=words):
            WeightedRandomSampler(*arguments)
    with pytest.raises(NotImplementedError):
        iter(Sampler())


@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_batch_samplers(count):
    whole = [list(range(first, min(first + 3, count))) for first in range(0, count, 3)]
    assert list(BatchSampler(range(count), 3, False)) == whole
    assert len(BatchSampler(range(count), 3, False)) == len(whole)
    full = [one for one in whole if len(one) == 3]
    assert list(BatchSampler(range(count), 3, True)) == full
    assert len(BatchSampler(range(count), 3, True)) == len(full)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="batch_size should be a positive integer"):
            BatchSampler(range(count), wrong, False)
    with pytest.raises(ValueError, match="drop_last should be a boolean"):
        BatchSampler(range(count), 1, 0)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 10])
@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed_samplers(count, drop_last):
    """All parts are equally long, and together they are the dataset."""
    ranks = 4
    for shuffle in (False, True):
        samplers = [
            DistributedSampler(range(count), ranks, rank, shuffle, seed=7, drop_last=drop_last)
            for rank in range(ranks)
        ]
        parts = [list(one) for one in samplers]
        length = count // ranks if drop_last else math.ceil(count / ranks)
        assert [len(one) for one in parts] == [len(one) for one in samplers] == [length] * ranks
        together = [i for part in parts for i in part]
        if drop_last:
            assert len(set(together)) == len(together) <= count
        else:
            assert set(together) == set(range(count))
        if not shuffle and not drop_last and count >= ranks:
            assert parts[1][:2] == [1, 5 % count]
        for one in samplers:
            one.set_epoch(1)
        if shuffle and count == 10:
            assert [list(one) for one in samplers] != parts


def test_distributed_samplers_ask_for_ranks(monkeypatch):
    with pytest.raises(ValueError, match=r"Invalid rank 2, .*\[0, 1\]"):
        DistributedSampler(range(3), 2, 2)
    import sys

    monkeypatch.setitem(sys.modules, "genesis.distributed", None)
    with pytest.raises(RuntimeError, match="pass num_replicas and rank"):
        DistributedSampler(range(3), 2)
    group = types.ModuleType("genesis.distributed")
    group.get_world_size, group.get_rank = lambda: 3, lambda: 1
    monkeypatch.setitem(sys.modules, "genesis.distributed", group)
    assert list(DistributedSampler(range(5), shuffle=False)) == [1, 4]


# ---- batches ----


def test_batches_of_everything():
    assert default_collate([1, 2]).tolist() == [1, 2] and default_collate([1, 2]).dtype == "int64"
    assert default_collate([1.5, 2]).dtype == "float64"
    assert default_collate([True, False]).dtype == "bool"
    assert default_collate(["a", "b"]) == ["a", "b"] and default_collate([b"a"]) == [b"a"]
    tensors = default_collate([genesis.ones(2, 3), genesis.zeros(2, 3)])
    assert tensors.shape == (2, 2, 3) and tensors[1].sum().item() == 0
    arrays = default_collate([numpy.ones((2,), numpy.float32), numpy.zeros(2, numpy.float32)])
    assert arrays.dtype == "float32" and arrays.tolist() == [[1, 1], [0, 0]]
    scalars = default_collate([numpy.float32(1.5), numpy.float32(2.5)])
    assert scalars.dtype == "float32" and scalars.tolist() == [1.5, 2.5]
    assert default_collate([numpy.bool_(True)]).dtype == "bool"
    made = default_collate([{"a": 1, "b": ("x", [1.0])}, {"a": 2, "b": ("y", [2.0])}])
    assert made["a"].tolist() == [1, 2] and made["b"][0] == ("x", "y")
    assert made["b"][1][0].tolist() == [1, 2]
    points = default_collate([POINT(1, "a"), POINT(2, "b")])
    assert type(points) is POINT and points.x.tolist() == [1, 2] and points.y == ("a", "b")
    ordered = default_collate([collections.OrderedDict(z=1, a=2)] * 2)
    assert type(ordered) is collections.OrderedDict and list(ordered) == ["z", "a"]
    frozen = default_collate([types.MappingProxyType({"a": 1})])
    assert type(frozen) is types.MappingProxyType and frozen["a"].tolist() == [1]
    assert default_collate([range(2), range(2, 4)])[1].tolist() == [1, 3]
    assert type(default_collate([collections.deque([1, 2])])) is collections.deque


def test_batches_that_cannot_be():
    class Own:
        pass

    for wrong, error, words in [
        ([Own()], TypeError, "must contain tensors, numpy arrays, numbers, dicts or lists; found"),
        ([None], TypeError, "NoneType"),
        ([numpy.array(["a"])], TypeError, "found <U1"),
        ([[1, 2], [1]], RuntimeError, "should be of equal size"),
        ([genesis.ones(2), genesis.ones(3)], (ValueError, RuntimeError), "stack|shape|size"),
    ]:
        with pytest.raises(error, match=words):
            default_collate(wrong)
    with pytest.raises(KeyError):
        default_collate([{"a": 1}, {"b": 1}])


def test_own_classes_in_batches():
    class Own:
        def __init__(self, number):
            self.number = number

    from genesis.utils.data._collate import collate, default_collate_fn_map

    def owns(batch, *, collate_fn_map):
        return genesis.tensor([one.number for one in batch])

    made = collate([(Own(1), 2)] * 2, collate_fn_map={Own: owns, **default_collate_fn_map})
    assert made[0].tolist() == [1, 1] and made[1].tolist() == [2, 2]


def test_samples_that_are_converted():
    array = numpy.arange(3)
    made = default_convert({"a": (array, POINT("x", array)), "b": [numpy.float64(2)], "c": None})
    assert made["a"][0].tolist() == [0, 1, 2] and type(made["a"]) is list
    assert type(made["a"][1]) is POINT and made["a"][1].x == "x"
    assert made["b"][0].item() == 2 and made["c"] is None
    array[0] = 9
    assert made["a"][0].tolist() == [9, 1, 2]  # the same memory
    texts = numpy.array(["a"])
    assert default_convert(texts) is texts


# ---- the loader ----


def values(loader):
    return [batch.tolist() for batch in loader]


def test_loading():
    assert values(DataLoader(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert values(DataLoader(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]
    assert values(DataLoader(range(5), batch_sampler=[[4, 0], [1]])) == [[4, 0], [1]]
    assert values(DataLoader(range(5), sampler=[3, 1], batch_size=1)) == [[3], [1]]
    assert list(DataLoader(range(3), 2, collate_fn=list)) == [[0, 1], [2]]
    mixed = DataLoader(range(50), 8, shuffle=True, generator=seeded())
    first, second = values(mixed), values(mixed)
    assert first != second and sorted(sum(first, [])) == list(range(50))
    assert values(DataLoader(range(50), 8, shuffle=True, generator=seeded())) == first
    assert [len(one) for one in (mixed, DataLoader(range(5), batch_size=None))] == [7, 5]
    assert len(iter(mixed)) == 7
    dataset = TensorDataset(genesis.arange(4), genesis.rand(4, 3))
    numbers, rows = next(iter(DataLoader(dataset, 3)))
    assert numbers.tolist() == [0, 1, 2] and rows.tolist() == dataset.tensors[1][:3].tolist()
    one, other = iter(mixed), iter(mixed)
    assert len(next(one)) == len(next(other)) == 8  # both at the same time


def test_whole_batches_are_asked_for():
    class Both(Dataset):
        def __getitems__(self, indices):
            return [100 + index for index in indices]

        def __len__(self):
            return 3

    assert values(DataLoader(Both(), 2)) == [[100, 101], [102]]


def test_loading_of_iterables():
    assert values(DataLoader(Numbers(5), 2)) == [[0, 1], [2, 3], [4]]
    assert values(DataLoader(Numbers(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Numbers(3), batch_size=None)) == [0, 1, 2]
    assert len(DataLoader(Sized(5, 5), 2)) == 3 and len(DataLoader(Sized(5, 5), None)) == 5
    assert len(DataLoader(Sized(5, 5), 2, drop_last=True)) == 2
    with pytest.raises(TypeError):
        len(DataLoader(Numbers(5)))
    with pytest.warns(UserWarning, match="was reported to be 1 .*but 2 samples"):
        assert len(list(DataLoader(Sized(3, 1), 1))) == 3


def test_arguments_that_do_not_go_together():
    for named, words in [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor option should be positive"),
        ({"persistent_workers": True}, "needs num_workers > 0"),
        ({"sampler": [1], "shuffle": True}, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[1]], "drop_last": True}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
        ({"batch_size": 0}, "batch_size should be a positive integer"),
        ({"multiprocessing_context": "fork"}, "multi-process loading"),
        ({"multiprocessing_context": "spoon", "num_workers": 1}, "a valid start method in"),
    ]:
        with pytest.raises(ValueError, match=words):
            DataLoader(range(4), **named)
    with pytest.raises(TypeError, match="should be a valid context object"):
        DataLoader(range(4), num_workers=1, multiprocessing_context=3)
    for named in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspec"):
            DataLoader(Numbers(3), **named)
    DataLoader(Numbers(3), shuffle=False)
    loader = DataLoader(range(4))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset"):
        with pytest.raises(
            ValueError, match=f"{name} attribute should not be set after DataLoader"
        ):
            setattr(loader, name, None)
    loader.num_workers = 0


def test_pinning_without_a_device():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert values(DataLoader(range(2), 2, pin_memory=True)) == [[0, 1]]
    if not genesis.cuda.is_available():
        assert "no accelerator is found" in str(caught[0].message)


def test_pinning(fresh, build):
    driver = build / "libgenesis_sim.so"
    if not driver.exists():
        pytest.skip("the build has no simulator")
    fresh(
        """
import collections
import genesis
from genesis.utils.data import DataLoader, TensorDataset

POINT = collections.namedtuple("POINT", "x y")

class Own:
    def pin_memory(self):
        return "pinned"

def collate(batch):
    rows = genesis.stack([one[0] for one in batch])
    return {"a": rows, "b": (rows, "text", [POINT(rows, 3)]), "c": Own()}

if __name__ == "__main__":
    dataset = TensorDataset(genesis.arange(12).reshape(6, 2))
    for workers in (0, 2):
        loader = DataLoader(dataset, 2, num_workers=workers, pin_memory=True, collate_fn=collate)
        batches = list(loader)
        assert [one["a"].tolist() for one in batches][2] == [[8, 9], [10, 11]]
        for one in batches:
            assert one["a"].is_pinned() and one["b"][0].is_pinned() and one["b"][2][0].x.is_pinned()
            assert one["b"][1] == "text" and one["b"][2][0].y == 3 and one["c"] == "pinned"
            assert one["a"].to("cuda", non_blocking=True).tolist() == one["a"].tolist()
""",
        GENESIS_CUDA_DRIVER=str(driver),
    )


def test_names():
    assert data.__all__ == sorted(data.__all__)
    assert genesis.utils.data is data
    for module, name in [
        ("dataloader", "DataLoader"),
        ("dataset", "Dataset"),
        ("distributed", "DistributedSampler"),
        ("sampler", "Sampler"),
    ]:
        found = importlib.import_module(f"genesis.utils.data.{module}")
        assert getattr(found, name) is getattr(data, name)
    assert data.get_worker_info() is None
    assert pickle.loads(pickle.dumps(TensorDataset(genesis.arange(3))))[1][0].item() == 1
