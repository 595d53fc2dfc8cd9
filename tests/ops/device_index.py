"""Indexing on a GPU, real or simulated, beside the same on the CPU.

    python tests/ops/device_index.py [SECTION ...] [--keys=COUNT]

Every call is made twice: with tensors on the CPU, and with the same on the GPU.
"""

from __future__ import annotations

import pathlib
import sys

from device_tensors import TYPES, numbers, run, same

import genesis

FLOATING = [genesis.float32, genesis.float64, genesis.float16, genesis.bfloat16]
INDEX_TYPES = [
    *(genesis.int64, genesis.int32, genesis.int16, genesis.int8),
    *(genesis.uint8, genesis.uint16, genesis.uint32, genesis.uint64),
]
ERRORS = (IndexError, ValueError, TypeError)


def far(value):
    """The same on the GPU: tensors, and tuples with tensors in them."""
    if isinstance(value, genesis.Tensor):
        return value.cuda()
    return tuple(far(one) for one in value) if isinstance(value, tuple) else value


def outcome(call):
    """What a call gives, or the error that it, or the next look at the result, raises."""
    try:
        result = call()
        genesis.cuda.synchronize()
    except ERRORS as error:
        return None, error
    return result, None


def alike(call, *operands, what=None):
    """A function of tensors gives the same on both devices, or fails alike."""
    near, error = outcome(lambda: call(*operands))
    other, far_error = outcome(lambda: call(*(far(one) for one in operands)))
    assert type(error) is type(far_error), (what, error, far_error)
    if error is not None:
        return
    pairs = zip(near, other, strict=True) if isinstance(near, tuple) else [(near, other)]
    for one, its in pairs:
        same(one, its, what)


def put(tensor, key, value):
    """A copy in which something is assigned."""
    tensor = tensor.clone()
    tensor[key] = value
    return tensor


def launched(call):
    """The kernels of a call."""
    genesis.flush()
    with genesis.cuda.profiler() as profile:
        call()
        genesis.cuda.synchronize()
    return [event.name for event in profile.events]


def reads():
    """Index tensors of every type over elements of every type, and layouts."""
    rows = genesis.tensor([3, 0, -1, 2, 2])
    for dtype in TYPES:
        x = numbers(dtype, 5 * 7 * 4).reshape(5, 7, 4)
        alike(lambda t, i: t[i], x, rows, what=f"rows of {dtype}")
        alike(lambda t, i: t[:, i], x, rows, what=f"columns of {dtype}")
        alike(lambda t, i: t[i, i, i[:, None] % 4], x, rows, what=f"elements of {dtype}")
    x = numbers(genesis.float32, 840).reshape(5, 7, 4, 6)
    for dtype in INDEX_TYPES:
        index = genesis.tensor([[4, 0, 2], [1, 1, 3]], dtype=dtype)
        alike(lambda t, i: t[i], x, index, what=f"by {dtype}")
        alike(lambda t, i: t[..., i], x, index, what=f"by {dtype}, behind")
    views = [
        lambda t: t.permute(3, 1, 0, 2), lambda t: t[::-1, ::2], lambda t: t[1:, :, 0],
        lambda t: t[:, 3], lambda t: t[:, :, :1].expand(5, 7, 4, 6), lambda t: t[..., 1:5],
    ]  # fmt: skip
    index = genesis.tensor([[1, 2, 0], [0, 3, 1]])
    for i, view in enumerate(views):
        alike(lambda t, i, view=view: view(t)[i.T], x, index, what=f"layout {i}")
        alike(lambda t, i, view=view: view(t)[i, :, i], x, index, what=f"layout {i}, apart")
        alike(lambda t, view=view: view(t)[view(t) > 1], x, what=f"layout {i}, mask")
    alike(lambda t, i: (t * 2)[(i + 1) % 5], x, index, what="what waits")
    for columns in (1, 2, 3, 4, 5, 8, 16, 33):
        wide = numbers(genesis.float16, 40 * columns).reshape(40, columns)
        alike(lambda t, i: t[i], wide, genesis.arange(39, -1, -3), what=f"{columns} columns")
        alike(lambda t, i: t[1:][i], wide, genesis.arange(38, -1, -3), what=f"{columns}, shifted")
    for i in (rows, rows[:0], rows.cuda()):  # an index on the CPU goes where the tensor is
        same(x[i.cpu()], x.cuda()[i], "an index of the CPU")
    same(x[[1, -2]], x.cuda()[[1, -2]], "a list")


