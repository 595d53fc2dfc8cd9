"""Samples of genesis.nn.functional: pooling and resampling."""

from __future__ import annotations

from typing import Any

from gradient_sample import Sample, leaf

import genesis


def unpooled(x: genesis.Tensor, places: Any, count: int) -> genesis.Tensor:
    """max_unpool of values whose places are numbers."""
    call = getattr(genesis.nn.functional, f"max_unpool{count}d")
    return call(x, genesis.tensor(places, device=x.device).reshape(x.shape), 2)


def maximum(name: str, shape: tuple[int, ...], size: Any, **words: Any) -> Sample:
    """A sample without equal elements."""
    return Sample(f"nn.functional.{name}", (leaf(*shape), size), words, is_tied=False)


def with_places(name: str, shape: tuple[int, ...]) -> Sample:
    """The values of a function that gives indices as well."""

    def call(x: genesis.Tensor, size: int) -> genesis.Tensor:
        return getattr(genesis.nn.functional, name)(x, size)[0]

    words = {"call": call, "is_tied": False, "is_plain": True}
    return Sample(f"nn.functional.{name}", (leaf(*shape), 2), {}, **words)


SAMPLES: list[Sample] = [
    *[
        with_places(f"{kind}max_pool{count}d_with_indices", (1, 2, 4, 3, 2)[: count + 2])
        for kind in ("", "adaptive_")
        for count in (1, 2, 3)
    ],
    *[
        Sample(
            "nn.functional.interpolate",
            (leaf(1, 2, 5, 4), size),
            {"mode": mode, "antialias": True},
            is_plain=True,
        )
        for mode in ("bilinear", "bicubic")
        for size in (3, 6)
    ],
    Sample("nn.functional.upsample_nearest", (leaf(1, 2, 3), 5), {}, is_plain=True),
    Sample("nn.functional.upsample_bilinear", (leaf(1, 2, 3, 4), 5), {}, is_plain=True),
    maximum("max_pool1d", (2, 2, 7), 3, stride=2, padding=1),
    maximum("max_pool2d", (1, 2, 5, 4), (3, 2), stride=(2, 1), padding=1, ceil_mode=True),
    maximum("max_pool2d", (2, 5, 5), 2, dilation=2),
    maximum("max_pool3d", (1, 2, 3, 2, 4), 2, stride=1),
    maximum("adaptive_max_pool1d", (2, 7), 3),
    maximum("adaptive_max_pool2d", (1, 2, 5, 4), (3, 2)),
    maximum("adaptive_max_pool3d", (1, 1, 3, 2, 4), 2),
    Sample("nn.functional.avg_pool1d", (leaf(2, 2, 7), 3), {"stride": 2, "padding": 1}),
    Sample(
        "nn.functional.avg_pool2d",
        (leaf(1, 2, 5, 4), (3, 2)),
        {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
    ),
    Sample("nn.functional.avg_pool2d", (leaf(2, 4, 4), 2), {"divisor_override": 3}, is_plain=True),
    Sample("nn.functional.avg_pool3d", (leaf(1, 2, 3, 2, 4), 2), {"stride": 1}, is_plain=True),
    Sample("nn.functional.adaptive_avg_pool1d", (leaf(2, 2, 7), 3), {}),
    Sample("nn.functional.adaptive_avg_pool2d", (leaf(1, 2, 4, 6), (2, 3)), {}),
    Sample("nn.functional.adaptive_avg_pool2d", (leaf(2, 5, 4), (3, 3)), {}, is_plain=True),
    Sample("nn.functional.adaptive_avg_pool3d", (leaf(1, 2, 3, 2, 4), 1), {}),
    Sample("nn.functional.lp_pool1d", (leaf(2, 2, 5, low=0.4), 3, 2), {}),
    Sample("nn.functional.lp_pool2d", (leaf(1, 2, 4, 3, low=0.4), 2, 2), {"stride": 1}),
    Sample("nn.functional.lp_pool3d", (leaf(1, 1, 2, 2, 3, low=0.4), 2, 2), {}, is_plain=True),
    Sample(
        "nn.functional.max_unpool1d",
        (leaf(1, 2, 2), [1, 2, 0, 3], 1),
        {},
        call=unpooled,
        is_plain=True,
    ),
    Sample(
        "nn.functional.max_unpool2d",
        (leaf(1, 1, 2, 2), [1, 2, 13, 8], 2),
        {},
        call=unpooled,
        is_plain=True,
    ),
    Sample(
        "nn.functional.max_unpool3d",
        (leaf(1, 1, 1, 1, 2), [3, 14], 3),
        {},
        call=unpooled,
        is_plain=True,
    ),
    Sample("nn.functional.interpolate", (leaf(1, 2, 3), 5), {}),
    Sample("nn.functional.interpolate", (leaf(1, 2, 4), 6), {"mode": "linear"}),
    Sample(
        "nn.functional.interpolate",
        (leaf(1, 2, 3, 4), (5, 3)),
        {"mode": "bilinear", "align_corners": True},
    ),
    Sample(
        "nn.functional.interpolate",
        (leaf(1, 1, 3, 4),),
        {"mode": "bicubic", "scale_factor": (1.7, 0.6)},
        is_plain=True,
    ),
    Sample("nn.functional.interpolate", (leaf(1, 2, 5, 4), 3), {"mode": "area"}, is_plain=True),
    Sample(
        "nn.functional.interpolate",
        (leaf(1, 1, 2, 2, 3), 3),
        {"mode": "trilinear"},
        is_plain=True,
    ),
    Sample("nn.functional.upsample", (leaf(1, 1, 2, 3),), {"scale_factor": 2}, is_plain=True),
    Sample("nn.functional.pixel_shuffle", (leaf(2, 4, 2, 3), 2), {}),
    Sample("nn.functional.pixel_unshuffle", (leaf(2, 1, 4, 2), 2), {}),
    Sample("nn.functional.channel_shuffle", (leaf(2, 4, 3), 2), {}),
    Sample(
        "nn.functional.grid_sample",
        (leaf(1, 2, 3, 4), leaf(1, 2, 2, 2, low=-0.9, high=0.9, seed=1)),
        {"align_corners": True},
    ),
    Sample(
        "nn.functional.grid_sample",
        (leaf(1, 8, 2, 2), leaf(1, 2, 1, 2, low=-1.4, high=1.4, seed=1)),
        {"align_corners": True},
        is_plain=True,
    ),
    Sample(
        "nn.functional.grid_sample",
        (leaf(1, 1, 3, 3), leaf(1, 2, 2, 2, seed=1)),
        {"mode": "bicubic", "padding_mode": "reflection"},
        is_plain=True,
    ),
    Sample(
        "nn.functional.grid_sample",
        (leaf(1, 1, 2, 3, 2), leaf(1, 1, 2, 1, 3, seed=1)),
        {"padding_mode": "border"},
        is_plain=True,
    ),
    Sample("nn.functional.affine_grid", (leaf(2, 2, 3), (2, 1, 2, 3)), {}),
    Sample("nn.functional.affine_grid", (leaf(1, 3, 4), (1, 1, 2, 1, 2)), {"align_corners": True}),
]
