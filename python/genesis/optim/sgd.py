"""Optimizers with a momentum: SGD, Lion and Muon."""

from __future__ import annotations

from genesis.optim._steps import OPTION, ListOptimizer, check_betas, check_fused, check_rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["SGD", "Lion", "Muon"]


class SGD(ListOptimizer):
    """Steps against the gradient, with a momentum if it is asked for.

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The learning rate.
    momentum : float
        How much stays of the momentum in a step.
    dampening : float
        How much of the gradient is not added to the momentum.
    weight_decay : float or Tensor
        How much of a parameter is added to its gradient.
    nesterov : bool
        Whether the momentum is looked ahead along.
    maximize : bool
        Whether steps go up.
    foreach, fused : bool, optional
        As PyTorch has them. A step is always one call for all parameters.
    differentiable : bool
        Whether gradients go through the step.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = genesis.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.8000, -1.6000], requires_grad=True)
    """

    _kind = "sgd"
    _scalars = ()

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["momentum"], group["dampening"], group["weight_decay"]

    def _flags(self, group: dict[str, Any]) -> int:
        momentum = OPTION[0] if group["momentum"] != 0 else 0
        return momentum | (OPTION[1] if group["nesterov"] else 0)

    def _run(
        self, params: list[Any], group: dict[str, Any], flags: int, scale: Any, skip: Any
    ) -> list[Any] | None:
        missing = super()._run(params, group, flags, scale, skip)
        if not missing:
            return None
        # A momentum begins as the gradient. Those that have one already take another program.
        if skip is not None and skip.device.type == "cpu" and skip.item() != 0:
            return None
        for param in missing:
            self._state_init(param, group)
        super()._run(missing, group, flags | OPTION[2], scale, skip)
        done = {id(param) for param in missing}
        rest = [param for param in params if id(param) not in done]
        return super()._run(rest, group, flags, scale, skip)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)


class Lion(ListOptimizer):
    """Steps of one size, by the sign of a momentum (Chen and others, 2023).

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The learning rate: how far each element goes.
    betas : tuple of float
        How much of the momentum is in the step, and how much of it stays.
    weight_decay : float
        How much a parameter decays, times the learning rate.
    maximize : bool
        Whether steps go up.
    foreach, fused : bool, optional
        As for :class:`SGD`.
    differentiable : bool
        Whether gradients go through the step.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = genesis.optim.Lion([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _kind = "lion"
    _scalars = ()

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg",)

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return group["lr"], beta1, beta2, group["weight_decay"]


class Muon(ListOptimizer):
    """Steps along a momentum that is made orthogonal, for the matrices of hidden layers.

    Other parameters, such as biases and embeddings, are for another optimizer, such as AdamW.

    Parameters
    ----------
    params : iterable
        Matrices, pairs of a name and a matrix, or dicts of groups.
    lr : float or Tensor
        The learning rate.
    weight_decay : float
        How much a parameter decays, times the learning rate.
    momentum : float
        How much stays of the momentum in a step.
    nesterov : bool
        Whether the momentum is looked ahead along.
    ns_coefficients : tuple of float
        The three factors of the polynomial of Newton-Schulz.
    eps : float
        The least norm that a momentum is divided by.
    ns_steps : int
        How often the polynomial is applied: fewer than 100 times.
    adjust_lr_fn : str, optional
        How the learning rate depends on a matrix of A rows and B columns: ``"original"`` (or None)
        is times sqrt(max(1, A / B)), ``"match_rms_adamw"`` 0.2 sqrt(max(A, B)), and
        ``"spectral_unclamped"`` sqrt(A / B).

    Examples
    --------
    >>> import genesis
    >>> x = genesis.eye(2, requires_grad=True)
    >>> optimizer = genesis.optim.Muon([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool(x[0, 0] < 1)
    True
    """

    _kind = "muon"
    _scalars = ()

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate(lr, "Learning rate should be >= 0 but is: {}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def _params_check(self, params: list[Any]) -> None:
        super()._params_check(params)
        for param in params:
            if param.ndim != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{param.shape}"
                )

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        return (
            group["lr"],
            group["momentum"],
            group["weight_decay"],
            group["eps"],
            *group["ns_coefficients"],
            group["ns_steps"],
        )

    def _flags(self, group: dict[str, Any]) -> int:
        flags = OPTION[0] if group["nesterov"] else 0
        adjustments = {"match_rms_adamw": OPTION[1], "spectral_unclamped": OPTION[2]}
        return flags | adjustments.get(group["adjust_lr_fn"], 0)
