"""Operations with a gradient of one's own."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What ``forward`` of a :class:`Function` leaves for ``backward``.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument whether its gradient is needed.
    saved_tensors : tuple
        In ``backward``: what ``save_for_backward`` was given.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _saved: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _constant: tuple[Any, ...] = ()
    _materializes = True
    _values: tuple[Any, ...] | None = None

    def save_for_backward(self, *tensors: _C.Tensor | None) -> None:
        """Keep tensors for ``backward``: arguments, results, or others."""
        for one in tensors:
            if one is not None and not isinstance(one, _C.Tensor):
                raise TypeError(
                    f"save_for_backward: {type(one).__name__} is no Tensor: keep it as an "
                    "attribute of ctx"
                )
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved; a value that was changed since is a RuntimeError of ``backward``."""
        return self._saved if self._values is None else self._values

    def mark_dirty(self, *tensors: _C.Tensor) -> None:
        """Say which arguments ``forward`` has changed in place; it returns them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: _C.Tensor) -> None:
        """Say which results have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether ``backward`` gets zeros (the default) or None for what has no gradient."""
        self._materializes = value


class _Call:
    """What the graph holds of one call of a Function."""

    def __init__(self, function: type[Function], ctx: FunctionCtx) -> None:
        self.function, self.ctx = function, ctx
        self.results: list[Any] = []  # (shape, dtype, device) of each; None: it has no gradient
        self.saved_count = 0
        self.holes: list[int] = []  # places of None among the saved ones

    def __call__(
        self, saved: tuple[Any, ...], given: tuple[Any, ...], needed: tuple[bool, ...]
    ) -> tuple[Any, ...]:
        ctx, values, grads = self.ctx, list(saved), iter(given)
        for place in self.holes:
            values.insert(place, None)
        gradients = [None if like is None else next(grads) for like in self.results]
        if ctx._materializes:
            gradients = [
                _C.zeros(like[0], dtype=like[1], device=like[2])
                if one is None and like is not None
                else one
                for one, like in zip(gradients, self.results, strict=True)
            ]
        ctx._values = tuple(values)
        try:
            found = self.function.backward(ctx, *gradients)
        finally:
            ctx._values = None
        return self._checked(found, needed)

    def _checked(self, found: Any, needed: tuple[bool, ...]) -> tuple[Any, ...]:
        """As many gradients as there are arguments; more are allowed if they are None."""
        grads = found if isinstance(found, tuple) else (found,)
        name, count = self.function.__name__, len(needed)
        if len(grads) > count and all(one is None for one in grads[count:]):
            grads = grads[:count]
        if len(grads) != count:
            raise RuntimeError(
                f"{name}.backward: it gives {len(grads)} gradients, and forward has {count} "
                "arguments"
            )
        return grads


class Function:
    """An operation with a gradient of its own: a class with ``forward`` and ``backward``.

    ``forward(ctx, *args)`` computes without gradients and keeps in `ctx` what ``backward(ctx,
    *grad_outputs)`` needs; that one gives a gradient, or None, for each argument. Or ``forward``
    has no ctx, and ``setup_context(ctx, inputs, output)`` keeps it. ``Name.apply()`` is the call.

    Examples
    --------
    >>> import genesis
    >>> class Cube(genesis.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * 3 * x**2
    >>> x = genesis.tensor([2.0], requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor([12.])
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results."""
        raise NotImplementedError("a Function must define forward()")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep what ``backward`` needs, if ``forward`` has no ctx."""

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        """Compute the gradients of the arguments."""
        raise NotImplementedError("a Function must define backward()")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call it, and record the call for gradients."""
        ctx = FunctionCtx()
        tensors = [isinstance(one, _C.Tensor) for one in args]
        ctx.needs_input_grad = tuple(
            is_tensor and one.requires_grad for is_tensor, one in zip(tensors, args, strict=True)
        )
        is_separate = cls.setup_context is not Function.setup_context
        is_recorded = any(ctx.needs_input_grad) and _C.is_grad_enabled()
        with no_grad():
            output = cls.forward(*args) if is_separate else cls.forward(ctx, *args)
            if is_separate:
                cls.setup_context(ctx, args, output)
        return _record(cls, ctx, args, output) if is_recorded else output


def _is_among(tensor: Any, others: tuple[Any, ...]) -> bool:
    return any(tensor is one for one in others)


def _record(cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], output: Any) -> Any:
    outputs = list(output) if isinstance(output, (tuple, list)) else [output]
    call = _Call(cls, ctx)
    places = []  # of the outputs that have gradients
    for place, one in enumerate(outputs):
        has_gradient = (
            isinstance(one, _C.Tensor)
            and one.dtype.is_floating_point
            and not _is_among(one, ctx._constant)
        )
        call.results.append((one.shape, one.dtype, one.device) if has_gradient else None)
        if has_gradient:
            places.append(place)
    for one in ctx._dirty:
        if not _is_among(one, tuple(outputs)):
            raise RuntimeError(f"{cls.__name__}: an argument that is marked dirty must be returned")
    for place in places:
        # An argument that is returned as it is becomes a tensor of its own.
        if _is_among(outputs[place], args) and not _is_among(outputs[place], ctx._dirty):
            outputs[place] = outputs[place].detach()
    call.holes = [place for place, one in enumerate(ctx._saved) if one is None]
    saved = tuple(one for one in ctx._saved if one is not None)
    ctx._saved = ()
    results = tuple(outputs[place] for place in places)
    _separate(ctx, results)
    for place, one in zip(
        places, _C._record_custom(cls.__name__, call, args, results, saved), strict=True
    ):
        outputs[place] = one
    if isinstance(output, (tuple, list)):
        return type(output)(outputs) if type(output) in (tuple, list) else tuple(outputs)
    return outputs[0]


def _separate(ctx: FunctionCtx, results: tuple[Any, ...]) -> None:
    """Give ctx other tensors for results that are its attributes: they would hold each other."""
    for name, value in vars(ctx).items():
        if _is_among(value, results):
            setattr(ctx, name, value.detach())


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Make a ``backward`` whose results cannot be differentiated again; trying that is an error."""
    from functools import wraps

    @wraps(backward)
    def once(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        with no_grad():
            found = backward(ctx, *grad_outputs)
        if not _C.is_grad_enabled():
            return found
        grads = list(found) if isinstance(found, tuple) else [found]
        tensors = [one for one in grads if isinstance(one, _C.Tensor)]
        inputs = tuple(one for one in grad_outputs if isinstance(one, _C.Tensor))
        inputs += tuple(one for one in ctx.saved_tensors if one is not None)
        marked = iter(_C._record_custom("OnceDifferentiable", _refuse, inputs, tuple(tensors), ()))
        found = tuple(next(marked) if isinstance(one, _C.Tensor) else one for one in grads)
        return found[0] if len(found) == 1 else found

    return once


def _refuse(*_: Any) -> Any:
    raise RuntimeError(
        "a function that is marked with once_differentiable cannot be differentiated twice"
    )
