"""The order in which the samples of a dataset are taken."""

from __future__ import annotations

import itertools
from typing import Any, Generic, TypeVar

import genesis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from genesis import Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)
_AT_ONCE = 1024  # random numbers that are drawn together


class Sampler(Generic[T]):
    """Numbers of samples, or lists of them for a batch: a class of yours with ``__iter__``.

    Examples
    --------
    >>> from genesis.utils.data import DataLoader, Sampler
    >>> class Backwards(Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...     def __iter__(self):
    ...         return iter(reversed(range(len(self.data))))
    >>> list(DataLoader("abc", sampler=Backwards("abc"), batch_size=None))
    ['c', 'b', 'a']
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """All samples, in their order.

    Examples
    --------
    >>> from genesis.utils.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _own_generator() -> Generator:
    """A generator whose seed comes from the default one."""
    return genesis.Generator().manual_seed(int(genesis.randint(0, (1 << 63) - 1, ()).item()))


class RandomSampler(Sampler[int]):
    """All samples in random order; with ``replacement`` some of them, each drawn from all.

    Examples
    --------
    >>> import genesis
    >>> from genesis.utils.data import RandomSampler
    >>> sorted(RandomSampler("abcd", generator=genesis.Generator().manual_seed(1)))
    [0, 1, 2, 3]
    >>> len(list(RandomSampler("abcd", replacement=True, num_samples=7)))
    7
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many numbers there are: those of the dataset, which may change, if none was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        total, left = len(self.data_source), self.num_samples
        generator = _own_generator() if self.generator is None else self.generator
        while left > 0:
            if self.replacement:
                count = min(left, _AT_ONCE)
                order = genesis.randint(0, total, (count,), generator=generator).tolist()
            else:
                count = min(left, total)
                order = genesis.randperm(total, generator=generator).tolist()
            yield from order[:count]
            left -= count

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given numbers in random order.

    Examples
    --------
    >>> from genesis.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([3, 5, 8]))
    [3, 5, 8]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in genesis.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Numbers drawn with probabilities in proportion to weights.

    Examples
    --------
    >>> from genesis.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = genesis.as_tensor(weights, dtype=genesis.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given "
                f"weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = genesis.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler["list[int]"]):
    """The numbers of another sampler, in lists of a size.

    Examples
    --------
    >>> from genesis.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    >>> list(BatchSampler(range(5), 2, drop_last=True))
    [[0, 1], [2, 3]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers, size = iter(self.sampler), self.batch_size
        while batch := list(itertools.islice(numbers, size)):
            if len(batch) == size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
