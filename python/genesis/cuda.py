"""CUDA devices, streams, events and their memory.

Nothing in CUDA starts before the first call that needs it. Where a function takes a device, it may
be a number, a name such as ``"cuda:1"``, a :class:`genesis.device`, or None for the current one.
"""

from __future__ import annotations

from _thread import get_ident

from genesis import _C
from genesis._C import Event, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from genesis._types import DeviceProperties

    DeviceLike = _C.device | str | int | None

__all__ = [
    "DeviceProperties",
    "Event",
    "ExternalStream",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]


def __getattr__(name: str) -> Any:
    # typing is slow to import, and most programs never ask what a device is.
    if name == "DeviceProperties":
        from genesis._types import DeviceProperties

        return DeviceProperties
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
    """Wait until all work on a device is complete."""
    _C.synchronize(device)


# ---- streams ------------------------------------------------------------------------------------


def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that this thread uses on a device; the default stream at first."""
    return _C.current_stream(device)


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


def _enter_stream(stream: Stream) -> Stream:
    where = stream.device
    before = _C.current_stream(where), _C.current_device()
    _C.set_current_stream(stream)
    if where.type == "cuda":
        _C.set_device(where)
    _thread_stack("stream").append(before)
    return stream


def _exit_stream(stream: Stream) -> None:
    before, index = _thread_stack("stream").pop()
    _C.set_current_stream(before)
    _restore_device(index)


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
            _enter_stream(self.stream)
        return self.stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.stream is not None:
            _exit_stream(self.stream)


# ---- memory -------------------------------------------------------------------------------------


def _statistics(device: DeviceLike) -> dict[str, int] | None:
    """The counters of a device's memory manager, or None where there is no CUDA at all."""
    if device is None and _C.cuda_is_missing():
        return None
    return _C.MemoryManager(device).statistics()


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that are handed out on a device now; 0 where CUDA cannot be used."""
    now = _statistics(device)
    return now["live_bytes"] if now else 0


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were handed out at one time since the start or the last reset."""
    now = _statistics(device)
    return now["live_bytes_peak"] if now else 0


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that were obtained from the driver and not given back."""
    now = _statistics(device)
    return now["reserved_bytes"] if now else 0


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Set the peaks of a device to what is live now."""
    if device is not None or not _C.cuda_is_missing():
        _C.MemoryManager(device).reset_peaks()


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """The memory statistics of a device.

    Returns
    -------
    dict
        ``allocated``, ``reserved``, ``cached``, ``peak_allocated``: bytes; ``free``: bytes that the
        device has free for every process; ``fragmentation``: 1 - allocated / reserved; and beside
        them PyTorch's flat keys, such as ``"allocated_bytes.all.current"``. Empty where CUDA cannot
        be used.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.memory_stats("cpu")["cached"]
    0
    """
    now = _statistics(device)
    if now is None:
        return {}
    free, _ = _C.memory_info(device)
    live, reserved = now["live_bytes"], now["reserved_bytes"]
    stats: dict[str, Any] = {
        "allocated": live,
        "reserved": reserved,
        "cached": reserved - live,
        "free": free,
        "fragmentation": 1 - live / reserved if reserved else 0.0,
        "peak_allocated": now["live_bytes_peak"],
    }
    flat = {
        "allocation": ("live_count", "live_count_peak", "alloc_count", "free_count"),
        "allocated_bytes": (
            "live_bytes",
            "live_bytes_peak",
            "alloc_bytes_total",
            "free_bytes_total",
        ),
        "reserved_bytes": (
            "reserved_bytes",
            "reserved_bytes_peak",
            "alloc_bytes_total",
            "free_bytes_total",
        ),
        "segment": ("live_count", "live_count_peak", "driver_alloc_count", "driver_free_count"),
    }
    flat["active"] = flat["allocation"]
    flat["active_bytes"] = flat["requested_bytes"] = flat["allocated_bytes"]
    for key, counters in flat.items():
        for kind, counter in zip(("current", "peak", "allocated", "freed"), counters, strict=True):
            stats[f"{key}.all.{kind}"] = now[counter]
    stats["num_ooms"] = now["out_of_memory_count"]
    stats["num_device_alloc"] = now["driver_alloc_count"]
    stats["num_device_free"] = now["driver_free_count"]
    return stats
