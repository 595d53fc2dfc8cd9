"""Weights over their largest singular value, computed by a hook: the older spectral norm."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.conv import _Transposed
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from genesis.nn.modules.module import Module

    M = TypeVar("M", bound=Module)

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """A hook before ``forward`` that divides a weight by its largest singular value."""

    def __init__(self, name: str, n_power_iterations: int, eps: float, dim: int) -> None:
        self.name, self.eps, self.dim = name, eps, dim
        self.n_power_iterations = n_power_iterations

    def matrix(self, weight: _C.Tensor) -> _C.Tensor:
        """The weight with a row for each output."""
        return weight.movedim(self.dim, 0).flatten(1)

    def compute_weight(self, module: Any, is_estimated: bool) -> _C.Tensor:
        """The weight, after steps of the estimate of its singular vectors if that is asked for."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.matrix(weight)
        if is_estimated:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.T.mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # gradients need these, whatever comes later
        return weight / (u * matrix.mv(v)).sum()

    def __call__(self, module: Any, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value; ``name_orig`` is trained.

    Parameters
    ----------
    module : Module
        Whose weight it is; the same is given back.
    name : str
        The weight.
    n_power_iterations : int
        Steps of the estimate in each call in training.
    eps : float
        The least norm that is divided by.
    dim : int, optional
        The dimension of the outputs; None: 1 for transposed convolutions, else 0.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.spectral_norm(genesis.nn.Linear(20, 40))
    >>> layer.weight_orig.shape, layer.weight_u.shape
    ((40, 20), (40,))
    """
    if n_power_iterations <= 0:
        raise ValueError(
            "Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={n_power_iterations}"
        )
    for one in module._forward_pre_hooks.values():
        if isinstance(one, SpectralNorm) and one.name == name:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
    weight = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    if dim is None:
        dim = 1 if isinstance(module, _Transposed) else 0
    hook = SpectralNorm(name, n_power_iterations, eps, dim)
    with no_grad():
        matrix = hook.matrix(weight)
        first = [
            F.normalize(
                _C.empty(size, dtype=weight.dtype, device=weight.device).normal_(), dim=0, eps=eps
            )
            for size in matrix.shape
        ]
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", first[0])
    module.register_buffer(name + "_v", first[1])
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make a weight a parameter again: what it was divided to.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.spectral_norm(genesis.nn.Linear(2, 3))
    >>> list(genesis.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with no_grad():
                weight = hook.compute_weight(module, False)
            delattr(module, name)
            for end in ("_u", "_v", "_orig"):
                delattr(module, name + end)
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
