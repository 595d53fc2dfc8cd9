"""Optimizers for whole batches: Rprop, and ASGD."""

from __future__ import annotations

from genesis import _C
from genesis.optim._steps import ListOptimizer, check_least, check_rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["ASGD", "Rprop"]


class Rprop(ListOptimizer):
    """Steps by the signs of gradients, with a size for each element (Riedmiller and Braun, 1993).

    The size grows while the sign of an element's gradient stays, and shrinks when it changes.

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The size of the first step.
    etas : tuple of float
        What a size is multiplied by when the sign has changed, and when it has not.
    step_sizes : tuple of float
        The least size, and the largest.
    capturable, foreach, maximize, differentiable
        As for :class:`genesis.optim.Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = genesis.optim.Rprop([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _kind = "rprop"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _state_begin(self, name: str, param: Any, group: dict[str, Any]) -> Any:
        begin = float(group["lr"]) if name == "step_size" else 0.0
        return _C.full_like(param, begin).detach()

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (*group["etas"], *group["step_sizes"])


class ASGD(ListOptimizer):
    """Steps against the gradient, and an average of the parameters (Polyak and Juditsky, 1992).

    The average is the state ``"ax"``.

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The learning rate of the first step.
    lambd : float
        How much a parameter decays, times the learning rate.
    alpha : float
        How the rate falls: after n steps it is ``lr / (1 + lambd * lr * n) ** alpha``.
    t0 : float
        After how many steps the average begins.
    weight_decay : float
        How much of a parameter is added to its gradient.
    foreach, maximize, differentiable, capturable
        As for :class:`genesis.optim.Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = genesis.optim.ASGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.8000, -1.6000], requires_grad=True)
    """

    _kind = "asgd"
    _scalars = ("step", "eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_least(lambd, "lambd")
        check_least(alpha, "alpha")
        check_least(weight_decay, "weight_decay")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    def _scalar_begin(self, name: str, group: dict[str, Any]) -> float:
        return {"eta": float(group["lr"]), "mu": 1.0}.get(name, 0.0)

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"]
