"""The classes of modules."""

from genesis.nn.modules.container import ModuleDict, ModuleList, Sequential
from genesis.nn.modules.flatten import Flatten, Identity, Unflatten
from genesis.nn.modules.linear import Bilinear, Linear
from genesis.nn.modules.module import Module
from genesis.nn.modules.parameters import ParameterDict, ParameterList

__all__ = [
    "Bilinear",
    "Flatten",
    "Identity",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "Unflatten",
]
