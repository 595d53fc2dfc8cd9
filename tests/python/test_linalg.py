"""genesis.linalg beside NumPy: random, ill-conditioned and empty matrices, and what is refused."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import threading

import numpy
import pytest
from conftest import simulate_script

import genesis
from genesis import linalg

SHAPES = [(4, 4), (1, 1), (7, 3), (3, 7), (2, 3, 5, 5), (3, 6, 2), (40, 30), (30, 40)]
EMPTY = [(0, 3, 3), (3, 0), (0, 3), (2, 0, 0), (0, 0), (2, 3, 0)]
SQUARES = [shape for shape in SHAPES + EMPTY if shape[-1] == shape[-2]] + [(65, 65), (300, 3, 3)]
TYPES = {"float64": 1e-9, "float32": 3e-3}


def matrices(shape, name, seed=0):
    """Random numbers, and the tensor: by rows, by columns, and with gaps."""
    array = numpy.random.default_rng(seed).standard_normal(shape).astype(name)
    wide = genesis.zeros(tuple(2 * size for size in shape), dtype=getattr(genesis, name))
    gaps = wide[tuple(slice(None, None, 2) for _ in shape)]
    tensor = genesis.tensor(array)
    gaps.copy_(tensor)
    return array, (tensor, tensor.mT.contiguous().mT, gaps)


def mirrored(array):
    """The transposed matrices."""
    return numpy.swapaxes(array, -1, -2)


def positive(array):
    """Symmetric, with eigenvalues of at least 1."""
    return array @ mirrored(array) + numpy.eye(array.shape[-1], dtype=array.dtype)


def close(made, expected, tolerance):
    """The shape, the type and the numbers."""
    expected = numpy.asarray(expected)
    assert tuple(made.shape) == expected.shape
    if expected.dtype.kind == "f":
        assert str(made.dtype).removeprefix("genesis.") == expected.dtype.name
    scale = max(1, numpy.abs(expected[numpy.isfinite(expected)]).max(initial=0))
    numpy.testing.assert_allclose(made.numpy(), expected, tolerance, tolerance * scale)


def orthogonal(q, tolerance):
    """The columns are unit vectors that are orthogonal."""
    one = numpy.eye(q.shape[-1], dtype=str(q.dtype).removeprefix("genesis."))
    close(q.mT @ q, numpy.broadcast_to(one, (*q.shape[:-2], *one.shape)), tolerance)


# ---- beside NumPy ----


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_factors(shape, name):
    array, forms = matrices(shape, name)
    tolerance, (m, n) = TYPES[name], shape[-2:]
    for x in forms:
        u, s, vh = linalg.svd(x, full_matrices=False)
        close(s, numpy.linalg.svd(array, compute_uv=False), tolerance)
        close((u * s.unsqueeze(-2)) @ vh, array, tolerance)
        close(linalg.svdvals(x), s.numpy(), tolerance)
        full = linalg.svd(x)
        assert full.U.shape == (*shape[:-2], m, m) and full.Vh.shape == (*shape[:-2], n, n)
        orthogonal(full.U, tolerance), orthogonal(full.Vh, tolerance)
        k = min(m, n)
        close((full.U[..., :k] * full.S.unsqueeze(-2)) @ full.Vh[..., :k, :], array, tolerance)
        for mode in ("reduced", "complete"):
            q, r = linalg.qr(x, mode)
            orthogonal(q, tolerance), close(q @ r, array, tolerance)
            assert not r.tril(-1).any() and r.shape[-2] == (m if mode == "complete" else k)
        nothing, alone = linalg.qr(x, "r")
        assert nothing.shape == (0,) and alone.tolist() == linalg.qr(x).R.tolist()
        p, low, high = linalg.lu(x)
        close(p @ low @ high, array, tolerance)
        assert p.shape == (*shape[:-2], m, m) and not low.triu(1).any() and not high.tril(-1).any()
        if array.size:
            close(linalg.pinv(x), numpy.linalg.pinv(array), tolerance)
            assert linalg.matrix_rank(x).tolist() == numpy.linalg.matrix_rank(array).tolist()


@pytest.mark.filterwarnings("ignore:overflow")  # NumPy's, of the largest determinant
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_square_matrices(shape, name):
    array, forms = matrices(shape, name)
    tolerance = 30 * TYPES[name]
    array = array + 3 * numpy.eye(shape[-1], dtype=name)
    right, sides = matrices((*shape[:-1], 3), name, 1)
    for form, b in zip(forms, sides, strict=True):
        x = form + 3 * genesis.eye(shape[-1], dtype=form.dtype)
        close(linalg.det(x), numpy.linalg.det(array), tolerance)
        for one, other in zip(linalg.slogdet(x), numpy.linalg.slogdet(array), strict=True):
            close(one, other, tolerance)
        close(linalg.inv(x), numpy.linalg.inv(array), tolerance)
        expected = numpy.linalg.solve(array, right)
        close(linalg.solve(x, b), expected, tolerance)
        close(linalg.solve(x.mT, b.mT, left=False), mirrored(expected), tolerance)
        close(linalg.solve(x, b[..., 0]), expected[..., 0], tolerance)
        lu, pivots, info = linalg.lu_factor_ex(x)
        assert info.shape == shape[:-2] and not info.any()
        close(linalg.lu_solve(lu, pivots, b), expected, tolerance)
        close(
            linalg.lu_solve(lu, pivots, b.mT, left=False, adjoint=True),
            mirrored(expected),
            tolerance,
        )
        turned = numpy.linalg.solve(mirrored(array), right)
        close(linalg.lu_solve(lu, pivots, b, adjoint=True), turned, tolerance)
        close(linalg.lu_solve(lu, pivots, b.mT, left=False), mirrored(turned), tolerance)
        close(linalg.matrix_power(x, 3), numpy.linalg.matrix_power(array, 3), tolerance)
        close(linalg.matrix_power(x, -2), numpy.linalg.matrix_power(array, -2), tolerance)
        assert linalg.matrix_power(x, 0).tolist() == numpy.linalg.matrix_power(array, 0).tolist()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_symmetric_matrices(shape, name):
    array, _ = matrices(shape, name)
    array, tolerance = positive(array), 10 * TYPES[name]
    junk = numpy.triu(numpy.full_like(array, 99.0), 1)
    low, high = (genesis.tensor(one) for one in (numpy.tril(array) + junk, numpy.triu(array)))
    factor = numpy.linalg.cholesky(array)
    close(linalg.cholesky(low), factor, tolerance)
    close(linalg.cholesky(high, upper=True), mirrored(factor), tolerance)
    values = numpy.linalg.eigvalsh(array)
    for x, triangle in ((low, "L"), (high, "U"), (genesis.tensor(array), "l")):
        found, vectors = linalg.eigh(x, triangle)
        close(found, values, tolerance)
        orthogonal(vectors, tolerance)
        close((vectors * found.unsqueeze(-2)) @ vectors.mT, array, tolerance)
        close(linalg.eigvalsh(x, triangle), values, tolerance)
    right, (b, *_) = matrices((*shape[:-1], 2), name, 1)
    lower = genesis.tensor(factor)
    expected = numpy.linalg.solve(array, right)
    close(genesis.cholesky_solve(b, lower), expected, tolerance)
    close(b.cholesky_solve(lower.mT, upper=True), expected, tolerance)
    close(genesis.cholesky_inverse(lower), numpy.linalg.inv(array), tolerance)
    close(linalg.pinv(low, hermitian=True), numpy.linalg.pinv(array), tolerance)


@pytest.mark.parametrize("is_unit", [False, True])
@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("is_upper", [False, True])
def test_triangles(is_upper, is_left, is_unit):
    for name, tolerance in TYPES.items():
        for shape in ((5, 5), (2, 3, 3), (1, 1), (2, 0, 0)):
            array, forms = matrices(shape, name)
            array = 0.2 * array + 2 * numpy.eye(shape[-1], dtype=name)
            kept = numpy.triu(array) if is_upper else numpy.tril(array)
            if is_unit:
                kept[..., range(shape[-1]), range(shape[-1])] = 1
            beside = (*shape[:-1], 2) if is_left else (*shape[:-2], 2, shape[-1])
            right, sides = matrices(beside, name)
            if is_left:
                expected = numpy.linalg.solve(kept, right)
            else:
                expected = mirrored(numpy.linalg.solve(mirrored(kept), mirrored(right)))
            for form in forms:
                x = 0.2 * form + 2 * genesis.eye(shape[-1], dtype=form.dtype)
                for a in (x, x.mT.contiguous().mT):
                    for b in sides:
                        made = linalg.solve_triangular(
                            a, b, upper=is_upper, left=is_left, unitriangular=is_unit
                        )
                        close(made, expected, tolerance)


@pytest.mark.parametrize("name", TYPES)
def test_norms(name):
    orders = ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)
    for shape in SHAPES:
        array, (x, *_) = matrices(shape, name)
        for order in orders:
            expected = numpy.linalg.norm(array, order, axis=(-2, -1))
            close(linalg.matrix_norm(x, order), expected, TYPES[name])
            turned = numpy.linalg.norm(array, order, (-1, -2))
            close(linalg.norm(x, order, (-1, -2)), turned, TYPES[name])
            kept = linalg.matrix_norm(x, order, keepdim=True)
            close(kept, expected[..., None, None], TYPES[name])
        for order in (0, 1, 2, 3.5, -1, math.inf, -math.inf):
            rows = numpy.linalg.norm(array, order, -1)
            close(linalg.vector_norm(x, order, -1), rows, TYPES[name])
            flat = numpy.linalg.norm(array.reshape(-1), order)
            close(linalg.vector_norm(x, order), flat, TYPES[name])
        close(linalg.norm(x), numpy.linalg.norm(array), TYPES[name])
    array, (x, *_) = matrices((4, 4), name)
    for order in (None, *orders):
        close(linalg.cond(x, order), numpy.linalg.cond(array, order), 10 * TYPES[name])
    assert linalg.cond(genesis.zeros(2, 2), 1) == math.inf
    x = genesis.tensor([[3.0, 4.0]], dtype=genesis.float16)
    assert linalg.matrix_norm(x) == 5 and linalg.vector_norm(x).dtype == genesis.float16
    made = linalg.vector_norm(x, dtype=genesis.float64)
    assert made.dtype == genesis.float64 and made == 5
    assert linalg.norm(genesis.ones(0, 4), 1) == 0 == linalg.vector_norm(genesis.ones(0))


@pytest.mark.parametrize("name", TYPES)
def test_least_squares(name):
    for shape in ((5, 3), (3, 5), (4, 4), (2, 6, 3)):
        array, (x, *_) = matrices(shape, name)
        right, (b, *_) = matrices((*shape[:-1], 2), name, 1)
        expected = numpy.linalg.pinv(array) @ right
        for driver in (None, "gels", "gelsd", "gelss"):
            made = linalg.lstsq(x, b, driver=driver)
            close(made.solution, expected, TYPES[name])
            has_values = driver in ("gelsd", "gelss")
            values = (*shape[:-2], min(shape[-2:])) if has_values else (0,)
            assert made.singular_values.shape == values
            assert made.rank.shape == ((0,) if driver == "gels" else shape[:-2])
        left = ((array @ expected - right) ** 2).sum(-2)
        is_over = shape[-2] > shape[-1]
        close(made.residuals, left if is_over else numpy.zeros(0, name), 10 * TYPES[name])
    one = linalg.lstsq(x[0], b[0, :, 0])
    close(one.solution, expected[0, :, 0], TYPES[name])
    flat = genesis.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])  # the smallest of many
    made = linalg.lstsq(flat, genesis.ones(3, 1), driver="gelsd")
    close(made.solution, numpy.full((2, 1), 0.5, "float32"), 1e-5)
    assert made.rank == 1 and made.residuals.shape == (0,)


def test_ill_conditioned():
    """Hilbert's matrices: the error is as small as the condition lets it be."""
    for n in (5, 8, 12):
        array = 1 / (numpy.arange(n)[:, None] + numpy.arange(n) + 1.0)
        x = genesis.tensor(array)
        values = numpy.linalg.svd(array, compute_uv=False)
        numpy.testing.assert_allclose(linalg.svdvals(x).numpy(), values, 1e-9, 1e-15)
        numpy.testing.assert_allclose(linalg.cond(x), values[0] / values[-1], 0.2)
        b = x @ genesis.ones(n, dtype=x.dtype)
        residual = x @ linalg.solve(x, b) - b
        assert residual.abs().max() < 1e-14 * n
        q, r = linalg.qr(x)
        orthogonal(q, 1e-13), close(q @ r, array, 1e-14)
    graded = genesis.diag(genesis.tensor([1e200, 1.0, 1e-200], dtype=genesis.float64))
    assert linalg.svdvals(graded)[:2].tolist() == [1e200, 1.0]
    assert linalg.slogdet(graded).logabsdet.abs() < 1e-9
    rank_two = genesis.tensor(numpy.outer([1.0, 2, 3], [1.0, 1, 1]) + numpy.diag([0, 0, 1.0]))
    assert linalg.matrix_rank(rank_two) == 2 and linalg.matrix_rank(rank_two, atol=10.0) == 0
    assert linalg.matrix_rank(rank_two, tol=1.0) == 1 == linalg.matrix_rank(rank_two, rtol=0.5)
    u, s, vh = linalg.svd(genesis.zeros(4, 3))
    assert not s.any() and (u.mT @ u).tolist() == numpy.eye(4).tolist() and vh.shape == (3, 3)
    two = genesis.stack([genesis.eye(2), genesis.ones(2, 2)])
    assert linalg.matrix_rank(two, atol=genesis.tensor([0.5, 9.0])).tolist() == [2, 0]


