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

from genesis import cpu, cuda
from genesis._C import (
    DeviceLostError,
    Generator,
    InvalidDeviceError,
    OutOfMemoryError,
    ShapeError,
    Tensor,
    __version__,
    abs,
    acos,
    acosh,
    add,
    all,
    amax,
    amin,
    any,
    arange,
    as_tensor,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bfloat16,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    bool,
    ceil,
    celu,
    cos,
    cosh,
    default_generator,
    device,
    digamma,
    div,
    dtype,
    elu,
    empty,
    eq,
    erf,
    erfc,
    erfinv,
    exp,
    exp2,
    expm1,
    float16,
    float32,
    float64,
    floor,
    floor_divide,
    flush,
    fmod,
    from_dlpack,
    from_numpy,
    ge,
    gelu,
    get_fusion,
    gt,
    hardswish,
    hardtanh,
    hypot,
    int8,
    int16,
    int32,
    int64,
    isfinite,
    isinf,
    isnan,
    ldexp,
    le,
    leaky_relu,
    lerp,
    lgamma,
    log,
    log1p,
    log2,
    log10,
    log_sigmoid,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    logsigmoid,
    lt,
    matmul,
    maximum,
    mean,
    minimum,
    mish,
    mul,
    ne,
    neg,
    nextafter,
    ones,
    pow,
    prod,
    reciprocal,
    relu,
    relu6,
    remainder,
    round,
    rsqrt,
    selu,
    set_fusion,
    sigmoid,
    sign,
    silu,
    sin,
    sinc,
    sinh,
    softplus,
    sqrt,
    square,
    sub,
    sum,
    tan,
    tanh,
    tensor,
    trunc,
    uint8,
    where,
    zeros,
)
from genesis._memory import detailed_memory_stats, empty_cache, memory_pressure, memory_stats
from genesis._random import (
    bernoulli,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from genesis._serialization import load, save
from genesis._tensor import (
    argmax,
    argmin,
    argsort,
    cummax,
    cummin,
    cumprod,
    cumsum,
    empty_like,
    full,
    full_like,
    max,
    min,
    ones_like,
    sort,
    topk,
    zeros_like,
)
from genesis._tensor_combined import (
    addcdiv,
    addcmul,
    clamp_max,
    clamp_min,
    column_stack,
    copysign,
    deg2rad,
    dstack,
    fliplr,
    flipud,
    float_power,
    fmax,
    fmin,
    frac,
    hstack,
    isneginf,
    isposinf,
    logaddexp,
    nan_to_num,
    rad2deg,
    rot90,
    signbit,
    vstack,
)
from genesis._tensor_functions import (
    allclose,
    cat,
    chunk,
    clamp,
    clip,
    equal,
    eye,
    flip,
    isclose,
    linspace,
    log_softmax,
    logspace,
    logsumexp,
    norm,
    one_hot,
    softmax,
    split,
    stack,
    std,
    tril,
    triu,
    var,
)
from genesis._tensor_index import (
    bincount,
    gather,
    index_plan,
    index_select,
    masked_fill,
    masked_select,
    nonzero,
    scatter,
    scatter_add,
    searchsorted,
    take,
    take_along_axis,
    take_along_dim,
)
from genesis._tensor_matrices import (
    addmm,
    addmv,
    baddbmm,
    diag,
    einsum,
    inner,
    trace,
)
from genesis._tensor_names import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asarray,
    can_cast,
    clone,
    concat,
    concatenate,
    divide,
    finfo,
    greater,
    greater_equal,
    iinfo,
    is_floating_point,
    is_tensor,
    less,
    less_equal,
    multiply,
    negative,
    not_equal,
    numel,
    promote_types,
    result_type,
    subtract,
    true_divide,
)
from genesis._tensor_place import get_default_device, set_default_device
from genesis._tensor_places import (
    argwhere,
    bucketize,
    histc,
    index_add,
    index_copy,
    index_fill,
    index_put,
    isin,
    masked_scatter,
    repeat_interleave,
    scatter_reduce,
    tril_indices,
    triu_indices,
    unique,
    unique_consecutive,
)
from genesis._tensor_products import (
    bmm,
    dot,
    get_float32_matmul_precision,
    mm,
    mv,
    outer,
    set_float32_matmul_precision,
    tensordot,
)
from genesis._tensor_shapes import (
    broadcast_to,
    contiguous,
    expand,
    flatten,
    permute,
    repeat,
    reshape,
    roll,
    squeeze,
    tile,
    transpose,
    unsqueeze,
    view,
)
from genesis._tensor_statistics import (
    aminmax,
    count_nonzero,
    diff,
    kthvalue,
    median,
    mode,
    nanmean,
    nansum,
    quantile,
    std_mean,
    var_mean,
)
from genesis._tensor_views import (
    as_strided,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    broadcast_tensors,
    diagonal,
    meshgrid,
    moveaxis,
    movedim,
    narrow,
    ravel,
    select,
    swapaxes,
    swapdims,
    t,
    tensor_split,
    unbind,
    unflatten,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import memory_profiler as memory_profiler
    from genesis._leaks import Leak as Leak
    from genesis._leaks import Leaks
    from genesis._leaks import leak_scope as leak_scope
    from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager

    memory_manager: CUDAMemoryManager

__all__ = [
    "DeviceLostError",
    "Generator",
    "InvalidDeviceError",
    "OutOfMemoryError",
    "ShapeError",
    "Tensor",
    "__version__",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "as_tensor",
    "asarray",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "baddbmm",
    "bernoulli",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bmm",
    "bool",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cat",
    "ceil",
    "celu",
    "check_memory_leaks",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "concat",
    "concatenate",
    "contiguous",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cpu",
    "cuda",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "default_generator",
    "deg2rad",
    "detailed_memory_stats",
    "device",
    "diag",
    "diagonal",
    "diff",
    "digamma",
    "div",
    "divide",
    "dot",
    "dstack",
    "dtype",
    "einsum",
    "elu",
    "empty",
    "empty_cache",
    "empty_like",
    "enable_memory_debugging",
    "enable_memory_profiling",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expand",
    "expm1",
    "eye",
    "finfo",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floor",
    "floor_divide",
    "flush",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "gather",
    "ge",
    "gelu",
    "get_default_device",
    "get_float32_matmul_precision",
    "get_fusion",
    "get_rng_state",
    "greater",
    "greater_equal",
    "gt",
    "hardswish",
    "hardtanh",
    "histc",
    "hstack",
    "hypot",
    "iinfo",
    "index_add",
    "index_copy",
    "index_fill",
    "index_plan",
    "index_put",
    "index_select",
    "initial_seed",
    "inner",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_floating_point",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kthvalue",
    "ldexp",
    "le",
    "leaky_relu",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linspace",
    "load",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsigmoid",
    "logspace",
    "logsumexp",
    "lt",
    "manual_seed",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "max",
    "maximum",
    "mean",
    "median",
    "memory_pressure",
    "memory_stats",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "nan_to_num",
    "nanmean",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "nonzero",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "permute",
    "pow",
    "prod",
    "promote_types",
    "quantile",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "ravel",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "repeat",
    "repeat_interleave",
    "reshape",
    "result_type",
    "roll",
    "rot90",
    "round",
    "rsqrt",
    "save",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "select",
    "selu",
    "set_default_device",
    "set_float32_matmul_precision",
    "set_fusion",
    "set_rng_state",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "softmax",
    "softplus",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_axis",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor",
    "tensor_split",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "transpose",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "uint8",
    "unbind",
    "unflatten",
    "unique",
    "unique_consecutive",
    "unsqueeze",
    "var",
    "var_mean",
    "view",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]


# Other names of types, and numbers, as PyTorch has them.
_SHORT: dict[str, Any] = {
    "double": float64,
    "e": 2.718281828459045,
    "float": float32,
    "half": float16,
    "inf": 1e999,
    "int": int32,
    "long": int64,
    "nan": 1e999 - 1e999,
    "newaxis": None,
    "pi": 3.141592653589793,
    "short": int16,
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
    if name in ("adapters", "array_api", "backends", "memory_profiler", "ndarray"):
        from importlib import import_module

        return import_module(f"genesis.{name}")
    if name in _SHORT:  # not in __all__, since they would hide Python's own names
        return _SHORT[name]
    if name in ("Leak", "leak_scope"):
        from genesis import _leaks

        return getattr(_leaks, name)
    if name in ("uint16", "uint32", "uint64", "complex64", "complex128"):
        from genesis._C import _dtype_advice

        raise AttributeError(f"module 'genesis' has no {name}: {_dtype_advice(name)}")
    raise AttributeError(f"module 'genesis' has no attribute {name!r}")


def __dir__() -> list[str]:
    late = {"Leak", "array_api", "leak_scope", "memory_manager", "memory_profiler", "ndarray"}
    return sorted({*globals(), *_SHORT, *late})


if "trace" in environ.get("GENESIS_DEBUG", "").lower().split(","):
    from genesis import _leaks

    _leaks.report_at_exit()
