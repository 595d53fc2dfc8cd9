"""The properties of shapes, creation, random numbers and files."""

from __future__ import annotations

import numpy
from hypothesis import strategies as st
from tensor_properties import (
    both_ways,
    check,
    prop,
    same,
)
from tensor_strategies import (
    DTYPES,
    FLOATS,
    INTEGERS,
    elements,
    pairs,
    result_type,
    rounded,
    shapes,
)

import genesis

# ---- shapes ----


@prop("reshape", "view", "flatten")
def reshape(name, draw):
    pair = draw(pairs())
    shape = list(pair.array.shape)
    if name == "flatten":
        if not shape:
            return same(name, genesis.flatten(pair.tensor), pair.array.reshape(1), pair)
        first = draw(st.integers(0, len(shape) - 1))
        last = draw(st.integers(first, len(shape) - 1))
        joined = int(numpy.prod(shape[first : last + 1]))
        expected = pair.array.reshape(shape[:first] + [joined] + shape[last + 1 :])
        return same(name, both_ways(name, draw, pair, first, last - len(shape)), expected, pair)
    sizes = draw(st.permutations([one for size in shape for one in factors(size)]))
    cut = draw(st.integers(0, len(sizes)))
    new = [*sizes[:cut], int(numpy.prod(sizes[cut:]))]
    expected = pair.array.reshape(new)
    asked = [*new[:-1], -1] if pair.array.size and draw(st.booleans()) else new
    tensor = pair.tensor.contiguous() if name == "view" else pair.tensor
    made = getattr(genesis, name)(tensor, asked)
    same(name, made, expected, pair)
    same(name, getattr(tensor, name)(*asked), expected, pair)
    if name == "view":
        assert made.data_ptr() == tensor.data_ptr()
    return None


