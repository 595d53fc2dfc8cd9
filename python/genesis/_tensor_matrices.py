"""Matrices: diagonals, products with a sum, and einsum(), made of views and matmul().

Those that begin with a tensor are its methods, too.
"""

from __future__ import annotations

from genesis import _C
from genesis._memory import counted
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


def _einsum_terms(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; digits stand for what ``...`` hides."""
    if not isinstance(equation, str):
        raise TypeError(f"einsum: the equation is a text, not {type(equation).__name__}")
    left, arrow, right = equation.replace(" ", "").partition("->")
    wrong = {one for one in equation.replace("...", "") if not (one.isascii() and one.isalpha())}
    if (wrong := wrong - {*" ,->"}) or "->" in right or {*left + right} & {*"->"}:
        shown = repr(min(wrong)) if wrong else "'->'"
        raise ValueError(f"einsum: {shown} cannot stand there in {equation!r}")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(
            f"einsum: {equation!r} is for {counted(len(terms), 'operand')}, not {len(ranks)}"
        )
    made = []
    for term, rank in zip(terms, ranks, strict=True):
        letters = term.replace("...", "")
        hidden = rank - len(letters)
        if hidden < 0 or (hidden and "..." not in term):
            raise ValueError(
                f"einsum: {term!r} of {equation!r} has {counted(len(letters), 'letter')}, and its "
                f"operand {counted(rank, 'dimension')}"
            )
        digits = "".join(chr(0x100 + i) for i in range(hidden))[::-1]
        made.append(term.replace("...", digits))
    joined = "".join(made)
    widest = max((one for term in made for one in [_hidden(term)]), key=len, default="")
    if not arrow:
        right = "..." + "".join(
            sorted(one for one in {*joined} - {*widest} if joined.count(one) == 1)
        )
    result = right.replace("...", widest)
    for one in result:
        if result.count(one) > 1:
            raise ValueError(f"einsum: the result of {equation!r} has {one!r} twice")
        if one not in joined:
            raise ValueError(f"einsum: {one!r} in the result of {equation!r} is in no operand")
    return made, result


def _hidden(term: str) -> str:
    return "".join(one for one in term if ord(one) >= 0x100)


def _einsum_one(x: _C.Tensor, term: str, kept: set[str]) -> tuple[_C.Tensor, str]:
    """One operand with the diagonals of letters that are there twice, and those not kept summed."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            if x.shape[first] != x.shape[second]:
                raise _C.ShapeError(
                    f"einsum: {letter!r} stands for {x.shape[first]} and {x.shape[second]} elements"
                )
            x = x.diagonal(0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    gone = [i for i, letter in enumerate(term) if letter not in kept]
    return (x.sum(gone) if gone else x), "".join(one for one in term if one in kept)


def _einsum_two(
    a: _C.Tensor, a_term: str, b: _C.Tensor, b_term: str, kept: set[str]
) -> tuple[_C.Tensor, str]:
    """The product of two operands over the letters that are not kept, as matrices in a batch."""
    sizes: dict[str, int] = {}
    for x, term in ((a, a_term), (b, b_term)):
        for letter, size in zip(term, x.shape, strict=True):
            known = sizes.setdefault(letter, size)
            if known != size and 1 not in (known, size):
                raise _C.ShapeError(
                    f"einsum: {letter!r} stands for {known} elements in one operand and for {size} "
                    f"in another"
                )
            sizes[letter] = max(known, size) if 0 not in (known, size) else 0
    both = [one for one in a_term if one in b_term]
    batch = [one for one in both if one in kept]
    over = [one for one in both if one not in kept]
    rows = [one for one in a_term if one not in b_term]
    columns = [one for one in b_term if one not in a_term]

    def matrix(x: _C.Tensor, term: str, *groups: list[str]) -> _C.Tensor:
        letters = [one for group in groups for one in group]
        wide = x.permute([term.index(one) for one in letters])
        wide = wide.expand([sizes[one] for one in letters])
        counts = []
        for group in groups:
            count = 1
            for one in group:
                count *= sizes[one]
            counts.append(count)
        return wide.reshape(counts)

    dtype = _C._result_type(a, b)  # sums of integers are int64 already
    left = matrix(a.to(dtype), a_term, batch, rows, over)
    made = left @ matrix(b.to(dtype), b_term, batch, over, columns)
    order = batch + rows + columns
    return made.reshape([sizes[one] for one in order]), "".join(order)


def einsum(equation: str, *operands: Any) -> _C.Tensor:
    """Sums of products by the letters of dimensions, as ``"ij,jk->ik"`` for a matrix product.

    Letters that the result has not are summed over; without ``->`` it has, in the alphabet's order,
    those that occur once. ``...`` stands for dimensions that broadcast.

    Examples
    --------
    >>> import genesis
    >>> genesis.einsum("ij,j->i", genesis.eye(2), genesis.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    for one in operands:
        if not isinstance(one, _C.Tensor):
            raise TypeError(f"einsum: operands are tensors, not {one!r}")
    terms, result = _einsum_terms(equation, [one.ndim for one in operands])
    made, term = None, ""
    for i, (x, letters) in enumerate(zip(operands, terms, strict=True)):
        later = {*result, *"".join(terms[i + 1 :])}
        x, letters = _einsum_one(x, letters, later | {*term})
        if made is None:
            made, term = x, letters
        else:
            made, term = _einsum_two(made, term, x, letters, later)
    if made is None:
        raise ValueError("einsum: there must be an operand")
    made, term = _einsum_one(made, term, {*result})
    return made.permute([term.index(one) for one in result])


publish(
    globals(),
    __all__,
    methods=("addmm", "addmv", "baddbmm", "diag", "fill_diagonal_", "inner", "trace"),
    in_place=("addmm", "addmv", "baddbmm"),
)
