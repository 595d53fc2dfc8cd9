"""More elementwise functions, and tensors put together or turned, made of the other functions.

They fuse, and run where the tensors are. Those that begin with a tensor are its methods, too.
"""

from __future__ import annotations

from genesis import _C
from genesis._tensor import joined
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "addcdiv",
    "addcmul",
    "clamp_max",
    "clamp_min",
    "column_stack",
    "copysign",
    "deg2rad",
    "dstack",
    "fliplr",
    "flipud",
    "float_power",
    "fmax",
    "fmin",
    "frac",
    "hstack",
    "isneginf",
    "isposinf",
    "nan_to_num",
    "rad2deg",
    "rot90",
    "signbit",
    "vstack",
]

_INFINITY = float("inf")


# ---- of elements ----


def clamp_min(input: _C.Tensor, min: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The elements, or a bound where they are below it; NaN stays.

    Examples
    --------
    >>> import genesis
    >>> genesis.clamp_min(genesis.tensor([-1, 5]), 0)
    tensor([0, 5])
    """
    return _C.maximum(input, min, out=out)


def clamp_max(input: _C.Tensor, max: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The elements, or a bound where they are above it; NaN stays.

    Examples
    --------
    >>> import genesis
    >>> genesis.clamp_max(genesis.tensor([-1, 5]), 0)
    tensor([-1,  0])
    """
    return _C.minimum(input, max, out=out)


def addcmul(
    input: _C.Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1, out: _C.Tensor | None = None
) -> _C.Tensor:
    """``input + value * tensor1 * tensor2``.

    Examples
    --------
    >>> import genesis
    >>> genesis.addcmul(genesis.ones(2), genesis.tensor([2.0, 3.0]), genesis.tensor(5.0))
    tensor([11., 16.])
    """
    (input, first, second), dtype = joined(input, tensor1, tensor2)
    product = first * second
    made = _C.add(input, product if value == 1 else product * value, out=out)
    return made.to(dtype) if out is None and dtype.is_floating_point else made


def addcdiv(
    input: _C.Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1, out: _C.Tensor | None = None
) -> _C.Tensor:
    """``input + value * tensor1 / tensor2``.

    Examples
    --------
    >>> import genesis
    >>> genesis.addcdiv(genesis.ones(2), genesis.tensor([2.0, 3.0]), genesis.tensor(2.0))
    tensor([2.0000, 2.5000])
    """
    (input, first, second), dtype = joined(input, tensor1, tensor2)
    made = _C.add(input, (first if value == 1 else first * value) / second, out=out)
    return made.to(dtype) if out is None and dtype.is_floating_point else made


def float_power(input: Any, exponent: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The first to the power of the second, in float64 whatever they are.

    Examples
    --------
    >>> import genesis
    >>> genesis.float_power(genesis.tensor([2, 4]), -0.5)
    tensor([0.7071, 0.5000], dtype=genesis.float64)
    """
    base, power = (
        one.double() if isinstance(one, _C.Tensor) else float(one) for one in (input, exponent)
    )
    return _C.pow(base, power, out=out)


def frac(input: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """What is behind the point, with the sign of the whole.

    Examples
    --------
    >>> import genesis
    >>> genesis.frac(genesis.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """
    return input - input.trunc()


def _beside_nan(input: _C.Tensor, other: Any, made: _C.Tensor) -> _C.Tensor:
    """What was made of two; the other one where one is NaN."""
    return _C.where(input != input, other, _C.where(other != other, input, made))


def fmax(input: _C.Tensor, other: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The larger of two; the other one where one is NaN.

    Examples
    --------
    >>> import genesis
    >>> genesis.fmax(genesis.tensor([1.0, float("nan")]), genesis.tensor([3.0, 2.0]))
    tensor([3., 2.])
    """
    return _beside_nan(input, other, _C.maximum(input, other))


def fmin(input: _C.Tensor, other: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The smaller of two; the other one where one is NaN.

    Examples
    --------
    >>> import genesis
    >>> genesis.fmin(genesis.tensor([1.0, float("nan")]), genesis.tensor([3.0, 2.0]))
    tensor([1., 2.])
    """
    return _beside_nan(input, other, _C.minimum(input, other))


def signbit(input: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Whether there is a minus, at a zero or NaN as well.

    Examples
    --------
    >>> import genesis
    >>> genesis.signbit(genesis.tensor([1.0, -0.0, -2.0]))
    tensor([False,  True,  True])
    """
    if not input.dtype.is_floating_point:
        return _C.lt(input, 0, out=out)
    bits = {2: _C.int16, 4: _C.int32, 8: _C.int64}[input.dtype.itemsize]
    return _C.lt(input.view(bits), 0, out=out)


def copysign(input: _C.Tensor, other: Any, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """The first without its sign, with that of the second.

    Examples
    --------
    >>> import genesis
    >>> genesis.copysign(genesis.tensor([1.0, -2.0]), genesis.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """
    is_number = not isinstance(other, _C.Tensor)
    other = _C.as_tensor(other, device=input.device) if is_number else other
    dtype = input.dtype if is_number else _C._result_type(input, other)
    size = input.to(dtype if dtype.is_floating_point else _C.float32).abs()
    return _C.where(signbit(other), -size, size, out=out)


def deg2rad(input: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Degrees as radians.

    Examples
    --------
    >>> import genesis
    >>> genesis.deg2rad(genesis.tensor([180.0]))
    tensor([3.1416])
    """
    return _C.mul(input, 0.017453292519943295, out=out)


def rad2deg(input: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Radians as degrees.

    Examples
    --------
    >>> import genesis
    >>> genesis.rad2deg(genesis.tensor([0.5]))
    tensor([28.6479])
    """
    return _C.mul(input, 57.29577951308232, out=out)


def isposinf(input: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Whether it is infinity.

    Examples
    --------
    >>> import genesis
    >>> genesis.isposinf(genesis.tensor([float("inf"), float("-inf")]))
    tensor([ True, False])
    """
    return _C.eq(input, _INFINITY, out=out)


def isneginf(input: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Whether it is minus infinity.

    Examples
    --------
    >>> import genesis
    >>> genesis.isneginf(genesis.tensor([float("inf"), float("-inf")]))
    tensor([False,  True])
    """
    return _C.eq(input, -_INFINITY, out=out)


def nan_to_num(
    input: _C.Tensor,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """Numbers in place of NaN and infinities: without others the largest and smallest there are.

    Examples
    --------
    >>> import genesis
    >>> genesis.nan_to_num(genesis.tensor([1.0, float("nan"), float("inf")]), posinf=9)
    tensor([1., 0., 9.])
    """
    if not input.dtype.is_floating_point:
        return input.clone()
    from genesis._tensor_names import finfo

    most = finfo(input.dtype).max
    made = _C.where(input.isnan(), float(nan), input)
    made = _C.where(input == _INFINITY, float(most if posinf is None else posinf), made)
    return _C.where(input == -_INFINITY, float(-most if neginf is None else neginf), made)


# ---- put together, turned ----


def hstack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Tensors side by side: along the second dimension, vectors along the first.

    Examples
    --------
    >>> import genesis
    >>> genesis.hstack([genesis.tensor([1]), genesis.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    from genesis import atleast_1d, cat
    from genesis._tensor_functions import several

    parts = [atleast_1d(one) for one in several("hstack", tensors)]
    return cat(parts, 0 if parts and parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Tensors below each other: along the first dimension, vectors as rows.

    Examples
    --------
    >>> import genesis
    >>> genesis.vstack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    from genesis import atleast_2d, cat
    from genesis._tensor_functions import several

    return cat([atleast_2d(one) for one in several("vstack", tensors)])


def dstack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Tensors behind each other: along the third dimension.

    Examples
    --------
    >>> import genesis
    >>> genesis.dstack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    from genesis import atleast_3d, cat
    from genesis._tensor_functions import several

    return cat([atleast_3d(one) for one in several("dstack", tensors)], 2)


def column_stack(tensors: Sequence[_C.Tensor], *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Vectors as the columns of a matrix; matrices side by side.

    Examples
    --------
    >>> import genesis
    >>> genesis.column_stack([genesis.tensor([1, 2]), genesis.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    from genesis import cat
    from genesis._tensor_functions import several

    return cat(
        [one.reshape(-1, 1) if one.ndim < 2 else one for one in several("column_stack", tensors)], 1
    )


def fliplr(input: _C.Tensor) -> _C.Tensor:
    """A copy with the second dimension the other way round.

    Examples
    --------
    >>> import genesis
    >>> genesis.fliplr(genesis.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    return input.flip(1)


def flipud(input: _C.Tensor) -> _C.Tensor:
    """A copy with the first dimension the other way round.

    Examples
    --------
    >>> import genesis
    >>> genesis.flipud(genesis.tensor([1, 2]))
    tensor([2, 1])
    """
    if not input.ndim:
        raise _C.ShapeError("flipud: the tensor has no first dimension")
    return input.flip(0)


def rot90(input: _C.Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> _C.Tensor:
    """A copy turned by right angles, from the first of two dimensions towards the second.

    Examples
    --------
    >>> import genesis
    >>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    first, second = dims
    if input.ndim and first % input.ndim == second % input.ndim:
        raise ValueError(f"rot90: dimensions {first} and {second} of {input.shape} are the same")
    if k % 4 == 0:
        return input.clone()
    if k % 4 == 2:
        return input.flip(first, second)
    return input.flip(second if k % 4 == 1 else first).transpose(first, second)


publish(
    globals(),
    __all__,
    methods=(
        *("addcdiv", "addcmul", "clamp_max", "clamp_min", "copysign", "deg2rad"),
        *("fliplr", "flipud", "float_power", "fmax", "fmin", "frac", "isneginf", "isposinf"),
        *("nan_to_num", "rad2deg", "rot90", "signbit"),
    ),
    in_place=(
        *("addcdiv", "addcmul", "clamp_max", "clamp_min", "copysign", "deg2rad"),
        *("float_power", "fmax", "fmin", "frac", "nan_to_num", "rad2deg"),
    ),
    own_out=(
        *("addcdiv", "addcmul", "clamp_max", "clamp_min", "copysign", "deg2rad"),
        *("float_power", "isneginf", "isposinf", "rad2deg", "signbit"),
    ),
)
