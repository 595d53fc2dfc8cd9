"""Samples of functions of rows and matrices: reductions, statistics, sorting, series, products."""

from __future__ import annotations

from typing import Any

from gradient_sample import Sample, constant, leaf

import genesis

X, Y, CUBE = leaf(2, 3), leaf(2, 3, seed=1), leaf(2, 3, 2)
ROW, DOT, WIDE = leaf(5), leaf(), leaf(2, 5)
NONE, COLUMNS = leaf(0, 3), leaf(2, 0)
POSITIVE = leaf(2, 3, low=0.3, high=1.9)


def call(name: str, *arguments: Any, label: str = "", **keywords: Any) -> Sample:
    """A call of a function, which is a method as well."""
    return Sample(name, arguments, keywords, label=label)


def apart(name: str, *arguments: Any, label: str = "", **keywords: Any) -> Sample:
    """The same where equal elements have no gradient of their own."""
    return call(name, *arguments, label=label, **keywords)._replace(is_tied=False)


def by(name: str, function: Any, *arguments: Any, label: str = "") -> Sample:
    """A call that is written out."""
    return Sample(name, arguments, {}, function, label)


def of_rows(name: str, *shapes: Any, is_tied: bool = True, **keywords: Any) -> list[Sample]:
    """A reduction of all, of one dimension, of several, of none, and with dimensions kept."""
    made = [
        call(name, X, **keywords),
        call(name, X, dim=0, **keywords),
        call(name, CUBE, dim=-1, keepdim=True, label="kept", **keywords),
        *(call(name, one, **keywords) for one in shapes),
    ]
    return [one._replace(is_tied=is_tied) for one in made]


def with_zeros(name: str, *columns: int) -> Sample:
    """Rows whose elements in some columns are 0."""
    is_zero = genesis.tensor([[float(i in columns) for i in range(3)], [0.0, 0.0, 1.0]]).double()
    taken = constant(X, "cpu") * is_zero

    def function(x: Any) -> Any:
        return getattr(genesis, name)(x - taken.to(x.device), 1)

    return Sample(name, (X,), {}, function, f"{len(columns)} of 0", is_plain=True)


REDUCTIONS = [
    *of_rows("sum", DOT, NONE),
    *of_rows("mean", DOT),
    *of_rows("nansum", DOT, NONE),
    *of_rows("nanmean", DOT),
    *of_rows("amax", DOT, is_tied=False),
    *of_rows("amin", DOT, is_tied=False),
    *of_rows("var"),
    *of_rows("std", is_tied=False),
    *of_rows("var_mean"),
    *of_rows("std_mean", is_tied=False),
    call("sum", CUBE, dim=(0, 2), label="two"),
    call("mean", CUBE, dim=(0, 2), label="two"),
    call("sum", COLUMNS, dim=1, label="of nothing"),
    call("sum", X, label="dtype", dtype=genesis.float64),
    apart("amax", CUBE, dim=(0, 2), label="two"),
    call("var", X, dim=1, label="correction", correction=0),
    call("prod", X),
    call("prod", X, 1),
    call("prod", CUBE, -1, True, label="kept"),
    call("prod", DOT),
    with_zeros("prod", 1),
    with_zeros("prod", 0, 2),
    with_zeros("prod", 0, 1, 2),
    call("norm", X),
    *(call("norm", X, p, 1, label=f"{p}") for p in (1, 2, 3, 0.5, 2.5)),
    *(apart("norm", X, p, 1, label=f"{p}") for p in (float("inf"), float("-inf"))),
    call("norm", X, 0, 1, label="0"),
    call("norm", X, "fro", label="fro"),
    call("norm", CUBE, 2, (0, 1), True, label="kept"),
    call("logsumexp", X, 1),
    call("logsumexp", CUBE, (0, 2), True, label="two"),
    call("softmax", X, 1),
    call("softmax", CUBE, 1, label="middle"),
    call("softmax", NONE, 1),
    call("softmax", DOT, 0),
    call("log_softmax", X, -1),
    call("log_softmax", CUBE, 0),
    call("log_softmax", DOT, 0),
    apart("max", X),
    apart("max", X, 1),
    apart("max", X, 0, True, label="kept"),
    call("max", X, Y, label="of two"),
    apart("min", X),
    apart("min", X, 1),
    call("min", X, Y, label="of two"),
    apart("aminmax", X),
    apart("aminmax", X, label="rows", dim=1),
]

STATISTICS = [
    apart("median", ROW),
    apart("median", WIDE, 1),
    apart("median", WIDE, 0, True, label="kept"),
    apart("nanmedian", ROW),
    apart("nanmedian", WIDE, 1),
    apart("mode", WIDE, 1),
    apart("quantile", ROW, 0.3),
    apart("quantile", WIDE, 0.4, 1, label="rows"),
    *(
        apart("quantile", WIDE, 0.4, 1, label=kind, interpolation=kind)
        for kind in ("lower", "higher", "midpoint", "nearest")
    ),
    apart("nanquantile", WIDE, 0.3, 1),
    call("cov", leaf(2, 4)),
    call("cov", leaf(2, 4), label="correction", correction=0),
    call("cov", leaf(2, 3), label="weights", aweights=genesis.tensor([0.5, 1.5, 1.0]).double()),
    call("corrcoef", leaf(2, 4))._replace(is_plain=True),
    call("cosine_similarity", X, Y),
    call("cosine_similarity", X, Y, 0, label="columns"),
    *(call("cdist", leaf(2, 2), leaf(3, 2, low=2, high=4, seed=1), p, label=f"{p}")
      for p in (2.0, 1.0, 3.0)),
    apart("cdist", leaf(2, 2), leaf(3, 2, low=2, high=4, seed=1), float("inf"), label="inf"),
]  # fmt: skip

