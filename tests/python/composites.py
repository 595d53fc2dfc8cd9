"""What every function that is made of others gives: a table, for test_composites.py.

A reference is written for exact numbers: of floating types `numpy.longdouble`, of integers those of
Python. The test converts operands to the one type in which all of them are computed, hands them to
the reference, and rounds what comes out once. So a function that promotes its operands in pairs, or
rounds on the way, is found.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

import genesis

LONG = numpy.longdouble


class Case(NamedTuple):
    """One function of elements.

    `ulps`: the error that is allowed beside the one rounding, in last places of the computing type,
    at the largest one of the terms, or at the result. `kinds`: of types that it is for:
    b(ool), i(nteger), f(loating). `result`: the type that comes out, "same" is the promoted one.
    """

    call: Any
    floats: Any = None
    integers: Any = None
    count: int = 2
    result: str = "same"
    ulps: float = 0
    terms: Any = None
    kinds: str = "bif"


def _ldexp(x: Any, y: Any) -> Any:
    made = x * numpy.exp2(y)
    return numpy.where(((x == 0) | numpy.isinf(x)) & ~numpy.isnan(y), x, made)


def _below(slope: Any) -> Any:
    """The number itself, or what is made of it where it is not positive."""

    def call(x: Any, *parameters: Any) -> Any:
        return numpy.where(x > 0, x, slope(x, *parameters))

    return call


def _softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    product = x * beta
    made = (numpy.maximum(product, 0) + numpy.log1p(numpy.exp(-abs(product)))) / beta
    return numpy.where(product > threshold, x, made)


def _python_remainder(x: Any, y: Any) -> Any:
    return numpy.where(numpy.isinf(y) & numpy.isfinite(x), _rest(x, y), numpy.remainder(x, y))


def _rest(x: Any, y: Any) -> Any:
    """Of a finite number by an infinite one: itself, or the divisor where the signs differ."""
    return numpy.where((x != 0) & ((x < 0) != (y < 0)), y, numpy.copysign(x, y))


def _floor_divide(x: Any, y: Any) -> Any:
    down = numpy.floor_divide(x, y)
    is_far = numpy.isinf(y) & numpy.isfinite(x)
    return numpy.where(is_far, numpy.where((x != 0) & ((x < 0) != (y < 0)), -1, 0), down)


def _whole(function: Any) -> Any:
    """A function of two integers of Python, of which the second may be 0: that gives 0."""
    return numpy.frompyfunc(lambda x, y: function(x, y) if y else 0, 2, 1)


def _fmod(x: int, y: int) -> int:
    return abs(x) % abs(y) * (1 if x >= 0 else -1)


def _truncate(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _lerp(x: Any, y: Any, weight: Any) -> Any:
    return numpy.where(abs(weight) < 0.5, x + weight * (y - x), y - (y - x) * (1 - weight))


def _maximum(x: Any, y: Any) -> Any:
    """NaN wins, and 0 is larger than -0."""
    larger = numpy.where((x > y) | ((x == y) & ~numpy.signbit(x)), x, y)
    return numpy.where(numpy.isnan(x), x, larger)


def _minimum(x: Any, y: Any) -> Any:
    return -_maximum(-x, -y)


def _beside_nan(function: Any) -> Any:
    """The other one where one is NaN."""

    def call(x: Any, y: Any) -> Any:
        return numpy.where(numpy.isnan(x), y, numpy.where(numpy.isnan(y), x, function(x, y)))

    return call


def _power(x: Any, y: Any) -> Any:
    """In float64; each with each, as NumPy takes the root for an exponent alone that is 0.5."""
    both = [one.astype(numpy.float64) for one in numpy.broadcast_arrays(x, y)]
    return numpy.power(*both).astype(LONG)


def _logaddexp(x: Any, y: Any) -> Any:
    top = _maximum(x, y)
    made = top + numpy.log1p(numpy.exp(-abs(x - y)))
    return numpy.where(x == y, x + numpy.log(LONG(2)), made)


def _logaddexp2(x: Any, y: Any) -> Any:
    made = _maximum(x, y) + numpy.log1p(numpy.exp2(-abs(x - y))) / numpy.log(LONG(2))
    return numpy.where(x == y, x + 1, made)


def _logit(x: Any) -> Any:
    near = numpy.log1p((2 * x - 1) / (1 - x))
    return numpy.where(abs(x - LONG(0.5)) < 0.25, near, numpy.log(x / (1 - x)))


def _heaviside(x: Any, y: Any) -> Any:
    return numpy.where(x == 0, y, x > 0)


def _hypot(x: Any, y: Any) -> Any:
    return numpy.where(numpy.isinf(x) | numpy.isinf(y), numpy.inf, numpy.hypot(x, y))


def _is_close(x: Any, y: Any) -> Any:
    near = abs(x - y) <= 0.125 + 0.25 * abs(y)
    return (x == y) | (near & numpy.isfinite(x) & numpy.isfinite(y))


def _choose(function: Any) -> Any:
    return numpy.frompyfunc(function, 2, 1)


def _round_whole(zeros: int) -> Any:
    return numpy.frompyfunc(lambda x: round(x, -zeros), 1, 1)


def _decimals(decimals: int) -> Any:
    scale = LONG(10) ** abs(decimals)

    def call(x: Any) -> Any:
        if decimals < 0:
            return numpy.rint(x / scale) * scale
        scaled = x * scale
        return numpy.where(numpy.isfinite(scaled), numpy.rint(scaled) / scale, x)

    return call


def _gelu_tanh(x: Any) -> Any:
    inner = (x + LONG(0.044715) * x * x * x) * LONG(0.7978845608028654)
    return x / 2 * (1 + numpy.tanh(inner))


g = genesis
TWO = {
    "add": Case(g.add, lambda x, y: x + y, lambda x, y: x + y, kinds="if"),
    "sub": Case(g.sub, lambda x, y: x - y, lambda x, y: x - y, kinds="if"),
    "mul": Case(g.mul, lambda x, y: x * y, lambda x, y: x * y, kinds="if"),
    "div": Case(g.div, lambda x, y: x / y, result="float"),
    "floor_divide": Case(
        g.floor_divide, _floor_divide, _whole(lambda x, y: x // y), kinds="if", ulps=2
    ),
    "remainder": Case(
        g.remainder, _python_remainder, _whole(lambda x, y: x % y), kinds="if", ulps=1,
        terms=lambda x, y: (y,),
    ),
    "fmod": Case(g.fmod, numpy.fmod, _whole(_fmod), kinds="if"),
    "maximum": Case(g.maximum, _maximum, _choose(max)),
    "minimum": Case(g.minimum, _minimum, _choose(min)),
    "clamp_min": Case(g.clamp_min, _maximum, _choose(max)),
    "clamp_max": Case(g.clamp_max, _minimum, _choose(min)),
    "fmax": Case(g.fmax, _beside_nan(_maximum), _choose(max)),
    "fmin": Case(g.fmin, _beside_nan(_minimum), _choose(min)),
    "eq": Case(g.eq, lambda x, y: x == y, lambda x, y: x == y, result="bool"),
    "ne": Case(g.ne, lambda x, y: x != y, lambda x, y: x != y, result="bool"),
    "lt": Case(g.lt, lambda x, y: x < y, lambda x, y: x < y, result="bool"),
    "le": Case(g.le, lambda x, y: x <= y, lambda x, y: x <= y, result="bool"),
    "gt": Case(g.gt, lambda x, y: x > y, lambda x, y: x > y, result="bool"),
    "ge": Case(g.ge, lambda x, y: x >= y, lambda x, y: x >= y, result="bool"),
    "atan2": Case(g.atan2, numpy.arctan2, result="float", ulps=3),
    "hypot": Case(g.hypot, _hypot, result="float", ulps=1),
    "logaddexp": Case(g.logaddexp, _logaddexp, result="float", ulps=4, terms=lambda x, y: (x, y)),
    "logaddexp2": Case(
        g.logaddexp2, _logaddexp2, result="float", ulps=4, terms=lambda x, y: (x, y)
    ),
    "gcd": Case(g.gcd, None, numpy.frompyfunc(math.gcd, 2, 1), kinds="bi"),
    "lcm": Case(g.lcm, None, numpy.frompyfunc(math.lcm, 2, 1), kinds="bi"),
    "heaviside": Case(g.heaviside, _heaviside, _heaviside),
    "xlogy": Case(
        g.xlogy, lambda x, y: numpy.where((x == 0) & (y == y), 0, x * numpy.log(y)), result="float",
        ulps=2,
    ),
    "ldexp": Case(g.ldexp, _ldexp, result="float", ulps=2),
    "copysign": Case(g.copysign, numpy.copysign, result="float"),
    "isclose": Case(
        lambda x, y: g.isclose(x, y, rtol=0.25, atol=0.125), _is_close, result="bool", kinds="f"
    ),
    "float_power": Case(g.float_power, _power, result="float64", ulps=1),
    "pow": Case(g.pow, _power, kinds="f", ulps=2),
    "add alpha": Case(
        lambda x, y: g.add(x, y, alpha=3), lambda x, y: x + 3 * y, lambda x, y: x + 3 * y,
        kinds="if", ulps=1, terms=lambda x, y: (x, 3 * y),
    ),
    "sub alpha": Case(
        lambda x, y: g.sub(x, y, alpha=3), lambda x, y: x - 3 * y, lambda x, y: x - 3 * y,
        kinds="if", ulps=1, terms=lambda x, y: (x, 3 * y),
    ),
    "div trunc": Case(
        lambda x, y: g.div(x, y, rounding_mode="trunc"), None, _whole(_truncate), kinds="i"
    ),
    "div floor": Case(
        lambda x, y: g.div(x, y, rounding_mode="floor"), _floor_divide,
        _whole(lambda x, y: x // y), kinds="if", ulps=2,
    ),
    "outer": Case(
        lambda x, y: g.outer(x.reshape(-1), y.reshape(-1)), lambda x, y: x * y, lambda x, y: x * y,
        kinds="if",
    ),
}  # fmt: skip

THREE = {
    "clamp": Case(g.clamp, lambda x, y, z: _minimum(_maximum(x, y), z),
                  numpy.frompyfunc(lambda x, y, z: min(max(x, y), z), 3, 1), 3),
    "clip": Case(g.clip, lambda x, y, z: _minimum(_maximum(x, y), z),
                 numpy.frompyfunc(lambda x, y, z: min(max(x, y), z), 3, 1), 3),
    "lerp": Case(g.lerp, _lerp, None, 3, "float", 3,
                 lambda x, y, z: (x, y, z * (y - x), (y - x) * (1 - z), z)),
    "addcmul": Case(g.addcmul, lambda x, y, z: x + y * z, lambda x, y, z: x + y * z, 3, "same", 1,
                    lambda x, y, z: (x, y * z), "if"),
    "addcmul value": Case(lambda x, y, z: g.addcmul(x, y, z, value=3),
                          lambda x, y, z: x + 3 * y * z, lambda x, y, z: x + 3 * y * z, 3, "same",
                          2, lambda x, y, z: (x, 3 * y * z), "if"),
    "addcdiv": Case(g.addcdiv, lambda x, y, z: x + y / z, None, 3, "float", 1,
                    lambda x, y, z: (x, y / z), "f"),
}  # fmt: skip

ONE = {
    "celu": Case(g.celu, _below(numpy.expm1), None, 1, "float", 3),
    "elu": Case(g.elu, _below(numpy.expm1), None, 1, "float", 3),
    "elu alpha": Case(
        lambda x: g.elu(x, 0.25), _below(lambda x: numpy.expm1(x) / 4), None, 1, "float", 3
    ),
    "hardswish": Case(
        g.hardswish, lambda x: x * (_minimum(_maximum(x + 3, LONG(0)), LONG(6)) / 6), None, 1,
        "float", 3,
    ),
    "hardtanh": Case(
        g.hardtanh, lambda x: _minimum(_maximum(x, LONG(-1)), LONG(1)),
        numpy.frompyfunc(lambda x: min(max(x, -1), 1), 1, 1), 1, kinds="if",
    ),
    "leaky_relu": Case(
        lambda x: g.leaky_relu(x, negative_slope=0.125), _below(lambda x: x / 8), None, 1, "float"
    ),
    "logit": Case(g.logit, _logit, None, 1, "float", 3),
    "logit eps": Case(
        lambda x: g.logit(x, 0.25), lambda x: _logit(_minimum(_maximum(x, LONG(0.25)), LONG(0.75))),
        None, 1, "float", 3,
    ),
    "logsigmoid": Case(g.logsigmoid, lambda x: -_softplus(-x, 1, numpy.inf), None, 1, "float", 3),
    "mish": Case(
        g.mish, lambda x: x * numpy.tanh(numpy.log1p(numpy.exp(x))), None, 1, "float", 4
    ),
    "relu6": Case(
        g.relu6, lambda x: _minimum(_maximum(x, LONG(0)), LONG(6)),
        numpy.frompyfunc(lambda x: min(max(x, 0), 6), 1, 1), 1, kinds="if",
    ),
    "selu": Case(
        g.selu, lambda x: LONG("1.0507009873554804934193349852946")
        * numpy.where(x > 0, x, LONG("1.6732632423543772848170429916717") * numpy.expm1(x)),
        None, 1, "float", 3,
    ),
    "softplus": Case(g.softplus, _softplus, None, 1, "float", 3),
    "softplus beta": Case(
        lambda x: g.softplus(x, 2, threshold=5), lambda x: _softplus(x, 2, 5), None, 1, "float", 3
    ),
    "exp2": Case(g.exp2, numpy.exp2, None, 1, "float", 2),
    "frac": Case(g.frac, lambda x: x - numpy.trunc(x), None, 1, kinds="f"),
    "sinh": Case(g.sinh, numpy.sinh, None, 1, "float", 6),
    "cosh": Case(g.cosh, numpy.cosh, None, 1, "float", 6),
    "deg2rad": Case(g.deg2rad, numpy.deg2rad, None, 1, "float", 1),
    "rad2deg": Case(g.rad2deg, numpy.rad2deg, None, 1, "float", 1),
    "signbit": Case(g.signbit, numpy.signbit, lambda x: x < 0, 1, "bool"),
    "isposinf": Case(g.isposinf, numpy.isposinf, lambda x: x != x, 1, "bool"),
    "isneginf": Case(g.isneginf, numpy.isneginf, lambda x: x != x, 1, "bool"),
    "round": Case(g.round, numpy.rint, lambda x: x, 1, kinds="if"),
    "round -1": Case(lambda x: g.round(x, decimals=-1), _decimals(-1), _round_whole(1), 1,
                     kinds="if", ulps=1),
    "round -3": Case(lambda x: g.round(x, decimals=-3), _decimals(-3), _round_whole(3), 1,
                     kinds="if", ulps=1),
    "round 2": Case(lambda x: g.round(x, decimals=2), _decimals(2), lambda x: x, 1,
                    kinds="if", ulps=1),
    "gelu tanh": Case(lambda x: g.gelu(x, approximate="tanh"), _gelu_tanh, None, 1, kinds="f",
                      ulps=8, terms=lambda x: (x,)),
    "nan_to_num": Case(
        lambda x: g.nan_to_num(x, 2.0, 3.0, -3.0),
        lambda x: numpy.nan_to_num(x, nan=2.0, posinf=3.0, neginf=-3.0), lambda x: x, 1),
}  # fmt: skip

# ---- of rows, in longdouble ----


def _quantile(q: float) -> Any:
    def call(row: Any) -> Any:
        row = numpy.sort(row)
        place = LONG(q) * (len(row) - 1)
        low = int(numpy.floor(place))
        return _lerp(row[low], row[min(low + 1, len(row) - 1)], place - low)

    return call


def _variance(row: Any) -> Any:
    return ((row - row.mean()) ** 2).sum() / (len(row) - 1)


def _log_sum(row: Any) -> Any:
    top = row.max()
    return top + numpy.log(numpy.exp(row - top).sum())


ROWS = {
    "var": (lambda x: g.var(x), _variance, 2),
    "std": (lambda x: g.std(x), lambda x: numpy.sqrt(_variance(x)), 2),
    "var_mean": (lambda x: g.var_mean(x)[0], _variance, 2),
    "std_mean": (lambda x: g.std_mean(x)[0], lambda x: numpy.sqrt(_variance(x)), 2),
    "mean": (lambda x: g.mean(x), lambda x: x.sum() / len(x), 1),
    "nanmean": (lambda x: g.nanmean(x), lambda x: x.sum() / len(x), 2),
    "nansum": (lambda x: g.nansum(x), lambda x: x.sum(), 1),
    "sum": (lambda x: g.sum(x), lambda x: x.sum(), 1),
    "norm": (lambda x: g.norm(x), lambda x: numpy.sqrt((x * x).sum()), 2),
    "logsumexp": (lambda x: g.logsumexp(x, 0), _log_sum, 4),
    "median": (lambda x: g.median(x), lambda x: numpy.sort(x)[(len(x) - 1) // 2], 0),
    "quantile": (lambda x: g.quantile(x, 0.4), _quantile(0.4), 2),
    "nanmedian": (lambda x: g.nanmedian(x), lambda x: numpy.sort(x)[(len(x) - 1) // 2], 0),
    "nanquantile": (lambda x: g.nanquantile(x, 0.4), _quantile(0.4), 2),
    "aminmax": (lambda x: g.aminmax(x).max, lambda x: x.max(), 0),
    "kthvalue": (lambda x: g.kthvalue(x, 2).values, lambda x: numpy.sort(x)[1], 0),
    "trace": (lambda x: g.trace(g.diag(x)), lambda x: x.sum(), 1),
    "scatter_reduce": (
        lambda x: x.new_zeros(1).scatter_reduce(
            0, g.zeros(len(x), dtype=g.int64), x, "mean", include_self=False
        ),
        lambda x: x.sum() / len(x),
        2,
    ),
}

# ---- the rest, and why ----

ELSEWHERE = {
    "test_linalg.py": """
        cholesky cholesky_inverse cholesky_solve det inverse logdet lu_solve lu_unpack matrix_exp
        matrix_power pinverse qr slogdet svd vander""",
    "only moves elements, or says where they are": """
        argmax argmin argsort argwhere as_strided atleast_1d atleast_2d atleast_3d block_diag
        broadcast_shapes diag_embed diagonal_scatter dsplit hsplit pad select_scatter slice_scatter
        vsplit
        broadcast_tensors broadcast_to chunk clone contiguous cummax cummin diag diagonal expand
        flatten flip fliplr flipud gather index_copy index_fill index_plan index_put index_select
        masked_fill masked_scatter masked_select max meshgrid min mode moveaxis movedim msort narrow
        nonzero permute ravel repeat repeat_interleave reshape roll rot90 scatter select sort split
        squeeze swapaxes swapdims t take take_along_axis take_along_dim tensor_split tile topk
        transpose tril triu unbind unflatten unique unique_consecutive unsqueeze view""",
    "an operation of one operand, in the type that this has: tests/ops/test_loops.c": """
        abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
        bitwise_not ceil cos digamma erf erfc erfinv exp expm1 floor isfinite isinf isnan lgamma log
        log10 log1p log2 logical_not neg negative polygamma reciprocal relu rsqrt sigmoid sign silu
        sin sinc sqrt square tan tanh trunc""",
    "of float32 and float64 only: tests/c/test_loops.c": "nextafter",
    "a second name of one that is here": """
        arctan2 concat concatenate divide greater greater_equal less less_equal log_sigmoid multiply
        not_equal subtract true_divide""",
    "bits, whatever they mean": """
        bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor logical_and
        logical_or logical_xor""",
    "made of numbers, not of tensors": """
        arange as_tensor asarray empty empty_like eye from_dlpack from_numpy full full_like linspace
        empty_strided frombuffer logspace one_hot ones ones_like tensor tril_indices triu_indices
        zeros zeros_like""",
    "gradients: tests/python/test_autograd.py": "is_grad_enabled",
    "mixed precision: tests/python/test_amp.py": """
        autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled
        set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled""",
    "random numbers": """
        bernoulli get_rng_state initial_seed manual_seed multinomial normal poisson rand rand_like
        randint randint_like randn randn_like randperm seed set_rng_state""",
    "one operation over a row or a matrix: its own tests": """
        all allclose amax amin any bincount bmm cdist corrcoef cosine_similarity count_nonzero cov
        cross cumprod cumsum cumulative_trapezoid dot equal histogram kron log_softmax logcumsumexp
        matmul mm mv prod scatter_add softmax trapezoid trapz vdot""",
    "no elements": """
        can_cast check_memory_leaks detailed_memory_stats empty_cache enable_memory_debugging
        enable_memory_profiling flush get_default_device get_default_dtype
        get_float32_matmul_precision get_fusion is_floating_point is_tensor load memory_pressure
        memory_stats numel promote_types result_type save set_default_device set_default_dtype
        set_float32_matmul_precision set_fusion set_printoptions""",
}

# Those that have a test of their own in test_composites.py.
OWN = {"addmm", "addmv", "baddbmm", "bucketize", "cat", "column_stack", "diff", "dstack", "einsum",
       "histc", "hstack", "index_add", "inner", "isin", "searchsorted", "stack", "tensordot",
       "vstack", "where"}  # fmt: skip
