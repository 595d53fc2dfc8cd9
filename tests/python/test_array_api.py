"""genesis.array_api beside NumPy, whose main namespace follows the same standard."""

from __future__ import annotations

import inspect

import numpy
import pytest

import genesis
import genesis.array_api as ours

NUMBERS = numpy.random.default_rng(11)
ARRAYS = {
    "x": NUMBERS.normal(size=(3, 4)).round(1),
    "y": NUMBERS.normal(size=(3, 4)).round(1) + 3,
    "u": NUMBERS.random((3, 4)) * 0.9,
    "i": NUMBERS.integers(-5, 6, (3, 4)),
    "j": NUMBERS.integers(1, 4, (3, 4)),
    "b": NUMBERS.random((3, 4)) < 0.5,
    "c": NUMBERS.normal(size=(2, 1, 4)),
    "v": numpy.array([4.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 0.0]),
    "w": numpy.array([-1.0, 2.0, 5.0, 1.0, 1.0, -0.0]),
    "s": numpy.array([3, 1, 3, 2, 1, 3]),
    "n": numpy.zeros((0, 3)),
}

# What the standard asks for; each line is evaluated with both namespaces as xp.
CASES = """
xp.abs(i), xp.negative(x), xp.positive(v), xp.sign(i), xp.square(i), xp.reciprocal(y)
xp.acos(u), xp.acosh(y + 1), xp.asin(u), xp.asinh(x), xp.atan(x), xp.atan2(x, y), xp.atanh(u)
xp.cos(x), xp.cosh(x), xp.sin(x), xp.sinh(x), xp.tan(x), xp.tanh(x), xp.atan2(1.0, y)
xp.exp(x), xp.expm1(x), xp.log(y), xp.log1p(u), xp.log2(y), xp.log10(y), xp.sqrt(y)
xp.add(x, y), xp.subtract(i, j), xp.multiply(i, 2), xp.divide(x, y), xp.pow(y, x), xp.pow(j, 2)
xp.floor_divide(i, j), xp.remainder(i, j), xp.floor_divide(x, y), xp.remainder(x, y)
xp.ceil(x), xp.floor(x), xp.round(x * 2.5), xp.trunc(x), xp.ceil(i), xp.round(i)
xp.bitwise_and(i, j), xp.bitwise_or(i, 3), xp.bitwise_xor(i, j), xp.bitwise_invert(i)
xp.bitwise_left_shift(i, j), xp.bitwise_right_shift(i, j), xp.bitwise_invert(b)
xp.equal(i, j), xp.not_equal(i, j), xp.less(x, y), xp.less_equal(i, 2), xp.greater(i, j)
xp.greater_equal(x, y), xp.isfinite(v), xp.isinf(v), xp.isnan(v), xp.signbit(v), xp.signbit(w)
xp.logical_and(b, i > 0), xp.logical_or(b, i > 0), xp.logical_xor(b, i > 0), xp.logical_not(b)
xp.maximum(x, y), xp.minimum(i, 1), xp.clip(x, -0.5, 0.5), xp.clip(x, max=y), xp.clip(i, min=0)
xp.copysign(w, v), xp.copysign(w, -1.0), xp.hypot(x, y), xp.hypot(1.0, y), xp.logaddexp(x, y)
xp.nextafter(w, v), xp.nextafter(v, w), xp.nextafter(x, 0.0), xp.where(b, x, y), xp.where(b, i, 0)
xp.arange(5), xp.arange(2, 9, 3), xp.arange(5, 1), xp.arange(1.0, 0.0, -0.25, dtype=xp.float64)
xp.linspace(0, 1, 5, dtype=xp.float64), xp.linspace(0, 1, 4, endpoint=False, dtype=xp.float64)
xp.eye(3, dtype=xp.int64), xp.eye(2, 4, k=1, dtype=xp.float64), xp.eye(3, 2, k=-1, dtype=xp.int8)
xp.zeros((2, 0)).shape, xp.ones(3, dtype=xp.int32), xp.full((2, 2), 7), xp.full(2, True)
xp.empty((2, 3)).shape, xp.empty_like(i, dtype=xp.float64).shape, xp.zeros_like(i), xp.ones_like(b)
xp.full_like(i, 3, dtype=xp.float64), xp.meshgrid(v, w[:2]), xp.meshgrid(v, w, indexing="ij")
xp.tril(x), xp.triu(x, k=1), xp.tril(c, k=-1), xp.asarray([[1, 2], [3, 4]]), xp.asarray(True)
xp.astype(x, xp.int64), xp.astype(i, xp.float32), xp.astype(b, xp.uint8), xp.astype(i, xp.bool)
xp.broadcast_arrays(x, c), xp.broadcast_to(c, (2, 3, 4)), xp.can_cast(xp.int8, xp.int16)
xp.can_cast(xp.float64, xp.float32), xp.can_cast(i, xp.int8), xp.isdtype(xp.int8, "integral")
xp.isdtype(xp.float32, ("bool", "real floating")), xp.isdtype(xp.bool, "numeric")
xp.finfo(xp.float32).eps, xp.finfo(x.dtype).bits, xp.iinfo(xp.int16).min, xp.iinfo(i.dtype).max
xp.take(x, s - 1, axis=0), xp.take(w, s), xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0)
x @ xp.matrix_transpose(y), xp.matmul(i, i.T), xp.matrix_transpose(c), xp.vecdot(x, y)
xp.vecdot(x, y, axis=-2), xp.tensordot(x, y, axes=2), xp.tensordot(x, y, axes=((1,), (1,)))
xp.concat((x, y)), xp.concat((x, y), axis=1), xp.concat((x, w), axis=None), xp.stack((x, y), axis=1)
xp.expand_dims(x, axis=1), xp.expand_dims(x, axis=-1), xp.squeeze(c, 1), xp.squeeze(c, axis=(1,))
xp.flip(x), xp.flip(c, axis=-1), xp.flip(c, axis=(0, 2)), xp.moveaxis(c, 0, -1)
xp.permute_dims(c, (2, 0, 1)), xp.repeat(i, 2), xp.repeat(i, xp.asarray([1, 0, 2]), axis=0)
xp.reshape(x, (4, 3)), xp.reshape(x, (-1,), copy=True), xp.reshape(x, (2, -1), copy=False)
xp.roll(x, 1), xp.roll(x, (1, -2), axis=(0, 1)), xp.roll(x, 2, axis=1), xp.tile(i, (2, 1, 2))
xp.unstack(x), xp.unstack(c, axis=2), xp.argmax(x), xp.argmax(x, axis=1, keepdims=True)
xp.argmin(i, axis=0), xp.argmin(x, keepdims=True), xp.count_nonzero(i, axis=1), xp.nonzero(b)
xp.count_nonzero(b, keepdims=True), xp.searchsorted(xp.sort(w), x), xp.sort(s, descending=True)
xp.searchsorted(s, s, side="right", sorter=xp.argsort(s)), xp.sort(x, axis=0), xp.argsort(s)
xp.sort(xp.unique_values(s)), xp.unique_counts(s).counts, xp.unique_inverse(s).inverse_indices
xp.unique_all(s).indices, xp.unique_all(i).values, xp.unique_all(i).counts
xp.cumulative_sum(s), xp.cumulative_sum(x, axis=1, include_initial=True)
xp.cumulative_prod(i, axis=0), xp.cumulative_prod(y, axis=-1, include_initial=True)
xp.max(x), xp.max(i, axis=1, keepdims=True), xp.min(c, axis=(0, 2)), xp.min(x, axis=())
xp.sum(x, axis=0), xp.sum(i), xp.sum(x, axis=(), keepdims=True), xp.sum(n), xp.sum(i, dtype=xp.int8)
xp.prod(y, axis=(0, 1)), xp.prod(i, axis=1), xp.prod(n, axis=0), xp.mean(x), xp.mean(c, axis=(0, 1))
xp.var(x), xp.var(x, axis=0, correction=1.0, keepdims=True), xp.std(x, axis=1), xp.var(x, axis=())
xp.all(b, axis=0), xp.any(b, axis=1, keepdims=True), xp.all(n), xp.any(i), xp.all(b, axis=())
xp.diff(x), xp.diff(x, axis=0, n=2), xp.diff(s, prepend=xp.asarray([0]), append=xp.asarray([9]))
xp.add(xp.asarray(300, dtype=xp.int16), xp.astype(j, xp.uint8)), xp.clip(x), xp.hypot(v, w)
xp.where(b, xp.astype(i, xp.int8), s[0]), xp.signbit(xp.sinh(v)), xp.hypot(w, v)
xp.greater(i[0, 0] * 0 - 4, xp.astype(j, xp.uint8)), xp.hypot(x[0, 0], xp.astype(y, xp.float32))
xp.matmul(x, xp.astype(c[0, ...].T, xp.float32)), xp.tensordot(i, xp.astype(j, xp.int8), axes=2)
xp.vecdot(i, xp.astype(j, xp.int8)), xp.conj(i), xp.real(x)
xp.linalg.det(x[:, :3]), xp.linalg.inv(x[:, :3]), xp.linalg.slogdet(x[:, :3]).logabsdet
xp.linalg.solve(x[:, :3], w[:3]), xp.linalg.solve(x[:, :3], y), xp.linalg.pinv(x)
xp.linalg.solve(xp.stack((x[:, :3], y[:, :3], u[:, :3])), xp.eye(3, dtype=xp.float64))
xp.linalg.cholesky(x @ x.T), xp.linalg.cholesky(x @ x.T, upper=True), xp.linalg.eigvalsh(x @ x.T)
xp.linalg.eigh(x @ x.T).eigenvalues, xp.abs(xp.linalg.eigh(x @ x.T).eigenvectors)
xp.linalg.svdvals(c), xp.linalg.svd(x, full_matrices=False).S, xp.abs(xp.linalg.svd(x).U)
xp.abs(xp.linalg.qr(x).R), xp.abs(xp.linalg.qr(x.T, mode="complete").Q[:, :3])
xp.linalg.matrix_norm(c), xp.linalg.matrix_norm(x, ord="nuc"), xp.linalg.matrix_norm(x, ord=1)
xp.linalg.matrix_norm(x, ord=-xp.inf, keepdims=True), xp.linalg.matrix_norm(c, ord=2)
xp.linalg.vector_norm(x), xp.linalg.vector_norm(x, axis=0), xp.linalg.vector_norm(c, axis=(0, 2))
xp.linalg.vector_norm(x, ord=1, keepdims=True), xp.linalg.vector_norm(x, axis=1, ord=xp.inf)
xp.linalg.matrix_power(i[:, :3], 3), xp.linalg.matrix_rank(x), xp.linalg.matrix_rank(x, rtol=0.9)
xp.linalg.trace(x), xp.linalg.trace(i, offset=1), xp.linalg.diagonal(x, offset=-1)
xp.linalg.outer(w, s), xp.linalg.cross(x[:, :3], y[:, :3]), xp.linalg.cross(x, y, axis=0)
xp.linalg.matmul(x, y.T), xp.linalg.matrix_transpose(c), xp.linalg.vecdot(x, y)
xp.linalg.tensordot(x, y, axes=2), xp.linalg.cross(i[:, :3], x[:, :3])
xp.e, xp.pi, xp.inf, xp.newaxis is None, x[xp.newaxis, ...], xp.nan != xp.nan
""".strip().splitlines()


