"""The base of all optimizers: parameter groups, states, hooks, and how they are saved."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from functools import wraps

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.utils.hooks import RemovableHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]


class _Required:
    """The default of an option that each group must have."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


_global_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_post_hooks: OrderedDict[int, Any] = OrderedDict()


def _register(hooks: OrderedDict[int, Any], hook: Any, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Have ``hook(optimizer, args, kwargs)`` called before each step of any optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Have ``hook(optimizer, args, kwargs)`` called after each step of any optimizer."""
    return _register(_global_post_hooks, hook)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that calls the hooks, once where one step calls another one of the same object."""

    @wraps(step)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        own["_opt_called"] = True  # for learning rate schedulers, which come after it
        before, after = own["_optimizer_step_pre_hooks"], own["_optimizer_step_post_hooks"]
        if not (before or after or _global_pre_hooks or _global_post_hooks) or "_inside" in own:
            return step(self, *args, **kwargs)
        self._inside = True
        try:
            for hook in [*_global_pre_hooks.values(), *before.values()]:
                changed = hook(self, (self, *args), kwargs)
                if changed is None:
                    continue
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"{step.__qualname__} must return None or a tuple of (new_args, "
                        f"new_kwargs), but got {changed}."
                    )
                args, kwargs = changed[0][1:], changed[1]
            made = step(self, *args, **kwargs)
            for hook in [*after.values(), *_global_post_hooks.values()]:
                hook(self, (self, *args), kwargs)
            return made
        finally:
            del self._inside

    call.hooked = True  # type: ignore[attr-defined]
    return call