def writes():
    """Assignment and accumulation by keys."""
    apart = genesis.tensor([3, 0, -1])
    for dtype in TYPES:
        x = numbers(dtype, 5 * 7).reshape(5, 7)
        alike(lambda t, i, v: put(t, i, v), x, apart, numbers(dtype, 21, 1).reshape(3, 7))
        alike(lambda t, i, v: put(t, (slice(None), i), v), x, apart, numbers(dtype, 3, 1))
        alike(lambda t, i: put(t, i, 1), x, apart, what=f"a number into {dtype}")
        alike(lambda t: put(t, t > 0, 0), x, what=f"a number by a mask into {dtype}")
    x = numbers(genesis.float32, 42).reshape(6, 7)
    wide = numbers(genesis.float32, 48).reshape(6, 8)
    alike(put, wide, apart, 5, what="a number, 16 bytes at a time")
    alike(lambda t, i: put(t, i, t[:3] * 2), wide, apart, what="values, 16 bytes at a time")
    mask = x > 0.5
    values = genesis.arange(int(mask.sum().item())).float()
    alike(put, x, mask, values, what="values by a mask")
    alike(lambda t, m, v: put(t.T, m.T, v), x, mask, values, what="values by a mask, transposed")
    alike(put, x, mask.any(dim=1), 3, what="rows by a mask")
    alike(put, x, mask.any(dim=1), genesis.arange(7), what="a row into rows by a mask")
    alike(put, x, mask, genesis.tensor([5.0]), what="one value by a mask")
    # A mask alone needs no list of places, and a number not even their count: nobody waits.
    far_x, far_mask, far_values = x.cuda(), mask.cuda(), values.cuda()
    assert launched(lambda: far_x[far_mask]) == ["mask_count_1", "mask_get_4"]
    assert launched(lambda: put(far_x, far_mask, far_values))[-2:] == ["mask_count_1", "mask_set_4"]
    assert launched(lambda: put(far_x, far_mask, 5))[-1].startswith(("where_", "interpret_"))
    same(put(x, apart, values[:7]), put(x.cuda(), apart, values[:7]), "a value of the CPU")
    same(put(x, [0, 2], [[1], [2]]), put(x.cuda(), [0, 2], [[1], [2]]), "lists")

    def shifted(t):
        t = t.clone()
        t[genesis.arange(5, device=t.device)] = t[1:]  # values in the target's memory
        waiting = t + 1
        t[genesis.tensor([0, 1], device=t.device)] = 7
        return t, waiting

    alike(shifted, x, what="shifted")
    for dtype in (*TYPES[1:],):
        t, v = genesis.zeros(5, 3).to(dtype), (genesis.arange(12).view(4, 3) % 5).to(dtype)
        i = genesis.tensor([1, 4, 1, 1])
        alike(lambda t, i, v: t.clone().index_put_((i,), v, accumulate=True), t, i, v, what=dtype)
        alike(lambda t, i, v: t.clone().index_add_(0, i, v), t, i, v, what=dtype)
    alike(
        lambda t, m: t.clone().index_put_((m,), 2.0, accumulate=True), x, mask, what="add by mask"
    )
    big = genesis.zeros(300)
    index, ones = (genesis.arange(20000) * 7) % 300, genesis.ones(20000)
    alike(lambda t, i, v: t.clone().index_add_(0, i, v), big, index, ones, what="a histogram")


def wild(count, seed):
    """Numbers whose floating sums depend on the order, and that have no pattern."""
    steps = (genesis.arange(count) * 2654435761 + seed * 40503) % 1000003
    return (steps.double() / 1000003 - 0.5) * 10.0 ** (steps % 4).double()


def twice(call, tensor, *operands, what=None):
    """A sum gives the same bits on the GPU again, and nearly those that double gives on the CPU."""
    first, second = (call(tensor.cuda(), *(far(one) for one in operands)).cpu() for _ in range(2))
    assert first.tolist() == second.tolist(), what
    near = call(*(
        one.double() if isinstance(one, genesis.Tensor) and one.dtype in FLOATING else one
        for one in (tensor, *operands)
    ))  # fmt: skip
    tolerance = {genesis.float32: 1e-5, genesis.float64: 1e-12}.get(tensor.dtype, 1e-2)
    error = (near - first.double()).abs().max().item()
    assert error <= tolerance * near.abs().max().item(), (what, error)


