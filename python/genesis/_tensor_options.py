"""Elementwise operations with options, made of those without; loaded when one is first used.

The extension calls these where an argument is neither an operand nor ``out``.
"""

from __future__ import annotations

from genesis import _C
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _scaled(input: Any, other: Any, alpha: Any) -> Any:
    """`other` times `alpha`, which must not have fractions where the result has none."""
    numbers = [one if isinstance(one, _C.Tensor) else _C.as_tensor(one) for one in (input, other)]
    if isinstance(alpha, float) and not _C._result_type(*numbers).is_floating_point:
        raise TypeError(f"alpha={alpha} has fractions, and {input!r} and {other!r} have not")
    return other * alpha


def add(input: Any, other: Any, *, alpha: Any = 1, out: _C.Tensor | None = None) -> _C.Tensor:
    """``input + alpha * other``."""
    return _C.add(input, _scaled(input, other, alpha), out=out)


def sub(input: Any, other: Any, *, alpha: Any = 1, out: _C.Tensor | None = None) -> _C.Tensor:
    """``input - alpha * other``."""
    return _C.sub(input, _scaled(input, other, alpha), out=out)


def add_(self: _C.Tensor, other: Any, *, alpha: Any = 1) -> _C.Tensor:
    """``self += alpha * other``."""
    return self.add_(_scaled(self, other, alpha))


def sub_(self: _C.Tensor, other: Any, *, alpha: Any = 1) -> _C.Tensor:
    """``self -= alpha * other``."""
    return self.sub_(_scaled(self, other, alpha))


def _truncated(input: Any, other: Any) -> _C.Tensor:
    """The quotient, rounded towards 0."""
    down = _C.floor_divide(input, other)
    if down.dtype.is_floating_point:
        return _C.div(input, other).trunc()
    # One more where rounding down went away from 0: it is negative, and something is left.
    return down + ((down < 0) & (down * other != input)).to(down.dtype)


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


def round(input: _C.Tensor, *, decimals: int = 0, out: _C.Tensor | None = None) -> _C.Tensor:
    """The nearest number with so many decimals; less than 0: before the point."""
    if decimals == 0 or not input.dtype.is_floating_point:
        return _C.round(input, out=out)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return _C.div((input * scale).round(), scale, out=out)
    return _C.mul((input / scale).round(), scale, out=out)


def round_(self: _C.Tensor, *, decimals: int = 0) -> _C.Tensor:
    """In place: the nearest number with so many decimals."""
    return round(self, decimals=decimals, out=self)


def gelu(input: _C.Tensor, *, approximate: str = "none", out: _C.Tensor | None = None) -> _C.Tensor:
    """X times the normal distribution up to x; with ``"tanh"`` about that."""
    if approximate == "none":
        return _C.gelu(input, out=out)
    if approximate != "tanh":
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    wide = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    inner = (wide + 0.044715 * wide * wide * wide) * 0.7978845608028654  # sqrt(2 / pi)
    made = (0.5 * wide * (1 + inner.tanh())).to(input.dtype)
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