@pytest.mark.parametrize("name", TYPES)
def test_exponentials(name):
    for values in ([0.0, 1.0], [-30.0, 4.0], [1e-8, 0.5], [-200.0, -1.0]):
        array, (x, *_) = matrices((2, 2), "float64")
        basis = x + 3 * genesis.eye(2, dtype=x.dtype)
        s = genesis.tensor(values, dtype=x.dtype)
        made = linalg.matrix_exp(((basis * s) @ linalg.inv(basis)).to(getattr(genesis, name)))
        close(made, ((basis * s.exp()) @ linalg.inv(basis)).numpy().astype(name), TYPES[name])
    both = genesis.stack([genesis.zeros(2, 2), genesis.tensor([[0.0, 1e4], [0.0, 0.0]])])
    assert linalg.matrix_exp(both).tolist() == [[[1, 0], [0, 1]], [[1, 1e4], [0, 1]]]
    assert linalg.matrix_exp(genesis.full((2, 2), math.nan)).isnan().all()
    assert linalg.matrix_exp(genesis.zeros(0, 3, 3)).shape == (0, 3, 3)


def test_products_and_views():
    array, (x, *_) = matrices((3, 4), "float64")
    shapes = [(2, 30), (30, 4), (4, 9), (9, 1)]
    parts = [numpy.random.default_rng(1).normal(size=shape) for shape in shapes]
    tensors = [genesis.tensor(part) for part in parts]
    close(linalg.multi_dot(tensors), numpy.linalg.multi_dot(parts), 1e-12)
    row = linalg.multi_dot([tensors[0][0], *tensors[1:]])
    close(row, numpy.linalg.multi_dot(parts)[0], 1e-12)
    close(linalg.vecdot(x, x[0]), (array * array[0]).sum(-1), 1e-12)
    close(linalg.vecdot(x, x, dim=0), (array * array).sum(0), 1e-12)
    assert linalg.vander(genesis.tensor([2, 3])).tolist() == [[1, 2], [1, 3]]
    close(genesis.vander(x[0]), numpy.vander(array[0]), 1e-12)
    close(genesis.vander(x[0], 2, True), numpy.vander(array[0], 2, True), 1e-12)
    close(linalg.cross(x[:, :3], x[0, :3]), numpy.cross(array[:, :3], array[0, :3]), 1e-12)
    close(linalg.diagonal(x, offset=1), numpy.diagonal(array, 1), 0)
    cube = numpy.random.default_rng(3).normal(size=(4, 6, 8, 3))
    made = linalg.tensorinv(genesis.tensor(cube))
    close(made, numpy.linalg.tensorinv(cube), 1e-8)
    side = cube[..., 0, 0]
    made = linalg.tensorsolve(genesis.tensor(cube), genesis.tensor(side))
    close(made, numpy.linalg.tensorsolve(cube, side), 1e-8)
    other = numpy.random.default_rng(3).normal(size=(2, 3, 6))
    ones = genesis.ones(6, dtype=x.dtype)
    made = linalg.tensorsolve(genesis.tensor(other), ones, dims=(0, 1))
    close(made, numpy.linalg.tensorsolve(other, numpy.ones(6), (0, 1)), 1e-9)
    whole = genesis.tensor([[1, 1], [0, 1]])
    assert linalg.matrix_power(whole, 40).tolist() == [[1, 40], [0, 1]]


