"""Errors of gradients that name the line of the operation."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class set_detect_anomaly:  # noqa: N801, since it is called as PyTorch's function is
    """Look for mistakes in gradients from now on, or for the time of a ``with`` block.

    A backward pass then fails at the first gradient with a NaN, and errors name the line that
    called the operation. Slow: each gradient is read on the host.

    Parameters
    ----------
    mode : bool
        Whether it begins or ends.
    check_nan : bool
        Whether gradients with a NaN are errors.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([-1.0], requires_grad=True)
    >>> with genesis.autograd.detect_anomaly():
    ...     try:
    ...         x.sqrt().backward()
    ...     except RuntimeError as error:
    ...         print(str(error)[:43])
    the gradient of input 0 of sqrt has a NaN (
    """

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        self._checked = _C._set_gradient_checks(mode and check_nan)
        self._is_started = mode and not _C.history_is_on()
        if self._is_started:
            _C.history_start(0, 16, 0)
        elif not mode and _started:
            _started.pop()
            _C.history_stop()
        if self._is_started:
            _started.append(True)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _C._set_gradient_checks(self._checked)
        if self._is_started and _started:
            _started.pop()
            _C.history_stop()


# Whether stacks are recorded for this alone.
_started: list[Any] = []


class detect_anomaly(set_detect_anomaly):  # noqa: N801
    """Look for mistakes in gradients for the time of a ``with`` block: :class:`set_detect_anomaly`.

    Examples
    --------
    >>> import genesis
    >>> with genesis.autograd.detect_anomaly():
    ...     genesis.ones(2, requires_grad=True).sum().backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)
