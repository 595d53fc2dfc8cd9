"""Weights over their largest singular value, by a hook before ``forward``."""

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

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """A hook before ``forward`` that divides a weight by its largest singular value.

    The weight of the training is ``name_orig``; ``name_u`` and ``name_v`` are the estimate of the
    vectors of that value, which goes on in each call in training.
    """

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def reshape_weight_to_matrix(self, weight: _C.Tensor) -> _C.Tensor:
        """The weight with a row for each output."""
        return weight.movedim(self.dim, 0).flatten(1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> _C.Tensor:
        """The weight that is used."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.T.mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # gradients need these, whatever comes later
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again, with the value that is used."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, args: Any) -> None:
        """Before ``forward``."""
        setattr(module, self.name, self.compute_weight(module, module.training))


def _find(module: Any, name: str) -> int | None:
    """The number of a hook for a weight."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return int(number)
    return None


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value, which power iterations estimate.

    ``parametrizations.spectral_norm`` does the same as a parametrization.

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
    >>> layer.weight_u.shape, layer.weight_orig.shape
    ((40,), (40, 20))
    """
    if _find(module, name) is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if isinstance(module, _Transposed) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with no_grad():
        rows, columns = hook.reshape_weight_to_matrix(weight).shape
        u = F.normalize(weight.new_empty((rows,)).normal_(), dim=0, eps=eps)
        v = F.normalize(weight.new_empty((columns,)).normal_(), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make a weight a parameter again.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.spectral_norm(genesis.nn.Linear(2, 3))
    >>> list(genesis.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    number = _find(module, name)
    if number is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    module._forward_pre_hooks[number].remove(module)
    del module._forward_pre_hooks[number]
    return module
