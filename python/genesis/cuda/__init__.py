"""CUDA devices, streams, events and their memory.

Nothing in CUDA starts before the first call that needs it. Where a function takes a device, it may
be a number, a name such as ``"cuda:1"``, a :class:`genesis.device`, or None for the current one.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from genesis import _C, _memory
from genesis._C import CUDAGraph, Event, OutOfMemoryError, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike
    from types import TracebackType
    from typing import Any

    from genesis import _nvtx as nvtx
    from genesis._cuda_memory import MemPool as MemPool
    from genesis._cuda_memory import caching_allocator_alloc as caching_allocator_alloc
    from genesis._cuda_memory import caching_allocator_delete as caching_allocator_delete
    from genesis._cuda_memory import use_mem_pool as use_mem_pool
    from genesis._kernel import Kernel as Kernel
    from genesis._kernel import warm_up_kernels as warm_up_kernels
    from genesis._kernel_list import LoadedKernel as LoadedKernel
    from genesis._kernel_list import kernels as kernels
    from genesis._kernel_list import wait_for_kernels as wait_for_kernels
    from genesis._nvml import utilization as utilization
    from genesis._profiling import enable_profiling as enable_profiling
    from genesis._profiling import profiler as profiler
    from genesis._tuning import TuningChoice as TuningChoice
    from genesis._tuning import tuning_choices as tuning_choices
    from genesis._types import DeviceProperties
    from genesis.cuda import amp as amp

    DeviceLike = _C.device | str | int | None

__all__ = [
    "CUDAGraph",
    "DeviceProperties",
    "Event",
    "ExternalStream",
    "Graph",
    "Kernel",
    "LoadedKernel",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "TuningChoice",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "clear_kernel_cache",
    "configure_memory_manager",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "dump_snapshot",
    "empty_cache",
    "enable_lazy_init",
    "enable_memory_debugging",
    "enable_profiling",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_kernel_fusion_failures",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "kernels",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "profiler",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_cache_size",
    "set_device",
    "set_kernel_fusion",
    "set_memory_callback",
    "set_memory_fraction",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "tuning_choices",
    "use_mem_pool",
    "utilization",
    "wait_for_kernels",
    "warm_up_kernels",
]


# What few need, and where it is: imported when it is asked for.
_LATE = {
    "_cuda_memory": (
        "MemPool",
        "caching_allocator_alloc",
        "caching_allocator_delete",
        "use_mem_pool",
    ),
    "_kernel": ("Kernel", "warm_up_kernels"),
    "_kernel_list": ("LoadedKernel", "kernels", "wait_for_kernels"),
    "_nvml": ("utilization",),
    "_profiling": ("enable_profiling", "profiler"),
    "_tuning": ("TuningChoice", "tuning_choices"),
}


def __getattr__(name: str) -> Any:
    # typing is slow to import, and most programs never ask what a device is.
    if name == "DeviceProperties":
        from genesis._types import DeviceProperties

        return DeviceProperties
    if name == "nvtx":
        from genesis import _nvtx

        return _nvtx
    if name == "amp":
        from importlib import import_module

        return import_module("genesis.cuda.amp")
    if name.endswith("Tensor"):
        from genesis import _torch_names

        if name in _torch_names.TYPE_NAMES:
            return _torch_names.tensor_type(name, "cuda")
    for module, names in _LATE.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"genesis.{module}"), name)
    raise AttributeError(f"module 'genesis.cuda' has no attribute {name!r}")


# ---- devices ------------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether there is a CUDA device that can be used.

    Never raises. ``set_device(0)`` says why when the answer is False.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.is_available() == (genesis.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices can be used; 0 where CUDA cannot be used at all.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.device_count() >= 0
    True
    """
    try:
        return _C.cuda_device_count()
    except RuntimeError:
        return 0


def is_initialized() -> bool:
    """Whether CUDA has been started in this process, by the first use of a device.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.is_initialized() <= genesis.cuda.is_available()
    True
    """
    return _C._cuda_is_started()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a CUDA device that computes with bfloat16.

    Each does; those of capability 8.0 and above have instructions for it.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.is_bf16_supported() == genesis.cuda.is_available()
    True
    """
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether a device can read and write the memory of another one directly; not of itself.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.can_device_access_peer("cpu", "cpu")
    False
    """
    return _C._can_access(device, peer_device)


