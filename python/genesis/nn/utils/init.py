"""Modules whose parameters have no first values."""

from __future__ import annotations

from genesis.nn import init
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Make a module without setting its parameters: for values that will be loaded.

    What `nn.init` does is left out, and draws no random numbers. There is no device without
    memory, so that parameters are made where they will be.

    Parameters
    ----------
    module_cls : type
        A class of modules that takes a device.
    *args, **kwargs
        Its arguments; `device` among them is where the parameters are.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.utils.skip_init(genesis.nn.Linear, 3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    import inspect

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    before, init._skipping.is_on = init._skipping.is_on, True
    try:
        return module_cls(*args, **kwargs)
    finally:
        init._skipping.is_on = before
