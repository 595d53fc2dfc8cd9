"""Matrix products on a GPU, real or simulated, beside the same on the CPU.

    python tests/ops/device_matmul.py [SECTION ...]

Where there is cuBLASLt, floating numbers are multiplied by it, and with GENESIS_BLAS=off by our
own kernel.
"""

from __future__ import annotations

import random
import sys
import threading

from device_tensors import run

import genesis

FLOATS = [genesis.float16, genesis.bfloat16, genesis.float32, genesis.float64]
INTEGERS = [
    *(genesis.uint8, genesis.uint16, genesis.uint32, genesis.uint64),
    *(genesis.int8, genesis.int16, genesis.int32, genesis.int64),
]
TYPES = [genesis.bool, *INTEGERS, *FLOATS]
# Sums of float32 (float64) differ by this for each product; results are rounded to this.
UNITS = {genesis.float64: (2.0**-53, 2.0**-53)}
UNITS |= {genesis.float32: (2.0**-24, 2.0**-24), genesis.bfloat16: (2.0**-24, 2.0**-8)}
UNITS |= {genesis.float16: (2.0**-24, 2.0**-11)}
# Around 0, 1, and the sizes of tiles.
SHAPES = [
    ((3,), (3,)), ((0,), (0,)), ((1, 1), (1, 1)), ((5,), (5, 7)), ((31, 33), (33,)),
    ((2, 3), (3, 4)), ((0, 3), (3, 4)), ((3, 0), (0, 4)), ((3, 4), (4, 0)), ((65, 17), (17, 67)),
    ((64, 16), (16, 64)), ((1, 7), (7, 1)), ((13, 1), (1, 17)), ((70, 131), (131, 3)),
    ((700,), (700,)), ((5, 513), (513,)),
]  # fmt: skip
BATCHES = [
    ((2, 3, 5), (5, 7)), ((4, 1, 3, 5), (6, 5, 2)), ((5, 2, 3), (3,)), ((3,), (4, 3, 2)),
    ((2, 0, 3, 4), (4, 5)), ((3, 1, 2), (3, 2, 1)), ((1, 8, 9), (7, 9, 8)),
    ((2, 1, 10, 11), (3, 11, 10)), ((2, 3, 1, 4, 5), (3, 2, 5, 6)),
]  # fmt: skip


def make(dtype, shape, seed=0):
    """Elements of a type, of all sizes."""
    draw = random.Random(seed)
    count = 1
    for size in shape:
        count *= size
    if dtype is genesis.bool:
        some = [draw.random() < 0.2 for _ in range(count)]
    elif dtype in INTEGERS:
        bits = 8 * dtype.itemsize - dtype.is_signed
        low = -(2**bits) if dtype.is_signed else 0
        some = [draw.randint(low, 2**bits - 1) for _ in range(count)]
    else:
        some = [draw.choice([-1, 1]) * 4.0 ** draw.uniform(-2, 1) for _ in range(count)]
    return genesis.tensor(some, dtype=dtype).reshape(*shape)


def check(a, b, far, what):
    """Compare a product of the GPU with the exact one, or with that of the CPU."""
    near = a @ b
    assert far.device.type == "cuda", what
    assert far.shape == near.shape and far.dtype is near.dtype, (what, far.shape, near.shape)
    if not near.dtype.is_floating_point:
        assert genesis.equal(near, far.cpu()), what
        return
    each, last = UNITS[near.dtype]
    exact = a.double() @ b.double()
    # Twice: the one in float64 is not exact, either.
    bound = 2 * a.shape[-1] * each * (a.double().abs() @ b.double().abs())
    bound = bound + last * exact.abs() * 1.01 + (2.0**-24 if last == 2.0**-11 else 0)
    error = (far.cpu().double() - exact).abs()
    assert bool((error <= bound).all()), (what, (error - bound).max().item())


def both(a, b, what):
    """Multiply on the GPU."""
    check(a, b, a.cuda() @ b.cuda(), what)


def floats():
    """Floating types in odd shapes."""
    for dtype in FLOATS:
        for one, other in SHAPES:
            both(make(dtype, one), make(dtype, other, 1), f"{dtype} {one} {other}")


def integers():
    """Integers, which wrap, and bool."""
    for dtype in (genesis.bool, *INTEGERS):
        for one, other in SHAPES[5:]:
            both(make(dtype, one), make(dtype, other, 1), f"{dtype} {one} {other}")


