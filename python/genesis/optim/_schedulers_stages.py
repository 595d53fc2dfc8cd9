"""Learning rate schedulers by functions and in stages, of other schedulers, and by a metric."""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter

from genesis.optim._schedulers import (
    EPOCH_WARNING,
    LRScheduler,
    group_set,
    group_values,
    optimizer_check,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from genesis.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "LambdaLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

# ---- by functions -------------------------------------------------------------------------------


class _ByFunctions(LRScheduler):
    """What LambdaLR and MultiplicativeLR have in common."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        optimizer_check(optimizer)
        count = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != count:
                raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * count
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """What it remembers; of functions the attributes of objects alone."""
        made = super().state_dict()
        made["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else function.__dict__.copy()
            for function in self.lr_lambdas
        ]
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        functions = state_dict["lr_lambdas"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for own, saved in zip(self.lr_lambdas, functions, strict=True):
            if saved is not None:
                own.__dict__.update(saved)


class LambdaLR(_ByFunctions):
    """Rates are the initial ones times a function of the epoch.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def get_lr(self) -> list[Any]:
        """The initial rates times the functions."""
        self._warn_outside()
        return [
            lr * function(self.last_epoch)
            for lr, function in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class MultiplicativeLR(_ByFunctions):
    """Rates are multiplied by a function of the epoch in each step.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def get_lr(self) -> list[Any]:
        """The rates times the functions."""
        self._warn_outside()
        if self._is_initial:
            return self._current()
        return [
            group["lr"] * function(self.last_epoch)
            for group, function in zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        ]


# ---- in stages ----------------------------------------------------------------------------------


class StepLR(LRScheduler):
    """Rates are multiplied by `gamma` every `step_size` epochs.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.05]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates, times gamma where a stage begins."""
        self._warn_outside()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current()
        return self._current(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:  # type: ignore[override]
        return [lr * self.gamma ** (self.last_epoch // self.step_size) for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Rates are multiplied by `gamma` at each of the `milestones`.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.05]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates, times gamma at a milestone."""
        self._warn_outside()
        if self.last_epoch not in self.milestones:
            return self._current()
        return self._current(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:  # type: ignore[override]
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """Rates are multiplied by `factor` for the first `total_iters` epochs.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4)
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates, changed at the beginning and at the end."""
        self._warn_outside()
        if self.last_epoch == 0:
            return self._current(self.factor)
        if self.last_epoch != self.total_iters:
            return self._current()
        return self._current(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:  # type: ignore[override]
        is_over = self.last_epoch >= self.total_iters
        return [lr * (self.factor + is_over * (1 - self.factor)) for lr in self.base_lrs]


# ---- of other schedulers ------------------------------------------------------------------------


class _OfOthers(LRScheduler):
    """What SequentialLR and ChainedScheduler have in common."""

    _schedulers: Sequence[Any]

    def _schedulers_check(self, optimizer: Any, schedulers: Sequence[Any]) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{i} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {i} has "
                    f"{scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """What it and its schedulers remember."""
        made = super().state_dict()
        made["_schedulers"] = [one.state_dict() for one in self._schedulers]
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        saved = state_dict["_schedulers"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for own, one in zip(self._schedulers, saved, strict=True):
            own.load_state_dict(one)


class SequentialLR(_OfOthers):
    """Schedulers one after the other; the next one begins at a milestone.

    Examples
    --------
    >>> import genesis
    >>> from genesis.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> first = ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> scheduler = SequentialLR(optimizer, [first, ExponentialLR(optimizer, 0.5)], [2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.25, 0.25, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler, but got no scheduler."
            )
        self._schedulers_check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group_set(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the first step, which schedulers do when they are made."""
        one = self if sched is None else sched
        if hasattr(one, "_schedulers"):
            for inner in one._schedulers:
                self.recursive_undo(inner)
        elif hasattr(one, "last_epoch"):
            one.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Have the scheduler whose turn it is set the rates."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_OfOthers):
    """Schedulers that all change the rates in each step.

    Examples
    --------
    >>> import genesis
    >>> from genesis.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = ChainedScheduler(
    ...     [ConstantLR(optimizer, factor=0.5), ExponentialLR(optimizer, gamma=0.5)]
    ... )
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        first = optimizer or getattr(schedulers[0], "optimizer", None)
        self._schedulers_check(first, schedulers)
        self._schedulers = schedulers
        self.optimizer = first  # type: ignore[assignment]
        self._last_lr = group_values(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Have all of them change the rates."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = group_values(self.optimizer, "lr")


# ---- by what was reached ------------------------------------------------------------------------


class ReduceLROnPlateau(LRScheduler):
    """Rates are multiplied by `factor` when a metric has not improved for `patience` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates it changes.
    mode : str
        ``"min"`` where less is better, or ``"max"``.
    factor : float
        Below 1.
    patience : int
        How many epochs without an improvement are borne.
    threshold : float
        What is an improvement: a part of the best value, or with `threshold_mode` ``"abs"`` a
        difference.
    threshold_mode : str
        ``"rel"`` or ``"abs"``.
    cooldown : int
        How many epochs after a change are not looked at.
    min_lr : float or list of float
        The least rate.
    eps : float
        A change of a rate that is less is not made.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.05]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        optimizer_check(optimizer)
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        self.default_min_lr: float | None
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = group_values(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def _reset(self) -> None:
        """Forget what was reached."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether a change was made just before."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of an epoch, and reduce the rates where it is time."""
        value = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = group_values(self.optimizer, "lr")

    def _reduce_lr(self, epoch: int) -> None:
        count = len(self.optimizer.param_groups)
        if count != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({count}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a "
                    "new param group being added to the optimizer. Please modify the `min_lrs` "
                    "field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * count
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                group_set(group, "lr", new)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
