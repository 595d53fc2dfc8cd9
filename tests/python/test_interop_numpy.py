"""NumPy's functions on tensors, and what as_tensor takes: against NumPy itself."""

import array as arrays
import ctypes

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis import Tensor

UNARY = [
    *("absolute", "ceil", "cos", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log"),
    *("log10", "log1p", "log2", "logical_not", "negative", "reciprocal", "rint", "sign", "sin"),
    *("sqrt", "square", "tan", "tanh", "trunc", "arcsin", "arccos", "arctan", "arcsinh"),
    *("sinh", "cosh", "arccosh", "arctanh"),
]
BINARY = [
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum"),
    *("minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor", "arctan2"),
]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]


def numbers(*shape, dtype=numpy.float32, seed=0):
    return (numpy.random.default_rng(seed).random(shape) * 3 + 0.5).astype(dtype)


def is_close(made, expected):
    assert isinstance(made, Tensor)
    expected = numpy.asarray(expected)
    assert made.shape == expected.shape
    numpy.testing.assert_allclose(made.numpy(), expected, rtol=2e-5, atol=1e-6)


class Never:
    """Something in whose presence NumPy must not compute: then Genesis did."""

    def __init__(self, monkeypatch):
        import genesis._numpy

        def sharing():
            raise AssertionError("NumPy computed this")

        monkeypatch.setattr(genesis._numpy, "_Sharing", sharing)


@pytest.fixture
def ours(monkeypatch):
    return Never(monkeypatch)


# ---- functions of elements ----


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_are_ours(ours, name):
    array = numbers(3, 5)
    with numpy.errstate(invalid="ignore"):  # of more than 1 there is no arcsin
        is_close(getattr(numpy, name)(genesis.tensor(array)), getattr(numpy, name)(array))


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_are_ours(ours, name):
    function = getattr(numpy, name)
    a, b = numbers(3, 5), numbers(5, seed=1)
    expected = function(a, b)
    is_close(function(genesis.tensor(a), genesis.tensor(b)), expected)
    is_close(function(genesis.tensor(a), b), expected)
    is_close(function(a, genesis.tensor(b)), expected)
    is_close(function(genesis.tensor(a), b.tolist()), function(a, b))
    is_close(function(genesis.tensor(a), 2), function(a, 2))
    is_close(function(2.0, genesis.tensor(a)), function(2.0, a))
    is_close(function(genesis.tensor(a), numpy.float32(2)), function(a, numpy.float32(2)))


@pytest.mark.parametrize("name", BITS)
def test_functions_of_bits_are_ours(ours, name):
    a, b = numpy.arange(12).reshape(3, 4), numpy.array([1, 2, 3, 4])
    function = getattr(numpy, name)
    is_close(function(genesis.tensor(a), b), function(a, b))
    is_close(numpy.invert(genesis.tensor(a)), ~a)


def test_operators_give_tensors():
    array, x = numbers(3, 4), genesis.tensor(numbers(3, 4, seed=2))
    for left, right in ((array, x), (x, array)):
        for made in (left + right, left * right, left / right, left**right, left > right):
            assert isinstance(made, Tensor)
        is_close(left - right, numpy.asarray(left) - numpy.asarray(right))
    is_close(numpy.float64(2) * x, 2 * x.numpy())
    is_close(-(numpy.int64(3) - x), x.numpy() - 3)
    assert (numpy.float32(2) * genesis.arange(3)).dtype == genesis.float32
    assert x.__array_priority__ > array.__array_priority__


