"""Parametrizations that are often used: weight norm and spectral norm."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.conv import _Transposed
from genesis.nn.modules.module import Module
from genesis.nn.utils.parametrize import register_parametrization
from genesis.nn.utils.weight_norm import norm_except

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """A weight of its lengths and its direction."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, length: _C.Tensor, direction: _C.Tensor) -> _C.Tensor:
        """The weight."""
        return direction * (length / self._norm(direction))

    def right_inverse(self, weight: _C.Tensor) -> tuple[_C.Tensor, _C.Tensor]:
        """Lengths and direction."""
        return self._norm(weight), weight

    def _norm(self, weight: _C.Tensor) -> _C.Tensor:
        return norm_except(weight, None if self.dim == -1 else self.dim)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the length and the direction of a weight.

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
    >>> layer = genesis.nn.utils.parametrizations.weight_norm(genesis.nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape
    (40, 1)
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        """States of nn.utils.weight_norm() can be loaded."""
        names = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(one in state_dict for one in names):
            for place, one in enumerate(names):
                key = f"{prefix}parametrizations.{name}.original{place}"
                state_dict[key] = state_dict.pop(one)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value, which power iterations estimate."""

    def __init__(self, weight: _C.Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, "
                f"{weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % weight.ndim, eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            with no_grad():
                matrix = self._matrix(weight)
                for buffer, size in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                    first = _C.empty(size, dtype=matrix.dtype, device=matrix.device).normal_()
                    self.register_buffer(buffer, F.normalize(first, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: _C.Tensor) -> _C.Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: _C.Tensor, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.T.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: _C.Tensor) -> _C.Tensor:
        """The weight that is used."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # gradients need these, whatever comes later
        return weight / (u * matrix.mv(v)).sum()

    def right_inverse(self, value: _C.Tensor) -> _C.Tensor:
        """Assigned values are divided, too, when they are used."""
        return value


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value.

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
    >>> layer = genesis.nn.utils.parametrizations.spectral_norm(genesis.nn.Linear(20, 40))
    >>> layer.parametrizations.weight[0]._u.shape
    (40,)
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, _Transposed) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)