def test_older_names():
    array, (x, *_) = matrices((4, 4), "float64")
    a = genesis.tensor(positive(array))
    assert a.det() == linalg.det(a) == genesis.det(a)
    assert a.inverse().tolist() == linalg.inv(a).tolist() == genesis.inverse(a).tolist()
    assert a.cholesky(True).tolist() == linalg.cholesky(a).mT.tolist()
    assert a.slogdet().logabsdet == a.logdet() == genesis.logdet(a)
    assert genesis.logdet(-genesis.eye(3)).isnan()
    assert genesis.logdet(genesis.zeros(2, 2)) == -math.inf
    assert a.matrix_power(2).tolist() == (a @ a).tolist()
    close(x[:, :2].pinverse(), numpy.linalg.pinv(array[:, :2]), 1e-10)
    close(a.matrix_exp(), linalg.matrix_exp(a).numpy(), 1e-12)
    assert [one.shape for one in x[:, :2].qr()] == [(4, 2), (2, 2)]
    assert [one.shape for one in x[:, :2].qr(some=False)] == [(4, 4), (4, 2)]
    u, s, v = x[:, :2].svd()
    close((u * s) @ v.mT, array[:, :2], 1e-12)
    assert [one.shape for one in genesis.svd(x[:, :2], False)] == [(4, 4), (2,), (2, 2)]
    u, values, v = genesis.svd(x[:, :2], compute_uv=False)
    assert not u.any() and not v.any() and (u.shape, v.shape) == ((4, 4), (2, 2))
    close(values, s.numpy(), 1e-12)
    lu, pivots = linalg.lu_factor(x)
    p, low, high = genesis.lu_unpack(lu, pivots)
    close(p @ low @ high, array, 1e-12)
    close(genesis.lu_solve(x, lu, pivots), numpy.eye(4), 1e-9)


