"""Switches of oneDNN under PyTorch's names. It is not used.

Examples
--------
>>> import genesis
>>> genesis.backends.mkldnn.is_available()
False
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "is_available", "set_flags"]

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether oneDNN is used."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[bool, bool, bool]:
    """Set several switches, those that are not None; gives what they were."""
    global enabled, deterministic, allow_tf32
    before = (enabled, deterministic, allow_tf32)
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    return before


@contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Switches for the time of a block."""
    before = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
