"""Pools: memory managers as objects that know what they handed out."""

from __future__ import annotations

from _thread import allocate_lock

from genesis import _C, _memory, cpu, cuda
from genesis._memory_views import Block, group_by_size, is_idle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from genesis._C import Stream
    from genesis.cuda import DeviceLike
    from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager


def _manager_of(device: DeviceLike) -> CUDAMemoryManager:
    """A device's manager. Plain "cuda" is the current device, or the CPU where there is no CUDA."""
    from genesis.ndarray.cuda_memory_manager import get_memory_manager

    return get_memory_manager(None if device == "cuda" else device)


class MemoryPool:
    """Memory of a device, with a record of what was handed out here.

    Memory that is given back goes to the caches of the device's manager, which every pool of the
    device shares.

    Parameters
    ----------
    device_type : str
        ``"cpu"``, ``"cuda:N"``, or ``"cuda"``: the current CUDA device, or the CPU where there is
        none.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import MemoryPool
    >>> pool = MemoryPool("cpu")
    >>> address = pool.allocate(1000)
    >>> pool.total_allocated, pool.allocated_blocks[address].size
    (1000, 1000)
    >>> pool.deallocate(address)
    >>> pool.total_allocated, pool.peak_allocated
    (0, 1000)
    """

    def __init__(self, device_type: DeviceLike = "cuda") -> None:
        self.manager = _manager_of(device_type)
        self.device_type = _C.device(device_type).type
        self.total_allocated = 0
        self.peak_allocated = 0
        self._blocks: dict[int, Block] = {}
        self._lock = allocate_lock()

    def allocate(self, size: int | str, stream: Stream | None = None) -> int:
        """Allocate memory and return its address."""
        size = _memory.parse_size(size, "size")
        address = self.manager.allocate_memory(size, stream)
        self._add(Block(address, size))
        return address

    def deallocate(self, ptr: int | Block) -> None:
        """Give memory of this pool back, to be used again.

        Raises
        ------
        ValueError
            If this pool did not hand it out, or got it back already.
        """
        self._free(self.manager, self._remove(ptr))

    def compact_memory(self) -> Any:
        """Merge free blocks, and give back what is not needed; see the manager's compact()."""
        self.manager.coalesce()
        return self.manager.compact()

    @property
    def allocated_blocks(self) -> dict[int, Block]:
        """What this pool handed out, by address."""
        with self._lock:
            return dict(self._blocks)

    @property
    def free_blocks(self) -> dict[int, list[Block]]:
        """The idle blocks of the device, by size."""
        return group_by_size(
            Block(entry["address"], entry["nbytes"], True, entry["segment_id"])
            for entry in self.manager.blocks()
            if is_idle(entry)
        )

    def _add(self, block: Block) -> None:
        with self._lock:
            self._blocks[block.ptr] = block
            self.total_allocated += block.size
            self.peak_allocated = max(self.peak_allocated, self.total_allocated)

    def _remove(self, ptr: int | Block) -> Block:
        address = ptr.ptr if isinstance(ptr, Block) else ptr
        if not hasattr(address, "__index__"):
            raise TypeError(f"an address is an int, not {address!r}")
        with self._lock:
            block = self._blocks.pop(address, None)
            if block is None:
                raise ValueError(f"{address:#x} is not an address that this pool handed out")
            self.total_allocated -= block.size
        return block

    def _free(self, manager: _C.MemoryManager, block: Block) -> None:
        try:
            manager.free_memory(block.ptr, block.size)
        except RuntimeError:  # a lost device: it is still ours
            self._add(block)
            raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.manager.device)!r})"


