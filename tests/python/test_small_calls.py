"""Calls that have a short way for few elements, beside NumPy and beside the same with many."""

from __future__ import annotations

import numpy
import pytest

import genesis

DTYPES = (
    "float16", "float32", "float64", "uint8", "uint16", "uint32", "uint64", "int8", "int16",
    "int32", "int64", "bool",
)  # fmt: skip
COUNTS = (1, 2, 7, 4095, 4096, 4097)  # around what is copied at once


def numbers(dtype: str, *shape: int, seed: int = 0) -> numpy.ndarray:
    """Small numbers with many equal ones."""
    rng = numpy.random.default_rng(seed)
    return rng.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)


# ---- copies ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_of_views(dtype):
    array = numbers(dtype, 4, 6, 8)
    tensor = genesis.tensor(array)
    keys = [
        numpy.s_[...],
        numpy.s_[::-1],
        numpy.s_[:, ::2, ::-3],
        numpy.s_[1:3, 5, ::2],
        numpy.s_[:, :, 3],
        numpy.s_[2:2],
        numpy.s_[3, 2, 1],
    ]
    for key in keys:
        made = tensor[key].clone()
        assert made.is_contiguous()
        numpy.testing.assert_array_equal(made.numpy(), array[key])
    numpy.testing.assert_array_equal(
        tensor.permute(2, 0, 1).clone().numpy(), array.transpose(2, 0, 1)
    )
    wide = genesis.broadcast_to(tensor[0, :, :1], (3, 6, 5)).clone()
    numpy.testing.assert_array_equal(wide.numpy(), numpy.broadcast_to(array[0, :, :1], (3, 6, 5)))


