"""The part of a dataset that one of several processes takes."""

from __future__ import annotations

import math
from typing import Any

import genesis
from genesis.utils.data.sampler import Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DistributedSampler"]


def _group_sizes(num_replicas: int | None, rank: int | None) -> tuple[int, int]:
    """What was given, or what genesis.distributed says."""
    if num_replicas is None or rank is None:
        try:
            from importlib import import_module

            group: Any = import_module("genesis.distributed")
        except ModuleNotFoundError:
            raise RuntimeError(
                "DistributedSampler: there is no genesis.distributed: pass num_replicas and rank"
            ) from None
        num_replicas = group.get_world_size() if num_replicas is None else num_replicas
        rank = group.get_rank() if rank is None else rank
    return int(num_replicas), int(rank)


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th number of a dataset, from ``rank`` on.

    All processes shuffle alike, with ``seed`` and the epoch: call ``set_epoch()`` before each. All
    have equally many: some samples come twice, or with ``drop_last`` some not at all.

    Examples
    --------
    >>> from genesis.utils.data.distributed import DistributedSampler
    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas, rank = _group_sizes(num_replicas, rank)
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = genesis.Generator().manual_seed(self.seed + self.epoch)
            order = genesis.randperm(count, generator=generator).tolist()
        else:
            order = list(range(count))
        if count and self.total_size > count:
            order *= math.ceil(self.total_size / count)
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration that of an epoch, with an order of its own."""
        self.epoch = epoch
