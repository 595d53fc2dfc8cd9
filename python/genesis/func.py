"""Functions of functions: modules called with other parameters, and gradients as functions."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import enable_grad
from genesis.autograd import functional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from genesis.nn import Module

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacrev"]


# ---- modules with other parameters ----


def _places(module: Module, tie_weights: bool) -> dict[str, list[tuple[dict[str, Any], str]]]:
    """For each name where its tensor is: the dictionary of a module, and the key there.

    With `tie_weights` a tensor that has several names is at all of these places.
    """
    found: dict[str, list[tuple[dict[str, Any], str]]] = {}
    same: dict[int, list[tuple[dict[str, Any], str]]] = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for part in (owner._parameters, owner._buffers):
            for key, tensor in part.items():
                name = f"{prefix}.{key}" if prefix else key
                shared = same.setdefault(id(tensor), []) if tensor is not None else []
                shared.append((part, key))
                found[name] = shared if tie_weights else [(part, key)]
    return found


def _merged(given: Any) -> dict[str, Any]:
    if not isinstance(given, (tuple, list)):
        return dict(given)
    merged: dict[str, Any] = {}
    for one in given:
        repeated = merged.keys() & one.keys()
        if repeated:
            raise ValueError(f"functional_call: {sorted(repeated)[0]!r} is given more than once")
        merged.update(one)
    return merged


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Parameters
    ----------
    module : Module
        Which is called; afterwards it has its own tensors again.
    parameter_and_buffer_dicts : dict, or sequence of dicts
        Tensors by the names of ``named_parameters()`` and ``named_buffers()``.
    args : optional
        The argument, or a tuple of arguments.
    kwargs : dict, optional
        Arguments by name.
    tie_weights : bool
        Whether a tensor that has several names is replaced at all of them.
    strict : bool
        Whether every parameter and buffer must be given.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.Linear(2, 1, bias=False)
    >>> weight = genesis.tensor([[1.0, 2.0]], requires_grad=True)
    >>> y = genesis.func.functional_call(layer, {"weight": weight}, genesis.tensor([3.0, 4.0]))
    >>> genesis.autograd.grad(y, weight)
    (tensor([[3., 4.]]),)
    """
    given = _merged(parameter_and_buffer_dicts)
    places = _places(module, tie_weights)
    taken: dict[tuple[int, str], str] = {}
    for name in given:
        for part, key in places.get(name, ()):
            other = taken.setdefault((id(part), key), name)
            if given[other] is not given[name]:
                raise ValueError(
                    f"functional_call: {other!r} and {name!r} are one tensor of the module, and "
                    "two different ones are given: see tie_weights"
                )
    if strict:
        missing = [
            name
            for name, where in places.items()
            if any((id(part), key) not in taken for part, key in where)
        ]
        unknown = [name for name in given if name not in places]
        if missing or unknown:
            raise RuntimeError(
                f"functional_call: with strict=True all names are given: missing are {missing}, "
                f"unknown {unknown}"
            )
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    before = []
    try:
        for name, tensor in given.items():
            if not isinstance(tensor, _C.Tensor) and tensor is not None:
                raise TypeError(
                    f"functional_call: {name!r} is a Tensor, not {type(tensor).__name__}"
                )
            for part, key in places.get(name, ()):
                before.append((part, key, part[key]))
                part[key] = tensor
        return module(*arguments, **(kwargs or {}))
    finally:
        for part, key, tensor in reversed(before):
            part[key] = tensor


# ---- gradients ----