def test_results_have_names_and_places():
    x = genesis.eye(3) * 2
    made = linalg.svd(x)
    assert made.S.tolist() == [2, 2, 2] and len(made) == 3 and made[1] is made.S
    out = genesis.empty(3, 3)
    assert linalg.inv(x, out=out) is out and out.tolist() == (genesis.eye(3) / 2).tolist()
    q, r = genesis.empty(3, 3), genesis.empty(3, 3)
    assert linalg.qr(x, out=(q, r))[0] is q and close(q @ r, x.numpy(), 1e-6) is None
    q, r = linalg.qr(x)
    q.mul_(0)  # a result is nobody else's memory
    assert not q.any() and r.any()


def test_memory_of_inputs_is_left_alone():
    factors = (linalg.svd, linalg.eigh, linalg.qr, linalg.cholesky, linalg.lu_factor)
    for call in (*factors, linalg.inv, linalg.det, linalg.pinv):
        x = genesis.tensor([[4.0, 1.0], [1.0, 3.0]])
        pending = x * 2
        call(pending), call(x)
        assert x.tolist() == [[4, 1], [1, 3]] and pending.tolist() == [[8, 2], [2, 6]]
    a = genesis.tensor([[2.0, 1.0], [0.0, 4.0]])
    b = genesis.tensor([[2.0], [4.0]])
    for _ in range(2):
        assert linalg.solve(a, b).tolist() == linalg.solve_triangular(a, b, upper=True).tolist()
    assert a.tolist() == [[2, 1], [0, 4]] and b.tolist() == [[2], [4]]