def current_device() -> int:
    """The index of the CUDA device that this thread uses when none is named; 0 at first."""
    return _C.current_device()


def set_device(device: DeviceLike) -> None:
    """Make a CUDA device the one that this thread uses when none is named.

    Raises
    ------
    RuntimeError
        If CUDA cannot be used, with the reason, or if there is no such device.
    """
    _C.set_device(device)


class device:  # noqa: N801 - a context manager that PyTorch's users know by this name
    """Use a CUDA device inside a ``with`` block, and the one before after it.

    None or a negative number changes nothing.

    Examples
    --------
    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     with genesis.cuda.device(0):
    ...         genesis.cuda.synchronize()
    """

    def __init__(self, device: DeviceLike) -> None:
        if device is None or (isinstance(device, int) and device < 0):
            self.idx = -1
            return
        self.idx = _C.device(device).index
        if self.idx is None:
            raise ValueError("genesis.cuda.device() takes a CUDA device")

    def __enter__(self) -> device:
        before = _C.current_device()
        if self.idx >= 0:
            _C.set_device(self.idx)
        _thread_stack("device").append(before)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _restore_device(_thread_stack("device").pop())


# What ``with`` blocks put back, last in first out. Each thread has stacks of its own, so that
# threads can share one context manager.
_stacks: dict[tuple[str, int], list[Any]] = {}


def _thread_stack(kind: str) -> list[Any]:
    return _stacks.setdefault((kind, get_ident()), [])


def _restore_device(index: int) -> None:
    if index == _C.current_device():
        return
    try:
        _C.set_device(index)
    except RuntimeError:
        # In a forked child there is nothing to put back, and no reason to hide the exception that
        # may be on its way.
        pass


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """What a device is: name, memory, processors and limits.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.get_device_properties("cpu").total_memory > 0
    True
    """
    from genesis._types import DeviceProperties

    return DeviceProperties(**_C.device_properties(device))


def get_device_name(device: DeviceLike = None) -> str:
    """The name that the driver has for a device, such as ``"NVIDIA H200"``."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """The compute capability of a device, major and minor."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def synchronize(device: DeviceLike = None) -> None:
    """Wait until all work on a device is complete.

    Not while a graph is captured there, by whichever thread: that raises RuntimeError, as what is
    captured has not run. Other streams, and events in them, can be waited for.
    """
    _C.synchronize(device)


# ---- streams ------------------------------------------------------------------------------------


def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that this thread uses on a device; the default stream at first."""
    return _C.current_stream(device)


def is_current_stream_capturing() -> bool:
    """Whether the current stream of the current CUDA device is captured into a graph.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.is_current_stream_capturing()
    False
    """
    return is_initialized() and _C.current_stream(None).is_capturing


def default_stream(device: DeviceLike = None) -> Stream:
    """The default stream of a device, which other libraries use as well."""
    return _C.default_stream(device)


def set_stream(stream: Stream) -> None:
    """Make this thread use a stream on the stream's device."""
    _C.set_current_stream(stream)


def ExternalStream(stream_ptr: int, device: DeviceLike = None) -> Stream:  # noqa: N802
    """Wrap a stream of another library by its handle; it must live as long as it is used.

    Examples
    --------
    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     assert genesis.cuda.ExternalStream(0) == genesis.cuda.default_stream()
    """
    return _C.external_stream(stream_ptr, device)


_FRESH = object()


class stream:  # noqa: N801 - a context manager that PyTorch's users know by this name
    """Use a stream inside a ``with`` block, and the one before after it.

    The stream's device is the current one inside the block, too. With no argument a fresh stream of
    the current CUDA device is made; None changes nothing.

    Examples
    --------
    >>> import genesis
    >>> with genesis.cuda.stream(genesis.cuda.Stream(device="cpu")) as side:
    ...     assert genesis.cuda.current_stream("cpu") == side
    """

    def __init__(self, stream: Stream | None = _FRESH) -> None:  # type: ignore[assignment]
        self.stream = Stream() if stream is _FRESH else stream

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self.stream.__enter__()
        return self.stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.stream is not None:
            self.stream.__exit__()


