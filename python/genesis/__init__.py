"""Genesis: tensor storage and memory management for CPUs and GPUs.

Importing this package starts nothing: the CUDA driver is loaded at the first use of a CUDA device.

Examples
--------
>>> import genesis
>>> manager = genesis.memory_manager
>>> address = manager.allocate_memory(1 << 20)
>>> manager.free_memory(address)
"""

from __future__ import annotations

from genesis import cpu, cuda
from genesis._C import (
    DeviceLostError,
    InvalidDeviceError,
    OutOfMemoryError,
    __version__,
    device,
)
from genesis._memory import detailed_memory_stats, empty_cache, memory_pressure, memory_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager

    memory_manager: CUDAMemoryManager

__all__ = [
    "DeviceLostError",
    "InvalidDeviceError",
    "OutOfMemoryError",
    "__version__",
    "cpu",
    "cuda",
    "detailed_memory_stats",
    "device",
    "empty_cache",
    "memory_pressure",
    "memory_stats",
]


def __getattr__(name: str) -> Any:
    # Asked for each time, since it follows the current device. Not in __all__: it starts CUDA.
    if name == "memory_manager":
        from genesis.ndarray.cuda_memory_manager import get_memory_manager

        return get_memory_manager()
    raise AttributeError(f"module 'genesis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "memory_manager"})
