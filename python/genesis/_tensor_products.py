"""Products of vectors and matrices, made of views and matmul().

All but outer() take operands of one type, as matmul() does. They are methods of tensors, too.
Beside them stands how exact products of float32 are.
"""

from __future__ import annotations

from genesis import _C
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "bmm",
    "dot",
    "get_float32_matmul_precision",
    "mm",
    "mv",
    "outer",
    "set_float32_matmul_precision",
    "tensordot",
]


def _need(
    name: str,
    input: _C.Tensor,
    other: _C.Tensor,
    dimensions: tuple[int, int],
    has_inner: bool = True,
) -> None:
    """Tensors of so many dimensions, whose sizes go together; batches have the same length."""
    for one in (input, other):
        if not isinstance(one, _C.Tensor):
            raise TypeError(f"{name}: operands are tensors, not {one!r}")
    ours, theirs = input.shape, other.shape
    if (len(ours), len(theirs)) != dimensions:
        raise _C.ShapeError(
            f"{name}: the operands must have {dimensions[0]} and {dimensions[1]} dimensions, not "
            f"shapes {ours} and {theirs}"
        )
    if has_inner and ours[-1] != theirs[max(len(theirs) - 2, 0)]:
        inner = theirs[max(len(theirs) - 2, 0)]
        raise _C.ShapeError(
            f"{name}: shapes {ours} and {theirs}: the sizes {ours[-1]} and {inner} must be equal"
        )
    if len(ours) == 3 and ours[0] != theirs[0]:
        raise _C.ShapeError(
            f"{name}: there are {ours[0]} matrices and {theirs[0]} others "
            f"(shapes {ours} and {theirs})"
        )