def test_out_is_given_back():
    x = genesis.tensor(numbers(3, 4))
    array = numpy.zeros((3, 4), numpy.float32)
    assert numpy.add(x, 1, out=array) is array
    numpy.testing.assert_array_equal(array, x.numpy() + 1)
    assert numpy.hypot(x, 1, out=array) is array
    numpy.testing.assert_allclose(array, numpy.hypot(x.numpy(), 1), rtol=1e-6)
    out = genesis.zeros(3, 4)
    assert numpy.add(array, array, out=out) is out
    is_close(out, array + array)
    assert numpy.hypot(array, 2, out=out) is out
    is_close(out, numpy.hypot(array, 2))
    kept = array
    array += x
    assert array is kept
    is_close(x, array - numpy.hypot(x.numpy(), 1))
    whole = numpy.zeros(3, dtype=int)
    with pytest.raises(TypeError, match="cannot be stored as int64"):
        whole += genesis.ones(3)
    line = numpy.arange(6.0)
    numpy.add(line[:-1], genesis.zeros(5, dtype=genesis.float64), out=line[1:])
    assert line.tolist() == [0, 0, 1, 2, 3, 4]


def test_functions_that_only_numpy_has():
    x = genesis.tensor(numbers(3, 4))
    array = x.numpy()
    is_close(numpy.arctan2(x, 2), numpy.arctan2(array, 2))
    is_close(numpy.add.reduce(x, axis=1), array.sum(1))
    is_close(numpy.multiply.outer(x, x), numpy.multiply.outer(array, array))
    is_close(numpy.add(x, 1, where=array > 1, out=genesis.zeros(3, 4)), (array + 1) * (array > 1))
    assert numpy.add(x, 1, dtype=numpy.float64).dtype == genesis.float64
    parts = numpy.modf(x)
    assert type(parts) is tuple and all(isinstance(part, Tensor) for part in parts)
    counts = genesis.zeros(3, dtype=genesis.int64)
    numpy.add.at(counts, [0, 2, 2], 1)  # in place, through the shared memory
    assert counts.tolist() == [1, 0, 2]
    assert type(numpy.add(genesis.ones(2), 1j)) is numpy.ndarray  # there is no such dtype


# ---- other functions ----

FUNCTIONS = [
    *(lambda x, name=name: getattr(numpy, name)(x) for name in ("sum", "prod", "max", "amin")),
    *(lambda x, name=name: getattr(numpy, name)(x, axis=1) for name in ("sum", "mean", "amax")),
    lambda x: numpy.mean(x, axis=(0, 2), keepdims=True),
    lambda x: numpy.any(x > 2, axis=-1),
    lambda x: numpy.all(x > 0),
    lambda x: numpy.argmax(x, axis=1),
    lambda x: numpy.argmin(x),
    lambda x: numpy.var(x, axis=0),
    lambda x: numpy.std(x, ddof=1),
    lambda x: numpy.cumsum(x),
    lambda x: numpy.cumprod(x, axis=1),
    lambda x: numpy.clip(x, 1, 2),
    lambda x: numpy.clip(x, None, 2),
    lambda x: numpy.where(x > 1, x, 0),
    lambda x: numpy.concatenate([x, x]),
    lambda x: numpy.concatenate((x, x), axis=None),
    lambda x: numpy.stack([x, x], axis=1),
    lambda x: numpy.reshape(x, (4, -1)),
    lambda x: numpy.ravel(x),
    lambda x: numpy.transpose(x),
    lambda x: numpy.transpose(x, (1, 2, 0)),
    lambda x: numpy.squeeze(x[:1]),
    lambda x: numpy.expand_dims(x, 1),
    lambda x: numpy.broadcast_to(x, (2, *x.shape)),
    lambda x: numpy.tril(x, 1),
    lambda x: numpy.triu(x),
    lambda x: numpy.sort(x),
    lambda x: numpy.sort(x, axis=None),
    lambda x: numpy.argsort(x, axis=0),
    lambda x: numpy.round(x),
    lambda x: numpy.copy(x),
    lambda x: numpy.zeros_like(x),
    lambda x: numpy.ones_like(x),
]


@pytest.mark.parametrize("index", range(len(FUNCTIONS)))
def test_functions_are_ours(ours, index):
    array = numbers(3, 4, 5)
    is_close(FUNCTIONS[index](genesis.tensor(array)), FUNCTIONS[index](array))


