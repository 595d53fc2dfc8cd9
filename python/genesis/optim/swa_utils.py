"""Averages of a model over its training: stochastic weight averaging, and moving averages."""

from __future__ import annotations

import math
from copy import deepcopy
from itertools import chain

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn.modules.module import Module
from genesis.optim._schedulers import LRScheduler, for_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from genesis.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

# Values of the list programs: place 0 the average, place 1 what comes to it.
_EMA = (("subtract", 1, 0), ("multiply", 3, 2), ("add", 0, 4))  # number 2: the weight
_SWA = (  # numbers 2 and 3: how many there are, and 1
    ("add", 2, 3),
    ("divide", 3, 4),
    ("subtract", 1, 0),
    ("multiply", 6, 5),
    ("add", 0, 7),
)


def _decay_check(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def _is_floating(tensors: Any) -> bool:
    return bool(tensors[0].is_floating_point())


class _EmaMulti:
    """Moving averages of lists of tensors."""

    def __init__(self, decay: float) -> None:
        self.decay = decay

    @no_grad()
    def __call__(self, averages: Any, current: Any, _: Any) -> None:
        if _is_floating(averages):
            places = (tuple(averages), tuple(current))
            _C._list_elementwise(places, _EMA, ((5, 0),), (1 - self.decay,), None, 0)
            return
        for average, one in zip(averages, current, strict=True):
            average.copy_(average * self.decay + one * (1 - self.decay))


class _SwaMulti:
    """Equal averages of lists of tensors."""

    @no_grad()
    def __call__(self, averages: Any, current: Any, num_averaged: Any) -> None:
        if _is_floating(averages):
            places = (tuple(averages), tuple(current))
            _C._list_elementwise(places, _SWA, ((8, 0),), (num_averaged, 1.0), None, 0)
            return
        for average, one in zip(averages, current, strict=True):
            average.copy_(average + (one - average) / (num_averaged + 1))


class _Ema:
    def __init__(self, decay: float) -> None:
        self.decay = decay

    @no_grad()
    def __call__(self, average: Any, current: Any, _: Any) -> Any:
        return self.decay * average + (1 - self.decay) * current


class _Swa:
    @no_grad()
    def __call__(self, average: Any, current: Any, num_averaged: Any) -> Any:
        return average + (current - average) / (num_averaged + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """A function for moving averages of all parameters in one call, of which `decay` stays."""
    _decay_check(decay)
    return _EmaMulti(decay)


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """A function for equal averages of all parameters in one call."""
    return _SwaMulti()


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], Any]:
    """A function for the moving average of a parameter, of which `decay` stays."""
    _decay_check(decay)
    return _Ema(decay)


def get_swa_avg_fn() -> Callable[[Any, Any, Any], Any]:
    """A function for the equal average of a parameter."""
    return _Swa()


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over time.

    Parameters
    ----------
    model : Module
        It is copied.
    device : device, optional
        Where the copy is.
    avg_fn : callable, optional
        Gives the next average from the average, the parameter, and how many there are. Without it,
        and without `multi_avg_fn`, all have the same weight.
    multi_avg_fn : callable, optional
        The same in place, of lists.
    use_buffers : bool
        Whether buffers are averaged, too, and not copied.

    Examples
    --------
    >>> import genesis
    >>> model = genesis.nn.Linear(1, 1, bias=False)
    >>> average = genesis.optim.swa_utils.AveragedModel(model)
    >>> for value in [1.0, 2.0, 6.0]:
    ...     _ = genesis.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item(), average.n_averaged.item()
    (3.0, 3)
    """

    n_averaged: _C.Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Any, Any, Any], Any] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the parameters of the model into the averages; the first ones are copied."""
        own, others = self._tensors(self.module), self._tensors(model)
        pairs = [
            (average.detach(), one.detach().to(average.device))
            for average, one in zip(own, others, strict=True)
        ]
        if int(self.n_averaged.item()) == 0:
            for average, one in pairs:
                average.copy_(one)
        elif self.avg_fn is not None:
            for average, one in pairs:
                count = self.n_averaged.to(average.device)
                average.copy_(self.avg_fn(average, one, count))
        else:
            groups: dict[Any, tuple[list[Any], list[Any]]] = {}
            for average, one in pairs:
                lists = groups.setdefault((average.device, average.dtype), ([], []))
                lists[0].append(average)
                lists[1].append(one)
            function = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, _), (averages, current) in groups.items():
                function(averages, current, self.n_averaged.to(device))
        if not self.use_buffers:
            for average, one in zip(self.module.buffers(), model.buffers(), strict=True):
                average.detach().copy_(one.detach().to(average.device))
        self.n_averaged += 1

    def _tensors(self, model: Module) -> list[Any]:
        if self.use_buffers:
            return list(chain(model.parameters(), model.buffers()))
        return list(model.parameters())


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of batch norms anew, by one pass over the data.

    Parameters
    ----------
    loader : iterable
        Gives batches: tensors, or lists whose first item is one.
    model : Module
        Its batch norms are changed.
    device : device, optional
        Where batches are moved.
    """
    from genesis.nn.modules.batchnorm import _BatchNorm

    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Brings the rates to `swa_lr`, along a cosine or a line, and leaves them there.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates it changes.
    swa_lr : float or list of float
        The rates at the end.
    anneal_epochs : int
        How many epochs that takes.
    anneal_strategy : str
        ``"cos"`` or ``"linear"``.
    last_epoch : int
        How many steps were done; -1 at the beginning.

    Examples
    --------
    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> scheduler = genesis.optim.swa_utils.SWALR(
    ...     optimizer, swa_lr=0.25, anneal_epochs=2, anneal_strategy="linear"
    ... )
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.375]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(
            for_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True
        ):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step: int) -> float:
        """How much of the last rate there is after so many steps."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * part)) / 2 if self._anneal_strategy == "cos" else part

    def get_lr(self) -> list[Any]:
        """The rates, one step nearer to the last ones."""
        self._warn_outside()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(step - 1), self._weight(step)
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
