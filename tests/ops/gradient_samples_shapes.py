"""Samples of functions that move elements: views, joins, indices, and writes in place."""

from __future__ import annotations

from typing import Any

import numpy
from gradient_sample import Sample, leaf

import genesis

X, Y, CUBE = leaf(2, 3), leaf(2, 3, seed=1), leaf(2, 3, 2)
SQUARE, ROW = leaf(3, 3), leaf(3, seed=1)
NONE, DOT = leaf(0, 3), leaf()
I64 = genesis.int64


def call(name: str, *arguments: Any, label: str = "", **keywords: Any) -> Sample:
    """A call of a function, which is a method as well."""
    return Sample(name, arguments, keywords, label=label)


def by(name: str, function: Any, *arguments: Any, label: str = "") -> Sample:
    """A call that is written out."""
    return Sample(name, arguments, {}, function, label)


def inside(name: str, *arguments: Any, label: str = "", **keywords: Any) -> list[Sample]:
    """A method that is there in place alone: on a copy, and on a view."""
    first, *rest = arguments

    def on_copy(x: Any, *given: Any) -> Any:
        made = x.clone()
        getattr(made, name)(*given, **keywords)
        return made

    def on_view(x: Any, *given: Any) -> Any:
        base = genesis.zeros((2, *x.shape), dtype=x.dtype, device=x.device)
        view = base[1]
        view.copy_(x)
        getattr(view, name)(*given, **keywords)
        return base * base

    return [
        Sample(f"Tensor.{name}", arguments, {}, on_copy, label),
        Sample(f"Tensor.{name}", arguments, {}, on_view, f"{label} on a view".strip()),
    ]


# ---- views ----

VIEWS = [
    call("reshape", X, (3, 2)),
    call("reshape", CUBE, (4, -1)),
    call("reshape", DOT, (1, 1)),
    call("reshape", NONE, (3, 0)),
    by("Tensor.view", lambda x: (x * 1).contiguous().view(3, 2), X),
    by("view", lambda x: genesis.view((x * 1).contiguous(), (6,)), X),
    by("Tensor.view_as", lambda x, y: (x * 1).contiguous().view_as(y), X, leaf(3, 2, seed=1)),
    call("expand", leaf(2, 1), (2, 3)),
    call("expand", DOT, (2, 2)),
    call("broadcast_to", leaf(2, 1), (3, 2, 2)),
    call("ravel", CUBE),
    call("flatten", CUBE, 1),
    call("unflatten", leaf(2, 4), 1, (2, 2)),
    call("transpose", CUBE, 0, 2),
    call("swapdims", CUBE, 0, 1),
    call("swapaxes", CUBE, 1, -1),
    call("t", X),
    call("permute", CUBE, (2, 0, 1)),
    call("movedim", CUBE, 0, 2),
    call("movedim", CUBE, (0, 1), (1, 2), label="two"),
    call("squeeze", leaf(2, 1, 3)),
    call("squeeze", leaf(2, 1, 3), 1),
    call("unsqueeze", X, 1),
    call("unsqueeze", DOT, 0),
    call("diagonal", SQUARE),
    call("diagonal", CUBE, 1, 0, 1, label="offset"),
    call("select", X, 0, 1),
    call("select", X, 1, -1),
    call("narrow", X, 1, 1, 2),
    call("narrow", NONE, 1, 0, 2),
    by("Tensor.unfold", lambda x: x.unfold(1, 2, 1), X),
    by("as_strided", lambda x: genesis.as_strided(x * 1, (2, 2), (1, 2), 1), leaf(6)),
    by("Tensor.as_strided", lambda x: (x * 1).as_strided((2, 2), (1, 2), 1), leaf(6)),
    by("as_strided", lambda x: genesis.as_strided(x * 1, (3, 2), (1, 1)), leaf(5), label="overlap"),
    by("as_strided", lambda x: genesis.as_strided(x * 1, (3, 2), (0, 1)), leaf(5), label="repeat"),
    call("unbind", X),
    call("unbind", X, 1),
    call("split", leaf(5), 2),
    call("split", leaf(2, 5), (2, 3), 1, label="sizes"),
    call("chunk", leaf(5), 2),
    call("tensor_split", leaf(2, 5), 2, 1),
    call("tensor_split", leaf(2, 5), (1, 3), 1, label="places"),
    call("hsplit", leaf(2, 4), 2),
    call("vsplit", leaf(4, 2), 2),
    call("dsplit", leaf(1, 2, 4), 2),
    call("broadcast_tensors", leaf(2, 1), leaf(1, 3, seed=1)),
    call("meshgrid", leaf(2), leaf(3, seed=1)),
    call("meshgrid", leaf(2), leaf(3, seed=1), label="xy", indexing="xy"),
    call("atleast_1d", DOT),
    call("atleast_2d", ROW),
    call("atleast_3d", X),
    by("Tensor.T", lambda x: x.T, X),
    by("Tensor.mT", lambda x: x.mT, CUBE),
    by("Tensor.expand_as", lambda x, y: x.expand_as(y), leaf(1, 3), Y),
    by("Tensor.reshape_as", lambda x, y: x.reshape_as(y), leaf(3, 2), Y),
]

