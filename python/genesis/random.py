"""The generator of random numbers under PyTorch's names.

One generator serves all devices.

Examples
--------
>>> import genesis
>>> with genesis.random.fork_rng():
...     noise = genesis.rand(3)
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from genesis._C import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Leave the generator behind the block as it was before it, of all devices.

    Examples
    --------
    >>> import genesis
    >>> generator = genesis.manual_seed(3)
    >>> with genesis.random.fork_rng():
    ...     first = genesis.rand(1)
    >>> first.item() == genesis.rand(1).item()
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