class CUDAMemoryPool(MemoryPool):
    """Memory of a CUDA device; of the CPU where there is none.

    The numbers are the device's, whoever asked for the memory.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryPool
    >>> pool = CUDAMemoryPool.get_instance()
    >>> pool.allocated_bytes + pool.cached_bytes <= pool.reserved_bytes
    True
    """

    _instances: dict[int, CUDAMemoryPool] = {}

    def __init__(self, device_id: int = 0) -> None:
        if isinstance(device_id, bool) or not hasattr(device_id, "__index__"):
            raise TypeError(f"a CUDA device is known by its number here, not {device_id!r}")
        is_fallback = device_id == 0 and _C.cuda_is_missing()
        super().__init__("cuda" if is_fallback else f"cuda:{device_id.__index__()}")
        self.device_id = device_id

    @classmethod
    def get_instance(cls, device_id: int | None = None) -> CUDAMemoryPool:
        """The pool of a device that everybody shares; of the current one if none is named."""
        index = cuda.current_device() if device_id is None else device_id
        pool = CUDAMemoryPool._instances.get(index)
        if pool is None:
            pool = CUDAMemoryPool._instances.setdefault(index, CUDAMemoryPool(index))
        return pool

    @property
    def memory_fraction(self) -> float:
        """The part of the device's memory that this process may take, 0 to 1; can be set."""
        return self.manager.get_config()["memory_fraction"]

    @memory_fraction.setter
    def memory_fraction(self, fraction: float) -> None:
        self.manager.configure(memory_fraction=fraction)

    @property
    def allocated_bytes(self) -> int:
        """Bytes that are handed out."""
        return self.manager.statistics()["live_bytes"]

    @property
    def cached_bytes(self) -> int:
        """Bytes that are reserved and idle."""
        return self.manager.statistics()["cached_bytes"]

    @property
    def reserved_bytes(self) -> int:
        """Bytes that were obtained from the driver."""
        return self.manager.statistics()["reserved_bytes"]

    @property
    def free_bytes(self) -> int:
        """Bytes that the device has free, for every process."""
        return _C.memory_info(self.manager.device)[0]

    @property
    def fragmentation_ratio(self) -> float:
        """The part of the reserved memory that is not handed out, 0 to 1."""
        return _memory.fragmentation(self.manager.statistics())

    @property
    def peak_allocated_bytes(self) -> int:
        """The most bytes that were handed out at one time."""
        return _memory.statistics(self.manager)["live_bytes_peak"]


class CPUMemoryPool(MemoryPool):
    """Memory of the CPU, page-locked where that is asked for.

    Attributes
    ----------
    use_pinned_memory : bool
        Whether allocate() gives page-locked memory; as genesis.cpu.enable_pinned_memory() says at
        first.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import CPUMemoryPool
    >>> pool = CPUMemoryPool()
    >>> address = pool.allocate(100)
    >>> pool.is_pinned(address)
    False
    >>> pool.deallocate(address)
    """

    def __init__(self) -> None:
        super().__init__("cpu")
        self.use_pinned_memory = cpu.is_pinned_memory_enabled()
        self._pinned: dict[int, _C.MemoryManager] = {}  # address -> the manager that has it

    def allocate(self, size: int | str, stream: Stream | None = None) -> int:
        """Allocate memory and return its address."""
        if self.use_pinned_memory:
            return self.allocate_pinned(size).ptr
        return super().allocate(size, stream)

    def allocate_pinned(self, size: int | str) -> Block:
        """Allocate memory that the current CUDA device reads and writes directly.

        Where there is no CUDA device it is ordinary memory, and one warning says so.
        """
        manager = _C.MemoryManager(None if _C._can_pin() else "cpu", pinned=True)
        size = _memory.parse_size(size, "size")
        block = Block(manager.allocate_memory(size), size, pinned=True)
        self._add(block)
        self._pinned[block.ptr] = manager
        return block

    def deallocate(self, ptr: int | Block) -> None:
        """Give memory of this pool back, to be used again."""
        block = self._remove(ptr)
        self._free(self._pinned.pop(block.ptr, self.manager), block)

    def is_pinned(self, ptr: int | Block) -> bool:
        """Whether this is the address, or a block, that allocate_pinned() gave."""
        return (ptr.ptr if isinstance(ptr, Block) else ptr) in self._pinned

    @property
    def pinned_blocks(self) -> set[int]:
        """The addresses that allocate_pinned() gave and that are alive."""
        return set(self._pinned)


