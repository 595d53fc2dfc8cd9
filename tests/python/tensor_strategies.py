"""What the properties of tensors draw from: shapes, dtypes, values and layouts, with their arrays.

NumPy has no bfloat16: its elements are kept as float32 here, rounded to it. An operation on one of
the halves is computed in float32 and rounded after, in the library as in these references.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy
from hypothesis import assume
from hypothesis import strategies as st

import genesis

INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]
SIZES = [0, 1, 2, 3, 5, 7, 31, 33, 257]
ELEMENTS_MOST = 4000
SPECIAL = [0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1.0, -1.0, 0.5]


class Pair(NamedTuple):
    """A tensor, and an array with the same elements."""

    tensor: genesis.Tensor
    array: numpy.ndarray
    dtype: str


def to_bfloat16(array: numpy.ndarray) -> numpy.ndarray:
    """Float32 rounded to the nearest bfloat16, the even one of two."""
    bits = numpy.ascontiguousarray(array, numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    rounded = numpy.where(numpy.isnan(array), bits | 0x400000, rounded)
    made = (rounded & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)
    return made.reshape(numpy.shape(array))


def rounded(array, dtype: str) -> numpy.ndarray:
    """An array as one of our dtypes, in the type that holds it here."""
    with numpy.errstate(all="ignore"):
        if dtype == "bfloat16":
            return to_bfloat16(numpy.asarray(array).astype(numpy.float32))
        return numpy.asarray(array).astype(dtype)


def elements(made: genesis.Tensor) -> numpy.ndarray:
    """The elements of a tensor as an array, in the type that holds them here."""
    return (made.float() if made.dtype == genesis.bfloat16 else made).numpy()


def compute_type(dtype: str) -> str:
    """What the library computes in."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def floating_of(dtype: str) -> str:
    """What functions of the reals give."""
    return dtype if dtype in FLOATS else "float32"


def sum_of(dtype: str) -> str:
    """What sums and products give."""
    return dtype if dtype in FLOATS or dtype == "uint64" else "int64"


# ---- promotion: PyTorch's rules, written out once more ----


def kind_of(dtype: str | None) -> int:
    """Bool, an integer (also None: those without a common type), or a floating number."""
    return 0 if dtype == "bool" else 2 if dtype in FLOATS else 1


def promoted(one: str | None, other: str | None) -> str | None:
    """The type that has the elements of both; None for uint64 and signed integers."""
    if one is None or other is None:
        return next((dtype for dtype in (one, other) if dtype in FLOATS), None)
    if kind_of(one) != kind_of(other):
        return one if kind_of(one) > kind_of(other) else other
    if {one, other} == {"float16", "bfloat16"}:
        return "float32"
    if kind_of(one) == 1:
        made = numpy.promote_types(one, other).name
        return made if made in INTEGERS else None
    return max(one, other, key=DTYPES.index)


def result_type(*pairs: Pair) -> str:
    """Tensors without dimensions count only where their kind is higher."""
    wide = [pair.dtype for pair in pairs if pair.array.ndim]
    narrow = [pair.dtype for pair in pairs if not pair.array.ndim]
    made = None
    for i, dtype in enumerate(wide):
        made = promoted(made, dtype) if i else dtype
    rest = None
    for i, dtype in enumerate(narrow):
        rest = promoted(rest, dtype) if i else dtype
    assume((made is not None or not wide) and (rest is not None or not narrow))
    if made is None or rest is None:
        return made or rest
    return promoted(made, rest) if kind_of(rest) > kind_of(made) else made


# ---- values ----


def values(rng, dtype: str, shape, is_tame: bool = False) -> numpy.ndarray:
    """Numbers of all sizes with special ones among them; tame ones are small and finite."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = numpy.iinfo(dtype)
        array = rng.integers(-9 if info.min < 0 else 0, 10, shape).astype(dtype)
        special = numpy.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1], dtype)
    else:
        array = rounded(rng.standard_normal(shape) * 4, dtype)
        info = numpy.finfo(dtype if dtype != "bfloat16" else "float32")
        extremes = [] if dtype == "bfloat16" else [info.max, info.min, info.tiny, -info.tiny]
        special = rounded(SPECIAL + [float(one) for one in extremes], dtype)
    if not is_tame and array.size and rng.random() < 0.7:
        count = rng.integers(1, 1 + max(1, array.size // 2))
        places = rng.integers(0, array.size, count)
        array.reshape(-1)[places] = rng.choice(special, count)
    return array


# ---- layouts ----

STEPS = [1, 1, 1, 2, -1, -3, 0]  # 0: expanded from one element


@st.composite
def shapes(draw, least: int = 0, most: int = 4, is_filled: bool = False) -> tuple[int, ...]:
    """Sizes of 0, 1, primes and around powers of 2."""
    sizes = [one for one in SIZES if one or not is_filled]
    shape = draw(st.lists(st.sampled_from(sizes), min_size=least, max_size=most))
    while numpy.prod(shape, dtype=int) > ELEMENTS_MOST:
        shape[int(numpy.argmax(shape))] = 2
    return tuple(shape)


@st.composite
def pairs(draw, shape=None, dtype=None, is_tame: bool = False, is_filled: bool = False) -> Pair:
    """A tensor with any strides over memory of its own or of NumPy's, or one that waits."""
    shape = draw(shapes(is_filled=is_filled)) if shape is None else shape
    dtype = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    rng = numpy.random.default_rng(draw(st.integers(0, 1 << 32)))
    ndim = len(shape)
    order = draw(st.permutations(range(ndim)))
    steps = [draw(st.sampled_from(STEPS)) if draw(st.booleans()) else 1 for _ in shape]
    stored = [
        1 + (size - 1) * abs(step) if size else 0 for size, step in zip(shape, steps, strict=True)
    ]
    base = values(rng, dtype, [stored[axis] for axis in order], is_tame)
    is_shared = dtype != "bfloat16" and draw(st.booleans())
    tensor = genesis.from_numpy(base) if is_shared else genesis.tensor(base)
    if dtype == "bfloat16":
        tensor = tensor.bfloat16()
    back = [order.index(axis) for axis in range(ndim)]
    key = tuple(slice(None, None, step or None) for step in steps)
    tensor = tensor.permute(back)[key].expand(shape) if ndim else tensor
    array = numpy.broadcast_to(base.transpose(back)[key], shape)
    if draw(st.sampled_from([False, False, True])):
        tensor = genesis.maximum(tensor, tensor)  # the same elements, but they wait
    assert tensor.shape == shape == array.shape
    return Pair(tensor, array.copy(), dtype)


@st.composite
def broadcast_shapes(draw, count: int = 2) -> list[tuple[int, ...]]:
    """Shapes that go together: some sizes are 1, some leading ones are missing."""
    whole = draw(shapes())
    made = []
    for _ in range(count):
        shape = [1 if draw(st.sampled_from([False, False, True])) else size for size in whole]
        made.append(tuple(shape[draw(st.integers(0, len(shape))) :]))
    return made


@st.composite
def broadcast_pairs(draw, count: int = 2, dtypes=None, is_tame: bool = False) -> list[Pair]:
    """Tensors whose shapes and types go together: mostly of one type."""
    choices = st.sampled_from(dtypes or DTYPES)
    dtype = draw(choices)
    is_mixed = draw(st.sampled_from([False, False, True]))
    return [
        draw(pairs(shape, draw(choices) if is_mixed else dtype, is_tame))
        for shape in draw(broadcast_shapes(count))
    ]
