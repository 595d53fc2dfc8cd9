"""Recording what happens to memory: exactly, cheaply enough, and with the right lines."""

from __future__ import annotations

import pytest


def test_the_timeline_equals_the_statistics(any_memory):
    any_memory("""
import random
from genesis import memory_profiler
draw = random.Random(5)
blocks, checks = [], []
other = cuda.Stream(mm.device)
base = mm.statistics()
memory_profiler.start(stacks="none")
for step in range(400):
    if blocks and draw.random() < 0.45:
        address = blocks.pop(draw.randrange(len(blocks)))
        if draw.random() < 0.3:
            mm.record_stream(address, other)
        mm.free_memory(address)
    elif draw.random() < 0.1:
        blocks += mm.allocate_batch([draw.randrange(100_000) for _ in range(3)])
    else:
        size = draw.choice([0, 1, 511, 4096, 70_001, 1 << 20, 3 << 20])
        blocks.append(mm.allocate_memory(size, draw.choice([None, other])))
    now = mm.statistics()
    checks.append((len(memory_profiler.get_recording()), now))
memory_profiler.stop()
recording = memory_profiler.get_recording()
device = recording.devices.index(str(mm.device))
usage = recording.usage(device)
after = dict(zip(usage.event, zip(usage.live, usage.requested, usage.pending, usage.reserved)))
compared = 0
for count, now in checks:
    if count - 1 in after:
        live, requested, pending, reserved = after[count - 1]
        assert live == now["live_bytes"] and requested == now["requested_bytes"]
        assert pending == now["pending_bytes"] and reserved == now["reserved_bytes"]
        compared += 1
assert compared > 300, compared
for address in blocks:
    mm.free_memory(address)
""")


def test_tensors_are_named_by_the_line_of_the_program(fresh):
    finished = fresh("""
import genesis
from genesis import memory_profiler
def work():
    x = genesis.rand(1000)
    return x, genesis.cat([x, x])
with memory_profiler.record():
    kept = work()
print(memory_profiler.get_report().summary())
""")
    for line in (5, 6):
        assert f"script.py:{line} (work)" in finished.stdout
    assert "_random.py" not in finished.stdout and "_tensor" not in finished.stdout
    finished = fresh("""
import genesis
genesis.enable_memory_debugging(True)
def work():
    return genesis.rand(1000, 1000)
kept = work()
try:
    genesis.ones(10**13)
except genesis.OutOfMemoryError as error:
    print(error)
""")
    assert "in 1 block: work (" in finished.stdout and "script.py:5)" in finished.stdout
    assert "_random.py" not in finished.stdout


def test_what_waits_is_recorded_where_the_program_asked_for_it(fresh):
    """Operations that are computed later: their line, and the annotation around it."""
    finished = fresh("""
import genesis
from genesis import memory_profiler
x = genesis.ones(1000, 1000)
before = x + 1
with memory_profiler.record():
    with memory_profiler.annotate("first"):
        y = x * 2
    with memory_profiler.annotate("second"):
        z = y + before
events = memory_profiler.get_timeline().events
print([(e.frames[0].line, e.annotation) for e in events if e.kind == "alloc"])
print(memory_profiler.get_report().summary())
""")
    assert finished.stdout.startswith("[(8, 'first'), (10, 'second')]"), finished.stdout
    finished = fresh("""
import genesis
genesis.enable_memory_debugging(True)
x = genesis.ones(1000, 1000)
y = x + 1
for leak in genesis.check_memory_leaks():
    print(leak.location)
""")
    assert "script.py:5 " in finished.stdout and "script.py:6" not in finished.stdout


def test_stacks_and_annotations(any_memory):
    any_memory("""
from genesis import memory_profiler

def allocate(nbytes):
    return mm.allocate_memory(nbytes)

with memory_profiler.record():
    with memory_profiler.annotate("train"):
        with memory_profiler.annotate("forward"):
            small = allocate(100)
        large = allocate(30 << 20)      # the interpreter's lock is let go meanwhile
        batch = mm.allocate_batch([1, 2])
        block = mm.allocate_block(500)
        asked = mm.allocate_async(700).wait()
    memory_profiler.mark("done")
assert not memory_profiler.is_recording()
timeline = memory_profiler.get_timeline()
allocs = [event for event in timeline.events if event.kind == "alloc"]
assert [event.requested for event in allocs] == [100, 30 << 20, 1, 2, 500, 700]
assert [event.annotation for event in allocs[:5]] == ["train/forward"] + ["train"] * 4
for event in allocs[:2]:
    assert event.frames[0].name == "allocate" and event.frames[1].name == "<module>"
    assert event.frames[0].filename == __file__ and event.frames[0].line > 0
for event in allocs[2:]:
    assert event.frames[0].name == "<module>", event
assert [event.annotation for event in timeline.events if event.kind == "mark"] == ["done"]
text = memory_profiler.get_report().summary()
assert "train/forward" in text and "(allocate)" in text
mm.free_memory(small); mm.free_memory(large); mm.free_memory(asked)
for address in batch:
    mm.free_memory(address)
""")