def plain(made) -> list:
    """Results as arrays and numbers, one after the other."""
    if isinstance(made, (tuple, list)):
        return [part for one in made for part in plain(one)]
    return [made.numpy() if isinstance(made, genesis.Tensor) else made]


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    tensors = {name: genesis.tensor(array) for name, array in ARRAYS.items()}
    with numpy.errstate(all="ignore"):
        expected = plain(eval(case, {"xp": WithStandard(), **ARRAYS}))
    made = plain(eval(case, {"xp": ours, **tensors}))
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        assert numpy.shape(one) == numpy.shape(other), case
        if isinstance(one, numpy.ndarray) and isinstance(other, numpy.ndarray | numpy.generic):
            assert one.dtype == other.dtype, case
        numpy.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13, err_msg=case)
        if isinstance(one, numpy.ndarray) and one.dtype.kind == "f":
            assert (numpy.signbit(one) == numpy.signbit(other)).all() or "sign" not in case


class WithStandard:
    """NumPy, with what it leaves out of the standard, or has in another way."""

    def __getattr__(self, name):
        return getattr(numpy, name)

    def sort(self, x, axis=-1, descending=False):
        made = numpy.sort(x, axis)
        return numpy.flip(made, axis) if descending else made

    def reshape(self, x, shape, copy=None):
        return numpy.reshape(x, shape, copy=copy)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("exponent", "expected"),
    [(0.5, [0, 0, numpy.inf, numpy.inf, 2]), (-0.5, [numpy.inf, numpy.inf, 0, 0, 0.5])],
)
def test_pow_is_no_square_root(exponent, expected, dtype):
    """Of these two numbers genesis.pow() makes sqrt() and rsqrt(): other ones of -0 and -inf."""
    dtype = getattr(ours, dtype)
    x = ours.asarray([-0.0, 0.0, -ours.inf, ours.inf, 4.0], dtype=dtype)
    made = ours.pow(x, exponent)
    assert made.dtype == dtype and not ours.any(ours.signbit(made))
    assert made.tolist() == expected
    assert ours.all(ours.isnan(ours.pow(ours.asarray([-4.0, ours.nan], dtype=dtype), exponent)))
    assert ours.pow(ours.asarray([4, 9]), exponent).dtype == ours.float32


