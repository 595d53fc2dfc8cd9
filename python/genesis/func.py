"""Functions of functions: modules called with other parameters, and gradients as functions."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import enable_grad
from genesis.autograd import functional
from genesis.nn.utils.stateless import functional_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacrev"]


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
