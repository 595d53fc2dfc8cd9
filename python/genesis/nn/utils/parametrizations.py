"""Parametrizations that are often used: weight norm and spectral norm."""

from __future__ import annotations

from genesis import _C, linalg
from genesis._grad_mode import no_grad
from genesis._tensor_names import finfo
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.conv import _Transposed
from genesis.nn.modules.module import Module
from genesis.nn.utils.parametrize import register_parametrization
from genesis.nn.utils.weight_norm import norm_except

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


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


def _orthogonalized(matrix: _C.Tensor) -> _C.Tensor:
    """The orthogonal factor of a tall matrix, for which the other one has a positive diagonal."""
    q, r = linalg.qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def _reflected(vectors: _C.Tensor) -> _C.Tensor:
    """The product of Householder reflections, as many columns as there are vectors.

    The vectors are the columns below the diagonal, which itself is 1.
    """
    rows, count = vectors.shape[-2:]
    made = _C.eye(rows, count, dtype=vectors.dtype, device=vectors.device)
    unit = made
    made = made.expand(vectors.shape)
    for i in reversed(range(count)):
        vector = (vectors[..., i] + unit[:, i]).unsqueeze(-1)
        factor = 2.0 / (vector * vector).sum(dim=-2, keepdim=True)
        made = made - vector @ (vector.mT @ made) * factor
    return made


class _Orthogonal(Module):
    """An orthogonal matrix, of a matrix that can be any."""

    base: Any

    def __init__(self, shape: Any, kind: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape, self.kind = shape, kind
        self.has_base = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: _C.Tensor) -> _C.Tensor:
        """The orthogonal matrix."""
        is_wide = x.shape[-2] < x.shape[-1]
        x = x.mT if is_wide else x
        q = self._by_reflections(x) if self.kind == "householder" else self._of_skew(x)
        q = self.base @ q if self.has_base else q
        return q.mT if is_wide else q

    @staticmethod
    def _by_reflections(x: _C.Tensor) -> _C.Tensor:
        signs = x.diagonal(dim1=-2, dim2=-1).detach().trunc()  # 1 and -1, which are not trained
        return _reflected(x.tril(-1)) * signs.unsqueeze(-2)

    def _of_skew(self, x: _C.Tensor) -> _C.Tensor:
        rows, columns = x.shape[-2:]
        x = x.tril()
        if rows != columns:
            x = _C.cat([x, x.new_zeros((*x.shape[:-1], rows - columns))], -1)
        skew = x - x.mT
        if self.kind == "matrix_exp":
            return linalg.matrix_exp(skew)[..., :columns]
        one = _C.eye(rows, dtype=x.dtype, device=x.device)
        return linalg.solve(one - skew / 2, one + skew / 2)[..., :columns]

    @no_grad()
    def right_inverse(self, value: _C.Tensor) -> _C.Tensor:
        """A matrix of which the value is made, or what is orthogonal and nearest to it."""
        if value.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {value.shape}."
            )
        if not self.has_base:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        q = value.mT if value.shape[-2] < value.shape[-1] else value
        rows, columns = q.shape[-2:]
        if rows == columns and self._is_orthogonal(q):
            self.base = q.clone()
        else:
            rest = _C.empty(
                (*q.shape[:-1], rows - columns), dtype=q.dtype, device=q.device
            ).normal_()
            self.base = _orthogonalized(_C.cat([q, rest], -1))
        made = _C.zeros_like(value)
        made.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return made

    @staticmethod
    def _is_orthogonal(q: _C.Tensor) -> bool:
        most = 10.0 * q.shape[-2] * finfo(q.dtype).eps
        one = _C.eye(q.shape[-1], dtype=q.dtype, device=q.device)
        return bool(((q.mT @ q - one).abs() <= most).all())


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Make a weight an orthogonal matrix, or as many of its rows or columns as it has.

    Parameters
    ----------
    module : Module
        Whose weight it is; the same is given back.
    name : str
        The weight.
    orthogonal_map : str, optional
        How it is made: ``"matrix_exp"`` or ``"cayley"`` of a skew-symmetric matrix, or
        ``"householder"``, as a product of reflections. None: the first for square matrices, else
        the last.
    use_trivialization : bool
        Whether it is that times an orthogonal matrix, the first value. It cannot be assigned to
        without; ``"householder"`` needs it.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.utils.parametrizations.orthogonal(genesis.nn.Linear(20, 40))
    >>> q = layer.weight
    >>> bool((q.T @ q - genesis.eye(20)).abs().max() < 1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        is_square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if is_square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    if orthogonal_map == "householder" and not use_trivialization:
        raise ValueError('the orthogonal_map "householder" needs use_trivialization=True')
    made = _Orthogonal(weight.shape, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