class AllocationFuture:
    """An allocation that is on its way, in the manner of concurrent.futures.Future.

    It cannot be cancelled. A block whose address nobody asked for is freed with this object.
    """

    def __init__(
        self,
        request: _C.MemoryRequest | None,
        on_address: Callable[[int], None],
        on_failure: Callable[[], None],
        error: BaseException | None = None,
    ) -> None:
        self._request = request
        self._on_address = on_address
        self._on_failure = on_failure
        self._address: int | None = None
        self._error = error
        self._lock = allocate_lock()

    def done(self) -> bool:
        """Whether result() would not wait."""
        request = self._request
        return request is None or request.query()

    def running(self) -> bool:
        """Whether it is not done."""
        return not self.done()

    def cancel(self) -> bool:
        """Nothing: it cannot be cancelled."""
        return False

    def cancelled(self) -> bool:
        """False: it cannot be cancelled."""
        return False

    def result(self, timeout: float | None = None) -> int:
        """The address, which belongs to the caller; waits for it if need be.

        Raises
        ------
        TimeoutError
            If it is not there after so many seconds. It can be asked for again.
        OutOfMemoryError
            If the device has not that much left.
        """
        self._finish(timeout)
        if self._error is not None:
            raise self._error
        assert self._address is not None
        return self._address

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What result() would raise, or None; waits for it if need be."""
        self._finish(timeout)
        return self._error

    def add_done_callback(self, fn: Callable[[AllocationFuture], object]) -> None:
        """Have fn(self) called when it is done, in another thread; at once if it is."""
        if self.done():
            fn(self)
            return
        from threading import Thread

        def wait() -> None:
            self.exception()
            fn(self)

        Thread(target=wait, name="genesis allocation", daemon=True).start()

    def _finish(self, timeout: float | None) -> None:
        """Wait for the request, and take its result in. Threads may meet here; one takes it."""
        request = self._request
        if request is None:
            return
        address, error = None, None
        try:
            address = request.wait(timeout)
        except TimeoutError:
            raise
        except (RuntimeError, ValueError, MemoryError) as failure:
            error = failure
        with self._lock:
            if self._request is None:
                return
            self._address, self._error = address, error
            if address is not None:
                self._on_address(address)
            else:
                self._on_failure()
            self._request = None

    def __del__(self) -> None:
        if getattr(self, "_request", None) is not None:
            self._on_failure()


class AsyncMemoryPool(MemoryPool):
    """Memory that another thread prepares, up to a limit.

    Parameters
    ----------
    pool_size : int or str
        The most bytes that are handed out at one time.
    device : device, str or int, optional
        The current CUDA device if not given; the CPU where there is none.

    Examples
    --------
    >>> from genesis.ndarray.cuda_memory_manager import AsyncMemoryPool
    >>> pool = AsyncMemoryPool()
    >>> future = pool.allocate_async(1000)
    >>> address = future.result()
    >>> address % pool.alignment
    0
    >>> pool.deallocate(address)
    """

    def __init__(self, pool_size: int | str = 1 << 30, device: DeviceLike = None) -> None:
        super().__init__("cuda" if device is None else device)
        self.pool_size = _memory.parse_size(pool_size, "pool_size")
        self._coming = 0  # bytes that were asked for and did not arrive yet

    @property
    def alignment(self) -> int:
        """Addresses are multiples of this."""
        return 256 if self.manager.policy == "direct" else 512

    def allocate(self, size_bytes: int | str, stream: Stream | None = None) -> int:
        """Allocate memory and return its address."""
        size_bytes = _memory.parse_size(size_bytes, "size_bytes")
        self._reserve(size_bytes)
        try:
            address = self.manager.allocate_memory(size_bytes, stream)
        except BaseException:
            self._unreserve(size_bytes)
            raise
        self._arrive(address, size_bytes)
        return address

    def allocate_async(self, size: int | str, stream: Stream | None = None) -> AllocationFuture:
        """Start an allocation and return at once; the result is an address."""
        size = _memory.parse_size(size, "size")
        try:
            self._reserve(size)
        except _C.OutOfMemoryError as error:
            return AllocationFuture(None, lambda address: None, lambda: None, error)
        try:
            request = self.manager.allocate_async(size, stream)
        except BaseException:
            self._unreserve(size)
            raise
        return AllocationFuture(
            request,
            lambda address: self._arrive(address, size),
            lambda: self._unreserve(size),
        )

    def _reserve(self, size: int) -> None:
        with self._lock:
            used = self.total_allocated + self._coming
            if size > self.pool_size - used:
                raise _C.OutOfMemoryError(
                    f"{_memory.format_size(size)} were asked for, and the pool has "
                    f"{_memory.format_size(used)} of its {_memory.format_size(self.pool_size)} "
                    "handed out: deallocate some, or make it with a larger pool_size"
                )
            self._coming += size

    def _unreserve(self, size: int) -> None:
        with self._lock:
            self._coming -= size

    def _arrive(self, address: int, size: int) -> None:
        self._unreserve(size)
        self._add(Block(address, size))
