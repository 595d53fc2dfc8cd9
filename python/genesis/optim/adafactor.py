"""Adafactor: Adam with averages of squares that take little memory."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import enable_grad, no_grad
from genesis._tensor_names import finfo
from genesis.optim._steps import check_rate, scalar_dtype
from genesis.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018): a matrix keeps averages of its rows and columns alone.

    A step takes several operations for each parameter.

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts of groups.
    lr : float or Tensor
        The largest learning rate.
    beta2_decay : float
        The exponent of the step that says how much is new in averages.
    eps : tuple
        The least average (None: that of the type), and the least size of a parameter.
    d : float
        The largest root mean square of a change before it is scaled.
    weight_decay : float
        How much a parameter decays, times the learning rate.
    foreach : bool, optional
        As PyTorch has it.
    maximize : bool
        Whether steps go up.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, 2, requires_grad=True)
    >>> optimizer = genesis.optim.Adafactor([x], lr=0.1)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([[0.9000, 0.9000],
            [0.9000, 0.9000]], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            for param in group["params"]:
                own = self.state.get(param, {})
                if own and not isinstance(own["step"], _C.Tensor):
                    own["step"] = _C.tensor(float(own["step"]), dtype=scalar_dtype())

    def _state_of(self, param: Any) -> dict[str, Any]:
        state = self.state[param]
        if state:
            return state
        shape = tuple(param.shape)
        state["step"] = _C.tensor(0.0, dtype=scalar_dtype())
        if param.ndim > 1:
            state["row_var"] = param.new_zeros((*shape[:-1], 1))
            state["col_var"] = param.new_zeros((*shape[:-2], 1, shape[-1]))
        else:
            state["variance"] = _C.zeros_like(param).detach()
        return state

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients; see :meth:`Optimizer.step`."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._param_step(param, group)
        return loss

    def _param_step(self, param: Any, group: dict[str, Any]) -> None:
        state, (eps1, eps2) = self._state_of(param), group["eps"]
        eps1 = finfo(param.dtype).eps if eps1 is None else eps1
        lr = float(group["lr"])
        state["step"] += 1
        count = state["step"].item()
        new = count ** group["beta2_decay"]
        own, grad = _wide(param.detach()), _wide(param.grad)
        grad = -grad if group["maximize"] else grad
        alpha = (own * own).mean().sqrt().clamp(min=eps2) * min(lr, 1 / count**0.5)
        squares = grad * grad
        if grad.ndim > 1:
            rows = _averaged(state["row_var"], squares.mean(dim=-1, keepdim=True), new)
            columns = _averaged(state["col_var"], squares.mean(dim=-2, keepdim=True), new)
            estimate = (rows @ columns) / rows.mean(dim=-2, keepdim=True).clamp(min=eps1)
        else:
            estimate = _averaged(state["variance"], squares, new)
        update = estimate.clamp(min=eps1 * eps1).rsqrt() * grad
        denominator = ((update * update).mean().sqrt() / group["d"]).clamp(min=1.0)
        kept = own * (1 - lr * group["weight_decay"])
        param.copy_(kept - update * (alpha / denominator))


def _wide(tensor: Any) -> Any:
    """Halves as float32: each operation would round them."""
    is_half = tensor.dtype in (_C.float16, _C.bfloat16)
    return tensor.to(dtype=_C.float32) if is_half else tensor


def _averaged(state: Any, value: Any, weight: float) -> Any:
    """Moves an average towards a value, and gives it."""
    made = _wide(state).lerp(value, weight)
    state.copy_(made)
    return made
