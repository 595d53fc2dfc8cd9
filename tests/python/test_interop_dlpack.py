"""DLPack from Python: with NumPy, producers that are old or lie, and JAX and tvm-ffi if present."""

import ctypes
import doctest
import gc
import os
import pickle
import threading
import weakref
from pathlib import Path

import numpy
import pytest

import genesis

EXCHANGES = int(os.environ.get("EXCHANGES", "3000"))
DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64",
]  # fmt: skip

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype = ctypes.c_void_p
pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]


def allocated():
    gc.collect()
    genesis.flush()
    return genesis.memory_stats().allocated_bytes


def name_of(capsule):
    return str(capsule).split('"')[1]


# ---- NumPy ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 1, 4), (0, 3)])
def test_numpy_shares_memory_both_ways(dtype, shape):
    array = numpy.ones(shape, dtype=dtype)
    for one in (array, array.T, array[..., None]):
        tensor = genesis.from_dlpack(one)
        assert tensor.shape == one.shape and str(tensor.dtype) == f"genesis.{dtype}"
        back = numpy.from_dlpack(tensor)
        assert back.dtype == one.dtype and back.shape == one.shape
        if one.size:
            assert tensor.data_ptr() == one.ctypes.data == back.ctypes.data
            tensor.zero_()
            assert not one.any() and not back.any()
            one[...] = 1
            assert tensor.all().item()


def test_views_keep_their_strides():
    array = numpy.arange(24, dtype=numpy.int32).reshape(4, 6)
    wide = numpy.broadcast_to(array, (2, 4, 6))
    for view in (array[::-1, ::2], array[:, 5:0:-2], array.T[1:], wide):
        tensor = genesis.from_dlpack(view)
        assert tensor.tolist() == view.tolist() and tensor.data_ptr() == view.ctypes.data
        assert [4 * stride for stride in tensor.strides] == list(view.strides)
        assert numpy.from_dlpack(tensor).strides == view.strides
    x = genesis.arange(24).reshape(4, 6)[1::2, ::-3]
    assert numpy.from_dlpack(x).tolist() == x.tolist() == [[11, 8], [23, 20]]


def test_what_waits_is_computed():
    x = genesis.ones(100, 100)
    y = (x + 1) * 2
    array = numpy.from_dlpack(y)
    assert (array == 4).all()
    y += 1
    assert (array == 5).all()
    array[0, 0] = 7
    assert (y * 2)[0, 0].item() == 14


def test_read_only_stays_read_only():
    array = numpy.arange(4)
    array.flags.writeable = False
    tensor = genesis.from_dlpack(array)
    with pytest.raises(ValueError, match="read-only"):
        tensor += 1
    assert not numpy.from_dlpack(tensor).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()
    assert genesis.from_dlpack(tensor.__dlpack__(copy=True)).tolist() == [0, 1, 2, 3]


def test_writes_look_for_overlaps_by_address():
    array = numpy.arange(6)
    one, two = genesis.from_dlpack(array[:-1]), genesis.from_numpy(array[1:])
    two.copy_(one)
    assert array.tolist() == [0, 0, 1, 2, 3, 4]
    array = numpy.arange(3001.0)
    one, two = genesis.from_dlpack(array[:-1]), genesis.from_numpy(array[1:])
    genesis.mul(one, 2, out=two)
    assert array.tolist() == [0, *range(0, 6000, 2)]
    genesis.add(two[1:], two[:-1], out=two[1:])  # one storage, twice
    assert array.tolist() == [0, 0, *range(2, 11998, 4)]


# ---- capsules and their arguments ----


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((1, 3), "dltensor_versioned"),
        ((2, 0), "dltensor_versioned"),
    ],
)
def test_capsules(version, name):
    x = genesis.arange(3)
    before = allocated()
    capsule = x.__dlpack__(max_version=version)
    assert name_of(capsule) == name
    y = genesis.from_dlpack(capsule)
    assert y.data_ptr() == x.data_ptr() and name_of(capsule) == f"used_{name}"
    with pytest.raises(ValueError, match=f"'used_{name}' holds no tensor: it was taken out before"):
        genesis.from_dlpack(capsule)
    del y
    del capsule
    capsule = x.__dlpack__(max_version=version)  # which nobody takes
    del capsule
    assert allocated() == before and x.tolist() == [0, 1, 2]


