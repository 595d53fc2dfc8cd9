"""Products of vectors and matrices, against NumPy; floating ones within the stated bound."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis

INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SHAPES = [
    ((3,), (3,)), ((0,), (0,)), ((1,), (1,)), ((70000,), (70000,)),
    ((5,), (5, 7)), ((31, 33), (33,)), ((300, 257), (257,)), ((257,), (257, 300)),
    ((2, 40000), (40000,)), ((40000,), (40000, 3)),
    ((1, 1), (1, 1)), ((2, 3), (3, 4)), ((31, 33), (33, 37)), ((13, 1), (1, 17)), ((1, 7), (7, 1)),
    ((0, 3), (3, 4)), ((3, 0), (0, 4)), ((3, 4), (4, 0)), ((4, 0), (0,)),
    ((145, 300), (300, 193)), ((127, 513), (513, 129)), ((64, 64), (64, 64)),
    ((2, 3, 5), (5, 7)), ((4, 1, 3, 5), (6, 5, 2)), ((5, 2, 3), (3,)), ((3,), (4, 3, 2)),
    ((2, 0, 3, 4), (4, 5)), ((3, 1, 2), (3, 2, 1)), ((1, 8, 9), (7, 9, 8)), ((3, 50, 40), (40, 60)),
    ((2, 1, 40, 50), (3, 50, 40)), ((200, 4, 4), (200, 4, 4)),
]  # fmt: skip


def make(rng, dtype: str, shape) -> tuple[genesis.Tensor, numpy.ndarray]:
    """A tensor, and its exact elements in a type that NumPy has."""
    if dtype in FLOATS:
        scale = 4 if dtype == "float16" else 1000  # which no sum leaves
        wide = rng.standard_normal(shape) * rng.choice([1, scale], size=shape)
        tensor = genesis.tensor(wide).to(getattr(genesis, dtype))
        return tensor, numpy.array(tensor.double().tolist()).reshape(shape)
    low, high = (0, 2) if dtype == "bool" else (numpy.iinfo(dtype).min, numpy.iinfo(dtype).max)
    kind = "uint64" if dtype == "uint64" else "int64"
    array = rng.integers(low, high, shape, dtype=kind, endpoint=dtype != "bool").astype(dtype)
    return genesis.tensor(array), array


def check(made: genesis.Tensor, a: numpy.ndarray, b: numpy.ndarray, dtype: str) -> None:
    expected = numpy.matmul(a, b)
    assert made.shape == expected.shape and made.dtype.name == dtype
    if dtype not in FLOATS:
        numpy.testing.assert_array_equal(made.numpy(), expected)
        return
    unit = {"float64": 2.0**-53}.get(dtype, 2.0**-24)
    n = a.shape[-1]
    bound = n * unit * 1.01 * numpy.matmul(abs(a), abs(b))
    last = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype, 0.0)
    bound += last * abs(expected) * 1.01 + (2.0**-24 if dtype == "float16" else 0)
    if dtype == "float64":
        bound *= 2  # NumPy's is not exact, either
    got = numpy.array(made.double().tolist()).reshape(made.shape)
    assert (abs(got - expected) <= bound).all(), (abs(got - expected) / bound).max()


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_differential(dtype):
    rng = numpy.random.default_rng(5)
    for first, second in SHAPES:
        (x, a), (y, b) = make(rng, dtype, first), make(rng, dtype, second)
        check(x @ y, a, b, dtype)
        out = genesis.empty((x @ y).shape, dtype=x.dtype)
        assert genesis.matmul(x, y, out=out) is out
        check(out, a, b, dtype)


VIEWS = {
    "plain": lambda shape: (shape, (slice(None), slice(None)), False),
    "transposed": lambda shape: (shape[::-1], (slice(None), slice(None)), True),
    "columns": lambda shape: ((shape[0], shape[1] + 5), (slice(None), slice(2, -3)), False),
    "rows": lambda shape: ((2 * shape[0], shape[1]), (slice(None, None, 2), slice(None)), False),
    "steps": lambda shape: ((shape[0], 3 * shape[1]), (slice(None), slice(None, None, 3)), False),
    "reversed": lambda shape: (shape, (slice(None, None, -1), slice(None)), False),
    "mirrored": lambda shape: (shape[::-1], (slice(None), slice(None, None, -1)), True),
    "expanded": lambda shape: ((1, shape[1]), (slice(None), slice(None)), False),
}


@pytest.mark.parametrize("dtype", ["int8", "int32", "bfloat16", "float32"])
def test_differential_views(dtype):
    rng = numpy.random.default_rng(6)

    def view(name: str, shape):
        base, key, is_turned = VIEWS[name](shape)
        x, a = make(rng, dtype, base)
        x, a = x[key], a[key]
        if is_turned:
            x, a = x.T, a.T
        return x.expand(shape), numpy.broadcast_to(a, shape)

    for rows, inner, columns in [(40, 50, 60), (5, 3, 2), (1, 70, 30), (30, 70, 1)]:
        for first in VIEWS:
            for second in VIEWS:
                (x, a), (y, b) = view(first, (rows, inner)), view(second, (inner, columns))
                check(x @ y, a, b, dtype)
        x, a = view("plain", (rows, inner))
        y, b = view("plain", (inner, columns))
        for name in ("plain", "transposed", "columns", "rows", "steps", "reversed", "mirrored"):
            out, _ = view(name, (rows, columns))
            genesis.matmul(x, y, out=out)
            check(out, a, b, dtype)


def test_tall_and_long():
    """A vector's product in several stretches of rows and of inner indices, once and in a batch."""
    rows = genesis.arange(300, dtype=genesis.float64)[:, None]
    matrix, vectors = rows.expand(300, 33000), genesis.ones(2, 33000, 1, dtype=rows.dtype)
    vectors[1] = 2
    expected = (rows * 33000).tolist()
    assert (matrix @ vectors[0]).tolist() == expected
    made = matrix.expand(2, 300, 33000) @ vectors
    assert made[0].tolist() == expected and (made[1] / 2).tolist() == expected


