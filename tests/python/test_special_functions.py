"""Special functions and activations: recorded values, edges, parameters, and the forms of a call.

The values are those of mpmath with 60 digits, rounded to float64. SciPy's agree to 1e-12. The edges
are those of PyTorch and SciPy.
"""

import itertools
import math

import numpy
import pytest

import genesis

INF, NAN = math.inf, math.nan
FLOATS = ["float16", "bfloat16", "float32", "float64"]

# The arguments, and the result.
VALUES = {
    "erfc": [
        ((-3.5,), 1.9999992569016276),
        ((-1.0,), 1.8427007929497148),
        ((-0.25,), 1.276326390168237),
        ((0.125,), 0.8596837951986662),
        ((0.5,), 0.4795001221869535),
        ((1.0,), 0.15729920705028513),
        ((2.5,), 0.0004069520174449589),
        ((5.0,), 1.537459794428035e-12),
        ((8.5,), 2.7623240713337716e-33),
        ((26.5,), 2.2109076642637343e-307),
    ],
    "erfinv": [
        ((-0.999,), -2.3267537655135246),
        ((-0.75,), -0.8134198475976185),
        ((-0.25,), -0.2253120550121781),
        ((1e-09,), 8.86226925452758e-10),
        ((0.125,), 0.11123545184094996),
        ((0.5,), 0.4769362762044699),
        ((0.9375,), 1.3171503349861307),
        ((0.9990234375,), 2.331467773621948),
        ((0.9999999403953552,), 3.832506856900711),
    ],
    "lgamma": [
        ((-100.5,), -364.90096830942736),
        ((-3.75,), -1.3172679424463636),
        ((-2.5,), -0.056243716497674054),
        ((-0.5,), 1.2655121234846454),
        ((1e-20,), 46.051701859880914),
        ((0.25,), 1.2880225246980774),
        ((0.999,), 0.0005780385328913802),
        ((1.0009765625,), -0.0005629031799912047),
        ((1.5,), -0.12078223763524522),
        ((1.999,), -0.0004224618006921073),
        ((2.5,), 0.2846828704729192),
        ((3.0,), 0.6931471805599453),
        ((10.0,), 12.801827480081469),
        ((1000.0,), 5905.220423209181),
        ((1e30,), 6.807755278982137e31),
    ],
    "digamma": [
        ((-100.25,), 7.754238959208646),
        ((-3.75,), -1.6923885983113303),
        ((-0.5,), 0.03648997397857652),
        ((1e-10,), -10000000000.577215),
        ((0.25,), -4.2274535333762655),
        ((1.0,), -0.5772156649015329),
        ((1.5,), 0.03648997397857652),
        ((2.0,), 0.42278433509846713),
        ((7.5,), 1.9467574842460869),
        ((8.0,), 2.01564147795561),
        ((100.0,), 4.600161852738087),
        ((1e20,), 46.051701859880914),
    ],
    "sinc": [
        ((-2.5,), 0.12732395447351627),
        ((-0.75,), 0.30010543871903533),
        ((1e-08,), 0.9999999999999999),
        ((0.25,), 0.9003163161571061),
        ((0.5,), 0.6366197723675814),
        ((1.125,), -0.10827726204493696),
        ((3.5,), -0.09094568176679733),
        ((1000.25,), 0.00022502282333344316),
        ((1048576.5,), 3.035638183611693e-07),
    ],
    "exp2": [
        ((-20.5,), 6.743495761743046e-07),
        ((-1.25,), 0.42044820762685725),
        ((1e-10,), 1.0000000000693148),
        ((0.5,), 1.4142135623730951),
        ((3.75,), 13.454342644059432),
        ((15.0,), 32768.0),
    ],
    "mish": [
        ((-20.0,), -4.122307240628761e-08),
        ((-3.0,), -0.14564746127562458),
        ((-0.5,), -0.22074377465173),
        ((1e-06,), 6.00000319999984e-07),
        ((0.75,), 0.6100183352182934),
        ((4.0,), 3.9974128069762385),
        ((30.0,), 30.0),
    ],
    "selu": [
        ((-20.0,), -1.758099337223664),
        ((-1.0,), -1.1113307378125628),
        ((-1e-06,), -1.7580984617979995e-06),
        ((0.5,), 0.5253504936777402),
        ((3.0,), 3.1521029620664414),
    ],
    "hardswish": [
        ((-4.0,), 0.0),
        ((-2.5,), -0.20833333333333334),
        ((-0.75,), -0.28125),
        ((0.5,), 0.2916666666666667),
        ((2.9375,), 2.9069010416666665),
        ((5.0,), 5.0),
    ],
    "logsigmoid": [
        ((-50.0,), -50.0),
        ((-2.0,), -2.1269280110429727),
        ((-0.125,), -0.7575990353171691),
        ((0.5,), -0.4740769841801067),
        ((4.0,), -0.01814992791780974),
        ((30.0,), -9.357622968839737e-14),
    ],
    "logit": [
        ((1e-30,), -69.07755278982137),
        ((0.0625,), -2.70805020110221),
        ((0.25,), -1.0986122886681098),
        ((0.4990234375,), -0.0039062549670651),
        ((0.5009765625,), 0.0039062549670651),
        ((0.75,), 1.0986122886681098),
        ((0.998046875,), 6.236369590203704),
    ],
    "leaky_relu": [
        ((-3.0, 0.125), -0.375),
        ((2.0, 0.125), 2.0),
        ((-1.5, 0.0), 0.0),
    ],
    "elu": [
        ((-3.0, 1.0), -0.950212931632136),
        ((-0.25, 0.5), -0.11059960846429756),
        ((2.0, 3.0), 2.0),
        ((-1e-06, 2.0), -1.9999990000003334e-06),
    ],
    "celu": [
        ((-3.0, 1.0), -0.950212931632136),
        ((-0.25, 0.5), -0.1967346701436833),
        ((2.0, 3.0), 2.0),
        ((-40.0, 8.0), -7.946096424007316),
    ],
    "softplus": [
        ((-30.0, 1.0, 20.0), 9.357622968839737e-14),
        ((-1.0, 1.0, 20.0), 0.3132616875182228),
        ((0.0, 1.0, 20.0), 0.6931471805599453),
        ((1.5, 2.0, 20.0), 1.524293675786871),
        ((12.0, 2.0, 20.0), 12.0),
        ((-3.0, 0.25, 20.0), 1.5474840244595998),
        ((19.5, 1.0, 20.0), 19.500000003398267),
        ((0.75, 1.0, 0.5), 0.75),
    ],
    "hardtanh": [
        ((-3.0, -1.0, 1.0), -1.0),
        ((0.5, -1.0, 1.0), 0.5),
        ((7.0, -2.0, 2.5), 2.5),
    ],
    "logaddexp": [
        ((0.0, 0.0), 0.6931471805599453),
        ((-1.5, 2.0), 2.0297504182726205),
        ((-0.0001220703125, -9.0), 1.3469409569954463e-06),
        ((50.0, 51.0), 51.31326168751822),
        ((-20.0, -21.0), -19.686738312481776),
    ],
    "logaddexp2": [
        ((0.0, 0.0), 1.0),
        ((-1.5, 2.0), 2.122193416202274),
        ((-0.0001220703125, -13.0), 5.404407391521007e-05),
        ((50.0, 51.0), 51.584962500721154),
        ((-20.0, -21.0), -19.415037499278842),
    ],
    "xlogy": [
        ((2.0, 3.0), 2.1972245773362196),
        ((-0.5, 0.125), 1.0397207708399179),
        ((0.0, 5.0), 0.0),
        ((3.0, 1.0009765625), 0.0029282579191663768),
    ],
    "ldexp": [
        ((3.0, 4.0), 48.0),
        ((-0.75, -3.0), -0.09375),
        ((1.0, 0.5), 1.4142135623730951),
        ((5.0, -10.25), 0.004105939527606028),
    ],
}

