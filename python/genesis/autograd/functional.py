"""Derivatives of functions: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import enable_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Tensors = _C.Tensor | Sequence[_C.Tensor]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(tensors: Any, what: str) -> tuple[bool, tuple[_C.Tensor, ...]]:
    """Whether there are several, and the tensors."""
    several = not isinstance(tensors, _C.Tensor)
    items = tuple(tensors) if several else (tensors,)
    for one in items:
        if not isinstance(one, _C.Tensor):
            raise TypeError(f"{what} must be tensors, not {type(one).__name__}")
    return several, items


def _shown(several: bool, items: Sequence[Any]) -> Any:
    return tuple(items) if several else items[0]


def _call(func: Callable[..., Any], inputs: Any, create_graph: bool) -> tuple[Any, ...]:
    """Whether there are several inputs, the inputs, whether several outputs, the outputs."""
    several, items = _tuple(inputs, "inputs")
    if create_graph:  # views of the inputs, so that others can be differentiated through them
        own = tuple(
            one.view_as(one) if one.requires_grad else one.detach().requires_grad_()
            for one in items
        )
    else:
        own = tuple(one.detach().requires_grad_() for one in items)
    several_outputs, outputs = _tuple(func(*own), "outputs")
    return several, own, several_outputs, outputs


def _grad(
    outputs: tuple[_C.Tensor, ...],
    inputs: tuple[_C.Tensor, ...],
    given: Any,
    create_graph: bool,
    strict: bool,
) -> tuple[_C.Tensor, ...]:
    """The gradients, zeros where there are none; with `strict` that is an error."""
    pairs = [(one, g) for one, g in zip(outputs, given, strict=True) if one.requires_grad]
    found: tuple[Any, ...] = (None,) * len(inputs)
    if pairs:
        roots, seeds = zip(*pairs, strict=True)
        found = _C._backward(roots, seeds, inputs, True, create_graph, True)
    if strict and any(one is None for one in found):
        raise RuntimeError("an output does not depend on an input, and strict=True was asked for")
    return tuple(_C.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True))


def _finish(create_graph: bool, tensors: Sequence[_C.Tensor]) -> tuple[_C.Tensor, ...]:
    return tuple(tensors) if create_graph else tuple(one.detach() for one in tensors)


def _vectors(v: Any, likes: tuple[_C.Tensor, ...], what: str) -> tuple[_C.Tensor, ...]:
    if v is None:
        if len(likes) != 1 or likes[0].numel() != 1:
            raise RuntimeError(f"v may be left out only for one {what} of one element")
        return (_C.ones_like(likes[0].detach()),)
    items = _tuple(v, "v")[1]
    shapes = [one.shape for one in items]
    if shapes != [one.shape for one in likes]:
        raise RuntimeError(
            f"v has the shapes {shapes}, and the {what}s {[one.shape for one in likes]}"
        )
    return items


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The results of a function, and a vector times its Jacobian.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0])
    >>> genesis.autograd.functional.vjp(lambda x: x * x, x, genesis.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        several, own, several_outputs, outputs = _call(func, inputs, create_graph)
        found = _grad(outputs, own, _vectors(v, outputs, "output"), create_graph, strict)
    return (
        _shown(several_outputs, _finish(create_graph, outputs)),
        _shown(several, _finish(create_graph, found)),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The results of a function, and its Jacobian times a vector: the gradient of a gradient.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0])
    >>> genesis.autograd.functional.jvp(lambda x: x * x, x, genesis.tensor([1.0, 0.0]))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    with enable_grad():
        _, own, several, outputs = _call(func, inputs, create_graph)
        direction = _vectors(v, own, "input")
        seeds = tuple(_C.zeros_like(one.detach()).requires_grad_() for one in outputs)
        first = _grad(outputs, own, seeds, True, strict)
        found = _grad(first, seeds, direction, create_graph, False)
    return (
        _shown(several, _finish(create_graph, outputs)),
        _shown(several, _finish(create_graph, found)),
    )


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivative of each element of the results with respect to each of the inputs.

    Examples
    --------
    >>> import genesis
    >>> genesis.autograd.functional.jacobian(lambda x: x * x, genesis.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    with enable_grad():
        several, own, several_outputs, outputs = _call(func, inputs, create_graph)
        rows = [_rows(one, own, create_graph, strict) for one in outputs]
    made = [_shown(several, _finish(create_graph, row)) for row in rows]
    return _shown(several_outputs, made)


def _rows(
    output: _C.Tensor, inputs: tuple[_C.Tensor, ...], create_graph: bool, strict: bool
) -> list[_C.Tensor]:
    """The Jacobian of one output with respect to each input."""
    columns: list[list[_C.Tensor]] = [[] for _ in inputs]
    flat = output.reshape(-1)
    for element in range(output.numel()):
        found = _grad((flat[element],), inputs, (None,), create_graph, strict)
        for column, one in zip(columns, found, strict=True):
            column.append(one)
    return [
        _C.stack(column).reshape((*output.shape, *x.shape))
        if column
        else _C.zeros((*output.shape, *x.shape), dtype=x.dtype, device=x.device)
        for column, x in zip(columns, inputs, strict=True)
    ]


def _scalar(func: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*inputs: _C.Tensor) -> Any:
        output = func(*inputs)
        if not isinstance(output, _C.Tensor) or output.numel() != 1:
            raise RuntimeError("the function must give one tensor of one element")
        return output.reshape(())

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function that gives one number.

    Examples
    --------
    >>> import genesis
    >>> genesis.autograd.functional.hessian(lambda x: (x**3).sum(), genesis.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """

    def first(*own: _C.Tensor) -> Any:
        output = _scalar(func)(*own)
        return _grad((output,), own, (None,), True, strict)

    several, items = _tuple(inputs, "inputs")
    rows = jacobian(first, items, create_graph, strict)
    return rows if several else rows[0][0]


def vhp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The result of a function that gives one number, and a vector times its Hessian.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0])
    >>> genesis.autograd.functional.vhp(lambda x: (x**3).sum(), x, genesis.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, own, _, outputs = _call(_scalar(func), inputs, create_graph)
        direction = _vectors(v, own, "input")
        first = _grad(outputs, own, (None,), True, strict)
        found = _grad(first, own, direction, create_graph, strict)
    return _finish(create_graph, outputs)[0], _shown(several, _finish(create_graph, found))


def hvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The result of a function that gives one number, and its Hessian times a vector.

    The Hessian is symmetric, so this is what :func:`vhp` gives.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0])
    >>> genesis.autograd.functional.hvp(lambda x: (x**3).sum(), x, genesis.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return vhp(func, inputs, v, create_graph, strict)
