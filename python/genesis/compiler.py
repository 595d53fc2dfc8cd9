"""What PyTorch's programs call to compile models. Here nothing needs to be compiled by hand.

Elementwise operations and reductions wait and become one kernel, in any program: there is no graph
to be captured, and so nothing that breaks it.

Examples
--------
>>> import genesis
>>> genesis.compiler.is_compiling()
False
"""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]

_is_told = False


def _same(function: Any) -> Any:
    return function


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Give a model or function back as it is, or a decorator that does so: genesis.compile().

    Examples
    --------
    >>> import genesis
    >>> genesis.compiler.compile(abs, mode="max-autotune") is abs
    True
    """
    global _is_told
    if mode is not None and options is not None:
        raise RuntimeError("compile: either mode or options can be given, not both")
    if model is not None and not callable(model):
        raise TypeError(f"compile: a model or a function, not {model!r}")
    if not _is_told:
        _is_told = True
        getLogger("genesis").info(
            "compile() gives what it is given: operations are fused into kernels as they are"
        )
    return model if model is not None else _same


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Give a function back as it is, or a decorator that does so."""
    return fn if fn is not None else _same


def allow_in_graph(fn: Any) -> Any:
    """Give a function back as it is."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Give a function back as it is."""
    return fn


def is_compiling() -> bool:
    """Whether a program is being captured: it never is."""
    return False


def is_dynamo_compiling() -> bool:
    """The same."""
    return False


def is_exporting() -> bool:
    """The same."""
    return False


def reset() -> None:
    """Nothing: there are no captured programs. genesis.cuda.clear_kernel_cache() is for kernels."""


def cudagraph_mark_step_begin() -> None:
    """Nothing: graphs are captured with :class:`genesis.cuda.graph` alone."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Names for ``backend=``, all of which mean the same.

    Examples
    --------
    >>> import genesis
    >>> genesis.compiler.list_backends()
    ['inductor']
    """
    return ["inductor"]