# ---- what is refused ----

NAN = genesis.full((2, 2), math.nan)
ONE = genesis.eye(2)
BATCH = genesis.stack([ONE, genesis.zeros(2, 2)])
SINGULAR = [
    (lambda: linalg.inv(BATCH[1]), r"linalg.inv: The diagonal element 1 is zero, the inversion"),
    (lambda: linalg.inv(BATCH), r"linalg.inv: \(Batch element 1\): The diagonal element 1 is zero"),
    (lambda: linalg.inv(genesis.ones(2, 2)), "diagonal element 2 is zero"),
    (lambda: linalg.inv_ex(BATCH, check_errors=True), r"linalg.inv_ex: \(Batch element 1\)"),
    (lambda: linalg.solve(BATCH, ONE), r"linalg.solve: \(Batch element 1\): The solver failed"),
    (lambda: linalg.matrix_power(BATCH, -1), "linalg.inv"),
    (lambda: linalg.cholesky(-BATCH), r"\(Batch element 0\): .* order 1 is not positive-definite"),
    (lambda: linalg.cholesky(genesis.tensor([[1.0, 2.0], [2.0, 1.0]])), "minor of order 2"),
    (lambda: linalg.cholesky(NAN), "minor of order 1"),
    (lambda: linalg.lu_factor(BATCH), r"\(Batch element 1\): U\[1,1\] is zero"),
    (lambda: linalg.svd(NAN), "non-finite values"),
    (lambda: linalg.svdvals(ONE * math.inf), "linalg.svdvals: .* non-finite values"),
    (lambda: linalg.eigh(BATCH * math.nan), r"linalg.eigh: \(Batch element 0\): .* non-finite"),
    (lambda: linalg.pinv(NAN), "linalg.pinv: .* non-finite values"),
    (lambda: linalg.lstsq(NAN, NAN), "linalg.lstsq: .* non-finite values"),
    (lambda: linalg.matrix_rank(NAN), "linalg.matrix_rank: .* non-finite values"),
    (lambda: linalg.cond(NAN), "linalg.cond: .* non-finite values"),
]


