"""GENESIS_CUDA_DRIVER=sim: a GPU for everybody, from Python."""

import os
import pathlib
import subprocess
import sys

import pytest


@pytest.fixture
def simulated(fresh, build):
    if not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")

    def run(code, **environment):
        prelude = "import genesis\nfrom genesis import cuda\n"
        return fresh(prelude + code, GENESIS_CUDA_DRIVER="sim", **environment)

    return run


def test_it_says_what_it_is(simulated):
    finished = simulated("""
assert cuda.is_available() and cuda.device_count() == 1
assert "simulated" in cuda.get_device_name()
assert cuda.get_device_properties().total_memory == 1 << 30
from genesis.__main__ import info_lines
text = "\\n".join(info_lines())
assert "Genesis simulated GPU" in text and "libgenesis_sim.so" in text
""")
    assert finished.stderr == ""


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_memory_and_streams(simulated, schedule):
    finished = simulated(
        """
manager = genesis.memory_manager
blocks = [manager.allocate_memory(size) for size in (0, 1, 1000, 1 << 20)]
streams = [cuda.Stream() for _ in range(3)]
events = [stream.record_event() for stream in streams]
for stream in streams:
    for event in events:
        stream.wait_event(event)
streams[0].wait_stream(cuda.default_stream())
for event in events:
    while not event.query():
        pass
cuda.synchronize()
for block in blocks:
    manager.free_memory(block)
assert cuda.memory_allocated() == 0
try:
    manager.allocate_memory(2 << 30)
except genesis.OutOfMemoryError as error:
    assert "1.00 GiB" in str(error)
else:
    raise AssertionError
""",
        SIM_GPU_SCHEDULE=schedule,
        SIM_GPU_SEED="3",
    )
    assert finished.stderr == ""


def test_two_devices(simulated):
    simulated(
        """
assert cuda.device_count() == 2
with cuda.device(1):
    address = genesis.memory_manager.allocate_memory(10)
assert 10 <= cuda.memory_allocated(1) <= 512 and cuda.memory_allocated(0) == 0
genesis.ndarray.cuda_memory_manager.free_memory(address)
""",
        SIM_GPU_DEVICES="2",
    )


def test_indexing(build):
    """Keys on a GPU beside the CPU: few kinds of kernels, as each takes a compiler some time."""
    if not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    script = pathlib.Path(__file__).parents[1] / "device_index.py"
    environment = {**os.environ, "GENESIS_CUDA_DRIVER": "sim"}
    environment |= {"SIM_GPU_SCHEDULE": "random", "SIM_GPU_LANES": "random"}
    command = [sys.executable, script, "ordered", "searches", "errors", "keys", "--keys=20"]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["ordered", "searches", "errors", "keys"]
    code = """
import genesis
try:
    genesis.zeros(3, device="cuda")[genesis.tensor([5]).cuda()]
except IndexError:
    print("at the call")
"""
    environment["GENESIS_DEBUG"] = "sync"
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert finished.stdout == "at the call\n", finished.stderr
