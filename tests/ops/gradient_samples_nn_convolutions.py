"""Samples of genesis.nn.functional: convolutions."""

from __future__ import annotations

from gradient_sample import Sample, leaf

SAMPLES: list[Sample] = [
    Sample("nn.functional.conv1d", (leaf(2, 2, 5), leaf(3, 2, 2, seed=1), leaf(3, seed=2)), {}),
    Sample(
        "nn.functional.conv1d",
        (leaf(2, 7), leaf(4, 1, 3, seed=1)),
        {"padding": "same", "dilation": 2, "groups": 2},
        is_plain=True,
    ),
    Sample(
        "nn.functional.conv2d",
        (leaf(2, 2, 4, 3), leaf(2, 2, 3, 2, seed=1), leaf(2, seed=2)),
        {"stride": (2, 1), "padding": (1, 0)},
    ),
    Sample(
        "nn.functional.conv2d",
        (leaf(1, 4, 5, 4), leaf(2, 2, 2, 2, seed=1)),
        {"stride": 2, "padding": 1, "dilation": (2, 1), "groups": 2},
        is_plain=True,
    ),
    Sample(
        "nn.functional.conv2d",
        (leaf(1, 3, 4, 4), leaf(3, 1, 3, 3, seed=1), leaf(3, seed=2)),
        {"padding": 1, "groups": 3},
        is_plain=True,
    ),
    Sample(
        "nn.functional.conv3d",
        (leaf(1, 1, 3, 2, 3), leaf(2, 1, 2, 1, 2, seed=1), leaf(2, seed=2)),
        {"stride": (1, 1, 2), "padding": (0, 1, 0)},
        is_plain=True,
    ),
    Sample(
        "nn.functional.conv_transpose1d",
        (leaf(2, 2, 3), leaf(2, 2, 2, seed=1), leaf(2, seed=2)),
        {"stride": 2, "padding": 1},
    ),
    Sample(
        "nn.functional.conv_transpose2d",
        (leaf(1, 2, 2, 3), leaf(2, 1, 2, 3, seed=1), leaf(2, seed=2)),
        {"stride": (2, 3), "padding": (0, 1), "output_padding": (1, 2), "groups": 2},
        is_plain=True,
    ),
    Sample(
        "nn.functional.conv_transpose2d",
        (leaf(2, 3, 2), leaf(2, 1, 2, 2, seed=1)),
        {"dilation": 2, "padding": 1},
        is_plain=True,
    ),
    Sample(
        "nn.functional.conv_transpose3d",
        (leaf(1, 1, 2, 2, 2), leaf(1, 2, 2, 1, 2, seed=1)),
        {"stride": 2, "output_padding": 1},
        is_plain=True,
    ),
    Sample("nn.functional.unfold", (leaf(2, 2, 3, 4), (2, 3)), {"padding": 1, "stride": (1, 2)}),
    Sample("nn.functional.unfold", (leaf(1, 3, 3), 2), {"dilation": 2}, is_plain=True),
    Sample("nn.functional.fold", (leaf(2, 4, 4), (3, 4), 2), {"stride": (1, 2)}),
    Sample("nn.functional.fold", (leaf(4, 4), (3, 3), 2), {}, is_plain=True),
]