@pytest.mark.parametrize("case", SINGULAR, ids=lambda case: case[1][:40])
def test_singular_matrices(case):
    with pytest.raises(linalg.LinAlgError, match=case[1]):
        case[0]()


def test_errors_are_of_one_class():
    assert issubclass(linalg.LinAlgError, RuntimeError) and "LinAlgError" in linalg.__all__
    with pytest.raises(linalg.LinAlgError) as caught:
        linalg.inv(BATCH)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), linalg.LinAlgError)


def test_numbers_that_are_not_finite_go_through():
    """Where there is no iteration they are in the result, and nothing hangs."""
    for made in (linalg.inv(NAN), linalg.det(NAN), *linalg.qr(NAN), linalg.solve(NAN, ONE)):
        assert made.isnan().any()
    assert linalg.inv_ex(BATCH).info.tolist() == [0, 1]
    assert linalg.cholesky_ex(genesis.stack([ONE, -ONE])).info.tolist() == [0, 1]
    assert linalg.solve_ex(BATCH, ONE).info.tolist() == [0, 1]
    assert linalg.lu_factor_ex(genesis.ones(2, 2)).info == 2
    for order in ("fro", 1, math.inf):
        assert linalg.matrix_norm(NAN, order).isnan()


WRONG = [
    (lambda: linalg.inv(genesis.ones(2, 3)),
     genesis.ShapeError, "square matrices, but they are 2 by 3"),
    (lambda: linalg.det(genesis.ones(3)),
     genesis.ShapeError, r"at least 2 dimensions, not shape \(3,\)"),
    (lambda: linalg.svd(ONE.half()),
     TypeError, "svd is not defined for float16: convert to float32"),
    (lambda: linalg.eigh(ONE.bfloat16()), TypeError, "eigh is not defined for bfloat16"),
    (lambda: genesis.inverse(ONE.long()), TypeError, "inverse is not defined for int64"),
    (lambda: linalg.solve(ONE, ONE.double()), TypeError, "float32 and the other float64"),
    (lambda: linalg.solve(ONE, genesis.ones(3, 1)),
     genesis.ShapeError, r"\(2, 2\) do not fit .* \(3, 1\)"),
    (lambda: linalg.solve(genesis.ones(2, 2, 2), genesis.ones(3, 2, 1)),
     genesis.ShapeError, "do not go together"),
    (lambda: linalg.solve(ONE, genesis.ones(2), left=False),
     genesis.ShapeError, "left=False needs matrices"),
    (lambda: linalg.qr(ONE, "full"), ValueError, "'full' but expected one of 'reduced'"),
    (lambda: linalg.eigh(ONE, "X"), ValueError, "'L' or 'U', but got X"),
    (lambda: linalg.lu(ONE, pivot=False), RuntimeError, "without pivoting is not implemented"),
    (lambda: linalg.lu_solve(ONE, genesis.tensor([1, 2]), ONE), TypeError, "int32, not int64"),
    (lambda: genesis.lu_unpack(ONE, genesis.tensor([9, 9], dtype=genesis.int32)),
     ValueError, "out of range"),
    (lambda: genesis.lu_unpack(ONE, genesis.zeros(3, dtype=genesis.int32)),
     genesis.ShapeError, "do not fit"),
    (lambda: linalg.lstsq(genesis.ones(3, 2), ONE), genesis.ShapeError, r"size\(-2\)"),
    (lambda: linalg.lstsq(ONE, ONE, driver="best"), ValueError, "not 'best'"),
    (lambda: linalg.norm(BATCH, 2), genesis.ShapeError, "must be 1D or 2D. Got 3D"),
    (lambda: linalg.norm(ONE, "max"), ValueError, "order max is not supported"),
    (lambda: linalg.norm(ONE[0], "nuc"), ValueError, "of matrices"),
    (lambda: linalg.norm(BATCH, dim=(0, 1, 2)), ValueError, "length 1 or 2"),
    (lambda: linalg.matrix_norm(ONE, 3), ValueError, "order 3 is not supported"),
    (lambda: linalg.matrix_norm(ONE, dim=(0, -2)), ValueError, "must be different"),
    (lambda: linalg.matrix_norm(genesis.ones(0, 2), -math.inf), ValueError, "without elements"),
    (lambda: linalg.vector_norm(genesis.ones(0), math.inf),
     ValueError, "does not have an identity"),
    (lambda: linalg.vector_norm(genesis.ones(2).long()), TypeError, "not defined for int64"),
    (lambda: linalg.multi_dot([ONE]), ValueError, "at least 2 tensors"),
    (lambda: linalg.multi_dot([ONE, genesis.ones(3, 2)]),
     genesis.ShapeError, "tensor 1 of shape"),
    (lambda: linalg.matrix_power(genesis.ones(2, 3), 2),
     genesis.ShapeError, r"not shape \(2, 3\)"),
    (lambda: linalg.vander(genesis.ones(3), N=1), ValueError, "greater than 1"),
    (lambda: genesis.vander(ONE), genesis.ShapeError, "one-dimensional"),
    (lambda: linalg.tensorinv(genesis.ones(2, 3, 4)), genesis.ShapeError, "4 != 6"),
    (lambda: linalg.tensorinv(ONE, 0), ValueError, "strictly positive"),
    (lambda: linalg.tensorsolve(genesis.ones(2, 3), genesis.ones(2)),
     genesis.ShapeError, "requirement"),
    (lambda: linalg.eig(ONE), AttributeError, "complex numbers, which tensors do not have"),
]  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[2][:40])
def test_mistakes(case):
    with pytest.raises(case[1], match=case[2]):
        case[0]()


