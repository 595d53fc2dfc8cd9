"""The base of all learning rate schedulers."""

from __future__ import annotations

import warnings

from genesis import _C
from genesis.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["LRScheduler"]

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


def copies(values: Iterable[Any]) -> list[Any]:
    """Numbers as they are, and copies of tensors."""
    return [value.detach().clone() if isinstance(value, _C.Tensor) else value for value in values]


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of all groups; tensors are copied."""
    return copies(group[key] for group in optimizer.param_groups)


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group: those that were given, or one for all."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return copies([value] * len(groups))
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {len(groups)}."
        )
    return copies(value)


def group_set(group: dict[str, Any], key: str, value: Any) -> None:
    """A tensor of the group's is written to, so that a captured graph sees the value."""
    if isinstance(group[key], _C.Tensor):
        group[key].fill_(value.item() if isinstance(value, _C.Tensor) else value)
    else:
        group[key] = value


def optimizer_check(optimizer: Any) -> None:
    """What a scheduler is made for."""
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
        optimizer_check(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copies([group["lr"]])[0])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly "
                    "loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        if "_is_scheduled" not in optimizer.__dict__:
            optimizer._is_scheduled = True
            optimizer._opt_called = False  # since there is a scheduler
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
            group_set(group, "lr", value)
        self._last_lr = group_values(self.optimizer, "lr")

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
            return group_values(self.optimizer, "lr")
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The name that the base once had."""
