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

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


def _copies(values: Iterable[Any]) -> list[Any]:
    """Numbers as they are, and copies of tensors."""
    return [value.detach().clone() if isinstance(value, _C.Tensor) else value for value in values]


def _group_values(optimizer: Optimizer, key: str) -> list[Any]:
    return _copies(group[key] for group in optimizer.param_groups)


def _for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group: those that were given, or one for all."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return _copies([value] * len(groups))
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {len(groups)}."
        )
    return _copies(value)


def _group_set(group: dict[str, Any], key: str, value: Any) -> None:
    """A tensor of the group's is written to, so that a captured graph sees the value."""
    if isinstance(group[key], _C.Tensor):
        group[key].fill_(value.item() if isinstance(value, _C.Tensor) else value)
    else:
        group[key] = value


def _optimizer_check(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Changes the learning rates of an optimizer; the base of all schedulers.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates it changes. They are the rates to begin with, and are kept as ``initial_lr``.
    last_epoch : int
        How many steps were done; -1 at the beginning.

    Examples
    --------
    A scheduler has ``get_lr()``, which gives the rate of each group for ``last_epoch``:

    >>> import genesis
    >>> class Halving(genesis.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0)
    >>> scheduler = Halving(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _last_lr: list[Any]
    _get_closed_form_lr: Callable[[], list[Any]]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _optimizer_check(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copies([group["lr"]])[0])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly "
                    "loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = _group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        optimizer._opt_called = False  # type: ignore[attr-defined]
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, without the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step has set, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the rates for ``last_epoch``."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next step of the optimizer, or those of an epoch."""
        if self._step_count == 1 and "step" not in self.optimizer.__dict__:
            self._order_check()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _order_check(self) -> None:
        if not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should "
                "call them in the opposite order: `optimizer.step()` before "
                "`lr_scheduler.step()`. Failure to do this will result in skipping the first "
                "value of the learning rate schedule.",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        try:
            is_closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
            values = self._get_closed_form_lr() if is_closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._rates_set(values)

    def _rates_set(self, values: list[Any]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            _group_set(group, "lr", value)
        self._last_lr = _group_values(self.optimizer, "lr")

    def _warn_outside(self) -> None:
        """``get_lr()`` is for :meth:`step`."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _current(self, factor: float | None = None) -> list[Any]:
        """The rates as they are, or times a factor."""
        if factor is None:
            return _group_values(self.optimizer, "lr")
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The name that the base once had."""


# ---- by functions -------------------------------------------------------------------------------


class _ByFunctions(LRScheduler):
    """What LambdaLR and MultiplicativeLR have in common."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        _optimizer_check(optimizer)
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


# ---- along curves -------------------------------------------------------------------------------


class LinearLR(LRScheduler):
    """Rates go from `start_factor` to `end_factor` times the initial ones, along a line.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=4)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.3125]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates, one stretch of the line further."""
        self._warn_outside()
        if self.last_epoch == 0:
            return self._current(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._current(1.0 + rise / before)

    def _get_closed_form_lr(self) -> list[Any]:  # type: ignore[override]
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [lr * (self.start_factor + rise * done / self.total_iters) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Rates are multiplied by `gamma` in each epoch.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates times gamma."""
        self._warn_outside()
        return self._current(None if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:  # type: ignore[override]
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Rates fall to 0 in `total_iters` epochs, as a power of what is left.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates, one epoch further along the power."""
        self._warn_outside()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._current((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:  # type: ignore[override]
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * left**self.power for lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Rates go to `eta_min` and back along a cosine of half the period `T_max`.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _along(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[Any]:
        """The rates, one epoch further along the cosine."""
        self._warn_outside()
        groups, least = self.optimizer.param_groups, self.eta_min
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and self.last_epoch > 0:
            height = 1 + math.cos(self.last_epoch * math.pi / self.T_max)
            return [least + (lr - least) * height / 2 for lr in self.base_lrs]
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the lowest point
            rise = 1 - math.cos(math.pi / self.T_max)
            return [
                group["lr"] + (lr - least) * rise / 2
                for lr, group in zip(self.base_lrs, groups, strict=True)
            ]
        ratio = self._along(self.last_epoch) / self._along(self.last_epoch - 1)
        return [ratio * (group["lr"] - least) + least for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:  # type: ignore[override]
        height = self._along(self.last_epoch)
        return [self.eta_min + (lr - self.eta_min) * height / 2 for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates fall along a cosine, and begin anew after `T_0` epochs, then `T_0 T_mult`, and so on.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates for ``T_cur`` epochs since the last beginning."""
        self._warn_outside()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (lr - self.eta_min) * height / 2 for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Set the rates of the next epoch, or those of a given one, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            grown = self.T_mult - 1
            n = int(math.log(epoch / self.T_0 * grown + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / grown
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._rates_set(values)


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
            _group_set(group, "lr", group["initial_lr"])
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
        self._last_lr = _group_values(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Have all of them change the rates."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _group_values(self.optimizer, "lr")


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
        _optimizer_check(optimizer)
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
        self._last_lr = _group_values(optimizer, "lr")
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
        self._last_lr = _group_values(self.optimizer, "lr")

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
                _group_set(group, "lr", new)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


# ---- cycles -------------------------------------------------------------------------------------


class _Cycles(LRScheduler):
    """What CyclicLR and OneCycleLR have in common: momenta that go against the rates."""

    use_beta1: bool

    def _momenta_init(self, most: list[float], least: list[float], last_epoch: int) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in defaults
        if last_epoch != -1:
            return
        for high, low, group in zip(most, least, self.optimizer.param_groups, strict=True):
            self._momentum_set(group, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def _momentum_set(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_Cycles):
    """Rates go from `base_lr` to `max_lr` and back, again and again (Smith, 2017).

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates it changes.
    base_lr, max_lr : float or list of float
        The bounds.
    step_size_up, step_size_down : int
        How many steps go up, and down; down as many as up, if that is not given.
    mode : str
        ``"triangular"``, ``"triangular2"`` (each cycle is half as high), or ``"exp_range"`` (times
        ``gamma ** step``).
    gamma : float
        For ``"exp_range"``.
    scale_fn : callable, optional
        In the place of a mode: the height of a cycle or step.
    scale_mode : str
        ``"cycle"`` or ``"iterations"``: what `scale_fn` is given.
    cycle_momentum : bool
        Whether the momentum goes the other way, from `max_momentum` to `base_momentum`.
    base_momentum, max_momentum : float or list of float
        Its bounds.
    last_epoch : int
        How many steps were done; -1 at the beginning.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5, momentum=0.9)
    >>> scheduler = genesis.optim.lr_scheduler.CyclicLR(optimizer, 0.25, 0.75, step_size_up=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _optimizer_check(optimizer)
        self.optimizer = optimizer
        base_lrs = _for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _group_set(group, "lr", lr)
        self.max_lrs = _for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = _for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = _for_groups("max_momentum", optimizer, max_momentum)
            self._momenta_init(self.max_momentums, self.base_momentums, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or of a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        """The rates; the momenta are set, too."""
        self._warn_outside()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        if x <= self.step_ratio:
            part = x / self.step_ratio
        else:
            part = (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [
            low + (high - low) * part * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                self._momentum_set(group, high - (high - low) * part * scale)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """What it remembers; of a function the attributes of an object alone."""
        made = super().state_dict()
        function = made["_scale_fn_custom"]
        is_object = function is not None and not isinstance(function, types.FunctionType)
        made["_scale_fn_custom"] = function.__dict__.copy() if is_object else None
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        saved = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(_Cycles):
    """Rates rise to `max_lr` once and fall to far below where they began (Smith, Topin, 2017).

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates it changes.
    max_lr : float or list of float
        The highest rates.
    total_steps : int, optional
        How many steps there are; or `epochs` times `steps_per_epoch`.
    epochs, steps_per_epoch : int, optional
        In the place of `total_steps`.
    pct_start : float
        Which part of the steps goes up.
    anneal_strategy : str
        ``"cos"`` or ``"linear"``.
    cycle_momentum : bool
        Whether the momentum goes the other way, from `max_momentum` to `base_momentum`.
    base_momentum, max_momentum : float or list of float
        Its bounds.
    div_factor : float
        The initial rate is ``max_lr / div_factor``.
    final_div_factor : float
        The last rate is ``initial_lr / final_div_factor``.
    three_phase : bool
        Whether rates go down as they came, and then to the last one.
    last_epoch : int
        How many steps were done; -1 at the beginning.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5, momentum=0.9)
    >>> scheduler = genesis.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> scheduler.get_last_lr()
    [0.04]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _optimizer_check(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._steps_find(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or pct_start < 0 or pct_start > 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = self._phases_make(float(pct_start * self.total_steps), three_phase)
        if three_phase:
            self._schedule_phases[1]["end_step"] = float(2 * pct_start * self.total_steps) - 2
        self._anneal_func_type = anneal_strategy
        max_lrs = _for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for high, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            most = _for_groups("max_momentum", optimizer, max_momentum)
            least = _for_groups("base_momentum", optimizer, base_momentum)
            self._momenta_init(most, least, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _steps_find(total: int | None, epochs: int | None, each: int | None) -> int:
        if total is not None:
            if not isinstance(total, int) or total <= 0:
                raise ValueError(f"Expected positive integer total_steps, but got {total}")
            return total
        if epochs is None or each is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(epochs, int) or epochs <= 0:
            raise ValueError(f"Expected positive integer epochs, but got {epochs}")
        if not isinstance(each, int) or each <= 0:
            raise ValueError(f"Expected positive integer steps_per_epoch, but got {each}")
        return epochs * each

    def _phases_make(self, rise: float, three_phase: bool) -> list[dict[str, Any]]:
        """Where each phase ends, and what goes from where to where in it."""

        def phase(end: float, *names: str) -> dict[str, Any]:
            keys = ("start_lr", "end_lr", "start_momentum", "end_momentum")
            return {"end_step": end, **dict(zip(keys, names, strict=True))}

        up = phase(rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        last = self.total_steps - 1
        if not three_phase:
            return [up, phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        return [
            up,
            phase(0.0, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
            phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
        ]

    def _anneal(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        """The rates; the momenta are set, too."""
        self._warn_outside()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            start, end = group[phase["start_lr"]], group[phase["end_lr"]]
            rates.append(self._anneal(start, end, part))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._momentum_set(group, self._anneal(start, end, part))
        return rates


# ---- warmup -------------------------------------------------------------------------------------


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
