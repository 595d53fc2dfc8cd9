"""Leaks are found, with the line that made them, and nothing else is."""

from __future__ import annotations


def test_planted_leaks(any_memory):
    any_memory("""
genesis.enable_memory_debugging(True)

def clean():
    address = mm.allocate_memory(100)
    block = mm.allocate_block(200)
    mm.free_memory(address)

def forget():
    mm.allocate_memory(5000)

def cycle():
    node = Node()
    node.block = mm.allocate_block(7000)
    node.itself = node

class Node:
    pass

clean()
gc.collect()
assert genesis.check_memory_leaks() == []
forget()
cycle()
leaks = genesis.check_memory_leaks()
found = {leak.size: leak for leak in leaks}
assert sorted(found) == [5000, 7000]
assert "(forget)" in found[5000].location and __file__ in found[5000].location
assert "(cycle)" in found[7000].location and "reference cycle" in found[7000].held_by
assert "Node" in found[7000].held_by and found[5000].held_by == ""
assert found[5000].stack[0].name == "forget" and found[5000].stack[1].name == "<module>"
assert 0 <= found[5000].age < 60 and found[5000].device == str(mm.device)
text = leaks.summary()
assert "2 blocks leaked" in text and "(forget)" in text and "reference cycle" in text
del leaks, found
gc.collect()
assert [leak.size for leak in genesis.check_memory_leaks()] == [5000]
mm.free_memory(genesis.check_memory_leaks()[0].address)
assert genesis.check_memory_leaks() == []
genesis.enable_memory_debugging(False)
""")


def test_a_kept_view(cpu_memory):
    cpu_memory("""
genesis.enable_memory_debugging(True)
views = []
def keep():
    block = mm.allocate_block(9000)
    views.append(memoryview(block)[10:20])
keep()
(leak,) = genesis.check_memory_leaks()
assert leak.size == 9000 and "(keep)" in leak.location and "view" in leak.held_by
views.clear()
assert genesis.check_memory_leaks() == []
block = mm.allocate_block(64)
view = memoryview(block)
view[:] = bytes(range(64))
assert bytes(view[3:6]) == b"\\3\\4\\5" and view.nbytes == 64 and not view.readonly
raises(BufferError, "views", block.free)
view.release()
block.free()
raises(ValueError, "freed", memoryview, block)
""")


def test_scopes(any_memory):
    any_memory("""
before = mm.allocate_memory(1)
with genesis.leak_scope() as scope:
    during = mm.allocate_memory(2)
    with genesis.leak_scope() as inner:
        mm.free_memory(mm.allocate_memory(3))
after = mm.allocate_memory(4)
assert [leak.size for leak in scope.leaks] == [2] and inner.leaks == []
assert "<module>" in scope.leaks[0].location
for address in (before, during, after):
    mm.free_memory(address)
assert isinstance(scope.leaks[0], genesis.Leak)
""")


def test_where_large_allocations_are(any_memory):
    any_memory("""
genesis.enable_memory_debugging(True)
def allocate():
    return mm.allocate_memory(5 << 20)
address = allocate()
(large,) = genesis.detailed_memory_stats(mm.device).get_large_allocations("4MiB")
assert "(allocate)" in large.location and __file__ in large.location
if hasattr(mm, "dump_allocation_trace"):
    assert "(allocate)" in mm.dump_allocation_trace(io.StringIO())
genesis.enable_memory_debugging(False)
mm.free_memory(address)
""")


def test_a_report_at_exit(fresh):
    code = """
import genesis
genesis.enable_memory_debugging(True, report_at_exit=True)
mm = genesis.memory_manager
kept = mm.allocate_block(100)       # goes with the interpreter
def forget():
    mm.allocate_memory(5000)
forget()
"""
    finished = fresh(code)
    assert "leak: 1 block leaked" in finished.stderr and "(forget)" in finished.stderr


def test_tracing_from_the_environment(fresh):
    code = "import genesis\ndef forget():\n    genesis.memory_manager.allocate_memory(5000)\n"
    finished = fresh(code + "forget()\n", GENESIS_DEBUG="trace")
    assert "leak: 1 block leaked" in finished.stderr and "(forget)" in finished.stderr
    finished = fresh(code + "forget()\nimport os\nos.fork()\n", GENESIS_DEBUG="guard,TRACE")
    assert finished.stderr.count("leak: 1 block leaked") == 1  # the parent's
    finished = fresh("import genesis\n", GENESIS_DEBUG="trace")
    assert finished.stderr == ""
    code = "import genesis\ngenesis.enable_memory_debugging()\n" + code
    code += "forget()\ngenesis.enable_memory_debugging(False)\nforget()\n"
    finished = fresh(code, GENESIS_DEBUG="trace")
    assert "leak: 2 blocks leaked" in finished.stderr and finished.stderr.count("(forget)") == 4


