"""genesis.cuda.nvtx: names for parts of a program, which NVIDIA's profilers show.

They need NVIDIA's library of that name (libnvToolsExt). Without it nothing happens.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

__all__ = ["mark", "range", "range_pop", "range_push"]

_FILE = "libnvToolsExt.so.1"
_NO_TOOL = -2  # what the library gives where no profiler listens
_library: Any = None  # False: there is none


def _call(name: str, *arguments: bytes) -> int:
    global _library
    if _library is None:
        _library = _open() or False
    return getattr(_library, name)(*arguments) if _library else _NO_TOOL


def _open() -> Any:
    """The library of the system, or of NVIDIA's wheel; None if there is none."""
    import ctypes

    from genesis._wheels import roots

    for file in (_FILE, *(f"{root}/nvidia/nvtx/lib/{_FILE}" for root in roots())):
        try:
            return ctypes.CDLL(file)
        except OSError:
            continue
    return None


def range_push(msg: str) -> int:
    """Begin a part of this thread's work, inside of those that have begun; how deep it is.

    Examples
    --------
    >>> import genesis
    >>> depth = genesis.cuda.nvtx.range_push("forward")
    >>> depth = genesis.cuda.nvtx.range_pop()
    """
    return _call("nvtxRangePushA", msg.encode())


def range_pop() -> int:
    """End the part that began last; how deep it was."""
    return _call("nvtxRangePop")


def mark(msg: str) -> None:
    """Name a moment.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.nvtx.mark("the loss is there")
    """
    _call("nvtxMarkA", msg.encode())


class range:  # noqa: A001, N801 - a context manager that PyTorch's users know by this name
    """Name the work of a ``with`` block; the text may be a format, for the other arguments.

    Examples
    --------
    >>> import genesis
    >>> with genesis.cuda.nvtx.range("step {}", 7):
    ...     x = genesis.ones(2).sum()
    """

    def __init__(self, msg: str, *args: Any, **kwargs: Any) -> None:
        self._text = msg.format(*args, **kwargs)

    def __enter__(self) -> None:
        range_push(self._text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        range_pop()
