"""Batches of a dataset, made here or by worker processes."""

from __future__ import annotations

import functools
import itertools
import os
import warnings
from typing import Any, Generic, TypeVar

import genesis
from genesis import _C
from genesis.utils.data._collate import default_collate, default_convert
from genesis.utils.data._pin import can_pin, pin_memory
from genesis.utils.data._worker import (
    BATCH,
    ENDED,
    FAILED,
    TASK,
    Fetcher,
    Plan,
    get_worker_info,
)
from genesis.utils.data.dataset import IterableDataset
from genesis.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from genesis import Generator
    from genesis.utils.data._pool import Crew

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T = TypeVar("T", covariant=True)

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Endless:
    """What stands for a sampler where samples have no numbers."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T]):
    """Iterates over the batches of a dataset.

    With ``num_workers`` batches are made by processes, ahead of their use, and come back through
    shared memory, without a copy. A worker's exception is raised here, with its traceback; a
    worker that is killed is a RuntimeError. Random numbers of workers repeat: ``genesis``,
    ``random`` and NumPy are seeded with a number from ``generator`` and the worker's. The timeline
    of :mod:`genesis.memory_profiler` shows when the program waits for a batch (``DataLoader.wait``)
    and when one is copied to page-locked memory (``DataLoader.pin``).

    Parameters
    ----------
    dataset : Dataset or IterableDataset
        Where the samples come from: anything with ``__getitem__`` and ``__len__``.
    batch_size : int, optional
        How many samples a batch has; None for samples one by one.
    shuffle : bool, optional
        Whether the order is random, and another one each time.
    sampler, batch_sampler : iterable, optional
        The numbers of the samples; or lists of them, one for each batch.
    num_workers : int
        How many processes make batches; with 0 this one does.
    collate_fn : callable, optional
        Makes a batch of a list of samples: :func:`default_collate` if not given.
    pin_memory : bool
        Whether batches are copied to page-locked memory, by a thread, for fast copies to a GPU.
    drop_last : bool
        Whether a last batch with fewer samples is left out.
    timeout : float
        Seconds after which a batch that does not come is an error; 0 waits for ever.
    worker_init_fn : callable, optional
        Called in each worker with its number, after the seeds are set.
    multiprocessing_context : str or context, optional
        How processes are started: ``"fork"``, ``"spawn"`` or ``"forkserver"``. Fork if not given.
    generator : Generator, optional
        Where the order and the seeds come from.
    prefetch_factor : int, optional
        How many batches each worker makes ahead: 2 if not given.
    persistent_workers : bool
        Whether workers stay for the next iteration.
    pin_memory_device : str
        The device for which memory is page-locked: the current one if not given.
    in_order : bool
        Whether batches come in the order of the sampler, or as workers finish them.

    Examples
    --------
    >>> import genesis
    >>> from genesis.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(genesis.arange(5), genesis.ones(5, 2))
    >>> for numbers, rows in DataLoader(data, batch_size=2):
    ...     print(numbers.tolist(), rows.shape)
    [0, 1] (2, 2)
    [2, 3] (2, 2)
    [4] (1, 2)
    """

    _is_made = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _workers_check(num_workers, timeout, prefetch_factor, persistent_workers)
        is_iterable = isinstance(dataset, IterableDataset)
        if is_iterable:
            _iterable_check(shuffle, sampler, batch_sampler)
        batch_size, drop_last = _batching(
            batch_size, bool(shuffle), sampler, batch_sampler, drop_last
        )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if sampler is None:
            if is_iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        is_batched = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if is_batched else default_convert)
        self.persistent_workers = persistent_workers
        self._is_iterable = is_iterable
        self._crew: Crew | None = None  # of persistent workers
        self._told_length: int | None = None  # what len() has said of an IterableDataset
        self._is_made = True

    @property
    def multiprocessing_context(self) -> Any:
        """How processes are started; None for the usual way."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, given: Any) -> None:
        self._context = None if given is None else _context_check(given, self.num_workers)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def _plan(self, base_seed: int) -> Plan:
        return Plan(
            id=0,
            num_workers=self.num_workers,
            base_seed=base_seed,
            dataset=self.dataset,
            is_iterable=self._is_iterable,
            is_batched=self.batch_sampler is not None,
            collate_fn=self.collate_fn,
            drop_last=self.drop_last,
            init_fn=self.worker_init_fn,
            parent=os.getpid(),
        )

    def _indices(self) -> Iterator[Any]:
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        seed = int(genesis.randint(0, (1 << 63) - 1, (), generator=self.generator).item())
        if self.num_workers == 0:
            return _Iterator(self, seed)
        return _WorkersIterator(self, seed)

    def _crew_of(self, seed: int) -> Crew:
        """Workers for an iteration: new ones, or those that have stayed."""
        from genesis.utils.data._pool import Crew, context_of

        if self._crew is not None and self._crew.is_open:
            self._crew.epoch_begin()
            return self._crew
        pin = None
        if self.pin_memory and can_pin():
            pin = functools.partial(_pinned, device=self.pin_memory_device or None)
        crew = Crew(context_of(self.multiprocessing_context), self._plan(seed), pin)
        if self.persistent_workers:
            self._crew = crew
        return crew

    def __len__(self) -> int:
        if not self._is_iterable:
            indices: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
            return len(indices)
        count = len(self.dataset)
        if self.batch_size is not None:
            size = self.batch_size
            count = count // size if self.drop_last else -(-count // size)
        self._told_length = count
        return count


# ---- arguments ----


