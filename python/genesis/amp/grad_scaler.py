"""GradScaler: losses are scaled up, so that gradients in float16 do not vanish."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any
from warnings import warn

from genesis import _C, cuda

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What has been done with an optimizer since the last update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _State:
    """Of one optimizer, between two updates."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found: dict[_C.device, _C.Tensor] = {}  # not 0: a gradient was not finite


class GradScaler:
    """Scales losses by a large number, and gradients back, for training in float16.

    A step whose gradients are not all finite is left out, and the scale becomes smaller; after
    ``growth_interval`` steps without it becomes larger.

    Parameters
    ----------
    device : str
        ``"cuda"`` or ``"cpu"``: where the losses are.
    init_scale : float
        The scale at the beginning.
    growth_factor, backoff_factor : float
        What it is multiplied by when it becomes larger, or smaller.
    growth_interval : int
        After how many good steps in a row it becomes larger.
    enabled : bool
        False: losses and gradients stay as they are, and step() is the optimizer's.

    Examples
    --------
    >>> import genesis
    >>> scaler = genesis.amp.GradScaler("cpu", init_scale=4.0)
    >>> x = genesis.ones(1, requires_grad=True)
    >>> scaler.scale(x * 2).backward()
    >>> x.grad
    tensor([8.])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if device not in ("cuda", "cpu"):
            raise ValueError(f"GradScaler: a type of device is 'cuda' or 'cpu', not {device!r}")
        if enabled and growth_factor <= 1.0:
            raise ValueError(f"GradScaler: growth_factor is more than 1, not {growth_factor}")
        if enabled and not 0.0 < backoff_factor < 1.0:
            raise ValueError(f"GradScaler: backoff_factor is between 0 and 1, not {backoff_factor}")
        if enabled and device == "cuda" and not cuda.is_available():
            warn("GradScaler is off: there is no CUDA device", stacklevel=2)
            enabled = False
        self._device = device
        self._enabled = bool(enabled)
        self._init_scale = float(init_scale)
        self._init_growth_tracker = 0
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._scale: _C.Tensor | None = None  # made when it is first used
        self._growth_tracker: _C.Tensor | None = None
        self._states: dict[int, _State] = {}  # id of an optimizer: what was done with it

    # ---- scaling ----

    def _begin(self, device: _C.device) -> _C.Tensor:
        """The scale, which is made on the device of the first loss."""
        if self._scale is None:
            self._scale = _C.full((), self._init_scale, dtype=_C.float32, device=device)
            self._growth_tracker = _C.full(
                (), self._init_growth_tracker, dtype=_C.int32, device=device
            )
        return self._scale

    def _begun(self, name: str) -> tuple[_C.Tensor, _C.Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise RuntimeError(f"{name}: there is no scale yet: call scale(loss) before")
        return self._scale, self._growth_tracker

    def _state(self, optimizer: Any) -> _State:
        return self._states.setdefault(id(optimizer), _State())

    def scale(self, outputs: Any) -> Any:
        """A loss, or losses in a list, a tuple or another iterable, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            return outputs * self._begin(outputs.device).to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(one) for one in outputs)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError(f"scale() takes a Tensor or several, not {outputs!r}")

    def _check(self, optimizer: Any, factor: _C.Tensor | None) -> None:
        """Multiply the gradients by `factor`, and find out on each device if all are finite."""
        state = self._state(optimizer)
        gradients: dict[_C.device, list[_C.Tensor]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if factor is not None and gradient.dtype == _C.float16:
                    raise ValueError(
                        "unscale_: a gradient is float16: with autocast weights are float32"
                    )
                gradients.setdefault(gradient.device, []).append(gradient.detach())
        for device, listed in gradients.items():
            found = _C.zeros((), dtype=_C.float32, device=device)
            here = None if factor is None else factor.to(device)
            _C._list_unscale(tuple(listed), here, found)
            state.found[device] = found

    def unscale_(self, optimizer: Any) -> None:
        """Divide an optimizer's gradients by the scale, so that they can be clipped.

        Otherwise :meth:`step` does so. Once for each step.
        """
        if not self._enabled:
            return
        scale, _ = self._begun("unscale_")
        state = self._state(optimizer)
        if state.stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()"
            )
        if state.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step()")
        self._check(optimizer, scale.double().reciprocal().float())
        state.stage = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer: Any) -> dict[_C.device, _C.Tensor]:
        """Whether gradients are finite, which stay scaled."""
        self._check(optimizer, None)
        return self._state(optimizer).found

    # ---- steps ----

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step an optimizer, unless one of its gradients is infinite or NaN.

        An optimizer with ``_step_supports_amp_scaling`` finds the scale and whether to step in its
        attributes ``grad_scale`` and ``found_inf``, and the host does not wait. With any other one
        it waits for the check.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("step(): a closure cannot be used with gradient scaling")
        self._begun("step")
        state = self._state(optimizer)
        if state.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update()")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_scaled(optimizer, state, *args, **kwargs)
        else:
            if state.stage is OptState.READY:
                self.unscale_(optimizer)
            if not state.found:
                raise RuntimeError("step(): no parameter of the optimizer has a gradient")
            is_fine = not any(found.item() for found in state.found.values())
            result = optimizer.step(*args, **kwargs) if is_fine else None
        state.stage = OptState.STEPPED
        return result

    def _step_scaled(self, optimizer: Any, state: _State, *args: Any, **kwargs: Any) -> Any:
        """A step of an optimizer that unscales gradients, and leaves out steps, itself."""
        scale, _ = self._begun("step")
        is_scaled = state.stage is OptState.READY
        if is_scaled:
            self._check(optimizer, None)
        elif not state.found and any(
            parameter.grad is not None
            for group in optimizer.param_groups
            for parameter in group["params"]
        ):
            raise RuntimeError("step(): there were no gradients when unscale_() was called")
        own = getattr(optimizer, "grad_scale", None)
        if is_scaled:
            optimizer.grad_scale = scale if own is None else scale * own
        else:
            optimizer.grad_scale = own
        optimizer.found_inf = self._found_on(scale.device, (state,))
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale
            del optimizer.found_inf

    @staticmethod
    def _found_on(device: _C.device, states: Iterable[_State]) -> _C.Tensor | None:
        """Whether any check has found something, as one tensor."""
        total = None
        for state in states:
            for found in state.found.values():
                here = found.to(device)
                total = here if total is None else total + here
        return total

    def update(self, new_scale: float | _C.Tensor | None = None) -> None:
        """Find the scale of the next step; call it behind the steps of all optimizers.

        With `new_scale`, a number or a tensor of one, that is the scale.
        """
        if not self._enabled:
            return
        scale, tracker = self._begun("update")
        if isinstance(new_scale, _C.Tensor):
            if new_scale.numel() != 1 or new_scale.requires_grad:
                raise ValueError("update: the scale is a number, or a tensor of one element")
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            found = self._found_on(scale.device, self._states.values())
            if found is None:
                raise RuntimeError("update: no gradients were checked: call step() before")
            _C._scale_update(
                scale,
                tracker,
                found,
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._states = {}

    # ---- settings ----

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale, which the host waits for; 1 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_scale_async(self) -> _C.Tensor | None:
        return self._scale

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after enough good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose that."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a step that was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose that."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps in a row the scale becomes larger."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose that."""
        self._growth_interval = new_interval

    # ---- checkpoints ----

    def state_dict(self) -> dict[str, Any]:
        """All that a checkpoint needs; empty where scaling is off. Call it behind update()."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what state_dict() gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "load_state_dict: the state is empty: it comes from a GradScaler that was off"
            )
        self._init_scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        if self._states:
            raise RuntimeError("a GradScaler is pickled before scale(), or behind update()")
        state = self.__dict__.copy()
        state["_init_scale"] = self.get_scale() if self._enabled else self._init_scale
        state["_init_growth_tracker"] = self._get_growth_tracker()
        state["_scale"] = state["_growth_tracker"] = None
        return state
