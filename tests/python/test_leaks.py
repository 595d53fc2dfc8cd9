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
    assert "leak: 1 blocks leaked" in finished.stderr and "(forget)" in finished.stderr


def test_tracing_from_the_environment(fresh):
    code = "import genesis\ndef forget():\n    genesis.memory_manager.allocate_memory(5000)\n"
    finished = fresh(code + "forget()\n", GENESIS_DEBUG="trace")
    assert "leak: 1 blocks leaked" in finished.stderr and "(forget)" in finished.stderr
    finished = fresh("import genesis\n", GENESIS_DEBUG="trace")
    assert finished.stderr == ""
