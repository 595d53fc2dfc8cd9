"""Optimizers that divide by the size of gradients: RMSprop, Adagrad and Adadelta."""

from __future__ import annotations

from genesis import _C
from genesis.optim._steps import OPTION, ListOptimizer, check_fused, check_least, check_rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class RMSprop(ListOptimizer):
    """Divides gradients by the root of an average of their squares (Hinton, 2012).

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The learning rate.
    alpha : float
        How much stays of the average in a step.
    eps : float
        Added to the square root.
    weight_decay : float
        How much of a parameter is added to its gradient.
    momentum : float
        How much stays of the momentum in a step.
    centered : bool
        Whether the variance is taken in the place of the square.
    capturable, foreach, maximize, differentiable
        As for :class:`genesis.optim.Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> optimizer = genesis.optim.RMSprop([x], lr=0.01)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    _kind = "rmsprop"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_least(momentum, "momentum")
        check_least(weight_decay, "weight_decay")
        check_least(alpha, "alpha")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return tuple(names)

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (
            group["lr"],
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
        )

    def _flags(self, group: dict[str, Any]) -> int:
        momentum = OPTION[0] if group["momentum"] > 0 else 0
        return momentum | (OPTION[1] if group["centered"] else 0)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            group.setdefault("centered", False)


class Adagrad(ListOptimizer):
    """Divides gradients by the root of the sum of their squares (Duchi and others, 2011).

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The learning rate.
    lr_decay : float
        How the rate falls: after n steps it is ``lr / (1 + n lr_decay)``.
    weight_decay : float
        How much of a parameter is added to its gradient.
    initial_accumulator_value : float
        What the sums begin with.
    eps : float
        Added to the square root.
    foreach, maximize, differentiable, fused
        As for :class:`genesis.optim.Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> optimizer = genesis.optim.Adagrad([x], lr=0.1)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    _kind = "adagrad"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_least(lr_decay, "lr_decay")
        check_least(weight_decay, "weight_decay")
        check_least(initial_accumulator_value, "initial_accumulator_value")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                self._state_init(param, group)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def _state_begin(self, name: str, param: Any, group: dict[str, Any]) -> Any:
        return _C.full_like(param, group["initial_accumulator_value"]).detach()

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["lr_decay"], group["eps"], group["weight_decay"]


class Adadelta(ListOptimizer):
    """Steps by the sizes of the last gradients and of the last steps (Zeiler, 2012).

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        What steps are multiplied by.
    rho : float
        How much stays of the averages in a step.
    eps : float
        Added below the square roots.
    weight_decay : float
        How much of a parameter is added to its gradient.
    foreach, capturable, maximize, differentiable
        As for :class:`genesis.optim.Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> optimizer = genesis.optim.Adadelta([x])
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9968, 0.9968], requires_grad=True)
    """

    _kind = "adadelta"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_least(weight_decay, "weight_decay")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["rho"], group["eps"], group["weight_decay"]
