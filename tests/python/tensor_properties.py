"""What properties of tensors are made of: the allowed errors, the list of properties, comparing."""

from __future__ import annotations

from typing import NamedTuple

import numpy
from hypothesis import strategies as st
from tensor_strategies import FLOATS, Pair, elements, rounded

import genesis


class Bound(NamedTuple):
    """How far a result may be from the real one: in units of its last place, and of a scale."""

    ulps: float = 0  # of the result
    relative: float = 0  # of the scale that a property gives: terms that were summed, mostly


# The allowed errors of float32, float64 and the halves, which are computed in float32 and rounded
# once. What is not here is exact, bit for bit but for NaN's.
BOUNDS: dict[str, tuple[Bound, Bound, Bound]] = {
    **{name: (Bound(4), Bound(4), Bound(1)) for name in
       ("exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh", "erf",
        "rsqrt", "sigmoid", "pow", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    # of |x|
    **{name: (Bound(4, 1e-6), Bound(4, 1e-15), Bound(1, 1e-6)) for name in ("gelu", "silu")},
    # of the sum of |x|
    **{name: (Bound(1, 1e-12), Bound(1, 1e-13), Bound(1, 1e-12)) for name in
       ("sum", "mean", "cumsum")},
    # of the product of |x|
    **{name: (Bound(1, 1e-6), Bound(1, 1e-13), Bound(1, 1e-6)) for name in ("prod", "cumprod")},
    # of the largest |x|, or its square
    **{name: (Bound(2, 1e-6), Bound(2, 1e-14), Bound(1, 1e-6)) for name in ("var", "std", "norm")},
    **{name: (Bound(8, 1e-6), Bound(8, 1e-14), Bound(1, 1e-6)) for name in
       ("softmax", "log_softmax", "logsumexp")},
    # of the larger end
    "linspace": (Bound(2, 1e-7), Bound(2, 1e-15), Bound(1)),
}  # fmt: skip

PROPERTIES: dict[str, object] = {}


def prop(*names: str):
    """Register a property: drawn once for each name, which is its first argument."""

    def register(function):
        for name in names:
            PROPERTIES[name] = function
        return function

    return register


# Public names that are no functions of tensors.
OTHERS = {
    "DeviceLostError", "Generator", "InvalidDeviceError", "OutOfMemoryError", "ShapeError", "Size",
    "Tensor", "__version__", "bfloat16", "bool", "check_memory_leaks", "cpu", "cuda",
    "default_generator", "detailed_memory_stats", "device", "dtype", "empty_cache",
    "enable_memory_debugging", "enable_memory_profiling", "float16", "float32", "float64",
    "flush", "get_default_device", "get_fusion", "int16",
    "int32", "int64", "int8", "memory_pressure", "memory_stats", "set_default_device",
    "set_fusion", "uint16", "uint32", "uint64", "uint8",
}  # fmt: skip


# Names whose tests against a reference are in another file, which names them.
ELSEWHERE = dict.fromkeys(
    ("get_rng_state", "initial_seed", "seed", "set_rng_state", "Tensor.cpu", "Tensor.cuda",
     "Tensor.is_pinned", "Tensor.pin_memory", "Tensor.random_",
     "Tensor.record_stream", "Tensor.uniform_"),
    "test_tensor_names.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("matmul", "mm", "mv", "bmm", "dot", "outer", "tensordot"), "test_matmul.py"
)
ELSEWHERE |= dict.fromkeys(
    ("index_add", "index_copy", "index_fill", "index_put",
     "bincount", "gather", "index_select", "masked_fill", "masked_select", "nonzero", "scatter",
     "scatter_add", "scatter_reduce", "searchsorted", "take", "take_along_axis", "take_along_dim"
    ),
    "test_index_functions.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("get_float32_matmul_precision", "set_float32_matmul_precision"), "test_matmul_gpu.py"
)
ELSEWHERE |= dict.fromkeys(("index_plan",), "test_index.py")
ELSEWHERE |= dict.fromkeys(("Tensor.astype", "Tensor.copy"), "test_words.py")
ELSEWHERE |= dict.fromkeys(
    ("addcdiv", "addcmul", "addmm", "addmv", "asarray", "baddbmm", "bernoulli", "can_cast",
     "copysign", "cosh", "deg2rad", "einsum", "exp2", "finfo", "float_power", "histc",
     "hypot", "iinfo", "inner", "is_floating_point", "is_tensor", "lerp", "logaddexp", "logspace",
     "masked_scatter", "multinomial", "nanmean", "nansum", "normal", "quantile", "rad2deg",
     "randint_like", "signbit", "sinh", "std_mean", "tril_indices", "triu_indices", "var_mean",
     "Tensor.exponential_", "Tensor.fill_diagonal_", "Tensor.get_device", "Tensor.is_cuda",
     "Tensor.is_signed", "Tensor.itemsize", "Tensor.ndimension", "Tensor.nelement",
     "Tensor.new_empty", "Tensor.new_full", "Tensor.new_ones", "Tensor.new_tensor",
     "Tensor.new_zeros", "Tensor.put_", "Tensor.type"),
    "test_torch_names.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("celu", "digamma", "elu", "erfc", "erfinv", "gcd", "hardswish", "hardtanh", "heaviside", "lcm",
     "ldexp", "leaky_relu", "lgamma", "log_sigmoid", "logaddexp2", "logit", "logsigmoid", "mish",
     "nextafter", "polygamma", "relu6", "selu", "sinc", "softplus", "xlogy"),
    "test_special_functions.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("cdist", "corrcoef", "cosine_similarity", "cov", "cumulative_trapezoid", "get_default_dtype",
     "histogram", "logcumsumexp", "msort", "nanmedian", "nanquantile", "poisson",
     "set_default_dtype", "set_printoptions", "trapezoid", "trapz"),
    "test_new_names_statistics.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(("from_dlpack",), "test_interop_dlpack.py")
ELSEWHERE |= dict.fromkeys(
    ("autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
     "get_autocast_dtype", "is_autocast_cache_enabled", "is_autocast_enabled",
     "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled"),
    "test_amp.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("Tensor.is_complex", "Tensor.is_cpu", "Tensor.is_meta", "Tensor.is_mps",
     "Tensor.is_quantized", "Tensor.is_sparse", "Tensor.layout"),
    "test_torch_scripts_names.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(("Tensor.to_device",), "test_array_api.py")
ELSEWHERE |= dict.fromkeys(
    ("enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled",
     "Tensor.backward", "Tensor.grad", "Tensor.grad_fn", "Tensor.is_leaf", "Tensor.requires_grad",
     "Tensor.requires_grad_"),
    "test_autograd.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("Tensor.detach_", "Tensor.register_hook", "Tensor.register_post_accumulate_grad_hook",
     "Tensor.retain_grad", "Tensor.retains_grad"),
    "test_autograd_graph.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("block_diag", "cross", "diag_embed", "diagonal_scatter", "dsplit", "empty_strided",
     "frombuffer", "hsplit", "kron", "pad", "select_scatter", "slice_scatter", "vdot", "vsplit",
     "Tensor.data", "Tensor.resize_", "Tensor.storage", "Tensor.untyped_storage"),
    "test_new_names_shapes.py",
)  # fmt: skip
ELSEWHERE |= dict.fromkeys(
    ("cholesky", "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "lu_solve",
     "lu_unpack", "matrix_exp", "matrix_power", "pinverse", "qr", "slogdet", "svd", "vander"),
    "test_linalg.py",
)  # fmt: skip


