"""Batches in page-locked memory, from which a GPU copies by itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import genesis
from genesis import _C
from genesis.utils.data._collate import mapping_like, sequence_like

__all__ = ["can_pin", "pin_memory"]


def can_pin() -> bool:
    """Say whether there is a device that page-locked memory is for; warn if there is none."""
    if genesis.cuda.is_available():
        return True
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned "
        "memory won't be used.",
        stacklevel=4,
    )
    return False


def pin_memory(data: Any, device: Any = None) -> Any:
    """Copy tensors to page-locked memory, in containers as well, and all that can do so itself."""
    if isinstance(data, _C.Tensor):
        return data.pin_memory() if device is None else data.pin_memory(device)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return mapping_like(data, {key: pin_memory(data[key], device) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(one, device) for one in data))
    if isinstance(data, tuple):
        return [pin_memory(one, device) for one in data]
    if isinstance(data, Sequence):
        return sequence_like(data, [pin_memory(one, device) for one in data])
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    return data
