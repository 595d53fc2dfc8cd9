"""Gradients: backward() and grad(), functions with gradients of their own, and checks.

A tensor with ``requires_grad=True`` is a leaf: operations with it are recorded, and
``Tensor.backward()`` adds the gradients of a result to ``grad`` of its leaves.
"""

from __future__ import annotations

from genesis import _C
from genesis._C import is_grad_enabled
from genesis._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from genesis.autograd import functional, graph
from genesis.autograd._anomaly import detect_anomaly, set_detect_anomaly
from genesis.autograd._gradcheck import GradcheckError, gradcheck, gradgradcheck
from genesis.autograd.function import Function
from genesis.autograd.graph import Saved, plot, saved
from genesis.autograd.variable import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "Function",
    "GradcheckError",
    "Saved",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "plot",
    "saved",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def _tuple(tensors: Any) -> tuple[Any, ...]:
    return (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)


def _gradients(outputs: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
    return (None,) * len(outputs) if given is None else _tuple(given)


def backward(
    tensors: _C.Tensor | Sequence[_C.Tensor],
    grad_tensors: _C.Tensor | Sequence[_C.Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: _C.Tensor | Sequence[_C.Tensor] | None = None,
) -> None:
    """Add the gradients of tensors to ``grad`` of all leaves that they depend on.

    Parameters
    ----------
    tensors : Tensor or sequence of tensors
        Where it begins.
    grad_tensors : Tensor or sequence of tensors, optional
        Their own gradients; None is 1, for a tensor of one element.
    retain_graph : bool, optional
        Whether the graph can be used again; None: what `create_graph` is.
    create_graph : bool
        Whether the gradients can be differentiated themselves.
    inputs : Tensor or sequence of tensors, optional
        These alone get gradients; None: all leaves.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> genesis.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    outputs = _tuple(tensors)
    given = _gradients(outputs, grad_tensors)
    wanted = () if inputs is None else _tuple(inputs)
    if inputs is not None and not wanted:
        raise RuntimeError("backward: inputs must not be empty")
    _C._backward(outputs, given, wanted, retain_graph, create_graph, None)


def grad(
    outputs: _C.Tensor | Sequence[_C.Tensor],
    inputs: _C.Tensor | Sequence[_C.Tensor],
    grad_outputs: _C.Tensor | Sequence[_C.Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of outputs with respect to inputs; ``grad`` of leaves stays as it is.

    Parameters are those of :func:`backward`; with `allow_unused` the gradient of an input that no
    output depends on is None, with `materialize_grads` it is zeros, and else it is a RuntimeError.
    `only_inputs` must be True, and `is_grads_batched` False.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([2.0], requires_grad=True)
    >>> (first,) = genesis.autograd.grad(x**3, x, create_graph=True)
    >>> first, genesis.autograd.grad(first, x)
    (tensor([12.], grad_fn=<MulBackward0>), (tensor([12.]),))
    """
    roots, asked = _tuple(outputs), _tuple(inputs)
    if not asked:
        raise ValueError("grad: there must be an input")
    if not only_inputs or is_grads_batched:
        raise NotImplementedError("grad: only_inputs must be True, and is_grads_batched False")
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads needs inputs that may be unused: allow_unused")
    given = _gradients(roots, grad_outputs)
    is_unused = bool(allow_unused) or materialize_grads
    found = _C._backward(roots, given, asked, retain_graph, create_graph, is_unused)
    if not materialize_grads:
        return found
    pairs = zip(found, asked, strict=True)
    return tuple(_C.zeros_like(one) if grad is None else grad for grad, one in pairs)
