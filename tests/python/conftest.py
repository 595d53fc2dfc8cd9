"""What the Python tests share: where things are, and how to ask a fresh interpreter something."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

import genesis

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(genesis._C.__file__).resolve().parents[2]
FAKE = BUILD / "tests" / "fake" / "libgenesis_fake.so"

# Not the user's own: a test may clear it.
os.environ["GENESIS_KERNEL_CACHE_DIR"] = str(BUILD / "kernels")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none, saying why."""
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu and not genesis.cuda.is_available():
        reason = "no GPU"
        try:
            genesis.cuda.set_device(0)
        except RuntimeError as error:
            reason = str(error)
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def build() -> Path:
    """The build directory that the imported package comes from."""
    return BUILD


@pytest.fixture
def fresh(tmp_path_factory):
    """Run Python code in a fresh interpreter; gives the finished process, checked unless told."""
    script = tmp_path_factory.mktemp("fresh") / "script.py"  # a file: tracebacks show its lines

    def run(code: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GENESIS_")}
        kept["GENESIS_KERNEL_CACHE_DIR"] = str(BUILD / "kernels")
        script.write_text(code)
        finished = subprocess.run(
            [sys.executable, script],
            env=kept | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not check or finished.returncode == 0, finished.stderr
        return finished

    return run


def tool_load(name: str) -> ModuleType:
    """A program of tools/, as a module."""
    loader = SourceFileLoader(name, str(ROOT / "tools" / name))
    module = module_from_spec(spec_from_loader(name, loader))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


def script_find(script: str) -> Path:
    """A program of the folders of tests/, by its name."""
    (found,) = (ROOT / "tests").glob(f"*/{script}")
    return found


def run_script(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a program of tests/, which must end well."""
    finished = subprocess.run(
        [sys.executable, script_find(script), *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished


def simulate_script(
    script: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess:
    """Run a program of tests/ on the simulated GPU, or skip where there is none."""
    driver = BUILD / "libgenesis_sim.so"
    if not driver.exists():
        pytest.skip("the build has no simulator")
    return run_script(script, *arguments, **{"GENESIS_CUDA_DRIVER": str(driver)} | environment)


# Releases of Numba ask for a name that NumPy 2.5 has dropped.
NUMPY_FOR_NUMBA = """
import numpy
if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack
"""


@pytest.fixture
def numpy_for_numba() -> None:
    """NumPy as Numba wants it."""
    exec(NUMPY_FOR_NUMBA)


MEMORY_PRELUDE = """
import ctypes, gc, io, os, sys, threading, time
import genesis
from genesis import cuda
from genesis.ndarray.cuda_memory_manager import *
KiB, MiB = 1 << 10, 1 << 20
mm = get_memory_manager()
def raises(kind, text, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"{call} raised nothing")
def all_is_freed():
    end = time.monotonic() + 30     # what nobody took is freed when it arrives
    while mm.statistics()["live_count"] and time.monotonic() < end:
        time.sleep(0.001)
    return mm.statistics()["live_count"] == 0
def run_threads(count, work):
    failures = []
    def guarded(index):
        try:
            work(index)
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not failures, failures
"""
NO_DRIVER = str(ROOT / "no-such-driver" / "libcuda.so.1")
PLACES = {
    "cpu": {"GENESIS_CUDA_DRIVER": NO_DRIVER},
    "sim": {"GENESIS_CUDA_DRIVER": "sim"},
    "sim-pool": {"GENESIS_CUDA_DRIVER": "sim", "GENESIS_CUDA_ALLOCATOR": "pool"},
    "sim-direct": {"GENESIS_CUDA_DRIVER": "sim", "GENESIS_CUDA_ALLOCATOR": "direct"},
}


def memory_runner(fresh, place: str):
    """Run code about memory in a fresh interpreter on one of PLACES."""
    if place != "cpu" and not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")

    def run(code: str, **environment: str) -> subprocess.CompletedProcess:
        finished = fresh(MEMORY_PRELUDE + code, **PLACES[place] | environment)
        unexpected = [line for line in finished.stderr.splitlines() if "leak:" not in line]
        assert not unexpected, finished.stderr
        return finished

    run.place = place
    return run


@pytest.fixture(params=["cpu", "sim", "sim-pool"])
def memory(fresh, request):
    """Run code about memory on the CPU and on the simulated GPU, with caches."""
    return memory_runner(fresh, request.param)


@pytest.fixture(params=PLACES)
def any_memory(fresh, request):
    """The same, and under the direct policy, which caches nothing."""
    return memory_runner(fresh, request.param)


@pytest.fixture
def cpu_memory(fresh):
    """The same, on the CPU only."""
    return memory_runner(fresh, "cpu")


@pytest.fixture
def simulated_memory(fresh):
    """The same, on the simulated GPU with its default policy only."""
    return memory_runner(fresh, "sim")


@pytest.fixture
def fake_driver() -> str:
    """The path of a stand-in for the CUDA driver with two small devices."""
    if not FAKE.exists():
        pytest.skip("the build has no tests")
    return str(FAKE)