def _name_of(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


class Optimizer:
    """Changes parameters by their gradients; the base of all optimizers.

    Parameters
    ----------
    params : iterable
        Tensors, pairs of a name and a tensor, or dicts with ``"params"`` and options of a group.
    defaults : dict
        Options of groups that do not have their own.

    Attributes
    ----------
    param_groups : list of dict
        Options, and ``"params"``.
    state : dict
        What is kept for each parameter: a dict of tensors.

    Examples
    --------
    A descent of one's own:

    >>> import genesis
    >>> class Descent(genesis.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     @genesis.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.sub_(group["lr"] * p.grad)
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> Descent([x], lr=0.25).step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    _optimizer_step_pre_hooks: OrderedDict[int, Any]
    _optimizer_step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]
    _inside: bool  # a step that calls hooks
    _opt_called: bool  # for schedulers: there was a step
    _is_scheduled: bool
    _scalars: tuple[str, ...] = ("step",)  # states that are one number for a parameter

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        step = cls.__dict__.get("step")
        if callable(step) and not getattr(step, "hooked", False):
            cls.step = _hooked(step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._hooks_init()
        if isinstance(params, _C.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {_name_of(params)}"
            )
        if isinstance(params, set):
            warnings.warn(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead. "
                "This will be an error in a future release.",
                FutureWarning,
                stacklevel=3,
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _hooks_init(self) -> None:
        for name in (
            "step_pre",
            "step_post",
            "state_dict_pre",
            "state_dict_post",
            "load_state_dict_pre",
            "load_state_dict_post",
        ):
            self.__dict__.setdefault(f"_optimizer_{name}_hooks", OrderedDict())

    # ---- groups ----

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict with ``"params"`` and options; those that it does not have are the defaults.

        Examples
        --------
        >>> import genesis
        >>> a, b = genesis.ones(2, requires_grad=True), genesis.ones(3, requires_grad=True)
        >>> optimizer = genesis.optim.SGD([a], lr=0.1)
        >>> optimizer.add_param_group({"params": [b], "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, _C.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        named = [one if isinstance(one, tuple) else (None, one) for one in params]
        param_group["params"] = [one for _, one in named]
        names = [name for name, _ in named if name is not None]
        if names:
            if len(names) != len(named):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["param_names"] = names
        self._params_check(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        self._groups_check(param_group)
        self.param_groups.append(param_group)

    def _params_check(self, params: list[Any]) -> None:
        for param in params:
            if not isinstance(param, _C.Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{_name_of(param)}"
                )
            is_kept = param.is_leaf or param.retains_grad
            if not is_kept and not self.defaults.get("differentiable"):
                raise ValueError("can't optimize a non-leaf Tensor")

    def _groups_check(self, added: dict[str, Any]) -> None:
        own = {id(param) for param in added["params"]}
        if len(own) != len(added["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=4,
            )
        for group in self.param_groups:
            if ("param_names" in added) != ("param_names" in group):
                words = "with names" if "param_names" in added else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {words} to the optimizer"
                )
            if any(id(param) in own for param in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")

    # ---- steps ----

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss, with its gradients, and gives it; what the step returns.
        """
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Let go of all gradients, or, with ``set_to_none=False``, set them to 0."""
        grads = []
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif (grad := param.grad) is not None:
                    if grad.requires_grad:  # it has a graph, of backward(create_graph=True)
                        grad.detach_()
                    grads.append(grad)
        for device in {grad.device for grad in grads}:
            places = tuple(grad for grad in grads if grad.device == device)
            _C._list_elementwise((places,), (), ((1, 0),), (0.0,), None, 0)

    # ---- hooks ----

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have ``hook(optimizer, args, kwargs)`` called before each step.

        It gives None, or other arguments for the step: a tuple of args (with the optimizer) and
        kwargs.

        Examples
        --------
        >>> import genesis
        >>> x = genesis.ones(1, requires_grad=True)
        >>> optimizer = genesis.optim.SGD([x], lr=0.1)
        >>> handle = optimizer.register_step_pre_hook(lambda *_: print("before"))
        >>> optimizer.step()
        before
        >>> handle.remove()
        """
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have ``hook(optimizer, args, kwargs)`` called after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer)`` called before :meth:`state_dict` begins."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer, state_dict)`` called at the end of :meth:`state_dict`.

        What it gives takes the place of the dict, unless it is None.
        """
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer, state_dict)`` called before :meth:`load_state_dict` begins.

        What it gives is loaded in the place of the dict, unless it is None.
        """
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer)`` called at the end of :meth:`load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- saving and loading ----

    def state_dict(self) -> dict[str, Any]:
        """The state as a dict: ``"state"``, by number of the parameter, and ``"param_groups"``.

        The tensors are those of the optimizer, and change with its next step.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups, start = [], 0
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for i, param in enumerate(group["params"], start):
                numbers.setdefault(id(param), i)
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            start += len(group["params"])
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, _C.Tensor) else key: value
            for key, value in self.state.items()
        }
        made = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, made)
            made = made if changed is None else changed
        return made

    @no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave, of this optimizer or of one like it.

        Tensors are copied, to the parameter's device and type; what counts steps keeps its own.
        Groups and parameters are matched by their order. If the dict does not fit, nothing changes.
        """
        from copy import deepcopy

        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        params = {}
        for group, other in zip(self.param_groups, saved, strict=True):
            if len(group["params"]) != len(other["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
            for key, param in zip(other["params"], group["params"], strict=True):
                params[key] = (param, other)
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                param, other = params[key]
                state[param] = self._state_copy(value, param, other, None)
            else:
                state[key] = value
        for group, other in zip(self.param_groups, saved, strict=True):
            other["params"] = group["params"]
            if "param_names" in group:
                other.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _state_copy(self, value: Any, param: Any, group: dict[str, Any], key: str | None) -> Any:
        """A state of a parameter, with copies of all tensors."""
        if isinstance(value, _C.Tensor):
            if key in self._scalars:
                is_near = group.get("capturable") or group.get("fused")
                made = value.to(dtype=_C.float32, device=param.device) if is_near else value
            else:
                made = value.to(dtype=param.dtype, device=param.device)
            return made.detach().clone() if made is value else made.detach()
        if isinstance(value, dict):
            return {name: self._state_copy(one, param, group, name) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._state_copy(one, param, group, None) for one in value)
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hooks_init()

    def __repr__(self) -> str:
        made = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            made += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    made += f"    {key}: {group[key]}\n"
        return made + ")"