def batches():
    """Batches, which broadcast."""
    for dtype in (genesis.float32, genesis.int32):
        for one, other in BATCHES:
            both(make(dtype, one), make(dtype, other, 1), f"{dtype} {one} {other}")
    # As many tiles as make the kernel take large ones, unless elements are large.
    for dtype, blocks in ((genesis.int32, 140), (genesis.int64, 140 * 2 * 2)):
        with genesis.cuda.profiler() as profile:
            both(make(dtype, (140, 70, 3)), make(dtype, (140, 3, 66), 1), "large tiles")
        grids = [event.grid for event in profile.events if event.name == "matmul_kernel"]
        assert grids == [(blocks, 1, 1)], grids
    both(make(genesis.int32, (600, 18)), make(genesis.int32, (18, 130), 1), "groups of tiles")


def layouts():
    """Views: transposed, sliced, reversed, expanded, with any offset."""
    views = [
        ("as it is", lambda t: t[:6, :5]),
        ("transposed", lambda t: t.T[:6, :5]),
        ("every second row", lambda t: t[::2, :5][:6]),
        ("every second column", lambda t: t[:6, ::2][:, :5]),
        ("transposed, every second", lambda t: t.T[::2, ::3][:6, :5]),
        ("reversed", lambda t: t.flip(0)[:6, :5]),
        ("one row, expanded", lambda t: t[:1, :5].expand(6, 5)),
        ("one column, expanded", lambda t: t[:6, :1].expand(6, 5)),
        ("shifted", lambda t: t[1:7, 3:8]),
        ("one column", lambda t: t[:6, 2:3].expand(6, 1)),
    ]
    for dtype in (genesis.float32, genesis.float16, genesis.int32):
        base = make(dtype, (17, 17), 3)
        far = base.cuda()
        for name, view in views:
            a, g = view(base), view(far)
            for other, right in views[:9]:
                b, h = right(base), right(far)
                what = f"{dtype}: {name} by {other}"
                if a.shape[1] == 5:
                    check(a, b.T, g @ h.T, what)
                check(b.T, a, h.T @ g, what)
    stack = make(genesis.float32, (4, 3, 6, 5), 4)
    far = stack.cuda()
    for name, view in (
        ("swapped", lambda t: t.permute(1, 0, 2, 3)),
        ("inside out", lambda t: t.permute(2, 0, 1, 3)),
        ("reversed", lambda t: t.flip(0)),
        ("sliced", lambda t: t[::2, 1:]),
        ("expanded", lambda t: t[:1].expand(2, 3, 6, 5)),
    ):
        check(view(stack), view(stack).mT, view(far) @ view(far).mT, name)
        check(view(stack)[0, 0], view(stack).mT, view(far)[0, 0] @ view(far).mT, name)


def outputs():
    """Results that go into memory that is there."""
    for dtype in (genesis.float32, genesis.float16, genesis.int32):
        a, b = make(dtype, (7, 5)), make(dtype, (5, 9), 1)
        g, h = a.cuda(), b.cuda()
        room = genesis.zeros(20, 20, dtype=dtype).cuda()
        for name, view in (
            ("whole rows", lambda t: t[:7, :9]),
            ("transposed", lambda t: t.T[:7, :9]),
            ("scattered", lambda t: t[::2, ::2][:7, :9]),
        ):
            room.zero_()
            out = view(room)
            assert genesis.matmul(g, h, out=out) is out
            check(a, b, out, f"{dtype} {name}")
            around = room.cpu()
            view(around).zero_()
            assert not around.any().item(), f"{dtype} {name}: written elsewhere"
        square = make(dtype, (6, 6), 5)
        far = square.cuda()
        genesis.matmul(far, far.T, out=far)
        check(square, square.T, far, "into an operand")
        pending = g.cpu().cuda() * 1
        check(a, b, pending @ h, "of what waits")
    ones = genesis.ones(2, 3, 4).cuda()
    assert genesis.bmm(ones, ones.mT).sum().item() == 72
    assert genesis.tensordot(ones, ones, ([0, 2], [0, 2])).tolist() == [[8.0] * 3] * 3


