"""Switches of cuDNN under PyTorch's names. There is none here: convolutions are products.

Results are the same each time, whatever `deterministic` says, and nothing is timed for `benchmark`.
What they are set to can be read again; `genesis.backends.cuda.matmul.allow_tf32` is the switch for
the precision of products, those of convolutions among them.

Examples
--------
>>> import genesis
>>> genesis.backends.cudnn.benchmark = True
>>> with genesis.backends.cudnn.flags(benchmark=False):
...     genesis.backends.cudnn.benchmark
False
>>> genesis.backends.cudnn.benchmark
True
>>> genesis.backends.cudnn.benchmark = False
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "set_flags",
    "version",
]

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True

_NAMES = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def is_available() -> bool:
    """Whether cuDNN is used: it is not."""
    return False


def version() -> int | None:
    """The version of cuDNN; None, since it is not used."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN would be used for a tensor."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Set several switches, those that are not None; gives what they were."""
    before = tuple(globals()[name] for name in _NAMES)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    globals().update({k: v for k, v in zip(_NAMES, given, strict=True) if v is not None})
    return before


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Switches for the time of a block."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
