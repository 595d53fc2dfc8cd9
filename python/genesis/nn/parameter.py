"""Parameters and buffers: tensors that a module knows as its own."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Buffer", "Parameter"]


def _data_of(data: _C.Tensor | None, name: str) -> _C.Tensor:
    if data is None:
        return _C._empty((0,), _C.get_default_dtype(), None)
    if not isinstance(data, _C.Tensor):
        raise TypeError(f"{name}: data is a Tensor or None, not {type(data).__name__}")
    return data


class Parameter(_C.Tensor):
    """A tensor that becomes a parameter of each module that it is assigned to.

    Results of operations with it are plain tensors.

    Parameters
    ----------
    data : Tensor, optional
        Its elements, which are shared; None: there are none.
    requires_grad : bool
        Whether it is trained. ``no_grad()`` does not change that.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Parameter(genesis.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: _C.Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Make a parameter of a tensor."""
        return _C._make_subclass(cls, _data_of(data, cls.__name__), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _restore, (type(self), self.data, self.requires_grad, dict(self.__dict__))


class Buffer(_C.Tensor):
    """A tensor that becomes a buffer of each module that it is assigned to.

    Parameters
    ----------
    data : Tensor, optional
        Its elements, which are shared; None: there are none.
    persistent : bool
        Whether ``state_dict()`` has it.

    Examples
    --------
    >>> import genesis
    >>> module = genesis.nn.Module()
    >>> module.mean = genesis.nn.Buffer(genesis.zeros(2))
    >>> module.state_dict()
    OrderedDict([('mean', tensor([0., 0.]))])
    """

    persistent: bool

    def __new__(cls, data: _C.Tensor | None = None, *, persistent: bool = True) -> Buffer:
        """Make a buffer of a tensor."""
        data = _data_of(data, cls.__name__)
        made = _C._make_subclass(cls, data, data.requires_grad)
        made.persistent = persistent
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _restore, (type(self), self.data, self.requires_grad, dict(self.__dict__))


def _restore(
    cls: type[Any], data: _C.Tensor, requires_grad: bool, attributes: dict[str, Any]
) -> Any:
    """Make a pickled parameter or buffer again."""
    made = _C._make_subclass(cls, data, requires_grad)
    made.__dict__.update(attributes)
    return made
