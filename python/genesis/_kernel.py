"""Kernels of users: what their parameters are, read off the source, and compiling ahead of time."""

from __future__ import annotations

import re
from os import cpu_count
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from genesis import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
# What a pointer to halves points to: a letter that no parameter has.
_HALVES = {"__half": "e", "half": "e", "__nv_bfloat16": "E", "nv_bfloat16": "E"}
_UNKNOWN = " "
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


def _type_words(text: str, types: dict[str, str]) -> list[str]:
    """The words of a type, with those of template arguments in the place of their names."""
    words = _QUALIFIERS.sub(" ", text).split()
    return [part for word in words for part in _QUALIFIERS.sub(" ", types.get(word, word)).split()]


def _words_letter(words: list[str]) -> str:
    if words and set(words) <= _WORDS:
        key = " ".join(sorted(word for word in words if word not in ("int", "signed")))
        return _BUILT_IN.get(key, _BYTES)
    return _OTHER.get(words[0], _BYTES) if len(words) == 1 else _BYTES


def _without_name(parameter: str) -> str:
    """A parameter's type: all but the last word, which is the name, unless there is none."""
    words = _QUALIFIERS.sub(" ", parameter).split()
    is_named = len(words) > 1 and words[-1] not in _WORDS and words[-1] not in _OTHER
    return " ".join(words[:-1] if is_named else words)


def _parameter_letter(parameter: str, types: dict[str, str]) -> str:
    parameter = parameter.split("=")[0]
    if "*" in parameter or "[" in parameter:
        return _POINTER
    return _words_letter(_type_words(_without_name(parameter), types))


def _is_made(word: str, source: str) -> bool:
    """Whether the source makes a name by itself, which may then be anything."""
    kinds = rf"(?:define|using|struct|class|enum|union)\s+{word}\b|typedef\b[^;]*\b{word}\s*;"
    return re.search(kinds, source) is not None


def _parameter_pointee(parameter: str, types: dict[str, str], source: str) -> str:
    """What a parameter points to, where that is certain: the letter of a number, or a blank."""
    parameter = parameter.split("=")[0]
    if parameter.count("*") + parameter.count("[") != 1 or re.search(r"[(<&#]", parameter):
        return _UNKNOWN  # no pointer, one to a pointer or a function, a template, a macro's work
    before = parameter.partition("*")[0]
    words = _type_words(
        before if "*" in parameter else _without_name(parameter.partition("[")[0]), types
    )
    letter = _HALVES.get(words[0], _words_letter(words)) if words else _BYTES
    is_known = letter != _BYTES and not any(_is_made(word, source) for word in words)
    return letter if is_known else _UNKNOWN


class Declaration(NamedTuple):
    """The parameters of a kernel: a letter for each, what pointers point to, and their text."""

    letters: str
    pointees: str
    declared: tuple[str, ...]


def _declarations(source: str, name: str) -> Iterator[Declaration]:
    """Each place where the source declares the kernel: in branches of #if there may be several."""
    text = _COMMENT.sub(" ", source)
    base, _, arguments = name.partition("<")
    base = base.split("::")[-1].strip()
    for start in re.finditer(rf"__global__[^;{{]*?\b{re.escape(base)}\s*\(", text):
        end = _closing(text, start.end())
        if end < 0:
            return
        types: dict[str, str] = {}
        template = _TEMPLATE.search(text[: start.start()])
        if template and arguments:
            names = [part.split("=")[0].split()[-1] for part in _split(template[1])]
            types = dict(zip(names, _split(arguments.rpartition(">")[0]), strict=False))
        parameters = _split(text[start.end() : end])
        parameters = [] if parameters == ["void"] else parameters
        yield Declaration(
            "".join(_parameter_letter(one, types) for one in parameters),
            "".join(_parameter_pointee(one, types, text) for one in parameters),
            tuple(" ".join(one.split()) for one in parameters),
        )


def declaration_of(source: str, name: str) -> Declaration | None:
    """What the parameters of a kernel are; None where they are not found.

    What a pointer points to is known only where all declarations of the kernel say the same.

    Examples
    --------
    >>> from genesis._kernel import declaration_of
    >>> declaration_of("__global__ void f(const int *x, void *y, float a) {}", "f")
    Declaration(letters='PPf', pointees='i  ', declared=('const int *x', 'void *y', 'float a'))
    """
    first, *others = [*_declarations(source, name)] or [None]
    if first is None or all(other.pointees == first.pointees for other in others):
        return first
    return Declaration(first.letters, _UNKNOWN * len(first.letters), ())