def ordered():
    """Several values for an element: the last one stays, and sums have one order."""
    cases = [
        (5, 3, 1, FLOATING), (600, 50, 2, FLOATING[:1]), (70, 9, 33, FLOATING[1:]),
        (4500, 70, 1, FLOATING), (4097, 40000, 1, FLOATING[:1]), (4100, 11, 3, FLOATING[:1]),
    ]  # fmt: skip
    for count, size, columns, dtypes in cases:
        shape, target = ((count,), (size,)) if columns == 1 else ((count, columns), (size, columns))
        for index in ((genesis.arange(count) * 7919 + 13) % size, genesis.zeros(count).long()):
            t = (genesis.arange(size * columns) % 100).reshape(target)
            v = (genesis.arange(count * columns) % 127).reshape(shape)
            for dtype in (genesis.int8, genesis.float32):
                alike(put, t.to(dtype), index - size, v.to(dtype), what=(count, dtype))
            for dtype in dtypes:
                t, v = (wild(n * columns, n).to(dtype) for n in (size, count))
                t, v = t.reshape(target), v.reshape(shape)
                twice(
                    lambda t, i, v: t.clone().index_add_(0, i, v), t, index, v, what=(count, dtype)
                )
    t, v = genesis.zeros(40, 60).double(), wild(4200 * 3, 3).reshape(4200, 3)
    rows, columns = genesis.arange(4200) % 40, (genesis.arange(4200) * 31) % 57
    twice(lambda t, i, v: t.T.scatter_add(1, i.T, v.T), t, genesis.stack([rows] * 3, 1), v)
    twice(lambda t, i, v: t.scatter_add(0, i[:, None].expand(4200, 3), v), t, rows, v)
    key = (slice(1, 4), rows, columns)
    block = genesis.zeros(6, 40, 60).double()
    twice(lambda t, k, v: t.clone().index_put_(k, v.T, accumulate=True), block, key, v)
    key = (slice(None, None, 2), slice(None), columns)
    twice(lambda t, k: t[::-1, ::-1].index_put_(k, 0.1, accumulate=True), block, key)
    mask = genesis.arange(6) % 2 == 0
    twice(lambda t, k: t.clone().index_put_(k, 0.1, accumulate=True), block,
          (mask, rows[:, None], columns[:, None]))  # fmt: skip
    twice(lambda t, k: t.clone().index_put_(k, 0.1, accumulate=True), block, (mask,))
    alike(put, block, (slice(None), rows, columns), wild(4200, 4).float())
    alike(put, block[0], (rows, columns), wild(4200, 4).double())
    for accumulate in (False, True):  # one number of many is out of range: the others count
        g, i = genesis.zeros(5).cuda(), genesis.arange(5000) % 5
        i[7] = 9
        _, error = outcome(lambda g=g, i=i, a=accumulate: g.index_put_(
            (i.cuda(),), genesis.arange(5000).float().cuda() % 100, accumulate=a))  # fmt: skip
        assert "index 9" in str(error), error
        kept = genesis.zeros(5).index_put_((i[i < 5],), (genesis.arange(5000) % 100)[i < 5].float(),
                                           accumulate=accumulate)  # fmt: skip
        assert genesis.equal(g.cpu(), kept), accumulate


