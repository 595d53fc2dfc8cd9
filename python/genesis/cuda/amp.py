"""The older names of :mod:`genesis.amp`, for CUDA alone.

Examples
--------
>>> from genesis.cuda.amp import GradScaler, autocast
>>> autocast(enabled=False).device
'cuda'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genesis import _C
from genesis import amp as _amp

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):  # noqa: N801 - as in PyTorch
    """``genesis.amp.autocast("cuda", ...)``.

    Examples
    --------
    >>> import genesis
    >>> with genesis.cuda.amp.autocast(enabled=False):
    ...     genesis.is_autocast_enabled("cuda")
    False
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: _C.dtype = _C.float16,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """``genesis.amp.GradScaler("cuda", ...)``.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.amp.GradScaler(enabled=False).is_enabled()
    False
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: _C.dtype | None = None
) -> Callable[..., Any]:
    """``genesis.amp.custom_fwd(device_type="cuda")``."""
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """``genesis.amp.custom_bwd(device_type="cuda")``."""
    return _amp.custom_bwd(bwd, device_type="cuda")