# Names with what each gives at its edges, in float32 and float64.
EDGES = {
    "celu": [((NAN,), NAN), ((-INF,), -1.0), ((INF,), INF), ((-0.0,), -0.0), ((-INF, 2.0), -2.0)],
    "digamma": [((0.0,), -INF), ((-0.0,), INF), ((-1.0,), NAN), ((-1e30,), NAN), ((INF,), INF),
                ((-INF,), NAN), ((NAN,), NAN)],
    "elu": [((NAN,), NAN), ((-INF,), -1.0), ((INF,), INF), ((-0.0,), -0.0), ((-INF, 2.0), -2.0)],
    "erfc": [((INF,), 0.0), ((-INF,), 2.0), ((0.0,), 1.0), ((NAN,), NAN)],
    "erfinv": [((1.0,), INF), ((-1.0,), -INF), ((1.5,), NAN), ((-2.0,), NAN), ((-0.0,), -0.0),
               ((INF,), NAN), ((NAN,), NAN)],
    "exp2": [((INF,), INF), ((-INF,), 0.0), ((NAN,), NAN), ((1e30,), INF), ((-1e30,), 0.0)],
    "hardswish": [((NAN,), NAN), ((INF,), INF), ((-5.0,), -0.0), ((3e38,), 3e38)],
    "hardtanh": [((NAN,), NAN), ((INF,), 1.0), ((-INF,), -1.0), ((-5.0, -2.0), -2.0)],
    "heaviside": [((0.0, 0.5), 0.5), ((-0.0, 0.5), 0.5), ((-2.0, 0.5), 0.0), ((INF, 0.5), 1.0),
                  ((NAN, 0.5), 0.0), ((0.0, NAN), NAN)],
    "ldexp": [((0.0, 1e30), 0.0), ((-0.0, 5.0), -0.0), ((1.0, INF), INF), ((-1.0, -INF), -0.0),
              ((INF, -3.0), INF), ((NAN, 1.0), NAN), ((1.0, NAN), NAN)],
    "leaky_relu": [((NAN,), NAN), ((-INF,), -INF), ((INF,), INF), ((-0.0,), -0.0)],
    "lgamma": [((0.0,), INF), ((-0.0,), INF), ((-3.0,), INF), ((-1e30,), INF), ((1.0,), 0.0),
               ((2.0,), 0.0), ((INF,), INF), ((-INF,), INF), ((NAN,), NAN)],
    "logaddexp": [((INF, INF), INF), ((-INF, -INF), -INF), ((INF, -INF), INF), ((-INF, 3.0), 3.0),
                  ((NAN, 1.0), NAN), ((INF, NAN), NAN)],
    "logaddexp2": [((INF, INF), INF), ((-INF, -INF), -INF), ((-INF, 3.0), 3.0), ((1.0, NAN), NAN)],
    "logit": [((0.0,), -INF), ((1.0,), INF), ((1.5,), NAN), ((-0.5,), NAN), ((0.5,), 0.0),
              ((NAN,), NAN), ((NAN, 0.25), NAN), ((-3.0, 0.5), 0.0), ((7.0, 0.5), 0.0),
              ((0.0, 0.0), -INF), ((2.0, -1.0), NAN)],
    "logsigmoid": [((INF,), 0.0), ((-INF,), -INF), ((-1e30,), -1e30), ((NAN,), NAN)],
    "mish": [((INF,), INF), ((1e30,), 1e30), ((0.0,), 0.0), ((-0.0,), -0.0), ((NAN,), NAN)],
    "nextafter": [((0.0, 0.0), 0.0), ((0.0, -0.0), -0.0), ((INF, INF), INF), ((NAN, 1.0), NAN),
                  ((1.0, NAN), NAN)],
    "relu6": [((NAN,), NAN), ((INF,), 6.0), ((-INF,), 0.0), ((5.5,), 5.5)],
    "selu": [((INF,), INF), ((NAN,), NAN), ((-0.0,), -0.0)],
    "sinc": [((0.0,), 1.0), ((-0.0,), 1.0), ((5e-324,), 1.0), ((INF,), NAN), ((NAN,), NAN)],
    "softplus": [((INF,), INF), ((-INF,), 0.0), ((NAN,), NAN), ((1e30,), 1e30),
                 ((1e30, 1.0, INF), 1e30), ((-1e30, 3.0), 0.0)],
    "xlogy": [((0.0, 0.0), 0.0), ((0.0, -1.0), 0.0), ((0.0, INF), 0.0), ((0.0, NAN), NAN),
              ((NAN, 1.0), NAN), ((2.0, 0.0), -INF), ((1.0, -1.0), NAN)],
}  # fmt: skip


