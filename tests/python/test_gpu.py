"""Genesis on a real GPU, beside PyTorch in the same process."""

import pytest

pytestmark = pytest.mark.gpu

ORDERS = {
    "genesis first": "import genesis\ngenesis.cuda.synchronize()\nimport torch\n",
    "torch first": "import torch\ntorch.zeros(1, device='cuda')\nimport genesis\n",
}


@pytest.fixture(autouse=True)
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("order", ORDERS)
def test_the_device_is_pytorchs(fresh, order):
    fresh(
        ORDERS[order]
        + """
properties = genesis.cuda.get_device_properties()
theirs = torch.cuda.get_device_properties(0)
assert genesis.cuda.get_device_name() == torch.cuda.get_device_name()
assert genesis.cuda.get_device_capability() == torch.cuda.get_device_capability()
assert properties.total_memory == theirs.total_memory
assert properties.multi_processor_count == theirs.multi_processor_count
assert properties.l2_cache_size == theirs.L2_cache_size
assert genesis.cuda.device_count() == torch.cuda.device_count()
assert str(theirs.uuid) in properties.uuid
"""
    )


@pytest.mark.parametrize("order", ORDERS)
def test_one_primary_context(fresh, order):
    """PyTorch computes in memory that Genesis allocated, on a stream that Genesis made."""
    fresh(
        ORDERS[order]
        + """
class Block:
    def __init__(self, count):
        self.address = genesis.memory_manager.allocate_memory(4 * count)
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<f4", "data": (self.address, False), "version": 3}
block = Block(1000)
stream = genesis.cuda.Stream()
with torch.cuda.stream(torch.cuda.ExternalStream(stream.cuda_stream)):
    tensor = torch.as_tensor(block, device="cuda")
    assert tensor.data_ptr() == block.address
    tensor.copy_(torch.arange(1000))
    total = (tensor * 2).sum()
event = stream.record_event()
event.synchronize()
assert total.item() == 999000
del tensor
genesis.memory_manager.free_memory(block.address, 4000)
assert genesis.cuda.memory_allocated() == 0
theirs = torch.cuda.Stream()
ours = genesis.cuda.ExternalStream(theirs.cuda_stream)
assert ours.cuda_stream == theirs.cuda_stream and ours != stream
ours.wait_event(event); ours.synchronize()
current = genesis.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
assert current == genesis.cuda.default_stream()
torch.zeros(1, device="cuda").add_(1).item()
"""
    )


def test_capture_is_seen(fresh):
    fresh("""
import genesis, torch
graph, buffer = torch.cuda.CUDAGraph(), torch.zeros(10, device="cuda")
seen = []
with torch.cuda.graph(graph):
    buffer.add_(1)
    stream = genesis.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
    seen.append(stream.is_capturing)
    try:  # the driver would end the capture if it were asked
        stream.stream_id
    except RuntimeError as error:
        seen.append("captured" in str(error))
assert seen == [True, True] and not stream.is_capturing
assert stream.stream_id == genesis.cuda.ExternalStream(stream.cuda_stream).stream_id
graph.replay(); torch.cuda.synchronize()
assert buffer.sum().item() == 10
""")


def test_a_lost_device_is_latched(fresh):
    """After a kernel that faults every call that needs the device says so; nothing crashes."""
    fresh("""
import genesis, torch
address = genesis.memory_manager.allocate_memory(100)
target, index = torch.zeros(4, device="cuda"), torch.tensor([2**40], device="cuda")
try:
    target[index] = 1.0  # PyTorch's own bounds check fails on the device, by an assertion
    torch.cuda.synchronize()
except RuntimeError:
    pass
else:
    raise AssertionError("the device survived")
kinds = []
for call in (genesis.cuda.synchronize, lambda: genesis.memory_manager.allocate_memory(1 << 30),
             genesis.cuda.Stream, genesis.memory_manager.compact):
    try:
        call()
    except RuntimeError as error:
        kinds.append(type(error).__name__)
assert kinds == ["DeviceLostError"] * 4, kinds
try:  # the caches may take it without the device
    genesis.memory_manager.free_memory(address)
except genesis.DeviceLostError:
    pass
""")


def test_after_fork(fresh):
    fresh("""
import os, sys, genesis
manager = genesis.memory_manager
address = manager.allocate_memory(1000)
stream = genesis.cuda.Stream()
child = os.fork()
if child == 0:
    status = 1
    try:
        assert not genesis.cuda.is_available()
        try:
            genesis.cuda.Stream()
        except RuntimeError as error:
            assert "forked" in str(error)
            manager.free_memory(address)
            del stream
            cpu = genesis.ndarray.cuda_memory_manager.CUDAMemoryManager("cpu")
            cpu.free_memory(cpu.allocate_memory(10))
            status = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
manager.free_memory(address)
""")


def test_exit_with_everything_alive(fresh):
    finished = fresh("""
import atexit, genesis
manager = genesis.memory_manager
kept = [genesis.cuda.Stream(), manager.allocate_memory(100), manager.allocate_memory(200)]
event = kept[0].record_event()
atexit.register(manager.free_memory, kept[1])
""")
    assert finished.stderr == ""