def test_info():
    info = genesis.zeros(1).__array_namespace__().__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16,
    }  # fmt: skip
    assert info.default_device() == genesis.device("cpu") and info.devices()[0] == "cpu"
    assert info.default_dtypes() == {
        "real floating": ours.float32, "integral": ours.int64, "indexing": ours.int64,
    }  # fmt: skip
    every = info.dtypes()
    unsigned = {"uint8", "uint16", "uint32", "uint64"}
    signed = {"int8", "int16", "int32", "int64"}
    assert set(every) == {"bool", "float32", "float64"} | signed | unsigned
    assert all(getattr(ours, name) is dtype for name, dtype in every.items())
    two = info.dtypes(kind=("bool", "unsigned integer"))
    assert two == {name: getattr(ours, name) for name in ("bool", *unsigned)}
    assert info.dtypes(kind="complex floating") == {}


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers(name):
    """Sums stay unsigned; no signed type is promoted with uint64."""
    dtype = getattr(ours, name)
    x = ours.asarray([numpy.iinfo(name).max, 1, 2], dtype=dtype)
    array = numpy.asarray(x)
    for one, two in [
        (ours.sum, numpy.sum),
        (ours.prod, numpy.prod),
        (ours.cumulative_sum, numpy.cumsum),
        (ours.cumulative_prod, numpy.cumprod),
    ]:
        made, expected = one(x), two(array, dtype="uint64")
        assert made.dtype == ours.uint64 and made.tolist() == expected.tolist()  # fmt: skip
    assert ours.sum(x, dtype=dtype).dtype == dtype
    assert ours.sum(x > 0).dtype == ours.int64
    assert ours.isdtype(dtype, "unsigned integer") and not ours.isdtype(dtype, "signed integer")
    assert ours.iinfo(dtype).min == 0 and ours.iinfo(dtype).max == numpy.iinfo(name).max
    assert ours.can_cast(dtype, ours.uint64) and ours.can_cast(dtype, ours.float32)
    assert ours.can_cast(dtype, ours.int64) == (name != "uint64")
    assert not ours.can_cast(ours.int64, dtype) and not ours.can_cast(ours.int8, dtype)
    if name == "uint64":
        with pytest.raises(TypeError, match="no common type"):
            ours.result_type(dtype, ours.int8)


