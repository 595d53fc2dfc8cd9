"""Tensors on a GPU, real or simulated, beside the CPU: every operation, type and layout.

    python tests/ops/device_tensors.py [--all] [SECTION ...]

Many operations go into one program, with every result kept: the kernels are few, and large. Without
--all only some types take part: a kernel costs the simulator half a second.
"""

from __future__ import annotations

import gc
import math
import random
import struct
import sys
import tempfile

import genesis

FLOATS = [genesis.float16, genesis.bfloat16, genesis.float32, genesis.float64]
INTEGERS = [
    *(genesis.uint8, genesis.uint16, genesis.uint32, genesis.uint64),
    *(genesis.int8, genesis.int16, genesis.int32, genesis.int64),
]
EVERY = [genesis.bool, *INTEGERS, *FLOATS]
SOME = [
    genesis.bool,
    genesis.uint8,
    genesis.int64,
    genesis.uint64,
    genesis.float16,
    genesis.float32,
]
TYPES = EVERY if "--all" in sys.argv else SOME

# In units of the last place of the result's type; 0: the same bits.
EXACT = [
    *("neg", "abs", "sign", "square", "floor", "ceil", "round", "trunc", "sqrt", "relu"),
    *("relu6", "hardswish"),
    *("isnan", "isinf", "isfinite", "logical_not", "reciprocal", "rsqrt"),
]
NEAR = [
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh", "erf"),
    *("erfc", "erfinv", "lgamma", "sinc"),
    *("elu", "celu", "selu", "mish", "softplus", "logsigmoid", "leaky_relu", "hardtanh"),
    *("sigmoid", "gelu", "silu", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
]
PAIRS = [
    *("add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"),
    *("logical_and", "logical_or", "logical_xor", "heaviside"),
]
NEAR_PAIRS = ["ldexp", "logaddexp", "logaddexp2", "xlogy", "logit"]
INTEGER_PAIRS = [
    *("floor_divide", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"),
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 700.0, -90.0, math.inf, -math.inf, math.nan]


def numbers(dtype, count, seed=0):
    """Elements of a type, with its special ones among them."""
    draw = random.Random(seed)
    if dtype is genesis.bool:
        return genesis.tensor([draw.random() < 0.5 for _ in range(count)])
    if dtype in INTEGERS:
        bits = 8 * dtype.itemsize - dtype.is_signed
        low = -(2**bits) if dtype.is_signed else 0
        edges = [low, 2**bits - 1, 0, 1, 2, 3]
        some = [
            draw.choice(edges) if draw.random() < 0.3 else draw.randint(low, 2**bits - 1)
            for _ in range(count)
        ]
        return genesis.tensor(some, dtype=dtype)
    some = [
        draw.choice(SPECIAL) if draw.random() < 0.3 else draw.uniform(-8, 8) for _ in range(count)
    ]
    return genesis.tensor(some, dtype=dtype)


def same(near, far, what, ulps=0, scale=None):
    """Check a result of the GPU against that of the CPU.

    `scale`: what errors are relative to, where terms cancel each other; of the result's shape.
    """
    assert far.device.type == "cuda", what
    far = far.cpu()
    assert near.dtype == far.dtype and near.shape == far.shape, (what, near.dtype, far.dtype)
    if ulps == 0 or not near.dtype.is_floating_point:
        a, b = near.flatten().tolist(), far.flatten().tolist()
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            both = isinstance(x, float) and math.isnan(x) and math.isnan(y)
            signs = not isinstance(x, float) or math.copysign(1, x) == math.copysign(1, y)
            assert both or (x == y and signs), (what, i, x, y)
        return
    digits = {2: 8 if near.dtype is genesis.bfloat16 else 11, 4: 24, 8: 53}[near.dtype.itemsize]
    sizes = (near.abs() if scale is None else scale).flatten().tolist()
    pairs = zip(near.flatten().tolist(), far.flatten().tolist(), sizes, strict=True)
    for i, (x, y, size) in enumerate(pairs):
        if math.isnan(x) or math.isinf(x):
            assert math.isnan(x) == math.isnan(y) and (math.isnan(x) or x == y), (what, i, x, y)
        else:
            bound = ulps * max(
                math.ulp(max(abs(x), size)) * 2.0 ** (53 - digits),
                1e-44 if digits == 24 else 1e-7 if digits < 24 else 0,
            )
            assert abs(x - y) <= bound, (what, i, x, y)


def in_use():
    """Bytes in use on the CPU and on the GPU."""
    gc.collect()
    genesis.cuda.synchronize()
    return [genesis.memory_stats(device=device).allocated_bytes for device in ("cpu", "cuda")]


def run(section, *arguments):
    """Run a section, after which all memory is free that was free before."""
    before = in_use()
    section(*arguments)
    after = in_use()
    assert after == before, (section.__name__, before, after)
    print(section.__name__, flush=True)


def together(results):
    """Compute all in one program: their sum needs them all."""
    total = None
    for result in results:
        part = result.to(genesis.float32)
        total = part if total is None else total + part
    genesis.flush()
    return results


def in_one(names, tensors, ulps):
    """Operations in groups, each one program on the GPU."""
    gpu = [tensor.cuda() for tensor in tensors]
    for start in range(0, len(names), 9):
        group = names[start : start + 9]
        far = together([getattr(genesis, name)(*gpu) for name in group])
        for name, result in zip(group, far, strict=True):
            same(getattr(genesis, name)(*tensors), result, name, ulps)


def elementwise():
    """Every elementwise operation for every type that has it."""
    for dtype in TYPES:
        x, y = numbers(dtype, 331), numbers(dtype, 331, 1)
        gx, gy = x.cuda(), y.cuda()
        one = [
            n
            for n in EXACT
            if dtype.is_floating_point or n not in ("reciprocal", "rsqrt", "sqrt", "hardswish")
        ]
        if dtype is genesis.bool:
            one = ["isnan", "isfinite", "logical_not"]
        one += [] if dtype.is_floating_point else ["bitwise_not"]
        in_one(one, [x], 0)
        pairs = PAIRS[1 if dtype is genesis.bool else 0 :]
        pairs = [n for n in pairs if not (dtype is genesis.bool and n in ("sub", "mul"))]
        pairs += INTEGER_PAIRS if dtype in INTEGERS else []
        pairs += ["div"] if dtype.is_floating_point else []
        in_one(pairs, [x, y], 0)
        same(genesis.where(x > y, x, y), genesis.where(gx > gy, gx, gy), f"where {dtype}")
        z = numbers(dtype, 331, 2)
        same(x.clamp(y, z), gx.clamp(gy, z.cuda()), f"clamp {dtype}")
        if dtype.is_floating_point:
            same(genesis.lerp(x, y, z), genesis.lerp(gx, gy, z.cuda()), f"lerp {dtype}")
            same(genesis.hypot(x, y), genesis.hypot(gx, gy), f"hypot {dtype}", 1)
    for dtype in (genesis.float32, genesis.float64):
        x = numbers(dtype, 331).clamp(-80, 80)
        x = genesis.where(x < -1, -x, x)  # where gelu is a difference, its last places are lost
        in_one(NEAR, [x], 16)
        a, b = numbers(dtype, 100).abs().clamp(0.1, 5), numbers(dtype, 100, 3).clamp(-3, 3)
        same(a**b, a.cuda() ** b.cuda(), "pow", 16)
        in_one(["digamma"], [x.abs() + 2], 16)  # beyond its zeros
        in_one(NEAR_PAIRS, [a, b.abs()], 16)
        for n in (1, 2, 7):
            same(genesis.polygamma(n, a), genesis.polygamma(n, a.cuda()), "polygamma", 32)
            same(genesis.polygamma(n, -a), genesis.polygamma(n, -a.cuda()), "polygamma", 4096)
        in_one(["nextafter"], [x, numbers(dtype, 331, 4)], 0)
        c, d = numbers(dtype, 331, 4), numbers(dtype, 331, 5)
        same(genesis.atan2(c, d), genesis.atan2(c.cuda(), d.cuda()), "atan2", 16)
        same(a // b, a.cuda() // b.cuda(), "floor_divide")
        same(a % b, a.cuda() % b.cuda(), "remainder")
        same(genesis.fmod(c, d), genesis.fmod(c.cuda(), d.cuda()), "fmod")


def conversions():
    """From every type to every type."""
    for dtype in TYPES:
        x = numbers(dtype, 50)
        if dtype.is_floating_point:
            x = genesis.tensor(
                [0.0, 1.0, 2.5, 100.0, 3.1415926, 60000.0, 7.0], dtype=genesis.float64
            ).to(dtype)
        far = x.cuda()
        for to in TYPES:
            if dtype.is_floating_point and to in (genesis.int8, genesis.uint8, genesis.int16):
                continue
            same(x.to(to), far.to(to), f"{dtype} to {to}")
    every = genesis.arange(0, 65536).to(genesis.int32)
    halves = genesis.tensor(
        [struct.unpack("e", struct.pack("H", i))[0] for i in range(0, 65536, 7)],
        dtype=genesis.float16,
    )
    same(halves.float(), halves.cuda().float(), "every half")
    wide = (every.to(genesis.float32) * 1.37 - 30000.5) * 3
    same(wide.half(), wide.cuda().half(), "to half")
    same(wide.bfloat16(), wide.cuda().bfloat16(), "to bfloat16")
    # Halfway between two halves, and a little more than float32 has: rounded once, up.
    beside = [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, -1e300, 1e-300]
    beside = genesis.tensor(beside, dtype=genesis.float64)
    large = genesis.tensor([2**24 + 2**16 + 1, -(2**60) - 2**52 - 1, 2**63 - 1])
    natural = genesis.tensor([2**24 + 2**16 + 1, 2**63 + 2**55 + 1, 2**64 - 1])
    for half in (genesis.float16, genesis.bfloat16):
        for exact in (beside, large, large[:1].int(), natural, natural[:1].to(genesis.uint32)):
            same(exact.to(half), exact.cuda().to(half), f"{exact.dtype} to {half}, once")
            same((exact + 0).to(half), (exact.cuda() + 0).to(half), "the same in one kernel")
        for number in beside.tolist() + large.tolist() + natural.tolist():
            same(genesis.full((3,), number, dtype=half),
                 genesis.full((3,), number, dtype=half, device="cuda"), "a number")  # fmt: skip
    bounds = genesis.tensor([0, 1, 2.0**31, 2.0**32 - 1, 2.0**53, 2.0**63, 1.5 * 2.0**63, -1.0],
                            dtype=genesis.float64)  # fmt: skip
    for exact in (bounds, bounds.float()):
        same(exact.to(genesis.uint64), exact.cuda().to(genesis.uint64), "to uint64")
        same(exact[:4].to(genesis.uint32), exact[:4].cuda().to(genesis.uint32), "to uint32")
    assert beside[:1].cuda().half().item() == 1 + 2.0**-10
    assert beside[1:2].cuda().bfloat16().item() == 1 + 2.0**-7
    assert large[:1].cuda().bfloat16().item() == 2**24 + 2**17


def layouts():
    """Views, broadcasts, odd shapes, in place."""
    a = numbers(genesis.float32, 6 * 7 * 11).clamp(-50, 50).reshape(6, 7, 11)
    g = a.cuda()
    keys = [
        lambda t: t, lambda t: t.permute(2, 0, 1), lambda t: t[:, ::2, 1:], lambda t: t[1],
        lambda t: t[:, 3], lambda t: t[..., 0], lambda t: t[2:2], lambda t: t.permute(2, 1, 0),
    ]  # fmt: skip
    for i, key in enumerate(keys):
        same(key(a) * 2 + 1, key(g) * 2 + 1, f"layout {i}")
    same(a + a[0], g + g[0], "broadcast")
    same(a[:, :, :1] * a[:1], g[:, :, :1] * g[:1], "two broadcasts")
    same(a[0].T + a[0, :, 0], g[0].T + g[0, :, 0], "transposed and broadcast")
    same(a.flip(0), g.flip(0), "flip")
    b, h = a.clone(), g.clone()
    for t in (b, h):
        t[:, 1] = 7
        t[::2] += 1
        t.permute(1, 2, 0)[2].mul_(3)
        t[:, 0] = t[:, 5]
        t[1:] = t[:-1]
    same(b, h, "in place")
    for count in (0, 1, 3, 31, 33, 257, 1025, 70001):
        x = genesis.ones(count) * 3
        y = x.cuda()
        same(x + 1, y + 1, f"{count} elements")
        if count > 3:
            same(x[1:] + x[:-1], y[1:] + y[:-1], f"{count} elements, shifted")
    x = genesis.ones(5000).cuda()
    same(genesis.ones(5000).add(1)[3:].half(), x.add(1)[3:].half(), "a view of what waits")


def packs():
    """Operands of which several elements are loaded at once, and those for which this cannot be."""
    keys = [
        lambda x: x,
        lambda x: x[:, :, 8:],  # begins at a multiple of 16 bytes
        lambda x: x[:, :, 1:25],  # does not
        lambda x: x[::-1, 1:],
        lambda x: x[:, :, :23],  # an odd length
        lambda x: x[:, :, ::2],
        lambda x: x.transpose(0, 1),
        lambda x: x[:, :2, None, :16],
    ]
    for dtype in TYPES if "--all" in sys.argv else [genesis.float16]:
        x, row, column = (
            numbers(dtype, 480).reshape(3, 5, 32),
            numbers(dtype, 32, 1),
            numbers(dtype, 15, 2),
        )
        for number, key in enumerate(keys):
            results = []
            for move in (lambda t: t, lambda t: t.cuda()):
                y, r, c = key(move(x)), move(row), move(column)
                r = r[: y.shape[-1]]
                c = c[: y.shape[0]].reshape(-1, *[1] * (y.ndim - 1))
                made = [
                    y + r,
                    c.maximum(y),
                    y.expand(2, *y.shape) + r,
                    c.expand(y.shape).contiguous(),
                ]
                if dtype.is_floating_point:
                    made += [(y + r).amax(-1), c.maximum(y).amin(0), (y.abs() * 0).add(r).amax()]
                target = key(move(x).clone())
                target += r
                results.append([*made, target])
            for near, far in zip(*results, strict=True):
                same(near, far, ("packs", dtype, number))


def tiles():
    """Transposed operands, which go through tiles: whole ones, and parts of them."""
    first, second = genesis.arange(33 * 17 * 40), genesis.arange(33 * 40 * 17) * 3
    for made, blocks in (
        (lambda x, _: x.reshape(40, -1).T + x.reshape(-1, 40), 18 * 2),
        # Neighbours in the first dimension and in the second: one of them decides.
        (
            lambda x, y: x.reshape(40, 17, 33).permute(2, 1, 0) + y.reshape(33, 40, 17).mT,
            2 * 17 * 2,
        ),
    ):
        near, far = made(first, second), [first.cuda(), second.cuda()]
        genesis.flush()
        with genesis.cuda.profiler() as profile:
            same(near, made(*far), "tiles")
        assert profile.events[0].grid == (blocks, 1, 1), profile.events  # one for each tile
    turns = [((33, 65), (1, 0)), ((3, 40, 50), (0, 2, 1)), ((17, 2, 19), (2, 1, 0))]
    for dtype in TYPES if "--all" in sys.argv else [genesis.int16]:
        for shape, order in turns:
            results = []
            for move in (lambda t: t, lambda t: t.cuda()):
                x = move(numbers(dtype, math.prod(shape)).reshape(shape))
                turned = x.permute(*order)
                straight = move(numbers(dtype, math.prod(shape), 1).reshape(turned.shape))
                made = [turned.contiguous(), turned.maximum(straight), turned == straight[..., :1]]
                straight[...] = turned.maximum(straight)
                written = x.clone()
                written.permute(*order)[...] = straight
                results.append([*made, straight, written])
            for near, far in zip(*results, strict=True):
                same(near, far, ("tiles", dtype, shape))


def folds():
    """Reductions over any dimensions, of every type."""
    for dtype in TYPES:
        x = numbers(dtype, 4 * 33 * 5).reshape(4, 33, 5)
        if dtype.is_floating_point:
            x = genesis.where(x.isfinite(), x, genesis.ones_like(x))
        g = x.cuda()
        for dims in (None, 0, 1, 2, (0, 2), (1, 2)):
            for name in ("amax", "amin", "any", "all", "sum"):
                if name != "sum" and dims not in ((None, 0, 1) if TYPES is EVERY else (None,)):
                    continue
                if dims is not None and TYPES is SOME and dtype is not genesis.float32:
                    continue
                one, other = (
                    getattr(t, name)() if dims is None else getattr(t, name)(dim=dims)
                    for t in (x, g)
                )
                scale = None
                if name == "sum" and dtype.is_floating_point:
                    scale = x.abs().sum(dim=dims)
                same(one, other, f"{name} {dtype} {dims}", 2 if name == "sum" else 0, scale)
    for shape in ((1, 1), (1, 5000), (3, 2049), (5000, 1), (2050, 3), (700, 130), (3, 0), (0, 3)):
        x = genesis.rand(*shape)
        g = x.cuda()
        for dims in (0, 1, (0, 1)):
            same(x.sum(dim=dims), g.sum(dim=dims), f"sum {shape} {dims}", 2)
            same(
                (x * 2).exp().mean(dim=dims),
                (g * 2).exp().mean(dim=dims),
                f"mean {shape} {dims}",
                8,
            )
    x = genesis.rand(70000)
    same(x.sum(), x.cuda().sum(), "a long sum", 2)
    nan = genesis.tensor([[1.0, math.nan, 3.0], [4.0, 5.0, 6.0]])
    same(nan.amax(dim=1), nan.cuda().amax(dim=1), "NaN wins")
    same(genesis.softmax(nan, 0), genesis.softmax(nan.cuda(), 0), "softmax", 8)
    for shape in ((3, 5), (2, 1000), (2, 1500), (1, 16387)):
        x = genesis.randn(*shape) * 5
        for function in (genesis.softmax, genesis.log_softmax):
            near, far = function(x, -1), function(x.cuda(), -1)
            assert (near - far.cpu()).abs().max().item() < 4e-6, (function, shape)
    for first in (-math.inf, math.nan):  # long rows, whose first elements are special
        x = genesis.randn(1, 40000)
        x[:, :2000] = first
        near, far = x.softmax(-1), x.cuda().softmax(-1).cpu()
        assert genesis.allclose(near, far, atol=1e-6, equal_nan=True), first
    x = genesis.rand(70000)
    for name in ("any", "all"):
        same(getattr(x > 0.5, name)(), getattr(x.cuda() > 0.5, name)(), f"a long {name}")
        same(
            getattr(x.reshape(7000, 10) > 0.5, name)(dim=0),
            getattr(x.cuda().reshape(7000, 10) > 0.5, name)(dim=0),
            f"a long {name} of columns",
        )
    first = x.cuda().sum().item()
    assert all(x.cuda().sum().item() == first for _ in range(3)), "a sum differs from itself"


def rows():
    """What works along a dimension, and random numbers."""
    x = numbers(genesis.float32, 60).clamp(-9, 9).reshape(5, 12)
    x = genesis.where(x.isnan(), genesis.zeros_like(x), x)
    g = x.cuda()
    for dim in (0, 1):
        for one, other in zip(x.sort(dim=dim), g.sort(dim=dim), strict=True):
            same(one, other, "sort")
        for one, other in zip(x.max(dim=dim), g.max(dim=dim), strict=True):
            same(one, other, "max")
        same(x.cumsum(dim=dim), g.cumsum(dim=dim), "cumsum", 2)
        same(x.argmin(dim=dim), g.argmin(dim=dim), "argmin")
    for one, other in zip(x.topk(3), g.topk(3), strict=True):
        same(one, other, "topk")
    same(x.unique(), g.unique(), "unique")
    for make in (genesis.rand, genesis.randn):
        genesis.manual_seed(5)
        near = make(1000)
        genesis.manual_seed(5)
        same(near, make(1000, device="cuda"), "random", 0 if make is genesis.rand else 16)
    same(genesis.cat([x, x]), genesis.cat([g, g]), "cat")
    same(genesis.stack([x, x], 1), genesis.stack([g, g], 1), "stack")


def streams():
    """Results cross streams, and memory is not reused too early."""
    side = genesis.cuda.Stream()
    x = genesis.ones(50000, device="cuda")
    for i in range(20):
        with genesis.cuda.stream(side):
            y = x * i + 1
            z = (y + 1).sum()
        w = y + z
        del y
        with genesis.cuda.stream(side):
            x.add_(0)
            again = w * 2
        assert again.max().item() == 2 * (i + 1 + 50000 * (i + 2)), i
    event = genesis.cuda.Event()
    with genesis.cuda.stream(side):
        y = genesis.ones(50000, device="cuda") + 1
        event.record(side)
    event.synchronize()
    assert side.query(), "the event does not cover what was recorded before it"
    assert y.sum().item() == 100000
    genesis.cuda.synchronize()


def moves():
    """Between devices, and what cannot be."""
    x = genesis.rand(7, 9)
    g = x.to("cuda")
    assert genesis.equal(g.cpu(), x) and genesis.equal(g.T.cpu(), x.T)
    assert g.to(device="cuda", dtype=genesis.float64).dtype is genesis.float64
    assert g.cuda() is g and x.cpu() is x and g.to(x).device == "cpu"
    target = genesis.zeros(7, 9)
    target.copy_(g)
    assert genesis.equal(target, x)
    with tempfile.TemporaryDirectory() as directory:
        genesis.save({"g": g, "t": g.T}, f"{directory}/a")
        loaded = genesis.load(f"{directory}/a")
    assert genesis.equal(loaded["g"], x) and genesis.equal(loaded["t"], x.T)
    g[0] = genesis.zeros(9)
    assert g[0].sum().item() == 0
    assert "device='cuda:0'" in repr(g) and g[1, 2].item() == x[1, 2].item()
    import pickle

    assert genesis.equal(pickle.loads(pickle.dumps(g)).cpu(), g.cpu())
    for made in (g * genesis.tensor(2.0), genesis.tensor(2.0) * g):
        assert made.device.type == "cuda" and genesis.equal(made, g * 2)
    array = x.numpy()
    for made in (g + array, array + g, genesis.maximum(g, array), g.where(array > 0, array)):
        assert made.device.type == "cuda"
    assert genesis.equal((g + array).cpu(), g.cpu() + x)
    for call, kind, text in (
        (lambda: g + x, ValueError, "one tensor is on"),
        (lambda: genesis.cat([x, g]), ValueError, "cat: one tensor is on"),
        (lambda: g.numpy(), TypeError, "use cpu()"),
        (lambda: memoryview(g), BufferError, "use cpu()"),
        (lambda: g + g[:, :3], RuntimeError, "cannot be broadcast"),
    ):
        try:
            call()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    genesis.set_default_device("cuda")
    assert genesis.zeros(2).device == "cuda" and genesis.tensor([1]).device == "cuda"
    genesis.set_default_device(None)


def alike():
    """Kernels that differ only in how an operand is found: a number, an element, rows of a matrix.

    Each is the first to be made once, so that none can be taken for another.
    """
    for dtype in TYPES:
        x, y = (genesis.arange(48).view(4, 12).to(dtype) % 5 for _ in range(2))
        g, h = (one.to("cuda")[:, :8] for one in (x, y))
        x, y = x[:, :8], y[:, :8]
        others = [lambda b: 3, lambda b: b, lambda b: b[:, :1], lambda b: b[1, 1].expand(4, 8)]
        for op, order in ((genesis.add, others), (genesis.mul, others[::-1])):
            for other in order:
                assert genesis.equal(op(g, other(h)).cpu(), op(x, other(y))), (dtype, op)


def forked():
    """A child cannot compute what waits for a GPU, and everything of the CPU goes on."""
    import os
    import warnings

    warnings.simplefilter("ignore", DeprecationWarning)  # the child does little, and ends
    waiting = genesis.ones(10, device="cuda") + 1
    x = genesis.ones(10) + 1
    child = os.fork()
    if child == 0:
        try:
            genesis.flush()
            assert x.sum().item() == 20
            assert genesis.memory_stats(device="cpu").allocated_bytes > 0
            genesis.memory_stats()
            try:
                waiting.tolist()
            except RuntimeError as error:
                assert "forked" in str(error)
            else:
                raise AssertionError("computed")
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert waiting.sum().item() == 20


SECTIONS = [
    elementwise,
    alike,
    forked,
    conversions,
    layouts,
    packs,
    tiles,
    folds,
    rows,
    streams,
    moves,
]

if __name__ == "__main__":
    for section in SECTIONS:
        wanted = [one for one in sys.argv[1:] if one != "--all"]
        if not wanted or section.__name__ in wanted:
            run(section)
