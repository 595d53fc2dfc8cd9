"""Genesis under PyTorch, CuPy and Numba: what can be told without a GPU, and on one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import NUMPY_FOR_NUMBA

from genesis import adapters


def test_names():
    for name in adapters.NAMES:
        module = adapters.get(name)
        assert module.__doc__ and not module.is_enabled()
    with pytest.raises(ValueError, match="jax"):
        adapters.get("jax")


def test_frameworks_are_imported_only_when_used(fresh):
    fresh("""
import sys
from genesis import adapters
for name in adapters.NAMES:
    adapters.get(name)
    assert name not in sys.modules
""")


def run_under(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "genesis", "run", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_command_refuses_clearly(tmp_path):
    finished = run_under("--under", "torch", str(tmp_path / "none.py"))
    assert finished.returncode == 2 and "no file" in finished.stderr
    script = tmp_path / "script.py"
    script.write_text("print('ran')")
    finished = run_under("--under", "jax", str(script))
    assert finished.returncode == 2 and "jax" in finished.stderr and "ran" not in finished.stdout


# ---- on the simulated GPU, with as much of a framework as its adapter touches ----


@pytest.fixture
def simulated(fresh, build):
    """Run code on the simulated GPU, which must find nothing."""
    if not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")

    def run(code: str, **environment: str) -> None:
        found = fresh(code, GENESIS_CUDA_DRIVER="sim", **environment).stderr
        # A build for sanitizers also reports what is alive at exit, which is no mistake here.
        assert all("leak:" in line for line in found.splitlines()), found

    return run


NUMBA = """
import collections, sys, types
class Pending(list):
    is_disabled = False
    def add_item(self, free, handle, size):
        self.append(lambda: free(handle))
class Manager:
    def __init__(self, context):
        self.context, self.deallocations = context, Pending()
    def reset(self):
        self.was_reset = True
class Handles:
    def get_ipc_handle(self, memory):
        return "Numba's"
class Pointer:
    def __init__(self, context, pointer, size, finalizer):
        self.pointer, self.size, self.free = pointer.value, size, finalizer
cuda = types.ModuleType("numba.cuda")
cuda.HostOnlyCUDAMemoryManager, cuda.GetIpcHandleMixin = Manager, Handles
cuda.MemoryPointer = Pointer
cuda.MemoryInfo = collections.namedtuple("MemoryInfo", "free total")
cuda.set_memory_manager = lambda kind: setattr(cuda, "kind", kind)
numba = types.ModuleType("numba")
numba.cuda = cuda
sys.modules.update({"numba": numba, "numba.cuda": cuda})
import genesis
from genesis import adapters
adapter = adapters.get("numba")
adapter.enable()
assert adapter.is_enabled() and adapter._numba_memory_manager.__name__ == cuda.kind.__name__
def manager_of(device):
    return cuda.kind(types.SimpleNamespace(device=device))
manager = manager_of(types.SimpleNamespace(id=0))
"""


def test_numba_can_share_memory_where_it_is_alone(simulated):
    simulated(
        NUMBA
        + """
manager_of(0).initialize()  # a context that others made has the driver's device
manager.initialize()
adapters._load_library = None  # Numba calls again and again
manager.initialize()
mm = genesis.memory_manager
assert mm.policy == "pool", mm.policy
blocks = [manager.memalloc(size) for size in (0, 1, 100_000, 5_000_000)]
assert len({one.pointer for one in blocks}) == 4 and mm.statistics()["live_count"] == 4
assert manager.get_ipc_handle(blocks[1]) == "Numba's"
assert not mm.compact().can_fold  # what other processes know stays where it is
free, total = manager.get_memory_info()
for block in blocks:
    block.free()
assert mm.statistics()["live_count"] == 0 and mm.statistics()["reserved_bytes"] > 0
assert free < total and manager.get_memory_info() == (total, total)
manager.reset()
assert manager.was_reset and mm.statistics()["reserved_bytes"] == 0
""",
    )


def test_numba_uses_memory_on_any_stream(simulated):
    """What was freed is not handed out before the work on all streams is done."""
    simulated(
        NUMBA
        + """