def test_no_elements_have_no_memory():
    """Their address is NULL, which no function of C may be handed: the sanitizers look."""
    x = genesis.from_dlpack(genesis.empty(0, 2).__dlpack__())
    mask = genesis.from_dlpack(genesis.empty(0, 2, dtype=genesis.bool).__dlpack__())
    assert x.data_ptr() == mask.data_ptr() == 0
    assert mask.nonzero().shape == (0, 2) == x.sort(0).values.shape and x[mask].shape == (0,)
    assert genesis.cat((x, x)).unique().tolist() == x.sum(1).tolist() == (x + 1).tolist() == []


def test_what_the_structure_says():
    x = genesis.arange(6, dtype=genesis.bfloat16).reshape(2, 3)[:, 1:]
    capsule = x.__dlpack__(max_version=(1, 3), copy=True)
    managed = Managed.from_address(pointer_of(capsule, b"dltensor_versioned"))
    assert (managed.major, managed.minor, managed.flags) == (1, 3, 2)
    tensor = managed.tensor
    assert (tensor.device_type, tensor.device_id, tensor.ndim) == (1, 0, 2)
    assert (tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset) == (4, 16, 1, 0)
    assert tensor.shape[:2] == [2, 2] and tensor.strides[:2] == [2, 1]
    assert tensor.data != x.data_ptr()
    shared = x.__dlpack__(max_version=(1, 3))
    managed = Managed.from_address(pointer_of(shared, b"dltensor_versioned"))
    assert managed.flags == 0 and managed.tensor.data == x.data_ptr()
    assert managed.tensor.strides[:2] == [3, 1]


def test_arguments():
    x = genesis.arange(3)
    assert x.__dlpack_device__() == (1, 0)
    for stream in (None, -1):
        assert genesis.from_dlpack(x.__dlpack__(stream=stream)).data_ptr() == x.data_ptr()
    for wrong, error, words in [
        (lambda: x.__dlpack__(stream=1), ValueError, "1 is no stream for a tensor on cpu"),
        (lambda: x.__dlpack__(stream="1"), TypeError, "int"),
        (lambda: x.__dlpack__(dl_device=(2, 0)), BufferError, r"cannot be handed over on \(2, 0\)"),
        (lambda: x.__dlpack__(dl_device=(1,)), ValueError, "pair"),
        (lambda: x.__dlpack__(max_version=1), ValueError, "pair"),
        (lambda: x.__dlpack__(None), TypeError, "positional"),
        (lambda: x.__dlpack__(dl_device=(3, 0)), BufferError, r"cannot be handed over on \(3, 0\)"),
        (lambda: genesis.from_dlpack(x, device="cuda:x"), ValueError, "cuda:x"),
        (lambda: genesis.from_dlpack(3), TypeError, "has no __dlpack__"),
        (lambda: genesis.from_dlpack(), TypeError, "from_dlpack"),
    ]:
        with pytest.raises(error, match=words):
            wrong()
    copied = genesis.from_dlpack(x, copy=True, device="cpu")
    assert copied.data_ptr() != x.data_ptr() and copied.tolist() == [0, 1, 2]
    assert genesis.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    assert genesis.from_dlpack(x.__dlpack__(), copy=True).data_ptr() != x.data_ptr()
    assert numpy.from_dlpack(x, copy=True).ctypes.data != x.data_ptr()
    assert numpy.from_dlpack(x, device="cpu", copy=False).ctypes.data == x.data_ptr()


# ---- producers ----


class Producer:
    def __init__(self, give, device=(1, 0)):
        self.give, self.device, self.asked = give, device, None

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        self.asked = asked
        return self.give(**asked)


def test_producers_from_before_version_1():
    array = numpy.arange(5)

    def old(stream=None):
        return array.__dlpack__()

    assert genesis.from_dlpack(Producer(old)).data_ptr() == array.ctypes.data
    assert genesis.from_dlpack(Producer(old), copy=False).data_ptr() == array.ctypes.data
    assert genesis.from_dlpack(Producer(old), copy=True).data_ptr() != array.ctypes.data
    assert genesis.from_dlpack(Producer(old, (3, 0))).data_ptr() == array.ctypes.data  # pinned


