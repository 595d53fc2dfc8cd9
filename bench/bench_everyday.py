"""Everyday calls on the CPU beside NumPy: 400 of them, at three sizes.

    python bench/bench_everyday.py [--sizes 1K,1M,16M] [--rows TEXT] [--rounds 5] [--worst 40]

A line is one row of the table ``ROWS`` at one size. Both sides compute the same thing in turns: an
operation of Genesis is followed by ``genesis.flush()``, so that its work is inside the measured
time. Before they are measured, the two results are compared. A ratio is the median of the rounds'
ratios, the time of Genesis over NumPy's: below 1 Genesis is faster. The slowest lines come first.

Zeros are added to: NumPy's come from the system, which makes pages zero when they are touched.
Lists and searches have at most 1,000,000 elements, and products side lengths of their own.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import genesis

SIZES = {"1K": 1_000, "1M": 1_000_000, "16M": 16_000_000}
SHAPES = {1_000: (25, 40), 1_000_000: (1000, 1000), 16_000_000: (4000, 4000)}
SIDES = {1_000: 16, 1_000_000: 128, 16_000_000: 512}  # of the square matrices that are multiplied
DTYPES = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "b1": "bool",
}
ROUND_SECONDS = 0.002  # a round of a short call repeats it for at least that long
FIRST_SECONDS = 0.05  # what a call that is short may take the first time: a library is loaded
SAMPLED_LEAST, SAMPLE_STEP = 2_000_000, 61  # of long results every so many elements are compared

# Every row has the dtypes of x, y and so on (a line for each), the expression for both sides, and
# NumPy's where it has another name. `G` is genesis or numpy. `operands()` makes the other names:
#   x, y     n elements, those of y positive         p           n elements from 0.1 to 2
#   m, w     matrices of n elements                  v, u        a row and a column that fit m
#   z, zm    like x and m, to be changed             q           short, sorted
#   s        every second of 2 n elements            t, t2       m transposed; w in another shape
#   a, d     a square matrix; a batch of small ones  e           few elements, known to others
#   b, c     random bools                            none, full  all false, all true
#   i, j     n indices; n / 10 of them               ri, mi      indices of rows; of m's columns
#   short, l at most 1,000,000 elements; as a list   xn          x, always NumPy's
ROWS: list[tuple[str, str, str]] = [
    # ---- operators of two tensors
    ("f4 f8 i4 i8 u1 f2", "x + y", ""),
    ("f4 i8", "x - y", ""),
    ("f4 f8 i4 i8 f2", "x * y", ""),
    ("f4 f8 i4 f2", "x / y", ""),
    ("f4 f8 i4 i8", "x // y", ""),
    ("f4 f8 i4", "x % y", ""),
    ("f4 f8", "p ** y", ""),
    ("i4 u1", "x & y", ""),
    ("i8", "x | y", ""),
    ("b1", "b & c", ""),
    ("b1", "b | c", ""),
    # ---- of one, and of a number
    ("f4 f8 i8", "-x", ""),
    ("f4 f8 i4", "abs(x)", ""),
    ("b1", "~b", ""),
    ("f4 f8 i4 i8 u1 f2", "x + 1", ""),
    ("f4 f8 i4", "x * 2", ""),
    ("f4", "x - 0.5", ""),
    ("f4 i8", "1 - x", ""),
    ("f4 f8 i4", "x / 3", ""),
    ("f4 f8", "1 / y", ""),
    ("f4 f8 i4 i8 u1", "x // 7", ""),
    ("f4 f8 i4", "x % 7", ""),
    ("f4 f8 i4 f2", "x ** 2", ""),
    ("f4 f8 i4", "x ** 3", ""),
    ("f4 f8", "p ** 0.5", ""),
    ("f4 f8", "y ** -1", "y ** -1.0"),
    ("f4 f8", "p ** 1.5", ""),
    ("f4 f8", "2.0 ** x", ""),
    ("i4", "x << 1", ""),
    ("i8", "x >> 2", ""),
    # ---- comparisons
    ("f4 f8 i4 u1 f2", "x < y", ""),
    ("f4 f8 i8", "x == y", ""),
    ("i4", "x != y", ""),
    ("f4 f8 i4", "x >= 0", ""),
    ("i4 u1", "x == 3", ""),
    ("f4", "(x > 0) & (x < 1)", ""),
    ("f4", "G.isnan(x)", ""),
    ("f4", "G.isfinite(x)", ""),
    ("b1", "G.logical_and(b, c)", ""),
    # ---- functions of elements
    ("f4 f8", "G.sqrt(p)", ""),
    ("f4 f8 f2", "G.exp(x)", ""),
    ("f4 f8", "G.log(p)", ""),
    ("f4", "G.log2(p)", ""),
    ("f4 f8", "G.log10(p)", ""),
    ("f4 f8", "G.log1p(p)", ""),
    ("f4 f8", "G.sin(x)", ""),
    ("f4 f8", "G.cos(x)", ""),
    ("f4", "G.tan(x)", ""),
    ("f4 f8", "G.tanh(x)", ""),
    ("f4", "G.sinh(x)", ""),
    ("f4 f8", "G.arctan(x)", ""),
    ("f4 f8", "G.arctan2(x, y)", ""),
    ("f4", "G.arcsin(x / 4)", ""),
    ("f4 f8", "G.floor(x)", ""),
    ("f4 f8", "G.round(x)", ""),
    ("f4", "G.trunc(x)", ""),
    ("f4 i4", "G.sign(x)", ""),
    ("f4", "G.square(x)", ""),
    ("f4 f8 i4", "G.maximum(x, y)", ""),
    ("f4 i8", "G.minimum(x, 0)", ""),
    ("f4 i4", "x.clip(0, 1)", ""),
    ("f4", "G.hypot(x, y)", ""),
    ("f4", "G.fmod(x, y)", ""),
    ("f4", "G.nan_to_num(x)", ""),
    ("f4 f8 i4", "G.where(b, x, y)", ""),
    ("f4", "G.where(x > 0, x, 0)", ""),
    # ---- several operations
    ("f4 f8", "x * y + 1", ""),
    ("f4", "(x - 0.5) * 2 / y", ""),
    ("f4 f8", "G.sqrt(x * x + y * y)", ""),
    ("f4", "G.exp(-x * x / 2)", ""),
    ("f4", "1 / (1 + G.exp(-x))", ""),
    ("f4", "(x - x.mean()) / y", ""),
    ("f4", "((x - y) ** 2).mean()", ""),
    ("f4", "G.abs(x - y).max()", ""),
    ("f4", "(x > 0).sum()", ""),
    ("f4", "(m - m.mean(0)) / w.sum(0)", ""),
    ("f4", "m / (m * m).sum(1, keepdims=True)", ""),
    # ---- reductions of everything
    ("f4 f8 i4 i8 u1 f2", "x.sum()", ""),
    ("b1", "b.sum()", ""),
    ("f4 f8 f2", "x.mean()", ""),
    ("i4", "x.double().mean()", "x.mean()"),
    ("f4 f8 i4 u1 f2", "x.max()", ""),
    ("f4 i4", "x.min()", ""),
    ("f8", "p.prod()", ""),
    ("f4 f8 i4 u1", "x.argmax()", ""),
    ("f4", "x.argmin()", ""),
    ("b1", "none.any()", ""),
    ("b1", "full.all()", ""),
    ("b1", "full.any()", ""),
    ("f4", "y.all()", ""),
    ("b1", "G.count_nonzero(b)", ""),
    ("f4", "G.count_nonzero(x)", ""),
    ("f4 f8", "x.std(correction=0)", "x.std()"),
    ("f4", "x.var(correction=0)", "x.var()"),
    ("f4 f8", "x.norm()", "numpy.linalg.norm(x)"),
    ("f4", "x.median()", "numpy.partition(x, (x.size - 1) // 2)[(x.size - 1) // 2]"),
    ("f4", "G.quantile(x[:1000000], 0.9)", ""),
    ("i8", "G.bincount(j)", ""),
    ("f4", "G.allclose(x, x)", ""),
    ("f4", "G.isclose(x, y)", ""),
    ("f4", "G.equal(x, x)", "numpy.array_equal(x, x)"),
    # ---- reductions by dimensions
    ("f4 f8 i4", "m.sum(0)", ""),
    ("f4 f8 i4", "m.sum(1)", ""),
    ("b1", "bm.sum(0)", ""),
    ("f4", "m.mean(0)", ""),
    ("f4 f8", "m.mean(1)", ""),
    ("f4 i4", "m.amax(0)", "m.max(0)"),
    ("f4 f8", "m.amax(1)", "m.max(1)"),
    ("f4", "m.argmax(0)", ""),
    ("f4", "m.argmax(1)", ""),
    ("f4", "m.std(1, correction=0)", "m.std(1)"),
    ("b1", "bm.any(0)", ""),
    ("b1", "bm.all(1)", ""),
    ("f4", "m.norm(dim=1)", "numpy.linalg.norm(m, axis=1)"),
    # ---- cumulative
    ("f4 f8 i4 i8", "x.cumsum(0)", ""),
    ("b1", "b.cumsum(0)", ""),
    ("f8", "p.cumprod(0)", ""),
    ("f4", "m.cumsum(0)", ""),
    ("f4", "m.cumsum(1)", ""),
    ("f4", "G.diff(x)", ""),
    ("f4", "G.diff(m)", ""),
    ("f4", "x.cummax(0).values", "numpy.maximum.accumulate(x)"),
    # ---- creation
    ("f4 f8", "G.zeros(n, dtype=T) + 1", ""),
    ("f4 i8", "G.ones(n, dtype=T)", ""),
    ("f4 b1", "G.full((n,), 1, dtype=T)", ""),
    ("f4", "G.zeros_like(x)", ""),
    ("f4", "G.full_like(x, 3)", ""),
    ("i8", "G.arange(n)", ""),
    ("f4 f8", "G.arange(n, dtype=T)", ""),
    ("f8", "G.arange(0, n, 0.5, dtype=T)", ""),
    ("i8", "G.arange(5, n, 3)", ""),
    ("f4 f8", "G.linspace(0, 1, n, dtype=T)", ""),
    ("f4", "G.eye(r, dtype=T)", ""),
    ("f4", "G.tril(m)", ""),
    ("f4", "G.diag(v)", ""),
    ("f4", "G.tensor(l, dtype=T)", "numpy.array(l, dtype=T)"),
    ("i8", "G.tensor(l)", "numpy.array(l)"),
    ("f4", "G.tensor(xn)", "numpy.array(xn)"),
    # ---- random
    ("f4", "G.rand(n)", "rng.random(n, dtype=T)"),
    ("f8", "G.rand(n, dtype=T)", "rng.random(n)"),
    ("f4", "G.randn(n)", "rng.standard_normal(n, dtype=T)"),
    ("f8", "G.randn(n, dtype=T)", "rng.standard_normal(n)"),
    ("i8", "G.randint(0, 100, (n,))", "rng.integers(0, 100, n)"),
    ("i8", "G.randperm(n)", "rng.permutation(n)"),
    # ---- copies, conversions
    ("f4 f8", "x.clone()", "x.copy()"),
    ("f4", "x.double()", "x.astype('f8')"),
    ("f4", "x.int()", "x.astype('i4')"),
    ("f4", "x.long()", "x.astype('i8')"),
    ("f4", "x.half()", "x.astype('f2')"),
    ("f4", "x.bool()", "x.astype('?')"),
    ("f4", "p.byte()", "p.astype('u1')"),
    ("f8", "x.float()", "x.astype('f4')"),
    ("f8", "x.long()", "x.astype('i8')"),
    ("f8", "x.half()", "x.astype('f2')"),
    ("i4", "x.float()", "x.astype('f4')"),
    ("i4", "x.double()", "x.astype('f8')"),
    ("i8", "x.float()", "x.astype('f4')"),
    ("i8", "x.double()", "x.astype('f8')"),
    ("i8", "x.int()", "x.astype('i4')"),
    ("i8", "x.bool()", "x.astype('?')"),
    ("u1", "x.float()", "x.astype('f4')"),
    ("u1", "x.int()", "x.astype('i4')"),
    ("u1", "x.float() / 255", "x.astype('f4') / 255"),
    ("b1", "b.float()", "b.astype('f4')"),
    ("b1", "b.long()", "b.astype('i8')"),
    ("f2", "x.float()", "x.astype('f4')"),
    ("f2", "x.double()", "x.astype('f8')"),
    ("f4 i8", "short.tolist()", ""),
    ("b1", "b[:1000000].tolist()", ""),
    ("f4", "x[7].item()", ""),
    ("f4", "float(x[7])", ""),
    ("f4", "e.numpy()", "numpy.asarray(memoryview(e))"),
    ("f4", "x.shape", ""),
    # ---- shapes
    ("f4", "x.reshape(r, k)", ""),
    ("f4", "m.reshape(-1)", ""),
    ("f4", "m.T", ""),
    ("f4 f8", "m.T.clone()", "m.T.copy()"),
    ("f4", "t.reshape(-1).clone()", "t.reshape(-1)"),
    ("f4", "d.permute(1, 0, 2).clone()", "d.transpose(1, 0, 2).copy()"),
    ("f4", "d.permute(2, 1, 0).clone()", "d.transpose(2, 1, 0).copy()"),
    ("f4", "G.broadcast_to(v, (r, k)).clone()", "numpy.broadcast_to(v, (r, k)).copy()"),
    ("f4 i8", "G.cat([x, y])", "numpy.concatenate([x, y])"),
    ("f4", "G.cat([m, w], 1)", "numpy.concatenate([m, w], 1)"),
    ("f4", "G.stack([x, y])", ""),
    ("f4", "G.stack([x, y], 1)", ""),
    ("f4", "m.split(5)", "numpy.split(m, r // 5)"),
    ("f4", "x.chunk(4)", "numpy.array_split(x, 4)"),
    ("f4", "x.flip(0)", "numpy.flip(x).copy()"),
    ("f4", "m.flip(1)", "numpy.flip(m, 1).copy()"),
    ("f4", "x.roll(3)", "numpy.roll(x, 3)"),
    ("f4", "m.roll(1, 0)", "numpy.roll(m, 1, 0)"),
    ("f4", "x.tile((3,))", "numpy.tile(x, 3)"),
    ("f4 f8", "x.repeat_interleave(3)", "x.repeat(3)"),
    ("f4", "m.repeat_interleave(2, 0)", "m.repeat(2, 0)"),
    ("f4", "m.repeat_interleave(2, 1)", "m.repeat(2, 1)"),
    # ---- indexing
    ("f4 f8 i8", "x[i]", ""),
    ("f4", "x[j]", ""),
    ("f4 i8", "x[b]", ""),
    ("f4", "x[x > 0]", ""),
    ("f4", "x[5]", ""),
    ("f4", "m[3, 4]", ""),
    ("f4", "m[3]", ""),
    ("f4", "m[:, 3]", ""),
    ("f4", "m[1:-1, 1:-1]", ""),
    ("f4", "m[1:-1, 1:-1].clone()", "m[1:-1, 1:-1].copy()"),
    ("f4", "x[::2].clone()", "x[::2].copy()"),
    ("f4", "m[:, ::2].clone()", "m[:, ::2].copy()"),
    ("f4", "m[:, 3].clone()", "m[:, 3].copy()"),
    ("f4", "m[ri]", ""),
    ("f4", "m[:, ri]", ""),
    ("f4", "G.take_along_dim(m, mi, 1)", "numpy.take_along_axis(m, mi, 1)"),
    ("f4", "z.__setitem__(i, y)", ""),
    ("f4", "z.__setitem__(b, 0)", ""),
    ("f4", "z.__setitem__(slice(5, -5), 1)", ""),
    ("f4", "zm.__setitem__((slice(None), 3), 1)", ""),
    ("f4", "zm.__setitem__(3, v)", ""),
    ("f4", "x.masked_fill(b, 0)", "numpy.where(b, numpy.float32(0), x)"),
    ("b1", "G.nonzero(b)", "numpy.argwhere(b)"),
    ("f4", "G.where(x > 1)", "numpy.nonzero(x > 1)"),
    ("f4", "G.searchsorted(q, short)", ""),
    ("i4", "G.isin(x, G.arange(10))", ""),
    # ---- sorting
    ("f4 f8 i4 i8 u1", "x.sort().values", "numpy.sort(x)"),
    ("f4 i8", "x.argsort()", "x.argsort(kind='stable')"),
    ("f4", "m.sort(1).values", "numpy.sort(m, 1)"),
    ("f4", "m.sort(0).values", "numpy.sort(m, 0)"),
    ("f4", "m.argsort(1)", "m.argsort(1, kind='stable')"),
    ("f4 i4", "G.unique(x)", ""),
    ("f4", "x.topk(10).values", "numpy.sort(numpy.partition(x, -10)[-10:])[::-1]"),
    # ---- in place
    ("f4 f8 i8", "z.add_(y)", "numpy.add(z, y, out=z)"),
    ("f4", "z.mul_(1.0)", "numpy.multiply(z, 1.0, out=z)"),
    ("f4", "z.fill_(2)", "z.fill(2)"),
    ("f4", "z.zero_()", "z.fill(0)"),
    ("f4", "z.copy_(x)", "numpy.copyto(z, x)"),
    ("f4", "z.clamp_(-1, 1)", "numpy.clip(z, -1, 1, out=z)"),
    ("f4", "z.abs_().sqrt_()", "numpy.sqrt(numpy.abs(z, out=z), out=z)"),
    ("f4", "G.add(x, y, out=z)", ""),
    # ---- strided and transposed views
    ("f4 f8", "s + 1", ""),
    ("f4", "s * s", ""),
    ("f4", "s.sum()", ""),
    ("f4", "s.max()", ""),
    ("f4", "G.exp(s)", ""),
    ("f4 f8", "t + 1", ""),
    ("f4", "m + t2", ""),
    ("f4", "t.sum(0)", ""),
    ("f4", "t.sum(1)", ""),
    ("f4", "m[:, 1:] - m[:, :-1]", ""),
    ("f4", "m[::2, ::2] + 1", ""),
    ("f4", "x[1:] + x[:-1]", ""),
    ("f4", "x.flip(0) + x", "x[::-1] + x"),
    # ---- broadcasting
    ("f4 f8", "m + v", ""),
    ("f4", "m * u", ""),
    ("f4", "u + v", ""),
    ("f4", "m > v", ""),
    ("f4", "m - m.mean(1, keepdims=True)", ""),
    ("f4", "G.where(bm, m, v)", ""),
    ("f4", "m * G.tensor(2.0)", "m * numpy.float32(2.0)"),
    ("f4", "d + d[0]", ""),
    # ---- products
    ("f4 f8", "a @ a", ""),
    ("f4", "a @ a.T", ""),
    ("f4", "a @ a[0]", ""),
    ("f4 f8", "x @ y", ""),
    ("f4", "m @ v", ""),
    ("f4", "d @ d", ""),
    ("f4", "G.outer(u.reshape(-1), v)", "numpy.outer(u, v)"),
    ("f4", "G.einsum('ij,ij->i', m, w)", ""),
    ("i4", "a @ a", ""),
]

RANDOM = ("rand", "rng")


class Row(NamedTuple):
    """One call: its dtype's short name, and the expressions of the two sides."""

    dtype: str
    ours: str
    theirs: str

    @property
    def name(self) -> str:
        """What ``--rows`` looks for."""
        return f"{self.dtype} {self.ours}"


