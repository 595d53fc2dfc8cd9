"""Samples of genesis.nn.functional: activations."""

from __future__ import annotations

from gradient_sample import Sample

SAMPLES: list[Sample] = []