# ---- graphs -------------------------------------------------------------------------------------

Graph = CUDAGraph

# One stream for each device: graphs that share memory must have been captured on the same one.
_capture_streams: dict[int, Stream] = {}


def graph_pool_handle(device: DeviceLike = None) -> object:
    """Memory for several graphs, to be given to :class:`graph` as ``pool``.

    They must be replayed in the order of their captures, and not use each other's results later.

    Examples
    --------
    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     pool = genesis.cuda.graph_pool_handle()
    """
    return _C.graph_pool_handle(device)


class graph:  # noqa: N801 - a context manager that PyTorch's users know by this name
    """Capture the operations of a ``with`` block into a graph, instead of running them.

    Parameters
    ----------
    cuda_graph : CUDAGraph
        An empty one. After an exception in the block it is empty again, and all else usable.
    pool : optional
        The memory of another graph, by its ``pool()`` or :func:`graph_pool_handle`.
    stream : Stream, optional
        The stream that is current in the block; not a default one. All that is captured must be
        submitted to it.

    Raises
    ------
    RuntimeError
        In the block, from what needs values on the host or copies from it: ``item()``,
        ``tolist()``, ``nonzero()``, ``unique()``, ``cpu()``, ``copy_()`` from a tensor of the CPU.

    Examples
    --------
    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     x = genesis.zeros(2, 3, device="cuda")
    ...     g = genesis.cuda.CUDAGraph()
    ...     with genesis.cuda.graph(g):
    ...         y = x.sum(dim=1)
    ...     for value in (1, 2):
    ...         _ = x.fill_(value)
    ...         g.replay()
    ...         assert y.tolist() == [3 * value, 3 * value]
    """

    def __init__(
        self, cuda_graph: CUDAGraph, pool: object = None, stream: Stream | None = None
    ) -> None:
        if not isinstance(cuda_graph, CUDAGraph):
            raise TypeError(f"a graph must be a CUDAGraph, not {type(cuda_graph).__name__}")
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.stream = stream

    def __enter__(self) -> CUDAGraph:
        stream = self.stream
        if stream is None:
            index = current_device()
            stream = _capture_streams.get(index)
            if stream is None:
                stream = _capture_streams.setdefault(index, Stream(index))
        self._entered = stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, stream)
        except BaseException:
            stream.__exit__()
            raise
        return self.cuda_graph

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph.reset()
        finally:
            self._entered.__exit__()


# ---- memory -------------------------------------------------------------------------------------


def _manager(device: DeviceLike) -> _C.MemoryManager | None:
    """The memory manager of a device, or None where there is no CUDA at all."""
    if device is None and _C.cuda_is_missing():
        return None
    return _C.MemoryManager(device)


def _statistic(device: DeviceLike, name: str) -> int:
    manager = _manager(device)
    return _memory.statistics(manager)[name] if manager is not None else 0


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that are handed out on a device now; 0 where CUDA cannot be used."""
    return _statistic(device, "live_bytes")


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were handed out at one time since the start or the last reset."""
    return _statistic(device, "live_bytes_peak")


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that were obtained from the driver and not given back."""
    return _statistic(device, "reserved_bytes")


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes that were kept from the driver since the start or the last reset."""
    return _statistic(device, "reserved_bytes_peak")


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Bytes that are free on a device, for all processes, and all that it has.

    Raises
    ------
    RuntimeError
        If CUDA cannot be used, with the reason, and the device is not the CPU.

    Examples
    --------
    >>> import genesis
    >>> free, total = genesis.cuda.mem_get_info("cpu")
    >>> 0 < free < total
    True
    """
    return _C.memory_info(device)


def memory_cached(device: DeviceLike = None) -> int:
    """Bytes that were obtained from the driver, are idle, and are kept to be used again."""
    return _statistic(device, "cached_bytes")


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Set the peaks of a device to what is live now."""
    manager = _manager(device)
    if manager is not None:
        _memory.reset_peaks(manager)


