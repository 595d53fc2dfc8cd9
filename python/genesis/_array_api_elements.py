"""Functions of elements as the array API standard has them; those of genesis are PyTorch's."""

from __future__ import annotations

import functools

import genesis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor

__all__ = [
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "clip",
    "conj",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "less",
    "less_equal",
    "logaddexp",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "remainder",
    "signbit",
    "subtract",
    "where",
]


def promoted(*operands: Any) -> tuple[Any, ...]:
    """Operands of which a tensor without dimensions counts as any other, not as in PyTorch."""
    types = {one.dtype: one for one in operands if isinstance(one, genesis.Tensor)}
    if len(types) < 2:
        return operands
    dtype = functools.reduce(genesis.promote_types, types)
    return tuple(one.to(dtype) if isinstance(one, genesis.Tensor) else one for one in operands)


def _of_two(function: Any, name: str, what: str) -> Any:
    """A function of two tensors, or a tensor and a number, as the standard has it."""

    def call(x1: Any, x2: Any, /) -> Tensor:
        return function(*promoted(x1, x2))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""{what}

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.{name}(xp.asarray(1, dtype=xp.int8), xp.asarray([2, 3])).shape
    (2,)
    """
    return call


add = _of_two(genesis.add, "add", "The sums of elements.")
atan2 = _of_two(genesis.atan2, "atan2", "The angles of points (x2, x1).")
bitwise_and = _of_two(genesis.bitwise_and, "bitwise_and", "The bits that both have.")
bitwise_or = _of_two(genesis.bitwise_or, "bitwise_or", "The bits that one of them has.")
bitwise_xor = _of_two(genesis.bitwise_xor, "bitwise_xor", "The bits that only one of them has.")
bitwise_left_shift = _of_two(
    genesis.bitwise_left_shift, "bitwise_left_shift", "The bits, so many places higher."
)
bitwise_right_shift = _of_two(
    genesis.bitwise_right_shift, "bitwise_right_shift", "The bits, so many places lower."
)
divide = _of_two(genesis.divide, "divide", "The quotients of elements.")
equal = _of_two(genesis.eq, "equal", "Whether elements are equal.")
greater = _of_two(genesis.greater, "greater", "Whether the first is larger.")
greater_equal = _of_two(genesis.greater_equal, "greater_equal", "Whether the first is not smaller.")
less = _of_two(genesis.less, "less", "Whether the first is smaller.")
less_equal = _of_two(genesis.less_equal, "less_equal", "Whether the first is not larger.")
maximum = _of_two(genesis.maximum, "maximum", "The larger one of two; NaN wins.")
minimum = _of_two(genesis.minimum, "minimum", "The smaller one of two; NaN wins.")
multiply = _of_two(genesis.multiply, "multiply", "The products of elements.")
not_equal = _of_two(genesis.not_equal, "not_equal", "Whether elements differ.")
remainder = _of_two(
    genesis.remainder, "remainder", "What division leaves, with the divisor's sign."
)
subtract = _of_two(genesis.subtract, "subtract", "The differences of elements.")


def pow(x1: Any, x2: Any, /) -> Tensor:
    """The first to the power of the second.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.pow(xp.asarray([4.0, -0.0, -xp.inf]), 0.5)
    tensor([ 2.,  0., inf])
    """
    if isinstance(x2, float) and x2 in (0.5, -0.5):
        # For the number genesis.pow() takes a square root, which of -0 and -inf is another one.
        x1, x2 = _both_floating(x1, x2)
    return genesis.pow(*promoted(x1, x2))


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotients, rounded down; beside infinities the quotients themselves.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.floor_divide(xp.asarray([7.0, xp.inf, 1.0]), xp.asarray([2.0, 2.0, -xp.inf]))
    tensor([ 3., inf, -0.])
    """
    x1, x2 = promoted(x1, x2)
    made = genesis.floor_divide(x1, x2)
    if not made.dtype.is_floating_point:
        return made
    x1, x2 = _both_floating(x1, x2)
    return genesis.where(x1.isinf() | x2.isinf(), x1 / x2, made)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of the first where a condition is true, and of the second elsewhere.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    tensor([1, 0])
    """
    return genesis.where(condition, *promoted(x1, x2))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """The elements, or the bound that they are beyond.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.clip(xp.asarray([-3, 2, 9]), max=5)
    tensor([-3,  2,  5])
    """
    if min is None and max is None:
        return x.clone()
    # Bounds without dimensions count, too: as uint8, -1 would be 255.
    made = genesis.clip(*promoted(x, min, max))
    is_kept = made.dtype.is_floating_point == x.dtype.is_floating_point
    return made.to(x.dtype) if is_kept else made


_BITS = {2: genesis.int16, 4: genesis.int32, 8: genesis.int64}


def _bits(x: Tensor) -> Tensor:
    """The elements of a floating tensor as the integers that have the same bits."""
    return x.contiguous().view(_BITS[x.dtype.itemsize])


def positive(x: Tensor, /) -> Tensor:
    """The elements themselves, as a copy.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.positive(xp.asarray([-1, 2]))
    tensor([-1,  2])
    """
    return x.clone()


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugates: of real numbers, which are all that there are, they themselves.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.conj(xp.asarray([1, 2]))
    tensor([1, 2])
    """
    return x.clone()


