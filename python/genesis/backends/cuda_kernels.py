"""Kernels: their own CUDA C, the cache of compiled ones, fusion, tuning, and how long they take.

The same names as in :mod:`genesis.cuda`.

Examples
--------
>>> import genesis
>>> from genesis.backends import cuda_kernels
>>> cuda_kernels.profiler is genesis.cuda.profiler
True
"""

from genesis._kernel import Kernel, warm_up_kernels
from genesis._kernel_list import LoadedKernel, kernels, wait_for_kernels
from genesis._profiling import KernelEvent, KernelStats, enable_profiling, profiler
from genesis._tuning import TuningCandidate, TuningChoice, tuning_choices
from genesis.cuda import clear_kernel_cache, set_kernel_fusion

__all__ = [
    "Kernel",
    "KernelEvent",
    "KernelStats",
    "LoadedKernel",
    "TuningCandidate",
    "TuningChoice",
    "clear_kernel_cache",
    "enable_profiling",
    "kernels",
    "profiler",
    "set_kernel_fusion",
    "tuning_choices",
    "wait_for_kernels",
    "warm_up_kernels",
]
