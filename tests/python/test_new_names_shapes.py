"""Names of shapes and products that came with the table of functions, beside NumPy."""

from __future__ import annotations

import numpy
import pytest
from conftest import BUILD

import genesis


def some(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def equal(made: genesis.Tensor, expected) -> None:
    expected = numpy.asarray(expected)
    assert made.shape == expected.shape
    assert numpy.array_equal(made.numpy(), expected), (made, expected)


# ---- pad ----


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pads", [(1, 2), (2, 1, 3, 0), (0, 0, 1, 1), (1, 1, 2, 0, 1, 2), ()])
def test_pad(mode, pads):
    array = some(3, 4, 5)
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    widths = [pads[i : i + 2] for i in range(0, len(pads), 2)][::-1]
    widths = [(0, 0)] * (3 - len(widths)) + widths
    expected = numpy.pad(array, widths, names[mode])
    x = genesis.tensor(array)
    equal(genesis.pad(x, pads, mode), expected)
    equal(genesis.pad(x.transpose(0, 2).contiguous().transpose(0, 2), pads, mode=mode), expected)
    equal(genesis.pad(x * 2 / 2, pads, mode), expected)  # one that waits


def test_pad_crops():
    x = genesis.arange(5)
    assert genesis.pad(x, (-1, -2)).tolist() == [1, 2]
    assert genesis.pad(x, (-2, 1), value=9).tolist() == [2, 3, 4, 9]
    # As torch.nn.functional.pad gives them:
    assert genesis.pad(x.float(), (-1, 2), "reflect").tolist() == [1, 2, 3, 4, 3, 2]
    assert genesis.pad(x.float(), (-4, 3), "reflect").tolist() == [4, 3, 2, 1]
    assert genesis.pad(x.float(), (-1, 2), "replicate").tolist() == [1, 2, 3, 4, 4, 4]
    assert genesis.pad(x.float(), (-1, 2), "circular").tolist() == [1, 2, 3, 4, 1, 2]
    assert genesis.pad(x, (-5, 0)).tolist() == []
    cropped = genesis.pad(x, (-1, 0), "replicate")
    cropped[0] = 7  # a copy
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_pad_of_values():
    assert genesis.pad(genesis.tensor([True]), (1, 0), value=True).tolist() == [True, True]
    assert genesis.pad(genesis.tensor([1.5]).half(), (0, 1), value=2.25).tolist() == [1.5, 2.25]
    assert genesis.pad(genesis.zeros(0), (1, 1), value=1.0).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: genesis.pad(x, (1,)), "pad: there are 2 numbers for each"),
        (lambda x: genesis.pad(x, (1, 1, 1, 1)), "pad: there are 2 numbers for each"),
        (lambda x: genesis.pad(x, (1, 1), "mirror"), "pad: mode is 'constant'.*not 'mirror'"),
    ],
)
def test_pad_mistakes(call, words):
    with pytest.raises(ValueError, match=words):
        call(genesis.arange(3))


def test_pad_beyond_the_elements():
    x = genesis.arange(3)
    for pads, mode in (((3, 0), "reflect"), ((0, 4), "circular"), ((-4, 0), "constant"),
                       ((-2, -2), "constant")):  # fmt: skip
        with pytest.raises(genesis.ShapeError, match="^pad: "):
            genesis.pad(x, pads, mode)
    with pytest.raises(genesis.ShapeError, match="not enough elements"):
        genesis.pad(genesis.zeros(0), (1, 0), "replicate")


# ---- products and matrices ----


def test_cross():
    a, b = some(4, 3), some(4, 3)[::-1].copy()
    equal(genesis.cross(genesis.tensor(a), genesis.tensor(b)), numpy.cross(a, b))
    equal(genesis.cross(genesis.tensor(a), genesis.tensor(b[0]), dim=-1), numpy.cross(a, b[0]))
    equal(genesis.tensor(a.T).cross(genesis.tensor(b.T), 0), numpy.cross(a.T, b.T, axis=0))
    first = some(3, 3)  # the first dimension of 3 where none is named
    equal(genesis.cross(genesis.tensor(first), genesis.tensor(first[::-1].copy())),
          numpy.cross(first, first[::-1], axis=0))  # fmt: skip
    halves = genesis.tensor([1000.0, 1000.0, 1.0]).half()
    assert genesis.cross(halves, halves + 1).dtype == genesis.float16
    for bad in (genesis.ones(2), genesis.ones(4)):
        with pytest.raises(genesis.ShapeError, match="^cross: "):
            genesis.cross(bad, bad)
    with pytest.raises(genesis.ShapeError, match="dimension 0 of shape"):
        genesis.cross(genesis.ones(2, 3), genesis.ones(2, 3), 0)


