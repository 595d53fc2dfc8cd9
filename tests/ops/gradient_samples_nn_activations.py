"""Samples of genesis.nn.functional: activations."""

from __future__ import annotations

from typing import Any

from gradient_sample import Sample, leaf

import genesis

F = genesis.nn.functional


def in_place(name: str, *rest: Any, **words: Any) -> Sample:
    """A function that writes into its first argument."""
    call = getattr(F, name)
    return Sample(
        f"nn.functional.{name}",
        (leaf(2, 3),),
        {},
        lambda x: call(x * 2, *rest, **words),
        " ".join(["written", *words]),
    )


def seeded(name: str, **words: Any) -> Sample:
    """A function that draws the same random numbers in each call."""

    def function(x: Any) -> Any:
        genesis.manual_seed(3)
        return getattr(F, name)(x, **words)

    return Sample(f"nn.functional.{name}", (leaf(3, 4),), {}, function, " ".join(words))


SAMPLES: list[Sample] = [
    *(
        Sample(f"nn.functional.{name}", (leaf(2, 3), *rest), {})
        for name, *rest in (
            ("softsign",),
            ("tanhshrink",),
            ("softshrink", 0.4),
            ("hardshrink", 0.4),
            ("hardsigmoid",),
            ("threshold", 0.3, 2.0),
            ("rrelu", 0.25, 0.5),
            ("softmax", 0),
            ("log_softmax", -1),
            ("softmin", 1),
        )
    ),
    Sample("nn.functional.glu", (leaf(2, 4),), {}),
    Sample("nn.functional.glu", (leaf(4, 3), 0), {}),
    Sample("nn.functional.prelu", (leaf(2, 3, 2), leaf(3, seed=1)), {}),
    Sample("nn.functional.prelu", (leaf(5), leaf(1, seed=1)), {}),
    in_place("relu_"),
    in_place("selu_"),
    in_place("elu_", 0.7),
    in_place("celu_", 0.7),
    in_place("leaky_relu_", 0.3),
    in_place("hardtanh_", -0.5, 0.9),
    in_place("threshold_", 0.3, 2.0),
    in_place("rrelu_", 0.25, 0.5),
    in_place("threshold", 0.3, 2.0, inplace=True),
    in_place("hardsigmoid", inplace=True),
    in_place("rrelu", 0.25, 0.5, inplace=True),
    seeded("rrelu", training=True),
    seeded("gumbel_softmax", tau=0.8),
]
