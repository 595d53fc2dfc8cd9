"""Rows and random numbers on a GPU, real or simulated, beside the same on the CPU.

python tests/ops/device_rows.py [SECTION ...]
"""

from __future__ import annotations

import math
import sys

from device_tensors import FLOATS, INTEGERS, TYPES, numbers, run, same

import genesis


def pairs(near, far, what, ulps=0):
    """Check several results."""
    for i, (one, other) in enumerate(zip(near, far, strict=True)):
        same(one, other, (what, i), ulps)


def seeded(make):
    """Make something with the CPU's generator and with the GPU's, from one seed."""
    made = []
    for device in ("cpu", "cuda"):
        genesis.manual_seed(17)
        make(device)  # the second of two
        made.append(make(device))
    return made


def randoms():
    """The same numbers from the same seed."""
    for dtype in FLOATS:
        for count in (0, 1, 2, 3, 31, 33, 1025):
            for make in (genesis.rand, genesis.randn):
                near, far = seeded(lambda d, m=make, n=count, t=dtype: m(n, dtype=t, device=d))
                same(near, far, (make, dtype, count), 0 if make is genesis.rand else 2)
    same(*seeded(lambda d: genesis.rand(70001, device=d)), "many")
    for dtype in [genesis.bool, *INTEGERS]:
        low, high = (0, 2) if dtype is genesis.bool else (0, 100)
        for count in (0, 1, 33, 1025):
            near, far = seeded(
                lambda d, n=count, t=dtype, a=low, b=high: genesis.randint(
                    a, b, (n,), dtype=t, device=d
                )
            )
            same(near, far, ("randint", dtype, count))
    for low, high in ((-(2**62), 2**62 + 1), (-5, 2**32 - 5), (0, 2**32 + 1)):
        near, far = seeded(lambda d, a=low, b=high: genesis.randint(a, b, (7, 11), device=d))
        same(near, far, ("randint", low, high))
    near, far = seeded(
        lambda d: genesis.randint(-(2**31), 2**31, (1030,), dtype=genesis.int32, device=d)
    )
    same(near, far, "all numbers of a type")
    near, far = seeded(lambda d: genesis.randint(-9, 9, (99,), dtype=genesis.float16, device=d))
    same(near, far, "integers of a floating type")
    near, far = seeded(lambda d: genesis.randperm(1000, device=d))
    same(near, far, "randperm")

    def views(device):
        made = genesis.zeros(6, 35, device=device)
        made[1:3].uniform_()
        made[:, 1::3].normal_()
        made.T[4:6].uniform_(-1, 1)
        made.flatten()[5:12].uniform_()  # aligned to 4 bytes only
        return made

    same(*seeded(views), "into views", 2)
    x = genesis.rand(100000, device="cuda")
    assert x.min().item() >= 0 and x.max().item() < 1 and abs(x.mean().item() - 0.5) < 0.01
    assert genesis.rand(70001, dtype=genesis.float16, device="cuda").max().item() < 1


def extremes():
    """Where the largest and smallest are, in every layout."""
    for dtype in TYPES:
        x = numbers(dtype, 4 * 33 * 5).reshape(4, 33, 5)
        g = x.cuda()
        for dim in (0, 1, 2):
            pairs(x.max(dim=dim), g.max(dim=dim), ("max", dtype, dim))
            pairs(x.min(dim=dim), g.min(dim=dim), ("min", dtype, dim))
        same(x.argmax(), g.argmax(), ("argmax", dtype))
    for shape in (
        (),
        (1,),
        (70001,),
        (1, 5000),
        (3, 2049),
        (1025, 31),
        (2050, 3),
        (300, 40),
        (0, 3),
    ):
        x = genesis.randint(0, 50, shape).float()
        g = x.cuda()
        for dim in range(x.ndim):
            if shape[dim] > 0:
                pairs(x.max(dim=dim), g.max(dim=dim), ("ties", shape, dim))
                pairs(x.min(dim=dim), g.min(dim=dim), ("ties", shape, dim))
    x = numbers(genesis.float32, 40 * 30).reshape(40, 30)
    for key in (lambda t: t.T, lambda t: t[::3, 1:], lambda t: t.flip(1), lambda t: t[3:4]):
        same(key(x).argmin(dim=1), key(x.cuda()).argmin(dim=1), "a view")
        same(key(x).argmax(dim=0, keepdim=True), key(x.cuda()).argmax(dim=0, keepdim=True), "kept")
    x = genesis.zeros(400, 35, dtype=genesis.float64, device="cuda")
    genesis.flush()
    with genesis.cuda.profiler() as profile:
        assert x.argmax(dim=0)[0].item() == 0
    grid = profile.events[0].grid
    assert grid == (2, 7, 1), grid  # a block has 32 columns and 58 of the 400 rows
    x = genesis.zeros(5000)
    x[4000] = x[4500] = math.nan
    for name in ("argmax", "argmin"):
        assert getattr(x.cuda(), name)().item() == 4000, "the first NaN wins"
    zeros = genesis.tensor([-0.0, 0.0, -0.0]).cuda()
    assert zeros.argmax().item() == zeros.argmin().item() == 0