@pytest.mark.parametrize("shapes", [((2, 3), (4, 5)), ((3,), (2,)), ((2, 3), (2,)), ((), (2, 2)),
                                    ((2, 0), (3, 3)), ((2, 2, 2), (3, 1, 2))])  # fmt: skip
def test_kron(shapes):
    a, b = some(*shapes[0]), some(*shapes[1])
    equal(genesis.kron(genesis.tensor(a), genesis.tensor(b)), numpy.kron(a, b))


def test_kron_of_types():
    made = genesis.kron(genesis.tensor([2, 3]), genesis.tensor([0.5, 1.0]))
    assert made.dtype == genesis.float32 and made.tolist() == [1, 2, 1.5, 3]


def test_block_diag():
    a, b = genesis.tensor([[1, 2], [3, 4]]), genesis.tensor([5, 6, 7])
    made = genesis.block_diag(a, b, genesis.tensor(8))
    assert made.tolist() == [[1, 2, 0, 0, 0, 0], [3, 4, 0, 0, 0, 0], [0, 0, 5, 6, 7, 0],
                             [0, 0, 0, 0, 0, 8]]  # fmt: skip
    assert genesis.block_diag(a, b.float()).dtype == genesis.float32
    assert genesis.block_diag(a).tolist() == a.tolist()
    with pytest.raises(genesis.ShapeError, match="block_diag: tensors have at most 2"):
        genesis.block_diag(genesis.ones(1, 1, 1))
    with pytest.raises(ValueError, match="there must be a tensor"):
        genesis.block_diag()


def test_diag_embed():
    array = some(2, 3)
    for offset in (-2, 0, 1):
        expected = numpy.stack([numpy.diag(row, offset) for row in array])
        equal(genesis.diag_embed(genesis.tensor(array), offset), expected)
        made = genesis.tensor(array).diag_embed(offset, 0, 2)
        equal(made, expected.transpose(1, 0, 2))
        equal(made.diagonal(offset, 0, 2), array)
    with pytest.raises(ValueError, match="are the same"):
        genesis.diag_embed(genesis.ones(2), 0, 0, -2)
    with pytest.raises(IndexError, match="dimension 2 is out of range"):
        genesis.diag_embed(genesis.ones(2), 0, 0, 2)


def test_vdot():
    a, b = genesis.tensor([1, 2, 3]), genesis.tensor([4, 5, 6])
    assert genesis.vdot(a, b).item() == a.vdot(b).item() == 32
    with pytest.raises(genesis.ShapeError, match="vdot: the operands must have 1 and 1"):
        genesis.vdot(a[None], b)


# ---- parts ----


@pytest.mark.parametrize("name", ["hsplit", "vsplit", "dsplit"])
@pytest.mark.parametrize("cuts", [2, [1], [1, 3], [-1], [0, 9], []])
def test_splits(name, cuts):
    array = some(4, 6, 2)
    parts = getattr(genesis, name)(genesis.tensor(array), cuts)
    expected = getattr(numpy, name)(array, cuts)
    assert len(parts) == len(expected)
    for one, two in zip(parts, expected, strict=True):
        equal(one, two)


@pytest.mark.parametrize("cuts", [numpy.array([2]), genesis.tensor([2]), [2], (numpy.int64(2),)])
def test_a_list_of_one_is_no_number(cuts):
    assert [len(part) for part in genesis.arange(7).tensor_split(cuts)] == [2, 5]
    assert [len(part) for part in genesis.arange(2).split(cuts)] == [2]


@pytest.mark.parametrize("count", [2, numpy.int64(2), numpy.array(2), genesis.tensor(2)])
def test_a_number_is_no_list(count):
    assert [len(part) for part in genesis.arange(7).tensor_split(count)] == [4, 3]
    assert [len(part) for part in genesis.arange(3).split(count)] == [2, 1]


def test_many_parts():
    parts = genesis.arange(1000).split([1] * 1000)
    assert [part.item() for part in parts] == [*range(1000)]
    assert len(genesis.arange(5).tensor_split([0] * 500)) == 501


