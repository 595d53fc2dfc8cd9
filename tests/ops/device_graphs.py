"""Captured graphs on a GPU, real or simulated: replays beside the same operations at once.

python tests/ops/device_graphs.py [SECTION ...]
"""

from __future__ import annotations

import gc
import random
import sys
import threading

from device_tensors import run

import genesis
from genesis import cuda


def numbers(*shape, seed=0):
    """A tensor on the GPU."""
    draw = random.Random(seed)
    count = 1
    for size in shape:
        count *= size
    return genesis.tensor([draw.uniform(-2, 2) for _ in range(count)], device="cuda").reshape(shape)


def captured(make, **keywords):
    """A graph of what a function does, and what it gives."""
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **keywords):
        made = make()
    return graph, made


def raises(kind, text, call):
    """Check that a call fails with a sentence."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"nothing was raised: {text}")


def reserved():
    """Bytes of the GPU that are not given back."""
    gc.collect()
    cuda.empty_cache("cuda")
    return cuda.memory_reserved()


def chains():
    """A chain with reductions, a softmax, a product and sorted rows, 100 times."""
    x, w = numbers(33, 17), numbers(17, 8, seed=1)

    def layers(x):
        h = (x * 2 + 1).relu() @ w
        p = h.softmax(dim=1)
        return p, (p * h).sum(dim=0), h.max(), h.cumsum(dim=0), h.sort(dim=1)[0], p[1:, ::2] - 1

    graph, results = captured(lambda: layers(x))
    for i in range(100):
        new = numbers(33, 17, seed=i)
        x.copy_(new)
        graph.replay()
        for one, other in zip(results, layers(new), strict=True):
            assert one.tolist() == other.tolist(), i


def folds():
    """A fold of few results has no counters in a graph: it runs beside the same one in a stream."""
    x, side = numbers(40961), cuda.Stream()
    expected = x.sum().item()
    graph, total = captured(lambda: x.sum())
    for _ in range(3):
        graph.replay()
        with cuda.stream(side):
            other = x.sum()
        assert abs(total.item() - expected) < 1e-3 and other.item() == expected


def places():
    """What a graph writes in place, and what waits to read it."""
    x, count = genesis.zeros(5, device="cuda"), genesis.zeros(1, device="cuda")

    def step():
        x.mul_(2)
        x.add_(1)
        count.add_(1)

    graph, _ = captured(step)
    assert x.tolist() == [0] * 5 and count.item() == 0  # nothing ran
    before = x + 10  # waits, and must see what was there
    graph.replay()
    assert before.tolist() == [10] * 5 and x.tolist() == [1] * 5
    graph.replay()
    graph.replay()
    assert x.tolist() == [7] * 5 and count.item() == 3


def pending():
    """What waits before a capture runs; what waits at its end is in it."""
    x = genesis.ones(4, device="cuda")
    before = x + 1
    graph, after = captured(lambda: before * 3)
    assert before.tolist() == [2] * 4
    before.fill_(5)
    graph.replay()
    assert after.tolist() == [15] * 4


def streams():
    """Operands of other streams before the capture; replays and readers on several."""
    sides = [cuda.Stream() for _ in range(3)]
    with cuda.stream(sides[0]):
        x = numbers(4097)
        w = x + 1
    with cuda.stream(sides[1]):
        y = x * w  # a reader of another stream
    graph, (total, product) = captured(lambda: ((x + w).sum(), x * w + y), stream=sides[1])
    for i in range(12):
        with cuda.stream(sides[i % 3]):
            x.fill_(i)
        with cuda.stream(sides[(i * 2 + 1) % 3]):
            graph.replay()
        with cuda.stream(sides[(i + 2) % 3]):
            copies = total * 1, product - y
        expected = (w + i).sum(), w * i
        assert abs(copies[0].item() - expected[0].item()) < 0.5, i
        far = (copies[1] - expected[1]).abs().max().item()
        assert far < 1e-4, (i, far)


def captured_stream_is_left_alone():
    """Work of other streams on what the captured stream has made before does not touch it."""
    side = cuda.Stream()
    with cuda.stream(side):
        x = numbers(65)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, stream=side):
        y = x * 2
        with cuda.stream(cuda.default_stream()):
            z = x + 1  # the stream of x is captured: there is nothing to wait for
            assert abs(z[3].item() - x[3].item() - 1) < 1e-6
            cuda.current_stream().synchronize()
        w = y + 1
    graph.replay()
    assert w.tolist() == (x * 2 + 1).tolist()


def waits():
    """Nobody can wait for the whole device during a capture; who tries does no harm."""
    x, errors = numbers(65), []
    tripled = (x * 3).tolist()
    old, _ = captured(lambda: x + 1)
    old.replay()

    def refused():
        errors.append(0)
        raises(RuntimeError, "cuda:0 cannot be waited for while a graph", cuda.synchronize)
        raises(RuntimeError, "cannot be waited for", lambda: captured(list, stream=cuda.Stream()))
        errors.pop()

    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = x * 2
        refused()
        thread = threading.Thread(target=refused)
        thread.start()
        thread.join()
        with cuda.stream(cuda.Stream()):  # another stream, and an event in it, can be
            z = x * 3
            event = cuda.Event()
            event.record()
            event.synchronize()
            assert event.query() and z.tolist() == tripled
        del old  # whose memory goes back later
        gc.collect()
        cuda.empty_cache()
        w = y + 1
    assert not errors
    graph.replay()
    assert w.tolist() == (x * 2 + 1).tolist()
    cuda.synchronize()


def threads():
    """A tensor of a capture is not for others before its end; what is not is."""
    x, errors = numbers(129), []

    def other():
        try:
            errors.append((x + 1).tolist())
            _ = (y + 1).tolist()
        except RuntimeError as error:
            errors.append(str(error))

    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = x * 2
        y.sum()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    graph.replay()
    assert errors[0] == (x + 1).tolist()
    assert "before that has ended" in errors[1], errors
    assert y.tolist() == (x * 2).tolist()


def memory():
    """The memory of a graph is nobody else's while it lives, and goes back after it."""
    start = reserved()
    x = numbers(1025)
    addresses = []

    def work():
        between = (x * 3).relu()
        addresses.append(between.data_ptr())
        y = between.cumsum(dim=0)
        addresses.append(y.data_ptr())
        del between
        return y.sort()[0]

    graph, y = captured(work)
    addresses.append(y.data_ptr())
    graph.replay()
    expected = y.tolist()
    held = reserved()
    assert held > start
    others = [genesis.full((1025,), 7.0, device="cuda") for _ in range(50)]
    assert not {other.data_ptr() for other in others} & set(addresses)
    x.copy_(numbers(1025))
    graph.replay()
    assert y.tolist() == expected
    assert all(other.tolist() == [7.0] * 1025 for other in others)
    del others
    kept = y.tolist()
    graph.reset()  # a result lives longer than its graph, with what it holds
    assert y.tolist() == kept
    raises(ValueError, "the graph is empty", graph.replay)
    raises(ValueError, "the graph is empty", graph.pool)
    y = graph = x = None
    assert reserved() == start, (start, held, reserved())