def test_producers_on_a_gpu():
    array = numpy.arange(5)
    far = Producer(lambda **asked: array.__dlpack__(), (2, 0))
    metal = Producer(far.give, (8, 0))
    with pytest.raises(RuntimeError, match=r'device \(8, 0\): device="cpu" asks for a copy'):
        genesis.from_dlpack(metal)
    assert metal.asked is None
    assert genesis.from_dlpack(far, device="cpu").tolist() == [0, 1, 2, 3, 4]
    assert far.asked == {"max_version": (1, 3), "dl_device": (1, 0)}
    assert genesis.as_tensor(far, device="cpu").tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(BufferError, match="only with a copy"):
        genesis.from_dlpack(far, device="cpu", copy=False)


def test_producers_that_fail():
    def fails(**asked):
        raise BufferError("not today")

    x = genesis.ones(2)
    for wrong, error, words in [
        (Producer(fails), BufferError, "not today"),
        (Producer(lambda **asked: 3), TypeError, "gave no capsule, but 3"),
        (Producer(lambda **asked: new_capsule(8, b"other", None)), ValueError, "'other' holds no"),
        (Producer(lambda **asked: x.__dlpack__(), ("a", "b")), TypeError, "int"),
        (Producer(lambda **asked: x.__dlpack__(), (1,)), ValueError, "pair"),
        (Producer(lambda **asked: x.__dlpack__(), (77, 0)), RuntimeError, r"\(77, 0\)"),
    ]:
        with pytest.raises(error, match=words):
            genesis.from_dlpack(wrong)
        if (
            error is BufferError
        ):  # an operand that its owner keeps is nobody's fault but ours to refuse
            with pytest.raises(TypeError):
                x + wrong
            with pytest.raises(BufferError):
                genesis.add(x, wrong)


def test_capsules_that_lie():
    """The C test has the long list: here that exceptions fit, and a capsule keeps its tensor."""
    memory = (ctypes.c_float * 8)(*range(8))
    deleted = []
    shape, strides = (ctypes.c_int64 * 2)(2, 2), (ctypes.c_int64 * 2)(2, 1)
    deleter = DELETER(lambda managed: deleted.append(1))

    def make(**changes):
        tensor = Tensor(ctypes.addressof(memory), 1, 0, 2, 2, 32, 1, shape, strides, 0)
        managed = Managed(1, 0, None, deleter, 0, tensor)
        for name, value in changes.items():
            setattr(managed if hasattr(managed, name) else managed.tensor, name, value)
        managed.keep = changes
        return managed

    for changes, error, words in [
        ({"major": 2}, RuntimeError, r"DLPack 2\.0"),
        ({"lanes": 2}, TypeError, "lanes"),
        ({"code": 5, "bits": 64}, TypeError, "complex64 have no dtype"),
        ({"ndim": -3}, genesis.ShapeError, "-3"),
        ({"ndim": 1 << 30}, genesis.ShapeError, "dimensions"),
        ({"shape": (ctypes.c_int64 * 2)(2, -2)}, genesis.ShapeError, r"\(2, -2\)"),
        ({"shape": (ctypes.c_int64 * 2)(1 << 62, 1 << 62)}, genesis.ShapeError, "address space"),
        ({"strides": (ctypes.c_int64 * 2)(1 << 62, 1)}, genesis.ShapeError, "address space"),
        ({"data": None}, ValueError, "NULL"),
        ({"byte_offset": 1}, ValueError, "aligned"),
        ({"byte_offset": (1 << 64) - 4}, ValueError, "offset"),
        ({"device_type": 10}, RuntimeError, "device type 10"),
    ]:
        managed = make(**changes)
        capsule = new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None)
        with pytest.raises(error, match=words):
            genesis.from_dlpack(capsule)
        assert name_of(capsule) == "dltensor_versioned" and not deleted
    managed = make(strides=None, byte_offset=16, flags=1)
    capsule = new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None)
    x = genesis.from_dlpack(capsule)
    assert x.tolist() == [[4, 5], [6, 7]] and x.strides == (2, 1)
    with pytest.raises(ValueError, match="read-only"):
        x.zero_()
    view = x[1]
    del x, capsule
    assert not deleted and view.tolist() == [6, 7]
    del view
    assert deleted == [1]
    managed = make(deleter=DELETER())  # there need be none
    assert genesis.from_dlpack(
        new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None)
    ).tolist() == [[0, 1], [2, 3]]