def test_splits_are_views_of_one_size():
    x = genesis.arange(6)
    x.hsplit(2)[1][0] = 9
    assert x.tolist() == [0, 1, 2, 9, 4, 5]
    with pytest.raises(ValueError, match="hsplit: dimension 0 of 6 elements has no 4 parts"):
        genesis.hsplit(x, 4)
    with pytest.raises(genesis.ShapeError, match="vsplit: the tensor has at least 2 dimensions"):
        genesis.vsplit(x, 2)
    with pytest.raises(genesis.ShapeError, match="dsplit: the tensor has at least 3"):
        genesis.dsplit(x, 2)


# ---- written into a copy ----


def test_scatters():
    array, zeros = some(4, 5), genesis.zeros(4, 5)
    x = genesis.tensor(array)
    for dim, start, end, step in ((0, 1, 3, 1), (1, None, None, 2), (1, -3, -1, 1), (0, 3, 1, 1)):
        expected, key = array.copy(), [slice(None)] * 2
        key[dim] = slice(start, end, step)
        expected[tuple(key)] = 0
        source = zeros[tuple(key)]
        equal(genesis.slice_scatter(x, source, dim, start, end, step), expected)
    expected = array.copy()
    expected[:, -2] = 0
    equal(x.select_scatter(zeros[:, 0], 1, -2), expected)
    expected = array.copy()
    expected[numpy.arange(4), numpy.arange(4) + 1] = 0
    equal(genesis.diagonal_scatter(x, zeros[0, :4], 1), expected)
    equal(x, array)
    for call in (lambda: x.slice_scatter(zeros, 0, 1), lambda: x.select_scatter(zeros, 0, 1),
                 lambda: x.diagonal_scatter(zeros)):  # fmt: skip
        with pytest.raises(genesis.ShapeError, match="src has the shape"):
            call()


# ---- memory ----


def test_empty_strided():
    x = genesis.empty_strided((2, 3), (1, 2), dtype=genesis.int32)
    assert (x.shape, x.stride(), x.dtype, x.storage().size()) == ((2, 3), (1, 2), "int32", 6)
    x.copy_(genesis.arange(6).view(2, 3))
    assert x.storage().tolist() == [0, 3, 1, 4, 2, 5]
    assert genesis.empty_strided((2, 0), (1, 1)).shape == (2, 0)
    assert genesis.empty_strided((), ()).shape == ()
    with pytest.raises(ValueError, match="strides are not negative"):
        genesis.empty_strided((2,), (-1,))
    with pytest.raises(genesis.ShapeError, match="they must be as many"):
        genesis.empty_strided((2,), (1, 1))


def test_frombuffer():
    memory = bytearray(range(12))
    x = genesis.frombuffer(memory, dtype=genesis.int16, count=2, offset=4)
    assert x.tolist() == numpy.frombuffer(memory, "int16", 2, 4).tolist()
    memory[4:8] = bytes(4)
    assert x.tolist() == [0, 0]  # shared
    x.fill_(257)
    assert memory[4:8] == b"\1\1\1\1"
    assert genesis.frombuffer(b"abc", dtype="uint8").tolist() == [97, 98, 99]
    with pytest.raises(ValueError, match="read-only"):
        genesis.frombuffer(b"abc", dtype="uint8").fill_(0)
    for given, words in (
        ({"offset": 13}, "from byte 13 on are not in a buffer of 12 bytes"),
        ({"offset": 2, "dtype": "int32"}, "no whole number|not aligned"),
        ({"count": 4, "dtype": "int32"}, "more than the 12 bytes"),
        ({"offset": 1, "count": 1, "dtype": "int16"}, "not aligned"),
    ):
        with pytest.raises(ValueError, match=words):
            genesis.frombuffer(memory, **{"dtype": "uint8", **given})
    with pytest.raises(BufferError):
        memory.append(1)  # x has its memory
    del x


def test_data():
    x = genesis.arange(4)
    x.data[0] = 9
    assert x.tolist() == [9, 1, 2, 3] and x.data is not x
    x.data = genesis.ones(2, 2, dtype=genesis.int64)
    assert x.tolist() == [[1, 1], [1, 1]]
    exported, pending = x.numpy(), x + 1
    x.data = genesis.ones(2)
    assert x.dtype is genesis.float32 and x.tolist() == [1, 1]
    assert exported.tolist() == [[1, 1], [1, 1]] and pending.tolist() == [[2, 2], [2, 2]]
    with pytest.raises(TypeError, match="data is a Tensor"):
        x.data = 3