def test_the_namespace_of_a_tensor():
    x = genesis.zeros(2)
    assert x.__array_namespace__() is ours is genesis.array_api
    assert x.__array_namespace__(api_version="2025.12") is ours
    older = x.__array_namespace__(api_version="2024.12")
    assert older.__array_api_version__ == "2024.12" and older.zeros is ours.zeros
    assert older is x.__array_namespace__(api_version="2024.12")
    for name in ("meshgrid", "broadcast_arrays"):  # lists until 2024.12, tuples since
        one, other = getattr(older, name)(x, x), getattr(ours, name)(x, x)
        assert isinstance(one, list) and isinstance(other, tuple) and len(one) == len(other) == 2
    one, other = (xp.__array_namespace_info__().devices() for xp in (older, ours))
    assert isinstance(one, list) and isinstance(other, tuple) and tuple(one) == other
    with pytest.raises(ValueError, match=r"not in '1999.01'"):
        x.__array_namespace__(api_version="1999.01")
    assert x.to_device("cpu").data_ptr() == x.data_ptr()
    assert x[:1].__complex__() == 0j
    with pytest.raises(ValueError, match="to_device"):
        x.to_device("cpu", stream=3)
    assert sorted(ours.__all__) == sorted(set(ours.__all__)) and "all" in ours.__all__
    assert all(hasattr(ours, name) for name in ours.__all__)