# ---- copies ----

COPIES = [
    call("clone", X),
    call("contiguous", X),
    by("Tensor.copy", lambda x: x.copy(), X),
    by("Tensor.astype", lambda x: x.astype(genesis.float64), X),
    by("Tensor.type_as", lambda x, y: x.type_as(y), X, Y),
    by("Tensor.type", lambda x: x.type(genesis.float64), X),
    by("Tensor.to", lambda x: x.to(genesis.float64), X),
    by("Tensor.to", lambda x: x.to("cpu"), X, label="a device"),
    by("Tensor.cpu", lambda x: x.cpu(), X),
    by("Tensor.double", lambda x: x.double(), X),
    by("Tensor.to_device", lambda x: x.to_device("cpu"), X),
    by("Tensor.__array_ufunc__", lambda x: numpy.exp(x), X),
    by("Tensor.__array_function__", lambda x: numpy.stack([x, x]), X),
    by("Tensor.__iter__", lambda x: tuple(x), X),
    by("Tensor.__reversed__", lambda x: tuple(reversed(x)), X),
    by("full", lambda x: genesis.full((2, 2), x.sum()), X),
    by("full_like", lambda x, y: genesis.full_like(x, y), X, DOT),
    by("Tensor.new_full", lambda x, y: x.new_full((2, 2), y), X, DOT),
    call("flip", CUBE, (0, 2)),
    call("fliplr", X),
    call("flipud", X),
    call("rot90", X),
    call("rot90", X, 3, label="thrice"),
    call("roll", X, 1),
    call("roll", CUBE, (1, -1), (0, 1), label="two"),
    call("repeat", X, (2, 1)),
    call("repeat", X, (2, 1, 2), label="more dimensions"),
    call("repeat", NONE, (2, 2)),
    call("tile", X, (2,)),
    call("repeat_interleave", X, 2),
    call("repeat_interleave", X, 2, 0, label="rows"),
    call("repeat_interleave", X, genesis.tensor([2, 0, 1]), 1, label="counts"),
    call("tril", SQUARE),
    call("triu", X, 1),
    call("diag", ROW),
    call("diag", SQUARE, 1),
    call("diag_embed", X),
    call("diag_embed", X, 1, label="offset"),
    call("block_diag", X, leaf(1, 2, seed=1)),
    call("cat", [X, leaf(1, 3, seed=1)]),
    call("cat", [X, leaf(2, 1, seed=1), leaf(2, 0, seed=2)], -1, label="columns"),
    call("stack", [X, Y]),
    call("stack", [X, Y], 1, label="columns"),
    call("stack", [DOT, leaf(seed=1)], label="numbers"),
    call("hstack", [X, Y]),
    call("vstack", [X, ROW]),
    call("dstack", [X, Y]),
    call("column_stack", [ROW, leaf(3, 2)]),
    call("pad", X, (1, 2)),
    call("pad", X, (1, 0, -1, 1), label="and cut", value=2.0),
    call("pad", leaf(1, 2, 3), (1, 2), label="reflect", mode="reflect"),
    call("pad", leaf(1, 2, 3), (1, 2), label="replicate", mode="replicate"),
    call("pad", leaf(1, 2, 3), (2, 1), label="circular", mode="circular"),
    call("slice_scatter", X, leaf(1, 3, seed=1), 0, 1, 2),
    call("slice_scatter", leaf(5), leaf(2, seed=1), 0, 0, 4, 2, label="steps"),
    call("select_scatter", X, ROW, 0, 1),
    call("diagonal_scatter", SQUARE, ROW),
]


# ---- elements by indices ----

PLACES = genesis.tensor([[0, 2], [1, 0]])
AGAIN = genesis.tensor([[0, 0, 2], [1, 1, 1]])
LINE = genesis.tensor([2, 0, 2])
ONCE = genesis.tensor([2, 0])
FLAT = genesis.tensor([5, 0, 5, -1])
MASK = genesis.tensor([[True, False, True], [False, True, True]])
EMPTY = genesis.zeros(0, dtype=I64)


def at(key: Any) -> Any:
    """A key, whose tensors are on the device of what it is a key of."""
    return lambda x: x[tuple(one.to(x.device) if hasattr(one, "to") else one for one in key)]


