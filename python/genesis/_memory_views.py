"""Segments, blocks and caches of a memory manager, as they are at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from genesis import _C


class Block(NamedTuple):
    """A piece of memory.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import Block
    >>> Block(ptr=4096, size=512).is_free
    False
    """

    ptr: int
    size: int
    is_free: bool = False
    segment_id: int = 0
    pinned: bool = False


class Segment(NamedTuple):
    """A piece of memory from the driver or the system, and the blocks that tile it."""

    segment_id: int
    base_ptr: int
    size: int
    blocks: list[Block]

    @property
    def free_blocks_by_size(self) -> dict[int, list[Block]]:
        """The free blocks of each size, the smallest size first."""
        return group_by_size(block for block in self.blocks if block.is_free)


class CacheStatistics(NamedTuple):
    """What the caches have met, and hold now."""

    stream_hits: int = 0
    global_hits: int = 0
    misses: int = 0
    stream_blocks: int = 0
    stream_bytes: int = 0
    global_blocks: int = 0
    global_bytes: int = 0

    @property
    def hits(self) -> int:
        """Allocations that either level met."""
        return self.stream_hits + self.global_hits

    @property
    def hit_rate(self) -> float:
        """The part of the allocations that a cache met, 0 to 1; 0 before the first one."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class TwoLevelCache:
    """The idle blocks: those that threads keep for a stream, and those of the device.

    Attributes
    ----------
    stream_cache : dict
        ``stream id -> size -> addresses``.
    global_cache : dict
        ``size -> addresses``.
    cache_stats : CacheStatistics
        What they have met and hold.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
    >>> manager = CUDAMemoryManager("cpu")
    >>> manager.free_memory(manager.allocate_memory(4096))
    >>> cache = manager.cache
    >>> cache.cache_stats.stream_blocks == sum(
    ...     len(addresses) for sizes in cache.stream_cache.values() for addresses in sizes.values()
    ... )
    True
    """

    __slots__ = ("cache_stats", "global_cache", "stream_cache")

    def __init__(
        self,
        stream_cache: dict[int, dict[int, list[int]]] | None = None,
        global_cache: dict[int, list[int]] | None = None,
        cache_stats: CacheStatistics | None = None,
    ) -> None:
        self.stream_cache = stream_cache if stream_cache is not None else {}
        self.global_cache = global_cache if global_cache is not None else {}
        self.cache_stats = cache_stats if cache_stats is not None else CacheStatistics()

    def __repr__(self) -> str:
        return f"TwoLevelCache({self.cache_stats})"


def group_by_size(blocks: Iterable[Block]) -> dict[int, list[Block]]:
    """Blocks of each size, the smallest size first."""
    groups: dict[int, list[Block]] = {}
    for block in sorted(blocks, key=lambda block: (block.size, block.ptr)):
        groups.setdefault(block.size, []).append(block)
    return groups


def is_idle(entry: dict[str, Any]) -> bool:
    """Whether an entry of blocks() is a block that can be handed out."""
    return entry["state"] in ("stream_cached", "global_cached")


def segments_of(manager: _C.MemoryManager) -> list[Segment]:
    """The segments of a manager, in the order in which it lists them."""
    segments: dict[int, Segment] = {}
    for entry in manager.blocks():
        number = entry["segment_id"]
        segment = segments.get(number)
        if segment is None:
            segment = Segment(number, entry["segment_address"], entry["segment_bytes"], [])
            segments[number] = segment
        segment.blocks.append(
            Block(entry["address"], entry["nbytes"], is_idle(entry), number, manager.is_pinned)
        )
    return list(segments.values())


def cache_of(manager: _C.MemoryManager) -> TwoLevelCache:
    """The idle blocks of a manager."""
    streams: dict[int, dict[int, list[int]]] = {}
    everyones: dict[int, list[int]] = {}
    counts = {"stream_cached": [0, 0], "global_cached": [0, 0]}
    for entry in manager.blocks():
        if not is_idle(entry):
            continue
        of_stream = entry["state"] == "stream_cached"
        level = streams.setdefault(entry["stream_id"], {}) if of_stream else everyones
        level.setdefault(entry["nbytes"], []).append(entry["address"])
        counts[entry["state"]][0] += 1
        counts[entry["state"]][1] += entry["nbytes"]
    now = manager.statistics()
    return TwoLevelCache(
        streams,
        everyones,
        CacheStatistics(
            now["stream_hit_count"],
            now["global_hit_count"],
            now["miss_count"],
            *counts["stream_cached"],
            *counts["global_cached"],
        ),
    )
