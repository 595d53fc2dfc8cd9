"""The extension ``linalg`` of the Python array API standard, over the functions of genesis.linalg.

Of the standard's functions ``eig`` and ``eigvals`` are missing: their results are complex numbers,
which tensors do not have.

Examples
--------
>>> import genesis.array_api as xp
>>> Q, R = xp.linalg.qr(xp.asarray([[3.0, 1.0], [4.0, 2.0]]))
>>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
tensor([1., 2.])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import genesis
from genesis import Tensor, array_api

matmul = array_api.matmul
matrix_transpose = array_api.matrix_transpose
tensordot = array_api.tensordot
vecdot = array_api.vecdot


class EighResult(NamedTuple):
    """What :func:`eigh` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What :func:`qr` gives."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What :func:`svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular factor L of L @ L.mT, or with `upper` the upper one of U.mT @ U.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0]]))
    tensor([[2.]])
    """
    return genesis.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product along an axis of 3 elements.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return genesis.linalg.cross(*array_api._promoted(x1, x2), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.det(xp.asarray([[1.0, 2.0], [0.0, 4.0]]))
    tensor(4.)
    """
    return genesis.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices, as a view.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return genesis.linalg.diagonal(x, offset=offset)


def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0]])).eigenvalues
    tensor([2.])
    """
    return EighResult(*genesis.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of a symmetric matrix, ascending.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return genesis.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of a matrix.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0]]))
    tensor([[0.5000]])
    """
    return genesis.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: ``"fro"``, ``"nuc"``, 1, 2, inf, or the negative ones.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 4.0]]))
    tensor(5.)
    """
    return genesis.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """A power of a square matrix, of its inverse where the exponent is negative.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    return genesis.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are above `rtol` times the largest.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.matrix_rank(xp.ones((3, 3)))
    tensor(1)
    """
    return genesis.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all elements of two vectors.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    return genesis.outer(*array_api._promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudoinverse; singular values up to `rtol` times the largest count as 0.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return genesis.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns, and the upper triangular R, of Q @ R.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.qr(xp.ones((3, 2)), mode="complete").Q.shape
    (3, 3)
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    return QRResult(*genesis.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its absolute value.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.slogdet(xp.eye(2)).sign
    tensor(1.)
    """
    return SlogdetResult(*genesis.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """X of x1 @ X = x2; x2 is one vector, or matrices.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0]]), xp.asarray([4.0]))
    tensor([2.])
    """
    x1, x2 = array_api._promoted(x1, x2)
    if 1 < x2.ndim < x1.ndim:  # matrices, which genesis.linalg.solve() could take for vectors
        x2 = x2.reshape((1,) * (x1.ndim - x2.ndim) + tuple(x2.shape))
    return genesis.linalg.solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular values S, descending, and the orthogonal U and Vh of U @ diag(S) @ Vh.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.svd(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    return SVDResult(*genesis.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, descending.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    return genesis.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of diagonals.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
    tensor(5)
    """
    return array_api.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norm of all elements, or along axes.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    tensor(5.)
    """
    if axis == ():
        x, axis, keepdims = x.unsqueeze(0), 0, False
    return genesis.linalg.vector_norm(x, ord, axis, keepdims)


__all__ = [
    *("EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cross", "det"),
    *("diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power"),
    *("matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd"),
    *("svdvals", "tensordot", "trace", "vecdot", "vector_norm"),
]