@pytest.mark.parametrize("count", COUNTS)
def test_a_copy_is_of_its_own(count):
    tensor = genesis.arange(count)
    copy = tensor.clone()
    tensor += 1
    tensor.fill_(7)
    copy[0] = -1
    assert copy.tolist() == [-1, *range(1, count)]
    assert tensor.tolist() == [7] * count


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", COUNTS)
def test_assignments_beside_numpy(dtype, count):
    array, values = numbers(dtype, count), numbers(dtype, count, seed=1)
    tensor = genesis.tensor(array)
    tensor.copy_(genesis.tensor(values))
    numpy.testing.assert_array_equal(tensor.numpy(), values)
    tensor = genesis.tensor(array)
    tensor[::2] = genesis.tensor(values)[::-1][: (count + 1) // 2]
    array[::2] = values[::-1][: (count + 1) // 2]
    tensor[-1:] = genesis.tensor(values[0])  # one for all
    array[-1:] = values[0]
    numpy.testing.assert_array_equal(tensor.numpy(), array)
    tensor.fill_(1)
    assert tensor.bool().all().item()
    tensor.zero_()
    assert not tensor.any().item()


@pytest.mark.parametrize("count", (5, 4096, 5000))
def test_assignments_within_one_memory(count):
    array = numpy.arange(count)
    tensor = genesis.tensor(array)
    tensor[1:] = tensor[:-1]
    array[1:] = array[:-1].copy()
    tensor[:] = tensor
    tensor[:] = tensor.flip(0)
    array[:] = array[::-1].copy()
    tensor[: count // 2] = tensor[count // 2 : count // 2 * 2]
    array[: count // 2] = array[count // 2 : count // 2 * 2].copy()
    assert tensor.tolist() == array.tolist()


@pytest.mark.parametrize("count", (5, 4096, 5000))
def test_what_waits_reads_before_it_is_written(count):
    tensor = genesis.arange(count, dtype=genesis.float32)
    waiting, other = tensor * 2 + 1, genesis.arange(count) * 1.0
    tensor.fill_(0)
    tensor.copy_(other)  # which waits itself
    other.zero_()
    assert waiting.tolist() == [2.0 * i + 1 for i in range(count)]
    assert tensor.tolist() == [float(i) for i in range(count)]


def test_what_cannot_be_written_is_refused():
    frozen = numpy.arange(4)
    frozen.flags.writeable = False
    shared = genesis.from_numpy(frozen)
    with pytest.raises(ValueError, match="read-only"):
        shared.fill_(1)
    wide = genesis.zeros(1).expand(4)
    with pytest.raises(ValueError, match="one address"):
        wide.copy_(genesis.ones(4))
    with pytest.raises(genesis.ShapeError, match="broadcast"):
        genesis.zeros(4).copy_(genesis.ones(3))
    assert frozen.tolist() == [0, 1, 2, 3]


# ---- where the largest is ----

SHAPES = (
    (1,),
    (64,),
    (65,),
    (3, 64),
    (3, 65),
    (5, 1),
    (1, 5),
    (40, 7),
    (40, 8),
    (9, 300),
    (2, 30, 9),
    (2, 70, 3),
    (3, 1, 257),
)


@pytest.mark.parametrize("dtype", (*DTYPES, "bfloat16"))
@pytest.mark.parametrize("shape", SHAPES)
def test_extremes_along_every_dimension(dtype, shape):
    array = numbers("float32" if dtype == "bfloat16" else dtype, *shape)
    tensor = genesis.tensor(array).to(dtype)
    check_extremes(tensor, array)
    if array.dtype.kind != "f":
        return
    places = numpy.random.default_rng(2).random(shape)
    array[places < 0.05] = numpy.nan
    array[(places > 0.3) & (places < 0.5)] = -0.0
    check_extremes(genesis.tensor(array).to(dtype), array)
    array[...] = numpy.nan
    check_extremes(genesis.tensor(array).to(dtype), array)


def check_extremes(tensor: genesis.Tensor, array: numpy.ndarray) -> None:
    for dim in range(array.ndim):
        for name in ("max", "min"):
            expected = getattr(array, f"arg{name}")(dim)
            assert getattr(tensor, f"arg{name}")(dim).tolist() == expected.tolist()
            values, indices = getattr(tensor, name)(dim)
            assert indices.tolist() == expected.tolist()
            assert values.dtype == tensor.dtype
            taken = numpy.take_along_axis(array, numpy.expand_dims(expected, dim), dim).squeeze(dim)
            numpy.testing.assert_array_equal(values.double().numpy(), taken.astype(float))
            turned = tensor.flip(dim).permute(*range(array.ndim)[::-1])
            other = numpy.flip(array, dim).transpose()
            place = array.ndim - 1 - dim
            assert (
                getattr(turned, f"arg{name}")(place).tolist()
                == getattr(other, f"arg{name}")(place).tolist()
            )


def test_extremes_with_dimensions_that_are_kept():
    tensor = genesis.arange(24).reshape(2, 3, 4)
    assert tensor.argmax(1, keepdim=True).shape == (2, 1, 4)
    assert tensor.argmax(keepdims=True).tolist() == [[[23]]]
    assert tensor.max(axis=-1, keepdim=True).values.shape == (2, 3, 1)
    assert genesis.tensor(3).argmax().item() == genesis.tensor(3).max(0).indices.item() == 0
    assert genesis.zeros(3, 0).argmax(0).shape == (0,)
    with pytest.raises(genesis.ShapeError, match="no elements"):
        genesis.zeros(3, 0).argmax(1)


# ---- how methods along a dimension take their arguments ----


def test_arguments_of_methods_along_a_dimension():
    x = genesis.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert x.sort(axis=0, descending=True).values.tolist() == [[3.0, 4.0], [2.0, 1.0]]
    assert x.argsort(0).tolist() == [[1, 0], [0, 1]]
    assert x.topk(1, dim=1).values.tolist() == [[3.0], [4.0]]
    assert x.topk(k=1, largest=False).indices.tolist() == [[1], [0]]
    assert x.cumsum(dim=1, dtype="float64").dtype == genesis.float64
    assert x.cummax(axis=0).values.tolist() == [[3.0, 1.0], [3.0, 4.0]]
    assert x.softmax(1).sum().item() == pytest.approx(2)
    for call, error, words in (
        (lambda: x.sort(0, False, True, 1), TypeError, "at most 3 arguments"),
        (lambda: x.sort(0, dim=1), TypeError, "two values"),
        (lambda: x.sort(dims=1), TypeError, "unexpected keyword argument 'dims'"),
        (lambda: x.sort("a"), TypeError, "dim is an integer, not 'a'"),
        (lambda: x.sort(1.5), TypeError, "dim is an integer"),
        (lambda: x.sort(2), IndexError, "out of range"),
        (lambda: x.cumsum(2**70), IndexError, "out of range"),
        (lambda: x.argmax(-(2**40)), IndexError, "out of range"),
        (lambda: x.topk(), TypeError, "needs the argument 'k'"),
        (lambda: x.topk("a"), TypeError, "integer"),
        (lambda: x.cumsum(), TypeError, "needs the argument 'dim'"),
        (lambda: x.max((0, 1)), ValueError, r"amax\(\) takes several"),
    ):
        with pytest.raises(error, match=words):
            call()


# ---- turned, repeated, put together, counted ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_flip_beside_numpy(dtype):
    for shape in ((), (1,), (7,), (3, 5), (2, 3, 4), (3, 0), (70, 80)):
        array = numbers(dtype, *shape)
        for dims in ((), *((i,) for i in range(array.ndim)), tuple(range(array.ndim))):
            expected = numpy.flip(array, dims)
            made = genesis.tensor(array).flip(dims)
            assert made.is_contiguous()
            numpy.testing.assert_array_equal(made.numpy(), expected)
            turned = genesis.tensor(array).T.flip(*(array.ndim - 1 - dim for dim in dims))
            numpy.testing.assert_array_equal(turned.numpy(), expected.T)
    x = genesis.arange(4)
    assert (x + 1).flip(-1).tolist() == x.flip(axis=0).add(1).tolist() == [4, 3, 2, 1]
    assert x.flip(dims=None).tolist() == genesis.flip(x, dims=()).tolist() == [0, 1, 2, 3]
    assert genesis.tensor(3).flip(0).item() == 3
    with pytest.raises(IndexError, match="flip: dimension 1 is out of range"):
        x.flip(1)
    with pytest.raises(ValueError, match="flip: dimension 0 is there twice"):
        x.flip(0, -1)
    with pytest.raises(TypeError, match="flip"):
        x.flip(0, axis=0)


def test_repeats_are_copies():
    x = genesis.arange(3)
    same = x.repeat_interleave(1)
    same.fill_(9)
    assert x.tolist() == [0, 1, 2]
    assert (x + 1).repeat_interleave(2, output_size=6).tolist() == [1, 1, 2, 2, 3, 3]
    assert x.repeat_interleave(repeats=2, axis=0).tolist() == [0, 0, 1, 1, 2, 2]
    assert x.repeat_interleave([1, 0, 2]).tolist() == [0, 2, 2]
    assert x.repeat_interleave().tolist() == [1, 2, 2]
    assert x.repeat_interleave(genesis.tensor(True)).tolist() == [0, 1, 2]
    wide = genesis.arange(20000).reshape(2, 50, 200).permute(2, 0, 1)
    numpy.testing.assert_array_equal(
        wide.repeat_interleave(3, 1).numpy(), wide.numpy().repeat(3, 1)
    )
    for call, error, words in (
        (lambda: x.repeat_interleave(2**62), genesis.ShapeError, "repeat_interleave: "),
        (lambda: x.repeat_interleave(2**70), genesis.ShapeError, "repeat_interleave: "),
        (lambda: x.repeat_interleave(-(2**70)), ValueError, "not negative"),
        (lambda: x.repeat_interleave(2, 1), IndexError, "repeat_interleave: dimension 1"),
        (lambda: x.repeat_interleave(2, 0, 6), TypeError, "at most 2 arguments"),
        (lambda: x.repeat_interleave([1, 2]), genesis.ShapeError, "repeat_interleave: "),
        (lambda: x.repeat_interleave([1, 2, -1]), ValueError, "repeat_interleave: counts"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_cat_takes_what_it_took():
    x, y = genesis.arange(3), genesis.ones(2)
    assert genesis.cat((x, y)).tolist() == genesis.cat(iter([x, y])).tolist() == [0, 1, 2, 1, 1]
    out = genesis.zeros(5)
    assert genesis.cat([x, y], dim=0, out=out) is out and out.tolist() == [0, 1, 2, 1, 1]
    assert genesis.concat(tensors=[x, x], axis=0).shape == (6,)
    with pytest.raises(TypeError, match="concatenate: pass a list"):
        genesis.concatenate(x, x)
    with pytest.raises(IndexError, match="cat: dimension 1099511627776 is out of range"):
        genesis.cat([x, x], 2**40)
    with pytest.raises(TypeError, match="cat: dim is an integer, not 'a'"):
        genesis.cat([x, x], "a")
    with pytest.raises(TypeError, match="cat: "):
        genesis.cat(3)
    with pytest.raises(genesis.ShapeError, match=r"cat: a result of shape \(6,\)"):
        genesis.cat([x, x], out=genesis.zeros(5))
    with pytest.raises(TypeError, match="cannot be stored as int64"):
        genesis.cat([x, y], out=genesis.arange(5))


@pytest.mark.parametrize("dtype", (*DTYPES, "bfloat16"))
def test_counts_beside_numpy(dtype):
    array = numbers("float32" if dtype == "bfloat16" else dtype, 5, 40)
    x = genesis.tensor(array).to(dtype)
    for dim in (None, 0, 1, (0, 1)):
        made = x.count_nonzero(dim)
        assert made.dtype == genesis.int64
        assert made.tolist() == numpy.count_nonzero(array, dim).tolist()
        assert genesis.count_nonzero(input=x, axis=dim).tolist() == made.tolist()
    special = genesis.tensor([0.0, -0.0, float("nan"), float("inf")])
    assert special.count_nonzero().item() == 2
    with pytest.raises(IndexError, match="count_nonzero: dimension 2"):
        x.count_nonzero(2)
    with pytest.raises(TypeError, match="count_nonzero: 3 is not a Tensor"):
        genesis.count_nonzero(3)


# ---- from numbers and arrays, and back ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_arrays_are_copies(dtype):
    for shape in ((), (0,), (7,), (3, 5), (70, 80)):
        array = numbers(dtype, *shape)
        for view in (array, array.T, array[::-1] if shape else array):
            made = genesis.tensor(view)
            assert made.dtype.name == dtype and made.shape == view.shape
            as_double = genesis.tensor(view, dtype=genesis.float64)
            expected = view.copy()
            if shape:
                array += array  # ours have their own memory
            numpy.testing.assert_array_equal(made.numpy(), expected)
            numpy.testing.assert_array_equal(as_double.numpy(), expected.astype("float64"))
            array[...] = numbers(dtype, *shape)


def test_arrays_of_other_kinds():
    swapped = numpy.arange(3, dtype=">i4")
    assert genesis.tensor(swapped).tolist() == [0, 1, 2]
    unaligned = numpy.zeros(13, dtype="u1")[1:].view("i4")
    assert genesis.tensor(unaligned).tolist() == [0, 0, 0]
    assert genesis.tensor(numpy.float32(2.5)).item() == 2.5
    assert genesis.tensor(memoryview(b"ab")).tolist() == [97, 98]
    frozen = numpy.arange(3)
    frozen.flags.writeable = False
    assert genesis.tensor(frozen).add_(1).tolist() == [1, 2, 3]
    for wrong in (numpy.array(["a"]), numpy.array(["2020-01-01"], "M8[D]"), numpy.array([None])):
        with pytest.raises((TypeError, ValueError, BufferError)):
            genesis.tensor(wrong)
    with pytest.raises(TypeError, match="needs the argument 'data'"):
        genesis.tensor()


class Stopped:
    """A sequence during which somebody presses Ctrl-C."""

    def __len__(self):
        return 1

    def __getitem__(self, _):
        raise KeyboardInterrupt


class StoppedType:
    """Something like a dtype of NumPy's, during which the same happens."""

    __module__ = "numpy"

    @property
    def name(self):
        raise KeyboardInterrupt


def test_interrupts_are_not_lost():
    with pytest.raises(KeyboardInterrupt):
        genesis.tensor(Stopped())
    x = genesis.ones(2)
    for call in (
        lambda: x.to(StoppedType()),
        lambda: x.view(StoppedType()),
        lambda: genesis.zeros(2, dtype=StoppedType()),
        lambda: genesis.tensor(numpy.ones(2), dtype=StoppedType()),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()


def test_tensors_of_one_number():
    for number, dtype in ((2.5, "float32"), (3, "int64"), (True, "bool"), (-(2**63), "int64")):
        made = genesis.tensor(number)
        assert (made.dtype.name, made.shape, made.item()) == (dtype, (), number)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for number in (0.1, 70000.0, 1e-8, float("inf"), -0.0):
            assert repr(genesis.tensor(number, dtype=dtype)) == repr(
                genesis.tensor([number], dtype=dtype)[0]
            )
    assert genesis.tensor(3, dtype="uint8").dtype == genesis.uint8
    assert genesis.tensor(True, dtype="float32").item() == 1.0
    assert genesis.tensor(2.75, dtype="int64").item() == 2
    for number in (2**63, 2**64 - 1):
        made = genesis.tensor(number)
        assert made.dtype == genesis.uint64 and made.item() == number
    for number, dtype in ((300, "uint8"), (2**63, "int64"), (-(2**63) - 1, None), (2**64, None)):
        with pytest.raises(OverflowError, match="does not fit"):
            genesis.tensor(number, dtype=dtype)


def test_arrays_of_tensors_share_their_memory():
    x = genesis.arange(6).reshape(2, 3)
    array = x.T.numpy()
    array[0, 1] = 9
    assert x[1, 0].item() == 9 and array.strides == (8, 24)
    waiting = (x + 1).numpy()
    assert waiting.tolist() == [[1, 2, 3], [10, 5, 6]]
    with pytest.raises(TypeError, match="bfloat16"):
        x.to(genesis.bfloat16).numpy()


# ---- einsum ----


def random_equation(rng: numpy.random.Generator) -> tuple[str, list[tuple[int, ...]]]:
    """Terms of few letters, some twice, some with an ellipsis, some sizes of 1."""
    sizes = dict(zip("abcdXY", rng.integers(1, 5, 6).tolist(), strict=True))
    hidden = rng.integers(1, 4, 2).tolist()
    terms, shapes = [], []
    for _ in range(rng.integers(1, 4)):
        letters = rng.choice([*sizes], rng.integers(0, 4)).tolist()
        shape = [sizes[one] for one in letters]
        if len({*letters}) == len(letters):  # diagonals are of equal sizes
            shape = [1 if rng.random() < 0.15 else size for size in shape]
        if rng.random() < 0.3:
            count, at = rng.integers(0, 3), rng.integers(0, len(letters) + 1)
            kept = hidden[len(hidden) - count :]
            shape[at:at] = [1 if rng.random() < 0.2 else size for size in kept]
            letters.insert(at, "...")
        terms.append("".join(letters))
        shapes.append(tuple(shape))
    left = ",".join(terms)
    if rng.random() < 0.3 and "..." not in left:
        return left, shapes
    found = sorted({*left} - {*",."})
    rng.shuffle(found)
    result = found[: rng.integers(0, len(found) + 1)]
    if "..." in left:  # NumPy wants it in the result
        result.insert(rng.integers(0, len(result) + 1), "...")
    return f"{left}->{''.join(result)}", shapes


@pytest.mark.parametrize("seed", range(300))
def test_random_equations_beside_numpy(seed):
    rng = numpy.random.default_rng(seed)
    equation, shapes = random_equation(rng)
    dtype = rng.choice(["int64", "float64", "float32"])
    arrays = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]
    tensors = [genesis.tensor(one) for one in arrays]
    try:
        expected = numpy.einsum(equation, *arrays)
    except ValueError as error:  # sizes of 1 and of more for one letter
        assert "dimension" in str(error) or "broadcast" in str(error), (equation, shapes)
        return
    for given in (tensors, [one + 0 for one in tensors], [one.T.clone().T for one in tensors]):
        made = genesis.einsum(equation, *given)
        assert made.shape == expected.shape, (equation, shapes)
        numpy.testing.assert_array_equal(made.numpy(), expected, str((equation, shapes)))


def test_einsum_of_other_types():
    a, b = numbers("int8", 3, 4), numbers("float16", 3, 4)
    for equation in ("ij,ij->i", "ij,kj->ik", "ij,ij->ij", "ij,ij->", "ij,ik->ijk"):
        made = genesis.einsum(equation, genesis.tensor(a), genesis.tensor(b))
        assert made.dtype == genesis.float16
        expected = numpy.einsum(equation, a.astype(float), b.astype(float))
        numpy.testing.assert_array_equal(made.double().numpy(), expected)
        small = genesis.einsum(equation, genesis.tensor(a), genesis.tensor(a))
        assert small.dtype == genesis.int8
        wide = numpy.einsum(equation, a.astype("int64"), a.astype("int64"))
        numpy.testing.assert_array_equal(small.numpy(), wide.astype("int8"))
    many = numbers("float32", 70, 80), numbers("float32", 70, 80, seed=1)
    made = genesis.einsum("ij,ij->i", *map(genesis.tensor, many))
    numpy.testing.assert_array_equal(made.numpy(), numpy.einsum("ij,ij->i", *many))
    # a sum of many halves is rounded once
    ones = genesis.full((2, 5000), 1.0, dtype=genesis.float16)
    assert genesis.einsum("ij,ij->i", ones, ones).tolist() == [5000.0, 5000.0]
    mask = genesis.tensor([[True, False]])
    assert genesis.einsum("ij->ji", mask).tolist() == [[True], [False]]


def test_einsum_gives_tensors_of_their_own():
    x = genesis.arange(6).reshape(2, 3)
    same = genesis.einsum("ij", x)
    assert same is not x and same.tolist() == x.tolist()
    assert genesis.einsum("ij,j->i", [x, x[0]]).tolist() == [5, 14]
    assert genesis.einsum(" i j -> j i ", x).shape == (3, 2)
    assert genesis.einsum("...j->...", x).tolist() == [3, 12]
    assert genesis.einsum("ij,ij->i", genesis.zeros(0, 3), genesis.zeros(0, 3)).shape == (0,)
    assert genesis.einsum("ij,ij->i", genesis.zeros(2, 0), genesis.zeros(2, 0)).tolist() == [0, 0]
    assert genesis.einsum("", genesis.tensor(4)).item() == 4
    for call, error, words in (
        (lambda: genesis.einsum(3, x), TypeError, "the equation is a text, not int"),
        (lambda: genesis.einsum("ij"), ValueError, "there must be an operand"),
        (lambda: genesis.einsum("ij", 3), TypeError, "einsum: operands are tensors, not 3"),
        (lambda: genesis.einsum("...i...", x), ValueError, "'...' cannot stand there"),
        (lambda: genesis.einsum("i.j", x), ValueError, r"'\.' cannot stand there"),
        (lambda: genesis.einsum("ié", x), ValueError, "'é' cannot stand there in 'ié'"),
        (lambda: genesis.einsum("ij->i,j", x), ValueError, "',' cannot stand there"),
        (lambda: genesis.einsum("i\0j", x), ValueError, "zero byte"),
        (
            lambda: genesis.einsum(
                "abcdefghi,jklmnopqr->abcdefghijklmnopqr",
                *[x.reshape(2, 3, 1, 1, 1, 1, 1, 1, 1)] * 2,
            ),
            genesis.ShapeError,
            "16",
        ),
    ):
        with pytest.raises(error, match=words):
            call()


# ---- sorting ----


@pytest.mark.parametrize("base", (0, -(2**63), 2**63 - 2**32 - 1, -(2**31)))
@pytest.mark.parametrize("span", (1, 200, 2**31, 2**32 - 1, 2**32, 2**32 + 1))
def test_integers_that_lie_close_together(base, span):
    rng = numpy.random.default_rng(span)
    for shape in ((1,), (700,), (30, 40), (9000,)):
        distances = rng.integers(0, span, shape, dtype=numpy.uint64)
        distances.reshape(-1)[0], distances.reshape(-1)[-1] = span, 0
        array = (distances + numpy.uint64(base % 2**64)).view(numpy.int64)
        order = numpy.argsort(array, -1, kind="stable")
        x = genesis.tensor(array)
        assert (x.argsort().numpy() == order).all()
        assert (x.sort().values.numpy() == numpy.sort(array)).all()
        falling = numpy.argsort(~array, -1, kind="stable")
        assert (x.argsort(descending=True).numpy() == falling).all()
        most = x.topk(min(3, shape[-1]))
        assert (most.indices.numpy() == falling[..., :3]).all()
        assert (most.values.numpy() == numpy.take_along_axis(array, falling, -1)[..., :3]).all()


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64", "int64", "uint8"))
@pytest.mark.parametrize("shape", ((25, 40), (3, 100, 2), (300, 1), (64, 65)))
def test_sorted_along_every_dimension(dtype, shape):
    array = numbers(dtype, *shape) - numbers(dtype, *shape, seed=1)
    if dtype.startswith("f"):
        places = numpy.random.default_rng(3).random(shape)
        array[places < 0.1] = -0.0
        array[places > 0.95] = numpy.nan
    x = genesis.tensor(array)
    for dim in range(len(shape)):
        order = numpy.argsort(array, dim, kind="stable")
        expected = numpy.take_along_axis(array, order, dim)
        values, indices = x.sort(dim)
        assert indices.shape == values.shape == shape
        assert (indices + 1 == genesis.tensor(order + 1)).all().item()
        assert (indices.numpy() == order).all()
        numpy.testing.assert_array_equal(values.numpy(), expected)
        if dtype.startswith("f"):  # zeros keep their signs
            assert (numpy.signbit(values.numpy()) == numpy.signbit(expected)).all()
        late = x.sort(dim).indices
        assert late.T.flip(0).tolist() == numpy.flip(order.T, 0).tolist()
        assert x.sort(dim).indices.sum().item() == order.sum()
        turned = x.T.sort(len(shape) - 1 - dim)
        assert (turned.indices.numpy() == order.T).all()
        mine = x.clone()
        indices = mine.sort(dim).indices
        mine.zero_()  # what waits has read it before
        assert (indices.numpy() == order).all()


@pytest.mark.parametrize("count", (300, 4096, 4097))
def test_positions_of_memory_that_others_write_to(count):
    array = numpy.random.default_rng(count).random(count)
    order = numpy.argsort(array)
    values, indices = genesis.from_numpy(array).sort()
    expected = array[order].tolist()
    array[:] = 0
    assert indices.tolist() == order.tolist() and values.tolist() == expected


def test_items_of_every_kind_of_tensor():
    x = genesis.arange(6)
    assert float(x[3]) == 3.0 and int((x + 1)[4]) == 5 and bool(x[0]) is False
    assert [one.item() for one in x.half()] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (x.sum() * 2).item() == 30  # which waits
    assert genesis.tensor([[True]]).item() is True
    with pytest.raises(ValueError, match="one element, not of 6"):
        x.item()