# ---- comparing ----


def check(name: str, made: genesis.Tensor, expected, dtype: str, scale=0.0) -> None:
    """The elements are those expected, as far as the table says; the type and shape are."""
    expected = numpy.asarray(expected)
    assert made.dtype.name == dtype, f"{name}: {made.dtype} and not {dtype}"
    assert made.shape == expected.shape, f"{name}: {made.shape} and not {expected.shape}"
    got = elements(made)
    column = {"float32": 0, "float64": 1}.get(dtype, 2)
    bound = BOUNDS[name][column] if name in BOUNDS else Bound()
    if bound == Bound() or dtype not in FLOATS:
        expected = rounded(expected, dtype)
        numpy.testing.assert_array_equal(got, expected, err_msg=name)
        zeros = (expected == 0) & (dtype in FLOATS)
        signs = numpy.signbit(got[zeros]) == numpy.signbit(expected[zeros])
        assert signs.all() or name in SIGN_OF_ZERO_IS_OPEN, f"{name}: the sign of a zero"
        return
    near = rounded(expected, dtype)
    exact = expected.astype(numpy.longdouble)
    ulp = numpy.spacing(numpy.abs(near)).astype(numpy.longdouble)
    if dtype == "bfloat16":
        ulp = ulp * 65536
    allowed = bound.ulps * ulp + bound.relative * numpy.asarray(scale, numpy.longdouble)
    wide = got.astype(numpy.longdouble)
    fits = numpy.abs(wide - exact) <= allowed
    same = (got == near) | (numpy.isnan(got) & numpy.isnan(near))
    # Around the largest number one side may round to infinity.
    largest = float(numpy.finfo(got.dtype).max)
    edge = numpy.isinf(got) & (numpy.abs(exact) > 0.98 * largest)
    wrong = ~(fits | same | edge)
    assert not wrong.any(), f"{name}: {got[wrong][:3]} and not {exact[wrong][:3]} ({dtype})"


# maximum(0.0, -0.0) and its kin may give either; a sum that begins with 0.0 has lost the sign.
SIGN_OF_ZERO_IS_OPEN = {"maximum", "minimum", "max", "min", "amax", "amin", "clamp", "clip", "relu",
                        "sort", "topk", "unique", "remainder", "floor_divide", "fmax", "fmin",
                        "clamp_min", "clamp_max", "aminmax", "median", "nanmedian", "msort",
                        "quantile"}  # fmt: skip


def both_ways(name: str, draw, pair: Pair, *arguments):
    """The function, or the method of its name."""
    if draw(st.booleans()) and hasattr(genesis.Tensor, name):
        return getattr(pair.tensor, name)(*arguments)
    return getattr(genesis, name)(pair.tensor, *arguments)


def same(name: str, made: genesis.Tensor, expected, pair: Pair) -> None:
    """As check(), with the type of what it was made from."""
    check(name, made, expected, pair.dtype)


# ---- dimensions ----


@st.composite
def dims(draw, ndim: int):
    """None, one dimension or several, some counted from the end."""
    if ndim == 0 or draw(st.booleans()):
        return None
    several = draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=ndim, unique=True))
    several = [axis - ndim if draw(st.booleans()) else axis for axis in several]
    return several[0] if len(several) == 1 and draw(st.booleans()) else tuple(several)
