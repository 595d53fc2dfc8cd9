"""The older names of :mod:`genesis.amp`, for the CPU alone.

Examples
--------
>>> from genesis.cpu.amp import autocast
>>> autocast().device
'cpu'
"""

from __future__ import annotations

from genesis import _C
from genesis import amp as _amp

__all__ = ["GradScaler", "autocast"]


class autocast(_amp.autocast):  # noqa: N801 - as in PyTorch
    """``genesis.amp.autocast("cpu", ...)``.

    Examples
    --------
    >>> import genesis
    >>> with genesis.cpu.amp.autocast():
    ...     (genesis.ones(2, 2) @ genesis.ones(2, 2)).dtype
    genesis.bfloat16
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: _C.dtype = _C.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """``genesis.amp.GradScaler("cpu", ...)``.

    Examples
    --------
    >>> import genesis
    >>> genesis.cpu.amp.GradScaler(init_scale=8.0).get_scale()
    8.0
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
