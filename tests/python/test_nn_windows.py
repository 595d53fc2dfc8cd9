"""Convolutions, pooling and resampling: PyTorch's results and gradients, and its errors."""

from __future__ import annotations

import json
import pathlib

import nn_window_cases
import pytest

import genesis
from genesis.nn import functional

RECORDED = json.loads(pathlib.Path(__file__).with_name("nn_windows.json").read_text())
CASES = [*nn_window_cases.cases()]
TOLERANCE = {"float32": 2e-5, "float64": 1e-5, "bfloat16": 2e-2}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key.replace(" ", "_"))
def test_results_and_gradients_are_those_of_pytorch(case):
    found = nn_window_cases.run(case, genesis)
    expected = RECORDED[case.key]
    assert len(found) == len(expected)
    for (shape, values), (own_shape, own_values) in zip(found, expected, strict=True):
        assert shape == own_shape
        scale = max(1.0, *map(abs, own_values), shape and _count(shape) ** 0.5)
        for value, own in zip(values, own_values, strict=True):
            assert value == pytest.approx(own, abs=TOLERANCE[case.dtype] * scale)


def _count(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def test_every_case_is_recorded_once():
    keys = [case.key for case in CASES]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(RECORDED)


# ---- what windows are ----


def test_indices_of_maxima_and_the_way_back():
    x = genesis.tensor([[[1.0, 5.0, 2.0, 3.0], [0.0, 4.0, 9.0, 8.0]]])
    values, places = functional.max_pool2d(x, 2, return_indices=True)
    assert values.tolist() == [[[5.0, 9.0]]]
    assert places.tolist() == [[[1, 6]]]
    back = functional.max_unpool2d(values, places, 2, output_size=(2, 4))
    assert back.tolist() == [[[0.0, 5.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0]]]
    values, places = functional.adaptive_max_pool2d(x, (1, 2), return_indices=True)
    assert (values.tolist(), places.tolist()) == ([[[5.0, 9.0]]], [[[1, 6]]])


def test_the_first_of_equal_maxima_and_nan():
    x = genesis.tensor([[[2.0, 2.0, 2.0, float("nan"), 7.0, 1.0]]])
    values, places = functional.max_pool1d(x, 3, return_indices=True)
    assert places.tolist() == [[[0, 3]]]
    assert values[0, 0, 0].item() == 2.0
    assert values[0, 0, 1].isnan().item()


def test_integers_have_maxima():
    x = genesis.arange(16).reshape(1, 4, 4)
    assert functional.max_pool2d(x, 2).tolist() == [[[5, 7], [13, 15]]]


def test_infinite_padding_does_not_leak():
    x = genesis.full((1, 1, 3, 3), float("inf"))
    y = functional.conv2d(x, genesis.ones(1, 1, 3, 3), padding=1)
    assert y.isinf().all().item()
    columns = functional.unfold(x, 2, padding=1)
    assert not columns.isnan().any().item()
    folded = functional.fold(columns, (3, 3), 2, padding=1)
    assert folded.isinf().all().item()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_do_not_depend_on_images_beside(count):
    x = genesis.randn(5, 4, *[9] * count)
    w = genesis.randn(6, 2, *[3] * count)
    call = getattr(functional, f"conv{count}d")
    whole = call(x, w, groups=2, padding=1)
    one = call(x[2], w, groups=2, padding=1)
    assert genesis.allclose(whole[2], one, atol=1e-5)


def test_second_gradients():
    x = genesis.randn(2, 3, 5, 5, dtype=genesis.float64).requires_grad_()
    w = genesis.randn(4, 3, 3, 3, dtype=genesis.float64).requires_grad_()
    y = functional.conv2d(x, w, padding=1)
    (g,) = genesis.autograd.grad(y.square().sum(), x, create_graph=True)
    g.square().sum().backward()
    assert x.grad is not None
    assert w.grad is not None


# ---- errors ----

X = genesis.zeros(2, 4, 5, 5)
W = genesis.zeros(6, 4, 3, 3)

REFUSED = [
    ("conv2d", (genesis.zeros(5), W), {}, "expected 3D .unbatched. or 4D"),
    ("conv2d", (X, genesis.zeros(6, 4, 3)), {}, "needs 4 dimensions"),
    ("conv2d", (X, genesis.zeros(6, 3, 3, 3)), {}, "to have 3 channels, but got 4 channels"),
    (
        "conv2d",
        (X, genesis.zeros(5, 2, 3, 3)),
        {"groups": 2},
        "weight to be divisible by 2",
    ),
    ("conv2d", (X, W), {"groups": 0}, "groups is 0"),
    ("conv2d", (X, W, genesis.zeros(5)), {}, "1-dimensional with 6 elements"),
    ("conv2d", (X, W.double()), {}, "input type .float32. and weight type .float64."),
    ("conv2d", (X.long(), W.long()), {}, "the input is int64: convert it"),
    ("conv2d", (X, genesis.zeros(6, 4, 7, 3)), {}, "Kernel size can't be greater"),
    ("conv2d", (X, W), {"stride": 0}, "stride is 0: it must be from 1 to"),
    ("conv2d", (X, W), {"dilation": 0}, "dilation is 0"),
    ("conv2d", (X, W), {"padding": -1}, "padding is -1"),
    ("conv2d", (X, W), {"padding": (1, 1, 1)}, "padding has 3 numbers"),
    ("conv2d", (X, W), {"padding": ()}, "padding has 0 numbers"),
    ("conv2d", (X, W), {"padding": "full"}, "'same' or 'valid'"),
    ("conv2d", (X, W), {"padding": "same", "stride": 2}, "not supported for strided"),
    ("conv_transpose2d", (X, W), {}, "to have 6 channels, but got 4"),
    (
        "conv_transpose2d",
        (X, genesis.zeros(4, 2, 3, 3)),
        {"stride": 2, "output_padding": 2},
        "smaller than either stride or dilation",
    ),
    ("conv_transpose2d", (X, genesis.zeros(4, 2, 1, 1)), {"padding": 4}, "is too small"),
    ("unfold", (genesis.zeros(5, 5), 2), {}, "expected 3D or 4D"),
    ("unfold", (X, 6), {}, "does not fit"),
    ("fold", (genesis.zeros(1, 5, 4), (3, 3), 2), {}, "no multiple of the 4 elements"),
    ("fold", (genesis.zeros(1, 4, 5), (3, 3), 2), {}, "5 columns, and there are 4 windows"),
    ("max_pool2d", (X, 2), {"padding": 2}, "at most half of effective kernel size"),
    ("max_pool2d", (X, 6), {}, "Output size is too small"),
    ("max_pool2d", (genesis.zeros(2, 0, 3)[:, :, :0], 1), {}, "max_pool2d: "),
    ("max_pool2d", (X > 0, 2), {}, "not defined for bool"),
    ("avg_pool2d", (X, 2), {"divisor_override": 0}, "not zero"),
    ("avg_pool2d", (X.long(), 2), {}, "convert it to a floating type"),
    ("adaptive_avg_pool2d", (X, (1, 2, 3)), {}, "output_size has 3 numbers"),
    ("adaptive_avg_pool2d", (X, 0), {}, "output_size is 0"),
    ("lp_pool2d", (X, 0, 2), {}, "norm_type must not be 0"),
    ("max_unpool2d", (X, genesis.zeros(2, 4, 5, 5), 2), {}, "must be int64"),
    ("interpolate", (X,), {}, "only one of size or scale_factor"),
    ("interpolate", (X,), {"size": 3, "scale_factor": 2}, "only one of size or scale_factor"),
    ("interpolate", (X,), {"size": 3, "mode": "linear"}, "takes a 3D input"),
    ("interpolate", (X,), {"size": 3, "mode": "smooth"}, "is none of nearest"),
    ("interpolate", (X,), {"size": 3, "align_corners": True}, "align_corners option"),
    ("interpolate", (X,), {"scale_factor": 0}, "more than 0"),
    ("interpolate", (X,), {"scale_factor": (1, 2, 3)}, "scale_factor has 3 numbers"),
    ("interpolate", (X,), {"size": 3, "antialias": True}, "of the modes bilinear and bicubic"),
    ("grid_sample", (X, genesis.zeros(1, 2, 2, 2)), {}, "expected an input of 4 or 5"),
    ("grid_sample", (X, genesis.zeros(2, 2, 2, 2)), {"mode": "cubic"}, "is none of bilinear"),
    ("grid_sample", (X, genesis.zeros(2, 2, 2, 2)), {"padding_mode": "x"}, "is none of zeros"),
    ("grid_sample", (X, genesis.zeros(2, 2, 2, 2).double()), {}, "must have one floating type"),
    ("affine_grid", (genesis.zeros(2, 2, 3), (1, 1, 2, 2)), {}, "expected theta of shape"),
    ("affine_grid", (genesis.zeros(2, 2, 3), (2, 1, 0, 2)), {}, "from 1 on"),
    ("pixel_shuffle", (X, 3), {}, "no multiple"),
    ("pixel_unshuffle", (X, 2), {}, "no multiples"),
    ("channel_shuffle", (X, 3), {}, "no multiple"),
]


@pytest.mark.parametrize(("name", "arguments", "words", "message"), REFUSED)
def test_wrong_arguments(name, arguments, words, message):
    with pytest.raises((ValueError, TypeError, RuntimeError, NotImplementedError), match=message):
        getattr(functional, name)(*arguments, **words)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16])
