"""Tensors of a GPU beside other libraries': the simulated GPU finds what does not wait."""

from pathlib import Path

import pytest

SCHEDULES = [("lazy", "1"), ("random", "1"), ("random", "2")]
PRELUDE = (
    f"""
import ctypes, gc, sys, weakref
sys.path.insert(0, {str(Path(__file__).parent)!r})
import genesis, numpy
from genesis import cuda
from test_interop_dlpack import DELETER, Managed, Table, Tensor, name_of, new_capsule, pointer_of
ours, theirs = cuda.Stream(), cuda.Stream()
"""
    """
class Array:
    def __init__(self, owner, **changes):
        self.owner = owner
        self.__cuda_array_interface__ = owner.__cuda_array_interface__ | changes
def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing raised: {words}")
"""
)


@pytest.fixture
def simulated(fresh, build):
    """Run code on the simulated GPU; gives what it found."""
    if not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")

    def run(code, schedule="eager", seed="1", **environment):
        environment |= {"SIM_GPU_SCHEDULE": schedule, "SIM_GPU_SEED": seed}
        found = fresh(PRELUDE + code, GENESIS_CUDA_DRIVER="sim", **environment).stderr
        # A build for sanitizers also reports what is alive at exit, which is no mistake here.
        return "".join(line for line in found.splitlines(True) if "leak:" not in line)

    return run


# ---- what is said ----


def test_the_cuda_array_interface(simulated):
    assert not simulated("""
for name, typestr in [("bool", "|b1"), ("uint8", "|u1"), ("int8", "|i1"), ("int16", "<i2"),
                      ("int32", "<i4"), ("int64", "<i8"), ("float16", "<f2"), ("float32", "<f4"),
                      ("bfloat16", "<V2"), ("float64", "<f8"), ("uint16", "<u2"),
                      ("uint32", "<u4"), ("uint64", "<u8")]:
    x = genesis.zeros(2, 3, dtype=getattr(genesis, name), device="cuda")
    shown = x.__cuda_array_interface__
    assert shown == {"shape": (2, 3), "typestr": typestr, "data": (x.data_ptr(), False),
                     "strides": None, "stream": 1, "version": 3}
    y = genesis.as_tensor(Array(x))
    assert y.data_ptr() == x.data_ptr() and y.dtype == x.dtype and y.shape == (2, 3)
    assert y.device == x.device
x = genesis.arange(12, device="cuda").reshape(3, 4)
for view in (x.T, x[1:, ::2], x[::-1], x[:, 1].expand(2, 3), x[0, 0]):
    shown = view.__cuda_array_interface__
    assert shown["data"][0] == view.data_ptr() and shown["shape"] == view.shape
    assert view.is_contiguous() or shown["strides"] == tuple(8 * one for one in view.strides)
    y = genesis.as_tensor(Array(view))
    assert y.strides == view.strides and y.tolist() == view.tolist()
with cuda.stream(ours):
    assert x.__cuda_array_interface__["stream"] == ours.cuda_stream
empty = genesis.empty(0, 3, device="cuda")
assert empty.__cuda_array_interface__["data"] == (0, False)
assert genesis.as_tensor(Array(empty)).shape == (0, 3)
locked = genesis.as_tensor(Array(x, data=(x.data_ptr(), True)))
assert locked.__cuda_array_interface__["data"] == (x.data_ptr(), True)
raises(ValueError, "read-only", lambda: locked.zero_())
cpu = genesis.ones(2)
assert not hasattr(cpu, "__cuda_array_interface__")
raises(AttributeError, "on the CPU", lambda: cpu.__cuda_array_interface__)
for stream in (None, 0, 1, 2, ours.cuda_stream):
    assert genesis.as_tensor(Array(x, stream=stream))[0, 1].item() == 1
pending = genesis.ones(5, device="cuda") + 1
assert genesis.as_tensor(Array(pending)).tolist() == [2] * 5
""")