def factors(size: int) -> list[int]:
    for one in (2, 3, 5, 7, 11, 13):
        if size > one and size % one == 0:
            return [one, *factors(size // one)]
    return [size]


@prop("transpose", "permute", "squeeze", "unsqueeze", "expand", "broadcast_to", "contiguous")
def views(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    array, ndim = pair.array, pair.array.ndim
    axis = draw(st.integers(-ndim, ndim - 1))
    if name == "transpose":
        other = draw(st.integers(-ndim, ndim - 1))
        made, expected = both_ways(name, draw, pair, axis, other), array.swapaxes(axis, other)
    elif name == "permute":
        axes = draw(st.permutations(range(ndim)))
        made, expected = both_ways(name, draw, pair, axes), array.transpose(axes)
    elif name == "squeeze":
        made = both_ways(name, draw, pair, *draw(st.sampled_from([(), (axis,)])))
        ones = tuple(i for i, size in enumerate(array.shape) if size == 1)
        expected = array.squeeze(ones)
        if made.shape != expected.shape:  # that one only
            expected = array.squeeze(axis) if array.shape[axis] == 1 else array
    elif name == "unsqueeze":
        made, expected = both_ways(name, draw, pair, axis), numpy.expand_dims(array, axis)
    elif name == "contiguous":
        made, expected = both_ways(name, draw, pair), array
        assert made.is_contiguous()
    else:
        wide = [draw(st.sampled_from([0, 3])) if size == 1 else size for size in array.shape]
        wide = [*draw(st.sampled_from([[], [2], [0], [1, 2]])), *wide]
        made, expected = both_ways(name, draw, pair, wide), numpy.broadcast_to(array, wide)
    same(name, made, expected, pair)


@prop("roll", "flip")
def moved(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    ndim = pair.array.ndim
    axes = draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=ndim, unique=True))
    axes = tuple(axis - ndim if draw(st.booleans()) else axis for axis in axes)
    if name == "flip":
        return same(name, both_ways(name, draw, pair, axes), numpy.flip(pair.array, axes), pair)
    shifts = tuple(draw(st.integers(-40, 40)) for _ in axes)
    if draw(st.booleans()):
        made, expected = both_ways(name, draw, pair, shifts[0]), numpy.roll(pair.array, shifts[0])
    else:
        made, expected = (
            both_ways(name, draw, pair, shifts, axes),
            numpy.roll(pair.array, shifts, axes),
        )
    return same(name, made, expected, pair)


@prop("repeat", "tile")
def repeated(name, draw):
    pair = draw(pairs(draw(shapes(0, 3))))
    least = pair.array.ndim if name == "repeat" else 0
    counts = draw(st.lists(st.integers(0, 3), min_size=least, max_size=4))
    made = both_ways(name, draw, pair, *(counts if draw(st.booleans()) and counts else [counts]))
    same(name, made, numpy.tile(pair.array, counts), pair)
    if made.numel():
        made.fill_(1)  # memory of its own, not an expanded view
        assert pair.tensor.data_ptr() != made.data_ptr()


@prop("cat", "stack")
def joined(name, draw):
    shape = draw(shapes(1, 3))
    axis = draw(st.integers(0, len(shape) - 1))
    many = []
    for _ in range(draw(st.integers(1, 4))):
        own = list(shape)
        if name == "cat":
            own[axis] = draw(st.sampled_from([0, 1, 5]))
        many.append(draw(pairs(tuple(own), draw(st.sampled_from(DTYPES)))))
    dtype = result_type(*many)
    arrays = [rounded(one.array, dtype) for one in many]
    expected = numpy.concatenate(arrays, axis) if name == "cat" else numpy.stack(arrays, axis)
    made = getattr(genesis, name)([one.tensor for one in many], axis)
    check(name, made, expected, dtype)


@prop("split", "chunk")
def parted(name, draw):
    pair = draw(pairs(draw(shapes(1))))
    axis = draw(st.integers(0, pair.array.ndim - 1))
    length, count = pair.array.shape[axis], draw(st.integers(1, 9))
    size = count if name == "split" else max(1, -(-length // count))
    parts = both_ways(name, draw, pair, count, axis)
    expected = numpy.split(pair.array, range(size, length, size), axis)
    if name == "chunk" and not length:
        expected *= count  # as many parts of nothing
    assert len(parts) == len(expected)
    for part, one in zip(parts, expected, strict=True):
        same(name, part, one, pair)


@prop("tril", "triu")
def triangles(name, draw):
    pair = draw(pairs(draw(shapes(2))))
    diagonal = draw(st.integers(-8, 8))
    expected = getattr(numpy, name)(pair.array, diagonal)
    same(name, both_ways(name, draw, pair, diagonal), expected, pair)
    same(name, getattr(genesis.tensor(pair.tensor), name + "_")(diagonal), expected, pair)


# ---- creation ----


@prop("tensor", "as_tensor", "from_numpy")
def created_from(name, draw):
    pair = draw(pairs(dtype=draw(st.sampled_from([one for one in DTYPES if one != "bfloat16"]))))
    made = getattr(genesis, name)(pair.array)
    same(name, made, pair.array, pair)
    assert (made.data_ptr() == pair.array.ctypes.data) == (name != "tensor") or not made.numel()
    if name == "tensor":
        listed = genesis.tensor(pair.array.tolist(), dtype=pair.dtype)
        if pair.array.size:
            same(name, listed, pair.array, pair)
        same(name, genesis.tensor(pair.tensor), pair.array, pair)


@prop("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like")
def filled(name, draw):
    shape, dtype = draw(shapes()), draw(st.sampled_from(DTYPES))
    number = {"z": 0, "o": 1, "f": 1}.get(name[0])
    if name.endswith("_like"):
        arguments = (draw(pairs(shape, dtype)).tensor,)
    else:
        arguments = shape if name != "full" and shape and draw(st.booleans()) else (shape,)
    arguments += (number,) if name.startswith("full") else ()
    made = getattr(genesis, name)(*arguments, dtype=dtype)
    if number is None:
        assert made.shape == shape and made.dtype.name == dtype and made.is_contiguous()
    else:
        check(name, made, numpy.full(shape, number), dtype)


@prop("arange", "linspace", "eye", "one_hot")
def sequences(name, draw):
    if name == "one_hot":
        count = draw(st.integers(1, 9))
        rng = numpy.random.default_rng(draw(st.integers(0, 99)))
        array = rng.integers(0, count, draw(shapes()))
        expected = numpy.eye(count, dtype=int)[array]
        return check(name, genesis.one_hot(genesis.tensor(array), count), expected, "int64")
    dtype = draw(st.sampled_from(FLOATS + INTEGERS[2:] if name == "arange" else FLOATS))
    if name == "eye":
        n, m = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        return check(name, genesis.eye(n, m, dtype=dtype), numpy.eye(n, m), dtype)
    start, stop = draw(st.integers(-40, 40)), draw(st.integers(-40, 40))
    if name == "linspace":
        steps = draw(st.integers(0, 40))
        expected = numpy.linspace(start, stop, steps, dtype=numpy.longdouble)
        made = genesis.linspace(start, stop, steps, dtype=dtype)
        return check(name, made, expected, dtype, max(abs(start), abs(stop)))
    step = draw(st.sampled_from([1, 2, -1, -3] + [0.25, -0.5] * (dtype in FLOATS)))
    expected = numpy.arange(start, stop, step)
    return check(name, genesis.arange(start, stop, step, dtype=dtype), expected, dtype)


@prop("rand", "randn", "rand_like", "randn_like", "randint", "randperm", "manual_seed")
def random_numbers(name, draw):
    """The same seed gives the same numbers, in range, whatever the number of threads."""
    shape, seed = draw(shapes()), draw(st.integers(0, (1 << 64) - 1))
    dtype = draw(st.sampled_from(FLOATS))
    low, high = draw(st.integers(-100, 0)), draw(st.integers(1, 100))

    def make():
        genesis.manual_seed(seed)
        if name == "randint":
            return genesis.randint(low, high, shape)
        if name == "randperm":
            return genesis.randperm(high)
        if name.endswith("_like"):
            return getattr(genesis, name)(genesis.zeros(shape, dtype=dtype))
        return getattr(genesis, "rand" if name == "manual_seed" else name)(shape, dtype=dtype)

    made = make()
    array = elements(made)
    threads = genesis.cpu.get_num_threads()
    genesis.cpu.set_num_threads(draw(st.integers(1, 3)))
    numpy.testing.assert_array_equal(elements(make()), array)
    genesis.cpu.set_num_threads(threads)
    if name == "randperm":
        assert sorted(array) == list(range(high))
        return
    assert made.shape == shape
    if name == "randint":
        assert made.dtype == genesis.int64 and ((array >= low) & (array < high)).all()
    elif "randn" in name:
        assert made.dtype.name == dtype and numpy.isfinite(array).all()
    else:
        assert made.dtype.name == dtype and ((array >= 0) & (array < 1)).all()


@prop("save", "load")
def files(name, draw):
    import tempfile

    many = {f"{i}": draw(pairs()) for i in range(draw(st.integers(0, 3)))}
    with tempfile.TemporaryDirectory() as folder:
        genesis.save({key: pair.tensor for key, pair in many.items()}, f"{folder}/f")
        loaded = genesis.load(f"{folder}/f")
    assert list(loaded) == list(many)
    for key, pair in many.items():
        same(name, loaded[key], pair.array, pair)
