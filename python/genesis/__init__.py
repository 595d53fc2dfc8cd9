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

from typing import TYPE_CHECKING, Any

from genesis import cuda
from genesis._C import (
    DeviceLostError,
    InvalidDeviceError,
    OutOfMemoryError,
    __version__,
    device,
)

if TYPE_CHECKING:
    from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager

    memory_manager: CUDAMemoryManager

__all__ = [
    "DeviceLostError",
    "InvalidDeviceError",
    "OutOfMemoryError",
    "__version__",
    "cuda",
    "device",
    "memory_manager",
]


def __getattr__(name: str) -> Any:
    # Asked for each time, since it follows the current device.
    if name == "memory_manager":
        from genesis.ndarray.cuda_memory_manager import get_memory_manager

        return get_memory_manager()
    raise AttributeError(f"module 'genesis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
