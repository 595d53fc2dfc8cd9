"""Memory for arrays on a GPU by shape and dtype, and switches under PyTorch's names.

Examples
--------
>>> import genesis
>>> from genesis.backends.cuda import CUDATensor
>>> if genesis.cuda.is_available():
...     x = CUDATensor((2, 3), genesis.float32)
...     assert x.shape == (2, 3) and x.device.type == "cuda" and isinstance(x, CUDATensor)
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import genesis
from genesis import _C

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "CUDAStorage",
    "CUDATensor",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]


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


# ---- switches ----


def is_built() -> bool:
    """Whether the library can use CUDA, should there be a GPU: it always can."""
    return True


class _Matmul:
    """How exact matrix products on a GPU are: ``genesis.backends.cuda.matmul``.

    Examples
    --------
    >>> import genesis
    >>> genesis.backends.cuda.matmul.allow_tf32 = True
    >>> genesis.get_float32_matmul_precision()
    'high'
    >>> genesis.backends.cuda.matmul.allow_tf32 = False
    """

    def __init__(self) -> None:
        # PyTorch allows sums of halves in parts; sums are float32 here in any case.
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether operands of float32 may be rounded to TF32."""
        return genesis.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, is_allowed: bool) -> None:
        genesis.set_float32_matmul_precision("high" if is_allowed else "highest")

    @property
    def fp32_precision(self) -> str:
        """The same as ``"tf32"`` or ``"ieee"``."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in ("tf32", "ieee", "none"):
            raise ValueError(f"fp32_precision is 'tf32', 'ieee' or 'none', not {precision!r}")
        self.allow_tf32 = precision == "tf32"


matmul = _Matmul()

_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled() -> bool:
    """Whether enable_flash_sdp() is on. There is one way to compute attention, for all switches."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Set a switch that PyTorch's programs set; attention is computed as before."""
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether enable_mem_efficient_sdp() is on."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """As :func:`enable_flash_sdp`."""
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Whether enable_math_sdp() is on."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """As :func:`enable_flash_sdp`."""
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether enable_cudnn_sdp() is on."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """As :func:`enable_flash_sdp`."""
    _sdp["cudnn"] = bool(enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Set these switches for the time of a block.

    Examples
    --------
    >>> import genesis
    >>> with genesis.backends.cuda.sdp_kernel(enable_math=False):
    ...     genesis.backends.cuda.math_sdp_enabled()
    False
    """
    before = dict(_sdp)
    given = (enable_flash, enable_mem_efficient, enable_math, enable_cudnn)
    _sdp.update(zip(_sdp, map(bool, given), strict=True))
    try:
        yield
    finally:
        _sdp.update(before)
