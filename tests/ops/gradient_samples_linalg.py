"""Samples of genesis.linalg."""

from __future__ import annotations

from gradient_sample import Sample, leaf

SAMPLES: list[Sample] = [
    Sample("linalg.matmul", (leaf(2, 4, 3), leaf(3, 2, seed=1)), {}),
]