def test_storage():
    x = genesis.arange(6, dtype=genesis.int32).view(2, 3)
    part = x[1, 1:]
    both = part.storage(), part.untyped_storage()
    assert [one.size() for one in both] == [6, 24]
    assert [one.nbytes() for one in both] == [24, 24]
    assert {one.data_ptr() for one in both} == {x.data_ptr()}
    assert both[0].tolist() == [*both[0]] == [0, 1, 2, 3, 4, 5]
    assert both[0][4] == 4 and len(both[1]) == 24 and both[1].device == x.device
    shared = genesis.from_numpy(numpy.arange(5))[1:3]
    assert shared.storage().tolist() == [1, 2]  # of others' memory, what the tensor reaches


def test_size():
    size = genesis.Size([2, 3])
    assert size == (2, 3) == genesis.zeros(2, 3).shape and size.numel() == 6
    assert str(size) == "(2, 3)" and genesis.Size(()).numel() == 1
    assert genesis.zeros(size).shape == size


# ---- in place: another view ----


def test_views_in_place():
    x = genesis.arange(6).view(1, 2, 3)
    before, waiting, exported = x + 0, x * 2, x.numpy()
    assert x.squeeze_() is x and x.shape == (2, 3)
    assert x.unsqueeze_(-1).shape == (2, 3, 1) and x.squeeze_(2).shape == (2, 3)
    assert x.transpose_(0, 1).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.t_().tolist() == x.swapaxes_(0, 1).swapdims_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert before.shape == waiting.shape == exported.shape == (1, 2, 3)
    assert waiting.tolist() == [[[0, 2, 4], [6, 8, 10]]]
    x[0, 0] = 7
    assert exported[0, 0, 0] == 7  # the memory is the same
    pending = genesis.ones(2, 3) + 1
    assert pending.t_().shape == (3, 2) and (pending * 3).tolist() == [[6, 6]] * 3
    with pytest.raises(IndexError, match="^unsqueeze_: dimension 5"):
        x.unsqueeze_(5)
    with pytest.raises(genesis.ShapeError, match="^t_: a matrix"):
        genesis.ones(1, 1, 1).t_()


def test_resize():
    x = genesis.arange(6)
    view, pointer = x[:2], x.data_ptr
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_((6,)).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.storage_offset() == 0 and callable(pointer)
    part = genesis.arange(6)[2:4]
    assert part.resize_(4).tolist() == [2, 3, 4, 5]
    grown = genesis.arange(3)
    half = grown[1:]
    assert grown.resize_(2, 4).shape == (2, 4) and grown.flatten()[:3].tolist() == [0, 1, 2]
    grown.fill_(8)
    assert half.tolist() == [1, 2] and view.tolist() == [0, 1]
    array = grown.numpy()
    with pytest.raises(ValueError, match="resize_: the tensor cannot have other memory"):
        grown.resize_(100)
    assert grown.shape == array.shape == (2, 4)
    with pytest.raises(genesis.ShapeError, match="negative"):
        grown.resize_(-1)
    assert grown.resize_(0).tolist() == []


SIMULATED = """
import genesis as g
x = g.arange(12).float().view(3, 4).cuda()
for mode in ("constant", "reflect", "replicate", "circular"):
    made = g.pad(x, (1, 2, -1, 0), mode)
    assert made.cpu().tolist() == g.pad(x.cpu(), (1, 2, -1, 0), mode).tolist()
y = x[:, :3]
calls = [
    lambda x, y: g.cross(y, y.flip(0)), lambda x, y: g.kron(x, y), lambda x, y: g.diag_embed(y, 1),
    lambda x, y: g.block_diag(x, y), lambda x, y: g.slice_scatter(x, y, 1, 0, 3),
    lambda x, y: g.select_scatter(x, y[:, 0], 1, 3),
    lambda x, y: g.vdot(y[0], y[1]), lambda x, y: (x + 1).t_(),
    lambda x, y: x.clone().resize_(2, 2),
    lambda x, y: x.clone().resize_(5, 5).flatten()[:12],
]
for call in calls:
    made = call(x, y)
    assert made.is_cuda and made.cpu().tolist() == call(x.cpu(), y.cpu()).tolist()
assert g.empty_strided((2,), (3,), device="cuda").is_cuda
assert x.untyped_storage().nbytes() == 48
"""


def test_on_the_simulated_gpu(fresh):
    if not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    fresh(SIMULATED, GENESIS_CUDA_DRIVER="sim")
