"""Names that PyTorch's scripts use and that ask for little here: formats, types, switches."""

from __future__ import annotations

from genesis import _C
from genesis._tensor_names import _TYPE_NAMES as TYPE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "are_deterministic_algorithms_enabled",
    "channels_last",
    "channels_last_3d",
    "compile",
    "contiguous_format",
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "get_deterministic_debug_mode",
    "get_num_interop_threads",
    "get_num_threads",
    "is_autocast_cpu_enabled",
    "is_complex",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_nonzero",
    "layout",
    "memory_format",
    "preserve_format",
    "set_autocast_cpu_dtype",
    "set_autocast_gpu_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "strided",
    "typename",
    "use_deterministic_algorithms",
]

# ---- formats ----


class memory_format(str):  # noqa: N801 - as in PyTorch
    """The order of elements in memory: `contiguous_format`, `channels_last` and others.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.zeros(2, 3, 4, 5).to(memory_format=genesis.channels_last)
    >>> x.shape, x.stride()
    ((2, 3, 4, 5), (60, 1, 15, 3))
    >>> x.is_contiguous(memory_format=genesis.channels_last), x.is_contiguous()
    (True, False)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"genesis.{str(self)}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return memory_format, (str(self),)


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


class layout(str):  # noqa: N801 - as in PyTorch
    """How a tensor's elements are kept; there is one way, `strided`.

    Examples
    --------
    >>> import genesis
    >>> genesis.zeros(2).layout
    genesis.strided
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"genesis.{str(self)}"


strided = layout("strided")


# ---- compiling ----


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
    """Give a model or function back as it is: operations are fused into kernels anyway.

    Without a function it is a decorator. The other arguments are accepted for PyTorch's sake;
    the first call says so in the log.

    Examples
    --------
    >>> import genesis
    >>> @genesis.compile
    ... def double(x):
    ...     return x * 2
    >>> double(genesis.ones(2))
    tensor([2., 2.])
    """
    from genesis import compiler

    return compiler.compile(
        model,
        fullgraph=fullgraph,
        dynamic=dynamic,
        backend=backend,
        mode=mode,
        options=options,
        disable=disable,
    )


# ---- types of tensors ----


def _tensor_type(name: str, dtype: _C.dtype, device: str) -> type:
    """A class such as FloatTensor: it makes tensors, and isinstance() asks for the dtype."""

    class _Type(type):
        def __instancecheck__(cls, instance: object) -> bool:
            is_tensor = isinstance(instance, _C.Tensor)
            return is_tensor and instance.dtype == dtype and instance.device.type == device

        def __str__(cls) -> str:  # x.type(genesis.FloatTensor)
            return f"genesis.{'cuda.' if device == 'cuda' else ''}{name}"

    def make(cls: type, *args: Any) -> _C.Tensor:
        """A tensor of data, or of sizes, whose elements are not set."""
        if len(args) == 1 and not isinstance(args[0], int):
            return _C.tensor(args[0], dtype=dtype, device=device)
        return _C.empty(args or (0,), dtype=dtype, device=device)

    document = f"A tensor of {dtype.name} on the type of device '{device}', of data or of sizes."
    return _Type(name, (), {"__new__": make, "__doc__": document, "__module__": "genesis"})


_made: dict[tuple[str, str], type] = {}


def tensor_type(name: str, device: str = "cpu") -> type:
    """The class that a name such as ``"FloatTensor"`` stands for.

    Examples
    --------
    >>> import genesis
    >>> genesis.LongTensor([1, 2]), genesis.FloatTensor(2, 3).shape
    (tensor([1, 2]), (2, 3))
    >>> isinstance(genesis.ones(2), genesis.FloatTensor)
    True
    """
    if (name, device) not in _made:
        _made[name, device] = _tensor_type(name, TYPE_NAMES[name], device)
    return _made[name, device]


def set_default_tensor_type(t: Any) -> None:
    """Choose the dtype and device of new tensors by a name such as ``"genesis.FloatTensor"``.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_default_tensor_type(genesis.FloatTensor)
    """
    words = str(t).split(".")
    dtype = TYPE_NAMES.get(words[-1])
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(f"set_default_tensor_type: {t!r} is no type of floating tensors")
    _C.set_default_dtype(dtype)
    if "cuda" in words:
        _C.set_default_device("cuda")


# ---- questions ----


def is_complex(input: _C.Tensor) -> bool:
    """Whether the elements are complex numbers: they never are.

    Examples
    --------
    >>> import genesis
    >>> genesis.is_complex(genesis.ones(2))
    False
    """
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"is_complex: {input!r} is not a Tensor")
    return False


