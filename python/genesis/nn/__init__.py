"""Neural networks: modules, their parameters, and functions."""

from genesis.nn import attention, functional, init, parallel, utils
from genesis.nn import modules as modules
from genesis.nn import parameter as parameter
from genesis.nn.modules import *  # noqa: F403
from genesis.nn.modules import __all__ as _modules
from genesis.nn.parallel import DataParallel
from genesis.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

__all__ = [  # noqa: PLE0604
    *_modules,
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "init",
    "parallel",
    "utils",
]