def _chosen(argnums: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for one in numbers:
        if not -len(args) <= one < len(args):
            raise RuntimeError(f"argnums: there is no argument {one}, but {len(args)}")
    return tuple(one % len(args) for one in numbers)


def _leaves(tree: Any, made: list[_C.Tensor]) -> Any:
    """The same structure with tensors of its own, which are put in a list."""
    if isinstance(tree, _C.Tensor):
        made.append(tree.view_as(tree) if tree.requires_grad else tree.detach().requires_grad_())
        return made[-1]
    if isinstance(tree, dict):
        return type(tree)((key, _leaves(one, made)) for key, one in tree.items())
    if isinstance(tree, (list, tuple)):
        return type(tree)([_leaves(one, made) for one in tree])
    return tree


def _with(tree: Any, tensors: Any) -> Any:
    """The structure with other tensors, from an iterator."""
    if isinstance(tree, _C.Tensor):
        return next(tensors)
    if isinstance(tree, dict):
        return type(tree)((key, _with(one, tensors)) for key, one in tree.items())
    if isinstance(tree, (list, tuple)):
        return type(tree)([_with(one, tensors) for one in tree])
    return tree


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that gives gradients, and what `func` gives.

    Parameters
    ----------
    func : callable
        Gives a tensor of one element; with `has_aux` that and something else.
    argnums : int or tuple of int
        Which arguments: tensors, or lists, tuples and dictionaries of them.
    has_aux : bool
        Whether `func` gives something else.

    Returns
    -------
    callable
        Its gradients can be differentiated again where an argument needs gradients.

    Examples
    --------
    >>> import genesis
    >>> genesis.func.grad_and_value(lambda x: (x * x).sum())(genesis.tensor([1.0, 3.0]))
    (tensor([2., 6.]), tensor(10.))
    """

    def gradient(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        is_outer = _C.is_grad_enabled() and _needs_gradients(args, kwargs)
        with enable_grad():
            leaves: list[_C.Tensor] = []
            own = list(args)
            for one in numbers:
                own[one] = _leaves(args[one], leaves)
            result = func(*own, **kwargs)
            value, aux = result if has_aux else (result, None)
            if not isinstance(value, _C.Tensor) or value.numel() != 1:
                raise RuntimeError("grad: the function gives a tensor of one element")
            if value.requires_grad:
                ones = _C.ones_like(value)
                found = _C._backward((value,), (ones,), tuple(leaves), True, is_outer, True)
            else:
                found = (None,) * len(leaves)
        made = iter(
            one if one is not None else _C.zeros_like(leaf)
            for one, leaf in zip(found, leaves, strict=True)
        )
        items = [_with(args[one], made) for one in numbers]
        if not is_outer:
            value = value.detach()
        gradients = items[0] if isinstance(argnums, int) else tuple(items)
        return (gradients, (value, aux)) if has_aux else (gradients, value)

    return gradient


def _needs_gradients(*trees: Any) -> bool:
    for tree in trees:
        if isinstance(tree, _C.Tensor):
            if tree.requires_grad:
                return True
        elif isinstance(tree, dict):
            if _needs_gradients(*tree.values()):
                return True
        elif isinstance(tree, (list, tuple)) and _needs_gradients(*tree):
            return True
    return False


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that gives gradients: see :func:`grad_and_value`.

    Examples
    --------
    >>> import genesis
    >>> genesis.func.grad(genesis.func.grad(lambda x: x**3))(genesis.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def _of_one(
    derivative: Callable[..., Any], func: Callable[..., Any], argnums: int
) -> Callable[..., Any]:
    def derived(*args: Any, **kwargs: Any) -> Any:
        (number,) = _chosen(argnums, args)

        def called(x: _C.Tensor) -> Any:
            return func(*args[:number], x, *args[number + 1 :], **kwargs)

        return derivative(called, args[number], create_graph=args[number].requires_grad)

    return derived


def jacrev(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """Make a function that gives the Jacobian with respect to one argument.

    Examples
    --------
    >>> import genesis
    >>> genesis.func.jacrev(lambda x: x**2)(genesis.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _of_one(functional.jacobian, func, argnums)


def hessian(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """Make a function that gives the Hessian with respect to one argument.

    Examples
    --------
    >>> import genesis
    >>> genesis.func.hessian(lambda x: (x**3).sum())(genesis.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return _of_one(functional.hessian, func, argnums)
