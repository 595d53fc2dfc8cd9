"""Kernels of users: what their parameters are, read off the source, and compiling ahead of time."""

from __future__ import annotations

import re
from os import cpu_count
from threading import Thread
from typing import TYPE_CHECKING, Any

from genesis import _C

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from genesis.cuda import DeviceLike

# One letter for each parameter, as python_kernel.c reads them.
_POINTER, _BYTES = "P", "x"
_NAMES = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
    "float16": _BYTES,
    "bfloat16": _BYTES,
    "pointer": _POINTER,
    "bytes": _BYTES,
}
# C's own names, with the words in alphabetical order and without int, signed and const.
_WORDS = {"unsigned", "signed", "long", "short", "int", "char"}
_BUILT_IN = {
    "char": "b",
    "char unsigned": "B",
    "short": "h",
    "short unsigned": "H",
    "": "i",
    "unsigned": "I",
    "long": "q",
    "long unsigned": "Q",
    "long long": "q",
    "long long unsigned": "Q",
}
_OTHER = {
    "float": "f",
    "double": "d",
    "bool": "?",
    "size_t": "Q",
    "ptrdiff_t": "q",
    "intptr_t": "q",
    "uintptr_t": "Q",
    "CUdeviceptr": "Q",
    "cudaTextureObject_t": "Q",
    "cudaSurfaceObject_t": "Q",
    **{f"{name}_t": letter for name, letter in _NAMES.items() if "int" in name and letter != "P"},
}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|struct|__restrict__|__restrict|__grid_constant__)\b|\bstd\s*::"
)
_TEMPLATE = re.compile(r"template\s*<([^<>]*)>[^;{}]*$")


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside of all brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one before ``start``; -1 if none does."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return -1


def _parameter_letter(parameter: str, types: dict[str, str]) -> str:
    parameter = parameter.split("=")[0]
    if "*" in parameter or "[" in parameter:
        return _POINTER
    words = _QUALIFIERS.sub(" ", parameter).split()
    # All but the last word, which is the name, unless there is none.
    if len(words) > 1 and words[-1] not in _WORDS and words[-1] not in _OTHER:
        words.pop()
    words = [part for word in words for part in types.get(word, word).split()]
    if words and set(words) <= _WORDS:
        key = " ".join(sorted(word for word in words if word not in ("int", "signed")))
        return _BUILT_IN.get(key, _BYTES)
    return _OTHER.get(words[0], _BYTES) if len(words) == 1 else _BYTES


def parameter_letters(source: str, name: str) -> str | None:
    """What the parameters of a kernel are, one letter each; None where they are not found.

    Examples
    --------
    >>> from genesis._kernel import parameter_letters
    >>> parameter_letters("__global__ void f(float *x, float a, unsigned n, size_t m) {}", "f")
    'PfIQ'
    """
    text = _COMMENT.sub(" ", source)
    base, _, arguments = name.partition("<")
    base = base.split("::")[-1].strip()
    start = re.search(rf"__global__[^;{{]*?\b{re.escape(base)}\s*\(", text)
    end = _closing(text, start.end()) if start else -1
    if start is None or end < 0:
        return None
    types: dict[str, str] = {}
    template = _TEMPLATE.search(text[: start.start()])
    if template and arguments:
        names = [part.split("=")[0].split()[-1] for part in _split(template[1])]
        types = dict(zip(names, _split(arguments.rpartition(">")[0]), strict=False))
    parameters = _split(text[start.end() : end])
    if parameters == ["void"]:
        return ""
    return "".join(_parameter_letter(parameter, types) for parameter in parameters)


def _type_letter(one: Any) -> str:
    name = {int: "int64", float: "float64", bool: "bool"}.get(one) if isinstance(one, type) else one
    name = str(name).split(".")[-1]  # a dtype's text ends in its name, NumPy's and PyTorch's, too
    if name not in _NAMES:
        raise TypeError(
            f"{one!r} is not the type of a kernel's parameter: give 'pointer', a dtype, its name, "
            "or 'bytes'"
        )
    return _NAMES[name]


