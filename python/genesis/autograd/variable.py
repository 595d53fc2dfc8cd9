"""Variable: what older programs write around tensors."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Variable"]


class _VariableClass(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.Tensor)


class Variable(metaclass=_VariableClass):
    """Give a tensor back without its history; every tensor is a Variable.

    Parameters
    ----------
    data : Tensor
        The elements, which are shared.
    requires_grad : bool
        Whether operations with it are recorded.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.autograd.Variable(genesis.ones(2), requires_grad=True)
    >>> x, isinstance(x, genesis.Tensor), isinstance(x, genesis.autograd.Variable)
    (tensor([1., 1.], requires_grad=True), True, True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False) -> Any:
        """Make a tensor of a tensor."""
        if data is None:
            data = _C._empty((0,), None, None)
        if not isinstance(data, _C.Tensor):
            raise TypeError(f"Variable: data is a Tensor, not {type(data).__name__}")
        made = data.detach()
        return made.requires_grad_() if requires_grad else made
