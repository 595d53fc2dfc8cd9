"""What functions return that needs more than a dict. Imported when it is first needed."""

from __future__ import annotations

from typing import NamedTuple

from genesis import _C


class DeviceProperties(NamedTuple):
    """What a device is. Sizes are in bytes, rates in kHz."""

    name: str
    uuid: str
    pci_bus_id: str
    total_memory: int
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    registers_per_multi_processor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multi_processor: int
    l2_cache_size: int
    clock_rate_khz: int
    memory_clock_rate_khz: int
    memory_bus_width_bits: int
    is_integrated: bool
    has_virtual_memory: bool
    has_stream_ordered_memory: bool

    @property
    def L2_cache_size(self) -> int:  # noqa: N802 - as in PyTorch
        """PyTorch's name of l2_cache_size."""
        return self.l2_cache_size

    @property
    def regs_per_multiprocessor(self) -> int:
        """PyTorch's name of registers_per_multi_processor."""
        return self.registers_per_multi_processor

    @property
    def clock_rate(self) -> int:
        """PyTorch's name of clock_rate_khz."""
        return self.clock_rate_khz

    @property
    def memory_clock_rate(self) -> int:
        """PyTorch's name of memory_clock_rate_khz."""
        return self.memory_clock_rate_khz

    @property
    def memory_bus_width(self) -> int:
        """PyTorch's name of memory_bus_width_bits."""
        return self.memory_bus_width_bits

    @property
    def is_multi_gpu_board(self) -> bool:
        """Whether a board has several GPUs, which is not known: False."""
        return False


class AllocationStatistics(NamedTuple):
    """What a memory manager has done and holds. Sizes are in bytes.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import AllocationStatistics
    >>> statistics = AllocationStatistics(total_allocations=4, cache_hits=3, cache_misses=1)
    >>> statistics.cache_hit_rate, statistics.efficiency_score()
    (0.75, 0.75)
    """

    total_allocations: int = 0  # that succeeded
    total_freed: int = 0
    peak_memory_usage: int = 0  # the most that was handed out at one time
    cache_hits: int = 0  # allocations that a cache met
    cache_misses: int = 0  # that needed the driver or the system
    fragmentation_ratio: float = 0.0  # 1 - live / reserved
    external_fragmentation: float = 0.0  # 1 - the largest block to be had / what is not live
    failed_allocations: int = 0  # for want of memory
    refused_frees: int = 0
    live_blocks: int = 0
    current_memory_usage: int = 0  # handed out now
    requested_memory: int = 0  # the same, before rounding
    reserved_memory: int = 0  # obtained from the driver or the system
    cached_memory: int = 0  # reserved and idle
    pending_memory: int = 0  # freed, but another stream may still use it
    stream_cache_hits: int = 0  # met by the thread's own cache for its stream
    global_cache_hits: int = 0  # met by the device's cache

    @property
    def cache_hit_rate(self) -> float:
        """The part of the allocations that a cache met, 0 to 1; 0 before the first one."""
        asked = self.cache_hits + self.cache_misses
        return self.cache_hits / asked if asked else 0.0

    def efficiency_score(self) -> float:
        """How efficient the manager was, 0 to 1: hits for each allocation; 1 before the first."""
        if self.total_allocations == 0:
            return 1.0
        return min(1.0, self.cache_hits / self.total_allocations)


class CompactionReport(NamedTuple):
    """What compact() did."""

    released_bytes: int  # that went back to the driver
    folded_pages: int  # physical pages that were folded into others
    moved_bytes: int  # that were copied for it
    skipped_bytes: int  # of half-empty pages that had to be left alone
    can_fold: bool  # False where the policy or the device cannot fold pages


class OutOfMemoryRequest(NamedTuple):
    """A request that could not be met, as an out-of-memory handler is told of it."""

    nbytes: int
    device: _C.device

    @property
    def size(self) -> int:
        """The same as nbytes."""
        return self.nbytes


class LargeAllocation(NamedTuple):
    """A living block. Its location is a line if that was recorded, else which allocation it was."""

    size: int
    location: str
    address: int
    device: _C.device


class MemoryStats:
    """How much memory there is of each kind, in bytes; summed over devices, peaks too.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import MemoryStats
    >>> stats = MemoryStats(reserved_bytes=4000)
    >>> stats.update_allocation(1000)
    >>> stats.allocated_bytes, stats.num_allocs, stats.fragmentation_ratio()
    (1000, 1, 0.75)
    """

    __slots__ = (
        "active_bytes",
        "allocated_bytes",
        "cached_bytes",
        "inactive_bytes",
        "num_allocs",
        "num_frees",
        "peak_allocated",
        "reserved_bytes",
    )

    active_bytes: int
    allocated_bytes: int
    cached_bytes: int
    inactive_bytes: int
    num_allocs: int
    num_frees: int
    peak_allocated: int
    reserved_bytes: int

    def __init__(self, **values: int) -> None:
        for name in self.__slots__:
            setattr(self, name, values.pop(name, 0))
        if values:
            raise TypeError(f"MemoryStats has no {', '.join(sorted(values))}")

    def update_allocation(self, size: int) -> None:
        """Count one more allocation."""
        self.allocated_bytes += size
        self.active_bytes += size
        self.peak_allocated = max(self.peak_allocated, self.allocated_bytes)
        self.num_allocs += 1

    def fragmentation_ratio(self) -> float:
        """The part of the reserved memory that is not handed out, 0 to 1."""
        if self.reserved_bytes == 0:
            return 0.0
        return max(0.0, (self.reserved_bytes - self.allocated_bytes) / self.reserved_bytes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemoryStats):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment] - it changes

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"MemoryStats({values})"


class DetailedMemoryStats:
    """Totals, ratios and the living blocks of one moment.

    Attributes
    ----------
    total_allocated, peak_allocated : int
        Bytes that are handed out, and the most that were at one time.
    fragmentation_ratio : float
        The part of the reserved memory that is not handed out, 0 to 1.
    cache_hit_rate : float
        The part of all allocations that a cache met, 0 to 1.
    """

    __slots__ = (
        "_allocations",
        "cache_hit_rate",
        "fragmentation_ratio",
        "peak_allocated",
        "total_allocated",
    )

    def __init__(
        self, stats: MemoryStats, cache_hit_rate: float, allocations: list[LargeAllocation]
    ) -> None:
        self.total_allocated = stats.allocated_bytes
        self.peak_allocated = stats.peak_allocated
        self.fragmentation_ratio = stats.fragmentation_ratio()
        self.cache_hit_rate = cache_hit_rate
        self._allocations = sorted(allocations, key=lambda one: one.size, reverse=True)

    def get_large_allocations(self, min_size: int | str = 0) -> list[LargeAllocation]:
        """The living blocks of at least this size, the largest first."""
        least = _C.parse_size(min_size) if isinstance(min_size, str) else min_size
        return [one for one in self._allocations if one.size >= least]

    def __repr__(self) -> str:
        return (
            f"DetailedMemoryStats(total_allocated={self.total_allocated}, "
            f"peak_allocated={self.peak_allocated}, "
            f"fragmentation_ratio={self.fragmentation_ratio:.3f}, "
            f"cache_hit_rate={self.cache_hit_rate:.3f})"
        )
