"""Elementwise operations with options, made of those without; loaded when one is first used.

The extension calls these where an argument is neither an operand nor ``out``.
"""

from __future__ import annotations

from genesis import _C
from genesis._tensor import joined, wide
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _together(input: Any, other: Any, alpha: Any) -> tuple[Any, Any, _C.dtype]:
    """The operands in the type of both, the second one times `alpha`, and that type."""
    (one, two), dtype = joined(input, other)
    if isinstance(alpha, float) and not dtype.is_floating_point:
        raise TypeError(f"alpha={alpha} has fractions, and {input!r} and {other!r} have not")
    return one, two * alpha, dtype


def add(input: Any, other: Any, *, alpha: Any = 1, out: _C.Tensor | None = None) -> _C.Tensor:
    """``input + alpha * other``."""
    one, two, dtype = _together(input, other, alpha)
    made = _C.add(one, two, out=out)
    return made if out is not None else made.to(dtype)


def sub(input: Any, other: Any, *, alpha: Any = 1, out: _C.Tensor | None = None) -> _C.Tensor:
    """``input - alpha * other``."""
    one, two, dtype = _together(input, other, alpha)
    made = _C.sub(one, two, out=out)
    return made if out is not None else made.to(dtype)


def add_(self: _C.Tensor, other: Any, *, alpha: Any = 1) -> _C.Tensor:
    """``self += alpha * other``."""
    return add(self, other, alpha=alpha, out=self)


def sub_(self: _C.Tensor, other: Any, *, alpha: Any = 1) -> _C.Tensor:
    """``self -= alpha * other``."""
    return sub(self, other, alpha=alpha, out=self)


def _truncated(input: Any, other: Any) -> _C.Tensor:
    """The quotient, rounded towards 0."""
    (one, two), dtype = joined(input, other)
    if dtype.is_floating_point:
        return _C.div(one, two).trunc().to(dtype)
    down = _C.floor_divide(one, two)
    # One more where rounding down went away from 0: it is negative, and something is left.
    return down + ((down < 0) & (down * two != one)).to(down.dtype)


def div(
    input: Any, other: Any, *, rounding_mode: str | None = None, out: _C.Tensor | None = None
) -> _C.Tensor:
    """The quotient, as it is, or rounded: ``"floor"`` or ``"trunc"``."""
    if rounding_mode is None:
        return _C.div(input, other, out=out)
    if rounding_mode == "floor":
        return _C.floor_divide(input, other, out=out)
    if rounding_mode == "trunc":
        made = _truncated(input, other)
        return made if out is None else out.copy_(made)
    raise ValueError(f"div: rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")


def div_(self: _C.Tensor, other: Any, *, rounding_mode: str | None = None) -> _C.Tensor:
    """In place: the quotient, as it is, or rounded."""
    return div(self, other, rounding_mode=rounding_mode, out=self)


def _rounded(input: _C.Tensor, decimals: int) -> _C.Tensor:
    """float64 to so many decimals; what is too large to have any stays."""
    scale = 10.0 ** min(abs(decimals), 308)
    if decimals < 0:
        return (input / scale).round() * scale
    scaled = input * scale
    return _C.where(scaled.isfinite(), scaled.round() / scale, input)


def _rounded_integers(input: _C.Tensor, zeros: int) -> _C.Tensor:
    """Integers that end in so many zeros, the nearest; of two the one with an even digit there."""
    wide = _C.uint64 if input.dtype == _C.uint64 else _C.int64
    if zeros > (18 if wide.is_signed else 19):  # more than the type has digits
        return _C._empty(input.shape, input.dtype, input.device).zero_()
    scale = 10**zeros
    value = input.to(wide)
    down = value // scale
    rest = value - down * scale
    is_up = (rest > scale - rest) | ((rest == scale - rest) & (down % 2 == 1))
    return ((down + is_up.to(wide)) * scale).to(input.dtype)


def round(input: _C.Tensor, *, decimals: int = 0, out: _C.Tensor | None = None) -> _C.Tensor:
    """The nearest number with so many decimals; less than 0: before the point."""
    if not hasattr(decimals, "__index__"):
        raise TypeError(f"round: decimals is an integer, not {decimals!r}")
    if decimals == 0:
        return _C.round(input, out=out)
    if input.dtype.is_floating_point:
        made = _rounded(input.double(), decimals).to(input.dtype)
    else:
        made = _rounded_integers(input, -decimals) if decimals < 0 else input.clone()
    return made if out is None else out.copy_(made)


def round_(self: _C.Tensor, *, decimals: int = 0) -> _C.Tensor:
    """In place: the nearest number with so many decimals."""
    return round(self, decimals=decimals, out=self)


def gelu(input: _C.Tensor, *, approximate: str = "none", out: _C.Tensor | None = None) -> _C.Tensor:
    """X times the normal distribution up to x; with ``"tanh"`` about that."""
    if approximate == "none":
        return _C.gelu(input, out=out)
    if approximate != "tanh":
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    x = wide(input)
    inner = (x + 0.044715 * x * x * x) * 0.7978845608028654  # sqrt(2 / pi)
    made = (0.5 * x * (1 + inner.tanh())).to(input.dtype)
    return made if out is None else out.copy_(made)


def gelu_(self: _C.Tensor, *, approximate: str = "none") -> _C.Tensor:
    """In place: x times the normal distribution up to x."""
    return gelu(self, approximate=approximate, out=self)


# By their second names, too.
subtract, subtract_ = sub, sub_
divide = true_divide = div
divide_ = true_divide_ = div_

_NAMES = ("add", "sub", "subtract", "div", "divide", "true_divide", "round", "gelu")
publish(globals(), (*_NAMES, *(f"{name}_" for name in _NAMES)), own_out=_NAMES)
