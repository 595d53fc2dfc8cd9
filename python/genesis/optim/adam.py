"""Adam and its kin: AdamW, NAdam, RAdam and Adamax."""

from __future__ import annotations

from genesis import _C
from genesis.optim._steps import (
    OPTION,
    ListOptimizer,
    check_betas,
    check_fused,
    check_least,
    check_rate,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


class _Moments(ListOptimizer):
    """What all of them have: two betas, and averages."""

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return group["lr"], beta1, beta2, group["eps"], group["weight_decay"]

    def _flags(self, group: dict[str, Any]) -> int:
        return OPTION[0] if group.get("decoupled_weight_decay") else 0


class Adam(_Moments):
    """Adam: steps by averages of gradients and of their squares (Kingma and Ba, 2014).

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The learning rate.
    betas : tuple
        How much stays of the averages in a step; floats, or tensors.
    eps : float
        Added to the square root.
    weight_decay : float
        How much of a parameter is added to its gradient.
    amsgrad : bool
        Whether the largest average of squares is taken.
    foreach, fused : bool, optional
        As PyTorch has them. A step is always one call for all parameters; with ``fused=True`` the
        steps are counted on the parameters' device, and ``GradScaler`` scales in the step.
    maximize : bool
        Whether steps go up.
    capturable : bool
        Whether steps are counted on the parameters' device, so that a graph can hold the step.
    differentiable : bool
        Whether gradients go through the step.
    decoupled_weight_decay : bool
        Whether the parameter itself decays, as AdamW's.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = genesis.optim.Adam([x], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (x * x).sum().backward()
    ...     optimizer.step()
    >>> x
    tensor([ 0.7016, -1.7006], requires_grad=True)
    """

    _kind = "adam"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, _C.Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check_least(weight_decay, "weight_decay")
        kinds = [isinstance(beta, _C.Tensor) for beta in betas]
        if not (all(kinds) or all(isinstance(beta, float) for beta in betas)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, _C.Tensor) and foreach and not capturable:
                raise ValueError(
                    f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
                )
            if isinstance(beta, _C.Tensor) and beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        names = super()._states(group)
        return (*names, "max_exp_avg_sq") if group["amsgrad"] else names

    def _flags(self, group: dict[str, Any]) -> int:
        amsgrad = OPTION[0] if group["amsgrad"] else 0
        return amsgrad | (OPTION[1] if group["decoupled_weight_decay"] else 0)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("decoupled_weight_decay", False)


class AdamW(Adam):
    """Adam whose weight decay is no part of the gradient (Loshchilov and Hutter, 2017).

    The arguments are those of :class:`Adam`; the weight decay is 0.01, times the learning rate.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = genesis.optim.AdamW([x], lr=0.1)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.8990, -2.0980], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class NAdam(_Moments):
    """Adam with Nesterov's momentum (Dozat, 2016); ``momentum_decay`` lets it grow with time.

    The other arguments are those of :class:`Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> optimizer = genesis.optim.NAdam([x], lr=0.1)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944, 0.8944], requires_grad=True)
    """

    _kind = "nadam"
    _scalars = ("step", "mu_product")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check_least(weight_decay, "weight_decay")
        check_least(momentum_decay, "momentum_decay")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (*super()._numbers(group), group["momentum_decay"])

    def _scalar_begin(self, name: str, group: dict[str, Any]) -> float:
        return 1.0 if name == "mu_product" else 0.0


class RAdam(_Moments):
    """Adam that adapts only once its averages have settled (Liu and others, 2019).

    The arguments are those of :class:`Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> optimizer = genesis.optim.RAdam([x], lr=0.1)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    _kind = "radam"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check_least(weight_decay, "weight_decay")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)


class Adamax(_Moments):
    """Adam with the largest gradient in the place of the root of squares (Kingma and Ba, 2014).

    The arguments are those of :class:`Adam`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> optimizer = genesis.optim.Adamax([x], lr=0.1)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    _kind = "adamax"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check_least(weight_decay, "weight_decay")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")
