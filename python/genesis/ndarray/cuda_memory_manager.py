"""The memory manager itself: raw memory by address, with every block tracked.

The functions here serve the current CUDA device; on a machine without one, the CPU. Each request
is one allocation of the driver, of exactly that size. Freeing twice, freeing a foreign address or
with a wrong size raises ValueError and changes nothing.

Examples
--------
>>> from genesis.ndarray.cuda_memory_manager import allocate_memory, free_memory, memory_stats
>>> address = allocate_memory(4096)
>>> memory_stats()["allocated"] >= 4096
True
>>> free_memory(address, 4096)
"""

from __future__ import annotations

from genesis import _C, cuda
from genesis._types import AllocationStatistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis._C import Stream
    from genesis.cuda import DeviceLike

__all__ = [
    "AllocationStatistics",
    "CUDAMemoryManager",
    "allocate_memory",
    "free_memory",
    "get_memory_manager",
    "memory_stats",
]


class CUDAMemoryManager(_C.MemoryManager):
    """The memory manager of one device.

    Parameters
    ----------
    device : device, str or int, optional
        The current CUDA device if not given.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
    >>> manager = CUDAMemoryManager("cpu")
    >>> address = manager.allocate_memory(100)
    >>> manager.get_statistics().live_blocks
    1
    >>> manager.free_memory(address)
    """

    def get_statistics(self) -> AllocationStatistics:
        """One consistent reading of the counters."""
        now = self.statistics()
        return AllocationStatistics(
            total_allocations=now["alloc_count"],
            total_freed=now["free_count"],
            failed_allocations=now["out_of_memory_count"],
            refused_frees=now["refused_count"],
            live_blocks=now["live_count"],
            current_memory_usage=now["live_bytes"],
            peak_memory_usage=now["live_bytes_peak"],
        )

    def memory_stats(self) -> dict[str, Any]:
        """The same dict as :func:`genesis.cuda.memory_stats` gives for this device."""
        return cuda.memory_stats(self.device)

    def __repr__(self) -> str:
        return f"CUDAMemoryManager({str(self.device)!r})"


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


def _owner_of(ptr: int) -> CUDAMemoryManager:
    """The manager that has a block at this address; or the current one, which says it has not."""
    current = get_memory_manager()
    for manager in (current, *_managers.values()):
        try:
            manager.block_size(ptr)
        except ValueError:
            continue
        return manager
    return current


def allocate_memory(nbytes: int, stream: Stream | None = None) -> int:
    """Allocate memory and return its address.

    Parameters
    ----------
    nbytes : int
        0 gives an address of its own, too.
    stream : Stream, optional
        The stream on which the memory is used first; the current one if not given.

    Raises
    ------
    ValueError
        If no device can have that much.
    OutOfMemoryError
        If the device has not that much left. Everything goes on working.
    """
    return get_memory_manager().allocate_memory(nbytes, stream)


def free_memory(ptr: int, nbytes: int | None = None) -> None:
    """Free memory by its address, whichever device it is on, checking its size if one is given.

    Raises
    ------
    ValueError
        If the address is not that of a living block, or the size is not its size.
    """
    _owner_of(ptr).free_memory(ptr, nbytes)


def memory_stats() -> dict[str, Any]:
    """The memory statistics, as :func:`genesis.cuda.memory_stats` gives them."""
    return get_memory_manager().memory_stats()
