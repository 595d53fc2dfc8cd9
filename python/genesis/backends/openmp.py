"""OpenMP, which is not used: operations on the CPU have threads of their own.

Examples
--------
>>> import genesis
>>> genesis.backends.openmp.is_available()
False
"""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether OpenMP is used."""
    return False
