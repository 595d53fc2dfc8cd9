"""Hooks of the gradients of a module.

Tensors go through an operation that gives them as they are, before ``forward`` and behind it.
In the backward pass the second one is met first: it has the gradients of the outputs. The first
one has those of the inputs.
"""

from __future__ import annotations

from genesis import _C
from genesis.autograd.function import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from genesis.autograd.function import FunctionCtx


class _Passed(Function):
    """Tensors as they are; `change` gets their gradients, and gives those that are used."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, change: Callable[[tuple[Any, ...]], Any], *tensors: _C.Tensor
    ) -> tuple[_C.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.change = change  # type: ignore[attr-defined]
        ctx.mark_non_differentiable(*[one for one in tensors if not one.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Any) -> tuple[Any, ...]:
        return None, *ctx.change(gradients)  # type: ignore[attr-defined]


def _spread(places: Sequence[int], values: Sequence[Any], count: int) -> tuple[Any, ...]:
    """A tuple with values at some places, and None at the others."""
    found = dict(zip(places, values, strict=True))
    return tuple(found.get(place) for place in range(count))


class BackwardHooks:
    """The hooks of one call of a module."""

    def __init__(
        self, module: Any, pre: list[Callable[..., Any]], post: list[Callable[..., Any]]
    ) -> None:
        self.module, self.pre, self.post = module, pre, post
        self.grad_output: tuple[Any, ...] | None = None  # from the outputs on to the inputs
        self.input_places: list[int] | None = None  # of tensors; None: no input has a gradient
        self.input_count = 0

    def _watch(
        self, values: tuple[Any, ...], change: Callable[[list[int], tuple[Any, ...]], Any]
    ) -> tuple[tuple[Any, ...], list[int] | None]:
        places = [place for place, one in enumerate(values) if isinstance(one, _C.Tensor)]
        if not (_C.is_grad_enabled() and any(values[place].requires_grad for place in places)):
            return values, None
        given = _Passed.apply(
            lambda gradients: change(places, gradients), *[values[place] for place in places]
        )
        passed = dict(zip(places, given, strict=True))
        return tuple(passed.get(place, one) for place, one in enumerate(values)), places

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, whose gradients the hooks behind the module will get."""
        args, self.input_places = self._watch(args, self._inputs_reached)
        self.input_count = len(args)
        return args

    def watch_outputs(self, result: Any) -> Any:
        """The output, whose gradients the hooks before the module will get."""
        if not isinstance(result, (_C.Tensor, tuple)):
            import warnings

            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=4,
            )
            return result
        values = result if isinstance(result, tuple) else (result,)
        self.output_count = len(values)
        values, _ = self._watch(values, self._outputs_reached)
        return values if isinstance(result, tuple) else values[0]

    def _outputs_reached(self, places: list[int], gradients: tuple[Any, ...]) -> Any:
        grads = _spread(places, gradients, self.output_count)
        for hook in self.pre:
            given = hook(self.module, grads)
            if given is None:
                continue
            given = given if isinstance(given, tuple) else (given,)
            if len(given) != len(grads):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(given)}, but expected {len(grads)}"
                )
            grads = given
        self.grad_output = grads
        if self.input_places is None:
            self._call_without_inputs(grads)
        return tuple(grads[place] for place in places)

    def _call_without_inputs(self, grads: tuple[Any, ...]) -> None:
        """No input requires a gradient: the hooks are called when the outputs' are there."""
        nothing = (None,) * self.input_count
        for hook in self.post:
            given = hook(self.module, nothing, grads)
            if given is not None and not (
                isinstance(given, tuple) and all(one is None for one in given)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_output = None

    def _inputs_reached(self, places: list[int], gradients: tuple[Any, ...]) -> Any:
        if self.grad_output is None:  # the gradient did not come through the module's output
            return gradients
        grads = _spread(places, gradients, self.input_count)
        for hook in self.post:
            given = hook(self.module, grads, self.grad_output)
            if given is None:
                continue
            given = given if isinstance(given, tuple) else (given,)
            if len(given) != len(grads):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(given)}, but expected {len(grads)}"
                )
            grads = given
        self.grad_output = None
        return tuple(grads[place] for place in places)
