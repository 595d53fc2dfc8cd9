"""Another name of :mod:`genesis.ndarray.cuda_memory_manager`."""

from genesis.ndarray import cuda_memory_manager
from genesis.ndarray.cuda_memory_manager import *  # noqa: F403

__all__ = cuda_memory_manager.__all__