OTHERS = [
    lambda x: numpy.median(x, axis=1),
    lambda x: numpy.mean(x > 1),
    lambda x: numpy.mean(x, dtype=numpy.float64),
    lambda x: numpy.sum(x, axis=()),
    lambda x: numpy.sum(x, where=numpy.ones((3, 4, 5), bool)),
    lambda x: numpy.reshape(x, (4, -1), order="F"),
    lambda x: numpy.round(x, 1),
    lambda x: numpy.vstack([x, x]),
    lambda x: numpy.moveaxis(x, 0, 2),
    lambda x: numpy.flip(x, 1),
    lambda x: numpy.linalg.norm(x),
    lambda x: numpy.einsum("ijk,ijk->i", x, x),
    lambda x: numpy.diff(x),
    lambda x: numpy.nan_to_num(x),
    lambda x: numpy.percentile(x, 50),
    lambda x: numpy.zeros_like(x, dtype=numpy.float64),
    lambda x: numpy.zeros((2, 3), like=x) if isinstance(x, Tensor) else numpy.zeros((2, 3)),
    lambda x: numpy.matmul(x, numpy.swapaxes(x, 1, 2)),
    lambda x: numpy.tril(x[0, 0]),
    lambda x: numpy.squeeze(x[:, :1], axis=1),
    lambda x: numpy.where(x, x, 1),
    lambda x: numpy.where(True, x, 1),
    lambda x: numpy.clip(x, None, None),
    lambda x: numpy.matmul(x, numpy.ones((5, 2))),
]


@pytest.mark.parametrize("index", range(len(OTHERS)))
def test_functions_of_numpy_give_tensors(index):
    array = numbers(3, 4, 5)
    is_close(OTHERS[index](genesis.tensor(array)), OTHERS[index](array))


def test_what_is_no_tensor_stays():
    x = genesis.tensor(numbers(3, 4))
    assert numpy.shape(x) == (3, 4) and numpy.ndim(x) == 2
    assert numpy.size(x) == 12 and numpy.size(x, 1) == 4
    assert numpy.array_equal(x, x) is True and numpy.allclose(x, x.numpy()) is True
    assert numpy.fft.fft(x).dtype == numpy.complex64
    named = numpy.linalg.svd(x)
    assert type(named).__name__ == "SVDResult" and isinstance(named.S, Tensor)
    assert [part.shape for part in numpy.split(x, 2, axis=1)] == [(3, 2), (3, 2)]
    assert numpy.clip(x, None, None) is not x
    with pytest.raises(ValueError, match="non-negative"):
        numpy.broadcast_to(x, (-1, 4))


def test_functions_share_memory():
    x = genesis.zeros(3, 3)
    numpy.fill_diagonal(x, 1)
    assert x.tolist() == genesis.eye(3).tolist()
    view = numpy.moveaxis(x, 0, 1)
    view[0, 2] = 5
    assert x[2, 0].item() == 5
    numpy.copyto(x, numpy.full((3, 3), 7, numpy.float32))
    assert x.sum().item() == 63
    out = numpy.empty(3, numpy.float32)
    assert numpy.sum(x, axis=0, out=out) is out and out.tolist() == [21] * 3
    total = genesis.empty(3, dtype=genesis.float64)
    assert numpy.sum(numpy.ones((2, 3)), axis=0, out=total) is total
    assert total.tolist() == [2, 2, 2]


def test_others_have_their_turn():
    class Other:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return f"other {ufunc.__name__}"

        def __array_function__(self, func, types, args, kwargs):
            return f"other {func.__name__}"

    x = genesis.ones(3)
    assert numpy.add(x, Other()) == "other add"
    assert numpy.concatenate([x, Other()]) == "other concatenate"
    masked = numpy.ma.array([1.0, 2.0, 3.0], mask=[True, False, False])
    assert type(numpy.add(masked, x)) is numpy.ma.MaskedArray