def test_grid_sample_of_many_channels_is_that_of_few(mode, padding, dtype):
    """Many channels are rows that are added; few are taken one by one."""
    genesis.manual_seed(2)
    near = {genesis.float32: 2e-5, genesis.float64: 1e-12, genesis.bfloat16: 5e-2}[dtype]
    shapes = [((2, 12, 5, 7), (2, 6, 3, 2)), ((1, 9, 1, 4), (1, 1, 5, 2))]
    if mode != "bicubic":
        shapes.append(((2, 8, 3, 4, 2), (2, 3, 2, 5, 3)))
    for size, places in shapes:
        image = genesis.randn(*size).to(dtype).requires_grad_()
        grid = (genesis.rand(*places) * 3 - 1.5).to(dtype).requires_grad_()
        found = []
        for each in (size[1], 4):
            parts = [
                functional.grid_sample(one, grid, mode, padding, align_corners=False)
                for one in image.split(each, 1)
            ]
            made = genesis.cat(parts, 1)
            given = genesis.arange(made.numel()).reshape(made.shape).to(dtype) / made.numel()
            found.append([made.detach(), *genesis.autograd.grad(made, [image, grid], given)])
        for a, b in zip(*found, strict=True):
            assert a.dtype == b.dtype == dtype and a.shape == b.shape
            assert (a - b).abs().max() <= near * max(1, b.abs().max().item())


def test_grid_sample_of_coordinates_that_are_no_numbers():
    """Whatever comes of it, nothing outside of the image is read."""
    image = genesis.ones(2, 8, 3, 4)
    grid = genesis.full((2, 5, 7, 2), float("nan"))
    grid[:, :, ::2] = genesis.tensor([float("inf"), 0.5])
    grid[:, 0] = genesis.tensor([0.0, float("nan")])
    for padding in ("zeros", "border", "reflection"):
        for mode in ("bilinear", "bicubic"):
            made = functional.grid_sample(image, grid, mode, padding, align_corners=False)
            assert made.shape == (2, 8, 5, 7) and (made.isnan() | (made.abs() <= 1.01)).all()
    far = genesis.tensor([1e30, -1e30]).expand(2, 5, 7, 2)
    assert not functional.grid_sample(image, far, align_corners=False).any()