def reset_max_memory_allocated(device: DeviceLike = None) -> None:
    """The older name of :func:`reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


reset_max_memory_cached = reset_max_memory_allocated


def max_memory_cached(device: DeviceLike = None) -> int:
    """The older name of :func:`max_memory_reserved`."""
    return max_memory_reserved(device)


def empty_cache(device: DeviceLike = None) -> None:
    """Give idle memory back to the driver, on every CUDA device in use, or on one.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.empty_cache()
    >>> genesis.cuda.memory_cached()
    0
    """
    for manager in _memory.used_managers(device):
        if device is not None or manager.device.type == "cuda":
            manager.trim(0)


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """The memory statistics of a device.

    Returns
    -------
    dict
        ``allocated``, ``requested``, ``reserved``, ``cached``, ``pending``, ``peak_allocated``:
        bytes; ``free``: bytes that the device has free for every process; ``fragmentation``:
        1 - allocated / reserved; and beside them PyTorch's flat keys, such as
        ``"allocated_bytes.all.current"``, as far as they have a meaning here. Empty where CUDA
        cannot be used.

    Examples
    --------
    >>> import genesis
    >>> stats = genesis.cuda.memory_stats("cpu")
    >>> stats["allocated"] + stats["cached"] + stats["pending"] == stats["reserved"]
    True
    """
    manager = _manager(device)
    return _memory.manager_stats(manager) if manager is not None else {}


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """The memory statistics of a device as text for people.

    Examples
    --------
    >>> import genesis
    >>> print(genesis.cuda.memory_summary("cpu", abbreviated=True))  # doctest: +ELLIPSIS
    memory of cpu...
    """
    from genesis._memory_analysis import summary_text

    manager = _manager(device)
    if manager is None:
        return "no CUDA device; the CPU's: memory_summary('cpu')"
    return summary_text(manager, abbreviated)


def memory_snapshot(
    device: DeviceLike = None, format: str = "genesis"
) -> list[dict[str, Any]] | dict[str, Any]:
    """Every block of memory on a device, in the order of addresses.

    Parameters
    ----------
    device : device, str or int, optional
        The current CUDA device if not given.
    format : str
        ``"genesis"``: a list of blocks; ``"torch"``: a dict as PyTorch's ``memory._snapshot()``
        gives it, of all devices, with what :mod:`genesis.memory_profiler` has recorded.

    Returns
    -------
    list of dict, or dict
        Each with ``address``, ``size`` (as rounded), ``requested_size``, ``state`` (``"live"``,
        ``"pending"``, ``"stream_cached"`` or ``"global_cached"``), ``stream`` (the id of its
        stream, 0 for none), ``device``, ``segment`` and ``number`` (of the allocation). Empty where
        CUDA cannot be used.

    Examples
    --------
    >>> import genesis
    >>> address = genesis.memory_manager.allocate_memory(1000)
    >>> blocks = genesis.cuda.memory_snapshot(genesis.memory_manager.device)
    >>> [block["state"] for block in blocks if block["address"] == address]
    ['live']
    >>> genesis.memory_manager.free_memory(address)
    """
    if format == "torch":
        from genesis import _snapshot, memory_profiler

        return _snapshot.to_torch(memory_profiler.get_recording())
    if format != "genesis":
        raise ValueError(f"format is 'genesis' or 'torch', not {format!r}")
    manager = _manager(device)
    return _memory.manager_snapshot(manager) if manager is not None else []


def dump_snapshot(path: str | PathLike[str]) -> None:
    """Write a snapshot of all devices in PyTorch's layout, which its memory_viz page opens.

    It has what :mod:`genesis.memory_profiler` has recorded. JSON; a pickle if the path ends so.

    Examples
    --------
    >>> import genesis, os, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     genesis.cuda.dump_snapshot(os.path.join(directory, "snapshot.json"))
    """
    from genesis import _snapshot, memory_profiler

    _snapshot.dump(memory_profiler.get_recording(), path)


def _takes_statistics(callback: Callable[..., object]) -> bool:
    """Whether a callback is called with an argument, or without any."""
    from inspect import signature

    try:
        shape = signature(callback)
    except ValueError:  # nothing is known of it
        return True
    for arguments in (({},), ()):
        try:
            shape.bind(*arguments)
        except TypeError:
            continue
        return bool(arguments)
    raise TypeError(f"a callback takes the statistics, or nothing; this one takes {shape}")


def set_memory_callback(
    callback: Callable[..., object] | None, threshold: float = 0.8, device: DeviceLike = None
) -> None:
    """Have a function called when a device's memory gets full.

    Parameters
    ----------
    callback : callable or None
        ``callback(stats)``, with what :func:`memory_stats` gives, or without an argument if it
        takes none. It is called in the thread that allocates, outside of all locks: once when what
        is reserved rises above the threshold, again when it has fallen below meanwhile, and after
        each request that could not be met. None removes it.
    threshold : float
        A fraction of what this process may take, 0 to 1.
    device : device, str or int, optional
        The current CUDA device if not given; the CPU where there is none.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.set_memory_callback(print, threshold=0.9, device="cpu")
    >>> genesis.cuda.set_memory_callback(None, device="cpu")
    """
    manager = _manager(device)
    if manager is None:
        manager = _C.MemoryManager("cpu")
    if callback is None:
        manager.set_callback(None, 1.0)
        return
    if not callable(callback):
        raise TypeError(f"a callback must be callable or None, not {type(callback).__name__}")
    is_told = _takes_statistics(callback)

    def tell(is_out_of_memory: bool) -> None:
        if is_told:
            callback(_memory.manager_stats(manager))
        else:
            callback()

    manager.set_callback(tell, threshold)


def enable_memory_debugging(enabled: bool = True) -> None:
    """Remember where each block is allocated: see :func:`genesis.enable_memory_debugging`."""
    from genesis import _leaks

    _leaks.enable(enabled)


def set_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Limit the part of a device's memory that this process may take, 0 to 1.

    Where there is no CUDA device, and none is named, it is the CPU's.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.set_memory_fraction(0.9)
    >>> genesis.memory_manager.get_config()["memory_fraction"]
    0.9
    >>> genesis.cuda.set_memory_fraction(1.0)
    """
    configure_memory_manager({"memory_fraction": fraction}, device)


