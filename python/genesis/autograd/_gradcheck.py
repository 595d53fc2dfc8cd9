"""Gradients compared with central differences."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


def _tuple(tensors: Any) -> tuple[Any, ...]:
    return (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)


def _grad(outputs: Any, inputs: Any, given: Any, creates: bool) -> tuple[Any, ...]:
    return _C._backward(_tuple(outputs), _tuple(given), tuple(inputs), True, creates, True)


class GradcheckError(RuntimeError):
    """A gradient is not what differences of the function are."""


def gradcheck(
    func: Callable[..., Any],
    inputs: _C.Tensor | Sequence[Any],
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare the gradients of a function with central differences.

    Parameters
    ----------
    func : callable
        It is given the inputs, and gives a tensor or several.
    inputs : Tensor or sequence
        Those that require a gradient are checked, and are float64.
    eps : float
        By how much an element is changed, up and down.
    atol, rtol : float
        How far a gradient may be from its difference: ``atol + rtol * abs(difference)``.
    raise_exception : bool
        Whether a wrong gradient is a :class:`GradcheckError`; else the result is False.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([0.5, 1.0], dtype=genesis.float64, requires_grad=True)
    >>> genesis.autograd.gradcheck(genesis.exp, x)
    True
    """
    given = _tuple(inputs)
    checked = [i for i, one in enumerate(given) if getattr(one, "requires_grad", False)]
    if not checked:
        raise ValueError("gradcheck: no input requires a gradient")
    for i in checked:
        if given[i].dtype != _C.float64:
            raise ValueError(f"gradcheck: input {i} is of {given[i].dtype}, not of float64")
    try:
        for number, output in enumerate(_tuple(func(*given))):
            if output.dtype.is_floating_point:
                _check_output(func, given, checked, number, output, (eps, atol, rtol))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_output(
    func: Callable[..., Any],
    given: tuple[Any, ...],
    checked: list[int],
    number: int,
    output: _C.Tensor,
    bounds: tuple[float, float, float],
) -> None:
    """Each gradient of each element of an output against its difference."""
    eps, atol, rtol = bounds
    rows = list(_analytic(output, [given[i] for i in checked]))
    for place, i in enumerate(checked):
        for element, column in enumerate(_differences(func, given, i, number, eps)):
            for row, difference in enumerate(column):
                found = rows[row][place][element]
                if not abs(found - difference) <= atol + rtol * abs(difference):
                    raise GradcheckError(
                        f"gradcheck: element {row} of output {number} with respect to element "
                        f"{element} of input {i} has the gradient {found!r}, and the difference "
                        f"{difference!r}"
                        + " (the output requires no gradient)"
                        * (not output.requires_grad)
                    )


def _analytic(output: _C.Tensor, inputs: list[_C.Tensor]) -> Iterator[list[list[float]]]:
    """For each element of an output, its gradients with respect to all elements of each input."""
    for element in range(output.numel()):
        found: tuple[Any, ...] = (None,) * len(inputs)
        if output.requires_grad:
            one = _C.zeros(output.numel(), dtype=output.dtype, device=output.device)
            one[element] = 1
            found = _grad(output, inputs, one.reshape(output.shape), False)
        yield [
            [0.0] * x.numel() if g is None else g.detach().reshape(-1).tolist()
            for x, g in zip(inputs, found, strict=True)
        ]


def _differences(
    func: Callable[..., Any], given: tuple[Any, ...], place: int, number: int, eps: float
) -> Iterator[list[float]]:
    """For each element of an input, the differences of all elements of an output."""
    before = given[place].detach().reshape(-1)
    for element in range(before.numel()):
        ends = []
        for step in (eps, -eps):
            moved = before.clone()
            moved[element] += step
            moved = moved.reshape(given[place].shape).requires_grad_()
            outputs = func(*given[:place], moved, *given[place + 1 :])
            ends.append(_tuple(outputs)[number].detach().reshape(-1))
        yield ((ends[0] - ends[1]) / (2 * eps)).tolist()


def gradgradcheck(
    func: Callable[..., Any],
    inputs: _C.Tensor | Sequence[Any],
    grad_outputs: _C.Tensor | Sequence[_C.Tensor] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare the gradients of the gradients of a function with central differences.

    Parameters are those of :func:`gradcheck`; `grad_outputs` are the gradients of the outputs:
    random numbers if they are left out.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([0.5, 1.0], dtype=genesis.float64, requires_grad=True)
    >>> genesis.autograd.gradgradcheck(genesis.exp, x)
    True
    """
    given = _tuple(inputs)
    outputs = _wanted(func(*given))
    if grad_outputs is None:
        seeds = tuple(_C.randn_like(one.detach()).requires_grad_() for one in outputs)
    else:
        seeds = _tuple(grad_outputs)

    def first(*both: Any) -> tuple[Any, ...]:
        own, seeds = both[: len(given)], both[len(given) :]
        asked = [one for one in own if getattr(one, "requires_grad", False)]
        found = _grad(_wanted(func(*own)), asked, seeds, True)
        return tuple(one for one in found if one is not None)

    return gradcheck(first, (*given, *seeds), eps, atol, rtol, raise_exception)


def _wanted(outputs: Any) -> tuple[_C.Tensor, ...]:
    return tuple(one for one in _tuple(outputs) if one.requires_grad)