def test_a_buffer_that_raises(simulated):
    """Arrays of CuPy are on the GPU, and have a buffer that says so by an exception."""
    assert not simulated("""
import mmap
class Far(mmap.mmap):  # closed: it has a buffer that raises
    def __new__(cls, owner):
        one = super().__new__(cls, -1, 1)
        one.close()
        one.owner = owner
        return one
    def __index__(self):
        raise TypeError("not on the CPU")
    __float__ = __bool__ = __len__ = __iter__ = __getitem__ = __index__
class Shown(Far):
    @property
    def __cuda_array_interface__(self):
        return self.owner.__cuda_array_interface__
class Packed(Far):
    def __dlpack__(self, **asked):
        return self.owner.__dlpack__(**asked)
    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()
class Both(Shown, Packed):
    pass
raises(ValueError, "closed", lambda: memoryview(Both(None)))
x = genesis.arange(6, device="cuda").reshape(2, 3).float()
places = genesis.tensor([1, 0, 1], device="cuda")
mask = x > 2
for kind in (Shown, Packed, Both):
    far = kind(x)
    assert genesis.as_tensor(far).data_ptr() == x.data_ptr() != genesis.tensor(far).data_ptr()
    assert genesis.as_tensor(far, device="cuda").data_ptr() == x.data_ptr()
    assert genesis.as_tensor(far, dtype=genesis.int32).tolist() == [[0, 1, 2], [3, 4, 5]]
    for host in (genesis.as_tensor(far, device="cpu"), genesis.tensor(far, device="cpu")):
        assert host.tolist() == x.tolist() and str(host.device) == "cpu"
    assert (x + far).tolist() == (far + x).tolist() == (x * 2).tolist()
    assert genesis.maximum(far, 3).tolist() == [[3, 3, 3], [3, 4, 5]]
    assert (x.T @ far).tolist() == genesis.matmul(kind(x.T), far).tolist() == (x.T @ x).tolist()
    assert (kind(x.T) @ x).tolist() == (x.T @ x).tolist()
    assert x[kind(places)].tolist() == x[places].tolist()
    assert x[kind(mask)].tolist() == [3, 4, 5] and x[0, kind(places)].tolist() == [1, 0, 1]
    y = genesis.zeros(2, 3, device="cuda")
    y[:] = far
    y[kind(mask)] += 1
    assert y.tolist() == [[0, 1, 2], [4, 5, 6]]
    y.copy_(genesis.as_tensor(far))
    assert y.tolist() == x.tolist()
    raises(ValueError, "closed", lambda: genesis.as_tensor(kind(genesis.ones(2))))  # not on a GPU
""")


def test_a_dictionary_where_a_capsule_is_wrong(simulated):
    simulated("""
class Both(Array):  # as CuPy's arrays with negative strides
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **keywords):
        raise ValueError("strides")

x = genesis.ones(4, device="cuda")
assert genesis.as_tensor(Both(x)).data_ptr() == x.data_ptr()
""")


def test_arrays_that_cannot_be(simulated):
    assert not simulated("""
x = genesis.ones(4, 4, device="cuda")
for kind, words, changes in [
    (TypeError, "'<c8'", {"typestr": "<c8"}), (TypeError, "'>f4'", {"typestr": ">f4"}),
    (TypeError, "None", {"typestr": None}), (TypeError, "tuples", {"shape": 3}),
    (TypeError, "tuples", {"strides": [4]}), (TypeError, "masks", {"mask": x}),
    (TypeError, "address", {"data": 5}), (TypeError, "int", {"shape": ("a",)}),
    (ValueError, "do not fit", {"strides": (4,)}), (ValueError, "do not fit", {"strides": (16, 2)}),
    (ValueError, "address", {"data": (-1, False)}), (ValueError, "a stream", {"stream": -1}),
    (TypeError, "int", {"stream": "1"}),
    (ValueError, "aligned", {"data": (x.data_ptr() + 1, False)}),
    (ValueError, "NULL", {"data": (0, False)}),
    (genesis.ShapeError, "(4, -4)", {"shape": (4, -4)}),
    (genesis.ShapeError, "address space", {"shape": (2**40, 2**40)}),
    (genesis.ShapeError, "address space", {"strides": (2**62, 4)}),
]:
    wrong = Array(x, **changes)
    count = sys.getrefcount(wrong)
    raises(kind, words, lambda: genesis.as_tensor(wrong))
    assert sys.getrefcount(wrong) == count
class Wrong:
    __cuda_array_interface__ = 3
raises(TypeError, "dictionary", lambda: genesis.as_tensor(Wrong()))
""")


