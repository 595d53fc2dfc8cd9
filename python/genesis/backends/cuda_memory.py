"""Another name of :mod:`genesis.ndarray.cuda_memory_manager`."""

from genesis.ndarray.cuda_memory_manager import (
    AllocationStatistics,
    CUDAMemoryManager,
    allocate_memory,
    free_memory,
    get_memory_manager,
    memory_stats,
)

__all__ = [
    "AllocationStatistics",
    "CUDAMemoryManager",
    "allocate_memory",
    "free_memory",
    "get_memory_manager",
    "memory_stats",
]
