"""autocast(): a part of a program in mixed precision. What it does is in C: genesis/autocast.h."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any
from warnings import warn

from genesis import _C, cuda

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_TYPES = ("cpu", "cuda")
_HALVES = (_C.bfloat16, _C.float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether there is mixed precision for a type of device.

    Examples
    --------
    >>> import genesis
    >>> genesis.amp.is_autocast_available("cpu"), genesis.amp.is_autocast_available("tpu")
    (True, False)
    """
    if not isinstance(device_type, str):
        raise TypeError(f"a type of device is a text such as 'cuda', not {device_type!r}")
    return device_type in _TYPES


class autocast:  # noqa: N801 - as in PyTorch
    """A part of a program in mixed precision: a ``with`` block, or a function that it decorates.

    Matrix products and convolutions convert their floating tensors to the half precision; what
    needs the range or the digits of float32 gets that; everything else takes what it is given.
    Weights that need gradients are converted once in the outermost block. The setting is the
    thread's own. Call ``backward()`` behind the block: gradients have the types of the forward
    pass, and those of weights are float32.

    Parameters
    ----------
    device_type : str, optional
        ``"cuda"`` or ``"cpu"``; if not given, CUDA where there is a device.
    dtype : dtype, optional
        float16 or bfloat16; float16 on CUDA and bfloat16 on the CPU if not given.
    enabled : bool
        Whether it is on in the block: False switches it off within another one.
    cache_enabled : bool, optional
        Whether weights are converted once; as it is now if not given.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, 2)
    >>> with genesis.autocast("cpu"):
    ...     y = x @ x
    ...     with genesis.autocast("cpu", enabled=False):
    ...         z = x @ x
    >>> y.dtype, z.dtype
    (genesis.bfloat16, genesis.float32)
    """

    def __init__(
        self,
        device_type: str | None = None,
        dtype: _C.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if device_type is None:
            device_type = "cuda" if cuda.is_available() else "cpu"
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: a type of device is a text such as 'cuda', not {device_type!r}"
            )
        if device_type not in _TYPES:
            raise RuntimeError(
                f"autocast: there is no mixed precision for {device_type!r}: it is 'cuda' or 'cpu'"
            )
        self.device = device_type
        self.fast_dtype = _C.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            _C.is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        )
        self._enabled = bool(enabled) and self._can_be()
        self._before: list[tuple[bool, _C.dtype, bool]] = []  # one for each block that is open

    def _can_be(self) -> bool:
        """Whether the device and the dtype allow it; a warning if not."""
        problem = ""
        if self.device == "cuda" and not cuda.is_available():
            problem = "there is no CUDA device"
        elif self.fast_dtype not in _HALVES:
            problem = f"it converts to float16 or bfloat16, not to {self.fast_dtype}"
        if problem:
            warn(f"autocast is off: {problem}", stacklevel=3)
        return not problem

    def __enter__(self) -> autocast:
        device = self.device
        self._before.append(
            (
                _C.is_autocast_enabled(device),
                _C.get_autocast_dtype(device),
                _C.is_autocast_cache_enabled(),
            )
        )
        _C.set_autocast_enabled(device, self._enabled)
        if self.fast_dtype in _HALVES:
            _C.set_autocast_dtype(device, self.fast_dtype)
        _C.autocast_increment_nesting()
        _C.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *exception: object) -> None:
        enabled, dtype, cache_enabled = self._before.pop()
        _C.autocast_decrement_nesting()
        _C.set_autocast_enabled(self.device, enabled)
        _C.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache_enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, called in a block of its own each time."""
        if not callable(function):
            raise TypeError(
                f"autocast: only a function can be decorated, not {function!r}; "
                'as a block it is "with autocast(...):"'
            )

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call


# ---- functions with a gradient of their own ----


def _cast(value: Any, device_type: str, dtype: _C.dtype) -> Any:
    """Tensors, also in lists, tuples and dicts, as another type."""
    if isinstance(value, _C.Tensor):
        is_eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype != _C.float64
        )
        return value.to(dtype) if is_eligible else value
    if isinstance(value, dict):
        return {key: _cast(one, device_type, dtype) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_cast(one, device_type, dtype) for one in value)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: _C.dtype | None = None,
) -> Callable[..., Any]:
    """Decorate ``forward`` of an :class:`genesis.autograd.Function` that is used with autocast.

    Parameters
    ----------
    fwd : callable, optional
        The function; without it a decorator is given.
    device_type : str
        ``"cuda"`` or ``"cpu"``.
    cast_inputs : dtype, optional
        Where autocast is on, floating tensors become this dtype, and autocast is off inside. If
        not given, autocast is in ``forward`` as it is outside.

    Examples
    --------
    >>> import genesis
    >>> from genesis.amp import custom_bwd, custom_fwd
    >>> class Cube(genesis.autograd.Function):
    ...     @staticmethod
    ...     @custom_fwd(device_type="cpu", cast_inputs=genesis.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     @custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x * x
    >>> x = genesis.ones(1, dtype=genesis.bfloat16, requires_grad=True)
    >>> with genesis.autocast("cpu"):
    ...     y = Cube.apply(x)
    >>> y.dtype
    genesis.float32
    """
    if not is_autocast_available(device_type):
        raise ValueError(f"custom_fwd: a type of device is 'cuda' or 'cpu', not {device_type!r}")
    if fwd is None:
        return partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        is_on = _C.is_autocast_enabled(device_type)
        ctx._dtype = _C.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_on and cast_inputs is None
        if not is_on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx,
                *_cast(args, device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return call


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate ``backward`` beside :func:`custom_fwd`: autocast is as it was in ``forward``."""
    if not is_autocast_available(device_type):
        raise ValueError(f"custom_bwd: a type of device is 'cuda' or 'cpu', not {device_type!r}")
    if bwd is None:
        return partial(custom_bwd, device_type=device_type)

    @wraps(bwd)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return call
