"""The memory manager itself: raw memory by address, with every block tracked.

The functions here serve the current CUDA device; on a machine without one, the CPU. Freed memory is
kept to be used again, by the thread for its stream first, then by everybody. Freeing twice, freeing
a foreign address or with a wrong size raises ValueError and changes nothing.

Examples
--------
>>> from genesis.ndarray.cuda_memory_manager import allocate_memory, free_memory, memory_stats
>>> address = allocate_memory(4096)
>>> memory_stats()["allocated"] >= 4096
True
>>> free_memory(address, 4096)
"""

from __future__ import annotations

from genesis import _C, _memory
from genesis._C import GraphPool, allocate_memory, free_memory
from genesis._memory_pools import (
    AllocationFuture,
    AsyncMemoryPool,
    CPUMemoryPool,
    CUDAMemoryPool,
    MemoryPool,
)
from genesis._memory_views import (
    Block,
    CacheStatistics,
    Segment,
    TwoLevelCache,
    cache_of,
    segments_of,
)
from genesis._types import (
    AllocationStatistics,
    CompactionReport,
    DetailedMemoryStats,
    MemoryStats,
    OutOfMemoryRequest,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from types import TracebackType
    from typing import Any, TextIO

    from genesis._C import Stream
    from genesis._memory_analysis import AllocationPatterns
    from genesis.cuda import DeviceLike

__all__ = [
    "AllocationFuture",
    "AllocationStatistics",
    "AsyncMemoryPool",
    "Block",
    "CPUMemoryPool",
    "CUDAMemoryManager",
    "CUDAMemoryPool",
    "CacheStatistics",
    "CompactionReport",
    "DetailedMemoryStats",
    "GraphPool",
    "MemoryPool",
    "MemoryStats",
    "OutOfMemoryRequest",
    "PerformanceContext",
    "Segment",
    "TwoLevelCache",
    "allocate_memory",
    "free_memory",
    "get_memory_manager",
    "get_memory_stats",
    "memory_stats",
]

# What is prepared where warming up is asked for, but not what.
WARMUP_SIZES = ((4096, 50), (65536, 20), (1048576, 10))


def _limit(size: int | str | float, what: str) -> int | None:
    """A limit: bytes, a text such as "2GB", or infinity for none."""
    return None if size == float("inf") else _memory.parse_size(size, what)  # type: ignore[arg-type]


def _statistics_from(now: dict[str, int]) -> AllocationStatistics:
    idle = now["reserved_bytes"] - now["live_bytes"]
    return AllocationStatistics(
        total_allocations=now["alloc_count"],
        total_freed=now["free_count"],
        peak_memory_usage=now["live_bytes_peak"],
        cache_hits=now["stream_hit_count"] + now["global_hit_count"],
        cache_misses=now["miss_count"],
        fragmentation_ratio=_memory.fragmentation(now),
        external_fragmentation=max(0.0, 1 - now["largest_free_bytes"] / idle) if idle > 0 else 0.0,
        failed_allocations=now["out_of_memory_count"],
        refused_frees=now["refused_count"],
        live_blocks=now["live_count"],
        current_memory_usage=now["live_bytes"],
        requested_memory=now["requested_bytes"],
        reserved_memory=now["reserved_bytes"],
        cached_memory=now["cached_bytes"],
        pending_memory=now["pending_bytes"],
        stream_cache_hits=now["stream_hit_count"],
        global_cache_hits=now["global_hit_count"],
    )


class PerformanceContext:
    """What happened in a ``with`` block: ``stats`` afterwards. See performance_context()."""

    # Counters of which the block has its own share; the others are as they are at its end.
    _COUNTED = (
        "alloc_count",
        "free_count",
        "stream_hit_count",
        "global_hit_count",
        "miss_count",
        "out_of_memory_count",
        "refused_count",
    )

    def __init__(self, manager: _C.MemoryManager) -> None:
        self.stats = AllocationStatistics()
        self._manager = manager

    def __enter__(self) -> PerformanceContext:
        self._scope = _memory.scope_begin(self._manager)
        self._before = self._manager.statistics()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        now = self._manager.statistics() | _memory.scope_end(self._manager, self._scope)
        for name in self._COUNTED:
            now[name] -= self._before[name]
        self.stats = _statistics_from(now)


class CUDAMemoryManager(_C.MemoryManager):
    """The memory manager of one device.

    Parameters
    ----------
    device : device, str or int, optional
        The current CUDA device if not given.
    pinned : bool
        Whether it is host memory that the device reads and writes directly.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
    >>> manager = CUDAMemoryManager("cpu")
    >>> before = manager.get_statistics().live_blocks
    >>> address = manager.allocate_memory(100)
    >>> manager.get_statistics().live_blocks - before
    1
    >>> manager.free_memory(address)
    """

    SMALL_BLOCK_THRESHOLD = 1 << 20  # below it, caches are asked first

    # ---- looking ----

    def get_statistics(self) -> AllocationStatistics:
        """One consistent reading of the counters.

        Examples
        --------
        >>> from genesis.ndarray.cuda_memory_manager import get_memory_manager
        >>> stats = get_memory_manager().get_statistics()
        >>> 0 <= stats.cache_hit_rate <= 1 and 0 <= stats.efficiency_score() <= 1
        True
        """
        return _statistics_from(_memory.statistics(self))

    def memory_stats(self) -> dict[str, Any]:
        """The same dict as :func:`genesis.cuda.memory_stats` gives for this device."""
        return _memory.manager_stats(self)

    def memory_pressure(self) -> float:
        """How full the device is, 0 to 1."""
        return _memory.manager_pressure(self)

    def memory_snapshot(self) -> list[dict[str, Any]]:
        """Every block, as :func:`genesis.cuda.memory_snapshot` gives them."""
        return _memory.manager_snapshot(self)

    @property
    def segments(self) -> list[Segment]:
        """The memory that was obtained, and the blocks in it, as they are now."""
        return segments_of(self)

    @property
    def cache(self) -> TwoLevelCache:
        """The idle blocks, as they are now."""
        return cache_of(self)

    def performance_context(self) -> PerformanceContext:
        """Measure a ``with`` block: allocations, hits and the peak within it.

        Examples
        --------
        >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
        >>> manager = CUDAMemoryManager("cpu")
        >>> with manager.performance_context() as perf:
        ...     manager.free_memory(manager.allocate_memory(1000))
        >>> perf.stats.total_allocations
        1
        """
        return PerformanceContext(self)

    def dump_allocation_trace(self, file: str | PathLike[str] | TextIO | None = None) -> str:
        """List every living block: size, address, number, stream, segment, and line if known.

        Parameters
        ----------
        file : path or text file, optional
            Where to write it; standard output if not given.

        Returns
        -------
        str
            The text that was written.

        Examples
        --------
        >>> import io
        >>> import genesis
        >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
        >>> kept = genesis.zeros(1000)
        >>> "living block" in CUDAMemoryManager("cpu").dump_allocation_trace(io.StringIO())
        True
        """
        from genesis._memory_analysis import trace_text

        text = trace_text(self)
        if file is None:
            print(text, end="")
        elif hasattr(file, "write"):
            file.write(text)
        else:
            with open(file, "w", encoding="utf-8") as opened:  # noqa: PTH123 - any path will do
                opened.write(text)
        return text

    def analyze_allocation_patterns(self, apply: bool = False) -> AllocationPatterns:
        """Find which sizes dominate, what the caches miss, and which settings would help.

        Parameters
        ----------
        apply : bool
            Whether to apply those settings.

        Examples
        --------
        >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
        >>> patterns = CUDAMemoryManager("cpu").analyze_allocation_patterns()
        >>> print(patterns.summary())  # doctest: +ELLIPSIS
        allocation patterns of cpu ...
        """
        from genesis._memory_analysis import AllocationPatterns

        patterns = AllocationPatterns(self)
        if apply and patterns.suggestions:
            self.configure(**patterns.suggestions)
            patterns.applied = True
        return patterns

    # ---- allocating ----

    def allocate_from_cache(self, size: int | str, stream: Stream | None = None) -> int | None:
        """Allocate without asking the driver; None where no idle block is large enough."""
        wanted = max(_memory.parse_size(size, "size"), 1)
        if self.statistics()["largest_free_bytes"] < wanted:
            return None
        return self.allocate_memory(size, stream)

    def allocate_segment_block(self, size: int | str, stream: Stream | None = None) -> int:
        """Allocate a block that is new, not one that was in a cache before."""
        self.warmup_cache([size], [1])
        return self.allocate_memory(size, stream)

    def allocate_large_block(self, size: int | str, stream: Stream | None = None) -> int:
        """Allocate a block of any size; the same as allocate_memory()."""
        return self.allocate_memory(size, stream)

    def add_to_cache(self, ptr: int, size: int | None = None) -> None:
        """Give a block to the caches: free it."""
        self.free_memory(ptr, size)

    # ---- configuration ----

    def configure(
        self,
        *,
        segment_size: int | str | None = None,
        cache_sizes: dict[str, int] | None = None,
        warmup_sizes: list[tuple[int, int]] | None = None,
        cache_size: int | str | float | None = None,
        allocation_strategy: str | None = None,
        memory_fraction: float | None = None,
        cleanup_threshold: float | None = None,
        coalescing_threshold: float | None = None,
        enable_stats: bool | None = None,
        enable_warmup: bool | None = None,
    ) -> None:
        """Change settings; what is not given stays. All or nothing.

        Parameters
        ----------
        segment_size : int or str
            The most bytes that are taken from the driver at a time for small blocks.
        cache_sizes : dict
            ``"stream_local"``: blocks that a thread keeps for a stream; ``"global"``: that the
            device's cache keeps.
        warmup_sizes : list of (size, count)
            Blocks to prepare now, for every thread.
        cache_size : int, str or infinity
            The most idle bytes that are kept, both levels together.
        allocation_strategy : str
            ``"best_fit"``, ``"first_fit"`` or ``"direct"``.
        memory_fraction : float
            The part of the device's memory that this process may take, 0 to 1.
        cleanup_threshold : float
            The pressure, 0 to 1, above which idle memory goes back at once.
        coalescing_threshold : float
            The idle part of the reserved memory, 0 to 1, above which freed blocks are merged at
            once.
        enable_stats : bool
            Whether the time of driver calls is measured.
        enable_warmup : bool
            Whether to prepare common sizes now, where warmup_sizes does not say which.

        Examples
        --------
        >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
        >>> manager = CUDAMemoryManager("cpu")
        >>> manager.configure(cache_sizes={"stream_local": 100}, warmup_sizes=[(4096, 2)])
        >>> manager.get_config()["stream_cache_blocks"]
        100
        """
        settings: dict[str, Any] = {
            "strategy": allocation_strategy,
            "memory_fraction": memory_fraction,
            "cleanup_threshold": cleanup_threshold,
            "coalescing_threshold": coalescing_threshold,
            "has_detailed_statistics": enable_stats,
        }
        settings = {name: value for name, value in settings.items() if value is not None}
        if segment_size is not None:
            settings["segment_bytes"] = _memory.parse_size(segment_size, "segment_size")
        if cache_size is not None:
            settings["cache_bytes"] = _limit(cache_size, "cache_size")
        levels = {"stream_local": "stream_cache_blocks", "global": "global_cache_blocks"}
        for level, count in (cache_sizes or {}).items():
            if level not in levels:
                raise ValueError(f"{level!r} is no cache: there are {', '.join(levels)}")
            settings[levels[level]] = _limit(count, level)
        warmup = warmup_sizes
        if warmup is None:
            warmup = WARMUP_SIZES if enable_warmup else ()
        warmup = list(warmup)
        for pair in warmup:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"warmup_sizes are pairs of a size and a count, not {pair!r}")
        pairs = [
            (_memory.parse_size(size), _memory.parse_size(count, "a count"))
            for size, count in warmup
        ]
        if settings:
            try:
                self.set_config(**settings)
            except ValueError as error:
                given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
                text = f"{error}: {given}".replace("segment_bytes", "segment_size")
                raise ValueError(text) from None
        if pairs:
            self.warmup_cache([size for size, _ in pairs], [count for _, count in pairs])

    def expand_cache_size(self, factor: float = 1.5) -> None:
        """Multiply the limits of the caches by a factor; below 1 they shrink."""
        if not 0 < factor < float("inf"):
            raise ValueError(f"a factor is a number above 0, not {factor!r}")
        config = self.get_config()
        limits = ("cache_bytes", "stream_cache_blocks", "global_cache_blocks")
        changed = {
            name: min(int(config[name] * factor), (1 << 63) - 1)
            for name in limits
            if config[name] is not None
        }
        self.set_config(**changed)

    def enable_aggressive_coalescing(self, enabled: bool = True) -> None:
        """Merge blocks with free neighbours as soon as they are freed, and all of them now."""
        before = self.__dict__.pop("_coalescing_before", None)
        now = self.get_config()["coalescing_threshold"]
        if enabled:
            self._coalescing_before = now if before is None else before
            self.set_config(coalescing_threshold=0.0)
            self.coalesce()
        elif before is not None:
            self.set_config(coalescing_threshold=before)

    # ---- giving back ----

    def cleanup_cache(self, threshold: float | None = None, force: bool = False) -> int:
        """Give idle memory back to the driver, and return how many bytes.

        Parameters
        ----------
        threshold : float, optional
            Only until the memory pressure, 0 to 1, is no more than this; everything if not given.
        force : bool
            Everything, whatever the pressure, with free blocks merged before.
        """
        keep = 0
        if threshold is not None:
            if not 0 <= threshold <= 1:
                raise ValueError(f"a threshold is a number from 0 to 1, not {threshold!r}")
            free, total = _C.memory_info(self.device)
            surplus = max(0, total - free - int(threshold * total))
            keep = max(0, self.statistics()["cached_bytes"] - surplus)
        if force:
            self.collect()
            self.coalesce()
            keep = 0
        return self.trim(keep)

    def coalesce_free_blocks(self) -> int:
        """Empty the threads' caches and merge free neighbours; returns how many were merged."""
        return self.coalesce()

    def garbage_collect(self) -> int:
        """Run Python's collector and take in freed memory that waited for streams.

        Returns
        -------
        int
            The bytes that became idle by that.
        """
        import gc

        before = self.statistics()["cached_bytes"]
        gc.collect()
        self.collect()
        return max(0, self.statistics()["cached_bytes"] - before)

    def collect_garbage(self) -> int:
        """The same as garbage_collect()."""
        return self.garbage_collect()

    def compact(self) -> CompactionReport:
        """Give back every byte that is not needed, folding half-empty pages where that can be done.

        Contents and addresses stay as they are. Nobody may submit work on this memory meanwhile.

        Examples
        --------
        >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
        >>> CUDAMemoryManager("cpu").compact().released_bytes >= 0
        True
        """
        return CompactionReport(**super().compact())

    def smart_cache_management(self) -> AllocationPatterns:
        """Give back what is rarely used, then improve the settings for what is used often."""
        patterns = self.analyze_allocation_patterns()
        self.trim(sum(pattern.size * pattern.cached for pattern in patterns.frequent))
        if patterns.suggestions:
            self.configure(**patterns.suggestions)
            patterns.applied = True
        return patterns

    def set_oom_handler(self, handler: Callable[..., Any] | None) -> None:
        """Have a function called when a request cannot be met although all idle memory went back.

        Parameters
        ----------
        handler : callable or None
            Called as ``handler(request)``, with ``request.nbytes`` and ``request.device``, in the
            thread that asks; a function without parameters is called without. It may free memory,
            and returns True to have the request tried again, which is done at most 3 times. An
            exception in it is printed and means no. None removes it.

        Examples
        --------
        >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
        >>> manager = CUDAMemoryManager("cpu")
        >>> manager.set_oom_handler(lambda request: manager.cleanup_cache(force=True) > 0)
        >>> manager.set_oom_handler(None)
        """
        if handler is None or not callable(handler):
            super().set_oom_handler(handler)
            return
        device, has_parameter = self.device, _takes_an_argument(handler)

        def answer(nbytes: int) -> bool:
            request = OutOfMemoryRequest(nbytes, device)
            return bool(handler(request) if has_parameter else handler())

        super().set_oom_handler(answer)

    def __repr__(self) -> str:
        pinned = ", pinned=True" if self.is_pinned else ""
        return f"CUDAMemoryManager({str(self.device)!r}{pinned})"


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function in C that does not say
        return True
    try:
        signature.bind()
    except TypeError:
        return True
    return any(
        parameter.kind is not parameter.KEYWORD_ONLY and parameter.kind is not parameter.VAR_KEYWORD
        for parameter in signature.parameters.values()
    )