# ---- lives ----


def test_either_may_go_first():
    before = allocated()
    x = genesis.full((1000,), 3)
    array = numpy.from_dlpack(x)
    del x
    assert (array == 3).all() and allocated() > before
    del array
    assert allocated() == before
    array = numpy.full(1000, 4)
    gone = weakref.ref(array)
    x = genesis.from_dlpack(array)
    del array
    gc.collect()
    assert gone() is not None and (x == 4).all().item()
    y = x[5:].T  # pending work and views keep it as well
    z = y + 1
    del x, y
    assert z.sum().item() == 995 * 5
    del z
    gc.collect()
    assert gone() is None


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_exchanges_leak_nothing():
    x, array = genesis.ones(64, 64), numpy.ones((64, 64))

    def exchange(times):
        for i in range(times):
            there = numpy.from_dlpack(x)
            back = genesis.from_dlpack(there)
            again = genesis.from_dlpack(x.__dlpack__(max_version=None if i % 2 else (1, 0)))
            shared = genesis.from_dlpack(array)
            capsule = x.__dlpack__()
            copied = genesis.from_dlpack(x, copy=i % 3 == 0 or None)
            del there, back, again, shared, capsule, copied

    exchange(1000)
    before, size = allocated(), resident()
    exchange(EXCHANGES)
    assert allocated() == before
    if "libasan" not in Path("/proc/self/maps").read_text():  # which keeps what is freed
        assert resident() - size < 100 * EXCHANGES  # the least of the blocks behind one has more


def test_threads_exchange():
    x = genesis.ones(1000)
    failures = []

    def work():
        try:
            for _ in range(300):
                y = genesis.from_dlpack(numpy.from_dlpack(x))
                assert y.data_ptr() == x.data_ptr() and (y + 1).sum().item() == 2000
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_exit_with_everything_alive(fresh):
    fresh("""
import genesis, numpy
x = genesis.ones(10)
kept = [numpy.from_dlpack(x), genesis.from_dlpack(numpy.ones(3)), x.__dlpack__(),
        x.__dlpack__(max_version=(1, 0)), genesis.from_dlpack(numpy.from_dlpack(x)) + 1]
kept.append(kept)
genesis.kept = kept
""")


def test_pickling_is_what_it_was():
    x = genesis.from_dlpack(numpy.arange(6).reshape(2, 3)[:, ::2])
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
    address = pickle.loads(pickle.dumps(x.data_ptr()))
    assert type(address) is int and address == x.data_ptr()


def test_the_docstring_runs():
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(genesis.from_dlpack, "from_dlpack", module=False):
        runner.run(test)
    assert runner.tries > 0 and runner.failures == 0


# ---- the table of functions ----

FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(
                ctypes.c_int,
                ctypes.POINTER(Tensor),
                ctypes.POINTER(ctypes.POINTER(Managed)),
                ctypes.c_void_p,
                FAIL,
            ),
        ),
        (
            "from_python",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed))
            ),
        ),
        (
            "to_python",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
        (
            "describe",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor)),
        ),
        (
            "current_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    ]


def taken(address):
    """The object of a new reference."""
    made = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))
    return made


