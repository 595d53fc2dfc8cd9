"""Module: what has parameters, and computes."""

from __future__ import annotations

from collections import OrderedDict

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn.modules._calls import (
    Calls,
    buffer_hooks,
    module_hooks,
    parameter_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from genesis.nn.modules._names import offer, uncover
from genesis.nn.modules._state import State
from genesis.nn.parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_DICTS = (
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_hooks_always_called",
    "_forward_hooks_with_kwargs",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_load_state_dict_post_hooks",
    "_load_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
)


def type_name(value: Any) -> str:
    """The name of a value's type, for messages."""
    cls = type(value)
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}".replace("genesis._C.", "genesis.")


def indented(text: str, spaces: int = 2) -> str:
    """A text whose lines but the first are indented."""
    first, *rest = text.split("\n")
    return "\n".join([first, *((" " * spaces + one) if one.strip() else "" for one in rest)])


def _check_name(self: Module, kind: str, name: Any, known: dict[str, Any]) -> None:
    """A name under which something can be registered."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
    if name not in known and hasattr(self, name):
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        got = f", got: {name}" if kind == "module" else ""
        raise KeyError(f'{kind} name can\'t contain "."{got}')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


class Module(Calls, State):
    """What has parameters and buffers, and other modules as its children, and computes.

    A class of one's own calls ``super().__init__()`` first, assigns parameters and modules to
    attributes, and defines ``forward()``.

    Attributes
    ----------
    training : bool
        Whether it is being trained: ``train()`` and ``eval()`` set it.

    Examples
    --------
    >>> import genesis
    >>> from genesis import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Linear(3, 4)
    ...         self.scale = nn.Parameter(genesis.ones(4))
    ...
    ...     def forward(self, x):
    ...         return self.hidden(x) * self.scale
    >>> net = Net()
    >>> net
    Net(
      (hidden): Linear(in_features=3, out_features=4, bias=True)
    )
    >>> [name for name, _ in net.named_parameters()]
    ['scale', 'hidden.weight', 'hidden.bias']
    >>> net(genesis.ones(2, 3)).shape
    (2, 4)
    """

    _names_are_data = False  # as those of what containers hold
    _offered_count = 0
    dump_patches = False
    call_super_init = False
    training: bool

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if len(cls.__bases__) > 1:
            uncover(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            what = (
                f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else f"takes 1 positional argument but {len(args) + 1} were given"
            )
            raise TypeError(f"{type(self).__name__}.__init__() {what}")
        attributes = self.__dict__
        attributes["training"] = True
        attributes["_parameters"] = {}
        attributes["_buffers"] = {}
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_modules"] = {}
        for name in _DICTS:
            attributes[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- attributes ----

    # Finds parameters, buffers and modules: called for names that are no attributes otherwise.
    __getattr__: Callable[[str], Any] = _C._module_get_attribute

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        parameters = attributes.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, attributes, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as parameter '{name}' "
                    "(genesis.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if parameters is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, attributes, parameters, self._buffers)
            self._modules[name] = registered(module_hooks, self, name, value)
            self._offered(name, 2)
        elif parameters is not None and name in attributes["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as child module '{name}' "
                    "(genesis.nn.Module or None expected)"
                )
            self._modules[name] = registered(module_hooks, self, name, value)
        elif isinstance(value, Buffer) or (
            parameters is not None and name in attributes["_buffers"]
        ):
            if value is not None and not isinstance(value, _C.Tensor):
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as buffer '{name}' "
                    "(genesis.nn.Buffer, genesis.Tensor or None expected)"
                )
            if parameters is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if isinstance(value, Buffer):
                self._forget(name, attributes, self._modules)
                persistent = value.persistent
            else:
                persistent = name not in self._non_persistent_buffers_set
            self.register_buffer(name, value, persistent)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, *places: dict[str, Any]) -> None:
        """Remove a name that gets another meaning."""
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        names.update(self._parameters, self._buffers, self._modules)
        return sorted(name for name in names if not name[:1].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _DICTS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        for part, items in enumerate((self._parameters, self._buffers, self._modules)):
            for name in items:
                self._offered(name, part)

    # ---- registration ----

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Give the module a parameter, or None, under a name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, "parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{type_name(param)}' object to parameter '{name}' "
                    "(genesis.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            param = registered(parameter_hooks, self, name, param)
        self._parameters[name] = param
        self._offered(name, 0)

    def register_buffer(self, name: str, tensor: _C.Tensor | None, persistent: bool = True) -> None:
        """Give the module a buffer, or None: a tensor that belongs to it and is not trained.

        Parameters
        ----------
        name : str
            Of the attribute.
        tensor : Tensor or None
            The buffer.
        persistent : bool
            Whether ``state_dict()`` has it.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, _C.Tensor):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' "
                "(genesis Tensor or None required)"
            )
        self._buffers[name] = registered(buffer_hooks, self, name, tensor)
        self._offered(name, 1)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Give the module a child, or None, under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        _check_name(self, "module", name, self._modules)
        self._modules[name] = registered(module_hooks, self, name, module)
        self._offered(name, 2)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as :meth:`add_module`."""
        self.add_module(name, module)

    def _offered(self, name: str, part: int) -> None:
        """Something was registered under a name."""
        if not self._names_are_data and type(self) is not Module:
            offer(type(self), name, part)

    # ---- by name ----

    def _get_name(self) -> str:
        return type(self).__name__

    def get_submodule(self, target: str) -> Module:
        """The module of a name such as ``"block.0.linear"``; ``""`` is this one."""
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module in the place of the one with a name; with `strict` there must be one."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_tensor(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a name such as ``"block.0.linear.weight"``."""
        _, name, found = self._get_tensor(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> _C.Tensor:
        """The buffer of a name such as ``"norm.running_mean"``."""
        module, name, found = self._get_tensor(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    # ---- all of them ----

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules: Any = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            start = f"{path}." if path else ""
            for name, one in get_members_fn(module):
                if one is None or one in seen:
                    continue
                if remove_duplicate:
                    seen.add(one)
                yield start + name, one

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of the module and, with `recurse`, of those in it; each once."""
        for _, one in self.named_parameters(recurse=recurse):
            yield one

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The same with their names; one that modules share has the first name."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[_C.Tensor]:
        """The buffers of the module and, with `recurse`, of those in it; each once."""
        for _, one in self.named_buffers(recurse=recurse):
            yield one

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, _C.Tensor]]:
        """The same with their names."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one; each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The same with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all in it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """The same with their names; this one's is `prefix`. Those in `memo` are left out."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        start = f"{prefix}." if prefix else ""
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, start + name, remove_duplicate)

    # ---- changes of all ----

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with each child, and what is in it, and at last with this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[_C.Tensor], _C.Tensor], recurse: bool = True) -> Self:
        """Replace each tensor by what a function makes of it; parameters stay the same objects."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for one in self._parameters.values():
            if one is not None:
                _replace(one, fn)
        for name, one in self._buffers.items():
            if one is not None:
                self._buffers[name] = fn(one)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move the module's tensors to a device, or give those of floating types another one.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``, with
        ``non_blocking=False``; `memory_format` is accepted, and has no effect.

        Examples
        --------
        >>> import genesis
        >>> genesis.nn.Linear(2, 3).to(genesis.float64).weight.dtype
        genesis.float64
        """
        device, dtype, non_blocking = _to_arguments(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype}"
            )

        def convert(tensor: _C.Tensor) -> _C.Tensor:
            wanted = dtype if tensor.dtype.is_floating_point else None
            return tensor.to(device, wanted, non_blocking=non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move the module to a device without its values, which are not set then."""
        return self._apply(lambda tensor: _C.empty_like(tensor, device=device), recurse=recurse)

    def cuda(self, device: Any = None) -> Self:
        """Move the module to a GPU; None: the current one."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self) -> Self:
        """Move the module to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def type(self, dst_type: Any) -> Self:
        """Give all tensors a dtype."""
        return self._apply(lambda tensor: tensor.to(dtype=dst_type))

    def _cast(self, dtype: _C.dtype) -> Self:
        return self._apply(
            lambda tensor: tensor.to(dtype=dtype) if tensor.dtype.is_floating_point else tensor
        )

    def float(self) -> Self:
        """Give the tensors of floating types float32."""
        return self._cast(_C.float32)

    def double(self) -> Self:
        """Give the tensors of floating types float64."""
        return self._cast(_C.float64)

    def half(self) -> Self:
        """Give the tensors of floating types float16."""
        return self._cast(_C.float16)

    def bfloat16(self) -> Self:
        """Give the tensors of floating types bfloat16."""
        return self._cast(_C.bfloat16)

    def train(self, mode: bool = True) -> Self:
        """Set ``training`` of the module and all in it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """The same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether the parameters are trained."""
        for one in self.parameters():
            one.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for one in self.parameters():
            if set_to_none:
                one.grad = None
            elif (gradient := one.grad) is not None:
                gradient = gradient if gradient.grad_fn is None else gradient.detach()
                one.grad = gradient.requires_grad_(False).zero_()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted for PyTorch's sake: operations are compiled as they are called."""

    # ---- text ----

    def extra_repr(self) -> str:
        """What stands in the parentheses of repr(), before the children: for classes to define."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        inner = [f"({name}): {indented(repr(one))}" for name, one in self._modules.items()]
        if len(own) == 1 and not inner:
            return f"{self._get_name()}({extra})"
        body = "\n  " + "\n  ".join(own + inner) + "\n" if own or inner else ""
        return f"{self._get_name()}({body})"


def _replace(parameter: Any, fn: Callable[[_C.Tensor], _C.Tensor]) -> None:
    """Give a parameter, and its gradient, what a function makes of them."""
    gradient = parameter.grad
    with no_grad():
        made = fn(parameter)
        made_gradient = None if gradient is None else fn(gradient)
    if made is parameter:
        return
    parameter.grad = None  # it would not fit
    try:
        parameter.data = made
    except Exception:
        parameter.grad = gradient
        raise
    if gradient is not None and made_gradient is not gradient:
        if gradient.grad_fn is None:
            gradient.data = made_gradient
        else:
            gradient = made_gradient
    parameter.grad = gradient


def _to_arguments(
    *args: Any, non_blocking: bool = False, memory_format: Any = None, **kwargs: Any
) -> tuple[Any, Any, bool]:
    """The device, the dtype, and whether copies may go on: what to() was called with."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    given = [*args, *([kwargs.pop("tensor")] if "tensor" in kwargs else [])]
    if kwargs:
        raise TypeError(f"to() has no argument {next(iter(kwargs))!r}")
    for one in given:
        if isinstance(one, _C.Tensor):
            device, dtype = one.device, one.dtype
        elif isinstance(one, _C.dtype):
            dtype = one
        elif isinstance(one, bool):
            non_blocking = one
        elif one is not None:
            device = one
    return device, dtype, non_blocking
