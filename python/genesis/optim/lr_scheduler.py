"""Learning rate schedulers: what changes the rates of an optimizer from step to step."""

from __future__ import annotations

import math

from genesis.optim._schedulers import LRScheduler, _LRScheduler
from genesis.optim._schedulers_curves import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LinearLR,
    PolynomialLR,
)
from genesis.optim._schedulers_cycles import CyclicLR, OneCycleLR
from genesis.optim._schedulers_stages import (
    ChainedScheduler,
    ConstantLR,
    LambdaLR,
    MultiplicativeLR,
    MultiStepLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from genesis.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "_LRScheduler",
    "get_cosine_schedule_with_warmup",
]


class _CosineWithWarmup:
    """The factor of the rate at a step; an object, so that a scheduler can be pickled."""

    def __init__(self, warmup: int, total: int, cycles: float) -> None:
        self.warmup, self.total, self.cycles = warmup, total, cycles

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return float(step) / float(max(1, self.warmup))
        part = float(step - self.warmup) / float(max(1, self.total - self.warmup))
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * float(self.cycles) * 2.0 * part)))


def get_cosine_schedule_with_warmup(
    optimizer: Optimizer,
    num_warmup_steps: int,
    num_training_steps: int,
    num_cycles: float = 0.5,
    last_epoch: int = -1,
) -> LambdaLR:
    """Rates that rise along a line, and then fall to 0 along a cosine.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are changed.
    num_warmup_steps : int
        How many steps go up.
    num_training_steps : int
        How many steps there are.
    num_cycles : float
        How many waves the cosine has; half a one goes down.
    last_epoch : int
        How many steps were done; -1 at the beginning.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.get_cosine_schedule_with_warmup(optimizer, 2, 10)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> [round(rate, 3) for rate in rates]
    [0.0, 0.25, 0.5, 0.481]
    """
    function = _CosineWithWarmup(num_warmup_steps, num_training_steps, num_cycles)
    return LambdaLR(optimizer, function, last_epoch)
