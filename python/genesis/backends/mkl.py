"""Intel's MKL, which is not used: matrix products on the CPU are OpenBLAS's.

Examples
--------
>>> import genesis
>>> genesis.backends.mkl.is_available()
False
"""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether MKL is used."""
    return False
