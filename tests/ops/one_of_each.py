"""One launch of each template of kernels, for each type and class of shapes, beside the CPU.

    compute-sanitizer --tool racecheck python tests/ops/one_of_each.py
    python tests/ops/one_of_each.py --few

It is small enough for compute-sanitizer, under which `make gpu-test` runs it. With --few each class
of shapes has one type, not always the same: the simulated GPU takes half a second for a kernel.
"""

from __future__ import annotations

import math
import random
import sys
from typing import TYPE_CHECKING

import genesis

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = Callable[[genesis.Tensor], genesis.Tensor]  # onto the device that is meant

FLOATS = [genesis.float32, genesis.float16, genesis.bfloat16, genesis.float64]
INTEGERS = [
    *(genesis.int64, genesis.uint8, genesis.int32, genesis.int8, genesis.int16),
    *(genesis.uint16, genesis.uint32, genesis.uint64),
]
NUMBERS = [*FLOATS, *INTEGERS]
EVERY = [*NUMBERS, genesis.bool]
SIZES = [genesis.bool, genesis.float16, genesis.float32, genesis.int64]  # 1, 2, 4 and 8 bytes
NEAR = {genesis.float16: 4e-3, genesis.bfloat16: 4e-2, genesis.float32: 1e-5, genesis.float64: 1e-9}

IS_FEW = "--few" in sys.argv
CASES: list[tuple[str, list, Callable]] = []


def case(*dtypes):
    """A function of a dtype and a place that gives results: one class of shapes of a template."""

    def add(function):
        CASES.append((function.__name__, list(dtypes), function))
        return function

    return add


def numbers(dtype, *shape, seed=0):
    """Small numbers of a type on the CPU, of which sums and products are exact in most."""
    draw = random.Random(seed)
    count = math.prod(shape)
    if dtype is genesis.bool:
        some = [draw.random() < 0.5 for _ in range(count)]
    elif dtype in FLOATS:
        some = [draw.randint(-16, 16) / 8 for _ in range(count)]
    else:
        some = [draw.randint(-5 if dtype.is_signed else 0, 5) for _ in range(count)]
    return genesis.tensor(some, dtype=dtype).reshape(shape)


def places(most, *shape, seed=1):
    """Indices below a number, on the CPU."""
    draw = random.Random(seed)
    count = math.prod(shape)
    return genesis.tensor([draw.randrange(most) for _ in range(count)]).reshape(shape)


def together(*results):
    """Results that one program computes: their sum needs them all."""
    total = results[0].float()
    for result in results[1:]:
        total = total + result.float()
    genesis.flush()
    return [*results, total]


def chain(x, y):
    """A few operations that every type has, with all results kept, in one program."""
    a = genesis.maximum(x, y)
    b = a + y
    c = genesis.where(x == y, a, b)
    genesis.flush()
    return [a, b, c]


# ---- elementwise --------------------------------------------------------------------------------


@case(*EVERY)
def contiguous(dtype, place):
    return chain(place(numbers(dtype, 2051)), place(numbers(dtype, 2051, seed=1)))


@case(*EVERY)
def unaligned(dtype, place):
    return chain(place(numbers(dtype, 2051))[1:], place(numbers(dtype, 2051, seed=1))[:-1])


@case(*EVERY)
def strided(dtype, place):
    x, y = place(numbers(dtype, 33, 17)), place(numbers(dtype, 17, 33, seed=1))
    return chain(x.T, y) + chain(x.flip(0)[::2], x[:17])


@case(*EVERY)
def broadcast(dtype, place):
    x, row, column = (place(numbers(dtype, *shape)) for shape in ((33, 17), (17,), (33, 1)))
    return chain(x, row) + chain(row, column) + chain(x, place(numbers(dtype, 1)))


@case(*EVERY)
def strided_outputs(dtype, place):
    out, x = place(genesis.zeros(17, 33, dtype=dtype)), place(numbers(dtype, 33, 17))
    out.T.copy_(genesis.maximum(x, x[0]))
    out[::2, 1::3] = x[:9, :11]
    return [out]


@case(*FLOATS)
def functions(dtype, place):
    x = place(numbers(dtype, 517))
    logarithm = (x.abs() + 1).log()
    return together(
        x.exp(), x.tanh(), x.abs().sqrt(), x.gelu(), x.sigmoid() / 2, x.sin(), logarithm
    )


@case(*FLOATS)
def activations(dtype, place):
    x = place(numbers(dtype, 517))
    return together(
        *(genesis.leaky_relu(x, 0.125), genesis.elu(x, 0.5), genesis.celu(x, 2.0), genesis.selu(x)),
        *(genesis.softplus(x, 2, 3), genesis.mish(x), genesis.hardswish(x), genesis.logsigmoid(x)),
        *(genesis.logit(x, 0.125), genesis.hardtanh(x, -0.5), genesis.relu6(x * 5)),
    )