def cumulated():
    """Sums and products along each dimension."""
    for dtype in TYPES:
        x = numbers(dtype, 3 * 35 * 4).reshape(3, 35, 4)
        if dtype.is_floating_point:
            x = genesis.where(x.isfinite(), x.clamp(-8, 8), genesis.ones_like(x)).abs()
        g = x.cuda()
        for dim in (0, 1, 2):
            same(x.cumsum(dim=dim), g.cumsum(dim=dim), ("cumsum", dtype, dim), 2)
    for shape in (
        (),
        (1,),
        (33, 1025),
        (1, 5000),
        (70001,),
        (9, 600),
        (2050, 3),
        (2, 300, 7),
        (3, 0),
    ):
        for x in (genesis.rand(shape), genesis.randint(-9, 9, shape)):
            for dim in range(len(shape)):
                same(x.cumsum(dim=dim), x.cuda().cumsum(dim=dim), ("cumsum", shape, dim), 2)
                for near, far in zip(x.cummax(dim=dim), x.cuda().cummax(dim=dim), strict=True):
                    same(near, far, ("cummax", shape, dim))
    for dtype in (genesis.float16, genesis.float32, genesis.float64, genesis.int32):
        for shape in ((5, 40), (1, 5000), (5000, 3)):
            x = genesis.rand(shape) * 1.5 + 0.25
            x = (x * 3).to(dtype) if dtype is genesis.int32 else x.to(dtype)
            for dim in (0, 1):
                near, far = x.cumprod(dim=dim), x.cuda().cumprod(dim=dim)
                same(near, far, ("cumprod", dtype, shape, dim), shape[dim])
    # No part's product is more than the row's: 0 stays 0 beside 3^8000, and infinity is infinity.
    for first in (0.0, math.inf, -1e-300, math.nan):
        x = genesis.ones(8000, dtype=genesis.float64) * 3
        x[0] = first
        same(x.cumprod(dim=0), x.cuda().cumprod(dim=0), ("cumprod", first), 5000)
    # The largest and the smallest numbers of a type side by side, in groups of 4.
    for dtype, power in ((genesis.float16, 15), (genesis.float32, 127)):
        x = genesis.tensor(([2.0**power] * 4 + [-(2.0**-power)] * 4) * 525 + [3.0] * 7)
        for y in (x, x.reshape(7, 601)):
            near, far = y.to(dtype).cumprod(dim=-1), y.to(dtype).cuda().cumprod(dim=-1)
            same(near, far, ("cumprod", dtype, "extremes"))
    for dtype in TYPES:
        x = numbers(dtype, 5 * 700).reshape(5, 700)
        for near, far in zip(x.cummin(dim=1), x.cuda().cummin(dim=1), strict=True):
            same(near, far, ("cummin", dtype))
    x = genesis.randint(0, 4, (2, 9001)).float()  # long rows go in parts, and have many equals
    x[1, 5000] = float("nan")
    for name in ("cummax", "cummin"):
        for near, far in zip(getattr(x, name)(dim=1), getattr(x.cuda(), name)(dim=1), strict=True):
            same(near, far, (name, "equals"))
    x = genesis.rand(40, 30)
    for key in (lambda t: t.T, lambda t: t[::3, 1:], lambda t: t.flip(1)):
        same(key(x).cumsum(dim=1), key(x.cuda()).cumsum(dim=1), "a view", 2)
    far = genesis.randn(70001, device="cuda")
    assert genesis.equal(far.cumsum(dim=0), far.cumsum(dim=0)), "a sum differs from itself"


