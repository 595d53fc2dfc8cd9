"""The CPU and its memory."""

from __future__ import annotations

from genesis import _C, _memory, cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["enable_pinned_memory", "is_pinned_memory_enabled", "memory_stats"]

_is_pinned = False
_has_warned = False


def enable_pinned_memory(enabled: bool = True) -> None:
    """Choose whether new CPU memory is page-locked, so that a GPU reads and writes it directly.

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
    _is_pinned = enabled
    if enabled and not cuda.is_available():
        warn_not_pinned()


def is_pinned_memory_enabled() -> bool:
    """Whether new CPU memory is to be page-locked."""
    return _is_pinned


def warn_not_pinned() -> None:
    """Say once that there is no device to lock pages for."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        import warnings

        warnings.warn(
            "there is no CUDA device: CPU memory is not page-locked", RuntimeWarning, stacklevel=3
        )


def memory_stats() -> dict[str, Any]:
    """The statistics of the CPU's memory, with the keys of :func:`genesis.cuda.memory_stats`.

    Examples
    --------
    >>> import genesis
    >>> genesis.cpu.memory_stats()["free"] > 0
    True
    """
    return _memory.manager_stats(_C.MemoryManager("cpu"))