# ---- gradients beyond the samples ----


def test_the_gradient_of_a_singular_determinant():
    """It is the cofactors: of a matrix of rank n - 1 these are not 0."""
    for values in ([2.0, 3.0, 0.0], [2.0, 0.0, 0.0]):
        x = genesis.diag(genesis.tensor(values, dtype=genesis.float64)).requires_grad_()
        linalg.det(x).backward()
        expected = [values[1] * values[2], values[0] * values[2], values[0] * values[1]]
        close(x.grad, numpy.diag(expected), 1e-12)


def test_gradients_that_are_refused():
    x = genesis.ones(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="mode='complete' and nrows > ncols"):
        linalg.qr(x, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="not computed when mode='r'"):
        linalg.qr(x, "r").R.sum().backward()
    assert not linalg.matrix_rank(x).requires_grad and linalg.qr(x, "r").R.requires_grad
    info = linalg.inv_ex(genesis.eye(2).requires_grad_()).info
    assert not info.requires_grad and info == 0


def test_gradients_of_empty_matrices():
    for call in (linalg.det, linalg.inv, linalg.svdvals, linalg.cholesky, lambda x: linalg.qr(x).R):
        for shape in ((0, 2, 2), (2, 0, 0)):
            x = genesis.ones(shape, requires_grad=True)
            call(x).sum().backward()
            assert x.grad.shape == shape


# ---- threads, other libraries, devices ----


def test_threads():
    """Several at once, each with its own matrices."""
    array, (x, *_) = matrices((200, 8, 8), "float64")
    expected = linalg.inv(x).tolist()
    found = []

    def work():
        for _ in range(3):
            found.append(linalg.inv(x).tolist() == expected)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [True] * 12


@pytest.mark.skipif("IN_LINALG" in os.environ, reason="this is the process that it starts")
@pytest.mark.parametrize("choice", ["off", "own"])
def test_with_other_libraries(choice):
    """All of this file with our own routines, and with an OpenBLAS that only Genesis has loaded."""
    environment = {**os.environ, "GENESIS_BLAS": choice, "IN_LINALG": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout[-3000:]


def test_on_the_simulated_gpu():
    finished = simulate_script("device_linalg.py", SIM_GPU_SCHEDULE="random")
    assert not finished.stderr, finished.stderr
