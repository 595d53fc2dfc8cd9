"""Memory of a CUDA device apart from the rest, and by its address, with PyTorch's names."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from genesis._C import Stream
    from genesis.cuda import DeviceLike

__all__ = ["MemPool", "caching_allocator_alloc", "caching_allocator_delete", "use_mem_pool"]


class MemPool:
    """A pool whose memory is handed to nobody else: see :class:`use_mem_pool`.

    What is freed in it is used again by it. Its memory goes back when the pool is gone, and the
    last tensor in it.

    Parameters
    ----------
    allocator : None
        PyTorch's allocators are not for this.
    device : device, str or int, optional
        The current CUDA device if not given.

    Examples
    --------
    >>> import genesis
    >>> pool = genesis.cuda.MemPool(device="cpu")
    >>> with genesis.cuda.use_mem_pool(pool):
    ...     x = genesis.ones(1000)
    >>> x.sum().item()
    1000.0
    """

    _count = 0

    def __init__(self, allocator: None = None, *, device: DeviceLike = None) -> None:
        if allocator is not None:
            raise TypeError(f"MemPool: allocator is None, not {allocator!r}")
        manager = _C.MemoryManager(device)
        self.device = manager.device
        self._pool = _C.GraphPool(manager)
        MemPool._count += 1
        self.id = (0, MemPool._count)

    def __repr__(self) -> str:
        return f"MemPool(device={str(self.device)!r}, id={self.id})"


class use_mem_pool:  # noqa: N801 - a context manager that PyTorch's users know by this name
    """Take memory from a pool inside a ``with`` block.

    It is the memory of the stream that is current when the block begins, in this thread and in
    others. Blocks of one stream do not nest.

    Examples
    --------
    >>> import genesis
    >>> with genesis.cuda.use_mem_pool(genesis.cuda.MemPool(device="cpu")):
    ...     x = genesis.zeros(3)
    """

    def __init__(self, pool: MemPool, device: DeviceLike = None) -> None:
        if not isinstance(pool, MemPool):
            raise TypeError(f"use_mem_pool: the pool is a MemPool, not {pool!r}")
        if device is not None and _C.device(device) != pool.device:
            raise ValueError(f"use_mem_pool: the pool is for {pool.device}, not for {device}")
        self.pool = pool
        self._streams: list[Stream] = []

    def __enter__(self) -> None:
        stream = _C.current_stream(self.pool.device)
        _C.flush()  # what waits is not the pool's
        self.pool._pool.begin(stream)
        self._streams.append(stream)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            _C.flush()  # results that still wait are the pool's
        finally:
            self.pool._pool.end(self._streams.pop())


_allocated: dict[int, _C.MemoryManager] = {}


def caching_allocator_alloc(
    size: int, device: DeviceLike = None, stream: Stream | int | None = None
) -> int:
    """Allocate memory for another library, and give its address.

    Parameters
    ----------
    size : int
        Bytes.
    device : device, str or int, optional
        The current CUDA device if not given.
    stream : Stream or int, optional
        Which stream uses it, or the handle of one; the current one if not given.

    Examples
    --------
    >>> import genesis
    >>> address = genesis.cuda.caching_allocator_alloc(1000, "cpu")
    >>> genesis.cuda.caching_allocator_delete(address)
    """
    manager = _C.MemoryManager(device)
    if isinstance(stream, int):
        stream = _C.external_stream(stream, device)
    address = manager.allocate_memory(size, stream)
    _allocated[address] = manager
    return address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Free memory of :func:`caching_allocator_alloc`.

    Raises
    ------
    ValueError
        If it is not from there, or was freed before.
    """
    manager = _allocated.pop(mem_ptr, None)
    if manager is None:
        raise ValueError(f"caching_allocator_delete: {mem_ptr:#x} is not allocated")
    manager.free_memory(mem_ptr)