# One object for each device that was used; a forked child keeps those of its parent, so that what
# it inherited can be freed.
_managers: dict[_C.device, CUDAMemoryManager] = {}


def get_memory_manager(device: DeviceLike = None) -> CUDAMemoryManager:
    """The memory manager of a device: the current CUDA device, or the CPU where there is none."""
    key = _C.device("cuda" if device is None else device)
    manager = _managers.get(key)
    if manager is None:
        if device is None and _C.cuda_is_missing():
            return get_memory_manager("cpu")
        manager = _managers.setdefault(key, CUDAMemoryManager(key))
    return manager


def memory_stats() -> dict[str, Any]:
    """The memory statistics, as :func:`genesis.cuda.memory_stats` gives them."""
    return get_memory_manager().memory_stats()


def get_memory_stats() -> dict[str, Any]:
    """The most important statistics of the current device.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import get_memory_stats
    >>> sorted(get_memory_stats())
    ['allocated', 'cached', 'fragmentation', 'free', 'peak_allocated', 'reserved']
    """
    pool = CUDAMemoryPool.get_instance()
    return {
        "allocated": pool.allocated_bytes,
        "cached": pool.cached_bytes,
        "reserved": pool.reserved_bytes,
        "free": pool.free_bytes,
        "fragmentation": pool.fragmentation_ratio,
        "peak_allocated": pool.peak_allocated_bytes,
    }
