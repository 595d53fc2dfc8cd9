"""Samples of recurrent layers: what they compute is no public function."""

from __future__ import annotations

from typing import Any

from gradient_sample import Sample, leaf

import genesis


def sample(mode: str, gates: int, *, is_reversed: bool = False, sizes: Any = None) -> Sample:
    """One direction of a layer with 2 features and a state of 2."""
    states = 2 if mode == "LSTM" else 1

    def call(x: Any, w: Any, v: Any, b: Any, c: Any, *state: Any) -> Any:
        weights = [w, v, b, c]
        made = genesis._C._nn._recurrent(x, [*state], weights, mode, is_reversed, sizes)
        return tuple(made)

    leaves = [leaf(3, 2, 2) if sizes is None else leaf(sum(sizes), 2)]
    leaves += [leaf(2 * gates, 2, seed=1), leaf(2 * gates, 2, seed=2)]
    leaves += [leaf(2 * gates, seed=3), leaf(2 * gates, seed=4)]
    leaves += [leaf(2, 2, seed=5 + i) for i in range(states)]
    label = f"{mode}{' reversed' * is_reversed}{' packed' * (sizes is not None)}"
    return Sample("nn._recurrent", (*leaves,), {}, call=call, label=label, is_plain=True)


SAMPLES: list[Sample] = [
    sample("RNN_TANH", 1),
    sample("RNN_RELU", 1),
    sample("LSTM", 4),
    sample("GRU", 3),
    sample("LSTM", 4, sizes=[2, 1, 1]),
    sample("GRU", 3, sizes=[2, 1, 1], is_reversed=True),
]
