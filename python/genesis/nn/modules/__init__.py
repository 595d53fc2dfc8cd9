"""The classes of modules."""

from genesis.nn.modules import (
    activation,
    adaptive,
    attention,
    batchnorm,
    conv,
    distance,
    dropout,
    lazy,
    loss,
    normalization,
    original,
    padding,
    pooling,
    resize,
    rnn,
    sigmoid,
    sparse,
    transformer,
)
from genesis.nn.modules.activation import *  # noqa: F403
from genesis.nn.modules.adaptive import *  # noqa: F403
from genesis.nn.modules.attention import *  # noqa: F403
from genesis.nn.modules.batchnorm import *  # noqa: F403
from genesis.nn.modules.container import ModuleDict, ModuleList, Sequential
from genesis.nn.modules.conv import *  # noqa: F403
from genesis.nn.modules.distance import *  # noqa: F403
from genesis.nn.modules.dropout import *  # noqa: F403
from genesis.nn.modules.flatten import Flatten, Identity, Unflatten
from genesis.nn.modules.lazy import *  # noqa: F403
from genesis.nn.modules.linear import Bilinear, Linear
from genesis.nn.modules.loss import *  # noqa: F403
from genesis.nn.modules.module import Module
from genesis.nn.modules.normalization import *  # noqa: F403
from genesis.nn.modules.original import *  # noqa: F403
from genesis.nn.modules.padding import *  # noqa: F403
from genesis.nn.modules.parameters import ParameterDict, ParameterList
from genesis.nn.modules.pooling import *  # noqa: F403
from genesis.nn.modules.resize import *  # noqa: F403
from genesis.nn.modules.rnn import *  # noqa: F403
from genesis.nn.modules.sigmoid import *  # noqa: F403
from genesis.nn.modules.sparse import *  # noqa: F403
from genesis.nn.modules.transformer import *  # noqa: F403

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

for _layers in (
    activation,
    adaptive,
    attention,
    batchnorm,
    conv,
    distance,
    dropout,
    lazy,
    loss,
    normalization,
    original,
    padding,
    pooling,
    resize,
    rnn,
    sigmoid,
    sparse,
    transformer,
):
    __all__ += _layers.__all__  # noqa: PLE0604
