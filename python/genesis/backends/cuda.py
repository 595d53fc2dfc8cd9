"""Memory for arrays on a GPU by shape and dtype: uninitialised storage and tensors.

Examples
--------
>>> import genesis
>>> from genesis.backends.cuda import CUDATensor
>>> if genesis.cuda.is_available():
...     x = CUDATensor((2, 3), genesis.float32)
...     assert x.shape == (2, 3) and x.device.type == "cuda" and isinstance(x, CUDATensor)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import genesis
from genesis import _C

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CUDAStorage", "CUDATensor"]


def _empty(
    shape: int | Sequence[int], dtype: _C.dtype | None, device_id: int | None
) -> genesis.Tensor:
    index = _C.current_device() if device_id is None else device_id
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return genesis.empty(sizes, dtype=dtype, device=_C.device("cuda", index))


class CUDAStorage:
    """Uninitialised memory on a GPU that has a shape and a dtype, and nothing that computes.

    Kernels take it as it is, and other libraries through DLPack or ``__cuda_array_interface__``.
    CUDA starts here if it has not yet.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of its dimensions.
    dtype : dtype, optional
        The default dtype if not given.
    device_id : int
        Which CUDA device.

    Raises
    ------
    RuntimeError
        If CUDA cannot be used, with the reason, or if there is no such device.

    Examples
    --------
    >>> import genesis
    >>> from genesis.backends.cuda import CUDAStorage
    >>> if genesis.cuda.is_available():
    ...     storage = CUDAStorage((2, 3), genesis.float16, device_id=0)
    ...     assert storage.nbytes == 12
    ...     assert storage.tensor().data_ptr() == storage.data_ptr()
    """

    __slots__ = ("_tensor",)

    def __init__(
        self, shape: int | Sequence[int], dtype: _C.dtype | None = None, device_id: int = 0
    ) -> None:
        self._tensor = _empty(shape, dtype, device_id)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions."""
        return tuple(self._tensor.shape)

    @property
    def dtype(self) -> _C.dtype:
        """The type of its elements."""
        return self._tensor.dtype

    @property
    def device(self) -> _C.device:
        """The GPU that it is on."""
        return self._tensor.device

    @property
    def device_id(self) -> int:
        """The index of the GPU that it is on."""
        return self._tensor.device.index

    @property
    def nbytes(self) -> int:
        """How many bytes its elements have."""
        return self._tensor.nbytes

    def data_ptr(self) -> int:
        """The address of the first element, for kernels."""
        return self._tensor.data_ptr()

    def tensor(self) -> genesis.Tensor:
        """A tensor over the same memory, which it keeps alive."""
        return self._tensor.view(self.shape)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._tensor.__cuda_array_interface__

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._tensor.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __repr__(self) -> str:
        return f"CUDAStorage({self.shape}, {self.dtype}, device_id={self.device_id})"


class _TensorOnGPU(type):
    """Makes ``isinstance`` ask where a tensor is: there is one class of tensors for all devices."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, genesis.Tensor) and instance.device.type == "cuda"


class CUDATensor(metaclass=_TensorOnGPU):
    """An uninitialised tensor on a GPU, and the name of all tensors there.

    Calling it gives a :class:`genesis.Tensor`; ``isinstance(x, CUDATensor)`` is true for each
    tensor that is on a GPU.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of its dimensions.
    dtype : dtype, optional
        The default dtype if not given.
    device_id : int, optional
        Which CUDA device; the current one if not given.

    Examples
    --------
    >>> import genesis
    >>> from genesis.backends.cuda import CUDATensor
    >>> isinstance(genesis.ones(3), CUDATensor)
    False
    """

    def __new__(  # type: ignore[misc]
        cls,
        shape: int | Sequence[int],
        dtype: _C.dtype | None = None,
        device_id: int | None = None,
    ) -> genesis.Tensor:
        """Allocate, and fill with nothing."""
        return _empty(shape, dtype, device_id)
