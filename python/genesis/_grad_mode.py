"""Whether operations are recorded for gradients: no_grad() and its like. The mode is per thread."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]


class _Mode:
    """A mode for the time of a ``with`` block, or of each call of a decorated function."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._before: list[bool] = []  # one item for each block that is open

    def __enter__(self) -> None:
        self._before.append(_C._set_gradients(self.mode))

    def __exit__(self, *exception: object) -> None:
        _C._set_gradients(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, called in this mode."""
        from functools import wraps
        from inspect import isgeneratorfunction

        mode = self.mode
        if isgeneratorfunction(function):
            return wraps(function)(_stepped(mode, function))

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = _C._set_gradients(mode)
            try:
                return function(*args, **kwargs)
            finally:
                _C._set_gradients(before)

        return call


def _stepped(mode: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with ``yield``: its own code runs in the mode, and its caller's does not."""

    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        made = function(*args, **kwargs)
        step, given = made.send, None
        while True:
            try:
                with _Mode(mode):
                    item = step(given)
            except StopIteration as end:
                return end.value
            try:
                step, given = made.send, (yield item)
            except GeneratorExit:
                made.close()
                raise
            except BaseException as error:
                step, given = made.throw, error

    return call


class no_grad(_Mode):  # noqa: N801 - as in PyTorch
    """Record no operations: in a ``with`` block, or in a function that it decorates.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0], requires_grad=True)
    >>> with genesis.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    >>> @genesis.no_grad()
    ... def doubled(x):
    ...     return x * 2
    >>> doubled(x).requires_grad
    False
    """

    def __new__(cls, function: Any = None) -> Any:
        """The mode; or a function in this mode, as ``@no_grad`` without brackets asks."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_Mode):  # noqa: N801 - as in PyTorch
    """Record operations again, within :class:`no_grad`; used as that is.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0], requires_grad=True)
    >>> with genesis.no_grad(), genesis.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def __new__(cls, function: Any = None) -> Any:
        """The mode; or a function in this mode, as ``@enable_grad`` without brackets asks."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_Mode):  # noqa: N801 - as in PyTorch
    """Set whether operations are recorded: from now on, or for a ``with`` block or a function.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0], requires_grad=True)
    >>> with genesis.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._first = _C._set_gradients(self.mode)
        self._is_entered = False

    def __enter__(self) -> None:
        if not self._is_entered:  # what was before the call is what comes back
            _C._set_gradients(self._first)
        self._is_entered = True
        super().__enter__()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, called in this mode. The mode of the others is what it was before."""
        _C._set_gradients(self._first)
        return super().__call__(function)


class inference_mode(_Mode):  # noqa: N801 - as in PyTorch
    """As :class:`no_grad`; with ``mode=False`` as :class:`enable_grad`.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([1.0], requires_grad=True)
    >>> with genesis.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, mode: Any = True) -> Any:
        """The mode; or a function in this mode, as ``@inference_mode`` without brackets asks."""
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
