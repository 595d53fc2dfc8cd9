"""Genesis: tensor storage and memory management for CPUs and GPUs.

Importing this package starts nothing: the CUDA driver is loaded at the first use of a CUDA device.

Examples
--------
>>> import genesis
>>> manager = genesis.memory_manager
>>> address = manager.allocate_memory(1 << 20)
>>> manager.free_memory(address)
"""

from __future__ import annotations

from os import environ

from genesis import (
    _C,
    _grad_mode,
    _memory,
    _serialization,
    _tensor,
    _tensor_names,
    _tensor_storage,
    cpu,
    cuda,
)
from genesis._C import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import accelerator as accelerator
    from genesis import amp as amp
    from genesis import autograd as autograd
    from genesis import backends as backends
    from genesis import compiler as compiler
    from genesis import distributions as distributions
    from genesis import func as func
    from genesis import linalg as linalg
    from genesis import memory_profiler as memory_profiler
    from genesis import nn as nn
    from genesis import optim as optim
    from genesis import random as random
    from genesis import special as special
    from genesis import utils as utils
    from genesis import version as version
    from genesis._explain import explain as explain
    from genesis._leaks import Leak as Leak
    from genesis._leaks import Leaks
    from genesis._leaks import leak_scope as leak_scope
    from genesis._torch_names import (
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    )
    from genesis._torch_names import channels_last as channels_last
    from genesis._torch_names import channels_last_3d as channels_last_3d
    from genesis._torch_names import compile as compile
    from genesis._torch_names import contiguous_format as contiguous_format
    from genesis._torch_names import get_autocast_cpu_dtype as get_autocast_cpu_dtype
    from genesis._torch_names import get_autocast_gpu_dtype as get_autocast_gpu_dtype
    from genesis._torch_names import get_deterministic_debug_mode as get_deterministic_debug_mode
    from genesis._torch_names import get_num_interop_threads as get_num_interop_threads
    from genesis._torch_names import get_num_threads as get_num_threads
    from genesis._torch_names import is_autocast_cpu_enabled as is_autocast_cpu_enabled
    from genesis._torch_names import is_complex as is_complex
    from genesis._torch_names import (  # noqa: F401
        is_deterministic_algorithms_warn_only_enabled,
    )
    from genesis._torch_names import is_inference as is_inference
    from genesis._torch_names import is_inference_mode_enabled as is_inference_mode_enabled
    from genesis._torch_names import is_nonzero as is_nonzero
    from genesis._torch_names import layout as layout
    from genesis._torch_names import memory_format as memory_format
    from genesis._torch_names import preserve_format as preserve_format
    from genesis._torch_names import set_autocast_cpu_dtype as set_autocast_cpu_dtype
    from genesis._torch_names import set_autocast_gpu_dtype as set_autocast_gpu_dtype
    from genesis._torch_names import set_default_tensor_type as set_default_tensor_type
    from genesis._torch_names import set_deterministic_debug_mode as set_deterministic_debug_mode
    from genesis._torch_names import set_flush_denormal as set_flush_denormal
    from genesis._torch_names import set_num_interop_threads as set_num_interop_threads
    from genesis._torch_names import set_num_threads as set_num_threads
    from genesis._torch_names import strided as strided
    from genesis._torch_names import typename as typename
    from genesis._torch_names import use_deterministic_algorithms as use_deterministic_algorithms
    from genesis.amp import autocast as autocast
    from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager

    memory_manager: CUDAMemoryManager

__all__ = [
    "__version__",
    "check_memory_leaks",
    "cpu",
    "cuda",
    "enable_memory_debugging",
    "enable_memory_profiling",
]

# What the modules offer is offered here. Most of it comes from the extension, whose table of
# operations has a row for each; __init__.pyi, which the build makes, lists all names with types.
for _module in (
    _C,
    _grad_mode,
    _memory,
    _serialization,
    _tensor,
    _tensor_names,
    _tensor_storage,
):
    __all__ += _module.__all__
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
del _module


# Other names of types, and numbers, as PyTorch has them.
_SHORT: dict[str, Any] = {
    "double": _C.float64,
    "e": 2.718281828459045,
    "float": _C.float32,
    "half": _C.float16,
    "inf": 1e999,
    "int": _C.int32,
    "long": _C.int64,
    "nan": 1e999 - 1e999,
    "newaxis": None,
    "pi": 3.141592653589793,
    "short": _C.int16,
}


