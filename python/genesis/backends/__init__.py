"""The parts of Genesis that belong to one kind of device."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("cuda", "cuda_kernels", "cuda_memory"):  # at their first use
        return import_module(f"genesis.backends.{name}")
    raise AttributeError(f"module 'genesis.backends' has no attribute {name!r}")