def dot(input: _C.Tensor, tensor: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The sum of the products of two vectors.

    Examples
    --------
    >>> import genesis
    >>> genesis.dot(genesis.tensor([1, 2]), genesis.tensor([3, 4]))
    tensor(11)
    """
    _need("dot", input, tensor, (1, 1))
    return _C.matmul(input, tensor, out=out)


def mv(input: _C.Tensor, vec: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """A matrix times a vector.

    Examples
    --------
    >>> import genesis
    >>> genesis.mv(genesis.tensor([[1, 2], [3, 4]]), genesis.tensor([1, 1]))
    tensor([3, 7])
    """
    _need("mv", input, vec, (2, 1))
    return _C.matmul(input, vec, out=out)


def mm(input: _C.Tensor, mat2: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """A matrix times a matrix.

    Examples
    --------
    >>> import genesis
    >>> genesis.mm(genesis.eye(2), genesis.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    _need("mm", input, mat2, (2, 2))
    return _C.matmul(input, mat2, out=out)


def bmm(input: _C.Tensor, mat2: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """As many matrices times as many others, without broadcasting.

    Examples
    --------
    >>> import genesis
    >>> genesis.bmm(genesis.ones(5, 2, 3), genesis.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    _need("bmm", input, mat2, (3, 3))
    return _C.matmul(input, mat2, out=out)


def outer(input: _C.Tensor, vec2: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The products of each element of a vector with each of another.

    Examples
    --------
    >>> import genesis
    >>> genesis.outer(genesis.tensor([1, 2]), genesis.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    _need("outer", input, vec2, (1, 1), has_inner=False)
    return _C.mul(input.unsqueeze(1), vec2, out=out)


def _dimensions(dims: Any, ndim: int, name: str) -> list[int]:
    dims = [dims] if hasattr(dims, "__index__") else [*_C._dimensions(dims)]
    wrapped = [dim + ndim if dim < 0 else dim for dim in dims]
    for dim, place in zip(dims, wrapped, strict=True):
        if not 0 <= place < ndim:
            raise IndexError(f"tensordot: dimension {dim} is out of range for {name} of {ndim}")
    if len(set(wrapped)) != len(wrapped):
        raise ValueError(f"tensordot: a dimension of {name} is there twice: {dims}")
    return wrapped


def tensordot(
    input: _C.Tensor,
    other: _C.Tensor,
    dims: int | Sequence[Any] = 2,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """The sum of products over several dimensions at once.

    Parameters
    ----------
    input, other : Tensor
        The operands.
    dims : int or pair of sequences
        How many of the last dimensions of `input` go with the first of `other`; or which ones of
        `input`, and which of `other`, in the same order.
    out : Tensor, optional
        Where the result goes: the dimensions of `input` that are left, and then those of `other`.

    Examples
    --------
    >>> import genesis
    >>> genesis.tensordot(genesis.ones(2, 3, 4), genesis.ones(4, 3), ([1, 2], [1, 0]))
    tensor([12., 12.])
    """
    if hasattr(dims, "__index__"):
        if not 0 <= dims <= min(input.ndim, other.ndim):
            raise ValueError(
                f"tensordot: {dims} dimensions of shapes {input.shape} and {other.shape}"
            )
        ours, theirs = list(range(input.ndim - dims, input.ndim)), list(range(dims))
    else:
        ours = _dimensions(dims[0], input.ndim, "input")
        theirs = _dimensions(dims[1], other.ndim, "other")
    for one, two in zip(ours, theirs, strict=False):  # a dimension of 1 goes with any
        if input.shape[one] == 1 != other.shape[two]:
            other = other.sum(two, True, dtype=other.dtype)
        elif other.shape[two] == 1 != input.shape[one]:
            input = input.sum(one, True, dtype=input.dtype)
    if [input.shape[dim] for dim in ours] != [other.shape[dim] for dim in theirs]:
        raise _C.ShapeError(
            f"tensordot: dimensions {ours} of shape {input.shape} and {theirs} of {other.shape} "
            "do not have the same sizes"
        )
    left = [dim for dim in range(input.ndim) if dim not in ours]
    right = [dim for dim in range(other.ndim) if dim not in theirs]
    inner = 1
    for dim in ours:
        inner *= input.shape[dim]
    shape = [input.shape[dim] for dim in left] + [other.shape[dim] for dim in right]
    rows, columns = 1, 1
    for dim in left:
        rows *= input.shape[dim]
    for dim in right:
        columns *= other.shape[dim]
    made = _C.matmul(
        input.permute(left + ours).reshape(rows, inner),
        other.permute(theirs + right).reshape(inner, columns),
    ).reshape(shape)
    return made if out is None else _into(made, out)


def _into(made: _C.Tensor, out: _C.Tensor) -> _C.Tensor:
    if out.shape != made.shape or out.dtype != made.dtype:
        raise _C.ShapeError(
            f"tensordot: the result has shape {made.shape} and {made.dtype}, "
            f"the output {out.shape} and {out.dtype}"
        )
    return out.copy_(made)


def set_float32_matmul_precision(precision: str) -> None:
    """Choose how exact matrix products of float32 on a GPU are.

    Parameters
    ----------
    precision : str
        ``"highest"``, as at first: operands are taken as they are. ``"high"`` or ``"medium"``:
        they may be rounded to TF32, of which 10 bits behind the point are kept, and products
        are several times faster. Sums are float32 in any case, and so are products on the CPU.

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_float32_matmul_precision("high")
    >>> genesis.get_float32_matmul_precision()
    'high'
    >>> genesis.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"precision is 'highest', 'high' or 'medium', not {precision!r}")
    _C._set_allow_tf32(precision != "highest")


def get_float32_matmul_precision() -> str:
    """How exact matrix products of float32 on a GPU are: ``"highest"`` or ``"high"``.

    Examples
    --------
    >>> import genesis
    >>> genesis.get_float32_matmul_precision()
    'highest'
    """
    return "high" if _C._get_allow_tf32() else "highest"


# NumPy's operators leave it to ours when the other operand is a tensor.
_C.Tensor.__array_priority__ = 1000

publish(
    globals(),
    __all__,
    methods=("bmm", "dot", "mm", "mv", "outer", "tensordot"),
    own_out=("bmm", "dot", "mm", "mv", "outer", "tensordot"),
)
