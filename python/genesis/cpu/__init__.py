"""The CPU and its memory."""

from __future__ import annotations

from genesis import _C, _memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis.cpu import amp as amp

__all__ = [
    "current_device",
    "device_count",
    "enable_pinned_memory",
    "get_num_threads",
    "is_available",
    "is_pinned_memory_enabled",
    "memory_stats",
    "set_num_threads",
    "synchronize",
]

_is_pinned = False


def __getattr__(name: str) -> Any:
    if name == "amp":  # at its first use
        from importlib import import_module

        return import_module("genesis.cpu.amp")
    raise AttributeError(f"module 'genesis.cpu' has no attribute {name!r}")


def enable_pinned_memory(enabled: bool = True) -> None:
    """Choose whether memory of new CPU tensors is page-locked, so that a GPU reads it directly.

    Where there is no CUDA device it is ordinary memory, and one warning says so.

    Examples
    --------
    >>> import genesis
    >>> genesis.cpu.enable_pinned_memory(False)
    >>> genesis.cpu.is_pinned_memory_enabled()
    False
    """
    global _is_pinned
    if not isinstance(enabled, bool):
        raise TypeError(f"pinned memory is enabled by True or False, not {enabled!r}")
    if not enabled or _C._can_pin():
        _C._set_pinned(enabled)
    _is_pinned = enabled


def is_pinned_memory_enabled() -> bool:
    """Whether new CPU memory is to be page-locked."""
    return _is_pinned


def is_available() -> bool:
    """Whether there is a CPU.

    Examples
    --------
    >>> import genesis
    >>> genesis.cpu.is_available(), genesis.cpu.device_count(), genesis.cpu.current_device()
    (True, 1, 'cpu')
    """
    return True


def device_count() -> int:
    """How many CPUs there are: one, with all of its processors."""
    return 1


def current_device() -> str:
    """The device that is used: ``"cpu"``."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Compute what is pending."""
    _C.flush()


def get_num_threads() -> int:
    """How many threads an operation on the CPU uses at most, the calling one among them.

    At first as many as there are processors that this process may use, at most 256.

    Examples
    --------
    >>> import genesis
    >>> genesis.cpu.get_num_threads() >= 1
    True
    """
    return _C.get_num_threads()


def set_num_threads(n: int) -> None:
    """Set how many threads an operation on the CPU uses at most, from the next one on.

    Results do not depend on it, but for the last bits of floating matrix products. Threads start
    when the first long operation needs them.

    Parameters
    ----------
    n : int
        At least 1; more than 256 count as 256.

    Raises
    ------
    ValueError
        If `n` is less than 1.

    Examples
    --------
    >>> import genesis
    >>> before = genesis.cpu.get_num_threads()
    >>> genesis.cpu.set_num_threads(2)
    >>> genesis.cpu.get_num_threads()
    2
    >>> genesis.cpu.set_num_threads(before)
    """
    _C.set_num_threads(n)


def memory_stats() -> dict[str, Any]:
    """The statistics of the CPU's memory, with the keys of :func:`genesis.cuda.memory_stats`.

    Examples
    --------
    >>> import genesis
    >>> genesis.cpu.memory_stats()["free"] > 0
    True
    """
    return _memory.manager_stats(_C.MemoryManager("cpu"))