set_per_process_memory_fraction = set_memory_fraction


def set_cache_size(size: int | str | None, device: DeviceLike = None) -> None:
    """Limit the idle memory that is kept on a device; None removes the limit.

    Parameters
    ----------
    size : int or str
        Bytes, or a text such as ``"2GB"`` or ``"512MiB"``.
    device : device, str or int, optional
        The current CUDA device if not given; the CPU where there is none.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.set_cache_size("2GB")
    >>> genesis.memory_manager.get_config()["cache_bytes"]
    2000000000
    >>> genesis.cuda.set_cache_size(None)
    """
    configure_memory_manager({"cache_size": float("inf") if size is None else size}, device)


def configure_memory_manager(settings: dict[str, Any], device: DeviceLike = None) -> None:
    """Change settings of a device's memory manager: the keywords of its configure().

    Where there is no CUDA device, and none is named, it is the CPU's.

    Raises
    ------
    ValueError
        If there is no such setting; the message lists those there are. Nothing is changed.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.configure_memory_manager({"allocation_strategy": "best_fit"})
    """
    from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager, get_memory_manager

    if not hasattr(settings, "keys"):
        raise TypeError(f"settings are a dict of names and values, not {settings!r}")
    known = sorted(CUDAMemoryManager.configure.__kwdefaults__)
    unknown = sorted(str(key) for key in settings if key not in known)
    if unknown:
        raise ValueError(f"no such setting: {', '.join(unknown)}; there are {', '.join(known)}")
    get_memory_manager(device).configure(**settings)


# ---- kernels ------------------------------------------------------------------------------------