def inputs_live():
    """Tensors that a graph reads or writes are kept by it."""
    x, w = numbers(333), numbers(333, seed=3)
    expected = (x * w).tolist()
    graph, y = captured(lambda: x * w)
    x = w = None
    others = [genesis.full((333,), 9.0, device="cuda") for _ in range(20)]
    graph.replay()
    assert y.tolist() == expected
    assert all(other.tolist() == [9.0] * 333 for other in others)


def pools():
    """Graphs that share memory: the second uses what the first has left."""
    start = reserved()
    x = numbers(2049)
    pool = cuda.graph_pool_handle()
    first, y = captured(lambda: (x + 1).cumsum(dim=0), pool=pool)
    alone = reserved()
    second, z = captured(lambda: (y * 2).sort()[0].cumsum(dim=0), pool=first.pool())
    assert reserved() <= alone + (2 << 20)
    expected = ((x + 1).cumsum(dim=0) * 2).sort()[0].cumsum(dim=0).tolist()
    for stream in (cuda.default_stream(), cuda.Stream(), cuda.default_stream()):
        with cuda.stream(stream):
            first.replay()
        second.replay()
        assert z.tolist() == expected
    raises(TypeError, "a pool is what", lambda: captured(lambda: None, pool=3))
    del first, pool
    second.replay()
    assert z.tolist() == expected
    second = x = y = z = stream = None
    assert reserved() == start


