"""The storage of arrays: for now, the memory managers beneath it."""

from genesis.ndarray import cuda_memory_manager

__all__ = ["cuda_memory_manager"]
