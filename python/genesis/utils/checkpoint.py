"""Computing again in the backward pass instead of keeping what the forward pass has made."""

from __future__ import annotations

from sys import modules

from genesis import _C
from genesis.autograd.graph import saved_tensors_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["checkpoint", "checkpoint_sequential"]


class _RecomputedError(Exception):
    """All values that were asked for are there: the rest of the function need not run."""


class _Frame:
    """One call of a function whose saved values are dropped."""

    def __init__(
        self,
        call: Callable[[], Any],
        state: _C.Tensor | None,
        deterministic: bool,
        early_stop: bool,
    ) -> None:
        self.call, self.state, self.deterministic = call, state, deterministic
        self.early_stop = early_stop
        self.likes: list[Any] = []  # (shape, dtype, device) of each value that was dropped
        self.values: dict[int, _C.Tensor] = {}

    def pack(self, tensor: _C.Tensor) -> int:
        self.likes.append((tensor.shape, tensor.dtype, tensor.device))
        return len(self.likes) - 1

    def unpack(self, place: int) -> _C.Tensor:
        if place not in self.values:
            self.recompute()
        return self.values.pop(place)

    def recompute(self) -> None:
        """Run the function again, and keep what it saves.

        The graph of this run has no use. Where gradients are to be differentiated, values get
        their records of the first run back, so they must not bring others.
        """
        count, is_graph = 0, _C.is_grad_enabled()

        def keep(tensor: _C.Tensor) -> None:
            nonlocal count
            if count < len(self.likes):
                if self.deterministic:
                    self.check(count, tensor)
                self.values[count] = tensor.detach() if is_graph else tensor
            count += 1
            if count == len(self.likes) and self.early_stop:
                raise _RecomputedError

        before = _C.get_rng_state()
        if self.state is not None:
            _C.set_rng_state(self.state)
        was_on = _C._set_gradients(True)
        try:
            with saved_tensors_hooks(keep, _never):
                self.call()
        except _RecomputedError:
            pass
        finally:
            _C._set_gradients(was_on)
            if self.state is not None:
                _C.set_rng_state(before)
        if count < len(self.likes):
            raise RuntimeError(
                f"checkpoint: the function saved {len(self.likes)} values at first, and {count} "
                "when it was called again: it must do the same each time"
            )

    def check(self, place: int, tensor: _C.Tensor) -> None:
        found = (tensor.shape, tensor.dtype, tensor.device)
        if found != self.likes[place]:
            raise RuntimeError(
                f"checkpoint: value {place} was {_text(self.likes[place])} at first, and is "
                f"{_text(found)} when the function is called again: it must do the same each time"
            )


def _text(like: Any) -> str:
    return f"{like[1]} of shape {like[0]} on {like[2]}"


def _autocast_modes() -> list[Any]:
    """The mixed precision of this call, for the time when it is made again."""
    if "genesis.amp" not in modules and not any(map(_C.is_autocast_enabled, ("cpu", "cuda"))):
        return []
    from genesis.amp import autocast

    return [
        autocast(
            device,
            dtype=_C.get_autocast_dtype(device),
            enabled=_C.is_autocast_enabled(device),
            cache_enabled=_C.is_autocast_cache_enabled(),
        )
        for device in ("cpu", "cuda")
    ]


def _never(_: Any) -> Any:
    raise RuntimeError("checkpoint: a value of a function that is being called again is asked for")


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    context_fn: Any = None,
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what its gradient needs: that is computed again later.

    Parameters
    ----------
    function : callable
        It must do the same each time that it is called with these arguments.
    *args, **kwargs :
        Its arguments.
    use_reentrant : bool, optional
        Accepted for PyTorch's sake; there is one way here, which both values mean.
    preserve_rng_state : bool
        Whether random numbers are the same the second time.
    determinism_check : str
        ``"default"`` compares shapes, types and devices of both times; ``"none"`` does not.
    context_fn : callable, optional
        Gives two context managers, for the first call and for the others.
    debug : bool
        Accepted for PyTorch's sake.
    early_stop : bool
        Whether the second call ends as soon as it has computed what is needed.

    Examples
    --------
    >>> import genesis
    >>> from genesis.utils.checkpoint import checkpoint
    >>> x = genesis.tensor([2.0], requires_grad=True)
    >>> checkpoint(lambda x: x.exp().log() * x, x).backward()
    >>> x.grad
    tensor([4.])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: determinism_check is 'default' or 'none', not {determinism_check!r}"
        )
    if not _C.is_grad_enabled():
        return function(*args, **kwargs)
    from contextlib import ExitStack, nullcontext

    first, second = context_fn() if context_fn is not None else (nullcontext(), nullcontext())
    modes = _autocast_modes()

    def again() -> Any:
        with second, ExitStack() as stack:
            for mode in modes:
                stack.enter_context(mode)
            return function(*args, **kwargs)

    state = _C.get_rng_state() if preserve_rng_state else None
    frame = _Frame(again, state, determinism_check == "default", early_stop)
    with first, saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call functions one after the other, in segments that are checkpoints, but for the last.

    Examples
    --------
    >>> import genesis
    >>> from genesis.utils.checkpoint import checkpoint_sequential
    >>> x = genesis.tensor([2.0], requires_grad=True)
    >>> checkpoint_sequential([genesis.exp, genesis.log, genesis.square], 2, x).backward()
    >>> x.grad
    tensor([4.])
    """
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(1, len(steps) // segments)

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def segment(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return segment

    start = 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, **kwargs)
    return run(size * (segments - 1), len(steps))(input)
