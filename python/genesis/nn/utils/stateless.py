"""Modules called with other tensors in the places of their own."""

from __future__ import annotations

from contextlib import contextmanager

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from genesis import Tensor
    from genesis.nn.modules.module import Module

__all__ = ["functional_call"]


def _place(module: Any, path: str) -> tuple[dict[str, Any], str]:
    """The dict in which a tensor of a name stands, and its key there."""
    *names, last = path.split(".")
    for name in names:
        module = getattr(module, name)
    for tensors in (module._parameters, module._buffers):
        if last in tensors:
            return tensors, last
    return module.__dict__, last


def _named(module: Module) -> dict[str, Any]:
    made: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    made.update(module.named_buffers(remove_duplicate=False))
    return made


def _with_tied(module: Module, given: dict[str, Any]) -> dict[str, Any]:
    """What was given, by all names of each tensor."""
    tied: dict[int, list[str]] = {}
    for name, tensor in _named(module).items():
        tied.setdefault(id(tensor), []).append(name)
    made = dict(given)
    for names in tied.values():
        values = [given[name] for name in names if name in given]
        if len({id(value) for value in values}) > 1:
            raise ValueError(
                f"functional_call: {sorted(names)} are tied, and have different values; "
                "tie_weights=False treats them as different tensors"
            )
        if values:
            made.update(dict.fromkeys(names, values[0]))
    return made


def _names_check(module: Module, given: dict[str, Any]) -> None:
    own = _named(module)
    unexpected = [repr(name) for name in given if name not in own]
    missing = [repr(name) for name in own if name not in given]
    words = [f"Unexpected key(s): {', '.join(unexpected)}."] if unexpected else []
    words += [f"Missing key(s): {', '.join(missing)}."] if missing else []
    if words:
        name = type(module).__name__
        raise RuntimeError("\n\t".join([f"Error(s) in reparametrizing for {name}:", *words]))


_MISSING = object()


@contextmanager
def _replaced(module: Module, given: dict[str, Any], result: dict[str, Any]) -> Iterator[None]:
    """Put tensors in; what stands there at the end goes into the result."""
    before: list[tuple[str, dict[str, Any], str, Any]] = []
    try:
        for name, tensor in given.items():
            place, key = _place(module, name)
            before.append((name, place, key, place.get(key, _MISSING)))
            place[key] = tensor
        yield
    finally:
        for name, place, key, tensor in reversed(before):
            if name in result:
                result[name] = place[key]
            if tensor is _MISSING:
                del place[key]
            else:
                place[key] = tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | tuple[dict[str, Tensor], ...],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the places of its parameters and buffers.

    Gradients go to the tensors that are given. The module itself stays as it is: a buffer that it
    replaces while it is called is replaced in the dict.

    Parameters
    ----------
    module : Module
        What is called.
    parameter_and_buffer_dicts : dict, or sequence of dict
        Tensors by the names of ``named_parameters()`` and ``named_buffers()``.
    args : tuple, or another value
        The arguments; what is no tuple is the only one.
    kwargs : dict, optional
        Arguments by name.
    tie_weights : bool
        Whether a tensor that the module has by several names is replaced by all of them.
    strict : bool
        Whether all tensors must be given, and no others.

    Examples
    --------
    >>> import genesis
    >>> from genesis.func import functional_call
    >>> layer = genesis.nn.Linear(1, 1)
    >>> given = {"weight": genesis.tensor([[2.0]]), "bias": genesis.tensor([1.0])}
    >>> functional_call(layer, given, genesis.tensor([3.0]))
    tensor([7.])
    """
    given: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    if isinstance(parameter_and_buffer_dicts, dict):
        given = changed = parameter_and_buffer_dicts
    else:
        for one in parameter_and_buffer_dicts:
            twice = sorted(set(given) & set(one))
            if twice:
                raise ValueError(f"functional_call: {twice[0]!r} is given more than once")
            given.update(one)
    for name, tensor in given.items():
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(f"functional_call: {name!r} is a {type(tensor).__name__}, not a tensor")
    given = _with_tied(module, given) if tie_weights else given
    if strict:
        _names_check(module, given)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, changed):
        return module(*arguments, **(kwargs or {}))