def _workers_check(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: let num_workers > 0"
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError("prefetch_factor option should be positive")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _iterable_check(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    for name, value in (
        ("shuffle", shuffle or None),
        ("sampler", sampler),
        ("batch_sampler", batch_sampler),
    ):
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )


def _batching(
    batch_size: int | None, shuffle: bool, sampler: Any, batch_sampler: Any, drop_last: bool
) -> tuple[int | None, bool]:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
        return None, False
    if batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
    return batch_size, drop_last


def _context_check(given: Any, num_workers: int) -> Any:
    import multiprocessing
    from multiprocessing.context import BaseContext

    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )
    if isinstance(given, str):
        known = multiprocessing.get_all_start_methods()
        if given not in known:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {known!r}, "
                f"but got multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if not isinstance(given, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={given}"
        )
    return given


# ---- iterators ----


class _Iterator:
    """Batches that are made when they are asked for."""

    def __init__(self, loader: DataLoader[Any], seed: int) -> None:
        if loader.timeout:
            raise ValueError("timeout option needs num_workers > 0")
        self._loader = loader
        self._indices = loader._indices()
        self._fetcher = Fetcher(loader._plan(seed))
        self._device = loader.pin_memory_device or None
        self._is_pinned = loader.pin_memory and can_pin()
        self._taken = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        batch = self._fetcher.fetch(next(self._indices))
        self._taken += 1
        _length_check(self._loader, self._taken)
        return pin_memory(batch, self._device) if self._is_pinned else batch


def _length_check(loader: DataLoader[Any], taken: int) -> None:
    """Warn once of an IterableDataset that has more batches than len() has said."""
    length = loader._told_length
    if length is not None and taken == length + 1:
        warnings.warn(
            f"Length of IterableDataset {loader.dataset} was reported to be {length} (when "
            f"accessing len(dataloader)), but {taken} samples have been fetched."
            + (
                " For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker."
                if loader.num_workers
                else ""
            ),
            stacklevel=3,
        )


class _WorkersIterator:
    """Batches that workers make.

    Tasks have numbers, in the order of the sampler. `_owners` says which worker has which; what
    came before its turn is in `_early`. Each worker has about `prefetch_factor` tasks. Persistent
    workers may still have some of an iteration before: those batches are passed over, by the number
    of their epoch.
    """

    def __init__(self, loader: DataLoader[Any], seed: int) -> None:
        self._loader = loader
        self._indices = loader._indices()
        self._count = loader.num_workers
        self._most = int(loader.prefetch_factor or 2)
        self._timeout = loader.timeout or None
        self._next_task = self._next_batch = self._taken = 0
        self._owners: dict[int, int] = {}
        self._early: dict[int, tuple[int, Any]] = {}  # number -> kind, value
        self._loads = [0] * self._count  # tasks of each worker
        self._has_ended = [False] * self._count
        self._turn = 0
        self._crew: Crew | None = loader._crew_of(seed)
        self._epoch = self._crew.epoch
        for _ in range(self._most * self._count):
            self._assign()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    # ---- tasks ----

    def _assign(self) -> None:
        """Give the next task to the next worker, or to one that has fewer than its share."""
        assert self._crew is not None
        in_order = self._loader.in_order
        for step in range(self._count):
            worker = (self._turn + step) % self._count
            if not self._has_ended[worker] and (in_order or self._loads[worker] < self._most):
                break
        else:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._crew.pool.post(worker, TASK, self._epoch, self._next_task, index)
        self._turn = worker + 1
        self._owners[self._next_task] = worker
        self._loads[worker] += 1
        self._next_task += 1

    def _receive(self) -> None:
        """Wait for messages, and keep what is of this epoch."""
        assert self._crew is not None
        for worker, message in self._crew.receive(self._timeout):
            kind, epoch, number, value = message
            if epoch != self._epoch:
                continue
            self._loads[worker] -= 1
            if kind == ENDED:
                self._has_ended[worker] = True
                self._assign()
            self._early[number] = kind, value

    # ---- batches ----

    def _take(self) -> tuple[int, Any] | None:
        """The next result that is there; None if it must be waited for."""
        while self._next_batch < self._next_task:
            number = self._next_batch
            if number not in self._early and number in self._owners:
                if self._loader.in_order or not self._early:
                    return None
                number = next(iter(self._early))
            if number in self._early:
                found = self._early.pop(number)
                self._owners.pop(number, None)
                if found[0] != ENDED:
                    return found
            else:
                self._next_batch += 1
        raise StopIteration

    def _wait(self) -> tuple[int, Any]:
        _C.history_begin("DataLoader.wait")
        try:
            while (found := self._take()) is None:
                self._receive()
            return found
        finally:
            _C.history_end()

    def __next__(self) -> Any:
        if self._crew is None:
            raise StopIteration
        if self._crew.epoch != self._epoch:
            raise RuntimeError(
                "this iterator's workers are persistent, and a newer iterator of the same "
                "DataLoader has taken them: use one at a time, or persistent_workers=False"
            )
        try:
            if (found := self._take()) is None:
                found = self._wait()
        except StopIteration:
            if not self._loader.persistent_workers:
                self._close()
            raise
        except TimeoutError:
            self._close()
            raise RuntimeError(
                f"DataLoader timed out after {self._loader.timeout} seconds"
            ) from None
        except BaseException:  # a worker has died, or Ctrl-C: a message may be lost
            self._close()
            raise
        kind, value = found
        self._assign()
        if kind == FAILED:
            value.reraise()
        assert kind == BATCH
        self._taken += 1
        _length_check(self._loader, self._taken)
        return value

    def _close(self) -> None:
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()


def _pinned(message: Any, device: Any) -> Any:
    """Move the batch of a message to page-locked memory."""
    kind, epoch, number, value = message
    if kind != BATCH:
        return message
    _C.history_begin("DataLoader.pin")  # memory_profiler's timeline shows when that is
    try:
        return kind, epoch, number, pin_memory(value, device)
    finally:
        _C.history_end()
