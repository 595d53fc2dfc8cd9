"""Genesis under CuPy: arrays and page-locked memory.

Blocks belong to the stream that is CuPy's current one when they are allocated, and are reused in
its order. CuPy's own pools are not asked any more; their limits have no effect:
:func:`genesis.cuda.set_memory_fraction` has.
"""

from __future__ import annotations

from typing import Any

from genesis import _C

__all__ = ["disable", "enable", "is_enabled"]

_before: tuple[Any, Any] | None = None  # CuPy's allocators, to be put back
_streams: dict[tuple[int, int], _C.Stream] = {}


class _Block:
    """What keeps a block alive: CuPy holds it as the memory's owner."""

    __slots__ = ("address", "manager")

    def __init__(self, manager: _C.MemoryManager, address: int) -> None:
        self.manager = manager
        self.address = address

    def __del__(self) -> None:
        self.manager.free_memory(self.address)


def _stream(cupy: Any, device: int) -> _C.Stream:
    handle = cupy.cuda.get_current_stream().ptr
    found = _streams.get((device, handle))
    if found is None:
        found = _streams[device, handle] = _C.external_stream(handle, device)
    return found


def _allocate(cupy: Any, nbytes: int) -> Any:
    device = cupy.cuda.Device().id
    manager = _C.MemoryManager(device)
    try:
        address = manager.allocate_memory(nbytes, _stream(cupy, device))
    except _C.OutOfMemoryError as error:
        raise _out_of_memory(cupy, error) from error
    memory = cupy.cuda.UnownedMemory(address, nbytes, _Block(manager, address), device)
    return cupy.cuda.MemoryPointer(memory, 0)


def _out_of_memory(cupy: Any, error: Exception) -> Exception:
    """CuPy's exception, with our words: programs that catch it go on working."""
    made = cupy.cuda.memory.OutOfMemoryError.__new__(cupy.cuda.memory.OutOfMemoryError)
    made.args = (str(error),)
    return made


class _PinnedBlock(_Block):
    """Page-locked memory as CuPy knows it: an object with a pointer."""

    __slots__ = ("mem", "ptr", "size")

    def __init__(self, manager: _C.MemoryManager, address: int, nbytes: int) -> None:
        super().__init__(manager, address)
        self.ptr = address
        self.size = nbytes


def _allocate_pinned(cupy: Any, nbytes: int) -> Any:
    manager = _C.MemoryManager(cupy.cuda.Device().id, pinned=True)
    block = _PinnedBlock(manager, manager.allocate_memory(nbytes), nbytes)
    return cupy.cuda.PinnedMemoryPointer(block, 0)


def enable() -> None:
    """Put Genesis under CuPy, for all threads; a second call changes nothing."""
    global _before
    import cupy

    if _before is not None:
        return
    _before = (cupy.cuda.get_allocator(), cupy.get_default_pinned_memory_pool().malloc)
    cupy.cuda.set_allocator(lambda nbytes: _allocate(cupy, nbytes))
    cupy.cuda.set_pinned_memory_allocator(lambda nbytes: _allocate_pinned(cupy, nbytes))


def disable() -> None:
    """Put back what CuPy had before; arrays that are alive stay where they are."""
    global _before
    import cupy

    if _before is not None:
        cupy.cuda.set_allocator(_before[0])
        cupy.cuda.set_pinned_memory_allocator(_before[1])
    _before = None


def is_enabled() -> bool:
    """Whether CuPy allocates from Genesis.

    Examples
    --------
    >>> from genesis.adapters import cupy as adapter
    >>> adapter.is_enabled()
    False
    """
    return _before is not None
