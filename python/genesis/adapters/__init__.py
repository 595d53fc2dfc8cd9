"""The memory managers of Genesis under PyTorch, CuPy and Numba.

Each adapter has ``enable()``, which imports its framework. All of them share the managers of the
devices: one pool, one set of statistics, one history with the lines that made each block.

Examples
--------
>>> from genesis.adapters import cupy as adapter  # doctest: +SKIP
>>> adapter.enable()  # doctest: +SKIP
"""

from __future__ import annotations

from types import ModuleType

NAMES = ("torch", "cupy", "numba")


def get(name: str) -> ModuleType:
    """The adapter of a framework, by its name.

    Examples
    --------
    >>> from genesis import adapters
    >>> adapters.get("numba").__name__
    'genesis.adapters.numba'
    """
    if name not in NAMES:
        raise ValueError(f"there are adapters for {', '.join(NAMES)}, not for {name!r}")
    from importlib import import_module

    return import_module(f"genesis.adapters.{name}")
