"""Optimizers whose step is one call for all parameters, and checks of options."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import enable_grad
from genesis.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAXIMIZE, RECORD = 1, 2  # flags of _C._optim_step(); an optimizer's own follow
OPTION = (4, 8, 16, 32)

_LATER = ("capturable", "differentiable", "foreach", "fused", "maximize")
_LATER += ("decoupled_weight_decay",)  # options that old states do not have


def scalar_dtype(is_fused: bool | None = None) -> Any:
    """The type of what counts steps."""
    is_double = not is_fused and _C.get_default_dtype() is _C.float64
    return _C.float64 if is_double else _C.float32


class ListOptimizer(Optimizer):
    """An optimizer whose step is one call for all parameters of a group: genesis/optim.h."""

    _step_supports_amp_scaling: bool  # a GradScaler leaves scaling and skipping to the step
    _kind = ""  # its name there

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """Its hyperparameters, in the order of the call."""
        raise NotImplementedError

    def _flags(self, group: dict[str, Any]) -> int:
        """Which of its own options are on."""
        return 0

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The names of what is kept for each element."""
        raise NotImplementedError

    def _scalar(self, value: float, param: Any, group: dict[str, Any]) -> Any:
        """A number that is kept for a parameter: on the CPU, or where the step is captured."""
        is_near = group.get("capturable") or group.get("fused")
        return _C.tensor(
            value,
            dtype=scalar_dtype(group.get("fused")),
            device=param.device if is_near else "cpu",
        )

    def _state_init(self, param: Any, group: dict[str, Any]) -> None:
        """What a parameter has not been given yet."""
        state = self.state[param]
        for name in self._scalars:
            if name not in state:
                state[name] = self._scalar(self._scalar_begin(name, group), param, group)
        for name in self._states(group):
            if state.get(name) is None:
                state[name] = self._state_begin(name, param, group)

    def _scalar_begin(self, name: str, group: dict[str, Any]) -> float:
        """What a number begins with."""
        return 0.0

    def _state_begin(self, name: str, param: Any, group: dict[str, Any]) -> Any:
        """What is kept for each element, at the beginning."""
        return _C.zeros_like(param).detach()

    def _check(self, group: dict[str, Any]) -> None:
        """What only a GPU makes wrong: a step that is captured, and counted by the host."""
        if group.get("capturable", True) or group.get("fused"):
            return
        params = group["params"]
        if params and params[0].device.type == "cuda":
            from genesis import cuda

            if cuda.is_current_stream_capturing():
                raise RuntimeError(
                    "Attempting CUDA graph capture of step() for an instance of "
                    f"{type(self).__name__} but param_groups' capturable is False."
                )

    def _run(
        self, params: list[Any], group: dict[str, Any], flags: int, scale: Any, skip: Any
    ) -> list[Any] | None:
        return _C._optim_step(
            self._kind, params, self.state, self._numbers(group), flags, scale, skip
        )

    def _group_step(self, group: dict[str, Any], scale: Any, skip: Any) -> None:
        flags = self._flags(group)
        if group.get("maximize"):
            flags |= MAXIMIZE
        if group.get("differentiable"):
            flags |= RECORD
        missing = self._run(group["params"], group, flags, scale, skip)
        if missing:
            for param in missing:
                self._state_init(param, group)
            self._run(group["params"], group, flags, scale, skip)

    def step(
        self,
        closure: Callable[[], Any] | None = None,
        *,
        grad_scale: Any = None,
        found_inf: Any = None,
    ) -> Any:
        """Change the parameters by their gradients.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss, with its gradients, and gives it; what the step returns.
        grad_scale : Tensor, optional
            Gradients are divided by it before, and stay so.
        found_inf : Tensor, optional
            If it is not 0, nothing is done.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        own = self.__dict__
        scale = own.get("grad_scale") if grad_scale is None else grad_scale
        skip = own.get("found_inf") if found_inf is None else found_inf
        for group in self.param_groups:
            self._check(group)
            self._group_step(group, scale, skip)
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if any(group.get("fused") for group in self.param_groups):
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for name, value in self.defaults.items():
                if name in _LATER:
                    group.setdefault(name, value)
            for param in group["params"]:
                own = self.state.get(param, {})
                for name in self._scalars:
                    if name in own and not isinstance(own[name], _C.Tensor):
                        own[name] = self._scalar(float(own[name]), param, group)
                    elif name in own and "step" in own:  # the host counts all of them, or none
                        own[name] = own[name].to(own["step"].device)


def check_fused(optimizer: Any, fused: Any, foreach: Any, differentiable: bool) -> None:
    """What ``fused=True`` does not go with."""
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    for group in optimizer.param_groups:
        for param in group["params"]:
            if not param.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors, but one "
                    f"is {param.dtype}"
                )
    optimizer._step_supports_amp_scaling = True


def check_rate(lr: Any, words: str = "Invalid learning rate: {}") -> None:
    """A learning rate is a number that is not negative, or a tensor of one."""
    if isinstance(lr, _C.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(words.format(lr))


def check_least(value: Any, name: str) -> None:
    """An option that is not negative."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: Any) -> None:
    """Two numbers from 0 to below 1."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
