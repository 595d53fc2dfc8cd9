"""Parameters that are computed of others each time that they are used."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn.modules.container import ModuleDict, ModuleList
from genesis.nn.modules.module import Module
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]


class _Cache:
    """Values while cached() is on, by the module and the name."""

    depth = 0
    values: dict[tuple[int, str], _C.Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once in this block.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.parametrizations.weight_norm(genesis.nn.Linear(2, 3))
    >>> with genesis.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if _Cache.depth == 0:
            _Cache.values = {}


def _register(module: Module, name: str, tensor: _C.Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_like(made: Any, like: _C.Tensor, what: str) -> None:
    """A parametrization that is not `unsafe` gives a tensor as the one that it stands for."""
    if not isinstance(made, _C.Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(made).__name__}.")
    for part in ("dtype", "shape"):
        if getattr(made, part) != getattr(like, part):
            raise ValueError(
                f"{what} may not change the {part} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {part}: {getattr(like, part)}\n"
                f"parametrized {part}: {getattr(made, part)}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of a tensor, and what it is computed of.

    That is ``original``, or ``original0``, ``original1`` and so on where the first one takes
    several tensors.

    Parameters
    ----------
    modules : sequence of Module
        The parametrizations, the first one first.
    original : Tensor
        The tensor.
    unsafe : bool
        Whether they may give a tensor of another dtype or shape.
    """

    def __init__(
        self, modules: Sequence[Module], original: _C.Tensor, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        like = original.detach()
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        self.is_tensor = isinstance(new, _C.Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if new is not original:
                original.data = new.detach()
            _register(self, "original", original)
        else:
            for place, one in enumerate(new):
                made = one.detach().clone() if one is original else one.detach()
                if isinstance(original, Parameter):
                    made = Parameter(made, original.requires_grad)
                _register(self, f"original{place}", made)
        if not unsafe:
            _check_like(self(), like, "Registering a parametrization")

    def _originals(self) -> list[_C.Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{place}") for place in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that a value is computed of them."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            originals = self._originals()
            if not isinstance(values, Sequence) or len(values) != len(originals):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}."
                )
            for one, made in zip(originals, values, strict=True):
                if made.dtype != one.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {made.dtype} while "
                        f"`original` has dtype {one.dtype}"
                    )
                one.data = made.detach()

    def forward(self) -> Any:
        """Compute the tensor."""
        first, *others = self
        made = first(*self._originals())
        for one in others:
            made = one(made)
        return made


# ---- classes of parametrized modules ----


def _copied(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) not in memo:
        made = memo[id(self)] = self.__new__(type(self))
        made.__dict__.update(deepcopy(self.__dict__, memo))
    return memo[id(self)]


def _refuse_pickle(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()"
    )


def _inject_class(module: Any) -> None:
    """Give a module a class of its own, in which properties can be put."""
    cls = type(module)
    own: dict[str, Any] = {"__getstate__": _refuse_pickle}
    if not hasattr(cls, "__deepcopy__"):
        own["__deepcopy__"] = _copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), own)


def _inject_property(module: Any, name: str) -> None:
    def get(self: Any) -> Any:
        if _Cache.depth == 0:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _Cache.values:
            _Cache.values[key] = self.parametrizations[name]()
        return _Cache.values[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


# ---- what is public ----


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or its tensor of a name, has parametrizations."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def type_before_parametrizations(module: Module) -> Any:
    """The class of a module, as it was without parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Compute a tensor of a module by another module, from an original that is trained instead.

    Parameters
    ----------
    module : Module
        Whose tensor it is; the same is given back.
    tensor_name : str
        A parameter, a buffer, or a tensor that has parametrizations.
    parametrization : Module
        Computes it. With a method ``right_inverse`` the tensor can be assigned.
    unsafe : bool
        Whether it may give a tensor of another dtype or shape.

    Examples
    --------
    >>> import genesis
    >>> class Symmetric(genesis.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = genesis.nn.Linear(3, 3)
    >>> layer = genesis.nn.utils.parametrize.register_parametrization(
    ...     layer, "weight", Symmetric()
    ... )
    >>> (layer.weight == layer.weight.T).all().item(), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            value = getattr(module, tensor_name)
            _check_like(parametrization(value), value, "Registering a parametrization")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    module.parametrizations[tensor_name] = made
    return module


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a tensor a parameter or a buffer again.

    Parameters
    ----------
    module : Module
        Whose tensor it is; the same is given back.
    tensor_name : str
        Its name.
    leave_parametrized : bool
        Whether it has the value that was computed, else that of the original.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.parametrizations.weight_norm(genesis.nn.Linear(2, 3))
    >>> layer = genesis.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> list(layer.state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if not found.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    value = getattr(module, tensor_name) if leave_parametrized else None
    if found.is_tensor:
        tensor = found.original
        if value is not None:
            tensor.data = value.detach()
    else:
        tensor = Parameter(value.detach()) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, tensor)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module