def test_bfloat16_has_no_array():
    x = genesis.ones(3, dtype=genesis.bfloat16)
    assert numpy.exp(x).dtype == genesis.bfloat16  # ours: no array is needed
    assert numpy.sum(x).item() == 3
    for wrong in (lambda: numpy.median(x), lambda: numpy.hypot(x, x), lambda: numpy.asarray(x)):
        with pytest.raises(TypeError, match="NumPy has no bfloat16"):
            wrong()


def test_the_array_protocol():
    x = genesis.arange(6).reshape(2, 3)
    assert numpy.asarray(x).ctypes.data == x.data_ptr() == x.__array__().ctypes.data
    assert numpy.asarray(x, copy=False).ctypes.data == x.data_ptr()
    assert x.__array__(numpy.int64).ctypes.data == x.data_ptr()
    assert x.__array__(copy=True).ctypes.data != x.data_ptr()
    assert numpy.array(x).ctypes.data != x.data_ptr()
    assert x.__array__(numpy.float64).dtype == numpy.float64
    assert numpy.asarray(x, dtype="f4").tolist() == x.tolist()
    with pytest.raises(ValueError, match="copy"):
        x.__array__(numpy.float64, copy=False)
    with pytest.raises(TypeError):
        x.__array__(wrong=1)


# ---- as_tensor, and addresses ----


@given(
    st.sampled_from(["bool", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]),
    st.lists(st.integers(0, 4), max_size=4),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_as_tensor_shares_arrays(dtype, shape, is_turned):
    array = numpy.ones(shape, dtype=dtype)
    array = array.T[..., ::-1] if is_turned and shape else array
    x = genesis.as_tensor(array)
    assert x.shape == array.shape and x.dtype.itemsize == array.itemsize
    assert not array.size or x.data_ptr() == array.ctypes.data
    assert genesis.tensor(array).tolist() == array.tolist()


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class WithArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize(
    "name",
    [
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float64", "bool"),
    ],
)
def test_arrays_are_of_numpys_own_types(name):
    """Whose numbers code in C asks for: long long is another one than int64."""
    x = genesis.zeros(2, dtype=name)
    assert x.numpy().dtype.num == numpy.asarray(x).dtype.num == numpy.dtype(name).num
    for letter in "lq":
        assert genesis.as_tensor(numpy.zeros(2, letter)).dtype == genesis.int64


def test_as_tensor_takes_anything():
    array = numpy.arange(6, dtype=numpy.int32).reshape(2, 3)
    for one in (Interface(array), WithArray(array), array, memoryview(array), array[::-1][::-1]):
        x = genesis.as_tensor(one)
        assert x.data_ptr() == array.ctypes.data and x.tolist() == array.tolist()
        assert genesis.tensor(one).data_ptr() != array.ctypes.data
        assert genesis.as_tensor(one, dtype=genesis.float64).dtype == genesis.float64
        assert genesis.as_tensor(one, device="cpu").data_ptr() == array.ctypes.data
    x = genesis.ones(2)
    assert genesis.as_tensor(x) is x
    assert genesis.as_tensor(numpy.float16(3)).dtype == genesis.float16
    number = numpy.float64(3)
    assert genesis.as_tensor(number).add_(1).item() == 4 and number == 3
    assert genesis.as_tensor(numpy.bool_(True)).item() is True
    assert genesis.as_tensor(arrays.array("h", [1, 2])).dtype == genesis.int16
    assert genesis.as_tensor(bytearray(b"ab")).tolist() == [97, 98]
    assert genesis.as_tensor((ctypes.c_double * 2)(1, 2)).tolist() == [1, 2]
    assert genesis.as_tensor([numpy.float32(1), 2]).tolist() == [1, 2]
    assert genesis.as_tensor(3).dtype == genesis.int64


THERE = "there are bool, uint8, .*, float64, uint16, uint32, uint64, and no others"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("complex64", "real and imaginary parts, which are float32"),
        ("complex128", "real and imaginary parts, which are float64"),
    ],
)
def test_types_that_there_are_not(name, advice):
    array = numpy.ones(2, dtype=name)
    for make in (genesis.tensor, genesis.as_tensor, genesis.from_numpy, genesis.from_dlpack):
        with pytest.raises(TypeError, match=f"elements of {name} have .*{THERE}; .*{advice}"):
            make(array)
    with pytest.raises(TypeError, match=f"elements of {name} have .*{advice}"):
        genesis.ones(2) + array
    for dtype in (name, array.dtype, array.dtype.type):
        with pytest.raises(TypeError, match=f"^zeros: .*{name}.* is no dtype here: .*{advice}"):
            genesis.zeros(2, dtype=dtype)
    with pytest.raises(AttributeError, match=f"no {name}: {THERE}; .*{advice}"):
        getattr(genesis, name)
    assert not hasattr(genesis, name)


