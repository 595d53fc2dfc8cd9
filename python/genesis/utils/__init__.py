"""Helpers for programs that train: checkpoint, data."""

from __future__ import annotations

from genesis.utils import checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis.utils import data as data

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> Any:
    if name == "data":  # not every program has batches of samples
        from importlib import import_module

        return import_module("genesis.utils.data")
    raise AttributeError(f"module 'genesis.utils' has no attribute {name!r}")
