"""Tensors on a real GPU beside PyTorch's, CuPy's and Numba's, and in kernels of Triton.

INTEROP_RUNS says how often the hand-overs between two streams are repeated. Each producer sleeps on
the device first, so that a consumer that does not wait sees what was there before.
"""

import gc
import os

import numpy
import pytest

import genesis
from genesis import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

pytestmark = pytest.mark.gpu
RUNS = int(os.environ.get("INTEROP_RUNS", "100"))
COUNT = 1 << 18
CYCLES = 2_000_000  # about a millisecond
DTYPES = [
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture
def numba_cuda(numpy_for_numba):
    return pytest.importorskip("numba.cuda")


@pytest.fixture
def sleep(torch):
    """Keep a stream busy, given its handle."""

    def run(handle):
        with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
            torch.cuda._sleep(CYCLES)

    return run


class WithoutTable:
    """A producer of which nothing but __dlpack__ is known."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **asked):
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class WithDictionary:
    """A producer of which nothing but __cuda_array_interface__ is known."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


# ---- PyTorch ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 3)])
def test_torch_shares_memory_both_ways(torch, dtype, shape):
    there = torch.ones(shape, dtype=getattr(torch, dtype), device="cuda")
    for one in (there, there.T if there.ndim == 2 else there):
        for given in (one, WithoutTable(one)):
            x = genesis.from_dlpack(given)
            assert str(x.dtype) == f"genesis.{dtype}" and x.shape == tuple(one.shape)
            assert str(x.device) == "cuda:0"
            back = torch.from_dlpack(x)
            assert back.dtype == one.dtype and back.shape == one.shape and back.is_cuda
            if one.numel():
                assert x.strides == one.stride() == back.stride()
                assert x.data_ptr() == one.data_ptr() == back.data_ptr()
                x.zero_()
                kept = torch.int64  # PyTorch has no any() of wide unsigned integers on a GPU
                assert not one.to(kept).any().item() and not back.to(kept).any().item()
                one.fill_(1)
                assert x.all().item() and genesis.as_tensor(one).data_ptr() == one.data_ptr()


def test_torch_takes_tensors_without_a_copy(torch):
    x = genesis.arange(6, device="cuda").reshape(2, 3).float() + 1
    for view in (x, x.T, x[1:], x[:, ::2]):
        there = torch.from_dlpack(view)
        assert there.data_ptr() == view.data_ptr() and there.tolist() == view.tolist()
        assert torch.from_dlpack(view.__dlpack__(stream=1)).data_ptr() == view.data_ptr()
        assert torch.as_tensor(view, device="cuda").data_ptr() == view.data_ptr()
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu").tolist() == x.tolist()
    assert numpy.from_dlpack(x, device="cpu").tolist() == x.tolist()
    cpu = genesis.from_dlpack(torch.ones(3, device="cuda"), device="cpu")
    assert str(cpu.device) == "cpu" and cpu.tolist() == [1, 1, 1]
    assert genesis.from_dlpack(torch.ones(3), device="cuda").device == x.device
    with pytest.raises(BufferError, match="only with a copy"):
        genesis.from_dlpack(torch.ones(3, device="cuda"), device="cpu", copy=False)
    with pytest.raises(BufferError, match="gradient"):
        genesis.from_dlpack(torch.ones(3, device="cuda", requires_grad=True))


def test_either_may_go_first(torch):
    def allocated():
        gc.collect()
        genesis.flush()
        return genesis.cuda.memory_allocated()

    before = allocated()
    x = genesis.full((1000,), 3, device="cuda")
    there = torch.from_dlpack(x)
    del x
    assert (there == 3).all().item() and allocated() > before
    del there
    assert allocated() == before
    before = torch.cuda.memory_allocated()
    there = torch.full((1000,), 4, device="cuda")
    x = genesis.from_dlpack(there)
    del there
    assert (x == 4).all().item() and torch.cuda.memory_allocated() > before
    del x
    gc.collect()
    assert torch.cuda.memory_allocated() == before


def test_torch_hands_over_between_streams(torch):
    theirs, ours = torch.cuda.Stream(), genesis.cuda.Stream()
    for i in range(RUNS):
        with torch.cuda.stream(theirs):
            torch.cuda._sleep(CYCLES)
            there = torch.full((COUNT,), float(i), device="cuda")
            with genesis.cuda.stream(ours):
                x = genesis.from_dlpack(there)
                y = x * 2
            del there, x
            other = torch.full((COUNT,), -1.0, device="cuda")  # perhaps in the same memory
        with genesis.cuda.stream(ours):
            assert (y == 2 * i).all().item(), i
        del other


def test_torch_hands_over_by_python(torch):
    theirs, ours = torch.cuda.Stream(), genesis.cuda.Stream()
    for i in range(RUNS):
        with torch.cuda.stream(theirs):
            torch.cuda._sleep(CYCLES)
            there = torch.full((COUNT,), float(i), device="cuda")
            with genesis.cuda.stream(ours):
                x = genesis.from_dlpack(WithoutTable(there))
                assert (x * 2 == 2 * i).all().item(), i
        del there, x


def test_torch_takes_over_between_streams(torch, sleep):
    theirs, ours = torch.cuda.Stream(), genesis.cuda.Stream()
    for i in range(RUNS):
        with genesis.cuda.stream(ours):
            sleep(ours.cuda_stream)
            x = genesis.full((COUNT,), i, dtype=genesis.float32, device="cuda")
            x += 1
        with torch.cuda.stream(theirs):  # our current stream is not the one that wrote
            there = torch.from_dlpack(x)
            torch.cuda._sleep(CYCLES)
            doubled = there * 2
        del x, there
        with genesis.cuda.stream(ours):
            other = genesis.full((COUNT,), -1, dtype=genesis.float32, device="cuda")
            other += 1  # must not be in memory that `theirs` still reads
        with torch.cuda.stream(theirs):
            assert (doubled == 2 * (i + 1)).all().item(), i
        del other


def test_torch_functions(torch):
    x = genesis.arange(6, device="cuda").reshape(2, 3).float()
    there = torch.arange(6, device="cuda").reshape(2, 3).float()
    for function in (
        lambda a: torch.add(a, 1),
        lambda a: torch.cat([a, a]),
        lambda a: torch.stack((a, there)),
        lambda a: torch.nn.functional.softmax(a, dim=1),
        lambda a: torch.nn.functional.layer_norm(a, (3,)),
        lambda a: torch.einsum("ij,kj->ik", a, a),
        lambda a: torch.where(a > 2, a, there),
        lambda a: there + a,
        lambda a: a + there,
    ):
        made, expected = function(x), function(there)
        assert isinstance(made, Tensor) and made.shape == tuple(expected.shape)
        assert str(made.device) == "cuda:0"
        assert torch.allclose(torch.from_dlpack(made), expected)
    values, indices = torch.max(x, dim=1)
    assert values.tolist() == [2, 5] and indices.dtype == genesis.int64
    view = torch.narrow(x, 1, 1, 2)
    assert view.data_ptr() == x.data_ptr() + 4
    out = genesis.zeros(2, 3, device="cuda")
    assert torch.add(x, 1, out=out) is out and out.tolist() == (x + 1).tolist()
    assert torch.nn.functional.relu(x, inplace=True) is x
    layer = torch.nn.Linear(3, 2, device="cuda")
    assert isinstance(layer(x), torch.Tensor)
    with torch.no_grad():
        assert isinstance(layer(x), Tensor)


def test_torch_functions_between_streams(torch, sleep):
    theirs, ours = torch.cuda.Stream(), genesis.cuda.Stream()
    with genesis.cuda.stream(ours), torch.cuda.stream(theirs):
        x = genesis.zeros(COUNT, device="cuda")
        for i in range(RUNS):
            sleep(ours.cuda_stream)
            x += 1  # ours
            torch.cuda._sleep(CYCLES)
            torch.add(x, 1, out=x)  # theirs, in place
            made = torch.mul(x, 2)
            assert (x == 2 * (i + 1)).all().item() and (made == 4 * (i + 1)).all().item(), i


# ---- CuPy ----


@pytest.mark.parametrize("dtype", [one for one in DTYPES if one != "bfloat16"])
def test_cupy_shares_memory_both_ways(cupy, dtype):
    for there in (cupy.ones((3, 5), dtype=dtype), cupy.ones((4, 6), dtype=dtype)[::2, ::-1]):
        for given in (there, WithDictionary(there)):
            x = genesis.as_tensor(given)
            assert x.data_ptr() == there.data.ptr and x.shape == there.shape
            assert tuple(one * there.itemsize for one in x.strides) == there.strides
            for back in (cupy.from_dlpack(x), cupy.asarray(x)):
                assert back.data.ptr == x.data_ptr() and back.dtype == there.dtype
                assert back.strides == there.strides
            x.zero_()
            assert not there.any().item()
            there[...] = 1
            assert x.all().item()
    assert genesis.as_tensor(cupy.zeros((0, 3), dtype=dtype)).shape == (0, 3)


def test_cupy_hands_over_between_streams(cupy, sleep):
    theirs, ours = cupy.cuda.Stream(non_blocking=True), genesis.cuda.Stream()
    for i in range(RUNS):
        with theirs:
            sleep(theirs.ptr)
            there = cupy.full((COUNT,), i, dtype="float32")
            with genesis.cuda.stream(ours):
                x = genesis.as_tensor(there if i % 2 else WithDictionary(there))
                assert (x * 2 == 2 * i).all().item(), i
            del there, x


def test_cupy_takes_over_between_streams(cupy, sleep):
    theirs, ours = cupy.cuda.Stream(non_blocking=True), genesis.cuda.Stream()
    for i in range(RUNS):
        with genesis.cuda.stream(ours):
            sleep(ours.cuda_stream)
            x = genesis.full((COUNT,), i, dtype=genesis.float32, device="cuda")
            x += 1
        with theirs:
            doubled = cupy.from_dlpack(x) * 2
        del x
        with genesis.cuda.stream(ours):
            other = genesis.full((COUNT,), -1, dtype=genesis.float32, device="cuda")
        with theirs:
            assert (doubled == 2 * (i + 1)).all().item(), i
        del other


# ---- Numba ----


def test_numba_shares_memory_both_ways(numba_cuda):
    array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    there = numba_cuda.to_device(array)
    for view, expected in ((there, array), (there[1:, ::2], array[1:, ::2])):
        x = genesis.as_tensor(view)
        assert x.data_ptr() == view.__cuda_array_interface__["data"][0]
        assert x.tolist() == expected.tolist()
        back = numba_cuda.as_cuda_array(x)
        assert back.__cuda_array_interface__["data"][0] == x.data_ptr()
        assert back.strides == expected.strides and back.shape == expected.shape
    x = genesis.as_tensor(there)
    assert numba_cuda.as_cuda_array(x).copy_to_host().tolist() == array.tolist()
    x += 1
    genesis.cuda.synchronize()
    assert there.copy_to_host().tolist() == (array + 1).tolist()
    del there
    gc.collect()
    assert x.tolist() == (array + 1).tolist()


def test_numba_hands_over_between_streams(numba_cuda, sleep):
    theirs, ours = numba_cuda.stream(), genesis.cuda.Stream()
    for i in range(RUNS):
        host = numpy.full(COUNT, i, dtype=numpy.float32)
        sleep(int(theirs))
        there = numba_cuda.to_device(host, stream=theirs)
        with genesis.cuda.stream(ours):
            x = genesis.as_tensor(there)
            assert (x * 2 == 2 * i).all().item(), i
            del x
        del there


def test_numba_kernels_take_tensors(numba_cuda):
    @numba_cuda.jit
    def double(values):
        i = numba_cuda.grid(1)
        if i < values.size:
            values[i] *= 2

    x = genesis.arange(1000, device="cuda").float()
    double[8, 128](x)
    numba_cuda.synchronize()
    assert x.tolist() == [2 * i for i in range(1000)]


# ---- Triton ----

if triton is not None:

    @triton.jit
    def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):  # noqa: N803
        pid = tl.program_id(axis=0)
        offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(output_ptr + offsets, x + y, mask=mask)