def test_linear_algebra_is_an_extension():
    x = genesis.eye(2)
    space = x.__array_namespace__(api_version="2024.12").linalg
    assert space is ours.linalg is genesis.array_api.linalg
    missing = {"eig", "eigvals"}  # of complex numbers
    assert {*space.__all__}.isdisjoint(missing)
    for name, fields in (
        ("eigh", ("eigenvalues", "eigenvectors")),
        ("qr", ("Q", "R")),
        ("slogdet", ("sign", "logabsdet")),
        ("svd", ("U", "S", "Vh")),
    ):
        assert getattr(space, name)(x)._fields == fields
    assert not hasattr(ours, "fft")
    with pytest.raises(ValueError, match="not 'r'"):
        space.qr(x, mode="r")
    assert space.vector_norm(x, axis=()).tolist() == x.tolist()
    many, right = ours.ones((3, 3, 3)) + ours.eye(3), ours.ones((3, 3))  # matrices, no vectors
    assert space.solve(many, right).shape == (3, 3, 3)


def test_memory_is_shared_or_not():
    array = numpy.arange(4.0)
    shared = ours.asarray(array, copy=False)
    assert shared.data_ptr() == array.ctypes.data
    assert ours.asarray(shared, copy=False) is shared
    assert ours.asarray(shared, copy=True).data_ptr() != shared.data_ptr()
    view = memoryview(bytearray(array.tobytes())).cast("d")
    for xp in (ours, genesis):
        one, other = xp.asarray(view, copy=False), xp.asarray(view, copy=True)
        view[0] += 1
        assert one[0] == view[0] != other[0]
    for wrong, words in (
        (lambda: ours.asarray([1, 2], copy=False), "list cannot be shared"),
        (lambda: ours.asarray(2.5, copy=False), "float cannot be shared"),
        (lambda: ours.asarray(b"ab", copy=False), "bytes cannot be shared"),
        (lambda: ours.asarray(numpy.float64(2.5), copy=False), "float64 cannot be shared"),
        (lambda: ours.asarray(view, dtype=ours.float32, copy=False), "float64 on cpu .* as"),
        (lambda: genesis.asarray([1, 2], copy=False), "list cannot be shared"),
        (lambda: ours.asarray(array, dtype=ours.int8, copy=False), "float64 on cpu .* as .*int8"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()
    x = ours.astype(shared, ours.float64)
    assert x.data_ptr() != shared.data_ptr()
    assert ours.astype(shared, ours.float64, copy=False) is shared
    assert ours.reshape(shared, (2, 2), copy=False).data_ptr() == shared.data_ptr()
    assert ours.reshape(shared, (2, 2), copy=True).data_ptr() != shared.data_ptr()
    with pytest.raises((ValueError, RuntimeError)):
        ours.reshape(genesis.zeros(2, 3).T, (6,), copy=False)


def test_mistakes():
    x = ours.ones((2, 3))
    for wrong, kind, words in (
        (lambda: ours.squeeze(x, 0), ValueError, r"dimension 0 of shape \(2, 3\) is not of size 1"),
        (lambda: ours.cumulative_sum(x), ValueError, r"axis for shape \(2, 3\)"),
        (lambda: ours.take(x, ours.asarray([0])), ValueError, r"axis for shape \(2, 3\)"),
        (lambda: ours.isdtype(ours.int8, "whole"), ValueError, "'whole' is none of"),
        (lambda: ours.__array_namespace_info__().dtypes(kind="whole"), ValueError, "'whole'"),
        (lambda: ours.result_type(1, 2.0), ValueError, "a tensor or a dtype"),
        (lambda: ours.nonzero(ours.asarray(3)), ValueError, "without dimensions"),
        (lambda: ours.expand_dims(x, axis=4), IndexError, "4"),
    ):
        with pytest.raises(kind, match=words):
            wrong()
    assert ours.result_type(ours.int8, 2.0, ours.asarray([1], dtype=ours.uint8)) == ours.float32
    assert ours.result_type(ours.float64, 1) == ours.float64
    assert ours.finfo(x).dtype == ours.float32 and ours.iinfo(ours.asarray(3)).bits == 64


def test_beside_array_api_strict():
    """Every function that the strict implementation has takes the same arguments here."""
    strict = pytest.importorskip("array_api_strict")
    later = {"broadcast_shapes", "isin"}  # of a later version
    complex_names = {"imag", "complex64", "complex128"}
    flags = {name for name in strict.__all__ if "strict" in name.lower()} | {"Device"}
    extensions = {"fft", "linalg"}
    names = {name for name in strict.__all__ if not name.startswith("_")}
    assert names - set(ours.__all__) <= later | complex_names | flags | extensions
    for name in sorted(names & set(ours.__all__)):
        function = getattr(strict, name)
        if not inspect.isfunction(function):
            continue
        theirs = inspect.signature(function).parameters.values()
        own = inspect.signature(getattr(ours, name)).parameters
        by_name = {one.name for one in theirs if one.kind == one.KEYWORD_ONLY}
        assert by_name <= set(own), name


def test_axes_that_are_not_there():
    x = ours.ones((2, 3))
    for axis in (2, -3):
        with pytest.raises(IndexError, match=f"axis {axis} is out of range for 2 dimensions"):
            ours.take(x, ours.asarray([0]), axis=axis)
    with pytest.raises(IndexError, match="axis 7 is out of range for 3 dimensions"):
        ours.expand_dims(x, axis=(7,))
    with pytest.raises(ValueError, match="named twice"):
        ours.expand_dims(x, axis=(0, -4))


def test_vecdot_takes_vectors_of_one_length():
    x, y = ours.ones((2, 3)), ours.ones((4, 1, 3))
    assert ours.vecdot(x, y).shape == (4, 2)
    assert ours.vecdot(x, ours.ones((2, 1)), axis=-2).shape == (3,)
    for one, other, axis in (
        (x, ours.ones((2, 1)), -1),
        (x, ours.ones(4), -1),
        (x, x, 0),
        (x, x[0], -2),
    ):
        with pytest.raises(ValueError, match="vecdot"):
            ours.vecdot(one, other, axis=axis)
    half = ours.asarray([300.0, 300.0, -300.0], dtype=genesis.float16)
    assert float(ours.vecdot(half, half * ours.asarray([1, 1, -2], dtype=genesis.float16))) == 0.0


@pytest.mark.parametrize("k", [2**63, -(2**63), 2**70, 5, -5])
def test_diagonals_beyond_the_matrix(k):
    assert not ours.any(ours.eye(3, 2, k=k) != 0)
    x = ours.ones((3, 2))
    assert ours.sum(ours.tril(x, k=k)) == (6 if k > 0 else 0)
    assert ours.sum(ours.triu(x, k=k)) == (0 if k > 0 else 6)


def test_what_came_with_2025():
    assert ours.broadcast_shapes((3, 1), (4,), ()) == (3, 4) and ours.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="do not broadcast"):
        ours.broadcast_shapes((2,), (3,))
    x = ours.asarray([1, 2, 3])
    assert ours.isin(x, ours.asarray([2, 9])).tolist() == [False, True, False]
    assert ours.isin(x, 2, invert=True).tolist() == [True, False, True]
    small = ours.asarray([44], dtype=ours.int8)
    for one in (300, ours.asarray(300)):  # which is 44 as int8
        assert not ours.isin(one, small) and not genesis.isin(one, small)
    assert ours.imag(ours.asarray([1.5])).tolist() == [0.0]


def test_floor_divide_beside_infinities():
    inf = ours.inf
    x = ours.asarray([inf, inf, -inf, 1.0, -1.0, 1.0, inf, 7.0])
    y = ours.asarray([2.0, -2.0, 2.0, inf, inf, -inf, inf, 2.0])
    made = ours.floor_divide(x, y)
    assert made[:6].tolist() == [inf, -inf, -inf, 0.0, 0.0, 0.0] and made[7] == 3
    assert ours.signbit(made[3:6]).tolist() == [False, True, True] and made[6] != made[6]
    assert ours.floor_divide(x[7:], 2).tolist() == [3.0]


def test_clip_by_bounds_that_the_type_has_not():
    x = ours.asarray([0, 50, 200], dtype=ours.uint8)
    low, high = (ours.asarray(one, dtype=ours.int16) for one in (-3, 100))
    made = ours.clip(x, low, high)
    assert made.tolist() == [0, 50, 100] and made.dtype == ours.uint8
    assert (
        ours.clip(x, low).tolist() == [0, 50, 200]
        and ours.clip(x, max=high).tolist() == made.tolist()
    )