def test_arguments(any_memory):
    any_memory("""
from genesis import memory_profiler
raises(ValueError, "stacks", memory_profiler.start, stacks="rust")
raises(ValueError, "max_events", memory_profiler.start, max_events=0)
raises(ValueError, "frames", memory_profiler.start, frames=33)
raises(TypeError, "max_events", memory_profiler.start, max_events="1MB")
raises(TypeError, "annotation", memory_profiler.annotate, 5)
raises(TypeError, "mark", memory_profiler.mark, 5)
assert "nothing was recorded" in memory_profiler.get_report().summary()
raises(ValueError, "", memory_profiler.mark, "a" * 5000)
raises(ValueError, "", memory_profiler.mark, "a\\0b")
@memory_profiler.annotate("step")
def step(x):
    return x + 1
assert step(1) == 2 and step.__name__ == "step"
genesis.enable_memory_profiling(True)
assert memory_profiler.is_recording()
mm.free_memory(mm.allocate_memory(10))
genesis.enable_memory_profiling(False)
assert len(memory_profiler.get_timeline().events) >= 2
memory_profiler.start(max_events=8)
for _ in range(100):
    mm.free_memory(mm.allocate_memory(10))
memory_profiler.stop()
recording = memory_profiler.get_recording()
assert len(recording) == 8 and recording.lost >= 192
""")


def test_threads(any_memory):
    any_memory("""
from genesis import memory_profiler
with memory_profiler.record():
    def work(index):
        with memory_profiler.annotate(f"worker {index}"):
            for _ in range(200):
                mm.free_memory(mm.allocate_memory(1000 + index))
    run_threads(4, work)
recording = memory_profiler.get_recording()
allocs = [event for event in recording if event.kind == "alloc"]
assert len(allocs) == 800 and recording.lost == 0
for event in allocs:
    assert event.annotation == f"worker {event.requested - 1000}"
assert len({event.thread for event in allocs}) == 4
""")


def test_out_of_memory_names_the_holders(any_memory):
    any_memory("""
genesis.enable_memory_debugging(True)
def hold(nbytes):
    return mm.allocate_memory(nbytes)
held = [hold(2 << 20)]
held += [hold(1 << 20), hold(1 << 20)]               # another stack, the same place
held.append(mm.allocate_memory(5 << 20))
held.append(mm.allocate_memory(6 << 20))
held.append(mm.allocate_memory(7 << 20))
held.append(mm.allocate_memory(8 << 20))
held.append(mm.allocate_memory(3 << 20))             # not among the five
error = raises(genesis.OutOfMemoryError, "Largest holders", mm.allocate_memory, 1 << 46)
genesis.enable_memory_debugging(False)
text = str(error)
assert "hold (" in text and __file__ in text, text
holders = text.partition("Largest holders: ")[2].split("; ")
assert [one.partition(":")[0] for one in holders] == [
    *(f"{size}.00 MiB in 1 block" for size in (8, 7, 6, 5)), "4.00 MiB in 3 blocks"
], holders
assert all(f"{__file__}:" in one for one in holders), holders
for address in held:
    mm.free_memory(address)
""")


@pytest.mark.parametrize("name", ["snapshot.json", "snapshot.pickle"])
def test_snapshots(any_memory, tmp_path, name):
    any_memory(f"""
from genesis import _snapshot, memory_profiler
path = {str(tmp_path / name)!r}
with memory_profiler.record():
    address = mm.allocate_memory(5000)
    cuda.dump_snapshot(path)
    mm.free_memory(address)
snapshot = _snapshot.load(path)
now = cuda.memory_snapshot(format="torch")
assert set(snapshot) == set(now)
blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
live = [block for block in blocks if block["state"] == "active_allocated"]
assert [block["requested_size"] for block in live] == [5000]
for segment in snapshot["segments"]:
    assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
raises(ValueError, "format", cuda.memory_snapshot, format="xml")
""")


def test_callbacks(any_memory):
    any_memory("""
called = []
total = cuda.get_device_properties(mm.device).total_memory
cuda.set_memory_callback(called.append, threshold=0.0, device=mm.device)
before = len(called)
genesis.empty_cache()
address = mm.allocate_memory(64 << 20)
assert len(called) == before + 1 and called[-1]["reserved"] >= 64 << 20, called
mm.free_memory(address)
mm.free_memory(mm.allocate_memory(64 << 20))
if mm.policy != "direct":   # which gives everything back each time
    assert len(called) == before + 1
count = len(called)
raises(genesis.OutOfMemoryError, "out of memory", mm.allocate_memory, 1 << 46)
assert len(called) == count + 1
bare = []
def without():
    bare.append(genesis.memory_stats())
cuda.set_memory_callback(without, threshold=1.0, device=mm.device)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 1 << 46)
assert len(bare) == 1 and len(called) == count + 1
raises(TypeError, "", cuda.set_memory_callback, 5, device=mm.device)
raises(TypeError, "(a, b)", cuda.set_memory_callback, lambda a, b: None, device=mm.device)
raises(ValueError, "", cuda.set_memory_callback, print, 2.0, device=mm.device)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 1 << 46)
assert len(bare) == 2                    # refused settings change nothing
cuda.set_memory_callback(None, device=mm.device)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 1 << 46)
assert len(bare) == 2
""")