def tensors(arguments, dtype):
    return [genesis.tensor([one], dtype=getattr(genesis, dtype)) for one in arguments]


def last_place(value, dtype):
    digits, least = {"float16": (11, -14), "bfloat16": (8, -126), "float32": (24, -126)}.get(
        dtype, (53, -1022)
    )
    return 2.0 ** (max(math.frexp(value)[1] - 1, least) - digits + 1)


@pytest.mark.parametrize("name", VALUES)
def test_recorded_values(name):
    checked = 0
    for (arguments, expected), dtype in itertools.product(VALUES[name], FLOATS):
        own = tensors(arguments, dtype)
        if [one.item() for one in own] != list(arguments):
            continue  # numbers that the type does not have
        made = getattr(genesis, name)(*own).item()
        # Halves are rounded once: half a last place, and a little that float32 is off.
        ulps = {"float64": 5, "float32": 4}.get(dtype, 0.51)
        # Sums whose terms may cancel: in float64 those of digamma are about 2.
        scale = 2.0 if name == "digamma" and dtype == "float64" else 0.0
        scale = abs(max(arguments)) if name.startswith("logaddexp") else scale
        unit = last_place(max(abs(expected), scale), dtype)
        assert abs(made - expected) <= ulps * unit, (arguments, dtype, made)
        # As numbers beside a tensor they have its type, and are not rounded to a half.
        beside = getattr(genesis, name)(own[0], *arguments[1:]).item()
        assert beside == made, (arguments, dtype)
        checked += 1
    assert checked >= len(VALUES[name])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EDGES)
