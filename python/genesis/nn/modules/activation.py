"""Activations: functions of each element."""

from __future__ import annotations

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.module import Module
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Softshrink",
    "Threshold",
]


def _listed(inplace: bool, *parts: str) -> str:
    """Arguments for repr(): `inplace` only where it is set."""
    return ", ".join([*parts, *(["inplace=True"] if inplace else [])])


class ReLU(Module):
    """``max(x, 0)`` of each element.

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReLU()(genesis.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.relu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace)


def _renamed(old: str, new: str, value: float) -> float:
    """An argument by its old name."""
    import warnings

    warnings.warn(
        f"keyword argument `{old}` is deprecated and renamed to `{new}`",
        FutureWarning,
        stacklevel=3,
    )
    return value


class Hardtanh(Module):
    """x, but not below `min_val` and not above `max_val`.

    Parameters
    ----------
    min_val : float
        The lower bound.
    max_val : float
        The upper bound.
    inplace : bool
        Whether the input is overwritten.
    min_value, max_value : float, optional
        The bounds by their old names.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Hardtanh()(genesis.tensor([-2.0, 2.0]))
    tensor([-1.,  1.])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            min_val = _renamed("min_value", "min_val", min_value)
        if max_value is not None:
            max_val = _renamed("max_value", "max_val", max_value)
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace, f"min_val={self.min_val}", f"max_val={self.max_val}")


class ReLU6(Hardtanh):
    """``min(max(x, 0), 6)`` of each element.

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ReLU6()(genesis.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.relu6(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace)


class LeakyReLU(Module):
    """x where it is positive, else ``negative_slope * x``.

    Parameters
    ----------
    negative_slope : float
        The slope below 0.
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.LeakyReLU(0.5)(genesis.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace, f"negative_slope={self.negative_slope}")


class RReLU(Module):
    """As LeakyReLU, with slopes that are random in training.

    Parameters
    ----------
    lower : float
        The least slope.
    upper : float
        The largest one.
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.RReLU(0.5, 0.5)(genesis.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace, f"lower={self.lower}", f"upper={self.upper}")


class ELU(Module):
    """x where it is positive, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha : float
        The limit below 0, negated.
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ELU()(genesis.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace, f"alpha={self.alpha}")


class CELU(Module):
    """``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))``.

    Parameters
    ----------
    alpha : float
        The limit below 0, negated.
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.CELU()(genesis.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace, f"alpha={self.alpha}")


class SELU(Module):
    """ELU with the scale and alpha that keep mean 0 and variance 1.

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.SELU()(genesis.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.selu(input, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace)


class GELU(Module):
    """``x * Phi(x)``, with the distribution function of the normal distribution.

    Parameters
    ----------
    approximate : str
        ``"none"``, or ``"tanh"`` for the approximation by it.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.GELU()(genesis.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """``x * sigmoid(x)``.

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.SiLU()(genesis.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.silu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace)


class Mish(Module):
    """``x * tanh(softplus(x))``.

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Mish()(genesis.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.mish(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace)


class Hardswish(Module):
    """``x * relu6(x + 3) / 6``.

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Hardswish()(genesis.tensor([-3.0, 3.0]))
    tensor([-0.,  3.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.hardswish(input, self.inplace)


class Hardsigmoid(Module):
    """``relu6(x + 3) / 6``.

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Hardsigmoid()(genesis.tensor([-3.0, 3.0]))
    tensor([0., 1.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.hardsigmoid(input, self.inplace)


class Hardshrink(Module):
    """x, but 0 where its absolute value is at most `lambd`.

    Parameters
    ----------
    lambd : float
        The bound.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Hardshrink()(genesis.tensor([0.25, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.lambd}"


class Softshrink(Module):
    """x, nearer to 0 by `lambd`, but not beyond.

    Parameters
    ----------
    lambd : float
        The distance.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Softshrink()(genesis.tensor([0.25, 2.5]))
    tensor([0., 2.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.lambd}"


class Threshold(Module):
    """x where it is above `threshold`, else `value`.

    Parameters
    ----------
    threshold : float
        The bound.
    value : float
        What stands for the others.
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Threshold(0.5, 9.0)(genesis.tensor([0.0, 1.0]))
    tensor([9., 1.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return _listed(self.inplace, f"threshold={self.threshold}", f"value={self.value}")


class PReLU(Module):
    """x where it is positive, else ``weight * x``, with a weight that is learned.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels, dimension 1.
    init : float
        The first value.
    device, dtype : optional
        Of the weight.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.PReLU()(genesis.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(_C.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to its first value."""
        from genesis.nn import init

        init.constant_(self.weight, self.init)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"num_parameters={self.num_parameters}"
