"""Samples of functions of elements: operands are tensors, broadcast ones too, and numbers."""

from __future__ import annotations

from typing import Any

from gradient_sample import Leaf, Sample, leaf

import genesis

ANY = (-1.6, 1.7)
POSITIVE = (0.2, 2.1)
INSIDE = (-0.9, 0.9)


def each(names: str, value: Any) -> dict[str, Any]:
    """The same for several names."""
    return dict.fromkeys(names.split(), value)


# Functions of one operand, and where they have a slope.
ONE: dict[str, tuple[float, float]] = {
    **each(
        """neg abs sign square floor ceil round trunc exp exp2 expm1 sin cos sinh cosh tanh asinh
        atan erf erfc sinc sigmoid relu leaky_relu elu celu selu gelu silu mish softplus logsigmoid
        hardtanh frac deg2rad rad2deg nan_to_num""",
        ANY,
    ),
    **each("sqrt rsqrt log log2 log10 reciprocal", POSITIVE),
    **each("asin acos atanh erfinv", INSIDE),
    "tan": (-1.2, 1.2),
    "log1p": (-0.8, 2.0),
    "acosh": (1.2, 3.0),
    "logit": (0.1, 0.9),
    "lgamma": (0.3, 3.0),
    "digamma": (0.3, 3.0),
    "relu6": (-2.0, 8.0),
    "hardswish": (-4.5, 4.5),
}

# Of two and three operands: ranges of each, and the numbers that stand for all but the first.
TWO: dict[str, tuple[tuple[float, float], tuple[float, float], float]] = {
    **each("add sub mul maximum minimum fmax fmin copysign nextafter", (ANY, ANY, 0.7)),
    "div": (ANY, POSITIVE, 1.5),
    "remainder": (ANY, (0.4, 0.9), 0.7),
    "fmod": (ANY, (0.4, 0.9), 0.7),
    "floor_divide": (ANY, (0.4, 0.9), 0.7),
    "pow": (POSITIVE, ANY, 1.5),
    "float_power": (POSITIVE, ANY, 1.5),
    "ldexp": (ANY, ANY, 2.0),
    "logaddexp": (ANY, ANY, 0.3),
    "logaddexp2": (ANY, ANY, 0.3),
    "xlogy": (ANY, POSITIVE, 1.3),
    "atan2": (ANY, POSITIVE, 1.3),
    "hypot": (ANY, POSITIVE, 1.3),
    "clamp_min": (ANY, ANY, 0.25),
    "clamp_max": (ANY, ANY, 0.25),
}
THREE = {
    "lerp": (ANY, ANY, (0.1, 0.9)),
    "clamp": (ANY, (-1.5, -0.2), (0.2, 1.5)),
    "addcmul": (ANY, ANY, ANY),
    "addcdiv": (ANY, ANY, POSITIVE),
}

# Shapes of one, two and three operands.
SHAPES_OF_ONE = [(2, 3), (), (0, 3), (5,)]
SHAPES_OF_TWO = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((2, 0), (2, 1)),
                 ((), ())]  # fmt: skip
SHAPES_OF_THREE = [((2, 3), (2, 3), (2, 3)), ((2, 2), (2,), (2, 1)), ((), (), ()), ((0,), (1,), ())]


def many(
    name: str, shapes: list, ranges: tuple, keywords: dict[str, Any] | None = None, label: str = ""
) -> list[Sample]:
    """A function with operands of these shapes and ranges."""
    made = []
    for sizes in shapes:
        operands = [
            Leaf(shape, *own, seed)
            for seed, (shape, own) in enumerate(zip(sizes, ranges, strict=True))
        ]
        made.append(Sample(name, tuple(operands), keywords or {}, label=label))
    return made


def one(name: str, low: float, high: float, label: str = "", **keywords: Any) -> list[Sample]:
    """A function of one operand, with options."""
    return many(name, [(shape,) for shape in SHAPES_OF_ONE[:2]], ((low, high),), keywords, label)


def mixed(name: str, *arguments: Any, label: str = "a number", **keywords: Any) -> Sample:
    """A call in which some operands are numbers."""
    return Sample(name, arguments, keywords, label=label)


MASK = genesis.tensor([[True, False, True], [False, True, True]])
X, Y, Z = leaf(2, 3), leaf(2, 3, seed=1), leaf(2, 3, seed=2)
ABOVE, BELOW = leaf(2, 3, low=0.1, high=1.5), leaf(2, 3, low=-2.9, high=-2.1)

