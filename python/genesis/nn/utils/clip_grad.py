"""Clipping of gradients, by their norm or by value."""

from __future__ import annotations

import types
import warnings

from genesis import _C
from genesis._grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _by_device(tensors: list[Any]) -> dict[Any, list[Any]]:
    """The tensors of each device, in their order."""
    if not tensors:
        return {}
    first = tensors[0].device
    if all(tensor.device == first for tensor in tensors):
        return {first: tensors}
    made: dict[Any, list[Any]] = {}
    for tensor in tensors:
        made.setdefault(tensor.device, []).append(tensor)
    return made


def _parameters_list(parameters: Any) -> list[Any]:
    if isinstance(parameters, _C.Tensor):
        return [parameters]
    made = list(parameters)
    if not made and isinstance(parameters, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=4
        )
    return made


def _gradients(parameters: list[Any]) -> list[Any]:
    found = (parameter.grad for parameter in parameters)
    return [gradient for gradient in found if gradient is not None]


@no_grad()
def get_total_norm(
    tensors: _C.Tensor | Iterable[_C.Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> _C.Tensor:
    """The norm of all elements of some tensors, on the device of the first.

    It is float32, or float64 if a tensor is; sums are made in float64. The host does not wait for
    it, unless `error_if_nonfinite` is set.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        What it is the norm of.
    norm_type : float
        The order of the norm; infinity is the largest absolute value.
    error_if_nonfinite : bool
        Whether a norm that is infinite or NaN is an error.
    foreach : bool, optional
        As PyTorch has it. It is always one call for all tensors of a device.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.utils.get_total_norm([genesis.tensor([3.0]), genesis.tensor([[4.0]])])
    tensor(5.)
    """
    listed = [tensors] if isinstance(tensors, _C.Tensor) else list(tensors)
    order = float(norm_type)
    if not listed:
        return _C.tensor(0.0)
    groups = _by_device(listed)
    norms = [_C._list_norm(tuple(group), order, True) for group in groups.values()]
    total = norms[0]
    if len(norms) > 1:
        near = tuple(norm.to(listed[0].device) for norm in norms)
        total = _C._list_norm(near, order, True)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: _C.Tensor | Iterable[_C.Tensor],
    max_norm: float,
    total_norm: _C.Tensor,
    foreach: bool | None = None,
) -> None:
    """Multiply all gradients by ``max_norm / (total_norm + 1e-6)``, if that is less than 1.

    The device decides whether it is; the host does not wait.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Whose gradients are changed.
    max_norm : float
        The largest norm.
    total_norm : Tensor
        What :func:`get_total_norm` gave.
    foreach : bool, optional
        As PyTorch has it. It is always one call for all gradients of a device.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.zeros(2, requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, 4.0])
    >>> norm = genesis.nn.utils.get_total_norm([x.grad])
    >>> genesis.nn.utils.clip_grads_with_norm_([x], 1.0, norm)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    listed = [parameters] if isinstance(parameters, _C.Tensor) else list(parameters)
    _multiply(_gradients(listed), float(max_norm), total_norm)


def _multiply(gradients: list[Any], max_norm: float, total_norm: _C.Tensor) -> None:
    if not gradients:
        return
    factor = max_norm / (total_norm + 1e-6)
    for device, group in _by_device(gradients).items():
        near = factor if factor.device == device else factor.to(device)
        _C._list_elementwise(
            (tuple(group),), (("multiply", 0, 1),), ((2, 0),), (near,), near >= 1.0, 0
        )


@no_grad()
def clip_grad_norm_(
    parameters: _C.Tensor | Iterable[_C.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> _C.Tensor:
    """Scale the gradients so that the norm of them all is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Whose gradients are changed, in place.
    max_norm : float
        The largest norm.
    norm_type : float
        The order of the norm; infinity is the largest absolute value.
    error_if_nonfinite : bool
        Whether a norm that is infinite or NaN is an error. The host waits for that.
    foreach : bool, optional
        As PyTorch has it. It is always one call for all gradients of a device.

    Returns
    -------
    Tensor
        The norm before.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.zeros(2, requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, 4.0])
    >>> genesis.nn.utils.clip_grad_norm_([x], max_norm=1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    gradients = _gradients(_parameters_list(parameters))
    total = get_total_norm(gradients, norm_type, error_if_nonfinite, foreach)
    _multiply(gradients, float(max_norm), total)
    return total


def clip_grad_norm(
    parameters: _C.Tensor | Iterable[_C.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> _C.Tensor:
    """The old name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`genesis.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`genesis.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(
    parameters: _C.Tensor | Iterable[_C.Tensor],
    clip_value: float,
    foreach: bool | None = None,
) -> None:
    """Bound each element of the gradients by ``-clip_value`` and ``clip_value``.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Whose gradients are changed, in place.
    clip_value : float
        The largest absolute value.
    foreach : bool, optional
        As PyTorch has it. It is always one call for all gradients of a device.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.zeros(2, requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, -0.5])
    >>> genesis.nn.utils.clip_grad_value_([x], clip_value=1.0)
    >>> x.grad
    tensor([ 1.0000, -0.5000])
    """
    listed = [parameters] if isinstance(parameters, _C.Tensor) else list(parameters)
    bound = float(clip_value)
    for group in _by_device(_gradients(listed)).values():
        _C._list_elementwise(
            (tuple(group),), (("clamp", 0, 1, 2),), ((3, 0),), (-bound, bound), None, 0
        )
