"""Batch norms become a part of the layer before them, for models that are trained."""

from __future__ import annotations

from copy import deepcopy

from genesis import _C
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def _numbers(bn: Any) -> tuple[Any, ...]:
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Make one convolution of a convolution and the batch norm behind it.

    Parameters
    ----------
    conv, bn : Module
        Both in ``eval()``; they stay as they are.
    transpose : bool
        Whether the convolution is a transposed one.

    Examples
    --------
    >>> import genesis
    >>> from genesis import nn
    >>> conv, norm = nn.Conv2d(3, 8, 3).eval(), nn.BatchNorm2d(8).eval()
    >>> x = genesis.ones(1, 3, 5, 5)
    >>> one = nn.utils.fuse_conv_bn_eval(conv, norm)
    >>> genesis.allclose(one(x), norm(conv(x)), atol=1e-5)
    True
    """
    _check(conv, bn)
    made = deepcopy(conv)
    made.weight, made.bias = fuse_conv_bn_weights(made.weight, made.bias, *_numbers(bn), transpose)
    return made


def fuse_conv_bn_weights(
    conv_w: _C.Tensor,
    conv_b: _C.Tensor | None,
    bn_rm: _C.Tensor,
    bn_rv: _C.Tensor,
    bn_eps: float,
    bn_w: _C.Tensor | None,
    bn_b: _C.Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution with a batch norm behind it."""
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Make one linear layer of a linear layer and the batch norm behind it.

    Parameters
    ----------
    linear, bn : Module
        Both in ``eval()``; they stay as they are.
    """
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    _check(linear, bn)
    made = deepcopy(linear)
    made.weight, made.bias = fuse_linear_bn_weights(made.weight, made.bias, *_numbers(bn))
    return made


def fuse_linear_bn_weights(
    linear_w: _C.Tensor,
    linear_b: _C.Tensor | None,
    bn_rm: _C.Tensor,
    bn_rv: _C.Tensor,
    bn_eps: float,
    bn_w: _C.Tensor | None,
    bn_b: _C.Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a linear layer with a batch norm behind it."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _fused(
    weight: Any, bias: Any, mean: Any, variance: Any, eps: float, scale: Any, shift: Any, shape: Any
) -> tuple[Parameter, Parameter]:
    factor = (variance + eps).rsqrt()
    factor = factor if scale is None else scale * factor
    moved = (-mean if bias is None else bias - mean) * factor
    moved = moved if shift is None else moved + shift
    made = (weight * factor.reshape(shape)).to(weight.dtype)
    moved = moved.to(weight.dtype if bias is None else bias.dtype)
    return (
        Parameter(made.detach(), weight.requires_grad),
        Parameter(moved.detach(), bias is not None and bias.requires_grad),
    )
