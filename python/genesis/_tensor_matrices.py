"""Matrices: diagonals, and products with a sum, made of views and matmul().

Those that begin with a tensor are its methods, too.
"""

from __future__ import annotations

from genesis import _C
from genesis._C import einsum
from genesis._tensor import wide
from genesis._tensor_calls import publish
from genesis._tensor_products import _need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "addmm",
    "addmv",
    "baddbmm",
    "diag",
    "einsum",
    "inner",
    "trace",
]


def diag(input: _C.Tensor, diagonal: int = 0, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix; a copy.

    Examples
    --------
    >>> import genesis
    >>> genesis.diag(genesis.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input.ndim == 2:
        return input.diagonal(diagonal).clone()
    if input.ndim != 1:
        raise _C.ShapeError(f"diag: a vector or a matrix, not shape {input.shape}")
    size = input.shape[0] + abs(diagonal)
    made = _C.zeros((size, size), dtype=input.dtype, device=input.device)
    first = diagonal if diagonal >= 0 else -diagonal * size
    made.as_strided(input.shape, (size + 1,), first).copy_(input)
    return made


def fill_diagonal_(self: _C.Tensor, fill_value: Any) -> _C.Tensor:
    """Set the elements whose indices are all equal to one number, in place.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(2, 3).fill_diagonal_(7)
    tensor([[7., 0., 0.],
            [0., 7., 0.]])
    """
    if self.ndim < 2 or (self.ndim > 2 and len({*self.shape}) > 1):
        raise _C.ShapeError(
            f"fill_diagonal_: a matrix, or more dimensions of one size, not shape {self.shape}"
        )
    self.as_strided((min(self.shape),), (sum(self.strides),)).fill_(fill_value)
    return self


def trace(input: _C.Tensor) -> _C.Tensor:
    """The sum of the diagonal of a matrix.

    Examples
    --------
    >>> import genesis
    >>> genesis.trace(genesis.eye(3))
    tensor(3.)
    """
    if input.ndim != 2:
        raise _C.ShapeError(f"trace: a matrix has 2 dimensions, not shape {input.shape}")
    return input.diagonal().sum()


def _check_addend(
    name: str, input: _C.Tensor, a: _C.Tensor, b: _C.Tensor, dimensions: tuple[int, int]
) -> None:
    """What is added broadcasts to the product, never the other way round."""
    _need(name, a, b, dimensions)
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"{name}: what is added is a Tensor, not {input!r}")
    shape = a.shape[:-1] + (b.shape[-1:] if b.ndim > 1 else ())
    ends = zip(input.shape[::-1], shape[::-1], strict=False)
    if input.ndim > len(shape) or any(one not in (1, size) for one, size in ends):
        raise _C.ShapeError(
            f"{name}: a tensor of shape {input.shape} cannot be broadcast to {shape}, the shape of "
            f"the product of {a.shape} and {b.shape}"
        )


def _added(input: _C.Tensor, a: _C.Tensor, b: _C.Tensor, beta: Any, alpha: Any) -> _C.Tensor:
    """``beta * input + alpha * (a @ b)``.

    On the CPU halves are rounded once, at the end. A GPU multiplies halves several times faster
    than float32, and rounds their product, too.
    """
    dtype = None
    if a.dtype == b.dtype and a.device.type == "cpu":
        dtype = input.dtype if beta != 0 else a.dtype
        a, b, input = wide(a), wide(b), wide(input)
    product = a @ b
    product = product if alpha == 1 else product * alpha
    made = product if beta == 0 else (input if beta == 1 else input * beta) + product
    return made.to(dtype) if dtype in (_C.float16, _C.bfloat16) else made


def addmm(
    input: _C.Tensor,
    mat1: _C.Tensor,
    mat2: _C.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``.

    Without factors, and with a row or a matrix as ``input``, this is one call of cuBLASLt on a GPU;
    half precision is rounded once, then.

    Examples
    --------
    >>> import genesis
    >>> genesis.addmm(genesis.ones(2), genesis.eye(2), genesis.eye(2), alpha=3)
    tensor([[4., 1.],
            [1., 4.]])
    """
    _check_addend("addmm", input, mat1, mat2, (2, 2))
    is_half = mat1.dtype in (_C.float16, _C.bfloat16)
    if alpha == 1 and beta == 1 and not (is_half and mat1.device.type == "cpu"):
        return _C._matmul_add(mat1, mat2, input)
    return _added(input, mat1, mat2, beta, alpha)


def addmv(
    input: _C.Tensor,
    mat: _C.Tensor,
    vec: _C.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """``beta * input + alpha * (mat @ vec)``.

    Examples
    --------
    >>> import genesis
    >>> genesis.addmv(genesis.ones(2), genesis.eye(2), genesis.ones(2))
    tensor([2., 2.])
    """
    _check_addend("addmv", input, mat, vec, (2, 1))
    return _added(input, mat, vec, beta, alpha)


def baddbmm(
    input: _C.Tensor,
    batch1: _C.Tensor,
    batch2: _C.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """``beta * input + alpha * (batch1 @ batch2)``, of as many matrices.

    Examples
    --------
    >>> import genesis
    >>> genesis.baddbmm(genesis.ones(1), genesis.ones(5, 2, 3), genesis.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    _check_addend("baddbmm", input, batch1, batch2, (3, 3))
    return _added(input, batch1, batch2, beta, alpha)


def inner(input: _C.Tensor, other: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The sum of products over the last dimensions.

    Examples
    --------
    >>> import genesis
    >>> genesis.inner(genesis.tensor([1, 2]), genesis.tensor([3, 4]))
    tensor(11)
    """
    if not input.ndim or not other.ndim:
        return input * other
    return input.tensordot(other, ([input.ndim - 1], [other.ndim - 1]))


publish(
    globals(),
    __all__,
    methods=("addmm", "addmv", "baddbmm", "diag", "fill_diagonal_", "inner", "trace"),
    in_place=("addmm", "addmv", "baddbmm"),
)