def functions():
    """The functions along a dimension, of all elements, and those that search."""
    x = numbers(genesis.float32, 5 * 6).clamp(-9, 9).reshape(5, 6)
    x = genesis.where(x.isnan(), genesis.zeros_like(x), x)
    index = genesis.tensor([[0, 4, 2, 1], [3, 3, 0, 2], [1, 0, 4, 4]])
    rows = genesis.tensor([4, 1, 1, 0])
    alike(lambda t, i: t.gather(0, i), x, index, what="gather 0")
    alike(lambda t, i: t.gather(1, i), x, index, what="gather 1")
    alike(lambda t, i: t.T.gather(1, i), x, index, what="gather of a transposed one")
    apart = genesis.tensor([[0, 4, 2, 1], [3, 3, 0, 2], [1, 0, 4, 4]]).T
    v = genesis.arange(30).view(5, 6).float()
    alike(lambda t, i, v: t.scatter(1, i[:, :1], v), x, apart, v, what="scatter")
    alike(lambda t, i: t.scatter(1, i[:, 1:2], value=9), x, apart, what="scatter a number")
    alike(lambda t, i, v: t.scatter_add(0, i, v), v, index, v, what="scatter_add")
    for dim in (0, 1):
        alike(lambda t, i, dim=dim: t.index_select(dim, i), x, rows, what="index_select")
        alike(lambda t, i, dim=dim: t.clone().index_fill_(dim, i, 3), x, rows, what="index_fill_")
        alike(lambda t, i, dim=dim: genesis.take_along_dim(t, t.argsort(dim), dim), x, rows)
    alike(lambda t, i: t.clone().index_copy_(0, i[:2], t[:2] + 1), x, rows, what="index_copy_")
    alike(lambda t, i: t.take(i), x, index, what="take")
    alike(lambda t, i: t.T.take(i - 2), x, index, what="take of a view")
    alike(lambda t: t.masked_select(t > 0), x, what="masked_select")
    alike(lambda t: t.masked_select(t[:, :1] > 0), x, what="masked_select, broadcast")
    alike(lambda t: t.masked_fill(t > 0, 4), x, what="masked_fill")
    alike(lambda t: t.nonzero(), x, what="nonzero")
    alike(lambda t: t.T.nonzero(as_tuple=True), x, what="nonzero, tuple")
    alike(lambda t: genesis.where(t.reshape(5, 2, 3) > 0), x, what="where")
    for count in (0, 1, 255, 256, 257, 5000, 70001):
        y = (genesis.arange(count) * 7919) % 13
        alike(lambda t: t.nonzero(), y, what=f"nonzero of {count}")
        alike(lambda t: t[t > 6], y, what=f"a mask of {count}")
    alike(lambda s, v: genesis.searchsorted(s, v), x.sort(dim=1)[0], x, what="searchsorted")
    g = x.cuda()
    same(x.gather(0, [[1, 2]]), g.gather(0, [[1, 2]]), "an index that is a list")
    plan, other = genesis.index_plan(x, x > 0), genesis.index_plan(g, g > 0)
    for name in ("kind", "result_shape", "result_strides", "ptr_offset_bytes"):
        assert getattr(plan, name) == getattr(other, name), name
    plan, other = genesis.index_plan(x, (rows, rows)), genesis.index_plan(g, (rows.cuda(), rows))
    same(plan.index_tensor, other.index_tensor, "index_tensor")


def searches():
    """Where values belong, how often numbers occur, and random permutations: those of the CPU."""
    for dtype in TYPES:
        sequence, values = numbers(dtype, 41).sort()[0], numbers(dtype, 300, 1)
        for right in (False, True):
            alike(lambda s, v, r=right: genesis.searchsorted(s, v, right=r), sequence, values)
    for length in (0, 1, 2, 3, 31, 32, 33):
        sequence, values = genesis.arange(length) // 2, genesis.arange(-1, 20).float() / 2
        alike(lambda s, v: genesis.searchsorted(s, v), sequence, values, what=length)
        alike(lambda s, v: genesis.searchsorted(s, v, right=True), sequence, values[:0])
    rows = numbers(genesis.float64, 60).reshape(3, 4, 5)
    alike(lambda s, v: genesis.searchsorted(s.sort()[0], v[..., ::2]), rows, rows)
    assert genesis.searchsorted(genesis.arange(5, device="cuda"), 3).item() == 3
    index = (genesis.arange(5000) * 7919 + 13) % 300
    for numbers_of in (index, index.to(genesis.uint8), index * 50, index * 0, index[:0], index[:1]):
        alike(lambda i: genesis.bincount(i), numbers_of, what="bincount")
        alike(
            lambda i: genesis.bincount(i[::2], minlength=400), numbers_of, what="bincount of some"
        )
        weights = wild(len(numbers_of), 5)
        twice(lambda w, i: genesis.bincount(i, w, minlength=2), weights, numbers_of)
    for count in (0, 1, 2, 3, 63, 64, 1000, 5001, 140001):
        near, other = (
            genesis.randperm(count, generator=genesis.Generator().manual_seed(count), device=place)
            for place in ("cpu", "cuda")
        )
        same(near, other, f"randperm of {count}")


