"""Random tensors, keys and values for the tests of indexing, made from a seed."""

from __future__ import annotations

from typing import Any

import numpy

import genesis

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64",
]  # fmt: skip
INDEX_DTYPES = ["int64", "int64", "int32", "int16", "int8", "uint8", "uint64", "uint32", "uint16"]


def array_of(rng: numpy.random.Generator) -> numpy.ndarray:
    """An array of some shape, type and layout."""
    ndim = int(rng.integers(0, 5))
    shares = [0.04, 0.16, 0.2, 0.25, 0.2, 0.15]
    shape = [int(rng.choice([0, 1, 2, 3, 5, 7], p=shares)) for _ in range(ndim)]
    dtype = DTYPES[rng.integers(len(DTYPES))]
    steps = [int(rng.choice([1, 1, 2, -1])) for _ in shape]
    order = rng.permutation(ndim)
    whole = [shape[i] * abs(steps[i]) for i in order]
    array = numpy.arange(numpy.prod(whole, dtype=int)).reshape(whole).astype(dtype)
    array = array.transpose(numpy.argsort(order))
    return array[(..., *(slice(None, None, step) for step in steps))]


def slice_of(rng: numpy.random.Generator, size: int) -> slice:
    def end() -> int | None:
        return None if rng.random() < 0.4 else int(rng.integers(-size - 2, size + 3))

    step = int(rng.choice([1, 1, 2, 3, -1, -2]))
    return slice(end(), end(), None if step == 1 and rng.random() < 0.5 else step)


def number_of(rng: numpy.random.Generator, size: int) -> int:
    if rng.random() < 0.01:
        return int(rng.choice([size, -size - 1, 100, -100]))
    return int(rng.integers(-size, size)) if size else 0


def dressed(rng: numpy.random.Generator, array: numpy.ndarray) -> tuple[Any, Any]:
    """An index as NumPy gets it, and as we do: a tensor, an array, or lists."""
    form = rng.integers(4)
    if form == 0 and array.ndim and array.size:
        return array.tolist(), array.tolist()
    if form == 1 and array.ndim:
        array = numpy.repeat(array, 2, axis=0)[::2]  # strides
    if form == 2:
        return array, array
    return array, genesis.tensor(array)


def index_of(rng: numpy.random.Generator, size: int, block: list[int]) -> tuple[Any, Any]:
    """An index tensor that broadcasts to a block."""
    keep = int(rng.integers(0, len(block) + 1)) if rng.random() < 0.3 else len(block)
    shape = [1 if rng.random() < 0.15 else one for one in block[len(block) - keep :]]
    if rng.random() < 0.01:
        shape.append(2)
    count = int(numpy.prod(shape, dtype=int))
    values = numpy.array([number_of(rng, size) for _ in range(count)], "int64").reshape(shape)
    dtype = INDEX_DTYPES[rng.integers(len(INDEX_DTYPES))]
    if dtype.startswith("u"):
        values = numpy.abs(values) % max(size, 1)
    return dressed(rng, values.astype(dtype))


def key_of(rng: numpy.random.Generator, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """A key for NumPy, and the same one for us."""
    parts: list[tuple[Any, Any]] = []
    block = [
        int(rng.integers(0, 5)) if rng.random() < 0.1 else int(rng.integers(1, 5))
        for _ in range(rng.integers(0, 3))
    ]
    allowed = rng.choice(["basic", "index", "all", "mask"], p=[0.25, 0.25, 0.3, 0.2])
    at, left = 0, len(shape) - int(rng.integers(0, 2))
    has_ellipsis = False
    while at < left or (rng.random() < 0.1 and len(parts) < 8):
        kind = rng.choice(["int", "slice", "none", "ellipsis", "index", "mask", "bool"],
                          p=[0.18, 0.27, 0.06, 0.06, 0.25, 0.15, 0.03])  # fmt: skip
        if allowed == "basic" and kind in ("index", "mask", "bool"):
            kind = "slice"
        elif allowed == "index" and kind in ("mask", "bool"):
            kind = "index"
        elif allowed == "mask" and kind == "index":
            kind = "mask"
        size = shape[at] if at < len(shape) else 1
        if kind == "none":
            parts.append((None, None))
        elif kind == "ellipsis":
            if has_ellipsis and rng.random() < 0.95:
                continue
            parts.append((..., ...))
            if not has_ellipsis:
                skipped = int(rng.integers(0, len(shape) - at + 1)) if at < len(shape) else 0
                at, left = at + skipped, len(shape)
            has_ellipsis = True
        elif kind == "bool":
            value = bool(rng.integers(4))
            parts.append((value, numpy.bool_(value) if rng.random() < 0.5 else value))
        elif kind == "mask":
            most = len(shape) - at
            rank = int(rng.integers(1, most + 1)) if most > 0 else 1
            sizes = list(shape[at : at + rank]) or [1]
            if rng.random() < 0.01:
                sizes[0] += 1
            mask = rng.random(sizes) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
            parts.append(dressed(rng, mask))
            at += rank
        elif kind == "index":
            parts.append(index_of(rng, size, block))
            at += 1
        elif kind == "slice":
            one = slice_of(rng, size)
            parts.append((one, one))
            at += 1
        else:
            number = number_of(rng, size)
            form = rng.integers(4)
            own = [number, numpy.int64(number), numpy.array(number), genesis.tensor(number)][form]
            parts.append((number, own))
            at += 1
    if len(parts) == 1 and rng.random() < 0.5:
        return parts[0]
    return tuple(part[0] for part in parts), tuple(part[1] for part in parts)


def value_of(rng: numpy.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Something that can mostly be assigned to this shape."""
    if rng.random() < 0.3:
        return int(rng.integers(0, 100))
    keep = int(rng.integers(0, len(shape) + 1)) if rng.random() < 0.3 else len(shape)
    sizes = [1 if rng.random() < 0.15 else one for one in shape[len(shape) - keep :]]
    if rng.random() < 0.02:
        sizes = [*sizes, 3]
    values = rng.integers(0, 100, sizes)
    if rng.random() < 0.2:
        dtype = DTYPES[rng.integers(len(DTYPES))]
    return values.astype(dtype)