ROWS = [
    apart("sort", WIDE),
    apart("sort", WIDE, 0, True, label="down"),
    apart("sort", DOT),
    apart("msort", WIDE),
    apart("topk", WIDE, 2),
    apart("topk", WIDE, 1, 0, False, label="least"),
    apart("kthvalue", WIDE, 2),
    apart("kthvalue", WIDE, 1, 0, True, label="kept"),
    call("cumsum", X, 1),
    call("cumsum", CUBE, 0),
    call("cumsum", NONE, 0),
    call("cumsum", DOT, 0),
    call("cumprod", X, 1),
    call("cumprod", CUBE, 1),
    with_zeros("cumprod", 1),
    with_zeros("cumprod", 0, 2),
    with_zeros("cumprod", 0, 1, 2),
    apart("cummax", WIDE, 1),
    apart("cummin", WIDE, 0),
    call("logcumsumexp", X, 1),
    call("logcumsumexp", X, 0),
    call("diff", WIDE),
    call("diff", WIDE, 2, label="twice"),
    call("diff", X, 1, 0, leaf(1, 3, seed=1), leaf(2, 3, seed=2), label="with ends"),
    call("trapezoid", WIDE),
    call("trapezoid", WIDE, leaf(5, seed=1), label="places"),
    call("trapezoid", X, label="dx", dx=0.5, dim=0),
    call("cumulative_trapezoid", WIDE),
    call("cumulative_trapezoid", WIDE, leaf(5, seed=1), label="places"),
    call("trace", leaf(3, 3)),
    call("trace", X),
]

A, B, C = leaf(2, 3), leaf(3, 2, seed=1), leaf(2, 2, seed=2)
BATCH, OTHERS = leaf(2, 2, 3), leaf(2, 3, 2, seed=1)

PRODUCTS = [
    call("matmul", A, B),
    call("matmul", leaf(3), B, label="a row"),
    call("matmul", A, leaf(3, seed=1), label="a column"),
    call("matmul", leaf(3), leaf(3, seed=1), label="two vectors"),
    call("matmul", BATCH, B, label="one of them a batch"),
    call("matmul", leaf(2, 1, 2, 3), OTHERS, label="batches"),
    call("matmul", NONE, B),
    call("matmul", leaf(2, 0), leaf(0, 2, seed=1), label="of nothing"),
    call("matmul", leaf(1, 1), leaf(1, 1, seed=1)),
    call("mm", A, B),
    call("bmm", BATCH, OTHERS),
    call("mv", A, leaf(3, seed=1)),
    call("dot", leaf(3), leaf(3, seed=1)),
    call("vdot", leaf(3), leaf(3, seed=1)),
    call("outer", leaf(2), leaf(3, seed=1)),
    call("inner", A, leaf(4, 3, seed=1)),
    call("inner", leaf(3), leaf(3, seed=1)),
    call("kron", A, C),
    call("cross", leaf(2, 3), leaf(2, 3, seed=1), label="rows", dim=1),
    call("cross", leaf(3, 2), leaf(3, 2, seed=1)),
    call("tensordot", A, B, 1),
    call("tensordot", CUBE, leaf(3, 2, 2, seed=1), ((1, 2), (0, 1)), label="two"),
    call("addmm", C, A, B),
    call("addmm", leaf(2, seed=2), A, B, label="numbers", beta=0.5, alpha=2),
    call("addmv", leaf(2, seed=2), A, leaf(3, seed=1)),
    call("addmv", leaf(2, seed=2), A, leaf(3, seed=1), label="numbers", beta=0.5, alpha=2),
    call("baddbmm", leaf(2, 2, 2, seed=2), BATCH, OTHERS),
    call("baddbmm", leaf(2, 2, 2, seed=2), BATCH, OTHERS, label="numbers", beta=0, alpha=2),
    *(
        by("einsum", lambda *given, equation=equation: genesis.einsum(equation, *given), *operands,
           label=equation)
        for equation, *operands in (
            ("ij,jk->ik", A, B),
            ("ij->ji", A),
            ("ij->", A),
            ("ii->i", leaf(3, 3)),
            ("ii", leaf(3, 3)),
            ("bij,bjk->bik", BATCH, OTHERS),
            ("i,j->ij", leaf(2), leaf(3, seed=1)),
            ("ij,j,i->i", A, leaf(3, seed=1), leaf(2, seed=2)),
            ("...ij,jk->...ik", BATCH, B),
            ("ij,ij->j", A, Y),
        )
    ),
]  # fmt: skip

SAMPLES: list[Sample] = [*REDUCTIONS, *STATISTICS, *ROWS, *PRODUCTS]