def errors():
    """What fails on the CPU fails on the GPU, and changes nothing but where it must."""
    x = genesis.arange(12).view(3, 4).float()
    for bad in (3, -4, 2**40, -(2**40)):
        index = genesis.tensor([0, bad])
        alike(lambda t, i: t[i], x, index)
        alike(lambda t, i: t[:, i], x, index)
        alike(lambda t, i: t.index_select(0, i), x, index)
        alike(lambda t, i: put(t, i, 5), x, index)
        alike(lambda t, i: t.clone().index_put_((i,), 1.0, accumulate=True), x, index)
        alike(lambda t, i: t.gather(0, i.view(1, 2)), x, index)
        alike(lambda t, i: t.take(i * 5), x, index)
    nothing = genesis.tensor([[0], [9]])[:0]
    alike(lambda t, i: t[i, i.T + 9], x, nothing, what="broadcast to nothing")
    same(x[nothing, [9]], x.cuda()[nothing, [9]], "broadcast to nothing, from the CPU")
    alike(lambda t, i: t[:, :0][i], x, genesis.tensor([5]), what="no elements, and out of range")
    negative = genesis.tensor([-1])
    alike(lambda t, i: t.index_select(0, i), x, negative)
    alike(lambda t, i: t[:0][i], x, negative)
    alike(lambda t, i: t[i, i, i], x, negative)
    alike(lambda t, i: t[i.float()], x, negative)
    alike(lambda t, i: t[t[:2] > 0], x, negative)
    alike(lambda t, i: put(t, i, t), x, negative)
    alike(lambda t, i: put(t.expand(2, 3, 4)[:, :1].expand(2, 5, 4), i, 1), x, negative)
    alike(lambda t, i: t.long().clone().index_add_(0, i * 0, t[:1]), x, negative)
    alike(lambda t, i: genesis.bincount(i), x, negative)
    late = x.cuda()[genesis.tensor([0, 7]).cuda()]  # the call does not wait
    for look in (late.tolist, genesis.cuda.synchronize, late[0, 0].item, late.cpu):
        x.cuda()[genesis.tensor([0, 7]).cuda()]
        try:
            look()
        except IndexError as error:
            assert "index 7" in str(error) and "dimension 0" in str(error), error
        else:
            raise AssertionError(look)
    assert late.cpu()[0].tolist() == x[0].tolist(), "an error is raised once"
    for look in ("tolist", "cpu", "__repr__"):  # of a result without elements, too
        empty = x.cuda()[:, :0][genesis.tensor([7]).cuda()]
        try:
            getattr(empty, look)()
        except IndexError as error:
            assert "index 7" in str(error), error
        else:
            raise AssertionError(f"{look} of no elements")
    nothing = genesis.zeros(0, dtype=genesis.bool)
    alike(lambda t, m: t[m], x, nothing, what="a mask of no elements")
    alike(lambda t, m: put(t, m, 5), x, nothing, what="a mask of no elements, assigned")
    alike(lambda t, m: t[0].long()[0].topk(0), x, nothing, what="topk of a number")
    target = x.cuda()
    outcome(lambda: put(target, genesis.tensor([0, 7, 1]).cuda(), 5))
    for call in (lambda: target[[0, 7]], lambda: target.__setitem__([0, -7], 1)):
        try:
            call()  # an index of the CPU is checked before anything is done
        except IndexError as error:
            assert "out of range for dimension 0 of size 3" in str(error), error
        else:
            raise AssertionError("an index of the CPU")
    assert genesis.equal(target.cpu(), x)
    g = x.cuda()
    for call in (
        lambda: x[negative.cuda()],
        lambda: g.gather(0, genesis.tensor([[0]])),
        lambda: g.clone().scatter_(0, genesis.tensor([[0]]), 1),
        lambda: g.index_select(0, genesis.tensor([0])),
        lambda: genesis.searchsorted(g[0], x[0]),
        lambda: genesis.bincount(negative.cuda() + 2, x[0, :1]),
        lambda: put(x, genesis.tensor([0]), g[0]),
    ):
        try:
            call()
        except ValueError as error:
            assert "devices" in str(error) or "on cuda" in str(error), error
        else:
            raise AssertionError("two devices")
    assert genesis.equal(g.cpu(), x)


def keys(count=60):
    """Random keys, read and written."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
    try:
        import index_keys
        import numpy
    except ImportError:
        print("without NumPy there are no random keys:", end=" ")
        return

    for seed in range(count):
        rng = numpy.random.default_rng(seed)
        array = index_keys.array_of(rng)
        _, key = index_keys.key_of(rng, array.shape)
        x = genesis.from_numpy(array.copy(order="K"))
        g = x.cuda()
        other = far(key) if rng.random() < 0.7 else key
        near, error = outcome(lambda x=x, key=key: x[key])
        result, far_error = outcome(lambda g=g, other=other: g[other])
        assert type(error) is type(far_error), (seed, error, far_error)
        if error is not None:
            continue
        same(near, result, seed)
        value = index_keys.value_of(rng, near.shape, array.dtype.name)
        alike(lambda t, key=key, value=value: put(t, key, value), x, what=seed)


SECTIONS = [reads, writes, ordered, functions, searches, errors, keys]

if __name__ == "__main__":
    names = [one for one in sys.argv[1:] if not one.startswith("--")]
    options = dict(one[2:].split("=") for one in sys.argv[1:] if one.startswith("--"))
    for section in SECTIONS:
        if not names or section.__name__ in names:
            run(section, *([int(options["keys"])] if section is keys and "keys" in options else []))
