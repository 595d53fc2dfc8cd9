"""All samples of gradients: the tests on the CPU, the simulated GPU and a real one share them."""

from __future__ import annotations

import functools

import gradient_samples_elements
import gradient_samples_linalg
import gradient_samples_nn_activations
import gradient_samples_nn_convolutions
import gradient_samples_nn_layers
import gradient_samples_nn_losses
import gradient_samples_nn_pooling
import gradient_samples_nn_recurrent
import gradient_samples_rows
import gradient_samples_shapes
from gradient_sample import Sample, calls_of

SAMPLES: list[Sample] = [
    *gradient_samples_elements.SAMPLES,
    *gradient_samples_shapes.SAMPLES,
    *gradient_samples_rows.SAMPLES,
    *gradient_samples_linalg.SAMPLES,
    *gradient_samples_nn_activations.SAMPLES,
    *gradient_samples_nn_convolutions.SAMPLES,
    *gradient_samples_nn_layers.SAMPLES,
    *gradient_samples_nn_losses.SAMPLES,
    *gradient_samples_nn_pooling.SAMPLES,
    *gradient_samples_nn_recurrent.SAMPLES,
]


@functools.cache
def covered() -> dict[str, int]:
    """The names that have samples, such as "genesis.exp" and "Tensor.exp_", and how many."""
    found: dict[str, int] = {}
    for sample in SAMPLES:
        for what in calls_of(sample):
            name = what.removesuffix(" of a view")
            name = name if name.startswith(("Tensor.", "genesis.")) else f"genesis.{name}"
            found[name] = found.get(name, 0) + 1
    return found


def one_of_each() -> list[Sample]:
    """The first sample of each function."""
    found: dict[str, Sample] = {}
    for sample in SAMPLES:
        found.setdefault(sample.name, sample)
    return [*found.values()]
