"""Apple's GPUs, which are not supported.

Examples
--------
>>> import genesis
>>> genesis.backends.mps.is_available()
False
"""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_available() -> bool:
    """Whether such a GPU can be used."""
    return False


def is_built() -> bool:
    """Whether there is support for them."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is macOS of a version; the library is for Linux."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """The same for version 13."""
    return False
