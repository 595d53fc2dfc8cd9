"""Optimizers: what changes parameters by their gradients.

A step is one call for all parameters of a group, on a GPU mostly one launch.

Examples
--------
>>> import genesis
>>> weight = genesis.tensor([[0.5, -0.5]], requires_grad=True)
>>> optimizer = genesis.optim.AdamW([weight], lr=0.1)
>>> scheduler = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
>>> x, y = genesis.tensor([[1.0], [2.0]]), genesis.tensor([[3.0]])
>>> losses = []
>>> for _ in range(10):
...     loss = ((weight @ x - y) ** 2).sum()
...     optimizer.zero_grad()
...     loss.backward()
...     optimizer.step()
...     scheduler.step()
...     losses.append(loss.item())
>>> losses[0] > 3 * losses[-1]
True
"""

from genesis.optim import lr_scheduler, swa_utils
from genesis.optim.adafactor import Adafactor
from genesis.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from genesis.optim.lbfgs import LBFGS
from genesis.optim.lr_scheduler import get_cosine_schedule_with_warmup
from genesis.optim.optimizer import Optimizer
from genesis.optim.rmsprop import Adadelta, Adagrad, RMSprop
from genesis.optim.rprop import ASGD, Rprop
from genesis.optim.sgd import SGD, Lion, Muon

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "get_cosine_schedule_with_warmup",
    "lr_scheduler",
    "swa_utils",
]