def test_edges(name, dtype):
    for arguments, expected in EDGES[name]:
        made = getattr(genesis, name)(*tensors(arguments, dtype)).item()
        expected = genesis.tensor(expected, dtype=getattr(genesis, dtype)).item()
        same = made == expected and math.copysign(1, made) == math.copysign(1, expected)
        assert same or (math.isnan(made) and math.isnan(expected)), (arguments, made, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_polygamma(dtype):
    """Values of math, and of mpmath where there is no formula."""
    zeta_3 = 1.2020569031595943
    for n, x, expected in (
        (0, 1.0, -0.5772156649015329),
        (1, 1.0, math.pi**2 / 6),
        (1, 2.0, math.pi**2 / 6 - 1),
        (1, 0.5, math.pi**2 / 2),
        (1, -0.5, math.pi**2 / 2 + 4),
        (2, 1.0, -2 * zeta_3),
        (2, 0.5, -14 * zeta_3),
        (2, -0.5, 16 - 14 * zeta_3),
        (3, 1.0, math.pi**4 / 15),
        (1, 1024.0, 0.000977039492378602622),
        (2, -0.0, -INF),
        (1, -3.0, INF),
        (1, INF, 0.0),
        (1, -INF, NAN),
        (1, NAN, NAN),
        (2, 1048576.0, -9.09495569135079817e-13),
        (32, 1.0, -2.63130836964326039e35),
    ):
        there = genesis.tensor([x], dtype=getattr(genesis, dtype))
        made = genesis.polygamma(n, there)
        assert made.dtype == there.dtype and there.polygamma(n).tolist() == pytest.approx(
            made.tolist(), nan_ok=True
        )
        near = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3}.get(dtype, 1e-2)
        largest, least = {"float16": (65504, 1e-7)}.get(dtype, (math.inf, 0))
        expected = expected if not abs(expected) > largest else math.copysign(INF, expected)
        assert made.item() == pytest.approx(expected, rel=near, abs=least, nan_ok=True), (n, x)
    x = genesis.tensor([1.0])
    assert x.clone().polygamma_(1).item() == genesis.polygamma(1, x, out=x.clone()).item()
    for n in (-1, 33):
        with pytest.raises(ValueError, match="n is from 0 to 32"):
            genesis.polygamma(n, x)