def test_random_allocations():
    """The driver's free memory ends where it began, once the caches are empty."""
    import random

    import genesis

    manager = genesis.memory_manager
    generator, live = random.Random(1), []
    genesis.cuda.empty_cache()
    free_before = genesis.cuda.memory_stats()["free"]
    for _ in range(5000):
        if live and generator.random() < 0.5:
            address, size = live.pop(generator.randrange(len(live)))
            manager.free_memory(address, size)
        else:
            size = generator.randrange(1 << generator.randrange(1, 23))
            live.append((manager.allocate_memory(size), size))
    for address, size in live:
        manager.free_memory(address, size)
    assert genesis.cuda.memory_allocated() == 0
    genesis.cuda.empty_cache()
    assert genesis.cuda.memory_stats()["free"] == free_before


def test_pytorchs_reader_takes_our_snapshot(fresh, tmp_path):
    """Its segments, memory and trace views accept it, and its totals equal ours."""
    fresh(f"""
import json, pickle
import genesis, torch
from torch.cuda import _memory_viz
from genesis import memory_profiler
mm = genesis.memory_manager
side = genesis.cuda.Stream()
with memory_profiler.record():
    kept = [mm.allocate_memory(size) for size in (100, 5000, 3 << 20, 40 << 20)]
    with memory_profiler.annotate("forward"):
        other = mm.allocate_memory(1 << 20, side)
    mm.record_stream(kept[1], side)
    mm.free_memory(kept.pop(1))
    mm.free_memory(mm.allocate_memory(70 << 20))
    for name in ("snapshot.json", "snapshot.pickle"):
        genesis.cuda.dump_snapshot({str(tmp_path)!r} + "/" + name)
now = mm.statistics()
for name in ("snapshot.json", "snapshot.pickle"):
    path = {str(tmp_path)!r} + "/" + name
    snapshot = json.load(open(path)) if name.endswith("json") else pickle.load(open(path, "rb"))
    ours = [one for one in snapshot["segments"] if one["device"] == 0]
    assert sum(one["total_size"] for one in ours) == now["reserved_bytes"]
    assert sum(one["allocated_size"] for one in ours) == now["live_bytes"]
    text = _memory_viz.segsum(snapshot)
    reserved = sum(one["total_size"] for one in snapshot["segments"])
    assert f"total_reserved: {{_memory_viz.Bytes(reserved)}}" in text, text
    assert "forward" in json.dumps(snapshot)
    text = _memory_viz.trace(snapshot)
    assert text.count(" = ") >= 6 and text.count("del ") == 2, text
    for view in (_memory_viz.memory, _memory_viz.segments):
        lines = view(snapshot, format_flamegraph=str).splitlines()   # the picture needs a network
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == reserved
        live = sum(int(line.rsplit(" ", 1)[1]) for line in lines if ";active_allocated;" in line)
        assert live == sum(one["allocated_size"] for one in snapshot["segments"])
    assert "<html" in _memory_viz.trace_plot(snapshot).lower()
    assert "<html" in _memory_viz.segment_plot(snapshot).lower()
""")


def test_out_of_memory_names_the_holders(fresh):
    fresh("""
import genesis
mm = genesis.memory_manager
genesis.enable_memory_debugging(True)
def weights():
    return mm.allocate_memory(3 << 30)
def activations():
    return [mm.allocate_memory(256 << 20) for _ in range(8)]
def gradients():
    return mm.allocate_memory(1 << 30)
def moments():
    return mm.allocate_memory(768 << 20)
def images():
    return mm.allocate_memory(512 << 20)
def scratch():
    return mm.allocate_memory(64 << 20)   # not among the five
held = [weights(), *activations(), gradients(), moments(), images(), scratch()]
total = genesis.cuda.get_device_properties().total_memory
try:
    mm.allocate_memory(total - (1 << 30))
except genesis.OutOfMemoryError as error:
    text = str(error)
place = text.index("Largest holders")
names = ("weights", "activations", "gradients", "moments", "images")
order = [text.index(f": {name}", place) for name in names]
assert order == sorted(order) and text.count(__file__) == 5, text
for address in held:
    mm.free_memory(address)
address = mm.allocate_memory(1 << 30)   # and it goes on
mm.free_memory(address)
assert genesis.check_memory_leaks() == []
""")


def test_replaying_a_training_loop_of_pytorch(fresh, tmp_path):
    """Recorded with PyTorch's own allocator, and replayed through ours on the same GPU."""
    path = tmp_path / "torch.pickle"
    fresh(f"""
import torch
torch.cuda.memory._record_memory_history(max_entries=200000)
model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    batch = torch.randn(64 + 37 * (step % 5), 512, device="cuda")
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
torch.cuda.memory._dump_snapshot({str(path)!r})
""")
    finished = fresh(f"""
import sys
from genesis.__main__ import main
sys.argv = ["genesis", "memory", "replay", {str(path)!r}, "--device", "cuda"]
sys.exit(main())
""")
    assert "peak live" in finished.stdout and "peak reserved" in finished.stdout, finished.stdout
    assert "fragmentation" in finished.stdout
    print(finished.stdout)
