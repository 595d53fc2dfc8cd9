"""Genesis under Numba: an External Memory Manager plug-in.

Either ``enable()`` before Numba uses CUDA, or ``NUMBA_CUDA_MEMORY_MANAGER=genesis.adapters.numba``
in the environment.

Numba's interface has no streams: an array may be used on any of them. A block therefore belongs to
a stream on which nothing runs, and what is freed is handed out again when an event on CUDA's legacy
default stream is complete, which all work that was submitted to Numba's streams comes before.
Inside ``cuda.defer_cleanup()`` nothing is freed, as with Numba's own manager.

Numba hands memory to other processes by the driver's handles (``get_ipc_handle``), which there are
only for memory that the driver allocated, not for memory that was mapped. So a device that Numba is
the first to use gets the policy ``pool``, unless another adapter is on, or the environment has
``GENESIS_CUDA_ALLOCATOR``. Under the policy ``virtual`` asking for a handle is an error.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager

from genesis import _C, adapters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["enable", "is_enabled"]

_is_enabled = False


def _pointer_of(address: int) -> Any:
    """An address as Numba's driver layer wants it: of NVIDIA's bindings, or of ctypes."""
    try:
        from numba.cuda.cudadrv import driver
    except ImportError:
        return ctypes.c_uint64(address)
    binding = getattr(driver, "binding", None)
    if getattr(driver, "USE_NV_BINDING", binding is not None) and binding is not None:
        return binding.CUdeviceptr(address)
    return ctypes.c_uint64(address)


def _make_class() -> type:
    from numba import cuda

    class GenesisMemoryManager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
        """Numba's device memory comes from the manager of its device; host memory stays Numba's."""

        is_initialized = False
        stream: Any = None  # on which nothing runs: what the blocks belong to

        @property
        def index(self) -> int:
            """Of the context's device: Numba's, or the driver's where somebody else made it."""
            device = self.context.device
            return device.id if hasattr(device, "id") else int(device)

        def initialize(self) -> None:
            """Start the device's manager, so that handles can be had if Numba has it for itself.

            Numba calls this whenever it makes its context current.
            """
            if self.is_initialized:
                return
            if not any(adapters.get(name).is_enabled() for name in ("torch", "cupy")):
                adapters._load_library().gn_adapter_init_shareable(self.index)
            self.is_initialized = True

        def memalloc(self, size: int) -> Any:
            """A block of the device that is current in Numba."""
            manager = _C.MemoryManager(self.index)
            if self.stream is None:
                self.stream = _C.Stream(manager.device)
            address = manager.allocate_memory(size, self.stream)
            pending = self.deallocations

            def free(address: int) -> None:
                manager.record_stream(address, _C.default_stream(manager.device))
                manager.free_memory(address)

            def finalizer() -> None:
                if pending.is_disabled:
                    pending.add_item(free, address, size)
                else:
                    free(address)

            return cuda.MemoryPointer(self.context, _pointer_of(address), size, finalizer=finalizer)

        @contextmanager
        def defer_cleanup(self) -> Iterator[None]:
            """Nothing is freed inside; what was to be is freed at the end of the outermost."""
            with super().defer_cleanup():
                yield
            self.deallocations.clear()

        def get_memory_info(self) -> Any:
            """Bytes free and in all: what the manager keeps idle counts as free."""
            manager = _C.MemoryManager(self.index)
            manager.collect()
            free, total = _C.memory_info(manager.device)
            return cuda.MemoryInfo(free=free + manager.statistics()["cached_bytes"], total=total)

        def get_ipc_handle(self, memory: Any) -> Any:
            """A handle with which another process opens the block."""
            manager = _C.MemoryManager(self.index)
            if manager.policy == "virtual":
                raise RuntimeError(
                    "the driver has no handles of memory that was mapped, which is what the policy "
                    "virtual hands out: start the program with GENESIS_CUDA_ALLOCATOR=pool"
                )
            return super().get_ipc_handle(memory)

        def reset(self) -> None:
            """Numba forgets what it has: its finalizers free it; idle memory goes back."""
            super().reset()
            _C.MemoryManager(self.index).trim(0)

        @property
        def interface_version(self) -> int:
            """Of Numba's interface."""
            return 1

    return GenesisMemoryManager


def __getattr__(name: str) -> Any:
    # What NUMBA_CUDA_MEMORY_MANAGER looks for in the module that it names.
    if name == "_numba_memory_manager":
        return _make_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enable() -> None:
    """Put Genesis under Numba; a second call changes nothing.

    Raises
    ------
    RuntimeError
        If Numba has used CUDA already.
    """
    global _is_enabled
    from numba import cuda

    if not _is_enabled:
        cuda.set_memory_manager(_make_class())
    _is_enabled = True


def is_enabled() -> bool:
    """Whether Numba allocates from Genesis, by enable().

    Examples
    --------
    >>> from genesis.adapters import numba as adapter
    >>> adapter.is_enabled()
    False
    """
    return _is_enabled
