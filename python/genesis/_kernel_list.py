"""The kernels that are loaded, and those that are being compiled in the background."""

from __future__ import annotations

from typing import NamedTuple

from genesis import _C


class LoadedKernel(NamedTuple):
    """One kernel that the process has loaded."""

    name: str
    device: int
    """The index of the CUDA device."""
    tier: int
    """0: it came with the library, or serves many programs. 1: it was compiled for what it does."""
    origin: str
    """Where its code is from: ``"compiler"``, ``"disk"`` or ``"archive"``."""
    compile_ms: float
    """How long the compiler took; 0 if it did not run in this process."""
    launches: int
    """A launch that is captured into a graph counts once, however often the graph is replayed."""
    gpu_ms: float | None
    """The GPU's time in the launches that a profiler measured; None if there was none."""


def kernels() -> list[LoadedKernel]:
    """List the kernels that this process has loaded, the oldest first.

    A time on the GPU is known after something has waited for the kernel, such as
    :func:`synchronize`. Kernels of cuBLASLt are not listed.

    Examples
    --------
    >>> import genesis
    >>> for kernel in genesis.cuda.kernels():
    ...     assert kernel.origin in ("compiler", "disk", "archive")
    """
    return [
        LoadedKernel(*rest, gpu_ms if measured else None)
        for *rest, measured, gpu_ms in _C.kernel_list()
    ]


def wait_for_kernels() -> None:
    """Wait until every kernel is compiled that was asked for in the background.

    That are those of ``warm_up_kernels(wait=False)`` and, with ``GENESIS_TIERS=on``, those of the
    operations so far. A kernel that does not compile raises nothing: the log says why.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.wait_for_kernels()
    """
    _C.wait_for_kernels()