def sums():
    """Products to which something is added: by the library where it can, rounded once."""
    kinds = [
        ("a row", lambda t: t[0, :9]),
        ("a matrix", lambda t: t[:7, :9]),
        ("a matrix by columns", lambda t: t.T[:7, :9]),
        ("a column", lambda t: t[:7, :1]),
        ("a number", lambda t: t[0, 0]),
        ("a row with an offset", lambda t: t[0, 1:10]),
        ("every second of a row", lambda t: t[0, ::2][:9]),
        ("a row, reversed", lambda t: t[0, :9].flip(0)),
        ("one row", lambda t: t[:1, :9]),
        ("another type", lambda t: t[0, :9].double()),
        ("what waits", lambda t: t[0, :9] * 1),
    ]
    for dtype in (*FLOATS, genesis.int32):
        base, a, b = make(dtype, (20, 20), 7), make(dtype, (7, 5)), make(dtype, (5, 9), 1)
        for name, view in kinds:
            what = f"{dtype} {name}"
            near = view(base)
            made = genesis.addmm(view(base.cuda()), a.cuda(), b.cuda())
            far = made.cpu()
            expected = genesis.addmm(near, a, b)
            assert far.dtype is expected.dtype and far.shape == expected.shape, what
            if not dtype.is_floating_point:
                assert genesis.equal(far, expected), what
                continue
            exact = a.double() @ b.double() + near.double()
            size = a.double().abs() @ b.double().abs() + near.double().abs()
            each, last = UNITS[dtype]
            # Twice rounded where the library does not add.
            bound = 12 * each * size + 2 * last * size * 1.01 + 2.0**-23
            error = (far.double() - exact).abs()
            assert bool((error <= bound).all()), (what, (error - bound).max().item())
    for shapes in (((5, 1), (1, 1), (1,)), ((7, 4), (4, 1), (7, 1)), ((1, 4), (4, 6), (6,))):
        a, b, c = (make(genesis.float32, shape, seed) for seed, shape in enumerate(shapes))
        far = genesis.addmm(c.cuda(), a.cuda(), b.cuda()).cpu()
        assert genesis.allclose(far, genesis.addmm(c, a, b), rtol=1e-5, atol=1e-5), shapes
    a = genesis.ones(2, 3).cuda()
    assert genesis.addmm(genesis.tensor([float("nan"), -1, 1]).cuda(), a, a.T @ a).isnan().any()
    assert genesis.addmm(a, a[:, :0], a[:0]).tolist() == [[1.0] * 3] * 2
    side = genesis.cuda.Stream()
    for _ in range(5):
        with genesis.cuda.stream(side):
            bias = genesis.arange(3.0, device="cuda") * 1
        total = genesis.addmm(bias, a[:, :2], a[:, :3])
        del bias
        assert total.tolist() == [[2.0, 3.0, 4.0]] * 2


def errors():
    """What cannot be."""
    g = genesis.ones(2, 3).cuda()
    for call, kind, text in (
        (lambda: g @ g, RuntimeError, "shapes (2, 3) and (2, 3)"),
        (lambda: g @ genesis.ones(3, 2), ValueError, "one tensor is on"),
        (lambda: g @ g.T.int(), TypeError, "one operand is float32"),
        (lambda: genesis.matmul(g, g.T, out=genesis.ones(2, 2)), ValueError, "another device"),
        (lambda: genesis.matmul(g, g.T, out=g), RuntimeError, "the result has shape (2, 2)"),
        (lambda: genesis.addmm(g, g, g.T), RuntimeError, "(2, 3) cannot be broadcast to (2, 2)"),
        (
            lambda: genesis.addmm(g[None], g.T, g),
            RuntimeError,
            "addmm: a tensor of shape (1, 2, 3)",
        ),
        (lambda: genesis.addmm(g[0], g, g[0]), RuntimeError, "addmm: the operands must"),
        (lambda: genesis.addmm(g[0], g, 3), TypeError, "addmm: operands are tensors"),
    ):
        try:
            call()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)


def streams():
    """Streams, threads, and memory that is used again at once."""
    a = make(genesis.float32, (33, 129))
    g = a.cuda()
    side = genesis.cuda.Stream()
    for _ in range(5):
        with genesis.cuda.stream(side):
            product = (g * 2) @ g.T
        again = product @ genesis.ones(33, device="cuda")
        del product
        with genesis.cuda.stream(side):
            room = genesis.zeros(33, 33, device="cuda")
            genesis.matmul(g, g.T, out=room)
        check(a * 2, a.T @ genesis.ones(33), again, "across streams")
        check(a, a.T, room, "out= in a stream")
    failures = []

    def work(seed):
        try:
            b = make(genesis.float32, (129, 3 + seed % 3), seed)
            for _ in range(3):
                both(a, b, f"thread {seed}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def precision():
    """TF32 only where it was asked for."""
    a = genesis.tensor([[1 + 2.0**-12] * 64] * 64)
    exact = (a @ a).cuda()
    assert genesis.equal(a.cuda() @ a.cuda(), exact), "float32 is not exact"
    genesis.set_float32_matmul_precision("high")
    rounded = (a.cuda() @ a.cuda())[0, 0].item()
    genesis.set_float32_matmul_precision("highest")
    assert genesis.equal(a.cuda() @ a.cuda(), exact), "float32 is not exact any more"
    print(f"  64 (1 + 2**-12)**2: {exact[0, 0].item()}, with TF32 allowed {rounded}")


SECTIONS = [floats, integers, batches, layouts, outputs, sums, errors, streams, precision]

if __name__ == "__main__":
    for section in SECTIONS:
        if not sys.argv[1:] or section.__name__ in sys.argv[1:]:
            run(section)