def clear_kernel_cache() -> int:
    """Forget every compiled kernel and what tuning has found, in this process and on disk.

    The next launch compiles again, what did not compile before, too, and measures again
    (:func:`tuning_choices`). A :class:`Kernel` that was launched keeps what it has.

    Returns
    -------
    int
        How many files were removed from the cache directory.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.clear_kernel_cache() >= 0
    True
    """
    return _C.clear_kernel_cache()


def get_kernel_fusion_failures() -> int:
    """How often operations could not be one kernel, and ran one by one instead.

    That is so when the kernel does not compile, or the driver does not take it: the log says why.
    An operation that fails by itself, too, raises.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.get_kernel_fusion_failures()
    0
    """
    return _C._get_fusion_failures()


def set_kernel_fusion(enabled: bool) -> None:
    """Whether operations may wait to become one kernel; the switch of :func:`genesis.set_fusion`.

    Off, each operation is a kernel of its own, which is submitted at once.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.set_kernel_fusion(False)
    >>> genesis.cuda.set_kernel_fusion(True)
    """
    _C.set_fusion(enabled)


def manual_seed(seed: int) -> None:
    """Begin the sequence of random numbers that belongs to a seed, as :func:`genesis.manual_seed`.

    There is one generator for all devices: a seed gives the same numbers on each.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.manual_seed(3)
    >>> genesis.initial_seed()
    3
    """
    _C.default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Begin with a seed that nobody knows, as :func:`genesis.seed`."""
    _C.default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    """The seed of the one generator of all devices."""
    return _C.default_generator.initial_seed()


def get_rng_state(device: DeviceLike = None) -> _C.Tensor:
    """Where the one generator of all devices is, as :func:`genesis.get_rng_state` gives it.

    Examples
    --------
    >>> import genesis
    >>> state = genesis.cuda.get_rng_state()
    >>> genesis.cuda.set_rng_state(state)
    """
    return _C.get_rng_state()


def set_rng_state(new_state: _C.Tensor, device: DeviceLike = None) -> None:
    """Go on from where the generator of all devices was."""
    _C.set_rng_state(new_state)


def get_rng_state_all() -> list[_C.Tensor]:
    """The state of the one generator, for each device.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.set_rng_state_all(genesis.cuda.get_rng_state_all())
    """
    return [_C.get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: Iterable[_C.Tensor]) -> None:
    """Go on from such states: the first of them counts."""
    for state in new_states:
        _C.set_rng_state(state)
        break


def init() -> None:
    """Start CUDA now, and not at its first use."""
    enable_lazy_init(False)


def ipc_collect() -> None:
    """Nothing: memory that other processes had is given back when they let it go."""


def is_tf32_supported() -> bool:
    """Whether there is a CUDA device with instructions for TF32.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.is_tf32_supported() <= genesis.cuda.is_available()
    True
    """
    return is_available() and get_device_capability() >= (8, 0)


def get_arch_list() -> list[str]:
    """The architectures that there are kernels for: that of each device.

    Examples
    --------
    >>> import genesis
    >>> len(genesis.cuda.get_arch_list()) <= genesis.cuda.device_count()
    True
    """
    found = {get_device_capability(index) for index in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(found)]


def enable_lazy_init(enabled: bool = True) -> None:
    """Whether CUDA starts at its first use, as it does by default; False starts it at once.

    Started is the current CUDA device. What has been started stays so.

    Raises
    ------
    RuntimeError
        If CUDA is to be started and cannot be used, with the reason.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.enable_lazy_init(True)
    """
    if not enabled:
        _C.synchronize(_C.device("cuda", _C.current_device()))


def _name_library_directories() -> None:
    """Say where NVIDIA's wheels keep NVRTC and cuBLASLt; they are looked at when one is needed.

    Only where packages are installed: never the current directory, which may be on sys.path.
    """
    for root in sys.path:
        if root.startswith("/") and root.endswith(("/site-packages", "/dist-packages")):
            for name in ("cu13", "cuda_nvrtc", "cublas"):
                try:
                    _C.add_library_directory(f"{root}/nvidia/{name}/lib")
                except ValueError:
                    return  # enough is enough


_name_library_directories()
