"""What tensors promise about memory, mistakes, failures and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy
import pytest
from conftest import BUILD

import genesis
from genesis import _C

MANAGER = _C.MemoryManager("cpu")


def requested() -> int:
    """Bytes that tensors have; the question computes what is pending."""
    genesis.flush()
    return MANAGER.statistics()["requested_bytes"]


def allocated() -> int:
    """The same as users ask for it: with what sizes are rounded up by."""
    return genesis.memory_stats(device="cpu").allocated_bytes


# ---- memory: the examples of the documents, to the byte ----


def test_operations_in_place_allocate_nothing():
    x = genesis.randn(1000, 1000)
    one = allocated()
    other = genesis.empty(1000, 1000)
    size = allocated() - one  # 4 million bytes, rounded up
    del other
    before, start = requested(), allocated()
    y = x + 1.0
    z = y * 2.0
    w = z.exp()
    assert requested() - before == 3 * 4_000_000 and allocated() - start == 3 * size
    del y, z
    assert requested() - before == 4_000_000
    del w
    assert requested() == before

    x = genesis.randn(1000, 1000)
    before, start, count = requested(), allocated(), MANAGER.statistics()["alloc_count"]
    x += 1.0
    x *= 2.0
    x.exp_()
    assert requested() == before and allocated() == start
    assert MANAGER.statistics()["alloc_count"] == count  # nothing in between, either


def test_questions_about_memory_compute_first(fresh):
    """In a process of its own, where nothing that earlier tests left can go meanwhile."""
    fresh("""
import genesis
from genesis import _C
manager = _C.MemoryManager("cpu")
x = genesis.ones(1000, 1000)
for ask in (
    lambda: genesis.memory_stats(device="cpu").allocated_bytes,
    lambda: genesis.cpu.memory_stats()["allocated"],
    lambda: manager.statistics()["live_bytes"],
    lambda: genesis.detailed_memory_stats(device="cpu").total_allocated,
):
    before = ask()
    y = x + 1
    assert ask() - before >= 4_000_000
    del y
    assert ask() == before
""")


def test_a_loop_leaks_nothing():
    genesis.empty_cache()
    before, start, live = requested(), allocated(), MANAGER.statistics()["live_count"]
    for _ in range(100):
        x = genesis.randn(100, 100)
        y = x * x.T
        del x, y
    genesis.empty_cache()
    assert (requested(), allocated()) == (before, start)
    assert MANAGER.statistics()["live_count"] == live


def test_batches_allocate_their_results():
    matrices = [genesis.randn(100, 100) for _ in range(10)]
    before = requested()
    results = [matrix.exp().sum() for matrix in matrices]
    assert requested() - before == 10 * 4
    before, count = requested(), MANAGER.statistics()["alloc_count"]
    batched = genesis.stack(matrices, dim=0)
    assert requested() - before == 10 * 100 * 100 * 4
    assert MANAGER.statistics()["alloc_count"] - count == 1
    before = requested()
    together = batched.exp().sum(dim=(1, 2))
    assert requested() - before == 10 * 4
    apart = [result.item() for result in results]
    numpy.testing.assert_allclose(together.tolist(), apart, rtol=1e-6)


# ---- mistakes ----


def test_a_view_that_cannot_be_says_why():
    x = genesis.zeros(4, 6)
    for wrong, words in [
        (lambda: x.T.view(24), r"\(6, 4\).*\(24,\) without a copy: use reshape"),
        (lambda: x[:, ::4].view(8), r"\(4, 2\).*\(8,\) without a copy: use reshape"),
        (lambda: x.view(5, 5), r"24 elements.*\(5, 5\)"),
        (lambda: x + x.T, r"add: shapes \(4, 6\) and \(6, 4\) cannot be broadcast together"),
        (lambda: genesis.cat([x, x.T]), r"cat: shapes \(4, 6\) and \(6, 4\) differ"),
    ]:
        with pytest.raises(genesis.ShapeError, match=words):
            wrong()
    for wrong, error, words in [
        (lambda: x.sum(dim=-3), IndexError, r"sum: dimension -3 .* 2 dimensions: -2 to 1"),
        (lambda: x.transpose(0, 2), IndexError, r"transpose: dimension 2 .* -2 to 1"),
        (lambda: x.unsqueeze(3), IndexError, r"unsqueeze: dimension 3 .* -3 to 2"),
        (lambda: x.squeeze(2), IndexError, "squeeze: dimension 2 is out of range"),
        (lambda: genesis.zeros(2.5), TypeError, "zeros: a shape is of integers, not 2.5"),
        (lambda: genesis.tensor([1, 1 << 64]), OverflowError, "18446744073709551616 does not fit"),
        (lambda: genesis.tensor(1, depth=2), TypeError, r"tensor\(\) got an unexpected"),
        (lambda: genesis.from_numpy([1]), TypeError, r"from_numpy: \[1\] is no array"),
        (lambda: bool(x[:0]), ValueError, "truth of a tensor of no elements"),
        (lambda: genesis.cuda.configure_memory_manager(3), TypeError, "a dict of names"),
        (lambda: x.sort(dim=2), IndexError, "dimension 2 is out of range"),
        (lambda: x.int().add_(1.5), TypeError, "add_: .*float32 cannot be stored as int32"),
        (lambda: x ^ x, TypeError, "bitwise_xor is not defined for float32"),
        (lambda: x[0].expand(3, 6).mul_(2), ValueError, "expanded view"),
        (lambda: x.masked, AttributeError, "masked"),
    ]:
        with pytest.raises(error, match=words):
            wrong()
    assert x.tolist() == numpy.zeros((4, 6)).tolist()


def test_out_of_memory_in_the_middle_loses_nothing():
    x, y = genesis.arange(2000).float(), genesis.ones(2000)
    doubled = x * 2  # waits, and must not go with the rest
    wide = doubled.reshape(2000, 1, 1).expand(2000, 1 << 16, 1 << 16)
    before = requested()
    for attempt in (lambda: (wide + y.view(2000, 1, 1)).numpy(), lambda: (wide * 2).T.clone()):
        with pytest.raises(genesis.OutOfMemoryError, match="32.00 TiB|31.25 TiB|TiB"):
            attempt()
    assert requested() == before
    x.add_(1)
    assert x.tolist() == [i + 1 for i in range(2000)] and y.sum().item() == 2000
    assert doubled.tolist() == [2 * i for i in range(2000)]


def test_what_cannot_be_computed_is_in_nobodys_way():
    x = genesis.ones(1000)
    before = allocated()
    huge = (
        x.view(1000, 1, 1).expand(1000, 1 << 16, 1 << 16) + 1
    )  # waits for memory that is not there
    y = genesis.arange(1000)
    assert y.tolist()[999] == 999 and (y + 1).sum().item() == 500_500 and repr(y[:2])
    assert allocated() > before and genesis.memory_pressure() >= 0
    assert any(block["nbytes"] >= 8000 for block in MANAGER.blocks())
    for attempt in (genesis.flush, huge.numpy, lambda: x.add_(1)):
        with pytest.raises(genesis.OutOfMemoryError, match="15.62 TiB"):
            attempt()
    del huge
    assert x.add_(1).sum().item() == 2000
    genesis.flush()


# ---- failures ----

FAILING = """
import ctypes, gc, re
import numpy
import genesis
from genesis import _C

