"""GENESIS_CUDA_DRIVER=sim: a GPU for everybody, from Python."""

import os
import subprocess
import sys

import pytest
from conftest import script_find


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
    script = script_find("device_index.py")
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


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SCHEDULE", "lazzy", "one of eager,lazy,random"),
        ("LANES", "up", "one of ascending,descending,random"),
        ("CHECK", "yes", "one of on,off"),
        ("STRICT", "1", "one of off,on"),
        ("FINDINGS", "loud", "one of print,abort,silent"),
        ("SEED", "-1", "a number from 0 to"),
        ("SEED", "7x", "a number from 0 to"),
        ("DEVICES", "many", "a number from 0 to 8"),
        ("DEVICES", "9", "a number from 0 to 8"),
        ("DELAY_US", "1000000", "a number from 0 to 999999"),
        ("VERSION", "13.0", "a number from 0 to"),
        ("MEMORY", "1 GB", "a number of bytes, or one with K, M, G or T"),
        ("MEMORY", "0", "a number of bytes, or one with K, M, G or T"),
        ("MEMORY", "99999999999T", "a number of bytes, or one with K, M, G or T"),
        ("CACHE_DIR", "here", "an absolute path"),
        ("CXX", "./g++", "a program's name or absolute path"),
    ],
)
def test_settings_that_cannot_be(simulated, name, value, expected):
    """One warning and the default."""
    finished = simulated(
        """
assert cuda.device_count() == 1
assert cuda.get_device_properties().total_memory == 1 << 30
assert (genesis.ones(3, device="cuda") + 1).tolist() == [2, 2, 2]
""",
        **{f"SIM_GPU_{name}": value},
    )
    (line,) = finished.stderr.splitlines()
    assert line.startswith(f"simulated GPU: SIM_GPU_{name}={value} is ignored: it must be ")
    assert expected in line


def test_settings_that_nobody_knows(simulated):
    finished = simulated("assert cuda.is_available()", SIM_GPU_SEEED="1")
    assert finished.stderr == "simulated GPU: there is no variable SIM_GPU_SEEED\n"


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("512M", 512 << 20), ("2GiB", 2 << 30), ("0x40000000", 1 << 30), ("", 1 << 30)],
)
def test_memory_with_a_unit(simulated, text, nbytes):
    code = f"assert cuda.get_device_properties().total_memory == {nbytes}"
    assert simulated(code, SIM_GPU_MEMORY=text).stderr == ""


def test_nothing_runs_from_the_current_directory(simulated, tmp_path):
    """A relative entry of PATH is no place for a compiler."""
    program = tmp_path / "bin" / "planted"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    program.chmod(0o755)
    finished = simulated(
        f"""
import os
os.chdir({str(tmp_path)!r})
genesis.ones(3, device="cuda").exp().tolist()
""",
        SIM_GPU_CXX="planted",
        SIM_GPU_CACHE_DIR=str(tmp_path / "objects"),
        GENESIS_KERNEL_CACHE_DIR=str(tmp_path / "kernels"),
        PATH=f"bin:.:{os.environ['PATH']}",
        check=False,
    )
    assert "planted cannot be run" in finished.stderr
    assert not (tmp_path / "ran").exists()