def test_a_turned_column_is_a_row():
    """A step of 1 both ways: added in the order of the vector's elements, to the bit."""
    rng = numpy.random.default_rng(7)
    x, y = (genesis.tensor(rng.random((5000, 1)).astype("float32")) for _ in range(2))
    assert x.T.stride() == (1, 1)
    assert (x.T @ y).item() == (x[:, 0] @ y[:, 0]).item()


def test_without_openblas():
    """The same by our own loops."""
    environment = os.environ | {"GENESIS_BLAS": "off"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    command += ["-k", "differential and (float32 or float64)"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_batches(data):
    dtype = data.draw(st.sampled_from(["int16", "int64", "float32"]))
    size = st.integers(0, 9)
    rows, inner, columns = data.draw(size), data.draw(size), data.draw(size)
    batch = data.draw(st.lists(st.integers(0, 4), max_size=3))
    shapes = []
    for matrix in ((rows, inner), (inner, columns)):
        own = batch[data.draw(st.integers(0, len(batch))) :]
        shapes.append((*[data.draw(st.sampled_from([1, n])) for n in own], *matrix))
    rng = numpy.random.default_rng(data.draw(st.integers(0, 1000)))
    (x, a), (y, b) = (make(rng, dtype, shape) for shape in shapes)
    order = data.draw(st.permutations(range(x.ndim)))
    back = [order.index(i) for i in range(x.ndim)]
    x = x.permute(order).contiguous().permute(back)  # the same, with other strides
    check(x @ y, a, b, dtype)


def test_values_that_are_not_numbers():
    inf, nan = float("inf"), float("nan")
    x = genesis.tensor([[inf, 1.0], [0.0, nan], [1.0, 2.0]])
    y = genesis.ones(2, 3)
    assert str((x @ y)[:, 0].tolist()) == "[inf, nan, 3.0]"
    big = genesis.full((70, 70), 1.0)
    big[3, 3] = nan
    made = (big @ genesis.ones(70, 70)).isnan()
    assert made[3].all().item() and made.sum().item() == 70


# ---- operands that wait, outputs that overlap ----


def test_pending_operands():
    x = genesis.arange(6, dtype=genesis.float32).reshape(2, 3)
    made = (x + 1) @ (x * 2).T
    numpy.testing.assert_array_equal(made.numpy(), (x.numpy() + 1) @ (x.numpy() * 2).T)
    later = x + 1  # waits, and reads x
    genesis.matmul(genesis.eye(2), genesis.ones(2, 3), out=x)
    assert later.tolist() == [[1, 2, 3], [4, 5, 6]] and x.tolist() == [[1] * 3] * 2


@pytest.mark.parametrize("n", [3, 60, 200])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_out_overlaps(dtype, n):
    rng = numpy.random.default_rng(7)
    a = rng.integers(-3, 4, (n, n)).astype(dtype)
    b = rng.integers(-3, 4, (n, n)).astype(dtype)
    x, y = genesis.tensor(a), genesis.tensor(b)
    numpy.testing.assert_array_equal(genesis.matmul(x, y, out=x).numpy(), a @ b)
    x = genesis.tensor(a)
    numpy.testing.assert_array_equal(x.matmul(x.T, out=x).numpy(), a @ a.T)
    whole = numpy.concatenate([a, b])
    shared = genesis.from_numpy(whole)
    same = genesis.from_numpy(whole)  # the same bytes, as another storage
    genesis.matmul(same[:n], same[n:], out=shared[1 : n + 1])
    numpy.testing.assert_array_equal(whole[1 : n + 1], a @ b)


def test_numpy_operands():
    a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    x = genesis.tensor(a)
    for made in (x @ a.T, a @ x.T, genesis.matmul(a, x.T), x.matmul(a.T)):
        assert isinstance(made, genesis.Tensor) and made.tolist() == (a @ a.T).tolist()
    with pytest.raises(TypeError, match="float32 of shape .2, 3. and one float64 of .3, 2."):
        x @ a.T.astype("float64")


# ---- the other names ----


def test_other_products():
    rng = numpy.random.default_rng(8)
    a, b = rng.integers(-9, 9, (4, 5)), rng.integers(-9, 9, (5, 6))
    x, y = genesis.tensor(a), genesis.tensor(b)
    assert genesis.mm(x, y).tolist() == x.mm(y).tolist() == (a @ b).tolist()
    assert genesis.mv(x, y[:, 0]).tolist() == (a @ b[:, 0]).tolist()
    assert genesis.dot(x[0], y[:, 0]).tolist() == x[0].dot(y[:, 0]).tolist() == a[0] @ b[:, 0]
    assert genesis.outer(x[0], y[0]).tolist() == numpy.outer(a[0], b[0]).tolist()
    assert genesis.outer(x[0], y[0] * 0.5).dtype == genesis.float32
    c, d = rng.integers(-9, 9, (3, 2, 5)), rng.integers(-9, 9, (3, 5, 4))
    z, w = genesis.tensor(c), genesis.tensor(d)
    assert genesis.bmm(z, w).tolist() == z.bmm(w).tolist() == (c @ d).tolist()
    out = genesis.empty(3, 2, 4, dtype=genesis.int64)
    assert genesis.bmm(z, w, out=out) is out and out.tolist() == (c @ d).tolist()


@pytest.mark.parametrize(
    ("first", "second", "dims"),
    [
        ((2, 3, 4), (3, 4, 5), 2), ((2, 3), (4,), 0), ((3, 4), (4, 3), ([0, 1], [1, 0])),
        ((2, 3, 4), (4, 3), ([1, 2], [1, 0])), ((2, 3), (3, 2), ([-1], [0])), ((2, 0), (0, 3), 1),
        ((), (), 0), ((5,), (5,), 1), ((2, 3, 4), (5, 3), (1, 1)),
    ],
)  # fmt: skip
def test_tensordot(first, second, dims):
    rng = numpy.random.default_rng(9)
    a, b = rng.integers(-9, 9, first), rng.integers(-9, 9, second)
    expected = numpy.tensordot(a, b, dims)
    made = genesis.tensordot(genesis.tensor(a), genesis.tensor(b), dims)
    assert made.shape == expected.shape and made.tolist() == expected.tolist()
    out = genesis.empty(expected.shape, dtype=genesis.int64)
    assert genesis.tensor(a).tensordot(genesis.tensor(b), dims, out=out) is out
    assert out.tolist() == expected.tolist()


def test_errors():
    x, y = genesis.zeros(2, 3), genesis.zeros(4, 5)
    cases = [
        (genesis.ShapeError, r"matmul: shapes \(2, 3\) and \(4, 5\): the last size of", x, y),
        (genesis.ShapeError, r"\(2, 3\) and \(2,\): the last sizes must be equal", x, y[0, :2]),
        (genesis.ShapeError, r"\(\) and \(2, 3\): both need at least 1", x[0, 0], x),
        (genesis.ShapeError, r"\(2, 1, 3\) and \(5, 3, 2\): the sizes before the last two",
         genesis.zeros(2, 1, 3), genesis.zeros(5, 3, 2)),
        (TypeError, r"float32 of shape \(2, 3\) and one int64 of \(3, 2\)", x, x.T.long()),
    ]  # fmt: skip
    for kind, text, first, second in cases:
        with pytest.raises(kind, match=text):
            genesis.matmul(first, second)
    for wrong, text in (
        (lambda: genesis.matmul(x, x.T, out=genesis.zeros(3, 2)), r"\(2, 2\), the output \(3, 2\)"),
        (
            lambda: genesis.bmm(x, x.T),
            r"bmm: the operands must have 3 and 3 dimensions, not shapes",
        ),
        (lambda: genesis.bmm(genesis.zeros(2, 1, 1), genesis.zeros(1, 1, 1)), "2 matrices and 1"),
        (lambda: genesis.dot(x[0], y[0]), r"\(3,\) and \(5,\)"),
        (lambda: genesis.tensordot(x, y, 1), r"dimensions \[1\] of shape \(2, 3\) and \[0\]"),
        (lambda: genesis.tensordot(x, x, ([0], [0]), out=x), "tensordot: the result has shape"),
    ):
        with pytest.raises(genesis.ShapeError, match=text):
            wrong()
    with pytest.raises(TypeError, match="the result is float32, the output float64"):
        genesis.matmul(x, x.T, out=genesis.zeros(2, 2, dtype=genesis.float64))
    with pytest.raises(TypeError, match=r"takes tensors or arrays, not 3"):
        genesis.matmul(x, 3)
    with pytest.raises(TypeError):
        x @ 3
    with pytest.raises(TypeError, match="out is a tensor, not"):
        x.matmul(x.T, out=3)
    with pytest.raises(TypeError, match="has no argument 'to'"):
        x.matmul(x.T, to=x)
    with pytest.raises(ValueError, match="several elements"):
        genesis.matmul(x, x.T, out=genesis.zeros(1, 2).expand(2, 2))
    with pytest.raises(IndexError, match="dimension 2 is out of range for input of 2"):
        genesis.tensordot(x, y, ([2], [0]))
    with pytest.raises(ValueError, match="there twice"):
        genesis.tensordot(x, y, ([0, 0], [0, 1]))
    with pytest.raises(ValueError, match="3 dimensions of shapes"):
        genesis.tensordot(x, y, 3)
    frozen = numpy.zeros((2, 2), dtype=numpy.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        genesis.matmul(x, x.T, out=genesis.from_numpy(frozen))


# ---- threads, processes, libraries ----


def test_many_threads_at_once():
    rng = numpy.random.default_rng(10)
    a = rng.integers(-3, 4, (150, 150)).astype("float32")
    x, expected, wrong = genesis.tensor(a), a @ a, []

    def work() -> None:
        for _ in range(10):
            if not numpy.array_equal((x @ x).numpy(), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORK = """
import os, numpy, genesis
a = numpy.ones((300, 300), dtype=numpy.float32)
x = genesis.tensor(a)
expected = [300.0] * 300
def products():
    ok = (x @ x)[7].tolist() == expected and (x.int() @ x.int())[7].tolist() == expected
    return ok and (x @ x[0]).tolist() == expected and float((a @ a)[3, 3]) == 300
assert products()
child = os.fork()
if child == 0:
    os._exit(0 if products() and products() else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert products()
"""


@pytest.mark.parametrize("blas", ["auto", "off", "own"])
def test_a_forked_child(fresh, blas):
    fresh(FORK, GENESIS_BLAS=blas)


def test_openblas_is_loaded_late(fresh):
    code = """
import genesis
def is_loaded():
    return "openblas" in open("/proc/self/maps").read()
assert not is_loaded()
x = genesis.ones(10, 10)
x @ x
assert not is_loaded()
genesis.cpu.set_num_threads(2)
x = genesis.ones(300, 300)
assert (x @ x)[0, 0].item() == 300
print(is_loaded())
"""
    from genesis import _wheels

    assert fresh(code).stdout.strip() == str(bool(_wheels.openblas()))
    assert fresh(code, GENESIS_BLAS="off").stdout.strip() == "False"


def test_a_wrong_openblas_is_one_warning(fresh, tmp_path):
    code = """
import genesis
x = genesis.ones(300, 300)
assert (x @ x)[0, 0].item() == 300 and (x.double() @ x.double())[0, 0].item() == 300
"""
    for wrong in (tmp_path / "libopenblas.so", "libm.so.6"):
        run = fresh(code, GENESIS_BLAS=str(wrong))
        assert run.stderr.count("is no OpenBLAS with threads") == 1


def test_numpy_keeps_its_threads(fresh, tmp_path):
    """NumPy's own copy serves, too, and has as many threads afterwards as before."""
    from genesis import _wheels

    own = [path for path in _wheels.openblas() if "numpy.libs" in path]
    if not own:
        pytest.skip("this NumPy brings no OpenBLAS along")
    code = f"""
import ctypes, numpy, genesis
library = ctypes.CDLL({own[0]!r})
count = library.scipy_openblas_get_num_threads64_
before = count()
x = genesis.ones(300, 300)
assert (x @ x)[0, 0].item() == 300 and (x.double() @ x.double())[5, 0].item() == 300
assert count() == before
"""
    run = fresh(code, GENESIS_BLAS=own[0], GENESIS_LOG="info")
    assert "libscipy_openblas64_" in run.stderr


SHARED = """
import threading, numpy, genesis
genesis.cpu.set_num_threads(2)
rng = numpy.random.default_rng(12)
def whole(*shape):
    return rng.integers(-3, 4, shape).astype("float32")
def check(a, b):
    for dtype in ("float32", "float64"):
        first, second = a.astype(dtype), b.astype(dtype)  # which keep their strides
        made = genesis.from_numpy(first) @ genesis.from_numpy(second)
        assert numpy.array_equal(made.numpy(), a @ b), (a.shape, b.shape, dtype)
a, b, large = whole(203, 137), whole(137, 211), whole(819, 821)
for first, second in ((a, b), (b.T, a.T), (a.T, whole(211, 203).T), (whole(2, 3, 203, 137), b),
                      (whole(50, 5, 7), whole(50, 7, 6)), (large, large.T), (large.T, large),
                      (large, large[3]), (large[:, ::2], large[:, ::2].T),
                      (whole(2, 819, 821), large.T)):
    check(first, second)
threads = [threading.Thread(target=check, args=(a, b)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_shared_openblas(fresh):
    """NumPy's copy, and its threads for the largest products; where nobody has one, our own."""
    from genesis import _wheels

    if not any("numpy.libs" in path for path in _wheels.openblas()):
        pytest.skip("this NumPy brings no OpenBLAS along")
    run = fresh(SHARED, GENESIS_LOG="info")
    assert "libscipy_openblas64_" in run.stderr and "the largest by its own threads" in run.stderr
    run = fresh(SHARED, GENESIS_BLAS="own", GENESIS_LOG="info")
    assert "matrix products:" in run.stderr and "by its own threads" not in run.stderr
    code = "import genesis; x = genesis.ones(300, 300); assert (x @ x)[0, 0].item() == 300"
    run = fresh(code, GENESIS_LOG="info")
    assert "matrix products:" in run.stderr and "by its own threads" not in run.stderr