def test_what_holds_a_block(cpu_memory):
    cpu_memory("""
genesis.enable_memory_debugging(True)

class Model:
    def __init__(self):
        self.weights = mm.allocate_block(1)

class Left: pass
class Right: pass

def cycle():
    left, right = Left(), Right()
    left.other, right.others = right, [left]
    left.block = mm.allocate_block(2)

model = Model()
kept = mm.allocate_block(3)
pair = (mm.allocate_block(4), 0)                  # neither is known to the collector
table = {"weights": {"first": mm.allocate_block(5)}}
listed = [{"a": mm.allocate_block(6)}]
view = memoryview(mm.allocate_block(7))
views = [memoryview(mm.allocate_block(8))]
cycle()
gc.disable()
held_by = {leak.size: leak.held_by for leak in genesis.check_memory_leaks()}
assert held_by == {
    1: "a __main__.Model",
    2: "a reference cycle (Left -> Right -> list -> Left)",
    3: "the variable kept of __main__",
    4: "the variable pair of __main__",
    5: "a dict, under 'weights'",
    6: "a list",
    7: "a view in the variable view of __main__",
    8: "a view in a list",
}, held_by
assert "places are known" not in genesis.check_memory_leaks().summary()
""")


def test_places_that_are_not_known(cpu_memory):
    cpu_memory("""
block = mm.allocate_block(100)
text = genesis.check_memory_leaks().summary()
assert "a place that is not known" in text and "enable_memory_debugging" in text
""")


def test_debugging_and_recording_leave_each_other_alone(cpu_memory):
    cpu_memory("""
from genesis import memory_profiler
def forget():
    return mm.allocate_memory(100)
def allocations():
    return memory_profiler.get_report().allocations

with memory_profiler.record():
    genesis.enable_memory_debugging(True)
    genesis.enable_memory_debugging(False)
    mm.free_memory(forget())
assert allocations() == 1 and not memory_profiler.is_recording()
genesis.enable_memory_debugging(True)
forget()
assert allocations() == 1                           # as it was
with memory_profiler.record(stacks="none"):
    with genesis.leak_scope() as scope:
        forget()
    mm.free_memory(mm.allocate_memory(1))
forget()                                            # debugging goes on
assert allocations() == 2 and len(scope.leaks) == 1
leaks = genesis.check_memory_leaks()
assert sorted("(forget)" in leak.location for leak in leaks) == [False, True, True]
error = raises(genesis.OutOfMemoryError, "Largest holders", mm.allocate_memory, 1 << 46)
assert "forget" in str(error)
genesis.enable_memory_debugging(False)
assert not memory_profiler.is_recording() and allocations() == 2
with genesis.leak_scope() as scope:
    with memory_profiler.record():
        forget()
    forget()
assert ["(forget)" in leak.location for leak in scope.leaks] == [True, True]
assert allocations() == 1 and not memory_profiler.is_recording()
""")


def test_held_blocks_are_not_reported_at_exit(fresh):
    code = """
import genesis
mm = genesis.memory_manager
pair = (mm.allocate_block(100), 0)
table = {"weights": {"first": mm.allocate_block(200)}}
"""
    assert fresh(code, GENESIS_DEBUG="trace").stderr == ""


def test_what_holds_a_tensor(any_memory):
    any_memory("""
genesis.enable_memory_debugging(True)
made = lambda size: genesis.ones(size, dtype=genesis.uint8, device=str(mm.device))

class Model:
    def __init__(self):
        self.weights = made(1600)

def cycle():
    model = Model()
    model.weights, model.itself = made(3200), model

model = Model()
kept = made(4800)
table = {"weights": made(6400)}
small = made(8000)[3:5]
cycle()
genesis.flush()
gc.disable()
held_by = {leak.size: leak.held_by for leak in genesis.check_memory_leaks()}
assert held_by == {
    1600: "a __main__.Model",
    3200: "a reference cycle (Model)",
    4800: "the variable kept of __main__",
    6400: "the variable table of __main__",
    8000: "the variable small of __main__",
}, held_by
""")