def is_nonzero(input: _C.Tensor) -> bool:
    """Whether the one element is not 0.

    Examples
    --------
    >>> import genesis
    >>> genesis.is_nonzero(genesis.tensor([0.5]))
    True
    """
    if input.numel() != 1:
        raise RuntimeError(
            f"is_nonzero: the tensor has {input.numel()} elements: only one is true or false"
        )
    return bool(input.item())


def is_inference(input: _C.Tensor) -> bool:
    """Whether it was made in inference mode alone: no, such tensors are ordinary ones here."""
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"is_inference: {input!r} is not a Tensor")
    return False


def is_inference_mode_enabled() -> bool:
    """Whether gradients are off, which is all that inference mode does here.

    Examples
    --------
    >>> import genesis
    >>> with genesis.inference_mode():
    ...     genesis.is_inference_mode_enabled()
    True
    """
    return not _C.is_grad_enabled()


def typename(obj: Any) -> str:
    """The name of an object's type, with its module; of a tensor as type() gives it.

    Examples
    --------
    >>> import genesis
    >>> genesis.typename(genesis.ones(2))
    'genesis.FloatTensor'
    """
    if isinstance(obj, _C.Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    name = getattr(obj, "__qualname__", "") or type(obj).__qualname__
    if not module or module == "builtins":
        return name
    return f"{module}.{name}"


# ---- switches ----

_deterministic = {"mode": "default"}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operations that give the same bits each time: all of them do, asked or not.

    Examples
    --------
    >>> import genesis
    >>> genesis.use_deterministic_algorithms(True)
    >>> genesis.are_deterministic_algorithms_enabled()
    True
    >>> genesis.use_deterministic_algorithms(False)
    """
    _deterministic["mode"] = ("warn" if warn_only else "error") if mode else "default"


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms() was given."""
    return _deterministic["mode"] != "default"


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether that was with ``warn_only=True``."""
    return _deterministic["mode"] == "warn"


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same by ``"default"``, ``"warn"`` or ``"error"``, or by 0, 1 or 2.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_deterministic_debug_mode("default")
    >>> genesis.get_deterministic_debug_mode()
    0
    """
    words = ("default", "warn", "error")
    if debug_mode not in (*words, 0, 1, 2):
        raise ValueError(
            f"set_deterministic_debug_mode: 'default', 'warn' or 'error', not {debug_mode!r}"
        )
    _deterministic["mode"] = words[debug_mode] if isinstance(debug_mode, int) else debug_mode


def get_deterministic_debug_mode() -> int:
    """That as a number: 0, 1 or 2."""
    return ("default", "warn", "error").index(_deterministic["mode"])


def get_num_threads() -> int:
    """How many threads an operation on the CPU uses at most.

    Examples
    --------
    >>> import genesis
    >>> genesis.get_num_threads() >= 1
    True
    """
    return _C.get_num_threads()


def set_num_threads(int: int) -> None:
    """Set that, from the next operation on: :func:`genesis.cpu.set_num_threads`."""
    _C.set_num_threads(int)


def get_num_interop_threads() -> int:
    """How many operations run at the same time on the CPU: one in each thread that calls."""
    return 1


def set_num_interop_threads(int: int) -> None:
    """Accept any number from 1 on: there is nothing to set, since callers bring their threads.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_num_interop_threads(1)
    """
    if int < 1:
        raise RuntimeError(f"set_num_interop_threads: at least 1, not {int}")


def set_flush_denormal(mode: bool) -> bool:
    """Give False: numbers next to 0 are never replaced by it.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_flush_denormal(True)
    False
    """
    return False


# ---- older names of autocast ----


def is_autocast_cpu_enabled() -> bool:
    """``is_autocast_enabled("cpu")``."""
    return _C.is_autocast_enabled("cpu")


def get_autocast_gpu_dtype() -> _C.dtype:
    """``get_autocast_dtype("cuda")``."""
    return _C.get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> _C.dtype:
    """``get_autocast_dtype("cpu")``."""
    return _C.get_autocast_dtype("cpu")


def set_autocast_gpu_dtype(dtype: _C.dtype) -> None:
    """``set_autocast_dtype("cuda", dtype)``."""
    _C.set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: _C.dtype) -> None:
    """``set_autocast_dtype("cpu", dtype)``."""
    _C.set_autocast_dtype("cpu", dtype)