def test_capsules_that_lie_about_devices(simulated):
    assert not simulated("""
x, deleted = genesis.ones(4, device="cuda"), []
shape, strides = (ctypes.c_int64 * 1)(4), (ctypes.c_int64 * 1)(1)
deleter = DELETER(lambda managed: deleted.append(1))
for changes, words in [
    ({"device_id": 1}, "1"), ({"device_id": -1}, "-1"), ({"device_id": 1 << 20}, "1048576"),
    ({"device_type": 10}, "device type 10"), ({"byte_offset": 2}, "aligned"),
    ({"data": None}, "NULL"), ({"byte_offset": (1 << 64) - 4}, "offset"), ({"lanes": 4}, "lanes"),
]:
    tensor = Tensor(x.data_ptr(), 2, 0, 1, 2, 32, 1, shape, strides, 0)
    for name, value in changes.items():
        setattr(tensor, name, value)
    managed = Managed(1, 0, None, deleter, 0, tensor)
    capsule = new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None)
    raises(Exception, words, lambda: genesis.from_dlpack(capsule))
    assert name_of(capsule) == "dltensor_versioned" and not deleted
managed = Managed(1, 0, None, deleter, 1, Tensor(x.data_ptr(), 2, 0, 1, 2, 32, 1, shape, None, 0))
y = genesis.from_dlpack(new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None))
assert y.device == x.device and y.tolist() == [1] * 4
raises(ValueError, "read-only", lambda: y.zero_())
del y
assert deleted == [1]
""")


def test_devices_and_copies(simulated):
    assert not simulated("""
x, cpu = genesis.arange(3, device="cuda"), genesis.arange(3)
assert x.__dlpack_device__() == (2, 0)
assert genesis.from_dlpack(x).data_ptr() == x.data_ptr() == genesis.as_tensor(x).data_ptr()
assert genesis.from_dlpack(x, copy=False, device="cuda").data_ptr() == x.data_ptr()
for copied, device in [
    (genesis.from_dlpack(x, copy=True), "cuda:0"), (genesis.from_dlpack(x, device="cpu"), "cpu"),
    (genesis.from_dlpack(cpu, device="cuda"), "cuda:0"),
    (genesis.from_dlpack(cpu, device="cuda", copy=True), "cuda:0"),
    (genesis.from_dlpack(x.__dlpack__(), copy=True), "cuda:0"),
    (genesis.from_dlpack(x.__dlpack__(), device="cpu"), "cpu"),
    (genesis.from_dlpack(x.__dlpack__(dl_device=(1, 0))), "cpu"),
    (genesis.from_dlpack(x.__dlpack__(dl_device=(1, 0), stream=1)), "cpu"),
    (genesis.from_dlpack(cpu.__dlpack__(dl_device=(2, 0), stream=1)), "cuda:0"),
    (genesis.from_dlpack(x.__dlpack__(copy=True, stream=ours.cuda_stream)), "cuda:0"),
]:
    assert str(copied.device) == device and copied.tolist() == [0, 1, 2]
    assert copied.data_ptr() not in (x.data_ptr(), cpu.data_ptr())
assert numpy.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
capsule = x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
assert Managed.from_address(pointer_of(capsule, b"dltensor_versioned")).flags == 2
for kind, words, call in [
    (BufferError, "without a copy", lambda: x.__dlpack__(dl_device=(1, 0), copy=False)),
    (BufferError, "(2, 1)", lambda: x.__dlpack__(dl_device=(2, 1))),
    (BufferError, "only with a copy", lambda: genesis.from_dlpack(x, device="cpu", copy=False)),
    (BufferError, "only with a copy", lambda: genesis.from_dlpack(cpu, device="cuda", copy=False)),
    (ValueError, "0 is no stream", lambda: x.__dlpack__(stream=0)),
    (ValueError, "-3 is no stream", lambda: x.__dlpack__(stream=-3)),
    (TypeError, "cpu() first", lambda: x.numpy()),
    (TypeError, "cpu() first", lambda: x.__array__()),
    (TypeError, "cpu() first", lambda: numpy.asarray(x)),
    (TypeError, "cpu() first", lambda: numpy.hypot(x, x)),
    (TypeError, "cpu() first", lambda: numpy.linalg.norm(x)),
    (TypeError, "cpu() first", lambda: numpy.add(x, x, where=numpy.ones(3, dtype=bool))),
    (BufferError, "cpu() first", lambda: memoryview(x)),
]:
    raises(kind, words, call)
assert numpy.sum(x).device == x.device and numpy.sum(x).item() == 3
assert numpy.add(x, 1).tolist() == numpy.concatenate([x[1:], x[2:] + 1]).tolist() == [1, 2, 3]
genesis.set_default_device("cuda")  # what is on a GPU stays, what is not goes there
assert str(genesis.as_tensor(numpy.ones(2)).device) == "cuda:0"
genesis.set_default_device(None)
assert str(genesis.as_tensor(Array(x)).device) == "cuda:0"
assert genesis.tensor(Array(x)).tolist() == genesis.as_tensor(Array(x), device="cpu").tolist()
""")