class Line(NamedTuple):
    """A row at a size, measured in seconds."""

    row: Row
    size: str
    theirs: float
    ours: float
    ratio: float


def rows() -> list[Row]:
    """The table with a row for each dtype."""
    return [
        Row(dtype, ours, theirs or ours)
        for dtypes, ours, theirs in ROWS
        for dtype in dtypes.split()
    ]


def operands(dtype: str, n: int) -> dict[str, Any]:
    """The names of NumPy's side."""
    rng = numpy.random.default_rng(n)
    type_ = numpy.dtype(DTYPES[dtype])
    r, k = SHAPES[n]
    side = SIDES[n]
    if type_.kind == "f":
        x = rng.uniform(-2, 2, n).astype(type_)
        y = rng.uniform(0.5, 2, n).astype(type_)
        p = rng.uniform(0.1, 2, n).astype(type_)
        a = rng.uniform(-1, 1, (side, side)).astype(type_)
    else:
        x = rng.integers(
            0 if type_.kind != "i" else -100, 2 if type_.kind == "b" else 100, n
        ).astype(type_)
        y = rng.integers(1, 2 if type_.kind == "b" else 100, n).astype(type_)
        p, a = y, x[: side * side].reshape(side, side) if side * side <= n else x[:1].reshape(1, 1)
    m, w = x.reshape(r, k), y.reshape(r, k)
    s = numpy.concatenate([x, y])[::2] if n < 2_000_000 else numpy.concatenate([x, x])[::2]
    batch = max(n // 256, 1)
    b, c = rng.random(n) < 0.5, rng.random(n) < 0.5
    return {
        "x": x, "y": y, "p": p, "z": x.copy(), "e": x[:9].copy(), "zm": m.copy(),
        "q": numpy.sort(x[:1_000_000]), "m": m, "w": w,
        "v": m[0].copy(), "u": w[:, :1].copy(), "s": s, "t": m.T, "t2": w.reshape(k, r).T, "a": a,
        "d": x[: n // 256 * 256].reshape(batch, 16, 16) if n >= 256 else x, "b": b, "c": c,
        "bm": b.reshape(r, k), "none": numpy.zeros(n, bool), "full": numpy.ones(n, bool),
        "i": rng.integers(0, n, n), "j": rng.integers(0, n, max(n // 10, 1)),
        "ri": rng.integers(0, r, r), "mi": rng.integers(0, k, (r, k)), "short": x[:1_000_000],
    }  # fmt: skip


def scopes(dtype: str, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What NumPy's expressions see, and those of Genesis: the same elements and strides."""
    arrays = operands(dtype, n)
    transposed = {"t": "m", "t2": None}
    tensors = {name: genesis.tensor(one) for name, one in arrays.items() if name not in transposed}
    tensors["t"] = tensors["m"].T
    tensors["t2"] = genesis.tensor(numpy.ascontiguousarray(arrays["t2"].T)).T
    whole = numpy.concatenate([arrays["s"], arrays["s"]])
    whole[::2] = arrays["s"]
    arrays["s"], tensors["s"] = whole[::2], genesis.tensor(whole)[::2]
    r, k = SHAPES[n]
    shared = {"n": n, "r": r, "k": k, "l": arrays["short"].tolist(), "numpy": numpy}
    theirs = {**arrays, **shared, "G": numpy, "T": numpy.dtype(DTYPES[dtype]),
              "xn": arrays["x"], "rng": numpy.random.default_rng(0)}  # fmt: skip
    ours = {**tensors, **shared, "G": genesis, "T": getattr(genesis, DTYPES[dtype]),
            "xn": arrays["x"], "flush": genesis.flush}  # fmt: skip
    return theirs, ours


def repeated(expression: str, scope: dict[str, Any], end: str) -> Callable[[int], Any]:
    """A function that evaluates an expression so often, and returns the last result."""
    body = f"    for _ in range(count):\n        made = {expression}\n{end}"
    exec(f"def run(count):\n{body}    return made\n", scope)  # the texts are those above
    return scope["run"]


def is_same(ours: Any, theirs: Any, dtype: str) -> bool:
    """Whether two results agree, as far as the order of additions and the types allow."""
    is_several = isinstance(theirs, (list, tuple)) and isinstance(theirs[0], numpy.ndarray)
    if is_several:
        pairs = zip(ours, theirs, strict=True)
        return len(ours) == len(theirs) and all(is_same(*pair, dtype) for pair in pairs)
    if ours is None or theirs is None:
        return True  # written in place: z is compared
    one = numpy.asarray(ours.numpy() if isinstance(ours, genesis.Tensor) else ours)
    other = numpy.asarray(theirs)
    if one.shape != other.shape:
        return False
    if one.size > SAMPLED_LEAST:
        one, other = one.reshape(-1)[::SAMPLE_STEP], other.reshape(-1)[::SAMPLE_STEP]
    if one.dtype.kind != "f" and other.dtype.kind != "f":
        return bool(numpy.array_equal(one, other))
    tolerance = (
        5e-2
        if dtype == "f2"
        else 1e-2
        if "f4" in (one.dtype.str[1:], other.dtype.str[1:])
        else 1e-6
    )
    scale = (
        numpy.abs(other.astype(float), where=numpy.isfinite(other)).max(initial=1e-3)
        if other.size
        else 1
    )
    close = numpy.isclose(
        one.astype(float), other.astype(float), rtol=tolerance, atol=tolerance * 1e-2 * scale
    )
    return bool(close.mean() > 0.9999 if close.size else True)


def seconds(run: Callable[[int], Any], count: int) -> float:
    """Of one evaluation."""
    begin = time.perf_counter()
    run(count)
    return (time.perf_counter() - begin) / count


def measure(row: Row, size: str, scope: tuple[dict[str, Any], dict[str, Any]], rounds: int) -> Line:
    """Compare the results, then the times."""
    theirs = repeated(row.theirs, scope[0], "")
    ours = repeated(row.ours, scope[1], "        flush()\n")
    begin = time.perf_counter()
    expected = theirs(1)
    middle = time.perf_counter()
    made = ours(1)
    once = (middle - begin, time.perf_counter() - middle)
    if not any(word in row.theirs for word in RANDOM) and not is_same(made, expected, row.dtype):
        raise SystemExit(f"{row.name} at {size}: {made} is not {expected}")
    for changed in ("z", "zm"):
        is_written = changed + "." in row.ours or "out=" + changed in row.ours
        if is_written and not is_same(scope[1][changed].clone(), scope[0][changed], row.dtype):
            raise SystemExit(f"{row.name} at {size}: {changed} differs")
    del expected, made
    counts = []
    for run, taken in zip((theirs, ours), once, strict=True):
        if taken < FIRST_SECONDS:  # the first call may have been slower than others
            taken = min(seconds(run, 1) for _ in range(2))
        counts.append(max(1, min(20000, math.ceil(ROUND_SECONDS / max(taken, 1e-8)))))
    times = [(seconds(theirs, counts[0]), seconds(ours, counts[1])) for _ in range(rounds)]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(other / one for one, other in times)
    for name in ("z", "zm"):  # as they were
        scope[0][name][...] = scope[0]["x" if name == "z" else "m"]
        scope[1][name].copy_(scope[1]["x" if name == "z" else "m"])
    return Line(row, size, first, second, ratio)


def report(lines: list[Line], worst: int) -> None:
    """The slowest lines, the counts and the mean."""
    lines = sorted(lines, key=lambda line: -line.ratio)
    print("| call | elements | NumPy, us | Genesis, us | Genesis / NumPy |\n|---|---|---|---|---|")
    for line in lines[:worst]:
        text = line.row.ours.replace("|", "\\|")
        print(
            f"| {DTYPES[line.row.dtype]}: `{text}` | {line.size} | {line.theirs * 1e6:.2f} "
            f"| {line.ours * 1e6:.2f} | {line.ratio:.2f} |"
        )
    mean = math.exp(statistics.fmean(math.log(line.ratio) for line in lines))
    above = {limit: sum(line.ratio > limit for line in lines) for limit in (1.5, 2.5)}
    print(
        f"\n{len(lines)} lines, of them {above[1.5]} above 1.5x NumPy's time "
        f"and {above[2.5]} above 2.5x."
    )
    print(f"Geometric mean: {mean:.3f} of NumPy's time, {1 / mean:.2f}x faster.")


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sizes", default="1K,1M,16M", help="some of 1K, 1M and 16M")
    parser.add_argument(
        "--rows", default="", help="texts with a semicolon between: rows that have one in them"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worst", type=int, default=40, help="how many lines are printed")
    options = parser.parse_args()
    wanted = [row for row in rows() if any(one in row.name for one in options.rows.split(";"))]
    threads, rounds = genesis.cpu.get_num_threads(), options.rounds
    print(f"{threads} threads, medians of {rounds} interleaved rounds, {len(wanted)} rows.\n")
    lines = []
    for size in options.sizes.split(","):
        for dtype in DTYPES:
            chosen = [row for row in wanted if row.dtype == dtype]
            if chosen:
                scope = scopes(dtype, SIZES[size])
                lines += [measure(row, size, scope, options.rounds) for row in chosen]
    report(lines, options.worst)


if __name__ == "__main__":
    main()
