"""Linear maps."""

from __future__ import annotations

import math

from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.module import Module
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Bilinear", "Linear"]


def new_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter whose elements are not set yet."""
    return Parameter(_C.empty(shape, device=device, dtype=dtype))


class Linear(Module):
    """``input @ weight.T + bias``, of the last dimension.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension, of the input and of the output.
    bias : bool
        Whether there is one.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.Linear(20, 30)
    >>> layer(genesis.ones(128, 20)).shape
    (128, 30)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = new_parameter(out_features, in_features, device=device, dtype=dtype)
        if bias:
            self.bias = new_parameter(out_features, device=device, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the parameters to first values: uniform between ``+-1/sqrt(in_features)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """``input1 @ weight[k] @ input2 + bias[k]`` for each output feature k.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Sizes of the last dimension, of the inputs and of the output.
    bias : bool
        Whether there is one.
    device, dtype : optional
        Of the parameters.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = new_parameter(
            out_features, in1_features, in2_features, device=device, dtype=dtype
        )
        if bias:
            self.bias = new_parameter(out_features, device=device, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the parameters to first values: uniform between ``+-1/sqrt(in1_features)``."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: _C.Tensor, input2: _C.Tensor) -> _C.Tensor:
        """Compute the output."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
