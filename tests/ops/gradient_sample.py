"""A sample: a function of genesis, and arguments for which its gradient is checked.

Floating arguments are leaves of float64, given by a shape and a range. A sample is called in
several *forms* (a function, a method, in place, in place to a view) and with leaves in several
*layouts*: as they are, or as views of larger or smaller leaves. All samples are in
gradient_samples.py.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import genesis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOLDEN = 0.6180339887498949
LAYOUTS = ("plain", "transposed", "strided", "expanded")


class Leaf(NamedTuple):
    """A floating argument: numbers of a range, none of which is there twice."""

    shape: tuple[int, ...]
    low: float = -1.6
    high: float = 1.7
    seed: int = 0


def leaf(*shape: int, low: float = -1.6, high: float = 1.7, seed: int = 0) -> Leaf:
    """The same with the shape as numbers."""
    return Leaf(shape, low, high, seed)


class Sample(NamedTuple):
    """One call.

    `name` is that of the function, and of the method if there is one, or ``nn.functional.name``;
    with `call`, which is called instead of them, it may be ``Tensor.name``. `is_tied`: equal
    elements are allowed, which an expanded leaf has. `is_plain`: no other layouts.
    """

    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    call: Callable[..., Any] | None = None
    label: str = ""
    is_tied: bool = True
    is_plain: bool = False

    def __str__(self) -> str:
        """What tests are called by."""
        parts = [self.label] if self.label else []
        for one in [*self.arguments, *self.keywords.values()]:
            shapes = [list(each.shape) for each in leaves_of(one)]
            if shapes or isinstance(one, int | float | str):
                parts.append("+".join(map(str, shapes)) or str(one))
        return " ".join([self.name, *parts]).replace(", ", ",").replace(" ", "_")


def leaves_of(value: Any) -> Iterator[Leaf]:
    """The leaves among arguments, and in lists of them."""
    if isinstance(value, Leaf):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from leaves_of(one)


def replaced(value: Any, call: Callable[[Any], Any]) -> Any:
    """Arguments with each leaf and tensor replaced by what a function gives for it."""
    if isinstance(value, Leaf | genesis.Tensor):
        return call(value)
    if isinstance(value, tuple | list):
        return type(value)(replaced(one, call) for one in value)
    return value


# ---- layouts ----


def base_shape(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """The shape of the leaf whose view has a shape."""
    if layout == "transposed":
        return shape[::-1]
    if layout == "strided":
        return tuple(2 * size + 1 for size in shape)
    if layout == "expanded":
        return (1, *shape[1:])
    return shape


def view_of(base: genesis.Tensor, shape: tuple[int, ...], layout: str) -> genesis.Tensor:
    """The view."""
    if layout == "transposed":
        return base.permute(tuple(range(len(shape)))[::-1])
    if layout == "strided":
        return base[tuple(slice(1, None, 2) for _ in shape)]
    if layout == "expanded":
        return base.expand(shape)
    return base


def layouts_of(sample: Sample) -> list[str]:
    """Those that differ for a sample."""
    shapes = [one.shape for one in leaves_of(sample.arguments)]
    made = ["plain"]
    if sample.is_plain:
        return made
    if any(len(shape) > 1 for shape in shapes):
        made.append("transposed")
    if any(shapes):
        made.append("strided")
    if sample.is_tied and any(shape and shape[0] > 1 for shape in shapes):
        made.append("expanded")
    return made


def values_of(one: Leaf, shape: tuple[int, ...], device: str, dtype: Any) -> genesis.Tensor:
    """A new leaf."""
    count = 1
    for size in shape:
        count *= size
    numbers = [
        one.low + (one.high - one.low) * ((0.31 * (one.seed + 1) + GOLDEN * (i + 1)) % 1)
        for i in range(count)
    ]
    made = genesis.tensor(numbers, dtype=dtype).reshape(shape).to(device)
    return made.detach().requires_grad_()


# ---- forms ----


def written(x: genesis.Tensor, name: str, rest: tuple[Any, ...], keywords: dict) -> Any:
    """A method in place, on a copy."""
    made = x.clone()
    getattr(made, name)(*rest, **keywords)
    return made


def written_view(x: genesis.Tensor, name: str, rest: tuple[Any, ...], keywords: dict) -> Any:
    """The same on a view: the tensor that it is a view of is the result."""
    base = genesis.zeros((3, *x.shape), dtype=x.dtype, device=x.device)
    view = base[1]
    view.copy_(x)
    getattr(view, name)(*rest, **keywords)
    return base


def calls_of(sample: Sample) -> dict[str, Callable[..., Any]]:
    """The forms of a sample: what is tested, such as "Tensor.exp_", and how."""
    name, words = sample.name, sample.keywords
    if sample.call is not None:
        return {name: sample.call}
    if "." in name:
        call = operator.attrgetter(name)(genesis)
        return {f"genesis.{name}": lambda *given: call(*given, **words)}
    made: dict[str, Callable[..., Any]] = {}
    for one in [name, *ALIASES.get(name, "").split()]:
        if hasattr(genesis, one):
            made[f"genesis.{one}"] = lambda *given, one=one: getattr(genesis, one)(*given, **words)
        first = sample.arguments[0]
        if not isinstance(first, Leaf) or one in FUNCTION_ONLY:
            continue
        if hasattr(genesis.Tensor, one):
            made[f"Tensor.{one}"] = lambda x, *given, one=one: getattr(x, one)(*given, **words)
        if is_shaped_like_first(sample) and hasattr(genesis.Tensor, one + "_"):
            made[f"Tensor.{one}_"] = lambda x, *given, one=one: written(x, one + "_", given, words)
            made[f"Tensor.{one}_ of a view"] = lambda x, *given, one=one: written_view(
                x, one + "_", given, words
            )
    return made


def is_shaped_like_first(sample: Sample) -> bool:
    """Whether the result has the shape of the first argument: in place it can be written there."""
    with genesis.no_grad():
        made = replaced(sample.arguments, lambda one: constant(one, "cpu"))
        result = getattr(genesis, sample.name, None) or getattr(genesis.Tensor, sample.name)
        found = result(*made, **moved(sample, "cpu").keywords)
    return isinstance(found, genesis.Tensor) and found.shape == made[0].shape


def constant(one: Any, device: str) -> genesis.Tensor:
    """A leaf as a tensor that needs no gradient, or a tensor on a device."""
    if isinstance(one, Leaf):
        return values_of(one, one.shape, device, genesis.float64).detach()
    return one.to(device)


def moved(sample: Sample, device: str) -> Sample:
    """The same with tensors among the keywords on a device."""
    words = {
        name: one.to(device) if isinstance(one, genesis.Tensor) else one
        for name, one in sample.keywords.items()
    }
    return sample._replace(keywords=words)


class Case(NamedTuple):
    """A function of leaves, which a test checks."""

    what: str
    function: Callable[..., Any]
    leaves: tuple[genesis.Tensor, ...]


def case_make(
    sample: Sample, what: str, layout: str, device: str = "cpu", dtype: Any = genesis.float64
) -> Case:
    """A sample in a form and a layout."""
    call = calls_of(moved(sample, device))[what]
    words = [*leaves_of(sample.arguments)]

    def layout_of(one: Leaf) -> str:
        return layout if one.shape else "plain"

    leaves = tuple(
        values_of(one, base_shape(one.shape, layout_of(one)), device, dtype) for one in words
    )
    fixed = replaced(sample.arguments, lambda one: one if isinstance(one, Leaf) else one.to(device))

    def function(*given: genesis.Tensor) -> Any:
        rest = iter(zip(given, words, strict=True))

        def view(one: Any) -> Any:
            if not isinstance(one, Leaf):
                return one
            x, own = next(rest)
            return view_of(x, own.shape, layout_of(own))

        return call(*replaced(fixed, view))

    return Case(f"{what} of {sample}, {layout}", function, leaves)


def cases_of(sample: Sample) -> Iterator[tuple[str, str]]:
    """The forms and layouts in which a sample is checked: every form, and every layout of one."""
    forms = [*calls_of(sample)]
    for layout in layouts_of(sample):
        yield forms[0], layout
    for form in forms[1:]:
        yield form, "plain"


# Other names of functions that have samples.
ALIASES = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide true_divide",
    "neg": "negative",
    "abs": "absolute",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "logsigmoid": "log_sigmoid",
    "clamp": "clip",
    "take_along_dim": "take_along_axis",
    "trapezoid": "trapz",
    "movedim": "moveaxis",
    "cat": "concat concatenate",
}

# Methods of these names take their arguments in another order, or are something else.
FUNCTION_ONLY = {"where", "normal"}