KEYS: dict[str, tuple] = {
    "a number": (1,),
    "negative": (-1,),
    "slices": (slice(0, 1), slice(0, None, 2)),
    "backwards": (slice(None), slice(None, None, -1)),
    "a new axis": (None, ..., 0),
    "an ellipsis": (..., slice(1, 2)),
    "an index": (LINE[:2] // 2,),
    "an index behind a slice": (slice(0, 1), LINE),
    "two indices": (LINE // 2, LINE),
    "indices apart": (LINE // 2, None, LINE),
    "a mask": (MASK,),
    "a mask of columns": (slice(None), MASK[0]),
    "nothing": (EMPTY,),
    "a list": (slice(None), [0, 2, 0]),
}


def put(key: Any, is_added: bool = False) -> Any:
    """A value at a key of a copy."""

    def write(x: Any, value: Any) -> Any:
        made = x.clone()
        own = tuple(one.to(x.device) if hasattr(one, "to") else one for one in key)
        if is_added:
            made[own] += value
        else:
            made[own] = value
        return made

    return write


# A place that is written to twice has no gradient of its own.
PLACES_ONCE = KEYS | {
    "an index behind a slice": (slice(0, 1), ONCE),
    "two indices": (ONCE // 2, ONCE),
    "indices apart": (ONCE // 2, None, ONCE),
    "a list": (slice(None), [0, 2]),
}

INDICES = [
    *(by("Tensor.__getitem__", at(key), X, label=label) for label, key in KEYS.items()),
    *(
        by("Tensor.__setitem__", put(key, is_added), X, DOT, label="+= " * is_added + label)
        for is_added in (False, True)
        for label, key in PLACES_ONCE.items()
    ),
    by("Tensor.__setitem__", put((LINE[:2],)), leaf(3, 2), leaf(2, seed=1), label="broadcast"),
    call("gather", X, 1, PLACES),
    call("gather", X, 0, AGAIN // 2, label="rows"),
    call("gather", DOT, 0, genesis.tensor(0)),
    call("index_select", X, 1, LINE),
    call("index_select", X, 0, EMPTY, label="nothing"),
    call("take", X, FLAT),
    call("take_along_dim", X, PLACES, 1),
    call("take_along_dim", X, FLAT, label="flat"),
    call("masked_select", X, MASK),
    call("scatter", X, 1, PLACES, leaf(2, 2, seed=1)),
    call("scatter", X, 1, PLACES, 5.0, label="a number"),
    call("scatter", X, 1, PLACES, leaf(2, 2, seed=1), label="add", reduce="add"),
    call("scatter", X, 1, PLACES, leaf(2, 2, seed=1), label="multiply", reduce="multiply"),
    call("scatter_add", X, 1, AGAIN, leaf(2, 3, seed=1)),
    *(
        call("scatter_reduce", X, 1, AGAIN, leaf(2, 3, seed=1), kind, label=f"{kind} {word}",
             include_self=is_self)._replace(is_tied=kind not in ("amax", "amin"))
        for kind in ("sum", "mean", "prod", "amax", "amin")
        for is_self, word in ((True, ""), (False, "alone"))
    ),
    call("index_add", X, 1, LINE[:2], leaf(2, 2, seed=1)),
    call("index_add", X, 1, LINE, Y, label="alpha", alpha=2),
    call("index_copy", X, 1, LINE[:2], leaf(2, 2, seed=1)),
    call("index_fill", X, 1, LINE, 2.0),
    call("index_fill", X, 1, ONCE, DOT, label="a tensor"),
    call("index_put", X, (LINE[:2] // 2, LINE[:2]), leaf(2, seed=1)),
    call("index_put", X, (LINE // 2, LINE), leaf(3, seed=1), True, label="added"),
    call("masked_fill", X, MASK, 2.0),
    call("masked_fill", X, MASK, DOT, label="a tensor"),
    call("masked_scatter", X, MASK, leaf(5, seed=1)),
    *inside("put_", X, FLAT[:2], leaf(2, seed=1)),
    *inside("put_", X, FLAT, leaf(4, seed=1), True, label="added"),
]  # fmt: skip

# ---- in place ----


def become(name: str, *arguments: Any) -> Any:
    """A method that makes a tensor another view of its memory."""

    def write(x: Any) -> Any:
        made = x.clone()
        getattr(made, name)(*arguments)
        return made.exp()

    return write


IN_PLACE = [
    *inside("copy_", X, ROW),
    *inside("fill_", X, 2.0),
    *inside("fill_", X, DOT, label="a tensor"),
    *inside("zero_", X),
    *inside("fill_diagonal_", SQUARE, 2.0),
    *inside("cumsum_", X, 1),
    *inside("cumprod_", X, 1),
    by("Tensor.t_", become("t_"), X),
    by("Tensor.transpose_", become("transpose_", 0, 1), X),
    by("Tensor.swapdims_", become("swapdims_", 0, 1), X),
    by("Tensor.swapaxes_", become("swapaxes_", 0, 1), X),
    by("Tensor.squeeze_", become("squeeze_", 1), leaf(2, 1)),
    by("Tensor.unsqueeze_", become("unsqueeze_", 0), X),
]

SAMPLES: list[Sample] = [*VIEWS, *COPIES, *INDICES, *IN_PLACE]
