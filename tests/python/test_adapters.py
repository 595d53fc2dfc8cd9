"""Genesis under PyTorch, CuPy and Numba: what can be told without a GPU, and on one."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


@pytest.mark.gpu
def test_numba(fresh):
    pytest.importorskip("numba.cuda")
    fresh("""
import genesis, numpy
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
""")
