"""Calls of convolutions, pooling and resampling that test_nn_windows.py compares with PyTorch.

A case is a call with a library's names; what it gives is kept as a few sums with fixed weights, of
the result and of each gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SUMS = 4  # of each tensor


class Case(NamedTuple):
    """A function, the shapes of its tensors (None: left out), and the other arguments."""

    name: str
    shapes: tuple[tuple[int, ...] | None, ...]
    rest: tuple[Any, ...] = ()
    words: dict[str, Any] = {}  # noqa: RUF012
    dtype: str = "float32"
    layout: str = ""  # of the first tensor: "strided" or "channels last"

    @property
    def key(self) -> str:
        """What it is recorded by."""
        words = ",".join(f"{name}={value}" for name, value in self.words.items())
        shapes = ",".join("x".join(map(str, one or "-")) for one in self.shapes)
        rest = ",".join(map(str, self.rest))
        return " ".join([self.name, shapes, rest, words, self.dtype, self.layout]).strip()


def convolutions() -> Iterator[Case]:
    """A grid of strides, paddings, dilations and groups, and what is particular."""
    for stride in (1, 2, 3):
        for padding in (0, 1, 2):
            for dilation in (1, 2):
                for groups in (1, 2):
                    words = {
                        "stride": stride,
                        "padding": padding,
                        "dilation": dilation,
                        "groups": groups,
                    }
                    bias = (4,) if padding else None
                    yield Case("conv2d", ((2, 4, 9, 7), (4, 4 // groups, 3, 2), bias), (), words)
                    if padding <= dilation:
                        yield Case(
                            "conv_transpose2d",
                            ((2, 4, 5, 4), (4, 4 // groups, 3, 2), bias),
                            (),
                            words | {"output_padding": min(1, max(stride, dilation) - 1)},
                        )
    for shapes, words in [
        (((2, 3, 11), (5, 3, 4), (5,)), {"padding": "same", "dilation": 2}),
        (((3, 11), (5, 3, 4), (5,)), {"stride": 2}),
        (((2, 6, 17), (6, 1, 3), None), {"padding": 1, "groups": 6}),
        (((1, 1, 300), (2, 1, 25), (2,)), {"stride": 5}),
        (((0, 3, 5), (2, 3, 3), (2,)), {}),
    ]:
        yield Case("conv1d", shapes, (), words)
    for shapes, words in [
        (((3, 5, 6), (2, 3, 3, 3), (2,)), {"padding": "same"}),
        (((1, 70, 4, 5), (9, 70, 1, 1), (9,)), {}),
        (((1, 70, 5, 5), (9, 70, 1, 1), None), {"stride": 2}),
        (((2, 6, 8, 7), (12, 1, 3, 3), (12,)), {"stride": 2, "padding": 1, "groups": 6}),
        (((5, 2, 1, 1), (3, 2, 3, 3), None), {"padding": 1}),
        (((1, 3, 40, 37), (5, 3, 7, 7), None), {"stride": 2, "padding": 3}),
        (((0, 2, 5, 5), (3, 2, 3, 3), (3,)), {}),
    ]:
        yield Case("conv2d", shapes, (), words)
        yield Case("conv2d", shapes, (), words, "bfloat16")
        if len(shapes[0]) == 4:
            yield Case("conv2d", shapes, (), words, "float64", "strided")
            yield Case("conv2d", shapes, (), words, "float32", "channels last")
    for words in ({}, {"stride": (1, 2, 2), "padding": (1, 0, 1)}, {"dilation": 2, "groups": 2}):
        groups = words.get("groups", 1)
        yield Case("conv3d", ((2, 4, 5, 4, 5), (4, 4 // groups, 2, 2, 3), (4,)), (), words)
        yield Case(
            "conv_transpose3d", ((2, 4, 3, 2, 3), (4, 4 // groups, 2, 2, 3), (4,)), (), words
        )
    yield Case("conv_transpose1d", ((2, 3, 6), (3, 2, 4), (2,)), (), {"stride": 3, "padding": 1})
    yield Case("conv_transpose1d", ((3, 6), (3, 2, 4), None), (), {}, "bfloat16")
    yield Case("unfold", ((2, 3, 6, 5),), ((3, 2),), {"padding": 1, "stride": (2, 1)})
    yield Case("unfold", ((3, 6, 5),), (2,), {"dilation": 2}, "bfloat16")
    yield Case("fold", ((2, 12, 15),), ((4, 6), (2, 2)), {})
    yield Case("fold", ((2, 12, 16),), ((7, 6), 2), {"padding": 1, "stride": 2}, "float64")


def pools() -> Iterator[Case]:
    """Windows of every kind."""
    for words in (
        {},
        {"stride": 1},
        {"stride": 2, "padding": 1},
        {"stride": (3, 2), "padding": (1, 0), "ceil_mode": True},
        {"stride": 2, "ceil_mode": True},
    ):
        for dtype in ("float32", "bfloat16"):
            yield Case("max_pool2d", ((2, 3, 8, 7),), ((3, 2),), words, dtype)
            yield Case("avg_pool2d", ((2, 3, 8, 7),), ((3, 2),), words, dtype)
        yield Case("avg_pool2d", ((2, 3, 8, 7),), ((3, 2),), words | {"count_include_pad": False})
        yield Case("avg_pool2d", ((3, 8, 7),), ((3, 2),), words | {"divisor_override": 5})
        yield Case("max_pool2d", ((2, 3, 8, 7),), ((3, 2),), words, "float64", "strided")
    yield Case("max_pool2d", ((1, 2, 9, 9),), (3,), {"dilation": 2, "padding": 1})
    yield Case("max_pool1d", ((2, 3, 300),), (5,), {"stride": 2, "padding": 2})
    yield Case("max_pool1d", ((3, 9),), (2,), {})
    yield Case("max_pool3d", ((1, 2, 5, 4, 6),), (2,), {"stride": (2, 1, 2), "padding": 1})
    yield Case("avg_pool1d", ((2, 3, 11),), (4,), {"stride": 3, "padding": 2, "ceil_mode": True})
    yield Case("avg_pool3d", ((1, 2, 5, 4, 6),), (2,), {"stride": (2, 1, 2), "padding": 1})
    for kind in ("avg", "max"):
        yield Case(f"adaptive_{kind}_pool1d", ((2, 3, 11),), (4,))
        yield Case(f"adaptive_{kind}_pool2d", ((2, 3, 7, 8),), ((3, 5),))
        yield Case(f"adaptive_{kind}_pool2d", ((2, 3, 6, 8),), ((3, 4),), {}, "bfloat16")
        yield Case(f"adaptive_{kind}_pool2d", ((3, 6, 8),), (1,))
        yield Case(f"adaptive_{kind}_pool2d", ((2, 3, 2, 3),), ((5, 7),))
        yield Case(f"adaptive_{kind}_pool3d", ((2, 3, 4, 5, 6),), ((2, 3, 6),))
    yield Case("lp_pool1d", ((2, 3, 9),), (2, 3), {"stride": 2})
    yield Case("lp_pool2d", ((2, 3, 6, 7),), (2, (3, 2)), {"ceil_mode": True})
    yield Case("lp_pool3d", ((2, 3, 4, 4, 5),), (2, 2))


def images() -> Iterator[Case]:
    """Resampling, and channels in other orders."""
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}
    for count in (1, 2, 3):
        shape = (2, 3, *(5, 4, 6)[:count])
        for size in ({"size": (7, 3, 6)[:count]}, {"scale_factor": 1.7}, {"scale_factor": 0.6}):
            for mode in ("nearest", "nearest-exact", "area"):
                yield Case("interpolate", (shape,), (), size | {"mode": mode})
            modes = [linear[count], *(["bicubic"] if count == 2 else [])]
            for mode in modes:
                for corners in (True, False):
                    words = size | {"mode": mode, "align_corners": corners}
                    yield Case("interpolate", (shape,), (), words)
    words = {"scale_factor": (1.3, 2.6), "mode": "bilinear", "recompute_scale_factor": True}
    yield Case("interpolate", ((2, 3, 5, 4),), (), words)
    yield Case("interpolate", ((2, 3, 5, 4),), (), {"size": 8, "mode": "bilinear"}, "bfloat16")
    yield Case("interpolate", ((2, 3, 5, 4),), (), {"size": 8, "mode": "bicubic"}, "float64")
    yield Case("pixel_shuffle", ((2, 3, 18, 2, 4),), (3,))
    yield Case("pixel_unshuffle", ((2, 3, 4, 6),), (2,))
    yield Case("channel_shuffle", ((2, 6, 4, 3),), (3,))


def grids() -> Iterator[Case]:
    """Images at other places."""
    for padding in ("zeros", "border", "reflection"):
        for corners in (True, False):
            for mode in ("bilinear", "nearest", "bicubic"):
                words = {"mode": mode, "padding_mode": padding, "align_corners": corners}
                yield Case("grid_sample", ((2, 3, 4, 5), (2, 3, 4, 2)), (), words)
                if mode != "bicubic":
                    yield Case("grid_sample", ((1, 2, 3, 4, 3), (1, 2, 3, 2, 3)), (), words)
    yield Case("grid_sample", ((2, 3, 4, 5), (2, 3, 4, 2)), (), {}, "bfloat16")
    for corners in (True, False):
        yield Case("affine_grid", ((2, 2, 3),), ((2, 3, 4, 5),), {"align_corners": corners})
        yield Case("affine_grid", ((2, 3, 4),), ((2, 3, 1, 4, 5),), {"align_corners": corners})


def cases() -> Iterator[Case]:
    """All of them."""
    yield from convolutions()
    yield from pools()
    yield from images()
    yield from grids()


def numbers(library: Any, shape: tuple[int, ...], seed: int, device: str) -> Any:
    """Numbers that every type has, in float64."""
    count = 1
    for size in shape:
        count *= size
    listed = [((37 * i + 29 * seed + i // 101) % 101 - 50) / 32 for i in range(count)]
    return library.tensor(listed, dtype=library.float64, device=device).reshape(shape)


def laid_out(x: Any, layout: str) -> Any:
    """The same elements in another order in memory."""
    if layout == "strided":
        return x.repeat_interleave(2, -1)[..., ::2]
    if layout == "channels last":
        return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    return x


def sums(library: Any, x: Any) -> tuple[list[int], list[float]]:
    """The shape of a tensor, and sums of its elements with weights."""
    flat = x.detach().cpu().to(library.float64).reshape(-1)
    places = library.arange(flat.numel(), dtype=library.float64)
    weights = [((places * step) % 23 - 11) / 11 for step in (1, 5, 7, 10)[:SUMS]]
    return list(x.shape), [float((flat * one).sum()) for one in weights]


def run(case: Case, library: Any, device: str = "cpu") -> list[tuple[list[int], list[float]]]:
    """The result and the gradients."""
    dtype = getattr(library, case.dtype)
    leaves: list[Any] = []
    for seed, shape in enumerate(case.shapes):
        if shape is None:
            leaves.append(None)
            continue
        x = numbers(library, shape, seed, device)
        if case.name.startswith("lp_pool"):
            x = x.abs() + 0.25
        leaves.append(laid_out(x.to(dtype), case.layout if seed == 0 else "").requires_grad_())
    call = getattr(library.nn.functional, case.name)
    made = call(*leaves, *case.rest, **case.words)
    made.backward(numbers(library, tuple(made.shape), 7, device).to(dtype))
    return [sums(library, one) for one in [made, *(x.grad for x in leaves if x is not None)]]