def errors():
    """What cannot be captured says so, and everything can be used after that."""
    x, near = numbers(3, 4), genesis.zeros(3, 4)
    refused = {
        "read on the host": x.sum().item,
        "to the host": [x.tolist, x.cpu, lambda: str(x)],
        "unique cannot be": x.unique,
        "from the host": [
            lambda: x.copy_(near),
            lambda: genesis.tensor([1.0, 2.0], device="cuda"),
            near.cuda,
        ],
        "cannot be waited for": [
            lambda: cuda.current_stream().synchronize(),
            lambda: cuda.current_stream().query(),
        ],
        "a graph cannot be replayed": captured(lambda: x + 1)[0].replay,
        "cannot be captured again": lambda: captured(lambda: x + 1, stream=cuda.current_stream()),
    }
    for text, calls in refused.items():
        for call in calls if isinstance(calls, list) else [calls]:
            graph = cuda.CUDAGraph()
            made = []

            def work(call=call, made=made):
                made.append(x * 2)
                made.append(made[0].sum(dim=0))
                call()

            def attempt(work=work, graph=graph):
                with cuda.graph(graph):
                    work()

            raises(RuntimeError, text, attempt)
            assert cuda.current_stream() == cuda.default_stream()
            raises(ValueError, "empty", graph.replay)
            with cuda.graph(graph):  # the same graph, and who catches the error goes on
                y = x * 2
                raises(RuntimeError, text, call)
                y = y + 1
            graph.replay()
            assert y.tolist() == (x * 2 + 1).tolist()


def misuse():
    """Calls in the wrong order."""
    x = numbers(7)
    graph = cuda.CUDAGraph()
    raises(ValueError, "empty", graph.replay)
    raises(ValueError, "empty", graph.capture_end)
    graph.reset()
    raises(
        ValueError,
        "a default stream cannot be captured",
        lambda: captured(lambda: x, stream=cuda.default_stream()),
    )
    raises(ValueError, "default stream", graph.capture_begin)
    raises(TypeError, "a graph must be a CUDAGraph", lambda: cuda.graph(3))
    with cuda.graph(graph):
        y = x + 1
        raises(ValueError, "already", graph.capture_begin)
        raises(ValueError, "still being captured", graph.replay)
    raises(ValueError, "reset it first", lambda: graph.capture_begin(None, cuda.Stream()))
    raises(ValueError, "not being captured", graph.capture_end)
    graph.replay()
    assert y.tolist() == (x + 1).tolist()
    with cuda.stream(cuda.Stream()) as side:  # without the with block, and never ended
        lost = cuda.CUDAGraph()
        lost.capture_begin()
        x + 2
        assert side.is_capturing
        del lost
        assert not side.is_capturing
        assert (x * 0 + 3).tolist() == [3] * 7

    def broken():
        with cuda.graph(graph2):
            raise KeyError("mine")

    graph2 = cuda.CUDAGraph()
    raises(KeyError, "mine", broken)
    empty, _ = captured(lambda: None)
    empty.replay()


def randoms():
    """The numbers are chosen when they are captured."""
    genesis.manual_seed(5)
    graph, drawn = captured(lambda: genesis.rand(100, device="cuda"))
    graph.replay()
    once = drawn.tolist()
    graph.replay()
    assert drawn.tolist() == once
    genesis.manual_seed(5)
    assert genesis.rand(100, device="cuda").tolist() == once


SECTIONS = [
    *(chains, folds, places, pending, streams, captured_stream_is_left_alone, waits, threads),
    *(memory, inputs_live, pools, errors, misuse, randoms),
]

if __name__ == "__main__":
    wanted = sys.argv[1:]
    for section in SECTIONS:
        if not wanted or section.__name__ in wanted:
            run(section)