def test_the_table():
    capsule = genesis.Tensor.__dlpack_c_exchange_api__
    table = Table.from_address(pointer_of(capsule, b"dlpack_exchange_api"))
    assert (table.major, table.minor, table.previous) == (1, 3, None)
    x = genesis.arange(6).reshape(2, 3) + 0
    managed, made, tensor = ctypes.POINTER(Managed)(), ctypes.c_void_p(), Tensor()
    assert table.from_python(x, managed) == 0
    assert managed[0].tensor.data == x.data_ptr() and managed[0].major == 1
    assert table.to_python(managed, made) == 0
    y = taken(made)
    assert type(y) is genesis.Tensor and y.data_ptr() == x.data_ptr() and y.shape == (2, 3)
    assert (y + 1).tolist() == [[1, 2, 3], [4, 5, 6]]  # it can be computed with
    assert table.describe(x.T, tensor) == 0
    assert tensor.data == x.data_ptr() and tensor.ndim == 2 and tensor.code == 0
    stream = ctypes.c_void_p(5)
    assert table.current_stream(1, 0, stream) == 0 and stream.value is None
    with pytest.raises(RuntimeError, match="device type 99"):
        table.current_stream(99, 0, stream)
    before = allocated()
    sizes = (ctypes.c_int64 * 2)(3, 4)
    prototype = Tensor(None, 1, 0, 2, 2, 32, 1, sizes, None, 0)
    said = []
    fail = FAIL(lambda context, kind, text: said.append((kind, text)))
    assert table.allocate(prototype, managed, None, fail) == 0 and not said
    assert managed[0].flags == 2 and allocated() > before
    managed[0].deleter(managed)
    assert allocated() == before
    prototype.lanes = 3
    assert table.allocate(prototype, managed, None, fail) == -1
    assert said[0][0] == b"BufferError" and b"lanes" in said[0][1]
    prototype.lanes, sizes[0] = 1, 1 << 50
    assert table.allocate(prototype, managed, None, fail) == -1
    assert said[1][0] == b"MemoryError"
    # What cannot be imported stays the caller's.
    assert table.from_python(x, managed) == 0
    managed[0].major = 9
    with pytest.raises(RuntimeError, match=r"DLPack 9\.3"):
        table.to_python(managed, made)
    managed[0].deleter(managed)


def test_tables_of_others():
    """A table that is none, too new, or fails is passed by; an older one behind it is found."""
    own = genesis.Tensor.__dlpack_c_exchange_api__
    asked = []
    x = genesis.arange(3)

    class Other:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **arguments):
            asked.append(arguments)
            return x.__dlpack__()

    from_python = Table._fields_[4][1]

    def give(_, managed):
        asked.append("table")
        return Table.from_address(pointer_of(own, b"dlpack_exchange_api")).from_python(x, managed)

    def refuse(_, managed):
        return -1

    good, bad, new = Table(1, 7), Table(1, 0), Table(2, 0)
    good.from_python, bad.from_python = from_python(give), from_python(refuse)
    chained = Table(2, 0, ctypes.addressof(good))
    for value, is_asked in [
        (5, False),
        (new_capsule(ctypes.addressof(good), b"another_name", None), False),
        *(
            (new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None), is_used)
            for table, is_used in ((good, True), (bad, False), (new, False), (chained, True))
        ),
    ]:
        Other.__dlpack_c_exchange_api__ = value
        asked.clear()
        assert genesis.from_dlpack(Other()).data_ptr() == x.data_ptr()
        assert asked == (["table"] if is_asked else [{"max_version": (1, 3)}])
        asked.clear()
        genesis.from_dlpack(Other(), copy=True)  # a table cannot be asked for a copy
        assert asked == [{"max_version": (1, 3), "copy": True}]


# ---- others ----


def test_jax_shares_memory_both_ways():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    there = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    x = genesis.from_dlpack(there)
    assert x.data_ptr() == there.unsafe_buffer_pointer() and x.tolist() == there.tolist()
    assert genesis.as_tensor(there).data_ptr() == there.unsafe_buffer_pointer()
    half = genesis.as_tensor(jnp.ones(3, dtype=jnp.bfloat16))
    assert half.dtype == genesis.bfloat16 and half.tolist() == [1, 1, 1]
    y = genesis.arange(1 << 12).float()  # JAX shares what is aligned to 64 bytes
    back = jax.dlpack.from_dlpack(y)
    assert back.unsafe_buffer_pointer() == y.data_ptr() and back[5] == 5
    del y
    gc.collect()
    assert back[100] == 100
    assert (genesis.ones(3, 4) + there).tolist() == (1 + numpy.asarray(there)).tolist()


def test_tvm_ffi_takes_tensors_as_they_are():
    ffi = pytest.importorskip("tvm_ffi")
    x = genesis.arange(6).reshape(2, 3)
    there = ffi.from_dlpack(x)
    assert tuple(there.shape) == (2, 3)
    assert numpy.from_dlpack(there).ctypes.data == x.data_ptr()
    echo = ffi.get_global_func("testing.echo")  # by the table, and back as ours
    back = echo(x)
    assert numpy.from_dlpack(back).ctypes.data == x.data_ptr()