def test_two_devices(simulated):
    assert not simulated(
        """
x = genesis.arange(3, device="cuda:1")
assert x.__dlpack_device__() == (2, 1)
for shared in (genesis.from_dlpack(x), genesis.from_dlpack(x.__dlpack__()),
               genesis.from_dlpack(x.__dlpack__(dl_device=(2, 1), copy=False))):
    assert shared.device == x.device and shared.data_ptr() == x.data_ptr()
for copied in (genesis.from_dlpack(x, device="cuda:0"),
               genesis.from_dlpack(x.__dlpack__(dl_device=(2, 0)))):
    assert str(copied.device) == "cuda:0" and copied.tolist() == [0, 1, 2]
raises(BufferError, "(2, 0) only with a copy", lambda: genesis.from_dlpack(
    type("Producer", (), {"__dlpack_device__": lambda self: (2, 1), "__dlpack__": None})(),
    device="cuda:0", copy=False))
with cuda.device(1), cuda.stream(cuda.Stream()) as stream:  # the dictionary names no device
    array = Array(x)
    assert array.__cuda_array_interface__["stream"] == cuda.current_stream().cuda_stream != 1
    assert genesis.as_tensor(array).device == x.device
""",
        SIM_GPU_DEVICES="2",
    )


def test_producers_are_told_our_stream(simulated):
    assert not simulated("""
x = genesis.arange(3, device="cuda")
asked = []
class Producer:
    def __dlpack_device__(self):
        return 2, 0
    def __dlpack__(self, **arguments):
        asked.append(arguments)
        return x.__dlpack__(**arguments)
class Old(Producer):
    def __dlpack__(self, stream=None):
        asked.append(stream)
        return x.__dlpack__(stream=stream)
for stream, number in [(cuda.default_stream(), 1), (ours, ours.cuda_stream),
                       (cuda.ExternalStream(2), 2)]:
    with cuda.stream(stream):
        assert genesis.from_dlpack(Producer()).tolist() == [0, 1, 2]
        assert asked.pop() == {"stream": number, "max_version": (1, 3)}
        assert genesis.from_dlpack(Producer(), device="cpu").tolist() == [0, 1, 2]
        assert asked.pop() == {"dl_device": (1, 0), "max_version": (1, 3)}
        assert genesis.from_dlpack(Old()).data_ptr() == x.data_ptr()
        assert genesis.from_dlpack(Old(), copy=True).data_ptr() != x.data_ptr()
        assert asked == [number, number]
        asked.clear()
assert str(genesis.from_dlpack(Old(), device="cpu").device) == "cpu"
""")


