"""The version of the package, and of CUDA.

Examples
--------
>>> import genesis
>>> genesis.version.__version__ == genesis.__version__
True
"""

from __future__ import annotations

from typing import Any

from genesis import _C
from genesis._C import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

debug = False  # whether the library was built without optimization
git_version = "unknown"  # of releases the version says it
hip = None  # there is no support for AMD's GPUs
xpu = None  # nor for Intel's

cuda: str | None  # the newest CUDA that the driver supports; None: there is no driver


def __getattr__(name: str) -> Any:
    if name == "cuda":  # asking loads the driver
        from genesis import cuda as devices

        if not devices.is_available():
            return None
        version = next(one["version"] for one in _C.libraries() if one["name"] == "CUDA driver")
        return f"{version // 1000}.{version % 1000 // 10}"
    raise AttributeError(f"module 'genesis.version' has no attribute {name!r}")
