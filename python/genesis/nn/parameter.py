"""Parameters and buffers: tensors that a module knows as its own."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


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

    def __copy__(self) -> Parameter:
        return _restore(type(self), self, self.requires_grad, self.__dict__)

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

    def __copy__(self) -> Buffer:
        return _restore(type(self), self, self.requires_grad, self.__dict__)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _restore, (type(self), self.data, self.requires_grad, dict(self.__dict__))


# ---- what has no shape yet ----


class _Uninitialized(_C.Tensor):
    """What parameters and buffers of lazy modules have in common before their shape is known."""

    cls_to_become: Any

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a parameter or a buffer of a shape, whose elements are not set yet."""
        needs_gradient = self.requires_grad
        self.requires_grad_(False)
        self.data = _C.empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.__class__ = self.cls_to_become
        self.requires_grad_(needs_gradient)

    @property
    def shape(self) -> Any:
        """An error: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter of a lazy module, whose shape is not known before the first call.

    Parameters
    ----------
    requires_grad : bool
        Whether it will be trained.
    device, dtype : optional
        Of the parameter.

    Examples
    --------
    >>> import genesis
    >>> weight = genesis.nn.parameter.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape
    (2, 3)
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        """Make one without elements."""
        return _C._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer of a lazy module, whose shape is not known before the first call.

    Parameters
    ----------
    requires_grad : bool
        Whether it needs a gradient.
    device, dtype : optional
        Of the buffer.
    persistent : bool
        Whether ``state_dict()`` has it.
    """

    cls_to_become = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        """Make one without elements."""
        made = _C._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            parts = self.requires_grad, self.device, self.dtype, self.persistent
            memo[id(self)] = type(self)(*parts)
        return memo[id(self)]


def is_lazy(param: Any) -> bool:
    """Whether it is a parameter or a buffer without a shape."""
    return isinstance(param, _Uninitialized)


def _restore(
    cls: type[Any], data: _C.Tensor, requires_grad: bool, attributes: dict[str, Any]
) -> Any:
    """Make a parameter or buffer that was pickled or copied, which shares the elements."""
    made = _C._make_subclass(cls, data, requires_grad)
    made.__dict__.update(attributes)
    return made
