"""Learning rate schedulers that go up and down, with momenta that go the other way."""

from __future__ import annotations

import math
import types

from genesis.optim._schedulers import (
    LRScheduler,
    for_groups,
    group_set,
    optimizer_check,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from genesis.optim.optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


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
        optimizer_check(optimizer)
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                group_set(group, "lr", lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
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
            self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
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
        ratio = self.step_ratio
        part = x / ratio if x <= ratio else (x - 1) / (ratio - 1)
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
    >>> round(scheduler.get_last_lr()[0], 6)
    0.04
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
        optimizer_check(optimizer)
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
        max_lrs = for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for high, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            most = for_groups("max_momentum", optimizer, max_momentum)
            least = for_groups("base_momentum", optimizer, base_momentum)
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
