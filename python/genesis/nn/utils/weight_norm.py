"""Weights as lengths and directions."""

from __future__ import annotations

from genesis import _C
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from genesis.nn.modules.module import Module

    M = TypeVar("M", bound=Module)

__all__ = ["remove_weight_norm", "weight_norm"]


def norm_except(weight: _C.Tensor, dim: int | None) -> _C.Tensor:
    """The norms of a tensor's parts, by their place in one dimension; None: of all of it."""
    if dim is None:
        return weight.norm()
    others = [one for one in range(weight.ndim) if one != dim % weight.ndim]
    return weight.norm(2, dim=others, keepdim=True) if others else weight.abs()


class WeightNorm:
    """A hook before ``forward`` that computes a weight of its length and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Any) -> _C.Tensor:
        """The weight."""
        length = getattr(module, self.name + "_g")
        direction = getattr(module, self.name + "_v")
        return direction * (length / norm_except(direction, self.dim))

    def __call__(self, module: Any, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train the length and the direction of a weight, by ``name_g`` and ``name_v``.

    Parameters
    ----------
    module : Module
        Whose weight it is; the same is given back.
    name : str
        The weight.
    dim : int, optional
        There is a length for each place in this dimension; None: one for all.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.weight_norm(genesis.nn.Linear(20, 40))
    >>> layer.weight_g.shape, layer.weight_v.shape
    ((40, 1), (40, 20))
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
    weight = module._parameters[name]
    del module._parameters[name]
    length = norm_except(weight.detach(), None if dim == -1 else dim)
    module.register_parameter(name + "_g", Parameter(length))
    module.register_parameter(name + "_v", Parameter(weight.data))
    hook = WeightNorm(name, None if dim == -1 else dim)
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make a weight a parameter again.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.weight_norm(genesis.nn.Linear(2, 3))
    >>> list(genesis.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module)
            delattr(module, name)
            del module._parameters[name + "_g"], module._parameters[name + "_v"]
            setattr(module, name, Parameter(weight.detach()))
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
