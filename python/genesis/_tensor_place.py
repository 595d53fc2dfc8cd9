"""Where tensors are: the device that new ones go to, and page-locked memory."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["get_default_device", "set_default_device"]


def set_default_device(device: Any) -> None:
    """Choose the device of new tensors for which none is named; None for the CPU.

    Within ``with genesis.device(...):`` that one is chosen.

    Raises
    ------
    RuntimeError
        If there is no such device.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_default_device("cpu")
    >>> genesis.get_default_device()
    device('cpu')
    """
    _C._set_default_device(device)


def get_default_device() -> _C.device:
    """The device of new tensors for which none is named.

    Examples
    --------
    >>> import genesis
    >>> genesis.get_default_device().type
    'cpu'
    """
    return _C._get_default_device()


def empty_pinned(shape: tuple[int, ...], dtype: Any, device: Any) -> _C.Tensor:
    """A tensor of the CPU whose elements are not set, page-locked where there is a CUDA device."""
    from genesis import cpu, cuda

    place = _C._get_default_device() if device is None else _C.device(device)
    if place.type != "cpu":
        raise ValueError(f"pin_memory=True is for tensors of the CPU, not of {place}")
    if not cuda.is_available():
        cpu.warn_not_pinned()
        return _C._empty(shape, dtype, "cpu")
    return _C._empty_pinned(shape, dtype or _C.get_default_dtype(), None)


def pin_memory(self: _C.Tensor, device: Any = None) -> _C.Tensor:
    """A copy in page-locked memory, which a CUDA device reads directly; itself if it is there.

    Where there is no CUDA device it is the tensor itself, and one warning says so.

    Examples
    --------
    >>> import genesis
    >>> genesis.ones(2).pin_memory().tolist()
    [1.0, 1.0]
    """
    from genesis import cpu, cuda

    if self.is_pinned():
        return self
    if not cuda.is_available():
        cpu.warn_not_pinned()
        return self
    return _C._empty_pinned(self.shape, self.dtype, device).copy_(self)


_C.Tensor.pin_memory = pin_memory
