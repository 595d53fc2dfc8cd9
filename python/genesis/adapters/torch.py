"""Genesis under PyTorch.

``enable()`` comes before PyTorch uses CUDA; from then on every tensor on a GPU lies in memory of
Genesis, and ``torch.cuda.memory_stats()`` and its like answer from Genesis.
:mod:`genesis.memory_profiler` and the others see PyTorch's blocks with the Python lines that made
them. ``mempool()`` is for a part of a program, at any time.

What PyTorch's interface does not let through: a request that cannot be met raises
``torch.OutOfMemoryError`` where the library that PyTorch is made of has what that needs (all
releases since 2.1 that were looked at), else PyTorch goes on with an address of 0, and fails there.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from genesis.adapters import _load_library, _torch_memory

__all__ = ["enable", "is_enabled", "mempool"]

_enabled: Any = None  # the allocator, kept alive for ever: PyTorch calls into it


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _make_allocator(torch: Any, library: ctypes.CDLL) -> Any:
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        library._name, "gn_adapter_alloc", "gn_adapter_free"
    )
    inner = allocator.allocator()
    for setter, name in (
        ("set_init_fn", "gn_adapter_init"),
        ("set_reset_fn", "gn_adapter_reset"),
        ("set_memory_fraction_fn", "gn_adapter_set_fraction"),
        ("set_base_alloc_fn", "gn_adapter_base"),
        ("set_record_stream_fn", "gn_adapter_record_stream"),
    ):
        getattr(inner, setter)(_address(library, name))
    return allocator


def _raise_torch_errors(torch: Any, library: ctypes.CDLL) -> bool:
    """Have failed requests raise PyTorch's own exceptions; False where that cannot be."""
    path = Path(torch.__file__).parent / "lib" / "libc10_cuda.so"
    library.gn_adapter_torch_failure.restype = ctypes.c_void_p
    library.gn_adapter_torch_failure.argtypes = [ctypes.c_char_p]
    library.gn_adapter_set_failure.argtypes = [ctypes.c_void_p]
    failure = library.gn_adapter_torch_failure(str(path).encode())
    if failure:
        library.gn_adapter_set_failure(failure)
    return bool(failure)


def enable() -> None:
    """Put Genesis under PyTorch; a second call changes nothing.

    Raises
    ------
    RuntimeError
        If PyTorch has used CUDA already, or was built without it.
    """
    global _enabled
    import torch

    if _enabled is not None:
        return
    if not hasattr(torch._C, "_cuda_customAllocator"):
        raise RuntimeError("this PyTorch was built without CUDA")
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "PyTorch has used CUDA already: call genesis.adapters.torch.enable() before that, or "
            "use genesis.adapters.torch.mempool()"
        )
    library = _load_library()
    allocator = _make_allocator(torch, library)
    torch.cuda.memory.change_current_allocator(allocator)
    _raise_torch_errors(torch, library)
    _torch_memory.install(torch)
    _enabled = allocator


def is_enabled() -> bool:
    """Whether PyTorch allocates from Genesis.

    Examples
    --------
    >>> from genesis.adapters import torch as adapter
    >>> adapter.is_enabled()
    False
    """
    return _enabled is not None


def mempool() -> Any:
    """A ``torch.cuda.MemPool`` over Genesis, for ``torch.cuda.use_mem_pool()``.

    PyTorch's own cache stays on top of it, and asks Genesis for its segments.
    """
    import torch

    return torch.cuda.MemPool(_make_allocator(torch, _load_library()).allocator())