def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts: zeros, as there are no complex numbers.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.imag(xp.ones(2))
    tensor([0., 0.])
    """
    return genesis.zeros_like(x)


def real(x: Tensor, /) -> Tensor:
    """The real parts: of real numbers, which are all that there are, they themselves.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.real(xp.asarray([1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """
    return x.clone()


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign is set: of -0 and of NaN with a sign, too.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.signbit(xp.asarray([-0.0, 0.0, -3.0]))
    tensor([ True, False,  True])
    """
    return genesis.signbit(x)


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """The magnitude of the first with the sign of the second.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.copysign(xp.asarray([1.0, -2.0]), xp.asarray([-0.0, 5.0]))
    tensor([-1.,  2.])
    """
    return genesis.copysign(*_both_floating(x1, x2))


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next number of the dtype on the way from the first to the second.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.nextafter(xp.asarray([1.0]), xp.asarray([2.0])) > 1
    tensor([True])
    """
    x1, x2 = genesis.broadcast_tensors(*_both_floating(x1, x2))
    bits = _bits(x1)
    # Magnitudes are in the order of their bits: away from 0 is 1 more, whatever the sign.
    is_away = (x2 > x1) == (x1 > 0)
    beside = (bits + genesis.where(is_away, 1, -1).to(bits.dtype)).view(x1.dtype)
    least = (bits * 0 + 1).view(x1.dtype)
    beside = genesis.where(x1 == 0, genesis.where(x2 > 0, least, -least), beside)
    return genesis.where((x1 != x1) | (x2 != x2), x1 + x2, genesis.where(x1 == x2, x2, beside))


def hypot(x1: Any, x2: Any, /) -> Tensor:
    """The length of the third side of a triangle with a right angle.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.hypot(3.0, xp.asarray([4.0]))
    tensor([5.])
    """
    return genesis.hypot(*_both_floating(x1, x2))


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """The logarithm of the sum of exp() of two.

    Examples
    --------
    >>> import genesis.array_api as xp
    >>> xp.logaddexp(0.0, xp.asarray([0.0]))
    tensor([0.6931])
    """
    return genesis.logaddexp(*_both_floating(x1, x2))


def _both_floating(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands as tensors of the dtype that an operation on them has."""
    x1, x2 = promoted(x1, x2)
    dtype = genesis.result_type(x1, x2)
    near = x1 if isinstance(x1, genesis.Tensor) else x2
    return tuple(
        one.to(dtype)
        if isinstance(one, genesis.Tensor)
        else genesis.full((), one, dtype, near.device)
        for one in (x1, x2)
    )
