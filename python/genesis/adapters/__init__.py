"""The memory managers of Genesis under PyTorch, CuPy and Numba.

Each adapter has ``enable()``, which imports its framework. All of them share the managers of the
devices: one pool, one set of statistics, one history with the lines that made each block.

Examples
--------
>>> from genesis.adapters import cupy as adapter  # doctest: +SKIP
>>> adapter.enable()  # doctest: +SKIP
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import ModuleType

NAMES = ("torch", "cupy", "numba")


def _load_library() -> ctypes.CDLL:
    """The library that this process has loaded, for its entry points of genesis/adapter.h."""
    from genesis import _C  # noqa: F401 - it is what loads the library

    with Path("/proc/self/maps").open() as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            if Path(path[2]).name.startswith("libgenesis.so"):
                return ctypes.CDLL("/" + path[2])
    raise RuntimeError("libgenesis.so is not among the files that this process has loaded")


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
