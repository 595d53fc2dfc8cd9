"""The storage of arrays: the memory managers beneath it, and plans of keys."""

from genesis._index_plan import IndexKind, IndexPlan
from genesis.ndarray import cuda_memory_manager

__all__ = ["IndexKind", "IndexPlan", "cuda_memory_manager"]
