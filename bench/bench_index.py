"""Indexing on the CPU beside NumPy: the same work in turns.

    python bench/bench_index.py [ROUNDS]

As bench_ops.py, which says what a ratio is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy
from bench_ops import MILLION, Scenario, main

import genesis


def scenarios() -> list[Scenario]:
    """Name, how often a round repeats it, NumPy's way, ours."""
    rng = numpy.random.default_rng(0)
    a = rng.random(MILLION, dtype=numpy.float32)
    square = a.reshape(1000, 1000)
    x, m = genesis.tensor(a), genesis.tensor(square)
    places = rng.integers(0, MILLION, MILLION)
    rows, columns = (rng.integers(0, 1000, MILLION) for _ in range(2))
    some = rng.integers(0, 1000, 1000)
    masks = {name: rng.random(MILLION) < share for name, share in (("half", 0.5), ("1%", 0.01))}
    i, r, c, s = (genesis.tensor(one) for one in (places, rows, columns, some))
    target, t = a.copy(), genesis.tensor(a)
    edges, e = numpy.sort(a[:1000]), genesis.tensor(numpy.sort(a[:1000]))

    def assign(array: object, key: object, value: object) -> Callable[[], None]:
        return lambda: array.__setitem__(key, value)

    cases: list[Scenario] = [
        ("x[idx]", 5, lambda: a[places], lambda: x[i]),
        ("x[rows, cols]", 3, lambda: square[rows, columns], lambda: m[r, c]),
        ("x[idx] of 1000 rows", 5, lambda: square[some], lambda: m[s]),
        ("x[:, idx], 1000 of 1000", 5, lambda: square[:, some], lambda: m[:, s]),
        ("x[idx] = y", 5, assign(target, places, a), assign(t, i, x)),
    ]
    for name, mask in masks.items():
        own, values = genesis.tensor(mask), a[: mask.sum()]
        v = genesis.tensor(values)
        cases += [
            (f"x[mask], {name} true", 5, lambda mask=mask: a[mask], lambda own=own: x[own]),
            (f"x[mask] = number, {name}", 5, assign(target, mask, 2.0), assign(t, own, 2.0)),
            (f"x[mask] = y, {name}", 5, assign(target, mask, values), assign(t, own, v)),
        ]
    mask, own = masks["half"], genesis.tensor(masks["half"])
    small, q = square[:8, :8].copy(), genesis.tensor(square[:8, :8])
    return [
        *cases,
        ("scatter_add", 2, lambda: numpy.add.at(target, places, a),
         lambda: t.scatter_add_(0, i, x)),
        ("nonzero, half true", 5, lambda: mask.nonzero(), lambda: own.nonzero()),
        ("searchsorted", 1, lambda: numpy.searchsorted(edges, a),
         lambda: genesis.searchsorted(e, x)),
        ("bincount", 3, lambda: numpy.bincount(rows), lambda: r.bincount()),
        ("8 x 8: x[3:5]", 20000, lambda: small[3:5], lambda: q[3:5]),
        ("8 x 8: x[0]", 20000, lambda: small[0], lambda: q[0]),
        ("8 x 8: x[0, 1]", 20000, lambda: small[0, 1], lambda: q[0, 1]),
        ("8 x 8: x[:, None]", 20000, lambda: small[:, None], lambda: q[:, None]),
        ("8 x 8: x[1:3, ::2]", 20000, lambda: small[1:3, ::2], lambda: q[1:3, ::2]),
        ("8 x 8: x[2] = 1", 20000, assign(small, 2, 1), assign(q, 2, 1)),
        ("8 x 8: x[[0, 2]]", 5000, lambda: small[[0, 2]], lambda: q[[0, 2]]),
    ]  # fmt: skip


if __name__ == "__main__":
    main(scenarios)
