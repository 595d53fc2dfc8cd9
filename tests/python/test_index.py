"""Keys of every kind against NumPy, plans, and what is said about mistakes."""

from __future__ import annotations

import os
import random

import index_keys
import numpy
import pytest

import genesis
from genesis import _C
from genesis.ndarray import IndexKind, IndexPlan

KEYS = int(os.environ.get("TEST_INDEX_KEYS", "1500"))  # 50000 take half a minute
ERRORS = (IndexError, ValueError, TypeError)


def allocations() -> int:
    """How many blocks were ever allocated; the question computes what is pending."""
    return _C.MemoryManager("cpu").statistics()["alloc_count"]


def attempt(call):
    try:
        return call(), None
    except ERRORS as error:
        return None, error


def written(array: numpy.ndarray, key, value) -> numpy.ndarray:
    """What an assignment makes of an array: in row-major order, so that the last one wins."""
    flat = array.flatten()
    places = numpy.arange(array.size).reshape(array.shape)[key]
    values = numpy.asarray(value).astype(array.dtype)
    while values.ndim > places.ndim:  # dimensions of 1 in front do not count
        values = values[0]
    values = numpy.broadcast_to(values, places.shape)
    for place, one in zip(places.ravel(), values.ravel(), strict=True):
        flat[place] = one
    return flat.reshape(array.shape)


def check_set(rng, array, theirs, ours, shape):
    value = index_keys.value_of(rng, shape, array.dtype.name)
    target, reference = array.copy(order="K"), array.copy()
    _, error = attempt(lambda: reference.__setitem__(theirs, value))
    own = value
    if isinstance(value, numpy.ndarray) and rng.random() < 0.7:
        own = genesis.tensor(value)
    _, mine = attempt(lambda: genesis.from_numpy(target).__setitem__(ours, own))
    assert (error is None) == (mine is None), (error, mine)
    expected = array if error is not None else written(array, theirs, value)
    numpy.testing.assert_array_equal(target, expected)


def check_key(seed: int) -> bool:
    """Whether NumPy took the key; both did the same with it."""
    rng = numpy.random.default_rng(seed)
    array = index_keys.array_of(rng)
    tensor = genesis.from_numpy(array)
    theirs, ours = index_keys.key_of(rng, array.shape)
    expected, error = attempt(lambda: array[theirs])
    got, mine = attempt(lambda: tensor[ours])
    assert (error is None) == (mine is None), (error, mine)
    if error is not None:
        assert not isinstance(error, IndexError) or isinstance(mine, IndexError), (error, mine)
        return False
    assert got.shape == expected.shape
    numpy.testing.assert_array_equal(got.numpy(), expected)
    plan = genesis.index_plan(tensor, ours)
    assert plan.result_shape == got.shape and plan.result_strides == got.strides
    if expected.size:
        is_there = got.data_ptr() == array.ctypes.data + plan.ptr_offset_bytes
        assert (plan.kind is IndexKind.VIEW) == is_there
    places = numpy.arange(array.size).reshape(array.shape)[theirs]
    if plan.index_tensor is not None:
        assert plan.index_tensor.tolist() == places.ravel().tolist()
    check_set(rng, array, theirs, ours, expected.shape)
    return True


