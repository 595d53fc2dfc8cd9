"""The parts of Genesis that belong to one kind of device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = (
    "cpu",
    "cuda",
    "cuda_kernels",
    "cuda_memory",
    "cudnn",
    "mkl",
    "mkldnn",
    "mps",
    "openmp",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # at their first use
        return import_module(f"genesis.backends.{name}")
    raise AttributeError(f"module 'genesis.backends' has no attribute {name!r}")
