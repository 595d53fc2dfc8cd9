"""Neural networks: modules, their parameters, and functions."""

from genesis.nn import functional, init, utils
from genesis.nn import modules as modules
from genesis.nn import parameter as parameter
from genesis.nn.modules import *  # noqa: F403
from genesis.nn.modules import __all__ as _modules
from genesis.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

__all__ = [
    *_modules,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "utils",
]  # noqa: PLE0604
