"""Calls of the losses: test_nn_losses.py and record_nn_losses.py share them.

Arguments are drawn from a seed, so that only results are recorded.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy

C = "classes"


class Case(NamedTuple):
    """A call: tensors as (kind, shape, ...), others as they are."""

    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = {}
    dtype: str = "float32"
    is_strided: bool = False

    @property
    def key(self) -> str:
        """What a test is called by, and what its results are recorded as."""
        words = [self.name, *map(str, self.arguments)]
        words += [f"{name}={value}" for name, value in self.keywords.items()]
        words += [self.dtype] + ["strided"] * self.is_strided
        return " ".join(words).replace("'", "").replace(", ", ",")


def x(*shape: int) -> tuple:
    """Normal numbers, which get a gradient."""
    return ("normal", shape)


def near(low: float, high: float, *shape: int) -> tuple:
    """Numbers between two, which get a gradient."""
    return ("uniform", shape, low, high)


def fixed(low: float, high: float, *shape: int) -> tuple:
    """The same without a gradient."""
    return ("fixed", shape, low, high)


def classes(count: int, *shape: int) -> tuple:
    """Numbers of classes."""
    return (C, shape, count)


def signs(*shape: int) -> tuple:
    """-1 or 1."""
    return ("signs", shape)


def distribution(*shape: int) -> tuple:
    """Probabilities: dimension 1, or the only one, adds up to 1."""
    return ("distribution", shape)


def is_tensor(value: Any) -> bool:
    """Whether an argument describes a tensor."""
    return isinstance(value, tuple) and len(value) > 1 and isinstance(value[0], str)


def draw(case: Case, number: int, spec: tuple) -> numpy.ndarray:
    """The numbers of an argument."""
    seed = zlib.crc32(f"{case.name} {number} {spec}".encode())
    rng = numpy.random.default_rng(seed)
    kind, shape = spec[0], spec[1]
    if kind == "normal":
        return rng.standard_normal(shape)
    if kind in ("uniform", "fixed"):
        return rng.uniform(spec[2], spec[3], shape)
    if kind == C:
        return numpy.asarray(rng.integers(0, spec[2], shape))
    if kind == "signs":
        return numpy.asarray(2.0 * rng.integers(0, 2, shape) - 1)
    powers = numpy.exp(rng.standard_normal(shape))
    return powers / powers.sum(1 if len(shape) > 1 else 0, keepdims=True)


def make(case: Case, module: Any) -> tuple[list[Any], dict[str, Any], list[Any]]:
    """The arguments for torch or genesis, and those that need a gradient."""
    leaves = []

    def one(number: int, spec: Any) -> Any:
        if not is_tensor(spec):
            return spec
        values = draw(case, number, spec)
        is_integer = spec[0] == C
        made = module.tensor(values.tolist(), dtype=module.int64 if is_integer else module.float64)
        made = made.reshape(spec[1])
        if not is_integer:
            made = made.to(getattr(module, case.dtype))
        if case.is_strided and len(spec[1]) > 0:
            made = module.stack([made, made], -1)[..., 1]
        made = made.detach()
        if spec[0] in ("normal", "uniform", "distribution"):
            made.requires_grad_()
            leaves.append(made)
        return made

    given = [one(i, spec) for i, spec in enumerate(case.arguments)]
    words = {name: one(100 + i, spec) for i, (name, spec) in enumerate(case.keywords.items())}
    return given, words, leaves


def run(case: Case, module: Any) -> list[Any]:
    """The result, and the gradient of each leaf for 1, 2, 3 ... as the result's."""
    given, words, leaves = make(case, module)
    result = getattr(module.nn.functional, case.name)(*given, **words)
    weights = module.arange(1, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
    result.backward(weights)
    return [result.detach(), *[leaf.grad for leaf in leaves]]


REDUCTIONS = ("none", "mean", "sum")
W4, W5 = fixed(0.2, 2, 4), fixed(0.2, 2, 5)


def cases() -> list[Case]:
    """All of them."""
    made: list[Case] = []

    def add(name: str, *arguments: Any, dtype: str = "float32", is_strided: bool = False,
            **keywords: Any) -> None:  # fmt: skip
        made.append(Case(name, arguments, keywords, dtype, is_strided))

    index, odd = classes(5, 7), classes(5, 3, 2, 4)
    for reduction in REDUCTIONS:
        add("cross_entropy", x(7, 5), index, reduction=reduction)
        add("cross_entropy", x(7, 5), index, weight=W5, ignore_index=2, reduction=reduction)
        add("cross_entropy", x(7, 5), index, weight=W5, ignore_index=2, reduction=reduction,
            label_smoothing=0.3)  # fmt: skip
        add("cross_entropy", x(7, 5), distribution(7, 5), reduction=reduction)
        add("cross_entropy", x(3, 5, 2, 4), odd, reduction=reduction, weight=W5)
        add("nll_loss", x(7, 5), index, weight=W5, ignore_index=2, reduction=reduction)
    add("cross_entropy", x(7, 5), index, label_smoothing=1.0)
    add("cross_entropy", x(7, 5), index, None, False)
    add("cross_entropy", x(7, 5), index, None, None, -100, False)
    add("cross_entropy", x(3, 5, 2, 4), odd, label_smoothing=0.2, ignore_index=1)
    add("cross_entropy", x(3, 5, 4), distribution(3, 5, 4), weight=W5, label_smoothing=0.1)
    add("cross_entropy", x(5), classes(5), weight=W5, label_smoothing=0.1)
    add("cross_entropy", x(5), distribution(5))
    add("cross_entropy", x(0, 5), classes(5, 0), reduction="sum")
    add("cross_entropy", x(0, 5), classes(5, 0))
    add("cross_entropy", x(2, 150), classes(150, 2))
    add("cross_entropy", x(7, 5), classes(1, 7), ignore_index=0)
    for dtype in ("bfloat16", "float16", "float64"):
        add("cross_entropy", x(7, 5), index, weight=W5, label_smoothing=0.1, dtype=dtype)
        add("cross_entropy", x(7, 5), index, ignore_index=1, dtype=dtype)
        add("cross_entropy", x(7, 5), distribution(7, 5), dtype=dtype)
        add("nll_loss", x(7, 5), index, dtype=dtype)
    add("cross_entropy", x(7, 5), index, is_strided=True)
    add("cross_entropy", x(3, 5, 2, 4), odd, is_strided=True)
    add("nll_loss", x(3, 5, 2, 4), odd)
    add("nll_loss", x(5), classes(5))
    add("nll_loss", x(0, 5), classes(5, 0))
    add("nll_loss", x(7, 5), index, is_strided=True)

    pairs: dict[str, tuple[tuple, tuple, dict[str, Any]]] = {
        "mse_loss": (x(3, 4), x(3, 4), {}),
        "l1_loss": (x(3, 4), x(3, 4), {}),
        "smooth_l1_loss": (x(3, 4), x(3, 4), {"beta": 0.5}),
        "huber_loss": (x(3, 4), x(3, 4), {"delta": 0.7}),
        "binary_cross_entropy": (near(0.05, 0.95, 3, 4), near(0, 1, 3, 4), {}),
        "binary_cross_entropy_with_logits": (x(3, 4), near(0, 1, 3, 4), {"pos_weight": W4}),
        "soft_margin_loss": (x(3, 4), signs(3, 4), {}),
        "kl_div": (x(3, 4), distribution(3, 4), {}),
        "poisson_nll_loss": (x(3, 4), fixed(0, 4, 3, 4), {"full": True}),
        "hinge_embedding_loss": (x(3, 4), signs(3, 4), {"margin": 0.6}),
        "multilabel_soft_margin_loss": (x(3, 4), fixed(0, 1, 3, 4), {"weight": W4}),
    }
    for name, (first, second, words) in pairs.items():
        for reduction in REDUCTIONS:
            add(name, first, second, reduction=reduction, **words)
        if name not in (
            "smooth_l1_loss",
            "binary_cross_entropy_with_logits",
            "multilabel_soft_margin_loss",
        ):
            add(name, first, second)
        add(name, first, second, dtype="bfloat16")
        add(name, first, second, is_strided=True)
        empty = [(one[0], (0, 4), *one[2:]) for one in (first, second)]
        add(name, *empty, reduction="sum")
    whole = fixed(0.2, 2, 3, 4)
    for reduction in REDUCTIONS:
        add("mse_loss", x(3, 4), x(3, 4), weight=whole, reduction=reduction)
        add("l1_loss", x(3, 4), x(3, 4), weight=whole, reduction=reduction)
        add("huber_loss", x(3, 4), x(3, 4), weight=whole, reduction=reduction)
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        add(name, x(3, 4), x(4))
        add(name, x(), x())
    add("smooth_l1_loss", x(3, 4), x(3, 4), beta=0)
    add("binary_cross_entropy", near(0.05, 0.95, 3, 4), near(0, 1, 3, 4), weight=W4)
    add("binary_cross_entropy", near(0, 0, 4), fixed(0, 0, 4))
    add("binary_cross_entropy", near(0, 0, 4), fixed(1, 1, 4))
    add("binary_cross_entropy_with_logits", x(3, 4), near(0, 1, 3, 4), weight=W4)
    add("kl_div", x(3, 4), distribution(3, 4), reduction="batchmean")
    add("kl_div", x(3, 4), x(3, 4), reduction="batchmean", log_target=True)
    add("kl_div", x(3, 4), fixed(0, 0, 3, 4))
    add("poisson_nll_loss", near(0.1, 3, 3, 4), fixed(0, 4, 3, 4), log_input=False, eps=0.01)
    for var in (near(0.1, 2, 3, 4), near(0.1, 2, 3), near(0.1, 2, 3, 1), 0.4):
        add("gaussian_nll_loss", x(3, 4), x(3, 4), var)
    for reduction in REDUCTIONS:
        add("gaussian_nll_loss", x(3, 4), x(3, 4), near(0.1, 2, 3, 4), full=True, eps=0.5,
            reduction=reduction)  # fmt: skip
        add("cosine_embedding_loss", x(5, 4), x(5, 4), signs(5), margin=0.2, reduction=reduction)
        add("margin_ranking_loss", x(5), x(5), signs(5), margin=0.2, reduction=reduction)
        add("triplet_margin_loss", x(5, 4), x(5, 4), x(5, 4), margin=0.8, swap=True,
            reduction=reduction)  # fmt: skip
        add("multi_margin_loss", x(7, 5), index, weight=W5, reduction=reduction)
    add("cosine_embedding_loss", x(4), x(4), signs())
    add("cosine_embedding_loss", x(5, 4), x(5, 4), signs(5), dtype="bfloat16")
    add("margin_ranking_loss", x(3, 4), x(3, 4), signs(3, 4), is_strided=True)
    for p in (1, 2, 3, float("inf")):
        add("triplet_margin_loss", x(5, 4), x(5, 4), x(5, 4), p=p, eps=0.001)
    add("triplet_margin_loss", x(4), x(4), x(4))
    add("triplet_margin_loss", x(5, 4), x(5, 4), x(5, 4), dtype="bfloat16")
    add("multi_margin_loss", x(7, 5), index, p=2, margin=0.5)
    add("multi_margin_loss", x(5), classes(5))
    return made