@case(*FLOATS)
def special_functions(dtype, place):
    x, y = place(numbers(dtype, 517)), place(numbers(dtype, 517, seed=1))
    return together(
        *(genesis.erfc(x), genesis.erfinv(x / 4), genesis.lgamma(x.abs() + 3), genesis.sinc(x)),
        *(genesis.digamma(x.abs() + 3), genesis.polygamma(2, x.abs() + 3)),
        *(genesis.exp2(x), genesis.ldexp(x, y.trunc())),
        *(genesis.logaddexp(x, y + 4), genesis.logaddexp2(x, y + 4), genesis.heaviside(x, y)),
        genesis.xlogy(x, y.abs() + 2),
    )


@case(*INTEGERS)
def divisions(dtype, place):
    x, y = place(numbers(dtype, 517)), place(numbers(dtype, 517, seed=1))
    return together(x // y, x % y, x & y, x ^ 3, ~x, genesis.gcd(x, y), genesis.lcm(x, y))


@case(*EVERY)
def casts(dtype, place):
    x = place(numbers(dtype, 1027))
    return together(*(x.to(other) for other in EVERY if other is not dtype))


@case(*EVERY)
def copies(dtype, place):
    x = place(numbers(dtype, 1027))
    y = genesis.empty(1027, dtype=dtype, device=x.device)
    y.copy_(x)
    filled = genesis.full((517,), 1, dtype=dtype, device=x.device)
    filled[5:9] = 0
    return [y, filled, genesis.zeros(517, dtype=dtype, device=x.device), x.cpu().to(x.device)]


@case(genesis.int64, genesis.float32)
def ranges(dtype, place):
    device = place(numbers(dtype, 1)).device
    return [genesis.arange(3, 517, 2, dtype=dtype, device=device)]


# ---- folds --------------------------------------------------------------------------------------


def folds(x, dims):
    """Every reduction that a type has, or two of them."""
    names = ["amax", "any", "all"]
    names += ["sum", "amin", "prod"] if x.dtype is not genesis.bool else []
    names += ["mean"] if x.dtype.is_floating_point else []
    if IS_FEW:
        names = [names[x.shape[-1] % len(names)]]
    some = [getattr(x, name)(dim=dims) for name in names if name != "prod"]
    if "prod" in names:
        some.append(x.sign().abs().prod(dim=dims))
    return some + ([(x * 2 - 1).sum(dim=dims)] if x.dtype.is_floating_point else [])


@case(*EVERY)
def folds_short(dtype, place):
    return folds(place(numbers(dtype, 9, 33)), 1)


@case(*EVERY)
def folds_rows(dtype, place):
    return folds(place(numbers(dtype, 5, 1501)), 1)


@case(*EVERY)
def folds_rows_in_parts(dtype, place):
    return [place(numbers(dtype, 3, 9001)).any(dim=1), *folds(place(numbers(dtype, 9000)), 0)]


@case(*EVERY)
def folds_columns(dtype, place):
    return folds(place(numbers(dtype, 20, 70)), 0)


@case(*EVERY)
def folds_columns_in_parts(dtype, place):
    return folds(place(numbers(dtype, 300, 72)), 0)


@case(*EVERY)
def folds_strided(dtype, place):
    return folds(place(numbers(dtype, 7, 11, 13)).permute(2, 0, 1), (0, 2))


@case(*FLOATS)
def softmax_short(dtype, place):
    x = place(numbers(dtype, 9, 40))
    return [x.softmax(dim=1), x.T.log_softmax(dim=1), (x * 2).softmax(dim=0)]


@case(*FLOATS)
def softmax_rows(dtype, place):
    return [place(numbers(dtype, 3, 1500)).softmax(dim=1)]


@case(*FLOATS)
def softmax_twice(dtype, place):
    return [place(numbers(dtype, 1, 33001)).log_softmax(dim=1)]


# ---- along a dimension --------------------------------------------------------------------------


@case(*NUMBERS)
def scans(dtype, place):
    x = place(numbers(dtype, 5, 600))
    return [x[:, :20].cumsum(dim=1), x[:, :90].cumsum(dim=1), x.cumsum(dim=1), x.cumsum(dim=0)]


@case(*NUMBERS)
def scans_in_parts(dtype, place):
    x, y = place(numbers(dtype, 4500)), place(numbers(dtype, 130, 3))
    return [(x * x).clamp(0, 1).cumprod(dim=0), x.cumsum(dim=0), y.cumsum(dim=0)]


@case(*EVERY)
def extremes(dtype, place):
    x, y = place(numbers(dtype, 9, 40)), place(numbers(dtype, 5000))
    return [x.argmax(dim=1), x.argmin(dim=0), *x.max(dim=1), y.argmax(dim=0), y.argmin(dim=0)]


@case(*EVERY)
def sort_small(dtype, place):
    x = place(numbers(dtype, 5, 77))
    return [*x.sort(dim=1), *x.sort(dim=0, descending=True), x.argsort(dim=1)]


@case(*EVERY)
def sort_large(dtype, place):
    return [*place(numbers(dtype, 2, 5003)).sort(dim=1)]


@case(*EVERY)
def topk(dtype, place):
    x = place(numbers(dtype, 2, 9001))
    return [*x.topk(7, dim=1), *x[:, :99].topk(5, dim=1, largest=False)]


@case(*EVERY)
def unique(dtype, place):
    return [*place(numbers(dtype, 3001)).unique(return_inverse=True, return_counts=True)]


# ---- by places ----------------------------------------------------------------------------------


@case(*SIZES)
def gather(dtype, place):
    x, index, wide = place(numbers(dtype, 31, 48)), place(places(31, 70)), place(places(48, 31, 9))
    return [
        *(x[index], x[:, place(places(48, 20))], x[index, place(places(48, 70))]),
        *(x.gather(1, wide), x[::2, 1:][place(places(16, 5))], x.T[place(places(48, 5))]),
    ]


@case(*SIZES)
def scatter(dtype, place):
    x, order = place(numbers(dtype, 31, 48)), place(genesis.arange(30, -1, -1)[:20])
    x[order] = place(numbers(dtype, 20, 48, seed=2))
    x[:, place(genesis.arange(5))] = 1
    x[place(places(31, 5)), 0] = 0
    return [x.scatter(1, place(genesis.arange(9).expand(31, 9)), place(numbers(dtype, 31, 9)))]


@case(*NUMBERS)
def scatter_add(dtype, place):
    """Of whole words: what a small type has around it is read with it, and initcheck sees that."""
    x = place(numbers(dtype, 32, 6))
    x.index_add_(0, place(places(32, 70)), place(numbers(dtype, 70, 6, seed=2)))
    return [x]


@case(*SIZES)
def masks(dtype, place):
    x, mask = place(numbers(dtype, 90, 60)), place(numbers(genesis.bool, 90, 60, seed=3))
    found = [x[mask], mask.nonzero(), x[mask[:, 0]]]
    x[mask] = 1
    x[~mask] = place(numbers(dtype, 90, 60))[~mask]
    return [*found, x]


# ---- the rest -----------------------------------------------------------------------------------


@case(*FLOATS)
def random_floats(dtype, place):
    device = place(numbers(dtype, 1)).device
    genesis.manual_seed(7)
    return [make(1003, dtype=dtype, device=device) for make in (genesis.rand, genesis.randn)]


@case(*INTEGERS)
def random_integers(dtype, place):
    device = place(numbers(dtype, 1)).device
    genesis.manual_seed(7)
    wide = [
        genesis.randint(-(2**40), 2**40, (1003,), device=device),
        genesis.randperm(99, device=device),
    ]
    return [genesis.randint(0, 100, (1003,), dtype=dtype, device=device), *wide]


@case(*EVERY)
def products(dtype, place):
    """By a kernel of our own where GENESIS_BLAS=off, or there is no other."""
    a, b = place(numbers(dtype, 70, 33)), place(numbers(dtype, 33, 65, seed=1))
    batch = place(numbers(dtype, 3, 5, 33))
    return [
        a @ b,
        b.T @ a.T,
        batch @ b,
        a[0] @ b[:, 0],
        place(numbers(dtype, 300)) @ place(numbers(dtype, 300)),
    ]


@case(*FLOATS)
def products_large(dtype, place):
    return [place(numbers(dtype, 140, 20)) @ place(numbers(dtype, 20, 150))]


@case(genesis.float32)
def graphs(dtype, place):
    x = place(numbers(dtype, 33, 17))
    if x.device.type == "cpu":
        return [(x * 2 + 1).softmax(dim=1), x.sum(dim=0)]
    graph = genesis.cuda.CUDAGraph()
    with genesis.cuda.graph(graph):
        made = [(x * 2 + 1).softmax(dim=1), x.sum(dim=0)]
    graph.replay()
    return made


# ---- checking -----------------------------------------------------------------------------------


def check(near, far, what):
    """A result of the GPU against that of the CPU."""
    assert far.device.type == "cuda", what
    far = far.cpu()
    assert (near.dtype, near.shape) == (far.dtype, far.shape), (what, near.dtype, far.dtype)
    margin = NEAR.get(near.dtype, 0)
    for i, (x, y) in enumerate(zip(near.flatten().tolist(), far.flatten().tolist(), strict=True)):
        both = x != x and y != y
        assert both or x == y or abs(x - y) <= margin * max(1, abs(x)), (what, i, x, y)


def main():
    """Run all, or one type of each."""
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")]
    is_kept = genesis.memory_manager.policy != "direct"
    for turn, (name, dtypes, function) in enumerate(CASES):
        if (wanted and name not in wanted) or (name == "graphs" and not is_kept):
            continue
        for dtype in [dtypes[turn % len(dtypes)]] if IS_FEW else dtypes:
            near = function(dtype, lambda tensor: tensor)
            far = function(dtype, lambda tensor: tensor.cuda())
            for i, (one, other) in enumerate(zip(near, far, strict=True)):
                check(one, other, f"{name} of {dtype}: result {i}")
    genesis.cuda.synchronize()


if __name__ == "__main__":
    main()
