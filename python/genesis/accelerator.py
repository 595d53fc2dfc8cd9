"""The GPUs of this machine, whatever they are, under PyTorch's names: CUDA devices here.

Examples
--------
>>> import genesis
>>> genesis.accelerator.is_available() == genesis.cuda.is_available()
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from genesis import _C, cuda

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

is_available = cuda.is_available
device_count = cuda.device_count
current_device_index = current_device_idx = cuda.current_device
set_device_index = set_device_idx = cuda.set_device
current_stream = cuda.current_stream
set_stream = cuda.set_stream
synchronize = cuda.synchronize
empty_cache = cuda.empty_cache
memory_allocated = cuda.memory_allocated
memory_reserved = cuda.memory_reserved
max_memory_allocated = cuda.max_memory_allocated
max_memory_reserved = cuda.max_memory_reserved
reset_peak_memory_stats = cuda.reset_peak_memory_stats


def current_accelerator(check_available: bool = False) -> Any:
    """The type of device that accelerates; None where there is no GPU.

    Examples
    --------
    >>> import genesis
    >>> (genesis.accelerator.current_accelerator() is None) == (not genesis.cuda.is_available())
    True
    """
    return _C.device("cuda") if cuda.is_available() else None