def test_integers_become_floating():
    x = genesis.tensor([1, 2, 3])
    for name in ("erfc", "lgamma", "digamma", "sinc", "exp2", "mish", "elu", "softplus", "logit"):
        assert getattr(genesis, name)(x).dtype == genesis.float32, name
    assert genesis.xlogy(x, x).dtype == genesis.logaddexp(x, x).dtype == genesis.float32
    for name in ("relu6", "hardtanh"):
        assert getattr(genesis, name)(x).dtype == genesis.int64, name
    assert genesis.heaviside(x, x).dtype == genesis.int64
    assert genesis.heaviside(genesis.tensor([True, False]), True).tolist() == [True, True]
    assert genesis.heaviside(genesis.tensor([True, False]), False).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_divisors_and_multiples(dtype):
    info = numpy.iinfo(dtype)
    some = [0, 1, 2, 6, 12, 35, 100, info.max, info.max - 1, info.min, info.min + 1, -4]
    some = [one for one in some if info.min <= one <= info.max]
    pairs = [*itertools.product(some, some)]
    x, y = (
        genesis.tensor(list(one), dtype=getattr(genesis, dtype)) for one in zip(*pairs, strict=True)
    )
    for name, reference in (("gcd", math.gcd), ("lcm", math.lcm)):
        exact = [reference(*pair) % 2**info.bits for pair in pairs]
        wrapped = [one - 2**info.bits if one > info.max else one for one in exact]
        assert getattr(genesis, name)(x, y).tolist() == wrapped
    with pytest.raises(TypeError, match="gcd is not defined for float32"):
        genesis.gcd(genesis.tensor([1.0]), 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scaling_by_whole_exponents_is_exact(dtype):
    rng = numpy.random.default_rng(4)
    least = numpy.finfo(dtype).minexp
    x = numpy.ldexp(rng.uniform(-1, 1, 4000), rng.integers(least - 20, -least, 4000)).astype(dtype)
    n = rng.integers(2 * least, -2 * least, 4000)
    made = genesis.ldexp(genesis.tensor(x), genesis.tensor(n.astype(dtype))).numpy()
    with numpy.errstate(over="ignore", under="ignore"):
        assert (made == numpy.ldexp(x, n)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_next_numbers(dtype):
    rng = numpy.random.default_rng(5)
    x, y = (rng.standard_normal(500).astype(dtype) for _ in range(2))
    x[:9] = y[5:14] = [0, -0.0, 1, -1, INF, -INF, NAN, numpy.finfo(dtype).max, 5e-324]
    made = genesis.nextafter(genesis.tensor(x), genesis.tensor(y)).numpy()
    expected = numpy.nextafter(x, y)
    assert numpy.array_equal(made, expected, equal_nan=True)
    assert (numpy.signbit(made) == numpy.signbit(expected))[~numpy.isnan(made)].all()
    with pytest.raises(TypeError, match="nextafter is not defined for float16"):
        genesis.nextafter(genesis.tensor([1.0], dtype=genesis.float16), 2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*VALUES, "relu6", "heaviside"])
def test_forms_of_a_call(name, dtype):
    """Fused or alone, as a function or a method, in place or into a tensor: the same bits."""
    rng = numpy.random.default_rng(6)
    parameters = VALUES[name][-1][0][1:] if name in VALUES else (0.5,) * (name == "heaviside")
    x = genesis.tensor(rng.uniform(-4, 4, 700).astype("f4")).to(getattr(genesis, dtype))
    one = genesis.tensor(1.0, dtype=x.dtype)
    alone = getattr(genesis, name)(x, *parameters)
    genesis.flush()
    bits = alone.double().numpy().tobytes()
    fused = getattr(x * one, name)(*parameters) * one
    assert fused.double().numpy().tobytes() == bits
    out = genesis.empty(2, 700, dtype=x.dtype).T[:, 1]
    assert getattr(genesis, name)(x, *parameters, out=out) is out
    assert out.double().numpy().tobytes() == bits
    own = x.clone()
    assert getattr(own, name + "_")(*parameters) is own
    assert own.double().numpy().tobytes() == bits
    genesis.set_fusion(False)
    try:
        apart = getattr(x * one, name)(*parameters) * one
    finally:
        genesis.set_fusion(True)
    assert apart.double().numpy().tobytes() == bits


def test_parameters_are_pytorchs():
    x = genesis.tensor([-2.0, 0.5, 30.0])
    assert genesis.leaky_relu(x).tolist() == genesis.leaky_relu(x, 0.01).tolist()
    assert genesis.leaky_relu(x, negative_slope=0.5).tolist() == [-1, 0.5, 30]
    assert genesis.leaky_relu(input=x, negative_slope=0.5).tolist() == [-1, 0.5, 30]
    assert genesis.elu(x).tolist() == genesis.elu(x, alpha=1).tolist()
    assert genesis.softplus(x, threshold=20.0).tolist() == x.softplus(1.0, 20.0).tolist()
    assert genesis.softplus(x, 2, -100).tolist() == x.tolist()
    assert genesis.hardtanh(x, -1.5).tolist() == [-1.5, 0.5, 1]
    assert genesis.hardtanh(x, max_val=2.5).tolist() == [-1, 0.5, 2.5]
    assert genesis.hardtanh(genesis.tensor([-5, 5])).tolist() == [-1, 1]
    assert genesis.logit(x, eps=None).isnan().tolist() == [True, False, True]
    assert genesis.log_sigmoid(x).tolist() == genesis.logsigmoid(x).tolist()
    for call in (
        lambda own: genesis.leaky_relu(own, 0.5, True),
        lambda own: genesis.leaky_relu(own, 0.5, inplace=True),
        lambda own: own.leaky_relu_(0.5),
        lambda own: own.leaky_relu_(0.5, True),
    ):
        own = x.clone()
        assert call(own) is own and own.tolist() == [-1, 0.5, 30]
    own = x.clone()
    assert genesis.relu6(own, inplace=False) is not own and own.tolist() == x.tolist()
    slopes = genesis.tensor([0.5, 2.0, 3.0])
    assert genesis.leaky_relu(x, slopes).tolist() == [-1, 0.5, 30]


def test_calls_that_do_not_fit():
    x = genesis.tensor([1.0])
    for call in (
        lambda: genesis.leaky_relu(),
        lambda: genesis.leaky_relu(x, 1, False, 2),
        lambda: genesis.heaviside(x),
        lambda: x.erfc(1),
    ):
        with pytest.raises(TypeError, match="operand"):
            call()
    with pytest.raises(TypeError, match="slope"):
        genesis.leaky_relu(x, slope=1)
    with pytest.raises(TypeError, match="two values"):
        genesis.leaky_relu(x, 0.5, negative_slope=0.5)
    with pytest.raises(TypeError, match="softplus"):
        genesis.softplus(x, "beta")
    with pytest.raises(TypeError, match="relu6 is not defined for bool"):
        genesis.relu6(genesis.tensor([True]))


# ---- division of float64 ----


def quotients(draw):
    """Pairs whose quotient is any number, an integer, or as near to one as can be; and edges."""
    edges = [0.0, -0.0, INF, -INF, NAN, 5e-324, -5e-324, 1.7e308, 2.0**52, 2.0**-850, 2.0**900]
    wide = draw.standard_normal(2000) * 10.0 ** draw.integers(-320, 308, 2000)
    pool = numpy.concatenate([wide, draw.integers(-50, 50, 2000), edges, -draw.random(100)])
    x, y = draw.choice(pool, 60_000), draw.choice(pool, 60_000)
    part = x[:15_000]
    y[:15_000] = part / draw.integers(1, 1000, 15_000)
    part = x[15_000:30_000]
    y[15_000:30_000] = part * (1 + draw.integers(-3, 4, 15_000) * 2.0**-52)
    part = x[30_000:45_000]
    ends = draw.choice([-INF, INF], 15_000)
    y[30_000:45_000] = numpy.nextafter(part / 2.0 ** draw.integers(0, 53, 15_000), ends)
    return x, y


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_remainders_have_numpys_bits(name):
    with numpy.errstate(all="ignore"):
        x, y = quotients(numpy.random.default_rng(11))
        right = getattr(numpy, name)(x, y)
    for order in (slice(None), numpy.random.default_rng(12).permutation(len(x))):
        given = [genesis.from_numpy(numpy.ascontiguousarray(one[order])) for one in (x, y)]
        made = getattr(genesis, name)(*given).numpy()
        is_same = (made.view("i8") == right[order].view("i8")) | (
            numpy.isnan(made) & numpy.isnan(right[order])
        )
        assert is_same.all()


def test_erf_of_float64_is_odd_and_ends_at_one():
    x = numpy.concatenate([numpy.geomspace(5e-324, 30, 4001), [0.0, INF, 1.0, 6.0]])
    made = genesis.erf(genesis.from_numpy(x)).numpy()
    right = numpy.array([math.erf(one) for one in x])
    assert (abs(made - right) <= 2 * numpy.spacing(right)).all()
    assert (made[x > 6] == 1).all()
    turned = genesis.erf(genesis.from_numpy(-x)).numpy()
    assert (turned.view("i8") == (-made).view("i8")).all()
    assert math.isnan(genesis.erf(genesis.tensor(NAN, dtype=genesis.float64)).item())