def test_random_keys():
    taken = 0
    for seed in range(KEYS):
        try:
            taken += check_key(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert KEYS * 0.7 < taken < KEYS


# ---- plans ----


def test_basic_keys_copy_nothing():
    array = numpy.arange(60, dtype="float32").reshape(3, 4, 5)
    x = genesis.tensor(array)
    address = x.data_ptr()
    keys = [
        0, (slice(1, 3), 2), (..., slice(None, None, -2)), None, (), (0, 1, 2),
        (None, slice(2), ...), genesis.tensor(1), numpy.int64(2), (numpy.array(1), slice(None)),
        (slice(3, 1),),
    ]  # fmt: skip
    before = allocations()
    views = [x[key] for key in keys]
    plans = [genesis.index_plan(x, key) for key in keys]
    assert allocations() == before
    for key, view, plan in zip(keys, views, plans, strict=True):
        assert plan.kind is IndexKind.VIEW and plan.kind.value == "view"
        assert plan.index_tensor is None and plan.temp_memory_bytes == 0
        assert not plan.needs_mask_compaction
        assert plan.result_shape == view.shape and plan.result_strides == view.strides
        assert view.data_ptr() == address + plan.ptr_offset_bytes
        theirs = 1 if isinstance(key, genesis.Tensor) else key
        assert view.tolist() == array[theirs].tolist()


def test_kinds_of_plans():
    x = genesis.zeros(4, 6)
    number, other = 1.5, genesis.ones(6)
    rows, mask = genesis.tensor([0, 2]), x > 0
    assert genesis.index_plan(x, 0, number).kind is IndexKind.FILL
    assert genesis.index_plan(x, 0, other).kind is IndexKind.COPY
    assert genesis.index_plan(x, 0, numpy.ones(6)).kind is IndexKind.COPY
    assert genesis.index_plan(x, 0, for_set=True).kind is IndexKind.COPY
    assert genesis.index_plan(x, rows).kind is IndexKind.GATHER
    for value in (number, other):
        assert genesis.index_plan(x, rows, value).kind is IndexKind.SCATTER
        assert genesis.index_plan(x, mask, value).kind is IndexKind.SCATTER
    plan = genesis.index_plan(x, (slice(1, None), rows))
    assert isinstance(plan, IndexPlan) and "gather" in repr(plan)
    assert plan.result_shape == (3, 2) and plan.result_strides == (2, 1)
    assert plan.ptr_offset_bytes == 24
    assert plan.index_tensor.tolist() == [6, 8, 12, 14, 18, 20]
    assert plan.index_tensor.dtype == genesis.int64
    assert x[1:, rows].tolist() == x.flatten()[plan.index_tensor].view(3, 2).tolist()
    with pytest.raises(IndexError):
        genesis.index_plan(x, 9)


def test_masks_choose_by_density():
    n = 100_000
    x = genesis.zeros(n)
    dense, sparse = genesis.arange(n) % 2 == 0, genesis.arange(n) % 1000 == 0
    for mask, most in ((dense, 100), (sparse, 8 * n // 1000 + 100)):
        plan = genesis.index_plan(x, mask)
        assert plan.needs_mask_compaction and plan.index_tensor is None
        assert plan.temp_memory_bytes <= most
        assert plan.result_shape == (mask.sum().item(),)
    assert genesis.index_plan(x, sparse).temp_memory_bytes >= 8 * n // 1000
    rows = genesis.index_plan(genesis.zeros(4, 5), genesis.ones(4) > 0)
    assert rows.temp_memory_bytes == 8 * 4
    wide = genesis.zeros(4, 5) > 0
    assert genesis.index_plan(genesis.zeros(5, 4), wide.T).temp_memory_bytes >= 20  # its copy


# ---- types, sizes and layouts ----


@pytest.mark.parametrize("name", [*index_keys.DTYPES, "bfloat16"])
def test_every_type(name):
    dtype = getattr(genesis, name)
    x = (genesis.arange(24) % 2 if name == "bool" else genesis.arange(24)).to(dtype).view(4, 6)
    wide = x.double().numpy()
    rows, mask = numpy.array([3, 0, 3]), numpy.arange(24).reshape(4, 6) % 3 == 0
    for key in (rows, (slice(None), rows), mask, (rows, rows), (slice(None, None, -1), mask[0])):
        assert x[key].dtype == dtype
        assert x[key].double().tolist() == wide[key].tolist()
        y, other = x.clone(), wide.copy()
        y[key], other[key] = 1, 1
        assert y.double().tolist() == other.tolist()
        y[key], other[key] = x[key], wide[key]
        assert y.double().tolist() == other.tolist()
    y, other = x.clone(), wide.copy()
    y.index_put_((genesis.tensor(rows),), x[:3], accumulate=True)
    numpy.add.at(other, rows, wide[:3])
    if name == "bool":
        other = other > 0
    assert y.double().tolist() == other.tolist()


@pytest.mark.parametrize(
    "index_type", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_every_type_of_index(index_type):
    array = numpy.arange(100)
    x = genesis.tensor(array)
    places = numpy.array([5, 99, 0, 5], index_type)
    if index_type[0] == "i":
        places[0] = -3
    own = genesis.tensor(places)
    assert x[own].tolist() == array[places].tolist()
    assert x[own[::-2]].tolist() == array[places[::-2]].tolist()
    assert x[own.unsqueeze(1),].tolist() == array[places[:, None],].tolist()
    if index_type[0] == "u":  # the largest number is no -1
        most = numpy.iinfo(index_type).max
        for wrong in (genesis.tensor([most], dtype=index_type), genesis.tensor(most)):
            with pytest.raises(IndexError, match="out of range"):
                x[wrong]


def test_empty_and_without_dimensions():
    one = genesis.tensor(5.0)
    assert one[()].tolist() == 5 and one[...].shape == () and one[None].shape == (1,)
    assert one[True].tolist() == [5] and one[False].shape == (0,)
    assert one[genesis.tensor(True)].tolist() == [5]
    one[()] = 7
    assert one.item() == 7
    one[True] = 8
    one[False] = 9
    assert one.item() == 8
    none = genesis.zeros(0, 3)
    assert none[[]].shape == (0, 3) and none[:, [0, 2]].shape == (0, 2)
    assert none[none > 0].shape == (0,) and genesis.zeros(3)[[]].shape == (0,)
    assert genesis.zeros(3)[numpy.zeros((2, 0), int)].shape == (2, 0)
    with pytest.raises(IndexError):
        none[[0]]
    none[[]] = 1
    assert genesis.zeros(3)[range(2)].tolist() == [0, 0]


def test_keys_as_numpy_and_python_have_them():
    array = numpy.arange(12).reshape(3, 4)
    x = genesis.tensor(array)
    for key in [
        numpy.bool_(True), True, False, (True, 0), (0, True), numpy.array(True), numpy.int8(-1),
        numpy.uint64(2), (numpy.uint16(1), [0, 1]), [[0, 1], [2, 0]], ([0, 1], (3, 3)),
        numpy.array([0, 2], "uint32"), [True, False, True], [numpy.int64(1), 0],
        (numpy.array([True, False, True]), slice(None, None, 2)), [[]], range(0),
        [numpy.True_, numpy.False_, numpy.True_], bytearray(b"\1"), numpy.array([2, 0])[::-1],
    ]:  # fmt: skip
        assert x[key].tolist() == array[key].tolist(), key
    locked = numpy.array([2, 0])
    locked.flags.writeable = False
    assert x[locked].tolist() == array[locked].tolist()
    x[[0, 2], 1] = [7, 8]
    array[[0, 2], 1] = [7, 8]
    x[0] = (1, 2, 3, 4)
    array[0] = (1, 2, 3, 4)
    x[1, 0] = numpy.float64(3.9)
    array[1, 0] = 3.9
    x[2] = numpy.ones((1, 1, 4))  # dimensions of 1 in front
    array[2] = 1
    for value in (range(4), numpy.arange(4, dtype="uint16"), numpy.arange(4, dtype=">f8")):
        x[0] = value
        array[0] = value
        assert x.tolist() == array.tolist()
        x[0] = 9


# ---- mistakes ----


def test_messages():
    x = genesis.zeros(3, 4)
    for key, words in [
        (5, "index 5 is out of range for dimension 0 of size 3"),
        ((0, -5), "index -5 is out of range for dimension 1 of size 4"),
        ([0, 7], "index 7 is out of range for dimension 0 of size 3"),
        ((slice(None), [[-9]]), "index -9 is out of range for dimension 1"),
        ((0, 0, 0), r"too many indices: 3 for a tensor of 2 dimensions \(shape \(3, 4\)\)"),
        ((..., ...), "one ellipsis"),
        (([0, 1], [0, 1, 2]), r"shapes \(2,\) and \(3,\) cannot be broadcast"),
        (numpy.zeros(4, bool), r"mask of shape \(4,\) does not fit dimension 0 of size 3"),
        ([0.5], "integers or bool, not by float32"),
        ("word", "not by 'word'"),
        (b"ab", "not by b'ab'"),
        (1.0, "not by 1.0"),
        (1 << 70, "does not fit 64 bits"),
        ([slice(1)], "not by"),
        (numpy.datetime64("2020"), "not by"),
        (numpy.array(["a"]), "not by"),
        ([0, 1 << 63], "index 9223372036854775808 does not fit 64 bits"),
        (-(1 << 63), "index -9223372036854775808 is out of range"),
        ((None,) * 17, "at most 16"),
        ((True,) * 65, "at most 64"),
    ]:
        with pytest.raises(IndexError, match=words):
            x[key]
        with pytest.raises(IndexError, match=words):
            x[key] = 1
        for value in (None, 1):
            with pytest.raises(IndexError, match=words):
                genesis.index_plan(x, key, value)
        assert x.tolist() == genesis.zeros(3, 4).tolist()
    for key, value in [([0, 1], genesis.ones(3)), (x == 0, genesis.ones(5)), (0, genesis.ones(3))]:
        with pytest.raises(genesis.ShapeError):
            x[key] = value
    with pytest.raises(TypeError, match="neither"):
        x[0] = "word"
    with pytest.raises(ValueError, match="step"):
        x[::0]
    with pytest.raises(TypeError, match="deleted"):
        del x[[0]]


def test_targets_that_cannot_be_written():
    array = numpy.zeros(3)
    array.flags.writeable = False
    locked = genesis.from_numpy(array)
    wide = genesis.zeros(1).expand(3)
    keys = [[0, 1], genesis.tensor([True, False, True]), slice(None), 0]
    for target, words in ((locked, "read-only"), (wide, "one address")):
        for key in keys[: 4 if target is locked else 3]:
            with pytest.raises(ValueError, match=words):
                target[key] = 1
        with pytest.raises(ValueError, match=words):
            target.scatter_(0, genesis.tensor([0]), value=1)


@pytest.mark.parametrize("count", [3, 2000, 200_000])
def test_out_of_range_leaves_the_target(count):
    """Wherever the bad index is, nothing is written, and the message names it."""
    for where in (0, count // 2, count - 1):
        places = numpy.zeros(count, int)
        places[where] = 10
        index = genesis.tensor(places)
        x = genesis.zeros(10)
        y = genesis.zeros(2, 10)
        for call in (
            lambda x=x, i=index: x.__setitem__(i, 1),
            lambda x=x, i=index: x.index_put_((i,), 1, accumulate=True),
            lambda x=x, i=index: x.scatter_(0, i, value=1),
            lambda x=x, i=index: x.index_add_(0, i, genesis.ones(count)),
            lambda y=y, i=index: y.__setitem__((slice(None), i), 1),
            lambda y=y, i=index: y.__setitem__((i * 0, i), 1),
            lambda x=x, i=index: x[i],
            lambda x=x, i=index: x.gather(0, i),
        ):
            with pytest.raises(IndexError, match="index 10 is out of range .* of size 10"):
                call()
        assert not x.any().item() and not y.any().item()


# ---- who else looks at the memory ----


def test_values_and_indices_in_the_target():
    array = numpy.arange(10)
    x = genesis.tensor(array)
    x[genesis.tensor([0, 1, 2, 3, 4])] = x[1:6]
    assert x.tolist() == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9]
    x = genesis.tensor(array)
    x[x.flip(0)] = x
    assert x.tolist() == array[::-1].tolist()
    x = genesis.tensor([3, 2, 1, 0])
    x[x] = 9
    assert x.tolist() == [9, 9, 9, 9]
    x = genesis.tensor([1, 2, 0])
    x[x] = x
    assert x.tolist() == [0, 1, 2]
    m = genesis.tensor([True, False, True])
    m[m] = False
    assert m.tolist() == [False] * 3
    x = genesis.tensor([3, 2, 1, 0])
    x.scatter_(0, x, x)
    assert x.tolist() == [0, 1, 2, 3]
    x = genesis.arange(6)
    x[genesis.tensor([True] * 6)] = x.flip(0)[::1]
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    array = numpy.array([3, 2, 1, 0])  # one memory, seen three times
    genesis.from_numpy(array)[array] = array + 0
    assert array.tolist() == [0, 1, 2, 3]
    genesis.from_numpy(array)[[3, 2, 1, 0]] = genesis.from_numpy(array)
    assert array.tolist() == [3, 2, 1, 0]
    genesis.from_numpy(array)[genesis.from_numpy(array)] = 0
    assert array.tolist() == [0, 0, 0, 0]


def test_what_waits():
    x = genesis.arange(8).float()
    later = x + 1  # reads x before it changes
    x[genesis.tensor([0, 1]) + 1] = (x + 10)[:2] * 2
    assert later.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert x.tolist() == [0, 20, 22, 3, 4, 5, 6, 7]
    later = x * 2
    x[x > 6] = 0
    assert later.tolist() == [0, 40, 44, 6, 8, 10, 12, 14]
    assert x.tolist() == [0, 0, 0, 3, 4, 5, 6, 0]
    assert (x + 1)[x > 3].tolist() == [5, 6, 7]
    later = x + 1
    x[0] = 5  # few elements, at once
    assert later[0].item() == 1 and x[0].item() == 5
    later = x + 1
    x.scatter_add_(0, genesis.tensor([0]), genesis.ones(1) * 2)
    assert later[0].item() == 6 and x[0].item() == 7
    assert (x + x)[[0]].tolist() == [14]


def test_the_last_one_wins_on_any_number_of_threads():
    rng = numpy.random.default_rng(0)
    count, size = 300_000, 70_000
    threads = genesis.cpu.get_num_threads()
    places = rng.integers(-size, size, count)
    values = rng.random(count).astype("float32")
    expected = numpy.zeros(size, "float32")
    expected[places % size] = values  # NumPy goes in order, here
    sums = numpy.zeros(size, "float32")
    numpy.add.at(sums, places, values)
    rows = rng.integers(0, 50, 2000)
    table = numpy.zeros((50, 300), "float32")
    table[rows] = values[: 600_000 // 2].reshape(-1, 300)[:1000].repeat(2, 0)
    try:
        for number in (1, 2, 3, 8):
            genesis.cpu.set_num_threads(number)
            i, v = genesis.tensor(places), genesis.tensor(values)
            x = genesis.zeros(size)
            x[i] = v
            assert numpy.array_equal(x.numpy(), expected)
            x = genesis.zeros(size).index_put_((i,), v, accumulate=True)
            assert numpy.array_equal(x.numpy(), sums)
            y = genesis.zeros(50, 300)
            y[genesis.tensor(rows)] = genesis.tensor(values.reshape(-1, 300)[:1000].repeat(2, 0))
            assert numpy.array_equal(y.numpy(), table)
            mask = values > 0.5
            assert numpy.array_equal(v[genesis.tensor(mask)].numpy(), values[mask])
            few = values > 0.999
            assert numpy.array_equal(v[genesis.tensor(few)].numpy(), values[few])
            target = genesis.tensor(values)
            target[genesis.tensor(mask)] = v[: int(mask.sum())]
            other = values.copy()
            other[mask] = values[: int(mask.sum())]
            assert numpy.array_equal(target.numpy(), other)
    finally:
        genesis.cpu.set_num_threads(threads)


def test_large_ones_against_numpy():
    """Every way in which work is cut into parts."""
    rng = numpy.random.default_rng(1)
    array = rng.integers(0, 1000, (40, 50, 60)).astype("int32")
    i, j = rng.integers(0, 40, (30, 1)), rng.integers(0, 50, (1, 70))
    mask = rng.random((40, 50)) < 0.3
    for layout in (array, array.transpose(2, 0, 1).copy().transpose(1, 2, 0), array[::-1, :, ::-1]):
        x = genesis.from_numpy(layout)
        for key in [
            (i, j), (i, slice(None), j), (slice(None), j.ravel()), (..., [1, 0, 2]), mask,
            i.ravel(),
            (slice(None), mask[0]), (mask, 5), (i.ravel(), slice(None, None, 2)), layout > 500,
            (slice(None), slice(None), rng.integers(0, 60, 100)), layout > 990,
        ]:  # fmt: skip
            assert numpy.array_equal(x[key].numpy(), layout[key])
            y, other = layout.copy(), layout.copy()
            genesis.from_numpy(y)[key] = 7
            other[key] = 7
            assert numpy.array_equal(y, other)
            values = rng.integers(0, 9, layout[key].shape).astype("int32")
            genesis.from_numpy(y)[key] = genesis.tensor(values)
            assert numpy.array_equal(y, written(other, key, values))


def test_slots():
    """Random choices of keys for one tensor: the same object may be key, value and target."""
    choose = random.Random(0)
    x = genesis.arange(5)
    for _ in range(50):
        x[choose.choice([x, x.flip(0), x[::1]])] = choose.choice([x, x.clone(), 3])
        assert x.amin().item() >= 0 and x.amax().item() < 5
