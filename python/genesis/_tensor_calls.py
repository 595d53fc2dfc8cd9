"""How the tensor functions that are written in Python are called: one rule for all of them.

A module hands its functions to :func:`publish`, which puts one wrapper around each. Then

- an error names the function that was called, whatever it is made of: ``addmm: shapes ...``, where
  the addition in it said ``add: shapes ...``;
- NumPy's ``axis`` and ``keepdims`` stand for ``dim`` and ``keepdim``, where it has these, and
  ``axes`` and ``axis`` for ``dims``;
- ``out=`` is written to, where that is in the signature: a function that does not do so itself
  never sees it;
- those of the module's tables are methods of Tensor, too, and have a form in place.

Functions of C do all of this themselves (python_tensor_ops.c).
"""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_KINDS = (ValueError, TypeError, IndexError, _C.ShapeError)  # whose text is a sentence of ours
_PLAIN = (int, float, complex, str, list, tuple, dict, type(None))  # given in a tensor's place


def named(name: str, text: str) -> str:
    """The sentence of an error, with the function that was called in place of an inner one."""
    if text.startswith("descriptor '"):  # a method of Tensor, called for something else
        return f"{name}: the input is a Tensor, not {text.rpartition(' to a ')[2]}"
    head, colon, rest = text.partition(": ")
    if head.removesuffix("()") == name or text.startswith(f"{name}() "):
        return text
    if colon and head.removesuffix("()").isidentifier():
        return f"{name}: {rest}"
    word, verb, rest = text.partition(" is not defined for ")
    if rest and word.isidentifier():
        return f"{name}{verb}{rest}"
    word, _, rest = text.partition("() ")
    return f"{name}() {rest}" if rest and word.isidentifier() else f"{name}: {text}"


def _rename(name: str, error: Exception) -> None:
    if type(error) in _KINDS and len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (named(name, error.args[0]),)


def _write(made: Any, out: Any) -> Any:
    """The result, or the tuple of them, in tensors of their shapes; `out` itself."""
    is_alone = isinstance(made, _C.Tensor)
    results, places = ((made,), (out,)) if is_alone else (made, out)
    if not isinstance(places, (tuple, list)) or len(places) != len(results):
        raise TypeError(f"out is a tuple of {len(results)} tensors, not {out!r}")
    for one, place in zip(results, places, strict=True):
        if not isinstance(place, _C.Tensor):
            raise TypeError(f"out is a tensor, not {place!r}")
        if one.shape != place.shape:
            raise _C.ShapeError(
                f"a result of shape {one.shape} does not fit a tensor of {place.shape}"
            )
        if not _C.can_cast(one.dtype, place.dtype):
            raise TypeError(
                f"a result of {one.dtype.name} cannot be stored as {place.dtype.name}: "
                "cast it first"
            )
    for one, place in zip(results, places, strict=True):
        place.copy_(one)
    return out


def _wrapped(function: Callable[..., Any], name: str, has_own_out: bool) -> Callable[..., Any]:
    code = function.__code__
    takes = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    has_dim, has_keepdim, has_dims = "dim" in takes, "keepdim" in takes, "dims" in takes
    writes_out = "out" in takes and not has_own_out

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                return function(*args)
            if has_dim and "axis" in kwargs and "dim" not in kwargs:
                kwargs["dim"] = kwargs.pop("axis")
            if has_dims and "dims" not in kwargs and not kwargs.keys().isdisjoint(("axes", "axis")):
                kwargs["dims"] = kwargs.pop("axes" if "axes" in kwargs else "axis")
            if has_keepdim and "keepdims" in kwargs and "keepdim" not in kwargs:
                kwargs["keepdim"] = kwargs.pop("keepdims")
            out = kwargs.pop("out", None) if writes_out else None
            if has_own_out and not isinstance(kwargs.get("out"), (_C.Tensor, type(None))):
                raise TypeError(f"out is a tensor, not {kwargs['out']!r}")
            made = function(*args, **kwargs)
            return made if out is None else _write(made, out)
        except _KINDS as error:
            _rename(name, error)
            raise
        except AttributeError as error:
            if not isinstance(error.obj, _PLAIN):
                raise
            raise TypeError(f"{name}: {error.obj!r} is not a Tensor") from None

    call.__wrapped__ = function  # for inspect.signature()
    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = function.__module__, function.__doc__
    return call


def _in_place(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: _C.Tensor, *args: Any, **kwargs: Any) -> _C.Tensor:
        try:
            if "out" in kwargs:
                raise TypeError("the tensor itself is where the result goes: out= is not for this")
            return function(self, *args, **kwargs, out=self)
        except _KINDS as error:
            _rename(name, error)
            raise

    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = function.__module__, f"In place: {function.__doc__}"
    return call


def publish(
    module: dict[str, Any],
    functions: Iterable[str],
    *,
    methods: Iterable[str] = (),
    in_place: Iterable[str] = (),
    own_out: Iterable[str] = (),
) -> None:
    """Wrap functions of a module, and make methods of them.

    Parameters
    ----------
    module : dict
        Its globals(), in which they are replaced.
    functions, methods : names
        What it offers, and which of it, or beside it, are methods of Tensor.
    in_place : names
        Those that have a method with an underscore, which writes into the tensor itself.
    own_out : names
        Those that write to ``out`` themselves.
    """
    own = {*own_out}
    for name in {*functions, *methods}:
        if type(module[name]) is type(publish):  # what is the extension's does this itself
            module[name] = _wrapped(module[name], name, name in own)
    for name in methods:
        setattr(_C.Tensor, name, module[name])
    for name in in_place:
        setattr(_C.Tensor, f"{name}_", _in_place(f"{name}_", module[name]))