code = [line for line in open("/proc/self/maps") if "libgenesis.so" in line and "r-xp" in line]
begin, end = (int(one, 16) for one in re.match(r"(\\w+)-(\\w+)", code[0]).groups())
fake = ctypes.CDLL(None)
fake.fake_malloc_watch(ctypes.c_size_t(begin), ctypes.c_size_t(end))
fake.fake_malloc_live.restype = fake.fake_malloc_fail.restype = ctypes.c_long
manager = _C.MemoryManager("cpu")
generator = genesis.Generator()
array = numpy.arange(1200, dtype=numpy.float32).reshape(30, 40)

def program():
    x = genesis.from_numpy(array)
    y = ((x + 1) * 2).T
    z = genesis.tensor(array[::-1])
    z += y.T
    kept = z * 3
    z.clamp_(0, 1000)
    total = (kept - 1).sum(dim=0)
    values, places = (z % 7).sort(1)
    top = z.topk(3, 0).values
    both = genesis.cat([values, top, x[:2]])
    generator.manual_seed(5)
    noise = genesis.rand(400, generator=generator) + genesis.randn(400, generator=generator)
    order = genesis.randperm(300, generator=generator)
    half = both.half().roll(3).repeat(2, 1)
    out = (half.float() - 0.5).numpy()
    back = genesis.from_numpy(out).cumsum(1).unique()
    found = genesis.where(z > 500, z, 0).amax(1).tolist()
    x_again = genesis.tensor(out.tolist())
    return (total.sum().item(), places.sum().item(), noise.sum().item(), order[3].item(),
            out.sum(), back.numel(), found[3], x_again.mean().item())

def settled():
    gc.collect()
    genesis.flush()
    genesis.empty_cache()
    return manager.statistics()["requested_bytes"], fake.fake_malloc_live()

expected = program()
assert program() == expected
before = settled()
failures, nth = 0, 0
while True:
    nth += 1
    fake.fake_malloc_fail(ctypes.c_long(nth))
    try:
        made = program()
        is_done = True
    except (MemoryError, genesis.OutOfMemoryError) as error:
        is_done = False
        del error
    was_reached = fake.fake_malloc_fail(ctypes.c_long(-1)) <= 0
    assert settled() == before, (nth, settled(), before)
    if is_done:
        assert made == expected, nth
    failures += not is_done
    if is_done and not was_reached:
        break
print(failures, nth)
"""


def test_memory_fails_at_every_point():
    """Bookkeeping and tensors' memory alike: an exception, nothing leaked, and it goes on."""
    library = BUILD / "tests" / "fake" / "libgenesis_fake_malloc.so"
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the address sanitizer has an allocator of its own")
    if not library.exists():
        pytest.skip("the build has no tests")
    finished = subprocess.run(
        [sys.executable, "-c", FAILING],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    failures, _ = map(int, finished.stdout.split())
    assert failures > 80  # a block for a tensor may be at hand, which cannot fail


# ---- interrupts ----

LOOP = """
import genesis, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background ignore it
x = genesis.ones(500, 500)
x.numpy()  # an import that is interrupted raises something else
print("ready", flush=True)
try:
    while True:
        x = (x * 1.0001 + 0.5).T.sort(0).values.softmax(1) + genesis.rand(500, 500)
        x.cumsum(0).numpy()
except KeyboardInterrupt:
    y = (genesis.ones(1000) + 1).sum().item()
    print("interrupted", y, genesis.memory_stats().allocated_bytes > 0, flush=True)
"""


def test_an_interrupt_is_respected():
    process = subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        assert process.stdout.readline() == "interrupted 2000.0 True\n"
        assert time.monotonic() - begin < 1
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