def test_lives(simulated):
    assert not simulated("""
def allocated():
    gc.collect()
    genesis.flush()
    return cuda.memory_allocated()
before = allocated()
x = genesis.full((1000,), 3, device="cuda")
array = Array(x)
y, gone = genesis.as_tensor(array), weakref.ref(array)
del array, x
gc.collect()
assert gone() is not None and y.sum().item() == 3000
z = y[5:] + 1
del y
assert z.sum().item() == 995 * 4
del z
gc.collect()
assert gone() is None and allocated() == before
for i in range(50):
    x = genesis.ones(100, device="cuda")
    kept = [genesis.from_dlpack(x), x.__dlpack__(), genesis.as_tensor(Array(x)),
            genesis.from_dlpack(x.__dlpack__(stream=ours.cuda_stream, max_version=(1, 0)))]
    del x, kept
assert allocated() == before
x = genesis.ones(100, device="cuda")
genesis.kept = [genesis.from_dlpack(x), x.__dlpack__(), genesis.as_tensor(Array(x))]
""")


# ---- in the order of streams ----

HAND_OVERS = """
def by_capsule(x):  # the producer is asked for the consumer's stream
    with cuda.stream(ours):
        capsule = x.__dlpack__(stream=theirs.cuda_stream, max_version=(1, 0))
    with cuda.stream(theirs):
        return genesis.from_dlpack(capsule)
def by_table(x):
    with cuda.stream(theirs):
        return genesis.from_dlpack(x)
def by_dictionary(x):
    with cuda.stream(ours):
        array = Array(x)
    with cuda.stream(theirs):
        return genesis.as_tensor(array)
def by_nobody(x):  # who wrote is not the stream that is current at any of both
    capsule = x.__dlpack__()
    with cuda.stream(theirs):
        return genesis.from_dlpack(capsule)
table = Table()
own = genesis.Tensor.__dlpack_c_exchange_api__
ctypes.memmove(ctypes.addressof(table), pointer_of(own, b"dlpack_exchange_api"), 16)
table.major, table.minor = 1, 3
def give(other, managed):
    with cuda.stream(ours):
        return Table.from_address(pointer_of(own, b"dlpack_exchange_api")).from_python(
            other.tensor, managed)
def current(kind, index, handle):
    assert (kind, index) == (2, 0)
    handle[0] = ours.cuda_stream
    return 0
fields = dict((field[0], field[1]) for field in Table._fields_)
table.from_python, table.current_stream = (
    fields["from_python"](give), fields["current_stream"](current))
class Other:
    __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    def __init__(self, tensor):
        self.tensor = tensor
    def __dlpack__(self):
        raise AssertionError
def by_their_table(x):
    with cuda.stream(theirs):
        return genesis.from_dlpack(Other(x))
"""


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_consumers_wait(simulated, schedule, seed):
    found = simulated(
        HAND_OVERS
        + """
for hand_over in (by_capsule, by_table, by_dictionary, by_nobody, by_their_table):
    for i in range(4):
        with cuda.stream(ours):
            x = genesis.full((3000,), i, device="cuda")
            x += 1
        y = hand_over(x)
        with cuda.stream(theirs):
            y *= 2
            total = (y + 1).sum()
        del x, y  # the memory may go to `ours` again, where `theirs` still works
        with cuda.stream(ours):
            again = genesis.full((3000,), 7, device="cuda")
            again += 1
        with cuda.stream(theirs):
            assert total.item() == 3000 * (2 * i + 3), hand_over
cuda.synchronize()
""",
        schedule,
        seed,
    )
    assert not found


def test_a_wait_that_is_missing_is_found(simulated):
    """So the test above can fail."""
    found = simulated(
        """
with cuda.stream(ours):
    x = genesis.full((3000,), 1, device="cuda")
    x += 1
    capsule = x.__dlpack__(stream=-1)
with cuda.stream(theirs):
    y = genesis.from_dlpack(capsule)
    (y + 1).sum().item()
cuda.synchronize()  # what `ours` does is seen when it runs
""",
        "lazy",
    )
    assert "H1 race" in found