size = 4 << 20
class Array:
    def __init__(self, block):
        self.__cuda_array_interface__ = {
            "shape": (size // 4,), "typestr": "<f4", "version": 3, "data": (block.pointer, False)
        }
side = genesis.cuda.Stream(blocking=True)
for turn in range(3):
    block = manager.memalloc(size)
    with genesis.cuda.stream(side):
        seen = genesis.as_tensor(Array(block))
        seen += 1
        genesis.flush()
    del seen
    manager.deallocations.is_disabled = turn == 2  # cuda.defer_cleanup()
    block.free()
    other = manager.memalloc(size)
    assert other.pointer != block.pointer
    side.synchronize()
    genesis.memory_manager.collect()
    again = manager.memalloc(size)
    assert (again.pointer == block.pointer) == (turn < 2)
    manager.deallocations.is_disabled = False
    for free in manager.deallocations:
        free()
    manager.deallocations.clear()
    for one in (other, again):
        one.free()
    genesis.cuda.synchronize()
    genesis.cuda.empty_cache()
assert genesis.memory_manager.statistics()["live_count"] == 0
""",
        SIM_GPU_SCHEDULE="lazy",
    )


@pytest.mark.parametrize("why", ["torch", "cupy", "used", "said"])
def test_numba_takes_the_policy_that_is_there(simulated, why):
    simulated(
        NUMBA
        + f"""
why = {why!r}
if why in adapters.NAMES:
    adapters.get(why).is_enabled = lambda: True
elif why == "used":
    genesis._C.MemoryManager(0)
manager.initialize()
block = manager.memalloc(100)
assert genesis.memory_manager.policy == "virtual"
try:
    manager.get_ipc_handle(block)
except RuntimeError as error:
    assert "GENESIS_CUDA_ALLOCATOR=pool" in str(error)
else:
    raise AssertionError("no error")
block.free()
""",
        **({"GENESIS_CUDA_ALLOCATOR": "virtual"} if why == "said" else {}),
    )


TORCH_STAND_IN = """
import ctypes, sys, types
class Allocator:
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        self.alloc, self.free = getattr(library, alloc), getattr(library, free)
        self.alloc.restype = ctypes.c_void_p
    def allocator(self):
        return self
    def __getattr__(self, setter):
        return lambda address: setattr(self, setter.removeprefix("set_"), address)
def refuse(*arguments):
    raise RuntimeError("CUDAPluggableAllocator does not yet support this")
REPLACED = [
    *("_cuda_memoryStats", "_cuda_resetAccumulatedMemoryStats", "_cuda_resetPeakMemoryStats"),
    *("_cuda_setMemoryFraction", "_cuda_getMemoryFraction", "_cuda_emptyCache"),
    *("_cuda_memorySnapshot", "_cuda_record_memory_history", "_cuda_isHistoryEnabled"),
    *("_cuda_record_memory_history_legacy", "_accelerator_isAllocatorInitialized"),
    *("_accelerator_getDeviceStats", "_accelerator_resetAccumulatedStats"),
    *("_accelerator_resetPeakStats", "_accelerator_emptyCache", "_accelerator_getMemoryInfo"),
    *("_cuda_checkPoolLiveAllocations", "_cuda_getCheckpointState"),
    "_cuda_setCheckpointPoolState",
]
class Compiler:
    def __init__(self, options):
        self.config = {}
        self.apply_options(options)
    def apply_options(self, options):
        self.config.update(options)
    def __call__(self, model, inputs):
        return self.config.get("triton.cudagraphs", inductor.triton.cudagraphs)
inductor = types.SimpleNamespace(triton=types.SimpleNamespace(cudagraphs=False))
sys.modules["torch._inductor"] = types.SimpleNamespace(config=inductor)
torch = types.ModuleType("torch")
torch.__file__ = "/nowhere/torch/__init__.py"
torch._C = types.SimpleNamespace(_cuda_customAllocator=None, **dict.fromkeys(REPLACED, refuse))
torch._TorchCompileInductorWrapper = Compiler
memory = types.SimpleNamespace(CUDAPluggableAllocator=Allocator)
memory.change_current_allocator = lambda allocator: setattr(memory, "current", allocator)
torch.cuda = types.SimpleNamespace(is_initialized=lambda: is_used, memory=memory)
torch.cuda.mem_get_info = lambda device: (1, 2)
torch.cuda.MemPool = lambda allocator: ("pool", allocator)
sys.modules["torch"] = torch
import genesis
from genesis.adapters import torch as adapter
is_used = False
word, size, integer = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
def alloc(nbytes, device=0):
    return word(memory.current.alloc(size(nbytes), integer(device), word()))
def free(block, nbytes, device=0):
    memory.current.free(block, size(nbytes), integer(device), word())
"""


def test_torch_is_given_the_entry_points(simulated):
    simulated(
        TORCH_STAND_IN
        + """
is_used = True
try:
    adapter.enable()
except RuntimeError as error:
    assert "mempool" in str(error) and not adapter.is_enabled()
else:
    raise AssertionError("no error")
is_used = False
adapter.enable()
one = memory.current
adapter.enable()
assert memory.current is one and adapter.is_enabled()
ctypes.CFUNCTYPE(None, integer)(one.init_fn)(1)
stats = genesis.memory_manager.statistics
block = alloc(5_000_000)
assert stats()["requested_bytes"] == 5_000_000
found = ctypes.c_size_t()
base = ctypes.CFUNCTYPE(word, word, ctypes.POINTER(ctypes.c_size_t))(one.base_alloc_fn)
assert base(block.value + 4_999_999, found) == block.value and found.value == 5_000_000
side = genesis.cuda.Stream()
ctypes.CFUNCTYPE(None, word, word)(one.record_stream_fn)(block, side.cuda_stream)
free(block, 5_000_000)
genesis.cuda.synchronize()
ctypes.CFUNCTYPE(None)(one.reset_fn)()
assert stats()["live_count"] == 0 and stats()["reserved_bytes"] == 0
ctypes.CFUNCTYPE(None, ctypes.c_double, integer)(one.memory_fraction_fn)(0.25, 0)
assert stats()["limit_bytes"] == (1 << 30) // 4
kind, pool = adapter.mempool()
assert kind == "pool" and pool is not one and pool.alloc and pool.init_fn
""",
    )


def test_torch_asks_genesis_for_statistics(simulated):
    """What PyTorch's functions look up in torch._C answers with its keys, and with real figures."""
    simulated(
        TORCH_STAND_IN
        + """
adapter.enable()
C = torch._C
assert not [name for name in REPLACED if getattr(C, name) is refuse]
AMOUNTS = ["allocation", "segment", "active", "inactive_split"]
AMOUNTS += ["allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes"]
AMOUNTS += ["requested_bytes"]
COUNTS = ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc"]
COUNTS += ["num_device_free", "max_split_size"]
KINDS = {"current", "peak", "allocated", "freed"}
stats = C._cuda_memoryStats(0)
assert set(stats) == {*AMOUNTS, *COUNTS, "oversize_allocations", "oversize_segments"}, set(stats)
assert all(set(stats[name]) == {"all", "small_pool", "large_pool"} for name in AMOUNTS)
assert all(set(pool) == KINDS for name in AMOUNTS for pool in stats[name].values())
assert set(stats["oversize_segments"]) == KINDS and stats["max_split_size"] == -1
def every(name, device=0):
    found = C._cuda_memoryStats(device)[name]["all"]
    return tuple(found[kind] for kind in ("current", "peak", "allocated", "freed"))
assert every("allocation") == every("allocated_bytes") == every("reserved_bytes") == (0, 0, 0, 0)
small, large = alloc(1000), alloc(20 << 20)
assert every("allocation") == every("active") == (2, 2, 2, 0)
assert every("requested_bytes") == (1000 + (20 << 20), 1000 + (20 << 20), 1000 + (20 << 20), 0)
live = (20 << 20) + 1024
assert every("allocated_bytes") == every("active_bytes") == (live, live, live, 0)
reserved = every("reserved_bytes")[0]
assert every("reserved_bytes") == (reserved, reserved, reserved, 0) and reserved >= live
pieces = every("segment")[0]
assert every("segment") == (pieces, pieces, pieces, 0) and pieces > 0
free(large, 20 << 20)
assert every("allocation") == (1, 2, 2, 1) and every("allocated_bytes")[:2] == (1024, live)
assert every("reserved_bytes")[0] == reserved
stats = C._accelerator_getDeviceStats(0)
assert stats == C._cuda_memoryStats(0)
stats["allocation"]["small_pool"]["peak"] = 7  # a caller's own
assert C._cuda_memoryStats(0)["allocation"]["small_pool"]["peak"] == 0
C._cuda_resetPeakMemoryStats(0)
assert every("allocation")[1] == 1 and every("allocated_bytes")[1] == 1024
C._cuda_resetAccumulatedMemoryStats(0)
assert every("allocation") == (1, 1, 0, 0) and every("segment")[2:] == (0, 0)
assert C._cuda_memoryStats(0)["num_device_alloc"] == 0
other = alloc(3 << 20)
assert every("allocation") == (2, 2, 1, 0) and every("requested_bytes")[2:] == (3 << 20, 0)
C._accelerator_resetPeakStats(0)
C._accelerator_resetAccumulatedStats(0)
assert every("allocation") == (2, 2, 0, 0)
second = alloc(5 << 20, 1)
assert every("allocated_bytes", 1) == (5 << 20, 5 << 20, 5 << 20, 0)
assert every("allocation") == (2, 2, 0, 0)
try:
    C._cuda_memoryStats(99)
except (RuntimeError, ValueError) as error:
    assert "99" in str(error)
else:
    raise AssertionError("no error")
free(other, 3 << 20)
C._cuda_emptyCache()
assert every("reserved_bytes")[0] < reserved and every("reserved_bytes", 1)[0] > 0
free(second, 5 << 20, 1)
C._accelerator_emptyCache()
assert every("reserved_bytes", 1)[0] == 0
assert C._cuda_getMemoryFraction(0) == 1.0
C._cuda_setMemoryFraction(0.25, 0)
assert C._cuda_getMemoryFraction(0) == 0.25 and C._cuda_getMemoryFraction(1) == 1.0
assert genesis.memory_manager.statistics()["limit_bytes"] == (1 << 30) // 4
assert C._accelerator_getMemoryInfo(0) == (1, 2)
assert not C._accelerator_isAllocatorInitialized()
is_used = True
assert C._accelerator_isAllocatorInitialized()
try:
    C._cuda_getCheckpointState(0, (0, 1))
except RuntimeError as error:
    assert "CUDA graph trees" in str(error)
else:
    raise AssertionError("no error")
""",
        SIM_GPU_DEVICES="2",
    )


def test_torch_asks_genesis_for_snapshots(simulated):
    simulated(
        TORCH_STAND_IN
        + """
adapter.enable()
C = torch._C
kept = genesis.zeros(1000)  # the CPU's memory is no GPU's
block = alloc(5_000_000)
def live(snapshot):
    return [
        block["requested_size"]
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    ]
snapshot = C._cuda_memorySnapshot(None)
assert live(snapshot) == [5_000_000] and len(snapshot["device_traces"]) == 1
assert {segment["device"] for segment in snapshot["segments"]} == {0}
assert live(C._cuda_memorySnapshot((0, 0, True))) == [5_000_000]
assert live(C._cuda_memorySnapshot((0, 3, True))) == []
assert not C._cuda_isHistoryEnabled()
def actions(*which):
    return [e["action"] for trace in C._cuda_memorySnapshot(*which)["device_traces"] for e in trace]
C._cuda_record_memory_history("all", "all", "python", sys.maxsize, False, False, False, [])
assert C._cuda_isHistoryEnabled()
free(alloc(20 << 20), 20 << 20)
assert actions().count("alloc") == 1 and "free_completed" in actions()
assert actions((0, 0, False)) == []
C._cuda_record_memory_history("all", "all", "python", sys.maxsize, False, False, False, [])
assert actions().count("alloc") == 1  # PyTorch goes on, too
C._cuda_record_memory_history("all", None, "all", 10, True, False, False, [])
assert actions().count("alloc") == 0
C._cuda_record_memory_history(None, "all", "all", 10, False, False, False, [])
assert not C._cuda_isHistoryEnabled()
C._cuda_record_memory_history_legacy(True, True, 100, False, False, False, False, False, [])
assert C._cuda_isHistoryEnabled()
C._cuda_record_memory_history_legacy(False, True, 1, False, False, False, False, False, [])
assert not C._cuda_isHistoryEnabled()
try:
    C._cuda_record_memory_history("some", "all", "all", 1, False, False, False, [])
except RuntimeError as error:
    assert "state" in str(error)
else:
    raise AssertionError("no error")
free(block, 5_000_000)
""",
    )


def test_torch_compiles_without_cuda_graphs(simulated):
    simulated(
        TORCH_STAND_IN
        + """
import warnings
adapter.enable()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert not seen and Compiler({"size": 1}).config == {"size": 1}
    for _ in range(2):
        compiler = Compiler({"triton.cudagraphs": True, "size": 1})
        assert compiler.config == {"triton.cudagraphs": False, "size": 1}
        assert compiler(None, []) is False
    assert Compiler({}).config == {} and Compiler({})(None, []) is False
    inductor.triton.cudagraphs = True  # for all models
    assert Compiler({})(None, []) is False
(one,) = seen
assert one.category is RuntimeWarning and "CUDA graphs" in str(one.message)
""",
    )


def test_cupy_allocates_and_puts_back(simulated):
    simulated(
        """
import collections, sys, types
cuda, cupy = types.ModuleType("cupy.cuda"), types.ModuleType("cupy")
class OutOfMemoryError(MemoryError):
    def __init__(self, size, total, limit):
        raise AssertionError("its own words are not wanted")
Memory = collections.namedtuple("Memory", "ptr size owner device")
Pointer = collections.namedtuple("Pointer", "mem offset")
cuda.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
cuda.UnownedMemory, cuda.MemoryPointer, cuda.PinnedMemoryPointer = Memory, Pointer, Pointer
cuda.Device = lambda: types.SimpleNamespace(id=0)
cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=stream)
cuda.get_allocator = lambda: "CuPy's"
cuda.set_allocator = lambda allocate: setattr(cuda, "allocate", allocate)
cuda.set_pinned_memory_allocator = lambda allocate: setattr(cuda, "pin", allocate)
cupy.get_default_pinned_memory_pool = lambda: types.SimpleNamespace(malloc="CuPy's pinned")
cupy.cuda = cuda
sys.modules.update({"cupy": cupy, "cupy.cuda": cuda})
import genesis
from genesis.adapters import cupy as adapter
adapter.enable()
adapter.enable()
mm = genesis.memory_manager
made = genesis.cuda.Stream()
held = []
for stream in (0, made.cuda_stream, 0):
    held += [cuda.allocate(size) for size in (0, 1, 3 << 20)]
assert len({one.mem.ptr for one in held}) == 9 and mm.statistics()["live_count"] == 9
assert len(adapter._streams) == 2
pinned = cuda.pin(1000)
assert pinned.mem.ptr and pinned.mem.size == 1000
try:
    cuda.allocate(1 << 46)
except OutOfMemoryError as error:
    assert "out of memory" in str(error)
else:
    raise AssertionError("no error")
del held, pinned
assert mm.statistics()["live_count"] == 0
adapter.disable()
assert (cuda.allocate, cuda.pin) == ("CuPy's", "CuPy's pinned") and not adapter.is_enabled()
""",
    )


# ---- on a GPU ----

TORCH = """
import genesis
from genesis.adapters import torch as adapter
import torch
adapter.enable()
"""


@pytest.mark.gpu
def test_torch(fresh):
    pytest.importorskip("torch")
    fresh(
        TORCH
        + """
mm = genesis.memory_manager
x = torch.randn(1000, 1000, device="cuda")
assert mm.statistics()["live_bytes"] >= 4_000_000
y = (x @ x).sum()
z = torch.empty(0, device="cuda")
assert torch.isfinite(y).item() and z.numel() == 0
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    w = x * 2
w.record_stream(torch.cuda.current_stream())
torch.cuda.current_stream().wait_stream(side)
assert torch.equal(w.cpu(), x.cpu() * 2)
del w
torch.cuda.synchronize()
torch.cuda.empty_cache()
genesis.enable_memory_debugging(True)
def hold():
    return torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
kept = hold()
(large,) = genesis.detailed_memory_stats("cuda").get_large_allocations("90MiB")
assert "(hold)" in large.location, large
try:
    torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    assert "out of memory" in str(error) and "hold" in str(error)
else:
    raise AssertionError("no error")
del x, y, z, kept
torch.cuda.synchronize()
"""
    )


@pytest.mark.gpu
def test_torch_statistics(fresh):
    """Every name of PyTorch's statistics answers from Genesis, with the types of PyTorch's own."""
    pytest.importorskip("torch")
    fresh(
        """
from torch.cuda import max_memory_allocated, memory_allocated  # before the adapter is on
"""
        + TORCH
        + """
import os, tempfile, warnings
warnings.simplefilter("ignore")
assert torch.cuda.memory_stats() == {} and memory_allocated() == 0 == torch.cuda.memory_reserved()
x = torch.ones(1 << 20, device="cuda")
for device in (None, 0, "cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:0")):
    assert memory_allocated(device) == torch.cuda.memory_allocated(device) == 4 << 20
    torch.cuda.memory_stats(device)
    torch.cuda.mem_get_info(device)
stats = torch.cuda.memory_stats()
assert len(stats) == 122 and list(stats) == sorted(stats), len(stats)
assert all(type(value) is int for value in stats.values())
assert stats["allocation.all.current"] == 1 and stats["requested_bytes.all.current"] == 4 << 20
reserved = torch.cuda.memory_reserved()
assert reserved == genesis.cuda.memory_reserved() >= 4 << 20
y = torch.ones(8 << 20, device="cuda")
del y
assert max_memory_allocated() == 36 << 20 == torch.cuda.memory.max_memory_allocated()
torch.cuda.reset_peak_memory_stats()
assert max_memory_allocated() == 4 << 20
torch.cuda.reset_max_memory_allocated()
torch.cuda.reset_max_memory_cached()
torch.cuda.reset_accumulated_memory_stats()
assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
assert torch.cuda.memory_cached() == torch.cuda.memory_reserved() <= torch.cuda.max_memory_cached()
assert "Allocated memory" in torch.cuda.memory_summary() and torch.cuda.memory_summary(0, True)
assert torch.cuda.memory_stats_as_nested_dict()["allocation"]["all"]["current"] == 1
before = torch.cuda.memory_reserved()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() < before
segments = torch.cuda.memory_snapshot()
assert sum(segment["allocated_size"] for segment in segments) == 4 << 20
assert sum(segment["total_size"] for segment in segments) == torch.cuda.memory_reserved()
assert torch.cuda.get_per_process_memory_fraction() == 1.0
torch.cuda.set_per_process_memory_fraction(0.5)
assert torch.cuda.get_per_process_memory_fraction(0) == 0.5
torch.cuda.memory._record_memory_history(max_entries=1000)
z = x * 2
with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "snapshot.pickle")
    torch.cuda.memory._dump_snapshot(path)
    assert os.path.getsize(path) > 100
snapshot = torch.cuda.memory._snapshot()
assert [entry["action"] for entry in snapshot["device_traces"][0]].count("alloc") == 1
torch.cuda.memory._record_memory_history(None)
if hasattr(torch.accelerator, "memory_stats"):
    assert torch.accelerator.memory_allocated() == memory_allocated() == 8 << 20
    assert torch.accelerator.max_memory_reserved(0) == torch.cuda.max_memory_reserved()
    assert torch.accelerator.memory_stats() == torch.cuda.memory_stats()
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    torch.accelerator.empty_cache()
if hasattr(torch.accelerator, "get_memory_info"):
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free < total == torch.cuda.mem_get_info()[1]
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.cuda._sleep(200_000_000)
w = torch.empty(1 << 20, device="cuda")
torch.cuda.reset_peak_memory_stats()
w.record_stream(side)
del w
stats = torch.cuda.memory_stats()
assert stats["active.all.current"] == stats["allocation.all.current"] + 1
v = torch.empty(1 << 20, device="cuda")
del v
stats = torch.cuda.memory_stats()
assert stats["active_bytes.all.peak"] == 16 << 20 and stats["allocated_bytes.all.peak"] == 12 << 20
torch.cuda.synchronize()
"""
    )


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_torch_compiles(fresh, mode):
    """Compiled models give what the same models give without, and graphs are left away once."""
    for name in ("torch", "triton"):
        pytest.importorskip(name)
    fresh(
        TORCH
        + f"""
mode = {mode!r}
"""
        + """
import warnings
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).cuda()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    fast = torch.compile(model, mode=mode)
    for turn in range(5):
        x = torch.randn(32, 64, device="cuda")
        model.zero_grad()
        expected = model(x)
        expected.sum().backward()
        grads = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        got = fast(x)
        got.sum().backward()
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
        for p, grad in zip(model.parameters(), grads):
            torch.testing.assert_close(p.grad, grad, rtol=1e-3, atol=1e-3)
        with torch.no_grad():
            torch.testing.assert_close(fast(x), expected, rtol=1e-3, atol=1e-3)
told = [one for one in seen if "CUDA graphs while Genesis" in str(one.message)]
assert len(told) == (mode != "default"), seen
"""
    )


@pytest.mark.gpu
def test_a_graph_of_torch(fresh):
    pytest.importorskip("torch")
    fresh(
        TORCH
        + """
x = torch.zeros(1000, device="cuda")
def step():
    y = x + 1
    z = y * 2
    return z
torch.cuda.synchronize()
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = step()
for turn in range(100):
    x.fill_(turn)
    other = torch.full((1000,), -1.0, device="cuda")   # must not get the graph's memory
    graph.replay()
    assert result.sum().item() == 1000 * 2 * (turn + 1) and other.sum().item() == -1000
"""
    )


@pytest.mark.gpu
def test_a_pool_of_torch(fresh):
    pytest.importorskip("torch")
    fresh("""
import genesis, torch
from genesis.adapters import torch as adapter
torch.zeros(1, device="cuda")
try:
    adapter.enable()
except RuntimeError as error:
    assert "mempool" in str(error)
pool = adapter.mempool()
before = genesis.cuda.memory_allocated()
with torch.cuda.use_mem_pool(pool):
    x = torch.ones(1 << 20, device="cuda")
assert genesis.cuda.memory_allocated() - before >= 4 << 20
assert x.sum().item() == 1 << 20
""")


@pytest.mark.gpu
def test_cupy(fresh):
    pytest.importorskip("cupy")
    fresh("""
import genesis, cupy
from genesis.adapters import cupy as adapter
adapter.enable()
x = cupy.arange(1000, dtype=cupy.float64)
assert genesis.cuda.memory_allocated() >= 8000
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    y = (x * 2).sum()
stream.synchronize()
assert float(y) == 999000
host = cupy.cuda.alloc_pinned_memory(1 << 20)
assert genesis.cpu.memory_stats() is not None and len(memoryview(host)) >= 1 << 20
try:
    cupy.empty(1 << 45, dtype=cupy.uint8)
except cupy.cuda.memory.OutOfMemoryError as error:
    assert "out of memory" in str(error)
del x, y, host
assert genesis.cuda.memory_allocated() == 0
adapter.disable()
z = cupy.zeros(10)
assert genesis.cuda.memory_allocated() == 0
""")


NUMBA_READER = """
import pickle, sys
from numba import cuda
with pickle.loads(sys.stdin.buffer.read()) as array:
    there = array.copy_to_host()
    assert (there == numpy.arange(1000.0)).all()
    array.copy_to_device(there + 1)
    cuda.synchronize()
"""


@pytest.mark.gpu
def test_numba(fresh):
    pytest.importorskip("numba.cuda")
    fresh(
        NUMPY_FOR_NUMBA
        + """
import genesis
from genesis.adapters import numba as adapter
adapter.enable()
from numba import cuda
@cuda.jit
def double(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= 2
array = cuda.to_device(numpy.arange(1000.0))
assert genesis.cuda.memory_allocated() >= 8000
double[8, 128](array)
assert array.copy_to_host().sum() == 999000
del array
cuda.synchronize()
"""
    )


@pytest.mark.gpu
def test_numba_uses_many_streams(fresh):
    """Memory that a kernel of one stream still reads is not what another stream gets."""
    pytest.importorskip("numba.cuda")
    fresh(
        NUMPY_FOR_NUMBA
        + """
import genesis
from genesis.adapters import numba as adapter
adapter.enable()
from numba import cuda
@cuda.jit
def read_late(values, out):
    i = cuda.grid(1)
    for turn in range(200):  # longer than the host needs
        cuda.nanosleep(500_000)
    out[i] = values[i]
@cuda.jit
def copy(values, out):
    i = cuda.grid(1)
    out[i] = values[i]
first, second = cuda.stream(), cuda.stream()
n = 1024
bad = cuda.to_device(numpy.full(n, -1.0))
copy[4, 256](bad, bad)
for turn in range(5):
    source = cuda.to_device(numpy.full(n, float(turn)))
    out = cuda.to_device(numpy.zeros(n))
    cuda.synchronize()
    read_late[4, 256, first](source, out)
    del source
    for _ in range(3):
        other = cuda.device_array(n)
        copy[4, 256, second](bad, other)
    second.synchronize()
    first.synchronize()
    assert (out.copy_to_host() == turn).all(), turn
with cuda.defer_cleanup():
    before = genesis.cuda.memory_allocated()
    del other
    assert genesis.cuda.memory_allocated() == before
assert genesis.cuda.memory_allocated() < before
"""
    )


@pytest.mark.gpu
def test_numba_shares_memory_with_another_process(fresh):
    pytest.importorskip("numba.cuda")
    fresh(
        f"""
READER = {NUMPY_FOR_NUMBA + NUMBA_READER!r}
"""
        + NUMPY_FOR_NUMBA
        + """
import pickle, subprocess, sys
import genesis
from genesis.adapters import numba as adapter
adapter.enable()
from numba import cuda
before = cuda.to_device(numpy.zeros(1000))
array = cuda.to_device(numpy.arange(1000.0))
after = cuda.to_device(numpy.zeros(1000))
kept = genesis.memory_manager.allocate_memory(5_000_000)
told = pickle.dumps(array.get_ipc_handle())
subprocess.run([sys.executable, "-c", READER], input=told, check=True, timeout=60)
assert (array.copy_to_host() == numpy.arange(1000.0) + 1).all()
assert not before.copy_to_host().any() and not after.copy_to_host().any()
"""
    )


# What PyTorch's own suite tests of its allocator, written anew from the description of each test.


@pytest.mark.gpu
def test_torch_random_tensors_keep_their_content(fresh):
    """test_allocator_fuzz: 10000 tensors of 2 to 20 MB come and go, and keep their content."""
    pytest.importorskip("torch")
    fresh(
        TORCH
        + """
import random
random.seed(5)
live, total, most = [], 0, 2 << 30
for turn in range(10000):
    while live and (total > most or random.random() < 0.45):
        tensor, mark, nbytes = live.pop(random.randrange(len(live)))
        ends = tensor[0].item(), tensor[-1].item(), tensor[len(tensor) // 2].item()
        assert ends == (mark,) * 3, (turn, mark, ends)
        if turn % 16 == 0:
            assert bool((tensor == mark).all())
        total -= nbytes
        del tensor
    nbytes = random.randrange(2_000_000, 20_000_000)
    tensor = torch.empty(nbytes // 4, dtype=torch.int32, device="cuda")
    tensor.fill_(turn)
    live.append((tensor, turn, nbytes))
    total += nbytes
for tensor, mark, _ in live:
    assert bool((tensor == mark).all())
"""
    )


@pytest.mark.gpu
def test_torch_record_stream(fresh):
    """test_record_stream: a tensor that another stream still uses is not handed out again."""
    pytest.importorskip("torch")
    fresh(
        TORCH
        + """
values = torch.tensor([1.0, 2.0, 3.0, 4.0]).pin_memory()
result = torch.zeros(4, device="cuda")
side = torch.cuda.Stream()
def perform():
    with torch.cuda.stream(side):
        tensor = values.cuda(non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda._sleep(50_000_000)
    result.copy_(tensor)
    return tensor
for turn in range(20):
    result.zero_()
    tensor = perform()
    tensor.record_stream(torch.cuda.current_stream())
    address = tensor.data_ptr()
    del tensor
    with torch.cuda.stream(side):
        other = torch.full((4,), -1.0, device="cuda")
        assert other.data_ptr() != address, "reused before the work was done"
    torch.cuda.current_stream().synchronize()
    assert result.tolist() == [1, 2, 3, 4]
    with torch.cuda.stream(side):
        after = torch.empty(4, device="cuda")
    del other, after
"""
    )


@pytest.mark.gpu
def test_torch_record_stream_on_a_view(fresh):
    """test_record_stream_on_shifted_view: a view that begins inside holds the whole block."""
    pytest.importorskip("torch")
    fresh(
        TORCH
        + """
side, results = torch.cuda.Stream(), []
for shift in (1, 100, 128, 20_000):
    with torch.cuda.stream(side):
        base = torch.randn(50_000, device="cuda")
    view = base[shift:]
    assert view.storage_offset() == shift and view.data_ptr() > base.data_ptr()
    torch.cuda.current_stream().wait_stream(side)
    expected = view.cpu()
    torch.cuda._sleep(50_000_000)
    copy = view.clone()
    view.record_stream(torch.cuda.current_stream())
    address = base.data_ptr()
    del base, view
    with torch.cuda.stream(side):
        other = torch.full((50_000,), -1.0, device="cuda")
        assert other.data_ptr() != address
    torch.cuda.synchronize()
    assert torch.equal(copy.cpu(), expected)
"""
    )


@pytest.mark.gpu
def test_torch_record_stream_and_out_of_memory(fresh):
    """test_caching_allocator_record_stream_oom: what waits for another stream can serve a request
    that would fail without it, and is used only when the work is done."""
    pytest.importorskip("torch")
    fresh(
        TORCH
        + """
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction((2600 << 20) / total)
y = torch.zeros(40 << 20, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
for turn in range(100):
    x = torch.full((40 << 20,), turn, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        side.wait_stream(main)  # within the block, current_stream() is side itself
        y += x
    x.record_stream(side)
    del x
torch.cuda.synchronize()
assert int(y[0]) == sum(range(100)) % 256 and bool((y == y[0]).all())
left = torch.empty(2400 << 20, dtype=torch.uint8, device="cuda")
"""
    )


@pytest.mark.gpu
def test_torch_pools_live_and_die(fresh):
    """Pools of PyTorch over Genesis: beside each other, kept by their tensors, given back after."""
    pytest.importorskip("torch")
    fresh("""
import genesis, torch, gc
from genesis.adapters import torch as adapter
keep = torch.zeros(1, device="cuda")
for turn in range(20):
    first, second = adapter.mempool(), adapter.mempool()
    with torch.cuda.use_mem_pool(first):
        a = torch.full((3 << 20,), 1, dtype=torch.uint8, device="cuda")
        with torch.cuda.use_mem_pool(second):
            b = torch.full((30 << 20,), 2, dtype=torch.uint8, device="cuda")
        c = torch.full((100,), 3, dtype=torch.uint8, device="cuda")
    assert genesis.cuda.memory_allocated() >= 33 << 20
    assert int(a.sum()) == 3 << 20 and int(b.sum()) == 60 << 20 and int(c.sum()) == 300
    del a, b, c
    torch.cuda.synchronize()
    del first, second
    gc.collect()
torch.cuda.empty_cache()
assert genesis.cuda.memory_allocated() == 0, genesis.cuda.memory_allocated()
""")


@pytest.mark.gpu
def test_cupy_with_streams_and_a_limit(fresh):
    """100000 temporary arrays on several streams under a limit: results equal CuPy's own."""
    pytest.importorskip("cupy")
    program = """
import sys, hashlib, cupy
if sys.argv[1:] == ["genesis"]:
    import genesis
    from genesis.adapters import cupy as adapter
    adapter.enable()
    total = cupy.cuda.runtime.memGetInfo()[1]
    genesis.cuda.set_memory_fraction((512 << 20) / total)
else:
    cupy.get_default_memory_pool().set_limit(512 << 20)
streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
sums = [cupy.zeros(1000, dtype=cupy.float64) for _ in streams]
cupy.cuda.Device().synchronize()
for turn in range(12500):
    which = turn % len(streams)
    with streams[which]:
        x = cupy.arange(turn % 977 + 1, dtype=cupy.float64)
        y = x * 2 + turn
        z = cupy.sqrt(y) - x
        w = cupy.where(z > 0, z, -z)
        sums[which] += w.sum() + y.max()
for stream in streams:
    stream.synchronize()
print(hashlib.sha256(b"".join(one.get().tobytes() for one in sums)).hexdigest())
if sys.argv[1:] == ["genesis"]:
    count = genesis.memory_manager.statistics()["alloc_count"]
    assert count >= 100_000, count
    assert genesis.memory_manager.statistics()["reserved_bytes_peak"] <= 512 << 20
    held = []
    try:
        while True:
            held.append(cupy.empty(64 << 20, dtype=cupy.uint8))
    except cupy.cuda.memory.OutOfMemoryError:
        assert len(held) >= 7, len(held)
    del held
    cupy.zeros(64 << 20, dtype=cupy.uint8)
"""
    run = [
        subprocess.run(
            [sys.executable, "-c", program, peer],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        for peer in ("own", "genesis")
    ]
    for one in run:
        assert one.returncode == 0, one.stderr
    assert run[0].stdout == run[1].stdout and len(run[0].stdout) > 60


@pytest.mark.gpu
def test_three_frameworks_share_one_pool(fresh):
    """Arrays go around through DLPack, without a copy, and the statistics add up."""
    for name in ("torch", "cupy", "numba.cuda"):
        pytest.importorskip(name)
    fresh(
        NUMPY_FOR_NUMBA
        + """
import gc, genesis
from genesis import adapters
for name in adapters.NAMES:
    adapters.get(name).enable()
import cupy, torch
from numba import cuda
@cuda.jit
def add(values, what):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += what
def live():
    return genesis.cuda.memory_allocated()
torch.cuda.init()
base = live()
t = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
after_torch = live()
assert after_torch - base == 4 << 20, (base, after_torch)
c = cupy.ones(2 << 20, dtype=cupy.float32)
assert live() - after_torch == 8 << 20
after_cupy = live()
n = cuda.device_array(3 << 20, dtype=numpy.float32)
assert live() - after_cupy == 12 << 20
assert genesis.cuda.memory_stats()["allocated_bytes.all.current"] == live()
everything = live()
for turn in range(100):
    from_torch = cupy.from_dlpack(t)
    assert from_torch.data.ptr == t.data_ptr()
    from_torch += 1
    cupy.cuda.get_current_stream().synchronize()
    from_cupy = torch.from_dlpack(c)
    assert from_cupy.data_ptr() == c.data.ptr
    from_cupy += 1
    torch.cuda.current_stream().synchronize()
    seen = cuda.as_cuda_array(t)
    add[4096, 256](seen, 1.0)
    cuda.synchronize()
    as_torch = torch.as_tensor(n, device="cuda")
    assert as_torch.data_ptr() == n.__cuda_array_interface__["data"][0]
    as_torch.fill_(turn)
    torch.cuda.synchronize()
    assert live() == everything, (turn, live(), everything)
assert torch.equal(t.cpu(), torch.arange(1 << 20, dtype=torch.float32) + 200)
assert float(c.min()) == float(c.max()) == 101
assert (n.copy_to_host() == 99).all()
del t, from_torch, from_cupy, seen, as_torch, c, n
gc.collect()
cuda.synchronize()
assert live() == base, (live(), base)
"""
    )


@pytest.mark.gpu
@pytest.mark.parametrize("under", [("torch",), ("cupy",), ("torch", "cupy", "numba")])
def test_run_under(tmp_path, under):
    """An unchanged script, the adapter on, and the summary at the end."""
    for name in under:
        pytest.importorskip(name)
    script = tmp_path / "script.py"
    script.write_text(f"""
import sys, {under[0]} as framework
x = framework.ones(1 << 20, **({{"device": "cuda"}} if {under[0]!r} == "torch" else {{}}))
print("sum", int(x.sum()), sys.argv[1:])
""")
    finished = run_under("--under", ",".join(under), str(script), "first", "--second")
    assert finished.returncode == 0, finished.stderr
    assert "sum 1048576 ['first', '--second']" in finished.stdout
    assert "reserved" in finished.stdout + finished.stderr