@pytest.mark.skipif(triton is None, reason="no Triton")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "int64"])
@pytest.mark.parametrize("count", [1, 1023, 98432, 98433])
def test_triton_kernels_take_tensors(torch, dtype, count):
    kind = getattr(genesis, dtype)
    x = (genesis.arange(count, device="cuda") % 100).to(kind)
    y = x + 1  # which waits until the kernel asks
    grid = (triton.cdiv(count, 1024),)
    out = genesis.zeros(count, dtype=kind, device="cuda")
    add_kernel[grid](x, y, out, count, BLOCK_SIZE=1024)
    assert (out == x + y).all().item()
    out.zero_()
    add_kernel[grid](x.data_ptr(), y.data_ptr(), out.data_ptr(), count, BLOCK_SIZE=1024)
    assert (out == x + y).all().item()


@pytest.mark.skipif(triton is None, reason="no Triton")
def test_triton_on_our_stream(torch, sleep):
    """PyTorch's current stream is where Triton launches: it can be one of ours."""
    first, second = genesis.cuda.Stream(), genesis.cuda.Stream()
    for i in range(RUNS):
        with genesis.cuda.stream(first):
            sleep(first.cuda_stream)
            x = genesis.full((COUNT,), i, dtype=genesis.float32, device="cuda")
            x += 1
        theirs = torch.cuda.ExternalStream(second.cuda_stream)
        with genesis.cuda.stream(second), torch.cuda.stream(theirs):
            out = genesis.zeros(COUNT, device="cuda")
            add_kernel[(triton.cdiv(COUNT, 1024),)](x, x, out, COUNT, BLOCK_SIZE=1024)
            assert (out == 2 * (i + 1)).all().item(), i
