"""Calls of modules with hooks, and how hooks are registered."""

from __future__ import annotations

from collections import OrderedDict

from genesis import _C
from genesis.nn.modules._backward_hooks import BackwardHooks
from genesis.utils.hooks import RemovableHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class _Hooks:
    """Hooks of one module, or those that all modules have in common."""

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Any] = OrderedDict()
        self.forward: OrderedDict[int, Any] = OrderedDict()
        self.with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.always_called: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Any] = OrderedDict()
        self.backward: OrderedDict[int, Any] = OrderedDict()


_common = _Hooks()
parameter_hooks: OrderedDict[int, Any] = OrderedDict()  # called when one is registered
buffer_hooks: OrderedDict[int, Any] = OrderedDict()
module_hooks: OrderedDict[int, Any] = OrderedDict()


def _add(
    hook: Callable[..., Any],
    hooks: OrderedDict[int, Any],
    *extra: OrderedDict[int, bool],
    prepend: bool = False,
    kind: type[RemovableHandle] = RemovableHandle,
) -> RemovableHandle:
    """Put a hook into a dictionary, and its number into others."""
    handle = kind(hooks, *extra)
    hooks[handle.id] = hook
    for one in extra:
        one[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


# ---- hooks of all modules ----


class _CommonHandle(RemovableHandle):
    """The handle of a hook of all modules: calls look for these only while there are some."""

    def remove(self) -> None:
        super().remove()
        _refresh()


def _refresh() -> None:
    _C._set_global_module_hooks(
        bool(_common.forward or _common.forward_pre or _common.backward or _common.backward_pre)
    )


def _add_common(
    hook: Callable[..., Any], hooks: OrderedDict[int, Any], *extra: OrderedDict[int, bool]
) -> RemovableHandle:
    handle = _add(hook, hooks, *extra, kind=_CommonHandle)
    _refresh()
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before ``forward`` of every module.

    Examples
    --------
    >>> import genesis
    >>> hook = lambda module, args: print(type(module).__name__)
    >>> with genesis.nn.modules.module.register_module_forward_pre_hook(hook):
    ...     genesis.nn.Identity()(1)
    Identity
    1
    """
    return _add_common(hook, _common.forward_pre)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after ``forward`` of every module.

    Examples
    --------
    >>> import genesis
    >>> hook = lambda module, args, output: output + 1
    >>> with genesis.nn.modules.module.register_module_forward_hook(hook):
    ...     genesis.nn.Identity()(1)
    2
    """
    extra = [_common.with_kwargs] * with_kwargs + [_common.always_called] * always_call
    return _add_common(hook, _common.forward, *extra)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the gradients of every module are computed."""
    return _add_common(hook, _common.backward_pre)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` behind the gradients of every module."""
    return _add_common(hook, _common.backward)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The same as :func:`register_module_full_backward_hook`."""
    return register_module_full_backward_hook(hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when a module gets a parameter."""
    return _add(hook, parameter_hooks)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when a module gets a buffer."""
    return _add(hook, buffer_hooks)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, child)`` when a module gets a child."""
    return _add(hook, module_hooks)


def registered(hooks: OrderedDict[int, Any], module: Any, name: str, value: Any) -> Any:
    """What is to be registered: a hook may give something else."""
    for hook in hooks.values():
        given = hook(module, name, value)
        if given is not None:
            value = given
    return value


# ---- hooks of one module ----


class Calls:
    """The part of Module that is about calls and their hooks."""

    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: OrderedDict[int, Any]
    _backward_pre_hooks: OrderedDict[int, Any]

    # Calls forward() at once where there are no hooks.
    __call__: Callable[..., Any] = _C._module_call

    def forward(self, *args: Any) -> Any:
        """Compute the output: each module defines what it does when it is called."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each ``forward``; what it gives is the new args.

        With `with_kwargs` it is ``hook(module, args, kwargs)``, and gives None or both. With
        `prepend` it is called before the others.
        """
        extra = [self._forward_pre_hooks_with_kwargs] * bool(with_kwargs)
        return _add(hook, self._forward_pre_hooks, *extra, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each ``forward``; it may give another output.

        With `with_kwargs` it is ``hook(module, args, kwargs, output)``. With `always_call` it is
        also called, with None as output, when ``forward`` has raised an exception.
        """
        extra = [self._forward_hooks_with_kwargs] * bool(with_kwargs)
        extra += [self._forward_hooks_always_called] * bool(always_call)
        return _add(hook, self._forward_hooks, *extra, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before each computation of the module's gradients.

        `grad_output` is a tuple; what the hook gives, if not None, stands for it.
        """
        return _add(hook, self._backward_pre_hooks, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the module's gradients are there.

        Both are tuples, of the inputs by place and of the outputs, with None for what has no
        gradient. What the hook gives, if not None, stands for `grad_input`.
        """
        return _add(hook, self._backward_hooks, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The same as :meth:`register_full_backward_hook`."""
        return self.register_full_backward_hook(hook)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``forward`` of a module that has hooks, or shares some with all modules."""
        called: set[int] = set()
        result = None
        try:
            args, kwargs = self._prepared(args, kwargs)
            backward = None
            pre = [*_common.backward_pre.values(), *self._backward_pre_hooks.values()]
            post = [*_common.backward.values(), *self._backward_hooks.values()]
            if pre or post:
                backward = BackwardHooks(self, pre, post)
                args = backward.watch_inputs(args)
            result = self.forward(*args, **kwargs)
            for number, hook in [*_common.forward.items(), *self._forward_hooks.items()]:
                called.add(number)
                given = self._after(number, hook, args, kwargs, result)
                result = result if given is None else given
            return result if backward is None else backward.watch_outputs(result)
        except Exception:
            self._call_always(called, args, kwargs, result)
            raise

    def _prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, as the hooks before ``forward`` give them."""
        for number, hook in [*_common.forward_pre.items(), *self._forward_pre_hooks.items()]:
            if number in self._forward_pre_hooks_with_kwargs:
                given = hook(self, args, kwargs)
                if given is None:
                    continue
                if not isinstance(given, tuple) or len(given) != 2:
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {given}."
                    )
                args, kwargs = given
            else:
                given = hook(self, args)
                if given is not None:
                    args = given if isinstance(given, tuple) else (given,)
        return args, kwargs

    def _after(
        self,
        number: int,
        hook: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> Any:
        if number in self._forward_hooks_with_kwargs or number in _common.with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _call_always(
        self, called: set[int], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """After an exception: the hooks that are always called, and were not yet."""
        always = {**_common.always_called, **self._forward_hooks_always_called}
        for number, hook in [*_common.forward.items(), *self._forward_hooks.items()]:
            if number not in always or number in called:
                continue
            try:
                given = self._after(number, hook, args, kwargs, result)
                result = result if given is None else given
            except Exception as error:
                import warnings

                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=3,
                )
