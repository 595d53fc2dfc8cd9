"""Samples of genesis.linalg.

Matrices are made well conditioned inside a sample. Of factors whose signs are free a sample takes
what does not depend on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradient_sample import Sample, leaf

import genesis

if TYPE_CHECKING:
    from collections.abc import Callable

    from genesis import Tensor


def eye_like(x: Tensor, factor: float = 1.0) -> Tensor:
    """The identity, times a factor."""
    return factor * genesis.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def positive(x: Tensor) -> Tensor:
    """A symmetric matrix whose eigenvalues are at least 1."""
    return x @ x.mT + eye_like(x)


def regular(x: Tensor) -> Tensor:
    """A square matrix far from a singular one."""
    return x + eye_like(x, 4.0)


def apart(x: Tensor) -> Tensor:
    """A matrix whose singular values differ: its rows have different sizes."""
    rows = genesis.arange(1, x.shape[-2] + 1, device=x.device).to(x.dtype)
    wide = genesis.zeros(x.shape[-2:], dtype=x.dtype, device=x.device)
    wide.fill_diagonal_(3.0)
    return x * 0.4 + wide * rows[:, None]


def symmetric(x: Tensor) -> Tensor:
    """A symmetric matrix whose eigenvalues differ."""
    made = apart(x)
    return made + made.mT


def squared(name: str, prepare: Callable[..., Any], take: Any = None) -> Callable[..., Any]:
    """A function of a prepared matrix; `take` makes what is checked of its results."""

    def call(x: Tensor, *rest: Any) -> Any:
        space, _, own = name.rpartition(".")
        home = genesis.linalg if space == "linalg" else genesis.Tensor if space else genesis
        made = getattr(home, own)(prepare(x), *rest)
        return made if take is None else take(made)

    return call


def check(
    name: str, prepare: Callable[..., Any], take: Any = None, shape: Any = (2, 3, 3),
    label: str = "", rest: tuple[Any, ...] = (), is_plain: bool = True,
) -> Sample:  # fmt: skip
    """A sample of a function of one matrix."""
    return Sample(
        name,
        (leaf(*shape), *rest),
        {},
        squared(name, prepare, take),
        label=label or prepare.__name__,
        is_plain=is_plain,
    )


def basis_free(usv: Any) -> tuple[Any, ...]:
    """Values, and what does not depend on the signs of vectors."""
    u, values, vh = usv
    k = values.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    weights = genesis.arange(1, k + 1, device=u.device).to(u.dtype)
    return values, (u * weights) @ vh, (u * weights) @ u.mT, (vh.mT * weights) @ vh


def of_vectors(pair: Any) -> tuple[Any, ...]:
    """The same of eigenvectors."""
    values, v = pair
    weights = genesis.arange(1, v.shape[-1] + 1, device=v.device).to(v.dtype)
    return values, (v * weights) @ v.mT


def v_turned(usv: Any) -> tuple[Any, ...]:
    """The same of genesis.svd, which gives V."""
    u, values, v = usv
    return basis_free((u, values, v.mT))


def solution(made: Any) -> Any:
    """The first result."""
    return made[0]


def first_two(made: Any) -> Any:
    """The solution and the residuals."""
    return made[0], made[1]


def factor(made: Any) -> Any:
    """Both factors in one."""
    return made[0]


def factors(made: Any) -> Any:
    """Lower and upper triangle."""
    return made[1], made[2]


def lu_solved(x: Tensor, b: Tensor, **words: Any) -> Any:
    """The solution, by factors of which the gradient goes back to the matrix."""
    return genesis.linalg.lu_solve(*genesis.linalg.lu_factor(regular(x)), b, **words)


def upper_of(x: Tensor) -> Tensor:
    """A regular upper triangular matrix."""
    return genesis.triu(regular(x))


MATRIX = leaf(2, 3, 3)

SAMPLES: list[Sample] = [
    Sample("linalg.matmul", (leaf(2, 4, 3), leaf(3, 2, seed=1)), {}),
    # ---- factors ----
    check("linalg.cholesky", positive, is_plain=False),
    Sample("linalg.cholesky", (MATRIX,), {}, lambda x: genesis.linalg.cholesky(
        positive(x), upper=True), label="upper", is_plain=True),
    check("linalg.cholesky_ex", positive, factor),
    check("cholesky", positive),
    check("Tensor.cholesky", positive),
    check("linalg.lu_factor", regular, factor, is_plain=False),
    check("linalg.lu_factor_ex", regular, factor),
    check("linalg.lu", apart, factors, (2, 4), label="wide"),
    check("linalg.lu", apart, factors, (4, 2), label="tall"),
    Sample("lu_unpack", (MATRIX,), {}, lambda x: factors(
        genesis.lu_unpack(*genesis.linalg.lu_factor(regular(x)))), is_plain=True),
    check("linalg.qr", regular, is_plain=False),
    check("linalg.qr", apart, shape=(4, 2), label="tall"),
    check("linalg.qr", apart, shape=(2, 4), label="wide"),
    check("linalg.qr", apart, shape=(2, 2, 3), label="complete", rest=("complete",)),
    check("qr", regular),
    check("Tensor.qr", regular),
    check("linalg.svd", apart, basis_free, is_plain=False),
    check("linalg.svd", apart, basis_free, (4, 2), label="tall"),
    check("linalg.svd", apart, basis_free, (2, 4), label="wide"),
    check("linalg.svd", apart, basis_free, (4, 2), label="reduced", rest=(False,)),
    check("linalg.svdvals", apart, shape=(2, 3, 2)),
    check("svd", apart, v_turned),
    check("Tensor.svd", apart, v_turned),
    check("linalg.eigh", symmetric, of_vectors, is_plain=False),
    check("linalg.eigh", symmetric, of_vectors, rest=("U",), label="upper"),
    check("linalg.eigvalsh", symmetric),
    # ---- equations ----
    Sample("linalg.solve", (MATRIX, leaf(2, 3, 2, seed=1)), {},
           lambda x, b: genesis.linalg.solve(regular(x), b)),
    Sample("linalg.solve", (MATRIX, leaf(2, 2, 3, seed=1)), {},
           lambda x, b: genesis.linalg.solve(regular(x), b, left=False), label="right",
           is_plain=True),
    Sample("linalg.solve", (leaf(3, 3), leaf(3, seed=1)), {},
           lambda x, b: genesis.linalg.solve(regular(x), b), label="vector", is_plain=True),
    Sample("linalg.solve_ex", (leaf(3, 3), leaf(2, 3, 2, seed=1)), {},
           lambda x, b: genesis.linalg.solve_ex(regular(x), b)[0], is_plain=True),
    Sample("linalg.solve_triangular", (MATRIX, leaf(2, 3, 2, seed=1)), {},
           lambda x, b: genesis.linalg.solve_triangular(regular(x), b, upper=True)),
    Sample("linalg.solve_triangular", (MATRIX, leaf(2, 2, 3, seed=1)), {},
           lambda x, b: genesis.linalg.solve_triangular(
               regular(x), b, upper=False, left=False, unitriangular=True),
           label="right", is_plain=True),
    Sample("cholesky_solve", (leaf(2, 3, 2, seed=1), MATRIX), {},
           lambda b, x: genesis.cholesky_solve(b, upper_of(x), True), is_plain=True),
    Sample("Tensor.cholesky_solve", (leaf(3, 2, seed=1), leaf(3, 3)), {},
           lambda b, x: b.cholesky_solve(upper_of(x).mT), is_plain=True),
    check("cholesky_inverse", upper_of, rest=(True,)),
    check("Tensor.cholesky_inverse", upper_of, rest=(True,), shape=(2, 2)),
    Sample("linalg.lu_solve", (MATRIX, leaf(2, 3, 2, seed=1)), {}, lu_solved, is_plain=True),
    Sample("linalg.lu_solve", (MATRIX, leaf(2, 2, 3, seed=1)), {},
           lambda x, b: lu_solved(x, b, left=False), label="right", is_plain=True),
    Sample("lu_solve", (leaf(3, 2, seed=1), leaf(3, 3)), {},
           lambda b, x: genesis.lu_solve(b, *genesis.linalg.lu_factor(regular(x))), is_plain=True),
    Sample("Tensor.lu_solve", (leaf(3, 2, seed=1), leaf(3, 3)), {},
           lambda b, x: b.lu_solve(*genesis.linalg.lu_factor(regular(x))), is_plain=True),
    check("linalg.inv", regular, is_plain=False),
    check("linalg.inv_ex", regular, solution),
    check("inverse", regular),
    check("Tensor.inverse", regular),
    check("linalg.pinv", apart, shape=(2, 4, 2), is_plain=False),
    check("linalg.pinv", apart, shape=(2, 4), label="wide"),
    Sample("linalg.pinv", (leaf(3, 3),), {},
           lambda x: genesis.linalg.pinv(symmetric(x), hermitian=True), label="symmetric",
           is_plain=True),
    check("pinverse", apart, shape=(3, 2)),
    check("Tensor.pinverse", apart, shape=(3, 2)),
    Sample("linalg.lstsq", (leaf(4, 2), leaf(4, 2, seed=1)), {},
           lambda x, b: first_two(genesis.linalg.lstsq(apart(x), b, driver="gelsd")),
           is_plain=True),
    Sample("linalg.lstsq", (leaf(2, 4), leaf(2, seed=1)), {},
           lambda x, b: genesis.linalg.lstsq(apart(x), b)[0], label="wide", is_plain=True),
    # ---- determinants ----
    check("linalg.det", regular, is_plain=False),
    check("det", regular),
    check("Tensor.det", regular),
    check("linalg.slogdet", regular, is_plain=False),
    check("slogdet", regular),
    check("Tensor.slogdet", regular),
    check("logdet", regular),
    check("Tensor.logdet", regular),
    # ---- norms ----
    *(
        Sample("linalg.norm", (leaf(2, 3),), {"ord": order}, label=str(order), is_plain=True)
        for order in (None, "fro", "nuc", float("inf"), 1, -1, 2, -2)
    ),
    Sample("linalg.norm", (leaf(4),), {"ord": 3}, label="vector"),
    *(
        Sample("linalg.vector_norm", (leaf(2, 3),), {"ord": order, "dim": 1}, label=str(order))
        for order in (2, 1, 3.5, float("inf"), -float("inf"))
    ),
    Sample("linalg.matrix_norm", (leaf(2, 3, 2),), {"ord": "nuc", "dim": (0, 2), "keepdim": True},
           is_tied=False),
    Sample("linalg.matrix_norm", (leaf(2, 3, 2),), {}),
    *(
        check("linalg.cond", regular, rest=(order,), label=str(order), shape=(3, 3))
        for order in (None, "fro", 1, -2)
    ),
    # ---- products ----
    Sample("matrix_power", (leaf(2, 3, 3),), {"n": 3}),
    Sample("linalg.matrix_power", (leaf(2, 3, 3),), {"n": 5}, is_plain=True),
    Sample("linalg.matrix_power", (leaf(3, 3),), {},
           lambda x: genesis.linalg.matrix_power(regular(x), -2), label="inverse", is_plain=True),
    Sample("linalg.matrix_exp", (leaf(2, 3, 3),), {}, is_plain=True),
    Sample("linalg.matrix_exp", (leaf(2, 2, low=-9.0, high=9.0),), {}, is_plain=True),
    Sample("matrix_exp", (leaf(2, 2),), {}, is_plain=True),
    Sample("linalg.multi_dot", ([leaf(3), leaf(3, 2), leaf(2, 4), leaf(4, 2)],), {}, is_plain=True),
    Sample("linalg.vecdot", (leaf(2, 3), leaf(3, seed=1)), {}),
    Sample("linalg.vander", (leaf(2, 3),), {"N": 4}),
    Sample("vander", (leaf(3),), {}),
    Sample("linalg.cross", (leaf(2, 3), leaf(2, 3, seed=1)), {}),
    Sample("linalg.diagonal", (leaf(2, 3, 3),), {"offset": 1}),
    Sample("linalg.tensorinv", (leaf(4, 4),), {},
           lambda x: genesis.linalg.tensorinv(regular(x).reshape(2, 2, 4)), is_plain=True),
    Sample("linalg.tensorsolve", (leaf(4, 4), leaf(2, 2, seed=1)), {},
           lambda x, b: genesis.linalg.tensorsolve(regular(x).reshape(2, 2, 4), b), is_plain=True),
]  # fmt: skip