def enable_memory_profiling(enabled: bool = True) -> None:
    """Record what happens to memory from now on, or stop doing so.

    Look at it with :mod:`genesis.memory_profiler`: ``get_report()`` and ``get_timeline()``.

    Examples
    --------
    >>> import genesis
    >>> genesis.enable_memory_profiling(True)
    >>> genesis.enable_memory_profiling(False)
    """
    from genesis import memory_profiler

    if enabled:
        memory_profiler.start()
    else:
        memory_profiler.stop()


def enable_memory_debugging(
    enabled: bool = True, report_at_exit: bool = False, stacks: str = "python"
) -> None:
    """Remember where each block is allocated, so that leaks can be found.

    Parameters
    ----------
    enabled : bool
        Whether it begins or ends.
    report_at_exit : bool
        Whether blocks that nobody owns are reported on standard error when the program ends.
    stacks : str
        ``"python"``, or ``"all"`` for the frames of C as well, which costs some microseconds each.

    Examples
    --------
    >>> import genesis
    >>> genesis.enable_memory_debugging(True)
    >>> address = genesis.memory_manager.allocate_memory(1000)
    >>> [leak.size for leak in genesis.check_memory_leaks()]
    [1000]
    >>> genesis.memory_manager.free_memory(address)
    >>> genesis.check_memory_leaks()
    []
    >>> genesis.enable_memory_debugging(False)
    """
    from genesis import _leaks

    _leaks.enable(enabled, report_at_exit, stacks)


def check_memory_leaks() -> Leaks:
    """List the blocks that were allocated since debugging was enabled, and are alive.

    Returns
    -------
    list of Leak
        Each has ``size``, ``location`` (``"file:line (function)"``), ``address``, ``stack``,
        ``age`` in seconds, ``device`` and ``held_by``; ``summary()`` of the list groups them by
        place. For a part of a program there is ``genesis.leak_scope()``.
    """
    from genesis import _leaks

    return _leaks.check()


def __getattr__(name: str) -> Any:
    # Asked for each time, since it follows the current device. Not in __all__: it starts CUDA.
    if name == "memory_manager":
        from genesis.ndarray.cuda_memory_manager import get_memory_manager

        return get_memory_manager()
    # Few need these: not at each import.
    if name in (
        "accelerator",
        "adapters",
        "amp",
        "array_api",
        "autograd",
        "backends",
        "compiler",
        "distributions",
        "func",
        "linalg",
        "memory_profiler",
        "ndarray",
        "nn",
        "optim",
        "random",
        "special",
        "utils",
        "version",
    ):
        from importlib import import_module

        return import_module(f"genesis.{name}")
    if name in _SHORT:  # not in __all__, since they would hide Python's own names
        return _SHORT[name]
    if name == "explain":
        from genesis._explain import explain

        return explain
    if name == "autocast":
        from genesis.amp import autocast

        return autocast
    if not name.startswith("_"):
        from genesis import _torch_names

        if name in _torch_names.__all__:
            return getattr(_torch_names, name)
        if name in _torch_names.TYPE_NAMES:
            return _torch_names.tensor_type(name)
    if name in ("Leak", "leak_scope"):
        from genesis import _leaks

        return getattr(_leaks, name)
    if name in ("complex64", "complex128"):
        from genesis._C import _dtype_advice

        raise AttributeError(f"module 'genesis' has no {name}: {_dtype_advice(name)}")
    raise AttributeError(f"module 'genesis' has no attribute {name!r}")


def __dir__() -> list[str]:
    late = {
        "version",
        "random",
        "compiler",
        "backends",
        "accelerator",
        "Leak",
        "amp",
        "array_api",
        "autocast",
        "autograd",
        "distributions",
        "explain",
        "func",
        "leak_scope",
        "linalg",
        "memory_manager",
        "memory_profiler",
        "ndarray",
        "nn",
        "optim",
        "special",
        "utils",
    }
    from genesis import _torch_names

    return sorted({*globals(), *_SHORT, *late, *_torch_names.__all__, *_torch_names.TYPE_NAMES})


if "trace" in environ.get("GENESIS_DEBUG", "").lower().split(","):
    from genesis import _leaks

    _leaks.report_at_exit()
