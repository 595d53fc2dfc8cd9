"""Samples of genesis.nn.functional: layers."""

from __future__ import annotations

from gradient_sample import Sample, leaf

SAMPLES: list[Sample] = [
    Sample("nn.functional.linear", (leaf(4, 3), leaf(2, 3, seed=1), leaf(2, seed=2)), {}),
    Sample("nn.functional.linear", (leaf(2, 4, 3), leaf(3, seed=1)), {}),
]