class Kernel(_C.Kernel):
    """A kernel written in CUDA C, compiled when it is first launched on a device.

    Compiled code is kept in the process and on disk, so that the same text is not compiled again.

    Parameters
    ----------
    source : str
        CUDA C++.
    name : str
        The kernel in there, a ``__global__`` function: as C++ writes it, such as
        ``"scale<float>"``, or plain.
    options : sequence of str
        For NVRTC, such as ``"--use_fast_math"`` or ``"-DN=4"``. The architecture is added.
    argtypes : sequence, optional
        The type of each parameter: ``"pointer"``, a dtype or its name, or ``"bytes"`` for what is
        passed as it is (structures, half precision). Not needed where the source declares them in
        C's own words.

    Examples
    --------
    >>> import genesis
    >>> twice = genesis.cuda.Kernel(
    ...     "__global__ void twice(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }",
    ...     "twice",
    ... )
    >>> if genesis.cuda.is_available():
    ...     x = genesis.memory_manager.allocate_memory(400)
    ...     twice(grid=1, block=128, args=(x, 100))
    ...     genesis.memory_manager.free_memory(x)

    Notes
    -----
    ``kernel(grid, block, args, shared=0, stream=None)`` submits a launch to a stream, the current
    one if none is given. ``grid`` and ``block`` are a number or up to three. A pointer is given as
    an int, None, or an object with ``data_ptr()`` or ``__cuda_array_interface__``; its memory must
    stay alive until the kernel has run. Other arguments are converted to the parameter's type;
    a number that does not fit is a ValueError.
    """

    def __new__(
        cls,
        source: str,
        name: str,
        *,
        options: Sequence[str] = (),
        argtypes: Sequence[Any] | None = None,
    ) -> Kernel:
        """Check the types of the parameters, and compile nothing yet."""
        if isinstance(options, str):
            raise TypeError("options is a sequence of str, not one str")
        if argtypes is None:
            letters = parameter_letters(source, name)
        else:
            letters = "".join(_type_letter(one) for one in argtypes)
        return super().__new__(cls, source, name, tuple(options), letters)


_WARM_UP = 'extern "C" __global__ void genesis_warm_up() {}'


def warm_up_kernels(kernels: Iterable[_C.Kernel] | None = None, device: DeviceLike = None) -> None:
    """Compile kernels ahead of time, several at once, so that no later launch waits for it.

    Starts the device, too, and what CUDA does at its first launch.

    Parameters
    ----------
    kernels : iterable of Kernel, optional
        Those that will be needed. If not given: the kernels of common operations on contiguous
        float32 tensors, which are one of ``+ - * /`` with a tensor or a number, exp, sqrt, relu,
        tanh, sigmoid, filling, and sums, means and maxima of rows and columns. Chains of operations
        have kernels of their own, which are compiled when they are first met.
    device : device, str or int, optional
        The current CUDA device if not given.

    Raises
    ------
    RuntimeError
        The first failure, after all have been tried.

    Examples
    --------
    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     genesis.cuda.warm_up_kernels()
    """
    where = _C.device(device) if device is not None else _C.device("cuda", _C.current_device())
    waiting = list(kernels or ())
    waiting.reverse()
    failures: list[Exception] = []

    def work() -> None:
        while True:
            try:
                kernel = waiting.pop()
            except IndexError:
                return
            try:
                kernel.compile(where)
            except Exception as error:
                failures.append(error)

    start = Kernel(_WARM_UP, "genesis_warm_up")
    start(1, 1, (), stream=_C.default_stream(where))
    threads = [Thread(target=work) for _ in range(min(len(waiting), cpu_count() or 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if kernels is None:
        _C.warm_up_operations(where)
    _C.synchronize(where)
    if failures:
        raise failures[0]