def test_types_by_other_names():
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.4.0":
        assert numpy.issubdtype(genesis.float16, numpy.floating)
        assert numpy.zeros(2, dtype=genesis.int8).dtype == numpy.int8
    assert genesis.bool.__numpy_dtype__ == numpy.dtype("bool")
    assert not hasattr(genesis.bfloat16, "__numpy_dtype__")
    with pytest.raises(TypeError, match="is no dtype here: write genesis.float32$"):
        genesis.zeros(2, dtype=numpy.dtype("float32").newbyteorder())
    for wrong in (complex, "float", 3, genesis.ones(1)):
        with pytest.raises(TypeError, match=f"is no dtype here: {THERE}"):
            genesis.zeros(2, dtype=wrong)
    with pytest.raises(TypeError, match="^1j is complex: .*imaginary parts"):
        genesis.tensor([1j])
    with pytest.raises(TypeError, match="'>f' have no dtype here: their bytes .* newbyteorder"):
        genesis.as_tensor(numpy.ones(2, dtype=">f4"))


def test_as_tensor_refuses_with_a_sentence():
    for wrong, error, words in [
        (numpy.ones(2, dtype=complex), TypeError, "complex128 have no dtype"),
        (numpy.array(["a"]), TypeError, "no dtype"),
        (numpy.array([None]), TypeError, "'O' have no dtype"),
        (WithArray(3), (TypeError, ValueError), "."),
        (object(), TypeError, "no number"),
        ("text", TypeError, "no number"),
    ]:
        with pytest.raises(error, match=words):
            genesis.as_tensor(wrong)


def test_addresses_know_their_elements():
    for name in ("bool", "int64", "bfloat16", "float32"):
        x = genesis.ones(4, dtype=getattr(genesis, name))
        address = x.data_ptr()
        assert isinstance(address, int) and address.dtype is x.dtype
        assert type(address.data_ptr()) is int and address.data_ptr() == address
        assert address + 0 == address and hash(address) == hash(int(address))
        assert repr(address) == str(int(address)) and f"{address:x}" == f"{int(address):x}"
    assert ctypes.c_float.from_address(x.data_ptr()).value == 1
    with pytest.raises(AttributeError):
        address.dtype_of_it = 3


def test_cpu_tensors_have_no_cuda_interface():
    x = genesis.ones(2)
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="a tensor on the CPU has no"):
        _ = x.__cuda_array_interface__


def test_numpy_is_loaded_when_asked(fresh):
    fresh("""
import sys
import genesis
assert "numpy" not in sys.modules and "genesis._numpy" not in sys.modules
(genesis.ones(3) + 1).data_ptr()
assert "numpy" not in sys.modules
import numpy
numpy.add(genesis.ones(3), 1)
assert "genesis._numpy" in sys.modules
""")