def sorted_rows():
    """Sorted rows, stable, with the very bits; and the largest."""
    for dtype in TYPES:
        x = numbers(dtype, 5 * 33).reshape(5, 33)
        g = x.cuda()
        pairs(x.sort(dim=0), g.sort(dim=0), ("sort", dtype))
        pairs(x.sort(dim=1, descending=True), g.sort(dim=1, descending=True), ("descending", dtype))
        same(x.argsort(dim=1), g.argsort(dim=1), ("argsort", dtype))
        x = numbers(dtype, 2 * 2100).reshape(2, 2100)
        pairs(x.sort(descending=True), x.cuda().sort(descending=True), ("long", dtype))
    for shape in (
        (),
        (1,),
        (0,),
        (3, 0),
        (1, 31),
        (700, 3),
        (2, 1025),
        (3, 2048),
        (70001,),
        (1, 5, 4099),
    ):
        x = genesis.randint(-20, 20, shape).float()
        pairs(x.sort(), x.cuda().sort(), ("ties", shape))
    for width in (2, 8, 9, 17, 64, 129, 256, 513, 1000):  # several rows of a block, each way apart
        x = genesis.randint(-width, width, (2048 // width + 2, width))
        for y in (x, x.float()):
            pairs(
                y.sort(descending=width % 2 == 0), y.cuda().sort(descending=width % 2 == 0), width
            )
    x = numbers(genesis.float32, 3 * 4500).reshape(3, 4500)
    for key in (lambda t: t.T[:5], lambda t: t[::2, 1:900], lambda t: t.flip(1)[:, :77]):
        pairs(key(x).sort(dim=0), key(x.cuda()).sort(dim=0), "a view")
    for k in (0, 1, 7, 4500):
        pairs(x.topk(k), x.cuda().topk(k), ("topk", k))
        pairs(x.topk(k, largest=False), x.cuda().topk(k, largest=False), ("smallest", k))
    pairs(x[:, :40].topk(5, dim=1), x[:, :40].cuda().topk(5, dim=1), "topk of short rows")
    pairs(x.topk(2, dim=0), x.cuda().topk(2, dim=0), "topk of columns")
    for dtype in TYPES:
        short = numbers(dtype, 2 * 2100).reshape(2, 2100)
        for largest in (False, True):
            pairs(
                short.topk(9, largest=largest),
                short.cuda().topk(9, largest=largest),
                ("topk", dtype),
            )
    x = genesis.randint(0, 300, (70001,)).float()
    for k in (1, 5, 300):
        pairs(x.topk(k), x.cuda().topk(k), ("topk of many", k))
    wide = genesis.randint(-(2**62), 2**62, (5000,))
    pairs(wide.topk(10), wide.cuda().topk(10), "topk of int64")


def uniques():
    """Different elements, where they are, and how many."""
    for dtype in TYPES:
        x = numbers(dtype, 300)
        pairs(
            x.unique(return_inverse=True, return_counts=True),
            x.cuda().unique(return_inverse=True, return_counts=True),
            ("unique", dtype),
        )
    for shape in ((), (0,), (1,), (33, 7), (4099,)):
        x = genesis.randint(0, 300, shape).to(genesis.int16)
        pairs(
            x.unique(return_inverse=True, return_counts=True),
            x.cuda().unique(return_inverse=True, return_counts=True),
            ("unique", shape),
        )
    x = genesis.randint(0, 200, (70001,)).to(genesis.uint8)
    same(x.unique(), x.cuda().unique(), "many")
    assert genesis.zeros(5000, device="cuda").unique().tolist() == [0.0]


def costly_programs():
    """Elements that take many instructions: loops of few at a time, the same bits as one by one."""

    def costly(x):
        return (x.sin() * x.cos() + x.tanh()).exp().sigmoid() - (x * x + 1).log()

    def packs(x):
        return [costly(x), costly(x[:, 1:]), costly(x.T)]

    def sums(x):
        return [costly(x).sum(), costly(x).sum(0), costly(x).amax(0)]

    def rows(x):
        made = costly(x)
        apart = made - made.mean(-1, keepdim=True)
        scaled = apart * (apart * apart).mean(-1, keepdim=True)
        return [scaled, scaled.sum(0), made.amax(-1), (scaled > 0).to(genesis.uint8)]

    before = genesis.cuda.get_kernel_fusion_failures()
    for dtype in FLOATS:
        for shape in ((6, 37), (33, 2048)) if dtype is genesis.float32 else ((33, 2048),):
            x = genesis.rand(shape).to(dtype).cuda()
            for function in (packs, sums, rows):
                found = []
                for is_fused in (True, False):
                    genesis.set_fusion(is_fused)
                    made = function(x)
                    genesis.flush()
                    found.append(made)
                genesis.set_fusion(True)
                for n, (one, other) in enumerate(zip(*found, strict=True)):
                    same(one, other, (function.__name__, n, dtype, shape))
    assert genesis.cuda.get_kernel_fusion_failures() == before


def streams():
    """Temporary memory goes back in the order of streams."""
    side = genesis.cuda.Stream()
    x = genesis.randint(0, 1000, (5000,))
    near = x.sort()[0].cumsum(dim=0)
    g = x.cuda()
    for _ in range(3):
        with genesis.cuda.stream(side):
            y = g.sort()[0]
        z = y.cumsum(dim=0)
        del y
        with genesis.cuda.stream(side):
            assert g.argmax().item() == x.argmax().item()
            same(near, z, "across streams")


SECTIONS = [randoms, extremes, cumulated, sorted_rows, uniques, costly_programs, streams]

if __name__ == "__main__":
    for section in SECTIONS:
        if not sys.argv[1:] or section.__name__ in sys.argv[1:]:
            run(section)