def parameter_letters(source: str, name: str) -> str | None:
    """What the parameters of a kernel are, one letter each; None where they are not found.

    Examples
    --------
    >>> from genesis._kernel import parameter_letters
    >>> parameter_letters("__global__ void f(float *x, float a, unsigned n, size_t m) {}", "f")
    'PfIQ'
    """
    found = declaration_of(source, name)
    return found.letters if found is not None else None


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
    strict : bool
        Whether tensors and arrays that are given for pointers must be contiguous, of the type that
        the source declares, and on the device of the launch; and numbers for a ``float`` must fit
        it. A pointer to what is not known by its name takes any type.
    outputs : sequence of int
        The arguments that the kernel writes to; for `backward`.
    backward : callable, optional
        The gradient of a launch: ``backward(ctx, *gradients)`` is given the gradient of each output
        and gives one, or None, for each argument. ``ctx.saved_tensors`` are the tensors among the
        arguments but for the outputs, and ``ctx.args`` all arguments with None for tensors.

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
    a number that does not fit is a ValueError. An int is an address as it is: nothing is known of
    what lies there.
    """

    def __new__(
        cls,
        source: str,
        name: str,
        *,
        options: Sequence[str] = (),
        argtypes: Sequence[Any] | None = None,
        strict: bool = True,
        outputs: Sequence[int] = (),
        backward: Callable[..., Any] | None = None,
    ) -> Kernel:
        """Check the types of the parameters, and compile nothing yet."""
        if (backward is None) != (len(outputs) == 0):
            raise ValueError("backward needs outputs, the arguments that the kernel writes to")
        if backward is not None and cls is Kernel:
            cls = _DifferentiableKernel
        if isinstance(options, str):
            raise TypeError("options is a sequence of str, not one str")
        if argtypes is None:
            found = declaration_of(source, name)
        else:
            given = "".join(_type_letter(one) for one in argtypes)
            found = Declaration(given, _UNKNOWN * len(given), ())
        letters, pointees, declared = found or (None, None, ())
        pointees = pointees if strict else None
        made = super().__new__(cls, source, name, tuple(options), letters, pointees, declared)
        if backward is not None:
            made._outputs, made._backward = tuple(outputs), backward
        return made


class _DifferentiableKernel(Kernel):
    """A kernel with a gradient: its launches are recorded."""

    _outputs: tuple[int, ...]
    _backward: Callable[..., Any]

    def __call__(
        self, grid: Any, block: Any, args: Sequence[Any] = (), shared: int = 0, stream: Any = None
    ) -> None:
        args = tuple(args)
        super().__call__(grid, block, args, shared, stream)
        if not _C.is_grad_enabled():
            return
        inputs = tuple(one if isinstance(one, _C.Tensor) else None for one in args)
        written = tuple(inputs[place] for place in self._outputs)
        if any(one is None for one in written):
            raise TypeError(f"{self.name}: the outputs of a kernel with backward must be tensors")
        saved = tuple(
            one
            for place, one in enumerate(inputs)
            if one is not None and place not in self._outputs
        )
        call = _Launch(
            self._backward,
            tuple(None if t is not None else a for t, a in zip(inputs, args, strict=True)),
        )
        _C._record_custom(self.name, call, inputs, written, saved)


class _Launch:
    """What the graph holds of a launch; in its backward pass it is the ``ctx``."""

    saved_tensors: tuple[Any, ...] = ()

    def __init__(self, backward: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.backward, self.args = backward, args

    def __call__(
        self, saved: tuple[Any, ...], given: tuple[Any, ...], needed: tuple[bool, ...]
    ) -> tuple[Any, ...]:
        self.saved_tensors, self.needs_input_grad = saved, needed
        try:
            found = self.backward(self, *given)
        finally:
            self.saved_tensors = ()
        return found if isinstance(found, tuple) else (found,)


_WARM_UP = 'extern "C" __global__ void genesis_warm_up() {}'


def _compile_all(kernels: list[_C.Kernel], where: _C.device) -> None:
    """Several at once. Raises the first failure, after all have been tried."""
    waiting = kernels[::-1]
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

    threads = [Thread(target=work) for _ in range(min(len(waiting), cpu_count() or 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def warm_up_kernels(
    kernels: Iterable[_C.Kernel] | None = None, device: DeviceLike = None, *, wait: bool = True
) -> None:
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
    wait : bool, optional
        False: return at once, and compile in the background. A launch that needs a kernel before
        waits for it; :func:`wait_for_kernels` waits for all.

    Raises
    ------
    RuntimeError
        The first failure, after all have been tried. Without waiting, the log has it, and the first
        launch raises it.

    Examples
    --------
    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     genesis.cuda.warm_up_kernels()
    """
    where = _C.device(device) if device is not None else _C.device("cuda", _C.current_device())
    wanted = list(kernels or ())
    if not wait:
        for kernel in wanted:
            kernel.compile(where, wait=False)
        if kernels is None:
            _C.warm_up_operations(where, False)
        return
    start = Kernel(_WARM_UP, "genesis_warm_up")
    start(1, 1, (), stream=_C.default_stream(where))
    try:
        _compile_all(wanted, where)
    finally:
        if kernels is None:
            _C.warm_up_operations(where, True)
        _C.synchronize(where)