SAMPLES: list[Sample] = [
    *(x for name, own in ONE.items() for x in many(name, [(s,) for s in SHAPES_OF_ONE], (own,))),
    *(x for name, own in TWO.items() for x in many(name, SHAPES_OF_TWO, own[:2])),
    *(mixed(name, Leaf((2, 3), *own[0]), own[2]) for name, own in TWO.items()),
    *(x for name, own in THREE.items() for x in many(name, SHAPES_OF_THREE, own)),
    # A number on the left, where a function takes one.
    *(
        mixed(name, own[2], Leaf((2, 3), *own[1]), label="a number on the left")
        for name, own in TWO.items()
        if name not in ("clamp_min", "clamp_max", "fmax", "fmin", "copysign")
    ),
    # Options.
    *one("add", *ANY, label="twice", other=2),
    mixed("add", X, Y, label="alpha", alpha=3),
    mixed("sub", X, Y, label="alpha", alpha=0.5),
    mixed("div", X, Leaf((2, 3), *POSITIVE, 1), label="trunc", rounding_mode="trunc"),
    mixed("div", X, Leaf((2, 3), *POSITIVE, 1), label="floor", rounding_mode="floor"),
    mixed("round", X, label="decimals", decimals=1),
    mixed("gelu", X, label="tanh", approximate="tanh"),
    mixed("nan_to_num", X, label="numbers", nan=1.0, posinf=2.0),
    mixed("leaky_relu", X, 0.2),
    mixed("leaky_relu", X, ABOVE, label="a tensor"),
    mixed("elu", X, 0.7),
    mixed("elu", X, ABOVE, label="a tensor"),
    mixed("celu", X, 0.7),
    mixed("celu", X, ABOVE, label="a tensor"),
    mixed("softplus", X, 2.0),
    mixed("softplus", X, ABOVE, 1.0, label="a tensor"),
    mixed("hardtanh", X, -0.5, 0.8),
    mixed("logit", leaf(2, 3, low=0.02, high=0.98), 0.2),
    mixed("logit", leaf(2, 3, low=0.02, high=0.98), leaf(2, 3, low=0.05, high=0.3), label="eps"),
    mixed("lgamma", BELOW, label="below 0"),
    mixed("digamma", BELOW, label="below 0"),
    mixed("digamma", leaf(2, 3, low=-0.9, high=-0.1), label="next to 0"),
    Sample("Tensor.polygamma", (ABOVE,), {}, lambda x: x.polygamma(2)),
    Sample("Tensor.polygamma_", (ABOVE,), {}, lambda x: (x * 1).polygamma_(1)),
    mixed("reciprocal", leaf(2, 3, low=-2.0, high=-0.3), label="below 0"),
    *(mixed("polygamma", n, leaf(2, 3, low=0.3, high=3.0), label="") for n in (0, 1, 3)),
    mixed("polygamma", 2, BELOW, label="below 0"),
    mixed("pow", X, 3, label="a whole number"),
    mixed("pow", X, 2, label="2"),
    mixed("pow", X, 1, label="1"),
    mixed("pow", X, 0, label="0"),
    mixed("pow", ABOVE, -0.5, label="-0.5"),
    mixed("pow", ABOVE, 0.5, label="0.5"),
    mixed("pow", 2.0, X, label="a base"),
    mixed("lerp", X, Y, 0.3),
    mixed("lerp", X, Y, 0.8, label="another number"),
    mixed("clamp", X, -0.4, 0.6),
    mixed("clamp", X, -0.4),
    mixed("clamp", X, label="above", max=0.4),
    mixed("addcmul", X, Y, Z, label="value", value=2),
    mixed("addcdiv", X, Y, ABOVE, label="value", value=2),
    mixed("where", MASK, X, Y, label="tensors"),
    mixed("where", MASK, X, 2.0),
    mixed("where", MASK, 2.0, X),
    mixed("where", MASK, X, leaf(3, seed=1), label="broadcast"),
    Sample("Tensor.where", (X, Y), {}, lambda x, y: x.where(MASK.to(x.device), y)),
    # A tensor that is both operands.
    *(
        Sample(name, (ABOVE,), {}, lambda x, name=name: getattr(genesis, name)(x, x), "of itself")
        for name in ("add", "sub", "mul", "div", "pow", "hypot", "maximum", "xlogy")
    ),
]

# ---- operators ----

OPERATORS: dict[str, Any] = {
    "__abs__": (lambda x: abs(x), X),
    "__neg__": (lambda x: -x, X),
    "__pos__": (lambda x: +x, X),
    "__add__": (lambda x, y: x + y, X, Y),
    "__radd__": (lambda x: 2 + x, X),
    "__sub__": (lambda x, y: x - y, X, Y),
    "__rsub__": (lambda x: 2 - x, X),
    "__mul__": (lambda x, y: x * y, X, Y),
    "__rmul__": (lambda x: 2 * x, X),
    "__truediv__": (lambda x, y: x / y, X, ABOVE),
    "__rtruediv__": (lambda x: 2 / x, ABOVE),
    "__mod__": (lambda x, y: x % y, X, ABOVE),
    "__rmod__": (lambda x: 2 % x, ABOVE),
    "__floordiv__": (lambda x, y: x // y, X, ABOVE),
    "__rfloordiv__": (lambda x: 2 // x, ABOVE),
    "__pow__": (lambda x, y: x**y, ABOVE, Y),
    "__rpow__": (lambda x: 2**x, X),
    "__matmul__": (lambda x, y: x @ y, X, leaf(3, 2, seed=1)),
    "__rmatmul__": (lambda x, y: x.__rmatmul__(y), leaf(3, 2), leaf(2, 3, seed=1)),
}


def _in_place(name: str) -> Any:
    def call(x: Any, y: Any) -> Any:
        made = x.clone()
        return getattr(made, name)(y)

    return call


SAMPLES += [
    Sample(f"Tensor.{name}", tuple(arguments), {}, call)
    for name, (call, *arguments) in OPERATORS.items()
]
SAMPLES += [
    Sample(f"Tensor.{name}", (ABOVE, leaf(2, 3, low=0.2, high=0.9, seed=1)), {}, _in_place(name))
    for name in (
        "__iadd__",
        "__isub__",
        "__imul__",
        "__itruediv__",
        "__imod__",
        "__ipow__",
        "__ifloordiv__",
    )
]
