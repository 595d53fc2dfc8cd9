"""Sets of samples: by number, or one behind the other."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from typing import Any, Generic, TypeVar

import genesis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from genesis import Generator, Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by number: a class of yours with ``__getitem__``, and ``__len__`` for most uses.

    With ``__getitems__``, which takes a list of numbers, a batch is taken by one call.

    Examples
    --------
    >>> from genesis.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> (Squares() + Squares())[5]
    1
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Samples one behind the other: a class of yours with ``__iter__``.

    Each worker of a :class:`DataLoader` iterates over a copy of its own: ``get_worker_info()``
    says which part it should take.

    Examples
    --------
    >>> from genesis.utils.data import DataLoader, IterableDataset
    >>> class Numbers(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> [batch.tolist() for batch in DataLoader(Numbers(), batch_size=2)]
    [[0, 1], [2]]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T]) -> ChainDataset[T]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Tensors whose first dimension is the number of a sample.

    Examples
    --------
    >>> import genesis
    >>> from genesis.utils.data import TensorDataset
    >>> TensorDataset(genesis.arange(3), genesis.ones(3, 2))[1]
    (tensor(1), tensor([1., 1.]))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: there must be a tensor")
        counts = [len(tensor) for tensor in tensors]
        if len(set(counts)) > 1:
            raise ValueError(f"TensorDataset: size mismatch between tensors: {counts} samples")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Several datasets side by side: a sample has one of each, as a tuple, or as a dict by names.

    Examples
    --------
    >>> from genesis.utils.data import StackDataset
    >>> StackDataset(range(3), "abc")[1], StackDataset(number=range(3), letter="abc")[1]
    ((1, 'b'), {'number': 1, 'letter': 'b'})
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "StackDataset: either positional datasets, which give tuples, or datasets by "
                "names, which give dicts, not both"
            )
        if not args and not kwargs:
            raise ValueError("StackDataset: at least one dataset should be passed")
        counts = [len(one) for one in (args or kwargs.values())]
        if len(set(counts)) > 1:
            raise ValueError(f"StackDataset: size mismatch between datasets: {counts} samples")
        self._length = counts[0]
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: one[index] for name, one in self.datasets.items()}
        return tuple([one[index] for one in self.datasets])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [_items_of(one, indices) for one in self.datasets.values()]
            return [
                dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)
            ]
        return list(zip(*[_items_of(one, indices) for one in self.datasets], strict=True))

    def __len__(self) -> int:
        return self._length


def _items_of(dataset: Any, indices: list[int]) -> list[Any]:
    """Samples by their numbers, at once where the dataset can."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch: __getitems__ of {type(dataset).__name__} "
            f"gave {len(items)} samples for {len(indices)} numbers"
        )
    return items


class ConcatDataset(Dataset[T]):
    """Datasets one behind the other, as one.

    Examples
    --------
    >>> from genesis.utils.data import ConcatDataset
    >>> both = ConcatDataset(["ab", "cde"])
    >>> len(both), both[2], both[-1], both.cumulative_sizes
    (5, 'c', 'e', [2, 5])
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(one, IterableDataset) for one in self.datasets):
            raise ValueError("ConcatDataset does not support IterableDataset: use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(one) for one in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T:
        if idx < 0:
            if -idx > len(self):
                raise ValueError(
                    f"ConcatDataset: absolute value of index should not exceed dataset length: "
                    f"{idx} of {len(self)}"
                )
            idx += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, idx)
        if number == len(self.datasets):
            raise IndexError(f"ConcatDataset: there is no sample {idx} of {len(self)}")
        return self.datasets[number][idx - (self.cumulative_sizes[number - 1] if number else 0)]


class ChainDataset(IterableDataset[T]):
    """Iterable datasets one behind the other.

    Examples
    --------
    >>> from genesis.utils.data import ChainDataset, IterableDataset
    >>> class Numbers(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(ChainDataset([Numbers(), Numbers()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for one in self.datasets:
            if not isinstance(one, IterableDataset):
                raise TypeError(
                    f"ChainDataset only supports IterableDataset, not {type(one).__name__}"
                )
            yield one

    def __iter__(self) -> Iterator[T]:
        for one in self._checked():
            yield from one

    def __len__(self) -> int:
        return sum(len(one) for one in self._checked())


class Subset(Dataset[T]):
    """Those samples of a dataset that a list of numbers names.

    A class of yours that changes ``__getitem__`` has a ``__getitems__``, too.

    Examples
    --------
    >>> from genesis.utils.data import Subset
    >>> list(Subset("abcdef", [4, 0]))
    ['e', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__, which a DataLoader "
                "calls: write `def __getitems__(self, indices): return [self[i] for i in indices]`"
            )
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: Any) -> T:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        wanted = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(wanted)
        return [self.dataset[index] for index in wanted]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """Split a dataset at random into parts that have no sample in common.

    Parameters
    ----------
    dataset : Dataset
        Anything with a length.
    lengths : sequence of int or float
        How many samples each part has; or fractions with the sum 1: what is left over goes to the
        first parts, one sample each.
    generator : Generator, optional
        Where the random numbers come from.

    Examples
    --------
    >>> from genesis.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for number, one in enumerate(lengths):
            if not 0 <= one <= 1:
                raise ValueError(f"random_split: fraction {one} at index {number} is not in 0 to 1")
        counts = [math.floor(total * one) for one in lengths]
        for number in range(total - sum(counts)):
            counts[number % len(counts)] += 1
        for number, count in enumerate(counts):
            if count == 0:
                warnings.warn(
                    f"Length of split at index {number} is 0. "
                    "This might result in an empty dataset.",
                    stacklevel=2,
                )
        lengths = counts
    if sum(lengths) != total:
        raise ValueError(
            "random_split: sum of input lengths does not equal the length of the input dataset: "
            f"{sum(lengths)} and {total}"
        )
    order = genesis.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [
        Subset(dataset, order[int(end - count) : int(end)])
        for end, count in zip(ends, lengths, strict=True)
    ]
